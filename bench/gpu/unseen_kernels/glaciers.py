"""Glaciers: ice and water on slopes, echoes of the ground, films and numbers packed into few bytes, words repaired, and models' slow streams."""

import torch
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, far8, ints, rand, run, uniform, viewed, zeros

LOG2E = 1.4426950408889634


@triton.jit
def ice_at(h_ptr, y, x, NY, NX):
    y = tl.minimum(tl.maximum(y, 0), NY - 1)
    x = tl.minimum(tl.maximum(x, 0), NX - 1)
    return tl.load(h_ptr + y * NX + x)


@triton.jit
def ice_flux(h_ptr, b_ptr, y, x, NY, NX, ALONG: tl.constexpr):
    # Flux of ice from (y, x) to the next cell along an axis: diffusivity h^5 |slope|^2 at the face.
    dy: tl.constexpr = 1 - ALONG
    dx: tl.constexpr = ALONG
    h0, h1 = ice_at(h_ptr, y, x, NY, NX), ice_at(h_ptr, y + dy, x + dx, NY, NX)
    s0, s1 = h0 + ice_at(b_ptr, y, x, NY, NX), h1 + ice_at(b_ptr, y + dy, x + dx, NY, NX)
    up0 = ice_at(h_ptr, y + dx, x + dy, NY, NX) + ice_at(b_ptr, y + dx, x + dy, NY, NX)
    up1 = ice_at(h_ptr, y + 1, x + 1, NY, NX) + ice_at(b_ptr, y + 1, x + 1, NY, NX)
    down0 = ice_at(h_ptr, y - dx, x - dy, NY, NX) + ice_at(b_ptr, y - dx, x - dy, NY, NX)
    down1 = ice_at(h_ptr, y + dy - dx, x + dx - dy, NY, NX) + ice_at(b_ptr, y + dy - dx, x + dx - dy, NY, NX)
    along = s1 - s0
    across = (up0 + up1 - down0 - down1) * 0.25
    h = (h0 + h1) * 0.5
    h2 = h * h
    return h2 * h2 * h * (along * along + across * across) * along


@triton.jit
def shallow_ice_step(h_ptr, b_ptr, gain_ptr, out_ptr, rate, NY, NX, BY: tl.constexpr, BX: tl.constexpr):
    # One explicit step of the shallow ice approximation with mass gained or melted.
    y = (tl.program_id(0) * BY + tl.arange(0, BY))[:, None]
    x = (tl.program_id(1) * BX + tl.arange(0, BX))[None, :]
    east = ice_flux(h_ptr, b_ptr, y, x, NY, NX, 1)
    west = ice_flux(h_ptr, b_ptr, y, x - 1, NY, NX, 1)
    north = ice_flux(h_ptr, b_ptr, y, x, NY, NX, 0)
    south = ice_flux(h_ptr, b_ptr, y - 1, x, NY, NX, 0)
    inside = (y < NY) & (x < NX)
    h = tl.load(h_ptr + y * NX + x, mask=inside, other=0.0)
    gain = tl.load(gain_ptr + y * NX + x, mask=inside, other=0.0)
    new = h + rate * (east - west + north - south) + gain
    tl.store(out_ptr + y * NX + x, tl.maximum(new, 0.0), mask=inside)


@case
def glacier_of_shallow_ice_moved_one_step(ny=2200, nx=1999):
    h, b, gain = uniform(ny, nx) + 0.2, uniform(ny, nx), f32(ny, nx) / 50
    out, rate = zeros(ny, nx, dtype="float32"), 0.03
    launched = run(shallow_ice_step, (cdiv(ny, 8), cdiv(nx, 128)), (h, b, gain, out, rate, ny, nx), out, BY=8, BX=128, num_warps=4)

    def reference():
        yy, xx = torch.arange(-2, ny + 2, device="cuda").clamp(0, ny - 1), torch.arange(-2, nx + 2, device="cuda").clamp(0, nx - 1)
        hp = h.double()[yy][:, xx]
        sp = hp + b.double()[yy][:, xx]

        def at(t, dy, dx):
            return t[1 + dy : ny + 2 + dy, 1 + dx : nx + 2 + dx]  # cells from -1 on

        def flux(dy, dx):
            along = at(sp, dy, dx) - at(sp, 0, 0)
            across = (at(sp, dx, dy) + at(sp, 1, 1) - at(sp, -dx, -dy) - at(sp, dy - dx, dx - dy)) / 4
            mean = (at(hp, 0, 0) + at(hp, dy, dx)) / 2
            f = mean**5 * (along**2 + across**2) * along
            return f[1:, 1:] - (f[1:, :-1] if dx else f[:-1, 1:])

        return (h + rate * (flux(0, 1) + flux(1, 0)) + gain).clamp(min=0)

    return against(launched, reference)


@triton.jit
def steepest_way(z_ptr, to_ptr, area_ptr, NY, NX, BX: tl.constexpr):
    # Where water of a cell runs: the steepest of eight neighbors that lie lower; its area is added there.
    y = tl.program_id(0)
    x = tl.program_id(1) * BX + tl.arange(0, BX)
    ok = x < NX
    z = tl.load(z_ptr + y * NX + x, mask=ok, other=0.0)
    steepest = tl.zeros((BX,), tl.float32)
    to = tl.full((BX,), -1, tl.int32)
    for k in tl.static_range(9):
        if k != 4:
            dy = k // 3 - 1
            dx = k % 3 - 1
            inside = ok & (y + dy >= 0) & (y + dy < NY) & (x + dx >= 0) & (x + dx < NX)
            other = tl.load(z_ptr + (y + dy) * NX + x + dx, mask=inside, other=float("inf"))
            drop = (z - other) * (1.0 if k % 2 == 1 else 0.70710678)
            better = drop > steepest
            steepest = tl.where(better, drop, steepest)
            to = tl.where(better, (y + dy) * NX + x + dx, to)
    tl.store(to_ptr + y * NX + x, to, mask=ok)
    tl.atomic_add(area_ptr + to, 1, mask=ok & (to >= 0), sem="relaxed")


@case
def glacier_melts_down_the_steepest_of_eight_ways(ny=2500, nx=3001):
    z = f32(ny, nx)
    to, area = zeros(ny, nx, dtype="int32"), zeros(ny * nx, dtype="int32")
    launched = cleared(run(steepest_way, (ny, cdiv(nx, 512)), (z, to, area, ny, nx), (to, area), BX=512, num_warps=4), area)

    def reference():
        p = torch.nn.functional.pad(z, (1, 1, 1, 1), value=float("inf"))
        best, way = torch.zeros_like(z), torch.full((ny, nx), -1, device="cuda")
        cell = torch.arange(ny * nx, device="cuda").reshape(ny, nx)
        for k in range(9):
            if k != 4:
                dy, dx = k // 3 - 1, k % 3 - 1
                drop = (z - p[1 + dy : 1 + dy + ny, 1 + dx : 1 + dx + nx]) * (1.0 if k % 2 == 1 else 0.70710678)
                way = torch.where(drop > best, cell + dy * nx + dx, way)
                best = torch.maximum(best, drop)
        return way.int(), torch.bincount(way[way >= 0], minlength=ny * nx).int()

    return against(launched, reference)


@triton.jit
def firn_columns(t_ptr, k_ptr, top_ptr, c_ptr, out_ptr, NZ, COLS, B: tl.constexpr):
    # Implicit heat conduction down columns of snow: elimination downward keeps ratios in memory, substitution upward.
    col = tl.program_id(0) * B + tl.arange(0, B)
    ok = col < COLS
    surface = tl.load(top_ptr + col, mask=ok, other=0.0)
    above = tl.load(k_ptr + col, mask=ok, other=1.0)
    ratio = tl.zeros((B,), tl.float32)
    value = surface
    for z in range(NZ):
        at = z * COLS + col
        below = tl.load(k_ptr + at + COLS, mask=ok, other=1.0)
        below = tl.where(z == NZ - 1, 0.0, below)
        inverse = 1.0 / (1.0 + above + below - above * ratio)
        value = (tl.load(t_ptr + at, mask=ok, other=0.0) + above * value) * inverse
        ratio = below * inverse
        tl.store(c_ptr + at, ratio, mask=ok)
        tl.store(out_ptr + at, value, mask=ok)
        above = below
    for i in range(1, NZ):
        at = (NZ - 1 - i) * COLS + col
        value = tl.load(out_ptr + at, mask=ok, other=0.0) + tl.load(c_ptr + at, mask=ok, other=0.0) * value
        tl.store(out_ptr + at, value, mask=ok)


@case
def glacier_firn_warmed_down_columns(nz=50, cols=60_000):
    t, k, top = f32(nz, cols), uniform(nz + 1, cols) + 0.1, f32(cols)
    c, out = zeros(nz, cols, dtype="float32"), zeros(nz, cols, dtype="float32")
    launched = run(firn_columns, (cdiv(cols, 128),), (t, k, top, c, out, nz, cols), out, B=128, num_warps=4)

    def reference():
        above, below = k[:nz].double(), k[1:].double().clone()
        below[-1] = 0
        right = t.double()
        right[0] += above[0] * top
        diag = 1 + above + below
        for i in range(1, nz):
            w = above[i] / diag[i - 1]
            diag[i] -= w * below[i - 1]
            right[i] += w * right[i - 1]
        x = right / diag
        for i in range(nz - 2, -1, -1):
            x[i] = (right[i] + below[i] * x[i + 1]) / diag[i]
        return x

    return against(launched, reference)


@triton.jit
def semblance_panel(d_ptr, off_ptr, slow_ptr, out_ptr, NT, NX, dt, BT: tl.constexpr):
    # How alike traces are along hyperbolas of one slowness, for times of a gather.
    gather, v = tl.program_id(0), tl.program_id(1)
    s = tl.load(slow_ptr + v)
    for t0 in range(0, NT, BT):
        i = t0 + tl.arange(0, BT)
        t = i.to(tl.float32) * dt
        total = tl.zeros((BT,), tl.float32)
        power = tl.zeros((BT,), tl.float32)
        for x in range(NX):
            delay = tl.load(off_ptr + x) * s
            # What would be later than the last reading stays there.
            place = tl.minimum(tl.sqrt(t * t + delay * delay) / dt, NT - 1.25)
            j = place.to(tl.int32)
            ok = i < NT
            w = place - j.to(tl.float32)
            at = d_ptr + (gather * NX + x) * NT + j
            a = tl.load(at, mask=ok, other=0.0)
            b = tl.load(at + 1, mask=ok, other=0.0)
            p = a + (b - a) * w
            total += p
            power += p * p
        out = total * total / tl.maximum(NX * power, 1e-9)
        tl.store(out_ptr + (gather * tl.num_programs(1) + v) * NT + i, out, mask=i < NT)


@case
def glacier_bed_by_semblance_of_echoes(gathers=12, nt=700, nx=48, v=60):
    d, off, dt = f32(gathers, nx, nt).cumsum(2) / 8, arange(nx, "float32") * 0.05 + 0.1, 0.004
    slow = arange(v, "float32") * 0.004 + 0.2
    out = zeros(gathers, v, nt, dtype="float32")
    launched = run(semblance_panel, (gathers, v), (d, off, slow, out, nt, nx, dt), out, BT=256, num_warps=2)

    def reference():
        t = torch.arange(nt, device="cuda").float() * torch.tensor(dt, device="cuda")
        place = torch.sqrt((t * t)[None, None, :] + ((off[None, :] * slow[:, None]) ** 2)[:, :, None]) / dt
        place = place.clamp(max=nt - 1.25)
        j = place.long()
        w = place - j
        x = torch.arange(nx, device="cuda")[None, :, None]
        p = (d[:, x, j] * (1 - w) + d[:, x, j + 1] * w).double()
        return p.sum(2).square() / (nx * p.square().sum(2)).clamp(min=1e-9)

    return against(launched, reference)


@triton.jit
def deblock_columns(src_ptr, dst_ptr, qp_ptr, H, W, BY: tl.constexpr, BE: tl.constexpr):
    # Edges between blocks of eight pixels are smoothed where both sides are flat, by strength of the blocks' quantizers.
    y = (tl.program_id(0) * BY + tl.arange(0, BY))[:, None]
    e = (tl.program_id(1) * BE + tl.arange(0, BE))[None, :]
    ok = (y < H) & (e < W // 8)
    at = src_ptr + y * W + e * 8
    inner = ok & (e > 0)
    p3 = tl.load(at - 4, mask=inner, other=0).to(tl.int32)
    p2 = tl.load(at - 3, mask=inner, other=0).to(tl.int32)
    p1 = tl.load(at - 2, mask=inner, other=0).to(tl.int32)
    p0 = tl.load(at - 1, mask=inner, other=0).to(tl.int32)
    q0 = tl.load(at, mask=ok, other=0).to(tl.int32)
    q1 = tl.load(at + 1, mask=ok, other=0).to(tl.int32)
    q2 = tl.load(at + 2, mask=ok, other=0).to(tl.int32)
    q3 = tl.load(at + 3, mask=ok, other=0).to(tl.int32)
    block = qp_ptr + (y // 8) * (W // 8) + e
    qp = (tl.load(block, mask=inner, other=0).to(tl.int32) + tl.load(block - 1, mask=inner, other=0).to(tl.int32) + 1) >> 1
    tc = qp >> 2
    beta = qp * 2
    bent = tl.abs(p2 - 2 * p1 + p0) + tl.abs(q2 - 2 * q1 + q0)
    on = inner & (bent < beta)
    strong = on & (bent * 2 < beta // 2) & (tl.abs(p3 - p0) + tl.abs(q0 - q3) < beta // 4) & (tl.abs(p0 - q0) < (5 * tc + 1) // 2)
    delta = (9 * (q0 - p0) - 3 * (q1 - p1) + 8) >> 4
    weak = on & (tl.abs(delta) < tc * 10)
    delta = tl.minimum(tl.maximum(delta, -tc), tc)
    n0 = tl.where(strong, (p2 + 2 * p1 + 2 * p0 + 2 * q0 + q1 + 4) >> 3, tl.where(weak, p0 + delta, p0))
    n1 = tl.where(strong, (p2 + p1 + p0 + q0 + 2) >> 2, p1)
    n2 = tl.where(strong, (2 * p3 + 3 * p2 + p1 + p0 + q0 + 4) >> 3, p2)
    m0 = tl.where(strong, (p1 + 2 * p0 + 2 * q0 + 2 * q1 + q2 + 4) >> 3, tl.where(weak, q0 - delta, q0))
    m1 = tl.where(strong, (p0 + q0 + q1 + q2 + 2) >> 2, q1)
    m2 = tl.where(strong, (p0 + q0 + q1 + 3 * q2 + 2 * q3 + 4) >> 3, q2)
    out = dst_ptr + y * W + e * 8
    low, high = 0, 255
    tl.store(out - 4, p3.to(tl.uint8), mask=inner)
    tl.store(out - 3, tl.minimum(tl.maximum(n2, low), high).to(tl.uint8), mask=inner)
    tl.store(out - 2, tl.minimum(tl.maximum(n1, low), high).to(tl.uint8), mask=inner)
    tl.store(out - 1, tl.minimum(tl.maximum(n0, low), high).to(tl.uint8), mask=inner)
    tl.store(out, tl.minimum(tl.maximum(m0, low), high).to(tl.uint8), mask=ok)
    tl.store(out + 1, tl.minimum(tl.maximum(m1, low), high).to(tl.uint8), mask=ok)
    tl.store(out + 2, tl.minimum(tl.maximum(m2, low), high).to(tl.uint8), mask=ok)
    tl.store(out + 3, q3.to(tl.uint8), mask=ok)


@case
def glacier_filmed_and_edges_of_blocks_smoothed(h=2160, w=3840):
    coarse = ints(90, 130, cdiv(h, 8), w // 8)
    src = (coarse.repeat_interleave(8, 0)[:h].repeat_interleave(8, 1) + ints(0, 4, h, w)).to(torch.uint8)
    qp, dst = ints(10, 51, cdiv(h, 8), w // 8, dtype="uint8"), zeros(h, w, dtype="uint8")
    # The last four columns belong to no edge.
    launched = run(deblock_columns, (cdiv(h, 16), cdiv(w // 8, 32)), (src, dst, qp, h, w), dst[:, : w - 4], BY=16, BE=32, num_warps=4)

    def reference():
        x = src.int().clone()
        p3, p2, p1, p0 = (x[:, 8 - i : w - 7 : 8] for i in (4, 3, 2, 1))
        q0, q1, q2, q3 = (x[:, 8 + i :: 8] for i in range(4))
        q = qp.int().repeat_interleave(8, 0)[:h]
        q = (q[:, 1:] + q[:, :-1] + 1) >> 1
        tc, beta = q >> 2, q * 2
        bent = (p2 - 2 * p1 + p0).abs() + (q2 - 2 * q1 + q0).abs()
        on = bent < beta
        strong = on & (bent * 2 < beta // 2) & ((p3 - p0).abs() + (q0 - q3).abs() < beta // 4) & ((p0 - q0).abs() < (5 * tc + 1) // 2)
        delta = (9 * (q0 - p0) - 3 * (q1 - p1) + 8) >> 4
        weak = on & (delta.abs() < tc * 10)
        delta = torch.minimum(torch.maximum(delta, -tc), tc)
        new = {
            -1: torch.where(strong, (p2 + 2 * p1 + 2 * p0 + 2 * q0 + q1 + 4) >> 3, torch.where(weak, p0 + delta, p0)),
            -2: torch.where(strong, (p2 + p1 + p0 + q0 + 2) >> 2, p1),
            -3: torch.where(strong, (2 * p3 + 3 * p2 + p1 + p0 + q0 + 4) >> 3, p2),
            0: torch.where(strong, (p1 + 2 * p0 + 2 * q0 + 2 * q1 + q2 + 4) >> 3, torch.where(weak, q0 - delta, q0)),
            1: torch.where(strong, (p0 + q0 + q1 + q2 + 2) >> 2, q1),
            2: torch.where(strong, (p0 + q0 + q1 + 3 * q2 + 2 * q3 + 4) >> 3, q2),
        }
        y = x.clone()
        for i, values in new.items():
            y[:, 8 + i : (w - 8 + i) + 1 : 8] = values.clamp(0, 255)
        return y[:, : w - 4].to(torch.uint8)

    return against(launched, reference)


@triton.jit
def intra_modes(img_ptr, mode_ptr, cost_ptr, W, BLOCKS: tl.constexpr):
    # For blocks of 8x8 pixels: predicted from the row above and the column to the left in four ways, the way that differs least.
    by = tl.program_id(0) + 1
    bx = tl.program_id(1) * BLOCKS + tl.arange(0, BLOCKS) + 1
    ok = bx < W // 8
    i = tl.arange(0, 8)
    at = by * 8 * W + bx * 8
    pixels = tl.load(img_ptr + at[:, None, None] + i[None, :, None] * W + i[None, None, :], mask=ok[:, None, None], other=0).to(tl.int32)
    top = tl.load(img_ptr + (at - W)[:, None] + i[None, :], mask=ok[:, None], other=0).to(tl.int32)
    left = tl.load(img_ptr + (at - 1)[:, None] + i[None, :] * W, mask=ok[:, None], other=0).to(tl.int32)
    corner_r = tl.load(img_ptr + at - W + 7, mask=ok, other=0).to(tl.int32)
    corner_b = tl.load(img_ptr + at - 1 + 7 * W, mask=ok, other=0).to(tl.int32)
    mean = (tl.sum(top, 1) + tl.sum(left, 1) + 8) >> 4
    across = (7 - i)[None, None, :] * left[:, :, None] + (i + 1)[None, None, :] * corner_r[:, None, None]
    down = (7 - i)[None, :, None] * top[:, None, :] + (i + 1)[None, :, None] * corner_b[:, None, None]
    planar = (across + down + 8) >> 4
    best = tl.sum(tl.sum(tl.abs(pixels - mean[:, None, None]), 2), 1)
    mode = tl.zeros((BLOCKS,), tl.int32)
    for k in tl.static_range(1, 4):
        if k == 1:
            cost = tl.sum(tl.sum(tl.abs(pixels - planar), 2), 1)
        elif k == 2:
            cost = tl.sum(tl.sum(tl.abs(pixels - left[:, :, None]), 2), 1)
        else:
            cost = tl.sum(tl.sum(tl.abs(pixels - top[:, None, :]), 2), 1)
        cost += 4 * k
        mode = tl.where(cost < best, k, mode)
        best = tl.minimum(cost, best)
    out = (by - 1) * (W // 8 - 1) + bx - 1
    tl.store(mode_ptr + out, mode.to(tl.int8), mask=ok)
    tl.store(cost_ptr + out, best, mask=ok)


@case
def glacier_filmed_and_predicted_from_borders(h=2160, w=3840):
    img = (ints(0, 6, h, w).cumsum(0).cumsum(1) // 97 % 251).to(torch.uint8)
    mode, cost = zeros(h // 8 - 1, w // 8 - 1, dtype="int8"), zeros(h // 8 - 1, w // 8 - 1, dtype="int32")
    launched = run(intra_modes, (h // 8 - 1, cdiv(w // 8 - 1, 16)), (img, mode, cost, w), (mode, cost), BLOCKS=16, num_warps=4)

    def reference():
        x = img.int()
        blocks = x.reshape(h // 8, 8, w // 8, 8).permute(0, 2, 1, 3)[1:, 1:]
        top = x[7 : h - 8 : 8, 8:].reshape(h // 8 - 1, w // 8 - 1, 8)
        left = x[8:, 7 : w - 8 : 8].reshape(h // 8 - 1, 8, w // 8 - 1).transpose(1, 2)
        mean = (top.sum(2) + left.sum(2) + 8) >> 4
        i = arange(8)
        across = (7 - i) * left[..., :, None] + (i + 1) * top[..., 7, None, None]
        down = (7 - i)[:, None] * top[..., None, :] + (i + 1)[:, None] * left[..., 7, None, None]
        guesses = mean[..., None, None], (across + down + 8) >> 4, left[..., :, None], top[..., None, :]
        costs = torch.stack([(blocks - g).abs().sum((2, 3)) + 4 * k for k, g in enumerate(guesses)])
        best = costs.min(0).values
        k = arange(4)[:, None, None]
        return torch.where(costs == best, k, 9).min(0).values.to(torch.int8), best.int()

    return against(launched, reference)


@triton.jit
def varint_bytes(x_ptr, out_ptr, size_ptr, N: tl.constexpr):
    # Rows of differences as numbers of one to five bytes, low seven bits first, one after another.
    row = tl.program_id(0)
    i = tl.arange(0, N)
    x = tl.load(x_ptr + row * N + i)
    before = tl.load(x_ptr + row * N + i - 1, mask=i > 0, other=0)
    delta = x - before
    code = ((delta << 1) ^ (delta >> 31)).to(tl.uint32, bitcast=True)
    size = 1 + (code >= 128).to(tl.int32) + (code >= 16384).to(tl.int32) + (code >= 2097152).to(tl.int32) + (code >= 268435456).to(tl.int32)
    end = tl.cumsum(size, 0)
    at = out_ptr + row * N * 5 + end - size
    for k in tl.static_range(5):
        more = tl.where(k < size - 1, 128, 0).to(tl.uint32)
        tl.store(at + k, (((code >> (7 * k)) & 127) | more).to(tl.uint8), mask=k < size)
    tl.store(size_ptr + row, tl.sum(size, 0))


@case
def glacier_heights_to_numbers_of_one_to_five_bytes(rows=3000, n=1024):
    steps = ints(-(1 << 30), 1 << 30, rows, n) >> ints(0, 30, rows, n)
    x = steps.cumsum(1).clamp(-(1 << 30), (1 << 30) - 1).to(torch.int32)
    out, size = zeros(rows, n * 5, dtype="uint8"), zeros(rows, dtype="int32")
    launched = run(varint_bytes, (rows,), (x, out, size), (out, size), N=n, num_warps=4)

    def reference():
        y = x.long()
        delta = torch.cat([y[:, :1], y[:, 1:] - y[:, :-1]], 1)
        delta = (delta + (1 << 31)) % (1 << 32) - (1 << 31)
        code = torch.where(delta < 0, -2 * delta - 1, 2 * delta)
        sizes = 1 + sum((code >= (1 << 7 * k)).long() for k in range(1, 5))
        start = sizes.cumsum(1) - sizes
        result = torch.zeros(rows, n * 5, dtype=torch.long, device="cuda")
        for k in range(5):
            byte = (code >> 7 * k) & 127 | torch.where(k < sizes - 1, 128, 0)
            result.scatter_add_(1, (start + k).clamp(max=n * 5 - 1), torch.where(k < sizes, byte, 0))
        return result.to(torch.uint8), sizes.sum(1).int()

    return against(launched, reference)


@triton.jit
def parity_of_long(x):
    x ^= x >> 32
    x ^= x >> 16
    x ^= x >> 8
    x ^= x >> 4
    x ^= x >> 2
    x ^= x >> 1
    return (x & 1).to(tl.int32)


@triton.jit
def repair_words(w_ptr, check_ptr, mask_ptr, out_ptr, state_ptr, N, BLOCK: tl.constexpr):
    # Words of 64 bits with seven check bits and a parity of all: one wrong bit is put right, two are noticed.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    w = tl.load(w_ptr + i, mask=ok, other=0)
    check = tl.load(check_ptr + i, mask=ok, other=0).to(tl.int32)
    syndrome = tl.zeros((BLOCK,), tl.int32)
    for k in tl.static_range(6):
        covered = w.to(tl.uint64, bitcast=True) & tl.load(mask_ptr + k).to(tl.uint64, bitcast=True)
        syndrome |= (parity_of_long(covered) ^ ((check >> k) & 1)) << k
    odd = parity_of_long(w.to(tl.uint64, bitcast=True)) ^ (check >> 6) & 1
    wrong = odd == 1
    flip = tl.full((BLOCK,), 1, tl.int64) << syndrome.to(tl.int64)
    tl.store(out_ptr + i, tl.where(wrong, w ^ flip, w), mask=ok)
    state = tl.where(wrong, 1, tl.where(syndrome != 0, 2, 0))
    tl.store(state_ptr + i, state.to(tl.int8), mask=ok)


@case
def glacier_probe_words_with_wrong_bits_repaired(n=4_000_001):
    good = ints(-(1 << 62), 1 << 62, n, dtype="int64")
    bit = torch.arange(64, device="cuda")
    one = torch.ones(64, dtype=torch.int64, device="cuda") << bit
    masks = torch.stack([(one * ((bit >> k) & 1)).sum() for k in range(6)])

    def parity(x):
        for s in (32, 16, 8, 4, 2, 1):
            x = x ^ (x >> s)
        return (x & 1).int()

    check = sum(parity(good & masks[k]) << k for k in range(6)) | parity(good) << 6
    kind = ints(0, 3, n)  # how many bits are wrong
    first = ints(0, 64, n, dtype="int64")
    second = (first + ints(1, 64, n, dtype="int64")) % 64
    unit = torch.ones(n, dtype=torch.int64, device="cuda")
    bad = good ^ torch.where(kind > 0, unit << first, 0) ^ torch.where(kind > 1, unit << second, 0)
    out, state = zeros(n, dtype="int64"), zeros(n, dtype="int8")
    launched = run(repair_words, (cdiv(n, 1024),), (bad, check.to(torch.uint8), masks, out, state, n), (out, state), BLOCK=1024, num_warps=4)
    return against(launched, lambda: (torch.where(kind == 2, bad, good), kind.to(torch.int8)))


@triton.jit
def windowed_with_sinks(q_ptr, k_ptr, v_ptr, sink_ptr, o_ptr, scale, T, H, HK, WINDOW, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # Causal attention in a window; each head has a learned sink that takes weight and gives nothing.
    start = tl.program_id(0) * BM
    h, b = tl.program_id(1), tl.program_id(2)
    kv = b * HK + h // (H // HK)
    q_box = tl.make_block_ptr(q_ptr + (b * H + h) * T * D, (T, D), (D, 1), (start, 0), (BM, D), (1, 0))
    q = tl.load(q_box, boundary_check=(0,), padding_option="zero")
    first = tl.maximum(start - WINDOW + 1, 0) // BN * BN
    k_box = tl.make_block_ptr(k_ptr + kv * T * D, (D, T), (1, D), (0, first), (D, BN), (0, 1))
    v_box = tl.make_block_ptr(v_ptr + kv * T * D, (T, D), (D, 1), (first, 0), (BN, D), (1, 0))
    m = tl.full((BM,), 0.0, tl.float32) + tl.load(sink_ptr + h) * 1.4426950408889634
    l = tl.full((BM,), 1.0, tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    i = start + tl.arange(0, BM)
    for n0 in range(first, tl.minimum(start + BM, T), BN):
        j = n0 + tl.arange(0, BN)
        k = tl.load(k_box, boundary_check=(1,), padding_option="zero")
        s = tl.dot(q, k) * scale
        apart = i[:, None] - j[None, :]
        s = tl.where((apart >= 0) & (apart < WINDOW), s, float("-inf"))
        top = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - top[:, None])
        keep = tl.exp2(m - top)
        l = l * keep + tl.sum(p, 1)
        v = tl.load(v_box, boundary_check=(0,), padding_option="zero")
        acc = tl.dot(p.to(v.dtype), v, acc * keep[:, None])
        m = top
        k_box = tl.advance(k_box, (0, BN))
        v_box = tl.advance(v_box, (BN, 0))
    o_box = tl.make_block_ptr(o_ptr + (b * H + h) * T * D, (T, D), (D, 1), (start, 0), (BM, D), (1, 0))
    tl.store(o_box, (acc / l[:, None]).to(o_ptr.dtype.element_ty), boundary_check=(0,))


@case
def glacier_attention_in_windows_with_learned_sinks(b=2, h=16, hk=4, t=3000, window=300):
    d = 64
    q, k, v = rand(b, h, t, d, dtype="bfloat16"), rand(b, hk, t, d, dtype="bfloat16"), rand(b, hk, t, d, dtype="bfloat16")
    sink, o = f32(h) * 2, zeros(b, h, t, d, dtype="bfloat16")
    args = q, k, v, sink, o, d**-0.5 * LOG2E, t, h, hk, window
    launched = run(windowed_with_sinks, (cdiv(t, 128), h, b), args, o, BM=128, BN=64, D=d, num_warps=4, num_stages=3)

    def reference():
        kk, vv = k.float().repeat_interleave(h // hk, 1), v.float().repeat_interleave(h // hk, 1)
        s = q.float() @ kk.transpose(2, 3) * d**-0.5
        apart = arange(t)[:, None] - arange(t)[None, :]
        s = s.masked_fill((apart < 0) | (apart >= window), float("-inf"))
        s = torch.cat([s, sink[None, :, None, None].expand(b, h, t, 1)], 3)
        return s.softmax(3)[..., :t] @ vv

    return against(launched, reference)


@triton.jit
def ragged_rows_times_groups(x_ptr, w_ptr, bias_ptr, ends_ptr, y_ptr, M, N, K, GROUPS, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Tiles of rows find their group by walking through the groups' numbers of tiles; each group has weights and a bias.
    tile = tl.program_id(0)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    group = 0
    start = 0
    end = tl.load(ends_ptr)
    left = tile
    while (group < GROUPS) & (left >= tl.cdiv(end - start, BM)):
        left -= tl.cdiv(end - start, BM)
        group += 1
        start = end
        end = tl.load(ends_ptr + group, mask=group < GROUPS, other=0)
    if group >= GROUPS:
        return
    m = start + left * BM + tl.arange(0, BM)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    x_at = x_ptr + m[:, None] * K + k[None, :]
    w_at = w_ptr + group.to(tl.int64) * N * K + n[None, :] * K + k[:, None]
    for k0 in range(0, K, BK):
        x = tl.load(x_at, mask=(m[:, None] < end) & (k[None, :] < K - k0), other=0.0)
        w = tl.load(w_at, mask=(n[None, :] < N) & (k[:, None] < K - k0), other=0.0)
        acc = tl.dot(x, w, acc)
        x_at += BK
        w_at += BK
    acc += tl.load(bias_ptr + group * N + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
    acc = tl.where(acc > 0, acc, acc * 0.01)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m[:, None] < end) & (n[None, :] < N))


@case
def glacier_basins_with_layers_of_their_own(groups=24, m=6000, n=328, k=520):
    sizes = torch.tensor([(g * 37 + 11) % 50 + (0 if g % 7 == 3 else 1) for g in range(groups)])
    sizes = sizes * (m // int(sizes.sum()))
    sizes[-1] += m - int(sizes.sum())
    ends = sizes.cumsum(0).to(torch.int32).cuda()
    x, w, bias, y = rand(m, k), rand(groups, n, k) / 16, rand(groups, n), zeros(m, n)
    tiles = sum(cdiv(s, 64) for s in sizes.tolist()) + 3
    args = x, w, bias, ends, y, m, n, k, groups
    launched = run(ragged_rows_times_groups, (tiles, cdiv(n, 128)), args, y, BM=64, BN=128, BK=64, num_warps=4, num_stages=3)

    def reference():
        rows = torch.repeat_interleave(torch.arange(groups), sizes).cuda()
        out = torch.zeros(m, n, device="cuda")
        for g in range(groups):
            at = rows == g
            out[at] = x[at].float() @ w[g].float().t() + bias[g].float()
        return torch.nn.functional.leaky_relu(out, 0.01)

    return against(launched, reference)


@triton.jit
def powers_of_32_swizzled(x_ptr, y_ptr, s_ptr, COLS, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    # Groups of 32 to e4m3 with a power of two each, whose bytes lie as tensor cores want them: tiles of 128x4, rows of 32 woven.
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c0 = tl.program_id(1) * BLOCK
    c = c0 + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + r[:, None] * COLS + c[None, :]).to(tl.float32)
    x = tl.reshape(x, (ROWS, BLOCK // 32, 32))
    largest = tl.max(tl.abs(x), 2)
    bits = largest.to(tl.int32, bitcast=True)
    exponent = tl.maximum((bits >> 23) - 8 + ((bits & 0x7FFFFF) > 0x600000).to(tl.int32), 1)
    inverse = ((254 - exponent) << 23).to(tl.float32, bitcast=True)
    y = (x * inverse[:, :, None]).to(tl.float8e4nv)
    tl.store(y_ptr + r[:, None] * COLS + c[None, :], tl.reshape(y, (ROWS, BLOCK)))
    g = c0 // 32 + tl.arange(0, BLOCK // 32)
    tile = (r // 128)[:, None] * (COLS // 128) + (g // 4)[None, :]
    place = tile * 512 + (r % 32)[:, None] * 16 + ((r % 128) // 32)[:, None] * 4 + (g % 4)[None, :]
    tl.store(s_ptr + place, exponent.to(tl.uint8))


@case
def glacier_rows_to_e4m3_with_woven_powers(rows=4096, cols=2304):
    x = rand(rows, cols, dtype="bfloat16") * 3
    y, s = zeros(rows, cols, dtype="float8_e4m3fn"), zeros(rows * cols // 32, dtype="uint8")
    launched = run(powers_of_32_swizzled, (rows // 16, cols // 256), (x, y, s, cols), (y, s), ROWS=16, BLOCK=256, num_warps=4)

    def reference():
        groups = x.float().reshape(rows, cols // 32, 32)
        bits = groups.abs().amax(2).view(torch.int32)
        exponent = ((bits >> 23) - 8 + ((bits & 0x7FFFFF) > 0x600000).int()).clamp(min=1)
        codes = (groups * torch.exp2(127.0 - exponent)[..., None]).to(torch.float8_e4m3fn)
        woven = exponent.reshape(rows // 128, 4, 32, cols // 128, 4).permute(0, 3, 2, 1, 4)
        return codes.reshape(rows, cols), woven.reshape(-1).to(torch.uint8)

    return against(launched, reference)


@triton.jit
def chunk_outputs_gated(q_ptr, k_ptr, v_ptr, g_ptr, s_ptr, o_ptr, scale, T, H, C: tl.constexpr, DK: tl.constexpr, DV: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr):
    # What chunks of a gated linear recurrence give: queries times the state before, and decayed scores within the chunk.
    vb, chunk, bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    b, h = bh // H, bh % H
    t = chunk * C + tl.arange(0, C)
    ok = t < T
    rows = (b * T + t) * H + h
    e = vb * BV + tl.arange(0, BV)
    acc = tl.zeros((C, BV), tl.float32)
    score = tl.zeros((C, C), tl.float32)
    state = s_ptr + (bh * tl.num_programs(1) + chunk).to(tl.int64) * DK * DV
    for d0 in tl.static_range(0, DK, BK):
        d = d0 + tl.arange(0, BK)
        q = tl.load(q_ptr + rows[:, None] * DK + d[None, :], mask=ok[:, None], other=0.0)
        k = tl.load(k_ptr + rows[None, :] * DK + d[:, None], mask=ok[None, :], other=0.0)
        s = tl.load(state + d[:, None] * DV + e[None, :])
        acc += tl.dot(q, s)
        score += tl.dot(q, k)
    gate = tl.cumsum(tl.load(g_ptr + rows, mask=ok, other=0.0), 0)
    decay = tl.exp(tl.where(tl.arange(0, C)[:, None] >= tl.arange(0, C)[None, :], gate[:, None] - gate[None, :], float("-inf")))
    v = tl.load(v_ptr + rows[:, None] * DV + e[None, :], mask=ok[:, None], other=0.0)
    o = acc * tl.exp(gate)[:, None] + tl.dot((score * decay).to(v.dtype), v)
    tl.store(o_ptr + rows[:, None] * DV + e[None, :], (o * scale).to(o_ptr.dtype.element_ty), mask=ok[:, None])


@case
def glacier_of_chunks_that_flow_with_gates(b=2, t=2000, h=6, dk=128, dv=192, c=64):
    chunks = cdiv(t, c)
    q, k, v = rand(b, t, h, dk, dtype="bfloat16"), rand(b, t, h, dk, dtype="bfloat16") / 8, rand(b, t, h, dv, dtype="bfloat16")
    g, s = -uniform(b, t, h) / 8, rand(b, h, chunks, dk, dv, dtype="bfloat16")
    o, scale = zeros(b, t, h, dv, dtype="bfloat16"), dk**-0.5
    grid = dv // 64, chunks, b * h
    launched = run(chunk_outputs_gated, grid, (q, k, v, g, s, o, scale, t, h), o, C=c, DK=dk, DV=dv, BK=64, BV=64, num_warps=4, num_stages=2)

    def reference():
        def cut(x):
            x = torch.nn.functional.pad(x.float().transpose(1, 2), (0, 0, 0, chunks * c - t))
            return x.reshape(b, h, chunks, c, -1)

        qq, kk, vv = cut(q), cut(k), cut(v)
        gate = cut(g[..., None])[..., 0].cumsum(3)
        decay = torch.tril(torch.exp((gate[..., :, None] - gate[..., None, :]).clamp(max=0)))
        out = (qq @ s.float()) * gate.exp()[..., None] + (qq @ kk.transpose(3, 4) * decay) @ vv
        return out.reshape(b, h, chunks * c, dv)[:, :, :t].transpose(1, 2) * scale

    return against(launched, reference)


@triton.jit
def keys_to_packs_of_sixteen(k_ptr, v_ptr, slot_ptr, kc_ptr, vc_ptr, ks_ptr, vs_ptr, H, PAGE: tl.constexpr, D: tl.constexpr):
    # New keys and values to fp8 pages: keys as packs of sixteen channels of all tokens of a page, values with tokens last.
    token, h = tl.program_id(0), tl.program_id(1)
    slot = tl.load(slot_ptr + token)
    if slot < 0:
        return
    page, place = slot // PAGE, slot % PAGE
    d = tl.arange(0, D)
    at = (token * H + h) * D + d
    k = tl.load(k_ptr + at).to(tl.float32) / tl.load(ks_ptr + h)
    v = tl.load(v_ptr + at).to(tl.float32) / tl.load(vs_ptr + h)
    k = tl.minimum(tl.maximum(k, -448.0), 448.0)
    v = tl.minimum(tl.maximum(v, -448.0), 448.0)
    base = (page * H + h) * D * PAGE
    tl.store(kc_ptr + base + (d // 16) * (PAGE * 16) + place * 16 + d % 16, k.to(tl.float8e4nv))
    tl.store(vc_ptr + base + d * PAGE + place, v.to(tl.float8e4nv))


@case
def glacier_of_pages_that_new_keys_freeze_into(tokens=700, h=8, d=128, pages=128, page=16):
    k, v = rand(tokens, h, d, dtype="bfloat16"), rand(tokens, h, d, dtype="bfloat16")
    slot = torch.randperm(pages * page, device="cuda")[:tokens]
    slot = torch.where(arange(tokens) % 9 == 4, -1, slot)
    ks, vs = uniform(h) + 0.25, uniform(h) + 0.25
    kc, vc = zeros(pages, h, d // 16, page, 16, dtype="float8_e4m3fn"), zeros(pages, h, d, page, dtype="float8_e4m3fn")
    launched = run(keys_to_packs_of_sixteen, (tokens, h), (k, v, slot, kc, vc, ks, vs, h), (kc, vc), PAGE=page, D=d, num_warps=1)
    launched = viewed(launched, lambda outs: tuple(far8(out) for out in outs))

    def reference():
        on = slot >= 0
        kp, vp = torch.zeros(pages * page, h, d, device="cuda"), torch.zeros(pages * page, h, d, device="cuda")
        kp[slot[on]] = (k.float() / ks[:, None])[on]
        vp[slot[on]] = (v.float() / vs[:, None])[on]
        kp = kp.reshape(pages, page, h, d // 16, 16).permute(0, 2, 3, 1, 4)
        vp = vp.reshape(pages, page, h, d).permute(0, 2, 3, 1)
        return far8(kp.to(torch.float8_e4m3fn)), far8(vp.to(torch.float8_e4m3fn))

    return against(launched, reference)


@triton.jit
def mixed_word(x):
    x ^= x >> 16
    x *= 0x7FEB352D
    x ^= x >> 15
    x *= 0x846CA68B
    x ^= x >> 16
    return x


@triton.jit
def draw_within_sigmas(logit_ptr, seed_ptr, temp_ptr, token_ptr, kept_ptr, V, N_SIGMA, BLOCK: tl.constexpr):
    # Top-n-sigma: only logits within some deviations of the largest stay; one is drawn by noise from a hash.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    square = tl.zeros((BLOCK,), tl.float32)
    for v0 in range(0, V, BLOCK):
        ok = v0 + i < V
        x = tl.load(logit_ptr + row * V + v0 + i, mask=ok, other=float("-inf")).to(tl.float32)
        top = tl.maximum(top, x)
        x = tl.where(ok, x, 0.0)
        total += x
        square += x * x
    largest = tl.max(top, 0)
    mean = tl.sum(total, 0) / V
    sigma = tl.sqrt(tl.sum(square, 0) / V - mean * mean)
    bar = largest - N_SIGMA * sigma
    seed = tl.load(seed_ptr + row).to(tl.uint32)
    warm = tl.load(temp_ptr + row)
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    where = tl.zeros((BLOCK,), tl.int32)
    kept = tl.zeros((BLOCK,), tl.int32)
    for v0 in range(0, V, BLOCK):
        x = tl.load(logit_ptr + row * V + v0 + i, mask=v0 + i < V, other=float("-inf")).to(tl.float32)
        stays = x >= bar
        bits = mixed_word((v0 + i).to(tl.uint32) * 0x9E3779B9 + seed)
        noise = -tl.log(-tl.log(((bits >> 8).to(tl.float32) + 0.5) * 5.9604644775390625e-08))
        y = tl.where(stays, x / warm + noise, float("-inf"))
        where = tl.where(y > best, v0 + i, where)
        best = tl.maximum(best, y)
        kept += stays.to(tl.int32)
    at = tl.argmax(best, 0)
    tl.store(token_ptr + row, tl.sum(tl.where(i == at, where, 0), 0))
    tl.store(kept_ptr + row, tl.sum(kept, 0))


@case
def glacier_tokens_drawn_within_sigmas_of_the_peak(rows=160, v=50_257):
    # Logits are not near the bar: those above are lifted by a unit.
    noise = f32(rows, v)
    logits = torch.where(noise > 2.5, noise + 4, noise * 0.5)
    logits[:, 0] = 9.0
    logits = logits.clamp(max=9.0)
    seed, warm = ints(0, 1 << 30, rows), uniform(rows) + 0.5
    token, kept = zeros(rows, dtype="int32"), zeros(rows, dtype="int32")
    launched = run(draw_within_sigmas, (rows,), (logits, seed, warm, token, kept, v, 6.0), (token, kept), BLOCK=2048, num_warps=8)

    def reference():
        x = logits.double()
        sigma = (x.square().mean(1) - x.mean(1).square()).sqrt()
        stays = x >= (x.amax(1) - 6.0 * sigma)[:, None]
        mask = (1 << 32) - 1
        bits = (torch.arange(v, device="cuda")[None, :] * 0x9E3779B9 + seed[:, None].long()) & mask
        bits = bits ^ (bits >> 16)
        bits = (bits * 0x7FEB352D) & mask
        bits = bits ^ (bits >> 15)
        bits = ((bits & 0xFFFF) * 0x846CA68B + (((bits >> 16) * 0x846CA68B & 0xFFFF) << 16)) & mask
        bits = bits ^ (bits >> 16)
        y = x / warm[:, None] - torch.log(-torch.log(((bits >> 8).float() + 0.5) * 2.0**-24))
        return y.masked_fill(~stays, float("-inf")).argmax(1).int(), stays.sum(1).int()

    return against(launched, reference)


@triton.jit
def padded_rows_times_columns(col_ptr, val_ptr, x_ptr, y_ptr, N, WIDTH: tl.constexpr, BR: tl.constexpr, F: tl.constexpr):
    # A sparse matrix with a fixed number of entries a row, one entry of all rows after another, times a few columns.
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    f = tl.arange(0, F)
    ok = r < N
    acc = tl.zeros((BR, F), tl.float32)
    for k in range(WIDTH):
        col = tl.load(col_ptr + k * N + r, mask=ok, other=-1)
        val = tl.load(val_ptr + k * N + r, mask=ok, other=0.0)
        acc += val[:, None] * tl.load(x_ptr + col[:, None] * F + f[None, :], mask=(col >= 0)[:, None], other=0.0).to(tl.float32)
    tl.store(y_ptr + r[:, None] * F + f[None, :], acc.to(y_ptr.dtype.element_ty), mask=ok[:, None])


@case
def glacier_mesh_of_padded_rows_times_sixteen(n=200_003, width=19, f=16):
    col = ints(0, n, width, n)
    col = torch.where(uniform(width, n) < 0.3, -1, col)
    val, x, y = f32(width, n), rand(n, f), zeros(n, f)
    launched = run(padded_rows_times_columns, (cdiv(n, 64),), (col, val, x, y, n), y, WIDTH=width, BR=64, F=f, num_warps=4)

    def reference():
        out = torch.zeros(n, f, device="cuda")
        for k in range(width):
            out += torch.where(col[k] >= 0, val[k], 0)[:, None] * x.float()[col[k].clamp(min=0).long()]
        return out

    return against(launched, reference)


@triton.jit
def then_clamped(a1, low1, high1, a2, low2, high2):
    # x -> clamp(x + a, low, high) followed by another of its kind.
    low = tl.minimum(tl.maximum(low1 + a2, low2), high2)
    high = tl.minimum(tl.maximum(high1 + a2, low2), high2)
    return a1 + a2, low, high


@triton.jit
def snow_packs(flow_ptr, cap_ptr, pack_ptr, T, B: tl.constexpr, ROWS: tl.constexpr):
    # Snow that falls and melts, never below zero nor above what a place holds: a scan of clamped sums, in blocks of days.
    place = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cap = tl.load(cap_ptr + place)
    now = tl.zeros((ROWS,), tl.int32)
    for t0 in range(0, T, B):
        t = t0 + tl.arange(0, B)
        ok = t < T
        a = tl.load(flow_ptr + place[:, None] * T + t[None, :], mask=ok[None, :], other=0).to(tl.int32)
        low = tl.zeros((ROWS, B), tl.int32)
        high = low + cap[:, None]
        a, low, high = tl.associative_scan((a, low, high), 1, then_clamped)
        pack = tl.minimum(tl.maximum(now[:, None] + a, low), high)
        tl.store(pack_ptr + place[:, None] * T + t[None, :], pack, mask=ok[None, :])
        now = tl.sum(tl.where((tl.arange(0, B) == B - 1)[None, :], pack, 0), 1)


@case
def glacier_snow_that_falls_and_melts_between_bounds(places=1056, t=5000):
    flow = ints(-100, 101, places, t, dtype="int16")
    cap, pack = ints(200, 2000, places), zeros(places, t, dtype="int32")
    launched = run(snow_packs, (places // 4,), (flow, cap, pack, t), pack, B=512, ROWS=4, num_warps=4)

    def reference():
        x, out = torch.zeros(places, dtype=torch.int32, device="cuda"), torch.zeros(places, t, dtype=torch.int32, device="cuda")
        for i in range(t):
            x = torch.minimum((x + flow[:, i]).clamp(min=0), cap)
            out[:, i] = x
        return out

    return against(launched, reference)
