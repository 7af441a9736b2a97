"""The model of the code: imports, classes, values, facts. It contains no rules, no I/O and no settings."""
