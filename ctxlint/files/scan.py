"""Does this file matter? Asked of its bytes, before anything is decoded."""

from __future__ import annotations


def holds_candidate(data: bytes) -> bool:
    """Whether a file may hold a class that the model would accept, or a custom operator with a gradient.

    This misses none. The model accepts what it can follow to ``torch.autograd``: the word ``autograd`` stands where it
    is imported or spelled out, and ``Function`` where it is imported or used, alone or in ``InplaceFunction``. The
    gradient of an operator is given by ``register_autograd``. Python has no way to break a name in two, and every
    encoding that ``decode`` accepts writes ASCII as it is, so the bytes show the words; UTF-16 is not accepted.

    A file that takes its base from another file of the project by a name of its own is such a candidate only if it
    says these words too.
    """
    if b"autograd" not in data:
        return False
    return b"Function" in data or b"register_autograd" in data
