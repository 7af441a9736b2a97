"""The cache of earlier results."""
