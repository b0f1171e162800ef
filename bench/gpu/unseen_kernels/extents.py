"""Tiles, warps, strides and types that libraries meet less often: long and thin, tiny and huge, sizes that nothing divides."""

import torch
import triton
import triton.language as tl

from .common import arange, case, cdiv, f8, f32, far, ints, rand, run, uniform, viewed, zeros


@triton.jit
def gated_residual_square(x_ptr, g_ptr, bias_ptr, r_ptr, y_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    at = rows[:, None] * N + cols[None, :]
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    g = tl.load(g_ptr + at, mask=mask, other=0.0)
    x += tl.load(bias_ptr + cols, mask=cols < N, other=0.0)[None, :]
    y = x * tl.sigmoid(x) * g + tl.load(r_ptr + at, mask=mask, other=0.0)
    tl.store(y_ptr + at, y, mask=mask)


@case
def gated_residual_of_256x256_tiles():
    m, n = 3000, 5001
    y = zeros(m, n, dtype="float32")
    args = f32(m, n), f32(m, n), f32(n), f32(m, n), y, m, n
    return run(gated_residual_square, (cdiv(m, 256), cdiv(n, 256)), args, y, BLOCK_M=256, BLOCK_N=256, num_warps=4)


@triton.jit
def unit_row(x_ptr, y_ptr, norm_ptr, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0) + tl.arange(0, 1)
    c = tl.arange(0, BLOCK)
    at = row[:, None].to(tl.int64) * stride + c[None, :]
    x = tl.load(x_ptr + at, mask=(c < N)[None, :], other=0.0).to(tl.float32)
    norm = tl.sqrt(tl.sum(x * x, axis=1, keep_dims=True))
    y = x / tl.maximum(norm, eps)
    tl.store(y_ptr + row[:, None].to(tl.int64) * N + c[None, :], y.to(y_ptr.dtype.element_ty), mask=(c < N)[None, :])
    tl.store(norm_ptr + row, tl.reshape(norm, (1,)))


@case
def unit_rows_by_one_warp():
    rows, n, wide = 6000, 4001, 4100
    y, norm = zeros(rows, n, dtype="bfloat16"), zeros(rows, dtype="float32")
    return run(unit_row, (rows,), (rand(rows, wide, dtype="bfloat16"), y, norm, wide, n, 1e-12), (y, norm), BLOCK=4096, num_warps=1)


@triton.jit
def column_absmax_int8(x_ptr, q_ptr, scale_ptr, M, ld, BLOCK_M: tl.constexpr):
    # A column of a column-major matrix at a time, as a tile of one column.
    j = tl.program_id(0) + tl.arange(0, 1)
    i = tl.arange(0, BLOCK_M)
    top = tl.zeros((BLOCK_M, 1), tl.float32)
    for i0 in range(0, M, BLOCK_M):
        x = tl.load(x_ptr + j[None, :] * ld + (i0 + i)[:, None], mask=(i0 + i < M)[:, None], other=0.0)
        top = tl.maximum(top, tl.abs(x.to(tl.float32)))
    scale = tl.maximum(tl.max(top, axis=0) / 127.0, 1e-10)
    tl.store(scale_ptr + j, scale)
    for i0 in range(0, M, BLOCK_M):
        x = tl.load(x_ptr + j[None, :] * ld + (i0 + i)[:, None], mask=(i0 + i < M)[:, None], other=0.0)
        q = tl.floor(x.to(tl.float32) / scale[None, :] + 0.5)
        tl.store(q_ptr + j[None, :] * M + (i0 + i)[:, None], q.to(tl.int8), mask=(i0 + i < M)[:, None])


@case
def column_absmax_4096_by_1():
    m, n, ld = 11000, 3000, 11008
    q, scale = zeros(n, m, dtype="int8"), zeros(n, dtype="float32")
    launched = run(column_absmax_int8, (n,), (rand(n, ld), q, scale, m, ld), (q, scale), BLOCK_M=4096, num_warps=16)
    return viewed(launched, lambda out: (far(out[0]), out[1]))


@triton.jit
def wide_tile_matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bn, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_n[None, :] * stride_bn + offs_k[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    out_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    out_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(c_ptr + out_m[:, None] * N + out_n[None, :], acc.to(c_ptr.dtype.element_ty), mask=(out_m < M)[:, None] & (out_n < N)[None, :])


@case
def gemm_256x128_by_four_warps():
    m, n, k = 1800, 2600, 1032
    c = zeros(m, n, dtype="bfloat16")
    args = rand(m, k, dtype="bfloat16"), rand(n, k, dtype="bfloat16"), c, m, n, k, k, k
    return run(wide_tile_matmul, (cdiv(m, 256), cdiv(n, 128)), args, c, BLOCK_M=256, BLOCK_N=128, BLOCK_K=32, num_warps=4, num_stages=4)


@case
def gemm_64x256_k16_six_stages():
    m, n, k = 2000, 3080, 1000
    c = zeros(m, n)
    args = rand(m, k), rand(n, k), c, m, n, k, k, k
    return run(wide_tile_matmul, (cdiv(m, 64), cdiv(n, 256)), args, c, BLOCK_M=64, BLOCK_N=256, BLOCK_K=16, num_warps=4, num_stages=6)


@triton.jit
def decode_linear_gelu(x_ptr, w_ptr, b_ptr, y_ptr, M, N, K, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    # At most 16 tokens against a weight stored N x K.
    m, k = tl.arange(0, 16), tl.arange(0, BLOCK_K)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((16, BLOCK_N), tl.float32)
    for k0 in range(0, K, BLOCK_K):
        x = tl.load(x_ptr + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None] & (k0 + k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + (k0 + k)[:, None], mask=(n < N)[None, :] & (k0 + k < K)[:, None], other=0.0)
        acc += tl.dot(x, w)
    acc += tl.load(b_ptr + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
    acc = 0.5 * acc * (1.0 + tl.erf(acc * 0.70710678))
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def decode_linear_16x256_one_warp():
    m, n, k = 9, 28000, 1536
    y = zeros(m, n)
    args = rand(m, k), rand(n, k), rand(n), y, m, n, k
    return run(decode_linear_gelu, (cdiv(n, 256),), args, y, BLOCK_N=256, BLOCK_K=32, num_warps=1, num_stages=5)


@case
def decode_linear_16x256_k256_eight_warps():
    m, n, k = 13, 30000, 2304
    y = zeros(m, n, dtype="bfloat16")
    x = lambda *shape: rand(*shape, dtype="bfloat16")
    args = x(m, k), x(n, k), x(n), y, m, n, k
    return run(decode_linear_gelu, (cdiv(n, 256),), args, y, BLOCK_N=256, BLOCK_K=256, num_warps=8, num_stages=1)


@triton.jit
def covariance_f64(x_ptr, mean_ptr, c_ptr, N, D, BLOCK: tl.constexpr, BLOCK_N: tl.constexpr):
    # Double precision, by products summed without a dot; observations are columns.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(1) > tl.program_id(0):
        return
    n = tl.arange(0, BLOCK_N)
    mi = tl.load(mean_ptr + i, mask=i < D, other=0.0)
    mj = tl.load(mean_ptr + j, mask=j < D, other=0.0)
    acc = tl.zeros((BLOCK, BLOCK), tl.float64)
    for n0 in range(0, N, BLOCK_N):
        live = n0 + n < N
        a = tl.load(x_ptr + i[:, None].to(tl.int64) * N + n0 + n[None, :], mask=(i < D)[:, None] & live[None, :], other=0.0)
        b = tl.load(x_ptr + j[:, None].to(tl.int64) * N + n0 + n[None, :], mask=(j < D)[:, None] & live[None, :], other=0.0)
        a = tl.where(live[None, :], a - mi[:, None], 0.0)
        b = tl.where(live[None, :], b - mj[:, None], 0.0)
        acc += tl.sum(a[:, None, :] * b[None, :, :], axis=2)
    acc = acc / (N - 1)
    ok = (i < D)[:, None] & (j < D)[None, :]
    tl.store(c_ptr + i[:, None] * D + j[None, :], acc, mask=ok)
    tl.store(c_ptr + j[None, :] * D + i[:, None], acc, mask=ok)


@case
def covariance_in_double():
    d, n = 200, 3001
    x = torch.randn(d, n, device="cuda", dtype=torch.float64)
    c = zeros(d, d, dtype="float64")
    return run(covariance_f64, (cdiv(d, 16), cdiv(d, 16)), (x, x.mean(1), c, n, d), c, BLOCK=16, BLOCK_N=16, num_warps=4)


@triton.jit
def padded_head_attention(Q, K, V, O, sm_scale, T, H, D, stride_t, DP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr):
    # Heads of any size in tiles of the next power of two; q, k and v are parts of one projection.
    pid, bh = tl.program_id(0), tl.program_id(1)
    base = (bh // H).to(tl.int64) * T * stride_t + (bh % H) * D
    m, d = pid * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, DP)
    dm = d < D
    q = tl.load(Q + base + m[:, None] * stride_t + d[None, :], mask=(m < T)[:, None] & dm[None, :], other=0.0)
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, DP), tl.float32)
    end = T
    if CAUSAL:
        end = tl.minimum(T, (pid + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        k = tl.load(K + base + n[None, :] * stride_t + d[:, None], mask=(n < T)[None, :] & dm[:, None], other=0.0)
        s = tl.dot(q, k) * sm_scale
        seen = (n < T)[None, :]
        if CAUSAL:
            seen = seen & (n[None, :] <= m[:, None])
        s = tl.where(seen, s, float("-inf"))
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        p = tl.exp2(s - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, axis=1)
        v = tl.load(V + base + n[:, None] * stride_t + d[None, :], mask=(n < T)[:, None] & dm[None, :], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    out = ((bh // H) * T + m)[:, None].to(tl.int64) * H * D + (bh % H) * D + d[None, :]
    tl.store(O + out, (acc / l_i[:, None]).to(O.dtype.element_ty), mask=(m < T)[:, None] & dm[None, :])


@case
def attn_vision_head_72():
    b, t, h, d = 8, 729, 16, 72
    qkv, out = rand(b, t, 3, h, d), zeros(b, t, h, d)
    args = qkv, qkv[:, :, 1], qkv[:, :, 2], out, d**-0.5 * 1.44269504, t, h, d, 3 * h * d
    return run(padded_head_attention, (cdiv(t, 64), b * h), args, out, DP=128, BLOCK_M=64, BLOCK_N=32, CAUSAL=False, num_warps=4, num_stages=2)


@case
def attn_causal_head_160():
    b, t, h, d = 2, 1500, 12, 160
    qkv, out = rand(b, t, 3, h, d, dtype="bfloat16"), zeros(b, t, h, d, dtype="bfloat16")
    args = qkv, qkv[:, :, 1], qkv[:, :, 2], out, d**-0.5 * 1.44269504, t, h, d, 3 * h * d
    return run(padded_head_attention, (cdiv(t, 128), b * h), args, out, DP=256, BLOCK_M=128, BLOCK_N=32, CAUSAL=True, num_warps=16, num_stages=1)


@case
def attn_head_192_eight_warps():
    b, t, h, d = 1, 2100, 10, 192
    qkv, out = rand(b, t, 3, h, d), zeros(b, t, h, d)
    args = qkv, qkv[:, :, 1], qkv[:, :, 2], out, d**-0.5 * 1.44269504, t, h, d, 3 * h * d
    return run(padded_head_attention, (cdiv(t, 64), b * h), args, out, DP=256, BLOCK_M=64, BLOCK_N=64, CAUSAL=False, num_warps=8, num_stages=2)


@triton.jit
def channels_in_the_middle(Q, K, V, O, scale, T, D: tl.constexpr, DP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    # [batch * head, D, T], as convolutional U-Nets keep them: time is contiguous; sums are kept transposed.
    bh = tl.program_id(1)
    m, d = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, DP)
    base = bh * D * T
    q = tl.load(Q + base + d[:, None] * T + m[None, :], mask=(d < D)[:, None] & (m < T)[None, :], other=0.0)
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((DP, BLOCK_M), tl.float32)
    for n0 in range(0, T, BLOCK_N):
        n = n0 + tl.arange(0, BLOCK_N)
        km = (d < D)[:, None] & (n < T)[None, :]
        k = tl.load(K + base + d[:, None] * T + n[None, :], mask=km, other=0.0)
        v = tl.load(V + base + d[:, None] * T + n[None, :], mask=km, other=0.0)
        s = tl.dot(tl.trans(k), q) * scale
        s = tl.where((n < T)[:, None], s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 0))
        p = tl.exp(s - new[None, :])
        shrink = tl.exp(top - new)
        total = total * shrink + tl.sum(p, 0)
        acc = tl.dot(v, p.to(v.dtype), acc * shrink[None, :])
        top = new
    tl.store(O + base + d[:, None] * T + m[None, :], (acc / total[None, :]).to(O.dtype.element_ty), mask=(d < D)[:, None] & (m < T)[None, :])


@case
def attn_channels_in_the_middle_d48():
    bh, d, t = 96, 48, 1320
    out = zeros(bh, d, t)
    args = rand(bh, d, t), rand(bh, d, t), rand(bh, d, t), out, d**-0.5, t
    return run(channels_in_the_middle, (cdiv(t, 128), bh), args, out, D=d, DP=64, BLOCK_M=128, BLOCK_N=64, num_warps=4, num_stages=2)


@triton.jit(do_not_specialize=["sa0", "sa1", "sb0", "sb1", "so0", "so1", "M", "N"])
def strided_fmod_add(a_ptr, b_ptr, o_ptr, M, N, sa0, sa1, sb0, sb1, so0, so1, period, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    # Phases added and wrapped; all strides are values of run time, 16 and 1 too.
    i = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    j = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (i < M)[:, None] & (j < N)[None, :]
    a = tl.load(a_ptr + i[:, None] * sa0 + j[None, :] * sa1, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + i[:, None] * sb0 + j[None, :] * sb1, mask=mask, other=0.0).to(tl.float32)
    x = a + b
    x = x - tl.floor(x / period + 0.5) * period
    tl.store(o_ptr + i[:, None] * so0 + j[None, :] * so1, tl.abs(x), mask=mask)


@case
def every_other_column_of_runtime_strides():
    m, n = 3000, 2500
    a, b, out = f32(m, 2 * n), rand(n, m), zeros(m, n, dtype="float32")
    args = a, b, out, m, n, 2 * n, 2, 1, m, n, 1, 3.5
    return run(strided_fmod_add, (cdiv(n, 64), cdiv(m, 32)), args, out, BLOCK_M=32, BLOCK_N=64, num_warps=2)


@triton.jit
def windows_and_means(x_ptr, y_ptr, mean_ptr, H, W, C, B8: tl.constexpr):
    # [H, W, C] to windows of 8 x 8 with channels first, eight channels and eight windows at a time.
    c = tl.program_id(1) * B8 + tl.arange(0, B8)
    wy = tl.program_id(2)
    wx = tl.program_id(0) * B8 + tl.arange(0, B8)
    i = tl.arange(0, B8)
    y = wy * B8 + i[None, :, None, None]
    x = wx[:, None, None, None] * B8 + i[None, None, :, None]
    cc = c[None, None, None, :]
    ok = (y < H) & (x < W) & (cc < C)
    v = tl.load(x_ptr + (y * W + x) * C + cc, mask=ok, other=0.0)
    v = tl.permute(v, (0, 3, 1, 2))
    windows = tl.cdiv(W, B8)
    win = wy * windows + wx
    at = ((win[:, None, None, None] * C + c[None, :, None, None]) * B8 + i[None, None, :, None]) * B8 + i[None, None, None, :]
    live = (wx < windows)[:, None, None, None] & (c < C)[None, :, None, None] & (i < B8)[None, None, :, None] & (i < B8)[None, None, None, :]
    tl.store(y_ptr + at, v, mask=live)
    mean = tl.sum(tl.sum(v.to(tl.float32), axis=3), axis=2) * (1.0 / (B8 * B8))
    tl.store(mean_ptr + win[:, None] * C + c[None, :], mean, mask=(wx < windows)[:, None] & (c < C)[None, :])


@case
def windows_of_8x8x8x8_tiles():
    h, w, c = 500, 700, 90
    windows = cdiv(h, 8) * cdiv(w, 8)
    y, mean = zeros(windows, c, 8, 8), zeros(windows, c, dtype="float32")
    return run(windows_and_means, (cdiv(cdiv(w, 8), 8), cdiv(c, 8), cdiv(h, 8)), (rand(h, w, c), y, mean, h, w, c), (y, mean), B8=8, num_warps=4)


@triton.jit
def tiny_groups_standardized(x_ptr, w_ptr, b_ptr, y_ptr, N, eps, BLOCK: tl.constexpr):
    # Twelve numbers by a program of 256 threads.
    g = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + g * N + i, mask=i < N, other=0.0).to(tl.float32)
    mean = tl.sum(x) / N
    x = tl.where(i < N, x - mean, 0.0)
    y = x * tl.rsqrt(tl.sum(x * x) / N + eps)
    y = y * tl.load(w_ptr + i, mask=i < N) + tl.load(b_ptr + i, mask=i < N)
    tl.store(y_ptr + g * N + i, y.to(y_ptr.dtype.element_ty), mask=i < N)


@case
def tiny_groups_by_eight_warps():
    groups, n = 60000, 12
    y = zeros(groups, n)
    return run(tiny_groups_standardized, (groups,), (rand(groups, n), f32(n), f32(n), y, n, 1e-5), y, BLOCK=16, num_warps=8)


@triton.jit
def rotate_two_halves(x_ptr, cos_ptr, sin_ptr, y_ptr, heads, BH: tl.constexpr, HALF: tl.constexpr):
    # Both halves of some heads as one tile of [2, heads, half].
    t = tl.program_id(0)
    z, h, f = tl.arange(0, 2), tl.program_id(1) * BH + tl.arange(0, BH), tl.arange(0, HALF)
    at = (t * heads + h)[None, :, None] * (2 * HALF) + z[:, None, None] * HALF + f[None, None, :]
    live = (h < heads)[None, :, None] & (z < 2)[:, None, None] & (f < HALF)[None, None, :]
    x = tl.load(x_ptr + at, mask=live, other=0.0).to(tl.float32)
    sign = (2 * z - 1).to(tl.float32)[:, None, None]
    # The other half, by a sum over pairs.
    other = tl.sum(x, axis=0)[None, :, :] - x
    cos = tl.load(cos_ptr + t * HALF + f)[None, None, :]
    sin = tl.load(sin_ptr + t * HALF + f)[None, None, :]
    tl.store(y_ptr + at, (x * cos + sign * other * sin).to(y_ptr.dtype.element_ty), mask=live)


@case
def rotary_tiles_of_2x16x64():
    t, heads, half = 4000, 40, 64
    angle = arange(t)[:, None] * 10000.0 ** (-arange(half)[None, :] / half)
    y = zeros(t, heads, 2 * half, dtype="bfloat16")
    args = rand(t, heads, 2 * half, dtype="bfloat16"), torch.cos(angle).float(), torch.sin(angle).float(), y, heads
    return run(rotate_two_halves, (t, cdiv(heads, 16)), args, y, BH=16, HALF=half, num_warps=1)


@triton.jit
def gradients_e5m2_times_e4m3(g_ptr, w_ptr, y_ptr, sg_ptr, sw_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    g_ptrs = g_ptr + m[:, None] * K + k[None, :]
    w_ptrs = w_ptr + n[:, None] * K + k[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        g = tl.load(g_ptrs, mask=(m < M)[:, None], other=0.0)
        w = tl.load(w_ptrs, mask=(n < N)[:, None], other=0.0)
        acc = tl.dot(g.to(tl.float16), w.to(tl.float16).T, acc)
        g_ptrs += BK
        w_ptrs += BK
    acc = acc * tl.load(sg_ptr + m, mask=m < M, other=0.0)[:, None] * tl.load(sw_ptr)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def gemm_e5m2_gradients_k256():
    m, n, k = 1100, 1700, 1536
    y = zeros(m, n, dtype="bfloat16")
    args = f8(m, k, dtype="float8_e5m2"), f8(n, k), y, uniform(m), uniform(1), m, n, k
    return run(gradients_e5m2_times_e4m3, (cdiv(n, 64), cdiv(m, 64)), args, y, BM=64, BN=64, BK=256, num_warps=8, num_stages=2)


@triton.jit
def combine_masks(a_ptr, b_ptr, c_ptr, out_ptr, count_ptr, first_ptr, N, BLOCK: tl.constexpr):
    # Three bool masks of a row: kept where both or neither of two, unless a third; how many, and where the first one is.
    row = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, BLOCK)
    count = tl.zeros((BLOCK,), tl.int64)
    first = tl.full((BLOCK,), 0x7FFFFFFF, tl.int32)
    for j0 in range(0, N, BLOCK):
        live = j0 + j < N
        a = tl.load(a_ptr + row * N + j0 + j, mask=live, other=False)
        b = tl.load(b_ptr + row * N + j0 + j, mask=live, other=False)
        c = tl.load(c_ptr + row * N + j0 + j, mask=live, other=True)
        keep = (~(a ^ b)) & (~c)
        tl.store(out_ptr + row * N + j0 + j, keep, mask=live)
        count += keep.to(tl.int64)
        first = tl.minimum(first, tl.where(keep, j0 + j, 0x7FFFFFFF))
    tl.store(count_ptr + row, tl.sum(count))
    tl.store(first_ptr + row, tl.min(first))


@case
def bool_masks_of_odd_rows():
    rows, n = 3000, 9999
    mask = lambda p: uniform(rows, n) < p
    out, count, first = torch.zeros(rows, n, device="cuda", dtype=torch.bool), zeros(rows, dtype="int64"), zeros(rows, dtype="int32")
    return run(combine_masks, (rows,), (mask(0.5), mask(0.3), mask(0.9), out, count, first, n), (out, count, first), BLOCK=2048, num_warps=4)


@triton.jit
def gather_far_rows(table_ptr, index_ptr, scale_ptr, y_ptr, N, stride: tl.int64, D, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    # Rows of bytes beyond what 32 bits can address.
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    i = tl.load(index_ptr + n, mask=n < N, other=0)
    live = (n < N)[:, None] & (d < D)[None, :]
    q = tl.load(table_ptr + i[:, None] * stride + d[None, :], mask=live, other=0)
    s = tl.load(scale_ptr + i, mask=n < N, other=0.0)
    tl.store(y_ptr + n[:, None].to(tl.int64) * D + d[None, :], q.to(tl.float32) * s[:, None], mask=live)


@case
def gather_rows_past_4_gib():
    rows, stride, d, n = 4_500_000, 1000, 250, 100_000
    table = torch.zeros(rows, stride, device="cuda", dtype=torch.int8)
    index = (arange(n, "int64") * 44_999 + 17) % rows
    table[index[:1024], :d] = ints(-128, 128, 1024, d, dtype="int8")
    table[index[-1024:], :d] = ints(-128, 128, 1024, d, dtype="int8")
    y = zeros(n, d, dtype="float32")
    return run(gather_far_rows, (cdiv(n, 8), 2), (table, index, uniform(rows), y, n, stride, d), y, BLOCK_N=8, BLOCK_D=128, num_warps=2)


@triton.jit
def rank16_update(u_ptr, v_ptr, c_ptr, beta, M, N, R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # GaLore and LoRA merges: a weight is scaled, and a product of rank 16 is added.
    m, n, r = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, R)
    u = tl.load(u_ptr + r[None, :] * M + m[:, None], mask=(m < M)[:, None], other=0.0)
    v = tl.load(v_ptr + r[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0.0)
    at = m[:, None] * N + n[None, :]
    live = (m < M)[:, None] & (n < N)[None, :]
    c = tl.load(c_ptr + at, mask=live, other=0.0).to(tl.float32)
    c = tl.dot(u, v, c * beta)
    tl.store(c_ptr + at, c.to(c_ptr.dtype.element_ty), mask=live)


@case
def update_of_rank_16_two_warps():
    m, n, r = 5000, 3500, 16
    x = lambda *shape: rand(*shape, dtype="bfloat16")
    c = x(m, n)
    before = c.clone()
    launch, args = run(rank16_update, (cdiv(m, 128), cdiv(n, 64)), (x(r, m) / 8, x(r, n) / 8, c, 0.99, m, n), c, R=r, BM=128, BN=64, num_warps=2, num_stages=1)
    return (lambda *args: (c.copy_(before), launch(*args))[1]), args


@triton.jit
def softmax_of_int16(x_ptr, scale_ptr, y_ptr, N, temperature, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    q = tl.load(x_ptr + row * N + c, mask=c < N, other=-32768)
    top = tl.max(q, axis=0)
    scale = tl.load(scale_ptr + row) * 1.44269504 / temperature
    p = tl.exp2((q - top.to(tl.int32)).to(tl.float32) * scale)
    p = tl.where(c < N, p, 0.0)
    total = tl.sum(p, axis=0)
    tl.store(y_ptr + row * N + c, (p * (32767.0 / total) + 0.5).to(tl.int16), mask=c < N)


@case
def softmax_of_32768_int16_by_16_warps():
    rows, n = 1000, 32003
    y = zeros(rows, n, dtype="int16")
    args = ints(-30000, 30000, rows, n, dtype="int16"), uniform(rows) * 1e-4 + 1e-4, y, n, 0.7
    return viewed(run(softmax_of_int16, (rows,), args, y, BLOCK=32768, num_warps=16), far)


@triton.jit
def maximum_by_swaps(x_ptr, index_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # Maxima of bfloat16 by compare-and-swap of their 16 bits, until no element is larger than what is there.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    x = tl.load(x_ptr + i, mask=live, other=0.0)
    k = tl.load(index_ptr + i, mask=live, other=0)
    ptr = out_ptr + k
    old = tl.load(ptr, mask=live, other=0.0, volatile=True)
    wants = live & (x > old)
    while tl.max(wants.to(tl.int32), axis=0) > 0:
        # Who is not larger swaps what is there by itself.
        new = tl.where(wants, x, old)
        seen = tl.atomic_cas(ptr.to(tl.pointer_type(tl.int16)), old.to(tl.int16, bitcast=True), new.to(tl.int16, bitcast=True), sem="relaxed")
        old = tl.where(seen == old.to(tl.int16, bitcast=True), new, seen.to(tl.bfloat16, bitcast=True))
        wants = live & (x > old)


@case
def maximum_bf16_by_compare_and_swap():
    n, groups = 1 << 19, 20000
    out = zeros(groups, dtype="bfloat16")
    launch, args = run(maximum_by_swaps, (cdiv(n, 256),), (rand(n, dtype="bfloat16"), ints(0, groups, n), out, n), out, BLOCK=256, num_warps=4)
    return (lambda *args: (out.fill_(-100.0), launch(*args))[1]), args


@triton.jit
def add_counts_bf16(rows_ptr, value_ptr, out_ptr, N, D, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr):
    # Votes are small integers, of which bfloat16 makes exact sums in any order.
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    d = tl.arange(0, BLOCK_D)
    r = tl.load(rows_ptr + n, mask=n < N, other=0)
    live = (n < N)[:, None] & (d < D)[None, :]
    v = tl.load(value_ptr + n[:, None] * D + d[None, :], mask=live, other=0)
    tl.atomic_add(out_ptr + r[:, None] * D + d[None, :], v.to(tl.bfloat16), mask=live & (v != 0), sem="relaxed")


@case
def votes_added_in_bf16():
    n, d, rows = 120_000, 27, 9000
    out = zeros(rows, d, dtype="bfloat16")
    args = ints(0, rows, n, dtype="int64"), ints(-1, 2, n, d, dtype="int8"), out, n, d
    launch, args = run(add_counts_bf16, (cdiv(n, 16),), args, out, BLOCK_N=16, BLOCK_D=32, num_warps=2)
    return (lambda *args: (out.zero_(), launch(*args))[1]), args
