"""The language server. Only ``ctxlint.commands.server`` imports from here."""
