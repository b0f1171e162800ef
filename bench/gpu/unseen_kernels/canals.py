"""Canals: what flows back, or through gates: gradients of experts, adapters, latents and gated norms; messages by relation, pages of bytes, scales and lists of blocks, drafts' states, policies."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f8, f32, far8, full, ints, rand, run, uniform, viewed, zeros


@triton.jit
def experts_input_gradient_kernel(
    dy_ptr, w_ptr, topk_weights_ptr, sorted_ids_ptr, expert_ids_ptr, num_post_padded_ptr, dx_ptr, N, K, num_valid,
    stride_dym, stride_dyn, stride_we, stride_wn, stride_wk, stride_dxm, stride_dxk,
    TOP_K: tl.constexpr, MUL_WEIGHT: tl.constexpr, EVEN_N: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    # Gradients of experts' inputs: rows of the result's gradient times the expert's weights, which are not transposed.
    pid = tl.program_id(0)
    num_pid_m = tl.cdiv(tl.load(num_post_padded_ptr), BLOCK_M)
    num_pid_k = tl.cdiv(K, BLOCK_K)
    in_group = GROUP_M * num_pid_k
    first_m = (pid // in_group) * GROUP_M
    size_m = min(num_pid_m - first_m, GROUP_M)
    if first_m >= num_pid_m:
        return
    pid_m = first_m + (pid % in_group) % size_m
    pid_k = (pid % in_group) // size_m
    expert = tl.load(expert_ids_ptr + pid_m).to(tl.int64)
    slots = tl.load(sorted_ids_ptr + pid_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    live = slots < num_valid
    offs_k = (pid_k * BLOCK_K + tl.arange(0, BLOCK_K)) % K
    offs_n = tl.arange(0, BLOCK_N)
    dy_ptrs = dy_ptr + (slots // TOP_K)[:, None] * stride_dym + offs_n[None, :] * stride_dyn
    w_ptrs = w_ptr + expert * stride_we + offs_n[:, None] * stride_wn + offs_k[None, :] * stride_wk
    acc = tl.zeros((BLOCK_M, BLOCK_K), dtype=tl.float32)
    for n in range(0, tl.cdiv(N, BLOCK_N)):
        if EVEN_N:
            dy = tl.load(dy_ptrs, mask=live[:, None], other=0.0)
            w = tl.load(w_ptrs)
        else:
            dy = tl.load(dy_ptrs, mask=live[:, None] & (offs_n[None, :] < N - n * BLOCK_N), other=0.0)
            w = tl.load(w_ptrs, mask=offs_n[:, None] < N - n * BLOCK_N, other=0.0)
        acc = tl.dot(dy, w, acc)
        dy_ptrs += BLOCK_N * stride_dyn
        w_ptrs += BLOCK_N * stride_wn
    if MUL_WEIGHT:
        acc *= tl.load(topk_weights_ptr + slots, mask=live, other=0.0)[:, None]
    out_k = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    tl.store(dx_ptr + slots[:, None] * stride_dxm + out_k[None, :] * stride_dxk, acc.to(dx_ptr.dtype.element_ty), mask=live[:, None] & (out_k[None, :] < K))


@case
def canal_of_gradients_to_experts_inputs(tokens=700, experts=16, topk=2, n=760, k=1000, block=64):
    dy, w = rand(tokens, n, dtype="bfloat16"), rand(experts, n, k, dtype="bfloat16")
    chosen, weights = uniform(tokens, experts).topk(topk, 1).indices.reshape(-1), uniform(tokens * topk)
    ids, owners = [], []
    for e in range(experts):
        mine = (chosen == e).nonzero()[:, 0].tolist()
        mine += [tokens * topk] * (-len(mine) % block)
        ids += mine
        owners += [e] * (len(mine) // block)
    total = torch.tensor([len(ids)], dtype=torch.int32, device="cuda")
    sorted_ids, expert_ids = torch.tensor(ids, dtype=torch.int32, device="cuda"), torch.tensor(owners, dtype=torch.int32, device="cuda")
    dx = zeros(tokens * topk, k, dtype="bfloat16")
    args = dy, w, weights, sorted_ids, expert_ids, total, dx, n, k, tokens * topk, *dy.stride(), *w.stride(), *dx.stride()
    flags = dict(TOP_K=topk, MUL_WEIGHT=True, EVEN_N=n % 64 == 0, BLOCK_M=block, BLOCK_N=64, BLOCK_K=128, GROUP_M=8)
    launched = run(experts_input_gradient_kernel, (len(owners) * cdiv(k, 128),), args, dx, num_warps=4, num_stages=4, **flags)

    def reference():
        rows, result = dy.float().repeat_interleave(topk, 0), torch.zeros(tokens * topk, k, device=dy.device)
        for e in range(experts):
            result[chosen == e] = rows[chosen == e] @ w[e].float()
        return result * weights[:, None]

    return against(launched, reference)


@triton.jit
def paged_index_logits_kernel(
    q_ptr, kv_ptr, kv_scale_ptr, weights_ptr, context_lens_ptr, block_tables_ptr, logits_ptr, max_pages, stride_logits,
    NEXT_N: tl.constexpr, H: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr, PAGES_PER_CTA: tl.constexpr,
):
    # Scores of an index: ReLU of fp8 products of many heads with one key, summed with the query's own weights, over pages.
    b = tl.program_id(0)
    split = tl.program_id(1)
    context = tl.load(context_lens_ptr + b)
    if split * PAGES_PER_CTA * PAGE >= context:
        return
    h = tl.arange(0, H)
    d = tl.arange(0, D)
    s = tl.arange(0, PAGE)
    last_page = tl.minimum((split + 1) * PAGES_PER_CTA, tl.cdiv(context, PAGE))
    for page in tl.range(split * PAGES_PER_CTA, last_page, num_stages=2):
        physical = tl.load(block_tables_ptr + b * max_pages + page).to(tl.int64)
        k = tl.load(kv_ptr + (physical * PAGE + s[:, None]) * D + d[None, :])
        scale = tl.load(kv_scale_ptr + physical * PAGE + s)
        kt = tl.trans(k)
        for n in tl.static_range(NEXT_N):
            q = tl.load(q_ptr + ((b * NEXT_N + n) * H + h[:, None]) * D + d[None, :])
            w = tl.load(weights_ptr + (b * NEXT_N + n) * H + h)
            score = tl.maximum(tl.dot(q, kt), 0.0) * w[:, None]
            logit = tl.sum(score, axis=0) * scale
            pos = page * PAGE + s
            tl.store(logits_ptr + (b * NEXT_N + n) * stride_logits + pos, logit, mask=pos <= context - NEXT_N + n)


@case
def canal_of_index_scores_over_pages(lens=(3000, 17, 4096, 1111, 2500, 800), next_n=2, heads=32, d=128, page=64):
    batch, most = len(lens), cdiv(max(lens), page)
    total = batch * most + 3
    q, kv = f8(batch, next_n, heads, d), f8(total, page, d)
    scale, weights = uniform(total, page), f32(batch * next_n, heads)
    tables = torch.randperm(total, device="cuda")[: batch * most].reshape(batch, most).to(torch.int32)
    context = torch.tensor(lens, dtype=torch.int32, device="cuda")
    logits = zeros(batch * next_n, most * page, dtype="float32")
    args = q, kv, scale, weights, context, tables, logits, most, logits.stride(0)
    launched = run(paged_index_logits_kernel, (batch, cdiv(most, 2)), args, logits, NEXT_N=next_n, H=heads, D=d, PAGE=page, PAGES_PER_CTA=2, num_warps=4)

    def reference():
        keys = kv.float()[tables.long()].reshape(batch, -1, d)
        s = torch.einsum("bnhd,bsd->bnhs", q.float(), keys).relu()
        s = torch.einsum("bnhs,bnh->bns", s, weights.reshape(batch, next_n, heads)) * scale[tables.long()].reshape(batch, 1, -1)
        limit = context[:, None] - next_n + torch.arange(next_n, device=q.device)
        return torch.where(torch.arange(most * page, device=q.device) <= limit[..., None], s, 0).reshape(batch * next_n, -1)

    return against(launched, reference)


@triton.jit
def delta_steps_of_drafts_kernel(
    q, k, v, a_log, a, dt_bias, b_gate, o, h0, ht, state_indices, num_accepted, scale, T,
    stride_indices, H: tl.constexpr, HV: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BV: tl.constexpr, USE_QK_L2NORM: tl.constexpr, HAS_ACCEPTED: tl.constexpr,
):
    # Steps of gated delta rules for drafted tokens: the state starts where the last accepted token left it, and every step's state is kept.
    i_v = tl.program_id(0)
    i_nh = tl.program_id(1)
    i_n = i_nh // HV
    i_hv = i_nh % HV
    i_h = i_hv // (HV // H)
    o_k = tl.arange(0, K)
    o_v = i_v * BV + tl.arange(0, BV)
    first = 0
    if HAS_ACCEPTED:
        first = tl.load(num_accepted + i_n) - 1
    slot = tl.load(state_indices + i_n * stride_indices + first).to(tl.int64)
    b_h = tl.load(h0 + ((slot * HV + i_hv) * V + o_v[:, None]) * K + o_k[None, :]).to(tl.float32)
    decay = -tl.exp(tl.load(a_log + i_hv))
    bias = tl.load(dt_bias + i_hv)
    for t in range(0, T):
        row = i_n * T + t
        b_q = tl.load(q + (row * H + i_h) * K + o_k).to(tl.float32)
        b_k = tl.load(k + (row * H + i_h) * K + o_k).to(tl.float32)
        b_v = tl.load(v + (row * HV + i_hv) * V + o_v).to(tl.float32)
        x = tl.load(a + row * HV + i_hv).to(tl.float32) + bias
        g = decay * tl.where(x <= 20.0, tl.log(1.0 + tl.exp(x)), x)
        beta = tl.sigmoid(tl.load(b_gate + row * HV + i_hv).to(tl.float32))
        if USE_QK_L2NORM:
            b_q = b_q / tl.sqrt(tl.sum(b_q * b_q) + 1e-6)
            b_k = b_k / tl.sqrt(tl.sum(b_k * b_k) + 1e-6)
        b_h *= tl.exp(g)
        b_v = (b_v - tl.sum(b_h * b_k[None, :], 1)) * beta
        b_h += b_v[:, None] * b_k[None, :]
        tl.store(o + (row * HV + i_hv) * V + o_v, (tl.sum(b_h * b_q[None, :], 1) * scale).to(o.dtype.element_ty))
        keep = tl.load(state_indices + i_n * stride_indices + t).to(tl.int64)
        tl.store(ht + ((keep * HV + i_hv) * V + o_v[:, None]) * K + o_k[None, :], b_h.to(ht.dtype.element_ty))


@case
def canal_of_states_of_drafted_tokens(batch=24, steps=3, heads=4, hv=8, d=128, slots=100):
    q, k, v = rand(batch, steps, heads, d, dtype="bfloat16"), rand(batch, steps, heads, d, dtype="bfloat16"), rand(batch, steps, hv, d, dtype="bfloat16")
    a_log, a, dt_bias, b_gate = f32(hv), rand(batch, steps, hv, dtype="bfloat16"), f32(hv), rand(batch, steps, hv, dtype="bfloat16")
    h0, ht, o = rand(slots, hv, d, d, dtype="bfloat16"), zeros(slots, hv, d, d, dtype="bfloat16"), zeros(batch, steps, hv, d, dtype="bfloat16")
    indices, accepted = torch.randperm(slots, device="cuda")[: batch * steps].reshape(batch, steps).to(torch.int32), ints(1, steps + 1, batch)
    args = q, k, v, a_log, a, dt_bias, b_gate, o, h0, ht, indices, accepted, d**-0.5, steps, indices.stride(0)
    launched = run(delta_steps_of_drafts_kernel, (d // 32, batch * hv), args, (o, ht), H=heads, HV=hv, K=d, V=d, BV=32, USE_QK_L2NORM=True, HAS_ACCEPTED=True, num_warps=2, num_stages=3)

    def reference():
        def unit(x):
            x = x.float().repeat_interleave(hv // heads, 2)
            return x * torch.rsqrt(x.square().sum(3, keepdim=True) + 1e-6)

        qs, ks, kept, results = unit(q), unit(k), torch.zeros(slots, hv, d, d, device=q.device), []
        state = h0.float()[indices.long().gather(1, accepted.long()[:, None] - 1)[:, 0]]
        for t in range(steps):
            g = -a_log.exp() * F.softplus(a[:, t].float() + dt_bias)
            state = state * g.exp()[..., None, None]
            new = (v[:, t].float() - torch.einsum("bhvk,bhk->bhv", state, ks[:, t])) * b_gate[:, t].float().sigmoid()[..., None]
            state = state + new[..., None] * ks[:, t, :, None]
            results.append(torch.einsum("bhvk,bhk->bhv", state, qs[:, t]) * d**-0.5)
            kept[indices[:, t].long()] = state
        return torch.stack(results, 1), kept

    return against(launched, reference)


@triton.jit
def unpack_e2m1(code):
    e = (code >> 1) & 3
    m = (code & 1).to(tl.float32)
    magnitude = tl.where(e == 0, 0.5 * m, (1.0 + 0.5 * m) * (1 << tl.maximum(e.to(tl.int32) - 1, 0)).to(tl.float32))
    return tl.where((code & 8) != 0, -magnitude, magnitude)


@triton.jit
def nvfp4_weights_linear_kernel(
    a_ptr, w_ptr, sf_ptr, global_scale_ptr, bias_ptr, c_ptr, M, N, K, stride_am, stride_wn, stride_sn, stride_cm,
    HAS_BIAS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Weights of four-bit floats with an fp8 scale for sixteen and one for all, made bf16 on their way.
    pid_m = tl.program_id(1)
    pid_n = tl.program_id(0)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    offs_p = tl.arange(0, BLOCK_K // 2)
    offs_s = tl.arange(0, BLOCK_K // 16)
    n_mask = offs_n[:, None] < N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k0 in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + k0 + offs_k[None, :], mask=offs_m[:, None] < M, other=0.0)
        packed = tl.load(w_ptr + offs_n[:, None] * stride_wn + k0 // 2 + offs_p[None, :], mask=n_mask, other=0)
        sf = tl.load(sf_ptr + offs_n[:, None] * stride_sn + k0 // 16 + offs_s[None, :], mask=n_mask, other=0.0).to(tl.float32)
        w = tl.interleave(unpack_e2m1(packed & 15), unpack_e2m1(packed >> 4))
        w = tl.reshape(w, (BLOCK_N, BLOCK_K // 16, 16)) * sf[:, :, None]
        w = tl.reshape(w, (BLOCK_N, BLOCK_K)).to(tl.bfloat16)
        acc = tl.dot(a, w.T, acc)
    acc *= tl.load(global_scale_ptr)
    if HAS_BIAS:
        acc += tl.load(bias_ptr + offs_n, mask=offs_n < N, other=0.0).to(tl.float32)[None, :]
    tl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :], acc.to(tl.bfloat16), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@case
def canal_of_four_bits_with_two_scales(m=200, n=3000, k=2048):
    a, w, sf = rand(m, k, dtype="bfloat16"), ints(0, 256, n, k // 2, dtype="uint8"), (uniform(n, k // 16) * 3 + 0.5).to(torch.float8_e4m3fn)
    one, bias, c = full(0.02, 1), rand(n, dtype="bfloat16"), zeros(m, n, dtype="bfloat16")
    args = a, w, sf, one, bias, c, m, n, k, a.stride(0), w.stride(0), sf.stride(0), c.stride(0)
    launched = run(nvfp4_weights_linear_kernel, (cdiv(n, 64), cdiv(m, 64)), args, c, HAS_BIAS=True, BLOCK_M=64, BLOCK_N=64, BLOCK_K=128, num_warps=4, num_stages=3)

    def reference():
        table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], device=w.device)
        levels = table[torch.stack((w & 15, w >> 4), 2).reshape(n, k).long()]
        return a.float() @ (levels * sf.float().repeat_interleave(16, 1)).t() * 0.02 + bias.float()

    return against(launched, reference)


@triton.jit
def grpo_loss_fwd_kernel(
    LOGITS, OLD_LOGP, REF_LOGP, INPUT_IDS, MASK, LOSS, LSE, KL, IS_CLIPPED, TEMPERATURE, BETA: tl.constexpr, EPS_LOW, EPS_HIGH, ADVANTAGES, L, N, BLOCK_N: tl.constexpr,
):
    # The loss of a clipped policy for each token from its logits, with a penalty for leaving a reference.
    off_b = tl.program_id(0).to(tl.int64)
    off_l = tl.program_id(1)
    row = off_b * L + off_l
    if tl.load(MASK + row) == 0:
        return
    m_i = float("-inf")
    l_i = 0.0
    base = LOGITS + row * N
    for start in range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        logits = tl.load(base + cols, mask=cols < N, other=float("-inf")).to(tl.float32) / TEMPERATURE
        new_m = tl.maximum(m_i, tl.max(logits))
        l_i = l_i * tl.exp(m_i - new_m) + tl.sum(tl.exp(logits - new_m))
        m_i = new_m
    lse = m_i + tl.log(l_i)
    idx = tl.load(INPUT_IDS + row)
    logp = tl.load(base + idx).to(tl.float32) / TEMPERATURE - lse
    old_logp = tl.load(OLD_LOGP + row).to(tl.float32)
    coef = tl.exp(logp - old_logp)
    advantage = tl.load(ADVANTAGES + off_b).to(tl.float32)
    coef_2 = tl.minimum(tl.maximum(coef, 1 - EPS_LOW), 1 + EPS_HIGH)
    is_low = (coef < 1 - EPS_LOW) & (advantage < 0)
    is_high = (coef > 1 + EPS_HIGH) & (advantage > 0)
    loss = -tl.minimum(coef * advantage, coef_2 * advantage)
    if BETA != 0.0:
        ref_logp = tl.load(REF_LOGP + row).to(tl.float32)
        kl = tl.exp(ref_logp - logp) - (ref_logp - logp) - 1
        loss += BETA * kl
        tl.store(KL + row, kl)
    tl.store(LOSS + row, loss)
    tl.store(LSE + row, lse)
    tl.store(IS_CLIPPED + row, is_low | is_high)


@triton.jit
def grpo_loss_bwd_kernel(
    DLOSS, DLOGITS, LOGITS, OLD_LOGP, REF_LOGP, INPUT_IDS, ADVANTAGES, MASK, LSE, TEMPERATURE, BETA: tl.constexpr, EPS_LOW, EPS_HIGH, L, N, BLOCK_N: tl.constexpr,
):
    # What the logits' gradients are then; tokens that are masked have none.
    off_b = tl.program_id(0).to(tl.int64)
    row = off_b * L + tl.program_id(1)
    out = DLOGITS + row * N
    if tl.load(MASK + row) == 0:
        for start in range(0, N, BLOCK_N):
            cols = start + tl.arange(0, BLOCK_N)
            tl.store(out + cols, 0.0, mask=cols < N)
        return
    dloss = tl.load(DLOSS + row).to(tl.float32)
    lse = tl.load(LSE + row)
    idx = tl.load(INPUT_IDS + row)
    logp = tl.load(LOGITS + row * N + idx).to(tl.float32) / TEMPERATURE - lse
    coef = tl.exp(logp - tl.load(OLD_LOGP + row).to(tl.float32))
    advantage = tl.load(ADVANTAGES + off_b).to(tl.float32)
    clipped = ((coef < 1 - EPS_LOW) & (advantage < 0)) | ((coef > 1 + EPS_HIGH) & (advantage > 0))
    dlogp = tl.where(clipped, 0.0, -coef * advantage)
    if BETA != 0.0:
        dlogp += BETA * (1 - tl.exp(tl.load(REF_LOGP + row).to(tl.float32) - logp))
    dlogp = dlogp * dloss / TEMPERATURE
    for start in tl.range(0, N, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        logits = tl.load(LOGITS + row * N + cols, mask=cols < N, other=-float("inf")).to(tl.float32) / TEMPERATURE
        probs = tl.exp(logits - lse)
        tl.store(out + cols, tl.where(cols == idx, 1 - probs, -probs) * dlogp, mask=cols < N)


@case
def canal_of_clipped_policies_there_and_back(batch=8, length=100, vocabulary=32011, temperature=0.9, beta=0.04):
    logits = rand(batch, length, vocabulary, dtype="bfloat16")
    ids, mask, advantages = ints(0, vocabulary, batch, length, dtype="int64"), (uniform(batch, length) < 0.8).to(torch.int32), f32(batch)
    chosen = (logits.float() / temperature).log_softmax(2).gather(2, ids[..., None])[..., 0]
    old, ref, dloss = chosen + 0.3 * f32(batch, length), chosen + 0.3 * f32(batch, length), uniform(batch, length)
    loss, lse, kl = (zeros(batch, length, dtype="float32") for _ in range(3))
    clipped, dlogits = zeros(batch, length, dtype="int8"), zeros(batch, length, vocabulary, dtype="bfloat16")

    def launch(*_):
        shared = dict(BETA=beta, EPS_LOW=0.2, EPS_HIGH=0.28, L=length, N=vocabulary, TEMPERATURE=temperature)
        grpo_loss_fwd_kernel[(batch, length)](logits, old, ref, ids, mask, loss, lse, kl, clipped, ADVANTAGES=advantages, BLOCK_N=2048, num_warps=4, num_stages=2, **shared)
        grpo_loss_bwd_kernel[(batch, length)](dloss, dlogits, logits, old, ref, ids, advantages, mask, lse, BLOCK_N=4096, num_warps=16, num_stages=1, **shared)
        return loss, kl, clipped, dlogits

    def reference():
        x = logits.float().requires_grad_()
        with torch.enable_grad():
            logp = (x / temperature).log_softmax(2).gather(2, ids[..., None])[..., 0]
            coef, away = (logp - old).exp(), advantages[:, None]
            penalty = (ref - logp).exp() - (ref - logp) - 1
            each = -torch.minimum(coef * away, coef.clamp(0.8, 1.28) * away) + beta * penalty
            (each * mask * dloss).sum().backward()
        low_or_high = ((coef < 0.8) & (away < 0)) | ((coef > 1.28) & (away > 0))
        return (each * mask).detach(), (penalty * mask).detach(), low_or_high * mask, x.grad

    return against((launch, ()), reference)


@triton.jit
def flex_block(acc, l_i, m_i, q, K, V, DOC, slope, offs_m, doc_m, start_n, stride_kn, S, SCALE: tl.constexpr, D: tl.constexpr, BLOCK_N: tl.constexpr, IS_FULL: tl.constexpr):
    offs_n = start_n + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    k = tl.load(K + offs_n[None, :] * stride_kn + offs_d[:, None], mask=offs_n[None, :] < S, other=0.0)
    qk = tl.dot(q, k, input_precision="tf32") * SCALE
    qk = qk + slope * (offs_n[None, :] - offs_m[:, None]).to(tl.float32)
    if IS_FULL:
        qk = tl.where(offs_n[None, :] < S, qk, float("-inf"))
    else:
        doc_n = tl.load(DOC + offs_n, mask=offs_n < S, other=-2)
        qk = tl.where((doc_m[:, None] == doc_n[None, :]) & (offs_m[:, None] >= offs_n[None, :]), qk, float("-inf"))
    qk *= 1.44269504
    m_ij = tl.maximum(m_i, tl.max(qk, 1))
    safe = tl.where(m_ij == float("-inf"), 0.0, m_ij)
    alpha = tl.math.exp2(m_i - safe)
    p = tl.math.exp2(qk - safe[:, None])
    l_i = l_i * alpha + tl.sum(p, 1)
    v = tl.load(V + offs_n[:, None] * stride_kn + offs_d[None, :], mask=offs_n[:, None] < S, other=0.0)
    acc = acc * alpha[:, None]
    acc = tl.dot(p.to(q.dtype), v, acc)
    return acc, l_i, m_ij


@triton.jit
def flex_documents_kernel(
    Q, K, V, DOC, SLOPES, KV_NUM_BLKS, KV_IDX, FULL_NUM_BLKS, FULL_IDX, OUT, LSE, S, stride_qh, stride_qn, stride_kh, stride_kn, stride_idx,
    GQA: tl.constexpr, SCALE: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SPARSE_N: tl.constexpr,
):
    # Attention inside documents with slopes, over lists of blocks: those that need a mask, then those that are whole.
    start_m = tl.program_id(0)
    h = tl.program_id(1)
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    q = tl.load(Q + h * stride_qh + offs_m[:, None] * stride_qn + offs_d[None, :], mask=offs_m[:, None] < S, other=0.0)
    doc_m = tl.load(DOC + offs_m, mask=offs_m < S, other=-1)
    slope = tl.load(SLOPES + h)
    Kh = K + (h // GQA) * stride_kh
    Vh = V + (h // GQA) * stride_kh
    m_i = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l_i = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    MULT: tl.constexpr = SPARSE_N // BLOCK_N
    n_blocks = tl.load(KV_NUM_BLKS + start_m)
    for i in range(0, n_blocks * MULT):
        start_n = tl.load(KV_IDX + start_m * stride_idx + i // MULT) * SPARSE_N + (i % MULT) * BLOCK_N
        acc, l_i, m_i = flex_block(acc, l_i, m_i, q, Kh, Vh, DOC, slope, offs_m, doc_m, start_n, stride_kn, S, SCALE, D, BLOCK_N, False)
    n_full = tl.load(FULL_NUM_BLKS + start_m)
    for i in range(0, n_full * MULT):
        start_n = tl.load(FULL_IDX + start_m * stride_idx + i // MULT) * SPARSE_N + (i % MULT) * BLOCK_N
        acc, l_i, m_i = flex_block(acc, l_i, m_i, q, Kh, Vh, DOC, slope, offs_m, doc_m, start_n, stride_kn, S, SCALE, D, BLOCK_N, True)
    l_i = tl.where(l_i == 0.0, 1, l_i)
    tl.store(OUT + h * stride_qh + offs_m[:, None] * stride_qn + offs_d[None, :], (acc / l_i[:, None]).to(q.dtype), mask=offs_m[:, None] < S)
    tl.store(LSE + h * S + offs_m, m_i / 1.44269504 + tl.log(l_i), mask=offs_m < S)


@case
def canal_of_documents_by_lists_of_blocks(docs=(700, 90, 1300, 5, 405, 1000), heads=8, kv_heads=2, d=64, block=128):
    s = sum(docs)
    q, k, v = rand(heads, s, d), rand(kv_heads, s, d), rand(kv_heads, s, d)
    doc = torch.cat([torch.full((n,), i, dtype=torch.int32, device="cuda") for i, n in enumerate(docs)])
    slopes = torch.tensor([2.0 ** -(i + 1) for i in range(heads)], device="cuda")
    blocks, at = cdiv(s, block), arange(s)
    seen = F.pad((doc[:, None] == doc) & (at[:, None] >= at), (0, blocks * block - s, 0, blocks * block - s)).reshape(blocks, block, blocks, block)
    some, every = seen.any(3).any(1), seen.all(3).all(1)
    partly = some & ~every

    def listed(which):
        return which.sum(1).to(torch.int32), which.int().argsort(dim=1, descending=True, stable=True).to(torch.int32)

    (num, idx), (full_num, full_idx) = listed(partly), listed(every)
    out, lse = zeros(heads, s, d), zeros(heads, s, dtype="float32")
    args = q, k, v, doc, slopes, num, idx, full_num, full_idx, out, lse, s, q.stride(0), q.stride(1), k.stride(0), k.stride(1), blocks
    launched = run(flex_documents_kernel, (blocks, heads), args, (out, lse), GQA=heads // kv_heads, SCALE=d**-0.5, D=d, BLOCK_M=block, BLOCK_N=64, SPARSE_N=block, num_warps=8, num_stages=3)

    def reference():
        a = q.float() @ k.float().repeat_interleave(heads // kv_heads, 0).transpose(1, 2) * d**-0.5
        a = a + slopes[:, None, None] * (at - at[:, None]).float()
        a = a.masked_fill((doc[:, None] != doc) | (at[:, None] < at), float("-inf"))
        return a.softmax(2) @ v.float().repeat_interleave(heads // kv_heads, 0), a.logsumexp(2)

    return against(launched, reference)


@triton.jit
def values_gradient_of_chunks_kernel(
    q, k, g, do, dv, dh, scale, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr, USE_G: tl.constexpr,
):
    # Gradients of a chunk's values: through later queries of the chunk, and through the state that it leaves.
    i_v, i_t, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    NT = tl.cdiv(T, BT)
    q += (i_b * T * H + i_h) * K
    k += (i_b * T * H + i_h) * K
    do += (i_b * T * H + i_h) * V
    dv += (i_b * T * H + i_h) * V
    dh += ((i_b * NT + i_t) * H + i_h).to(tl.int64) * K * V
    b_A = tl.zeros([BT, BT], dtype=tl.float32)
    b_dv = tl.zeros([BT, BV], dtype=tl.float32)
    for i_k in range(tl.cdiv(K, BK)):
        p_k = tl.make_block_ptr(k, (T, K), (H * K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0))
        p_q = tl.make_block_ptr(q, (K, T), (1, H * K), (i_k * BK, i_t * BT), (BK, BT), (0, 1))
        p_dh = tl.make_block_ptr(dh, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0))
        b_q = tl.load(p_q, boundary_check=(0, 1))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_dh = tl.load(p_dh, boundary_check=(0, 1))
        b_A += tl.dot(b_k, b_q)
        b_dv += tl.dot(b_k, b_dh.to(b_k.dtype))
    o_t = i_t * BT + tl.arange(0, BT)
    m_t = o_t < T
    if USE_G:
        g += i_b * T * H + i_h
        b_g = tl.load(g + o_t * H, mask=m_t, other=0.0)
        b_g_last = tl.load(g + (min(i_t * BT + BT, T) - 1) * H)
        b_dv *= tl.where(m_t, tl.exp(-b_g + b_g_last), 0.0)[:, None]
        b_A *= tl.exp(tl.minimum(b_g[None, :] - b_g[:, None], 0.0))
    m_A = (o_t[:, None] <= o_t[None, :]) & (m_t[:, None] & m_t)
    b_A = tl.where(m_A, b_A * scale, 0.0).to(do.dtype.element_ty)
    p_do = tl.make_block_ptr(do, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
    p_dv = tl.make_block_ptr(dv, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
    b_do = tl.load(p_do, boundary_check=(0, 1))
    b_dv += tl.dot(b_A, b_do)
    tl.store(p_dv, b_dv.to(dv.dtype.element_ty), boundary_check=(0, 1))


@case
def canal_of_values_gradients_of_chunks(batch=2, t=1500, heads=6, dk=128, dv=192, bt=64):
    q, k, do = rand(batch, t, heads, dk), rand(batch, t, heads, dk), rand(batch, t, heads, dv)
    nt, step = cdiv(t, bt), -uniform(batch, t, heads) * 0.1
    g = torch.cat([step[:, i * bt : i * bt + bt].cumsum(1) for i in range(nt)], 1)
    dh, out = f32(batch, nt, heads, dk, dv), zeros(batch, t, heads, dv)
    args = q, k, g, do, out, dh, dk**-0.5, t
    launched = run(values_gradient_of_chunks_kernel, (cdiv(dv, 64), nt, batch * heads), args, out, H=heads, K=dk, V=dv, BT=bt, BK=64, BV=64, USE_G=True, num_warps=4, num_stages=2)

    def reference():
        parts = []
        for i in range(nt):
            a, b, c, d = (x[:, i * bt : i * bt + bt].float().transpose(1, 2) for x in (q, k, do, g[..., None]))
            d = d[..., 0]
            scores = (b @ a.transpose(2, 3) * dk**-0.5 * (d[:, :, None] - d[..., None]).clamp(max=0).exp()).triu()
            parts.append((scores @ c + (d[:, :, -1:] - d).exp()[..., None] * (b @ dh[:, i])).transpose(1, 2))
        return torch.cat(parts, 1)

    return against(launched, reference)


@triton.jit
def momentum_then_power_step_kernel(
    grad_ptr, mom_ptr, q_ptr, p_ptr, sq_ptr, M, N, mu, stride_gm, stride_mm, stride_qn, stride_pm, NESTEROV: tl.constexpr, RANK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # Momentum takes in a gradient while it is multiplied by the few columns of a power iteration.
    pid = tl.program_id(axis=0)
    rm = pid * BLOCK_M + tl.arange(0, BLOCK_M)
    rr = tl.arange(0, RANK)
    acc = tl.zeros((BLOCK_M, RANK), dtype=tl.float32)
    sq = tl.zeros((BLOCK_M,), dtype=tl.float32)
    for n in range(0, N, BLOCK_N):
        rn = n + tl.arange(0, BLOCK_N)
        mask = (rm < M)[:, None] & (rn < N)[None, :]
        grad = tl.load(grad_ptr + rm[:, None] * stride_gm + rn[None, :], mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        mom = tl.load(mom_ptr + rm[:, None] * stride_mm + rn[None, :], mask=mask, other=0.0)
        mom = mu * mom + grad
        tl.store(mom_ptr + rm[:, None] * stride_mm + rn[None, :], mom, mask=mask)
        if NESTEROV:
            mom = mu * mom + grad
        sq += tl.sum(mom * mom, axis=1)
        q = tl.load(q_ptr + rn[:, None] * stride_qn + rr[None, :], mask=(rn < N)[:, None], other=0.0)
        acc = tl.dot(mom.to(q.dtype), q, acc)
    tl.store(p_ptr + rm[:, None] * stride_pm + rr[None, :], acc, mask=(rm < M)[:, None])
    tl.store(sq_ptr + rm, sq, mask=rm < M)


@case
def canal_of_momentum_into_a_power_step(m=4000, n=2050, rank=64):
    grad, mom, q = rand(m, n, dtype="bfloat16"), f32(m, n), rand(n, rank)
    before, p, sq = mom.clone(), zeros(m, rank, dtype="float32"), zeros(m, dtype="float32")
    args = grad, mom, q, p, sq, m, n, 0.95, grad.stride(0), mom.stride(0), q.stride(0), p.stride(0)
    launched = run(momentum_then_power_step_kernel, (cdiv(m, 32),), args, (mom, p, sq), NESTEROV=True, RANK=rank, BLOCK_M=32, BLOCK_N=128, num_warps=4, num_stages=3)

    def reference():
        new = 0.95 * before + grad.float()
        ahead = 0.95 * new + grad.float()
        return new, ahead.half().float() @ q.float(), ahead.square().sum(1)

    return against(launched, reference)


@triton.jit
def rope_yarn_packed_kernel(
    qkv_ptr, out_ptr, cu_seqlens_ptr, num_seqs, stride_t, log2_base, factor, low, high, mscale,
    HEADS: tl.constexpr, D: tl.constexpr, ROT: tl.constexpr, INVERSE: tl.constexpr, BLOCK_H: tl.constexpr,
):
    # Pairs of neighbors are turned by stretched frequencies that are made here; a token finds its sequence first.
    t = tl.program_id(0).to(tl.int64)
    lo = 0
    hi = num_seqs
    while hi - lo > 1:
        mid = (lo + hi) // 2
        if tl.load(cu_seqlens_ptr + mid) <= t:
            lo = mid
        else:
            hi = mid
    pos = (t - tl.load(cu_seqlens_ptr + lo)).to(tl.float32)
    i = tl.arange(0, ROT // 2)
    inv = tl.exp2(-(2.0 * i / ROT) * log2_base)
    ramp = tl.clamp((i - low) / (high - low), 0.0, 1.0)
    freq = inv / factor * ramp + inv * (1.0 - ramp)
    cos = (tl.cos(pos * freq) * mscale)[None, :]
    sin = (tl.sin(pos * freq) * mscale)[None, :]
    if INVERSE:
        sin = -sin
    for h0 in tl.static_range(0, HEADS, BLOCK_H):
        h = h0 + tl.arange(0, BLOCK_H)
        base = t * stride_t + h[:, None] * D
        r = tl.arange(0, ROT)
        x = tl.load(qkv_ptr + base + r[None, :], mask=h[:, None] < HEADS, other=0.0).to(tl.float32)
        a, b = tl.split(tl.reshape(x, (BLOCK_H, ROT // 2, 2)))
        y = tl.interleave(a * cos - b * sin, a * sin + b * cos)
        tl.store(out_ptr + base + r[None, :], y.to(out_ptr.dtype.element_ty), mask=h[:, None] < HEADS)
        rest = ROT + tl.arange(0, D - ROT)
        tl.store(out_ptr + base + rest[None, :], tl.load(qkv_ptr + base + rest[None, :], mask=h[:, None] < HEADS), mask=h[:, None] < HEADS)


@case
def canal_of_stretched_turns_undone(lens=(1000, 1, 2047, 300, 640), heads=20, d=96, rot=64):
    total = sum(lens)
    x, out = rand(total, heads, d, dtype="bfloat16"), zeros(total, heads, d, dtype="bfloat16")
    cu = torch.tensor([sum(lens[:i]) for i in range(len(lens) + 1)], dtype=torch.int32, device="cuda")
    args = x, out, cu, len(lens), x.stride(0), math.log2(10000.0), 8.0, 6.0, 20.0, 1.2
    launched = run(rope_yarn_packed_kernel, (total,), args, out, HEADS=heads, D=d, ROT=rot, INVERSE=True, BLOCK_H=8, num_warps=4)

    def reference():
        pos = torch.cat([torch.arange(n, device=x.device) for n in lens]).double()
        i = torch.arange(rot // 2, device=x.device).double()
        inv, ramp = 10000.0 ** (-2 * i / rot), ((i - 6) / 14).clamp(0, 1)
        angle = (pos[:, None] * (inv / 8 * ramp + inv * (1 - ramp)))[:, None]
        a, b = x.double()[..., :rot].unflatten(2, (-1, 2)).unbind(3)
        y = torch.stack((a * angle.cos() + b * angle.sin(), b * angle.cos() - a * angle.sin()), 3).flatten(2) * 1.2
        return torch.cat((y, x.double()[..., rot:]), 2).float()

    return against(launched, reference)


@triton.jit
def gated_norm_bwd_kernel(
    X, W, Z, DY, RSTD, DX, DZ, DW, Y, stride_row, M, N, rows_per_program, RECOMPUTE: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # Backward of a norm in groups of what a gate lets through; weights' gradients by programs, results made once more.
    row_block = tl.program_id(0)
    group = tl.program_id(1)
    row_start = row_block * rows_per_program
    cols = tl.arange(0, BLOCK_N)
    mask = cols < N
    off = group * N + cols
    w = tl.load(W + off, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK_N,), dtype=tl.float32)
    row_end = min(row_start + rows_per_program, M)
    for row in range(row_start, row_end):
        at = row * stride_row + off
        x_raw = tl.load(X + at, mask=mask, other=0.0).to(tl.float32)
        z = tl.load(Z + at, mask=mask, other=0.0, cache_modifier=".cg").to(tl.float32)
        dy = tl.load(DY + at, mask=mask, other=0.0).to(tl.float32)
        z_sig = tl.sigmoid(z)
        x = x_raw * z * z_sig
        rstd = tl.load(RSTD + group * M + row)
        xhat = tl.where(mask, x * rstd, 0.0)
        if RECOMPUTE:
            tl.store(Y + at, xhat * w, mask=mask)
        wdy = w * dy
        c1 = tl.sum(xhat * wdy, axis=0) / N
        dx = (wdy - xhat * c1) * rstd
        dw += dy * xhat
        tl.store(DZ + at, dx * x_raw * z_sig * (1 + z * (1 - z_sig)), mask=mask)
        tl.store(DX + at, dx * z * z_sig, mask=mask)
    tl.store(DW + row_block * stride_row + off, dw, mask=mask)


@case
def canal_of_gated_norms_back(m=4001, groups=4, n=600, programs=66):
    (x, z, dy), w = (rand(m, groups * n, dtype="bfloat16") for _ in range(3)), rand(groups * n, dtype="bfloat16")
    dx, dz, y, dw = (*(zeros(m, groups * n, dtype="bfloat16") for _ in range(3)), zeros(programs, groups * n, dtype="float32"))
    rstd = torch.rsqrt((x.float() * F.silu(z.float())).reshape(m, groups, n).square().mean(2) + 1e-5).t().contiguous()
    args = x, w, z, dy, rstd, dx, dz, dw, y, groups * n, m, n, cdiv(m, programs)
    launched = run(gated_norm_bwd_kernel, (programs, groups), args, (dx, dz, dw, y), RECOMPUTE=True, BLOCK_N=1024, num_warps=4)

    def reference():
        a, b, c = (t.float().requires_grad_() for t in (x, z, w))
        with torch.enable_grad():
            gated = (a * F.silu(b)).reshape(m, groups, n)
            unit = (gated * torch.rsqrt(gated.square().mean(2, keepdim=True) + 1e-5)).reshape(m, -1)
            ((unit * c) * dy.float()).sum().backward()
        unit = unit.detach()
        each = torch.stack([p.sum(0) for p in F.pad(unit * dy.float(), (0, 0, 0, programs * cdiv(m, programs) - m)).reshape(programs, -1, groups * n)])
        return a.grad, b.grad, each, unit * w.float()

    return against(launched, reference)


@triton.jit
def unpermute_bwd_kernel(
    dy_ptr, expert_out_ptr, probs_ptr, row_id_map_ptr, d_expert_ptr, d_probs_ptr, num_tokens, hidden, stride_dy, stride_eo, stride_probs, TOP_K: tl.constexpr, BLOCK: tl.constexpr,
):
    # A token's gradient goes to the rows of its experts by their shares, and the shares' gradients are products of rows; some rows were dropped.
    token = tl.program_id(0)
    for k in tl.range(0, TOP_K):
        row = tl.load(row_id_map_ptr + k * num_tokens + token)
        if row != -1:
            prob = tl.load(probs_ptr + token * stride_probs + k).to(tl.float32)
            partial = tl.zeros((BLOCK,), tl.float32)
            for start in tl.range(0, hidden, BLOCK):
                off = start + tl.arange(0, BLOCK)
                mask = off < hidden
                dy = tl.load(dy_ptr + token * stride_dy + off, mask=mask, other=0.0).to(tl.float32)
                eo = tl.load(expert_out_ptr + row.to(tl.int64) * stride_eo + off, mask=mask, other=0.0).to(tl.float32)
                tl.store(d_expert_ptr + row.to(tl.int64) * stride_eo + off, (dy * prob).to(d_expert_ptr.dtype.element_ty), mask=mask)
                partial += dy * eo
            tl.store(d_probs_ptr + token * stride_probs + k, tl.sum(partial))
        else:
            tl.store(d_probs_ptr + token * stride_probs + k, 0.0)


@case
def canal_of_gradients_to_rows_and_shares(tokens=3001, topk=4, hidden=1536):
    dy, eo, probs = rand(tokens, hidden, dtype="bfloat16"), rand(tokens * topk, hidden, dtype="bfloat16"), uniform(tokens, topk)
    rows = torch.randperm(tokens * topk, device="cuda").to(torch.int32).reshape(topk, tokens)
    rows[uniform(topk, tokens) < 0.1] = -1
    d_eo, d_probs = zeros(tokens * topk, hidden, dtype="bfloat16"), zeros(tokens, topk, dtype="float32")
    args = dy, eo, probs, rows, d_eo, d_probs, tokens, hidden, dy.stride(0), eo.stride(0), probs.stride(0)
    launched = run(unpermute_bwd_kernel, (tokens,), args, (d_eo, d_probs), TOP_K=topk, BLOCK=512, num_warps=2, num_stages=2)

    def reference():
        at, live = rows.long().t(), rows.t() >= 0
        result = torch.zeros(tokens * topk, hidden, device=dy.device)
        result[at[live]] = (dy.float()[:, None] * probs[..., None])[live]
        return result, torch.where(live, torch.einsum("th,tkh->tk", dy.float(), eo.float()[at.clamp(min=0)]), 0)

    return against(launched, reference)


@triton.jit
def adapters_down_gradient_kernel(
    dy_ptr, b_ptr, x_ptr, da_ptr, seg_indptr, scalings, N, K, stride_dy, stride_be, stride_bn, stride_x, stride_ae, stride_ar,
    R: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # The gradient of each adapter's first matrix from its tokens: through the second matrix, then with the inputs.
    pid_k = tl.program_id(0)
    adapter = tl.program_id(1)
    begin = tl.load(seg_indptr + adapter)
    end = tl.load(seg_indptr + adapter + 1)
    offs_r = tl.arange(0, R)
    offs_k = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    acc = tl.zeros((R, BLOCK_K), tl.float32)
    for t0 in range(begin, end, BLOCK_T):
        offs_t = t0 + tl.arange(0, BLOCK_T)
        t_mask = offs_t < end
        small = tl.zeros((BLOCK_T, R), tl.float32)
        for n0 in range(0, N, BLOCK_N):
            offs_n = n0 + tl.arange(0, BLOCK_N)
            dy = tl.load(dy_ptr + offs_t[:, None] * stride_dy + offs_n[None, :], mask=t_mask[:, None] & (offs_n[None, :] < N), other=0.0)
            b = tl.load(b_ptr + adapter * stride_be + offs_n[:, None] * stride_bn + offs_r[None, :], mask=offs_n[:, None] < N, other=0.0)
            small = tl.dot(dy, b, small)
        x = tl.load(x_ptr + offs_t[:, None] * stride_x + offs_k[None, :], mask=t_mask[:, None] & (offs_k[None, :] < K), other=0.0)
        acc = tl.dot(tl.trans(small.to(x.dtype)), x, acc)
    acc *= tl.load(scalings + adapter)
    tl.store(da_ptr + adapter * stride_ae + offs_r[:, None] * stride_ar + offs_k[None, :], acc, mask=offs_k[None, :] < K)


@case
def canal_of_gradients_to_adapters(segments=(300, 0, 70, 511, 128, 33), n=600, k=2500, rank=16):
    total, adapters = sum(segments), len(segments)
    dy, b, x = rand(total, n), rand(adapters, n, rank) * 0.1, rand(total, k)
    indptr = torch.tensor([sum(segments[:i]) for i in range(adapters + 1)], dtype=torch.int32, device="cuda")
    da, scalings = zeros(adapters, rank, k, dtype="float32"), uniform(adapters) + 0.5
    args = dy, b, x, da, indptr, scalings, n, k, dy.stride(0), b.stride(0), b.stride(1), x.stride(0), da.stride(0), da.stride(1)
    launched = run(adapters_down_gradient_kernel, (cdiv(k, 128), adapters), args, da, R=rank, BLOCK_T=32, BLOCK_N=128, BLOCK_K=128, num_warps=4, num_stages=3)

    def reference():
        result, at = torch.zeros_like(da), 0
        for i, length in enumerate(segments):
            small = (dy[at : at + length].float() @ b[i].float()).half().float()
            result[i] = scalings[i] * small.t() @ x[at : at + length].float()
            at += length
        return result

    return against(launched, reference)


@triton.jit
def sparse_latent_bwd_kernel(
    q_ptr, kv_ptr, do_ptr, idx_ptr, lse_ptr, delta_ptr, dq_ptr, dkv_ptr, sm_scale, TOPK, H: tl.constexpr, DV: tl.constexpr, DR: tl.constexpr, BLOCK_I: tl.constexpr,
):
    # Backward of attention to a token's chosen latents, whose gradients are added up by atomics; some choices are void.
    t = tl.program_id(0).to(tl.int64)
    h = tl.arange(0, H)
    dv = tl.arange(0, DV)
    dr = DV + tl.arange(0, DR)
    D: tl.constexpr = DV + DR
    q_row = (t * H + h[:, None]) * D
    q = tl.load(q_ptr + q_row + dv[None, :])
    qr = tl.load(q_ptr + q_row + dr[None, :])
    do = tl.load(do_ptr + (t * H + h[:, None]) * DV + dv[None, :])
    lse = tl.load(lse_ptr + t * H + h)
    delta = tl.load(delta_ptr + t * H + h)
    dq = tl.zeros((H, DV), tl.float32)
    dqr = tl.zeros((H, DR), tl.float32)
    for i0 in range(0, TOPK, BLOCK_I):
        idx = tl.load(idx_ptr + t * TOPK + i0 + tl.arange(0, BLOCK_I))
        ok = idx >= 0
        row = tl.where(ok, idx, 0).to(tl.int64)[:, None] * D
        kv = tl.load(kv_ptr + row + dv[None, :], mask=ok[:, None], other=0.0)
        kr = tl.load(kv_ptr + row + dr[None, :], mask=ok[:, None], other=0.0)
        s = tl.dot(q, tl.trans(kv))
        s = tl.dot(qr, tl.trans(kr), s)
        p = tl.where(ok[None, :], tl.exp(s * sm_scale - lse[:, None]), 0.0)
        dp = tl.dot(do, tl.trans(kv))
        ds = (p * (dp - delta[:, None]) * sm_scale).to(q.dtype)
        dq = tl.dot(ds, kv, dq)
        dqr = tl.dot(ds, kr, dqr)
        ds_t = tl.trans(ds)
        dkv = tl.dot(ds_t, q)
        dkv = tl.dot(tl.trans(p.to(do.dtype)), do, dkv)
        tl.atomic_add(dkv_ptr + row + dv[None, :], dkv, mask=ok[:, None], sem="relaxed")
        tl.atomic_add(dkv_ptr + row + dr[None, :], tl.dot(ds_t, qr), mask=ok[:, None], sem="relaxed")
    tl.store(dq_ptr + q_row + dv[None, :], dq.to(dq_ptr.dtype.element_ty))
    tl.store(dq_ptr + q_row + dr[None, :], dqr.to(dq_ptr.dtype.element_ty))


@case
def canal_of_gradients_to_chosen_latents(tokens=600, heads=32, dv=128, dr=32, topk=128):
    q, kv, do = rand(tokens, heads, dv + dr) * 0.5, rand(tokens, dv + dr), rand(tokens, heads, dv)
    scores = uniform(tokens, tokens)
    at = arange(tokens)
    order = scores.masked_fill(at[None, :] > at[:, None], -1.0).topk(topk, 1)
    idx = torch.where(order.values >= 0, order.indices, -1).to(torch.int32)
    dense = torch.zeros(tokens, tokens, dtype=torch.bool, device="cuda").scatter_(1, order.indices, order.values >= 0)
    scale, k = (dv + dr) ** -0.5, kv.float()
    a = torch.einsum("thd,sd->ths", q.float(), k).mul(scale).masked_fill(~dense[:, None], float("-inf"))
    lse, delta = a.logsumexp(2), (torch.einsum("ths,sd->thd", a.softmax(2), k[:, :dv]) * do.float()).sum(2)
    dq, dkv = zeros(tokens, heads, dv + dr), zeros(tokens, dv + dr, dtype="float32")
    args = q, kv, do, idx, lse, delta, dq, dkv, scale, topk
    launched = run(sparse_latent_bwd_kernel, (tokens,), args, (dq, dkv), H=heads, DV=dv, DR=dr, BLOCK_I=32, num_warps=4, num_stages=2)

    def reference():
        p = a.softmax(2)
        ds = p * (torch.einsum("thd,sd->ths", do.float(), k[:, :dv]) - delta[..., None]) * scale
        d_latent = torch.einsum("ths,thd->sd", ds, q.float())
        d_latent[:, :dv] += torch.einsum("ths,thd->sd", p, do.float())
        return torch.einsum("ths,sd->thd", ds, k), d_latent

    return against(cleared(launched, dkv), reference)


@triton.jit
def relational_gather_gemm_scatter_kernel(
    x_ptr, w_ptr, src_ptr, dst_ptr, norm_ptr, block_rel_ptr, block_start_ptr, rel_end_ptr, out_ptr, stride_x, stride_wr, stride_out,
    IN: tl.constexpr, OUT: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Messages along edges of one relation: gathered features times its weights, added to the nodes they point at.
    pid = tl.program_id(0)
    rel = tl.load(block_rel_ptr + pid)
    e = tl.load(block_start_ptr + pid) + tl.arange(0, BLOCK_E)
    mask_e = e < tl.load(rel_end_ptr + rel)
    src = tl.load(src_ptr + e, mask=mask_e, other=0).to(tl.int64)
    o = tl.arange(0, OUT)
    acc = tl.zeros((BLOCK_E, OUT), dtype=tl.float32)
    for k0 in tl.range(0, IN, BLOCK_K, num_stages=3):
        kk = k0 + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + src[:, None] * stride_x + kk[None, :], mask=mask_e[:, None], other=0.0)
        w = tl.load(w_ptr + rel * stride_wr + kk[:, None] * OUT + o[None, :])
        acc = tl.dot(x, w, acc)
    norm = tl.load(norm_ptr + e, mask=mask_e, other=0.0)
    dst = tl.load(dst_ptr + e, mask=mask_e, other=0).to(tl.int64)
    tl.atomic_add(out_ptr + dst[:, None] * stride_out + o[None, :], acc * norm[:, None], mask=mask_e[:, None])


@case
def canal_of_messages_by_relation(nodes=5000, edges=(9000, 133, 12000, 1, 4500), d_in=128, d_out=64):
    total, block = sum(edges), 64
    x, w = rand(nodes, d_in), rand(len(edges), d_in, d_out)
    src, dst, norm = ints(0, nodes, total), ints(0, nodes, total), uniform(total)
    ends = [sum(edges[: i + 1]) for i in range(len(edges))]
    rels = [i for i, n in enumerate(edges) for _ in range(cdiv(n, block))]
    starts = [ends[i] - n + j * block for i, n in enumerate(edges) for j in range(cdiv(n, block))]
    rel, start, end = (torch.tensor(a, dtype=torch.int32, device="cuda") for a in (rels, starts, ends))
    out = zeros(nodes, d_out, dtype="float32")
    args = x, w, src, dst, norm, rel, start, end, out, x.stride(0), w.stride(0), out.stride(0)
    launched = run(relational_gather_gemm_scatter_kernel, (len(rels),), args, out, IN=d_in, OUT=d_out, BLOCK_E=block, BLOCK_K=32, num_warps=4)

    def reference():
        each = torch.cat([x.float()[src[b - n : b].long()] @ w[i].float() for i, (n, b) in enumerate(zip(edges, ends))]) * norm[:, None]
        return torch.zeros(nodes, d_out, device=x.device).index_add_(0, dst.long(), each)

    return against(cleared(launched, out), reference)


@triton.jit
def conv_fp8_implicit_gemm_kernel(
    x_ptr, w_ptr, ws_ptr, res_ptr, y_ptr, x_scale, B, H, W, CIN: tl.constexpr, COUT: tl.constexpr, RES: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    # A 3x3 convolution of fp8 channels-last images as one product; weights come by a descriptor, then scales, residual, ReLU.
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    w_desc = tl.make_tensor_descriptor(w_ptr, [COUT, 9 * CIN], [9 * CIN, 1], [BN, BK])
    m = pid_m * BM + tl.arange(0, BM)
    px = m % W
    py = (m // W) % H
    pb = m // (W * H)
    acc = tl.zeros((BM, BN), tl.float32)
    STEPS: tl.constexpr = CIN // BK
    for i in range(9 * STEPS):
        tap = i // STEPS
        c = (i % STEPS) * BK + tl.arange(0, BK)
        iy = py + tap // 3 - 1
        ix = px + tap % 3 - 1
        ok = (iy >= 0) & (iy < H) & (ix >= 0) & (ix < W) & (pb < B)
        x = tl.load(x_ptr + ((pb * H + iy) * W + ix)[:, None] * CIN + c[None, :], mask=ok[:, None], other=0.0)
        w = w_desc.load([pid_n * BN, i * BK])
        acc = tl.dot(x, w.T, acc)
    n = pid_n * BN + tl.arange(0, BN)
    y = acc * (tl.load(ws_ptr + n, n < COUT, other=0.0) * x_scale)[None, :]
    ok = (pb < B)[:, None] & (n < COUT)[None, :]
    if RES:
        y += tl.load(res_ptr + m[:, None] * COUT + n[None, :], mask=ok, other=0.0).to(tl.float32)
    tl.store(y_ptr + m[:, None] * COUT + n[None, :], tl.maximum(y, 0.0).to(tl.bfloat16), mask=ok)


@case
def canal_of_fp8_images_through_taps(batch=5, height=30, width=44, cin=128, cout=160):
    x, w, ws = f8(batch, height, width, cin), f8(cout, 9 * cin), uniform(cout) * 0.05
    res, y = rand(batch, height, width, cout, dtype="bfloat16"), zeros(batch, height, width, cout, dtype="bfloat16")
    args = x, w, ws, res, y, 0.7, batch, height, width
    launch, args = run(conv_fp8_implicit_gemm_kernel, (cdiv(batch * height * width, 64), cdiv(cout, 64)), args, y, CIN=cin, COUT=cout, RES=True, BM=64, BN=64, BK=64, num_warps=4, num_stages=3)

    def told(*args):
        triton.set_allocator(lambda size, align, stream: torch.empty(size, device="cuda", dtype=torch.int8))
        return launch(*args)

    def reference():
        taps = w.float().reshape(cout, 3, 3, cin).permute(0, 3, 1, 2)
        z = F.conv2d(x.float().permute(0, 3, 1, 2), taps, padding=1).permute(0, 2, 3, 1) * ws * 0.7
        return (z + res.float()).relu()

    return against((told, args), reference)


@triton.jit
def gated_input_bytes_weights_kernel(
    gu_ptr, w_ptr, ws_ptr, c_ptr, M, N, K, stride_gm, stride_wk, stride_wn, stride_sg, stride_cm, stride_split,
    GROUP: tl.constexpr, SPLIT_K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # SiLU of a gate times a value is made where it is multiplied by weights of bytes with scales of groups; K in parts.
    pid_n = tl.program_id(0)
    pid_m = tl.program_id(1)
    pid_k = tl.program_id(2)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    m_mask = offs_m[:, None] < M
    n_mask = offs_n[None, :] < N
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K * SPLIT_K)):
        k_mask = offs_k < K
        gate = tl.load(gu_ptr + offs_m[:, None] * stride_gm + offs_k[None, :], mask=m_mask & k_mask[None, :], other=0.0).to(tl.float32)
        up = tl.load(gu_ptr + offs_m[:, None] * stride_gm + K + offs_k[None, :], mask=m_mask & k_mask[None, :], other=0.0).to(tl.float32)
        a = (gate / (1.0 + tl.exp(-gate)) * up).to(tl.float16)
        w = tl.load(w_ptr + offs_k[:, None] * stride_wk + offs_n[None, :] * stride_wn, mask=k_mask[:, None] & n_mask, other=0)
        s = tl.load(ws_ptr + (offs_k[:, None] // GROUP) * stride_sg + offs_n[None, :], mask=k_mask[:, None] & n_mask, other=0.0)
        acc = tl.dot(a, w.to(tl.float16) * s, acc)
        offs_k += BLOCK_K * SPLIT_K
    tl.store(c_ptr + pid_k * stride_split + offs_m[:, None] * stride_cm + offs_n[None, :], acc, mask=m_mask & n_mask)


@case
def canal_of_gated_rows_through_bytes(m=48, n=1900, k=4160, split=4):
    gu, w, ws = rand(m, 2 * k), ints(-127, 128, k, n, dtype="int8"), rand(cdiv(k, 64), n).abs() * 0.01
    c = zeros(split, m, n, dtype="float32")
    args = gu, w, ws, c, m, n, k, gu.stride(0), w.stride(0), w.stride(1), ws.stride(0), c.stride(1), c.stride(0)
    launched = run(gated_input_bytes_weights_kernel, (cdiv(n, 64), cdiv(m, 16), split), args, c, GROUP=64, SPLIT_K=split, BLOCK_M=16, BLOCK_N=64, BLOCK_K=64, num_warps=2, num_stages=4)

    def reference():
        a = (F.silu(gu[:, :k].float()) * gu[:, k:].float()).half().float()
        b = (w.half() * ws.repeat_interleave(64, 0)[:k]).float()
        turn = torch.arange(k, device=w.device) // 64 % split
        return torch.stack([a[:, turn == i] @ b[turn == i] for i in range(split)])

    return against(launched, reference)


@triton.jit
def keys_to_split_pages_kernel(
    key, value, k_cache, v_cache, k_scales, v_scales, slot_mapping, stride_key, stride_value, H: tl.constexpr, D: tl.constexpr, X: tl.constexpr, PAGE: tl.constexpr,
):
    # Heads of keys and values become fp8 with a scale each; keys go in groups of sixteen numbers, values with slots last.
    token = tl.program_id(0)
    head = tl.program_id(1)
    slot = tl.load(slot_mapping + token)
    if slot < 0:
        return
    page = slot // PAGE
    inside = slot % PAGE
    d = tl.arange(0, D)
    k = tl.load(key + token * stride_key + head * D + d).to(tl.float32)
    v = tl.load(value + token * stride_value + head * D + d).to(tl.float32)
    k_scale = tl.maximum(tl.max(tl.abs(k)), 1e-6) / 448.0
    v_scale = tl.maximum(tl.max(tl.abs(v)), 1e-6) / 448.0
    tl.store(k_scales + slot * H + head, k_scale)
    tl.store(v_scales + slot * H + head, v_scale)
    k_at = (((page * H + head) * (D // X) + d // X) * PAGE + inside) * X + d % X
    v_at = ((page * H + head) * D + d) * PAGE + inside
    tl.store(k_cache + k_at, (k / k_scale).to(k_cache.dtype.element_ty))
    tl.store(v_cache + v_at, (v / v_scale).to(v_cache.dtype.element_ty))


@case
def canal_of_heads_into_split_pages(tokens=3000, heads=8, d=128, page=16, pages=250):
    qkv = rand(tokens, 3 * heads * d, dtype="bfloat16")
    key, value = qkv[:, heads * d : 2 * heads * d], qkv[:, 2 * heads * d :]
    slots = torch.randperm(page * pages, device="cuda")[:tokens]
    slots[::17] = -1
    k_cache, v_cache = zeros(pages, heads, d // 16, page, 16).to(torch.float8_e4m3fn), zeros(pages, heads, d, page).to(torch.float8_e4m3fn)
    ks, vs = zeros(pages * page, heads, dtype="float32"), zeros(pages * page, heads, dtype="float32")
    args = key, value, k_cache, v_cache, ks, vs, slots, key.stride(0), value.stride(0)
    launched = run(keys_to_split_pages_kernel, (tokens, heads), args, (k_cache, v_cache, ks, vs), H=heads, D=d, X=16, PAGE=page, num_warps=1)

    def reference():
        live, result = slots >= 0, []
        for x in (key, value):
            y = x.float().reshape(tokens, heads, d)
            scale = y.abs().amax(2) / 448
            codes, scales = torch.zeros(pages * page, heads, d, device=x.device), torch.zeros(pages * page, heads, device=x.device)
            codes[slots[live]], scales[slots[live]] = (y / scale[..., None])[live], scale[live]
            result.append((codes.reshape(pages, page, heads, d).to(torch.float8_e4m3fn), scales))
        (k8, one), (v8, two) = result
        return far8(k8.view(torch.int8).reshape(pages, page, heads, d // 16, 16).permute(0, 2, 3, 1, 4).contiguous()), far8(v8.view(torch.int8).permute(0, 2, 3, 1).contiguous()), one, two

    return against(viewed(launched, lambda outs: (far8(outs[0]), far8(outs[1]), outs[2], outs[3])), reference)


@triton.jit
def adam_mini_compensated_kernel(
    param, comp, grad, exp_avg, exp_avg_sq, rows, cols, lr, beta1: tl.constexpr, beta2: tl.constexpr, eps: tl.constexpr, weight_decay, bias1, bias2, BLOCK: tl.constexpr,
):
    # One second moment for each row, and what bf16 parameters lose by rounding is kept for the next step.
    row = tl.program_id(0)
    base = row * cols
    total = tl.zeros((BLOCK,), tl.float32)
    for c0 in range(0, cols, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        g = tl.load(grad + base + c, mask=c < cols, other=0.0, eviction_policy="evict_last").to(tl.float32)
        total += g * g
    v = beta2 * tl.load(exp_avg_sq + row) + (1 - beta2) * (tl.sum(total) / cols)
    tl.store(exp_avg_sq + row, v)
    denom = tl.sqrt(v / bias2) + eps
    for c0 in range(0, cols, BLOCK):
        c = c0 + tl.arange(0, BLOCK)
        mask = c < cols
        g = tl.load(grad + base + c, mask=mask, other=0.0).to(tl.float32)
        m = tl.load(exp_avg + base + c, mask=mask, other=0.0).to(tl.float32)
        m = beta1 * m + (1 - beta1) * g
        p16 = tl.load(param + base + c, mask=mask, other=0.0)
        p = p16.to(tl.float32)
        lost = tl.load(comp + base + c, mask=mask, other=0.0).to(tl.float32)
        update = lost - lr * (m / bias1 / denom + weight_decay * p)
        new = (p + update).to(tl.bfloat16)
        tl.store(comp + base + c, (update + (p - new.to(tl.float32))).to(tl.bfloat16), mask=mask)
        tl.store(param + base + c, new, mask=mask)
        tl.store(exp_avg + base + c, m.to(tl.bfloat16), mask=mask)


@case
def canal_of_steps_with_a_moment_a_row(rows=3000, cols=2100):
    param, comp, grad, avg = (rand(rows, cols, dtype="bfloat16") * s for s in (1, 0.001, 1, 0.1))
    sq = uniform(rows)
    before = param.float() + comp.float(), param.float(), avg.float(), sq.clone()
    args = param, comp, grad, avg, sq, rows, cols, 1e-2
    launched = run(adam_mini_compensated_kernel, (rows,), args, (param, comp, avg, sq), beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=0.1, bias1=0.271, bias2=0.143, BLOCK=1024, num_warps=4)

    def reference():
        v = 0.95 * before[3] + 0.05 * grad.float().square().mean(1)
        m = 0.9 * before[2] + 0.1 * grad.float()
        return before[0] - 1e-2 * (m / 0.271 / ((v / 0.143).sqrt() + 1e-8)[:, None] + 0.1 * before[1]), m, v

    return against(viewed(launched, lambda outs: (outs[0].float() + outs[1].float(), outs[2], outs[3])), reference)
