"""CTX210: a local that is bound only under one input's flag and used under none or another, or on no path."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fixes.unbound_gradients import bind_none_first
from ctxlint.model.analyses.conditional_nones import conditional_nones, names_from
from ctxlint.model.analyses.flags import (
    bound_only_together,
    flags_of,
    is_computed_with_another,
    needed_at,
    none_uses,
    nones_inside,
    saves_only_under_others,
    stored_flags,
    stored_only_under_others,
    unbound_inside,
    unbound_uses,
    unbound_without_gradients,
)
from ctxlint.model.analyses.reachability import backward_never_runs
from ctxlint.model.analyses.skipped_state import lacks_state_before
from ctxlint.model.analyses.unbound_locals import read_too_early, unbound_branches
from ctxlint.model.analyses.undefined_attributes import never_happens
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import Assigned, MaybeNone, MaybeUnbound, Mutation, NoneInside
from ctxlint.model.syntax import code_of, is_name, last_name, names_in, only_target
from ctxlint.rules.base import Finding, FixAvailability, Rule
from ctxlint.rules.related import at, way_to
from ctxlint.rules.wording import first_of, fitting, if_it_runs, moment, name_with_the_words_of, names_of, quoted, them

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.fix import Fix
    from ctxlint.model.analyses.unbound_locals import UnboundBranch
    from ctxlint.model.interpreter.method import Method


class GradientUnbound(Rule[FunctionClass]):
    """
    ## What it does
    Reports a local variable of `backward` that is bound only under `ctx.needs_input_grad[i]`, or where one of several flags
    is set, and read without that test or under another input's flag. Also reports one that is `None` without that flag, if it is passed to a collective of
    `torch.distributed` or an attribute of it is read, and a local variable of `forward` that is bound only if one input,
    or any, needs a gradient, such as a gradient that is computed in advance; also in functions of the project that these
    methods call. And one that a conditional expression with a test for `None` binds to `None`, or that a
    function of the project returns as `None` unless an input needs a gradient, if an attribute of it is read without that test.

    ## Why is this bad?
    If input `i` needs no gradient and another one does, `backward` raises `UnboundLocalError: cannot access local
    variable 'grad_x' where it is not associated with a value`; with `None`, it raises AttributeError or TypeError. Tests
    in which every input requires a gradient never reach this error.

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
            x, y = ctx.saved_tensors
            if ctx.needs_input_grad[0]:
                grad_x = grad_output * y
            if ctx.needs_input_grad[1]:
                grad_y = grad_output * x
            return grad_x, grad_y
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
            grad_x = grad_y = None
            if ctx.needs_input_grad[0]:
                grad_x = grad_output * y
            if ctx.needs_input_grad[1]:
                grad_y = grad_output * x
            return grad_x, grad_y
    ```

    ## Fix safety
    The name is bound to `None` before the tests. There is a fix if, where it may be unbound, the name is only
    returned, as the gradient of the input under whose flag it is bound. Safe if the binding depends on that flag alone:
    torch ignores the gradient of an input that needs none. Unsafe if it depends on other conditions too, because the input
    may then need the gradient and silently get none. Not offered if it depends on the flag of another input, as under a
    test inside another: then the input certainly gets none where only the other needs no gradient.

    ## Known limits
    Not reported if no other input can need a gradient, under `try`, if the Function asserts something about the flag, or if the
    variable is read under an equivalent test, or if each call in view is under a test of that input's flag alone; nor, where
    the variable is bound to `None` first, if it is used under any test but that of another input's flag, also in a
    function that gets it. A branch without the name is not reported if a test elsewhere that raises, returns or asserts
    mentions the same names, or if another statement binds it too.

    ## References
    - [FunctionCtx.needs_input_grad](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX210"
    name = "gradient-unbound"
    subject = FunctionClass
    fix = FixAvailability.SOMETIMES

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        backward = fn.judgeable_backward
        if backward is None or (fn.legacy_state is not None and settings.torch.reach(1, 5)):
            return
        seen: set[str] = set()
        yield from _unbound_in_forward(fn, seen)
        for method in fn.earlier_methods:
            yield from _unbound_locals(fn, method, seen)
            yield from _none_by_expression(fn, method, seen)
            yield from _none_without_gradient(fn, method, seen)
        if not backward_never_runs(fn):
            seen = set()
            yield from _unbound_in_backward(fn, backward, seen)
            yield from _unbound_locals(fn, backward, seen)
            yield from _none_by_expression(fn, backward, seen)
            yield from _none_without_gradient(fn, backward, seen)


def _unbound_locals(fn: FunctionClass, method: Method, seen: set[str]) -> Iterator[Finding]:
    """Names that a method reads before it binds them, or after a branch that does not, apart from those ``seen``."""
    if method.inherited or not method.facts.of(MaybeUnbound):
        return
    found: dict[cst.CSTNode | None, list[MaybeUnbound]] = {}
    for use in read_too_early(fn, method):
        if use.name not in seen:
            seen.add(use.name)
            found.setdefault(method.statement_around(use.node), []).append(use)
    for first, *others in found.values():
        names = quoted([first.name, *(each.name for each in others)])
        are, them = ("are", "them") if others else ("is", "it")
        yield Finding(
            fn.span(first.node),
            f"{names} in `{method.name}` of `{fn.name}` {are} not bound on any path to this read; it raises "
            f"UnboundLocalError {moment(method)}{if_it_runs(fn, method, first.node)}. Bind {them} first{_or_meant(method, first)}.",
        )
    branches: dict[cst.CSTNode | None, list[UnboundBranch]] = {}
    for branch in unbound_branches(fn, method):
        if branch.use.name not in seen:
            seen.add(branch.use.name)
            branches.setdefault(branch.body or branch.test, []).append(branch)
    yield from (_unbound_branch(fn, method, each) for each in branches.values())


def _none_by_expression(fn: FunctionClass, method: Method, seen: set[str]) -> Iterator[Finding]:
    """Names that a conditional expression binds to None, and whose attribute is read anyway, apart from those ``seen``."""
    for found in conditional_nones(fn, method) if not method.inherited else ():
        use = found.use
        if use.name in seen or never_happens(fn, method, use):
            continue
        seen.add(use.name)
        used, error = _used(use)
        test = " ".join(code_of(found.test).split())
        unless = f"{'unless' if found.holds else 'if'} `{test}`"
        name, there = f"`{use.name}`", "here without that test"
        longer, shorter = f"{name} in `{method.name}` of `{fn.name}`", "by a conditional expression"
        remedy = _tested_first(fn, method, use, use.name)
        fitted = [
            f"{subject} is `None` {when} but {used} {there}; it raises {error} then. {remedy}."
            for subject, when in ((longer, unless), (name, unless), (longer, shorter), (name, shorter))
        ]
        yield Finding(fn.span(use.node), fitting(*fitted), related=way_to(fn, use))


def _unbound_branch(fn: FunctionClass, method: Method, names: list[UnboundBranch]) -> Finding:
    """The finding about the names that one branch does not bind, or only one test binds: at the first read."""
    first, *others = names
    quotes = first_of([each.use.name for each in names], _MOST_NAMES)
    runs = "does not run" if first.body is None else "runs"
    shown = _first_part(first)
    return Finding(
        fn.span(first.use.node),
        fitting(
            f"{quotes} in `{method.name}` of `{fn.name}` {'are' if others else 'is'} {_in_branch(first)} but read after "
            f"it; it raises UnboundLocalError if that {runs}. {_bind_there(method, names)}."
        ),
        related=(
            *(at(fn, [shown], f"this branch does not bind {quotes}") if shown is not None else ()),
            *(note for each in others for note in at(fn, [each.use.node], f"`{each.use.name}` is read here")),
        ),
    )


def _or_meant(method: Method, use: MaybeUnbound) -> str:
    """The name that may be meant instead: certainly another one where the read is to give the name its value."""
    meant = name_with_the_words_of(method, use.name)
    statement = method.statement_around(use.node)
    if meant is None and is_name(only_target(statement), use.name):
        return ", or write the name that is meant"
    return f", or write `{meant}` if that is meant" if meant is not None else ""


def _first_part(branch: UnboundBranch) -> cst.CSTNode | None:
    """What shows a branch: its test, or its first simple statement; None if there is none."""
    if branch.body is None:
        return None
    if branch.test is not None and not branch.is_else:
        return branch.test
    node: cst.CSTNode = branch.body
    while isinstance(node, (cst.BaseSuite, cst.BaseCompoundStatement)):
        node = node.body[0] if isinstance(node, cst.BaseSuite) else node.body
    return node


def _in_branch(branch: UnboundBranch) -> str:
    """Where the name is bound, or not: in a branch, by its test if that is short."""
    test = " ".join(code_of(branch.test).split()) if branch.test is not None else ""
    short = 0 < len(test) <= _SHORT
    if branch.body is None:
        return f"bound only under `if {test}`" if short else "bound only under a test"
    if branch.is_else:
        return f"not bound in the `else` of `if {test}`" if short else "not bound in the `else`"
    return f"not bound under `if {test}`" if short else "not bound in one branch"


_SHORT = 40
_ONLY_THERE = "Use it only under that test, or give it a value in all cases"
_ALL_ONLY_THERE = "Use them only under that test, or give them values in all cases"
_MOST_NAMES = 4
"""The maximum number of names to list."""


def _bind_there(method: Method, names: list[UnboundBranch]) -> str:
    """The remedy: the branch may bind a misspelt name that nothing reads."""
    first = names[0]
    if first.body is None and any(_is_kept(method, each.use.node) for each in names):
        return "Give it a value in all cases" if len(names) == 1 else "Give them values in all cases"
    if first.body is None:
        return _ONLY_THERE if len(names) == 1 else _ALL_ONLY_THERE
    unread = sorted(first.binds - method.facts.names_read)
    similar = get_close_matches(first.use.name, unread, n=1, cutoff=0.8) if len(names) == 1 else []
    return f"Bind {them(names)} there too" + (f", or rename `{similar[0]}` if it is meant" if similar else "")


def _is_kept(method: Method, node: cst.CSTNode) -> bool:
    """Whether a name is read to be kept on ctx, where other code may read it whatever the test gives."""
    statement = method.parents.get(node)
    return isinstance(statement, cst.Assign) and any(method.is_on_ctx(each.target) for each in statement.targets)


def _unbound_in_backward(fn: FunctionClass, backward: Method, seen: set[str]) -> Iterator[Finding]:
    """Names that backward binds, or that are not None, only where some input needs a gradient."""
    for use, flags in unbound_uses(fn, backward):
        if use.name in seen or _is_too_late(fn, backward, use, flags):
            continue
        seen.add(use.name)
        together = bound_only_together(fn, backward, use, flags)
        tests = _needs(fn, flags) if together else _tests(fn, backward, flags)
        fix = bind_none_first(fn, backward, use.name)
        when = "if one does not" if together else f"when {_when(fn, needed_at(backward, use), flags)}"
        yield Finding(
            fn.span(use.node),
            f"`{use.name}` is bound only {tests} but read here without {'that test' if together else 'it'}; it raises "
            f"UnboundLocalError {when}. "
            f"{_remedy(fn, backward, use, flags, fix)}.",
            fix,
        )
    yield from _unbound_inside(fn, backward)
    for place, flags in none_uses(fn, backward):
        name = place.name or ""
        if name in seen or _is_too_late(fn, backward, place, flags):
            continue
        seen.add(name)
        tests = quoted([_test(fn, backward, index) for index in sorted(flags)], "or")
        used, error = _used(place)
        fact = (
            f"`{name}` is `None` except under {tests} but {used} here without it; it raises {error} when "
            f"{_when(fn, flags_of(place.guards), flags)}."
        )
        yield Finding(
            fn.span(place.node),
            f"{fact} {_tested_first(fn, backward, place, name, flags)}.",
            related=way_to(fn, place) if isinstance(place, MaybeNone) else (),
        )


def _tested_first(
    fn: FunctionClass, method: Method, place: MaybeNone | Mutation, name: str, flags: frozenset[int] = frozenset()
) -> str:
    """The remedy for a use of None: where a test skips the statement, what it binds first has to have a value, too.

    Not if gradients of inputs without these ``flags`` are computed from that, or, without flags, anything may be.
    """
    statement = method.statement_around(place.node)
    bound = [
        each.name
        for each in method.facts.of(Assigned)
        if method.statement_around(each.node) is statement and each.name in method.facts.names_read - {name}
        if not any(place.may_follow(other) for other in method.assignments.get(each.name, ()))
    ]
    if not bound:
        return f"Test `{name} is not None` first"
    element = _element_around(method, place.node)
    slots = {index: slot for gradients in fn.gradients for index, slot in enumerate(gradients.slots)}
    if element is not None and any(slot.node is element for slot in slots.values()):
        return f"Write `None` for `{code_of(element)}` then"
    others = [slot.node for index, slot in slots.items() if index not in flags and slot.node is not None]
    reached = names_from(method, bound) if flags else frozenset[str]()
    if not flags or element is not None or any(not reached.isdisjoint(names_in(each)) for each in others):
        return "Handle that case here"
    return f"Write `{' = '.join((*bound, 'None'))}` first, and bind and use {them(bound)} only under that test"


def _element_around(method: Method, node: cst.CSTNode) -> cst.CSTNode | None:
    """The element of a tuple or list that an expression is the beginning of: ``[grad_x, grad_w.t()]``."""
    for around in method.above(node):
        if isinstance(around, cst.Element):
            return around.value
        if not isinstance(around, (cst.Attribute, cst.Call, cst.Subscript)):
            return None
    return None


def _unbound_inside(fn: FunctionClass, method: Method) -> Iterator[Finding]:
    """Calls of functions that bind a local only if an input needs a gradient, and read it anyway."""
    for call, flags in unbound_inside(fn, method):
        names = quoted([fn.inputs[index].name for index in sorted(flags)], "and")
        needs = "needs" if len(flags) == 1 else "need"
        when = (
            f"if {names} {'does' if len(flags) == 1 else 'do'} not"
            if method is fn.forward
            else f"when {_when(fn, frozenset(), flags)}"
        )
        yield Finding(
            fn.span(call.node),
            f"`{call.by}` binds `{call.name}` only if {names} {needs} a gradient but reads it without that test; it "
            f"raises UnboundLocalError {when}. Use it only under that test there, or give it a value in all cases.",
            related=way_to(fn, call),
        )


def _unbound_in_forward(fn: FunctionClass, seen: set[str]) -> Iterator[Finding]:
    """Names that forward binds only for one input, such as a gradient that it computes in advance."""
    forward = fn.forward
    if forward is None or forward.inherited or not fn.count_judgeable:
        return
    for use, flags in unbound_uses(fn, forward):
        if use.name not in seen and max(flags) < len(fn.inputs):
            seen.add(use.name)
            together = bound_only_together(fn, forward, use, flags)
            when = "if one does not" if together else f"when {_when(fn, needed_at(forward, use), flags)}"
            kept = _is_only_kept(forward, use.node)
            remedy = f"Write `{use.name} = None` first, and test it in `backward`" if kept else _ONLY_THERE
            yield Finding(
                fn.span(use.node),
                f"`{use.name}` is bound only {_needs(fn, flags, 'and' if together else 'or')} but read here without that "
                f"test; it raises UnboundLocalError {when}. {remedy}.",
            )
    yield from _unbound_inside(fn, forward)
    for each in unbound_without_gradients(fn, forward):
        if each.use.name not in seen:
            seen.add(each.use.name)
            fact = (
                "under `torch.is_grad_enabled()`, which is always `False` in `forward`; this read always raises "
                "UnboundLocalError"
                if each.always
                else "if some input needs a gradient but read here without that test; it raises UnboundLocalError if no "
                "input does"
            )
            remedy = "Bind it without that test" if each.always else _ONLY_THERE
            yield Finding(fn.span(each.use.node), f"`{each.use.name}` is bound only {fact}. {remedy}.")


def _none_without_gradient(fn: FunctionClass, method: Method, seen: set[str]) -> Iterator[Finding]:
    """Names that are None unless inputs need a gradient, and that are used without that test.

    Those that a function gives, and in forward also those that it binds itself.
    """
    found: list[tuple[MaybeNone, frozenset[int], NoneInside | None]] = []
    found += [(use, flags, call) for use, call, flags in nones_inside(fn, method)]
    if method is not fn.backward:
        found += [(use, flags, None) for use, flags in none_uses(fn, method) if isinstance(use, MaybeNone)]
    for use, flags, call in found:
        if use.name in seen or max(flags) >= len(fn.inputs) or _is_too_late(fn, method, use, flags):
            continue
        seen.add(use.name)
        used, error = _used(use)
        word, many = ("or", "need") if call is None else ("and", "all need")
        needs = f"{quoted(names_of(fn, sorted(flags)), word)} {'needs' if len(flags) == 1 else many}"
        given = f"`{call.by}` returns `None` for `{use.name}`" if call is not None else f"`{use.name}` is `None`"
        when = "otherwise" if method is not fn.backward else f"when {_when(fn, flags_of(use.guards), flags)}"
        fact = f"{given} unless {needs} a gradient, but it {used} here without that test; it raises {error} {when}."
        yield Finding(
            fn.span(use.node),
            f"{fact} {_tested_first(fn, method, use, use.name, flags)}.",
            related=way_to(fn, use) if call is None else way_to(fn, call, use),
        )


def _is_only_kept(forward: Method, node: cst.CSTNode) -> bool:
    """Whether a read is of what forward saves or keeps on ctx, as it is: None does as well."""
    for around in forward.above(node):
        if isinstance(around, cst.Call):
            return last_name(around.func) == "save_for_backward"
        if isinstance(around, cst.Assign):
            return all(forward.is_on_ctx(each.target) for each in around.targets)
        if not isinstance(around, (cst.Arg, cst.Element, cst.Tuple)):
            return False
    return False


def _used(place: MaybeNone | Mutation) -> tuple[str, str]:
    """What happens to the name, and the error that it raises for None."""
    if isinstance(place, Mutation):
        return f"is passed to `{place.how}`", "TypeError"
    if place.by:
        return f"is passed to `{place.by}`", "AttributeError"
    if not place.how.startswith("."):
        return f"is an operand of `{place.how}`", "TypeError"
    return f"has `{place.how}` read", "AttributeError"


def _is_too_late(
    fn: FunctionClass, backward: Method, use: MaybeUnbound | MaybeNone | Mutation, flags: frozenset[int]
) -> bool:
    """Whether backward raises before: it reads an attribute that is never set (CTX306), or not then (CTX307)."""
    return never_happens(fn, backward, use) or lacks_state_before(fn, use.node, flags, flags_of(use.guards))


def _remedy(fn: FunctionClass, backward: Method, use: MaybeUnbound, flags: frozenset[int], fix: Fix | None) -> str:
    """What to write; a gradient that is bound under the flags of other inputs belongs under its own."""
    slots = [(index, slot.node) for gradients in fn.gradients for index, slot in enumerate(gradients.slots)]
    names = [(index, node.value) for index, node in slots if isinstance(node, cst.Name)]
    returned = {index for index, name in names if name == use.name}
    if len(returned) == 1 and returned < flags and bound_only_together(fn, backward, use, flags):
        returns = backward.around(use.node, cst.Return) is not None
        compute = "and compute it" if returns else "and bind and use it"
        return f"Write `{use.name} = None` first, {compute} under `{_test(fn, backward, *returned)}` alone"
    if len(returned) == 1 and returned.isdisjoint(flags):
        flag = f"`{_test(fn, backward, *returned)}`{' too' * is_computed_with_another(fn, use.name)}"
        saved = saves_only_under_others(fn, backward, use.name, frozenset(returned))
        remedy = f"{'save what it needs and ' * saved}compute it under {flag}"
        if needed_at(backward, use):
            return remedy[0].upper() + remedy[1:]
        return f"Bind `None`{'; ' if saved else ' first, and '}{remedy}"
    if fix is not None:
        return f"Write `{use.name} = None` before the test"
    asked = flags_of(use.guards)
    if asked:  # it is read unbound under other flags, too
        same = (each for each, under in unbound_uses(fn, backward) if each.name == use.name and under == flags)
        asked = asked.union(*(flags_of(each.guards) for each in same))
    if returned and not asked:
        return f"Write `{use.name} = None` first, and test `{use.name} is not None` here"
    tests = quoted([_test(fn, backward, index) for index in sorted(asked)])
    save = "Save and bind" if stored_only_under_others(fn, backward, use.name, asked) else "Bind"
    if asked:
        return f"{save} it under {tests} too"
    return "Use it only under that test, or save what it needs in all cases" if save != "Bind" else _ONLY_THERE


def _test(fn: FunctionClass, backward: Method, index: int) -> str:
    """The test for the flag of an input: if forward stores it, an attribute of ctx, or of the saved input."""
    stored = [key for key, flag in stored_flags(fn).items() if flag == index]
    kept = next(
        (key for key in stored if isinstance(key, str) and key.rpartition(".")[2] in backward.context_attributes), None
    )
    if kept is not None:
        return kept
    if "needs_input_grad" in backward.context_attributes:
        return f"{backward.ctx_name}.needs_input_grad[{index}]"
    saved = next((each.name for each in backward.facts.of(Assigned) if each.value in stored), None)
    return f"{saved}.requires_grad" if saved is not None else f"{backward.ctx_name}.needs_input_grad[{index}]"


def _tests(fn: FunctionClass, backward: Method, flags: frozenset[int]) -> str:
    """Tests of flags, one of which holds."""
    return f"under {quoted([_test(fn, backward, index) for index in sorted(flags)], 'or')}"


def _needs(fn: FunctionClass, flags: frozenset[int], word: str = "and") -> str:
    """The inputs that need a gradient, as a condition."""
    names = names_of(fn, sorted(flags))
    return f"if {quoted(names, word)} {'needs' if len(names) == 1 else 'need'} a gradient"


def _when(fn: FunctionClass, needed: frozenset[int], flags: frozenset[int]) -> str:
    """Which inputs need a gradient if the read is reached with the name unbound."""
    asked = sorted(needed)
    if not asked or max(*asked, *flags) >= len(fn.inputs):
        return "only another input needs a gradient"
    needing = quoted([fn.inputs[index].name for index in asked], "and")
    others = quoted([fn.inputs[index].name for index in sorted(flags)], "and")
    needs = "needs a gradient" if len(asked) == 1 else "need gradients"
    return f"{needing} {needs} and {others} {'does' if len(flags) == 1 else 'do'} not"
