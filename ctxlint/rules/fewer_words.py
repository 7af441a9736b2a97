"""Phrases that give way where names are long: they say the same in fewer words, or leave out what the code shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Callable


def in_fewer_words(message: str, fits: Callable[[str], bool]) -> str:
    """A message in as many of its words as ``fits`` allows, or else in the fewest."""
    for phrase, shorter in _SHORTER:
        if fits(message):
            break
        message = phrase.sub(shorter, message)
    return message


_REMEDIES = (
    ("(Return one gradient for each input), `None` if there is none", r"\1"),
    (r"Use (?:it|its gradient), or call `(\w+\.mark_\w+)`\.", r"Use it, or call `\1`."),
    ("static with `ctx`, and pass", "static, and pass"),
    (r"(Write `\w+ = None` first, and test) `\w+ is not None` here", r"\1 for that"),
    ("as a separate input, `[^`]*`", "as a separate input"),
    (r"under `(?:with )?torch\.enable_grad\(\):?`, (?:from|with)", "under `enable_grad()`, from"),
    (r"inputs with `\.detach\(\)\.requires_grad_\(\)`", "`.detach().requires_grad_()` inputs"),
    (r"to `setup_context\([^`]*\)`", "to `setup_context`"),
    ("the tensors of `[^`]*` to `apply` one by one", "its tensors to `apply` one by one"),
    ("Return it in the shape of `[^`]*`", "Return it in the shape of the input"),
    ("(Return its gradient), under `[^`]*`", r"\1"),
    (r", as by `[^`]*\.clone\(\)`", ""),
    (r"(Write to a new tensor), or `\.clone\(\)` it first", r"\1"),
    ("Copy `[^`]*` before the call, and continue with the copy", "Pass a copy, and continue with it"),
    ("Copy them before the call, and continue with the copies", "Pass copies, and continue with them"),
    ("Compute the gradient from `", "Compute it from `"),
    (r"Write `restore_value=\[[^`]*\]` there", "Use `restore_value` there"),
    (r"or (?:call it under|use) `torch\.no_grad\(\)` for inference", "or use `torch.no_grad()`"),
    ("Save `[^`]*` with `save_for_backward`, and", "Save it with `save_for_backward`, and"),
    (r"(proportional to it, .*) Multiply by `[^`]*`", r"\1 Multiply by it"),
    (r"(of `([^`]*)`, although .*) Compute (?:it|the gradient) from `\2`", r"\1 Compute it from that"),
    (r"(for `([^`]*)`, whose .*) Write `tl\.load\(\2\)` in", r"\1 Use `tl.load` in"),
    (r"rite `(\w+\.\w+) = \w+(?:\.\w+)?`", r"rite to `\1`"),
)
_FACTS = (
    ("operations that autograd does not record", "unrecorded operations"),
    (", from which `forward` computes an output;", ", on which an output depends;"),
    (" stores its state on the instance ", " keeps state on the instance "),
    (" tensor, the saved input `[^`]*`;", " tensor, a saved input;"),
    (", not marked as non-differentiable; if it holds floats,", "; if it holds floats and is not marked,"),
    (", (?:which is )?computed with grad mode off", ", computed with grad mode off"),
    (r"\(annotated `[^`]*`, a record\)", "(annotated as a record)"),
    (", the flag of `[^`]*`", ""),
    (r"(\d+ inputs?) \(`[^()]*`\)", r"\1"),
    (", as returned by `[^`]*`", ""),
    ("float32 whatever the dtype of `[^`]*`", "always float32"),
    ("only if `[^`]*` and `[^`]*` need a gradient", "only if two inputs need a gradient"),
    ("(runs through the graph of|the output is a view of) the input `[^`]*`", r"\1 an input"),
    ("even if `[^`]*` needs no gradient; autograd", "even if that needs none; autograd"),
    ("gets no ctx, as `setup_context` is defined", "gets no ctx next to `setup_context`"),
    ("`([^`]*)`, the input `[^`]*` as it was passed", r"`\1`, an input as it was passed"),
)
_CONSEQUENCES = (
    ("torch passes a ctx instead at `apply`", "torch passes a ctx at `apply`"),
    ("when only another input needs a gradient", "when only another needs one"),
    ("when (`[^`]*`) needs a gradient and `[^`]*` does not", r"when only \1 needs a gradient"),
    ("torch does not look inside, and its tensors", "its tensors"),
    (", or is silently wrong if other operations are recorded", ", or is silently wrong"),
    (
        "if torch passes the same tensors? on to others, their gradients are silently wrong",
        "others that get the same tensor silently get wrong gradients",
    ),
    (
        "if reached and torch passes the same tensors? on to others, their gradients are silently wrong",
        "if reached, others that get the same tensor silently get wrong gradients",
    ),
    (
        "later reads of `[^`]*`, and others to which torch passes the same tensor, silently get",
        "later reads, and others that get the same tensor, silently get",
    ),
    ("if it is expanded, as after `[^`]*`, all", "if it is expanded, all"),
    (r"an expanded one, as after `sum\(\)`, raises", "an expanded one raises"),
    ("(an expanded one raises) RuntimeError, and others", r"\1, and others"),
    ("if `[^`]*` (has more|is a container)", r"if that \1"),
    ("for any other, the caller's graph is run and freed here", "the graph of any other is freed here"),
    (r"for any other tensor `[^`]*\.grad` is `None`", "for any other tensor `.grad` is `None`"),
    (r" \(for a leaf, this already raises\)", ""),
    ("whatever reads that tensor later, also in a second backward,", "what reads it later, also in a second backward,"),
    (", and twice the loss does not double it", ""),
    ("if reached and it draws random numbers, as dropout does,", "if reached and it draws random numbers,"),
    ("the gradients of all that follows are silently lost", "all gradients after it are silently lost"),
    ("with autocast on if it is called under autocast", "with autocast on under autocast"),
    (
        "its arguments by keyword and raises TypeError in a call that needs a gradient",
        "them by keyword and raises TypeError if a gradient is needed",
    ),
    ("if the backward of another operation needs", "if another backward needs"),
    (r"later uses of the inputs silently (bypass|read)\b", r"their later uses \1"),
    (r"later uses of (?:`[^`]*`|the input) silently (bypass|read)\b", r"its later uses \1"),
)
_LAST = (
    (r"Call `([^`]*)\([^`]*\)`((?: in `setup_context`| there)?) if (it is|each)", r"Call `\1`\2 if \3"),
    ("if it is no leaf and not saved before, else", "if that is legal, else"),
    ("silently overwritten, and (?:its|their) later uses read the new values", "silently overwritten"),
    (r"([Ww])ork on `[^`]*\.clone\(\)`", r"\1ork on a copy"),
    (r"(Pass (?:a copy|copies)) to `[^`]*`\.", r"\1."),
    (" here without it; it raises", " without it; it raises"),
    ("bind and use (it|them) only under that test", r"bind and use \1 under that test"),
    ("but is passed to `[^`]*` without it; it", "but is passed on without it; it"),
    (r"Write `(?:\w+ = )+None` first", "Bind `None` first"),
    ("a floating-point tensor or `None`", "a float tensor or `None`"),
    (r"(or mark the tensor) with `\w+\.mark_\w+`", r"\1"),
    (r"or call `\w+\.mark_\w+` where it is a tensor", "or mark it where it is a tensor"),
    (r"or call `\w+\.mark_\w+` where they are tensors", "or mark them where they are tensors"),
    ("(in `[^`]*`) of `[^`]*` (differentiates)", r"\1 \2"),
    (r"returns a gradient for it \((\d+ gradients for \d+ inputs)\)", r"returns \1"),
    ("without reading the values of (`[^`]*`, although)", r"without reading \1"),
    (r"^(`\w+`) of `\w+` (launches `[^`]*` (?:with the tensor|on the current GPU))", r"\1 \2"),
    ("launches `[^`]*` with the tensor `[^`]*` for", "launches a kernel with a tensor for"),
    ("in place under `[^`]*` without", "in place on one path without"),
    ("in place through `[^`]*`(?= unless|;)", "in place"),
)
_SHORTER = tuple((pattern(phrase), shorter) for phrase, shorter in (*_REMEDIES, *_FACTS, *_CONSEQUENCES, *_LAST))
