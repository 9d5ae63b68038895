"""The faults campaign: the cost of silent, slow, lying and missing servers for each operation, on a real process grid."""
