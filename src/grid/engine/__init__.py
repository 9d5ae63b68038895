"""What reads and writes of every kind of file share: how fast servers are, and which of them are in doubt."""
