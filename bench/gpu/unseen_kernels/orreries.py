"""Orreries: planets and probes, arms and poses, rays and noise, spins and tours, tensors of edges, states that nobody sees, and products."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros

LOG2E = 1.4426950408889634


@triton.jit
def pulls_of_bodies(x, y, z, gm, soft):
    dx, dy, dz = x[None, :] - x[:, None], y[None, :] - y[:, None], z[None, :] - z[:, None]
    r2 = dx * dx + dy * dy + dz * dz + soft
    w = gm[None, :] / (r2 * tl.sqrt(r2))
    return tl.sum(dx * w, 1), tl.sum(dy * w, 1), tl.sum(dz * w, 1)


@triton.jit
def symplectic_planets(p_ptr, v_ptr, gm_ptr, part_ptr, po_ptr, vo_ptr, dt, soft, STEPS, N: tl.constexpr):
    # Eight bodies of a system by Yoshida's fourth order steps in double: drifts between three kicks, of which one goes back.
    system = tl.program_id(0)
    n = tl.arange(0, N)
    at = (system * N + n) * 3
    gm = tl.load(gm_ptr + system * N + n)
    x, y, z = tl.load(p_ptr + at), tl.load(p_ptr + at + 1), tl.load(p_ptr + at + 2)
    u, v, w = tl.load(v_ptr + at), tl.load(v_ptr + at + 1), tl.load(v_ptr + at + 2)
    for _ in range(STEPS):
        for k in tl.static_range(4):
            drift = tl.load(part_ptr + 2 * k) * dt
            kick = tl.load(part_ptr + 2 * k + 1) * dt
            x += u * drift
            y += v * drift
            z += w * drift
            if k < 3:
                a, b, c = pulls_of_bodies(x, y, z, gm, soft)
                u += a * kick
                v += b * kick
                w += c * kick
    tl.store(po_ptr + at, x)
    tl.store(po_ptr + at + 1, y)
    tl.store(po_ptr + at + 2, z)
    tl.store(vo_ptr + at, u)
    tl.store(vo_ptr + at + 1, v)
    tl.store(vo_ptr + at + 2, w)


@case
def orrery_of_eight_bodies_by_symplectic_steps(systems=1200, steps=20):
    n, dt, soft = 8, 1 / 128, 1 / 16
    p, v, gm = f32(systems, n, 3).double(), f32(systems, n, 3).double() / 4, uniform(systems, n).double()
    cube = 2.0 ** (1 / 3)
    a = 1 / (2 - cube)
    b = -cube * a
    moves = (a / 2, a), ((a + b) / 2, b), ((a + b) / 2, a), (a / 2, 0.0)
    parts = torch.tensor(moves, dtype=torch.float64).cuda()
    po, vo = zeros(systems, n, 3, dtype="float64"), zeros(systems, n, 3, dtype="float64")
    launched = run(symplectic_planets, (systems,), (p, v, gm, parts, po, vo, dt, soft, steps), (po, vo), N=n, num_warps=1)

    def reference():
        x, u = p.clone(), v.clone()
        for _ in range(steps):
            for drift, kick in moves:
                x = x + u * (drift * dt)
                d = x[:, None, :, :] - x[:, :, None, :]
                r2 = d.square().sum(3) + soft
                u = u + (d * (gm[:, None, :] / r2**1.5)[..., None]).sum(2) * (kick * dt)
        return x, u

    return against(launched, reference)


@triton.jit
def ephemeris_places(t_ptr, edge_ptr, c_ptr, p_ptr, v_ptr, N, SEGMENTS, ORDER: tl.constexpr, BLOCK: tl.constexpr):
    # The segment that holds a time by halving, then Clenshaw sums of Chebyshev coefficients and of their derivatives.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    t = tl.load(t_ptr + i, mask=ok, other=0.0)
    low = tl.zeros((BLOCK,), tl.int32)
    high = tl.zeros((BLOCK,), tl.int32) + SEGMENTS
    while tl.max(high - low, 0) > 1:
        middle = (low + high) // 2
        after = tl.load(edge_ptr + middle, mask=middle < SEGMENTS, other=float("inf")) <= t
        low = tl.where(after, middle, low)
        high = tl.where(after, high, tl.maximum(middle, low + 1))
    a, b = tl.load(edge_ptr + low), tl.load(edge_ptr + low + 1)
    half = (b - a) * 0.5
    x = (t - a) / half - 1.0
    for axis in tl.static_range(3):
        c = c_ptr + (low * 3 + axis) * ORDER
        b1 = tl.zeros((BLOCK,), tl.float64)
        b2 = tl.zeros((BLOCK,), tl.float64)
        d1 = tl.zeros((BLOCK,), tl.float64)
        d2 = tl.zeros((BLOCK,), tl.float64)
        for j in range(ORDER - 1, 0, -1):
            d0 = 2.0 * b1 + 2.0 * x * d1 - d2
            b0 = tl.load(c + j) + 2.0 * x * b1 - b2
            b2, b1 = b1, b0
            d2, d1 = d1, d0
        p = tl.load(c) + x * b1 - b2
        v = b1 + x * d1 - d2
        tl.store(p_ptr + i * 3 + axis, p, mask=ok)
        tl.store(v_ptr + i * 3 + axis, v / half, mask=ok)


@case
def orrery_of_places_and_speeds_by_chebyshev_sums(n=500_001, segments=700):
    order = 13
    edge = torch.cat([zeros(1, dtype="float64"), (uniform(segments).double() + 0.5).cumsum(0)])
    t = uniform(n).double() * edge[-1] * 0.9999
    c = f32(segments, 3, order).double() * torch.exp(-arange(order, "float64"))
    p, v = zeros(n, 3, dtype="float64"), zeros(n, 3, dtype="float64")
    launched = run(ephemeris_places, (cdiv(n, 256),), (t, edge, c, p, v, n, segments), (p, v), ORDER=order, BLOCK=256, num_warps=4)

    def reference():
        s = torch.searchsorted(edge, t, right=True) - 1
        half = (edge[s + 1] - edge[s]) / 2
        x = (t - edge[s]) / half - 1
        terms, slopes = [torch.ones_like(x), x], [torch.zeros_like(x), torch.ones_like(x)]
        for _ in range(order - 2):
            slopes.append(2 * terms[-1] + 2 * x * slopes[-1] - slopes[-2])
            terms.append(2 * x * terms[-1] - terms[-2])
        value = sum(c[s, :, j] * terms[j][:, None] for j in range(order))
        slope = sum(c[s, :, j] * slopes[j][:, None] for j in range(order))
        return value, slope / half[:, None]

    return against(launched, reference)


@triton.jit
def exponential_of_twist(a, b, c):
    # Three factors of a turn by a vector: sin, 1 - cos and what is left of the angle, by series where it is small.
    t2 = a * a + b * b + c * c
    t = tl.sqrt(t2)
    small = t2 < 1e-3
    safe = tl.where(small, 1.0, t2)
    root = tl.where(small, 1.0, t)
    first = tl.where(small, 1.0 - t2 / 6.0 + t2 * t2 / 120.0, tl.sin(root) / root)
    second = tl.where(small, 0.5 - t2 / 24.0 + t2 * t2 / 720.0, (1.0 - tl.cos(root)) / safe)
    third = tl.where(small, 1.0 / 6.0 - t2 / 120.0, (root - tl.sin(root)) / (safe * root))
    return first, second, third


@triton.jit
def turned_by(a, b, c, k1, k2, x, y, z):
    # x + k1 (w x x) + k2 (w x (w x x)).
    p, q, r = b * z - c * y, c * x - a * z, a * y - b * x
    return x + k1 * p + k2 * (b * r - c * q), y + k1 * q + k2 * (c * p - a * r), z + k1 * r + k2 * (a * q - b * p)


@triton.jit
def poses_moved(twist_ptr, pose_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # Poses of three rows and a place, moved by the exponential of their twists from the left.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    a = tl.load(twist_ptr + i * 6, mask=ok, other=0.0)
    b = tl.load(twist_ptr + i * 6 + 1, mask=ok, other=0.0)
    c = tl.load(twist_ptr + i * 6 + 2, mask=ok, other=0.0)
    u = tl.load(twist_ptr + i * 6 + 3, mask=ok, other=0.0)
    v = tl.load(twist_ptr + i * 6 + 4, mask=ok, other=0.0)
    w = tl.load(twist_ptr + i * 6 + 5, mask=ok, other=0.0)
    first, second, third = exponential_of_twist(a, b, c)
    mx, my, mz = turned_by(a, b, c, second, third, u, v, w)
    for j in tl.static_range(4):
        x = tl.load(pose_ptr + i * 12 + j, mask=ok, other=0.0)
        y = tl.load(pose_ptr + i * 12 + 4 + j, mask=ok, other=0.0)
        z = tl.load(pose_ptr + i * 12 + 8 + j, mask=ok, other=0.0)
        x, y, z = turned_by(a, b, c, first, second, x, y, z)
        if j == 3:
            x, y, z = x + mx, y + my, z + mz
        tl.store(out_ptr + i * 12 + j, x, mask=ok)
        tl.store(out_ptr + i * 12 + 4 + j, y, mask=ok)
        tl.store(out_ptr + i * 12 + 8 + j, z, mask=ok)


@case
def orrery_of_poses_moved_by_their_twists(n=1_000_003):
    size = torch.exp(-6 * uniform(n, 1))
    twist, pose, out = f32(n, 6) * size, f32(n, 3, 4), zeros(n, 3, 4, dtype="float32")
    launched = run(poses_moved, (cdiv(n, 256),), (twist, pose, out, n), out, BLOCK=256, num_warps=4)

    def reference():
        w = twist[:, :3].double()
        zero = torch.zeros(n, dtype=torch.float64, device="cuda")
        k = torch.stack([zero, -w[:, 2], w[:, 1], w[:, 2], zero, -w[:, 0], -w[:, 1], w[:, 0], zero], 1).reshape(n, 3, 3)
        t = w.norm(dim=1)[:, None, None]
        eye = torch.eye(3, dtype=torch.float64, device="cuda")
        k2 = k @ k
        near = t < 1e-2
        a = torch.where(near, 1 - t**2 / 6 + t**4 / 120, torch.sin(t) / t)
        b = torch.where(near, 0.5 - t**2 / 24 + t**4 / 720, (1 - torch.cos(t)) / t**2)
        c = torch.where(near, 1 / 6 - t**2 / 120 + t**4 / 5040, (t - torch.sin(t)) / t**3)
        new = (eye + a * k + b * k2) @ pose.double()
        new[:, :, 3:] += (eye + b * k + c * k2) @ twist[:, 3:, None].double()
        return new

    return against(launched, reference)


@triton.jit
def clouds_to_normal_equations(p_ptr, q_ptr, n_ptr, match_ptr, gram_ptr, N, far_apart, BLOCK: tl.constexpr, NUM: tl.constexpr):
    # Points to planes: rows (p x n, n, residual) with robust weights; programs that stay add their products to one matrix.
    col = tl.arange(0, 8)[None, :]
    gram = tl.zeros((8, 8), tl.float32)
    for start in range(tl.program_id(0) * BLOCK, N, NUM * BLOCK):
        i = start + tl.arange(0, BLOCK)
        m = tl.load(match_ptr + i, mask=i < N, other=-1)
        ok = m >= 0
        px = tl.load(p_ptr + i * 3, mask=ok, other=0.0)
        py = tl.load(p_ptr + i * 3 + 1, mask=ok, other=0.0)
        pz = tl.load(p_ptr + i * 3 + 2, mask=ok, other=0.0)
        nx = tl.load(n_ptr + m * 3, mask=ok, other=0.0)
        ny = tl.load(n_ptr + m * 3 + 1, mask=ok, other=0.0)
        nz = tl.load(n_ptr + m * 3 + 2, mask=ok, other=0.0)
        dx = tl.load(q_ptr + m * 3, mask=ok, other=0.0) - px
        dy = tl.load(q_ptr + m * 3 + 1, mask=ok, other=0.0) - py
        dz = tl.load(q_ptr + m * 3 + 2, mask=ok, other=0.0) - pz
        r = dx * nx + dy * ny + dz * nz
        w = tl.where(ok, tl.minimum(1.0, far_apart / tl.maximum(tl.abs(r), 1e-9)), 0.0)
        a, b, c = py * nz - pz * ny, pz * nx - px * nz, px * ny - py * nx
        row = tl.where(col == 0, a[:, None], tl.where(col == 1, b[:, None], tl.where(col == 2, c[:, None], 0.0)))
        row += tl.where(col == 3, nx[:, None], tl.where(col == 4, ny[:, None], tl.where(col == 5, nz[:, None], 0.0)))
        row += tl.where(col == 6, r[:, None], tl.where(col == 7, 1.0, 0.0))
        gram += tl.sum(row[:, :, None] * (row * w[:, None])[:, None, :], 0)
    at = tl.arange(0, 8)[:, None] * 8 + col
    tl.atomic_add(gram_ptr + at, gram)


@case
def orrery_of_clouds_laid_on_planes(n=1_200_001, planes=300_000, programs=264):
    p, q = f32(n, 3), f32(planes, 3)
    normal = torch.nn.functional.normalize(f32(planes, 3), dim=1)
    match = torch.where(uniform(n) < 0.2, -1, ints(0, planes, n))
    gram = zeros(8, 8, dtype="float32")
    args = p, q, normal, match, gram, n, 0.5
    launched = cleared(run(clouds_to_normal_equations, (programs,), args, gram, BLOCK=128, NUM=programs, num_warps=4), gram)

    def reference():
        on = match >= 0
        m = match[on].long()
        pp, nn = p[on].double(), normal[m].double()
        r = ((q[m].double() - pp) * nn).sum(1, keepdim=True)
        rows = torch.cat([torch.linalg.cross(pp, nn), nn, r, torch.ones_like(r)], 1)
        return rows.t() @ (rows * (0.5 / r.abs().clamp(min=1e-9)).clamp(max=1.0))

    return against(launched, reference)


@triton.jit
def nearer(t0, i0, u0, v0, t1, i1, u1, v1):
    first = (t0 < t1) | ((t0 == t1) & (i0 < i1))
    return tl.where(first, t0, t1), tl.where(first, i0, i1), tl.where(first, u0, u1), tl.where(first, v0, v1)


@triton.jit
def rays_to_triangles(o_ptr, d_ptr, tri_ptr, t_ptr, hit_ptr, uv_ptr, RAYS, TRIS, BR: tl.constexpr, BT: tl.constexpr):
    # The nearest triangle each ray goes through, and where in it: all against all in tiles, reduced by tuples.
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    ok = r < RAYS
    ox = tl.load(o_ptr + r * 3, mask=ok, other=0.0)[:, None]
    oy = tl.load(o_ptr + r * 3 + 1, mask=ok, other=0.0)[:, None]
    oz = tl.load(o_ptr + r * 3 + 2, mask=ok, other=0.0)[:, None]
    dx = tl.load(d_ptr + r * 3, mask=ok, other=1.0)[:, None]
    dy = tl.load(d_ptr + r * 3 + 1, mask=ok, other=0.0)[:, None]
    dz = tl.load(d_ptr + r * 3 + 2, mask=ok, other=0.0)[:, None]
    best = tl.full((BR,), 100.0, tl.float32)
    who = tl.full((BR,), -1, tl.int32)
    bu = tl.zeros((BR,), tl.float32)
    bv = tl.zeros((BR,), tl.float32)
    for j0 in range(0, TRIS, BT):
        j = j0 + tl.arange(0, BT)
        at = tri_ptr + j * 9
        some = j < TRIS
        ax = tl.load(at, mask=some, other=0.0)[None, :]
        ay = tl.load(at + 1, mask=some, other=0.0)[None, :]
        az = tl.load(at + 2, mask=some, other=0.0)[None, :]
        ex = tl.load(at + 3, mask=some, other=0.0)[None, :]
        ey = tl.load(at + 4, mask=some, other=0.0)[None, :]
        ez = tl.load(at + 5, mask=some, other=0.0)[None, :]
        fx = tl.load(at + 6, mask=some, other=0.0)[None, :]
        fy = tl.load(at + 7, mask=some, other=0.0)[None, :]
        fz = tl.load(at + 8, mask=some, other=0.0)[None, :]
        px, py, pz = dy * fz - dz * fy, dz * fx - dx * fz, dx * fy - dy * fx
        det = ex * px + ey * py + ez * pz
        inverse = 1.0 / tl.where(tl.abs(det) > 1e-7, det, 1.0)
        sx, sy, sz = ox - ax, oy - ay, oz - az
        u = (sx * px + sy * py + sz * pz) * inverse
        qx, qy, qz = sy * ez - sz * ey, sz * ex - sx * ez, sx * ey - sy * ex
        v = (dx * qx + dy * qy + dz * qz) * inverse
        t = (fx * qx + fy * qy + fz * qz) * inverse
        inside = (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 1e-4) & (tl.abs(det) > 1e-7) & some[None, :]
        t = tl.where(inside, t, 100.0)
        t, i, u, v = tl.reduce((t, tl.broadcast_to(j[None, :], (BR, BT)), u, v), 1, nearer)
        closer = t < best
        best, who = tl.where(closer, t, best), tl.where(closer, i, who)
        bu, bv = tl.where(closer, u, bu), tl.where(closer, v, bv)
    tl.store(t_ptr + r, best, mask=ok)
    tl.store(hit_ptr + r, who, mask=ok)
    tl.store(uv_ptr + r * 2, bu, mask=ok)
    tl.store(uv_ptr + r * 2 + 1, bv, mask=ok)


@case
def orrery_lit_by_rays_through_its_triangles(rays=40_000, tris=500):
    o = f32(rays, 3) / 4
    d = torch.nn.functional.normalize(f32(rays, 3), dim=1)
    a = torch.nn.functional.normalize(f32(tris, 3), dim=1) * (2 + arange(tris, "float32")[:, None] / 50)
    tri = torch.cat([a, f32(tris, 6)], 1)
    t, hit, uv = zeros(rays, dtype="float32"), zeros(rays, dtype="int32"), zeros(rays, 2, dtype="float32")

    def solved():
        oo, dd, aa, e, f = o.double(), d.double(), *(tri[:, 3 * i : 3 * i + 3].double() for i in range(3))
        best = torch.full((rays,), 100.0, dtype=torch.float64, device="cuda")
        who = torch.full((rays,), -1, dtype=torch.int64, device="cuda")
        uvs, edge = torch.zeros(rays, 2, dtype=torch.float64, device="cuda"), torch.zeros(rays, dtype=torch.bool, device="cuda")
        for j in range(tris):
            p = torch.linalg.cross(dd, f[j].expand(rays, 3))
            det = p @ e[j]
            s = oo - aa[j]
            u = (s * p).sum(1) / det
            q = torch.linalg.cross(s, e[j].expand(rays, 3))
            v, w = (dd * q).sum(1) / det, q @ f[j] / det
            least = torch.stack([u, v, 1 - u - v, w]).amin(0)
            edge |= (least.abs() < 1e-3 + 3e-6 / det.abs()) | ((least > -0.1) & (det.abs() < 1e-2))
            closer = (least > 0) & (w > 1e-4) & (w < best)
            best, who = torch.where(closer, w, best), torch.where(closer, j, who)
            uvs = torch.where(closer[:, None], torch.stack([u, v], 1), uvs)
        return best, who.int(), uvs, edge

    # Rays through an edge may be taken for hits or not: they go nowhere.
    d[solved()[3]] = 0
    launched = run(rays_to_triangles, (cdiv(rays, 16),), (o, d, tri, t, hit, uv, rays, tris), (t, hit, uv), BR=16, BT=64, num_warps=4, num_stages=2)
    return against(launched, lambda: solved()[:3])


@triton.jit
def corner_slope(ix, iy, fx, fy, seed):
    # A corner's slope, one of eight by a hash, times where a point is from it.
    h = ix.to(tl.uint32) * 0x8DA6B343 + iy.to(tl.uint32) * 0xD8163841 + seed
    h = (h ^ (h >> 13)) * 0x5BD1E995
    h ^= h >> 15
    a = tl.where((h & 1) == 0, fx, -fx)
    b = tl.where((h & 2) == 0, fy, -fy)
    return tl.where((h & 4) == 0, a + b, tl.where((h & 8) == 0, a * 1.4142135, b * 1.4142135))


@triton.jit
def clouds_of_octaves(out_ptr, H, W, step, OCTAVES: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr):
    # Gradient noise summed over octaves, with places warped by the octaves before.
    row = (tl.program_id(0) * BY + tl.arange(0, BY))[:, None]
    col = (tl.program_id(1) * BX + tl.arange(0, BX))[None, :]
    x, y = tl.broadcast_to(col * step, (BY, BX)), tl.broadcast_to(row * step, (BY, BX))
    total = tl.zeros((BY, BX), tl.float32)
    weight = 1.0
    for k in range(OCTAVES):
        px, py = x + total * 0.25, y - total * 0.125
        cx, cy = tl.floor(px), tl.floor(py)
        fx, fy = px - cx, py - cy
        ix, iy = cx.to(tl.int32), cy.to(tl.int32)
        seed = k * 977
        sx = fx * fx * fx * (fx * (fx * 6.0 - 15.0) + 10.0)
        sy = fy * fy * fy * (fy * (fy * 6.0 - 15.0) + 10.0)
        a = corner_slope(ix, iy, fx, fy, seed)
        b = corner_slope(ix + 1, iy, fx - 1.0, fy, seed)
        c = corner_slope(ix, iy + 1, fx, fy - 1.0, seed)
        d = corner_slope(ix + 1, iy + 1, fx - 1.0, fy - 1.0, seed)
        low = a + (b - a) * sx
        total += weight * (low + (c + (d - c) * sx - low) * sy)
        x, y, weight = x * 2.0, y * 2.0, weight * 0.5
    tl.store(out_ptr + row * W + col, total, mask=(row < H) & (col < W))


@case
def orrery_sky_of_warped_octaves_of_noise(h=1080, w=1930):
    out, step = zeros(h, w, dtype="float32"), 1 / 64
    launched = run(clouds_of_octaves, (cdiv(h, 4), cdiv(w, 128)), (out, h, w, step), out, OCTAVES=5, BY=4, BX=128, num_warps=4)

    def reference():
        mask = (1 << 32) - 1
        y, x = torch.meshgrid(arange(h, "float64") * step, arange(w, "float64") * step, indexing="ij")

        def slope(ix, iy, fx, fy, seed):
            v = (ix * 0x8DA6B343 + iy * 0xD8163841 + seed) & mask
            v = (v ^ (v >> 13)) * 0x5BD1E995 & mask
            v = v ^ (v >> 15)
            a, b = torch.where(v & 1 == 0, fx, -fx), torch.where(v & 2 == 0, fy, -fy)
            return torch.where(v & 4 == 0, a + b, torch.where(v & 8 == 0, a, b) * 2**0.5)

        total, weight = torch.zeros_like(x), 1.0
        for k in range(5):
            px, py = x + total / 4, y - total / 8
            ix, iy = px.floor().long(), py.floor().long()
            fx, fy = px - ix, py - iy
            sx, sy = (f**3 * (f * (f * 6 - 15) + 10) for f in (fx, fy))
            a, b, c, d = (slope(ix + i, iy + j, fx - i, fy - j, k * 977) for i, j in ((0, 0), (1, 0), (0, 1), (1, 1)))
            low, high = a + (b - a) * sx, c + (d - c) * sx
            total = total + weight * (low + (high - low) * sy)
            x, y, weight = x * 2, y * 2, weight / 2
        return total

    return against(launched, reference)


@triton.jit
def colored_spins(s_ptr, odds_ptr, out_ptr, seed, parity, H, W, STATES: tl.constexpr, BLOCK: tl.constexpr):
    # Half of a torus of spins of five colors, as on a board: a proposed color is taken by odds of what it costs.
    y = tl.program_id(0)
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    ok = x < W
    up, down = tl.where(y == 0, H - 1, y - 1), tl.where(y == H - 1, 0, y + 1)
    left, right = tl.where(x == 0, W - 1, x - 1), tl.where(x == W - 1, 0, x + 1)
    s = tl.load(s_ptr + y * W + x, mask=ok, other=0)
    a = tl.load(s_ptr + up * W + x, mask=ok, other=0)
    b = tl.load(s_ptr + down * W + x, mask=ok, other=0)
    c = tl.load(s_ptr + y * W + left, mask=ok, other=0)
    d = tl.load(s_ptr + y * W + right, mask=ok, other=0)
    bits = (y * W + x).to(tl.uint32) * 0x9E3779B9 + seed
    bits = (bits ^ (bits >> 16)) * 0x7FEB352D
    bits = (bits ^ (bits >> 15)) * 0x846CA68B
    bits ^= bits >> 16
    new = ((s.to(tl.int32) + 1 + (bits & 0xFF).to(tl.int32) % (STATES - 1)) % STATES).to(tl.int8)
    now = (s == a).to(tl.int32) + (s == b).to(tl.int32) + (s == c).to(tl.int32) + (s == d).to(tl.int32)
    then = (new == a).to(tl.int32) + (new == b).to(tl.int32) + (new == c).to(tl.int32) + (new == d).to(tl.int32)
    odds = tl.load(odds_ptr + now - then + 4)
    taken = ((x + y) % 2 == parity) & ((bits >> 8).to(tl.int32) < odds)
    tl.store(out_ptr + y * W + x, tl.where(taken, new, s), mask=ok)


@case
def orrery_of_spins_of_five_colors_half_of_them_asked(h=3000, w=4098, seed=12345):
    s, out = ints(0, 5, h, w, dtype="int8"), zeros(h, w, dtype="int8")
    odds = (torch.exp(-0.7 * arange(9, "float32").sub(4).clamp(min=0)) * (1 << 24)).to(torch.int32)
    launched = run(colored_spins, (h, cdiv(w, 1024)), (s, odds, out, seed, 1, h, w), out, STATES=5, BLOCK=1024, num_warps=4)

    def reference():
        mask = (1 << 32) - 1
        at = torch.arange(h * w, device="cuda").reshape(h, w)
        bits = (at * 0x9E3779B9 + seed) & mask
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
            bits = bits ^ (bits >> shift)
            bits = ((bits & 0xFFFF) * factor + (((bits >> 16) * factor & 0xFFFF) << 16)) & mask
        bits = bits ^ (bits >> 16)
        new = ((s.long() + 1 + (bits & 255) % 4) % 5).to(torch.int8)
        around = [s.roll(1, 0), s.roll(-1, 0), s.roll(1, 1), s.roll(-1, 1)]
        cost = sum((s == n).long() - (new == n).long() for n in around)
        taken = ((at // w + at % w) % 2 == 1) & (bits >> 8 < odds[cost + 4])
        return torch.where(taken, new, s)

    return against(launched, reference)


@triton.jit
def vectors_along_edges(x_ptr, dir_ptr, w_ptr, from_ptr, to_ptr, out_ptr, EDGES, C: tl.constexpr, BE: tl.constexpr):
    # Products of nodes' vectors with edges' directions: a number, a vector and five of a symmetric tensor, weighted and added up.
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    c = tl.arange(0, C)[None, :]
    on = e < EDGES
    ok = on[:, None] & (c < C)
    src = tl.load(from_ptr + e, mask=on, other=0)[:, None]
    dst = tl.load(to_ptr + e, mask=on, other=0)[:, None]
    a = tl.load(dir_ptr + e * 3, mask=on, other=0.0)[:, None]
    b = tl.load(dir_ptr + e * 3 + 1, mask=on, other=0.0)[:, None]
    d = tl.load(dir_ptr + e * 3 + 2, mask=on, other=0.0)[:, None]
    at = x_ptr + src * (3 * C) + c
    x = tl.load(at, mask=ok, other=0.0)
    y = tl.load(at + C, mask=ok, other=0.0)
    z = tl.load(at + 2 * C, mask=ok, other=0.0)
    weight = w_ptr + e[:, None] * (3 * C) + c
    w0 = tl.load(weight, mask=ok, other=0.0)
    w1 = tl.load(weight + C, mask=ok, other=0.0)
    w2 = tl.load(weight + 2 * C, mask=ok, other=0.0)
    out = out_ptr + dst * (9 * C) + c
    tl.atomic_add(out, w0 * (x * a + y * b + z * d) * 0.57735027, mask=ok, sem="relaxed")
    w1 *= 0.70710678
    tl.atomic_add(out + C, w1 * (y * d - z * b), mask=ok, sem="relaxed")
    tl.atomic_add(out + 2 * C, w1 * (z * a - x * d), mask=ok, sem="relaxed")
    tl.atomic_add(out + 3 * C, w1 * (x * b - y * a), mask=ok, sem="relaxed")
    w2 *= 0.70710678
    tl.atomic_add(out + 4 * C, w2 * (x * b + y * a), mask=ok, sem="relaxed")
    tl.atomic_add(out + 5 * C, w2 * (y * d + z * b), mask=ok, sem="relaxed")
    tl.atomic_add(out + 6 * C, w2 * (2.0 * z * d - x * a - y * b) * 0.57735027, mask=ok, sem="relaxed")
    tl.atomic_add(out + 7 * C, w2 * (x * d + z * a), mask=ok, sem="relaxed")
    tl.atomic_add(out + 8 * C, w2 * (x * a - y * b), mask=ok, sem="relaxed")


@case
def orrery_of_vectors_and_tensors_along_edges(nodes=5000, edges=60_001, c=32):
    x, w = f32(nodes, 3, c), f32(edges, 3, c)
    way = torch.nn.functional.normalize(f32(edges, 3), dim=1)
    src, dst, out = ints(0, nodes, edges), ints(0, nodes, edges), zeros(nodes, 9, c, dtype="float32")
    launched = cleared(run(vectors_along_edges, (cdiv(edges, 8),), (x, way, w, src, dst, out, edges), out, C=c, BE=8, num_warps=2), out)

    def reference():
        v, d = x.double()[src.long()], way.double()[:, :, None].expand(edges, 3, c)
        outer = torch.einsum("eic,ejc->eijc", v, d)
        turned = torch.linalg.cross(v, d, dim=1) * w[:, 1:2] * 0.5**0.5
        sym = outer + outer.transpose(1, 2)
        trace = outer[:, 0, 0] + outer[:, 1, 1] + outer[:, 2, 2]
        five = [sym[:, 0, 1], sym[:, 1, 2], (3 * outer[:, 2, 2] - trace) / 3**0.5, sym[:, 0, 2], outer[:, 0, 0] - outer[:, 1, 1]]
        parts = torch.cat([(trace * w[:, 0] / 3**0.5)[:, None], turned, torch.stack(five, 1) * w[:, 2:] * 0.5**0.5], 1)
        return torch.zeros(nodes, 9, c, dtype=torch.float64, device="cuda").index_add_(0, dst.long(), parts)

    return against(launched, reference)


@triton.jit
def carts_imagined(state_ptr, plan_ptr, noise_ptr, out_ptr, cost_ptr, dt, warmth, T, K: tl.constexpr):
    # Path integral control of carts with poles: K noisy plans are driven in the mind, the plan becomes their weighted mean.
    cart = tl.program_id(0)
    k = tl.arange(0, K)
    zero = tl.zeros((K,), tl.float32)
    x = zero + tl.load(state_ptr + cart * 4)
    v = zero + tl.load(state_ptr + cart * 4 + 1)
    angle = zero + tl.load(state_ptr + cart * 4 + 2)
    turn = zero + tl.load(state_ptr + cart * 4 + 3)
    cost = zero
    for t in range(T):
        plan = tl.load(plan_ptr + cart * T + t)
        noise = tl.load(noise_ptr + (cart * T + t) * K + k).to(tl.float32)
        force = tl.minimum(tl.maximum(plan + noise, -10.0), 10.0)
        sine, cosine = tl.sin(angle), tl.cos(angle)
        push = (force + 0.05 * turn * turn * sine) / 1.1
        bend = (9.8 * sine - cosine * push) / (0.5 * (1.3333333 - 0.1 * cosine * cosine / 1.1))
        v += dt * (push - 0.05 * bend * cosine / 1.1)
        turn += dt * bend
        x += dt * v
        angle += dt * turn
        cost += x * x + 5.0 * (1.0 - tl.cos(angle)) + 0.1 * v * v + 0.01 * plan * noise
    least = tl.min(cost, 0)
    w = tl.exp((least - cost) * warmth)
    w = w / tl.sum(w, 0)
    tl.store(cost_ptr + cart * K + k, cost)
    for t in range(T):
        noise = tl.load(noise_ptr + (cart * T + t) * K + k).to(tl.float32)
        tl.store(out_ptr + cart * T + t, tl.load(plan_ptr + cart * T + t) + tl.sum(w * noise, 0))


@case
def orrery_of_carts_that_imagine_their_ways(carts=800, t=24):
    k, dt, warmth = 512, 0.02, 0.2
    state, plan, noise = f32(carts, 4) / 4, f32(carts, t), rand(carts, t, k)
    out, cost = zeros(carts, t, dtype="float32"), zeros(carts, k, dtype="float32")
    launched = run(carts_imagined, (carts,), (state, plan, noise, out, cost, dt, warmth, t), (out, cost), K=k, num_warps=4)

    def reference():
        x, v, a, o = (state.double()[:, i, None].expand(carts, k) for i in range(4))
        total = torch.zeros(carts, k, dtype=torch.float64, device="cuda")
        for i in range(t):
            p, n = plan.double()[:, i, None], noise[:, i].double()
            push = ((p + n).clamp(-10, 10) + 0.05 * o * o * a.sin()) / 1.1
            bend = (9.8 * a.sin() - a.cos() * push) / (0.5 * (4 / 3 - 0.1 * a.cos() ** 2 / 1.1))
            v = v + dt * (push - 0.05 * bend * a.cos() / 1.1)
            o = o + dt * bend
            x, a = x + dt * v, a + dt * o
            total = total + x * x + 5 * (1 - a.cos()) + 0.1 * v * v + 0.01 * p * n
        w = torch.softmax(-total * warmth, 1)
        return plan + torch.einsum("bk,btk->bt", w, noise.double()), total

    return against(launched, reference)


@triton.jit
def link_of_arm(q_ptr, link_ptr, i, ok, J: tl.constexpr, N: tl.constexpr):
    angle = tl.load(q_ptr + i * N + J, mask=ok, other=0.0) + tl.load(link_ptr + J * 4)
    twist = tl.load(link_ptr + J * 4 + 1)
    return tl.cos(angle), tl.sin(angle), tl.cos(twist), tl.sin(twist), tl.load(link_ptr + J * 4 + 2), tl.load(link_ptr + J * 4 + 3)


@triton.jit
def column_through_link(x, y, z, ct, st, ca, sa):
    return x * ct + y * st, (y * ct - x * st) * ca + z * sa, z * ca - (y * ct - x * st) * sa


@triton.jit
def arms_reached(q_ptr, link_ptr, hand_ptr, jac_ptr, N_ARMS, N: tl.constexpr, BLOCK: tl.constexpr):
    # Where hands of arms of seven joints are and how they are turned, then how each joint moves them, by going down the chain twice.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N_ARMS
    one, zero = tl.full((BLOCK,), 1.0, tl.float32), tl.zeros((BLOCK,), tl.float32)
    hx, hy, hz = zero, zero, zero
    for turn in tl.static_range(2):
        ax, ay, az = one, zero, zero
        bx, by, bz = zero, one, zero
        cx, cy, cz = zero, zero, one
        px, py, pz = zero, zero, zero
        for j in tl.static_range(N):
            if turn == 1:
                rx, ry, rz = hx - px, hy - py, hz - pz
                at = jac_ptr + i * (3 * N) + j
                tl.store(at, cy * rz - cz * ry, mask=ok)
                tl.store(at + N, cz * rx - cx * rz, mask=ok)
                tl.store(at + 2 * N, cx * ry - cy * rx, mask=ok)
            ct, st, ca, sa, length, offset = link_of_arm(q_ptr, link_ptr, i, ok, j, N)
            px, py, pz = px + cx * offset, py + cy * offset, pz + cz * offset
            ax, bx, cx = column_through_link(ax, bx, cx, ct, st, ca, sa)
            ay, by, cy = column_through_link(ay, by, cy, ct, st, ca, sa)
            az, bz, cz = column_through_link(az, bz, cz, ct, st, ca, sa)
            px, py, pz = px + ax * length, py + ay * length, pz + az * length
        hx, hy, hz = px, py, pz
    tl.store(hand_ptr + i * 6, hx, mask=ok)
    tl.store(hand_ptr + i * 6 + 1, hy, mask=ok)
    tl.store(hand_ptr + i * 6 + 2, hz, mask=ok)
    tl.store(hand_ptr + i * 6 + 3, libdevice.cos(libdevice.atan2(bz, cz)), mask=ok)
    tl.store(hand_ptr + i * 6 + 4, libdevice.asin(tl.minimum(tl.maximum(-az, -0.999), 0.999)), mask=ok)
    tl.store(hand_ptr + i * 6 + 5, libdevice.cos(libdevice.atan2(ay, ax)), mask=ok)


@case
def orrery_of_arms_of_seven_joints(arms=400_001):
    n = 7
    q = f32(arms, n)
    links = [[0, -1.57, 0, 0.34], [0, 1.57, 0.05, 0], [0.1, 1.57, 0, 0.4], [0, -1.57, 0.02, 0], [0, -1.57, 0, 0.4], [0.2, 1.57, 0, 0], [0, 0.1, 0.09, 0.126]]
    link = torch.tensor(links).cuda()
    hand, jac = zeros(arms, 6, dtype="float32"), zeros(arms, 3, n, dtype="float32")
    launched = run(arms_reached, (cdiv(arms, 128),), (q, link, hand, jac, arms), (hand, jac), N=n, BLOCK=128, num_warps=4)

    def reference():
        r = torch.eye(3, dtype=torch.float64, device="cuda").expand(arms, 3, 3)
        p = torch.zeros(arms, 3, dtype=torch.float64, device="cuda")
        places, axes = [], []
        for j in range(n):
            places.append(p)
            axes.append(r[:, :, 2])
            t, (_, a, length, offset) = q[:, j].double() + link[j, 0].double(), link[j].double()
            p = p + r[:, :, 2] * offset
            c, s, ca, sa, zero = t.cos(), t.sin(), a.cos().expand(arms), a.sin().expand(arms), torch.zeros_like(t)
            step = torch.stack([c, -s * ca, s * sa, s, c * ca, -c * sa, zero, sa, ca], 1).reshape(arms, 3, 3)
            r = r @ step
            p = p + r[:, :, 0] * length
        angles = torch.atan2(r[:, 2, 1], r[:, 2, 2]).cos(), torch.asin((-r[:, 2, 0]).clamp(-0.999, 0.999)), torch.atan2(r[:, 1, 0], r[:, 0, 0]).cos()
        jacobian = torch.stack([torch.linalg.cross(z, p - o) for z, o in zip(axes, places)], 2)
        return torch.cat([p, torch.stack(angles, 1)], 1), jacobian

    return against(launched, reference)


@triton.jit
def tours_untangled(x_ptr, y_ptr, tour_ptr, gain_ptr, pair_ptr, N, BI: tl.constexpr, BJ: tl.constexpr):
    # The best exchange of two roads of a tour of cities on a grid of streets; of equal ones the first.
    tour = tl.program_id(0)
    best = tl.full((BI,), -1, tl.int64)
    for i0 in range(0, N, BI):
        i = i0 + tl.arange(0, BI)
        a = tl.load(tour_ptr + tour * N + i, mask=i < N, other=0)
        b = tl.load(tour_ptr + tour * N + (i + 1) % N, mask=i < N, other=0)
        ax, ay = tl.load(x_ptr + a)[:, None], tl.load(y_ptr + a)[:, None]
        bx, by = tl.load(x_ptr + b)[:, None], tl.load(y_ptr + b)[:, None]
        road = tl.abs(ax - bx) + tl.abs(ay - by)
        for j0 in range(i0, N, BJ):
            j = j0 + tl.arange(0, BJ)
            c = tl.load(tour_ptr + tour * N + j, mask=j < N, other=0)
            d = tl.load(tour_ptr + tour * N + (j + 1) % N, mask=j < N, other=0)
            cx, cy = tl.load(x_ptr + c)[None, :], tl.load(y_ptr + c)[None, :]
            dx, dy = tl.load(x_ptr + d)[None, :], tl.load(y_ptr + d)[None, :]
            gain = road + tl.abs(cx - dx) + tl.abs(cy - dy)
            gain -= tl.abs(ax - cx) + tl.abs(ay - cy) + tl.abs(bx - dx) + tl.abs(by - dy)
            ok = (j[None, :] > i[:, None] + 1) & (j < N)[None, :] & (gain > 0)
            key = (gain.to(tl.int64) << 32) | (0x7FFFFFFF - (i[:, None] * N + j[None, :])).to(tl.int64)
            best = tl.maximum(best, tl.max(tl.where(ok, key, -1), 1))
    key = tl.max(best, 0)
    found = key >= 0
    tl.store(gain_ptr + tour, tl.where(found, key >> 32, 0).to(tl.int32))
    tl.store(pair_ptr + tour, tl.where(found, 0x7FFFFFFF - (key & 0x7FFFFFFF), -1).to(tl.int32))


@case
def orrery_of_tours_with_two_roads_exchanged(tours=1500, n=250):
    x, y = ints(0, 1000, n), ints(0, 1000, n)
    tour = uniform(tours, n).argsort(1).to(torch.int32)
    gain, pair = zeros(tours, dtype="int32"), zeros(tours, dtype="int32")
    launched = run(tours_untangled, (tours,), (x, y, tour, gain, pair, n), (gain, pair), BI=32, BJ=64, num_warps=4)

    def reference():
        apart = (x[:, None] - x[None, :]).abs() + (y[:, None] - y[None, :]).abs()
        far_pair = arange(n)[None, :] > arange(n)[:, None] + 1
        gains, pairs = [], []
        for t in tour.long().split(50):
            after = t.roll(-1, 1)
            road = apart[t, after]
            g = road[:, :, None] + road[:, None, :] - apart[t[:, :, None], t[:, None, :]] - apart[after[:, :, None], after[:, None, :]]
            g = torch.where(far_pair, g, 0).clamp(min=0).reshape(-1, n * n)
            most = g.amax(1)
            place = torch.where(g == most[:, None], arange(n * n)[None, :], n * n).amin(1)
            gains.append(most)
            pairs.append(torch.where(most > 0, place, -1))
        return torch.cat(gains).int(), torch.cat(pairs).int()

    return against(launched, reference)


@triton.jit
def couplings_of_replicas(j_box, s_box, field_ptr, energy_ptr, N, B, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # What each spin of each replica feels by couplings of bytes, and the replicas' energies by atomics.
    m0, n0 = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.int32)
    for k0 in range(0, N, BK):
        coupling = j_box.load([m0, k0])
        spins = s_box.load([n0, k0])
        acc = tl.dot(coupling, spins.T, acc, out_dtype=tl.int32)
    m, n = m0 + tl.arange(0, BM), n0 + tl.arange(0, BN)
    own = tl.trans(s_box.load([n0, m0])).to(tl.int32)
    ok = (m < N)[:, None] & (n < B)[None, :]
    tl.store(field_ptr + n[None, :] * N + m[:, None], 2 * own * acc, mask=ok)
    tl.atomic_add(energy_ptr + n, -tl.sum(own * acc, 0), mask=n < B, sem="relaxed")


@case
def orrery_of_spins_that_feel_each_other_in_replicas(n=2000, b=1000):
    half = ints(-3, 4, n, n, dtype="int8")
    j = torch.triu(half, 1)
    j = (j + j.t()).contiguous()
    s = (ints(0, 2, b, n) * 2 - 1).to(torch.int8)
    field, energy = zeros(b, n, dtype="int32"), zeros(b, dtype="int32")
    boxes = TensorDescriptor.from_tensor(j, [128, 128]), TensorDescriptor.from_tensor(s, [128, 128])
    launched = run(couplings_of_replicas, (cdiv(n, 128), cdiv(b, 128)), (*boxes, field, energy, n, b), (field, energy), BM=128, BN=128, BK=128, num_warps=8, num_stages=3)

    def reference():
        felt = s.double() @ j.double()
        return (2 * s * felt).int(), -(s * felt).sum(1).int()

    return against(cleared(launched, energy), reference)


@triton.jit
def ordered_bits_with_place(x, n):
    bits = x.to(tl.int32, bitcast=True)
    bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return (bits.to(tl.int64) << 10) | n.to(tl.int64)


@triton.jit
def rank_correlations(x_ptr, y_ptr, out_ptr, rank_ptr, N: tl.constexpr):
    # Spearman's coefficients: rows sorted by one column, the other gathered and sorted with its places, which are then ranks.
    row = tl.program_id(0)
    n = tl.arange(0, N)
    x = tl.load(x_ptr + row * N + n)
    y = tl.load(y_ptr + row * N + n)
    order = (tl.sort(ordered_bits_with_place(x, n)) & (N - 1)).to(tl.int32)
    rank = (tl.sort(ordered_bits_with_place(tl.gather(y, order, 0), n)) & (N - 1)).to(tl.int32)
    apart = (rank - n).to(tl.int64)
    total = tl.sum(apart * apart, 0)
    tl.store(out_ptr + row, 1.0 - 6.0 * total.to(tl.float64) / (N * (N * N - 1.0)))
    tl.store(rank_ptr + row * N + n, rank)


@case
def orrery_of_pairs_compared_by_their_ranks(rows=2000, n=512):
    x = f32(rows, n)
    y = x * uniform(rows, 1) + f32(rows, n)
    out, rank = zeros(rows, dtype="float64"), zeros(rows, n, dtype="int32")
    launched = run(rank_correlations, (rows,), (x, y, out, rank), (out, rank), N=n, num_warps=4)

    def reference():
        order = x.sort(dim=1, stable=True).indices
        rx, ry = x.argsort(dim=1, stable=True).argsort(1).double(), y.gather(1, order).sort(dim=1, stable=True).indices
        rank_y = torch.empty_like(rx).scatter_(1, order.gather(1, ry), arange(n, "float64").expand(rows, n).contiguous())
        return 1 - 6 * (rx - rank_y).square().sum(1) / (n * (n * n - 1)), ry.int()

    return against(launched, reference)


@triton.jit
def unseen_states(obs_ptr, step_ptr, emit_ptr, first_ptr, len_ptr, out_ptr, like_ptr, T, S: tl.constexpr, B: tl.constexpr):
    # Sixteen sequences of a hidden Markov model side by side: a dot a step, scaled so that states sum to one.
    b = tl.program_id(0) * B + tl.arange(0, B)
    s = tl.arange(0, S)
    step = tl.load(step_ptr + s[:, None] * S + s[None, :])
    length = tl.load(len_ptr + b)
    alpha = tl.zeros((B, S), tl.float32) + tl.load(first_ptr + s)[None, :]
    like = tl.zeros((B,), tl.float32)
    for t in range(tl.max(length, 0)):
        seen = tl.load(obs_ptr + b * T + t)
        emit = tl.load(emit_ptr + seen[:, None] * S + s[None, :])
        if t > 0:
            moved = tl.dot(alpha, step, input_precision="ieee")
        else:
            moved = alpha
        new = moved * emit
        scale = tl.sum(new, 1)
        going = t < length
        like += tl.where(going, tl.log(scale), 0.0)
        alpha = tl.where(going[:, None], new / scale[:, None], alpha)
    tl.store(out_ptr + b[:, None] * S + s[None, :], alpha)
    tl.store(like_ptr + b, like)


@case
def orrery_of_states_that_nobody_sees(b=2112, t=90, symbols=50):
    s = 32
    obs, lengths = ints(0, symbols, b, t), ints(1, t + 1, b)
    step, emit, first = torch.softmax(f32(s, s), 1), torch.softmax(f32(symbols, s), 0), torch.softmax(f32(s), 0)
    out, like = zeros(b, s, dtype="float32"), zeros(b, dtype="float32")
    launched = run(unseen_states, (b // 16,), (obs, step, emit, first, lengths, out, like, t), (out, like), S=s, B=16, num_warps=2)

    def reference():
        alpha, total = first.double().expand(b, s), torch.zeros(b, dtype=torch.float64, device="cuda")
        for i in range(t):
            new = (alpha @ step.double() if i else alpha) * emit.double()[obs[:, i].long()]
            scale, going = new.sum(1), i < lengths
            total = total + torch.where(going, scale.log(), 0)
            alpha = torch.where(going[:, None], new / scale[:, None], alpha)
        return alpha, total

    return against(launched, reference)


@triton.jit
def causal_heads_with_shared_turn(
    q_ptr, kn_ptr, kr_ptr, v_ptr, o_ptr, lse_ptr, scale, T, H,
    DN: tl.constexpr, DR: tl.constexpr, DV: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    # Latent attention as prompts are read: keys of a head next to one turned key of all heads, values narrower than keys.
    block, h, b = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i = block * BM + tl.arange(0, BM)
    n, dn, dr, dv = tl.arange(0, BN), tl.arange(0, DN), tl.arange(0, DR), tl.arange(0, DV)
    row = (b * T + i) * H + h
    q_at = q_ptr + row[:, None] * (DN + DR)
    qn = tl.load(q_at + dn[None, :], mask=(i < T)[:, None], other=0.0)
    qr = tl.load(q_at + DN + dr[None, :], mask=(i < T)[:, None], other=0.0)
    m = tl.full((BM,), -1e30, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, DV), tl.float32)
    for n0 in range(0, tl.minimum((block + 1) * BM, T), BN):
        j = n0 + n
        ok = j < T
        key = (b * T + j) * H + h
        kn = tl.load(kn_ptr + key[None, :] * DN + dn[:, None], mask=ok[None, :], other=0.0)
        kr = tl.load(kr_ptr + (b * T + j)[None, :] * DR + dr[:, None], mask=ok[None, :], other=0.0)
        s = tl.dot(qr, kr, tl.dot(qn, kn)) * scale
        if n0 + BN > block * BM:
            s = tl.where(i[:, None] >= j[None, :], s, -1e30)
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.math.exp2(s - top[:, None])
        keep = tl.math.exp2(m - top)
        l = l * keep + tl.sum(p, 1)
        v = tl.load(v_ptr + key[:, None] * DV + dv[None, :], mask=ok[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * keep[:, None])
        m = top
    tl.store(o_ptr + row[:, None] * DV + dv[None, :], (acc / l[:, None]).to(o_ptr.dtype.element_ty), mask=(i < T)[:, None])
    tl.store(lse_ptr + row, (m + tl.math.log2(l)) * 0.6931471805599453, mask=i < T)


@case
def orrery_attention_of_heads_with_one_turned_key(b=1, t=2000, h=16, dn=128, dr=64, dv=128):
    q, kn = rand(b, t, h, dn + dr, dtype="bfloat16"), rand(b, t, h, dn, dtype="bfloat16")
    kr, v = rand(b, t, dr, dtype="bfloat16"), rand(b, t, h, dv, dtype="bfloat16")
    o, lse = zeros(b, t, h, dv, dtype="bfloat16"), zeros(b, t, h, dtype="float32")
    args = q, kn, kr, v, o, lse, (dn + dr) ** -0.5 * LOG2E, t, h
    launched = run(causal_heads_with_shared_turn, (cdiv(t, 128), h, b), args, (o, lse), DN=dn, DR=dr, DV=dv, BM=128, BN=64, num_warps=8, num_stages=2)

    def reference():
        k = torch.cat([kn, kr[:, :, None].expand(b, t, h, dr)], 3).float()
        s = torch.einsum("bihd,bjhd->bhij", q.float(), k) * (dn + dr) ** -0.5
        s = s.masked_fill(arange(t)[None, :] > arange(t)[:, None], float("-inf"))
        return torch.einsum("bhij,bjhd->bihd", s.softmax(3), v.float()), s.logsumexp(3).transpose(1, 2)

    return against(launched, reference)


@triton.jit
def complex_by_three_dots(a_ptr, b_ptr, c_ptr, BATCH, N, NP: tl.constexpr, PER: tl.constexpr):
    # Products of complex matrices of 24 with the second one's adjoint, three real dots each; reals and imaginaries alternate.
    i = tl.arange(0, NP)
    pair = tl.arange(0, 2 * NP)
    ok = (i < N)[:, None] & (pair < 2 * N)[None, :]
    for p in range(PER):
        one = tl.program_id(0) * PER + p
        if one < BATCH:
            at = one * N * N * 2 + i[:, None] * (2 * N) + pair[None, :]
            a = tl.reshape(tl.load(a_ptr + at, mask=ok, other=0.0), (NP, NP, 2))
            b = tl.reshape(tl.load(b_ptr + at, mask=ok, other=0.0), (NP, NP, 2))
            ar, ai = tl.split(a)
            br, bi = tl.split(b)
            br, bi = tl.trans(br), -tl.trans(bi)
            rr = tl.dot(ar, br, input_precision="tf32x3")
            ii = tl.dot(ai, bi, input_precision="tf32x3")
            both = tl.dot(ar + ai, br + bi, input_precision="tf32x3")
            c = tl.join(rr - ii, both - rr - ii)
            tl.store(c_ptr + at, tl.reshape(c, (NP, 2 * NP)), mask=ok)


@case
def orrery_of_complex_matrices_of_24_times_adjoints(batch=6001, n=24):
    a, b, c = f32(batch, n, n, 2), f32(batch, n, n, 2), zeros(batch, n, n, 2, dtype="float32")
    launched = run(complex_by_three_dots, (cdiv(batch, 4),), (a, b, c, batch, n), c, NP=32, PER=4, num_warps=2, num_stages=1)
    return against(launched, lambda: torch.view_as_real(torch.view_as_complex(a.double()) @ torch.view_as_complex(b.double()).mH))
