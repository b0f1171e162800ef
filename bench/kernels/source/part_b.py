"""Activations, gates, rotary embeddings, dropout; sorts, samplers, histograms."""
import triton
import triton.language as tl
from triton.language.extra import libdevice

from common import *

AC = "activations and gates"
RO = "rotary embeddings"
SO = "sorts, samplers, histograms"


@triton.jit
def geglu_tanh_fwd(a_ptr, b_ptr, c_ptr, stride, n_cols: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    a_ptr += row * stride
    b_ptr += row * stride
    c_ptr += row * stride
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    a = tl.load(a_ptr + cols, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0)
    inner = 0.7978845608028654 * (a + 0.044715 * a * a * a)
    g = 0.5 * a * (1 + libdevice.tanh(inner))
    tl.store(c_ptr + cols, g.to(b.dtype) * b, mask=mask)


@triton.jit
def geglu_tanh_bwd(dc_ptr, a_ptr, b_ptr, stride, n_cols: tl.constexpr, BLOCK: tl.constexpr):
    # the gradients replace the inputs
    row = tl.program_id(0).to(tl.int64)
    dc_ptr += row * stride
    a_ptr += row * stride
    b_ptr += row * stride
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    dc = tl.load(dc_ptr + cols, mask=mask, other=0)
    a = tl.load(a_ptr + cols, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=mask, other=0)
    inner = 0.7978845608028654 * (a + 0.044715 * a * a * a)
    t = libdevice.tanh(inner)
    g = 0.5 * a * (1 + t)
    db = dc * g
    dg = 0.5 * (1 + t) + 0.5 * a * (1 - t * t) * (0.7978845608028654 * (1 + 3 * 0.044715 * a * a))
    da = dc * b * dg
    tl.store(a_ptr + cols, da.to(dc.dtype), mask=mask)
    tl.store(b_ptr + cols, db.to(dc.dtype), mask=mask)


def _():
    R, C = 4096, 11008
    case(AC, "geglu_tanh_fwd", "GEGLU with libdevice tanh, one row of 11008 per program (block 16384), bf16", [R],
         [P("a_ptr", "bf16", [R, C], randn(1)), P("b_ptr", "bf16", [R, C], randn(2)), O("c_ptr", "bf16", [R, C]),
          I("stride", C)], "c_ptr", dict(n_cols=C, BLOCK=16384), 16, 1, rtol=1.6e-2, atol=1e-2)
    R, C = 4096, 5000
    case(AC, "geglu_tanh_bwd", "GEGLU backward in place, rows of 5000 (block 8192), f16", [R],
         [P("dc_ptr", "f16", [R, C], randn(1)), P("a_ptr", "f16", [R, C], randn(2)), P("b_ptr", "f16", [R, C], randn(3)),
          I("stride", C)], "a_ptr b_ptr", dict(n_cols=C, BLOCK=8192), 8, 1, nb=10 * R * C, rtol=5e-3, atol=5e-3)


_()


@triton.jit
def swiglu_interleaved(x_ptr, out_ptr, rows, n, limit, alpha, BR: tl.constexpr, BC: tl.constexpr):
    # gate and value alternate along the row: tl.split of a reshaped tile
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    c2 = tl.program_id(1) * 2 * BC + tl.arange(0, 2 * BC)
    x = tl.load(x_ptr + r[:, None].to(tl.int64) * (2 * n) + c2[None, :],
                mask=(r[:, None] < rows) & (c2[None, :] < 2 * n), other=0.0)
    gelu, linear = tl.split(tl.reshape(x, (BR, BC, 2)))
    gelu = tl.minimum(gelu.to(tl.float32), limit)
    linear = tl.clamp(linear.to(tl.float32), -limit, limit)
    s = gelu / (1.0 + tl.exp(-alpha * gelu))
    out = tl.fma(s, linear, s)
    tl.store(out_ptr + r[:, None].to(tl.int64) * n + c[None, :], out.to(out_ptr.dtype.element_ty),
             mask=(r[:, None] < rows) & (c[None, :] < n))


def _():
    R, N = 8000, 2880
    case(AC, "swiglu_interleaved", "SwiGLU with clamps, gate and value interleaved: reshape and split, bf16",
         [cdiv(R, 8), cdiv(N, 256)], [P("x_ptr", "bf16", [R, 2 * N], randn(1, 3.0)), O("out_ptr", "bf16", [R, N]),
                                      I("rows", R), I("n", N), F("limit", 7.0), F("alpha", 1.702)], "out_ptr",
         dict(BR=8, BC=256), 4, 2, rtol=1.6e-2, atol=1e-2)


_()


@triton.jit
def silu_mul_group_fp8(x_ptr, y_ptr, s_ptr, n_per_expert_ptr, T, H, stride_e, EPS: tl.constexpr, FP8_MAX: tl.constexpr,
                       GROUP: tl.constexpr):
    # one program per expert and group of columns, looping over the expert's tokens
    e = tl.program_id(0)
    g = tl.program_id(1)
    n = tl.load(n_per_expert_ptr + e)
    c = g * GROUP + tl.arange(0, GROUP)
    mask = c < H
    x_row = x_ptr + e.to(tl.int64) * stride_e + c
    for t in tl.range(0, n, num_stages=4):
        gate = tl.load(x_row + t * 2 * H, mask=mask, other=0.0).to(tl.float32)
        up = tl.load(x_row + t * 2 * H + H, mask=mask, other=0.0).to(tl.float32)
        y = gate * (1.0 / (1.0 + tl.exp(-gate))) * up
        amax = tl.maximum(tl.max(tl.abs(y)), EPS)
        ys = amax / FP8_MAX
        q = tl.clamp(y / ys, -FP8_MAX, FP8_MAX).to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + (e * T + t).to(tl.int64) * H + c, q, mask=mask)
        tl.store(s_ptr + (e * T + t) * tl.cdiv(H, GROUP) + g, ys)


def _():
    E, T, H = 32, 256, 4096
    case(AC, "silu_mul_group_fp8", "silu * up with fp8 scales per 128 columns, loop over an expert's tokens, one warp",
         [E, H // 128], [P("x_ptr", "bf16", [E, T, 2 * H], randn(1)), O("y_ptr", "f8e4m3", [E, T, H]),
                         O("s_ptr", "f32", [E, T, H // 128]), P("n_per_expert_ptr", "i32", E, randint(2, 200, T + 1)),
                         I("T", T), I("H", H), I("stride_e", T * 2 * H)], "y_ptr s_ptr",
         dict(EPS=1e-10, FP8_MAX=448.0, GROUP=128), 1, 4, rtol=0.13, atol=1e-2)


_()


@triton.jit
def gelu_erf_bwd(dy_ptr, x_ptr, bias_ptr, dx_ptr, n, cols, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(bias_ptr + offs % cols, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    cdf = 0.5 * (1.0 + tl.erf(x * 0.7071067811865476))
    pdf = 0.3989422804014327 * tl.exp(-0.5 * x * x)
    tl.store(dx_ptr + offs, (dy * (cdf + x * pdf)).to(dx_ptr.dtype.element_ty), mask=mask)


def _():
    R, C = 9000, 3072
    case(AC, "gelu_erf_bwd", "bias + erf GELU backward, flat with a modulo for the bias, f16", [cdiv(R * C, 1024)],
         [P("dy_ptr", "f16", [R, C], randn(1)), P("x_ptr", "f16", [R, C], randn(2)), P("bias_ptr", "f16", C, randn(3)),
          O("dx_ptr", "f16", [R, C]), I("n", R * C), I("cols", C)], "dx_ptr", dict(BLOCK=1024), 4, 1, rtol=5e-3, atol=2e-3)


_()


@triton.jit
def dropout_four_streams(x_ptr, y_ptr, n, p, seed, BLOCK: tl.constexpr):
    # one philox call serves four elements, as fused attention dropouts do
    base = tl.program_id(0) * (4 * BLOCK)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r0, r1, r2, r3 = tl.rand4x(seed, offs)
    o = base + tl.arange(0, BLOCK)
    scale = 1.0 / (1.0 - p)
    x0 = tl.load(x_ptr + o, mask=o < n, other=0.0)
    x1 = tl.load(x_ptr + o + BLOCK, mask=o + BLOCK < n, other=0.0)
    x2 = tl.load(x_ptr + o + 2 * BLOCK, mask=o + 2 * BLOCK < n, other=0.0)
    x3 = tl.load(x_ptr + o + 3 * BLOCK, mask=o + 3 * BLOCK < n, other=0.0)
    tl.store(y_ptr + o, tl.where(r0 > p, x0 * scale, 0.0), mask=o < n)
    tl.store(y_ptr + o + BLOCK, tl.where(r1 > p, x1 * scale, 0.0), mask=o + BLOCK < n)
    tl.store(y_ptr + o + 2 * BLOCK, tl.where(r2 > p, x2 * scale, 0.0), mask=o + 2 * BLOCK < n)
    tl.store(y_ptr + o + 3 * BLOCK, tl.where(r3 > p, x3 * scale, 0.0), mask=o + 3 * BLOCK < n)


def _():
    N = 30_000_001
    case(AC, "dropout_four_streams", "dropout with rand4x, four strided sub-blocks, odd length, f32", [cdiv(N, 2048)],
         [P("x_ptr", "f32", N, randn(1)), O("y_ptr", "f32", N), I("n", N), F("p", 0.3), I("seed", 1234567)], "y_ptr",
         dict(BLOCK=512), 4, 1)


_()


@triton.jit
def rope_half_qk(q_ptr, q_row_stride, k_ptr, k_row_stride, cos_ptr, sin_ptr, sl, n_qh: tl.constexpr, n_kh: tl.constexpr,
                 hd: tl.constexpr, pad_qh: tl.constexpr, pad_kh: tl.constexpr, pad_hd: tl.constexpr,
                 BACKWARD: tl.constexpr):
    # in place on all heads of a token; heads and half dimension are padded to powers of two
    pid = tl.program_id(0).to(tl.int64)
    q_ptr += pid * q_row_stride
    k_ptr += pid * k_row_stride
    pos = pid % sl
    co = tl.arange(0, pad_hd // 2)
    cos = tl.load(cos_ptr + pos * hd + co, mask=co < hd // 2, other=0)
    sin = tl.load(sin_ptr + pos * hd + co, mask=co < hd // 2, other=0)
    qo = tl.arange(0, pad_qh)[:, None] * hd + tl.arange(0, pad_hd // 2)[None, :]
    ko = tl.arange(0, pad_kh)[:, None] * hd + tl.arange(0, pad_hd // 2)[None, :]
    qm = (tl.arange(0, pad_qh)[:, None] < n_qh) & (tl.arange(0, pad_hd // 2)[None, :] < hd // 2)
    km = (tl.arange(0, pad_kh)[:, None] < n_kh) & (tl.arange(0, pad_hd // 2)[None, :] < hd // 2)
    q1 = tl.load(q_ptr + qo, mask=qm, other=0).to(sin.dtype)
    k1 = tl.load(k_ptr + ko, mask=km, other=0).to(sin.dtype)
    q2 = tl.load(q_ptr + qo + hd // 2, mask=qm, other=0).to(sin.dtype)
    k2 = tl.load(k_ptr + ko + hd // 2, mask=km, other=0).to(sin.dtype)
    if BACKWARD:
        sin = -sin
    tl.store(q_ptr + qo, q1 * cos - q2 * sin, mask=qm)
    tl.store(q_ptr + qo + hd // 2, q2 * cos + q1 * sin, mask=qm)
    tl.store(k_ptr + ko, k1 * cos - k2 * sin, mask=km)
    tl.store(k_ptr + ko + hd // 2, k2 * cos + k1 * sin, mask=km)


def _():
    T, S, HQ, HK, D = 12288, 4096, 28, 4, 96
    case(RO, "rope_half_qk", "half-split rope in place on 28 + 4 heads of 96 (padded to 32, 4 and 128), f32 tables", [T],
         [P("q_ptr", "bf16", [T, HQ, D], randn(1)), I("q_row_stride", HQ * D), P("k_ptr", "bf16", [T, HK, D], randn(2)),
          I("k_row_stride", HK * D), P("cos_ptr", "f32", [S, D], uniform(3, -1.0, 1.0)),
          P("sin_ptr", "f32", [S, D], uniform(4, -1.0, 1.0)), I("sl", S)], "q_ptr k_ptr",
         dict(n_qh=HQ, n_kh=HK, hd=D, pad_qh=32, pad_kh=4, pad_hd=128, BACKWARD=False), 4, 1,
         nb=4 * T * (HQ + HK) * D, rtol=1.6e-2, atol=1e-2)


_()


@triton.jit
def rope_interleaved_partial(x_ptr, cos_ptr, sin_ptr, out_ptr, pos_ptr, seq, nheads, stride_t, stride_h, R: tl.constexpr,
                             D: tl.constexpr, BT: tl.constexpr, BH: tl.constexpr):
    # pairs (2i, 2i + 1) of the first R dimensions turn: reshape, split, join; the rest is copied
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    h = tl.program_id(1) * BH + tl.arange(0, BH)
    r = tl.arange(0, R)
    half = tl.arange(0, R // 2)
    rest = tl.arange(0, D - R)
    tm = t < seq
    pos = tl.load(pos_ptr + t, mask=tm, other=0)
    cos = tl.load(cos_ptr + pos[:, None] * (R // 2) + half[None, :], mask=tm[:, None], other=0.0).to(tl.float32)
    sin = tl.load(sin_ptr + pos[:, None] * (R // 2) + half[None, :], mask=tm[:, None], other=0.0).to(tl.float32)
    mask = tm[:, None, None] & (h < nheads)[None, :, None]
    at = t[:, None, None] * stride_t + h[None, :, None] * stride_h
    x = tl.load(x_ptr + at + r[None, None, :], mask=mask, other=0.0).to(tl.float32)
    x0, x1 = tl.split(tl.reshape(x, (BT, BH, R // 2, 2)))
    y0 = x0 * cos[:, None, :] - x1 * sin[:, None, :]
    y1 = x0 * sin[:, None, :] + x1 * cos[:, None, :]
    y = tl.reshape(tl.join(y0, y1), (BT, BH, R))
    tl.store(out_ptr + at + r[None, None, :], y.to(out_ptr.dtype.element_ty), mask=mask)
    z = tl.load(x_ptr + at + R + rest[None, None, :], mask=mask)
    tl.store(out_ptr + at + R + rest[None, None, :], z, mask=mask)


def _():
    T, H, D, R = 16384, 20, 128, 64
    case(RO, "rope_interleaved_partial", "interleaved partial rope on 3-D tiles [8, 4, 64] by split and join, gathered tables",
         [T // 8, H // 4], [P("x_ptr", "bf16", [T, H, D], randn(1)), P("cos_ptr", "f16", [8192, R // 2], uniform(2, -1.0, 1.0)),
                            P("sin_ptr", "f16", [8192, R // 2], uniform(3, -1.0, 1.0)), O("out_ptr", "bf16", [T, H, D]),
                            P("pos_ptr", "i64", T, randint(4, 0, 8192)), I("seq", T), I("nheads", H), I("stride_t", H * D),
                            I("stride_h", D)], "out_ptr", dict(R=R, D=D, BT=8, BH=4), 4, 1, rtol=1.6e-2, atol=1e-2)


_()


@triton.jit
def qk_norm_rope(qkv_ptr, wq_ptr, wk_ptr, cos_ptr, sin_ptr, pos_ptr, q_ptr, k_ptr, eps, HQ: tl.constexpr,
                 HK: tl.constexpr, D: tl.constexpr, PADH: tl.constexpr):
    t = tl.program_id(0).to(tl.int64)
    h = tl.arange(0, PADH)
    d = tl.arange(0, D // 2)
    pos = tl.load(pos_ptr + t)
    cos = tl.load(cos_ptr + pos * (D // 2) + d)[None, :]
    sin = tl.load(sin_ptr + pos * (D // 2) + d)[None, :]
    isq = (h < HQ)[:, None]
    live = (h < HQ + HK)[:, None]
    src = qkv_ptr + t * (HQ + 2 * HK) * D + h[:, None] * D + d[None, :]
    lo = tl.load(src, mask=live, other=0.0).to(tl.float32)
    hi = tl.load(src + D // 2, mask=live, other=0.0).to(tl.float32)
    rstd = tl.rsqrt((tl.sum(lo * lo, axis=1) + tl.sum(hi * hi, axis=1)) / D + eps)[:, None]
    wlo = tl.where(isq, tl.load(wq_ptr + d)[None, :], tl.load(wk_ptr + d)[None, :]).to(tl.float32)
    whi = tl.where(isq, tl.load(wq_ptr + d + D // 2)[None, :], tl.load(wk_ptr + d + D // 2)[None, :]).to(tl.float32)
    lo = lo * rstd * wlo
    hi = hi * rstd * whi
    a = (lo * cos - hi * sin).to(q_ptr.dtype.element_ty)
    b = (hi * cos + lo * sin).to(q_ptr.dtype.element_ty)
    qo = t * HQ * D + h[:, None] * D + d[None, :]
    ko = t * HK * D + (h[:, None] - HQ) * D + d[None, :]
    tl.store(q_ptr + qo, a, mask=isq)
    tl.store(q_ptr + qo + D // 2, b, mask=isq)
    tl.store(k_ptr + ko, a, mask=live & (h >= HQ)[:, None])
    tl.store(k_ptr + ko + D // 2, b, mask=live & (h >= HQ)[:, None])


def _():
    T, HQ, HK, D = 8192, 40, 8, 128
    case(RO, "qk_norm_rope", "RMS norm of q and k per head, then rope, heads 40 + 8 padded to 64", [T],
         [P("qkv_ptr", "bf16", [T, HQ + 2 * HK, D], randn(1)), P("wq_ptr", "bf16", D, randn(2)), P("wk_ptr", "bf16", D, randn(3)),
          P("cos_ptr", "f32", [4096, D // 2], uniform(4, -1.0, 1.0)), P("sin_ptr", "f32", [4096, D // 2], uniform(5, -1.0, 1.0)),
          P("pos_ptr", "i64", T, arange(0, 1, 4096)), O("q_ptr", "bf16", [T, HQ, D]), O("k_ptr", "bf16", [T, HK, D]),
          F("eps", 1e-6)], "q_ptr k_ptr", dict(HQ=HQ, HK=HK, D=D, PADH=64), 8, 1, rtol=1.6e-2, atol=1e-2)


_()


@triton.jit
def sort_pairs_packed(key_ptr, val_ptr, skey_ptr, sval_ptr, cols, BR: tl.constexpr, BC: tl.constexpr):
    # keys and payloads sorted as one 64-bit integer
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = tl.arange(0, BC)
    live = (c < cols)[None, :]
    at = r[:, None] * cols + c[None, :]
    key = tl.load(key_ptr + at, mask=live, other=0x7fffffff)
    val = tl.load(val_ptr + at, mask=live, other=0)
    both = (key.to(tl.int64) << 32) | val.to(tl.int64)
    both = tl.sort(both, 1)
    tl.store(skey_ptr + at, (both >> 32).to(tl.int32), mask=live)
    tl.store(sval_ptr + at, (both & 0xffffffff).to(tl.int32), mask=live)


def _():
    R, C = 32768, 250
    case(SO, "sort_pairs_packed", "tl.sort of [4, 256] i64 with key and payload packed, 250 columns", [R // 4],
         [P("key_ptr", "i32", [R, C], randint(1, 0, 2**31 - 2)), P("val_ptr", "i32", [R, C], arange(0, 1, C)),
          O("skey_ptr", "i32", [R, C]), O("sval_ptr", "i32", [R, C]), I("cols", C)], "skey_ptr sval_ptr",
         dict(BR=4, BC=256), 4, 1, rtol=0, atol=0)


_()


@triton.jit
def topk_gate_softmax(x_ptr, w_ptr, i_ptr, tokens, E, BT: tl.constexpr, PE: tl.constexpr, K: tl.constexpr):
    # logits become sortable integers with the expert in the low bits, then tl.topk, then softmax over the chosen
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    e = tl.arange(0, PE)
    live = (t[:, None] < tokens) & (e[None, :] < E)
    x = tl.load(x_ptr + t[:, None] * E + e[None, :], mask=live, other=-float("inf")).to(tl.float32)
    bits = x.to(tl.uint32, bitcast=True)
    key = tl.where(bits >> 31 != 0, ~bits, bits | 0x80000000)
    packed = (key.to(tl.uint64) << 16) | (0xffff - e[None, :]).to(tl.uint64)
    top = tl.topk(packed, K, dim=1)
    ids = 0xffff - (top & 0xffff).to(tl.int32)
    kb = (top >> 16).to(tl.uint32)
    val = tl.where(kb >> 31 != 0, kb ^ 0x80000000, ~kb).to(tl.float32, bitcast=True)
    p = tl.exp(val - tl.max(val, axis=1)[:, None])
    p = p / tl.sum(p, axis=1)[:, None]
    k = tl.arange(0, K)
    tl.store(w_ptr + t[:, None] * K + k[None, :], p.to(w_ptr.dtype.element_ty), mask=t[:, None] < tokens)
    tl.store(i_ptr + t[:, None] * K + k[None, :], ids.to(tl.int16), mask=t[:, None] < tokens)


def _():
    T, E = 131072, 120
    case(SO, "topk_gate_softmax", "tl.topk(8) of 128 packed u64 (120 experts), bit tricks, softmax of the chosen",
         [cdiv(T, 16)], [P("x_ptr", "f32", [T, E], randn(1)), O("w_ptr", "bf16", [T, 8]), O("i_ptr", "i16", [T, 8]),
                         I("tokens", T), I("E", E)], "w_ptr i_ptr", dict(BT=16, PE=128, K=8), 4, 1, rtol=1.6e-2, atol=1e-3)


_()


@triton.jit
def argmax_vocab(x_ptr, out_ptr, val_ptr, V, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    best = tl.full((BLOCK, ), -float("inf"), tl.float32)
    where = tl.zeros((BLOCK, ), tl.int32)
    for start in range(0, V, BLOCK):
        x = tl.load(x_ptr + row * V + start + c, mask=start + c < V, other=-float("inf")).to(tl.float32)
        better = x > best
        best = tl.where(better, x, best)
        where = tl.where(better, start + c, where)
    top = tl.max(best, axis=0)
    tl.store(out_ptr + row, tl.min(tl.where(best == top, where, 0x7fffffff), axis=0).to(tl.int64))
    tl.store(val_ptr + row, top)


@triton.jit
def gumbel_sample_blocks(logit_ptr, stride, temp_ptr, seed_ptr, pos_ptr, best_ptr, idx_ptr, V, nblocks, BLOCK: tl.constexpr):
    req = tl.program_id(0)
    blk = tl.program_id(1)
    c = blk * BLOCK + tl.arange(0, BLOCK)
    mask = c < V
    x = tl.load(logit_ptr + req.to(tl.int64) * stride + c, mask=mask, other=-float("inf")).to(tl.float32)
    temp = tl.load(temp_ptr + req)
    if temp != 0.0:
        seed = tl.load(seed_ptr + req)
        pos = tl.load(pos_ptr + req)
        gseed = tl.randint(seed, pos)
        u = tl.maximum(tl.rand(gseed, c), 1e-7)
        x = tl.where(mask, x / temp - tl.log(-tl.log(u)), -float("inf"))
    value, idx = tl.max(x, axis=0, return_indices=True)
    tl.store(best_ptr + req * nblocks + blk, value)
    tl.store(idx_ptr + req * nblocks + blk, (blk * BLOCK + idx).to(tl.int64))


@triton.jit
def penalties_in_place(logit_ptr, stride, rep_ptr, freq_ptr, pres_ptr, temp_ptr, prompt_ptr, count_ptr, V, BLOCK: tl.constexpr):
    req = tl.program_id(0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = c < V
    x = tl.load(logit_ptr + req * stride + c, mask=mask).to(tl.float32)
    rep = tl.load(rep_ptr + req)
    freq = tl.load(freq_ptr + req)
    pres = tl.load(pres_ptr + req)
    temp = tl.load(temp_ptr + req)
    count = tl.load(count_ptr + req * V + c, mask=mask, other=0)
    # one bit per token of the prompt, unpacked by a broadcast of bytes against shifts
    words = tl.program_id(1) * (BLOCK // 32) + tl.arange(0, BLOCK // 32)
    packed = tl.load(prompt_ptr + req * tl.cdiv(V, 32) + words, mask=words < tl.cdiv(V, 32), other=0)
    bits = tl.reshape((packed[:, None] >> tl.arange(0, 32)[None, :]) & 1, (BLOCK, ))
    seen = (bits != 0) | (count > 0)
    scale = tl.where(seen, rep, 1.0)
    x = tl.where(x > 0, x / scale, x * scale)
    x -= freq * count
    x -= pres * (count > 0)
    x = x / temp
    tl.store(logit_ptr + req * stride + c, x, mask=mask)


def _():
    R, V = 500, 128256
    case(SO, "argmax_vocab", "looped argmax over a vocabulary of 128256 with lane-wise best and index, bf16", [R],
         [P("x_ptr", "bf16", [R, V], randn(1)), O("out_ptr", "i64", R), O("val_ptr", "f32", R), I("V", V)],
         "out_ptr val_ptr", dict(BLOCK=4096), 8, 3, rtol=0, atol=0)
    R, V = 256, 151936
    nb_ = cdiv(V, 1024)
    case(SO, "gumbel_sample_blocks", "Gumbel noise from philox, (max, index) per block of the vocabulary", [R, nb_],
         [P("logit_ptr", "f32", [R, V], randn(1, 2.0)), I("stride", V), P("temp_ptr", "f32", R, uniform(2, 0.5, 1.5)),
          P("seed_ptr", "i64", R, randint(3, 0, 2**31)), P("pos_ptr", "i64", R, randint(4, 0, 4096)),
          O("best_ptr", "f32", [R, nb_]), O("idx_ptr", "i64", [R, nb_]), I("V", V), I("nblocks", nb_)], "best_ptr",
         dict(BLOCK=1024), 4, 1, note="indices may differ where values nearly tie, so only the values are compared")
    R, V = 256, 50257
    case(SO, "penalties_in_place", "repetition, frequency and presence penalties, bit mask unpacked by broadcast and reshape",
         [R, cdiv(V, 4096)],
         [P("logit_ptr", "f32", [R, V], randn(1, 2.0)), I("stride", V), P("rep_ptr", "f32", R, uniform(2, 1.0, 1.5)),
          P("freq_ptr", "f32", R, uniform(3)), P("pres_ptr", "f32", R, uniform(4)), P("temp_ptr", "f32", R, uniform(5, 0.5, 1.5)),
          P("prompt_ptr", "i32", [R, cdiv(V, 32)], randint(6, -2**31, 2**31 - 1)), P("count_ptr", "i32", [R, V], randint(7, 0, 3)),
          I("V", V)], "logit_ptr", dict(BLOCK=4096), 8, 1, nb=12 * R * V)


_()


@triton.jit
def histogram_atomic(x_ptr, hist_ptr, n, low, inv_width, BINS: tl.constexpr, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    # torch.histc: tl.histogram per block, added to global counters
    acc = tl.zeros((BINS, ), dtype=tl.int32)
    for i in range(0, STEPS):
        o = (tl.program_id(0) * STEPS + i) * BLOCK + tl.arange(0, BLOCK)
        mask = o < n
        x = tl.load(x_ptr + o, mask=mask, other=0.0)
        b = tl.floor((x - low) * inv_width).to(tl.int32)
        ok = mask & (b >= 0) & (b < BINS)
        acc += tl.histogram(b, BINS, mask=ok)
    bins = tl.arange(0, BINS)
    tl.atomic_add(hist_ptr + bins, acc, mask=acc > 0, sem="relaxed")


@triton.jit
def nucleus_threshold(p_ptr, top_p_ptr, thr_ptr, keep_ptr, cols, BC: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BC)
    p = tl.load(p_ptr + row * cols + c, mask=c < cols, other=0.0)
    p = p / tl.sum(p, axis=0)
    s = tl.sort(p, descending=True)
    before = tl.cumsum(s, axis=0) - s
    limit = tl.load(top_p_ptr + row)
    thr = tl.min(tl.where(before < limit, s, float("inf")), axis=0)
    tl.store(thr_ptr + row, thr)
    tl.store(keep_ptr + row * cols + c, tl.where(p >= thr, p, 0.0), mask=c < cols)


@triton.jit
def token_rank_in_expert(id_ptr, rank_ptr, count_ptr, tokens, E: tl.constexpr, BT: tl.constexpr):
    # position of every token within its expert: one-hot tile, cumsum along axis 0, carry over blocks
    e = tl.arange(0, E)
    group = tl.program_id(0)
    carry = tl.zeros((E, ), dtype=tl.int32)
    for t0 in range(0, tokens, BT):
        t = t0 + tl.arange(0, BT)
        ids = tl.load(id_ptr + group * tokens + t, mask=t < tokens, other=-1)
        hot = (ids[:, None] == e[None, :]).to(tl.int32)
        place = tl.cumsum(hot, axis=0) - hot + carry[None, :]
        tl.store(rank_ptr + group * tokens + t, tl.sum(place * hot, axis=1), mask=t < tokens)
        carry += tl.sum(hot, axis=0)
    tl.store(count_ptr + group * E + e, carry)


@triton.jit
def rank_by_comparison(x_ptr, rank_ptr, N, B: tl.constexpr):
    # rank of every element of a short row: N x N comparisons, ties by index
    row = tl.program_id(0)
    i = tl.arange(0, B)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=-float("inf"))
    y = tl.load(x_ptr + row * N + i, mask=i < N, other=-float("inf"))
    greater = (y[None, :] > x[:, None]) | ((y[None, :] == x[:, None]) & (i[None, :] < i[:, None]))
    rank = tl.sum(greater.to(tl.int32), axis=1)
    tl.store(rank_ptr + row * N + rank, i, mask=i < N)


def _():
    N = 40_000_000
    case(SO, "histogram_atomic", "tl.histogram of 256 bins in a loop, then atomic adds of the counters, masked", [cdiv(N, 16384)],
         [P("x_ptr", "f32", N, randn(1)), O("hist_ptr", "i32", 256), I("n", N), F("low", -4.0), F("inv_width", 32.0)],
         "hist_ptr", dict(BINS=256, BLOCK=2048, STEPS=8), 8, 2, rtol=0, atol=0)
    R, C = 16384, 1000
    case(SO, "nucleus_threshold", "top-p: sort of 1024 descending, cumsum, masked minimum; 1000 columns", [R],
         [P("p_ptr", "f32", [R, C], uniform(1, 0.001, 1.0)), P("top_p_ptr", "f32", R, uniform(2, 0.3, 0.95)), O("thr_ptr", "f32", R),
          O("keep_ptr", "f32", [R, C]), I("cols", C)], "thr_ptr", dict(BC=1024), 4, 1, rtol=5e-3, atol=1e-4)
    G, T = 1024, 4096
    case(SO, "token_rank_in_expert", "one-hot [64, 64] i32, cumsum along axis 0 and reduction along axis 1, loop with carry", [G],
         [P("id_ptr", "i32", [G, T], randint(1, 0, 64)), O("rank_ptr", "i32", [G, T]), O("count_ptr", "i32", [G, 64]), I("tokens", T)],
         "rank_ptr count_ptr", dict(E=64, BT=64), 4, 2, rtol=0, atol=0)
    R, N = 65536, 100
    case(SO, "rank_by_comparison", "[128, 128] comparisons summed along axis 1, then a scatter by rank; rows of 100", [R],
         [P("x_ptr", "f32", [R, N], randn(1)), O("rank_ptr", "i32", [R, N]), I("N", N)], "rank_ptr", dict(B=128), 4, 1, rtol=0, atol=0)


_()
