"""What training and serving of language and video models runs: experts, sparse and compressed caches, gated states, losses, optimizers."""

import torch
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, f8, f32, far, far8, full, ints, rand, run, uniform, viewed, zeros


@triton.jit
def experts_fp8_gate_up(a_ptr, as_ptr, w_ptr, ws_ptr, y_ptr, token_ptr, expert_ptr, total_ptr, valid, F, K, TOP_K: tl.constexpr,
                        BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Gate and up of the experts' tokens, scales for 1 x 128 of activations and 128 x 128 of weights, and silu(gate) * up.
    pid_m, pid_n = tl.program_id(1), tl.program_id(0)
    if pid_m * BM >= tl.load(total_ptr):
        return
    expert = tl.load(expert_ptr + pid_m).to(tl.int64)
    slot = tl.load(token_ptr + pid_m * BM + tl.arange(0, BM))
    n, k = pid_n * BN + tl.arange(0, BN), tl.arange(0, BK)
    live = slot < valid
    if expert < 0:
        tl.store(y_ptr + slot[:, None].to(tl.int64) * F + n[None, :], tl.zeros((BM, BN), tl.bfloat16), mask=live[:, None] & (n < F)[None, :])
        return
    token = slot // TOP_K
    blocks = K // 128
    a_ptrs = a_ptr + token[:, None] * K + k[None, :]
    g_ptrs = w_ptr + (expert * 2 * F + n[None, :]) * K + k[:, None]
    u_ptrs = g_ptrs + F.to(tl.int64) * K
    gs_ptrs = ws_ptr + (expert * 2 * (F // 128) + n // 128) * blocks
    us_ptrs = gs_ptrs + F // 128 * blocks
    gate = tl.zeros((BM, BN), tl.float32)
    up = tl.zeros((BM, BN), tl.float32)
    for b in range(0, blocks):
        a = tl.load(a_ptrs, mask=live[:, None], other=0.0)
        s = tl.load(as_ptr + token * blocks + b, mask=live, other=0.0)
        gate += tl.dot(a, tl.load(g_ptrs)) * s[:, None] * tl.load(gs_ptrs + b)[None, :]
        up += tl.dot(a, tl.load(u_ptrs)) * s[:, None] * tl.load(us_ptrs + b)[None, :]
        a_ptrs += BK
        g_ptrs += BK
        u_ptrs += BK
    y = gate * tl.sigmoid(gate) * up
    tl.store(y_ptr + slot[:, None].to(tl.int64) * F + n[None, :], y.to(tl.bfloat16), mask=live[:, None])


@case
def moe_fp8_blocks_gate_and_up():
    t, top, e, k, f, bm = 300, 6, 24, 2048, 768, 16
    chosen = torch.argsort(uniform(t, e), 1)[:, :top]
    # The two last experts live on another GPU.
    order, expert = [], []
    for j in range(e):
        mine = (chosen.reshape(-1) == j).nonzero()[:, 0].int()
        pad = -len(mine) % bm
        order += [mine, full(t * top, pad, dtype="int32")]
        expert += [-1 if j >= e - 2 else j] * ((len(mine) + pad) // bm)
    order, blocks = torch.cat(order), len(expert)
    expert = torch.tensor(expert, device="cuda", dtype=torch.int32)
    y = zeros(t * top, f, dtype="bfloat16")
    args = f8(t, k), uniform(t, k // 128), f8(e, 2 * f, k), uniform(e, 2 * f // 128, k // 128) / 16, y, order, expert, full(blocks * bm, 1, dtype="int32")
    args += t * top, f, k
    return run(experts_fp8_gate_up, (f // 128, blocks), args, y, TOP_K=top, BM=bm, BN=128, BK=128, num_warps=4, num_stages=3)


@triton.jit
def listed_latent_attention(Q, KV, INDEX, O, LSE, scale, TOPK, H: tl.constexpr, R: tl.constexpr, P: tl.constexpr, BN: tl.constexpr):
    # A token's heads against the keys that its list names, some of them none: latents of 512 with 64 rotated beside them.
    t = tl.program_id(0)
    h, r, p, n = tl.arange(0, H), tl.arange(0, R), tl.arange(0, P), tl.arange(0, BN)
    width: tl.constexpr = R + P
    q = tl.load(Q + (t * H + h)[:, None] * width + r[None, :])
    qp = tl.load(Q + (t * H + h)[:, None] * width + R + p[None, :])
    m = tl.full((H,), -1e30, tl.float32)
    l = tl.zeros((H,), tl.float32)
    acc = tl.zeros((H, R), tl.float32)
    for n0 in range(0, TOPK, BN):
        at = tl.load(INDEX + t * TOPK + n0 + n, mask=n0 + n < TOPK, other=-1)
        live = at >= 0
        row = tl.where(live, at, 0).to(tl.int64) * width
        kv = tl.load(KV + row[:, None] + r[None, :], mask=live[:, None], other=0.0)
        kp = tl.load(KV + row[None, :] + R + p[:, None], mask=live[None, :], other=0.0)
        s = tl.dot(q, tl.trans(kv))
        s = tl.dot(qp, kp, s) * scale
        s = tl.where(live[None, :], s, -1e30)
        new = tl.maximum(m, tl.max(s, 1))
        e = tl.where(live[None, :], tl.exp2(s - new[:, None]), 0.0)
        shrink = tl.exp2(m - new)
        l = l * shrink + tl.sum(e, 1)
        acc = tl.dot(e.to(kv.dtype), kv, acc * shrink[:, None])
        m = new
    l = tl.maximum(l, 1e-30)
    tl.store(O + (t * H + h)[:, None] * R + r[None, :], (acc / l[:, None]).to(tl.bfloat16))
    tl.store(LSE + t * H + h, m + tl.log2(l))


@case
def attn_latent_of_listed_keys():
    t, h, keys, topk = 700, 16, 20_000, 500
    out, lse = zeros(t, h, 512, dtype="bfloat16"), zeros(t, h, dtype="float32")
    index = ints(0, keys, t, topk)
    index[uniform(t, topk) < 0.05] = -1
    index[:, 400:] = torch.where(arange(t)[:, None] % 3 == 0, -1, index[:, 400:])
    args = rand(t, h, 576, dtype="bfloat16"), rand(keys, 576, dtype="bfloat16"), index, out, lse, 576**-0.5 * 1.44269504, topk
    return run(listed_latent_attention, (t,), args, (out, lse), H=h, R=512, P=64, BN=32, num_warps=8, num_stages=2)


@triton.jit
def forgetting_attention(Q, K, V, F, O, T, scale, HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # What a key still weighs is the product of the gates since: differences of running sums of logarithms.
    pid, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    hk = h // (HQ // HK)
    m, d = pid * BM + tl.arange(0, BM), tl.arange(0, DP)
    dm = (d < D)[None, :]
    qm = (m < T)[:, None]
    q = tl.load(Q + ((b * T + m) * HQ + h)[:, None] * D + d[None, :], mask=qm & dm, other=0.0)
    fm = tl.load(F + (b * HQ + h) * T + m, mask=m < T, other=0.0)
    top = tl.full((BM,), float("-inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, DP), tl.float32)
    # From the diagonal back, until nothing is left of what is further away.
    start = pid * BM // BN * BN + (BM // BN - 1) * BN
    going = 1
    while (start >= 0) & (going > 0):
        n = start + tl.arange(0, BN)
        nm = (n < T)[:, None]
        k = tl.load(K + ((b * T + n) * HK + hk)[:, None] * D + d[None, :], mask=nm & dm, other=0.0)
        fn = tl.load(F + (b * HQ + h) * T + n, mask=n < T, other=0.0)
        s = tl.dot(q, k.T) * scale + (fm[:, None] - fn[None, :]) * 1.44269504
        s = tl.where((m[:, None] >= n[None, :]) & (n < T)[None, :], s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        safe = tl.where(new == float("-inf"), 0.0, new)
        p = tl.exp2(s - safe[:, None])
        shrink = tl.exp2(top - safe)
        l = l * shrink + tl.sum(p, 1)
        v = tl.load(V + ((b * T + n) * HK + hk)[:, None] * D + d[None, :], mask=nm & dm, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        top = new
        left = tl.max(tl.where(m < T, fm, -1e30), axis=0) - tl.max(tl.where(n == start, fn, -1e30), axis=0)
        going = (left > -60.0).to(tl.int32)
        start -= BN
    tl.store(O + ((b * T + m) * HQ + h)[:, None] * D + d[None, :], (acc / l[:, None]).to(O.dtype.element_ty), mask=qm & dm)


@case
def attn_forgetting_gates_d112():
    b, t, hq, hk, d = 1, 3000, 16, 4, 112
    out = zeros(b, t, hq, d, dtype="bfloat16")
    gates = torch.log(torch.sigmoid(f32(b, hq, t) + torch.linspace(1, 7, hq, device="cuda")[None, :, None]))
    x = lambda h: rand(b, t, h, d, dtype="bfloat16")
    args = x(hq), x(hk), x(hk), torch.cumsum(gates, 2), out, t, d**-0.5 * 1.44269504
    return run(forgetting_attention, (cdiv(t, 64), hq, b), args, out, HQ=hq, HK=hk, D=d, DP=128, BM=64, BN=32, num_warps=4, num_stages=2)


@triton.jit
def _flex_block(q, K, V, base, m, n, acc, l, top, DOC, T, slope, D: tl.constexpr, PARTIAL: tl.constexpr):
    d = tl.arange(0, D)
    k = tl.load(K + base + n[None, :] * D + d[:, None], mask=(n < T)[None, :], other=0.0)
    s = tl.dot(q, k)
    # The score's change: a slope by distance, and a soft cap.
    s = 30.0 * tl.extra.libdevice.tanh(s * 0.03333333) + slope * (n[None, :] - m[:, None]).to(tl.float32)
    if PARTIAL:
        dm, dn = tl.load(DOC + m, mask=m < T, other=-1), tl.load(DOC + n, mask=n < T, other=-2)
        s = tl.where((m[:, None] >= n[None, :]) & (dm[:, None] == dn[None, :]), s, float("-inf"))
    s = s * 1.44269504
    new = tl.maximum(top, tl.max(s, 1))
    safe = tl.where(new == float("-inf"), 0.0, new)
    p = tl.exp2(s - safe[:, None])
    shrink = tl.exp2(top - safe)
    v = tl.load(V + base + n[:, None] * D + d[None, :], mask=(n < T)[:, None], other=0.0)
    acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
    return acc, l * shrink + tl.sum(p, 1), new


@triton.jit
def flex_template(Q, K, V, O, LSE, DOC, SLOPE, NUM, INDEX, FULL_NUM, FULL_INDEX, scale, T, H, BLOCKS, SPARSE: tl.constexpr, D: tl.constexpr,
                  BM: tl.constexpr, BN: tl.constexpr):
    # Lists of blocks that a mask cuts, and of blocks that it leaves whole; the next list entry is looked up at a block's end.
    pid, bh = tl.program_id(0), tl.program_id(1)
    base = bh * T * D
    m, d = pid * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(Q + base + m[:, None] * D + d[None, :], mask=(m < T)[:, None], other=0.0)
    q = (q.to(tl.float32) * scale).to(q.dtype)
    slope = tl.load(SLOPE + bh % H)
    row = pid * BM // SPARSE
    per: tl.constexpr = SPARSE // BN
    acc = tl.zeros((BM, D), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    top = tl.full((BM,), float("-inf"), tl.float32)
    n = tl.load(INDEX + row * BLOCKS) * SPARSE + tl.arange(0, BN)
    for step in range(0, tl.load(NUM + row) * per):
        acc, l, top = _flex_block(q, K, V, base, m, n, acc, l, top, DOC, T, slope, D, True)
        block = step // per
        here = tl.load(INDEX + row * BLOCKS + block)
        after = tl.load(INDEX + row * BLOCKS + block + 1, mask=block + 1 < BLOCKS, other=0)
        n += tl.where((step + 1) % per == 0, (after - here) * SPARSE - SPARSE + BN, BN)
    n = tl.load(FULL_INDEX + row * BLOCKS) * SPARSE + tl.arange(0, BN)
    for step in range(0, tl.load(FULL_NUM + row) * per):
        acc, l, top = _flex_block(q, K, V, base, m, n, acc, l, top, DOC, T, slope, D, False)
        block = step // per
        here = tl.load(FULL_INDEX + row * BLOCKS + block)
        after = tl.load(FULL_INDEX + row * BLOCKS + block + 1, mask=block + 1 < BLOCKS, other=0)
        n += tl.where((step + 1) % per == 0, (after - here) * SPARSE - SPARSE + BN, BN)
    l = tl.where(l == 0.0, 1.0, l)
    tl.store(O + base + m[:, None] * D + d[None, :], (acc / l[:, None]).to(O.dtype.element_ty), mask=(m < T)[:, None])
    tl.store(LSE + bh * T + m, top + tl.log2(l), mask=m < T)


@case
def attn_flex_documents_softcap():
    b, h, t, d, sparse = 2, 8, 4000, 64, 128
    blocks = cdiv(t, sparse)
    doc = torch.cumsum((uniform(t) < 0.001).int(), 0).int()
    padded = torch.cat((doc, full(10**6, blocks * sparse - t, dtype="int32"))).reshape(blocks, sparse)
    lo, hi = padded.min(1)[0], padded[:, :].max(1)[0]
    i, j = arange(blocks)[:, None], arange(blocks)[None, :]
    some = (j <= i) & (hi[None, :] >= lo[:, None]) & (lo[None, :] <= hi[:, None])
    whole = (j < i) & (lo[None, :] == hi[None, :]) & (lo[:, None] == hi[:, None]) & (lo[None, :] == lo[:, None])
    listed = lambda pick: (pick.sum(1).int(), torch.argsort((~pick).int(), dim=1, stable=True).int().contiguous())
    out, lse = zeros(b, h, t, d), zeros(b, h, t, dtype="float32")
    args = rand(b, h, t, d), rand(b, h, t, d), rand(b, h, t, d), out, lse, doc, -uniform(h) / 64, *listed(some & ~whole), *listed(whole)
    args += d**-0.5, t, h, blocks
    return run(flex_template, (cdiv(t, 128), b * h), args, (out, lse), SPARSE=sparse, D=d, BM=128, BN=32, num_warps=4, num_stages=3)


@triton.jit
def attention_dkdv_of_group(Q, K, V, DO, LSE, DELTA, DK, DV, T, scale, HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, DP: tl.constexpr,
                            BM: tl.constexpr, BN: tl.constexpr):
    # The heads of a group one after the other, and their queries: gradients of the group's keys and values.
    pid, hk, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    n, d = pid * BN + tl.arange(0, BN), tl.arange(0, DP)
    live = (n < T)[:, None] & (d < D)[None, :]
    kv = ((b * T + n) * HK + hk)[:, None] * D + d[None, :]
    k = tl.load(K + kv, mask=live, other=0.0)
    v = tl.load(V + kv, mask=live, other=0.0)
    dk = tl.zeros((BN, DP), tl.float32)
    dv = tl.zeros((BN, DP), tl.float32)
    for g in range(HQ // HK):
        h = hk * (HQ // HK) + g
        for m0 in range(pid * BN // BM * BM, T, BM):
            m = m0 + tl.arange(0, BM)
            ok = (m < T)[:, None] & (d < D)[None, :]
            at = ((b * T + m) * HQ + h)[:, None] * D + d[None, :]
            q = tl.load(Q + at, mask=ok, other=0.0)
            lse = tl.load(LSE + (b * HQ + h) * T + m, mask=m < T, other=0.0)
            s = tl.dot(k, tl.trans(q)) * scale
            p = tl.exp2(s - lse[None, :])
            p = tl.where((m[None, :] >= n[:, None]) & (m < T)[None, :], p, 0.0)
            do = tl.load(DO + at, mask=ok, other=0.0)
            dv = tl.dot(p.to(do.dtype), do, dv)
            dp = tl.dot(v, tl.trans(do))
            delta = tl.load(DELTA + (b * HQ + h) * T + m, mask=m < T, other=0.0)
            ds = p * (dp - delta[None, :])
            dk = tl.dot(ds.to(q.dtype), q, dk)
    tl.store(DK + kv, (dk * (scale * 0.6931472)).to(DK.dtype.element_ty), mask=live)
    tl.store(DV + kv, dv.to(DV.dtype.element_ty), mask=live)


@case
def attn_dkdv_group_in_turn_d96():
    b, hq, hk, t, d = 2, 12, 4, 1111, 96
    x = lambda h: rand(b, t, h, d, dtype="bfloat16")
    dk, dv = zeros(b, t, hk, d, dtype="bfloat16"), zeros(b, t, hk, d, dtype="bfloat16")
    args = x(hq), x(hk), x(hk), x(hq), uniform(b, hq, t) * 2 + 11, f32(b, hq, t), dk, dv, t, d**-0.5 * 1.44269504
    return run(attention_dkdv_of_group, (cdiv(t, 64), hk, b), args, (dk, dv), HQ=hq, HK=hk, D=d, DP=128, BM=32, BN=64, num_warps=4, num_stages=1)


@triton.jit
def _decayed(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def selective_scan_backward(x_ptr, dt_ptr, a_ptr, b_ptr, c_ptr, dy_ptr, state_ptr, dx_ptr, ddt_ptr, db_ptr, dc_ptr, T, D, CT: tl.constexpr,
                            BD: tl.constexpr, N: tl.constexpr):
    # States of a chunk again by a scan from a checkpoint, their gradients by one that runs backward: tiles of [time, channel, state].
    batch, part = tl.program_id(1), tl.program_id(0)
    d, n, i = part * BD + tl.arange(0, BD), tl.arange(0, N), tl.arange(0, CT)
    dm = d < D
    chunks = tl.cdiv(T, CT)
    a = -tl.exp(tl.load(a_ptr + d[:, None] * N + n[None, :], mask=dm[:, None], other=0.0))
    carry = tl.zeros((BD, N), tl.float32)
    for back in range(0, chunks):
        c = chunks - 1 - back
        t = c * CT + i
        live = (t < T)[:, None] & dm[None, :]
        at = (batch * T + t)[:, None] * D + d[None, :]
        x = tl.load(x_ptr + at, mask=live, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + at, mask=live, other=0.0).to(tl.float32)
        dt = tl.load(dt_ptr + at, mask=live, other=0.0)
        after = tl.load(dt_ptr + at + D, mask=(t + 1 < T)[:, None] & dm[None, :], other=0.0)
        bt = tl.load(b_ptr + (batch * T + t)[:, None] * N + n[None, :], mask=(t < T)[:, None], other=0.0).to(tl.float32)
        ct = tl.load(c_ptr + (batch * T + t)[:, None] * N + n[None, :], mask=(t < T)[:, None], other=0.0).to(tl.float32)
        h0 = tl.load(state_ptr + ((batch * chunks + c) * D + d)[:, None] * N + n[None, :], mask=dm[:, None], other=0.0)
        new = (dt * x)[:, :, None] * bt[:, None, :]
        decay, h = tl.associative_scan((tl.exp(dt[:, :, None] * a[None, :, :]), new), 0, _decayed)
        h += decay * h0[None, :, :]
        decay, dh = tl.associative_scan((tl.exp(after[:, :, None] * a[None, :, :]), dy[:, :, None] * ct[:, None, :]), 0, _decayed, reverse=True)
        dh += decay * carry[None, :, :]
        dhb = tl.sum(dh * bt[:, None, :], axis=2)
        ddt = tl.sum(dh * a[None, :, :] * (h - new), axis=2) + dhb * x
        tl.store(dx_ptr + at, (dhb * dt).to(dx_ptr.dtype.element_ty), mask=live)
        tl.store(ddt_ptr + at, ddt, mask=live)
        out = ((part * tl.num_programs(1) + batch) * T + t)[:, None] * N + n[None, :]
        tl.store(db_ptr + out, tl.sum(dh * (dt * x)[:, :, None], axis=1), mask=(t < T)[:, None])
        tl.store(dc_ptr + out, tl.sum(dy[:, :, None] * h, axis=1), mask=(t < T)[:, None])
        carry = tl.sum(tl.where((i == 0)[:, None, None], dh, 0.0), axis=0)


@case
def selective_scan_gradients_in_3d():
    batch, t, d, n, ct, bd = 4, 500, 1024, 16, 16, 8
    parts, chunks = d // bd, cdiv(t, ct)
    dx, ddt = zeros(batch, t, d), zeros(batch, t, d, dtype="float32")
    db, dc = zeros(parts, batch, t, n, dtype="float32"), zeros(parts, batch, t, n, dtype="float32")
    args = rand(batch, t, d), uniform(batch, t, d) * 0.1, f32(d, n) * 0.3, rand(batch, t, n), rand(batch, t, n), rand(batch, t, d)
    args += f32(batch, chunks, d, n), dx, ddt, db, dc, t, d
    return run(selective_scan_backward, (parts, batch), args, (dx, ddt, db, dc), CT=ct, BD=bd, N=n, num_warps=4)


@triton.jit
def group_policy_loss(logit_ptr, id_ptr, old_ptr, ref_ptr, adv_ptr, mask_ptr, loss_ptr, kl_ptr, entropy_ptr, grad_ptr, V, L, beta, low, high, inverse_t,
                      BLOCK: tl.constexpr):
    # GRPO of one token: its log probability and entropy online, clipped ratio and k3 divergence, and the logits' gradient.
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    if tl.load(mask_ptr + row) == 0:
        for v0 in range(0, V, BLOCK):
            tl.store(grad_ptr + row * V + v0 + c, tl.zeros((BLOCK,), tl.bfloat16), mask=v0 + c < V)
        tl.store(loss_ptr + row, 0.0)
        tl.store(kl_ptr + row, 0.0)
        tl.store(entropy_ptr + row, 0.0)
        return
    m = float("-inf")
    total = 0.0
    weighted = 0.0
    for v0 in range(0, V, BLOCK):
        x = tl.load(logit_ptr + row * V + v0 + c, mask=v0 + c < V, other=float("-inf")).to(tl.float32) * inverse_t
        new = tl.maximum(m, tl.max(x, axis=0))
        e = tl.exp(x - new)
        shrink = tl.exp(m - new)
        total = total * shrink + tl.sum(e, axis=0)
        weighted = weighted * shrink + tl.sum(tl.where(v0 + c < V, e * x, 0.0), axis=0)
        m = new
    lse = m + tl.log(total)
    chosen = tl.load(id_ptr + row)
    logp = tl.load(logit_ptr + row * V + chosen).to(tl.float32) * inverse_t - lse
    ratio = tl.exp(logp - tl.load(old_ptr + row))
    adv = tl.load(adv_ptr + row // L)
    clipped = tl.minimum(tl.maximum(ratio, 1.0 - low), 1.0 + high)
    diff = tl.load(ref_ptr + row) - logp
    kl = tl.exp(diff) - diff - 1.0
    loss = -tl.minimum(ratio * adv, clipped * adv) + beta * kl
    # The gradient by the log probability: none where the clipped branch is the smaller one.
    inside = (ratio * adv) <= (clipped * adv)
    coef = tl.where(inside, -ratio * adv, 0.0) + beta * (1.0 - tl.exp(diff))
    tl.store(loss_ptr + row, loss)
    tl.store(kl_ptr + row, kl)
    tl.store(entropy_ptr + row, lse - weighted / total)
    for v0 in range(0, V, BLOCK):
        x = tl.load(logit_ptr + row * V + v0 + c, mask=v0 + c < V, other=float("-inf")).to(tl.float32) * inverse_t
        g = (tl.where(v0 + c == chosen, 1.0, 0.0) - tl.exp(x - lse)) * (coef * inverse_t)
        tl.store(grad_ptr + row * V + v0 + c, (g * 1024.0).to(tl.bfloat16), mask=v0 + c < V)


@case
def policy_loss_and_gradient_of_logits():
    rows, length, v = 480, 120, 100_003
    loss, kl, entropy = (zeros(rows, dtype="float32") for _ in range(3))
    grad = zeros(rows, v, dtype="bfloat16")
    args = rand(rows, v, dtype="bfloat16"), ints(0, v, rows, dtype="int64"), f32(rows) * 0.2 - 12, f32(rows) * 0.2 - 12, f32(rows // length)
    args += (uniform(rows) < 0.9), loss, kl, entropy, grad, v, length, 0.04, 0.2, 0.28, 1 / 0.9
    return run(group_policy_loss, (rows,), args, (loss, kl, entropy, grad), BLOCK=8192, num_warps=16)


@triton.jit
def verify_tree(target_ptr, token_ptr, child_ptr, sibling_ptr, coin_ptr, last_ptr, path_ptr, count_ptr, out_ptr, V, NODES, DEPTH: tl.constexpr,
                BLOCK: tl.constexpr):
    # Down a tree of drafts: siblings are tried until one is taken; at the end one token more, drawn from what is left.
    r = tl.program_id(0)
    base = r * NODES
    i = tl.arange(0, BLOCK)
    node = 0
    depth = 0
    going = 1
    while going > 0:
        child = tl.load(child_ptr + base + node)
        coin = tl.load(coin_ptr + r * DEPTH + depth)
        acc = 0.0
        taken = -1
        while (child >= 0) & (taken < 0):
            acc += tl.load(target_ptr + (base + node).to(tl.int64) * V + tl.load(token_ptr + base + child))
            if coin <= acc:
                taken = child
            else:
                child = tl.load(sibling_ptr + base + child)
        going = ((taken >= 0) & (depth + 1 < DEPTH)).to(tl.int32)
        if taken >= 0:
            tl.store(path_ptr + r * DEPTH + depth, taken)
            depth += 1
            node = taken
    tl.store(count_ptr + r, depth)
    p_ptr = target_ptr + (base + node).to(tl.int64) * V
    full_path = depth == DEPTH
    total = 0.0
    for v0 in range(0, V, BLOCK):
        p = tl.load(p_ptr + v0 + i, mask=v0 + i < V, other=0.0)
        total += tl.sum(p, axis=0)
    child = tl.load(child_ptr + base + node)
    while (child >= 0) & (not full_path):
        total -= tl.load(p_ptr + tl.load(token_ptr + base + child))
        child = tl.load(sibling_ptr + base + child)
    goal = total * tl.load(last_ptr + r)
    seen = 0.0
    v0 = 0
    answer = V - 1
    while v0 < V:
        p = tl.load(p_ptr + v0 + i, mask=v0 + i < V, other=0.0)
        child = tl.load(child_ptr + base + node)
        while (child >= 0) & (not full_path):
            p = tl.where(v0 + i == tl.load(token_ptr + base + child), 0.0, p)
            child = tl.load(sibling_ptr + base + child)
        sums = seen + tl.cumsum(p, axis=0)
        hit = tl.min(tl.where((sums > goal) & (v0 + i < V), v0 + i, V), axis=0)
        if hit < V:
            answer = hit
            v0 = V
        seen += tl.sum(p, axis=0)
        v0 += BLOCK
    tl.store(out_ptr + r, answer)


@case
def verify_trees_of_drafts():
    requests, depth, wide, v = 96, 4, 3, 32_000
    nodes = 1 + depth * wide
    child, sibling = full(-1, requests, nodes, dtype="int32"), full(-1, requests, nodes, dtype="int32")
    token = ints(0, v, requests, nodes)
    target = torch.softmax(f32(requests, nodes, v), 2)
    # Each level's first node has the next level's nodes as children, likely ones.
    for level in range(depth):
        parent, first = max(0, 1 + (level - 1) * wide), 1 + level * wide
        child[:, parent] = first
        target[:, parent].scatter_(1, token[:, first : first + wide].long(), 0.8)
        for j in range(wide - 1):
            sibling[:, first + j] = first + j + 1
    target /= target.sum(2, keepdim=True)
    path, count, out = zeros(requests, depth, dtype="int32"), zeros(requests, dtype="int32"), zeros(requests, dtype="int32")
    args = target, token, child, sibling, uniform(requests, depth), uniform(requests), path, count, out, v, nodes
    return run(verify_tree, (requests,), args, (path, count, out), DEPTH=depth, BLOCK=2048, num_warps=8)


@triton.jit
def observed_key_scores(Q, K, RAW, SCORE, T, scale, GROUP: tl.constexpr, D: tl.constexpr, W: tl.constexpr, BN: tl.constexpr, POOL: tl.constexpr):
    # SnapKV: how much the last W queries of a head look at each key, smoothed; statistics, weights and smoothing in three phases.
    h, b = tl.program_id(0), tl.program_id(1)
    heads = tl.num_programs(0)
    w, d = tl.arange(0, W), tl.arange(0, D)
    q = tl.load(Q + ((b * T + T - W + w) * heads + h)[:, None] * D + d[None, :])
    kv = heads // GROUP
    base = K + (b * T * kv + h // GROUP) * D
    m = tl.full((W,), float("-inf"), tl.float32)
    l = tl.zeros((W,), tl.float32)
    for n0 in range(0, T, BN):
        n = n0 + tl.arange(0, BN)
        k = tl.load(base + n[None, :] * kv * D + d[:, None], mask=(n < T)[None, :], other=0.0)
        s = tl.dot(q, k) * scale
        s = tl.where(n[None, :] <= (T - W + w)[:, None], s, float("-inf"))
        new = tl.maximum(m, tl.max(s, 1))
        l = l * tl.exp2(m - new) + tl.sum(tl.exp2(s - new[:, None]), 1)
        m = new
    out = (b * heads + h) * (T - W)
    for n0 in range(0, T - W, BN):
        n = n0 + tl.arange(0, BN)
        k = tl.load(base + n[None, :] * kv * D + d[:, None], mask=(n < T - W)[None, :], other=0.0)
        p = tl.exp2(tl.dot(q, k) * scale - m[:, None]) / l[:, None]
        tl.store(RAW + out + n, tl.sum(p, 0), mask=n < T - W)
    tl.debug_barrier()
    for n0 in range(0, T - W, BN):
        n = n0 + tl.arange(0, BN)
        total = tl.zeros((BN,), tl.float32)
        for j in tl.static_range(-(POOL // 2), POOL // 2 + 1):
            total += tl.load(RAW + out + n + j, mask=(n + j >= 0) & (n + j < T - W), other=0.0)
        tl.store(SCORE + out + n, total / POOL, mask=n < T - W)


@case
def cache_scores_of_last_queries():
    b, t, h, group, d, w = 4, 3000, 32, 4, 128, 32
    raw, score = zeros(b, h, t - w, dtype="float32"), zeros(b, h, t - w, dtype="float32")
    args = rand(b, t, h, d), rand(b, t, h // group, d), raw, score, t, d**-0.5 * 1.44269504
    return run(observed_key_scores, (h, b), args, score, GROUP=group, D=d, W=w, BN=128, POOL=7, num_warps=4, num_stages=2)


@triton.jit
def quantize_keys_2_bits(K, CODE, SCALE, ZERO, T, D: tl.constexpr, GROUP: tl.constexpr):
    # KIVI: channels of 32 tokens by their least and largest, 16 codes of two bits in a word.
    g, bh = tl.program_id(0), tl.program_id(1)
    i, d = tl.arange(0, GROUP), tl.arange(0, D)
    x = tl.load(K + (bh * T + g * GROUP + i)[:, None] * D + d[None, :]).to(tl.float32)
    low, high = tl.min(x, 0), tl.max(x, 0)
    scale = tl.maximum((high - low) / 3.0, 1e-6)
    q = tl.clamp(tl.floor((x - low[None, :]) / scale[None, :] + 0.5), 0.0, 3.0).to(tl.int32)
    words: tl.constexpr = GROUP // 16
    q = tl.reshape(q, (words, 16, D)) << (2 * tl.arange(0, 16))[None, :, None]
    at = bh * (T // GROUP) + g
    tl.store(CODE + (at * words + tl.arange(0, words))[:, None] * D + d[None, :], tl.sum(q, 1))
    tl.store(SCALE + at * D + d, scale.to(SCALE.dtype.element_ty))
    tl.store(ZERO + at * D + d, low.to(ZERO.dtype.element_ty))


@case
def cache_keys_to_two_bits():
    bh, t, d, group = 128, 2048, 128, 32
    code, scale, zero = zeros(bh, t // 16, d, dtype="int32"), zeros(bh, t // group, d), zeros(bh, t // group, d)
    args = rand(bh, t, d), code, scale, zero, t
    launched = run(quantize_keys_2_bits, (t // group, bh), args, (code, scale, zero), D=d, GROUP=group, num_warps=4)
    return viewed(launched, lambda out: (far(out[0][..., None] >> arange(16) * 2 & 3), out[1], out[2]))


@triton.jit
def decode_two_bit_cache(Q, KC, KS, KZ, VC, VS, VZ, O, LSE, T, scale, KV: tl.constexpr, GROUP_Q: tl.constexpr, D: tl.constexpr, BN: tl.constexpr,
                         SPLITS: tl.constexpr):
    # Keys packed along time with scales for channels, values packed along channels with scales for tokens.
    split, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    g, d = tl.arange(0, 16), tl.arange(0, D)
    gm = (g < GROUP_Q)[:, None]
    head = b * KV + h
    q = tl.load(Q + (head * GROUP_Q + g)[:, None] * D + d[None, :], mask=gm, other=0.0)
    each = T // SPLITS
    m = tl.full((16,), float("-inf"), tl.float32)
    l = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, D), tl.float32)
    shift = 2 * tl.arange(0, 16)
    for n0 in range(split * each, split * each + each, BN):
        words = tl.load(KC + (head * (T // 16) + n0 // 16 + tl.arange(0, BN // 16))[:, None] * D + d[None, :])
        k = tl.reshape(((words[:, None, :] >> shift[None, :, None]) & 3), (BN // 32, 32, D)).to(tl.float32)
        at = (head * (T // 32) + n0 // 32 + tl.arange(0, BN // 32))[:, None] * D + d[None, :]
        k = k * tl.load(KS + at).to(tl.float32)[:, None, :] + tl.load(KZ + at).to(tl.float32)[:, None, :]
        k = tl.reshape(k, (BN, D)).to(q.dtype)
        s = tl.dot(q, tl.trans(k)) * scale
        new = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(m - new)
        l = l * shrink + tl.sum(p, 1)
        n = head * T + n0 + tl.arange(0, BN)
        packed = tl.load(VC + n[:, None] * (D // 16) + tl.arange(0, D // 16)[None, :])
        v = tl.reshape((packed[:, :, None] >> shift[None, None, :]) & 3, (BN, D)).to(tl.float32)
        v = v * tl.load(VS + n).to(tl.float32)[:, None] + tl.load(VZ + n).to(tl.float32)[:, None]
        acc = tl.dot(p.to(q.dtype), v.to(q.dtype), acc * shrink[:, None])
        m = new
    out = (head * GROUP_Q + g) * SPLITS + split
    tl.store(O + out[:, None] * D + d[None, :], acc / l[:, None], mask=gm)
    tl.store(LSE + out, m + tl.log2(l), mask=g < GROUP_Q)


@case
def attn_decode_two_bit_cache():
    b, kv, group, t, d, splits = 24, 8, 7, 4096, 128, 2
    bits = lambda *shape: ints(-(2**31), 2**31 - 1, *shape)
    out, lse = zeros(b, kv * group, splits, d, dtype="float32"), zeros(b, kv * group, splits, dtype="float32")
    args = rand(b, kv * group, d), bits(b, kv, t // 16, d), uniform(b, kv, t // 32, d).half(), rand(b, kv, t // 32, d)
    args += bits(b, kv, t, d // 16), uniform(b, kv, t).half(), rand(b, kv, t), out, lse, t, d**-0.5 * 1.44269504
    return run(decode_two_bit_cache, (splits, kv, b), args, (out, lse), KV=kv, GROUP_Q=group, D=d, BN=64, SPLITS=splits, num_warps=2, num_stages=3)


@triton.jit
def schedule_free_step(y_ptr, z_ptr, low_ptr, v_ptr, g_ptr, lr, weight, beta1, beta2, correction, eps, decay, N, BLOCK: tl.constexpr):
    # Schedule-free AdamW: two points of bfloat16, of which one keeps what rounding loses.
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    y, z = tl.load(y_ptr + i, mask=live).to(tl.float32), tl.load(z_ptr + i, mask=live).to(tl.float32)
    low = tl.load(low_ptr + i, mask=live).to(tl.float32)
    g = tl.load(g_ptr + i, mask=live).to(tl.float32)
    v = tl.load(v_ptr + i, mask=live) * beta2 + g * g * (1.0 - beta2)
    step = g / (tl.sqrt_rn(v / correction) + eps) + decay * y
    y += weight * (z - y) - lr * (1.0 - beta1 * (1.0 - weight)) * step
    # z and its lost part by Kahan.
    change = -lr * step + low
    new = (z + change).to(tl.bfloat16)
    low = change - (new.to(tl.float32) - z)
    tl.store(y_ptr + i, y.to(tl.bfloat16), mask=live)
    tl.store(z_ptr + i, new, mask=live)
    tl.store(low_ptr + i, low.to(tl.bfloat16), mask=live)
    tl.store(v_ptr + i, v, mask=live)


@case
def schedule_free_step_compensated():
    n = 12_345_678
    x = lambda: rand(n, dtype="bfloat16")
    y, z, low, v, g = x(), x(), x() / 512, f32(n) ** 2, x()
    before = [t.clone() for t in (y, z, low, v)]
    launch, args = run(schedule_free_step, (cdiv(n, 1024),), (y, z, low, v, g, 1e-3, 0.01, 0.9, 0.99, 0.63, 1e-8, 0.01, n), (y, z, v), BLOCK=1024, num_warps=4)
    return (lambda *args: ([t.copy_(b) for t, b in zip((y, z, low, v), before)], launch(*args))[1]), args


@triton.jit
def adam_fp8_moments(p_ptr, g_ptr, m_ptr, v_ptr, ms_ptr, vs_ptr, lr, beta1, beta2, eps, decay, c1, c2, GROUPS: tl.constexpr, GROUP: tl.constexpr):
    # Moments of 8 bits in two formats, with a scale for each 256; the second one as its square root.
    g = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    at = g[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    grad = tl.load(g_ptr + at).to(tl.float32)
    m = tl.load(m_ptr + at).to(tl.float32) * tl.load(ms_ptr + g)[:, None]
    r = tl.load(v_ptr + at).to(tl.float32) * tl.load(vs_ptr + g)[:, None]
    m = beta1 * m + (1.0 - beta1) * grad
    v = beta2 * r * r + (1.0 - beta2) * grad * grad
    p = tl.load(p_ptr + at).to(tl.float32)
    p = p * (1.0 - lr * decay) - lr * (m / c1) / (tl.sqrt(v / c2) + eps)
    r = tl.sqrt(v)
    ms = tl.maximum(tl.max(tl.abs(m), 1) / 448.0, 1e-12)
    vs = tl.maximum(tl.max(r, 1) / 57344.0, 1e-12)
    tl.store(p_ptr + at, p.to(p_ptr.dtype.element_ty))
    tl.store(m_ptr + at, (m / ms[:, None]).to(tl.float8e4nv))
    tl.store(v_ptr + at, (r / vs[:, None]).to(tl.float8e5))
    tl.store(ms_ptr + g, ms)
    tl.store(vs_ptr + g, vs)


@case
def adam_moments_in_two_fp8_formats():
    n, group = 8_388_608, 256
    p, m, v = rand(n, dtype="bfloat16"), f8(n), rand(n).abs().to(torch.float8_e5m2)
    ms, vs = uniform(n // group), uniform(n // group)
    before = [t.clone() for t in (p, m, v, ms, vs)]
    args = p, rand(n, dtype="bfloat16"), m, v, ms, vs, 1e-3, 0.9, 0.95, 1e-8, 0.1, 0.3, 0.2
    launch, args = run(adam_fp8_moments, (n // group // 8,), args, (p, m, v, ms, vs), GROUPS=8, GROUP=group, num_warps=8)
    again = lambda *args: ([t.copy_(b) for t, b in zip((p, m, v, ms, vs), before)], launch(*args))[1]
    return viewed((again, args), lambda out: (out[0], far8(out[1]), far8(out[2]), out[3], out[4]))


@triton.jit
def rotate_video_pairs(x_ptr, table_ptr, y_ptr, T, HEIGHT, WIDTH, HEADS, H: tl.constexpr, PAIRS: tl.constexpr, PP: tl.constexpr, FIRST: tl.constexpr):
    # Positions in time, height and width turn a part of the pairs each; angles in double precision, as complex numbers have them.
    t, b = tl.program_id(0), tl.program_id(1)
    frame, row, col = t // (HEIGHT * WIDTH), t // WIDTH % HEIGHT, t % WIDTH
    j, h = tl.arange(0, PP), tl.arange(0, H)
    third: tl.constexpr = (PAIRS - FIRST) // 2
    place = tl.where(j < FIRST, frame, tl.where(j < FIRST + third, row, col))
    cos = tl.load(table_ptr + (place * PAIRS + j) * 2, mask=j < PAIRS, other=1.0)[None, :]
    sin = tl.load(table_ptr + (place * PAIRS + j) * 2 + 1, mask=j < PAIRS, other=0.0)[None, :]
    i = tl.arange(0, 2 * PP)
    at = ((b * T + t) * HEADS + h)[:, None] * (2 * PAIRS) + i[None, :]
    live = (h < HEADS)[:, None] & (i < 2 * PAIRS)[None, :]
    x = tl.load(x_ptr + at, mask=live, other=0.0).to(tl.float64)
    re, im = tl.split(tl.reshape(x, (H, PP, 2)))
    y = tl.reshape(tl.join(re * cos - im * sin, re * sin + im * cos), (H, 2 * PP))
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=live)


@case
def rotary_video_in_double_d80():
    b, frames, height, width, heads, pairs = 1, 8, 30, 45, 12, 40
    t = frames * height * width
    angle = torch.arange(64, device="cuda").double()[:, None] * 10000.0 ** -(torch.arange(pairs, device="cuda").double() / pairs)[None, :]
    table = torch.stack((torch.cos(angle), torch.sin(angle)), 2).contiguous()
    y = zeros(b, t, heads, 2 * pairs, dtype="bfloat16")
    args = rand(b, t, heads, 2 * pairs, dtype="bfloat16"), table, y, t, height, width, heads
    return run(rotate_video_pairs, (t, b), args, y, H=16, PAIRS=pairs, PP=64, FIRST=16, num_warps=4)


@triton.jit
def router_gradient(p_ptr, id_ptr, dw_ptr, aux_ptr, dx_ptr, M, E: tl.constexpr, K: tl.constexpr, KP: tl.constexpr, BM: tl.constexpr):
    # Back through renormalized weights of the chosen experts and a softmax over all, and a balancing loss.
    m, k, e = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, KP), tl.arange(0, E)
    ok = (m < M)[:, None] & (k < K)[None, :]
    ids = tl.load(id_ptr + m[:, None] * K + k[None, :], mask=ok, other=-1)
    dw = tl.load(dw_ptr + m[:, None] * K + k[None, :], mask=ok, other=0.0)
    p = tl.load(p_ptr + m[:, None] * E + e[None, :], mask=(m < M)[:, None], other=0.0)
    hot = ids[:, :, None] == e[None, None, :]
    picked = tl.sum(tl.where(hot, p[:, None, :], 0.0), 2)
    total = tl.sum(picked, 1)[:, None] + 1e-20
    w = picked / total
    dpicked = (dw - tl.sum(dw * w, 1)[:, None]) / total
    dp = tl.sum(tl.where(hot, dpicked[:, :, None], 0.0), 1) + tl.load(aux_ptr + e)[None, :]
    dx = p * (dp - tl.sum(dp * p, 1)[:, None])
    tl.store(dx_ptr + m[:, None] * E + e[None, :], dx, mask=(m < M)[:, None])


@case
def router_gradient_by_comparisons():
    m, e, k = 20_000, 128, 6
    p = torch.softmax(f32(m, e), 1)
    dx = zeros(m, e, dtype="float32")
    args = p, torch.topk(p, k)[1].int(), f32(m, k), f32(e), dx, m
    return run(router_gradient, (cdiv(m, 4),), args, dx, E=e, K=k, KP=8, BM=4, num_warps=4)


@triton.jit
def _invert_16(A, at, T):
    # (I + A)^-1 of a unit lower triangle of 16, row by row.
    i = tl.arange(0, 16)
    a = tl.load(A + (at + i)[:, None] * 64 + (at % 64 + i)[None, :], mask=(at + i < T)[:, None], other=0.0)
    x = tl.where(i[:, None] > i[None, :], -a, 0.0)
    for r in range(2, tl.minimum(16, T - at)):
        row = -tl.load(A + (at + r) * 64 + at % 64 + i)
        row = tl.where(i < r, row, 0.0)
        row += tl.sum(row[:, None] * x, 0)
        x = tl.where((i == r)[:, None], row[None, :], x)
    return x + (i[:, None] == i[None, :]).to(tl.float32)


@triton.jit
def _block_16(A, at, column, T):
    i = tl.arange(0, 16)
    return tl.load(A + (at + i)[:, None] * 64 + column + i[None, :], mask=(at + i < T)[:, None], other=0.0)


@triton.jit
def invert_triangles(A_ptr, X_ptr, T):
    # 64 x 64 triangles of the delta rule: four inverses of 16, and what joins them by chains of dots.
    c, bh = tl.program_id(0), tl.program_id(1)
    A = A_ptr + bh * T * 64
    X = X_ptr + bh * T * 64
    t = c * 64
    x11, x22, x33, x44 = _invert_16(A, t, T), _invert_16(A, t + 16, T), _invert_16(A, t + 32, T), _invert_16(A, t + 48, T)
    a21, a32, a43 = _block_16(A, t + 16, 0, T), _block_16(A, t + 32, 16, T), _block_16(A, t + 48, 32, T)
    a31, a42, a41 = _block_16(A, t + 32, 0, T), _block_16(A, t + 48, 16, T), _block_16(A, t + 48, 0, T)
    x21 = -tl.dot(tl.dot(x22, a21, input_precision="ieee"), x11, input_precision="ieee")
    x32 = -tl.dot(tl.dot(x33, a32, input_precision="ieee"), x22, input_precision="ieee")
    x43 = -tl.dot(tl.dot(x44, a43, input_precision="ieee"), x33, input_precision="ieee")
    s31 = tl.dot(a31, x11, input_precision="ieee") + tl.dot(a32, x21, input_precision="ieee")
    s42 = tl.dot(a42, x22, input_precision="ieee") + tl.dot(a43, x32, input_precision="ieee")
    x31 = -tl.dot(x33, s31, input_precision="ieee")
    x42 = -tl.dot(x44, s42, input_precision="ieee")
    s41 = tl.dot(a41, x11, input_precision="ieee") + tl.dot(a42, x21, input_precision="ieee") + tl.dot(a43, x31, input_precision="ieee")
    x41 = -tl.dot(x44, s41, input_precision="ieee")
    i = tl.arange(0, 16)
    low = X + i[:, None] * 64 + i[None, :]
    m1, m2, m3, m4 = (t + i < T)[:, None], (t + 16 + i < T)[:, None], (t + 32 + i < T)[:, None], (t + 48 + i < T)[:, None]
    tl.store(low + t * 64, x11, mask=m1)
    tl.store(low + (t + 16) * 64, x21, mask=m2)
    tl.store(low + (t + 16) * 64 + 16, x22, mask=m2)
    tl.store(low + (t + 32) * 64, x31, mask=m3)
    tl.store(low + (t + 32) * 64 + 16, x32, mask=m3)
    tl.store(low + (t + 32) * 64 + 32, x33, mask=m3)
    tl.store(low + (t + 48) * 64, x41, mask=m4)
    tl.store(low + (t + 48) * 64 + 16, x42, mask=m4)
    tl.store(low + (t + 48) * 64 + 32, x43, mask=m4)
    tl.store(low + (t + 48) * 64 + 48, x44, mask=m4)


@case
def delta_rule_triangles_inverted():
    bh, t = 64, 2000
    a = f32(bh, t, 64) * 0.1
    x = zeros(bh, t, 64, dtype="float32")
    return run(invert_triangles, (cdiv(t, 64), bh), (a, x, t), x, num_warps=2, num_stages=2)


@triton.jit
def gated_scores_of_a_block(Q, K, G, BETA, AQ, AK, T, scale, H: tl.constexpr, D: tl.constexpr, C: tl.constexpr):
    # KDA: gates for each channel, so that scores inside a block of 16 are sums, a key at a time, in log space.
    c, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i, d = tl.arange(0, C), tl.arange(0, D)
    t = c * C + i
    live = (t < T)[:, None]
    at = ((b * T + t) * H + h)[:, None] * D + d[None, :]
    q, k = tl.load(Q + at, mask=live, other=0.0).to(tl.float32) * scale, tl.load(K + at, mask=live, other=0.0).to(tl.float32)
    g = tl.load(G + at, mask=live, other=0.0)
    k = k * tl.load(BETA + (b * T + t) * H + h, mask=t < T, other=0.0)[:, None]
    for j in range(0, tl.minimum(C, T - c * C)):
        one = ((b * T + c * C + j) * H + h) * D + d
        kj = tl.load(K + one).to(tl.float32)[None, :] * tl.exp2(tl.minimum(g - tl.load(G + one)[None, :], 0.0))
        aq = tl.where(i >= j, tl.sum(q * kj, 1), 0.0)
        ak = tl.where(i > j, tl.sum(k * kj, 1), 0.0)
        out = ((b * T + t) * H + h) * C + j
        tl.store(AQ + out, aq.to(AQ.dtype.element_ty), mask=t < T)
        tl.store(AK + out, ak, mask=t < T)


@case
def delta_attention_scores_inside_blocks():
    b, t, h, d, c = 1, 6000, 16, 128, 16
    aq, ak = zeros(b, t, h, c, dtype="bfloat16"), zeros(b, t, h, c, dtype="float32")
    x = lambda: rand(b, t, h, d, dtype="bfloat16")
    g = torch.cumsum(-uniform(b, t, h, d) * 0.1, 1).contiguous()
    args = x(), x(), g, uniform(b, t, h), aq, ak, t, d**-0.5
    return run(gated_scores_of_a_block, (cdiv(t, c), h, b), args, (aq, ak), H=h, D=d, C=c, num_warps=1)


@triton.jit
def cast_transpose_bias(x_ptr, g_ptr, scale_ptr, q_ptr, qt_ptr, amax_ptr, bias_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    # Back through squared relu, and to FP8 twice, once transposed; the bias' gradient of a block of rows, and the largest of all.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    live = (m < M)[:, None] & (n < N)[None, :]
    at = m[:, None] * N + n[None, :]
    x = tl.load(x_ptr + at, mask=live, other=0.0).to(tl.float32)
    g = tl.load(g_ptr + at, mask=live, other=0.0).to(tl.float32)
    d = 2.0 * tl.maximum(x, 0.0) * g
    tl.atomic_max(amax_ptr, tl.max(tl.abs(d)))
    tl.store(bias_ptr + tl.program_id(0) * N + n, tl.sum(d, axis=0), mask=n < N)
    q = tl.clamp(d * tl.load(scale_ptr), -448.0, 448.0).to(tl.float8e4nv)
    tl.store(q_ptr + at, q, mask=live)
    tl.store(qt_ptr + n[:, None] * M + m[None, :], tl.trans(q), mask=(n < N)[:, None] & (m < M)[None, :])


@case
def cast_to_fp8_and_its_transpose():
    m, n = 5000, 3072
    q, qt = zeros(m, n, dtype="uint8").view(torch.float8_e4m3fn), zeros(n, m, dtype="uint8").view(torch.float8_e4m3fn)
    amax, bias = zeros(1, dtype="float32"), zeros(cdiv(m, 64), n, dtype="float32")
    x = lambda: rand(m, n, dtype="bfloat16")
    args = x(), x(), full(20.0, 1), q, qt, amax, bias, m, n
    launched = run(cast_transpose_bias, (cdiv(m, 64), n // 128), args, (q, qt, amax, bias), BM=64, BN=128, num_warps=8)

    def reference():
        # Of Triton 3.6's own code the transposed bytes differ from this.
        d = 2 * args[0].float().clamp(min=0) * args[1].float()
        sums = torch.zeros(bias.shape[0] * 64, n, device=d.device)
        sums[:m] = d
        codes = (d * 20).clamp(-448, 448).to(torch.float8_e4m3fn)
        return far8(codes), far8(codes.t().contiguous()), d.abs().max().reshape(1), sums.reshape(-1, 64, n).sum(1)

    return against(viewed(launched, lambda out: (far8(out[0]), far8(out[1]), out[2], out[3])), reference)


@triton.jit
def int8_scores_attention(Q, QS, K, KS, V, O, T, HQ, HK, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # SageAttention: scores of bytes with a scale for each block, weights and values in half precision.
    pid, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    hk = h // (HQ // HK)
    m, d = pid * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(Q + ((b * HQ + h) * T + m)[:, None] * D + d[None, :], mask=(m < T)[:, None], other=0)
    qs = tl.load(QS + (b * HQ + h) * tl.num_programs(0) + pid)
    top = tl.full((BM,), float("-inf"), tl.float32)
    l = tl.full((BM,), 1.0, tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    blocks = tl.cdiv(T, BN)
    base = (b * HK + hk) * T
    for j in range(0, blocks):
        n = j * BN + tl.arange(0, BN)
        k = tl.load(K + (base + n)[None, :] * D + d[:, None], mask=(n < T)[None, :], other=0)
        s = tl.dot(q, k).to(tl.float32) * (qs * tl.load(KS + (b * HK + hk) * blocks + j))
        s = tl.where((n < T)[None, :], s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(top - new)
        l = l * shrink + tl.sum(p, 1)
        v = tl.load(V + (base + n)[:, None] * D + d[None, :], mask=(n < T)[:, None], other=0.0)
        acc = acc * shrink[:, None]
        acc += tl.dot(p.to(tl.float16), v, out_dtype=tl.float16)
        top = new
    tl.store(O + ((b * HQ + h) * T + m)[:, None] * D + d[None, :], (acc / l[:, None]).to(O.dtype.element_ty), mask=(m < T)[:, None])


@case
def attn_int8_scores_half_sums():
    b, hq, hk, t, d = 2, 16, 8, 1900, 64
    out = zeros(b, hq, t, d)
    q, k = ints(-127, 128, b, hq, t, d, dtype="int8"), ints(-127, 128, b, hk, t, d, dtype="int8")
    args = q, uniform(b, hq, cdiv(t, 128)) * 0.004, k, uniform(b, hk, cdiv(t, 64)) * 0.02, rand(b, hk, t, d), out, t, hq, hk
    return run(int8_scores_attention, (cdiv(t, 128), hq, b), args, out, D=d, BM=128, BN=64, num_warps=4, num_stages=4)


@triton.jit
def extend_e5m2_pages(Q, KC, VC, TABLE, START, LENGTH, O, scale, cap, PAGES, HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr,
                      BM: tl.constexpr):
    # A chunk of a prompt against a cache of e5m2 in pages, heads of 256 with capped scores, a page at a time.
    pid, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first, last = tl.load(START + b), tl.load(START + b + 1)
    if pid * BM >= last - first:
        return
    hk = h // (HQ // HK)
    length = tl.load(LENGTH + b)
    i, d, j = pid * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, PAGE)
    qm = (first + i < last)[:, None]
    place = length - (last - first) + i
    q = tl.load(Q + ((first + i) * HQ + h)[:, None] * D + d[None, :], mask=qm, other=0.0)
    top = tl.full((BM,), -1e30, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for page in range(0, tl.cdiv(length - (last - first) + (pid + 1) * BM, PAGE)):
        n = page * PAGE + j
        block = tl.load(TABLE + b * PAGES + page, mask=page < PAGES, other=0).to(tl.int64)
        at = ((block * PAGE + j) * HK + hk) * D
        k = tl.load(KC + at[None, :] + d[:, None], mask=(n < length)[None, :], other=0.0).to(q.dtype)
        s = tl.dot(q, k) * scale
        s = cap * (1.0 - 2.0 / (1.0 + tl.exp(2.0 * s / cap)))
        s = tl.where((n[None, :] <= place[:, None]) & (n < length)[None, :], s * 1.44269504, -1e30)
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(top - new)
        l = l * shrink + tl.sum(p, 1)
        v = tl.load(VC + at[:, None] + d[None, :], mask=(n < length)[:, None], other=0.0).to(q.dtype)
        acc = tl.dot(p.to(q.dtype), v, acc * shrink[:, None])
        top = new
    tl.store(O + ((first + i) * HQ + h)[:, None] * D + d[None, :], (acc / l[:, None]).to(O.dtype.element_ty), mask=qm)


@case
def attn_extend_e5m2_pages_d256():
    b, hq, hk, d, page, pages = 6, 8, 4, 256, 32, 100
    new = arange(b) * 77 + 60
    start = zeros(b + 1, dtype="int32")
    start[1:] = new.cumsum(0)
    length = (new + arange(b) * 431 % 1700 + 40).int()
    total = int(start[-1])
    out = zeros(total, hq, d, dtype="bfloat16")
    cache = lambda: f8(900, page, hk, d, dtype="float8_e5m2")
    args = rand(total, hq, d, dtype="bfloat16"), cache(), cache(), ints(0, 900, b, pages), start, length, out, d**-0.5, 50.0, pages
    grid = cdiv(int(new.max()), 64), hq, b
    return run(extend_e5m2_pages, grid, args, out, HQ=hq, HK=hk, D=d, PAGE=page, BM=64, num_warps=8, num_stages=2)


@triton.jit
def prune_two_of_four(x_ptr, value_ptr, meta_ptr, mask_ptr, M, K, BM: tl.constexpr, BK: tl.constexpr):
    # The two largest of four stay; where they were, as hardware wants it: two bits each, 16 bits for 16 elements.
    m, k0 = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BK
    mm = (m < M)[:, None]
    x = tl.load(x_ptr + m[:, None] * K + k0 + tl.arange(0, BK)[None, :], mask=mm, other=0.0)
    even, odd = tl.split(tl.reshape(x, (BM, BK // 2, 2)))
    x0, x2 = tl.split(tl.reshape(even, (BM, BK // 4, 2)))
    x1, x3 = tl.split(tl.reshape(odd, (BM, BK // 4, 2)))
    a0, a1, a2, a3 = tl.abs(x0), tl.abs(x1), tl.abs(x2), tl.abs(x3)
    # How many come before each: by magnitude, then by place.
    r0 = (a1 > a0).to(tl.int32) + (a2 > a0).to(tl.int32) + (a3 > a0).to(tl.int32)
    r1 = (a0 >= a1).to(tl.int32) + (a2 > a1).to(tl.int32) + (a3 > a1).to(tl.int32)
    r2 = (a0 >= a2).to(tl.int32) + (a1 >= a2).to(tl.int32) + (a3 > a2).to(tl.int32)
    k_0, k_1, k_2 = r0 < 2, r1 < 2, r2 < 2
    first = tl.where(k_0, 0, tl.where(k_1, 1, 2))
    second = tl.where(k_0 & k_1, 1, tl.where((k_0 | k_1) & k_2, 2, 3))
    v0 = tl.where(first == 0, x0, tl.where(first == 1, x1, x2))
    v1 = tl.where(second == 1, x1, tl.where(second == 2, x2, x3))
    values = tl.interleave(v0, v1)
    tl.store(value_ptr + m[:, None] * (K // 2) + k0 // 2 + tl.arange(0, BK // 2)[None, :], values, mask=mm)
    bits = tl.reshape(first | (second << 2), (BM, BK // 16, 4)) << (4 * tl.arange(0, 4))[None, None, :]
    tl.store(meta_ptr + m[:, None] * (K // 16) + k0 // 16 + tl.arange(0, BK // 16)[None, :], tl.sum(bits, 2).to(tl.int16), mask=mm)
    kept = tl.reshape((1 << first) | (1 << second), (BM, BK // 8, 2)) << (4 * tl.arange(0, 2))[None, None, :]
    tl.store(mask_ptr + m[:, None] * (K // 8) + k0 // 8 + tl.arange(0, BK // 8)[None, :], tl.sum(kept, 2).to(tl.uint8), mask=mm)


@case
def prune_to_two_of_four_packed():
    m, k = 5000, 4096
    value, meta, mask = zeros(m, k // 2), zeros(m, k // 16, dtype="int16"), zeros(m, k // 8, dtype="uint8")
    return run(prune_two_of_four, (cdiv(m, 16), k // 256), (rand(m, k), value, meta, mask, m, k), (value, meta, mask), BM=16, BK=256, num_warps=4)


@triton.jit
def gradient_int8_feedback(g_ptr, e_ptr, q_ptr, scale_ptr, seed, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    # Gradients of 8 bits, rounded at random; what was lost is kept for the next step.
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    i = tl.arange(0, BLOCK)
    at = row[:, None] * BLOCK + i[None, :]
    live = at < N
    x = tl.load(g_ptr + at, mask=live, other=0.0).to(tl.float32) + tl.load(e_ptr + at, mask=live, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), 1) / 127.0, 1e-10)
    noise = tl.rand(seed, at)
    q = tl.clamp(tl.floor(x / scale[:, None] + noise), -127.0, 127.0)
    tl.store(q_ptr + at, q.to(tl.int8), mask=live)
    tl.store(e_ptr + at, (x - q * scale[:, None]).to(e_ptr.dtype.element_ty), mask=live)
    tl.store(scale_ptr + row, scale, mask=row * BLOCK < N)


@case
def gradient_int8_with_feedback():
    n, block = 20_000_000, 512
    error = rand(n, dtype="bfloat16") / 100
    before = error.clone()
    q, scale = zeros(n, dtype="int8"), zeros(cdiv(n, block), dtype="float32")
    args = rand(n, dtype="bfloat16"), error, q, scale, 11, n
    launch, args = run(gradient_int8_feedback, (cdiv(cdiv(n, block), 4),), args, (q, scale), ROWS=4, BLOCK=block, num_warps=4)
    return viewed(((lambda *args: (error.copy_(before), launch(*args))[1]), args), lambda out: (far(out[0]), out[1]))


@triton.jit
def lightning_prefill(Q, K, V, SLOPE, STATE, O, T, H, D: tl.constexpr, VB: tl.constexpr, B: tl.constexpr):
    # Linear attention whose heads decay: inside a block by masked scores, from before it by a state that is carried, and left for decoding.
    part, bh = tl.program_id(0), tl.program_id(1)
    slope = tl.load(SLOPE + bh % H)
    i, d, e = tl.arange(0, B), tl.arange(0, D), part * VB + tl.arange(0, VB)
    away = (i[:, None] - i[None, :]).to(tl.float32)
    decay = tl.where(away >= 0, tl.exp(-slope * away), 0.0)
    state_at = (bh * D + d)[:, None] * D + e[None, :]
    state = tl.load(STATE + state_at)
    for t0 in range(0, T, B):
        n = tl.minimum(B, T - t0)
        live = (i < n)[:, None]
        at = (bh * T + t0 + i)[:, None] * D
        q = tl.load(Q + at + d[None, :], mask=live, other=0.0)
        k = tl.load(K + at + d[None, :], mask=live, other=0.0)
        v = tl.load(V + at + e[None, :], mask=live, other=0.0)
        s = tl.dot(q, tl.trans(k)) * decay
        o = tl.dot(s.to(v.dtype), v)
        before = tl.exp(-slope * (i + 1).to(tl.float32))
        o += tl.dot((q.to(tl.float32) * before[:, None]).to(q.dtype), state.to(q.dtype))
        tl.store(O + at + e[None, :], o.to(O.dtype.element_ty), mask=live)
        after = tl.exp(-slope * (n - 1 - i).to(tl.float32))
        k = tl.where(live, k.to(tl.float32) * after[:, None], 0.0).to(v.dtype)
        state = tl.dot(tl.trans(k), v, state * tl.exp(-slope * n.to(tl.float32)))
    tl.debug_barrier()
    tl.store(STATE + state_at, state)


@case
def lightning_attention_prefill():
    b, h, t, d = 2, 32, 1000, 128
    out, state = zeros(b, h, t, d, dtype="bfloat16"), f32(b, h, d, d)
    before = state.clone()
    slope = 2.0 ** (-8.0 * (arange(h) + 1) / h)
    x = lambda: rand(b, h, t, d, dtype="bfloat16")
    args = x(), x(), x(), slope.float(), state, out, t, h
    launch, args = run(lightning_prefill, (4, b * h), args, (out, state), D=d, VB=32, B=32, num_warps=2, num_stages=1)
    return (lambda *args: (state.copy_(before), launch(*args))[1]), args
