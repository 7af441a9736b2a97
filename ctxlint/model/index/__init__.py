"""The project index: scopes, bindings, modules, and calls across files."""
