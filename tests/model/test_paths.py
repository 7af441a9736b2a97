"""Events and their path conditions: guards, order, where ctx escapes, reads and writes of its attributes, calls."""

from __future__ import annotations

import pytest

from ctxlint.model.interpreter.events import (
    Assigned,
    ContextCall,
    ContextRead,
    ContextWrite,
    Escape,
    Event,
    GenericCall,
    MaybeUnbound,
    NeedsInputGradRead,
    Question,
    Return,
    SavedRead,
    TupleUsedAsTensor,
    UnboundContext,
)
from ctxlint.model.interpreter.values import Tri
from tests.model.models import HEAD, backward_of, events, forward_of, function, read
from tests.model.value_text import told

GRADIENTS = "grad:\n return grad, grad, None, None"


def _indented(body: str) -> str:
    return "\n".join(" " + line for line in body.split("\n"))


def marks(body: str) -> dict[str, Event]:
    """The calls ``extension.a()``, ``extension.b()`` … of forward, by their last letter."""
    method = forward_of(f"x, w, n, f:\n{_indented(body)}", backward=GRADIENTS)
    found: dict[str, Event] = {}
    for call in events(method, GenericCall):
        name = (call.callee or "").rpartition(".")[2]
        if len(name) == 1:
            found[name] = call
    return found


A, B, C = "extension.a()", "extension.b()", "extension.c()"

# ---------------------------------------------------------------------------------------------------------------------
# Two events: do they exclude each other, is there certainly a path with both, does b imply a?

PAIRS = {
    "straight": (f"{A}\n{B}", "both, implied"),
    "two arms": (f"if n:\n {A}\nelse:\n {B}", "excluded"),
    "elif": (f"if n:\n {A}\nelif f:\n {B}", "excluded"),
    "one arm, then for all": (f"if n:\n {A}\n{B}", "both"),
    "for all, then one arm": (f"{A}\nif n:\n {B}", "both, implied"),
    "same test twice": (f"if n:\n {A}\nif n:\n {B}", "unknown"),
    "opposite tests": (f"if n:\n {A}\nif not n:\n {B}", "excluded"),
    "opposite comparisons with None": (f"if w is None:\n {A}\nif w is not None:\n {B}", "excluded"),
    "a comparison kept before its name is bound again": (
        f"m = w is None\nw = n\nif m:\n {A}\nif w is not None:\n {B}",
        "unknown",
    ),
    "a comparison kept, compared again": (f"m = w is None\nif m:\n {A}\nif w is not None:\n {B}", "excluded"),
    "parts of a test kept before a name is bound again": (
        f"m = w is None or f is None\nw = n\nif m:\n {A}\nif w is not None and f is not None:\n {B}",
        "unknown",
    ),
    "opposite parts": (f"if n and f:\n {A}\nif not n:\n {B}", "excluded"),
    "other tests": (f"if n:\n {A}\nif f:\n {B}", "unknown"),
    "nested": (f"if n:\n {A}\n if f:\n  {B}", "both, implied"),
    "early return before": (f"if n:\n {A}\n return x\n{B}", "excluded"),
    "early return of others": (f"{A}\nif n:\n return x\n{B}", "both, implied"),
    "early raise": (f"if n:\n {A}\n raise ValueError\n{B}", "excluded"),
    "after a branch that returns in both arms": (f"{A}\nif n:\n {B}\n return x\nelse:\n return w", "both, implied"),
    "loop": (f"for i in f:\n {A}\n{B}", "both"),
    "in one loop": (f"for i in f:\n {A}\n {B}", "both, implied"),
    "before a loop": (f"{A}\nfor i in f:\n {B}", "both, implied"),
    "while True": (f"while True:\n {A}\n break\n{B}", "both, implied"),
    "break between": (f"for i in f:\n {A}\n if i:\n  break\n {B}", "both, implied"),
    "continue in another arm": (f"for i in f:\n if i:\n  {A}\n  continue\n {B}", "excluded"),
    "try and handler": (f"try:\n {A}\nexcept ValueError:\n {B}", "unknown"),
    "try and after it": (f"try:\n {A}\nexcept ValueError:\n pass\n{B}", "both"),
    "try whose handlers raise, and after it": (f"try:\n {A}\nexcept ValueError:\n raise\n{B}", "both, implied"),
    "try and else": (f"try:\n {A}\nexcept ValueError:\n pass\nelse:\n {B}", "both, implied"),
    "before try, in the handler": (f"{A}\ntry:\n pass\nexcept ValueError:\n {B}", "both, implied"),
    "two handlers": (f"try:\n pass\nexcept ValueError:\n {A}\nexcept TypeError:\n {B}", "unknown"),
    "try and finally": (f"try:\n {A}\nfinally:\n {B}", "both"),
    "before try, in finally": (f"{A}\ntry:\n return x\nfinally:\n {B}", "both, implied"),
    "finally and after it": (f"try:\n pass\nfinally:\n {A}\n{B}", "both, implied"),
    "with": (f"with f:\n {A}\n{B}", "both, implied"),
    "cases": (f"match n:\n case 1:\n  {A}\n case 2:\n  {B}", "excluded"),
    "one case": (f"match n:\n case 1:\n  {A}\n{B}", "both"),
    "conditional expression": (f"y = {A} if n else {B}", "excluded"),
    "and": (f"y = {A} and {B}", "both, implied"),
    "or, then for all": (f"y = n or {A}\n{B}", "both"),
    "comprehension": (f"y = [{A} for i in f]\n{B}", "both"),
    "comprehension over a display": (f"y = [{A} for i in (x, w)]\n{B}", "both, implied"),
    "comprehension with a filter": (f"y = [{A} for i in f if i]\n{B}", "both"),
    "literal test": (f"if True:\n {A}\n{B}", "both, implied"),
    "assert": (f"{A}\nassert n\n{B}", "both, implied"),
    "one line": (f"{A}; {B}", "both, implied"),
    "a test on gradients": (f"if x.requires_grad:\n {A}\nif w.requires_grad:\n {B}", "unknown"),
    "a with that may swallow": (f"import contextlib\nwith contextlib.suppress(ValueError):\n {A}\n{B}", "both"),
    "local flag": (f"flag = False\nif flag:\n extension.c()\n{A}\n{B}", "both, implied"),
    "nested arms": (f"if n:\n if f:\n  {A}\n else:\n  {B}", "excluded"),
    "arms of different levels": (f"if n:\n if f:\n  {A}\nelse:\n {B}", "excluded"),
    "a test after rebinding": (f"if w is None:\n {A}\n w = x\nif w is not None:\n {B}", "unknown"),
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_events(name: str) -> None:
    body, expected = PAIRS[name]
    found = marks(f"{body}\nreturn x")
    a, b = found["a"], found["b"]
    assert a.excludes(b) == b.excludes(a)
    assert a.certainly_with(b) == b.certainly_with(a)
    if a.excludes(b):
        assert not a.certainly_with(b)
        assert not b.implies(a)
        told_as = "excluded"
    elif a.certainly_with(b):
        told_as = "both, implied" if b.implies(a) else "both"
    else:
        told_as = "unknown"
    assert told_as == expected


def test_events_in_loops_say_so() -> None:
    found = marks(f"{A}\nfor i in f:\n {B}\n{C}\nreturn x")
    assert [found[name].in_loop for name in "abc"] == [False, True, False]


def test_an_event_in_a_loop_is_met_once() -> None:
    method = forward_of("x, f:\n for i in f:\n  for j in i:\n   ctx.save_for_backward(x)\n return x")
    assert len(events(method, ContextCall)) == 1


def test_a_loop_that_is_walked_again_leaves_no_events_behind() -> None:
    method = forward_of("x, f:\n a, b, c = 1, 2, 3\n for i in f:\n  a = b\n  b = c\n  c = i\n  ctx.a = a\n return x")
    assert [told(write.value) for write in events(method, ContextWrite)] == ["?"]


def test_orders_follow_the_source() -> None:
    method = forward_of("x:\n ctx.a = 1\n ctx.b = 2\n ctx.c = 3\n return x")
    orders = [write.order for write in events(method, ContextWrite)]
    assert orders == sorted(orders)


def test_what_may_have_happened_before() -> None:
    found = marks(f"if n:\n {A}\n{B}\nreturn x")
    assert found["b"].may_follow(found["a"])
    assert not found["b"].implies(found["a"])


GUARDS = {
    "ctx.needs_input_grad[1]": [("ctx.needs_input_grad[1]", True, Question.NEEDS_INPUT_GRAD)],
    "not ctx.needs_input_grad[1]": [
        ("not ctx.needs_input_grad[1]", True, Question.NEEDS_INPUT_GRAD),
        ("ctx.needs_input_grad[1]", False, Question.NEEDS_INPUT_GRAD),
    ],
    "x.requires_grad": [("x.requires_grad", True, Question.REQUIRES_GRAD)],
    "w is None": [("w is None", True, Question.IS_NONE)],
    "w is not None": [("w is not None", True, Question.IS_NONE)],
    "torch.is_grad_enabled()": [("torch.is_grad_enabled()", True, Question.GRAD_MODE)],
    "n": [("n", True, None)],
    "n == 1 and w is None": [
        ("n == 1 and w is None", True, None),
        ("n == 1", True, None),
        ("w is None", True, Question.IS_NONE),
    ],
    "n or w is None": [("n or w is None", True, None)],
}


@pytest.mark.parametrize("test", GUARDS)
def test_guards(test: str) -> None:
    guards = marks(f"if {test}:\n {A}\nreturn x")["a"].guards
    assert [(guard.text, guard.holds, guard.asks and guard.asks.question) for guard in guards] == GUARDS[test]


def test_guards_of_else() -> None:
    guards = marks(f"if n or w is None:\n pass\nelse:\n {A}\nreturn x")["a"].guards
    assert [(guard.text, guard.holds) for guard in guards] == [
        ("n or w is None", False),
        ("n", False),
        ("w is None", False),
    ]


def test_a_flag_that_was_bound_before_asks_the_same() -> None:
    (guard,) = marks(f"needs = ctx.needs_input_grad[1]\nif needs:\n {A}\nreturn x")["a"].guards
    assert guard.asks is not None
    assert told(guard.asks.value) == "needs[1]"


def test_a_comparison_that_was_bound_before_asks_the_same() -> None:
    (guard,) = marks(f"has_w = w is not None\nif has_w:\n {A}\nreturn x")["a"].guards
    assert guard.asks is not None
    assert (guard.asks.question, told(guard.asks.value), guard.asks.answer) == (Question.IS_NONE, "w", False)


@pytest.mark.parametrize("between", ["w = n", "w, k = n", "for w in n: pass", "w += 1", "if f:\n  w = n"])
def test_a_comparison_that_was_bound_before_its_name_was_asks_nothing_known(between: str) -> None:
    guard = marks(f"m = w is None\n{between}\nif m:\n {A}")["a"].guards[-1]
    assert guard.asks is None


def test_both_arms_of_a_conditional_expression_ask_about_the_same_value() -> None:
    found = marks(f"held = None\nif n:\n held = w\ny = {B} if held is None else {C}\nreturn x")
    asked = [event.guards[-1].asks for event in (found["b"], found["c"])]
    assert [each and (told(each.value), each.answer) for each in asked] == [("w | None", True), ("w | None", False)]


# ---------------------------------------------------------------------------------------------------------------------
# Where ctx goes (traps 41 to 45)

ESCAPES = {
    "passed": ("helper(ctx, x)", ["passed"]),
    "passed by keyword": ("helper(x, ctx=ctx)", ["passed"]),
    "passed to a method": ("f.save(ctx)", ["passed"]),
    "passed to super": ("super().forward(ctx, x)", ["passed"]),
    "passed to another forward": ("Other.forward(ctx, x)", ["passed"]),
    "passed under an alias": ("c = ctx\nhelper(c)", ["passed"]),
    "passed by partial": ("import functools\ng = functools.partial(helper, ctx)", ["passed"]),
    "passed in a tuple": ("helper((ctx, x))", ["stored"]),
    "passed in a list": ("helper([ctx])", ["stored"]),
    "passed in a dict": ("helper({'ctx': ctx})", ["stored"]),
    "passed by double star": ("helper(**{'ctx': ctx})", ["stored"]),
    "stored on an object": ("f.ctx = ctx", ["stored"]),
    "stored on a class": ("Other.ctx = ctx", ["stored"]),
    "stored on itself": ("ctx.me = ctx", ["stored"]),
    "stored in an item": ("f['ctx'] = ctx", ["stored"]),
    "appended": ("f.append(ctx)", ["passed"]),
    "appended to a list": ("contexts = []\ncontexts.append(ctx)", ["passed"]),
    "captured by a function": ("def save(*args):\n ctx.saved = args\nf(save)", ["captured"]),
    "captured by a function that a lambda calls": ("def save():\n ctx.saved = w\nf(lambda: save())", ["captured"]),
    "captured by a function that calls itself": ("def save():\n save()\n ctx.saved = w\nsave()", ["passed"]),
    "captured by one of two functions": (
        "if n:\n def save():\n  ctx.saved = w\nelse:\n def save():\n  pass\nsave()",
        ["captured"],
    ),
    "captured by a lambda": ("hook = lambda g: ctx.scale(g)", ["captured"]),
    "what is saved captured by a lambda": ("hook = lambda g: ctx.saved_tensors[0] * g", ["captured"]),
    "itself captured by a lambda": ("hook = lambda g: helper(ctx, g)", ["captured"]),
    "captured by a default": ("def hook(g, c=ctx):\n pass", ["captured"]),
    "captured by a class": ("class Hook:\n context = ctx", ["captured"]),
    "captured through an alias": ("c = ctx\nhook = lambda g: c.scale(g)", ["captured"]),
    "captured two levels down": ("def outer():\n def inner():\n  return ctx.x\n return inner\nf(outer())", ["passed"]),
    "setattr": ("setattr(ctx, 'x', x)", []),
    "setattr of an unknown name": ("setattr(ctx, n, x)", ["stored"]),
    "setattr of the ctx itself": ("setattr(ctx, 'x', ctx)", ["stored"]),
    "setattr in a loop": ("for key in f:\n setattr(ctx, key, x)", ["stored"]),
    "delattr": ("delattr(ctx, 'x')", []),
    "delattr of an unknown name": ("delattr(ctx, n)", ["stored"]),
    "getattr of an unknown name": ("y = getattr(ctx, n)", ["stored"]),
    "vars": ("vars(ctx).update(x=x)", ["stored"]),
    "__dict__": ("ctx.__dict__['x'] = x", ["stored"]),
    "a bound method": ("save = ctx.save_for_backward", ["stored"]),
    "starred": ("helper(*ctx)", ["passed"]),
    "conditional": ("c = ctx if n else None", ["stored"]),
    "yielded": ("yield ctx", ["stored"]),
    "a comprehension": ("y = [ctx for i in f]", ["stored"]),
    # what lets go of it, or does not take it
    "captured by a function that is only called": ("def save():\n ctx.saved = w\nsave()", []),
    "attribute read": ("y = ctx.x", []),
    "attribute read in a lambda": ("hook = lambda g: ctx.scale * g", []),
    "attribute read in a lambda through an alias": ("c = ctx\nhook = lambda g: [c.scale * g, c.size[0]]", []),
    "attribute written": ("ctx.x = x", []),
    "alias": ("c = ctx\nc.x = x", []),
    "annotated alias": ("c: object = ctx\nc.x = x", []),
    "isinstance": ("y = isinstance(ctx, object)", []),
    "hasattr": ("y = hasattr(ctx, 'x')", []),
    "getattr": ("y = getattr(ctx, 'x', None)", []),
    "type": ("y = type(ctx)", []),
    "print": ("print(ctx)", []),
    "is None": ("if ctx is not None:\n ctx.x = x", []),
    "truth": ("if ctx:\n ctx.x = x", []),
    "not": ("y = not ctx", []),
    "compared": ("y = ctx == f", []),
    "formatted": ("y = f'{ctx}'", []),
    "deleted": ("del ctx", []),
    "a nested function with a ctx of its own": ("def hook(ctx):\n return ctx.x", []),
    "a lambda with a ctx of its own": ("hook = lambda ctx: ctx.x", []),
    "a nested class with a ctx of its own": ("class Inner:\n def forward(ctx, x):\n  return x", []),
    "a comprehension with a ctx of its own": ("y = [ctx for ctx in f]", []),
    "rebound": ("ctx = f\nhelper(ctx)", []),
    "known methods": ("ctx.save_for_backward(x)\nctx.mark_dirty(x)\nctx.set_materialize_grads(False)", []),
    "an attribute is passed": ("helper(ctx.x)", []),
}


@pytest.mark.parametrize("name", ESCAPES)
def test_escapes(name: str) -> None:
    body, expected = ESCAPES[name]
    method = forward_of(f"x, w, n, f:\n{_indented(body)}\n return x", backward=GRADIENTS)
    assert [escape.how for escape in events(method, Escape)] == expected


def test_a_ctx_that_is_returned_escapes() -> None:
    assert [each.how for each in events(forward_of("x:\n return ctx"), Escape)] == ["returned"]


def test_a_forward_that_takes_everything_in_one_parameter_hides_its_ctx() -> None:
    code = """
class Fn(Function):
    @staticmethod
    def forward(*args):
        ctx, x = args
        ctx.x = x
        return x

    @staticmethod
    def backward(ctx, grad):
        return ctx.x * grad
"""
    (fn,) = read(HEAD + code).functions
    assert fn.escapes


HELPERS = {
    "reads": ("return ctx.stride + x", []),
    "reads what it kept": ("return ctx.kept[0]", []),
    "reads in a nested function": ("return [ctx.stride for _ in x]", []),
    "writes": ("ctx.stride = x", []),
    "saves": ("ctx.save_for_backward(x)", []),
    "takes a method": ("save = ctx.save_for_backward", ["passed"]),
    "calls": ("return ctx.stride(x)", []),
    "reads what was saved": ("return ctx.saved_tensors", []),
    "passes it on": ("return other(ctx)", ["passed"]),
    "passes it on to a known function": ("return Fn.inner(x, own=ctx)", []),
    "passes it on to itself": ("return Fn.helper(ctx, x)", ["passed"]),
    "stores it": ("x.ctx = ctx", ["passed"]),
    "yields": ("yield ctx.stride", ["passed"]),
    "returns it": ("return ctx", []),
    "returns it with others": ("return ctx, x", ["stored"]),
    "returns a list of it": ("return [ctx]", ["passed", "stored"]),
    "deletes": ("del ctx.stride", []),
    "has another ctx": ("ctx = x", []),
    "asks by name": ("return getattr(ctx, x)", ["passed"]),
}


@pytest.mark.parametrize("call", ["Fn.helper(ctx, x)", "Fn.helper(x=x, ctx=ctx)"])
@pytest.mark.parametrize("name", HELPERS)
def test_a_ctx_escapes_if_it_is_unknown_what_a_helper_does_with_it(name: str, call: str) -> None:
    body, expected = HELPERS[name]
    code = f"""
class Fn(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.stride = 2
        {call}
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.stride

    @staticmethod
    def helper(ctx, x):
        {body}

    @staticmethod
    def inner(x, own):
        own.kept = x
"""
    (fn,) = read(HEAD + code).functions
    assert [each.how for each in fn.escapes] == expected


def test_a_list_that_a_helper_may_reach_through_ctx_is_not_known_any_more() -> None:
    code = """
class Fn(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.outputs = []
        helper(ctx, x)
        return tuple(ctx.outputs)

    @staticmethod
    def backward(ctx, *grads):
        return grads[0]


def helper(ctx, x):
    ctx.outputs.append(x)
"""
    (fn,) = read(HEAD + code).functions
    assert not fn.escapes
    assert not any(returned.exact for returned in fn.outputs)


def test_escapes_say_whom_ctx_is_given_to() -> None:
    fn = function("x:\n extension.save(ctx, x)\n return x")
    assert [each.callee for each in fn.escapes] == ["extension.save"]


# ---------------------------------------------------------------------------------------------------------------------
# Attributes of ctx (traps 41 to 50)

READS = {
    "read": ("y = ctx.a", ["a"]),
    "called": ("y = ctx.a(1)", ["a called"]),
    "method of it": ("y = ctx.a.sum()", ["a"]),
    "item": ("y = ctx.a[0]", ["a"]),
    "item written": ("ctx.a[0] = 1", ["a"]),
    "attribute of it written": ("ctx.a.b = 1", ["a"]),
    "augmented": ("ctx.a += 1", ["a"]),
    "own": ("ctx.a = 1\ny = ctx.a", ["a own"]),
    "own on one path": ("if ctx.b:\n ctx.a = 1\ny = ctx.a", ["b", "a"]),
    "deleted": ("del ctx.a", []),
    "written": ("ctx.a = None", []),
    "getattr": ("y = getattr(ctx, 'a')", ["a"]),
    "getattr with a default": ("y = getattr(ctx, 'a', None)", ["a guarded"]),
    "hasattr": ("y = hasattr(ctx, 'a')", ["a guarded"]),
    "try": ("try:\n y = ctx.a\nexcept AttributeError:\n y = None", ["a guarded"]),
    "try with several": ("try:\n y = ctx.a\nexcept (KeyError, AttributeError):\n y = None", ["a guarded"]),
    "try with all": ("try:\n y = ctx.a\nexcept Exception:\n y = None", ["a guarded"]),
    "try bare": ("try:\n y = ctx.a\nexcept:\n y = None", ["a guarded"]),
    "try with another": ("try:\n y = ctx.a\nexcept KeyError:\n y = None", ["a"]),
    "in the handler": ("try:\n pass\nexcept AttributeError:\n y = ctx.a", ["a"]),
    "library": ("y = ctx.needs_input_grad\nz = ctx.saved_tensors", []),
    "library method": ("y = ctx.name()", ["name called"]),
    "through an alias": ("c = ctx\ny = c.a", ["a"]),
    "in a condition": ("if ctx.a and ctx.b:\n pass", ["a", "b"]),
    "in a comprehension": ("y = [ctx.a for i in range(3)]", ["a"]),
    "in an f-string": ("y = f'{ctx.a}'", ["a"]),
    "in a default": ("def g(y=ctx.a):\n pass", []),
    "in a decorator": ("@ctx.a\ndef g():\n pass", ["a"]),
    "in an index": ("y = grad[ctx.a]", ["a"]),
    "in a slice": ("y = grad[ctx.a : ctx.b]", ["a", "b"]),
    "in a keyword": ("y = extension.f(x=ctx.a)", ["a"]),
    "starred": ("y = extension.f(*ctx.a, **ctx.b)", ["a", "b"]),
    "in with": ("with ctx.a:\n pass", ["a"]),
    "in for": ("for y in ctx.a:\n pass", ["a"]),
    "in while": ("while ctx.a:\n pass", ["a"]),
    "in assert": ("assert ctx.a, ctx.b", ["a", "b"]),
    "in raise": ("if grad.sum() > 0:\n raise ValueError(ctx.a)", ["a"]),
    "in match": ("match ctx.a:\n case 1 if ctx.b:\n  pass", ["a", "b"]),
    "in a walrus": ("if (y := ctx.a):\n pass", ["a"]),
    "in a lambda": ("y = lambda: ctx.a", ["a guarded"]),
    "awaited": ("y = await ctx.a", ["a"]),
}


@pytest.mark.parametrize("name", READS)
def test_reads(name: str) -> None:
    body, expected = READS[name]
    method = backward_of(f"grad:\n{_indented(body)}\n return grad")
    found = []
    for each in events(method, ContextRead):
        words = [each.attribute, *(word for word in ("called", "guarded", "own") if getattr(each, word))]
        found.append(" ".join(words))
    assert found == expected


WRITES = {
    "plain": ("ctx.a = x", ["a simple"]),
    "chained": ("ctx.a = y = x", ["a"]),
    "in a tuple": ("ctx.a, y = x, w", ["a"]),
    "annotated": ("ctx.a: int = 1", ["a"]),
    "augmented": ("ctx.a += 1", ["a"]),
    "for": ("for ctx.a in f:\n pass", ["a"]),
    "with": ("with f as ctx.a:\n pass", ["a"]),
    "deleted": ("del ctx.a", ["a deletes"]),
    "starred": ("*ctx.a, y = f", ["a"]),
    "through an alias": ("c = ctx\nc.a = x", ["a simple"]),
    "on another object": ("f.a = x", []),
    "in a branch": ("if n:\n ctx.a = x\nelse:\n ctx.a = w", ["a simple", "a simple"]),
    "unreachable": ("return x\nctx.a = x", []),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes(name: str) -> None:
    body, expected = WRITES[name]
    method = forward_of(f"x, w, n, f:\n{_indented(body)}\n return x", backward=GRADIENTS)
    found = []
    for each in events(method, ContextWrite):
        words = [each.attribute, *(word for word in ("simple", "deletes") if getattr(each, word))]
        found.append(" ".join(words))
    assert found == expected


def test_attributes_that_the_file_stores_anywhere_are_known() -> None:
    code = """
class Fn(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad

def outside(node, name):
    node.by_attribute = 1
    node.by_tuple, other = 1, 2
    node.augmented += 1
    setattr(node, "by_setattr", 1)
    del node.deleted
    if hasattr(node, "asked"):
        getattr(node, "got", None)
    for node.looped in []:
        pass
    with open(name) as node.opened:
        pass
"""
    (fn,) = read(HEAD + code).functions
    names = {"by_attribute", "by_tuple", "augmented", "by_setattr", "deleted", "asked", "got", "looped", "opened"}
    assert names <= fn.stored_attributes
    assert "shape" not in fn.stored_attributes


def test_the_attributes_that_a_return_certainly_leaves() -> None:
    method = forward_of("x, n:\n ctx.a = x\n if n:\n  ctx.b = x\n  return x\n ctx.c = x\n return x")
    assert [set(each.attributes) for each in events(method, Return)] == [{"a", "b"}, {"a", "c"}]


# ---------------------------------------------------------------------------------------------------------------------
# Calls on ctx (traps 55 and 56)

SAVES = {
    "names": ("ctx.save_for_backward(x, w)", [("(x, w)", True)]),
    "nothing": ("ctx.save_for_backward()", [("()", True)]),
    "None": ("ctx.save_for_backward(x, None)", [("(x, None)", True)]),
    "conditional": ("ctx.save_for_backward(x if n else None)", [("(x | None)", True)]),
    "starred list": ("ctx.save_for_backward(*[x, w])", [("(x, w)", True)]),
    "starred unknown": ("ctx.save_for_backward(x, *f)", [("(x, *f)", False)]),
    "starred or": ("ctx.save_for_backward(*(f or ()))", [("(*f | ())", False)]),
    "starred conditional": ("ctx.save_for_backward(*(() if f is None else (f,)))", [("(*() | (f,))", False)]),
    "starred sum": ("ctx.save_for_backward(*([x] + [w]))", [("(x, w)", True)]),
    "list that grew": ("saved = [x]\nsaved.append(w)\nctx.save_for_backward(*saved)", [("(x, w)", True)]),
    "list that grew in a loop": (
        "saved = []\nfor t in f:\n saved.append(t)\nctx.save_for_backward(*saved)",
        [("(*?)", False)],
    ),
    "list that may have grown": (
        "saved = [x]\nif n:\n saved.append(w)\nctx.save_for_backward(*saved)",
        [("(*[x, w] | [x])", False)],
    ),
    "branches": (
        "if n:\n ctx.save_for_backward(x)\nelse:\n ctx.save_for_backward(x, w)",
        [("(x)", True), ("(x, w)", True)],
    ),
    "after an early return": (
        "if n:\n ctx.save_for_backward(x)\n return x\nctx.save_for_backward(w)",
        [("(x)", True), ("(w)", True)],
    ),
    "through an alias": ("c = ctx\nc.save_for_backward(x)", [("(x)", True)]),
    "keywords": ("ctx.save_for_backward(tensors=x)", [("()", False)]),
}


@pytest.mark.parametrize("name", SAVES)
def test_saves(name: str) -> None:
    body, expected = SAVES[name]
    method = forward_of(f"x, w, n, f:\n{_indented(body)}\n return x", backward=GRADIENTS)
    found = []
    for call in events(method, ContextCall):
        slots = ", ".join(("*" if slot.starred else "") + told(slot.value) for slot in call.arguments)
        found.append((f"({slots})", call.exact))
    assert found == expected


def test_two_saves_on_one_path_and_on_two() -> None:
    one, two = events(forward_of("x:\n ctx.save_for_backward(x)\n ctx.save_for_backward(x)\n return x"), ContextCall)
    assert one.certainly_with(two)
    one, two = events(
        forward_of("x, n:\n if n:\n  ctx.save_for_backward(x)\n  return x\n ctx.save_for_backward(x)\n return x"),
        ContextCall,
    )
    assert one.excludes(two)


def test_the_methods_of_ctx() -> None:
    body = (
        "ctx.mark_dirty(x)\nctx.mark_non_differentiable(x)\nctx.set_materialize_grads(False)\nctx.save_for_forward(x)"
    )
    method = forward_of(f"x:\n{_indented(body)}\n return x")
    names = [call.method for call in events(method, ContextCall)]
    assert names == ["mark_dirty", "mark_non_differentiable", "set_materialize_grads", "save_for_forward"]


# ---------------------------------------------------------------------------------------------------------------------
# Unpackings (trap 57)

UNPACKINGS = {
    "exact": ("a, b = ctx.saved_tensors", [("a b", False)]),
    "one": ("(a,) = ctx.saved_tensors", [("a", False)]),
    "list": ("[a, b] = ctx.saved_tensors", [("a b", False)]),
    "rest": ("a, *rest = ctx.saved_tensors", [("a -", True)]),
    "through a name": ("saved = ctx.saved_tensors\na, b = saved", [("a b", False)]),
    "through a walrus": ("if (saved := ctx.saved_tensors):\n a, b = saved", [("a b", False)]),
    "twice through a name": (
        "saved = ctx.saved_tensors\na, b = saved\nc, d, e = saved",
        [("a b", False), ("c d e", False)],
    ),
    "into an attribute": ("ctx.a, b = ctx.saved_tensors", [("- b", False)]),
    "nested": ("(a, b), c = ctx.saved_tensors, 1", [("a b", False)]),
    "subscript": ("a = ctx.saved_tensors[0]", []),
    "slice": ("a, b = ctx.saved_tensors[:2]", []),
    "slice through a name": ("part = ctx.saved_tensors[1:]\na, b = part", []),
    "name only": ("saved = ctx.saved_tensors", []),
    "cast": ("a, b = cast(tuple, ctx.saved_tensors)", []),
    "comprehension": ("a, b = [t.float() for t in ctx.saved_tensors]", []),
    "map": ("a, b = map(torch.exp, ctx.saved_tensors)", []),
    "passed": ("y = extension.f(*ctx.saved_tensors)", []),
    "length": ("y = len(ctx.saved_tensors) == 3", []),
    "in a loop": ("for i in range(3):\n a, b = ctx.saved_tensors", [("a b", False)]),
    "in a loop that is walked again": (
        "u, v, w = 1, 2, 3\nsaved = ctx.saved_tensors\nfor i in range(3):\n u = v\n v = w\n w = i\n a, b = saved",
        [("a b", False)],
    ),
}


@pytest.mark.parametrize("name", UNPACKINGS)
def test_unpackings(name: str) -> None:
    body, expected = UNPACKINGS[name]
    method = backward_of(f"grad:\n{_indented(body)}\n return grad")
    (seen,) = events(method, SavedRead)
    found = [(" ".join(each or "-" for each in unpacking.names), unpacking.starred) for unpacking in seen.unpackings]
    assert found == expected


def test_unpackings_in_branches_belong_to_their_reads() -> None:
    body = "if ctx.a:\n  a, b = ctx.saved_tensors\n else:\n  a, b, c = ctx.saved_tensors"
    reads = events(backward_of(f"grad:\n {body}\n return grad"), SavedRead)
    assert [[len(each.names) for each in seen.unpackings] for seen in reads] == [[2], [3]]
    assert reads[0].excludes(reads[1])


def test_an_unpacking_has_the_guards_of_its_own_place() -> None:
    body = "saved = ctx.saved_tensors\n if ctx.a:\n  a, b = saved\n else:\n  a, b, c = saved"
    (seen,) = events(backward_of(f"grad:\n {body}\n return grad"), SavedRead)
    assert [[guard.holds for guard in each.guards] for each in seen.unpackings] == [[True], [False]]


TUPLE_USES = {
    "method": ("x = ctx.saved_tensors\ny = x.sum()", ["x"]),
    "arithmetic": ("x = ctx.saved_tensors\ny = x - 1.0", ["x"]),
    "arithmetic, right": ("x = ctx.saved_tensors\ny = grad * x", ["x"]),
    "attribute": ("x = ctx.saved_tensors\ny = x.shape", ["x"]),
    "negated": ("x = ctx.saved_tensors\ny = -x", ["x"]),
    "at once": ("y = ctx.saved_tensors.sum()", [""]),
    "subscript": ("x = ctx.saved_tensors\ny = x[0]", []),
    "passed to a function": ("x = ctx.saved_tensors\ny = extension.f(x)", []),
    "unpacked": ("x = ctx.saved_tensors\na, b = x", []),
    "concatenated": ("x = ctx.saved_tensors\ny = x + (grad,)", []),
    "index and count": ("x = ctx.saved_tensors\ny = x.index(grad)", []),
    "rebound": ("x = ctx.saved_tensors\nx = x[0]\ny = x.sum()", []),
    "one with a comma": ("x, = ctx.saved_tensors\ny = x.sum()", []),
    "looped over": ("x = ctx.saved_tensors\nfor t in x:\n y = t.sum()", []),
}


@pytest.mark.parametrize("name", TUPLE_USES)
def test_the_saved_tuple_used_as_a_tensor(name: str) -> None:
    body, expected = TUPLE_USES[name]
    method = backward_of(f"grad:\n{_indented(body)}\n return grad")
    assert [each.name for each in events(method, TupleUsedAsTensor)] == expected


# ---------------------------------------------------------------------------------------------------------------------
# needs_input_grad (trap 59)

NEEDS = {
    "subscript": ("if ctx.needs_input_grad[1]:\n pass", [(1, False)]),
    "name": ("needs = ctx.needs_input_grad\nif needs[1]:\n pass", [(None, True), (1, False)]),
    "variable index": ("if ctx.needs_input_grad[ctx.i]:\n pass", [(None, False)]),
    "constant in a name": ("i = 2\nif ctx.needs_input_grad[i]:\n pass", [(2, False)]),
    "slice": ("y = any(ctx.needs_input_grad[:2])", [(None, True)]),
    "any": ("y = any(ctx.needs_input_grad)", [(None, True)]),
    "length": ("y = len(ctx.needs_input_grad) >= 3 and ctx.needs_input_grad[2]", [(None, True), (2, False)]),
    "negative": ("if ctx.needs_input_grad[-1]:\n pass", [(0, False)]),
    "negative, out of range": ("if ctx.needs_input_grad[-2]:\n pass", [(-2, False)]),
}


@pytest.mark.parametrize("name", NEEDS)
def test_reads_of_needs_input_grad(name: str) -> None:
    body, expected = NEEDS[name]
    method = backward_of(f"grad:\n{_indented(body)}\n return grad")
    assert [(each.index, each.whole) for each in events(method, NeedsInputGradRead)] == expected


# ---------------------------------------------------------------------------------------------------------------------
# Names that are read, bound, unbound

UNBOUND = {
    "bound in one arm": ("if ctx.a:\n y = grad\nz = y", ["y"]),
    "bound in both arms": ("if ctx.a:\n y = grad\nelse:\n y = None\nz = y", []),
    "bound in a loop": ("for i in ctx.a:\n y = grad\nz = y", ["y"]),
    "bound before": ("y = None\nif ctx.a:\n y = grad\nz = y", []),
    "the other arm raises": ("if ctx.a:\n y = grad\nelse:\n raise ValueError\nz = y", []),
    "the other arm returns": ("if ctx.a:\n y = grad\nelse:\n return grad\nz = y", []),
    "bound in try, the handler raises": ("try:\n y = grad\nexcept ValueError:\n raise\nz = y", []),
    "bound in try, the handler goes on": ("try:\n y = grad\nexcept ValueError:\n pass\nz = y", ["y"]),
    "bound by with": ("with ctx.a as y:\n pass\nz = y", []),
    "bound by an import": ("import numpy as y\nz = y", []),
    "read under the same test": ("if ctx.a:\n y = grad\nif ctx.a:\n z = y", ["y"]),
    "a global": ("z = extension", []),
    "a builtin": ("z = len", []),
    "a comprehension's own": ("z = [y for y in ctx.a]", []),
    "deleted": ("y = grad\ndel y\nz = y", ["y"]),
}


@pytest.mark.parametrize("name", UNBOUND)
def test_names_that_may_be_unbound(name: str) -> None:
    body, expected = UNBOUND[name]
    method = backward_of(f"grad:\n{_indented(body)}\n return grad")
    assert [each.name for each in events(method, MaybeUnbound)] == expected


READ_NAMES = {
    "returned": ("return other", True),
    "used": ("y = grad * other\nreturn y", True),
    "deleted only": ("del other\nreturn grad", False),
    "not at all": ("return grad", False),
    "in a nested function": ("def g():\n return other\nreturn g()", True),
    "in a lambda": ("g = lambda: other\nreturn g()", True),
    "in a comprehension": ("y = [other for i in ctx.a]\nreturn grad", True),
    "in an f-string": ("y = f'{other}'\nreturn grad", True),
    "in a test": ("if other is not None:\n pass\nreturn grad", True),
    "augmented": ("other += 1\nreturn grad", True),
    "rebound only": ("other = 1\nreturn grad", False),
    "a keyword of that name": ("y = extension.f(other=grad)\nreturn grad", False),
    "an attribute of that name": ("y = ctx.other\nreturn grad", False),
    "a nested function's own": ("def g(other):\n return other\nreturn grad", False),
    "in an item": ("ctx.a[other] = 1\nreturn grad", True),
    "in unreachable code": ("return grad\ny = other", False),
    "as a decorator": ("@other\ndef g():\n pass\nreturn grad", True),
    "starred": ("return extension.f(*other)", True),
}


@pytest.mark.parametrize("name", READ_NAMES)
def test_whether_a_name_is_read(name: str) -> None:
    body, expected = READ_NAMES[name]
    method = backward_of(f"grad, other:\n{_indented(body)}")
    assert ("other" in method.facts.names_read) is expected


def test_ctx_without_a_parameter() -> None:
    code = """
class Fn(Function):
    @staticmethod
    def forward(x):
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(context, grad):
        return grad
"""
    (fn,) = read(HEAD + code).functions
    assert fn.forward is not None
    assert fn.backward is not None
    assert fn.backward.ctx is not None
    assert fn.backward.ctx.name == "context"


def test_ctx_of_an_enclosing_function_is_not_unbound() -> None:
    code = """
def make(ctx):
    class Fn(Function):
        @staticmethod
        def forward(context, x):
            ctx.counter = 1
            return x
"""
    (fn,) = read(HEAD + code).functions
    assert fn.forward is not None
    assert events(fn.forward, UnboundContext) == ()


def test_assignments_are_events() -> None:
    method = backward_of(
        "grad:\n y = grad\n (z, v) = y, 1\n z += 1\n if (u := z):\n  pass\n w = [a for a in y]\n return grad"
    )
    found = [(each.name, each.augmented) for each in events(method, Assigned)]
    assert found == [("y", False), ("z", False), ("v", False), ("z", True), ("u", False), ("w", False)]


def test_calls_are_events() -> None:
    method = backward_of("grad:\n y = torch.exp(grad)\n extension.f(y, k=1)\n return grad")
    found = [
        (each.callee, len(each.arguments), [name for name, _ in each.keywords]) for each in events(method, GenericCall)
    ]
    assert found == [("torch.exp", 1, []), ("extension.f", 1, ["k"])]


INCOMPLETE = {
    "star import": "from extension import *",
    "exec": "exec('x = 1')",
    "eval": "y = eval('x')",
    "locals": "y = locals()",
}


@pytest.mark.parametrize("name", INCOMPLETE)
def test_what_cannot_be_followed_at_all(name: str) -> None:
    assert not backward_of(f"grad:\n {INCOMPLETE[name]}\n return grad").facts.complete


def test_asynchronous_methods() -> None:
    code = """
class Fn(Function):
    @staticmethod
    async def backward(ctx, grad):
        return grad
"""
    (fn,) = read(HEAD + code).functions
    assert fn.backward is not None
    assert fn.backward.facts.is_async
    assert fn.gradients == ()
    assert fn.backward.facts.falls_through is Tri.NO
