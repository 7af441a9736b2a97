"""The language server. Only ``ctxlint.commands.server`` imports from here: pygls and lsprotocol are an extra."""
