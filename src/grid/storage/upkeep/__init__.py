"""Background work of a storage server: counting shares, and removing those with expired leases."""
