"""Objects of project classes: what is known of their attributes and methods, and named tuples."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from ctxlint.model.index.file_index import is_one_of_several
from ctxlint.model.index.indexer import INITIALISERS
from ctxlint.model.index.project import MAX_ANCESTORS, Definition
from ctxlint.model.index.scopes import LOCAL, dotted_name, resolve_certainly
from ctxlint.model.interpreter.method import Binding
from ctxlint.model.interpreter.sequences import literal
from ctxlint.model.interpreter.values import NONE, UNKNOWN, Choice, ProjectObject, Sequence, Slot
from ctxlint.model.summaries.callables import owner_of
from ctxlint.named_tuples import NamedTuple
from ctxlint.patterns import pattern
from ctxlint.source.ast_tree import nodes_in
from ctxlint.torch_api import types

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import libcst as cst

    from ctxlint.model.index.file_index import FunctionRecord
    from ctxlint.model.index.module_unit import Unit
    from ctxlint.model.index.project import Project
    from ctxlint.model.index.scopes import Scope
    from ctxlint.model.interpreter.values import Value

_NAMED_TUPLES = ("typing.NamedTuple", "typing_extensions.NamedTuple")
_DATACLASS = "dataclasses.dataclass"
_PLAIN_BASES = ("builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol")
_CHANGES_ACCESS = frozenset(["__new__", "__getattribute__", "__getattr__", "__setattr__"])


_PROPERTIES = {"builtins.property", "functools.cached_property"}

_NOT_OF_PROJECT = ("torch.", "builtins.", "typing.")
_NAME = pattern(r"\.*\w+(?:[.:]\w+)*")


class _Field(NamedTuple):
    """A parameter of a constructor; ``default`` is None if it has none."""

    name: str
    default: Slot | None
    is_computed: bool = False
    """Whether it is not a parameter of ``__init__``: ``field(init=False)``."""


class _Made(NamedTuple):
    """A constructor: its fields in order, and the attribute that each sets. ``many``: it takes more than these."""

    fields: tuple[_Field, ...]
    attributes: tuple[tuple[str, str], ...] = ()
    is_tuple: bool = False
    many: bool = False


def new_object(
    project: Project,
    unit: Unit,
    name: str,
    meant: Definition | None,
    arguments: tuple[Slot, ...],
    keywords: Mapping[str, Slot],
    call: cst.BaseExpression,
) -> tuple[Definition, Value] | None:
    """The class that a call of ``name`` creates an object of, and the object; None if it is unknown."""
    if meant is not None and meant.record is not None:
        definition, made = meant, _constructor(project, meant)
    else:
        found = owner_of(project, unit, name)
        fields = _of_named_tuple(*found[1:]) if found is not None else None
        if found is None or fields is None:
            return None
        definition, made = Definition(found[0], found[2]), fields
    if made is None:
        return None
    values = _bound(made, arguments, keywords)
    if made.is_tuple:
        if values is None:
            return None
        slots = tuple(values[each.name] for each in made.fields)
        return definition, Sequence("tuple", slots, call, tuple(each.name for each in made.fields))
    values = values or {}
    held = tuple((name, values[param]) for name, param in made.attributes if param in values)
    return definition, ProjectObject(definition, held, call)


def makes_tensors(project: Project, definition: Definition) -> bool:
    """Whether a class certainly descends from torch's tensor."""
    above = [bases for each in _line(project, definition) for bases in project.bases(each)]
    return any(types.TENSOR_ANNOTATIONS.issuperset(bases) for bases in above if bases)


def member(project: Project, definition: Definition, name: str) -> tuple[Definition, Binding | None] | None:
    """The function that a class has under a name, its own or inherited, and how it is bound; None if unknown."""
    for each in _line(project, definition):
        qualname = f"{each.qualname}.{name}"
        record = each.unit.index.functions.get(qualname)
        if each.record is None or name not in each.record.body.names:
            continue
        if record is None or not record.certain or len(each.record.body.names[name]) != 1:
            return None
        return Definition(each.unit, qualname), _binding(record.node.decorator_list, record.scope)
    return None


def getter(project: Project, definition: Definition, name: str) -> Definition | None:
    """The function of a property of a class."""
    found = member(project, definition, name)
    if found is None or found[1] is not None:
        return None
    record = found[0].unit.index.functions[found[0].qualname]
    decorators = [_meant(each, record.scope) for each in record.node.decorator_list]
    return found[0] if len(decorators) == 1 and decorators[0] in _PROPERTIES else None


def initialiser(project: Project, definition: Definition) -> Definition | None:
    """The method that completes a new object of a class: ``__init__`` or, of a dataclass, ``__post_init__``."""
    names = ("__init__", "__post_init__")
    found = (member(project, definition, name) for name in names)
    return next((each[0] for each in found if each is not None and each[1] is Binding.INSTANCE), None)


def only_base(project: Project, definition: Definition) -> Definition | None:
    """The project class that is the only base of a class."""
    alternatives = project.bases(definition)
    base = alternatives[0][0] if len(alternatives) == 1 and len(alternatives[0]) == 1 else None
    return base if isinstance(base, Definition) else None


def instance_of_module(project: Project, unit: Unit, name: str) -> ProjectObject | None:
    """The object that a resolved name denotes: a module or class certainly binds it, once, to a call of a class."""
    found = owner_of(project, unit, name)
    if found is None:
        owner, _, last = name.rpartition(".")
        holder = instance_of_module(project, unit, owner) if owner.strip(".") else None
        held = attribute_of(project, holder, last) if holder is not None else None
        return held if isinstance(held, ProjectObject) else None
    home, owner, last, scope = found
    bounds = scope.names.get(last, [])
    value = bounds[0].value if len(bounds) == 1 and not bounds[0].conditional else None
    if not isinstance(value, ast.Call) or (owner and last in home.index.attribute_owners):
        return None
    definition = _class_called(project, home, value, scope)
    return ProjectObject(definition, (), (home.path, last)) if definition is not None else None


def surrounding_object(project: Project, unit: Unit, scope: Scope, name: str) -> ProjectObject | None:
    """The object that a name of a function around nested code certainly means; ``scope`` is that of the function.

    It is a parameter with an annotation, or the ``self`` of a method, by its own name or by one only bound to it.
    """
    key = ("surrounding", scope.qualname, name)
    return project.once(
        key,
        lambda: _passed_object(project, unit, scope, name) or _surrounding_self(project, unit, scope, name),
        unit.summaries,
    )


def _passed_object(project: Project, unit: Unit, scope: Scope, name: str) -> ProjectObject | None:
    """The object that a function gets for a parameter, which it does not bind again."""
    function = unit.index.functions.get(scope.qualname)
    if function is None or not function.certain or len(scope.names.get(name, [])) != 1:
        return None
    definition = _class_of_parameter(project, unit, function, name)
    return ProjectObject(definition, (), (unit.path, scope.qualname, name)) if definition is not None else None


def _class_of_parameter(project: Project, unit: Unit, function: FunctionRecord, name: str) -> Definition | None:
    """The plain class that the annotation of a parameter without a default names."""
    arguments = function.node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + [*arguments.defaults, *arguments.kw_defaults]
    for each, default in zip([*plain, *arguments.kwonlyargs], defaults):
        if each.arg == name and default is None:
            return _class_named(project, unit, each.annotation, function.scope)
    return None


def _surrounding_self(project: Project, unit: Unit, scope: Scope, name: str) -> ProjectObject | None:
    if scope.parent is None or scope.parent.kind != "class":
        return None
    definition = Definition(unit, scope.qualname.rpartition(".")[0])
    method, record = unit.index.functions.get(scope.qualname), definition.record
    if method is None or record is None or not method.certain or project.is_function(definition):
        return None
    params = [*method.node.args.posonlyargs, *method.node.args.args]
    if not params or _binding(method.node.decorator_list, method.scope) is not Binding.INSTANCE:
        return None
    if _leaves_methods_open(record.node) or _is_subclassed(definition, unit) or not _is_plain(definition):
        return None
    receiver, bounds = params[0].arg, scope.names.get(name, [])
    value = bounds[0].value if len(bounds) == 1 and not bounds[0].conditional else None
    is_alias = isinstance(value, ast.Name) and value.id == receiver
    if len(scope.names.get(receiver, [])) != 1 or not (name == receiver or is_alias):
        return None
    return ProjectObject(definition, (), (unit.path, scope.qualname))


def attribute_of(project: Project, instance: ProjectObject, name: str) -> Value | None:
    """The object that an attribute of an object holds, or perhaps None.

    Only ``__init__`` sets it, to ``Class(…)`` or a parameter that is annotated with a class, or it is a field of a
    dataclass with such an annotation.
    """
    definition = instance.definition
    key = ("attribute", definition.qualname, name)
    made, optional = project.once(
        key,
        lambda: _class_of_field(project, definition, name) or (_class_of_attribute(project, definition, name), False),
        definition.unit.summaries,
    )
    held = ProjectObject(made, (), (definition.unit.path, definition.qualname, name)) if made is not None else None
    return Choice((held, NONE)) if held is not None and optional else held


def _class_of_field(project: Project, definition: Definition, name: str) -> tuple[Definition | None, bool] | None:
    """The class of a field of a dataclass that nothing sets later, and whether it may be None; None for others."""
    record, index = definition.record, definition.unit.index
    own = {definition.qualname + initialiser for initialiser in INITIALISERS}
    if record is None or f"{definition.qualname}.__init__" in index.functions:
        return None
    if [_meant(each, record.scope) for each in record.node.decorator_list] != [_DATACLASS]:
        return None
    if not is_set_at_first(definition, name) or own & index.attribute_owners.get(name, set()):
        return None
    fields = (each for each in record.node.body if isinstance(each, ast.AnnAssign) and each.value is None)
    annotation = next((each.annotation for each in fields if dotted_name(each.target) == name), None)
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.right, ast.Constant):
        optional = annotation.right.value is None
        return (_class_named(project, definition.unit, annotation.left, record.scope), True) if optional else None
    return _class_named(project, definition.unit, annotation, record.scope), False


def _class_of_attribute(project: Project, definition: Definition, name: str) -> Definition | None:
    """The class of the object that ``__init__`` creates, or is passed, for an attribute."""
    index = definition.unit.index
    init = index.functions.get(f"{definition.qualname}.__init__")
    if init is None or not init.certain or not init.node.args.args:
        return None
    if not all(owner == f"{definition.qualname}.__init__" for owner in index.attribute_owners.get(name, ())):
        return None
    stores = [each for each in init.node.body if isinstance(each, (ast.Assign, ast.AnnAssign))]
    wanted = f"{init.node.args.args[0].arg}.{name}"
    values = [each.value for each in stores if _target(each) == wanted]
    value = values[0] if len(values) == 1 else None
    if isinstance(value, ast.Name) and not _binds(init.node, value.id):
        return _class_of_parameter(project, definition.unit, init, value.id)
    return _class_called(project, definition.unit, value, init.scope) if isinstance(value, ast.Call) else None


def _binds(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Whether the body of a function may bind a name."""
    names = (node for node in nodes_in(function) if isinstance(node, ast.Name))
    return any(node.id == name and not isinstance(node.ctx, ast.Load) for node in names)


def _target(node: ast.Assign | ast.AnnAssign) -> str | None:
    """The dotted name that an assignment binds."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return dotted_name(targets[0]) if len(targets) == 1 else None


def declared_class(project: Project, unit: Unit, annotation: str) -> Definition | None:
    """The plain class that an annotation of a file names; None if it may be meant for its subclasses."""
    if not _NAME.fullmatch(annotation) or annotation.startswith(_NOT_OF_PROJECT):
        return None
    return project.once(("declared", annotation), lambda: _declared_class(project, unit, annotation), unit.summaries)


def promised_class(project: Project, definition: Definition) -> Definition | None:
    """The plain class that the annotation of a function's result names; see ``declared_class``."""
    record = definition.unit.index.functions.get(definition.qualname)
    return _class_named(project, definition.unit, record.node.returns, record.scope) if record is not None else None


def _class_named(project: Project, unit: Unit, annotation: ast.expr | None, scope: Scope) -> Definition | None:
    """The plain class that a written annotation names; see ``declared_class``."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        written: str | None = annotation.value
    else:
        written = dotted_name(annotation) if annotation is not None else None
    meant = resolve_certainly(written, scope) if written is not None and _NAME.fullmatch(written) else None
    return declared_class(project, unit, meant) if meant is not None else None


def _declared_class(project: Project, unit: Unit, annotation: str) -> Definition | None:
    local = annotation.startswith(LOCAL)
    definition = Definition(unit, annotation[len(LOCAL) :]) if local else project.certainly(unit, annotation)
    record = definition.record if definition is not None else None
    if definition is None or record is None or _leaves_methods_open(record.node):
        return None
    bases = {base for each in _line(project, definition) for bases in project.bases(each) for base in bases}
    if _is_subclassed(definition, unit) or bases & {"abc.ABC", "typing.Protocol"}:
        return None
    made = _constructor(project, definition)
    return definition if made is not None and not made.is_tuple else None


def _is_subclassed(definition: Definition, unit: Unit) -> bool:
    """Whether a class of its file, or of ``unit``, has a base of its name."""
    in_sight = (each for home in (unit, definition.unit) for each in home.index.classes.values())
    named = {(base or "").rpartition(".")[2] for each in in_sight for bases in each.bases for base in bases}
    return definition.name in {each.rpartition(":")[2] for each in named}


def _leaves_methods_open(node: ast.ClassDef) -> bool:
    """Whether a class leaves a method to its subclasses: it only raises, or does nothing."""
    functions = (each for each in node.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return any(isinstance(each.body[-1], (ast.Raise, ast.Pass)) or _is_constant(each.body[-1]) for each in functions)


def is_placeholder(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function has no body but ``...`` or a docstring, as under ``if TYPE_CHECKING``."""
    return all(map(_is_constant, node.body))


def _is_constant(node: ast.stmt) -> bool:
    """Whether it is ``...`` or a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _class_called(project: Project, unit: Unit, call: ast.Call, scope: Scope) -> Definition | None:
    """The plain class that an expression calls."""
    name = resolve_certainly(dotted_name(call.func) or "", scope)
    if name is None or name.startswith(("builtins.", "torch.")):
        return None
    local = name.startswith(LOCAL)
    definition = Definition(unit, name[len(LOCAL) :]) if local else project.certainly(unit, name)
    if definition is None or definition.record is None:
        return None
    made = _constructor(project, definition)
    return definition if made is not None and not made.is_tuple else None


# Constructors


def _constructor(project: Project, definition: Definition) -> _Made | None:
    """What calls of a class create; None unless it is a named tuple, or a class without surprises."""
    key = ("constructor", definition.qualname)
    return project.once(key, lambda: _find_constructor(project, definition), definition.unit.summaries)


def _find_constructor(project: Project, definition: Definition) -> _Made | None:
    record = definition.record
    if record is None or is_one_of_several(record.qualname) or record.body.is_in_function or record.alternative:
        return None
    if any(base in _NAMED_TUPLES for bases in record.bases for base in bases):
        return _Made(_annotated(record.node), is_tuple=True)
    decorators = [_meant(each, record.scope) for each in record.node.decorator_list]
    if any(each != _DATACLASS for each in decorators) or project.is_function(definition):
        return None
    line = list(_line(project, definition))
    if not line or not all(map(_is_plain, line)) or not _ends_plainly(project, line[-1]):
        return None
    init = definition.unit.index.functions.get(f"{definition.qualname}.__init__")
    if decorators and init is None:
        fields = _annotated(record.node)
        made = tuple((each.name, each.name) for each in fields if is_set_at_first(definition, each.name))
        return _Made(tuple(each for each in fields if not each.is_computed), made)
    if init is None or not init.certain or not init.node.args.args:
        return _Made((), many=True)
    arguments = init.node.args
    receiver, *params = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(params) - len(arguments.defaults)) + list(arguments.defaults)
    fields = (
        *(_field(param, default) for param, default in zip(params, defaults)),
        *(_field(param, default) for param, default in zip(arguments.kwonlyargs, arguments.kw_defaults)),
    )
    attributes = tuple(
        (name, param)
        for name, param in _kept_parameters(init.node, receiver.arg, {each.name for each in fields})
        if is_set_at_first(definition, name)
    )
    return _Made(fields, attributes, many=bool(arguments.vararg or arguments.kwarg))


def is_set_at_first(definition: Definition, name: str) -> bool:
    """Whether only methods that initialise new objects set an attribute of this name, in the file of a class."""
    stored = definition.unit.index.attribute_owners.get(name, ())
    return all(owner.endswith(INITIALISERS) for owner in stored)


def _kept_parameters(
    init: ast.FunctionDef | ast.AsyncFunctionDef, receiver: str, params: set[str]
) -> Iterable[tuple[str, str]]:
    """``self.a = a`` on every path and nowhere else, of a parameter that is not rebound: ``a`` and ``a``."""
    stores = [each for each in nodes_in(init) if not isinstance(getattr(each, "ctx", ast.Load()), ast.Load)]
    rebound = {each.id for each in stores if isinstance(each, ast.Name)}
    times = Counter(each.attr for each in stores if isinstance(each, ast.Attribute))
    for statement in init.body:
        if isinstance(statement, (ast.Return, ast.If, ast.For, ast.While, ast.With, ast.Try)):
            return
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            continue
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        value = statement.value
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and isinstance(value, ast.Name):
            if target.value.id == receiver and value.id in params - rebound and times[target.attr] == 1:
                yield target.attr, value.id


def _field(param: ast.arg, default: ast.expr | None) -> _Field:
    return _Field(param.arg, Slot(literal(default) or UNKNOWN) if default is not None else None)


def _annotated(node: ast.ClassDef) -> tuple[_Field, ...]:
    """The annotated names of a class body."""
    return tuple(
        _Field(
            each.target.id,
            Slot(literal(each.value) or UNKNOWN) if each.value is not None else None,
            isinstance(each.value, ast.Call) and any(_is_no_parameter(keyword) for keyword in each.value.keywords),
        )
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    )


def _is_no_parameter(keyword: ast.keyword) -> bool:
    """Whether it is ``init=False``."""
    return keyword.arg == "init" and isinstance(keyword.value, ast.Constant) and not keyword.value.value


def _of_named_tuple(owner: str, name: str, scope: Scope) -> _Made | None:
    """``Saved = namedtuple("Saved", "x w")``, in a module."""
    bounds = scope.names.get(name, [])
    value = bounds[0].value if len(bounds) == 1 and not owner and not bounds[0].conditional else None
    if not isinstance(value, ast.Call) or len(value.args) != 2 or value.keywords:
        return None
    maker = resolve_certainly(dotted_name(value.func) or "", scope)
    fields = value.args[1]
    if maker == "collections.namedtuple" and isinstance(fields, ast.Constant) and isinstance(fields.value, str):
        names: list[object] = list(fields.value.replace(",", " ").split())
    elif maker in ("collections.namedtuple", *_NAMED_TUPLES) and isinstance(fields, (ast.List, ast.Tuple)):
        pairs = [each.elts[0] if isinstance(each, ast.Tuple) and each.elts else each for each in fields.elts]
        names = [each.value if isinstance(each, ast.Constant) else None for each in pairs]
    else:
        return None
    known = [each for each in names if isinstance(each, str)]
    return _Made(tuple(_Field(each, None) for each in known), is_tuple=True) if len(known) == len(names) else None


def _bound(made: _Made, arguments: tuple[Slot, ...], keywords: Mapping[str, Slot]) -> dict[str, Slot] | None:
    """The values of the fields for a call; None if it does not match, or is unknown."""
    if made.many or len(arguments) > len(made.fields) or any(slot.starred for slot in arguments):
        return None
    passed = {**{each.name: slot for each, slot in zip(made.fields, arguments)}, **keywords}
    defaults = {each.name: each.default for each in made.fields if each.default is not None}
    values = {**defaults, **passed}
    return values if {each.name for each in made.fields} == values.keys() else None


# Classes


def _line(project: Project, definition: Definition) -> Iterable[Definition]:
    """A class and its bases, if each has only one in the project."""
    found = [definition]
    while (base := only_base(project, found[-1])) is not None:
        if base in found or len(found) > MAX_ANCESTORS:
            return []
        found.append(base)
    return found


def _ends_plainly(project: Project, last: Definition) -> bool:
    """Whether a class has no base, or only some that change nothing."""
    return all(base in _PLAIN_BASES for bases in project.bases(last) for base in bases)


def _is_plain(definition: Definition) -> bool:
    record = definition.record
    return record is not None and not record.node.keywords and _CHANGES_ACCESS.isdisjoint(record.body.names)


def _binding(decorators: list[ast.expr], scope: Scope) -> Binding | None:
    """How a function of a class is bound; None for a property and the like."""
    if not decorators:
        return Binding.INSTANCE
    found = {_meant(each, scope) for each in decorators}
    if "builtins.staticmethod" in found:
        return Binding.STATIC
    if "builtins.classmethod" in found:
        return Binding.CLASS
    return None if found & _PROPERTIES else Binding.INSTANCE


def _meant(decorator: ast.expr, scope: Scope) -> str | None:
    func = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = dotted_name(func)
    return resolve_certainly(name, scope) if name is not None else None
