"""Pavilions: signals, pictures, orders and bits: wavelets by lifting, tones, edges kept, runs, digits, thresholds by bits, quantiles, registers of a sketch, words apart, Z order, butterflies, integrators, colors, blocks of cosines, one-bit streams."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, far, ints, rand, run, viewed, zeros


@triton.jit
def haar_levels_kernel(x_ptr, out_ptr, n_chunks, BLOCK: tl.constexpr, LEVELS: tl.constexpr):
    # Five levels of Haar's wavelet inside chunks: sums are split again, differences leave at once.
    pid = tl.program_id(0)
    base = pid.to(tl.int64) * BLOCK
    a = tl.load(x_ptr + base + tl.arange(0, BLOCK))
    for level in tl.static_range(LEVELS):
        left, right = tl.split(tl.reshape(a, (BLOCK >> (level + 1), 2)))
        a = (left + right) * 0.7071067811865476
        tl.store(out_ptr + base + (BLOCK >> (level + 1)) + tl.arange(0, BLOCK >> (level + 1)), (left - right) * 0.7071067811865476)
    tl.store(out_ptr + base + tl.arange(0, BLOCK >> LEVELS), a)


@case
def pavilion_of_haar_levels(chunks=12000, block=1024, levels=5):
    x, out = f32(chunks, block), zeros(chunks, block, dtype="float32")
    launched = run(haar_levels_kernel, (chunks,), (x, out, chunks), out, BLOCK=block, LEVELS=levels, num_warps=1)

    def reference():
        a, details = x.double(), []
        for _ in range(levels):
            details.append((a[:, ::2] - a[:, 1::2]) * 0.5**0.5)
            a = (a[:, ::2] + a[:, 1::2]) * 0.5**0.5
        return torch.cat([a, *details[::-1]], 1)

    return against(launched, reference)


@triton.jit
def _order3(a, b, c):
    lo = tl.minimum(tl.minimum(a, b), c)
    hi = tl.maximum(tl.maximum(a, b), c)
    mid = tl.maximum(tl.minimum(a, b), tl.minimum(tl.maximum(a, b), c))
    return lo, mid, hi


@triton.jit
def median_nine_shorts_kernel(img_ptr, dst_ptr, H, W, stride, BH: tl.constexpr, BW: tl.constexpr):
    # The median of 3x3 pixels of sixteen bits; borders repeat.
    y = tl.program_id(1) * BH + tl.arange(0, BH)[:, None]
    x = tl.program_id(0) * BW + tl.arange(0, BW)[None, :]
    ym = tl.minimum(tl.maximum(y - 1, 0), H - 1) * stride
    y0 = tl.minimum(y, H - 1) * stride
    yp = tl.minimum(y + 1, H - 1) * stride
    xm = tl.minimum(tl.maximum(x - 1, 0), W - 1)
    x0 = tl.minimum(x, W - 1)
    xp = tl.minimum(x + 1, W - 1)
    l0, m0, h0 = _order3(tl.load(img_ptr + ym + xm), tl.load(img_ptr + y0 + xm), tl.load(img_ptr + yp + xm))
    l1, m1, h1 = _order3(tl.load(img_ptr + ym + x0), tl.load(img_ptr + y0 + x0), tl.load(img_ptr + yp + x0))
    l2, m2, h2 = _order3(tl.load(img_ptr + ym + xp), tl.load(img_ptr + y0 + xp), tl.load(img_ptr + yp + xp))
    top = tl.maximum(tl.maximum(l0, l1), l2)
    _, mid, _ = _order3(m0, m1, m2)
    low = tl.minimum(tl.minimum(h0, h1), h2)
    _, med, _ = _order3(top, mid, low)
    tl.store(dst_ptr + y * W + x, med, mask=(y < H) & (x < W))


@case
def pavilion_of_median_of_nine(h=3100, w=4100, pad=28):
    img, dst = ints(-3000, 3000, h, w + pad, dtype="int16"), zeros(h, w, dtype="int16")
    launched = run(median_nine_shorts_kernel, (cdiv(w, 128), cdiv(h, 8)), (img, dst, h, w, img.stride(0)), dst, BH=8, BW=128, num_warps=8, num_stages=2)

    def reference():
        p = F.pad(img[None, None, :, :w].float(), (1, 1, 1, 1), mode="replicate")[0, 0]
        return torch.stack([p[i : i + h, j : j + w] for i in range(3) for j in range(3)]).median(0)[0]

    return against(launched, reference)


@triton.jit
def goertzel_tones_kernel(x_ptr, coef_ptr, pow_ptr, n_frames, T, K, BF: tl.constexpr, BK: tl.constexpr):
    # Goertzel's recurrence of many frames and tones at once: a long chain of two states.
    f = tl.program_id(0) * BF + tl.arange(0, BF)
    k = tl.arange(0, BK)
    c = tl.load(coef_ptr + k, mask=k < K, other=0.0)[None, :]
    s1 = tl.zeros([BF, BK], tl.float32)
    s2 = tl.zeros([BF, BK], tl.float32)
    ptr = x_ptr + f * T
    for t in range(T):
        v = tl.load(ptr + t, mask=f < n_frames, other=0.0)
        s0 = v[:, None] + c * s1 - s2
        s2 = s1
        s1 = s0
    power = s1 * s1 + s2 * s2 - c * s1 * s2
    tl.store(pow_ptr + f[:, None] * K + k[None, :], power, mask=(f[:, None] < n_frames) & (k[None, :] < K))


@case
def pavilion_of_tones_by_goertzel(frames=40000, t=205, k=24):
    x, power = f32(frames, t), zeros(frames, k, dtype="float32")
    coef = 2 * torch.cos(2 * math.pi * (arange(k).float() * 3 + 12) / t)
    launched = run(goertzel_tones_kernel, (cdiv(frames, 32),), (x, coef, power, frames, t, k), power, BF=32, BK=32, num_warps=4)

    def reference():
        spectrum = torch.fft.rfft(x.double())
        return spectrum.abs().square()[:, 12 : 12 + 3 * k : 3]

    return against(launched, reference)


@triton.jit
def bilateral_window_kernel(src, dst, height, width, inv_sigma_r, inv_sigma_s, R: tl.constexpr, TILE: tl.constexpr):
    # A bilateral filter over a flat row of pixels for each program; pixels outside of the picture have no weight.
    row = tl.program_id(0)
    col = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inside = col < width
    center = tl.load(src + row * width + col, mask=inside, other=0.0)
    num = tl.zeros((TILE,), dtype=tl.float32)
    den = tl.zeros((TILE,), dtype=tl.float32)
    for dy in tl.static_range(-R, R + 1):
        r = row + dy
        row_ok = (r >= 0) & (r < height)
        for dx in tl.static_range(-R, R + 1):
            c = col + dx
            ok = inside & row_ok & (c >= 0) & (c < width)
            p = tl.load(src + r * width + c, mask=ok, other=0.0, eviction_policy="evict_last")
            d = p - center
            w = tl.exp(-(d * d) * inv_sigma_r - (dx * dx + dy * dy) * inv_sigma_s)
            w = tl.where(ok, w, 0.0)
            num += w * p
            den += w
    tl.store(dst + row * width + col, num / den, mask=inside)


@case
def pavilion_of_kept_edges(h=2200, w=2600, r=2):
    src, dst = f32(h, w), zeros(h, w, dtype="float32")
    launched = run(bilateral_window_kernel, (h, cdiv(w, 512)), (src, dst, h, w, 0.8, 0.15), dst, R=r, TILE=512, num_warps=2, num_stages=1)

    def reference():
        p = F.pad(src, (r, r, r, r), value=float("nan"))
        num, den = 0, 0
        for i in range(-r, r + 1):
            for j in range(-r, r + 1):
                q = p[r + i : r + i + h, r + j : r + j + w]
                weight = torch.exp(-0.8 * (q - src) ** 2 - 0.15 * (i * i + j * j))
                num, den = num + (weight * q).nan_to_num(0.0), den + weight.nan_to_num(0.0)
        return num / den

    return against(launched, reference)


@triton.jit
def _run_combine(n_a, start_a, n_b, start_b):
    return tl.where(start_b != 0, n_b, n_a + n_b), start_a | start_b


@triton.jit
def place_in_run_kernel(x_ptr, place_ptr, longest_ptr, runs_ptr, cols, BLOCK: tl.constexpr):
    # How far each byte is into its run: a segmented scan of a whole row.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    ok = i < cols
    here = tl.load(x_ptr + row * cols + i, mask=ok, other=-1)
    before = tl.load(x_ptr + row * cols + i - 1, mask=ok & (i > 0), other=-1)
    start = (here != before).to(tl.int32)
    place, _ = tl.associative_scan((tl.full((BLOCK,), 1, tl.int32), start), 0, _run_combine)
    tl.store(place_ptr + row * cols + i, place.to(tl.int16), mask=ok)
    tl.store(longest_ptr + row, tl.max(tl.where(ok, place, 0), 0))
    tl.store(runs_ptr + row, tl.sum(tl.where(ok, start, 0), 0))


@case
def pavilion_of_places_in_runs(rows=9000, cols=3900):
    x = (f32(rows, cols) > 0.9).to(torch.int8) * 3
    place, longest, runs = zeros(rows, cols, dtype="int16"), zeros(rows, dtype="int32"), zeros(rows, dtype="int32")
    launched = run(place_in_run_kernel, (rows,), (x, place, longest, runs, cols), (place, longest, runs), BLOCK=4096, num_warps=8)

    def reference():
        start = F.pad(x[:, 1:] != x[:, :-1], (1, 0), value=True)
        i = arange(cols, "int64").expand(rows, cols)
        first = torch.where(start, i, 0).cummax(1)[0]
        p = i - first + 1
        return p.to(torch.int16), p.amax(1), start.sum(1)

    return against(launched, reference)


@triton.jit
def digits_of_long_keys_kernel(keys_ptr, hist_ptr, n, SHIFT: tl.constexpr, BLOCK: tl.constexpr, DIGITS: tl.constexpr):
    # The first pass of a radix sort of 64-bit numbers: several digits are counted while the keys are here.
    bins = tl.arange(0, 256)
    step = tl.num_programs(0) * BLOCK
    for digit in tl.static_range(DIGITS):
        counts = tl.zeros([256], dtype=tl.int32)
        for start in range(tl.program_id(0) * BLOCK, n, step):
            at = start + tl.arange(0, BLOCK)
            ok = at < n
            key = tl.load(keys_ptr + at, mask=ok, other=0)
            d = ((key >> (SHIFT + 8 * digit)) & 255).to(tl.int32)
            counts += tl.histogram(d, 256, mask=ok)
        tl.atomic_add(hist_ptr + digit * 256 + bins, counts, mask=counts > 0, sem="relaxed")


@case
def pavilion_of_digits_of_long_keys(n=7_000_003, shift=24, programs=528):
    keys, hist = ints(-(2**62), 2**62, n, dtype="int64"), zeros(3, 256, dtype="int32")
    launched = run(digits_of_long_keys_kernel, (programs,), (keys, hist, n), hist, SHIFT=shift, BLOCK=2048, DIGITS=3, num_warps=8)
    return against(cleared(launched, hist), lambda: torch.stack([torch.bincount((keys >> shift + 8 * i) & 255, minlength=256) for i in range(3)]))


@triton.jit
def kth_by_bits_kernel(x_ptr, kth_ptr, above_ptr, n_cols, k, stride_row, BLOCK: tl.constexpr):
    # The k-th largest of a row, one bit of its ordered code after another, and the sum of what is above it.
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    ok = cols < n_cols
    x = tl.load(x_ptr + row * stride_row + cols, mask=ok, other=0.0)
    bits = x.to(tl.uint32, bitcast=True)
    code = tl.where((bits >> 31) != 0, bits ^ 0xFFFFFFFF, bits | 0x80000000)
    code = tl.where(ok, code, 0).to(tl.uint32)
    found = tl.zeros((1,), dtype=tl.uint32)
    one = tl.full((1,), 1, dtype=tl.uint32)
    for b in range(32):
        trial = found | (one << (31 - b))
        many = tl.sum((code >= trial).to(tl.int32), axis=0)
        found = tl.where(many >= k, trial, found)
    back = tl.where((found >> 31) != 0, found & 0x7FFFFFFF, found ^ 0xFFFFFFFF)
    value = back.to(tl.uint32).to(tl.float32, bitcast=True)
    tl.store(kth_ptr + row + tl.arange(0, 1), value)
    tl.store(above_ptr + row, tl.sum(tl.where(ok & (code > found), x, 0.0), axis=0))


@case
def pavilion_of_kth_by_bits(rows=5000, cols=3333, k=100):
    x, kth, above = f32(rows, cols), zeros(rows, dtype="float32"), zeros(rows, dtype="float32")
    launched = run(kth_by_bits_kernel, (rows,), (x, kth, above, cols, k, x.stride(0)), (kth, above), BLOCK=4096, num_warps=8)

    def reference():
        top = x.topk(k, dim=1)[0]
        last = top[:, -1]
        return last, torch.where(x > last[:, None], x, 0.0).sum(1)

    return against(launched, reference)


@triton.jit
def octiles_of_half_rows_kernel(x_ptr, q_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr, Q: tl.constexpr):
    # Rows of halves are sorted, several in a program, and quantiles are taken between two of them.
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=(rows[:, None] < n_rows) & (cols[None, :] < n_cols), other=float("inf"))
    s = tl.sort(x, dim=1)
    j = tl.arange(0, Q)
    pos = (j.to(tl.float32) + 0.5) / Q * (n_cols - 1)
    lo = tl.floor(pos).to(tl.int32)
    frac = pos - lo
    hi = tl.minimum(lo + 1, n_cols - 1)
    a = tl.gather(s, tl.broadcast_to(lo[None, :], (ROWS, Q)), axis=1).to(tl.float32)
    b = tl.gather(s, tl.broadcast_to(hi[None, :], (ROWS, Q)), axis=1).to(tl.float32)
    tl.store(q_ptr + rows[:, None] * Q + j[None, :], a + (b - a) * frac[None, :], mask=rows[:, None] < n_rows)


@case
def pavilion_of_octiles(rows=20000, cols=400):
    x, q = rand(rows, cols), zeros(rows, 8, dtype="float32")
    launched = run(octiles_of_half_rows_kernel, (cdiv(rows, 2),), (x, q, rows, cols), q, ROWS=2, BLOCK=512, Q=8, num_warps=4)

    def reference():
        levels = (arange(8).double() + 0.5) / 8
        return torch.cat([x[i : i + 5000].double().quantile(levels, dim=1).t() for i in range(0, rows, 5000)])

    return against(launched, reference)


@triton.jit
def registers_of_distinct_kernel(key_ptr, reg_ptr, per_set, BLOCK: tl.constexpr, LOG: tl.constexpr):
    # HyperLogLog: keys are mixed as in splitmix64, and the registers keep the longest row of zeros.
    s = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < per_set
    h = tl.load(key_ptr + s * per_set + i, mask=ok, other=0).to(tl.uint64, bitcast=True)
    h += 0x9E3779B97F4A7C15
    h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9
    h = (h ^ (h >> 27)) * 0x94D049BB133111EB
    h = h ^ (h >> 31)
    reg = (h >> (64 - LOG)).to(tl.int32)
    rest = (h >> (32 - LOG)).to(tl.uint32)
    zeros_ = tl.zeros((BLOCK,), tl.int32)
    for e in tl.static_range(5):
        empty = (rest >> (32 - (16 >> e))) == 0
        zeros_ += tl.where(empty, 16 >> e, 0)
        rest = tl.where(empty, rest << (16 >> e), rest)
    rank = zeros_ + tl.where((rest >> 31) == 0, 2, 1)
    tl.atomic_max(reg_ptr + s * (1 << LOG) + reg, rank, mask=ok)


@case
def pavilion_of_registers_of_distinct(sets=24, per_set=300_000, log=10):
    keys, reg = ints(0, 1 << 40, sets, per_set, dtype="int64"), zeros(sets, 1 << log, dtype="int32")
    launched = run(registers_of_distinct_kernel, (cdiv(per_set, 1024), sets), (keys, reg, per_set), reg, BLOCK=1024, LOG=log, num_warps=4)

    def reference():
        def logical(v, by):
            return (v >> by) & ((1 << (64 - by)) - 1)

        h = keys + (0x9E3779B97F4A7C15 - 2**64)
        h = (h ^ logical(h, 30)) * (0xBF58476D1CE4E5B9 - 2**64)
        h = (h ^ logical(h, 27)) * (0x94D049BB133111EB - 2**64)
        h = h ^ logical(h, 31)
        r = logical(h, 64 - log)
        rest = logical(h, 32 - log) & 0xFFFFFFFF
        rank = torch.where(rest == 0, 33, 32 - torch.floor(torch.log2(rest.clamp(min=1).double())).long())
        out = torch.zeros(sets, 1 << log, dtype=torch.int64, device=keys.device)
        return out.scatter_reduce(1, r, rank, "amax")

    return against(cleared(launched, reg), reference)


@triton.jit
def _ones_of(v):
    v = v - ((v >> 1) & 0x55555555)
    v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
    v = (v + (v >> 4)) & 0x0F0F0F0F
    return (v * 0x01010101) >> 24


@triton.jit
def bits_apart_kernel(a_ptr, b_ptr, d_ptr, best_ptr, N, M, W: tl.constexpr, BN: tl.constexpr, BM: tl.constexpr):
    # Hamming distances of all pairs of signatures, with each first one's least.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    best = tl.full((BN,), 32767, tl.int32)
    for m0 in range(0, M, BM):
        m = m0 + tl.arange(0, BM)
        acc = tl.zeros((BN, BM), dtype=tl.uint32)
        for w in range(W):
            a = tl.load(a_ptr + n * W + w, mask=n < N, other=0).to(tl.uint32, bitcast=True)
            b = tl.load(b_ptr + m * W + w, mask=m < M, other=0).to(tl.uint32, bitcast=True)
            acc += _ones_of(a[:, None] ^ b[None, :])
        d = acc.to(tl.int32)
        ok = (n[:, None] < N) & (m[None, :] < M)
        tl.store(d_ptr + n[:, None] * M + m[None, :], d.to(tl.int16), mask=ok)
        best = tl.minimum(best, tl.min(tl.where(ok, d, 32767), axis=1))
    tl.store(best_ptr + n, best, mask=n < N)


@case
def pavilion_of_bits_apart(n=4500, m=1800, w=8):
    a, b = ints(-(2**31), 2**31, n, w), ints(-(2**31), 2**31, m, w)
    d, best = zeros(n, m, dtype="int16"), zeros(n, dtype="int32")
    launched = run(bits_apart_kernel, (cdiv(n, 16),), (a, b, d, best, n, m), (d, best), W=w, BN=16, BM=64, num_warps=2)

    def reference():
        shifts = arange(32)
        x, y = (((v[:, :, None] >> shifts) & 1).flatten(1).float() for v in (a, b))
        apart = (x @ (1 - y).t() + (1 - x) @ y.t()).round()
        return apart, apart.amin(1)

    return against(launched, reference)


@triton.jit
def _spread3(v):
    v = v & 0x1FFFFF
    v = (v | (v << 32)) & 0x1F00000000FFFF
    v = (v | (v << 16)) & 0x1F0000FF0000FF
    v = (v | (v << 8)) & 0x100F00F00F00F00F
    v = (v | (v << 4)) & 0x10C30C30C30C30C3
    v = (v | (v << 2)) & 0x1249249249249249
    return v


@triton.jit
def z_order_of_points_kernel(p_ptr, lo_ptr, inv_ptr, code_ptr, n, BLOCK: tl.constexpr):
    # Points in a box become Z-order codes of 63 bits.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    code = tl.zeros((BLOCK,), dtype=tl.int64)
    for axis in tl.static_range(3):
        v = tl.load(p_ptr + i * 3 + axis, mask=m, other=0.0)
        q = ((v - tl.load(lo_ptr + axis)) * tl.load(inv_ptr + axis)).to(tl.int32)
        q = tl.minimum(tl.maximum(q, 0), (1 << 21) - 1)
        code |= _spread3(q.to(tl.int64)) << axis
    tl.store(code_ptr + i, code, mask=m)


@case
def pavilion_of_z_order(n=5_000_011):
    grid_points = ints(0, 1 << 21, n, 3)
    p = grid_points.float() * 0.25
    lo, inv = zeros(3, dtype="float32"), zeros(3, dtype="float32") + 4.0
    code = zeros(n, dtype="int64")
    launched = run(z_order_of_points_kernel, (cdiv(n, 512),), (p, lo, inv, code, n), code, BLOCK=512, num_warps=16)

    def view(c):
        return torch.stack([(c & 0x7FFFFFFF), c >> 31], 1)

    def reference():
        out = torch.zeros_like(code)
        for bit in range(21):
            for axis in range(3):
                out |= ((grid_points[:, axis].long() >> bit) & 1) << (3 * bit + axis)
        return view(out)

    return against(viewed(launched, view), reference)


@triton.jit
def reversed_places_window_kernel(src_ptr, win_ptr, dst_ptr, LOGN: tl.constexpr, BLOCK: tl.constexpr):
    # What comes before a transform in place: samples under a window go to places with reversed bits, as complex pairs.
    N: tl.constexpr = 1 << LOGN
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.program_id(1).to(tl.int64)
    r = tl.zeros((BLOCK,), dtype=tl.int32)
    v = j
    for _ in range(LOGN):
        r = (r << 1) | (v & 1)
        v = v >> 1
    w = tl.load(win_ptr + r)
    re = tl.load(src_ptr + row * (2 * N) + 2 * r) * w
    im = tl.load(src_ptr + row * (2 * N) + 2 * r + 1) * w
    out = tl.join(re, -im)
    at = j[:, None] * 2 + tl.arange(0, 2)[None, :]
    tl.store(dst_ptr + row * (2 * N) + at, out)


@case
def pavilion_of_reversed_places(batch=700, logn=13):
    n = 1 << logn
    src, dst = f32(batch, n, 2), zeros(batch, n, 2, dtype="float32")
    win = torch.hann_window(n, device=src.device)
    launched = run(reversed_places_window_kernel, (n // 256, batch), (src, win, dst), dst, LOGN=logn, BLOCK=256, num_warps=4)

    def reference():
        y = torch.view_as_complex(src * win[:, None]).conj().resolve_conj()
        y = y.view(batch, *[2] * logn).permute(0, *range(logn, 0, -1)).reshape(batch, n)
        return torch.view_as_real(y)

    return against(launched, reference)


@triton.jit
def radix_four_stage_kernel(re_ptr, im_ptr, ore_ptr, oim_ptr, n, INVERSE: tl.constexpr, BLOCK: tl.constexpr):
    # One radix-4 stage in Stockham's order of long transforms, real and imaginary parts apart.
    q = n // 4
    k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = k < q
    base = tl.program_id(1) * n
    ar = tl.load(re_ptr + base + k, mask=m, other=0.0)
    ai = tl.load(im_ptr + base + k, mask=m, other=0.0)
    br = tl.load(re_ptr + base + k + q, mask=m, other=0.0)
    bi = tl.load(im_ptr + base + k + q, mask=m, other=0.0)
    cr = tl.load(re_ptr + base + k + 2 * q, mask=m, other=0.0)
    ci = tl.load(im_ptr + base + k + 2 * q, mask=m, other=0.0)
    dr = tl.load(re_ptr + base + k + 3 * q, mask=m, other=0.0)
    di = tl.load(im_ptr + base + k + 3 * q, mask=m, other=0.0)
    sign: tl.constexpr = 1.0 if INVERSE else -1.0
    angle = sign * 6.283185307179586 * k.to(tl.float32) / n
    c1, s1 = tl.cos(angle), tl.sin(angle)
    c2, s2 = c1 * c1 - s1 * s1, 2 * c1 * s1
    c3, s3 = c1 * c2 - s1 * s2, c1 * s2 + s1 * c2
    pr, pi = ar + cr, ai + ci
    mr, mi = ar - cr, ai - ci
    tr, ti = br + dr, bi + di
    ur, ui = -sign * (bi - di), sign * (br - dr)
    out = base + 4 * k
    tl.store(ore_ptr + out, pr + tr, mask=m)
    tl.store(oim_ptr + out, pi + ti, mask=m)
    xr, xi = mr + ur, mi + ui
    tl.store(ore_ptr + out + 1, xr * c1 - xi * s1, mask=m)
    tl.store(oim_ptr + out + 1, xr * s1 + xi * c1, mask=m)
    xr, xi = pr - tr, pi - ti
    tl.store(ore_ptr + out + 2, xr * c2 - xi * s2, mask=m)
    tl.store(oim_ptr + out + 2, xr * s2 + xi * c2, mask=m)
    xr, xi = mr - ur, mi - ui
    tl.store(ore_ptr + out + 3, xr * c3 - xi * s3, mask=m)
    tl.store(oim_ptr + out + 3, xr * s3 + xi * c3, mask=m)


@case
def pavilion_of_radix_four(batch=40, n=200_000):
    re, im = f32(batch, n), f32(batch, n)
    ore, oim = zeros(batch, n, dtype="float32"), zeros(batch, n, dtype="float32")
    launched = run(radix_four_stage_kernel, (cdiv(n // 4, 256), batch), (re, im, ore, oim, n), (ore, oim), INVERSE=False, BLOCK=256, num_warps=2)

    def reference():
        x = torch.complex(re, im).to(torch.complex128).view(batch, 4, n // 4)
        y = torch.fft.fft(x, dim=1).transpose(1, 2)
        kj = (arange(n // 4, "int64")[:, None] * arange(4, "int64")).double()
        y = (y * torch.polar(torch.ones_like(kj), -2 * math.pi * kj / n)).reshape(batch, n)
        return y.real, y.imag

    return against(launched, reference)


@triton.jit
def thrice_integrated_decimated_kernel(x_ptr, y_ptr, T, n_out, RATE: tl.constexpr, BLOCK: tl.constexpr):
    # The integrators of a CIC filter: three running sums that wrap around, of which every eighth is kept.
    ch = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    c1 = 0
    c2 = 0
    c3 = 0
    for t0 in range(0, T, BLOCK):
        t = t0 + i
        x = tl.load(x_ptr + ch * T + t, mask=t < T, other=0).to(tl.int32)
        s1 = tl.cumsum(x, 0) + c1
        s2 = tl.cumsum(s1, 0) + c2
        s3 = tl.cumsum(s2, 0) + c3
        c1 += tl.sum(x, 0)
        c2 += tl.sum(s1, 0)
        c3 += tl.sum(s2, 0)
        keep = (t < T) & (t % RATE == RATE - 1)
        tl.store(y_ptr + ch * n_out + t // RATE, s3, mask=keep)


@case
def pavilion_of_integrators(channels=3000, t=5000, rate=8):
    x, y = ints(-2048, 2048, channels, t, dtype="int16"), zeros(channels, t // rate, dtype="int32")
    launched = run(thrice_integrated_decimated_kernel, (channels,), (x, y, t, t // rate), y, RATE=rate, BLOCK=512, num_warps=2)

    def view(v):
        return v.long() & 0xFFFFFF

    return against(viewed(launched, view), lambda: view(x.long().cumsum(1).cumsum(1).cumsum(1)[:, rate - 1 :: rate]))


@triton.jit
def planes_420_to_pixels_kernel(y_ptr, u_ptr, v_ptr, rgb_ptr, H, W, BLOCK_H: tl.constexpr, BLOCK_W: tl.constexpr):
    # Video in three planes, colors at half size, to bytes of red, green and blue, in fixed point.
    r = tl.program_id(0) * BLOCK_H + tl.arange(0, BLOCK_H)[:, None]
    c = tl.program_id(1) * BLOCK_W + tl.arange(0, BLOCK_W)[None, :]
    ok = (r < H) & (c < W)
    half = W // 2
    luma = tl.load(y_ptr + r * W + c, mask=ok, other=16).to(tl.int32) - 16
    d = tl.load(u_ptr + (r >> 1) * half + (c >> 1), mask=ok, other=128).to(tl.int32) - 128
    e = tl.load(v_ptr + (r >> 1) * half + (c >> 1), mask=ok, other=128).to(tl.int32) - 128
    red = (298 * luma + 409 * e + 128) >> 8
    green = (298 * luma - 100 * d - 208 * e + 128) >> 8
    blue = (298 * luma + 516 * d + 128) >> 8
    at = rgb_ptr + (r * W + c) * 3
    tl.store(at, tl.minimum(tl.maximum(red, 0), 255).to(tl.uint8), mask=ok)
    tl.store(at + 1, tl.minimum(tl.maximum(green, 0), 255).to(tl.uint8), mask=ok)
    tl.store(at + 2, tl.minimum(tl.maximum(blue, 0), 255).to(tl.uint8), mask=ok)


@case
def pavilion_of_planes_to_pixels(h=4320, w=5000):
    y, u, v = ints(0, 256, h, w, dtype="uint8"), ints(0, 256, h // 2, w // 2, dtype="uint8"), ints(0, 256, h // 2, w // 2, dtype="uint8")
    rgb = zeros(h, w, 3, dtype="uint8")
    launched = run(planes_420_to_pixels_kernel, (cdiv(h, 4), cdiv(w, 256)), (y, u, v, rgb, h, w), rgb, BLOCK_H=4, BLOCK_W=256, num_warps=4)

    def reference():
        a = y.int() - 16
        d, e = (p.repeat_interleave(2, 0).repeat_interleave(2, 1).int() - 128 for p in (u, v))
        out = torch.stack([298 * a + 409 * e, 298 * a - 100 * d - 208 * e, 298 * a + 516 * d], 2)
        return ((out + 128) >> 8).clamp(0, 255)

    return against(launched, reference)


@triton.jit
def cosine_blocks_coded_kernel(img_ptr, basis_ptr, q_ptr, out_ptr, W, blocks_w, n_blocks, NB: tl.constexpr):
    # 8x8 blocks of a picture to cosines by sums over an axis of four, then rounded by a table.
    b = tl.program_id(0) * NB + tl.arange(0, NB)
    ok = b < n_blocks
    i = tl.arange(0, 8)
    top = (b // blocks_w) * 8
    left = (b % blocks_w) * 8
    at = (top[:, None, None] + i[None, :, None]) * W + left[:, None, None] + i[None, None, :]
    x = tl.load(img_ptr + at, mask=ok[:, None, None], other=128).to(tl.float32) - 128.0
    basis = tl.load(basis_ptr + i[:, None] * 8 + i[None, :])
    down = tl.sum(basis[None, :, :, None] * x[:, None, :, :], axis=2)
    both = tl.sum(down[:, :, None, :] * basis[None, None, :, :], axis=3)
    q = tl.load(q_ptr + i[:, None] * 8 + i[None, :])
    code = tl.floor(both / q[None, :, :] + 0.5)
    code = tl.minimum(tl.maximum(code, -127.0), 127.0)
    tl.store(out_ptr + b[:, None, None] * 64 + i[None, :, None] * 8 + i[None, None, :], code.to(tl.int8), mask=ok[:, None, None])


@case
def pavilion_of_cosine_blocks(h=2400, w=3600):
    img = (f32(h, w) * 30 + 128).clamp(0, 255).to(torch.uint8)
    k = arange(8).double()
    basis = torch.cos((2 * k[None, :] + 1) * k[:, None] * math.pi / 16) * 0.5
    basis = torch.where(k[:, None] == 0, 0.125**0.5, basis)
    q = ints(4, 40, 8, 8).float()
    n_blocks = h // 8 * (w // 8)
    out = zeros(n_blocks, 8, 8, dtype="int8")
    launched = run(cosine_blocks_coded_kernel, (cdiv(n_blocks, 8),), (img, basis.float(), q, out, w, w // 8, n_blocks), out, NB=8, num_warps=4)

    def reference():
        x = img.double().view(h // 8, 8, w // 8, 8).permute(0, 2, 1, 3).reshape(-1, 8, 8) - 128
        return far((basis @ x @ basis.t() / q + 0.5).floor().clamp(-127, 127))

    return against(viewed(launched, far), reference)


@triton.jit
def one_bit_streams_kernel(x_ptr, word_ptr, state_ptr, T, C, gain, BLOCK: tl.constexpr):
    # A modulator of second order turns samples of many channels into single bits, 32 in a word, one after another.
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = c < C
    first = tl.zeros([BLOCK], dtype=tl.int32)
    second = tl.zeros([BLOCK], dtype=tl.int32)
    for word in range(T // 32):
        bits = tl.zeros([BLOCK], dtype=tl.int32)
        for j in range(32):
            x = tl.load(x_ptr + (word * 32 + j) * C + c, mask=ok, other=0).to(tl.int32)
            high = second >= 0
            back = tl.where(high, gain, -gain)
            first += x - back
            second += first - (back >> 1)
            second = tl.minimum(tl.maximum(second, -(1 << 24)), 1 << 24)
            bits |= high.to(tl.int32) << j
        tl.store(word_ptr + word * C + c, bits, mask=ok)
    tl.store(state_ptr + c, first, mask=ok)
    tl.store(state_ptr + C + c, second, mask=ok)


@case
def pavilion_of_one_bit_streams(t=512, c=40000, gain=4096):
    x = ints(-2000, 2000, t, c, dtype="int16")
    words, state = zeros(t // 32, c, dtype="int32"), zeros(2, c, dtype="int32")
    launched = run(one_bit_streams_kernel, (cdiv(c, 64),), (x, words, state, t, c, gain), (words, state), BLOCK=64, num_warps=2)

    def view(outs):
        return outs[0] & 0xFFFF, (outs[0] >> 16) & 0xFFFF, outs[1]

    def reference():
        first, second = torch.zeros(2, c, dtype=torch.int32, device=x.device)
        out = torch.zeros_like(words)
        for i in range(t):
            high = second >= 0
            back = torch.where(high, gain, -gain).int()
            first = first + x[i] - back
            second = (second + first - (back >> 1)).clamp(-(1 << 24), 1 << 24)
            out[i // 32] |= high.int() << (i % 32)
        return view((out, torch.stack([first, second])))

    return against(viewed(launched, view), reference)
