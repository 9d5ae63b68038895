"""Pages and data for monitors and supervisors of a node: health, status, metrics, statistics and logs."""
