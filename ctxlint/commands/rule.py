"""``ctxlint rule``: what a rule finds, what torch does about it, and what to write instead."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ctxlint.commands.argument_parser import Parser
from ctxlint.commands.output import write
from ctxlint.config.options import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctxlint.rules.base import Rule


def run(arguments: Sequence[str]) -> int:
    """Print the page of one rule or of all, or a list of them."""
    options_parser = parser()
    options = options_parser.parse_args(arguments)
    if options.rule is not None and options.all:
        options_parser.error("pass a rule or --all")

    from ctxlint.rules import all_rules

    rules = all_rules()
    if options.rule is not None:
        wanted = options.rule.lower()
        rules = tuple(rule for rule in rules if wanted in (rule.code.lower(), rule.code.removeprefix("CTX"), rule.name))
    if not rules:
        known = [label for rule in all_rules() for label in (rule.code, rule.name)]
        options_parser.error(f"unknown rule `{options.rule}`{nearest(options.rule, known)}")
    if options.output_format == "json":
        import json

        records = [_record(rule) for rule in rules]
        text = json.dumps(records if options.rule is None else records[0], indent=2, ensure_ascii=False)
        write([text, "\n"], sys.stdout, encoding="utf-8")
        return 0
    if options.rule is None and not options.all:
        write(_list(rules), sys.stdout)
        return 0
    from ctxlint.rules.page import page_of

    write(["\n\n".join(page_of(rule) for rule in rules)], sys.stdout)
    return 0


def parser() -> Parser:
    """The parser of ``ctxlint rule``."""
    made = Parser(
        prog="ctxlint rule",
        description="List all rules, or explain one: what it reports, what torch does, what to write instead.",
    )
    made.add_argument("rule", nargs="?", metavar="CODE", help="the code or the name of a rule")
    made.add_argument("--all", action="store_true", help="explain all rules")
    made.add_argument("--output-format", choices=("text", "json"), default="text", help="default: text")
    return made


def _list(rules: Sequence[Rule[Any]]) -> Iterator[str]:
    """A line for each rule: code, name, whether it is off by default, and what it finds."""
    width = max(len(rule.name) for rule in rules)
    for rule in rules:
        yield f"{rule.code}  {rule.name:<{width}}  {_finds(rule)}{'' if rule.default else ' (off by default)'}\n"


def _finds(rule: Rule[Any]) -> str:
    from ctxlint.rules.page import summary_of

    return summary_of(rule).partition(": ")[0].removeprefix("Reports ").removesuffix(".")


def _record(rule: Rule[Any]) -> dict[str, object]:
    from ctxlint.rules.page import explanation_of, summary_of

    return {
        "name": rule.name,
        "code": rule.code,
        "category": rule.category.value,
        "default": rule.default,
        "since": rule.since,
        "summary": summary_of(rule),
        "fix_availability": rule.fix.value,
        "explanation": explanation_of(rule),
    }
