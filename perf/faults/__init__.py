"""The faults campaign: the cost of silent and missing servers for each operation, on a real process grid."""
