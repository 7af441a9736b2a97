"""The torch releases that define a class, by the conditions around it."""

from __future__ import annotations

import pytest

from ctxlint.config.torch_versions import ALL_RELEASES, Releases, TorchVersions
from tests.model.models import only, read

_SETUP = """
import torch
from packaging import version
from packaging.version import Version, parse
from torch import __version__ as installed

REQUIRED = "1.8"
TORCH_VERSION = torch.__version__
PARSED = version.parse(torch.__version__)
TUPLE = tuple(int(x) for x in torch.__version__.split(".")[:2])
TORCH_MAJOR = int(torch.__version__.split(".")[0])
TORCH_MINOR = int(torch.__version__.split(".")[1])
NEW = PARSED >= parse("2.4.0a0")
"""

_SINCE_2 = Releases((2, 0))
_BEFORE_2 = Releases(limit=(2, 0))


@pytest.mark.parametrize(
    ("condition", "then", "otherwise"),
    [
        ('torch.__version__ < "2.0"', _BEFORE_2, _SINCE_2),
        ('"2.0" > torch.__version__', _BEFORE_2, _SINCE_2),
        ('installed >= "2"', _SINCE_2, _BEFORE_2),
        ('not TORCH_VERSION >= "2.0"', _BEFORE_2, _SINCE_2),
        ("TORCH_VERSION >= REQUIRED", Releases((1, 8)), Releases(limit=(1, 8))),
        ('version.parse(torch.__version__) >= version.parse("2.0.1")', _SINCE_2, Releases(limit=(2, 1))),
        ('Version(torch.__version__) <= Version("1.12")', Releases(limit=(1, 13)), Releases((1, 12))),
        ('PARSED > parse("1.12")', Releases((1, 12)), Releases(limit=(1, 13))),
        ('PARSED == parse("2.0.1")', Releases((2, 0), (2, 1)), ALL_RELEASES),
        ('PARSED != parse("2.0.1")', ALL_RELEASES, Releases((2, 0), (2, 1))),
        ("PARSED.release >= (2, 0)", _SINCE_2, _BEFORE_2),
        ("PARSED.major >= 2", _SINCE_2, _BEFORE_2),
        ("TUPLE >= (2, 0)", _SINCE_2, _BEFORE_2),
        ('tuple(map(int, torch.__version__.split(".")[:2])) < (2, 0)', _BEFORE_2, _SINCE_2),
        ("TORCH_MAJOR > 1", _SINCE_2, _BEFORE_2),
        ("TORCH_MAJOR == 1", Releases((1, 0), (2, 0)), ALL_RELEASES),
        ("TORCH_MAJOR > 1 or (TORCH_MAJOR == 1 and TORCH_MINOR > 4)", Releases((1, 0)), _BEFORE_2),
        ("TORCH_MAJOR >= 2 and TORCH_MINOR >= 1", _SINCE_2, ALL_RELEASES),
        ("NEW", Releases((2, 4)), Releases(limit=(2, 4))),
        ('PARSED >= parse("2.1") and PARSED < parse("2.5")', Releases((2, 1), (2, 5)), ALL_RELEASES),
        # nothing is known
        ("TORCH_MINOR >= 4", ALL_RELEASES, ALL_RELEASES),
        ("PARSED.minor >= 4", ALL_RELEASES, ALL_RELEASES),
        ('torch.__version__[:3] >= "1.8"', ALL_RELEASES, ALL_RELEASES),
        ("len(torch.__version__) > 5", ALL_RELEASES, ALL_RELEASES),
        ('torch.version.cuda >= "11.0"', ALL_RELEASES, ALL_RELEASES),
        ('"rocm" in torch.__version__', ALL_RELEASES, ALL_RELEASES),
        ('"1.0" < torch.__version__ < "2.0"', ALL_RELEASES, ALL_RELEASES),
    ],
)
def test_conditions(condition: str, then: Releases, otherwise: Releases) -> None:
    """In the body of ``if``, and in ``else``."""
    defined = """class Fn(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x
"""
    first = f"{_SETUP}\nif {condition}:\n    {defined}\nelse:\n    pass\n"
    second = (
        f"{_SETUP}\nif {condition}:\n    pass\nelse:\n    try:\n        pass\n    finally:\n        pass\n    {defined}"
    )
    assert only(read(first)).releases == then
    assert only(read(second)).releases == otherwise


@pytest.mark.parametrize(
    ("target", "releases", "expected"),
    [
        ((">=2.1",), Releases((2, 4)), ">=2.4"),
        ((">=2.1",), Releases(limit=(2, 4)), ">=2.1,<2.4"),
        ((">=2.1,<2.6",), Releases((2, 4)), ">=2.4,<2.6"),
        ((">=2.4",), Releases(limit=(2, 0)), ">=0.0,<2.0"),
        ((), Releases(limit=(2, 0)), ">=0.0,<2.0"),
    ],
)
def test_limited_versions(target: tuple[str, ...], releases: Releases, expected: str) -> None:
    """Of the targeted releases, those that run the code; if none does, the code is for others."""
    assert str(TorchVersions(target).limited_to(releases)) == expected
