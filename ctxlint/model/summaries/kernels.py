"""Kernels written in Python, for Triton, numba, warp and cuTile: the parameters that they write through.

Pointers are derived by sums and differences only; a value that is loaded through one is not a pointer. A store under a
flag that the launch determines counts if the flag is known.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.effort import spend
from ctxlint.model.index.kernel_names import Aliases, aliases_in, meaning_in_kernel
from ctxlint.model.index.kernel_parameters import parameters_of
from ctxlint.model.index.kernel_pointers import pointer_uses
from ctxlint.model.index.project import Definition
from ctxlint.model.index.scopes import LOCAL, Scope, dotted_name, resolve, resolve_certainly
from ctxlint.model.interpreter.events import Misfit, Step
from ctxlint.model.interpreter.signatures import are_shifted
from ctxlint.model.interpreter.values import NONE, before_star, is_whole_number, tensor_when_used
from ctxlint.model.summaries.callables import owner_of
from ctxlint.model.summaries.in_force import is_in_force
from ctxlint.model.syntax import code_of, last_name
from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import nodes_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ctxlint.model.index.file_index import FunctionRecord
    from ctxlint.model.index.kernel_addresses import Kernel
    from ctxlint.model.index.kernel_pointers import PointerUses
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.interpreter.values import Slot

    Found = dict[str, tuple[Step, ...]]
    """The parameters that are written, each with the steps to the writing statement."""

_KERNELS = ("triton.jit", "triton.runtime.jit.jit", "numba.cuda.jit", "warp.kernel", "cuda.tile.kernel")
_STATIC = "builtins.staticmethod"
_AROUND_KERNELS = ("autotune", "heuristics", "jit", "warp.kernel", "cuda.tile.kernel")

_MAX_DEPTH = 8
"""The maximum depth of kernels that call other kernels."""

_LANGUAGE = ("triton.language.", "triton.experimental.gluon.language.", "numba.cuda.", "warp.", "cuda.tile.")

_SAME_POINTER = frozenset(["advance", "multiple_of", "max_contiguous", "max_constancy", "cast", "broadcast_to", "to"])
"""Functions and methods that return their first operand, or an address near it."""

_VARYING = frozenset(
    (
        *("triton.language.program_id", "triton.language.load", "numba.cuda.grid", "warp.tid"),
        *("cuda.tile.bid", "cuda.tile.gather", "cuda.tile.load"),
    )
)

_MAKERS = frozenset(["make_block_ptr", "make_tensor_descriptor", "_experimental_make_tensor_descriptor"])

_POINTING = _MAKERS | _SAME_POINTER

ONE_OF = " or "
"""Between two parameters one of which is written."""

_ELSEWHERE = "?"
"""Instead of a parameter: an address of unknown origin, in a name that was one of a parameter before."""


def kernel_writes(
    project: Project,
    definition: Definition,
    values: Mapping[str, object],
    depth: int = 0,
    unknown: frozenset[str] = frozenset(),
) -> Found:
    """The parameters through which a kernel certainly writes.

    ``values`` are those of its parameters that the launch is known to pass, by name; it may pass others than the
    defaults for the ``unknown`` ones.
    """
    record = definition.unit.index.functions.get(definition.qualname)
    if record is None or not record.certain or depth > _MAX_DEPTH:
        return {}
    arguments = record.node.args
    params = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    tuned = _tuned(record)
    known = {name: value for name, value in _defaults(arguments).items() if name not in unknown and tuned is not None}
    known = {name: value for name, value in {**known, **values}.items() if name not in (tuned or ())}
    launched = set(_constants(record.node))
    scope = Scope("function", definition.qualname, record.scope)
    pointers = {each.arg: {each.arg} for each in params}
    spend(200)
    kernel = _Kernel(project, definition, scope, frozenset(pointers), launched, known, depth, pointers)
    kernel.aliases = aliases_in(project, definition.unit, definition.qualname)
    kernel.compares = _compares(record.node)
    return kernel.block(record.node.body)


@lru_cache(maxsize=64)
def _compares(kernel: Kernel) -> bool:
    """Whether some test of a kernel compares values."""
    return any(isinstance(each, ast.If) and isinstance(each.test, ast.Compare) for each in _inside(kernel))


def _decorators(record: FunctionRecord) -> list[ast.expr]:
    """The decorators of a kernel; ``@staticmethod``, for one in a class, does not change what its launches mean."""
    decorators = record.node.decorator_list
    return decorators[1:] if decorators and _called(decorators[0], record.scope) == _STATIC else decorators


def _tuned(record: FunctionRecord) -> frozenset[str] | None:
    """The words in the decorators that tune a kernel, which may pass parameters of these names; None for unknown."""
    texts = _tuning(record)
    if any("Config(" not in each and "lambda" not in each for each in texts):
        return None
    return _words(texts)


def _tuning(record: FunctionRecord) -> tuple[str, ...]:
    """The code of the decorators around the innermost one: each launch asks for it."""
    return _code_of(tuple(_decorators(record)[:-1]))


@lru_cache(maxsize=64)
def _code_of(decorators: tuple[ast.expr, ...]) -> tuple[str, ...]:
    return tuple(map(ast.unparse, decorators))


@lru_cache(maxsize=64)
def _words(texts: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word for each in texts for word in _WORD.findall(each))


_WORD = pattern(r"\w+")


def _passed_by(decorators: list[ast.expr]) -> frozenset[str] | None:
    """The parameters that decorators pass: all keys of the tables in them; None if some are not written out."""
    found = set[str]()
    for each in decorators[:-1]:
        table = each.args[0] if isinstance(each, ast.Call) and each.args else None
        if isinstance(table, ast.ListComp):
            tables = [table.elt]
        else:
            tables = table.elts if isinstance(table, ast.List) else [table] if isinstance(table, ast.Dict) else []
        inside = [one.args[0] if isinstance(one, ast.Call) and one.args else one for one in tables]
        keys = [key for one in inside for key in (one.keys if isinstance(one, ast.Dict) else [None])]
        if not keys or not all(isinstance(key, ast.Constant) for key in keys):
            return None
        found |= {str(key.value) for key in keys if isinstance(key, ast.Constant)}
    return frozenset(found)


def is_kernel(project: Project, definition: Definition, made: bool = False) -> bool:
    """Whether a function has a kernel decorator, and none that may change the meaning of its arguments.

    ``made``: something else makes a kernel of it.
    """
    unit, record = definition.unit, definition.unit.index.functions.get(definition.qualname)
    if record is None:
        return False
    decorators = _decorators(record)
    aliases = aliases_in(project, unit, definition.qualname) if decorators else ()
    names = [_called(each, record.scope, aliases) for each in decorators]
    if not (made or any(each in _KERNELS for each in names)):
        return False
    return all(
        name.endswith(_AROUND_KERNELS) or _only_tunes(project, unit, name, isinstance(each, ast.Call))
        for name, each in zip(names, decorators)
    )


def _called(node: ast.expr, scope: Scope, aliases: Aliases = ()) -> str:
    """The resolved name of what an expression calls, or is."""
    func = node.func if isinstance(node, ast.Call) else node
    name, found = dotted_name(func) or "", meaning_in_kernel(func, scope, aliases)
    if found:
        return found
    owner = scope.owner(name)
    return LOCAL + name if owner is not None and owner.kind == "module" else ""


def _only_tunes(project: Project, unit: Unit, name: str, called: bool) -> bool:
    """Whether a decorator of the project gives the kernel to ``triton.autotune(...)`` and the like.

    ``tuned = triton.autotune(...)``, ``def tuned(keys): return triton.autotune(..., key=keys)``, or
    ``def tuned(kernel): return triton.autotune(...)(kernel)``.
    """
    found = owner_of(project, unit, name) if name and not name.startswith(_NOT_OF_PROJECTS) else None
    if found is None or found[1]:
        return False
    home, _owner, last, scope = found
    bounds = scope.names.get(last, ())
    if len(bounds) != 1 or bounds[0].conditional:
        return False
    if bounds[0].kind == "assign":
        return not called and _tunes(bounds[0].value, scope)
    record = home.index.functions.get(bounds[0].target) if bounds[0].kind == "def" else None
    return record is not None and not record.node.decorator_list and _returns_tuned(record.node, record.scope, called)


def _returns_tuned(function: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, called: bool) -> bool:
    """Whether all that a decorator, or one that it returns if it is ``called``, returns is a tuned kernel."""
    inner = {each.name: each for each in function.body if isinstance(each, ast.FunctionDef)}
    own = [each for each in function.body if not isinstance(each, ast.FunctionDef)]
    returned = [each.value for part in own for each in nodes_in(part) if isinstance(each, ast.Return)]
    if called:
        return bool(returned) and all(
            _tunes(each, scope)
            or (isinstance(each, ast.Name) and each.id in inner and _returns_tuned(inner[each.id], scope, called=False))
            for each in returned
        )
    kernels = [each.arg for each in function.args.args[:1]]
    return bool(returned) and all(_is_tuned(each, kernels, scope) for each in returned)


def _is_tuned(node: ast.expr | None, kernels: list[str], scope: Scope) -> bool:
    """Whether it is the kernel, or ``triton.autotune(...)(kernel)``."""
    while isinstance(node, ast.Call) and len(node.args) == 1 and _tunes(node.func, scope):
        node = node.args[0]
    return isinstance(node, ast.Name) and node.id in kernels


def _tunes(node: ast.expr | None, scope: Scope) -> bool:
    """Whether it is ``triton.autotune(...)``, or the like."""
    return isinstance(node, ast.Call) and _called(node, scope).endswith(_TUNING)


_TUNING = ("autotune", "heuristics")
_NOT_OF_PROJECTS = ("torch.", "builtins.", "triton.")


def kernel_bound(project: Project, unit: Unit, name: str, made: bool = False, hops: int = 0) -> Definition | None:
    """The kernel that a module or a class binds a name to: ``tuned = triton.autotune(…)(kernel)``, ``a = kernel``."""
    found = owner_of(project, unit, name)
    if found is None or hops > _MAX_DEPTH:
        return None
    home, _owner, last, scope = found
    for bound in reversed(scope.names.get(last, ())):
        if bound.conditional or (bound.kind == "assign") is (bound.value is None):
            return None
        if bound.kind == "def":
            definition = Definition(home, bound.target)
            return definition if is_kernel(project, definition, made) else None
        value = bound.value
        while isinstance(value, ast.Call):
            around = value.func.func if isinstance(value.func, ast.Call) else value.func
            maker = resolve(dotted_name(around) or "", scope)
            if maker is None or not maker.endswith((*_AROUND_KERNELS, _STATIC)) or not value.args:
                return None
            made |= maker in _KERNELS
            value = value.args[0]
        wrapped = dotted_name(value) if value is not None else None
        if wrapped is None:
            return None
        if wrapped != last:  # else an earlier binding of the same name
            meant = resolve_certainly(wrapped, scope)
            return kernel_bound(project, home, meant, made, hops + 1) if meant is not None else None
    return None


def bound_to_kernel(
    definition: Definition, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot], open_ended: bool = False
) -> tuple[dict[str, Slot], frozenset[str]] | None:
    """The arguments of a launch by parameter, and the parameters that those after stars may be for.

    None if the kernel cannot take so many.
    """
    params, known = parameters_of(definition), before_star(arguments)
    if len(known) > len(params):
        return None
    may_be_passed = params[len(known) :] if open_ended or len(known) < len(arguments) else ()
    return {**dict(zip(params, known)), **keywords}, frozenset(may_be_passed).difference(keywords)


def launch_misfit(
    project: Project,
    definition: Definition,
    arguments: tuple[Slot, ...],
    keywords: Mapping[str, Slot],
    open_ended: bool,
) -> Misfit | None:
    """What a kernel of Triton does not take of these arguments; None if nothing is certain.

    ``autotune`` and ``heuristics`` pass the parameters that they mention. A keyword may be an option of a backend.
    """
    record = definition.unit.index.functions[definition.qualname]
    aliases = aliases_in(project, definition.unit, definition.qualname)
    decorators = [_called(each, record.scope, aliases) for each in _decorators(record)]
    parameters = record.node.args
    if parameters.vararg is not None or parameters.kwarg is not None or decorators[-1:] != ["triton.jit"]:
        return None
    params, known = parameters_of(definition), [slot for slot in arguments if not slot.starred]
    by_position = params[: len(known)] if len(known) == len(arguments) else []
    whole, tuned = len(known) == len(arguments) and not open_ended, _passed_by(_decorators(record))
    defaults = len(parameters.defaults)
    optional = {each.arg for each in [*parameters.posonlyargs, *parameters.args][-defaults:] if defaults}
    optional |= {each.arg for each, value in zip(parameters.kwonlyargs, parameters.kw_defaults) if value is not None}
    left = tuple(each for each in params[len(known) :] if each not in keywords and each not in optional)
    missing = tuple(each for each in left if each not in tuned) if whole and tuned is not None else ()
    found = Misfit(
        definition.name,
        len(params),
        max(len(known) - len(params), 0),
        missing,
        tuple(each for each in by_position if each in keywords),
        tuple(each for each in keywords if each not in params),
        shifted=bool(missing) and are_shifted([_name_of(slot) for slot in known], params),
    )
    if found.surplus or found.missing or found.twice:
        return found
    if not whole or not _words(_tuning(record)).issuperset(left):
        return None  # it may lack one of them, which raises before the kernel is compiled
    bound = bound_to_kernel(definition, arguments, keywords, open_ended)
    constant = _constants(record.node)
    passed = {name: slot for name, slot in bound[0].items() if name not in constant} if bound is not None else {}
    spend(50)
    return _misused(found, pointer_uses(record.node, record.scope, aliases), passed)


def _name_of(slot: Slot) -> str:
    return last_name(slot.node) if slot.node is not None else ""


def _misused(misfit: Misfit, uses: PointerUses, passed: Mapping[str, Slot]) -> Misfit | None:
    """A tensor for what a kernel uses as a number, or a number for what it uses as an address."""
    for name, address in uses.numbers:
        given = passed.get(name)
        if given is not None and given.node is not None and tensor_when_used(given.value) and given.value != NONE:
            return replace(misfit, unloaded=(code_of(given.node), name, address), raises="CompilationError")
    for name in sorted(uses.addresses):
        given = passed.get(name)
        if given is not None and given.node is not None and is_whole_number(given.value):
            return replace(misfit, number=(code_of(given.node), name), raises="CompilationError")
    return None


@lru_cache(maxsize=64)
def _constants(kernel: Kernel) -> frozenset[str]:
    """The parameters that are constants when a kernel is compiled."""
    params = (*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs)
    return frozenset(each.arg for each in params if each.annotation is not None and _is_constant(each.annotation))


def _is_constant(annotation: ast.expr) -> bool:
    return "const" in ast.unparse(annotation).lower()  # `tl.constexpr`, `ct.Constant[int]`, aliases as `ConstInt`


def _defaults(arguments: ast.arguments) -> dict[str, object]:
    positional = [*arguments.posonlyargs, *arguments.args]
    found = list(zip(reversed(positional), reversed(arguments.defaults)))
    found += [(param, value) for param, value in zip(arguments.kwonlyargs, arguments.kw_defaults) if value is not None]
    return {param.arg: value.value for param, value in found if isinstance(value, ast.Constant)}


@dataclass
class _Kernel:
    """Walks the body of a kernel. ``pointers`` are the parameters that each name may point into.

    ``values`` are those of parameters that are not bound again.
    """

    project: Project
    definition: Definition
    scope: Scope
    params: frozenset[str]
    launched: set[str]
    values: dict[str, object]
    depth: int
    pointers: dict[str, set[str]]
    varying: set[str] = field(default_factory=set)
    """The names of values that differ between the programs of a launch."""
    compares: bool = True
    """Whether some test compares values: only there it matters whether they differ."""
    aliases: Aliases = ()
    left: bool = field(default=False)
    """Whether a flag of the launch may have ended the kernel."""

    def block(self, body: Iterable[ast.stmt]) -> Found:
        found: Found = {}
        for statement in body:
            if self.left:
                break
            for name, way in self.statement(statement).items():
                found.setdefault(name, way)
        return found

    def statement(self, node: ast.stmt) -> Found:
        if isinstance(node, ast.If):
            return self.branch(node)
        if isinstance(node, (ast.For, ast.While)):
            before = dict(self.pointers)
            if isinstance(node, ast.For):
                self.rebind(node.target)
            found = self.block(node.body)
            self.join(before)
            return found
        if isinstance(node, ast.With):
            for item in node.items:
                self.rebind(item)
            return self.block(node.body)
        if isinstance(node, (ast.Match, ast.Try)):
            before = dict(self.pointers)
            self.rebind(node)
            self.join(before)
            return {}
        value = node.value if isinstance(node, (ast.Expr, ast.Assign)) else None
        found = self.call(value, node) if isinstance(value, ast.Call) else {}
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            found = {**self.assigned(node), **found}
        return found

    def branch(self, node: ast.If) -> Found:
        """An ``if``: one arm of it, or both for a test of data, or what both arms write."""
        outcome = self.decided(node.test)
        if outcome is not None:
            return self.block(node.body if outcome else node.orelse)
        before = dict(self.pointers)
        first = self.block(node.body)
        left, self.left = self.left, False
        after, self.pointers = self.pointers, before
        second = self.block(node.orelse)
        self.join(after)
        if self.is_launched(node.test):
            self.left = self.left or left or _returns(node)
            passed = self.passed(node.test)
            return {name: way for name, way in first.items() if name in second or name in passed}
        self.left = False
        return {**second, **first}

    def join(self, other: Mapping[str, set[str]]) -> None:
        """Add what names may point into on another path."""
        for name, reached in other.items():
            known = self.pointers.get(name)
            if known is not reached:  # most names are not bound again
                self.pointers[name] = reached if known is None else known | reached

    def rebind(self, target: ast.AST) -> None:
        """Forget the names that are bound in ``target``."""
        for each in nodes_in(target):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                self.bind(each.id, set())

    def bind(self, name: str, reached: set[str]) -> None:
        """Point a name into these parameters, and no others."""
        self.pointers[name] = reached or ({_ELSEWHERE} if self.pointers.get(name) else set())
        self.values.pop(name, None)

    def decided(self, test: ast.expr) -> bool | None:
        """The outcome of a test of flags for this launch."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.decided(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp):
            decisive = isinstance(test.op, ast.Or)
            found = {self.decided(each) for each in test.values}
            return decisive if decisive in found else not decisive if found == {not decisive} else None
        if isinstance(test, ast.Name) and test.id in self.values:
            return bool(self.values[test.id])
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.left, ast.Name):
            right = test.comparators[0]
            if test.left.id in self.values and isinstance(right, ast.Constant):
                same = self.values[test.left.id] == right.value
                if isinstance(test.ops[0], (ast.Eq, ast.Is)):
                    return same
                return not same if isinstance(test.ops[0], (ast.NotEq, ast.IsNot)) else None
        return None

    def passed(self, test: ast.expr) -> set[str]:
        """The pointers whose presence is all that the launch determines of a test, as data decide the rest.

        What is written to one of them is then written to each tensor that is passed for it.
        """
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        found = set[str]()
        for each in parts:
            present = each.left if isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.IsNot) else None
            if isinstance(present, ast.Name) and present.id in self.params and ast.unparse(each).endswith(" None"):
                found |= self.only(present)
            elif self.is_launched(each):
                return set()
        return found

    def is_launched(self, test: ast.expr) -> bool:
        """Whether the launch determines a test: by a flag, by the module, by whether a pointer was passed."""
        if isinstance(test, ast.Name) and test.id in self.params:
            return True
        if isinstance(test, ast.Compare) and self.varies(test):
            return False
        for each in nodes_in(test):
            if isinstance(each, ast.Name) and (each.id in self.launched or each.id not in self.pointers):
                if each.id in self.launched or not self.called(each).startswith(("triton", "numba")):
                    return True
            if isinstance(each, ast.Constant) and each.value is None:
                return True
            if isinstance(each, ast.Compare) and isinstance(each.left, ast.Name) and each.left.id in self.params:
                if any(isinstance(side, ast.Constant) for side in each.comparators):
                    return True
            if isinstance(each, (ast.BoolOp, ast.UnaryOp)):
                parts = each.values if isinstance(each, ast.BoolOp) else [each.operand]
                if any(isinstance(part, ast.Name) and part.id in self.params for part in parts):
                    return True
        return False

    def varies(self, node: ast.expr) -> bool:
        """Whether an expression differs between the programs of a launch: by their index, or by what they load."""
        for each in nodes_in(node):
            if isinstance(each, ast.Name):
                if each.id in self.varying:
                    return True
            elif isinstance(each, ast.Call) and self.is_called(each.func, _VARYING):
                return True
        return False

    def assigned(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> Found:
        """An assignment: names that point somewhere, and, for numba, items that are written."""
        found: Found = {}
        value = self.reached(node.value) if node.value is not None else set()
        varies = self.compares and node.value is not None and self.varies(node.value)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Subscript):
                for name in self.only(target.value):
                    found[name] = (self.step(node, name, "item assignment"),)
            elif isinstance(target, ast.Name):
                known = self.pointers.get(target.id, set()) if isinstance(node, ast.AugAssign) else set()
                self.bind(target.id, known | value)
                if varies:
                    self.varying.add(target.id)
                elif not isinstance(node, ast.AugAssign):
                    self.varying.discard(target.id)
                if isinstance(node, ast.AnnAssign) and "constexpr" in ast.unparse(node.annotation):
                    self.launched.add(target.id)
            else:
                self.rebind(target)
        return found

    def reached(self, node: ast.expr) -> set[str]:
        """The parameters that an expression may point into."""
        if isinstance(node, ast.Name):
            return self.pointers.get(node.id, set())
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            left = self.reached(node.left)
            return left if left - {_ELSEWHERE} else self.reached(node.right) or left  # the other operand is a number
        if isinstance(node, ast.IfExp):
            outcome = self.decided(node.test)
            if outcome is not None:
                return self.reached(node.body if outcome else node.orelse)
            return self.reached(node.body) | self.reached(node.orelse)
        if isinstance(node, ast.Call):
            return self.pointed(node)
        return self.reached(node.value) if isinstance(node, ast.Subscript) else set()

    def pointed(self, node: ast.Call) -> set[str]:
        """What the result of a call points into."""
        if isinstance(node.func, ast.Attribute) and node.func.attr not in _POINTING:
            return set()  # without resolving it
        name = self.called(node.func)
        if name.startswith(_LANGUAGE) and name.rpartition(".")[2] in _POINTING:
            base = next((each.value for each in node.keywords if each.arg == "base"), None)
            first = node.args[0] if node.args else base
            return self.reached(first) if first is not None else set()
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            return self.reached(node.func.value)
        return set()

    def called(self, func: ast.expr) -> str:
        """The dotted name of the callee."""
        return meaning_in_kernel(func, self.scope, self.aliases)

    def is_called(self, func: ast.expr, names: frozenset[str]) -> bool:
        """Whether the callee is one of these; hardly any is resolved."""
        last = func.attr if isinstance(func, ast.Attribute) else None
        return (last is None or any(each.endswith(last) for each in names)) and self.called(func) in names

    def only(self, node: ast.expr) -> set[str]:
        """The only parameter that an expression certainly points into, or two by ``ONE_OF`` that it may."""
        found = self.reached(node) - self.launched
        if _ELSEWHERE in found:
            return set()
        return found if len(found) < 2 else {ONE_OF.join(sorted(found))} if len(found) == 2 else set()

    def call(self, node: ast.Call, statement: ast.stmt) -> Found:
        """What a call writes: a store, an atomic operation, another kernel that gets the pointer."""
        name = self.called(node.func)
        last = name.rpartition(".")[2]
        if name.startswith(_LANGUAGE):
            writes = last in ("scatter", "store") or last.startswith("atomic_") or ".atomic." in name
            if writes and node.args:
                return {each: (self.step(statement, each, f"tl.{last}"),) for each in self.only(node.args[0])}
            return {}
        if isinstance(node.func, ast.Attribute) and node.func.attr == "store":  # of a descriptor
            return {each: (self.step(statement, each, "store"),) for each in self.only(node.func.value)}
        inner = self.inner(name)
        if inner is None or not is_kernel(self.project, inner):
            return {}
        arguments = dict(zip(parameters_of(inner), (each for each in node.args if not isinstance(each, ast.Starred))))
        arguments |= {each.arg: each.value for each in node.keywords if each.arg is not None}
        values = {key: known for key, each in arguments.items() for known in self.constant(each)}
        found: Found = {}
        for param, way in kernel_writes(self.project, inner, values, self.depth + 1).items():
            for each in self.only(arguments[param]) if param in arguments else ():
                found[each] = (self.step(statement, each, "", inner.name), *way)
        return found

    def constant(self, node: ast.expr) -> list[object]:
        if isinstance(node, ast.Constant):
            return [node.value]
        return [self.values[node.id]] if isinstance(node, ast.Name) and node.id in self.values else []

    def inner(self, name: str) -> Definition | None:
        """The kernel of the project that a name refers to."""
        if name.startswith(LOCAL):
            unit, qualname = self.definition.unit, name[len(LOCAL) :]
            line = unit.index.functions[self.definition.qualname].node.lineno
            return Definition(unit, qualname) if is_in_force(unit, qualname, line) else None
        if not name or name.startswith("builtins."):
            return None
        return self.project.certainly(self.definition.unit, name)

    def step(self, node: ast.stmt, param: str, how: str, to: str = "") -> Step:
        unit, name = self.definition.unit, self.definition.name
        written = param.replace(ONE_OF, f"`{ONE_OF}`")
        note = f"`{name}` passes `{written}` to `{to}` here" if to else f"`{name}` writes through `{written}` here"
        span = unit.source.span_of(node)
        return Step(unit.path, span, note, pointer="" if to else param, updates=not to and self.updates(node, param))

    def updates(self, store: ast.stmt, param: str) -> bool:
        """Whether a statement computes what it writes from what was loaded through the same parameter before.

        Its other operands count as well: an address, or a mask, is rarely computed from that.
        """
        body = self.definition.unit.index.functions[self.definition.qualname].node
        bound = [each for each in nodes_in(body) if isinstance(each, ast.Assign) and each.lineno < store.lineno]
        pending: list[ast.AST] = [store]
        seen = set[str]()
        while pending:
            for each in nodes_in(pending.pop()):
                if isinstance(each, ast.Call) and self.loads(each, param):
                    return True
                if isinstance(each, ast.Name) and each.id not in seen:
                    seen.add(each.id)
                    pending += [one.value for one in bound if any(_is_name(to, each.id) for to in one.targets)]
        return False

    def loads(self, node: ast.Call, param: str) -> bool:
        """Whether a call loads through a parameter."""
        if not node.args or not isinstance(node.func, (ast.Attribute, ast.Name)):
            return False
        name = self.called(node.func)
        return name.startswith(_LANGUAGE) and name.endswith(".load") and self.only(node.args[0]) == {param}


def _is_name(node: ast.expr, name: str) -> bool:
    """Whether an expression is a certain name."""
    return isinstance(node, ast.Name) and node.id == name


def _returns(node: ast.AST) -> bool:
    """Whether a statement contains a ``return``."""
    return any(isinstance(each, ast.Return) for each in _inside(node))


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """A statement and all statements in it."""
    yield node
    if hasattr(node, "body") or hasattr(node, "cases"):
        for name in ("body", "orelse", "handlers", "finalbody", "cases"):
            for each in getattr(node, name, ()):
                yield from _inside(each)
