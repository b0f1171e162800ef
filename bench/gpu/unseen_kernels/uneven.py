"""Uneven: rows of three to 4,099, channels with strides, operands that lie turned, grids of three axes, and nothing that a power of two divides."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, viewed, zeros
from .simulations import f64


@triton.jit
def layer_norm_of_seven(x_ptr, w_ptr, b_ptr, y_ptr, N, EPS: tl.constexpr, ROWS: tl.constexpr):
    # Many rows of seven in a tile of eight columns; the mean and the spread of what is not padding.
    r, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None], tl.arange(0, 8)[None, :]
    ok = (r < N) & (c < 7)
    x = tl.load(x_ptr + r * 7 + c, mask=ok, other=0.0).to(tl.float32)
    mean = tl.sum(x, 1, keep_dims=True) / 7
    d = tl.where(c < 7, x - mean, 0.0)
    var = tl.sum(d * d, 1, keep_dims=True) / 7
    y = d * tl.rsqrt(var + EPS) * tl.load(w_ptr + c, mask=c < 7, other=0.0) + tl.load(b_ptr + c, mask=c < 7, other=0.0)
    tl.store(y_ptr + r * 7 + c, y.to(y_ptr.dtype.element_ty), mask=ok)


@case
def layer_norm_of_rows_of_seven():
    n = 900_001
    x, w, b, y = rand(n, 7), f32(7), f32(7), zeros(n, 7)
    launched = run(layer_norm_of_seven, (cdiv(n, 128),), (x, w, b, y, n), y, EPS=1e-5, ROWS=128)
    return against(launched, lambda: F.layer_norm(x.float(), (7,), w, b))


@triton.jit
def softmax_of_three(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x_ptr + i * 3, mask=i < N, other=0.0)
    b = tl.load(x_ptr + i * 3 + 1, mask=i < N, other=0.0)
    c = tl.load(x_ptr + i * 3 + 2, mask=i < N, other=0.0)
    m = tl.maximum(a, tl.maximum(b, c))
    a, b, c = tl.exp(a - m), tl.exp(b - m), tl.exp(c - m)
    inv = 1.0 / (a + b + c)
    tl.store(y_ptr + i * 3, a * inv, mask=i < N)
    tl.store(y_ptr + i * 3 + 1, b * inv, mask=i < N)
    tl.store(y_ptr + i * 3 + 2, c * inv, mask=i < N)


@case
def softmax_of_three_columns_one_by_one():
    n = 5_000_003
    x, y = f32(n, 3), zeros(n, 3, dtype="float32")
    return against(run(softmax_of_three, (cdiv(n, 1024),), (x, y, n), y, BLOCK=1024, num_warps=8), lambda: x.double().softmax(1))


@triton.jit
def bytes_of_4099(x_ptr, q_ptr, s_ptr, z_ptr, N, stride_x, stride_q, BLOCK: tl.constexpr):
    # A row in one go, 4,096 and three more: least and largest, a step, a zero that is rounded.
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_x + i, mask=i < N, other=0.0).to(tl.float32)
    low = tl.min(tl.where(i < N, x, float("inf")), 0)
    high = tl.max(tl.where(i < N, x, float("-inf")), 0)
    step = tl.maximum(high - low, 1e-5) / 255
    zero = tl.floor(-low / step + 0.5)
    q = tl.clamp(tl.floor(x / step + 0.5) + zero, 0.0, 255.0)
    tl.store(q_ptr + row * stride_q + i, q.to(tl.uint8), mask=i < N)
    tl.store(s_ptr + row, step)
    tl.store(z_ptr + row, zero.to(tl.uint8))


@case
def bytes_with_zeros_of_rows_of_4099():
    rows, n = 3000, 4099
    x = rand(rows, 4103)[:, :n]
    q, s, z = zeros(rows, 4101, dtype="uint8")[:, :n], zeros(rows, dtype="float32"), zeros(rows, dtype="uint8")
    launched = run(bytes_of_4099, (rows,), (x, q, s, z, n, 4103, 4101), (q, s, z), BLOCK=8192, num_warps=8)
    return viewed(launched, lambda outs: (outs[0].contiguous().float() + 300, outs[1], outs[2].float() + 300))


@triton.jit
def log_softmax_of_turned(x_ptr, y_ptr, R, C, stride_xr, stride_xc, stride_yr, stride_yc, BR: tl.constexpr, BC: tl.constexpr):
    # Rows whose elements lie far apart: columns in turn, with a running maximum, then once more from the end.
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = tl.arange(0, BC)
    m, s = tl.full((BR,), float("-inf"), tl.float32), tl.zeros((BR,), tl.float32)
    for c0 in range(0, C, BC):
        ok = (r < R)[:, None] & (c0 + c < C)[None, :]
        x = tl.load(x_ptr + r[:, None] * stride_xr + (c0 + c)[None, :] * stride_xc, mask=ok, other=float("-inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, 1))
        s = s * tl.exp(m - new) + tl.sum(tl.exp(x - new[:, None]), 1)
        m = new
    lse = m + tl.log(s)
    for c0 in range((C - 1) // BC * BC, -1, -BC):
        ok = (r < R)[:, None] & (c0 + c < C)[None, :]
        x = tl.load(x_ptr + r[:, None] * stride_xr + (c0 + c)[None, :] * stride_xc, mask=ok, other=0.0).to(tl.float32)
        tl.store(y_ptr + r[:, None] * stride_yr + (c0 + c)[None, :] * stride_yc, x - lse[:, None], mask=ok)


@case
def log_softmax_of_a_turned_matrix():
    r, c = 9001, 1000
    x, y = rand(c, r, dtype="bfloat16").t(), zeros(r, c, dtype="float32")
    args = x, y, r, c, x.stride(0), x.stride(1), y.stride(0), y.stride(1)
    launched = run(log_softmax_of_turned, (cdiv(r, 32),), args, y, BR=32, BC=32, num_warps=4)
    return against(launched, lambda: x.double().log_softmax(1))


@triton.jit
def matmul_any_stride(a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, cm, cn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_ptrs, b_ptrs = a_ptr + m[:, None] * am + k[None, :] * ak, b_ptr + k[:, None] * bk + n[None, :] * bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K, BK):
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (k0 + k[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(k0 + k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BK * ak
        b_ptrs += BK * bk
    tl.store(c_ptr + m[:, None] * cm + n[None, :] * cn, acc.to(c_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@case
def matmul_of_every_third_channel_of_1000_by_77():
    m, n, k = 3001, 1000, 77
    a, b, c = rand(m, k, 3)[:, :, 1], rand(n, k, 3)[:, :, 2].t(), zeros(n, m).t()
    args = a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride()
    launched = run(matmul_any_stride, (cdiv(m, 64), cdiv(n, 64)), args, c, BM=64, BN=64, BK=32)
    return against(launched, lambda: a.double() @ b.double())


@triton.jit
def batched_with_broadcast(a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, ab, am, ak, bb, bk, bn, cb, cm, cn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A batch stride may be zero; the batch is the last axis of the grid; offsets of 64 bits.
    z = tl.program_id(2).to(tl.int64)
    m, n, k = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    a_ptr += z * ab
    b_ptr += z * bb
    c_ptr += z * cb
    acc = tl.zeros((BM, BN), tl.float32)
    acc += tl.load(bias_ptr + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
    for k0 in range(tl.cdiv(K, BK)):
        kk = k0 * BK + k
        a = tl.load(a_ptr + m[:, None] * am + kk[None, :] * ak, mask=(m < M)[:, None] & (kk < K)[None, :], other=0.0)
        b = tl.load(b_ptr + kk[:, None] * bk + n[None, :] * bn, mask=(kk < K)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * cm + n[None, :] * cn, acc.to(c_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def batches_of_50x333_times_one_matrix_of_333x90():
    z, m, n, k = 300, 50, 90, 333
    a, b, bias, c = rand(z, m, k, dtype="bfloat16"), rand(1, k, n, dtype="bfloat16").expand(z, k, n), f32(n), zeros(m, z, n, dtype="bfloat16").transpose(0, 1)
    args = a, b, bias, c, m, n, k, *a.stride(), *b.stride(), *c.stride()
    launched = run(batched_with_broadcast, (cdiv(n, 32), cdiv(m, 64), z), args, c, BM=64, BN=32, BK=64, num_warps=4, num_stages=4)
    return against(launched, lambda: a.double() @ b.double() + bias)


@triton.jit
def roll_middle(x_ptr, y_ptr, A, B, C, shift, BB: tl.constexpr, BC: tl.constexpr):
    a = tl.program_id(2)
    b, c = tl.program_id(1) * BB + tl.arange(0, BB), tl.program_id(0) * BC + tl.arange(0, BC)
    ok = (b < B)[:, None] & (c < C)[None, :]
    source = (b + B - shift % B) % B
    x = tl.load(x_ptr + (a * B + source)[:, None] * C + c[None, :], mask=ok)
    tl.store(y_ptr + (a * B + b)[:, None] * C + c[None, :], x, mask=ok)


@case
def middle_axis_of_101_rolled():
    a, b, c = 70, 101, 777
    x, y = ints(-9999, 9999, a, b, c, dtype="int16"), zeros(a, b, c, dtype="int16")
    return against(run(roll_middle, (cdiv(c, 256), cdiv(b, 8), a), (x, y, a, b, c, 37), y, BB=8, BC=256), lambda: x.roll(37, 1))


@triton.jit
def places_of_least(x_ptr, at_ptr, value_ptr, R, C, BLOCK: tl.constexpr):
    # Long places of a row's least elements; of equals the last one, by a reduction of pairs.
    row = tl.program_id(0)
    best = tl.full((BLOCK,), 127, tl.int32)
    where = tl.full((BLOCK,), -1, tl.int64)
    for c0 in range(0, C, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * C + c, mask=c < C, other=127).to(tl.int32)
        better = (x <= best) & (c < C)
        best, where = tl.where(better, x, best), tl.where(better, c.to(tl.int64), where)
    low, at = tl.reduce((best, where), 0, later_of_least)
    tl.store(at_ptr + row, at)
    tl.store(value_ptr + row, low.to(tl.int8))


@triton.jit
def later_of_least(a, i, b, j):
    first = (a < b) | ((a == b) & (i > j))
    return tl.where(first, a, b), tl.where(first, i, j)


@case
def last_places_of_least_bytes_of_rows_of_1000():
    r, c = 30_000, 1000
    x, at, value = ints(-100, 100, r, c, dtype="int8"), zeros(r, dtype="int64"), zeros(r, dtype="int8")
    launched = run(places_of_least, (r,), (x, at, value, r, c), (at, value), BLOCK=256, num_warps=2)
    return against(launched, lambda: (c - 1 - x.flip(1).min(1)[1], x.min(1)[0]))


@triton.jit
def sums_along_77(x_ptr, y_ptr, A, B, C, EXCLUSIVE: tl.constexpr, BA: tl.constexpr, BP: tl.constexpr):
    # Running sums along the middle of three axes in a tile that is as high as the axis is, padded; strides known to the compiler.
    a, c, b = tl.program_id(0) * BA + tl.arange(0, BA), tl.program_id(1), tl.arange(0, BP)
    ok = (a < A)[:, None] & (b < B)[None, :]
    at = (a[:, None] * B + b[None, :]) * C + c
    x = tl.load(x_ptr + at, mask=ok, other=0.0)
    s = tl.cumsum(x, 1)
    if EXCLUSIVE:
        s -= x
    tl.store(y_ptr + at, s, mask=ok)


@case
def running_sums_along_a_middle_axis_of_77_for_each_channel():
    a, b, c = 1000, 77, 12
    x, y = uniform(a, b, c), zeros(a, b, c, dtype="float32")
    launched = run(sums_along_77, (cdiv(a, 16), c), (x, y, a, b, c), y, EXCLUSIVE=True, BA=16, BP=128)
    return against(launched, lambda: x.double().cumsum(1) - x)


@triton.jit
def triangle_to_list(x_ptr, y_ptr, N, BI: tl.constexpr, BJ: tl.constexpr):
    # The lower triangle of symmetric matrices, a row after another: rows begin at i (i + 1) / 2.
    b = tl.program_id(2)
    if tl.program_id(0) * BJ > tl.program_id(1) * BI + BI - 1:
        return
    i, j = tl.program_id(1) * BI + tl.arange(0, BI)[:, None], tl.program_id(0) * BJ + tl.arange(0, BJ)[None, :]
    ok = (j <= i) & (i < N)
    x, y = tl.load(x_ptr + (b * N + i) * N + j, mask=ok, other=0.0), tl.load(x_ptr + (b * N + j) * N + i, mask=ok, other=0.0)
    tl.store(y_ptr + b * (N * (N + 1) // 2) + i * (i + 1) // 2 + j, 0.5 * (x + y), mask=ok)


@case
def symmetric_parts_of_333x333_to_lists_of_triangles():
    b, n = 60, 333
    x, y = f32(b, n, n), zeros(b, n * (n + 1) // 2, dtype="float32")
    launched = run(triangle_to_list, (cdiv(n, 32), cdiv(n, 32), b), (x, y, n), y, BI=32, BJ=32)

    def reference():
        i, j = torch.tril_indices(n, n, device=x.device)
        return (0.5 * (x + x.transpose(1, 2)))[:, i, j]

    return against(launched, reference)


@triton.jit
def packed_symmetric_times(p_ptr, x_ptr, y_ptr, N, BI: tl.constexpr, BJ: tl.constexpr):
    # Of a matrix only the triangle lies in memory: what is above it is read from its mirror.
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    acc = tl.zeros((BI, BJ), tl.float64)
    for j0 in range(0, N, BJ):
        j = j0 + tl.arange(0, BJ)
        high, low = tl.maximum(i[:, None], j[None, :]).to(tl.int64), tl.minimum(i[:, None], j[None, :]).to(tl.int64)
        ok = (i < N)[:, None] & (j < N)[None, :]
        a = tl.load(p_ptr + high * (high + 1) // 2 + low, mask=ok, other=0.0)
        acc += a * tl.load(x_ptr + j, mask=j < N, other=0.0)[None, :]
    tl.store(y_ptr + i, tl.sum(acc, 1), mask=i < N)


@case
def packed_symmetric_matrix_times_a_vector_in_double():
    n = 3333
    p, x, y = f64(n * (n + 1) // 2), f64(n), zeros(n, dtype="float64")
    launched = run(packed_symmetric_times, (cdiv(n, 16),), (p, x, y, n), y, BI=16, BJ=64, num_warps=4)

    def reference():
        i, j = torch.tril_indices(n, n, device=x.device)
        a = torch.zeros(n, n, device=x.device, dtype=x.dtype)
        a[i, j] = p
        return a @ x + a.tril(-1).t() @ x

    return against(launched, reference)


@triton.jit
def diagonals_to_rows(x_ptr, y_ptr, T, BAND: tl.constexpr, BP: tl.constexpr, BT: tl.constexpr):
    # A band of a square matrix, as rows of 2 BAND + 1 around the diagonal; outside are zeros.
    h = tl.program_id(1)
    t, d = tl.program_id(0) * BT + tl.arange(0, BT), tl.arange(0, BP)
    s = t[:, None] + d[None, :] - BAND
    live = (t < T)[:, None] & (d < 2 * BAND + 1)[None, :]
    x = tl.load(x_ptr + (h * T + t)[:, None] * T + s, mask=live & (s >= 0) & (s < T), other=0.0)
    tl.store(y_ptr + (h * T + t)[:, None] * (2 * BAND + 1) + d[None, :], x, mask=live)


@case
def bands_of_21_diagonals_to_rows():
    h, t, band = 12, 2001, 10
    x, y = rand(h, t, t), zeros(h, t, 2 * band + 1)
    launched = run(diagonals_to_rows, (cdiv(t, 64), h), (x, y, t), y, BAND=band, BP=32, BT=64)

    def reference():
        padded = F.pad(x, (band, band))
        at = arange(t, "int64")[:, None] + arange(2 * band + 1, "int64")
        return padded.gather(2, at.expand(h, -1, -1))

    return against(launched, reference)


@triton.jit
def channels_of_frames(x_ptr, mean_ptr, dev_ptr, T, C: tl.constexpr, BT: tl.constexpr):
    # Three channels side by side: each program takes a clip and a channel, strides of three in memory.
    n, c = tl.program_id(0).to(tl.int64), tl.program_id(1)
    base = x_ptr + n * T * C + c
    t = tl.arange(0, BT)
    count, mean, m2 = tl.zeros((BT,), tl.float32), tl.zeros((BT,), tl.float32), tl.zeros((BT,), tl.float32)
    for t0 in tl.range(0, T, BT):
        ok = t0 + t < T
        x = tl.load(base + (t0 + t) * C, mask=ok, other=0).to(tl.float32)
        count += ok.to(tl.float32)
        d = x - mean
        mean += tl.where(ok, d / tl.maximum(count, 1.0), 0.0)
        m2 += tl.where(ok, d * (x - mean), 0.0)
    total = tl.sum(mean * count, 0) / T
    spread = tl.sum(m2 + count * (mean - total) * (mean - total), 0)
    tl.store(mean_ptr + n * C + c, total)
    tl.store(dev_ptr + n * C + c, tl.sqrt(spread / (T - 1)))


@case
def deviations_of_three_channels_over_33333_samples():
    n, t, c = 200, 33_333, 3
    x, mean, dev = ints(-3000, 9000, n, t, c, dtype="int16"), zeros(n, c, dtype="float32"), zeros(n, c, dtype="float32")
    launched = run(channels_of_frames, (n, c), (x, mean, dev, t), (mean, dev), C=c, BT=512, num_warps=4)
    return against(launched, lambda: (x.double().mean(1), x.double().std(1)))


@triton.jit
def lines_between_samples(x_ptr, y_ptr, N: tl.constexpr, M: tl.constexpr, R, BR: tl.constexpr, BM: tl.constexpr):
    # Rows of 100 made rows of 333: places of constants and fractions of them, two loads a number.
    r, j = tl.program_id(1) * BR + tl.arange(0, BR)[:, None], tl.program_id(0) * BM + tl.arange(0, BM)[None, :]
    s = tl.maximum((j.to(tl.float32) + 0.5) * (N / M) - 0.5, 0.0)
    i = s.to(tl.int32)
    f = s - i
    ok = (r < R) & (j < M)
    a = tl.load(x_ptr + r * N + i, mask=ok, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + r * N + tl.minimum(i + 1, N - 1), mask=ok, other=0.0).to(tl.float32)
    tl.store(y_ptr + r * M + j, (a + (b - a) * f).to(y_ptr.dtype.element_ty), mask=ok)


@case
def rows_of_100_stretched_to_333():
    r, n, m = 30_000, 100, 333
    x, y = rand(r, n), zeros(r, m)
    launched = run(lines_between_samples, (cdiv(m, 128), cdiv(r, 8)), (x, y), y, N=n, M=m, R=r, BR=8, BM=128)
    return against(launched, lambda: F.interpolate(x.float()[None], size=m, mode="linear")[0])


@triton.jit
def order_two(a, b):
    return tl.minimum(a, b), tl.maximum(a, b)


@triton.jit
def medians_that_slide(x_ptr, y_ptr, N, stride, BLOCK: tl.constexpr):
    # Five neighbors by seven exchanges; a row's ends are repeated.
    row = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = x_ptr + row * stride
    a = tl.load(base + tl.maximum(i - 2, 0), mask=i < N)
    b = tl.load(base + tl.maximum(i - 1, 0), mask=i < N)
    c = tl.load(base + i, mask=i < N)
    d = tl.load(base + tl.minimum(i + 1, N - 1), mask=i < N)
    e = tl.load(base + tl.minimum(i + 2, N - 1), mask=i < N)
    a, b = order_two(a, b)
    d, e = order_two(d, e)
    a, d = order_two(a, d)
    b, e = order_two(b, e)
    b, c = order_two(b, c)
    c, d = order_two(c, d)
    b, c = order_two(b, c)
    tl.store(y_ptr + row * N + i, c, mask=i < N)


@case
def medians_of_five_along_rows_of_4099():
    rows, n = 2000, 4099
    x, y = f32(rows, 2 * n)[:, :n], zeros(rows, n, dtype="float32")
    launched = run(medians_that_slide, (cdiv(n, 1024), rows), (x, y, n, 2 * n), y, BLOCK=1024, num_warps=8)
    return against(launched, lambda: F.pad(x[None], (2, 2), mode="replicate")[0].unfold(1, 5, 1).median(2)[0])


@triton.jit
def skinny_k(a_ptr, b_ptr, c_ptr, M, N, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Thirteen terms of each sum, unrolled, as outer products of a column and a row.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.static_range(K):
        a = tl.load(a_ptr + m * K + k, mask=m < M, other=0.0)
        b = tl.load(b_ptr + n * K + k, mask=n < N, other=0.0)
        acc += a[:, None] * b[None, :]
    acc = tl.where(acc > 0, acc, 0.0)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@case
def positive_parts_of_products_over_thirteen():
    m, n, k = 5000, 3001, 13
    a, b, c = f32(m, k), f32(n, k), zeros(m, n, dtype="float32")
    launched = run(skinny_k, (cdiv(m, 32), cdiv(n, 64)), (a, b, c, m, n), c, K=k, BM=32, BN=64)
    return against(launched, lambda: (a.double() @ b.double().t()).relu())


@triton.jit
def softmax_over_two_of_three(x_ptr, y_ptr, N, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, PA: tl.constexpr, PB: tl.constexpr, PC: tl.constexpr):
    # Blocks of 5x7x9 padded to 8x8x16: a softmax over the first and the last axis at once.
    n = tl.program_id(0)
    a, b, c = tl.arange(0, PA)[:, None, None], tl.arange(0, PB)[None, :, None], tl.arange(0, PC)[None, None, :]
    ok = (a < A) & (b < B) & (c < C)
    at = n * (A * B * C) + (a * B + b) * C + c
    x = tl.load(x_ptr + at, mask=ok, other=float("-inf"))
    top = tl.max(tl.max(x, 2), 0)
    top = tl.where(tl.arange(0, PB) < B, top, 0.0)
    e = tl.exp(x - top[None, :, None])
    total = tl.sum(tl.sum(e, 0), 1)
    tl.store(y_ptr + at, e / total[None, :, None], mask=ok)


@case
def softmax_over_first_and_last_of_5x7x9():
    n = 30_000
    x, y = f32(n, 5, 7, 9), zeros(n, 5, 7, 9, dtype="float32")
    launched = run(softmax_over_two_of_three, (n,), (x, y, n), y, A=5, B=7, C=9, PA=8, PB=8, PC=16, num_warps=2)
    return against(launched, lambda: x.permute(0, 2, 1, 3).reshape(n, 7, 45).double().softmax(2).view(n, 7, 5, 9).permute(0, 2, 1, 3))


@triton.jit
def best_three(x_ptr, v_ptr, i_ptr, R, C, BR: tl.constexpr, BC: tl.constexpr):
    # The largest, struck out, three times; rows of a tile at once.
    r, c = tl.program_id(0) * BR + tl.arange(0, BR), tl.arange(0, BC)
    x = tl.load(x_ptr + r[:, None] * C + c[None, :], mask=(r < R)[:, None] & (c < C)[None, :], other=float("-inf"))
    for k in tl.static_range(3):
        v, at = tl.max(x, 1, return_indices=True)
        tl.store(v_ptr + r * 3 + k, v, mask=r < R)
        tl.store(i_ptr + r * 3 + k, at.to(tl.int16), mask=r < R)
        x = tl.where(c[None, :] == at[:, None], float("-inf"), x)


@case
def best_three_of_rows_of_1000_struck_out():
    r, c = 20_000, 1000
    x, v, i = f32(r, c), zeros(r, 3, dtype="float32"), zeros(r, 3, dtype="int16")
    return against(run(best_three, (cdiv(r, 4),), (x, v, i, r, c), (v, i), BR=4, BC=1024), lambda: x.topk(3, 1))


@triton.jit
def rows_times_own_matrix(a_ptr, x_ptr, y_ptr, D: tl.constexpr, P: tl.constexpr, stride_b, stride_i, stride_j):
    # A matrix of 31x31 a sample, columns first or rows first as strides say, and the square of the result's length.
    b = tl.program_id(0)
    i, j = tl.arange(0, P), tl.arange(0, P)
    ok = (i < D)[:, None] & (j < D)[None, :]
    a = tl.load(a_ptr + b * stride_b + i[:, None] * stride_i + j[None, :] * stride_j, mask=ok, other=0.0)
    y = tl.sum(a * tl.load(x_ptr + b * D + j, mask=j < D, other=0.0)[None, :], 1)
    tl.store(y_ptr + b * (D + 1) + i, y, mask=i < D)
    tl.store(y_ptr + b * (D + 1) + D, tl.sum(y * y, 0))


@case
def vectors_of_31_times_matrices_of_their_own_turned():
    b, d = 40_000, 31
    a, x, y = f32(b, d, d).transpose(1, 2), f32(b, d), zeros(b, d + 1, dtype="float32")
    launched = run(rows_times_own_matrix, (b,), (a, x, y), y, D=d, P=32, stride_b=a.stride(0), stride_i=a.stride(1), stride_j=a.stride(2), num_warps=1)

    def reference():
        z = (a.double() @ x.double()[:, :, None])[:, :, 0]
        return torch.cat([z, z.square().sum(1, keepdim=True)], 1)

    return against(launched, reference)


@triton.jit
def repeat_rows(x_ptr, ends_ptr, y_ptr, R, D, TOTAL, BT: tl.constexpr, BD: tl.constexpr):
    # Each row as often as a count says: an output row finds its source by bisection of the counts' running sums.
    t, d = tl.program_id(0) * BT + tl.arange(0, BT), tl.arange(0, BD)
    low, high = tl.zeros((BT,), tl.int32), tl.zeros((BT,), tl.int32) + R
    for _ in range(17):
        middle = (low + high) >> 1
        past = tl.load(ends_ptr + tl.minimum(middle, R - 1)) <= t
        low, high = tl.where(past & (low < high), middle + 1, low), tl.where(past, high, middle)
    ok = (t < TOTAL)[:, None] & (d < D)[None, :]
    x = tl.load(x_ptr + low[:, None] * D + d[None, :], mask=ok, other=0.0)
    tl.store(y_ptr + t[:, None] * D + d[None, :], x, mask=ok)


@case
def rows_of_100_repeated_by_counts():
    r, d = 50_000, 100
    counts = (arange(r, "int64") * 7919) % 9
    total = sum((i * 7919) % 9 for i in range(r))
    x, y = rand(r, d, dtype="bfloat16"), zeros(total, d, dtype="bfloat16")
    launched = run(repeat_rows, (cdiv(total, 32),), (x, counts.cumsum(0), y, r, d, total), y, BT=32, BD=128)
    return against(launched, lambda: x.repeat_interleave(counts, 0))


@triton.jit
def outer_of_three(a_ptr, b_ptr, w_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # Sums of outer products of vectors of three, nine numbers by scalars of a block, added by atomics.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    w = tl.load(w_ptr + i, mask=ok, other=0.0)
    for r in tl.static_range(3):
        a = tl.load(a_ptr + 3 * i + r, mask=ok, other=0.0) * w
        for c in tl.static_range(3):
            tl.atomic_add(out_ptr + 3 * r + c, tl.sum(a * tl.load(b_ptr + 3 * i + c, mask=ok, other=0.0), 0), sem="relaxed")


@case
def weighted_covariance_of_points_of_three():
    n = 2_000_001
    a, w, out = uniform(n, 3), uniform(n), zeros(3, 3, dtype="float32")
    launched = run(outer_of_three, (cdiv(n, 2048),), (a, a, w, out, n), out, BLOCK=2048, num_warps=8)
    return against(cleared(launched, out), lambda: (a.double() * w[:, None]).t() @ a.double())


@triton.jit
def conv_five_groups(x_ptr, w_ptr, b_ptr, y_ptr, T, OUT, GROUPS: tl.constexpr, CI: tl.constexpr, CO: tl.constexpr, TAPS: tl.constexpr, STRIDE: tl.constexpr, BT: tl.constexpr):
    # Groups of three inputs and four outputs, seven taps, a stride of three: the four outputs are a tile's rows.
    n, g = tl.program_id(1), tl.program_id(2)
    t, o = tl.program_id(0) * BT + tl.arange(0, BT), tl.arange(0, CO)
    acc = tl.zeros((CO, BT), tl.float32) + tl.load(b_ptr + g * CO + o)[:, None]
    for c in range(CI):
        for k in tl.static_range(TAPS):
            s = t * STRIDE + k - TAPS // 2
            x = tl.load(x_ptr + (n * GROUPS * CI + g * CI + c) * T + s, mask=(s >= 0) & (s < T), other=0.0).to(tl.float32)
            w = tl.load(w_ptr + ((g * CO + o) * CI + c) * TAPS + k).to(tl.float32)
            acc += w[:, None] * x[None, :]
    tl.store(y_ptr + (n * GROUPS * CO + g * CO + o)[:, None] * OUT + t[None, :], acc.to(y_ptr.dtype.element_ty), mask=(t < OUT)[None, :])


@case
def conv_of_five_groups_of_three_by_four_stride_three():
    n, t, groups, ci, co, taps, stride = 60, 20_001, 5, 3, 4, 7, 3
    out = (t - 1) // stride + 1
    x, w, b, y = rand(n, groups * ci, t), rand(groups * co, ci, taps), f32(groups * co), zeros(n, groups * co, out)
    args = x, w, b, y, t, out
    launched = run(conv_five_groups, (cdiv(out, 256), n, groups), args, y, GROUPS=groups, CI=ci, CO=co, TAPS=taps, STRIDE=stride, BT=256, num_warps=4)
    return against(launched, lambda: F.conv1d(x.float(), w.float(), b, stride=stride, padding=3, groups=groups))


@triton.jit
def kron_times(a_ptr, b_ptr, x_ptr, y_ptr, N, BN: tl.constexpr):
    # (A of 3x3) kron (B of 5x5) times rows of 15 numbers, never made: two small products by static loops over a tile.
    n, p = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, 8)
    ok = (n < N)[:, None] & (p < 5)[None, :]
    for i in tl.static_range(3):
        z = tl.zeros((BN, 8), tl.float32)
        for j in tl.static_range(3):
            z += tl.load(a_ptr + i * 3 + j) * tl.load(x_ptr + n[:, None] * 15 + j * 5 + p[None, :], mask=ok, other=0.0)
        for q in tl.static_range(5):
            w = tl.load(b_ptr + q * 5 + p, mask=p < 5, other=0.0)
            tl.store(y_ptr + n * 15 + i * 5 + q, tl.sum(z * w[None, :], 1), mask=n < N)


@case
def kronecker_factors_of_3_and_5_times_rows_of_15():
    n = 700_001
    a, b, x, y = f32(3, 3), f32(5, 5), f32(n, 15), zeros(n, 15, dtype="float32")
    launched = run(kron_times, (cdiv(n, 64),), (a, b, x, y, n), y, BN=64, num_warps=2)
    return against(launched, lambda: x.double() @ torch.kron(a.double(), b.double()).t())
