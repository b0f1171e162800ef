"""Lighthouses: signals through noise and codes that repair them, tracks, risks and survival, splines, and layers that servers light up."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, viewed, zeros


@triton.jit
def checks_answer_bits(msg_ptr, edge_ptr, out_ptr, CHECKS, EDGES, alpha, DEG: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    # Normalized min-sum of a parity check code: every check sends to each bit the least of what the other bits say, with their sign.
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    word = tl.program_id(1).to(tl.int64)
    d = tl.arange(0, WIDE)
    mask = (rows < CHECKS)[:, None] & (d < DEG)[None, :]
    edge = tl.load(edge_ptr + rows[:, None] * DEG + d[None, :], mask=mask, other=0)
    msg = tl.load(msg_ptr + word * EDGES + edge, mask=mask, other=1e9)
    size = tl.abs(msg)
    negative = (msg < 0).to(tl.int32)
    least, where = tl.min(size, axis=1, return_indices=True)
    second = tl.min(tl.where(d[None, :] == where[:, None], 1e9, size), axis=1)
    parity = tl.sum(negative, axis=1)[:, None] - negative
    value = tl.where(d[None, :] == where[:, None], second[:, None], least[:, None]) * alpha
    value = tl.where(parity % 2 == 1, -value, value)
    tl.store(out_ptr + word * EDGES + edge, value, mask=mask)


@case
def lighthouse_parity_checks_answer_with_least_sums(words=96, checks=3000, deg=7):
    edges = checks * deg
    msg, edge, out = f32(words, edges), torch.randperm(edges, device="cuda").int(), zeros(words, edges, dtype="float32")
    args = msg, edge, out, checks, edges, 0.8125
    launched = run(checks_answer_bits, (cdiv(checks, 64), words), args, out, DEG=deg, WIDE=8, BLOCK=64, num_warps=4)

    def reference():
        m = msg[:, edge.long()].reshape(words, checks, deg)
        size, sign = m.abs(), torch.where(m < 0, -1.0, 1.0)
        two = size.topk(2, dim=2, largest=False)
        first = torch.arange(deg, device=m.device) == two.indices[..., :1]
        value = torch.where(first, two.values[..., 1:], two.values[..., :1]) * 0.8125 * sign * sign.prod(2, keepdim=True)
        result = torch.empty_like(msg)
        result[:, edge.long()] = value.reshape(words, edges)
        return result

    return against(launched, reference)


@triton.jit
def forward_metrics_of_trellis(sys_ptr, par_ptr, prior_ptr, alpha_ptr, N, T, BLOCK: tl.constexpr):
    # Max-log forward metrics of a recursive code of eight states; BLOCK words a program, a step of time an iteration.
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = n < N
    state = tl.arange(0, 8)
    low = (state & 3) * 2
    fed = state >> 2
    even, odd = low, low + 1
    bit_even = fed ^ ((even >> 1) & 1)
    bit_odd = fed ^ ((odd >> 1) & 1) ^ 1
    check_even = fed ^ (even >> 2)
    check_odd = fed ^ (odd >> 2) ^ 1
    zero = tl.zeros((BLOCK, 8), dtype=tl.int32)
    at_even, at_odd = zero + even[None, :], zero + odd[None, :]
    alpha = tl.where(state[None, :] == 0, 0.0, -50.0) + tl.zeros((BLOCK, 8), dtype=tl.float32)
    for t in range(T):
        x = tl.load(sys_ptr + n * T + t, mask=ok, other=0.0) + tl.load(prior_ptr + n * T + t, mask=ok, other=0.0)
        p = tl.load(par_ptr + n * T + t, mask=ok, other=0.0)
        g_even = 0.5 * ((1 - 2 * bit_even)[None, :] * x[:, None] + (1 - 2 * check_even)[None, :] * p[:, None])
        g_odd = 0.5 * ((1 - 2 * bit_odd)[None, :] * x[:, None] + (1 - 2 * check_odd)[None, :] * p[:, None])
        alpha = tl.maximum(tl.gather(alpha, at_even, 1) + g_even, tl.gather(alpha, at_odd, 1) + g_odd)
        alpha -= tl.max(alpha, axis=1)[:, None]
        tl.store(alpha_ptr + (n[:, None] * T + t) * 8 + state[None, :], alpha, mask=ok[:, None])


@case
def lighthouse_words_of_eight_states_run_forward(n=4096, t=100):
    x, p, prior, alpha = f32(n, t) * 2, f32(n, t) * 2, f32(n, t), zeros(n, t, 8, dtype="float32")
    launched = run(forward_metrics_of_trellis, (cdiv(n, 16),), (x, p, prior, alpha, n, t), alpha, BLOCK=16, num_warps=4)

    def reference():
        state = torch.arange(8, device=x.device)
        now = torch.where(state == 0, 0.0, -50.0).repeat(n, 1)
        result = torch.empty_like(alpha)
        for i in range(t):
            best = None
            for last in (0, 1):
                before, fed = (state & 3) * 2 + last, state >> 2
                bit, check = fed ^ ((before >> 1) & 1) ^ (before & 1), fed ^ (before >> 2) ^ (before & 1)
                step = now[:, before] + 0.5 * ((1 - 2 * bit) * (x + prior)[:, i, None] + (1 - 2 * check) * p[:, i, None])
                best = step if best is None else torch.maximum(best, step)
            now = best - best.amax(1, keepdim=True)
            result[:, i] = now
        return result

    return against(launched, reference)


@triton.jit
def _e2m1_code(x):
    # The code of four bits, ties to the even code.
    a = tl.abs(x)
    code = (a > 0.25).to(tl.int32) + (a >= 0.75).to(tl.int32) + (a > 1.25).to(tl.int32) + (a >= 1.75).to(tl.int32)
    code += (a > 2.5).to(tl.int32) + (a >= 3.5).to(tl.int32) + (a > 5.0).to(tl.int32)
    return code | tl.where(x < 0, 8, 0)


@triton.jit
def nvfp4_quant_swizzled(x_ptr, gs_ptr, q_ptr, s_ptr, stride_xm, M, N, COLS, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr):
    # Rows to E2M1 with a scale of E4M3 for each 16 and one for all; scales lie in tiles of 128 by 4 as tensor cores want them.
    rm = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rm < M)[:, None] & (rn < N)[None, :]
    gs = tl.load(gs_ptr)
    x = tl.load(x_ptr + rm[:, None] * stride_xm + rn[None, :], mask=mask, other=0.0).to(tl.float32)
    x = tl.reshape(x, (BLOCK_M, BLOCK_N // GROUP, GROUP))
    amax = tl.max(tl.abs(x), axis=2)
    scale = tl.minimum(amax * gs * (1.0 / 6.0), 448.0).to(tl.float8e4nv)
    back = scale.to(tl.float32)
    inverse = tl.where(back > 0, gs / back, 0.0)
    code = _e2m1_code(x * inverse[:, :, None])
    low, high = tl.split(tl.reshape(code, (BLOCK_M, BLOCK_N // 2, 2)))
    packed = (low | (high << 4)).to(tl.uint8)
    rp = tl.program_id(1) * (BLOCK_N // 2) + tl.arange(0, BLOCK_N // 2)
    tl.store(q_ptr + rm[:, None] * (N // 2) + rp[None, :], packed, mask=(rm < M)[:, None] & (rp < N // 2)[None, :])
    rs = tl.program_id(1) * (BLOCK_N // GROUP) + tl.arange(0, BLOCK_N // GROUP)
    tile = (rm // 128)[:, None] * (COLS // 4) + (rs // 4)[None, :]
    inside = (rm % 32)[:, None] * 16 + (rm % 128 // 32)[:, None] * 4 + (rs % 4)[None, :]
    tl.store(s_ptr + tile * 512 + inside, scale, mask=(rm < M)[:, None] & (rs < N // GROUP)[None, :])


E2M1 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


@case
def lighthouse_rows_to_nvfp4_in_swizzled_scales(m=3000, n=5120):
    x, gs = rand(m, n, dtype="bfloat16"), zeros(1, dtype="float32") + 100.0
    cols, rows = cdiv(n // 16, 4) * 4, cdiv(m, 128) * 128
    q, s = zeros(m, n // 2, dtype="uint8"), zeros(rows * cols, dtype="uint8").view(torch.float8_e4m3fn)
    args = x, gs, q, s, x.stride(0), m, n, cols
    launched = run(nvfp4_quant_swizzled, (cdiv(m, 16), cdiv(n, 128)), args, (q, s), BLOCK_M=16, BLOCK_N=128, GROUP=16, num_warps=4)

    def values(codes):
        table = torch.tensor(E2M1, device=codes.device)
        pair = torch.stack((codes & 15, codes >> 4), -1).long().reshape(m, n)
        return table[pair & 7] * torch.where(pair > 7, -1.0, 1.0) + 200

    def reference():
        g = x.float().reshape(m, n // 16, 16)
        scale = (g.abs().amax(2) * 100.0 * (1 / 6)).clamp(max=448.0).to(torch.float8_e4m3fn)
        y = g * torch.where(scale.float() > 0, 100.0 / scale.float(), 0.0)[..., None]
        a = y.abs()
        code = sum((a > c if i % 2 == 0 else a >= c).int() for i, c in enumerate((0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)))
        table = torch.tensor(E2M1, device=x.device)
        y = (table[code.long()] * torch.where(y < 0, -1.0, 1.0)).reshape(m, n) + 200
        padded = torch.zeros(rows, cols, device=x.device)
        padded[:m, : n // 16] = scale.float()
        return y, padded.reshape(rows // 128, 4, 32, cols // 4, 4).permute(0, 3, 2, 1, 4).reshape(-1)

    return against(viewed(launched, lambda outs: (values(outs[0]), outs[1].float())), reference)


@triton.jit
def stick_breaking_fwd(q_ptr, k_ptr, v_ptr, o_ptr, rem_ptr, stride_h, stride_t, T, sm_scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr):
    # Stick-breaking attention: from the newest key back, each takes its share of what is left of the stick.
    start_m = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1).to(tl.int64) * stride_h
    rm, rd = start_m + tl.arange(0, BLOCK_M), tl.arange(0, D)
    q = tl.load(q_ptr + head + rm[:, None] * stride_t + rd[None, :], mask=(rm < T)[:, None], other=0.0)
    left = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    last = tl.minimum(start_m + BLOCK_M, T)
    for i in range(tl.cdiv(last, BLOCK_N)):
        rn = (tl.cdiv(last, BLOCK_N) - 1 - i) * BLOCK_N + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + head + rn[None, :] * stride_t + rd[:, None], mask=(rn < T)[None, :], other=0.0)
        v = tl.load(v_ptr + head + rn[:, None] * stride_t + rd[None, :], mask=(rn < T)[:, None], other=0.0)
        z = tl.dot(q, k) * sm_scale
        past = rn[None, :] < rm[:, None]
        soft = tl.where(z > 15.0, z, tl.log(1.0 + tl.exp(tl.minimum(z, 15.0))))
        out = tl.where(past, -soft, 0.0)
        later = tl.cumsum(out, axis=1, reverse=True)
        p = tl.where(past, tl.exp(z + later + left[:, None]), 0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        left += tl.sum(out, axis=1)
    tl.store(o_ptr + head + rm[:, None] * stride_t + rd[None, :], acc.to(o_ptr.dtype.element_ty), mask=(rm < T)[:, None])
    tl.store(rem_ptr + tl.program_id(1) * T + rm, tl.exp(left), mask=rm < T)


@case
def lighthouse_attention_that_breaks_a_stick(bh=24, t=1100, d=64):
    q, k, v, o = rand(bh, t, d), rand(bh, t, d), rand(bh, t, d), zeros(bh, t, d)
    rem = zeros(bh, t, dtype="float32")
    args = q, k, v, o, rem, q.stride(0), q.stride(1), t, d**-0.5
    launched = run(stick_breaking_fwd, (cdiv(t, 64), bh), args, (o, rem), BLOCK_M=64, BLOCK_N=64, D=d, num_warps=4, num_stages=2)

    def reference():
        z = (q.float() @ k.float().transpose(1, 2)) * d**-0.5
        past = torch.ones(t, t, device=z.device, dtype=torch.bool).tril(-1)
        out = torch.where(past, -F.softplus(z), 0.0)
        later = out.flip(2).cumsum(2).flip(2)
        p = torch.where(past, torch.exp(z + later), 0.0)
        return p @ v.float(), torch.exp(out.sum(2))

    return against(launched, reference)


@triton.jit
def bpr_step_kernel(user_ptr, item_ptr, u_ptr, pos_ptr, neg_ptr, loss_ptr, du_ptr, di_ptr, reg, D, BLOCK_D: tl.constexpr):
    # Bayesian personalized ranking: one program per (user, liked, not liked); gradients are added to the tables' gradients.
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK_D)
    mask = offs < D
    u = tl.load(u_ptr + pid)
    i = tl.load(pos_ptr + pid)
    j = tl.load(neg_ptr + pid)
    xu = tl.load(user_ptr + u * D + offs, mask=mask, other=0.0)
    xi = tl.load(item_ptr + i * D + offs, mask=mask, other=0.0)
    xj = tl.load(item_ptr + j * D + offs, mask=mask, other=0.0)
    diff = tl.sum(xu * xi, axis=0) - tl.sum(xu * xj, axis=0)
    sig = 1.0 / (1.0 + tl.exp(diff))
    loss = tl.log(1.0 + tl.exp(-tl.abs(diff))) + tl.maximum(-diff, 0.0)
    tl.store(loss_ptr + pid, loss)
    tl.atomic_add(du_ptr + u * D + offs, -sig * (xi - xj) + reg * xu, mask=mask)
    tl.atomic_add(di_ptr + i * D + offs, -sig * xu + reg * xi, mask=mask)
    tl.atomic_add(di_ptr + j * D + offs, sig * xu + reg * xj, mask=mask)


@case
def lighthouse_liked_before_not_liked(batch=20000, users=9000, items=5000, d=50):
    user, item = f32(users, d) / 4, f32(items, d) / 4
    u, pos, neg = ints(0, users, batch, dtype="int64"), ints(0, items, batch, dtype="int64"), ints(0, items, batch, dtype="int64")
    loss, du, di = zeros(batch, dtype="float32"), zeros(users, d, dtype="float32"), zeros(items, d, dtype="float32")
    args = user, item, u, pos, neg, loss, du, di, 0.01, d
    launched = run(bpr_step_kernel, (batch,), args, (loss, du, di), BLOCK_D=64, num_warps=4)

    def reference():
        a, b, c = user[u], item[pos], item[neg]
        diff = (a * (b - c)).sum(1)
        s = torch.sigmoid(-diff)[:, None]
        gu = torch.zeros_like(du).index_add_(0, u, -s * (b - c) + 0.01 * a)
        gi = torch.zeros_like(di).index_add_(0, pos, -s * a + 0.01 * b).index_add_(0, neg, s * a + 0.01 * c)
        return F.softplus(-diff), gu, gi

    return against(cleared(launched, du, di), reference)


@triton.jit
def _logs_added(a, b):
    top = tl.maximum(a, b)
    return top + tl.log(1.0 + tl.exp(tl.minimum(a, b) - top))


@triton.jit
def cox_partial_likelihood(eta_ptr, event_ptr, loss_ptr, risk_ptr, stride, N, BLOCK: tl.constexpr):
    # Proportional hazards of one stratum, times falling: the log of the sum over all at risk, and the loss of those who had the event.
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < N
    eta = tl.load(eta_ptr + row * stride + cols, mask=mask, other=-1e30)
    event = tl.load(event_ptr + row * stride + cols, mask=mask, other=0)
    risk = tl.associative_scan(eta, 0, _logs_added)
    terms = tl.where(event != 0, risk - eta, 0.0)
    count = tl.sum((event != 0).to(tl.int32), axis=0)
    tl.store(risk_ptr + row * stride + cols, risk, mask=mask)
    tl.store(loss_ptr + row, tl.sum(terms, axis=0) / tl.maximum(count, 1).to(tl.float32))


@case
def lighthouse_hazards_of_those_at_risk(strata=700, n=3001):
    eta, event = f32(strata, n), ints(0, 2, strata, n, dtype="int8")
    loss, risk = zeros(strata, dtype="float32"), zeros(strata, n, dtype="float32")
    launched = run(cox_partial_likelihood, (strata,), (eta, event, loss, risk, n, n), (loss, risk), BLOCK=4096, num_warps=8)

    def reference():
        lse = torch.logcumsumexp(eta, 1)
        return ((lse - eta) * event).sum(1) / event.sum(1).clamp(min=1), lse

    return against(launched, reference)


@triton.jit
def track_objects_kernel(z_ptr, seen_ptr, x_out, p_out, ll_out, T, N, dt, q, r, BLOCK: tl.constexpr):
    # A Kalman filter of place and speed for each track; what is not seen is only predicted.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < N
    x, v = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    pxx, pxv, pvv = tl.full((BLOCK,), 10.0, tl.float32), tl.zeros((BLOCK,), tl.float32), tl.full((BLOCK,), 10.0, tl.float32)
    ll = tl.zeros((BLOCK,), tl.float32)
    for t in range(T):
        x = x + dt * v
        pxx = pxx + 2.0 * dt * pxv + dt * dt * pvv + q * dt * dt * dt / 3.0
        pxv = pxv + dt * pvv + q * dt * dt / 2.0
        pvv = pvv + q * dt
        z = tl.load(z_ptr + t * N + i, mask=m, other=0.0)
        seen = tl.load(seen_ptr + t * N + i, mask=m, other=0) != 0
        s = pxx + r
        kx = tl.where(seen, pxx / s, 0.0)
        kv = tl.where(seen, pxv / s, 0.0)
        y = z - x
        ll += tl.where(seen, -0.5 * (y * y / s + tl.log(6.283185307 * s)), 0.0)
        x = x + kx * y
        v = v + kv * y
        pvv = pvv - kv * pxv
        pxv = (1.0 - kx) * pxv
        pxx = (1.0 - kx) * pxx
    tl.store(x_out + i * 2, x, mask=m)
    tl.store(x_out + i * 2 + 1, v, mask=m)
    tl.store(p_out + i * 3, pxx, mask=m)
    tl.store(p_out + i * 3 + 1, pxv, mask=m)
    tl.store(p_out + i * 3 + 2, pvv, mask=m)
    tl.store(ll_out + i, ll, mask=m)


@case
def lighthouse_ships_tracked_through_fog(n=70001, t=90):
    z, seen = f32(t, n).cumsum(0), (uniform(t, n) < 0.8).to(torch.uint8)
    xo, po, ll = zeros(n, 2, dtype="float32"), zeros(n, 3, dtype="float32"), zeros(n, dtype="float32")
    launched = run(track_objects_kernel, (cdiv(n, 256),), (z, seen, xo, po, ll, t, n, 0.5, 0.3, 0.7), (xo, po, ll), BLOCK=256, num_warps=4)

    def reference():
        dt, q, r = 0.5, 0.3, 0.7
        x = v = pxv = torch.zeros(n, device=z.device)
        pxx = pvv = torch.full((n,), 10.0, device=z.device)
        like = torch.zeros(n, device=z.device)
        for i in range(t):
            x = x + dt * v
            pxx, pxv, pvv = pxx + 2 * dt * pxv + dt * dt * pvv + q * dt**3 / 3, pxv + dt * pvv + q * dt * dt / 2, pvv + q * dt
            s, on, y = pxx + r, seen[i] != 0, z[i] - x
            kx, kv = torch.where(on, pxx / s, 0.0), torch.where(on, pxv / s, 0.0)
            like = like + torch.where(on, -0.5 * (y * y / s + torch.log(6.283185307 * s)), 0.0)
            x, v, pvv = x + kx * y, v + kv * y, pvv - kv * pxv
            pxv, pxx = (1 - kx) * pxv, (1 - kx) * pxx
        return torch.stack((x, v), 1), torch.stack((pxx, pxv, pvv), 1), like

    return against(launched, reference)


@triton.jit
def recurrent_gated_delta_update(
    q_ptr, k_ptr, v_ptr, a_ptr, b_ptr, A_log_ptr, dt_bias_ptr, o_ptr, h0_ptr, ht_ptr, indices_ptr, scale,
    H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr,
    USE_QK_L2NORM_IN_KERNEL: tl.constexpr, SOFTPLUS_THRESHOLD: tl.constexpr,
):
    # One decoding step of the gated delta rule over a pool of states, gates computed on the way; a negative index skips.
    i_v, i_nh = tl.program_id(0), tl.program_id(1)
    i_n, i_hv = i_nh // HV, i_nh % HV
    i_h = i_hv // (HV // H)
    o_k = tl.arange(0, BK)
    o_v = i_v * BV + tl.arange(0, BV)
    mask_k, mask_v = o_k < K, o_v < V
    mask_h = mask_v[:, None] & mask_k[None, :]
    idx = tl.load(indices_ptr + i_n).to(tl.int64)
    if idx < 0:
        return
    p_h = (idx * HV + i_hv) * V * K + o_v[:, None] * K + o_k[None, :]
    b_h = tl.load(h0_ptr + p_h, mask=mask_h, other=0).to(tl.float32)
    b_q = tl.load(q_ptr + (i_n * H + i_h) * K + o_k, mask=mask_k, other=0).to(tl.float32)
    b_k = tl.load(k_ptr + (i_n * H + i_h) * K + o_k, mask=mask_k, other=0).to(tl.float32)
    b_v = tl.load(v_ptr + (i_n * HV + i_hv) * V + o_v, mask=mask_v, other=0).to(tl.float32)
    x = tl.load(a_ptr + i_nh).to(tl.float32) + tl.load(dt_bias_ptr + i_hv).to(tl.float32)
    softplus = tl.where(x <= SOFTPLUS_THRESHOLD, tl.log(1.0 + tl.exp(x)), x)
    b_g = -tl.exp(tl.load(A_log_ptr + i_hv).to(tl.float32)) * softplus
    b_beta = tl.sigmoid(tl.load(b_ptr + i_nh).to(tl.float32))
    if USE_QK_L2NORM_IN_KERNEL:
        b_q = b_q / tl.sqrt(tl.sum(b_q * b_q) + 1e-6)
        b_k = b_k / tl.sqrt(tl.sum(b_k * b_k) + 1e-6)
    b_q = b_q * scale
    b_h *= tl.exp(b_g)
    b_v -= tl.sum(b_h * b_k[None, :], 1)
    b_v *= b_beta
    b_h += b_v[:, None] * b_k[None, :]
    b_o = tl.sum(b_h * b_q[None, :], 1)
    tl.store(o_ptr + (i_n * HV + i_hv) * V + o_v, b_o.to(o_ptr.dtype.element_ty), mask=mask_v)
    tl.store(ht_ptr + p_h, b_h.to(ht_ptr.dtype.element_ty), mask=mask_h)


@case
def lighthouse_pool_of_states_by_gated_deltas(n=48, h=8, hv=16, k=128, v=128, pool=60):
    q, kk, vv = (rand(n, x, y, dtype="bfloat16") for x, y in ((h, k), (h, k), (hv, v)))
    a, b, o = rand(n, hv, dtype="bfloat16"), rand(n, hv, dtype="bfloat16"), zeros(n, hv, v, dtype="bfloat16")
    alog, bias, h0, ht = f32(hv) / 4, f32(hv), f32(pool, hv, v, k) / 8, zeros(pool, hv, v, k, dtype="float32")
    index = torch.randperm(pool, device="cuda")[:n].int()
    index = torch.where(arange(n) % 11 == 5, -1, index)
    args = q, kk, vv, a, b, alog, bias, o, h0, ht, index, k**-0.5
    flags = dict(H=h, HV=hv, K=k, V=v, BK=128, BV=32, USE_QK_L2NORM_IN_KERNEL=True, SOFTPLUS_THRESHOLD=20.0)
    launched = run(recurrent_gated_delta_update, (cdiv(v, 32), n * hv), args, (o, ht), num_warps=1, num_stages=3, **flags)

    def reference():
        on = index >= 0
        at = index[on].long()
        qf, kf = (F.normalize(x.float()[on], dim=2).repeat_interleave(hv // h, 1) for x in (q, kk))
        gate = torch.exp(-alog.exp() * F.softplus(a.float()[on] + bias))
        state = h0[at] * gate[..., None, None]
        new = (vv.float()[on] - (state * kf[:, :, None]).sum(3)) * torch.sigmoid(b.float()[on])[..., None]
        state = state + new[..., None] * kf[:, :, None]
        out, states = torch.zeros(n, hv, v, device=q.device), torch.zeros_like(ht)
        out[on] = (state * qf[:, :, None]).sum(3) * k**-0.5
        states[at] = state
        return out, states

    return against(launched, reference)


@triton.jit
def contiguous_experts_fp8(
    a_ptr, sa_ptr, b_ptr, sb_ptr, c_ptr, indices_ptr, M, N: tl.constexpr, K: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr,
):
    # Experts' rows lie one after another in whole blocks; a table has each row's expert, -1 for filling. Scales by 128 and by 128 x 128.
    pid = tl.program_id(0)
    num_m, num_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP_SIZE_M * num_n)
    size = min(num_m - group * GROUP_SIZE_M, GROUP_SIZE_M)
    pid_m = group * GROUP_SIZE_M + pid % (GROUP_SIZE_M * num_n) % size
    pid_n = pid % (GROUP_SIZE_M * num_n) // size
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    expert = tl.load(indices_ptr + pid_m * BLOCK_M).to(tl.int64)
    if expert >= 0:
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
        b_ptrs = b_ptr + expert * N * K + offs_n[None, :] * K + offs_k[:, None]
        sb = sb_ptr + expert * (N // 128) * (K // 128) + pid_n * BLOCK_N // 128 * (K // 128)
        for k in range(0, K // BLOCK_K):
            a = tl.load(a_ptrs, mask=(offs_m < M)[:, None], other=0.0)
            b = tl.load(b_ptrs)
            a_s = tl.load(sa_ptr + offs_m * (K // 128) + k, mask=offs_m < M, other=0.0)
            acc += tl.dot(a, b) * a_s[:, None] * tl.load(sb + k)
            a_ptrs += BLOCK_K
            b_ptrs += BLOCK_K
        row = tl.load(indices_ptr + offs_m, mask=offs_m < M, other=-1)
        tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.bfloat16), mask=(row >= 0)[:, None])


@case
def lighthouse_experts_in_whole_blocks_of_fp8(experts=8, blocks=40, n=2048, k=1024):
    m = blocks * 64
    a, b = rand(m, k).to(torch.float8_e4m3fn), rand(experts, n, k).to(torch.float8_e4m3fn)
    sa, sb = uniform(m, k // 128) / 16 + 0.01, uniform(experts, n // 128, k // 128) / 16 + 0.01
    at = torch.where(arange(blocks) % 9 == 7, -1, arange(blocks) * experts // blocks).repeat_interleave(64)
    at = torch.where((arange(m) % 64 >= 50) & (arange(m) // 64 % 3 == 2), -1, at).int()
    c = zeros(m, n, dtype="bfloat16")
    grid = (blocks * cdiv(n, 128),)
    flags = dict(N=n, K=k, BLOCK_M=64, BLOCK_N=128, BLOCK_K=128, GROUP_SIZE_M=8)
    launched = run(contiguous_experts_fp8, grid, (a, sa, b, sb, c, at, m), c, num_warps=4, num_stages=4, **flags)

    def reference():
        x = (a.float().reshape(m, -1, 128) * sa[..., None]).reshape(m, k)
        w = b.float() * sb.repeat_interleave(128, 1).repeat_interleave(128, 2)
        y = torch.zeros(m, n, device=a.device)
        for e in range(experts):
            y[at == e] = x[at == e] @ w[e].t()
        return y

    return against(launched, reference)


@triton.jit
def ns_line_2_kernel(
    A_ptr, C_ptr, M, a_stride_b, a_stride_r, a_stride_c, c_stride_b, c_stride_r, c_stride_c, alpha, beta,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_K: tl.constexpr, GROUP_SIZE_M: tl.constexpr, LOWER_UPPER: tl.constexpr,
):
    # C = alpha A A' + beta A for symmetric A, a line of Newton-Schulz: tiles above the diagonal, each also stored turned.
    pid, batch = tl.program_id(0), tl.program_id(1)
    num = tl.cdiv(M, BLOCK_SIZE_M)
    group = pid // (GROUP_SIZE_M * num)
    size = min(num - group * GROUP_SIZE_M, GROUP_SIZE_M)
    pm = group * GROUP_SIZE_M + pid % (GROUP_SIZE_M * num) % size
    pn = pid % (GROUP_SIZE_M * num) // size
    if LOWER_UPPER:
        if pm > pn:
            return
    A_ptr += batch * a_stride_b
    C_ptr += batch * c_stride_b
    offs_m = (pm * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)) % M
    offs_n = (pn * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)) % M
    offs_k = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = A_ptr + offs_m[:, None] * a_stride_r + offs_k[None, :] * a_stride_c
    at_ptrs = A_ptr + offs_k[:, None] * a_stride_c + offs_n[None, :] * a_stride_r
    acc = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_M), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(M, BLOCK_SIZE_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < M - k * BLOCK_SIZE_K, other=0.0)
        at = tl.load(at_ptrs, mask=offs_k[:, None] < M - k * BLOCK_SIZE_K, other=0.0)
        acc = tl.dot(a, at, acc)
        a_ptrs += BLOCK_SIZE_K * a_stride_c
        at_ptrs += BLOCK_SIZE_K * a_stride_c
    om = pm * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    on = pn * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    mask = (om < M)[:, None] & (on < M)[None, :]
    add = tl.load(A_ptr + om[:, None] * a_stride_r + on[None, :] * a_stride_c, mask=mask, other=0.0).to(tl.float32)
    out = (alpha * acc + beta * add).to(C_ptr.dtype.element_ty)
    tl.store(C_ptr + om[:, None] * c_stride_r + on[None, :] * c_stride_c, out, mask=mask)
    if LOWER_UPPER:
        if pm < pn:
            tl.store(C_ptr + om[None, :] * c_stride_c + on[:, None] * c_stride_r, out.T, mask=mask.T)


@case
def lighthouse_line_of_newton_schulz_mirrored(batch=2, m=1600):
    x = rand(batch, m, m, dtype="bfloat16") / 32
    a = ((x + x.transpose(1, 2)) / 2).contiguous()
    c = zeros(batch, m, m, dtype="bfloat16")
    args = a, c, m, *a.stride(), *c.stride(), 2.0315, -4.775
    flags = dict(BLOCK_SIZE_M=128, BLOCK_SIZE_K=64, GROUP_SIZE_M=8, LOWER_UPPER=True)
    launched = run(ns_line_2_kernel, (cdiv(m, 128) ** 2, batch), args, c, num_warps=8, num_stages=4, **flags)
    return against(launched, lambda: 2.0315 * (a.float() @ a.float().transpose(1, 2)) - 4.775 * a.float())


@triton.jit
def wasserstein_1d_kernel(x_ptr, y_ptr, w1_ptr, w2_ptr, n_cols, BLOCK: tl.constexpr):
    # Distances of two samples by sorting both: one program per row.
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols
    x = tl.load(x_ptr + row * n_cols + offs, mask=mask, other=1e30)
    y = tl.load(y_ptr + row * n_cols + offs, mask=mask, other=1e30)
    x = tl.sort(x)
    y = tl.sort(y)
    diff = tl.where(mask, x - y, 0.0)
    w1 = tl.sum(tl.abs(diff), axis=0) / n_cols
    w2 = tl.sqrt(tl.sum(diff * diff, axis=0) / n_cols)
    tl.store(w1_ptr + row, w1)
    tl.store(w2_ptr + row, w2)


@case
def lighthouse_earth_moved_between_sorted_rows(rows=1500, n=1000):
    x, y = f32(rows, n), f32(rows, n) * 1.5 + 0.3
    w1, w2 = zeros(rows, dtype="float32"), zeros(rows, dtype="float32")
    launched = run(wasserstein_1d_kernel, (rows,), (x, y, w1, w2, n), (w1, w2), BLOCK=1024, num_warps=4)

    def reference():
        d = x.sort(1).values - y.sort(1).values
        return d.abs().mean(1), d.square().mean(1).sqrt()

    return against(launched, reference)


@triton.jit
def motif_scan_kernel(seq_ptr, pwm_ptr, best_ptr, occupancy_ptr, L, W, MOTIFS, BLOCK: tl.constexpr):
    # Position weight matrices against both strands of each sequence: the best score, and the log of the sum over all places.
    s = tl.program_id(0)
    motif = tl.program_id(1)
    best = tl.full((BLOCK,), -1e30, dtype=tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, L - W + 1, BLOCK):
        pos = start + tl.arange(0, BLOCK)
        valid = pos < L - W + 1
        forward = tl.zeros((BLOCK,), dtype=tl.float32)
        reverse = tl.zeros((BLOCK,), dtype=tl.float32)
        for w in range(0, W):
            base = tl.load(seq_ptr + s * L + pos + w, mask=valid, other=4).to(tl.int32)
            known = valid & (base < 4)
            forward += tl.load(pwm_ptr + (motif * W + w) * 4 + base, mask=known, other=0.0)
            reverse += tl.load(pwm_ptr + (motif * W + (W - 1 - w)) * 4 + (3 - base), mask=known, other=0.0)
        score = tl.where(valid, tl.maximum(forward, reverse), -1e30)
        best = tl.maximum(best, score)
        total += tl.where(valid, tl.exp(forward) + tl.exp(reverse), 0.0)
    tl.store(best_ptr + s * MOTIFS + motif, tl.max(best, axis=0))
    tl.store(occupancy_ptr + s * MOTIFS + motif, tl.log(tl.sum(total, axis=0)))


@case
def lighthouse_motifs_on_both_strands(seqs=64, length=1003, motifs=30, w=11):
    seq, pwm = ints(0, 4, seqs, length, dtype="int8"), f32(motifs, w, 4)
    seq[:, ::97] = 4
    best, occupancy = zeros(seqs, motifs, dtype="float32"), zeros(seqs, motifs, dtype="float32")
    args = seq, pwm, best, occupancy, length, w, motifs
    launched = run(motif_scan_kernel, (seqs, motifs), args, (best, occupancy), BLOCK=256, num_warps=4)

    def reference():
        hot = F.one_hot(seq.long(), 5)[..., :4].float().transpose(1, 2)
        fore = F.conv1d(hot, pwm.transpose(1, 2).contiguous())
        back = F.conv1d(hot, pwm.flip(1, 2).transpose(1, 2).contiguous())
        return torch.maximum(fore, back).amax(2), torch.logsumexp(torch.cat((fore, back), 2), 2)

    return against(launched, reference)


@triton.jit
def density_kernel(px_ptr, py_ptr, w_ptr, out_ptr, N, G, inv_h, BQ: tl.constexpr, BN: tl.constexpr):
    # Weighted Epanechnikov density of points at the nodes of a grid over the unit square, all points for each node.
    q = tl.program_id(0) * BQ + tl.arange(0, BQ)
    gx = (q % G).to(tl.float32) / (G - 1)
    gy = (q // G).to(tl.float32) / (G - 1)
    acc = tl.zeros((BQ,), dtype=tl.float32)
    for start in range(0, N, BN):
        n = start + tl.arange(0, BN)
        mask = n < N
        px = tl.load(px_ptr + n, mask=mask, other=100.0)
        py = tl.load(py_ptr + n, mask=mask, other=100.0)
        w = tl.load(w_ptr + n, mask=mask, other=0.0)
        dx = (gx[:, None] - px[None, :]) * inv_h
        dy = (gy[:, None] - py[None, :]) * inv_h
        u = 1.0 - dx * dx - dy * dy
        acc += tl.sum(tl.where(u > 0.0, u * w[None, :], 0.0), axis=1)
    tl.store(out_ptr + q, acc * 0.636619772 * inv_h * inv_h / N, mask=q < G * G)


@case
def lighthouse_density_of_ships_on_a_chart(n=9001, g=150):
    x, y, w, out = uniform(n), uniform(n), uniform(n), zeros(g, g, dtype="float32")
    launched = run(density_kernel, (cdiv(g * g, 64),), (x, y, w, out, n, g, 1 / 0.11), out, BQ=64, BN=64, num_warps=4)

    def reference():
        line = torch.arange(g, device=x.device, dtype=torch.float32) / (g - 1)
        dx, dy = ((line[:, None] - c) / 0.11 for c in (x, y))
        rows = [((1 - dx.square() - dy[i].square()).clamp(min=0) @ w) for i in range(g)]
        return torch.stack(rows) * 0.636619772 / 0.11**2 / n

    return against(launched, reference)


@triton.jit
def _pcg(state):
    state = state * 747796405 + 2891336453
    word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737
    return state, (word >> 22) ^ word


@triton.jit
def lookback_paths(pay_ptr, floor_ptr, spot, drift, vol, N, STEPS, BLOCK: tl.constexpr):
    # A lookback option by paths drawn with a permuted congruential generator; both normals of a pair of uniforms are used.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = i.to(tl.uint32) * 2654435761 + 12345
    log_s = tl.zeros((BLOCK,), tl.float32)
    low = tl.zeros((BLOCK,), tl.float32)
    for _ in range(STEPS // 2):
        state, a = _pcg(state)
        state, b = _pcg(state)
        u1 = ((a >> 8).to(tl.float32) + 0.5) * 5.9604644775390625e-08
        u2 = (b >> 8).to(tl.float32) * 5.9604644775390625e-08
        r = tl.sqrt(-2.0 * tl.log(u1))
        log_s += drift + vol * r * tl.cos(6.283185307179586 * u2)
        low = tl.minimum(low, log_s)
        log_s += drift + vol * r * tl.sin(6.283185307179586 * u2)
        low = tl.minimum(low, log_s)
    tl.store(pay_ptr + i, spot * (tl.exp(log_s) - tl.exp(low)), mask=i < N)
    tl.store(floor_ptr + i, spot * tl.exp(low), mask=i < N)


@case
def lighthouse_options_that_look_back(n=200003, steps=64):
    pay, floor = zeros(n, dtype="float32"), zeros(n, dtype="float32")
    launched = run(lookback_paths, (cdiv(n, 512),), (pay, floor, 100.0, 0.0004, 0.02, n, steps), (pay, floor), BLOCK=512, num_warps=4)

    def reference():
        mask = 0xFFFFFFFF
        state = (torch.arange(n, device=pay.device) * 2654435761 + 12345) & mask
        logs, low = torch.zeros(2, n, device=pay.device, dtype=torch.float64)

        def draw(state):
            # The product of two words has 62 bits, so it is exact in a long.
            state = ((state * 747796405 & mask) + 2891336453) & mask
            word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737 & mask
            return state, (word >> 22) ^ word

        for _ in range(steps // 2):
            state, a = draw(state)
            state, b = draw(state)
            u1, u2 = ((a >> 8).double() + 0.5) * 2.0**-24, (b >> 8).double() * 2.0**-24
            r = torch.sqrt(-2 * torch.log(u1))
            for turn in (torch.cos, torch.sin):
                logs = logs + 0.0004 + 0.02 * r * turn(6.283185307179586 * u2)
                low = torch.minimum(low, logs)
        return (100 * (logs.exp() - low.exp())).float(), (100 * low.exp()).float()

    return against(launched, reference)


@triton.jit
def bezier_patch_kernel(ctrl_ptr, point_ptr, normal_ptr, RES: tl.constexpr):
    # Bicubic patches: points and normals at RES x RES places of one patch a program; control points are read again and again.
    patch = tl.program_id(0)
    idx = tl.arange(0, RES * RES)
    u = (idx % RES).to(tl.float32) / (RES - 1)
    v = (idx // RES).to(tl.float32) / (RES - 1)
    px, py, pz = tl.zeros_like(u), tl.zeros_like(u), tl.zeros_like(u)
    ux, uy, uz = tl.zeros_like(u), tl.zeros_like(u), tl.zeros_like(u)
    vx, vy, vz = tl.zeros_like(u), tl.zeros_like(u), tl.zeros_like(u)
    for j in range(4):
        w = 1.0 - v
        bv = tl.where(j == 0, w * w * w, tl.where(j == 1, 3 * v * w * w, tl.where(j == 2, 3 * v * v * w, v * v * v)))
        dv = tl.where(j == 0, -3 * w * w, tl.where(j == 1, 3 * w * w - 6 * v * w, tl.where(j == 2, 6 * v * w - 3 * v * v, 3 * v * v)))
        for i in range(4):
            t = 1.0 - u
            bu = tl.where(i == 0, t * t * t, tl.where(i == 1, 3 * u * t * t, tl.where(i == 2, 3 * u * u * t, u * u * u)))
            du = tl.where(i == 0, -3 * t * t, tl.where(i == 1, 3 * t * t - 6 * u * t, tl.where(i == 2, 6 * u * t - 3 * u * u, 3 * u * u)))
            base = ctrl_ptr + (patch * 16 + j * 4 + i) * 3
            cx, cy, cz = tl.load(base), tl.load(base + 1), tl.load(base + 2)
            px += bu * bv * cx
            py += bu * bv * cy
            pz += bu * bv * cz
            ux += du * bv * cx
            uy += du * bv * cy
            uz += du * bv * cz
            vx += bu * dv * cx
            vy += bu * dv * cy
            vz += bu * dv * cz
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    inv = 1.0 / tl.sqrt(nx * nx + ny * ny + nz * nz + 1e-6)
    out = (patch * RES * RES + idx) * 3
    tl.store(point_ptr + out, px)
    tl.store(point_ptr + out + 1, py)
    tl.store(point_ptr + out + 2, pz)
    tl.store(normal_ptr + out, nx * inv)
    tl.store(normal_ptr + out + 1, ny * inv)
    tl.store(normal_ptr + out + 2, nz * inv)


@case
def lighthouse_lenses_of_bicubic_patches(patches=3000, res=16):
    ctrl, points, normals = f32(patches, 4, 4, 3), zeros(patches, res, res, 3, dtype="float32"), zeros(patches, res, res, 3, dtype="float32")
    ctrl += torch.stack(torch.meshgrid(arange(4), arange(4), indexing="xy") + (zeros(4, 4, dtype="int32"),), -1).float() * 4
    launched = run(bezier_patch_kernel, (patches,), (ctrl, points, normals), (points, normals), RES=res, num_warps=4)

    def reference():
        t = torch.arange(res, device=ctrl.device, dtype=torch.float32) / (res - 1)
        s = 1 - t
        b = torch.stack((s**3, 3 * t * s * s, 3 * t * t * s, t**3), 1)
        d = torch.stack((-3 * s * s, 3 * s * s - 6 * t * s, 6 * t * s - 3 * t * t, 3 * t * t), 1)
        point, du, dv = (torch.einsum("yj,xi,pjic->pyxc", y, x, ctrl) for y, x in ((b, b), (b, d), (d, b)))
        n = torch.linalg.cross(du, dv)
        return point, n / torch.sqrt(n.square().sum(-1, keepdim=True) + 1e-6)

    return against(launched, reference)


@triton.jit
def vtrace_kernel(logp_ptr, mu_ptr, reward_ptr, value_ptr, done_ptr, vs_ptr, adv_ptr, T, B, gamma, rho_bar, c_bar, BLOCK: tl.constexpr):
    # Corrected targets of actors that lag behind, from the last step to the first, one environment a lane.
    b = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = b < B
    next_value = tl.load(value_ptr + T * B + b, mask=mask, other=0.0)
    next_vs = next_value
    for s in range(T):
        t = T - 1 - s
        at = t * B + b
        ratio = tl.exp(tl.load(logp_ptr + at, mask=mask, other=0.0) - tl.load(mu_ptr + at, mask=mask, other=0.0))
        rho = tl.minimum(ratio, rho_bar)
        c = tl.minimum(ratio, c_bar)
        discount = tl.where(tl.load(done_ptr + at, mask=mask, other=0) != 0, 0.0, gamma)
        r = tl.load(reward_ptr + at, mask=mask, other=0.0)
        v = tl.load(value_ptr + at, mask=mask, other=0.0)
        tl.store(adv_ptr + at, rho * (r + discount * next_vs - v), mask=mask)
        vs = v + rho * (r + discount * next_value - v) + discount * c * (next_vs - next_value)
        tl.store(vs_ptr + at, vs, mask=mask)
        next_value = v
        next_vs = vs


@case
def lighthouse_keepers_that_learn_off_policy(t=60, b=40000):
    logp, mu, r, v = f32(t, b) / 2, f32(t, b) / 2, f32(t, b), f32(t + 1, b)
    done, vs, adv = (uniform(t, b) < 0.05).to(torch.int8), zeros(t, b, dtype="float32"), zeros(t, b, dtype="float32")
    args = logp, mu, r, v, done, vs, adv, t, b, 0.99, 1.0, 1.0
    launched = run(vtrace_kernel, (cdiv(b, 128),), args, (vs, adv), BLOCK=128, num_warps=4)

    def reference():
        clipped = torch.exp(logp - mu).clamp(max=1.0)
        keep = 0.99 * (done == 0)
        later, targets = v[t], torch.empty_like(vs)
        for i in reversed(range(t)):
            later = v[i] + clipped[i] * (r[i] + keep[i] * v[i + 1] - v[i]) + keep[i] * clipped[i] * (later - v[i + 1])
            targets[i] = later
        after = torch.cat((targets[1:], v[t:]))
        return targets, clipped * (r + keep * after - v[:t])

    return against(launched, reference)


@triton.jit
def ewald_near_part(x_ptr, q_ptr, list_ptr, count_ptr, e_ptr, f_ptr, N, box, alpha, cut, MOST: tl.constexpr, BLOCK: tl.constexpr):
    # The near part of Ewald's sum over padded lists of neighbors in a periodic box, in doubles: energy and force of each charge.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < N
    xi = tl.load(x_ptr + i * 3, mask=mask, other=0.0)
    yi = tl.load(x_ptr + i * 3 + 1, mask=mask, other=0.0)
    zi = tl.load(x_ptr + i * 3 + 2, mask=mask, other=0.0)
    qi = tl.load(q_ptr + i, mask=mask, other=0.0)
    count = tl.load(count_ptr + i, mask=mask, other=0)
    energy, fx = tl.zeros((BLOCK,), tl.float64), tl.zeros((BLOCK,), tl.float64)
    fy, fz = tl.zeros((BLOCK,), tl.float64), tl.zeros((BLOCK,), tl.float64)
    for n in range(0, tl.max(count, axis=0)):
        has = n < count
        j = tl.load(list_ptr + i * MOST + n, mask=has, other=0)
        dx = xi - tl.load(x_ptr + j * 3, mask=has, other=0.0)
        dy = yi - tl.load(x_ptr + j * 3 + 1, mask=has, other=0.0)
        dz = zi - tl.load(x_ptr + j * 3 + 2, mask=has, other=0.0)
        dx -= box * tl.floor(dx / box + 0.5)
        dy -= box * tl.floor(dy / box + 0.5)
        dz -= box * tl.floor(dz / box + 0.5)
        r2 = dx * dx + dy * dy + dz * dz
        near = has & (r2 < cut * cut) & (j != i)
        r = tl.sqrt(tl.where(near, r2, 1.0))
        qq = tl.where(near, qi * tl.load(q_ptr + j, mask=has, other=0.0), 0.0)
        screened = libdevice.erfc(alpha * r) / r
        energy += 0.5 * qq * screened
        pull = qq * (screened + tl.exp(-alpha * alpha * r * r) * alpha * 1.1283791670955126) / (r * r)
        fx += pull * dx
        fy += pull * dy
        fz += pull * dz
    tl.store(e_ptr + i, energy, mask=mask)
    tl.store(f_ptr + i * 3, fx, mask=mask)
    tl.store(f_ptr + i * 3 + 1, fy, mask=mask)
    tl.store(f_ptr + i * 3 + 2, fz, mask=mask)


@case
def lighthouse_charges_near_each_other(n=30000, most=64):
    x, q = uniform(n, 3).double() * 12, f32(n).double()
    near, count = ints(0, n, n, most), ints(0, most + 1, n)
    e, f = zeros(n, dtype="float64"), zeros(n, 3, dtype="float64")
    args = x, q, near, count, e, f, n, 12.0, 0.5, 7.5
    launched = run(ewald_near_part, (cdiv(n, 128),), args, (e, f), MOST=most, BLOCK=128, num_warps=4)

    def reference():
        alpha, j = 0.5, near.long()
        d = x[:, None] - x[j]
        d = d - 12 * torch.floor(d / 12 + 0.5)
        r2, slot = d.square().sum(2), torch.arange(most, device=x.device)
        use = (slot < count[:, None]) & (r2 < 7.5**2) & (j != torch.arange(n, device=x.device)[:, None])
        r = torch.where(use, r2, 1.0).sqrt()
        qq = torch.where(use, q[:, None] * q[j], 0.0)
        screened = torch.erfc(alpha * r) / r
        pull = qq * (screened + 1.1283791670955126 * alpha * torch.exp(-alpha * alpha * r2)) / r.square()
        return 0.5 * (qq * screened).sum(1), (pull[..., None] * d).sum(1)

    return against(launched, reference)
