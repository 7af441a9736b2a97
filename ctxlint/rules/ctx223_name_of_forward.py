"""CTX223: backward reads a name that only forward binds, or a method one that nothing binds."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.foreign_names import misused_builtins, names_of_forward, pauses, undefined_names
from ctxlint.model.analyses.gradient_names import is_for_an_input
from ctxlint.model.analyses.outputs import is_read
from ctxlint.model.analyses.reachability import backward_never_runs
from ctxlint.model.analyses.saved_reads import read_backs
from ctxlint.model.analyses.saved_tensors import mismatched, saved_counts, saving_call
from ctxlint.model.function import FunctionClass
from ctxlint.model.interpreter.events import MisfitCall, MisfitKind
from ctxlint.model.interpreter.values import Sequence
from ctxlint.model.syntax import is_name
from ctxlint.rules.base import Finding, Rule
from ctxlint.rules.misfit_wording import misfits
from ctxlint.rules.related import at, way_to
from ctxlint.rules.wording import first_of, fitting, if_it_runs, moment, name_with_the_words_of, quoted, them

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.config.settings import Settings
    from ctxlint.diagnostic import Related
    from ctxlint.model.interpreter.method import Method
    from ctxlint.rules.misfit_wording import MisfitFound


class NameOfForward(Rule[FunctionClass]):
    """
    ## What it does
    Reports a name in `backward` that is a parameter or a local variable of `forward` and means nothing in `backward`.
    Also one in `forward`, `setup_context`, `backward`, `jvp`, `vmap` or `symbolic`, or in a function of the project that
    these call, that nothing in its file defines, such as an old name of the incoming gradient.

    ## Why is this bad?
    The two are separate functions, and values pass from one to the other only through ctx. The name is not defined in
    the method, which raises `NameError` whenever that line runs; or it is that of a builtin such as `input`, which is
    not a tensor.

    ## Example
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            return x * scale

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * scale, None
    ```

    ## Use instead
    ```python
    import torch


    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.scale = scale
            return x * scale

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * ctx.scale, None
    ```

    ## Fix safety
    There is no fix.

    ## Known limits
    Not reported if the module defines the name or star-imports a module that may, which is unknown of modules outside
    of the project, under `try`, under a test of a constant of the module such as `use_cupy = False`, or of a local flag
    that only ever is `False`, nor, for a name that is not one of `forward`, in a file that reads `globals`, `vars`,
    `exec`, `builtins` or `sys.modules`, or passes its `__name__` to a function in a statement of its own. The name of a builtin function such as `input` is reported where it is used in
    arithmetic, indexed, or has an attribute read that the builtin lacks; and `input()` as a statement, which is left over from
    debugging.

    ## References
    - [Extending torch.autograd](https://pytorch.org/docs/stable/notes/extending.html)
    """

    code = "CTX223"
    name = "name-of-forward"
    subject = FunctionClass
    says_if_it_runs = True

    def check(self, fn: FunctionClass, settings: Settings) -> Iterator[Finding]:
        if fn.legacy_state is not None and settings.torch.reach(1, 5):  # then torch calls none of its methods
            return
        backward, dead = fn.backward, fn.reading_methods if backward_never_runs(fn) else ()
        if not fn.patched:
            yield from _undefined_inside(fn, dead)
            yield from _pauses(fn, dead)
        if backward is None or backward.inherited or fn.forward is None or fn.patched:
            return
        for method in fn.earlier_methods:
            if not method.inherited:
                yield from _misused(fn, method)
                yield from _unknown(fn, method) if method is fn.setup_context else _undefined(fn, method, set())
        mapped = ("vmap",) * ("setup_context" in fn.methods)  # without it, torch raises before: CTX107
        others = (fn.methods.get(name) for name in ("jvp", *mapped, "symbolic"))
        for later in (backward, *others):
            if later is not None and not later.inherited and later not in dead:
                yield from _unknown(fn, later)


def _unknown(fn: FunctionClass, method: Method) -> Iterator[Finding]:
    """The findings about names that a method does not know, those of forward first."""
    saved = saved_counts(fn, saving_call(method)) if method in fn.reading_methods else None
    if saved is not None and any(mismatched(method, saved)):  # CTX305: the unpacking raises first
        return
    seen: set[str] = set()
    for node, error in names_of_forward(fn, method):
        if node.value in seen:
            continue
        seen.add(node.value)
        here = "a name of `forward` only" if error == "NameError" else "Python's builtin, not a name of `forward`"
        yield Finding(
            fn.span(node),
            f"`{node.value}` in `{method.name}` of `{fn.name}` is {here}; it raises {error} {moment(method)}"
            f"{if_it_runs(fn, method, node)}. "
            f"{_dropped(method, node).format('it') or _remedy(fn, method, node.value)}.",
        )
    yield from _undefined(fn, method, seen)


def _pauses(fn: FunctionClass, dead: tuple[Method, ...]) -> Iterator[Finding]:
    """The findings about the builtin ``input``, called as a statement."""
    methods = (*fn.earlier_methods, *((fn.backward,) if fn.backward is not None else ()))
    for method in (each for each in methods if each not in dead):
        for call in pauses(fn, method) if not method.inherited else ():
            what = f"`input` in `{method.name}` of `{fn.name}` is Python's builtin"
            yield Finding(
                fn.span(call),
                f"{what}; it waits for a line from the terminal{if_it_runs(fn, method, call)}, and raises EOFError without "
                f"one. Remove it.",
            )


def _misused(fn: FunctionClass, method: Method) -> Iterator[Finding]:
    """The finding about the first builtin that a method uses as a tensor."""
    for node, error in misused_builtins(fn, method):
        what = f"`{node.value}` in `{method.name}` of `{fn.name}` is Python's builtin"
        runs = if_it_runs(fn, method, node)
        yield Finding(fn.span(node), f"{what}; it raises {error} at `apply`{runs}. Write the name of the tensor.")
        return


def _undefined(fn: FunctionClass, method: Method, seen: set[str]) -> Iterator[Finding]:
    """The findings about names in a method that nothing defines, apart from those that were ``seen``.

    One for the names in a statement that have to be defined.
    """
    found: dict[tuple[str, cst.CSTNode], list[cst.Name]] = {}
    for node in undefined_names(fn, method):
        if node.value not in seen:
            seen.add(node.value)
            remedy = _dropped(method, node) or _definition(fn, method, node)
            around = next((each for each in method.above(node) if isinstance(each, cst.BaseSmallStatement)), node)
            found.setdefault((remedy, around if remedy.startswith((_DEFINE, _DROP)) else node), []).append(node)
    for (remedy, _around), nodes in found.items():
        names = [each.value for each in nodes]
        what = f"{first_of(names, _MOST_NAMES)} in `{method.name}` of `{fn.name}` {'is' if len(nodes) == 1 else 'are'} not defined"
        meant = [each for name in names[:_MOST_NAMES] if (each := name_with_the_words_of(method, name)) is not None]
        advice = (
            f"Define them, or write {quoted(meant)} if these are meant" if len(meant) == len(nodes) else _DEFINE_ALL
        )
        if len(nodes) == 1:
            advice = remedy if remedy != _DEFINE else _similar(fn, method, names[0])
        if remedy.startswith(_DROP):
            advice = remedy.format(them(nodes))
        effect = f"it raises NameError {moment(method)}{if_it_runs(fn, method, nodes[0])}"
        skipped = any(isinstance(each, (cst.If, cst.For, cst.While)) for each in method.above(nodes[0]))
        if advice == _DEFINE and not skipped and _lacks_a_parameter(fn, method, names[0]):
            effect = "every call of `apply` raises"  # NameError, or TypeError if the call passes it
            advice = f"Add it to the parameters, as `backward` returns {len(fn.inputs) + 1} gradients"
        yield Finding(fn.span(nodes[0]), fitting(f"{what}; {effect}. {advice}."))


def _dropped(method: Method, node: cst.Name) -> str:
    """What to write for a name that is only passed where the function of the project that is called has no parameter.

    With ``{0}`` for "it" or "them".
    """
    remedies = {_without(method, each) for each in method.named[node.value]}
    return remedies.pop() if len(remedies) == 1 else ""


def _without(method: Method, node: cst.Name) -> str:
    """The same for one read of it; empty if the call takes it, or would raise without it."""
    argument = method.parents.get(node)
    if not isinstance(argument, cst.Arg) or argument.value is not node:
        return ""
    call = method.parents.get(argument)
    found = next((each.misfit for each in method.facts.of(MisfitCall) if each.node is call and not each.by), None)
    if not isinstance(call, cst.Call) or found is None or found.kind is not MisfitKind.CALL:
        return ""
    if found.missing or found.twice or found.meant or found.receiver or found.unread:
        return ""
    by_position = [each for each in call.args if each.keyword is None]
    is_unknown = argument.keyword is not None and argument.keyword.value in found.unknown
    if not is_unknown and argument not in by_position[len(by_position) - found.surplus :]:
        return ""
    few = 0 < len(found.params) <= _MOST_NAMES
    return f"{_DROP}: `{found.callee}` {f'takes only {quoted(found.params)}' if few else 'does not take {0}'}"


def _undefined_inside(fn: FunctionClass, dead: tuple[Method, ...]) -> Iterator[Finding]:
    """The findings about functions that the methods call, one for each that reads names; not about names of the methods.

    Several calls may lead to the same function: the finding is at the first, with notes about the others.
    """
    found: dict[tuple[Method, str, str], list[MisfitFound]] = {}
    for each in misfits(fn, MisfitKind.UNDEFINED_NAME):
        found.setdefault((each.method, each.by, each.misfit.steps[-1].path), []).append(each)
    for (method, by, _path), reads in found.items():
        own = {node.value for node in undefined_names(fn, method)}
        inside = [each for each in reads if each.misfit.callee not in own]
        if inside and method not in dead:
            first = inside[0]
            skipped = "" if any(not each.unless_skipped for each in inside) else first.unless_skipped
            names = list(dict.fromkeys(each.misfit.callee for each in inside))
            are, remedy = ("is", _DEFINE_INSIDE) if len(names) == 1 else ("are", _DEFINE_ALL_INSIDE)
            through = f" through `{first.event.by}`" * (len(first.misfit.steps) > 1)
            where = f"{first_of(names, _MOST_NAMES)} in {by}, which `{method.name}` of `{fn.name}` calls{through},"
            message = f"{where} {are} not defined; it raises NameError {moment(method)}{skipped}. {remedy}."
            yield Finding(fn.span(first.event.node), message, related=_places(fn, inside))


def _places(fn: FunctionClass, inside: list[MisfitFound]) -> tuple[Related, ...]:
    """The way to each read of an undefined name, and the further calls that lead to one."""
    first = inside[0].event.node
    calls = {each.event.node: each.event.by for each in inside if each.event.node is not first}
    others = (note for node, by in calls.items() for note in at(fn, [node], f"`{by}` is called here, too"))
    return (*others, *way_to(fn, *(each.event for each in inside)))


def _lacks_a_parameter(fn: FunctionClass, method: Method, name: str) -> bool:
    """Whether backward returns one gradient more than forward has inputs: the only undefined name is the missing one.

    A name that is called is rather a function that is not imported.
    """
    counts = {each.count for each in fn.gradients}
    if method is not fn.forward or method.variadic is not None or counts != {len(fn.inputs) + 1}:
        return False
    others = any(each.value != name for each in undefined_names(fn, method))
    return not others and not any(is_name(call.func, name) for call in method.nodes_of(cst.Call))


_DEFINE = "Define or import it"
_DEFINE_ALL = "Define or import them"
_DEFINE_INSIDE = "Define or import it, or correct the name"
_DEFINE_ALL_INSIDE = "Define or import them, or correct the names"
_DROP = "Drop {0}"
_SHORT = 4
"""The length of names that are often alike by chance."""
_MOST_NAMES = 3
"""The maximum number of names to list."""


def _definition(fn: FunctionClass, method: Method, node: cst.Name) -> str:
    """What to write for a name that nothing defines; that of a gradient may be an old name of the unread parameter.

    Unless it is that of the gradient of an input, which backward has to compute: ``grad_input``.
    """
    name = node.value
    if name in _RENAMED:
        return f"Write `{_RENAMED[name]}`"
    if method is not fn.backward:
        return _DEFINE
    if name in fn.writes_by_attribute:
        return f"Write `{method.ctx_name}.{name}`"
    incoming = method.own_params
    called = isinstance(above := method.parents.get(node), cst.Call) and above.func is node
    if "grad" in name and not called and (is_for_an_input(node, fn.inputs) or _begins_like_its_input(fn, node)):
        return "Compute it first"
    if "grad" in name and not called and len(incoming) == 1 and not is_read(method, incoming[0]):
        given = f"`{incoming[0].name}`, the incoming gradient"
        if "out" in name or name == "grad":
            return f"Write {given}"
        return f"Define it, or write {given}, if that is meant"
    return _DEFINE


def _similar(fn: FunctionClass, method: Method, name: str) -> str:
    """The remedy for a single name, which may be a misspelt one: of one that the method never reads, or very similar.

    Or of the only similar one that the file imports and never uses.
    """
    bound = {*method.binders, *(each.name for each in method.own_params)}
    similar = get_close_matches(name, sorted(bound - method.facts.names_read), n=1, cutoff=0.8)
    similar = similar or [each for each in sorted(bound) if _is_misspelt(name, each)]
    similar = similar or [each for each in (name_with_the_words_of(method, name),) if each is not None]
    similar = similar or _unused_imports(fn, method, name)
    return f"Define it, or write `{similar[0]}` if that is meant" if similar else _DEFINE


def _unused_imports(fn: FunctionClass, method: Method, name: str) -> list[str]:
    """The only import of the file that is never used and has a similar name; of torch for a call, which has to fit."""
    module = method.home.unit.index.module.names if method.home is not None else {}
    imported = [each for each, bounds in module.items() if all(bound.kind == "import" for bound in bounds)]
    if any(isinstance(call := method.parents.get(each), cst.Call) and call.func is each for each in method.named[name]):
        imported = [each for each in imported if all(b.target.startswith("torch.") for b in module[each])]
    alike = get_close_matches(name, imported, n=2, cutoff=0.8)
    if not alike:
        return []
    fn.source.read_whole()
    unused = [each for each in alike if len(re.findall(rf"\b{each}\b", fn.source.text)) == 1]
    return unused if len(unused) == 1 else []


def _is_misspelt(name: str, other: str) -> bool:
    """Whether the letters of two names are the same in another order, as in ``fitlers`` for ``filters``."""
    return len(name) > _SHORT and name.isalpha() and sorted(name) == sorted(other)


_RENAMED = {"long": "int", "unicode": "str", "xrange": "range"}
"""The builtins of Python 2 under another name."""


def _begins_like_its_input(fn: FunctionClass, node: cst.Name) -> bool:
    """Whether a name is returned for one of several inputs, and its last word abbreviates that: ``grad_b`` for ``bias``."""
    at = {index for each in fn.gradients for index, slot in enumerate(each.slots) if slot.node is node and index}
    word = node.value.rpartition("_")[2].lower()
    return any(index < len(fn.inputs) and fn.inputs[index].name.lower().startswith(word) for index in at)


def _remedy(fn: FunctionClass, backward: Method, name: str) -> str:
    """Where backward can read it, if forward stores it under this name."""
    if backward is fn.setup_context:
        return _remedy_in_setup(fn, backward, name)
    if backward not in fn.reading_methods:
        return _remedy_without_ctx(fn, backward, name)
    ctx = backward.ctx_name
    if name in fn.writes_by_attribute:
        return f"Write `{ctx}.{name}`"
    if fn.forward is not None and fn.forward.ctx is not None and name == fn.forward.ctx_name:
        return f"Write `{ctx}`"
    if fn.forward is not None and name in _imported(fn.forward):
        return f"Import it in `{backward.name}` too, or at module level"
    calls = fn.context_calls(saving_call(backward))
    places = {at for call in calls for at, each in enumerate(call.arguments) if is_name(each.node, name)}
    reads = [each for each in read_backs(fn) if each.method is backward]
    unpacked = {each.name for each in reads if each.index in places}
    if len(unpacked) == 1 and None not in unpacked:
        here = unpacked.pop()
        if any(each.name == here and each.index not in places for each in reads):  # the name of another tensor, too
            return f"Unpack it as `{name}`, not as a second `{here}`"
        return f"Write `{here}`, the name it has here"
    return f"Unpack it from `{ctx}.saved_tensors`" if places else "Pass it on through ctx"


def _remedy_in_setup(fn: FunctionClass, setup: Method, name: str) -> str:
    """What to write in ``setup_context``, which gets the inputs and the output of forward."""
    if len(setup.positional) < 2:
        return "Compute it from the inputs or the output, or return it from `forward`"
    place = _place_in_output(fn, name)
    if place is not None:
        return f"Use `{setup.positional[1].name}{place}`"
    if all(each.name != name for each in fn.inputs):
        return "Compute it from the inputs or the output, or return it from `forward`"
    return f"Unpack it from `{setup.positional[0].name}`"


def _place_in_output(fn: FunctionClass, name: str) -> str | None:
    """Where each return of forward has a name: ``[1]`` for the second element of a tuple, empty if it is all."""
    places: set[str | None] = set()
    for each in fn.outputs:
        at = next((index for index, slot in enumerate(each.slots) if is_name(slot.node, name)), None)
        unknown = at is None or not (each.known and each.exact) or any(slot.starred for slot in each.slots[:at])
        places.add(None if unknown else f"[{at}]" if isinstance(each.value, Sequence) else "")
    return places.pop() if len(places) == 1 else None


def _remedy_without_ctx(fn: FunctionClass, method: Method, name: str) -> str:
    """What to write in a method that gets no ctx: the name that ``symbolic``, whose first parameter is the graph, has."""
    if fn.forward is not None and name in _imported(fn.forward):
        return f"Import it in `{method.name}` too, or at module level"
    at = next((each.index + 1 for each in fn.inputs if each.name == name), None)
    if method.name != "symbolic" or at is None or at >= len(method.params):
        return "Add it to the parameters, or define it"
    return f"Write `{method.params[at].name}`, the name it has here"


def _imported(forward: Method) -> set[str]:
    """The names that imports in forward bind."""
    imported = forward.nodes_of(cst.ImportAlias)
    return {each.evaluated_alias or each.evaluated_name.partition(".")[0] for each in imported}
