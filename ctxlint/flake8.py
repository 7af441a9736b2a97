"""The flake8 plugin: the findings of ``ctxlint check``, selected, suppressed and shown by flake8.

flake8 decides what is reported, by its own ``--select``, ``--ignore``, ``per-file-ignores``, ``exclude`` and ``#
noqa``. So every rule runs here and ``# noqa`` has no effect; only ``# ctxlint: ignore[...]`` and ``# ctxlint: noqa``,
which flake8 does not support, do. flake8 reads no ``pyproject.toml``, so the plugin does not either: the settings of
rules are options of flake8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ctxlint.config.settings import Settings
from ctxlint.rule_names import opt_in_codes
from ctxlint.version import __version__

if TYPE_CHECKING:
    import ast
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from ctxlint.diagnostic import Diagnostic


class Plugin:
    """flake8 creates one instance for each file that Python can parse."""

    name = "ctxlint"
    version = __version__
    settings: ClassVar[Settings] = Settings(select=("ALL",), leave_noqa=True)

    def __init__(self, tree: ast.AST, lines: Sequence[str], filename: str) -> None:
        """``lines`` are the file's, without byte order mark; flake8 passes ``tree`` to plugins for whole files."""
        del tree
        self._text = "".join(lines)
        self._filename = filename

    @classmethod
    def add_options(cls, manager: Any) -> None:
        """Register the rules that are off by default, and the options."""
        manager.extend_default_ignore(list(opt_in_codes()))
        manager.add_option(
            "--ctxlint-target-torch",
            metavar="VERSIONS",
            type=_torch,
            default=None,
            parse_from_config=True,
            help="The versions of torch that the code has to run on, such as >=2.1,<2.7; 2.4 means >=2.4, the default",
        )
        manager.add_option(
            "--ctxlint-extra-bases",
            metavar="NAMES",
            default="",
            comma_separated_list=True,
            parse_from_config=True,
            help="Classes of other packages that descend from torch.autograd.Function, by their dotted names",
        )

    @classmethod
    def parse_options(cls, options: Namespace) -> None:
        """Convert flake8's options to the settings for all files."""
        cls.settings = Settings(
            select=("ALL",),
            ignore=tuple(_unselected(options)),
            target_torch=options.ctxlint_target_torch,
            extra_bases=tuple(options.ctxlint_extra_bases or ()),
            ignore_noqa=options.disable_noqa,
            leave_noqa=True,
        )

    def run(self) -> Iterator[tuple[int, int, str, type[Plugin]]]:
        """Line (1-based), column (0-based), ``CODE message`` and this class, for each finding. Raises nothing."""
        from ctxlint.report.visible import one_line

        for diagnostic in self._findings():
            line, column = diagnostic.span.start
            yield line, column - 1, f"{diagnostic.code} {one_line(diagnostic.message)}", type(self)

    def _findings(self) -> list[Diagnostic]:
        """The findings of all rules. An exception would end the whole run of flake8, so it becomes a finding."""
        from ctxlint.result import describe, internal_error
        from ctxlint.run.in_project import surroundings_of
        from ctxlint.run.lint_file import lint_source
        from ctxlint.source.source import Source

        try:
            around = surroundings_of(self._filename, self.settings)
            return lint_source(Source(self._filename, self._text), self.settings, around)
        except Exception as error:  # noqa: BLE001
            return [internal_error(self._filename, describe("The plugin", error))]


def _unselected(options: Namespace) -> Iterator[str]:
    """The rules that are off by default and that no ``--select`` or ``--extend-select`` names exactly.

    A user's ``--ignore`` replaces flake8's whole default list, which would enable all of them.
    """
    asked = (*(options.select or ()), *(options.extend_select or ()))
    return (code for code in opt_in_codes() if code not in asked)


def _torch(text: str) -> str:
    """Versions of torch.

    Raises:
        ArgumentTypeError: They are invalid; flake8 turns it into a message.
    """
    from ctxlint.config.torch_versions import read_target

    try:
        read_target(text)
    except ValueError as error:
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(str(error)) from None
    return text
