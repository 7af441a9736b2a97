"""Reading ``ctx.saved_tensors`` once, and as the tuple that it is."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.fix import Edit
from ctxlint.fixes.context_uses import context_uses
from ctxlint.fixes.method_code import code_of_method
from ctxlint.model.analyses.saved_tensors import saved_counts, saving_call
from ctxlint.model.interpreter.events import SavedRead, TupleUsedAsTensor

if TYPE_CHECKING:
    from ctxlint.fix import Fix
    from ctxlint.fixes.method_code import MethodCode, Statement
    from ctxlint.model.function import FunctionClass
    from ctxlint.model.interpreter.method import Method

_LOOPS = (cst.For, cst.While)

# ---------------------------------------------------------------------------------------------------------------------
# CTX309: once


def bind_once(fn: FunctionClass, method: Method) -> Fix | None:
    """Bind the tuple to a name before its first use, or use its existing name, and read that everywhere."""
    code, found = code_of_method(fn, method), _reads(fn, method)
    if code is None or found is None:
        return None
    via, reads = found
    name = _name_of_all(code, reads)
    if name is not None:
        return code.fix(f"Read `{name}` instead", [_instead(code, read, name) for read in reads[1:]])
    place = _before_all(code, reads)
    if place is None:
        return None
    name = code.fresh("saved_tensors" if via == "saved_variables" else via, "saved")  # CTX601 renames the attribute
    binding = code.before(place, f"{name} = {code.layout.code(reads[0])}")
    return code.fix(f"Bind `{via}` to a name once", [binding, *(_instead(code, read, name) for read in reads)])


def drop_read(fn: FunctionClass, method: Method, read: SavedRead) -> Fix | None:
    """Remove the statement of a read that has no use."""
    code = code_of_method(fn, method)
    statement = code.statement(read.node) if code is not None else None
    if code is None or statement is None or code.holds_comment(statement):
        return None
    return code.fix("Drop the unused read", [code.without(statement)])


def name_of_tuple(fn: FunctionClass, method: Method) -> str | None:
    """The name that the first read binds the tuple to, if all others may read that instead."""
    code, found = code_of_method(fn, method), _reads(fn, method)
    return _name_of_all(code, found[1]) if code is not None and found is not None else None


def _reads(fn: FunctionClass, method: Method) -> tuple[str, list[cst.Attribute]] | None:
    """What is read, ``saved_tensors`` or the like, and where; None if it cannot be replaced everywhere."""
    code = code_of_method(fn, method)
    vias = {read.via for read in method.facts.of(SavedRead)}
    if code is None or len(vias) != 1 or any(read.called for read in method.facts.of(SavedRead)):
        return None
    via = vias.pop()
    uses = context_uses(code)
    reads = uses.reads.get(via, [])
    if not reads or via in uses.stores or not uses.plain or any(code.holds_comment(read) for read in reads):
        return None
    return via, reads


def _instead(code: MethodCode, read: cst.Attribute, name: str) -> Edit:
    span = code.layout.slice.span(read)
    return Edit(code.layout.source.offset(span.start), code.layout.source.offset(span.end), name)


def _name_of_all(code: MethodCode, reads: list[cst.Attribute]) -> str | None:
    """The name that the first read is bound to, if it has the same value in all other places."""
    statement = code.statement(reads[0])
    target = _only_target(statement)
    if not isinstance(statement, cst.Assign) or statement.value is not reads[0] or not isinstance(target, cst.Name):
        return None
    if not code.in_own_scope(reads[0]) or not _keeps_its_value(code, target, reads):
        return None
    block, end = code.block(statement), code.layout.end(statement)
    if any(code.layout.start(use) < end for use in code.uses(target.value) if use is not target):
        return None
    if block is None or any(block not in code.above(read) or code.layout.start(read) < end for read in reads[1:]):
        return None
    return target.value


def _keeps_its_value(code: MethodCode, target: cst.Name, reads: list[cst.Attribute]) -> bool:
    """Whether a name has at all reads the value that ``target`` binds; the statement of the last one may rebind it."""
    rebound = [at for at in code.bindings(target.value) if at != code.layout.start(target)]
    if not rebound:
        return True
    statement = code.statement(reads[-1])
    own = _only_target(statement)
    end = code.layout.end(statement) if statement is not None else 0
    if isinstance(own, cst.Name) and own.value == target.value:
        rebound = [at for at in rebound if at != code.layout.start(own)]
    delayed = (cst.GeneratorExp, *_LOOPS)
    if any(isinstance(each, delayed) for read in reads for each in code.above(read)):
        return False
    return statement is not None and all(at > end for at in rebound) and all(map(code.in_own_scope, reads))


def _only_target(statement: cst.CSTNode | None) -> cst.BaseExpression | None:
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        return statement.targets[0].target
    return None


def _before_all(code: MethodCode, reads: list[cst.Attribute]) -> Statement | None:
    """The statement to insert the binding before: it contains or precedes all reads, and no loop repeats it."""
    shared = [node for node in code.above(reads[0]) if all(node in code.above(read) for read in reads[1:])]
    outermost = next((at for at in reversed(range(len(shared))) if isinstance(shared[at], _LOOPS)), None)
    if outermost is not None:
        shared = shared[outermost + 1 :]
    around = next((node for node in shared if isinstance(node, cst.BaseSuite)), None)
    if around is None:
        return None
    if any(isinstance(node, (cst.Try, cst.TryStar)) for node in code.up_to(around, reads[0])):
        return None  # an exception there would not be caught any more
    return code.statement_in(around, reads[0])


# ---------------------------------------------------------------------------------------------------------------------
# CTX310: as a tuple


def without_call(fn: FunctionClass, method: Method, read: SavedRead) -> Fix | None:
    """``ctx.saved_tensors()`` without its parentheses."""
    code, call = code_of_method(fn, method), read.node
    if code is None or not isinstance(call, cst.Call) or call.args or code.holds_comment(call):
        return None
    end = code.layout.source.offset(code.layout.slice.span(call).end)
    return code.fix("Drop the parentheses", [Edit(code.layout.end(call.func), end, "")])


def unpack_the_one(fn: FunctionClass, method: Method, read: SavedRead, use: TupleUsedAsTensor) -> Fix | None:
    """``x, = ctx.saved_tensors`` for ``x = ctx.saved_tensors``, if one tensor is saved and ``x`` denotes it."""
    code = code_of_method(fn, method)
    if code is None or saved_counts(fn, saving_call(method)) != frozenset({1}):
        return None
    statement = code.statement(read.node)
    target = _only_target(statement)
    if not isinstance(statement, cst.Assign) or statement.value is not read.node or not isinstance(target, cst.Name):
        return None
    if len(code.bindings(use.name)) != 1 or not code.in_own_scope(read.node):
        return None
    used = {each.node for each in method.facts.of(TupleUsedAsTensor) if each.name == use.name}
    if not all(_as_tensor(code, each, used) for each in code.uses(use.name) if each is not target):
        return None
    written = [code.layout.insert(code.layout.start(target), "("), code.layout.insert(code.layout.end(target), ",)")]
    return code.fix(f"Write `({use.name},) = ...`", written)


def _as_tensor(code: MethodCode, name: cst.Name, used: set[cst.CSTNode]) -> bool:
    """Whether a use of the name means a tensor: certainly, or as an argument of a function that may take one."""
    parent = code.parents[name]
    if parent in used or (isinstance(parent, cst.Attribute) and code.parents[parent] in used):
        return True
    if isinstance(parent, cst.Attribute):
        return parent.attr.value not in ("count", "index")
    if isinstance(parent, cst.Arg) and not parent.star:
        call = code.parents[parent]
        builtin = isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value in _BUILTINS
        return call in used or (isinstance(call, cst.Call) and not builtin)
    return isinstance(parent, (cst.BinaryOperation, cst.UnaryOperation)) and not isinstance(parent.operator, cst.Not)


_BUILTINS = frozenset(dir(builtins))
"""Many of them take a tuple: ``len``, ``zip``, ``tuple`` …"""


def index_the_one(fn: FunctionClass, method: Method, use: TupleUsedAsTensor) -> Fix | None:
    """``ctx.saved_tensors[0]`` if the tuple itself is used as a tensor and contains one."""
    code = code_of_method(fn, method)
    if code is None or saved_counts(fn, saving_call(method)) != frozenset({1}):
        return None
    reads = [node for node in context_uses(code).reads.get("saved_tensors", []) if use.node in code.above(node)]
    operands = [use.node, *use.node.children]
    operands += [child.value for child in use.node.children if isinstance(child, (cst.Arg, cst.Attribute))]
    reads = [read for read in reads if read in operands]
    if len(reads) != 1:
        return None
    return code.fix("Add `[0]`", [code.layout.insert(code.layout.end(reads[0]), "[0]")])
