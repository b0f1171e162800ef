"""Numerics, signals and codes whose loops move by little: windows that slide, bits of words, recurrences of rows, sums of three axes."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, case, cdiv, cleared, f32, full, ints, rand, run, uniform, zeros


@triton.jit
def one_level(x, i, SIZE: tl.constexpr):
    k = i % (SIZE // 2)
    a, b = tl.gather(x, (2 * k) % SIZE, 0), tl.gather(x, (2 * k + 1) % SIZE, 0)
    c, d = tl.gather(x, (2 * k + 2) % SIZE, 0), tl.gather(x, (2 * k + 3) % SIZE, 0)
    low = 0.48296291314453 * a + 0.83651630373781 * b + 0.22414386804201 * c - 0.12940952255126 * d
    high = -0.12940952255126 * a - 0.22414386804201 * b + 0.83651630373781 * c - 0.48296291314453 * d
    return tl.where(i < SIZE // 2, low, tl.where(i < SIZE, high, x))


@triton.jit
def wavelet_rows(x_ptr, y_ptr, N: tl.constexpr, LEVELS: tl.constexpr):
    # Four taps, periodic: a row stays in registers through all levels, its halves made by gathers.
    row = tl.program_id(0)
    i = tl.arange(0, N)
    x = tl.load(x_ptr + row * N + i)
    for level in tl.static_range(LEVELS):
        x = one_level(x, i, N >> level)
    tl.store(y_ptr + row * N + i, x)


@case
def wavelets_of_four_taps_by_gathers_of_a_row():
    rows, n, levels = 12000, 1024, 5
    x, y = f32(rows, n), zeros(rows, n, dtype="float32")
    launched = run(wavelet_rows, (rows,), (x, y), y, N=n, LEVELS=levels, num_warps=4)

    def reference():
        made, left = [], x
        for _ in range(levels):
            a, b = left[:, ::2], left[:, 1::2]
            c, d = a.roll(-1, 1), b.roll(-1, 1)
            left = 0.48296291314453 * a + 0.83651630373781 * b + 0.22414386804201 * c - 0.12940952255126 * d
            made.insert(0, -0.12940952255126 * a - 0.22414386804201 * b + 0.83651630373781 * c - 0.48296291314453 * d)
        return torch.cat([left, *made], 1)

    return against(launched, reference)


@triton.jit
def rank_filter(x_ptr, y_ptr, H, W, RANK: tl.constexpr, BW: tl.constexpr):
    # The 25 of a window, filled to 32, are sorted along the second axis; one of them is picked by a masked sum.
    h, n = tl.program_id(1), tl.program_id(2)
    w = tl.program_id(0) * BW + tl.arange(0, BW)
    t = tl.arange(0, 32)
    yy = tl.minimum(tl.maximum(h + t // 5 - 2, 0), H - 1)
    xx = tl.minimum(tl.maximum(w[:, None] + (t % 5 - 2)[None, :], 0), W - 1)
    v = tl.load(x_ptr + (n * H + yy)[None, :] * W + xx, mask=(t < 25)[None, :], other=float("inf"))
    v = tl.sort(v, 1)
    picked = tl.sum(tl.where((t == RANK)[None, :], v, 0.0), axis=1)
    tl.store(y_ptr + (n * H + h) * W + w, picked, mask=w < W)


@case
def eighteenth_of_5x5_windows_by_sorts():
    n, h, w = 3, 250, 333
    x, y = f32(n, h, w), zeros(n, h, w, dtype="float32")
    launched = run(rank_filter, (cdiv(w, 32), h, n), (x, y, h, w), y, RANK=17, BW=32)

    def reference():
        padded = F.pad(x[:, None], (2, 2, 2, 2), mode="replicate")
        return F.unfold(padded, 5).sort(1)[0][:, 17].view(n, h, w)

    return against(launched, reference)


@triton.jit
def log_semiring_product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # log of sums of exponentials in place of sums of products, with a running maximum, over the middle of three axes.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    top, total = tl.full((BM, BN), -1e30, tl.float32), tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None] & (k < K)[None, :], other=-1e30)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k < K)[:, None] & (n < N)[None, :], other=-1e30)
        s = a[:, :, None] + b[None, :, :]
        high = tl.maximum(top, tl.max(s, axis=1))
        total = total * tl.exp(top - high) + tl.sum(tl.exp(s - high[:, None, :]), axis=1)
        top = high
    tl.store(c_ptr + m[:, None] * N + n[None, :], top + tl.log(total), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def products_in_the_log_semiring_16x32x8():
    m, n, k = 300, 450, 200
    a, b, c = f32(m, k) * 3, f32(k, n) * 3, zeros(m, n, dtype="float32")
    launched = run(log_semiring_product, (cdiv(m, 16), cdiv(n, 32)), (a, b, c, m, n, k), c, BM=16, BN=32, BK=8)
    return against(launched, lambda: torch.stack([(row[:, None] + b).logsumexp(0) for row in a.double()]))


@triton.jit
def box_down_columns(x_ptr, y_ptr, H, W, R, RUN, BLOCK: tl.constexpr):
    # The sum of a window of rows moves down by one: the row that enters is added, the one that leaves is subtracted.
    n = tl.program_id(2)
    w = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = w < W
    first = tl.program_id(1) * RUN
    x_ptr += n * H * W + w
    total = tl.zeros((BLOCK,), tl.int32)
    for h in range(first - R, first + R):
        row = tl.minimum(tl.maximum(h, 0), H - 1)
        total += tl.load(x_ptr + row * W, mask=ok, other=0).to(tl.int32)
    for h in range(first, tl.minimum(first + RUN, H)):
        total += tl.load(x_ptr + tl.minimum(h + R, H - 1) * W, mask=ok, other=0).to(tl.int32)
        tl.store(y_ptr + (n * H + h) * W + w, (total // (2 * R + 1)).to(tl.uint8), mask=ok)
        total -= tl.load(x_ptr + tl.maximum(h - R, 0) * W, mask=ok, other=0).to(tl.int32)


@case
def blur_of_bytes_by_sums_that_slide_down():
    n, h, w, r = 24, 500, 1001, 7
    x, y = ints(0, 256, n, h, w, dtype="uint8"), zeros(n, h, w, dtype="uint8")
    launched = run(box_down_columns, (cdiv(w, 256), cdiv(h, 64), n), (x, y, h, w, r, 64), y, BLOCK=256, num_warps=2)

    def reference():
        at = (torch.arange(-r, h + r, device=x.device)).clamp(0, h - 1)
        total = F.pad(x[:, at].int().cumsum(1), (0, 0, 1, 0))
        return (total[:, 2 * r + 1 :] - total[:, : -2 * r - 1]) // (2 * r + 1)

    return against(launched, reference)


@triton.jit
def flow_step(ix_ptr, iy_ptr, it_ptr, u_ptr, v_ptr, un_ptr, vn_ptr, H, W, alpha, BH: tl.constexpr, BW: tl.constexpr):
    # Means of eight neighbors of both fields, edges repeated; then what the gradients say.
    n = tl.program_id(2)
    h, w = (tl.program_id(1) * BH + tl.arange(0, BH))[:, None], (tl.program_id(0) * BW + tl.arange(0, BW))[None, :]
    ok = (h < H) & (w < W)
    mu, mv = tl.zeros((BH, BW), tl.float32), tl.zeros((BH, BW), tl.float32)
    for dy in tl.static_range(-1, 2):
        for dx in tl.static_range(-1, 2):
            if dy != 0 or dx != 0:
                weight = 1.0 / 6.0 if dy == 0 or dx == 0 else 1.0 / 12.0
                yy, xx = tl.minimum(tl.maximum(h + dy, 0), H - 1), tl.minimum(tl.maximum(w + dx, 0), W - 1)
                at = (n * H + yy) * W + xx
                mu += weight * tl.load(u_ptr + at, mask=ok, other=0.0)
                mv += weight * tl.load(v_ptr + at, mask=ok, other=0.0)
    at = (n * H + h) * W + w
    ix, iy = tl.load(ix_ptr + at, mask=ok, other=0.0).to(tl.float32), tl.load(iy_ptr + at, mask=ok, other=0.0).to(tl.float32)
    it = tl.load(it_ptr + at, mask=ok, other=0.0).to(tl.float32)
    t = (ix * mu + iy * mv + it) / (alpha * alpha + ix * ix + iy * iy)
    tl.store(un_ptr + at, mu - ix * t, mask=ok)
    tl.store(vn_ptr + at, mv - iy * t, mask=ok)


@case
def flow_between_images_by_one_step_of_means():
    n, h, w = 8, 540, 961
    ix, iy, it, u, v = rand(n, h, w), rand(n, h, w), rand(n, h, w), f32(n, h, w), f32(n, h, w)
    un, vn = zeros(n, h, w, dtype="float32"), zeros(n, h, w, dtype="float32")
    args = ix, iy, it, u, v, un, vn, h, w, 1.5
    launched = run(flow_step, (cdiv(w, 64), cdiv(h, 16), n), args, (un, vn), BH=16, BW=64, num_warps=8)

    def reference():
        kernel = torch.tensor([[1, 2, 1], [2, 0, 2], [1, 2, 1]], device=u.device) / 12
        mu, mv = (F.conv2d(F.pad(f[:, None], (1, 1, 1, 1), mode="replicate").double(), kernel[None, None].double())[:, 0] for f in (u, v))
        t = (ix * mu + iy * mv + it) / (1.5**2 + ix.double() ** 2 + iy.double() ** 2)
        return mu - ix * t, mv - iy * t

    return against(launched, reference)


@triton.jit
def boxes_of_rays(o_ptr, d_ptr, lo_ptr, hi_ptr, t_ptr, at_ptr, R, B, BR: tl.constexpr, BB: tl.constexpr):
    # Slabs of rays, boxes and coordinates in three axes; the largest of entries, the least of exits.
    r, a = tl.program_id(0) * BR + tl.arange(0, BR), tl.arange(0, 4)
    ok = (r < R)[:, None] & (a < 3)[None, :]
    origin = tl.load(o_ptr + r[:, None] * 3 + a[None, :], mask=ok, other=0.0)
    inv = 1.0 / tl.load(d_ptr + r[:, None] * 3 + a[None, :], mask=ok, other=1.0)
    best, where = tl.full((BR,), 1e30, tl.float32), tl.full((BR,), -1, tl.int32)
    for b0 in range(0, B, BB):
        b = b0 + tl.arange(0, BB)
        inside = (b < B)[:, None] & (a < 3)[None, :]
        lo = tl.load(lo_ptr + b[:, None] * 3 + a[None, :], mask=inside, other=0.0)
        hi = tl.load(hi_ptr + b[:, None] * 3 + a[None, :], mask=inside, other=0.0)
        one = (lo[None, :, :] - origin[:, None, :]) * inv[:, None, :]
        two = (hi[None, :, :] - origin[:, None, :]) * inv[:, None, :]
        real = (a < 3)[None, None, :]
        enter = tl.max(tl.where(real, tl.minimum(one, two), 0.0), axis=2)
        leave = tl.min(tl.where(real, tl.maximum(one, two), 1e30), axis=2)
        t = tl.where((enter <= leave) & (b < B)[None, :], enter, 1e30)
        low, i = tl.min(t, axis=1, return_indices=True)
        where = tl.where(low < best, b0 + i, where)
        best = tl.minimum(low, best)
    tl.store(t_ptr + r, best, mask=r < R)
    tl.store(at_ptr + r, where, mask=r < R)


@case
def boxes_that_rays_enter_first_in_three_axes():
    r, b = 20000, 400
    origin, way = f32(r, 3) * 4, f32(r, 3)
    lo = f32(b, 3) * 3
    hi = lo + uniform(b, 3)
    t, at = zeros(r, dtype="float32"), zeros(r, dtype="int32")
    launched = run(boxes_of_rays, (cdiv(r, 32),), (origin, way, lo, hi, t, at, r, b), (t, at), BR=32, BB=16, num_warps=4)

    def reference():
        inv = (1 / way)[:, None]
        one, two = (lo - origin[:, None]) * inv, (hi - origin[:, None]) * inv
        enter, leave = torch.minimum(one, two).amax(2).clamp(min=0), torch.maximum(one, two).amin(2)
        low, i = torch.where(enter <= leave, enter, 1e30).min(1)
        return low, torch.where(low < 1e30, i, -1)

    return against(launched, reference)


@triton.jit
def newton_fractal(out_ptr, H, W, step, BH: tl.constexpr, BW: tl.constexpr):
    # Roots of z^3 = 1 in double, until all of the tile have arrived: the steps each one took.
    h, w = (tl.program_id(1) * BH + tl.arange(0, BH))[:, None], (tl.program_id(0) * BW + tl.arange(0, BW))[None, :]
    x = (w - W // 2).to(tl.float64) * step + tl.zeros((BH, BW), tl.float64) + 0.0003
    y = (h - H // 2).to(tl.float64) * step + tl.zeros((BH, BW), tl.float64) + 0.0007
    steps, going, t = tl.zeros((BH, BW), tl.int32), tl.full((BH, BW), 1, tl.int32), 0
    while (tl.max(tl.max(going, axis=1), axis=0) > 0) & (t < 60):
        xx, yy = x * x, y * y
        r2 = xx + yy
        inv = 1.0 / (3.0 * r2 * r2)
        x, y = x * (2.0 / 3.0) + (xx - yy) * inv, y * (2.0 / 3.0) - 2.0 * x * y * inv
        fx, fy = x * x * x - 3.0 * x * y * y - 1.0, 3.0 * x * x * y - y * y * y
        going = tl.where(fx * fx + fy * fy > 1e-12, 1, 0)
        steps += going
        t += 1
    tl.store(out_ptr + h * W + w, steps.to(tl.int8), mask=(h < H) & (w < W))


@case
def steps_to_cube_roots_in_double_while_any_is_on_its_way():
    h, w = 701, 900
    out = zeros(h, w, dtype="int8")
    launched = run(newton_fractal, (cdiv(w, 32), cdiv(h, 4)), (out, h, w, 1 / 256), out, BH=4, BW=32, num_warps=2)

    def reference():
        x = ((torch.arange(w, device="cuda") - w // 2).double() / 256 + 0.0003).expand(h, w)
        y = ((torch.arange(h, device="cuda") - h // 2).double() / 256 + 0.0007)[:, None].expand(h, w)
        z, count = torch.complex(x, y), torch.zeros(h, w, device="cuda")
        for _ in range(60):
            z = (2 * z + 1 / (z * z)) / 3
            count += (z**3 - 1).abs() > 1e-6
        return count

    return against(launched, reference)


@triton.jit
def rule_30(x_ptr, y_ptr, T, W: tl.constexpr):
    # Cells are bits of words on a ring; neighbors' words come by gathers; every generation is stored.
    row = tl.program_id(0)
    i = tl.arange(0, W)
    x = tl.load(x_ptr + row * W + i)
    for t in range(T):
        before, after = tl.gather(x, (i + W - 1) % W, 0), tl.gather(x, (i + 1) % W, 0)
        left = (x << 1) | ((before >> 31) & 1)
        right = ((x >> 1) & 0x7FFFFFFF) | (after << 31)
        x = left ^ (x | right)
        tl.store(y_ptr + (row * T + t) * W + i, x)


@case
def cells_of_rule_30_in_words_with_neighbors_by_gathers():
    rows, t, w = 800, 100, 256
    x, y = ints(-(2**31), 2**31, rows, w, dtype="int32"), zeros(rows, t, w, dtype="int32")
    launched = run(rule_30, (rows,), (x, y, t), y, W=w, num_warps=2)

    def reference():
        z, made = x.long() & 0xFFFFFFFF, []
        for _ in range(t):
            left = ((z << 1) & 0xFFFFFFFF) | (z.roll(1, 1) >> 31)
            right = (z >> 1) | ((z.roll(-1, 1) << 31) & 0xFFFFFFFF)
            z = left ^ (z | right)
            made.append(z)
        return torch.stack(made, 1).int()

    return against(launched, reference)


@triton.jit
def combined_generators(seed_ptr, out_ptr, N, STEPS, BLOCK: tl.constexpr):
    # Two recurrences of order three by remainders of long integers; their difference is the draw.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    m1, m2 = tl.full((), 4294967087, tl.int64), tl.full((), 4294944443, tl.int64)
    a0, a1, a2 = tl.load(seed_ptr + i * 6, ok, other=1), tl.load(seed_ptr + i * 6 + 1, ok, other=1), tl.load(seed_ptr + i * 6 + 2, ok, other=1)
    b0, b1, b2 = tl.load(seed_ptr + i * 6 + 3, ok, other=1), tl.load(seed_ptr + i * 6 + 4, ok, other=1), tl.load(seed_ptr + i * 6 + 5, ok, other=1)
    total = tl.zeros((BLOCK,), tl.float64)
    for _ in range(STEPS):
        p = (1403580 * a1 - 810728 * a0) % m1
        p = tl.where(p < 0, p + m1, p)
        a0, a1, a2 = a1, a2, p
        q = (527612 * b2 - 1370589 * b0) % m2
        q = tl.where(q < 0, q + m2, q)
        b0, b1, b2 = b1, b2, q
        u = (tl.where(p > q, p - q, p - q + m1)).to(tl.float64) * 2.328306549295728e-10
        total += u * u
    tl.store(out_ptr + i, total, ok)


@case
def draws_of_two_recurrences_by_remainders_of_long_integers():
    n, steps = 40000, 40
    seed, out = ints(1, 4294944443, n, 6, dtype="int64"), zeros(n, dtype="float64")
    launched = run(combined_generators, (cdiv(n, 128),), (seed, out, n, steps), out, BLOCK=128)

    def reference():
        a0, a1, a2, b0, b1, b2 = seed.unbind(1)
        total = torch.zeros(n, device=seed.device, dtype=torch.float64)
        for _ in range(steps):
            a0, a1, a2 = a1, a2, (1403580 * a1 - 810728 * a0) % 4294967087
            b0, b1, b2 = b1, b2, (527612 * b2 - 1370589 * b0) % 4294944443
            u = torch.where(a2 > b2, a2 - b2, a2 - b2 + 4294967087).double() * 2.328306549295728e-10
            total += u * u
        return total

    return against(launched, reference)


@triton.jit
def radical_inverse(i, BASE: tl.constexpr):
    x = tl.zeros_like(i).to(tl.float32)
    scale = 1.0
    while tl.max(i, axis=0) > 0:
        scale = scale / BASE
        x += (i % BASE).to(tl.float32) * scale
        i = i // BASE
    return x


@triton.jit
def halton_integrals(out_ptr, N, BLOCK: tl.constexpr):
    # Digits in four bases, turned around the point, until none is left; a function of the cube is summed.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = radical_inverse(i + 1, 2), radical_inverse(i + 1, 3)
    z, w = radical_inverse(i + 1, 5), radical_inverse(i + 1, 7)
    f = tl.where(i < N, tl.exp(-(x * x + y * y)) * tl.cos(3.0 * z) + tl.sqrt(w), 0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(f, axis=0))


@case
def digits_of_four_bases_turned_around_the_point():
    n = 3_000_000
    out = zeros(cdiv(n, 1024), dtype="float32")
    launched = run(halton_integrals, (cdiv(n, 1024),), (out, n), out, BLOCK=1024, num_warps=4)

    def reference():
        parts = []
        for base in (2, 3, 5, 7):
            i, x, scale = torch.arange(1, n + 1, device="cuda"), torch.zeros(n, device="cuda"), 1.0
            while i.max() > 0:
                scale /= base
                x += (i % base) * scale
                i = i // base
            parts.append(x)
        x, y, z, w = parts
        f = (-(x * x + y * y)).exp() * (3 * z).cos() + w.sqrt()
        return F.pad(f, (0, -n % 1024)).view(-1, 1024).sum(1)

    return against(launched, reference)


@triton.jit
def resample_particles(w_ptr, x_ptr, u_ptr, y_ptr, ess_ptr, P: tl.constexpr, D: tl.constexpr):
    # One filter a program: prefix sums of whole weights, ancestors by comparing all pairs, states by a gather.
    f = tl.program_id(0)
    i = tl.arange(0, P)
    w = tl.load(w_ptr + f * P + i)
    edge = tl.cumsum(w, axis=0)
    total = tl.sum(w, axis=0)
    part = w.to(tl.float32) / total
    tl.store(ess_ptr + f, 1.0 / tl.sum(part * part, axis=0))
    place = (i * total + tl.load(u_ptr + f) % total) // P
    ancestor = tl.sum((edge[None, :] <= place[:, None]).to(tl.int32), axis=1)
    for d in tl.static_range(D):
        x = tl.load(x_ptr + (f * D + d) * P + i)
        tl.store(y_ptr + (f * D + d) * P + i, tl.gather(x, ancestor, 0))


@case
def particles_resampled_by_comparing_all_pairs():
    filters, p, d = 6000, 128, 4
    w, x, u = ints(1, 1000, filters, p), f32(filters, d, p), ints(0, 2**30, filters)
    y, ess = zeros(filters, d, p, dtype="float32"), zeros(filters, dtype="float32")
    launched = run(resample_particles, (filters,), (w, x, u, y, ess), (y, ess), P=p, D=d)

    def reference():
        total = w.long().sum(1, keepdim=True)
        place = (torch.arange(p, device=w.device) * total + u[:, None] % total) // p
        ancestor = torch.searchsorted(w.long().cumsum(1), place, right=True)
        part = w.double() / total
        return x.gather(2, ancestor[:, None].expand(filters, d, p)), 1 / part.square().sum(1)

    return against(launched, reference)


@triton.jit
def smoothed_states(a_ptr, e_ptr, obs_ptr, g_ptr, T, BB: tl.constexpr, S: tl.constexpr, V: tl.constexpr):
    # Eight sequences of 16 states: transitions are sums of three axes; back over what the forward pass stored.
    b, s = tl.program_id(0) * BB + tl.arange(0, BB), tl.arange(0, S)
    a = tl.load(a_ptr + s[:, None] * S + s[None, :])
    alpha = tl.full((BB, S), 1.0 / S, tl.float32)
    for t in range(T):
        o = tl.load(obs_ptr + b * T + t)
        e = tl.load(e_ptr + o[:, None] * S + s[None, :])
        alpha = tl.sum(alpha[:, :, None] * a[None, :, :], axis=1) * e
        alpha = alpha / tl.sum(alpha, axis=1)[:, None]
        tl.store(g_ptr + (b[:, None] * T + t) * S + s[None, :], alpha)
    beta = tl.full((BB, S), 1.0, tl.float32)
    for back in range(T):
        t = T - 1 - back
        at = g_ptr + (b[:, None] * T + t) * S + s[None, :]
        gamma = tl.load(at) * beta
        tl.store(at, gamma / tl.sum(gamma, axis=1)[:, None])
        o = tl.load(obs_ptr + b * T + t)
        e = tl.load(e_ptr + o[:, None] * S + s[None, :])
        beta = tl.sum(a[None, :, :] * (beta * e)[:, None, :], axis=2)
        beta = beta / tl.sum(beta, axis=1)[:, None]


@case
def posteriors_of_eight_sequences_of_16_states():
    b, t, s, v = 2112, 80, 16, 40
    a, e = f32(s, s).softmax(1), f32(v, s).exp()
    obs, g = ints(0, v, b, t, dtype="int64"), zeros(b, t, s, dtype="float32")
    launched = run(smoothed_states, (b // 8,), (a, e, obs, g, t), g, BB=8, S=s, V=v, num_warps=4)

    def reference():
        alpha, made = torch.full((b, s), 1 / s, device=a.device), []
        for i in range(t):
            alpha = F.normalize((alpha @ a) * e[obs[:, i]], 1, 1)
            made.append(alpha)
        beta = torch.ones(b, s, device=a.device)
        for i in reversed(range(t)):
            made[i] = F.normalize(made[i] * beta, 1, 1)
            beta = F.normalize((beta * e[obs[:, i]]) @ a.t(), 1, 1)
        return torch.stack(made, 1)

    return against(launched, reference)


@triton.jit
def diagonals_times_vectors(offset_ptr, a_ptr, x_ptr, y_ptr, N, ND, BLOCK: tl.constexpr, R: tl.constexpr):
    # A matrix kept by its diagonals, whose places are scalars, times four vectors in double.
    i, r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, R)
    acc = tl.zeros((BLOCK, R), tl.float64)
    for d in range(ND):
        j = i + tl.load(offset_ptr + d)
        ok = (i < N) & (j >= 0) & (j < N)
        a = tl.load(a_ptr + d * N + i, mask=ok, other=0.0)
        acc += a[:, None] * tl.load(x_ptr + j[:, None] * R + r[None, :], mask=ok[:, None], other=0.0)
    tl.store(y_ptr + i[:, None] * R + r[None, :], acc, mask=(i < N)[:, None])


@case
def thirteen_diagonals_times_four_vectors_in_double():
    n, r = 200_001, 4
    places = [-90000, -3001, -3000, -2999, -55, -1, 0, 1, 55, 2999, 3000, 3001, 90000]
    offset = torch.tensor(places, device="cuda", dtype=torch.int32)
    a, x, y = rand(13, n, dtype="float64"), rand(n, r, dtype="float64"), zeros(n, r, dtype="float64")
    launched = run(diagonals_times_vectors, (cdiv(n, 128),), (offset, a, x, y, n, 13), y, BLOCK=128, R=r)

    def reference():
        made = torch.zeros_like(x)
        for d, o in enumerate(places):
            lo, hi = max(0, -o), min(n, n - o)
            made[lo:hi] += a[d, lo:hi, None] * x[lo + o : hi + o]
        return made

    return against(launched, reference)


@triton.jit
def gauss_jordan(a_ptr, out_ptr, B, BB: tl.constexpr, N: tl.constexpr):
    # Inverses of a few 16x16 matrices in a tile of three axes: rows and columns come out by masked sums.
    b = tl.program_id(0) * BB + tl.arange(0, BB)
    i, j = tl.arange(0, N)[None, :, None], tl.arange(0, N)[None, None, :]
    at = b[:, None, None] * N * N + i * N + j
    ok = b[:, None, None] < B
    eye = tl.where(i == j, 1.0, 0.0)
    a = tl.load(a_ptr + at, mask=ok, other=0.0)
    a = tl.where(ok, a, eye)
    for k in range(N):
        pivot = tl.sum(tl.sum(tl.where((i == k) & (j == k), a, 0.0), axis=2, keep_dims=True), axis=1, keep_dims=True)
        row = tl.sum(tl.where(i == k, a, 0.0), axis=1, keep_dims=True) / pivot
        col = tl.sum(tl.where(j == k, a, 0.0), axis=2, keep_dims=True)
        row = tl.where(j == k, 1.0 / pivot, row)
        a = tl.where(j == k, 0.0, a) - tl.where(i == k, 0.0, col) * row
        a = tl.where(i == k, row, a)
    tl.store(out_ptr + at, a, mask=ok)


@case
def inverses_of_16x16_in_a_tile_of_three_axes():
    b, n = 10001, 16
    a, out = f32(b, n, n) / 6 + torch.eye(n, device="cuda") * 2, zeros(b, n, n, dtype="float32")
    launched = run(gauss_jordan, (cdiv(b, 4),), (a, out, b), out, BB=4, N=n, num_warps=4)
    return against(launched, lambda: torch.linalg.inv(a.double()))


@triton.jit
def orthonormal_columns(a_ptr, q_ptr, r_ptr, M: tl.constexpr, N: tl.constexpr):
    # Columns one after another: each is taken out by a masked sum, made unit, and taken from all later ones.
    pid = tl.program_id(0)
    m, n = tl.arange(0, M), tl.arange(0, N)
    a = tl.load(a_ptr + pid * M * N + m[:, None] * N + n[None, :])
    for k in range(N):
        col = tl.sum(tl.where((n == k)[None, :], a, 0.0), axis=1)
        norm = tl.sqrt(tl.sum(col * col, axis=0))
        q = col / norm
        dots = tl.sum(a * q[:, None], axis=0)
        r = tl.where(n > k, dots, tl.where(n == k, norm, 0.0))
        tl.store(r_ptr + (pid * N + k) * N + n, r)
        a = tl.where((n == k)[None, :], q[:, None], a - q[:, None] * tl.where(n > k, dots, 0.0)[None, :])
    tl.store(q_ptr + pid * M * N + m[:, None] * N + n[None, :], a)


@case
def columns_of_64x16_made_orthonormal_one_by_one():
    b, m, n = 5000, 64, 16
    a, q, r = f32(b, m, n), zeros(b, m, n, dtype="float32"), zeros(b, n, n, dtype="float32")
    launched = run(orthonormal_columns, (b,), (a, q, r), (q, r), M=m, N=n, num_warps=2)

    def reference():
        z = a.double()
        upper = torch.linalg.cholesky(z.transpose(1, 2) @ z).transpose(1, 2)
        return torch.linalg.solve_triangular(upper, z, upper=True, left=False), upper

    return against(launched, reference)


@triton.jit
def ring_products(a_ptr, b_ptr, c_ptr, N: tl.constexpr, Q: tl.constexpr):
    # Polynomials modulo x^256 + 1 and a prime: a coefficient times the other one turned by one place more, each step.
    row = tl.program_id(0)
    i = tl.arange(0, N)
    b = tl.load(b_ptr + row * N + i).to(tl.int32)
    acc = tl.zeros((N,), tl.int32)
    for j in range(N):
        a = tl.load(a_ptr + row * N + j).to(tl.int32)
        acc = (acc + a * b) % Q
        b = tl.gather(b, (i + N - 1) % N, 0)
        b = tl.where(i == 0, Q - b, b)
    tl.store(c_ptr + row * N + i, acc.to(tl.int16))


@case
def polynomials_of_a_ring_multiplied_by_turning():
    rows, n, q = 1500, 256, 3329
    a, b, c = ints(0, q, rows, n, dtype="int16"), ints(0, q, rows, n, dtype="int16"), zeros(rows, n, dtype="int16")
    launched = run(ring_products, (rows,), (a, b, c), c, N=n, Q=q, num_warps=2)

    def reference():
        i = torch.arange(n, device=a.device)
        made = torch.zeros(rows, n, device=a.device, dtype=torch.float64)
        for s in range(0, rows, 100):
            at = (i[:, None] - i[None, :]) % n
            turned = b[s : s + 100].double()[:, at] * torch.where(i[:, None] < i[None, :], -1.0, 1.0)
            made[s : s + 100] = (turned @ a[s : s + 100].double()[:, :, None])[:, :, 0] % q
        return made

    return against(launched, reference)


@triton.jit
def carry_of_two(generate_1, propagate_1, generate_2, propagate_2):
    return generate_2 | (propagate_2 & generate_1), propagate_1 & propagate_2


@triton.jit
def long_sums(a_ptr, b_ptr, c_ptr, W: tl.constexpr, BR: tl.constexpr):
    # Numbers of 4096 bits: carries of all words by one scan of pairs, the low one shifted in by a gather.
    row, i = tl.program_id(0) * BR + tl.arange(0, BR)[:, None], tl.arange(0, W)[None, :]
    a, b = tl.load(a_ptr + row * W + i).to(tl.uint32), tl.load(b_ptr + row * W + i).to(tl.uint32)
    s = a + b
    generate = (s < a).to(tl.int32)
    propagate = (s == 0xFFFFFFFF).to(tl.int32)
    carry, _ = tl.associative_scan((generate, propagate), 1, carry_of_two)
    before = tl.gather(carry, tl.broadcast_to(tl.maximum(i - 1, 0), (BR, W)), 1)
    s = s + tl.where(i == 0, 0, before).to(tl.uint32)
    tl.store(c_ptr + row * W + i, s.to(tl.int32, bitcast=True))


@case
def sums_of_4096_bits_by_scans_of_carries():
    rows, w = 60000, 128
    a, b, c = ints(-(2**31), 2**31, rows, w, dtype="int32"), ints(-(2**31), 2**31, rows, w, dtype="int32"), zeros(rows, w, dtype="int32")
    b[:, 20:60] = ~a[:, 20:60]
    launched = run(long_sums, (cdiv(rows, 4),), (a, b, c), c, W=w, BR=4)

    def reference():
        x, y = a.long() & 0xFFFFFFFF, b.long() & 0xFFFFFFFF
        carry, made = torch.zeros(rows, device=a.device, dtype=torch.int64), []
        for i in range(w):
            s = x[:, i] + y[:, i] + carry
            made.append(s & 0xFFFFFFFF)
            carry = s >> 32
        return torch.stack(made, 1).int()

    return against(launched, reference)


@triton.jit
def turned(x, BITS: tl.constexpr):
    return (x << BITS) | (x >> (64 - BITS))


@triton.jit
def sip_round(a, b, c, d):
    a += b
    b = turned(b, 13) ^ a
    a = turned(a, 32)
    c += d
    d = turned(d, 16) ^ c
    a += d
    d = turned(d, 21) ^ a
    c += b
    b = turned(b, 17) ^ c
    c = turned(c, 32)
    return a, b, c, d


@triton.jit
def sip_rows(x_ptr, out_ptr, key0, key1, N, WORDS, BLOCK: tl.constexpr):
    # Keyed sums of rows of long words, a lane each; the round is a function of its own.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    zero = tl.zeros((BLOCK,), tl.uint64)
    k0, k1 = zero + key0.to(tl.uint64), zero + key1.to(tl.uint64)
    a, b, c, d = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573
    for j in range(WORDS):
        m = tl.load(x_ptr + i.to(tl.int64) * WORDS + j, mask=i < N, other=0).to(tl.uint64)
        d ^= m
        a, b, c, d = sip_round(a, b, c, d)
        a, b, c, d = sip_round(a, b, c, d)
        a ^= m
    last = zero + ((WORDS.to(tl.int64) * 8) << 56).to(tl.uint64)
    d ^= last
    a, b, c, d = sip_round(a, b, c, d)
    a, b, c, d = sip_round(a, b, c, d)
    a ^= last
    c ^= 0xFF
    for _ in range(4):
        a, b, c, d = sip_round(a, b, c, d)
    tl.store(out_ptr + i, (a ^ b ^ c ^ d).to(tl.int64, bitcast=True), mask=i < N)


@case
def keyed_sums_of_long_words_a_lane_each():
    n, words = 100_000, 24
    x, out = ints(-(2**62), 2**62, n, words, dtype="int64"), zeros(n, dtype="int64")
    launched = run(sip_rows, (cdiv(n, 128),), (x, out, 0x0706050403020100, 0x0F0E0D0C0B0A0908, n, words), out, BLOCK=128)

    def reference():
        def left(v, bits):
            return (v << bits) | ((v >> (64 - bits)) & ((1 << bits) - 1))

        def turn(a, b, c, d):
            a = a + b
            b = left(b, 13) ^ a
            a = left(a, 32)
            c = c + d
            d = left(d, 16) ^ c
            a = a + d
            d = left(d, 21) ^ a
            c = c + b
            b = left(b, 17) ^ c
            return a, b, left(c, 32), d

        k0, k1 = 0x0706050403020100, 0x0F0E0D0C0B0A0908
        start = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573
        a, b, c, d = (torch.full((n,), v, device=x.device, dtype=torch.int64) for v in start)
        for m in [*x.unbind(1), torch.full((n,), (words * 8 << 56) - (1 << 64 if words * 8 > 127 else 0), device=x.device)]:
            a, b, c, d = turn(*turn(a, b, c, d ^ m))
            a = a ^ m
        c = c ^ 0xFF
        for _ in range(4):
            a, b, c, d = turn(a, b, c, d)
        return a ^ b ^ c ^ d

    return against(launched, reference)


@triton.jit
def adler_rows(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # Sums and weighted sums of a row's bytes modulo a prime, block after block.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    one = tl.full((), 1, tl.int64)
    two = tl.full((), 0, tl.int64)
    for n0 in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * N + n0 + i, mask=n0 + i < N, other=0).to(tl.int32)
        count = tl.minimum(N - n0, BLOCK)
        two = (two + count * one + tl.sum(tl.where(n0 + i < N, x * (count - i), 0)).to(tl.int64)) % 65521
        one = (one + tl.sum(x)) % 65521
    tl.store(out_ptr + row, (two << 16) | one)


@case
def checks_of_rows_of_bytes_by_weighted_sums():
    rows, n = 3000, 20001
    x, out = ints(0, 256, rows, n, dtype="uint8"), zeros(rows, dtype="int64")
    launched = run(adler_rows, (rows,), (x, out, n), out, BLOCK=2048)

    def reference():
        z = x.long()
        one = (1 + z.sum(1)) % 65521
        weight = torch.arange(n, 0, -1, device=x.device)
        two = (n + (z.double() @ weight.double()).long()) % 65521
        return (two << 16) | one

    return against(launched, reference)


@triton.jit
def valid_utf8(x_ptr, ok_ptr, count_ptr, N, BLOCK: tl.constexpr):
    # Each byte looks back at three before it: loads that differ by one byte; letters are counted on the way.
    row = tl.program_id(0)
    bad = tl.zeros((BLOCK,), tl.int32)
    letters = tl.zeros((BLOCK,), tl.int32)
    for n0 in range(0, N + 3, BLOCK):
        i = n0 + tl.arange(0, BLOCK)
        p = x_ptr + row * N + i
        b0 = tl.load(p, mask=i < N, other=0).to(tl.int32)
        b1 = tl.load(p - 1, mask=(i >= 1) & (i <= N), other=0).to(tl.int32)
        b2 = tl.load(p - 2, mask=(i >= 2) & (i <= N + 1), other=0).to(tl.int32)
        b3 = tl.load(p - 3, mask=(i >= 3) & (i <= N + 2), other=0).to(tl.int32)
        follows = (b0 & 0xC0) == 0x80
        wanted = (b1 >= 0xC0) | (b2 >= 0xE0) | (b3 >= 0xF0)
        wrong = (follows != wanted) | ((b0 & 0xFE) == 0xC0) | (b0 >= 0xF5)
        wrong |= (b1 == 0xE0) & (b0 < 0xA0)
        wrong |= (b1 == 0xED) & (b0 >= 0xA0)
        wrong |= (b1 == 0xF0) & (b0 < 0x90)
        wrong |= (b1 == 0xF4) & (b0 >= 0x90)
        bad |= wrong.to(tl.int32)
        letters += ((i < N) & ~follows).to(tl.int32)
    tl.store(ok_ptr + row, (tl.max(bad, axis=0) == 0).to(tl.int8))
    tl.store(count_ptr + row, tl.sum(letters, axis=0))


@case
def rows_of_letters_of_one_to_four_bytes_checked():
    rows, n = 2000, 16000
    pieces = ["a", "é", "中", "😀", "z", "ß", "語", "🜁"]
    bits = [piece.encode() for piece in pieces]
    size = torch.tensor([len(b) for b in bits], device="cuda")
    table = torch.tensor([list(b.ljust(4, b"\0")) for b in bits], device="cuda", dtype=torch.uint8)
    pick = ints(0, 8, rows, n // 4, dtype="int64")
    at = size[pick].cumsum(1) - size[pick]
    x = full(32, rows, n, dtype="uint8")
    for k in range(4):
        real = size[pick] > k
        place = torch.where(real, at + k, n - 1)
        x.scatter_(1, place, torch.where(real, table[pick][:, :, k], 32))
    x[:, -1] = 32
    x[::3, 777] ^= 0x80
    good, count = zeros(rows, dtype="int8"), zeros(rows, dtype="int32")
    launched = run(valid_utf8, (rows,), (x, good, count, n), (good, count), BLOCK=1024)

    def reference():
        host = x.cpu().numpy()

        def check(row):
            try:
                row.tobytes().decode()
                return 1
            except UnicodeDecodeError:
                return 0

        made = torch.tensor([check(row) for row in host], device=x.device)
        return made, ((x & 0xC0) != 0x80).sum(1)

    return against(launched, reference)


@triton.jit
def exchange(x, i, BLOCK: tl.constexpr, HALF: tl.constexpr, MASK: tl.constexpr):
    other = tl.gather(x, tl.broadcast_to(i ^ HALF, (BLOCK, 32)), 1)
    low = (x & MASK) | ((other & MASK) << HALF)
    high = (x & (0xFFFFFFFF ^ MASK)) | ((other & (0xFFFFFFFF ^ MASK)) >> HALF)
    return tl.where((i & HALF) == 0, low, high)


@triton.jit
def transpose_bits(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    # Matrices of 32x32 bits, a word a row: five exchanges of halves with the partner row, which a gather finds.
    b = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    i = tl.arange(0, 32)[None, :]
    x = tl.load(x_ptr + b * 32 + i, mask=b < N, other=0).to(tl.uint32, bitcast=True)
    x = exchange(x, i, BLOCK, 16, 0x0000FFFF)
    x = exchange(x, i, BLOCK, 8, 0x00FF00FF)
    x = exchange(x, i, BLOCK, 4, 0x0F0F0F0F)
    x = exchange(x, i, BLOCK, 2, 0x33333333)
    x = exchange(x, i, BLOCK, 1, 0x55555555)
    tl.store(y_ptr + b * 32 + i, x.to(tl.int32, bitcast=True), mask=b < N)


@case
def matrices_of_32x32_bits_transposed_by_exchanges():
    n = 200_000
    x, y = ints(-(2**31), 2**31, n, 32, dtype="int32"), zeros(n, 32, dtype="int32")
    launched = run(transpose_bits, (cdiv(n, 16),), (x, y, n), y, BLOCK=16)

    def reference():
        made = torch.zeros(n, 32, device=x.device, dtype=torch.int64)
        for i in range(32):
            made |= ((x[:, i, None].long() >> torch.arange(32, device=x.device)) & 1) << i
        return made.int()

    return against(launched, reference)


@triton.jit
def signs_of_projections(x_ptr, w_ptr, out_ptr, N, K: tl.constexpr, BN: tl.constexpr, BITS: tl.constexpr, BK: tl.constexpr):
    # Signs of 64 products become two words: a reshape, a shift, and a sum over the bits of a word.
    n, b = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BITS)
    acc = tl.zeros((BN, BITS), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + n[:, None] * K + k[None, :], mask=(n < N)[:, None] & (k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + b[:, None] * K + k[None, :], mask=(k < K)[None, :], other=0.0)
        acc = tl.dot(x, w.T, acc)
    bits = tl.reshape((acc > 0).to(tl.int32), (BN, BITS // 32, 32)) << tl.arange(0, 32)[None, None, :]
    words = tl.sum(bits, axis=2)
    j = tl.arange(0, BITS // 32)
    tl.store(out_ptr + n[:, None] * (BITS // 32) + j[None, :], words, mask=(n < N)[:, None])


@case
def signs_of_64_projections_packed_to_words():
    n, k = 100_000, 200
    x, w, out = rand(n, k), rand(64, k), zeros(n, 2, dtype="int32")
    launched = run(signs_of_projections, (cdiv(n, 64),), (x, w, out, n), out, K=k, BN=64, BITS=64, BK=32)

    def see(words):
        shifts = torch.arange(32, device=words.device)
        return ((words[:, :, None] >> shifts) & 1).view(n, 64).float().mean(0)

    launch, args = launched
    return against((lambda *a: see(launch(*a)), args), lambda: (x.float() @ w.float().t() > 0).float().mean(0))


@triton.jit
def diffuse(x_ptr, y_ptr, H, W, kappa, rate, BH: tl.constexpr, BW: tl.constexpr):
    # Differences to four neighbors, each times how little it is an edge; borders by clamped loads; half precision.
    n = tl.program_id(2)
    h, w = (tl.program_id(1) * BH + tl.arange(0, BH))[:, None], (tl.program_id(0) * BW + tl.arange(0, BW))[None, :]
    ok = (h < H) & (w < W)
    base = x_ptr + n * H * W
    x = tl.load(base + h * W + w, mask=ok, other=0.0).to(tl.float32)
    up = tl.load(base + tl.maximum(h - 1, 0) * W + w, mask=ok, other=0.0).to(tl.float32) - x
    down = tl.load(base + tl.minimum(h + 1, H - 1) * W + w, mask=ok, other=0.0).to(tl.float32) - x
    left = tl.load(base + h * W + tl.maximum(w - 1, 0), mask=ok, other=0.0).to(tl.float32) - x
    right = tl.load(base + h * W + tl.minimum(w + 1, W - 1), mask=ok, other=0.0).to(tl.float32) - x
    total = up * tl.exp(-(up / kappa) * (up / kappa)) + down * tl.exp(-(down / kappa) * (down / kappa))
    total += left * tl.exp(-(left / kappa) * (left / kappa)) + right * tl.exp(-(right / kappa) * (right / kappa))
    tl.store(y_ptr + (n * H + h) * W + w, (x + rate * total).to(y_ptr.dtype.element_ty), mask=ok)


@case
def diffusion_that_stops_at_edges_in_bf16():
    n, h, w = 12, 720, 1279
    x, y = rand(n, h, w, dtype="bfloat16"), zeros(n, h, w, dtype="bfloat16")
    launched = run(diffuse, (cdiv(w, 128), cdiv(h, 4), n), (x, y, h, w, 0.7, 0.2), y, BH=4, BW=128, num_warps=4)

    def reference():
        z = x.float()
        p = F.pad(z[:, None], (1, 1, 1, 1), mode="replicate")[:, 0]
        parts = p[:, :-2, 1:-1] - z, p[:, 2:, 1:-1] - z, p[:, 1:-1, :-2] - z, p[:, 1:-1, 2:] - z
        return z + 0.2 * sum(d * (-((d / 0.7) ** 2)).exp() for d in parts)

    return against(launched, reference)


@triton.jit
def corners(x_ptr, y_ptr, H, W, k, BLOCK: tl.constexpr):
    # Gradients of nine places each of nine loads, all written out; products summed; the response of a corner.
    h, n = tl.program_id(1), tl.program_id(2)
    w = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = x_ptr + n * H * W
    xx, yy, xy = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for dy in tl.static_range(-1, 2):
        for dx in tl.static_range(-1, 2):
            gx, gy = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
            for i in tl.static_range(-1, 2):
                for j in tl.static_range(-1, 2):
                    row, col = h + dy + i, w + dx + j
                    ok = (row >= 0) & (row < H) & (col >= 0) & (col < W)
                    v = tl.load(base + row * W + col, mask=ok, other=0).to(tl.float32)
                    gx += v * (j * (2 if i == 0 else 1))
                    gy += v * (i * (2 if j == 0 else 1))
            inside = (h + dy >= 0) & (h + dy < H) & (w + dx >= 0) & (w + dx < W)
            xx += tl.where(inside, gx * gx, 0.0)
            yy += tl.where(inside, gy * gy, 0.0)
            xy += tl.where(inside, gx * gy, 0.0)
    trace = xx + yy
    tl.store(y_ptr + (n * H + h) * W + w, xx * yy - xy * xy - k * trace * trace, mask=w < W)


@case
def corners_of_bytes_with_all_81_loads_written_out():
    n, h, w = 6, 480, 641
    x, y = ints(0, 256, n, h, w, dtype="uint8"), zeros(n, h, w, dtype="float32")
    launched = run(corners, (cdiv(w, 128), h, n), (x, y, h, w, 0.05), y, BLOCK=128)

    def reference():
        kx = torch.tensor([[-1.0, 0, 1], [-2, 0, 2], [-1, 0, 1]], device=x.device, dtype=torch.float64)[None, None]
        z = x.double()[:, None]
        gx, gy = F.conv2d(z, kx, padding=1), F.conv2d(z, kx.transpose(2, 3), padding=1)
        box = torch.ones(1, 1, 3, 3, device=x.device, dtype=torch.float64)
        xx, yy, xy = (F.conv2d(p, box, padding=1) for p in (gx * gx, gy * gy, gx * gy))
        return (xx * yy - xy * xy - 0.05 * (xx + yy) ** 2)[:, 0]

    return against(launched, reference)


@triton.jit
def dilate(x_ptr, se_ptr, y_ptr, H, W, K: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    # The largest byte under a shape of 11x11, whose places are scalars and branches.
    n = tl.program_id(2)
    h, w = (tl.program_id(1) * BH + tl.arange(0, BH))[:, None], (tl.program_id(0) * BW + tl.arange(0, BW))[None, :]
    best = tl.zeros((BH, BW), tl.uint8)
    for i in range(K):
        for j in range(K):
            if tl.load(se_ptr + i * K + j) != 0:
                y, x = h + i - K // 2, w + j - K // 2
                v = tl.load(x_ptr + (n * H + y) * W + x, mask=(y >= 0) & (y < H) & (x >= 0) & (x < W), other=0)
                best = tl.maximum(best, v)
    tl.store(y_ptr + (n * H + h) * W + w, best, mask=(h < H) & (w < W))


@case
def bytes_dilated_under_a_disk_of_branches():
    n, h, w, k = 6, 600, 800, 11
    x, y = ints(0, 256, n, h, w, dtype="uint8"), zeros(n, h, w, dtype="uint8")
    at = torch.arange(k, device="cuda") - k // 2
    disk = (at[:, None] ** 2 + at**2 <= 27).to(torch.int32)
    launched = run(dilate, (cdiv(w, 64), cdiv(h, 16), n), (x, disk, y, h, w), y, K=k, BH=16, BW=64)

    def reference():
        p = F.pad(x, (5, 5, 5, 5)).short()
        made = torch.zeros(n, h, w, device=x.device, dtype=torch.int16)
        for i, j in disk.nonzero().tolist():
            made = torch.maximum(made, p[:, i : i + h, j : j + w])
        return made

    return against(launched, reference)


@triton.jit
def elliptic_by_means(k_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # Complete integrals of both kinds in double: arithmetic and geometric means until they meet in the whole block.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.load(k_ptr + i, mask=i < N, other=0.5)
    a, b, c = tl.full((BLOCK,), 1.0, tl.float64), libdevice.sqrt(1.0 - k * k), k
    total, power = 0.5 * k * k, 1.0
    while tl.max(tl.abs(c), axis=0) > 1e-13:
        a, b, c = 0.5 * (a + b), libdevice.sqrt(a * b), 0.5 * (a - b)
        total += power * c * c
        power = power * 2.0
    first = 1.5707963267948966 / a
    tl.store(out_ptr + i, first, mask=i < N)
    tl.store(out_ptr + N + i, first * (1.0 - total), mask=i < N)


@case
def elliptic_integrals_by_means_that_meet():
    n = 300_000
    k, out = uniform(n).double() * 0.999, zeros(2, n, dtype="float64")
    launched = run(elliptic_by_means, (cdiv(n, 256),), (k, out, n), out, BLOCK=256)

    def reference():
        t = (torch.arange(64, device=k.device, dtype=torch.float64) + 0.5) * (math.pi / 128)
        made = torch.zeros(2, n, device=k.device, dtype=torch.float64)
        for angle in t:
            root = (1 - (k * angle.sin()) ** 2).sqrt()
            made += torch.stack((1 / root, root)) * (math.pi / 128)
        return made

    return against(launched, reference)


@triton.jit
def distances_counted(p_ptr, out_ptr, N, width, side, BINS: tl.constexpr, BLOCK: tl.constexpr):
    # Distances of a tile of pairs in a periodic box, made flat, to a histogram; the sum of them by atomics.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    xi, yi, zi = tl.load(p_ptr + i * 3, i < N, other=0.0), tl.load(p_ptr + i * 3 + 1, i < N, other=0.0), tl.load(p_ptr + i * 3 + 2, i < N, other=0.0)
    counts = tl.zeros((BINS,), tl.int32)
    for j0 in range(0, N, BLOCK):
        j = j0 + tl.arange(0, BLOCK)
        xj, yj, zj = tl.load(p_ptr + j * 3, j < N, other=0.0), tl.load(p_ptr + j * 3 + 1, j < N, other=0.0), tl.load(p_ptr + j * 3 + 2, j < N, other=0.0)
        dx, dy, dz = xi[:, None] - xj[None, :], yi[:, None] - yj[None, :], zi[:, None] - zj[None, :]
        dx, dy, dz = dx - side * libdevice.rint(dx / side), dy - side * libdevice.rint(dy / side), dz - side * libdevice.rint(dz / side)
        bin = (tl.sqrt(dx * dx + dy * dy + dz * dz) / width).to(tl.int32)
        ok = (i < N)[:, None] & (j < N)[None, :] & (i[:, None] != j[None, :])
        bin = tl.where(ok, tl.minimum(bin, BINS - 1), BINS - 1)
        counts += tl.histogram(tl.reshape(bin, (BLOCK * BLOCK,)), BINS)
    b = tl.arange(0, BINS)
    tl.atomic_add(out_ptr + b, counts, mask=b < BINS - 1)


@case
def distances_of_particles_in_a_box_to_a_histogram():
    n, bins = 3000, 128
    p, out = uniform(n, 3), zeros(bins, dtype="int32")
    launched = run(distances_counted, (cdiv(n, 32),), (p, out, n, 0.004, 1.0), out, BINS=bins, BLOCK=32)

    def reference():
        d = p[:, None] - p
        d = (d - d.round()).square().sum(2).sqrt()
        at = (d / 0.004).int().clamp(max=bins - 1).fill_diagonal_(bins - 1)
        made = at.view(-1).bincount(minlength=bins)
        made[-1] = 0
        return made

    return against(cleared(launched, out), reference)
