"""The parser of every command: ``argparse``, with suggestions for misspelt options."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence


class Parser(argparse.ArgumentParser):
    """A parser that takes no abbreviations, and names the option that a misspelt one is close to."""

    def __init__(self, **settings: Any) -> None:
        """As ``argparse.ArgumentParser``."""
        super().__init__(allow_abbrev=False, **settings)

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """The options; exits with 2 for an argument that is unknown."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.refuse(unknown)
        return options

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Exit with 2 for arguments that are unknown."""
        from ctxlint.config.options import nearest

        option = next((each.partition("=")[0] for each in unknown if each.startswith("-")), "")
        self.error(f"unrecognized arguments: {' '.join(unknown)}{nearest(option, self.options) if option else ''}")

    @property
    def options(self) -> dict[str, argparse.Action]:
        """What each option does, by its spelling."""
        return self._option_string_actions
