"""Passes of training and serving that have no products: exchanges, barriers of a grid, casts with shared scales, choices by pivots."""

import torch
import triton
import triton.language as tl

from .common import arange, case, cdiv, cleared, f32, far8, full, ints, rand, run, uniform, viewed, zeros


@triton.jit
def all_reduce_add_norm(ADDRESSES, RES, W, OUT, TOTAL, ROWS, eps, D: tl.constexpr, RANKS: tl.constexpr, BLOCK: tl.constexpr):
    # Each row is read from eight buffers by their addresses, summed in order, added to the residual and normalized.
    d = tl.arange(0, BLOCK)
    live = d < D
    w = tl.load(W + d, mask=live, other=0.0).to(tl.float32)
    for row in range(tl.program_id(0), ROWS, tl.num_programs(0)):
        at = row.to(tl.int64) * D + d
        x = tl.load(RES + at, mask=live, other=0.0).to(tl.float32)
        for rank in tl.static_range(RANKS):
            buffer = tl.multiple_of(tl.load(ADDRESSES + rank).to(tl.pointer_type(tl.bfloat16)), 16)
            x += tl.load(buffer + at, mask=live, other=0.0, cache_modifier=".cg").to(tl.float32)
        tl.store(TOTAL + at, x.to(tl.bfloat16), mask=live)
        scale = tl.rsqrt(tl.sum(x * x, 0) / D + eps)
        tl.store(OUT + at, (x * scale * w).to(tl.bfloat16), mask=live)


@case
def all_reduce_of_eight_buffers_add_norm():
    rows, d, ranks = 512, 5120, 8
    buffers, res, out = rand(ranks, rows, d, dtype="bfloat16"), rand(rows, d, dtype="bfloat16"), zeros(rows, d, dtype="bfloat16")
    addresses = torch.tensor([b.data_ptr() for b in buffers], dtype=torch.int64, device="cuda")
    total = zeros(rows, d, dtype="bfloat16")
    args = addresses, res, rand(d, dtype="bfloat16"), out, total, rows, 1e-6
    launch, args = run(all_reduce_add_norm, (132,), args, (total, out), D=d, RANKS=ranks, BLOCK=8192, num_warps=16)
    launch.buffers = buffers
    return launch, args


@triton.jit
def combined(
    A, B, X, Y, Z, S, T, U, V, R, n0, n1, n2, rows,
    B0: tl.constexpr, B1: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    # Four kernels that have nothing to do with one another in one launch: a program finds its own by its number.
    pid = tl.program_id(0)
    p0, p1, p2 = tl.cdiv(n0, B0), tl.cdiv(n1, B0), tl.cdiv(n2, B1)
    if pid < p0:
        i = pid * B0 + tl.arange(0, B0)
        a = tl.load(A + i, i < n0)
        tl.store(B + i, tl.maximum(a, 0.0) * a, i < n0)
    elif pid < p0 + p1:
        i = (pid - p0) * B0 + tl.arange(0, B0)
        x = tl.load(X + i, i < n1).to(tl.float32)
        y = tl.load(Y + i % 768, i < n1, eviction_policy="evict_last").to(tl.float32)
        tl.store(Z + i, tl.sigmoid(x) * y, i < n1)
    elif pid < p0 + p1 + p2:
        i = (pid - p0 - p1) * B1 + tl.arange(0, B1)
        s = tl.load(S + i // 4, i < n2)
        tl.store(T + i, tl.sin(s * (i % 4 + 1).to(tl.float32)), i < n2)
    else:
        row = (pid - p0 - p1 - p2) * 4 + tl.arange(0, 4)[:, None]
        acc = tl.full((4, 512), -float("inf"), tl.float32)
        for d0 in range(0, D, 512):
            d = d0 + tl.arange(0, 512)[None, :]
            u = tl.load(U + row * D + d, (row < rows) & (d < D), other=-float("inf"), eviction_policy="evict_first")
            acc = tl.maximum(acc, u.to(tl.float32))
        best = tl.max(acc, 1)[:, None]
        tl.store(R + row, best, row < rows)
        tl.store(V + row, tl.exp(-tl.abs(best)).to(tl.float16), row < rows)


@case
def four_kernels_in_one_launch():
    n0, n1, n2, rows, d = 1000003, 768 * 2000, 500000, 1001, 3000
    b, z, t = zeros(n0, dtype="float32"), zeros(n1, dtype="float32"), zeros(n2, dtype="float32")
    v, r = zeros(rows), zeros(rows, dtype="float32")
    args = f32(n0), b, rand(n1, dtype="bfloat16"), rand(768, dtype="bfloat16"), z, f32(n2 // 4), t, rand(rows, d), v, r, n0, n1, n2, rows
    grid = cdiv(n0, 1024) + cdiv(n1, 1024) + cdiv(n2, 512) + cdiv(rows, 4)
    return run(combined, (grid,), args, (b, z, t, v, r), B0=1024, B1=512, D=d, num_warps=8)


@triton.jit
def join_moments(mean_a, square_a, count_a, mean_b, square_b, count_b):
    count = count_a + count_b
    part = tl.where(count == 0.0, 0.0, count_b / count)
    delta = mean_b - mean_a
    return mean_a + delta * part, square_a + square_b + delta * delta * count_a * part, count


@triton.jit
def normalize_with_grid_barrier(X, W, OUT, WORK, ARRIVED, N, eps, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    # The programs of a row meet once: moments of parts go through memory, a counter tells when all are there, then each goes on.
    part, row = tl.program_id(0), tl.program_id(1)
    per = tl.cdiv(tl.cdiv(N, PARTS), BLOCK) * BLOCK
    start, end = part * per, tl.minimum(part * per + per, N)
    mean, square, count = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for i0 in range(start, end, BLOCK):
        i = i0 + tl.arange(0, BLOCK)
        x = tl.load(X + row * N + i, mask=i < end, other=0.0, eviction_policy="evict_last").to(tl.float32)
        count += tl.where(i < end, 1.0, 0.0)
        delta = tl.where(i < end, x - mean, 0.0)
        mean += delta / tl.maximum(count, 1.0)
        square += delta * tl.where(i < end, x - mean, 0.0)
    mean, square, count = tl.reduce((mean, square, count), 0, join_moments)
    tl.store(WORK + (row * PARTS + part) * 3, mean)
    tl.store(WORK + (row * PARTS + part) * 3 + 1, square)
    tl.store(WORK + (row * PARTS + part) * 3 + 2, count)
    tl.debug_barrier()
    tl.atomic_add(ARRIVED + row, 1, sem="release", scope="gpu")
    while tl.atomic_add(ARRIVED + row, 0, sem="acquire", scope="gpu") < PARTS:
        pass
    tl.debug_barrier()
    p = tl.arange(0, PARTS)
    means, squares, counts = tl.load(WORK + (row * PARTS + p) * 3), tl.load(WORK + (row * PARTS + p) * 3 + 1), tl.load(WORK + (row * PARTS + p) * 3 + 2)
    mean, square, count = tl.reduce((means, squares, counts), 0, join_moments)
    scale = tl.rsqrt(square / count + eps)
    for i0 in range(start, end, BLOCK):
        i = i0 + tl.arange(0, BLOCK)
        x = tl.load(X + row * N + i, mask=i < end, other=0.0, eviction_policy="evict_first").to(tl.float32)
        y = (x - mean) * scale * tl.load(W + i // 4096, mask=i < end, other=0.0)
        tl.store(OUT + row * N + i, y.to(OUT.dtype.element_ty), mask=i < end)


@case
def norm_of_long_rows_with_grid_barrier():
    rows, parts, n = 4, 32, 600 * 4096
    out, work, arrived = zeros(rows, n, dtype="bfloat16"), zeros(rows, parts, 3, dtype="float32"), zeros(rows, dtype="int32")
    args = rand(rows, n, dtype="bfloat16"), f32(600), out, work, arrived, n, 1e-5
    return cleared(run(normalize_with_grid_barrier, (parts, rows), args, out, PARTS=parts, BLOCK=2048, num_warps=8), arrived)


@triton.jit
def rotate_into_ragged_cache(
    X, KC, VC, OUT, STARTS, SEEN, SLOT, HQ, HK, stride_x, stride_cache, base,
    D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    # Packed queries, keys and values of new tokens: queries leave rotated, keys and values go to where the request's cache goes on.
    request, step, head = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first = tl.load(STARTS + request)
    if first + step >= tl.load(STARTS + request + 1):
        return
    place = tl.load(SEEN + request) + step
    x_at = X + (first + step) * stride_x + head * D
    row = tl.load(SLOT + request).to(tl.int64) * stride_cache + place * HK * D
    if head < HQ:
        out = OUT + ((first + step) * HQ + head) * D
    elif head < HQ + HK:
        out = KC + row + (head - HQ) * D
    else:
        out = VC + row + (head - HQ - HK) * D
    for i0 in range(0, D // 2, BLOCK):
        i = i0 + tl.arange(0, BLOCK)
        even, odd = tl.load(x_at + 2 * i, mask=i < D // 2).to(tl.float32), tl.load(x_at + 2 * i + 1, mask=i < D // 2).to(tl.float32)
        if head < HQ + HK:
            angle = place * tl.exp2(i.to(tl.float32) * (-2.0 / D) * tl.log2(base))
            cos, sin = tl.cos(angle), tl.sin(angle)
            even, odd = even * cos - odd * sin, even * sin + odd * cos
        tl.store(out + 2 * i, even.to(tl.bfloat16), mask=i < D // 2)
        tl.store(out + 2 * i + 1, odd.to(tl.bfloat16), mask=i < D // 2)


@case
def rotary_of_new_tokens_into_ragged_cache():
    requests, most, hq, hk, d, space = 32, 48, 16, 4, 128, 1024
    lengths = ints(1, most + 1, requests, dtype="int64")
    starts = torch.cat((lengths.new_zeros(1), lengths.cumsum(0))).to(torch.int32)
    tokens = int(starts[-1])
    kc, vc = zeros(requests, space, hk, d, dtype="bfloat16"), zeros(requests, space, hk, d, dtype="bfloat16")
    out = zeros(tokens, hq, d, dtype="bfloat16")
    slot = torch.flip(arange(requests), (0,))
    x = rand(tokens, hq + 2 * hk, d, dtype="bfloat16")
    args = x, kc, vc, out, starts, ints(0, 900, requests), slot, hq, hk, (hq + 2 * hk) * d, space * hk * d, 10000.0
    return run(rotate_into_ragged_cache, (requests, most, hq + 2 * hk), args, (out, kc, vc), D=d, BLOCK=64, num_warps=1)


@triton.jit
def masked_swiglu_to_fp8(X, COUNT, OUT, SCALE, MOST, N, GROUP: tl.constexpr, STAGES: tl.constexpr):
    # Padded tokens of experts: only the first so many of each are there; scales are powers of two and stored by columns.
    group, expert = tl.program_id(0), tl.program_id(2)
    count = tl.load(COUNT + expert)
    i = group * GROUP + tl.arange(0, GROUP)
    x_ptrs = X + expert.to(tl.int64) * MOST * 2 * N + i
    out_ptrs = OUT + expert.to(tl.int64) * MOST * N + i
    scale_ptr = SCALE + (expert.to(tl.int64) * tl.num_programs(0) + group) * MOST
    for token in tl.range(tl.program_id(1), count, tl.num_programs(1), num_stages=STAGES):
        gate = tl.load(x_ptrs + token * 2 * N).to(tl.float32)
        up = tl.load(x_ptrs + token * 2 * N + N)
        gate = (gate / (1.0 + tl.exp(-gate))).to(up.dtype)
        y = (gate * up).to(tl.float32)
        scale = tl.exp2(tl.ceil(tl.log2(tl.maximum(tl.max(tl.abs(y), 0), 1e-10) * 0.0022)))
        tl.store(out_ptrs + token * N, tl.clamp(y / scale, -448.0, 448.0).to(OUT.dtype.element_ty))
        tl.store(scale_ptr + token, scale)


@case
def swiglu_of_masked_experts_to_fp8():
    experts, most, n = 32, 256, 2048
    out, scale = zeros(experts, most, n, dtype="float8_e4m3fn"), zeros(experts, n // 128, most, dtype="float32")
    args = rand(experts, most, 2 * n, dtype="bfloat16"), ints(0, most, experts), out, scale, most, n
    launched = run(masked_swiglu_to_fp8, (n // 128, 16, experts), args, (out, scale), GROUP=128, STAGES=6, num_warps=1, num_stages=3)
    return viewed(launched, lambda outs: (far8(outs[0]), outs[1]))


@triton.jit
def shared_exponent(x, axis: tl.constexpr):
    top = tl.max(tl.abs(x), axis)
    bits = top.to(tl.int32, bitcast=True)
    return tl.maximum((bits >> 23) - 8, 1)


@triton.jit
def cast_both_ways(X, ROWS_CODES, ROWS_SCALE, COLUMNS_CODES, COLUMNS_SCALE, M, N, B: tl.constexpr):
    # MX codes along rows and, transposed, along columns; an exponent for 32 values of either, in their eight bits.
    pm, pn = tl.program_id(0), tl.program_id(1)
    m, n, g = pm * B + tl.arange(0, B), pn * B + tl.arange(0, B), tl.arange(0, B // 32)
    x = tl.load(X + m[:, None] * N + n[None, :]).to(tl.float32)
    along = tl.reshape(x, (B, B // 32, 32))
    e = shared_exponent(along, 2)
    codes = along * ((254 - e) << 23).to(tl.float32, bitcast=True)[:, :, None]
    tl.store(ROWS_CODES + m[:, None] * N + n[None, :], tl.reshape(codes, (B, B)).to(tl.float8e4nv))
    tl.store(ROWS_SCALE + m[:, None] * (N // 32) + (pn * (B // 32) + g)[None, :], e.to(tl.uint8))
    down = tl.reshape(x.T, (B, B // 32, 32))
    e = shared_exponent(down, 2)
    codes = down * ((254 - e) << 23).to(tl.float32, bitcast=True)[:, :, None]
    tl.store(COLUMNS_CODES + n[:, None] * M + m[None, :], tl.reshape(codes, (B, B)).to(tl.float8e4nv))
    tl.store(COLUMNS_SCALE + n[:, None] * (M // 32) + (pm * (B // 32) + g)[None, :], e.to(tl.uint8))


@case
def cast_to_mx_codes_along_both_axes():
    m, n = 4096, 3072
    codes, turned = zeros(m, n, dtype="float8_e4m3fn"), zeros(n, m, dtype="float8_e4m3fn")
    s, t = zeros(m, n // 32, dtype="uint8"), zeros(n, m // 32, dtype="uint8")
    launched = run(cast_both_ways, (m // 64, n // 64), (rand(m, n, dtype="bfloat16"), codes, s, turned, t, m, n), (codes, s, turned, t), B=64, num_warps=4)
    return viewed(launched, lambda outs: (far8(outs[0]), outs[1], far8(outs[2]), outs[3]))


@triton.jit
def swizzle_scales(S, OUT, ROWS, COLUMNS, stride, out_columns, BR: tl.constexpr, BC: tl.constexpr):
    # 128 by 4 scales to 32 rows of 16 bytes, as tensor cores want them; what lies beyond the matrix is zero.
    pr, pc = tl.program_id(0), tl.program_id(1)
    r, c = pr * BR + tl.arange(0, BR), pc * BC + tl.arange(0, BC)
    s = tl.load(S + r[:, None] * stride + c[None, :], mask=(r < ROWS)[:, None] & (c < COLUMNS)[None, :], other=0)
    tile = tl.permute(tl.reshape(s, (BR // 128, 4, 32, BC // 4, 4)), (0, 3, 2, 1, 4))
    flat = tl.reshape(tile, (BR // 128, BC * 128))
    first = (pr * (BR // 128) + tl.arange(0, BR // 128)[:, None]) * out_columns * 128 + pc * BC * 128
    tl.store(OUT + first + tl.arange(0, BC * 128)[None, :], flat)


@case
def scales_to_blocks_of_32_by_16():
    rows, columns = 16000, 250
    padded_rows, padded_columns = cdiv(rows, 256) * 256, cdiv(columns, 16) * 16
    out = zeros(padded_rows * padded_columns, dtype="uint8")
    args = ints(0, 256, rows, columns, dtype="uint8"), out, rows, columns, columns, padded_columns
    return run(swizzle_scales, (padded_rows // 256, padded_columns // 16), args, out, BR=256, BC=16, num_warps=4)


@triton.jit
def recover_tokens(DRAFT, TARGET, TOKEN, INVERSE, STARTS, OUT, BEST, V, BLOCK: tl.constexpr, GREEDY: tl.constexpr):
    # What is drawn where a draft is refused: the best of (target - draft)+ times a request's own noise, over the vocabulary in blocks.
    request, place = tl.program_id(0), tl.program_id(1)
    start = tl.load(STARTS + request)
    if place >= tl.load(STARTS + request + 1) - start:
        return
    row = (start + place).to(tl.int64) * V
    token = tl.load(TOKEN + start + place)
    best, at = -1.0, 0
    for v0 in range(0, V, BLOCK):
        v = v0 + tl.arange(0, BLOCK)
        live = v < V
        target = tl.load(TARGET + row + v, mask=live, other=0.0)
        if GREEDY:
            p = tl.where(v == token, 0.0, target)
        else:
            p = tl.maximum(target - tl.load(DRAFT + row + v, mask=live, other=0.0), 0.0)
        score = p * tl.load(INVERSE + request.to(tl.int64) * V + v, mask=live, other=0.0)
        top, where = tl.max(score, 0, return_indices=True)
        if top > best:
            best = top
            at = v0 + where
    tl.store(OUT + start + place, at)
    tl.store(BEST + start + place, best)


@case
def tokens_recovered_where_drafts_fail():
    requests, most, v = 64, 5, 32003
    lengths = ints(0, most + 1, requests)
    starts = torch.cat((lengths.new_zeros(1), lengths.cumsum(0))).to(torch.int32)
    rows = int(starts[-1])
    out, best = zeros(rows, dtype="int32"), zeros(rows, dtype="float32")
    args = uniform(rows, v), uniform(rows, v), ints(0, v, rows), 1 / (0.01 + uniform(requests, v)), starts, out, best, v
    return run(recover_tokens, (requests, most), args, (out, best), BLOCK=4096, GREEDY=False, num_warps=8)


@triton.jit
def count_above(X, row, V, a, b, BLOCK: tl.constexpr):
    # For two pivots: how many are above each, and the least value above each.
    n_a, n_b = tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32)
    least_a, least_b = tl.full((BLOCK,), float("inf"), tl.float32), tl.full((BLOCK,), float("inf"), tl.float32)
    for v0 in range(0, V, BLOCK):
        v = v0 + tl.arange(0, BLOCK)
        x = tl.load(X + row * V + v, mask=v < V, other=-float("inf"))
        n_a += (x > a).to(tl.int32)
        n_b += (x > b).to(tl.int32)
        least_a = tl.minimum(least_a, tl.where(x > a, x, float("inf")))
        least_b = tl.minimum(least_b, tl.where(x > b, x, float("inf")))
    return tl.sum(n_a, 0), tl.sum(n_b, 0), tl.min(least_a, 0), tl.min(least_b, 0)


@triton.jit
def keep_best_by_pivots(X, KS, OUT, LEAST, V, BLOCK: tl.constexpr):
    # The k best of a row, with k its own, by a search in thirds; then their softmax, all else zero.
    row = tl.program_id(0)
    k = tl.load(KS + row)
    high = tl.full((BLOCK,), -float("inf"), tl.float32)
    low = tl.full((BLOCK,), float("inf"), tl.float32)
    for v0 in range(0, V, BLOCK):
        v = v0 + tl.arange(0, BLOCK)
        x = tl.load(X + row * V + v, mask=v < V, other=0.0)
        high, low = tl.maximum(high, x), tl.minimum(low, x)
    top = tl.max(high, 0)
    lo, hi, least, found, turns = tl.min(low, 0) - 1.0, top, top, 0, 0
    while (found != k) & (turns < 40):
        a, b = lo + (hi - lo) * 0.33333334, lo + (hi - lo) * 0.6666667
        n_a, n_b, least_a, least_b = count_above(X, row, V, a, b, BLOCK)
        if n_b >= k:
            lo, least, found = b, least_b, n_b
        elif n_a >= k:
            lo, hi, least, found = a, b, least_a, n_a
        else:
            hi = a
        turns += 1
    total = tl.zeros((BLOCK,), tl.float32)
    for v0 in range(0, V, BLOCK):
        v = v0 + tl.arange(0, BLOCK)
        x = tl.load(X + row * V + v, mask=v < V, other=-float("inf"))
        total += tl.where(x >= least, tl.exp(x - top), 0.0)
    scale = 1.0 / tl.sum(total, 0)
    for v0 in range(0, V, BLOCK):
        v = v0 + tl.arange(0, BLOCK)
        x = tl.load(X + row * V + v, mask=v < V, other=-float("inf"))
        tl.store(OUT + row * V + v, tl.where(x >= least, tl.exp(x - top) * scale, 0.0), mask=v < V)
    tl.store(LEAST + row, least)


@case
def keep_k_best_of_rows_by_pivots():
    rows, v = 128, 32000
    x = torch.stack([torch.randperm(v) for _ in range(4)]).repeat(rows // 4, 1).float().cuda() * 0.001
    out, least = zeros(rows, v, dtype="float32"), zeros(rows, dtype="float32")
    return run(keep_best_by_pivots, (rows,), (x, ints(5, 200, rows), out, least, v), (out, least), BLOCK=4096, num_warps=8)


@triton.jit
def lesser_of(value_a, at_a, value_b, at_b):
    keep = (value_a < value_b) | ((value_a == value_b) & (at_a > at_b))
    return tl.where(keep, value_a, value_b), tl.where(keep, at_a, at_b)


@triton.jit
def running_minima(X, OUT, AT, T, N, BT: tl.constexpr, BN: tl.constexpr):
    # Least value so far and where, down the first axis: a scan of pairs in a block of rows, the last pair carried on.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    least, where = tl.full((BN,), float("inf"), tl.float32), tl.zeros((BN,), tl.int32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        live = (t < T)[:, None] & (n < N)[None, :]
        x = tl.load(X + t[:, None] * N + n[None, :], mask=live, other=float("inf")).to(tl.float32)
        value, at = tl.associative_scan((x, tl.broadcast_to(t[:, None], (BT, BN))), 0, lesser_of)
        value, at = lesser_of(tl.broadcast_to(least[None, :], (BT, BN)), tl.broadcast_to(where[None, :], (BT, BN)), value, at)
        tl.store(OUT + t[:, None] * N + n[None, :], value.to(OUT.dtype.element_ty), mask=live)
        tl.store(AT + t[:, None] * N + n[None, :], at.to(tl.int64), mask=live)
        last = (t == t0 + BT - 1)[:, None]
        where = tl.sum(tl.where(last, at, 0), 0)
        least = tl.min(value, 0)


@case
def running_minima_and_places_down_columns():
    t, n = 1500, 4100
    out, at = zeros(t, n), zeros(t, n, dtype="int64")
    return run(running_minima, (cdiv(n, 32),), (rand(t, n), out, at, t, n), (out, at), BT=64, BN=32, num_warps=4)


@triton.jit
def bags_of_nibbles(TABLE, INDEX, OFFSETS, WEIGHT, OUT, D: tl.constexpr, WORDS: tl.constexpr, BL: tl.constexpr):
    # Rows of nibbles behind a word that holds scale and shift as halves; bags of rows, weighted; eight columns a word.
    bag = tl.program_id(0)
    start, end = tl.load(OFFSETS + bag), tl.load(OFFSETS + bag + 1)
    w, nibble = tl.arange(0, WORDS), tl.arange(0, 8)
    acc = tl.zeros((WORDS, 8), tl.float32)
    for i0 in range(start, end, BL):
        i = i0 + tl.arange(0, BL)
        row = tl.load(INDEX + i, mask=i < end, other=0) * (WORDS + 1)
        weight = tl.load(WEIGHT + i, mask=i < end, other=0.0)
        header = tl.load(TABLE + row)
        scale = (header & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32) * weight
        shift = (header >> 16).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32) * weight
        words = tl.load(TABLE + row[:, None] + 1 + w[None, :])
        codes = ((words[:, :, None] >> (nibble * 4)[None, None, :]) & 15).to(tl.float32)
        acc += tl.sum(codes * scale[:, None, None] + shift[:, None, None], 0)
    at = w[:, None] * 8 + nibble[None, :]
    tl.store(OUT + bag.to(tl.int64) * D + at, acc.to(tl.float16))


@case
def bags_of_rows_of_nibbles_with_headers():
    bags, rows, d, most = 12000, 200000, 128, 40
    lengths = ints(0, most, bags, dtype="int64")
    offsets = torch.cat((lengths.new_zeros(1), lengths.cumsum(0)))
    n = int(offsets[-1])
    table = ints(-(1 << 31), (1 << 31) - 1, rows, d // 8 + 1)
    halves = (uniform(rows, 2) * 0.1 + 0.01).half().view(torch.int16).to(torch.int32)
    table[:, 0] = (halves[:, 0] & 0xFFFF) | (halves[:, 1] << 16)
    out = zeros(bags, d)
    args = table, ints(0, rows, n, dtype="int64"), offsets, uniform(n), out
    return run(bags_of_nibbles, (bags,), args, out, D=d, WORDS=d // 8, BL=8, num_warps=2)


@triton.jit
def dynamic_tanh_back(G, X, DX, ALPHA, GAMMA, DA, DG, DB, ROWS, N, PER, BN: tl.constexpr):
    # y = gamma tanh(alpha x) + beta: gradients of inputs, and of the three parameters as parts of a program's rows.
    part, n = tl.program_id(0), tl.program_id(1) * BN + tl.arange(0, BN)
    live = n < N
    alpha = tl.load(ALPHA)
    gamma = tl.load(GAMMA + n, mask=live, other=0.0).to(tl.float32)
    da, dg, db = tl.zeros((BN,), tl.float32), tl.zeros((BN,), tl.float32), tl.zeros((BN,), tl.float32)
    for row in tl.range(part * PER, tl.minimum(part * PER + PER, ROWS), num_stages=4):
        at = row.to(tl.int64) * N + n
        x = tl.load(X + at, mask=live, other=0.0).to(tl.float32)
        g = tl.load(G + at, mask=live, other=0.0).to(tl.float32)
        t = 2.0 * tl.sigmoid(2.0 * alpha * x) - 1.0
        inner = g * gamma * (1.0 - t * t)
        tl.store(DX + at, (inner * alpha).to(DX.dtype.element_ty), mask=live)
        da += inner * x
        dg += g * t
        db += g
    tl.store(DA + part * tl.num_programs(1) + tl.program_id(1), tl.sum(da, 0))
    tl.store(DG + part * N + n, dg, mask=live)
    tl.store(DB + part * N + n, db, mask=live)


@case
def dynamic_tanh_gradients_in_parts():
    rows, n, parts = 8000, 3000, 66
    dx, da = zeros(rows, n, dtype="bfloat16"), zeros(parts, 3, dtype="float32")
    dg, db = zeros(parts, n, dtype="float32"), zeros(parts, n, dtype="float32")
    g, x = rand(rows, n, dtype="bfloat16"), rand(rows, n, dtype="bfloat16")
    args = g, x, dx, full(0.7, 1), rand(n, dtype="bfloat16"), da, dg, db, rows, n, cdiv(rows, parts)
    return run(dynamic_tanh_back, (parts, 3), args, (dx, da, dg, db), BN=1024, num_warps=4)


@triton.jit
def nearest_level(x):
    # Half to even on the levels 0, .5, 1, 1.5, 2, 3, 4, 6.
    a = tl.abs(x)
    code = (a > 0.25).to(tl.int32) + (a >= 0.75).to(tl.int32) + (a > 1.25).to(tl.int32) + (a >= 1.75).to(tl.int32)
    code += (a > 2.5).to(tl.int32) + (a >= 3.5).to(tl.int32) + (a > 5.0).to(tl.int32)
    return code | tl.where(x < 0.0, 8, 0)


@triton.jit
def norm_to_four_bits(X, W, CODES, SCALE, whole, eps, N: tl.constexpr, BM: tl.constexpr):
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, N)
    x = tl.load(X + m[:, None] * N + n[None, :]).to(tl.float32)
    x = x * tl.rsqrt(tl.sum(x * x, 1) / N + eps)[:, None] * tl.load(W + n).to(tl.float32)[None, :]
    groups = tl.reshape(x, (BM, N // 16, 16))
    scale = (tl.max(tl.abs(groups), 2) * (whole / 6.0)).to(tl.float8e4nv)
    inverse = whole / tl.maximum(scale.to(tl.float32), 0.001)
    codes = nearest_level(groups * inverse[:, :, None])
    low, high = tl.split(tl.reshape(codes, (BM, N // 2, 2)))
    tl.store(CODES + m[:, None] * (N // 2) + tl.arange(0, N // 2)[None, :], (low | (high << 4)).to(tl.uint8))
    # Scales go into blocks of 128 rows by 4, as 32 rows of 16.
    s = tl.arange(0, N // 16)
    block = (m // 128)[:, None] * (N // 64) + (s // 4)[None, :]
    tl.store(SCALE + block * 512 + (m % 32 * 16 + m % 128 // 32 * 4)[:, None] + (s % 4)[None, :], scale)


def far4(codes):
    """Packed levels of four bits in their order, far from zero."""
    codes = torch.stack((codes & 15, codes >> 4), -1).to(torch.float32)
    return torch.where(codes >= 8, 8 - codes, codes) + 200


@case
def norm_to_four_bit_floats_blocked_scales():
    rows, n = 8192, 1024
    codes, scale = zeros(rows, n // 2, dtype="uint8"), zeros(rows * n // 16, dtype="float8_e4m3fn")
    args = rand(rows, n, dtype="bfloat16"), rand(n, dtype="bfloat16"), codes, scale, 100.0, 1e-6
    launched = run(norm_to_four_bits, (rows // 4,), args, (codes, scale), N=n, BM=4, num_warps=4)
    return viewed(launched, lambda outs: (far4(outs[0]), far8(outs[1])))
