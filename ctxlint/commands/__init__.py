"""The commands: one file each, each with ``parser()``, and ``run(arguments)`` that returns the exit code."""
