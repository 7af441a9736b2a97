"""``ctxlint config``: the options of ``[tool.ctxlint]``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ctxlint.commands.argument_parser import Parser
from ctxlint.commands.output import write
from ctxlint.config.json_schema import json_schema
from ctxlint.config.options import BY_KEY, OPTIONS, nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctxlint.config.options import Option


def run(arguments: Sequence[str]) -> int:
    """Print the names of all options, or the description of one of them."""
    options_parser = parser()
    options = options_parser.parse_args(arguments)
    if options.schema:
        import json

        print(json.dumps(json_schema(), indent=2))
        return 0

    if options.option is not None and options.option not in BY_KEY:
        options_parser.error(f"unknown option `{options.option}`{nearest(options.option, BY_KEY)}")
    chosen = OPTIONS if options.option is None else (BY_KEY[options.option],)
    if options.output_format == "json":
        import json

        text = json.dumps({option.key: _record(option) for option in chosen}, indent=2, ensure_ascii=False)
        write([text, "\n"], sys.stdout, encoding="utf-8")
    elif options.option is None:
        write([f"{option.key}\n" for option in chosen], sys.stdout)
    else:
        write([_description(chosen[0]), "\n"], sys.stdout)
    return 0


def parser() -> Parser:
    """The parser of ``ctxlint config``."""
    made = Parser(
        prog="ctxlint config",
        description="List the options of the configuration file, or describe one.",
    )
    made.add_argument("option", nargs="?", metavar="OPTION", help="the option to describe")
    made.add_argument("--output-format", choices=("text", "json"), default="text", help="default: text")
    made.add_argument("--schema", action="store_true", help="print the JSON Schema of the configuration, for editors")
    return made


def _description(option: Option) -> str:
    return (
        f"{option.text}\n\nDefault value: {option.default}\nType: {option.type}\n"
        f"Example usage:\n```toml\n[tool.ctxlint]\n{option.example}\n```"
    )


def _record(option: Option) -> dict[str, str]:
    return {"doc": option.text, "default": option.default, "value_type": option.type, "example": option.example}
