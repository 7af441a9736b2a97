"""Flags that decide what forward computes, such as ``causal``, and that backward can never know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.analyses.flattened import before_copies
from ctxlint.model.analyses.undefined_attributes import attributes_known
from ctxlint.model.analyses.unread_arguments import unread_by_callee
from ctxlint.model.interpreter.events import Assigned, ContextRead, Mutation
from ctxlint.model.syntax import is_name, last_name, names_in, root_name, words_of
from ctxlint.patterns import pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctxlint.model.function import FunctionClass, Input
    from ctxlint.model.interpreter.events import ContextWrite
    from ctxlint.model.interpreter.method import Method

_MASKING = pattern(r"(?:is_|use_)?causal")
"""The name of a flag with which attention leaves out what comes later: so does its gradient."""
_TRAINING = pattern(r"(?:is_)?train(?:ing)?")
_OF_TRAINING = frozenset(
    str.split("alpha_dropout batch_norm dropout dropout1d dropout2d dropout3d feature_alpha_dropout feature_dropout")
)
"""Functions of torch that are the identity, or use other statistics, unless their flag is set."""
_STATISTICS = pattern(r"(?i:(?:softmax_)?lse|[lm]|logsumexp|delta|rng_state|philox\w*)")
"""The names of what a kernel computes next to its result: no flag can be told from them."""
_SUM_OF_VALUES = pattern(r"(?i:o|out|outputs?|(?:attn|attention)_out(?:put)?)")
"""The names of the result of attention, which does not tell the mask: that of a softmax or a dropout does."""
_CHECKING = pattern(r"_*(?i:check|valid|assert|verify|ensure|require)")
"""How the name of a function begins that may refuse what it gets."""
_LOGGING = pattern(r"_*(?i:log|logger|logging|warnings?|print|debug|info|warn|warn_once)")
"""The names of loggers, and of functions that print or warn."""
_OF_ATTENTION = 3
"""How many inputs attention saves: queries, keys and values."""


def forgotten_flags(fn: FunctionClass, backward: Method) -> Iterator[tuple[Input, ContextWrite | None]]:
    """The flags among the inputs, each with the attribute of ctx that keeps it for nothing.

    Nothing that backward reads was computed from the flag, or where it decided, apart from statistics and the result of
    attention.
    """
    forward = fn.forward
    flags = [each for each in fn.inputs if _MASKING.fullmatch(each.name) or _TRAINING.fullmatch(each.name)]
    if not flags or forward is None or fn.setup_context is not None or fn.called_directly or backward.raises_only:
        return
    if not attributes_known(fn):
        return
    words = {each.value for each in (*backward.variables, *(node.attr for node in backward.nodes_of(cst.Attribute)))}
    for flag in flags:
        decides, part = (_decides, "causal") if _MASKING.fullmatch(flag.name) else (_decides_training, "train")
        if any(part in word.lower() for word in words) or not decides(forward, flag.name):
            continue
        if may_be_refused(forward, flag.name) or not _results_depend(forward, flag.name):
            continue
        computed = _computed_from(forward, flag.name, possibly=True)
        if not _reaches(fn, backward, computed):
            yield flag, next((each for each in fn.context_writes if is_name(each.value_node, flag.name)), None)


def _decides(forward: Method, name: str) -> bool:
    """Whether forward computes something by a flag: it tests it, or passes it to a function that may read it."""
    for use in forward.named.get(name, ()):
        above = forward.parents[use]
        if isinstance(above, (cst.Param, cst.AssignTarget)):
            continue
        if isinstance(above, cst.Assign) and all(forward.is_on_ctx(each.target) for each in above.targets):
            continue
        if not isinstance(above, cst.Arg) or unread_by_callee(forward, above) is None:
            return True
    return False


def _decides_training(forward: Method, name: str) -> bool:
    """Whether forward passes a flag to a function of torch that is something else for training."""
    calls = (forward.around(each, cst.Call) for each in forward.named.get(name, ()))
    return any(each is not None and last_name(each.func) in _OF_TRAINING for each in calls)


def _results_depend(forward: Method, name: str) -> bool:
    """Whether what forward returns is computed by a flag, as far as is certain: not what it logs or checks."""
    computed = _computed_from(forward, name, possibly=False)
    nodes = [each.node for each in forward.returns]
    return any(not computed.isdisjoint(names_in(each) | _tests(forward, each)) for each in nodes)


def may_be_refused(forward: Method, name: str) -> bool:
    """Whether forward may refuse a value of a flag: it asserts something, or hands it to what returns nothing."""
    if any(name in words_of(test) for test in forward.raising_tests):
        return True
    calls = [
        forward.parents[above]
        for each in forward.named.get(name, ())
        for above in forward.above(each)
        if isinstance(above, cst.Arg)
    ]
    return any(isinstance(each, cst.Call) and _may_raise_only(forward, each) for each in calls)


def _may_raise_only(forward: Method, call: cst.Call) -> bool:
    """Whether a call may do nothing but raise: by its name, or as it returns nothing and gets nothing to write to."""
    if _CHECKING.match(last_name(call.func)):
        return True
    alone = isinstance(forward.parents[call], cst.Expr) and not _is_logging(call)
    return alone and root_name(call.func) not in forward.assignments and not any(_written_by(forward, call))


def _is_logging(call: cst.Call) -> bool:
    """Whether a call only tells somebody something."""
    return bool(_LOGGING.fullmatch(root_name(call.func) or "") or _LOGGING.fullmatch(last_name(call.func)))


def _computed_from(forward: Method, name: str, *, possibly: bool) -> set[str]:
    """The names whose values a flag decides: bound or written with it, or where it is tested."""
    found = {name}
    decided = [*_decided(forward, possibly=possibly)]
    grown = True
    while grown:
        before = len(found)
        found |= {each for each, deciding in decided if not found.isdisjoint(deciding)}
        grown = len(found) > before
    return found


def _decided(method: Method, *, possibly: bool) -> Iterator[tuple[str, set[str]]]:
    """The names that a method binds or may write to, each with the names that decide the value there.

    With ``possibly``, also what a call may write to although its result is used, and what a context manager decides.
    """
    events: list[Assigned | Mutation] = [*method.facts.of(Assigned), *method.facts.of(Mutation)]
    for event in events:
        tests = {word for guard in event.guards for word in guard.words} | _tests(method, event.node, possibly=possibly)
        yield event.name or "", tests | _deciding(method.statement_around(event.node))
    for each in method.nodes_of(cst.FunctionDef):
        yield each.name.value, set(names_in(each.body))
    stores = [each.target for each in method.nodes_of(cst.AssignTarget)]
    stores += [each.target for each in method.nodes_of(cst.AugAssign)]
    for target in stores:
        name = root_name(target) if not method.is_on_ctx(target) else None  # of ctx, each attribute counts by itself
        if name is not None and not isinstance(target, cst.Name):  # ``options["mask"] = mask``
            yield name, _tests(method, target, possibly=possibly) | _deciding(method.statement_around(target))
    for call in method.nodes_of(cst.Call):
        alone = isinstance(method.parents[call], cst.Expr)
        if (alone or possibly) and not _is_logging(call):
            deciding = _tests(method, call, possibly=possibly) | names_in(call)
            for name in _written_by(method, call, of_root=alone):  # ``tensors.append(mask)``, ``fill(mask, causal)``
                yield name, deciding


def _written_by(method: Method, call: cst.Call, *, of_root: bool = True) -> Iterator[str]:
    """The names of what a call may write to: what it is called on, and arguments that are not mere inputs."""
    name = root_name(call.func) if of_root else None
    if name is not None:
        yield name
        for each in method.assignments.get(name, ()):  # ``fill = mask.tril_``
            if each.value_node is not None and not isinstance(each.value_node, cst.Call):
                yield from names_in(each.value_node)
    inputs = {each.name for each in method.params}
    for argument in call.args:
        for name in names_in(argument.value):
            if name in method.assignments and name not in inputs and not _is_copy(method, name, inputs):
                yield name


def _is_copy(method: Method, name: str, inputs: set[str]) -> bool:
    """Whether a name is bound to an input, or a copy of one: ``queries = q.contiguous()``."""
    nodes = [before_copies(each.value_node) for each in method.assignments[name] if each.value_node is not None]
    return any(isinstance(each, cst.Name) and each.value in inputs for each in nodes)


def _tests(method: Method, node: cst.CSTNode, *, possibly: bool = False) -> set[str]:
    """The names that decide whether a node is evaluated: in tests around it, and around what may skip it."""
    above = (*method.above(node),)
    found = {name for each in above for name in _tested(each, possibly=possibly)}
    loops = [each for each in above if isinstance(each, (cst.For, cst.While))]
    for jump in (*method.nodes_of(cst.Continue), *method.nodes_of(cst.Break)) if loops else ():
        around = [*method.above(jump)]
        if any(each in loops for each in around):
            found |= {name for each in around for name in _tested(each)}
    for jump in method.nodes_of(cst.Return):
        if node in method.parents and method.precedes(jump, node):
            found |= {name for each in method.above(jump) for name in _tested(each)}
    return found


def _tested(node: cst.CSTNode, *, possibly: bool = False) -> Iterator[str]:
    """The names that a statement decides by."""
    if isinstance(node, (cst.If, cst.While, cst.IfExp)):
        yield from words_of(node.test)
    elif isinstance(node, cst.Match):
        yield from words_of(node.subject)
        yield from (word for each in node.cases if each.guard is not None for word in words_of(each.guard))
    elif isinstance(node, cst.For):
        yield from names_in(node.iter)
    elif isinstance(node, cst.With) and possibly:
        yield from (name for each in node.items for name in names_in(each))


def _deciding(statement: cst.CSTNode | None) -> set[str]:
    """The names in a statement that decide what it binds."""
    if isinstance(statement, (cst.For, cst.With)):
        parts: list[cst.CSTNode] = [statement.iter] if isinstance(statement, cst.For) else [*statement.items]
        return {name for part in parts for name in names_in(part)}
    return set(names_in(statement)) if isinstance(statement, cst.BaseSmallStatement) else set()


def _untelling_results(fn: FunctionClass) -> set[str]:
    """The names of the outputs that are results of attention."""
    inputs = {each.name for each in fn.inputs}
    nodes = [slot.node for call in fn.saves for slot in call.arguments if slot.node is not None]
    saved = {name for node in nodes for name in names_in(node)}
    if len(saved & inputs) < _OF_ATTENTION:
        return set()
    returned = (slot.node for each in fn.outputs for slot in each.slots)
    return {each.value for each in returned if isinstance(each, cst.Name) and _SUM_OF_VALUES.fullmatch(each.value)}


def _reaches(fn: FunctionClass, backward: Method, names: set[str]) -> bool:
    """Whether backward reads one of some names, or what depends on it, from ctx: no such results, no statistics."""
    results = _untelling_results(fn)
    telling = {each for each in names if each not in results and not _STATISTICS.fullmatch(each)}
    read = {each.attribute for each in backward.facts.of(ContextRead)}
    writes = [each for name in read for each in fn.writes_by_attribute.get(name, ())]
    nodes = [each.value_node for each in writes] + [slot.node for call in fn.saves for slot in call.arguments]
    places = (*writes, *fn.saves)
    tests = {word for each in places for guard in each.guards for word in guard.words}
    tests |= {
        word for each in places if not each.by and fn.forward for word in _tests(fn.forward, each.node, possibly=True)
    }
    return not telling.isdisjoint(tests) or any(
        node is None or not telling.isdisjoint(names_in(node)) for node in nodes
    )
