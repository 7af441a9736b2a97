"""The parser of every command: ``argparse``, with suggestions for misspelt options."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence


setattr(argparse, "_", str)  # noqa: B010  # Python has no translations; looking for them takes 1.5 ms of every run


class Parser(argparse.ArgumentParser):
    """A parser that accepts no abbreviations, and suggests the option that a misspelt one is similar to."""

    def __init__(self, **settings: Any) -> None:
        """Like ``argparse.ArgumentParser``."""
        super().__init__(allow_abbrev=False, **settings)

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """The options; exits with 2 for an unknown argument."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.refuse(unknown)
        return options

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Exit with 2 for unknown arguments."""
        from ctxlint.config.options import nearest

        option = next((each.partition("=")[0] for each in unknown if each.startswith("-")), "")
        self.error(f"unrecognized arguments: {' '.join(unknown)}{nearest(option, self.options) if option else ''}")

    @property
    def options(self) -> dict[str, argparse.Action]:
        """The action of each option, by its spelling."""
        return self._option_string_actions
