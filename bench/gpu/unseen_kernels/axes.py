"""Norms, reductions, scans, losses and pools over any axis, as they are first written for a module of PyTorch."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros


@triton.jit
def softmax_channels(x_ptr, y_ptr, C, S, BLOCK_C: tl.constexpr, BLOCK_S: tl.constexpr):
    # Over dimension 1 of NCHW: the channels are the first axis of the tile.
    n = tl.program_id(1)
    c, s = tl.arange(0, BLOCK_C)[:, None], tl.program_id(0) * BLOCK_S + tl.arange(0, BLOCK_S)[None, :]
    mask = (c < C) & (s < S)
    x = tl.load(x_ptr + n * C * S + c * S + s, mask=mask, other=-float("inf"))
    x = x - tl.max(x, axis=0, keep_dims=True)
    e = tl.exp(x)
    tl.store(y_ptr + n * C * S + c * S + s, e / tl.sum(e, axis=0, keep_dims=True), mask=mask)


@case
def softmax_over_50_channels_of_nchw():
    n, c, h, w = 8, 50, 98, 99
    x, y = f32(n, c, h, w), zeros(n, c, h, w, dtype="float32")
    launched = run(softmax_channels, (cdiv(h * w, 64), n), (x, y, c, h * w), y, BLOCK_C=64, BLOCK_S=64)
    return against(launched, lambda: x.softmax(1))


@triton.jit
def softmax_rows(output_ptr, input_ptr, input_row_stride, output_row_stride, n_cols, LOG: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    row_idx = tl.program_id(0)
    row_start_ptr = input_ptr + row_idx * input_row_stride
    col_offsets = tl.arange(0, BLOCK_SIZE)
    row = tl.load(row_start_ptr + col_offsets, mask=col_offsets < n_cols, other=-float("inf"))
    row_minus_max = row - tl.max(row, axis=0)
    numerator = tl.exp(row_minus_max)
    denominator = tl.sum(numerator, axis=0)
    result = row_minus_max - tl.log(denominator) if LOG else numerator / denominator
    tl.store(output_ptr + row_idx * output_row_stride + col_offsets, result, mask=col_offsets < n_cols)


def softmax_case(rows, cols, log, **options):
    x, y = f32(rows, cols), zeros(rows, cols, dtype="float32")
    block = triton.next_power_of_2(cols)
    launched = run(softmax_rows, (rows,), (y, x, cols, cols, cols), y, LOG=log, BLOCK_SIZE=block, **options)
    return against(launched, lambda: x.log_softmax(1) if log else x.softmax(1))


@case
def softmax_of_12000_columns_by_default_warps():
    return softmax_case(3000, 12000, False)


@case
def log_softmax_of_4097_columns_by_16_warps():
    return softmax_case(6000, 4097, True, num_warps=16)


@triton.jit
def argmax_middle_scalar(x_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr):
    # A program for each (batch, column): strided loads of the whole middle axis.
    b, n = tl.program_id(0), tl.program_id(1)
    m = tl.arange(0, BLOCK_M)
    x = tl.load(x_ptr + b * M * N + m * N + n, mask=m < M, other=-float("inf"))
    tl.store(out_ptr + b * N + n, tl.argmax(x, axis=0).to(tl.int64))


@case
def argmax_of_a_middle_axis_one_column_a_program():
    b, m, n = 16, 500, 513
    x, out = f32(b, m, n), zeros(b, n, dtype="int64")
    return against(run(argmax_middle_scalar, (b, n), (x, out, m, n), out, BLOCK_M=512), lambda: x.argmax(1))


@triton.jit
def argmin_middle_blocks(x_ptr, out_ptr, val_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    # Tiles over the middle axis: the best of each lane until the end, then one reduction of pairs.
    b = tl.program_id(1)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    best = tl.full((BLOCK_M, BLOCK_N), float("inf"), tl.float32)
    where = tl.zeros((BLOCK_M, BLOCK_N), tl.int32)
    for m0 in range(0, M, BLOCK_M):
        m = m0 + tl.arange(0, BLOCK_M)
        x = tl.load(x_ptr + (b * M + m[:, None]) * N + n[None, :], mask=(m < M)[:, None] & (n < N)[None, :], other=float("inf"))
        x = x.to(tl.float32)
        less = x < best
        best = tl.where(less, x, best)
        where = tl.where(less, m[:, None], where)
    low = tl.min(best, axis=0)
    at = tl.min(tl.where(best == low[None, :], where, 2147483647), axis=0)
    tl.store(out_ptr + b * N + n, at.to(tl.int64), mask=n < N)
    tl.store(val_ptr + b * N + n, low.to(val_ptr.dtype.element_ty), mask=n < N)


@case
def argmin_of_a_middle_axis_in_bf16_with_ties():
    b, m, n = 32, 777, 1000
    x, out, value = rand(b, m, n, dtype="bfloat16"), zeros(b, n, dtype="int64"), zeros(b, n, dtype="bfloat16")
    launched = run(argmin_middle_blocks, (cdiv(n, 64), b), (x, out, value, m, n), (out, value), BLOCK_M=16, BLOCK_N=64)

    def reference():
        low = x.amin(1, keepdim=True)
        return torch.where(x == low, arange(m, "int64")[:, None], m).amin(1), low[:, 0]

    return against(launched, reference)


@triton.jit
def reduce_last_3d(x_ptr, y_ptr, z_ptr, A, B, C, BA: tl.constexpr, BB: tl.constexpr, BC: tl.constexpr):
    # One tile of three axes: the mean over the last, and the largest over the first two of them.
    a, b = tl.program_id(0) * BA + tl.arange(0, BA), tl.program_id(1) * BB + tl.arange(0, BB)
    acc = tl.zeros((BA, BB, BC), tl.float32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        ok = (a < A)[:, None, None] & (b < B)[None, :, None] & (c < C)[None, None, :]
        acc += tl.load(x_ptr + (a[:, None, None] * B + b[None, :, None]) * C + c[None, None, :], mask=ok, other=0.0)
    mean = tl.sum(acc, axis=2) / C
    tl.store(y_ptr + a[:, None] * B + b[None, :], mean, mask=(a < A)[:, None] & (b < B)[None, :])
    top = tl.max(tl.max(tl.where((a < A)[:, None] & (b < B)[None, :], tl.abs(mean), 0.0), axis=1), axis=0)
    tl.store(z_ptr + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1), top)


@case
def mean_of_the_last_of_three_axes_at_once():
    a, b, c = 203, 330, 300
    x, y, z = f32(a, b, c), zeros(a, b, dtype="float32"), zeros(cdiv(a, 4), cdiv(b, 8), dtype="float32")
    launched = run(reduce_last_3d, (cdiv(a, 4), cdiv(b, 8)), (x, y, z, a, b, c), (y, z), BA=4, BB=8, BC=32)

    def reference():
        mean = x.mean(2)
        return mean, F.pad(mean.abs(), (0, -b % 8, 0, -a % 4)).view(-(-a // 4), 4, -1, 8).amax((1, 3))

    return against(launched, reference)


@triton.jit
def sum_dim1(x_ptr, y_ptr, M, N, stride_b, stride_m, stride_n, BLOCK_N: tl.constexpr):
    # Rows of the middle axis one after another: a loop without blocks.
    b = tl.program_id(0)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_N,), tl.float32)
    peak = tl.full((BLOCK_N,), float("-inf"), tl.float32)
    for m in range(M):
        x = tl.load(x_ptr + b * stride_b + m * stride_m + n * stride_n, mask=n < N, other=0.0).to(tl.float32)
        total += x
        peak = tl.maximum(peak, x)
    tl.store(y_ptr + b * 2 * N + n, total, mask=n < N)
    tl.store(y_ptr + (b * 2 + 1) * N + n, peak, mask=n < N)


@case
def sum_and_maximum_over_dim_1_row_by_row():
    b, m, n = 128, 300, 520
    x, y = rand(b, m, n), zeros(b, 2, n, dtype="float32")
    args = x, y, m, n, *x.stride()
    return against(run(sum_dim1, (b, cdiv(n, 256)), args, y, BLOCK_N=256), lambda: torch.stack((x.float().sum(1), x.float().amax(1)), 1))


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, n_cols, MODE: tl.constexpr, BLOCK: tl.constexpr):
    # A row in one block of its next power of two.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + i, mask=i < n_cols, other=0.0)
    if MODE == "reverse":
        y = tl.cumsum(x, axis=0, reverse=True)
    elif MODE == "exclusive":
        y = tl.cumsum(x, axis=0) - x
    else:
        y = tl.cumsum(x, axis=0)
    tl.store(y_ptr + row * n_cols + i, y, mask=i < n_cols)


@case
def cumsum_of_4000_columns_in_reverse():
    x, y = f32(2000, 4000), zeros(2000, 4000, dtype="float32")
    launched = run(cumsum_kernel, (2000,), (x, y, 4000), y, MODE="reverse", BLOCK=4096)
    return against(launched, lambda: x.double().flip(1).cumsum(1).flip(1))


@case
def cumsum_of_16001_columns_exclusive_by_8_warps():
    x, y = uniform(600, 16001), zeros(600, 16001, dtype="float32")
    launched = run(cumsum_kernel, (600,), (x, y, 16001), y, MODE="exclusive", BLOCK=16384, num_warps=8)
    return against(launched, lambda: x.double().cumsum(1) - x)


@triton.jit
def masked_cumsum_chunks(x_ptr, mask_ptr, y_ptr, N, BLOCK: tl.constexpr):
    # Chunks with a carry; elements of which the mask is false add nothing.
    row = tl.program_id(0)
    carry = 0.0
    for start in range(0, N, BLOCK):
        i = start + tl.arange(0, BLOCK)
        ok = i < N
        x = tl.load(x_ptr + row * N + i, mask=ok, other=0.0)
        keep = tl.load(mask_ptr + row * N + i, mask=ok, other=0).to(tl.int1)
        x = tl.where(keep, x, 0.0)
        tl.store(y_ptr + row * N + i, tl.cumsum(x, 0) + carry, mask=ok)
        carry += tl.sum(x, 0)


@case
def cumsum_masked_by_booleans_in_chunks():
    rows, n = 1000, 10000
    x, y, keep = uniform(rows, n), zeros(rows, n, dtype="float32"), ints(0, 2, rows, n, dtype="uint8").bool()
    launched = run(masked_cumsum_chunks, (rows,), (x, keep, y, n), y, BLOCK=1024)
    return against(launched, lambda: torch.where(keep, x, 0).double().cumsum(1))


@triton.jit
def cumprod_dim0(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # Down columns, in tiles, by the language's own product scan.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    carry = tl.full((BN,), 1.0, tl.float32)
    for m0 in range(0, M, BM):
        m = m0 + tl.arange(0, BM)
        ok = (m < M)[:, None] & (n < N)[None, :]
        x = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=ok, other=1.0)
        y = tl.cumprod(x, axis=0) * carry[None, :]
        tl.store(y_ptr + m[:, None] * N + n[None, :], y, mask=ok)
        carry = carry * tl.reduce(x, 0, _times)


@triton.jit
def _times(a, b):
    return a * b


@case
def cumprod_down_columns_in_tiles():
    m, n = 1000, 9000
    x, y = 1 + (uniform(m, n) - 0.5) / 10, zeros(m, n, dtype="float32")
    launched = run(cumprod_dim0, (cdiv(n, 32),), (x, y, m, n), y, BM=64, BN=32)
    return against(launched, lambda: x.double().cumprod(0))


@triton.jit
def rms_norm_channels(x_ptr, g_ptr, y_ptr, C, S, eps, BLOCK: tl.constexpr):
    # Over channels of NCHW: a program walks the channels of its pixels twice.
    n = tl.program_id(1)
    s = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    square = tl.zeros((BLOCK,), tl.float32)
    for c in range(C):
        x = tl.load(x_ptr + (n * C + c) * S + s, mask=s < S, other=0.0).to(tl.float32)
        square += x * x
    rstd = 1.0 / tl.sqrt(square / C + eps)
    for c in range(C):
        x = tl.load(x_ptr + (n * C + c) * S + s, mask=s < S, other=0.0).to(tl.float32)
        tl.store(y_ptr + (n * C + c) * S + s, (x * rstd * tl.load(g_ptr + c)).to(y_ptr.dtype.element_ty), mask=s < S)


@case
def rms_norm_over_channels_of_planes():
    n, c, h, w = 16, 64, 128, 127
    x, g, y = rand(n, c, h, w), f32(c), zeros(n, c, h, w)
    launched = run(rms_norm_channels, (cdiv(h * w, 256), n), (x, g, y, c, h * w, 1e-5), y, BLOCK=256)
    return against(launched, lambda: x.float() * (x.float().square().mean(1, keepdim=True) + 1e-5).rsqrt() * g[:, None, None])


@triton.jit
def instance_norm_plane(x_ptr, y_ptr, H, W, eps, BH: tl.constexpr, BW: tl.constexpr):
    # A plane is one tile of two axes, reduced one after the other.
    base = tl.program_id(0).to(tl.int64) * H * W
    h, w = tl.arange(0, BH), tl.arange(0, BW)
    ok = (h < H)[:, None] & (w < W)[None, :]
    at = h[:, None] * W + w[None, :]
    x = tl.load(x_ptr + base + at, mask=ok, other=0.0)
    mean = tl.sum(tl.sum(x, axis=1), axis=0) / (H * W)
    d = tl.where(ok, x - mean, 0.0)
    var = tl.sum(tl.sum(d * d, axis=1), axis=0) / (H * W)
    tl.store(y_ptr + base + at, d * tl.rsqrt(var + eps), mask=ok)


@case
def instance_norm_of_a_plane_in_one_tile():
    n, c, h, w = 16, 64, 112, 100
    x, y = f32(n, c, h, w), zeros(n, c, h, w, dtype="float32")
    launched = run(instance_norm_plane, (n * c,), (x, y, h, w, 1e-5), y, BH=128, BW=128, num_warps=8)
    return against(launched, lambda: F.instance_norm(x))


@triton.jit
def group_norm_naive(x_ptr, w_ptr, b_ptr, y_ptr, C, HW, G, eps, BLOCK: tl.constexpr):
    # One program a group; the channel of each element by a division.
    pid = tl.program_id(0)
    n, g = pid // G, pid % G
    per = C // G
    size = per * HW
    base = (n * C + g * per).to(tl.int64) * HW
    s, q = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for off in range(0, size, BLOCK):
        i = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + i, mask=i < size, other=0.0)
        s += x
        q += x * x
    mean = tl.sum(s, axis=0) / size
    rstd = 1.0 / tl.sqrt(tl.sum(q, axis=0) / size - mean * mean + eps)
    for off in range(0, size, BLOCK):
        i = off + tl.arange(0, BLOCK)
        c = g * per + i // HW
        x = tl.load(x_ptr + base + i, mask=i < size, other=0.0)
        w, b = tl.load(w_ptr + c, mask=i < size, other=0.0), tl.load(b_ptr + c, mask=i < size, other=0.0)
        tl.store(y_ptr + base + i, (x - mean) * rstd * w + b, mask=i < size)


@case
def group_norm_with_channels_by_division():
    n, c, h, g = 16, 64, 100, 8
    x, w, b, y = f32(n, c, h, h), f32(c), f32(c), zeros(n, c, h, h, dtype="float32")
    launched = run(group_norm_naive, (n * g,), (x, w, b, y, c, h * h, g, 1e-5), y, BLOCK=1024)
    return against(launched, lambda: F.group_norm(x, g, w, b))


@triton.jit
def batch_sums(x_ptr, sum_ptr, sq_ptr, N, C, HW, BLOCK: tl.constexpr):
    # A flat block of (n, hw) of one channel at each program; sums of all by atomics.
    c = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    n, p = i // HW, i % HW
    x = tl.load(x_ptr + (n * C + c) * HW + p, mask=i < N * HW, other=0.0)
    tl.atomic_add(sum_ptr + c, tl.sum(x, axis=0))
    tl.atomic_add(sq_ptr + c, tl.sum(x * x, axis=0))


@triton.jit
def batch_apply(x_ptr, sum_ptr, sq_ptr, w_ptr, b_ptr, y_ptr, total, C, HW, count, eps, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < total
    c = i // HW % C
    mean = tl.load(sum_ptr + c, mask=ok) / count
    var = tl.load(sq_ptr + c, mask=ok) / count - mean * mean
    x = tl.load(x_ptr + i, mask=ok)
    y = (x - mean) / tl.sqrt(var + eps) * tl.load(w_ptr + c, mask=ok) + tl.load(b_ptr + c, mask=ok)
    tl.store(y_ptr + i, y, mask=ok)


@case
def batch_norm_of_flat_indices_and_atomics():
    n, c, h, w = 32, 40, 57, 56
    x, g, b, y = f32(n, c, h, w) + 0.5, f32(c), f32(c), zeros(n, c, h, w, dtype="float32")
    total, square = zeros(c, dtype="float32"), zeros(c, dtype="float32")

    def launch(*args):
        total.zero_()
        square.zero_()
        batch_sums[(c, cdiv(n * h * w, 4096))](x, total, square, n, c, h * w, BLOCK=4096)
        batch_apply[(cdiv(x.numel(), 1024),)](x, total, square, g, b, y, x.numel(), c, h * w, n * h * w, 1e-5, BLOCK=1024)
        return y

    return against((launch, (x,)), lambda: F.batch_norm(x, None, None, g, b, True))


@triton.jit
def layer_norm_partial(x_ptr, part_ptr, SIZE, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    n, p = tl.program_id(0), tl.program_id(1)
    per = tl.cdiv(SIZE, PARTS)
    s, q = 0.0, 0.0
    for off in range(0, per, BLOCK):
        i = off + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + n * SIZE + p * per + i, mask=(i < per) & (p * per + i < SIZE), other=0.0)
        s += tl.sum(x)
        q += tl.sum(x * x)
    tl.store(part_ptr + (n * PARTS + p) * 2, s)
    tl.store(part_ptr + (n * PARTS + p) * 2 + 1, q)


@triton.jit
def layer_norm_three_axes(x_ptr, part_ptr, w_ptr, b_ptr, y_ptr, SIZE, eps, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    # Each program adds up the parts again, pairs split by the language.
    n = tl.program_id(1)
    s, q = tl.split(tl.reshape(tl.load(part_ptr + n * PARTS * 2 + tl.arange(0, PARTS * 2)), (PARTS, 2)))
    mean = tl.sum(s, 0) / SIZE
    rstd = tl.rsqrt(tl.sum(q, 0) / SIZE - mean * mean + eps)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < SIZE
    x = tl.load(x_ptr + n * SIZE + i, mask=ok)
    tl.store(y_ptr + n * SIZE + i, (x - mean) * rstd * tl.load(w_ptr + i, mask=ok) + tl.load(b_ptr + i, mask=ok), mask=ok)


@case
def layer_norm_over_channels_and_planes():
    n, c, h, w = 16, 48, 90, 91
    size = c * h * w
    x, g, b, y, part = f32(n, c, h, w), f32(c, h, w), f32(c, h, w), zeros(n, c, h, w, dtype="float32"), zeros(n, 64, 2, dtype="float32")

    def launch(*args):
        layer_norm_partial[(n, 64)](x, part, size, PARTS=64, BLOCK=1024)
        layer_norm_three_axes[(cdiv(size, 1024), n)](x, part, g, b, y, size, 1e-5, PARTS=64, BLOCK=1024)
        return y

    return against((launch, (x,)), lambda: F.layer_norm(x, (c, h, w), g, b))


@triton.jit
def frobenius_squares(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x * x, axis=0))


@triton.jit
def frobenius_divide(x_ptr, sq_ptr, y_ptr, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    norm = tl.sqrt(tl.load(sq_ptr))
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < N) / norm, mask=i < N)


@case
def frobenius_norm_by_one_atomic_sum():
    n = 16 * 64 * 120 * 121
    x, y, square = f32(n), zeros(n, dtype="float32"), zeros(1, dtype="float32")

    def launch(*args):
        square.zero_()
        frobenius_squares[(cdiv(n, 1024),)](x, square, n, BLOCK=1024)
        frobenius_divide[(cdiv(n, 1024),)](x, square, y, n, BLOCK=1024)
        return y

    return against((launch, (x,)), lambda: x / x.double().norm())


@triton.jit
def l1_norm_rows(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = x_ptr + tl.program_id(0).to(tl.int64) * N
    out = y_ptr + tl.program_id(0).to(tl.int64) * N
    acc = tl.zeros((BLOCK,), tl.float32)
    for i0 in tl.range(0, N, BLOCK, num_stages=4):
        i = i0 + tl.arange(0, BLOCK)
        acc += tl.abs(tl.load(row + i, mask=i < N, other=0.0).to(tl.float32))
    mean = tl.sum(acc, 0) / N
    for i0 in tl.range(0, N, BLOCK, num_stages=4):
        i = i0 + tl.arange(0, BLOCK)
        x = tl.load(row + i, mask=i < N, other=0.0).to(tl.float32)
        tl.store(out + i, (x / mean).to(y_ptr.dtype.element_ty), mask=i < N)


@case
def l1_norm_of_rows_of_65535_by_two_warps():
    rows, n = 500, 65535
    x, y = rand(rows, n, dtype="bfloat16"), zeros(rows, n, dtype="bfloat16")
    launched = run(l1_norm_rows, (rows,), (x, y, n), y, BLOCK=1024, num_warps=2)
    return against(launched, lambda: x.float() / x.float().abs().mean(1, keepdim=True))


@triton.jit
def huber_mean(p_ptr, t_ptr, out_ptr, N, inv_n, beta, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.abs(tl.load(p_ptr + i, mask=i < N, other=0.0) - tl.load(t_ptr + i, mask=i < N, other=0.0))
    loss = tl.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)
    tl.atomic_add(out_ptr, tl.sum(loss, axis=0) * inv_n)


@case
def huber_loss_mean_by_atomics():
    n = 24_000_001
    p, t, out = f32(n), f32(n), zeros(1, dtype="float32")
    launched = run(huber_mean, (cdiv(n, 2048),), (p, t, out, n, 1 / n, 0.75), out, BLOCK=2048)
    return against(cleared(launched, out), lambda: F.smooth_l1_loss(p.double(), t.double(), beta=0.75)[None])


@triton.jit
def kl_rows(log_ptr, target_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # KL of rows of log-probabilities against probabilities: log of zero is masked by `tl.where`.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    ok = i < N
    x = tl.load(log_ptr + row * N + i, mask=ok, other=0.0)
    t = tl.load(target_ptr + row * N + i, mask=ok, other=0.0)
    terms = tl.where(t > 0.0, t * (tl.log(tl.where(t > 0.0, t, 1.0)) - x), 0.0)
    hinge = tl.where(ok, tl.maximum(0.0, 1.0 - t * x), 0.0)
    tl.store(out_ptr + row * 2, tl.sum(terms, 0))
    tl.store(out_ptr + row * 2 + 1, tl.sum(hinge, 0) / N)


@case
def kl_divergence_and_hinge_of_rows():
    rows, n = 4096, 6000
    x, t, out = f32(rows, n).log_softmax(1), f32(rows, n).mul(3).softmax(1), zeros(rows, 2, dtype="float32")
    t = torch.where(t < 1e-5, 0.0, t)
    launched = run(kl_rows, (rows,), (x, t, out, n), out, BLOCK=8192, num_warps=8)

    def reference():
        u, v = x.double(), t.double()
        return torch.stack((torch.xlogy(v, v).sub(v * u).sum(1), (1 - v * u).clamp(min=0).mean(1)), 1)

    return against(launched, reference)


@triton.jit
def triplet_rows(a_ptr, p_ptr, n_ptr, out_ptr, cos_ptr, D, margin, BLOCK: tl.constexpr):
    # Three norms of rows by three walks in one loop, and a cosine.
    row = tl.program_id(0)
    dp, dn, ap, aa, pp = 0.0, 0.0, 0.0, 0.0, 0.0
    for off in range(0, D, BLOCK):
        i = off + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + row * D + i, mask=i < D, other=0.0).to(tl.float32)
        p = tl.load(p_ptr + row * D + i, mask=i < D, other=0.0).to(tl.float32)
        n = tl.load(n_ptr + row * D + i, mask=i < D, other=0.0).to(tl.float32)
        dp += tl.sum(tl.where(i < D, (a - p + 1e-6) * (a - p + 1e-6), 0.0))
        dn += tl.sum(tl.where(i < D, (a - n + 1e-6) * (a - n + 1e-6), 0.0))
        ap += tl.sum(a * p)
        aa += tl.sum(a * a)
        pp += tl.sum(p * p)
    tl.store(out_ptr + row, tl.maximum(tl.sqrt(dp) - tl.sqrt(dn) + margin, 0.0))
    tl.store(cos_ptr + row, 1.0 - ap / tl.maximum(tl.sqrt(aa) * tl.sqrt(pp), 1e-8))


@case
def triplet_margins_and_cosines_of_rows():
    rows, d = 6000, 3000
    a, p, n = rand(rows, d), rand(rows, d), rand(rows, d)
    out, cos = zeros(rows, dtype="float32"), zeros(rows, dtype="float32")
    launched = run(triplet_rows, (rows,), (a, p, n, out, cos, d, 1.0), (out, cos), BLOCK=512)

    def reference():
        u, v, w = a.float(), p.float(), n.float()
        return F.triplet_margin_loss(u, v, w, reduction="none"), 1 - F.cosine_similarity(u, v)

    return against(launched, reference)


@triton.jit
def label_smoothing(logits_ptr, target_ptr, loss_ptr, onehot_ptr, V, smooth, ignore, BLOCK: tl.constexpr):
    # Cross entropy against smoothed labels that are written out; targets are long, one value is ignored.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * V + i, mask=i < V, other=float("-inf"))
    t = tl.load(target_ptr + row)
    m = tl.max(x, 0)
    logp = x - m - tl.log(tl.sum(tl.exp(x - m), 0))
    label = tl.where(i == t, 1.0 - smooth, 0.0) + smooth / V
    tl.store(onehot_ptr + row * V + i, label, mask=i < V)
    loss = -tl.sum(tl.where(i < V, label * logp, 0.0), 0)
    tl.store(loss_ptr + row, tl.where(t == ignore, 0.0, loss))


@case
def cross_entropy_with_labels_written_out():
    rows, v = 8192, 1000
    x, t, loss, label = f32(rows, v), ints(0, v, rows, dtype="int64"), zeros(rows, dtype="float32"), zeros(rows, v, dtype="float32")
    t[::17] = 2
    launched = run(label_smoothing, (rows,), (x, t, loss, label, v, 0.1, 2), (loss, label), BLOCK=1024)

    def reference():
        want = F.one_hot(t, v) * 0.9 + 0.1 / v
        return F.cross_entropy(x, t, reduction="none", ignore_index=2, label_smoothing=0.1), want

    return against(launched, reference)


@triton.jit
def max_pool1d_dilated(x_ptr, y_ptr, i_ptr, L, OUT, stride, padding, dilation, total, K: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = at < total
    row, o = at // OUT, at % OUT
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    where = tl.zeros((BLOCK,), tl.int64)
    for k in range(K):
        pos = o * stride - padding + k * dilation
        x = tl.load(x_ptr + row * L + pos, mask=ok & (pos >= 0) & (pos < L), other=float("-inf"))
        where = tl.where(x > best, pos.to(tl.int64), where)
        best = tl.maximum(best, x)
    tl.store(y_ptr + at, best, mask=ok)
    tl.store(i_ptr + at, where, mask=ok)


@case
def max_pool1d_dilated_with_long_indices():
    rows, length = 64 * 192, 500
    x = f32(rows, length)
    out = (length + 8 - 3 * 7 - 1) // 2 + 1
    y, i = zeros(rows, out, dtype="float32"), zeros(rows, out, dtype="int64")
    args = x, y, i, length, out, 2, 4, 3, rows * out
    launched = run(max_pool1d_dilated, (cdiv(rows * out, 1024),), args, (y, i), K=8, BLOCK=1024)
    return against(launched, lambda: F.max_pool1d(x, 8, 2, 4, 3, return_indices=True))


@triton.jit
def avg_pool2d_naive(x_ptr, y_ptr, C, H, W, OH, OW, K: tl.constexpr, BLOCK_W: tl.constexpr):
    # A row of outputs a program; windows of 11x11 next to each other.
    oh, c, n = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    ow = tl.arange(0, BLOCK_W)
    acc = tl.zeros((BLOCK_W,), tl.float32)
    for kh in range(K):
        for kw in range(K):
            acc += tl.load(x_ptr + ((n * C + c) * H + oh * K + kh) * W + ow * K + kw, mask=ow < OW, other=0.0)
    tl.store(y_ptr + ((n * C + c) * OH + oh) * OW + ow, acc / (K * K), mask=ow < OW)


@case
def avg_pool2d_11x11_a_row_of_outputs():
    n, c, h, w, k = 16, 64, 128, 256, 11
    x, y = f32(n, c, h, w), zeros(n, c, h // k, w // k, dtype="float32")
    launched = run(avg_pool2d_naive, (h // k, c, n), (x, y, c, h, w, h // k, w // k), y, K=k, BLOCK_W=32)
    return against(launched, lambda: F.avg_pool2d(x, k))


@triton.jit
def avg_pool3d_tile(x_ptr, y_ptr, D, H, W, OD, OH, OW, total, K: tl.constexpr, KP: tl.constexpr, BLOCK: tl.constexpr):
    # The taps of a window, padded to a power of two, are the second axis of a tile; padding counts.
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    t = tl.arange(0, KP)
    ow, oh, od, plane = o % OW, o // OW % OH, o // (OW * OH) % OD, o // (OW * OH * OD)
    d = (od * 2 - 1)[:, None] + (t // (K * K))[None, :]
    h = (oh * 2 - 1)[:, None] + (t // K % K)[None, :]
    w = (ow * 2 - 1)[:, None] + (t % K)[None, :]
    ok = (t < K * K * K)[None, :] & (o < total)[:, None] & (d >= 0) & (d < D) & (h >= 0) & (h < H) & (w >= 0) & (w < W)
    x = tl.load(x_ptr + ((plane[:, None] * D + d) * H + h) * W + w, mask=ok, other=0.0)
    tl.store(y_ptr + o, tl.sum(x, axis=1) / (K * K * K), mask=o < total)


@case
def avg_pool3d_of_windows_in_a_tile():
    planes, d, h, w = 128, 32, 60, 62
    x, y = f32(planes, d, h, w), zeros(planes, d // 2, h // 2, w // 2, dtype="float32")
    args = x, y, d, h, w, d // 2, h // 2, w // 2, y.numel()
    launched = run(avg_pool3d_tile, (cdiv(y.numel(), 128),), args, y, K=3, KP=32, BLOCK=128)
    return against(launched, lambda: F.avg_pool3d(x, 3, 2, 1))


@triton.jit
def adaptive_pool(x_ptr, y_ptr, H, W, OH: tl.constexpr, OW: tl.constexpr):
    # Windows of adaptive bounds, a scalar loop over rows and a block over columns.
    cell, plane = tl.program_id(0), tl.program_id(1)
    oh, ow = cell // OW, cell % OW
    h0, h1 = oh * H // OH, ((oh + 1) * H + OH - 1) // OH
    w0, w1 = ow * W // OW, ((ow + 1) * W + OW - 1) // OW
    i = tl.arange(0, 32)
    acc = tl.zeros((32,), tl.float32)
    for h in range(h0, h1):
        acc += tl.load(x_ptr + (plane * H + h) * W + w0 + i, mask=w0 + i < w1, other=0.0).to(tl.float32)
    tl.store(y_ptr + plane * OH * OW + cell, tl.sum(acc, 0) / ((h1 - h0) * (w1 - w0)))


@case
def adaptive_pool_7x7_of_uneven_windows():
    planes, h, w = 2048, 61, 83
    x, y = rand(planes, h, w), zeros(planes, 7, 7, dtype="float32")
    launched = run(adaptive_pool, (49, planes), (x, y, h, w), y, OH=7, OW=7, num_warps=1)
    return against(launched, lambda: F.adaptive_avg_pool2d(x.float()[None], 7)[0])


@triton.jit
def activations_in_a_row(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    # Hard sigmoid, softplus, SELU, new GELU, softsign, ELU and hard tanh of the same numbers, by the library's functions.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    x = tl.load(x_ptr + i, mask=ok)
    tl.store(y_ptr + i, tl.minimum(tl.maximum(x / 6.0 + 0.5, 0.0), 1.0), mask=ok)
    tl.store(y_ptr + n + i, tl.where(x > 20.0, x, libdevice.log1p(tl.exp(x))), mask=ok)
    tl.store(y_ptr + 2 * n + i, 1.0507009873554805 * tl.where(x > 0, x, 1.6732632423543772 * libdevice.expm1(x)), mask=ok)
    tl.store(y_ptr + 3 * n + i, 0.5 * x * (1.0 + libdevice.tanh(0.7978845608028654 * (x + 0.044715 * libdevice.pow(x, 3.0)))), mask=ok)
    tl.store(y_ptr + 4 * n + i, x / (1.0 + tl.abs(x)), mask=ok)
    tl.store(y_ptr + 5 * n + i, tl.where(x > 0, x, tl.exp(x) - 1.0), mask=ok)
    tl.store(y_ptr + 6 * n + i, tl.clamp(x, -1.0, 1.0), mask=ok)


@case
def activations_of_seven_kinds_by_library():
    n = 4_000_003
    x, y = f32(n) * 3, zeros(7, n, dtype="float32")
    launched = run(activations_in_a_row, (cdiv(n, 1024),), (x, y, n), y, BLOCK=1024)

    def reference():
        new = F.gelu(x, approximate="tanh")
        return torch.stack((F.hardsigmoid(x), F.softplus(x), F.selu(x), new, F.softsign(x), F.elu(x), F.hardtanh(x)))

    return against(launched, reference)


@triton.jit
def triangle_of_outer(x_ptr, y_ptr, keep_ptr, out_ptr, N, value, UPPER: tl.constexpr, BI: tl.constexpr, BJ: tl.constexpr):
    # Batched outer product of two vectors, its triangle, and a fill where a byte says so.
    b = tl.program_id(2)
    i, j = tl.program_id(1) * BI + tl.arange(0, BI), tl.program_id(0) * BJ + tl.arange(0, BJ)
    ok = (i < N)[:, None] & (j < N)[None, :]
    z = tl.load(x_ptr + b * N + i, mask=i < N)[:, None] * tl.load(y_ptr + b * N + j, mask=j < N)[None, :]
    z = tl.where(i[:, None] <= j[None, :], z, 0.0) if UPPER else tl.where(i[:, None] >= j[None, :], z, 0.0)
    fill = tl.load(keep_ptr + i[:, None] * N + j[None, :], mask=ok, other=0) != 0
    tl.store(out_ptr + b * N * N + i[:, None] * N + j[None, :], tl.where(fill, value, z), mask=ok)


@case
def outer_products_triangle_and_masked_fill():
    b, n = 24, 1001
    x, y, keep, out = f32(b, n), f32(b, n), ints(0, 8, n, n, dtype="uint8") // 7, zeros(b, n, n, dtype="float32")
    grid = cdiv(n, 128), cdiv(n, 16), b
    launched = run(triangle_of_outer, grid, (x, y, keep, out, n, -1e4), out, UPPER=True, BI=16, BJ=128)
    return against(launched, lambda: (x[:, :, None] * y[:, None]).triu().masked_fill(keep != 0, -1e4))


@triton.jit
def top_mask(x_ptr, y_ptr, N, K: tl.constexpr, BLOCK: tl.constexpr):
    # Keeps what is no less than the K-th largest of a row, which the language's own selection gives.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=float("-inf"))
    least = tl.min(tl.topk(x, K), 0)
    tl.store(y_ptr + row * N + i, tl.where(x >= least, x, 0.0), mask=i < N)


@case
def top_16_of_rows_of_1000_kept():
    rows, n = 4096, 1000
    x, y = f32(rows, n), zeros(rows, n, dtype="float32")
    launched = run(top_mask, (rows,), (x, y, n), y, K=16, BLOCK=1024)
    return against(launched, lambda: torch.where(x >= x.topk(16, 1)[0][:, -1:], x, 0))


@triton.jit
def index_add_rows(out_ptr, index_ptr, src_ptr, alpha, D, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    to = tl.load(index_ptr + row)
    for d0 in range(0, D, BLOCK):
        d = d0 + tl.arange(0, BLOCK)
        x = tl.load(src_ptr + row * D + d, mask=d < D, other=0.0)
        tl.atomic_add(out_ptr + to * D + d, alpha * x, mask=d < D)


@case
def index_add_of_rows_by_long_indices():
    rows, d, into = 30000, 300, 2000
    src, index, out = f32(rows, d), ints(0, into, rows, dtype="int64"), zeros(into, d, dtype="float32")
    launched = run(index_add_rows, (rows,), (out, index, src, 0.5, d), out, BLOCK=256)
    return against(cleared(launched, out), lambda: torch.zeros_like(out).index_add(0, index, src, alpha=0.5))


@triton.jit
def gather_dim1(x_ptr, index_ptr, y_ptr, N, J, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for j0 in range(0, J, BLOCK):
        j = j0 + tl.arange(0, BLOCK)
        at = tl.load(index_ptr + row * J + j, mask=j < J, other=0)
        at = tl.where(at < 0, at + N, at)
        tl.store(y_ptr + row * J + j, tl.load(x_ptr + row * N + at, mask=j < J), mask=j < J)


@case
def gather_along_rows_with_negative_places():
    rows, n, picked = 2000, 5000, 3001
    x, index, y = rand(rows, n, dtype="bfloat16"), ints(-n, n, rows, picked, dtype="int64"), zeros(rows, picked, dtype="bfloat16")
    launched = run(gather_dim1, (rows,), (x, index, y, n, picked), y, BLOCK=1024)
    return against(launched, lambda: x.gather(1, index % n))


@triton.jit
def histograms(x_ptr, out_ptr, HW, BINS: tl.constexpr, BLOCK: tl.constexpr, ROUNDS: tl.constexpr):
    # Bytes of a channel counted by the language's histogram, added to the rest by atomics.
    plane = tl.program_id(1)
    counts = tl.zeros((BINS,), tl.int32)
    for r in range(ROUNDS):
        i = (tl.program_id(0) * ROUNDS + r) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + plane * HW + i, mask=i < HW, other=0).to(tl.int32)
        counts += tl.histogram(x, BINS, mask=i < HW)
    tl.atomic_add(out_ptr + plane * BINS + tl.arange(0, BINS), counts)


@case
def histogram_of_bytes_of_each_channel():
    planes, hw = 48, 640 * 427
    x, out = ints(0, 256, planes, hw, dtype="uint8"), zeros(planes, 256, dtype="int32")
    launched = run(histograms, (cdiv(hw, 8192), planes), (x, out, hw), out, BINS=256, BLOCK=1024, ROUNDS=8)
    return against(cleared(launched, out), lambda: torch.stack([torch.bincount(p.int(), minlength=256) for p in x]))


@triton.jit
def horner(x_ptr, c_ptr, y_ptr, N, DEGREE, BLOCK: tl.constexpr):
    # A polynomial in double of coefficients that are scalars in memory, and its derivative.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    p = tl.zeros((BLOCK,), tl.float64) + tl.load(c_ptr + DEGREE)
    q = tl.zeros((BLOCK,), tl.float64)
    k = DEGREE - 1
    while k >= 0:
        q = q * x + p
        p = p * x + tl.load(c_ptr + k)
        k -= 1
    tl.store(y_ptr + i, p, mask=i < N)
    tl.store(y_ptr + N + i, q, mask=i < N)


@case
def polynomials_of_doubles_and_derivatives():
    n, degree = 3_000_001, 20
    x, c = rand(n, dtype="float64").tanh(), rand(degree + 1, dtype="float64")
    y = zeros(2, n, dtype="float64")
    launched = run(horner, (cdiv(n, 512),), (x, c, y, n, degree), y, BLOCK=512)

    def reference():
        p, q = torch.zeros_like(x), torch.zeros_like(x)
        for k in range(degree, -1, -1):
            p, q = p * x + c[k], q * x + p
        return torch.stack((p, q))

    return against(launched, reference)
