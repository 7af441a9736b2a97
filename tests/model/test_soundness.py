"""Soundness: random programs are run, and what they return must be among what the model expects."""

from __future__ import annotations

import os
import random
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from ctxlint.model.interpreter.values import Tri, is_none
from tests.model.models import function

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctxlint.model.function import FunctionClass, Returned

NAMES = ("a", "b", "c")
FLAGS = 4
TURNS = 12

# `SOUNDNESS_PROGRAMS=100000 pytest tests/model/test_soundness.py` tries that many.
PROGRAMS = int(os.environ.get("SOUNDNESS_PROGRAMS", "400"))
START = int(os.environ.get("SOUNDNESS_START", "0"))

# ---------------------------------------------------------------------------------------------------------------------
# Programs


class Writer:
    """Writes programs at random: the body of a backward method that works on three names."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def program(self) -> str:
        """The body of a backward method, which ends with a return."""
        lines = [f"{name} = {self.display()}" for name in NAMES]
        lines += self.block(depth=3, in_loop=False)
        return "\n".join([*lines, f"return {self.expression()}"])

    def name(self) -> str:
        return self.random.choice(NAMES)

    def flag(self) -> int:
        return self.random.randrange(FLAGS)

    def display(self) -> str:
        return self.random.choice(
            ["()", "(None,)", "(grad, None)", "[]", "[grad]", "[None, grad]", "(None,) * 3", "[None] * 2"]
        )

    def expression(self, depth: int = 2) -> str:
        """Tuples, lists, what is done with them, and None."""
        choice = self.random.random()
        if depth == 0 or choice < 0.3:
            return self.name() if choice < 0.6 else self.random.choice(["None", "grad", self.display()])
        inner, name, other = self.expression(depth - 1), self.name(), self.name()
        return self.random.choice(
            [
                f"{name} + {other}",
                f"{name} + {inner}",
                f"{name} * 2",
                f"tuple({name})",
                f"list({name})",
                f"tuple({inner})",
                f"list({inner})",
                f"(*{name}, grad)",
                f"[*{name}, *{other}]",
                f"({inner}, {name})",
                f"{name}[{self.random.choice(['0', '-1', ':1', '1:', '-2:', '::2'])}]",
                f"({inner} if ctx.f{self.flag()} else {self.expression(depth - 1)})",
                f"({name} or {inner})",
                f"({name} and {inner})",
                f"[each for each in {name}]",
                f"tuple(None for each in {name})",
                f"[each for each in {name} if each is not None]",
                f"({name} := {inner})",
                f"[({name} := each) for each in {other}]",
                f"two({inner})",
                f"some({inner}, {self.random.choice(['True', 'False', f'ctx.f{self.flag()}', 'flag=True', 'grad'])})",
            ]
        )

    def statement(self) -> str:
        """A simple statement."""
        name, other, value = self.name(), self.name(), self.expression()
        return self.random.choice(
            [
                f"{name} = {value}",
                f"{name} = {self.display()}",
                f"{name} = {other}",
                f"{name} = {other} = {value}",
                f"{name}, {other} = {other}, {value}",
                f"{name}, *{other} = {self.random.choice([value, other])}",
                f"{name} += {self.random.choice([value, other])}",
                f"{name} *= 2",
                f"{name}.append({value})",
                f"{name}.extend({self.random.choice([value, other])})",
                f"{name}.insert({self.random.choice(['0', '1', '-1'])}, {value})",
                f"{name}.{self.random.choice(['pop', 'clear', 'reverse', 'sort'])}()",
                f"{name}[{self.random.choice(['0', '-1', '1', ':1'])}] = {value}",
                f"del {name}[{self.random.choice(['0', '-1', ':1'])}]",
                f"{name}[0].append({value})",
                f"ctx.kept = {name}",
                f"ctx.kept.append({value})",
                f"{name} = ctx.kept",
                f"{name} = {other}.copy()",
                f"grow({name})",
                f"ctx.may_raise({self.flag()})",
                f"[{name}.append(each) for each in tuple({other})]",
                f"[({name} := each) for each in {other}]",
                "helper()",
                f"assert {name} is not None",
            ]
        )

    def block(self, depth: int, in_loop: bool) -> list[str]:
        """A few statements, some of them compound; most that would raise a TypeError are skipped."""
        lines: list[str] = []
        for _ in range(self.random.randint(1, 4)):
            if depth and self.random.random() < 0.4:
                lines += self.compound(depth, in_loop)
            elif self.random.random() < 0.5:
                lines += [
                    "try:",
                    f"    {self.statement()}",
                    "except (TypeError, AttributeError, IndexError):",
                    "    pass",
                ]
            else:
                lines.append(self.statement())
        if in_loop and self.random.random() < 0.3:
            lines += [f"if ctx.f{self.flag()}:", "    " + self.random.choice(["break", "continue"])]
        if self.random.random() < 0.15:
            lines.append(f"return {self.expression()}")
        return lines

    def compound(self, depth: int, in_loop: bool) -> list[str]:
        """One statement with blocks."""

        def block(loop: bool = in_loop) -> list[str]:
            return ["    " + line for line in self.block(depth - 1, loop)]

        name, flag = self.name(), self.flag()
        test = self.random.choice([f"{name} is None", f"{name} is not None", f"{name} is None or ctx.f{flag}", name])
        iterated = self.random.choice([f"range(ctx.n{flag})", name, "(None, grad)"])
        change = self.random.choice([f"{name}.append(None)", f"{name} = (None, None)"])
        kinds: list[Callable[[], list[str]]] = [
            lambda: [f"if ctx.f{flag}:", *block()],
            lambda: [f"if ctx.f{flag}:", *block(), "else:", *block()],
            lambda: [f"if ctx.f{flag}:", *block(), f"elif ctx.f{self.flag()}:", *block()],
            lambda: [f"if {test}:", *block(), "else:", *block()],
            lambda: [f"for each in {iterated}:", "    ctx.tick()", *block(loop=True)],
            lambda: [f"for {name} in range(ctx.n{flag}):", *block(loop=True), "else:", *block()],
            lambda: [f"while ctx.more({flag}):", *block(loop=True)],
            lambda: [f"while {name}:", "    ctx.tick()", *block(loop=True), f"    {name} = None"],
            lambda: ["while True:", "    ctx.tick()", *block(loop=True), "    break"],
            lambda: ["try:", *block(), "except (ValueError, TypeError, IndexError, AttributeError):", *block()],
            lambda: ["try:", *block(), "except ValueError:", *block(), "else:", *block(), "finally:", *block()],
            lambda: ["try:", *block(), "finally:", *block()],
            lambda: ["with suppress(ValueError, TypeError, IndexError, AttributeError):", *block()],
            lambda: ["def helper():", f"    nonlocal {name}", f"    {change}"],
        ]
        return self.random.choice(kinds)()


BEFORE = """
from contextlib import suppress

def two(value):
    return value, None

def some(value, flag=False):
    if flag is True:
        return (value, None, None)
    if flag:
        return [value]
    return value

def grow(value):
    value.append(None)

def helper():
    pass
"""


# ---------------------------------------------------------------------------------------------------------------------
# Runs


@dataclass
class Context:
    """A ctx whose flags decide which way a program goes."""

    choices: tuple[bool, ...]
    counts: tuple[int, ...]
    kept: list[Any] = field(default_factory=list)
    turns: dict[int, int] = field(default_factory=dict)
    returned_at: int = 0

    def __getattr__(self, name: str) -> Any:
        if name[0] == "f" and name[1:].isdigit():
            return self.choices[int(name[1:])]
        if name[0] == "n" and name[1:].isdigit():
            return self.counts[int(name[1:])]
        raise AttributeError(name)

    def more(self, number: int) -> bool:
        """Whether a while loop goes on."""
        self.turns[number] = self.turns.get(number, 0) + 1
        return self.turns[number] <= self.counts[number]

    def may_raise(self, number: int) -> None:
        """Raise where the flag says so."""
        if self.choices[number]:
            raise ValueError(number)

    def tick(self) -> None:
        """Stop programs that do not terminate."""
        self.turns[-1] = self.turns.get(-1, 0) + 1
        if self.turns[-1] > TURNS:
            raise TimeoutError

    def leave(self, line: int, value: Any) -> Any:
        """Note which return statement runs."""
        self.returned_at = line
        return value


def run(body: str, ctx: Context) -> Any:
    """Run a program; return its result and the line of its return statement."""
    lines = []
    for number, line in enumerate(body.split("\n"), 1):
        before, returns, value = line.partition("return ")
        lines.append(f"{before}return ctx.leave({number}, ({value}))" if returns and not before.strip() else line)
    names: dict[str, Any] = {}
    exec(BEFORE + "\ndef backward(ctx, grad):\n" + textwrap.indent("\n".join(lines), "    "), names)
    return names["backward"](ctx, object())


def expected_at(fn: FunctionClass, body: str, line: int) -> list[Returned]:
    """What the model expects of the return statement at a line of the body."""
    first = next(number for number in range(1, fn.source.line_count) if "def backward" in fn.source.line(number))
    assert fn.source.line(first + line).strip() == body.split("\n")[line - 1].strip()
    return [returned for returned in fn.gradients if fn.start(returned.node).line == first + line]


def fits(returned: Returned, result: Any) -> bool:
    """Whether a result is described by an alternative."""
    if not returned.known:
        return True
    elements = list(result) if isinstance(result, tuple) else [result]
    if returned.count is not None and returned.count != len(elements):
        return False
    if len(elements) < returned.minimum:
        return False
    for slot, element in zip(returned.slots, elements):
        if slot.starred:
            break
        answer = is_none(slot.value)
        if answer is not Tri.UNKNOWN and (answer is Tri.YES) is not (element is None):
            return False
    return True


@pytest.mark.parametrize("first", range(START, START + PROGRAMS, 100))
def test_what_runs_is_what_the_model_expects(first: int) -> None:
    for seed in range(first, first + 100):
        check(seed)


def check(seed: int) -> None:
    body = Writer(seed).program()
    try:
        compile("def f(ctx, grad):\n" + textwrap.indent(body, "    "), "program", "exec")
    except SyntaxError:  # `nonlocal` for a name of the comprehension, and the like
        return
    fn = function(backward=f"grad:\n{body}", before=BEFORE)
    assert fn.backward is not None
    choose = random.Random(seed)
    for _ in range(8):
        choices = tuple(choose.random() < 0.5 for _ in range(FLAGS))
        counts = tuple(choose.randrange(4) for _ in range(FLAGS))
        ctx = Context(choices, counts)
        try:
            result = run(body, ctx)
        except Exception:  # noqa: BLE001  (a program that raises returns nothing)
            continue
        told = f"seed {seed}, {choices}, {counts}\n{body}\n\n{result!r} at line {ctx.returned_at}"
        if ctx.returned_at == 0:
            assert fn.backward.facts.falls_through is not Tri.NO, told
        else:
            assert any(fits(each, result) for each in expected_at(fn, body, ctx.returned_at)), told
