"""Images, stencils, geometry, transforms and simulations."""

import triton
import triton.language as tl

from .common import arange, case, cdiv, f32, ints, rand, run, uniform, zeros


@triton.jit
def grid_sample(X, G, Y, C, H, W, P, BP: tl.constexpr, BC: tl.constexpr):
    # Bilinear, zeros outside, channels first.
    b = tl.program_id(1)
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    live = p < P
    gx, gy = tl.load(G + (b * P + p) * 2, mask=live, other=0.0), tl.load(G + (b * P + p) * 2 + 1, mask=live, other=0.0)
    x, y = ((gx + 1) * W - 1) * 0.5, ((gy + 1) * H - 1) * 0.5
    x0, y0 = tl.floor(x), tl.floor(y)
    fx, fy = x - x0, y - y0
    x0, y0 = x0.to(tl.int32), y0.to(tl.int32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        base = X + (b * C + c)[:, None] * H * W
        acc = tl.zeros((BC, BP), tl.float32)
        for corner in tl.static_range(4):
            xi, yi = x0 + corner % 2, y0 + corner // 2
            ok = live & (xi >= 0) & (xi < W) & (yi >= 0) & (yi < H)
            weight = (fx if corner % 2 else 1 - fx) * (fy if corner // 2 else 1 - fy)
            v = tl.load(base + (yi * W + xi)[None, :], mask=ok[None, :] & (c < C)[:, None], other=0.0)
            acc += v.to(tl.float32) * weight[None, :]
        tl.store(Y + (b * C + c)[:, None] * P + p[None, :], acc.to(Y.dtype.element_ty), mask=live[None, :] & (c < C)[:, None])


@case
def grid_sample_bilinear():
    b, c, h, p = 4, 32, 256, 250 * 250
    y = zeros(b, c, p)
    return run(grid_sample, (cdiv(p, 128), b), (rand(b, c, h, h), uniform(b, p, 2) * 2.2 - 1.1, y, c, h, h, p), y, BP=128, BC=8, num_warps=4)


@triton.jit
def max_pool_indices(X, Y, I, H, W, P, Q, K: tl.constexpr, S: tl.constexpr, BLOCK: tl.constexpr):
    plane = tl.program_id(1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    p, q = at // Q, at % Q
    best = tl.full((BLOCK,), float("-inf"), tl.float32)
    index = tl.zeros((BLOCK,), tl.int32)
    for i in tl.static_range(K):
        for j in tl.static_range(K):
            y, x = p * S + i - K // 2, q * S + j - K // 2
            ok = (y >= 0) & (y < H) & (x >= 0) & (x < W) & (at < P * Q)
            v = tl.load(X + plane * H * W + y * W + x, mask=ok, other=float("-inf")).to(tl.float32)
            index = tl.where(v > best, y * W + x, index)
            best = tl.maximum(best, v)
    tl.store(Y + plane * P * Q + at, best.to(Y.dtype.element_ty), mask=at < P * Q)
    tl.store(I + plane * P * Q + at, index, mask=at < P * Q)


@case
def max_pool_with_indices_5x5():
    planes, h = 1024, 55
    p = (h + 1) // 2
    y, i = zeros(planes, p, p), zeros(planes, p, p, dtype="int32")
    return run(max_pool_indices, (cdiv(p * p, 256), planes), (rand(planes, h, h), y, i, h, h, p, p), (y, i), K=5, S=2, BLOCK=256, num_warps=2)


@triton.jit
def rgb_to_yuv(X, Y, U, V, H, W, BH: tl.constexpr, BW: tl.constexpr):
    # Interleaved bytes to planes, the colours at half the resolution.
    ry = tl.program_id(0) * BH + tl.arange(0, BH)
    rx = tl.program_id(1) * BW + tl.arange(0, BW)
    at = (ry[:, None] * W + rx[None, :]) * 3
    live = (ry < H)[:, None] & (rx < W)[None, :]
    r, g, b = (tl.load(X + at, mask=live, other=0).to(tl.float32), tl.load(X + at + 1, mask=live, other=0).to(tl.float32), tl.load(X + at + 2, mask=live, other=0).to(tl.float32))
    y = 0.299 * r + 0.587 * g + 0.114 * b
    tl.store(Y + ry[:, None] * W + rx[None, :], (y + 0.5).to(tl.uint8), mask=live)
    u, v = (b - y) * 0.564 + 128, (r - y) * 0.713 + 128
    u = tl.sum(tl.sum(tl.reshape(u, (BH // 2, 2, BW // 2, 2)), 3), 1) * 0.25
    v = tl.sum(tl.sum(tl.reshape(v, (BH // 2, 2, BW // 2, 2)), 3), 1) * 0.25
    hy = tl.program_id(0) * (BH // 2) + tl.arange(0, BH // 2)
    hx = tl.program_id(1) * (BW // 2) + tl.arange(0, BW // 2)
    half = hy[:, None] * (W // 2) + hx[None, :]
    live = (hy < H // 2)[:, None] & (hx < W // 2)[None, :]
    tl.store(U + half, tl.clamp(u + 0.5, 0.0, 255.0).to(tl.uint8), mask=live)
    tl.store(V + half, tl.clamp(v + 0.5, 0.0, 255.0).to(tl.uint8), mask=live)


@case
def rgb_to_yuv420():
    h, w = 2160, 3840
    y, u, v = zeros(h, w, dtype="uint8"), zeros(h // 2, w // 2, dtype="uint8"), zeros(h // 2, w // 2, dtype="uint8")
    return run(rgb_to_yuv, (cdiv(h, 8), cdiv(w, 128)), (ints(0, 255, h, w, 3, dtype="uint8"), y, u, v, h, w), (y, u, v), BH=8, BW=128, num_warps=4)


@triton.jit
def _order(a, b):
    return tl.minimum(a, b), tl.maximum(a, b)


@triton.jit
def median_3x3(X, Y, H, W, BLOCK: tl.constexpr):
    y = tl.program_id(1)
    x = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = x < W
    up, down = max(y - 1, 0), min(y + 1, H - 1)
    left, right = tl.maximum(x - 1, 0), tl.minimum(x + 1, W - 1)
    a0, a1, a2 = tl.load(X + up * W + left, ok), tl.load(X + up * W + x, ok), tl.load(X + up * W + right, ok)
    b0, b1, b2 = tl.load(X + y * W + left, ok), tl.load(X + y * W + x, ok), tl.load(X + y * W + right, ok)
    c0, c1, c2 = tl.load(X + down * W + left, ok), tl.load(X + down * W + x, ok), tl.load(X + down * W + right, ok)
    a0, a1 = _order(a0, a1)
    a1, a2 = _order(a1, a2)
    a0, a1 = _order(a0, a1)
    b0, b1 = _order(b0, b1)
    b1, b2 = _order(b1, b2)
    b0, b1 = _order(b0, b1)
    c0, c1 = _order(c0, c1)
    c1, c2 = _order(c1, c2)
    c0, c1 = _order(c0, c1)
    low = tl.maximum(tl.maximum(a0, b0), c0)
    high = tl.minimum(tl.minimum(a2, b2), c2)
    m0, m1 = _order(a1, b1)
    mid = tl.maximum(m0, tl.minimum(m1, c1))
    l, h = _order(low, high)
    l, mid = _order(l, mid)
    mid, h = _order(mid, h)
    tl.store(Y + y * W + x, mid, ok)


@case
def median_3x3_bytes():
    h, w = 2000, 3001
    y = zeros(h, w, dtype="uint8")
    return run(median_3x3, (cdiv(w, 1024), h), (ints(0, 255, h, w, dtype="uint8"), y, h, w), y, BLOCK=1024, num_warps=4)


@triton.jit
def gaussian_columns_rows(X, weights, Y, H, W, R: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    ry = tl.program_id(0) * BH + tl.arange(0, BH)
    rx = tl.program_id(1) * BW + tl.arange(0, BW)
    acc = tl.zeros((BH, BW), tl.float32)
    for dy in tl.static_range(-R, R + 1):
        row = tl.zeros((BH, BW), tl.float32)
        y = ry + dy
        y = tl.where(y < 0, -y, y)
        y = tl.where(y >= H, 2 * H - 2 - y, y)
        for dx in tl.static_range(-R, R + 1):
            x = rx + dx
            x = tl.where(x < 0, -x, x)
            x = tl.where(x >= W, 2 * W - 2 - x, x)
            row += tl.load(X + y[:, None] * W + x[None, :]).to(tl.float32) * tl.load(weights + dx + R)
        acc += row * tl.load(weights + dy + R)
    tl.store(Y + ry[:, None] * W + rx[None, :], acc.to(Y.dtype.element_ty), mask=(ry < H)[:, None] & (rx < W)[None, :])


@case
def gaussian_5x5_reflected():
    h, w = 2048, 2048
    y = zeros(h, w)
    return run(gaussian_columns_rows, (h // 16, w // 64), (rand(h, w), uniform(5), y, h, w), y, R=2, BH=16, BW=64, num_warps=4)


@triton.jit
def iou_mask(boxes, area, words, N, threshold, BM: tl.constexpr, WORDS: tl.constexpr):
    # NMS's first part: for each box a bit for each later box that overlaps it.
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    w = tl.program_id(1) * WORDS + tl.arange(0, WORDS)
    bit = tl.arange(0, 32)
    j = w[:, None] * 32 + bit[None, :]
    x0, y0 = tl.load(boxes + i * 4, i < N, 0.0), tl.load(boxes + i * 4 + 1, i < N, 0.0)
    x1, y1 = tl.load(boxes + i * 4 + 2, i < N, 0.0), tl.load(boxes + i * 4 + 3, i < N, 0.0)
    u0, v0 = tl.load(boxes + j * 4, j < N, 0.0), tl.load(boxes + j * 4 + 1, j < N, 0.0)
    u1, v1 = tl.load(boxes + j * 4 + 2, j < N, 0.0), tl.load(boxes + j * 4 + 3, j < N, 0.0)
    dx = tl.minimum(x1[:, None, None], u1[None, :, :]) - tl.maximum(x0[:, None, None], u0[None, :, :])
    dy = tl.minimum(y1[:, None, None], v1[None, :, :]) - tl.maximum(y0[:, None, None], v0[None, :, :])
    common = tl.maximum(dx, 0.0) * tl.maximum(dy, 0.0)
    union = tl.load(area + i, i < N, 1.0)[:, None, None] + tl.load(area + j, j < N, 1.0)[None, :, :] - common
    hit = (common > threshold * union) & (j[None, :, :] > i[:, None, None])
    packed = tl.sum(hit.to(tl.int32) << bit[None, None, :], 2)
    tl.store(words + i[:, None] * (N // 32) + w[None, :], packed, mask=(i < N)[:, None] & (w < N // 32)[None, :])


@case
def nms_overlap_bits():
    n = 4096
    corners = uniform(n, 4)
    corners[:, 2:] += corners[:, :2]
    area = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    words = zeros(n, n // 32, dtype="int32")
    return run(iou_mask, (n // 16, n // 32 // 8), (corners, area.contiguous(), words, n, 0.5), words, BM=16, WORDS=8, num_warps=4)


@triton.jit
def nms_sequential(words, keep, N, W: tl.constexpr):
    # NMS's second part: one program goes through the boxes in order.
    w = tl.arange(0, W)
    removed = tl.zeros((W,), tl.int32)
    for i in range(N):
        word = tl.sum(tl.where(w == i // 32, removed, 0))
        alive = ((word >> (i % 32)) & 1) == 0
        if alive:
            removed |= tl.load(words + i * W + w)
        tl.store(keep + i, alive.to(tl.int8))


@case
def nms_one_program():
    n = 1024
    words = ints(0, 2**31 - 1, n, n // 32) & ints(0, 2**31 - 1, n, n // 32) & ints(0, 2**31 - 1, n, n // 32) & ints(0, 2**31 - 1, n, n // 32)
    keep = zeros(n, dtype="int8")
    return run(nms_sequential, (1,), (words.contiguous(), keep, n), keep, W=n // 32, num_warps=1)


@triton.jit
def nearest_points(A, B, distance, index, M, BM: tl.constexpr, BN: tl.constexpr):
    # Chamfer distance: for each point of A the nearest of B, three coordinates.
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    x, y, z = tl.load(A + i * 3), tl.load(A + i * 3 + 1), tl.load(A + i * 3 + 2)
    best = tl.full((BM,), float("inf"), tl.float32)
    at = tl.zeros((BM,), tl.int32)
    for start in range(0, M, BN):
        j = start + tl.arange(0, BN)
        u, v, w = tl.load(B + j * 3), tl.load(B + j * 3 + 1), tl.load(B + j * 3 + 2)
        dx, dy, dz = x[:, None] - u[None, :], y[:, None] - v[None, :], z[:, None] - w[None, :]
        d, k = tl.min(dx * dx + dy * dy + dz * dz, 1, return_indices=True)
        at = tl.where(d < best, start + k, at)
        best = tl.minimum(best, d)
    tl.store(distance + i, best)
    tl.store(index + i, at)


@case
def chamfer_nearest():
    n, m = 16384, 8192
    d, i = zeros(n, dtype="float32"), zeros(n, dtype="int32")
    return run(nearest_points, (n // 64,), (f32(n, 3), f32(m, 3), d, i, m), (d, i), BM=64, BN=64, num_warps=4)


@triton.jit
def n_body(P, A, N, eps, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    x, y, z = tl.load(P + i * 4), tl.load(P + i * 4 + 1), tl.load(P + i * 4 + 2)
    ax = tl.zeros((BM,), tl.float32)
    ay = tl.zeros((BM,), tl.float32)
    az = tl.zeros((BM,), tl.float32)
    for start in range(0, N, BN):
        j = start + tl.arange(0, BN)
        dx = tl.load(P + j * 4)[None, :] - x[:, None]
        dy = tl.load(P + j * 4 + 1)[None, :] - y[:, None]
        dz = tl.load(P + j * 4 + 2)[None, :] - z[:, None]
        r = tl.rsqrt(dx * dx + dy * dy + dz * dz + eps)
        s = tl.load(P + j * 4 + 3)[None, :] * r * r * r
        ax += tl.sum(dx * s, 1)
        ay += tl.sum(dy * s, 1)
        az += tl.sum(dz * s, 1)
    tl.store(A + i * 3, ax)
    tl.store(A + i * 3 + 1, ay)
    tl.store(A + i * 3 + 2, az)


@case
def n_body_forces():
    n = 16384
    a = zeros(n, 3, dtype="float32")
    return run(n_body, (n // 128,), (f32(n, 4), a, n, 1e-3), a, BM=128, BN=32, num_warps=8)


@triton.jit
def seven_points(X, Y, D, H, W, c0, c1, BY: tl.constexpr, BX: tl.constexpr):
    # A stencil in three dimensions, going up in z with the planes in registers.
    y = tl.program_id(0) * BY + tl.arange(0, BY)
    x = tl.program_id(1) * BX + tl.arange(0, BX)
    at = y[:, None] * W + x[None, :]
    live = (y < H)[:, None] & (x < W)[None, :]
    inner = ((y > 0) & (y < H - 1))[:, None] & ((x > 0) & (x < W - 1))[None, :]
    below = tl.load(X + at, mask=live, other=0.0)
    here = tl.load(X + H * W + at, mask=live, other=0.0)
    for z in range(1, D - 1):
        plane = X + z * H * W
        above = tl.load(plane + H * W + at, mask=live, other=0.0)
        sides = tl.load(plane + at - 1, mask=inner, other=0.0) + tl.load(plane + at + 1, mask=inner, other=0.0)
        sides += tl.load(plane + at - W, mask=inner, other=0.0) + tl.load(plane + at + W, mask=inner, other=0.0)
        tl.store(Y + z * H * W + at, c0 * here + c1 * (sides + below + above), mask=inner)
        below = here
        here = above


@case
def stencil_7_points_3d():
    d, h, w = 64, 500, 500
    y = zeros(d, h, w, dtype="float32")
    return run(seven_points, (cdiv(h, 8), cdiv(w, 64)), (f32(d, h, w), y, d, h, w, 0.4, 0.1), y, BY=8, BX=64, num_warps=4)


@triton.jit
def mandelbrot(out, W, H, limit, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cx = (at % W).to(tl.float32) / W * 3.0 - 2.0
    cy = (at // W).to(tl.float32) / H * 2.0 - 1.0
    x = tl.zeros((BLOCK,), tl.float32)
    y = tl.zeros((BLOCK,), tl.float32)
    n = tl.zeros((BLOCK,), tl.int32)
    step = 0
    active = BLOCK
    while (step < limit) & (active > 0):
        inside = x * x + y * y <= 4.0
        t = x * x - y * y + cx
        y = tl.where(inside, 2 * x * y + cy, y)
        x = tl.where(inside, t, x)
        n += inside.to(tl.int32)
        active = tl.sum(inside.to(tl.int32))
        step += 1
    tl.store(out + at, n.to(tl.int16))


@case
def mandelbrot_until_all_escape():
    w, h = 1920, 1080
    out = zeros(h, w, dtype="int16")
    return run(mandelbrot, (w * h // 256,), (out, w, h, 200), out, BLOCK=256, num_warps=2)


@triton.jit
def life(X, Y, H, W, BY: tl.constexpr, BX: tl.constexpr):
    y = tl.program_id(0) * BY + tl.arange(0, BY)
    x = tl.program_id(1) * BX + tl.arange(0, BX)
    total = tl.zeros((BY, BX), tl.int8)
    for dy in tl.static_range(-1, 2):
        for dx in tl.static_range(-1, 2):
            if dy != 0 or dx != 0:
                total += tl.load(X + ((y + dy + H) % H)[:, None] * W + ((x + dx + W) % W)[None, :])
    here = tl.load(X + y[:, None] * W + x[None, :])
    tl.store(Y + y[:, None] * W + x[None, :], ((total == 3) | ((total == 2) & (here == 1))).to(tl.int8))


@case
def life_on_a_torus():
    h, w = 4096, 4096
    y = zeros(h, w, dtype="int8")
    return run(life, (h // 8, w // 128), (ints(0, 2, h, w, dtype="int8"), y, h, w), y, BY=8, BX=128, num_warps=4)


@triton.jit
def dtw_diagonals(A, B, out, N: tl.constexpr):
    # Dynamic time warping along anti-diagonals: the diagonals before are shifted by one.
    pair = tl.program_id(0)
    i = tl.arange(0, N)
    a = tl.load(A + pair * N + i)
    one = tl.full((N,), 1.0e30, tl.float32)
    two = tl.full((N,), 1.0e30, tl.float32)
    for k in range(2 * N - 1):
        j = k - i
        live = (j >= 0) & (j < N)
        cost = tl.abs(a - tl.load(B + pair * N + j, mask=live, other=0.0))
        up = tl.where(i > 0, tl.gather(one, tl.maximum(i - 1, 0), 0), 1.0e30)
        corner = tl.where(i > 0, tl.gather(two, tl.maximum(i - 1, 0), 0), 1.0e30)
        before = tl.minimum(tl.minimum(one, up), corner)
        before = tl.where(k == 0, 0.0, before)
        new = tl.where(live, cost + before, 1.0e30)
        two = one
        one = new
    tl.store(out + pair, tl.sum(tl.where(i == N - 1, one, 0.0)))


@case
def dtw_anti_diagonals():
    pairs, n = 1024, 256
    out = zeros(pairs, dtype="float32")
    return run(dtw_diagonals, (pairs,), (f32(pairs, n), f32(pairs, n), out), out, N=n, num_warps=2)


@triton.jit
def _butterfly(re, im, ROWS: tl.constexpr, N: tl.constexpr, HALF: tl.constexpr):
    # One stage of Stockham's FFT: the first half of the rows with the second, twiddled, results side by side.
    a, b = tl.split(tl.permute(tl.reshape(re, (ROWS, 2, N // 2)), (0, 2, 1)))
    c, d = tl.split(tl.permute(tl.reshape(im, (ROWS, 2, N // 2)), (0, 2, 1)))
    j = tl.arange(0, N // 2) // HALF
    angle = -3.14159265358979 * j.to(tl.float32) * HALF / (N // 2)
    w, v = tl.cos(angle)[None, :], tl.sin(angle)[None, :]
    sr, si, dr, di = a + b, c + d, a - b, c - d
    tr, ti = dr * w - di * v, dr * v + di * w
    shape: tl.constexpr = (ROWS, N // 2 // HALF, HALF)
    re = tl.reshape(tl.permute(tl.join(tl.reshape(sr, shape), tl.reshape(tr, shape)), (0, 1, 3, 2)), (ROWS, N))
    im = tl.reshape(tl.permute(tl.join(tl.reshape(si, shape), tl.reshape(ti, shape)), (0, 1, 3, 2)), (ROWS, N))
    return re, im


@triton.jit
def fft_rows(X, Y, ROWS: tl.constexpr, N: tl.constexpr, LOG: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, 2 * N)
    x = tl.load(X + r[:, None] * (2 * N) + c[None, :])
    re, im = tl.split(tl.reshape(x, (ROWS, N, 2)))
    for stage in tl.static_range(LOG):
        re, im = _butterfly(re, im, ROWS, N, 1 << stage)
    tl.store(Y + r[:, None] * (2 * N) + c[None, :], tl.reshape(tl.join(re, im), (ROWS, 2 * N)))


@case
def fft_256_in_registers():
    rows, n = 16384, 256
    y = zeros(rows, 2 * n, dtype="float32")
    return run(fft_rows, (rows // 4,), (f32(rows, 2 * n), y), y, ROWS=4, N=n, LOG=8, num_warps=4)


@triton.jit
def hadamard_4d(X, Y, scale, N: tl.constexpr):
    # 4096 elements as 16 x 16 x 16, a product with H16 along each axis.
    row = tl.program_id(0)
    i = tl.arange(0, 16)
    bits = i[:, None] & i[None, :]
    bits = bits ^ (bits >> 2)
    bits = bits ^ (bits >> 1)
    h = tl.where((bits & 1) == 0, 1.0, -1.0).to(tl.float16)
    x = tl.load(X + row * N + tl.arange(0, N))
    for _ in tl.static_range(3):
        x = tl.dot(tl.reshape(x, (N // 16, 16)), h).to(tl.float16)
        x = tl.reshape(tl.permute(tl.reshape(x, (16, 16, 16)), (2, 0, 1)), (N,))
    tl.store(Y + row * N + tl.arange(0, N), x * scale)


@case
def hadamard_4096_by_dots():
    rows, n = 8192, 4096
    y = zeros(rows, n)
    return run(hadamard_4d, (rows,), (rand(rows, n), y, 1 / 64), y, N=n, num_warps=4)


@triton.jit
def monte_carlo(out, seed, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    hits = tl.zeros((BLOCK,), tl.int32)
    for step in range(STEPS):
        at = (pid * STEPS + step) * BLOCK + tl.arange(0, BLOCK)
        a, b, c, d = tl.randint4x(seed, at)
        x, y = tl.uint_to_uniform_float(a), tl.uint_to_uniform_float(b)
        z, w = tl.uint_to_uniform_float(c), tl.uint_to_uniform_float(d)
        hits += (x * x + y * y < 1.0).to(tl.int32) + (z * z + w * w < 1.0).to(tl.int32)
    tl.atomic_add(out, tl.sum(hits).to(tl.int64))


@case
def monte_carlo_pi():
    out = zeros(1, dtype="int64")
    launch, args = run(monte_carlo, (1024,), (out, 42), out, STEPS=16, BLOCK=1024, num_warps=4)
    return (lambda *args: (out.zero_(), launch(*args))[1].clone()), args


@triton.jit
def equalize(X, lut, Y, N, BLOCK: tl.constexpr):
    # A table of 256 bytes in registers, looked up by tl.gather.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    table = tl.load(lut + tl.arange(0, 256)).to(tl.int32)
    x = tl.load(X + at, mask=at < N, other=0).to(tl.int32)
    tl.store(Y + at, tl.gather(table, x, 0).to(tl.uint8), mask=at < N)


@case
def lookup_table_of_bytes():
    n = 12_000_000
    y = zeros(n, dtype="uint8")
    return run(equalize, (cdiv(n, 4096),), (ints(0, 255, n, dtype="uint8"), ints(0, 255, 256, dtype="uint8"), y, n), y, BLOCK=4096, num_warps=4)


@triton.jit
def normalize_image(X, mean, std, Y, HW, BLOCK: tl.constexpr):
    # Bytes with channels last to halves with channels first.
    b = tl.program_id(1)
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, 4)
    live = (p < HW)[:, None] & (c < 3)[None, :]
    x = tl.load(X + (b * HW + p)[:, None] * 3 + c[None, :], mask=live, other=0).to(tl.float32) / 255.0
    m, s = tl.load(mean + c, mask=c < 3, other=0.0), tl.load(std + c, mask=c < 3, other=1.0)
    y = ((x - m[None, :]) / s[None, :]).to(tl.float16)
    tl.store(Y + (b * 3 + c)[None, :] * HW + p[:, None], y, mask=live)


@case
def normalize_nhwc_to_nchw():
    b, hw = 32, 480 * 640
    y = zeros(b, 3, hw)
    return run(normalize_image, (cdiv(hw, 1024), b), (ints(0, 255, b, hw, 3, dtype="uint8"), uniform(3), uniform(3) + 0.1, y, hw), y, BLOCK=1024, num_warps=4)


@triton.jit
def _cubic(t):
    a: tl.constexpr = -0.75
    near = ((a + 2) * t - (a + 3)) * t * t + 1
    far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    return tl.where(t <= 1, near, tl.where(t < 2, far, 0.0))


@triton.jit
def bicubic(X, Y, H, W, OH, OW, sy, sx, BLOCK: tl.constexpr):
    plane = tl.program_id(1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    fy, fx = ((at // OW) + 0.5) * sy - 0.5, ((at % OW) + 0.5) * sx - 0.5
    y0, x0 = tl.floor(fy).to(tl.int32), tl.floor(fx).to(tl.int32)
    acc = tl.zeros((BLOCK,), tl.float32)
    for i in range(-1, 3):
        y = tl.clamp((y0 + i).to(tl.float32), 0.0, H - 1.0).to(tl.int32)
        row = tl.zeros((BLOCK,), tl.float32)
        for j in tl.static_range(-1, 3):
            x = tl.minimum(tl.maximum(x0 + j, 0), W - 1)
            row += _cubic(tl.abs(fx - (x0 + j))) * tl.load(X + plane * H * W + y * W + x, mask=at < OH * OW, other=0.0).to(tl.float32)
        acc += _cubic(tl.abs(fy - (y0 + i))) * row
    tl.store(Y + plane * OH * OW + at, acc.to(Y.dtype.element_ty), mask=at < OH * OW)


@case
def upsample_bicubic():
    planes, h, oh = 48, 224, 336
    y = zeros(planes, oh, oh)
    return run(bicubic, (cdiv(oh * oh, 256), planes), (rand(planes, h, h), y, h, h, oh, oh, h / oh, h / oh), y, BLOCK=256, num_warps=4)


@triton.jit
def splat_gaussians(mean, conic, colour, opacity, ranges, order, out, W, H, TILE: tl.constexpr, STEP: tl.constexpr):
    # Gaussian splatting: each tile of pixels goes through its sorted list until all pixels are opaque.
    tile = tl.program_id(0)
    tiles_x = W // TILE
    i = tl.arange(0, TILE * TILE)
    px = ((tile % tiles_x) * TILE + i % TILE).to(tl.float32)
    py = ((tile // tiles_x) * TILE + i // TILE).to(tl.float32)
    at, last = tl.load(ranges + tile), tl.load(ranges + tile + 1)
    through = tl.full((TILE * TILE,), 1.0, tl.float32)
    r = tl.zeros((TILE * TILE,), tl.float32)
    g = tl.zeros((TILE * TILE,), tl.float32)
    b = tl.zeros((TILE * TILE,), tl.float32)
    clear = 1.0
    while (at < last) & (clear > 1e-4):
        for _ in tl.static_range(STEP):
            n = tl.load(order + tl.minimum(at, last - 1))
            dx, dy = px - tl.load(mean + n * 2), py - tl.load(mean + n * 2 + 1)
            power = -0.5 * (tl.load(conic + n * 3) * dx * dx + tl.load(conic + n * 3 + 2) * dy * dy) - tl.load(conic + n * 3 + 1) * dx * dy
            alpha = tl.minimum(0.99, tl.load(opacity + n) * tl.exp(tl.minimum(power, 0.0)))
            alpha = tl.where((power > 0) | (alpha < 1 / 255) | (at >= last), 0.0, alpha)
            weight = alpha * through
            r += weight * tl.load(colour + n * 3)
            g += weight * tl.load(colour + n * 3 + 1)
            b += weight * tl.load(colour + n * 3 + 2)
            through *= 1 - alpha
            at += 1
        clear = tl.max(through)
    pixel = (py.to(tl.int32) * W + px.to(tl.int32)) * 3
    tl.store(out + pixel, r)
    tl.store(out + pixel + 1, g)
    tl.store(out + pixel + 2, b)


@case
def splat_gaussians_tiles():
    w, h, tile, n, each = 1280, 720, 16, 20000, 200
    tiles = w * h // (tile * tile)
    out = zeros(h, w, 3, dtype="float32")
    mean = uniform(n, 2) * 1000
    conic = uniform(n, 3) * 1e-4
    conic[:, 1] = 0
    args = mean, conic, uniform(n, 3), uniform(n) / 4, (arange(tiles + 1) * each).int(), ints(0, n, tiles * each), out, w, h
    return run(splat_gaussians, (tiles,), args, out, TILE=tile, STEP=4, num_warps=4)
