"""Control flow: loops that data ends, loops in loops, branches that load and store, phases, locks, and dots in all of them."""

import torch
import triton
import triton.language as tl

from .common import PROGRAMS, arange, case, cdiv, f32, full, ints, rand, run, uniform, zeros


@triton.jit
def kepler_newton(mean_ptr, ecc_ptr, out_ptr, steps_ptr, N, tolerance, BLOCK: tl.constexpr):
    # Eccentric anomalies in double precision: Newton's steps until the whole block has converged.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    mean = tl.load(mean_ptr + i, mask=live, other=0.0)
    e = tl.load(ecc_ptr + i, mask=live, other=0.0)
    x = tl.where(e > 0.8, mean * 0 + 3.141592653589793, mean)
    f = x - e * tl.sin(x) - mean
    steps = 0
    while (tl.max(tl.abs(f)) > tolerance) & (steps < 30):
        x -= f / (1.0 - e * tl.cos(x))
        f = x - e * tl.sin(x) - mean
        steps += 1
    tl.store(out_ptr + i, x, mask=live)
    tl.store(steps_ptr + tl.program_id(0), (steps > 0).to(tl.int32))


@case
def kepler_until_converged():
    n = 1_000_000
    out, steps = zeros(n, dtype="float64"), zeros(cdiv(n, 512), dtype="int32")
    mean = torch.rand(n, device="cuda", dtype=torch.float64) * 6.283185307179586
    ecc = torch.rand(n, device="cuda", dtype=torch.float64) * 0.95
    return run(kepler_newton, (cdiv(n, 512),), (mean, ecc, out, steps, n, 1e-11), (out, steps), BLOCK=512, num_warps=4)


@triton.jit
def max_pool_3d(x_ptr, y_ptr, where_ptr, D, H, W, OD, OH, OW, KD, KH, KW, stride, pad, BLOCK: tl.constexpr):
    # A plane of outputs; three loops of run time, of which two skip what lies outside.
    nc, od = tl.program_id(1), tl.program_id(2)
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    oh, ow = o // OW, o % OW
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    at = tl.zeros((BLOCK,), tl.int32)
    for kd in range(0, KD):
        z = od * stride - pad + kd
        if (z >= 0) & (z < D):
            for kh in range(0, KH):
                y = oh * stride - pad + kh
                if tl.max(y) >= 0:
                    for kw in range(0, KW):
                        x = ow * stride - pad + kw
                        ok = (o < OH * OW) & (y >= 0) & (y < H) & (x >= 0) & (x < W)
                        place = (z * H + y) * W + x
                        v = tl.load(x_ptr + nc.to(tl.int64) * D * H * W + place, mask=ok, other=float("-inf")).to(tl.float32)
                        better = v > best
                        best = tl.where(better, v, best)
                        at = tl.where(better, place, at)
    out = (nc * OD + od).to(tl.int64) * OH * OW + o
    tl.store(y_ptr + out, best.to(y_ptr.dtype.element_ty), mask=o < OH * OW)
    tl.store(where_ptr + out, at, mask=o < OH * OW)


@case
def max_pool_3d_loops_of_runtime():
    nc, d, h, w, k, stride, pad = 64, 20, 60, 75, 3, 2, 1
    od, oh, ow = ((x + 2 * pad - k) // stride + 1 for x in (d, h, w))
    y, where = zeros(nc, od, oh, ow), zeros(nc, od, oh, ow, dtype="int32")
    args = rand(nc, d, h, w), y, where, d, h, w, od, oh, ow, k, k, k, stride, pad
    return run(max_pool_3d, (cdiv(oh * ow, 256), nc, od), args, (y, where), BLOCK=256, num_warps=4)


@triton.jit
def copy_on_write(cache_ptr, scale_ptr, src_ptr, dst_ptr, active_ptr, numel, page_scales, BLOCK: tl.constexpr):
    # Pages of a cache are copied as lists say; a few reasons to do nothing.
    pair, layer = tl.program_id(0), tl.program_id(1)
    if tl.load(active_ptr + layer) == 0:
        return
    src, dst = tl.load(src_ptr + pair), tl.load(dst_ptr + pair)
    if src < 0 or dst < 0:
        return
    if src == dst:
        return
    pages = tl.load(active_ptr + layer)
    base = layer.to(tl.int64) * pages
    for start in range(0, numel, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(cache_ptr + (base + src) * numel + i, mask=i < numel)
        tl.store(cache_ptr + (base + dst) * numel + i, x, mask=i < numel)
    if page_scales > 0:
        j = tl.arange(0, 64)
        s = tl.load(scale_ptr + (base + src) * page_scales + j, mask=j < page_scales)
        tl.store(scale_ptr + (base + dst) * page_scales + j, s, mask=j < page_scales)


@case
def copy_on_write_early_returns():
    layers, pages, numel, scales, pairs = 24, 600, 2 * 16 * 8 * 72, 16, 200
    cache, scale = ints(0, 255, layers, pages, numel, dtype="uint8"), f32(layers, pages, scales)
    src = ints(-20, 300, pairs)
    dst = 300 + arange(pairs)
    dst[::7] = src[::7]
    active = full(pages, layers, dtype="int32")
    active[5] = 0
    return run(copy_on_write, (pairs, layers), (cache, scale, src, dst, active, numel, scales), (cache[:, 300:500], scale), BLOCK=2048, num_warps=4)


@triton.jit
def best_row_with_lock(x_ptr, q_ptr, best_ptr, where_ptr, row_ptr, lock_ptr, N, D: tl.constexpr, BLOCK: tl.constexpr):
    # The nearest of all rows: each program's best one, and a lock around what is best of all, row and all.
    n, d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, D)
    q = tl.load(q_ptr + d)
    x = tl.load(x_ptr + n[:, None] * D + d[None, :], mask=(n < N)[:, None], other=0).to(tl.int32)
    diff = x - q.to(tl.int32)[None, :]
    dist = tl.where(n < N, tl.sum(diff * diff, axis=1), 0x7FFFFFFF)
    low, at = tl.min(dist, axis=0, return_indices=True)
    index = tl.program_id(0) * BLOCK + at
    row = tl.load(x_ptr + index * D + d)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.debug_barrier()
    other = tl.load(best_ptr, volatile=True)
    other_at = tl.load(where_ptr, volatile=True)
    if (low < other) | ((low == other) & (index < other_at)):
        tl.store(best_ptr, low)
        tl.store(where_ptr, index)
        tl.store(row_ptr + d, row)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@case
def nearest_row_under_a_lock():
    n, d = 60_000, 128
    best, where, row, lock = zeros(1, dtype="int32"), zeros(1, dtype="int32"), zeros(d, dtype="int8"), zeros(1, dtype="int32")
    args = ints(-128, 128, n, d, dtype="int8"), ints(-128, 128, d, dtype="int8"), best, where, row, lock, n
    launch, args = run(best_row_with_lock, (cdiv(n, 128),), args, (best, where, row), D=d, BLOCK=128, num_warps=4)
    return (lambda *args: (best.fill_(2**31 - 1), where.fill_(2**31 - 1), lock.zero_(), launch(*args))[3]), args


@triton.jit
def counting_sort_rows(x_ptr, order_ptr, sorted_ptr, start_ptr, N, BLOCK: tl.constexpr, CHUNK: tl.constexpr):
    # A stable sort of bytes in three phases: counts, offsets, and elements to where they belong, in order.
    row = tl.program_id(0)
    bins, i = tl.arange(0, 256), tl.arange(0, BLOCK)
    counts = tl.zeros((256,), tl.int32)
    for n0 in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * N + n0 + i, mask=n0 + i < N, other=0).to(tl.int32)
        counts += tl.histogram(x, 256, mask=n0 + i < N)
    tl.store(start_ptr + row * 256 + bins, tl.cumsum(counts, 0) - counts)
    tl.debug_barrier()
    j = tl.arange(0, CHUNK)
    for n0 in range(0, N, CHUNK):
        live = n0 + j < N
        x = tl.load(x_ptr + row * N + n0 + j, mask=live, other=0).to(tl.int32)
        same = (x[:, None] == x[None, :]) & live[None, :] & (j[None, :] < j[:, None])
        at = tl.load(start_ptr + row * 256 + x, mask=live, other=0) + tl.sum(same.to(tl.int32), axis=1)
        tl.store(order_ptr + row * N + at, n0 + j, mask=live)
        tl.debug_barrier()
        tl.atomic_add(start_ptr + row * 256 + x, 1, mask=live)
        tl.debug_barrier()
    for n0 in range(0, N, BLOCK):
        at = tl.load(order_ptr + row * N + n0 + i, mask=n0 + i < N, other=0)
        tl.store(sorted_ptr + row * N + n0 + i, tl.load(x_ptr + row * N + at, mask=n0 + i < N), mask=n0 + i < N)


@case
def counting_sort_in_three_phases():
    rows, n = 400, 5000
    order, out, start = zeros(rows, n, dtype="int32"), zeros(rows, n, dtype="uint8"), zeros(rows, 256, dtype="int32")
    args = ints(0, 256, rows, n, dtype="uint8"), order, out, start, n
    return run(counting_sort_rows, (rows,), args, (order, out), BLOCK=1024, CHUNK=64, num_warps=2)


@triton.jit
def jagged_silu_attention(Q, K, V, O, START, tiles_ptr, scale, H, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, NUM: tl.constexpr):
    # HSTU: silu instead of softmax, over sequences of all lengths; a program goes on through tiles, and a while finds whose they are.
    d, mm, nn = tl.arange(0, D), tl.arange(0, BM), tl.arange(0, BN)
    seq = 0
    before = 0
    first = tl.load(START)
    length = tl.load(START + 1) - first
    for tile in range(tl.program_id(0), tl.load(tiles_ptr), NUM):
        while tile >= before + tl.cdiv(length, BM) * H:
            before += tl.cdiv(length, BM) * H
            seq += 1
            first = tl.load(START + seq)
            length = tl.load(START + seq + 1) - first
        inside = tile - before
        h, m = inside % H, inside // H * BM + mm
        qm = (m < length)[:, None]
        q = tl.load(Q + ((first + m) * H + h)[:, None] * D + d[None, :], mask=qm, other=0.0)
        acc = tl.zeros((BM, D), tl.float32)
        for n0 in range(0, tl.minimum(length, (inside // H + 1) * BM), BN):
            n = n0 + nn
            k = tl.load(K + ((first + n) * H + h)[None, :] * D + d[:, None], mask=(n < length)[None, :], other=0.0)
            v = tl.load(V + ((first + n) * H + h)[:, None] * D + d[None, :], mask=(n < length)[:, None], other=0.0)
            s = tl.dot(q, k) * scale
            s = s * tl.sigmoid(s)
            s = tl.where(m[:, None] >= n[None, :], s, 0.0)
            acc = tl.dot(s.to(v.dtype), v, acc)
        acc = acc / length.to(tl.float32)
        tl.store(O + ((first + m) * H + h)[:, None] * D + d[None, :], acc.to(O.dtype.element_ty), mask=qm)


@case
def attn_jagged_silu_persistent():
    b, h, d = 60, 4, 64
    lengths = arange(b) * 151 % 900 + 30
    start = zeros(b + 1, dtype="int32")
    start[1:] = lengths.cumsum(0)
    total, tiles = int(start[-1]), ((lengths + 63) // 64 * h).sum().int().reshape(1)
    x = lambda: rand(total, h, d, dtype="bfloat16")
    out = zeros(total, h, d, dtype="bfloat16")
    args = x(), x(), x(), out, start, tiles, d**-0.5, h
    return run(jagged_silu_attention, (2 * PROGRAMS,), args, out, D=d, BM=64, BN=64, NUM=2 * PROGRAMS, num_warps=4, num_stages=2)


@triton.jit
def prefix_mean_gate(x_ptr, wg_ptr, wm_ptr, y_ptr, T, D: tl.constexpr, BT: tl.constexpr):
    # One dot of what is loaded, one of the means of all that came before: a scan.
    b = tl.program_id(0)
    t, d = tl.arange(0, BT), tl.arange(0, D)
    wg = tl.load(wg_ptr + d[:, None] * D + d[None, :])
    wm = tl.load(wm_ptr + d[:, None] * D + d[None, :])
    carry = tl.zeros((D,), tl.float32)
    for t0 in range(0, T, BT):
        at = (b * T + t0 + t)[:, None] * D + d[None, :]
        live = (t0 + t < T)[:, None]
        x = tl.load(x_ptr + at, mask=live, other=0.0)
        xf = x.to(tl.float32)
        total = tl.cumsum(xf, axis=0) + carry[None, :]
        mean = total / (t0 + t + 1).to(tl.float32)[:, None]
        gate = tl.sigmoid(tl.dot(x, wg))
        y = tl.dot(mean.to(x.dtype), wm) * gate
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=live)
        carry += tl.sum(xf, axis=0)


@case
def prefix_means_through_a_dot():
    b, t, d = 512, 777, 64
    y = zeros(b, t, d)
    return run(prefix_mean_gate, (b,), (rand(b, t, d), rand(d, d) / 8, rand(d, d) / 8, y, t), y, D=d, BT=32, num_warps=2, num_stages=2)


@triton.jit
def pooled_projections(x_ptr, w1_ptr, w2_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Four frames to one token: their mean by one weight, their maximum by another; both operands are reductions.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    f, k = tl.arange(0, 4), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        at = (m[:, None, None] * 4 + f[None, :, None]) * K + (k0 + k)[None, None, :]
        x = tl.load(x_ptr + at, mask=(m < M)[:, None, None] & (k0 + k < K)[None, None, :], other=0.0).to(tl.float32)
        mean, top = tl.sum(x, axis=1) * 0.25, tl.max(x, axis=1)
        wm = (k0 + k < K)[:, None] & (n < N)[None, :]
        w1 = tl.load(w1_ptr + (k0 + k)[:, None] * N + n[None, :], mask=wm, other=0.0)
        w2 = tl.load(w2_ptr + (k0 + k)[:, None] * N + n[None, :], mask=wm, other=0.0)
        acc = tl.dot(mean.to(w1.dtype), w1, acc)
        acc = tl.dot(top.to(w2.dtype), w2, acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def pooled_frames_two_projections():
    m, n, k = 3000, 500, 520
    x = lambda *shape: rand(*shape, dtype="bfloat16")
    y = zeros(m, n, dtype="bfloat16")
    args = x(m, 4, k), x(k, n), x(k, n), y, m, n, k
    return run(pooled_projections, (cdiv(m, 64), cdiv(n, 128)), args, y, BM=64, BN=128, BK=32, num_warps=8, num_stages=2)


@triton.jit
def tiny_mlp(x_ptr, w1_ptr, b1_ptr, w2_ptr, w3_ptr, y_ptr, N, IN: tl.constexpr, WIDTH: tl.constexpr, OUT: tl.constexpr, BLOCK: tl.constexpr):
    # A radiance field's network: three layers without leaving registers, for block after block of samples.
    i, w, o = tl.arange(0, IN), tl.arange(0, WIDTH), tl.arange(0, OUT)
    w1 = tl.load(w1_ptr + i[:, None] * WIDTH + w[None, :])
    w2 = tl.load(w2_ptr + w[:, None] * WIDTH + w[None, :])
    w3 = tl.load(w3_ptr + w[:, None] * OUT + o[None, :])
    b1 = tl.load(b1_ptr + w)
    for start in range(tl.program_id(0) * BLOCK, N, tl.num_programs(0) * BLOCK):
        n = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + n[:, None] * IN + i[None, :], mask=(n < N)[:, None], other=0.0)
        h = tl.maximum(tl.dot(x, w1) + b1[None, :], 0.0)
        h = tl.maximum(tl.dot(h.to(x.dtype), w2), 0.0)
        y = tl.dot(h.to(x.dtype), w3)
        density = tl.exp(tl.minimum(y, 10.0))
        y = tl.where((o == 0)[None, :], density, tl.sigmoid(y))
        tl.store(y_ptr + n[:, None] * OUT + o[None, :], y.to(y_ptr.dtype.element_ty), mask=(n < N)[:, None])


@case
def radiance_network_of_three_dots():
    n, width = 1_000_003, 64
    y = zeros(n, 16)
    args = rand(n, 32), rand(32, width) / 6, f32(width), rand(width, width) / 8, rand(width, 16) / 8, y, n
    return run(tiny_mlp, (PROGRAMS * 4,), args, y, IN=32, WIDTH=width, OUT=16, BLOCK=128, num_warps=4, num_stages=2)


@triton.jit
def feature_softmax_attention(Q, K, V, O, T, D: tl.constexpr, BT: tl.constexpr):
    # Efficient attention: keys softmaxed over time, queries over features; the sum is kept as V^T K and used transposed.
    b = tl.program_id(0)
    t, d = tl.arange(0, BT), tl.arange(0, D)
    acc = tl.zeros((D, D), tl.float32)
    top = tl.full((D,), -1e30, tl.float32)
    total = tl.zeros((D,), tl.float32)
    for t0 in range(0, T, BT):
        at = (b * T + t0 + t)[:, None] * D + d[None, :]
        live = (t0 + t < T)[:, None]
        k = tl.load(K + at, mask=live, other=-60000.0).to(tl.float32)
        v = tl.load(V + at, mask=live, other=0.0)
        new = tl.maximum(top, tl.max(k, axis=0))
        e = tl.exp(k - new[None, :])
        shrink = tl.exp(top - new)
        total = total * shrink + tl.sum(e, axis=0)
        acc = tl.dot(tl.trans(v), e.to(v.dtype), acc * shrink[None, :])
        top = new
    acc = tl.trans(acc / total[None, :]).to(V.dtype.element_ty)
    for t0 in range(0, T, BT):
        at = (b * T + t0 + t)[:, None] * D + d[None, :]
        live = (t0 + t < T)[:, None]
        q = tl.load(Q + at, mask=live, other=0.0).to(tl.float32)
        e = tl.exp(q - tl.max(q, axis=1)[:, None])
        e = e / tl.sum(e, axis=1)[:, None]
        tl.store(O + at, tl.dot(e.to(acc.dtype), acc).to(O.dtype.element_ty), mask=live)


@case
def attn_feature_softmax_transposed_state():
    b, t, d = 264, 900, 64
    out = zeros(b, t, d)
    return run(feature_softmax_attention, (b,), (rand(b, t, d), rand(b, t, d), rand(b, t, d), out, t), out, D=d, BT=64, num_warps=4, num_stages=3)


@triton.jit
def submanifold_conv(x_ptr, map_ptr, w_ptr, y_ptr, N, CI: tl.constexpr, CO: tl.constexpr, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    # Sparse convolution: for each of 27 taps a gather of the neighbors that exist, and a dot only where some do.
    n, i, o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, CI), tl.arange(0, CO)
    acc = tl.zeros((BLOCK, CO), tl.float32)
    for tap in range(TAPS):
        at = tl.load(map_ptr + tap * N + n, mask=n < N, other=-1)
        if tl.max(at, axis=0) >= 0:
            x = tl.load(x_ptr + at[:, None] * CI + i[None, :], mask=(at >= 0)[:, None], other=0.0)
            w = tl.load(w_ptr + tap * CI * CO + i[:, None] * CO + o[None, :])
            acc = tl.dot(x, w, acc)
    tl.store(y_ptr + n[:, None] * CO + o[None, :], tl.maximum(acc, 0.0).to(y_ptr.dtype.element_ty), mask=(n < N)[:, None])


@case
def sparse_conv_of_gathered_taps():
    n, ci, co = 100_000, 32, 64
    near = (arange(n)[None, :] + ints(-300, 300, 27, 1)).clamp(0, n - 1)
    near[uniform(27, n) < 0.6] = -1
    near[:, 5000:30000] = torch.where(arange(27)[:, None] % 3 == 0, near[:, 5000:30000], -1)
    y = zeros(n, co)
    args = rand(n, ci), near.int().contiguous(), rand(27, ci, co), y, n
    return run(submanifold_conv, (cdiv(n, 64),), args, y, CI=ci, CO=co, TAPS=27, BLOCK=64, num_warps=4, num_stages=2)


@triton.jit
def persistent_bias_residual(a_ptr, b_ptr, bias_ptr, r_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, NUM: tl.constexpr):
    tiles_n = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * tiles_n, NUM, flatten=True, disallow_acc_multi_buffer=True):
        m = tile // tiles_n * BM + tl.arange(0, BM)
        n = tile % tiles_n * BN + tl.arange(0, BN)
        k = tl.arange(0, BK)
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, K, BK):
            a = tl.load(a_ptr + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None] & (k0 + k < K)[None, :], other=0.0)
            b = tl.load(b_ptr + n[None, :] * K + (k0 + k)[:, None], mask=(n < N)[None, :] & (k0 + k < K)[:, None], other=0.0)
            acc = tl.dot(a, b, acc)
        live = (m < M)[:, None] & (n < N)[None, :]
        acc += tl.load(bias_ptr + n, mask=n < N, other=0.0)[None, :]
        acc += tl.load(r_ptr + m[:, None] * N + n[None, :], mask=live, other=0.0).to(tl.float32)
        tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=live)


@case
def gemm_flattened_bias_residual():
    m, n, k = 1999, 2500, 1100
    c = zeros(m, n)
    args = rand(m, k), rand(n, k), f32(n), rand(m, n), c, m, n, k
    return run(persistent_bias_residual, (PROGRAMS,), args, c, BM=128, BN=128, BK=32, NUM=PROGRAMS, num_warps=8, num_stages=5)


@triton.jit
def norm_by_parts(x_ptr, r_ptr, w_ptr, y_ptr, new_ptr, eps, D: tl.constexpr, PARTS: tl.constexpr):
    # A long row in eight parts: added and squared in one pass, written in another.
    row = tl.program_id(0).to(tl.int64)
    PART: tl.constexpr = D // PARTS
    WIDE: tl.constexpr = triton.next_power_of_2(PART)
    i = tl.arange(0, WIDE)
    total = tl.zeros((WIDE,), tl.float32)
    for p in tl.static_range(PARTS):
        at = row * D + p * PART + i
        x = tl.load(x_ptr + at, mask=i < PART, other=0.0).to(tl.float32) + tl.load(r_ptr + at, mask=i < PART, other=0.0).to(tl.float32)
        total += x * x
        tl.store(new_ptr + at, x.to(new_ptr.dtype.element_ty), mask=i < PART)
    scale = tl.rsqrt(tl.sum(total, axis=0) / D + eps)
    tl.debug_barrier()
    for p in tl.static_range(PARTS):
        at = row * D + p * PART + i
        x = tl.load(new_ptr + at, mask=i < PART, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + p * PART + i, mask=i < PART, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, (x * scale * (1.0 + w)).to(y_ptr.dtype.element_ty), mask=i < PART)


@case
def norm_of_eight_static_parts():
    rows, d = 3000, 7168
    x = lambda *shape: rand(*shape, dtype="bfloat16")
    y, new = zeros(rows, d, dtype="bfloat16"), zeros(rows, d, dtype="bfloat16")
    return run(norm_by_parts, (rows,), (x(rows, d), x(rows, d), x(d), y, new, 1e-6), (y, new), D=d, PARTS=8, num_warps=4)


@triton.jit
def skip_zero_blocks(a_ptr, b_ptr, flags_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Blocks of activations that a threshold left empty are not read.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    blocks = tl.cdiv(K, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for kb in tl.range(0, blocks, loop_unroll_factor=2):
        if tl.load(flags_ptr + tl.program_id(0) * blocks + kb) != 0:
            a = tl.load(a_ptr + m[:, None] * K + (kb * BK + k)[None, :], mask=(m < M)[:, None], other=0.0)
            b = tl.load(b_ptr + (kb * BK + k)[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0.0)
            acc += tl.dot(a, b)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def gemm_skips_empty_blocks():
    m, n, k = 1500, 2000, 4096
    flags = ints(0, 2, cdiv(m, 64), k // 64, dtype="uint8")
    c = zeros(m, n, dtype="bfloat16")
    args = rand(m, k, dtype="bfloat16"), rand(k, n, dtype="bfloat16"), flags, c, m, n, k
    return run(skip_zero_blocks, (cdiv(m, 64), cdiv(n, 128)), args, c, BM=64, BN=128, BK=64, num_warps=4, num_stages=3)


@triton.jit
def _four(a, w_ptr, K, N, accs):
    return (tl.dot(a, tl.load(w_ptr), accs[0]), tl.dot(a, tl.load(w_ptr + K * N), accs[1]),
            tl.dot(a, tl.load(w_ptr + 2 * K * N), accs[2]), tl.dot(a, tl.load(w_ptr + 3 * K * N), accs[3]))


@triton.jit
def lstm_step(x_ptr, w_ptr, bias_ptr, c_ptr, h_out, c_out, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Four products of one operand, their sums in a tuple, and the cell right after them.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    zero = tl.zeros((BM, BN), tl.float32)
    accs = (zero, zero, zero, zero)
    for k0 in range(0, K, BK):
        a = tl.load(x_ptr + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None], other=0.0)
        accs = _four(a, w_ptr + (k0 + k)[:, None] * N + n[None, :], K, N, accs)
    at = m[:, None] * N + n[None, :]
    live = (m < M)[:, None]
    i = tl.sigmoid(accs[0] + tl.load(bias_ptr + n)[None, :])
    f = tl.sigmoid(accs[1] + tl.load(bias_ptr + N + n)[None, :])
    o = tl.sigmoid(accs[3] + tl.load(bias_ptr + 3 * N + n)[None, :])
    g = 2.0 * tl.sigmoid(2.0 * (accs[2] + tl.load(bias_ptr + 2 * N + n)[None, :])) - 1.0
    c = f * tl.load(c_ptr + at, mask=live, other=0.0) + i * g
    tl.store(c_out + at, c, mask=live)
    tl.store(h_out + at, (o * (2.0 * tl.sigmoid(2.0 * c) - 1.0)).to(h_out.dtype.element_ty), mask=live)


@case
def lstm_step_tuple_of_sums():
    m, n, k = 700, 1024, 1536
    h, c = zeros(m, n), zeros(m, n, dtype="float32")
    args = rand(m, k), rand(4, k, n) / 32, f32(4, n), f32(m, n), h, c, m, n, k
    return run(lstm_step, (cdiv(m, 64), n // 32), args, (h, c), BM=64, BN=32, BK=64, num_warps=4, num_stages=3)


@triton.jit
def sparsemax_michelot(x_ptr, y_ptr, support_ptr, N, BLOCK: tl.constexpr):
    # The projection onto the simplex: the set shrinks until nothing leaves it.
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + c, mask=c < N, other=float("-inf")).to(tl.float32)
    x = x - tl.max(x, axis=0)
    kept = (c < N) & (x > -1.0)
    count = tl.sum(kept.to(tl.int32), axis=0)
    tau = (tl.sum(tl.where(kept, x, 0.0), axis=0) - 1.0) / count
    before = count + 1
    while before > count:
        before = count
        kept = kept & (x > tau)
        count = tl.sum(kept.to(tl.int32), axis=0)
        tau = (tl.sum(tl.where(kept, x, 0.0), axis=0) - 1.0) / count
    tl.store(y_ptr + row * N + c, tl.maximum(x - tau, 0.0), mask=c < N)
    tl.store(support_ptr + row, tau)


@case
def sparsemax_until_nothing_leaves():
    rows, n = 5000, 3000
    y, support = zeros(rows, n, dtype="float32"), zeros(rows, dtype="float32")
    return run(sparsemax_michelot, (rows,), (rand(rows, n, dtype="bfloat16"), y, support, n), (y, support), BLOCK=4096, num_warps=8)


@triton.jit
def roots_of_forest(parent_ptr, weight_ptr, root_ptr, depth_ptr, sum_ptr, N, BLOCK: tl.constexpr):
    # Every node walks to its root; a block goes on until its last node is there.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    node = tl.where(i < N, i, 0)
    up = tl.load(parent_ptr + node)
    depth = tl.zeros((BLOCK,), tl.int32)
    total = tl.zeros((BLOCK,), tl.float32)
    while tl.sum((up != node).to(tl.int32)) > 0:
        moving = up != node
        total += tl.load(weight_ptr + node, mask=moving, other=0.0)
        depth += moving.to(tl.int32)
        node = up
        up = tl.load(parent_ptr + node, mask=moving, other=0)
        up = tl.where(moving, up, node)
    tl.store(root_ptr + i, node, mask=i < N)
    tl.store(depth_ptr + i, depth.to(tl.uint8), mask=i < N)
    tl.store(sum_ptr + i, total, mask=i < N)


@case
def roots_of_a_forest_of_pointers():
    n = 1_000_000
    parent = (uniform(n) * arange(n)).int()
    parent[::1000] = arange(n)[::1000].int()
    root, depth, total = zeros(n, dtype="int32"), zeros(n, dtype="uint8"), zeros(n, dtype="float32")
    return run(roots_of_forest, (cdiv(n, 128),), (parent, uniform(n), root, depth, total, n), (root, depth, total), BLOCK=128, num_warps=2)


@triton.jit
def symmetric_rank_2k(a_ptr, b_ptr, c_ptr, alpha, N, K, BLOCK: tl.constexpr, BK: tl.constexpr):
    # A B^T + B A^T: tiles above the diagonal come from below it, those on it are their own mirror.
    bi, bj = tl.program_id(0), tl.program_id(1)
    if bj > bi:
        return
    i, j, k = bi * BLOCK + tl.arange(0, BLOCK), bj * BLOCK + tl.arange(0, BLOCK), tl.arange(0, BK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    im, jm = (i < N)[:, None], (j < N)[:, None]
    if bi == bj:
        for k0 in range(0, K, BK):
            a = tl.load(a_ptr + i[:, None] * K + (k0 + k)[None, :], mask=im, other=0.0)
            b = tl.load(b_ptr + i[:, None] * K + (k0 + k)[None, :], mask=im, other=0.0)
            acc = tl.dot(a, tl.trans(b), acc)
        acc += tl.trans(acc)
    else:
        for k0 in range(0, K, BK):
            ai = tl.load(a_ptr + i[:, None] * K + (k0 + k)[None, :], mask=im, other=0.0)
            bi_ = tl.load(b_ptr + i[:, None] * K + (k0 + k)[None, :], mask=im, other=0.0)
            aj = tl.load(a_ptr + j[:, None] * K + (k0 + k)[None, :], mask=jm, other=0.0)
            bj_ = tl.load(b_ptr + j[:, None] * K + (k0 + k)[None, :], mask=jm, other=0.0)
            acc = tl.dot(ai, tl.trans(bj_), acc)
            acc = tl.dot(bi_, tl.trans(aj), acc)
        tl.store(c_ptr + j[:, None] * N + i[None, :], tl.trans(acc) * alpha, mask=jm & (i < N)[None, :])
    tl.store(c_ptr + i[:, None] * N + j[None, :], acc * alpha, mask=im & (j < N)[None, :])


@case
def symmetric_rank_2k_mirrored():
    n, k = 1900, 512
    c = zeros(n, n, dtype="float32")
    return run(symmetric_rank_2k, (cdiv(n, 64), cdiv(n, 64)), (rand(n, k), rand(n, k), c, 0.5, n, k), c, BLOCK=64, BK=64, num_warps=4, num_stages=2)


@triton.jit
def _oscillator(x, v, mu):
    return v, mu * (1.0 - x * x) * v - x


@triton.jit
def adaptive_runge_kutta(x_ptr, v_ptr, mu_ptr, out_ptr, N, end, tolerance, BLOCK: tl.constexpr):
    # Bogacki and Shampine's pair in double precision, each oscillator with steps of its own, until all are at the end.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    x, v = tl.load(x_ptr + i, mask=live, other=0.0), tl.load(v_ptr + i, mask=live, other=0.0)
    mu = tl.load(mu_ptr + i, mask=live, other=1.0)
    t = tl.zeros((BLOCK,), tl.float64)
    h = tl.full((BLOCK,), 0.01, tl.float64)
    x1, v1 = _oscillator(x, v, mu)
    left = 1
    rounds = 0
    while (left > 0) & (rounds < 4000):
        h = tl.minimum(h, end - t)
        x2, v2 = _oscillator(x + 0.5 * h * x1, v + 0.5 * h * v1, mu)
        x3, v3 = _oscillator(x + 0.75 * h * x2, v + 0.75 * h * v2, mu)
        nx = x + h * (2.0 * x1 + 3.0 * x2 + 4.0 * x3) / 9.0
        nv = v + h * (2.0 * v1 + 3.0 * v2 + 4.0 * v3) / 9.0
        x4, v4 = _oscillator(nx, nv, mu)
        ex = h * (-5.0 * x1 / 72.0 + x2 / 12.0 + x3 / 9.0 - x4 / 8.0)
        ev = h * (-5.0 * v1 / 72.0 + v2 / 12.0 + v3 / 9.0 - v4 / 8.0)
        error = tl.maximum(tl.abs(ex), tl.abs(ev)) / tolerance
        going = t < end
        good = (error <= 1.0) & going
        x, v, t = tl.where(good, nx, x), tl.where(good, nv, v), tl.where(good, t + h, t)
        x1, v1 = tl.where(good, x4, x1), tl.where(good, v4, v1)
        change = tl.where(error > 8.0, 0.4, tl.where(error > 1.0, 0.7, tl.where(error > 0.3, 1.0, 1.5)))
        h = tl.where(going, tl.minimum(h * change, 0.2), h)
        left = tl.sum((t < end).to(tl.int32), axis=0)
        rounds += 1
    tl.store(out_ptr + i, x, mask=live)
    tl.store(out_ptr + N + i, v, mask=live)


@case
def oscillators_of_adaptive_steps():
    n = 100_000
    start = lambda: torch.randn(n, device="cuda", dtype=torch.float64)
    mu = torch.rand(n, device="cuda", dtype=torch.float64) * 2 + 0.1
    out = zeros(2, n, dtype="float64")
    return run(adaptive_runge_kutta, (cdiv(n, 128),), (start(), start(), mu, out, n, 3.0, 1e-5), out, BLOCK=128, num_warps=4)
