"""Norms, softmaxes, losses; Inductor-style code."""
import triton
import triton.language as tl
from triton.language.extra import libdevice

from common import *

NO = "norms and softmaxes"
LO = "losses"
IN = "Inductor-style"


@triton.jit
def rms_norm_bwd_rows(dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, dw_ptr, stride, n_rows, n_cols, rows_per_program,
                      BLOCK: tl.constexpr):
    # every program takes a run of rows and writes one partial row of weight gradients
    pid = tl.program_id(0).to(tl.int64)
    start = pid * rows_per_program
    end = min((pid + 1) * rows_per_program, n_rows)
    c = tl.arange(0, BLOCK)
    mask = c < n_cols
    w = tl.load(w_ptr + c, mask=mask, other=0.0)
    dw = tl.zeros((BLOCK, ), dtype=tl.float32)
    for row in range(start, end):
        dy = tl.load(dy_ptr + row * stride + c, mask=mask, other=0.0)
        x = tl.load(x_ptr + row * stride + c, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        m = (dy * w).to(tl.float32)
        dx = rstd * m
        dx += rstd * (-(1 / n_cols) * rstd * rstd * tl.sum(m * x, axis=0) * x)
        dw += dy * (x * rstd).to(dy.dtype)
        tl.store(dx_ptr + row * stride + c, dx.to(dx_ptr.dtype.element_ty), mask=mask)
    tl.store(dw_ptr + pid * n_cols + c, dw, mask=mask)


@triton.jit
def sum_partial_rows(part_ptr, out_ptr, P_, N, BM: tl.constexpr, BN: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, P_, BM):
        m = i + tl.arange(0, BM)
        acc += tl.load(part_ptr + m[:, None] * N + n[None, :], mask=(m[:, None] < P_) & (n[None, :] < N), other=0.0)
    tl.store(out_ptr + n, tl.sum(acc, axis=0).to(out_ptr.dtype.element_ty), mask=n < N)


def _():
    R, C, NP = 8192, 5120, 132 * 2
    per = cdiv(R, NP)
    case(NO, "rms_norm_bwd_rows", "RMS norm backward, run of rows per program, partial dw rows, 5120 columns (block 8192), bf16", [NP],
         [P("dy_ptr", "bf16", [R, C], randn(1)), P("x_ptr", "bf16", [R, C], randn(2)), P("w_ptr", "bf16", C, randn(3)),
          P("rstd_ptr", "f32", R, uniform(4, 0.5, 1.5)), O("dx_ptr", "bf16", [R, C]), O("dw_ptr", "f32", [NP, C]),
          I("stride", C), I("n_rows", R), I("n_cols", C), I("rows_per_program", per)], "dx_ptr dw_ptr", dict(BLOCK=8192), 16, 3,
         rtol=1.6e-2, atol=5e-2)
    case(NO, "sum_partial_rows", "second stage of weight gradients: [32, 64] accumulator over rows, then sum along axis 0", [cdiv(20000, 64)],
         [P("part_ptr", "f32", [1056, 20000], randn(1)), O("out_ptr", "bf16", 20000), I("P_", 1056), I("N", 20000)], "out_ptr",
         dict(BM=32, BN=64), 8, 3, rtol=1.6e-2, atol=2e-2)


_()


@triton.jit
def add_layer_norm(x_ptr, r_ptr, w_ptr, b_ptr, y_ptr, rout_ptr, mean_ptr, rstd_ptr, stride, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    mask = c < N
    x = tl.load(x_ptr + row * stride + c, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(r_ptr + row * stride + c, mask=mask, other=0.0)
    tl.store(rout_ptr + row * stride + c, x, mask=mask)
    mean = tl.sum(x, axis=0) / N
    d = tl.where(mask, x - mean, 0.0)
    var = tl.sum(d * d, axis=0) / N
    rstd = 1 / tl.sqrt(var + eps)
    w = tl.load(w_ptr + c, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + c, mask=mask).to(tl.float32)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    tl.store(y_ptr + row * stride + c, d * rstd * w + b, mask=mask)


@triton.jit
def gated_group_rms_norm(x_ptr, z_ptr, w_ptr, y_ptr, rstd_ptr, stride, M, eps, G: tl.constexpr, BM: tl.constexpr,
                         BN: tl.constexpr):
    # norm within groups of G columns (padded to BN), gate inside the norm
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    g = tl.program_id(1)
    c = tl.arange(0, BN)
    live = (m[:, None] < M) & (c[None, :] < G)
    at = m[:, None] * stride + g * G + c[None, :]
    x = tl.load(x_ptr + at, mask=live, other=0.0).to(tl.float32)
    z = tl.load(z_ptr + at, mask=live, other=0.0).to(tl.float32)
    x *= z * tl.sigmoid(z)
    rstd = tl.rsqrt(tl.sum(x * x, axis=1) / G + eps)
    w = tl.load(w_ptr + g * G + c, mask=c < G, other=0.0).to(tl.float32)
    tl.store(y_ptr + at, (x * rstd[:, None] * w[None, :]).to(y_ptr.dtype.element_ty), mask=live)
    tl.store(rstd_ptr + g * M + m, rstd, mask=m < M)


@triton.jit
def l2_norm_bwd(x_ptr, dy_ptr, dx_ptr, eps, T, D: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr):
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    d = tl.arange(0, BD)
    live = (t < T)[:, None] & (d < D)[None, :]
    at = t[:, None] * D + d[None, :]
    x = tl.load(x_ptr + at, mask=live, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + at, mask=live, other=0.0).to(tl.float32)
    r = 1 / tl.sqrt(tl.sum(x * x, 1) + eps)
    y = x * r[:, None]
    dx = (dy - tl.sum(dy * y, 1)[:, None] * y) * r[:, None]
    tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=live)


def _():
    R, C = 20000, 1000
    case(NO, "add_layer_norm", "residual add and layer norm, rows of 1000 (block 1024), f16 in, f32 residual", [R],
         [P("x_ptr", "f16", [R, C], randn(1)), P("r_ptr", "f32", [R, C], randn(2)), P("w_ptr", "f16", C, randn(3)),
          P("b_ptr", "f16", C, randn(4)), O("y_ptr", "f16", [R, C]), O("rout_ptr", "f32", [R, C]), O("mean_ptr", "f32", R),
          O("rstd_ptr", "f32", R), I("stride", C), I("N", C), F("eps", 1e-5)], "y_ptr rout_ptr mean_ptr rstd_ptr", dict(BLOCK=1024), 4, 1,
         rtol=5e-3, atol=5e-3)
    M, G, NG = 8192, 96, 48
    case(NO, "gated_group_rms_norm", "gated RMS norm over groups of 96 (padded to 128), tile [32, 128], bf16", [M // 32, NG],
         [P("x_ptr", "bf16", [M, NG * G], randn(1)), P("z_ptr", "bf16", [M, NG * G], randn(2)), P("w_ptr", "f32", NG * G, randn(3)),
          O("y_ptr", "bf16", [M, NG * G]), O("rstd_ptr", "f32", [NG, M]), I("stride", NG * G), I("M", M), F("eps", 1e-5)],
         "y_ptr rstd_ptr", dict(G=G, BM=32, BN=128), 4, 1, rtol=1.6e-2, atol=2e-2)
    T, D = 262144, 80
    case(NO, "l2_norm_bwd", "l2 norm backward over heads of 80 (padded to 128), tile [16, 128], bf16", [T // 16],
         [P("x_ptr", "bf16", [T, D], randn(1)), P("dy_ptr", "bf16", [T, D], randn(2)), O("dx_ptr", "bf16", [T, D]),
          F("eps", 1e-6), I("T", T)], "dx_ptr", dict(D=D, BT=16, BD=128), 2, 1, rtol=1.6e-2, atol=1e-2)


_()


@triton.jit
def group_norm_nchw(x_ptr, w_ptr, b_ptr, y_ptr, mean_ptr, rstd_ptr, HW, C, eps, CG: tl.constexpr, BLOCK: tl.constexpr):
    # one program per sample and group: the group's channels are contiguous; two passes
    n = tl.program_id(0)
    g = tl.program_id(1)
    size = CG * HW
    base = (n * C + g * CG).to(tl.int64) * HW
    o = tl.arange(0, BLOCK)
    s1 = tl.zeros((BLOCK, ), dtype=tl.float32)
    s2 = tl.zeros((BLOCK, ), dtype=tl.float32)
    for i in range(0, size, BLOCK):
        x = tl.load(x_ptr + base + i + o, mask=i + o < size, other=0.0).to(tl.float32)
        s1 += x
        s2 += x * x
    mean = tl.sum(s1, axis=0) / size
    rstd = tl.rsqrt(tl.sum(s2, axis=0) / size - mean * mean + eps)
    tl.store(mean_ptr + n * tl.num_programs(1) + g, mean)
    tl.store(rstd_ptr + n * tl.num_programs(1) + g, rstd)
    for ch in range(0, CG):
        w = tl.load(w_ptr + g * CG + ch).to(tl.float32) * rstd
        b = tl.load(b_ptr + g * CG + ch).to(tl.float32)
        for i in range(0, HW, BLOCK):
            at = base + ch * HW + i + o
            x = tl.load(x_ptr + at, mask=i + o < HW, other=0.0).to(tl.float32)
            y = (x - mean) * w + b
            y = y * tl.sigmoid(y)
            tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=i + o < HW)


@triton.jit
def _chan(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    d = mean_b - mean_a
    f = tl.where(n == 0.0, 0.0, n_b / n)
    return mean_a + d * f, m2_a + m2_b + d * d * n_a * f, n


@triton.jit
def batch_norm_stats(x_ptr, mean_ptr, var_ptr, run_mean_ptr, N, C, momentum, BN: tl.constexpr, BC: tl.constexpr):
    # statistics along the outer dimension: lane-wise Welford in the loop, combined along axis 0
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    mean = tl.zeros((BN, BC), dtype=tl.float32)
    m2 = tl.zeros((BN, BC), dtype=tl.float32)
    cnt = tl.zeros((BN, BC), dtype=tl.float32)
    for i in range(0, N, BN):
        n = i + tl.arange(0, BN)
        live = (n[:, None] < N) & (c[None, :] < C)
        x = tl.load(x_ptr + n[:, None] * C + c[None, :], mask=live, other=0.0).to(tl.float32)
        new = cnt + 1.0
        d = x - mean
        upd = mean + d / new
        m2 = tl.where(live, m2 + d * (x - upd), m2)
        mean = tl.where(live, upd, mean)
        cnt = tl.where(live, new, cnt)
    mean1, m21, cnt1 = tl.reduce((mean, m2, cnt), 0, _chan)
    tl.store(mean_ptr + c, mean1, mask=c < C)
    tl.store(var_ptr + c, m21 / cnt1, mask=c < C)
    old = tl.load(run_mean_ptr + c, mask=c < C)
    tl.store(run_mean_ptr + c, old * (1 - momentum) + mean1 * momentum, mask=c < C)


@triton.jit
def instance_norm_bwd(dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr, C, HW, BC: tl.constexpr,
                      BLOCK: tl.constexpr):
    # [channels, pixels] tiles, two reductions along axis 1 in a first loop, gradients in a second, atomics for weights
    n = tl.program_id(1)
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    cm = c < C
    mean = tl.load(mean_ptr + n * C + c, mask=cm, other=0.0)
    rstd = tl.load(rstd_ptr + n * C + c, mask=cm, other=0.0)
    w = tl.load(w_ptr + c, mask=cm, other=0.0)
    s1 = tl.zeros((BC, BLOCK), dtype=tl.float32)
    s2 = tl.zeros((BC, BLOCK), dtype=tl.float32)
    row = (n * C + c)[:, None] * HW
    for i in range(0, HW, BLOCK):
        p = i + tl.arange(0, BLOCK)[None, :]
        live = cm[:, None] & (p < HW)
        dy = tl.load(dy_ptr + row + p, mask=live, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + row + p, mask=live, other=0.0).to(tl.float32)
        xh = (x - mean[:, None]) * rstd[:, None]
        s1 += dy
        s2 += tl.where(live, dy * xh, 0.0)
    db = tl.sum(s1, axis=1)
    dw = tl.sum(s2, axis=1)
    tl.atomic_add(dw_ptr + c, dw, mask=cm)
    tl.atomic_add(db_ptr + c, db, mask=cm)
    for i in range(0, HW, BLOCK):
        p = i + tl.arange(0, BLOCK)[None, :]
        live = cm[:, None] & (p < HW)
        dy = tl.load(dy_ptr + row + p, mask=live, other=0.0, eviction_policy="evict_first").to(tl.float32)
        x = tl.load(x_ptr + row + p, mask=live, other=0.0, eviction_policy="evict_first").to(tl.float32)
        xh = (x - mean[:, None]) * rstd[:, None]
        dx = (dy - (db[:, None] + xh * dw[:, None]) / HW) * (w * rstd)[:, None]
        tl.store(dx_ptr + row + p, dx, mask=live)


@triton.jit
def softmax_middle_axis(x_ptr, y_ptr, R, C, BR: tl.constexpr, BC: tl.constexpr):
    b = tl.program_id(1)
    r = tl.arange(0, BR)
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    live = (r[:, None] < R) & (c[None, :] < C)
    at = (b * R + r[:, None]) * C + c[None, :]
    x = tl.load(x_ptr + at, mask=live, other=-float("inf")).to(tl.float32)
    x = x - tl.max(x, axis=0)[None, :]
    p = tl.exp(x)
    y = p / tl.sum(p, axis=0)[None, :]
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=live)


@triton.jit
def log_softmax_online(x_ptr, y_ptr, lse_ptr, V, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    m = -float("inf")
    d = 0.0
    for i in range(0, V, BLOCK):
        x = tl.load(x_ptr + row * V + i + c, mask=i + c < V, other=-float("inf")).to(tl.float32)
        mn = tl.maximum(m, tl.max(x, axis=0))
        d = d * tl.exp(m - mn) + tl.sum(tl.exp(x - mn), axis=0)
        m = mn
    lse = m + tl.log(d)
    tl.store(lse_ptr + row, lse)
    for i in range(0, V, BLOCK):
        x = tl.load(x_ptr + row * V + i + c, mask=i + c < V, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * V + i + c, (x - lse).to(y_ptr.dtype.element_ty), mask=i + c < V)


@triton.jit
def sparsemax_rows(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + c, mask=c < N, other=-float("inf")).to(tl.float32)
    z = tl.sort(x, descending=True)
    z0 = tl.where(c < N, z, 0.0)
    cs = tl.cumsum(z0, axis=0)
    support = (1.0 + (c + 1) * z > cs) & (c < N)
    k = tl.sum(support.to(tl.int32), axis=0)
    tau = (tl.sum(tl.where(support, z0, 0.0), axis=0) - 1.0) / k.to(tl.float32)
    tl.store(y_ptr + row * N + c, tl.maximum(x - tau, 0.0), mask=c < N)


def _():
    N, C, HW, CG = 16, 512, 1600, 16
    case(NO, "group_norm_nchw", "group norm NCHW with silu, two passes, inner loop per channel of 1600 pixels, bf16", [N * 4, C // CG],
         [P("x_ptr", "bf16", [N * 4, C, HW], randn(1)), P("w_ptr", "bf16", C, randn(2)), P("b_ptr", "bf16", C, randn(3)),
          O("y_ptr", "bf16", [N * 4, C, HW]), O("mean_ptr", "f32", [N * 4, C // CG]), O("rstd_ptr", "f32", [N * 4, C // CG]),
          I("HW", HW), I("C", C), F("eps", 1e-5)], "y_ptr mean_ptr rstd_ptr", dict(CG=CG, BLOCK=2048), 8, 2, rtol=1.6e-2, atol=2e-2)
    N, C = 60000, 1000
    case(NO, "batch_norm_stats", "Welford along the outer dimension, three [64, 16] accumulators, tl.reduce of tuples on axis 0",
         [cdiv(C, 16)], [P("x_ptr", "f16", [N // 2, C], randn(1)), O("mean_ptr", "f32", C), O("var_ptr", "f32", C),
                         P("run_mean_ptr", "f32", C, randn(2)), I("N", N // 2), I("C", C), F("momentum", 0.1)], "mean_ptr var_ptr",
         dict(BN=64, BC=16), 4, 3)
    N, C, HW = 64, 192, 3136
    case(NO, "instance_norm_bwd", "[4, 512] tiles, reductions along axis 1 over a loop, atomics, second loop, f16", [C // 4, N],
         [P("dy_ptr", "f16", [N, C, HW], randn(1)), P("x_ptr", "f16", [N, C, HW], randn(2)), P("w_ptr", "f32", C, randn(3)),
          P("mean_ptr", "f32", [N, C], randn(4, 0.1)), P("rstd_ptr", "f32", [N, C], uniform(5, 0.8, 1.2)),
          O("dx_ptr", "f16", [N, C, HW]), O("dw_ptr", "f32", C), O("db_ptr", "f32", C), I("C", C), I("HW", HW)],
         "dx_ptr dw_ptr db_ptr", dict(BC=4, BLOCK=512), 4, 2, nb=10 * N * C * HW, rtol=5e-3, atol=2e-2)
    B, R, C = 256, 100, 1536
    case(NO, "softmax_middle_axis", "softmax over the middle axis: [128, 64] reduced along axis 0, 100 rows, bf16", [C // 64, B],
         [P("x_ptr", "bf16", [B, R, C], randn(1)), O("y_ptr", "bf16", [B, R, C]), I("R", R), I("C", C)], "y_ptr",
         dict(BR=128, BC=64), 4, 1, rtol=1.6e-2, atol=1e-4)
    R, V = 1024, 50257
    case(NO, "log_softmax_online", "online log-softmax with scalar carries, 50257 columns (rows unaligned), two loops, bf16", [R],
         [P("x_ptr", "bf16", [R, V], randn(1, 2.0)), O("y_ptr", "bf16", [R, V]), O("lse_ptr", "f32", R), I("V", V)], "y_ptr lse_ptr",
         dict(BLOCK=8192), 16, 2, nb=6 * R * V, rtol=1.6e-2, atol=1e-2)
    R, N = 32768, 500
    case(NO, "sparsemax_rows", "sparsemax: sort descending, cumsum, support count, rows of 500 (block 512), f32", [R],
         [P("x_ptr", "f32", [R, N], randn(1)), O("y_ptr", "f32", [R, N]), I("N", N)], "y_ptr", dict(BLOCK=512), 2, 1, rtol=1e-3, atol=1e-3)


_()


@triton.jit
def cross_entropy_split(logit_ptr, label_ptr, loss_part_ptr, lse_part_ptr, stride, V, smoothing, scale, BLOCK: tl.constexpr):
    # rows too wide for a program: partial log-sum-exp per block of columns
    row = tl.program_id(0)
    blk = tl.program_id(1)
    n_rows = tl.num_programs(0)
    c = blk * BLOCK + tl.arange(0, BLOCK)
    label = tl.load(label_ptr + row)
    x = tl.load(logit_ptr + row * stride.to(tl.int64) + c, mask=c < V, other=-float("inf")).to(tl.float32) * scale
    m = tl.max(x, 0)
    lse = tl.log(tl.sum(tl.exp(x - m), 0)) + m
    tl.store(lse_part_ptr + blk * n_rows + row, lse)
    total = tl.sum(tl.where(c < V, x, 0.0), 0)
    if label == -100:
        loss = 0.0
    else:
        if label >= blk * BLOCK and label < min(V, (blk + 1) * BLOCK):
            at = tl.load(logit_ptr + row * stride.to(tl.int64) + label).to(tl.float32) * scale
            loss = -smoothing * total / V - (1 - smoothing) * at
        else:
            loss = -smoothing * total / V
    tl.store(loss_part_ptr + blk * n_rows + row, loss)


@triton.jit
def cross_entropy_bwd(dx_ptr, dloss_ptr, x_ptr, lse_ptr, label_ptr, stride, V, smoothing, lse_square, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    label = tl.load(label_ptr + row)
    if label != -100:
        dloss = tl.load(dloss_ptr + row)
    else:
        dloss = 0.0
    x = tl.load(x_ptr + row * stride + c, mask=c < V, other=-float("inf")).to(tl.float32)
    lse = tl.load(lse_ptr + row)
    p = tl.exp(x - lse)
    p += 2.0 * lse_square * lse * p
    p = tl.where(c == label, p - (1 - smoothing), p) - smoothing / V
    tl.store(dx_ptr + row * stride + c, (dloss * p).to(dx_ptr.dtype.element_ty), mask=c < V)


@triton.jit
def kl_div_rows(y_ptr, t_ptr, loss_ptr, grad_ptr, stride, n_cols, eps, LOG_TARGET: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    base = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, ), dtype=tl.float32)
    for i in range(0, n_cols, BLOCK):
        o = i + base
        mask = o < n_cols
        y = tl.load(y_ptr + row * stride + o, mask=mask, other=0.0)
        t = tl.load(t_ptr + row * stride + o, mask=mask, other=0.0)
        if LOG_TARGET:
            e = tl.exp(t)
            total += tl.where(mask, e * (t - y), 0.0)
            tl.store(grad_ptr + row * stride + o, -e, mask=mask)
        else:
            total += t * (tl.log(tl.maximum(t, eps)) - y)
            tl.store(grad_ptr + row * stride + o, -t, mask=mask)
    tl.store(loss_ptr + row, tl.sum(total, axis=0))


@triton.jit
def focal_loss_sum(x_ptr, t_ptr, out_ptr, grad_ptr, n, alpha, gamma, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = o < n
    x = tl.load(x_ptr + o, mask=mask, other=0.0).to(tl.float32)
    t = tl.load(t_ptr + o, mask=mask, other=0).to(tl.float32)
    p = tl.sigmoid(x)
    ce = tl.maximum(x, 0.0) - x * t + libdevice.log1p(tl.exp(-tl.abs(x)))
    pt = p * t + (1 - p) * (1 - t)
    at = alpha * t + (1 - alpha) * (1 - t)
    mod = libdevice.pow(1 - pt, gamma)
    loss = tl.where(mask, at * mod * ce, 0.0)
    tl.store(grad_ptr + o, (at * mod * (p - t)).to(grad_ptr.dtype.element_ty), mask=mask)
    tl.atomic_add(out_ptr, tl.sum(loss, axis=0) / n)


def _():
    R, V = 512, 128000
    nb_ = cdiv(V, 16384)
    case(LO, "cross_entropy_split", "cross entropy of vocabulary-split rows: branches on the label, block 16384, bf16", [R, nb_],
         [P("logit_ptr", "bf16", [R, V], randn(1, 2.0)), P("label_ptr", "i64", R, randint(2, 0, V)),
          O("loss_part_ptr", "f32", [nb_, R]), O("lse_part_ptr", "f32", [nb_, R]), I("stride", V), I("V", V), F("smoothing", 0.1),
          F("scale", 0.7)], "loss_part_ptr lse_part_ptr", dict(BLOCK=16384), 16, 1)
    R, V = 1024, 50257
    case(LO, "cross_entropy_bwd", "gradient of smoothed cross entropy with z-loss, 2-D grid, row stride padded to 50304, bf16",
         [R, cdiv(V, 4096)], [O("dx_ptr", "bf16", [R, 50304]), P("dloss_ptr", "f32", R, uniform(1)),
                              P("x_ptr", "bf16", [R, 50304], randn(2, 2.0)), P("lse_ptr", "f32", R, uniform(3, 11.0, 13.0)),
                              P("label_ptr", "i64", R, randint(4, 0, V)), I("stride", 50304), I("V", V), F("smoothing", 0.1),
                              F("lse_square", 1e-4)], "dx_ptr", dict(BLOCK=4096), 8, 1, rtol=1.6e-2, atol=1e-4)
    R, C = 4096, 8000
    case(LO, "kl_div_rows", "KL divergence with log targets, loop over columns, loss and gradient, f32", [R],
         [P("y_ptr", "f32", [R, C], uniform(1, -12.0, -6.0)), P("t_ptr", "f32", [R, C], uniform(2, -12.0, -6.0)), O("loss_ptr", "f32", R),
          O("grad_ptr", "f32", [R, C]), I("stride", C), I("n_cols", C), F("eps", 1e-10)], "loss_ptr grad_ptr",
         dict(LOG_TARGET=True, BLOCK=2048), 8, 2)
    N = 40_000_000
    case(LO, "focal_loss_sum", "sigmoid focal loss with libdevice pow and log1p, scalar atomic sum, f16", [cdiv(N, 2048)],
         [P("x_ptr", "f16", N, randn(1, 2.0)), P("t_ptr", "i8", N, randint(2, 0, 2)), O("out_ptr", "f32", 1), O("grad_ptr", "f16", N),
          I("n", N), F("alpha", 0.25), F("gamma", 2.0)], "out_ptr grad_ptr", dict(BLOCK=2048), 8, 1, rtol=5e-3, atol=1e-3)


_()


@triton.jit
def per_fused_native_layer_norm(in_ptr0, in_ptr1, in_ptr2, out_ptr0, out_ptr2, xnumel, rnumel, XBLOCK: tl.constexpr,
                                RBLOCK: tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rindex = tl.arange(0, RBLOCK)[None, :]
    rmask = rindex < rnumel
    r1 = rindex
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (r1 + 384 * x0), rmask & xmask, other=0.0).to(tl.float32)
    tmp25 = tl.load(in_ptr1 + (r1), rmask, eviction_policy="evict_last", other=0.0)
    tmp27 = tl.load(in_ptr2 + (r1), rmask, eviction_policy="evict_last", other=0.0)
    tmp2 = tl.broadcast_to(tmp0, [XBLOCK, RBLOCK])
    tmp4 = tl.where(rmask & xmask, tmp2, 0)
    tmp7 = tl.where(rmask & xmask, tmp2, 0)
    tmp8 = tl.sum(tmp7, 1)[:, None]
    tmp9 = tl.full([XBLOCK, 1], 384, tl.int32)
    tmp10 = tmp9.to(tl.float32)
    tmp11 = tmp8 / tmp10
    tmp12 = tmp2 - tmp11
    tmp13 = tmp12 * tmp12
    tmp16 = tl.where(rmask & xmask, tmp13, 0)
    tmp17 = tl.sum(tmp16, 1)[:, None]
    tmp19 = tmp17 / 384.0
    tmp21 = tmp19 + 1e-06
    tmp22 = libdevice.rsqrt(tmp21)
    tmp24 = (tmp4 - tmp11) * tmp22
    tmp28 = tmp24 * tmp25 + tmp27
    tl.store(out_ptr2 + (r1 + 384 * x0), tmp28, rmask & xmask)
    tl.store(out_ptr0 + (x0), tmp11, xmask)


@triton.jit
def red_fused_sum_strided(in_ptr0, in_ptr1, out_ptr0, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    # bias gradient: outer reduction of [N, H, W, C] viewed through div and mod, partial over chunks
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    x0 = (xindex % 320)
    x1 = xindex // 320
    _tmp5 = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    x3 = xindex
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        rmask = rindex < rnumel
        r2 = rindex
        tmp0 = tl.load(in_ptr0 + (x0 + 320 * (((r2 + 588 * x1) // 28) % 28) + 8960 * (r2 % 28) + 250880 * ((r2 + 588 * x1) // 784)),
                       rmask & xmask, eviction_policy="evict_first", other=0.0).to(tl.float32)
        tmp2 = tl.load(in_ptr1 + (x0 + 320 * r2 + 188160 * x1), rmask & xmask, eviction_policy="evict_first", other=0.0).to(tl.float32)
        tmp3 = tmp0 * tmp2
        tmp4 = tl.broadcast_to(tmp3, [XBLOCK, RBLOCK])
        tmp6 = _tmp5 + tmp4
        _tmp5 = tl.where(rmask & xmask, tmp6, _tmp5)
    tmp5 = tl.sum(_tmp5, 1)[:, None]
    tl.store(out_ptr0 + (x3), tmp5, xmask)


@triton.jit
def poi_fused_permute_4d(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    # window partition of Swin: [B, 56, 56, C] -> [B, 8, 8, 7, 7, C], with a roll and an add
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = (xindex % 96)
    x1 = ((xindex // 96) % 7)
    x2 = ((xindex // 672) % 7)
    x3 = ((xindex // 4704) % 8)
    x4 = ((xindex // 37632) % 8)
    x5 = xindex // 301056
    x6 = xindex
    tmp0 = tl.load(in_ptr0 + (x0 + 96 * ((3 + x1 + 7 * x3) % 56) + 5376 * ((3 + x2 + 7 * x4) % 56) + 301056 * x5), xmask).to(tl.float32)
    tmp1 = tl.load(in_ptr1 + (x0), xmask, eviction_policy="evict_last").to(tl.float32)
    tmp2 = tmp0 + tmp1
    tl.store(out_ptr0 + (x6), tmp2, xmask)


@triton.jit
def poi_fused_transpose_tiles(in_ptr0, out_ptr0, ynumel, xnumel, YBLOCK: tl.constexpr, XBLOCK: tl.constexpr):
    # 2-D pointwise: NCHW to NHWC through a [XBLOCK, YBLOCK] tile, f32 to f16
    yoffset = tl.program_id(1) * YBLOCK
    yindex = yoffset + tl.arange(0, YBLOCK)[None, :]
    ymask = yindex < ynumel
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    x2 = xindex
    y0 = (yindex % 192)
    y1 = yindex // 192
    y3 = yindex
    tmp0 = tl.load(in_ptr0 + (x2 + 1225 * y3), xmask & ymask, eviction_policy="evict_last")
    tmp1 = tmp0.to(tl.float32)
    tl.store(out_ptr0 + (y0 + 192 * x2 + 235200 * y1), tmp1, xmask & ymask)


@triton.jit
def _welford(mean_1, m2_1, w_1, mean_2, m2_2, w_2):
    delta = mean_2 - mean_1
    new_weight = w_1 + w_2
    ratio = tl.where(new_weight == 0.0, 0.0, w_2 / new_weight)
    return mean_1 + delta * ratio, m2_1 + m2_2 + delta * delta * w_1 * ratio, new_weight


@triton.jit
def red_fused_var_mean(in_ptr0, out_ptr0, out_ptr1, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    x0 = (xindex % 32)
    x1 = xindex // 32
    mean = tl.zeros([XBLOCK, RBLOCK], tl.float32)
    m2 = tl.zeros([XBLOCK, RBLOCK], tl.float32)
    weight = tl.zeros([XBLOCK, RBLOCK], tl.float32)
    x4 = xindex
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        rmask = rindex < rnumel
        r2 = (rindex % 10)
        r3 = rindex // 10
        tmp0 = tl.load(in_ptr0 + (r2 + 10 * x0 + 320 * r3 + 327680 * x1), rmask & xmask, eviction_policy="evict_first", other=0.0).to(tl.float32)
        tmp1 = tl.broadcast_to(tmp0, [XBLOCK, RBLOCK])
        w_next = weight + 1
        delta = tmp1 - mean
        mean_next = mean + delta / w_next
        m2_next = m2 + delta * (tmp1 - mean_next)
        mean = tl.where(rmask & xmask, mean_next, mean)
        m2 = tl.where(rmask & xmask, m2_next, m2)
        weight = tl.where(rmask & xmask, w_next, weight)
    a, b, c = tl.reduce((mean, m2, weight), 1, _welford)
    tl.store(out_ptr0 + (x4), a[:, None], xmask)
    tmp5 = b[:, None] / 10240.0
    tl.store(out_ptr1 + (x4), libdevice.rsqrt(tmp5 + 1e-05), xmask)


@triton.jit
def _max_index(a_v, a_i, b_v, b_i):
    mask = a_v > b_v
    equal = a_v == b_v
    mask |= equal & (a_i < b_i)
    return tl.where(mask, a_v, b_v), tl.where(mask, a_i, b_i)


@triton.jit
def red_fused_argmax_amax(in_ptr0, out_ptr0, out_ptr1, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    x0 = xindex
    _v = tl.full([XBLOCK, RBLOCK], float("-inf"), tl.float32)
    _i = tl.full([XBLOCK, RBLOCK], 9223372036854775807, tl.int64)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        rmask = rindex < rnumel
        tmp0 = tl.load(in_ptr0 + (rindex + 3001 * x0), rmask & xmask, eviction_policy="evict_first", other=0.0)
        tmp1 = tl.broadcast_to(tmp0, [XBLOCK, RBLOCK])
        v_next, i_next = _max_index(_v, _i, tmp1, tl.broadcast_to(rindex, [XBLOCK, RBLOCK]).to(tl.int64))
        _v = tl.where(rmask & xmask, v_next, _v)
        _i = tl.where(rmask & xmask, i_next, _i)
    v, i = tl.reduce((_v, _i), 1, _max_index)
    tl.store(out_ptr0 + (x0), i[:, None], xmask)
    tl.store(out_ptr1 + (x0), v[:, None], xmask)


@triton.jit
def foreach_adagrad(p0, g0, s0, p1, g1, s1, p2, g2, s2, n0, n1, n2, lr, XBLOCK: tl.constexpr):
    pid = tl.program_id(0)
    b0 = tl.cdiv(n0, XBLOCK)
    b1 = b0 + tl.cdiv(n1, XBLOCK)
    if pid < b0:
        x = pid * XBLOCK + tl.arange(0, XBLOCK)
        m = x < n0
        g = tl.load(g0 + x, m)
        s = tl.load(s0 + x, m) + g * g
        tl.store(s0 + x, s, m)
        tl.store(p0 + x, tl.load(p0 + x, m) - lr * g / (libdevice.sqrt(s) + 1e-10), m)
    elif pid < b1:
        x = (pid - b0) * XBLOCK + tl.arange(0, XBLOCK)
        m = x < n1
        g = tl.load(g1 + x, m)
        s = tl.load(s1 + x, m) + g * g
        tl.store(s1 + x, s, m)
        tl.store(p1 + x, tl.load(p1 + x, m) - lr * g / (libdevice.sqrt(s) + 1e-10), m)
    else:
        x = (pid - b1) * XBLOCK + tl.arange(0, XBLOCK)
        m = x < n2
        g = tl.load(g2 + x, m).to(tl.float32)
        s = tl.load(s2 + x, m) + g * g
        tl.store(s2 + x, s, m)
        tl.store(p2 + x, (tl.load(p2 + x, m).to(tl.float32) - lr * g / (libdevice.sqrt(s) + 1e-10)).to(tl.bfloat16), m)


def _():
    X = 100000
    case(IN, "per_fused_native_layer_norm", "persistent reduction [4, 512] over 384, layer norm, bf16", [cdiv(X, 4)],
         [P("in_ptr0", "bf16", [X, 384], randn(1)), P("in_ptr1", "f32", 384, randn(2)), P("in_ptr2", "f32", 384, randn(3)),
          O("out_ptr0", "f32", X), O("out_ptr2", "bf16", [X, 384]), I("xnumel", X), I("rnumel", 384)], "out_ptr0 out_ptr2",
         dict(XBLOCK=4, RBLOCK=512), 4, 1, rtol=1.6e-2, atol=2e-2)
    NB = 128
    chunks = NB * 784 // 588
    # 588 rows a chunk = 21 image rows
    case(IN, "red_fused_sum_strided", "outer reduction, [64, 16] accumulator in an r-loop, div/mod indices, product of two inputs, bf16",
         [cdiv(320 * 170, 64)],
         [P("in_ptr0", "bf16", [NB + 1, 28, 28, 320], randn(1)), P("in_ptr1", "bf16", [chunks + 1, 588, 320], randn(2)),
          O("out_ptr0", "f32", [170, 320]), I("xnumel", 320 * 170), I("rnumel", 588)], "out_ptr0", dict(XBLOCK=64, RBLOCK=16), 4, 1,
         atol=2e-2)
    B = 96
    X = B * 56 * 56 * 96
    case(IN, "poi_fused_permute_4d", "pointwise window partition, div/mod chain over six dimensions, bf16", [cdiv(X, 1024)],
         [P("in_ptr0", "bf16", [B, 56, 56, 96], randn(1)), P("in_ptr1", "f32", 96, randn(2)), O("out_ptr0", "bf16", X), I("xnumel", X)],
         "out_ptr0", dict(XBLOCK=1024), 4, 1, rtol=1.6e-2, atol=1e-2)
    B = 128
    case(IN, "poi_fused_transpose_tiles", "2-D pointwise NCHW to NHWC, [64, 32] tile with coalesced load and strided store, f32 to f16",
         [cdiv(1225, 64), cdiv(B * 192, 32)], [P("in_ptr0", "f32", [B, 192, 1225], randn(1)), O("out_ptr0", "f16", [B, 1225, 192]),
                                               I("ynumel", B * 192), I("xnumel", 1225)], "out_ptr0", dict(YBLOCK=32, XBLOCK=64), 4, 1,
         rtol=2e-3, atol=1e-3)
    B = 64
    case(IN, "red_fused_var_mean", "looped Welford reduction [4, 512] and tl.reduce of three, group of 10 channels, f16",
         [cdiv(B * 32, 4)], [P("in_ptr0", "f16", [B, 1024, 320], randn(1)), O("out_ptr0", "f32", B * 32), O("out_ptr1", "f32", B * 32),
                             I("xnumel", B * 32), I("rnumel", 10240)], "out_ptr0 out_ptr1", dict(XBLOCK=4, RBLOCK=512), 8, 1)
    X = 10007
    case(IN, "red_fused_argmax_amax", "looped argmax with i64 indices, [2, 1024], two outputs, rows of 3001, f32", [cdiv(X, 2)],
         [P("in_ptr0", "f32", [X, 3001], randn(1)), O("out_ptr0", "i64", X), O("out_ptr1", "f32", X), I("xnumel", X), I("rnumel", 3001)],
         "out_ptr0 out_ptr1", dict(XBLOCK=2, RBLOCK=1024), 8, 1, rtol=0, atol=0)
    a, b, c = 4_000_000, 2_500_003, 3_000_000
    case(IN, "foreach_adagrad", "three tensors behind branches on the program id, f32 and bf16", [cdiv(a, 1024) + cdiv(b, 1024) + cdiv(c, 1024)],
         [P("p0", "f32", a, randn(1)), P("g0", "f32", a, randn(2)), P("s0", "f32", a, uniform(3)), P("p1", "f32", b, randn(4)),
          P("g1", "f32", b, randn(5)), P("s1", "f32", b, uniform(6)), P("p2", "bf16", c, randn(7)), P("g2", "bf16", c, randn(8)),
          P("s2", "f32", c, uniform(9)), I("n0", a), I("n1", b), I("n2", c), F("lr", 0.05)], "p0 s0 p1 s1 p2 s2", dict(XBLOCK=1024), 4, 1,
         nb=20 * (a + b) + 14 * c, rtol=1.6e-2, atol=1e-2)


_()
