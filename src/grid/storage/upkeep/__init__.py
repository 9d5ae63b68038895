"""What a storage server does by itself: counting its shares, and removing those whose leases have expired."""
