"""Comments that say: not here."""
