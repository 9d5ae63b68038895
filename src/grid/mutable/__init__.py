"""Mutable files, SDMF and MDMF: their shares, and the plans that find, read, write, check and repair them."""
