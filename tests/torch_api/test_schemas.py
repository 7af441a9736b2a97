"""The tables about torch, compared with the installed torch."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed

from ctxlint.torch_api import missing_names, operations, torch_names
from ctxlint.torch_api.schemas import ROWS


def test_generated_rows_are_those_of_this_torch() -> None:
    """In a separate process: torch's test helpers change warnings, seeds and threads.

    As a file, not with ``-m`` or ``-c``: torch formats the stack at each of 20,000 seeds, and Python would search its
    path each time for the code of frames without a file.
    """
    made = subprocess.run(
        [sys.executable, "-W", "ignore", "tests/torch_api/generate.py", "--print"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert ROWS in made.stdout, "python -m tests.torch_api.generate"


def test_names_are_those_of_this_torch() -> None:
    made = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.torch_api.generate_names", "--print"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert made.stdout.strip() == Path(torch_names.__file__).read_text(encoding="utf-8").strip()


def test_torch_lacks_what_counts_as_missing() -> None:
    assert not any(hasattr(torch, name.removeprefix("torch.")) for name in missing_names.REMOVED)
    for name, removed in missing_names.REMOVED.items():
        if name.endswith("()"):
            with pytest.raises((RuntimeError, TypeError), match=r"now removed|not callable") as raised:
                getattr(torch, name[len("torch.") : -2])(torch.eye(2), torch.eye(2))
            assert raised.typename == removed.raises
    replacements = [each.instead for each in missing_names.REMOVED.values() if each.instead]
    for path in replacements:
        module, _, name = path.rpartition(".")
        assert name in torch_names.NAMES[module].split()
    for module in missing_names.MODULES:
        assert not any(missing_names.is_missing(module, name) for name in torch_names.NAMES[module].split())


def test_names_to_write_in_place_of_missing_ones() -> None:
    meant = missing_names.meant_by
    assert meant("torch", "linear") == "torch.nn.functional.linear"
    assert meant("torch", "repeat") == ".repeat"
    assert meant("torch.nn", "Relu") == "torch.nn.ReLU"
    assert meant("torch", "sigmoide") == "torch.sigmoid"
    assert meant("torch", "rfft") == "torch.fft.rfft"
    assert meant("torch", "quick_spectrum") == ""
    assert meant("numpy", "float") == "float"


def test_every_in_place_method_of_a_tensor_is_known() -> None:
    known = operations.INPLACE_METHODS | operations.SELF_RETURNING_METHODS
    in_place = {name for name in dir(torch.Tensor) if name.endswith("_") and not name.startswith("_")}
    assert in_place <= known


def test_methods_of_a_tensor_take_no_more_arguments() -> None:
    for name, most in operations.MOST_ARGUMENTS.items():
        method = getattr(torch.ones(2, 2), name)
        with pytest.raises(TypeError):
            method(*[torch.ones(2, 2)] * (most + 1))
        assert operations.shows_tensor(name, most)
        assert not operations.shows_tensor(name, most + 1)


def test_every_function_of_init_writes_its_tensor() -> None:
    names = {name for name in dir(torch.nn.init) if name.endswith("_") and not name.startswith("_")}
    assert {f"torch.nn.init.{name}" for name in names} <= operations.WRITING_FUNCTIONS.keys()


def test_collectives_write_their_first_parameter() -> None:
    for name, parameter in operations._COLLECTIVES_THAT_WRITE.items():
        function = getattr(torch.distributed, name)
        assert next(iter(inspect.signature(function).parameters)) == parameter, name


def test_rows_by_hand_are_about_names_that_torch_has() -> None:
    places = {"M": torch.Tensor, "T": torch}
    elsewhere = {"npu", "rename_"}  # a plug-in brings it; only on named tensors
    for name, each in operations._read(operations._ROWS_BY_HAND).items():
        if name not in elsewhere:
            assert all(hasattr(places[letter], name) for letter in each.where), name
