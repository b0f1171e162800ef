"""Chunked linear attention and softmax attention."""
import triton
import triton.language as tl

from common import *

LI = "linear attention by chunks"
AT = "attention"


@triton.jit
def chunk_fwd_h_gk(k_ptr, v_ptr, gk_ptr, h_ptr, ht_ptr, T, H, K: tl.constexpr, V: tl.constexpr, C: tl.constexpr, BK: tl.constexpr,
                   BV: tl.constexpr):
    # states between chunks with per-key decays (gk is a cumulative sum within a chunk, base 2)
    i_k, i_v, i_nh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_n, i_h = i_nh // H, i_nh % H
    o_k = i_k * BK + tl.arange(0, BK)
    o_v = i_v * BV + tl.arange(0, BV)
    b_h = tl.zeros([BK, BV], dtype=tl.float32)
    NT = tl.cdiv(T, C)
    for i_t in range(NT):
        p_h = h_ptr + ((i_n * NT + i_t) * H + i_h).to(tl.int64) * K * V + o_k[:, None] * V + o_v[None, :]
        tl.store(p_h, b_h.to(p_h.dtype.element_ty))
        o_t = i_t * C + tl.arange(0, C)
        m_t = o_t < T
        last = min((i_t + 1) * C, T) - 1
        at = (i_n * T + o_t) * H + i_h
        b_k = tl.load(k_ptr + at[None, :] * K + o_k[:, None], mask=m_t[None, :], other=0.0)
        b_v = tl.load(v_ptr + at[:, None] * V + o_v[None, :], mask=m_t[:, None], other=0.0)
        b_gk = tl.load(gk_ptr + at[None, :] * K + o_k[:, None], mask=m_t[None, :], other=0.0)
        b_gl = tl.load(gk_ptr + ((i_n * T + last) * H + i_h) * K + o_k)
        b_h *= tl.exp2(b_gl)[:, None]
        b_k = (b_k * tl.exp2(b_gl[:, None] - b_gk)).to(b_k.dtype)
        b_h += tl.dot(b_k, b_v)
    tl.store(ht_ptr + i_nh * K * V + o_k[:, None] * V + o_v[None, :], b_h)


def _():
    B, T, H = 4, 4096, 16
    x = [B, T, H, 128]
    case(LI, "chunk_fwd_h_gk", "gated linear attention: state [64, 64] carried over chunks, transposed k scaled by decays, bf16", [2, 2, B * H],
         [P("k_ptr", "bf16", x, randn(1)), P("v_ptr", "bf16", x, randn(2)), P("gk_ptr", "f32", x, uniform(3, -3.0, -0.5)),
          O("h_ptr", "bf16", [B, T // 64, H, 128, 128]), O("ht_ptr", "f32", [B, H, 128, 128]), I("T", T), I("H", H)], "h_ptr ht_ptr",
         dict(K=128, V=128, C=64, BK=64, BV=64), 4, 3, rtol=2e-2, atol=0.1)


_()


@triton.jit
def gla_intra_scores(q_ptr, k_ptr, g_ptr, a_ptr, T, H, scale, K: tl.constexpr, C: tl.constexpr, BC: tl.constexpr, BK: tl.constexpr):
    # a 16 x 16 block of scores below the diagonal of a chunk, decays taken relative to the block's first row
    i_t, i_c, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    NC: tl.constexpr = C // BC
    i_i, i_j = i_c // NC, i_c % NC
    if i_i <= i_j:
        return
    o_i = i_t * C + i_i * BC + tl.arange(0, BC)
    o_j = i_t * C + i_j * BC + tl.arange(0, BC)
    if i_t * C + i_i * BC >= T:
        return
    b_a = tl.zeros([BC, BC], dtype=tl.float32)
    for i_k in range(tl.cdiv(K, BK)):
        o_k = i_k * BK + tl.arange(0, BK)
        m_k = o_k < K
        qi = ((i_b * T + o_i[:, None]) * H + i_h) * K + o_k[None, :]
        kj = ((i_b * T + o_j[None, :]) * H + i_h) * K + o_k[:, None]
        b_gn = tl.load(g_ptr + ((i_b * T + i_t * C + i_i * BC) * H + i_h) * K + o_k, mask=m_k, other=0.0)
        b_q = tl.load(q_ptr + qi, mask=(o_i < T)[:, None] & m_k[None, :], other=0.0)
        b_g = tl.load(g_ptr + qi, mask=(o_i < T)[:, None] & m_k[None, :], other=0.0)
        b_k = tl.load(k_ptr + kj, mask=(o_j < T)[None, :] & m_k[:, None], other=0.0)
        b_gk = tl.load(g_ptr + kj, mask=(o_j < T)[None, :] & m_k[:, None], other=0.0)
        b_qg = (b_q * tl.exp(b_g - b_gn[None, :]) * scale).to(b_q.dtype)
        b_kg = (b_k * tl.exp(b_gn[:, None] - b_gk)).to(b_k.dtype)
        b_a += tl.dot(b_qg, b_kg)
    tl.store(a_ptr + ((i_b * T + o_i[:, None]) * H + i_h) * C + i_j * BC + tl.arange(0, BC)[None, :], b_a, mask=(o_i < T)[:, None])


def _():
    B, T, H, K = 4, 4000, 16, 128
    case(LI, "gla_intra_scores", "16 x 16 off-diagonal score blocks with decays in the operands, K loop of 32, early returns, bf16",
         [cdiv(T, 64), 16, B * H], [P("q_ptr", "bf16", [B, T, H, K], randn(1)), P("k_ptr", "bf16", [B, T, H, K], randn(2)),
                                    P("g_ptr", "f32", [B, T, H, K], uniform(3, -1.0, -0.1)), O("a_ptr", "f32", [B, T, H, 64]), I("T", T),
                                    I("H", H), F("scale", K**-0.5)], "a_ptr", dict(K=K, C=64, BC=16, BK=32), 1, 3, rtol=1e-2, atol=1e-2)


_()


@triton.jit
def gla_intra_diagonal(q_ptr, k_ptr, g_ptr, a_ptr, T, H, scale, K: tl.constexpr, C: tl.constexpr, BC: tl.constexpr):
    # the 16 x 16 diagonal blocks need exact decays: one column of scores per loop step, no dot
    i_t, i_i, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    first = i_t * C + i_i * BC
    if first >= T:
        return
    o_i = tl.arange(0, BC)
    o_k = tl.arange(0, K)
    t = first + o_i
    m_a = t < T
    at = ((i_b * T + t[:, None]) * H + i_h) * K + o_k[None, :]
    b_q = tl.load(q_ptr + at, mask=m_a[:, None], other=0.0).to(tl.float32)
    b_g = tl.load(g_ptr + at, mask=m_a[:, None], other=0.0)
    p_k = k_ptr + ((i_b * T + first) * H + i_h) * K + o_k
    p_g = g_ptr + ((i_b * T + first) * H + i_h) * K + o_k
    o_a = ((i_b * T + t) * H + i_h) * C + i_i * BC
    for j in range(0, min(BC, T - first)):
        b_k = tl.load(p_k).to(tl.float32)
        b_gk = tl.load(p_g)
        b_a = tl.sum(b_q * b_k[None, :] * tl.exp(b_g - b_gk[None, :]), 1)
        b_a = tl.where(o_i >= j, b_a * scale, 0.0)
        tl.store(a_ptr + o_a + j, b_a, mask=m_a)
        p_k += H * K
        p_g += H * K


def _():
    B, T, H, K = 2, 4096, 16, 128
    case(LI, "gla_intra_diagonal", "diagonal score blocks column by column: [16, 128] products summed along axis 1, one warp, bf16",
         [T // 64, 4, B * H], [P("q_ptr", "bf16", [B, T, H, K], randn(1)), P("k_ptr", "bf16", [B, T, H, K], randn(2)),
                               P("g_ptr", "f32", [B, T, H, K], uniform(3, -1.0, -0.1)), O("a_ptr", "f32", [B, T, H, 64]), I("T", T),
                               I("H", H), F("scale", K**-0.5)], "a_ptr", dict(K=K, C=64, BC=16), 1, 1, rtol=2e-3, atol=2e-3)


_()


@triton.jit
def chunk_bwd_dqk(q_ptr, k_ptr, v_ptr, h_ptr, g_ptr, do_ptr, dh_ptr, dq_ptr, dk_ptr, dg_ptr, T, H, scale, K: tl.constexpr, V: tl.constexpr,
                  C: tl.constexpr, BV: tl.constexpr):
    # gradients of q, k and the scalar gate in a chunk: three accumulators over blocks of values, then two small dots
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    o_c = tl.arange(0, C)
    o_t = i_t * C + o_c
    o_k = tl.arange(0, K)
    m_t = o_t < T
    at = (i_b * T + o_t) * H + i_h
    state = ((i_b * tl.cdiv(T, C) + i_t) * H + i_h).to(tl.int64) * K * V
    b_ds = tl.zeros([C, C], dtype=tl.float32)
    b_dq = tl.zeros([C, K], dtype=tl.float32)
    b_dk = tl.zeros([C, K], dtype=tl.float32)
    b_hh = 0.0
    for i_v in range(0, V, BV):
        o_v = i_v + tl.arange(0, BV)
        b_v = tl.load(v_ptr + at[:, None] * V + o_v[None, :], mask=m_t[:, None], other=0.0)
        b_do = tl.load(do_ptr + at[:, None] * V + o_v[None, :], mask=m_t[:, None], other=0.0)
        b_h = tl.load(h_ptr + state + o_v[:, None] + o_k[None, :] * V)
        b_dh = tl.load(dh_ptr + state + o_v[:, None] + o_k[None, :] * V)
        b_hh += tl.sum(b_h.to(tl.float32) * b_dh.to(tl.float32))
        b_ds += tl.dot(b_do, tl.trans(b_v))
        b_dq += tl.dot(b_do, b_h)
        b_dk += tl.dot(b_v, b_dh)
    b_q = tl.load(q_ptr + at[:, None] * K + o_k[None, :], mask=m_t[:, None], other=0.0)
    b_k = tl.load(k_ptr + at[:, None] * K + o_k[None, :], mask=m_t[:, None], other=0.0)
    b_g = tl.load(g_ptr + at, mask=m_t, other=0.0)
    b_gl = tl.load(g_ptr + (i_b * T + min(i_t * C + C, T) - 1) * H + i_h)
    b_dq = b_dq * tl.exp(b_g)[:, None] * scale
    b_dk = b_dk * tl.where(m_t, tl.exp(b_gl - b_g), 0.0)[:, None]
    b_dg = tl.sum(b_dq * b_q, axis=1) - tl.sum(b_dk * b_k, axis=1)
    b_dgl = tl.sum(b_dk * b_k) + b_hh * tl.exp(b_gl)
    b_ds = tl.where(o_c[:, None] >= o_c[None, :], b_ds * tl.exp(b_g[:, None] - b_g[None, :]), 0.0) * scale
    b_ds2 = b_ds * tl.dot(b_q, tl.trans(b_k))
    b_dg += tl.sum(b_ds2, axis=1) - tl.sum(b_ds2, axis=0)
    b_ds = b_ds.to(b_k.dtype)
    b_dq += tl.dot(b_ds, b_k)
    b_dk += tl.dot(tl.trans(b_ds), b_q)
    b_dg = tl.where(o_t < min(i_t * C + C, T) - 1, b_dg, b_dg + b_dgl)
    tl.store(dq_ptr + at[:, None] * K + o_k[None, :], b_dq.to(dq_ptr.dtype.element_ty), mask=m_t[:, None])
    tl.store(dk_ptr + at[:, None] * K + o_k[None, :], b_dk.to(dk_ptr.dtype.element_ty), mask=m_t[:, None])
    tl.store(dg_ptr + at, b_dg, mask=m_t)


def _():
    B, T, H, K, V, C = 4, 4096, 12, 64, 128, 64
    NT = T // C
    case(LI, "chunk_bwd_dqk", "chunk backward: three dot accumulators over value blocks, then masked scores with decays, sums on both axes, bf16",
         [NT, B * H], [P("q_ptr", "bf16", [B, T, H, K], randn(1, 0.3)), P("k_ptr", "bf16", [B, T, H, K], randn(2, 0.3)),
                       P("v_ptr", "bf16", [B, T, H, V], randn(3)), P("h_ptr", "bf16", [B, NT, H, K, V], randn(4)),
                       P("g_ptr", "f32", [B, T, H], uniform(5, -1.0, -0.2)), P("do_ptr", "bf16", [B, T, H, V], randn(6, 0.3)),
                       P("dh_ptr", "bf16", [B, NT, H, K, V], randn(7, 0.3)), O("dq_ptr", "bf16", [B, T, H, K]), O("dk_ptr", "bf16", [B, T, H, K]),
                       O("dg_ptr", "f32", [B, T, H]), I("T", T), I("H", H), F("scale", K**-0.5)], "dq_ptr dk_ptr dg_ptr",
         dict(K=K, V=V, C=C, BV=64), 4, 2, rtol=2e-2, atol=2e-2)


_()


@triton.jit
def ssd_chunk_scan(cb_ptr, x_ptr, dt_ptr, cum_ptr, c_ptr, state_ptr, d_ptr, z_ptr, out_ptr, T, H, G, P_: tl.constexpr, N: tl.constexpr,
                   CHUNK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Mamba-2: out = C state exp(dA) + (CB * decay * dt) x + D x, gated by silu(z)
    pid_c = tl.program_id(1)
    pid_h = tl.program_id(2)
    pid_m = tl.program_id(0) // tl.cdiv(P_, BN)
    pid_n = tl.program_id(0) % tl.cdiv(P_, BN)
    g = pid_h // (H // G)
    om = pid_m * BM + tl.arange(0, BM)
    on = pid_n * BN + tl.arange(0, BN)
    os = tl.arange(0, N)
    t0 = pid_c * CHUNK
    limit = min(CHUNK, T - t0)
    cum_m = tl.load(cum_ptr + pid_h * T + t0 + om, mask=om < limit, other=0.0)
    c = tl.load(c_ptr + ((t0 + om[:, None]) * G + g) * N + os[None, :], mask=om[:, None] < limit, other=0.0)
    s = tl.load(state_ptr + ((pid_c * H + pid_h) * P_ + on[None, :]) * N + os[:, None]).to(c.dtype)
    acc = tl.dot(c, s) * tl.exp(cum_m)[:, None]
    for k in range(0, min((pid_m + 1) * BM, limit), BK):
        ok = k + tl.arange(0, BK)
        cb = tl.load(cb_ptr + ((pid_c * G + g) * CHUNK + om[:, None]) * CHUNK + ok[None, :], mask=ok[None, :] < limit, other=0.0).to(tl.float32)
        cum_k = tl.load(cum_ptr + pid_h * T + t0 + ok, mask=ok < limit, other=0.0)
        dt = tl.load(dt_ptr + pid_h * T + t0 + ok, mask=ok < limit, other=0.0)
        cb *= tl.exp(tl.minimum(cum_m[:, None] - cum_k[None, :], 0.0)) * dt[None, :]
        cb = tl.where(om[:, None] >= ok[None, :], cb, 0.0).to(x_ptr.dtype.element_ty)
        x = tl.load(x_ptr + ((t0 + ok[:, None]) * H + pid_h) * P_ + on[None, :], mask=ok[:, None] < limit, other=0.0)
        acc += tl.dot(cb, x)
    at = ((t0 + om[:, None]) * H + pid_h) * P_ + on[None, :]
    xr = tl.load(x_ptr + at, mask=om[:, None] < limit, other=0.0).to(tl.float32)
    acc += xr * tl.load(d_ptr + pid_h)
    z = tl.load(z_ptr + at, mask=om[:, None] < limit, other=0.0).to(tl.float32)
    acc *= z * tl.sigmoid(z)
    tl.store(out_ptr + at, acc.to(out_ptr.dtype.element_ty), mask=om[:, None] < limit)


def _():
    T, H, G, P_, N, CH = 16384, 48, 1, 64, 128, 256
    case(LI, "ssd_chunk_scan", "Mamba-2 chunk scan: state dot, then causal decayed CB times x over key blocks, gated epilogue, chunk 256, bf16",
         [4, T // CH, H], [P("cb_ptr", "f32", [T // CH, G, CH, CH], randn(1)), P("x_ptr", "bf16", [T, H, P_], randn(2)),
                           P("dt_ptr", "f32", [H, T], uniform(3, 0.01, 0.2)), P("cum_ptr", "f32", [H, T], uniform(4, -3.0, -0.1)),
                           P("c_ptr", "bf16", [T, G, N], randn(5, 0.3)), P("state_ptr", "f32", [T // CH, H, P_, N], randn(6)),
                           P("d_ptr", "f32", H, randn(7)), P("z_ptr", "bf16", [T, H, P_], randn(8)), O("out_ptr", "bf16", [T, H, P_]), I("T", T),
                           I("H", H), I("G", G)], "out_ptr", dict(P_=P_, N=N, CHUNK=CH, BM=64, BN=64, BK=64), 4, 3,
         fl=T * H * (2 * N * P_ + P_ * CH), rtol=2e-2, atol=3e-2)


_()


@triton.jit
def delta_rule_wu(k_ptr, v_ptr, beta_ptr, g_ptr, a_ptr, w_ptr, u_ptr, T, H, K: tl.constexpr, V: tl.constexpr, C: tl.constexpr,
                  BK: tl.constexpr, BV: tl.constexpr):
    # w = A (beta exp(g) k), u = A (beta v): the same 64 x 64 operand against blocks of two tensors
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    o_t = i_t * C + tl.arange(0, C)
    m_t = o_t < T
    at = (i_b * T + o_t) * H + i_h
    b_beta = tl.load(beta_ptr + at, mask=m_t, other=0.0).to(tl.float32)
    b_g = tl.exp(tl.load(g_ptr + at, mask=m_t, other=0.0))
    b_a = tl.load(a_ptr + at[:, None] * C + tl.arange(0, C)[None, :], mask=m_t[:, None], other=0.0)
    for i_v in range(0, tl.cdiv(V, BV)):
        o_v = i_v * BV + tl.arange(0, BV)
        b_v = tl.load(v_ptr + at[:, None] * V + o_v[None, :], mask=m_t[:, None] & (o_v < V)[None, :], other=0.0)
        b_u = tl.dot(b_a, (b_v * b_beta[:, None]).to(b_v.dtype), allow_tf32=False)
        tl.store(u_ptr + at[:, None] * V + o_v[None, :], b_u.to(u_ptr.dtype.element_ty), mask=m_t[:, None] & (o_v < V)[None, :])
    for i_k in range(0, tl.cdiv(K, BK)):
        o_k = i_k * BK + tl.arange(0, BK)
        b_k = tl.load(k_ptr + at[:, None] * K + o_k[None, :], mask=m_t[:, None] & (o_k < K)[None, :], other=0.0)
        b_w = tl.dot(b_a, (b_k * (b_beta * b_g)[:, None]).to(b_k.dtype))
        tl.store(w_ptr + at[:, None] * K + o_k[None, :], b_w.to(w_ptr.dtype.element_ty), mask=m_t[:, None] & (o_k < K)[None, :])


@triton.jit
def solve_tril_16(a_ptr, out_ptr, T, H, C: tl.constexpr):
    # (I + A)^-1 of strictly lower triangular 16 x 16 diagonal blocks, row by row
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    o_i = tl.arange(0, 16)
    o_t = i_t * 16 + o_i
    col = (i_t * 16) % C
    base = (i_b * T * H + i_h) * C
    m_t = o_t < T
    b_a = tl.load(a_ptr + base + o_t[:, None] * (H * C) + col + o_i[None, :], mask=m_t[:, None], other=0.0).to(tl.float32)
    b_a = -tl.where(o_i[:, None] > o_i[None, :], b_a, 0.0)
    for i in range(2, min(16, T - i_t * 16)):
        row = -tl.load(a_ptr + base + (i_t * 16 + i) * (H * C) + col + o_i)
        row = tl.where(o_i < i, row, 0.0)
        row += tl.sum(row[:, None] * b_a, 0)
        b_a = tl.where((o_i == i)[:, None], row[None, :], b_a)
    b_a += (o_i[:, None] == o_i[None, :]).to(tl.float32)
    tl.store(out_ptr + (i_b * T * H + i_h) * 16 + o_t[:, None] * (H * 16) + o_i[None, :], b_a.to(out_ptr.dtype.element_ty), mask=m_t[:, None])


@triton.jit
def merge_inverse_32(a_ptr, inv_ptr, out_ptr, T, H, C: tl.constexpr):
    # 16 x 16 inverses into 32 x 32: A21' = -A22^-1 A21 A11^-1 by tiny dots
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    o = tl.arange(0, 16)
    t1 = i_t * 32 + o
    t2 = t1 + 16
    m1 = (t1 < T)[:, None]
    m2 = (t2 < T)[:, None]
    col = (i_t * 32) % C
    inv = inv_ptr + (i_b * T * H + i_h) * 16 + o[None, :]
    b11 = tl.load(inv + t1[:, None] * (H * 16), mask=m1, other=0.0).to(tl.float32)
    b22 = tl.load(inv + t2[:, None] * (H * 16), mask=m2, other=0.0).to(tl.float32)
    a21 = tl.load(a_ptr + (i_b * T * H + i_h) * C + t2[:, None] * (H * C) + col + o[None, :], mask=m2, other=0.0)
    b21 = -tl.dot(tl.dot(b22, a21, input_precision="ieee"), b11, input_precision="ieee")
    out = out_ptr + (i_b * T * H + i_h) * 32 + o[None, :]
    tl.store(out + t1[:, None] * (H * 32), b11.to(out_ptr.dtype.element_ty), mask=m1)
    tl.store(out + t1[:, None] * (H * 32) + 16, tl.zeros([16, 16], out_ptr.dtype.element_ty), mask=m1)
    tl.store(out + t2[:, None] * (H * 32), b21.to(out_ptr.dtype.element_ty), mask=m2)
    tl.store(out + t2[:, None] * (H * 32) + 16, b22.to(out_ptr.dtype.element_ty), mask=m2)


def _():
    B, T, H, K, V, C = 4, 4096, 16, 128, 96, 64
    case(LI, "delta_rule_wu", "w and u of the delta rule: one 64 x 64 operand against blocks of v (96 padded to 128) and k, two loops, bf16",
         [T // C, B * H], [P("k_ptr", "bf16", [B, T, H, K], randn(1, 0.3)), P("v_ptr", "bf16", [B, T, H, V], randn(2)),
                           P("beta_ptr", "bf16", [B, T, H], uniform(3)), P("g_ptr", "f32", [B, T, H], uniform(4, -1.0, 0.0)),
                           P("a_ptr", "bf16", [B, T, H, C], randn(5, 0.2)), O("w_ptr", "bf16", [B, T, H, K]), O("u_ptr", "bf16", [B, T, H, V]),
                           I("T", T), I("H", H)], "w_ptr u_ptr", dict(K=K, V=V, C=C, BK=64, BV=64), 4, 2, rtol=2e-2, atol=5e-3)
    B, T, H = 8, 8192, 8
    case(LI, "solve_tril_16", "forward substitution of 16 x 16 blocks in a loop of masked row updates, one warp, f32", [T // 16, B * H],
         [P("a_ptr", "f32", [B, T, H, C], randn(1, 0.2)), O("out_ptr", "f32", [B, T, H, 16]), I("T", T), I("H", H)], "out_ptr", dict(C=C), 1, 3,
         nb=B * T * H * 128, rtol=2e-3, atol=1e-3)
    case(LI, "merge_inverse_32", "16 x 16 inverses merged to 32 x 32 by two chained IEEE dots, quarters stored, f32 to bf16, two warps", [T // 32, B * H],
         [P("a_ptr", "f32", [B, T, H, C], randn(1, 0.2)), P("inv_ptr", "f32", [B, T, H, 16], randn(2, 0.3)), O("out_ptr", "bf16", [B, T, H, 32]),
          I("T", T), I("H", H)], "out_ptr", dict(C=C), 2, 2, nb=B * T * H * 160, rtol=1.6e-2, atol=1e-2)


_()


@triton.jit
def quadratic_linear_attn(q_ptr, k_ptr, v_ptr, o_ptr, z_ptr, T, scale, DK: tl.constexpr, DV: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr):
    # causal attention with the weight (q k)^2 instead of a softmax: no maximum, blocks below the diagonal without masks
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    o_t = i_t * BT + tl.arange(0, BT)
    o_k = tl.arange(0, DK)
    o_v = tl.arange(0, DV)
    b_q = tl.load(q_ptr + (i_bh * T + o_t[:, None]) * DK + o_k[None, :], mask=o_t[:, None] < T, other=0.0)
    b_q = (b_q * scale).to(b_q.dtype)
    b_o = tl.zeros([BT, DV], dtype=tl.float32)
    b_z = tl.zeros([BT], dtype=tl.float32)
    for s0 in range(0, i_t * BT, BS):
        o_s = s0 + tl.arange(0, BS)
        b_k = tl.load(k_ptr + (i_bh * T + o_s[None, :]) * DK + o_k[:, None])
        b_v = tl.load(v_ptr + (i_bh * T + o_s[:, None]) * DV + o_v[None, :])
        b_s = tl.dot(b_q, b_k)
        b_s = b_s * b_s
        b_z += tl.sum(b_s, axis=1)
        b_o = b_o + tl.dot(b_s.to(b_v.dtype), b_v)
    for s0 in range(i_t * BT, min((i_t + 1) * BT, T), BS):
        o_s = s0 + tl.arange(0, BS)
        b_k = tl.load(k_ptr + (i_bh * T + o_s[None, :]) * DK + o_k[:, None], mask=o_s[None, :] < T, other=0.0)
        b_v = tl.load(v_ptr + (i_bh * T + o_s[:, None]) * DV + o_v[None, :], mask=o_s[:, None] < T, other=0.0)
        b_s = tl.dot(b_q, b_k)
        b_s = tl.where(o_t[:, None] >= o_s[None, :], b_s * b_s, 0.0)
        b_z += tl.sum(b_s, axis=1)
        b_o += tl.dot(b_s.to(b_v.dtype), b_v)
    tl.store(o_ptr + (i_bh * T + o_t[:, None]) * DV + o_v[None, :], (b_o / (b_z + 1e-5)[:, None]).to(o_ptr.dtype.element_ty), mask=o_t[:, None] < T)
    tl.store(z_ptr + i_bh * T + o_t, b_z, mask=o_t < T)


def _():
    BH, T = 64, 4000
    case(LI, "quadratic_linear_attn", "squared-score attention without softmax, unmasked then masked loop, keys of 16, values of 128, f16",
         [cdiv(T, 128), BH], [P("q_ptr", "f16", [BH, T, 16], randn(1)), P("k_ptr", "f16", [BH, T, 16], randn(2)), P("v_ptr", "f16", [BH, T, 128], randn(3)),
                              O("o_ptr", "f16", [BH, T, 128]), O("z_ptr", "f32", [BH, T]), I("T", T), F("scale", 0.25)], "o_ptr z_ptr",
         dict(DK=16, DV=128, BT=128, BS=64), 4, 3, fl=BH * T * T * 144, rtol=1e-2, atol=2e-3)


_()


@triton.jit
def attn_gqa_d96(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, sm_scale, stride_qz, stride_qh, stride_qm, stride_kz, stride_kh, stride_kn, H, GROUP, SQ,
                 SK, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, CAUSAL: tl.constexpr):
    # heads of 96 padded to 128 by masks; causal with the sequences' ends aligned
    start_m = tl.program_id(0)
    off_z = tl.program_id(1) // H
    off_h = tl.program_id(1) % H
    off_k = off_h // GROUP
    om = start_m * BM + tl.arange(0, BM)
    on = tl.arange(0, BN)
    od = tl.arange(0, BD)
    q = tl.load(q_ptr + off_z * stride_qz + off_h * stride_qh + om[:, None] * stride_qm + od[None, :], mask=(om[:, None] < SQ) & (od[None, :] < D),
                other=0.0)
    m_i = tl.full([BM], float("-inf"), dtype=tl.float32)
    l_i = tl.full([BM], 1.0, dtype=tl.float32)
    acc = tl.zeros([BM, BD], dtype=tl.float32)
    qk_scale = sm_scale * 1.44269504
    hi = tl.minimum(SK, (start_m + 1) * BM + SK - SQ) if CAUSAL else SK
    kb = k_ptr + off_z * stride_kz + off_k * stride_kh
    vb = v_ptr + off_z * stride_kz + off_k * stride_kh
    for n0 in range(0, hi, BN):
        n0 = tl.multiple_of(n0, BN)
        k = tl.load(kb + (n0 + on)[None, :] * stride_kn + od[:, None], mask=((n0 + on)[None, :] < SK) & (od[:, None] < D), other=0.0)
        qk = tl.dot(q, k) * qk_scale
        keep = (n0 + on)[None, :] < SK
        if CAUSAL:
            keep = keep & (om[:, None] + (SK - SQ) >= (n0 + on)[None, :])
        qk = tl.where(keep, qk, -1.0e6)
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.math.exp2(qk - m_ij[:, None])
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(vb + (n0 + on)[:, None] * stride_kn + od[None, :], mask=((n0 + on)[:, None] < SK) & (od[None, :] < D), other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_ij
    acc = acc / l_i[:, None]
    tl.store(lse_ptr + tl.program_id(1) * SQ + om, m_i + tl.math.log2(l_i), mask=om < SQ)
    tl.store(o_ptr + off_z * stride_qz + off_h * stride_qh + om[:, None] * stride_qm + od[None, :], acc.to(o_ptr.dtype.element_ty),
             mask=(om[:, None] < SQ) & (od[None, :] < D))


def _():
    Z, H, KV, S, D = 4, 32, 8, 3000, 96
    case(AT, "attn_gqa_d96", "causal flash attention, grouped heads of 96 padded to 128, [B, S, H, D] strides, ragged 3000, bf16", [cdiv(S, 128), Z * H],
         [P("q_ptr", "bf16", [Z, S, H, D], randn(1)), P("k_ptr", "bf16", [Z, S, KV, D], randn(2)), P("v_ptr", "bf16", [Z, S, KV, D], randn(3)),
          O("o_ptr", "bf16", [Z, S, H, D]), O("lse_ptr", "f32", [Z * H, S]), F("sm_scale", D**-0.5), I("stride_qz", S * H * D), I("stride_qh", D),
          I("stride_qm", H * D), I("stride_kz", S * KV * D), I("stride_kh", D), I("stride_kn", KV * D), I("H", H), I("GROUP", H // KV), I("SQ", S),
          I("SK", S)], "o_ptr lse_ptr", dict(D=D, BM=128, BN=64, BD=128, CAUSAL=True), 8, 3, fl=2 * Z * H * S * S * D, rtol=2e-2, atol=3e-3)


_()


@triton.jit
def attn_window_sinks(q_ptr, k_ptr, v_ptr, sink_ptr, o_ptr, S, H, GROUP, window, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # sliding window with a learned sink logit per head in the denominator
    pid = tl.program_id(0)
    h = tl.program_id(1) % H
    b = tl.program_id(1) // H
    kv = b * (H // GROUP) + h // GROUP
    om = pid * BM + tl.arange(0, BM)
    od = tl.arange(0, D)
    q = tl.load(q_ptr + ((b * H + h) * S + om[:, None]) * D + od[None, :], mask=om[:, None] < S, other=0.0)
    m_i = tl.zeros([BM], dtype=tl.float32) + tl.load(sink_ptr + h).to(tl.float32)
    l_i = tl.full([BM], 1.0, dtype=tl.float32)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    lo = tl.maximum(0, (pid * BM - window + 1) // BN * BN)
    hi = tl.minimum(S, (pid + 1) * BM)
    for n0 in range(lo, hi, BN):
        on = n0 + tl.arange(0, BN)
        k = tl.load(k_ptr + (kv * S + on[:, None]) * D + od[None, :], mask=on[:, None] < S, other=0.0)
        s = tl.dot(q, k.T) * scale
        s = tl.where((on[None, :] <= om[:, None]) & (on[None, :] > om[:, None] - window), s, -1e30)
        m_n = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp(s - m_n[:, None])
        a = tl.exp(m_i - m_n)
        l_i = l_i * a + tl.sum(p, 1)
        v = tl.load(v_ptr + (kv * S + on[:, None]) * D + od[None, :], mask=on[:, None] < S, other=0.0)
        acc = acc * a[:, None]
        acc += tl.dot(p.to(v.dtype), v)
        m_i = m_n
    acc /= l_i[:, None]
    tl.store(o_ptr + ((b * H + h) * S + om[:, None]) * D + od[None, :], acc.to(o_ptr.dtype.element_ty), mask=om[:, None] < S)


def _():
    B, H, G, S = 2, 64, 8, 8192
    case(AT, "attn_window_sinks", "sliding window 128 with sink logits, d 64, grouped heads, few key blocks per program, bf16", [S // 64, B * H],
         [P("q_ptr", "bf16", [B, H, S, 64], randn(1)), P("k_ptr", "bf16", [B, H // G, S, 64], randn(2)), P("v_ptr", "bf16", [B, H // G, S, 64], randn(3)),
          P("sink_ptr", "bf16", H, randn(4)), O("o_ptr", "bf16", [B, H, S, 64]), I("S", S), I("H", H), I("GROUP", G), I("window", 128),
          F("scale", 0.125)], "o_ptr", dict(D=64, BM=64, BN=64), 4, 2, fl=4 * B * H * S * 192 * 64, rtol=2e-2, atol=5e-3)


_()


@triton.jit
def attn_bwd_dkdv_gqa(q_ptr, k_ptr, v_ptr, do_ptr, dk_ptr, dv_ptr, lse_ptr, delta_ptr, sm_scale, S, H, GROUP: tl.constexpr, D: tl.constexpr,
                      BM: tl.constexpr, BN: tl.constexpr):
    # gradients of one key block over all query heads of its group, causal; the diagonal is masked, the rest is not
    pid = tl.program_id(0)
    b = tl.program_id(1) // (H // GROUP)
    kv = tl.program_id(1) % (H // GROUP)
    on = pid * BN + tl.arange(0, BN)
    od = tl.arange(0, D)
    at = (tl.program_id(1) * S + on[:, None]) * D + od[None, :]
    k = tl.load(k_ptr + at)
    v = tl.load(v_ptr + at)
    k2 = (k * (sm_scale * 1.44269504)).to(k.dtype)
    dk = tl.zeros([BN, D], dtype=tl.float32)
    dv = tl.zeros([BN, D], dtype=tl.float32)
    for g in range(GROUP):
        head = b * H + kv * GROUP + g
        for m0 in range(pid * BN, S, BM):
            om = m0 + tl.arange(0, BM)
            qT = tl.load(q_ptr + (head * S + om[None, :]) * D + od[:, None])
            lse = tl.load(lse_ptr + head * S + om)
            pT = tl.math.exp2(tl.dot(k2, qT) - lse[None, :])
            if m0 < (pid + 1) * BN:
                pT = tl.where(om[None, :] >= on[:, None], pT, 0.0)
            do = tl.load(do_ptr + (head * S + om[:, None]) * D + od[None, :])
            dv = tl.dot(pT.to(do.dtype), do, dv)
            delta = tl.load(delta_ptr + head * S + om)
            dpT = tl.dot(v, tl.trans(do)).to(tl.float32)
            dsT = (pT * (dpT - delta[None, :])).to(qT.dtype)
            dk = tl.dot(dsT, tl.trans(qT), dk)
    tl.store(dv_ptr + at, dv.to(dv_ptr.dtype.element_ty))
    tl.store(dk_ptr + at, (dk * sm_scale).to(dk_ptr.dtype.element_ty))


@triton.jit
def attn_bwd_dq_alibi(q_ptr, k_ptr, v_ptr, do_ptr, dq_ptr, lse_ptr, delta_ptr, slope_ptr, sm_scale, S, H, D: tl.constexpr, BM: tl.constexpr,
                      BN: tl.constexpr):
    pid = tl.program_id(0)
    head = tl.program_id(1)
    om = pid * BM + tl.arange(0, BM)
    od = tl.arange(0, D)
    live = om[:, None] < S
    at = (head * S + om[:, None]) * D + od[None, :]
    q = tl.load(q_ptr + at, mask=live, other=0.0)
    do = tl.load(do_ptr + at, mask=live, other=0.0)
    lse = tl.load(lse_ptr + head * S + om, mask=om < S, other=float("inf"))
    delta = tl.load(delta_ptr + head * S + om, mask=om < S, other=0.0)
    slope = tl.load(slope_ptr + head % H)
    dq = tl.zeros([BM, D], dtype=tl.float32)
    for n0 in range(0, tl.minimum((pid + 1) * BM, S), BN):
        on = n0 + tl.arange(0, BN)
        k = tl.load(k_ptr + (head * S + on[:, None]) * D + od[None, :], mask=on[:, None] < S, other=0.0)
        v = tl.load(v_ptr + (head * S + on[:, None]) * D + od[None, :], mask=on[:, None] < S, other=0.0)
        s = tl.dot(q, tl.trans(k)) * sm_scale - slope * (om[:, None] - on[None, :]).to(tl.float32)
        p = tl.where((om[:, None] >= on[None, :]) & (on[None, :] < S), tl.exp(s - lse[:, None]), 0.0)
        dp = tl.dot(do, tl.trans(v))
        ds = p * (dp - delta[:, None])
        dq += tl.dot(ds.to(k.dtype), k)
    tl.store(dq_ptr + at, (dq * sm_scale).to(dq_ptr.dtype.element_ty), mask=live)


def _():
    B, H, G, S, D = 2, 16, 4, 4096, 128
    case(AT, "attn_bwd_dkdv_gqa", "dk and dv over the query heads of a group: nested loops, transposed tiles, branch at the diagonal, d 128, bf16",
         [S // 64, B * H // G], [P("q_ptr", "bf16", [B, H, S, D], randn(1)), P("k_ptr", "bf16", [B, H // G, S, D], randn(2)),
                                 P("v_ptr", "bf16", [B, H // G, S, D], randn(3)), P("do_ptr", "bf16", [B, H, S, D], randn(4, 0.3)),
                                 O("dk_ptr", "bf16", [B, H // G, S, D]), O("dv_ptr", "bf16", [B, H // G, S, D]),
                                 P("lse_ptr", "f32", [B, H, S], uniform(5, 8.0, 12.0)), P("delta_ptr", "f32", [B, H, S], randn(6, 0.1)),
                                 F("sm_scale", D**-0.5), I("S", S), I("H", H)], "dk_ptr dv_ptr", dict(GROUP=G, D=D, BM=64, BN=64), 4, 2,
         fl=4 * B * H * S * S * D, rtol=2e-2, atol=3e-3, note="lse and delta are free inputs")
    B, H, S, D = 4, 12, 3500, 64
    case(AT, "attn_bwd_dq_alibi", "dq with ALiBi and masks, d 64, ragged 3500, f16", [cdiv(S, 128), B * H],
         [P("q_ptr", "f16", [B, H, S, D], randn(1)), P("k_ptr", "f16", [B, H, S, D], randn(2)), P("v_ptr", "f16", [B, H, S, D], randn(3)),
          P("do_ptr", "f16", [B, H, S, D], randn(4, 0.3)), O("dq_ptr", "f16", [B, H, S, D]), P("lse_ptr", "f32", [B, H, S], uniform(5, 4.0, 6.0)),
          P("delta_ptr", "f32", [B, H, S], randn(6, 0.1)), P("slope_ptr", "f32", H, uniform(7, 0.01, 0.3)), F("sm_scale", 0.125), I("S", S),
          I("H", H)], "dq_ptr", dict(D=D, BM=128, BN=64), 8, 3, fl=3 * B * H * S * S * D, rtol=1e-2, atol=1e-3,
         note="lse and delta are free inputs")


_()


@triton.jit
def decode_split_int8_kv(q_ptr, k_ptr, v_ptr, ks_ptr, vs_ptr, len_ptr, part_ptr, lse_ptr, S, HKV, scale, GROUP: tl.constexpr, D: tl.constexpr,
                         BH: tl.constexpr, BN: tl.constexpr, SPLITS: tl.constexpr):
    # decode over an int8 cache with scales per token, the group's heads padded to 16 rows
    b, kv, sp = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    n = tl.load(len_ptr + b)
    per = tl.cdiv(tl.cdiv(n, SPLITS), BN) * BN
    lo = sp * per
    hi = tl.minimum(lo + per, n)
    oh = tl.arange(0, BH)
    od = tl.arange(0, D)
    hm = oh < GROUP
    q = tl.load(q_ptr + ((b * HKV + kv) * GROUP + oh[:, None]) * D + od[None, :], mask=hm[:, None], other=0.0)
    m_i = tl.full([BH], -float("inf"), tl.float32)
    l_i = tl.zeros([BH], tl.float32)
    acc = tl.zeros([BH, D], tl.float32)
    if hi > lo:
        for n0 in range(lo, hi, BN):
            on = n0 + tl.arange(0, BN)
            nm = on < hi
            row = (b * S + on) * HKV + kv
            k = tl.load(k_ptr + row[None, :] * D + od[:, None], mask=nm[None, :], other=0)
            ks = tl.load(ks_ptr + row, mask=nm, other=0.0).to(tl.float32)
            s = tl.dot(q, k.to(q.dtype)) * (ks * scale)[None, :]
            s = tl.where(hm[:, None] & nm[None, :], s, -float("inf"))
            m_n = tl.maximum(tl.max(s, 1), m_i)
            m_s = tl.where(m_n == -float("inf"), 0.0, m_n)
            a = tl.exp(m_i - m_s)
            p = tl.exp(s - m_s[:, None])
            v = tl.load(v_ptr + row[:, None] * D + od[None, :], mask=nm[:, None], other=0)
            vs = tl.load(vs_ptr + row, mask=nm, other=0.0).to(tl.float32)
            acc = acc * a[:, None] + tl.dot((p * vs[None, :]).to(q.dtype), v.to(q.dtype))
            l_i = l_i * a + tl.sum(p, 1)
            m_i = m_n
        at = (((b * HKV + kv) * GROUP + oh) * SPLITS + sp)
        tl.store(part_ptr + at[:, None] * D + od[None, :], acc / l_i[:, None], mask=hm[:, None])
        tl.store(lse_ptr + at, m_i + tl.log(l_i), mask=hm)


@triton.jit
def attn_extend_paged(q_ptr, k_ptr, v_ptr, o_ptr, kbuf_ptr, vbuf_ptr, qo_ptr, kvp_ptr, kvi_ptr, sm_scale, HQ, GROUP: tl.constexpr, D: tl.constexpr,
                      BM: tl.constexpr, BN: tl.constexpr):
    # prefill after a cached prefix: the prefix through an index list, the new part causal
    seq, head, blk = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    kvh = head // GROUP
    HKV = HQ // GROUP
    q0 = tl.load(qo_ptr + seq)
    len_q = tl.load(qo_ptr + seq + 1) - q0
    p0 = tl.load(kvp_ptr + seq)
    len_p = tl.load(kvp_ptr + seq + 1) - p0
    od = tl.arange(0, D)
    om = tl.arange(0, BM)
    mm = blk * BM + om < len_q
    rows = q0 + blk * BM + om
    q = tl.load(q_ptr + (rows[:, None] * HQ + head) * D + od[None, :], mask=mm[:, None], other=0.0)
    on = tl.arange(0, BN)
    acc = tl.zeros([BM, D], dtype=tl.float32)
    deno = tl.zeros([BM], dtype=tl.float32)
    e_max = tl.zeros([BM], dtype=tl.float32) - float("inf")
    for n0 in range(0, len_p, BN):
        n0 = tl.multiple_of(n0, BN)
        nm = n0 + on < len_p
        loc = tl.load(kvi_ptr + p0 + n0 + on, mask=nm, other=0)
        k = tl.load(kbuf_ptr + (loc[None, :] * HKV + kvh) * D + od[:, None], mask=nm[None, :], other=0.0)
        qk = tl.dot(q.to(k.dtype), k) * sm_scale
        qk = tl.where(mm[:, None] & nm[None, :], qk, -float("inf"))
        row_max = tl.max(qk, 1)
        n_max = tl.maximum(tl.where(row_max == -float("inf"), -1e20, row_max), e_max)
        re = tl.exp(e_max - n_max)
        p = tl.exp(qk - n_max[:, None])
        deno = deno * re + tl.sum(p, 1)
        v = tl.load(vbuf_ptr + (loc[:, None] * HKV + kvh) * D + od[None, :], mask=nm[:, None], other=0.0)
        acc = acc * re[:, None] + tl.dot(p.to(v.dtype), v)
        e_max = n_max
    for n0 in range(0, tl.minimum(len_q, (blk + 1) * BM), BN):
        n0 = tl.multiple_of(n0, BN)
        nm = n0 + on < len_q
        krow = q0 + n0 + on
        k = tl.load(k_ptr + (krow[None, :] * HKV + kvh) * D + od[:, None], mask=nm[None, :], other=0.0)
        qk = tl.dot(q, k, out_dtype=tl.float32) * sm_scale
        keep = (blk * BM + om[:, None] >= n0 + on[None, :]) & mm[:, None] & nm[None, :]
        qk = tl.where(keep, qk, -float("inf"))
        row_max = tl.max(qk, 1)
        n_max = tl.maximum(tl.where(row_max == -float("inf"), -1e20, row_max), e_max)
        re = tl.exp(e_max - n_max)
        p = tl.exp(qk - n_max[:, None])
        deno = deno * re + tl.sum(p, 1)
        v = tl.load(v_ptr + (krow[:, None] * HKV + kvh) * D + od[None, :], mask=nm[:, None], other=0.0)
        acc = acc * re[:, None] + tl.dot(p.to(v.dtype), v)
        e_max = n_max
    tl.store(o_ptr + (rows[:, None] * HQ + head) * D + od[None, :], acc / deno[:, None], mask=mm[:, None])


@triton.jit
def merge_attn_states(oa_ptr, sa_ptr, ob_ptr, sb_ptr, o_ptr, s_ptr, H, D: tl.constexpr, PADD: tl.constexpr):
    t = tl.program_id(0)
    h = tl.program_id(1)
    T = tl.num_programs(0)
    sa = tl.load(sa_ptr + h * T + t)
    sb = tl.load(sb_ptr + h * T + t)
    sa = float("-inf") if sa == float("inf") else sa
    sb = float("-inf") if sb == float("inf") else sb
    m = tl.maximum(sa, sb)
    ea = tl.exp(sa - m)
    eb = tl.exp(sb - m)
    total = ea + eb
    tl.store(s_ptr + h * T + t, tl.log(total) + m)
    d = tl.arange(0, PADD)
    a = tl.load(oa_ptr + (t * H + h) * D + d, mask=d < D)
    b = tl.load(ob_ptr + (t * H + h) * D + d, mask=d < D)
    tl.store(o_ptr + (t * H + h) * D + d, a * (ea / total) + b * (eb / total), mask=d < D)


def _():
    B, HKV, G, D, S, SP = 64, 8, 5, 128, 2048, 4
    case(AT, "decode_split_int8_kv", "decode over an int8 cache with token scales, 5 heads padded to 16 rows, split sequence, branch for empty splits, f16",
         [B, HKV, SP], [P("q_ptr", "f16", [B, HKV * G, D], randn(1)), P("k_ptr", "i8", [B, S, HKV, D], randint(2, -127, 128)),
                        P("v_ptr", "i8", [B, S, HKV, D], randint(3, -127, 128)), P("ks_ptr", "f16", [B, S, HKV], uniform(4, 0.005, 0.02)),
                        P("vs_ptr", "f16", [B, S, HKV], uniform(5, 0.005, 0.02)), P("len_ptr", "i32", B, randint(6, 1000, S + 1)),
                        O("part_ptr", "f32", [B, HKV * G, SP, D]), O("lse_ptr", "f32", [B, HKV * G, SP]), I("S", S), I("HKV", HKV),
                        F("scale", D**-0.5)], "part_ptr lse_ptr", dict(GROUP=G, D=D, BH=16, BN=64, SPLITS=SP), 4, 2, rtol=1e-2, atol=2e-3)
    B, HQ, G, LQ, LP = 8, 32, 8, 512, 2000
    case(AT, "attn_extend_paged", "prefill on a cached prefix gathered by an index list, then the causal part, d 128, bf16", [B, HQ, LQ // 64],
         [P("q_ptr", "bf16", [B * LQ, HQ, 128], randn(1)), P("k_ptr", "bf16", [B * LQ, HQ // G, 128], randn(2)),
          P("v_ptr", "bf16", [B * LQ, HQ // G, 128], randn(3)), O("o_ptr", "bf16", [B * LQ, HQ, 128]),
          P("kbuf_ptr", "bf16", [B * LP, HQ // G, 128], randn(4)), P("vbuf_ptr", "bf16", [B * LP, HQ // G, 128], randn(5)),
          P("qo_ptr", "i32", B + 1, arange(0, LQ)), P("kvp_ptr", "i32", B + 1, arange(0, LP)), P("kvi_ptr", "i64", B * LP, arange(11, 7001, B * LP)),
          F("sm_scale", 128**-0.5), I("HQ", HQ)], "o_ptr", dict(GROUP=G, D=128, BM=64, BN=64), 4, 2,
         fl=4 * B * HQ * LQ * (LP + LQ // 2) * 128, rtol=2e-2, atol=3e-3)
    T, H, D = 8192, 32, 96
    case(AT, "merge_attn_states", "merge of two partial attentions, one program per token and head of 96 (padded to 128), one warp, bf16", [T, H],
         [P("oa_ptr", "bf16", [T, H, D], randn(1)), P("sa_ptr", "f32", [H, T], randn(2, 2.0)), P("ob_ptr", "bf16", [T, H, D], randn(3)),
          P("sb_ptr", "f32", [H, T], randn(4, 2.0)), O("o_ptr", "bf16", [T, H, D]), O("s_ptr", "f32", [H, T]), I("H", H)], "o_ptr s_ptr",
         dict(D=D, PADD=128), 1, 1, rtol=1.6e-2, atol=1e-2)


_()


@triton.jit
def attn_window_49(q_ptr, k_ptr, v_ptr, bias_ptr, mask_ptr, o_ptr, NW, H, scale, N: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    # Swin: a whole 49-token window per program, softmax along the row, relative bias and shift mask added
    w = tl.program_id(0)
    h = tl.program_id(1)
    n = tl.arange(0, BN)
    d = tl.arange(0, D)
    base = (w * H + h) * N * D
    live = n[:, None] < N
    at = base + n[:, None] * D + d[None, :]
    q = tl.load(q_ptr + at, mask=live, other=0.0)
    k = tl.load(k_ptr + at, mask=live, other=0.0)
    v = tl.load(v_ptr + at, mask=live, other=0.0)
    both = live & (n[None, :] < N)
    bias = tl.load(bias_ptr + (h * N + n[:, None]) * N + n[None, :], mask=both, other=0.0)
    shift = tl.load(mask_ptr + ((w % NW) * N + n[:, None]) * N + n[None, :], mask=both, other=0.0)
    s = tl.dot(q, tl.trans(k)) * scale + bias + shift
    s = tl.where(n[None, :] < N, s, -float("inf"))
    p = tl.exp(s - tl.max(s, axis=1)[:, None])
    p = p / tl.sum(p, axis=1)[:, None]
    o = tl.dot(p.to(v.dtype), v)
    tl.store(o_ptr + at, o.to(o_ptr.dtype.element_ty), mask=live)


@triton.jit
def attn_pair_bias(q_ptr, k_ptr, v_ptr, bias_ptr, gate_ptr, o_ptr, S, H, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # evoformer row attention: one bias tile per block pair, shared by the rows; output gated
    pid = tl.program_id(0)
    h = tl.program_id(1)
    row = tl.program_id(2)
    om = pid * BM + tl.arange(0, BM)
    od = tl.arange(0, D)
    at = ((row * S + om[:, None]) * H + h) * D + od[None, :]
    q = tl.load(q_ptr + at, mask=om[:, None] < S, other=0.0)
    m_i = tl.full([BM], -1e30, tl.float32)
    l_i = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for n0 in range(0, S, BN):
        on = n0 + tl.arange(0, BN)
        kat = ((row * S + on[:, None]) * H + h) * D + od[None, :]
        k = tl.load(k_ptr + kat, mask=on[:, None] < S, other=0.0)
        v = tl.load(v_ptr + kat, mask=on[:, None] < S, other=0.0)
        bias = tl.load(bias_ptr + (h * S + om[:, None]) * S + on[None, :], mask=(om[:, None] < S) & (on[None, :] < S), other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale + bias.to(tl.float32)
        s = tl.where(on[None, :] < S, s, -1e30)
        m_n = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp(s - m_n[:, None])
        a = tl.exp(m_i - m_n)
        l_i = l_i * a + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * a[:, None])
        m_i = m_n
    g = tl.load(gate_ptr + at, mask=om[:, None] < S, other=0.0).to(tl.float32)
    o = acc / l_i[:, None] * tl.sigmoid(g)
    tl.store(o_ptr + at, o.to(o_ptr.dtype.element_ty), mask=om[:, None] < S)


def _():
    W, H, N, D, NW = 2560, 6, 49, 32, 64
    case(AT, "attn_window_49", "Swin windows of 49 (padded to 64), d 32, one program each with bias and mask tiles, f16", [W, H],
         [P("q_ptr", "f16", [W, H, N, D], randn(1)), P("k_ptr", "f16", [W, H, N, D], randn(2)), P("v_ptr", "f16", [W, H, N, D], randn(3)),
          P("bias_ptr", "f16", [H, N, N], randn(4)), P("mask_ptr", "f16", [NW, N, N], randn(5)), O("o_ptr", "f16", [W, H, N, D]), I("NW", NW),
          I("H", H), F("scale", D**-0.5)], "o_ptr", dict(N=N, BN=64, D=D), 2, 1, rtol=5e-3, atol=5e-3)
    R, S, H, D = 384, 384, 4, 32
    case(AT, "attn_pair_bias", "evoformer attention, d 32, bias tile per block pair, gated output, bf16", [S // 64, H, R],
         [P("q_ptr", "bf16", [R, S, H, D], randn(1)), P("k_ptr", "bf16", [R, S, H, D], randn(2)), P("v_ptr", "bf16", [R, S, H, D], randn(3)),
          P("bias_ptr", "bf16", [H, S, S], randn(4)), P("gate_ptr", "bf16", [R, S, H, D], randn(5)), O("o_ptr", "bf16", [R, S, H, D]), I("S", S),
          I("H", H), F("scale", D**-0.5)], "o_ptr", dict(D=D, BM=64, BN=64), 4, 2, rtol=2e-2, atol=5e-3)


_()
