"""ctxlint checks custom ``torch.autograd.Function`` classes for violations of autograd's contract.

The Python API is ``lint_source``, ``lint_paths``, ``lint_project`` and ``fix_source``, with the records that they take
and return. They are imported on first use, so that ``import ctxlint`` costs next to nothing.
"""

from ctxlint.version import __version__

TYPE_CHECKING = False  # not from `typing`: the folder in which `python -m ctxlint` starts may have one of its own
if TYPE_CHECKING:
    from ctxlint.api import FixedSource, fix_source, lint_paths, lint_project, lint_source
    from ctxlint.config.project_files import ConfigurationError
    from ctxlint.config.settings import Settings
    from ctxlint.diagnostic import Diagnostic
    from ctxlint.fix import Applicability, Edit, Fix
    from ctxlint.one_project import RECORD_FIELDS

__all__ = [
    "RECORD_FIELDS",
    "Applicability",
    "ConfigurationError",
    "Diagnostic",
    "Edit",
    "Fix",
    "FixedSource",
    "Settings",
    "__version__",
    "fix_source",
    "lint_paths",
    "lint_project",
    "lint_source",
]

_HOMES = {
    "Applicability": "ctxlint.fix",
    "ConfigurationError": "ctxlint.config.project_files",
    "Diagnostic": "ctxlint.diagnostic",
    "Edit": "ctxlint.fix",
    "Fix": "ctxlint.fix",
    "FixedSource": "ctxlint.api",
    "RECORD_FIELDS": "ctxlint.one_project",
    "Settings": "ctxlint.config.settings",
    "fix_source": "ctxlint.api",
    "lint_paths": "ctxlint.api",
    "lint_project": "ctxlint.api",
    "lint_source": "ctxlint.api",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
