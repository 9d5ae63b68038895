"""What the gateway does and did: operations, and the requests inside them."""
