"""Queries against keys, caches and states: neighborhoods, work lists, caches of few bits, gradients of biases and gates, hierarchies."""

import torch
import triton
import triton.language as tl

from .common import arange, case, cdiv, cleared, f8, f32, ints, rand, run, uniform, zeros
from .epilogues import allocate


@triton.jit
def softmax_step(s, v, top, total, acc):
    new = tl.maximum(top, tl.max(s, 1))
    p, back = tl.exp2(s - new[:, None]), tl.exp2(top - new)
    return new, total * back + tl.sum(p, 1), tl.dot(p.to(v.dtype), v, acc * back[:, None])


@triton.jit
def neighborhood_2d(
    Q, K, V, O, HEIGHT, WIDTH, scale,
    D: tl.constexpr, WINDOW: tl.constexpr, TY: tl.constexpr, TX: tl.constexpr, KY: tl.constexpr, KX: tl.constexpr,
):  # fmt: skip
    # Each pixel attends to a window around it that stays inside of the image; tiles of 8 by 8 queries, of 4 by 16 keys.
    across = WIDTH // TX
    ty, tx, head = tl.program_id(0) // across * TY, tl.program_id(0) % across * TX, tl.program_id(1).to(tl.int64)
    i, j, d = tl.arange(0, TY * TX), tl.arange(0, KY * KX), tl.arange(0, D)
    y, x = ty + i // TX, tx + i % TX
    base = head * HEIGHT * WIDTH * D
    q = tl.load(Q + base + (y * WIDTH + x)[:, None] * D + d[None, :])
    y_low = tl.minimum(tl.maximum(y - WINDOW // 2, 0), HEIGHT - WINDOW)
    x_low = tl.minimum(tl.maximum(x - WINDOW // 2, 0), WIDTH - WINDOW)
    first_y, last_y = tl.min(y_low, 0), tl.max(y_low, 0) + WINDOW
    first_x, last_x = tl.min(x_low, 0), tl.max(x_low, 0) + WINDOW
    top, total, acc = tl.full((TY * TX,), -1e30, tl.float32), tl.zeros((TY * TX,), tl.float32), tl.zeros((TY * TX, D), tl.float32)
    for y0 in range(first_y, last_y, KY):
        for x0 in range(first_x, last_x, KX):
            ky, kx = y0 + j // KX, x0 + j % KX
            live = (ky < HEIGHT) & (kx < WIDTH)
            at = base + (ky * WIDTH + kx)[:, None] * D + d[None, :]
            k, v = tl.load(K + at, mask=live[:, None], other=0.0), tl.load(V + at, mask=live[:, None], other=0.0)
            near_y = (ky[None, :] >= y_low[:, None]) & (ky[None, :] < y_low[:, None] + WINDOW)
            near_x = (kx[None, :] >= x_low[:, None]) & (kx[None, :] < x_low[:, None] + WINDOW)
            s = tl.where(near_y & near_x, tl.dot(q, k.T) * scale, -1e30)
            top, total, acc = softmax_step(s, v, top, total, acc)
    tl.store(O + base + (y * WIDTH + x)[:, None] * D + d[None, :], (acc / total[:, None]).to(O.dtype.element_ty))


@case
def attn_neighborhood_13x13_of_pixels():
    heads, height, width, d = 16, 64, 64, 64
    o = zeros(heads, height, width, d)
    args = rand(heads, height, width, d), rand(heads, height, width, d), rand(heads, height, width, d), o, height, width, d**-0.5 * 1.4427
    options = dict(D=d, WINDOW=13, TY=8, TX=8, KY=4, KX=16)
    return run(neighborhood_2d, (height * width // 64, heads), args, o, num_warps=4, num_stages=2, **options)


@triton.jit
def neighborhood_dilated(Q, K, V, O, T, scale, DILATION: tl.constexpr, W: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Tokens of one remainder see the 2W + 1 nearest of the same remainder.
    rest, head, m = tl.program_id(1) % DILATION, tl.program_id(1) // DILATION, tl.program_id(0) * BM + tl.arange(0, BM)
    count = (T - rest + DILATION - 1) // DILATION
    d = tl.arange(0, D)
    base = head.to(tl.int64) * T * D + rest * D
    at = base + m[:, None] * (DILATION * D) + d[None, :]
    q = tl.load(Q + at, mask=(m < count)[:, None], other=0.0)
    q = (q * scale).to(q.dtype)
    top, total, acc = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    start = tl.maximum(tl.program_id(0) * BM - W, 0) // BN * BN
    end = tl.minimum(tl.program_id(0) * BM + BM + W, count)
    for n0 in tl.range(start, end, BN, num_stages=4):
        n = n0 + tl.arange(0, BN)
        k = tl.load(K + base + n[None, :] * (DILATION * D) + d[:, None], mask=(n < count)[None, :], other=0.0)
        v = tl.load(V + base + n[:, None] * (DILATION * D) + d[None, :], mask=(n < count)[:, None], other=0.0)
        far = tl.abs(m[:, None] - n[None, :])
        s = tl.where((far <= W) & (n < count)[None, :], tl.dot(q, k), -1e30)
        top, total, acc = softmax_step(s, v, top, total, acc)
    tl.store(O + at, (acc / total[:, None]).to(O.dtype.element_ty), mask=(m < count)[:, None])


@case
def attn_neighborhood_dilated_by_5():
    heads, t, d, dilation = 16, 8003, 32, 5
    o = zeros(heads, t, d, dtype="bfloat16")
    q, k, v = (rand(heads, t, d, dtype="bfloat16") for _ in range(3))
    grid = cdiv(cdiv(t, dilation), 64), heads * dilation
    return run(neighborhood_dilated, grid, (q, k, v, o, t, 0.255), o, DILATION=dilation, W=96, D=d, BM=64, BN=32, num_warps=2, num_stages=4)


@triton.jit
def gradient_of_bias(Q, K, V, DO, LSE, DELTA, BIAS, DB, BATCH, H, T, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # A bias of all pairs that the batch shares: scores are made again for every sample, their gradients summed in registers.
    pm, pn, h = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    m, n, d = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN), tl.arange(0, D)
    live = (m < T)[:, None] & (n < T)[None, :]
    bias = tl.load(BIAS + (h * T + m)[:, None] * T + n[None, :], mask=live, other=0.0).to(tl.float32)
    acc = tl.zeros((BM, BN), tl.float32)
    for b in range(BATCH):
        base = (b * H + h) * T
        at_m, at_n = (base + m)[:, None] * D + d[None, :], (base + n)[None, :] * D + d[:, None]
        q, g = tl.load(Q + at_m, mask=(m < T)[:, None], other=0.0), tl.load(DO + at_m, mask=(m < T)[:, None], other=0.0)
        k, v = tl.load(K + at_n, mask=(n < T)[None, :], other=0.0), tl.load(V + at_n, mask=(n < T)[None, :], other=0.0)
        lse, delta = tl.load(LSE + base + m, mask=m < T, other=0.0), tl.load(DELTA + base + m, mask=m < T, other=0.0)
        p = tl.exp(tl.dot(q, k) * scale + bias - lse[:, None])
        acc += p * (tl.dot(g, v) - delta[:, None])
    tl.store(DB + (h * T + m)[:, None] * T + n[None, :], acc, mask=live)


@case
def attn_gradient_of_shared_bias():
    b, h, t, d = 12, 8, 500, 48 + 16
    q, k, v, g = (rand(b, h, t, d, dtype="bfloat16") for _ in range(4))
    db = zeros(h, t, t, dtype="float32")
    args = q, k, v, g, uniform(b, h, t) + 6.0, f32(b, h, t), rand(h, t, t, dtype="bfloat16"), db, b, h, t, d**-0.5
    return run(gradient_of_bias, (cdiv(t, 64), cdiv(t, 128), h), args, db, D=d, BM=64, BN=128, num_warps=8, num_stages=2)


@triton.jit
def attend_specialized(Q, K, V, O, LSE, T, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    pm, bh = tl.program_id(0), tl.program_id(1)
    rows = tl.num_programs(1) * T
    q_desc = tl.make_tensor_descriptor(Q, [rows, D], [D, 1], [BM, D])
    k_desc = tl.make_tensor_descriptor(K, [rows, D], [D, 1], [BN, D])
    v_desc = tl.make_tensor_descriptor(V, [rows, D], [D, 1], [BN, D])
    o_desc = tl.make_tensor_descriptor(O, [rows, D], [D, 1], [BM, D])
    m = pm * BM + tl.arange(0, BM)
    q = q_desc.load([bh * T + pm * BM, 0])
    top, total, acc = tl.full((BM,), -1e30, tl.float32), tl.full((BM,), 1.0, tl.float32), tl.zeros((BM, D), tl.float32)
    for n0 in tl.range(0, pm * BM + BM, BN, warp_specialize=True):
        n0 = tl.multiple_of(n0, BN)
        s = tl.dot(q, k_desc.load([bh * T + n0, 0]).T) * scale
        s += tl.where(m[:, None] >= (n0 + tl.arange(0, BN))[None, :], 0.0, -1.0e6)
        top, total, acc = softmax_step(s, v_desc.load([bh * T + n0, 0]), top, total, acc)
    tl.store(LSE + bh * T + m, top + tl.log2(total))
    o_desc.store([bh * T + pm * BM, 0], (acc / total[:, None]).to(O.dtype.element_ty))


@case
def attn_specialized_descriptors_d256():
    allocate()
    bh, t, d = 16, 2048, 256
    o, lse = zeros(bh, t, d, dtype="bfloat16"), zeros(bh, t, dtype="float32")
    args = *(rand(bh, t, d, dtype="bfloat16") for _ in range(3)), o, lse, t, d**-0.5 * 1.4427
    return run(attend_specialized, (t // 128, bh), args, (o, lse), D=d, BM=128, BN=64, num_warps=8, num_stages=2)


@triton.jit
def attend_in_eight_bits(Q, K, VT, SQ, SK, SV, O, T, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Blocks of queries and of keys have a scale each; probabilities leave as FP8 times 448; values are stored transposed.
    pm, h = tl.program_id(0), tl.program_id(1)
    m, n, d = pm * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    q = tl.load(Q + (h * T + m)[:, None] * D + d[None, :])
    q_scale = tl.load(SQ + h * (T // BM) + pm) * scale
    k_ptrs, v_ptrs = K + (h * T + n)[None, :] * D + d[:, None], VT + (h * D + d)[None, :] * T + n[:, None]
    top, total, acc = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
    for n0 in range(0, T, BN):
        s = tl.dot(q, tl.load(k_ptrs)) * (q_scale * tl.load(SK + h * (T // BN) + n0 // BN))
        new = tl.maximum(top, tl.max(s, 1))
        p, back = tl.math.exp2(s - new[:, None]), tl.math.exp2(top - new)
        total = total * back + tl.sum(p, 1)
        acc = acc * back[:, None] + tl.dot((p * 448.0).to(tl.float8e4nv), tl.load(v_ptrs), out_dtype=tl.float32)
        top = new
        k_ptrs += BN * D
        v_ptrs += BN
    y = acc / (total * 448.0)[:, None] * tl.load(SV + h * D + d)[None, :]
    tl.store(O + (h * T + m)[:, None] * D + d[None, :], y.to(tl.bfloat16))


@case
def attn_fp8_probabilities_transposed_values():
    h, t, d = 24, 2048, 128
    o = zeros(h, t, d, dtype="bfloat16")
    args = f8(h, t, d), f8(h, t, d), f8(h, d, t), uniform(h, t // 128) + 0.5, uniform(h, t // 64) + 0.5, uniform(h, d), o, t, 0.08
    return run(attend_in_eight_bits, (t // 128, h), args, o, D=d, BM=128, BN=64, num_warps=8, num_stages=3)


@triton.jit
def four_bit_floats(packed, scale, ROWS: tl.constexpr, D: tl.constexpr):
    low, high = packed & 15, (packed >> 4) & 15
    codes = tl.reshape(tl.join(low, high), (ROWS, D)).to(tl.int32)
    mantissa, exponent = codes & 1, (codes >> 1) & 3
    magnitude = tl.where(exponent == 0, mantissa * 0.5, (1 << exponent) * (0.5 + 0.25 * mantissa))
    values = tl.where(codes >= 8, -magnitude, magnitude)
    return tl.reshape(tl.reshape(values, (ROWS, D // 16, 16)) * scale.to(tl.float32)[:, :, None], (ROWS, D)).to(tl.bfloat16)


@triton.jit
def decode_pages_of_four_bits(
    Q, K, V, SK, SV, PAGES, LENGTH, O, LSE, stride_table, sk, sv, scale,
    H: tl.constexpr, G: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, BN: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    request, h, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(LENGTH + request)
    per = tl.cdiv(tl.cdiv(length, PARTS), BN) * BN
    g, d, p, s16 = tl.arange(0, G), tl.arange(0, D), tl.arange(0, D // 2), tl.arange(0, D // 16)
    q = tl.load(Q + ((request * H + h) * G + g)[:, None] * D + d[None, :])
    top, total, acc = tl.full((G,), -1e30, tl.float32), tl.zeros((G,), tl.float32), tl.zeros((G, D), tl.float32)
    for n0 in range(part * per, tl.minimum(part * per + per, length), BN):
        n = n0 + tl.arange(0, BN)
        live = n < length
        page = tl.load(PAGES + request * stride_table + n // PAGE, mask=live, other=0).to(tl.int64)
        row = (page * PAGE + n % PAGE) * H + h
        k8 = tl.load(K + row[:, None] * (D // 2) + p[None, :], mask=live[:, None], other=0)
        ks = tl.load(SK + row[:, None] * (D // 16) + s16[None, :], mask=live[:, None], other=0.0)
        s = tl.dot(q, tl.trans(four_bit_floats(k8, ks, BN, D))) * (scale * sk)
        s = tl.where(live[None, :], s, -1e30)
        v8 = tl.load(V + row[:, None] * (D // 2) + p[None, :], mask=live[:, None], other=0)
        vs = tl.load(SV + row[:, None] * (D // 16) + s16[None, :], mask=live[:, None], other=0.0)
        top, total, acc = softmax_step(s, four_bit_floats(v8, vs, BN, D), top, total, acc)
    out = ((request * H + h) * PARTS + part) * G + g
    tl.store(LSE + out, top + tl.log2(tl.maximum(total, 1e-30)))
    tl.store(O + out[:, None] * D + d[None, :], acc * (sv / tl.maximum(total, 1e-30))[:, None])


@case
def attn_decode_pages_of_four_bit_floats():
    requests, h, g, d, page, parts, pages = 16, 4, 16, 128, 16, 4, 2048
    o, lse = zeros(requests, h, parts, g, d, dtype="float32"), zeros(requests, h, parts, g, dtype="float32")
    k, v = ints(0, 256, pages, page, h, d // 2, dtype="uint8"), ints(0, 256, pages, page, h, d // 2, dtype="uint8")
    sk, sv = f8(pages, page, h, d // 16), f8(pages, page, h, d // 16)
    table = ints(0, pages, requests, 128)
    args = rand(requests, h, g, d, dtype="bfloat16"), k, v, sk, sv, table, ints(200, 2049, requests), o, lse, 128, 0.5, 0.5, 0.02
    options = dict(H=h, G=g, D=d, PAGE=page, BN=64, PARTS=parts)
    return run(decode_pages_of_four_bits, (requests, h, parts), args, (o, lse), num_warps=4, num_stages=2, **options)


@triton.jit
def decode_latent_of_groups(
    Q, QR, C, SC, R, TABLE, LENGTH, O, stride_table, scale,
    HEADS: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr, ROPE: tl.constexpr,
):  # fmt: skip
    # A latent of 256 bytes with two scales and 64 rotated halves a token, that all heads share; values are the latent again.
    request, h = tl.program_id(0), tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    heads = tl.num_programs(1) * HEADS
    length = tl.load(LENGTH + request)
    c, r = tl.arange(0, GROUP), tl.arange(0, ROPE)
    q0 = tl.load(Q + (request * heads + h)[:, None] * (2 * GROUP) + c[None, :])
    q1 = tl.load(Q + (request * heads + h)[:, None] * (2 * GROUP) + GROUP + c[None, :])
    qr = tl.load(QR + (request * heads + h)[:, None] * ROPE + r[None, :])
    top, total = tl.full((HEADS,), -1e30, tl.float32), tl.zeros((HEADS,), tl.float32)
    acc0, acc1 = tl.zeros((HEADS, GROUP), tl.float32), tl.zeros((HEADS, GROUP), tl.float32)
    for n0 in tl.range(0, length, BN, num_stages=2):
        n = n0 + tl.arange(0, BN)
        live = n < length
        row = tl.load(TABLE + request * stride_table + n, mask=live, other=0)
        at = C + row[:, None] * (2 * GROUP) + c[None, :]
        s0, s1 = tl.load(SC + row * 2, mask=live, other=0.0), tl.load(SC + row * 2 + 1, mask=live, other=0.0)
        c0 = (tl.load(at, mask=live[:, None], other=0.0).to(tl.float32) * s0[:, None]).to(tl.bfloat16)
        c1 = (tl.load(at + GROUP, mask=live[:, None], other=0.0).to(tl.float32) * s1[:, None]).to(tl.bfloat16)
        kr = tl.load(R + row[:, None] * ROPE + r[None, :], mask=live[:, None], other=0.0)
        s = tl.dot(qr, kr.T)
        s = tl.dot(q0, c0.T, s)
        s = tl.dot(q1, c1.T, s) * scale
        s = tl.where(live[None, :], s, -1e30)
        new = tl.maximum(top, tl.max(s, 1))
        p, back = tl.exp2(s - new[:, None]), tl.exp2(top - new)
        total = total * back + tl.sum(p, 1)
        p = p.to(tl.bfloat16)
        acc0 = tl.dot(p, c0, acc0 * back[:, None])
        acc1 = tl.dot(p, c1, acc1 * back[:, None])
        top = new
    out = O + (request * heads + h)[:, None] * (2 * GROUP) + c[None, :]
    tl.store(out, (acc0 / total[:, None]).to(tl.bfloat16))
    tl.store(out + GROUP, (acc1 / total[:, None]).to(tl.bfloat16))


@case
def attn_decode_latent_two_scales_a_token():
    requests, heads, tokens, most = 48, 64, 40000, 900
    o = zeros(requests, heads, 256, dtype="bfloat16")
    q, qr = rand(requests, heads, 256, dtype="bfloat16"), rand(requests, heads, 64, dtype="bfloat16")
    args = q, qr, f8(tokens, 256), uniform(tokens, 2) + 0.2, rand(tokens, 64, dtype="bfloat16"), ints(0, tokens, requests, most)
    args = *args, ints(300, most + 1, requests), o, most, 0.06
    return run(decode_latent_of_groups, (requests, heads // 16), args, o, HEADS=16, BN=32, GROUP=128, ROPE=64, num_warps=4, num_stages=2)


@triton.jit
def slots_step_by_step(Q, K, V, A, O, T, H, scale, S: tl.constexpr, D: tl.constexpr):
    # A memory of slots that forget: each step decays both tables, writes into them, and reads through a softmax over slots.
    bh = tl.program_id(0)
    s, d = tl.arange(0, S), tl.arange(0, D)
    keys, values = tl.zeros((S, D), tl.float32), tl.zeros((S, D), tl.float32)
    for t in range(T):
        row = (bh // H * T + t) * H + bh % H
        q, k, v = tl.load(Q + row * D + d).to(tl.float32), tl.load(K + row * D + d).to(tl.float32), tl.load(V + row * D + d).to(tl.float32)
        keep = tl.load(A + row * S + s).to(tl.float32)
        keys = keys * keep[:, None] + (1.0 - keep)[:, None] * k[None, :]
        values = values * keep[:, None] + (1.0 - keep)[:, None] * v[None, :]
        score = tl.sum(keys * (q * scale)[None, :], 1)
        p = tl.exp(score - tl.max(score, 0))
        y = tl.sum(values * (p / tl.sum(p, 0))[:, None], 0)
        tl.store(O + row * D + d, y.to(O.dtype.element_ty))


@case
def slots_that_forget_read_by_softmax():
    b, t, h, s, d = 16, 256, 8, 32, 64
    q, k, v = (rand(b, t, h, d, dtype="bfloat16") for _ in range(3))
    a, o = torch.sigmoid(f32(b, t, h, s) + 2).to(torch.bfloat16), zeros(b, t, h, d, dtype="bfloat16")
    return run(slots_step_by_step, (b * h,), (q, k, v, a, o, t, h, d**-0.5), o, S=s, D=d, num_warps=4)


@triton.jit
def hierarchical_scores(Q, K, V, DECAY, LEVELS, O, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, L: tl.constexpr):
    # Linear attention where the weight of a pair comes from the highest bit in which its places differ, and from decays.
    pm, h = tl.program_id(0), tl.program_id(1)
    m, d = pm * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(Q + (h * T + m)[:, None] * D + d[None, :])
    decay_m = tl.load(DECAY + h * T + m)
    weights = tl.load(LEVELS + (h * T + m)[:, None] * L + tl.arange(0, L)[None, :])
    acc = tl.zeros((BM, D), tl.float32)
    for n0 in range(0, pm * BM + BM, BN):
        n = n0 + tl.arange(0, BN)
        k = tl.load(K + (h * T + n)[None, :] * D + d[:, None])
        v = tl.load(V + (h * T + n)[:, None] * D + d[None, :])
        differ = m[:, None] ^ n[None, :]
        level = tl.where(differ == 0, 0, (differ.to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 126)
        s = tl.dot(q, k) * tl.gather(weights, level, 1)
        s *= tl.exp(tl.minimum(decay_m[:, None] - tl.load(DECAY + h * T + n)[None, :], 0.0))
        s = tl.where(m[:, None] >= n[None, :], s, 0.0)
        acc = tl.dot(s.to(v.dtype), v, acc)
    tl.store(O + (h * T + m)[:, None] * D + d[None, :], acc.to(O.dtype.element_ty))


@case
def linear_attn_of_levels_of_distance():
    h, t, d = 32, 2048, 64
    q, k, v = (rand(h, t, d, dtype="bfloat16") * 0.3 for _ in range(3))
    o, decay = zeros(h, t, d, dtype="bfloat16"), -(uniform(h, t) * 0.02).cumsum(1)
    return run(hierarchical_scores, (t // 64, h), (q, k, v, decay, uniform(h, t, 16), o, t), o, D=d, BM=64, BN=64, L=16, num_warps=4, num_stages=2)


@triton.jit
def taylor_scores(Q, K, V, O, Z, T, scale, DK: tl.constexpr, DV: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # 1 + s + s^2 / 2 for the exponential: no maximum, keys of 16 features, no masks but on the diagonal.
    pm, h = tl.program_id(0), tl.program_id(1)
    m, k16, d = pm * BM + tl.arange(0, BM), tl.arange(0, DK), tl.arange(0, DV)
    q = tl.load(Q + (h * T + m)[:, None] * DK + k16[None, :])
    q = (q * scale).to(q.dtype)
    acc, z = tl.zeros((BM, DV), tl.float32), tl.zeros((BM,), tl.float32)
    for n0 in range(0, pm * BM, BN):
        n = n0 + tl.arange(0, BN)
        s = tl.dot(q, tl.load(K + (h * T + n)[None, :] * DK + k16[:, None]))
        s = 1.0 + s + 0.5 * s * s
        z += tl.sum(s, 1)
        acc += tl.dot(s.to(tl.float16), tl.load(V + (h * T + n)[:, None] * DV + d[None, :]))
    for n0 in range(pm * BM, pm * BM + BM, BN):
        n = n0 + tl.arange(0, BN)
        s = tl.dot(q, tl.load(K + (h * T + n)[None, :] * DK + k16[:, None]))
        s = tl.where(m[:, None] >= n[None, :], 1.0 + s + 0.5 * s * s, 0.0)
        z += tl.sum(s, 1)
        acc += tl.dot(s.to(tl.float16), tl.load(V + (h * T + n)[:, None] * DV + d[None, :]))
    tl.store(O + (h * T + m)[:, None] * DV + d[None, :], (acc / (z[:, None] + 1e-6)).to(O.dtype.element_ty))
    tl.store(Z + h * T + m, z)


@case
def attn_second_order_scores_of_16_features():
    h, t, dk, dv = 32, 2048, 16, 128
    o, z = zeros(h, t, dv), zeros(h, t, dtype="float32")
    args = rand(h, t, dk), rand(h, t, dk), rand(h, t, dv), o, z, t, 0.25
    return run(taylor_scores, (t // 128, h), args, (o, z), DK=dk, DV=dv, BM=128, BN=64, num_warps=8, num_stages=2)


@triton.jit
def stabilized_chunks(Q, K, V, I, F, O, T, scale, D: tl.constexpr, DV: tl.constexpr, L: tl.constexpr):
    # Matrix memory with exponential gates: a running maximum keeps the state, its normalizer and the chunk's scores finite.
    bh, pv = tl.program_id(0), tl.program_id(1)
    c, d, e = tl.arange(0, L), tl.arange(0, D), pv * DV + tl.arange(0, DV)
    state, norm, top = tl.zeros((D, DV), tl.float32), tl.zeros((D,), tl.float32), -1e30
    width = tl.num_programs(1) * DV
    for t0 in range(0, T, L):
        row = bh * T + t0 + c
        q, k = tl.load(Q + row[:, None] * D + d[None, :]), tl.load(K + row[:, None] * D + d[None, :])
        v = tl.load(V + row[:, None] * width + e[None, :])
        gate, forget = tl.load(I + row), tl.load(F + row)
        forget = tl.minimum(forget, 0.0) - tl.log(1.0 + tl.exp(-tl.abs(forget)))
        sums = tl.cumsum(forget, 0)
        all_ = tl.sum(forget, 0)
        pairs = tl.where(c[:, None] >= c[None, :], sums[:, None] - sums[None, :] + gate[None, :], -1e30)
        local = tl.maximum(tl.max(pairs, 1), sums + top)
        s = tl.dot(q, tl.trans(k)) * scale * tl.exp(pairs - local[:, None])
        carried = tl.exp(sums + top - local) * scale
        y = tl.dot(s.to(v.dtype), v) + tl.dot(q, state.to(q.dtype)) * carried[:, None]
        z = tl.sum(s, 1) + tl.sum(q.to(tl.float32) * norm[None, :], 1) * carried
        y = y / tl.maximum(tl.abs(z), tl.exp(-local))[:, None]
        tl.store(O + row[:, None] * width + e[None, :], y.to(O.dtype.element_ty))
        into = all_ - sums + gate
        new = tl.maximum(all_ + top, tl.max(into, 0))
        weighed = k.to(tl.float32) * tl.exp(into - new)[:, None]
        keep = tl.exp(all_ + top - new)
        state = tl.dot(tl.trans(weighed.to(k.dtype)), v, state * keep)
        norm = norm * keep + tl.sum(weighed, 0)
        top = new


@case
def matrix_memory_of_exponential_gates():
    bh, t, d = 48, 1024, 64
    q, k, v = rand(bh, t, d, dtype="bfloat16"), rand(bh, t, d, dtype="bfloat16"), rand(bh, t, 128, dtype="bfloat16")
    o = zeros(bh, t, 128, dtype="bfloat16")
    args = q, k, v, f32(bh, t), f32(bh, t) + 3, o, t, d**-0.5
    return run(stabilized_chunks, (bh, 2), args, o, D=d, DV=64, L=64, num_warps=4, num_stages=2)


@triton.jit
def attend_with_points(
    Q, K, V, QP, KP, VP, BIAS, GAMMA, O, OP, N, scale,
    C: tl.constexpr, P: tl.constexpr, PV: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    # Invariant points: squared distances of turned points join the scores as norms less twice a dot; points are averaged too.
    h, m = tl.program_id(1), tl.program_id(0) * BM + tl.arange(0, BM)
    c, p, w = tl.arange(0, C), tl.arange(0, P), tl.arange(0, PV)
    live_m = (m < N)[:, None]
    q = tl.load(Q + (h * N + m)[:, None] * C + c[None, :], mask=live_m, other=0.0)
    qp = tl.load(QP + (h * N + m)[:, None] * P + p[None, :], mask=live_m, other=0.0)
    gamma = tl.load(GAMMA + h)
    norm_q = tl.sum(qp * qp, 1)
    top, total = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32)
    acc, points = tl.zeros((BM, C), tl.float32), tl.zeros((BM, PV), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        live = (n < N)[:, None]
        k = tl.load(K + (h * N + n)[:, None] * C + c[None, :], mask=live, other=0.0)
        kp = tl.load(KP + (h * N + n)[:, None] * P + p[None, :], mask=live, other=0.0)
        far = norm_q[:, None] + tl.sum(kp * kp, 1)[None, :] - 2.0 * tl.dot(qp, tl.trans(kp), input_precision="tf32")
        bias = tl.load(BIAS + (h * N + m)[:, None] * N + n[None, :], mask=live_m & (n < N)[None, :], other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale + bias.to(tl.float32) - 0.5 * gamma * far
        s = tl.where((n < N)[None, :], s, -1e30)
        new = tl.maximum(top, tl.max(s, 1))
        e, back = tl.exp(s - new[:, None]), tl.exp(top - new)
        total = total * back + tl.sum(e, 1)
        v = tl.load(V + (h * N + n)[:, None] * C + c[None, :], mask=live, other=0.0)
        vp = tl.load(VP + (h * N + n)[:, None] * PV + w[None, :], mask=live, other=0.0)
        acc = tl.dot(e.to(v.dtype), v, acc * back[:, None])
        points = tl.dot(e, vp, points * back[:, None], input_precision="tf32")
        top = new
    tl.store(O + (h * N + m)[:, None] * C + c[None, :], (acc / total[:, None]).to(O.dtype.element_ty), mask=live_m)
    tl.store(OP + (h * N + m)[:, None] * PV + w[None, :], points / total[:, None], mask=live_m)


@case
def attn_of_points_in_frames():
    h, n, c = 48, 700, 16
    o, op = zeros(h, n, c), zeros(h, n, 32, dtype="float32")
    args = *(rand(h, n, c) for _ in range(3)), f32(h, n, 16), f32(h, n, 16), f32(h, n, 32), rand(h, n, n), uniform(h) * 0.1, o, op, n, 0.25
    return run(attend_with_points, (cdiv(n, 64), h), args, (o, op), C=c, P=16, PV=32, BM=64, BN=64, num_warps=4, num_stages=2)


@triton.jit
def gradients_backwards_in_time(Q, V, K, W, DO, DK, DV, T, H, D: tl.constexpr, DB: tl.constexpr):
    # The gradient of a decayed state runs from the last token to the first; a program has all keys' rows of some values.
    bh, part = tl.program_id(0), tl.program_id(1)
    i, j = tl.arange(0, D), part * DB + tl.arange(0, DB)
    state = tl.zeros((D, DB), tl.float32)
    row = (bh // H * T + T - 1) * H + bh % H
    for _ in range(T):
        q, k = tl.load(Q + row * D + i).to(tl.float32), tl.load(K + row * D + i).to(tl.float32)
        g, v = tl.load(DO + row * D + j).to(tl.float32), tl.load(V + row * D + j).to(tl.float32)
        state += q[:, None] * g[None, :]
        tl.store(DV + row * D + j, tl.sum(state * k[:, None], 0).to(DV.dtype.element_ty))
        tl.atomic_add(DK + row * D + i, tl.sum(state * v[None, :], 1), sem="relaxed")
        state *= tl.exp(-tl.exp(tl.load(W + row * D + i).to(tl.float32)))[:, None]
        row -= H


@case
def decayed_states_gradients_in_reverse():
    b, t, h, d = 8, 256, 8, 64
    q, k, v, g = (rand(b, t, h, d, dtype="bfloat16") * 0.3 for _ in range(4))
    w, dk, dv = f32(b, t, h, d) * 0.3 - 1.5, zeros(b, t, h, d, dtype="float32"), zeros(b, t, h, d, dtype="bfloat16")
    args = q, v, k, w, g, dk, dv, t, h
    return cleared(run(gradients_backwards_in_time, (b * h, 2), args, (dk, dv), D=d, DB=32, num_warps=4), dk)


@triton.jit
def turn(x1, x2, cos, sin):
    return x1 * cos - x2 * sin, x2 * cos + x1 * sin


@triton.jit
def decode_turning_keys(Q, K, V, COS, SIN, LENGTH, O, SINKS, RING, scale, G: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    # Keys are kept as they were made and turned when read, by their place in the cache: sinks first, then a ring that moves on.
    request, h = tl.program_id(0), tl.program_id(1)
    seen = tl.load(LENGTH + request)
    count = tl.minimum(seen, SINKS + RING)
    g, half = tl.arange(0, G), tl.arange(0, D // 2)
    row = (request * tl.num_programs(1) + h) * G + g
    q1 = tl.load(Q + row[:, None] * D + half[None, :]).to(tl.float32)
    q2 = tl.load(Q + row[:, None] * D + D // 2 + half[None, :]).to(tl.float32)
    q1, q2 = turn(q1, q2, tl.load(COS + (count - 1) * (D // 2) + half)[None, :], tl.load(SIN + (count - 1) * (D // 2) + half)[None, :])
    q1, q2 = q1.to(tl.float16), q2.to(tl.float16)
    top, total, acc = tl.full((G,), -1e30, tl.float32), tl.zeros((G,), tl.float32), tl.zeros((G, D), tl.float32)
    first = tl.maximum(seen - SINKS - RING, 0)
    base = (request * tl.num_programs(1) + h) * (SINKS + RING)
    for n0 in tl.range(0, count, BN, num_stages=3):
        n = n0 + tl.arange(0, BN)
        live = n < count
        slot = tl.where(n < SINKS, n, SINKS + (n - SINKS + first) % RING)
        at = K + (base + slot)[:, None] * D + half[None, :]
        k1, k2 = tl.load(at, mask=live[:, None], other=0.0).to(tl.float32), tl.load(at + D // 2, mask=live[:, None], other=0.0).to(tl.float32)
        angle = n[:, None] * (D // 2) + half[None, :]
        cos, sin = tl.load(COS + angle, mask=live[:, None], other=0.0), tl.load(SIN + angle, mask=live[:, None], other=0.0)
        k1, k2 = turn(k1, k2, cos, sin)
        s = tl.dot(q2, k2.to(tl.float16).T, tl.dot(q1, k1.to(tl.float16).T)) * scale
        v = tl.load(V + (base + slot)[:, None] * D + tl.arange(0, D)[None, :], mask=live[:, None], other=0.0)
        top, total, acc = softmax_step(tl.where(live[None, :], s, -1e30), v, top, total, acc)
    tl.store(O + row[:, None] * D + tl.arange(0, D)[None, :], (acc / total[:, None]).to(O.dtype.element_ty))


@case
def attn_decode_turns_keys_when_read():
    requests, h, g, d, sinks, ring = 32, 8, 16, 64, 4, 1020
    angle = arange(sinks + ring).float()[:, None] * 10000.0 ** (-arange(d // 2).float() / (d // 2))[None, :]
    o = zeros(requests, h, g, d)
    k, v = rand(requests, h, sinks + ring, d), rand(requests, h, sinks + ring, d)
    args = rand(requests, h, g, d), k, v, angle.cos(), angle.sin(), ints(300, 3000, requests), o, sinks, ring, 0.18
    return run(decode_turning_keys, (requests, h), args, o, G=g, D=d, BN=64, num_warps=4, num_stages=3)


@triton.jit
def chunk_gradients(Q, K, V, G, H, DH, DO, DQ, DK, DG, T, scale, NC, D: tl.constexpr, DV: tl.constexpr, BV: tl.constexpr, L: tl.constexpr):
    # Within a chunk and from the states at its borders: queries, keys and gates of a gated linear attention, blocks of values in a loop.
    chunk, bh = tl.program_id(0), tl.program_id(1)
    t, d = chunk * L + tl.arange(0, L), tl.arange(0, D)
    g = tl.load(G + bh * T + t)
    last = tl.load(G + bh * T + chunk * L + L - 1)
    q, k = tl.load(Q + (bh * T + t)[:, None] * D + d[None, :]), tl.load(K + (bh * T + t)[:, None] * D + d[None, :])
    ds, dq, dk = tl.zeros((L, L), tl.float32), tl.zeros((L, D), tl.float32), tl.zeros((L, D), tl.float32)
    both = 0.0
    for v0 in range(0, DV, BV):
        e = v0 + tl.arange(0, BV)
        v = tl.load(V + (bh * T + t)[:, None] * DV + e[None, :])
        do = tl.load(DO + (bh * T + t)[:, None] * DV + e[None, :])
        h = tl.load(H + ((bh * NC + chunk) * D + d)[None, :] * DV + e[:, None])
        dh = tl.load(DH + ((bh * NC + chunk) * D + d)[None, :] * DV + e[:, None])
        ds = tl.dot(do, tl.trans(v), ds)
        dq = tl.dot(do, h, dq)
        dk = tl.dot(v, dh, dk)
        both += tl.sum(h.to(tl.float32) * dh.to(tl.float32))
    dq *= (tl.exp(g) * scale)[:, None]
    dk *= tl.exp(last - g)[:, None]
    both *= tl.exp(last)
    both += tl.sum(dk * k)
    i = tl.arange(0, L)
    ds = tl.where(i[:, None] >= i[None, :], ds * tl.exp(g[:, None] - g[None, :]) * scale, 0.0).to(q.dtype)
    dg = tl.sum(dq * q, 1) - tl.sum(dk * k, 1)
    dq = tl.dot(ds, k, dq)
    dk = tl.dot(tl.trans(ds), q, dk)
    inner = tl.dot(q, tl.trans(k)) * ds.to(tl.float32)
    dg += tl.sum(inner, 1) - tl.sum(inner, 0)
    dg = tl.where(i == L - 1, dg + both, dg)
    tl.store(DQ + (bh * T + t)[:, None] * D + d[None, :], dq.to(tl.bfloat16))
    tl.store(DK + (bh * T + t)[:, None] * D + d[None, :], dk.to(tl.bfloat16))
    tl.store(DG + bh * T + t, tl.cumsum(dg, 0, reverse=True))


@case
def gradients_of_chunks_queries_keys_gates():
    bh, t, d, dv, length = 32, 1024, 64, 128, 64
    q, k = rand(bh, t, d, dtype="bfloat16") * 0.3, rand(bh, t, d, dtype="bfloat16") * 0.3
    v, do = rand(bh, t, dv, dtype="bfloat16") * 0.3, rand(bh, t, dv, dtype="bfloat16") * 0.3
    g = -(uniform(bh, t // length, length) * 0.1).cumsum(2).reshape(bh, t)
    h, dh = rand(bh, t // length, d, dv, dtype="bfloat16"), rand(bh, t // length, d, dv, dtype="bfloat16")
    outs = zeros(bh, t, d, dtype="bfloat16"), zeros(bh, t, d, dtype="bfloat16"), zeros(bh, t, dtype="float32")
    args = q, k, v, g, h, dh, do, *outs, t, d**-0.5, t // length
    return run(chunk_gradients, (t // length, bh), args, outs, D=d, DV=dv, BV=32, L=length, num_warps=4, num_stages=3)


@triton.jit
def attend_work_items(
    Q, K, V, O, LSE, ITEMS, OF, PAGES, stride_table, scale,
    HK: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    # A program walks its own list of work: (request, head, first row, rows, first key, last key, row of the result).
    row, d = tl.arange(0, BM), tl.arange(0, D)
    for item in range(tl.load(OF + tl.program_id(0)), tl.load(OF + tl.program_id(0) + 1)):
        at = ITEMS + item * 8
        request, h, first, rows = tl.load(at), tl.load(at + 1), tl.load(at + 2), tl.load(at + 3)
        start, end, to = tl.load(at + 4), tl.load(at + 5), tl.load(at + 6)
        token, member = first + row // GROUP, h * GROUP + row % GROUP
        live = (row < rows)[:, None]
        q = tl.load(Q + (token * (HK * GROUP) + member)[:, None] * D + d[None, :], mask=live, other=0.0)
        top, total, acc = tl.full((BM,), -1e30, tl.float32), tl.zeros((BM,), tl.float32), tl.zeros((BM, D), tl.float32)
        for n0 in range(start, end, BN):
            n = n0 + tl.arange(0, BN)
            inside = n < end
            page = tl.load(PAGES + request * stride_table + n // PAGE, mask=inside, other=0)
            kv = ((page * PAGE + n % PAGE) * HK + h)[:, None] * D + d[None, :]
            k = tl.load(K + kv, mask=inside[:, None], other=0.0)
            v = tl.load(V + kv, mask=inside[:, None], other=0.0)
            s = tl.where(inside[None, :], tl.dot(q, tl.trans(k)) * scale, -1e30)
            top, total, acc = softmax_step(s, v, top, total, acc)
        tl.store(O + (to + row)[:, None] * D + d[None, :], (acc / total[:, None]).to(O.dtype.element_ty), mask=live)
        tl.store(LSE + to + row, top + tl.log2(total), mask=row < rows)


@case
def attn_lists_of_work_for_programs():
    programs, per, requests, hk, group, d, page, pages, bm = 132, 3, 24, 4, 4, 128, 16, 2400, 64
    n = programs * per
    i = arange(n)
    start = (i * 7 % 5) * 128
    columns = i % requests, i * 5 % hk, i * 3 % 200, 64 - i % 4 * 4, start, start + 60 + i * 37 % 700, i * bm, i * 0
    items, of = torch.stack([c.to(torch.int32) for c in columns], 1).contiguous(), arange(programs + 1) * per
    o, lse = zeros(n * bm, d, dtype="bfloat16"), zeros(n * bm, dtype="float32")
    q = rand(256, hk * group, d, dtype="bfloat16")
    k, v = rand(pages, page, hk, d, dtype="bfloat16"), rand(pages, page, hk, d, dtype="bfloat16")
    args = q, k, v, o, lse, items, of.to(torch.int32), ints(0, pages, requests, 100), 100, d**-0.5 * 1.4427
    return run(attend_work_items, (programs,), args, (o, lse), HK=hk, GROUP=group, D=d, PAGE=page, BM=bm, BN=64, num_warps=4, num_stages=3)
