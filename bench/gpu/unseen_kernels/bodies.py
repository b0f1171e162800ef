"""Arithmetic more than memory: fits, paths, forces, fluxes, images and sounds, special functions, tables of four axes."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import case, cdiv, cleared, f32, full, ints, rand, run, uniform, zeros


@triton.jit
def fit_decays(TIME, Y, START, FIT, COST, N, STEPS: tl.constexpr, S: tl.constexpr, BLOCK: tl.constexpr):
    # Levenberg and Marquardt's steps for a exp(-b t) + c: six sums along samples, a system of three by three solved in registers.
    i, j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, S)
    live = i < N
    t = tl.load(TIME + j)[None, :]
    y = tl.load(Y + i[:, None] * S + j[None, :], mask=live[:, None], other=0.0)
    a, b, c = tl.load(START + i, mask=live, other=1.0), tl.full((BLOCK,), 1.0, tl.float32), tl.zeros((BLOCK,), tl.float32)
    damp = 0.1
    for _ in range(STEPS):
        e = tl.exp(-b[:, None] * t)
        jb = -a[:, None] * t * e
        r = y - a[:, None] * e - c[:, None]
        aa, ab, ac = tl.sum(e * e, 1) * (1.0 + damp), tl.sum(e * jb, 1), tl.sum(e, 1)
        bb, bc, cc = tl.sum(jb * jb, 1) * (1.0 + damp) + 1e-6, tl.sum(jb, 1), S * (1.0 + damp)
        ra, rb, rc = tl.sum(e * r, 1), tl.sum(jb * r, 1), tl.sum(r, 1)
        ia, ib, ic = bb * cc - bc * bc, ac * bc - ab * cc, ab * bc - ac * bb
        inverse = 1.0 / (aa * ia + ab * ib + ac * ic)
        a += (ia * ra + ib * rb + ic * rc) * inverse
        b += (ib * ra + (aa * cc - ac * ac) * rb + (ab * ac - aa * bc) * rc) * inverse
        c += (ic * ra + (ab * ac - aa * bc) * rb + (aa * bb - ab * ab) * rc) * inverse
        damp *= 0.5
    r = y - a[:, None] * tl.exp(-b[:, None] * t) - c[:, None]
    tl.store(FIT + i, a, mask=live)
    tl.store(FIT + N + i, b, mask=live)
    tl.store(FIT + 2 * N + i, c, mask=live)
    tl.store(COST + i, tl.sum(r * r, 1), mask=live)


@case
def decays_fitted_by_damped_steps():
    n, s = 200_000, 32
    t = torch.linspace(0, 4, s, device="cuda")
    a, b, c = uniform(n) + 1, uniform(n) + 0.6, uniform(n) * 0.5
    y = a[:, None] * torch.exp(-b[:, None] * t) + c[:, None] + f32(n, s) * 0.005
    fit, cost = zeros(3, n, dtype="float32"), zeros(n, dtype="float32")
    args = t, y, a * 1.2, fit, cost, n
    return run(fit_decays, (cdiv(n, 32),), args, (fit, cost), STEPS=10, S=s, BLOCK=32, num_warps=4)


@triton.jit
def distance_to_scene(x, y, z, SPHERES, COUNT):
    # A smooth minimum of distances to spheres, with ripples, above a floor.
    total = tl.zeros_like(x)
    for s in range(COUNT):
        dx, dy, dz = x - tl.load(SPHERES + 4 * s), y - tl.load(SPHERES + 4 * s + 1), z - tl.load(SPHERES + 4 * s + 2)
        total += tl.exp2(-6.0 * (tl.sqrt(dx * dx + dy * dy + dz * dz) - tl.load(SPHERES + 4 * s + 3)))
    ripples = 0.02 * tl.sin(7.0 * x) * tl.sin(7.0 * y) * tl.sin(7.0 * z)
    return tl.minimum(-tl.log2(total + 1e-30) * 0.16666667 + ripples, y + 1.5)


@triton.jit
def march_to_surfaces(SPHERES, OUT, W, H, COUNT, STEPS, BLOCK: tl.constexpr):
    # Rays step by the distance that is free; then a normal of six more distances, and light.
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    u, v = ((p % W).to(tl.float32) - 0.5 * W) / H, ((p // W).to(tl.float32) - 0.5 * H) / H
    r = tl.rsqrt(u * u + v * v + 1.0)
    dx, dy, dz = u * r, -v * r, r
    t, near = tl.zeros_like(u), tl.full((BLOCK,), 1e9, tl.float32)
    for _ in range(STEPS):
        d = distance_to_scene(dx * t, dy * t, dz * t - 4.0, SPHERES, COUNT)
        near = tl.minimum(near, tl.abs(d) / (t + 0.1))
        t = tl.minimum(t + 0.8 * d, 20.0)
    x, y, z = dx * t, dy * t, dz * t - 4.0
    h = 0.02
    nx = distance_to_scene(x + h, y, z, SPHERES, COUNT) - distance_to_scene(x - h, y, z, SPHERES, COUNT)
    ny = distance_to_scene(x, y + h, z, SPHERES, COUNT) - distance_to_scene(x, y - h, z, SPHERES, COUNT)
    nz = distance_to_scene(x, y, z + h, SPHERES, COUNT) - distance_to_scene(x, y, z - h, SPHERES, COUNT)
    light = (0.5 * nx + 0.7 * ny - 0.5 * nz) / (tl.sqrt(nx * nx + ny * ny + nz * nz) + 1e-3)
    tl.store(OUT + p, (0.6 + 0.4 * light) * tl.exp(-0.1 * t))
    tl.store(OUT + W * H + p, near)


@case
def rays_march_to_smooth_surfaces():
    w, h, count = 640, 360, 12
    spheres = torch.cat((f32(count, 3) * 0.9, uniform(count, 1) * 0.5 + 0.2), 1)
    out = zeros(2, h, w, dtype="float32")
    return run(march_to_surfaces, (w * h // 128,), (spheres, out, w, h, count, 24), out, BLOCK=128, num_warps=4)


@triton.jit
def flux(h, u, v, q, k, j):
    # Rusanov's flux of water between two cells along the first velocity.
    speed = tl.maximum(tl.abs(u) + tl.sqrt(9.81 * h), tl.abs(k) + tl.sqrt(9.81 * q))
    fh = 0.5 * (h * u + q * k) - 0.5 * speed * (q - h)
    fu = 0.5 * (h * u * u + 4.905 * h * h + q * k * k + 4.905 * q * q) - 0.5 * speed * (q * k - h * u)
    fv = 0.5 * (h * u * v + q * k * j) - 0.5 * speed * (q * j - h * v)
    return fh, fu, fv


@triton.jit
def cell(STATE, y, x, W, H):
    at = tl.maximum(tl.minimum(y, H - 1), 0)[:, None] * W + tl.maximum(tl.minimum(x, W - 1), 0)[None, :]
    h = tl.load(STATE + at)
    return h, tl.load(STATE + W * H + at) / h, tl.load(STATE + 2 * W * H + at) / h


@triton.jit
def shallow_water(STATE, NEXT, W, H, share, BY: tl.constexpr, BX: tl.constexpr):
    # Four fluxes of a cell, with fields of five cells; twelve of fifteen loads overlap with those of neighbors.
    y, x = tl.program_id(1) * BY + tl.arange(0, BY), tl.program_id(0) * BX + tl.arange(0, BX)
    h, u, v = cell(STATE, y, x, W, H)
    a, b, c = cell(STATE, y, x - 1, W, H)
    eh, eu, ev = flux(a, b, c, h, u, v)
    a, b, c = cell(STATE, y, x + 1, W, H)
    fh, fu, fv = flux(h, u, v, a, b, c)
    a, b, c = cell(STATE, y - 1, x, W, H)
    gh, gv, gu = flux(a, c, b, h, v, u)
    a, b, c = cell(STATE, y + 1, x, W, H)
    kh, kv, ku = flux(h, v, u, a, c, b)
    inside = (y < H)[:, None] & (x < W)[None, :]
    at = y[:, None] * W + x[None, :]
    tl.store(NEXT + at, h - share * (fh - eh + kh - gh), mask=inside)
    tl.store(NEXT + W * H + at, h * u - share * (fu - eu + ku - gu), mask=inside)
    tl.store(NEXT + 2 * W * H + at, h * v - share * (fv - ev + kv - gv), mask=inside)


@case
def shallow_water_fluxes_of_2000():
    w, h = 2000, 1500
    state, out = f32(3, h, w) * 0.3, zeros(3, h, w, dtype="float32")
    state[0] = uniform(h, w) + 1
    return run(shallow_water, (cdiv(w, 64), cdiv(h, 8)), (state, out, w, h, 0.05), out, BY=8, BX=64, num_warps=4)


@triton.jit
def least_sums(A, B, C, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # C[i, j] = least over k of A[i, k] + B[k, j], not above C: a tile of three axes and its least.
    m, n, k_in = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    least = tl.load(C + m[:, None] * N + n[None, :])
    for k0 in range(0, N, BK):
        a = tl.load(A + m[:, None] * N + (k0 + k_in)[None, :])
        b = tl.load(B + (k0 + k_in)[:, None] * N + n[None, :])
        least = tl.minimum(least, tl.min(a[:, :, None] + b[None, :, :], 1))
    tl.store(C + m[:, None] * N + n[None, :], least)


@case
def shortest_paths_of_one_more_edge():
    n = 1024
    a, c = uniform(n, n), full(9.0, n, n)
    launch, args = run(least_sums, (n // 32, n // 64), (a, a.t().contiguous(), c, n), c, BM=32, BN=64, BK=4, num_warps=8)

    def again(*args):
        c.fill_(9.0)
        return launch(*args)

    return again, args


@triton.jit
def screened_forces(X, CHARGE, FORCE, ENERGY, N, box, alpha, BI: tl.constexpr, BJ: tl.constexpr):
    # Real-space part of Ewald's sum in a periodic box: erfc and exp of every pair, nearest images.
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    xi, yi, zi = tl.load(X + i), tl.load(X + N + i), tl.load(X + 2 * N + i)
    qi = tl.load(CHARGE + i)
    fx, fy, fz, e = (tl.zeros((BI,), tl.float32), tl.zeros((BI,), tl.float32), tl.zeros((BI,), tl.float32), tl.zeros((BI,), tl.float32))
    for j0 in range(0, N, BJ):
        j = j0 + tl.arange(0, BJ)
        dx = xi[:, None] - tl.load(X + j)[None, :]
        dy = yi[:, None] - tl.load(X + N + j)[None, :]
        dz = zi[:, None] - tl.load(X + 2 * N + j)[None, :]
        dx -= box * libdevice.rint(dx / box)
        dy -= box * libdevice.rint(dy / box)
        dz -= box * libdevice.rint(dz / box)
        r2 = dx * dx + dy * dy + dz * dz + 0.05
        inverse = tl.rsqrt(r2)
        ar = alpha * r2 * inverse
        qq = tl.where(i[:, None] == j[None, :], 0.0, qi[:, None] * tl.load(CHARGE + j)[None, :])
        tail = libdevice.erfc(ar) * inverse
        pull = qq * (tail + 1.12837917 * alpha * tl.exp(-ar * ar)) * inverse * inverse
        e += tl.sum(qq * tail, 1)
        fx += tl.sum(pull * dx, 1)
        fy += tl.sum(pull * dy, 1)
        fz += tl.sum(pull * dz, 1)
    tl.store(FORCE + i, fx)
    tl.store(FORCE + N + i, fy)
    tl.store(FORCE + 2 * N + i, fz)
    tl.store(ENERGY + i, 0.5 * e)


@case
def ewald_sums_in_real_space():
    n = 8448
    outs = zeros(3, n, dtype="float32"), zeros(n, dtype="float32")
    args = uniform(3, n) * 20, f32(n), *outs, n, 20.0, 0.35
    return run(screened_forces, (n // 32,), args, outs, BI=32, BJ=64, num_warps=4)


@triton.jit
def cross(ax, ay, az, bx, by, bz):
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx


@triton.jit
def push(FORCE, atom, x, y, z, live):
    tl.atomic_add(FORCE + atom * 3, x, mask=live, sem="relaxed")
    tl.atomic_add(FORCE + atom * 3 + 1, y, mask=live, sem="relaxed")
    tl.atomic_add(FORCE + atom * 3 + 2, z, mask=live, sem="relaxed")


@triton.jit
def torsions(X, ATOM, KIND, TABLE, FORCE, ENERGY, N, BLOCK: tl.constexpr):
    # Angles between planes of four atoms, of gathered positions; forces of all four are added, energies of three terms summed.
    t = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = t < N
    i, j = tl.load(ATOM + 4 * t, mask=live, other=0), tl.load(ATOM + 4 * t + 1, mask=live, other=1)
    k, l = tl.load(ATOM + 4 * t + 2, mask=live, other=2), tl.load(ATOM + 4 * t + 3, mask=live, other=3)
    jx, jy, jz = tl.load(X + 3 * j), tl.load(X + 3 * j + 1), tl.load(X + 3 * j + 2)
    kx, ky, kz = tl.load(X + 3 * k), tl.load(X + 3 * k + 1), tl.load(X + 3 * k + 2)
    ax, ay, az = jx - tl.load(X + 3 * i), jy - tl.load(X + 3 * i + 1), jz - tl.load(X + 3 * i + 2)
    bx, by, bz = kx - jx, ky - jy, kz - jz
    cx, cy, cz = tl.load(X + 3 * l) - kx, tl.load(X + 3 * l + 1) - ky, tl.load(X + 3 * l + 2) - kz
    mx, my, mz = cross(ax, ay, az, bx, by, bz)
    nx, ny, nz = cross(bx, by, bz, cx, cy, cz)
    b2 = tl.maximum(bx * bx + by * by + bz * bz, 0.1)
    length = tl.sqrt(b2)
    phi = libdevice.atan2(length * (ax * nx + ay * ny + az * nz), mx * nx + my * ny + mz * nz)
    kind = tl.load(KIND + t, mask=live, other=0).to(tl.int32) * 6
    slope, energy = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for term in tl.static_range(3):
        size, phase = tl.load(TABLE + kind + 2 * term), tl.load(TABLE + kind + 2 * term + 1)
        energy += size * (1.0 + tl.cos((term + 1) * phi - phase))
        slope -= size * (term + 1) * tl.sin((term + 1) * phi - phase)
    fm = slope * length / tl.maximum(mx * mx + my * my + mz * mz, 0.3)
    fn = -slope * length / tl.maximum(nx * nx + ny * ny + nz * nz, 0.3)
    p, q = (ax * bx + ay * by + az * bz) / b2, (cx * bx + cy * by + cz * bz) / b2
    sx, sy, sz = p * fm * mx - q * fn * nx, p * fm * my - q * fn * ny, p * fm * mz - q * fn * nz
    push(FORCE, i, fm * mx, fm * my, fm * mz, live)
    push(FORCE, l, fn * nx, fn * ny, fn * nz, live)
    push(FORCE, j, -fm * mx - sx, -fm * my - sy, -fm * mz - sz, live)
    push(FORCE, k, sx - fn * nx, sy - fn * ny, sz - fn * nz, live)
    tl.atomic_add(ENERGY, tl.sum(tl.where(live, energy, 0.0), 0))


@case
def torsions_of_four_atoms():
    n, atoms = 300_000, 100_000
    atom = ints(0, atoms - 40, n, 1).sort(0)[0] + torch.arange(4, device="cuda") * 9
    force, energy = zeros(atoms, 3, dtype="float32"), zeros(1, dtype="float32")
    args = f32(atoms, 3), atom.to(torch.int32), ints(0, 20, n, dtype="uint8"), f32(20, 6), force, energy, n
    return cleared(run(torsions, (cdiv(n, 128),), args, (force, energy), BLOCK=128, num_warps=4), force, energy)


@triton.jit
def scatter_particles(X, V, AFFINE, MASS, GRID, N, G: tl.constexpr, BLOCK: tl.constexpr):
    # Mass and momentum of particles, with a matrix of velocity, to 27 cells by quadratic weights: atomics on four numbers a cell.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    x, y, z = tl.load(X + i, mask=live, other=9.0), tl.load(X + N + i, mask=live, other=9.0), tl.load(X + 2 * N + i, mask=live, other=9.0)
    bx, by, bz = tl.floor(x - 0.5), tl.floor(y - 0.5), tl.floor(z - 0.5)
    m = tl.load(MASS + i, mask=live, other=0.0)
    for node in range(27):
        ox, oy, oz = node % 3, node // 3 % 3, node // 9
        dx, dy, dz = bx + ox - x, by + oy - y, bz + oz - z
        wx = tl.where(tl.abs(dx) < 0.5, 0.75 - dx * dx, 0.5 * (1.5 - tl.abs(dx)) * (1.5 - tl.abs(dx)))
        wy = tl.where(tl.abs(dy) < 0.5, 0.75 - dy * dy, 0.5 * (1.5 - tl.abs(dy)) * (1.5 - tl.abs(dy)))
        wz = tl.where(tl.abs(dz) < 0.5, 0.75 - dz * dz, 0.5 * (1.5 - tl.abs(dz)) * (1.5 - tl.abs(dz)))
        w = wx * wy * wz * m
        at = (((bz.to(tl.int32) + oz) * G + by.to(tl.int32) + oy) * G + bx.to(tl.int32) + ox) * 4
        for axis in tl.static_range(3):
            row = AFFINE + axis * 3 * N + i
            v = tl.load(V + axis * N + i, mask=live, other=0.0) + tl.load(row, mask=live, other=0.0) * dx
            v += tl.load(row + N, mask=live, other=0.0) * dy + tl.load(row + 2 * N, mask=live, other=0.0) * dz
            tl.atomic_add(GRID + at + axis, w * v, mask=live, sem="relaxed")
        tl.atomic_add(GRID + at + 3, w, mask=live, sem="relaxed")


@case
def particles_scattered_to_27_cells():
    n, g = 60_000, 64
    x = uniform(3, n) * (g - 6) + 3
    x = x[:, (x[2].floor() * g * g + x[1].floor() * g + x[0]).argsort()].contiguous()
    grid = zeros(g, g, g, 4, dtype="float32")
    args = x, f32(3, n), f32(9, n) * 0.1, uniform(n), grid, n
    return cleared(run(scatter_particles, (cdiv(n, 128),), args, grid, G=g, BLOCK=128, num_warps=4), grid)


@triton.jit
def sky_of_stars(STAR, OUT, COUNT, W, wide, BLOCK: tl.constexpr):
    # Images of stars through a round opening and a window: Bessel functions of each pixel and star.
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = (p % W).to(tl.float32), (p // W).to(tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for s in range(COUNT):
        dx, dy = x - tl.load(STAR + 3 * s), y - tl.load(STAR + 3 * s + 1)
        r = tl.sqrt(dx * dx + dy * dy) * wide + 1e-3
        ring = 2.0 * libdevice.j1(r) / r
        inside = tl.maximum(1.0 - r * r * 1e-4, 0.0)
        total += tl.load(STAR + 3 * s + 2) * ring * ring * libdevice.cyl_bessel_i0(3.0 * tl.sqrt(inside))
    tl.store(OUT + p, libdevice.log1p(total))


@case
def stars_through_a_round_opening():
    w, count = 512, 40
    star, out = torch.cat((uniform(count, 2) * w, uniform(count, 1) * 9 + 1), 1), zeros(w, w, dtype="float32")
    return run(sky_of_stars, (w * w // 256,), (star, out, count, w, 0.3), out, BLOCK=256, num_warps=4)


@triton.jit
def pull(x, y, z):
    # Acceleration about a flattened body, units of its radius.
    r2 = x * x + y * y + z * z
    r = tl.sqrt(r2)
    g = -1.0 / (r2 * r)
    flat = 1.5 * 1.08263e-3 / r2
    s = 5.0 * z * z / r2
    return g * x * (1.0 + flat * (1.0 - s)), g * y * (1.0 + flat * (1.0 - s)), g * z * (1.0 + flat * (3.0 - s))


@triton.jit
def satellites(STATE, OUT, N, STEPS, dt, BLOCK: tl.constexpr):
    # Orbits in double, by steps that keep energy: divisions and square roots of 64 bits.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    x, y, z = tl.load(STATE + i, mask=live, other=1.0), tl.load(STATE + N + i, mask=live, other=1.0), tl.load(STATE + 2 * N + i, mask=live, other=1.0)
    u, v = tl.load(STATE + 3 * N + i, mask=live, other=0.0), tl.load(STATE + 4 * N + i, mask=live, other=0.0)
    w = tl.load(STATE + 5 * N + i, mask=live, other=0.0)
    h = dt
    ax, ay, az = pull(x, y, z)
    for _ in range(STEPS):
        u, v, w = u + 0.5 * h * ax, v + 0.5 * h * ay, w + 0.5 * h * az
        x, y, z = x + h * u, y + h * v, z + h * w
        ax, ay, az = pull(x, y, z)
        u, v, w = u + 0.5 * h * ax, v + 0.5 * h * ay, w + 0.5 * h * az
    tl.store(OUT + i, x, mask=live)
    tl.store(OUT + N + i, y, mask=live)
    tl.store(OUT + 2 * N + i, z, mask=live)
    tl.store(OUT + 3 * N + i, 0.5 * (u * u + v * v + w * w) - 1.0 / tl.sqrt(x * x + y * y + z * z), mask=live)


@case
def satellites_in_double():
    n = 30_001
    place, speed = torch.nn.functional.normalize(f32(3, n).double(), dim=0) * 1.3, f32(3, n).double()
    speed -= place * (speed * place).sum(0) / 1.69
    speed = torch.nn.functional.normalize(speed, dim=0) * 0.9
    state, out = torch.cat((place, speed)).contiguous(), zeros(4, n, dtype="float64")
    return run(satellites, (cdiv(n, 64),), (state, out, n, 150, 0.02), out, BLOCK=64, num_warps=2)


@triton.jit
def bilinear(IMAGE, y, x, W):
    yf, xf = tl.floor(y), tl.floor(x)
    at = IMAGE + yf.to(tl.int32) * W + xf.to(tl.int32)
    a, b = y - yf, x - xf
    upper = tl.load(at) * (1.0 - b) + tl.load(at + 1) * b
    return upper * (1.0 - a) + (tl.load(at + W) * (1.0 - b) + tl.load(at + W + 1) * b) * a


@triton.jit
def track_points(ONE, TWO, POINT, OUT, W, LAST, STEPS, R: tl.constexpr):
    # Windows of 16 by 16 about points, a warp each: gradients once, then steps with gathers between pixels, each after the other's sums.
    p = tl.program_id(0)
    py, px = tl.load(POINT + 2 * p), tl.load(POINT + 2 * p + 1)
    y, x = (py - R // 2 + tl.arange(0, R))[:, None], (px - R // 2 + tl.arange(0, R))[None, :]
    y, x = tl.broadcast(y, x)
    gx = 0.5 * (bilinear(ONE, y, x + 1, W) - bilinear(ONE, y, x - 1, W))
    gy = 0.5 * (bilinear(ONE, y + 1, x, W) - bilinear(ONE, y - 1, x, W))
    first = bilinear(ONE, y, x, W)
    xx, xy, yy = tl.sum(tl.sum(gx * gx, 1), 0) + 1e-3, tl.sum(tl.sum(gx * gy, 1), 0), tl.sum(tl.sum(gy * gy, 1), 0) + 1e-3
    inverse = 1.0 / (xx * yy - xy * xy)
    u, v = 0.0, 0.0
    for _ in range(STEPS):
        sy, sx = tl.minimum(tl.maximum(y + v, 0.0), LAST), tl.minimum(tl.maximum(x + u, 0.0), LAST)
        d = first - bilinear(TWO, sy, sx, W)
        bx, by = tl.sum(tl.sum(d * gx, 1), 0), tl.sum(tl.sum(d * gy, 1), 0)
        u += (yy * bx - xy * by) * inverse
        v += (xx * by - xy * bx) * inverse
    tl.store(OUT + 2 * p, u)
    tl.store(OUT + 2 * p + 1, v)


@case
def points_tracked_between_images():
    w, points = 1024, 20_000
    image = f32(1, 1, w + 32, w + 32)
    for _ in range(3):
        image = torch.nn.functional.avg_pool2d(image, 9, 1, 4)
    image = image[0, 0] * 60
    one, two = image[16:-16, 16:-16].contiguous(), image[15:-17, 14:-18].contiguous()
    out = zeros(points, 2, dtype="float32")
    return run(track_points, (points,), (one, two, uniform(points, 2) * (w - 60) + 30, out, w, w - 2.5, 8), out, R=16, num_warps=1)


@triton.jit
def similar_patches(X, OUT, W, H, strength, S: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr):
    # Averages over places of a window, by how like their patches of 3 by 3 are: loops of loops over loads that overlap.
    y, x = tl.program_id(1) * BY + tl.arange(0, BY)[:, None], tl.program_id(0) * BX + tl.arange(0, BX)[None, :]
    total, weight = tl.zeros((BY, BX), tl.float32), tl.zeros((BY, BX), tl.float32)
    for sy in range(-S, S + 1):
        for sx in range(-S, S + 1):
            d = tl.zeros((BY, BX), tl.float32)
            for tap in tl.static_range(9):
                oy, ox = tap // 3 - 1, tap % 3 - 1
                here = (y + oy >= 0) & (y + oy < H) & (x + ox >= 0) & (x + ox < W)
                there = (y + oy + sy >= 0) & (y + oy + sy < H) & (x + ox + sx >= 0) & (x + ox + sx < W)
                a = tl.load(X + (y + oy) * W + x + ox, mask=here, other=0.0).to(tl.float32)
                b = tl.load(X + (y + oy + sy) * W + x + ox + sx, mask=there, other=0.0).to(tl.float32)
                d += (a - b) * (a - b)
            inside = (y + sy >= 0) & (y + sy < H) & (x + sx >= 0) & (x + sx < W)
            w = tl.where(inside, tl.exp(-d * strength), 0.0)
            total += w * tl.load(X + (y + sy) * W + x + sx, mask=inside, other=0.0).to(tl.float32)
            weight += w
    tl.store(OUT + y * W + x, (total / weight).to(OUT.dtype.element_ty), mask=(y < H) & (x < W))


@case
def non_local_means_of_a_half_image():
    w, h = 1000, 700
    out = zeros(h, w)
    return run(similar_patches, (cdiv(w, 32), cdiv(h, 16)), (rand(h, w), out, w, h, 0.2), out, S=3, BY=16, BX=32, num_warps=4)


@triton.jit
def delay_and_sum(ECHO, ELEMENT, OUT, SAMPLES, COUNT, W, pitch, rate, BLOCK: tl.constexpr):
    # Pixels sum echoes of all elements at own delays, between two samples of 16 bits, weighted by their angle.
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, z = (p % W).to(tl.float32) * pitch, (p // W).to(tl.float32) * pitch + 1.0
    sum_, power = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for e in range(COUNT):
        dx = x - tl.load(ELEMENT + e)
        far = tl.sqrt(dx * dx + z * z)
        at = (far + z) * rate
        low = tl.floor(at)
        i = low.to(tl.int32)
        ok = i < SAMPLES - 1
        a = tl.load(ECHO + e * SAMPLES + i, mask=ok, other=0).to(tl.float32)
        b = tl.load(ECHO + e * SAMPLES + i + 1, mask=ok, other=0).to(tl.float32)
        w = z / far
        v = (a + (at - low) * (b - a)) * w * w
        sum_ += v
        power += v * v
    tl.store(OUT + p, libdevice.pow(tl.abs(sum_) / tl.sqrt(power + 1.0), 0.7))


@case
def echoes_delayed_and_summed():
    w, count, samples = 512, 96, 2500
    echo, element = ints(-3000, 3000, count, samples, dtype="int16"), torch.linspace(0, 50, count, device="cuda")
    out = zeros(w, w, dtype="float32")
    args = echo, element, out, samples, count, w, 0.1, 19.0
    return run(delay_and_sum, (w * w // 512,), args, out, BLOCK=512, num_warps=8)


@triton.jit
def sum_of_partials(PITCH, SIZE, DECAY, OUT, N, VOICES, P: tl.constexpr, BLOCK: tl.constexpr):
    # Sounds of partials: phases in double, sines in float; a tile of samples and partials, summed along the second.
    i, p, note = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, P), tl.program_id(1)
    t = i.to(tl.float64) / 48000.0
    total = tl.zeros((BLOCK,), tl.float32)
    for voice in range(VOICES):
        at = (note * VOICES + voice) * P + p
        turn = t[:, None] * tl.load(PITCH + at)[None, :]
        phase = (turn - tl.floor(turn)).to(tl.float32) * 6.283185307
        envelope = tl.exp2(-tl.load(DECAY + at)[None, :] * i[:, None].to(tl.float32))
        total += tl.sum(tl.sin(phase) * envelope * tl.load(SIZE + at)[None, :], 1)
    tl.store(OUT + note * N + i, libdevice.tanh(total), mask=i < N)


@case
def sounds_of_many_partials():
    notes, voices, partials, n = 24, 2, 32, 40_000
    out = zeros(notes, n, dtype="float32")
    args = uniform(notes, voices, partials).double() * 4000, f32(notes, voices, partials) * 0.1, uniform(notes, voices, partials) * 1e-4, out, n, voices
    return run(sum_of_partials, (cdiv(n, 64), notes), args, out, P=partials, BLOCK=64, num_warps=4)


@triton.jit
def fit_to_margins(X, AB, CD, AD, OUT, LOSS, STEPS, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr):
    # Tables of four axes scaled until three pairs' sums are those wanted: reductions over two axes, broadcasts back.
    t = tl.program_id(0)
    a, b, c, d = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C), tl.arange(0, D)
    at = ((a[:, None, None, None] * B + b[None, :, None, None]) * C + c[None, None, :, None]) * D + d[None, None, None, :]
    x = tl.load(X + t * A * B * C * D + at)
    ab = tl.load(AB + t * A * B + a[:, None] * B + b[None, :])
    cd = tl.load(CD + t * C * D + c[:, None] * D + d[None, :])
    ad = tl.load(AD + t * A * D + a[:, None] * D + d[None, :])
    for _ in range(STEPS):
        x *= (ab / tl.sum(tl.sum(x, 3), 2))[:, :, None, None]
        x *= (cd / tl.sum(tl.sum(x, 1), 0))[None, None, :, :]
        x *= (ad / tl.sum(tl.sum(x, 2), 1))[:, None, None, :]
    gap = tl.abs(tl.sum(tl.sum(x, 3), 2) - ab)
    tl.store(OUT + t * A * B * C * D + at, x)
    tl.store(LOSS + t, tl.sum(tl.sum(gap, 1), 0) + 1.0)


@case
def tables_of_four_axes_fitted_to_margins():
    tables, shape = 2640, (8, 4, 16, 8)
    x, y = uniform(tables, *shape) + 0.1, uniform(tables, *shape) + 0.1
    out, loss = zeros(tables, *shape, dtype="float32"), zeros(tables, dtype="float32")
    args = x, y.sum((3, 4)), y.sum((1, 2)), y.sum((2, 3)), out, loss, 12
    return run(fit_to_margins, (tables,), args, (out, loss), A=8, B=4, C=16, D=8, num_warps=4)


@triton.jit
def pursue(SIGNAL, ATOMS, LEFT, STEPS, K: tl.constexpr, D: tl.constexpr):
    # The atom that explains most is taken off a signal, again and again: an argument of a maximum, and a row by it.
    s, k, d = tl.program_id(0), tl.arange(0, K), tl.arange(0, D)
    r = tl.load(SIGNAL + s * D + d)
    atoms = tl.load(ATOMS + k[:, None] * D + d[None, :]).to(tl.float32)
    for step in range(STEPS):
        c = tl.sum(atoms * r[None, :], 1)
        best = tl.argmax(tl.abs(c), 0)
        share = tl.sum(tl.where(k == best, c, 0.0), 0)
        r -= share * tl.load(ATOMS + best * D + d).to(tl.float32)
        tl.store(LEFT + s * STEPS + step, tl.sum(r * r, 0))


@case
def signals_pursued_by_128_atoms():
    signals, k, d, steps = 4000, 128, 64, 12
    atoms, left = torch.nn.functional.normalize(f32(k, d), dim=1).half(), zeros(signals, steps, dtype="float32")
    return run(pursue, (signals,), (f32(signals, d), atoms, left, steps), left, K=k, D=d, num_warps=4)


@triton.jit
def follow_the_leader(ID, GRAD, Z, N_, W, ROWS, alpha, beta, one, two, D: tl.constexpr, BLOCK: tl.constexpr):
    # Rows of a table by number, each once: a sum of gradients, one of squares, weights of which many are zero.
    i, d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, D)
    live = (i < ROWS)[:, None]
    at = tl.load(ID + i, mask=i < ROWS, other=0)[:, None] * D + d[None, :]
    g = tl.load(GRAD + i[:, None] * D + d[None, :], mask=live, other=0.0).to(tl.float32)
    z, n, w = tl.load(Z + at, mask=live, other=0.0), tl.load(N_ + at, mask=live, other=0.0), tl.load(W + at, mask=live, other=0.0).to(tl.float32)
    new = n + g * g
    z += g - (tl.sqrt(new) - tl.sqrt(n)) / alpha * w
    w = -tl.maximum(tl.abs(z) - one, 0.0) * tl.where(z < 0, -1.0, 1.0) / ((beta + tl.sqrt(new)) / alpha + two)
    tl.store(Z + at, z, mask=live)
    tl.store(N_ + at, new, mask=live)
    tl.store(W + at, w.to(tl.bfloat16), mask=live)


@case
def rows_of_a_table_follow_the_leader():
    vocabulary, rows, d = 400_000, 150_001, 16
    z, n, w = f32(vocabulary, d), uniform(vocabulary, d), rand(vocabulary, d, dtype="bfloat16")
    keep = z.clone(), n.clone(), w.clone()
    args = torch.randperm(vocabulary, device="cuda")[:rows], rand(rows, d, dtype="bfloat16"), z, n, w, rows, 0.1, 1.0, 0.3, 0.01
    launch, args = run(follow_the_leader, (cdiv(rows, 64),), args, (z, n, w), D=d, BLOCK=64, num_warps=4)

    def again(*args):
        for now, before in zip((z, n, w), keep):
            now.copy_(before)
        return launch(*args)

    return again, args
