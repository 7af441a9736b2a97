"""The reference pages: the options of the configuration file, the command line, and the changelog."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING

from ctxlint.addresses import REPOSITORY
from ctxlint.commands import COMMANDS, module_of
from ctxlint.config.options import OPTIONS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from ctxlint.config.options import Option


def configuration() -> str:
    """Every key of ``[tool.ctxlint]``, from the table that ctxlint itself reads."""
    return (
        "# Configuration reference\n\n"
        "Every key of `[tool.ctxlint]` in `pyproject.toml`, or of `ctxlint.toml`. "
        "[Configuration](configuration.md) explains where ctxlint looks for these files; "
        "`ctxlint config KEY` prints the same text.\n\n" + "\n".join(_option(option) for option in OPTIONS)
    )


def _option(option: Option) -> str:
    text = " ".join(option.text.split())
    return (
        f"## `{option.key}` {{ #{option.key} }}\n\n{text}\n\n"
        f"- Default: {_default(option.default)}\n- Type: `{option.type}`\n\n"
        f"```toml\n[tool.ctxlint]\n{option.example}\n```\n"
    )


def _default(text: str) -> str:
    """A value as code, a description as it stands."""
    return text if " " in text.replace("not set", "") and not text.startswith(("[", "{")) else f"`{text}`"


def command_line() -> str:
    """Every command with its options, from the parsers."""
    parts = [
        "# Command line\n",
        """Without a command, `ctxlint` means `ctxlint check`. `ctxlint COMMAND --help` prints the options of a command.
Most options of `check` have the same name in the [configuration](configuration-reference.md); the command line takes
precedence.
""",
    ]
    for command in COMMANDS:
        parser = import_module(module_of(command)).parser()
        parts.append(f"## ctxlint {command} {{ #{command} }}\n\n{' '.join((parser.description or '').split())}\n")
        parts.append(f"```text\n{' '.join(parser.format_usage().split())}\n```\n")
        parts.extend(_group(command, title, actions) for title, actions in _groups(parser))
        if command == "check" and parser.epilog:
            parts.append(f"```text\n{parser.epilog.strip()}\n```\n")
    return "\n".join(parts)


def _groups(parser: argparse.ArgumentParser) -> Iterator[tuple[str, list[argparse.Action]]]:
    for group in parser._action_groups:  # noqa: SLF001  (argparse has no other way to ask)
        if group._group_actions:  # noqa: SLF001
            yield group.title or "", group._group_actions  # noqa: SLF001


def _group(command: str, title: str, actions: Iterable[argparse.Action]) -> str:
    heading = {"positional arguments": "Arguments", "options": "General"}.get(title, title.capitalize())
    rows = "\n".join(f"| {_names(action)} | {_help(action)} |" for action in actions)
    anchor = f"{command}-{heading.lower()}"
    return f"### {heading} {{ #{anchor} }}\n\n| option | meaning |\n|---|---|\n{rows}\n"


def _names(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    if not action.option_strings:
        return f"`{metavar or action.dest}`"
    value = metavar or ("|".join(map(str, action.choices)) if action.choices else "")
    takes = f" {value}" if value and action.nargs != 0 else ""
    names = [name for name in action.option_strings if not name.startswith("--no-") or name == action.option_strings[0]]
    return ", ".join(f"`{name}{takes if name == names[-1] else ''}`" for name in names).replace("|", "\\|")


def _help(action: argparse.Action) -> str:
    text = " ".join((action.help or "").split()).replace("%%", "%").replace("|", "\\|")
    return re.sub(r"(?<![`\w-])(--[a-z][\w-]*(?:=[A-Z]+)?)", r"`\1`", text)


def changelog(text: str) -> str:
    """The changelog of the repository, with links that lead to pages of the site, or to files of the repository."""
    return re.sub(r"\]\((?!https?:|docs/|#)", f"]({REPOSITORY}/blob/main/", text).replace("](docs/", "](")
