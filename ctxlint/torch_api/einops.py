"""What the functions of einops return, by their patterns: the tensor itself, a view of it, or perhaps a copy.

einops reshapes, permutes and reshapes again, and leaves out each step that would change nothing: a split of a dimension
and a permutation are views of any tensor, two dimensions merged are one where their strides allow it. Tried with
einops 0.8 on torch 2.13.
"""

from __future__ import annotations

from ctxlint.named_tuples import NamedTuple

REARRANGING = frozenset({"einops.rearrange", "einops.einops.rearrange"})
"""Functions that give the elements of their first argument in another order; a list of tensors is stacked."""


class Pattern(NamedTuple):
    """One pattern, ``b (h d) -> b h d``."""

    changes: bool
    """Whether the result is not the tensor itself."""
    permutes: bool
    """Whether dimensions change their order."""
    merges: bool
    """Whether several dimensions become one, which may need a copy."""


def read_pattern(text: str) -> Pattern | None:
    """A pattern of ``rearrange``; None if it is not one."""
    left, arrow, right = text.partition("->")
    before, after = groups_of(left), groups_of(right)
    if not arrow or before is None or after is None:
        return None
    order, new_order = ([name for group in side for name in group] for side in (before, after))
    if sorted(order) != sorted(new_order):
        return None
    merges = any(len(group) > 1 for group in after)
    return Pattern(before != after or any(len(group) > 1 for group in before), order != new_order, merges)


def groups_of(side: str) -> list[list[str]] | None:
    """The names in each dimension of one side of a pattern; None if it has parentheses that do not match.

    A dimension of size 1 is a group without names.
    """
    groups: list[list[str]] = []
    inside = False
    for word in side.replace("(", " ( ").replace(")", " ) ").replace("...", " ... ").split():
        if word in ("(", ")"):
            if inside == (word == "("):
                return None
            inside = word == "("
            groups += [[]] if inside else []
        elif word == "1":
            groups += [] if inside else [[]]
        elif inside:
            groups[-1].append(word)
        else:
            groups.append([word])
    return None if inside else groups
