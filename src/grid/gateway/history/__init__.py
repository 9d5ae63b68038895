"""Running and recent operations of the gateway, and the requests inside them."""
