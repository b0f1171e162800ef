"""Attics: what lies there after an answer or a first try: heads in a loop, steps backward, described columns, equalized rows, grown matrices, linked blocks, half sums, complex decays."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f8, f32, far, ints, rand, run, uniform, viewed, zeros


@triton.jit
def heads_in_a_loop_attention_kernel(qkv_ptr, out_ptr, lse_ptr, T, H, D, scale, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_D: tl.constexpr):
    # Attention where a program does all heads of its queries one after another; heads are padded, and the mean of all heads' log sums is kept.
    batch = tl.program_id(0)
    q_block = tl.program_id(1)
    q_idx = q_block * BLOCK_Q + tl.arange(0, BLOCK_Q)
    d_idx = tl.arange(0, BLOCK_D)
    q_mask = (q_idx[:, None] < T) & (d_idx[None, :] < D)
    row = 3 * H * D
    base = qkv_ptr + batch * T * row
    mean_lse = tl.zeros((BLOCK_Q,), dtype=tl.float32)
    for h in range(H):
        q = tl.load(base + q_idx[:, None] * row + h * D + d_idx[None, :], mask=q_mask, other=0.0)
        m = tl.full((BLOCK_Q,), -1e9, dtype=tl.float32)
        l = tl.zeros((BLOCK_Q,), dtype=tl.float32)
        o = tl.zeros((BLOCK_Q, BLOCK_D), dtype=tl.float32)
        for start in range(0, T, BLOCK_K):
            k_idx = start + tl.arange(0, BLOCK_K)
            kv_mask = (k_idx[:, None] < T) & (d_idx[None, :] < D)
            k = tl.load(base + k_idx[:, None] * row + H * D + h * D + d_idx[None, :], mask=kv_mask, other=0.0)
            v = tl.load(base + k_idx[:, None] * row + 2 * H * D + h * D + d_idx[None, :], mask=kv_mask, other=0.0)
            scores = tl.dot(q, tl.trans(k)) * scale
            scores = tl.where(k_idx[None, :] < T, scores, -1e9)
            m_new = tl.maximum(m, tl.max(scores, axis=1))
            p = tl.exp(scores - m_new[:, None])
            correction = tl.exp(m - m_new)
            l = l * correction + tl.sum(p, axis=1)
            o = o * correction[:, None] + tl.dot(p.to(tl.float16), v)
            m = m_new
        tl.store(out_ptr + (batch * T + q_idx[:, None]) * (H * D) + h * D + d_idx[None, :], (o / l[:, None]).to(tl.float16), mask=q_mask)
        mean_lse += (m + tl.log(l)) / H
    tl.store(lse_ptr + batch * T + q_idx, mean_lse, mask=q_idx < T)


@case
def attic_of_heads_in_a_loop(b=12, t=400, h=5, d=40):
    qkv, out, lse = rand(b, t, 3, h, d), zeros(b, t, h, d), zeros(b, t, dtype="float32")
    launched = run(heads_in_a_loop_attention_kernel, (b, cdiv(t, 32)), (qkv, out, lse, t, h, d, d**-0.5), (out, lse), BLOCK_Q=32, BLOCK_K=32, BLOCK_D=64, num_warps=2)

    def reference():
        q, k, v = qkv.float().permute(2, 0, 3, 1, 4)
        s = q @ k.transpose(2, 3) * d**-0.5
        return (s.softmax(3) @ v).transpose(1, 2), s.logsumexp(3).mean(1)

    return against(launched, reference)


@triton.jit
def bytes_in_three_axes_kernel(a_ptr, b_ptr, scale_ptr, c_ptr, B, M, N, K, BB: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A batched product of bytes by dots of three axes, rounded back to bytes by a scale of each batch.
    b = tl.program_id(2) * BB + tl.arange(0, BB)
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    b3 = tl.expand_dims(tl.expand_dims(b, 1), 2)
    acc = tl.zeros((BB, BM, BN), dtype=tl.int32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + b3 * M * K + m[None, :, None] * K + k[None, None, :], mask=(b3 < B) & (m[None, :, None] < M) & (k[None, None, :] < K), other=0)
        w = tl.load(b_ptr + b3 * K * N + k[None, :, None] * N + n[None, None, :], mask=(b3 < B) & (k[None, :, None] < K) & (n[None, None, :] < N), other=0)
        acc = tl.dot(a, w, acc, out_dtype=tl.int32)
    scale = tl.load(scale_ptr + b, mask=b < B, other=0.0)
    y = tl.floor(acc.to(tl.float32) * scale[:, None, None] + 0.5)
    y = tl.minimum(tl.maximum(y, -128.0), 127.0)
    tl.store(c_ptr + b3 * M * N + m[None, :, None] * N + n[None, None, :], y.to(tl.int8), mask=(b3 < B) & (m[None, :, None] < M) & (n[None, None, :] < N))


@case
def attic_of_bytes_in_three_axes(b=50, m=190, n=210, k=230):
    a, w = ints(-128, 128, b, m, k, dtype="int8"), ints(-128, 128, b, k, n, dtype="int8")
    scale, c = uniform(b) * 0.0006 + 0.0002, zeros(b, m, n, dtype="int8")
    flags = dict(BB=4, BM=32, BN=32, BK=64)
    launched = run(bytes_in_three_axes_kernel, (cdiv(n, 32), cdiv(m, 32), cdiv(b, 4)), (a, w, scale, c, b, m, n, k), c, num_warps=8, num_stages=5, **flags)
    return against(viewed(launched, far), lambda: ((a.double() @ w.double() * scale[:, None, None]) + 0.5).floor().clamp(-128, 127) + 200)


@triton.jit
def backward_steps_matmul_kernel(a_ptr, b_ptr, use_ptr, c_ptr, used_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # The sum over K goes from its end to its beginning, and only over blocks that are to be used; full numbers by tf32.
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    used = 0
    k_start = (tl.cdiv(K, BK) - 1) * BK
    while k_start >= 0:
        use = tl.load(use_ptr + k_start // BK)
        if use != 0:
            ks = k_start + tl.arange(0, BK)
            a = tl.load(a_ptr + rows[:, None] * K + ks[None, :], mask=(rows[:, None] < M) & (ks[None, :] < K), other=0.0)
            b = tl.load(b_ptr + ks[:, None] * N + cols[None, :], mask=(ks[:, None] < K) & (cols[None, :] < N), other=0.0)
            acc = tl.dot(a, b, acc, input_precision="tf32")
            used += 1
        k_start -= BK
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc, mask=(rows[:, None] < M) & (cols[None, :] < N))
    if (tl.program_id(0) == 0) & (tl.program_id(1) == 0):
        tl.store(used_ptr, used)


@case
def attic_of_backward_steps(m=1003, n=1201, k=901):
    a, b, use = f32(m, k), f32(k, n), (arange(cdiv(k, 32)) % 4 != 1).to(torch.int32)
    c, used = zeros(m, n, dtype="float32"), zeros(1, dtype="int32")
    launched = run(backward_steps_matmul_kernel, (cdiv(m, 64), cdiv(n, 64)), (a, b, use, c, used, m, n, k), (c, used), BM=64, BN=64, BK=32, num_warps=4)
    return against(launched, lambda: ((a * use.repeat_interleave(32)[:k]) @ b, use.sum()[None]))


@triton.jit
def e5m2_in_turns_matmul_kernel(a_ptr, b_ptr, c_ptr, peak_ptr, M, N, K, stride_am, stride_bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # FP8 with five bits of exponent; blocks of K go to one of two sums in turns, programs stay for several tiles, and each tile tells its peak.
    tiles_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * tiles_n
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        m = (tile // tiles_n) * BM + tl.arange(0, BM)
        n = (tile % tiles_n) * BN + tl.arange(0, BN)
        even = tl.zeros((BM, BN), dtype=tl.float32)
        odd = tl.zeros((BM, BN), dtype=tl.float32)
        for k0 in range(0, K, 2 * BK):
            k = k0 + tl.arange(0, BK)
            a = tl.load(a_ptr + m[:, None] * stride_am + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
            b = tl.load(b_ptr + n[None, :] * stride_bn + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
            even = tl.dot(a, b, even)
            k += BK
            a = tl.load(a_ptr + m[:, None] * stride_am + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
            b = tl.load(b_ptr + n[None, :] * stride_bn + k[:, None], mask=(n[None, :] < N) & (k[:, None] < K), other=0.0)
            odd = tl.dot(a, b, odd)
        c = even + odd
        ok = (m[:, None] < M) & (n[None, :] < N)
        tl.store(c_ptr + m[:, None] * N + n[None, :], c.to(tl.bfloat16), mask=ok)
        tl.store(peak_ptr + tile, tl.max(tl.max(tl.abs(c), axis=1), axis=0))


@case
def attic_of_e5m2_in_turns(m=1500, n=1900, k=1300):
    a, b = f8(m, cdiv(k, 16) * 16, dtype="float8_e5m2"), f8(n, cdiv(k, 16) * 16, dtype="float8_e5m2")
    c, peak = zeros(m, n, dtype="bfloat16"), zeros(cdiv(m, 128) * cdiv(n, 64), dtype="float32")
    args = a, b, c, peak, m, n, k, a.stride(0), b.stride(0)
    launched = run(e5m2_in_turns_matmul_kernel, (132,), args, (c, peak), BM=128, BN=64, BK=64, num_warps=4, num_stages=3)

    def reference():
        y = a[:, :k].float() @ b[:, :k].float().t()
        p = F.pad(y.abs(), (0, -n % 64, 0, -m % 128))
        return y, p.view(p.shape[0] // 128, 128, -1, 64).amax((1, 3)).view(-1)

    return against(launched, reference)


@triton.jit
def places_after_sorting_twice_kernel(x_ptr, order_ptr, rank_ptr, n_cols, BLOCK: tl.constexpr):
    # argsort and ranks of a row: numbers and places in one long integer, sorted; then the same again of the places.
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=float("inf"))
    bits = x.to(tl.int32, bitcast=True)
    key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    packed = (key.to(tl.int64) << 32) | cols.to(tl.int64)
    packed = tl.sort(packed)
    order = (packed & 0xFFFFFFFF).to(tl.int32)
    again = tl.sort((order.to(tl.int64) << 32) | cols.to(tl.int64))
    rank = (again & 0xFFFFFFFF).to(tl.int32)
    tl.store(order_ptr + row * n_cols + cols, order, mask=cols < n_cols)
    tl.store(rank_ptr + row * n_cols + cols, rank, mask=cols < n_cols)


@case
def attic_of_places_after_sorting(rows=1100, cols=777):
    x = (f32(rows, cols) * 50).round() / 50
    x = torch.where(x == 0, 0.0, x)
    order, rank = zeros(rows, cols, dtype="int32"), zeros(rows, cols, dtype="int32")
    launched = run(places_after_sorting_twice_kernel, (rows,), (x, order, rank, cols), (order, rank), BLOCK=1024, num_warps=16)

    def reference():
        o = x.sort(stable=True, dim=1)[1]
        return o.int(), o.argsort(1).int()

    return against(launched, reference)


@triton.jit
def complex_decay_step(ar, ai, xr, xi, br, bi, yr, yi):
    return ar * br - ai * bi, ar * bi + ai * br, br * xr - bi * xi + yr, br * xi + bi * xr + yi


@triton.jit
def complex_decays_scan_kernel(decay_ptr, x_ptr, y_ptr, last_ptr, T, C, BT: tl.constexpr, BC: tl.constexpr):
    # h = a h + x with complex numbers whose parts alternate in memory: scans of blocks down axis 0, joined by their last row.
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    b = tl.program_id(1)
    hr = tl.zeros((BC,), dtype=tl.float32)
    hi = tl.zeros((BC,), dtype=tl.float32)
    two = tl.arange(0, 2)[None, None, :]
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        at = ((b * T + t[:, None]) * C + c[None, :])[:, :, None] * 2 + two
        ok = (t[:, None, None] < T) & (c[None, :, None] < C) & (two < 2)
        ar, ai = tl.split(tl.load(decay_ptr + at, mask=ok, other=0.0))
        xr, xi = tl.split(tl.load(x_ptr + at, mask=ok, other=0.0))
        pr, pi, sr, si = tl.associative_scan((ar, ai, xr, xi), 0, complex_decay_step)
        sr, si = sr + pr * hr[None, :] - pi * hi[None, :], si + pr * hi[None, :] + pi * hr[None, :]
        tl.store(y_ptr + at, tl.join(sr, si), mask=ok)
        last = (t == tl.minimum(t0 + BT, T) - 1)[:, None]
        hr = tl.sum(tl.where(last, sr, 0.0), axis=0)
        hi = tl.sum(tl.where(last, si, 0.0), axis=0)
    tl.store(last_ptr + (b * C + c) * 2, hr, mask=c < C)
    tl.store(last_ptr + (b * C + c) * 2 + 1, hi, mask=c < C)


@case
def attic_of_complex_decays(b=8, t=1000, c=700):
    a = torch.polar(uniform(b, t, c) * 0.3 + 0.69, f32(b, t, c))
    a, x = torch.view_as_real(a).contiguous(), f32(b, t, c, 2)
    y, last = torch.zeros_like(x), zeros(b, c, 2, dtype="float32")
    launched = run(complex_decays_scan_kernel, (cdiv(c, 32), b), (a, x, y, last, t, c), (y, last), BT=64, BC=32, num_warps=4)

    def reference():
        p, z = torch.view_as_complex(a), torch.view_as_complex(x)
        h, out = 0, []
        for i in range(t):
            h = p[:, i] * h + z[:, i]
            out.append(h)
        return torch.view_as_real(torch.stack(out, 1)), torch.view_as_real(h)

    return against(launched, reference)


@triton.jit
def dilated_taps_conv1d_kernel(x_ptr, w_ptr, b_ptr, y_ptr, T, C, O, DILATION, TAPS: tl.constexpr, BT: tl.constexpr, BC: tl.constexpr, BO: tl.constexpr):
    # A dilated convolution in time, channels last: block pointers that begin before the first row, taps unrolled, then leaky.
    t0 = tl.program_id(0) * BT
    o0 = tl.program_id(1) * BO
    batch = tl.program_id(2).to(tl.int64)
    acc = tl.zeros((BT, BO), dtype=tl.float32)
    for c0 in range(0, C, BC):
        for tap in tl.static_range(TAPS):
            xp = tl.make_block_ptr(x_ptr + batch * T * C, shape=(T, C), strides=(C, 1), offsets=(t0 + (tap - TAPS // 2) * DILATION, c0), block_shape=(BT, BC), order=(1, 0))
            wp = tl.make_block_ptr(w_ptr + tap * C * O, shape=(C, O), strides=(O, 1), offsets=(c0, o0), block_shape=(BC, BO), order=(1, 0))
            x = tl.load(xp, boundary_check=(0, 1), padding_option="zero")
            w = tl.load(wp, boundary_check=(0, 1), padding_option="zero")
            acc = tl.dot(x, w, acc)
    o = o0 + tl.arange(0, BO)
    acc += tl.load(b_ptr + o, mask=o < O, other=0.0)[None, :]
    acc = tl.where(acc > 0, acc, acc * 0.1)
    yp = tl.make_block_ptr(y_ptr + batch * T * O, shape=(T, O), strides=(O, 1), offsets=(t0, o0), block_shape=(BT, BO), order=(1, 0))
    tl.store(yp, acc.to(y_ptr.dtype.element_ty), boundary_check=(0, 1))


@case
def attic_of_dilated_taps(b=8, t=900, c=300, o=360, dilation=9, taps=3):
    x, w, bias, y = rand(b, t, c), rand(taps, c, o), f32(o), zeros(b, t, o)
    launched = run(dilated_taps_conv1d_kernel, (cdiv(t, 128), cdiv(o, 64), b), (x, w, bias, y, t, c, o, dilation), y, TAPS=taps, BT=128, BC=32, BO=64, num_warps=8, num_stages=4)

    def reference():
        z = F.conv1d(x.float().transpose(1, 2), w.float().permute(2, 1, 0), bias, padding=dilation * (taps // 2), dilation=dilation)
        return F.leaky_relu(z, 0.1).transpose(1, 2)

    return against(launched, reference)


@triton.jit
def described_columns_matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A' B with descriptors: A lies by columns, tiles are taken in turn in one flattened loop, and each is put down in two halves.
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[K, M], strides=[M, 1], block_shape=[BK, BM])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[N, 1], block_shape=[BK, BN])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN // 2])
    tiles_m = tl.cdiv(M, BM)
    for tile in tl.range(tl.program_id(0), tiles_m * tl.cdiv(N, BN), tl.num_programs(0), flatten=True):
        m0 = (tile % tiles_m) * BM
        n0 = (tile // tiles_m) * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            a = a_desc.load([k * BK, m0])
            b = b_desc.load([k * BK, n0])
            acc = tl.dot(a.T, b, acc)
        halves = tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1))
        left, right = tl.split(halves)
        c_desc.store([m0, n0], left.to(tl.bfloat16))
        c_desc.store([m0, n0 + BN // 2], right.to(tl.bfloat16))


@case
def attic_of_described_columns(m=1480, n=1720, k=1160, programs=132):
    a, b, c = rand(k, m, dtype="bfloat16"), rand(k, n, dtype="bfloat16"), zeros(m, n, dtype="bfloat16")
    launch, args = run(described_columns_matmul_kernel, (programs,), (a, b, c, m, n, k), c, BM=128, BN=128, BK=64, num_warps=8, num_stages=4)

    def with_memory(*args):
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
        return launch(*args)

    return against((with_memory, args), lambda: a.float().t() @ b.float())


@triton.jit
def equalized_rows_kernel(x_ptr, y_ptr, low_ptr, width, BLOCK: tl.constexpr):
    # Histogram equalization of each row of bytes: counts, their running sums, and a gather from those sums.
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    ok = i < width
    x = tl.load(x_ptr + row * width + i, mask=ok, other=0).to(tl.int32)
    counts = tl.histogram(x, 256, mask=ok)
    running = tl.cumsum(counts, axis=0)
    least = tl.min(tl.where(running > 0, running, width))
    at = tl.gather(running, x, axis=0)
    y = ((at - least) * 255) // tl.maximum(width - least, 1)
    tl.store(y_ptr + row * width + i, y.to(tl.uint8), mask=ok)
    tl.store(low_ptr + row, least)


@case
def attic_of_equal_rows(rows=6000, width=1500):
    x = (f32(rows, width) * 30 + 100 + f32(rows, 1) * 20).clamp(0, 255).to(torch.uint8)
    y, low = zeros(rows, width, dtype="uint8"), zeros(rows, dtype="int32")
    launched = run(equalized_rows_kernel, (rows,), (x, y, low, width), (y, low), BLOCK=2048, num_warps=8)

    def reference():
        counts = torch.zeros(rows, 256, device=x.device).scatter_add_(1, x.long(), torch.ones(rows, width, device=x.device))
        s = counts.cumsum(1).long()
        least = torch.where(s > 0, s, width).amin(1, keepdim=True)
        return ((s.gather(1, x.long()) - least) * 255 // (width - least).clamp(min=1)).to(torch.uint8), least[:, 0].int()

    return against(launched, reference)


@triton.jit
def grown_matrices_kernel(a_ptr, x_ptr, y_ptr, peak_ptr, B, steps, N: tl.constexpr, R: tl.constexpr, P: tl.constexpr, BB: tl.constexpr):
    # x = tanh(A x) + 0.1 x again and again for many matrices of seven rows, padded to sixteen and taken eight at a time; the largest number seen is kept.
    b = tl.program_id(0) * BB + tl.arange(0, BB)[:, None, None]
    i = tl.arange(0, P)[None, :, None]
    j = tl.arange(0, P)[None, None, :]
    a = tl.load(a_ptr + b * N * N + i * N + j, mask=(b < B) & (i < N) & (j < N), other=0.0)
    ok = (b < B) & (i < N) & (j < R)
    x = tl.load(x_ptr + b * N * R + i * R + j, mask=ok, other=0.0)
    peak = tl.zeros((BB,), dtype=tl.float32)
    for _ in range(steps):
        z = tl.dot(a, x, input_precision="ieee")
        e = tl.exp(-2.0 * tl.abs(z))
        t = (1.0 - e) / (1.0 + e)
        x = tl.where(z < 0, -t, t) + 0.1 * x
        peak = tl.maximum(peak, tl.max(tl.max(tl.abs(x), axis=2), axis=1))
    tl.store(y_ptr + b * N * R + i * R + j, x, mask=ok)
    flat = tl.program_id(0) * BB + tl.arange(0, BB)
    tl.store(peak_ptr + flat, peak, mask=flat < B)


@case
def attic_of_grown_matrices(b=4001, n=7, r=5, steps=12):
    a, x = f32(b, n, n) * 0.5, f32(b, n, r)
    y, peak = torch.zeros_like(x), zeros(b, dtype="float32")
    launched = run(grown_matrices_kernel, (cdiv(b, 8),), (a, x, y, peak, b, steps), (y, peak), N=n, R=r, P=16, BB=8, num_warps=8)

    def reference():
        z, top = x.double(), []
        for _ in range(steps):
            z = torch.tanh(a.double() @ z) + 0.1 * z
            top.append(z.abs().amax((1, 2)))
        return z, torch.stack(top).amax(0)

    return against(launched, reference)


@triton.jit
def split_sums_matmul_kernel(a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, per_split, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A long sum of full numbers is split over programs, which add to the result; the first split brings the bias, the third axis is the split.
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    split = tl.program_id(2)
    k_start = split * per_split
    k_end = tl.minimum(k_start + per_split, K)
    a_bp = tl.make_block_ptr(base=a_ptr, shape=(M, k_end), strides=(K, 1), offsets=(pid_m * BM, k_start), block_shape=(BM, BK), order=(1, 0))
    b_bp = tl.make_block_ptr(base=b_ptr, shape=(k_end, N), strides=(N, 1), offsets=(k_start, pid_n * BN), block_shape=(BK, BN), order=(1, 0))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(k_start, k_end, BK):
        a = tl.load(a_bp, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_bp, boundary_check=(0, 1), padding_option="zero")
        acc += tl.dot(a, b, input_precision="ieee")
        a_bp = tl.advance(a_bp, (0, BK))
        b_bp = tl.advance(b_bp, (BK, 0))
    offs_m = (pid_m * BM + tl.arange(0, BM)).to(tl.int64)
    offs_n = (pid_n * BN + tl.arange(0, BN)).to(tl.int64)
    if split == 0:
        bias = tl.load(bias_ptr + offs_n, mask=offs_n < N, other=0.0)
        acc += bias[None, :]
    tl.atomic_add(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@case
def attic_of_split_sums(m=250, n=180, k=6100, splits=16):
    a, b, bias, c = f32(m, k), f32(k, n), f32(n), zeros(m, n, dtype="float32")
    per = cdiv(cdiv(k, splits), 32) * 32
    launched = run(split_sums_matmul_kernel, (cdiv(m, 64), cdiv(n, 64), splits), (a, b, bias, c, m, n, k, per), c, BM=64, BN=64, BK=32, num_warps=4, num_stages=2)
    return against(cleared(launched, c), lambda: (a.double() @ b.double()) + bias)


@triton.jit
def channels_of_blocks_norm_kernel(x_ptr, weight_ptr, bias_ptr, y_ptr, mean_ptr, var_ptr, N, C, S, eps, BN: tl.constexpr, BC: tl.constexpr, BS: tl.constexpr):
    # Batch norm in blocks of three axes: samples and places are summed away one axis after the other, eight channels a program.
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    c_mask = c < C
    total = tl.zeros((BC,), dtype=tl.float32)
    squares = tl.zeros((BC,), dtype=tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        for s0 in range(0, S, BS):
            s = s0 + tl.arange(0, BS)
            mask = (n < N)[:, None, None] & c_mask[None, :, None] & (s < S)[None, None, :]
            x = tl.load(x_ptr + (n[:, None, None] * C + c[None, :, None]) * S + s[None, None, :], mask=mask, other=0.0).to(tl.float32)
            total += tl.sum(tl.sum(x, axis=2), axis=0)
            squares += tl.sum(tl.sum(x * x, axis=0), axis=1)
    count = N * S
    mean = total / count
    var = squares / count - mean * mean
    scale = tl.load(weight_ptr + c, mask=c_mask, other=0.0) / tl.sqrt(var + eps)
    shift = tl.load(bias_ptr + c, mask=c_mask, other=0.0) - mean * scale
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        for s0 in range(0, S, BS):
            s = s0 + tl.arange(0, BS)
            mask = (n < N)[:, None, None] & c_mask[None, :, None] & (s < S)[None, None, :]
            at = (n[:, None, None] * C + c[None, :, None]) * S + s[None, None, :]
            x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
            tl.store(y_ptr + at, (x * scale[None, :, None] + shift[None, :, None]).to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + c, mean, mask=c_mask)
    tl.store(var_ptr + c, var, mask=c_mask)


@case
def attic_of_channels_of_blocks(n=14, c=1050, s=300):
    x, w, b = rand(n, c, s) + rand(c, 1), f32(c), f32(c)
    y, mean, var = torch.zeros_like(x), zeros(c, dtype="float32"), zeros(c, dtype="float32")
    launched = run(channels_of_blocks_norm_kernel, (cdiv(c, 8),), (x, w, b, y, mean, var, n, c, s, 1e-5), (y, mean, var), BN=4, BC=8, BS=64, num_warps=8)

    def reference():
        z = x.float()
        m, v = z.mean((0, 2)), z.var((0, 2), correction=0)
        return F.batch_norm(z, m, v, w, b, eps=1e-5), m, v

    return against(launched, reference)


@triton.jit
def runs_joined(la, fa, lb, fb):
    return tl.where(fb != 0, la + lb, lb), fa & fb


@triton.jit
def flags_and_runs_kernel(flag_ptr, any_ptr, all_ptr, first_ptr, count_ptr, run_ptr, xor_ptr, cols, ROWS, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    # Of rows of booleans: whether any, whether all, which first, how many, how long the longest run of them, and their places under exclusive or.
    r = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    c = tl.arange(0, BLOCK_C)
    ok = (r[:, None] < ROWS) & (c[None, :] < cols)
    flag = tl.load(flag_ptr + r[:, None] * cols + c[None, :], mask=ok, other=0) != 0
    number = flag.to(tl.int32)
    some = tl.max(number, axis=1)
    every = tl.min(tl.where(ok, number, 1), axis=1)
    first = tl.argmax(number, axis=1)
    count = tl.sum(number, axis=1)
    length, _ = tl.associative_scan((number, number), 1, runs_joined)
    places = tl.xor_sum(tl.where(flag, c[None, :], 0), axis=1)
    tl.store(any_ptr + r, some != 0, mask=r < ROWS)
    tl.store(all_ptr + r, every != 0, mask=r < ROWS)
    tl.store(first_ptr + r, tl.where(some != 0, first, -1), mask=r < ROWS)
    tl.store(count_ptr + r, count, mask=r < ROWS)
    tl.store(run_ptr + r, tl.max(length, axis=1), mask=r < ROWS)
    tl.store(xor_ptr + r, places, mask=r < ROWS)


@case
def attic_of_flags(rows=8003, cols=600):
    flag = uniform(rows, cols) < (uniform(rows, 1) * 1.4 - 0.2)
    some, every = zeros(rows, dtype="bool"), zeros(rows, dtype="bool")
    outs = some, every, *(zeros(rows, dtype="int32") for _ in range(4))
    launched = run(flags_and_runs_kernel, (cdiv(rows, 2),), (flag, *outs, cols, rows), outs, BLOCK_R=2, BLOCK_C=1024, num_warps=8)

    def reference():
        y = torch.zeros(rows, dtype=torch.int32, device=flag.device)
        longest, places = y.clone(), y.clone()
        for i in range(cols):
            y = torch.where(flag[:, i], y + 1, 0)
            longest = torch.maximum(longest, y)
            places = places ^ flag[:, i] * i
        first = torch.where(flag.any(1), flag.int().argmax(1), -1)
        return flag.any(1), flag.all(1), first.int(), flag.sum(1).int(), longest.int(), places.int()

    return against(launched, reference)


@triton.jit
def log_sum_pair(ma, sa, mb, sb):
    m = tl.maximum(ma, mb)
    return m, sa * tl.exp(ma - m) + sb * tl.exp(mb - m)


@triton.jit
def sums_of_exponentials_so_far_kernel(x_ptr, y_ptr, n_cols, stride, BLOCK: tl.constexpr):
    # logcumsumexp of a long row: a scan of pairs in each block, and the pair of all blocks before it.
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    top = -1e30
    total = 0.0
    for start in tl.range(0, n_cols, BLOCK, num_stages=2):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=-1e30).to(tl.float32)
        m, s = tl.associative_scan((x, tl.full((BLOCK,), 1.0, tl.float32)), 0, log_sum_pair)
        high = tl.maximum(m, top)
        both = s * tl.exp(m - high) + total * tl.exp(top - high)
        tl.store(y_ptr + cols, high + tl.log(both), mask=cols < n_cols)
        peak = tl.max(tl.where(cols < n_cols, high, -1e30), axis=0)
        total = tl.sum(tl.exp(x - peak), axis=0) + total * tl.exp(top - peak)
        top = peak


@case
def attic_of_sums_of_exponentials(rows=700, cols=9001):
    x = f32(rows, cols) * 6
    y = torch.zeros_like(x)
    launched = run(sums_of_exponentials_so_far_kernel, (rows,), (x, y, cols, x.stride(0)), y, BLOCK=1024, num_warps=8)
    return against(launched, lambda: x.double().logcumsumexp(1))


@triton.jit
def heads_with_and_without_bias_kernel(q_ptr, k_ptr, v_ptr, bias_ptr, causal_ptr, o_ptr, T, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Of three heads one counts distances, one loads a bias, one has neither; whether a head looks ahead is a number in memory.
    head = tl.program_id(1)
    causal = tl.load(causal_ptr + head)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    base = head.to(tl.int64) * T * D
    q = tl.load(q_ptr + base + rows[:, None] * D + d[None, :], mask=rows[:, None] < T, other=0.0)
    if causal == 1:
        end = tl.minimum((tl.program_id(0) + 1) * BM, T)
    else:
        end = T
    m = tl.full((BM,), float("-inf"), dtype=tl.float32)
    l = tl.zeros((BM,), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    for start in range(0, end, BN):
        cols = start + tl.arange(0, BN)
        k = tl.load(k_ptr + base + cols[:, None] * D + d[None, :], mask=cols[:, None] < T, other=0.0)
        s = tl.dot(q, k.T) * scale
        if head % 3 == 0:
            slope = 0.5 / (head + 1)
            s -= slope * tl.abs(rows[:, None] - cols[None, :]).to(tl.float32)
        elif head % 3 == 1:
            s += tl.load(bias_ptr + rows[:, None] * T + cols[None, :], mask=(rows[:, None] < T) & (cols[None, :] < T), other=0.0).to(tl.float32)
        seen = (cols[None, :] < T) & (rows[:, None] < T + BM)
        if causal == 1:
            seen = seen & (cols[None, :] <= rows[:, None])
        s = tl.where(seen, s, float("-inf"))
        new = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        alpha = tl.exp(m - new)
        l = l * alpha + tl.sum(p, axis=1)
        v = tl.load(v_ptr + base + cols[:, None] * D + d[None, :], mask=cols[:, None] < T, other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        m = new
    tl.store(o_ptr + base + rows[:, None] * D + d[None, :], (acc / l[:, None]).to(o_ptr.dtype.element_ty), mask=rows[:, None] < T)


@case
def attic_of_heads_with_and_without(h=18, t=1100, d=64):
    q, k, v, o = (rand(h, t, d) for _ in range(4))
    bias, causal = rand(t, t), (arange(h) // 3 % 2).to(torch.int32)
    launched = run(heads_with_and_without_bias_kernel, (cdiv(t, 64), h), (q, k, v, bias, causal, o, t, d**-0.5), o, D=d, BM=64, BN=64, num_warps=4, num_stages=3)

    def reference():
        s = q.float() @ k.float().transpose(1, 2) * d**-0.5
        i = torch.arange(t, device=q.device)
        for a in range(h):
            if a % 3 == 0:
                s[a] -= 0.5 / (a + 1) * (i[:, None] - i).abs()
            elif a % 3 == 1:
                s[a] += bias.float()
            if a // 3 % 2:
                s[a].masked_fill_(i > i[:, None], float("-inf"))
        return s.softmax(2) @ v.float()

    return against(launched, reference)


@triton.jit
def linked_blocks_matmul_kernel(first_ptr, next_ptr, col_ptr, block_ptr, x_ptr, y_ptr, length_ptr, N, B: tl.constexpr, BN: tl.constexpr):
    # A matrix of blocks whose rows are linked lists, times a dense one: follow the list, multiply, until it ends.
    row = tl.program_id(0)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    i = tl.arange(0, B)
    acc = tl.zeros((B, BN), dtype=tl.float32)
    node = tl.load(first_ptr + row)
    length = 0
    while node >= 0:
        col = tl.load(col_ptr + node)
        w = tl.load(block_ptr + node.to(tl.int64) * (B * B) + i[:, None] * B + i[None, :])
        x = tl.load(x_ptr + (col * B + i)[:, None] * N + n[None, :], mask=n[None, :] < N, other=0.0)
        acc = tl.dot(w, x, acc)
        node = tl.load(next_ptr + node)
        length += 1
    tl.store(y_ptr + (row * B + i)[:, None] * N + n[None, :], acc.to(tl.float16), mask=n[None, :] < N)
    if tl.program_id(1) == 0:
        tl.store(length_ptr + row, length)


@case
def attic_of_linked_blocks(rows=150, cols=140, n=500, b=32):
    used = torch.tensor([[(r * 7 + c * 5 + r * c) % 11 < (0 if r % 17 == 4 else 2) for c in range(cols)] for r in range(rows)])
    where = used.nonzero()
    places = [(i * 37 + 11) % len(where) if len(where) % 37 else i for i in range(len(where))]
    first, follow, col = [-1] * rows, [-1] * len(where), [0] * len(where)
    for (r, c), p in zip(where.tolist(), places):
        follow[p], first[r], col[p] = first[r], p, c
    first, follow, col = (torch.tensor(v, dtype=torch.int32, device="cuda") for v in (first, follow, col))
    blocks, x = rand(len(where), b, b), rand(cols * b, n)
    y, length = zeros(rows * b, n), zeros(rows, dtype="int32")
    launched = run(linked_blocks_matmul_kernel, (rows, cdiv(n, 64)), (first, follow, col, blocks, x, y, length, n), (y, length), B=b, BN=64, num_warps=4)

    def reference():
        dense = torch.zeros(rows, cols, b, b, device=x.device)
        order = torch.tensor(places, device=x.device)
        dense[where[:, 0].to(x.device), where[:, 1].to(x.device)] = blocks[order].float()
        return dense.transpose(1, 2).reshape(rows * b, cols * b) @ x.float(), used.sum(1).int().to(x.device)

    return against(launched, reference)


@triton.jit
def half_sums_matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Products of halves summed up in halves; the tile of A wraps around at its end instead of a mask.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    a = a_ptr + (m % M)[:, None] * K + tl.arange(0, BK)[None, :]
    b = b_ptr + tl.arange(0, BK)[:, None] * N + (n % N)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float16)
    for k in tl.range(0, K, BK, num_stages=4):
        acc = tl.dot(tl.load(a), tl.load(b), acc, out_dtype=tl.float16)
        a += BK
        b += BK * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@case
def attic_of_half_sums(m=2900, n=2700, k=192):
    a, b, c = rand(m, k), rand(k, n), zeros(m, n)
    launched = run(half_sums_matmul_kernel, (cdiv(m, 128), cdiv(n, 128)), (a, b, c, m, n, k), c, BM=128, BN=128, BK=32, num_warps=4)
    return against(launched, lambda: a.float() @ b.float())


@triton.jit
def columns_times_rows_kernel(a_ptr, b_ptr, c_ptr, row_max_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr):
    # A product as a sum of outer products, one column and one row after another; also each row's maximum in the tile and where it is.
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, 1, loop_unroll_factor=4):
        a = tl.load(a_ptr + rm * K + k, mask=rm < M, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + k * N + rn, mask=rn < N, other=0.0).to(tl.float32)
        acc += tl.broadcast_to(a[:, None], (BM, BN)) * tl.broadcast_to(b[None, :], (BM, BN))
    ok = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=ok)
    best = tl.max(tl.where(rn[None, :] < N, acc, float("-inf")), axis=1)
    tl.store(row_max_ptr + rm * tl.num_programs(1) + tl.program_id(1), best, mask=rm < M)


@case
def attic_of_columns_times_rows(m=700, n=900, k=301):
    a, b, c = rand(m, k), rand(k, n), zeros(m, n, dtype="float32")
    best = zeros(m, cdiv(n, 64), dtype="float32")
    launched = run(columns_times_rows_kernel, (cdiv(m, 32), cdiv(n, 64)), (a, b, c, best, m, n, k), (c, best), BM=32, BN=64, num_warps=1)

    def reference():
        y = a.float() @ b.float()
        return y, F.pad(y, (0, -n % 64), value=float("-inf")).view(m, -1, 64).amax(2)

    return against(launched, reference)
