"""Reads an immutable file: finds its shares, chooses among them, and fetches and checks them. Plans only."""
