"""Options, settings, and the files that they are read from."""
