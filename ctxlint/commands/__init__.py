"""The commands: one file each, each with ``run(arguments)`` that returns the exit code."""
