"""Gardens: what grows for its own sake: rotated rows, sponges of bits, shadows to pictures, contours, layers of noise, paths between lists, seven products, machines of words, life by bands."""

import hashlib
import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros


@triton.jit
def rotated_rows_least_squares_kernel(a_ptr, b_ptr, r_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    # Givens' rotations of neighboring rows from the bottom up, column after column, with the right side; a matrix a program.
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    pid = tl.program_id(0)
    a = tl.load(a_ptr + pid * M * N + i * N + j)
    b = tl.load(b_ptr + pid * M + tl.arange(0, M))
    flat = tl.arange(0, M)
    for col in range(N):
        for step in range(M - 1 - col):
            low = M - 1 - step
            upper = tl.sum(tl.where(i == low - 1, a, 0.0), axis=0)
            lower = tl.sum(tl.where(i == low, a, 0.0), axis=0)
            x = tl.sum(tl.where(tl.arange(0, N) == col, upper, 0.0))
            z = tl.sum(tl.where(tl.arange(0, N) == col, lower, 0.0))
            length = tl.sqrt(x * x + z * z)
            c = x / length
            s = z / length
            a = tl.where(i == low - 1, (c * upper + s * lower)[None, :], tl.where(i == low, (c * lower - s * upper)[None, :], a))
            bu = tl.sum(tl.where(flat == low - 1, b, 0.0))
            bl = tl.sum(tl.where(flat == low, b, 0.0))
            b = tl.where(flat == low - 1, c * bu + s * bl, tl.where(flat == low, c * bl - s * bu, b))
    tl.store(r_ptr + pid * N * N + i * N + j, tl.where(i <= j, a, 0.0), mask=i < N)
    tl.store(y_ptr + pid * N + flat, b, mask=flat < N)


@case
def garden_of_rotated_rows(b=1500, m=32, n=8):
    a, rhs = f32(b, m, n), f32(b, m)
    r, y = zeros(b, n, n, dtype="float32"), zeros(b, n, dtype="float32")
    launched = run(rotated_rows_least_squares_kernel, (b,), (a, rhs, r, y), (r, y), M=m, N=n, num_warps=1)

    def reference():
        q, upper = torch.linalg.qr(a.double())
        sign = upper.diagonal(dim1=1, dim2=2).sign()
        return upper * sign[:, :, None], (q * sign[:, None] * rhs.double()[:, :, None]).sum(1)

    return against(launched, reference)


@triton.jit
def sponge_of_lanes_kernel(message_ptr, constants_ptr, turns_ptr, digest_ptr, n, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    # SHA-3 of eight bytes each: the 25 words of a state lie along an axis, and every move of them is a gather.
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    lane = tl.arange(0, 32)[None, :]
    i = tl.minimum(lane, 24)
    x, y = i % 5, i // 5
    shape = tl.zeros((BLOCK, 32), dtype=tl.int32)
    turn = tl.load(turns_ptr + i).to(tl.uint64)
    first = tl.load(message_ptr + row, mask=row < n, other=0).to(tl.uint64, bitcast=True)
    zero = (shape * 0).to(tl.uint64)
    a = tl.where(lane == 0, first, zero)
    a = tl.where(lane == 1, zero + 6, a)
    a = tl.where(lane == 16, (zero + 1) << 63, a)
    for r in range(ROUNDS):
        c = a
        for k in tl.static_range(1, 5):
            c ^= tl.gather(a, shape + (i + 5 * k) % 25, axis=1)
        after = tl.gather(c, shape + (x + 1) % 5, axis=1)
        a ^= tl.gather(c, shape + (x + 4) % 5, axis=1) ^ ((after << 1) | (after >> 63))
        a = (a << turn) | (a >> ((64 - turn) & 63))
        a = tl.gather(a, shape + (x + 3 * y) % 5 + 5 * x, axis=1)
        one = tl.gather(a, shape + (x + 1) % 5 + 5 * y, axis=1)
        two = tl.gather(a, shape + (x + 2) % 5 + 5 * y, axis=1)
        a ^= two ^ (one & two)
        a = tl.where(lane == 0, a ^ tl.load(constants_ptr + r).to(tl.uint64, bitcast=True), a)
    tl.store(digest_ptr + row * 4 + lane, a.to(tl.int64, bitcast=True), mask=(row < n) & (lane < 4))


@case
def garden_of_sponges(n=12000):
    def bit(t):
        register = 1
        for _ in range(t % 255):
            register <<= 1
            register ^= 0x171 if register & 256 else 0
        return register & 1

    rounds = [sum(bit(j + 7 * r) << ((1 << j) - 1) for j in range(7)) for r in range(24)]
    turns, x, y = [0] * 25, 1, 0
    for t in range(24):
        turns[x + 5 * y] = (t + 1) * (t + 2) // 2 % 64
        x, y = y, (2 * x + 3 * y) % 5
    constants = torch.tensor([c - (1 << 64) if c >> 63 else c for c in rounds], dtype=torch.int64, device="cuda")
    messages = arange(n, "int64") * 0x9E3779B97F4A7C1
    digest = zeros(n, 4, dtype="int64")
    turned = torch.tensor(turns, dtype=torch.int32, device="cuda")
    launched = run(sponge_of_lanes_kernel, (cdiv(n, 8),), (messages, constants, turned, digest, n), digest, ROUNDS=24, BLOCK=8, num_warps=4)

    def reference():
        data = b"".join(hashlib.sha3_256(m.to_bytes(8, "little", signed=True)).digest() for m in messages.cpu().tolist())
        return torch.frombuffer(bytearray(data), dtype=torch.int64).reshape(n, 4).to(digest.device)

    return against(launched, reference)


@triton.jit
def patches_alike_kernel(img_ptr, out_ptr, H, W, inv_h2, SEARCH: tl.constexpr, PATCH: tl.constexpr, BY: tl.constexpr, BX: tl.constexpr):
    # Non-local means: a pixel is the mean of those around it, weighed by how alike the patches about them are; borders are clamped.
    y = tl.program_id(1) * BY + tl.arange(0, BY)[:, None]
    x = tl.program_id(0) * BX + tl.arange(0, BX)[None, :]
    total = tl.zeros((BY, BX), dtype=tl.float32)
    weights = tl.zeros((BY, BX), dtype=tl.float32)
    for dy in range(-SEARCH, SEARCH + 1):
        for dx in range(-SEARCH, SEARCH + 1):
            far = tl.zeros((BY, BX), dtype=tl.float32)
            for py in tl.static_range(-PATCH, PATCH + 1):
                for px in tl.static_range(-PATCH, PATCH + 1):
                    ya = tl.minimum(tl.maximum(y + py, 0), H - 1)
                    xa = tl.minimum(tl.maximum(x + px, 0), W - 1)
                    yb = tl.minimum(tl.maximum(y + dy + py, 0), H - 1)
                    xb = tl.minimum(tl.maximum(x + dx + px, 0), W - 1)
                    diff = tl.load(img_ptr + ya * W + xa) - tl.load(img_ptr + yb * W + xb)
                    far += diff * diff
            w = tl.exp(-far * inv_h2)
            yc = tl.minimum(tl.maximum(y + dy, 0), H - 1)
            xc = tl.minimum(tl.maximum(x + dx, 0), W - 1)
            total += w * tl.load(img_ptr + yc * W + xc)
            weights += w
    tl.store(out_ptr + y * W + x, total / weights, mask=(y < H) & (x < W))


@case
def garden_of_patches_alike(h=290, w=500, search=3, patch=1):
    img, out = uniform(h, w), zeros(h, w, dtype="float32")
    launched = run(patches_alike_kernel, (cdiv(w, 64), cdiv(h, 8)), (img, out, h, w, 2.5), out, SEARCH=search, PATCH=patch, BY=8, BX=64, num_warps=4)

    def reference():
        ys, xs = torch.arange(h, device=img.device), torch.arange(w, device=img.device)
        patches = [(a, b) for a in range(-patch, patch + 1) for b in range(-patch, patch + 1)]
        total, weights = torch.zeros_like(img), torch.zeros_like(img)

        def at(a, b):
            return img[(ys + a).clamp(0, h - 1)][:, (xs + b).clamp(0, w - 1)]

        for a in range(-search, search + 1):
            for b in range(-search, search + 1):
                e = torch.exp(-2.5 * sum((at(c, d) - at(a + c, b + d)) ** 2 for c, d in patches))
                total += e * at(a, b)
                weights += e
        return total / weights

    return against(launched, reference)


@triton.jit
def pictures_from_shadows_kernel(sino_ptr, cos_ptr, sin_ptr, out_ptr, SIZE, ANGLES, BINS, BLOCK: tl.constexpr):
    # Backprojection: for each angle the place on the detector that a pixel throws its shadow on, between two bins of filtered shadows.
    pix = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = (pix % SIZE).to(tl.float32) - (SIZE - 1) * 0.5
    y = (pix // SIZE).to(tl.float32) - (SIZE - 1) * 0.5
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    angle = 0
    while angle < ANGLES:
        place = x * tl.load(cos_ptr + angle) + y * tl.load(sin_ptr + angle) + (BINS - 1) * 0.5
        low = tl.floor(place)
        part = place - low
        i = low.to(tl.int32)
        left = tl.load(sino_ptr + angle * BINS + i, mask=(i >= 0) & (i < BINS), other=0.0)
        right = tl.load(sino_ptr + angle * BINS + i + 1, mask=(i >= -1) & (i < BINS - 1), other=0.0)
        acc += left + (right - left) * part
        angle += 1
    tl.store(out_ptr + pix, acc * (3.14159265 / ANGLES), mask=pix < SIZE * SIZE)


@case
def garden_of_pictures_from_shadows(size=500, angles=180, bins=640):
    theta = torch.arange(angles, device="cuda").float() * (math.pi / angles)
    sino, out = f32(angles, bins) + 0.5, zeros(size, size, dtype="float32")
    cos, sin = theta.cos(), theta.sin()
    launched = run(pictures_from_shadows_kernel, (cdiv(size * size, 512),), (sino, cos, sin, out, size, angles, bins), out, BLOCK=512, num_warps=4)

    def reference():
        r = torch.arange(size, device=sino.device).double() - (size - 1) / 2
        y = 0
        for a in range(angles):
            place = r[None] * cos[a].double() + r[:, None] * sin[a].double() + (bins - 1) / 2 + 1000
            i = place.floor().long()
            line = F.pad(sino[a].double(), (1000, 1000))
            y = y + line[i] + (line[i + 1] - line[i]) * (place - i)
        return y * (math.pi / angles)

    return against(launched, reference)


@triton.jit
def contours_of_cells_kernel(f_ptr, case_ptr, length_ptr, H, W, iso, BLOCK: tl.constexpr):
    # Marching squares: which of sixteen a cell is, and how long its contours are; saddles are told apart by the cell's mean.
    cell = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = cell // (W - 1)
    x = cell % (W - 1)
    ok = y < H - 1
    p = f_ptr + y * W + x
    a = tl.load(p, mask=ok, other=0.0)
    b = tl.load(p + 1, mask=ok, other=0.0)
    c = tl.load(p + W + 1, mask=ok, other=0.0)
    d = tl.load(p + W, mask=ok, other=0.0)
    ia, ib, ic, id = a > iso, b > iso, c > iso, d > iso
    code = ia.to(tl.int32) | (ib.to(tl.int32) << 1) | (ic.to(tl.int32) << 2) | (id.to(tl.int32) << 3)
    top = tl.where(ia != ib, (iso - a) / tl.where(ia != ib, b - a, 1.0), 0.5)
    right = tl.where(ib != ic, (iso - b) / tl.where(ib != ic, c - b, 1.0), 0.5)
    bottom = tl.where(id != ic, (iso - d) / tl.where(id != ic, c - d, 1.0), 0.5)
    left = tl.where(ia != id, (iso - a) / tl.where(ia != id, d - a, 1.0), 0.5)
    tr = tl.sqrt((1 - top) * (1 - top) + right * right)
    rb = tl.sqrt((1 - bottom) * (1 - bottom) + (1 - right) * (1 - right))
    bl = tl.sqrt(bottom * bottom + (1 - left) * (1 - left))
    lt = tl.sqrt(top * top + left * left)
    across = tl.sqrt(1 + (left - right) * (left - right))
    down = tl.sqrt(1 + (top - bottom) * (top - bottom))
    center = (a + b + c + d) * 0.25 > iso
    saddle = (code == 5) | (code == 10)
    length = tl.zeros((BLOCK,), dtype=tl.float32)
    length = tl.where((code == 1) | (code == 14), lt, length)
    length = tl.where((code == 2) | (code == 13), tr, length)
    length = tl.where((code == 4) | (code == 11), rb, length)
    length = tl.where((code == 8) | (code == 7), bl, length)
    length = tl.where((code == 3) | (code == 12), across, length)
    length = tl.where((code == 6) | (code == 9), down, length)
    length = tl.where(saddle, tl.where(ia == center, tr + bl, lt + rb), length)
    tl.store(case_ptr + cell, code.to(tl.uint8), mask=ok)
    tl.store(length_ptr + cell, length, mask=ok)


@case
def garden_of_contours(h=1200, w=1701, iso=0.1):
    f = f32(h, w)
    f = f + f.roll(1, 0) + f.roll(1, 1)
    codes, length = zeros(h - 1, w - 1, dtype="uint8"), zeros(h - 1, w - 1, dtype="float32")
    launched = run(contours_of_cells_kernel, (cdiv((h - 1) * (w - 1), 1024),), (f, codes, length, h, w, iso), (codes, length), BLOCK=1024, num_warps=8)

    def reference():
        g = f.double()
        level = torch.tensor(iso, dtype=torch.float32).double().item()
        a, b, c, d = g[:-1, :-1], g[:-1, 1:], g[1:, 1:], g[1:, :-1]
        code = sum((v > level).int() << i for i, v in enumerate((a, b, c, d)))
        t, r, u, s = ((level - p) / (q - p) for p, q in ((a, b), (b, c), (d, c), (a, d)))
        legs = {1: (t, s), 2: (1 - t, r), 4: (1 - u, 1 - r), 8: (u, 1 - s), 3: (torch.ones_like(r), s - r), 6: (torch.ones_like(t), t - u)}
        one = {k: torch.hypot(*v) for k, v in legs.items()}
        first = (a > level) == ((a + b + c + d) / 4 > level)
        y = torch.where((code == 5) | (code == 10), torch.where(first, one[2] + one[8], one[1] + one[4]), 0)
        for k, v in one.items():
            y = torch.where((code == k) | (code == 15 - k), v, y)
        return code.to(torch.uint8), y

    return against(launched, reference)


@triton.jit
def hash_of_lattice_corner(x, y, seed):
    h = x * 374761393 + y * 668265263 + seed * 331804471
    h = (h ^ ((h >> 13) & 0x7FFFF)) * 1274126177
    return h ^ ((h >> 16) & 0xFFFF)


@triton.jit
def slope_at_corner(h, dx, dy):
    return tl.where((h & 1) != 0, dx, -dx) + tl.where((h & 2) != 0, dy, -dy)


@triton.jit
def layers_of_noise_kernel(out_ptr, W, total, octaves, frequency, lacunarity, gain, BLOCK: tl.constexpr):
    # Gradient noise summed over octaves: corners are hashed, slopes are diagonals, what lies between is smoothed by a quintic.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    px = (i % W).to(tl.float32)
    py = (i // W).to(tl.float32)
    value = tl.zeros((BLOCK,), dtype=tl.float32)
    amplitude = 1.0
    for octave in range(octaves):
        x = px * frequency
        y = py * frequency
        fx, fy = tl.floor(x), tl.floor(y)
        dx, dy = x - fx, y - fy
        ix, iy = fx.to(tl.int32), fy.to(tl.int32)
        u = dx * dx * dx * (dx * (dx * 6.0 - 15.0) + 10.0)
        v = dy * dy * dy * (dy * (dy * 6.0 - 15.0) + 10.0)
        a = slope_at_corner(hash_of_lattice_corner(ix, iy, octave), dx, dy)
        b = slope_at_corner(hash_of_lattice_corner(ix + 1, iy, octave), dx - 1, dy)
        c = slope_at_corner(hash_of_lattice_corner(ix, iy + 1, octave), dx, dy - 1)
        d = slope_at_corner(hash_of_lattice_corner(ix + 1, iy + 1, octave), dx - 1, dy - 1)
        low = a + u * (b - a)
        high = c + u * (d - c)
        value += amplitude * (low + v * (high - low))
        amplitude *= gain
        frequency *= lacunarity
    tl.store(out_ptr + i, value, mask=i < total)


@case
def garden_of_layers_of_noise(h=1000, w=1500, octaves=6):
    out = zeros(h, w, dtype="float32")
    launched = run(layers_of_noise_kernel, (cdiv(h * w, 512),), (out, w, h * w, octaves, 0.0173, 2.03, 0.55), out, BLOCK=512, num_warps=4)

    def reference():
        py, px = (v.to(out.device).float() for v in torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij"))
        f, amp, value = torch.tensor(0.0173, dtype=torch.float32, device=out.device), 1.0, 0
        for o in range(octaves):
            x, y = px * f, py * f
            ix, iy = x.floor().to(torch.int32), y.floor().to(torch.int32)
            dx, dy = x - ix, y - iy

            def slope(p, q, o=o, ix=ix, iy=iy, dx=dx, dy=dy):
                g = (ix + p).long() * 374761393 + (iy + q).long() * 668265263 + o * 331804471 & 0xFFFFFFFF
                g = (g ^ g >> 13) * 1274126177 & 0xFFFFFFFF
                g = g ^ g >> 16
                return torch.where(g & 1 != 0, dx - p, p - dx) + torch.where(g & 2 != 0, dy - q, q - dy)

            u, v = (t**3 * (t * (t * 6 - 15) + 10) for t in (dx, dy))
            low, high = torch.lerp(slope(0, 0), slope(1, 0), u), torch.lerp(slope(0, 1), slope(1, 1), u)
            value = value + amp * torch.lerp(low, high, v)
            amp, f = amp * 0.55, f * 2.03
        return value

    return against(launched, reference)


@triton.jit
def cuts_in_bytes_kernel(data_ptr, gear_ptr, hash_ptr, cut_ptr, count_ptr, n, mask_bits, WINDOW: tl.constexpr, BLOCK: tl.constexpr):
    # Where a stream of bytes is cut by its content: a gear hash of the last 32 bytes, whose top bits must be zero; cuts of a block are counted.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h = tl.zeros((BLOCK,), dtype=tl.uint32)
    for back in tl.range(WINDOW, loop_unroll_factor=4):
        at = i - back
        byte = tl.load(data_ptr + at, mask=(at >= 0) & (at < n), other=0)
        gear = tl.load(gear_ptr + byte.to(tl.int32), mask=(at >= 0) & (at < n), other=0)
        h += gear.to(tl.uint32, bitcast=True) << back
    cut = ((h >> (32 - mask_bits)) == 0) & (i >= WINDOW - 1) & (i < n)
    tl.store(hash_ptr + i, h.to(tl.int32, bitcast=True), mask=i < n)
    tl.store(cut_ptr + i, cut, mask=i < n)
    tl.store(count_ptr + tl.program_id(0), tl.sum(cut.to(tl.int32)))


@case
def garden_of_cuts_in_bytes(n=3000001, bits=7):
    data, gear = ints(0, 256, n, dtype="uint8"), ints(-(1 << 31), (1 << 31) - 1, 256)
    h, cut, count = zeros(n, dtype="int32"), zeros(n, dtype="bool"), zeros(cdiv(n, 1024), dtype="int32")
    launched = run(cuts_in_bytes_kernel, (cdiv(n, 1024),), (data, gear, h, cut, count, n, bits), (h, cut, count), WINDOW=32, BLOCK=1024, num_warps=4)

    def reference():
        g = F.pad(gear[data.long()].long(), (31, 0))
        x = sum(g[31 - i : 31 - i + n] << i for i in range(32)) & 0xFFFFFFFF
        c = (x >> 32 - bits == 0) & (torch.arange(n, device=x.device) >= 31)
        signed = torch.where(x >= 1 << 31, x - (1 << 32), x).to(torch.int32)
        return signed, c, F.pad(c.int(), (0, -n % 1024)).view(-1, 1024).sum(1).int()

    return against(launched, reference)


@triton.jit
def packed_lookups_grouped_kernel(words_ptr, group_ptr, price_ptr, sums_ptr, counts_ptr, n, low, high, BITS: tl.constexpr, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    # SELECT group, SUM(price[code]), COUNT(*) WHERE low <= code < high GROUP BY group: codes are packed bits that cross words; programs stay.
    g = tl.arange(0, GROUPS)
    sums = tl.zeros((GROUPS,), dtype=tl.int64)
    counts = tl.zeros((GROUPS,), dtype=tl.int32)
    for start in tl.range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        row = start + tl.arange(0, BLOCK)
        ok = row < n
        bit = row.to(tl.int64) * BITS
        word = tl.load(words_ptr + (bit >> 5), mask=ok, other=0).to(tl.uint32, bitcast=True).to(tl.uint64)
        after = tl.load(words_ptr + (bit >> 5) + 1, mask=ok, other=0).to(tl.uint32, bitcast=True).to(tl.uint64)
        code = (((word | (after << 32)) >> (bit & 31).to(tl.uint64)) & ((1 << BITS) - 1)).to(tl.int32)
        keep = ok & (code >= low) & (code < high)
        price = tl.load(price_ptr + code, mask=keep, other=0)
        group = tl.load(group_ptr + row, mask=ok, other=0).to(tl.int32)
        sums += tl.sum(tl.where(group[:, None] == g[None, :], price[:, None], 0), axis=0).to(tl.int64)
        counts += tl.histogram(group, GROUPS, mask=keep)
    tl.atomic_add(sums_ptr + g, sums)
    tl.atomic_add(counts_ptr + g, counts)


@case
def garden_of_packed_lookups(n=2000003, bits=11, groups=32):
    codes = ints(0, 1 << bits, n, dtype="int64")
    group, price = ints(0, groups, n, dtype="uint8"), ints(0, 100000, 1 << bits)
    at = torch.arange(n, device="cuda") * bits
    words = torch.zeros(n * bits // 32 + 3, dtype=torch.int64, device="cuda")
    words.index_add_(0, at >> 5, codes << (at & 31) & 0xFFFFFFFF)
    words.index_add_(0, (at >> 5) + 1, codes << (at & 31) >> 32)
    words = torch.where(words >= 1 << 31, words - (1 << 32), words).to(torch.int32)
    sums, counts = zeros(groups, dtype="int64"), zeros(groups, dtype="int32")
    launched = run(packed_lookups_grouped_kernel, (264,), (words, group, price, sums, counts, n, 200, 1500), (sums, counts), BITS=bits, GROUPS=groups, BLOCK=512, num_warps=4)

    def reference():
        keep = (codes >= 200) & (codes < 1500)
        s = torch.zeros(groups, dtype=torch.int64, device=codes.device).index_add(0, group.long(), price[codes].long() * keep)
        return s, torch.zeros_like(s).index_add(0, group.long(), keep.long())

    return against(cleared(launched, sums, counts), reference)


@triton.jit
def paths_between_lists_kernel(a_ptr, b_ptr, out_ptr, from_ptr, na, nb, PER: tl.constexpr, BLOCK: tl.constexpr):
    # Two sorted lists become one: each lane finds by bisection where its diagonal crosses the path of the merge, and then walks PER steps of it.
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    diagonal = tl.minimum(lane * PER, na + nb)
    low = tl.maximum(diagonal - nb, 0)
    high = tl.minimum(diagonal, na)
    while tl.max(high - low, axis=0) > 0:
        mid = (low + high) // 2
        open = low < high
        a = tl.load(a_ptr + mid, mask=open, other=0)
        b = tl.load(b_ptr + diagonal - 1 - mid, mask=open, other=0)
        low = tl.where(open & (a <= b), mid + 1, low)
        high = tl.where(open & (a > b), mid, high)
    i = low
    j = diagonal - low
    for step in range(PER):
        at = lane * PER + step
        ok = at < na + nb
        a = tl.load(a_ptr + i, mask=ok & (i < na), other=0)
        b = tl.load(b_ptr + j, mask=ok & (j < nb), other=0)
        take = (i < na) & ((j >= nb) | (a <= b))
        tl.store(out_ptr + at, tl.where(take, a, b), mask=ok)
        tl.store(from_ptr + at, tl.where(take, i, na + j), mask=ok)
        i += take.to(tl.int32)
        j += 1 - take.to(tl.int32)


@case
def garden_of_paths_between_lists(na=1300000, nb=900001):
    a, b = (ints(0, 5000000, n).sort()[0].contiguous() for n in (na, nb))
    out, origin = zeros(na + nb, dtype="int32"), zeros(na + nb, dtype="int32")
    launched = run(paths_between_lists_kernel, (cdiv(na + nb, 16 * 128),), (a, b, out, origin, na, nb), (out, origin), PER=16, BLOCK=128, num_warps=4)

    def reference():
        value, index = torch.cat((a, b)).sort(stable=True)
        return value, index.int()

    return against(launched, reference)


@triton.jit
def three_diagonals_by_halves_kernel(a_ptr, b_ptr, c_ptr, d_ptr, x_ptr, systems, N: tl.constexpr, BLOCK: tl.constexpr):
    # Cyclic reduction in parallel: each equation takes its neighbors at distances of one, two, four and so on into itself, until it stands alone.
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    i = tl.arange(0, N)[None, :] + tl.zeros((BLOCK, N), dtype=tl.int32)
    at = row * N + i
    ok = (row < systems) & (i >= 0)
    a = tl.load(a_ptr + at, mask=ok & (i > 0), other=0.0)
    b = tl.load(b_ptr + at, mask=ok, other=1.0)
    c = tl.load(c_ptr + at, mask=ok & (i < N - 1), other=0.0)
    d = tl.load(d_ptr + at, mask=ok, other=0.0)
    far = 1
    while far < N:
        down = tl.maximum(i - far, 0)
        up = tl.minimum(i + far, N - 1)
        alpha = tl.where(i >= far, -a / tl.gather(b, down, axis=1), 0.0)
        gamma = tl.where(i + far < N, -c / tl.gather(b, up, axis=1), 0.0)
        b = b + alpha * tl.gather(c, down, axis=1) + gamma * tl.gather(a, up, axis=1)
        d = d + alpha * tl.gather(d, down, axis=1) + gamma * tl.gather(d, up, axis=1)
        a, c = alpha * tl.gather(a, down, axis=1), gamma * tl.gather(c, up, axis=1)
        far *= 2
    tl.store(x_ptr + at, d / b, mask=ok)


@case
def garden_of_three_diagonals(systems=5001, n=256):
    a, c, d = f32(systems, n), f32(systems, n), f32(systems, n)
    b = (a.abs() + c.abs() + 0.5) * torch.where(uniform(systems, n) < 0.5, -1.0, 1.0)
    x = zeros(systems, n, dtype="float32")
    launched = run(three_diagonals_by_halves_kernel, (cdiv(systems, 4),), (a, b, c, d, x, systems), x, N=n, BLOCK=4, num_warps=4)

    def reference():
        p, q = [c[:, 0].double() / b[:, 0]], [d[:, 0].double() / b[:, 0]]
        for i in range(1, n):
            m = b[:, i].double() - a[:, i] * p[-1]
            p.append(c[:, i] / m)
            q.append((d[:, i] - a[:, i] * q[-1]) / m)
        y = [q[-1]]
        for i in range(n - 2, -1, -1):
            y.append(q[i] - p[i] * y[-1])
        return torch.stack(y[::-1], 1)

    return against(launched, reference)


@triton.jit
def seven_products_kernel(a_ptr, b_ptr, c_ptr, M2, N2, K2, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Strassen's step: quarters of both matrices are added before seven products, and the products after.
    m = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    n = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    c11 = tl.zeros((BM, BN), dtype=tl.float32)
    c12 = tl.zeros((BM, BN), dtype=tl.float32)
    c21 = tl.zeros((BM, BN), dtype=tl.float32)
    c22 = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, K2, BK):
        ka = k0 + tl.arange(0, BK)[None, :]
        kb = k0 + tl.arange(0, BK)[:, None]
        ma = (m < M2) & (ka < K2)
        mb = (kb < K2) & (n < N2)
        a11 = tl.load(a_ptr + m * lda + ka, mask=ma, other=0.0)
        a12 = tl.load(a_ptr + m * lda + K2 + ka, mask=ma, other=0.0)
        a21 = tl.load(a_ptr + (m + M2) * lda + ka, mask=ma, other=0.0)
        a22 = tl.load(a_ptr + (m + M2) * lda + K2 + ka, mask=ma, other=0.0)
        b11 = tl.load(b_ptr + kb * ldb + n, mask=mb, other=0.0)
        b12 = tl.load(b_ptr + kb * ldb + N2 + n, mask=mb, other=0.0)
        b21 = tl.load(b_ptr + (kb + K2) * ldb + n, mask=mb, other=0.0)
        b22 = tl.load(b_ptr + (kb + K2) * ldb + N2 + n, mask=mb, other=0.0)
        p = tl.dot(a11 + a22, b11 + b22)
        c11 += p
        c22 += p
        p = tl.dot(a21 + a22, b11)
        c21 += p
        c22 -= p
        p = tl.dot(a11, b12 - b22)
        c12 += p
        c22 += p
        p = tl.dot(a22, b21 - b11)
        c11 += p
        c21 += p
        p = tl.dot(a11 + a12, b22)
        c11 -= p
        c12 += p
        c22 = tl.dot(a21 - a11, b11 + b12, c22)
        c11 = tl.dot(a12 - a22, b21 + b22, c11)
    ok = (m < M2) & (n < N2)
    tl.store(c_ptr + m * ldc + n, c11.to(tl.float16), mask=ok)
    tl.store(c_ptr + m * ldc + N2 + n, c12.to(tl.float16), mask=ok)
    tl.store(c_ptr + (m + M2) * ldc + n, c21.to(tl.float16), mask=ok)
    tl.store(c_ptr + (m + M2) * ldc + N2 + n, c22.to(tl.float16), mask=ok)


@case
def garden_of_seven_products(m=1800, n=1500, k=1300):
    a, b, c = rand(m, k), rand(k, n), zeros(m, n)
    launched = run(seven_products_kernel, (cdiv(m // 2, 64), cdiv(n // 2, 64)), (a, b, c, m // 2, n // 2, k // 2, k, n, n), c, BM=64, BN=64, BK=32, num_warps=8, num_stages=2)
    return against(launched, lambda: a.float() @ b.float())


@triton.jit
def words_through_machines_kernel(text_ptr, moves_ptr, reach_ptr, texts, T, CHUNKS, S: tl.constexpr, CHUNK: tl.constexpr, B: tl.constexpr):
    # Which states of a machine a piece of text leads to which: a matrix of bits for each letter, multiplied on in three axes, several texts at once.
    text = tl.program_id(0) * B + tl.arange(0, B)
    chunk = tl.program_id(1)
    i = tl.arange(0, S)[None, :, None]
    j = tl.arange(0, S)[None, None, :]
    reach = tl.where(i == j, 1.0, 0.0).to(tl.float16) + tl.zeros((B, S, S), dtype=tl.float16)
    for t in range(chunk * CHUNK, min((chunk + 1) * CHUNK, T)):
        letter = tl.load(text_ptr + text * T + t, mask=text < texts, other=0).to(tl.int32)
        move = tl.load(moves_ptr + letter[:, None, None] * (S * S) + i * S + j)
        paths = tl.dot(reach, move)
        reach = (paths > 0).to(tl.float16)
    at = (text[:, None, None] * CHUNKS + chunk) * (S * S) + i * S + j
    tl.store(reach_ptr + at, reach.to(tl.int8), mask=text[:, None, None] < texts)


@case
def garden_of_words_through_machines(texts=400, t=500, letters=10, s=16, chunk=24):
    text = ints(0, letters, texts, t, dtype="uint8")
    moves = F.one_hot(uniform(letters, s).argsort(1), s) * (uniform(letters, s, 1) > 0.05)
    moves = ((moves > 0) | (uniform(letters, s, s) < 0.004)).to(torch.float16)
    chunks = cdiv(t, chunk)
    reach = zeros(texts, chunks, s, s, dtype="int8")
    launched = run(words_through_machines_kernel, (cdiv(texts, 4), chunks), (text, moves, reach, texts, t, chunks), reach, S=s, CHUNK=chunk, B=4, num_warps=4)

    def reference():
        y = []
        for c in range(0, t, chunk):
            x = torch.eye(s, device=text.device).expand(texts, s, s)
            for k in range(c, min(c + chunk, t)):
                x = ((x @ moves[text[:, k].long()].float()) > 0).float()
            y.append(x)
        return torch.stack(y, 1).to(torch.int8)

    return against(launched, reference)


@triton.jit
def forward_rates_kernel(z_ptr, root_ptr, start_ptr, vol_ptr, rates_ptr, value_ptr, paths, steps, tau, dt, strike, R: tl.constexpr, BLOCK: tl.constexpr):
    # Forward rates of a market along paths: normals are correlated by a product a step, drifts are sums over the rates before; in the end what a swap is worth.
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r = tl.arange(0, R)
    ok = p[:, None] < paths
    root = tl.load(root_ptr + r[None, :] * R + r[:, None])
    vol = tl.load(vol_ptr + r)[None, :]
    f = tl.load(start_ptr + r)[None, :] + tl.zeros((BLOCK, R), dtype=tl.float32)
    for s in range(steps):
        z = tl.load(z_ptr + (s * paths + p[:, None]).to(tl.int64) * R + r[None, :], mask=ok, other=0.0)
        w = tl.dot(z, root, input_precision="ieee")
        share = tau * f * vol / (1.0 + tau * f)
        alive = r[None, :] > s
        drift = vol * tl.cumsum(tl.where(alive, share, 0.0), axis=1)
        grown = f * tl.exp((drift - 0.5 * vol * vol) * dt + vol * tl.sqrt(dt) * w)
        f = tl.where(alive, grown, f)
    discount = tl.exp(-tl.cumsum(tl.log(1.0 + tau * f), axis=1))
    value = tl.sum(discount * tau * (f - strike), axis=1)
    tl.store(rates_ptr + p[:, None] * R + r[None, :], f, mask=ok)
    tl.store(value_ptr + p, tl.maximum(value, 0.0), mask=p < paths)


@case
def garden_of_forward_rates(paths=12000, steps=30, rates=32, tau=0.5, dt=0.5, strike=0.035):
    i = torch.arange(rates, device="cuda").float()
    root = torch.linalg.cholesky(torch.exp(-0.1 * (i[:, None] - i[None]).abs())).contiguous()
    start, vol = 0.03 + 0.0005 * i, 0.25 - 0.003 * i
    z = f32(steps, paths, rates)
    f, value = zeros(paths, rates, dtype="float32"), zeros(paths, dtype="float32")
    launched = run(forward_rates_kernel, (cdiv(paths, 32),), (z, root, start, vol, f, value, paths, steps, tau, dt, strike), (f, value), R=rates, BLOCK=32, num_warps=4)

    def reference():
        x, v = start.double().expand(paths, -1), vol.double()
        for s in range(steps):
            alive = i > s
            drift = v * (tau * x * v / (1 + tau * x) * alive).cumsum(1)
            x = torch.where(alive, x * torch.exp((drift - v * v / 2) * dt + v * dt**0.5 * (z[s].double() @ root.double().t())), x)
        d = 1 / (1 + tau * x).cumprod(1)
        return x, (d * tau * (x - strike)).sum(1).clamp(min=0)

    return against(launched, reference)


@triton.jit
def determinants_by_series_kernel(e_ptr, out_ptr, terms_ptr, terms, N: tl.constexpr):
    # log det(I + E) as traces of powers over their number with turning signs; a matrix a program, and how many terms until they are small.
    pid = tl.program_id(0)
    i = tl.arange(0, N)[:, None]
    j = tl.arange(0, N)[None, :]
    e = tl.load(e_ptr + pid * N * N + i * N + j)
    power = e
    total = 0.0
    k = 1
    sign = 1.0
    large = 1.0
    while (k <= terms) & (large > 1e-5):
        trace = tl.sum(tl.sum(tl.where(i == j, power, 0.0), axis=1), axis=0)
        total += sign * trace / k
        large = tl.max(tl.max(tl.abs(power), axis=1), axis=0)
        power = tl.dot(power, e, input_precision="ieee")
        sign = -sign
        k += 1
    tl.store(out_ptr + pid, total)
    tl.store(terms_ptr + pid, (k < terms + 1).to(tl.int32))


@case
def garden_of_determinants_by_series(b=700, n=64, terms=40):
    x = f32(b, n, n)
    e = (x + x.transpose(1, 2)) * (0.5 / (2 * n) ** 0.5 * 0.5)
    e = e + torch.eye(n, device="cuda") * 0.1
    out, done = zeros(b, dtype="float32"), zeros(b, dtype="int32")
    launched = run(determinants_by_series_kernel, (b,), (e, out, done, terms), (out, done), N=n, num_warps=4)
    return against(launched, lambda: (torch.logdet(e.double() + torch.eye(n, device=e.device)), torch.ones_like(done)))


@triton.jit
def clouds_of_electrons_kernel(r_ptr, center_ptr, alpha_ptr, kind_ptr, density_ptr, rho_ptr, points, basis, BR: tl.constexpr, BI: tl.constexpr):
    # Density of electrons at points: Gaussians with one of four factors (1, x, y, z) are made in tiles on both sides of a density matrix.
    p = tl.program_id(0) * BR + tl.arange(0, BR)
    ok = p < points
    x = tl.load(r_ptr + 3 * p, mask=ok, other=0.0)[:, None]
    y = tl.load(r_ptr + 3 * p + 1, mask=ok, other=0.0)[:, None]
    z = tl.load(r_ptr + 3 * p + 2, mask=ok, other=0.0)[:, None]
    rho = tl.zeros((BR,), dtype=tl.float32)
    for j0 in range(0, basis, BI):
        j = j0 + tl.arange(0, BI)
        acc = tl.zeros((BR, BI), dtype=tl.float32)
        for i0 in range(0, basis, BI):
            i = i0 + tl.arange(0, BI)
            m = i < basis
            dx = x - tl.load(center_ptr + 3 * i, mask=m, other=0.0)[None, :]
            dy = y - tl.load(center_ptr + 3 * i + 1, mask=m, other=0.0)[None, :]
            dz = z - tl.load(center_ptr + 3 * i + 2, mask=m, other=0.0)[None, :]
            a = tl.load(alpha_ptr + i, mask=m, other=1.0)[None, :]
            kind = tl.load(kind_ptr + i, mask=m, other=0)[None, :]
            factor = tl.where(kind == 0, 1.0, tl.where(kind == 1, dx, tl.where(kind == 2, dy, dz)))
            phi = factor * tl.exp(-a * (dx * dx + dy * dy + dz * dz))
            d = tl.load(density_ptr + i[:, None] * basis + j[None, :], mask=m[:, None] & (j < basis)[None, :], other=0.0)
            acc = tl.dot(phi, d, acc, input_precision="tf32x3")
        m = j < basis
        dx = x - tl.load(center_ptr + 3 * j, mask=m, other=0.0)[None, :]
        dy = y - tl.load(center_ptr + 3 * j + 1, mask=m, other=0.0)[None, :]
        dz = z - tl.load(center_ptr + 3 * j + 2, mask=m, other=0.0)[None, :]
        a = tl.load(alpha_ptr + j, mask=m, other=1.0)[None, :]
        kind = tl.load(kind_ptr + j, mask=m, other=0)[None, :]
        factor = tl.where(kind == 0, 1.0, tl.where(kind == 1, dx, tl.where(kind == 2, dy, dz)))
        phi = factor * tl.exp(-a * (dx * dx + dy * dy + dz * dz))
        rho += tl.sum(acc * phi, axis=1)
    tl.store(rho_ptr + p, rho, mask=ok)


@case
def garden_of_clouds_of_electrons(points=20001, basis=110):
    r, center, alpha = f32(points, 3) * 2, f32(basis, 3) * 1.5, uniform(basis) * 1.5 + 0.1
    kind, c = ints(0, 4, basis), f32(basis, 20) * 0.3
    density, rho = c @ c.t(), zeros(points, dtype="float32")
    launched = run(clouds_of_electrons_kernel, (cdiv(points, 64),), (r, center, alpha, kind, density, rho, points, basis), rho, BR=64, BI=32, num_warps=4, num_stages=2)

    def reference():
        d = r[:, None].double() - center.double()
        e = torch.cat((torch.ones_like(d[..., :1]), d), 2).gather(2, kind.long().expand(len(r), -1)[..., None])[..., 0]
        phi = e * torch.exp(-alpha.double() * (d * d).sum(2))
        return ((phi @ density.double()) * phi).sum(1)

    return against(launched, reference)


@triton.jit
def words_with_parity_kernel(message_ptr, generator_ptr, word_ptr, weight_ptr, n, K, M, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Messages of packed bits times a matrix over two elements: bits become bytes for the product, only the last bit of sums counts, and eight are packed again.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for k0 in tl.range(0, K, BK, num_stages=3):
        k = k0 + tl.arange(0, BK)
        byte = tl.load(message_ptr + m[:, None] * (K // 8) + k[None, :] // 8, mask=(m[:, None] < n) & (k[None, :] < K), other=0)
        bits = ((byte.to(tl.int32) >> (k % 8)[None, :]) & 1).to(tl.int8)
        gen = tl.load(generator_ptr + k[:, None] * M + c[None, :], mask=(k[:, None] < K) & (c[None, :] < M), other=0)
        acc += tl.dot(bits, gen, out_dtype=tl.int32)
    parity = acc & 1
    eights = tl.reshape(parity, (BM, BN // 8, 8))
    packed = tl.sum(eights << tl.arange(0, 8)[None, None, :], axis=2)
    g = tl.program_id(1) * (BN // 8) + tl.arange(0, BN // 8)
    tl.store(word_ptr + m[:, None] * (M // 8) + g[None, :], packed.to(tl.uint8), mask=(m[:, None] < n) & (g[None, :] < M // 8))
    tl.atomic_add(weight_ptr + m, tl.sum(parity, axis=1), mask=m < n)


@case
def garden_of_words_with_parity(n=2500, k=1000, m=1400):
    message = ints(0, 256, n, k // 8, dtype="uint8")
    generator = ints(0, 2, k, m, dtype="int8")
    word, weight = zeros(n, m // 8, dtype="uint8"), zeros(n, dtype="int32")
    launched = run(words_with_parity_kernel, (cdiv(n, 64), cdiv(m, 128)), (message, generator, word, weight, n, k, m), (word, weight), BM=64, BN=128, BK=64, num_warps=4)

    def reference():
        bits = torch.stack([message >> i & 1 for i in range(8)], 2).reshape(n, -1)[:, :k].float()
        parity = (bits @ generator.float()).long() & 1
        return (parity.view(n, -1, 8) << torch.arange(8, device=parity.device)).sum(2).to(torch.uint8), parity.sum(1).int()

    return against(cleared(launched, weight), reference)


@triton.jit
def life_by_bands_kernel(world_ptr, end_ptr, alive_ptr, generations, N: tl.constexpr):
    # Conway's game on a torus: neighbors are counted by a matrix of bands on either side of a world, generation after generation.
    pid = tl.program_id(0)
    i = tl.arange(0, N)[:, None]
    j = tl.arange(0, N)[None, :]
    apart = (i - j + N) % N
    band = ((apart <= 1) | (apart == N - 1)).to(tl.float16)
    x = tl.load(world_ptr + pid * N * N + i * N + j).to(tl.float16)
    for g in range(generations):
        rows = tl.dot(band, x).to(tl.float16)
        around = tl.dot(rows, band)
        x = ((around == 3.0) | ((around == 4.0) & (x > 0))).to(tl.float16)
        tl.store(alive_ptr + pid * generations + g, tl.sum(x.to(tl.int32)))
    tl.store(end_ptr + pid * N * N + i * N + j, x > 0)


@case
def garden_of_life_by_bands(worlds=700, generations=50, n=64):
    world = uniform(worlds, n, n) < 0.35
    end, alive = zeros(worlds, n, n, dtype="bool"), zeros(worlds, generations, dtype="int32")
    launched = run(life_by_bands_kernel, (worlds,), (world, end, alive, generations), (end, alive), N=n, num_warps=4)

    def reference():
        x, counts = world, []
        for _ in range(generations):
            s = sum(x.int().roll(a, 1).roll(b, 2) for a in (-1, 0, 1) for b in (-1, 0, 1))
            x = (s == 3) | (s == 4) & x
            counts.append(x.sum((1, 2)))
        return x, torch.stack(counts, 1).int()

    return against(launched, reference)


@triton.jit
def sliding_tiles_kernel(board_ptr, next_ptr, score_ptr, moved_ptr, n, BLOCK: tl.constexpr):
    # A game of powers of two: all four moves of each board; a line of four is four bytes of a word, from which what is empty or merged is cut.
    b = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    line = tl.arange(0, 4)[None, :]
    ok = (b < n) & (line < 4)
    for move in tl.static_range(4):
        if move == 0:
            first, step = line * 4, 1
        elif move == 1:
            first, step = line * 4 + 3, -1
        elif move == 2:
            first, step = line, 4
        else:
            first, step = line + 12, -4
        word = tl.zeros((BLOCK, 4), dtype=tl.int32)
        for c in tl.static_range(4):
            word |= tl.load(board_ptr + b * 16 + first + c * step, mask=ok, other=0).to(tl.int32) << (8 * c)
        old = word
        for _ in tl.static_range(3):
            for c in tl.static_range(3):
                kept = (1 << (8 * c)) - 1
                empty = ((word >> (8 * c)) & 255) == 0
                word = tl.where(empty, (word & kept) | ((word >> 8) & ~kept), word)
        score = tl.zeros((BLOCK, 4), dtype=tl.int32)
        for c in tl.static_range(3):
            here = (word >> (8 * c)) & 255
            there = (word >> (8 * c + 8)) & 255
            same = (here == there) & (here > 0)
            score += tl.where(same, 2 << here, 0)
            kept = (1 << (8 * c)) - 1
            merged = (word & kept) | ((here + 1) << (8 * c))
            if c < 2:
                merged |= ((word >> 8) & ~((1 << (8 * c + 8)) - 1))
            word = tl.where(same, merged, word)
        for c in tl.static_range(4):
            tl.store(next_ptr + (b * 4 + move) * 16 + first + c * step, ((word >> (8 * c)) & 255).to(tl.uint8), mask=ok)
        tl.store(score_ptr + b * 4 + move, tl.sum(score, axis=1)[:, None], mask=b < n)
        tl.store(moved_ptr + b * 4 + move, tl.max((word != old).to(tl.int32), axis=1)[:, None] > 0, mask=b < n)


@case
def garden_of_sliding_tiles(n=250000):
    board = torch.where(uniform(n, 16) < 0.4, 0, ints(1, 6, n, 16)).to(torch.uint8)
    after, score, moved = zeros(n, 4, 16, dtype="uint8"), zeros(n, 4, dtype="int32"), zeros(n, 4, dtype="bool")
    launched = run(sliding_tiles_kernel, (cdiv(n, 64),), (board, after, score, moved, n), (after, score, moved), BLOCK=64, num_warps=2)

    def reference():
        turns = ((lambda x: x), (lambda x: x.flip(2)), (lambda x: x.transpose(1, 2)), (lambda x: x.transpose(1, 2).flip(2)))
        backs = (turns[0], turns[1], turns[2], (lambda x: x.flip(2).transpose(1, 2)))
        ys, ss, ms = [], [], []
        for turn, back in zip(turns, backs):
            x = turn(board.view(n, 4, 4)).int()
            y = x.gather(2, (x == 0).int().sort(stable=True, dim=2)[1])
            y, s = F.pad(y, (0, 1)), 0
            for c in range(3):
                same = (y[..., c] == y[..., c + 1]) & (y[..., c] > 0)
                merged = torch.cat((y[..., :c], y[..., c : c + 1] + 1, y[..., c + 2 :], torch.zeros_like(y[..., :1])), 2)
                y = torch.where(same[..., None], merged, y)
                s = s + torch.where(same, 1 << y[..., c], 0)
            y = y[..., :4]
            ys.append(back(y).reshape(n, 16))
            ss.append(s.sum(1))
            ms.append((y != x).any(2).any(1))
        return torch.stack(ys, 1).to(torch.uint8), torch.stack(ss, 1), torch.stack(ms, 1)

    return against(launched, reference)
