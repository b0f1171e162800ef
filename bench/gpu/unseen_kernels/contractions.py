"""Dots that are parts of something else: folded models, equations solved in tiles, states carried through time, parts summed late."""

import torch
import triton
import triton.language as tl

from .common import case, cdiv, cleared, f32, ints, rand, run, uniform, zeros


@triton.jit
def multiply_triangles(X, GATE, OUT, N, C: tl.constexpr, BC: tl.constexpr, B: tl.constexpr, BK: tl.constexpr):
    # z[i, j, c] = sum over k of a[i, k, c] b[j, k, c], channels fastest in memory: dots in three dimensions, gated operands.
    i, j = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    c = tl.program_id(2) * BC + tl.arange(0, BC)
    acc = tl.zeros((BC, B, B), tl.float32)
    for k0 in range(0, N, BK):
        k = k0 + tl.arange(0, BK)
        at_a = ((i[:, None] * N + k[None, :]) * 2 * C)[None, :, :] + c[:, None, None]
        at_b = ((j[None, :] * N + k[:, None]) * 2 * C)[None, :, :] + C + c[:, None, None]
        a = tl.load(X + at_a) * tl.sigmoid(tl.load(GATE + at_a).to(tl.float32)).to(tl.bfloat16)
        b = tl.load(X + at_b) * tl.sigmoid(tl.load(GATE + at_b).to(tl.float32)).to(tl.bfloat16)
        acc = tl.dot(a, b, acc)
    tl.store(OUT + ((i[:, None] * N + j[None, :]) * C)[:, :, None] + c[None, None, :], tl.permute(acc, (1, 2, 0)).to(tl.bfloat16))


@case
def triangle_products_of_gated_pairs():
    n, c = 256, 64
    x, gate, out = rand(n, n, 2 * c, dtype="bfloat16"), rand(n, n, 2 * c, dtype="bfloat16"), zeros(n, n, c, dtype="bfloat16")
    return run(multiply_triangles, (n // 32, n // 32, c // 8), (x, gate, out, n), out, C=c, BC=8, B=32, BK=16, num_warps=4, num_stages=2)


@triton.jit
def attend_in_a_row_of_pairs(Q, K, V, BIAS, GATE, LENGTH, OUT, N, H, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Row r of a square of pairs attends within itself, with a bias of each pair of places, and a sigmoid gate on what leaves.
    m, h, r = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1), tl.program_id(2)
    d, length = tl.arange(0, D), tl.load(LENGTH + r)
    at = ((r * N + m)[:, None] * H + h) * D + d[None, :]
    q = tl.load(Q + at, mask=(m < N)[:, None], other=0.0)
    top, total, acc = tl.full((BM,), -1e9, tl.float32), tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    for n0 in range(0, length, BN):
        n = n0 + tl.arange(0, BN)
        live = (n < length)[:, None]
        k = tl.load(K + ((r * N + n)[:, None] * H + h) * D + d[None, :], mask=live, other=0.0)
        v = tl.load(V + ((r * N + n)[:, None] * H + h) * D + d[None, :], mask=live, other=0.0)
        bias = tl.load(BIAS + (h * N + m)[:, None] * N + n[None, :], mask=(m < N)[:, None] & (n < length)[None, :], other=-1e9)
        s = tl.dot(q, tl.trans(k)) * scale + bias.to(tl.float32)
        new = tl.maximum(top, tl.max(s, 1))
        p, back = tl.exp(s - new[:, None]), tl.exp(top - new)
        total = total * back + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.bfloat16), v, acc * back[:, None])
        top = new
    gate = tl.sigmoid(tl.load(GATE + at, mask=(m < N)[:, None], other=0.0).to(tl.float32))
    tl.store(OUT + at, (acc / total[:, None] * gate).to(tl.bfloat16), mask=(m < N)[:, None])


@case
def attn_of_pairs_with_bias_and_gate():
    n, h, d = 200, 4, 32
    q, k, v, gate = (rand(n, n, h, d, dtype="bfloat16") for _ in range(4))
    out, bias, length = zeros(n, n, h, d, dtype="bfloat16"), rand(h, n, n, dtype="bfloat16"), ints(100, n + 1, n)
    args = q, k, v, bias, gate, length, out, n, h, d**-0.5
    return run(attend_in_a_row_of_pairs, (cdiv(n, 64), h, n), args, out, D=d, BM=64, BN=64, num_warps=4, num_stages=3)


@triton.jit
def mean_of_outer_products(A, B, W, OUT, S, N, C: tl.constexpr, Z: tl.constexpr, BI: tl.constexpr, BS: tl.constexpr):
    # Sums over sequences of outer products of 16 by 16 features for 4 by 4 places; then all 256 of a pair through a matrix.
    i0, j0 = tl.program_id(0) * BI, tl.program_id(1) * BI
    ic, z = tl.arange(0, BI * C), tl.arange(0, Z)
    acc = tl.zeros((BI * C, BI * C), tl.float32)
    for s0 in range(0, S, BS):
        s = s0 + tl.arange(0, BS)
        a = tl.load(A + s[:, None] * N * C + i0 * C + ic[None, :], mask=(s < S)[:, None], other=0.0)
        b = tl.load(B + s[:, None] * N * C + j0 * C + ic[None, :], mask=(s < S)[:, None], other=0.0)
        acc = tl.dot(tl.trans(a), b, acc)
    pairs = tl.permute(tl.reshape(acc, (BI, C, BI, C)), (0, 2, 1, 3))
    pairs = tl.reshape(pairs, (BI * BI, C * C)) / S
    w = tl.load(W + tl.arange(0, C * C)[:, None] * Z + z[None, :])
    y = tl.dot(pairs.to(tl.float16), w)
    p = tl.arange(0, BI * BI)
    tl.store(OUT + ((i0 + p // BI) * N + j0 + p % BI)[:, None] * Z + z[None, :], y.to(tl.float16))


@case
def outer_products_mean_projected():
    s, n, c, z = 500, 384, 16, 64
    a, b, w, out = rand(s, n, c), rand(s, n, c), rand(c * c, z) * 0.1, zeros(n, n, z)
    launch, args = run(mean_of_outer_products, (n // 4, n // 4), (a, b, w, out, s, n), out, C=c, Z=z, BI=4, BS=32, num_warps=4, num_stages=3)
    launch.reference = lambda *_: torch.einsum("sic,sjd->ijcd", a.float(), b.float()).reshape(n, n, c * c) / s @ w.float()
    return launch, args


@triton.jit
def spline_basis(x, g, KNOTS: tl.constexpr):
    # Cubic B-splines of uniform knots on [-1, 1]: the value at x of the one that starts at knot g.
    t = (x + 1.0) * (0.5 * (KNOTS - 3)) + 3.0 - g
    u = tl.abs(t - 2.0)
    near = 0.66666667 - u * u * (1.0 - 0.5 * u)
    far = 2.0 - u
    return tl.where(u < 1.0, near, tl.where(u < 2.0, far * far * far * 0.16666667, 0.0))


@triton.jit
def layer_of_splines(X, W, BASE, OUT, M, K, N, G: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BI: tl.constexpr):
    # y = sum over inputs of splines of them, of 8 coefficients each: bases are made in a tile of three axes that is folded for the dot.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    g = tl.arange(0, G)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BI):
        k = k0 + tl.arange(0, BI)
        x = tl.load(X + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
        basis = spline_basis(x[:, :, None], g[None, None, :].to(tl.float32), G)
        kg = k0 * G + tl.arange(0, BI * G)
        acc = tl.dot(tl.reshape(basis, (BM, BI * G)).to(tl.bfloat16), tl.load(W + kg[:, None] * N + n[None, :]), acc)
        smooth = (x * tl.sigmoid(x)).to(tl.bfloat16)
        acc = tl.dot(smooth, tl.load(BASE + k[:, None] * N + n[None, :]), acc)
    tl.store(OUT + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None])


@case
def layer_of_splines_of_inputs():
    m, k, n, g = 4000, 256, 256, 8
    x, w, base, out = uniform(m, k) * 2 - 1, rand(k * g, n, dtype="bfloat16"), rand(k, n, dtype="bfloat16"), zeros(m, n, dtype="float32")
    return run(layer_of_splines, (cdiv(m, 64), n // 64), (x, w, base, out, m, k, n), out, G=g, BM=64, BN=64, BI=16, num_warps=4, num_stages=2)


@triton.jit
def fixed_points(X, W, OUT, STEPS, tolerance, most, D: tl.constexpr, BM: tl.constexpr):
    # z = tanh(z W + x) repeated until no row of the tile moves by more than a tolerance: a dot in a loop that the data ends.
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    x = tl.load(X + m[:, None] * D + d[None, :]).to(tl.float32)
    w = tl.load(W + d[:, None] * D + d[None, :])
    z = tl.zeros((BM, D), tl.float32)
    moved, step = 1e9, 0
    while (moved > tolerance) & (step < most):
        y = tl.dot(z.to(w.dtype), w, x)
        y = 1.0 - 2.0 / (tl.exp(2.0 * y) + 1.0)
        moved = tl.max(tl.max(tl.abs(y - z), 1), 0)
        z = y
        step += 1
    tl.store(OUT + m[:, None] * D + d[None, :], z.to(OUT.dtype.element_ty))
    tl.store(STEPS + tl.program_id(0), step)


@case
def fixed_points_of_implicit_layer():
    m, d = 16384, 128
    x, w = rand(m, d, dtype="bfloat16"), (rand(d, d) * (0.35 / d**0.5)).to(torch.float16)
    out, steps = zeros(m, d), zeros(m // 64, dtype="int32")
    return run(fixed_points, (m // 64,), (x, w, out, steps, 1e-2, 30), out, D=d, BM=64, num_warps=4, num_stages=2)


@triton.jit
def velocity(z, w1, w2, b, t):
    h = tl.dot(z.to(w1.dtype), w1) + b + t
    h = 1.0 - 2.0 / (tl.exp(2.0 * h) + 1.0)
    return tl.dot(h.to(w2.dtype), w2)


@triton.jit
def flow_of_rk4(Z, W1, W2, BIAS, OUT, STEPS, h, D: tl.constexpr, E: tl.constexpr, BM: tl.constexpr):
    # Four evaluations of a network of two layers in each step; the weights stay, the state is carried.
    m, d, e = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, E)
    z = tl.load(Z + m[:, None] * D + d[None, :])
    w1, w2 = tl.load(W1 + d[:, None] * E + e[None, :]), tl.load(W2 + e[:, None] * D + d[None, :])
    b = tl.load(BIAS + e)[None, :]
    t = 0.0
    for _ in range(STEPS):
        k1 = velocity(z, w1, w2, b, t)
        k2 = velocity(z + 0.5 * h * k1, w1, w2, b, t + 0.5 * h)
        k3 = velocity(z + 0.5 * h * k2, w1, w2, b, t + 0.5 * h)
        k4 = velocity(z + h * k3, w1, w2, b, t + h)
        z += h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        t += h
    tl.store(OUT + m[:, None] * D + d[None, :], z)


@case
def flow_of_a_network_by_runge_kutta():
    m, d, e = 8192, 32, 64
    w1, w2 = rand(d, e, dtype="bfloat16") * 0.2, rand(e, d, dtype="bfloat16") * 0.2
    out = zeros(m, d, dtype="float32")
    return run(flow_of_rk4, (m // 32,), (f32(m, d), w1, w2, f32(e), out, 20, 0.05), out, D=d, E=e, BM=32, num_warps=2, num_stages=1)


@triton.jit
def complex_dot(ar, ai, br, bi):
    return tl.dot(ar, br) - tl.dot(ai, bi), tl.dot(ar, bi) + tl.dot(ai, br)


@triton.jit
def convolve_by_fourier(X, FR, FI, TR, TI, KR, KI, OUT, CHANNELS, R: tl.constexpr):
    # A circular convolution of R*R places: transforms of R by R as dots with a matrix of roots, twiddles in between, and back.
    r = tl.arange(0, R)
    at = r[:, None] * R + r[None, :]
    row = tl.program_id(0).to(tl.int64) * R * R
    channel = (tl.program_id(0) % CHANNELS) * R * R
    fr, fi = tl.load(FR + at), tl.load(FI + at)
    tr, ti = tl.load(TR + at), tl.load(TI + at)
    x = tl.load(X + row + at)
    yr, yi = tl.dot(fr, x), tl.dot(fi, x)
    yr, yi = yr * tr - yi * ti, yr * ti + yi * tr
    yr, yi = complex_dot(yr.to(tl.float16), yi.to(tl.float16), fr, fi)
    kr, ki = tl.load(KR + channel + at).to(tl.float32), tl.load(KI + channel + at).to(tl.float32)
    yr, yi = yr * kr - yi * ki, yr * ki + yi * kr
    yr, yi = complex_dot(yr.to(tl.float16), yi.to(tl.float16), fr, -fi)
    yr, yi = yr * tr + yi * ti, yi * tr - yr * ti
    y = tl.dot(fr, yr.to(tl.float16)) + tl.dot(fi, yi.to(tl.float16))
    tl.store(OUT + row + at, y.to(OUT.dtype.element_ty))


@case
def circular_convolution_by_fourier_dots():
    r, batch, channels = 32, 16, 256
    n = r * r
    i = torch.arange(r, device="cuda").float()
    roots = i[:, None] * i[None, :]
    fr, fi = (torch.cos(roots * (6.283185307 / r)) / r**0.5).half(), (-torch.sin(roots * (6.283185307 / r)) / r**0.5).half()
    tr, ti = torch.cos(roots * (6.283185307 / n)), -torch.sin(roots * (6.283185307 / n))
    x, out = rand(batch, channels, n), zeros(batch, channels, n)
    args = x, fr, fi, tr, ti, rand(channels, n), rand(channels, n), out, channels
    return run(convolve_by_fourier, (batch * channels,), args, out, R=r, num_warps=2, num_stages=2)


@triton.jit
def learn_while_reading(Q, K, V, W, ETA, SCALE, SHIFT, OUT, T, H, C: tl.constexpr, D: tl.constexpr):
    # The state is a linear layer that each chunk trains by a step of descent on the normalized error, then asks.
    h, c, d = tl.program_id(0), tl.arange(0, C), tl.arange(0, D)
    w, b = tl.load(W + h % H * D * D + d[:, None] * D + d[None, :]), tl.zeros((D,), tl.float32)
    scale, shift = tl.load(SCALE + h % H * D + d)[None, :], tl.load(SHIFT + h % H * D + d)[None, :]
    for t0 in range(0, T, C):
        at = (h * T + t0 + c)[:, None] * D + d[None, :]
        q, k, v = tl.load(Q + at), tl.load(K + at), tl.load(V + at)
        eta = tl.load(ETA + h * T + t0 + c)
        z = tl.dot(k, w.to(k.dtype)) + b[None, :]
        z -= tl.sum(z, 1)[:, None] / D
        r = tl.rsqrt(tl.sum(z * z, 1) / D + 0.1)[:, None]
        z = z * r
        g = (z * scale + shift - (v - k).to(tl.float32)) * scale
        g = (g - tl.sum(g, 1)[:, None] / D - z * (tl.sum(g * z, 1) / D)[:, None]) * r * eta[:, None]
        half = g.to(k.dtype)
        seen = tl.where(c[:, None] >= c[None, :], tl.dot(q, tl.trans(k)), 0.0).to(k.dtype)
        y = tl.dot(q, w.to(k.dtype)) - tl.dot(seen, half) + b[None, :] - tl.cumsum(g, 0) + q
        w -= tl.dot(tl.trans(k), half)
        b -= tl.sum(g, 0)
        tl.store(OUT + at, y.to(OUT.dtype.element_ty))


@case
def linear_layer_trained_while_reading():
    b, h, t, d = 16, 12, 1024, 64
    q, k, v = (rand(b * h, t, d, dtype="bfloat16") * 0.3 for _ in range(3))
    eta, out = uniform(b * h, t) * 0.005, zeros(b * h, t, d, dtype="bfloat16")
    args = q, k, v, f32(h, d, d) * 0.3, eta, f32(h, d) * 0.1 + 1, f32(h, d) * 0.1, out, t, h
    return run(learn_while_reading, (b * h,), args, out, C=16, D=d, num_warps=4, num_stages=2)


@triton.jit
def product_of_slices(A, B, SA, SB, C, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Doubles as three slices of seven bits each: six products of bytes, exact in 32 bits, put together in double.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    high = tl.zeros((BM, BN), tl.int32)
    middle = tl.zeros((BM, BN), tl.int32)
    low = tl.zeros((BM, BN), tl.int32)
    a, b = A + m[:, None] * K + k[None, :], B + n[None, :] * K + k[:, None]
    for _ in range(0, K, BK):
        a0, a1, a2 = tl.load(a), tl.load(a + M * K), tl.load(a + 2 * M * K)
        b0, b1, b2 = tl.load(b), tl.load(b + N * K), tl.load(b + 2 * N * K)
        high = tl.dot(a0, b0, high)
        middle = tl.dot(a1, b0, tl.dot(a0, b1, middle))
        low = tl.dot(a2, b0, tl.dot(a1, b1, tl.dot(a0, b2, low)))
        a += BK
        b += BK
    y = high.to(tl.float64) + middle.to(tl.float64) * 0.0078125 + low.to(tl.float64) * 0.00006103515625
    scale = tl.load(SA + m)[:, None] * tl.load(SB + n)[None, :]
    tl.store(C + m[:, None] * N + n[None, :], y * scale)


@case
def gemm_double_by_slices_of_bytes():
    m, n, k = 1024, 1024, 2048
    c, sa, sb = zeros(m, n, dtype="float64"), uniform(m).double(), uniform(n).double()
    args = ints(-64, 64, 3, m, k, dtype="int8"), ints(-64, 64, 3, n, k, dtype="int8"), sa, sb, c, m, n, k
    return run(product_of_slices, (m // 64, n // 64), args, c, BM=64, BN=64, BK=64, num_warps=4, num_stages=3)


@triton.jit
def product_in_three_halves(A, B, C, M, N, K, sa, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Floats by three products of bfloat16, as the dot's own option; A is transposed in memory.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        inside = k0 + k < K
        a = tl.load(A + (k0 + k)[None, :] * sa + m[:, None], mask=inside[None, :], other=0.0)
        b = tl.load(B + (k0 + k)[:, None] * N + n[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="bf16x3")
    tl.store(C + m[:, None] * N + n[None, :], acc)


@case
def gemm_f32_by_three_bf16_products():
    m, n, k = 1024, 768, 1000
    a, b, c = f32(k, m), f32(k, n), zeros(m, n, dtype="float32")
    launch, args = run(product_in_three_halves, (m // 64, n // 64), (a, b, c, m, n, k, m), c, BM=64, BN=64, BK=32, num_warps=4, num_stages=3)
    launch.reference = lambda *_: a.t() @ b
    return launch, args


@triton.jit
def last_part_sums(A, B, PART, COUNT, BIAS, C, M, N, K, SPLITS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Parts of K by their own programs; whichever comes last to a tile, by a counter, adds the others' parts and ends it.
    tile, part = tl.program_id(0), tl.program_id(1)
    across = N // BN
    m, n = tile // across * BM + tl.arange(0, BM), tile % across * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(part * BK, K, BK * SPLITS):
        k = k0 + tl.arange(0, BK)
        acc = tl.dot(tl.load(A + m[:, None] * K + k[None, :]), tl.load(B + n[None, :] * K + k[:, None]), acc)
    own = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    tl.store(PART + (tile * SPLITS + part) * BM * BN + own, acc)
    tl.debug_barrier()
    if tl.atomic_add(COUNT + tile, 1, sem="acq_rel") == SPLITS - 1:
        total = tl.zeros((BM, BN), tl.float32)
        for s in range(SPLITS):
            total += tl.load(PART + (tile * SPLITS + s) * BM * BN + own, volatile=True)
        total += tl.load(BIAS + n)[None, :]
        y = total * tl.sigmoid(1.702 * total)
        tl.store(C + m[:, None] * N + n[None, :], y.to(C.dtype.element_ty))


@case
def gemm_split_k_last_program_ends_tile():
    m, n, k, splits = 128, 1024, 8192, 8
    tiles = (m // 32) * (n // 64)
    a, b, bias, c = rand(m, k) * 0.05, rand(n, k), f32(n), zeros(m, n)
    part, count = zeros(tiles * splits, 32, 64, dtype="float32"), zeros(tiles, dtype="int32")
    args = a, b, part, count, bias, c, m, n, k
    launch = run(last_part_sums, (tiles, splits), args, c, SPLITS=splits, BM=32, BN=64, BK=64, num_warps=4, num_stages=4)
    return cleared(launch, count)


@triton.jit
def log_partition(EMIT, TRANS, LENGTH, OUT, T, S: tl.constexpr, B: tl.constexpr):
    # The forward sums of a chain of labels, as a product of exponentials at each step, for sequences of own lengths.
    b, s = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, S)
    trans = tl.exp(tl.load(TRANS + s[:, None] * S + s[None, :])).to(tl.float16)
    length = tl.load(LENGTH + b)
    alpha = tl.load(EMIT + b[:, None] * T * S + s[None, :]).to(tl.float32)
    for t in range(1, tl.max(length, 0)):
        emit = tl.load(EMIT + (b[:, None] * T + t) * S + s[None, :]).to(tl.float32)
        top = tl.max(alpha, 1)[:, None]
        p = tl.exp(alpha - top).to(tl.float16)
        new = tl.log(tl.dot(p, trans)) + top + emit
        alpha = tl.where((t < length)[:, None], new, alpha)
    top = tl.max(alpha, 1)
    tl.store(OUT + b, tl.log(tl.sum(tl.exp(alpha - top[:, None]), 1)) + top)


@case
def partition_of_label_chains_by_dots():
    b, t, s = 2112, 256, 64
    out = zeros(b, dtype="float32")
    args = rand(b, t, s), f32(s, s) * 0.5, ints(100, t + 1, b), out, t
    return run(log_partition, (b // 16,), args, out, S=s, B=16, num_warps=2, num_stages=3)


@triton.jit
def gated_steps(XW, U, BIAS, OUT, T, B, H: tl.constexpr, BB: tl.constexpr):
    # A recurrent layer of three gates: the state stays in registers, three weights of 64 by 64 too, one step after another.
    b, h = tl.program_id(0) * BB + tl.arange(0, BB), tl.arange(0, H)
    at_u = h[:, None] * 3 * H + h[None, :]
    ur, uz, un = tl.load(U + at_u), tl.load(U + at_u + H), tl.load(U + at_u + 2 * H)
    bias = tl.load(BIAS + h)[None, :]
    state = tl.zeros((BB, H), tl.float32)
    for t in range(T):
        at = (t * B + b)[:, None] * 3 * H + h[None, :]
        xr, xz, xn = tl.load(XW + at).to(tl.float32), tl.load(XW + at + H).to(tl.float32), tl.load(XW + at + 2 * H).to(tl.float32)
        half = state.to(tl.bfloat16)
        r = tl.sigmoid(tl.dot(half, ur, xr))
        z = tl.sigmoid(tl.dot(half, uz, xz))
        new = xn + r * (tl.dot(half, un) + bias)
        new = 2.0 * tl.sigmoid(2.0 * new) - 1.0
        state = new + z * (state - new)
        tl.store(OUT + (t * B + b)[:, None] * H + h[None, :], state.to(tl.bfloat16))


@case
def gru_of_64_units_in_registers():
    t, b, h = 200, 4096, 64
    xw, u, out = rand(t, b, 3 * h, dtype="bfloat16"), rand(h, 3 * h, dtype="bfloat16") * 0.1, zeros(t, b, h, dtype="bfloat16")
    return run(gated_steps, (b // 32,), (xw, u, f32(h), out, t, b), out, H=h, BB=32, num_warps=4, num_stages=2)
