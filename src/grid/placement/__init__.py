"""The order of servers, the placement of shares, and the secrets of leases."""
