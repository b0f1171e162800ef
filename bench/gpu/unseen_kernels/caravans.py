"""Caravans: what stacks of this year carry: six-bit floats, tiles of experts in a row, rings of windows, prefixes of many, sparse teachers, Fenwick levels, filters as Toeplitz tiles."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f8, f32, far8, ints, rand, run, uniform, viewed, zeros


@triton.jit
def preconditioner_ema_lower_kernel(
    G, L_in, L_out, M, N, beta, stride_gb, stride_gm, stride_gn, stride_lb, stride_lm, stride_ln, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):
    # L = beta L + (1 - beta) G G', batched: tiles above the diagonal leave at once, the others are written twice.
    pid = tl.program_id(0)
    batch = tl.program_id(1)
    num = tl.cdiv(M, BLOCK_M)
    width = GROUP_M * num
    group = pid // width
    size = min(num - group * GROUP_M, GROUP_M)
    pid_m = group * GROUP_M + (pid % width) % size
    pid_n = (pid % width) // size
    if pid_n > pid_m:
        return
    G += batch * stride_gb
    L_in += batch * stride_lb
    L_out += batch * stride_lb
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = G + (offs_m % M)[:, None] * stride_gm + offs_k[None, :] * stride_gn
    b_ptrs = G + (offs_n % M)[None, :] * stride_gm + offs_k[:, None] * stride_gn
    acc = tl.zeros((BLOCK_M, BLOCK_M), dtype=tl.float32)
    for k in range(0, tl.cdiv(N, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < N - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < N - k * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_gn
        b_ptrs += BLOCK_K * stride_gn
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < M)
    old = tl.load(L_in + offs_m[:, None] * stride_lm + offs_n[None, :] * stride_ln, mask=mask, other=0.0)
    new = old * beta + acc * (1.0 - beta)
    tl.store(L_out + offs_m[:, None] * stride_lm + offs_n[None, :] * stride_ln, new, mask=mask)
    if pid_n < pid_m:
        mirror = (offs_n[:, None] < M) & (offs_m[None, :] < M)
        tl.store(L_out + offs_n[:, None] * stride_lm + offs_m[None, :] * stride_ln, tl.trans(new), mask=mirror)


@case
def caravan_of_preconditioners_from_below(b=6, m=840, n=1500, beta=0.95):
    g, x = rand(b, m, n, dtype="bfloat16"), f32(b, m, m)
    old = (x + x.transpose(1, 2)) * 4
    new = zeros(b, m, m, dtype="float32")
    args = g, old, new, m, n, beta, *g.stride(), *old.stride()
    launched = run(preconditioner_ema_lower_kernel, (cdiv(m, 128) ** 2, b), args, new, BLOCK_M=128, BLOCK_K=64, GROUP_M=4, num_warps=8, num_stages=4)
    return against(launched, lambda: old * beta + (1 - beta) * g.float() @ g.float().transpose(1, 2))


@triton.jit
def mxfp6_e3m2_linear_kernel(
    x_ptr, w_ptr, s_ptr, bias_ptr, y_ptr, M, N, K, stride_xm, stride_wn, stride_sn, stride_ym, HAS_BIAS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    # Weights of six bits, four in three bytes along K, with a power of two for each 32: the bits are moved to where a half has its own.
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    byte = rk * 6 // 8
    shift = rk * 6 % 8
    w_row = w_ptr + rn[None, :] * stride_wn
    n_ok = rn[None, :] < N
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(x_ptr + rm[:, None] * stride_xm + k + rk[None, :], mask=rm[:, None] < M, other=0.0)
        low = tl.load(w_row + (k * 3 // 4 + byte)[:, None], mask=n_ok, other=0).to(tl.int32)
        high = tl.load(w_row + (k * 3 // 4 + byte + 1)[:, None], mask=n_ok, other=0).to(tl.int32)
        code = ((low | (high << 8)) >> shift[:, None]) & 63
        half = (((code & 32) << 10) | ((code & 31) << 8)).to(tl.int16).to(tl.float16, bitcast=True)
        e = tl.load(s_ptr + rn[None, :] * stride_sn + ((k + rk) // 32)[:, None], mask=n_ok, other=127).to(tl.float32)
        w = (half.to(tl.float32) * tl.exp2(e - 115.0)).to(x.dtype)
        acc = tl.dot(x, w, acc)
    if HAS_BIAS:
        acc += tl.load(bias_ptr + rn, mask=rn < N, other=0.0)[None, :].to(tl.float32)
    tl.store(y_ptr + rm[:, None] * stride_ym + rn[None, :], acc.to(y_ptr.dtype.element_ty), mask=(rm[:, None] < M) & n_ok)


@case
def caravan_of_weights_of_six_bits(m=300, n=2100, k=1536):
    x, bias, y = rand(m, k, dtype="bfloat16"), rand(n, dtype="bfloat16"), zeros(m, n, dtype="bfloat16")
    w = F.pad(ints(0, 256, n, k * 3 // 4, dtype="uint8"), (0, 4))
    s = ints(122, 127, n, k // 32, dtype="uint8")
    args = x, w, s, bias, y, m, n, k, x.stride(0), w.stride(0), s.stride(0), y.stride(0)
    launched = run(mxfp6_e3m2_linear_kernel, (cdiv(m, 64), cdiv(n, 64)), args, y, HAS_BIAS=True, BM=64, BN=64, BK=64, num_warps=4, num_stages=3)

    def reference():
        b = w[:, :-4].int().reshape(n, k // 4, 3)
        whole = b[..., 0] | b[..., 1] << 8 | b[..., 2] << 16
        code = torch.stack([whole >> 6 * i & 63 for i in range(4)], 2).reshape(n, k)
        e, f = code >> 2 & 7, (code & 3).float() / 4
        value = torch.where(e > 0, (1 + f) * torch.exp2(e.float() - 3), f * 0.25) * (1 - 2.0 * (code >> 5))
        weight = value * torch.exp2(s.float() - 127).repeat_interleave(32, 1)
        return x.float() @ weight.t() + bias.float()

    return against(launched, reference)


@triton.jit
def contiguous_grouped_fp8_kernel(
    a_ptr, as_ptr, b_ptr, bs_ptr, m_indices_ptr, d_ptr, M, N: tl.constexpr, K: tl.constexpr, stride_as_k, stride_be, stride_bse, stride_bsn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Tokens of experts lie one after another, padded to whole tiles; a tile's first index says whose it is, or that nobody's; scales of 1x128 and 128x128.
    n_blocks: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    pid = tl.program_id(0)
    pid_m = pid // n_blocks
    pid_n = pid % n_blocks
    expert = tl.load(m_indices_ptr + pid_m * BLOCK_M)
    if expert >= 0:
        offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
        a_block = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (pid_m * BLOCK_M, 0), (BLOCK_M, BLOCK_K), (1, 0))
        b_block = tl.make_block_ptr(b_ptr + expert.to(tl.int64) * stride_be, (K, N), (1, K), (0, pid_n * BLOCK_N), (BLOCK_K, BLOCK_N), (0, 1))
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(K // BLOCK_K):
            a = tl.load(a_block)
            b = tl.load(b_block, boundary_check=(1,), padding_option="zero")
            sa = tl.load(as_ptr + k * stride_as_k + offs_m)
            sb = tl.load(bs_ptr + expert * stride_bse + (pid_n * BLOCK_N // 128) * stride_bsn + k)
            acc += tl.dot(a, b) * (sa * sb)[:, None]
            a_block = tl.advance(a_block, (0, BLOCK_K))
            b_block = tl.advance(b_block, (BLOCK_K, 0))
        own = tl.load(m_indices_ptr + offs_m) == expert
        tl.store(d_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.bfloat16), mask=own[:, None] & (offs_n[None, :] < N))


@case
def caravan_of_tiles_that_know_their_expert(counts=(600, 0, 129, 1, 900, 384, 77, 1500), n=1728, k=1024):
    tiles = [cdiv(c, 128) for c in counts]
    index = torch.full((sum(tiles) + 2, 128), -1, dtype=torch.int32)
    at = 0
    for e, (c, t) in enumerate(zip(counts, tiles)):
        flat = index[at : at + t].view(-1)
        flat[:c] = e
        at += t
    index = index.view(-1).to("cuda")
    m, experts = index.shape[0], len(counts)
    a, b = f8(m, k), f8(experts, n, k)
    sa, sb = uniform(k // 128, m) * 0.1 + 0.01, uniform(experts, cdiv(n, 128), k // 128) * 0.1 + 0.01
    d = zeros(m, n, dtype="bfloat16")
    args = a, sa, b, sb, index, d, m
    flags = dict(N=n, K=k, stride_as_k=sa.stride(0), stride_be=b.stride(0), stride_bse=sb.stride(0), stride_bsn=sb.stride(1), BLOCK_M=128, BLOCK_N=64, BLOCK_K=128)
    launched = run(contiguous_grouped_fp8_kernel, (m // 128 * cdiv(n, 64),), args, d, num_warps=4, num_stages=3, **flags)

    def reference():
        x = a.float() * sa.t().repeat_interleave(128, 1)
        y = torch.zeros(m, n, device=a.device)
        for e in range(experts):
            w = b[e].float() * sb[e].repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)
            rows = (index == e).nonzero()[:, 0]
            y[rows] = x[rows] @ w.t()
        return y

    return against(launched, reference)


@triton.jit
def routed_by_groups_with_bias_kernel(
    logits_ptr, bias_ptr, weights_ptr, ids_ptr, T, scaling, E: tl.constexpr, GROUPS: tl.constexpr, TOP_GROUPS: tl.constexpr, TOP_K: tl.constexpr, BLOCK_T: tl.constexpr,
):
    # Sigmoids choose experts with a bias that does not weigh: groups by the sum of their best two, then experts one by one.
    PER: tl.constexpr = E // GROUPS
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    e = tl.arange(0, E)
    t_mask = t < T
    logits = tl.load(logits_ptr + t[:, None] * E + e[None, :], mask=t_mask[:, None], other=0.0).to(tl.float32)
    scores = tl.sigmoid(logits)
    choice = scores + tl.load(bias_ptr + e)[None, :]
    grouped = tl.reshape(choice, (BLOCK_T, GROUPS, PER))
    first, where = tl.max(grouped, axis=2, return_indices=True)
    second = tl.max(tl.where(tl.arange(0, PER)[None, None, :] == where[:, :, None], float("-inf"), grouped), axis=2)
    both = first + second
    g = tl.arange(0, GROUPS)
    better = (both[:, None, :] > both[:, :, None]) | ((both[:, None, :] == both[:, :, None]) & (g[None, None, :] < g[None, :, None]))
    kept = tl.sum(better.to(tl.int32), axis=2) < TOP_GROUPS
    choice = tl.reshape(tl.where(kept[:, :, None], grouped, float("-inf")), (BLOCK_T, E))
    slots = tl.arange(0, TOP_K)
    ids = tl.zeros((BLOCK_T, TOP_K), dtype=tl.int32)
    weights = tl.zeros((BLOCK_T, TOP_K), dtype=tl.float32)
    for i in tl.static_range(TOP_K):
        best = tl.argmax(choice, axis=1)
        hit = e[None, :] == best[:, None]
        weight = tl.sum(tl.where(hit, scores, 0.0), axis=1)
        ids = tl.where(slots[None, :] == i, best[:, None], ids)
        weights = tl.where(slots[None, :] == i, weight[:, None], weights)
        choice = tl.where(hit, float("-inf"), choice)
    weights = weights / (tl.sum(weights, axis=1) + 1e-20)[:, None] * scaling
    tl.store(ids_ptr + t[:, None] * TOP_K + slots[None, :], ids, mask=t_mask[:, None])
    tl.store(weights_ptr + t[:, None] * TOP_K + slots[None, :], weights, mask=t_mask[:, None])


@case
def caravan_of_experts_by_their_groups(t=9001, e=256, groups=8, top_groups=4, top=8):
    logits, bias = f32(t, e), f32(e) * 0.1
    weights, ids = zeros(t, top, dtype="float32"), zeros(t, top, dtype="int32")
    flags = dict(E=e, GROUPS=groups, TOP_GROUPS=top_groups, TOP_K=top, BLOCK_T=4)
    launched = run(routed_by_groups_with_bias_kernel, (cdiv(t, 4),), (logits, bias, weights, ids, t, 2.5), (weights, ids), num_warps=4, **flags)

    def reference():
        s = logits.sigmoid()
        c = (s + bias).view(t, groups, -1)
        chosen = c.topk(2, 2)[0].sum(2).topk(top_groups, 1)[1]
        keep = torch.zeros(t, groups, device=s.device).scatter(1, chosen, 1).bool()
        i = c.masked_fill(~keep[..., None], float("-inf")).view(t, e).topk(top, 1)[1]
        w = s.gather(1, i)
        return w / w.sum(1, keepdim=True) * 2.5, i.int()

    return against(launched, reference)


@triton.jit
def scaled_mm_int8_azp_kernel(
    a_ptr, b_ptr, scale_a_ptr, scale_b_ptr, azp_ptr, colsum_ptr, bias_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    PER_TOKEN: tl.constexpr, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr,
):
    # Bytes times bytes where tokens have zero points: what those add is taken away by sums of columns that are known beforehand.
    pid = tl.program_id(axis=0)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    pid_m = pid // num_pid_n
    pid_n = pid % num_pid_n
    offsets_am = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M).to(tl.int64)
    offsets_bn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N).to(tl.int64)
    masks_am = offsets_am < M
    masks_bn = offsets_bn < N
    offsets_k = tl.arange(0, BLOCK_SIZE_K).to(tl.int64)
    a_ptrs = a_ptr + stride_am * offsets_am[:, None] + stride_ak * offsets_k[None, :]
    b_ptrs = b_ptr + stride_bk * offsets_k[:, None] + stride_bn * offsets_bn[None, :]
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.int32)
    for k in range(0, tl.cdiv(K, BLOCK_SIZE_K)):
        masks_k = offsets_k < K
        a = tl.load(a_ptrs, mask=masks_am[:, None] & masks_k[None, :], other=0)
        b = tl.load(b_ptrs, mask=masks_k[:, None] & masks_bn[None, :], other=0)
        accumulator = tl.dot(a, b, accumulator, out_dtype=tl.int32)
        offsets_k += BLOCK_SIZE_K
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk
    colsum = tl.load(colsum_ptr + offsets_bn, mask=masks_bn, other=0)
    if PER_TOKEN:
        azp = tl.load(azp_ptr + offsets_am, mask=masks_am, other=0)
        scale_a = tl.load(scale_a_ptr + offsets_am, mask=masks_am, other=0.0)
        out = (accumulator - azp[:, None] * colsum[None, :]).to(tl.float32) * scale_a[:, None]
    else:
        out = (accumulator - tl.load(azp_ptr) * colsum[None, :]).to(tl.float32) * tl.load(scale_a_ptr)
    out = out * tl.load(scale_b_ptr + offsets_bn, mask=masks_bn, other=0.0)[None, :]
    out += tl.load(bias_ptr + offsets_bn, mask=masks_bn, other=0.0)[None, :].to(tl.float32)
    c_ptrs = c_ptr + stride_cm * offsets_am[:, None] + stride_cn * offsets_bn[None, :]
    tl.store(c_ptrs, out.to(c_ptr.type.element_ty), mask=masks_am[:, None] & masks_bn[None, :])


@case
def caravan_of_bytes_with_points_of_tokens(m=1100, n=1800, k=1700):
    a, b = ints(-128, 128, m, k, dtype="int8"), ints(-128, 128, n, k, dtype="int8").t()
    sa, sb, azp = uniform(m) * 0.02, uniform(n) * 0.02, ints(-100, 100, m)
    colsum, bias, c = b.to(torch.int32).sum(0).to(torch.int32), rand(n, dtype="bfloat16"), zeros(m, n, dtype="bfloat16")
    args = a, b, sa, sb, azp, colsum, bias, c, m, n, k, *a.stride(), *b.stride(), *c.stride()
    flags = dict(PER_TOKEN=True, BLOCK_SIZE_M=128, BLOCK_SIZE_N=128, BLOCK_SIZE_K=128)
    launched = run(scaled_mm_int8_azp_kernel, (cdiv(m, 128) * cdiv(n, 128),), args, c, num_warps=8, num_stages=3, **flags)

    def reference():
        return (a.double() - azp[:, None]) @ b.double() * sa[:, None] * sb + bias.double()

    return against(launched, reference)


@triton.jit
def ring_of_window_prefill_kernel(
    Q, K_new, V_new, K_ring, V_ring, Slots, Ctx, O, sm_scale, T, stride_qb, stride_qt, stride_qh, stride_kb, stride_kt, stride_kh, stride_rs, stride_rw, stride_rh,
    W: tl.constexpr, G: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # A chunk of new tokens over a cache that is a ring of W places: position p lies at p mod W; then the chunk itself, both within a window.
    start_m, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    ctx = tl.load(Ctx + b)
    slot = tl.load(Slots + b).to(tl.int64)
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    pos_q = ctx + offs_m
    q = tl.load(Q + b * stride_qb + offs_m[:, None] * stride_qt + h * stride_qh + offs_d[None, :], mask=offs_m[:, None] < T, other=0.0)
    q = (q.to(tl.float32) * (sm_scale * 1.4426950408889634)).to(q.dtype)
    m_i = tl.full([BLOCK_M], -1e30, tl.float32)
    l_i = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    low = tl.maximum(ctx + start_m * BLOCK_M - W + 1, 0)
    kr = K_ring + slot * stride_rs + (h // G) * stride_rh
    vr = V_ring + slot * stride_rs + (h // G) * stride_rh
    for n in range(low, ctx, BLOCK_N):
        pos = n + offs_n
        place = pos % W
        k = tl.load(kr + place[None, :] * stride_rw + offs_d[:, None], mask=pos[None, :] < ctx, other=0.0)
        v = tl.load(vr + place[:, None] * stride_rw + offs_d[None, :], mask=pos[:, None] < ctx, other=0.0)
        s = tl.dot(q, k)
        s = tl.where((pos[None, :] < ctx) & (pos_q[:, None] - pos[None, :] < W), s, -1e38)
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp2(s - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        m_i = m_new
    kn = K_new + b * stride_kb + (h // G) * stride_kh
    vn = V_new + b * stride_kb + (h // G) * stride_kh
    begin = tl.maximum(start_m * BLOCK_M - W + 1, 0) // BLOCK_N * BLOCK_N
    for n in range(begin, tl.minimum((start_m + 1) * BLOCK_M, T), BLOCK_N):
        cols = n + offs_n
        k = tl.load(kn + cols[None, :] * stride_kt + offs_d[:, None], mask=cols[None, :] < T, other=0.0)
        v = tl.load(vn + cols[:, None] * stride_kt + offs_d[None, :], mask=cols[:, None] < T, other=0.0)
        s = tl.dot(q, k)
        s = tl.where((cols[None, :] <= offs_m[:, None]) & (offs_m[:, None] - cols[None, :] < W), s, -1e38)
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.exp2(s - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
        m_i = m_new
    tl.store(O + b * stride_qb + offs_m[:, None] * stride_qt + h * stride_qh + offs_d[None, :], (acc / l_i[:, None]).to(O.dtype.element_ty), mask=offs_m[:, None] < T)


@case
def caravan_of_windows_in_a_ring(ctx=(5000, 0, 333, 1024, 77, 2600), t=700, w=512, kv=4, g=4, d=64):
    b = len(ctx)
    q, o = rand(b, t, kv * g, d), zeros(b, t, kv * g, d)
    k, v = rand(b, t, kv, d), rand(b, t, kv, d)
    kr, vr = rand(b + 3, w, kv, d), rand(b + 3, w, kv, d)
    slots = torch.randperm(b + 3, device="cuda")[:b].to(torch.int32)
    lengths = torch.tensor(ctx, dtype=torch.int32, device="cuda")
    args = q, k, v, kr, vr, slots, lengths, o, d**-0.5, t, *q.stride()[:3], *k.stride()[:3], *kr.stride()[:3]
    launched = run(ring_of_window_prefill_kernel, (cdiv(t, 64), kv * g, b), args, o, W=w, G=g, D=d, BLOCK_M=64, BLOCK_N=64, num_warps=4, num_stages=3)

    def reference():
        y = []
        for i in range(b):
            low = max(ctx[i] - w + 1, 0)
            pos = torch.arange(low, ctx[i], device=q.device)
            keys, values = (torch.cat((r[slots[i].long()][pos % w], n[i])).float().repeat_interleave(g, 1) for r, n in ((kr, k), (vr, v)))
            where = torch.arange(low, ctx[i] + t, device=q.device)
            far = (ctx[i] + torch.arange(t, device=q.device))[:, None] - where
            s = torch.einsum("mhd,nhd->hmn", q[i].float(), keys) * d**-0.5
            p = s.masked_fill((far < 0) | (far >= w), float("-inf")).softmax(2)
            y.append(torch.einsum("hmn,nhd->mhd", p, values))
        return torch.stack(y)

    return against(launched, reference)


@triton.jit
def tokens_in_their_stead_kernel(
    out_ptr, best_ptr, cu_draft_ptr, draft_ids_ptr, draft_probs_ptr, target_probs_ptr, noise_ptr, vocab, NO_DRAFT_PROBS: tl.constexpr, MAX_DRAFT: tl.constexpr, BLOCK: tl.constexpr,
):
    # Of what the target has more chance for than the draft, divided by exponential noise of the request, the largest; the grid has room for the most drafts.
    req = tl.program_id(0)
    pos = tl.program_id(1)
    start = 0 if req == 0 else tl.load(cu_draft_ptr + req - 1)
    end = tl.load(cu_draft_ptr + req)
    if pos >= end - start:
        return
    row = (start + pos).to(tl.int64) * vocab
    draft_id = tl.load(draft_ids_ptr + start + pos)
    best = -1.0
    best_id = 0
    for v in range(0, vocab, BLOCK):
        offs = v + tl.arange(0, BLOCK)
        mask = offs < vocab
        target = tl.load(target_probs_ptr + row + offs, mask=mask, other=0.0)
        if NO_DRAFT_PROBS:
            prob = tl.where(offs == draft_id, 0.0, target)
        else:
            prob = tl.maximum(target - tl.load(draft_probs_ptr + row + offs, mask=mask, other=0.0), 0.0)
        noise = tl.load(noise_ptr + req.to(tl.int64) * vocab + offs, mask=mask, other=1.0)
        score = tl.where(mask, prob / noise, -1.0)
        local, index = tl.max(score, axis=0, return_indices=True)
        if local > best:
            best = local
            best_id = v + index
    tl.store(out_ptr + start + pos, best_id)
    tl.store(best_ptr + start + pos, best)


@case
def caravan_of_tokens_in_their_stead(requests=70, vocab=51203, most=5):
    counts = torch.tensor([(3 * i + 1) % (most + 1) for i in range(requests)], device="cuda")
    cu = counts.cumsum(0).to(torch.int32)
    n = sum((3 * i + 1) % (most + 1) for i in range(requests))
    draft, target = (f32(n, vocab) * 2).softmax(1), (f32(n, vocab) * 2).softmax(1)
    noise = -torch.log(uniform(requests, vocab) * 0.999 + 0.0005)
    ids, out, best = ints(0, vocab, n), zeros(n, dtype="int64"), zeros(n, dtype="float32")
    args = out, best, cu, ids, draft, target, noise, vocab
    launched = run(tokens_in_their_stead_kernel, (requests, most), args, (out, best), NO_DRAFT_PROBS=False, MAX_DRAFT=most, BLOCK=4096, num_warps=8)

    def reference():
        owner = torch.arange(requests, device=counts.device).repeat_interleave(counts)
        value, index = ((target - draft).clamp(min=0) / noise[owner]).max(1)
        return index, value

    return against(launched, reference)


@triton.jit
def embedding_of_adapters_kernel(
    ids_ptr, base_ptr, A_ptr, B_ptr, y_ptr, seg_start_ptr, adapter_ptr, rank_ptr, scaling_ptr, hidden, stride_base, stride_aa, stride_av, stride_ba, stride_bh, stride_y,
    MAX_RANK: tl.constexpr, BLOCK_S: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # Words of segments with adapters of several ranks: rows of A by the words, times B, onto rows of the table; one tile of words stays for all of the hidden size.
    seg = tl.program_id(1)
    start = tl.load(seg_start_ptr + seg)
    length = tl.load(seg_start_ptr + seg + 1) - start
    block = tl.program_id(0)
    if block * BLOCK_S >= length:
        return
    adapter = tl.load(adapter_ptr + seg).to(tl.int64)
    rank = tl.load(rank_ptr + adapter)
    scaling = tl.load(scaling_ptr + adapter)
    s = block * BLOCK_S + tl.arange(0, BLOCK_S)
    s_mask = s < length
    word = tl.load(ids_ptr + start + s, mask=s_mask, other=0)
    r = tl.arange(0, MAX_RANK)
    a = tl.load(A_ptr + adapter * stride_aa + word[:, None] * stride_av + r[None, :], mask=s_mask[:, None] & (r[None, :] < rank), other=0.0)
    for n in tl.range(0, hidden, BLOCK_N):
        cols = n + tl.arange(0, BLOCK_N)
        mask = s_mask[:, None] & (cols[None, :] < hidden)
        y = tl.load(base_ptr + word[:, None] * stride_base + cols[None, :], mask=mask, other=0.0).to(tl.float32)
        if rank > 0:
            b = tl.load(B_ptr + adapter * stride_ba + cols[None, :] * stride_bh + r[:, None], mask=(r[:, None] < rank) & (cols[None, :] < hidden), other=0.0)
            y += tl.dot(a, b) * scaling
        tl.store(y_ptr + (start + s)[:, None].to(tl.int64) * stride_y + cols[None, :], y.to(y_ptr.dtype.element_ty), mask=mask)


@case
def caravan_of_words_with_adapters(lens=(700, 33, 1, 512, 900, 64, 250, 1300), ranks=(0, 8, 16, 64, 32), vocab=8000, hidden=1600):
    n, ads = sum(lens), len(ranks)
    ids = ints(0, vocab, n, dtype="int64")
    base, a, b = rand(vocab, hidden), rand(ads, vocab, 64), rand(ads, hidden, 64)
    starts = F.pad(torch.tensor(lens, device="cuda").cumsum(0), (1, 0)).to(torch.int32)
    which = [(3 * i + 1) % ads for i in range(len(lens))]
    adapter = torch.tensor(which, dtype=torch.int32, device="cuda")
    rank = torch.tensor(ranks, dtype=torch.int32, device="cuda")
    scaling, y = uniform(ads) * 0.3 + 0.1, zeros(n, hidden)
    args = ids, base, a, b, y, starts, adapter, rank, scaling, hidden, base.stride(0), *a.stride()[:2], *b.stride()[:2], y.stride(0)
    launched = run(embedding_of_adapters_kernel, (cdiv(max(lens), 32), len(lens)), args, y, MAX_RANK=64, BLOCK_S=32, BLOCK_N=128, num_warps=4, num_stages=2)

    def reference():
        out = base[ids].float()
        at = 0
        for i, length in enumerate(lens):
            e = which[i]
            out[at : at + length] += a[e][ids[at : at + length], : ranks[e]].float() @ b[e, :, : ranks[e]].float().t() * scaling[e]
            at += length
        return out

    return against(launched, reference)


@triton.jit
def few_words_of_a_teacher_kernel(
    logits_ptr, ids_ptr, probs_ptr, loss_ptr, lse_ptr, grad_ptr, V, inv_t, grad_scale, stride_l, K: tl.constexpr, BLOCK: tl.constexpr,
):
    # A student learns from the few words that a teacher kept: online sums of a row, the loss at those words, then the dense gradient, mended at the words after a barrier.
    row = tl.program_id(0).to(tl.int64)
    x_row = logits_ptr + row * stride_l
    g_row = grad_ptr + row * stride_l
    top = float("-inf")
    total = 0.0
    for i in range(0, V, BLOCK):
        offs = i + tl.arange(0, BLOCK)
        x = tl.load(x_row + offs, mask=offs < V, other=float("-inf")).to(tl.float32) * inv_t
        new = tl.maximum(top, tl.max(x))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(x - new))
        top = new
    lse = top + tl.log(total)
    k = tl.arange(0, K)
    ids = tl.load(ids_ptr + row * K + k)
    pt = tl.load(probs_ptr + row * K + k)
    xk = tl.load(x_row + ids).to(tl.float32) * inv_t
    mass = tl.sum(pt)
    loss = tl.sum(tl.where(pt > 0, pt * (tl.log(tl.maximum(pt, 1e-30)) - (xk - lse)), 0.0))
    tl.store(loss_ptr + row, loss)
    tl.store(lse_ptr + row, lse)
    for i in range(0, V, BLOCK):
        offs = i + tl.arange(0, BLOCK)
        x = tl.load(x_row + offs, mask=offs < V, other=float("-inf")).to(tl.float32) * inv_t
        g = tl.exp(x - lse) * mass * grad_scale
        tl.store(g_row + offs, g.to(grad_ptr.dtype.element_ty), mask=offs < V)
    tl.debug_barrier()
    tl.store(g_row + ids, ((tl.exp(xk - lse) * mass - pt) * grad_scale).to(grad_ptr.dtype.element_ty))


@case
def caravan_of_few_words_of_a_teacher(n=600, v=32011, k=64, t=2.0):
    x = rand(n, v, dtype="bfloat16") * 3
    ids = (ints(0, v, n, 1) + arange(k)[None] * 499) % v
    probs = (f32(n, k) * 2).softmax(1) * (uniform(n, 1) * 0.5 + 0.5)
    loss, lse, grad = zeros(n, dtype="float32"), zeros(n, dtype="float32"), zeros(n, v, dtype="bfloat16")
    args = x, ids, probs, loss, lse, grad, v, 1 / t, 1 / t * 1000, x.stride(0)
    launched = run(few_words_of_a_teacher_kernel, (n,), args, (loss, lse, grad), K=k, BLOCK=8192, num_warps=16)

    def reference():
        z = x.float() / t
        s = z.logsumexp(1)
        at = z.gather(1, ids.long())
        g = (z - s[:, None]).exp() * probs.sum(1, keepdim=True)
        g.scatter_add_(1, ids.long(), -probs)
        return (probs * (probs.log() - (at - s[:, None]))).sum(1), s, g * (1000 / t)

    return against(launched, reference)


@triton.jit
def mrope_interleaved_kernel(
    q_ptr, k_ptr, qo_ptr, ko_ptr, pos_ptr, cos_ptr, sin_ptr, T, stride_qt, stride_kt, stride_pos, n_qh: tl.constexpr, n_kh: tl.constexpr, hd: tl.constexpr,
    pad_qh: tl.constexpr, pad_kh: tl.constexpr, sec_h: tl.constexpr, sec_w: tl.constexpr,
):
    # Turns by time, height and width that alternate from frequency to frequency while a section lasts; queries and keys of a token at once.
    t = tl.program_id(0).to(tl.int64)
    half: tl.constexpr = hd // 2
    f = tl.arange(0, half)
    use_h = (f % 3 == 1) & (f < sec_h * 3)
    use_w = (f % 3 == 2) & (f < sec_w * 3)
    axis = tl.where(use_h, 1, tl.where(use_w, 2, 0))
    pos = tl.load(pos_ptr + axis * stride_pos + t)
    c = tl.load(cos_ptr + pos * half + f)[None, :]
    s = tl.load(sin_ptr + pos * half + f)[None, :]
    for which in tl.static_range(2):
        if which == 0:
            src, dst, stride, heads = q_ptr, qo_ptr, stride_qt, tl.arange(0, pad_qh)
            ok = (heads < n_qh)[:, None] & (f < half)[None, :]
        else:
            src, dst, stride, heads = k_ptr, ko_ptr, stride_kt, tl.arange(0, pad_kh)
            ok = (heads < n_kh)[:, None] & (f < half)[None, :]
        at = t * stride + heads[:, None] * hd + f[None, :]
        x0 = tl.load(src + at, mask=ok, other=0).to(tl.float32)
        x1 = tl.load(src + at + half, mask=ok, other=0).to(tl.float32)
        tl.store(dst + at, (x0 * c - x1 * s).to(dst.dtype.element_ty), mask=ok)
        tl.store(dst + at + half, (x1 * c + x0 * s).to(dst.dtype.element_ty), mask=ok)


@case
def caravan_of_turns_that_alternate(t=5003, hq=28, hk=4, d=128, sections=(24, 20, 20)):
    q, k = rand(t, hq, d, dtype="bfloat16"), rand(t, hk, d, dtype="bfloat16")
    qo, ko = torch.zeros_like(q), torch.zeros_like(k)
    pos = ints(0, 400, 3, t, dtype="int64")
    angle = torch.outer(torch.arange(400, device="cuda").float(), 10000.0 ** (-torch.arange(0, d, 2, device="cuda").float() / d))
    cos, sin = angle.cos().contiguous(), angle.sin().contiguous()
    args = q, k, qo, ko, pos, cos, sin, t, q.stride(0), k.stride(0), pos.stride(0)
    flags = dict(n_qh=hq, n_kh=hk, hd=d, pad_qh=32, pad_kh=4, sec_h=sections[1], sec_w=sections[2])
    launched = run(mrope_interleaved_kernel, (t,), args, (qo, ko), num_warps=4, **flags)

    def reference():
        c, s = cos[pos[0]].clone(), sin[pos[0]].clone()
        for i in (1, 2):
            at = slice(i, sections[i] * 3, 3)
            c[:, at], s[:, at] = cos[pos[i]][:, at], sin[pos[i]][:, at]
        c, s = torch.cat((c, c), 1)[:, None], torch.cat((s, s), 1)[:, None]
        return tuple(x.float() * c + torch.cat((-x[..., d // 2 :], x[..., : d // 2]), 2).float() * s for x in (q, k))

    return against(launched, reference)


@triton.jit
def bytes_along_both_ways_kernel(x_ptr, row_ptr, row_scale_ptr, col_ptr, col_scale_ptr, M, N, stride_x, BLOCK: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr):
    # FP8 of a matrix along rows, and along columns turned, each 32 with a power of two of their own.
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    m = pid_m * TILE_M + tl.arange(0, TILE_M)
    n = pid_n * TILE_N + tl.arange(0, TILE_N)
    x = tl.load(x_ptr + m[:, None] * stride_x + n[None, :], mask=(m[:, None] < M) & (n[None, :] < N), other=0.0).to(tl.float32)
    by_row = tl.reshape(x, (TILE_M, TILE_N // BLOCK, BLOCK))
    amax = tl.max(tl.abs(by_row), axis=2)
    e = (amax.to(tl.int32, bitcast=True) >> 23) - 8
    e = tl.minimum(tl.maximum(e, 1), 254)
    inverse = ((254 - e) << 23).to(tl.float32, bitcast=True)
    y = tl.reshape(tl.clamp(by_row * inverse[:, :, None], -448.0, 448.0), (TILE_M, TILE_N)).to(tl.float8e4nv)
    tl.store(row_ptr + m[:, None] * N + n[None, :], y, mask=(m[:, None] < M) & (n[None, :] < N))
    g = pid_n * (TILE_N // BLOCK) + tl.arange(0, TILE_N // BLOCK)
    tl.store(row_scale_ptr + m[:, None] * (N // BLOCK) + g[None, :], e.to(tl.uint8), mask=(m[:, None] < M) & (g[None, :] < N // BLOCK))
    by_col = tl.reshape(tl.trans(x), (TILE_N, TILE_M // BLOCK, BLOCK))
    amax = tl.max(tl.abs(by_col), axis=2)
    e = (amax.to(tl.int32, bitcast=True) >> 23) - 8
    e = tl.minimum(tl.maximum(e, 1), 254)
    inverse = ((254 - e) << 23).to(tl.float32, bitcast=True)
    z = tl.reshape(tl.clamp(by_col * inverse[:, :, None], -448.0, 448.0), (TILE_N, TILE_M)).to(tl.float8e4nv)
    tl.store(col_ptr + n[:, None] * M + m[None, :], z, mask=(m[None, :] < M) & (n[:, None] < N))
    g = pid_m * (TILE_M // BLOCK) + tl.arange(0, TILE_M // BLOCK)
    tl.store(col_scale_ptr + n[:, None] * (M // BLOCK) + g[None, :], e.to(tl.uint8), mask=(n[:, None] < N) & (g[None, :] < M // BLOCK))


@case
def caravan_of_bytes_along_both_ways(m=4064, n=3040):
    x = rand(m, n, dtype="bfloat16") * torch.exp(f32(m, 1))
    x = x.to(torch.bfloat16)
    row, col = zeros(m, n, dtype="float8_e4m3fn"), zeros(n, m, dtype="float8_e4m3fn")
    rs, cs = zeros(m, n // 32, dtype="uint8"), zeros(n, m // 32, dtype="uint8")
    launched = run(bytes_along_both_ways_kernel, (cdiv(m, 64), cdiv(n, 64)), (x, row, rs, col, cs, m, n, x.stride(0)), (row, rs, col, cs), BLOCK=32, TILE_M=64, TILE_N=64, num_warps=4)

    def one(a):
        b = a.float().reshape(a.shape[0], -1, 32)
        e = (torch.frexp(b.abs().amax(2))[1] + 126 - 8).clamp(1, 254)
        y = (b * torch.exp2(127.0 - e)[..., None]).clamp(-448, 448).reshape(a.shape)
        return far8(y.to(torch.float8_e4m3fn)), e.float()

    launched = viewed(launched, lambda v: (far8(v[0]), v[1].float(), far8(v[2]), v[3].float()))
    return against(launched, lambda: (*one(x), *one(x.t().contiguous())))


@triton.jit
def toeplitz_tiles_conv_kernel(
    q_ptr, k_ptr, v_ptr, h_ptr, y_ptr, T, stride_b, stride_t, TAPS: tl.constexpr, CG: tl.constexpr, BT: tl.constexpr,
):
    # q * (h conv (k * v)) where groups of channels share a long causal filter: tiles of a Toeplitz matrix are loaded from the filter as they are met.
    i_t, i_g, i_b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    r = tl.arange(0, BT)
    c = i_g * CG + tl.arange(0, CG)
    base = i_b.to(tl.int64) * stride_b
    lag = r[:, None] - r[None, :]
    acc = tl.zeros((BT, CG), dtype=tl.float32)
    first = tl.maximum(i_t - (TAPS + BT - 2) // BT, 0)
    for i_s in range(first, i_t + 1):
        s = i_s * BT + r
        tap = (i_t - i_s) * BT + lag
        h = tl.load(h_ptr + i_g * TAPS + tap, mask=(tap >= 0) & (tap < TAPS), other=0.0)
        at = base + s[:, None] * stride_t + c[None, :]
        k = tl.load(k_ptr + at, mask=s[:, None] < T, other=0.0)
        v = tl.load(v_ptr + at, mask=s[:, None] < T, other=0.0)
        acc = tl.dot(h, k * v, acc)
    t = i_t * BT + r
    at = base + t[:, None] * stride_t + c[None, :]
    q = tl.load(q_ptr + at, mask=t[:, None] < T, other=0.0)
    tl.store(y_ptr + at, (acc * q).to(y_ptr.dtype.element_ty), mask=t[:, None] < T)


@case
def caravan_of_filters_as_toeplitz_tiles(b=2, t=3000, groups=24, cg=64, taps=301):
    q, k, v, y = (rand(b, t, groups * cg) for _ in range(4))
    h = rand(groups, taps) * torch.exp(-arange(taps).float() / 90)
    h = h.to(torch.float16)
    launched = run(toeplitz_tiles_conv_kernel, (cdiv(t, 64), groups, b), (q, k, v, h, y, t, y.stride(0), y.stride(1)), y, TAPS=taps, CG=cg, BT=64, num_warps=4, num_stages=3)

    def reference():
        x = F.pad((k * v).float().transpose(1, 2), (taps - 1, 0))
        z = F.conv1d(x, h.float().flip(1).repeat_interleave(cg, 0)[:, None], groups=groups * cg)
        return z.transpose(1, 2) * q.float()

    return against(launched, reference)


@triton.jit
def log_linear_attention_kernel(q, k, v, g, levels, o, scale, T, H: tl.constexpr, L: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr, BV: tl.constexpr):
    # Linear attention with decays where each pair is weighed by its level in a Fenwick tree: the highest bit in which two places differ.
    i_v, i_t, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    bos = i_b * T
    p_q = tl.make_block_ptr(q + (bos * H + i_h) * K, (T, K), (H * K, 1), (i_t * BT, 0), (BT, K), (1, 0))
    b_q = tl.load(p_q, boundary_check=(0,))
    o_t = i_t * BT + tl.arange(0, BT)
    m_t = o_t < T
    b_gt = tl.load(g + (bos + o_t) * H + i_h, mask=m_t, other=0.0)
    b_o = tl.zeros([BT, BV], dtype=tl.float32)
    for i_s in range(0, tl.cdiv(tl.minimum((i_t + 1) * BT, T), BS)):
        p_k = tl.make_block_ptr(k + (bos * H + i_h) * K, (K, T), (1, H * K), (0, i_s * BS), (K, BS), (0, 1))
        p_v = tl.make_block_ptr(v + (bos * H + i_h) * V, (T, V), (H * V, 1), (i_s * BS, i_v * BV), (BS, BV), (1, 0))
        b_k = tl.load(p_k, boundary_check=(1,))
        b_v = tl.load(p_v, boundary_check=(0, 1))
        o_s = i_s * BS + tl.arange(0, BS)
        b_gs = tl.load(g + (bos + o_s) * H + i_h, mask=o_s < T, other=0.0)
        differ = o_t[:, None] ^ o_s[None, :]
        level = ((differ.to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 126)
        level = tl.where(differ == 0, 0, level)
        seen = (o_t[:, None] >= o_s[None, :]) & m_t[:, None]
        b_l = tl.load(levels + ((bos + o_t) * H + i_h)[:, None] * L + level, mask=seen, other=0.0)
        b_s = tl.dot(b_q, b_k) * tl.exp(tl.where(seen, b_gt[:, None] - b_gs[None, :], 0.0)) * b_l
        b_o = tl.dot(b_s.to(b_v.dtype), b_v, b_o)
    p_o = tl.make_block_ptr(o + (bos * H + i_h) * V, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
    tl.store(p_o, (b_o * scale).to(p_o.dtype.element_ty), boundary_check=(0, 1))


@case
def caravan_of_levels_by_fenwick(b=2, h=8, t=1500, d=64, levels=12):
    q, k, v, o = (rand(b, t, h, d) for _ in range(4))
    g = (-uniform(b, t, h) * 0.02).cumsum(1)
    lam = uniform(b, t, h, levels)
    flags = dict(H=h, L=levels, K=d, V=d, BT=64, BS=32, BV=64)
    launched = run(log_linear_attention_kernel, (1, cdiv(t, 64), b * h), (q, k, v, g, lam, o, d**-0.5, t), o, num_warps=4, num_stages=2, **flags)

    def reference():
        i = torch.arange(t, device=q.device)
        level = torch.frexp((i[:, None] ^ i[None]).float())[1].long()
        fade = (g.transpose(1, 2)[..., None] - g.transpose(1, 2)[:, :, None]).clamp(max=0).exp()
        s = torch.einsum("bthd,bshd->bhts", q.float(), k.float()) * fade * lam.transpose(1, 2).gather(3, level.expand(b, h, t, t))
        return torch.einsum("bhts,bshd->bthd", s.tril(), v.float()) * d**-0.5

    return against(launched, reference)


@triton.jit
def prefix_of_many_then_merged_kernel(
    Q, K_prefix, V_prefix, O_own, LSE_own, O, LSE, scale, rows, prefix_len, stride_q, stride_k, stride_lse, GROUP: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # One prefix for all sequences: their queries and a group's heads are rows of one tile; then what each found in its own cache is merged in.
    kvh = tl.program_id(1)
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    seq, head = m // GROUP, kvh * GROUP + m % GROUP
    m_ok = m < rows * GROUP
    d = tl.arange(0, D)
    at = seq[:, None] * stride_q + head[:, None] * D + d[None, :]
    q = tl.load(Q + at, mask=m_ok[:, None], other=0.0)
    K_blk = tl.make_block_ptr(K_prefix + kvh * D, (D, prefix_len), (1, stride_k), (0, 0), (D, BLOCK_N), (0, 1))
    V_blk = tl.make_block_ptr(V_prefix + kvh * D, (prefix_len, D), (stride_k, 1), (0, 0), (BLOCK_N, D), (1, 0))
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    den = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    full = prefix_len // BLOCK_N * BLOCK_N
    for n in tl.range(0, prefix_len, BLOCK_N, num_stages=3):
        if n < full:
            k = tl.load(K_blk)
            v = tl.load(V_blk)
            s = tl.dot(q, k) * scale
        else:
            k = tl.load(K_blk, boundary_check=(1,), padding_option="zero")
            v = tl.load(V_blk, boundary_check=(0,), padding_option="zero")
            s = tl.where(n + tl.arange(0, BLOCK_N)[None, :] < prefix_len, tl.dot(q, k) * scale, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        shrink = tl.exp(top - new)
        den = den * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        top = new
        K_blk = tl.advance(K_blk, (0, BLOCK_N))
        V_blk = tl.advance(V_blk, (BLOCK_N, 0))
    lse = top + tl.log(den)
    own = tl.load(LSE_own + seq * stride_lse + head, mask=m_ok, other=float("-inf"))
    high = tl.maximum(lse, own)
    a, b = tl.exp(lse - high), tl.exp(own - high)
    o = tl.load(O_own + at, mask=m_ok[:, None], other=0.0).to(tl.float32)
    out = (acc / den[:, None]) * (a / (a + b))[:, None] + o * (b / (a + b))[:, None]
    tl.store(O + at, out.to(O.dtype.element_ty), mask=m_ok[:, None])
    tl.store(LSE + seq * stride_lse + head, high + tl.log(a + b), mask=m_ok)


@case
def caravan_of_prefixes_of_many(b=250, prefix=1900, kv=8, group=6, d=128):
    q, own, o = rand(b, kv * group, d), rand(b, kv * group, d), zeros(b, kv * group, d)
    k, v = rand(prefix, kv, d), rand(prefix, kv, d)
    lse_own, lse = f32(b, kv * group) + 7, zeros(b, kv * group, dtype="float32")
    args = q, k, v, own, lse_own, o, lse, d**-0.5, b, prefix, q.stride(0), k.stride(0), lse.stride(0)
    launched = run(prefix_of_many_then_merged_kernel, (cdiv(b * group, 128), kv), args, (o, lse), GROUP=group, D=d, BLOCK_M=128, BLOCK_N=64, num_warps=8)

    def reference():
        s = torch.einsum("bkgd,nkd->bkgn", q.float().view(b, kv, group, d), k.float()) * d**-0.5
        x, z = torch.einsum("bkgn,nkd->bkgd", s.softmax(3), v.float()).reshape(b, -1, d), s.logsumexp(3).reshape(b, -1)
        both = torch.logaddexp(z, lse_own)
        return x * (z - both).exp()[..., None] + own.float() * (lse_own - both).exp()[..., None], both

    return against(launched, reference)


@triton.jit
def rows_with_heads_of_their_own_kernel(
    table_ptr, indices_ptr, offsets_ptr, weights_ptr, out_ptr, D: tl.constexpr, ROW: tl.constexpr, BLOCK_D: tl.constexpr, WEIGHTED: tl.constexpr, MEAN: tl.constexpr,
):
    # Bags of rows of four bits; a row's first four bytes are two halves: its scale and its bias.
    bag = tl.program_id(0).to(tl.int64)
    start = tl.load(offsets_ptr + bag)
    end = tl.load(offsets_ptr + bag + 1)
    d = tl.arange(0, BLOCK_D)
    acc = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for i in range(start, end):
        index = tl.load(indices_ptr + i)
        if index >= 0:
            row = table_ptr + index * ROW
            head = row.to(tl.pointer_type(tl.float16))
            scale = tl.load(head).to(tl.float32)
            bias = tl.load(head + 1).to(tl.float32)
            byte = tl.load(row + 4 + d // 2, mask=d < D, other=0)
            code = (byte >> ((d % 2) * 4).to(tl.uint8)) & 15
            weight = tl.load(weights_ptr + i) if WEIGHTED else 1.0
            acc += (code.to(tl.float32) * scale + bias) * weight
    if MEAN:
        acc = acc / tl.maximum(end - start, 1).to(tl.float32)
    tl.store(out_ptr + bag * D + d, acc.to(out_ptr.dtype.element_ty), mask=d < D)


@case
def caravan_of_rows_with_heads_of_their_own(rows=100000, bags=9000, d=184, most=24):
    codes = ints(0, 256, rows, d // 2, dtype="uint8")
    facts = torch.stack((uniform(rows) * 0.1 + 0.02, f32(rows)), 1).to(torch.float16)
    table = torch.cat((facts.view(torch.uint8), codes), 1).contiguous()
    counts = (arange(bags, "int64") * 7) % (most + 1)
    offsets = F.pad(counts.cumsum(0), (1, 0))
    n = sum(i * 7 % (most + 1) for i in range(bags))
    index = ints(-1, rows, n, dtype="int64")
    index = torch.where(arange(n) % 11 == 3, -1, index)
    weights, out = uniform(n), zeros(bags, d)
    flags = dict(D=d, ROW=table.shape[1], BLOCK_D=256, WEIGHTED=True, MEAN=True)
    launched = run(rows_with_heads_of_their_own_kernel, (bags,), (table, index, offsets, weights, out), out, num_warps=2, **flags)

    def reference():
        at = index.clamp(min=0)
        c = torch.stack((codes[at] & 15, codes[at] >> 4), 2).reshape(n, d).float()
        x = (c * facts[at, :1].float() + facts[at, 1:].float()) * (weights * (index >= 0))[:, None]
        owner = torch.arange(bags, device=counts.device).repeat_interleave(counts)
        return torch.zeros(bags, d, device=x.device).index_add(0, owner, x) / counts.clamp(min=1)[:, None]

    return against(launched, reference)


@triton.jit
def w4a4_low_rank_gelu_kernel(
    a_ptr, w_ptr, as_ptr, ws_ptr, down_ptr, up_ptr, bias_ptr, y_ptr, M, N, K, stride_am, stride_wn, stride_as, stride_ws, RANK: tl.constexpr, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):
    # Four bits by four, two in a byte on both sides, with scales of groups; a thin product of halves mends what they lost; then GELU by tanh.
    pid_n, pid_m = tl.program_id(0), tl.program_id(1)
    m = pid_m * BM + tl.arange(0, BM)
    n = pid_n * BN + tl.arange(0, BN)
    m_ok, n_ok = m < M, n < N
    b = tl.arange(0, GROUP // 2)
    a_ptrs = a_ptr + m[:, None] * stride_am + b[None, :]
    w_ptrs = w_ptr + n[:, None] * stride_wn + b[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for g in range(K // GROUP):
        a = tl.load(a_ptrs, mask=m_ok[:, None], other=0)
        w = tl.load(w_ptrs, mask=n_ok[:, None], other=0)
        part = tl.dot((a << 4) >> 4, tl.trans((w << 4) >> 4), out_dtype=tl.int32)
        part = tl.dot(a >> 4, tl.trans(w >> 4), part, out_dtype=tl.int32)
        sa = tl.load(as_ptr + g * stride_as + m, mask=m_ok, other=0.0).to(tl.float32)
        sw = tl.load(ws_ptr + g * stride_ws + n, mask=n_ok, other=0.0).to(tl.float32)
        acc += part.to(tl.float32) * sa[:, None] * sw[None, :]
        a_ptrs += GROUP // 2
        w_ptrs += GROUP // 2
    r = tl.arange(0, RANK)
    down = tl.load(down_ptr + m[:, None] * RANK + r[None, :], mask=m_ok[:, None], other=0.0)
    up = tl.load(up_ptr + n[None, :] * RANK + r[:, None], mask=n_ok[None, :], other=0.0)
    acc = tl.dot(down, up, acc)
    acc += tl.load(bias_ptr + n, mask=n_ok, other=0.0).to(tl.float32)[None, :]
    inner = 0.7978845608 * (acc + 0.044715 * acc * acc * acc)
    y = acc * tl.sigmoid(2.0 * inner)
    tl.store(y_ptr + m[:, None] * N + n[None, :], y.to(y_ptr.dtype.element_ty), mask=m_ok[:, None] & n_ok[None, :])


@case
def caravan_of_four_bits_times_four(m=1900, n=1500, k=1536, rank=32, group=64):
    a, w = ints(-128, 128, m, k // 2, dtype="int8"), ints(-128, 128, n, k // 2, dtype="int8")
    sa, sw = uniform(k // group, m) * 0.02 + 0.002, uniform(k // group, n) * 0.1
    sa, sw = sa.to(torch.float16), sw.to(torch.float16)
    down, up, bias, y = rand(m, rank), rand(n, rank) * 0.1, rand(n), zeros(m, n)
    args = a, w, sa, sw, down, up, bias, y, m, n, k, a.stride(0), w.stride(0), sa.stride(0), sw.stride(0)
    launched = run(w4a4_low_rank_gelu_kernel, (cdiv(n, 128), cdiv(m, 64)), args, y, RANK=rank, GROUP=group, BM=64, BN=128, num_warps=4, num_stages=4)

    def reference():
        def opened(x, s):
            return torch.stack((x << 4 >> 4, x >> 4), 2).reshape(x.shape[0], -1).float() * s.t().float().repeat_interleave(group, 1)

        return F.gelu(opened(a, sa) @ opened(w, sw).t() + down.float() @ up.float().t() + bias.float(), approximate="tanh")

    return against(launched, reference)


@triton.jit
def token_shift_lerps_bwd_kernel(x_ptr, mix_ptr, dr_ptr, dk_ptr, dv_ptr, dx_ptr, dmix_ptr, T, C, per, BLOCK_T: tl.constexpr, BLOCK_C: tl.constexpr):
    # Back through three mixtures of a token with the one before: gradients of tokens, and of mixtures as sums that programs add up.
    i_c = tl.program_id(0)
    i_s = tl.program_id(1)
    i_b = tl.program_id(2)
    c = i_c * BLOCK_C + tl.arange(0, BLOCK_C)
    c_ok = c < C
    x_ptr += i_b.to(tl.int64) * T * C
    dx_ptr += i_b.to(tl.int64) * T * C
    mr = tl.load(mix_ptr + c, mask=c_ok, other=0.0).to(tl.float32)
    mk = tl.load(mix_ptr + C + c, mask=c_ok, other=0.0).to(tl.float32)
    mv = tl.load(mix_ptr + 2 * C + c, mask=c_ok, other=0.0).to(tl.float32)
    sr = tl.zeros((BLOCK_C,), dtype=tl.float32)
    sk = tl.zeros((BLOCK_C,), dtype=tl.float32)
    sv = tl.zeros((BLOCK_C,), dtype=tl.float32)
    for t0 in range(i_s * per, min((i_s + 1) * per, T), BLOCK_T):
        t = t0 + tl.arange(0, BLOCK_T)
        ok = (t[:, None] < T) & c_ok[None, :]
        at = t[:, None] * C + c[None, :]
        x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
        before = tl.load(x_ptr + at - C, mask=ok & (t[:, None] > 0), other=0.0).to(tl.float32)
        grad = tl.zeros((BLOCK_T, BLOCK_C), dtype=tl.float32)
        for j in tl.static_range(3):
            d_ptr = (dr_ptr if j == 0 else (dk_ptr if j == 1 else dv_ptr)) + i_b.to(tl.int64) * T * C
            mix = mr if j == 0 else (mk if j == 1 else mv)
            d = tl.load(d_ptr + at, mask=ok, other=0.0).to(tl.float32)
            after = tl.load(d_ptr + at + C, mask=ok & (t[:, None] < T - 1), other=0.0).to(tl.float32)
            grad += d * (1.0 - mix)[None, :] + after * mix[None, :]
            part = tl.sum(d * (before - x), axis=0)
            if j == 0:
                sr += part
            elif j == 1:
                sk += part
            else:
                sv += part
        tl.store(dx_ptr + at, grad.to(dx_ptr.dtype.element_ty), mask=ok)
    tl.atomic_add(dmix_ptr + c, sr, mask=c_ok, sem="relaxed")
    tl.atomic_add(dmix_ptr + C + c, sk, mask=c_ok, sem="relaxed")
    tl.atomic_add(dmix_ptr + 2 * C + c, sv, mask=c_ok, sem="relaxed")


@case
def caravan_of_shifted_tokens_back(b=6, t=1500, c=1800, per=128):
    x, dr, dk, dv, dx = (rand(b, t, c, dtype="bfloat16") for _ in range(5))
    mix, dmix = uniform(3, c).to(torch.bfloat16), zeros(3, c, dtype="float32")
    launched = run(token_shift_lerps_bwd_kernel, (cdiv(c, 128), cdiv(t, per), b), (x, mix, dr, dk, dv, dx, dmix, t, c, per), (dx, dmix), BLOCK_T=16, BLOCK_C=128, num_warps=4)

    def reference():
        before = F.pad(x.float(), (0, 0, 1, 0))[:, :-1]
        g, sums = 0, []
        for d, m in zip((dr, dk, dv), mix.float()):
            d = d.float()
            g = g + d * (1 - m) + F.pad(d, (0, 0, 0, 1))[:, 1:] * m
            sums.append((d * (before - x.float())).sum((0, 1)))
        return g, torch.stack(sums)

    return against(cleared(launched, dmix), reference)
