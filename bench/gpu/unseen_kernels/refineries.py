"""Refineries: what papers and contests ask for: strands that fold, spectra, votes, edges, signatures, digests, filters, processes, pairs, factors, options, hands, joins, triangles, sketches."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros


@triton.jit
def fold_strands_kernel(seq_ptr, table_ptr, best_ptr, n, LOOP: tl.constexpr, BLOCK: tl.constexpr):
    # The most pairs that a strand can make with itself without crossings, span by span, a table in memory for each strand.
    strand = tl.program_id(0)
    seq = seq_ptr + strand * n
    table = table_ptr + strand * n * n
    i = tl.arange(0, BLOCK)
    for span in range(1, n):
        j = i + span
        ok = j < n
        a = tl.load(seq + i, mask=ok, other=0).to(tl.int32)
        b = tl.load(seq + j, mask=ok, other=0).to(tl.int32)
        fits = ((a + b == 3) | (a + b == 5) & (a * b == 6)) & (span > LOOP)
        best = tl.maximum(tl.load(table + (i + 1) * n + j, mask=ok, other=0), tl.load(table + i * n + j - 1, mask=ok, other=0))
        inner = tl.load(table + (i + 1) * n + j - 1, mask=ok & (span > 1), other=0)
        best = tl.maximum(best, inner + fits.to(tl.int32))
        for k in range(1, span - 1):
            left = tl.load(table + i * n + i + k, mask=ok, other=0)
            right = tl.load(table + (i + k + 1) * n + j, mask=ok, other=0)
            best = tl.maximum(best, left + right)
        tl.store(table + i * n + j, best, mask=ok)
        tl.debug_barrier()
    tl.store(best_ptr + strand, tl.load(table + n - 1))


@case
def refinery_of_strands_that_fold(strands=1056, n=34, loop=3):
    seq, table, best = ints(0, 4, strands, n, dtype="uint8"), zeros(strands, n, n, dtype="int32"), zeros(strands, dtype="int32")
    launched = run(fold_strands_kernel, (strands,), (seq, table, best, n), (table, best), LOOP=loop, BLOCK=64, num_warps=2)

    def reference():
        s = seq.int()
        a, b = s[:, :, None], s[:, None, :]
        fits = (((a + b) == 3) | ((a + b == 5) & (a * b == 6))).int()
        t = torch.zeros(strands, n + 1, n + 1, dtype=torch.int32, device=seq.device)
        for span in range(1, n):
            for i in range(n - span):
                j = i + span
                best = torch.maximum(t[:, i + 1, j], t[:, i, j - 1])
                if span > loop:
                    best = torch.maximum(best, t[:, i + 1, j - 1] + fits[:, i, j])
                if span > 2:
                    best = torch.maximum(best, (t[:, i, i + 1 : j - 1] + t[:, i + 2 : j, j]).amax(1))
                t[:, i, j] = best
        return t[:, :n, :n], t[:, 0, n - 1]

    return against(cleared(launched, table), reference)


@triton.jit
def chebyshev_moments_kernel(h_ptr, mu_ptr, dim, half_width, center, ORDER: tl.constexpr, D: tl.constexpr):
    # Moments of a density of states: traces of Chebyshev polynomials of a Hamiltonian that stays in registers.
    sample = tl.program_id(0)
    r = tl.arange(0, D)[:, None]
    c = tl.arange(0, D)[None, :]
    inside = (r < dim) & (c < dim)
    eye = ((r == c) & (r < dim)).to(tl.float32)
    h = tl.load(h_ptr + sample * dim * dim + r * dim + c, mask=inside, other=0.0)
    h = (h - center * eye) / half_width
    before = eye
    now = h
    tl.store(mu_ptr + sample * ORDER, 1.0)
    tl.store(mu_ptr + sample * ORDER + 1, tl.sum(tl.sum(now * eye, 1), 0) / dim)
    for n in range(2, ORDER):
        following = 2.0 * tl.dot(h, now, input_precision="tf32x3") - before
        before = now
        now = following
        tl.store(mu_ptr + sample * ORDER + n, tl.sum(tl.sum(now * eye, 1), 0) / dim)


@case
def refinery_of_spectra_by_moments(samples=396, dim=50, order=24):
    h = f32(samples, dim, dim)
    h = (h + h.transpose(1, 2)) / (4 * dim**0.5) + 0.3 * torch.eye(dim, device="cuda")
    mu = zeros(samples, order, dtype="float32")
    launched = run(chebyshev_moments_kernel, (samples,), (h, mu, dim, 1.1, 0.2), mu, ORDER=order, D=64, num_warps=4)

    def reference():
        x = (h.double() - 0.2 * torch.eye(dim, device=h.device)) / 1.1
        t = [torch.eye(dim, dtype=torch.float64, device=h.device).expand(samples, -1, -1), x]
        for _ in range(2, order):
            t.append(2 * x @ t[-1] - t[-2])
        return torch.stack([y.diagonal(dim1=1, dim2=2).mean(1) for y in t], 1).float()

    return against(launched, reference)


@triton.jit
def hough_votes_kernel(px_ptr, py_ptr, cos_ptr, sin_ptr, votes_ptr, points, radii, offset, BLOCK_P: tl.constexpr, BLOCK_T: tl.constexpr, THETAS: tl.constexpr):
    # Edge pixels vote for lines: for all angles of a tile, the distance from the origin in fixed point.
    t = tl.program_id(1) * BLOCK_T + tl.arange(0, BLOCK_T)
    c = tl.load(cos_ptr + t, mask=t < THETAS, other=0)
    s = tl.load(sin_ptr + t, mask=t < THETAS, other=0)
    step = tl.num_programs(0) * BLOCK_P
    for p0 in range(tl.program_id(0) * BLOCK_P, points, step):
        p = p0 + tl.arange(0, BLOCK_P)
        x = tl.load(px_ptr + p, mask=p < points, other=0).to(tl.int32)
        y = tl.load(py_ptr + p, mask=p < points, other=0).to(tl.int32)
        rho = ((x[:, None] * c[None, :] + y[:, None] * s[None, :]) >> 12) + offset
        ok = (p < points)[:, None] & (t < THETAS)[None, :] & (rho >= 0) & (rho < radii)
        tl.atomic_add(votes_ptr + t[None, :] * radii + rho, 1, mask=ok, sem="relaxed")


@case
def refinery_of_lines_that_pixels_vote_for(points=20011, size=1000, thetas=180):
    px, py = ints(0, size, points, dtype="int16"), ints(0, size, points, dtype="int16")
    angle = arange(thetas).double() * (math.pi / thetas)
    c, s = (torch.cos(angle) * 4096).round().to(torch.int32), (torch.sin(angle) * 4096).round().to(torch.int32)
    radii = 2830
    votes = zeros(thetas, radii, dtype="int32")
    launched = run(hough_votes_kernel, (64, cdiv(thetas, 16)), (px, py, c, s, votes, points, radii, 1400), votes, BLOCK_P=64, BLOCK_T=16, THETAS=thetas, num_warps=4)

    def reference():
        rho = ((px.long()[:, None] * c.long() + py.long()[:, None] * s.long()) >> 12) + 1400
        at = torch.arange(thetas, device=px.device) * radii + rho
        return torch.bincount(at.reshape(-1), minlength=thetas * radii).reshape(thetas, radii)

    return against(cleared(launched, votes), reference)


@triton.jit
def _slopes(base, y, x, H, W):
    up = tl.maximum(y - 1, 0) * W
    mid = y * W
    down = tl.minimum(y + 1, H - 1) * W
    left = tl.maximum(x - 1, 0)
    right = tl.minimum(x + 1, W - 1)
    a = tl.load(base + up + left).to(tl.int32)
    b = tl.load(base + up + x).to(tl.int32)
    c = tl.load(base + up + right).to(tl.int32)
    d = tl.load(base + mid + left).to(tl.int32)
    e = tl.load(base + mid + right).to(tl.int32)
    f = tl.load(base + down + left).to(tl.int32)
    g = tl.load(base + down + x).to(tl.int32)
    h = tl.load(base + down + right).to(tl.int32)
    return c + 2 * e + h - a - 2 * d - f, f + 2 * g + h - a - 2 * b - c


@triton.jit
def thin_edges_kernel(img_ptr, out_ptr, H, W, low, high, BH: tl.constexpr, BW: tl.constexpr):
    # Edges that are not less than their neighbors across them, weak and strong ones told apart; slopes of neighbors are made again.
    base = img_ptr + tl.program_id(2).to(tl.int64) * H * W
    y0 = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    x0 = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    y = tl.minimum(tl.broadcast_to(y0, (BH, BW)), H - 1)
    x = tl.minimum(tl.broadcast_to(x0, (BH, BW)), W - 1)
    gx, gy = _slopes(base, y, x, H, W)
    ax = tl.abs(gx)
    ay = tl.abs(gy)
    m = ax + ay
    flat = 5 * ay < 2 * ax
    steep = 2 * ay > 5 * ax
    same = (gx > 0) == (gy > 0)
    dx = tl.where(flat, 1, tl.where(steep, 0, tl.where(same, 1, -1)))
    dy = tl.where(flat, 0, 1)
    ox, oy = _slopes(base, tl.minimum(y + dy, H - 1), tl.minimum(tl.maximum(x + dx, 0), W - 1), H, W)
    px, py = _slopes(base, tl.maximum(y - dy, 0), tl.minimum(tl.maximum(x - dx, 0), W - 1), H, W)
    keep = (m >= tl.abs(ox) + tl.abs(oy)) & (m > tl.abs(px) + tl.abs(py)) & (m > low)
    out = tl.where(keep, tl.where(m > high, 255, 128), 0)
    tl.store(out_ptr + tl.program_id(2).to(tl.int64) * H * W + y0 * W + x0, out.to(tl.uint8), mask=(y0 < H) & (x0 < W))


@case
def refinery_of_edges_made_thin(images=6, height=719, width=1001):
    img = ints(0, 256, images, height, width, dtype="uint8")
    out = zeros(images, height, width, dtype="uint8")
    launched = run(thin_edges_kernel, (cdiv(height, 8), cdiv(width, 64), images), (img, out, height, width, 200, 600), out, BH=8, BW=64, num_warps=4)

    def reference():
        p = F.pad(img.float()[:, None], (1, 1, 1, 1), mode="replicate")[:, 0].int()
        rows = p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]
        cols = p[:, :, :-2] + 2 * p[:, :, 1:-1] + p[:, :, 2:]
        gx, gy = rows[:, :, 2:] - rows[:, :, :-2], cols[:, 2:] - cols[:, :-2]
        m = gx.abs() + gy.abs()
        flat, steep = 5 * gy.abs() < 2 * gx.abs(), 2 * gy.abs() > 5 * gx.abs()
        dx = torch.where(flat, 1, torch.where(steep, 0, torch.where((gx > 0) == (gy > 0), 1, -1)))
        dy = torch.where(flat, 0, 1)
        y, x = torch.arange(height, device=img.device)[:, None], torch.arange(width, device=img.device)

        def seen(sign):
            at = (y + sign * dy).clamp(0, height - 1) * width + (x + sign * dx).clamp(0, width - 1)
            return m.reshape(images, -1).gather(1, at.reshape(images, -1)).reshape(m.shape)

        keep = (m >= seen(1)) & (m > seen(-1)) & (m > 200)
        return torch.where(keep, torch.where(m > 600, 255, 128), 0)

    return against(launched, reference)


@triton.jit
def minhash_signatures_kernel(tokens_ptr, length_ptr, a_ptr, b_ptr, sig_ptr, bits_ptr, stride, HASHES: tl.constexpr, STEP: tl.constexpr):
    # Least values of 128 hashes of a document's words, and their lowest bits in four words.
    doc = tl.program_id(0)
    n = tl.load(length_ptr + doc)
    lane = tl.arange(0, HASHES)
    a = tl.load(a_ptr + lane).to(tl.uint32, bitcast=True)
    b = tl.load(b_ptr + lane).to(tl.uint32, bitcast=True)
    least = tl.full((HASHES,), 0xFFFFFFFF, dtype=tl.uint32)
    t = tl.arange(0, STEP)
    for t0 in range(0, n, STEP):
        word = tl.load(tokens_ptr + doc * stride + t0 + t, mask=t0 + t < n, other=0).to(tl.uint32, bitcast=True)
        h = word[:, None] * a[None, :] + b[None, :]
        h ^= h >> 15
        h = tl.where((t0 + t < n)[:, None], h, tl.full((STEP, HASHES), 0xFFFFFFFF, dtype=tl.uint32))
        least = tl.minimum(least, tl.min(h, axis=0))
    tl.store(sig_ptr + doc * HASHES + lane, least.to(tl.int64))
    ones = (least & 1).to(tl.int64) << (lane % 32)
    words = tl.sum(tl.reshape(ones, (HASHES // 32, 32)), axis=1)
    tl.store(bits_ptr + doc * (HASHES // 32) + tl.arange(0, HASHES // 32), words)


@case
def refinery_of_signatures_of_documents(docs=3000, most=600):
    tokens, length = ints(-(2**31), 2**31 - 1, docs, most), ints(1, most + 1, docs)
    a, b = ints(-(2**30), 2**30, 128) * 2 + 1, ints(-(2**31), 2**31 - 1, 128)
    sig, bits = zeros(docs, 128, dtype="int64"), zeros(docs, 4, dtype="int64")
    launched = run(minhash_signatures_kernel, (docs,), (tokens, length, a, b, sig, bits, most), (sig, bits), HASHES=128, STEP=8, num_warps=2)

    def reference():
        whole = 0xFFFFFFFF
        least = torch.full((docs, 128), whole, dtype=torch.int64, device=tokens.device)
        for t in range(most):
            h = ((tokens[:, t : t + 1].long() & whole) * (a.long() & whole) + (b.long() & whole)) & whole
            h = h ^ (h >> 15)
            least = torch.where((t < length)[:, None], torch.minimum(least, h), least)
        return least, ((least & 1).reshape(docs, 4, 32) << torch.arange(32, device=tokens.device)).sum(2)

    return against(launched, reference)


@triton.jit
def _quarter_round(a, b, c, d, x, y):
    a = a + b + x
    d = d ^ a
    d = (d >> 16) | (d << 16)
    c = c + d
    b = b ^ c
    b = (b >> 12) | (b << 20)
    a = a + b + y
    d = d ^ a
    d = (d >> 8) | (d << 24)
    c = c + d
    b = b ^ c
    b = (b >> 7) | (b << 25)
    return a, b, c, d


@triton.jit
def _word(ptr, at, mask):
    return tl.load(ptr + at, mask=mask, other=0).to(tl.uint32, bitcast=True)


@triton.jit
def digest_of_blocks_kernel(msg_ptr, out_ptr, n, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    # Seven rounds over sixteen words a lane, whose order changes from round to round; eight words remain.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    w = i * 16
    m0, m1, m2, m3 = _word(msg_ptr, w, ok), _word(msg_ptr, w + 1, ok), _word(msg_ptr, w + 2, ok), _word(msg_ptr, w + 3, ok)
    m4, m5, m6, m7 = _word(msg_ptr, w + 4, ok), _word(msg_ptr, w + 5, ok), _word(msg_ptr, w + 6, ok), _word(msg_ptr, w + 7, ok)
    m8, m9, ma, mb = _word(msg_ptr, w + 8, ok), _word(msg_ptr, w + 9, ok), _word(msg_ptr, w + 10, ok), _word(msg_ptr, w + 11, ok)
    mc, md, me, mf = _word(msg_ptr, w + 12, ok), _word(msg_ptr, w + 13, ok), _word(msg_ptr, w + 14, ok), _word(msg_ptr, w + 15, ok)
    zero = (i * 0).to(tl.uint32)
    v0, v1, v2, v3 = zero + 0x6A09E667, zero + 0xBB67AE85, zero + 0x3C6EF372, zero + 0xA54FF53A
    v4, v5, v6, v7 = zero + 0x510E527F, zero + 0x9B05688C, zero + 0x1F83D9AB, zero + 0x5BE0CD19
    v8, v9, va, vb = zero + 0x6A09E667, zero + 0xBB67AE85, zero + 0x3C6EF372, zero + 0xA54FF53A
    vc, vd, ve, vf = i.to(tl.uint32), zero, zero + 64, zero + 11
    for _ in tl.static_range(ROUNDS):
        v0, v4, v8, vc = _quarter_round(v0, v4, v8, vc, m0, m1)
        v1, v5, v9, vd = _quarter_round(v1, v5, v9, vd, m2, m3)
        v2, v6, va, ve = _quarter_round(v2, v6, va, ve, m4, m5)
        v3, v7, vb, vf = _quarter_round(v3, v7, vb, vf, m6, m7)
        v0, v5, va, vf = _quarter_round(v0, v5, va, vf, m8, m9)
        v1, v6, vb, vc = _quarter_round(v1, v6, vb, vc, ma, mb)
        v2, v7, v8, vd = _quarter_round(v2, v7, v8, vd, mc, md)
        v3, v4, v9, ve = _quarter_round(v3, v4, v9, ve, me, mf)
        m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, ma, mb, mc, md, me, mf = m2, m6, m3, ma, m7, m0, m4, md, m1, mb, mc, m5, m9, me, mf, m8
    o = i * 8
    tl.store(out_ptr + o, (v0 ^ v8).to(tl.int32, bitcast=True), mask=ok)
    tl.store(out_ptr + o + 1, (v1 ^ v9).to(tl.int32, bitcast=True), mask=ok)
    tl.store(out_ptr + o + 2, (v2 ^ va).to(tl.int32, bitcast=True), mask=ok)
    tl.store(out_ptr + o + 3, (v3 ^ vb).to(tl.int32, bitcast=True), mask=ok)
    tl.store(out_ptr + o + 4, (v4 ^ vc).to(tl.int32, bitcast=True), mask=ok)
    tl.store(out_ptr + o + 5, (v5 ^ vd).to(tl.int32, bitcast=True), mask=ok)
    tl.store(out_ptr + o + 6, (v6 ^ ve).to(tl.int32, bitcast=True), mask=ok)
    tl.store(out_ptr + o + 7, (v7 ^ vf).to(tl.int32, bitcast=True), mask=ok)


@case
def refinery_of_digests_with_words_in_new_orders(n=300001):
    msg, out = ints(-(2**31), 2**31 - 1, n, 16), zeros(n, 8, dtype="int32")
    launched = run(digest_of_blocks_kernel, (cdiv(n, 128),), (msg, out, n), out, ROUNDS=7, BLOCK=128, num_warps=4)

    def reference():
        whole, m = 0xFFFFFFFF, [x.long() & 0xFFFFFFFF for x in msg.unbind(1)]
        iv = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
        i = torch.arange(n, device=msg.device)
        v = [torch.full_like(i, x) for x in iv + iv[:4]] + [i, i * 0, i * 0 + 64, i * 0 + 11]

        def turn(x, by):
            return ((x >> by) | (x << (32 - by))) & whole

        def quarter(a, b, c, d, x, y):
            for one, by, other in ((x, 16, 12), (y, 8, 7)):
                v[a] = (v[a] + v[b] + one) & whole
                v[d] = turn(v[d] ^ v[a], by)
                v[c] = (v[c] + v[d]) & whole
                v[b] = turn(v[b] ^ v[c], other)

        for _ in range(7):
            for j in range(4):
                quarter(j, 4 + j, 8 + j, 12 + j, m[2 * j], m[2 * j + 1])
            for j in range(4):
                quarter(j, 4 + (j + 1) % 4, 8 + (j + 2) % 4, 12 + (j + 3) % 4, m[8 + 2 * j], m[9 + 2 * j])
            m = [m[j] for j in (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)]
        return torch.stack([v[j] ^ v[j + 8] for j in range(8)], 1).to(torch.int32)

    return against(launched, reference)


@triton.jit
def systematic_resampling_kernel(weight_ptr, state_ptr, shift_ptr, out_ptr, parent_ptr, ess_ptr, DIM: tl.constexpr, P: tl.constexpr):
    # Particles are drawn anew at evenly spaced places of the sums of their weights, found by halving in registers.
    f = tl.program_id(0)
    i = tl.arange(0, P)
    w = tl.load(weight_ptr + f * P + i)
    upto = tl.cumsum(w, 0)
    total = tl.sum(w, 0)
    place = (i * total + tl.load(shift_ptr + f) % total) // P
    low = tl.zeros((P,), dtype=tl.int32)
    step: tl.constexpr = P // 2
    for level in tl.static_range(10):
        middle = low + (step >> level)
        value = tl.gather(upto, middle - 1, 0)
        low = tl.where(value <= place, middle, low)
    wf = w.to(tl.float32)
    tl.store(ess_ptr + f, total.to(tl.float32) * total.to(tl.float32) / tl.sum(wf * wf, 0))
    tl.store(parent_ptr + f * P + i, low.to(tl.int16))
    for d in range(DIM):
        x = tl.load(state_ptr + (f * DIM + d) * P + i)
        tl.store(out_ptr + (f * DIM + d) * P + i, tl.gather(x, low, 0))


@case
def refinery_of_particles_drawn_anew(filters=1500, dim=6):
    w = (uniform(filters, 1024) ** 4 * 1000).to(torch.int32)
    state, shift = f32(filters, dim, 1024), ints(0, 1 << 20, filters)
    out, parent, ess = zeros(filters, dim, 1024, dtype="float32"), zeros(filters, 1024, dtype="int16"), zeros(filters, dtype="float32")
    launched = run(systematic_resampling_kernel, (filters,), (w, state, shift, out, parent, ess), (out, parent, ess), DIM=dim, P=1024, num_warps=4)

    def reference():
        total = w.long().sum(1, keepdim=True)
        place = (torch.arange(1024, device=w.device) * total + shift[:, None] % total) // 1024
        at = torch.searchsorted(w.long().cumsum(1), place, right=True)
        return state.gather(2, at[:, None].expand(-1, dim, -1)), at, total[:, 0].double().square() / w.double().square().sum(1)

    return against(launched, reference)


@triton.jit
def _bell(x_ptr, rows, count, y, cols, limit, inv2, DIM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    far = tl.zeros((BM, BN), dtype=tl.float32)
    for d in tl.static_range(DIM):
        a = tl.load(x_ptr + rows * DIM + d, mask=rows < count, other=0.0)
        b = tl.load(y + cols * DIM + d, mask=cols < limit, other=0.0)
        far += (a[:, None] - b[None, :]) * (a[:, None] - b[None, :])
    return tl.where((cols < limit)[None, :], tl.exp(-far * inv2), 0.0)


@triton.jit
def process_variance_kernel(test_ptr, train_ptr, inverse_ptr, var_ptr, m, n, inv2, DIM: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # What a Gaussian process knows at new points: quadratic forms in covariances that are made twice, from coordinates.
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    known = tl.zeros((BM,), dtype=tl.float32)
    for j in range(0, n, BN):
        cols = j + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for i in range(0, n, BK):
            mid = i + tl.arange(0, BK)
            left = _bell(test_ptr, rows, m, train_ptr, mid, n, inv2, DIM, BM, BK)
            q = tl.load(inverse_ptr + mid[:, None] * n + cols[None, :], mask=(mid[:, None] < n) & (cols[None, :] < n), other=0.0)
            acc += tl.dot(left.to(tl.bfloat16), q)
        right = _bell(test_ptr, rows, m, train_ptr, cols, n, inv2, DIM, BM, BN)
        known += tl.sum(acc * right, axis=1)
    tl.store(var_ptr + rows, 1.0 - known, mask=rows < m)


@case
def refinery_of_what_processes_know(m=4200, n=500, dim=3):
    test, train = f32(m, dim), f32(n, dim)
    inverse, var = (uniform(n, n) * (4 / n**2)).bfloat16(), zeros(m, dtype="float32")
    launched = run(process_variance_kernel, (cdiv(m, 32),), (test, train, inverse, var, m, n, 0.25), var, DIM=dim, BM=32, BN=64, BK=32, num_warps=4, num_stages=2)

    def reference():
        k = (-0.25 * (test[:, None] - train).square().sum(2)).exp()
        return 1 - ((k.bfloat16().float() @ inverse.float()) * k).sum(1)

    return against(launched, reference)


@triton.jit
def pair_energies_kernel(b_ptr, occ_ptr, vir_ptr, energy_ptr, nocc, nvir, naux, BV: tl.constexpr, BP: tl.constexpr):
    # Second-order energies of pairs of electrons: integrals from factors, direct ones and exchanged ones, over differences of levels.
    i = tl.program_id(0)
    j = tl.program_id(1)
    if i > j:
        return
    ei = tl.load(occ_ptr + i)
    ej = tl.load(occ_ptr + j)
    bi = b_ptr + i * nvir * naux
    bj = b_ptr + j * nvir * naux
    total = 0.0
    for a0 in range(0, nvir, BV):
        a = a0 + tl.arange(0, BV)
        ea = tl.load(vir_ptr + a, mask=a < nvir, other=1.0)
        for c0 in range(0, nvir, BV):
            c = c0 + tl.arange(0, BV)
            ec = tl.load(vir_ptr + c, mask=c < nvir, other=1.0)
            direct = tl.zeros((BV, BV), dtype=tl.float32)
            swapped = tl.zeros((BV, BV), dtype=tl.float32)
            for p0 in range(0, naux, BP):
                p = p0 + tl.arange(0, BP)
                am = (a[:, None] < nvir) & (p[None, :] < naux)
                cm = (c[None, :] < nvir) & (p[:, None] < naux)
                ia = tl.load(bi + a[:, None] * naux + p[None, :], mask=am, other=0.0)
                ja = tl.load(bj + a[:, None] * naux + p[None, :], mask=am, other=0.0)
                ic = tl.load(bi + c[None, :] * naux + p[:, None], mask=cm, other=0.0)
                jc = tl.load(bj + c[None, :] * naux + p[:, None], mask=cm, other=0.0)
                direct = tl.dot(ia, jc, direct, allow_tf32=True)
                swapped = tl.dot(ja, ic, swapped, allow_tf32=True)
            gap = ei + ej - ea[:, None] - ec[None, :]
            total += tl.sum(tl.sum(direct * (2.0 * direct - swapped) / gap, axis=1), axis=0)
    tl.store(energy_ptr + i * nocc + j, total * tl.where(i == j, 1.0, 2.0))


@case
def refinery_of_energies_of_pairs(nocc=24, nvir=90, naux=210):
    b = f32(nocc, nvir, naux) * 0.05
    occ, vir, energy = -uniform(nocc) - 0.5, uniform(nvir) + 0.2, zeros(nocc, nocc, dtype="float32")
    launched = run(pair_energies_kernel, (nocc, nocc), (b, occ, vir, energy, nocc, nvir, naux), energy, BV=32, BP=32, num_warps=4, num_stages=2)

    def reference():
        g = torch.einsum("iap,jbp->ijab", b.double(), b.double())
        gap = occ[:, None, None, None] + occ[:, None, None] - vir[:, None] - vir
        e = (g * (2 * g - g.transpose(2, 3)) / gap).sum((2, 3))
        return (2 * e.triu(1) + e.diag().diag()).float()

    return against(launched, reference)


@triton.jit
def predictors_of_frames_kernel(audio_ptr, coef_ptr, gain_ptr, frames, hop, LENGTH: tl.constexpr, ORDER: tl.constexpr, LANES: tl.constexpr, BLOCK: tl.constexpr):
    # Linear prediction of frames of sound: autocorrelations of windowed samples, then a recursion over a vector in registers.
    frame = tl.program_id(0)
    t = tl.arange(0, BLOCK)
    lane = tl.arange(0, LANES)
    step: tl.constexpr = 6.283185307179586 / (LENGTH - 1)
    base = audio_ptr + frame * hop
    x = tl.load(base + t, mask=t < LENGTH, other=0.0) * (0.54 - 0.46 * tl.cos(t.to(tl.float32) * step))
    r = tl.zeros((LANES,), dtype=tl.float32)
    for lag in range(ORDER + 1):
        u = t + lag
        y = tl.load(base + u, mask=u < LENGTH, other=0.0) * (0.54 - 0.46 * tl.cos(u.to(tl.float32) * step))
        r = tl.where(lane == lag, tl.sum(x * y, 0), r)
    r = tl.where(lane == 0, r * 1.001 + 1e-3, r)
    a = tl.where(lane == 0, 1.0, 0.0)
    error = tl.sum(tl.where(lane == 0, r, 0.0), 0)
    for i in range(1, ORDER + 1):
        back = tl.where(lane <= i, i - lane, 0)
        acc = tl.sum(tl.where(lane < i, a * tl.gather(r, back, 0), 0.0), 0)
        k = -acc / error
        a = tl.where((lane >= 1) & (lane <= i), a + k * tl.gather(a, back, 0), a)
        error *= 1.0 - k * k
    tl.store(coef_ptr + frame * (ORDER + 1) + lane, a, mask=lane <= ORDER)
    tl.store(gain_ptr + frame, tl.sqrt(error))


@case
def refinery_of_sound_foretold(frames=9000, hop=160, length=400, order=16):
    audio = f32(frames * hop + length)
    audio = audio[1:] + 0.7 * audio[:-1]
    coef, gain = zeros(frames, order + 1, dtype="float32"), zeros(frames, dtype="float32")
    launched = run(predictors_of_frames_kernel, (frames,), (audio, coef, gain, frames, hop), (coef, gain), LENGTH=length, ORDER=order, LANES=32, BLOCK=512, num_warps=2)

    def reference():
        window = 0.54 - 0.46 * torch.cos(torch.arange(length, device=audio.device).double() * (2 * math.pi / (length - 1)))
        x = audio[: (frames - 1) * hop + length].double().unfold(0, length, hop) * window
        r = torch.stack([(x[:, : length - k] * x[:, k:]).sum(1) for k in range(order + 1)], 1)
        r[:, 0] = r[:, 0] * 1.001 + 1e-3
        at = (torch.arange(order, device=x.device)[:, None] - torch.arange(order, device=x.device)).abs()
        a = torch.linalg.solve(r[:, at], -r[:, 1:, None])[..., 0]
        error = r[:, 0] + (a * r[:, 1:]).sum(1)
        return torch.cat((torch.ones_like(error)[:, None], a), 1).float(), error.sqrt().float()

    return against(launched, reference)


@triton.jit
def activations_of_factors_kernel(v_ptr, w_ptr, h_ptr, out_ptr, F, T, eps, R: tl.constexpr, BF: tl.constexpr, BT: tl.constexpr):
    # One multiplicative step for the activations of a spectrogram's nonnegative factors: ratios go back through the same factors.
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    r = tl.arange(0, R)
    h = tl.load(h_ptr + r[:, None] * T + t[None, :], mask=t[None, :] < T, other=0.0)
    up = tl.zeros((R, BT), dtype=tl.float32)
    down = tl.zeros((R,), dtype=tl.float32)
    for f0 in tl.range(0, F, BF, num_stages=3):
        f = f0 + tl.arange(0, BF)
        w = tl.load(w_ptr + f[:, None] * R + r[None, :], mask=f[:, None] < F, other=0.0)
        v = tl.load(v_ptr + f[:, None] * T + t[None, :], mask=(f[:, None] < F) & (t[None, :] < T), other=0.0)
        ratio = v / (tl.dot(w, h) + eps)
        up = tl.dot(tl.trans(w), ratio, up)
        down += tl.sum(w, axis=0)
    tl.store(out_ptr + r[:, None] * T + t[None, :], h * up / (down[:, None] + eps), mask=t[None, :] < T)


@case
def refinery_of_spectrograms_in_factors(f=1025, t=5000, r=32):
    v, w, h, out = uniform(f, t), uniform(f, r), uniform(r, t), zeros(r, t, dtype="float32")
    launched = run(activations_of_factors_kernel, (cdiv(t, 32),), (v, w, h, out, f, t, 1e-8), out, R=r, BF=64, BT=32, num_warps=4)
    return against(launched, lambda: h * (w.t() @ (v / (w @ h + 1e-8))) / (w.sum(0)[:, None] + 1e-8))


@triton.jit
def early_exercise_kernel(path_ptr, price_ptr, n_options, steps, discount, strike, P: tl.constexpr):
    # A put that may be used early: at each step what waiting is worth is fitted by a parabola to the paths on which it has value.
    option = tl.program_id(0)
    p = tl.arange(0, P)
    s = tl.load(path_ptr + ((steps - 1) * n_options + option) * P + p)
    cash = tl.maximum(strike - s, 0.0)
    t = steps - 2
    while t >= 0:
        cash *= discount
        s = tl.load(path_ptr + (t * n_options + option) * P + p)
        now = strike - s
        live = tl.where(now > 0.0, 1.0, 0.0)
        u = (s / strike - 0.9) * 10.0 * live
        y = cash * live
        n0 = tl.sum(live, 0) + 1e-3
        n1 = tl.sum(u, 0)
        n2 = tl.sum(u * u, 0) + 1e-3
        n3 = tl.sum(u * u * u, 0)
        n4 = tl.sum(u * u * u * u, 0) + 1e-3
        b0 = tl.sum(y, 0)
        b1 = tl.sum(y * u, 0)
        b2 = tl.sum(y * u * u, 0)
        c00 = n2 * n4 - n3 * n3
        c01 = n2 * n3 - n1 * n4
        c02 = n1 * n3 - n2 * n2
        det = n0 * c00 + n1 * c01 + n2 * c02
        x0 = (c00 * b0 + c01 * b1 + c02 * b2) / det
        x1 = (c01 * b0 + (n0 * n4 - n2 * n2) * b1 + (n1 * n2 - n0 * n3) * b2) / det
        x2 = (c02 * b0 + (n1 * n2 - n0 * n3) * b1 + (n0 * n2 - n1 * n1) * b2) / det
        wait = x0 + u * (x1 + u * x2)
        cash = tl.where((now > 0.0) & (now > wait), now, cash)
        t -= 1
    tl.store(price_ptr + option, discount * tl.sum(cash, 0) / P)


@case
def refinery_of_options_used_early(options=528, steps=24, paths=1024):
    s = (f32(steps, options, paths) * 0.05 - 0.001).cumsum(0).exp() * 1.02
    price = zeros(options, dtype="float32")
    launched = run(early_exercise_kernel, (options,), (s, price, options, steps, 0.999, 1.0), price, P=paths, num_warps=4)

    def reference():
        x = s.double()
        cash = (1 - x[-1]).clamp_min(0)
        for t in range(steps - 2, -1, -1):
            cash, now = cash * 0.999, 1 - x[t]
            live = (now > 0).double()
            u = (x[t] - 0.9) * 10 * live
            powers = torch.stack((live, u, u * u), 2)
            normal = powers.transpose(1, 2) @ powers + 1e-3 * torch.eye(3, dtype=torch.float64, device=s.device)
            fit = torch.linalg.solve(normal, powers.transpose(1, 2) @ (cash * live)[..., None])[..., 0]
            wait = fit[:, :1] + u * (fit[:, 1:2] + u * fit[:, 2:])
            cash = torch.where((now > 0) & (now > wait), now, cash)
        return (0.999 * cash.mean(1)).float()

    return against(launched, reference)


@triton.jit
def hands_of_seven_kernel(cards_ptr, kind_ptr, count_ptr, hands, BLOCK: tl.constexpr):
    # What seven cards are worth, from counts of ranks in nibbles of long words, and how many hands there are of each kind.
    hand = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, 8)
    live = (hand[:, None] < hands) & (c[None, :] < 7)
    card = tl.load(cards_ptr + hand[:, None] * 7 + c[None, :], mask=live, other=0).to(tl.int32)
    rank = card % 13
    suit = card // 13
    one = tl.where(live, 1, 0).to(tl.int64)
    ranks = tl.sum(one << (rank * 4), axis=1)
    suits = tl.sum(one << (suit * 4), axis=1)
    ones = (ranks | (ranks >> 1) | (ranks >> 2)) & 0x1111111111111
    twos = ((ranks >> 1) | (ranks >> 2)) & 0x1111111111111
    threes = ((ranks & (ranks >> 1)) | (ranks >> 2)) & 0x1111111111111
    fours = (ranks >> 2) & 0x1111111111111
    flush = (suits + 0x3333) & 0x8888
    which = (flush == 0x80).to(tl.int32) + 2 * (flush == 0x800).to(tl.int32) + 3 * (flush == 0x8000).to(tl.int32)
    own = tl.sum(tl.where(live & (suit == which[:, None]), one << (rank * 4), 0), axis=1)
    line = (ones << 4) | (ones >> 48)
    line = line & (line >> 4) & (line >> 8) & (line >> 12) & (line >> 16)
    pure = (own << 4) | (own >> 48)
    pure = pure & (pure >> 4) & (pure >> 8) & (pure >> 12) & (pure >> 16)
    many = (twos & (twos - 1)) != 0
    kind = tl.where(twos != 0, 1, 0)
    kind = tl.where(many, 2, kind)
    kind = tl.where(threes != 0, 3, kind)
    kind = tl.where(line != 0, 4, kind)
    kind = tl.where(flush != 0, 5, kind)
    kind = tl.where((threes != 0) & many, 6, kind)
    kind = tl.where(fours != 0, 7, kind)
    kind = tl.where((flush != 0) & (pure != 0), 8, kind)
    tl.store(kind_ptr + hand, kind.to(tl.int8), mask=hand < hands)
    tally = tl.histogram(tl.where(hand < hands, kind, 15), 16)
    k = tl.arange(0, 16)
    tl.atomic_add(count_ptr + k, tally, mask=(k < 9) & (tally > 0))


@case
def refinery_of_hands_of_seven_cards(hands=500003):
    cards = uniform(hands, 52).argsort(1)[:, :7].to(torch.uint8).contiguous()
    kind, count = zeros(hands, dtype="int8"), zeros(9, dtype="int32")
    launched = run(hands_of_seven_kernel, (cdiv(hands, 256),), (cards, kind, count, hands), (kind, count), BLOCK=256, num_warps=4)

    def reference():
        hot = F.one_hot(cards.long(), 52).sum(1).reshape(hands, 4, 13)
        n, suits = hot.sum(1), hot.sum(2)
        flush = suits.amax(1) >= 5
        own = hot.gather(1, suits.argmax(1)[:, None, None].expand(-1, 1, 13))[:, 0]
        line, pure = (torch.cat((x[:, 12:], x), 1).clamp_max(1).unfold(1, 5, 1).amin(2).amax(1) > 0 for x in (n, own))
        twos, threes, fours = (n >= 2).sum(1), (n >= 3).any(1), (n >= 4).any(1)
        y = torch.zeros(hands, dtype=torch.int64, device=cards.device)
        for value, when in ((1, twos > 0), (2, twos > 1), (3, threes), (4, line), (5, flush), (6, threes & (twos > 1)), (7, fours), (8, flush & pure)):
            y[when] = value
        return y, torch.bincount(y, minlength=9)

    return against(cleared(launched, count), reference)


@triton.jit
def _first_not_below(keys_ptr, value, n, live):
    low = tl.zeros_like(value)
    high = low + n
    width = n
    while width > 0:
        middle = (low + high) >> 1
        key = tl.load(keys_ptr + middle, mask=live & (low < high), other=0)
        go = (low < high) & (key < value)
        stop = (low < high) & (key >= value)
        low = tl.where(go, middle + 1, low)
        high = tl.where(stop, middle, high)
        width = width >> 1
    return low


@triton.jit
def band_join_sums_kernel(keys_ptr, sums_ptr, from_ptr, to_ptr, total_ptr, count_ptr, n, probes, BLOCK: tl.constexpr):
    # Rows of an ordered table between two keys: how many, and what they sum to, by halving and sums so far.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < probes
    a = _first_not_below(keys_ptr, tl.load(from_ptr + i, mask=live, other=0), n, live)
    b = _first_not_below(keys_ptr, tl.load(to_ptr + i, mask=live, other=0), n, live)
    b = tl.maximum(a, b)
    tl.store(count_ptr + i, (b - a).to(tl.int32), mask=live)
    tl.store(total_ptr + i, tl.load(sums_ptr + b, mask=live, other=0) - tl.load(sums_ptr + a, mask=live, other=0), mask=live)


@case
def refinery_of_rows_between_two_keys(n=700001, probes=200003):
    keys = ints(0, 1 << 40, n, dtype="int64").sort().values
    sums = F.pad(ints(-1000, 1000, n, dtype="int64").cumsum(0), (1, 0))
    low = ints(0, 1 << 40, probes, dtype="int64")
    high = low + ints(-(1 << 30), 1 << 34, probes, dtype="int64")
    total, count = zeros(probes, dtype="int64"), zeros(probes, dtype="int32")
    launched = run(band_join_sums_kernel, (cdiv(probes, 256),), (keys, sums, low, high, total, count, n, probes), (total, count), BLOCK=256, num_warps=4)

    def reference():
        a = torch.searchsorted(keys, low)
        b = torch.maximum(a, torch.searchsorted(keys, high))
        return sums[b] - sums[a], b - a

    return against(launched, reference)


@triton.jit
def blocked_substitution_kernel(l_ptr, inv_ptr, b_ptr, x_ptr, n, cols, B: tl.constexpr, BC: tl.constexpr):
    # Lower triangles undone block by block: what is already known is read again from memory, diagonal blocks come with inverses.
    which = tl.program_id(0)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    r = tl.arange(0, B)
    l_base = l_ptr + which * n * n
    b_base = b_ptr + which * n * cols
    x_base = x_ptr + which * n * cols
    for i in range(0, n, B):
        acc = tl.load(b_base + (i + r)[:, None] * cols + c[None, :], mask=c[None, :] < cols, other=0.0)
        for j in range(0, i, B):
            left = tl.load(l_base + (i + r)[:, None] * n + (j + r)[None, :])
            known = tl.load(x_base + (j + r)[:, None] * cols + c[None, :], mask=c[None, :] < cols, other=0.0)
            acc -= tl.dot(left, known, input_precision="tf32x3")
        inverse = tl.load(inv_ptr + (which * n + i + r)[:, None] * B + r[None, :])
        acc = tl.dot(inverse, acc, input_precision="tf32x3")
        tl.store(x_base + (i + r)[:, None] * cols + c[None, :], acc, mask=c[None, :] < cols)
        tl.debug_barrier()


@case
def refinery_of_triangles_undone_by_blocks(batch=264, n=160, cols=100):
    low = f32(batch, n, n).tril(-1) * 0.05 + torch.diag_embed(uniform(batch, n) + 1)
    blocks = torch.stack([low[:, i : i + 32, i : i + 32] for i in range(0, n, 32)], 1)
    inverse = torch.linalg.inv(blocks.double()).float().reshape(batch, n, 32).contiguous()
    b, x = f32(batch, n, cols), zeros(batch, n, cols, dtype="float32")
    launched = run(blocked_substitution_kernel, (batch, cdiv(cols, 32)), (low, inverse, b, x, n, cols), x, B=32, BC=32, num_warps=4, num_stages=3)
    return against(launched, lambda: torch.linalg.solve_triangular(low.double(), b.double(), upper=False).float())


@triton.jit
def sketch_by_signs_kernel(a_ptr, y_ptr, norm_ptr, M, K, seed, stride_am, N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Rows times a matrix of signs that is nowhere stored: a hash of both places gives each one; rows' own squares are summed on the way.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    square = tl.zeros((BM,), dtype=tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * stride_am + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        h = (k[:, None] * N + n[None, :] + seed).to(tl.uint32)
        h = (h ^ (h >> 16)) * 0x7FEB352D
        h = (h ^ (h >> 15)) * 0x846CA68B
        h = h ^ (h >> 16)
        sign = 1.0 - 2.0 * (h & 1).to(tl.float32)
        acc += tl.dot(a, sign.to(a.dtype))
        square += tl.sum(a.to(tl.float32) * a.to(tl.float32), axis=1)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc * (1.0 / N**0.5), mask=(m[:, None] < M) & (n[None, :] < N))
    if tl.program_id(1) == 0:
        tl.store(norm_ptr + m, tl.sqrt(square), mask=m < M)


@case
def refinery_of_rows_sketched_by_signs(m=4000, k=1500, n=128):
    a, y, norm = rand(m, k), zeros(m, n, dtype="float32"), zeros(m, dtype="float32")
    launched = run(sketch_by_signs_kernel, (cdiv(m, 64), cdiv(n, 64)), (a, y, norm, m, k, 12345, a.stride(0)), (y, norm), N=n, BM=64, BN=64, BK=32, num_warps=4, num_stages=3)

    def reference():
        h = torch.arange(k * n, device=a.device).reshape(k, n) + 12345
        h = ((h ^ (h >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
        h = ((h ^ (h >> 15)) * 0x846CA68B) & 0xFFFFFFFF
        sign = 1 - 2 * ((h ^ (h >> 16)) & 1).float()
        return a.float() @ sign / n**0.5, a.float().norm(dim=1)

    return against(launched, reference)


@triton.jit
def templates_matched_kernel(img_ptr, tmpl_ptr, best_ptr, mean_ptr, H, W, OH, OW, SIDE: tl.constexpr, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    # How well the best of 32 patterns fits each place of an image, whatever the brightness: products row by row of the patterns.
    y = tl.program_id(1)
    image = tl.program_id(2)
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, SIDE)
    n = tl.arange(0, COUNT)
    base = img_ptr + image * H * W
    acc = tl.zeros((BLOCK, COUNT), dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    square = tl.zeros((BLOCK,), dtype=tl.float32)
    for r in range(SIDE):
        patch = tl.load(base + (y + r) * W + x[:, None] + c[None, :], mask=x[:, None] < OW, other=0.0)
        pattern = tl.load(tmpl_ptr + n[None, :] * SIDE * SIDE + r * SIDE + c[:, None])
        acc = tl.dot(patch, pattern, acc)
        wide = patch.to(tl.float32)
        total += tl.sum(wide, axis=1)
        square += tl.sum(wide * wide, axis=1)
    spread = square - total * total / (SIDE * SIDE)
    score = acc * tl.rsqrt(tl.maximum(spread, 1e-3))[:, None]
    at = (image * OH + y) * OW + x
    tl.store(best_ptr + at, tl.max(score, axis=1), mask=x < OW)
    tl.store(mean_ptr + at, tl.sum(tl.abs(score), axis=1) / COUNT, mask=x < OW)


@case
def refinery_of_patterns_found_in_images(images=6, height=200, width=260):
    img = uniform(images, height, width).half()
    t = f32(32, 256)
    t = F.normalize(t - t.mean(1, keepdim=True), dim=1).half()
    oh, ow = height - 15, width - 15
    best, mean = zeros(images, oh, ow, dtype="float32"), zeros(images, oh, ow, dtype="float32")
    launched = run(templates_matched_kernel, (cdiv(ow, 64), oh, images), (img, t, best, mean, height, width, oh, ow), (best, mean), SIDE=16, COUNT=32, BLOCK=64, num_warps=4, num_stages=4)

    def reference():
        x = img.float()[:, None]
        one = torch.ones(1, 1, 16, 16, device=x.device)
        score = F.conv2d(x, t.float().reshape(32, 1, 16, 16))
        score = score / (F.conv2d(x * x, one) - F.conv2d(x, one).square() / 256).clamp_min(1e-3).sqrt()
        return score.amax(1), score.abs().mean(1)

    return against(launched, reference)
