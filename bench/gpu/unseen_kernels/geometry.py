"""Tiles of two to five axes: reshapes, permutes, joins, splits, flips, gathers; scans and reductions of tuples; sorts and histograms."""

import torch
import triton
import triton.language as tl

from .common import case, cdiv, f32, ints, rand, run, uniform, zeros


@triton.jit
def windows_rolled(X, SCALE, OUT, H, W, shift, C: tl.constexpr, P: tl.constexpr, BW: tl.constexpr):
    # A band of P rows, rolled, becomes windows of P x P pixels whose channels come first and are scaled to unit length a pixel.
    b, band, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    y, x, c = tl.arange(0, P), part * BW * P + tl.arange(0, BW * P), tl.arange(0, C)
    sy, sx = (band * P + y + shift) % H, (x + shift) % W
    tile = tl.load(X + ((b * H + sy)[:, None, None] * W + sx[None, :, None]) * C + c[None, None, :]).to(tl.float32)
    norm = tl.rsqrt(tl.sum(tile * tile, 2) + 1e-6)
    tile = tile * norm[:, :, None] * tl.load(SCALE + c)[None, None, :]
    tile = tl.permute(tl.reshape(tile, (P, BW, P, C)), (1, 3, 0, 2))
    tile = tl.reshape(tile, (BW, C, P * P))
    w, p = (b * tl.num_programs(1) + band) * (W // P) + part * BW + tl.arange(0, BW), tl.arange(0, P * P)
    tl.store(OUT + (w[:, None, None] * C + c[None, :, None]) * (P * P) + p[None, None, :], tile.to(OUT.dtype.element_ty))


@case
def windows_of_rolled_bands_channels_first():
    b, h, w, c, p = 32, 64, 64, 64, 4
    x, scale, out = rand(b, h, w, c), f32(c), zeros(b * (h // p) * (w // p), c, p * p)
    launch, args = run(windows_rolled, (b, h // p, w // p // 4), (x, scale, out, h, w, 2), out, C=c, P=p, BW=4, num_warps=4)

    def reference(*_):
        y = torch.roll(x.float(), (-2, -2), (1, 2))
        y = y * torch.rsqrt(y.square().sum(-1, keepdim=True) + 1e-6) * scale
        return y.view(b, h // p, p, w // p, p, c).permute(0, 1, 3, 5, 2, 4).reshape(out.shape)

    launch.reference = reference
    return launch, args


@triton.jit
def patches_of_video(X, MEAN, OUT, T, H, W, BX: tl.constexpr, C: tl.constexpr):
    # Cubes of 2 x 8 x 8 pixels of C planes to rows of (channel, time, y, x), with a plane's mean taken off.
    t, y, part = tl.program_id(2), tl.program_id(1), tl.program_id(0)
    c, dt, dy, x = tl.arange(0, C), tl.arange(0, 2), tl.arange(0, 8), part * BX * 8 + tl.arange(0, BX * 8)
    at = ((c[:, None, None, None] * T + (t * 2 + dt)[None, :, None, None]) * H + (y * 8 + dy)[None, None, :, None]) * W + x[None, None, None, :]
    v = tl.load(X + at).to(tl.float32) - tl.load(MEAN + c).to(tl.float32)[:, None, None, None]
    v = tl.permute(tl.reshape(v, (C, 2, 8, BX, 8)), (3, 0, 1, 2, 4))
    v = tl.reshape(v, (BX, C * 128))
    row = (t * tl.num_programs(1) + y) * (W // 8) + part * BX + tl.arange(0, BX)
    tl.store(OUT + row[:, None] * (C * 128) + tl.arange(0, C * 128)[None, :], (v / 32).to(OUT.dtype.element_ty))


@case
def cubes_of_video_to_rows():
    c, t, h, w = 4, 16, 480, 832
    x, mean, out = ints(0, 256, c, t, h, w, dtype="uint8"), uniform(c) * 255, zeros(t // 2 * (h // 8) * (w // 8), c * 128, dtype="bfloat16")
    launch, args = run(patches_of_video, (w // 8 // 8, h // 8, t // 2), (x, mean, out, t, h, w), out, BX=8, C=c, num_warps=8)

    def reference(*_):
        v = (x.float() - mean.view(c, 1, 1, 1)) / 32
        return v.view(c, t // 2, 2, h // 8, 8, w // 8, 8).permute(1, 3, 5, 0, 2, 4, 6).reshape(out.shape)

    launch.reference = reference
    return launch, args


@triton.jit
def rotate_after(aw, ax, ay, az, bw, bx, by, bz):
    return (bw * aw - bx * ax - by * ay - bz * az, bw * ax + bx * aw + by * az - bz * ay,
            bw * ay - bx * az + by * aw + bz * ax, bw * az + bx * ay - by * ax + bz * aw)


@triton.jit
def orientations(GYRO, QUAT, dt, STEPS: tl.constexpr, ROWS: tl.constexpr):
    # Turns of gyroscopes as quaternions, and their running products: a scan of four operands along the axis of time.
    r, s = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, STEPS)
    at = r[:, None] * (3 * STEPS) + s[None, :]
    x, y, z = tl.load(GYRO + at), tl.load(GYRO + at + STEPS), tl.load(GYRO + at + 2 * STEPS)
    angle = tl.sqrt(x * x + y * y + z * z) + 1e-9
    k = tl.sin(0.5 * dt * angle) / angle
    w, x, y, z = tl.associative_scan((tl.cos(0.5 * dt * angle), k * x, k * y, k * z), 1, rotate_after)
    to = QUAT + (r[:, None] * STEPS + s[None, :]) * 4
    tl.store(to, w)
    tl.store(to + 1, x)
    tl.store(to + 2, y)
    tl.store(to + 3, z)


@case
def orientations_by_scan_of_quaternions():
    rows, steps = 4096, 512
    gyro, quat = f32(rows, 3, steps), zeros(rows, steps, 4, dtype="float32")
    return run(orientations, (rows // 2,), (gyro, quat, 0.01), quat, STEPS=steps, ROWS=2, num_warps=4)


@triton.jit
def later_of(av, ai, af, bv, bi, bf):
    take_b = (bf != 0) | (bv > av)
    return tl.where(take_b, bv, av), tl.where(take_b, bi, ai), af | bf


@triton.jit
def best_so_far(X, START, BEST, WHERE, N: tl.constexpr, ROWS: tl.constexpr):
    # The largest since the segment's start and where it was, along the first axis of a tile.
    i, r = tl.arange(0, N), tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = r[None, :] * N + i[:, None]
    x = tl.load(X + at).to(tl.float32)
    flag = tl.load(START + at).to(tl.int32)
    v, w, _ = tl.associative_scan((x, tl.broadcast_to(i[:, None], (N, ROWS)), flag), 0, later_of)
    tl.store(BEST + at, v)
    tl.store(WHERE + at, w.to(tl.int16))


@case
def best_since_segment_start():
    rows, n = 8192, 1024
    best, where = zeros(rows, n, dtype="float32"), zeros(rows, n, dtype="int16")
    return run(best_so_far, (rows // 4,), (rand(rows, n), uniform(rows, n) < 0.02, best, where), (best, where), N=n, ROWS=4, num_warps=8)


@triton.jit
def latest(av, ai, bv, bi):
    return tl.where(bi >= 0, bv, av), tl.where(bi >= 0, bi, ai)


@triton.jit
def fill_gaps(X, OUT, WIDTH, N, BLOCK: tl.constexpr):
    # Missing values are interpolated between the last one before and the first one after: two scans, one of them backwards.
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(X + row * N + i, mask=i < N, other=float("nan"))
    known = x == x
    v, p = tl.where(known, x, 0.0), tl.where(known, i, -1)
    left, li = tl.associative_scan((v, p), 0, latest)
    right, ri = tl.associative_scan((v, p), 0, latest, reverse=True)
    share = (i - li).to(tl.float32) / tl.maximum(ri - li, 1).to(tl.float32)
    y = tl.where(li < 0, right, tl.where(ri < 0, left, left + (right - left) * share))
    tl.store(OUT + row * N + i, y, mask=i < N)
    tl.store(WIDTH + row, tl.max(tl.where((li >= 0) & (ri >= 0), ri - li, 0), 0))


@case
def gaps_interpolated_by_two_scans():
    rows, n = 8000, 1500
    x = f32(rows, n)
    x[uniform(rows, n) < 0.6] = float("nan")
    out, width = zeros(rows, n, dtype="float32"), zeros(rows, dtype="int32")
    return run(fill_gaps, (rows,), (x, out, width, n), (out, width), BLOCK=2048, num_warps=4)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def smaller(a, b):
    return tl.minimum(a, b)


@triton.jit
def average_ranks(X, RANK, TIES, N: tl.constexpr):
    # Ranks of a row with ties averaged: a sort of values with their places, runs by two scans, ranks back to the places.
    row, i = tl.program_id(0), tl.arange(0, N)
    x = tl.load(X + row * N + i).to(tl.int32)
    s = tl.sort(x.to(tl.int64) * 1024 + i)
    value, place = (s >> 10).to(tl.int32), (s & 1023).to(tl.int32)
    before = tl.gather(value, tl.maximum(i - 1, 0), 0)
    after = tl.gather(value, tl.minimum(i + 1, N - 1), 0)
    first = (i == 0) | (before != value)
    last = (i == N - 1) | (after != value)
    begin = tl.associative_scan(tl.where(first, i, 0), 0, larger)
    end = tl.associative_scan(tl.where(last, i, N - 1), 0, smaller, reverse=True)
    tl.store(RANK + row * N + place, (begin + end).to(tl.float32) * 0.5 + 1.0)
    length = (end - begin + 1).to(tl.float32)
    tl.store(TIES + row, tl.sum(length * length - 1.0))


@case
def ranks_of_rows_with_ties():
    rows, n = 4096, 1024
    x, rank, ties = ints(-300, 300, rows, n, dtype="int16"), zeros(rows, n, dtype="float32"), zeros(rows, dtype="float32")
    launch, args = run(average_ranks, (rows,), (x, rank, ties), (rank, ties), N=n, num_warps=4)

    def reference(*_):
        count = torch.zeros(rows, 600, device="cuda").scatter_add_(1, x.long() + 300, torch.ones(rows, n, device="cuda"))
        mean = count.cumsum(1) - (count - 1) / 2
        return mean.gather(1, x.long() + 300), (count**3 - count).sum(1)

    launch.reference = reference
    return launch, args


@triton.jit
def otsu_thresholds(X, LEVEL, MASK, W, T: tl.constexpr):
    # A tile's histogram of bytes, sums along it, the level that parts it best, and the pixels above.
    y, x = tl.program_id(1) * T + tl.arange(0, T), tl.program_id(0) * T + tl.arange(0, T)
    at = y[:, None] * W + x[None, :]
    v = tl.load(X + at).to(tl.int32)
    h = tl.histogram(tl.reshape(v, (T * T,)), 256).to(tl.float32)
    level = tl.arange(0, 256)
    n = tl.cumsum(h, 0)
    s = tl.cumsum(h * level.to(tl.float32), 0)
    total = tl.sum(h * level.to(tl.float32), 0)
    rest = T * T - n
    gap = s / tl.maximum(n, 1.0) - (total - s) / tl.maximum(rest, 1.0)
    best = tl.argmax(n * rest * gap * gap, 0)
    tl.store(MASK + at, v > best)
    tl.store(LEVEL + tl.program_id(1) * tl.num_programs(0) + tl.program_id(0), best.to(tl.uint8))


@case
def thresholds_of_tiles_by_histograms():
    h, w, t = 2048, 4096, 64
    x = (uniform(h, w) * 90 + (uniform(h, w) < 0.4) * 120).to(torch.uint8)
    level, mask = zeros(h // t, w // t, dtype="uint8"), zeros(h, w, dtype="bool")
    launch, args = run(otsu_thresholds, (w // t, h // t), (x, level, mask, w), (level, mask), T=t, num_warps=8)
    # Levels between two heaps of pixels are equally good.
    return (lambda *a: launch(*a)[1]), args


@triton.jit
def sliced_distance(X, Y, DIRECTIONS, OUT, N: tl.constexpr, D: tl.constexpr, S: tl.constexpr):
    # Two clouds of points on lines of S directions, both sorted along the points: mean squares of what is between them.
    b, n, d, s = tl.program_id(0), tl.arange(0, N), tl.arange(0, D), tl.program_id(1) * S + tl.arange(0, S)
    w = tl.load(DIRECTIONS + s[:, None] * D + d[None, :])
    x = tl.load(X + (b * N + n)[None, :] * D + d[:, None])
    y = tl.load(Y + (b * N + n)[None, :] * D + d[:, None])
    p = tl.sort(tl.dot(w, x), 1)
    q = tl.sort(tl.dot(w, y), 1, descending=True)
    gap = p - tl.flip(q, 1)
    tl.store(OUT + b * (S * tl.num_programs(1)) + s, tl.sum(gap * gap, 1) / N)


@case
def clouds_by_sorted_projections():
    b, n, d, s = 256, 256, 32, 64
    x, y, w, out = rand(b, n, d), rand(b, n, d), rand(s, d), zeros(b, s, dtype="float32")
    launch, args = run(sliced_distance, (b, s // 16), (x, y, w, out), out, N=n, D=d, S=16, num_warps=4)

    def reference(*_):
        p, q = (torch.einsum("bnd,sd->bsn", z.float(), w.float()).sort(-1)[0] for z in (x, y))
        return (p - q).square().mean(-1)

    launch.reference = reference
    return launch, args


@triton.jit
def joined_moments(an, ax, ay, axx, ayy, axy, bn, bx, by, bxx, byy, bxy):
    n = an + bn
    share = bn / tl.maximum(n, 1.0)
    dx, dy = bx - ax, by - ay
    k = an * share
    return n, ax + dx * share, ay + dy * share, axx + bxx + dx * dx * k, ayy + byy + dy * dy * k, axy + bxy + dx * dy * k


@triton.jit
def pair_moments(X, Y, VALID, CORR, SLOPE, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr):
    # Correlation and slope of each channel over both axes of an image: a reduction of six operands, axis after axis.
    b, y, x, c = tl.program_id(0), tl.arange(0, H), tl.arange(0, W), tl.program_id(1) * C + tl.arange(0, C)
    pixel = (b * H + y)[:, None] * W + x[None, :]
    channels = C * tl.num_programs(1)
    at = pixel[:, :, None] * channels + c[None, None, :]
    ok = tl.load(VALID + pixel)[:, :, None] != 0
    n = tl.where(ok, 1.0, tl.zeros((H, W, C), tl.float32))
    p = tl.where(ok, tl.load(X + at).to(tl.float32), 0.0)
    q = tl.where(ok, tl.load(Y + at).to(tl.float32), 0.0)
    zero = tl.zeros((H, W, C), tl.float32)
    n, p, q, pp, qq, pq = tl.reduce((n, p, q, zero, zero, zero), 1, joined_moments)
    n, p, q, pp, qq, pq = tl.reduce((n, p, q, pp, qq, pq), 0, joined_moments)
    tl.store(CORR + b * channels + c, pq * tl.rsqrt(pp * qq + 1e-12))
    tl.store(SLOPE + b * channels + c, pq / (pp + 1e-6))


@case
def correlations_by_reduction_of_six():
    b, h, w, c = 64, 32, 32, 64
    x = rand(b, h, w, c)
    y, valid = (x * 0.5 + rand(b, h, w, c) + 3).to(torch.float16), uniform(b, h, w) < 0.8
    corr, slope = zeros(b, c, dtype="float32"), zeros(b, c, dtype="float32")
    launch, args = run(pair_moments, (b, c // 8), (x, y, valid, corr, slope), (corr, slope), H=h, W=w, C=8, num_warps=8)

    def reference(*_):
        m = valid.double()[..., None]
        n = m.sum((1, 2), keepdim=True)
        p, q = (((z.double() - (z.double() * m).sum((1, 2), keepdim=True) / n) * m) for z in (x, y))
        pp, qq, pq = ((u * v).sum((1, 2)) for u, v in ((p, p), (q, q), (p, q)))
        return pq / (pp * qq).sqrt(), pq / pp

    launch.reference = reference
    return launch, args


@triton.jit
def contract_two_axes(A, B, OUT, E, NA: tl.constexpr, NB: tl.constexpr, NC: tl.constexpr, ND: tl.constexpr, F: tl.constexpr, BE: tl.constexpr):
    # out[a, b, c, d] = sum of A[a, e, b, f] B[e, c, f, d]: tiles of four axes are permuted and flattened for a dot.
    t = tl.program_id(0)
    a, b, c, d = tl.arange(0, NA), tl.arange(0, NB), tl.arange(0, NC), tl.arange(0, ND)
    e, f = tl.arange(0, BE), tl.arange(0, F)
    acc = tl.zeros((NA * NB, NC * ND), tl.float32)
    for e0 in range(0, E, BE):
        at = ((a[:, None, None, None] * E + (e0 + e)[None, :, None, None]) * NB + b[None, None, :, None]) * F + f[None, None, None, :]
        x = tl.load(A + t.to(tl.int64) * NA * E * NB * F + at)
        at = (((e0 + e)[:, None, None, None] * NC + c[None, :, None, None]) * F + f[None, None, :, None]) * ND + d[None, None, None, :]
        y = tl.load(B + t.to(tl.int64) * E * NC * F * ND + at)
        x = tl.reshape(tl.permute(x, (0, 2, 1, 3)), (NA * NB, BE * F))
        y = tl.reshape(tl.permute(y, (0, 2, 1, 3)), (BE * F, NC * ND))
        acc = tl.dot(x, y, acc)
    out = tl.arange(0, NA * NB)[:, None] * (NC * ND) + tl.arange(0, NC * ND)[None, :]
    tl.store(OUT + t * NA * NB * NC * ND + out, acc.to(OUT.dtype.element_ty))


@case
def tensors_contracted_over_two_axes():
    t, a, b, c, d, e, f = 264, 8, 8, 4, 16, 64, 8
    x, y, out = rand(t, a, e, b, f), rand(t, e, c, f, d), zeros(t, a, b, c, d)
    launch, args = run(contract_two_axes, (t,), (x, y, out, e), out, NA=a, NB=b, NC=c, ND=d, F=f, BE=8, num_warps=4, num_stages=3)
    launch.reference = lambda *_: torch.einsum("taebf,tecfd->tabcd", x.float(), y.float())
    return launch, args


@triton.jit
def eight_symmetries(X, OUT, ERROR, T: tl.constexpr):
    # A tile averaged over turns and mirrors, and how far each of the eight is from that.
    p, i = tl.program_id(0), tl.arange(0, T)
    at = p * T * T + i[:, None] * T + i[None, :]
    x = tl.load(X + at).to(tl.float32)
    t = tl.trans(x)
    total = x + tl.flip(x, 0) + tl.flip(x, 1) + tl.flip(tl.flip(x, 0), 1) + t + tl.flip(t, 0) + tl.flip(t, 1) + tl.flip(tl.flip(t, 0), 1)
    mean = total * 0.125
    tl.store(OUT + at, mean.to(OUT.dtype.element_ty))
    tl.store(ERROR + p, tl.sum(tl.max(tl.abs(x - mean), 1), 0) / T)


@case
def tiles_averaged_over_symmetries():
    count, t = 8192, 32
    x, out, error = rand(count, t, t), zeros(count, t, t), zeros(count, dtype="float32")
    launch, args = run(eight_symmetries, (count,), (x, out, error), (out, error), T=t, num_warps=2)

    def reference(*_):
        y = x.float()
        turns = [z for w in (y, y.mT) for z in (w, w.flip(1), w.flip(2), w.flip(1, 2))]
        mean = sum(turns) / 8
        return mean, (y - mean).abs().amax(2).mean(1)

    launch.reference = reference
    return launch, args


@triton.jit
def warp_in_registers(X, FLOW, OUT, T: tl.constexpr):
    # Each pixel of a tile from where its flow points, between four neighbors: gathers along both axes, no memory.
    p, i = tl.program_id(0), tl.arange(0, T)
    at = i[:, None] * T + i[None, :]
    x = tl.load(X + p * T * T + at).to(tl.float32)
    fy = tl.load(FLOW + p * 2 * T * T + at).to(tl.float32)
    fx = tl.load(FLOW + (p * 2 + 1) * T * T + at).to(tl.float32)
    # A flow along y is one for a column, that along x one for a row: gathers in turn are exact.
    cy = i[:, None] + tl.sum(fy, 0)[None, :] / T
    rx = i[None, :] + tl.sum(fx, 1)[:, None] / T
    y0 = tl.floor(cy)
    a = tl.gather(x, tl.minimum(tl.maximum(y0.to(tl.int32), 0), T - 1), 0)
    b = tl.gather(x, tl.minimum(tl.maximum(y0.to(tl.int32) + 1, 0), T - 1), 0)
    x = a + (b - a) * (cy - y0)
    x0 = tl.floor(rx)
    a = tl.gather(x, tl.minimum(tl.maximum(x0.to(tl.int32), 0), T - 1), 1)
    b = tl.gather(x, tl.minimum(tl.maximum(x0.to(tl.int32) + 1, 0), T - 1), 1)
    tl.store(OUT + p * T * T + at, a + (b - a) * (rx - x0))


@case
def tiles_warped_by_gathers_of_two_axes():
    count, t = 2048, 64
    out = zeros(count, t, t, dtype="float32")
    return run(warp_in_registers, (count,), (rand(count, t, t), rand(count, 2, t, t) * 9, out), out, T=t, num_warps=4)


@triton.jit
def halves(x, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    # Sums and differences along the last of three axes, which becomes the first.
    a, b = tl.split(tl.reshape(x, (A, B, C // 2, 2)))
    both = tl.join((a + b) * 0.7071067811865476, (a - b) * 0.7071067811865476)
    return tl.reshape(tl.permute(both, (3, 2, 0, 1)), (C, A, B))


@triton.jit
def haar_of_cubes(X, OUT, KEPT, limit, T: tl.constexpr):
    # Three axes in turn by one function; coefficients below a limit are dropped and the others counted.
    p, i = tl.program_id(0), tl.arange(0, T)
    at = p * T * T * T + (i[:, None, None] * T + i[None, :, None]) * T + i[None, None, :]
    x = tl.load(X + at).to(tl.float32)
    x = halves(halves(halves(x, T, T, T), T, T, T), T, T, T)
    keep = tl.abs(x) >= limit
    tl.store(OUT + at, tl.where(keep, x, 0.0).to(OUT.dtype.element_ty))
    tl.store(KEPT + p, tl.sum(tl.sum(tl.sum(keep.to(tl.int32), 2), 1), 0))


@case
def haar_cubes_of_16():
    count, t = 2048, 16
    x = ints(-8, 9, count, t, t, t).to(torch.float16)
    out, kept = zeros(count, t, t, t), zeros(count, dtype="int32")
    launch, args = run(haar_of_cubes, (count,), (x, out, kept, 1.0), (out, kept), T=t, num_warps=4)

    def reference(*_):
        y = x.float()
        for _ in range(3):
            a, b = y[..., 0::2], y[..., 1::2]
            y = torch.cat([a + b, a - b], -1).permute(0, 3, 1, 2) * 0.5**0.5
        y = torch.where(y.abs() >= 1.0, y, 0.0)
        return y, (y != 0).sum((1, 2, 3))

    launch.reference = reference
    return launch, args


@triton.jit
def extreme_pyramid(X, LOW, HIGH, N: tl.constexpr, LEVELS: tl.constexpr):
    # Extremes of pairs, of pairs of pairs, and so on: each level has half of the elements and is written behind the last one.
    row = tl.program_id(0).to(tl.int64)
    low = tl.load(X + row * N + tl.arange(0, N))
    high = low
    base = row * N
    for level in tl.static_range(LEVELS):
        low = tl.min(tl.reshape(low, (N >> (level + 1), 2)), 1)
        high = tl.max(tl.reshape(high, (N >> (level + 1), 2)), 1)
        i = tl.arange(0, N >> (level + 1))
        tl.store(LOW + base + i, low)
        tl.store(HIGH + base + i, high)
        base += N >> (level + 1)


@case
def pyramids_of_extremes():
    rows, n, levels = 4096, 2048, 8
    x, low, high = f32(rows, n), zeros(rows, n, dtype="float32"), zeros(rows, n, dtype="float32")
    launch, args = run(extreme_pyramid, (rows,), (x, low, high), (low, high), N=n, LEVELS=levels, num_warps=4)

    def reference(*_):
        pools = [[(x.view(rows, -1, 2 << l).amin(-1), x.view(rows, -1, 2 << l).amax(-1))[e] for l in range(levels)] for e in range(2)]
        return [torch.cat([*p, torch.zeros(rows, n >> levels, device="cuda")], 1) for p in pools]

    launch.reference = reference
    return launch, args


@triton.jit
def canonical_faces(CELLS, FACES, SIGN, KEY, N, BLOCK: tl.constexpr):
    # Tetrahedra with corners in order: a sort of the short axis of a tile, the parity of what it took, a key of 64 bits.
    c, j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, 4)
    live = (c < N)[:, None]
    v = tl.load(CELLS + c[:, None] * 4 + j[None, :], mask=live, other=0)
    swaps = (v[:, :, None] > v[:, None, :]) & (j[:, None] < j[None, :])[None, :, :]
    parity = tl.sum(tl.sum(swaps.to(tl.int32), 2), 1) & 1
    s = tl.sort(v, 1)
    tl.store(FACES + c[:, None] * 4 + j[None, :], s, mask=live)
    tl.store(SIGN + c, (1 - 2 * parity).to(tl.int8), mask=c < N)
    tl.store(KEY + c, tl.xor_sum(s.to(tl.int64) << (16 * j)[None, :].to(tl.int64), 1), mask=c < N)


@case
def tetrahedra_in_canonical_order():
    n = 1_000_003
    cells = ints(0, 30_000, n, 4)
    faces, sign, key = zeros(n, 4, dtype="int32"), zeros(n, dtype="int8"), zeros(n, dtype="int64")
    launch, args = run(canonical_faces, (cdiv(n, 256),), (cells, faces, sign, key, n), (faces, sign, key), BLOCK=256, num_warps=4)

    def reference(*_):
        pairs = sum((cells[:, i] > cells[:, j]).int() for i in range(4) for j in range(i + 1, 4))
        s = cells.sort(1)[0]
        return s, 1 - 2 * (pairs % 2), (s.long() << (16 * torch.arange(4, device="cuda"))).sum(1)

    launch.reference = reference
    return launch, args


@triton.jit
def invert_small(A, INVERSE, DET, N, BLOCK: tl.constexpr):
    # Gauss-Jordan with pivots on tiles of matrices of 4 rows and 8 columns: rows are picked and exchanged by masks.
    b, r, c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, 4), tl.arange(0, 8)
    live = (b < N)[:, None, None]
    at = b[:, None, None] * 16 + r[None, :, None] * 4 + c[None, None, :]
    x = tl.load(A + at, mask=live & (c < 4)[None, None, :], other=0.0)
    x = tl.where((c[None, None, :] == r[None, :, None] + 4), 1.0, x)
    det = tl.full((BLOCK,), 1.0, tl.float32)
    for k in tl.static_range(4):
        column = tl.sum(tl.where((c == k)[None, None, :], x, 0.0), 2)
        at_pivot = tl.argmax(tl.where((r >= k)[None, :], tl.abs(column), -1.0), 1)
        is_pivot = r[None, :] == at_pivot[:, None]
        pivot_row = tl.sum(tl.where(is_pivot[:, :, None], x, 0.0), 1)
        k_row = tl.sum(tl.where((r == k)[None, :, None], x, 0.0), 1)
        pivot = tl.sum(tl.where(is_pivot, column, 0.0), 1)
        det = det * pivot * tl.where(at_pivot == k, 1.0, -1.0)
        pivot_row = pivot_row / pivot[:, None]
        x = tl.where(is_pivot[:, :, None], k_row[:, None, :], x)
        factor = tl.sum(tl.where((c == k)[None, None, :], x, 0.0), 2)
        x = tl.where((r == k)[None, :, None], pivot_row[:, None, :], x - factor[:, :, None] * pivot_row[:, None, :])
    tl.store(INVERSE + at - 4, x, mask=live & (c >= 4)[None, None, :])
    tl.store(DET + b, det, mask=b < N)


@case
def inverses_of_4x4_with_pivots():
    n = 200_001
    a = 0.4 * f32(n, 4, 4) + 2 * torch.eye(4, device="cuda").flip(0)
    inverse, det = zeros(n, 4, 4, dtype="float32"), zeros(n, dtype="float32")
    launch, args = run(invert_small, (cdiv(n, 64),), (a, inverse, det, n), (inverse, det), BLOCK=64, num_warps=4)
    launch.reference = lambda *_: (torch.linalg.inv(a.double()), torch.linalg.det(a.double()))
    return launch, args


@triton.jit
def summed_areas(X, MEAN, SPREAD, R: tl.constexpr, T: tl.constexpr):
    # Sums along both axes, of values and of squares, and means of boxes by four corners, gathered.
    p, i = tl.program_id(0), tl.arange(0, T)
    at = p * T * T + i[:, None] * T + i[None, :]
    x = tl.load(X + at).to(tl.int32)
    s = tl.cumsum(tl.cumsum(x, 0), 1)
    q = tl.cumsum(tl.cumsum(x * x, 1), 0)
    hi, lo = tl.minimum(i + R, T - 1), i - R - 1
    low = tl.maximum(lo, 0)
    area = ((hi - tl.maximum(lo, -1))[:, None] * (hi - tl.maximum(lo, -1))[None, :]).to(tl.float32)
    rows = tl.gather(s, tl.broadcast_to(hi[:, None], (T, T)), 0) - tl.where((lo >= 0)[:, None], tl.gather(s, tl.broadcast_to(low[:, None], (T, T)), 0), 0)
    box = tl.gather(rows, tl.broadcast_to(hi[None, :], (T, T)), 1) - tl.where((lo >= 0)[None, :], tl.gather(rows, tl.broadcast_to(low[None, :], (T, T)), 1), 0)
    rows = tl.gather(q, tl.broadcast_to(hi[:, None], (T, T)), 0) - tl.where((lo >= 0)[:, None], tl.gather(q, tl.broadcast_to(low[:, None], (T, T)), 0), 0)
    boxes = tl.gather(rows, tl.broadcast_to(hi[None, :], (T, T)), 1) - tl.where((lo >= 0)[None, :], tl.gather(rows, tl.broadcast_to(low[None, :], (T, T)), 1), 0)
    mean = box.to(tl.float32) / area
    tl.store(MEAN + at, mean.to(MEAN.dtype.element_ty))
    tl.store(SPREAD + at, (boxes.to(tl.float32) / area - mean * mean).to(SPREAD.dtype.element_ty))


@case
def boxes_by_summed_areas():
    count, t, r = 2048, 64, 4
    x = ints(0, 64, count, t, t, dtype="uint8")
    mean, spread = zeros(count, t, t, dtype="float32"), zeros(count, t, t, dtype="float32")
    launch, args = run(summed_areas, (count,), (x, mean, spread), (mean, spread), R=r, T=t, num_warps=4)

    def reference(*_):
        def pool(v):
            return torch.nn.functional.avg_pool2d(v[:, None], 2 * r + 1, 1, r, count_include_pad=False)[:, 0]

        v = x.float()
        return pool(v), pool(v * v) - pool(v).square()

    launch.reference = reference
    return launch, args
