"""Smithies: what papers and contests ask for: doublings, trains, hidden states, angles, markers, polarizabilities, three diagonals, mixtures, superpositions, piles, boards, ciphers, streams."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, f32, ints, rand, run, uniform, zeros


@triton.jit
def smith_doubling_kernel(a_ptr, q_ptr, x_ptr, dim, STEPS: tl.constexpr, D: tl.constexpr):
    # The solution of X = A X A' + Q by doubling: six squarings of A in registers.
    i = tl.arange(0, D)
    at = tl.program_id(0) * dim * dim + i[:, None] * dim + i[None, :]
    inside = (i[:, None] < dim) & (i[None, :] < dim)
    a = tl.load(a_ptr + at, mask=inside, other=0.0)
    x = tl.load(q_ptr + at, mask=inside, other=0.0)
    for _ in range(STEPS):
        ax = tl.dot(a, x, input_precision="tf32x3")
        x = tl.dot(ax, tl.trans(a), x, input_precision="tf32x3")
        a = tl.dot(a, a, input_precision="tf32x3")
    tl.store(x_ptr + at, 0.5 * (x + tl.trans(x)), mask=inside)


@case
def smithy_of_equations_doubled(batch=264, dim=52, steps=6):
    a = f32(batch, dim, dim) * (0.8 / dim**0.5)
    a = a * (0.9 / torch.linalg.matrix_norm(a, ord=2, dim=(1, 2))[:, None, None].clamp(min=0.9))
    r = f32(batch, dim, dim)
    q, x = r @ r.transpose(1, 2) / dim, zeros(batch, dim, dim, dtype="float32")
    launched = run(smith_doubling_kernel, (batch,), (a, q, x, dim), x, STEPS=steps, D=64, num_warps=4)

    def reference():
        b, y = a.double(), q.double()
        for _ in range(steps):
            y, b = y + b @ y @ b.transpose(1, 2), b @ b
        return y.float()

    return against(launched, reference)


@triton.jit
def tensor_trains_overlap_kernel(a_ptr, b_ptr, out_ptr, sites, stride_at, stride_as, stride_ap, PHYS: tl.constexpr, D: tl.constexpr):
    # Overlaps of all pairs of two sets of trains of tensors: an environment goes along the sites, its size kept as a logarithm.
    ta = tl.program_id(0)
    tb = tl.program_id(1)
    i = tl.arange(0, D)
    at = i[:, None] * D + i[None, :]
    env = tl.full((D, D), 1.0 / D, dtype=tl.float32)
    size = 0.0
    for s in range(sites):
        nxt = tl.zeros((D, D), dtype=tl.float32)
        for p in tl.static_range(PHYS):
            a = tl.load(a_ptr + ta * stride_at + s * stride_as + p * stride_ap + tl.trans(at))
            b = tl.load(b_ptr + tb * stride_at + s * stride_as + p * stride_ap + at)
            nxt += tl.dot(tl.dot(a, env), b)
        top = tl.max(tl.max(tl.abs(nxt), 1), 0)
        env = nxt / top
        size += tl.log(top)
    tl.store(out_ptr + ta * tl.num_programs(1) + tb, size + tl.log(tl.sum(tl.sum(env, 1), 0)))


@case
def smithy_of_trains_that_overlap(left=22, right=24, sites=24, phys=2, d=32):
    a, b = uniform(left, sites, phys, d, d), uniform(right, sites, phys, d, d)
    out = zeros(left, right, dtype="float32")
    launched = run(tensor_trains_overlap_kernel, (left, right), (a, b, out, sites, *a.stride()[:3]), out, PHYS=phys, D=d, num_warps=4, num_stages=2)

    def reference():
        env, size = torch.full((left, right, d, d), 1 / d, dtype=torch.float64, device=a.device), 0
        for s in range(sites):
            env = sum(torch.einsum("lki,lrkm,rmj->lrij", a[:, s, p].double(), env, b[:, s, p].double()) for p in range(phys))
            top = env.amax((2, 3))
            env, size = env / top[..., None, None], size + top.log()
        return (size + env.sum((2, 3)).log()).float()

    return against(launched, reference)


@triton.jit
def hidden_states_forward_kernel(obs_ptr, trans_ptr, emit_ptr, start_ptr, like_ptr, last_ptr, N, T, S, BLOCK_N: tl.constexpr, BLOCK_S: tl.constexpr):
    # How likely symbols of many sequences are: probabilities of hidden states times transitions, one product a symbol, made to sum to one.
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    s = tl.arange(0, BLOCK_S)
    live = n < N
    trans = tl.load(trans_ptr + s[:, None] * S + s[None, :], mask=(s[:, None] < S) & (s[None, :] < S), other=0.0)
    first = tl.load(obs_ptr + n * T, mask=live, other=0).to(tl.int32)
    alpha = tl.load(start_ptr + s, mask=s < S, other=0.0)[None, :] * tl.load(emit_ptr + first[:, None] * S + s[None, :], mask=s[None, :] < S, other=0.0)
    total = tl.sum(alpha, axis=1)
    alpha = alpha / total[:, None]
    like = tl.log(total)
    t = 1
    while t < T:
        symbol = tl.load(obs_ptr + n * T + t, mask=live, other=0).to(tl.int32)
        emit = tl.load(emit_ptr + symbol[:, None] * S + s[None, :], mask=s[None, :] < S, other=0.0)
        alpha = tl.dot(alpha, trans) * emit
        total = tl.sum(alpha, axis=1)
        alpha = alpha / total[:, None]
        like += tl.log(total)
        t += 1
    tl.store(like_ptr + n, like, mask=live)
    tl.store(last_ptr + n[:, None] * S + s[None, :], alpha, mask=live[:, None] & (s[None, :] < S))


@case
def smithy_of_states_behind_symbols(n=4200, t=130, s=60, symbols=24):
    obs = ints(0, symbols, n, t, dtype="uint8")
    trans, emit, start = f32(s, s).softmax(1), f32(symbols, s).softmax(0), f32(s).softmax(0)
    like, last = zeros(n, dtype="float32"), zeros(n, s, dtype="float32")
    launched = run(hidden_states_forward_kernel, (cdiv(n, 32),), (obs, trans, emit, start, like, last, n, t, s), (like, last), BLOCK_N=32, BLOCK_S=64, num_warps=4)

    def reference():
        p, total = start.double()[None], 0
        for i in range(t):
            p = (p if i == 0 else p @ trans.double()) * emit.double()[obs[:, i].long()]
            size = p.sum(1)
            p, total = p / size[:, None], total + size.log()
        return total.float(), p.float()

    return against(launched, reference)


@triton.jit
def oriented_energy_kernel(img_ptr, even_ptr, odd_ptr, high_ptr, mean_ptr, H, W, SIDE: tl.constexpr, ANGLES: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_T: tl.constexpr):
    # Energies of pairs of even and odd waves at sixteen angles around every pixel: the largest one and their mean.
    p = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    y = p // W
    x = p % W
    angles = tl.arange(0, ANGLES)
    base = img_ptr + tl.program_id(1) * H * W
    even = tl.zeros((BLOCK_P, ANGLES), dtype=tl.float32)
    odd = tl.zeros((BLOCK_P, ANGLES), dtype=tl.float32)
    for t0 in tl.static_range(0, SIDE * SIDE, BLOCK_T):
        t = t0 + tl.arange(0, BLOCK_T)
        yy = y[:, None] + t[None, :] // SIDE - SIDE // 2
        xx = x[:, None] + t[None, :] % SIDE - SIDE // 2
        ok = (t[None, :] < SIDE * SIDE) & (yy >= 0) & (yy < H) & (xx >= 0) & (xx < W)
        v = tl.load(base + yy * W + xx, mask=ok, other=0).to(tl.float16)
        at = t[:, None] * ANGLES + angles[None, :]
        even = tl.dot(v, tl.load(even_ptr + at, mask=t[:, None] < SIDE * SIDE, other=0.0), even)
        odd = tl.dot(v, tl.load(odd_ptr + at, mask=t[:, None] < SIDE * SIDE, other=0.0), odd)
    energy = tl.sqrt(even * even + odd * odd)
    out = tl.program_id(1) * H * W + p
    tl.store(high_ptr + out, tl.max(energy, axis=1), mask=p < H * W)
    tl.store(mean_ptr + out, tl.sum(energy, axis=1) / ANGLES, mask=p < H * W)


@case
def smithy_of_energies_at_angles(images=3, height=401, width=603, side=9, angles=16):
    img = ints(0, 256, images, height, width, dtype="uint8")
    even, odd = rand(side * side, angles) * 0.1, rand(side * side, angles) * 0.1
    high, mean = zeros(images, height, width, dtype="float32"), zeros(images, height, width, dtype="float32")
    args = img, even, odd, high, mean, height, width
    launched = run(oriented_energy_kernel, (cdiv(height * width, 128), images), args, (high, mean), SIDE=side, ANGLES=angles, BLOCK_P=128, BLOCK_T=16, num_warps=4)

    def reference():
        def wave(w):
            return F.conv2d(img.float()[:, None], w.float().t().reshape(angles, 1, side, side), padding=side // 2)

        e = (wave(even) ** 2 + wave(odd) ** 2).sqrt()
        return e.amax(1), e.mean(1)

    return against(launched, reference)


@triton.jit
def marker_pairs_information_kernel(g_ptr, info_ptr, markers, samples, BM: tl.constexpr, BS: tl.constexpr):
    # Mutual information of all pairs of markers with three genotypes: nine tables counted by products of what equals each genotype.
    pi = tl.program_id(0)
    pj = tl.program_id(1)
    if pj < pi:
        return
    i = pi * BM + tl.arange(0, BM)
    j = pj * BM + tl.arange(0, BM)
    n00 = tl.zeros((BM, BM), dtype=tl.int32)
    n01 = tl.zeros((BM, BM), dtype=tl.int32)
    n02 = tl.zeros((BM, BM), dtype=tl.int32)
    n10 = tl.zeros((BM, BM), dtype=tl.int32)
    n11 = tl.zeros((BM, BM), dtype=tl.int32)
    n12 = tl.zeros((BM, BM), dtype=tl.int32)
    n20 = tl.zeros((BM, BM), dtype=tl.int32)
    n21 = tl.zeros((BM, BM), dtype=tl.int32)
    n22 = tl.zeros((BM, BM), dtype=tl.int32)
    for s0 in range(0, samples, BS):
        s = s0 + tl.arange(0, BS)
        a = tl.load(g_ptr + i[:, None] * samples + s[None, :], mask=(i[:, None] < markers) & (s[None, :] < samples), other=3)
        b = tl.load(g_ptr + j[None, :] * samples + s[:, None], mask=(j[None, :] < markers) & (s[:, None] < samples), other=3)
        a0 = (a == 0).to(tl.int8)
        a1 = (a == 1).to(tl.int8)
        a2 = (a == 2).to(tl.int8)
        b0 = (b == 0).to(tl.int8)
        b1 = (b == 1).to(tl.int8)
        b2 = (b == 2).to(tl.int8)
        n00 += tl.dot(a0, b0)
        n01 += tl.dot(a0, b1)
        n02 += tl.dot(a0, b2)
        n10 += tl.dot(a1, b0)
        n11 += tl.dot(a1, b1)
        n12 += tl.dot(a1, b2)
        n20 += tl.dot(a2, b0)
        n21 += tl.dot(a2, b1)
        n22 += tl.dot(a2, b2)
    r0 = n00 + n01 + n02
    r1 = n10 + n11 + n12
    r2 = n20 + n21 + n22
    c0 = n00 + n10 + n20
    c1 = n01 + n11 + n21
    c2 = n02 + n12 + n22
    total = r0 + r1 + r2
    h = _nlogn(total) - _nlogn(r0) - _nlogn(r1) - _nlogn(r2) - _nlogn(c0) - _nlogn(c1) - _nlogn(c2)
    h += _nlogn(n00) + _nlogn(n01) + _nlogn(n02) + _nlogn(n10) + _nlogn(n11) + _nlogn(n12) + _nlogn(n20) + _nlogn(n21) + _nlogn(n22)
    h = h / tl.maximum(total, 1).to(tl.float32) + 1.0
    tl.store(info_ptr + i[:, None] * markers + j[None, :], h, mask=(i[:, None] < markers) & (j[None, :] < markers))


@triton.jit
def _nlogn(n):
    x = n.to(tl.float32)
    return x * tl.log(tl.maximum(x, 1.0))


@case
def smithy_of_markers_that_go_together(markers=700, samples=1203):
    g = ints(0, 4, markers, samples, dtype="uint8")
    info = zeros(markers, markers, dtype="float32")
    tiles = cdiv(markers, 32)
    launched = run(marker_pairs_information_kernel, (tiles, tiles), (g, info, markers, samples), info, BM=32, BS=64, num_warps=4, num_stages=2)

    def reference():
        planes = [(g == v).double() for v in range(3)]
        n = torch.stack([torch.stack([a @ b.t() for b in planes]) for a in planes])
        xlogx = lambda x: torch.special.xlogy(x, x.clamp(min=1))  # noqa: E731
        total = n.sum((0, 1))
        h = xlogx(total) - xlogx(n.sum(1)).sum(0) - xlogx(n.sum(0)).sum(0) + xlogx(n).sum((0, 1))
        tile = torch.arange(markers, device=g.device) // 32
        return torch.where(tile[:, None] <= tile, h / total.clamp(min=1) + 1, 0).float()

    return against(launched, reference)


@triton.jit
def polarizability_kernel(b_ptr, gap_ptr, freq_ptr, chi_ptr, naux, pairs, stride_b, BP: tl.constexpr, BQ: tl.constexpr, BK: tl.constexpr):
    # How electrons answer at imaginary frequencies: a product of fitted pairs with themselves, pairs weighed by gaps; one side of the diagonal is written to both.
    pp = tl.program_id(0)
    pq = tl.program_id(1)
    if pq > pp:
        return
    w = tl.load(freq_ptr + tl.program_id(2))
    p = pp * BP + tl.arange(0, BP)
    q = pq * BQ + tl.arange(0, BQ)
    acc = tl.zeros((BP, BQ), dtype=tl.float32)
    for k0 in range(0, pairs, BK):
        k = k0 + tl.arange(0, BK)
        gap = tl.load(gap_ptr + k, mask=k < pairs, other=1.0)
        weight = 4.0 * gap / (gap * gap + w * w)
        left = tl.load(b_ptr + p[:, None] * stride_b + k[None, :], mask=(p[:, None] < naux) & (k[None, :] < pairs), other=0.0)
        right = tl.load(b_ptr + q[:, None] * stride_b + k[None, :], mask=(q[:, None] < naux) & (k[None, :] < pairs), other=0.0)
        acc = tl.dot(left * weight[None, :], tl.trans(right), acc)
    acc = (p[:, None] == q[None, :]).to(tl.float32) + acc
    out = chi_ptr + tl.program_id(2) * naux * naux
    tl.store(out + p[:, None] * naux + q[None, :], acc, mask=(p[:, None] < naux) & (q[None, :] < naux))
    if pp != pq:
        tl.store(out + q[:, None] * naux + p[None, :], tl.trans(acc), mask=(q[:, None] < naux) & (p[None, :] < naux))


@case
def smithy_of_answers_at_imaginary_frequencies(naux=403, pairs=3001, freqs=8):
    b, gap, freq = f32(naux, pairs) * 0.02, uniform(pairs) * 2 + 0.3, uniform(freqs) * 4
    chi = zeros(freqs, naux, naux, dtype="float32")
    tiles = cdiv(naux, 64)
    launched = run(polarizability_kernel, (tiles, tiles, freqs), (b, gap, freq, chi, naux, pairs, pairs), chi, BP=64, BQ=64, BK=32, num_warps=4, num_stages=3)

    def reference():
        weight = 4 * gap / (gap * gap + freq[:, None] ** 2)
        return torch.einsum("pk,fk,qk->fpq", b, weight, b) + torch.eye(naux, device=b.device)

    return against(launched, reference)


@triton.jit
def block_tridiagonal_kernel(low_ptr, diag_ptr, up_ptr, rhs_ptr, g_ptr, x_ptr, blocks, B: tl.constexpr):
    # Systems of three diagonals of blocks of sixteen: each block's inverse by Gauss and Jordan in registers, down and then up again.
    base = tl.program_id(0) * blocks * B * B
    r = tl.arange(0, B)[:, None]
    c = tl.arange(0, B)[None, :]
    at = base + r * B + c
    g = tl.zeros((B, B), dtype=tl.float32)
    y = tl.zeros((B, B), dtype=tl.float32)
    for n in range(blocks):
        low = tl.load(low_ptr + at + n * B * B)
        m = tl.load(diag_ptr + at + n * B * B) - tl.dot(low, g, input_precision="ieee")
        d = tl.load(rhs_ptr + at + n * B * B) - tl.dot(low, y, input_precision="ieee")
        inv = (r == c).to(tl.float32)
        for p in range(B):
            pivot = tl.sum(tl.sum(tl.where((r == p) & (c == p), m, 0.0), 1), 0)
            row_m = tl.sum(tl.where(r == p, m, 0.0), 0)[None, :] / pivot
            row_i = tl.sum(tl.where(r == p, inv, 0.0), 0)[None, :] / pivot
            col = tl.sum(tl.where(c == p, m, 0.0), 1)[:, None]
            m = tl.where(r == p, row_m, m - col * row_m)
            inv = tl.where(r == p, row_i, inv - col * row_i)
        g = tl.dot(inv, tl.load(up_ptr + at + n * B * B), input_precision="ieee")
        y = tl.dot(inv, d, input_precision="ieee")
        tl.store(g_ptr + at + n * B * B, g)
        tl.store(x_ptr + at + n * B * B, y)
    tl.debug_barrier()
    x = y
    for back in range(1, blocks):
        n = blocks - 1 - back
        x = tl.load(x_ptr + at + n * B * B) - tl.dot(tl.load(g_ptr + at + n * B * B), x, input_precision="ieee")
        tl.store(x_ptr + at + n * B * B, x)


@case
def smithy_of_three_diagonals_of_blocks(systems=396, blocks=12, b=16):
    low, up, rhs = (f32(systems, blocks, b, b) * 0.2 for _ in range(3))
    diag = f32(systems, blocks, b, b) * 0.2 + 4 * torch.eye(b, device="cuda")
    g, x = zeros(systems, blocks, b, b, dtype="float32"), zeros(systems, blocks, b, b, dtype="float32")
    launched = run(block_tridiagonal_kernel, (systems,), (low, diag, up, rhs, g, x, blocks), x, B=b, num_warps=1)

    def reference():
        m = torch.zeros(systems, blocks, b, blocks, b, dtype=torch.float64, device=low.device)
        for n in range(blocks):
            m[:, n, :, n] = diag[:, n].double()
            if n:
                m[:, n, :, n - 1] = low[:, n].double()
                m[:, n - 1, :, n] = up[:, n - 1].double()
        return torch.linalg.solve(m.reshape(systems, blocks * b, -1), rhs.double().reshape(systems, blocks * b, b)).reshape(x.shape).float()

    return against(launched, reference)


@triton.jit
def full_covariance_mixture_kernel(x_ptr, chol_ptr, shift_ptr, const_ptr, resp_ptr, like_ptr, N, K, D: tl.constexpr, BLOCK_N: tl.constexpr):
    # Shares of a mixture of bells with full covariances: points are whitened by each component's factor in a product; a second loop divides.
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    d = tl.arange(0, D)
    ok = n < N
    x = tl.load(x_ptr + n[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
    high = tl.full((BLOCK_N,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for k in range(K):
        w = tl.load(chol_ptr + k * D * D + d[:, None] * D + d[None, :])
        y = tl.dot(x, w, input_precision="tf32x3") - tl.load(shift_ptr + k * D + d)[None, :]
        logp = tl.load(const_ptr + k) - 0.5 * tl.sum(y * y, axis=1)
        tl.store(resp_ptr + k * N + n, logp, mask=ok)
        new = tl.maximum(high, logp)
        total = total * tl.exp(high - new) + tl.exp(logp - new)
        high = new
    like = high + tl.log(total)
    tl.store(like_ptr + n, like, mask=ok)
    tl.debug_barrier()
    for k in range(K):
        at = resp_ptr + k * N + n
        tl.store(at, tl.exp(tl.load(at, mask=ok, other=0.0) - like), mask=ok)


@case
def smithy_of_bells_with_full_covariances(n=40000, k=30, d=32):
    x, chol, const = f32(n, d) * 0.7, f32(k, d, d) * 0.15 + torch.eye(d, device="cuda") * 0.5, f32(k)
    shift = f32(k, d) * 0.2
    resp, like = zeros(k, n, dtype="float32"), zeros(n, dtype="float32")
    launched = run(full_covariance_mixture_kernel, (cdiv(n, 64),), (x, chol, shift, const, resp, like, n, k), (resp, like), D=d, BLOCK_N=64, num_warps=4)

    def reference():
        y = torch.einsum("nd,kde->kne", x.double(), chol.double()) - shift.double()[:, None]
        logp = const.double()[:, None] - 0.5 * (y * y).sum(2)
        return logp.softmax(0).float(), logp.logsumexp(0).float()

    return against(launched, reference)


@triton.jit
def superposition_of_frames_kernel(x_ptr, size_ptr, rmsd_ptr, frames, atoms, NEWTON: tl.constexpr, BF: tl.constexpr, BA: tl.constexpr):
    # Least distances of all pairs of frames of a molecule under turns: nine products give the matrix between two frames, a quartic's largest root the rest.
    i = tl.program_id(0) * BF + tl.arange(0, BF)
    j = tl.program_id(1) * BF + tl.arange(0, BF)
    zero = tl.zeros((BF, BF), dtype=tl.float32)
    xx, xy, xz, yx, yy, yz, zx, zy, zz = zero, zero, zero, zero, zero, zero, zero, zero, zero
    for a0 in range(0, atoms, BA):
        a = a0 + tl.arange(0, BA)
        left = x_ptr + i[:, None] * 3 * atoms + a[None, :]
        right = x_ptr + j[None, :] * 3 * atoms + a[:, None]
        lm = (i[:, None] < frames) & (a[None, :] < atoms)
        rm = (j[None, :] < frames) & (a[:, None] < atoms)
        lx = tl.load(left, mask=lm, other=0.0)
        ly = tl.load(left + atoms, mask=lm, other=0.0)
        lz = tl.load(left + 2 * atoms, mask=lm, other=0.0)
        rx = tl.load(right, mask=rm, other=0.0)
        ry = tl.load(right + atoms, mask=rm, other=0.0)
        rz = tl.load(right + 2 * atoms, mask=rm, other=0.0)
        xx = tl.dot(lx, rx, xx)
        xy = tl.dot(lx, ry, xy)
        xz = tl.dot(lx, rz, xz)
        yx = tl.dot(ly, rx, yx)
        yy = tl.dot(ly, ry, yy)
        yz = tl.dot(ly, rz, yz)
        zx = tl.dot(lz, rx, zx)
        zy = tl.dot(lz, ry, zy)
        zz = tl.dot(lz, rz, zz)
    e0 = 0.5 * (tl.load(size_ptr + i, mask=i < frames, other=1.0)[:, None] + tl.load(size_ptr + j, mask=j < frames, other=1.0)[None, :])
    s = 1.0 / e0
    xx, xy, xz, yx, yy, yz, zx, zy, zz = xx * s, xy * s, xz * s, yx * s, yy * s, yz * s, zx * s, zy * s, zz * s
    g00 = xx * xx + yx * yx + zx * zx
    g11 = xy * xy + yy * yy + zy * zy
    g22 = xz * xz + yz * yz + zz * zz
    g01 = xx * xy + yx * yy + zx * zy
    g02 = xx * xz + yx * yz + zx * zz
    g12 = xy * xz + yy * yz + zy * zz
    trace = g00 + g11 + g22
    fours = g00 * g00 + g11 * g11 + g22 * g22 + 2.0 * (g01 * g01 + g02 * g02 + g12 * g12)
    det = xx * (yy * zz - yz * zy) - xy * (yx * zz - yz * zx) + xz * (yx * zy - yy * zx)
    c0 = 2.0 * fours - trace * trace
    root = zero + 1.0
    for _ in range(NEWTON):
        sq = root * root
        value = sq * sq - 2.0 * trace * sq - 8.0 * det * root + c0
        slope = 4.0 * sq * root - 4.0 * trace * root - 8.0 * det
        root = root - value / (slope + 1.0e-9)
    rmsd = tl.sqrt(tl.maximum(2.0 * e0 * (1.0 - root), 0.0) / atoms)
    tl.store(rmsd_ptr + i[:, None] * frames + j[None, :], rmsd, mask=(i[:, None] < frames) & (j[None, :] < frames) & (i[:, None] != j[None, :]))


@case
def smithy_of_frames_turned_onto_frames(frames=500, atoms=300):
    x = f32(frames, 3, atoms) + 1.2 * f32(1, 3, atoms)
    x = x - x.mean(2, keepdim=True)
    size, rmsd = (x * x).sum((1, 2)), zeros(frames, frames, dtype="float32")
    tiles = cdiv(frames, 32)
    launched = run(superposition_of_frames_kernel, (tiles, tiles), (x, size, rmsd, frames, atoms), rmsd, NEWTON=24, BF=32, BA=32, num_warps=4, num_stages=2)

    def reference():
        y = x.double()
        s = torch.einsum("iax,jbx->ijab", y, y)
        e0 = (size[:, None] + size).double() / 2
        gram = s.transpose(2, 3) @ s
        tr, four, det = gram.diagonal(dim1=2, dim2=3).sum(2), (gram * gram).sum((2, 3)), torch.linalg.det(s)
        root = e0.clone()
        for _ in range(60):
            value = root**4 - 2 * tr * root**2 - 8 * det * root + 2 * four - tr**2
            root = root - value / (4 * root**3 - 4 * tr * root - 8 * det)
        y = (2 * (e0 - root).clamp(min=0) / atoms).sqrt().float()
        return y.fill_diagonal_(0)

    return against(launched, reference)


@triton.jit
def sandpiles_until_stable_kernel(pile_ptr, out_ptr, toppled_ptr, steps_ptr, side, most, D: tl.constexpr):
    # Piles of sand that topple onto neighbors until none does: neighbors' shares come by products with a matrix of shifts.
    r = tl.arange(0, D)[:, None]
    c = tl.arange(0, D)[None, :]
    board = (r < side) & (c < side)
    at = tl.program_id(0) * side * side + r * side + c
    sand = tl.load(pile_ptr + at, mask=board, other=0).to(tl.int32)
    shift = ((r - c == 1) | (c - r == 1)).to(tl.float16)
    toppled = tl.zeros((D, D), dtype=tl.int32)
    steps = 0
    while (tl.max(tl.max(sand, 1), 0) > 3) & (steps < most):
        over = sand >> 2
        give = over.to(tl.float16)
        got = tl.dot(shift, give)
        got = tl.dot(give, shift, got)
        sand = tl.where(board, sand - 4 * over + got.to(tl.int32), 0)
        toppled += over
        steps += 1
    tl.store(out_ptr + at, sand, mask=board)
    tl.store(toppled_ptr + at, toppled, mask=board)
    tl.store(steps_ptr + tl.program_id(0), steps)


@case
def smithy_of_piles_that_topple(piles=264, side=60, most=120):
    pile = ints(0, 5, piles, side, side, dtype="int16")
    out, toppled, steps = (zeros(*shape, dtype="int32") for shape in ((piles, side, side), (piles, side, side), (piles,)))
    launched = run(sandpiles_until_stable_kernel, (piles,), (pile, out, toppled, steps, side, most), (out, toppled, steps), D=64, num_warps=4)

    def reference():
        s = pile.int()
        count, done = torch.zeros_like(s), torch.zeros(piles, dtype=torch.int32, device=s.device)
        for _ in range(most):
            done += s.amax((1, 2)) > 3
            t = s >> 2
            p = F.pad(t, (1, 1, 1, 1))
            s = s - 4 * t + p[:, 2:, 1:-1] + p[:, :-2, 1:-1] + p[:, 1:-1, 2:] + p[:, 1:-1, :-2]
            count += t
        return s, count, done

    return against(launched, reference)


@triton.jit
def _flanked(mine, theirs, SHIFT: tl.constexpr, LEFT: tl.constexpr):
    t = theirs & (mine << SHIFT if LEFT else mine >> SHIFT)
    for _ in tl.static_range(5):
        t = t | (theirs & (t << SHIFT if LEFT else t >> SHIFT))
    return t << SHIFT if LEFT else t >> SHIFT


@triton.jit
def _bits64(x):
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((x * 0x0101010101010101) >> 56).to(tl.int32)


@triton.jit
def moves_on_boards_kernel(mine_ptr, theirs_ptr, moves_ptr, score_ptr, n, BLOCK: tl.constexpr):
    # Moves of a game of turned stones, found on 64 bits in eight directions, for both players; a score of moves, stones and corners.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = at < n
    mine = tl.load(mine_ptr + at, mask=ok, other=0).to(tl.uint64, bitcast=True)
    theirs = tl.load(theirs_ptr + at, mask=ok, other=0).to(tl.uint64, bitcast=True)
    free = (mine | theirs) ^ 0xFFFFFFFFFFFFFFFF
    score = tl.zeros((BLOCK,), dtype=tl.int32)
    first = tl.zeros((BLOCK,), dtype=tl.uint64)
    for who in tl.static_range(2):
        a = mine if who == 0 else theirs
        b = theirs if who == 0 else mine
        inner = b & 0x7E7E7E7E7E7E7E7E
        m = _flanked(a, inner, 1, True) | _flanked(a, inner, 1, False) | _flanked(a, b, 8, True) | _flanked(a, b, 8, False)
        m = m | _flanked(a, inner, 7, True) | _flanked(a, inner, 7, False) | _flanked(a, inner, 9, True) | _flanked(a, inner, 9, False)
        m = m & free
        corners = (a & 1) + ((a >> 7) & 1) + ((a >> 56) & 1) + (a >> 63)
        value = 8 * _bits64(m) + _bits64(a) + 25 * corners.to(tl.int32)
        score += value if who == 0 else -value
        if who == 0:
            first = m
    tl.store(moves_ptr + at, first.to(tl.int64, bitcast=True), mask=ok)
    tl.store(score_ptr + at, score, mask=ok)


@case
def smithy_of_stones_that_are_turned(n=2_000_003):
    a, b = ints(-(1 << 62), 1 << 62, n, dtype="int64") * 2 + 1, ints(-(1 << 62), 1 << 62, n, dtype="int64")
    mine, theirs = a & ~b, b & (a | ints(-(1 << 62), 1 << 62, n, dtype="int64")) & ~(a & ~b)
    moves, score = zeros(n, dtype="int64"), zeros(n, dtype="int32")
    launched = run(moves_on_boards_kernel, (cdiv(n, 256),), (mine, theirs, moves, score, n), (moves, score), BLOCK=256, num_warps=4)

    def reference():
        bit = torch.arange(64, device=mine.device)
        boards = [(x[:, None] >> bit & 1).bool().reshape(n, 8, 8) for x in (mine, theirs)]
        free, total, found = ~(boards[0] | boards[1]), 0, None

        def moved(x, dy, dx):
            return F.pad(x, (1, 1, 1, 1))[:, 1 - dy : 9 - dy, 1 - dx : 9 - dx]

        for who in range(2):
            p, o = boards[who], boards[1 - who]
            m = torch.zeros_like(p)
            for dy, dx in ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)):
                t = o & moved(p, dy, dx)
                for _ in range(5):
                    t = t | o & moved(t, dy, dx)
                m |= moved(t, dy, dx)
            m &= free
            corners = p[:, ::7, ::7].sum((1, 2))
            value = 8 * m.sum((1, 2)) + p.sum((1, 2)) + 25 * corners
            total = total + (value if who == 0 else -value)
            found = m if who == 0 else found
        return (found.reshape(n, 64).long() << bit).sum(1), total

    return against(launched, reference)


@triton.jit
def draws_down_a_tree_of_sums_kernel(tree_ptr, weight_ptr, ask_ptr, place_ptr, got_ptr, draws, TOP: tl.constexpr, BLOCK: tl.constexpr):
    # Weighted draws down a tree of partial sums: from the largest step to the smallest, each load depends on those before.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = at < draws
    left = tl.load(ask_ptr + at, mask=ok, other=0)
    pos = tl.zeros((BLOCK,), dtype=tl.int32)
    step = TOP
    while step > 0:
        nxt = pos + step
        s = tl.load(tree_ptr + nxt, mask=nxt < 2 * TOP, other=0x7FFFFFFF)
        go = (s <= left) & (nxt < 2 * TOP)
        pos = tl.where(go, nxt, pos)
        left = tl.where(go, left - s, left)
        step = step >> 1
    tl.store(place_ptr + at, pos, mask=ok)
    tl.store(got_ptr + at, tl.load(weight_ptr + pos, mask=ok, other=0), mask=ok)


@case
def smithy_of_draws_down_sums(bits=17, draws=1_500_001):
    n = 1 << bits
    weight = ints(0, 50, n)
    sums = F.pad(weight.long().cumsum(0), (1, 0))
    i = arange(n, dtype="int64")
    tree = (sums[i] - sums[i - (i & -i)]).to(torch.int32)
    ask = ints(0, int(sums[-1]), draws)
    place, got = zeros(draws, dtype="int32"), zeros(draws, dtype="int32")
    launched = run(draws_down_a_tree_of_sums_kernel, (cdiv(draws, 512),), (tree, weight, ask, place, got, draws), (place, got), TOP=n // 2, BLOCK=512, num_warps=4)

    def reference():
        at = torch.searchsorted(sums[1:].contiguous(), ask.long(), right=True)
        return at, weight[at]

    return against(launched, reference)


@triton.jit
def cosine_series_puts_kernel(
    spot_ptr, strike_ptr, years_ptr, price_ptr, slope_ptr, n, rate, vol, jumps, jump_mean, jump_vol, WIDTH: tl.constexpr, TERMS: tl.constexpr, BLOCK: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Prices of puts and their slopes, where prices jump, as cosine series of the characteristic function; terms go along the second axis.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    spot = tl.load(spot_ptr + i, mask=ok, other=1.0)
    strike = tl.load(strike_ptr + i, mask=ok, other=1.0)
    years = tl.load(years_ptr + i, mask=ok, other=1.0)
    x = tl.log(spot / strike)
    drift = rate - 0.5 * vol * vol - jumps * (tl.exp(jump_mean + 0.5 * jump_vol * jump_vol) - 1.0)
    price = tl.zeros((BLOCK,), dtype=tl.float32)
    slope = tl.zeros((BLOCK,), dtype=tl.float32)
    for k0 in range(0, TERMS, BLOCK_K):
        k = (k0 + tl.arange(0, BLOCK_K)).to(tl.float32)
        w = k * (3.14159265358979 / (2.0 * WIDTH))
        chi = (tl.cos(w * WIDTH) - tl.exp(-WIDTH * 1.0) + w * tl.sin(w * WIDTH)) / (1.0 + w * w)
        psi = tl.where(k == 0.0, WIDTH, tl.sin(w * WIDTH) / tl.maximum(w, 1.0e-6))
        u = (psi - chi) / WIDTH * tl.where(k == 0.0, 0.5, 1.0)
        fade = tl.exp(-0.5 * jump_vol * jump_vol * w * w)
        real = -0.5 * vol * vol * w * w + jumps * (fade * tl.cos(w * jump_mean) - 1.0)
        imag = w * drift + jumps * fade * tl.sin(w * jump_mean)
        size = tl.exp(real[None, :] * years[:, None])
        angle = imag[None, :] * years[:, None] + w[None, :] * (x[:, None] + WIDTH)
        price += tl.sum(u[None, :] * size * tl.cos(angle), axis=1)
        slope -= tl.sum(u[None, :] * w[None, :] * size * tl.sin(angle), axis=1)
    discount = strike * tl.exp(-rate * years)
    tl.store(price_ptr + i, price * discount, mask=ok)
    tl.store(slope_ptr + i, slope * discount / spot, mask=ok)


@case
def smithy_of_puts_where_prices_jump(n=60000, terms=96):
    spot, strike, years = uniform(n) * 40 + 80, uniform(n) * 40 + 80, uniform(n) * 1.5 + 0.4
    price, slope = zeros(n, dtype="float32"), zeros(n, dtype="float32")
    args = spot, strike, years, price, slope, n, 0.03, 0.25, 0.6, -0.1, 0.2
    launched = run(cosine_series_puts_kernel, (cdiv(n, 128),), args, (price, slope), WIDTH=4, TERMS=terms, BLOCK=128, BLOCK_K=16, num_warps=4)

    def reference():
        drift = 0.03 - 0.5 * 0.25**2 - 0.6 * (math.exp(-0.1 + 0.02) - 1)
        x, t = (spot.double() / strike.double()).log(), years.double()
        p, s = torch.zeros_like(x), torch.zeros_like(x)
        for k in range(terms):
            w = k * math.pi / 8
            chi = (math.cos(4 * w) - math.exp(-4) + w * math.sin(4 * w)) / (1 + w * w)
            u = ((math.sin(4 * w) / w if k else 4) - chi) / 4 * (1 if k else 0.5)
            fade = math.exp(-0.02 * w * w)
            size = ((-0.5 * 0.0625 * w * w + 0.6 * (fade * math.cos(0.1 * w) - 1)) * t).exp()
            angle = (w * drift - 0.6 * fade * math.sin(0.1 * w)) * t + w * (x + 4)
            p += u * size * angle.cos()
            s -= u * w * size * angle.sin()
        discount = strike.double() * (-0.03 * t).exp()
        return (p * discount).float(), (s * discount / spot.double()).float()

    return against(launched, reference)


@triton.jit
def parts_of_a_room_kernel(ring_ptr, room_ptr, out_ptr, head, BINS, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    # A long echo in parts: spectra of blocks past, in a ring, times those of the echo's parts; complex numbers lie in pairs.
    ch = tl.program_id(1)
    f = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pair = tl.arange(0, 2)
    mask = (f < BINS)[:, None] & (pair[None, :] < 2)
    at = 2 * f[:, None] + pair[None, :]
    re = tl.zeros((BLOCK,), dtype=tl.float32)
    im = tl.zeros((BLOCK,), dtype=tl.float32)
    for p in tl.range(0, PARTS, num_stages=4):
        slot = (head - p + PARTS) % PARTS
        x = tl.load(ring_ptr + (ch * PARTS + slot) * 2 * BINS + at, mask=mask, other=0.0)
        h = tl.load(room_ptr + (ch * PARTS + p) * 2 * BINS + at, mask=mask, other=0.0)
        xr, xi = tl.split(x)
        hr, hi = tl.split(h)
        re += xr * hr - xi * hi
        im += xr * hi + xi * hr
    tl.store(out_ptr + ch * 2 * BINS + at, tl.join(re, im), mask=mask)


@case
def smithy_of_echoes_in_parts(channels=24, parts=93, bins=2049, head=41):
    ring, room, out = f32(channels, parts, bins, 2), f32(channels, parts, bins, 2), zeros(channels, bins, 2, dtype="float32")
    launched = run(parts_of_a_room_kernel, (cdiv(bins, 256), channels), (ring, room, out, head, bins), out, PARTS=parts, BLOCK=256, num_warps=4)

    def reference():
        x = torch.view_as_complex(ring)[:, (head - torch.arange(parts, device=ring.device)) % parts]
        return torch.view_as_real((x * torch.view_as_complex(room)).sum(1))

    return against(launched, reference)


@triton.jit
def _right8(x):
    return (x >> 8) | (x << 56)


@triton.jit
def counters_by_add_rotate_xor_kernel(key_ptr, text_ptr, out_ptr, nonce, n, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    # A cipher of additions, turns and exclusive ors on words of 64 bits, in counter mode: round keys are made on the way.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    k = tl.load(key_ptr).to(tl.uint64, bitcast=True)
    l = tl.load(key_ptr + 1).to(tl.uint64, bitcast=True)
    y = i.to(tl.uint64)
    x = (tl.zeros((BLOCK,), dtype=tl.int64) + nonce).to(tl.uint64)
    for r in range(ROUNDS):
        x = (_right8(x) + y) ^ k
        y = ((y << 3) | (y >> 61)) ^ x
        l = (_right8(l) + k) ^ r
        k = ((k << 3) | (k >> 61)) ^ l
    a = tl.load(text_ptr + 2 * i, mask=ok, other=0)
    b = tl.load(text_ptr + 2 * i + 1, mask=ok, other=0)
    tl.store(out_ptr + 2 * i, a ^ x.to(tl.int64), mask=ok)
    tl.store(out_ptr + 2 * i + 1, b ^ y.to(tl.int64), mask=ok)


@case
def smithy_of_counters_enciphered(n=2_000_003, rounds=32):
    key, text = ints(-(1 << 62), 1 << 62, 2, dtype="int64"), ints(-(1 << 62), 1 << 62, n, 2, dtype="int64")
    out = zeros(n, 2, dtype="int64")
    launched = run(counters_by_add_rotate_xor_kernel, (cdiv(n, 512),), (key, text, out, 123456789, n), out, ROUNDS=rounds, BLOCK=512, num_warps=4)

    def reference():
        def right8(v):
            return v >> 8 & (1 << 56) - 1 | v << 56

        def left3(v):
            return v << 3 | v >> 61 & 7

        k, l, y = key[0], key[1], torch.arange(n, device=key.device)
        x = torch.full_like(y, 123456789)
        for r in range(rounds):
            x = right8(x) + y ^ k
            y = left3(y) ^ x
            l = right8(l) + k ^ r
            k = left3(k) ^ l
        return text ^ torch.stack((x, y), 1)

    return against(launched, reference)


@triton.jit
def _chained(v0, n0, r0, v1, n1, r1):
    go_on = r1 == 0
    return tl.where(go_on, v0 | (v1 << (7 * n0)), v1), tl.where(go_on, n0 + n1, n1), r0 | r1


@triton.jit
def numbers_of_sevens_kernel(bytes_ptr, values_ptr, count_ptr, length, BLOCK: tl.constexpr):
    # Numbers written in groups of seven bits, as many as each needs: a scan that starts anew chains the groups, another one says where numbers go.
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    ok = i < length
    b = tl.load(bytes_ptr + row * length + i, mask=ok, other=0).to(tl.int32)
    before = tl.load(bytes_ptr + row * length + i - 1, mask=ok & (i > 0), other=0).to(tl.int32)
    begins = (before < 128).to(tl.int32)
    ends = ok & (b < 128)
    value, size, _ = tl.associative_scan((b & 127, tl.full((BLOCK,), 1, dtype=tl.int32), begins), 0, _chained)
    place = tl.cumsum(ends.to(tl.int32), 0) - 1
    tl.store(values_ptr + row * length + place, value * 8 + size, mask=ends)
    tl.store(count_ptr + row, tl.sum(ends.to(tl.int32), 0))


@case
def smithy_of_numbers_in_sevens(rows=6000, length=1000):
    data = ints(0, 256, rows, length, dtype="uint8")
    keep = torch.full((length,), 255, dtype=torch.uint8, device="cuda")
    keep[3::4] = 127
    keep[-1] = 127
    data = data & keep
    values, count = zeros(rows, length, dtype="int32"), zeros(rows, dtype="int32")
    launched = run(numbers_of_sevens_kernel, (rows,), (data, values, count, length), (values, count), BLOCK=1024, num_warps=4)

    def reference():
        b = data.long()
        ends = (b < 128).long()
        begins = F.pad(ends, (1, 0))[:, :-1]
        begins[:, 0] = 1
        at = torch.arange(length, device=b.device)
        start = torch.where(begins == 1, at, 0).cummax(1)[0]
        place = ends.cumsum(1) - ends
        parts = ((b & 127) << 7 * (at - start)) * 8 + 1
        return torch.zeros_like(b).scatter_add(1, place, parts), ends.sum(1)

    return against(launched, reference)
