"""Data movement and quantization."""
import triton
import triton.language as tl

from common import *

MO = "data movement"
QU = "quantization"


@triton.jit
def permute_0213(x_ptr, y_ptr, S, H, D, sxb, sxs, sxh, syb, syh, sys, BS: tl.constexpr, BH: tl.constexpr, BD: tl.constexpr):
    # [B, S, H, D] to [B, H, S, D] by a 3-D tile whose axes are permuted before the store
    b = tl.program_id(2)
    s = tl.program_id(0) * BS + tl.arange(0, BS)
    h = tl.program_id(1) * BH + tl.arange(0, BH)
    d = tl.arange(0, BD)
    x = tl.load(x_ptr + b * sxb + s[:, None, None] * sxs + h[None, :, None] * sxh + d[None, None, :],
                mask=(s < S)[:, None, None] & (h < H)[None, :, None] & (d < D)[None, None, :])
    y = tl.permute(x, (1, 0, 2))
    tl.store(y_ptr + b * syb + h[:, None, None] * syh + s[None, :, None] * sys + d[None, None, :], y,
             mask=(h < H)[:, None, None] & (s < S)[None, :, None] & (d < D)[None, None, :])


def _():
    B, S, H, D = 8, 2000, 12, 80
    case(MO, "permute_0213", "3-D tile [16, 4, 128] permuted before the store, heads of 80, all strides as arguments, bf16", [cdiv(S, 16), 3, B],
         [P("x_ptr", "bf16", [B, S, H, D], randn(1)), O("y_ptr", "bf16", [B, H, S, D]), I("S", S), I("H", H), I("D", D), I("sxb", S * H * D),
          I("sxs", H * D), I("sxh", D), I("syb", S * H * D), I("syh", S * D), I("sys", D)], "y_ptr", dict(BS=16, BH=4, BD=128), 4, 1,
         rtol=0, atol=0)


_()


@triton.jit
def transpose_last_two_i8(x_ptr, y_ptr, R, C, BR: tl.constexpr, BC: tl.constexpr):
    b = tl.program_id(2)
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    x = tl.load(x_ptr + b * R * C + r[:, None] * C + c[None, :], mask=(r[:, None] < R) & (c[None, :] < C), other=0)
    tl.store(y_ptr + b * R * C + c[:, None] * R + r[None, :], tl.trans(x), mask=(c[:, None] < C) & (r[None, :] < R))


def _():
    B, R, C = 16, 1504, 2064
    case(MO, "transpose_last_two_i8", "batched transpose of bytes, [64, 128] tile, masks on both axes, i8", [cdiv(R, 64), cdiv(C, 128), B],
         [P("x_ptr", "i8", [B, R, C], randint(1, -128, 128)), O("y_ptr", "i8", [B, C, R]), I("R", R), I("C", C)], "y_ptr", dict(BR=64, BC=128), 4, 1,
         rtol=0, atol=0)


_()


@triton.jit
def jagged_to_padded(val_ptr, off_ptr, out_ptr, L, D, pad, BL: tl.constexpr, BD: tl.constexpr):
    b = tl.program_id(1)
    l = tl.program_id(0) * BL + tl.arange(0, BL)
    start = tl.load(off_ptr + b)
    n = tl.load(off_ptr + b + 1) - start
    for d0 in range(0, D, BD):
        d = d0 + tl.arange(0, BD)
        x = tl.load(val_ptr + (start + l[:, None]) * D + d[None, :], mask=(l[:, None] < n) & (d[None, :] < D), other=0.0)
        x = tl.where(l[:, None] < n, x, pad)
        tl.store(out_ptr + (b * L + l[:, None]) * D + d[None, :], x, mask=(l[:, None] < L) & (d[None, :] < D))


@triton.jit
def jagged_mean(val_ptr, off_ptr, out_ptr, D, BM: tl.constexpr, BN: tl.constexpr):
    b = tl.program_id(0)
    d = tl.program_id(1) * BN + tl.arange(0, BN)
    lo = tl.load(off_ptr + b)
    hi = tl.load(off_ptr + b + 1)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for m0 in range(lo, hi, BM):
        m = m0 + tl.arange(0, BM)
        acc += tl.load(val_ptr + m[:, None] * D + d[None, :], mask=(m[:, None] < hi) & (d[None, :] < D), other=0.0).to(tl.float32)
    mean = tl.sum(acc, axis=0) / tl.maximum(hi - lo, 1).to(tl.float32)
    tl.store(out_ptr + b * D + d, mean.to(out_ptr.dtype.element_ty), mask=d < D)


def _():
    B, step, D = 500, 100, 500
    case(MO, "jagged_to_padded", "ragged rows to padded [128, 500] with offsets from memory, inner loop, f32", [4, B],
         [P("val_ptr", "f32", [B * step, D], randn(1)), P("off_ptr", "i64", B + 1, arange(0, step)), O("out_ptr", "f32", [B, 128, D]), I("L", 128),
          I("D", D), F("pad", -1.0)], "out_ptr", dict(BL=32, BD=128), 4, 2, rtol=0, atol=0)
    B, step, D = 2000, 77, 512
    case(MO, "jagged_mean", "mean of ragged segments: loop bounds from memory, [16, 128] accumulator, sum along axis 0, bf16", [B, D // 128],
         [P("val_ptr", "bf16", [B * step, D], randn(1)), P("off_ptr", "i32", B + 1, arange(0, step)), O("out_ptr", "bf16", [B, D]), I("D", D)],
         "out_ptr", dict(BM=16, BN=128), 2, 3, rtol=1.6e-2, atol=1e-2)


_()


@triton.jit
def embedding_bag_weighted(table_ptr, id_ptr, w_ptr, out_ptr, D, L: tl.constexpr, BL: tl.constexpr, BD: tl.constexpr):
    # a bag's rows gathered as one tile and summed along axis 0
    bag = tl.program_id(0)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    l = tl.arange(0, BL)
    ids = tl.load(id_ptr + bag * L + l, mask=l < L, other=0)
    w = tl.load(w_ptr + bag * L + l, mask=l < L, other=0.0)
    rows = tl.load(table_ptr + ids[:, None] * D + d[None, :], mask=(l[:, None] < L) & (d[None, :] < D), other=0.0).to(tl.float32)
    tl.store(out_ptr + bag * D + d, tl.sum(rows * w[:, None], axis=0), mask=d < D)


@triton.jit
def moe_sum_gathered(y_ptr, inv_ptr, w_ptr, out_ptr, D, K: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr, T):
    # un-permute: out[t] = sum over k of w[t, k] * y[inv[t, k]]; [BT, K, BD] gathered and reduced over the middle axis
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    k = tl.arange(0, K)
    tm = t < T
    idx = tl.load(inv_ptr + t[:, None] * K + k[None, :], mask=tm[:, None], other=0)
    w = tl.load(w_ptr + t[:, None] * K + k[None, :], mask=tm[:, None], other=0.0)
    y = tl.load(y_ptr + idx[:, :, None] * D + d[None, None, :], mask=tm[:, None, None] & (d < D)[None, None, :], other=0.0).to(tl.float32)
    out = tl.sum(y * w[:, :, None], axis=1)
    tl.store(out_ptr + t[:, None] * D + d[None, :], out.to(out_ptr.dtype.element_ty), mask=tm[:, None] & (d < D)[None, :])


@triton.jit
def scatter_add_rows(src_ptr, id_ptr, out_ptr, n, D, BR: tl.constexpr, BD: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    ids = tl.load(id_ptr + r, mask=r < n, other=0)
    live = (r < n)[:, None] & (d < D)[None, :]
    x = tl.load(src_ptr + r[:, None] * D + d[None, :], mask=live, other=0.0).to(tl.float32)
    tl.atomic_add(out_ptr + ids[:, None] * D + d[None, :], x, mask=live, sem="relaxed")


@triton.jit
def kv_cache_store_fp8(k_ptr, v_ptr, kc_ptr, vc_ptr, slot_ptr, ks_ptr, vs_ptr, H: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr):
    # new keys and values to pages [block, head, D, PAGE] and [block, head, PAGE, D], converted to fp8
    t = tl.program_id(0).to(tl.int64)
    h = tl.program_id(1)
    slot = tl.load(slot_ptr + t)
    if slot < 0:
        return
    block = slot // PAGE
    at = slot % PAGE
    d = tl.arange(0, D)
    k = tl.load(k_ptr + (t * H + h) * D + d).to(tl.float32) / tl.load(ks_ptr)
    v = tl.load(v_ptr + (t * H + h) * D + d).to(tl.float32) / tl.load(vs_ptr)
    tl.store(kc_ptr + ((block * H + h) * D + d) * PAGE + at, k.to(kc_ptr.dtype.element_ty))
    tl.store(vc_ptr + ((block * H + h) * PAGE + at) * D + d, v.to(vc_ptr.dtype.element_ty))


def _():
    R, D, B, L = 400000, 128, 65536, 20
    case(MO, "embedding_bag_weighted", "bags of 20 ids (padded to 32) gathered as [32, 128] and summed along axis 0, f16 table", [B // 4, 1],
         [P("table_ptr", "f16", [R, D], randn(1)), P("id_ptr", "i64", [B // 4, L], randint(2, 0, R)), P("w_ptr", "f32", [B // 4, L], uniform(3)),
          O("out_ptr", "f32", [B // 4, D]), I("D", D)], "out_ptr", dict(L=L, BL=32, BD=128), 4, 1, nb=B // 4 * (L * (256 + 12) + 512))
    T, K, D = 8192, 8, 1800
    case(MO, "moe_sum_gathered", "gathered 3-D tile [2, 8, 256] weighted and reduced over the middle axis, bf16", [T // 2, cdiv(D, 256)],
         [P("y_ptr", "bf16", [T * K, D], randn(1)), P("inv_ptr", "i32", [T, K], arange(3, 40503, T * K)), P("w_ptr", "f32", [T, K], uniform(2)),
          O("out_ptr", "bf16", [T, D]), I("D", D), I("T", T)], "out_ptr", dict(K=K, BT=2, BD=256), 4, 1, rtol=1.6e-2, atol=1e-2)
    N, D = 60000, 300
    case(MO, "scatter_add_rows", "rows of 300 added at gathered indices by atomics, [8, 128] tile, f16 to f32", [cdiv(N, 8), cdiv(D, 128)],
         [P("src_ptr", "f16", [N, D], randn(1)), P("id_ptr", "i64", N, randint(2, 0, 5000)), O("out_ptr", "f32", [5000, D]), I("n", N), I("D", D)],
         "out_ptr", dict(BR=8, BD=128), 4, 1, atol=2e-2)
    T, H, D, PG = 16384, 8, 128, 16
    case(MO, "kv_cache_store_fp8", "new keys and values scattered to paged caches with fp8 conversion, key column-wise, one warp", [T, H],
         [P("k_ptr", "bf16", [T, H, D], randn(1)), P("v_ptr", "bf16", [T, H, D], randn(2)), O("kc_ptr", "f8e4m3", [T // PG, H, D, PG]),
          O("vc_ptr", "f8e4m3", [T // PG, H, PG, D]), P("slot_ptr", "i64", T, arange(5, 4099, T)), P("ks_ptr", "f32", 1, full(0.7)),
          P("vs_ptr", "f32", 1, full(1.3))], "kc_ptr vc_ptr", dict(H=H, D=D, PAGE=PG), 1, 1, rtol=0.13, atol=1e-2)


_()


@triton.jit
def upsample_bilinear(x_ptr, y_ptr, H, W, OH, OW, sh, sw, BLOCK: tl.constexpr):
    pid = tl.program_id(1)
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = o < OH * OW
    oy = o // OW
    ox = o % OW
    fy = tl.maximum((oy.to(tl.float32) + 0.5) * sh - 0.5, 0.0)
    fx = tl.maximum((ox.to(tl.float32) + 0.5) * sw - 0.5, 0.0)
    y0 = fy.to(tl.int32)
    x0 = fx.to(tl.int32)
    y1 = tl.minimum(y0 + 1, H - 1)
    x1 = tl.minimum(x0 + 1, W - 1)
    wy = fy - y0
    wx = fx - x0
    src = x_ptr + pid * H * W
    a = tl.load(src + y0 * W + x0, mask=mask).to(tl.float32)
    b = tl.load(src + y0 * W + x1, mask=mask).to(tl.float32)
    c = tl.load(src + y1 * W + x0, mask=mask).to(tl.float32)
    d = tl.load(src + y1 * W + x1, mask=mask).to(tl.float32)
    top = a + (b - a) * wx
    bot = c + (d - c) * wx
    tl.store(y_ptr + pid * OH * OW + o, (top + (bot - top) * wy).to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def max_pool_3x3_s2(x_ptr, y_ptr, i_ptr, n_out, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr,
                    BLOCK: tl.constexpr):
    # channels last, value and i8 index of the winner
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = o < n_out
    c = o % C
    ow = o // C % OW
    oh = o // (C * OW) % OH
    n = o // (C * OW * OH)
    best = tl.full((BLOCK, ), float("-inf"), tl.float32)
    which = tl.zeros((BLOCK, ), tl.int32)
    for r in tl.static_range(3):
        for s in tl.static_range(3):
            h = oh * 2 - 1 + r
            w = ow * 2 - 1 + s
            ok = mask & (h >= 0) & (h < H) & (w >= 0) & (w < W)
            x = tl.load(x_ptr + ((n * H + h) * W + w) * C + c, mask=ok, other=float("-inf")).to(tl.float32)
            better = x > best
            best = tl.where(better, x, best)
            which = tl.where(better, r * 3 + s, which)
    tl.store(y_ptr + o, best.to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(i_ptr + o, which.to(tl.int8), mask=mask)


@triton.jit
def depthwise_conv3x3_nhwc(x_ptr, w_ptr, b_ptr, y_ptr, H, W, C, BP: tl.constexpr, BC: tl.constexpr):
    # a row of pixels by a block of channels; nine shifted loads
    n = tl.program_id(2) // H
    h = tl.program_id(2) % H
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    cm = c < C
    acc = tl.zeros((BP, BC), dtype=tl.float32) + tl.load(b_ptr + c, mask=cm, other=0.0).to(tl.float32)[None, :]
    for r in range(3):
        hh = h + r - 1
        if hh >= 0 and hh < H:
            for s in tl.static_range(3):
                ww = p + s - 1
                x = tl.load(x_ptr + ((n * H + hh) * W + ww[:, None]) * C + c[None, :], mask=(ww >= 0)[:, None] & (ww < W)[:, None] & cm[None, :],
                            other=0.0)
                w = tl.load(w_ptr + (r * 3 + s) * C + c, mask=cm, other=0.0)
                acc += x.to(tl.float32) * w.to(tl.float32)[None, :]
    y = acc * tl.clamp(acc + 3.0, 0.0, 6.0) / 6.0
    tl.store(y_ptr + ((n * H + h) * W + p[:, None]) * C + c[None, :], y.to(y_ptr.dtype.element_ty), mask=(p < W)[:, None] & cm[None, :])


@triton.jit
def causal_conv_update(x_ptr, state_ptr, w_ptr, b_ptr, out_ptr, idx_ptr, D, BLOCK: tl.constexpr):
    # decode step of a width-4 causal convolution; the state [slot, D, 3] shifts by one
    b = tl.program_id(0)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    m = d < D
    slot = tl.load(idx_ptr + b).to(tl.int64)
    st = state_ptr + (slot * D + d) * 3
    s0 = tl.load(st, mask=m, other=0.0)
    s1 = tl.load(st + 1, mask=m, other=0.0)
    s2 = tl.load(st + 2, mask=m, other=0.0)
    x = tl.load(x_ptr + b * D + d, mask=m, other=0.0)
    acc = tl.load(b_ptr + d, mask=m, other=0.0).to(tl.float32)
    acc += s0.to(tl.float32) * tl.load(w_ptr + d * 4, mask=m, other=0.0).to(tl.float32)
    acc += s1.to(tl.float32) * tl.load(w_ptr + d * 4 + 1, mask=m, other=0.0).to(tl.float32)
    acc += s2.to(tl.float32) * tl.load(w_ptr + d * 4 + 2, mask=m, other=0.0).to(tl.float32)
    acc += x.to(tl.float32) * tl.load(w_ptr + d * 4 + 3, mask=m, other=0.0).to(tl.float32)
    tl.debug_barrier()
    tl.store(st, s1, mask=m)
    tl.store(st + 1, s2, mask=m)
    tl.store(st + 2, x, mask=m)
    acc = acc / (1 + tl.exp(-acc))
    tl.store(out_ptr + b * D + d, acc.to(out_ptr.dtype.element_ty), mask=m)


def _():
    N, H, W = 512, 56, 75
    case(MO, "upsample_bilinear", "bilinear interpolation to 2.5 times, four gathers, flat output with div and mod, f16", [cdiv(140 * 188, 1024), N * 2],
         [P("x_ptr", "f16", [N * 2, H, W], randn(1)), O("y_ptr", "f16", [N * 2, 140, 188]), I("H", H), I("W", W), I("OH", 140), I("OW", 188),
          F("sh", H / 140), F("sw", W / 188)], "y_ptr", dict(BLOCK=1024), 4, 1, rtol=5e-3, atol=5e-3)
    N, H, W, C = 64, 112, 112, 64
    n_out = N * 56 * 56 * C
    case(MO, "max_pool_3x3_s2", "max pooling channels last with index, nine masked loads, constant shapes, bf16", [cdiv(n_out, 512)],
         [P("x_ptr", "bf16", [N, H, W, C], randn(1)), O("y_ptr", "bf16", n_out), O("i_ptr", "i8", n_out), I("n_out", n_out)], "y_ptr i_ptr",
         dict(H=H, W=W, C=C, OH=56, OW=56, BLOCK=512), 4, 1, rtol=0, atol=0)
    N, H, W, C = 64, 56, 56, 144
    case(MO, "depthwise_conv3x3_nhwc", "depthwise 3 x 3 NHWC with hard-swish, [16, 64] tile, branch on the row, f16", [cdiv(W, 16), cdiv(C, 64), N * H],
         [P("x_ptr", "f16", [N, H, W, C], randn(1)), P("w_ptr", "f16", [9, C], randn(2)), P("b_ptr", "f16", C, randn(3)), O("y_ptr", "f16", [N, H, W, C]),
          I("H", H), I("W", W), I("C", C)], "y_ptr", dict(BP=16, BC=64), 4, 2, rtol=5e-3, atol=1e-2)
    B, D = 2048, 8448
    case(MO, "causal_conv_update", "width-4 convolution decode: stride-3 state shifted in place, slots gathered, bf16", [B, cdiv(D, 256)],
         [P("x_ptr", "bf16", [B, D], randn(1)), P("state_ptr", "bf16", [B, D, 3], randn(2)), P("w_ptr", "bf16", [D, 4], randn(3)), P("b_ptr", "bf16", D, randn(4)),
          O("out_ptr", "bf16", [B, D]), P("idx_ptr", "i32", B, arange(1, 5, B)), I("D", D)], "state_ptr out_ptr", dict(BLOCK=256), 4, 1,
         nb=B * D * 16, rtol=1.6e-2, atol=1e-2)


_()


@triton.jit
def quant_fp8_token(x_ptr, q_ptr, s_ptr, N, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    amax = tl.zeros((BLOCK, ), dtype=tl.float32)
    for i in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * stride + i + c, mask=i + c < N, other=0.0).to(tl.float32)
        amax = tl.maximum(amax, tl.abs(x))
    scale = tl.maximum(tl.max(amax, axis=0), 1e-12) / 448.0
    tl.store(s_ptr + row, scale)
    inv = 1.0 / scale
    for i in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * stride + i + c, mask=i + c < N, other=0.0).to(tl.float32)
        tl.store(q_ptr + row * N + i + c, tl.clamp(x * inv, -448.0, 448.0).to(q_ptr.dtype.element_ty), mask=i + c < N)


@triton.jit
def quant_fp8_blocks128(x_ptr, q_ptr, s_ptr, M, N, B: tl.constexpr):
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    m = pm * B + tl.arange(0, B)
    n = pn * B + tl.arange(0, B)
    at = m[:, None] * N + n[None, :]
    mask = (m[:, None] < M) & (n[None, :] < N)
    x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
    s = tl.maximum(tl.max(tl.abs(x)), 1e-4) / 448.0
    tl.store(q_ptr + at, (x / s).to(q_ptr.dtype.element_ty), mask=mask)
    tl.store(s_ptr + pm * tl.num_programs(1) + pn, s)


@triton.jit
def quant_mx_groups(x_ptr, q_ptr, s_ptr, N, BM: tl.constexpr, BN: tl.constexpr):
    # groups of 32 share a power-of-two exponent byte: reshape to 3-D, maximum along the last axis, exponent bits
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    at = m[:, None] * N + n[None, :]
    x = tl.load(x_ptr + at).to(tl.float32)
    g = tl.reshape(x, (BM, BN // 32, 32))
    amax = tl.max(tl.abs(g), axis=2, keep_dims=True)
    e = (((amax / 448.0).to(tl.uint32, bitcast=True) + 0x007fffff) & 0x7f800000) >> 23
    inv = tl.where(e == 0, 0.0, ((254 - e) << 23).to(tl.float32, bitcast=True))
    q = tl.reshape(g * inv, (BM, BN)).to(q_ptr.dtype.element_ty)
    tl.store(q_ptr + at, q)
    sn = tl.program_id(1) * (BN // 32) + tl.arange(0, BN // 32)
    tl.store(s_ptr + m[:, None] * (N // 32) + sn[None, :], tl.reshape(e, (BM, BN // 32)).to(tl.uint8))


@triton.jit
def dequant_gptq(q_ptr, s_ptr, z_ptr, g_ptr, out_ptr, N, K, BK: tl.constexpr, BN: tl.constexpr):
    # GPTQ: eight 4-bit rows to an int32, group of every row from an index array (act order), zeros packed along columns
    k = tl.program_id(0) * BK + tl.arange(0, BK)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (k[:, None] < K) & (n[None, :] < N)
    q = tl.load(q_ptr + (k // 8)[:, None] * N + n[None, :], mask=mask, other=0)
    w = (q >> ((k % 8) * 4)[:, None]) & 15
    g = tl.load(g_ptr + k, mask=k < K, other=0)
    z = tl.load(z_ptr + g[:, None] * (N // 8) + (n // 8)[None, :], mask=mask, other=0)
    z = ((z >> ((n % 8) * 4)[None, :]) & 15) + 1
    s = tl.load(s_ptr + g[:, None] * N + n[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + k[:, None] * N + n[None, :], (w - z).to(tl.float16) * s, mask=mask)


@triton.jit
def quant_nf4_nearest(x_ptr, lut_ptr, q_ptr, s_ptr, BR: tl.constexpr, GROUP: tl.constexpr):
    # nearest of 16 table values by a 3-D broadcast and an argmin, two codes to a byte
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = tl.arange(0, GROUP)
    x = tl.load(x_ptr + r[:, None] * GROUP + c[None, :]).to(tl.float32)
    s = tl.max(tl.abs(x), axis=1)
    tl.store(s_ptr + r, s)
    x = x / tl.maximum(s, 1e-12)[:, None]
    lut = tl.load(lut_ptr + tl.arange(0, 16))
    d = tl.abs(x[:, :, None] - lut[None, None, :])
    code = tl.argmin(d, axis=2)
    hi, lo = tl.split(tl.reshape(code, (BR, GROUP // 2, 2)))
    h = tl.arange(0, GROUP // 2)
    tl.store(q_ptr + r[:, None] * (GROUP // 2) + h[None, :], ((hi << 4) | lo).to(tl.uint8))


@triton.jit
def hadamard_rows(x_ptr, y_ptr, rows, scale, N: tl.constexpr, BR: tl.constexpr, STEPS: tl.constexpr):
    # fast Walsh-Hadamard transform: reshape, split, sum and difference, join
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = tl.arange(0, N)
    x = tl.load(x_ptr + r[:, None] * N + c[None, :], mask=r[:, None] < rows, other=0.0).to(tl.float32)
    for i in tl.static_range(STEPS):
        x = tl.reshape(x, (BR, N // (2 << i), 2, 1 << i))
        a, b = tl.split(tl.permute(x, (0, 1, 3, 2)))
        x = tl.permute(tl.join(a + b, a - b), (0, 1, 3, 2))
        x = tl.reshape(x, (BR, N))
    tl.store(y_ptr + r[:, None] * N + c[None, :], (x * scale).to(y_ptr.dtype.element_ty), mask=r[:, None] < rows)


@triton.jit
def dequant_i8_rows_add(q_ptr, s_ptr, r_ptr, y_ptr, rows, cols, BR: tl.constexpr, BC: tl.constexpr):
    # int32 accumulators of an int8 product scaled by rows and columns, added to a residual, requantized to int8
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    mask = (r[:, None] < rows) & (c[None, :] < cols)
    at = r[:, None] * cols + c[None, :]
    q = tl.load(q_ptr + at, mask=mask, other=0).to(tl.float32)
    s = tl.load(s_ptr + r, mask=r < rows, other=0.0)
    x = q * s[:, None] + tl.load(r_ptr + at, mask=mask, other=0.0).to(tl.float32)
    y = tl.clamp(tl.floor(x * 16.0 + 0.5), -128.0, 127.0)
    tl.store(y_ptr + at, y.to(tl.int8), mask=mask)


def _():
    R, N = 8192, 5000
    case(QU, "quant_fp8_token", "row maximum in a loop, then scaling to fp8 in a second loop, rows of 5000, bf16", [R],
         [P("x_ptr", "bf16", [R, N], randn(1)), O("q_ptr", "f8e4m3", [R, N]), O("s_ptr", "f32", R), I("N", N), I("stride", N)], "q_ptr s_ptr",
         dict(BLOCK=2048), 4, 2, rtol=0.13, atol=1e-2)
    M, N = 7000, 7168
    case(QU, "quant_fp8_blocks128", "one scale per 128 x 128 block: maximum over the whole tile, bf16 to fp8", [cdiv(M, 128), N // 128],
         [P("x_ptr", "bf16", [M, N], randn(1)), O("q_ptr", "f8e4m3", [M, N]), O("s_ptr", "f32", [cdiv(M, 128), N // 128]), I("M", M), I("N", N)],
         "q_ptr s_ptr", dict(B=128), 8, 1, rtol=0.13, atol=1e-2)
    M, N = 8192, 4096
    case(QU, "quant_mx_groups", "MX groups of 32: 3-D reshape [32, 4, 32], maximum along the last axis, exponent bits, reshape back, f16", [M // 32, N // 128],
         [P("x_ptr", "f16", [M, N], randn(1)), O("q_ptr", "f8e4m3", [M, N]), O("s_ptr", "u8", [M, N // 32]), I("N", N)], "q_ptr s_ptr",
         dict(BM=32, BN=128), 4, 1, rtol=0.13, atol=1e-2)
    K, N = 8192, 7168
    case(QU, "dequant_gptq", "GPTQ int4 with act order: gathered groups, shifts along rows and zeros along columns, f16", [K // 32, N // 128],
         [P("q_ptr", "i32", [K // 8, N], randint(1, -2**31, 2**31 - 1)), P("s_ptr", "f16", [K // 128, N], uniform(2, 0.002, 0.01)),
          P("z_ptr", "i32", [K // 128, N // 8], randint(3, -2**31, 2**31 - 1)), P("g_ptr", "i32", K, randint(4, 0, K // 128)), O("out_ptr", "f16", [K, N]),
          I("N", N), I("K", K)], "out_ptr", dict(BK=32, BN=128), 4, 1, rtol=2e-3, atol=1e-4)
    R = 300_000
    case(QU, "quant_nf4_nearest", "nearest of 16 table entries: [4, 64, 16] distances, argmin along the last axis, packed by split, bf16", [R // 4],
         [P("x_ptr", "bf16", [R, 64], randn(1)), P("lut_ptr", "f32", 16, arange(-1.0, 0.1333)), O("q_ptr", "u8", [R, 32]), O("s_ptr", "f32", R)],
         "s_ptr", dict(BR=4, GROUP=64), 4, 1, note="codes of near ties may differ, so only the scales are compared")
    R, N = 65536, 512
    case(QU, "hadamard_rows", "Walsh-Hadamard transform of [4, 512] by nine steps of reshape, permute, split and join, bf16", [R // 4],
         [P("x_ptr", "bf16", [R, N], randn(1)), O("y_ptr", "bf16", [R, N]), I("rows", R), F("scale", N**-0.5)], "y_ptr", dict(N=N, BR=4, STEPS=9), 4, 1,
         rtol=1.6e-2, atol=2e-2)
    R, C = 6000, 4100
    case(QU, "dequant_i8_rows_add", "int32 times row scale plus residual, requantized to int8, [32, 128] tile, 4100 columns", [cdiv(R, 32), cdiv(C, 128)],
         [P("q_ptr", "i32", [R, C], randint(1, -100000, 100000)), P("s_ptr", "f32", R, uniform(2, 1e-5, 5e-5)), P("r_ptr", "bf16", [R, C], randn(3)),
          O("y_ptr", "i8", [R, C]), I("rows", R), I("cols", C)], "y_ptr", dict(BR=32, BC=128), 4, 1, rtol=0, atol=1.0)


_()
