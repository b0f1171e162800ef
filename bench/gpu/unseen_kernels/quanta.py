"""Few bits and what serves with them: weights of other formats and their products, caches, routes, drafts, samples, and codes made and read again."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, arange, case, cdiv, f32, far, far8, full, ints, rand, run, uniform, viewed, zeros


@triton.jit
def half_quadratic_fit(w_ptr, scale_ptr, zero_ptr, codes_ptr, ROWS, beta, G: tl.constexpr, STEPS: tl.constexpr, BR: tl.constexpr):
    # Zero points improved by shrinkage: a group of 64 weights a row of the tile, all steps in registers.
    r, g = tl.program_id(0) * BR + tl.arange(0, BR), tl.arange(0, G)
    ok = (r < ROWS)[:, None]
    w = tl.load(w_ptr + r[:, None] * G + g[None, :], mask=ok, other=0.0).to(tl.float32)
    low, high = tl.min(w, 1), tl.max(w, 1)
    s = 15.0 / tl.maximum(high - low, 1e-4)
    z = -low * s
    b = beta
    for _ in range(STEPS):
        q = tl.clamp(libdevice.rint(w * s[:, None] + z[:, None]), 0.0, 15.0)
        e = w - (q - z[:, None]) / s[:, None]
        size = tl.abs(e)
        shrunk = tl.where(e < 0, -1.0, 1.0) * tl.maximum(size - tl.exp2(-0.3 * tl.log2(tl.maximum(size, 1e-8))) / b, 0.0)
        z = tl.sum(q - (w - shrunk) * s[:, None], 1) / G
        b *= 1.01
    q = tl.clamp(libdevice.rint(w * s[:, None] + z[:, None]), 0.0, 15.0).to(tl.uint8)
    low_half, high_half = tl.split(tl.reshape(q, (BR, G // 2, 2)))
    tl.store(codes_ptr + r[:, None] * (G // 2) + tl.arange(0, G // 2)[None, :], low_half | (high_half << 4), mask=ok)
    tl.store(scale_ptr + r, 1.0 / s, mask=r < ROWS)
    tl.store(zero_ptr + r, z, mask=r < ROWS)


@case
def zero_points_of_groups_fitted_by_shrinkage():
    rows, g = 60_000, 64
    w, scale, zero, codes = rand(rows, g), zeros(rows, dtype="float32"), zeros(rows, dtype="float32"), zeros(rows, g // 2, dtype="uint8")
    launched = run(half_quadratic_fit, (cdiv(rows, 16),), (w, scale, zero, codes, rows, 10.0), (scale, zero), G=g, STEPS=12, BR=16)
    return viewed(launched, lambda outs: (outs[0] + 1, outs[1] + 200))


@triton.jit
def error_fed_columns(w_ptr, h_ptr, q_ptr, scale_ptr, ROWS, COLS, B: tl.constexpr, BR: tl.constexpr):
    # A block of columns in order: each is rounded, and what it lost goes to the columns after it by a row of the inverse.
    r, c = tl.program_id(0) * BR + tl.arange(0, BR)[:, None], tl.arange(0, B)[None, :]
    ok = r < ROWS
    w = tl.load(w_ptr + r * COLS + c, mask=ok, other=0.0)
    scale = tl.load(scale_ptr + r, mask=ok, other=1.0)
    out = tl.zeros((BR, B), tl.float32)
    for j in range(B):
        h = tl.load(h_ptr + j * B + c)
        column = tl.sum(tl.where(c == j, w, 0.0), 1, keep_dims=True)
        pivot = tl.sum(tl.where(c == j, h, 0.0), 1, keep_dims=True)
        q = tl.clamp(tl.floor(column / scale + 0.5), -8.0, 7.0) * scale
        lost = (column - q) / pivot
        w = tl.where(c > j, w - lost * h, w)
        out = tl.where(c == j, q, out)
    tl.store(q_ptr + r * COLS + c, out, mask=ok)


@case
def columns_rounded_in_order_with_errors_passed_on():
    rows, b = 4096, 128
    w, q, scale = f32(rows, b), zeros(rows, b, dtype="float32"), full(0.5, rows, 1)
    h = (f32(b, b) / 64).triu(1) + torch.eye(b, device=w.device)
    return viewed(run(error_fed_columns, (cdiv(rows, 8),), (w, h, q, scale, rows, b), q, B=b, BR=8, num_warps=2), lambda q: q + 40)


@triton.jit
def outlier_scaled_products(x_ptr, q_ptr, table_ptr, absmax_ptr, outlier_ptr, index_ptr, y_ptr, M, N, K, OUT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A table of 16 levels gathered; a few columns of x times rows kept whole are added by another dot.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    half = tl.arange(0, BK // 2)
    k = tl.arange(0, BK)
    table = tl.load(table_ptr + tl.arange(0, 16))
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        x = tl.load(x_ptr + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None], other=0.0)
        q = tl.load(q_ptr + n[:, None] * (K // 2) + (k0 // 2 + half)[None, :], mask=(n < N)[:, None], other=0).to(tl.int32)
        codes = tl.interleave(q & 15, q >> 4)
        levels = tl.gather(tl.broadcast_to(table[None, :], BN, 16), codes, 1)
        absmax = tl.load(absmax_ptr + n * (K // 64) + k0 // 64, mask=n < N, other=0.0)
        acc = tl.dot(x, (levels * absmax[:, None]).to(tl.float16).T, acc)
    o = tl.arange(0, OUT)
    places = tl.load(index_ptr + o)
    x = tl.load(x_ptr + m[:, None] * K + places[None, :], mask=(m < M)[:, None], other=0.0)
    w = tl.load(outlier_ptr + o[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0.0)
    acc = tl.dot(x, w, acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def gemm_of_sixteen_levels_with_columns_kept_whole():
    m, n, k, out = 96, 1500, 2048, 16
    x, q, table, absmax = rand(m, k), ints(0, 256, n, k // 2, dtype="uint8"), f32(16), uniform(n, k // 64)
    whole, index, y = rand(out, n), arange(out) * 100 + 3, zeros(m, n)
    args = x, q, table, absmax, whole, index, y, m, n, k
    launched = run(outlier_scaled_products, (cdiv(m, 32), cdiv(n, 32)), args, y, OUT=out, BM=32, BN=32, BK=64, num_warps=4)

    def reference():
        codes = torch.stack([q & 15, q >> 4], -1).reshape(n, k).long()
        w = (table[codes].reshape(n, k // 64, 64) * absmax[..., None]).reshape(n, k).half()
        return x.float() @ w.float().t() + x[:, index.long()].float() @ whole.float()

    return against(launched, reference)


@triton.jit
def vectors_from_codebooks(x_ptr, codes_ptr, books_ptr, scale_ptr, y_ptr, N, K, BOOKS: tl.constexpr, V: tl.constexpr, BN: tl.constexpr, BG: tl.constexpr):
    # Additive codebooks: groups of eight weights are sums of rows of two books of 256; times one vector.
    n, g, v = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BG), tl.arange(0, V)
    acc = tl.zeros((BN, BG), tl.float32)
    for g0 in range(0, K // V, BG):
        x = tl.load(x_ptr + (g0 + g)[:, None] * V + v[None, :]).to(tl.float32)
        w = tl.zeros((BN, BG, V), tl.float32)
        for book in tl.static_range(BOOKS):
            code = tl.load(codes_ptr + (n[:, None] * (K // V) + g0 + g[None, :]) * BOOKS + book, mask=(n < N)[:, None], other=0)
            w += tl.load(books_ptr + (book * 256 + code[:, :, None].to(tl.int32)) * V + v[None, None, :]).to(tl.float32)
        acc += tl.sum(w * x[None, :, :], 2)
    tl.store(y_ptr + n, tl.sum(acc, 1) * tl.load(scale_ptr + n, mask=n < N, other=0.0), mask=n < N)


@case
def gemv_of_sums_of_two_codebooks():
    n, k, books, v = 4096, 2048, 2, 8
    x, codes, table, scale = rand(k), ints(0, 256, n, k // v, books, dtype="uint8"), rand(books, 256, v), uniform(n)
    y = zeros(n, dtype="float32")
    launched = run(vectors_from_codebooks, (n // 8,), (x, codes, table, scale, y, n, k), y, BOOKS=books, V=v, BN=8, BG=32)

    def reference():
        w = sum(table[i].float()[codes[..., i].long()] for i in range(books)).reshape(n, k)
        return (w @ x.float()) * scale

    return against(launched, reference)


@triton.jit
def mixed_width_product(x_ptr, q_ptr, widths_ptr, starts_ptr, scale_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Each block of columns has its own width: two, four or eight bits a code; the loop shifts by what it was told.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    width = tl.load(widths_ptr + tl.program_id(1))
    start = tl.load(starts_ptr + tl.program_id(1))
    codes = 32 // width
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        kk = k0 + k
        word = tl.load(q_ptr + start + (kk // codes)[:, None] * BN + tl.arange(0, BN)[None, :])
        code = (word >> ((kk % codes) * width)[:, None]) & ((1 << width) - 1)
        w = (code - (1 << (width - 1))).to(tl.bfloat16)
        x = tl.load(x_ptr + m[:, None] * K + kk[None, :], mask=(m < M)[:, None], other=0.0)
        acc = tl.dot(x, w, acc)
    acc *= tl.load(scale_ptr + n)[None, :]
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16), mask=(m < M)[:, None])


@case
def gemm_of_blocks_of_columns_of_two_four_or_eight_bits():
    m, n, k, bn = 200, 2048, 1024, 64
    widths = torch.tensor([2, 4, 8, 4] * (n // bn // 4), dtype=torch.int32)
    sizes = widths.long() * k // 32 * bn
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
    q = ints(-(1 << 31), (1 << 31) - 1, int(starts[-1]))
    x, scale, y = rand(m, k, dtype="bfloat16"), uniform(n) / 50, zeros(m, n, dtype="bfloat16")
    args = x, q, widths.to(x.device), starts.to(x.device), scale, y, m, n, k

    def reference():
        parts = []
        for i, width in enumerate(widths.tolist()):
            words = q[starts[i] : starts[i + 1]].reshape(-1, 1, bn)
            shifts = (arange(32 // width) * width)[None, :, None]
            parts.append((((words >> shifts) & ((1 << width) - 1)) - (1 << (width - 1))).reshape(k, bn))
        return (x.float() @ torch.cat(parts, 1).float()) * scale

    return against(run(mixed_width_product, (cdiv(m, 64), n // bn), args, y, BM=64, BN=bn, BK=64, num_warps=4), reference)


@triton.jit
def six_bit_product(x_ptr, w_ptr, s_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Floats of six bits, their high four and low two in planes of their own; exponents put right by a product.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    low_plane = w_ptr + N * (K // 2)
    for k0 in range(0, K, BK):
        kk = k0 + k
        x = tl.load(x_ptr + m[:, None] * K + kk[None, :], mask=(m < M)[:, None], other=0.0)
        high = (tl.load(w_ptr + n[None, :] * (K // 2) + (kk // 2)[:, None]) >> (4 * (kk % 2))[:, None]) & 15
        low = (tl.load(low_plane + n[None, :] * (K // 4) + (kk // 4)[:, None]) >> (2 * (kk % 4))[:, None]) & 3
        code = ((high << 2) | low).to(tl.uint16)
        bits = ((code & 32) << 10) | ((code & 31) << 8)
        acc = tl.dot(x, bits.to(tl.float16, bitcast=True), acc)
    acc *= 4096.0 * tl.load(s_ptr + n)[None, :]
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m < M)[:, None])


@case
def gemm_of_six_bit_floats_in_planes_of_four_and_two():
    m, n, k = 64, 4096, 1024
    x, w, s, y = rand(m, k), ints(0, 256, n * k * 3 // 4, dtype="uint8"), uniform(n) / 50, zeros(m, n)

    def reference():
        high, low = w[: n * k // 2].int().reshape(n, -1, 1), w[n * k // 2 :].int().reshape(n, -1, 1)
        high = ((high >> torch.tensor([0, 4], device=x.device)) & 15).reshape(n, k)
        low = ((low >> torch.tensor([0, 2, 4, 6], device=x.device)) & 3).reshape(n, k)
        code = (high << 2) | low
        bits = (((code & 32) << 10) | ((code & 31) << 8)).to(torch.int32)
        values = torch.where(bits > 32767, bits - 65536, bits).short().view(torch.float16)
        return (x.double() @ values.double().t()) * 4096 * s

    return against(run(six_bit_product, (cdiv(m, 64), n // 64), (x, w, s, y, m, n, k), y, BM=64, BN=64, BK=64, num_warps=8), reference)


@triton.jit
def append_rotated_bytes(k_ptr, slots_ptr, signs_ptr, cache_ptr, scale_ptr, T, D: tl.constexpr, PAGE: tl.constexpr, H: tl.constexpr):
    # Keys through random signs and butterflies of 128 before they become bytes in a page, a scale of a token and head.
    t, h = tl.program_id(0), tl.program_id(1)
    slot = tl.load(slots_ptr + t)
    if slot < 0:
        return
    d = tl.arange(0, D)
    x = tl.load(k_ptr + (t * H + h) * D + d).to(tl.float32) * tl.load(signs_ptr + d)
    span: tl.constexpr = 64
    for level in tl.static_range(7):
        y = tl.gather(x, d ^ (span >> level), 0)
        x = tl.where((d & (span >> level)) != 0, y - x, x + y)
    x *= 0.08838834764831845
    top = tl.maximum(tl.max(tl.abs(x), 0), 1e-6)
    page, row = slot // PAGE, slot % PAGE
    to = ((page * H + h).to(tl.int64) * PAGE + row) * D + d
    tl.store(cache_ptr + to, libdevice.rint(x * (127.0 / top)).to(tl.int8))
    tl.store(scale_ptr + (page * H + h) * PAGE + row, top / 127.0)


@case
def keys_through_butterflies_to_bytes_of_pages():
    t, h, d, page, pages = 5000, 8, 128, 64, 100
    k, signs = rand(t, h, d), ints(0, 2, d).float() * 2 - 1
    slots = torch.where(arange(t) % 11 == 0, -1, (arange(t) * 7) % (page * pages))
    cache, scale = zeros(pages, h, page, d, dtype="int8"), zeros(pages, h, page, dtype="float32")
    launched = run(append_rotated_bytes, (t, h), (k, slots, signs, cache, scale, t), (cache, scale), D=d, PAGE=page, H=h, num_warps=1)
    return viewed(launched, lambda outs: (far(outs[0]), outs[1]))


@triton.jit
def decode_of_scaled_bytes(q_ptr, k_ptr, v_ptr, ks_ptr, vs_ptr, table_ptr, lengths_ptr, o_ptr, scale, H: tl.constexpr, G: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, PAGES: tl.constexpr):
    # Grouped queries of a sequence against pages of bytes: the score is a dot of bytes, values get probabilities with scales inside.
    b, h = tl.program_id(0), tl.program_id(1)
    g, d, s = tl.arange(0, 16), tl.arange(0, D), tl.arange(0, PAGE)
    q = tl.load(q_ptr + ((b * H + h) * G + g[:, None]) * D + d[None, :], mask=(g < G)[:, None], other=0.0).to(tl.float32)
    top_q = tl.maximum(tl.max(tl.abs(q), 1), 1e-6)
    q8 = libdevice.rint(q * (127.0 / top_q)[:, None]).to(tl.int8)
    length = tl.load(lengths_ptr + b)
    m, total, acc = tl.full((16,), -1e30, tl.float32), tl.zeros((16,), tl.float32), tl.zeros((16, D), tl.float32)
    for p in range(tl.cdiv(length, PAGE)):
        page = tl.load(table_ptr + b * PAGES + p)
        base = (page * H + h).to(tl.int64) * PAGE
        k = tl.load(k_ptr + base * D + s[None, :] * D + d[:, None])
        ks, vs = tl.load(ks_ptr + base + s), tl.load(vs_ptr + base + s)
        x = tl.dot(q8, k).to(tl.float32) * (top_q * (scale / 127.0))[:, None] * ks[None, :]
        x = tl.where((p * PAGE + s < length)[None, :], x, -1e30)
        high = tl.maximum(m, tl.max(x, 1))
        fix, w = tl.exp(m - high), tl.exp(x - high[:, None])
        total = total * fix + tl.sum(w, 1)
        v = tl.load(v_ptr + base * D + s[:, None] * D + d[None, :])
        acc = acc * fix[:, None] + tl.dot((w * vs[None, :]).to(tl.float16), v.to(tl.float16))
        m = high
    tl.store(o_ptr + ((b * H + h) * G + g[:, None]) * D + d[None, :], (acc / total[:, None]).to(tl.float16), mask=(g < G)[:, None])


@case
def attn_decode_of_bytes_by_dots_of_bytes_groups_of_six():
    b, h, g, d, page, pages = 48, 4, 6, 128, 32, 40
    q, lengths = rand(b, h, g, d), ints(300, page * pages, b)
    k, v = ints(-127, 128, b * pages, h, page, d, dtype="int8"), ints(-127, 128, b * pages, h, page, d, dtype="int8")
    ks, vs = uniform(b * pages, h, page) / 60, uniform(b * pages, h, page) / 60
    table, o = arange(b * pages).flip(0).reshape(b, pages).contiguous(), zeros(b, h, g, d)
    args = q, k, v, ks, vs, table, lengths, o, d**-0.5
    return run(decode_of_scaled_bytes, (b, h), args, o, H=h, G=g, D=d, PAGE=page, PAGES=pages, num_warps=4, num_stages=3)


@triton.jit
def expert_offsets(ids_ptr, starts_ptr, order_ptr, inverse_ptr, N, E: tl.constexpr, BLOCK: tl.constexpr):
    # One program an expert: how many come before it, then the places of its own in order, by sums of matches.
    e = tl.program_id(0)
    before, count = 0, 0
    for n0 in range(0, N, BLOCK):
        n = n0 + tl.arange(0, BLOCK)
        before += tl.sum((tl.load(ids_ptr + n, mask=n < N, other=E) < e).to(tl.int32), 0)
    for n0 in range(0, N, BLOCK):
        n = n0 + tl.arange(0, BLOCK)
        own = tl.load(ids_ptr + n, mask=n < N, other=E) == e
        place = before + count + tl.cumsum(own.to(tl.int32), 0) - 1
        tl.store(order_ptr + place, n, mask=own)
        tl.store(inverse_ptr + n, place, mask=own)
        count += tl.sum(own.to(tl.int32), 0)
    tl.store(starts_ptr + e, before)


@case
def order_of_tokens_by_one_program_an_expert():
    n, e = 16_384, 160
    ids, starts, order, inverse = ints(0, e, n), zeros(e, dtype="int32"), zeros(n, dtype="int32"), zeros(n, dtype="int32")
    launched = run(expert_offsets, (e,), (ids, starts, order, inverse, n), (starts, order, inverse), E=e, BLOCK=1024, num_warps=4)

    def reference():
        order = ids.argsort(stable=True)
        return torch.bincount(ids, minlength=e).cumsum(0) - torch.bincount(ids, minlength=e), order, order.argsort()

    return against(launched, reference)


@triton.jit
def add_up_experts(y_ptr, inverse_ptr, gate_ptr, x_ptr, out_ptr, T, D, K: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr):
    # Rows of a token's experts with their weights and the residual, K as an axis of the tile.
    t, k, d = tl.program_id(0) * BT + tl.arange(0, BT), tl.arange(0, K), tl.program_id(1) * BD + tl.arange(0, BD)
    ok = t < T
    place = tl.load(inverse_ptr + t[:, None] * K + k[None, :], mask=ok[:, None], other=-1)
    gate = tl.load(gate_ptr + t[:, None] * K + k[None, :], mask=ok[:, None], other=0.0)
    y = tl.load(y_ptr + place[:, :, None] * D + d[None, None, :], mask=(place >= 0)[:, :, None] & (d < D)[None, None, :], other=0.0)
    total = tl.sum(y.to(tl.float32) * gate[:, :, None], 1)
    at, both = t[:, None] * D + d[None, :], ok[:, None] & (d < D)[None, :]
    tl.store(out_ptr + at, (total + tl.load(x_ptr + at, mask=both, other=0.0)).to(out_ptr.dtype.element_ty), mask=both)


@case
def rows_of_eight_experts_added_in_three_axes():
    t, d, k = 3000, 1100, 8
    y, x, out = rand(t * k, d, dtype="bfloat16"), rand(t, d, dtype="bfloat16"), zeros(t, d, dtype="bfloat16")
    inverse, gate = ((arange(t * k) * 17) % (t * k)).reshape(t, k), uniform(t, k)
    launched = run(add_up_experts, (cdiv(t, 4), cdiv(d, 128)), (y, inverse, gate, x, out, t, d), out, K=k, BT=4, BD=128)
    return against(launched, lambda: x.float() + (y.float()[inverse.long()] * gate[..., None]).sum(1))


@triton.jit
def accept_block_drafts(target_ptr, draft_ptr, tokens_ptr, u_ptr, accepted_ptr, rest_ptr, V, S: tl.constexpr, BV: tl.constexpr):
    # Ratios of probabilities multiplied along the draft; then the sums of what the target has more of, at the first refused.
    b = tl.program_id(0)
    s = tl.arange(0, S)
    token = tl.load(tokens_ptr + b * S + s)
    p = tl.load(target_ptr + (b * (S + 1) + s) * V + token)
    q = tl.load(draft_ptr + (b * S + s) * V + token)
    u = tl.load(u_ptr + b * S + s)
    joint = tl.cumprod(tl.minimum(p / tl.maximum(q, 1e-20), 1.0), 0)
    kept = tl.max(tl.where(u < joint, s + 1, 0), 0)
    total = tl.zeros((BV,), tl.float32)
    best, place = tl.full((BV,), -1.0, tl.float32), tl.zeros((BV,), tl.int32)
    for v0 in range(0, V, BV):
        v = v0 + tl.arange(0, BV)
        pv = tl.load(target_ptr + (b * (S + 1) + kept) * V + v, mask=v < V, other=0.0)
        qv = tl.load(draft_ptr + (b * S + tl.minimum(kept, S - 1)) * V + v, mask=(v < V) & (kept < S), other=0.0)
        more = tl.maximum(pv - qv, 0.0)
        total += more
        place = tl.where(more > best, v, place)
        best = tl.maximum(best, more)
    _, at = tl.max(best, 0, return_indices=True)
    tl.store(accepted_ptr + b * 2, kept)
    tl.store(accepted_ptr + b * 2 + 1, tl.sum(tl.where(tl.arange(0, BV) == at, place, 0), 0))
    tl.store(rest_ptr + b, tl.sum(total, 0))


@case
def drafts_accepted_by_products_of_ratios():
    b, s, v = 128, 8, 20_000
    target, draft = torch.softmax(f32(b, s + 1, v), 2), torch.softmax(f32(b, s, v), 2)
    tokens, u, accepted, rest = ints(0, v, b, s), uniform(b, s), zeros(b, 2, dtype="int32"), zeros(b, dtype="float32")
    args = target, draft, tokens, u, accepted, rest, v
    return run(accept_block_drafts, (b,), args, (accepted, rest), S=s, BV=2048, num_warps=8)


@triton.jit
def top_a_sample(logits_ptr, seeds_ptr, out_ptr, kept_ptr, V, share, BV: tl.constexpr):
    # Keeps what has at least a share of the square of the best probability, then takes the best of noise added.
    b = tl.program_id(0)
    high, total = -float("inf"), 0.0
    for v0 in range(0, V, BV):
        v = v0 + tl.arange(0, BV)
        x = tl.load(logits_ptr + b * V + v, mask=v < V, other=-float("inf")).to(tl.float32)
        new = tl.maximum(high, tl.max(x, 0))
        total = total * tl.exp(high - new) + tl.sum(tl.exp(x - new), 0)
        high = new
    least = tl.log(share / (total * total)) + high + tl.log(total)
    seed = tl.load(seeds_ptr + b)
    best, at, kept = -float("inf"), 0, 0
    for v0 in range(0, V, BV):
        v = v0 + tl.arange(0, BV)
        x = tl.load(logits_ptr + b * V + v, mask=v < V, other=-float("inf")).to(tl.float32)
        ok = x >= least
        noise = -tl.log(-tl.log(tl.rand(seed, v) * 0.999998 + 1e-6))
        value, i = tl.max(tl.where(ok, x + noise, -float("inf")), 0, return_indices=True)
        at = tl.where(value > best, v0 + i, at)
        best = tl.maximum(best, value)
        kept += tl.sum(ok.to(tl.int32), 0)
    tl.store(out_ptr + b, at)
    tl.store(kept_ptr + b, kept)


@case
def samples_of_those_near_the_square_of_the_best():
    b, v = 200, 32_000
    logits, seeds, out, kept = rand(b, v) * 3, arange(b), zeros(b, dtype="int32"), zeros(b, dtype="int32")
    return run(top_a_sample, (b,), (logits, seeds, out, kept, v, 0.2), (out, kept), BV=4096, num_warps=8)


@triton.jit
def beams_one_step(scores_ptr, logits_ptr, finished_ptr, next_ptr, parent_ptr, token_ptr, V, EOS, BEAMS: tl.constexpr, BV: tl.constexpr):
    # The four best of each beam's words by packed keys; then four of sixteen. A finished beam goes on as it is.
    b = tl.program_id(0)
    j = tl.arange(0, BEAMS)
    score = tl.load(scores_ptr + b * BEAMS + j)
    done = tl.load(finished_ptr + b * BEAMS + j) != 0
    best = tl.full((BEAMS, BEAMS), -(1 << 62), tl.int64)
    for v0 in range(0, V, BV):
        v = v0 + tl.arange(0, BV)
        x = tl.load(logits_ptr + (b * BEAMS + j)[:, None] * V + v[None, :], mask=(v < V)[None, :], other=-1e9)
        x = tl.where(done[:, None], tl.where(v[None, :] == EOS, 0.0, -1e9), x) + score[:, None]
        bits = x.to(tl.int32, bitcast=True)
        key = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.int64) * 4294967296 + (4 * v + 0)[None, :] + j[:, None]
        fresh = tl.topk(key, BEAMS, dim=1)
        both = tl.reshape(tl.join(best, fresh), (BEAMS, 2 * BEAMS))
        best = tl.topk(both, BEAMS, dim=1)
    last = tl.topk(tl.reshape(best, (BEAMS * BEAMS,)), BEAMS)
    low = (last & 0xFFFFFFFF).to(tl.int32)
    bits = (last >> 32).to(tl.int32)
    value = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)
    tl.store(next_ptr + b * BEAMS + j, value)
    tl.store(parent_ptr + b * BEAMS + j, low % 4)
    tl.store(token_ptr + b * BEAMS + j, low // 4)


@case
def four_beams_by_packed_keys_where_some_have_ended():
    b, beams, v = 132, 4, 8000
    scores, logits = -uniform(b, beams) * 5, torch.log_softmax(f32(b, beams, v), 2)
    finished = (arange(b * beams) % 7 == 0).to(torch.int8).reshape(b, beams)
    following, parent, token = zeros(b, beams, dtype="float32"), zeros(b, beams, dtype="int32"), zeros(b, beams, dtype="int32")
    args = scores, logits, finished, following, parent, token, v, 2
    launched = run(beams_one_step, (b,), args, (following, parent, token), BEAMS=beams, BV=512, num_warps=4)

    def reference():
        ended = torch.full_like(logits, -1e9)
        ended[..., 2] = 0
        x = torch.where(finished[..., None] != 0, ended, logits) + scores[..., None]
        best = x.reshape(b, -1).topk(beams)
        return best.values, best.indices // v, best.indices % v

    return against(launched, reference)


@triton.jit
def scaled_block_product(a_ptr, b_ptr, as_ptr, bs_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Scales of rows and groups on one side, of 128 by 128 blocks on the other, both e4m3; columns of 32 at a time.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    groups = K // BK
    for g in range(groups):
        a = tl.load(a_ptr + m[:, None] * K + (g * BK + k)[None, :], mask=(m < M)[:, None], other=0.0)
        b = tl.load(b_ptr + n[None, :] * K + (g * BK + k)[:, None], mask=(n < N)[None, :], other=0.0)
        sa = tl.load(as_ptr + g * M + m, mask=m < M, other=0.0)
        sb = tl.load(bs_ptr + (n // 128) * groups + g, mask=n < N, other=0.0)
        acc += tl.dot(a, b) * sa[:, None] * sb[None, :]
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def gemm_fp8_scales_of_groups_16x32_two_warps():
    m, n, k = 40, 4000, 2048
    a, b = rand(m, k).to(torch.float8_e4m3fn), rand(n, k).to(torch.float8_e4m3fn)
    sa, sb, c = uniform(k // 128, m), uniform(cdiv(n, 128), k // 128), zeros(m, n, dtype="bfloat16")
    launched = run(scaled_block_product, (cdiv(m, 16), cdiv(n, 32)), (a, b, sa, sb, c, m, n, k), c, BM=16, BN=32, BK=128, num_warps=2, num_stages=4)

    def reference():
        x = a.float().reshape(m, -1, 128) * sa.t()[..., None]
        y = b.float().reshape(n, -1, 128) * sb.repeat_interleave(128, 0)[:n, :, None]
        return x.flatten(1) @ y.flatten(1).t()

    return against(launched, reference)


@triton.jit
def grow_from_three_levels(x_ptr, out_ptr, scale_ptr, N, BLOCK: tl.constexpr):
    # Weights to -1, 0, 1 by the mean of magnitudes, four in a byte, by reshapes and sums of shifted codes.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=0.0).to(tl.float32)
    mean = tl.maximum(tl.sum(tl.abs(x), 0) / N, 1e-5)
    q = tl.clamp(libdevice.rint(x / mean), -1.0, 1.0).to(tl.int32) + 1
    parts = tl.reshape(q, (BLOCK // 4, 4)) << (2 * tl.arange(0, 4))[None, :]
    packed = tl.reduce_or(parts, 1)
    j = tl.arange(0, BLOCK // 4)
    tl.store(out_ptr + row * (N // 4) + j, packed.to(tl.uint8), mask=j < N // 4)
    tl.store(scale_ptr + row, mean)


def levels(packed):
    return torch.stack([(packed >> shift) & 3 for shift in (0, 2, 4, 6)]).float() + 100


@case
def rows_to_three_levels_four_in_a_byte():
    m, n = 8000, 1500
    x, out, scale = rand(m, n, dtype="bfloat16"), zeros(m, n // 4, dtype="uint8"), zeros(m, dtype="float32")
    return viewed(run(grow_from_three_levels, (m,), (x, out, scale, n), (out, scale), BLOCK=2048), lambda outs: (levels(outs[0]), outs[1]))


@triton.jit
def e8m0_blocks(x_ptr, q_ptr, s_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # Blocks of 32 along the first axis: the exponent of the largest, e5m2 codes, written turned.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    ok = (m < M)[:, None] & (n < N)[None, :]
    x = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=ok, other=0.0).to(tl.float32)
    blocks = tl.reshape(x, (BM // 32, 32, BN))
    top = tl.max(tl.abs(blocks), 1, keep_dims=True)
    exponent = ((tl.maximum(top, 1e-30).to(tl.int32, bitcast=True) >> 23) & 255) - 15
    exponent = tl.maximum(exponent, 1)
    inverse = ((254 - exponent) << 23).to(tl.float32, bitcast=True)
    q = tl.reshape(blocks * inverse, (BM, BN)).to(tl.float8e5)
    tl.store(q_ptr + n[None, :] * M + m[:, None], q, mask=ok)
    b = tl.program_id(0) * (BM // 32) + tl.arange(0, BM // 32)
    tl.store(s_ptr + n[None, :] * (M // 32) + b[:, None], tl.reshape(exponent, (BM // 32, BN)).to(tl.uint8), mask=(n < N)[None, :] & (b < M // 32)[:, None])


@case
def exponents_of_blocks_down_columns_and_codes_turned():
    m, n = 2048, 3000
    x, q, s = rand(m, n, dtype="bfloat16"), zeros(n, m, dtype="float8_e5m2"), zeros(n, m // 32, dtype="uint8")
    launched = run(e8m0_blocks, (m // 128, cdiv(n, 64)), (x, q, s, m, n), (q, s), BM=128, BN=64, num_warps=8)
    return viewed(launched, lambda outs: (far8(outs[0]), outs[1]))


@triton.jit
def prefill_into_ring(k_ptr, ring_ptr, starts_ptr, written_ptr, RING, D: tl.constexpr, BT: tl.constexpr):
    # Only the last RING tokens of a sequence are kept, each where its number falls; e4m3 with one scale.
    b = tl.program_id(1)
    first, last = tl.load(starts_ptr + b), tl.load(starts_ptr + b + 1)
    seen = tl.load(written_ptr + b)
    t = first + tl.program_id(0) * BT + tl.arange(0, BT)
    d = tl.arange(0, D)
    ok = (t < last) & (t >= last - RING)
    x = tl.load(k_ptr + t.to(tl.int64)[:, None] * D + d[None, :], mask=ok[:, None], other=0.0).to(tl.float32)
    to = (seen + t - first) % RING
    tl.store(ring_ptr + (b * RING + to)[:, None] * D + d[None, :], tl.clamp(x * 16.0, -448.0, 448.0).to(tl.float8e4nv), mask=ok[:, None])


@case
def last_tokens_of_sequences_into_rings_of_fp8():
    lengths, d, ring = [100, 3000, 1024, 1, 500, 2048, 1500, 700] * 4, 256, 1024
    starts = torch.tensor([sum(lengths[:i]) for i in range(len(lengths) + 1)], dtype=torch.int32, device="cuda")
    k, written = rand(sum(lengths), d, dtype="bfloat16"), ints(0, 5000, len(lengths))
    out = zeros(len(lengths), ring, d, dtype="float8_e4m3fn")
    launched = run(prefill_into_ring, (cdiv(3000, 32), len(lengths)), (k, out, starts, written, ring), out, D=d, BT=32)
    return viewed(launched, far8)
