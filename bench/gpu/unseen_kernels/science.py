"""Simulation, signals and counting: stencils, particles, transforms, options, pictures, bits."""

import torch
import triton
import triton.language as tl

from .common import arange, case, cdiv, cleared, f32, far, ints, rand, run, uniform, viewed, zeros


@triton.jit
def wave_step(U, OLD, C2, NEW, H, W, BH: tl.constexpr, BW: tl.constexpr):
    # Leapfrog with a Laplacian of fourth order; the frame of two cells absorbs.
    y = tl.program_id(1) * BH + tl.arange(0, BH)[:, None]
    x = tl.program_id(0) * BW + tl.arange(0, BW)[None, :]
    at = y * W + x
    inside = (y < H) & (x < W)
    core = (y >= 2) & (y < H - 2) & (x >= 2) & (x < W - 2)
    u = tl.load(U + at, mask=inside, other=0.0)
    lap = -5.0 * u
    for s in tl.static_range(-1, 2, 2):
        near = tl.load(U + at + s, mask=core, other=0.0) + tl.load(U + at + s * W, mask=core, other=0.0)
        away = tl.load(U + at + 2 * s, mask=core, other=0.0) + tl.load(U + at + 2 * s * W, mask=core, other=0.0)
        lap += 1.3333333 * near - 0.083333333 * away
    c2 = tl.load(C2 + at, mask=inside, other=0.0)
    new = 2.0 * u - tl.load(OLD + at, mask=inside, other=0.0) + c2 * lap
    tl.store(NEW + at, tl.where(core, new, 0.98 * u), mask=inside)


@case
def wave_equation_fourth_order():
    h, w = 2050, 3001
    new = zeros(h, w, dtype="float32")
    args = f32(h, w), f32(h, w), uniform(h, w) * 0.2, new, h, w
    return run(wave_step, (cdiv(w, 64), cdiv(h, 16)), args, new, BH=16, BW=64, num_warps=4)


@triton.jit
def heat_variable(T, K, OUT, NX, NY, NZ, dt, BLOCK: tl.constexpr):
    # Flat indices, conductivity averaged at faces, borders clamped.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = NX * NY * NZ
    mask = i < n
    z, y, x = i % NZ, i // NZ % NY, i // (NZ * NY)
    t, k = tl.load(T + i, mask=mask), tl.load(K + i, mask=mask)
    acc = tl.zeros((BLOCK,), tl.float32)
    xm, xp = tl.where(x > 0, i - NY * NZ, i), tl.where(x < NX - 1, i + NY * NZ, i)
    ym, yp = tl.where(y > 0, i - NZ, i), tl.where(y < NY - 1, i + NZ, i)
    zm, zp = tl.where(z > 0, i - 1, i), tl.where(z < NZ - 1, i + 1, i)
    acc += (tl.load(T + xm, mask=mask) - t) * (tl.load(K + xm, mask=mask) + k) * 0.5
    acc += (tl.load(T + xp, mask=mask) - t) * (tl.load(K + xp, mask=mask) + k) * 0.5
    acc += (tl.load(T + ym, mask=mask) - t) * (tl.load(K + ym, mask=mask) + k) * 0.5
    acc += (tl.load(T + yp, mask=mask) - t) * (tl.load(K + yp, mask=mask) + k) * 0.5
    acc += (tl.load(T + zm, mask=mask) - t) * (tl.load(K + zm, mask=mask) + k) * 0.5
    acc += (tl.load(T + zp, mask=mask) - t) * (tl.load(K + zp, mask=mask) + k) * 0.5
    tl.store(OUT + i, t + dt * acc, mask=mask)


@case
def heat_3d_conductivity():
    nx, ny, nz = 150, 200, 250
    out = zeros(nx, ny, nz, dtype="float32")
    args = f32(nx, ny, nz), uniform(nx, ny, nz), out, nx, ny, nz, 0.1
    return run(heat_variable, (cdiv(nx * ny * nz, 1024),), args, out, BLOCK=1024, num_warps=8)


@triton.jit
def lennard_jones_cells(POS, COUNT, F, E, NC, L, CAP: tl.constexpr):
    # Cells of at most CAP particles, 27 neighbors on a torus; forces of a cell's particles as a tile of pairs.
    cx, cy, cz = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    cell = (cx * NC + cy) * NC + cz
    s = tl.arange(0, CAP)
    mine = tl.load(COUNT + cell)
    base = POS + (cell * CAP + s) * 3
    live = s < mine
    x, y, z = tl.load(base, mask=live, other=0.0), tl.load(base + 1, mask=live, other=0.0), tl.load(base + 2, mask=live, other=0.0)
    fx, fy, fz = tl.zeros((CAP,), tl.float32), tl.zeros((CAP,), tl.float32), tl.zeros((CAP,), tl.float32)
    energy = tl.zeros((CAP,), tl.float32)
    for d in range(27):
        ox, oy, oz = (cx + d // 9 - 1 + NC) % NC, (cy + d // 3 % 3 - 1 + NC) % NC, (cz + d % 3 - 1 + NC) % NC
        other = (ox * NC + oy) * NC + oz
        count = tl.load(COUNT + other)
        b = POS + (other * CAP + s) * 3
        there = s < count
        dx = x[:, None] - tl.load(b, mask=there, other=1e6)[None, :]
        dy = y[:, None] - tl.load(b + 1, mask=there, other=1e6)[None, :]
        dz = z[:, None] - tl.load(b + 2, mask=there, other=1e6)[None, :]
        dx -= L * tl.floor(dx / L + 0.5)
        dy -= L * tl.floor(dy / L + 0.5)
        dz -= L * tl.floor(dz / L + 0.5)
        r2 = dx * dx + dy * dy + dz * dz
        pair = live[:, None] & there[None, :] & (r2 < 6.25) & (r2 > 1e-9)
        inv = 1.0 / tl.maximum(tl.where(pair, r2, 1.0), 0.7)
        i6 = inv * inv * inv
        f = tl.where(pair, 24.0 * inv * i6 * (2.0 * i6 - 1.0), 0.0)
        fx += tl.sum(f * dx, 1)
        fy += tl.sum(f * dy, 1)
        fz += tl.sum(f * dz, 1)
        energy += tl.sum(tl.where(pair, 2.0 * i6 * (i6 - 1.0), 0.0), 1)
    out = F + (cell * CAP + s) * 3
    tl.store(out, fx, mask=live)
    tl.store(out + 1, fy, mask=live)
    tl.store(out + 2, fz, mask=live)
    tl.store(E + cell, tl.sum(tl.where(live, energy, 0.0)))


@case
def lennard_jones_cell_lists():
    nc, cap = 16, 32
    f, e = zeros(nc**3, cap, 3, dtype="float32"), zeros(nc**3, dtype="float32")
    corner = arange(nc**3)
    corner = torch.stack((corner // (nc * nc), corner // nc % nc, corner % nc), 1).float()
    pos = ((corner[:, None, :] + uniform(nc**3, cap, 3)) * 2.5).contiguous()
    return run(lennard_jones_cells, (nc, nc, nc), (pos, ints(8, 25, nc**3), f, e, nc, 2.5 * nc), (f, e), CAP=cap, num_warps=4)


@triton.jit
def lattice_boltzmann_d2q9(FIN, SOLID, FOUT, NX, NY, omega, BLOCK: tl.constexpr):
    # Pull, collide, bounce back; one plane for each of nine directions.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = NX * NY
    mask = i < n
    x, y = i % NX, i // NX
    xm, xp = (x + NX - 1) % NX, (x + 1) % NX
    ym, yp = (y + NY - 1) % NY, (y + 1) % NY
    f0 = tl.load(FIN + i, mask=mask)
    f1 = tl.load(FIN + n + y * NX + xm, mask=mask)
    f2 = tl.load(FIN + 2 * n + ym * NX + x, mask=mask)
    f3 = tl.load(FIN + 3 * n + y * NX + xp, mask=mask)
    f4 = tl.load(FIN + 4 * n + yp * NX + x, mask=mask)
    f5 = tl.load(FIN + 5 * n + ym * NX + xm, mask=mask)
    f6 = tl.load(FIN + 6 * n + ym * NX + xp, mask=mask)
    f7 = tl.load(FIN + 7 * n + yp * NX + xp, mask=mask)
    f8 = tl.load(FIN + 8 * n + yp * NX + xm, mask=mask)
    wall = tl.load(SOLID + i, mask=mask, other=1) != 0
    rho = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8
    ux = (f1 - f3 + f5 - f6 - f7 + f8) / rho
    uy = (f2 - f4 + f5 + f6 - f7 - f8) / rho
    uu = 1.5 * (ux * ux + uy * uy)
    keep = 1.0 - omega
    a, b = ux + uy, uy - ux
    tl.store(FOUT + i, tl.where(wall, f0, keep * f0 + omega * rho * (4.0 / 9.0) * (1.0 - uu)), mask=mask)
    tl.store(FOUT + n + i, tl.where(wall, f3, keep * f1 + omega * rho / 9.0 * (1 + 3 * ux + 4.5 * ux * ux - uu)), mask=mask)
    tl.store(FOUT + 2 * n + i, tl.where(wall, f4, keep * f2 + omega * rho / 9.0 * (1 + 3 * uy + 4.5 * uy * uy - uu)), mask=mask)
    tl.store(FOUT + 3 * n + i, tl.where(wall, f1, keep * f3 + omega * rho / 9.0 * (1 - 3 * ux + 4.5 * ux * ux - uu)), mask=mask)
    tl.store(FOUT + 4 * n + i, tl.where(wall, f2, keep * f4 + omega * rho / 9.0 * (1 - 3 * uy + 4.5 * uy * uy - uu)), mask=mask)
    tl.store(FOUT + 5 * n + i, tl.where(wall, f7, keep * f5 + omega * rho / 36.0 * (1 + 3 * a + 4.5 * a * a - uu)), mask=mask)
    tl.store(FOUT + 6 * n + i, tl.where(wall, f8, keep * f6 + omega * rho / 36.0 * (1 + 3 * b + 4.5 * b * b - uu)), mask=mask)
    tl.store(FOUT + 7 * n + i, tl.where(wall, f5, keep * f7 + omega * rho / 36.0 * (1 - 3 * a + 4.5 * a * a - uu)), mask=mask)
    tl.store(FOUT + 8 * n + i, tl.where(wall, f6, keep * f8 + omega * rho / 36.0 * (1 - 3 * b + 4.5 * b * b - uu)), mask=mask)


@case
def lattice_boltzmann():
    nx, ny = 1600, 1001
    out = zeros(9, ny, nx, dtype="float32")
    args = uniform(9, ny, nx) * 0.1 + 0.1, (uniform(ny, nx) < 0.05).to(torch.uint8), out, nx, ny, 1.7
    return run(lattice_boltzmann_d2q9, (cdiv(nx * ny, 256),), args, out, BLOCK=256, num_warps=4)


@triton.jit
def fft_radix4_pass(XR, XI, YR, YI, N, SPAN, BLOCK: tl.constexpr):
    # One pass of Stockham's algorithm through memory.
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.program_id(1) * N
    q = N // 4
    mask = j < q
    k = j % SPAN
    angle = k.to(tl.float32) * (-6.283185307179586 / (SPAN * 4))
    r0, i0 = tl.load(XR + row + j, mask=mask), tl.load(XI + row + j, mask=mask)
    r1, i1 = tl.load(XR + row + j + q, mask=mask), tl.load(XI + row + j + q, mask=mask)
    r2, i2 = tl.load(XR + row + j + 2 * q, mask=mask), tl.load(XI + row + j + 2 * q, mask=mask)
    r3, i3 = tl.load(XR + row + j + 3 * q, mask=mask), tl.load(XI + row + j + 3 * q, mask=mask)
    c1, s1 = tl.cos(angle), tl.sin(angle)
    c2, s2 = c1 * c1 - s1 * s1, 2.0 * c1 * s1
    c3, s3 = c2 * c1 - s2 * s1, c2 * s1 + s2 * c1
    r1, i1 = r1 * c1 - i1 * s1, r1 * s1 + i1 * c1
    r2, i2 = r2 * c2 - i2 * s2, r2 * s2 + i2 * c2
    r3, i3 = r3 * c3 - i3 * s3, r3 * s3 + i3 * c3
    ar, ai, br, bi = r0 + r2, i0 + i2, r0 - r2, i0 - i2
    cr, ci, dr, di = r1 + r3, i1 + i3, i1 - i3, r3 - r1
    to = row + j // SPAN * (SPAN * 4) + k
    tl.store(YR + to, ar + cr, mask=mask)
    tl.store(YI + to, ai + ci, mask=mask)
    tl.store(YR + to + SPAN, br + dr, mask=mask)
    tl.store(YI + to + SPAN, bi + di, mask=mask)
    tl.store(YR + to + 2 * SPAN, ar - cr, mask=mask)
    tl.store(YI + to + 2 * SPAN, ai - ci, mask=mask)
    tl.store(YR + to + 3 * SPAN, br - dr, mask=mask)
    tl.store(YI + to + 3 * SPAN, bi - di, mask=mask)


@case
def fft_radix4_stockham():
    rows, n = 256, 4096
    a = [f32(rows, n), f32(rows, n)]
    b = [zeros(rows, n, dtype="float32"), zeros(rows, n, dtype="float32")]
    c = [zeros(rows, n, dtype="float32"), zeros(rows, n, dtype="float32")]

    def launch(*args):
        source, target, span = a, b, 1
        while span < n:
            fft_radix4_pass[(cdiv(n // 4, 512), rows)](*source, *target, n, span, BLOCK=512, num_warps=4)
            source, target, span = target, c if target is b else b, span * 4
        return tuple(source)

    return launch, (*a,)


@triton.jit
def dct_8x8_blocks(X, D, Q, Y, H, W, NB: tl.constexpr):
    # The transform of JPEG: 8x8 blocks by sums of broadcasts, quantized, in the order of the blocks.
    b = tl.program_id(0) * NB + tl.arange(0, NB)
    wide = W // 8
    live = b < (H // 8) * wide
    i, j = tl.arange(0, 8)[None, :, None], tl.arange(0, 8)[None, None, :]
    by, bx = (b // wide)[:, None, None], (b % wide)[:, None, None]
    x = tl.load(X + (by * 8 + i) * W + bx * 8 + j, mask=live[:, None, None], other=0).to(tl.float32) - 128.0
    e = tl.arange(0, 8)
    d = tl.load(D + e[:, None] * 8 + e[None, :])
    t = tl.sum(x[:, :, None, :] * d[None, None, :, :], 3)
    t = tl.sum(d[None, :, :, None] * t[:, None, :, :], 2)
    q = tl.load(Q + i * 8 + j)
    v = tl.math.floor(t / q + 0.5)
    tl.store(Y + b[:, None, None] * 64 + i * 8 + j, v.to(tl.int16), mask=live[:, None, None])


@case
def dct_8x8_quantized():
    h, w = 2160, 3840
    k = torch.arange(8, device="cuda", dtype=torch.float32)
    d = torch.cos((2 * k[None, :] + 1) * k[:, None] * 3.14159265 / 16) * 0.5
    d[0] *= 0.70710678
    y = zeros(h * w // 64, 64, dtype="int16")
    args = ints(0, 256, h, w, dtype="uint8"), d, uniform(8, 8) * 20 + 4, y, h, w
    return viewed(run(dct_8x8_blocks, (cdiv(h * w // 64, 8),), args, y, NB=8), far)


@triton.jit
def asian_option(OUT, s0, strike, drift, vol, discount, STEPS, seed, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    path = pid * BLOCK + tl.arange(0, BLOCK)
    log_s = tl.zeros((BLOCK,), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(STEPS // 2):
        a, b = tl.randn4x(seed, path * (STEPS // 2) + step)[:2]
        log_s += drift + vol * a
        total += s0 * tl.exp(log_s)
        log_s += drift + vol * b
        total += s0 * tl.exp(log_s)
    pay = tl.maximum(total / STEPS - strike, 0.0) * discount
    tl.store(OUT + pid * 2, tl.sum(pay) / BLOCK)
    tl.store(OUT + pid * 2 + 1, tl.sum(pay * pay) / BLOCK)


@case
def asian_option_paths():
    programs = 2000
    out = zeros(programs, 2, dtype="float32")
    return run(asian_option, (programs,), (out, 100.0, 95.0, 0.0002, 0.02, 0.97, 64, 1234), out, BLOCK=256, num_warps=4)


@triton.jit
def _normal_cdf(x):
    # The polynomial of Abramowitz and Stegun.
    k = 1.0 / (1.0 + 0.2316419 * tl.abs(x))
    p = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = 0.3989422804 * tl.exp(-0.5 * x * x) * p
    return tl.where(x > 0, 1.0 - tail, tail)


@triton.jit
def black_scholes(S, K, T, CALL, PUT, DELTA, r, sigma, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    s, k, t = tl.load(S + i, m, 1.0), tl.load(K + i, m, 1.0), tl.load(T + i, m, 1.0)
    root = tl.sqrt(t)
    d1 = (tl.log(s / k) + (r + 0.5 * sigma * sigma) * t) / (sigma * root)
    d2 = d1 - sigma * root
    n1, n2 = _normal_cdf(d1), _normal_cdf(d2)
    later = k * tl.exp(-r * t)
    call = s * n1 - later * n2
    tl.store(CALL + i, call, m)
    tl.store(PUT + i, call - s + later, m)
    tl.store(DELTA + i, n1.to(tl.float16), m)


@case
def black_scholes_greeks():
    n = 4000003
    call, put, delta = zeros(n, dtype="float32"), zeros(n, dtype="float32"), zeros(n)
    args = uniform(n) * 50 + 75, uniform(n) * 50 + 75, uniform(n) + 0.1, call, put, delta, 0.03, 0.25, n
    return run(black_scholes, (cdiv(n, 1024),), args, (call, put, delta), BLOCK=1024, num_warps=4)


@triton.jit
def binomial_tree(S, K, OUT, up, p, discount, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
    # American puts: one program for each, the tree's front held in registers and moved by a gather.
    pid = tl.program_id(0)
    s, strike = tl.load(S + pid), tl.load(K + pid)
    j = tl.arange(0, BLOCK)
    log_up = tl.log(up)
    v = tl.maximum(strike - s * tl.exp((2.0 * j - LEVELS) * log_up), 0.0)
    right = tl.minimum(j + 1, BLOCK - 1)
    for step in range(LEVELS):
        level = LEVELS - 1 - step
        hold = discount * (p * tl.gather(v, right, 0) + (1.0 - p) * v)
        now = strike - s * tl.exp((2.0 * j - level) * log_up)
        v = tl.where(j <= level, tl.maximum(hold, now), 0.0)
    tl.store(OUT + pid, tl.sum(tl.where(j == 0, v, 0.0)))


@case
def american_puts_binomial():
    n = 2000
    out = zeros(n, dtype="float32")
    args = uniform(n) * 20 + 90, uniform(n) * 20 + 90, out, 1.02, 0.505, 0.9998
    return run(binomial_tree, (n,), args, out, LEVELS=120, BLOCK=128, num_warps=1)


@triton.jit
def joint_histogram(A, B, OUT, n, PER, BINS: tl.constexpr, BLOCK: tl.constexpr):
    # Mutual information's counts: one-hot rows of both through a dot of bytes.
    pid = tl.program_id(0)
    bins = tl.arange(0, BINS)
    acc = tl.zeros((BINS, BINS), tl.int32)
    for start in range(0, PER, BLOCK):
        i = pid * PER + start + tl.arange(0, BLOCK)
        a, b = tl.load(A + i, mask=i < n, other=255), tl.load(B + i, mask=i < n, other=255)
        ha = (a[None, :] // 4 == bins[:, None]) & (i < n)[None, :]
        hb = b[:, None] // 4 == bins[None, :]
        acc = tl.dot(ha.to(tl.int8), hb.to(tl.int8), acc, out_dtype=tl.int32)
    tl.atomic_add(OUT + bins[:, None] * BINS + bins[None, :], acc)


@case
def joint_histogram_by_dot():
    n = 3000000
    out = zeros(64, 64, dtype="int32")
    args = ints(0, 256, n, dtype="uint8"), ints(0, 256, n, dtype="uint8"), out, n, 4096
    return cleared(run(joint_histogram, (cdiv(n, 4096),), args, out, BINS=64, BLOCK=128, num_warps=4), out)


@triton.jit
def weighted_histogram(X, Wt, OUT, n, lo, scale, BINS: tl.constexpr, BLOCK: tl.constexpr, CHUNKS: tl.constexpr):
    pid = tl.program_id(0)
    counts = tl.zeros((BINS,), tl.int32)
    for c in tl.static_range(CHUNKS):
        i = (pid * CHUNKS + c) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(X + i, mask=i < n, other=0.0)
        b = tl.minimum(tl.maximum(((x - lo) * scale).to(tl.int32), 0), BINS - 1)
        counts += tl.histogram(b, BINS, mask=i < n)
        w = tl.load(Wt + i, mask=i < n, other=0)
        tl.atomic_add(OUT + BINS + b, w, mask=(i < n) & (w != 0), sem="relaxed")
    tl.atomic_add(OUT + tl.arange(0, BINS), counts, sem="relaxed")


@case
def histogram_counts_and_weights():
    n = 2000000
    out = zeros(2, 256, dtype="int32")
    args = f32(n), (ints(0, 8, n) == 0).int() * ints(1, 9, n), out, n, -4.0, 32.0
    return cleared(run(weighted_histogram, (cdiv(n, 4096),), args, out, BINS=256, BLOCK=1024, CHUNKS=4, num_warps=4), out)


@triton.jit
def conv3d_direct(X, Wt, Y, CI, CO, D, H, W, BP: tl.constexpr, BC: tl.constexpr, BI: tl.constexpr):
    # 3x3x3, channels last, as a product for each of 27 shifts.
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    co, ci = tl.program_id(1) * BC + tl.arange(0, BC), tl.arange(0, BI)
    total = D * H * W
    x, y, z = p % W, p // W % H, p // (W * H)
    acc = tl.zeros((BP, BC), tl.float32)
    for t in range(27):
        dz, dy, dx = t // 9 - 1, t // 3 % 3 - 1, t % 3 - 1
        ok = (p < total) & (z + dz >= 0) & (z + dz < D) & (y + dy >= 0) & (y + dy < H) & (x + dx >= 0) & (x + dx < W)
        q = p + (dz * H + dy) * W + dx
        for c0 in range(0, CI, BI):
            a = tl.load(X + q[:, None] * CI + (c0 + ci)[None, :], mask=ok[:, None], other=0.0)
            b = tl.load(Wt + (t * CI + c0 + ci)[:, None] * CO + co[None, :])
            acc += tl.dot(a, b)
    tl.store(Y + p[:, None] * CO + co[None, :], acc.to(Y.dtype.element_ty), mask=(p < total)[:, None])


@case
def conv3d_channels_last():
    d, h, w, ci, co = 17, 60, 104, 64, 128
    y = zeros(d, h, w, co, dtype="bfloat16")
    args = rand(d, h, w, ci, dtype="bfloat16"), rand(27, ci, co, dtype="bfloat16"), y, ci, co, d, h, w
    return run(conv3d_direct, (cdiv(d * h * w, 128), co // 64), args, y, BP=128, BC=64, BI=32, num_warps=4, num_stages=4)


@triton.jit
def sobel_suppressed(X, OUT, H, W, low, high, BLOCK: tl.constexpr):
    # Gradient, direction by comparisons, non-maximum suppression, two thresholds: each neighbor's magnitude is computed anew.
    row = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ok = (x >= 2) & (x < W - 2) & (row >= 2) & (row < H - 2)
    gx0, gy0, m0 = _sobel(X, row, x, W, ok)
    ax, ay = tl.abs(gx0), tl.abs(gy0)
    dx = tl.where(ax > 0.41421356 * ay, tl.where(gx0 > 0, 1, -1), 0)
    dy = tl.where(ay > 0.41421356 * ax, tl.where(gy0 > 0, 1, -1), 0)
    _, _, m1 = _sobel(X, row + dy, x + dx, W, ok)
    _, _, m2 = _sobel(X, row - dy, x - dx, W, ok)
    peak = (m0 >= m1) & (m0 > m2)
    code = tl.where(peak & (m0 > high), 255, tl.where(peak & (m0 > low), 128, 0))
    tl.store(OUT + row * W + x, code.to(tl.uint8), mask=ok)


@triton.jit
def _sobel(X, y, x, W, ok):
    base = X + y * W + x
    a, b, c = tl.load(base - W - 1, ok, 0).to(tl.int32), tl.load(base - W, ok, 0).to(tl.int32), tl.load(base - W + 1, ok, 0).to(tl.int32)
    d, f = tl.load(base - 1, ok, 0).to(tl.int32), tl.load(base + 1, ok, 0).to(tl.int32)
    g, h, i = tl.load(base + W - 1, ok, 0).to(tl.int32), tl.load(base + W, ok, 0).to(tl.int32), tl.load(base + W + 1, ok, 0).to(tl.int32)
    gx, gy = (c + 2 * f + i) - (a + 2 * d + g), (g + 2 * h + i) - (a + 2 * b + c)
    return gx, gy, gx * gx + gy * gy


@case
def sobel_edges_suppressed():
    h, w = 2160, 3840
    out = zeros(h, w, dtype="uint8")
    args = ints(0, 256, h, w, dtype="uint8"), out, h, w, 20000, 90000
    return run(sobel_suppressed, (h, cdiv(w, 512)), args, out, BLOCK=512, num_warps=4)


@triton.jit
def label_sweep(LABELS, PIXELS, OUT, H, W, BH: tl.constexpr, BW: tl.constexpr):
    # Connected components: labels fall along runs of a tile in both directions by segmented minima.
    y = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    x = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    mask = (y < H) & (x < W)
    on = tl.load(PIXELS + y * W + x, mask=mask, other=0) != 0
    l = tl.load(LABELS + y * W + x, mask=mask, other=0x7FFFFFFF)
    l = tl.where(on, l, 0x7FFFFFFF)
    wall = (~on).to(tl.int32)
    for _ in range(3):
        _, right = tl.associative_scan((wall, l), 1, _min_until_wall)
        _, left = tl.associative_scan((wall, l), 1, _min_until_wall, reverse=True)
        l = tl.where(on, tl.minimum(right, left), l)
        _, down = tl.associative_scan((wall, l), 0, _min_until_wall)
        _, up = tl.associative_scan((wall, l), 0, _min_until_wall, reverse=True)
        l = tl.where(on, tl.minimum(down, up), l)
    tl.store(OUT + y * W + x, tl.where(on, l, -1), mask=mask)


@triton.jit
def _min_until_wall(w1, l1, w2, l2):
    return w1 | w2, tl.where(w2 != 0, l2, tl.minimum(l1, l2))


@case
def connected_components_sweep():
    h, w = 1024, 1500
    out = zeros(h, w, dtype="int32")
    labels = arange(h * w).reshape(h, w).contiguous()
    pixels = (uniform(h, w) < 0.6).to(torch.uint8)
    return run(label_sweep, (h // 32, cdiv(w, 32)), (labels, pixels, out, h, w), out, BH=32, BW=32, num_warps=4)


@triton.jit
def sphere_tracer(SPHERES, OUT, NS, W, H, fov, BLOCK: tl.constexpr, BOUNCES: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < W * H
    dx = ((i % W).to(tl.float32) / W - 0.5) * fov
    dy = ((i // W).to(tl.float32) / H - 0.5) * fov
    n = 1.0 / tl.sqrt(dx * dx + dy * dy + 1.0)
    dx, dy, dz = dx * n, dy * n, n
    ox, oy, oz = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    light = tl.zeros((BLOCK,), tl.float32)
    weight = tl.full((BLOCK,), 1.0, tl.float32)
    for _ in range(BOUNCES):
        near = tl.full((BLOCK,), 1e30, tl.float32)
        hx, hy, hz = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
        for s in range(NS):
            cx, cy = tl.load(SPHERES + s * 4), tl.load(SPHERES + s * 4 + 1)
            cz, r = tl.load(SPHERES + s * 4 + 2), tl.load(SPHERES + s * 4 + 3)
            px, py, pz = cx - ox, cy - oy, cz - oz
            along = px * dx + py * dy + pz * dz
            gap = r * r - (px * px + py * py + pz * pz - along * along)
            t = along - tl.sqrt(tl.maximum(gap, 0.0))
            hit = (gap > 0) & (t > 1e-3) & (t < near)
            near = tl.where(hit, t, near)
            hx, hy, hz = tl.where(hit, cx, hx), tl.where(hit, cy, hy), tl.where(hit, cz, hz)
        found = near < 1e29
        light += tl.where(found, 0.0, weight * (0.5 + 0.5 * dy))
        weight = tl.where(found, weight * 0.7, 0.0)
        step = tl.where(found, near, 0.0)
        ox, oy, oz = ox + step * dx, oy + step * dy, oz + step * dz
        nx, ny, nz = ox - hx, oy - hy, oz - hz
        inv = tl.rsqrt(nx * nx + ny * ny + nz * nz + 1e-12)
        nx, ny, nz = nx * inv, ny * inv, nz * inv
        twice = tl.where(found, 2.0 * (dx * nx + dy * ny + dz * nz), 0.0)
        dx, dy, dz = dx - twice * nx, dy - twice * ny, dz - twice * nz
    tl.store(OUT + i, (light * 255.0).to(tl.int32).to(tl.uint8), mask=mask)


@case
def ray_spheres_bounces():
    w, h, ns = 1280, 720, 24
    out = zeros(h, w, dtype="uint8")
    spheres = torch.cat((f32(ns, 2) * 3, uniform(ns, 1) * 8 + 6, uniform(ns, 1) + 0.3), 1).contiguous()
    launched = run(sphere_tracer, (cdiv(w * h, 128),), (spheres, out, ns, w, h, 1.2), out, BLOCK=128, BOUNCES=2, num_warps=4)
    # Rays that graze a sphere go either way.
    return viewed(launched, lambda out: out.float().reshape(90, 8, 160, 8).mean((1, 3)) + 64)


@triton.jit
def kmeans_assign_update(X, C, LABEL, SUMS, COUNTS, N, K, D: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    d, k0 = tl.arange(0, D), tl.arange(0, BK)
    live = n < N
    x = tl.load(X + n[:, None] * D + d[None, :], mask=live[:, None], other=0.0)
    best = tl.full((BN,), float("inf"), dtype=tl.float32)
    label = tl.zeros((BN,), dtype=tl.int32)
    for k in range(0, K, BK):
        c = tl.load(C + (k + k0)[:, None] * D + d[None, :], mask=(k + k0 < K)[:, None], other=1e4)
        diff = x[:, None, :] - c[None, :, :]
        dist = tl.sum(diff * diff, axis=2)
        low = tl.min(dist, 1)
        at = tl.argmin(dist, 1) + k
        label = tl.where(low < best, at, label)
        best = tl.minimum(low, best)
    tl.store(LABEL + n, label, mask=live)
    tl.atomic_add(SUMS + label[:, None] * D + d[None, :], x, mask=live[:, None], sem="relaxed")
    tl.atomic_add(COUNTS + label, 1, mask=live, sem="relaxed")


@case
def kmeans_assign_and_sum():
    n, k, d = 100000, 50, 16
    label, sums, counts = zeros(n, dtype="int32"), zeros(k, d, dtype="float32"), zeros(k, dtype="int32")
    args = f32(n, d), f32(k, d), label, sums, counts, n, k
    launched = run(kmeans_assign_update, (cdiv(n, 64),), args, (sums, counts), D=d, BN=64, BK=8, num_warps=4)
    return cleared(launched, sums, counts)


@triton.jit
def smith_waterman(A, B, OUT, LA, LB, gap, match, miss, N: tl.constexpr):
    # Anti-diagonals: lane i holds row i of the table.
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    a = tl.load(A + pid * LA + i, mask=i < LA, other=-1)
    before, last = tl.zeros((N,), tl.int32), tl.zeros((N,), tl.int32)
    best = tl.zeros((N,), tl.int32)
    up = tl.maximum(i - 1, 0)
    for diag in range(LA + LB - 1):
        j = diag - i
        ok = (j >= 0) & (j < LB) & (i < LA)
        b = tl.load(B + pid * LB + j, mask=ok, other=-2)
        corner = tl.where(i > 0, tl.gather(before, up, 0), 0)
        above = tl.where(i > 0, tl.gather(last, up, 0), 0)
        h = corner + tl.where(a == b, match, miss)
        h = tl.maximum(tl.maximum(h, 0), tl.maximum(above, last) - gap)
        h = tl.where(ok, h, 0)
        best = tl.maximum(best, h)
        before, last = last, h
    tl.store(OUT + pid, tl.max(best, 0))


@case
def smith_waterman_pairs():
    n, la, lb = 2000, 120, 200
    out = zeros(n, dtype="int32")
    args = ints(0, 4, n, la, dtype="int8"), ints(0, 4, n, lb, dtype="int8"), out, la, lb, 2, 3, -1
    return run(smith_waterman, (n,), args, out, N=128, num_warps=1)


@triton.jit
def crc32_rows(DATA, TABLE, OUT, ROWS, LEN, BLOCK: tl.constexpr):
    # A row for each lane; the table is in memory.
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = r < ROWS
    crc = tl.full((BLOCK,), 0xFFFFFFFF, tl.uint32)
    for w in range(0, LEN):
        word = tl.load(DATA + w * ROWS + r, mask=live, other=0).to(tl.uint32, bitcast=True)
        for _ in tl.static_range(4):
            at = ((crc ^ word) & 0xFF).to(tl.int32)
            crc = (crc >> 8) ^ tl.load(TABLE + at).to(tl.uint32, bitcast=True)
            word = word >> 8
    tl.store(OUT + r, (~crc).to(tl.int32, bitcast=True), mask=live)


@case
def crc32_table_rows():
    rows, words = 50000, 64
    out = zeros(rows, dtype="int32")
    args = ints(-(2**31), 2**31, words, rows), ints(-(2**31), 2**31, 256), out, rows, words
    return run(crc32_rows, (cdiv(rows, 128),), args, out, BLOCK=128, num_warps=4)


@triton.jit
def _popcount(x):
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return (x * 0x01010101) >> 24


@triton.jit
def tanimoto(A, B, OUT, NA, NB, WORDS: tl.constexpr, BA: tl.constexpr, BB: tl.constexpr):
    # Similarity of fingerprints: popcounts of pairs, word by word.
    a, b = tl.program_id(0) * BA + tl.arange(0, BA), tl.program_id(1) * BB + tl.arange(0, BB)
    both, any_of = tl.zeros((BA, BB), tl.uint32), tl.zeros((BA, BB), tl.uint32)
    for w in range(WORDS):
        x = tl.load(A + a * WORDS + w, mask=a < NA, other=0).to(tl.uint32, bitcast=True)[:, None]
        y = tl.load(B + b * WORDS + w, mask=b < NB, other=0).to(tl.uint32, bitcast=True)[None, :]
        both += _popcount(x & y)
        any_of += _popcount(x | y)
    s = both.to(tl.float32) / tl.maximum(any_of, 1).to(tl.float32)
    tl.store(OUT + a[:, None] * NB + b[None, :], s.to(tl.float16), mask=(a < NA)[:, None] & (b < NB)[None, :])


@case
def tanimoto_fingerprints():
    na, nb, words = 1000, 3000, 32
    out = zeros(na, nb)
    args = ints(-(2**31), 2**31, na, words), ints(-(2**31), 2**31, nb, words), out, na, nb
    return run(tanimoto, (cdiv(na, 32), cdiv(nb, 64)), args, out, WORDS=words, BA=32, BB=64, num_warps=4)


@triton.jit
def boolean_matmul(A, B, C, N, WORDS, BM: tl.constexpr, BN: tl.constexpr, BW: tl.constexpr):
    # Or of ands: rows of A and columns of B as words; a ballot of 32 columns makes a word of C.
    m, g = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    w0 = tl.arange(0, BW)
    hit = tl.zeros((BM, BN), tl.int32)
    for w in range(0, WORDS, BW):
        a = tl.load(A + m[:, None] * WORDS + (w + w0)[None, :])
        b = tl.load(B + g[:, None] * WORDS + (w + w0)[None, :])
        hit |= tl.reduce(a[:, None, :] & b[None, :, :], 2, _or)
    bits = tl.reshape((hit != 0).to(tl.int32), (BM, BN // 32, 32))
    word = tl.sum(bits << tl.arange(0, 32)[None, None, :], 2)
    at = tl.program_id(1) * (BN // 32) + tl.arange(0, BN // 32)
    tl.store(C + m[:, None] * (N // 32) + at[None, :], word)


@triton.jit
def _or(a, b):
    return a | b


@case
def boolean_matmul_packed():
    n = 2048
    sparse = lambda: ints(-(2**31), 2**31, n, n // 32) & ints(-(2**31), 2**31, n, n // 32) & ints(-(2**31), 2**31, n, n // 32)
    thin = lambda: sparse() & sparse()
    c = zeros(n, n // 32, dtype="int32")
    return run(boolean_matmul, (n // 32, n // 64), (thin(), thin(), c, n, n // 32), c, BM=32, BN=64, BW=4, num_warps=4)
