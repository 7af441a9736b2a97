"""The contract of a class: what is certain is stated, everything else is unknown."""

from __future__ import annotations

from ctxlint.explain.terminal_text import render
from ctxlint.report.style import TextStyle
from tests.explain.contracts import contract_of

SCALED = """
class Scaled(Function):
    @staticmethod
    def forward(ctx, x, weight, scale):
        y = torch.exp(x) @ weight * scale
        ctx.save_for_backward(x, weight)
        ctx.scale = scale
        return y

    @staticmethod
    def backward(ctx, grad_y):
        x, w = ctx.saved_tensors
        grad_x = grad_w = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_y @ w.t() * torch.exp(x)
        if ctx.needs_input_grad[1]:
            grad_w = torch.exp(x).t() @ grad_y
            grad_w = grad_w * ctx.scale
        return grad_x, grad_w, None


def scaled(x, weight):
    return Scaled.apply(x, weight, 0.5)
"""


def test_inputs_say_what_they_are_and_why() -> None:
    inputs = contract_of(SCALED).inputs
    assert [(each.position, each.name, each.kind) for each in inputs] == [
        (0, "x", "tensor"),
        (1, "weight", "tensor"),
        (2, "scale", "non-tensor"),
    ]
    told = [[(reason.text, reason.place.line if reason.place else 0) for reason in each.evidence] for each in inputs]
    assert told == [
        [
            ("`backward` returns a gradient for it", 22),
            ("passed to `exp`", 8),
            ("passed to `save_for_backward`", 9),
        ],
        [
            ("`backward` returns a gradient for it", 22),
            ("an operand of `@`", 8),
            ("passed to `save_for_backward`", 9),
        ],
        [("passed a number", 26), ("`backward` returns `None` for it", 22)],
    ]


def test_gradients_come_with_their_statements_and_flags() -> None:
    contract = contract_of(SCALED)
    (row,) = contract.returns
    assert row.text == "grad_x, grad_w, None"
    assert row.slots is not None
    assert [(slot.text, slot.none, slot.input_name) for slot in row.slots] == [
        ("grad_x", "sometimes", "x"),
        ("grad_w", "sometimes", "weight"),
        ("None", "yes", "scale"),
    ]
    assert [[step.text for step in slot.computed] for slot in row.slots] == [
        ["grad_x = grad_y @ w.t() * torch.exp(x)"],
        ["grad_w = torch.exp(x).t() @ grad_y", "grad_w = grad_w * ctx.scale"],
        [],
    ]
    assert [[(guard.text, guard.input) for guard in each.guards] for each in contract.inputs] == [
        [("ctx.needs_input_grad[0]", 0)],
        [("ctx.needs_input_grad[1]", 1)],
        [],
    ]


def test_outputs_name_the_parameter_that_gets_their_gradient() -> None:
    (output,) = contract_of(SCALED).outputs
    assert [each.text for each in output.expressions] == ["y"]
    assert (output.parameter, output.because) == ("grad_y", None)


def test_what_is_saved_and_kept_is_followed_to_where_it_is_read() -> None:
    contract = contract_of(SCALED)
    assert [
        (save.index, save.expression, [(read.name, read.place and read.place.line) for read in save.reads or ()])
        for save in contract.saves
    ] == [(0, "x", [("x", 15)]), (1, "weight", [("w", 15)])]
    (attribute,) = contract.attributes
    assert attribute.name == "scale"
    assert [(use.method, use.text) for use in attribute.set] == [("forward", "scale")]
    assert [(use.method, use.place and use.place.line) for use in attribute.read] == [("backward", 21)]


def test_setup_context_saves_its_inputs_and_outputs() -> None:
    contract = contract_of("""
        class Power(Function):
            @staticmethod
            def forward(x, exponent: int):
                return x ** exponent, x.argmax()

            @staticmethod
            def setup_context(ctx, inputs, output):
                x, exponent = inputs
                y, index = output
                ctx.mark_non_differentiable(index)
                ctx.save_for_backward(x, y)
                ctx.save_for_forward(x)
                ctx.exponent = exponent

            @staticmethod
            def backward(ctx, grad_y, _):
                x = ctx.saved_tensors[0]
                return grad_y * ctx.saved_tensors[-1] / x, None

            @staticmethod
            def jvp(ctx, tangent, _):
                (x,) = ctx.saved_tensors
                return tangent * x * ctx.exponent, None
        """)
    assert contract.style == "forward(...) and setup_context(ctx, inputs, output)"
    assert [(each.name, each.kind) for each in contract.inputs] == [("x", "tensor"), ("exponent", "non-tensor")]
    assert [(each.parameter, each.differentiable, each.because) for each in contract.outputs] == [
        ("grad_y", "yes", None),
        ("_", "no", "marked non-differentiable"),
    ]
    assert [
        (save.call, save.index, [(read.name, read.method) for read in save.reads or ()]) for save in contract.saves
    ] == [
        ("save_for_backward", 0, [("x", "backward")]),
        ("save_for_backward", 1, [(None, "backward")]),
        ("save_for_forward", 0, [("x", "jvp")]),
    ]


def test_inherited_methods_belong_to_both_classes() -> None:
    code = """
        class Base(Function):
            @staticmethod
            def forward(ctx, x, scale: float):
                ctx.scale = scale
                return x * scale

            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.scale, None


        class Negated(Base):
            @staticmethod
            def backward(ctx, grad):
                return -grad * ctx.scale, None
        """
    base, negated = contract_of(code, "Base"), contract_of(code, "Negated")
    assert [(method.name, method.inherited) for method in negated.methods] == [("forward", True), ("backward", False)]
    assert [each.name for each in negated.inputs] == ["x", "scale"]
    assert negated.returns[0].text == "-grad * ctx.scale, None"
    assert negated.attributes[0].set == base.attributes[0].set


def test_returns_of_different_shapes_are_told_apart() -> None:
    contract = contract_of("""
        class Chosen(Function):
            @staticmethod
            def forward(ctx, x, weight):
                ctx.save_for_backward(weight)
                return x * weight

            @staticmethod
            def backward(ctx, grad):
                (weight,) = ctx.saved_tensors
                if not ctx.needs_input_grad[1]:
                    return grad * weight, None
                if weight is None:
                    return grad
                return helper(grad)
        """)
    assert [(row.text, row.slots and len(row.slots)) for row in contract.returns] == [
        ("grad * weight, None", 2),
        ("grad", 1),
        ("helper(grad)", None),
    ]
    assert [each.state for each in contract.inputs[0].gradients] == ["returned", "returned", "unknown"]
    assert [each.state for each in contract.inputs[1].gradients] == ["returned", "missing", "unknown"]
    assert [guard.text for guard in contract.returns[0].guards] == ["not ctx.needs_input_grad[1]"]


def test_what_stands_behind_a_star_is_unknown() -> None:
    contract = contract_of("""
        class Many(Function):
            @staticmethod
            def forward(ctx, function, *tensors):
                ctx.function = function
                ctx.save_for_backward(*tensors)
                return function(*tensors)

            @staticmethod
            def backward(ctx, *grads):
                first, *others = ctx.saved_tensors
                return None, *torch.autograd.grad(ctx.function(first, *others), (first, *others), grads)
        """)
    assert [(each.name, each.position, each.variadic) for each in contract.inputs] == [
        ("function", 0, False),
        ("tensors", 1, True),
    ]
    slots = contract.returns[0].slots
    assert slots is not None
    assert [(slot.position, slot.starred, slot.input_name) for slot in slots] == [
        (0, False, "function"),
        (1, True, "*tensors"),
    ]
    assert not contract.outputs_known
    (save,) = contract.saves
    assert (save.expression, save.starred) == ("*tensors", True)
    assert [(read.name, read.whole) for read in save.reads or ()] == [("first", False), ("others", True)]


def test_a_tensor_that_may_be_none_is_optional() -> None:
    contract = contract_of("""
        class Linear(Function):
            @staticmethod
            def forward(ctx, x, weight, bias, gate=None):
                ctx.save_for_backward(x, weight, bias)
                y = x.mm(weight.t())
                return y if bias is None else y + bias

            @staticmethod
            def backward(ctx, grad):
                x, weight, bias = ctx.saved_tensors
                return grad.mm(weight), grad.t().mm(x), grad.sum(0) if bias is not None else None, None
        """)
    assert [each.kind for each in contract.inputs] == ["tensor", "tensor", "optional-tensor", "unknown"]
    reasons = {each.text: each.tensor for each in contract.inputs[2].evidence}
    assert reasons["tested for None"] is None


def test_gradients_put_into_a_list_keep_their_code() -> None:
    contract = contract_of("""
        class Listed(Function):
            @staticmethod
            def forward(ctx, x, dim, weight):
                ctx.save_for_backward(x, weight)
                return x.sum(dim) * weight

            @staticmethod
            def backward(ctx, grad):
                x, weight = ctx.saved_tensors
                grads = [None] * 3
                if ctx.needs_input_grad[0]:
                    grads[0] = grad * weight
                if ctx.needs_input_grad[2]:
                    grads[2] = grad * x
                return tuple(grads)
        """)
    (row,) = contract.returns
    assert row.slots is not None
    assert [(slot.text, slot.none, slot.input_name, slot.written_here) for slot in row.slots] == [
        ("grad * weight", "sometimes", "x", False),
        ("None", "yes", "dim", False),
        ("grad * x", "sometimes", "weight", False),
    ]


def test_a_decorator_that_is_not_known_leaves_the_positions_open() -> None:
    contract = contract_of("""
        from elsewhere import reordered

        class Fn(Function):
            @staticmethod
            def forward(ctx, x, y):
                return x * y

            @staticmethod
            @reordered
            def backward(ctx, grad):
                return grad, grad
        """)
    assert contract.returns[0].slots is not None
    assert [slot.input for slot in contract.returns[0].slots] == [None, None]
    assert [each.state for each in contract.inputs[0].gradients] == ["unknown"]
    assert contract.outputs[0].parameter is None
    assert contract.notes == ("`@reordered` may change the arguments and the result of backward",)


def test_a_ctx_that_goes_elsewhere_is_noted() -> None:
    contract = contract_of("""
        class Fn(Function):
            @staticmethod
            def forward(ctx, x):
                remember(ctx, x)
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2
        """)
    assert contract.notes == ("ctx is passed on to `remember` in forward (line 8): its use there is unknown",)


def test_nested_classes_and_half_broken_files() -> None:
    code = """
        def factory(scale):
            class Inner(Function):
                @staticmethod
                def forward(ctx, x):
                    return x * scale

                @staticmethod
                def backward(ctx, grad):
                    return grad * scale

            return Inner

        def broken(:
            pass

        class Outer:
            class Kernel(Function):
                @staticmethod
                def forward(ctx, x):
                    return x.clone()

                @staticmethod
                def backward(ctx, grad):
                    return grad
        """
    assert contract_of(code, "factory.Inner").returns[0].text == "grad * scale"
    assert contract_of(code, "Outer.Kernel").returns[0].text == "grad"


def test_keyword_only_parameters_are_no_inputs() -> None:
    contract = contract_of("""
        class Fn(Function):
            @staticmethod
            def forward(ctx, x, *, eps=1e-6, **options):
                return x + eps

            @staticmethod
            def backward(ctx, grad):
                return grad
        """)
    assert [each.name for each in contract.inputs] == ["x"]


def test_code_over_several_lines_is_shown_on_one() -> None:
    contract = contract_of("""
        class Fn(Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                return (  # the sum
                    grad
                    + 1  # and one
                )
        """)
    assert contract.returns[0].slots is not None
    assert contract.returns[0].slots[0].text == "grad + 1"


def test_a_long_chain_of_conditional_changes_is_followed_in_no_time() -> None:
    steps = "".join(f"        if ctx.flag{at}:\n            g = g * {at}\n" for at in range(60))
    contract = contract_of(
        "class Fn(Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x.clone()\n\n"
        f"    @staticmethod\n    def backward(ctx, grad):\n        g = grad * 2\n{steps}"
        "        g = torch.exp(g)\n        return g\n"
    )
    assert contract.returns[0].slots is not None
    assert len(contract.returns[0].slots[0].computed) == 62


def test_saving_in_setup_context_shows_that_an_input_is_a_tensor() -> None:
    contract = contract_of("""
        class Take(Function):
            @staticmethod
            def forward(x, index, dim, mode):
                return torch.take_along_dim(x, index, dim)

            @staticmethod
            def setup_context(ctx, inputs, output):
                _, index, dim, _ = inputs
                ctx.save_for_backward(index)
                if dim == "last":
                    dim = -1
                ctx.dim = dim

            @staticmethod
            def backward(ctx, grad):
                (index,) = ctx.saved_tensors
                return untake(grad, index, ctx.dim), None, None, None
        """)
    assert [each.kind for each in contract.inputs] == ["tensor", "tensor", "non-tensor", "unknown"]
    assert [method.name for method in contract.methods] == ["forward", "setup_context", "backward"]


def test_joined_tuples_keep_their_code() -> None:
    contract = contract_of("""
        class Scatter(Function):
            @staticmethod
            def forward(ctx, group, *tensors):
                return tuple(send(tensors))

            @staticmethod
            def backward(ctx, *grads):
                return (None,) + gather(grads)
        """)
    slots = contract.returns[0].slots
    assert slots is not None
    assert [(slot.text, slot.input_name) for slot in slots] == [("None", "group"), ("*gather(grads)", "*tensors")]
    (output,) = contract.outputs
    assert ([each.text for each in output.expressions], output.starred, output.parameter) == (
        ["tuple(send(tensors))"],
        True,
        "*grads",
    )


def test_outputs_behind_a_star_have_no_position() -> None:
    contract = contract_of("""
        class Kinematics(Function):
            @staticmethod
            def forward(ctx, angles, links):
                poses = turned(angles)
                return (*[poses[link] for link in links], poses)

            @staticmethod
            def backward(ctx, *grads):
                return grads[-1].sum(0), None
        """)
    (output,) = contract.outputs
    assert ([each.text for each in output.expressions], output.starred, output.parameter) == (
        ["*[poses[link] for link in links], poses"],
        True,
        "*grads",
    )


def test_a_line_that_reads_an_attribute_twice_is_named_once() -> None:
    contract = contract_of("""
        class Square(Function):
            @staticmethod
            def forward(ctx, x, scale: float):
                ctx.save_for_backward(x)
                ctx.scale = scale
                return x * x * scale

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return grad * x * (ctx.scale + ctx.scale), None
        """)
    (line,) = [each for each in render(contract, 100, TextStyle(on=False)).splitlines() if "read in" in each]
    assert line.split("read in")[1].strip() == "backward (line 15)"


def test_inputs_saved_by_a_star_have_their_names() -> None:
    contract = contract_of("""
        class Mul(Function):
            @staticmethod
            def forward(x, y):
                return x * y

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*inputs)

            @staticmethod
            def backward(ctx, grad):
                a, b = ctx.saved_tensors
                return grad * b, grad * a
        """)
    assert [save.expression for save in contract.saves] == ["x", "y"]


def test_what_is_marked_under_a_condition_may_be_differentiable() -> None:
    contract = contract_of("""
        class Sort(Function):
            @staticmethod
            def forward(ctx, x, mark):
                index = find(x)
                if mark:
                    ctx.mark_non_differentiable(index)
                return x.exp(), index

            @staticmethod
            def backward(ctx, grad, _):
                return grad, None
        """)
    assert [each.differentiable for each in contract.outputs] == ["yes", "unknown"]


def test_an_unpacking_belongs_to_the_call_that_saves_as_many() -> None:
    contract = contract_of("""
        class Norm(Function):
            @staticmethod
            def forward(ctx, x, weight):
                y, rstd = norm(x)
                if weight is not None:
                    ctx.save_for_backward(x, weight, rstd)
                else:
                    ctx.save_for_backward(x, rstd)
                return y

            @staticmethod
            def backward(ctx, grad):
                if ctx.has_weight:
                    x, weight, rstd = ctx.saved_tensors
                else:
                    x, rstd = ctx.saved_tensors
                return grad * rstd, None
        """)
    lines = [
        (save.expression, [read.place and read.place.line for read in save.reads or ()]) for save in contract.saves
    ]
    assert lines == [("x", [18]), ("weight", [18]), ("rstd", [18]), ("x", [20]), ("rstd", [20])]


def test_what_a_function_of_the_file_gives_back_is_not_read_again() -> None:
    contract = contract_of("""
        def scaled(grad, a, b):
            return a, b


        class Fn(Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_backward(x, y)
                return x * y

            @staticmethod
            def backward(ctx, grad):
                x, y = ctx.saved_tensors
                x, y = scaled(grad, x, y)
                first, *rest, last = ctx.saved_tensors
                a, b = ctx.saved_tensors[:2]
                return x, y
        """)
    lines = [[read.place and read.place.line for read in save.reads or ()] for save in contract.saves]
    assert lines == [[17, 19, 20], [17, 19, 20]]


def test_outputs_of_alternatives_keep_their_own_code() -> None:
    contract = contract_of("""
        class Fn(Function):
            @staticmethod
            def forward(ctx, x, both):
                out = x * 2
                return out if not both else (out, x.exp())

            @staticmethod
            def backward(ctx, grad, *others):
                return grad, None
        """)
    assert not contract.outputs_known
    assert [[each.text for each in output.expressions] for output in contract.outputs] == [["out"], ["x.exp()"]]
    assert [output.parameter for output in contract.outputs] == ["grad", "others[0]"]


def test_a_type_that_is_asked_for_speaks_for_neither() -> None:
    contract = contract_of("""
        class Fn(Function):
            @staticmethod
            def forward(ctx, x, other):
                if isinstance(other, torch.Tensor):
                    other = other * 2
                return x * other

            @staticmethod
            def backward(ctx, grad):
                return grad, None
        """)
    assert {each.text: each.tensor for each in contract.inputs[1].evidence}["type is tested"] is None


def test_one_expression_with_several_values_keeps_its_code() -> None:
    contract = contract_of("""
        def reduce(x, group):
            if group is None:
                return x
            return x * 2


        class Reduce(Function):
            @staticmethod
            def forward(ctx, x):
                return reduce(x, ctx.group)

            @staticmethod
            def backward(ctx, grad):
                return reduce(grad, ctx.group) if ctx.needs_input_grad[0] else None
        """)
    assert [each.text for each in contract.outputs[0].expressions] == ["reduce(x, ctx.group)"]
    slots = contract.returns[0].slots
    assert slots is not None
    assert [(slot.text, slot.none, slot.input_name, slot.written_here) for slot in slots] == [
        ("reduce(grad, ctx.group) if ctx.needs_input_grad[0] else None", "sometimes", "x", True)
    ]
    assert [guard.text for guard in contract.inputs[0].guards] == ["ctx.needs_input_grad[0]"]
