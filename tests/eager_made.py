"""Attention without a fused kernel as models write it, operator by operator with real names."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from operators_made import BF16, FP32, Op, op

GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_cublas"
GEMM_TF32 = "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4_warpsize2x2x1_cublas"
COPY = "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>(int)"
SCALE = "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float> >(int)"
ADD = "void at::native::elementwise_kernel<128, 4, at::native::CUDAFunctor_add<c10::BFloat16> >(x)"
SOFTMAX = "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>"
WIDE_SOFTMAX = (
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float, float, float, "
    "at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(float*, float const*, int)"
)
SOFTMAX_BACKWARD = "void (anonymous namespace)::softmax_warp_backward<float, float, float, 8>"

Shape = list[int]


def transpose(shape: Shape, one: int = 2, other: int = 3) -> Op:
    view = op("aten::as_strided", dims=[shape])
    return op("aten::transpose", view, dims=[shape], scalars={1: str(one), 2: str(other)})


def copied(shape: Shape, name: str = "aten::contiguous") -> Op:
    copy = op("aten::copy_", (COPY, 3), dims=[shape, shape])
    return op(name, op("aten::clone", copy, dims=[shape]), dims=[shape])


def cast(shape: Shape, to_float: bool = True) -> Op:
    copy = op("aten::copy_", (COPY, 4), dims=[shape, shape])
    to = op("aten::_to_copy", copy, dims=[shape], types=BF16 if to_float else FP32)
    return op("aten::to", to, dims=[shape], types=BF16 if to_float else FP32)


def bmm(one: Shape, other: Shape, us: int = 10, kernel: str = GEMM, dtype: str = BF16) -> Op:
    return op("aten::bmm", (kernel, us), dims=[one, other], types=dtype)


def matmul(one: Shape, other: Shape, copies: bool = False, dtype: str = BF16) -> Op:
    """Return a product of tensors of more than three dimensions, with its views and copies."""
    flat = [[prod(shape[:-2]), *shape[-2:]] for shape in (one, other)]
    parts: list[Op] = []
    for shape in (one, other):
        parts.append(op("aten::expand", op("aten::as_strided", dims=[shape]), dims=[shape]))
        if copies:
            parts.append(copied(shape, "aten::reshape"))
        else:
            parts.append(op("aten::reshape", op("aten::view", dims=[shape]), dims=[shape]))
    kernel = GEMM_TF32 if dtype == FP32 else GEMM
    parts.append(bmm(flat[0], flat[1], kernel=kernel, dtype=dtype))
    parts.append(op("aten::_unsafe_view", dims=[[*flat[0][:2], other[-1]]]))
    return op("aten::matmul", *parts, dims=[one, other], types=dtype)


def softmax(shape: Shape, kernel: str = SOFTMAX, dtype: str = FP32, us: int = 8) -> Op:
    scalars = {1: str(len(shape) - 1), 2: "False"}
    inner = op("aten::_softmax", (kernel, us), dims=[shape], scalars=scalars, types=dtype)
    return op("aten::softmax", inner, dims=[shape], scalars={1: "-1"}, types=dtype)


def add(shape: Shape, bias: Shape, name: str = "aten::add") -> Op:
    return op(name, (ADD, 6), dims=[shape, bias, []], scalars={2: "1"})


def linear(lead: Shape, size: int, out: int | None = None) -> Op:
    rows, out = prod(lead), out or size
    inner = op("aten::addmm", (GEMM, 20), dims=[[out], [rows, size], [size, out]])
    return op("aten::linear", inner, dims=[[*lead, size], [out, size], [out]])


def norm(lead: Shape, size: int) -> Op:
    kernel = (
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int)"
    )
    return op("aten::native_layer_norm", (kernel, 5), dims=[[*lead, size]])


def merged(b: int, h: int, n: int, d: int) -> list[Op]:
    """Return what brings the heads of an output together, and the projection."""
    return [transpose([b, h, n, d], 1, 2), copied([b, n, h, d]), linear([b, n], h * d)]


def interface(b: int, h: int, n: int, m: int, d: int, bias: Sequence[Shape] = ()) -> list[Op]:
    """Return attention as `eager_attention_forward` of Transformers: four dimensions, fp32."""
    scores = [b, h, n, m]
    return [
        transpose([b, h, m, d]),
        matmul([b, h, n, d], [b, h, d, m], copies=True),
        op("aten::mul", (SCALE, 6), dims=[scores, []], scalars={1: "0.125"}),
        *(add(scores, one) for one in bias),
        cast(scores),
        softmax(scores),
        cast(scores, to_float=False),
        op("aten::dropout", dims=[scores], scalars={1: "0.", 2: "False"}),
        matmul(scores, [b, h, m, d]),
        *merged(b, h, n, d),
    ]


def flat_heads(b: int, h: int, n: int, m: int, d: int, masked: bool = False) -> list[Op]:
    """Return attention as CLIP, OWL and DETR write it: batch and heads in one dimension."""
    scores = [b * h, n, m]
    view = op("aten::view", dims=[scores])
    mask = [view, add([b, h, n, m], [b, 1, n, m]), view] if masked else []
    return [
        *(copied([b, h, rows, d]) for rows in (n, m, m)),
        transpose([b * h, m, d], 1, 2),
        bmm([b * h, n, d], [b * h, d, m], 30),
        *mask,
        softmax(scores, WIDE_SOFTMAX, BF16, 40),
        op("aten::dropout", dims=[scores]),
        bmm(scores, [b * h, m, d], 30),
        op("aten::view", dims=[[b * h, n, d]]),
        *merged(b, h, n, d),
    ]


def module(b: int, h: int, n: int, d: int) -> list[Op]:
    """Return `nn.MultiheadAttention` that is asked for its weights, with a mask: tokens first."""
    scores = [b * h, n, n]
    return [
        op("aten::mul", (SCALE, 3), dims=[[b * h, n, d], []]),
        op("aten::baddbmm", (GEMM, 12), dims=[scores, [b * h, n, d], [b * h, d, n]]),
        softmax(scores, dtype=BF16),
        bmm(scores, [b * h, n, d]),
        transpose([b * h, n, d], 0, 1),
        copied([n, b * h, d]),
        linear([n * b], h * d),
        op("aten::mean", ("void at::native::reduce_kernel<512, 1, x>", 4), dims=[[b, h, n, n]]),
    ]


def einsum(b: int, h: int, n: int, m: int, d: int) -> list[Op]:
    scores = [b, h, n, m]

    def product(one: Shape, other: Shape) -> Op:
        flat = [[b * h, *one[-2:]], [b * h, *other[-2:]]]
        parts = (
            op("aten::permute", dims=[one]),
            copied(one, "aten::reshape"),
            bmm(flat[0], flat[1]),
        )
        return op("aten::einsum", *parts, dims=[[], [], []])

    weights = softmax(scores, dtype=BF16)
    return [product([b, h, n, d], [b, h, d, m]), weights, product(scores, [b, h, m, d])]


def shared_keys(b: int, h: int, n: int, m: int, d: int) -> list[Op]:
    """Return attention whose heads share a key, those of a token behind one another."""
    rows = n * h
    factors = [[b, rows, m], [b, rows, d], [b, d, m]]
    return [
        op("aten::baddbmm", (GEMM, 12), dims=factors, scalars={3: "0", 4: "0.125"}),
        op("aten::where", (ADD, 6), dims=[[b, n, 1, m], [b, n, h, m], []], types={0: "bool"}),
        softmax([b, n, h, m], dtype=BF16),
        bmm([b, rows, m], [b, m, d]),
        linear([b, n], h * d),
    ]


def compiled(rows: int, n: int, d: int, template: bool = False) -> list[Op]:
    """Return what Inductor makes of it, with products of its own where `template`."""
    products = [
        ([rows, n, d], [rows, d, n], [rows, n, n]),
        ([rows, n, n], [rows, n, d], [rows, n, d]),
    ]
    names = [f"triton_tem_fused_bmm_{no}" for no in range(2)] if template else ["aten::bmm"] * 2
    one, other = (
        op(name, (name if template else GEMM, 9), dims=dims)
        for name, dims in zip(names, products, strict=True)
    )
    kernel = "triton_per_fused__softmax__to_copy_mul_4"
    return [one, op(kernel, (kernel, 6), dims=[[rows, n, n], [rows, n, 1], [], []]), other]


def both_ways(b: int, n: int, m: int, d: int) -> list[Op]:
    """Return the two attentions of image and text that share their scores."""
    scores = [b, n, m]
    return [
        bmm([b, n, d], [b, d, m]),
        transpose(scores, 1, 2),
        op("aten::sub", (ADD, 6), dims=[[b, m, n], [b, m, 1], []]),
        softmax([b, m, n], dtype=BF16),
        softmax(scores, dtype=BF16),
        bmm(scores, [b, m, d]),
        bmm([b, m, n], [b, n, d]),
    ]


def backward(b: int, h: int, n: int, m: int, d: int) -> list[Op]:
    """Return the backward of `interface`, under the names that autograd gives its parts."""
    scores, rows = [b, h, n, m], b * h

    def node(name: str, *inside: Op) -> Op:
        return op(f"autograd::engine::evaluate_function: {name}", op(name, *inside))

    gradient = op("aten::_softmax_backward_data", (SOFTMAX_BACKWARD, 8), dims=[scores] * 2)
    return [
        node("BmmBackward0", bmm([rows, n, d], [rows, d, m]), bmm([rows, m, n], [rows, n, d])),
        node("ToCopyBackward0", cast(scores)),
        node("SoftmaxBackward0", gradient),
        node("ToCopyBackward0", cast(scores, to_float=False)),
        node("MulBackward0", op("aten::mul", (SCALE, 3), dims=[scores, []])),
        node("BmmBackward0", bmm([rows, n, m], [rows, m, d]), bmm([rows, d, n], [rows, n, m])),
        node("AddmmBackward0", op("aten::mm", (GEMM, 10), dims=[[b * n, h * d], [h * d, h * d]])),
    ]


def math(b: int, h: int, h_kv: int, n: int, d: int, causal: bool = True, dtype: str = BF16) -> Op:
    """Return `scaled_dot_product_attention` that takes its path without a fused kernel."""
    q, k, scores = [b, h, n, d], [b, h_kv, n, d], [b, h, n, n]
    parts = [
        *(copied(q, "aten::repeat_interleave") for _ in range(2 if h > h_kv else 0)),
        op("aten::mul", (SCALE, 2), dims=[q, []]),
        op("aten::mul", (SCALE, 2), dims=[q, []]),
        matmul(q, [b, h, d, n], dtype=dtype),
        add(scores, [n, n]),
        op("aten::_safe_softmax", softmax(scores, dtype=dtype), dims=[scores]),
        matmul(scores, q, dtype=dtype),
    ]
    outer, inner = "aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention_math"
    dims, scalars = [q, k, k], {4: "0.", 5: str(causal)}
    call = op(inner, *parts, dims=dims, scalars=scalars, types=dtype)
    return op(outer, call, dims=dims, scalars=scalars, types=dtype)
