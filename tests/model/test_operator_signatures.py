"""What torch infers no schema from: each annotation is compared with torch itself."""

from __future__ import annotations

import ast
import logging
from typing import TYPE_CHECKING

import pytest
import torch

from ctxlint.model.index.indexer import index_module
from ctxlint.model.index.operator_signatures import rejections

if TYPE_CHECKING:
    from collections.abc import Iterator

IMPORTS = """
import collections.abc
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple, Union

import numpy
import torch
from torch import Tensor
from torch.library import custom_op
"""
NAMES = [
    "Tensor",
    "int",
    "float",
    "bool",
    "str",
    "None",
    "complex",
    "dict",
    "list",
    "tuple",
    "object",
    "type",
    "List",
    "Sequence",
    "Tuple",
    "Any",
    "Callable",
    "numpy.ndarray",
    "torch.Tensor",
    "torch.dtype",
    "torch.device",
    "torch.types.Number",
    "torch.Size",
    "torch.SymInt",
    "torch.nn.Parameter",
    "torch.nn.Module",
    "torch.memory_format",
    "torch.layout",
    "torch.LongTensor",
    "torch.Generator",
    '"Tensor"',
]
CERTAIN = 650
"""How many of the annotations are certainly rejected."""


def _around(name: str) -> Iterator[str]:
    """Types with this one as an argument."""
    yield from (f"Optional[{name}]", f"list[{name}]", f"List[{name}]", f"Sequence[{name}]", f"Set[{name}]")
    yield from (f"collections.abc.Sequence[{name}]", f"tuple[{name}, ...]", f"Tuple[{name}, {name}]")
    yield from (f"Dict[str, {name}]", f"Iterable[{name}]", f"Union[{name}, int]", f"Union[{name}, int, float, bool]")
    yield from (f"Optional[list[{name}]]", f"list[Optional[{name}]]", f"tuple[Tensor, list[{name}]]")
    if '"' not in name:
        yield from (f"{name} | None", f'"{name}"', f'"list[{name}] | None"')


@pytest.mark.parametrize("signature", ["x: {} -> Tensor", "x: Tensor -> {}"], ids=["parameters", "results"])
def test_torch_rejects_what_is_reported(signature: str) -> None:
    logging.disable(logging.WARNING)
    found: dict[str, object] = {}
    exec(IMPORTS, found)
    rejected = 0
    for written in [*NAMES, *(each for name in NAMES for each in _around(name))]:
        parameter, _, result = signature.format(written).partition(" -> ")
        text = f"def f({parameter}) -> {result}: ...\n"
        try:
            exec(text, found)
        except TypeError:  # no annotation at all
            continue
        module = ast.parse(f'{IMPORTS}@custom_op("a::f", mutates_args=())\n{text}')
        function = module.body[-1]
        assert isinstance(function, ast.FunctionDef)
        if rejections(function, index_module(module).module):
            rejected += 1
            with pytest.raises(ValueError, match=r"[Uu]nsupported type"):
                torch.library.infer_schema(found["f"], mutates_args=())
    logging.disable(logging.NOTSET)
    assert rejected > CERTAIN // 2
