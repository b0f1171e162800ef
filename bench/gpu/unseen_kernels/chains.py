"""Chains: dots whose results are masked, scanned, reduced or cast for the next one, and operands computed, gathered, joined or turned before them."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, f8, ints, rand, run, uniform, viewed, zeros


@triton.jit
def masked_three(a_ptr, b_ptr, c_ptr, d_ptr, y_ptr, S: tl.constexpr):
    # D (band(tril(A B) C)): each product is masked by another rule before the next takes it, the last as its second operand.
    i, j = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    at = tl.program_id(0) * S * S + i * S + j
    x = tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at))
    x = tl.where(i >= j, x, 0.0).to(a_ptr.dtype.element_ty)
    x = tl.dot(x, tl.load(c_ptr + at))
    x = tl.where((i - j < 9) & (j - i < 9), x, 0.0).to(a_ptr.dtype.element_ty)
    tl.store(y_ptr + at, tl.dot(tl.load(d_ptr + at), x).to(y_ptr.dtype.element_ty))


@case
def three_dots_of_64_through_a_triangle_and_a_band():
    n, s = 3000, 64
    a, b, c, d, y = (*(rand(n, s, s) / 8 for _ in range(4)), zeros(n, s, s))
    launched = run(masked_three, (n,), (a, b, c, d, y), y, S=s)

    def reference():
        x = (a.float() @ b.float()).tril().half().float() @ c.float()
        return d.float() @ x.tril(8).triu(-8).half().float()

    return against(launched, reference)


@triton.jit
def best_pairs_of_lists(x_ptr, z_ptr, left_ptr, right_ptr, best_ptr, where_ptr, N, D: tl.constexpr, L: tl.constexpr, R: tl.constexpr, BD: tl.constexpr):
    # Rows of two tables by two lists of ids, some of which are empty: all their products, and of each left one the best right one.
    p = tl.program_id(0)
    l, r = tl.arange(0, L), tl.arange(0, R)
    left, right = tl.load(left_ptr + p * L + l), tl.load(right_ptr + p * R + r)
    acc = tl.zeros((L, R), tl.float32)
    for d0 in tl.static_range(0, D, BD):
        d = d0 + tl.arange(0, BD)
        x = tl.load(x_ptr + left[:, None] * D + d[None, :], mask=(left >= 0)[:, None], other=0.0)
        z = tl.load(z_ptr + right[:, None] * D + d[None, :], mask=(right >= 0)[:, None], other=0.0)
        acc = tl.dot(x, z.T, acc)
    acc = tl.where((right >= 0)[None, :], acc, -1e4)
    best, where = tl.max(acc, axis=1, return_indices=True)
    tl.store(best_ptr + p * L + l, tl.where(left >= 0, best, 0.0))
    tl.store(where_ptr + p * L + l, tl.where(left >= 0, tl.sum(tl.where(r[None, :] == where[:, None], right[None, :], 0), axis=1), -1))


@case
def best_of_32_right_rows_for_16_left_ones_by_lists():
    pairs, n, d = 6000, 50000, 192
    x, z = rand(n, d, dtype="bfloat16"), rand(n, d, dtype="bfloat16")
    left, right = ints(-1, n, pairs, 16), ints(-1, n, pairs, 32)
    best, where = zeros(pairs, 16, dtype="float32"), zeros(pairs, 16, dtype="int32")
    launched = run(best_pairs_of_lists, (pairs,), (x, z, left, right, best, where, n), (best, where), D=d, L=16, R=32, BD=64, num_warps=2)
    of_chosen = lambda chosen: torch.where(left >= 0, (x[left].float() * z[chosen].float()).sum(2), 0.0)  # noqa: E731

    def reference():
        s = torch.einsum("pld,prd->plr", x[left].float(), z[right].float())
        s = torch.where((right >= 0)[:, None], s, -1e4)
        best = torch.where(left >= 0, s.amax(2), 0.0)
        return best, best

    return against(viewed(launched, lambda outs: (outs[0], of_chosen(outs[1]))), reference)


@triton.jit
def product_of_patched_weights(x_ptr, w_ptr, delta_ptr, scale_ptr, pick_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # The second operand from four loads: weights, a patch of bytes, its scale a row, and bits that say which of it are on.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
        w = tl.load(w_ptr + k[:, None] * N + n[None, :])
        delta = tl.load(delta_ptr + k[:, None] * N + n[None, :])
        on = (tl.load(pick_ptr + (k[:, None] * N + n[None, :]) // 32) >> (n & 31)[None, :]) & 1
        s = tl.load(scale_ptr + k)
        patched = w.to(tl.float32) + tl.where(on != 0, delta.to(tl.float32) * s[:, None], 0.0)
        acc = tl.dot(x, patched.to(x.dtype), acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def weights_patched_by_bytes_where_bits_are_on():
    m, n, k = 700, 1536, 1024
    x, w, y = rand(m, k, dtype="bfloat16"), rand(k, n, dtype="bfloat16") / 32, zeros(m, n, dtype="bfloat16")
    delta, scale, pick = ints(-90, 90, k, n, dtype="int8"), uniform(k) / 2000, ints(-(2**31), 2**31 - 1, k, n // 32)
    launched = run(product_of_patched_weights, (cdiv(m, 64), n // 128), (x, w, delta, scale, pick, y, m, n, k), y, BM=64, BN=128, BK=32, num_warps=8)

    def reference():
        on = (pick[:, :, None] >> arange(32)) & 1
        return x.float() @ (w.float() + on.reshape(k, n) * delta * scale[:, None]).bfloat16().float()

    return against(launched, reference)


@triton.jit
def two_sums_in_turn(a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):
    # FP8: blocks of even and of odd number add to sums of their own, which join a third one, scaled, once in a group.
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    groups = tl.cdiv(K, G)
    for g in range(groups):
        even = tl.zeros((BM, BN), tl.float32)
        odd = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, G, 2 * BK):
            at = g * G + k0 + k
            a = tl.load(a_ptr + m[:, None] * K + at[None, :], mask=(at < K)[None, :], other=0.0)
            b = tl.load(b_ptr + n[None, :] * K + at[:, None], mask=(at < K)[:, None], other=0.0)
            even = tl.dot(a, b, even)
            at += BK
            a = tl.load(a_ptr + m[:, None] * K + at[None, :], mask=(at < K)[None, :], other=0.0)
            b = tl.load(b_ptr + n[None, :] * K + at[:, None], mask=(at < K)[:, None], other=0.0)
            odd = tl.dot(a, b, odd)
        total += (even + odd) * tl.load(sa_ptr + m * groups + g)[:, None] * tl.load(sb_ptr + n * groups + g)[None, :]
    tl.store(c_ptr + m[:, None] * N + n[None, :], total.to(c_ptr.dtype.element_ty))


@case
def fp8_blocks_in_two_sums_in_turn_and_groups_of_256():
    m, n, k, g = 1024, 1536, 2400, 256
    a, b, c, groups = f8(m, k), f8(n, k), zeros(m, n, dtype="bfloat16"), cdiv(k, g)
    sa, sb = uniform(m, groups) / 9 + 0.1, uniform(n, groups) / 9 + 0.1
    launched = run(two_sums_in_turn, (n // 64, m // 64), (a, b, sa, sb, c, m, n, k), c, BM=64, BN=64, BK=64, G=g, num_stages=3)

    def reference():
        wide = [(x.float() * s.repeat_interleave(g, 1)[:, :k]) for x, s in ((a, sa), (b, sb))]
        return wide[0] @ wide[1].t()

    return against(launched, reference)


@triton.jit
def energies_of_groups(x_ptr, w_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):
    # Of x W only the root of each group's sum of squares is kept: the product is taken apart in three axes.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(k < K)[:, None], other=0.0)
        acc = tl.dot(x, w, acc)
    parts = tl.reshape(acc, (BM, BN // G, G))
    energy = tl.sqrt(tl.sum(parts * parts, axis=2))
    g = tl.program_id(1) * (BN // G) + tl.arange(0, BN // G)
    tl.store(out_ptr + m[:, None] * (N // G) + g[None, :], energy, mask=(m < M)[:, None])


@case
def energies_of_groups_of_eight_products():
    m, n, k, g = 5000, 512, 360, 8
    x, w, out = rand(m, k), rand(n, k) / 19, zeros(m, n // g, dtype="float32")
    launched = run(energies_of_groups, (cdiv(m, 64), n // 128), (x, w, out, m, n, k), out, BM=64, BN=128, BK=64, G=g)
    return against(launched, lambda: (x.float() @ w.float().t()).reshape(m, n // g, g).square().sum(2).sqrt())


@triton.jit
def spectra_between_antennas(re_ptr, im_ptr, w_ptr, out_re_ptr, out_im_ptr, T, FREQ, B: tl.constexpr, A: tl.constexpr, BT: tl.constexpr):
    # For B frequencies at a time, the matrices of 16 antennas summed over time, weighted: four dots of three axes a step.
    f = tl.program_id(0) * B + tl.arange(0, B)[:, None, None]
    row, col = tl.arange(0, A)[None, :, None], tl.arange(0, A)[None, None, :]
    t = tl.arange(0, BT)[None, None, :]
    real = tl.zeros((B, A, A), tl.float32)
    imag = tl.zeros((B, A, A), tl.float32)
    for t0 in range(0, T, BT):
        at = (f * A + row) * T + t0 + t
        ok = (t0 + t < T) & (f < FREQ)
        re, im = tl.load(re_ptr + at, mask=ok, other=0.0), tl.load(im_ptr + at, mask=ok, other=0.0)
        w = tl.load(w_ptr + f * T + t0 + t, mask=ok, other=0.0)
        wre, wim = tl.permute((re * w).to(re.dtype), (0, 2, 1)), tl.permute((im * w).to(re.dtype), (0, 2, 1))
        real = tl.dot(re, wre, real)
        real = tl.dot(im, wim, real)
        imag = tl.dot(im, wre, imag)
        imag -= tl.dot(re, wim)
    at = (f * A + row) * A + col
    tl.store(out_re_ptr + at, real, mask=f < FREQ)
    tl.store(out_im_ptr + at, imag, mask=f < FREQ)


@case
def spectra_between_16_antennas_of_four_frequencies_a_program():
    freq, a, t = 1025, 16, 600
    re, im, w = rand(freq, a, t), rand(freq, a, t), uniform(freq, t)
    real, imag = zeros(freq, a, a, dtype="float32"), zeros(freq, a, a, dtype="float32")
    launched = run(spectra_between_antennas, (cdiv(freq, 4),), (re, im, w, real, imag, t, freq), (real, imag), B=4, A=a, BT=32)

    def reference():
        z = torch.complex(re.float(), im.float())
        y = (z * w[:, None]) @ z.mH
        return y.real, y.imag

    return against(launched, reference)


@triton.jit
def weighted_normal_equations(x_ptr, w_ptr, y_ptr, g_ptr, h_ptr, N, P: tl.constexpr, BN: tl.constexpr):
    # X' W X and X' W y in double: the dot's first operand is weighted and turned, the right side a sum down the same tile.
    b = tl.program_id(0).to(tl.int64)
    p = tl.arange(0, P)
    g = tl.zeros((P, P), tl.float64)
    h = tl.zeros((P,), tl.float64)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        x = tl.load(x_ptr + (b * N + n)[:, None] * P + p[None, :], mask=(n < N)[:, None], other=0.0)
        w = tl.load(w_ptr + b * N + n, mask=n < N, other=0.0)
        y = tl.load(y_ptr + b * N + n, mask=n < N, other=0.0)
        xw = x * w[:, None]
        g = tl.dot(tl.trans(xw), x, g, out_dtype=tl.float64)
        h += tl.sum(xw * y[:, None], axis=0)
    tl.store(g_ptr + (b * P + p)[:, None] * P + p[None, :], g)
    tl.store(h_ptr + b * P + p, h)


@case
def weighted_normal_equations_of_32_unknowns_in_double():
    b, n, p = 264, 500, 32
    x, w, y = rand(b, n, p, dtype="float64"), uniform(b, n).double(), rand(b, n, dtype="float64")
    g, h = zeros(b, p, p, dtype="float64"), zeros(b, p, dtype="float64")
    launched = run(weighted_normal_equations, (b,), (x, w, y, g, h, n), (g, h), P=p, BN=32)
    return against(launched, lambda: ((x * w[..., None]).mT @ x, ((x * w[..., None]).mT @ y[..., None])[..., 0]))


@triton.jit
def bytes_less_zero_points(a_ptr, b_ptr, za_ptr, zb_ptr, s_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Bytes with zero points on both sides: sums of rows and of columns come of the tiles that the dot takes.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.int32)
    rows = tl.zeros((BM,), tl.int32)
    cols = tl.zeros((BN,), tl.int32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0)
        b = tl.load(b_ptr + n[None, :] * K + k[:, None], mask=(n < N)[None, :] & (k < K)[:, None], other=0)
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
        rows += tl.sum(a.to(tl.int32), axis=1)
        cols += tl.sum(b.to(tl.int32), axis=0)
    za, zb = tl.load(za_ptr + m, mask=m < M, other=0), tl.load(zb_ptr + n, mask=n < N, other=0)
    exact = acc - za[:, None] * cols[None, :] - zb[None, :] * rows[:, None] + K * za[:, None] * zb[None, :]
    y = exact.to(tl.float32) * tl.load(s_ptr + n, mask=n < N, other=0.0)[None, :]
    tl.store(c_ptr + m[:, None] * N + n[None, :], y.to(c_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def bytes_less_zero_points_of_rows_and_columns():
    m, n, k = 1100, 900, 1072
    a, b, za, zb = ints(-128, 128, m, k, dtype="int8"), ints(-128, 128, n, k, dtype="int8"), ints(-20, 20, m), ints(-20, 20, n)
    s, c = uniform(n) / 1000, zeros(m, n, dtype="float16")
    launched = run(bytes_less_zero_points, (cdiv(m, 64), cdiv(n, 64)), (a, b, za, zb, s, c, m, n, k), c, BM=64, BN=64, BK=64, num_stages=4)
    return against(launched, lambda: (a.double() - za[:, None]) @ (b.double() - zb[:, None]).t() * s)


@triton.jit
def squared_scores_decayed(q_ptr, k_ptr, v_ptr, o_ptr, T, slope, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Causal sums of values by squared scores that fade with distance, no softmax: FP8 scores are cast back to FP8 for the second dot.
    head = tl.program_id(1)
    start = tl.program_id(0) * BM
    m, d = start + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(q_ptr + (head * T + m)[:, None] * D + d[None, :], mask=(m < T)[:, None], other=0.0)
    acc = tl.zeros((BM, D), tl.float32)
    for n0 in range(0, min(start + BM, T), BN):
        n = n0 + tl.arange(0, BN)
        k = tl.load(k_ptr + (head * T + n)[None, :] * D + d[:, None], mask=(n < T)[None, :], other=0.0)
        s = tl.dot(q, k) * scale
        fade = tl.exp2((n[None, :] - m[:, None]).to(tl.float32) * slope)
        p = tl.where(m[:, None] >= n[None, :], s * s * fade, 0.0)
        v = tl.load(v_ptr + (head * D + d)[None, :] * T + n[:, None], mask=(n < T)[:, None], other=0.0)
        acc = tl.dot(tl.minimum(p, 448.0).to(v.dtype), v, acc)
    tl.store(o_ptr + (head * T + m)[:, None] * D + d[None, :], acc.to(o_ptr.dtype.element_ty), mask=(m < T)[:, None])


@case
def squared_fp8_scores_that_fade_times_turned_fp8_values():
    heads, t, d = 24, 1008, 64
    q, k, v, o = f8(heads, t, d), f8(heads, t, d), f8(heads, d, t), zeros(heads, t, d, dtype="bfloat16")
    args = q, k, v, o, t, 0.015625, d**-0.5
    launched = run(squared_scores_decayed, (cdiv(t, 64), heads), args, o, D=d, BM=64, BN=64, num_stages=3)

    def reference():
        back = arange(t)[:, None] - arange(t)
        p = (q.float() @ k.float().mT * d**-0.5).square() * torch.exp2(back * -0.015625)
        return p.tril().clamp(max=448).to(v.dtype).float() @ v.float().mT

    return against(launched, reference)


@triton.jit
def gram_of_normed_rows(x_ptr, mean_ptr, rstd_ptr, g_ptr, T, C, BC: tl.constexpr, BT: tl.constexpr):
    # Gram matrix of channels of normalized tokens; programs below the diagonal leave, and the others write their tile turned as well.
    pi, pj, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if pi > pj:
        return
    i, j = pi * BC + tl.arange(0, BC), pj * BC + tl.arange(0, BC)
    acc = tl.zeros((BC, BC), tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        mean = tl.load(mean_ptr + b * T + t, mask=t < T, other=0.0)
        rstd = tl.load(rstd_ptr + b * T + t, mask=t < T, other=0.0)
        left = tl.load(x_ptr + (b * T + t)[:, None] * C + i[None, :], mask=(t < T)[:, None] & (i < C)[None, :], other=0.0)
        right = tl.load(x_ptr + (b * T + t)[:, None] * C + j[None, :], mask=(t < T)[:, None] & (j < C)[None, :], other=0.0)
        left = ((left.to(tl.float32) - mean[:, None]) * rstd[:, None]).to(x_ptr.dtype.element_ty)
        right = ((right.to(tl.float32) - mean[:, None]) * rstd[:, None]).to(x_ptr.dtype.element_ty)
        acc = tl.dot(left.T, right, acc)
    acc = acc / T
    inside = (i < C)[:, None] & (j < C)[None, :]
    tl.store(g_ptr + (b * C + i)[:, None] * C + j[None, :], acc, mask=inside)
    if pi < pj:
        tl.store(g_ptr + (b * C + j)[:, None] * C + i[None, :], acc.T, mask=inside.T)


@case
def gram_matrices_of_channels_of_tokens_normed_as_they_come():
    b, t, c = 16, 900, 200
    x, g = rand(b, t, c) * 2 + 1, zeros(b, c, c, dtype="float32")
    mean, rstd = x.float().mean(2), x.float().var(2, correction=0).add(1e-5).rsqrt()
    side = cdiv(c, 64)
    launched = run(gram_of_normed_rows, (side, side, b), (x, mean, rstd, g, t, c), g, BC=64, BT=32)

    def reference():
        z = (x.float() - mean[..., None]) * rstd[..., None]
        return z.mT @ z / t

    return against(launched, reference)


@triton.jit
def series_until_small(x_ptr, y_ptr, steps_ptr, eps, S: tl.constexpr):
    # I + X + X X + ... until the last power's largest element is small: dots in a loop that their own result ends.
    b = tl.program_id(0)
    i, j = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    x = tl.load(x_ptr + (b * S + i) * S + j)
    power = x
    total = tl.where(i == j, 1.0, 0.0) + x
    steps = 1
    while tl.max(tl.max(tl.abs(power), axis=1), axis=0) > eps:
        power = tl.dot(power, x, input_precision="ieee")
        total += power
        steps += 1
    tl.store(y_ptr + (b * S + i) * S + j, total)
    tl.store(steps_ptr + b, (steps > 1).to(tl.int32))


@case
def series_of_powers_of_16x16_until_small():
    b, s = 4000, 16
    x, y, steps = f32(b, s, s) / 10, zeros(b, s, s, dtype="float32"), zeros(b, dtype="int32")
    launched = run(series_until_small, (b,), (x, y, steps, 1e-5), (y, steps), S=s, num_warps=1)
    return against(launched, lambda: (torch.linalg.inv(torch.eye(s, device=x.device) - x.double()), torch.ones_like(steps)))


@triton.jit
def narrow_product_by_slices(x_ptr, w_ptr, y_ptr, N, K, M: tl.constexpr, BN: tl.constexpr, S: tl.constexpr, BK: tl.constexpr):
    # 16 rows only: K is cut in S slices that are an axis of the dot, summed at the end.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    m = tl.arange(0, M)
    s, k = tl.arange(0, S), tl.arange(0, BK)
    span = K // S
    acc = tl.zeros((S, M, BN), tl.float32)
    for k0 in range(0, span, BK):
        at = s[:, None] * span + k0 + k[None, :]
        x = tl.load(x_ptr + m[None, :, None] * K + at[:, None, :])
        w = tl.load(w_ptr + at[:, :, None] * N + n[None, None, :])
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], tl.sum(acc, axis=0).to(y_ptr.dtype.element_ty))


@case
def sixteen_rows_with_slices_of_k_as_an_axis_of_eight_warps():
    m, n, k = 16, 4096, 2048
    x, w, y = rand(m, k), rand(k, n) / 45, zeros(m, n)
    launched = run(narrow_product_by_slices, (n // 32,), (x, w, y, n, k), y, M=m, BN=32, S=8, BK=32, num_warps=8)
    return against(launched, lambda: x.float() @ w.float())


@triton.jit
def values_by_running_scores(q_ptr, k_ptr, v_ptr, o_ptr, T: tl.constexpr, D: tl.constexpr):
    # Scores of a block, positive, summed along the keys so far, and divided by their total: a scan between two dots.
    b = tl.program_id(0)
    t, d = tl.arange(0, T), tl.arange(0, D)
    at = (b * T + t)[:, None] * D + d[None, :]
    q, k = tl.load(q_ptr + at), tl.load(k_ptr + at)
    s = tl.dot(q, k.T)
    s = tl.where(t[:, None] >= t[None, :], 1.0 / (1.0 + tl.exp(-s)), 0.0)
    so_far = tl.cumsum(s, axis=1)
    p = tl.where(t[:, None] >= t[None, :], so_far, 0.0) / tl.sum(so_far, axis=1)[:, None]
    o = tl.dot(p.to(v_ptr.dtype.element_ty), tl.load(v_ptr + at))
    tl.store(o_ptr + at, o.to(o_ptr.dtype.element_ty))


@case
def values_by_scores_summed_along_keys():
    b, t, d = 4096, 64, 32
    q, k, v, o = (rand(b, t, d, dtype="bfloat16") for _ in range(4))
    launched = run(values_by_running_scores, (b,), (q / 6, k, v, o), o, T=t, D=d, num_warps=4)

    def reference():
        s = ((q / 6).float() @ k.float().mT).sigmoid().tril().cumsum(2)
        return (s.tril() / s.sum(2, keepdim=True)) @ v.float()

    return against(launched, reference)


@triton.jit
def memory_by_winners(x_ptr, key_ptr, value_ptr, y_ptr, M, K, D: tl.constexpr, SLOTS: tl.constexpr, G: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    # Keys in groups: the best slot of each group alone answers, by a dot of what is left of the scores with the values.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n, d = tl.arange(0, SLOTS), tl.arange(0, D)
    s = tl.zeros((BM, SLOTS), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
        s = tl.dot(x, tl.load(key_ptr + n[None, :] * K + k[:, None]), s)
    groups = tl.reshape(s, (BM, SLOTS // G, G))
    best = tl.max(groups, axis=2)
    kept = tl.where(groups == best[:, :, None], tl.maximum(groups, 0.0), 0.0)
    kept = tl.reshape(kept, (BM, SLOTS)).to(value_ptr.dtype.element_ty)
    y = tl.dot(kept, tl.load(value_ptr + n[:, None] * D + d[None, :]))
    tl.store(y_ptr + m[:, None] * D + d[None, :], y.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def memory_answers_by_the_best_slot_of_each_16():
    m, k, slots, d, g = 6000, 256, 128, 64, 16
    x, key, value, y = rand(m, k), rand(slots, k) / 16, rand(slots, d), zeros(m, d)
    launched = run(memory_by_winners, (cdiv(m, 32),), (x, key, value, y, m, k), y, D=d, SLOTS=slots, G=g, BM=32, BK=64, num_warps=4)

    def reference():
        s = (x.float() @ key.float().t()).reshape(m, slots // g, g)
        kept = torch.where(s == s.amax(2, keepdim=True), s.relu(), 0.0).reshape(m, slots)
        return kept.half().float() @ value.float()

    return against(launched, reference)


@triton.jit
def product_with_squares(x_ptr, w_ptr, b_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Each input and its square are neighbors in the first operand, joined in registers: weights lie in pairs.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32) + tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :]
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=0.0)
        both = tl.reshape(tl.join(x, x * x), (BM, 2 * BK))
        kk = 2 * k0 + tl.arange(0, 2 * BK)
        w = tl.load(w_ptr + kk[:, None] * N + n[None, :], mask=(kk < 2 * K)[:, None] & (n < N)[None, :], other=0.0)
        acc = tl.dot(both, w, acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def inputs_joined_with_their_squares_times_weights():
    m, n, k = 3000, 500, 300
    x, w, b, y = rand(m, k), rand(2 * k, n) / 24, f32(n), zeros(m, n)
    launched = run(product_with_squares, (cdiv(m, 64), cdiv(n, 64)), (x, w, b, y, m, n, k), y, BM=64, BN=64, BK=32)
    return against(launched, lambda: torch.stack([x, x * x], 2).reshape(m, 2 * k).float() @ w.float() + b)


@triton.jit
def turned_then_rounded(x_ptr, h_ptr, w_ptr, ws_ptr, y_ptr, M, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Rows are turned by a dot of halves, rounded to bytes by their own largest, and go into a loop of dots of bytes.
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    x = tl.load(x_ptr + m[:, None] * D + d[None, :], mask=(m < M)[:, None], other=0.0)
    z = tl.dot(x, tl.load(h_ptr + d[:, None] * D + d[None, :]))
    scale = tl.maximum(tl.max(tl.abs(z), axis=1), 1e-6) / 127.0
    z = z / scale[:, None]
    code = tl.where(z < 0.0, z - 0.5, z + 0.5).to(tl.int8)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        w = tl.load(w_ptr + n[None, :] * D + d[:, None], mask=(n < N)[None, :], other=0)
        y = tl.dot(code, w, out_dtype=tl.int32).to(tl.float32)
        y = y * scale[:, None] * tl.load(ws_ptr + n, mask=n < N, other=0.0)[None, :]
        tl.store(y_ptr + m[:, None] * N + n[None, :], y.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def rows_turned_rounded_to_bytes_and_multiplied_in_a_loop():
    m, n, d = 4096, 1000, 128
    x, h = rand(m, d), torch.where(rand(d, d) < 0, -1.0, 1.0).half() / 11
    w, ws, y = ints(-127, 128, n, d, dtype="int8"), uniform(n) / 100, zeros(m, n)
    launched = run(turned_then_rounded, (cdiv(m, 64),), (x, h, w, ws, y, m, n), y, D=d, BM=64, BN=64, num_warps=4, num_stages=3)
    return against(launched, lambda: x.float() @ h.float() @ (w.float() * ws[:, None]).t())


@triton.jit
def shared_histogram_of_two(x_ptr, y_ptr, h_ptr, N, span, SX: tl.constexpr, SY: tl.constexpr, BN: tl.constexpr):
    # How often two bytes of few levels meet: comparisons with all levels are the operands of a dot of bytes.
    b, part = tl.program_id(1), tl.program_id(0)
    i, j = tl.arange(0, SX), tl.arange(0, SY)
    counts = tl.zeros((SX, SY), tl.int32)
    for n0 in range(part * span, min(part * span + span, N), BN):
        n = n0 + tl.arange(0, BN)
        x = tl.load(x_ptr + b * N + n, mask=n < N, other=255) >> 2
        y = tl.load(y_ptr + b * N + n, mask=n < N, other=255) >> 3
        keep = n < N
        left = ((x[None, :] == i[:, None]) & keep[None, :]).to(tl.int8)
        right = (y[:, None] == j[None, :]).to(tl.int8)
        counts = tl.dot(left, right, counts, out_dtype=tl.int32)
    tl.atomic_add(h_ptr + (b * SX + i)[:, None] * SY + j[None, :], counts, sem="relaxed")


@case
def shared_histograms_of_two_images_by_dots_of_comparisons():
    b, n, sx, sy = 8, 300 * 300, 64, 32
    x, y, h = ints(0, 256, b, n, dtype="uint8"), ints(0, 256, b, n, dtype="uint8"), zeros(b, sx, sy, dtype="int32")
    span = 4096
    launched = run(shared_histogram_of_two, (cdiv(n, span), b), (x, y, h, n, span), h, SX=sx, SY=sy, BN=128)
    where = lambda: (arange(b)[:, None].long() * sx + (x >> 2).long()) * sy + (y >> 3).long()  # noqa: E731
    return against(cleared(launched, h), lambda: torch.bincount(where().reshape(-1), minlength=b * sx * sy).reshape(b, sx, sy))


@triton.jit
def sampled_rows_through_a_layer(map_ptr, xy_ptr, w_ptr, b_ptr, out_ptr, P, H, W, C, O: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr):
    # Features between four pixels, gathered and weighted channel block by channel block, are the first operand of a layer.
    p, o = tl.program_id(0) * BP + tl.arange(0, BP), tl.arange(0, O)
    x = tl.load(xy_ptr + 2 * p, mask=p < P, other=0.0) * (W - 1)
    y = tl.load(xy_ptr + 2 * p + 1, mask=p < P, other=0.0) * (H - 1)
    x0, y0 = x.to(tl.int32), y.to(tl.int32)
    fx, fy = x - x0.to(tl.float32), y - y0.to(tl.float32)
    x1, y1 = tl.minimum(x0 + 1, W - 1), tl.minimum(y0 + 1, H - 1)
    acc = tl.zeros((BP, O), tl.float32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        ok = (p < P)[:, None] & (c < C)[None, :]
        f = tl.load(map_ptr + (y0 * W + x0)[:, None] * C + c[None, :], mask=ok, other=0.0) * ((1 - fx) * (1 - fy))[:, None]
        f += tl.load(map_ptr + (y0 * W + x1)[:, None] * C + c[None, :], mask=ok, other=0.0) * (fx * (1 - fy))[:, None]
        f += tl.load(map_ptr + (y1 * W + x0)[:, None] * C + c[None, :], mask=ok, other=0.0) * ((1 - fx) * fy)[:, None]
        f += tl.load(map_ptr + (y1 * W + x1)[:, None] * C + c[None, :], mask=ok, other=0.0) * (fx * fy)[:, None]
        w = tl.load(w_ptr + c[:, None] * O + o[None, :], mask=(c < C)[:, None], other=0.0)
        acc = tl.dot(f.to(w.dtype), w, acc)
    acc = tl.maximum(acc + tl.load(b_ptr + o)[None, :], 0.0)
    tl.store(out_ptr + p[:, None] * O + o[None, :], acc.to(out_ptr.dtype.element_ty), mask=(p < P)[:, None])


@case
def features_between_pixels_straight_into_a_layer():
    p, h, w, c, o = 20000, 90, 120, 80, 64
    features, xy = rand(h, w, c), uniform(p, 2)
    weight, bias, out = rand(c, o) / 9, f32(o), zeros(p, o)
    launched = run(sampled_rows_through_a_layer, (cdiv(p, 64),), (features, xy, weight, bias, out, p, h, w, c), out, O=o, BP=64, BC=32)

    def reference():
        grid = (xy * 2 - 1)[None, None]
        f = F.grid_sample(features.float().permute(2, 0, 1)[None], grid, align_corners=True)[0, :, 0].t()
        return (f @ weight.float() + bias).relu()

    return against(launched, reference)
