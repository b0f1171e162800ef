"""Weaves: tiles turned, folded, split, joined, packed and scattered, and rows and middle axes brought down to what somebody needs."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, f32, far, far8, ints, rand, run, uniform, viewed, zeros


@triton.jit
def patches_of_video_unfolded(x_ptr, y_ptr, T, H, W, C: tl.constexpr, BW: tl.constexpr):
    # A token is 2 x 2 x 2 pixels of C channels: the tile has five axes and is turned in registers, rows of pixels go out.
    t, h, w0 = tl.program_id(0) // H, tl.program_id(0) % H, tl.program_id(1) * BW
    b = tl.program_id(2)
    w, f = w0 + tl.arange(0, BW), tl.arange(0, 8 * C)
    x = tl.load(x_ptr + (((b * T + t) * H + h) * W + w)[:, None] * (8 * C) + f[None, :], mask=(w < W)[:, None], other=0.0)
    x = tl.permute(tl.reshape(x, (BW, 2, 2, 2, C)), (4, 1, 2, 0, 3))
    x = tl.reshape(x, (C, 2, 2, 2 * BW))
    c, two = tl.arange(0, C)[:, None, None, None], tl.arange(0, 2)
    column = (2 * w0 + tl.arange(0, 2 * BW))[None, None, None, :]
    frame = ((b * C + c) * 2 * T + 2 * t + two[None, :, None, None]).to(tl.int64)
    at = (frame * 2 * H + 2 * h + two[None, None, :, None]) * 2 * W + column
    tl.store(y_ptr + at, x, mask=column < 2 * W)


@case
def weave_video_of_tokens_of_2x2x2_pixels(b=2, t=8, h=60, w=90):
    c = 16
    x, y = rand(b, t, h, w, 8 * c, dtype="bfloat16"), zeros(b, c, 2 * t, 2 * h, 2 * w, dtype="bfloat16")
    launched = run(patches_of_video_unfolded, (t * h, cdiv(w, 32), b), (x, y, t, h, w), y, C=c, BW=32, num_warps=4)
    return against(launched, lambda: x.reshape(b, t, h, w, 2, 2, 2, c).permute(0, 7, 1, 4, 2, 5, 3, 6).reshape(y.shape))


@triton.jit
def two_least_of_rows(x_ptr, v_ptr, i_ptr, gap_ptr, M, N, ROWS: tl.constexpr, B: tl.constexpr):
    # The least of a row and the next, with their places; how far they are apart is what a matcher asks.
    row, n = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, B)
    ok = (row < M)[:, None] & (n < N)[None, :]
    x = tl.load(x_ptr + row[:, None] * N + n[None, :], mask=ok, other=float("inf")).to(tl.float32)
    first, at = tl.min(x, axis=1), tl.argmin(x, axis=1)
    rest = tl.where(n[None, :] == at[:, None], float("inf"), x)
    second, then = tl.min(rest, 1, return_indices=True)
    pair = tl.join(first, second)
    two = tl.arange(0, 2)
    tl.store(v_ptr + row[:, None] * 2 + two[None, :], pair, mask=(row < M)[:, None])
    tl.store(i_ptr + row[:, None] * 2 + two[None, :], tl.join(at, then), mask=(row < M)[:, None])
    tl.store(gap_ptr + row, (first < 0.8 * second).to(tl.int1), mask=row < M)


@case
def weave_two_least_of_rows_of_701(m=30_000):
    n = 701
    x = uniform(m, n)
    v, i, gap = zeros(m, 2, dtype="float32"), zeros(m, 2, dtype="int32"), zeros(m, dtype="bool")
    launched = run(two_least_of_rows, (cdiv(m, 8),), (x, v, i, gap, m, n), (v, i, gap), ROWS=8, B=1024, num_warps=8)

    def reference():
        values, places = x.topk(2, 1, largest=False)
        return values, places, values[:, 0] < 0.8 * values[:, 1]

    return against(launched, reference)


@triton.jit
def ordered_rows(x_ptr, y_ptr, place_ptr, rank_ptr, M, N, ROWS: tl.constexpr, B: tl.constexpr):
    # Halves and their places in one word, sorted downwards: values, where they stood, and the other way around by a scatter.
    row, n = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, B)
    live, inside = (row < M)[:, None], (n < N)[None, :]
    bits = tl.load(x_ptr + row[:, None] * N + n[None, :], mask=live & inside, other=0.0).to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF
    bits = tl.where(bits >= 0x8000, 0xFFFF - bits, bits + 0x8000)
    word = tl.where(inside, (bits << 8) + (255 - n[None, :]), -1)
    word = tl.sort(word, dim=1, descending=True)
    place = 255 - (word & 255)
    bits = word >> 8
    bits = tl.where(bits >= 0x8000, bits - 0x8000, 0xFFFF - bits)
    at = row[:, None] * N + n[None, :]
    tl.store(y_ptr + at, bits.to(tl.int16).to(tl.float16, bitcast=True), mask=live & inside)
    tl.store(place_ptr + at, place.to(tl.uint8), mask=live & inside)
    tl.store(rank_ptr + row[:, None] * N + place, (n[None, :] + 0 * place).to(tl.uint8), mask=live & inside)


@case
def weave_orders_of_rows_of_96_halves_and_their_inverses(m=40_000):
    n = 96
    x = rand(m, n)
    y, place, rank = zeros(m, n), zeros(m, n, dtype="uint8"), zeros(m, n, dtype="uint8")
    launched = run(ordered_rows, (cdiv(m, 16),), (x, y, place, rank, m, n), (y, place, rank), ROWS=16, B=128, num_warps=4)

    def reference():
        values, places = x.float().sort(dim=1, descending=True, stable=True)
        return values, places, places.argsort(dim=1)

    return against(launched, reference)


@triton.jit
def two_bits_and_scales(q_ptr, s_ptr, y_ptr, t_ptr, N, K, BN: tl.constexpr, BK: tl.constexpr):
    # Four codes a byte, joined twice; scales of 16 are four bits of a byte and a half for 256: rows go out, and columns.
    n, k = tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1) * BK + tl.arange(0, BK)
    byte = tl.load(q_ptr + n[:, None] * (K // 4) + tl.program_id(1) * (BK // 4) + tl.arange(0, BK // 4)[None, :])
    even, odd = tl.join(byte & 3, (byte >> 4) & 3), tl.join((byte >> 2) & 3, byte >> 6)
    code = tl.reshape(tl.join(even, odd), (BN, BK)).to(tl.float32)
    group = tl.program_id(1) * (BK // 16) + tl.arange(0, BK // 16)
    packed = tl.load(s_ptr + n[:, None] * (K // 16) + group[None, :])
    scale, least = (packed & 15).to(tl.float32) / 16.0, (packed >> 4).to(tl.float32) / 8.0
    w = tl.reshape(code, (BN, BK // 16, 16)) * scale[:, :, None] - least[:, :, None]
    w = tl.reshape(w, (BN, BK)).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + n[:, None] * K + k[None, :], w)
    tl.store(t_ptr + k[:, None] * N + n[None, :], tl.trans(w))


@case
def weave_weights_of_two_bits_along_both_axes(n=4096, k=5120):
    q, s = ints(0, 256, n, k // 4, dtype="uint8"), ints(0, 256, n, k // 16, dtype="uint8")
    y, t = zeros(n, k, dtype="bfloat16"), zeros(k, n, dtype="bfloat16")
    launched = run(two_bits_and_scales, (n // 64, k // 128), (q, s, y, t, n, k), (y, t), BN=64, BK=128, num_warps=4)

    def reference():
        # Joins put bits 0, 2, 4 and 6 of a byte in the order in which codes lie.
        codes = torch.stack([(q >> i) & 3 for i in (0, 2, 4, 6)], 2).float().reshape(n, k // 16, 16)
        w = (codes * ((s & 15) / 16)[..., None] - ((s >> 4) / 8)[..., None]).reshape(n, k)
        return w, w.t()

    return against(launched, reference)


@triton.jit
def or_(a, b):
    return a | b


@triton.jit
def eight_rows_to_a_word(w_ptr, q_ptr, s_ptr, N, GROUP: tl.constexpr, BN: tl.constexpr):
    # A group of rows gets a scale a column; eight rows of codes become a word, by a reduction of the middle axis.
    n, k = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, GROUP)
    w = tl.load(w_ptr + (tl.program_id(0) * GROUP + k)[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(w), 0), 1e-5) / 7.0
    code = tl.floor(w / scale[None, :] + 0.5).to(tl.int32) + 8
    code = tl.reshape(tl.minimum(tl.maximum(code, 0), 15), (GROUP // 8, 8, BN)) << (4 * tl.arange(0, 8))[None, :, None]
    word = tl.reduce(code, 1, or_)
    k8 = tl.program_id(0) * (GROUP // 8) + tl.arange(0, GROUP // 8)
    tl.store(q_ptr + k8[:, None] * N + n[None, :], word, mask=(n < N)[None, :])
    tl.store(s_ptr + tl.program_id(0) * N + n, scale.to(s_ptr.dtype.element_ty), mask=n < N)


def nibbles_of(words):
    """Codes of four bits that stand in words, as numbers far from zero."""
    return torch.stack([far((words >> 4 * i) & 15) for i in range(8)])


@case
def weave_eight_rows_of_nibbles_to_a_word(k=5120, n=6000):
    group = 64
    w, q, s = rand(k, n, dtype="bfloat16"), zeros(k // 8, n, dtype="int32"), zeros(k // group, n)
    launched = run(eight_rows_to_a_word, (k // group, cdiv(n, 128)), (w, q, s, n), (q, s), GROUP=group, BN=128, num_warps=4)

    def reference():
        x = w.float().reshape(k // group, group, n)
        scale = x.abs().amax(1).clamp(min=1e-5) / 7
        codes = (torch.floor(x / scale[:, None] + 0.5) + 8).clamp(0, 15)
        return far(codes).reshape(k // 8, 8, n).transpose(0, 1), scale

    return against(viewed(launched, lambda outs: (nibbles_of(outs[0]), outs[1])), reference)


@triton.jit
def mask_to_words(m_ptr, row_ptr, column_ptr, M, N, B: tl.constexpr):
    # A square of booleans becomes a long word a row and a long word a column.
    i, j = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    on = tl.load(m_ptr + i[:, None] * N + j[None, :], mask=(i < M)[:, None] & (j < N)[None, :], other=0).to(tl.int64)
    bit = tl.arange(0, B).to(tl.int64)
    along = tl.sum(on << bit[None, :], 1)
    down = tl.sum(on << bit[:, None], 0)
    tl.store(row_ptr + i * tl.num_programs(1) + tl.program_id(1), along, mask=i < M)
    tl.store(column_ptr + j * tl.num_programs(0) + tl.program_id(0), down, mask=j < N)


@case
def weave_booleans_to_long_words_along_and_down(m=9000, n=12_000):
    mask = uniform(m, n) < 0.4
    along, down = zeros(m, cdiv(n, 64), dtype="int64"), zeros(n, cdiv(m, 64), dtype="int64")
    launched = run(mask_to_words, (cdiv(m, 64), cdiv(n, 64)), (mask, along, down, m, n), (along, down), B=64, num_warps=4)

    def halves(outs):
        return [(out & 0xFFFFFFFF, (out >> 32) & 0xFFFFFFFF) for out in outs]

    def reference():
        def words(x):
            x = F.pad(x, (0, -x.shape[1] % 64)).reshape(x.shape[0], -1, 64).to(torch.int64)
            return (x << arange(64, "int64")).sum(2)

        return halves((words(mask), words(mask.t())))

    return against(viewed(launched, halves), reference)


@triton.jit
def through_own_tables(x_ptr, t_ptr, y_ptr, N, ROWS: tl.constexpr, B: tl.constexpr):
    # Each row has a table of 256 levels, which stays in registers; codes of the row look it up, after a pass of differences.
    row, n, level = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, B), tl.arange(0, 256)
    table = tl.load(t_ptr + row[:, None] * 256 + level[None, :])
    carried = tl.zeros((ROWS,), tl.int32)
    for n0 in range(0, N, B):
        at = row[:, None].to(tl.int64) * N + n0 + n[None, :]
        ok = (n0 + n < N)[None, :]
        steps = tl.load(x_ptr + at, mask=ok, other=0).to(tl.int32)
        code = (tl.cumsum(steps, 1) + carried[:, None]) & 255
        carried = (carried + tl.sum(steps, 1)) & 255
        tl.store(y_ptr + at, tl.gather(table, code, 1), mask=ok)


@case
def weave_differences_through_tables_of_rows(m=4096, n=6001):
    x, table, y = ints(0, 256, m, n, dtype="uint8"), rand(m, 256, dtype="bfloat16"), zeros(m, n, dtype="bfloat16")
    launched = run(through_own_tables, (m // 4,), (x, table, y, n), y, ROWS=4, B=512, num_warps=4)
    return against(launched, lambda: table.gather(1, x.long().cumsum(1) & 255))


@triton.jit
def clipped_by_share(x_ptr, q_ptr, s_ptr, N, K, B: tl.constexpr, BINS: tl.constexpr):
    # Magnitudes of a channel are counted in bins up to the largest; beyond the bin where K are passed all are cut, then bytes.
    c, n = tl.program_id(0).to(tl.int64), tl.arange(0, B)
    most = tl.zeros((B,), tl.float32)
    for n0 in range(0, N, B):
        most = tl.maximum(most, tl.abs(tl.load(x_ptr + c * N + n0 + n, mask=n0 + n < N, other=0.0).to(tl.float32)))
    step = tl.maximum(tl.max(most, 0), 1e-6) / BINS
    counts = tl.zeros((BINS,), tl.int32)
    for n0 in range(0, N, B):
        x = tl.load(x_ptr + c * N + n0 + n, mask=n0 + n < N, other=0.0).to(tl.float32)
        bin = tl.minimum((tl.abs(x) / step).to(tl.int32), BINS - 1)
        counts += tl.histogram(bin, BINS, mask=n0 + n < N)
    bins = tl.arange(0, BINS)
    edge = tl.min(tl.where(tl.cumsum(counts, 0) >= K, bins, BINS), 0)
    scale = (edge + 1).to(tl.float32) * step / 127.0
    tl.store(s_ptr + c, scale)
    for n0 in range(0, N, B):
        x = tl.load(x_ptr + c * N + n0 + n, mask=n0 + n < N, other=0.0).to(tl.float32)
        code = tl.minimum(tl.maximum(x / scale, -127.0), 127.0)
        tl.store(q_ptr + c * N + n0 + n, tl.floor(code + 0.5).to(tl.int8), mask=n0 + n < N)


@case
def weave_channels_to_bytes_cut_where_all_but_few_are(c=1024, n=20_000, share=0.995):
    x = rand(c, n)
    q, s = zeros(c, n, dtype="int8"), zeros(c, dtype="float32")
    launched = run(clipped_by_share, (c,), (x, q, s, n, int(n * share)), (q, s), B=2048, BINS=512, num_warps=8)

    def reference():
        step = x.float().abs().amax(1, keepdim=True).clamp(min=1e-6) / 512
        bins = (x.float().abs() / step).long().clamp(max=511).sort(1)[0]
        scale = (bins[:, int(n * share) - 1 :][:, :1] + 1) * step / 127
        return far(torch.floor((x.float() / scale).clamp(-127, 127) + 0.5)), scale[:, 0]

    return against(viewed(launched, lambda outs: (far(outs[0]), outs[1])), reference)


@triton.jit
def windows_to_bytes(x_ptr, y_ptr, s_ptr, H, W, C, OW, ROWS: tl.constexpr, B: tl.constexpr):
    # A row is a window of 3 x 3 of all channels, places by division; the largest of a window gives the scale of its bytes.
    r, k = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, B)
    b = tl.program_id(1)
    oy, ox = r // OW, r % OW
    ty, tx, c = k // (3 * C), k // C % 3, k % C
    y, x = oy[:, None] * 2 + ty[None, :] - 1, ox[:, None] * 2 + tx[None, :] - 1
    ok = (y >= 0) & (y < H) & (x >= 0) & (x < W) & (k < 9 * C)[None, :] & (r < OW * (H // 2))[:, None]
    v = tl.load(x_ptr + ((b * H + y) * W + x) * C + c[None, :], mask=ok, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v), 1), 1e-6) / 127.0
    out = b * OW * (H // 2) + r
    live = r < OW * (H // 2)
    tl.store(y_ptr + out[:, None] * (9 * C) + k[None, :], tl.floor(v / scale[:, None] + 0.5).to(tl.int8), mask=live[:, None] & (k < 9 * C)[None, :])
    tl.store(s_ptr + out, scale, mask=live)


@case
def weave_windows_of_48_channels_to_rows_of_bytes(b=32, h=112, w=112):
    c = 48
    x = rand(b, h, w, c)
    rows = (h // 2) * (w // 2)
    y, s = zeros(b, rows, 9 * c, dtype="int8"), zeros(b, rows, dtype="float32")
    launched = run(windows_to_bytes, (cdiv(rows, 4), b), (x, y, s, h, w, c, w // 2), (y, s), ROWS=4, B=512, num_warps=4)

    def reference():
        v = F.unfold(x.permute(0, 3, 1, 2).float(), 3, padding=1, stride=2).reshape(b, c, 9, rows).permute(0, 3, 2, 1).reshape(b, rows, 9 * c)
        scale = v.abs().amax(2).clamp(min=1e-6) / 127
        return far(torch.floor(v / scale[..., None] + 0.5)), scale

    return against(viewed(launched, lambda outs: (far(outs[0]), outs[1])), reference)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def dilated_along_rows(x_ptr, y_ptr, W, R: tl.constexpr, NB: tl.constexpr):
    # Maxima of 16 in a row by two scans: from behind in a block, and from the front in what the window has of the next.
    row, blk, j = tl.program_id(0), tl.program_id(1) * NB + tl.arange(0, NB), tl.arange(0, R)
    at = blk[:, None] * R + j[None, :]
    base = x_ptr + row.to(tl.int64) * W
    here = tl.load(base + at, mask=at < W, other=float("-inf")).to(tl.float32)
    beyond = at + R - 1
    there = tl.load(base + beyond, mask=(beyond < W) & (j > 0)[None, :], other=float("-inf")).to(tl.float32)
    behind = tl.associative_scan(here, 1, larger, reverse=True)
    front = tl.associative_scan(there, 1, larger)
    tl.store(y_ptr + row.to(tl.int64) * W + at, tl.maximum(behind, front).to(y_ptr.dtype.element_ty), mask=at < W)


@case
def weave_maxima_of_16_along_rows_by_two_scans(m=6000, w=5003):
    x, y = rand(m, w, dtype="bfloat16"), zeros(m, w, dtype="bfloat16")
    launched = run(dilated_along_rows, (m, cdiv(w, 16 * 64)), (x, y, w), y, R=16, NB=64, num_warps=4)
    return against(launched, lambda: F.max_pool1d(F.pad(x.float(), (0, 15), value=float("-inf")), 16, 1))


@triton.jit
def twice_as_large(x_ptr, skip_ptr, y_ptr, H, W, BH: tl.constexpr, BW: tl.constexpr):
    # Four phases of a linear enlargement, woven by interleaving columns and then rows; a skip connection is added.
    y, x, plane = tl.program_id(1) * BH + tl.arange(0, BH), tl.program_id(0) * BW + tl.arange(0, BW), tl.program_id(2)
    up, down = tl.maximum(y - 1, 0), tl.minimum(y + 1, H - 1)
    left, right = tl.maximum(x - 1, 0), tl.minimum(x + 1, W - 1)
    base = x_ptr + plane * H * W
    ok = (y < H)[:, None] & (x < W)[None, :]
    mid = tl.load(base + y[:, None] * W + x[None, :], mask=ok, other=0.0).to(tl.float32) * 0.75
    l = mid + 0.25 * tl.load(base + y[:, None] * W + left[None, :], mask=ok, other=0.0).to(tl.float32)
    r = mid + 0.25 * tl.load(base + y[:, None] * W + right[None, :], mask=ok, other=0.0).to(tl.float32)
    centre = tl.interleave(l, r)
    x2 = tl.program_id(0) * 2 * BW + tl.arange(0, 2 * BW)
    okx = (x2 < 2 * W)[None, :]
    # Rows above and below are made from the same columns.
    near = tl.where(x2 % 2 == 0, tl.maximum(x2 // 2 - 1, 0), tl.minimum(x2 // 2 + 1, W - 1))
    a = 0.75 * tl.load(base + up[:, None] * W + (x2 // 2)[None, :], mask=(y < H)[:, None] & okx, other=0.0).to(tl.float32)
    a += 0.25 * tl.load(base + up[:, None] * W + near[None, :], mask=(y < H)[:, None] & okx, other=0.0).to(tl.float32)
    b = 0.75 * tl.load(base + down[:, None] * W + (x2 // 2)[None, :], mask=(y < H)[:, None] & okx, other=0.0).to(tl.float32)
    b += 0.25 * tl.load(base + down[:, None] * W + near[None, :], mask=(y < H)[:, None] & okx, other=0.0).to(tl.float32)
    top, bottom = 0.75 * centre + 0.25 * a, 0.75 * centre + 0.25 * b
    both = tl.reshape(tl.permute(tl.join(top, bottom), (0, 2, 1)), (2 * BH, 2 * BW))
    y2 = tl.program_id(1) * 2 * BH + tl.arange(0, 2 * BH)
    at = plane * 4 * H * W + y2[:, None] * (2 * W) + x2[None, :]
    out = both + tl.load(skip_ptr + at, mask=(y2 < 2 * H)[:, None] & okx, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, out.to(y_ptr.dtype.element_ty), mask=(y2 < 2 * H)[:, None] & okx)


@case
def weave_planes_twice_as_large_added_to_a_skip(planes=256, h=75, w=130):
    x, skip, y = rand(planes, h, w), rand(planes, 2 * h, 2 * w), zeros(planes, 2 * h, 2 * w)
    launched = run(twice_as_large, (cdiv(w, 64), cdiv(h, 8), planes), (x, skip, y, h, w), y, BH=8, BW=64, num_warps=4)
    return against(launched, lambda: F.interpolate(x.float()[None], scale_factor=2, mode="bilinear", align_corners=False)[0] + skip.float())


@triton.jit
def heads_parted(x_ptr, q_ptr, k_ptr, v_ptr, T, H, D: tl.constexpr, BT: tl.constexpr):
    # Of each head query, key and value lie together: queries and values go to their heads, keys are turned as well.
    t, h, b = tl.program_id(0) * BT + tl.arange(0, BT), tl.program_id(1), tl.program_id(2)
    d, four = tl.arange(0, D), tl.arange(0, 4)
    ok = t < T
    at = ((b * T + t) * H + h)[:, None, None] * (3 * D) + four[None, :, None] * D + d[None, None, :]
    x = tl.load(x_ptr + at, mask=ok[:, None, None] & (four < 3)[None, :, None], other=0.0)
    even, odd = tl.split(tl.permute(tl.reshape(x, (BT, 2, 2, D)), (0, 1, 3, 2)))
    q, v = tl.split(tl.permute(even, (0, 2, 1)))
    k, _ = tl.split(tl.permute(odd, (0, 2, 1)))
    head = (b * H + h) * T * D
    tl.store(q_ptr + head + t[:, None] * D + d[None, :], q, mask=ok[:, None])
    tl.store(v_ptr + head + t[:, None] * D + d[None, :], v, mask=ok[:, None])
    tl.store(k_ptr + head + d[:, None] * T + t[None, :], k.T, mask=ok[None, :])


@case
def weave_heads_of_three_parted_with_keys_turned(b=8, t=2000, h=16):
    d = 64
    x = rand(b, t, h, 3, d, dtype="bfloat16")
    q, k, v = zeros(b, h, t, d, dtype="bfloat16"), zeros(b, h, d, t, dtype="bfloat16"), zeros(b, h, t, d, dtype="bfloat16")
    launched = run(heads_parted, (cdiv(t, 32), h, b), (x, q, k, v, t, h), (q, k, v), D=d, BT=32, num_warps=4)

    def reference():
        return x[:, :, :, 0].transpose(1, 2), x[:, :, :, 1].permute(0, 2, 3, 1), x[:, :, :, 2].transpose(1, 2)

    return against(launched, reference)


@triton.jit
def rows_to_their_rooms(x_ptr, room_ptr, rank_ptr, start_ptr, y_ptr, s_ptr, D, CAP, K: tl.constexpr, G: tl.constexpr, B: tl.constexpr):
    # A token goes to K rooms: fp8 with a scale for 128, scales stand in columns of their room so that products find them.
    token, d = tl.program_id(0), tl.arange(0, B)
    x = tl.load(x_ptr + token * D + d, mask=d < D, other=0.0).to(tl.float32)
    groups = tl.reshape(x, (B // G, G))
    scale = tl.maximum(tl.max(tl.abs(groups), 1), 1e-4) / 448.0
    y = tl.reshape(groups / scale[:, None], (B,)).to(tl.float8e4nv)
    g = tl.arange(0, B // G)
    for i in tl.static_range(K):
        room = tl.load(room_ptr + token * K + i)
        if room >= 0:
            rank = tl.load(rank_ptr + token * K + i)
            row = tl.load(start_ptr + room) + rank
            tl.store(y_ptr + row.to(tl.int64) * D + d, y, mask=d < D)
            tl.store(s_ptr + room * CAP * (D // G) + g * CAP + rank, scale, mask=g < D // G)


@case
def weave_tokens_to_rooms_of_experts_in_fp8(tokens=6000, d=3584, rooms=32):
    k, g = 4, 128
    x = rand(tokens, d, dtype="bfloat16")
    room = torch.argsort(uniform(tokens, rooms), dim=1)[:, :k]
    room = torch.where(uniform(tokens, k) < 0.1, -1, room).to(torch.int32)
    hot = (room.reshape(-1, 1) == arange(rooms)[None, :]).to(torch.int32)
    rank = ((hot.cumsum(0) - 1) * hot).sum(1).to(torch.int32).reshape(tokens, k)
    start = torch.cat([zeros(1, dtype="int32"), hot.sum(0).cumsum(0)[:-1].to(torch.int32)])
    cap = tokens
    y, s = zeros(tokens * k, d, dtype="float8_e4m3fn"), zeros(rooms, d // g, cap, dtype="float32")
    launched = run(rows_to_their_rooms, (tokens,), (x, room, rank, start, y, s, d, cap), (y, s), K=k, G=g, B=4096, num_warps=4)

    def reference():
        groups = x.float().reshape(tokens, d // g, g)
        scale = groups.abs().amax(2).clamp(min=1e-4) / 448
        codes = (groups / scale[..., None]).reshape(tokens, d).to(torch.float8_e4m3fn)
        out, scales = torch.zeros(tokens * k, d, device=x.device, dtype=torch.uint8), torch.zeros_like(s)
        token, i = (room >= 0).nonzero(as_tuple=True)
        where, place = room[token, i].long(), rank[token, i].long()
        out[start[where].long() + place] = codes.view(torch.uint8)[token]
        scales[where, :, place] = scale[token]
        return far8(out.view(torch.float8_e4m3fn)), scales

    return against(viewed(launched, lambda outs: (far8(outs[0]), outs[1])), reference)


@triton.jit
def larger_with_place(v1, i1, v2, i2):
    first = (v1 > v2) | ((v1 == v2) & (i1 < i2))
    return tl.where(first, v1, v2), tl.where(first, i1, i2)


@triton.jit
def middle_to_three(x_ptr, best_ptr, lse_ptr, mean_ptr, N, C, BN: tl.constexpr, BC: tl.constexpr):
    # Over the middle axis: the best and its place by a reduction of pairs, the logarithm of the sum, and the expected place.
    a, c, n = tl.program_id(1), tl.program_id(0) * BC + tl.arange(0, BC), tl.arange(0, BN)
    ok = (n < N)[:, None] & (c < C)[None, :]
    x = tl.load(x_ptr + (a * N + n)[:, None] * C + c[None, :], mask=ok, other=-30000.0).to(tl.float32)
    value, place = tl.reduce((x, tl.broadcast_to(n[:, None], (BN, BC))), 0, larger_with_place)
    e = tl.where(ok, tl.exp(x - value[None, :]), 0.0)
    total = tl.sum(e, 0)
    out = a * C + c
    tl.store(best_ptr + out, place, mask=c < C)
    tl.store(lse_ptr + out, value + tl.log(total), mask=c < C)
    tl.store(mean_ptr + out, tl.sum(e * n[:, None].to(tl.float32), 0) / total, mask=c < C)


@case
def weave_best_and_expected_of_a_middle_axis_of_37(a=2500, c=300):
    n = 37
    x = f32(a, n, c)
    best, lse, mean = zeros(a, c, dtype="int16"), zeros(a, c, dtype="float32"), zeros(a, c, dtype="float32")
    launched = run(middle_to_three, (cdiv(c, 64), a), (x, best, lse, mean, n, c), (best, lse, mean), BN=64, BC=64, num_warps=4)

    def reference():
        return x.argmax(1), x.logsumexp(1), (x.softmax(1) * arange(n).float()[None, :, None]).sum(1)

    return against(launched, reference)


@triton.jit
def sequences_backwards(x_ptr, cu_ptr, y_ptr, D, BT: tl.constexpr, BD: tl.constexpr):
    # A sequence of a ragged batch from its end: a tile is read as it lies, flipped in registers and written to the mirror's place.
    tile, seq = tl.program_id(0), tl.program_id(1)
    begin, end = tl.load(cu_ptr + seq), tl.load(cu_ptr + seq + 1)
    length = end - begin
    if tile * BT >= length:
        return
    t, d = tile * BT + tl.arange(0, BT), tl.program_id(2) * BD + tl.arange(0, BD)
    x = tl.load(x_ptr + (begin + t).to(tl.int64)[:, None] * D + d[None, :], mask=(t < length)[:, None] & (d < D)[None, :], other=0.0)
    x = tl.flip(x, 0)
    mirror = length - (tile + 1) * BT + tl.arange(0, BT)
    tl.store(y_ptr + (begin + mirror).to(tl.int64)[:, None] * D + d[None, :], x, mask=(mirror >= 0)[:, None] & (d < D)[None, :])


@case
def weave_ragged_sequences_from_their_ends(seqs=48, long=1600, d=700):
    lengths = ints(1, long, seqs)
    cu = torch.cat([zeros(1, dtype="int32"), lengths.cumsum(0).to(torch.int32)])
    x, y = f32(seqs * long, d), zeros(seqs * long, d, dtype="float32")
    launched = run(sequences_backwards, (cdiv(long, 32), seqs, cdiv(d, 128)), (x, cu, y, d), y, BT=32, BD=128, num_warps=4)

    def reference():
        out = torch.zeros_like(y)
        for begin, end in zip(cu[:-1].tolist(), cu[1:].tolist()):
            out[begin:end] = x[begin:end].flip(0)
        return out

    return against(launched, reference)


@triton.jit
def lists_to_squares(l_ptr, y_ptr, d_ptr, N, B: tl.constexpr):
    # The list of a lower triangle becomes both halves of a square; a tile below the diagonal is written twice, once turned.
    b, p = tl.program_id(1), tl.program_id(0)
    i = tl.floor((tl.sqrt(8.0 * p.to(tl.float32) + 1.0) - 1.0) / 2.0).to(tl.int32)
    j = p - i * (i + 1) // 2
    r, c = i * B + tl.arange(0, B)[:, None], j * B + tl.arange(0, B)[None, :]
    base = b.to(tl.int64) * (N * (N + 1) // 2)
    low, high = tl.minimum(r, c), tl.maximum(r, c)
    ok = (r < N) & (c < N)
    x = tl.load(l_ptr + base + high * (high + 1) // 2 + low, mask=ok, other=0.0)
    square = b.to(tl.int64) * N * N
    tl.store(y_ptr + square + r * N + c, x, mask=ok)
    if i != j:
        tl.store(y_ptr + square + tl.trans(c) * N + tl.trans(r), tl.trans(x), mask=tl.trans(ok))
    else:
        tl.store(d_ptr + b * N + i * B + tl.arange(0, B), tl.sum(tl.where(r == c, x, 0.0), 1), mask=i * B + tl.arange(0, B) < N)


@case
def weave_squares_of_400_from_lists_of_triangles(b=250, n=400):
    x = f32(b, n * (n + 1) // 2)
    y, d = zeros(b, n, n, dtype="float32"), zeros(b, n, dtype="float32")
    tiles = cdiv(n, 32)
    launched = run(lists_to_squares, (tiles * (tiles + 1) // 2, b), (x, y, d, n), (y, d), B=32, num_warps=4)

    def reference():
        i, j = torch.tril_indices(n, n, device=x.device)
        out = torch.zeros_like(y)
        out[:, i, j], out[:, j, i] = x, x
        return out, out.diagonal(dim1=1, dim2=2)

    return against(launched, reference)
