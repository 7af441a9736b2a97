"""The settings of a run: one frozen record that every stage may read.

The modules next to it and ``ctxlint.cli`` read them from files and the command line.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from ctxlint.named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ctxlint.config.python_requirement import PythonVersions
    from ctxlint.config.torch_versions import Releases, TorchVersions
    from ctxlint.fix import Applicability

ALL = "ALL"
"""The selector that means every rule."""

FORMATS = (
    "concise",
    "full",
    "grouped",
    "json",
    "json-lines",
    "github",
    "gitlab",
    "junit",
    "sarif",
    "pylint",
    "azure",
    "rdjson",
)
"""The values of ``output-format``."""

ALWAYS_ON = ("CTX901", "CTX902", "CTX903")
"""Rules that are on without being selected, because what cannot be read is not checked; ``ignore`` disables them."""

INTERNAL_ERROR = "CTX900"
"""The code of an internal error of ctxlint. It is not a rule, and cannot be disabled."""

_EXACT = 1000  # a name or a whole code is more specific than any prefix


class Selection(NamedTuple):
    """The rules that one source (a file, the command line) enables.

    Each entry is a selector: ``ALL``, a prefix of a code (``CTX2``), a code, or a rule's name. ``select`` is None if
    the source does not set it.
    """

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def turns_on(self, code: str, name: str, *, before: bool) -> bool:
        """Whether the rule is on after this selection, given whether it was on ``before``.

        The most specific matching selector decides; ``ignore`` wins a tie. A ``select`` starts from nothing.
        """
        wanted = specificity((*(self.select or ()), *self.extend_select), code, name)
        refused = specificity(self.ignore, code, name)
        if wanted is None and refused is None:
            return before and self.select is None
        return (-1 if wanted is None else wanted) > (-1 if refused is None else refused)


def specificity(selectors: Iterable[str], code: str, name: str) -> int | None:
    """How specifically the best of ``selectors`` matches a rule: None for no match; higher is more specific."""
    return max((fit for fit in (_fit(each, code, name) for each in selectors) if fit is not None), default=None)


def _fit(selector: str, code: str, name: str) -> int | None:
    if selector == ALL:
        return 0
    if selector in (code, name):
        return _EXACT
    return len(selector) if is_prefix(selector) and code.startswith(selector) else None


def is_prefix(selector: str) -> bool:
    """Whether ``selector`` has the shape of a code or of its beginning: ``CTX``, ``CTX2``, ``CTX203``."""
    return re.fullmatch(r"CTX\d{0,3}", selector) is not None


class PerFileIgnore(NamedTuple):
    """Rules that are off in the files that ``pattern`` matches, or, if ``negated``, in all others.

    A pattern without a slash matches any part of the path; one with a slash is relative to ``Settings.root``.
    """

    pattern: str
    selectors: tuple[str, ...]
    negated: bool = False


class Settings(NamedTuple):
    """All options of a run. The defaults are those of a project without configuration.

    ``select``, ``extend_select``, ``ignore`` and ``extend_ignore`` are those of the configuration file;
    ``command_line`` takes precedence over them. ``root`` is the folder that globs are relative to. ``target_torch`` is
    the configured range of torch releases, ``project_torch`` the project's own requirement (see
    ``ctxlint.config.torch_requirement``), ``project_python`` that on Python. ``line_length`` is that of the project's
    formatter (see ``ctxlint.config.line_length``). ``leave_noqa`` is for hosts that process ``# noqa`` themselves.
    ``no_cache`` is set only by the command line.
    """

    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_ignore: tuple[str, ...] = ()
    command_line: Selection = Selection()
    fixable: tuple[str, ...] = (ALL,)
    extend_fixable: tuple[str, ...] = ()
    unfixable: tuple[str, ...] = ()
    extend_safe_fixes: tuple[str, ...] = ()
    extend_unsafe_fixes: tuple[str, ...] = ()
    per_file_ignores: tuple[PerFileIgnore, ...] = ()
    extend_per_file_ignores: tuple[PerFileIgnore, ...] = ()
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    respect_gitignore: bool = True
    target_torch: str | None = None
    project_torch: tuple[str, ...] = ()
    project_python: tuple[str, ...] = ()
    line_length: int = 88
    extra_bases: tuple[str, ...] = ()
    ignore_noqa: bool = False
    leave_noqa: bool = False
    fix: bool = False
    unsafe_fixes: bool = False
    show_fixes: bool = False
    output_format: str = "full"
    required_version: str | None = None
    baseline: str | None = None
    cache_dir: str | None = None
    no_cache: bool = False
    root: str = "."
    config_file: str | None = None

    @property
    def exclude_globs(self) -> tuple[str, ...]:
        """``exclude``, or the default list."""
        from ctxlint.source.discover import DEFAULT_EXCLUDE

        return DEFAULT_EXCLUDE if self.exclude is None else self.exclude

    # Which rules

    @property
    def reports_unused_suppressions(self) -> bool:
        """Whether suppression comments that hide nothing are reported, so that the findings of all rules matter."""
        return self.is_selected("CTX910", "unused-suppression", default=False)

    def is_selected(self, code: str, name: str, *, default: bool) -> bool:
        """Whether a rule is on; ``default`` is used if no selector matches."""
        own = Selection(self.select, self.extend_select, (*self.ignore, *self.extend_ignore))
        layers = (own, self.command_line)
        on = default
        for layer in layers:
            if code in ALWAYS_ON:
                layer = layer._replace(select=None)  # noqa: PLW2901
            on = layer.turns_on(code, name, before=on)
        return on

    def is_ignored_in(self, path: str, code: str, name: str) -> bool:
        """Whether ``per-file-ignores`` turns a rule off in one file."""
        return any(
            each.negated is not matches(each.pattern, path, self.root)
            for each in (*self.per_file_ignores, *self.extend_per_file_ignores)
            if specificity(each.selectors, code, name) is not None
        )

    # Which fixes

    def is_fixable(self, code: str, name: str) -> bool:
        """Whether the rule's fixes may be applied at all."""
        wanted = specificity((*self.fixable, *self.extend_fixable), code, name)
        refused = specificity(self.unfixable, code, name)
        return wanted is not None and (refused is None or wanted > refused)

    def applicability(self, code: str, name: str, default: Applicability) -> Applicability:
        """The applicability of a fix of the rule, after ``extend-safe-fixes`` and ``extend-unsafe-fixes``."""
        from ctxlint.fix import Applicability

        if default is Applicability.DISPLAY:
            return default
        safer = specificity(self.extend_safe_fixes, code, name)
        less_safe = specificity(self.extend_unsafe_fixes, code, name)
        if less_safe is not None and (safer is None or less_safe >= safer):
            return Applicability.UNSAFE
        return default if safer is None else Applicability.SAFE

    # What the code supports

    @property
    def torch(self) -> TorchVersions:
        """The torch releases that the code has to support."""
        from ctxlint.config.torch_versions import TorchVersions, normal

        return TorchVersions(self.project_torch if self.target_torch is None else (normal(self.target_torch),))

    @property
    def python(self) -> PythonVersions:
        """The versions of Python that the project supports."""
        from ctxlint.config.python_requirement import PythonVersions

        return PythonVersions(self.project_python)

    def limited_to(self, releases: Releases) -> Settings:
        """The settings for code that only some torch releases run."""
        (specifier,) = self.torch.limited_to(releases).specifiers
        target = {"project_torch": (specifier,)} if self.target_torch is None else {"target_torch": specifier}
        return self._replace(**target)


def matches(pattern: str, path: str, root: str) -> bool:
    """Whether a glob matches ``path`` or a folder above it; see PerFileIgnore for what it is relative to."""
    from ctxlint.source.discover import is_excluded

    return is_excluded(path, [pattern], root)


def added(base: Settings, values: dict[str, Any]) -> dict[str, Any]:
    """``values`` for attributes of Settings, where those that extend are appended to those of ``base``."""
    return {key: (*getattr(base, key), *value) if key.startswith("extend_") else value for key, value in values.items()}


def per_file_ignores(pairs: Any, root: str) -> tuple[PerFileIgnore, ...]:
    """The records for pairs of glob and selectors, as in the configuration."""
    return tuple(
        PerFileIgnore(anchored(glob.lstrip("!"), root), tuple(selectors), negated=glob.startswith("!"))
        for glob, selectors in pairs
    )


def anchored(pattern: str, root: str) -> str:
    """``pattern`` independent of the current folder: absolute if it has a slash, otherwise unchanged."""
    from glob import escape

    from ctxlint.source.globs import with_slashes

    pattern = with_slashes(pattern)
    pattern = pattern.rstrip("/") or pattern
    if "/" not in pattern or os.path.isabs(pattern):
        return pattern
    return f"{escape(os.path.abspath(root).rstrip(os.sep))}/{pattern.removeprefix('./')}"
