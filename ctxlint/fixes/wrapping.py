"""One statement in the layout of ``ruff format`` and ``black``: on one line if it fits, otherwise split at a bracket.

For the code that fixes write: assignments, returns, calls, decorators and the heads of functions. Code that needs more
than a few rules, such as comments or multi-line strings, is not formatted.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from itertools import pairwise

from ctxlint.records import record

_PAIRS = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_PAIRS.values())
_SKIPPED = frozenset((tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER))
_OPERATORS = frozenset(
    ("+", "-", "*", "/", "//", "%", "@", "**", "<<", ">>", "&", "|", "^", "~", "<", ">", "<=", ">=", "==", "!=")
)
_OPERATORS |= {"if", "else", "and", "or", "not", "in", "is", "for", "lambda", "await", "yield"}
_NO_STATEMENT = frozenset(keyword.kwlist) - {
    "return",
    "def",
    "async",
    "None",
    "True",
    "False",
    "not",
    "await",
    "lambda",
}


class _Unknown(Exception):
    """A layout beyond the rules below."""


def laid_out(text: str, indentation: str, width: int) -> str | None:
    """The lines of a statement, indented; None if its layout is unknown, or does not fit.

    ``text`` is the statement on its lines, or the head of a function.
    """
    try:
        code = _flat(_tokens(text))
        lines = _wrapped(code, indentation, width)
    except (_Unknown, tokenize.TokenError, SyntaxError, IndexError):
        return None
    return "\n".join(lines) if all(len(line) <= width for line in lines) else None


# ---------------------------------------------------------------------------------------------------------------------
# On one line


@record
class _Code:
    """A piece of code on one line: its tokens, and the space before each of them."""

    tokens: tuple[str, ...]
    spaces: tuple[str, ...]

    def __str__(self) -> str:
        return "".join(space + token for space, token in zip(self.spaces, self.tokens)).strip()

    def __getitem__(self, part: slice) -> _Code:
        return _Code(self.tokens[part], self.spaces[part])

    def __len__(self) -> int:
        return len(self.tokens)

    def end(self, opening: int) -> int:
        """The index of the bracket that closes the one at ``opening``."""
        depth = 0
        for at in range(opening, len(self.tokens)):
            depth += (self.tokens[at] in _PAIRS) - (self.tokens[at] in _CLOSING)
            if depth == 0:
                return at
        raise _Unknown

    def outside(self) -> list[int]:
        """The indices of the tokens outside of brackets, including the outermost brackets themselves."""
        found, at = [], 0
        while at < len(self.tokens):
            found.append(at)
            if self.tokens[at] in _PAIRS:
                at = self.end(at)
                found.append(at)
            at += 1
        return found

    def items(self) -> list[_Code]:
        """The parts between commas; a trailing comma is ignored."""
        commas = [at for at in self.outside() if self.tokens[at] == ","]
        edges = [-1, *commas, len(self)]
        return [self[before + 1 : after] for before, after in pairwise(edges) if before + 1 < after]

    @property
    def is_list(self) -> bool:
        """Whether it has a comma outside of brackets."""
        return any(self.tokens[at] == "," for at in self.outside())

    @property
    def has_operator(self) -> bool:
        """Whether it has an operator outside of brackets."""
        return any(self.tokens[at] in _OPERATORS for at in self.outside())


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    """The tokens of a statement.

    Raises:
        _Unknown: It contains a comment, a backslash or a multi-line string.
    """
    found = []
    lines = text.split("\n")
    previous_row = 1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _SKIPPED:
            continue
        if token.type in (tokenize.COMMENT, tokenize.ERRORTOKEN) or token.start[0] != token.end[0]:
            raise _Unknown
        if token.start[0] != previous_row and lines[previous_row - 1].endswith("\\"):
            raise _Unknown
        previous_row = token.end[0]
        found.append(token)
    if not found or found[0].string in _NO_STATEMENT or any(each.string == ";" for each in found):
        raise _Unknown
    return found


def _flat(tokens: list[tokenize.TokenInfo]) -> _Code:
    """The statement on one line.

    Raises:
        _Unknown: A magic trailing comma keeps it on several lines.
    """
    strings, spaces = [tokens[0].string], [""]
    for before, token in pairwise(tokens):
        same = before.end[0] == token.start[0]
        joined = before.string in _PAIRS or token.string in _CLOSING or token.string in (".", ",")
        strings.append(token.string)
        spaces.append(" " * (token.start[1] - before.end[1]) if same else "" if joined else " ")
    code = _Code(tuple(strings), tuple(spaces))
    if any(one == "," and other in _CLOSING for one, other in pairwise(strings)) and not _are_one_tuples(code):
        raise _Unknown
    return code if tokens[0].start[0] == tokens[-1].end[0] else _without_parentheses(code)


def _are_one_tuples(code: _Code) -> bool:
    """Whether all commas before a closing bracket make tuples of one element."""
    for at, token in enumerate(code.tokens):
        if token in _PAIRS and code.tokens[code.end(at) - 1] == ",":
            called = at > 0 and (code.tokens[at - 1].isidentifier() or code.tokens[at - 1] in _CLOSING)
            if called or token != "(" or len(code[at + 1 : code.end(at)].items()) > 1:
                return False
    return True


def _without_parentheses(code: _Code) -> _Code:
    """The code without parentheses around the whole value that only allow line breaks."""
    start = _value(code)
    if 0 < start < len(code) and code.tokens[start] == "(" and code.end(start) == len(code) - 1:
        inside = code[start + 1 : len(code) - 1]
        if (
            len(inside)
            and not inside.is_list
            and not {"yield", ":=", "for"} & {inside.tokens[at] for at in inside.outside()}
        ):
            spaces = (code.spaces[start], *inside.spaces[1:])
            return _Code((*code.tokens[:start], *inside.tokens), (*code.spaces[:start], *spaces))
    return code


def _value(code: _Code) -> int:
    """The start of the value in a statement: after ``return`` or the last ``=``; 0 for an expression."""
    if code.tokens[0] == "return":
        return 1
    return max((at + 1 for at in code.outside() if code.tokens[at] == "="), default=0)


# ---------------------------------------------------------------------------------------------------------------------
# On several lines


def _wrapped(code: _Code, indentation: str, width: int) -> list[str]:
    line = f"{indentation}{code}"
    if len(line) <= width:
        return [line]
    if code.tokens[0] in ("def", "async"):
        return _head(code, indentation, width)
    start = 1 if code.tokens[0] == "@" else _value(code)
    prefix = str(code[:start])
    prefix = prefix if prefix in ("", "@") else f"{prefix} "
    value = code[start:]
    targets = code[: start - 1] if start > 1 and code.tokens[start - 1] == "=" else code[:0]
    if targets and not value.has_operator and not any(token in _PAIRS for token in value.tokens):
        return _long_targets(targets, value, indentation, width)
    return _split(prefix, value, indentation, width, statement=start > 0 and prefix != "@")


def _long_targets(targets: _Code, value: _Code, indentation: str, width: int) -> list[str]:
    """``a, b = value``, if the value cannot be split: it is put on a line of its own, or each target is."""
    if len(f"{indentation}{targets} = (") <= width:
        return [f"{indentation}{targets} = (", f"{_deeper(indentation)}{value}", f"{indentation})"]
    if targets.tokens[0] == "(" and targets.end(0) == len(targets) - 1:
        targets = targets[1:-1]
    if not targets.is_list:
        raise _Unknown
    return [*_exploded(f"{indentation}(", targets, indentation, width), f"{indentation}) = {value}"]


def _head(code: _Code, indentation: str, width: int) -> list[str]:
    """The head of a function: its parameters on one line, or on one each."""
    opening = code.tokens.index("(")
    closing = code.end(opening)
    if "[" in code.tokens[:opening]:
        raise _Unknown
    return _bracket(str(code[: opening + 1]), code[opening + 1 : closing], str(code[closing:]), indentation, width)


def _split(prefix: str, value: _Code, indentation: str, width: int, *, statement: bool) -> list[str]:
    """``prefix`` and a value that does not fit after it; ``statement``: it may get parentheses."""
    bracketed = value.tokens[0] in _PAIRS
    if value.is_list:
        if len(value.items()) == 2 and value.tokens[-1] != "," and (bracketed or value.tokens[-1] in _CLOSING):
            if bracketed:
                raise _Unknown
            return _at_bracket(prefix, value, indentation, width, last_only=True)
        return [*_exploded(f"{indentation}{prefix}(", value, indentation, width), f"{indentation})"]
    if bracketed and value.end(0) == len(value) - 1:
        inside = value[1:-1]
        if not inside.is_list or {"for", ":"} & {inside.tokens[at] for at in inside.outside()}:
            raise _Unknown
        first = f"{indentation}{prefix}{value.tokens[0]}"
        return [*_exploded(first, inside, indentation, width), f"{indentation}{value.tokens[-1]}"]
    if value.has_operator:
        body = f"{_deeper(indentation)}{value}"
        if statement and len(body) > width:
            return [f"{indentation}{prefix}(", *_conditional(value, _deeper(indentation)), f"{indentation})"]
        if not statement or bracketed or value.tokens[-1] in _CLOSING:
            raise _Unknown
        return [f"{indentation}{prefix}(", body, f"{indentation})"]
    return _at_bracket(prefix, value, indentation, width)


def _conditional(value: _Code, indentation: str) -> list[str]:
    """``a if b else c``, one part per line."""
    parts = [at for at in value.outside() if value.tokens[at] in ("if", "else")]
    if [value.tokens[at] for at in parts] != ["if", "else"] or "lambda" in value.tokens or value.is_list:
        raise _Unknown
    edges = [0, *parts, len(value)]
    return [f"{indentation}{value[start:end]}" for start, end in pairwise(edges)]


def _at_bracket(prefix: str, value: _Code, indentation: str, width: int, *, last_only: bool = False) -> list[str]:
    """A value split at the last bracket that fits on the first line, or at the very last."""
    every = [at for at in value.outside() if value.tokens[at] in _PAIRS]
    if not last_only and sum(value.tokens[at] == "(" and value.tokens[at - 2] == "." for at in every[1:]) > 1:
        raise _Unknown  # a chain of calls, one per line
    brackets = [at for at in every if value.end(at) > at + 1]
    for opening in reversed(brackets[-1:] if last_only else brackets):
        first = f"{prefix}{value[: opening + 1]}"
        closing = value.end(opening)
        if opening > 0 and len(indentation + first) <= width:
            return _bracket(first, value[opening + 1 : closing], str(value[closing:]), indentation, width)
    raise _Unknown


def _bracket(first: str, inside: _Code, last: str, indentation: str, width: int) -> list[str]:
    """The content of a bracket, on one line of its own or on one for each element."""
    is_head = first.startswith(("def ", "async "))
    body = f"{_deeper(indentation)}{inside}"
    if len(body) <= width and (inside.is_list or not is_head):
        return [f"{indentation}{first}", body, f"{indentation}{last}"]
    if first.endswith("[") or (not is_head and any(inside.tokens[at] in ("for", ":") for at in inside.outside())):
        raise _Unknown
    if not inside.is_list and not is_head:
        item = _named(inside, _deeper(indentation), width)
        return [f"{indentation}{first}", *item, f"{indentation}{last}"]
    return [*_exploded(f"{indentation}{first}", inside, indentation, width), f"{indentation}{last}"]


def _named(item: _Code, indentation: str, width: int) -> list[str]:
    """An argument that does not fit on one line, with its keyword."""
    equals = next((at + 1 for at in item.outside() if item.tokens[at] == "="), 0)
    return _split(str(item[:equals]), item[equals:], indentation, width, statement=False)


def _exploded(first: str, inside: _Code, indentation: str, width: int) -> list[str]:
    """One element per line, each with a comma."""
    lines = [first]
    deeper = _deeper(indentation)
    for item in inside.items():
        line = f"{deeper}{item},"
        if len(line) <= width:
            lines.append(line)
            continue
        wrapped = _named(item, deeper, width)
        lines += [*wrapped[:-1], f"{wrapped[-1]},"]
    return lines


def _deeper(indentation: str) -> str:
    return indentation + ("\t" if indentation.endswith("\t") else "    ")
