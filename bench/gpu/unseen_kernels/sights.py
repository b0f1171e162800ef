"""Sights: sampling between pixels and voxels, windows and votes, codes of textures, colors through tables, paths down images."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import arange, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros


@triton.jit
def corner(V, base, row, y, x, h, w, d, live):
    ok = (y >= 0) & (y < h) & (x >= 0) & (x < w) & live
    return tl.load(V + (base + y * w + x)[:, None] * row + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)


@triton.jit
def sample_levels(
    VALUE, SHAPES, STARTS, PLACES, WEIGHTS, OUT, NQ, S, H: tl.constexpr, D: tl.constexpr, L: tl.constexpr, P: tl.constexpr, BQ: tl.constexpr
):
    # Attention that samples P places of each of L maps between their pixels; sizes of maps are data.
    q, head, b = tl.program_id(0) * BQ + tl.arange(0, BQ), tl.program_id(1), tl.program_id(2)
    d = tl.arange(0, D)
    live = q < NQ
    item = ((b * NQ + q) * H + head) * (L * P)
    acc = tl.zeros((BQ, D), tl.float32)
    for level in tl.static_range(L):
        h, w = tl.load(SHAPES + level * 2), tl.load(SHAPES + level * 2 + 1)
        start = b * S + tl.load(STARTS + level)
        for p in range(P):
            x = tl.load(PLACES + (item + level * P + p) * 2, mask=live, other=0.0) * w.to(tl.float32) - 0.5
            y = tl.load(PLACES + (item + level * P + p) * 2 + 1, mask=live, other=0.0) * h.to(tl.float32) - 0.5
            weight = tl.load(WEIGHTS + item + level * P + p, mask=live, other=0.0)
            x0, y0 = tl.floor(x), tl.floor(y)
            fx, fy = x - x0, y - y0
            xi, yi = x0.to(tl.int32), y0.to(tl.int32)
            base = VALUE + head * D
            v = corner(base, start, H * D, yi, xi, h, w, d, live) * ((1 - fy) * (1 - fx))[:, None]
            v += corner(base, start, H * D, yi, xi + 1, h, w, d, live) * ((1 - fy) * fx)[:, None]
            v += corner(base, start, H * D, yi + 1, xi, h, w, d, live) * (fy * (1 - fx))[:, None]
            v += corner(base, start, H * D, yi + 1, xi + 1, h, w, d, live) * (fy * fx)[:, None]
            acc += v * weight[:, None]
    tl.store(OUT + ((b * NQ + q) * H + head)[:, None] * D + d[None, :], acc.to(OUT.dtype.element_ty), mask=live[:, None])


@case
def attn_of_sampled_places_on_four_maps():
    b, nq, heads, d, points = 2, 2500, 8, 32, 4
    sizes = [(64, 84), (32, 42), (16, 21), (8, 11)]
    shapes = torch.tensor(sizes, device="cuda", dtype=torch.int32)
    starts = torch.tensor([0, 5376, 6720, 7056], device="cuda", dtype=torch.int32)
    s = 7056 + 88
    value, places, out = rand(b, s, heads, d), uniform(b, nq, heads, 4, points, 2) * 1.1 - 0.05, zeros(b, nq, heads, d)
    weights = torch.softmax(f32(b, nq, heads, 4 * points), -1)
    args = value, shapes, starts, places, weights, out, nq, s
    launch, args = run(sample_levels, (cdiv(nq, 32), heads, b), args, out, H=heads, D=d, L=4, P=points, BQ=32, num_warps=2)

    def reference(*_):
        total = 0
        for i, (h, w) in enumerate(sizes):
            v = value[:, int(starts[i]) : int(starts[i]) + h * w].float().permute(0, 2, 3, 1).reshape(b * heads, d, h, w)
            grid = (places[:, :, :, i] * 2 - 1).permute(0, 2, 1, 3, 4).reshape(b * heads, nq, points, 2)
            got = F.grid_sample(v, grid, align_corners=False).view(b, heads, d, nq, points)
            weight = weights.view(b, nq, heads, 4, points)[:, :, :, i].permute(0, 2, 1, 3)[:, :, None]
            total = total + (got * weight).sum(-1)
        return total.permute(0, 3, 1, 2)

    launch.reference = reference
    return launch, args


@triton.jit
def add_corner(GV, V, base, row, y, x, h, w, d, share, live, g):
    ok = (y >= 0) & (y < h) & (x >= 0) & (x < w) & live
    at = (base + y * w + x)[:, None] * row + d[None, :]
    tl.atomic_add(GV + at, g * share[:, None], mask=ok[:, None], sem="relaxed")
    v = tl.load(V + at, mask=ok[:, None], other=0.0).to(tl.float32)
    return tl.sum(v * g, 1)


@triton.jit
def sample_map_backward(V, PLACES, WEIGHTS, GO, GV, GP, GW, NQ, h, w, H: tl.constexpr, D: tl.constexpr, P: tl.constexpr, BQ: tl.constexpr):
    q, head = tl.program_id(0) * BQ + tl.arange(0, BQ), tl.program_id(1)
    d = tl.arange(0, D)
    live = q < NQ
    item = (q * H + head) * P
    go = tl.load(GO + (q * H + head)[:, None] * D + d[None, :], mask=live[:, None], other=0.0).to(tl.float32)
    for p in range(P):
        x = tl.load(PLACES + (item + p) * 2, mask=live, other=0.0) * w - 0.5
        y = tl.load(PLACES + (item + p) * 2 + 1, mask=live, other=0.0) * h - 0.5
        weight = tl.load(WEIGHTS + item + p, mask=live, other=0.0)
        x0, y0 = tl.floor(x), tl.floor(y)
        fx, fy = x - x0, y - y0
        xi, yi = x0.to(tl.int32), y0.to(tl.int32)
        g = go * weight[:, None]
        a = add_corner(GV + head * D, V + head * D, 0, H * D, yi, xi, h, w, d, (1 - fy) * (1 - fx), live, g)
        b = add_corner(GV + head * D, V + head * D, 0, H * D, yi, xi + 1, h, w, d, (1 - fy) * fx, live, g)
        c = add_corner(GV + head * D, V + head * D, 0, H * D, yi + 1, xi, h, w, d, fy * (1 - fx), live, g)
        e = add_corner(GV + head * D, V + head * D, 0, H * D, yi + 1, xi + 1, h, w, d, fy * fx, live, g)
        tl.store(GP + (item + p) * 2, ((b - a) * (1 - fy) + (e - c) * fy) * w, mask=live)
        tl.store(GP + (item + p) * 2 + 1, ((c - a) * (1 - fx) + (e - b) * fx) * h, mask=live)
        all_ = (a * (1 - fx) + b * fx) * (1 - fy) + (c * (1 - fx) + e * fx) * fy
        tl.store(GW + item + p, tl.where(weight != 0, all_ / weight, 0.0), mask=live)


@case
def sampled_places_gradients_by_atomics():
    nq, heads, d, points, h, w = 3000, 8, 64, 4, 50, 67
    value, places, weights = rand(h * w, heads, d, dtype="bfloat16"), uniform(nq, heads, points, 2), uniform(nq, heads, points) + 0.1
    go = rand(nq, heads, d, dtype="bfloat16")
    gv, gp, gw = (zeros(*t.shape, dtype="float32") for t in (value, places, weights))
    args = value, places, weights, go, gv, gp, gw, nq, h, w
    launched = run(sample_map_backward, (cdiv(nq, 16), heads), args, (gv, gp, gw), H=heads, D=d, P=points, BQ=16, num_warps=4)
    launch, args = cleared(launched, gv)

    def reference(*_):
        with torch.enable_grad():
            v, p, k = (t.float().clone().requires_grad_() for t in (value, places, weights))
            maps = v.permute(1, 2, 0).reshape(heads, d, h, w)
            got = F.grid_sample(maps, (p * 2 - 1).permute(1, 0, 2, 3), align_corners=False)
            (got * k.permute(1, 0, 2)[:, None]).sum(-1).backward(go.float().permute(1, 2, 0))
            return v.grad, p.grad, k.grad

    launch.reference = reference
    return launch, args


@triton.jit
def sample_volume(X, GRID, OUT, C, D, H, W, N, sc, BN: tl.constexpr, BC: tl.constexpr):
    # Trilinear, places clamped to the border; channels in a loop, so that weights and offsets are made once.
    n, b = tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1)
    live = n < N
    at = (b.to(tl.int64) * N + n) * 3
    x = (tl.load(GRID + at, mask=live, other=0.0) + 1) * 0.5 * (W - 1)
    y = (tl.load(GRID + at + 1, mask=live, other=0.0) + 1) * 0.5 * (H - 1)
    z = (tl.load(GRID + at + 2, mask=live, other=0.0) + 1) * 0.5 * (D - 1)
    x = tl.clamp(x, 0.0, (W - 1).to(tl.float32))
    y = tl.clamp(y, 0.0, (H - 1).to(tl.float32))
    z = tl.clamp(z, 0.0, (D - 1).to(tl.float32))
    x0, y0, z0 = x.to(tl.int32), y.to(tl.int32), z.to(tl.int32)
    fx, fy, fz = x - x0, y - y0, z - z0
    x1, y1, z1 = tl.minimum(x0 + 1, W - 1), tl.minimum(y0 + 1, H - 1), tl.minimum(z0 + 1, D - 1)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        ok = live[:, None] & (c < C)[None, :]
        p = X + b.to(tl.int64) * C * sc + c[None, :].to(tl.int64) * sc
        acc = tl.zeros((BN, BC), tl.float32)
        for k in tl.static_range(8):
            zi, wz = (z1, fz) if k & 4 else (z0, 1 - fz)
            yi, wy = (y1, fy) if k & 2 else (y0, 1 - fy)
            xi, wx = (x1, fx) if k & 1 else (x0, 1 - fx)
            acc += tl.load(p + ((zi * H + yi) * W + xi)[:, None], mask=ok, other=0.0).to(tl.float32) * (wz * wy * wx)[:, None]
        tl.store(OUT + (b.to(tl.int64) * C + c[None, :]) * N + n[:, None], acc.to(OUT.dtype.element_ty), mask=ok)


@case
def volume_sampled_with_clamped_border():
    b, c, d, h, w, n = 2, 12, 33, 65, 79, 100_003
    x, grid, out = rand(b, c, d, h, w), uniform(b, n, 3) * 2.4 - 1.2, zeros(b, c, n)
    launch, args = run(sample_volume, (cdiv(n, 256), b), (x, grid, out, c, d, h, w, n, d * h * w), out, BN=256, BC=4, num_warps=8)

    def reference(*_):
        return F.grid_sample(x.float(), grid.view(b, n, 1, 1, 3), padding_mode="border", align_corners=True).view(b, c, n)

    launch.reference = reference
    return launch, args


@triton.jit
def soft_suppress(BOXES, SCORES, KEPT, VALUES, sigma, least, N: tl.constexpr, KEEP: tl.constexpr):
    # The best box of those left, again and again; scores of boxes that overlap it decay. One program an image.
    b, n = tl.program_id(0), tl.arange(0, N)
    x0, y0 = tl.load(BOXES + (b * N + n) * 4), tl.load(BOXES + (b * N + n) * 4 + 1)
    x1, y1 = tl.load(BOXES + (b * N + n) * 4 + 2), tl.load(BOXES + (b * N + n) * 4 + 3)
    scores = tl.load(SCORES + b * N + n)
    area = (x1 - x0) * (y1 - y0)
    k = 0
    best, at = tl.max(scores, 0, return_indices=True)
    while (k < KEEP) & (best > least):
        tl.store(KEPT + b * KEEP + k, at)
        tl.store(VALUES + b * KEEP + k, best)
        p = BOXES + (b * N + at) * 4
        ax0, ay0, ax1, ay1 = tl.load(p), tl.load(p + 1), tl.load(p + 2), tl.load(p + 3)
        both = tl.maximum(tl.minimum(x1, ax1) - tl.maximum(x0, ax0), 0.0) * tl.maximum(tl.minimum(y1, ay1) - tl.maximum(y0, ay0), 0.0)
        iou = both / (area + (ax1 - ax0) * (ay1 - ay0) - both)
        scores = tl.where(n == at, -1.0, scores * tl.exp(-iou * iou / sigma))
        best, at = tl.max(scores, 0, return_indices=True)
        k += 1


@case
def boxes_suppressed_softly():
    b, n, keep = 64, 1024, 100
    low = uniform(b, n, 2) * 200
    boxes, scores = torch.cat([low, low + uniform(b, n, 2) * 60 + 4], 2), uniform(b, n)
    kept, values = zeros(b, keep, dtype="int32"), zeros(b, keep, dtype="float32")
    launch, args = run(soft_suppress, (b,), (boxes, scores, kept, values, 0.5, 0.05), (kept, values), N=n, KEEP=keep, num_warps=8)

    def reference(*_):
        s, i = scores.clone(), arange(b, "int64")
        area = (boxes[..., 2:] - boxes[..., :2]).prod(-1)
        places, found = [], []
        for _ in range(keep):
            best, at = s.max(1)
            places.append(at)
            found.append(best)
            one = boxes[i, at][:, None]
            both = (torch.minimum(boxes[..., 2:], one[..., 2:]) - torch.maximum(boxes[..., :2], one[..., :2])).clamp(min=0).prod(-1)
            iou = both / (area + area[i, at][:, None] - both)
            s = s * torch.exp(-iou * iou / 0.5)
            s[i, at] = -1.0
        return torch.stack(places, 1), torch.stack(found, 1)

    launch.reference = reference
    return launch, args


@triton.jit
def depthwise_large(X, WEIGHT, BIAS, OUT, H, W, K: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr):
    # A window of K by K of one channel: rows of taps in a loop, columns of taps unrolled; any size of image.
    c, planes = tl.program_id(1), tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)
    across = tl.cdiv(W, BX)
    y, x = tl.program_id(0) // across * BY + tl.arange(0, BY), tl.program_id(0) % across * BX + tl.arange(0, BX)
    base = X + planes.to(tl.int64) * H * W
    acc = tl.zeros((BY, BX), tl.float32) + tl.load(BIAS + c)
    for ky in range(K):
        yy = y + ky - K // 2
        for kx in tl.static_range(K):
            xx = x + kx - K // 2
            ok = ((yy >= 0) & (yy < H))[:, None] & ((xx >= 0) & (xx < W))[None, :]
            v = tl.load(base + yy[:, None] * W + xx[None, :], mask=ok, other=0.0).to(tl.float32)
            acc = tl.fma(v, tl.load(WEIGHT + (c * K + ky) * K + kx).to(tl.float32), acc)
    ok = (y < H)[:, None] & (x < W)[None, :]
    tl.store(OUT + planes.to(tl.int64) * H * W + y[:, None] * W + x[None, :], acc.to(OUT.dtype.element_ty), mask=ok)


@case
def conv2d_depthwise_13x13_of_odd_planes():
    b, c, h, w, k = 8, 96, 57, 61, 13
    x, weight, bias, out = rand(b, c, h, w), rand(c, k, k) * 0.1, f32(c), zeros(b, c, h, w)
    launch, args = run(depthwise_large, (cdiv(h, 16) * cdiv(w, 64), c, b), (x, weight, bias, out, h, w), out, K=k, BY=16, BX=64, num_warps=4)
    launch.reference = lambda *_: F.conv2d(x.float(), weight.float()[:, None], bias, padding=k // 2, groups=c)
    return launch, args


@triton.jit
def windows_to_columns(X, OUT, C, H, W, OH, OW, KH, KW, stride, pad, dilation, total, BLOCK: tl.constexpr):
    # Every extent is an argument: four divisions by numbers unknown when compiled, for each element.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = i < total
    ox, rest = i % OW, i // OW
    oy, rest = rest % OH, rest // OH
    kx, rest = rest % KW, rest // KW
    ky, c = rest % KH, rest // KH
    y, x = oy * stride - pad + ky * dilation, ox * stride - pad + kx * dilation
    ok = live & (y >= 0) & (y < H) & (x >= 0) & (x < W)
    tl.store(OUT + i, tl.load(X + (c * H + y) * W + x, mask=ok, other=0.0), mask=live)


@case
def windows_to_columns_of_any_size():
    c, h, w, k = 144, 75, 83, 3
    oh, ow = (h + 4 - 5) // 2 + 1, (w + 4 - 5) // 2 + 1
    x, out = rand(c, h, w), zeros(c, k, k, oh, ow)
    total = out.numel()
    launch, args = run(windows_to_columns, (cdiv(total, 1024),), (x, out, c, h, w, oh, ow, k, k, 2, 2, 2, total), out, BLOCK=1024, num_warps=4)
    launch.reference = lambda *_: F.unfold(x[None].float(), k, dilation=2, padding=2, stride=2).view(out.shape)
    return launch, args


@triton.jit
def count_bits(x):
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return (x * 0x0101010101010101) >> 56


@triton.jit
def census(X, CODES, H, W, BLOCK: tl.constexpr):
    # 62 comparisons of bytes with the middle of a window of 9 by 7, in a long word.
    x, y = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1)
    middle = tl.load(X + y * W + x, mask=x < W, other=0)
    code = tl.zeros((BLOCK,), tl.uint64)
    for dy in tl.static_range(-3, 4):
        for dx in tl.static_range(-4, 5):
            if dy != 0 or dx != 0:
                yy, xx = tl.minimum(tl.maximum(y + dy, 0), H - 1), tl.minimum(tl.maximum(x + dx, 0), W - 1)
                code = (code << 1) | (tl.load(X + yy * W + xx) < middle).to(tl.uint64)
    tl.store(CODES + y * W + x, code, mask=x < W)


@triton.jit
def code_distances(LEFT, RIGHT, BEST, SECOND, W, D: tl.constexpr, BLOCK: tl.constexpr):
    # Bits in which codes differ at each of D shifts: the best shift, and the second best cost that is no neighbor's.
    x, y, d = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1), tl.arange(0, D)
    left = tl.load(LEFT + y * W + x, mask=x < W, other=0)
    at = x[:, None] - d[None, :]
    right = tl.load(RIGHT + y * W + at, mask=(at >= 0) & (x < W)[:, None], other=0)
    cost = tl.where(at >= 0, count_bits(left[:, None] ^ right).to(tl.int32), 64)
    best, shift = tl.min(cost, 1, return_indices=True)
    second = tl.min(tl.where(tl.abs(d[None, :] - shift[:, None]) <= 1, 65, cost), 1)
    tl.store(BEST + y * W + x, shift.to(tl.uint8), mask=x < W)
    tl.store(SECOND + y * W + x, (second - best).to(tl.int8), mask=x < W)


@case
def stereo_by_census_codes_of_62_bits():
    h, w, d = 480, 1242, 128
    left, right = ints(0, 256, h, w, dtype="uint8"), ints(0, 256, h, w, dtype="uint8")
    a, b = zeros(h, w, dtype="int64").view(torch.uint64), zeros(h, w, dtype="int64").view(torch.uint64)
    best, second = zeros(h, w, dtype="uint8"), zeros(h, w, dtype="int8")

    def launch(*_):
        census[(cdiv(w, 256), h)](left, a, h, w, BLOCK=256, num_warps=4)
        census[(cdiv(w, 256), h)](right, b, h, w, BLOCK=256, num_warps=4)
        code_distances[(cdiv(w, 32), h)](a, b, best, second, w, D=d, BLOCK=32, num_warps=4)
        return a.view(torch.int64) >> 32, best, second

    def codes(image):
        v = F.pad(image.float()[None, None], (4, 4, 3, 3), mode="replicate")[0, 0]
        code = torch.zeros_like(image, dtype=torch.int64)
        for dy in range(7):
            for dx in range(9):
                if (dy, dx) != (3, 4):
                    code = (code << 1) | (v[dy : dy + h, dx : dx + w] < image.float()).long()
        return code

    def reference(*_):
        p, q = codes(left), codes(right)
        costs = torch.full((h, w, d), 64, device=p.device)
        for k in range(d):
            differ = p[:, k:] ^ q[:, : w - k]
            costs[:, k:, k] = sum((differ >> bit) & 1 for bit in range(62))
        least, shift = costs.min(2)
        near = (arange(d)[None, None] - shift[..., None]).abs() <= 1
        return p >> 32, shift, costs.masked_fill(near, 65).amin(2) - least

    launch.reference = reference
    return launch, (left, right)


@triton.jit
def pool_regions_backward(GO, BOXES, GX, C, H, W, scale, SIDE: tl.constexpr, BC: tl.constexpr):
    # Gradients of turned regions' bins go to four pixels each, channels last, in two samples along each axis.
    r, bin_, c = tl.program_id(0), tl.program_id(1), tl.program_id(2) * BC + tl.arange(0, BC)
    p = BOXES + r * 6
    b = tl.load(p).to(tl.int32)
    cx, cy, w, h, angle = tl.load(p + 1) * scale - 0.5, tl.load(p + 2) * scale - 0.5, tl.load(p + 3) * scale, tl.load(p + 4) * scale, tl.load(p + 5)
    cos, sin = tl.cos(angle), tl.sin(angle)
    g = tl.load(GO + (r * SIDE * SIDE + bin_) * C + c, mask=c < C, other=0.0).to(tl.float32) * 0.25
    by, bx = bin_ // SIDE, bin_ % SIDE
    for sample in tl.static_range(4):
        u = (bx + (sample % 2 + 0.5) / 2) * w / SIDE - w / 2
        v = (by + (sample // 2 + 0.5) / 2) * h / SIDE - h / 2
        x, y = u * cos + v * sin + cx, v * cos - u * sin + cy
        if (x > -1.0) & (y > -1.0) & (x < W) & (y < H):
            x, y = tl.maximum(x, 0.0), tl.maximum(y, 0.0)
            x0, y0 = tl.minimum(x.to(tl.int32), W - 1), tl.minimum(y.to(tl.int32), H - 1)
            x1, y1 = tl.minimum(x0 + 1, W - 1), tl.minimum(y0 + 1, H - 1)
            fx, fy = tl.minimum(x - x0, 1.0), tl.minimum(y - y0, 1.0)
            fx, fy = tl.where(x0 == W - 1, 0.0, fx), tl.where(y0 == H - 1, 0.0, fy)
            base = GX + b * H * W * C + c
            tl.atomic_add(base + (y0 * W + x0) * C, g * (1 - fy) * (1 - fx), mask=c < C, sem="relaxed")
            tl.atomic_add(base + (y0 * W + x1) * C, g * (1 - fy) * fx, mask=c < C, sem="relaxed")
            tl.atomic_add(base + (y1 * W + x0) * C, g * fy * (1 - fx), mask=c < C, sem="relaxed")
            tl.atomic_add(base + (y1 * W + x1) * C, g * fy * fx, mask=c < C, sem="relaxed")


@case
def turned_regions_gradients_by_atomics():
    b, h, w, c, regions, side = 2, 50, 76, 250, 256, 7
    boxes = torch.cat([ints(0, b, regions, 1).float(), uniform(regions, 2) * 700 + 50, uniform(regions, 2) * 300 + 20, f32(regions, 1)], 1)
    go, gx = rand(regions, side * side, c), zeros(b, h, w, c, dtype="float32")
    args = go, boxes, gx, c, h, w, 0.0625
    launched = run(pool_regions_backward, (regions, side * side, 1), args, gx, SIDE=side, BC=256, num_warps=2)
    launch, args = cleared(launched, gx)

    def reference(*_):
        out = torch.zeros(b * h * w, c, device=gx.device)
        i = arange(side * side)
        which = boxes[:, 0].long()[:, None]
        cx, cy, bw, bh, angle = (boxes[:, k, None] * (0.0625 if k < 5 else 1) for k in range(1, 6))
        for sample in range(4):
            u = ((i % side)[None] + (sample % 2 + 0.5) / 2) * bw / side - bw / 2
            v = ((i // side)[None] + (sample // 2 + 0.5) / 2) * bh / side - bh / 2
            x, y = u * angle.cos() + v * angle.sin() + cx - 0.5, v * angle.cos() - u * angle.sin() + cy - 0.5
            ok = ((x > -1) & (y > -1) & (x < w) & (y < h)).float()
            x, y = x.clamp(0, w - 1), y.clamp(0, h - 1)
            x0, y0 = x.long(), y.long()
            for dy in (0, 1):
                for dx in (0, 1):
                    share = ((y - y0) if dy else (1 - y + y0)) * ((x - x0) if dx else (1 - x + x0)) * ok * 0.25
                    at = (which * h + (y0 + dy).clamp(max=h - 1)) * w + (x0 + dx).clamp(max=w - 1)
                    out.index_add_(0, at.reshape(-1), (go.float() * share[..., None]).reshape(-1, c))
        return out.view(b, h, w, c)

    launch.reference = reference
    return launch, args


@triton.jit
def decode_blocks(COEFFICIENTS, ORDER, QUANTA, BASIS, OUT, W, TILES, B: tl.constexpr):
    # Coefficients in zigzag order to blocks of 8 by 8 bytes: a gather within rows, then two products by sums.
    n, k = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, 64)
    i, j = tl.arange(0, 8), tl.arange(0, 8)
    z = tl.load(COEFFICIENTS + n[:, None] * 64 + k[None, :], mask=(n < TILES)[:, None], other=0)
    order = tl.load(ORDER + k)
    v = tl.gather(z, tl.broadcast_to(order[None, :], (B, 64)), 1).to(tl.float32) * tl.load(QUANTA + k).to(tl.float32)[None, :]
    v = tl.reshape(v, (B, 8, 8))
    basis = tl.load(BASIS + i[:, None] * 8 + j[None, :])
    rows = tl.sum(basis.trans()[None, :, :, None] * v[:, None, :, :], 2)
    pixels = tl.sum(rows[:, :, :, None] * basis[None, None, :, :], 2)
    pixels = tl.clamp(libdevice.rint(pixels + 128.0), 0.0, 255.0).to(tl.uint8)
    across = W // 8
    at = ((n // across) * 8)[:, None, None] * W + ((n % across) * 8)[:, None, None] + i[None, :, None] * W + j[None, None, :]
    tl.store(OUT + at, pixels, mask=(n < TILES)[:, None, None])


@case
def blocks_from_zigzag_coefficients():
    h, w = 2160, 3840
    tiles = h * w // 64
    zig = sorted(range(64), key=lambda p: (p // 8 + p % 8, (p // 8 if (p // 8 + p % 8) % 2 else p % 8)))
    order = torch.tensor([zig.index(p) for p in range(64)], dtype=torch.int32, device="cuda")
    i = arange(8).float()
    basis = torch.cos((2 * i[None, :] + 1) * i[:, None] * torch.pi / 16) * 0.5
    basis[0] *= 2**-0.5
    c, quanta, out = ints(-4, 5, tiles, 64, dtype="int16"), ints(3, 12, 64, dtype="uint8"), zeros(h, w, dtype="uint8")
    args = c, order, quanta, basis, out, w, tiles
    launch, args = run(decode_blocks, (cdiv(tiles, 4),), args, out, B=4, num_warps=2)

    def reference(*_):
        v = (c[:, order.long()].float() * quanta.float()).view(-1, 8, 8)
        pixels = (basis.t() @ v @ basis + 128).round().clamp(0, 255)
        return pixels.view(h // 8, w // 8, 8, 8).permute(0, 2, 1, 3).reshape(h, w)

    launch.reference = reference
    return launch, args


@triton.jit
def color_cube(RGB, TABLE, OUT, N, S: tl.constexpr, BLOCK: tl.constexpr):
    # The tetrahedron that holds a color is told by the order of its fractions: four of the cube's corners are read.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    r = tl.load(RGB + i * 3, mask=live, other=0).to(tl.float32) * ((S - 1) / 255)
    g = tl.load(RGB + i * 3 + 1, mask=live, other=0).to(tl.float32) * ((S - 1) / 255)
    b = tl.load(RGB + i * 3 + 2, mask=live, other=0).to(tl.float32) * ((S - 1) / 255)
    ri, gi, bi = tl.minimum(r.to(tl.int32), S - 2), tl.minimum(g.to(tl.int32), S - 2), tl.minimum(b.to(tl.int32), S - 2)
    fr, fg, fb = r - ri, g - gi, b - bi
    sr, sg, sb = S * S, S, 1
    most, least = tl.maximum(tl.maximum(fr, fg), fb), tl.minimum(tl.minimum(fr, fg), fb)
    middle = fr + fg + fb - most - least
    first = tl.where((fr >= fg) & (fr >= fb), sr, tl.where(fg >= fb, sg, sb))
    last = tl.where((fb <= fr) & (fb <= fg), sb, tl.where(fg <= fr, sg, sr))
    base = (ri * S + gi) * S + bi
    second = base + (sr + sg + sb) - last
    for c in tl.static_range(3):
        v = tl.load(TABLE + base * 3 + c) * (1 - most) + tl.load(TABLE + (base + first) * 3 + c) * (most - middle)
        v += tl.load(TABLE + second * 3 + c) * (middle - least) + tl.load(TABLE + (base + sr + sg + sb) * 3 + c) * least
        tl.store(OUT + i * 3 + c, (v * 255 + 0.5).to(tl.uint8), mask=live)


@case
def colors_through_a_cube_by_tetrahedra():
    n, s = 1080 * 1920, 33
    rgb, out = ints(0, 256, n, 3, dtype="uint8"), zeros(n, 3, dtype="uint8")
    grid = torch.stack(torch.meshgrid(*[arange(s).float() / (s - 1)] * 3, indexing="ij"), -1)
    table = (grid**1.7 * 0.8 + grid.roll(1, -1) * 0.2).contiguous()
    launch, args = run(color_cube, (cdiv(n, 512),), (rgb, table, out, n), out, S=s, BLOCK=512, num_warps=4)

    def reference(*_):
        v = rgb.double() * ((s - 1) / 255)
        low = v.long().clamp(max=s - 2)
        f, order = (v - low).sort(-1, descending=True)
        steps = torch.tensor([s * s, s, 1], device=rgb.device)[order].cumsum(-1)
        base = (low * torch.tensor([s * s, s, 1], device=rgb.device)).sum(-1)
        t = table.view(-1, 3).double()
        w = torch.cat([1 - f[:, :1], f[:, :1] - f[:, 1:2], f[:, 1:2] - f[:, 2:], f[:, 2:]], 1)
        at = torch.cat([base[:, None], base[:, None] + steps], 1)
        return ((t[at] * w[..., None]).sum(1) * 255 + 0.5).floor()

    launch.reference = reference
    return launch, args


@triton.jit
def reflected(i, n):
    period = 2 * n
    i = i % period
    i = tl.where(i < 0, i + period, i)
    return tl.where(i < n, i, period - 1 - i)


@triton.jit
def warp_plane(SRC, MATRIX, OUT, H, W, OH, OW, src_row, BY: tl.constexpr, BX: tl.constexpr):
    # A homography in double, pixels in 5 bits of fraction as bytes, borders mirrored.
    y = (tl.program_id(1) * BY + tl.arange(0, BY))[:, None]
    x = (tl.program_id(0) * BX + tl.arange(0, BX))[None, :]
    m0, m1, m2 = tl.load(MATRIX), tl.load(MATRIX + 1), tl.load(MATRIX + 2)
    m3, m4, m5 = tl.load(MATRIX + 3), tl.load(MATRIX + 4), tl.load(MATRIX + 5)
    m6, m7, m8 = tl.load(MATRIX + 6), tl.load(MATRIX + 7), tl.load(MATRIX + 8)
    w = m6 * x + m7 * y + m8
    k = tl.where(w != 0, 32.0 / w, 0.0)
    sx, sy = libdevice.rint((m0 * x + m1 * y + m2) * k).to(tl.int32), libdevice.rint((m3 * x + m4 * y + m5) * k).to(tl.int32)
    fx, fy, x0, y0 = sx & 31, sy & 31, sx >> 5, sy >> 5
    xa, xb, ya, yb = reflected(x0, W), reflected(x0 + 1, W), reflected(y0, H), reflected(y0 + 1, H)
    a, b = tl.load(SRC + ya * src_row + xa).to(tl.int32), tl.load(SRC + ya * src_row + xb).to(tl.int32)
    c, d = tl.load(SRC + yb * src_row + xa).to(tl.int32), tl.load(SRC + yb * src_row + xb).to(tl.int32)
    v = (a * (32 - fx) + b * fx) * (32 - fy) + (c * (32 - fx) + d * fx) * fy
    tl.store(OUT + y * OW + x, ((v + 512) >> 10).to(tl.uint8), mask=(y < OH) & (x < OW))


@case
def plane_of_bytes_through_a_homography():
    h, w, oh, ow, row = 1077, 1911, 1500, 2001, 1923
    src, out = ints(0, 256, h, row, dtype="uint8"), zeros(oh, ow, dtype="uint8")
    values = [0.92, 0.11, -40.3, -0.07, 0.85, 12.9, 1.1e-5, -2.3e-5, 1.0]
    matrix = torch.tensor(values, dtype=torch.float64, device="cuda")
    launch, args = run(warp_plane, (cdiv(ow, 64), cdiv(oh, 8)), (src, matrix, out, h, w, oh, ow, row), out, BY=8, BX=64, num_warps=4)

    def reference(*_):
        y, x = arange(oh, "float64")[:, None], arange(ow, "float64")[None, :]
        m = values
        k = 32.0 / (m[6] * x + m[7] * y + m[8])
        sx, sy = ((m[0] * x + m[1] * y + m[2]) * k).round().long(), ((m[3] * x + m[4] * y + m[5]) * k).round().long()
        fx, fy, x0, y0 = sx & 31, sy & 31, sx >> 5, sy >> 5

        def mirror(i, n):
            i = i % (2 * n)
            return torch.where(i < n, i, 2 * n - 1 - i)

        a, b, c, d = (src[mirror(y0 + p, h), mirror(x0 + q, w)].long() for p in (0, 1) for q in (0, 1))
        return (((a * (32 - fx) + b * fx) * (32 - fy) + (c * (32 - fx) + d * fx) * fy) + 512) >> 10

    launch.reference = reference
    return launch, args


@triton.jit
def similarity(A, B, WEIGHTS, OUT, H, W, c1, c2, R: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr):
    # Five weighed moments of windows of 11 by 11 of two images, mirrored at no border: only whole windows count.
    y, x = tl.program_id(1) * BY + tl.arange(0, BY), tl.program_id(0) * BX + tl.arange(0, BX)
    base = tl.program_id(2) * H * W
    oh, ow = H - R + 1, W - R + 1
    ma, mb = tl.zeros((BY, BX), tl.float32), tl.zeros((BY, BX), tl.float32)
    saa, sbb, sab = tl.zeros((BY, BX), tl.float32), tl.zeros((BY, BX), tl.float32), tl.zeros((BY, BX), tl.float32)
    ok = (y < oh)[:, None] & (x < ow)[None, :]
    for ky in tl.range(R):
        wy = tl.load(WEIGHTS + ky)
        for kx in tl.static_range(R):
            at = base + (y + ky)[:, None] * W + (x + kx)[None, :]
            a, b = tl.load(A + at, mask=ok, other=0.0), tl.load(B + at, mask=ok, other=0.0)
            w = wy * tl.load(WEIGHTS + kx)
            ma += w * a
            mb += w * b
            saa += w * a * a
            sbb += w * b * b
            sab += w * a * b
    va, vb, vab = saa - ma * ma, sbb - mb * mb, sab - ma * mb
    s = (2 * ma * mb + c1) * (2 * vab + c2) / ((ma * ma + mb * mb + c1) * (va + vb + c2))
    s = tl.where(ok, s, 0.0)
    n = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0) + tl.program_id(0)
    tl.store(OUT + n, tl.sum(s))


@case
def similarity_of_images_in_11x11_windows():
    planes, h, w = 6, 363, 517
    a = uniform(planes, h, w)
    b = (a + 0.1 * f32(planes, h, w)).contiguous()
    g = torch.exp(-((arange(11).float() - 5) ** 2) / 4.5)
    g = g / g.sum()
    grid = cdiv(w - 10, 32), cdiv(h - 10, 32), planes
    out = zeros(planes, grid[1] * grid[0], dtype="float32")
    launch, args = run(similarity, grid, (a, b, g, out, h, w, 1e-4, 9e-4), out, R=11, BY=32, BX=32, num_warps=8)

    def blur(t):
        return F.conv2d(F.conv2d(t[:, None], g.view(1, 1, 11, 1)), g.view(1, 1, 1, 11))[:, 0]

    def reference(*_):
        ma, mb = blur(a), blur(b)
        va, vb, vab = blur(a * a) - ma * ma, blur(b * b) - mb * mb, blur(a * b) - ma * mb
        s = (2 * ma * mb + 1e-4) * (2 * vab + 9e-4) / ((ma * ma + mb * mb + 1e-4) * (va + vb + 9e-4))
        s = F.pad(s, (0, grid[0] * 32 - s.shape[2], 0, grid[1] * 32 - s.shape[1]))
        return s.view(planes, grid[1], 32, grid[0], 32).sum((2, 4)).view(planes, -1)

    launch.reference = reference
    return launch, args


@triton.jit
def vote_for_lines(POINTS, COUNT, VOTES, rho_step, ANGLES: tl.constexpr, RHOS: tl.constexpr, BLOCK: tl.constexpr):
    # Each point votes for a line of every angle.
    n = tl.load(COUNT)
    a = tl.arange(0, ANGLES)
    cos, sin = tl.cos(a * (3.14159265 / ANGLES)), tl.sin(a * (3.14159265 / ANGLES))
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = start + tl.arange(0, BLOCK)
        x, y = tl.load(POINTS + i * 2, mask=i < n, other=0).to(tl.float32), tl.load(POINTS + i * 2 + 1, mask=i < n, other=0).to(tl.float32)
        rho = libdevice.float2int_rn((x[:, None] * cos[None, :] + y[:, None] * sin[None, :]) / rho_step) + RHOS // 2
        ok = (i < n)[:, None] & (rho >= 0) & (rho < RHOS)
        tl.atomic_add(VOTES + a[None, :] * RHOS + rho, 1, mask=ok, sem="relaxed")


@case
def votes_for_lines_of_points():
    n, angles, rhos = 60_000, 256, 1200
    points = torch.cat([ints(0, 1920, n, 1), ints(0, 1080, n, 1)], 1).to(torch.int16)
    count, votes = torch.tensor([n - 77], dtype=torch.int32, device="cuda"), zeros(angles, rhos, dtype="int32")
    launched = run(vote_for_lines, (264,), (points, count, votes, 4.0), votes, ANGLES=angles, RHOS=rhos, BLOCK=16, num_warps=8)
    launch, args = cleared(launched, votes)
    see = lambda v: v.view(angles, rhos // 50, 50).sum((0, 2)).float()  # noqa: E731: a vote at a border may go to either side

    def seen(*args):
        return see(launch(*args))

    def reference(*_):
        p = points[: n - 77].double()
        a = arange(angles).double() * (torch.pi / angles)
        rho = ((p[:, :1] * a.cos() + p[:, 1:] * a.sin()) / 4.0).round().long() + rhos // 2
        all_ = torch.zeros(angles * rhos, dtype=torch.int64, device=points.device)
        all_.scatter_add_(0, (arange(angles) * rhos + rho).reshape(-1), torch.ones_like(rho).reshape(-1))
        return see(all_)

    seen.reference = reference
    return seen, args


@triton.jit
def binary_patterns(X, HIST, H, W, CELL: tl.constexpr):
    # Eight neighbors compared with each pixel make a byte; cells of the image count their bytes.
    p = tl.arange(0, CELL * CELL)
    y, x = tl.program_id(1) * CELL + p // CELL, tl.program_id(0) * CELL + p % CELL
    inside = (y > 0) & (y < H - 1) & (x > 0) & (x < W - 1)
    at = X + tl.program_id(2) * H * W + y * W + x
    c = tl.load(at, mask=inside, other=0)
    code = (tl.load(at - W - 1, mask=inside, other=0) >= c).to(tl.int32)
    code |= (tl.load(at - W, mask=inside, other=0) >= c).to(tl.int32) << 1
    code |= (tl.load(at - W + 1, mask=inside, other=0) >= c).to(tl.int32) << 2
    code |= (tl.load(at + 1, mask=inside, other=0) >= c).to(tl.int32) << 3
    code |= (tl.load(at + W + 1, mask=inside, other=0) >= c).to(tl.int32) << 4
    code |= (tl.load(at + W, mask=inside, other=0) >= c).to(tl.int32) << 5
    code |= (tl.load(at + W - 1, mask=inside, other=0) >= c).to(tl.int32) << 6
    code |= (tl.load(at - 1, mask=inside, other=0) >= c).to(tl.int32) << 7
    counts = tl.histogram(code, 256, mask=inside)
    cell = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0) + tl.program_id(0)
    total = tl.maximum(tl.sum(counts, 0), 1)
    tl.store(HIST + cell * 256 + tl.arange(0, 256), tl.sqrt(counts.to(tl.float32) / total))


@case
def textures_by_histograms_of_patterns():
    n, h, w, cell = 16, 480, 640, 32
    x, out = ints(0, 256, n, h, w, dtype="uint8"), zeros(n, h // cell, w // cell, 256, dtype="float32")
    launch, args = run(binary_patterns, (w // cell, h // cell, n), (x, out, h, w), out, CELL=cell, num_warps=4)

    def reference(*_):
        v = x.int()
        c = v[:, 1:-1, 1:-1]
        code = torch.zeros_like(c)
        for bit, (dy, dx) in enumerate([(-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)]):
            code |= (v[:, 1 + dy : h - 1 + dy, 1 + dx : w - 1 + dx] >= c).int() << bit
        codes = F.pad(code + 1, (1, 1, 1, 1)).view(n, h // cell, cell, w // cell, cell).permute(0, 1, 3, 2, 4).reshape(-1, cell * cell)
        counts = torch.zeros(codes.shape[0], 257, device=x.device).scatter_add_(1, codes.long(), torch.ones_like(codes, dtype=torch.float32))
        counts = counts[:, 1:]
        return (counts / counts.sum(1, keepdim=True)).sqrt().view(out.shape)

    launch.reference = reference
    return launch, args


@triton.jit
def surface_cells(FIELD, COUNTS, SUMS, level, NX, NY, NZ, BLOCK: tl.constexpr):
    # Eight corners of each cube tell its case; edges that the surface cuts are counted, and where it cuts along x is summed.
    i, z = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1)
    x, y = i % (NX - 1), i // (NX - 1)
    live = y < NY - 1
    p = FIELD + (z * NY + y) * NX + x
    a, b = tl.load(p, mask=live, other=0.0) - level, tl.load(p + 1, mask=live, other=0.0) - level
    c, d = tl.load(p + NX, mask=live, other=0.0) - level, tl.load(p + NX + 1, mask=live, other=0.0) - level
    p += NX * NY
    e, f = tl.load(p, mask=live, other=0.0) - level, tl.load(p + 1, mask=live, other=0.0) - level
    g, h = tl.load(p + NX, mask=live, other=0.0) - level, tl.load(p + NX + 1, mask=live, other=0.0) - level
    code = (a < 0).to(tl.int32) | (b < 0).to(tl.int32) << 1 | (c < 0).to(tl.int32) << 2 | (d < 0).to(tl.int32) << 3
    code |= (e < 0).to(tl.int32) << 4 | (f < 0).to(tl.int32) << 5 | (g < 0).to(tl.int32) << 6 | (h < 0).to(tl.int32) << 7
    along_x, along_y, along_z = (code ^ (code >> 1)) & 0x55, (code ^ (code >> 2)) & 0x33, (code ^ (code >> 4)) & 0x0F
    cuts = libdevice.popc(along_x) + libdevice.popc(along_y) + libdevice.popc(along_z)
    place = tl.where((code & 1) != ((code >> 1) & 1), a / (a - b), 0.0)
    cell = z * (NX - 1) * (NY - 1) + i
    tl.store(COUNTS + cell, cuts.to(tl.uint8), mask=live)
    tl.store(SUMS + cell, place.to(tl.float16), mask=live)


@case
def cubes_cut_by_a_surface():
    nx, ny, nz = 257, 191, 173
    field = f32(nz, ny, nx)
    counts, sums = zeros(nz - 1, ny - 1, nx - 1, dtype="uint8"), zeros(nz - 1, ny - 1, nx - 1)
    args = field, counts, sums, 0.3, nx, ny, nz
    launch, args = run(surface_cells, (cdiv((nx - 1) * (ny - 1), 512), nz - 1), args, (counts, sums), BLOCK=512, num_warps=4)

    def reference(*_):
        v = field - 0.3
        s = (v < 0).int()
        x, y, z = s[:, :, 1:] ^ s[:, :, :-1], s[:, 1:] ^ s[:, :-1], s[1:] ^ s[:-1]
        cuts = x[:-1, :-1] + x[1:, :-1] + x[:-1, 1:] + x[1:, 1:] + y[:-1, :, :-1] + y[1:, :, :-1] + y[:-1, :, 1:] + y[1:, :, 1:]
        cuts = cuts + z[:, :-1, :-1] + z[:, 1:, :-1] + z[:, :-1, 1:] + z[:, 1:, 1:]
        a, b = v[:-1, :-1, :-1], v[:-1, :-1, 1:]
        return cuts, torch.where((a < 0) != (b < 0), a / (a - b), 0.0)

    launch.reference = reference
    return launch, args


@triton.jit
def seam_costs(ENERGY, COSTS, STEPS, H, W, BLOCK: tl.constexpr):
    # Paths down an image: a row's costs stay in registers, and neighbors are gathered from them.
    x = tl.arange(0, BLOCK)
    base = tl.program_id(0) * H * W + x
    inside = x < W
    left, right = tl.maximum(x - 1, 0), tl.minimum(x + 1, W - 1)
    cost = tl.load(ENERGY + base, mask=inside, other=float("inf"))
    tl.store(COSTS + base, cost, mask=inside)
    for y in range(1, H):
        energy = tl.load(ENERGY + base + y * W, mask=inside, other=float("inf"))
        a, b = tl.gather(cost, left, 0), tl.gather(cost, right, 0)
        step = tl.where(a < cost, -1, 0)
        best = tl.minimum(a, cost)
        step = tl.where(b < best, 1, step)
        cost = tl.minimum(best, b) + energy
        tl.store(COSTS + base + y * W, cost, mask=inside)
        tl.store(STEPS + base + y * W, step.to(tl.int8), mask=inside)


@case
def seams_down_images_by_gathers():
    n, h, w = 128, 300, 499
    energy, costs, steps = uniform(n, h, w), zeros(n, h, w, dtype="float32"), zeros(n, h, w, dtype="int8")
    launch, args = run(seam_costs, (n,), (energy, costs, steps, h, w), (costs, steps), BLOCK=512, num_warps=4)

    def reference(*_):
        cost, all_, moves = energy[:, 0], [energy[:, 0]], [torch.zeros(n, w, device=energy.device)]
        for y in range(1, h):
            a, b = F.pad(cost, (1, 0))[:, :-1], F.pad(cost, (0, 1))[:, 1:]
            a[:, 0], b[:, -1] = cost[:, 0], cost[:, -1]
            best = torch.minimum(a, cost)
            moves.append(torch.where(b < best, 1.0, torch.where(a < cost, -1.0, 0.0)))
            cost = torch.minimum(best, b) + energy[:, y]
            all_.append(cost)
        return torch.stack(all_, 1), torch.stack(moves, 1)

    launch.reference = reference
    return launch, args


@triton.jit
def nearest_of_palette(RGB, PALETTE, OUT, N, W, spread, COLORS: tl.constexpr, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    # Ordered dither by bits of the place, then the nearest color of a palette, chunk after chunk.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, y = i % W, i // W
    v = x ^ y
    order = ((v & 1) << 5) | ((x & 1) << 4) | ((v & 2) << 2) | ((x & 2) << 1) | ((v & 4) >> 1) | ((x & 4) >> 2)
    shift = (order.to(tl.float32) * (1 / 64) - 0.5) * spread
    r = tl.load(RGB + i, mask=i < N, other=0).to(tl.float32) + shift
    g = tl.load(RGB + N + i, mask=i < N, other=0).to(tl.float32) + shift
    b = tl.load(RGB + 2 * N + i, mask=i < N, other=0).to(tl.float32) + shift
    best, at = tl.full((BLOCK,), 1e30, tl.float32), tl.zeros((BLOCK,), tl.int32)
    for c0 in tl.static_range(0, COLORS, CHUNK):
        c = c0 + tl.arange(0, CHUNK)
        dr = r[:, None] - tl.load(PALETTE + c * 4)[None, :]
        dg = g[:, None] - tl.load(PALETTE + c * 4 + 1)[None, :]
        db = b[:, None] - tl.load(PALETTE + c * 4 + 2)[None, :]
        far, which = tl.min(2 * dr * dr + 4 * dg * dg + 3 * db * db, 1, return_indices=True)
        at = tl.where(far < best, which + c0, at)
        best = tl.minimum(best, far)
    tl.store(OUT + i, at.to(tl.uint8), mask=i < N)


@case
def colors_to_a_palette_of_256_dithered():
    h, w = 540, 961
    n = h * w
    rgb, palette, out = ints(0, 256, 3, n, dtype="uint8"), uniform(256, 4) * 255, zeros(n, dtype="uint8")
    launch, args = run(nearest_of_palette, (cdiv(n, 64),), (rgb, palette, out, n, w, 24.0), out, COLORS=256, CHUNK=64, BLOCK=64, num_warps=4)
    see = lambda codes: palette[codes.long(), :3] + 50  # noqa: E731: of two colors equally near either may be taken

    def seen(*args):
        return see(launch(*args))

    def reference(*_):
        i = arange(n)
        x, y = i % w, i // w
        v = x ^ y
        order = ((v & 1) << 5) | ((x & 1) << 4) | ((v & 2) << 2) | ((x & 2) << 1) | ((v & 4) >> 1) | ((x & 4) >> 2)
        c = rgb.float() + ((order.float() / 64 - 0.5) * 24)[None]
        weights = torch.tensor([2.0, 4.0, 3.0], device=rgb.device)
        codes = []
        for part in c.t().split(16384):
            codes.append((((part[:, None] - palette[None, :, :3]) ** 2) * weights).sum(-1).argmin(1))
        return see(torch.cat(codes))

    seen.reference = reference
    return seen, args
