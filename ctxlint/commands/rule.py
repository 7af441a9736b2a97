"""``ctxlint rule``: what a rule finds, what torch does about it, and what to write instead."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from ctxlint.commands.output import write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxlint.rules.base import Rule


def run(arguments: Sequence[str]) -> int:
    """Print the page of one rule or of all."""
    asked = parser()
    options = asked.parse_args(arguments)
    if (options.rule is None) is not options.all:
        asked.error("give a rule, or --all")

    from ctxlint.rules import all_rules

    rules = all_rules()
    if not options.all:
        rules = tuple(rule for rule in rules if options.rule.lower() in (rule.code.lower(), rule.name))
    if not rules and not options.all:
        from ctxlint.options import nearest

        known = [label for rule in all_rules() for label in (rule.code, rule.name)]
        asked.error(f"unknown rule `{options.rule}`{nearest(options.rule, known)}")
    if options.output_format == "json":
        import json

        records = [_record(rule) for rule in rules]
        text = json.dumps(records if options.all else records[0], indent=2, ensure_ascii=False)
        write([text, "\n"], sys.stdout, encoding="utf-8")
        return 0
    from ctxlint.rules.page import page_of

    write(["\n\n".join(page_of(rule) for rule in rules)], sys.stdout)
    return 0


def parser() -> argparse.ArgumentParser:
    """The parser of ``ctxlint rule``."""
    made = argparse.ArgumentParser(
        prog="ctxlint rule",
        description="Explain a rule: what it finds, what torch does about it, what to write instead.",
        allow_abbrev=False,
    )
    made.add_argument("rule", nargs="?", metavar="CODE", help="the code or the name of a rule")
    made.add_argument("--all", action="store_true", help="explain all rules")
    made.add_argument("--output-format", choices=("text", "json"), default="text", help="default: text")
    return made


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
