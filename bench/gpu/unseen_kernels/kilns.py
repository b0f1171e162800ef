"""Kilns: queens, disks and particles that are drawn again, voices of one direction, ranks and distances between samples, and what experts, gates and states burn."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, f32, far8, ints, rand, run, uniform, viewed, zeros


@triton.jit
def pick_level(stack, here):
    return tl.sum(tl.where(here, stack, 0), axis=1)


@triton.jit
def queens_behind_prefixes(count_ptr, TOTAL, N: tl.constexpr, PREFIX: tl.constexpr, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
    # Ways to finish a board whose first rows are given by a lane's number: each lane goes up and down its own stack of free squares.
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    FULL: tl.constexpr = (1 << N) - 1
    LEFT: tl.constexpr = N - PREFIX
    c = tl.zeros((BLOCK,), tl.int32)
    down = tl.zeros((BLOCK,), tl.int32)
    up = tl.zeros((BLOCK,), tl.int32)
    valid = lane < TOTAL
    digits = lane
    for _ in tl.static_range(PREFIX):
        bit = tl.full((BLOCK,), 1, tl.int32) << (digits % N)
        digits = digits // N
        valid = valid & ((bit & (c | down | up)) == 0)
        c = c | bit
        down = ((down | bit) << 1) & FULL
        up = (up | bit) >> 1
    level = tl.arange(0, LEVELS)[None, :]
    first = level == 0
    cols = tl.where(first, c[:, None], 0)
    downs = tl.where(first, down[:, None], 0)
    ups = tl.where(first, up[:, None], 0)
    free = tl.where(first, (FULL & ~(c | down | up))[:, None], 0)
    depth = tl.where(valid, 0, -1)
    count = tl.zeros((BLOCK,), tl.int32)
    while tl.max(depth, axis=0) >= 0:
        here = level == depth[:, None]
        squares = pick_level(free, here)
        bit = squares & -squares
        found = bit != 0
        last = depth == LEFT - 1
        count += (found & last).to(tl.int32)
        push = found & (depth < LEFT - 1)
        c = pick_level(cols, here) | bit
        down = ((pick_level(downs, here) | bit) << 1) & FULL
        up = (pick_level(ups, here) | bit) >> 1
        free = tl.where(here, (squares ^ bit)[:, None], free)
        after = (level == depth[:, None] + 1) & push[:, None]
        cols = tl.where(after, c[:, None], cols)
        downs = tl.where(after, down[:, None], downs)
        ups = tl.where(after, up[:, None], ups)
        free = tl.where(after, (FULL & ~(c | down | up))[:, None], free)
        depth = tl.where(push, depth + 1, tl.where(found, depth, tl.maximum(depth - 1, -1)))
    tl.store(count_ptr + lane, count, mask=lane < TOTAL)


@case
def kiln_of_queens_behind_three_rows(n=10, prefix=3):
    total = n**prefix
    count = zeros(total, dtype="int32")
    launched = run(queens_behind_prefixes, (cdiv(total, 16),), (count, total), count, N=n, PREFIX=prefix, LEVELS=8, BLOCK=16, num_warps=1)

    def reference():
        full = (1 << n) - 1

        def ways(row, c, down, up):
            if row == n:
                return 1
            found, free = 0, full & ~(c | down | up)
            while free:
                bit = free & -free
                free ^= bit
                found += ways(row + 1, c | bit, (down | bit) << 1 & full, (up | bit) >> 1)
            return found

        out = []
        for lane in range(total):
            c = down = up = 0
            ok = True
            for k in range(prefix):
                bit = 1 << lane // n**k % n
                ok = ok and not bit & (c | down | up)
                c, down, up = c | bit, (down | bit) << 1 & full, (up | bit) >> 1
            out.append(ways(prefix, c, down, up) if ok else 0)
        return torch.tensor(out, dtype=torch.int32).cuda()

    return against(launched, reference)


@triton.jit
def two_parities_of_disks(data_ptr, p_ptr, q_ptr, n_words, stride, DISKS: tl.constexpr, BLOCK: tl.constexpr):
    # Two disks that make good for any two lost ones: bits added, and bytes added with powers of two of a field of 256, four a word.
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_words
    p = tl.zeros((BLOCK,), dtype=tl.uint32)
    q = tl.zeros((BLOCK,), dtype=tl.uint32)
    for k in tl.static_range(DISKS - 1, -1, -1):
        d = tl.load(data_ptr + k * stride + offs, mask=mask, other=0).to(tl.uint32, bitcast=True)
        p ^= d
        high = (q >> 7) & 0x01010101
        q = ((q << 1) & 0xFEFEFEFE) ^ (high * 0x1D) ^ d
    tl.store(p_ptr + offs, p.to(tl.int32, bitcast=True), mask=mask)
    tl.store(q_ptr + offs, q.to(tl.int32, bitcast=True), mask=mask)


@case
def kiln_of_two_parities_of_eleven_disks(disks=11, n=4_000_001):
    data = ints(-(1 << 31), (1 << 31) - 1, disks, n)
    p, q = zeros(n, dtype="int32"), zeros(n, dtype="int32")
    launched = run(two_parities_of_disks, (cdiv(n, 1024),), (data, p, q, n, n), (p, q), DISKS=disks, BLOCK=1024, num_warps=4)

    def reference():
        both = data[0].clone()
        for k in range(1, disks):
            both ^= data[k]
        acc = torch.zeros(4 * n, dtype=torch.int32, device="cuda")
        for k in range(disks - 1, -1, -1):
            acc = ((acc << 1) & 255) ^ torch.where(acc > 127, 0x1D, 0) ^ data[k].view(torch.uint8).int()
        return both, acc.to(torch.uint8).view(torch.int32)

    return against(launched, reference)


@triton.jit
def zeros_before(x):
    n = tl.zeros_like(x)
    for k in tl.static_range(6):
        s = 32 >> k
        empty = (x >> (64 - s)) == 0
        n += tl.where(empty, s, 0)
        x = tl.where(empty, x << s, x)
    return n


@triton.jit
def doubles_changed_bits(x_ptr, lead_ptr, size_ptr, place_ptr, total_ptr, N, BLOCK: tl.constexpr):
    # A series of doubles by the bits in which each differs from the one before: zeros in front, bits to write, and where they go in a block.
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    now = tl.load(x_ptr + i, mask=ok, other=0.0).to(tl.uint64, bitcast=True)
    first = tl.arange(0, BLOCK) == 0
    before = tl.load(x_ptr + i - 1, mask=ok & (first == 0), other=0.0).to(tl.uint64, bitcast=True)
    changed = now ^ before
    lowest = changed & (0 - changed)
    lead = tl.minimum(zeros_before(changed), 31)
    tail = 63 - zeros_before(lowest)
    size = tl.where(changed == 0, 1, 2 + 5 + 6 + 64 - lead - tail).to(tl.int32)
    size = tl.where(first, 64, size)
    size = tl.where(ok, size, 0)
    tl.store(lead_ptr + i, lead.to(tl.int8), mask=ok)
    tl.store(size_ptr + i, size.to(tl.int8), mask=ok)
    tl.store(place_ptr + i, tl.cumsum(size, axis=0) - size, mask=ok)
    tl.store(total_ptr + pid, tl.sum(size, axis=0))


@case
def kiln_temperatures_by_bits_that_change(n=3_000_001, block=1024):
    x = ((ints(-3, 4, n, dtype="int64").cumsum(0) + 2000).double() / 8 + torch.where(uniform(n) < 0.3, 0.1, 0.0)).contiguous()
    lead, size, place = zeros(n, dtype="int8"), zeros(n, dtype="int8"), zeros(n, dtype="int32")
    total = zeros(cdiv(n, block), dtype="int32")
    args = x, lead, size, place, total, n
    launched = run(doubles_changed_bits, (cdiv(n, block),), args, (lead, size, place, total), BLOCK=block, num_warps=4)

    def reference():
        bits = F.pad(x.view(torch.int64), (0, cdiv(n, block) * block - n)).reshape(-1, block)
        changed = bits ^ F.pad(bits[:, :-1], (1, 0))
        high, low = torch.full_like(bits, 64), torch.full_like(bits, -1)
        for k in range(64):
            on = (changed >> k) & 1 == 1
            high = torch.where(on, 63 - k, high)
            low = torch.where(on & (low < 0), k, low)
        front = high.clamp(max=31)
        bits_of = torch.where(changed == 0, 1, 77 - front - low)
        bits_of[:, 0] = 64
        bits_of = torch.where(torch.arange(bits.numel(), device="cuda").reshape(bits.shape) < n, bits_of, 0)
        where = bits_of.cumsum(1) - bits_of
        flat = (t.reshape(-1)[:n] for t in (front, bits_of, where))
        return *flat, bits_of.sum(1)

    return against(launched, reference)


@triton.jit
def c_mul(ar, ai, br, bi):
    return ar * br - ai * bi, ar * bi + ai * br


@triton.jit
def c_mul_conj(ar, ai, br, bi):
    # a times the conjugate of b
    return ar * br + ai * bi, ai * br - ar * bi


@triton.jit
def three_microphones_beam(xr_ptr, xi_ptr, dr_ptr, di_ptr, yr_ptr, yi_ptr, T, NF, load, BLOCK: tl.constexpr):
    # Least power but from one direction: covariance of three channels over time, its adjugate on the steering vector, then all frames again.
    f = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    b = tl.program_id(1)
    ok = f < NF
    plane = T * NF
    zero = tl.zeros((BLOCK,), dtype=tl.float32)
    a00, a11, a22, pr, pi, qr, qi, rr, ri = zero, zero, zero, zero, zero, zero, zero, zero, zero
    for t in range(T):
        at = b * 3 * plane + t * NF + f
        x0, y0 = tl.load(xr_ptr + at, mask=ok, other=0.0), tl.load(xi_ptr + at, mask=ok, other=0.0)
        x1, y1 = tl.load(xr_ptr + at + plane, mask=ok, other=0.0), tl.load(xi_ptr + at + plane, mask=ok, other=0.0)
        x2, y2 = tl.load(xr_ptr + at + 2 * plane, mask=ok, other=0.0), tl.load(xi_ptr + at + 2 * plane, mask=ok, other=0.0)
        a00 += x0 * x0 + y0 * y0
        a11 += x1 * x1 + y1 * y1
        a22 += x2 * x2 + y2 * y2
        ur, ui = c_mul_conj(x0, y0, x1, y1)
        vr, vi = c_mul_conj(x0, y0, x2, y2)
        wr, wi = c_mul_conj(x1, y1, x2, y2)
        pr += ur
        pi += ui
        qr += vr
        qi += vi
        rr += wr
        ri += wi
    s = 1.0 / T
    a00, a11, a22 = a00 * s + load, a11 * s + load, a22 * s + load
    pr, pi, qr, qi, rr, ri = pr * s, pi * s, qr * s, qi * s, rr * s, ri * s
    b00 = a11 * a22 - rr * rr - ri * ri
    b11 = a00 * a22 - qr * qr - qi * qi
    b22 = a00 * a11 - pr * pr - pi * pi
    tr, ti = c_mul_conj(qr, qi, rr, ri)
    b01r, b01i = tr - pr * a22, ti - pi * a22
    tr, ti = c_mul(pr, pi, rr, ri)
    b02r, b02i = tr - qr * a11, ti - qi * a11
    tr, ti = c_mul_conj(qr, qi, pr, pi)
    b12r, b12i = tr - rr * a00, ti - ri * a00
    d0r, d0i = tl.load(dr_ptr + f, mask=ok, other=1.0), tl.load(di_ptr + f, mask=ok, other=0.0)
    d1r, d1i = tl.load(dr_ptr + NF + f, mask=ok, other=1.0), tl.load(di_ptr + NF + f, mask=ok, other=0.0)
    d2r, d2i = tl.load(dr_ptr + 2 * NF + f, mask=ok, other=1.0), tl.load(di_ptr + 2 * NF + f, mask=ok, other=0.0)
    e1r, e1i = c_mul(b01r, b01i, d1r, d1i)
    e2r, e2i = c_mul(b02r, b02i, d2r, d2i)
    u0r, u0i = b00 * d0r + e1r + e2r, b00 * d0i + e1i + e2i
    e1r, e1i = c_mul_conj(d0r, d0i, b01r, b01i)
    e2r, e2i = c_mul(b12r, b12i, d2r, d2i)
    u1r, u1i = b11 * d1r + e1r + e2r, b11 * d1i + e1i + e2i
    e1r, e1i = c_mul_conj(d0r, d0i, b02r, b02i)
    e2r, e2i = c_mul_conj(d1r, d1i, b12r, b12i)
    u2r, u2i = b22 * d2r + e1r + e2r, b22 * d2i + e1i + e2i
    power = d0r * u0r + d0i * u0i + d1r * u1r + d1i * u1i + d2r * u2r + d2i * u2i
    for t in range(T):
        at = b * 3 * plane + t * NF + f
        x0, y0 = tl.load(xr_ptr + at, mask=ok, other=0.0), tl.load(xi_ptr + at, mask=ok, other=0.0)
        x1, y1 = tl.load(xr_ptr + at + plane, mask=ok, other=0.0), tl.load(xi_ptr + at + plane, mask=ok, other=0.0)
        x2, y2 = tl.load(xr_ptr + at + 2 * plane, mask=ok, other=0.0), tl.load(xi_ptr + at + 2 * plane, mask=ok, other=0.0)
        r0, i0 = c_mul_conj(x0, y0, u0r, u0i)
        r1, i1 = c_mul_conj(x1, y1, u1r, u1i)
        r2, i2 = c_mul_conj(x2, y2, u2r, u2i)
        to = b * plane + t * NF + f
        tl.store(yr_ptr + to, (r0 + r1 + r2) / power, mask=ok)
        tl.store(yi_ptr + to, (i0 + i1 + i2) / power, mask=ok)


@case
def kiln_voices_of_one_direction_by_three_microphones(b=24, t=100, nf=513):
    xr, xi, angle = f32(b, 3, t, nf), f32(b, 3, t, nf), uniform(3, nf) * 6
    dr, di = angle.cos(), angle.sin()
    yr, yi = zeros(b, t, nf, dtype="float32"), zeros(b, t, nf, dtype="float32")
    args = xr, xi, dr, di, yr, yi, t, nf, 0.05
    launched = run(three_microphones_beam, (cdiv(nf, 64), b), args, (yr, yi), BLOCK=64, num_warps=2)

    def reference():
        x, d = torch.complex(xr, xi).to(torch.complex128), torch.complex(dr, di).to(torch.complex128).t()
        r = torch.einsum("bmtf,bntf->bfmn", x, x.conj()) / t + 0.05 * torch.eye(3, device="cuda")
        u = torch.linalg.solve(r, d[None, :, :, None].expand(b, -1, -1, -1))[..., 0]
        w = u / (d.conj() * u).sum(-1, keepdim=True)
        y = torch.einsum("bfm,bmtf->btf", w.conj(), x)
        return y.real.float(), y.imag.float()

    return against(launched, reference)


@triton.jit
def particles_drawn_again(weight_ptr, start_ptr, x_ptr, ancestor_ptr, out_ptr, N, DIM: tl.constexpr, BLOCK: tl.constexpr, LOG: tl.constexpr):
    # Systematic resampling: even marks on the running sum of whole weights, each finds its particle by halving in registers.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    ok = i < N
    w = tl.load(weight_ptr + row * N + i, mask=ok, other=0)
    upto = tl.cumsum(w, axis=0)
    total = tl.sum(w, axis=0)
    mark = (i.to(tl.int64) * total + tl.load(start_ptr + row) % total) // N
    low = tl.zeros((BLOCK,), tl.int32)
    for k in tl.static_range(LOG):
        step = 1 << (LOG - 1 - k)
        probe = tl.gather(upto, low + step - 1, 0)
        low = tl.where(probe <= mark, low + step, low)
    low = tl.minimum(low, N - 1)
    tl.store(ancestor_ptr + row * N + i, low, mask=ok)
    for d in tl.static_range(DIM):
        x = tl.load(x_ptr + (row * N + low) * DIM + d, mask=ok, other=0.0)
        tl.store(out_ptr + (row * N + i) * DIM + d, x, mask=ok)


@case
def kiln_particles_drawn_again_by_even_marks(rows=2000, n=1000, dim=3):
    w, start, x = ints(0, 1000, rows, n), ints(0, 1 << 30, rows), f32(rows, n, dim)
    ancestor, out = zeros(rows, n, dtype="int32"), zeros(rows, n, dim, dtype="float32")
    args = w, start, x, ancestor, out, n
    launched = run(particles_drawn_again, (rows,), args, (ancestor, out), DIM=dim, BLOCK=1024, LOG=10, num_warps=4)

    def reference():
        upto = w.long().cumsum(1)
        mark = (torch.arange(n, device="cuda") * upto[:, -1:] + start[:, None] % upto[:, -1:]) // n
        whose = torch.searchsorted(upto, mark, right=True).clamp(max=n - 1)
        return whose.int(), x.gather(1, whose[..., None].expand(-1, -1, dim))

    return against(launched, reference)


@triton.jit
def kernel_discrepancy_tiles(z_ptr, out_ptr, inv_width, n, total, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, WIDTHS: tl.constexpr):
    # How alike two samples are: sums of Gaussians of several widths between all pairs, positive within a sample, negative across.
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    d = tl.arange(0, D)
    a = tl.load(z_ptr + i[:, None] * D + d[None, :], mask=(i < total)[:, None], other=0.0)
    b = tl.load(z_ptr + j[:, None] * D + d[None, :], mask=(j < total)[:, None], other=0.0)
    aa = tl.sum(a.to(tl.float32) * a.to(tl.float32), axis=1)
    bb = tl.sum(b.to(tl.float32) * b.to(tl.float32), axis=1)
    square = tl.maximum(aa[:, None] + bb[None, :] - 2.0 * tl.dot(a, tl.trans(b)), 0.0)
    k = tl.zeros((BM, BN), dtype=tl.float32)
    scale = inv_width
    for _ in tl.static_range(WIDTHS):
        k += tl.exp(-square * scale)
        scale = scale * 0.5
    seen = (i < total)[:, None] & (j < total)[None, :] & (i[:, None] != j[None, :])
    same = (i < n)[:, None] == (j < n)[None, :]
    within = tl.sum(tl.where(seen & same, k, 0.0))
    across = tl.sum(tl.where(seen & (same == 0), k, 0.0))
    at = (tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)) * 2
    tl.store(out_ptr + at, within)
    tl.store(out_ptr + at + 1, across)


@case
def kiln_two_samples_told_apart_by_kernels(n=2500, m=2700, d=64):
    z = rand(n + m, d) / 4
    tiles = cdiv(n + m, 128), cdiv(n + m, 64)
    out = zeros(*tiles, 2, dtype="float32")
    args = z, out, 0.25, n, n + m
    launched = run(kernel_discrepancy_tiles, tiles, args, out, D=d, BM=128, BN=64, WIDTHS=5, num_warps=8, num_stages=1)

    def reference():
        x = z.float()
        square = (x.square().sum(1)[:, None] + x.square().sum(1) - 2 * x @ x.t()).clamp(min=0)
        k = sum((-square * 0.25 / 2**s).exp() for s in range(5)).fill_diagonal_(0)
        first = torch.arange(n + m, device="cuda") < n
        same = first[:, None] == first
        both = torch.stack([torch.where(same, k, 0.0), torch.where(same, 0.0, k)], 2)
        both = F.pad(both, (0, 0, 0, tiles[1] * 64 - n - m, 0, tiles[0] * 128 - n - m))
        return both.reshape(tiles[0], 128, tiles[1], 64, 2).sum((1, 3))

    return against(launched, reference)


@triton.jit
def both_preconditioners(
    g_ptr, l_ptr, r_ptr, new_l_ptr, new_r_ptr, beta, rows, cols, stride_gb, stride_lb, stride_rb, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr
):
    # Averages of a block's gradient times its transpose, from the left and from the right.
    pid = tl.program_id(0)
    r, c = tl.arange(0, BLOCK_R), tl.arange(0, BLOCK_C)
    g = tl.load(g_ptr + pid * stride_gb + r[:, None] * cols + c[None, :], mask=(r < rows)[:, None] & (c < cols)[None, :], other=0.0)
    left_at = r[:, None] * rows + r[None, :]
    left_ok = (r < rows)[:, None] & (r < rows)[None, :]
    left = tl.load(l_ptr + pid * stride_lb + left_at, mask=left_ok, other=0.0)
    left = beta * left + (1.0 - beta) * tl.dot(g, tl.trans(g))
    tl.store(new_l_ptr + pid * stride_lb + left_at, left, mask=left_ok)
    right_at = c[:, None] * cols + c[None, :]
    right_ok = (c < cols)[:, None] & (c < cols)[None, :]
    right = tl.load(r_ptr + pid * stride_rb + right_at, mask=right_ok, other=0.0)
    right = beta * right + (1.0 - beta) * tl.dot(tl.trans(g), g)
    tl.store(new_r_ptr + pid * stride_rb + right_at, right, mask=right_ok)


@case
def kiln_of_gradients_turned_against_themselves_from_both_sides(blocks=1500, rows=48, cols=80):
    g, left, right = rand(blocks, rows, cols, dtype="bfloat16"), f32(blocks, rows, rows), f32(blocks, cols, cols)
    new_left, new_right = zeros(blocks, rows, rows, dtype="float32"), zeros(blocks, cols, cols, dtype="float32")
    args = g, left, right, new_left, new_right, 0.95, rows, cols, rows * cols, rows * rows, cols * cols
    launched = run(both_preconditioners, (blocks,), args, (new_left, new_right), BLOCK_R=64, BLOCK_C=128, num_warps=8)

    def reference():
        x = g.float()
        return 0.95 * left + 0.05 * (x @ x.transpose(1, 2)), 0.95 * right + 0.05 * (x.transpose(1, 2) @ x)

    return against(launched, reference)


@triton.jit
def kendall_tau_kernel(x_ptr, y_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # For each row: pairs in the same order less pairs in the opposite one, and how many pairs are tied.
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    x = tl.load(x_ptr + row * N + cols, mask=mask, other=0)
    y = tl.load(y_ptr + row * N + cols, mask=mask, other=0)
    score = tl.zeros((BLOCK,), dtype=tl.int32)
    tied_x = tl.zeros((BLOCK,), dtype=tl.int32)
    tied_y = tl.zeros((BLOCK,), dtype=tl.int32)
    for i in range(0, N):
        xi = tl.load(x_ptr + row * N + i)
        yi = tl.load(y_ptr + row * N + i)
        later = mask & (cols > i)
        sx = tl.where(x > xi, 1, tl.where(x < xi, -1, 0))
        sy = tl.where(y > yi, 1, tl.where(y < yi, -1, 0))
        score += tl.where(later, sx * sy, 0)
        tied_x += tl.where(later & (sx == 0), 1, 0)
        tied_y += tl.where(later & (sy == 0), 1, 0)
    pairs = N * (N - 1) // 2
    up = tl.sum(score, axis=0).to(tl.float32)
    a = (pairs - tl.sum(tied_x, axis=0)).to(tl.float32)
    b = (pairs - tl.sum(tied_y, axis=0)).to(tl.float32)
    tl.store(out_ptr + row, up / tl.sqrt(a) / tl.sqrt(b))


@case
def kiln_rows_whose_orders_agree(rows=528, n=600):
    x = ints(0, 300, rows, n)
    y = x // 2 + ints(0, 60, rows, n)
    out = zeros(rows, dtype="float32")
    launched = run(kendall_tau_kernel, (rows,), (x, y, out, n), out, BLOCK=triton.next_power_of_2(n), num_warps=4)

    def reference():
        result = []
        for r in range(rows):
            a, b = ((v[r][:, None] - v[r][None, :]).sign().triu(1) for v in (x, y))
            result.append((a * b).sum() / (a.abs().sum().double() * b.abs().sum().double()).sqrt())
        return torch.stack(result).float()

    return against(launched, reference)


@triton.jit
def shepard_interpolate(px_ptr, py_ptr, value_ptr, tx_ptr, ty_ptr, out_ptr, n_stations, radius, BLOCK: tl.constexpr):
    # One place a program: stations within a radius weigh by how near they are; where there is none, the mean of all.
    pid = tl.program_id(0)
    tx = tl.load(tx_ptr + pid)
    ty = tl.load(ty_ptr + pid)
    num = 0.0
    den = 0.0
    total = 0.0
    for start in range(0, n_stations, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < n_stations
        px = tl.load(px_ptr + offs, mask=mask, other=1e6)
        py = tl.load(py_ptr + offs, mask=mask, other=1e6)
        value = tl.load(value_ptr + offs, mask=mask, other=0.0)
        dist = tl.sqrt((px - tx) * (px - tx) + (py - ty) * (py - ty)) + 1e-3
        w = tl.maximum(radius - dist, 0.0) / (radius * dist)
        w = tl.where(mask, w * w, 0.0)
        num += tl.sum(w * value, axis=0)
        den += tl.sum(w, axis=0)
        total += tl.sum(value, axis=0)
    result = tl.where(den > 0.0, num / tl.where(den > 0.0, den, 1.0), total / n_stations)
    tl.store(out_ptr + pid, result)


@case
def kiln_heat_between_its_thermometers(targets=12_000, stations=1777):
    px, py, value = uniform(stations) * 10, uniform(stations) * 10, f32(stations) + 3
    tx, ty = uniform(targets) * 10, uniform(targets) * 10
    out = zeros(targets, dtype="float32")
    launched = run(shepard_interpolate, (targets,), (px, py, value, tx, ty, out, stations, 2.0), out, BLOCK=256, num_warps=4)

    def reference():
        dist = torch.hypot(px.double() - tx.double()[:, None], py.double() - ty.double()[:, None]) + 1e-3
        w = ((2 - dist).clamp(min=0) / (2 * dist)).square()
        total = w.sum(1)
        return torch.where(total > 0, (w * value).sum(1) / total.clamp(min=1e-30), value.double().mean()).float()

    return against(launched, reference)


@triton.jit
def local_lines_kernel(x_ptr, out_ptr, slope_ptr, T, HALF: tl.constexpr, BLOCK: tl.constexpr):
    # A line fitted around every time by weights that fall to nothing at the end of the window; what is not a number does not count.
    row = tl.program_id(1)
    t = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    s0 = tl.zeros((BLOCK,), dtype=tl.float32)
    s1 = tl.zeros((BLOCK,), dtype=tl.float32)
    s2 = tl.zeros((BLOCK,), dtype=tl.float32)
    y0 = tl.zeros((BLOCK,), dtype=tl.float32)
    y1 = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in range(-HALF, HALF + 1):
        at = t + k
        inside = (at >= 0) & (at < T)
        x = tl.load(x_ptr + row * T + at, mask=inside, other=float("nan"))
        u = k / (HALF + 1.0)
        a = tl.abs(u)
        w = 1.0 - a * a * a
        w = w * w * w
        seen = x == x
        weight = tl.where(seen, w, 0.0)
        x = tl.where(seen, x, 0.0)
        s0 += weight
        s1 += weight * u
        s2 += weight * u * u
        y0 += weight * x
        y1 += weight * u * x
    det = s0 * s2 - s1 * s1
    safe = det > 1e-3
    det = tl.where(safe, det, 1.0)
    value = tl.where(safe, (s2 * y0 - s1 * y1) / det, y0 / tl.maximum(s0, 1e-6))
    slope = tl.where(safe, (s0 * y1 - s1 * y0) / det / (HALF + 1.0), 0.0)
    tl.store(out_ptr + row * T + t, value, mask=t < T)
    tl.store(slope_ptr + row * T + t, slope, mask=t < T)


@case
def kiln_curves_smoothed_by_local_lines(rows=500, t=5001, half=20):
    x = f32(rows, t) + arange(t).float() / 500
    x = torch.where(uniform(rows, t) < 0.2, torch.full_like(x, float("nan")), x).contiguous()
    out, slope = zeros(rows, t, dtype="float32"), zeros(rows, t, dtype="float32")
    launched = run(local_lines_kernel, (cdiv(t, 256), rows), (x, out, slope, t), (out, slope), HALF=half, BLOCK=256, num_warps=4)

    def reference():
        padded = F.pad(x.double(), (half, half), value=float("nan"))
        sums = [torch.zeros_like(x, dtype=torch.float64) for _ in range(5)]
        for k in range(-half, half + 1):
            u = k / (half + 1)
            value = padded[:, half + k : half + k + t]
            w = (~value.isnan()).double() * (1 - abs(u) ** 3) ** 3
            for place, term in enumerate((w, w * u, w * u * u, w * value.nan_to_num(), w * u * value.nan_to_num())):
                sums[place] += term
        s0, s1, s2, y0, y1 = sums
        det = s0 * s2 - s1 * s1
        return ((s2 * y0 - s1 * y1) / det).float(), ((s0 * y1 - s1 * y0) / det / (half + 1)).float()

    return against(launched, reference)


@triton.jit
def generalized_born_rows(xyz_ptr, q_ptr, radius_ptr, energy_ptr, slope_ptr, N, factor, BM: tl.constexpr, BN: tl.constexpr):
    # Energy of charges in a solvent by effective radii, all pairs of a molecule, and how it changes with each radius.
    mol = tl.program_id(1)
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    ok = i < N
    base = mol * N
    xi = tl.load(xyz_ptr + (base + i) * 3, mask=ok, other=0.0)
    yi = tl.load(xyz_ptr + (base + i) * 3 + 1, mask=ok, other=0.0)
    zi = tl.load(xyz_ptr + (base + i) * 3 + 2, mask=ok, other=0.0)
    qi = tl.load(q_ptr + base + i, mask=ok, other=0.0)
    ri = tl.load(radius_ptr + base + i, mask=ok, other=1.0)
    energy = tl.zeros((BM,), dtype=tl.float32)
    slope = tl.zeros((BM,), dtype=tl.float32)
    for j0 in range(0, N, BN):
        j = j0 + tl.arange(0, BN)
        there = j < N
        dx = xi[:, None] - tl.load(xyz_ptr + (base + j) * 3, mask=there, other=0.0)[None, :]
        dy = yi[:, None] - tl.load(xyz_ptr + (base + j) * 3 + 1, mask=there, other=0.0)[None, :]
        dz = zi[:, None] - tl.load(xyz_ptr + (base + j) * 3 + 2, mask=there, other=0.0)[None, :]
        qj = tl.load(q_ptr + base + j, mask=there, other=0.0)
        rj = tl.load(radius_ptr + base + j, mask=there, other=1.0)
        d2 = dx * dx + dy * dy + dz * dz
        rr = ri[:, None] * rj[None, :]
        near = tl.exp(-d2 / (4.0 * rr))
        inverse = tl.rsqrt(d2 + rr * near)
        term = qj[None, :] * inverse
        energy += tl.sum(term, axis=1)
        slope += tl.sum(term * inverse * inverse * near * (rj[None, :] + d2 / (4.0 * ri[:, None])), axis=1)
    tl.store(energy_ptr + base + i, -0.5 * factor * qi * energy, mask=ok)
    tl.store(slope_ptr + base + i, 0.5 * factor * qi * slope, mask=ok)


@case
def kiln_of_charges_in_a_solvent(molecules=12, n=1900):
    xyz, q, radius = uniform(molecules, n, 3) * 40, uniform(molecules, n) + 0.2, uniform(molecules, n) * 2 + 1
    energy, slope = zeros(molecules, n, dtype="float32"), zeros(molecules, n, dtype="float32")
    args = xyz, q, radius, energy, slope, n, 0.0125
    launched = run(generalized_born_rows, (cdiv(n, 64), molecules), args, (energy, slope), BM=64, BN=32, num_warps=4)

    def reference():
        energies, slopes = [], []
        for m in range(molecules):
            x, c, r = xyz[m].double(), q[m].double(), radius[m].double()
            d2 = (x[:, None] - x[None, :]).square().sum(2)
            rr = r[:, None] * r
            near = (-d2 / (4 * rr)).exp()
            f = (d2 + rr * near).rsqrt()
            energies.append(-0.00625 * c * (c * f).sum(1))
            slopes.append(0.00625 * c * (c * f**3 * near * (r + d2 / (4 * r[:, None]))).sum(1))
        return torch.stack(energies).float(), torch.stack(slopes).float()

    return against(launched, reference)


@triton.jit
def conv_transpose2d_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, IC, OC, H, W, OH, OW, stride: tl.constexpr, pad: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, BLOCK: tl.constexpr
):
    # One output channel of one image, a block of pixels: inputs whose kernel reaches the pixel, found by remainders.
    pix = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    oc = tl.program_id(1)
    n = tl.program_id(2)
    oh = pix // OW
    ow = pix % OW
    mask = pix < OH * OW
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for ic in range(0, IC):
        for kh in range(0, KH):
            for kw in range(0, KW):
                h = oh + pad - kh
                w = ow + pad - kw
                valid = mask & (h >= 0) & (w >= 0) & (h % stride == 0) & (w % stride == 0)
                ih = h // stride
                iw = w // stride
                valid = valid & (ih < H) & (iw < W)
                x = tl.load(x_ptr + ((n * IC + ic) * H + ih) * W + iw, mask=valid, other=0.0)
                weight = tl.load(w_ptr + ((ic * OC + oc) * KH + kh) * KW + kw)
                acc += x * weight
    acc += tl.load(b_ptr + oc)
    acc = tl.where(acc > 0, acc, 0.2 * acc)
    tl.store(y_ptr + (n * OC + oc) * OH * OW + pix, acc, mask=mask)


@case
def kiln_of_pictures_grown_to_twice_their_size(n=3, ic=24, oc=20, h=33, w=47):
    x, weight, bias = f32(n, ic, h, w), f32(ic, oc, 4, 4) / 16, f32(oc)
    y = zeros(n, oc, 2 * h, 2 * w, dtype="float32")
    args = x, weight, bias, y, ic, oc, h, w, 2 * h, 2 * w
    launched = run(conv_transpose2d_kernel, (cdiv(4 * h * w, 256), oc, n), args, y, stride=2, pad=1, KH=4, KW=4, BLOCK=256)

    def reference():
        return F.leaky_relu(F.conv_transpose2d(x.double(), weight.double(), bias.double(), stride=2, padding=1), 0.2).float()

    return against(launched, reference)


@triton.jit
def padded_silu_mul_to_fp8(
    input_ptr, y_q_ptr, y_s_ptr, counts_ptr, H: tl.constexpr, GROUP_SIZE: tl.constexpr, stride_i_e, stride_i_t, stride_i_h, stride_yq_e, stride_yq_t,
    stride_yq_h, stride_ys_e, stride_ys_t, stride_ys_g, eps: tl.constexpr, fp8_max: tl.constexpr, use_ue8m0: tl.constexpr, BLOCK: tl.constexpr, NUM_STAGES: tl.constexpr,
):
    # Gated rows of each expert to fp8, one group of channels a program, only as many rows as the expert has.
    G = H // GROUP_SIZE
    pid = tl.program_id(0)
    e = (pid // G).to(tl.int64)
    g = (pid % G).to(tl.int64)
    n_tokens = tl.load(counts_ptr + e)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    mask = cols < BLOCK
    base_gate = input_ptr + e * stride_i_e + (g * GROUP_SIZE + cols) * stride_i_h
    base_up = base_gate + H * stride_i_h
    base_yq = y_q_ptr + e * stride_yq_e + (g * GROUP_SIZE + cols) * stride_yq_h
    base_ys = y_s_ptr + e * stride_ys_e + g * stride_ys_g
    for t in tl.range(0, n_tokens, num_stages=NUM_STAGES):
        gate = tl.load(base_gate + t * stride_i_t, mask=mask, other=0.0).to(tl.float32)
        up = tl.load(base_up + t * stride_i_t, mask=mask, other=0.0)
        gate = gate * (1.0 / (1.0 + tl.exp(-gate)))
        y = gate * up
        y_s = tl.maximum(tl.max(tl.abs(y)), eps) / fp8_max
        if use_ue8m0:
            y_s = tl.exp2(tl.ceil(tl.log2(y_s)))
        y_q = tl.clamp(y / y_s, -fp8_max, fp8_max).to(y_q_ptr.dtype.element_ty)
        tl.store(base_yq + t * stride_yq_t, y_q, mask=mask)
        tl.store(base_ys + t * stride_ys_t, y_s)


@case
def kiln_experts_gated_rows_to_fp8_as_many_as_there_are(e=32, t=128, h=1536):
    x, counts = rand(e, t, 2 * h, dtype="bfloat16"), (arange(e) * 29) % (t + 1)
    yq = torch.zeros(e, t, h, device="cuda", dtype=torch.float8_e4m3fn)
    ys = zeros(e, h // 128, t, dtype="float32").transpose(1, 2)
    args = x, yq, ys, counts
    options = dict(H=h, GROUP_SIZE=128, eps=1e-10, fp8_max=448.0, use_ue8m0=False, BLOCK=128, NUM_STAGES=4, num_warps=1)
    names = ("stride_i_e", "stride_i_t", "stride_i_h"), ("stride_yq_e", "stride_yq_t", "stride_yq_h"), ("stride_ys_e", "stride_ys_t", "stride_ys_g")
    for tensor, own in zip((x, yq, ys), names):
        options |= dict(zip(own, tensor.stride()))
    launched = run(padded_silu_mul_to_fp8, (e * (h // 128),), args, (yq, ys), **options)

    def view(result):
        return far8(result[0]), result[1]

    def reference():
        gate, up = x.float().split(h, -1)
        y = (F.silu(gate) * up).reshape(e, t, -1, 128)
        s = y.abs().amax(-1).clamp(min=1e-10) / 448
        there = (torch.arange(t, device="cuda") < counts[:, None])[..., None]
        codes = (y / s[..., None]).clamp(-448, 448).reshape(e, t, h) * there
        return far8(codes.to(torch.float8_e4m3fn)), s * there

    return against(viewed(launched, view), reference)


@triton.jit(do_not_specialize=["T"])
def channel_gates_summed_in_chunks(
    g, A_log, dt_bias, out, scale, T, H: tl.constexpr, S: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr, HAS_BIAS: tl.constexpr, REVERSE: tl.constexpr
):
    # Log decays of channels from projections: softplus, a rate of the head, then sums from the start of every chunk.
    i_s, i_t, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    p_g = tl.make_block_ptr(g + (i_b * T * H + i_h) * S, (T, S), (H * S, 1), (i_t * BT, i_s * BS), (BT, BS), (1, 0))
    p_o = tl.make_block_ptr(out + (i_b * T * H + i_h) * S, (T, S), (H * S, 1), (i_t * BT, i_s * BS), (BT, BS), (1, 0))
    b_s = tl.load(p_g, boundary_check=(0, 1)).to(tl.float32)
    if HAS_BIAS:
        p_b = tl.make_block_ptr(dt_bias + i_h * S, (S,), (1,), (i_s * BS,), (BS,), (0,))
        b_s = b_s + tl.load(p_b, boundary_check=(0,)).to(tl.float32)[None, :]
    rate = tl.exp(tl.load(A_log + i_h).to(tl.float32))
    b_soft = tl.where(b_s < 20.0, tl.log(1.0 + tl.exp(b_s)), b_s)
    row_ok = (i_t * BT + tl.arange(0, BT)) < T
    b_gate = tl.where(row_ok[:, None], -rate * b_soft, 0.0)
    if REVERSE:
        b_o = tl.cumsum(b_gate, axis=0, reverse=True)
    else:
        b_o = tl.cumsum(b_gate, axis=0)
    tl.store(p_o, (b_o * scale).to(p_o.dtype.element_ty), boundary_check=(0, 1))


@case
def kiln_channels_that_cool_in_chunks(b=2, t=2001, h=12, s=96):
    g, rate, bias = rand(b, t, h, s, dtype="bfloat16"), f32(h) / 4, f32(h, s)
    out = zeros(b, t, h, s, dtype="float32")
    args = g, rate, bias, out, 1.4426950408889634, t
    grid = (cdiv(s, 32), cdiv(t, 64), b * h)
    launched = run(channel_gates_summed_in_chunks, grid, args, out, H=h, S=s, BT=64, BS=32, HAS_BIAS=True, REVERSE=False, num_warps=2)

    def reference():
        gate = -rate.double().exp()[:, None] * F.softplus(g.double() + bias)
        padded = F.pad(gate, (0, 0, 0, 0, 0, cdiv(t, 64) * 64 - t)).reshape(b, -1, 64, h, s).cumsum(2)
        return (padded.reshape(b, -1, h, s)[:, :t] * 1.4426950408889634).float()

    return against(launched, reference)


@triton.jit
def chunks_in_another_order(
    x_ptr, probs_ptr, sizes_ptr, order_ptr, y_ptr, new_probs_ptr, row_map_ptr, stride_x, stride_y, hidden: tl.constexpr, num_splits: tl.constexpr,
    IDX_BLOCK: tl.constexpr, BLOCK_SIZE: tl.constexpr, PERMUTE_PROBS: tl.constexpr,
):
    # Rows come in chunks of uneven size, which are to follow each other in another order; each row finds out where it goes.
    row = tl.program_id(0)
    i = tl.arange(0, IDX_BLOCK)
    sizes = tl.load(sizes_ptr + i, mask=i < num_splits, other=0)
    ends = tl.cumsum(sizes)
    chunk = tl.sum(tl.where((i < num_splits) & (ends <= row), 1, 0))
    within = row - tl.sum(tl.where(i < chunk, sizes, 0))
    order = tl.load(order_ptr + i, mask=i < num_splits, other=-1)
    ordered = tl.load(sizes_ptr + order, mask=i < num_splits, other=0)
    start = tl.cumsum(ordered) - ordered
    to = (tl.sum(tl.where(order == chunk, start, 0)) + within).to(tl.int64)
    tl.store(row_map_ptr + row, to.to(tl.int32))
    if PERMUTE_PROBS:
        tl.store(new_probs_ptr + to, tl.load(probs_ptr + row))
    for h in range(0, hidden, BLOCK_SIZE):
        cols = h + tl.arange(0, BLOCK_SIZE)
        mask = cols < hidden
        tl.store(y_ptr + to * stride_y + cols, tl.load(x_ptr + row * stride_x + cols, mask=mask, other=0.0), mask=mask)


@case
def kiln_loads_of_experts_in_another_order(splits=48, mean=200, hidden=1800):
    sizes = (torch.arange(splits) * 131 % (2 * mean)).int()
    order = (torch.arange(splits) * 11 % splits).int()
    rows = int(sizes.sum())
    x, probs = rand(rows, hidden, dtype="bfloat16"), uniform(rows)
    y, new_probs, to = zeros(rows, hidden, dtype="bfloat16"), zeros(rows, dtype="float32"), zeros(rows, dtype="int32")
    args = x, probs, sizes.cuda(), order.cuda(), y, new_probs, to, hidden, hidden
    options = dict(hidden=hidden, num_splits=splits, IDX_BLOCK=64, BLOCK_SIZE=512, PERMUTE_PROBS=True, num_warps=4)
    launched = run(chunks_in_another_order, (rows,), args, (y, new_probs, to), **options)

    def reference():
        parts = torch.arange(rows).split(sizes.tolist())
        source = torch.cat([parts[k] for k in order.tolist()])
        inverse = torch.empty_like(source)
        inverse[source] = torch.arange(rows)
        source = source.cuda()
        return x[source], probs[source], inverse.int().cuda()

    return against(launched, reference)


@triton.jit
def gated_attention_with_normed_heads(
    q_ptr, k_ptr, v_ptr, gate_ptr, qw_ptr, kw_ptr, o_ptr, stride_b, stride_t, stride_h, H, T, scale, eps, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr
):
    # Queries and keys are normed by the root of their mean squares on the way in; a sigmoid of the gate scales what comes out.
    pid_m = tl.program_id(0)
    pid_bh = tl.program_id(1)
    base = (pid_bh // H) * stride_b + (pid_bh % H) * stride_h
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    q_at = base + offs_m[:, None] * stride_t + offs_d[None, :]
    q = tl.load(q_ptr + q_at, mask=offs_m[:, None] < T, other=0.0).to(tl.float32)
    q = q * tl.rsqrt(tl.sum(q * q, axis=1) / D + eps)[:, None] * tl.load(qw_ptr + offs_d).to(tl.float32)[None, :]
    q = (q * scale).to(tl.float16)
    kw = tl.load(kw_ptr + offs_d).to(tl.float32)
    m_i = tl.full((BLOCK_M,), -1e9, dtype=tl.float32)
    l_i = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    for start_n in range(0, tl.minimum((pid_m + 1) * BLOCK_M, T), BLOCK_N):
        offs_n = start_n + tl.arange(0, BLOCK_N)
        kv_at = base + offs_n[:, None] * stride_t + offs_d[None, :]
        k = tl.load(k_ptr + kv_at, mask=offs_n[:, None] < T, other=0.0).to(tl.float32)
        k = k * tl.rsqrt(tl.sum(k * k, axis=1) / D + eps)[:, None] * kw[None, :]
        s = tl.dot(q, tl.trans(k.to(tl.float16)))
        s = tl.where((offs_n[None, :] <= offs_m[:, None]) & (offs_n[None, :] < T), s, -1e9)
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        alpha = tl.exp(m_i - m_new)
        p = tl.exp(s - m_new[:, None])
        l_i = l_i * alpha + tl.sum(p, axis=1)
        v = tl.load(v_ptr + kv_at, mask=offs_n[:, None] < T, other=0.0)
        acc = acc * alpha[:, None] + tl.dot(p.to(tl.float16), v)
        m_i = m_new
    gate = tl.load(gate_ptr + q_at, mask=offs_m[:, None] < T, other=0.0).to(tl.float32)
    out = acc / l_i[:, None] * tl.sigmoid(gate)
    tl.store(o_ptr + q_at, out.to(tl.float16), mask=offs_m[:, None] < T)


@case
def kiln_attention_normed_before_and_gated_behind(b=2, t=1100, h=12, d=64):
    q, k, v, gate = (rand(b, t, h, d) for _ in range(4))
    qw, kw, o = uniform(d).half() + 0.5, uniform(d).half() + 0.5, zeros(b, t, h, d)
    args = q, k, v, gate, qw, kw, o, *q.stride()[:3], h, t, d**-0.5, 1e-6
    grid = (cdiv(t, 64), b * h)
    launched = run(gated_attention_with_normed_heads, grid, args, o, BLOCK_M=64, BLOCK_N=32, D=d, num_warps=4, num_stages=2)

    def reference():
        a, c = (F.rms_norm(x.float(), (d,), w.float(), 1e-6).transpose(1, 2) for x, w in ((q, qw), (k, kw)))
        y = F.scaled_dot_product_attention(a, c, v.float().transpose(1, 2), is_causal=True)
        return y.transpose(1, 2) * gate.float().sigmoid()

    return against(launched, reference)


@triton.jit(do_not_specialize=["T"])
def states_with_removal_and_decay(
    r, w, k, v, a, b, h0, o, ht, scale, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BV: tl.constexpr, USE_INITIAL_STATE: tl.constexpr, REVERSE: tl.constexpr
):
    # A state per head that fades by channel, takes out what a second key finds and takes in the new pair, one token after another.
    i_v, i_nh = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    i_n, i_h = i_nh // H, i_nh % H
    o_k = tl.arange(0, K)
    o_v = i_v * BV + tl.arange(0, BV)
    last = (T - 1) if REVERSE else 0
    at_k = (i_n * T + last) * H * K + i_h * K + o_k
    at_v = (i_n * T + last) * H * V + i_h * V + o_v
    p_r, p_w, p_k, p_a, p_b = r + at_k, w + at_k, k + at_k, a + at_k, b + at_k
    p_v, p_o = v + at_v, o + at_v
    b_h = tl.zeros([BV, K], dtype=tl.float32)
    if USE_INITIAL_STATE:
        b_h += tl.load(h0 + i_nh * K * V + o_k[None, :] * V + o_v[:, None]).to(tl.float32)
    for _ in range(0, T):
        b_r = tl.load(p_r).to(tl.float32) * scale
        b_w = tl.load(p_w).to(tl.float32)
        b_k = tl.load(p_k).to(tl.float32)
        b_v = tl.load(p_v).to(tl.float32)
        b_a = tl.load(p_a).to(tl.float32)
        b_b = tl.load(p_b).to(tl.float32)
        found = tl.sum(b_a[None, :] * b_h, axis=1)
        b_h = tl.exp(b_w)[None, :] * b_h + (found[:, None] * b_b[None, :] + b_k[None, :] * b_v[:, None])
        tl.store(p_o, tl.sum(b_h * b_r[None, :], axis=1).to(p_o.dtype.element_ty))
        step = (-1 if REVERSE else 1) * H
        p_r += step * K
        p_w += step * K
        p_k += step * K
        p_a += step * K
        p_b += step * K
        p_v += step * V
        p_o += step * V
    tl.store(ht + i_nh * K * V + o_k[None, :] * V + o_v[:, None], b_h)


@case
def kiln_states_that_fade_forget_and_learn(n=4, t=150, h=16, d=64):
    r, k, v = (rand(n, t, h, d, dtype="bfloat16") for _ in range(3))
    w, key = (-uniform(n, t, h, d)).bfloat16(), F.normalize(f32(n, t, h, d), dim=-1)
    a, b = (-key).bfloat16(), (key * uniform(n, t, h, d)).bfloat16()
    h0, ht, o = f32(n, h, d, d), zeros(n, h, d, d, dtype="float32"), zeros(n, t, h, d, dtype="bfloat16")
    args = r, w, k, v, a, b, h0, o, ht, 1.0, t
    options = dict(H=h, K=d, V=d, BV=16, USE_INITIAL_STATE=True, REVERSE=False, num_warps=1, num_stages=2)
    launched = run(states_with_removal_and_decay, (d // 16, n * h), args, (o, ht), **options)

    def reference():
        state, out = h0.clone(), []
        for i in range(t):
            x = [y[:, i].float() for y in (r, w, k, v, a, b)]
            found = torch.einsum("nhk,nhkv->nhv", x[4], state)
            state = state * x[1].exp()[..., None] + x[5][..., None] * found[..., None, :] + x[2][..., None] * x[3][..., None, :]
            out.append(torch.einsum("nhk,nhkv->nhv", x[0], state))
        return torch.stack(out, 1), state

    return against(launched, reference)
