"""Gradients that backward computes, but not with any incoming gradient, although it uses those for other inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from ctxlint.model.interpreter.local_names import target_names
from ctxlint.model.interpreter.method import variables_in
from ctxlint.model.interpreter.values import Fresh, usual_storage
from ctxlint.model.syntax import children, dotted, keywords_of
from ctxlint.torch_api import operations
from ctxlint.torch_api.autograd import FUNCTION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeGuard

    from ctxlint.model.function import FunctionClass, Returned
    from ctxlint.model.interpreter.method import Method
    from ctxlint.model.interpreter.values import Value

_KNOWN = ("torch", "math", "builtins")
"""The roots of the names outside of backward that decide nothing about the scale of a gradient."""

_CONSTANT = frozenset(
    str.split("empty empty_like full full_like new_empty new_full new_ones new_tensor ones ones_like tensor")
)
"""Functions of torch whose result is not computed from tensors: a gradient of 1 is a deliberate one."""


_NEVER_CHANGED = ("saved_tensors", "needs_input_grad")
_STATEMENTS = (cst.Expr, cst.AugAssign, cst.Assign, cst.AnnAssign, cst.Return)


def _is_in_place(node: cst.BaseExpression) -> TypeGuard[cst.Call]:
    """Whether a call writes to the tensor whose method it is, and only reads its arguments."""
    func = node.func if isinstance(node, cst.Call) and "out" not in keywords_of(node) else None
    return isinstance(func, cst.Attribute) and func.attr.value in operations.INPLACE_METHODS


def independent_gradients(fn: FunctionClass, returned: Returned) -> Iterator[tuple[int, cst.BaseExpression]]:
    """The gradients in a return, by input, that are computed with saved tensors, and certainly with no incoming one.

    Only in a body of simple statements, where all that may change a tensor is in view.
    """
    backward, ctx = fn.backward, fn.backward.ctx if fn.backward is not None else None
    if backward is None or ctx is None or fn.escapes or backward.home is None:
        return
    if len(returned.slots) < 2 or not any(_is_fresh(slot.value) for slot in returned.slots):
        return
    sources = _Sources(fn, backward)
    for index, slot in enumerate(returned.slots):
        if slot.node is not None and _is_fresh(slot.value) and sources.are_saved(slot.node):
            yield index, slot.node


def _is_fresh(value: Value) -> bool:
    """Whether backward computes a value, or what it is a view of: ``total.sum().reshape(1)``."""
    return isinstance(usual_storage(value), Fresh)


class _Sources:
    """What the value of an expression of backward is computed from."""

    def __init__(self, fn: FunctionClass, backward: Method) -> None:
        self.fn = fn
        self.method = backward
        self.names: dict[cst.CSTNode, frozenset[str]] = {}
        """By part of backward, once requested, its variables."""
        self.incoming = {param.name for param in backward.own_params}
        self.context = backward.ctx_name

    def are_saved(self, node: cst.BaseExpression) -> bool:
        """Whether they are tensors that forward saved, and numbers."""
        names, todo = set[str](), set(self._names_in(node))
        parts: list[cst.CSTNode] = [node]
        while todo.isdisjoint(self.incoming) and todo:
            name = todo.pop()
            if name in names:
                continue
            names.add(name)
            if name == self.context:
                continue
            if name not in self.method.binders:
                if not self._is_known(name):
                    return False
                continue
            for statement in {self.method.line_of_body(use) for use in self.method.named[name]}:
                if statement is None:
                    return False
                for each in statement.body:
                    if self._changes(each, name):
                        todo |= self._names_that_decide(each)
                        parts.append(each)
        if todo:  # an incoming gradient
            return False
        names -= {self.context}
        if any(map(self._reads_what_changes, parts)):
            return False
        saved = any(map(self._reads_saved, parts))
        return saved and not self._stores() and not self._calls_constant(names, node) and not self._aliased(names)

    def _reads_what_changes(self, part: cst.CSTNode) -> bool:
        """Whether a part reads ``.grad``, which ``autograd.backward`` may fill, or what a statement changes on ctx."""
        grads = (each for each in self.method.nodes_of(cst.Attribute) if each.attr.value == "grad")
        if any(self._inside(each, part) for each in grads):
            return True
        kept = (nodes for name, nodes in self.method.context_attributes.items() if name not in _NEVER_CHANGED)
        return any(any(self._inside(each, part) for each in nodes) and self._may_change(nodes) for nodes in kept)

    def _may_change(self, nodes: Sequence[cst.CSTNode]) -> bool:
        """Whether a statement that binds nothing may write to what one of some expressions is: not to an operand."""
        for node in nodes:
            statement = next((each for each in self.method.above(node) if isinstance(each, _STATEMENTS)), None)
            call = statement.value if isinstance(statement, cst.Expr) else None
            if isinstance(statement, cst.AugAssign) and self._inside(node, statement.target):
                return True
            if call is not None and not (_is_in_place(call) and not self._inside(node, call.func)):
                return True
        return False

    def _stores(self) -> bool:
        """Whether backward itself stores something in ctx."""
        nodes = (each for found in self.method.context_attributes.values() for each in found)
        return any(isinstance(self.method.parents[each], cst.AssignTarget) for each in nodes)

    def _names_in(self, node: cst.CSTNode) -> frozenset[str]:
        """The variables in a part of backward."""
        found = self.names.get(node)
        if found is None:
            todo, within = [node], list[cst.CSTNode]()
            while todo:
                each = todo.pop()
                within.append(each)
                todo += children(each)
            variables = variables_in(within, self.method.parents)
            found = self.names[node] = frozenset(each.value for each in variables)
        return found

    def _names_that_decide(self, statement: cst.BaseSmallStatement) -> frozenset[str]:
        """The variables in a statement, without those that it only binds: ``x, y = ctx.saved_tensors``."""
        if not isinstance(statement, cst.Assign):
            return self._names_in(statement)
        decide = [self._names_in(each.target).difference(target_names(each.target)) for each in statement.targets]
        return self._names_in(statement.value).union(*decide)

    def _inside(self, node: cst.CSTNode, around: cst.CSTNode) -> bool:
        return node is around or any(each is around for each in self.method.above(node))

    def _changes(self, statement: cst.BaseSmallStatement, name: str) -> bool:
        """Whether a statement binds a name, or may write to the tensor in it."""
        mentioned = [each for each in self.method.named[name] if self._inside(each, statement)]
        if not mentioned or isinstance(statement, (cst.Return, cst.Del, cst.Assert)):
            return False
        written = _written_by(statement)
        if written is not None:
            return name in written or any(map(self._may_write, mentioned))
        return True

    def _may_write(self, use: cst.Name) -> bool:
        """Whether a call in the value of an assignment may write to a tensor that it gets."""
        for each in self.method.above(use):
            if isinstance(each, cst.Call):
                called = each.func.attr.value if isinstance(each.func, cst.Attribute) else ""
                if called in operations.INPLACE_METHODS and not self._inside(use, each.func):
                    continue  # an operand
                root = _begin(each.func)
                name = root.value if isinstance(root, cst.Name) else ""
                of_tensor = name in self.method.binders and name not in self.incoming
                known = of_tensor or self._is_known(name) or isinstance(root, cst.BinaryOperation)
                if called.endswith("_") or not known or "out" in keywords_of(each):
                    return True
        return False

    def _is_known(self, name: str) -> bool:
        """Whether a name that backward does not bind is that of a module of torch or Python, or a builtin."""
        if name in ("True", "False", "None") or self.method.meaning(name).partition(".")[0] in _KNOWN:
            return True
        # By ``import *`` of a file of the project? Then the base of the class shows what it is.
        written = {dotted(each.value) for each in self.fn.node.bases} if name == "torch" else frozenset[str]()
        return not (written.isdisjoint(FUNCTION) or self.fn.base_names.isdisjoint(FUNCTION))

    def _reads_saved(self, node: cst.CSTNode) -> bool:
        """Whether a part of an expression is a saved tensor."""
        return any(self._inside(each, node) for each in self.method.context_attributes.get("saved_tensors", ()))

    def _calls_constant(self, names: set[str], node: cst.BaseExpression) -> bool:
        """Whether one of the values comes from a constant."""
        for call in self.method.nodes_of(cst.Call):
            if (dotted(call.func) or "").rpartition(".")[2] in _CONSTANT:
                statement = self.method.line_of_body(call)
                inside = self._inside(call, node)
                if inside or statement is None or not names.isdisjoint(self._names_in(statement)):
                    return True
        return False

    def _aliased(self, names: set[str]) -> bool:
        """Whether a statement may write to one of the tensors under another name."""
        names = names.intersection(self.method.binders)
        aliases = set[str]()
        grown = True
        while grown:
            before = len(aliases)
            for each in self.method.nodes_of(cst.Assign):
                if not (names | aliases).isdisjoint(self._names_in(each.value)):
                    aliases.update(*(self._names_in(target) for target in each.targets))
            grown = len(aliases) > before
        return any(self._writes(use) for alias in aliases - names for use in self.method.named.get(alias, ()))

    def _writes(self, use: cst.Name) -> bool:
        """Whether a statement may write to the tensor in a name."""
        statement = self.method.line_of_body(use)
        if statement is None:
            return True
        for each in statement.body:
            if self._inside(use, each) and not isinstance(each, (cst.Return, cst.Del, cst.Assert)):
                written = _written_by(each, bound=False)
                if written is None or use.value in written or self._may_write(use):
                    return True
        return False


def _written_by(statement: cst.BaseSmallStatement, *, bound: bool = True) -> frozenset[str] | None:
    """The names that a statement itself binds or whose tensors it modifies; None if that is unknown.

    An index and an argument are only read: ``x[mask] = 0``, ``x.masked_fill_(mask, 0)``. Without ``bound``, only the
    tensors that it modifies.
    """
    if isinstance(statement, cst.AugAssign):
        return _names_written(statement.target, bound=True)
    if isinstance(statement, cst.Assign):
        found = [_names_written(each.target, bound=bound) for each in statement.targets]
        return frozenset().union(*(each for each in found if each is not None)) if None not in found else None
    call = statement.value if isinstance(statement, cst.Expr) else None
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute):
        if call.func.attr.value in operations.INPLACE_METHODS and "out" not in keywords_of(call):
            return _names_written(call.func.value, bound=True)
    return None


def _names_written(target: cst.BaseExpression, *, bound: bool) -> frozenset[str] | None:
    """The names in a target, or that of the tensor of which it is a part or a view: ``x.view(-1)[0]``."""
    if isinstance(target, cst.Name):
        return frozenset([target.value] if bound else [])
    if isinstance(target, (cst.Tuple, cst.List)):
        found = [_names_written(each.value, bound=bound) for each in target.elements]
        return frozenset().union(*(each for each in found if each is not None)) if None not in found else None
    begin = _begin(target)
    return frozenset([begin.value]) if isinstance(begin, cst.Name) else None


def _begin(node: cst.BaseExpression) -> cst.BaseExpression:
    """Where a chain of attributes, indices and calls begins: ``x`` of ``x.sum().reshape``."""
    while isinstance(node, (cst.Subscript, cst.Attribute, cst.Call)):
        node = node.func if isinstance(node, cst.Call) else node.value
    return node
