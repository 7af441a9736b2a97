"""What a file tells about the names that others ask for: which operators it declares, and which dicts it may change.

All is decided with ``ast`` alone, as it is asked about files without any relation to Functions.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from ctxlint.model.index.file_index import last_name
from ctxlint.model.index.indexer import index_module
from ctxlint.model.index.method_calls import calls_of_method
from ctxlint.model.index.module_parameters import TRAINS, is_in_forward, is_own_parameter
from ctxlint.model.index.module_stores import may_set
from ctxlint.model.index.operator_signatures import rejections
from ctxlint.model.index.passed_tensors import (
    NOT_TENSORS,
    created_among,
    parameters_among,
    passed_at,
    passes_created,
    passes_detached,
    passes_leaf,
    what_is_passed,
)
from ctxlint.model.index.replaced_names import replaces_name
from ctxlint.model.index.results import is_returned, modifies_result
from ctxlint.model.index.scopes import LOCAL, dotted_name, resolve
from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api.autograd import GRADIENTS_OFF
from ctxlint.torch_api.known_decorators import OPERATOR_DECORATORS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from ctxlint.model.index.file_index import CallRecord, FileIndex
    from ctxlint.model.index.operator_signatures import Rejection
    from ctxlint.model.index.outside_facts import Deed, ProjectQuestion
    from ctxlint.model.index.scopes import Scope

_index_of, _nodes_of = lru_cache(maxsize=1)(index_module), lru_cache(maxsize=1)(nodes_in)
"""For the several questions about one file after the other."""

DEFINE = "torch.library.define"
LIBRARY = "torch.library.Library"
REGISTER = "torch.library.register_autograd"


def times_answered(asked: ProjectQuestion, tree: ast.Module | None) -> int:
    """How often a file with this tree answers a question: once for each declaration of an operator.

    What names it assigns in a module is not asked here, but in ``module_stores``: the answer is these names.
    A file that cannot be parsed may do anything but that.
    """
    if tree is None:
        return asked.deed not in ("declares", "keeps", "modifies", "passes-parameter", "tracks")
    match asked.deed:
        case "declares":
            return _declarations(tree, asked.name)
        case "changes":
            return _changes_table(tree, asked.name)
        case "derives":
            return _derives_from(tree, asked.name)
        case "makes" | "keeps":
            return _about_modules(tree, asked)
        case "calls" | "modifies" | "tracks" | "untracks":
            return _calls(_index_of(tree), asked)
        case "takes":
            return _takes(tree, asked.name)
        case "sets":
            return may_set(tree, asked.name)
        case "replaces":
            return replaces_name(tree, asked.name)
        case "chooses":
            return _chooses(tree, asked.name)
        case "fills":
            return not is_only_passed([*_nodes_of(tree)], _names_for(tree, asked.name), asked.name)
    return _passes(tree, asked)


def _declarations(tree: ast.Module, name: str) -> int:
    """How often a file declares an operator, or one of that name in a library that another file creates."""
    found = list(_declared_names(_index_of(tree)))
    return found.count(name) + found.count(f"{_ANY}::{name.rpartition('::')[2]}")


def _declared_names(index: FileIndex) -> Iterator[str]:
    for _qualname, decorator in operator_decorators(index):
        yield from texts_in(decorator)[:1]
    for call in index.calls:
        texts = texts_in(call.node) if call.name == "define" else []
        if meant(call.node.func, index.module) == DEFINE:
            yield from texts[:1]
        elif texts:
            namespace = _namespace(call.node.func, index.module)
            yield f"{namespace}::{texts[0].partition('(')[0].strip()}"


def differentiable_operators(index: FileIndex) -> frozenset[str]:
    """The operators of a file that ``custom_op`` makes of functions, or whose gradient it registers by their names."""
    parts = index.parts or (index,)
    calls = [call for part in parts if "register_autograd" in part.call_names for call in part.calls]
    given = [call.node for call in calls if call.name == "register_autograd"]
    made = [each for _qualname, each in operator_decorators(index)]
    named = [*made, *(each for each in given if meant(each.func, index.module) == REGISTER)]
    return frozenset(text for each in named for text in texts_in(each)[:1])


def operator_decorators(index: FileIndex) -> Iterator[tuple[str, ast.Call]]:
    """The decorators that make operators of functions: ``@custom_op("ns::f")``, each after the function's name.

    Those that raise because of the function's signature make none.
    """
    yield from ((qualname, decorator) for qualname, decorator, found in _written_decorators(index) if not found)


def rejected_operators(index: FileIndex) -> Iterator[tuple[str, list[Rejection]]]:
    """The functions whose signature torch rejects for an operator, and what it rejects."""
    yield from ((qualname, found) for qualname, _decorator, found in _written_decorators(index) if found)


def _written_decorators(index: FileIndex) -> Iterator[tuple[str, ast.Call, list[Rejection]]]:
    """The functions with a decorator that makes operators of them, with it and what torch rejects."""
    for part in index.parts or (index,):
        if _written_decorators not in part.notes:
            made = (
                (name, each.node, operator_decorator(each.node, index.module)) for name, each in part.functions.items()
            )
            found = [(name, by, rejections(node, index.module)) for name, node, by in made if by is not None]
            part.notes[_written_decorators] = found
        yield from part.notes[_written_decorators]


def operator_decorator(function: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> ast.Call | None:
    """The decorator that makes an operator of a function; None if there is none."""
    calls = (each for each in function.decorator_list if isinstance(each, ast.Call))
    return next((each for each in calls if meant(each.func, scope) in OPERATOR_DECORATORS), None)


def texts_in(call: ast.Call) -> list[str]:
    """The strings among the arguments of a call."""
    return [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def meant(func: ast.expr, scope: Scope) -> str | None:
    """The resolved name of what is called."""
    path = dotted_name(func)
    return resolve(path, scope) if path is not None else None


def _namespace(func: ast.expr, scope: Scope) -> str:
    """The namespace of the library whose ``define`` is called; ``_ANY`` if another file creates it."""
    owner = func.value if isinstance(func, ast.Attribute) else None
    bounds = scope.names.get(owner.id, []) if isinstance(owner, ast.Name) else []
    if [each.kind for each in bounds] == ["import"]:
        return _ANY
    made = bounds[0].value if len(bounds) == 1 else owner
    if not isinstance(made, ast.Call) or meant(made.func, scope) != LIBRARY:
        return ""
    return next(iter(texts_in(made)[:1]), "")


_ANY = "*"


def _changes_table(tree: ast.Module, name: str) -> bool:
    """Whether a file, other than the one that creates a dict, may change it after it imports it."""
    nodes = _nodes_of(tree)
    return not (
        is_only_read(nodes, name, bound=False, attribute=True)
        and all(is_only_read(nodes, each, bound=False) for each in _names_for(tree, name))
    )


def _about_modules(tree: ast.Module, asked: ProjectQuestion) -> bool:
    """Whether a file may make a module for one call, or makes one that is to last."""
    index, names = _index_of(tree), _names_for(tree, asked.name)
    if asked.deed == "keeps":
        return not index.made_to_last.isdisjoint(names | ({asked.name} - index.classes.keys()))
    return not index.used_at_once.isdisjoint({asked.name, *names})


def _names_for(tree: ast.Module, name: str) -> set[str]:
    """The names under which a file imports a name."""
    imported = (alias for node in _nodes_of(tree) if isinstance(node, ast.ImportFrom) for alias in node.names)
    return {alias.asname or name for alias in imported if alias.name == name}


def is_only_passed(nodes: Sequence[ast.AST], names: Collection[str], attribute: str | None = None) -> bool:
    """Whether code only passes a list to calls and runs through it in comprehensions: it may change it otherwise.

    ``attribute`` is its name where a module has it.
    """
    calls = [each for each in nodes if isinstance(each, ast.Call)]
    passed = {id(each) for call in calls for each in (*call.args, *(one.value for one in call.keywords))}
    passed |= {id(each.iter) for each in nodes if isinstance(each, ast.comprehension)}
    named = (each for each in nodes if isinstance(each, ast.Name) and each.id in names)
    read = (each for each in nodes if isinstance(each, ast.Attribute) and each.attr == attribute)
    return all(isinstance(each.ctx, ast.Store) or id(each) in passed for each in named) and all(
        id(each) in passed for each in read
    )


def _derives_from(tree: ast.Module, name: str) -> bool:
    """Whether a file may have a subclass of a class that it imports by its name."""
    nodes, names = _nodes_of(tree), {name, *_names_for(tree, name)}
    bases = (part for node in nodes if isinstance(node, ast.ClassDef) for base in node.bases for part in nodes_in(base))
    return any(getattr(each, "attr", None) == name or getattr(each, "id", None) in names for each in bases)


def _takes(tree: ast.Module, name: str) -> bool:
    """Whether a file may take a name of torch from a module that it imports, which is not one of torch."""
    nodes, scope = _nodes_of(tree), _index_of(tree).module
    imports = [each for each in nodes if isinstance(each, ast.ImportFrom) and not _is_of_torch(each.module)]
    attributes = (each for each in nodes if isinstance(each, ast.Attribute) and each.attr == name)
    return any(alias.name in (name, "*") for each in imports for alias in each.names) or any(
        not _is_of_torch(meant(each, scope)) for each in attributes
    )


def may_refuse(tree: ast.Module | None) -> bool:
    """Whether a file may not run with this release of torch: a test at its top raises, or a test in it is skipped."""
    body = tree.body if tree is not None else ()
    if any(isinstance(each, ast.If) and isinstance(each.body[0], ast.Raise) for each in body):
        return True
    calls = (each for each in (_nodes_of(tree) if tree is not None else ()) if isinstance(each, ast.Call))
    skips = (each for each in calls if "skip" in last_name(dotted_name(each.func) or "").lower())
    return any(_is_about_a_release(part) for each in skips for part in (*each.args, *each.keywords)) or any(
        _is_about_a_release(each.test) and "skip" in ast.unparse(each.body[0]).lower()
        for each in body
        if isinstance(each, ast.If)
    )


def _is_about_a_release(node: ast.AST) -> bool:
    """Whether a test mentions a version, or asks for a name."""
    return any(word in ast.unparse(node).lower() for word in ("version", "hasattr"))


def _chooses(tree: ast.Module, name: str) -> bool:
    """Whether a file imports a module only under a test of the release of torch, as ``if`` does at its top."""
    last = last_name(name)
    under = [each for each in tree.body if isinstance(each, ast.If) and _is_about_a_release(each.test)]
    imports = (part for each in under for part in nodes_in(each) if isinstance(part, (ast.Import, ast.ImportFrom)))
    return any(
        last in ((each.module or "") if isinstance(each, ast.ImportFrom) else "").split(".")
        or any(last in alias.name.split(".") for alias in each.names)
        for each in imports
    )


def _calls(index: FileIndex, asked: ProjectQuestion) -> bool:
    """Whether a file calls a function in the way that a question is about."""
    if asked.deed == "calls":
        return is_called_in_module(index, asked.name)
    if asked.deed == "modifies":
        return any(True for _ in modifying_functions(index, asked.name))
    return asked.deed in tracked_calls(index, asked.name)


def is_called_in_module(index: FileIndex, name: str) -> bool:
    """Whether a file certainly calls a function in the ``forward`` of a module, where gradients may be wanted.

    ``name`` is that of a function of the file, or that of one which it imports.
    """
    calls = _calls_of_function(index, name)
    return any(_is_in_forward(index, each) and not _is_without_gradients(index, each) for each in calls)


def modifying_functions(index: FileIndex, name: str) -> Iterator[str]:
    """The functions of a file that modify in place what a function or method returns, unless grad mode is off there.

    ``name`` is that of a function or method of the file, or of one which it imports. Empty for other code than that of
    a function of the module.
    """
    for call in _calls_of(index, name):
        detached = bool(call.node.args) and all(passes_detached(call.node, at) for at in range(len(call.node.args)))
        if detached or _is_untracked(index, call):
            continue
        if modifies_result(index.body_of(call.scope), call.node, index, call.scope):
            yield call.scope.qualname if call.scope.kind == "function" and "." not in call.scope.qualname else ""


def runners_in(tree: ast.Module, name: str) -> Iterator[tuple[str, bool]]:
    """The functions of a file that modify a result, and whether it calls each where grad mode is off.

    Empty, as for other code than functions, if it calls one where grad mode may be on.
    """
    index = _index_of(tree)
    for each in dict.fromkeys(modifying_functions(index, name)):
        calls = tracked_calls(index, LOCAL + each) if each else frozenset()
        yield ("" if "tracks" in calls else each), bool(calls)


def tracked_calls(index: FileIndex, name: str) -> frozenset[Deed]:
    """How a file calls a function by the grad mode there: ``tracks`` if that may be on, ``untracks`` if it is off.

    ``name`` is that of a function of the file, or of one which it imports. What is handed on may be called anywhere.
    """
    calls = _calls_of_function(index, name)
    found = frozenset["Deed"]("untracks" if _is_untracked(index, call) else "tracks" for call in calls)
    return found if "tracks" in found or not _is_handed_on(index, name) else found | {"tracks"}


def _is_handed_on(index: FileIndex, name: str) -> bool:
    """Whether a file has a function as a value: as an argument, in a container, as an attribute."""
    lasts, module = index.names_for([last_name(name.removeprefix(LOCAL))]), index.module
    paths = {path for part in index.parts or (index,) for path in _values_in(part) if last_name(path) in lasts}
    return any(path.partition(".")[0] in module.names and _is_meant(name, resolve(path, module)) for path in paths)


def _values_in(part: FileIndex) -> frozenset[str]:
    """The dotted names that a part of a file reads other than to call them, to compare them, or for an attribute."""
    if _values_in not in part.notes:
        nodes = [node for each in part.statements for node in nodes_in(each)]
        used = {id(each) for node in nodes for each in _only_used(node)}
        values = (each for each in nodes if isinstance(each, (ast.Name, ast.Attribute)) and id(each) not in used)
        paths = (dotted_name(each) for each in values if isinstance(each.ctx, ast.Load))
        part.notes[_values_in] = frozenset(path for path in paths if path is not None)
    found: frozenset[str] = part.notes[_values_in]
    return found


def _only_used(node: ast.AST) -> Sequence[ast.expr]:
    """The parts of a node that nothing keeps, nor calls later with grad mode on."""
    match node:
        case ast.Call(func=ast.Call(func=decorator) as func, args=args) if _turns_off(decorator):
            return [func, *args]  # ``torch.no_grad()(f)``
        case ast.Call(func=func):
            return [func]
        case ast.Attribute(value=owner):
            return [owner]
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
    return ()


def _turns_off(node: ast.expr) -> bool:
    return last_name(dotted_name(node) or "") in _OFF


def _calls_of(index: FileIndex, name: str) -> Iterator[CallRecord]:
    """The calls of a function, or of a method of a class, that a file defines or imports."""
    owner, _, method = name.rpartition(".")
    if owner:
        return calls_of_method(index, lambda path: _is_meant(owner, path), owner, method)
    return _calls_of_function(index, name)


def _calls_of_function(index: FileIndex, name: str) -> Iterator[CallRecord]:
    for call in index.calls_named(index.names_for([last_name(name.removeprefix(LOCAL))])):
        if _is_meant(name, meant(call.node.func, call.scope)):
            yield call


def _is_meant(name: str, path: str | None) -> bool:
    """Whether a resolved name is that of a function or class of the file, or of one which it imports."""
    return path == name or (not name.startswith(LOCAL) and _is_import_of(name, path))


def _is_in_forward(index: FileIndex, call: CallRecord) -> bool:
    """Whether a call is in the ``forward`` of a module."""
    owner, _, method = call.scope.qualname.rpartition(".")
    found = index.classes.get(owner)
    bases = [dotted_name(each) or "" for each in found.node.bases] if found is not None else []
    return method == "forward" and any(each.endswith("Module") for each in bases)


def _is_untracked(index: FileIndex, call: CallRecord) -> bool:
    """Whether grad mode is off around a call, or no gradient is wanted."""
    return _is_in_function(index, call) or _is_without_gradients(index, call)


def _is_in_function(index: FileIndex, call: CallRecord) -> bool:
    """Whether a call is in a method of a Function that torch usually runs with grad mode off."""
    owner, _, method = call.scope.qualname.rpartition(".")
    found = index.classes.get(owner)
    bases = [dotted_name(each) or "" for each in found.node.bases] if found is not None else []
    return method in ("forward", "backward") and any(each.endswith("Function") for each in bases)


def _is_without_gradients(index: FileIndex, call: CallRecord) -> bool:
    """Whether a call is under ``no_grad`` or the like, or in a function that tests whether gradients are wanted."""
    record = index.function_of(call.scope)
    function = record.node if record is not None else None
    inside = nodes_in(function) if function is not None else []
    tests = [ast.unparse(each.test) for each in inside if isinstance(each, (ast.If, ast.IfExp))]
    asserted = [ast.unparse(each.test) for each in inside if isinstance(each, ast.Assert)]
    if call.expects_error or any("grad" in each for each in tests) or any(map(TRAINS.search, (*tests, *asserted))):
        return True
    entered = (*call.within, *(function.decorator_list if function is not None else ()))
    around = [each.func if isinstance(each, ast.Call) else each for each in entered]
    return any((dotted_name(each) or "").rpartition(".")[2] in _OFF for each in around)


_OFF = frozenset(each.rpartition(".")[2] for each in GRADIENTS_OFF)


def _passes(tree: ast.Module, asked: ProjectQuestion) -> bool:
    """Whether a file may call a function, which it imports, with a detached tensor, or a leaf, at a position.

    Or with what is not a tensor from there on.
    """
    sort = asked.deed.removeprefix("passes-")
    if sort in NOT_TENSORS:
        index = _index_of(tree)
        calls_of = [each for each in index.calls if what_is_passed(each, asked.position) == sort]
        return any(_is_import_of(asked.name, meant(each.node.func, each.scope)) for each in calls_of)
    if asked.deed == "passes-parameter":
        index = _index_of(tree)
        calls = _calls_of_function(index, asked.name)
        return any(_passes_parameter(index, each, asked.position) for each in calls)
    if asked.deed == "passes-leaf":
        parameters = _parameters_in(tree)
        passing = [call.func for call in _calls_in(tree) if passes_leaf(call, asked.position, parameters)]
    elif asked.deed == "passes-created":
        passing = [
            call.func
            for created, calls in _created_in(tree)
            for call in calls
            if passes_created(call, asked.position, created)
        ]
    else:
        passing = [call.func for call in _calls_in(tree) if passes_detached(call, asked.position)]
    scope = _index_of(tree).module if passing else None
    return scope is not None and any(_is_import_of(asked.name, meant(func, scope)) for func in passing)


def _passes_parameter(index: FileIndex, call: CallRecord, position: int) -> bool:
    """Whether a call passes a parameter that a module trains, where gradients may be wanted."""
    passed = passed_at(call.node, position)
    is_it = passed is not None and is_in_forward(call.scope) and is_own_parameter(passed, call.scope, index)
    return is_it and not _is_without_gradients(index, call) and is_returned(index.body_of(call.scope), call.node)


@lru_cache(maxsize=1)
def _calls_in(tree: ast.Module) -> list[ast.Call]:
    return _calls_among(_nodes_of(tree))


@lru_cache(maxsize=1)
def _parameters_in(tree: ast.Module) -> frozenset[str]:
    return parameters_among(_nodes_of(tree))


@lru_cache(maxsize=1)
def _created_in(tree: ast.Module) -> list[tuple[frozenset[str], list[ast.Call]]]:
    """For each statement at the top of a file, the names of the tensors that it creates, and its calls."""
    return [(created_among(inside), _calls_among(inside)) for inside in map(nodes_in, tree.body)]


def _calls_among(nodes: Iterable[ast.AST]) -> list[ast.Call]:
    return [each for each in nodes if isinstance(each, ast.Call)]


def _is_import_of(name: str, dotted: str | None) -> bool:
    """Whether a resolved name may be that of a function of another file of the project."""
    owner, _, last = (dotted or "").rpartition(".")
    return last == name and owner != "builtins" and not _is_of_torch(dotted) and not owner.startswith(LOCAL)


def _is_of_torch(dotted: str | None) -> bool:
    return dotted is not None and dotted.partition(".")[0] == "torch"


def is_only_read(nodes: Iterable[ast.AST], name: str, *, bound: bool = True, attribute: bool = False) -> bool:
    """Whether a file, which has these ``nodes``, only reads items of a dict, or asks for its keys and the like.

    ``bound``: one more use of its name binds it. ``attribute``: the dict is the ``attribute`` of that name of a module.
    """
    kind, field = (ast.Attribute, "attr") if attribute else (ast.Name, "id")

    def is_it(node: ast.AST) -> bool:
        return isinstance(node, kind) and getattr(node, field) == name

    times = reads = 0
    for node in nodes:
        times += is_it(node)
        if isinstance(node, (ast.Subscript, ast.Attribute)):
            known = isinstance(node, ast.Subscript) or node.attr in ("get", "keys", "values", "items")
            reads += known and isinstance(node.ctx, ast.Load) and is_it(node.value)
        elif isinstance(node, ast.Compare):
            reads += any(map(is_it, node.comparators))
    return times == reads + bound
