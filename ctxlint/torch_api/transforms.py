"""The transforms of ``torch.func``, and what each needs of the Functions that it transforms.

Source: torch 2.13, ``torch/_functorch/autograd_function.py`` and ``torch/autograd/function.py``.
"""

from __future__ import annotations

import re

_REVERSE = frozenset({"grad", "grad_and_value", "vjp", "jacrev", "functionalize"})
_MAPPING = frozenset({"vmap"})
_FORWARD = frozenset({"jvp", "linearize"})
_BOTH = frozenset({"jacfwd", "hessian"})
"""These map a forward-mode derivative over a basis."""

NEEDS_SETUP_CONTEXT = _REVERSE | _MAPPING | _BOTH | {"jvp"}
"""A Function whose ``forward`` takes ctx raises RuntimeError under these, whatever its inputs are."""

NEEDS_VMAP = _MAPPING | _BOTH
"""A Function without ``vmap`` and ``generate_vmap_rule`` raises RuntimeError under these, whatever its inputs are."""

NEEDS_JVP = _FORWARD | _BOTH | {"make_dual"}
"""A Function without ``jvp`` raises NotImplementedError under these if an input carries a tangent."""

REFUSES_OPERATORS = _REVERSE - {"functionalize"} | {"hessian"}
"""A custom operator of ``torch.library`` raises RuntimeError under these if an input is what they differentiate."""

DERIVATIVES = REFUSES_OPERATORS | _FORWARD | {"jacfwd"}
"""The others treat it as a constant: they silently give 0 for its derivative."""

TRANSFORMS = {f"{module}.{name}": name for module in ("torch.func", "functorch") for name in NEEDS_SETUP_CONTEXT} | {
    "torch.vmap": "vmap",
    "torch.func.linearize": "linearize",
    "torch.autograd.forward_ad.make_dual": "make_dual",
}
"""Their full names, and the last part of each.

The first argument is the function that is transformed; for ``make_dual``, the result carries a tangent.
"""

FUNCTIONAL_CALLS = frozenset(
    {
        "functorch.functional_call",
        "torch.func.functional_call",
        "torch.nn.utils.stateless.functional_call",
    }
)
"""These call the module that is their first argument."""

_WORDS = tuple(re.compile(rb"%b(?<=\b%b)\b" % (word, word)).search for word in (b"vmap", b"jacrev", b"forward_ad"))
"""What a file that uses transforms contains, or else their module.

Each begins with fixed text, for which ``re`` searches fast, but all of the files of a project are searched: the fewer,
the better.
"""
_FUNC = re.compile(rb"func(?<=\bfunc)(?:torch)?\b").search
_MODULE = re.compile(
    rb"torch(?:(?<=\bfunctorch)\b|\.(?<=\btorch\.)func\b| (?<=\bfrom torch )import (?:.*, *)?func\b)"
).search
"""``torch`` is in most files: where ``_FUNC`` finds nothing, neither does this."""


def may_use_transforms(data: bytes) -> bool:
    """Whether a file with these bytes may use a transform."""
    return any(search(data) is not None for search in _WORDS) or (_FUNC(data) is not None and _MODULE(data) is not None)


TRANSPARENT = frozenset({"torch.compile", "torch.no_grad", "torch.enable_grad", "functools.partial"})
"""These return a function that calls the given one; as decorators, called or not, most of them too."""

SAME_MODULE = frozenset(
    {"bfloat16", "cpu", "cuda", "double", "eval", "float", "half", "requires_grad_", "to", "train", "type"}
)
"""Methods of a module that return the module."""

TANGENT_METHODS = frozenset(
    str.split(
        "abs add clone contiguous cos div double exp expand flatten float log mean mul neg permute pow prod reshape "
        "sin sqrt square squeeze sub sum t tanh transpose unsqueeze view"
    )
)
"""Methods whose result carries the tangent of their tensor."""
