"""The scanner never drops a file that can matter."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import pytest

from ctxlint.model.reader import analyse
from ctxlint.source.decode import decode
from ctxlint.source.reading import Undecodable
from ctxlint.source.scanner import Mentions, holds_candidate
from ctxlint.source.source import Source

FIXTURES = Path(__file__).parents[2] / "fixtures"
BODY = "\n    @staticmethod\n    def forward(ctx, x):\n        return x\n    @staticmethod\n    def backward(ctx, g):\n        return g\n"

CANDIDATES = [
    "import torch\nclass A(torch.autograd.Function):" + BODY,
    "import torch as th\nclass A(th.autograd.Function):" + BODY,
    "from torch import autograd\nclass A(autograd.Function):" + BODY,
    "from torch import autograd as ag\nclass A(ag.Function):" + BODY,
    "import torch.autograd as ag\nclass A(ag.function.InplaceFunction):" + BODY,
    "from torch.autograd import Function as F\nclass A(F):" + BODY,
    "from torch.autograd import *\nclass A(Function):" + BODY,
    "from torch.autograd.function import once_differentiable, Function\nclass A(Function):" + BODY,
    "import torch\nclass A(torch . autograd \\\n . Function):" + BODY,
    "import torch\nclass A(torch. # the\n        autograd. # base\n        Function):" + BODY,
    "import torch\nBase = torch.autograd.Function\nclass A(Base):" + BODY,
]


@pytest.mark.parametrize("text", CANDIDATES)
@pytest.mark.parametrize("cookie", ["", "# coding: latin-1\n", "# coding: cp1252\n", "# coding: shift_jis\n"])
def test_all_ways_to_name_the_base(text: str, cookie: str) -> None:
    data = (cookie + text).encode()
    assert analyse(decode("a.py", data)).functions
    assert holds_candidate(data)
    assert holds_candidate(b"\xef\xbb\xbf" + data)
    assert holds_candidate(data.replace(b"\n", b"\r\n"))


@pytest.mark.parametrize(
    "text", ["import torch\ntorch.library.register_autograd('a::b', c)\n", "@op.register_autograd\n"]
)
def test_gradients_of_operators(text: str) -> None:
    assert holds_candidate(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "import torch\nclass A(torch.nn.Module): pass\n",
        "torch.autograd.grad(y, x)\n",
        "from sympy import Function\nclass A(Function): pass\n",
        "from functools import partial\n",
        "register_auto\ngrad",
        "Autograd.function",
        "from torch.autograd.function import FunctionCtx\n",
        "class A(torch.nn.Module):\n    '''Not a Function.'''\n    is_autograd_on = True\n",
        "import my_autograd\nclass A(my_autograd.Function): pass\n",
    ],
)
def test_files_that_cannot_matter(text: str) -> None:
    assert not holds_candidate(text.encode())


@pytest.mark.parametrize("letter", "bfnrt")
def test_a_name_after_an_escape_in_json(letter: str) -> None:
    """The code of a cell may be one string."""
    assert holds_candidate(b'{"source": "import torch.autograd as ag\\nclass A(ag.Function): pass"}')
    assert holds_candidate(b'{"source": "x = [torch.\\' + letter.encode() + b'autograd.Function]"}')


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_what_python_cannot_read_is_reported(encoding: str) -> None:
    """`decode` raises; but a file that is not a candidate is not reported."""
    data = CANDIDATES[0].encode(encoding)
    assert holds_candidate(data)
    with pytest.raises(Undecodable, match="which Python cannot read"):
        decode("a.py", data)
    assert not holds_candidate("import torch\n".encode(encoding))


def test_every_character_that_python_takes_for_a_letter_of_a_word_is_known() -> None:
    words = ("autograd", "Function", "register_autograd")
    letters = set("".join(words))
    found = 0
    for char in map(chr, range(128, sys.maxunicode + 1)):
        normal = unicodedata.normalize("NFKC", char)
        if len(normal) == 1 and normal in letters and f"a{char}".isidentifier():
            found += 1
            for word in words:
                text = CANDIDATES[0].replace("Function", word) if word == "register_autograd" else CANDIDATES[0]
                assert normal not in word or holds_candidate(text.replace(word, word.replace(normal, char)).encode())
    assert found > 200


@pytest.mark.parametrize(
    "text", ["# ºª™ ﬁ µ 。\uff0c\uff08\uff09\nimport torch\n", "# coding: cp1252\nx = 'é'\n", "{'\\u0061': 1}\n"]
)
def test_other_unusual_characters_make_no_candidate(text: str) -> None:
    assert not holds_candidate(text.encode())


def test_no_program_of_the_fixtures_is_missed() -> None:
    programs = [*FIXTURES.rglob("*.py")]
    accepted = [path for path in programs if analyse(Source(str(path), path.read_text(encoding="utf-8"))).functions]
    assert len(accepted) > 10
    assert all(holds_candidate(path.read_bytes()) for path in accepted)


@pytest.mark.parametrize(
    "text",
    [
        "from import x",
        "x = 'from  import '",
        "from \\\n import y",
        "from",
        "import",
        "from . import",
        "a from b import",
    ],
)
def test_what_looks_like_an_import_and_is_none(text: str) -> None:
    assert not Mentions({"ops": ["Scale"]}).in_data(text.encode())
