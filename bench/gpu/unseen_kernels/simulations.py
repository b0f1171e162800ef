"""Simulations: stencils in space and in time, particles and lists of neighbors, factorizations with pivots, series, states over time."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import arange, case, cdiv, f32, ints, rand, run, uniform, zeros


def f64(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.float64)


@triton.jit
def box_27(X, OUT, NX, NY, NZ, center, face, edge, corner, BY: tl.constexpr, BX: tl.constexpr, DEEP: tl.constexpr):
    # 27 points in double: a program goes down DEEP planes, and each plane's three sums are used three times.
    x = tl.program_id(0) * BX + tl.arange(0, BX)[None, :] + 1
    y = tl.program_id(1) * BY + tl.arange(0, BY)[:, None] + 1
    z0 = tl.program_id(2) * DEEP + 1
    ok = (x < NX - 1) & (y < NY - 1)
    near, beside = tl.zeros((BY, BX), tl.float64), tl.zeros((BY, BX), tl.float64)
    before, before_in = near, near
    for step in range(-1, DEEP + 1):
        z = z0 + step
        p = X + (z * NY + y) * NX + x
        live = ok & (z >= 0) & (z < NZ)
        c = tl.load(p, mask=live, other=0.0)
        cross = tl.load(p - 1, mask=live, other=0.0) + tl.load(p + 1, mask=live, other=0.0)
        cross += tl.load(p - NX, mask=live, other=0.0) + tl.load(p + NX, mask=live, other=0.0)
        diagonal = tl.load(p - NX - 1, mask=live, other=0.0) + tl.load(p - NX + 1, mask=live, other=0.0)
        diagonal += tl.load(p + NX - 1, mask=live, other=0.0) + tl.load(p + NX + 1, mask=live, other=0.0)
        outer = face * c + edge * cross + corner * diagonal
        inner = center * c + face * cross + edge * diagonal
        if step >= 1:
            tl.store(OUT + ((z - 1) * NY + y) * NX + x, before + before_in + outer, mask=ok & (z - 1 < NZ - 1))
        before, before_in = beside, inner
        beside = outer


@case
def stencil_27_points_down_planes_in_double():
    nx, ny, nz = 250, 203, 131
    x, out = f64(nz, ny, nx), zeros(nz, ny, nx, dtype="float64")
    args = x, out, nx, ny, nz, -4.0, 0.5, 0.0625, 0.03125
    launch, args = run(box_27, (cdiv(nx - 2, 64), cdiv(ny - 2, 8), cdiv(nz - 2, 16)), args, out, BY=8, BX=64, DEEP=16, num_warps=4)

    def reference(*_):
        weights = torch.tensor([-4.0, 0.5, 0.0625, 0.03125], dtype=torch.float64, device=x.device)
        total = torch.zeros(nz - 2, ny - 2, nx - 2, dtype=torch.float64, device=x.device)
        for k in range(27):
            dz, dy, dx = k // 9, k // 3 % 3, k % 3
            w = weights[(dz != 1) + (dy != 1) + (dx != 1)]
            total += w * x[dz : dz + nz - 2, dy : dy + ny - 2, dx : dx + nx - 2]
        return F.pad(total, (1,) * 6)

    launch.reference = reference
    return launch, args


@triton.jit
def moved(x, SHIFT: tl.constexpr, AXIS: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N) + SHIFT
    i = tl.minimum(tl.maximum(i, 0), N - 1)
    at = tl.broadcast_to(i[:, None] if AXIS == 0 else i[None, :], x.shape)
    return tl.gather(x, at, AXIS)


@triton.jit
def heat_steps(X, K, OUT, H, W, STEPS: tl.constexpr, N: tl.constexpr):
    # Several steps in time of a tile that loses its rim at each: neighbors come from registers by gathers.
    inner: tl.constexpr = N - 2 * STEPS
    y = tl.program_id(1) * inner - STEPS + tl.arange(0, N)[:, None]
    x = tl.program_id(0) * inner - STEPS + tl.arange(0, N)[None, :]
    inside = (y >= 0) & (y < H) & (x >= 0) & (x < W)
    u = tl.load(X + y * W + x, mask=inside, other=0.0)
    k = tl.load(K + y * W + x, mask=inside, other=0.0)
    for _ in range(STEPS):
        around = moved(u, -1, 0, N) + moved(u, 1, 0, N) + moved(u, -1, 1, N) + moved(u, 1, 1, N)
        u = tl.where(inside, u + k * (around - 4 * u), 0.0)
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    keep = inside & (i >= STEPS) & (i < N - STEPS) & (j >= STEPS) & (j < N - STEPS)
    tl.store(OUT + y * W + x, u, mask=keep)


@case
def heat_of_four_steps_by_gathers():
    h, w, steps, n = 1500, 1601, 4, 64
    x, k, out = f32(h, w), uniform(h, w) * 0.2, zeros(h, w, dtype="float32")
    grid = cdiv(w, n - 2 * steps), cdiv(h, n - 2 * steps)
    launch, args = run(heat_steps, grid, (x, k, out, h, w), out, STEPS=steps, N=n, num_warps=8)

    def reference(*_):
        u = x
        for _ in range(steps):
            p = F.pad(u, (1, 1, 1, 1))
            u = u + k * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u)
        return u

    launch.reference = reference
    return launch, args


@triton.jit
def slope(p, step, live):
    a = tl.load(p + step, mask=live, other=0.0) - tl.load(p, mask=live, other=0.0)
    b = tl.load(p + 2 * step, mask=live, other=0.0) - tl.load(p - step, mask=live, other=0.0)
    return 1.125 * a - 0.041666667 * b


@triton.jit
def elastic_velocities(VX, VY, VZ, SXX, SYY, SZZ, SXY, SXZ, SYZ, RHO, DAMP, NX, NY, NZ, dt, BX: tl.constexpr):
    # Velocities of a staggered grid from six stresses, of fourth order, damped at the rim.
    x, y, z = tl.program_id(0) * BX + tl.arange(0, BX), tl.program_id(1), tl.program_id(2)
    live = (x >= 2) & (x < NX - 2) & (y >= 2) & (y < NY - 2) & (z >= 2) & (z < NZ - 2)
    at = (z * NY + y) * NX + x
    sy, sz = NX, NX * NY
    k = dt / tl.load(RHO + at, mask=live, other=1.0)
    damp = tl.load(DAMP + x, mask=live, other=0.0) * tl.load(DAMP + y) * tl.load(DAMP + z)
    vx = tl.load(VX + at, mask=live, other=0.0) + k * (slope(SXX + at, 1, live) + slope(SXY + at - sy, sy, live) + slope(SXZ + at - sz, sz, live))
    vy = tl.load(VY + at, mask=live, other=0.0) + k * (slope(SXY + at - 1, 1, live) + slope(SYY + at, sy, live) + slope(SYZ + at - sz, sz, live))
    vz = tl.load(VZ + at, mask=live, other=0.0) + k * (slope(SXZ + at - 1, 1, live) + slope(SYZ + at - sy, sy, live) + slope(SZZ + at, sz, live))
    tl.store(VX + at, vx * damp, mask=live)
    tl.store(VY + at, vy * damp, mask=live)
    tl.store(VZ + at, vz * damp, mask=live)


@case
def elastic_waves_velocities_of_six_stresses():
    nx, ny, nz = 221, 170, 150
    shape = nz, ny, nx
    start = [f32(*shape) for _ in range(3)]
    stress, rho, damp = [f32(*shape) for _ in range(6)], uniform(*shape) + 1, 1 - uniform(max(shape)) * 0.05
    v = [t.clone() for t in start]
    args = *v, *stress, rho, damp, nx, ny, nz, 0.1
    grid = cdiv(nx, 128), ny, nz

    def launch(*args):
        for a, b in zip(v, start):
            a.copy_(b)
        elastic_velocities[grid](*args, BX=128, num_warps=2)
        return tuple(v)

    def reference(*_):
        def slope(t, axis, shift):
            r = lambda n: torch.roll(t, -n - shift, axis)  # noqa: E731
            return 1.125 * (r(1) - r(0)) - (r(2) - r(-1)) / 24

        xx, yy, zz, xy, xz, yz = stress
        sums = (
            slope(xx, 2, 0) + slope(xy, 1, -1) + slope(xz, 0, -1),
            slope(xy, 2, -1) + slope(yy, 1, 0) + slope(yz, 0, -1),
            slope(xz, 2, -1) + slope(yz, 1, -1) + slope(zz, 0, 0),
        )
        k = damp[:nz, None, None] * damp[None, :ny, None] * damp[None, None, :nx]
        result = []
        for a, s in zip(start, sums):
            new = a.clone()
            cut = (slice(2, -2),) * 3
            new[cut] = ((a + 0.1 / rho * s) * k)[cut]
            result.append(new)
        return tuple(result)

    launch.reference = reference
    return launch, args


@triton.jit
def listed_forces(POS, KIND, TABLE, LIST, COUNT, FORCE, ENERGY, VIRIAL, N, most, cutoff2, BLOCK: tl.constexpr, NEAR: tl.constexpr):
    # Neighbors by list, columns of the list in a loop that ends at the longest of a block; kinds choose constants; sums in double.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    x, y = tl.load(POS + i * 3, mask=live, other=0.0), tl.load(POS + i * 3 + 1, mask=live, other=0.0)
    z = tl.load(POS + i * 3 + 2, mask=live, other=0.0)
    kind, count = tl.load(KIND + i, mask=live, other=0).to(tl.int32), tl.load(COUNT + i, mask=live, other=0)
    fx, fy, fz = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    energy, virial = tl.zeros((BLOCK,), tl.float64), tl.zeros((BLOCK,), tl.float64)
    for n0 in range(0, tl.max(count, 0), NEAR):
        n = n0 + tl.arange(0, NEAR)
        ok = live[:, None] & (n[None, :] < count[:, None])
        j = tl.load(LIST + i[:, None] * most + n[None, :], mask=ok, other=0)
        dx = x[:, None] - tl.load(POS + j * 3, mask=ok, other=0.0)
        dy = y[:, None] - tl.load(POS + j * 3 + 1, mask=ok, other=0.0)
        dz = z[:, None] - tl.load(POS + j * 3 + 2, mask=ok, other=0.0)
        r2 = dx * dx + dy * dy + dz * dz
        ok = ok & (r2 < cutoff2) & (r2 > 0)
        pair = kind[:, None] * 4 + tl.load(KIND + j, mask=ok, other=0).to(tl.int32)
        sigma2, epsilon = tl.load(TABLE + pair * 2), tl.load(TABLE + pair * 2 + 1)
        s = sigma2 / tl.where(ok, r2 + 0.05, 1.0)
        s6 = s * s * s
        force = tl.where(ok, 24 * epsilon * (2 * s6 * s6 - s6) / (r2 + 0.05), 0.0)
        fx += tl.sum(force * dx, 1)
        fy += tl.sum(force * dy, 1)
        fz += tl.sum(force * dz, 1)
        energy += tl.sum(tl.where(ok, 2 * epsilon * (s6 * s6 - s6), 0.0).to(tl.float64), 1)
        virial += tl.sum((force * r2).to(tl.float64), 1)
    tl.store(FORCE + i * 3, fx, mask=live)
    tl.store(FORCE + i * 3 + 1, fy, mask=live)
    tl.store(FORCE + i * 3 + 2, fz, mask=live)
    tl.store(ENERGY + tl.program_id(0), tl.sum(energy, 0))
    tl.store(VIRIAL + tl.program_id(0), tl.sum(virial, 0))


@case
def forces_of_listed_neighbors_of_four_kinds():
    n, most, block = 60_001, 96, 32
    pos, kind, table = uniform(n, 3) * 8, ints(0, 4, n, dtype="uint8"), uniform(4, 4, 2) * 0.5 + 0.1
    near, count = ints(0, n, n, most), ints(20, most + 1, n)
    force, blocks = zeros(n, 3, dtype="float32"), cdiv(n, block)
    energy, virial = zeros(blocks, dtype="float64"), zeros(blocks, dtype="float64")
    args = pos, kind, table, near, count, force, energy, virial, n, most, 16.0
    launch, args = run(listed_forces, (blocks,), args, (force, energy, virial), BLOCK=block, NEAR=16, num_warps=2)

    def reference(*_):
        p, j = pos.double(), near.long()
        d = p[:, None] - p[j]
        r2 = d.square().sum(-1)
        ok = (arange(most)[None] < count[:, None]) & (r2 < 16) & (r2 > 0)
        t = table.double()[kind.long()[:, None], kind.long()[j]]
        s6 = (t[..., 0] / (r2 + 0.05)) ** 3
        f = torch.where(ok, 24 * t[..., 1] * (2 * s6 * s6 - s6) / (r2 + 0.05), 0.0)
        e = torch.where(ok, 2 * t[..., 1] * (s6 * s6 - s6), 0.0).sum(1)
        sums = [F.pad(v, (0, blocks * block - n)).view(blocks, block).sum(1) for v in (e, (f * r2).sum(1))]
        return (f[..., None] * d).sum(1), *sums

    launch.reference = reference
    return launch, args


@triton.jit
def hermite_forces(P, V, M, A, J, N, eps2, BI: tl.constexpr, BJ: tl.constexpr):
    # Accelerations and their derivatives of all bodies by all others; columns read as rows of three planes.
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    x, y, z = tl.load(P + i, mask=i < N, other=0.0), tl.load(P + N + i, mask=i < N, other=0.0), tl.load(P + 2 * N + i, mask=i < N, other=0.0)
    u, v, w = tl.load(V + i, mask=i < N, other=0.0), tl.load(V + N + i, mask=i < N, other=0.0), tl.load(V + 2 * N + i, mask=i < N, other=0.0)
    ax, ay, az = tl.zeros((BI,), tl.float32), tl.zeros((BI,), tl.float32), tl.zeros((BI,), tl.float32)
    jx, jy, jz = tl.zeros((BI,), tl.float32), tl.zeros((BI,), tl.float32), tl.zeros((BI,), tl.float32)
    for j0 in tl.range(0, N, BJ, num_stages=2):
        j = j0 + tl.arange(0, BJ)
        ok = j < N
        m = tl.load(M + j, mask=ok, other=0.0)
        dx = tl.load(P + j, mask=ok, other=0.0)[None, :] - x[:, None]
        dy = tl.load(P + N + j, mask=ok, other=0.0)[None, :] - y[:, None]
        dz = tl.load(P + 2 * N + j, mask=ok, other=0.0)[None, :] - z[:, None]
        du = tl.load(V + j, mask=ok, other=0.0)[None, :] - u[:, None]
        dv = tl.load(V + N + j, mask=ok, other=0.0)[None, :] - v[:, None]
        dw = tl.load(V + 2 * N + j, mask=ok, other=0.0)[None, :] - w[:, None]
        inverse = tl.rsqrt(dx * dx + dy * dy + dz * dz + eps2)
        square = inverse * inverse
        k = m[None, :] * inverse * square
        turn = -3.0 * (dx * du + dy * dv + dz * dw) * square
        ax += tl.sum(k * dx, 1)
        ay += tl.sum(k * dy, 1)
        az += tl.sum(k * dz, 1)
        jx += tl.sum(k * (du + turn * dx), 1)
        jy += tl.sum(k * (dv + turn * dy), 1)
        jz += tl.sum(k * (dw + turn * dz), 1)
    for c in tl.static_range(3):
        tl.store(A + c * N + i, ax if c == 0 else (ay if c == 1 else az), mask=i < N)
        tl.store(J + c * N + i, jx if c == 0 else (jy if c == 1 else jz), mask=i < N)


@case
def bodies_accelerations_and_their_derivatives():
    n = 9_001
    p, v, m, a, j = f32(3, n), f32(3, n), uniform(n) / n, zeros(3, n, dtype="float32"), zeros(3, n, dtype="float32")
    launch, args = run(hermite_forces, (cdiv(n, 32),), (p, v, m, a, j, n, 0.01), (a, j), BI=32, BJ=64, num_warps=4)

    def reference(*_):
        result = []
        for part in arange(n, "int64").split(500):
            d, e = p[:, None, :] - p[:, part, None], v[:, None, :] - v[:, part, None]
            r2 = d.square().sum(0) + 0.01
            k = m * r2**-1.5
            turn = -3 * (d * e).sum(0) / r2
            result.append(torch.stack([(k * d).sum(-1), (k * (e + turn * d)).sum(-1)]))
        result = torch.cat(result, 2)
        return result[0], result[1]

    launch.reference = reference
    return launch, args


@triton.jit
def structure_factors(POS, CHARGE, WAVES, OUT, N, BK: tl.constexpr, BN: tl.constexpr):
    # Sums of cosines and sines of all charges for each wave vector, in double where it matters: the phase's whole turns are taken off.
    k = tl.program_id(0) * BK + tl.arange(0, BK)
    kx, ky, kz = tl.load(WAVES + k * 3)[:, None], tl.load(WAVES + k * 3 + 1)[:, None], tl.load(WAVES + k * 3 + 2)[:, None]
    real, imaginary = tl.zeros((BK,), tl.float64), tl.zeros((BK,), tl.float64)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        ok = n < N
        turns = kx * tl.load(POS + n * 3, mask=ok, other=0.0)[None, :] + ky * tl.load(POS + n * 3 + 1, mask=ok, other=0.0)[None, :]
        turns += kz * tl.load(POS + n * 3 + 2, mask=ok, other=0.0)[None, :]
        phase = ((turns - libdevice.rint(turns)) * 6.283185307179586).to(tl.float32)
        q = tl.load(CHARGE + n, mask=ok, other=0.0)[None, :]
        real += tl.sum(q * tl.cos(phase), 1).to(tl.float64)
        imaginary += tl.sum(q * tl.sin(phase), 1).to(tl.float64)
    tl.store(OUT + k * 2, real)
    tl.store(OUT + k * 2 + 1, imaginary)


@case
def structure_factors_of_charges():
    n, waves = 20_003, 1024
    pos, charge = torch.rand(n, 3, device="cuda", dtype=torch.float64), f32(n)
    k, out = ints(-20, 21, waves, 3).double(), zeros(waves, 2, dtype="float64")
    launch, args = run(structure_factors, (waves // 8,), (pos, charge, k, out, n), out, BK=8, BN=128, num_warps=4)

    def reference(*_):
        phase = (k @ pos.t()) * (2 * math.pi)
        return torch.stack([phase.cos() @ charge.double(), phase.sin() @ charge.double()], 1)

    launch.reference = reference
    return launch, args


@triton.jit
def factor_pivoted(A, LU, PIVOTS, M, N: tl.constexpr, TILE: tl.constexpr):
    # A small matrix in registers: the largest of a column is found, its row changes places, the rest is reduced.
    i, j = tl.arange(0, TILE), tl.arange(0, TILE)
    base = tl.program_id(0) * (N * N)
    inside = (i < N)[:, None] & (j < N)[None, :]
    a = tl.load(A + base + i[:, None] * N + j[None, :], mask=inside, other=0.0)
    for k in range(N):
        column = tl.sum(tl.where((j == k)[None, :], a, 0.0), 1)
        pivot = tl.argmax(tl.where((i >= k) & (i < N), tl.abs(column), -1.0), 0)
        tl.store(PIVOTS + tl.program_id(0) * N + k, pivot)
        from_ = tl.where(i == k, pivot, tl.where(i == pivot, k, i))
        a = tl.gather(a, tl.broadcast_to(from_[:, None], (TILE, TILE)), 0)
        row = tl.sum(tl.where((i == k)[:, None], a, 0.0), 0)
        column = tl.sum(tl.where((j == k)[None, :], a, 0.0), 1)
        factor = tl.where(i > k, column / tl.sum(tl.where(j == k, row, 0.0), 0), 0.0)
        a -= factor[:, None] * tl.where(j > k, row, 0.0)[None, :]
        a = tl.where((j == k)[None, :] & (i > k)[:, None], factor[:, None], a)
    tl.store(LU + base + i[:, None] * N + j[None, :], a, mask=inside)


@case
def lower_upper_of_24x24_with_pivots():
    b, n = 4000, 24
    a, lu, pivots = f32(b, n, n), zeros(b, n, n, dtype="float32"), zeros(b, n, dtype="int32")
    launch, args = run(factor_pivoted, (b,), (a, lu, pivots, n), (lu, pivots), N=n, TILE=32, num_warps=1)

    def reference(*_):
        factors, places = torch.linalg.lu_factor(a)
        return factors, places - 1

    launch.reference = reference
    return launch, args


@triton.jit
def rotate_columns(A, V, SINGULAR, ROWS: tl.constexpr, COLS: tl.constexpr, SWEEPS: tl.constexpr):
    # One-sided rotations of pairs of columns: all pairs of a round at once, partners by a round-robin; ends with columns' lengths.
    r, c = tl.arange(0, ROWS), tl.arange(0, COLS)
    base = tl.program_id(0) * ROWS * COLS
    a = tl.load(A + base + r[:, None] * COLS + c[None, :])
    for step in range(SWEEPS * (COLS - 1)):
        turn = step % (COLS - 1)
        # Of COLS - 1 seats in a circle, those whose sum is `turn` meet; the last column meets the seat that meets itself.
        met = (turn + (COLS - 1) - c) % (COLS - 1)
        partner = tl.where(c == COLS - 1, -1, tl.where(met == c, COLS - 1, met))
        alone = tl.max(tl.where((met == c) & (c < COLS - 1), c, -1), 0)
        partner = tl.where(partner == -1, alone, partner)
        b = tl.gather(a, tl.broadcast_to(partner[None, :], (ROWS, COLS)), 1)
        aa, bb, ab = tl.sum(a * a, 0), tl.sum(b * b, 0), tl.sum(a * b, 0)
        first = c < partner
        p, q = tl.where(first, aa, bb), tl.where(first, bb, aa)
        zeta = (q - p) / tl.where(tl.abs(ab) > 1e-20, 2 * ab, 1e-20)
        t = tl.where(zeta >= 0, 1.0, -1.0) / (tl.abs(zeta) + tl.sqrt(1 + zeta * zeta))
        t = tl.where(tl.abs(ab) > 1e-20, t, 0.0)
        cos = tl.rsqrt(1 + t * t)
        sin = tl.where(first, -cos * t, cos * t)
        a = cos[None, :] * a + sin[None, :] * b
    length = tl.sqrt(tl.sum(a * a, 0))
    tl.store(SINGULAR + tl.program_id(0) * COLS + c, tl.sort(length, descending=True))
    tl.store(V + base + r[:, None] * COLS + c[None, :], tl.abs(a))


@case
def singular_values_by_rotations_of_columns():
    b, rows, cols = 2000, 32, 16
    a, turned, values = f32(b, rows, cols), zeros(b, rows, cols, dtype="float32"), zeros(b, cols, dtype="float32")
    launch, args = run(rotate_columns, (b,), (a, turned, values), values, ROWS=rows, COLS=cols, SWEEPS=6, num_warps=2)
    launch.reference = lambda *_: torch.linalg.svdvals(a)
    return launch, args


@triton.jit
def rows_times_vector(START, INDEX, VALUE, X, Y, N, alpha, beta, BLOCK: tl.constexpr):
    # A warp a row, in double, offsets of long integers; y = alpha A x + beta y.
    row = tl.program_id(0).to(tl.int64)
    start, end = tl.load(START + row), tl.load(START + row + 1)
    acc = tl.zeros((BLOCK,), tl.float64)
    at = start + tl.arange(0, BLOCK)
    while start < end:
        ok = at < end
        j = tl.load(INDEX + at, mask=ok, other=0)
        value = tl.load(VALUE + at, mask=ok, other=0.0, eviction_policy="evict_first")
        acc += value * tl.load(X + j, mask=ok, other=0.0, eviction_policy="evict_last")
        at += BLOCK
        start += BLOCK
    tl.store(Y + row, alpha * tl.sum(acc, 0) + beta * tl.load(Y + row))


@case
def rows_times_vector_in_double_a_warp_each():
    n = 150_000
    lengths = ints(0, 60, n, dtype="int64")
    start = torch.cat([zeros(1, dtype="int64"), lengths.cumsum(0)])
    total = int(start[-1])
    index, value, x, y0 = ints(0, n, total), f64(total), f64(n), f64(n)
    y = y0.clone()

    def launch(*_):
        y.copy_(y0)
        rows_times_vector[(n,)](start, index, value, x, y, n, 1.5, -0.5, BLOCK=32, num_warps=1)
        return y

    def reference(*_):
        row = torch.repeat_interleave(arange(n, "int64"), lengths)
        return 1.5 * torch.zeros_like(y0).index_add_(0, row, value * x[index.long()]) - 0.5 * y0

    launch.reference = reference
    return launch, (start, index, value, x, y)


@triton.jit
def relax_edges(FROM, TO, LENGTH, KNOWN, DISTANCE, CHANGED, E, BLOCK: tl.constexpr):
    # Shorter ways by each edge: nonnegative floats are compared as integers, the way back is kept in the low half of a long word.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    u, v = tl.load(FROM + i, mask=i < E, other=0), tl.load(TO + i, mask=i < E, other=0)
    mine = tl.load(KNOWN + u, mask=i < E, other=0x7F80000000000000)
    far = (mine >> 32).to(tl.int32).to(tl.float32, bitcast=True) + tl.load(LENGTH + i, mask=i < E, other=0.0)
    new = (far.to(tl.int32, bitcast=True).to(tl.int64) << 32) | u.to(tl.int64)
    better = (i < E) & (new < tl.load(DISTANCE + v, mask=i < E, other=0))
    old = tl.atomic_min(DISTANCE + v, new, mask=better, sem="relaxed")
    if tl.max((better & (new < old)).to(tl.int32), 0) != 0:
        tl.atomic_or(CHANGED, 1, sem="relaxed")


@case
def edges_relaxed_by_minima_of_long_words():
    n, e = 200_000, 3_000_003
    u, v, length = ints(0, n, e), ints(0, n, e), uniform(e) + 0.01
    at = torch.where(uniform(n) < 0.5, uniform(n) * 10, 1e30)
    known = (at.view(torch.int32).long() << 32) | 0x7FFFFFFF
    distance, changed = known.clone(), zeros(1, dtype="int32")

    def launch(*_):
        distance.copy_(known)
        changed.zero_()
        relax_edges[(cdiv(e, 512),)](u, v, length, known, distance, changed, e, BLOCK=512, num_warps=4)
        return changed, (distance >> 32).to(torch.int32).view(torch.float32).clamp(max=20)

    def reference(*_):
        return torch.ones_like(changed), at.scatter_reduce(0, v.long(), at[u.long()] + length, "amin").clamp(max=20)

    launch.reference = reference
    return launch, (u, v)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def more_common(an, al, bn, bl):
    take = (bn > an) | ((bn == an) & (bl < al))
    return tl.where(take, bn, an), tl.where(take, bl, al)


@triton.jit
def propagate_labels(INDEX, LABEL, OUT, N, DEGREE: tl.constexpr, ROWS: tl.constexpr):
    # A vertex takes the label that most neighbors have: labels are sorted, runs measured by a scan, the longest run kept.
    r, d = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, DEGREE)
    j = tl.load(INDEX + r[:, None] * DEGREE + d[None, :], mask=(r < N)[:, None], other=0)
    label = tl.sort(tl.load(LABEL + j), 1)
    before = tl.gather(label, tl.broadcast_to(tl.maximum(d - 1, 0)[None, :], (ROWS, DEGREE)), 1)
    starts = (label != before) | (d == 0)[None, :]
    first = tl.associative_scan(tl.where(starts, d[None, :], 0), 1, larger)
    n, best = tl.reduce((d[None, :] - first + 1, label), 1, more_common)
    tl.store(OUT + r, best, mask=r < N)


@case
def labels_of_most_neighbors_by_sort():
    n, degree = 100_001, 32
    index, label, out = ints(0, n, n, degree), ints(0, 12, n), zeros(n, dtype="int32")
    launch, args = run(propagate_labels, (cdiv(n, 16),), (index, label, out, n), out, DEGREE=degree, ROWS=16, num_warps=4)

    def reference(*_):
        near = label[index.long()].long()
        counts = torch.zeros(n, 12, dtype=torch.int64, device=near.device).scatter_add_(1, near, torch.ones_like(near))
        return (counts * 16 + (15 - arange(12))[None]).argmax(1)

    launch.reference = reference
    return launch, args


@triton.jit
def independent_set(START, INDEX, STATE, OUT, N, seed, BLOCK: tl.constexpr):
    # A round of a maximal independent set: a vertex that is first of all its undecided neighbors, by a hash, goes in.
    v = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mine = tl.load(STATE + v, mask=v < N, other=1)
    at, end = tl.load(START + v, mask=v < N, other=0), tl.load(START + v + 1, mask=v < N, other=0)
    key = ((v * 0x2545F491 + seed) ^ (v >> 7)) & 0x7FFFFFFF
    best, seen = (mine == 0) & (v < N), tl.zeros((BLOCK,), tl.int32)
    while tl.max(tl.where(best, end - at, 0), 0) > 0:
        go = best & (at < end)
        u = tl.load(INDEX + at, mask=go, other=0)
        state = tl.load(STATE + u, mask=go, other=2)
        other = ((u * 0x2545F491 + seed) ^ (u >> 7)) & 0x7FFFFFFF
        loses = go & (state == 0) & ((other < key) | ((other == key) & (u < v))) & (u != v)
        best = best & (loses == 0)
        seen += go.to(tl.int32)
        at += 1
    tl.store(OUT + v, tl.where(mine == 0, best.to(tl.int8), mine), mask=v < N)


@case
def independent_vertices_of_a_round():
    n = 400_003
    degree = ints(1, 24, n, dtype="int64")
    start = torch.cat([zeros(1, dtype="int64"), degree.cumsum(0)])
    index, state, out = ints(0, n, int(start[-1])), (uniform(n) < 0.4).to(torch.int8) * 2, zeros(n, dtype="int8")
    args = start.to(torch.int32), index, state, out, n, 12345
    launch, args = run(independent_set, (cdiv(n, 128),), args, out, BLOCK=128, num_warps=4)

    def reference(*_):
        v = arange(n, "int64")
        wrapped = (v * 0x2545F491 + 12345) & 0xFFFFFFFF
        key = (wrapped ^ (v >> 7)) & 0x7FFFFFFF
        row, u = torch.repeat_interleave(v, degree), index.long()
        loses = (state[u] == 0) & ((key[u] < key[row]) | ((key[u] == key[row]) & (u < row))) & (u != row)
        beaten = torch.zeros(n, dtype=torch.int64, device=u.device).index_add_(0, row, loses.long()) > 0
        return torch.where(state == 0, (~beaten).to(torch.int8), state)

    launch.reference = reference
    return launch, args


@triton.jit
def draw(state):
    state ^= state >> 12
    state ^= state << 25
    state ^= state >> 27
    return state, ((state * 2685821657736338717) >> 40).to(tl.float32) * (1 / 16777216) + 2.9802322e-08


@triton.jit
def react(SEEDS, COUNTS, EVENTS, N, k1, k2, k3, end, BLOCK: tl.constexpr):
    # Reactions drawn one by one until each lane's time is over: prey and hunters, numbers by shifts of long words.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = tl.load(SEEDS + i, mask=i < N, other=1).to(tl.uint64, bitcast=True)
    x, y = tl.full((BLOCK,), 50.0, tl.float32), tl.full((BLOCK,), 30.0, tl.float32)
    time, events = tl.where(i < N, 0.0, end + tl.zeros((BLOCK,), tl.float32)), tl.zeros((BLOCK,), tl.int32)
    while tl.min(time, 0) < end:
        a, b, c = k1 * x, k2 * x * y, k3 * y
        total = a + b + c
        state, u = draw(state)
        state, w = draw(state)
        time = tl.where(total > 0, time - tl.log(u) / tl.maximum(total, 1e-9), end)
        go = time < end
        w *= total
        x += tl.where(go, tl.where(w < a, 1.0, tl.where(w < a + b, -1.0, 0.0)), 0.0)
        y += tl.where(go, tl.where(w < a, 0.0, tl.where(w < a + b, 1.0, -1.0)), 0.0)
        events += go.to(tl.int32)
    tl.store(COUNTS + i * 2, x, mask=i < N)
    tl.store(COUNTS + i * 2 + 1, y, mask=i < N)
    tl.store(EVENTS + i, events, mask=i < N)


@case
def reactions_drawn_until_time_is_over():
    n = 40_000
    seeds, counts, events = torch.randint(1, 2**62, (n,), device="cuda"), zeros(n, 2, dtype="float32"), zeros(n, dtype="int32")
    launch, args = run(react, (cdiv(n, 64),), (seeds, counts, events, n, 1.0, 0.02, 0.9, 2.0), None, BLOCK=64, num_warps=2)

    def means(*args):  # Paths part at a logarithm's last bit: means of all are compared.
        launch(*args)
        return torch.cat([counts.mean(0), counts.std(0), events.float().mean().view(1)])

    return means, args


@triton.jit
def cubic_volumes(T, P, OUT, PHASES, N, a0, b, omega, BLOCK: tl.constexpr):
    # Roots of a cubic equation of state in double: by cosines where there are three, by cube roots where there is one.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    t, p = tl.load(T + i, mask=i < N, other=1.0), tl.load(P + i, mask=i < N, other=1.0)
    alpha = 1 + omega * (1 - tl.sqrt(t))
    big_a, big_b = a0 * alpha * alpha * p / (t * t), b * p / t
    c2, c1, c0 = big_b - 1, big_a - 3 * big_b * big_b - 2 * big_b, big_b * big_b * big_b + big_b * big_b - big_a * big_b
    q, r = (c2 * c2 - 3 * c1) / 9, (2 * c2 * c2 * c2 - 9 * c2 * c1 + 27 * c0) / 54
    three = r * r < q * q * q
    root = tl.sqrt(tl.where(three, q, 1.0))
    angle = libdevice.acos(tl.where(three, r / (root * root * root), 0.0))
    largest = -2 * root * libdevice.cos((angle + 6.283185307179586) / 3) - c2 / 3
    smallest = -2 * root * libdevice.cos(angle / 3) - c2 / 3
    d = libdevice.cbrt(tl.abs(r) + tl.sqrt(tl.where(three, 0.0, r * r - q * q * q)))
    d = tl.where(r > 0, -d, d)
    one = d + tl.where(d != 0, q / d, 0.0) - c2 / 3
    tl.store(OUT + i, tl.where(three, largest, one), mask=i < N)
    tl.store(OUT + N + i, tl.where(three, smallest, one), mask=i < N)
    tl.store(PHASES + i, tl.where(three & (smallest > big_b), 2, 1).to(tl.int8), mask=i < N)


@case
def volumes_by_roots_of_cubics_in_double():
    n = 1_000_003
    t, p = torch.rand(n, device="cuda", dtype=torch.float64) * 0.6 + 0.6, torch.rand(n, device="cuda", dtype=torch.float64) * 1.5 + 0.05
    out, phases = zeros(2, n, dtype="float64"), zeros(n, dtype="int8")
    args = t, p, out, phases, n, 0.45724, 0.0778, 0.37464
    launch, args = run(cubic_volumes, (cdiv(n, 256),), args, out, BLOCK=256, num_warps=4)

    def reference(*_):
        a0, b, omega = (float(torch.tensor(v)) for v in (0.45724, 0.0778, 0.37464))
        alpha = 1 + omega * (1 - t.sqrt())
        big_a, big_b = a0 * alpha**2 * p / t**2, b * p / t
        c2, c1, c0 = big_b - 1, big_a - 3 * big_b**2 - 2 * big_b, big_b**3 + big_b**2 - big_a * big_b
        q, r = (c2**2 - 3 * c1) / 9, (2 * c2**3 - 9 * c2 * c1 + 27 * c0) / 54
        three = r * r < q**3
        angle = torch.acos((r / q.clamp(min=1e-30) ** 1.5).clamp(-1, 1))
        high = -2 * q.clamp(min=0).sqrt() * torch.cos((angle + 2 * math.pi) / 3) - c2 / 3
        low = -2 * q.clamp(min=0).sqrt() * torch.cos(angle / 3) - c2 / 3
        d = -torch.sign(r) * (r.abs() + (r * r - q**3).clamp(min=0).sqrt()) ** (1 / 3)
        one = d + q / d - c2 / 3
        return torch.stack([torch.where(three, high, one), torch.where(three, low, one)])

    launch.reference = reference
    return launch, args


@triton.jit
def associated_legendre(X, COEFF, OUT, N, LMAX, m, start, BLOCK: tl.constexpr):
    # Sums of normalized associated functions of one order by their recurrence, all degrees, in double.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + i, mask=i < N, other=0.0)
    s = tl.sqrt(1 - x * x)
    power = tl.full((BLOCK,), 1.0, tl.float64) * start
    for _ in range(m):
        power *= s
    before, now = tl.zeros((BLOCK,), tl.float64), power
    total = now * tl.load(COEFF + m)
    down = tl.full((), 0.0, tl.float64)
    for l in range(m + 1, LMAX):
        ll, mm = (l * l).to(tl.float64), (m * m).to(tl.float64)
        a = tl.sqrt((4 * ll - 1) / (ll - mm))
        before, now = now, a * (x * now - down * before)
        down = 1 / a
        total += now * tl.load(COEFF + l)
    tl.store(OUT + i, total, mask=i < N)


@case
def sums_of_associated_functions_of_order_20():
    n, lmax, m = 100_003, 200, 20
    x = torch.rand(n, device="cuda", dtype=torch.float64) * 1.98 - 0.99
    coeff, out = f64(lmax), zeros(n, dtype="float64")
    launch, args = run(associated_legendre, (cdiv(n, 128),), (x, coeff, out, n, lmax, m, 0.75), out, BLOCK=128, num_warps=4)

    def reference(*_):
        before, now, down = torch.zeros_like(x), 0.75 * (1 - x * x).sqrt() ** m, 0.0
        total = now * coeff[m]
        for l in range(m + 1, lmax):  # noqa: E741: the degree's letter
            a = math.sqrt((4 * l * l - 1) / (l * l - m * m))
            before, now = now, a * (x * now - down * before)
            down = 1 / a
            total = total + now * coeff[l]
        return total

    launch.reference = reference
    return launch, args


@triton.jit
def special_values(X, OUT, N, BLOCK: tl.constexpr):
    # Nine functions of the device's library of doubles, one after the other.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(X + i, mask=i < N, other=1.0)
    y = libdevice.j0(x) + libdevice.y0(x) * 0.5 + libdevice.lgamma(x + 1)
    y += libdevice.erfcx(x) + libdevice.normcdfinv(x * 0.05 + 0.01) + libdevice.cyl_bessel_i0(x * 0.1)
    y += libdevice.asinh(x) * libdevice.log1p(x) - libdevice.expm1(-x)
    tl.store(OUT + i, y, mask=i < N)


@case
def special_functions_of_doubles():
    n = 600_001
    x, out = torch.rand(n, device="cuda", dtype=torch.float64) * 15 + 0.05, zeros(n, dtype="float64")
    launch, args = run(special_values, (cdiv(n, 128),), (x, out, n), out, BLOCK=128, num_warps=4)

    def reference(*_):
        s = torch.special
        y = s.bessel_j0(x) + s.bessel_y0(x) * 0.5 + torch.lgamma(x + 1) + s.erfcx(x) + s.ndtri(x * 0.05 + 0.01) + torch.i0(x * 0.1)
        return y + torch.asinh(x) * torch.log1p(x) - torch.expm1(-x)

    launch.reference = reference
    return launch, args


@triton.jit
def two_sum(ah, al, bh, bl):
    s = ah + bh
    v = s - ah
    e = (ah - (s - v)) + (bh - v) + (al + bl)
    high = s + e
    return high, e - (high - s)


@triton.jit
def long_double_rows(AH, AL, XH, XL, YH, YL, N, BLOCK: tl.constexpr):
    # A matrix of sums of two doubles by such a vector: products with their errors by fused multiply-adds, sums by a reduction of pairs.
    row = tl.program_id(0)
    high, low = tl.zeros((BLOCK,), tl.float64), tl.zeros((BLOCK,), tl.float64)
    for n0 in range(0, N, BLOCK):
        n = n0 + tl.arange(0, BLOCK)
        a, b = tl.load(AH + row * N + n, mask=n < N, other=0.0), tl.load(AL + row * N + n, mask=n < N, other=0.0)
        x, y = tl.load(XH + n, mask=n < N, other=0.0), tl.load(XL + n, mask=n < N, other=0.0)
        p = a * x
        e = tl.fma(a, x, -p) + (a * y + b * x)
        high, low = two_sum(high, low, p, e)
    high, low = tl.reduce((high, low), 0, two_sum)
    tl.store(YH + row, high)
    tl.store(YL + row, low)


@case
def rows_of_sums_of_two_doubles():
    rows, n = 2000, 3001
    ah, xh = f64(rows, n), f64(n)
    al, xl = f64(rows, n) * 1e-17 * ah.abs(), f64(n) * 1e-17 * xh.abs()
    yh, yl = zeros(rows, dtype="float64"), zeros(rows, dtype="float64")
    launch, args = run(long_double_rows, (rows,), (ah, al, xh, xl, yh, yl, n), yh, BLOCK=256, num_warps=2)
    launch.reference = lambda *_: ah @ xh
    return launch, args


@triton.jit
def vandermonde(A, B, C, DT, OUT, L, N: tl.constexpr, BL: tl.constexpr):
    # The kernel of a diagonal state space: sums over states of complex powers, by exponentials and angles; bf16 out.
    h, t = tl.program_id(1), tl.program_id(0) * BL + tl.arange(0, BL)
    n = tl.arange(0, N)
    dt = tl.load(DT + h)
    re, im = -tl.exp(tl.load(A + (h * N + n) * 2)) * dt, tl.load(A + (h * N + n) * 2 + 1) * dt
    br, bi = tl.load(B + (h * N + n) * 2), tl.load(B + (h * N + n) * 2 + 1)
    cr, ci = tl.load(C + (h * N + n) * 2), tl.load(C + (h * N + n) * 2 + 1)
    xr, xi = br * cr - bi * ci, br * ci + bi * cr
    grow = tl.exp(re[:, None] * t[None, :])
    angle = im[:, None] * t[None, :]
    y = grow * (xr[:, None] * tl.cos(angle) - xi[:, None] * tl.sin(angle))
    tl.store(OUT + h * L + t, (2 * tl.sum(y, 0)).to(tl.bfloat16), mask=t < L)


@case
def kernels_of_diagonal_states():
    h, n, length = 256, 32, 4003
    a = torch.stack([f32(h, n) * 0.3 - 0.7, uniform(h, n) * 20], -1).contiguous()
    b, c, dt, out = f32(h, n, 2), f32(h, n, 2), uniform(h) * 0.05 + 0.001, zeros(h, length, dtype="bfloat16")
    launch, args = run(vandermonde, (cdiv(length, 128), h), (a, b, c, dt, out, length), out, N=n, BL=128, num_warps=4)

    def reference(*_):
        z = torch.complex(-a[..., 0].exp(), a[..., 1]).to(torch.complex128) * dt[:, None]
        x = torch.view_as_complex(b).to(torch.complex128) * torch.view_as_complex(c)
        t, out = arange(length).double(), []
        for i in range(h):
            out.append(2 * (x[i, :, None] * torch.exp(z[i, :, None] * t)).sum(0).real)
        return torch.stack(out)

    launch.reference = reference
    return launch, args


@triton.jit
def turn_and_add(ar, ai, xr, xi, br, bi, yr, yi):
    return ar * br - ai * bi, ar * bi + ai * br, br * xr - bi * xi + yr, br * xi + bi * xr + yi


@triton.jit
def complex_states(LAM, GATE, BU, OUT, T, D, CHUNK: tl.constexpr, BD: tl.constexpr):
    # Diagonal complex states whose steps depend on the input: a scan of four operands a chunk, carried on to the next.
    d, b = tl.program_id(0) * BD + tl.arange(0, BD), tl.program_id(1)
    c = tl.arange(0, CHUNK)
    lr, li = tl.load(LAM + d * 2), tl.load(LAM + d * 2 + 1)
    hr, hi = tl.zeros((BD,), tl.float32), tl.zeros((BD,), tl.float32)
    for t0 in range(0, T, CHUNK):
        at = (b * T + t0 + c)[:, None] * D + d[None, :]
        live = (t0 + c < T)[:, None]
        g = tl.load(GATE + at, mask=live, other=0.0).to(tl.float32)
        g = 1 / (1 + tl.exp(-g))
        size, angle = tl.exp(lr[None, :] * g), li[None, :] * g
        xr, xi = tl.load(BU + at * 2, mask=live, other=0.0).to(tl.float32), tl.load(BU + at * 2 + 1, mask=live, other=0.0).to(tl.float32)
        ar, ai, xr, xi = tl.associative_scan((size * tl.cos(angle), size * tl.sin(angle), xr, xi), 0, turn_and_add)
        yr, yi = ar * hr[None, :] - ai * hi[None, :] + xr, ar * hi[None, :] + ai * hr[None, :] + xi
        tl.store(OUT + at, (yr * yr + yi * yi).to(OUT.dtype.element_ty), mask=live)
        last = (c == CHUNK - 1)[:, None]
        hr, hi = tl.sum(tl.where(last, yr, 0.0), 0), tl.sum(tl.where(last, yi, 0.0), 0)


@case
def complex_states_by_scans_of_four():
    b, t, d = 8, 1024, 512
    lam = torch.stack([-uniform(d) - 0.05, uniform(d) * 3], 1).contiguous()
    gate, bu, out = rand(b, t, d, dtype="bfloat16"), rand(b, t, d, 2, dtype="bfloat16"), zeros(b, t, d, dtype="float32")
    launch, args = run(complex_states, (d // 16, b), (lam, gate, bu, out, t, d), out, CHUNK=64, BD=16, num_warps=4)

    def reference(*_):
        a = torch.exp(torch.view_as_complex(lam) * torch.sigmoid(gate.float()))
        x, h, ys = torch.view_as_complex(bu.float()), torch.zeros(b, d, device=lam.device, dtype=torch.complex64), []
        for i in range(t):
            h = a[:, i] * h + x[:, i]
            ys.append(h.abs().square())
        return torch.stack(ys, 1)

    launch.reference = reference
    return launch, args


@triton.jit
def cells_with_memory(GATES, R, OUT, T, B, H: tl.constexpr, D: tl.constexpr, BB: tl.constexpr):
    # Exponential gates with a running maximum; four recurrent matrices of a head stay in registers as operands of dots.
    head, b = tl.program_id(0), tl.program_id(1) * BB + tl.arange(0, BB)
    i, j = tl.arange(0, D), tl.arange(0, D)
    at = R + (head * 4 * D + i[:, None]) * D + j[None, :]
    rz, ri, rf, ro = tl.load(at), tl.load(at + D * D), tl.load(at + 2 * D * D), tl.load(at + 3 * D * D)
    h = tl.zeros((BB, D), tl.bfloat16)
    c, n, m = tl.zeros((BB, D), tl.float32), tl.zeros((BB, D), tl.float32), tl.zeros((BB, D), tl.float32)
    for t in range(T):
        x = GATES + ((t * B + b[:, None]) * (4 * H) + head) * D + j[None, :]
        z = tl.load(x).to(tl.float32) + tl.dot(h, rz)
        e = tl.load(x + H * D).to(tl.float32) + tl.dot(h, ri)
        f = tl.load(x + 2 * H * D).to(tl.float32) + tl.dot(h, rf)
        o = tl.load(x + 3 * H * D).to(tl.float32) + tl.dot(h, ro)
        f = tl.minimum(f, 0.0) - tl.log(1 + tl.exp(-tl.abs(f)))
        new = tl.maximum(f + m, e)
        keep, put = tl.exp(f + m - new), tl.exp(e - new)
        z = 1 - 2 / (1 + tl.exp(2 * z))
        c, n, m = keep * c + put * z, keep * n + put, new
        y = c / tl.maximum(n, 1e-6) / (1 + tl.exp(-o))
        h = y.to(tl.bfloat16)
        tl.store(OUT + ((t * B + b[:, None]) * H + head) * D + j[None, :], h)


@case
def exponential_cells_with_recurrent_dots():
    t, b, heads, d = 128, 256, 4, 64
    gates, r = rand(t, b, 4, heads, d, dtype="bfloat16"), rand(heads, 4, d, d, dtype="bfloat16") * 0.1
    out = zeros(t, b, heads, d, dtype="bfloat16")
    launch, args = run(cells_with_memory, (heads, b // 16), (gates, r, out, t, b), out, H=heads, D=d, BB=16, num_warps=4, num_stages=1)

    def reference(*_):
        h = torch.zeros(b, heads, d, device=out.device)
        c, n, m, ys = h, h, h, []
        for s in range(t):
            z, e, f, o = (gates[s, :, k].float() + torch.einsum("bhi,hij->bhj", h, r[:, k].float()) for k in range(4))
            f = F.logsigmoid(f)
            new = torch.maximum(f + m, e)
            keep, put = (f + m - new).exp(), (e - new).exp()
            c, n, m = keep * c + put * z.tanh(), keep * n + put, new
            h = (c / n.clamp(min=1e-6) * o.sigmoid()).to(torch.bfloat16).float()
            ys.append(h)
        return torch.stack(ys)

    launch.reference = reference
    return launch, args


@triton.jit
def decayed_scores(Q, K, G, A, T, scale, D: tl.constexpr, L: tl.constexpr, S: tl.constexpr):
    # Scores of a chunk whose keys' features decay each on its own: blocks of S rows, each with gates less the block's first ones.
    chunk, bh = tl.program_id(0), tl.program_id(1)
    s, d, c = tl.arange(0, S), tl.arange(0, D), tl.arange(0, S)
    base = (bh * T + chunk * L) * D
    for i in tl.static_range(L // S):
        row = base + (i * S + s)[:, None] * D + d[None, :]
        g = tl.load(G + row)
        first = tl.load(G + base + i * S * D + d)
        q = tl.load(Q + row).to(tl.float32) * tl.exp(g - first[None, :]) * scale
        to = A + ((bh * T + chunk * L + i * S + s)[:, None]) * L + c[None, :]
        for j in tl.static_range(i):
            col = base + (j * S + c)[None, :] * D + d[:, None]
            k = tl.load(K + col).to(tl.float32) * tl.exp(first[:, None] - tl.load(G + col))
            tl.store(to + j * S, tl.dot(q.to(tl.bfloat16), k.to(tl.bfloat16)))
        for x in range(S):
            at = base + (i * S + x) * D + d
            one, gate = tl.load(K + at).to(tl.float32), tl.load(G + at)
            column = tl.sum(tl.load(Q + row).to(tl.float32) * (one[None, :] * tl.exp(g - gate[None, :])), 1) * scale
            tl.store(A + (bh * T + chunk * L + i * S + s) * L + i * S + x, tl.where(s >= x, column, 0.0))


@case
def scores_of_features_that_decay_each():
    bh, t, d, length = 32, 1024, 64, 64
    q, k = rand(bh, t, d, dtype="bfloat16"), rand(bh, t, d, dtype="bfloat16")
    g = -(uniform(bh, t // length, length, d) * 0.2).cumsum(2).view(bh, t, d)
    a = zeros(bh, t, length, dtype="float32")
    launch, args = run(decayed_scores, (t // length, bh), (q, k, g, a, t, d**-0.5), a, D=d, L=length, S=16, num_warps=2)

    def reference(*_):
        qc, kc, gc = (v.float().view(bh, -1, length, d) for v in (q, k, g))
        i = arange(length)
        rows = [(qc * kc[:, :, j : j + 1] * (gc - gc[:, :, j : j + 1]).clamp(max=0).exp()).sum(-1) for j in range(length)]
        s = torch.stack(rows, -1) * d**-0.5
        return torch.where(i[:, None] >= i[None, :], s, 0.0).view(bh, t, length)

    launch.reference = reference
    return launch, args
