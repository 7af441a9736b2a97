"""``--fix`` changes only the lines of the finding, whatever the layout of the class.

Random layouts: indentation, line endings, comments, blank lines, decorators, one-line bodies, semicolons, continuations.
"""

from __future__ import annotations

import ast
import difflib

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxlint.config.settings import Selection, Settings
from tests.linting import apply_fixes, lint

COMMENTS = st.sampled_from(["", "  # noted", "  # émoji 🙂", "  # type: ignore"])
BLANKS = st.sampled_from(["", "\n", "\n# between\n", "\n\n"])


@st.composite
def classes(draw: st.DrawFn) -> tuple[str, str]:
    """A class that lacks one ``@staticmethod`` and one ``None``, and its line ending."""
    indent = draw(st.sampled_from(["    ", "  ", "\t"]))
    inner = indent * 2

    def note() -> str:
        return draw(COMMENTS)

    def gap() -> str:
        return draw(BLANKS).replace("\n#", f"\n{indent}#")

    decorator = draw(st.sampled_from(["", f"{indent}@torch.no_grad(){note()}\n"]))
    between = draw(st.sampled_from(["", f"{indent}# why it is as it is\n"])) if decorator else ""
    if draw(st.booleans()) and not decorator:
        forward = f"{indent}def forward(ctx, x, n: int): ctx.n = n; return torch.mul(x, n){note()}\n"
    else:
        signature = draw(st.sampled_from(["ctx, x, n: int", f"\n{inner}ctx,\n{inner}x,\n{inner}n: int,\n{indent}"]))
        body = draw(
            st.sampled_from(
                [
                    f"{inner}ctx.n = n{note()}\n{inner}return torch.mul(x, n){note()}\n",
                    f"{inner}ctx.n = n; return torch.mul(x, n)\n",
                    f'{inner}"""Documented."""\n\n{inner}ctx.n = n\n{inner}return \\\n{inner}torch.mul(x, n)\n',
                ]
            )
        )
        forward = f"{indent}def forward({signature}):{note()}\n{body}"
    returned = draw(
        st.sampled_from(
            [
                "return grad * ctx.n",
                "return (grad * ctx.n)",
                "return grad * ctx.n,",
                f"return (\n{inner}{indent}grad * ctx.n,\n{inner})",
                f"return (\n{inner}{indent}grad * ctx.n,  # of x\n{inner})",
                "return grad * \\\n        ctx.n",
                "gradient = grad * ctx.n; return gradient",
            ]
        )
    )
    end = draw(st.sampled_from(["\n", "\r\n"]))
    last = draw(st.sampled_from(["", "\n", f"\n\nVALUE = 'é' * 3{note()}\n"]))
    text = (
        f"import torch\n\n\nclass Fn(torch.autograd.Function):{note()}\n{gap()}"
        f"{decorator}{between}{forward}{gap()}\n"
        f"{indent}@staticmethod\n{indent}def backward(ctx, grad):{note()}\n{inner}{returned}{last}"
    )
    return text.replace("\n", end), end


def fixed_by(text: str, code: str) -> str:
    """``text`` after the fixes of one rule, unsafe ones included."""
    chosen = Settings()._replace(command_line=Selection(select=(code,)))
    return apply_fixes(text, "layout.py", chosen, unsafe=True)


def changed_lines(before: str, after: str, end: str) -> tuple[list[str], list[str]]:
    """The removed and the added lines."""
    delta = list(difflib.ndiff(before.split(end), after.split(end)))
    return [line[2:] for line in delta if line[0] == "-"], [line[2:] for line in delta if line[0] == "+"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(classes())
def test_a_missing_decorator_is_one_new_line(drawn: tuple[str, str]) -> None:
    text, end = drawn
    ast.parse(text)
    assert "CTX101" in {each.code for each in lint(text)}
    fixed = fixed_by(text, "CTX101")
    gone, came = changed_lines(text, fixed, end)
    assert gone == []
    assert [line.strip() for line in came] == ["@staticmethod"]
    ast.parse(fixed)
    assert fixed_by(fixed, "CTX101") == fixed


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(classes())
def test_a_missing_none_changes_the_return(drawn: tuple[str, str]) -> None:
    text, end = drawn
    fixed = fixed_by(text, "CTX203")
    assert fixed != text
    gone, came = changed_lines(text, fixed, end)
    assert len(gone) <= 2
    assert len(came) <= 3
    assert all(any(word in line for word in ("grad", "None", "ctx.n", ")")) for line in gone + came)
    assert "None" in "".join(came)
    assert {"CTX201", "CTX203"}.isdisjoint(each.code for each in lint(fixed))
    (before,), (after,) = (
        [ast.dump(node) for node in ast.parse(source).body if isinstance(node, ast.Import)] for source in (text, fixed)
    )
    assert before == after
    assert fixed.count("#") == text.count("#")
    assert fixed_by(fixed, "CTX203") == fixed
