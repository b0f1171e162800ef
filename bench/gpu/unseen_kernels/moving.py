"""Moving, packing and counting data: sparse and ragged operands, experts' tokens, quantization, optimizers."""

import triton
import triton.language as tl

from .common import PROGRAMS, arange, case, cdiv, f32, ints, rand, run, uniform, zeros


@triton.jit
def embedding_bag(W, indices, offsets, Y, D, MEAN: tl.constexpr, BD: tl.constexpr, STEP: tl.constexpr):
    bag = tl.program_id(0)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    s = tl.arange(0, STEP)
    first, last = tl.load(offsets + bag), tl.load(offsets + bag + 1)
    acc = tl.zeros((BD,), tl.float32)
    for start in range(first, last, STEP):
        row = tl.load(indices + start + s, mask=start + s < last, other=0)
        w = tl.load(W + row[:, None] * D + d[None, :], mask=(start + s < last)[:, None] & (d < D)[None, :], other=0.0)
        acc += tl.sum(w.to(tl.float32), 0)
    if MEAN:
        acc /= tl.maximum(last - first, 1)
    tl.store(Y + bag * D + d, acc.to(Y.dtype.element_ty), mask=d < D)


@case
def embedding_bag_mean():
    bags, rows, d = 8192, 100000, 200
    y = zeros(bags, d)
    offsets = (arange(bags + 1, "int64") * 31)
    args = rand(rows, d), ints(0, rows, bags * 31, dtype="int64"), offsets, y, d
    return run(embedding_bag, (bags, 2), args, y, MEAN=True, BD=128, STEP=8, num_warps=2)


@triton.jit
def _segmented(f1, v1, f2, v2):
    return f1 | f2, tl.where(f2 != 0, v2, v1 + v2)


@triton.jit
def segment_reduce(ids, X, out, N, D, BN: tl.constexpr, BD: tl.constexpr):
    # Sorted ids: a segmented scan in the block, and an atomic add where a segment ends.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    i = tl.load(ids + n, mask=n < N, other=-1)
    before = tl.load(ids + n - 1, mask=(n > 0) & (n < N), other=-1)
    after = tl.load(ids + n + 1, mask=n + 1 < N, other=-1)
    x = tl.load(X + n[:, None] * D + d[None, :], mask=(n < N)[:, None], other=0.0)
    flag = tl.broadcast_to((i != before).to(tl.int32)[:, None], (BN, BD))
    _, s = tl.associative_scan((flag, x), 0, _segmented)
    j = tl.arange(0, BN)
    ends = ((i != after) | (j == BN - 1)) & (n < N)
    tl.atomic_add(out + i[:, None] * D + d[None, :], s, mask=ends[:, None], sem="relaxed")


@case
def segment_sum_scan_atomic():
    n, d, segments = 200000, 64, 9000
    out = zeros(segments, d, dtype="float32")
    ids = (arange(n) * segments // n).int() if n * segments < 2**31 else (arange(n, "int64") * segments // n).int()
    launch, args = run(segment_reduce, (cdiv(n, 128), d // 32), (ids, f32(n, d), out, n, d), out, BN=128, BD=32, num_warps=4)
    return (lambda *args: (out.zero_(), launch(*args))[1]), args


@triton.jit
def csr_times_dense(starts, columns, values, B, C, N, BN: tl.constexpr):
    # A row at a time, elements one by one.
    row = tl.program_id(0)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    at, last = tl.load(starts + row), tl.load(starts + row + 1)
    acc = tl.zeros((BN,), tl.float32)
    while at < last:
        acc += tl.load(values + at) * tl.load(B + tl.load(columns + at) * N + n, mask=n < N, other=0.0)
        at += 1
    tl.store(C + row * N + n, acc, mask=n < N)


@case
def spmm_csr_rows():
    m, k, n, each = 16384, 16384, 128, 20
    c = zeros(m, n, dtype="float32")
    starts = (arange(m + 1) * each).int()
    return run(csr_times_dense, (m, 1), (starts, ints(0, k, m * each), f32(m * each), f32(k, n), c, n), c, BN=128, num_warps=1)


@triton.jit
def edges_to_nodes(source, target, weight, X, Y, E, D: tl.constexpr, BE: tl.constexpr):
    # Messages along edges, added up in half precision.
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    d = tl.arange(0, D)
    live = (e < E)[:, None]
    s, t = tl.load(source + e, mask=e < E, other=0), tl.load(target + e, mask=e < E, other=0)
    w = tl.load(weight + e, mask=e < E, other=0.0)
    x = tl.load(X + s[:, None] * D + d[None, :], mask=live, other=0.0)
    tl.atomic_add(Y + t[:, None] * D + d[None, :], (x.to(tl.float32) * w[:, None]).to(Y.dtype.element_ty), mask=live, sem="relaxed")


@case
def graph_messages_f16_atomic():
    nodes, edges, d = 20000, 200000, 64
    y = zeros(nodes, d)
    target = (arange(edges, "int64") * 7919 % nodes).int()
    launch, args = run(edges_to_nodes, (cdiv(edges, 32),), (ints(0, nodes, edges), target, uniform(edges), rand(nodes, d), y, edges), y, D=d, BE=32, num_warps=4)
    return (lambda *args: (y.zero_(), launch(*args))[1]), args


@case
def graph_messages_bf16_atomic():
    nodes, edges, d = 20000, 200000, 32
    y = zeros(nodes, d, dtype="bfloat16")
    target = (arange(edges, "int64") * 7919 % nodes).int()
    launch, args = run(edges_to_nodes, (cdiv(edges, 64),), (ints(0, nodes, edges), target, uniform(edges), rand(nodes, d, dtype="bfloat16"), y, edges), y, D=d, BE=64, num_warps=2)
    return (lambda *args: (y.zero_(), launch(*args))[1]), args


@triton.jit
def pad_ragged(X, offsets, Y, longest, D, value, BT: tl.constexpr, BD: tl.constexpr):
    b, t = tl.program_id(0), tl.program_id(1) * BT + tl.arange(0, BT)
    first, last = tl.load(offsets + b), tl.load(offsets + b + 1)
    for start in range(0, D, BD):
        d = start + tl.arange(0, BD)
        live = (first + t < last)[:, None] & (d < D)[None, :]
        x = tl.load(X + (first + t)[:, None] * D + d[None, :], mask=live, other=value)
        tl.store(Y + (b * longest + t)[:, None] * D + d[None, :], x, mask=(t < longest)[:, None] & (d < D)[None, :])


@case
def ragged_to_padded_f16():
    b, longest, d = 64, 512, 300
    lengths = (arange(b) * 37 % 400 + 100)
    offsets = zeros(b + 1, dtype="int64")
    offsets[1:] = lengths.cumsum(0)
    y = zeros(b, longest, d)
    return run(pad_ragged, (b, longest // 16), (rand(b * 500, d), offsets, y, longest, d, -1.0), y, BT=16, BD=128, num_warps=4)


@triton.jit
def swap_with_padding(X, Y, A, B, C, CP, BA: tl.constexpr, BC: tl.constexpr):
    # [A, B, C] to [C padded to CP, B, A], through a tile in three dimensions.
    a = tl.program_id(0) * BA + tl.arange(0, BA)
    b = tl.program_id(1) * 4 + tl.arange(0, 4)
    c = tl.program_id(2) * BC + tl.arange(0, BC)
    live = (a < A)[:, None, None] & (b < B)[None, :, None] & (c < C)[None, None, :]
    x = tl.load(X + (a[:, None, None] * B + b[None, :, None]) * C + c[None, None, :], mask=live, other=0.0)
    y = tl.permute(x, (2, 1, 0))
    live = (c < CP)[:, None, None] & (b < B)[None, :, None] & (a < A)[None, None, :]
    tl.store(Y + (c[:, None, None] * B + b[None, :, None]) * A + a[None, None, :], y, mask=live)


@case
def transpose_3d_with_padding():
    a, b, c, cp = 500, 96, 500, 512
    y = zeros(cp, b, a)
    return run(swap_with_padding, (cdiv(a, 32), b // 4, cdiv(cp, 32)), (rand(a, b, c), y, a, b, c, cp), y, BA=32, BC=32, num_warps=4)


@triton.jit
def align_experts(ids, order, blocks, total, N, E: tl.constexpr, BLOCK: tl.constexpr, ALIGN: tl.constexpr, CHUNK: tl.constexpr):
    # One program: counts by tl.histogram, offsets by cumsum, ranks by a cumsum of one-hot rows.
    e, i = tl.arange(0, E), tl.arange(0, CHUNK)
    counts = tl.zeros((E,), tl.int32)
    for start in range(0, N, CHUNK):
        x = tl.load(ids + start + i, mask=start + i < N, other=0)
        counts += tl.histogram(x, E, mask=start + i < N)
    padded = (counts + ALIGN - 1) // ALIGN * ALIGN
    ends = tl.cumsum(padded, 0)
    begin = ends - padded
    tl.store(total, tl.sum(padded))
    for k in range(0, tl.max(ends) // ALIGN):
        tl.store(blocks + k, tl.sum((ends <= k * ALIGN).to(tl.int32)))
    for start in range(0, N, CHUNK):
        x = tl.load(ids + start + i, mask=start + i < N, other=E)
        hot = (x[:, None] == e[None, :]).to(tl.int32)
        rank = tl.cumsum(hot, 0) - hot
        at = tl.sum(hot * (rank + begin[None, :]), 1)
        tl.store(order + at, start + i, mask=start + i < N)
        begin += tl.sum(hot, 0)


@case
def moe_align_one_program():
    n, e = 4096, 32
    order, blocks, total = zeros(n + e * 16, dtype="int32"), zeros(n // 16 + e, dtype="int32"), zeros(1, dtype="int32")
    return run(align_experts, (1,), (ints(0, e, n), order, blocks, total, n), (order, blocks, total), E=e, BLOCK=16, ALIGN=16, CHUNK=128, num_warps=8)


@triton.jit
def group_limited_gate(X, bias, weights, ids, E: tl.constexpr, GROUPS: tl.constexpr, KEEP: tl.constexpr, K: tl.constexpr, KP: tl.constexpr):
    # DeepSeek's gate: sigmoid scores, groups by the sum of their two best, top-k of the groups kept.
    row = tl.program_id(0)
    per: tl.constexpr = E // GROUPS
    e = tl.arange(0, E)
    score = tl.sigmoid(tl.load(X + row * E + e).to(tl.float32))
    chosen = score + tl.load(bias + e)
    g = tl.reshape(chosen, (GROUPS, per))
    first, at = tl.max(g, 1, return_indices=True)
    second = tl.max(tl.where(tl.arange(0, per)[None, :] == at[:, None], float("-inf"), g), 1)
    strength = first + second
    j = tl.arange(0, GROUPS)
    better = (strength[None, :] > strength[:, None]) | ((strength[None, :] == strength[:, None]) & (j[None, :] < j[:, None]))
    kept = tl.sum(better.to(tl.int32), 1) < KEEP
    g = tl.where(kept[:, None], g, float("-inf"))
    flat = tl.reshape(g, (E,))
    slot = tl.arange(0, KP)
    out_ids = tl.zeros((KP,), tl.int32)
    out_w = tl.zeros((KP,), tl.float32)
    total = 0.0
    for k in tl.static_range(K):
        best = tl.argmax(flat, 0)
        w = tl.sum(tl.where(e == best, score, 0.0))
        out_ids = tl.where(slot == k, best, out_ids)
        out_w = tl.where(slot == k, w, out_w)
        total += w
        flat = tl.where(e == best, float("-inf"), flat)
    tl.store(ids + row * K + slot, out_ids, mask=slot < K)
    tl.store(weights + row * K + slot, out_w / total * 2.5, mask=slot < K)


@case
def moe_group_limited_gate():
    rows, e, k = 8192, 256, 8
    weights, ids = zeros(rows, k, dtype="float32"), zeros(rows, k, dtype="int32")
    return run(group_limited_gate, (rows,), (rand(rows, e, dtype="bfloat16"), f32(e), weights, ids), (weights, ids), E=e, GROUPS=8, KEEP=4, K=k, KP=8, num_warps=1)


@triton.jit
def adamw_pointers(table, sizes, lr, b1, b2, eps, decay, step, BLOCK: tl.constexpr):
    # One launch for many tensors: their addresses and sizes are in tables.
    t = tl.program_id(1)
    n = tl.load(sizes + t)
    start = tl.program_id(0) * BLOCK
    if start >= n:
        return
    at = start + tl.arange(0, BLOCK)
    live = at < n
    p = tl.load(table + t * 4).to(tl.pointer_type(tl.bfloat16)) + at
    g = tl.load(table + t * 4 + 1).to(tl.pointer_type(tl.bfloat16)) + at
    m = tl.load(table + t * 4 + 2).to(tl.pointer_type(tl.float32)) + at
    v = tl.load(table + t * 4 + 3).to(tl.pointer_type(tl.float32)) + at
    grad = tl.load(g, mask=live).to(tl.float32)
    w = tl.load(p, mask=live).to(tl.float32)
    m1 = b1 * tl.load(m, mask=live) + (1 - b1) * grad
    v1 = b2 * tl.load(v, mask=live) + (1 - b2) * grad * grad
    c1, c2 = 1 - tl.exp2(step * tl.log2(b1)), 1 - tl.exp2(step * tl.log2(b2))
    w = w * (1 - lr * decay) - lr * (m1 / c1) / (tl.sqrt(v1 / c2) + eps)
    tl.store(p, w.to(tl.bfloat16), mask=live)
    tl.store(m, m1, mask=live)
    tl.store(v, v1, mask=live)


@case
def adamw_table_of_pointers():
    import torch

    sizes = [4096 * 1024, 1024, 4096 * 4096, 4096, 1000 * 333]
    tensors = [(rand(n, dtype="bfloat16"), rand(n, dtype="bfloat16"), f32(n), uniform(n)) for n in sizes]
    source = [[x.clone() for x in four] for four in tensors]
    table = torch.tensor([[x.data_ptr() for x in four] for four in tensors], device="cuda", dtype=torch.int64)
    counts = torch.tensor(sizes, device="cuda", dtype=torch.int64)
    launch, args = run(adamw_pointers, (cdiv(max(sizes), 2048), len(sizes)), (table, counts, 1e-3, 0.9, 0.999, 1e-8, 0.01, 10.0), None, BLOCK=2048, num_warps=4)

    def call(*args):
        for four, old in zip(tensors, source):
            for x, y in zip(four, old):
                x.copy_(y)
        launch(*args)
        return [x for p, _, m, v in tensors for x in (p, m, v)]

    return call, args


@triton.jit
def lion(P, G, M, lr, b1, b2, decay, N, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = at < N
    p, g, m = tl.load(P + at, mask=live), tl.load(G + at, mask=live), tl.load(M + at, mask=live)
    c = b1 * m + (1 - b1) * g
    sign = tl.where(c > 0, 1.0, tl.where(c < 0, -1.0, 0.0))
    tl.store(P + at, p * (1 - lr * decay) - lr * sign, mask=live)
    tl.store(M + at, b2 * m + (1 - b2) * g, mask=live)


@case
def lion_step_f32():
    n = 10_000_001
    p, m = f32(n), f32(n)
    q, k = p.clone(), m.clone()
    launch, args = run(lion, (cdiv(n, 1024),), (p, f32(n), m, 1e-4, 0.9, 0.99, 0.1, n), (p, m), BLOCK=1024, num_warps=8)
    return (lambda *args: (p.copy_(q), m.copy_(k), launch(*args))[2]), args


@triton.jit
def adam_8bit(P, G, M, V, scale_m, scale_v, book, lr, N, BLOCK: tl.constexpr):
    # Blockwise states of 8 bits in a table of 256 values: looked up, and found again by bisection.
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    live = at < N
    g = tl.load(G + at, mask=live, other=0.0).to(tl.float32)
    m = tl.load(book + tl.load(M + at, mask=live, other=0).to(tl.int32)) * tl.load(scale_m + pid)
    v = tl.load(book + 256 + tl.load(V + at, mask=live, other=0).to(tl.int32)) * tl.load(scale_v + pid)
    m = 0.9 * m + 0.1 * g
    v = 0.995 * v + 0.005 * g * g
    w = tl.load(P + at, mask=live, other=0.0).to(tl.float32)
    tl.store(P + at, (w - lr * m / (tl.sqrt(v) + 1e-8)).to(P.dtype.element_ty), mask=live)
    sm, sv = tl.maximum(tl.max(tl.abs(m)), 1e-12), tl.maximum(tl.max(v), 1e-20)
    tl.store(scale_m + pid, sm)
    tl.store(scale_v + pid, sv)
    m /= sm
    v /= sv
    im = tl.zeros((BLOCK,), tl.int32)
    iv = tl.zeros((BLOCK,), tl.int32)
    for bit in tl.static_range(7, -1, -1):
        im = tl.where(tl.load(book + im + (1 << bit)) <= m, im + (1 << bit), im)
        iv = tl.where(tl.load(book + 256 + iv + (1 << bit)) <= v, iv + (1 << bit), iv)
    tl.store(M + at, im.to(tl.uint8), mask=live)
    tl.store(V + at, iv.to(tl.uint8), mask=live)


@case
def adam_8bit_bisection():
    import torch

    n, block = 1 << 22, 2048
    book = torch.cat([torch.linspace(-1, 1, 256), torch.linspace(0, 1, 256)]).cuda()
    p, m, v = rand(n), ints(0, 255, n, dtype="uint8"), ints(0, 255, n, dtype="uint8")
    sm, sv = uniform(n // block), uniform(n // block)
    old = [x.clone() for x in (p, m, v, sm, sv)]
    launch, args = run(adam_8bit, (n // block,), (p, rand(n), m, v, sm, sv, book, 1e-3, n), (p, sm, sv), BLOCK=block, num_warps=8)

    def call(*args):
        for x, y in zip((p, m, v, sm, sv), old):
            x.copy_(y)
        return launch(*args)

    return call, args


@triton.jit
def stochastic_fp8(X, Y, seed, N, BLOCK: tl.constexpr):
    # Stochastic rounding to e5m2 by integers.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < N, other=0.0)
    bits = x.to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF
    noise = (tl.randint(seed, at) & 0xFF).to(tl.int32)
    magnitude = tl.minimum((bits & 0x7FFF) + noise, 0x7BFF)
    tl.store(Y + at, (((bits & 0x8000) | magnitude) >> 8).to(tl.uint8), mask=at < N)


@case
def quant_e5m2_stochastic():
    n = 20_000_000
    y = zeros(n, dtype="uint8")
    return run(stochastic_fp8, (cdiv(n, 1024),), (rand(n), y, 5, n), y, BLOCK=1024, num_warps=4)


@triton.jit
def quant_channels(X, Q, scale, zero, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # Asymmetric bytes for each column: two passes over rows.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    r = tl.arange(0, BM)
    lo = tl.full((BM, BN), float("inf"), tl.float32)
    hi = tl.full((BM, BN), float("-inf"), tl.float32)
    for start in range(0, M, BM):
        live = (start + r < M)[:, None] & (n < N)[None, :]
        x = tl.load(X + (start + r)[:, None] * N + n[None, :], mask=live, other=0.0).to(tl.float32)
        lo, hi = tl.minimum(lo, x), tl.maximum(hi, x)
    low, high = tl.min(lo, 0), tl.max(hi, 0)
    s = tl.maximum((high - low) / 255.0, 1e-8)
    z = tl.floor(-low / s + 0.5)
    tl.store(scale + n, s, mask=n < N)
    tl.store(zero + n, z.to(tl.uint8), mask=n < N)
    for start in range(0, M, BM):
        live = (start + r < M)[:, None] & (n < N)[None, :]
        x = tl.load(X + (start + r)[:, None] * N + n[None, :], mask=live, other=0.0).to(tl.float32)
        q = tl.clamp(tl.floor(x / s[None, :] + z[None, :] + 0.5), 0.0, 255.0)
        tl.store(Q + (start + r)[:, None] * N + n[None, :], q.to(tl.uint8), mask=live)


@case
def quant_u8_channels():
    m, n = 2048, 8000
    q, s, z = zeros(m, n, dtype="uint8"), zeros(n, dtype="float32"), zeros(n, dtype="uint8")
    return run(quant_channels, (cdiv(n, 64),), (rand(m, n), q, s, z, m, n), (q, s), BM=64, BN=64, num_warps=8)


@triton.jit
def quant_mxfp4(X, Q, S, N, BLOCK: tl.constexpr):
    # Groups of 32 with a power of two, nearest of the eight magnitudes, two in a byte.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < N, other=0.0).to(tl.float32)
    x = tl.reshape(x, (BLOCK // 32, 32))
    top = tl.max(tl.abs(x), 1)
    exponent = ((top.to(tl.int32, bitcast=True) >> 23) & 0xFF) - 2
    exponent = tl.maximum(exponent, 1)
    inverse = ((254 - exponent) << 23).to(tl.float32, bitcast=True)
    y = x * inverse[:, None]
    a = tl.abs(y)
    code = (a > 0.25).to(tl.int32) + (a >= 0.75).to(tl.int32) + (a > 1.25).to(tl.int32) + (a >= 1.75).to(tl.int32)
    code += (a > 2.5).to(tl.int32) + (a >= 3.5).to(tl.int32) + (a > 5.0).to(tl.int32)
    code |= (y < 0).to(tl.int32) << 3
    low, high = tl.split(tl.reshape(code, (BLOCK // 2, 2)))
    half = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK // 2)
    tl.store(Q + half, (low | (high << 4)).to(tl.uint8), mask=half < N // 2)
    group = tl.program_id(0) * (BLOCK // 32) + tl.arange(0, BLOCK // 32)
    tl.store(S + group, exponent.to(tl.uint8), mask=group < N // 32)


@case
def quant_mxfp4_pairs():
    n = 1 << 24
    q, s = zeros(n // 2, dtype="uint8"), zeros(n // 32, dtype="uint8")
    return run(quant_mxfp4, (cdiv(n, 4096),), (rand(n, dtype="bfloat16"), q, s, n), (q, s), BLOCK=4096, num_warps=4)


@triton.jit
def dequant_nf4_nested(Q, absmax8, absmax_scale, offset, book, Y, N, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    # QLoRA: codes of 4 bits, scales of groups that are bytes with scales of their own.
    byte = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(Q + byte, mask=byte < N // 2, other=0).to(tl.int32)
    group = byte * 2 // GROUP
    s = (tl.load(absmax8 + group, mask=byte < N // 2, other=0).to(tl.float32) - 128.0) * tl.load(absmax_scale + group // 256, mask=byte < N // 2, other=0.0) + tl.load(offset)
    table = tl.load(book + tl.arange(0, 16))
    high, low = tl.gather(table, q >> 4, 0) * s, tl.gather(table, q & 15, 0) * s
    out = tl.program_id(0) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
    tl.store(Y + out, tl.interleave(high, low).to(Y.dtype.element_ty), mask=out < N)


@case
def dequant_nf4_nested_scales():
    n = 1 << 24
    y = zeros(n, dtype="bfloat16")
    args = ints(0, 255, n // 2, dtype="uint8"), ints(0, 255, n // 64, dtype="uint8"), uniform(n // 64 // 256), uniform(1), f32(16), y, n
    return run(dequant_nf4_nested, (cdiv(n // 2, 1024),), args, y, GROUP=64, BLOCK=1024, num_warps=4)


@triton.jit
def pack_signs(X, Q, scale, N, BLOCK: tl.constexpr):
    # A bit for each sign, 32 in a word, with the mean magnitude of each block.
    pid = tl.program_id(0)
    at = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < N, other=0.0).to(tl.float32)
    tl.store(scale + pid, tl.sum(tl.abs(x)) / BLOCK)
    bits = tl.reshape((x >= 0).to(tl.int32), (BLOCK // 32, 32)) << tl.arange(0, 32)[None, :]
    tl.store(Q + pid * (BLOCK // 32) + tl.arange(0, BLOCK // 32), tl.sum(bits, 1))


@case
def pack_signs_of_gradients():
    n = 1 << 24
    q, s = zeros(n // 32, dtype="int32"), zeros(n // 4096, dtype="float32")
    return run(pack_signs, (n // 4096,), (rand(n), q, s, n), (q, s), BLOCK=4096, num_warps=8)


@triton.jit
def unpack_three_bits(Q, scale, Y, N, BLOCK: tl.constexpr):
    # Ten values of three bits in each word.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    word, place = at // 10, at % 10
    q = tl.load(Q + word, mask=at < N, other=0)
    v = ((q >> (place * 3)) & 7) - 4
    tl.store(Y + at, (v.to(tl.float32) * tl.load(scale + at // 128, mask=at < N, other=0.0)).to(tl.float16), mask=at < N)


@case
def unpack_ten_in_a_word():
    n = 12_800_000
    y = zeros(n)
    return run(unpack_three_bits, (cdiv(n, 1024),), (ints(0, 2**30, n // 10), uniform(n // 128), y, n), y, BLOCK=1024, num_warps=4)


@triton.jit
def hash_insert(keys, table, slots, N, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    # Open addressing: every element probes by compare-and-swap until all are placed.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(keys + at, mask=at < N, other=0)
    h = key.to(tl.uint32)
    h ^= h >> 16
    h *= 0x85EBCA6B
    h ^= h >> 13
    h *= 0xC2B2AE35
    h ^= h >> 16
    slot = (h % SIZE).to(tl.int32)
    found = at >= N
    left = 1
    while left > 0:
        old = tl.atomic_cas(table + tl.where(found, SIZE + at % BLOCK, slot), tl.full((BLOCK,), -1, tl.int32), key)
        done = (old == -1) | (old == key)
        slot = tl.where(found | done, slot, (slot + 1) % SIZE)
        found = found | done
        left = tl.sum((~found).to(tl.int32))
    tl.store(slots + at, tl.load(table + slot), mask=at < N)


@case
def hash_table_insert():
    import torch

    n, size = 1 << 19, 1 << 21
    table, slots = torch.full((size + 1024,), -1, device="cuda", dtype=torch.int32), zeros(n, dtype="int32")
    launch, args = run(hash_insert, (n // 256,), (ints(0, 2**31 - 1, n), table, slots, n), slots, SIZE=size, BLOCK=256, num_warps=2)
    return (lambda *args: (table.fill_(-1), launch(*args))[1]), args


@triton.jit
def radix_counts(X, counts, N, shift, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    acc = tl.zeros((256,), tl.int32)
    for step in range(STEPS):
        at = (tl.program_id(0) * STEPS + step) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(X + at, mask=at < N, other=0)
        acc += tl.histogram((x >> shift) & 255, 256, mask=at < N)
    tl.store(counts + tl.arange(0, 256) * tl.num_programs(0) + tl.program_id(0), acc)


@case
def radix_digit_histograms():
    n = 1 << 23
    counts = zeros(256, n // 16384, dtype="int32")
    return run(radix_counts, (n // 16384,), (ints(0, 2**31 - 1, n), counts, n, 8), counts, BLOCK=2048, STEPS=8, num_warps=4)


@triton.jit
def run_lengths(X, flags, heads, N, BLOCK: tl.constexpr):
    # unique_consecutive's first part: where runs begin, counted by block.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + at, mask=at < N, other=0)
    before = tl.load(X + at - 1, mask=(at > 0) & (at < N), other=0)
    head = ((x != before) | (at == 0)) & (at < N)
    tl.store(flags + at, tl.cumsum(head.to(tl.int32), 0), mask=at < N)
    tl.store(heads + tl.program_id(0), tl.sum(head.to(tl.int32)))


@case
def unique_run_heads():
    n = 10_000_000
    flags, heads = zeros(n, dtype="int32"), zeros(cdiv(n, 4096), dtype="int32")
    return run(run_lengths, (cdiv(n, 4096),), (ints(0, 4, n, dtype="int64"), flags, heads, n), (flags, heads), BLOCK=4096, num_warps=8)


@triton.jit
def write_paged_cache(K, V, slots, Kc, Vc, H: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, X: tl.constexpr):
    # vLLM's old layout: keys as [page, head, D / X, PAGE, X], values as [page, head, D, PAGE].
    t = tl.program_id(0)
    slot = tl.load(slots + t)
    if slot < 0:
        return
    page, place = slot // PAGE, slot % PAGE
    h, d = tl.arange(0, H), tl.arange(0, D)
    at = (t * H + h)[:, None] * D + d[None, :]
    k, v = tl.load(K + at), tl.load(V + at)
    head = page * H + h
    tl.store(Kc + head[:, None] * D * PAGE + (d // X)[None, :] * PAGE * X + place * X + (d % X)[None, :], k)
    tl.store(Vc + head[:, None] * D * PAGE + d[None, :] * PAGE + place, v)


@case
def cache_write_split_layout():
    t, h, d, page, x = 4096, 8, 128, 16, 8
    kc, vc = zeros(512, h, d // x, page, x), zeros(512, h, d, page)
    slots = (arange(t, "int64") * 5 + 1) % (512 * page)
    return run(write_paged_cache, (t,), (rand(t, h, d), rand(t, h, d), slots, kc, vc), (kc, vc), H=h, D=d, PAGE=page, X=x, num_warps=4)


@triton.jit
def many_moments(X, out, N, BLOCK: tl.constexpr):
    # A grid-stride reduction of several values at once, ended by atomics of four kinds.
    j = tl.arange(0, BLOCK)
    s = tl.zeros((BLOCK,), tl.float32)
    q = tl.zeros((BLOCK,), tl.float32)
    hi = tl.full((BLOCK,), float("-inf"), tl.float32)
    lo = tl.full((BLOCK,), float("inf"), tl.float32)
    for start in tl.range(tl.program_id(0) * BLOCK, N, tl.num_programs(0) * BLOCK, loop_unroll_factor=4):
        live = start + j < N
        x = tl.load(X + start + j, mask=live, other=0.0).to(tl.float32)
        s += x
        q += x * x
        hi = tl.where(live, tl.maximum(hi, x), hi)
        lo = tl.where(live, tl.minimum(lo, x), lo)
    tl.atomic_add(out, tl.sum(s))
    tl.atomic_add(out + 1, tl.sum(q))
    tl.atomic_max(out + 2, tl.max(hi))
    tl.atomic_min(out + 3, tl.min(lo))


@case
def moments_grid_stride():
    n = 30_000_000
    out = zeros(4, dtype="float32")
    launch, args = run(many_moments, (PROGRAMS * 4,), (rand(n, dtype="bfloat16"), out, n), out, BLOCK=2048, num_warps=8)
    return (lambda *args: (out.zero_(), launch(*args))[1].clone()), args


@triton.jit
def interleave_streams(A, B, C, D, out, N, BLOCK: tl.constexpr):
    # Four planes to one stream of four channels, by join and reshape.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < N
    ab = tl.join(tl.load(A + at, mask=live, other=0), tl.load(C + at, mask=live, other=0))
    cd = tl.join(tl.load(B + at, mask=live, other=0), tl.load(D + at, mask=live, other=0))
    x = tl.reshape(tl.join(ab, cd), (BLOCK * 4,))
    to = tl.program_id(0) * BLOCK * 4 + tl.arange(0, BLOCK * 4)
    tl.store(out + to, x, mask=to < 4 * N)


@case
def interleave_four_planes():
    n = 8_294_400
    out = zeros(n, 4, dtype="uint8")
    x = lambda: ints(0, 255, n, dtype="uint8")
    return run(interleave_streams, (cdiv(n, 1024),), (x(), x(), x(), x(), out, n), out, BLOCK=1024, num_warps=4)


@triton.jit
def rows_of_offsets(X, index, Y, N, D, BN: tl.constexpr, BD: tl.constexpr):
    # index_select along the last axis: y[r, j] = x[r, index[j]], indices the same for all rows.
    r = tl.program_id(1) * BN + tl.arange(0, BN)
    j = tl.program_id(0) * BD + tl.arange(0, BD)
    i = tl.load(index + j, mask=j < D, other=0)
    x = tl.load(X + r[:, None] * N + i[None, :], mask=(j < D)[None, :])
    tl.store(Y + r[:, None] * D + j[None, :], x, mask=(j < D)[None, :])


@case
def index_select_columns():
    rows, n, d = 4096, 4096, 1500
    y = zeros(rows, d, dtype="bfloat16")
    index = (arange(d, "int64") * 1237 % n)
    return run(rows_of_offsets, (cdiv(d, 128), rows // 16), (rand(rows, n, dtype="bfloat16"), index, y, n, d), y, BN=16, BD=128, num_warps=4)
