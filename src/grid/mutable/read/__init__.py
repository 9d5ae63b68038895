"""Reads a mutable file: finds its versions, judges servers' claims, and fetches and checks one version. Plans only."""
