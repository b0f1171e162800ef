"""Tiles taken apart and folded: scans and reductions of tuples along all axes, sorts, gathers, splits and joins, bytes, and descriptors."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

from .common import case, cdiv, cleared, f32, far8, ints, rand, run, uniform, viewed, zeros


@triton.jit
def _affine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def recurrence_backward(a_ptr, h_ptr, dy_ptr, da_ptr, db_ptr, T, D, BT: tl.constexpr, BD: tl.constexpr):
    # h[t] = a[t] h[t-1] + b[t]: gradients flow from the last chunk to the first, by reversed scans of pairs along time.
    b = tl.program_id(1)
    t, d = tl.arange(0, BT), tl.program_id(0) * BD + tl.arange(0, BD)
    dm = (d < D)[None, :]
    carry = tl.zeros((BD,), tl.float32)
    for c in range(tl.cdiv(T, BT) - 1, -1, -1):
        s = c * BT + t
        at = (b * T + s)[:, None] * D + d[None, :]
        live = (s < T)[:, None] & dm
        dy = tl.load(dy_ptr + at, mask=live, other=0.0).to(tl.float32)
        after = tl.load(a_ptr + at + D, mask=(s + 1 < T)[:, None] & dm, other=0.0).to(tl.float32)
        decay, grad = tl.associative_scan((after, dy), 0, _affine, reverse=True)
        grad += decay * carry[None, :]
        before = tl.load(h_ptr + at - D, mask=live & (s > 0)[:, None], other=0.0).to(tl.float32)
        tl.store(da_ptr + at, (grad * before).to(da_ptr.dtype.element_ty), mask=live)
        tl.store(db_ptr + at, grad.to(db_ptr.dtype.element_ty), mask=live)
        carry = tl.sum(tl.where((t == 0)[:, None], grad, 0.0), axis=0)


@case
def recurrence_gradients_reversed_scan():
    b, t, d = 16, 1000, 1100
    x = lambda: rand(b, t, d, dtype="bfloat16")
    da, db = zeros(b, t, d, dtype="bfloat16"), zeros(b, t, d, dtype="bfloat16")
    args = uniform(b, t, d).bfloat16(), x(), x(), da, db, t, d
    return run(recurrence_backward, (cdiv(d, 64), b), args, (da, db), BT=64, BD=64, num_warps=4)


@triton.jit
def _soft(m1, s1, w1, m2, s2, w2):
    m = tl.maximum(m1, m2)
    e1, e2 = tl.exp2(m1 - m), tl.exp2(m2 - m)
    return m, s1 * e1 + s2 * e2, w1 * e1 + w2 * e2


@triton.jit
def prefix_attention(s_ptr, v_ptr, o_ptr, H, D: tl.constexpr, T: tl.constexpr, BH: tl.constexpr):
    # Attention of one query as a recurrence: all prefixes by a scan of triples along the middle axis of [heads, time, features].
    b = tl.program_id(0)
    h = tl.program_id(1) * BH + tl.arange(0, BH)
    t, d = tl.arange(0, T), tl.arange(0, D)
    hm = (h < H)[:, None, None]
    s = tl.load(s_ptr + (b * H + h)[:, None, None] * T + t[None, :, None] + d[None, None, :] * 0, mask=hm, other=0.0)
    at = ((b * H + h)[:, None, None] * T + t[None, :, None]) * D + d[None, None, :]
    v = tl.load(v_ptr + at, mask=hm, other=0.0).to(tl.float32)
    _, total, weighted = tl.associative_scan((s * 1.44269504, tl.full((BH, T, D), 1.0, tl.float32), v), 1, _soft)
    tl.store(o_ptr + at, (weighted / total).to(o_ptr.dtype.element_ty), mask=hm)


@case
def attn_prefixes_by_scan_of_triples():
    b, h, t, d = 1000, 15, 64, 32
    o = zeros(b, h, t, d)
    return run(prefix_attention, (b, cdiv(h, 2)), (f32(b, h, t) * 2, rand(b, h, t, d), o, h), o, D=d, T=t, BH=2, num_warps=8)


@triton.jit
def _welford(m1, s1, n1, m2, s2, n2):
    n = n1 + n2
    d = m2 - m1
    part = tl.where(n > 0, n2 / n, 0.0)
    return m1 + d * part, s1 + s2 + d * d * n1 * part, n


@triton.jit
def sequence_norm(x_ptr, len_ptr, y_ptr, B, L, C, eps, BB: tl.constexpr, BL: tl.constexpr, BC: tl.constexpr):
    # Each channel of padded sequences by its mean and deviation over time: the middle axis of [batch, time, channel].
    b = tl.program_id(1) * BB + tl.arange(0, BB)
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    length = tl.load(len_ptr + b, mask=b < B, other=0)
    mean = tl.zeros((BB, BC), tl.float32)
    m2 = tl.zeros((BB, BC), tl.float32)
    count = tl.zeros((BB, BC), tl.float32)
    longest = tl.max(length)
    for l0 in range(0, longest, BL):
        l = l0 + tl.arange(0, BL)
        live = (l[None, :] < length[:, None])[:, :, None] & (c < C)[None, None, :]
        x = tl.load(x_ptr + (b[:, None, None] * L + l[None, :, None]) * C + c[None, None, :], mask=live, other=0.0).to(tl.float32)
        pm, ps, pn = tl.reduce((x, x * 0.0, live.to(tl.float32)), 1, _welford)
        mean, m2, count = _welford(mean, m2, count, pm, ps, pn)
    scale = tl.rsqrt(m2 / tl.maximum(count, 1.0) + eps)
    for l0 in range(0, L, BL):
        l = l0 + tl.arange(0, BL)
        inside = (b < B)[:, None, None] & (l < L)[None, :, None] & (c < C)[None, None, :]
        live = inside & (l[None, :] < length[:, None])[:, :, None]
        at = (b[:, None, None] * L + l[None, :, None]) * C + c[None, None, :]
        x = tl.load(x_ptr + at, mask=live, other=0.0).to(tl.float32)
        y = tl.where(live, (x - mean[:, None, :]) * scale[:, None, :], 0.0)
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=inside)


@case
def sequence_norm_over_middle_axis():
    b, l, c = 50, 700, 300
    y = zeros(b, l, c)
    args = rand(b, l, c), ints(100, l + 1, b), y, b, l, c, 1e-5
    return run(sequence_norm, (cdiv(c, 32), cdiv(b, 2)), args, y, BB=2, BL=32, BC=32, num_warps=4)


@triton.jit
def assign_binary_codes(x_ptr, code_ptr, out_ptr, dist_ptr, count_ptr, N, K, WORDS: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr):
    # The first of the nearest codes by differing bits: ties are the rule; the minimum runs over axis 0.
    n, k = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    best = tl.full((BN,), 1 << 20, tl.int32)
    where = tl.zeros((BN,), tl.int32)
    for k0 in range(0, K, BK):
        dist = tl.zeros((BK, BN), tl.int32)
        for w in tl.static_range(WORDS):
            x = tl.load(x_ptr + n * WORDS + w, mask=n < N, other=0)
            c = tl.load(code_ptr + (k0 + k) * WORDS + w, mask=k0 + k < K, other=0)
            v = (x[None, :] ^ c[:, None]).to(tl.uint32)
            v = v - ((v >> 1) & 0x55555555)
            v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
            dist += ((((v + (v >> 4)) & 0x0F0F0F0F) * 0x01010101) >> 24).to(tl.int32)
        dist = tl.where((k0 + k < K)[:, None], dist, 1 << 20)
        low, at = tl.min(dist, axis=0, return_indices=True)
        where = tl.where(low < best, k0 + at, where)
        best = tl.minimum(best, low)
    tl.store(out_ptr + n, where.to(tl.int16), mask=n < N)
    tl.store(dist_ptr + n, best.to(tl.uint8), mask=n < N)
    tl.atomic_add(count_ptr + where, 1, mask=n < N, sem="relaxed")


@case
def nearest_binary_codes_with_ties():
    n, k, words = 100_000, 500, 2
    out, dist, count = zeros(n, dtype="int16"), zeros(n, dtype="uint8"), zeros(k, dtype="int32")
    bits = lambda rows: ints(-(2**31), 2**31 - 1, rows, words)
    args = bits(n), bits(k), out, dist, count, n, k
    return cleared(run(assign_binary_codes, (cdiv(n, 128),), args, (out, dist, count), WORDS=words, BK=32, BN=128, num_warps=4), count)


@triton.jit
def robust_rows(x_ptr, median_ptr, mad_ptr, trimmed_ptr, M, N, CUT, BM: tl.constexpr, BN: tl.constexpr):
    # Median, median deviation and trimmed mean, by two sorts of each row.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    live = (m < M)[:, None] & (n < N)[None, :]
    x = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=live, other=float("inf"))
    s = tl.sort(x, dim=1)
    middle = (n == (N - 1) // 2)[None, :]
    median = tl.sum(tl.where(middle, s, 0.0).to(tl.float32), axis=1)
    inner = ((n >= CUT) & (n < N - CUT))[None, :]
    trimmed = tl.sum(tl.where(inner, s, 0.0).to(tl.float32), axis=1) / (N - 2 * CUT)
    away = tl.where(live, tl.abs(x.to(tl.float32) - median[:, None]), -1.0)
    away = tl.sort(away, dim=1, descending=True)
    mad = tl.sum(tl.where((n == N // 2)[None, :], away, 0.0), axis=1)
    tl.store(median_ptr + m, median, mask=m < M)
    tl.store(mad_ptr + m, mad, mask=m < M)
    tl.store(trimmed_ptr + m, trimmed, mask=m < M)


@case
def robust_statistics_by_two_sorts():
    m, n = 20_000, 201
    out = zeros(m, dtype="float32"), zeros(m, dtype="float32"), zeros(m, dtype="float32")
    return run(robust_rows, (cdiv(m, 8),), (rand(m, n), *out, m, n, 20), out, BM=8, BN=256, num_warps=4)


@triton.jit
def route_dense(x_ptr, bias_ptr, w_ptr, floor_ptr, load_ptr, M, E: tl.constexpr, K: tl.constexpr, BM: tl.constexpr):
    # Weights of the best K experts as a dense matrix, zero elsewhere; which are the best is read off the smallest of them.
    m, e = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, E)
    x = tl.load(x_ptr + m[:, None] * E + e[None, :], mask=(m < M)[:, None], other=0.0).to(tl.float32)
    x += tl.load(bias_ptr + e)[None, :]
    best = tl.topk(x, K, dim=1)
    floor, top = tl.min(best, axis=1), tl.max(best, axis=1)
    total = tl.sum(tl.exp(best - top[:, None]), axis=1)
    chosen = (x >= floor[:, None]) & (m < M)[:, None]
    p = tl.where(chosen, tl.exp(x - top[:, None]) / total[:, None], 0.0)
    tl.store(w_ptr + m[:, None] * E + e[None, :], p, mask=(m < M)[:, None])
    tl.store(floor_ptr + m, floor, mask=m < M)
    tl.atomic_add(load_ptr + e, tl.sum(chosen.to(tl.int32), axis=0), sem="relaxed")


@case
def route_to_best_8_of_64_dense():
    m, e, k = 30_000, 64, 8
    w, floor, load = zeros(m, e, dtype="float32"), zeros(m, dtype="float32"), zeros(e, dtype="int32")
    return cleared(run(route_dense, (cdiv(m, 16),), (f32(m, e), f32(e), w, floor, load, m), (w, floor, load), E=e, K=k, BM=16, num_warps=4), load)


@triton.jit
def canonical_strands(x_ptr, y_ptr, side_ptr, suffix_ptr, M, L: tl.constexpr, BM: tl.constexpr):
    # A strand or its reverse complement, whichever comes first; and how many G and C are in each suffix.
    m, i = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, L)
    at = m[:, None] * L + i[None, :]
    x = tl.load(x_ptr + at, mask=(m < M)[:, None], other=0)
    r = 3 - tl.flip(x, 1)
    first = tl.min(tl.where(x != r, i[None, :], L), axis=1)
    here = i[None, :] == first[:, None]
    less = tl.sum(tl.where(here & (r < x), 1, 0), axis=1) > 0
    y = tl.where(less[:, None], r, x)
    strong = ((y == 1) | (y == 2)).to(tl.int32)
    tl.store(y_ptr + at, y, mask=(m < M)[:, None])
    tl.store(side_ptr + m, less.to(tl.int8), mask=m < M)
    tl.store(suffix_ptr + at, tl.cumsum(strong, axis=1, reverse=True).to(tl.uint8), mask=(m < M)[:, None])


@case
def canonical_strands_by_flip():
    m, n = 150_000, 128
    y, side, suffix = zeros(m, n, dtype="int8"), zeros(m, dtype="int8"), zeros(m, n, dtype="uint8")
    return run(canonical_strands, (cdiv(m, 32),), (ints(0, 4, m, n, dtype="int8"), y, side, suffix, m), (y, side, suffix), L=n, BM=32, num_warps=4)


@triton.jit
def hazard_likelihood(logit_ptr, time_ptr, event_ptr, loss_ptr, mean_ptr, B, T, BB: tl.constexpr, BT: tl.constexpr):
    # Survival by discrete hazards: a running product along time.
    b, t = tl.program_id(0) * BB + tl.arange(0, BB), tl.arange(0, BT)
    live = (b < B)[:, None] & (t < T)[None, :]
    h = tl.sigmoid(tl.load(logit_ptr + b[:, None] * T + t[None, :], mask=live, other=-100.0).to(tl.float32))
    survival = tl.cumprod(1.0 - h, axis=1)
    before = survival / tl.maximum(1.0 - h, 1e-6)
    when = tl.load(time_ptr + b, mask=b < B, other=0)
    event = tl.load(event_ptr + b, mask=b < B, other=False)
    here = t[None, :] == when[:, None]
    density = tl.sum(tl.where(here, before * h, 0.0), axis=1)
    beyond = tl.sum(tl.where(here, survival, 0.0), axis=1)
    loss = -tl.log(tl.maximum(tl.where(event, density, beyond), 1e-20))
    tl.store(loss_ptr + b, loss, mask=b < B)
    tl.store(mean_ptr + b, tl.sum(tl.where(live, before, 0.0), axis=1), mask=b < B)


@case
def survival_by_running_products():
    b, t = 100_000, 100
    loss, mean = zeros(b, dtype="float32"), zeros(b, dtype="float32")
    args = rand(b, t, dtype="bfloat16") - 3, ints(0, t, b, dtype="uint8"), uniform(b) < 0.6, loss, mean, b, t
    return run(hazard_likelihood, (cdiv(b, 16),), args, (loss, mean), BB=16, BT=128, num_warps=2)


@triton.jit
def byte_entropy(x_ptr, entropy_ptr, mode_ptr, chi_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    counts = tl.zeros((256,), tl.int32)
    for n0 in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * N + n0 + i, mask=n0 + i < N, other=0)
        counts += tl.histogram(x.to(tl.int32), 256, mask=n0 + i < N)
    p = counts.to(tl.float32) / N
    tl.store(entropy_ptr + row, -tl.sum(tl.where(counts > 0, p * tl.log2(tl.maximum(p, 1e-9)), 0.0)))
    tl.store(mode_ptr + row, tl.argmax(counts, axis=0).to(tl.uint8))
    off = p - 1.0 / 256
    tl.store(chi_ptr + row, tl.sum(off * off) * 256.0 * N)


@case
def entropy_of_byte_pages():
    rows, n = 3000, 10_000
    entropy, mode, chi = zeros(rows, dtype="float32"), zeros(rows, dtype="uint8"), zeros(rows, dtype="float32")
    x = (uniform(rows, n) ** 2 * 255).to(torch.uint8)
    return run(byte_entropy, (rows,), (x, entropy, mode, chi, n), (entropy, mode, chi), BLOCK=2048, num_warps=8)


@triton.jit
def lookup_in_own_table(code_ptr, table_ptr, perm_ptr, y_ptr, M, N, GROUP: tl.constexpr, BM: tl.constexpr):
    # Codes of 4 bits with 16 levels for each row; the columns of a group are put back in their order by a gather.
    m, g = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1)
    j, v = tl.arange(0, GROUP), tl.arange(0, 16)
    table = tl.load(table_ptr + m[:, None] * 16 + v[None, :], mask=(m < M)[:, None], other=0.0)
    b = tl.load(code_ptr + m[:, None] * (N // 2) + g * (GROUP // 2) + tl.arange(0, GROUP // 2)[None, :], mask=(m < M)[:, None], other=0)
    code = tl.interleave(b & 15, b >> 4).to(tl.int32)
    y = tl.gather(table, code, axis=1)
    perm = tl.load(perm_ptr + g * GROUP + j)
    y = tl.gather(y, tl.broadcast_to(perm[None, :], (BM, GROUP)), axis=1)
    tl.store(y_ptr + m[:, None] * N + g * GROUP + j[None, :], y.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def dequant_own_tables_and_order():
    m, n, group = 4000, 4096, 128
    y = zeros(m, n, dtype="bfloat16")
    perm = torch.argsort(uniform(n // group, group), 1).int()
    args = ints(0, 256, m, n // 2, dtype="uint8"), f32(m, 16), perm, y, m, n
    return run(lookup_in_own_table, (cdiv(m, 16), n // group), args, y, GROUP=group, BM=16, num_warps=4)


@triton.jit
def walsh_rows(x_ptr, sign_ptr, y_ptr, M, N: tl.constexpr, LOG: tl.constexpr, BM: tl.constexpr):
    # Constant geometry: neighbors are added and subtracted, and halves put after each other, as often as N has bits.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, N)
    at = m[:, None] * N + n[None, :]
    x = tl.load(x_ptr + at, mask=(m < M)[:, None], other=0.0).to(tl.float32) * tl.load(sign_ptr + n).to(tl.float32)[None, :]
    for _ in tl.static_range(LOG):
        a, b = tl.split(tl.reshape(x, (BM, N // 2, 2)))
        x = tl.reshape(tl.permute(tl.join(a + b, a - b), (0, 2, 1)), (BM, N))
    scale: tl.constexpr = N**-0.5
    tl.store(y_ptr + at, (x * scale).to(y_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def walsh_512_by_splits_and_joins():
    m, n = 20_000, 512
    y = zeros(m, n)
    return run(walsh_rows, (cdiv(m, 4),), (rand(m, n), ints(0, 2, n, dtype="int8") * 2 - 1, y, m), y, N=n, LOG=9, BM=4, num_warps=4)


@triton.jit
def depth_to_space(x_ptr, bias_ptr, y_ptr, C, H, W, BH: tl.constexpr, BW: tl.constexpr):
    # [4 C, H, W] to [C, 2 H, 2 W] and a bias: two by two planes woven in five dimensions.
    c, b = tl.program_id(1) % C, tl.program_id(1) // C
    tiles = tl.cdiv(W, BW)
    h0, w0 = tl.program_id(0) // tiles * BH, tl.program_id(0) % tiles * BW
    p, q = tl.arange(0, 2)[:, None, None, None], tl.arange(0, 2)[None, :, None, None]
    h, w = (h0 + tl.arange(0, BH))[None, None, :, None], (w0 + tl.arange(0, BW))[None, None, None, :]
    plane = (b * C + c) * 4 + p * 2 + q
    x = tl.load(x_ptr + (plane * H + h) * W + w, mask=(h < H) & (w < W) & (plane >= 0), other=0.0)
    x = tl.reshape(tl.permute(x, (2, 0, 3, 1)), (2 * BH, 2 * BW))
    x += tl.load(bias_ptr + c)
    oh, ow = 2 * h0 + tl.arange(0, 2 * BH), 2 * w0 + tl.arange(0, 2 * BW)
    tl.store(y_ptr + ((b * C + c) * 2 * H + oh)[:, None] * (2 * W) + ow[None, :], x, mask=(oh < 2 * H)[:, None] & (ow < 2 * W)[None, :])


@case
def depth_to_space_woven_planes():
    b, c, h, w = 4, 24, 135, 239
    y = zeros(b, c, 2 * h, 2 * w, dtype="bfloat16")
    args = rand(b, 4 * c, h, w, dtype="bfloat16"), rand(c, dtype="bfloat16"), y, c, h, w
    return run(depth_to_space, (cdiv(h, 16) * cdiv(w, 32), b * c), args, y, BH=16, BW=32, num_warps=4)


@triton.jit
def motion_of_bytes(a_ptr, b_ptr, diff_ptr, sad_ptr, threshold, H, W, BH: tl.constexpr, BW: tl.constexpr):
    # Differences of frames, four bytes by one instruction; what moved, and how much in each block.
    y, x = tl.program_id(1) * BH + tl.arange(0, BH), tl.program_id(0) * BW + tl.arange(0, BW)
    live = (y < H)[:, None] & (x < W)[None, :]
    at = y[:, None] * W + x[None, :]
    a = tl.load(a_ptr + at, mask=live, other=0)
    b = tl.load(b_ptr + at, mask=live, other=0)
    d = tl.inline_asm_elementwise(
        "{ .reg .b32 zero; mov.b32 zero, 0; vabsdiff4.u32.u32.u32 $0, $1, $2, zero; }", "=r,r,r", [a, b], dtype=tl.uint8, is_pure=True, pack=4)
    wide = d.to(tl.int32)
    tl.store(sad_ptr + tl.program_id(1) * tl.num_programs(0) + tl.program_id(0), tl.sum(wide))
    tl.store(diff_ptr + at, tl.where(wide > threshold, d, 0), mask=live)


@case
def motion_by_packed_byte_differences():
    h, w = 2160, 3840
    diff, sad = zeros(h, w, dtype="uint8"), zeros(cdiv(h, 16), cdiv(w, 64), dtype="int32")
    frame = lambda: ints(0, 256, h, w, dtype="uint8")
    return run(motion_of_bytes, (cdiv(w, 64), cdiv(h, 16)), (frame(), frame(), diff, sad, 40, h, w), (diff, sad), BH=16, BW=64, num_warps=4)


@triton.jit
def gelu_tanh_of_pairs(x_ptr, g_ptr, y_ptr, N, BLOCK: tl.constexpr):
    # A hardware tanh of two halves at once.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0.0)
    xf = x.to(tl.float32)
    inner = (xf * 0.7978845608 * (1.0 + 0.044715 * xf * xf)).to(tl.float16)
    t = tl.inline_asm_elementwise("tanh.approx.f16x2 $0, $1;", "=r,r", [inner], dtype=tl.float16, is_pure=True, pack=2)
    y = 0.5 * xf * (1.0 + t.to(tl.float32)) * tl.load(g_ptr + i, mask=i < N, other=0.0).to(tl.float32)
    tl.store(y_ptr + i, y.to(tl.float16), mask=i < N)


@case
def gelu_gate_tanh_of_pairs():
    n = 15_000_001
    y = zeros(n)
    return run(gelu_tanh_of_pairs, (cdiv(n, 2048),), (rand(n), rand(n), y, n), y, BLOCK=2048, num_warps=8)


@triton.jit
def negative_binomial_loss(x_ptr, mu_ptr, theta_ptr, zero_ptr, loss_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # Counts of genes that may drop out: log gammas of numbers that are not whole.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    total = tl.zeros((BM,), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        live = (m < M)[:, None] & (n < N)[None, :]
        at = m[:, None] * N + n[None, :]
        x = tl.load(x_ptr + at, mask=live, other=0).to(tl.float32)
        mu = tl.load(mu_ptr + at, mask=live, other=1.0)
        pi = tl.load(zero_ptr + at, mask=live, other=0.0)
        theta = tl.load(theta_ptr + n, mask=n < N, other=1.0)[None, :]
        both = tl.log(theta + mu)
        base = theta * (tl.log(theta) - both)
        soft = tl.maximum(-pi, 0.0) + libdevice.log1p(tl.exp(-tl.abs(pi)))
        at_zero = tl.maximum(base - pi, 0.0) + libdevice.log1p(tl.exp(-tl.abs(base - pi))) - soft
        other = -pi - soft + base + x * (tl.log(mu) - both) + libdevice.lgamma(x + theta) - libdevice.lgamma(theta) - libdevice.lgamma(x + 1.0)
        total += tl.sum(tl.where(live, tl.where(x < 0.5, at_zero, other), 0.0), axis=1)
    tl.store(loss_ptr + m, -total, mask=m < M)


@case
def negative_binomial_log_gammas():
    m, n = 2000, 3000
    loss = zeros(m, dtype="float32")
    args = (uniform(m, n) ** 3 * 30).to(torch.int16), uniform(m, n) * 5 + 0.1, uniform(n) * 3 + 0.2, f32(m, n), loss, m, n
    return run(negative_binomial_loss, (cdiv(m, 4),), args, loss, BM=4, BN=128, num_warps=4)


@triton.jit
def copula_scores(x_ptr, loc_ptr, scale_ptr, u_ptr, z_ptr, N, D, BLOCK: tl.constexpr):
    # Student-like margins to ranks and to normal scores, in double precision where it matters.
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < N
    d = at % D
    x = (tl.load(x_ptr + at, mask=live, other=0.0) - tl.load(loc_ptr + d, mask=live, other=0.0)) / tl.load(scale_ptr + d, mask=live, other=1.0)
    u = 0.5 + libdevice.atan(x) * 0.31830988618
    u = tl.minimum(tl.maximum(u, 1e-6), 1.0 - 1e-6)
    z = libdevice.normcdfinv(u)
    back = 0.5 * libdevice.erfc(-z.to(tl.float64) * 0.7071067811865476)
    tl.store(u_ptr + at, back - u.to(tl.float64) + u, mask=live)
    tl.store(z_ptr + at, z, mask=live)


@case
def copula_scores_of_margins():
    n, d = 4_000_000, 50
    u, z = zeros(n, dtype="float64"), zeros(n, dtype="float32")
    return run(copula_scores, (cdiv(n, 512),), (f32(n) * 3, f32(d), uniform(d) + 0.5, u, z, n, d), (u, z), BLOCK=512, num_warps=4)


@triton.jit
def sum_of_e5m2(x_ptr, scale_ptr, y_ptr, out_scale_ptr, N, RANKS: tl.constexpr, GROUPS: tl.constexpr, GROUP: tl.constexpr):
    # What some ranks sent as e5m2 with a scale for each group: their sum, sent on in the same way.
    g, i = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS), tl.arange(0, GROUP)
    groups = N // GROUP
    acc = tl.zeros((GROUPS, GROUP), tl.float32)
    for r in tl.static_range(RANKS):
        x = tl.load(x_ptr + r * N + g[:, None] * GROUP + i[None, :], mask=(g < groups)[:, None], other=0.0)
        acc += x.to(tl.float32) * tl.load(scale_ptr + r * groups + g, mask=g < groups, other=0.0)[:, None]
    top = tl.max(tl.abs(acc), axis=1)
    scale = tl.maximum(top / 57344.0, 1e-12)
    y = acc / scale[:, None]
    tl.store(y_ptr + g[:, None] * GROUP + i[None, :], y.to(tl.float8e5), mask=(g < groups)[:, None])
    tl.store(out_scale_ptr + g, scale, mask=g < groups)


@case
def gradients_summed_in_e5m2():
    n, ranks, group = 5_000_064, 4, 64
    y, scale = zeros(n, dtype="uint8").view(torch.float8_e5m2), zeros(n // group, dtype="float32")
    x = (rand(ranks, n) * 100).to(torch.float8_e5m2)
    launched = run(sum_of_e5m2, (cdiv(n // group, 32),), (x, uniform(ranks, n // group), y, scale, n), (y, scale), RANKS=ranks, GROUPS=32, GROUP=group, num_warps=4)
    return viewed(launched, lambda out: (far8(out[0]), out[1]))


@triton.jit
def total_variation_3d(x_ptr, w_ptr, tv_ptr, top_ptr, D, H, W, BD: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    # One number from a tile of three axes.
    z = (tl.program_id(2) * BD + tl.arange(0, BD))[:, None, None]
    y = (tl.program_id(1) * BH + tl.arange(0, BH))[None, :, None]
    x = (tl.program_id(0) * BW + tl.arange(0, BW))[None, None, :]
    live = (z < D) & (y < H) & (x < W)
    at = (z * H + y) * W + x
    v = tl.load(x_ptr + at, mask=live, other=0.0)
    dx = tl.load(x_ptr + at + 1, mask=live & (x + 1 < W), other=0.0) - v
    dy = tl.load(x_ptr + at + W, mask=live & (y + 1 < H), other=0.0) - v
    dz = tl.load(x_ptr + at + H * W, mask=live & (z + 1 < D), other=0.0) - v
    dx, dy, dz = tl.where(x + 1 < W, dx, 0.0), tl.where(y + 1 < H, dy, 0.0), tl.where(z + 1 < D, dz, 0.0)
    g = tl.sqrt(dx * dx + dy * dy + dz * dz + 1e-8)
    g = tl.where(live, g * tl.load(w_ptr + at, mask=live, other=0).to(tl.float32), 0.0)
    pid = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0) + tl.program_id(0)
    tl.store(tv_ptr + pid, tl.sum(g))
    tl.store(top_ptr + pid, tl.max(g))


@case
def total_variation_of_a_volume():
    d, h, w = 150, 250, 300
    grid = cdiv(w, 32), cdiv(h, 8), cdiv(d, 4)
    tv, top = zeros(*grid, dtype="float32"), zeros(*grid, dtype="float32")
    return run(total_variation_3d, grid, (f32(d, h, w), uniform(d, h, w) < 0.8, tv, top, d, h, w), (tv, top), BD=4, BH=8, BW=32, num_warps=4)


@triton.jit
def quadratic_spline(x_ptr, p_ptr, y_ptr, slope_ptr, N, bound, K: tl.constexpr, BLOCK: tl.constexpr):
    # Rational quadratic splines of a normalizing flow: eight bins, found and mixed by sums over a thin axis.
    n, k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, K)
    live = n < N
    x = tl.load(x_ptr + n, mask=live, other=0.0)
    at = p_ptr + n[:, None] * (3 * K) + k[None, :]
    w, h = tl.load(at, mask=live[:, None], other=0.0), tl.load(at + K, mask=live[:, None], other=0.0)
    d = tl.load(at + 2 * K, mask=live[:, None], other=0.0)
    w, h = tl.exp(w - tl.max(w, axis=1)[:, None]), tl.exp(h - tl.max(h, axis=1)[:, None])
    w = 2 * bound * (0.001 + (1 - 0.001 * K) * w / tl.sum(w, axis=1)[:, None])
    h = 2 * bound * (0.001 + (1 - 0.001 * K) * h / tl.sum(h, axis=1)[:, None])
    d = 0.001 + tl.maximum(d, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(d)))
    right, top = tl.cumsum(w, axis=1) - bound, tl.cumsum(h, axis=1) - bound
    clipped = tl.clamp(x, -bound, bound)
    bin = tl.minimum(tl.sum((clipped[:, None] >= right).to(tl.int32), axis=1), K - 1)
    here = k[None, :] == bin[:, None]
    wb, hb = tl.sum(tl.where(here, w, 0.0), axis=1), tl.sum(tl.where(here, h, 0.0), axis=1)
    x0 = tl.sum(tl.where(here, right - w, 0.0), axis=1)
    y0 = tl.sum(tl.where(here, top - h, 0.0), axis=1)
    d0 = tl.sum(tl.where(here, d, 0.0), axis=1)
    d1 = tl.sum(tl.where(k[None, :] == (bin + 1)[:, None], d, 0.0), axis=1)
    d1 = tl.where(bin == K - 1, 1.0, d1)
    s = hb / wb
    z = tl.clamp((clipped - x0) / wb, 0.0, 1.0)
    zz = z * (1 - z)
    below = s + (d0 + d1 - 2 * s) * zz
    y = y0 + hb * (s * z * z + d0 * zz) / below
    slope = s * s * (d1 * z * z + 2 * s * zz + d0 * (1 - z) * (1 - z)) / (below * below)
    outside = tl.abs(x) > bound
    tl.store(y_ptr + n, tl.where(outside, x, y), mask=live)
    tl.store(slope_ptr + n, tl.where(outside, 0.0, tl.log(slope)), mask=live)


@case
def spline_of_eight_bins():
    n, k = 1_500_000, 8
    y, slope = zeros(n, dtype="float32"), zeros(n, dtype="float32")
    return run(quadratic_spline, (cdiv(n, 128),), (f32(n) * 2, f32(n, 3 * k), y, slope, n, 3.0), (y, slope), K=k, BLOCK=128, num_warps=4)


@triton.jit
def mix_stereo_q15(x_ptr, gain_ptr, pan_ptr, out_ptr, peak_ptr, T, SOURCES: tl.constexpr, BLOCK: tl.constexpr):
    # Fixed point: mono voices with gains and pans to interleaved stereo of 16 bits, saturated.
    t = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.full((BLOCK,), 1 << 14, tl.int32)
    right = tl.full((BLOCK,), 1 << 14, tl.int32)
    for s in range(SOURCES):
        x = tl.load(x_ptr + s * T + t, mask=t < T, other=0).to(tl.int32)
        g = tl.load(gain_ptr + s).to(tl.int32)
        p = tl.load(pan_ptr + s).to(tl.int32)
        v = (x * g + (1 << 14)) >> 15
        left += v * (32767 - p) >> 3
        right += v * p >> 3
    left = tl.minimum(tl.maximum(left >> 12, -32768), 32767)
    right = tl.minimum(tl.maximum(right >> 12, -32768), 32767)
    both = tl.interleave(left, right)
    i = tl.program_id(0) * 2 * BLOCK + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + i, both.to(tl.int16), mask=i < 2 * T)
    tl.store(peak_ptr + tl.program_id(0), tl.max(tl.abs(both)).to(tl.uint16))


@case
def mix_of_stereo_fixed_point():
    t, sources = 2_000_000, 12
    out, peak = zeros(t, 2, dtype="int16"), zeros(cdiv(t, 1024), dtype="int16").view(torch.uint16)
    args = ints(-8000, 8000, sources, t, dtype="int16"), ints(0, 32767, sources, dtype="int16"), ints(0, 32767, sources, dtype="int16"), out, peak, t
    return viewed(run(mix_stereo_q15, (cdiv(t, 1024),), args, (out, peak), SOURCES=sources, BLOCK=1024, num_warps=4), lambda o: (o[0], o[1].view(torch.int16)))


@triton.jit
def _two_best(v1, i1, u1, v2, i2, u2):
    first = (v1 > v2) | ((v1 == v2) & (i1 < i2))
    top, other = tl.where(first, v1, v2), tl.where(first, v2, v1)
    return top, tl.where(first, i1, i2), tl.maximum(other, tl.maximum(u1, u2))


@triton.jit
def margins_of_classes(x_ptr, w_ptr, label_ptr, best_ptr, margin_ptr, N, C, D, BC: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    # Classes along axis 0: the best, which it is, and the runner-up, folded together.
    n, c, d = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BC), tl.arange(0, BD)
    top = tl.full((BN,), float("-inf"), tl.float32)
    at = tl.full((BN,), 0, tl.int32)
    second = tl.full((BN,), float("-inf"), tl.float32)
    for c0 in range(0, C, BC):
        s = tl.zeros((BC, BN), tl.float32)
        for d0 in range(0, D, BD):
            w = tl.load(w_ptr + (c0 + c)[:, None] * D + (d0 + d)[None, :], mask=(c0 + c < C)[:, None] & (d0 + d < D)[None, :], other=0.0)
            x = tl.load(x_ptr + n[None, :] * D + (d0 + d)[:, None], mask=(n < N)[None, :] & (d0 + d < D)[:, None], other=0.0)
            s = tl.dot(w, x, s)
        s = tl.where((c0 + c < C)[:, None], s, float("-inf"))
        index = tl.broadcast_to((c0 + c)[:, None], (BC, BN))
        v, i, u = tl.reduce((s, index, tl.full((BC, BN), float("-inf"), tl.float32)), 0, _two_best)
        top, at, second = _two_best(top, at, second, v, i, u)
    label = tl.load(label_ptr + n, mask=n < N, other=0)
    tl.store(best_ptr + n, top, mask=n < N)
    tl.store(margin_ptr + n, tl.where(at == label, top - second, second - top), mask=n < N)


@case
def margins_by_two_best_classes():
    n, c, d = 20_000, 1000, 100
    best, margin = zeros(n, dtype="float32"), zeros(n, dtype="float32")
    args = rand(n, d), rand(c, d) / 10, ints(0, c, n), best, margin, n, c, d
    return run(margins_of_classes, (cdiv(n, 128),), args, (best, margin), BC=64, BN=128, BD=32, num_warps=8, num_stages=3)


@triton.jit
def conv3x3_by_descriptors(x_desc, w_desc, bias_ptr, y_desc, CI, CO, BH: tl.constexpr, BW: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr):
    # Boxes of an NHWC picture, moved by a tap; what lies outside reads as zero.
    w0 = tl.program_id(0) * BW
    h0, b = tl.program_id(1) * BH, tl.program_id(2) // tl.cdiv(CO, BN)
    n0 = tl.program_id(2) % tl.cdiv(CO, BN) * BN
    acc = tl.zeros((BH * BW, BN), tl.float32)
    acc += tl.load(bias_ptr + n0 + tl.arange(0, BN))[None, :]
    for step in range(0, 9 * tl.cdiv(CI, BK)):
        tap, k = step % 9, step // 9 * BK
        x = x_desc.load([b, h0 + tap // 3 - 1, w0 + tap % 3 - 1, k])
        w = w_desc.load([tap * CI + k, n0])
        acc = tl.dot(tl.reshape(x, (BH * BW, BK)), w, acc)
    y = tl.maximum(acc, 0.1 * acc)
    y_desc.store([b, h0, w0, n0], tl.reshape(y, (1, BH, BW, BN)).to(tl.float16))


@case
def conv2d_3x3_boxes_of_descriptors():
    b, h, w, ci, co = 4, 90, 120, 64, 128
    x, weight, y = rand(b, h, w, ci), rand(9 * ci, co) / 24, zeros(b, h, w, co)
    of = lambda t, *block: TensorDescriptor(t, t.shape, t.stride(), list(block))
    args = of(x, 1, 8, 16, 32), of(weight, 32, 128), f32(co), of(y, 1, 8, 16, 128), ci, co
    return run(conv3x3_by_descriptors, (cdiv(w, 16), cdiv(h, 8), b), args, y, BH=8, BW=16, BK=32, BN=128, num_warps=8, num_stages=4)


@triton.jit
def split_k_descriptor_add(a_desc, b_desc, c_desc, K, SPLIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Batches in a third axis of the descriptors; the parts of K meet in memory.
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    batch, part = tl.program_id(2) // SPLIT, tl.program_id(2) % SPLIT
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(part * BK, K, SPLIT * BK):
        a = tl.reshape(a_desc.load([batch, m, k]), (BM, BK))
        b = tl.reshape(b_desc.load([batch, n, k]), (BN, BK))
        acc = tl.dot(a, tl.trans(b), acc)
    c_desc.atomic_add([batch, m, n], tl.reshape(acc, (1, BM, BN)))


@case
def bmm_split_k_descriptor_add():
    batch, m, n, k, split = 6, 300, 500, 4096, 4
    c = zeros(batch, m, n, dtype="float32")
    of = lambda t, *block: TensorDescriptor(t, t.shape, t.stride(), list(block))
    args = of(rand(batch, m, k, dtype="bfloat16"), 1, 64, 64), of(rand(batch, n, k, dtype="bfloat16"), 1, 64, 64), of(c, 1, 64, 64), k
    return cleared(run(split_k_descriptor_add, (cdiv(m, 64), cdiv(n, 64), batch * split), args, c, SPLIT=split, BM=64, BN=64, BK=64, num_warps=4, num_stages=5), c)
