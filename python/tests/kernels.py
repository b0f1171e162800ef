"""Kernels that pytest compiles through the hook, with their signatures and constants."""

import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(out, x, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + at, mask=at < n, other=-float("inf"))
    raised = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + at, raised / tl.sum(raised, axis=0), mask=at < n)


@triton.jit
def matmul(a, b, c, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * sa + rk[None, :]
    pb = b + rk[:, None] * sb + rn[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc += tl.dot(tl.load(pa), tl.load(pb))
        pa += BK
        pb += BK * sb
    tl.store(c + rm[:, None] * sc + rn[None, :], acc.to(tl.float16))


@triton.jit
def column_sums(x, out, rows, columns, BR: tl.constexpr, BC: tl.constexpr):
    column = tl.program_id(0) * BC + tl.arange(0, BC)
    total = tl.zeros((BC,), tl.float32)
    for start in range(0, rows, BR):
        row = start + tl.arange(0, BR)
        mask = (row[:, None] < rows) & (column[None, :] < columns)
        total += tl.sum(tl.load(x + row[:, None] * columns + column[None, :], mask=mask, other=0.0), axis=0)
    tl.store(out + column, total, mask=column < columns)


@triton.jit
def cumulative(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.cumsum(tl.load(x + at), axis=0))


@triton.jit
def transpose(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    tl.store(out + j[:, None] * n + i[None, :], tl.trans(tl.load(x + i[:, None] * n + j[None, :])))


@triton.jit
def histogram(x, out, BLOCK: tl.constexpr, BINS: tl.constexpr):
    values = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(out + tl.arange(0, BINS), tl.histogram(values, BINS))


@triton.jit
def activation(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(out + at, (value * tl.sigmoid(value) + tl.erf(value)).to(tl.float16), mask=at < n)


@triton.jit
def hints(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at, cache_modifier=".ca", eviction_policy="evict_first")
    tl.debug_barrier()
    tl.store(out + at, value, cache_modifier=".wt")


@triton.jit
def checked(x, index, out, n, BLOCK: tl.constexpr):
    at = tl.load(index + tl.arange(0, BLOCK))
    tl.device_assert(at < n, "the index is out of range")
    tl.store(out + tl.arange(0, BLOCK), tl.load(x + at))


@triton.jit
def copy_tile(source, target, B: tl.constexpr):
    row = tl.program_id(0) * B
    target.store([row, 0], source.load([row, 0]) + 1.0)


@triton.jit
def attention(q, k, v, out, n, D: tl.constexpr, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    lanes = tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + lanes[None, :])
    most = tl.full((B,), -float("inf"), tl.float32)
    total = tl.zeros((B,), tl.float32)
    acc = tl.zeros((B, D), tl.float32)
    for start in range(0, n, B):
        other = start + tl.arange(0, B)
        key = tl.load(k + other[:, None] * D + lanes[None, :])
        value = tl.load(v + other[:, None] * D + lanes[None, :])
        scores = tl.dot(query, tl.trans(key))
        higher = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        scale = tl.exp(most - higher)
        total = total * scale + tl.sum(weights, 1)
        acc = acc * scale[:, None] + tl.dot(weights.to(tl.float16), value)
        most = higher
    tl.store(out + rows[:, None] * D + lanes[None, :], (acc / total[:, None]).to(tl.float16))


F32, F16, I32 = "*fp32", "*fp16", "*i32"
SIZES = {"n": "i32", "stride": "i32", "M": "i32", "N": "i32", "K": "i32", "sa": "i32", "sb": "i32", "sc": "i32"}

# Kernel, pointers' types by name, constants.
CASES = [
    (add, {"x": F32, "y": F32, "out": F32}, {"BLOCK": 1024}),
    (softmax, {"out": F32, "x": F32}, {"BLOCK": 1024}),
    (matmul, {"a": F16, "b": F16, "c": F16}, {"BM": 64, "BN": 64, "BK": 32}),
    (column_sums, {"x": F32, "out": F32, "rows": "i32", "columns": "i32"}, {"BR": 32, "BC": 64}),
    (cumulative, {"x": F32, "out": F32}, {"BLOCK": 512}),
    (transpose, {"x": F16, "out": F16}, {"B": 64}),
    (histogram, {"x": I32, "out": I32}, {"BLOCK": 512, "BINS": 64}),
    (activation, {"x": F16, "out": F16}, {"BLOCK": 512}),
    (hints, {"x": F32, "out": F32}, {"BLOCK": 512}),
    (checked, {"x": F32, "index": I32, "out": F32}, {"BLOCK": 128}),
    (copy_tile, {"source": "tensordesc<fp32[32, 32]>", "target": "tensordesc<fp32[32, 32]>"}, {"B": 32}),
    (attention, {"q": F16, "k": F16, "v": F16, "out": F16}, {"D": 64, "B": 64}),
]


def source(case, fn=None):
    """A case as Triton's compiler takes it."""
    kernel, types, constants = case
    signature = {}
    for name in kernel.arg_names:
        signature[name] = "constexpr" if name in constants else types.get(name) or SIZES[name]
    return triton.compiler.ASTSource(fn or kernel, signature=signature, constexprs=constants)
