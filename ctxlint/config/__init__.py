"""Options and settings, and where they are read from."""
