"""What monitors and supervisors of a node ask for: health, status, metrics, statistics, and logs."""
