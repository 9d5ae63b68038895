"""Which servers are asked in what order, which share goes where, and with which lease secrets."""
