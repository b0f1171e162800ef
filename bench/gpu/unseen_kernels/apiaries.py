"""Apiaries: what swarms: charges in water, walkers on lattices, stones in groups, motifs and fingerprints, links and density matrices, frames of sound, losses of portfolios, residues and bits."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros


@triton.jit
def solvation_kernel(xyz_ptr, charge_ptr, radius_ptr, energy_ptr, push_ptr, n, kappa, BI: tl.constexpr, BJ: tl.constexpr):
    # Energies of charges in water by effective radii, each atom against all, with salt that screens, and how they depend on the radius.
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    mi = i < n
    xi = tl.load(xyz_ptr + i * 3, mask=mi, other=0.0)
    yi = tl.load(xyz_ptr + i * 3 + 1, mask=mi, other=0.0)
    zi = tl.load(xyz_ptr + i * 3 + 2, mask=mi, other=0.0)
    qi = tl.load(charge_ptr + i, mask=mi, other=0.0)
    ri = tl.load(radius_ptr + i, mask=mi, other=1.0)
    energy = tl.zeros((BI,), tl.float32)
    push = tl.zeros((BI,), tl.float32)
    for j0 in range(0, n, BJ):
        j = j0 + tl.arange(0, BJ)
        mj = j < n
        dx = xi[:, None] - tl.load(xyz_ptr + j * 3, mask=mj, other=0.0)[None, :]
        dy = yi[:, None] - tl.load(xyz_ptr + j * 3 + 1, mask=mj, other=0.0)[None, :]
        dz = zi[:, None] - tl.load(xyz_ptr + j * 3 + 2, mask=mj, other=0.0)[None, :]
        qj = tl.load(charge_ptr + j, mask=mj, other=0.0)[None, :]
        rj = tl.load(radius_ptr + j, mask=mj, other=1.0)[None, :]
        r2 = dx * dx + dy * dy + dz * dz
        rr = ri[:, None] * rj
        e = tl.exp(-r2 / (4.0 * rr))
        f = tl.sqrt(r2 + rr * e)
        screen = 1.0 - tl.exp(-kappa * f) / 78.5
        energy += tl.sum(qj * screen / f, axis=1)
        push += tl.sum(qj * screen / (f * f * f) * e * (rj + 0.25 * r2 / ri[:, None]), axis=1)
    tl.store(energy_ptr + i, -166.0 * qi * energy, mask=mi)
    tl.store(push_ptr + i, 166.0 * qi * push, mask=mi)


@case
def apiary_of_charges_in_water(n=5003):
    xyz, charge, radius = uniform(n, 3) * 60, uniform(n) * 0.5 + 0.1, uniform(n) * 2 + 1.2
    energy, push = zeros(n, dtype="float32"), zeros(n, dtype="float32")
    launched = run(solvation_kernel, (cdiv(n, 16),), (xyz, charge, radius, energy, push, n, 0.1), (energy, push), BI=16, BJ=128, num_warps=4)

    def reference():
        es, ps = [], []
        for i in range(0, n, 500):
            r2 = (xyz[i : i + 500, None] - xyz).square().sum(2)
            rr = radius[i : i + 500, None] * radius
            e = (-r2 / (4 * rr)).exp()
            f = (r2 + rr * e).sqrt()
            screen = 1 - (-0.1 * f).exp() / 78.5
            es.append((charge * screen / f).sum(1))
            ps.append((charge * screen / f**3 * e * (radius + 0.25 * r2 / radius[i : i + 500, None])).sum(1))
        return -166 * charge * torch.cat(es), 166 * charge * torch.cat(ps)

    return against(launched, reference)


@triton.jit
def batched_expm_kernel(a_ptr, out_ptr, batch, N: tl.constexpr, TERMS: tl.constexpr, SQUARINGS: tl.constexpr):
    # Exponentials of small matrices: a series by Horner's rule, then squared again and again.
    b = tl.program_id(0)
    r = tl.arange(0, N)
    at = b * N * N + r[:, None] * N + r[None, :]
    one = (r[:, None] == r[None, :]).to(tl.float32)
    a = tl.load(a_ptr + at) * (1.0 / (1 << SQUARINGS))
    e = one
    for i in range(TERMS):
        e = one + tl.dot(a, e, input_precision="ieee") / (TERMS - i)
    for _ in range(SQUARINGS):
        e = tl.dot(e, e, input_precision="ieee")
    tl.store(out_ptr + at, e)


@case
def apiary_of_exponentials_of_matrices(batch=3000, n=32):
    a, out = f32(batch, n, n) * 0.2, zeros(batch, n, n, dtype="float32")
    launched = run(batched_expm_kernel, (batch,), (a, out, batch), out, N=n, TERMS=8, SQUARINGS=4, num_warps=2)
    return against(launched, lambda: torch.linalg.matrix_exp(a.double()).float())


@triton.jit
def dct4_of_frames_kernel(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Cosine transforms of the fourth kind whose cosines are made where they are multiplied, of angles reduced as integers.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    k = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for n0 in range(0, N, BK):
        n = n0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=(m[:, None] < M) & (n[None, :] < N), other=0.0)
        turn = ((2 * n[:, None] + 1) * (2 * k[None, :] + 1)) % (8 * N)
        basis = tl.cos(turn.to(tl.float32) * (3.14159265358979 / (4.0 * N)))
        acc += tl.dot(x, basis.to(x.dtype))
    tl.store(y_ptr + m[:, None] * N + k[None, :], acc * tl.sqrt(2.0 / N), mask=(m[:, None] < M) & (k[None, :] < N))


@case
def apiary_of_cosines_made_on_the_spot(m=3000, n=480):
    x, y = rand(m, n), zeros(m, n, dtype="float32")
    launched = run(dct4_of_frames_kernel, (cdiv(m, 64), cdiv(n, 64)), (x, y, m, n), y, BM=64, BN=64, BK=32, num_warps=4)

    def reference():
        odd = 2 * torch.arange(n, device=x.device).double() + 1
        basis = (odd[:, None] * odd * (math.pi / (4 * n))).cos().half().float()
        return x.float() @ basis * math.sqrt(2 / n)

    return against(launched, reference)


@triton.jit
def constant_q_kernel(
    x_ptr, re_ptr, im_ptr, mag_ptr, length, frames, bins, HOP: tl.constexpr, WIN: tl.constexpr, BF: tl.constexpr, BB: tl.constexpr, BK: tl.constexpr,
):
    # Magnitudes of notes in overlapping frames of sound: two products share the frames, which are never cut out.
    f = tl.program_id(0) * BF + tl.arange(0, BF)
    b = tl.program_id(1) * BB + tl.arange(0, BB)
    real = tl.zeros((BF, BB), tl.float32)
    imag = tl.zeros((BF, BB), tl.float32)
    for k0 in tl.range(0, WIN, BK, num_stages=3):
        k = k0 + tl.arange(0, BK)
        at = f[:, None] * HOP + k[None, :] - WIN // 2
        at = tl.where(at < 0, -at, at)
        at = tl.where(at >= length, 2 * length - 2 - at, at)
        x = tl.load(x_ptr + at, mask=f[:, None] < frames, other=0.0)
        where = k[:, None] * bins + b[None, :]
        c = tl.load(re_ptr + where, mask=b[None, :] < bins, other=0.0)
        s = tl.load(im_ptr + where, mask=b[None, :] < bins, other=0.0)
        real = tl.dot(x, c, real)
        imag = tl.dot(x, s, imag)
    mag = tl.sqrt(real * real + imag * imag + 1e-9)
    tl.store(mag_ptr + b[None, :] * frames + f[:, None], mag, mask=(f[:, None] < frames) & (b[None, :] < bins))


@case
def apiary_of_notes_in_sound(length=400_000, bins=84, hop=160, win=1024):
    x, frames = rand(length), length // hop + 1
    k, note = torch.arange(win, device="cuda")[:, None].double(), 0.01 * 2.0 ** (arange(bins).double() / 12)
    window = (-((k - win / 2) * note).square() / 8).exp()
    re, im = (window * (k * note).cos()).half(), (window * (k * note).sin()).half()
    mag = zeros(bins, frames, dtype="float32")
    args = x, re, im, mag, length, frames, bins
    launched = run(constant_q_kernel, (cdiv(frames, 64), cdiv(bins, 32)), args, mag, HOP=hop, WIN=win, BF=64, BB=32, BK=64, num_warps=4)

    def reference():
        padded = F.pad(x.float()[None, None], (win // 2, win // 2), mode="reflect")[0, 0]
        cut = padded.unfold(0, win, hop)[:frames]
        return ((cut @ re.float()).square() + (cut @ im.float()).square() + 1e-9).sqrt().t()

    return against(launched, reference)


@triton.jit
def motifs_by_one_hot_kernel(seq_ptr, pwm_ptr, best_ptr, where_ptr, LEN, WIDTH: tl.constexpr, MOTIFS: tl.constexpr, BP: tl.constexpr, BK: tl.constexpr):
    # Four bases to a byte are opened to ones and zeros, which are multiplied by the motifs' scores, and the best places kept.
    s = tl.program_id(0)
    motif = tl.arange(0, MOTIFS)
    best = tl.full((MOTIFS,), -(1 << 30), tl.int32)
    where = tl.zeros((MOTIFS,), tl.int32)
    for p0 in range(0, LEN - WIDTH + 1, BP):
        p = p0 + tl.arange(0, BP)
        score = tl.zeros((BP, MOTIFS), tl.int32)
        for k0 in tl.static_range(0, 4 * WIDTH, BK):
            k = k0 + tl.arange(0, BK)
            at = p[:, None] + k[None, :] // 4
            byte = tl.load(seq_ptr + s * (LEN // 4) + at // 4, mask=at < LEN, other=0).to(tl.int32)
            base = (byte >> ((at % 4) * 2)) & 3
            hot = (base == k[None, :] % 4).to(tl.int8)
            pwm = tl.load(pwm_ptr + motif[None, :] * (4 * WIDTH) + k[:, None])
            score = tl.dot(hot, pwm, score, out_dtype=tl.int32)
        score = tl.where(p[:, None] <= LEN - WIDTH, score, -(1 << 30))
        top, index = tl.max(score, axis=0, return_indices=True)
        where = tl.where(top > best, p0 + index, where)
        best = tl.maximum(best, top)
    tl.store(best_ptr + s * MOTIFS + motif, best)
    tl.store(where_ptr + s * MOTIFS + motif, where)


@case
def apiary_of_motifs_among_bases(sequences=300, length=2000, motifs=64, width=16):
    seq, pwm = ints(0, 256, sequences, length // 4, dtype="uint8"), ints(-100, 60, motifs, 4 * width, dtype="int8")
    best, where = zeros(sequences, motifs, dtype="int32"), zeros(sequences, motifs, dtype="int32")
    launched = run(motifs_by_one_hot_kernel, (sequences,), (seq, pwm, best, where, length), (best, where), WIDTH=width, MOTIFS=motifs, BP=64, BK=32, num_warps=4)

    def reference():
        bases = torch.stack([(seq >> (2 * i)) & 3 for i in range(4)], 2).reshape(sequences, length).long()
        hot = F.one_hot(bases, 4).float().transpose(1, 2)
        scores = F.conv1d(hot, pwm.float().reshape(motifs, width, 4).transpose(1, 2))
        top = scores.amax(2)
        places = torch.arange(scores.shape[2], device=seq.device)
        return top, torch.where(scores == top[..., None], places, length).amin(2)

    return against(launched, reference)


@triton.jit
def tail_of_scenarios_kernel(w_ptr, r_ptr, var_ptr, es_ptr, median_ptr, P, K, TAIL: tl.constexpr, BP: tl.constexpr, S: tl.constexpr, BK: tl.constexpr):
    # Profits of portfolios in all scenarios are one tile, which is sorted; then what the worst of them lose.
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    s = tl.arange(0, S)
    pnl = tl.zeros((BP, S), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        w = tl.load(w_ptr + p[:, None] * K + k[None, :], mask=(p[:, None] < P) & (k[None, :] < K), other=0.0)
        r = tl.load(r_ptr + k[:, None] * S + s[None, :], mask=k[:, None] < K, other=0.0)
        pnl = tl.dot(w, r, pnl)
    pnl = tl.sort(pnl, dim=1)
    var = tl.sum(tl.where(s[None, :] == TAIL - 1, pnl, 0.0), axis=1)
    es = tl.sum(tl.where(s[None, :] < TAIL, pnl, 0.0), axis=1) / TAIL
    median = tl.sum(tl.where((s[None, :] == S // 2) | (s[None, :] == S // 2 - 1), pnl, 0.0), axis=1) * 0.5
    tl.store(var_ptr + p, -var, mask=p < P)
    tl.store(es_ptr + p, -es, mask=p < P)
    tl.store(median_ptr + p, median, mask=p < P)


@case
def apiary_of_worst_scenarios(portfolios=3001, factors=300, scenarios=512):
    w, r = rand(portfolios, factors), rand(factors, scenarios)
    var, es, median = (zeros(portfolios, dtype="float32") for _ in range(3))
    launched = run(tail_of_scenarios_kernel, (cdiv(portfolios, 16),), (w, r, var, es, median, portfolios, factors), (var, es, median), TAIL=25, BP=16, S=scenarios, BK=32, num_warps=8, num_stages=2)

    def reference():
        s = (w.float() @ r.float()).sort(1).values
        return -s[:, 24], -s[:, :25].mean(1), s[:, scenarios // 2 - 1 : scenarios // 2 + 1].mean(1)

    return against(launched, reference)


@triton.jit
def xtea_counter_kernel(data_ptr, key_ptr, out_ptr, n, nonce, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    # A block cipher of shifts and sums in counter mode: two words of data for each counter.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v0 = i.to(tl.uint32)
    v1 = tl.full((BLOCK,), 0, tl.uint32) + nonce.to(tl.uint32)
    total = tl.full((BLOCK,), 0, tl.uint32)
    for _ in range(ROUNDS):
        k = tl.load(key_ptr + (total & 3).to(tl.int32)).to(tl.uint32, bitcast=True)
        v0 += (((v1 << 4) ^ (v1 >> 5)) + v1) ^ (total + k)
        total += 0x9E3779B9
        k = tl.load(key_ptr + ((total >> 11) & 3).to(tl.int32)).to(tl.uint32, bitcast=True)
        v1 += (((v0 << 4) ^ (v0 >> 5)) + v0) ^ (total + k)
    a = tl.load(data_ptr + 2 * i, mask=i < n, other=0)
    b = tl.load(data_ptr + 2 * i + 1, mask=i < n, other=0)
    tl.store(out_ptr + 2 * i, a ^ v0.to(tl.int32, bitcast=True), mask=i < n)
    tl.store(out_ptr + 2 * i + 1, b ^ v1.to(tl.int32, bitcast=True), mask=i < n)


@case
def apiary_of_counters_enciphered(n=1_000_003, rounds=32):
    data, key, out = ints(-(2**31), 2**31 - 1, n, 2), ints(-(2**31), 2**31 - 1, 4), zeros(n, 2, dtype="int32")
    launched = run(xtea_counter_kernel, (cdiv(n, 512),), (data, key, out, n, 123456789), out, ROUNDS=rounds, BLOCK=512, num_warps=4)

    def reference():
        full, k = 0xFFFFFFFF, key.long() & 0xFFFFFFFF
        v0, v1, total = torch.arange(n, device=data.device), torch.full((n,), 123456789, device=data.device), 0
        for _ in range(rounds):
            v0 = (v0 + (((((v1 << 4) & full) ^ (v1 >> 5)) + v1) & full ^ ((total + k[total & 3]) & full))) & full
            total = (total + 0x9E3779B9) & full
            v1 = (v1 + (((((v0 << 4) & full) ^ (v0 >> 5)) + v0) & full ^ ((total + k[(total >> 11) & 3]) & full))) & full
        return (torch.stack((v0, v1), 1) ^ (data.long() & full)).to(torch.int32)

    return against(launched, reference)


@triton.jit
def ranks_over_two_kernel(rows_ptr, rank_ptr, reduced_ptr, batch, BB: tl.constexpr):
    # Ranks of 32 x 32 matrices of bits, a word to a row, by elimination in registers.
    b = tl.program_id(0) * BB + tl.arange(0, BB)
    r = tl.arange(0, 32)
    at = b[:, None] * 32 + r[None, :]
    rows = tl.load(rows_ptr + at, mask=b[:, None] < batch, other=0)
    used = tl.zeros((BB, 32), tl.int32)
    rank = tl.zeros((BB,), tl.int32)
    for c in range(32):
        bit = (rows >> c) & 1
        first = tl.min(tl.where((bit == 1) & (used == 0), r[None, :], 32), axis=1)
        is_pivot = r[None, :] == first[:, None]
        pivot = tl.sum(tl.where(is_pivot, rows, 0), axis=1)
        rows = tl.where((bit == 1) & (is_pivot == 0) & (first[:, None] < 32), rows ^ pivot[:, None], rows)
        used = used | is_pivot.to(tl.int32)
        rank += (first < 32).to(tl.int32)
    tl.store(rank_ptr + b, rank, mask=b < batch)
    tl.store(reduced_ptr + at, rows, mask=b[:, None] < batch)


@case
def apiary_of_ranks_of_bits(batch=30001):
    rows = ints(-(2**31), 2**31 - 1, batch, 32) & ints(-(2**31), 2**31 - 1, batch, 32)
    rows[::3, 20:] = rows[::3, :12] ^ rows[::3, 4:16]
    rank, reduced = zeros(batch, dtype="int32"), zeros(batch, 32, dtype="int32")
    launched = run(ranks_over_two_kernel, (cdiv(batch, 8),), (rows, rank, reduced, batch), (rank, reduced), BB=8, num_warps=2)

    def reference():
        m, used, count = rows.clone(), torch.zeros(batch, 32, dtype=torch.bool, device=rows.device), torch.zeros(batch, dtype=torch.int32, device=rows.device)
        r = torch.arange(32, device=rows.device)
        for c in range(32):
            bit = (m >> c) & 1 == 1
            first = torch.where(bit & ~used, r, 32).amin(1)
            hit = r == first[:, None]
            pivot = m.gather(1, first.clamp(max=31)[:, None])
            m = torch.where(bit & ~hit & (first < 32)[:, None], m ^ pivot, m)
            used |= hit
            count += first < 32
        return count, m

    return against(launched, reference)


@triton.jit
def product_of_residues_kernel(a_ptr, b_ptr, c_ptr, M, N, K, PRIME: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Exact products of residues of fifteen bits: each is two signed bytes, and four products of bytes are put together in the end.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    high = tl.zeros((BM, BN), tl.int32)
    middle = tl.zeros((BM, BN), tl.int32)
    low = tl.zeros((BM, BN), tl.int32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0).to(tl.int32)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0).to(tl.int32)
        a1 = (a + 128) >> 8
        b1 = (b + 128) >> 8
        a0 = (a - (a1 << 8)).to(tl.int8)
        b0 = (b - (b1 << 8)).to(tl.int8)
        a1 = a1.to(tl.int8)
        b1 = b1.to(tl.int8)
        high = tl.dot(a1, b1, high, out_dtype=tl.int32)
        middle = tl.dot(a1, b0, middle, out_dtype=tl.int32)
        middle = tl.dot(a0, b1, middle, out_dtype=tl.int32)
        low = tl.dot(a0, b0, low, out_dtype=tl.int32)
    total = high.to(tl.int64) * 65536 + middle.to(tl.int64) * 256 + low.to(tl.int64)
    total = total % PRIME
    total = tl.where(total < 0, total + PRIME, total)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total.to(tl.int16), mask=(m[:, None] < M) & (n[None, :] < N))


@case
def apiary_of_products_of_residues(m=900, n=1030, k=1000, prime=32749):
    a, b = (ints(0, prime, *s, dtype="int16") - prime // 2 for s in ((m, k), (k, n)))
    c = zeros(m, n, dtype="int16")
    launched = run(product_of_residues_kernel, (cdiv(m, 64), cdiv(n, 64)), (a, b, c, m, n, k), c, PRIME=prime, BM=64, BN=64, BK=64, num_warps=4, num_stages=2)
    return against(launched, lambda: (a.double() @ b.double()).long() % prime)


@triton.jit
def increasing_subsequence_kernel(x_ptr, weight_ptr, length_ptr, heavy_ptr, n, BLOCK: tl.constexpr):
    # The longest subsequence that goes up, and the heaviest one, a place at a time.
    s = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + s * n + i, mask=i < n, other=0)
    longest = tl.zeros((BLOCK,), tl.int32)
    heaviest = tl.zeros((BLOCK,), tl.float32)
    for j in range(n):
        xj = tl.load(x_ptr + s * n + j)
        wj = tl.load(weight_ptr + s * n + j)
        before = (i < j) & (x < xj)
        long_j = tl.max(tl.where(before, longest, 0), axis=0) + 1
        heavy_j = tl.max(tl.where(before, heaviest, 0.0), axis=0) + wj
        longest = tl.where(i == j, long_j, longest)
        heaviest = tl.where(i == j, heavy_j, heaviest)
    tl.store(length_ptr + s, tl.max(longest, axis=0))
    tl.store(heavy_ptr + s, tl.max(heaviest, axis=0))


@case
def apiary_of_subsequences_that_go_up(sequences=4000, n=250):
    x, weight = ints(0, 1000, sequences, n, dtype="int16"), uniform(sequences, n)
    length, heavy = zeros(sequences, dtype="int32"), zeros(sequences, dtype="float32")
    launched = run(increasing_subsequence_kernel, (sequences,), (x, weight, length, heavy, n), (length, heavy), BLOCK=256, num_warps=1)

    def reference():
        longest, heaviest = torch.zeros(sequences, n, device=x.device), torch.zeros(sequences, n, device=x.device)
        for j in range(n):
            below = x[:, :j] < x[:, j : j + 1]
            longest[:, j] = 1 + (F.pad(longest[:, :j] * below, (0, 1))).amax(1)
            heaviest[:, j] = weight[:, j] + (F.pad(heaviest[:, :j] * below, (0, 1))).amax(1)
        return longest.amax(1), heaviest.amax(1)

    return against(launched, reference)


@triton.jit
def group_sums_by_product_kernel(
    key_ptr, day_ptr, val_ptr, sum_ptr, count_ptr, rows, first_day, last_day, per_program, GROUPS: tl.constexpr, COLS: tl.constexpr, BR: tl.constexpr,
):
    # Sums of columns by a key, of rows between two days: a matrix of who belongs where times the columns.
    start = tl.program_id(0) * per_program
    g = tl.arange(0, GROUPS)
    c = tl.arange(0, COLS)
    acc = tl.zeros((GROUPS, COLS), tl.float32)
    count = tl.zeros((GROUPS,), tl.int32)
    for r0 in range(start, min(start + per_program, rows), BR):
        r = r0 + tl.arange(0, BR)
        live = r < rows
        day = tl.load(day_ptr + r, mask=live, other=-1)
        key = tl.load(key_ptr + r, mask=live, other=255)
        live = live & (day >= first_day) & (day < last_day)
        member = (key[None, :] == g[:, None]) & live[None, :]
        val = tl.load(val_ptr + r[:, None].to(tl.int64) * COLS + c[None, :], mask=live[:, None], other=0.0)
        acc = tl.dot(member.to(tl.float16), val, acc)
        count += tl.sum(member.to(tl.int32), axis=1)
    tl.atomic_add(sum_ptr + g[:, None] * COLS + c[None, :], acc)
    tl.atomic_add(count_ptr + g, count)


@case
def apiary_of_sums_by_who_belongs(rows=800_003, groups=64, cols=32, programs=264):
    key, day, val = ints(0, 70, rows, dtype="uint8"), ints(0, 365, rows, dtype="int16"), rand(rows, cols)
    sums, count = zeros(groups, cols, dtype="float32"), zeros(groups, dtype="int32")
    args = key, day, val, sums, count, rows, 90, 270, cdiv(cdiv(rows, 64), programs) * 64
    launched = run(group_sums_by_product_kernel, (programs,), args, (sums, count), GROUPS=groups, COLS=cols, BR=64, num_warps=4, num_stages=4)

    def reference():
        live = (day >= 90) & (day < 270) & (key < groups)
        at = key[live].long()
        total = torch.zeros(groups, cols, dtype=torch.float64, device=val.device).index_add_(0, at, val[live].double())
        return total.float(), torch.bincount(at, minlength=groups)

    return against(cleared(launched, sums, count), reference)


@triton.jit
def stones_in_groups_kernel(board_ptr, label_ptr, rounds_ptr, S: tl.constexpr, N: tl.constexpr):
    # Stones of one color that touch get the least number among them; a board is one tile, neighbors come by gathers.
    b = tl.program_id(0)
    y = tl.arange(0, N)[:, None]
    x = tl.arange(0, N)[None, :]
    inside = (y < S) & (x < S)
    stone = tl.load(board_ptr + b * S * S + y * S + x, mask=inside, other=-1).to(tl.int32)
    label = tl.where(inside, y * N + x, 0)
    up = tl.maximum(y - 1, 0) + tl.zeros((N, N), tl.int32)
    down = tl.minimum(y + 1, N - 1) + tl.zeros((N, N), tl.int32)
    left = tl.maximum(x - 1, 0) + tl.zeros((N, N), tl.int32)
    right = tl.minimum(x + 1, N - 1) + tl.zeros((N, N), tl.int32)
    same_up = tl.gather(stone, up, 0) == stone
    same_down = tl.gather(stone, down, 0) == stone
    same_left = tl.gather(stone, left, 1) == stone
    same_right = tl.gather(stone, right, 1) == stone
    rounds = 0
    changed = 1
    while changed > 0:
        new = tl.minimum(label, tl.where(same_up, tl.gather(label, up, 0), label))
        new = tl.minimum(new, tl.where(same_down, tl.gather(label, down, 0), label))
        new = tl.minimum(new, tl.where(same_left, tl.gather(label, left, 1), label))
        new = tl.minimum(new, tl.where(same_right, tl.gather(label, right, 1), label))
        changed = tl.max(tl.max((new != label).to(tl.int32), axis=1), axis=0)
        rounds += changed
        label = new
    tl.store(label_ptr + b * S * S + y * S + x, tl.where(stone > 0, label, -1), mask=inside)
    tl.store(rounds_ptr + b, rounds)


@case
def apiary_of_stones_that_touch(boards=2000, size=19):
    board = ints(0, 3, boards, size, size, dtype="uint8")
    label, rounds = zeros(boards, size, size, dtype="int32"), zeros(boards, dtype="int32")
    launched = run(stones_in_groups_kernel, (boards,), (board, label, rounds), (label, rounds), S=size, N=32, num_warps=4)

    def reference():
        stone = F.pad(board.int(), (1, 1, 1, 1), value=9)
        ids = F.pad((torch.arange(size, device=board.device)[:, None] * 32 + torch.arange(size, device=board.device)).int().expand(boards, -1, -1), (1, 1, 1, 1), value=1 << 20)
        steps, middle = torch.zeros(boards, dtype=torch.int32, device=board.device), (slice(None), slice(1, -1), slice(1, -1))
        while True:
            new = ids[middle]
            for dy, dx in ((0, 1), (2, 1), (1, 0), (1, 2)):
                part = (slice(None), slice(dy, dy + size), slice(dx, dx + size))
                new = torch.where(stone[part] == stone[middle], torch.minimum(new, ids[part]), new)
            moved = (new != ids[middle]).flatten(1).any(1)
            if not bool(moved.any()):
                return torch.where(board > 0, ids[middle], -1), steps
            steps += moved
            ids[middle] = new

    return against(launched, reference)


@triton.jit
def lattice_walkers_kernel(seed_ptr, returns_ptr, far_ptr, n, steps, BLOCK: tl.constexpr):
    # Walkers on a cubic lattice by shifts of their own seeds: how often they come home, and how far they get.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = tl.load(seed_ptr + i, mask=i < n, other=1).to(tl.uint32, bitcast=True)
    x = tl.zeros((BLOCK,), tl.int32)
    y = tl.zeros((BLOCK,), tl.int32)
    z = tl.zeros((BLOCK,), tl.int32)
    home = tl.zeros((BLOCK,), tl.int32)
    far = tl.zeros((BLOCK,), tl.int32)
    for _ in range(steps):
        state ^= state << 13
        state ^= state >> 17
        state ^= state << 5
        way = ((state >> 8) % 6).to(tl.int32)
        move = 1 - 2 * (way & 1)
        axis = way >> 1
        x += tl.where(axis == 0, move, 0)
        y += tl.where(axis == 1, move, 0)
        z += tl.where(axis == 2, move, 0)
        d = x * x + y * y + z * z
        home += (d == 0).to(tl.int32)
        far = tl.maximum(far, d)
    tl.store(returns_ptr + i, home, mask=i < n)
    tl.store(far_ptr + i, far, mask=i < n)


@case
def apiary_of_walkers_that_come_home(n=300_007, steps=256):
    seed, home, far = ints(1, 2**31 - 1, n), zeros(n, dtype="int32"), zeros(n, dtype="int32")
    launched = run(lattice_walkers_kernel, (cdiv(n, 256),), (seed, home, far, n, steps), (home, far), BLOCK=256, num_warps=4)

    def reference():
        state, where = seed.long(), torch.zeros(n, 3, dtype=torch.int64, device=seed.device)
        returns, most = torch.zeros(n, dtype=torch.int64, device=seed.device), torch.zeros(n, dtype=torch.int64, device=seed.device)
        for _ in range(steps):
            state = state ^ ((state << 13) & 0xFFFFFFFF)
            state = state ^ (state >> 17)
            state = state ^ ((state << 5) & 0xFFFFFFFF)
            way = (state >> 8) % 6
            where.scatter_add_(1, (way // 2)[:, None], (1 - 2 * (way % 2))[:, None])
            d = where.square().sum(1)
            returns += d == 0
            most = torch.maximum(most, d)
        return returns, most

    return against(launched, reference)


@triton.jit
def density_steps_kernel(rho_re, rho_im, u_re, u_im, out_re, out_im, purity_ptr, steps, keep, N: tl.constexpr):
    # Density matrices go through gates, conjugated on both sides, and lose what is off the diagonal; complex numbers in two parts.
    b = tl.program_id(0)
    r = tl.arange(0, N)
    tile = r[:, None] * N + r[None, :]
    re = tl.load(rho_re + b * N * N + tile)
    im = tl.load(rho_im + b * N * N + tile)
    fade = tl.where(r[:, None] == r[None, :], 1.0, keep)
    for t in range(steps):
        ur = tl.load(u_re + t * N * N + tile)
        ui = tl.load(u_im + t * N * N + tile)
        left_re = tl.dot(ur, re, input_precision="ieee") - tl.dot(ui, im, input_precision="ieee")
        left_im = tl.dot(ur, im, input_precision="ieee") + tl.dot(ui, re, input_precision="ieee")
        ut = tl.trans(ur)
        vt = tl.trans(ui)
        re = (tl.dot(left_re, ut, input_precision="ieee") + tl.dot(left_im, vt, input_precision="ieee")) * fade
        im = (tl.dot(left_im, ut, input_precision="ieee") - tl.dot(left_re, vt, input_precision="ieee")) * fade
    tl.store(out_re + b * N * N + tile, re)
    tl.store(out_im + b * N * N + tile, im)
    tl.store(purity_ptr + b, tl.sum(tl.sum(re * re + im * im, axis=1), axis=0))


@case
def apiary_of_states_through_gates(batch=1000, n=32, steps=5):
    rho_re, rho_im = f32(batch, n, n), f32(batch, n, n)
    u_re, u_im = f32(steps, n, n) / math.sqrt(2 * n), f32(steps, n, n) / math.sqrt(2 * n)
    out_re, out_im, purity = zeros(batch, n, n, dtype="float32"), zeros(batch, n, n, dtype="float32"), zeros(batch, dtype="float32")
    args = rho_re, rho_im, u_re, u_im, out_re, out_im, purity, steps, 0.9
    launched = run(density_steps_kernel, (batch,), args, (out_re, out_im, purity), N=n, num_warps=4)

    def reference():
        rho, u = torch.complex(rho_re.double(), rho_im.double()), torch.complex(u_re.double(), u_im.double())
        fade = torch.full((n, n), 0.9, device=u.device).fill_diagonal_(1)
        for t in range(steps):
            rho = u[t] @ rho @ u[t].mH * fade
        return rho.real.float(), rho.imag.float(), rho.abs().square().sum((1, 2)).float()

    return against(launched, reference)


@triton.jit
def times_quaternion(a0, a1, a2, a3, b0, b1, b2, b3):
    return (
        a0 * b0 - a1 * b1 - a2 * b2 - a3 * b3,
        a0 * b1 + a1 * b0 - a2 * b3 + a3 * b2,
        a0 * b2 + a2 * b0 - a3 * b1 + a1 * b3,
        a0 * b3 + a3 * b0 - a1 * b2 + a2 * b1,
    )


@triton.jit
def link_of(u_ptr, mu, site, V):
    at = u_ptr + (mu * V + site) * 4
    return tl.load(at), tl.load(at + 1), tl.load(at + 2), tl.load(at + 3)


@triton.jit
def next_site(site, MU: tl.constexpr, L: tl.constexpr, T: tl.constexpr):
    STRIDE: tl.constexpr = L**MU
    EXTENT: tl.constexpr = T if MU == 3 else L
    place = (site // STRIDE) % EXTENT
    return tl.where(place == EXTENT - 1, site - (EXTENT - 1) * STRIDE, site + STRIDE)


@triton.jit
def plaquettes_su2_kernel(u_ptr, space_ptr, time_ptr, V, L: tl.constexpr, T: tl.constexpr, BLOCK: tl.constexpr):
    # Traces of SU(2) links around all squares at a site of a four-dimensional lattice, those in space and those in time apart.
    site = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = site < V
    site = tl.where(live, site, 0)
    space = tl.zeros((BLOCK,), tl.float32)
    time = tl.zeros((BLOCK,), tl.float32)
    for mu in tl.static_range(0, 3):
        for nu in tl.static_range(mu + 1, 4):
            a0, a1, a2, a3 = link_of(u_ptr, mu, site, V)
            b0, b1, b2, b3 = link_of(u_ptr, nu, next_site(site, mu, L, T), V)
            c0, c1, c2, c3 = link_of(u_ptr, mu, next_site(site, nu, L, T), V)
            d0, d1, d2, d3 = link_of(u_ptr, nu, site, V)
            p0, p1, p2, p3 = times_quaternion(a0, a1, a2, a3, b0, b1, b2, b3)
            q0, q1, q2, q3 = times_quaternion(d0, d1, d2, d3, c0, c1, c2, c3)
            trace = p0 * q0 + p1 * q1 + p2 * q2 + p3 * q3
            if nu == 3:
                time += trace
            else:
                space += trace
    tl.store(space_ptr + site, space / 3.0, mask=live)
    tl.store(time_ptr + site, time / 3.0, mask=live)


@case
def apiary_of_squares_of_links(side=20, times=32):
    v = side**3 * times
    u = F.normalize(f32(4, v, 4) * 0.4 + torch.tensor([1.0, 0, 0, 0], device="cuda"), dim=2)
    space, time = zeros(v, dtype="float32"), zeros(v, dtype="float32")
    launched = run(plaquettes_su2_kernel, (cdiv(v, 128),), (u, space, time, v), (space, time), L=side, T=times, BLOCK=128, num_warps=4)

    def reference():
        a, b = torch.complex(u[..., 0], u[..., 3]), torch.complex(u[..., 2], u[..., 1])
        m = torch.stack((a, b, -b.conj(), a.conj()), 2).reshape(4, times, side, side, side, 2, 2)
        dims, sums = (3, 2, 1, 0), [0, 0]
        for mu in range(3):
            for nu in range(mu + 1, 4):
                square = m[mu] @ m[nu].roll(-1, dims[mu]) @ m[mu].roll(-1, dims[nu]).mH @ m[nu].mH
                sums[nu == 3] = sums[nu == 3] + square.diagonal(dim1=4, dim2=5).sum(4).real / 2
        return (sums[0] / 3).reshape(-1), (sums[1] / 3).reshape(-1)

    return against(launched, reference)


@triton.jit
def ssim_tiles_kernel(x_ptr, y_ptr, w_ptr, sum_ptr, H, W, C1, C2, TAPS: tl.constexpr, TILE: tl.constexpr):
    # How alike two images are: five blurs of a tile, each a band matrix times the tile times the band matrix turned.
    OUT: tl.constexpr = TILE - TAPS + 1
    tx = tl.program_id(0)
    ty = tl.program_id(1)
    img = tl.program_id(2)
    i = tl.arange(0, TILE)
    gap = i[None, :] - i[:, None]
    band = tl.load(w_ptr + gap, mask=(gap >= 0) & (gap < TAPS) & (i[:, None] < OUT), other=0.0)
    band_t = tl.trans(band)
    row = ty * OUT + i
    col = tx * OUT + i
    at = img * H * W + row[:, None] * W + col[None, :]
    ok = (row[:, None] < H) & (col[None, :] < W)
    x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=ok, other=0.0).to(tl.float32)
    mx = x
    my = y
    for which in tl.static_range(5):
        if which == 0:
            mx = tl.dot(tl.dot(band, x, input_precision="ieee"), band_t, input_precision="ieee")
        elif which == 1:
            my = tl.dot(tl.dot(band, y, input_precision="ieee"), band_t, input_precision="ieee")
        elif which == 2:
            xx = tl.dot(tl.dot(band, x * x, input_precision="ieee"), band_t, input_precision="ieee") - mx * mx
        elif which == 3:
            yy = tl.dot(tl.dot(band, y * y, input_precision="ieee"), band_t, input_precision="ieee") - my * my
        else:
            xy = tl.dot(tl.dot(band, x * y, input_precision="ieee"), band_t, input_precision="ieee") - mx * my
    ssim = (2 * mx * my + C1) * (2 * xy + C2) / ((mx * mx + my * my + C1) * (xx + yy + C2))
    good = (i[:, None] < OUT) & (i[None, :] < OUT) & (row[:, None] < H - TAPS + 1) & (col[None, :] < W - TAPS + 1)
    total = tl.sum(tl.sum(tl.where(good, ssim, 0.0), axis=1), axis=0)
    tl.store(sum_ptr + (img * tl.num_programs(1) + ty) * tl.num_programs(0) + tx, total)


@case
def apiary_of_images_alike(images=6, height=333, width=500, taps=11):
    x = uniform(images, height, width)
    y = (x + 0.2 * f32(images, height, width)).clamp(0, 1).half()
    x = x.half()
    w = torch.exp(-(torch.arange(taps, device="cuda").float() - taps // 2).square() / 4.5)
    w = w / w.sum()
    out = 64 - taps + 1
    ny, nx = cdiv(height - taps + 1, out), cdiv(width - taps + 1, out)
    sums = zeros(images, ny, nx, dtype="float32")
    launched = run(ssim_tiles_kernel, (nx, ny, images), (x, y, w, sums, height, width, 1e-4, 9e-4), sums, TAPS=taps, TILE=64, num_warps=8)

    def reference():
        def blur(z):
            return F.conv2d(z[:, None], (w[:, None] * w).double()[None, None])[:, 0]

        a, b = x.double(), y.double()
        ma, mb = blur(a), blur(b)
        s = (2 * ma * mb + 1e-4) * (2 * (blur(a * b) - ma * mb) + 9e-4) / ((ma * ma + mb * mb + 1e-4) * (blur(a * a) - ma * ma + blur(b * b) - mb * mb + 9e-4))
        s = F.pad(s, (0, nx * out - s.shape[2], 0, ny * out - s.shape[1]))
        return s.reshape(images, ny, out, nx, out).sum((2, 4)).float()

    return against(launched, reference)


@triton.jit
def nearest_fingerprint_kernel(q_ptr, db_ptr, dist_ptr, who_ptr, within_ptr, Q, N, radius, BITS: tl.constexpr, BQ: tl.constexpr, BN: tl.constexpr):
    # Distances between fingerprints of ones and minus ones by products of bytes: the nearest, and how many are near.
    q_at = tl.program_id(0) * BQ + tl.arange(0, BQ)
    bit = tl.arange(0, BITS)
    q = tl.load(q_ptr + q_at[:, None] * BITS + bit[None, :], mask=q_at[:, None] < Q, other=0)
    best = tl.full((BQ,), 1 << 60, tl.int64)
    within = tl.zeros((BQ,), tl.int32)
    for n0 in tl.range(0, N, BN, num_stages=3):
        n = n0 + tl.arange(0, BN)
        db = tl.load(db_ptr + n[None, :] * BITS + bit[:, None], mask=n[None, :] < N, other=0)
        apart = (BITS - tl.dot(q, db, out_dtype=tl.int32)) >> 1
        apart = tl.where(n[None, :] < N, apart, 2 * BITS)
        key = (apart.to(tl.int64) << 32) | n[None, :]
        best = tl.minimum(best, tl.min(key, axis=1))
        within += tl.sum((apart <= radius).to(tl.int32), axis=1)
    tl.store(dist_ptr + q_at, (best >> 32).to(tl.int32), mask=q_at < Q)
    tl.store(who_ptr + q_at, (best & 0xFFFFFFFF).to(tl.int32), mask=q_at < Q)
    tl.store(within_ptr + q_at, within, mask=q_at < Q)


@case
def apiary_of_nearest_fingerprints(queries=4000, n=5003, bits=256):
    q, db = (ints(0, 2, m, bits, dtype="int8") * 2 - 1 for m in (queries, n))
    dist, who, within = (zeros(queries, dtype="int32") for _ in range(3))
    launched = run(nearest_fingerprint_kernel, (cdiv(queries, 32),), (q, db, dist, who, within, queries, n, 112), (dist, who, within), BITS=bits, BQ=32, BN=64, num_warps=4)

    def reference():
        apart = ((bits - q.float() @ db.float().t()) / 2).long()
        least = apart.amin(1)
        return least, torch.where(apart == least[:, None], torch.arange(n, device=q.device), n).amin(1), (apart <= 112).sum(1)

    return against(launched, reference)


@triton.jit
def factors_of_tensor_kernel(x_ptr, b_ptr, c_ptr, out_ptr, I, J, K, SPLIT: tl.constexpr, BI: tl.constexpr, BK: tl.constexpr, R: tl.constexpr):
    # A tensor with three axes times the factors of two of them: a product for each slice, scaled by the slice's row.
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    r = tl.arange(0, R)
    acc = tl.zeros((BI, R), tl.float32)
    for j in range(tl.program_id(1), J, SPLIT):
        inner = tl.zeros((BI, R), tl.float32)
        for k0 in range(0, K, BK):
            k = k0 + tl.arange(0, BK)
            x = tl.load(x_ptr + (i[:, None] * J + j) * K + k[None, :], mask=(i[:, None] < I) & (k[None, :] < K), other=0.0)
            c = tl.load(c_ptr + k[:, None] * R + r[None, :], mask=k[:, None] < K, other=0.0)
            inner += tl.dot(x, c)
        acc += inner * tl.load(b_ptr + j * R + r)[None, :].to(tl.float32)
    tl.atomic_add(out_ptr + i[:, None] * R + r[None, :], acc, mask=i[:, None] < I)


@case
def apiary_of_a_tensor_times_its_factors(i=400, j=300, k=260, r=32, split=20):
    x, b, c = rand(i, j, k), rand(j, r), rand(k, r)
    out = zeros(i, r, dtype="float32")
    launched = run(factors_of_tensor_kernel, (cdiv(i, 32), split), (x, b, c, out, i, j, k), out, SPLIT=split, BI=32, BK=64, R=r, num_warps=2, num_stages=3)
    return against(cleared(launched, out), lambda: torch.einsum("ijr,jr->ir", x.float() @ c.float(), b.float()))
