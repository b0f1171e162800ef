"""Odd uses of the language: descriptors turned, instructions inline, splits and joins, too many warps, queues, dots of three axes."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import PROGRAMS, against, arange, case, cdiv, cleared, f32, f8, ints, rand, run, uniform, zeros


@triton.jit
def swap_last_axes(x_ptr, y_ptr, B, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # Descriptors of three axes: a block is loaded, turned, and stored by another descriptor; one warp.
    x = tl.make_tensor_descriptor(x_ptr, shape=[B, M, N], strides=[M * N, N, 1], block_shape=[1, BM, BN])
    y = tl.make_tensor_descriptor(y_ptr, shape=[B, N, M], strides=[M * N, M, 1], block_shape=[1, BN, BM])
    b, m, n = tl.program_id(2), tl.program_id(1) * BM, tl.program_id(0) * BN
    y.store([b, n, m], tl.permute(x.load([b, m, n]), (0, 2, 1)))


def with_descriptors(launched):
    """The launch after Triton was told where descriptors that kernels make may lie."""
    launch, args = launched

    def told(*args):
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
        return launch(*args)

    return told, args


@case
def last_axes_swapped_by_descriptors_one_warp():
    b, m, n = 24, 1000, 520
    x, y = rand(b, m, n, dtype="bfloat16"), zeros(b, n, m, dtype="bfloat16")
    launched = run(swap_last_axes, (cdiv(n, 32), cdiv(m, 64), b), (x, y, b, m, n), y, BM=64, BN=32, num_warps=1)
    return against(with_descriptors(launched), lambda: x.transpose(1, 2))


@triton.jit
def product_of_two_turned(a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Bytes of which both operands lie the wrong way, turned in registers; scales of rows and columns.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.int32)
    for k0 in range(0, K, BK):
        a = tl.load(a_ptr + (k0 + k)[:, None] * M + m[None, :], mask=(k0 + k < K)[:, None] & (m < M)[None, :], other=0)
        b = tl.load(b_ptr + n[:, None] * K + (k0 + k)[None, :], mask=(n < N)[:, None] & (k0 + k < K)[None, :], other=0)
        acc = tl.dot(tl.trans(a), tl.trans(b), acc, out_dtype=tl.int32)
    sa, sb = tl.load(sa_ptr + m, mask=m < M, other=0.0), tl.load(sb_ptr + n, mask=n < N, other=0.0)
    tl.store(c_ptr + m[:, None] * N + n[None, :], (acc.to(tl.float32) * sa[:, None] * sb[None, :]).to(tl.bfloat16), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def bytes_both_turned_64x32x64_two_warps_five_stages():
    m, n, k = 1024, 1000, 1504
    a, b = ints(-127, 128, k, m, dtype="int8"), ints(-127, 128, n, k, dtype="int8")
    sa, sb, c = uniform(m) / 100, uniform(n) / 100, zeros(m, n, dtype="bfloat16")
    grid = cdiv(m, 64), cdiv(n, 32)
    launched = run(product_of_two_turned, grid, (a, b, sa, sb, c, m, n, k), c, BM=64, BN=32, BK=64, num_warps=2, num_stages=5)
    return against(launched, lambda: (a.double().t() @ b.double().t()) * sa[:, None] * sb)


@triton.jit
def cross_covariance(q_ptr, k_ptr, v_ptr, t_ptr, o_ptr, T, D: tl.constexpr, DP: tl.constexpr, BT: tl.constexpr):
    # Attention among 48 channels of a head: their products over tokens first, and then the values times what they became.
    head = tl.program_id(0)
    d = tl.arange(0, DP)
    g, qq, kk = tl.zeros((DP, DP), tl.float32), tl.zeros((DP,), tl.float32), tl.zeros((DP,), tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        ok = (t < T)[:, None] & (d < D)[None, :]
        q = tl.load(q_ptr + (head * T + t)[:, None] * D + d[None, :], mask=ok, other=0.0)
        k = tl.load(k_ptr + (head * T + t)[:, None] * D + d[None, :], mask=ok, other=0.0)
        g = tl.dot(tl.trans(q), k, g)
        qq += tl.sum(q.to(tl.float32) * q.to(tl.float32), axis=0)
        kk += tl.sum(k.to(tl.float32) * k.to(tl.float32), axis=0)
    s = g / (tl.sqrt(qq)[:, None] * tl.sqrt(kk)[None, :] + 1e-6) * tl.load(t_ptr + head)
    s = tl.where((d < D)[None, :], s, float("-inf"))
    p = tl.exp(s - tl.max(s, axis=1)[:, None])
    p = (p / tl.sum(p, axis=1)[:, None]).to(q_ptr.dtype.element_ty)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        ok = (t < T)[:, None] & (d < D)[None, :]
        v = tl.load(v_ptr + (head * T + t)[:, None] * D + d[None, :], mask=ok, other=0.0)
        y = tl.dot(v, tl.trans(p))
        tl.store(o_ptr + (head * T + t)[:, None] * D + d[None, :], y.to(o_ptr.dtype.element_ty), mask=ok)


@case
def attention_among_48_channels_of_heads():
    heads, t, d = 512, 196, 48
    q, k, v, temperature, o = rand(heads, t, d), rand(heads, t, d), rand(heads, t, d), uniform(heads) * 3, zeros(heads, t, d)
    launched = run(cross_covariance, (heads,), (q, k, v, temperature, o, t), o, D=d, DP=64, BT=64)

    def reference():
        a, b = (F.normalize(z.float(), dim=1) for z in (q, k))
        p = (a.transpose(1, 2) @ b * temperature[:, None, None]).softmax(-1)
        return v.float() @ p.transpose(1, 2)

    return against(launched, reference)


@triton.jit
def softmax_of_packed_powers(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    # Powers of two of pairs in one instruction, written inline.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=float("-inf")).to(tl.float32)
    z = ((x - tl.max(x, axis=0)) * 1.4426950408889634).to(tl.bfloat16)
    e = tl.inline_asm_elementwise("ex2.approx.ftz.bf16x2 $0, $1;", "=r,r", [z], dtype=tl.bfloat16, is_pure=True, pack=2)
    total = tl.sum(e.to(tl.float32), axis=0)
    tl.store(y_ptr + row * N + i, (e.to(tl.float32) / total).to(tl.bfloat16), mask=i < N)


@case
def softmax_by_powers_of_pairs_inline():
    rows, n = 6000, 3000
    x, y = rand(rows, n, dtype="bfloat16"), zeros(rows, n, dtype="bfloat16")
    launched = run(softmax_of_packed_powers, (rows,), (x, y, n), y, BLOCK=4096, num_warps=8)

    def reference():
        z = x.float()
        e = torch.exp2(((z - z.amax(1, keepdim=True)) * math.log2(math.e)).bfloat16().float())
        return e / e.sum(1, keepdim=True)

    return against(launched, reference)


@triton.jit
def carry_save(a, b, c):
    high = tl.inline_asm_elementwise("lop3.b32 $0, $1, $2, $3, 0xE8;", "=r,r,r,r", [a, b, c], dtype=tl.int32, is_pure=True, pack=1)
    return high, a ^ b ^ c


@triton.jit
def bits_of_rows(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # Seven words of a lane become three by adders of bits before any bit is counted.
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.int32)
    for n0 in range(0, N, 7 * BLOCK):
        i = n0 + tl.arange(0, BLOCK)
        p = x_ptr + row * N + i
        a, b, c = tl.load(p, i < N, other=0), tl.load(p + BLOCK, i + BLOCK < N, other=0), tl.load(p + 2 * BLOCK, i + 2 * BLOCK < N, other=0)
        d, e, f = tl.load(p + 3 * BLOCK, i + 3 * BLOCK < N, other=0), tl.load(p + 4 * BLOCK, i + 4 * BLOCK < N, other=0), tl.load(p + 5 * BLOCK, i + 5 * BLOCK < N, other=0)
        g = tl.load(p + 6 * BLOCK, i + 6 * BLOCK < N, other=0)
        t0, s0 = carry_save(a, b, c)
        t1, s1 = carry_save(d, e, f)
        t2, ones = carry_save(s0, s1, g)
        fours, twos = carry_save(t0, t1, t2)
        total += libdevice.popc(ones) + 2 * libdevice.popc(twos) + 4 * libdevice.popc(fours)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


@case
def bits_of_rows_counted_after_adders_of_words():
    rows, n = 1000, 20000
    x, out = ints(-(2**31), 2**31, rows, n, dtype="int32"), zeros(rows, dtype="int32")
    launched = run(bits_of_rows, (rows,), (x, out, n), out, BLOCK=256)

    def reference():
        z = x.clone()
        z = z - ((z >> 1) & 0x55555555)
        z = (z & 0x33333333) + ((z >> 2) & 0x33333333)
        z = (z + (z >> 4)) & 0x0F0F0F0F
        return ((z & 255) + ((z >> 8) & 255) + ((z >> 16) & 255) + (z >> 24)).sum(1)

    return against(launched, reference)


@triton.jit
def norm_of_short_rows(x_ptr, g_ptr, y_ptr, rows, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r, i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None], tl.arange(0, BLOCK)[None, :]
    ok = (r < rows) & (i < N)
    x = tl.load(x_ptr + r * N + i, mask=ok, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1, keep_dims=True) / N
    d = tl.where(ok, x - mean, 0.0)
    var = tl.sum(d * d, axis=1, keep_dims=True) / N
    y = d / tl.sqrt(var + 1e-5) * tl.load(g_ptr + i, mask=i < N, other=0.0)
    tl.store(y_ptr + r * N + i, y.to(y_ptr.dtype.element_ty), mask=ok)


def norm_with_warps(rows, n, tile, warps):
    x, g, y = rand(rows, n), f32(n), zeros(rows, n)
    launched = run(norm_of_short_rows, (cdiv(rows, tile),), (x, g, y, rows, n), y, ROWS=tile, BLOCK=triton.next_power_of_2(n), num_warps=warps)
    return against(launched, lambda: F.layer_norm(x.float(), (n,), g))


@case
def one_row_of_250_by_sixteen_warps():
    return norm_with_warps(40000, 250, 1, 16)


@case
def four_rows_of_60_by_eight_warps():
    return norm_with_warps(300000, 60, 4, 8)


@case
def sixty_four_rows_of_30_by_one_warp():
    return norm_with_warps(600000, 30, 64, 1)


@triton.jit
def halves_added(re, im, R: tl.constexpr, GROUPS: tl.constexpr, HALF: tl.constexpr):
    # One stage by decimation in frequency: sums to the first half of each group, turned differences to the second.
    k = tl.arange(0, HALF)[None, None, :].to(tl.float32)
    wr, wi = tl.cos(k * (-3.14159265358979 / HALF)), tl.sin(k * (-3.14159265358979 / HALF))
    ar, br = tl.split(tl.permute(tl.reshape(re, (R, GROUPS, 2, HALF)), (0, 1, 3, 2)))
    ai, bi = tl.split(tl.permute(tl.reshape(im, (R, GROUPS, 2, HALF)), (0, 1, 3, 2)))
    dr, di = ar - br, ai - bi
    re = tl.permute(tl.join(ar + br, dr * wr - di * wi), (0, 1, 3, 2))
    im = tl.permute(tl.join(ai + bi, dr * wi + di * wr), (0, 1, 3, 2))
    return tl.reshape(re, (R, GROUPS * 2 * HALF)), tl.reshape(im, (R, GROUPS * 2 * HALF))


@triton.jit
def fourier_64(x_ptr, y_ptr, rows, R: tl.constexpr):
    # Six stages in registers by splits and joins; results are stored in the order of turned bits.
    r, i = tl.program_id(0) * R + tl.arange(0, R)[:, None], tl.arange(0, 64)[None, :]
    re = tl.load(x_ptr + (r * 64 + i) * 2, mask=r < rows, other=0.0)
    im = tl.load(x_ptr + (r * 64 + i) * 2 + 1, mask=r < rows, other=0.0)
    re, im = halves_added(re, im, R, 1, 32)
    re, im = halves_added(re, im, R, 2, 16)
    re, im = halves_added(re, im, R, 4, 8)
    re, im = halves_added(re, im, R, 8, 4)
    re, im = halves_added(re, im, R, 16, 2)
    re, im = halves_added(re, im, R, 32, 1)
    to = ((i & 1) << 5) | ((i & 2) << 3) | ((i & 4) << 1) | ((i & 8) >> 1) | ((i & 16) >> 3) | ((i & 32) >> 5)
    tl.store(y_ptr + (r * 64 + to) * 2, re, mask=r < rows)
    tl.store(y_ptr + (r * 64 + to) * 2 + 1, im, mask=r < rows)


@case
def fourier_of_64_by_splits_and_joins():
    rows = 60000
    x, y = f32(rows, 64, 2), zeros(rows, 64, 2, dtype="float32")
    launched = run(fourier_64, (cdiv(rows, 16),), (x, y, rows), y, R=16, num_warps=4)
    return against(launched, lambda: torch.view_as_real(torch.fft.fft(torch.view_as_complex(x.double()))))


@triton.jit
def set_bits(id_ptr, map_ptr, new_ptr, N, BLOCK: tl.constexpr):
    # Ids to bits of a map; a program counts the words that its bits were new in.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(id_ptr + i, mask=i < N, other=0)
    bit = (1 << (v & 31).to(tl.int32)).to(tl.int32)
    old = tl.atomic_or(map_ptr + (v >> 5), bit, mask=i < N, sem="relaxed")
    fresh = ((old & bit) == 0) & (i < N)
    tl.atomic_add(new_ptr, tl.sum(fresh.to(tl.int64), axis=0), sem="relaxed")


@case
def ids_to_a_map_of_bits_by_atomics():
    n, most = 4_000_000, 1 << 24
    ids, bits, new = ints(0, most, n, dtype="int64"), zeros(most // 32, dtype="int32"), zeros(1, dtype="int64")
    launched = run(set_bits, (cdiv(n, 1024),), (ids, bits, new, n), (bits, new), BLOCK=1024)

    def reference():
        there = torch.zeros(most, device=ids.device, dtype=torch.int64)
        there[ids] = 1
        words = (there.view(-1, 32) << torch.arange(32, device=ids.device)).sum(1)
        return words.int(), there.sum()[None]

    return against(cleared(launched, bits, new), reference)


@triton.jit
def small_heads_block_pointers(q_ptr, k_ptr, v_ptr, o_ptr, S, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Heads of 16 in single precision: the transposed keys come of a block pointer whose order is turned.
    head = tl.program_id(1)
    at = head * S * D
    q = tl.make_block_ptr(q_ptr + at, (S, D), (D, 1), (tl.program_id(0) * BM, 0), (BM, D), (1, 0))
    k = tl.make_block_ptr(k_ptr + at, (D, S), (1, D), (0, 0), (D, BN), (0, 1))
    v = tl.make_block_ptr(v_ptr + at, (S, D), (D, 1), (0, 0), (BN, D), (1, 0))
    o = tl.make_block_ptr(o_ptr + at, (S, D), (D, 1), (tl.program_id(0) * BM, 0), (BM, D), (1, 0))
    a = tl.load(q, boundary_check=(0,), padding_option="zero") * scale
    top, total, acc = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    for n0 in range(0, S, BN):
        s = tl.dot(a, tl.load(k, boundary_check=(1,), padding_option="zero"))
        s = tl.where((n0 + tl.arange(0, BN) < S)[None, :], s, float("-inf"))
        high = tl.maximum(top, tl.max(s, 1))
        p = tl.math.exp2(s - high[:, None])
        shrink = tl.math.exp2(top - high)
        acc = tl.dot(p, tl.load(v, boundary_check=(0,), padding_option="zero"), acc * shrink[:, None])
        total = total * shrink + tl.sum(p, 1)
        top = high
        k, v = tl.advance(k, (0, BN)), tl.advance(v, (BN, 0))
    tl.store(o, acc / total[:, None], boundary_check=(0,))


@case
def attention_of_heads_of_16_with_turned_block_pointers():
    heads, s, d = 96, 650, 16
    q, k, v, o = f32(heads, s, d), f32(heads, s, d), f32(heads, s, d), zeros(heads, s, d, dtype="float32")
    grid = cdiv(s, 128), heads
    launched = run(small_heads_block_pointers, grid, (q, k, v, o, s, 0.25 * math.log2(math.e)), o, D=d, BM=128, BN=16, num_warps=8)
    return against(launched, lambda: (q @ k.transpose(1, 2) * 0.25).softmax(-1) @ v)


@triton.jit
def rows_from_a_queue(x_ptr, begin_ptr, y_ptr, next_ptr, ROWS, BLOCK: tl.constexpr):
    # Programs take the next ragged row until none is left: log-softmax in two loops.
    row = tl.atomic_add(next_ptr, 1)
    while row < ROWS:
        begin, end = tl.load(begin_ptr + row), tl.load(begin_ptr + row + 1)
        top, total = tl.full((BLOCK,), -1e30, tl.float32), tl.zeros((BLOCK,), tl.float32)
        for n0 in range(begin, end, BLOCK):
            n = n0 + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + n, mask=n < end, other=-1e30).to(tl.float32)
            high = tl.maximum(top, x)
            total = total * tl.exp(top - high) + tl.where(n < end, tl.exp(x - high), 0.0)
            top = high
        high = tl.max(top, axis=0)
        lse = high + tl.log(tl.sum(total * tl.exp(top - high), axis=0))
        for n0 in range(begin, end, BLOCK):
            n = n0 + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + n, mask=n < end, other=0.0).to(tl.float32)
            tl.store(y_ptr + n, (x - lse).to(y_ptr.dtype.element_ty), mask=n < end)
        row = tl.atomic_add(next_ptr, 1)


@case
def ragged_rows_taken_from_a_queue():
    rows, most = 5000, 6000
    size = ints(1, most, rows, dtype="int64")
    begin = torch.cat((torch.zeros(1, device="cuda", dtype=torch.int64), size.cumsum(0))).int()
    x, y, counter = rand(rows * most, dtype="bfloat16"), zeros(rows * most, dtype="bfloat16"), zeros(1, dtype="int32")
    launched = run(rows_from_a_queue, (PROGRAMS * 8,), (x, begin, y, counter, rows), y, BLOCK=512, num_warps=4)

    def reference():
        sizes = size.tolist()
        end = sum(sizes)
        z = x[:end].float()
        row = torch.repeat_interleave(torch.arange(rows, device=x.device), size)
        total = torch.zeros(rows, device=x.device, dtype=torch.float64).index_add_(0, row, z.double().exp())
        made = torch.zeros(rows * most, device=x.device)
        made[:end] = z - total.log()[row].float()
        return made

    return against(cleared(launched, counter), reference)


@triton.jit
def covariances_moved(a_ptr, p_ptr, q_ptr, out_ptr, B, N: tl.constexpr, NP: tl.constexpr, BB: tl.constexpr):
    # A P A^T + Q of several 24x24 matrices in one program: two dots of three axes.
    b = tl.program_id(0) * BB + tl.arange(0, BB)[:, None, None]
    i, j = tl.arange(0, NP)[None, :, None], tl.arange(0, NP)[None, None, :]
    ok = (b < B) & (i < N) & (j < N)
    at = (b * N + i) * N + j
    a = tl.load(a_ptr + at, mask=ok, other=0.0)
    p = tl.load(p_ptr + at, mask=ok, other=0.0)
    ap = tl.dot(a, p, input_precision="ieee")
    y = tl.dot(ap, tl.permute(a, (0, 2, 1)), input_precision="ieee")
    y += tl.load(q_ptr + i * N + j, mask=(i < N) & (j < N), other=0.0)
    tl.store(out_ptr + at, y, mask=ok)


@case
def covariances_of_24_states_by_dots_of_three_axes():
    b, n = 12000, 24
    a, p, q, out = f32(b, n, n) / 5, f32(b, n, n), f32(n, n), zeros(b, n, n, dtype="float32")
    launched = run(covariances_moved, (cdiv(b, 4),), (a, p, q, out, b), out, N=n, NP=32, BB=4)
    return against(launched, lambda: a.double() @ p.double() @ a.double().transpose(1, 2) + q)


@triton.jit
def expected_places(x_ptr, out_ptr, H, W, beta, BLOCK: tl.constexpr):
    # Softmax over a plane with three running sums: of weights, of columns, and of rows.
    plane = tl.program_id(0)
    top, total, sx, sy = float("-inf"), 0.0, 0.0, 0.0
    for p0 in range(0, H * W, BLOCK):
        p = p0 + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + plane * H * W + p, mask=p < H * W, other=float("-inf")).to(tl.float32) * beta
        high = tl.maximum(top, tl.max(x, axis=0))
        e, shrink = tl.exp(x - high), tl.exp(top - high)
        total = total * shrink + tl.sum(e, axis=0)
        sx = sx * shrink + tl.sum(e * (p % W).to(tl.float32), axis=0)
        sy = sy * shrink + tl.sum(e * (p // W).to(tl.float32), axis=0)
        top = high
    tl.store(out_ptr + plane * 3, sx / total)
    tl.store(out_ptr + plane * 3 + 1, sy / total)
    tl.store(out_ptr + plane * 3 + 2, 1.0 / total)


@case
def expected_places_of_maps_by_running_sums():
    planes, h, w = 2720, 96, 73
    x, out = rand(planes, h, w), zeros(planes, 3, dtype="float32")
    launched = run(expected_places, (planes,), (x, out, h, w, 2.0), out, BLOCK=1024, num_warps=8)

    def reference():
        p = (x.float() * 2).view(planes, -1).softmax(1)
        at = torch.arange(h * w, device=x.device)
        return torch.stack((p @ (at % w).float(), p @ (at // w).float(), p.amax(1)), 1)

    return against(launched, reference)


@triton.jit
def response_norm(x_ptr, y_ptr, C, P, alpha, beta, bias, HALF: tl.constexpr, BLOCK: tl.constexpr):
    # A window of channels slides: one square enters, one leaves.
    n = tl.program_id(1)
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = x_ptr + n * C * P + p
    total = tl.zeros((BLOCK,), tl.float32)
    for c in range(0, HALF):
        x = tl.load(base + c * P, mask=(p < P) & (c < C), other=0.0).to(tl.float32)
        total += x * x
    for c in range(C):
        enters = tl.load(base + (c + HALF) * P, mask=(p < P) & (c + HALF < C), other=0.0).to(tl.float32)
        leaves = tl.load(base + (c - HALF - 1) * P, mask=(p < P) & (c > HALF), other=0.0).to(tl.float32)
        total += enters * enters - leaves * leaves
        x = tl.load(base + c * P, mask=p < P, other=0.0).to(tl.float32)
        y = x * tl.exp(-beta * tl.log(bias + alpha * total))
        tl.store(y_ptr + (n * C + c) * P + p, y.to(y_ptr.dtype.element_ty), mask=p < P)


@case
def responses_normed_over_a_sliding_window_of_channels():
    n, c, h, w = 24, 96, 55, 57
    x, y = rand(n, c, h, w), zeros(n, c, h, w)
    args = x, y, c, h * w, 0.1 / 5, 0.75, 2.0
    launched = run(response_norm, (cdiv(h * w, 128), n), args, y, HALF=2, BLOCK=128, num_warps=2)
    return against(launched, lambda: F.local_response_norm(x.float(), 5, 0.1, 0.75, 2.0))


@triton.jit
def soft_pool(x_ptr, y_ptr, H, W, BH: tl.constexpr, BW: tl.constexpr):
    # Means of 2x2 weighted by exponentials: a tile is reshaped to four axes, of which two are summed.
    plane = tl.program_id(2)
    h, w = tl.program_id(1) * 2 * BH + tl.arange(0, 2 * BH), tl.program_id(0) * 2 * BW + tl.arange(0, 2 * BW)
    x = tl.load(x_ptr + (plane * H + h)[:, None] * W + w[None, :], mask=(h < H)[:, None] & (w < W)[None, :], other=0.0).to(tl.float32)
    e = tl.exp(x)
    num = tl.sum(tl.sum(tl.reshape(x * e, (BH, 2, BW, 2)), axis=3), axis=1)
    den = tl.sum(tl.sum(tl.reshape(e, (BH, 2, BW, 2)), axis=3), axis=1)
    oh, ow = tl.program_id(1) * BH + tl.arange(0, BH), tl.program_id(0) * BW + tl.arange(0, BW)
    ok = (oh < H // 2)[:, None] & (ow < W // 2)[None, :]
    tl.store(y_ptr + (plane * (H // 2) + oh)[:, None] * (W // 2) + ow[None, :], (num / den).to(y_ptr.dtype.element_ty), mask=ok)


@case
def pools_weighted_by_exponentials_of_four_axes():
    planes, h, w = 512, 112, 114
    x, y = rand(planes, h, w, dtype="bfloat16"), zeros(planes, h // 2, w // 2, dtype="bfloat16")
    launched = run(soft_pool, (cdiv(w, 64), cdiv(h, 32), planes), (x, y, h, w), y, BH=16, BW=32)

    def reference():
        z = x.float()[:, None]
        return (F.avg_pool2d(z * z.exp(), 2) / F.avg_pool2d(z.exp(), 2))[:, 0]

    return against(launched, reference)


@triton.jit
def blur_by_bands(x_ptr, y_ptr, H, W, sigma, R: tl.constexpr, T: tl.constexpr):
    # A Gaussian along both axes is a matrix of bands on either side of a tile, made where it is used; margins are cut off.
    n = tl.program_id(2)
    i, j = tl.arange(0, T), tl.arange(0, T)
    h, w = tl.program_id(1) * (T - 2 * R) - R + i, tl.program_id(0) * (T - 2 * R) - R + j
    inside = ((h >= 0) & (h < H))[:, None] & ((w >= 0) & (w < W))[None, :]
    x = tl.load(x_ptr + (n * H + h)[:, None] * W + w[None, :], mask=inside, other=0.0)
    d = (i[:, None] - j[None, :]).to(tl.float32)
    g = tl.where(tl.abs(d) <= R, tl.exp(-d * d / (2 * sigma * sigma)), 0.0)
    norm = 0.0
    for k in tl.static_range(-R, R + 1):
        norm += tl.exp(-(k * k) / (2 * sigma * sigma))
    g = (g / norm).to(x.dtype)
    y = tl.dot(tl.dot(g, x).to(x.dtype), g.T)
    keep = ((i >= R) & (i < T - R) & (h < H))[:, None] & ((j >= R) & (j < T - R) & (w < W))[None, :]
    tl.store(y_ptr + (n * H + h)[:, None] * W + w[None, :], y.to(y_ptr.dtype.element_ty), mask=keep)


@case
def blur_by_two_products_with_matrices_of_bands():
    n, h, w, r, sigma = 12, 600, 805, 8, 2.5
    x, y = rand(n, h, w), zeros(n, h, w)
    launched = run(blur_by_bands, (cdiv(w, 48), cdiv(h, 48), n), (x, y, h, w, sigma), y, R=r, T=64)

    def reference():
        k = torch.arange(-r, r + 1, device=x.device).float()
        k = (-k * k / (2 * sigma * sigma)).exp()
        k = k / k.sum()
        return F.conv2d(F.conv2d(x.float()[:, None], k.view(1, 1, -1, 1), padding=(r, 0)), k.view(1, 1, 1, -1), padding=(0, r))[:, 0]

    return against(launched, reference)


@triton.jit
def worse_fall(high_1, low_1, fall_1, high_2, low_2, fall_2):
    return tl.maximum(high_1, high_2), tl.minimum(low_1, low_2), tl.maximum(tl.maximum(fall_1, fall_2), high_1 - low_2)


@triton.jit
def deepest_falls(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # The deepest fall from a peak before it: triples in order, joined by a reduction in double; blocks after blocks.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    peak, fall = tl.full((), -1e300, tl.float64), tl.full((), 0.0, tl.float64)
    for n0 in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * N + n0 + i, mask=n0 + i < N, other=0.0)
        high, low = tl.where(n0 + i < N, x, -1e300), tl.where(n0 + i < N, x, 1e300)
        h, l, f = tl.reduce((high, low, tl.zeros((BLOCK,), tl.float64)), 0, worse_fall)
        fall = tl.maximum(tl.maximum(fall, f), peak - l)
        peak = tl.maximum(peak, h)
    tl.store(out_ptr + row, fall)


@case
def deepest_falls_of_prices_by_reductions_of_triples():
    rows, n = 2000, 5000
    x, out = rand(rows, n, dtype="float64").cumsum(1), zeros(rows, dtype="float64")
    launched = run(deepest_falls, (rows,), (x, out, n), out, BLOCK=1024)
    return against(launched, lambda: (x.cummax(1)[0] - x).amax(1))


@triton.jit
def particles_attract(x_ptr, s_ptr, y_ptr, N, h, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Kernel values of a tile go into two dots, with scores and with places, and into a sum of rows.
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    x = tl.load(x_ptr + m[:, None] * D + d[None, :], mask=(m < N)[:, None], other=0.0)
    xx = tl.sum(x * x, axis=1)
    drive, places, weights = tl.zeros((BM, D), tl.float32), tl.zeros((BM, D), tl.float32), tl.zeros((BM,), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        z = tl.load(x_ptr + n[:, None] * D + d[None, :], mask=(n < N)[:, None], other=0.0)
        s = tl.load(s_ptr + n[:, None] * D + d[None, :], mask=(n < N)[:, None], other=0.0)
        far = xx[:, None] + tl.sum(z * z, axis=1)[None, :] - 2.0 * tl.dot(x, z.T, input_precision="tf32x3")
        k = tl.where((n < N)[None, :], tl.exp(-tl.maximum(far, 0.0) / h), 0.0)
        drive = tl.dot(k, s, drive)
        places = tl.dot(k, z, places)
        weights += tl.sum(k, axis=1)
    y = (drive + 2.0 / h * (x * weights[:, None] - places)) / N
    tl.store(y_ptr + m[:, None] * D + d[None, :], y, mask=(m < N)[:, None])


@case
def particles_moved_by_kernels_and_their_gradients():
    n, d = 5000, 32
    x, s, y = f32(n, d), f32(n, d), zeros(n, d, dtype="float32")
    launched = run(particles_attract, (cdiv(n, 32),), (x, s, y, n, 20.0), y, D=d, BM=32, BN=32)

    def reference():
        a = x.double()
        k = (-torch.cdist(a, a).square() / 20).exp()
        return (k @ s.double() + 0.1 * (a * k.sum(1, keepdim=True) - k @ a)) / n

    return against(launched, reference)


@triton.jit
def sine_network(p_ptr, w0_ptr, w1_ptr, b1_ptr, w2_ptr, b2_ptr, w3_ptr, out_ptr, N, H: tl.constexpr, BLOCK: tl.constexpr):
    # Two coordinates to three colors: the first layer by outer products, the next two by dots, the last by sums.
    i, h = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, H)
    ok = i < N
    u, v = tl.load(p_ptr + 2 * i, mask=ok, other=0.0), tl.load(p_ptr + 2 * i + 1, mask=ok, other=0.0)
    a = u[:, None] * tl.load(w0_ptr + h)[None, :] + v[:, None] * tl.load(w0_ptr + H + h)[None, :] + tl.load(w0_ptr + 2 * H + h)[None, :]
    a = tl.sin(30.0 * a).to(tl.float16)
    a = tl.dot(a, tl.load(w1_ptr + h[:, None] * H + h[None, :])) + tl.load(b1_ptr + h)[None, :]
    a = tl.sin(a).to(tl.float16)
    a = tl.dot(a, tl.load(w2_ptr + h[:, None] * H + h[None, :])) + tl.load(b2_ptr + h)[None, :]
    a = tl.sin(a)
    for c in tl.static_range(3):
        tl.store(out_ptr + i * 3 + c, tl.sigmoid(tl.sum(a * tl.load(w3_ptr + c * H + h)[None, :], axis=1)), mask=ok)


@case
def colors_of_places_by_a_network_of_sines():
    n, h = 250_001, 64
    p, w0, w1, b1 = uniform(n, 2), f32(3, h) / 10, rand(h, h) / 8, f32(h)
    w2, b2, w3, out = rand(h, h) / 8, f32(h), f32(3, h) / 8, zeros(n, 3, dtype="float32")
    launched = run(sine_network, (cdiv(n, 64),), (p, w0, w1, b1, w2, b2, w3, out, n), out, H=h, BLOCK=64)

    def reference():
        a = (30 * (p @ w0[:2] + w0[2])).sin()
        a = (a @ w1.float() + b1).sin()
        return ((a @ w2.float() + b2).sin() @ w3.t()).sigmoid()

    return against(launched, reference)


@triton.jit
def conjugate_transposed(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # Pairs of a real and an imaginary part are the last of three axes: loaded, turned and negated as a tile.
    m, n, c = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, 2)
    ok = (m < M)[:, None, None] & (n < N)[None, :, None]
    x = tl.load(x_ptr + (m[:, None, None] * N + n[None, :, None]) * 2 + c[None, None, :], mask=ok, other=0.0)
    x = tl.permute(x, (1, 0, 2)) * tl.where(c == 0, 1.0, -1.0)[None, None, :]
    out = tl.permute(ok, (1, 0, 2))
    tl.store(y_ptr + (n[:, None, None] * M + m[None, :, None]) * 2 + c[None, None, :], x, mask=out)


@case
def complex_matrix_to_its_adjoint_in_three_axes():
    m, n = 2050, 2999
    x, y = f32(m, n, 2), zeros(n, m, 2, dtype="float32")
    launched = run(conjugate_transposed, (cdiv(n, 32), cdiv(m, 32)), (x, y, m, n), y, BM=32, BN=32)
    return against(launched, lambda: x.transpose(0, 1) * torch.tensor([1.0, -1.0], device=x.device))


@triton.jit
def colors_of_mosaic(x_ptr, y_ptr, H, W, black, BLOCK: tl.constexpr):
    # Three colors of each place from nine neighbors, chosen by whether row and column are even.
    h, n = tl.program_id(1), tl.program_id(2)
    w = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    u, d = n * H * W + tl.maximum(h - 1, 0) * W, n * H * W + tl.minimum(h + 1, H - 1) * W
    c = n * H * W + h * W
    l, r = tl.maximum(w - 1, 0), tl.minimum(w + 1, W - 1)
    ok = w < W
    ul, uc, ur = tl.load(x_ptr + u + l, ok, other=0).to(tl.int32), tl.load(x_ptr + u + w, ok, other=0).to(tl.int32), tl.load(x_ptr + u + r, ok, other=0).to(tl.int32)
    cl, cc, cr = tl.load(x_ptr + c + l, ok, other=0).to(tl.int32), tl.load(x_ptr + c + w, ok, other=0).to(tl.int32), tl.load(x_ptr + c + r, ok, other=0).to(tl.int32)
    dl, dc, dr = tl.load(x_ptr + d + l, ok, other=0).to(tl.int32), tl.load(x_ptr + d + w, ok, other=0).to(tl.int32), tl.load(x_ptr + d + r, ok, other=0).to(tl.int32)
    cross, diagonal = (uc + dc + cl + cr + 2) >> 2, (ul + ur + dl + dr + 2) >> 2
    across, along = (cl + cr + 1) >> 1, (uc + dc + 1) >> 1
    even_row, even_col = h % 2 == 0, w % 2 == 0
    red = tl.where(even_row, tl.where(even_col, cc, across), tl.where(even_col, along, diagonal))
    blue = tl.where(even_row, tl.where(even_col, diagonal, along), tl.where(even_col, across, cc))
    green = tl.where(even_row == even_col, cross, cc)
    at = n * 3 * H * W + h * W + w
    tl.store(y_ptr + at, tl.maximum(red - black, 0).to(tl.float16), ok)
    tl.store(y_ptr + at + H * W, tl.maximum(green - black, 0).to(tl.float16), ok)
    tl.store(y_ptr + at + 2 * H * W, tl.maximum(blue - black, 0).to(tl.float16), ok)


@case
def colors_of_a_mosaic_of_sixteen_bits():
    n, h, w, black = 10, 600, 802, 64
    x, y = ints(0, 1024, n, h, w, dtype="int16"), zeros(n, 3, h, w)
    launched = run(colors_of_mosaic, (cdiv(w, 512), h, n), (x, y, h, w, black), y, BLOCK=512)

    def reference():
        z = x.int()
        p = F.pad(z.float()[:, None], (1, 1, 1, 1), mode="replicate")[:, 0].int()
        uc, dc, cl, cr = p[:, :-2, 1:-1], p[:, 2:, 1:-1], p[:, 1:-1, :-2], p[:, 1:-1, 2:]
        corner = p[:, :-2, :-2] + p[:, :-2, 2:] + p[:, 2:, :-2] + p[:, 2:, 2:]
        cross, diagonal, across, along = (uc + dc + cl + cr + 2) >> 2, (corner + 2) >> 2, (cl + cr + 1) >> 1, (uc + dc + 1) >> 1
        row, col = (torch.arange(h, device=x.device) % 2 == 0)[:, None], torch.arange(w, device=x.device) % 2 == 0
        red = torch.where(row, torch.where(col, z, across), torch.where(col, along, diagonal))
        blue = torch.where(row, torch.where(col, diagonal, along), torch.where(col, across, z))
        green = torch.where(row == col, cross, z)
        return (torch.stack((red, green, blue), 1) - black).clamp(min=0)

    return against(launched, reference)


@triton.jit
def taps_one_by_one(x_ptr, w_ptr, y_ptr, N, OUT, TAPS, STEP, BLOCK: tl.constexpr):
    # A filter of 127 taps that keeps one of three: loads that move by one, taps as scalars, FP8 inputs.
    row = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), tl.float32)
    p = x_ptr + row * N + i * STEP
    for t in tl.range(0, TAPS, loop_unroll_factor=4):
        acc += tl.load(p + t, mask=i < OUT, other=0.0).to(tl.float32) * tl.load(w_ptr + t)
    tl.store(y_ptr + row * OUT + i, acc.to(tl.float16), mask=i < OUT)


@case
def filter_of_127_taps_keeps_one_of_three_of_fp8():
    rows, out, taps, step = 64, 9001, 127, 3
    n = (out - 1) * step + taps
    x, w, y = f8(rows, n, dtype="float8_e5m2"), f32(taps) / 11, zeros(rows, out)
    launched = run(taps_one_by_one, (cdiv(out, 512), rows), (x, w, y, n, out, taps, step), y, BLOCK=512)
    return against(launched, lambda: F.conv1d(x.float()[:, None], w[None, None], stride=step)[:, 0])


@triton.jit
def masked_tiles_template(
    q_ptr, k_ptr, v_ptr, full_n, full_idx, part_n, part_idx, doc_ptr, o_ptr, S, scale, MAXB, D: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr,
):  # fmt: skip
    # Blocks that are seen whole by one list, blocks that are seen in part by another, whose places are masked by documents.
    mb, head = tl.program_id(0), tl.program_id(1)
    m, d = mb * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(q_ptr + (head * S + m)[:, None] * D + d[None, :])
    doc_m = tl.load(doc_ptr + m)
    top, total, acc = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    for part in tl.static_range(2):
        count = tl.load((part_n if part else full_n) + mb)
        for b in range(count):
            n = tl.load((part_idx if part else full_idx) + mb * MAXB + b) * BN + tl.arange(0, BN)
            k = tl.load(k_ptr + (head * S + n)[None, :] * D + d[:, None])
            s = tl.dot(q, k) * scale
            if part:
                s = tl.where((n[None, :] <= m[:, None]) & (tl.load(doc_ptr + n)[None, :] == doc_m[:, None]), s, float("-inf"))
            high = tl.maximum(top, tl.max(s, 1))
            safe = tl.where(high == float("-inf"), 0.0, high)
            p, shrink = tl.exp2(s - safe[:, None]), tl.exp2(top - safe)
            v = tl.load(v_ptr + (head * S + n)[:, None] * D + d[None, :])
            acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v)
            total = total * shrink + tl.sum(p, 1)
            top = high
    total = tl.where(total == 0.0, 1.0, total)
    tl.store(o_ptr + (head * S + m)[:, None] * D + d[None, :], (acc / total[:, None]).to(o_ptr.dtype.element_ty))


@case
def attention_of_whole_and_partial_blocks_by_two_lists():
    heads, s, d, bm, bn = 16, 2048, 64, 64, 32
    q, k, v, o = rand(heads, s, d), rand(heads, s, d), rand(heads, s, d), zeros(heads, s, d)
    doc = (arange(s) // 700).int()
    seen = (doc[:, None] == doc) & (arange(s)[:, None] >= arange(s))
    tiles = seen.view(s // bm, bm, s // bn, bn).permute(0, 2, 1, 3).flatten(2)
    whole, some = tiles.all(2), tiles.any(2) & ~tiles.all(2)
    full_n, part_n = whole.sum(1).int(), some.sum(1).int()
    full_idx, part_idx = ((~z).int().sort(dim=1, stable=True)[1].int() for z in (whole, some))
    args = q, k, v, full_n, full_idx, part_n, part_idx, doc, o, s, d**-0.5 * math.log2(math.e), s // bn
    launched = run(masked_tiles_template, (s // bm, heads), args, o, D=d, BM=bm, BN=bn)
    return against(launched, lambda: F.scaled_dot_product_attention(q.float(), k.float(), v.float(), seen))
