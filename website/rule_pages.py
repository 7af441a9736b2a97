"""A page for each rule, from its docstring, and the index of all rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt

from ctxlint.rules.base import Category, FixAvailability
from ctxlint.rules.page import EXCEPT_IN_VIEW, explanation_of, summary_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ctxlint.rules.base import Rule

_TITLES = {
    "CTX1": "Methods and signatures",
    "CTX2": "Gradients",
    "CTX3": "Saved tensors and ctx",
    "CTX4": "In-place operations",
    "CTX5": "Double backward and layout",
    "CTX6": "Deprecated APIs",
    "CTX7": "Calls of a Function",
    "CTX8": "Custom operators",
    "CTX9": "The run itself",
}
_FIX = {FixAvailability.ALWAYS: "always", FixAvailability.SOMETIMES: "sometimes", FixAvailability.NEVER: "no"}
_FIX_STATE = {
    FixAvailability.ALWAYS: "always available",
    FixAvailability.SOMETIMES: "sometimes available",
    FixAvailability.NEVER: "not available",
}
_INLINE = MarkdownIt()
_VERBATIM = re.compile(r"(```.*?```|`[^`]*`|\[[^]]*\]\([^)]*\))", re.DOTALL)
_CODE = re.compile(r"\bCTX\d{3}\b")


@dataclass(frozen=True)
class Group:
    """The rules that share the beginning of their code."""

    prefix: str
    title: str
    rules: tuple[Rule[Any], ...]


def groups(rules: Iterable[Rule[Any]]) -> tuple[Group, ...]:
    """The rules by topic, in order of code."""
    found: dict[str, list[Rule[Any]]] = {}
    for rule in rules:
        found.setdefault(rule.code[:4], []).append(rule)
    return tuple(Group(prefix, _TITLES[prefix], tuple(members)) for prefix, members in sorted(found.items()))


def rule_page(rule: Rule[Any]) -> str:
    """The page of one rule: its docstring below a title and what kind of rule it is."""
    enable = "" if rule.default else f'; enable it with `extend-select = ["{rule.code}"]`'
    enable = f"{EXCEPT_IN_VIEW * rule.default_in_view}{enable}"
    return (
        f'---\ntitle: "{rule.code} {rule.name}"\n---\n\n'
        f"# {rule.name} ({rule.code})\n\n"
        f"**[{rule.category.value}](index.md#categories)** · {'on' if rule.default else 'off'} by default{enable} · "
        f"fix {_FIX_STATE[rule.fix]} · since {rule.since}\n\n"
        f"{_linked(explanation_of(rule), rule.code)}\n\n"
        "## Suppress it\n\n"
        "On one line, with a reason:\n\n"
        f"```py\n...  # ctxlint: ignore[{rule.name}] why this is right here\n```\n\n"
        f'In a project: `ignore = ["{rule.code}"]` in the [configuration](../configuration.md).\n'
    )


def _linked(text: str, own: str) -> str:
    """``text`` with the codes of other rules as links to their pages; code and links are unchanged."""
    parts = _VERBATIM.split(text)
    parts[::2] = [
        _CODE.sub(lambda found: found[0] if found[0] == own else f"[{found[0]}]({found[0]}.md)", each)
        for each in parts[::2]
    ]
    return "".join(parts)


def finds(rule: Rule[Any]) -> str:
    """What a rule finds, for a cell of a table: its summary up to the first colon, without ``Reports``."""
    return summary_of(rule).partition(": ")[0].removeprefix("Reports ").removesuffix(".")


def rule_index(rules: Sequence[Rule[Any]]) -> str:
    """All rules in one table per topic, with filters that a small script puts to work."""
    kinds = "\n".join(f"- **{each.value}**: {_meaning(each)}" for each in Category)
    tables = "\n\n".join(_table(group) for group in groups(rules))
    on = sum(rule.default for rule in rules)
    return (
        "---\ntitle: Rules\n---\n\n# Rules\n\n"
        f"ctxlint has {len(rules)} rules; {on} are on by default. `ctxlint rule CTX203` prints a page "
        "in the terminal. A rule's code and the address of its page never change.\n\n"
        f"{_filters()}\n\n{tables}\n\n"
        f"## Categories\n\n{kinds}\n"
    )


def _meaning(category: Category) -> str:
    return {
        Category.CORRECTNESS: "the code raises an exception, or computes wrong gradients.",
        Category.SUSPICIOUS: "the code works in the usual case, and fails or misleads in another.",
        Category.PERFORMANCE: "the code wastes memory or time.",
        Category.MODERNIZE: "the code uses an API for which there is a newer one.",
        Category.PEDANTIC: "the code is legal; some projects want it otherwise. Off by default.",
    }[category]


def _filters() -> str:
    def select(name: str, label: str, values: Iterable[str]) -> str:
        options = "".join(f'<option value="{value}">{value}</option>' for value in values)
        return f'<label>{label} <select name="{name}"><option value="">any</option>{options}</select></label>'

    return (
        '<form class="rule-filters" id="rule-filters">'
        + select("category", "Category", [each.value for each in Category])
        + select("default", "Default", ["on", "off"])
        + select("fix", "Fix", ["sometimes", "no"])
        + '<output id="rule-count"></output></form>'
    )


def _table(group: Group) -> str:
    rows = "\n".join(_row(rule) for rule in group.rules)
    return (
        f"## {group.title} ({group.prefix}) {{ #{group.prefix.lower()} }}\n\n"
        '<div class="rules"><table><thead><tr><th>Rule</th><th>Finds</th><th>Category</th><th>Default</th><th>Fix</th>'
        f"</tr></thead><tbody>\n{rows}\n</tbody></table></div>"
    )


def _row(rule: Rule[Any]) -> str:
    default = "on" if rule.default else "off"
    cells = (
        f'<a href="{rule.code}/">{rule.code}</a><br>{escape(rule.name)}',
        _INLINE.renderInline(finds(rule)),
        rule.category.value,
        default,
        _FIX[rule.fix],
    )
    data = f'data-category="{rule.category.value}" data-default="{default}" data-fix="{_FIX[rule.fix]}"'
    return f"<tr {data}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
