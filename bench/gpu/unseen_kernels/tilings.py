"""Tilings: products with odd tiles, scales by groups, gathered rows, split and streamed sums, and several results on the way out."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import PROGRAMS, against, case, cdiv, cleared, f8, f32, ints, rand, run, uniform, zeros


@triton.jit
def flat_tiles_with_gates(x_ptr, w_ptr, row_ptr, col_ptr, y_ptr, on_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Flat tiles of 32 by 256: a bias a row and one a column, rectified, and which were positive as bits of a byte.
    m, n = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    xs = x_ptr + m[:, None] * K + k[None, :]
    ws = w_ptr + k[:, None] * N + n[None, :]
    acc = tl.load(row_ptr + m, mask=m < M, other=0.0)[:, None] + tl.load(col_ptr + n, mask=n < N, other=0.0)[None, :]
    for _ in range(0, K, BK):
        x = tl.load(xs, mask=(m < M)[:, None], other=0.0)
        w = tl.load(ws, mask=(n < N)[None, :], other=0.0)
        acc = tl.dot(x, w, acc)
        xs += BK
        ws += BK * N
    y = tl.maximum(acc, 0.0)
    tl.store(y_ptr + m[:, None] * N + n[None, :], y.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])
    eight = tl.program_id(0) * (BN // 8) + tl.arange(0, BN // 8)
    bits = (tl.reshape(acc, (BM, BN // 8, 8)) > 0.0).to(tl.int32) << tl.arange(0, 8)[None, None, :]
    tl.store(on_ptr + m[:, None] * (N // 8) + eight[None, :], tl.sum(bits, 2).to(tl.uint8), mask=(m < M)[:, None] & (eight < N // 8)[None, :])


@case
def tiling_flat_with_two_biases_and_bits_of_what_is_positive():
    m, n, k = 1000, 1400, 512
    x, w, row, col = rand(m, k) / 8, rand(k, n) / 8, f32(m), f32(n)
    y, on = zeros(m, n), zeros(m, n // 8, dtype="uint8")
    launched = run(flat_tiles_with_gates, (cdiv(n, 256), cdiv(m, 32)), (x, w, row, col, y, on, m, n, k), (y, on), BM=32, BN=256, BK=16, num_warps=8, num_stages=4)
    launch, args = launched

    def see(*args):
        y, on = launch(*args)
        bits = (on[:, :, None].int() >> torch.arange(8, device=on.device)) & 1
        return y, bits.float().reshape(m, n) * (y.float() > 0.01)

    def reference():
        z = x.float() @ w.float() + row[:, None] + col
        return z.relu(), (z.half() > 0.01).float()

    return against((see, args), reference)


@triton.jit
def bytes_with_scales_by_groups(x_ptr, w_ptr, s_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr, BK: tl.constexpr):
    # Weights of signed bytes, (N, K), a scale a column and 96 of K: three blocks of 32 share one, in a loop in the loop.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for g in range(K // GROUP):
        part = tl.zeros((BM, BN), tl.float32)
        for k0 in range(g * GROUP, g * GROUP + GROUP, BK):
            x = tl.load(x_ptr + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None], other=0.0)
            w = tl.load(w_ptr + n[None, :] * K + (k0 + k)[:, None], mask=(n < N)[None, :], other=0)
            part = tl.dot(x, w.to(x.dtype), part)
        acc += part * tl.load(s_ptr + g * N + n, mask=n < N, other=0.0)[None, :]
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def tiling_of_bytes_scaled_every_96():
    m, n, k = 500, 1111, 1152
    x, w, s = rand(m, k, dtype="bfloat16"), ints(-127, 128, n, k, dtype="int8"), uniform(k // 96, n) / 500
    y = zeros(m, n, dtype="bfloat16")
    launched = run(bytes_with_scales_by_groups, (cdiv(m, 64), cdiv(n, 64)), (x, w, s, y, m, n, k), y, BM=64, BN=64, GROUP=96, BK=32, num_warps=4, num_stages=3)
    return against(launched, lambda: x.float() @ (w.float() * s.t().repeat_interleave(96, 1)).t())


@triton.jit
def experts_of_gathered_rows(x_ptr, w_ptr, row_ptr, start_ptr, gate_ptr, y_ptr, N, K, E: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Programs find their expert and tile by walking the starts; rows are gathered, results scaled and left in the order of experts.
    tile = tl.program_id(0)
    expert = 0
    seen = 0
    total = 0
    for e in range(E):
        tiles = (tl.load(start_ptr + e + 1) - tl.load(start_ptr + e) + BM - 1) // BM
        total += tiles
        expert += (tile >= total).to(tl.int32)
        seen = tl.where(tile >= total, total, seen)
    if expert < E:
        r = tl.load(start_ptr + expert) + (tile - seen) * BM + tl.arange(0, BM)
        ok = r < tl.load(start_ptr + expert + 1)
        row = tl.load(row_ptr + r, mask=ok, other=0)
        n, k = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
        acc = tl.zeros((BM, BN), tl.float32)
        ws = w_ptr + expert * N * K + n[None, :] * K + k[:, None]
        for k0 in range(0, K, BK):
            x = tl.load(x_ptr + row[:, None] * K + (k0 + k)[None, :], mask=ok[:, None], other=0.0)
            acc = tl.dot(x, tl.load(ws), acc)
            ws += BK
        acc *= tl.load(gate_ptr + r, mask=ok, other=0.0)[:, None]
        tl.store(y_ptr + r[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=ok[:, None])


@case
def tiling_of_experts_found_by_walking_starts():
    tokens, e, n, k, top = 2000, 20, 384, 256, 3
    x, w, gate = rand(tokens, k), rand(e, n, k) / 16, uniform(tokens * top)
    which = torch.randint(0, e, (tokens * top,))
    start = F.pad(which.bincount(minlength=e).cumsum(0), (1, 0)).to(torch.int32).to(x.device)
    row = torch.randint(0, tokens, (tokens * top,)).to(torch.int32).to(x.device)
    y = zeros(tokens * top, n)
    launched = run(experts_of_gathered_rows, (cdiv(tokens * top, 64) + e, n // 128), (x, w, row, start, gate, y, n, k), y, E=e, BM=64, BN=128, BK=64, num_warps=4, num_stages=3)

    def reference():
        out, at = [], start.tolist()
        for i in range(e):
            s = slice(at[i], at[i + 1])
            out.append((x[row[s].long()].float() @ w[i].float().t()) * gate[s, None])
        return torch.cat(out)

    return against(launched, reference)


@triton.jit
def whole_numbers_in_parts(a_ptr, b_ptr, c_ptr, row_ptr, M, N, K, SPAN, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Bytes times bytes, K in parts added by atomics of integers; the first column of programs also adds rows of a up.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.program_id(2) * SPAN + tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.int32)
    rows = tl.zeros((BM,), tl.int32)
    for _ in range(0, SPAN, BK):
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0)
        b = tl.load(b_ptr + n[:, None] * K + k[None, :], mask=(n < N)[:, None], other=0)
        acc = tl.dot(a, b.T, acc, out_dtype=tl.int32)
        rows += tl.sum(a.to(tl.int32), 1)
        k += BK
    tl.atomic_add(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :], sem="relaxed")
    if tl.program_id(1) == 0:
        tl.atomic_add(row_ptr + m, rows, mask=m < M, sem="relaxed")


@case
def tiling_of_bytes_in_parts_with_sums_of_rows():
    m, n, k, parts = 200, 330, 8192, 8
    a, b = ints(-128, 128, m, k, dtype="int8"), ints(-128, 128, n, k, dtype="int8")
    c, row = zeros(m, n, dtype="int32"), zeros(m, dtype="int32")
    args = a, b, c, row, m, n, k, k // parts
    launched = run(whole_numbers_in_parts, (cdiv(m, 64), cdiv(n, 64), parts), args, (c, row), BM=64, BN=64, BK=128, num_warps=4, num_stages=3)
    return against(cleared(launched, c, row), lambda: (a.double() @ b.double().t(), a.int().sum(1)))


@triton.jit
def streamed_sums(a_ptr, b_ptr, c_ptr, M, N, K, PER, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Each program takes an equal share of all steps of all tiles, and adds what it has of each tile: a loop in a while.
    across = tl.cdiv(N, BN)
    steps = K // BK
    at = tl.program_id(0) * PER
    end = tl.minimum(at + PER, tl.cdiv(M, BM) * across * steps)
    while at < end:
        tile, first = at // steps, at % steps
        last = tl.minimum(steps, first + end - at)
        m, n = tile // across * BM + tl.arange(0, BM), tile % across * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for s in range(first, last):
            k = s * BK + tl.arange(0, BK)
            a = tl.load(a_ptr + k[None, :] * M + m[:, None], mask=(m < M)[:, None], other=0.0)
            b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0.0)
            acc = tl.dot(a, b, acc)
        tl.atomic_add(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :], sem="relaxed")
        at += last - first


@case
def tiling_streamed_over_turned_rows_in_a_while():
    m, n, k = 900, 700, 1024
    a, b = rand(k, m, dtype="bfloat16"), rand(k, n, dtype="bfloat16")
    c = zeros(m, n, dtype="float32")
    steps = cdiv(m, 128) * cdiv(n, 64) * (k // 32)
    launched = run(streamed_sums, (PROGRAMS,), (a, b, c, m, n, k, cdiv(steps, PROGRAMS)), c, BM=128, BN=64, BK=32, num_warps=8, num_stages=3)
    return against(cleared(launched, c), lambda: a.float().t() @ b.float())


@triton.jit
def product_with_norms(a_ptr, b_ptr, c_ptr, sq_ptr, top_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # What leaves: the product, squares summed of each row of a tile, and magnitudes' maxima of each column of a tile.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, tl.cdiv(K, BK)):
        k = k0 * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="tf32")
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])
    tl.store(sq_ptr + tl.program_id(1) * M + m, tl.sum(acc * acc, 1), mask=m < M)
    tl.store(top_ptr + tl.program_id(0) * N + n, tl.max(tl.abs(acc), 0), mask=n < N)


@case
def tiling_in_tf32_with_norms_of_rows_and_tops_of_columns():
    m, n, k = 777, 888, 333
    a, b = f32(m, k), f32(k, n)
    c, sq, top = zeros(m, n, dtype="float32"), zeros(cdiv(n, 32), m, dtype="float32"), zeros(cdiv(m, 128), n, dtype="float32")
    return run(product_with_norms, (cdiv(m, 128), cdiv(n, 32)), (a, b, c, sq, top, m, n, k), (c, sq, top), BM=128, BN=32, BK=32, num_warps=4, num_stages=4)


@triton.jit
def strided_taps(x_ptr, w_ptr, b_ptr, y_ptr, H, W, OH, OW, TOTAL, C: tl.constexpr, N: tl.constexpr, BM: tl.constexpr):
    # 3 by 3 at stride two of channels last: taps in a static loop, 48 channels as one block of 64 of which 16 are masked.
    p = tl.program_id(0) * BM + tl.arange(0, BM)
    c, n = tl.arange(0, 64), tl.arange(0, N)
    image, oy, ox = p // (OH * OW), p // OW % OH, p % OW
    acc = tl.zeros((BM, N), tl.float32) + tl.load(b_ptr + n)[None, :]
    for tap in tl.static_range(9):
        y, x = oy * 2 + tap // 3 - 1, ox * 2 + tap % 3 - 1
        ok = (y >= 0) & (y < H) & (x >= 0) & (x < W) & (p < TOTAL)
        a = tl.load(x_ptr + ((image * H + y) * W + x)[:, None] * C + c[None, :], mask=ok[:, None] & (c < C)[None, :], other=0.0)
        w = tl.load(w_ptr + (tap * C + c)[:, None] * N + n[None, :], mask=(c < C)[:, None], other=0.0)
        acc = tl.dot(a, w, acc)
    y = acc * tl.sigmoid(acc)
    tl.store(y_ptr + p[:, None] * N + n[None, :], y.to(y_ptr.dtype.element_ty), mask=(p < TOTAL)[:, None])


@case
def tiling_of_nine_strided_taps_of_48_channels():
    b, h, w, c, n = 8, 75, 90, 48, 128
    oh, ow = (h + 1) // 2, (w + 1) // 2
    x, wt, bias = rand(b, h, w, c), rand(3, 3, c, n) / 20, f32(n)
    y = zeros(b, oh, ow, n)
    launched = run(strided_taps, (cdiv(b * oh * ow, 64),), (x, wt, bias, y, h, w, oh, ow, b * oh * ow), y, C=c, N=n, BM=64, num_warps=4)

    def reference():
        z = F.conv2d(x.float().permute(0, 3, 1, 2), wt.float().permute(3, 2, 0, 1), bias, stride=2, padding=1)
        return F.silu(z).permute(0, 2, 3, 1)

    return against(launched, reference)


@triton.jit
def causal_volume_taps(x_ptr, w_ptr, y_ptr, H, W, N, C: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Three frames back, 3 by 3 around: one loop of 27 steps that finds its tap by divisions, (T, C, H, W) as it lies.
    t = tl.program_id(2)
    p, n, c = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, C)
    oy, ox = p // W, p % W
    acc = tl.zeros((BN, BM), tl.float32)
    for tap in range(27):
        f, y, x = t + tap // 9 - 2, oy + tap // 3 % 3 - 1, ox + tap % 3 - 1
        if f >= 0:
            ok = (y >= 0) & (y < H) & (x >= 0) & (x < W) & (p < H * W)
            a = tl.load(x_ptr + ((f * C + c) * H * W)[:, None] + (y * W + x)[None, :], mask=ok[None, :], other=0.0)
            w = tl.load(w_ptr + (tap * N + n)[:, None] * C + c[None, :])
            acc = tl.dot(w, a, acc)
    tl.store(y_ptr + ((t * N + n) * H * W)[:, None] + p[None, :], acc.to(y_ptr.dtype.element_ty), mask=(p < H * W)[None, :])


@case
def tiling_of_27_causal_taps_of_frames():
    t, c, n, h, w = 12, 32, 64, 44, 60
    x, wt = rand(t, c, h, w, dtype="bfloat16"), rand(3, 3, 3, n, c, dtype="bfloat16") / 30
    y = zeros(t, n, h, w, dtype="bfloat16")
    launched = run(causal_volume_taps, (cdiv(h * w, 128), n // 32, t), (x, wt, y, h, w, n), y, C=c, BM=128, BN=32, num_warps=4, num_stages=3)

    def reference():
        z = F.pad(x.float().transpose(0, 1)[None], (1, 1, 1, 1, 2, 0))
        return F.conv3d(z, wt.float().permute(3, 4, 0, 1, 2))[0].transpose(0, 1)

    return against(launched, reference)


@triton.jit
def small_batches(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BK: tl.constexpr):
    # One warp a product of 16 by 48: three dots of 16 columns share what is loaded of a.
    p = tl.program_id(0)
    m, n, k = tl.arange(0, M), tl.arange(0, 16), tl.arange(0, BK)
    x = tl.zeros((M, 16), tl.float32)
    y = tl.zeros((M, 16), tl.float32)
    z = tl.zeros((M, 16), tl.float32)
    for k0 in range(0, K, BK):
        a = tl.load(a_ptr + (p * M + m)[:, None] * K + (k0 + k)[None, :])
        b = b_ptr + (p * K + k0 + k)[:, None] * N + n[None, :]
        x = tl.dot(a, tl.load(b), x)
        y = tl.dot(a, tl.load(b + 16), y)
        z = tl.dot(a, tl.load(b + 32), z)
    c = c_ptr + (p * M + m)[:, None] * N + n[None, :]
    tl.store(c, x.to(c_ptr.dtype.element_ty))
    tl.store(c + 16, y.to(c_ptr.dtype.element_ty))
    tl.store(c + 32, z.to(c_ptr.dtype.element_ty))


@case
def tiling_of_batches_of_48_columns_by_one_warp():
    b, m, n, k = 4000, 16, 48, 96
    x, y = rand(b, m, k), rand(b, k, n)
    z = zeros(b, m, n)
    launched = run(small_batches, (b,), (x, y, z), z, M=m, N=n, K=k, BK=32, num_warps=1, num_stages=2)
    return against(launched, lambda: x.float() @ y.float())


@triton.jit
def large_tiles(a_ptr, b_ptr, s_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Sixteen warps on 128 by 256, columns of tiles in groups of four rows; the residual is read only when all is summed.
    across, group = tl.cdiv(N, BN), tl.program_id(0) // (4 * tl.cdiv(N, BN))
    rows = tl.minimum(tl.cdiv(M, BM) - group * 4, 4)
    inside = tl.program_id(0) % (4 * across)
    m, n = (group * 4 + inside % rows) * BM + tl.arange(0, BM), inside // rows * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a = a_ptr + (m % M)[:, None] * K + k[None, :]
    b = b_ptr + (n % N)[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(a), tl.load(b), acc)
        a += BK
        b += BK
    ok = (m < M)[:, None] & (n < N)[None, :]
    s = tl.load(s_ptr + m[:, None] * N + n[None, :], mask=ok, other=0.0)
    tl.store(c_ptr + m[:, None] * N + n[None, :], (0.5 * acc + s.to(tl.float32)).to(c_ptr.dtype.element_ty), mask=ok)


@case
def tiling_of_128x256_by_16_warps_with_a_residual():
    m, n, k = 2100, 3000, 1024
    a, b, s = rand(m, k) / 8, rand(n, k) / 8, rand(m, n)
    c = zeros(m, n)
    launched = run(large_tiles, (cdiv(m, 128) * cdiv(n, 256),), (a, b, s, c, m, n, k), c, BM=128, BN=256, BK=64, num_warps=16, num_stages=3)
    return against(launched, lambda: 0.5 * (a.float() @ b.float().t()) + s.float())


@triton.jit
def two_kinds_of_fp8(a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # E5M2 rows times E4M3 columns; scales of a's rows and b's columns change with every block of 128 along K.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (k0 + k)[None, :])
        b = tl.load(b_ptr + n[None, :] * K + (k0 + k)[:, None])
        sa = tl.load(sa_ptr + k0 // BK * M + m)
        sb = tl.load(sb_ptr + k0 // BK * N + n)
        acc += tl.dot(a.to(tl.float16), b.to(tl.float16)) * sa[:, None] * sb[None, :]
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty))


@case
def tiling_of_e5m2_by_e4m3_with_scales_along_k():
    m, n, k = 1024, 768, 1024
    a, b = f8(m, k, dtype="float8_e5m2"), f8(n, k)
    sa, sb = uniform(k // 128, m) + 0.1, uniform(k // 128, n) / 8 + 0.1
    c = zeros(m, n, dtype="bfloat16")
    launched = run(two_kinds_of_fp8, (m // 64, n // 64), (a, b, sa, sb, c, m, n, k), c, BM=64, BN=64, BK=128, num_warps=4, num_stages=2)

    def reference():
        return (a.float() * sa.t().repeat_interleave(128, 1)) @ (b.float() * sb.t().repeat_interleave(128, 1)).t()

    return against(launched, reference)


@triton.jit
def activated_with_slope(x_ptr, w_ptr, b_ptr, y_ptr, slope_ptr, pre_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Squared ReLU on one half of programs' columns, SiLU on the other: activation, its slope and what came in all leave.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in tl.range(0, K, BK, num_stages=2):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
        acc += tl.dot(x, tl.load(w_ptr + n[:, None] * K + k[None, :]).T)
    acc += tl.load(b_ptr + n)[None, :]
    if tl.program_id(1) < tl.num_programs(1) // 2:
        r = tl.maximum(acc, 0.0)
        y, slope = r * r, 2.0 * r
    else:
        s = tl.sigmoid(acc)
        y, slope = acc * s, s * (1.0 + acc * (1.0 - s))
    at, ok = m[:, None] * N + n[None, :], (m < M)[:, None]
    tl.store(pre_ptr + at, acc, mask=ok)
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=ok)
    tl.store(slope_ptr + at, slope.to(slope_ptr.dtype.element_ty), mask=ok)


@case
def tiling_with_two_activations_and_their_slopes():
    m, n, k = 1500, 512, 384
    x, w, b = rand(m, k) / 4, rand(n, k) / 4, f32(n)
    y, slope, pre = zeros(m, n), zeros(m, n, dtype="bfloat16"), zeros(m, n, dtype="float32")
    launched = run(activated_with_slope, (cdiv(m, 64), n // 64), (x, w, b, y, slope, pre, m, n, k), (y, slope, pre), BM=64, BN=64, BK=64, num_warps=8)

    def reference():
        z = x.float() @ w.float().t() + b
        left, right = z[:, : n // 2].relu(), z[:, n // 2 :]
        s = right.sigmoid()
        return torch.cat([left.square(), right * s], 1), torch.cat([2 * left, s * (1 + right * (1 - s))], 1), z

    return against(launched, reference)


@triton.jit
def complex_in_three(ar_ptr, ai_ptr, b_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Complex products by three real ones; b's parts lie next to each other and are taken apart by a split.
    m, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BK)
    both = tl.program_id(1) * 2 * BN + tl.arange(0, 2 * BN)
    one = tl.zeros((BM, BN), tl.float32)
    two = tl.zeros((BM, BN), tl.float32)
    three = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        at = m[:, None] * K + (k0 + k)[None, :]
        ar, ai = tl.load(ar_ptr + at), tl.load(ai_ptr + at)
        b = tl.load(b_ptr + (k0 + k)[:, None] * 2 * N + both[None, :])
        br, bi = tl.split(tl.reshape(b, (BK, BN, 2)))
        one = tl.dot(ar, br, one)
        two = tl.dot(ai, bi, two)
        three = tl.dot(ar + ai, br + bi, three)
    c = tl.reshape(tl.join(one - two, three - one - two), (BM, 2 * BN))
    tl.store(c_ptr + m[:, None] * 2 * N + both[None, :], c)


@case
def tiling_of_complex_products_by_three_real_ones():
    m, n, k = 768, 640, 256
    ar, ai, b = rand(m, k), rand(m, k), rand(k, n, 2)
    c = zeros(m, n, 2, dtype="float32")
    launched = run(complex_in_three, (m // 64, n // 32), (ar, ai, b, c, n, k), c, BM=64, BN=32, BK=32, num_warps=4, num_stages=2)
    return against(launched, lambda: torch.view_as_real(torch.complex(ar.float(), ai.float()) @ torch.view_as_complex(b.float())))


@triton.jit
def lower_tiles_mirrored(x_ptr, mean_ptr, c_ptr, M, K, scale, B: tl.constexpr, BK: tl.constexpr):
    # Covariances of columns: only tiles on and below the diagonal, found by a root, and stored twice; means leave as rows come in.
    p = tl.program_id(0)
    i = ((tl.sqrt(8.0 * p + 1.0) - 1.0) * 0.5).to(tl.int32)
    i = tl.where(i * (i + 1) // 2 > p, i - 1, i)
    i = tl.where((i + 1) * (i + 2) // 2 <= p, i + 1, i)
    j = p - i * (i + 1) // 2
    a, b = i * B + tl.arange(0, B), j * B + tl.arange(0, B)
    ma, mb = tl.load(mean_ptr + a), tl.load(mean_ptr + b)
    acc = tl.zeros((B, B), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        ok = (k < K)[:, None]
        x = tl.load(x_ptr + k[:, None] * M + a[None, :], mask=ok, other=0.0).to(tl.float32) - ma[None, :]
        y = tl.load(x_ptr + k[:, None] * M + b[None, :], mask=ok, other=0.0).to(tl.float32) - mb[None, :]
        acc = tl.dot(tl.trans(tl.where(ok, x, 0.0).to(tl.float16)), y.to(tl.float16), acc)
    acc *= scale
    tl.store(c_ptr + a[:, None] * M + b[None, :], acc)
    if i != j:
        tl.store(c_ptr + b[:, None] * M + a[None, :], tl.trans(acc))


@case
def tiling_below_the_diagonal_of_centered_columns():
    m, k = 1024, 1000
    x = rand(k, m) + 1
    mean = x.float().mean(0)
    c = zeros(m, m, dtype="float32")
    tiles = m // 64
    launched = run(lower_tiles_mirrored, (tiles * (tiles + 1) // 2,), (x, mean, c, m, k, 1 / (k - 1)), c, B=64, BK=32, num_warps=4, num_stages=3)
    return against(launched, lambda: ((x.float() - mean).half().float().t() @ (x.float() - mean).half().float()) / (k - 1))


@triton.jit
def two_stages_at_once(x_ptr, a_ptr, b_ptr, y_ptr, mid_ptr, M, K, N, R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Low rank: x goes through 32 columns, which are kept, and out again by a second loop that stores as it goes.
    m, r = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, R)
    mid = tl.zeros((BM, R), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        mid = tl.dot(x, tl.load(a_ptr + k[:, None] * R + r[None, :], mask=(k < K)[:, None], other=0.0), mid)
    h = mid.to(x_ptr.dtype.element_ty)
    tl.store(mid_ptr + m[:, None] * R + r[None, :], h, mask=(m < M)[:, None])
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        ok = (m < M)[:, None] & (n < N)[None, :]
        b = tl.load(b_ptr + n[None, :] * R + r[:, None], mask=(n < N)[None, :], other=0.0)
        y = tl.load(y_ptr + m[:, None] * N + n[None, :], mask=ok, other=0.0).to(tl.float32)
        tl.store(y_ptr + M * N + m[:, None] * N + n[None, :], tl.dot(h, b, y).to(y_ptr.dtype.element_ty), mask=ok)


@case
def tiling_through_32_columns_and_out_again():
    m, k, n, r = 4200, 700, 900, 32
    x, a, b = rand(m, k) / 8, rand(k, r) / 4, rand(n, r)
    y, mid = rand(2, m, n), zeros(m, r)
    launched = run(two_stages_at_once, (cdiv(m, 32),), (x, a, b, y, mid, m, k, n), (y, mid), R=r, BM=32, BN=128, BK=64, num_warps=4, num_stages=3)

    def reference():
        h = x.float() @ a.float()
        return torch.stack([y[0].float(), y[0].float() + h.half().float() @ b.float().t()]), h

    return against(launched, reference)
