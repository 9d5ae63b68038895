"""A storage server: share containers and leases, the rules of its operations, and shares on disk or in memory."""
