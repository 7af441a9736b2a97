"""What the code says: imports, classes, values, facts. No rules, no input or output, no settings."""
