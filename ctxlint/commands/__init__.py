"""The commands: one module each, with ``parser()``, and ``run(arguments)`` that returns the exit code."""

from __future__ import annotations

COMMANDS = ("check", "explain", "rule", "config", "server", "clean", "generate-shell-completion", "help")


def module_of(command: str) -> str:
    """The name of the module that implements a command."""
    return f"{__name__}.{command.replace('-', '_')}"
