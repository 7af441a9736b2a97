"""Regular expressions that are compiled when they are first used: there are many, and a short run uses few of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from re import compile as pattern
else:

    class pattern:  # noqa: N801
        """What ``re.compile`` returns for the same arguments."""

        def __init__(self, *arguments: Any) -> None:
            """The arguments."""
            self._arguments = arguments

        def __getattr__(self, name: str) -> Any:
            found = getattr(re.compile(*self._arguments), name)
            setattr(self, name, found)
            return found


__all__ = ["pattern"]
