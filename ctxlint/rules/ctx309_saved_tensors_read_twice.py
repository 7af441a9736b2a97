"""CTX309: ``ctx.saved_tensors`` read more than once on one path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fixes.saved_tuple import bind_once, drop_read, name_of_tuple
from ctxlint.model.analyses.certain_raises import raises_before
from ctxlint.model.analyses.reachability import never_taken
from ctxlint.model.analyses.repeats import loop_around, repeated
from ctxlint.model.analyses.saved_reads import is_unused
from ctxlint.model.function import FunctionClass, SavedRead
from ctxlint.model.index.expected_errors import EXPECT_ERRORS
from ctxlint.model.syntax import dotted
from ctxlint.rules.base import Category, Finding, FixAvailability, Rule
from ctxlint.rules.related import way_to
from ctxlint.rules.wording import if_it_happens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.fix import Fix
    from ctxlint.model.interpreter.method import Method


class SavedTensorsReadTwice(Rule[FunctionClass]):
    """
    ## What it does
    Reports a read of `ctx.saved_tensors` in a loop or after an earlier read on the same path.

    ## Why is this bad?
    Each read unpacks all saved tensors again and runs the hooks of `torch.autograd.graph.saved_tensors_hooks`: with
    `save_on_cpu`, every tensor is copied to the device again. Under `torch.utils.checkpoint` with
    `use_reentrant=False`, the second read raises `CheckpointError: torch.utils.checkpoint: Unpack is being triggered
    for a tensor that was already unpacked once`. With `clear_saved_tensors_on_access = True` (torch 2.11), it raises
    `RuntimeError`.

    ## Example
    ```python
    import torch


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad_output):
            x = ctx.saved_tensors[0]
            y = ctx.saved_tensors[1]
            return grad_output * y, grad_output * x
    ```

    ## Use instead
    ```python
    import torch


    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad_output):
            x, y = ctx.saved_tensors
            return grad_output * y, grad_output * x
    ```

    ## Fix safety
    Safe: the tuple is bound to a name before its first use, and the name is read instead; a read without use is
    removed. If every read depends on a condition, the tuple is now read where none holds, too; that raises if a saved
    tensor was modified in place, or freed by an earlier backward. Not offered if a nested function reads it, or if
    the first read is inside a `try` and others are not.

    ## Known limits
    There is one finding for each method, at the first repeated read. Reads in different branches of one test, or under
    tests that look opposite, are not reported; neither are reads in a loop that can be left early, reads under
    `pytest.raises` and similar context managers, nor reads in `jvp`, where `saved_tensors` is the tuple given to
    `save_for_forward`, which torch does not unpack. Nothing is reported for code that runs only before torch 2.1, where a
    second read raises nothing.

    ## References
    - [Hooks for saved tensors](https://pytorch.org/docs/stable/notes/autograd.html#hooks-for-saved-tensors)
    - [torch.utils.checkpoint](https://pytorch.org/docs/stable/checkpoint.html)
    """

    code = "CTX309"
    name = "saved-tensors-read-twice"
    subject = FunctionClass
    says_if_it_runs = True
    category = Category.SUSPICIOUS
    fix = FixAvailability.SOMETIMES
    about_backward = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if not settings.torch.reach(2, 1):  # reading again raises nothing in older releases
            return
        for method in fn.reading_methods:
            if method.inherited or method.name == "jvp":  # in forward mode, the saved tensors are a plain tuple
                continue
            reads = tuple(
                read for read in method.facts.of(SavedRead) if not read.called and not _is_expected(method, read.node)
            )
            if len(reads) > 1 and method is fn.backward:
                reads = tuple(read for read in reads if not never_taken(fn, read.guards))
            again = _first_again(fn, method, reads)
            if again is not None:
                read, when = again
                remedy, fix = _remedy(fn, method, reads, read)
                runs = _if_both_run(fn, method, dict(repeated(reads)).get(read), read)
                yield Finding(
                    fn.span(read.node),
                    f"{_subject(read)} {when}; {f'{runs}, ' * bool(runs)}torch unpacks all saved tensors again and raises CheckpointError under "
                    f"non-reentrant checkpointing. {remedy}.",
                    fix,
                    way_to(fn, *reads),
                )


def _if_both_run(fn: FunctionClass, method: Method, before: SavedRead | None, read: SavedRead) -> str:
    """The condition under which both reads happen: of the later one, of the earlier one, or of both."""
    if before is not None and before.guards == read.guards and not raises_before(fn, method, read.node):
        return ""
    later = if_it_happens(fn, method, read).strip()
    if before is None or read.implies(before) or before.node is read.node:
        return later
    return "if both run" if later else f"if {fn.line(before.node)} ran"


def _subject(read: SavedRead) -> str:
    """What is read, and by which helper."""
    if read.captured_by not in ("", read.by):
        return f"`{read.captured_by}`, called by `{read.by}`, reads `{read.via}`"
    called = dotted(read.node.func) if isinstance(read.node, cst.Call) else None
    helper = called if called is not None and called.endswith(f".{read.by}") else read.by
    return f"`{helper}` reads `{read.via}`" if read.by else f"`{read.via}` is read"


def _by_one_helper(before: SavedRead, read: SavedRead) -> bool:
    """Whether one call of a helper makes both reads."""
    return bool(read.by) and before.node is read.node


def _remedy(fn: FunctionClass, method: Method, reads: tuple[SavedRead, ...], read: SavedRead) -> tuple[str, Fix | None]:
    """What to write instead of a superfluous read: where one of the two has no use, nothing."""
    before = dict(repeated(reads)).get(read)
    if before is not None and is_unused(method, before, read):
        return f"Drop the unused read on {fn.line(before.node)}", drop_read(fn, method, before)
    if before is not None and is_unused(method, read, None):
        return "Drop it, as nothing uses it", drop_read(fn, method, read)
    if before is not None and _by_one_helper(before, read):
        return "Bind it to a name there", None
    if read.captured_by:
        return f"Use the tensors of one read in `{read.captured_by}`", None
    if read.by or (before is not None and before.by):
        return "Pass the tensors of one read on instead", None
    name = name_of_tuple(fn, method)
    return "Bind it to a name once" if name is None else f"Use `{name}`", bind_once(fn, method)


def _is_expected(method: Method, node: cst.CSTNode) -> bool:
    """Whether it is under something like ``pytest.raises(...)``."""
    contexts = (item.item for each in method.above(node) if isinstance(each, cst.With) for item in each.items)
    names = (dotted(each.func) or "" for each in contexts if isinstance(each, cst.Call))
    return any(name.rpartition(".")[2] in EXPECT_ERRORS for name in names)


def _first_again(fn: FunctionClass, method: Method, reads: tuple[SavedRead, ...]) -> tuple[SavedRead, str] | None:
    """The first superfluous read, and why it is superfluous."""
    twice = dict(repeated(reads))
    for read in reads:
        if read in twice:
            earlier = twice[read]
            before, here = fn.line(earlier.node), fn.line(read.node)
            if _by_one_helper(earlier, read):
                return read, "twice"
            if before == here and (earlier.by, earlier.captured_by) != (read.by, read.captured_by) and earlier.by:
                return read, f"again after `{earlier.captured_by or earlier.by}`"
            with_it = [each for each in reads if fn.line(each.node) == here and not each.excludes(read)]
            times = "twice" if len(with_it) == 2 else f"{len(with_it)} times"
            return read, f"{times} on {here}" if before == here else f"again after {before}"
        if loop_around(method, read) is not None:
            return read, "again in each iteration of the loop"
    return None
