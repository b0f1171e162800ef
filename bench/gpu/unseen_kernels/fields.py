"""Fields and codes: matrices on links of lattices, limiters, projections of scanners, integrals, long integers, parities, chains of states."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import arange, case, cdiv, cleared, f32, ints, run, uniform, zeros


@triton.jit
def times_complex(ar, ai, br, bi):
    return ar * br - ai * bi, ar * bi + ai * br


@triton.jit
def one_link(U, PSI, OUT_R, OUT_I, site, other, direction: tl.constexpr, VOLUME, live, BACK: tl.constexpr, color: tl.constexpr):
    # A row of the link's matrix (a column of its conjugate, backwards) times the three colors of the neighbor.
    home = other if BACK else site
    sum_r, sum_i = OUT_R, OUT_I
    for c in tl.static_range(3):
        entry = (c * 3 + color) if BACK else (color * 3 + c)
        ur = tl.load(U + ((direction * 9 + entry) * 2) * VOLUME + home, mask=live)
        ui = tl.load(U + ((direction * 9 + entry) * 2 + 1) * VOLUME + home, mask=live)
        pr = tl.load(PSI + (c * 2) * VOLUME + other, mask=live)
        pi = tl.load(PSI + (c * 2 + 1) * VOLUME + other, mask=live)
        r, i = times_complex(ur, -ui if BACK else ui, pr, pi)
        sum_r = sum_r - r if BACK else sum_r + r
        sum_i = sum_i - i if BACK else sum_i + i
    return sum_r, sum_i


@triton.jit
def staggered_hops(U, PSI, OUT, VOLUME, mass, L: tl.constexpr, BLOCK: tl.constexpr):
    # Fermions of three colors on a lattice of four axes: eight links a site, each a complex matrix of three by three.
    site = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = site < VOLUME
    for color in tl.static_range(3):
        out_r, out_i = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
        stride = 1
        before = tl.zeros((BLOCK,), tl.int32)
        for direction in tl.static_range(4):
            x = site // stride % L
            sign = (1 - 2 * (before & 1)).to(tl.float32)
            ahead, behind = site + tl.where(x == L - 1, 1 - L, 1) * stride, site + tl.where(x == 0, L - 1, -1) * stride
            none = tl.zeros((BLOCK,), tl.float32)
            r, i = one_link(U, PSI, none, none, site, ahead, direction, VOLUME, live, False, color)
            r, i = one_link(U, PSI, r, i, site, behind, direction, VOLUME, live, True, color)
            out_r += sign * r
            out_i += sign * i
            before += x
            stride *= L
        out_r = 0.5 * out_r + mass * tl.load(PSI + (color * 2) * VOLUME + site, mask=live)
        out_i = 0.5 * out_i + mass * tl.load(PSI + (color * 2 + 1) * VOLUME + site, mask=live)
        tl.store(OUT + (color * 2) * VOLUME + site, out_r, mask=live)
        tl.store(OUT + (color * 2 + 1) * VOLUME + site, out_i, mask=live)


@case
def hops_of_colors_on_lattice_of_four_axes():
    side = 24
    volume = side**4
    out = zeros(3, 2, volume, dtype="float32")
    return run(staggered_hops, (cdiv(volume, 128),), (f32(4, 9, 2, volume), f32(3, 2, volume), out, volume, 0.1), out, L=side, BLOCK=128, num_warps=4)


@triton.jit
def weno_left(a, b, c, d, e):
    # Fifth order from three parabolas, weighed by how smooth each is.
    s0 = 1.0833333 * (a - 2.0 * b + c) * (a - 2.0 * b + c) + 0.25 * (a - 4.0 * b + 3.0 * c) * (a - 4.0 * b + 3.0 * c)
    s1 = 1.0833333 * (b - 2.0 * c + d) * (b - 2.0 * c + d) + 0.25 * (b - d) * (b - d)
    s2 = 1.0833333 * (c - 2.0 * d + e) * (c - 2.0 * d + e) + 0.25 * (3.0 * c - 4.0 * d + e) * (3.0 * c - 4.0 * d + e)
    w0, w1, w2 = 0.1 / ((s0 + 1e-6) * (s0 + 1e-6)), 0.6 / ((s1 + 1e-6) * (s1 + 1e-6)), 0.3 / ((s2 + 1e-6) * (s2 + 1e-6))
    q0, q1, q2 = 2.0 * a - 7.0 * b + 11.0 * c, -b + 5.0 * c + 2.0 * d, 2.0 * c + 5.0 * d - e
    return (w0 * q0 + w1 * q1 + w2 * q2) / (6.0 * (w0 + w1 + w2))


@triton.jit
def weno_face(U, base, i, N, stride):
    # The flux of Burgers' equation through the face at the right of place i, upwind by the larger speed.
    a, b, c = tl.load(U + base + (i + N - 2) % N * stride), tl.load(U + base + (i + N - 1) % N * stride), tl.load(U + base + i * stride)
    d, e, f = tl.load(U + base + (i + 1) % N * stride), tl.load(U + base + (i + 2) % N * stride), tl.load(U + base + (i + 3) % N * stride)
    left, right = weno_left(a, b, c, d, e), weno_left(f, e, d, c, b)
    speed = tl.maximum(tl.abs(left), tl.abs(right))
    return 0.25 * (left * left + right * right) - 0.5 * speed * (right - left)


@triton.jit
def weno_step(U, OUT, N, ratio, BY: tl.constexpr, BX: tl.constexpr):
    y, x = tl.program_id(1) * BY + tl.arange(0, BY)[:, None], tl.program_id(0) * BX + tl.arange(0, BX)[None, :]
    row, column = y * N, x + tl.zeros((BY, 1), tl.int32)
    change = weno_face(U, row, column, N, 1) - weno_face(U, row, (column + N - 1) % N, N, 1)
    down = y + tl.zeros((1, BX), tl.int32)
    change += weno_face(U, column, down, N, N) - weno_face(U, column, (down + N - 1) % N, N, N)
    tl.store(OUT + row + x, tl.load(U + row + x) - ratio * change)


@case
def weno_fluxes_of_burgers_on_a_torus():
    n = 2048
    out = zeros(n, n, dtype="float32")
    return run(weno_step, (n // 64, n // 8), (uniform(n, n), out, n, 0.1), out, BY=8, BX=64, num_warps=4)


@triton.jit
def demosaic_rows(RAW, OUT, H, W, ROWS, BLOCK: tl.constexpr):
    # Bayer pattern to colors by filters of 5 by 5: a program slides down its columns with five rows of pointers.
    x, y0 = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.program_id(1) * ROWS
    live = x < W
    l1, l2, r1, r2 = tl.maximum(x - 1, x & 1), tl.maximum(x - 2, x & 1), tl.minimum(x + 1, W - 1), tl.minimum(x + 2, W - 2 + (x & 1))
    for y in range(y0, tl.minimum(y0 + ROWS, H)):
        u1, u2 = RAW + tl.maximum(y - 1, 1 - (y & 1)) * W, RAW + tl.maximum(y - 2, y & 1) * W
        d1, d2 = RAW + tl.minimum(y + 1, H - 2 + (y & 1)) * W, RAW + tl.minimum(y + 2, H - 2 + (y & 1)) * W
        here = RAW + y * W
        c = tl.load(here + x, mask=live, other=0).to(tl.float32)
        north, south = tl.load(u1 + x, mask=live, other=0).to(tl.float32), tl.load(d1 + x, mask=live, other=0).to(tl.float32)
        west, east = tl.load(here + l1, mask=live, other=0).to(tl.float32), tl.load(here + r1, mask=live, other=0).to(tl.float32)
        up2, down2 = tl.load(u2 + x, mask=live, other=0).to(tl.float32), tl.load(d2 + x, mask=live, other=0).to(tl.float32)
        left2, right2 = tl.load(here + l2, mask=live, other=0).to(tl.float32), tl.load(here + r2, mask=live, other=0).to(tl.float32)
        nw, ne = tl.load(u1 + l1, mask=live, other=0).to(tl.float32), tl.load(u1 + r1, mask=live, other=0).to(tl.float32)
        sw, se = tl.load(d1 + l1, mask=live, other=0).to(tl.float32), tl.load(d1 + r1, mask=live, other=0).to(tl.float32)
        corners = nw + ne + sw + se
        cross = up2 + down2 + left2 + right2
        green = (4.0 * c + 2.0 * (north + south + west + east) - cross) * 0.125
        beside = (5.0 * c + 4.0 * (west + east) - corners - left2 - right2 + 0.5 * (up2 + down2)) * 0.125
        above = (5.0 * c + 4.0 * (north + south) - corners - up2 - down2 + 0.5 * (left2 + right2)) * 0.125
        opposite = (6.0 * c + 2.0 * corners - 1.5 * cross) * 0.125
        odd_x, odd_y = (x & 1) == 1, (y & 1) == 1
        red = tl.where(odd_y, tl.where(odd_x, opposite, above), tl.where(odd_x, beside, c))
        blue = tl.where(odd_y, tl.where(odd_x, c, beside), tl.where(odd_x, above, opposite))
        green = tl.where(odd_x == odd_y, green, c)
        at = OUT + (y * W + x) * 3
        tl.store(at, tl.clamp(red, 0.0, 4095.0).to(tl.int16), mask=live)
        tl.store(at + 1, tl.clamp(green, 0.0, 4095.0).to(tl.int16), mask=live)
        tl.store(at + 2, tl.clamp(blue, 0.0, 4095.0).to(tl.int16), mask=live)


@case
def colors_of_raw_pixels_down_columns():
    h, w = 3000, 4000
    out = zeros(h, w, 3, dtype="int16")
    return run(demosaic_rows, (cdiv(w, 256), cdiv(h, 32)), (ints(0, 4096, h, w, dtype="int16"), out, h, w, 32), out, BLOCK=256, num_warps=4)


@triton.jit
def project_back(SINOGRAM, OUT, N, DETECTORS, ANGLES, pitch, far, step, BY: tl.constexpr, BX: tl.constexpr):
    # A fan of rays from each angle: where a pixel's shadow falls, read between two detectors, weighed by the square of distance.
    y, x = tl.program_id(1) * BY + tl.arange(0, BY), tl.program_id(0) * BX + tl.arange(0, BX)
    py, px = (y - N // 2).to(tl.float32)[:, None] + 0.5, (x - N // 2).to(tl.float32)[None, :] + 0.5
    acc = tl.zeros((BY, BX), tl.float32)
    for a in range(ANGLES):
        angle = a * step
        cos, sin = tl.cos(angle), tl.sin(angle)
        t = px * cos + py * sin
        depth = far + px * sin - py * cos
        ratio = far / depth
        place = t * ratio * pitch + DETECTORS * 0.5
        i = tl.floor(place).to(tl.int32)
        part = place - i
        inside = (i >= 0) & (i + 1 < DETECTORS)
        low = tl.load(SINOGRAM + a * DETECTORS + i, mask=inside, other=0.0)
        high = tl.load(SINOGRAM + a * DETECTORS + i + 1, mask=inside, other=0.0)
        acc += (low + (high - low) * part) * ratio * ratio
    tl.store(OUT + y[:, None] * N + x[None, :], acc * step)


@case
def fans_of_rays_projected_back():
    n, detectors, angles = 512, 768, 360
    out = zeros(n, n, dtype="float32")
    sinogram = f32(angles, detectors).cumsum(1)
    return run(project_back, (n // 32, n // 8), (sinogram, out, n, detectors, angles, 0.8, 900.0, 0.0174533), out, BY=8, BX=32, num_warps=2)


@triton.jit
def boys(t):
    # The first function of Boys: a series near zero, by erf beyond.
    root = tl.sqrt(tl.maximum(t, 1e-12))
    return tl.where(t < 0.01, 1.0 - t * (0.33333334 - 0.1 * t), 0.88622693 * libdevice.erf(root) / root)


@triton.jit
def coulomb_matrix(PLACE, EXPONENT, WEIGHT, DENSITY, OUT, N, BI: tl.constexpr, BJ: tl.constexpr, K: tl.constexpr):
    # Repulsion of pairs of contracted s functions: four exponents a center, sixteen pairs of each in an unrolled loop.
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    live = i < N
    xi, yi, zi = tl.load(PLACE + i, mask=live), tl.load(PLACE + N + i, mask=live), tl.load(PLACE + 2 * N + i, mask=live)
    acc = tl.zeros((BI,), tl.float32)
    for j0 in range(0, N, BJ):
        j = j0 + tl.arange(0, BJ)
        there = j < N
        dx, dy = xi[:, None] - tl.load(PLACE + j, mask=there)[None, :], yi[:, None] - tl.load(PLACE + N + j, mask=there)[None, :]
        dz = zi[:, None] - tl.load(PLACE + 2 * N + j, mask=there)[None, :]
        square = dx * dx + dy * dy + dz * dz
        density = tl.load(DENSITY + j, mask=there, other=0.0)
        for p in tl.static_range(K):
            a, wa = tl.load(EXPONENT + p), tl.load(WEIGHT + p)
            for q in tl.static_range(K):
                b, wb = tl.load(EXPONENT + q), tl.load(WEIGHT + q)
                rho = a * b / (a + b)
                acc += tl.sum(boys(rho * square) * tl.sqrt(rho) * density[None, :], 1) * (wa * wb)
    tl.store(OUT + i, acc * 1.1283792, mask=live)


@case
def repulsion_of_contracted_charges():
    n = 3000
    place, out = uniform(3, n) * 40, zeros(n, dtype="float32")
    exponents = torch.tensor([0.15, 0.6, 2.5, 11.0], device="cuda")
    return run(coulomb_matrix, (cdiv(n, 16),), (place, exponents, uniform(4) + 0.2, uniform(n), out, n), out, BI=16, BJ=32, K=4, num_warps=4)


@triton.jit
def multiply_modular(A, B, P, OUT, inverse, N, WORDS: tl.constexpr, BLOCK: tl.constexpr):
    # Montgomery's product of integers of eight words of 32 bits: word by word, carries in 64 bits, a subtraction at the end.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    w = tl.arange(0, 16)
    acc = tl.zeros((BLOCK, 16), tl.uint64)
    b = tl.load(B + i[:, None] * WORDS + w[None, :], mask=live[:, None] & (w < WORDS)[None, :], other=0).to(tl.uint32, bitcast=True).to(tl.uint64)
    p = tl.load(P + w, mask=w < WORDS, other=0).to(tl.uint32, bitcast=True).to(tl.uint64)[None, :]
    for k in tl.static_range(WORDS):
        a = tl.load(A + i * WORDS + k, mask=live, other=0).to(tl.uint32, bitcast=True).to(tl.uint64)
        low = a[:, None] * b
        acc += low & 0xFFFFFFFF
        first = tl.sum(tl.where(w[None, :] == 0, acc, 0), 1)
        m = ((first & 0xFFFFFFFF) * inverse.to(tl.uint64)) & 0xFFFFFFFF
        high = m[:, None] * p
        acc += high & 0xFFFFFFFF
        carry = tl.sum(tl.where(w[None, :] == 0, acc, 0), 1) >> 32
        # One word down: high halves stay where they are, the low ones move.
        acc = tl.gather(acc, tl.broadcast_to(((w + 1) & 15)[None, :], (BLOCK, 16)), 1)
        acc = tl.where(w[None, :] == 15, 0, acc) + (low >> 32) + (high >> 32) + tl.where(w[None, :] == 0, carry[:, None], 0)
    for _ in tl.static_range(9):
        over = tl.gather(acc >> 32, tl.broadcast_to(((w + 15) & 15)[None, :], (BLOCK, 16)), 1)
        acc = (acc & 0xFFFFFFFF) + tl.where(w[None, :] == 0, 0, over)
    tl.store(OUT + i[:, None] * (WORDS + 1) + w[None, :], acc.to(tl.uint32).to(tl.int32, bitcast=True), mask=live[:, None] & (w <= WORDS)[None, :])


@case
def products_of_integers_of_256_bits():
    n, words = 100000, 8
    out = zeros(n, words + 1, dtype="int32")
    a, b = ints(-(1 << 31), (1 << 31) - 1, n, words), ints(-(1 << 31), (1 << 31) - 1, n, words)
    p = ints(-(1 << 31), (1 << 31) - 1, words) | 1
    return run(multiply_modular, (cdiv(n, 64),), (a, b, p, out, 0x7A3B1C5D, n), out, WORDS=words, BLOCK=64, num_warps=4)


@triton.jit
def parities_of_blocks(DATA, LOG, EXP, OUT, LENGTH, K: tl.constexpr, BLOCK: tl.constexpr):
    # Ten shards of bytes to four of parity: products in the field of 256 by two tables, sums by exclusive or.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < LENGTH
    p0, p1 = tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32)
    p2, p3 = tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32)
    for k in tl.static_range(K):
        x = tl.load(DATA + k * LENGTH + i, mask=live, other=0)
        log = tl.load(LOG + x.to(tl.int32)).to(tl.int32)
        p0 ^= x.to(tl.int32)
        p1 ^= tl.where(x == 0, 0, tl.load(EXP + log + k).to(tl.int32))
        p2 ^= tl.where(x == 0, 0, tl.load(EXP + log + 2 * k).to(tl.int32))
        p3 ^= tl.where(x == 0, 0, tl.load(EXP + log + 3 * k).to(tl.int32))
    tl.store(OUT + i, p0.to(tl.uint8), mask=live)
    tl.store(OUT + LENGTH + i, p1.to(tl.uint8), mask=live)
    tl.store(OUT + 2 * LENGTH + i, p2.to(tl.uint8), mask=live)
    tl.store(OUT + 3 * LENGTH + i, p3.to(tl.uint8), mask=live)


@case
def parities_of_ten_shards_in_field_of_256():
    length, k = 1500000, 10
    powers, x = [], 1
    for _ in range(255):
        powers.append(x)
        x = (x << 1) ^ (0x11D if x & 128 else 0)
    logs = [0] * 256
    for at, value in enumerate(powers):
        logs[value] = at
    log = torch.tensor(logs, dtype=torch.uint8, device="cuda")
    exp = torch.tensor(powers * 2, dtype=torch.uint8, device="cuda")
    out = zeros(4, length, dtype="uint8")
    args = ints(0, 256, k, length, dtype="uint8"), log, exp, out, length
    return run(parities_of_blocks, (cdiv(length, 1024),), args, out, K=k, BLOCK=1024, num_warps=4)


@triton.jit
def common_subsequences(A, MASKS, OUT, PAIRS, LENGTH, WORDS: tl.constexpr, BLOCK: tl.constexpr):
    # Longest common subsequences of pairs by words of 64 bits: a sum with carry a letter, the zeros counted at the end.
    pair = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = pair < PAIRS
    low = tl.full((BLOCK,), -1, tl.int64).to(tl.uint64, bitcast=True)
    high = low
    for t in range(LENGTH):
        letter = tl.load(A + t * PAIRS + pair, mask=live, other=0).to(tl.int32)
        at = (letter * WORDS) * PAIRS + pair
        m0 = tl.load(MASKS + at, mask=live, other=0).to(tl.uint64, bitcast=True)
        m1 = tl.load(MASKS + at + PAIRS, mask=live, other=0).to(tl.uint64, bitcast=True)
        u0, u1 = low & m0, high & m1
        sum0 = low + u0
        carry = (sum0 < low).to(tl.uint64)
        low, high = sum0 | (low & ~m0), (high + u1 + carry) | (high & ~m1)
    count = tl.zeros((BLOCK,), tl.int32)
    for bit in range(64):
        count += 2 - ((low >> bit) & 1).to(tl.int32) - ((high >> bit) & 1).to(tl.int32)
    tl.store(OUT + pair, count, mask=live)


@case
def common_subsequences_by_long_words():
    pairs, length, letters = 60000, 200, 4
    out = zeros(pairs, dtype="int32")
    text = ints(0, letters, 128, pairs)
    masks = torch.zeros(letters, 2, pairs, dtype=torch.int64, device="cuda")
    for bit in range(128):
        for letter in range(letters):
            masks[letter, bit // 64] |= (text[bit] == letter).long() << (bit % 64)
    args = ints(0, letters, length, pairs, dtype="int8"), masks, out, pairs, length
    return run(common_subsequences, (cdiv(pairs, 128),), args, out, WORDS=2, BLOCK=128, num_warps=2)


@triton.jit
def shifted(x, by: tl.constexpr, N: tl.constexpr, fill):
    i = tl.arange(0, N)
    moved = tl.gather(x, tl.minimum(tl.maximum(i + by, 0), N - 1), 0)
    return tl.where((i + by < 0) | (i + by >= N), fill, moved)


@triton.jit
def reduce_cyclically(LOW, MIDDLE, HIGH, RIGHT, OUT, N: tl.constexpr, STEPS: tl.constexpr):
    # Three diagonals of 1024 rows: each step every row eliminates its neighbors at a distance that doubles.
    row, i = tl.program_id(0) * N, tl.arange(0, N)
    a, b, c, d = tl.load(LOW + row + i), tl.load(MIDDLE + row + i), tl.load(HIGH + row + i), tl.load(RIGHT + row + i)
    a, c = tl.where(i == 0, 0.0, a), tl.where(i == N - 1, 0.0, c)
    for s in tl.static_range(STEPS):
        k1 = a / shifted(b, -(1 << s), N, 1.0)
        k2 = c / shifted(b, 1 << s, N, 1.0)
        b_new = b - shifted(c, -(1 << s), N, 0.0) * k1 - shifted(a, 1 << s, N, 0.0) * k2
        d = d - shifted(d, -(1 << s), N, 0.0) * k1 - shifted(d, 1 << s, N, 0.0) * k2
        a, c = -shifted(a, -(1 << s), N, 0.0) * k1, -shifted(c, 1 << s, N, 0.0) * k2
        b = b_new
    tl.store(OUT + row + i, d / b)


@case
def three_diagonals_reduced_cyclically():
    systems, n = 4096, 1024
    out = zeros(systems, n, dtype="float32")
    args = f32(systems, n) * 0.3, uniform(systems, n) + 2.0, f32(systems, n) * 0.3, f32(systems, n), out
    return run(reduce_cyclically, (systems,), args, out, N=n, STEPS=10, num_warps=8)


@triton.jit
def solve_lower_without_levels(STARTS, COLUMNS, VALUES, DIAGONAL, RIGHT, X, DONE, BLOCK: tl.constexpr):
    # Each row waits for the rows it needs by their flags: a program a row, rows in the order in which programs start.
    row, lane = tl.program_id(0), tl.arange(0, BLOCK)
    start, end = tl.load(STARTS + row), tl.load(STARTS + row + 1)
    live = start + lane < end
    column = tl.load(COLUMNS + start + lane, mask=live, other=0)
    value = tl.load(VALUES + start + lane, mask=live, other=0.0)
    ready = 0
    while ready == 0:
        flags = tl.load(DONE + column, mask=live, other=1, volatile=True)
        ready = tl.min(flags, 0)
    tl.debug_barrier()
    x = tl.load(X + column, mask=live, other=0.0, volatile=True)
    y = (tl.load(RIGHT + row) - tl.sum(value * x, 0)) / tl.load(DIAGONAL + row)
    tl.store(X + row, y)
    tl.debug_barrier()
    tl.atomic_xchg(DONE + row, 1, sem="release")


@case
def lower_rows_wait_for_rows_by_flags():
    rows, most = 20000, 24
    lengths = torch.minimum(ints(4, most, rows, dtype="int64"), arange(rows, dtype="int64") // 200)
    starts = torch.cat((lengths.new_zeros(1), lengths.cumsum(0))).to(torch.int32)
    n = int(starts[-1])
    row = torch.repeat_interleave(arange(rows, dtype="int64"), lengths)
    columns = ((row - 150) * uniform(n).double()).long().clamp(min=0).to(torch.int32)
    x, done = zeros(rows, dtype="float32"), zeros(rows, dtype="int32")
    args = starts, columns, f32(n) * 0.1, uniform(rows) + 1.0, f32(rows), x, done
    return cleared(run(solve_lower_without_levels, (rows,), args, x, BLOCK=32, num_warps=1), x, done)


@triton.jit
def splats_backward(
    CENTER, CONIC, COLOR, OPACITY, LISTS, STARTS, LEFT, LAST, DC, D_CENTER, D_CONIC, D_COLOR, D_OPACITY, TILES_X, W,
    B: tl.constexpr,
):  # fmt: skip
    # Back to front over a tile's list: what is behind is known, so colors, opacities and shapes get their gradients by atomics.
    tile, p = tl.program_id(0), tl.arange(0, B * B)
    x, y = tile % TILES_X * B + p % B, tile // TILES_X * B + p // B
    fx, fy = x.to(tl.float32) + 0.5, y.to(tl.float32) + 0.5
    pixel = y * W + x
    left = tl.load(LEFT + pixel)
    last = tl.load(LAST + pixel)
    gr, gg, gb = tl.load(DC + pixel * 3), tl.load(DC + pixel * 3 + 1), tl.load(DC + pixel * 3 + 2)
    br, bg, bb = tl.zeros((B * B,), tl.float32), tl.zeros((B * B,), tl.float32), tl.zeros((B * B,), tl.float32)
    start, end = tl.load(STARTS + tile), tl.load(STARTS + tile + 1)
    for j in range(end - start):
        i = end - 1 - j
        s = tl.load(LISTS + i)
        dx, dy = fx - tl.load(CENTER + s * 2), fy - tl.load(CENTER + s * 2 + 1)
        a, b, c = tl.load(CONIC + s * 3), tl.load(CONIC + s * 3 + 1), tl.load(CONIC + s * 3 + 2)
        e = tl.exp(-0.5 * (a * dx * dx + c * dy * dy) - b * dx * dy)
        opacity = tl.load(OPACITY + s)
        alpha = tl.minimum(opacity * e, 0.99)
        alpha = tl.where(i - start <= last, alpha, 0.0)
        left = left / (1.0 - alpha)
        r, g, blue = tl.load(COLOR + s * 3), tl.load(COLOR + s * 3 + 1), tl.load(COLOR + s * 3 + 2)
        weight = alpha * left
        tl.atomic_add(D_COLOR + s * 3, tl.sum(weight * gr, 0), sem="relaxed")
        tl.atomic_add(D_COLOR + s * 3 + 1, tl.sum(weight * gg, 0), sem="relaxed")
        tl.atomic_add(D_COLOR + s * 3 + 2, tl.sum(weight * gb, 0), sem="relaxed")
        d_alpha = ((r - br) * gr + (g - bg) * gg + (blue - bb) * gb) * left
        br, bg, bb = alpha * r + (1.0 - alpha) * br, alpha * g + (1.0 - alpha) * bg, alpha * blue + (1.0 - alpha) * bb
        d_alpha = tl.where((i - start <= last) & (opacity * e < 0.99), d_alpha, 0.0)
        tl.atomic_add(D_OPACITY + s, tl.sum(d_alpha * e, 0), sem="relaxed")
        d_e = d_alpha * opacity * e
        tl.atomic_add(D_CONIC + s * 3, tl.sum(-0.5 * d_e * dx * dx, 0), sem="relaxed")
        tl.atomic_add(D_CONIC + s * 3 + 1, tl.sum(-d_e * dx * dy, 0), sem="relaxed")
        tl.atomic_add(D_CONIC + s * 3 + 2, tl.sum(-0.5 * d_e * dy * dy, 0), sem="relaxed")
        tl.atomic_add(D_CENTER + s * 2, tl.sum(d_e * (a * dx + b * dy), 0), sem="relaxed")
        tl.atomic_add(D_CENTER + s * 2 + 1, tl.sum(d_e * (c * dy + b * dx), 0), sem="relaxed")


@case
def gradients_of_splats_back_to_front():
    w, b, splats, per = 512, 16, 20000, 48
    tiles = (w // b) ** 2
    lists = ints(0, splats, tiles * per)
    center = uniform(splats, 2) * w
    conic = torch.stack((uniform(splats) * 0.001 + 1e-4, (uniform(splats) - 0.5) * 1e-4, uniform(splats) * 0.001 + 1e-4), 1).contiguous()
    starts = (arange(tiles + 1) * per).to(torch.int32)
    grads = zeros(splats, 2, dtype="float32"), zeros(splats, 3, dtype="float32"), zeros(splats, 3, dtype="float32"), zeros(splats, dtype="float32")
    args = center, conic, uniform(splats, 3), uniform(splats) * 0.1, lists, starts, uniform(w, w) * 0.5 + 0.1, ints(20, per, w, w)
    args = *args, f32(w, w, 3), *grads, w // b, w
    return cleared(run(splats_backward, (tiles,), args, grads, B=b, num_warps=4), *grads)


@triton.jit
def log_add(a, b):
    top = tl.maximum(a, b)
    return top + tl.log(tl.exp(a - top) + tl.exp(b - top))


@triton.jit
def profile_forward(TEXT, MATCH, STEPS, OUT, LENGTH, N, M: tl.constexpr):
    # Profiles with insertions: three states a column, all columns of a text's letter at once; one letter of the text a step.
    pair, m = tl.program_id(0), tl.arange(0, M)
    mm, mi, im = tl.load(STEPS + m), tl.load(STEPS + M + m), tl.load(STEPS + 2 * M + m)
    ii, begin = tl.load(STEPS + 3 * M + m), tl.load(STEPS + 4 * M + m)
    match, insert = tl.full((M,), -1e4, tl.float32), tl.full((M,), -1e4, tl.float32)
    total, length = -1e4, tl.load(LENGTH + pair)
    before = tl.maximum(m - 1, 0)
    for t in range(length):
        letter = tl.load(TEXT + pair * N + t).to(tl.int32)
        score = tl.load(MATCH + letter * M + m)
        from_left = tl.gather(log_add(match + mm, insert + im), before, 0)
        from_left = tl.where(m == 0, -1e4, from_left)
        insert = log_add(match + mi, insert + ii)
        match = score + log_add(from_left, begin)
        top = tl.max(match, 0)
        total = log_add(total, top + tl.log(tl.sum(tl.exp(match - top), 0)))
    tl.store(OUT + pair, total)


@case
def profiles_of_256_columns_along_texts():
    texts, n, m, letters = 2000, 300, 256, 20
    out = zeros(texts, dtype="float32")
    steps = -uniform(5, m) * 3 - 0.2
    steps[4] -= 6
    args = ints(0, letters, texts, n, dtype="uint8"), f32(letters, m), steps, out, ints(50, n, texts), n
    return run(profile_forward, (texts,), args, out, M=m, num_warps=2)


@triton.jit
def coupled_paths(X, Y, W, OUT, E, U: tl.constexpr, BE: tl.constexpr):
    # Scalars and vectors of 64 channels with the harmonics of an edge: five paths of products, each with a weight a channel.
    e, u = tl.program_id(0) * BE + tl.arange(0, BE), tl.arange(0, U)
    live = (e < E)[:, None]
    row = e.to(tl.int64)[:, None] * (4 * U) + u[None, :]
    s = tl.load(X + row, mask=live, other=0.0)
    vx, vy = tl.load(X + row + U, mask=live, other=0.0), tl.load(X + row + 2 * U, mask=live, other=0.0)
    vz = tl.load(X + row + 3 * U, mask=live, other=0.0)
    y0, yx = tl.load(Y + e * 4, mask=e < E)[:, None], tl.load(Y + e * 4 + 1, mask=e < E)[:, None]
    yy, yz = tl.load(Y + e * 4 + 2, mask=e < E)[:, None], tl.load(Y + e * 4 + 3, mask=e < E)[:, None]
    weight = e.to(tl.int64)[:, None] * (5 * U) + u[None, :]
    w0, w1 = tl.load(W + weight, mask=live, other=0.0), tl.load(W + weight + U, mask=live, other=0.0)
    w2, w3 = tl.load(W + weight + 2 * U, mask=live, other=0.0), tl.load(W + weight + 3 * U, mask=live, other=0.0)
    w4 = tl.load(W + weight + 4 * U, mask=live, other=0.0)
    tl.store(OUT + row, w0 * s * y0 + w1 * (vx * yx + vy * yy + vz * yz) * 0.57735027, mask=live)
    tl.store(OUT + row + U, w2 * s * yx + w3 * vx * y0 + w4 * (vy * yz - vz * yy) * 0.70710678, mask=live)
    tl.store(OUT + row + 2 * U, w2 * s * yy + w3 * vy * y0 + w4 * (vz * yx - vx * yz) * 0.70710678, mask=live)
    tl.store(OUT + row + 3 * U, w2 * s * yz + w3 * vz * y0 + w4 * (vx * yy - vy * yx) * 0.70710678, mask=live)


@case
def products_of_tensors_along_edges():
    edges, u = 60000, 64
    out = zeros(edges, 4, u, dtype="float32")
    return run(coupled_paths, (cdiv(edges, 8),), (f32(edges, 4, u), f32(edges, 4), f32(edges, 5, u), out, edges), out, U=u, BE=8, num_warps=4)
