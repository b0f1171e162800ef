"""Lanterns: light and noise on surfaces, arms, clouds and maps of robots, voices, words that merge, and what models draw, turn, gate and pool."""

import math

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

from .common import against, arange, case, cdiv, cleared, f32, far, ints, rand, run, uniform, viewed, zeros


@triton.jit
def hash_of_corner(x, y, octave):
    h = (x * 374761393 + y * 668265263 + octave * 97531).to(tl.uint32, bitcast=True)
    h = (h ^ (h >> 13)) * 1274126177
    return (h ^ (h >> 16)).to(tl.int32, bitcast=True)


@triton.jit
def slope_at(h, x, y):
    u, v = tl.where(h & 1 != 0, -x, x), tl.where(h & 2 != 0, -y, y)
    return tl.where(h & 4 != 0, u + 2.0 * v, 2.0 * u + v)


@triton.jit
def clouds_of_noise(out_ptr, H, W, scale, OCTAVES: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr):
    # Octaves of gradient noise, with gradients from a hash of the lattice, folded to ridges from the third octave on.
    y = tl.program_id(1) * BY + tl.arange(0, BY)[:, None]
    x = tl.program_id(0) * BX + tl.arange(0, BX)[None, :]
    total = tl.zeros((BY, BX), tl.float32)
    size, often = 1.0, scale
    for octave in range(OCTAVES):
        fx, fy = x.to(tl.float32) * often, y.to(tl.float32) * often
        ix, iy = tl.floor(fx), tl.floor(fy)
        dx, dy = fx - ix, fy - iy
        i, j = ix.to(tl.int32) + tl.zeros((BY, BX), tl.int32), iy.to(tl.int32) + tl.zeros((BY, BX), tl.int32)
        a, b = slope_at(hash_of_corner(i, j, octave), dx, dy), slope_at(hash_of_corner(i + 1, j, octave), dx - 1.0, dy)
        c, d = slope_at(hash_of_corner(i, j + 1, octave), dx, dy - 1.0), slope_at(hash_of_corner(i + 1, j + 1, octave), dx - 1.0, dy - 1.0)
        u, v = dx * dx * dx * (dx * (dx * 6.0 - 15.0) + 10.0), dy * dy * dy * (dy * (dy * 6.0 - 15.0) + 10.0)
        top, bottom = a + u * (b - a), c + u * (d - c)
        noise = top + v * (bottom - top)
        if octave >= 2:
            noise = 1.0 - tl.abs(noise)
        total += size * noise
        size *= 0.5
        often *= 2.0
    tl.store(out_ptr + y * W + x, total, mask=(y < H) & (x < W))


@case
def lantern_of_noise_in_six_octaves(h=1400, w=2100, octaves=6):
    out = zeros(h, w, dtype="float32")
    launched = run(clouds_of_noise, (cdiv(w, 128), cdiv(h, 8)), (out, h, w, 1 / 128), out, OCTAVES=octaves, BY=8, BX=128, num_warps=4)

    def reference():
        low, total = (1 << 32) - 1, 0

        def corner(x, y, o):
            n = (x * 374761393 + y * 668265263 + o * 97531) & low
            n = ((n ^ (n >> 13)) * 1274126177) & low
            return n ^ (n >> 16)

        def slope(n, x, y):
            u, v = torch.where(n & 1 != 0, -x, x), torch.where(n & 2 != 0, -y, y)
            return torch.where(n & 4 != 0, u + 2 * v, 2 * u + v)

        for o in range(octaves):
            fy = (torch.arange(h, device="cuda").double() * 2**o / 128)[:, None].expand(h, w)
            fx = (torch.arange(w, device="cuda").double() * 2**o / 128)[None, :].expand(h, w)
            i, j = fx.floor().long(), fy.floor().long()
            dx, dy = fx - i, fy - j
            a, b, c, d = (slope(corner(i + p, j + q, o), dx - p, dy - q) for p, q in ((0, 0), (1, 0), (0, 1), (1, 1)))
            u, v = (t**3 * (t * (t * 6 - 15) + 10) for t in (dx, dy))
            noise = (a + u * (b - a)) * (1 - v) + (c + u * (d - c)) * v
            total = total + 0.5**o * (1 - noise.abs() if o >= 2 else noise)
        return total

    return against(launched, reference)


@triton.jit
def unit(x, y, z):
    r = tl.rsqrt(x * x + y * y + z * z + 1e-12)
    return x * r, y * r, z * r


@triton.jit
def shine(place_ptr, normal_ptr, rough_ptr, light_ptr, out_ptr, N, LIGHTS, metal, BLOCK: tl.constexpr):
    # Points of a surface under many lamps: microfacets, their shadows on each other, and Fresnel's share; three colors.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    px, py, pz = tl.load(place_ptr + i, mask=ok, other=0.0), tl.load(place_ptr + N + i, mask=ok, other=0.0), tl.load(place_ptr + 2 * N + i, mask=ok, other=1.0)
    nx, ny, nz = unit(tl.load(normal_ptr + i, mask=ok, other=0.0), tl.load(normal_ptr + N + i, mask=ok, other=0.0), tl.load(normal_ptr + 2 * N + i, mask=ok, other=1.0))
    vx, vy, vz = unit(-px, -py, 5.0 - pz)
    rough = tl.load(rough_ptr + i, mask=ok, other=0.5)
    a2 = rough * rough * rough * rough
    k = (rough + 1.0) * (rough + 1.0) * 0.125
    nv = tl.maximum(nx * vx + ny * vy + nz * vz, 1e-3)
    red, green, blue = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for n in range(LIGHTS):
        lamp = light_ptr + n * 6
        dx, dy, dz = tl.load(lamp) - px, tl.load(lamp + 1) - py, tl.load(lamp + 2) - pz
        fall = 1.0 / (dx * dx + dy * dy + dz * dz + 0.01)
        lx, ly, lz = unit(dx, dy, dz)
        hx, hy, hz = unit(lx + vx, ly + vy, lz + vz)
        nl = tl.maximum(nx * lx + ny * ly + nz * lz, 0.0)
        nh = tl.maximum(nx * hx + ny * hy + nz * hz, 0.0)
        vh = tl.maximum(vx * hx + vy * hy + vz * hz, 0.0)
        t = nh * nh * (a2 - 1.0) + 1.0
        facets = a2 / (3.14159265 * t * t)
        shade = nl / (nl * (1.0 - k) + k) * nv / (nv * (1.0 - k) + k)
        g = 1.0 - vh
        fresnel = metal + (1.0 - metal) * g * g * g * g * g
        value = (fresnel * facets * shade / (4.0 * nv * nl + 1e-4) + (1.0 - fresnel) * 0.31830989) * nl * fall
        red += value * tl.load(lamp + 3)
        green += value * tl.load(lamp + 4)
        blue += value * tl.load(lamp + 5)
    tl.store(out_ptr + i * 3, red / (1.0 + red), mask=ok)
    tl.store(out_ptr + i * 3 + 1, green / (1.0 + green), mask=ok)
    tl.store(out_ptr + i * 3 + 2, blue / (1.0 + blue), mask=ok)


@case
def lantern_of_forty_lamps_over_rough_metal(n=400_000, lights=40):
    place, normal, rough = f32(3, n), f32(3, n), uniform(n) * 0.8 + 0.15
    light, out = torch.cat([f32(lights, 3) * 3, uniform(lights, 3)], 1), zeros(n, 3, dtype="float32")
    launched = run(shine, (cdiv(n, 256),), (place, normal, rough, light, out, n, lights, 0.6), out, BLOCK=256, num_warps=4)

    def reference():
        def toward(v):
            return v / (v.square().sum(0) + 1e-12).sqrt()

        p, m, r = place.double(), toward(normal.double()), rough.double()
        v = toward(torch.tensor([0, 0, 5.0], device="cuda", dtype=torch.float64)[:, None] - p)
        a2, k, nv, total = r**4, (r + 1) ** 2 / 8, (m * v).sum(0).clamp(min=1e-3), 0
        for lamp in light.double():
            d = lamp[:3, None] - p
            to = toward(d)
            half = toward(to + v)
            nl, nh, vh = ((x * y).sum(0).clamp(min=0) for x, y in ((m, to), (m, half), (v, half)))
            facets = a2 / (math.pi * (nh * nh * (a2 - 1) + 1) ** 2)
            shade = nl / (nl * (1 - k) + k) * nv / (nv * (1 - k) + k)
            fresnel = 0.6 + 0.4 * (1 - vh) ** 5
            value = (fresnel * facets * shade / (4 * nv * nl + 1e-4) + (1 - fresnel) / math.pi) * nl / (d.square().sum(0) + 0.01)
            total = total + value[:, None] * lamp[3:]
        return total / (1 + total)

    return against(launched, reference)


@triton.jit
def next_joint(q, a, d, ca, sa, r00, r01, r02, r10, r11, r12, r20, r21, r22, x, y, z):
    # A frame moved along an arm by one joint of Denavit and Hartenberg.
    c, s = tl.cos(q), tl.sin(q)
    t0, t1, t2 = c, -s * ca, s * sa
    u0, u1, u2 = s, c * ca, -c * sa
    ax, ay = a * c, a * s
    return (
        r00 * t0 + r01 * u0, r00 * t1 + r01 * u1 + r02 * sa, r00 * t2 + r01 * u2 + r02 * ca,
        r10 * t0 + r11 * u0, r10 * t1 + r11 * u1 + r12 * sa, r10 * t2 + r11 * u2 + r12 * ca,
        r20 * t0 + r21 * u0, r20 * t1 + r21 * u1 + r22 * sa, r20 * t2 + r21 * u2 + r22 * ca,
        x + r00 * ax + r01 * ay + r02 * d, y + r10 * ax + r11 * ay + r12 * d, z + r20 * ax + r21 * ay + r22 * d,
    )  # fmt: skip


@triton.jit
def arms(q_ptr, link_ptr, hand_ptr, jac_ptr, N, JOINTS: tl.constexpr, BLOCK: tl.constexpr):
    # Where the hands of arms are, then how they move with each joint: the chain is gone through twice.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    o, e = tl.zeros((BLOCK,), tl.float32), tl.full((BLOCK,), 1.0, tl.float32)
    a0, a1, a2, b0, b1, b2, c0, c1, c2, x, y, z = e, o, o, o, e, o, o, o, e, o, o, o
    for j in range(JOINTS):
        q = tl.load(q_ptr + j * N + i, mask=ok, other=0.0)
        a, d, ca, sa = tl.load(link_ptr + 4 * j), tl.load(link_ptr + 4 * j + 1), tl.load(link_ptr + 4 * j + 2), tl.load(link_ptr + 4 * j + 3)
        a0, a1, a2, b0, b1, b2, c0, c1, c2, x, y, z = next_joint(q, a, d, ca, sa, a0, a1, a2, b0, b1, b2, c0, c1, c2, x, y, z)
    tl.store(hand_ptr + i, x, mask=ok)
    tl.store(hand_ptr + N + i, y, mask=ok)
    tl.store(hand_ptr + 2 * N + i, z, mask=ok)
    hx, hy, hz = x, y, z
    a0, a1, a2, b0, b1, b2, c0, c1, c2, x, y, z = e, o, o, o, e, o, o, o, e, o, o, o
    for j in range(JOINTS):
        row = jac_ptr + j * 6 * N + i
        dx, dy, dz = hx - x, hy - y, hz - z
        tl.store(row, b2 * dz - c2 * dy, mask=ok)
        tl.store(row + N, c2 * dx - a2 * dz, mask=ok)
        tl.store(row + 2 * N, a2 * dy - b2 * dx, mask=ok)
        tl.store(row + 3 * N, a2, mask=ok)
        tl.store(row + 4 * N, b2, mask=ok)
        tl.store(row + 5 * N, c2, mask=ok)
        q = tl.load(q_ptr + j * N + i, mask=ok, other=0.0)
        a, d, ca, sa = tl.load(link_ptr + 4 * j), tl.load(link_ptr + 4 * j + 1), tl.load(link_ptr + 4 * j + 2), tl.load(link_ptr + 4 * j + 3)
        a0, a1, a2, b0, b1, b2, c0, c1, c2, x, y, z = next_joint(q, a, d, ca, sa, a0, a1, a2, b0, b1, b2, c0, c1, c2, x, y, z)


@case
def lantern_of_arms_of_seven_joints(n=250_000):
    q = f32(7, n)
    turn = torch.tensor([-1.0, 1, 1, -1, 1, 1, 0]) * math.pi / 2
    link = torch.stack([torch.tensor([0, 0, 0.08, -0.08, 0, 0.09, 0]), torch.tensor([0.33, 0, 0.32, 0, 0.38, 0, 0.11]), turn.cos(), turn.sin()], 1).contiguous().cuda()
    hand, jac = zeros(3, n, dtype="float32"), zeros(7, 6, n, dtype="float32")
    launched = run(arms, (cdiv(n, 128),), (q, link, hand, jac, n), (hand, jac), JOINTS=7, BLOCK=128, num_warps=4)

    def reference():
        frame, frames = torch.eye(4, dtype=torch.float64, device="cuda").repeat(n, 1, 1), []
        for j in range(7):
            frames.append(frame)
            a, d, ca, sa = link[j].double()
            c, s, o = q[j].double().cos(), q[j].double().sin(), torch.zeros(n, dtype=torch.float64, device="cuda")
            rows = (c, -s * ca, s * sa, a * c), (s, c * ca, -c * sa, a * s), (o, o + sa, o + ca, o + d), (o, o, o, o + 1)
            frame = frame @ torch.stack([torch.stack(row, 1) for row in rows], 1)
        end = frame[:, :3, 3]
        out = [torch.cat([torch.linalg.cross(f[:, :3, 2], end - f[:, :3, 3]), f[:, :3, 2]], 1).t() for f in frames]
        return end.t(), torch.stack(out)

    return against(launched, reference)


@triton.jit
def skin(vertex_ptr, bone_ptr, index_ptr, weight_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # Vertices moved by four bones, whose dual quaternions are added on the side of the first one and made whole again.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, 4)
    ok = i < N
    lead = tl.load(index_ptr + i * 4, mask=ok, other=0)
    pivot = tl.load(bone_ptr + lead[:, None] * 8 + c[None, :], mask=ok[:, None], other=0.0)
    real, dual = tl.zeros((BLOCK, 4), tl.float32), tl.zeros((BLOCK, 4), tl.float32)
    for b in tl.static_range(4):
        bone = tl.load(index_ptr + i * 4 + b, mask=ok, other=0)
        weight = tl.load(weight_ptr + i * 4 + b, mask=ok, other=0.25).to(tl.float32)
        r = tl.load(bone_ptr + bone[:, None] * 8 + c[None, :], mask=ok[:, None], other=1.0)
        d = tl.load(bone_ptr + bone[:, None] * 8 + 4 + c[None, :], mask=ok[:, None], other=0.0)
        weight = tl.where(tl.sum(r * pivot, 1) < 0, -weight, weight)
        real += weight[:, None] * r
        dual += weight[:, None] * d
    scale = tl.rsqrt(tl.sum(real * real, 1) + 1e-20)[:, None]
    even, odd = tl.split(tl.reshape(real * scale, (BLOCK, 2, 2)))
    w, y = tl.split(even)
    x, z = tl.split(odd)
    even, odd = tl.split(tl.reshape(dual * scale, (BLOCK, 2, 2)))
    dw, dy = tl.split(even)
    dx, dz = tl.split(odd)
    vx, vy, vz = tl.load(vertex_ptr + i * 3, mask=ok, other=0.0), tl.load(vertex_ptr + i * 3 + 1, mask=ok, other=0.0), tl.load(vertex_ptr + i * 3 + 2, mask=ok, other=0.0)
    tx, ty, tz = y * vz - z * vy + w * vx, z * vx - x * vz + w * vy, x * vy - y * vx + w * vz
    rx, ry, rz = vx + 2.0 * (y * tz - z * ty), vy + 2.0 * (z * tx - x * tz), vz + 2.0 * (x * ty - y * tx)
    rx += 2.0 * (w * dx - dw * x + y * dz - z * dy)
    ry += 2.0 * (w * dy - dw * y + z * dx - x * dz)
    rz += 2.0 * (w * dz - dw * z + x * dy - y * dx)
    tl.store(out_ptr + i * 3, rx, mask=ok)
    tl.store(out_ptr + i * 3 + 1, ry, mask=ok)
    tl.store(out_ptr + i * 3 + 2, rz, mask=ok)


@case
def lantern_of_vertices_moved_by_four_bones(n=300_000, bones=70):
    real = torch.nn.functional.normalize(f32(bones, 4) + torch.tensor([2.0, 0, 0, 0], device="cuda"), dim=1)
    real[::3] *= -1
    shift = f32(bones, 3)

    def dual_of(r, t):
        w, v = r[:, :1], r[:, 1:]
        return 0.5 * torch.cat([-(t * v).sum(1, True), w * t + torch.linalg.cross(t, v)], 1)

    bone = torch.cat([real, dual_of(real, shift)], 1).contiguous()
    vertex, index = f32(n, 3), ints(0, bones, n, 4)
    weight = (f32(n, 4) * 2).softmax(1).half()
    out = zeros(n, 3, dtype="float32")
    launched = run(skin, (cdiv(n, 128),), (vertex, bone, index, weight, out, n), out, BLOCK=128, num_warps=4)

    def reference():
        parts = bone.double()[index.long()]
        side = torch.where((parts[:, :, :4] * parts[:, :1, :4]).sum(2) < 0, -1.0, 1.0)
        q = (parts * (weight.double() * side)[..., None]).sum(1)
        q = q / q[:, :4].norm(dim=1, keepdim=True)
        w, v, dw, dv = q[:, :1], q[:, 1:4], q[:, 4:5], q[:, 5:]
        p = vertex.double()
        turned = p + 2 * torch.linalg.cross(v, torch.linalg.cross(v, p) + w * p)
        return turned + 2 * (w * dv - dw * v + torch.linalg.cross(v, dv))

    return against(launched, reference)


@triton.jit
def pull_together(p_ptr, q_ptr, n_ptr, match_ptr, start_ptr, gram_ptr, TARGETS, width, BP: tl.constexpr):
    # Points against planes of matched points: seven columns (turn, shift, error) whose products leave by one dot; far pairs weigh less.
    cloud = tl.program_id(0)
    begin, end = tl.load(start_ptr + cloud), tl.load(start_ptr + cloud + 1)
    c = tl.arange(0, 16)[None, :]
    acc = tl.zeros((16, 16), tl.float32)
    for i0 in range(begin, end, BP):
        i = i0 + tl.arange(0, BP)
        match = tl.load(match_ptr + i, mask=i < end, other=-1)
        ok = match >= 0
        px, py, pz = tl.load(p_ptr + i * 3, mask=ok, other=0.0), tl.load(p_ptr + i * 3 + 1, mask=ok, other=0.0), tl.load(p_ptr + i * 3 + 2, mask=ok, other=0.0)
        qx, qy, qz = tl.load(q_ptr + match * 3, mask=ok, other=0.0), tl.load(q_ptr + match * 3 + 1, mask=ok, other=0.0), tl.load(q_ptr + match * 3 + 2, mask=ok, other=0.0)
        nx, ny, nz = tl.load(n_ptr + match * 3, mask=ok, other=0.0), tl.load(n_ptr + match * 3 + 1, mask=ok, other=0.0), tl.load(n_ptr + match * 3 + 2, mask=ok, other=0.0)
        error = (px - qx) * nx + (py - qy) * ny + (pz - qz) * nz
        weight = tl.where(tl.abs(error) < width, 1.0, width / tl.maximum(tl.abs(error), 1e-9))
        turn = tl.where(c == 0, (py * nz - pz * ny)[:, None], tl.where(c == 1, (pz * nx - px * nz)[:, None], (px * ny - py * nx)[:, None]))
        shift = tl.where(c == 3, nx[:, None], tl.where(c == 4, ny[:, None], nz[:, None]))
        j = tl.where(c < 3, turn, tl.where(c < 6, shift, tl.where(c == 6, error[:, None], 0.0)))
        acc = tl.dot(tl.trans(j * weight[:, None]), j, acc, input_precision="ieee")
    r = tl.arange(0, 16)[:, None]
    tl.store(gram_ptr + cloud * 49 + r * 7 + c, acc, mask=(r < 7) & (c < 7))


@case
def lantern_of_clouds_pulled_together(clouds=700, longest=3000, targets=50_000):
    length = torch.randint(1, longest, (clouds,))
    start = torch.cat([torch.zeros(1, dtype=torch.long), length.cumsum(0)])
    total = int(start[-1])
    q, normal = f32(targets, 3) * 2, torch.nn.functional.normalize(f32(targets, 3), dim=1)
    match = torch.where(uniform(total) < 0.1, -1, ints(0, targets, total)).int()
    p = q[match.clamp(min=0).long()] + f32(total, 3) * 0.1
    gram = zeros(clouds, 7, 7, dtype="float32")
    launched = run(pull_together, (clouds,), (p, q, normal, match, start.int().cuda(), gram, targets, 0.1), gram, BP=64, num_warps=2, num_stages=1)

    def reference():
        m = match.clamp(min=0).long()
        a, b, n = p.double(), q.double()[m], normal.double()[m]
        error = ((a - b) * n).sum(1, True)
        j = torch.cat([torch.linalg.cross(a, n), n, error], 1)
        weight = torch.where(error.abs() < 0.1, 1.0, 0.1 / error.abs().clamp(min=1e-9)) * (match >= 0)[:, None]
        owner = torch.repeat_interleave(torch.arange(clouds), length).cuda()
        return torch.zeros(clouds, 49, dtype=torch.float64, device="cuda").index_add(0, owner, ((j * weight)[:, :, None] * j[:, None, :]).reshape(-1, 49))

    return against(launched, reference)


@triton.jit
def floors(x_ptr, pick_ptr, votes_ptr, best_ptr, N, TRIES, near, BH: tl.constexpr, BP: tl.constexpr):
    # Planes through three drawn points each, and how many points lie on them; the best one of all by one atomic on long words.
    h = tl.program_id(0) * BH + tl.arange(0, BH)
    ok = h < TRIES
    a, b, c = tl.load(pick_ptr + h * 3, mask=ok, other=0), tl.load(pick_ptr + h * 3 + 1, mask=ok, other=0), tl.load(pick_ptr + h * 3 + 2, mask=ok, other=0)
    ax, ay, az = tl.load(x_ptr + a), tl.load(x_ptr + N + a), tl.load(x_ptr + 2 * N + a)
    ux, uy, uz = tl.load(x_ptr + b) - ax, tl.load(x_ptr + N + b) - ay, tl.load(x_ptr + 2 * N + b) - az
    vx, vy, vz = tl.load(x_ptr + c) - ax, tl.load(x_ptr + N + c) - ay, tl.load(x_ptr + 2 * N + c) - az
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    size = nx * nx + ny * ny + nz * nz
    bound = near * near * size
    votes = tl.zeros((BH, BP), tl.int32)
    for i0 in range(0, N, BP):
        i = i0 + tl.arange(0, BP)
        inside = i < N
        x, y, z = tl.load(x_ptr + i, mask=inside, other=0.0), tl.load(x_ptr + N + i, mask=inside, other=0.0), tl.load(x_ptr + 2 * N + i, mask=inside, other=0.0)
        off = (x[None, :] - ax[:, None]) * nx[:, None] + (y[None, :] - ay[:, None]) * ny[:, None] + (z[None, :] - az[:, None]) * nz[:, None]
        votes += (inside[None, :] & (off * off < bound[:, None])).to(tl.int32)
    count = tl.sum(votes, 1)
    tl.store(votes_ptr + h, count, mask=ok)
    packed = tl.where(ok, count.to(tl.int64) * (1 << 24) + ((1 << 24) - 1 - h), 0)
    tl.atomic_max(best_ptr, tl.max(packed, 0))


@case
def lantern_of_floors_that_most_points_lie_on(n=20_000, tries=2000):
    # Coordinates are small whole numbers: distances are exact.
    x = ints(-40, 41, 3, n).float()
    x[2, : n // 2] = x[0, : n // 2] + ints(-1, 2, n // 2)
    pick = ints(0, n, tries, 3)
    votes, best = zeros(tries, dtype="int32"), zeros(1, dtype="int64")
    launched = run(floors, (cdiv(tries, 8),), (x, pick, votes, best, n, tries, 1.2345), (votes, best), BH=8, BP=128, num_warps=4)

    def reference():
        p = x.double().t()
        a, b, c = (p[pick[:, k].long()] for k in range(3))
        normal = torch.linalg.cross(b - a, c - a)
        off = normal @ p.t() - (normal * a).sum(1, True)
        count = (off.square() < 1.2345**2 * normal.square().sum(1, True)).sum(1)
        return count, (count * (1 << 24) + (1 << 24) - 1 - arange(tries, "int64")).amax().reshape(1)

    return against(cleared(launched, best), reference)


@triton.jit
def cepstra(power_ptr, mel_ptr, turn_ptr, out_ptr, energy_ptr, FRAMES, BINS, MELS: tl.constexpr, KEPT, BF: tl.constexpr, BK: tl.constexpr):
    # Spectra to bands, their logarithms to cosines of bands: a dot, what is done to its result, and a dot of that; lifted at the end.
    f = tl.program_id(0) * BF + tl.arange(0, BF)
    m, c = tl.arange(0, MELS), tl.arange(0, 16)
    acc = tl.zeros((BF, MELS), tl.float32)
    energy = tl.zeros((BF,), tl.float32)
    for k0 in range(0, BINS, BK):
        k = k0 + tl.arange(0, BK)
        power = tl.load(power_ptr + f[:, None] * BINS + k[None, :], mask=(f < FRAMES)[:, None] & (k < BINS)[None, :], other=0.0)
        energy += tl.sum(power.to(tl.float32), 1)
        acc = tl.dot(power, tl.load(mel_ptr + k[:, None] * MELS + m[None, :], mask=(k < BINS)[:, None], other=0.0), acc)
    bands = tl.log(tl.maximum(acc, 1e-3))
    coded = tl.dot(bands, tl.load(turn_ptr + m[:, None] * 16 + c[None, :]), input_precision="ieee")
    lift = 1.0 + 11.0 * tl.sin(c.to(tl.float32) * 0.14279967)
    tl.store(out_ptr + f[:, None] * KEPT + c[None, :], coded * lift[None, :], mask=(f < FRAMES)[:, None] & (c < KEPT)[None, :])
    tl.store(energy_ptr + f, tl.log(tl.maximum(energy, 1e-3)), mask=f < FRAMES)


@case
def lantern_of_voices_to_thirteen_cosines_of_bands(frames=30_000, bins=257, mels=32):
    power = (f32(frames, bins).square() + 0.01).half()
    mel = ((torch.arange(bins)[:, None] / 8 - torch.arange(mels)[None, :]).abs().mul(-1).add(1.5).clamp(min=0)).half().cuda()
    turn = (torch.cos(math.pi / mels * (torch.arange(mels)[:, None] + 0.5) * torch.arange(16)[None, :]) * (2 / mels) ** 0.5).cuda()
    out, energy = zeros(frames, 13, dtype="float32"), zeros(frames, dtype="float32")
    args = power, mel, turn, out, energy, frames, bins
    launched = run(cepstra, (cdiv(frames, 64),), args, (out, energy), MELS=mels, KEPT=13, BF=64, BK=64, num_warps=4, num_stages=3)

    def reference():
        bands = (power.double() @ mel.double()).clamp(min=1e-3).log()
        lift = 1 + 11 * torch.sin(torch.arange(13, device="cuda").double() * 0.14279967)
        return (bands @ turn.double())[:, :13] * lift, power.double().sum(1).clamp(min=1e-3).log()

    return against(launched, reference)


@triton.jit
def turns_undone(re_ptr, im_ptr, out_ptr, T, B, BT: tl.constexpr):
    # The phase of a bin along frames without its jumps: whole turns between frames are summed as numbers, chunk after chunk.
    b = tl.program_id(0)
    t = tl.arange(0, BT)
    turns, last = 0, 0.0
    for t0 in range(0, T, BT):
        at = (t0 + t) * B + b
        ok = t0 + t < T
        re, im = tl.load(re_ptr + at, mask=ok, other=1.0), tl.load(im_ptr + at, mask=ok, other=0.0)
        phase = libdevice.atan2(im, re)
        before = tl.gather(phase, tl.maximum(t - 1, 0), 0)
        before = tl.where(t == 0, tl.where(t0 == 0, phase, last), before)
        step = tl.where(ok, -tl.floor((phase - before) * 0.15915494 + 0.5).to(tl.int32), 0)
        whole = turns + tl.cumsum(step, 0)
        tl.store(out_ptr + at, phase + whole.to(tl.float32) * 6.2831853, mask=ok)
        turns += tl.sum(step, 0)
        last = tl.sum(tl.where(t == BT - 1, phase, 0.0), 0)


@case
def lantern_of_phases_without_their_jumps(t=3000, b=513, bt=512):
    phase = (f32(t, b) * 0.6 + torch.linspace(0.2, 2, b, device="cuda")).cumsum(0)
    re, im, out = phase.cos(), phase.sin(), zeros(t, b, dtype="float32")
    launched = run(turns_undone, (b,), (re, im, out, t, b), out, BT=bt, num_warps=4)

    def reference():
        p = torch.atan2(im.double(), re.double())
        step = -torch.floor(p.diff(dim=0, prepend=p[:1]) / (2 * math.pi) + 0.5)
        return p + step.cumsum(0) * 2 * math.pi

    return against(launched, reference)


@triton.jit
def merge_pairs(sym_ptr, rank_ptr, out_ptr, size_ptr, VOCAB, L: tl.constexpr):
    # A word of up to 32 pieces: the pair of the lowest rank becomes one piece, until no pair has a rank.
    word = tl.program_id(0)
    i = tl.arange(0, L)
    sym = tl.load(sym_ptr + word * L + i)
    size = tl.sum((sym >= 0).to(tl.int32), 0)
    rank, at = 0, 0
    while rank < VOCAB:
        following = tl.gather(sym, tl.minimum(i + 1, L - 1), 0)
        pair = i + 1 < size
        ranks = tl.load(rank_ptr + sym * VOCAB + following, mask=pair, other=32767).to(tl.int32)
        rank, at = tl.min(ranks, 0, return_indices=True)
        if rank < VOCAB:
            sym = tl.where(i > at, following, sym)
            size -= 1
            sym = tl.where(i == at, 256 + rank, tl.where(i < size, sym, -1))
    tl.store(out_ptr + word * L + i, sym)
    tl.store(size_ptr + word, size)


@case
def lantern_of_words_whose_pieces_merge(words=20_000, vocab=1000, l=32):
    rank = torch.full((vocab, vocab), 32767, dtype=torch.int16)
    letters = 16
    for r in range(vocab - 256):
        known = list(range(letters)) + list(range(256, 256 + r))
        while True:
            a, b = known[int(torch.randint(0, min(len(known), 3 * letters + r // 4), (1,)))], known[int(torch.randint(0, min(len(known), 3 * letters), (1,)))]
            if rank[a, b] == 32767:
                break
        rank[a, b] = r
    size = torch.randint(1, l + 1, (words,))
    sym = torch.where(torch.arange(l)[None] < size[:, None], torch.randint(0, letters, (words, l)), -1).int()
    out, sizes = zeros(words, l, dtype="int32"), zeros(words, dtype="int32")
    launched = run(merge_pairs, (words,), (sym.cuda(), rank.cuda(), out, sizes, vocab), (out, sizes), L=l, num_warps=1)

    def reference():
        s, n, i = sym.long().clone(), size.clone(), torch.arange(l)
        while True:
            following = torch.cat([s[:, 1:], s[:, -1:]], 1)
            ranks = torch.where(i + 1 < n[:, None], rank.long()[s.clamp(min=0), following.clamp(min=0)], 32767)
            best, at = ranks.min(1)
            at = (ranks == best[:, None]).int().argmax(1)
            go = best < vocab
            if not go.any():
                break
            new = torch.where(i > at[:, None], following, s)
            new = torch.where(i == at[:, None], 256 + best[:, None], torch.where(i < n[:, None] - 1, new, -1))
            s, n = torch.where(go[:, None], new, s), n - go.long()
        return s.cuda(), n.cuda()

    return against(launched, reference)


@triton.jit
def draw_within_spread(x_ptr, noise_ptr, token_ptr, kept_ptr, logp_ptr, V, spread, floor_, heat, BLOCK: tl.constexpr):
    # Tokens within a few deviations of the best logit, and above a share of its probability; the noisiest of them is drawn.
    row = tl.program_id(0).to(tl.int64)
    v = tl.arange(0, BLOCK)
    top, total, squares = tl.full((BLOCK,), -1e30, tl.float32), tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for v0 in range(0, V, BLOCK):
        ok = v0 + v < V
        x = tl.load(x_ptr + row * V + v0 + v, mask=ok, other=0.0).to(tl.float32)
        top = tl.where(ok, tl.maximum(top, x), top)
        total += x
        squares += x * x
    high = tl.max(top, 0)
    mean = tl.sum(total, 0) / V
    deviation = tl.sqrt(tl.maximum(tl.sum(squares, 0) / V - mean * mean, 0.0))
    bound = tl.maximum(high - spread * deviation, high + heat * tl.log(floor_))
    best, where = tl.full((BLOCK,), -1e30, tl.float32), tl.zeros((BLOCK,), tl.int32)
    mass, kept, chosen = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.float32)
    for v0 in range(0, V, BLOCK):
        ok = v0 + v < V
        x = tl.load(x_ptr + row * V + v0 + v, mask=ok, other=0.0, eviction_policy="evict_first").to(tl.float32)
        keep = ok & (x >= bound)
        if tl.max(keep.to(tl.int32), 0) > 0:
            u = tl.load(noise_ptr + row * V + v0 + v, mask=keep, other=0.5)
            z = (x - high) / heat
            score = tl.where(keep, z - tl.log(-tl.log(u)), -1e30)
            better = score > best
            best, where, chosen = tl.where(better, score, best), tl.where(better, v0 + v, where), tl.where(better, z, chosen)
            mass += tl.where(keep, tl.exp(z), 0.0)
            kept += keep.to(tl.int32)
    lane = tl.argmax(best, 0)
    tl.store(token_ptr + row, tl.sum(tl.where(v == lane, where, 0), 0))
    tl.store(kept_ptr + row, tl.sum(kept, 0))
    tl.store(logp_ptr + row, tl.sum(tl.where(v == lane, chosen, 0.0), 0) - tl.log(tl.sum(mass, 0)))


@case
def lantern_of_tokens_within_a_spread_of_the_best(rows=400, v=50_257):
    x, noise = rand(rows, v), uniform(rows, v).clamp(1e-6, 1 - 1e-6)
    x[:, ::101] += 3
    token, kept, logp = zeros(rows, dtype="int32"), zeros(rows, dtype="int32"), zeros(rows, dtype="float32")
    args = x, noise, token, kept, logp, v, 2.5, 0.01, 0.8
    launched = run(draw_within_spread, (rows,), args, (token, kept, logp), BLOCK=4096, num_warps=16)

    def reference():
        y = x.double()
        high = y.amax(1, True)
        bound = torch.maximum(high - 2.5 * y.std(1, correction=0, keepdim=True), high + 0.8 * math.log(0.01))
        keep, z = y >= bound, (y - high) / 0.8
        choice = torch.where(keep, z - torch.log(-torch.log(noise.double())), -1e30).argmax(1)
        norm = torch.where(keep, z, -math.inf).logsumexp(1)
        return choice, keep.sum(1), z.gather(1, choice[:, None])[:, 0] - norm

    return against(launched, reference)


@triton.jit
def fours_with_small_scales(x_ptr, code_ptr, scale_ptr, ROWS, COLS, whole, up, BR: tl.constexpr, BC: tl.constexpr):
    # Numbers to floats of four bits, sixteen to a scale of fp8; scales lie as the tensor cores of later machines read them.
    row = tl.program_id(0) * BR + tl.arange(0, BR)
    col = tl.program_id(1) * BC + tl.arange(0, BC)
    x = tl.load(x_ptr + row[:, None] * COLS + col[None, :], mask=(row < ROWS)[:, None], other=0.0).to(tl.float32)
    x = tl.reshape(x, (BR, BC // 16, 16))
    most = tl.max(tl.abs(x), 2)
    scale = tl.minimum(most * up, 448.0).to(tl.float8e4nv)
    back = scale.to(tl.float32)
    x = x * tl.where(back > 0, tl.div_rn(tl.zeros_like(back) + whole, back), 0.0)[:, :, None]
    size = tl.abs(x)
    code = (size > 0.25).to(tl.int32) + (size >= 0.75).to(tl.int32) + (size > 1.25).to(tl.int32) + (size >= 1.75).to(tl.int32)
    code += (size > 2.5).to(tl.int32) + (size >= 3.5).to(tl.int32) + (size > 5.0).to(tl.int32)
    code |= tl.where(x < 0, 8, 0)
    low, high = tl.split(tl.reshape(code, (BR, BC // 2, 2)))
    pair = tl.program_id(1) * (BC // 2) + tl.arange(0, BC // 2)
    tl.store(code_ptr + row[:, None] * (COLS // 2) + pair[None, :], (low | (high << 4)).to(tl.uint8), mask=(row < ROWS)[:, None])
    group = tl.program_id(1) * (BC // 16) + tl.arange(0, BC // 16)
    tile = row[:, None] // 128 * (COLS // 64) + group[None, :] // 4
    at = tile * 512 + row[:, None] % 32 * 16 + row[:, None] % 128 // 32 * 4 + group[None, :] % 4
    tl.store(scale_ptr + at, scale)


@case
def lantern_of_floats_of_four_bits_with_scales_in_tiles(rows=3000, cols=4096):
    x = rand(rows, cols) * (uniform(rows, 1) * 3 + 0.1).half()
    padded = cdiv(rows, 128) * 128
    code, scale = zeros(rows, cols // 2, dtype="uint8"), zeros(padded * cols // 16, dtype="float8_e4m3fn")
    args = x, code, scale, rows, cols, 12.0, 2.0
    launched = run(fours_with_small_scales, (cdiv(rows, 128) * 8, cols // 256), args, (code, scale), BR=16, BC=256, num_warps=4)

    def seen(codes):
        both = torch.stack([codes & 15, codes >> 4], 2).to(torch.int32)
        return far(torch.where(both > 7, -(both & 7), both))

    def reference():
        y = torch.nn.functional.pad(x.float(), (0, 0, 0, padded - rows)).reshape(padded, cols // 16, 16)
        s = (y.abs().amax(2) * 2.0).clamp(max=448).to(torch.float8_e4m3fn).float()
        z = y * torch.where(s > 0, torch.full_like(s, 12.0) / s, 0)[..., None]
        size = z.abs()
        c = sum((size > a).int() for a in (0.25, 1.25, 2.5, 5.0)) + sum((size >= a).int() for a in (0.75, 1.75, 3.5))
        c = torch.where(z < 0, -c, c).reshape(padded, cols // 2, 2)[:rows]
        tiles = s.reshape(padded // 128, 4, 32, cols // 64, 4).permute(0, 3, 2, 1, 4)
        return far(c), tiles.reshape(-1)

    return against(viewed(launched, lambda outs: (seen(outs[0]), outs[1].float())), reference)


@triton.jit
def step_by_older_squares(p_ptr, g_ptr, m_ptr, v_ptr, p_out, m_out, v_out, n, lr, b1, b2, eps, decay, bound, BLOCK: tl.constexpr):
    # Gradients over the root of squares up to the last step, bounded, then momentum: numbers of three widths.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    g = tl.load(g_ptr + i, mask=ok, other=0.0).to(tl.float32)
    v = tl.load(v_ptr + i, mask=ok, other=1.0)
    p = tl.load(p_ptr + i, mask=ok, other=0.0).to(tl.float32)
    m = tl.load(m_ptr + i, mask=ok, other=0.0).to(tl.float32)
    ratio = g / tl.maximum(tl.sqrt(v), eps)
    m = b1 * m + (1.0 - b1) * tl.clamp(ratio, -bound, bound)
    p = p * (1.0 - lr * decay) - lr * m
    tl.store(p_out + i, p.to(tl.float16), mask=ok)
    tl.store(m_out + i, m.to(tl.float16), mask=ok)
    tl.store(v_out + i, b2 * v + (1.0 - b2) * g * g, mask=ok)


@case
def lantern_of_steps_by_squares_of_the_steps_before(n=9_000_001):
    p, g, m, v = rand(n), rand(n), rand(n) / 8, uniform(n) + 0.01
    outs = zeros(n), zeros(n), zeros(n, dtype="float32")
    args = p, g, m, v, *outs, n, 0.05, 0.9, 0.999, 1e-6, 0.1, 1.5
    launched = run(step_by_older_squares, (cdiv(n, 2048),), args, outs, BLOCK=2048, num_warps=8)

    def reference():
        f = g.double()
        one = 0.9 * m.double() + 0.1 * (f / v.double().sqrt().clamp(min=1e-6)).clamp(-1.5, 1.5)
        return p.double() * (1 - 0.005) - 0.05 * one, one, 0.999 * v.double() + 0.001 * f * f

    return against(launched, reference)


@triton.jit
def keys_of_pictures(k_ptr, w_ptr, place_ptr, freq_ptr, slot_ptr, cache_ptr, scale_ptr, eps, HEADS: tl.constexpr, P: tl.constexpr, D: tl.constexpr):
    # Keys are normed, turned by row and column (even pairs by rows, odd ones by columns), made bytes and put to their slots.
    token = tl.program_id(0)
    slot = tl.load(slot_ptr + token).to(tl.int64)
    if slot < 0:
        return
    h, d = tl.arange(0, P)[:, None], tl.arange(0, D)[None, :]
    k = tl.load(k_ptr + (token * HEADS + h) * D + d, mask=h < HEADS, other=0.0).to(tl.float32)
    k = k * tl.rsqrt(tl.sum(k * k, 1) / D + eps)[:, None] * tl.load(w_ptr + d).to(tl.float32)
    pair = tl.arange(0, D // 2)
    where = tl.load(place_ptr + token * 2 + pair % 2).to(tl.float32)
    angle = (where * tl.load(freq_ptr + pair))[None, :]
    one, two = tl.split(tl.reshape(k, (P, D // 2, 2)))
    c, s = tl.cos(angle), tl.sin(angle)
    k = tl.reshape(tl.join(one * c - two * s, two * c + one * s), (P, D))
    scale = tl.maximum(tl.max(tl.abs(k), 1), 1e-6) / 127.0
    code = tl.floor(k / scale[:, None] + 0.5).to(tl.int8)
    tl.store(cache_ptr + (slot * HEADS + h) * D + d, code, mask=h < HEADS)
    tl.store(scale_ptr + slot * HEADS + tl.arange(0, P), scale, mask=tl.arange(0, P) < HEADS)


@case
def lantern_of_keys_of_pictures_turned_twice_to_slots(tokens=9000, heads=6, d=128):
    k, w = rand(tokens, heads, d), rand(d)
    place, freq = ints(0, 64, tokens, 2), 100.0 ** -(torch.arange(d // 2, device="cuda") / (d // 2)).float()
    slot = torch.where(uniform(tokens) < 0.1, -1, torch.randperm(tokens + 500)[:tokens].cuda()).int()
    cache, scale = zeros(tokens + 500, heads, d, dtype="int8"), zeros(tokens + 500, heads, dtype="float32")
    args = k, w, place, freq, slot, cache, scale, 1e-6
    launched = run(keys_of_pictures, (tokens,), args, (cache, scale), HEADS=heads, P=8, D=d, num_warps=2)

    def reference():
        x = k.float() * torch.rsqrt(k.float().square().mean(2, True) + 1e-6) * w.float()
        angle = (place.float()[:, torch.arange(d // 2, device="cuda") % 2] * freq)[:, None]
        one, two = x[..., ::2], x[..., 1::2]
        x = torch.stack([one * angle.cos() - two * angle.sin(), two * angle.cos() + one * angle.sin()], 3).reshape(tokens, heads, d)
        s = x.abs().amax(2).clamp(min=1e-6) / 127
        codes, scales = torch.zeros(tokens + 500, heads, d, device="cuda"), torch.zeros(tokens + 500, heads, device="cuda")
        ok = slot >= 0
        codes[slot[ok].long()], scales[slot[ok].long()] = torch.floor(x / s[..., None] + 0.5)[ok], s[ok]
        return far(codes), scales

    return against(viewed(launched, lambda outs: (far(outs[0]), outs[1])), reference)


@triton.jit
def attend_after_a_prefix(
    q_ptr, k_ptr, v_ptr, gate_ptr, wq_ptr, wk_ptr, prefix_ptr, o_ptr, T, H, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    # Queries and keys are normed on the way in; a prefix is seen by all, the rest by what follows; a gate of sigmoids at the end.
    tile, bh = tl.program_id(0), tl.program_id(1)
    prefix = tl.load(prefix_ptr + bh // H)
    base = bh.to(tl.int64) * T * D
    q_block = tl.make_block_ptr(q_ptr + base, (T, D), (D, 1), (tile * BM, 0), (BM, D), (1, 0))
    g_block = tl.make_block_ptr(gate_ptr + base, (T, D), (D, 1), (tile * BM, 0), (BM, D), (1, 0))
    o_block = tl.make_block_ptr(o_ptr + base, (T, D), (D, 1), (tile * BM, 0), (BM, D), (1, 0))
    k_block = tl.make_block_ptr(k_ptr + base, (T, D), (D, 1), (0, 0), (BN, D), (1, 0))
    v_block = tl.make_block_ptr(v_ptr + base, (T, D), (D, 1), (0, 0), (BN, D), (1, 0))
    d = tl.arange(0, D)
    wq, wk = tl.load(wq_ptr + d).to(tl.float32), tl.load(wk_ptr + d).to(tl.float32)
    q = tl.load(q_block, boundary_check=(0,), padding_option="zero").to(tl.float32)
    q = (q * tl.rsqrt(tl.sum(q * q, 1) / D + 1e-6)[:, None] * (wq * scale)[None, :]).to(tl.float16)
    m = tile * BM + tl.arange(0, BM)
    high, total = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n0 in range(0, tl.minimum(tl.maximum((tile + 1) * BM, prefix), T), BN):
        k = tl.load(k_block, boundary_check=(0,), padding_option="zero").to(tl.float32)
        k = (k * tl.rsqrt(tl.sum(k * k, 1) / D + 1e-6)[:, None] * wk[None, :]).to(tl.float16)
        n = n0 + tl.arange(0, BN)
        s = tl.dot(q, tl.trans(k))
        s = tl.where((n < T)[None, :] & ((n < prefix)[None, :] | (m[:, None] >= n[None, :])), s, -1e30)
        new = tl.maximum(high, tl.max(s, 1))
        p, fade = tl.exp2(s - new[:, None]), tl.exp2(high - new)
        total = total * fade + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), tl.load(v_block, boundary_check=(0,), padding_option="zero"), acc * fade[:, None])
        high = new
        k_block, v_block = tl.advance(k_block, (BN, 0)), tl.advance(v_block, (BN, 0))
    gate = tl.load(g_block, boundary_check=(0,), padding_option="zero").to(tl.float32)
    tl.store(o_block, (acc / total[:, None] / (1.0 + tl.exp(-gate))).to(tl.float16), boundary_check=(0,))


@case
def lantern_of_prefixes_seen_by_all_with_gates(b=3, h=10, t=1500, d=64, bm=64, bn=64):
    q, k, v, gate = (rand(b, h, t, d) for _ in range(4))
    wq, wk, prefix, o = rand(d), rand(d), ints(1, t // 2, b), zeros(b, h, t, d)
    args = q, k, v, gate, wq, wk, prefix, o, t, h, d**-0.5 * 1.44269504
    launched = run(attend_after_a_prefix, (cdiv(t, bm), b * h), args, o, D=d, BM=bm, BN=bn, num_warps=4, num_stages=2)

    def reference():
        def normed(x, w):
            return x.float() * torch.rsqrt(x.float().square().mean(-1, True) + 1e-6) * w.float()

        i = torch.arange(t, device="cuda")
        seen = (i[:, None] >= i[None, :])[None] | (i[None, None, :] < prefix[:, None, None])
        s = normed(q, wq) @ normed(k, wk).mT * d**-0.5
        return s.masked_fill(~seen[:, None], -math.inf).softmax(3) @ v.float() * torch.sigmoid(gate.float())

    return against(launched, reference)


@triton.jit
def states_and_outputs(x_ptr, b_ptr, c_ptr, a_ptr, skip_ptr, z_ptr, y_ptr, s_ptr, T, H, GROUP: tl.constexpr, P: tl.constexpr, N: tl.constexpr, C: tl.constexpr):
    # A state for each head goes through chunks of 64 steps: what a chunk gives itself, what the state gives it, and the state after it.
    head, batch = tl.program_id(0), tl.program_id(1)
    p, n, i = tl.arange(0, P), tl.arange(0, N), tl.arange(0, C)
    skip = tl.load(skip_ptr + head)
    state = tl.zeros((N, P), tl.float32)
    groups = H // GROUP
    for t0 in range(0, T, C):
        t = batch * T + t0 + i
        ok = t0 + i < T
        a = tl.load(a_ptr + t * H + head, mask=ok, other=0.0)
        sums = tl.cumsum(a, 0)
        whole = tl.sum(a, 0)
        x = tl.load(x_ptr + (t[:, None] * H + head) * P + p[None, :], mask=ok[:, None], other=0.0)
        b = tl.load(b_ptr + (t[:, None] * groups + head // GROUP) * N + n[None, :], mask=ok[:, None], other=0.0)
        c = tl.load(c_ptr + (t[:, None] * groups + head // GROUP) * N + n[None, :], mask=ok[:, None], other=0.0)
        fade = tl.where(i[:, None] >= i[None, :], tl.exp(tl.minimum(sums[:, None] - sums[None, :], 0.0)), 0.0)
        y = tl.dot((tl.dot(c, tl.trans(b)) * fade).to(tl.float16), x)
        y += tl.dot(c, state.to(tl.float16)) * tl.exp(sums)[:, None]
        kept = (b.to(tl.float32) * tl.exp(whole - sums)[:, None]).to(tl.float16)
        state = tl.dot(tl.trans(kept), x, state * tl.exp(whole))
        z = tl.load(z_ptr + (t[:, None] * H + head) * P + p[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
        y = (y + skip * x.to(tl.float32)) * z / (1.0 + tl.exp(-z))
        tl.store(y_ptr + (t[:, None] * H + head) * P + p[None, :], y.to(tl.float16), mask=ok[:, None])
    tl.store(s_ptr + ((batch * H + head) * N + n[:, None]) * P + p[None, :], state)


@case
def lantern_of_states_that_fade_through_chunks(batch=6, t=800, h=24, group=8, p=64, n=64, c=64):
    x, b, cc = rand(batch, t, h, p) / 4, rand(batch, t, h // group, n) / 4, rand(batch, t, h // group, n) / 4
    a, skip, z = -uniform(batch, t, h) * 0.2, f32(h), rand(batch, t, h, p)
    y, s = zeros(batch, t, h, p), zeros(batch, h, n, p, dtype="float32")
    args = x, b, cc, a, skip, z, y, s, t, h
    launched = run(states_and_outputs, (h, batch), args, (y, s), GROUP=group, P=p, N=n, C=c, num_warps=4, num_stages=2)

    def reference():
        state, outs = torch.zeros(batch, h, n, p, device="cuda"), []
        for i in range(t):
            bb, ci = b[:, i].float().repeat_interleave(group, 1), cc[:, i].float().repeat_interleave(group, 1)
            state = state * a[:, i].exp()[..., None, None] + bb[..., None] * x[:, i].float()[:, :, None]
            outs.append(torch.einsum("bhn,bhnp->bhp", ci, state))
        f = z.float()
        return (torch.stack(outs, 1) + skip[:, None] * x.float()) * f * torch.sigmoid(f), state

    return against(launched, reference)


@triton.jit
def beams_on_a_map(x_ptr, y_ptr, hit_ptr, map_ptr, x0, y0, BEAMS, SIDE, BLOCK: tl.constexpr):
    # Beams of a scanner through cells of a map, in whole numbers: cells on the way become freer, the last one fuller.
    b = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = b < BEAMS
    x1, y1 = tl.load(x_ptr + b, mask=ok, other=x0), tl.load(y_ptr + b, mask=ok, other=y0)
    x, y = tl.zeros((BLOCK,), tl.int32) + x0, tl.zeros((BLOCK,), tl.int32) + y0
    dx, dy = tl.abs(x1 - x), -tl.abs(y1 - y)
    sx, sy = tl.where(x < x1, 1, -1), tl.where(y < y1, 1, -1)
    error = dx + dy
    going = ok & ((x != x1) | (y != y1))
    while tl.sum(going.to(tl.int32), 0) > 0:
        tl.atomic_add(map_ptr + y * SIDE + x, -1, mask=going, sem="relaxed")
        twice = 2 * error
        right, down = going & (twice >= dy), going & (twice <= dx)
        error += tl.where(right, dy, 0) + tl.where(down, dx, 0)
        x += tl.where(right, sx, 0)
        y += tl.where(down, sy, 0)
        going = going & ((x != x1) | (y != y1))
    hit = tl.load(hit_ptr + b, mask=ok, other=0) != 0
    tl.atomic_add(map_ptr + y * SIDE + x, 7, mask=ok & hit, sem="relaxed")


@case
def lantern_of_beams_that_free_cells_of_a_map(beams=40_000, side=700):
    angle, far_ = uniform(beams) * 2 * math.pi, uniform(beams) * (side // 2 - 10) + 5
    x = (side // 2 + far_ * angle.cos()).int()
    y = (side // 2 + far_ * angle.sin()).int()
    hit, grid = (uniform(beams) < 0.8).to(torch.int8), zeros(side, side, dtype="int32")
    args = x, y, hit, grid, side // 2, side // 2, beams, side
    launched = run(beams_on_a_map, (cdiv(beams, 64),), args, grid, BLOCK=64, num_warps=1)

    def reference():
        cells = torch.zeros(side * side, dtype=torch.long, device="cuda")
        px, py = torch.full_like(x, side // 2), torch.full_like(y, side // 2)
        dx, dy = (x - px).abs(), -(y - py).abs()
        sx, sy, error = torch.where(px < x, 1, -1), torch.where(py < y, 1, -1), dx + dy
        going = (px != x) | (py != y)
        while going.any():
            cells.index_add_(0, (py * side + px).long(), -going.long())
            twice = 2 * error
            right, down = going & (twice >= dy), going & (twice <= dx)
            error = error + torch.where(right, dy, 0) + torch.where(down, dx, 0)
            px, py = px + torch.where(right, sx, 0), py + torch.where(down, sy, 0)
            going = (px != x) | (py != y)
        return cells.index_add(0, (py * side + px).long(), 7 * hit.long()).reshape(side, side)

    return against(cleared(launched, grid), reference)


@triton.jit
def words_of_a_picture(x_desc, w_desc, center_ptr, out_ptr, T, K: tl.constexpr, D: tl.constexpr, BT: tl.constexpr):
    # Places of a picture are shared out among 64 centers by a softmax of one dot; another sums what is left of them at each center.
    picture = tl.program_id(0)
    w = w_desc.load([0, 0])
    acc, share = tl.zeros((K, D), tl.float32), tl.zeros((K,), tl.float32)
    for t0 in tl.range(0, T, BT, num_stages=3):
        x = tl.reshape(x_desc.load([picture, t0, 0]), (BT, D))
        s = tl.dot(x, w.T)
        s = tl.exp(s - tl.max(s, 1)[:, None])
        s = s / tl.sum(s, 1)[:, None]
        s = tl.where((t0 + tl.arange(0, BT) < T)[:, None], s, 0.0)
        share += tl.sum(s, 0)
        acc = tl.dot(tl.trans(s).to(tl.float16), x, acc)
    at = tl.arange(0, K)[:, None] * D + tl.arange(0, D)[None, :]
    acc -= share[:, None] * tl.load(center_ptr + at)
    acc = acc * tl.rsqrt(tl.sum(acc * acc, 1) + 1e-12)[:, None]
    whole = tl.sum(tl.sum(acc * acc, 1), 0)
    tl.store(out_ptr + picture * K * D + at, acc * tl.rsqrt(whole + 1e-12))


@case
def lantern_of_places_shared_out_among_centers(pictures=300, t=784, d=128, k=64):
    x, w, center, out = rand(pictures, t, d), rand(k, d) / 4, f32(k, d), zeros(pictures, k, d, dtype="float32")
    x_desc, w_desc = TensorDescriptor.from_tensor(x, [1, 64, d]), TensorDescriptor.from_tensor(w, [k, d])
    launched = run(words_of_a_picture, (pictures,), (x_desc, w_desc, center, out, t), out, K=k, D=d, BT=64, num_warps=4, num_stages=3)

    def reference():
        s = (x.float() @ w.float().t()).softmax(2)
        v = s.mT @ x.float() - s.sum(1)[..., None] * center
        v = v / (v.square().sum(2, True) + 1e-12).sqrt()
        return v / (v.square().sum((1, 2), True) + 1e-12).sqrt()

    return against(launched, reference)
