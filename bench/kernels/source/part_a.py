"""3-D broadcasts, recurrences, scans."""
import triton
import triton.language as tl

from common import *

B3 = "3-D broadcasts and state updates"
SC = "scans"


@triton.jit
def bcast_matvec(x_ptr, w_ptr, y_ptr, batch, stride_wb, stride_wk, BB: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    b = tl.program_id(0) * BB + tl.arange(0, BB)
    k = tl.arange(0, K)
    n = tl.arange(0, N)
    live = b < batch
    x = tl.load(x_ptr + b[:, None] * K + k[None, :], mask=live[:, None], other=0.0).to(tl.float32)
    w = tl.load(w_ptr + b[:, None, None] * stride_wb + k[None, :, None] * stride_wk + n[None, None, :],
                mask=live[:, None, None], other=0.0).to(tl.float32)
    y = tl.sum(x[:, :, None] * w, axis=1)
    tl.store(y_ptr + b[:, None] * N + n[None, :], y.to(y_ptr.dtype.element_ty), mask=live[:, None])


def _():
    B = 16381
    case(B3, "bcast_matvec", "batched small matvec: [4, 64, 64] tile of x[:, :, None] * w reduced over the middle axis, f16",
         [cdiv(B, 4)], [P("x_ptr", "f16", [B, 64], randn(1)), P("w_ptr", "f16", [B, 64, 64], randn(2, 0.2)),
                        O("y_ptr", "f16", [B, 64]), I("batch", B), I("stride_wb", 4096), I("stride_wk", 64)], "y_ptr",
         dict(BB=4, K=64, N=64), 4, 2, rtol=5e-3, atol=5e-3)


_()


@triton.jit
def outer_sum_first(a_ptr, c_ptr, out_ptr, T, M, N, BT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # out[h, m, n] = sum over t of a[h, t, m] * c[h, t, n], tile [BT, BM, BN] reduced over its first axis
    h = tl.program_id(2)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        a = tl.load(a_ptr + (h * T + t[:, None]) * M + m[None, :], mask=(t[:, None] < T) & (m[None, :] < M), other=0.0)
        c = tl.load(c_ptr + (h * T + t[:, None]) * N + n[None, :], mask=(t[:, None] < T) & (n[None, :] < N), other=0.0)
        acc += tl.sum(a[:, :, None].to(tl.float32) * c[:, None, :].to(tl.float32), axis=0)
    tl.store(out_ptr + (h * M + m[:, None]) * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


def _():
    H, T, M, N = 256, 1000, 96, 96
    case(B3, "outer_sum_first", "outer products [4, 32, 64] reduced over the first axis in a loop, 96-wide, bf16", [3, 2, H],
         [P("a_ptr", "bf16", [H, T, M], randn(1)), P("c_ptr", "bf16", [H, T, N], randn(2)), O("out_ptr", "f32", [H, M, N]),
          I("T", T), I("M", M), I("N", N)], "out_ptr", dict(BT=4, BM=32, BN=64), 8, 3, fl=2 * H * T * M * N, rtol=1e-3,
         atol=2e-2)


_()


@triton.jit
def pairwise_l1(x_ptr, y_ptr, d_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k0 in range(0, tl.cdiv(K, BK)):
        k = k0 * BK + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        y = tl.load(y_ptr + n[:, None] * K + k[None, :], mask=(n[:, None] < N) & (k[None, :] < K), other=0.0)
        acc += tl.sum(tl.abs(x[:, None, :] - y[None, :, :]), axis=2)
    tl.store(d_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


def _():
    M, N, K = 4000, 4000, 100
    case(B3, "pairwise_l1", "L1 distances: [32, 32, 16] tile of differences reduced over the last axis, f32, K 100",
         [cdiv(M, 32), cdiv(N, 32)], [P("x_ptr", "f32", [M, K], randn(1)), P("y_ptr", "f32", [N, K], randn(2)),
                                      O("d_ptr", "f32", [M, N]), I("M", M), I("N", N), I("K", K)], "d_ptr",
         dict(BM=32, BN=32, BK=16), 4, 2, fl=3 * M * N * K)


_()


@triton.jit
def selective_state_update(state_ptr, x_ptr, dt_ptr, dt_bias_ptr, A_ptr, B_ptr, C_ptr, D_ptr, z_ptr, out_ptr, nheads,
                           dim, dstate, nheads_ngroups_ratio, stride_state_batch, stride_state_head, stride_state_dim,
                           stride_x_batch, stride_x_head, stride_dt_batch, stride_B_batch, stride_B_group,
                           BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    pid_m = tl.program_id(0)
    pid_b = tl.program_id(1)
    pid_h = tl.program_id(2)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    s_ptrs = (state_ptr + pid_b * stride_state_batch + pid_h * stride_state_head + offs_m[:, None] * stride_state_dim +
              offs_n[None, :])
    mask = (offs_m[:, None] < dim) & (offs_n[None, :] < dstate)
    state = tl.load(s_ptrs, mask=mask, other=0.0)
    x = tl.load(x_ptr + pid_b * stride_x_batch + pid_h * stride_x_head + offs_m, mask=offs_m < dim, other=0.0).to(tl.float32)
    dt = tl.load(dt_ptr + pid_b * stride_dt_batch + pid_h).to(tl.float32) + tl.load(dt_bias_ptr + pid_h).to(tl.float32)
    dt = tl.where(dt <= 20.0, tl.log(1.0 + tl.exp(dt)), dt)
    A = tl.load(A_ptr + pid_h).to(tl.float32)
    g = pid_h // nheads_ngroups_ratio
    B = tl.load(B_ptr + pid_b * stride_B_batch + g * stride_B_group + offs_n, mask=offs_n < dstate, other=0.0).to(tl.float32)
    C = tl.load(C_ptr + pid_b * stride_B_batch + g * stride_B_group + offs_n, mask=offs_n < dstate, other=0.0).to(tl.float32)
    D = tl.load(D_ptr + pid_h).to(tl.float32)
    z = tl.load(z_ptr + pid_b * stride_x_batch + pid_h * stride_x_head + offs_m, mask=offs_m < dim, other=0.0).to(tl.float32)
    state = state * tl.exp(A * dt) + (B * dt)[None, :] * x[:, None]
    tl.store(s_ptrs, state, mask=mask)
    out = tl.sum(state * C[None, :], axis=1) + x * D
    out *= z * tl.sigmoid(z)
    tl.store(out_ptr + pid_b * stride_x_batch + pid_h * stride_x_head + offs_m, out, mask=offs_m < dim)


def _():
    B, H, P_, N, G = 64, 80, 64, 128, 8
    case(B3, "selective_state_update", "SSM decode step: [64, 128] f32 state, softplus, B and C broadcast, silu gate",
         [1, B, H], [P("state_ptr", "f32", [B, H, P_, N], randn(1)), P("x_ptr", "bf16", [B, H, P_], randn(2)),
                     P("dt_ptr", "bf16", [B, H], randn(3)), P("dt_bias_ptr", "f32", H, randn(4)),
                     P("A_ptr", "f32", H, uniform(5, -2.0, -0.1)), P("B_ptr", "bf16", [B, G, N], randn(6)),
                     P("C_ptr", "bf16", [B, G, N], randn(7)), P("D_ptr", "f32", H, randn(8)),
                     P("z_ptr", "bf16", [B, H, P_], randn(9)), O("out_ptr", "bf16", [B, H, P_]), I("nheads", H),
                     I("dim", P_), I("dstate", N), I("nheads_ngroups_ratio", H // G), I("stride_state_batch", H * P_ * N),
                     I("stride_state_head", P_ * N), I("stride_state_dim", N), I("stride_x_batch", H * P_),
                     I("stride_x_head", P_), I("stride_dt_batch", H), I("stride_B_batch", G * N), I("stride_B_group", N)],
         "state_ptr out_ptr", dict(BLOCK_M=64, BLOCK_N=128), 4, 3, nb=2 * 4 * B * H * P_ * N, rtol=1.6e-2, atol=2e-2)


_()


@triton.jit
def selective_scan_seq(x_ptr, dt_ptr, A_ptr, B_ptr, C_ptr, out_ptr, L, D, BD: tl.constexpr, N: tl.constexpr):
    # Mamba-1: state [BD, N] carried over the time steps, per-channel decays
    b = tl.program_id(1)
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    n = tl.arange(0, N)
    live = d < D
    A = tl.load(A_ptr + d[:, None] * N + n[None, :], mask=live[:, None], other=0.0)
    h = tl.zeros((BD, N), dtype=tl.float32)
    for t in range(0, L):
        row = b * L + t
        x = tl.load(x_ptr + row * D + d, mask=live, other=0.0).to(tl.float32)
        dt = tl.load(dt_ptr + row * D + d, mask=live, other=0.0).to(tl.float32)
        Bt = tl.load(B_ptr + row * N + n).to(tl.float32)
        Ct = tl.load(C_ptr + row * N + n).to(tl.float32)
        h = h * tl.exp(dt[:, None] * A) + (dt * x)[:, None] * Bt[None, :]
        y = tl.sum(h * Ct[None, :], axis=1)
        tl.store(out_ptr + row * D + d, y.to(out_ptr.dtype.element_ty), mask=live)


def _():
    B, L, D, N = 16, 512, 2560, 16
    case(B3, "selective_scan_seq", "Mamba-1 scan: [64, 16] state carried over time, reduced along dstate each step",
         [D // 64, B], [P("x_ptr", "bf16", [B, L, D], randn(1)), P("dt_ptr", "bf16", [B, L, D], uniform(2, 0.01, 0.2)),
                        P("A_ptr", "f32", [D, N], uniform(3, -2.0, -0.1)), P("B_ptr", "bf16", [B, L, N], randn(4)),
                        P("C_ptr", "bf16", [B, L, N], randn(5)), O("out_ptr", "bf16", [B, L, D]), I("L", L), I("D", D)],
         "out_ptr", dict(BD=64, N=N), 2, 2, rtol=1.6e-2, atol=2e-2)


_()


@triton.jit
def wkv6_recurrent(r_ptr, k_ptr, v_ptr, w_ptr, u_ptr, o_ptr, ht_ptr, T, H, scale, K: tl.constexpr, V: tl.constexpr,
                   BV: tl.constexpr):
    i_v, i_nh = tl.program_id(0), tl.program_id(1).to(tl.int64)
    i_n, i_h = i_nh // H, i_nh % H
    o_k = tl.arange(0, K)
    o_v = i_v * BV + tl.arange(0, BV)
    p_r = r_ptr + (i_n * T * H + i_h) * K + o_k
    p_k = k_ptr + (i_n * T * H + i_h) * K + o_k
    p_w = w_ptr + (i_n * T * H + i_h) * K + o_k
    p_v = v_ptr + (i_n * T * H + i_h) * V + o_v
    p_o = o_ptr + (i_n * T * H + i_h) * V + o_v
    b_u = tl.load(u_ptr + i_h * K + o_k).to(tl.float32)
    b_h = tl.zeros([K, BV], dtype=tl.float32)
    for _ in range(0, T):
        b_r = tl.load(p_r).to(tl.float32) * scale
        b_k = tl.load(p_k).to(tl.float32)
        b_v = tl.load(p_v).to(tl.float32)
        b_w = tl.load(p_w).to(tl.float32)
        b_kv = b_k[:, None] * b_v[None, :]
        b_o = tl.sum((b_h + b_kv * b_u[:, None]) * b_r[:, None], 0)
        b_h = b_h * tl.exp(b_w)[:, None] + b_kv
        tl.store(p_o, b_o.to(p_o.dtype.element_ty))
        p_r += H * K
        p_k += H * K
        p_w += H * K
        p_v += H * V
        p_o += H * V
    tl.store(ht_ptr + (i_nh * K + o_k[:, None]) * V + o_v[None, :], b_h)


def _():
    B, T, H = 8, 512, 32
    x = [B, T, H, 64]
    case(B3, "wkv6_recurrent", "RWKV-6 recurrence: [64, 32] state, outer product and reduction over keys each step",
         [2, B * H], [P("r_ptr", "bf16", x, randn(1)), P("k_ptr", "bf16", x, randn(2, 0.3)), P("v_ptr", "bf16", x, randn(3)),
                      P("w_ptr", "f32", x, uniform(4, -1.0, -0.02)), P("u_ptr", "f32", [H, 64], randn(5, 0.3)),
                      O("o_ptr", "bf16", x), O("ht_ptr", "f32", [B, H, 64, 64]), I("T", T), I("H", H), F("scale", 0.125)],
         "o_ptr ht_ptr", dict(K=64, V=64, BV=32), 1, 1, rtol=1.6e-2, atol=1e-2)


_()


@triton.jit
def gated_delta_recurrent(q_ptr, k_ptr, v_ptr, g_ptr, beta_ptr, o_ptr, h0_ptr, ht_ptr, idx_ptr, T, H, scale,
                          K: tl.constexpr, V: tl.constexpr, BV: tl.constexpr):
    i_v, i_nh = tl.program_id(0), tl.program_id(1)
    i_n, i_h = i_nh // H, i_nh % H
    o_k = tl.arange(0, K)
    o_v = i_v * BV + tl.arange(0, BV)
    slot = tl.load(idx_ptr + i_n).to(tl.int64)
    b_h = tl.load(h0_ptr + ((slot * H + i_h) * K + o_k[:, None]) * V + o_v[None, :]).to(tl.float32)
    for t in range(0, T):
        at = (i_n * T + t) * H + i_h
        b_q = tl.load(q_ptr + at * K + o_k).to(tl.float32)
        b_k = tl.load(k_ptr + at * K + o_k).to(tl.float32)
        b_v = tl.load(v_ptr + at * V + o_v).to(tl.float32)
        b_g = tl.load(g_ptr + at)
        b_beta = tl.load(beta_ptr + at).to(tl.float32)
        b_q = b_q / tl.sqrt(tl.sum(b_q * b_q) + 1e-6) * scale
        b_k = b_k / tl.sqrt(tl.sum(b_k * b_k) + 1e-6)
        b_h *= tl.exp(b_g)
        b_v -= tl.sum(b_h * b_k[:, None], 0)
        b_v *= b_beta
        b_h += b_k[:, None] * b_v[None, :]
        b_o = tl.sum(b_h * b_q[:, None], 0)
        tl.store(o_ptr + at * V + o_v, b_o.to(o_ptr.dtype.element_ty))
    tl.store(ht_ptr + ((slot * H + i_h) * K + o_k[:, None]) * V + o_v[None, :], b_h.to(ht_ptr.dtype.element_ty))


def _():
    N, T, H = 64, 4, 32
    case(B3, "gated_delta_recurrent", "delta rule decode, [128, 32] state from a slot index, l2-normed q and k, T 4",
         [4, N * H], [P("q_ptr", "bf16", [N, T, H, 128], randn(1)), P("k_ptr", "bf16", [N, T, H, 128], randn(2)),
                      P("v_ptr", "bf16", [N, T, H, 128], randn(3)), P("g_ptr", "f32", [N, T, H], uniform(4, -1.0, 0.0)),
                      P("beta_ptr", "bf16", [N, T, H], uniform(5)), O("o_ptr", "bf16", [N, T, H, 128]),
                      P("h0_ptr", "f32", [N, H, 128, 128], randn(6)), O("ht_ptr", "f32", [N, H, 128, 128]),
                      P("idx_ptr", "i32", N, arange(3, 5, N)), I("T", T), I("H", H), F("scale", 128**-0.5)],
         "o_ptr ht_ptr", dict(K=128, V=128, BV=32), 4, 3, rtol=1.6e-2, atol=1e-2)


_()


@triton.jit
def group_query_scores(q_ptr, k_ptr, s_ptr, S, stride_kb, stride_ks, scale, G: tl.constexpr, D: tl.constexpr,
                       BS: tl.constexpr):
    # decode scores without dots: [G, BS, D] of q[:, None, :] * k[None, :, :] summed over D
    b = tl.program_id(1)
    s = tl.program_id(0) * BS + tl.arange(0, BS)
    g = tl.arange(0, G)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + (b * G + g[:, None]) * D + d[None, :])
    k = tl.load(k_ptr + b * stride_kb + s[:, None] * stride_ks + d[None, :], mask=s[:, None] < S, other=0.0)
    p = tl.sum(q[:, None, :].to(tl.float32) * k[None, :, :].to(tl.float32), axis=2) * scale
    tl.store(s_ptr + (b * G + g[:, None]) * S + s[None, :], p, mask=(s[None, :] < S) & (g[:, None] < G))


def _():
    B, G, D, S = 256, 4, 128, 2000
    case(B3, "group_query_scores", "[4, 32, 128] q[:, None, :] * k[None] reduced over the last axis, decode scores f16",
         [cdiv(S, 32), B], [P("q_ptr", "f16", [B, G, D], randn(1)), P("k_ptr", "f16", [B, S, D], randn(2)),
                            O("s_ptr", "f32", [B, G, S]), I("S", S), I("stride_kb", S * D), I("stride_ks", D),
                            F("scale", D**-0.5)], "s_ptr", dict(G=G, D=D, BS=32), 4, 2, fl=2 * B * G * S * D, rtol=2e-3,
         atol=2e-3)


_()


@triton.jit
def chunk_cumsum_head_first(s_ptr, o_ptr, T, H, scale, B_T: tl.constexpr, BS: tl.constexpr, S: tl.constexpr,
                            REVERSE: tl.constexpr):
    # local cumsum of vector gates, the time axis strided by heads
    i_s, i_t, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    o_t = i_t * B_T + tl.arange(0, B_T)
    o_s = i_s * BS + tl.arange(0, BS)
    mask = (o_t < T)[:, None] & (o_s < S)[None, :]
    p = (i_b * T * H + i_h) * S + o_t[:, None] * (H * S) + o_s[None, :]
    b_s = tl.load(s_ptr + p, mask=mask, other=0.0).to(tl.float32)
    if REVERSE:
        b_o = tl.cumsum(b_s, axis=0, reverse=True)
    else:
        b_o = tl.cumsum(b_s, axis=0)
    b_o *= scale
    tl.store(o_ptr + p, b_o.to(o_ptr.dtype.element_ty), mask=mask)


def _():
    B, T, H, S = 4, 4000, 16, 128
    case(SC, "chunk_cumsum_head_first", "reverse cumsum along axis 0 of [64, 32], time strided by heads, bf16 to f32",
         [S // 32, cdiv(T, 64), B * H], [P("s_ptr", "bf16", [B, T, H, S], uniform(1, -1.0, 0.0)),
                                         O("o_ptr", "f32", [B, T, H, S]), I("T", T), I("H", H), F("scale", 1.4426950216)],
         "o_ptr", dict(B_T=64, BS=32, S=S, REVERSE=True), 2, 1, atol=1e-2)


_()


@triton.jit
def cumsum_rows_carry(x_ptr, y_ptr, rows, cols, stride, BR: tl.constexpr, BC: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    carry = tl.zeros((BR, ), dtype=tl.float32)
    for c0 in range(0, cols, BC):
        c = c0 + tl.arange(0, BC)
        live = (r[:, None] < rows) & (c[None, :] < cols)
        x = tl.load(x_ptr + r[:, None] * stride + c[None, :], mask=live, other=0.0).to(tl.float32)
        y = tl.cumsum(x, axis=1) + carry[:, None]
        carry += tl.sum(x, axis=1)
        tl.store(y_ptr + r[:, None] * stride + c[None, :], y, mask=live)


def _():
    R, C = 8191, 3000
    case(SC, "cumsum_rows_carry", "cumsum along axis 1 of [8, 256] in a loop with a carry, f16 to f32, 3000 columns",
         [cdiv(R, 8)], [P("x_ptr", "f16", [R, C], randn(1)), O("y_ptr", "f32", [R, C]), I("rows", R), I("cols", C),
                        I("stride", C)], "y_ptr", dict(BR=8, BC=256), 4, 2, atol=1e-2)


_()


@triton.jit
def _log_add(a, b):
    m = tl.maximum(a, b)
    return m + tl.log(tl.exp(a - m) + tl.exp(b - m))


@triton.jit
def logcumsumexp_rows(x_ptr, y_ptr, cols, BC: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BC)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=-float("inf")).to(tl.float32)
    x = tl.where(c < cols, x, -1e30)
    y = tl.associative_scan(x, 0, _log_add)
    tl.store(y_ptr + row * cols + c, y.to(y_ptr.dtype.element_ty), mask=c < cols)


def _():
    R, C = 16384, 1000
    case(SC, "logcumsumexp_rows", "associative scan with log-add-exp along a row of 1000 (block 1024), bf16", [R],
         [P("x_ptr", "bf16", [R, C], randn(1)), O("y_ptr", "bf16", [R, C]), I("cols", C)], "y_ptr", dict(BC=1024), 8, 1,
         rtol=1.6e-2, atol=1e-2)


_()


@triton.jit
def _affine(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def gated_scan_time(a_ptr, x_ptr, h_ptr, T, D, BT: tl.constexpr, BD: tl.constexpr):
    # h[t] = a[t] * h[t-1] + x[t]: associative scan along axis 0 of a tile, tiles in a loop with a carry
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    b = tl.program_id(1)
    last = tl.zeros((BD, ), dtype=tl.float32)
    rows = tl.arange(0, BT)
    for t0 in range(0, T, BT):
        t = t0 + rows
        live = (t[:, None] < T) & (d[None, :] < D)
        at = (b * T + t[:, None]) * D + d[None, :]
        a = tl.sigmoid(tl.load(a_ptr + at, mask=live, other=0.0).to(tl.float32))
        x = tl.load(x_ptr + at, mask=live, other=0.0).to(tl.float32) * (1.0 - a)
        pa, pb = tl.associative_scan((a, x), 0, _affine)
        h = pa * last[None, :] + pb
        last = tl.sum(tl.where(rows[:, None] == BT - 1, h, 0.0), axis=0)
        tl.store(h_ptr + at, h.to(h_ptr.dtype.element_ty), mask=live)


@triton.jit
def gated_scan_time_bwd(a_ptr, h_ptr, dh_ptr, da_ptr, dx_ptr, T, D, BT: tl.constexpr, BD: tl.constexpr):
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    b = tl.program_id(1)
    carry = tl.zeros((BD, ), dtype=tl.float32)
    rows = tl.arange(0, BT)
    for chunk in range(tl.cdiv(T, BT) - 1, -1, -1):
        t = chunk * BT + rows
        live = (t[:, None] < T) & (d[None, :] < D)
        at = (b * T + t[:, None]) * D + d[None, :]
        a_next = tl.load(a_ptr + at + D, mask=(t[:, None] + 1 < T) & (d[None, :] < D), other=0.0).to(tl.float32)
        g = tl.load(dh_ptr + at, mask=live, other=0.0).to(tl.float32)
        h_prev = tl.load(h_ptr + at - D, mask=live & (t[:, None] > 0), other=0.0).to(tl.float32)
        pa, pb = tl.associative_scan((a_next, g), 0, _affine, reverse=True)
        dx = pa * carry[None, :] + pb
        carry = tl.sum(tl.where(rows[:, None] == 0, dx, 0.0), axis=0)
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=live)
        tl.store(da_ptr + at, (dx * h_prev).to(da_ptr.dtype.element_ty), mask=live)


def _():
    B, T, D = 8, 2048, 2048
    case(SC, "gated_scan_time", "(a, b) associative scan along axis 0 of [64, 32] with a carry over time, bf16",
         [D // 32, B], [P("a_ptr", "bf16", [B, T, D], randn(1)), P("x_ptr", "bf16", [B, T, D], randn(2)),
                        O("h_ptr", "bf16", [B, T, D]), I("T", T), I("D", D)], "h_ptr", dict(BT=64, BD=32), 4, 2,
         rtol=1.6e-2, atol=1e-2)
    case(SC, "gated_scan_time_bwd", "reverse associative scan along axis 0, shifted loads, loop from the end, f16",
         [D // 64, B], [P("a_ptr", "f16", [B, T, D], uniform(1, 0.2, 0.95)), P("h_ptr", "f16", [B, T, D], randn(2)),
                        P("dh_ptr", "f16", [B, T, D], randn(3)), O("da_ptr", "f16", [B, T, D]),
                        O("dx_ptr", "f16", [B, T, D]), I("T", T), I("D", D)], "da_ptr dx_ptr", dict(BT=32, BD=64), 4, 2,
         rtol=5e-3, atol=1e-2)


_()


@triton.jit
def _seg_add(v1, f1, v2, f2):
    return tl.where(f2 != 0, v2, v1 + v2), f1 | f2


@triton.jit
def segmented_cumsum(x_ptr, id_ptr, y_ptr, cols, BR: tl.constexpr, BC: tl.constexpr):
    # restarts where the id differs from the previous column's
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = tl.arange(0, BC)
    live = c[None, :] < cols
    at = r[:, None] * cols + c[None, :]
    x = tl.load(x_ptr + at, mask=live, other=0.0)
    now = tl.load(id_ptr + at, mask=live, other=-1)
    before = tl.load(id_ptr + at - 1, mask=live & (c[None, :] > 0), other=-1)
    flag = (now != before).to(tl.int32)
    y, _ = tl.associative_scan((x, flag), 1, _seg_add)
    tl.store(y_ptr + at, y, mask=live)


def _():
    R, C = 32768, 500
    case(SC, "segmented_cumsum", "scan of (value, flag) along axis 1, [4, 512], ids of 3 kinds, f32", [R // 4],
         [P("x_ptr", "f32", [R, C], randn(1)), P("id_ptr", "i32", [R, C], randint(2, 0, 3)), O("y_ptr", "f32", [R, C]),
          I("cols", C)], "y_ptr", dict(BR=4, BC=512), 4, 1)


_()


@triton.jit
def _later_max(v1, i1, v2, i2):
    take = v2 >= v1
    return tl.where(take, v2, v1), tl.where(take, i2, i1)


@triton.jit
def cummax_with_index(x_ptr, v_ptr, i_ptr, N, stride_x, BN: tl.constexpr, BC: tl.constexpr, C):
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    n = tl.arange(0, BN)
    b = tl.program_id(1)
    live = (n[:, None] < N) & (c[None, :] < C)
    x = tl.load(x_ptr + (b * N + n[:, None]) * stride_x + c[None, :], mask=live, other=-float("inf"))
    idx = tl.broadcast_to(n[:, None], (BN, BC)).to(tl.int64)
    v, i = tl.associative_scan((x, idx), 0, _later_max)
    tl.store(v_ptr + (b * N + n[:, None]) * stride_x + c[None, :], v, mask=live)
    tl.store(i_ptr + (b * N + n[:, None]) * stride_x + c[None, :], i, mask=live)


def _():
    B, N, C = 128, 200, 512
    case(SC, "cummax_with_index", "cumulative maximum with i64 index along axis 0 of [256, 16], f32", [C // 16, B],
         [P("x_ptr", "f32", [B, N, C], randn(1)), O("v_ptr", "f32", [B, N, C]), O("i_ptr", "i64", [B, N, C]), I("N", N),
          I("stride_x", C), I("C", C)], "v_ptr i_ptr", dict(BN=256, BC=16), 4, 1)


_()


@triton.jit
def compact_rows(x_ptr, keep_ptr, out_ptr, count_ptr, cols, BC: tl.constexpr):
    # stream compaction of a row: cumsum of the mask gives the places
    row = tl.program_id(0)
    c = tl.arange(0, BC)
    keep = tl.load(keep_ptr + row * cols + c, mask=c < cols, other=0)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=0)
    on = (keep > 0).to(tl.int32)
    place = tl.cumsum(on, 0) - 1
    tl.store(out_ptr + row * cols + place, x, mask=(keep > 0) & (c < cols))
    tl.store(count_ptr + row, tl.sum(on, 0))


def _():
    R, C = 8192, 2000
    case(SC, "compact_rows", "mask cumsum then scatter of the kept elements of a row, i32", [R],
         [P("x_ptr", "i32", [R, C], randint(1, 0, 50000)), P("keep_ptr", "i8", [R, C], randint(2, 0, 2)),
          O("out_ptr", "i32", [R, C]), O("count_ptr", "i32", R), I("cols", C)], "out_ptr count_ptr", dict(BC=2048), 8, 1,
         rtol=0, atol=0)


_()
