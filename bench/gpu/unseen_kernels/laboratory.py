"""Laboratory: separating phases, vortices, trees of bodies, walks, nerves, gases, elements, lines of spectra, compact differences, profiles."""

import math

import torch
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros
from .recipes import drawn


@triton.jit
def _periodic(c_ptr, y, x, H, W):
    y = tl.where(y < 0, y + H, tl.where(y >= H, y - H, y))
    x = tl.where(x < 0, x + W, tl.where(x >= W, x - W, x))
    return tl.load(c_ptr + y[:, None] * W + x[None, :])


@triton.jit
def separating_phases(c_ptr, o_ptr, mu_ptr, H, W, kappa, dt, BY: tl.constexpr, BX: tl.constexpr):
    # A step of a conserved mixture: potentials at five places from thirteen concentrations, and their curvature.
    y, x = tl.program_id(1) * BY + tl.arange(0, BY), tl.program_id(0) * BX + tl.arange(0, BX)
    c = _periodic(c_ptr, y, x, H, W)
    n, s, w, e = _periodic(c_ptr, y - 1, x, H, W), _periodic(c_ptr, y + 1, x, H, W), _periodic(c_ptr, y, x - 1, H, W), _periodic(c_ptr, y, x + 1, H, W)
    nw, ne = _periodic(c_ptr, y - 1, x - 1, H, W), _periodic(c_ptr, y - 1, x + 1, H, W)
    sw, se = _periodic(c_ptr, y + 1, x - 1, H, W), _periodic(c_ptr, y + 1, x + 1, H, W)
    nn, ss, ww, ee = _periodic(c_ptr, y - 2, x, H, W), _periodic(c_ptr, y + 2, x, H, W), _periodic(c_ptr, y, x - 2, H, W), _periodic(c_ptr, y, x + 2, H, W)
    mu = c * c * c - c - kappa * (n + s + w + e - 4.0 * c)
    around = n * n * n - n - kappa * (nn + c + nw + ne - 4.0 * n)
    around += s * s * s - s - kappa * (ss + c + sw + se - 4.0 * s)
    around += w * w * w - w - kappa * (ww + c + nw + sw - 4.0 * w)
    around += e * e * e - e - kappa * (ee + c + ne + se - 4.0 * e)
    at = y[:, None] * W + x[None, :]
    tl.store(o_ptr + at, c + dt * (around - 4.0 * mu))
    tl.store(mu_ptr + at, mu)


@case
def lab_phases_separate_on_a_torus(h=3072, w=3072):
    c = uniform(h, w) * 2 - 1
    o, mu = zeros(h, w, dtype="float32"), zeros(h, w, dtype="float32")
    launched = run(separating_phases, (w // 128, h // 8), (c, o, mu, h, w, 0.7, 0.02), (o, mu), BY=8, BX=128, num_warps=4)

    def reference():
        def curve(f):
            return f.roll(1, 0) + f.roll(-1, 0) + f.roll(1, 1) + f.roll(-1, 1) - 4 * f

        potential = c**3 - c - 0.7 * curve(c)
        return c + 0.02 * curve(potential), potential

    return against(launched, reference)


@triton.jit
def averaged_spectra(x_ptr, window_ptr, p_ptr, T, FRAMES, HOP, R: tl.constexpr):
    # 1,024 = 32 x 32: two products with the matrix of 32 roots of one and turns between them, averaged over overlapping frames.
    row = tl.program_id(0)
    a, b = tl.arange(0, R), tl.arange(0, R)
    angle = ((a[:, None] * b[None, :]) % R).to(tl.float32) * (-6.283185307179586 / R)
    cos, sin = tl.cos(angle), tl.sin(angle)
    turn = (a[:, None] * b[None, :]).to(tl.float32) * (-6.283185307179586 / (R * R))
    tcos, tsin = tl.cos(turn), tl.sin(turn)
    at = a[:, None] * R + b[None, :]
    window = tl.load(window_ptr + at)
    power = tl.zeros((R, R), tl.float32)
    for frame in range(FRAMES):
        x = tl.load(x_ptr + row * T + frame * HOP + at) * window
        re, im = tl.dot(cos, x, input_precision="tf32x3"), tl.dot(sin, x, input_precision="tf32x3")
        re, im = re * tcos - im * tsin, re * tsin + im * tcos
        u = tl.dot(re, cos, input_precision="tf32x3") - tl.dot(im, sin, input_precision="tf32x3")
        v = tl.dot(re, sin, input_precision="tf32x3") + tl.dot(im, cos, input_precision="tf32x3")
        power += u * u + v * v
    k = a[:, None] + R * b[None, :]
    tl.store(p_ptr + row * (R * R // 2 + 1) + k, power / FRAMES, mask=k <= R * R // 2)


@case
def lab_spectra_of_1024_by_dots_of_32_averaged(rows=2000, frames=7):
    hop, n = 400, 1024
    t = n + hop * (frames - 1) + 3
    x, window = f32(rows, t), torch.hann_window(n, device="cuda")
    p = zeros(rows, n // 2 + 1, dtype="float32")
    launched = run(averaged_spectra, (rows,), (x, window, p, t, frames, hop), p, R=32, num_warps=4, num_stages=2)
    return against(launched, lambda: (torch.fft.rfft(x.unfold(1, n, hop)[:, :frames] * window).abs() ** 2).mean(1))


@triton.jit
def vortices_with_cores(x_ptr, y_ptr, g_ptr, s_ptr, u_ptr, v_ptr, psi_ptr, N, BI: tl.constexpr, BJ: tl.constexpr):
    # Every vortex turns every other, less inside its core; velocities and stream function.
    i, j = tl.program_id(0) * BI + tl.arange(0, BI), tl.arange(0, BJ)
    x, y = tl.load(x_ptr + i, mask=i < N, other=0.0), tl.load(y_ptr + i, mask=i < N, other=0.0)
    u, v, psi = tl.zeros((BI,), tl.float32), tl.zeros((BI,), tl.float32), tl.zeros((BI,), tl.float32)
    for j0 in range(0, N, BJ):
        ok = j0 + j < N
        dx = x[:, None] - tl.load(x_ptr + j0 + j, mask=ok, other=0.0)[None, :]
        dy = y[:, None] - tl.load(y_ptr + j0 + j, mask=ok, other=0.0)[None, :]
        g, s = tl.load(g_ptr + j0 + j, mask=ok, other=0.0), tl.load(s_ptr + j0 + j, mask=ok, other=1.0)
        far = dx * dx + dy * dy + 1e-6
        pull = g[None, :] * (1.0 - tl.exp(-far * s[None, :])) / far
        u -= tl.sum(pull * dy, 1)
        v += tl.sum(pull * dx, 1)
        psi -= 0.5 * tl.sum(g[None, :] * tl.log(far), 1)
    by = 0.15915494309189535
    tl.store(u_ptr + i, u * by, mask=i < N)
    tl.store(v_ptr + i, v * by, mask=i < N)
    tl.store(psi_ptr + i, psi * by, mask=i < N)


@case
def lab_vortices_turn_each_other(n=6000):
    x, y, g, s = uniform(n) * 10, uniform(n) * 10, f32(n), uniform(n) * 50 + 20
    u, v, psi = (zeros(n, dtype="float32") for _ in range(3))
    launched = run(vortices_with_cores, (cdiv(n, 32),), (x, y, g, s, u, v, psi, n), (u, v, psi), BI=32, BJ=64, num_warps=4)

    def reference():
        dx, dy = x[:, None] - x[None, :], y[:, None] - y[None, :]
        away = dx.square() + dy.square() + 1e-6
        pull = g * (1 - torch.exp(-away * s)) / away / (2 * math.pi)
        return -(pull * dy).sum(1), (pull * dx).sum(1), -0.5 * (g * away.log()).sum(1) / (2 * math.pi)

    return against(launched, reference)


@triton.jit
def bodies_through_a_tree(x_ptr, y_ptr, node_x_ptr, node_y_ptr, mass_ptr, size_ptr, skip_ptr, ax_ptr, ay_ptr, steps_ptr, N, NODES, soft, B: tl.constexpr):
    # Each lane walks the tree in order: a node small for its distance is taken whole and what is below it skipped.
    i = tl.program_id(0) * B + tl.arange(0, B)
    x, y = tl.load(x_ptr + i, mask=i < N, other=0.0), tl.load(y_ptr + i, mask=i < N, other=0.0)
    ax, ay = tl.zeros((B,), tl.float32), tl.zeros((B,), tl.float32)
    node = tl.where(i < N, 0, NODES)
    steps = tl.zeros((B,), tl.int32)
    while tl.min(node, 0) < NODES:
        on = node < NODES
        dx = tl.load(node_x_ptr + node, mask=on, other=0.0) - x
        dy = tl.load(node_y_ptr + node, mask=on, other=0.0) - y
        size = tl.load(size_ptr + node, mask=on, other=0.0)
        far = dx * dx + dy * dy + soft
        whole = on & (size * size < 0.8 * far)
        mass = tl.load(mass_ptr + node, mask=whole, other=0.0)
        pull = mass * tl.rsqrt(far) / far
        ax += pull * dx
        ay += pull * dy
        steps += on.to(tl.int32)
        node = tl.where(whole, tl.load(skip_ptr + node, mask=on, other=0), node + 1)
        node = tl.where(on, node, NODES)
    tl.store(ax_ptr + i, ax, mask=i < N)
    tl.store(ay_ptr + i, ay, mask=i < N)
    tl.store(steps_ptr + i, steps, mask=i < N)


def quad_tree(place, levels):
    """Nodes of a full tree of four children over a unit square, in order: centers of mass, masses, sizes, and what follows each one's last child."""
    side = 1 << levels
    cell = (place * side).long().clamp(0, side - 1)
    code = sum(((cell[:, axis] >> bit) & 1) << (2 * bit + axis) for bit in range(levels) for axis in (0, 1))
    sums = torch.zeros(side * side, 3, device=place.device).index_add(0, code, torch.cat([place, torch.ones_like(place[:, :1])], 1))
    below = [(4 ** (levels - level + 1) - 1) // 3 for level in range(levels + 1)]
    table = torch.zeros(below[0], 5, device=place.device)
    for level in reversed(range(levels + 1)):
        m = torch.arange(4**level, device=place.device)
        at = sum([1 + ((m >> (2 * (level - up))) & 3) * below[up] for up in range(1, level + 1)], torch.zeros_like(m))
        mass = sums[:, 2]
        size = torch.full_like(mass, 0.0 if level == levels else 2.0**-level)
        table[at] = torch.stack([sums[:, 0] / mass.clamp(min=1), sums[:, 1] / mass.clamp(min=1), mass, size, (at + below[level]).float()], 1)
        sums = sums.reshape(-1, 4, 3).sum(1) if level else sums
    return *(table[:, i].contiguous() for i in range(4)), table[:, 4].to(torch.int32), torch.argsort(code)


@case
def lab_bodies_walk_through_a_tree_by_ropes(n=12000, levels=5):
    place = uniform(n, 2)
    nx, ny, mass, size, skip, order = quad_tree(place, levels)
    x, y = place[order, 0].contiguous(), place[order, 1].contiguous()
    nodes, soft = mass.numel(), 1e-4
    ax, ay, steps = zeros(n, dtype="float32"), zeros(n, dtype="float32"), zeros(n, dtype="int32")
    args = x, y, nx, ny, mass, size, skip, ax, ay, steps, n, nodes, soft
    launched = run(bodies_through_a_tree, (cdiv(n, 64),), args, (ax, ay, steps), B=64, num_warps=2)

    def reference():
        node, a, b, count = torch.zeros_like(order), torch.zeros_like(x), torch.zeros_like(y), torch.zeros_like(order)
        while bool((node < nodes).any()):
            on, at = node < nodes, node.clamp(max=nodes - 1)
            dx, dy = nx[at] - x, ny[at] - y
            away = dx.square() + dy.square() + soft
            whole = on & (size[at].square() < 0.8 * away)
            pull = torch.where(whole, mass[at], 0.0) * away**-1.5
            a, b, count = a + pull * dx, b + pull * dy, count + on
            node = torch.where(on, torch.where(whole, skip[at], node + 1), nodes)
        return a, b, count

    return against(launched, reference)


@triton.jit
def rows_of_blocks_of_three(begin_ptr, col_ptr, value_ptr, x_ptr, y_ptr, d_ptr, BN: tl.constexpr):
    # A row of 3x3 blocks of doubles, a warp each: tiles of 16 blocks padded to 4x4, times three numbers of the vector each.
    row = tl.program_id(0)
    n = tl.arange(0, BN)[:, None, None]
    r, c = tl.arange(0, 4)[None, :, None], tl.arange(0, 4)[None, None, :]
    end = tl.load(begin_ptr + row + 1)
    acc = tl.zeros((BN, 4, 4), tl.float64)
    for n0 in range(tl.load(begin_ptr + row), end, BN):
        ok = (n0 + n < end) & (c < 3)
        col = tl.load(col_ptr + n0 + n, mask=n0 + n < end, other=0)
        x = tl.load(x_ptr + col * 3 + c, mask=ok, other=0.0)
        acc += tl.load(value_ptr + (n0 + n).to(tl.int64) * 9 + r * 3 + c, mask=ok & (r < 3), other=0.0) * x
    y = tl.sum(tl.sum(acc, 2), 0)
    i = tl.arange(0, 4)
    tl.store(y_ptr + row * 3 + i, y, mask=i < 3)
    x = tl.load(x_ptr + row * 3 + i, mask=i < 3, other=0.0)
    tl.store(d_ptr + row, tl.sum(y * x, 0))


@case
def lab_rows_of_3x3_blocks_of_doubles_times_a_vector(rows=24000):
    counts = ints(8, 40, rows)
    begin = torch.cat([zeros(1, dtype="int32"), counts.cumsum(0).to(torch.int32)])
    blocks = int(begin[-1])
    col, value, x = ints(0, rows, blocks), rand(blocks, 3, 3, dtype="float64"), rand(rows, 3, dtype="float64")
    y, d = zeros(rows, 3, dtype="float64"), zeros(rows, dtype="float64")
    launched = run(rows_of_blocks_of_three, (rows,), (begin, col, value, x, y, d), (y, d), BN=16, num_warps=1)

    def reference():
        of = torch.repeat_interleave(arange(rows, dtype="int64"), counts.long())
        sums = torch.zeros_like(x).index_add(0, of, (value * x[col.long()][:, None]).sum(2))
        return sums, (sums * x).sum(1)

    return against(launched, reference)


@triton.jit
def profiles_of_images(x_ptr, center_ptr, sum_ptr, square_ptr, count_ptr, H, W, bins, BY: tl.constexpr, BX: tl.constexpr):
    # Means over rings about a center of each image's own: sums, squares and counts by atomics, with holes left out.
    image = tl.program_id(1)
    cy, cx = tl.load(center_ptr + image * 2), tl.load(center_ptr + image * 2 + 1)
    y, x = tl.program_id(0) * BY + tl.arange(0, BY), tl.arange(0, BX)
    for x0 in range(0, W, BX):
        ok = (y < H)[:, None] & (x0 + x < W)[None, :]
        value = tl.load(x_ptr + (image * H + y)[:, None] * W + x0 + x[None, :], mask=ok, other=-1.0).to(tl.float32)
        dy, dx = y.to(tl.float32) - cy, (x0 + x).to(tl.float32) - cx
        ring = tl.sqrt_rn(dy[:, None] * dy[:, None] + dx[None, :] * dx[None, :]).to(tl.int32)
        keep = ok & (value >= 0.0) & (ring < bins)
        at = image * bins + ring
        tl.atomic_add(sum_ptr + at, value, mask=keep, sem="relaxed")
        tl.atomic_add(square_ptr + at, value * value, mask=keep, sem="relaxed")
        tl.atomic_add(count_ptr + at, 1, mask=keep, sem="relaxed")


@case
def lab_profiles_of_rings_about_centers(images=24, h=300, w=400):
    bins = 230
    x, center = rand(images, h, w).abs() - 0.1, (ints(4 * 100, 4 * 180, images, 2).float() / 4)
    sums, squares, counts = zeros(images, bins, dtype="float32"), zeros(images, bins, dtype="float32"), zeros(images, bins, dtype="int32")
    args = x, center, sums, squares, counts, h, w, bins
    launched = run(profiles_of_images, (cdiv(h, 4), images), args, (sums, squares, counts), BY=4, BX=128, num_warps=4)

    def reference():
        dy, dx = arange(h).float() - center[:, :1], arange(w).float() - center[:, 1:]
        ring = (dy.square()[:, :, None] + dx.square()[:, None, :]).sqrt().long()
        keep = (x >= 0) & (ring < bins)
        at = torch.where(keep, ring + arange(images, dtype="int64")[:, None, None] * bins, images * bins).reshape(-1)
        value = x.float().reshape(-1)

        def total(what):
            return torch.zeros(images * bins + 1, device="cuda").index_add(0, at, what)[:-1].reshape(images, bins)

        return total(value), total(value.square()), total(torch.ones_like(value))

    return against(cleared(launched, sums, squares, counts), reference)


@triton.jit
def five_diagonals(e_ptr, c_ptr, d_ptr, a_ptr, b_ptr, y_ptr, x_ptr, al_ptr, be_ptr, N, S, B: tl.constexpr):
    # A system of five diagonals a lane: elimination down, which leaves two factors a row, and substitution up.
    s = tl.program_id(0) * B + tl.arange(0, B)
    ok = s < S
    al1, al2, be1, be2 = tl.zeros((B,), tl.float32), tl.zeros((B,), tl.float32), tl.zeros((B,), tl.float32), tl.zeros((B,), tl.float32)
    z1, z2 = tl.zeros((B,), tl.float32), tl.zeros((B,), tl.float32)
    for i in range(N):
        at = i * S + s
        e, c = tl.load(e_ptr + at, mask=ok, other=0.0), tl.load(c_ptr + at, mask=ok, other=0.0)
        g = c - al2 * e
        mu = tl.load(d_ptr + at, mask=ok, other=1.0) - be2 * e - al1 * g
        al = (tl.load(a_ptr + at, mask=ok, other=0.0) - be1 * g) / mu
        be = tl.load(b_ptr + at, mask=ok, other=0.0) / mu
        z = (tl.load(y_ptr + at, mask=ok, other=0.0) - z2 * e - z1 * g) / mu
        tl.store(al_ptr + at, al, mask=ok)
        tl.store(be_ptr + at, be, mask=ok)
        tl.store(x_ptr + at, z, mask=ok)
        al2, be2, z2 = al1, be1, z1
        al1, be1, z1 = al, be, z
    tl.debug_barrier()
    x1, x2 = z1, tl.zeros((B,), tl.float32)
    for k in range(1, N):
        at = (N - 1 - k) * S + s
        al, be = tl.load(al_ptr + at, mask=ok, other=0.0), tl.load(be_ptr + at, mask=ok, other=0.0)
        x = tl.load(x_ptr + at, mask=ok, other=0.0) - al * x1 - be * x2
        tl.store(x_ptr + at, x, mask=ok)
        x2 = x1
        x1 = x


@case
def lab_five_diagonals_a_system_a_lane(n=60, s=17000):
    e, c, a, b = (uniform(n, s) - 0.5 for _ in range(4))
    d, y = uniform(n, s) + 2.5, f32(n, s)
    x, al, be = (zeros(n, s, dtype="float32") for _ in range(3))
    launched = run(five_diagonals, (cdiv(s, 64),), (e, c, d, a, b, y, x, al, be, n, s), x, B=64, num_warps=2)

    def reference():
        dense = torch.zeros(s, n, n, device="cuda", dtype=torch.float64)
        for diagonal, offset in ((e, -2), (c, -1), (d, 0), (a, 1), (b, 2)):
            part = diagonal.double().T
            dense.diagonal(offset, 1, 2).copy_(part[:, max(0, -offset) : n - max(0, offset)])
        return torch.linalg.solve(dense, y.double().T).T

    return against(launched, reference)


@triton.jit
def _after(a, b, c, d):
    # First x -> a x + b, then x -> c x + d.
    return a * c, b * c + d


@triton.jit
def compact_differences(f_ptr, low_ptr, inverse_ptr, o_ptr, ROWS, step, BR: tl.constexpr, N: tl.constexpr):
    # Derivatives that each depend on their neighbors': the factors are known, both substitutions are scans.
    r, n = tl.program_id(0) * BR + tl.arange(0, BR), tl.arange(0, N)
    ok = (r < ROWS)[:, None]
    row = f_ptr + r[:, None] * N
    left, right = tl.maximum(n - 1, 0), tl.minimum(n + 1, N - 1)
    slope = tl.load(row + right[None, :], mask=ok, other=0.0) - tl.load(row + left[None, :], mask=ok, other=0.0)
    inside = (n > 0) & (n < N - 1)
    slope = slope * (tl.where(inside, 0.75, 1.0) / step)[None, :]
    low, inverse = tl.load(low_ptr + n), tl.load(inverse_ptr + n)
    _, y = tl.associative_scan((tl.broadcast_to(-low[None, :], (BR, N)), slope), 1, _after)
    up = tl.where(inside, -0.25, 0.0) * inverse
    _, x = tl.associative_scan((tl.broadcast_to(up[None, :], (BR, N)), y * inverse[None, :]), 1, _after, reverse=True)
    tl.store(o_ptr + r[:, None] * N + n[None, :], x, mask=ok)


@case
def lab_compact_differences_by_two_scans(rows=20001, n=512):
    step = 0.1
    f, o = f32(rows, n).cumsum(1) * step, zeros(rows, n, dtype="float32")
    lower, diagonal = [0.0], [1.0]
    for i in range(1, n):
        side, up = (0.25, 0.25 if i > 1 else 0.0) if i < n - 1 else (0.0, 0.25)
        lower.append(side / diagonal[-1])
        diagonal.append(1 - lower[-1] * up)
    low, inverse = torch.tensor(lower, device="cuda"), 1 / torch.tensor(diagonal, device="cuda")
    launched = run(compact_differences, (cdiv(rows, 4),), (f, low, inverse, o, rows, step), o, BR=4, N=n, num_warps=4)

    def reference():
        g = f.double()
        right = torch.cat([g[:, 1:2] - g[:, :1], (g[:, 2:] - g[:, :-2]) * 0.75, g[:, -1:] - g[:, -2:-1]], 1) / step
        side = torch.full((n,), 0.25, device="cuda", dtype=torch.float64)
        side[[0, -1]] = 0
        dense = torch.eye(n, device="cuda", dtype=torch.float64) + torch.diag(side[1:], -1) + torch.diag(side[:-1], 1)
        return torch.linalg.solve(dense, right.T).T

    return against(launched, reference)


@triton.jit
def walks_on_spheres(x_ptr, y_ptr, o_ptr, used_ptr, N, seed, near, BP: tl.constexpr, WALKS: tl.constexpr):
    # From each point walks jump to the largest circle that is free, until they are near a wall: a square with a round hole.
    p, w = tl.program_id(0) * BP + tl.arange(0, BP), tl.arange(0, WALKS)
    x = tl.load(x_ptr + p, mask=p < N, other=0.1)[:, None] + tl.zeros((1, WALKS), tl.float32)
    y = tl.load(y_ptr + p, mask=p < N, other=0.1)[:, None] + tl.zeros((1, WALKS), tl.float32)
    at = (p[:, None] * WALKS + w[None, :]) * 64
    steps = tl.zeros((BP, WALKS), tl.int32)
    moves = True
    step = 0
    while moves:
        hole = tl.sqrt((x - 0.5) * (x - 0.5) + (y - 0.4) * (y - 0.4)) - 0.2
        free = tl.minimum(tl.minimum(tl.minimum(x, 1.0 - x), tl.minimum(y, 1.0 - y)), hole)
        on = free > near
        angle = tl.rand(seed, at + step) * 6.283185307179586
        x = tl.where(on, x + free * tl.cos(angle), x)
        y = tl.where(on, y + free * tl.sin(angle), y)
        steps += on.to(tl.int32)
        step += 1
        moves = (tl.max(tl.max(on.to(tl.int32), 1), 0) > 0) & (step < 64)
    value = 3.0 + x * x - y * y + 2.0 * x * y + x
    tl.store(o_ptr + p, tl.sum(value, 1) / WALKS, mask=p < N)
    tl.store(used_ptr + p, tl.sum(steps, 1), mask=p < N)


@case
def lab_walks_on_circles_to_the_walls(n=4000):
    place = uniform(3 * n, 2) * 0.98 + 0.01
    hole = (place - torch.tensor([0.5, 0.4], device="cuda")).norm(dim=1)
    place = place[torch.argsort((hole < 0.21).int(), stable=True)][:n]
    x, y = place[:, 0].contiguous(), place[:, 1].contiguous()
    o, used, walks, seed, near = zeros(n, dtype="float32"), zeros(n, dtype="int32"), 64, 1234, 1e-3
    launched = run(walks_on_spheres, (cdiv(n, 2),), (x, y, o, used, n, seed, near), (o, used), BP=2, WALKS=walks, num_warps=4)

    def reference():
        a, b = x[:, None].expand(n, walks), y[:, None].expand(n, walks)
        at, steps = arange(n * walks).reshape(n, walks) * 64, torch.zeros(n, walks, device="cuda")
        for step in range(64):
            away = ((a - 0.5) ** 2 + (b - 0.4) ** 2).sqrt() - 0.2
            free = torch.stack([a, 1 - a, b, 1 - b, away]).amin(0)
            on, angle = free > near, drawn(seed, (at + step).long()).float() * (2 * math.pi)
            a, b = torch.where(on, a + free * angle.cos(), a), torch.where(on, b + free * angle.sin(), b)
            steps += on
        return (3 + a * a - b * b + 2 * a * b + a).mean(1), steps.sum(1)

    return against(launched, reference)


@triton.jit
def _lobes(x):
    # sin(pi x) sin(pi x / 3) / (pi^2 x^2 / 3) within three steps.
    t = 3.141592653589793 * x
    safe = tl.where(tl.abs(t) < 1e-4, 1.0, t)
    value = 3.0 * tl.sin(safe) * tl.sin(safe / 3.0) / (safe * safe)
    return tl.where(tl.abs(x) >= 3.0, 0.0, tl.where(tl.abs(t) < 1e-4, 1.0, value))


@triton.jit
def resampled_axis(x_ptr, o_ptr, TOTAL, L, OUT, INNER, ratio, to_bytes: tl.constexpr, TAPS: tl.constexpr, B: tl.constexpr):
    # One axis of three: every output looks at as many inputs as a widened kernel of three lobes reaches.
    at = tl.program_id(0) * B + tl.arange(0, B)
    ok = at < TOTAL
    inner, o, outer = at % INNER, at // INNER % OUT, at // INNER // OUT
    center = (o.to(tl.float32) + 0.5) * ratio - 0.5
    first = tl.ceil(center - 3.0 * ratio).to(tl.int32)
    acc, total = tl.zeros((B,), tl.float32), tl.zeros((B,), tl.float32)
    for tap in range(TAPS):
        i = first + tap
        w = tl.where((i >= 0) & (i < L), _lobes((i.to(tl.float32) - center) / ratio), 0.0)
        place = tl.minimum(tl.maximum(i, 0), L - 1)
        acc += w * tl.load(x_ptr + (outer * L + place) * INNER + inner, mask=ok, other=0).to(tl.float32)
        total += w
    y = acc / total
    if to_bytes:
        y = tl.floor(tl.minimum(tl.maximum(y, 0.0), 255.0) + 0.5)
    tl.store(o_ptr + at, y.to(o_ptr.dtype.element_ty), mask=ok)


@case
def lab_pictures_resampled_by_three_lobes(images=4, h=720, w=1280, oh=333, ow=600):
    x = ints(0, 256, images, h, w, 3, dtype="uint8")
    half, o = zeros(images, h, ow, 3, dtype="float32"), zeros(images, oh, ow, 3, dtype="uint8")

    def launch(x, half, o):
        taps = math.ceil(6 * w / ow), math.ceil(6 * h / oh)
        resampled_axis[(cdiv(half.numel(), 512),)](x, half, half.numel(), w, ow, 3, w / ow, to_bytes=False, TAPS=taps[0], B=512, num_warps=4)
        resampled_axis[(cdiv(o.numel(), 512),)](half, o, o.numel(), h, oh, ow * 3, h / oh, to_bytes=True, TAPS=taps[1], B=512, num_warps=4)
        return half, o.to(torch.float32) + 200

    def reference():
        def matrix(length, out):
            ratio = length / out
            away = (arange(length).double()[None, :] - ((arange(out).double() + 0.5) * ratio - 0.5)[:, None]) / ratio
            lobes = torch.sinc(away) * torch.sinc(away / 3) * (away.abs() < 3)
            return lobes / lobes.sum(1, keepdim=True)

        along = torch.einsum("ol,nhlc->nhoc", matrix(w, ow), x.double())
        down = torch.einsum("ol,nlwc->nowc", matrix(h, oh), along)
        return along, torch.floor(down.clamp(0, 255) + 0.5) + 200

    return against((launch, (x, half, o)), reference)


@triton.jit
def nerves_fire(v_ptr, m_ptr, h_ptr, n_ptr, current_ptr, trace_ptr, mo_ptr, ho_ptr, no_ptr, N, dt, STEPS: tl.constexpr, EACH: tl.constexpr, B: tl.constexpr):
    # Three gates of a membrane approach what its voltage asks for; everything stays in registers, a trace is written now and then.
    i = tl.program_id(0) * B + tl.arange(0, B)
    ok = i < N
    v, current = tl.load(v_ptr + i, mask=ok, other=-65.0), tl.load(current_ptr + i, mask=ok, other=0.0)
    m, h, n = tl.load(m_ptr + i, mask=ok, other=0.1), tl.load(h_ptr + i, mask=ok, other=0.5), tl.load(n_ptr + i, mask=ok, other=0.3)
    for step in range(STEPS):
        a, b = (v + 40.0) * 0.1, (v + 55.0) * 0.1
        am = tl.where(tl.abs(a) < 1e-3, 1.0 + 0.5 * a, a / (1.0 - tl.exp(-a)))
        an = 0.1 * tl.where(tl.abs(b) < 1e-3, 1.0 + 0.5 * b, b / (1.0 - tl.exp(-b)))
        bm, bn = 4.0 * tl.exp((v + 65.0) * (-1.0 / 18.0)), 0.125 * tl.exp((v + 65.0) * (-1.0 / 80.0))
        ah, bh = 0.07 * tl.exp((v + 65.0) * -0.05), 1.0 / (1.0 + tl.exp((v + 35.0) * -0.1))
        sodium, potassium = 120.0 * m * m * m * h, 36.0 * n * n * n * n
        v += dt * (current - sodium * (v - 50.0) - potassium * (v + 77.0) - 0.3 * (v + 54.4))
        m += (am / (am + bm) - m) * (1.0 - tl.exp(-dt * (am + bm)))
        h += (ah / (ah + bh) - h) * (1.0 - tl.exp(-dt * (ah + bh)))
        n += (an / (an + bn) - n) * (1.0 - tl.exp(-dt * (an + bn)))
        if step % EACH == EACH - 1:
            tl.store(trace_ptr + step // EACH * N + i, v, mask=ok)
    tl.store(mo_ptr + i, m, mask=ok)
    tl.store(ho_ptr + i, h, mask=ok)
    tl.store(no_ptr + i, n, mask=ok)


@case
def lab_nerves_fire_for_120_steps(cells=150_000, steps=120, each=20):
    v, current = -65 + 10 * uniform(cells), 12 * uniform(cells)
    gates = [low + 0.1 * uniform(cells) for low in (0.05, 0.5, 0.3)]
    outs = zeros(steps // each, cells, dtype="float32"), *(zeros(cells, dtype="float32") for _ in range(3))
    args = v, *gates, current, *outs, cells, 0.01
    launched = run(nerves_fire, (cdiv(cells, 128),), args, outs, STEPS=steps, EACH=each, B=128, num_warps=4)

    def reference():
        u, (m, h, n), trace = v.double(), [gate.double() for gate in gates], []
        for step in range(steps):
            a, b = (u + 40) / 10, (u + 55) / 10
            am, an = a / (1 - torch.exp(-a)), 0.1 * b / (1 - torch.exp(-b))
            bm, bn = 4 * torch.exp(-(u + 65) / 18), 0.125 * torch.exp(-(u + 65) / 80)
            ah, bh = 0.07 * torch.exp(-(u + 65) / 20), 1 / (1 + torch.exp(-(u + 35) / 10))
            u = u + 0.01 * (current - 120 * m**3 * h * (u - 50) - 36 * n**4 * (u + 77) - 0.3 * (u + 54.4))
            m, h, n = (g + (p / (p + q) - g) * (1 - torch.exp(-0.01 * (p + q))) for g, p, q in ((m, am, bm), (h, ah, bh), (n, an, bn)))
            if step % each == each - 1:
                trace.append(u)
        return torch.stack(trace), m, h, n

    return against(launched, reference)


@triton.jit
def _between(rl, ul, vl, pl, rr, ur, vr, pr):
    # Flux between two gases with a wave in the middle, which is where their contact moves.
    al, ar = tl.sqrt(1.4 * pl / rl), tl.sqrt(1.4 * pr / rr)
    sl, sr = tl.minimum(ul - al, ur - ar), tl.maximum(ul + al, ur + ar)
    sm = (pr - pl + rl * ul * (sl - ul) - rr * ur * (sr - ur)) / (rl * (sl - ul) - rr * (sr - ur))
    left = sm >= 0.0
    r, u, v, p, s = tl.where(left, rl, rr), tl.where(left, ul, ur), tl.where(left, vl, vr), tl.where(left, pl, pr), tl.where(left, sl, sr)
    e = p / 0.4 + 0.5 * r * (u * u + v * v)
    star = tl.where(left, sl < 0.0, sr > 0.0)
    by = r * (s - u) / (s - sm)
    more = e / r + (sm - u) * (sm + p / (r * (s - u)))
    f0 = r * u + tl.where(star, s * (by - r), 0.0)
    f1 = r * u * u + p + tl.where(star, s * (by * sm - r * u), 0.0)
    f2 = r * u * v + tl.where(star, s * (by * v - r * v), 0.0)
    f3 = u * (e + p) + tl.where(star, s * (by * more - e), 0.0)
    return f0, f1, f2, f3, tl.maximum(tl.abs(sl), tl.abs(sr))


@triton.jit
def _state(q_ptr, at, ok, P):
    r = tl.load(q_ptr + at, mask=ok, other=1.0)
    u, v = tl.load(q_ptr + P + at, mask=ok, other=0.0) / r, tl.load(q_ptr + 2 * P + at, mask=ok, other=0.0) / r
    return r, u, v, 0.4 * (tl.load(q_ptr + 3 * P + at, mask=ok, other=2.5) - 0.5 * r * (u * u + v * v))


@triton.jit
def gas_step(q_ptr, o_ptr, fastest_ptr, H, W, by, BY: tl.constexpr, BX: tl.constexpr):
    # Four conserved fields along rows with open ends; both fluxes of a cell are made where they are used.
    y, x = tl.program_id(1) * BY + tl.arange(0, BY), tl.program_id(0) * BX + tl.arange(0, BX)
    ok = (y < H)[:, None] & (x < W)[None, :]
    row, P = y[:, None] * W, H * W
    at = row + x[None, :]
    rl, ul, vl, pl = _state(q_ptr, row + tl.maximum(x - 1, 0)[None, :], ok, P)
    r, u, v, p = _state(q_ptr, at, ok, P)
    rr, ur, vr, pr = _state(q_ptr, row + tl.minimum(x + 1, W - 1)[None, :], ok, P)
    a0, a1, a2, a3, fast = _between(rl, ul, vl, pl, r, u, v, p)
    b0, b1, b2, b3, faster = _between(r, u, v, p, rr, ur, vr, pr)
    tl.store(o_ptr + at, r - by * (b0 - a0), mask=ok)
    tl.store(o_ptr + P + at, r * u - by * (b1 - a1), mask=ok)
    tl.store(o_ptr + 2 * P + at, r * v - by * (b2 - a2), mask=ok)
    tl.store(o_ptr + 3 * P + at, p / 0.4 + 0.5 * r * (u * u + v * v) - by * (b3 - a3), mask=ok)
    most = tl.max(tl.max(tl.where(ok, tl.maximum(fast, faster), 0.0), 1), 0)
    tl.store(fastest_ptr + tl.program_id(1) * tl.num_programs(0) + tl.program_id(0), most)


@case
def lab_gas_moves_along_rows_by_waves_and_contacts(h=1500, w=1700):
    r, p, u, v = uniform(h, w) + 0.5, uniform(h, w) + 0.5, f32(h, w), f32(h, w)
    q = torch.stack([r, r * u, r * v, p / 0.4 + 0.5 * r * (u * u + v * v)])
    grid = cdiv(w, 128), cdiv(h, 4)
    o, fastest = zeros(4, h, w, dtype="float32"), zeros(grid[1], grid[0], dtype="float32")
    launched = run(gas_step, grid, (q, o, fastest, h, w, 0.1), (o, fastest), BY=4, BX=128, num_warps=4)

    def reference():
        wide = torch.cat([q[:, :, :1], q, q[:, :, -1:]], 2).double()

        def parts(s):
            return s[0], s[1] / s[0], 0.4 * (s[3] - 0.5 * (s[1] ** 2 + s[2] ** 2) / s[0])

        a, b = wide[:, :, :-1], wide[:, :, 1:]
        (ra, ua, pa), (rb, ub, pb) = parts(a), parts(b)
        ca, cb = (1.4 * pa / ra).sqrt(), (1.4 * pb / rb).sqrt()
        sa, sb = torch.minimum(ua - ca, ub - cb), torch.maximum(ua + ca, ub + cb)
        sm = (pb - pa + ra * ua * (sa - ua) - rb * ub * (sb - ub)) / (ra * (sa - ua) - rb * (sb - ub))

        def side(s, rho, vel, pre, speed):
            flux = s * vel + torch.stack([torch.zeros_like(pre), pre, torch.zeros_like(pre), pre * vel])
            by = rho * (speed - vel) / (speed - sm)
            star = torch.stack([by, by * sm, by * s[2] / rho, by * (s[3] / rho + (sm - vel) * (sm + pre / (rho * (speed - vel))))])
            return flux, flux + speed * (star - s)

        (fa, ga), (fb, gb) = side(a, ra, ua, pa, sa), side(b, rb, ub, pb, sb)
        flux = torch.where(sm >= 0, torch.where(sa < 0, ga, fa), torch.where(sb > 0, gb, fb))
        speed = torch.maximum(sa.abs(), sb.abs())
        speed = torch.maximum(speed[:, :-1], speed[:, 1:])
        padded = torch.nn.functional.pad(speed, (0, grid[0] * 128 - w, 0, grid[1] * 4 - h))
        return q - 0.1 * (flux[:, :, 1:] - flux[:, :, :-1]), padded.reshape(grid[1], 4, grid[0], 128).amax((1, 3))

    return against(launched, reference)


@triton.jit
def triangles_apply(corner_ptr, x_ptr, y_ptr, k_ptr, u_ptr, o_ptr, energy_ptr, E, B: tl.constexpr):
    # Stiffness of linear triangles without a matrix: corners gathered, gradients made, three sums by atomics.
    e = tl.program_id(0) * B + tl.arange(0, B)
    ok = e < E
    i, j, k = tl.load(corner_ptr + 3 * e, mask=ok, other=0), tl.load(corner_ptr + 3 * e + 1, mask=ok, other=0), tl.load(corner_ptr + 3 * e + 2, mask=ok, other=0)
    xi, yi = tl.load(x_ptr + i, mask=ok, other=0.0), tl.load(y_ptr + i, mask=ok, other=0.0)
    xj, yj = tl.load(x_ptr + j, mask=ok, other=1.0), tl.load(y_ptr + j, mask=ok, other=0.0)
    xk, yk = tl.load(x_ptr + k, mask=ok, other=0.0), tl.load(y_ptr + k, mask=ok, other=1.0)
    twice = (xj - xi) * (yk - yi) - (xk - xi) * (yj - yi)
    bi, bj, bk = yj - yk, yk - yi, yi - yj
    ci, cj, ck = xk - xj, xi - xk, xj - xi
    ui, uj, uk = tl.load(u_ptr + i, mask=ok, other=0.0), tl.load(u_ptr + j, mask=ok, other=0.0), tl.load(u_ptr + k, mask=ok, other=0.0)
    gx, gy = bi * ui + bj * uj + bk * uk, ci * ui + cj * uj + ck * uk
    by = tl.load(k_ptr + e, mask=ok, other=0.0) / (2.0 * twice)
    tl.atomic_add(o_ptr + i, by * (bi * gx + ci * gy), mask=ok)
    tl.atomic_add(o_ptr + j, by * (bj * gx + cj * gy), mask=ok)
    tl.atomic_add(o_ptr + k, by * (bk * gx + ck * gy), mask=ok)
    tl.store(energy_ptr + e, by * (gx * gx + gy * gy), mask=ok)


@case
def lab_triangles_apply_their_stiffness(side=900):
    n = side + 1
    row, col = torch.meshgrid(arange(side), arange(side), indexing="ij")
    a = (row * n + col).reshape(-1)
    corner = torch.cat([torch.stack([a, a + 1, a + n], 1), torch.stack([a + n + 1, a + n, a + 1], 1)]).to(torch.int32).contiguous()
    grid = torch.stack(torch.meshgrid(arange(n).float(), arange(n).float(), indexing="ij")).reshape(2, -1) + uniform(2, n * n) / 2
    y, x = grid[0].contiguous(), grid[1].contiguous()
    count = corner.shape[0]
    k, u, o, energy = uniform(count) + 0.5, f32(n * n), zeros(n * n, dtype="float32"), zeros(count, dtype="float32")
    launched = run(triangles_apply, (cdiv(count, 256),), (corner, x, y, k, u, o, energy, count), (o, energy), B=256, num_warps=4)

    def reference():
        at = corner.long()
        px, py, w = x.double()[at], y.double()[at], u.double()[at]
        b = py.roll(-1, 1) - py.roll(-2, 1)
        c = px.roll(-2, 1) - px.roll(-1, 1)
        twice = (px[:, 1] - px[:, 0]) * (py[:, 2] - py[:, 0]) - (px[:, 2] - px[:, 0]) * (py[:, 1] - py[:, 0])
        gx, gy, by = (b * w).sum(1), (c * w).sum(1), k / (2 * twice)
        force = by[:, None] * (b * gx[:, None] + c * gy[:, None])
        return torch.zeros(n * n, device="cuda", dtype=torch.float64).index_add(0, at.reshape(-1), force.reshape(-1)), by * (gx**2 + gy**2)

    return against(cleared(launched, o), reference)


@triton.jit
def lines_of_layers(nu_ptr, center_ptr, strength_ptr, width_ptr, heat_ptr, press_ptr, o_ptr, N, LINES, BN: tl.constexpr, BL: tl.constexpr):
    # Absorption of layers: each line is a mix of a bell of heat and a peak of pressure, whose widths together say how much of each.
    layer, n, j = tl.program_id(1), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BL)
    nu = tl.load(nu_ptr + n, mask=n < N, other=0.0)
    heat, press = tl.load(heat_ptr + layer), tl.load(press_ptr + layer)
    acc = tl.zeros((BN,), tl.float32)
    for j0 in range(0, LINES, BL):
        ok = j0 + j < LINES
        center = tl.load(center_ptr + j0 + j, mask=ok, other=0.0)
        strength = tl.load(strength_ptr + j0 + j, mask=ok, other=0.0)
        g = 1e-3 * heat * (1.0 + center)
        l = press * tl.load(width_ptr + j0 + j, mask=ok, other=1.0)
        width = 0.5346 * l + tl.sqrt(0.2166 * l * l + g * g)
        part = l / width
        eta = 1.36603 * part - 0.47719 * part * part + 0.11116 * part * part * part
        t = (nu[:, None] - (center + 1e-4 * press)[None, :]) / width[None, :]
        t = t * t
        peak, bell = 0.3183098861837907 / (1.0 + t), 0.4697186393498257 * tl.exp(-0.6931471805599453 * t)
        acc += tl.sum((strength / width)[None, :] * (eta[None, :] * peak + (1.0 - eta)[None, :] * bell), 1)
    tl.store(o_ptr + layer * N + n, acc, mask=n < N)


@case
def lab_lines_of_spectra_of_six_layers(n=10000, lines=1100):
    layers = 6
    nu, center, strength, width = torch.sort(uniform(n))[0], torch.sort(uniform(lines))[0], uniform(lines), uniform(lines) / 100 + 0.002
    heat, press, o = uniform(layers) + 0.5, uniform(layers) + 0.1, zeros(layers, n, dtype="float32")
    args = nu, center, strength, width, heat, press, o, n, lines
    launched = run(lines_of_layers, (cdiv(n, 64), layers), args, o, BN=64, BL=32, num_warps=4)

    def reference():
        out = []
        for a, b in zip(heat.double(), press.double()):
            c, g, l = center.double(), 1e-3 * a * (1 + center.double()), b * width.double()
            f = 0.5346 * l + (0.2166 * l * l + g * g).sqrt()
            eta = 1.36603 * (l / f) - 0.47719 * (l / f) ** 2 + 0.11116 * (l / f) ** 3
            t = ((nu.double()[:, None] - (c + 1e-4 * b)) / f) ** 2
            bell = math.sqrt(math.log(2) / math.pi) * torch.exp(-math.log(2) * t)
            out.append((strength / f * (eta / math.pi / (1 + t) + (1 - eta) * bell)).sum(1))
        return torch.stack(out)

    return against(launched, reference)


@triton.jit
def _genotypes(x_ptr, rows, k0, WORDS, BM: tl.constexpr, BW: tl.constexpr):
    # Sixteen genotypes of two bits in a word: (BM, BW) words to (BM, 16 BW) bytes.
    word = tl.load(x_ptr + rows[:, None] * WORDS + (k0 + tl.arange(0, BW))[None, :])
    two = (word[:, :, None] >> (2 * tl.arange(0, 16))[None, None, :]) & 3
    return tl.reshape(two, (BM, BW * 16)).to(tl.int8)


@triton.jit
def linkage_in_a_band(x_ptr, o_ptr, f_ptr, WORDS, TILES, BAND, BM: tl.constexpr, BW: tl.constexpr):
    # Squared correlations of each place with those of the next tiles, from counts of alleles multiplied as bytes.
    tile, ahead = tl.program_id(0), tl.program_id(1)
    if tile + ahead >= TILES:
        return
    m = tl.arange(0, BM)
    left, right = tile * BM + m, (tile + ahead) * BM + m
    acc = tl.zeros((BM, BM), tl.int32)
    sa, sb, qa, qb = tl.zeros((BM,), tl.int32), tl.zeros((BM,), tl.int32), tl.zeros((BM,), tl.int32), tl.zeros((BM,), tl.int32)
    for k0 in range(0, WORDS, BW):
        a, b = _genotypes(x_ptr, left, k0, WORDS, BM, BW), _genotypes(x_ptr, right, k0, WORDS, BM, BW)
        acc = tl.dot(a, tl.trans(b), acc, out_dtype=tl.int32)
        wa, wb = a.to(tl.int32), b.to(tl.int32)
        sa += tl.sum(wa, 1)
        sb += tl.sum(wb, 1)
        qa += tl.sum(wa * wa, 1)
        qb += tl.sum(wb * wb, 1)
    n = WORDS * 16
    both = (n * acc - sa[:, None] * sb[None, :]).to(tl.float32)
    va, vb = (n * qa - sa * sa).to(tl.float32), (n * qb - sb * sb).to(tl.float32)
    r2 = both * both / (tl.maximum(va, 1.0)[:, None] * tl.maximum(vb, 1.0)[None, :])
    tl.store(o_ptr + (tile * BAND + ahead) * BM * BM + m[:, None] * BM + m[None, :], r2)
    if ahead == 0:
        tl.store(f_ptr + left, sa.to(tl.float32) / (2 * n))


@case
def lab_linkage_of_genotypes_of_two_bits(tiles=64, words=160):
    bm, band = 64, 4
    share = uniform(tiles * bm, 1)
    common = uniform(1, words * 16)
    alleles = (0.5 * uniform(tiles * bm, words * 16) + 0.5 * common < share).int() + (uniform(tiles * bm, words * 16) < share).int()
    x = (alleles.reshape(-1, words, 16).long() << (2 * arange(16, dtype="int64"))).sum(2)
    x = torch.where(x >= 2**31, x - 2**32, x).to(torch.int32)
    o, f = zeros(tiles, band, bm, bm, dtype="float32"), zeros(tiles * bm, dtype="float32")
    launched = run(linkage_in_a_band, (tiles, band), (x, o, f, words, tiles, band), (o, f), BM=bm, BW=8, num_warps=4, num_stages=2)

    def reference():
        y, n = alleles.double(), words * 16
        spread = (n * y.square().sum(1) - y.sum(1) ** 2).clamp(min=1)
        both = n * y @ y.T - y.sum(1)[:, None] * y.sum(1)[None, :]
        r2 = (both**2 / spread[:, None] / spread[None, :]).reshape(tiles, bm, tiles, bm)
        out = torch.zeros_like(o, dtype=torch.float64)
        for tile in range(tiles):
            for ahead in range(min(band, tiles - tile)):
                out[tile, ahead] = r2[tile, :, tile + ahead]
        return out, y.mean(1) / 2

    return against(launched, reference)
