"""Does this file matter? Asked of its bytes, before anything is decoded."""

from __future__ import annotations


def holds_candidate(data: bytes) -> bool:
    """Whether a file may hold a class that the model would accept, or a custom operator with a gradient.

    A Function is named through ``torch.autograd``, so the words ``autograd`` and ``Function`` (also in
    ``InplaceFunction``) stand in its file; an operator's gradient is registered by ``register_autograd``. Python writes
    names in ASCII and every encoding that PEP 263 allows keeps ASCII as it is, so bytes are enough. What is said here
    of a file that only subclasses a Function of another file is no: such files are found by name, over the whole run.
    """
    if b"autograd" not in data:
        return False
    return b"Function" in data or b"register_autograd" in data
