"""Armadas: what stacks of now ship: channels that fade, entropies of heads, trees of drafts, gradients of scans and experts, eight bits by four, turned blocks, cached frames, matrix memories."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, case, cdiv, f32, ints, rand, run, uniform, zeros


@triton.jit
def kda_intra_scores_kernel(q, k, g, A, scale, T, H: tl.constexpr, K: tl.constexpr, BT: tl.constexpr, BC: tl.constexpr, BK: tl.constexpr, NC: tl.constexpr):
    # Scores inside chunks where each channel fades by itself: blocks below the diagonal by products, the diagonal row by row.
    i_c, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    i_t, i_i = i_c // NC, i_c % NC
    base = (i_b * T * H + i_h).to(tl.int64) * K
    first = i_t * BT + i_i * BC
    if first >= T:
        return
    o_i = first + tl.arange(0, BC)
    m_i = o_i < T
    o_c = tl.arange(0, BC)
    rows = A + (i_bh * T + o_i[:, None]) * BT
    for i_j in range(0, i_i):
        o_j = i_t * BT + i_j * BC + tl.arange(0, BC)
        b_A = tl.zeros([BC, BC], dtype=tl.float32)
        for i_k in range(tl.cdiv(K, BK)):
            o_k = i_k * BK + tl.arange(0, BK)
            m_k = o_k < K
            b_gn = tl.load(g + base + first * H * K + o_k, mask=m_k, other=0.0)
            at_i = base + o_i[:, None] * (H * K) + o_k[None, :]
            at_j = base + o_j[None, :] * (H * K) + o_k[:, None]
            b_q = tl.load(q + at_i, mask=m_i[:, None] & m_k[None, :], other=0.0).to(tl.float32)
            b_g = tl.load(g + at_i, mask=m_i[:, None] & m_k[None, :], other=0.0)
            b_k = tl.load(k + at_j, mask=m_k[:, None], other=0.0).to(tl.float32)
            b_gk = tl.load(g + at_j, mask=m_k[:, None], other=0.0)
            b_A += tl.dot(b_q * tl.exp2(b_g - b_gn[None, :]), b_k * tl.exp2(b_gn[:, None] - b_gk))
        tl.store(rows + i_j * BC + o_c[None, :], b_A * scale, mask=m_i[:, None])
    o_k = tl.arange(0, K)
    at = base + o_i[:, None] * (H * K) + o_k[None, :]
    b_q = tl.load(q + at, mask=m_i[:, None], other=0.0).to(tl.float32)
    b_g = tl.load(g + at, mask=m_i[:, None], other=0.0)
    for j in range(0, tl.minimum(BC, T - first)):
        one = base + (first + j) * H * K + o_k
        b_kj = tl.load(k + one).to(tl.float32)
        b_gj = tl.load(g + one)
        b_a = tl.sum(b_q * b_kj[None, :] * tl.exp2(tl.minimum(b_g - b_gj[None, :], 0.0)), 1)
        b_a = tl.where(o_c >= j, b_a * scale, 0.0)
        tl.store(A + (i_bh * T + o_i) * BT + i_i * BC + j, b_a, mask=m_i)


@case
def armada_of_channels_that_fade_by_themselves(batch=2, t=2011, heads=8, d=128):
    q, k = rand(batch, t, heads, d, dtype="bfloat16"), rand(batch, t, heads, d, dtype="bfloat16")
    steps = F.pad(-uniform(batch, t, heads, d) * 0.3, (0, 0, 0, 0, 0, -t % 64))
    g = steps.reshape(batch, -1, 64, heads, d).cumsum(2).reshape(batch, -1, heads, d)[:, :t].contiguous()
    A = zeros(batch, heads, t, 64, dtype="float32")
    launched = run(kda_intra_scores_kernel, (cdiv(t, 64) * 4, batch * heads), (q, k, g, A, d**-0.5, t), A, H=heads, K=d, BT=64, BC=16, BK=64, NC=4, num_warps=4, num_stages=2)

    def reference():
        y = torch.zeros_like(A)
        for c in range(0, t, 64):
            a, b, e = (x[:, c : c + 64].float().transpose(1, 2) for x in (q, k, g))
            for j in range(a.shape[2]):
                fade = torch.exp2((e[:, :, j:] - e[:, :, j : j + 1]).clamp(max=0))
                y[:, :, c + j : c + 64, j] = (a[:, :, j:] * b[:, :, j : j + 1] * fade).sum(3) * d**-0.5
        return y

    return against(launched, reference)


@triton.jit
def head_logprob_entropy_parts_kernel(
    x_ptr, w_ptr, label_ptr, max_ptr, sum_ptr, dot_ptr, hit_ptr, M, V, K, stride_xm, stride_wv, inv_temperature, per_split,
    BLOCK_M: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Of a head's logits that are never stored: a split's largest one, sums of exponentials, their sums times logits, and the label's.
    pid_m = tl.program_id(0)
    split = tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_k = tl.arange(0, BLOCK_K)
    m_mask = offs_m < M
    label = tl.load(label_ptr + offs_m, mask=m_mask, other=-1)
    row_max = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    row_sum = tl.zeros((BLOCK_M,), dtype=tl.float32)
    row_dot = tl.zeros((BLOCK_M,), dtype=tl.float32)
    row_hit = tl.zeros((BLOCK_M,), dtype=tl.float32)
    v_end = tl.minimum((split + 1) * per_split, V)
    for v0 in range(split * per_split, v_end, BLOCK_V):
        offs_v = v0 + tl.arange(0, BLOCK_V)
        v_mask = offs_v < v_end
        logits = tl.zeros((BLOCK_M, BLOCK_V), dtype=tl.float32)
        for k0 in range(0, K, BLOCK_K):
            x = tl.load(x_ptr + offs_m[:, None] * stride_xm + k0 + offs_k[None, :], mask=m_mask[:, None] & (k0 + offs_k[None, :] < K), other=0.0)
            w = tl.load(w_ptr + offs_v[:, None].to(tl.int64) * stride_wv + k0 + offs_k[None, :], mask=v_mask[:, None] & (k0 + offs_k[None, :] < K), other=0.0)
            logits = tl.dot(x, w.T, logits)
        logits = tl.where(v_mask[None, :], logits * inv_temperature, float("-inf"))
        new_max = tl.maximum(row_max, tl.max(logits, axis=1))
        e = tl.exp(logits - new_max[:, None])
        shrink = tl.exp(row_max - new_max)
        row_sum = row_sum * shrink + tl.sum(e, axis=1)
        row_dot = row_dot * shrink + tl.sum(tl.where(v_mask[None, :], e * logits, 0.0), axis=1)
        row_hit += tl.sum(tl.where(offs_v[None, :] == label[:, None], logits, 0.0), axis=1)
        row_max = new_max
    out = split * M + offs_m
    tl.store(max_ptr + out, row_max, mask=m_mask)
    tl.store(sum_ptr + out, row_sum, mask=m_mask)
    tl.store(dot_ptr + out, row_dot, mask=m_mask)
    tl.store(hit_ptr + out, row_hit, mask=m_mask)


@case
def armada_of_heads_that_tell_their_entropy(m=1500, v=12037, k=512, splits=6):
    x, w, label = rand(m, k, dtype="bfloat16"), rand(v, k, dtype="bfloat16") * 0.06, ints(0, v, m, dtype="int64")
    outs = tuple(zeros(splits, m, dtype="float32") for _ in range(4))
    per = cdiv(cdiv(v, splits), 128) * 128
    args = x, w, label, *outs, m, v, k, x.stride(0), w.stride(0), 1 / 0.7, per
    launched = run(head_logprob_entropy_parts_kernel, (cdiv(m, 64), splits), args, outs, BLOCK_M=64, BLOCK_V=128, BLOCK_K=64, num_warps=4, num_stages=4)

    def reference():
        z = x.float() @ w.float().t() / 0.7
        facts = []
        for s in range(splits):
            part = z[:, s * per : (s + 1) * per]
            high = part.amax(1)
            e = (part - high[:, None]).exp()
            at = label - s * per
            inside = (at >= 0) & (at < part.shape[1])
            hit = part.gather(1, at.clamp(0, part.shape[1] - 1)[:, None])[:, 0] * inside
            facts.append((high, e.sum(1), (e * part).sum(1), hit))
        return tuple(torch.stack(one) for one in zip(*facts))

    return against(launched, reference)


@triton.jit
def tree_of_drafts_paged_attention_kernel(
    Q, K_tree, V_tree, K_pages, V_pages, Block_tables, Prefix_lens, Tree_words, O, scale, window, stride_qb, stride_qt, stride_qh, stride_kb, stride_kt, stride_kh,
    stride_page, stride_slot, stride_ph, stride_bt, TOKENS: tl.constexpr, GROUP: tl.constexpr, HEAD_DIM: tl.constexpr, PAGE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # Drafts in a tree, all heads of a group in one tile: first pages of what is behind them in a window, then those ancestors that bits of words name.
    b = tl.program_id(0).to(tl.int64)
    kvh = tl.program_id(1)
    rows = tl.arange(0, BLOCK_M)
    tok = rows // GROUP
    head = kvh * GROUP + rows % GROUP
    offs_d = tl.arange(0, HEAD_DIM)
    row_ok = tok < TOKENS
    q = tl.load(Q + b * stride_qb + tok[:, None] * stride_qt + head[:, None] * stride_qh + offs_d[None, :], mask=row_ok[:, None], other=0.0)
    prefix = tl.load(Prefix_lens + b)
    m_i = tl.full([BLOCK_M], -1.0e20, dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    qk_scale = scale * 1.4426950408889634
    low = tl.maximum(prefix - window, 0)
    for start in range(low // BLOCK_N * BLOCK_N, prefix, BLOCK_N):
        pos = start + tl.arange(0, BLOCK_N)
        ok = (pos < prefix) & (pos >= low)
        page = tl.load(Block_tables + b * stride_bt + pos // PAGE, mask=ok, other=0).to(tl.int64)
        where = page * stride_page + (pos % PAGE) * stride_slot + kvh * stride_ph
        kk = tl.load(K_pages + where[None, :] + offs_d[:, None], mask=ok[None, :], other=0.0)
        s = tl.where(ok[None, :], tl.dot(q, kk) * qk_scale, -1.0e30)
        m_new = tl.maximum(m_i, tl.max(s, 1))
        alpha = tl.math.exp2(m_i - m_new)
        p = tl.math.exp2(s - m_new[:, None])
        vv = tl.load(V_pages + where[:, None] + offs_d[None, :], mask=ok[:, None], other=0.0)
        acc = tl.dot(p.to(vv.dtype), vv, acc * alpha[:, None])
        l_i = l_i * alpha + tl.sum(p, 1)
        m_i = m_new
    words = tl.load(Tree_words + b * TOKENS + tok, mask=row_ok, other=0)
    offs_t = tl.arange(0, 32)
    at = b * stride_kb + offs_t * stride_kt + kvh * stride_kh
    kk = tl.load(K_tree + at[None, :] + offs_d[:, None], mask=offs_t[None, :] < TOKENS, other=0.0)
    vv = tl.load(V_tree + at[:, None] + offs_d[None, :], mask=offs_t[:, None] < TOKENS, other=0.0)
    named = ((words[:, None] >> offs_t[None, :]) & 1) != 0
    s = tl.where(named, tl.dot(q, kk) * qk_scale, -1.0e30)
    m_new = tl.maximum(m_i, tl.max(s, 1))
    alpha = tl.math.exp2(m_i - m_new)
    p = tl.math.exp2(s - m_new[:, None])
    acc = tl.dot(p.to(vv.dtype), vv, acc * alpha[:, None])
    l_i = l_i * alpha + tl.sum(p, 1)
    acc = acc / tl.maximum(l_i, 1.0e-20)[:, None]
    tl.store(O + b * stride_qb + tok[:, None] * stride_qt + head[:, None] * stride_qh + offs_d[None, :], acc.to(O.dtype.element_ty), mask=row_ok[:, None])


@case
def armada_of_trees_of_drafts_over_pages(lens=(3000, 17, 900, 4097, 2222, 1500, 64, 3333, 2800, 1999, 700, 5000, 41, 2048, 1300, 3600), tokens=25, kv_heads=8, group=5, d=128, page=16, window=2500):
    batch, most = len(lens), cdiv(max(lens), page)
    q, o = rand(batch, tokens, kv_heads * group, d), zeros(batch, tokens, kv_heads * group, d)
    kt, vt = rand(batch, tokens, kv_heads, d), rand(batch, tokens, kv_heads, d)
    kp, vp = rand(batch * most, page, kv_heads, d), rand(batch * most, page, kv_heads, d)
    table = torch.randperm(batch * most, device="cuda").reshape(batch, most).to(torch.int32)
    lengths = torch.tensor(lens, dtype=torch.int32, device="cuda")
    parents = [0] + [(7 * i + 3) % i for i in range(1, tokens)]
    words = [1]
    for i in range(1, tokens):
        words.append(words[parents[i]] | 1 << i)
    tree = torch.tensor(words, dtype=torch.int32, device="cuda").expand(batch, -1).contiguous()
    args = q, kt, vt, kp, vp, table, lengths, tree, o, d**-0.5, window, *q.stride()[:3], *kt.stride()[:3], *kp.stride()[:3], table.stride(0)
    flags = dict(TOKENS=tokens, GROUP=group, HEAD_DIM=d, PAGE=page, BLOCK_M=128, BLOCK_N=64)
    launched = run(tree_of_drafts_paged_attention_kernel, (batch, kv_heads), args, o, num_warps=8, num_stages=2, **flags)

    def reference():
        bits = torch.tensor([[w >> j & 1 for j in range(tokens)] for w in words], device=q.device).bool()
        y = []
        for b in range(batch):
            low = max(lens[b] - window, 0)
            k, v = (torch.cat((p[table[b].long()].reshape(-1, kv_heads, d)[low : lens[b]], t[b])).float() for p, t in ((kp, kt), (vp, vt)))
            z = torch.einsum("tkgd,nkd->kgtn", q[b].float().reshape(tokens, kv_heads, group, d), k) * d**-0.5
            z[..., lens[b] - low :].masked_fill_(~bits, float("-inf"))
            y.append(torch.einsum("kgtn,nkd->tkgd", z.softmax(3), v).reshape(tokens, -1, d))
        return torch.stack(y)

    return against(launched, reference)


@triton.jit
def chunk_scan_bwd_dc_kernel(
    dout_ptr, states_ptr, da_ptr, dc_ptr, seqlen, nchunks, stride_do_b, stride_do_t, stride_do_h, stride_st_b, stride_st_c, stride_st_h, stride_st_p, stride_da_b, stride_da_h,
    stride_dc_b, stride_dc_t, stride_dc_g, HEADS_PER_GROUP: tl.constexpr, CHUNK: tl.constexpr, P: tl.constexpr, N: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    # Gradients of what reads a state: every head's gradients times the state that its chunk began with, faded, summed over a group.
    pid_bg = tl.program_id(2)
    groups = tl.num_programs(2)
    pid_b = tl.program_id(1) // nchunks
    pid_c = tl.program_id(1) % nchunks
    num_n: tl.constexpr = (N + BLOCK_N - 1) // BLOCK_N
    pid_m = tl.program_id(0) // num_n
    pid_n = tl.program_id(0) % num_n
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_p = tl.arange(0, P)
    limit = tl.minimum(CHUNK, seqlen - pid_c * CHUNK)
    t = pid_c * CHUNK + offs_m
    head0 = pid_bg * HEADS_PER_GROUP
    dout_ptrs = dout_ptr + pid_b * stride_do_b + t[:, None] * stride_do_t + head0 * stride_do_h + offs_p[None, :]
    st_ptrs = states_ptr + pid_b * stride_st_b + pid_c * stride_st_c + head0 * stride_st_h + offs_p[:, None] * stride_st_p + offs_n[None, :]
    da_ptrs = da_ptr + pid_b * stride_da_b + head0 * stride_da_h + t
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(HEADS_PER_GROUP):
        dout = tl.load(dout_ptrs, mask=offs_m[:, None] < limit, other=0.0)
        st = tl.load(st_ptrs, mask=offs_n[None, :] < N, other=0.0).to(dout.dtype)
        da = tl.load(da_ptrs, mask=offs_m < limit, other=0.0)
        acc += tl.dot(dout, st) * tl.exp(da)[:, None]
        dout_ptrs += stride_do_h
        st_ptrs += stride_st_h
        da_ptrs += stride_da_h
    out = dc_ptr + pid_b * stride_dc_b + t[:, None] * stride_dc_t + pid_bg * stride_dc_g + offs_n[None, :]
    tl.store(out, acc.to(dc_ptr.dtype.element_ty), mask=(offs_m[:, None] < limit) & (offs_n[None, :] < N))


@case
def armada_of_gradients_of_what_reads_states(batch=2, t=3000, groups=2, per=12, p=64, n=128, chunk=256):
    heads, chunks = groups * per, cdiv(t, chunk)
    dout, states = rand(batch, t, heads, p, dtype="bfloat16"), f32(batch, chunks, heads, p, n)
    da = -uniform(batch, heads, t) * 2
    dc = zeros(batch, t, groups, n, dtype="float32")
    args = dout, states, da, dc, t, chunks, *dout.stride()[:3], *states.stride()[:4], *da.stride()[:2], *dc.stride()[:3]
    flags = dict(HEADS_PER_GROUP=per, CHUNK=chunk, P=p, N=n, BLOCK_M=64, BLOCK_N=64)
    launched = run(chunk_scan_bwd_dc_kernel, (cdiv(chunk, 64) * cdiv(n, 64), batch * chunks, groups), args, dc, num_warps=4, num_stages=3, **flags)

    def reference():
        y = []
        for c in range(chunks):
            at = slice(c * chunk, (c + 1) * chunk)
            one = torch.einsum("bthp,bhpn->bthn", dout[:, at].float(), states[:, c].bfloat16().float()) * da[:, :, at].exp().transpose(1, 2)[..., None]
            y.append(one.reshape(batch, -1, groups, per, n).sum(3))
        return torch.cat(y, 1)

    return against(launched, reference)


@triton.jit
def causal_conv1d_silu_bwd_weights_kernel(x_ptr, w_ptr, b_ptr, dy_ptr, dw_ptr, db_ptr, T, D, stride_xb, stride_xt, STEPS: tl.constexpr, BLOCK_D: tl.constexpr):
    # Parts of the gradients of four taps and a bias behind SiLU: a program keeps the last four rows and goes along its share of time.
    pid_d, pid_t, b = tl.program_id(0), tl.program_id(1), tl.program_id(2).to(tl.int64)
    d = pid_d * BLOCK_D + tl.arange(0, BLOCK_D)
    mask = d < D
    w0 = tl.load(w_ptr + d * 4, mask=mask, other=0.0).to(tl.float32)
    w1 = tl.load(w_ptr + d * 4 + 1, mask=mask, other=0.0).to(tl.float32)
    w2 = tl.load(w_ptr + d * 4 + 2, mask=mask, other=0.0).to(tl.float32)
    w3 = tl.load(w_ptr + d * 4 + 3, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(b_ptr + d, mask=mask, other=0.0).to(tl.float32)
    t0 = pid_t * STEPS
    x_base = x_ptr + b * stride_xb + d
    c0 = tl.load(x_base + (t0 - 3) * stride_xt, mask=mask & (t0 >= 3), other=0.0).to(tl.float32)
    c1 = tl.load(x_base + (t0 - 2) * stride_xt, mask=mask & (t0 >= 2), other=0.0).to(tl.float32)
    c2 = tl.load(x_base + (t0 - 1) * stride_xt, mask=mask & (t0 >= 1), other=0.0).to(tl.float32)
    g0 = tl.zeros((BLOCK_D,), dtype=tl.float32)
    g1 = tl.zeros((BLOCK_D,), dtype=tl.float32)
    g2 = tl.zeros((BLOCK_D,), dtype=tl.float32)
    g3 = tl.zeros((BLOCK_D,), dtype=tl.float32)
    gb = tl.zeros((BLOCK_D,), dtype=tl.float32)
    for t in tl.range(t0, tl.minimum(t0 + STEPS, T), num_stages=3):
        c3 = tl.load(x_base + t * stride_xt, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + b * stride_xb + t * stride_xt + d, mask=mask, other=0.0).to(tl.float32)
        z = bias + w0 * c0 + w1 * c1 + w2 * c2 + w3 * c3
        s = tl.sigmoid(z)
        dz = dy * s * (1.0 + z * (1.0 - s))
        g0 += dz * c0
        g1 += dz * c1
        g2 += dz * c2
        g3 += dz * c3
        gb += dz
        c0, c1, c2 = c1, c2, c3
    part = (b * tl.num_programs(1) + pid_t) * D + d
    tl.store(dw_ptr + part * 4, g0, mask=mask)
    tl.store(dw_ptr + part * 4 + 1, g1, mask=mask)
    tl.store(dw_ptr + part * 4 + 2, g2, mask=mask)
    tl.store(dw_ptr + part * 4 + 3, g3, mask=mask)
    tl.store(db_ptr + part, gb, mask=mask)


@case
def armada_of_four_taps_learnt_in_parts(batch=2, t=3001, d=3000, steps=128):
    x, dy, w, bias = rand(batch, t, d, dtype="bfloat16"), rand(batch, t, d, dtype="bfloat16"), rand(d, 4), f32(d)
    parts = cdiv(t, steps)
    dw, db = zeros(batch, parts, d, 4, dtype="float32"), zeros(batch, parts, d, dtype="float32")
    args = x, w, bias, dy, dw, db, t, d, x.stride(0), x.stride(1)
    launched = run(causal_conv1d_silu_bwd_weights_kernel, (cdiv(d, 256), parts, batch), args, (dw, db), STEPS=steps, BLOCK_D=256, num_warps=2)

    def reference():
        taps = F.pad(x.float(), (0, 0, 3, 0)).unfold(1, 4, 1)
        z = (taps * w.float()).sum(3) + bias
        s = z.sigmoid()
        dz = dy.float() * s * (1 + z * (1 - s))
        full = F.pad(torch.cat((taps * dz[..., None], dz[..., None]), 3), (0, 0, 0, 0, 0, parts * steps - t)).reshape(batch, parts, steps, d, 5).sum(2)
        return full[..., :4], full[..., 4]

    return against(launched, reference)


@triton.jit
def w4a8_group_gemm_kernel(
    a_ptr, qw_ptr, c_ptr, a_scale_ptr, w_scale_ptr, M, N, K, stride_am, stride_qn, stride_cm, stride_sn, GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr,
):
    # Eight-bit tokens by four-bit weights: of a group's bytes the low halves are its first numbers and the high halves the others; sums are scaled group by group.
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    per_band = GROUP_M * num_n
    band = pid // per_band
    rows_here = min(num_m - band * GROUP_M, GROUP_M)
    pid_m = band * GROUP_M + (pid % per_band) % rows_here
    pid_n = (pid % per_band) // rows_here
    HALF: tl.constexpr = GROUP // 2
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_h = tl.arange(0, HALF)
    a_ptrs = a_ptr + (offs_m % M)[:, None] * stride_am + offs_h[None, :]
    w_ptrs = qw_ptr + (offs_n % N)[None, :] * stride_qn + offs_h[:, None]
    s_ptrs = w_scale_ptr + (offs_n % N) * stride_sn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for g in range(0, K // GROUP):
        packed = tl.load(w_ptrs)
        low = ((packed & 0xF).to(tl.int8) - 8).to(tl.int8)
        high = ((packed >> 4).to(tl.int8) - 8).to(tl.int8)
        a_low = tl.load(a_ptrs)
        a_high = tl.load(a_ptrs + HALF)
        part = tl.dot(a_low, low, out_dtype=tl.int32)
        part = tl.dot(a_high, high, part, out_dtype=tl.int32)
        acc += part.to(tl.float32) * tl.load(s_ptrs + g).to(tl.float32)[None, :]
        a_ptrs += GROUP
        w_ptrs += HALF
    acc *= tl.load(a_scale_ptr + offs_m, mask=offs_m < M, other=0.0)[:, None]
    tl.store(c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :], acc.to(c_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@case
def armada_of_eight_bits_by_groups_of_four(m=300, n=5000, k=3072):
    a, qw = ints(-127, 128, m, k, dtype="int8"), ints(0, 256, n, k // 2, dtype="uint8")
    sa, sw, c = uniform(m) * 0.01 + 0.001, (uniform(n, k // 128) * 0.02 + 0.002).half(), zeros(m, n, dtype="bfloat16")
    args = a, qw, c, sa, sw, m, n, k, a.stride(0), qw.stride(0), c.stride(0), sw.stride(0)
    launched = run(w4a8_group_gemm_kernel, (cdiv(m, 64) * cdiv(n, 128),), args, c, GROUP=128, BLOCK_M=64, BLOCK_N=128, GROUP_M=8, num_warps=4, num_stages=3)

    def reference():
        bytes_ = qw.reshape(n, k // 128, 64).int()
        w = (torch.cat((bytes_ & 15, bytes_ >> 4), 2) - 8).float() * sw.float()[..., None]
        return (a.float() @ w.reshape(n, k).t()) * sa[:, None]

    return against(launched, reference)


@triton.jit
def moe_down_dgrad_swiglu_kernel(
    dy_ptr, w_ptr, gate_up_ptr, dgu_ptr, sorted_ids_ptr, tile_expert_ptr, topk_weight_ptr, num_valid, I, HID, stride_dym, stride_we, stride_wh, stride_gm,
    TOP_K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Back through experts' second product and their gates at once: rows of tokens are gathered, both halves of the gradient written.
    pid_m = tl.program_id(1)
    pid_n = tl.program_id(0)
    expert = tl.load(tile_expert_ptr + pid_m).to(tl.int64)
    if expert < 0:
        return
    offs = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    ids = tl.load(sorted_ids_ptr + offs)
    ok = ids < num_valid
    token = tl.where(ok, ids // TOP_K, 0).to(tl.int64)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    dy_ptrs = dy_ptr + token[:, None] * stride_dym + offs_k[None, :]
    w_ptrs = w_ptr + expert * stride_we + offs_k[:, None] * stride_wh + offs_n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, HID, BLOCK_K):
        dy = tl.load(dy_ptrs, mask=ok[:, None], other=0.0)
        w = tl.load(w_ptrs, mask=offs_n[None, :] < I, other=0.0)
        acc += tl.dot(dy, w)
        dy_ptrs += BLOCK_K
        w_ptrs += BLOCK_K * stride_wh
    acc *= tl.load(topk_weight_ptr + ids, mask=ok, other=0.0)[:, None]
    mask = ok[:, None] & (offs_n[None, :] < I)
    at = tl.where(ok, ids, 0)[:, None].to(tl.int64) * stride_gm + offs_n[None, :]
    gate = tl.load(gate_up_ptr + at, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(gate_up_ptr + at + I, mask=mask, other=0.0).to(tl.float32)
    sig = tl.sigmoid(gate)
    tl.store(dgu_ptr + at, (acc * up * sig * (1.0 + gate * (1.0 - sig))).to(dgu_ptr.dtype.element_ty), mask=mask)
    tl.store(dgu_ptr + at + I, (acc * gate * sig).to(dgu_ptr.dtype.element_ty), mask=mask)


@case
def armada_of_gates_of_experts_from_above(tokens=1000, top=4, experts=16, inner=700, hidden=1024):
    dy, w, gu = rand(tokens, hidden, dtype="bfloat16"), rand(experts, hidden, inner, dtype="bfloat16") * 0.05, rand(tokens * top, 2 * inner, dtype="bfloat16")
    chosen = torch.rand(tokens, experts).topk(top, 1)[1].reshape(-1).tolist()
    ids, tiles = [], []
    for e in range(experts):
        mine = [i for i, c in enumerate(chosen) if c == e]
        pad = -len(mine) % 64
        ids += mine + [tokens * top] * pad
        tiles += [e] * ((len(mine) + pad) // 64)
    ids += [tokens * top] * 128
    tiles += [-1] * 2
    ids, tiles = torch.tensor(ids, dtype=torch.int32, device="cuda"), torch.tensor(tiles, dtype=torch.int32, device="cuda")
    weight, out = uniform(tokens * top), zeros(tokens * top, 2 * inner, dtype="bfloat16")
    args = dy, w, gu, out, ids, tiles, weight, tokens * top, inner, hidden, dy.stride(0), w.stride(0), w.stride(1), gu.stride(0)
    launched = run(moe_down_dgrad_swiglu_kernel, (cdiv(inner, 128), len(tiles)), args, out, TOP_K=top, BLOCK_M=64, BLOCK_N=128, BLOCK_K=64, num_warps=4, num_stages=3)

    def reference():
        pick = torch.tensor(chosen, device=dy.device)
        dh = torch.zeros(tokens * top, inner, device=dy.device)
        for e in range(experts):
            mine = (pick == e).nonzero()[:, 0]
            dh[mine] = dy[mine // top].float() @ w[e].float()
        dh *= weight[:, None]
        g, u = gu.float().chunk(2, 1)
        s = g.sigmoid()
        return torch.cat((dh * u * s * (1 + g * (1 - s)), dh * g * s), 1)

    return against(launched, reference)


@triton.jit
def vision_rope_packed_bwd_kernel(
    grad_q_ptr, grad_k_ptr, grad_v_ptr, pos_ptr, out_ptr, theta_log2, S, H: tl.constexpr, D: tl.constexpr, QUARTER: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_R: tl.constexpr,
):
    # Turns of patches by their rows and columns undone, and three gradients packed again: angles are made here, 20 of each axis.
    s = tl.program_id(0).to(tl.int64)
    h = tl.arange(0, BLOCK_H)[:, None]
    r = tl.arange(0, BLOCK_R)[None, :]
    mask = (h < H) & (r < 2 * QUARTER)
    py = tl.load(pos_ptr + 2 * s).to(tl.float32)
    px = tl.load(pos_ptr + 2 * s + 1).to(tl.float32)
    freq = tl.exp2(-theta_log2 * (r % QUARTER).to(tl.float32) / QUARTER)
    angle = tl.where(r < QUARTER, py, px) * freq
    cos = tl.cos(angle)
    sin = tl.sin(angle)
    half: tl.constexpr = D // 2
    src = s * H * D + h * D + r
    for part in tl.static_range(3):
        if part == 0:
            base = grad_q_ptr
        elif part == 1:
            base = grad_k_ptr
        else:
            base = grad_v_ptr
        a = tl.load(base + src, mask=mask, other=0.0).to(tl.float32)
        b = tl.load(base + src + half, mask=mask, other=0.0).to(tl.float32)
        if part < 2:
            x = a * cos + b * sin
            y = b * cos - a * sin
        else:
            x = a
            y = b
        dst = out_ptr + ((s * 3 + part) * H + h) * D + r
        tl.store(dst, x.to(out_ptr.dtype.element_ty), mask=mask)
        tl.store(dst + half, y.to(out_ptr.dtype.element_ty), mask=mask)


@case
def armada_of_turns_of_patches_undone(s=6000, heads=12, d=80):
    q, k, v = (rand(s, heads, d, dtype="bfloat16") for _ in range(3))
    pos, out = ints(0, 80, s, 2), zeros(s, 3, heads, d, dtype="bfloat16")
    launched = run(vision_rope_packed_bwd_kernel, (s,), (q, k, v, pos, out, 13.287712, s), out, H=heads, D=d, QUARTER=20, BLOCK_H=16, BLOCK_R=64, num_warps=2)

    def reference():
        freq = torch.exp2(-13.287712 * torch.arange(20, device=q.device) / 20)
        angle = torch.cat((pos[:, :1] * freq, pos[:, 1:] * freq), 1)[:, None]
        turned = []
        for x in (q, k):
            a, b = x.float().chunk(2, 2)
            turned.append(torch.cat((a * angle.cos() + b * angle.sin(), b * angle.cos() - a * angle.sin()), 2))
        return torch.stack((*turned, v.float()), 1)

    return against(launched, reference)


@triton.jit
def adamw_hashed_rounding_kernel(p_ptr, g_ptr, m_ptr, v_ptr, lr, beta1, beta2, eps, decay, c1, c2, seed, numel, WRITE_P_OUT: tl.constexpr, out_ptr, BLOCK: tl.constexpr):
    # AdamW on bfloat16 parameters whose rounding is decided by a hash of place and seed; moments are bfloat16 too, rounded to nearest.
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < numel
    p = tl.load(p_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    g = tl.load(g_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    m = tl.load(m_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    v = tl.load(v_ptr + offs, mask=mask, other=0.0).to(tl.float32)
    m = beta1 * m + (1.0 - beta1) * g
    v = beta2 * v + (1.0 - beta2) * g * g
    p = p * (1.0 - lr * decay) - lr * (m / c1) / (tl.sqrt(v / c2) + eps)
    h = offs.to(tl.uint32) * 2654435769 + seed
    h = (h ^ (h >> 16)) * 2246822519
    h = (h ^ (h >> 13)) * 3266489917
    h = h ^ (h >> 16)
    bits = p.to(tl.uint32, bitcast=True) + (h & 0xFFFF)
    rounded = (bits & 0xFFFF0000).to(tl.float32, bitcast=True)
    if WRITE_P_OUT:
        tl.store(out_ptr + offs, rounded.to(out_ptr.dtype.element_ty), mask=mask)
    else:
        tl.store(p_ptr + offs, rounded.to(p_ptr.dtype.element_ty), mask=mask)
    tl.store(m_ptr + offs + numel, m.to(m_ptr.dtype.element_ty), mask=mask)
    tl.store(v_ptr + offs + numel, v.to(v_ptr.dtype.element_ty), mask=mask)


@case
def armada_of_roundings_by_a_hash(n=9_000_001):
    p, g = rand(n, dtype="bfloat16"), rand(n, dtype="bfloat16")
    m, v = torch.cat((rand(n, dtype="bfloat16") * 0.1, zeros(n, dtype="bfloat16"))), torch.cat((rand(n, dtype="bfloat16").abs(), zeros(n, dtype="bfloat16")))
    out = zeros(n, dtype="bfloat16")
    args = p, g, m, v, 1e-3, 0.9, 0.95, 1e-8, 0.1, 0.19, 0.1, 12345, n, True, out
    launched = run(adamw_hashed_rounding_kernel, (cdiv(n, 1024),), args, (out, m[n:], v[n:]), BLOCK=1024, num_warps=4)

    def reference():
        a, b = 0.9 * m[:n].float() + 0.1 * g.float(), 0.95 * v[:n].float() + 0.05 * g.float() ** 2
        return p.float() * (1 - 1e-4) - 1e-3 * (a / 0.19) / ((b / 0.1).sqrt() + 1e-8), a, b

    return against(launched, reference)


@triton.jit
def tensor_product_messages_csr_kernel(row_ptr, src_ptr, scalar_ptr, vector_ptr, dir_ptr, radial_ptr, out_s_ptr, out_v_ptr, C: tl.constexpr, BLOCK_C: tl.constexpr):
    # Scalars and vectors of neighbors meet the directions of edges, with four weights an edge and channel; a node sums over its edges.
    node = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK_C + tl.arange(0, BLOCK_C)
    mask = c < C
    edge = tl.load(row_ptr + node)
    last = tl.load(row_ptr + node + 1)
    s_acc = tl.zeros((BLOCK_C,), dtype=tl.float32)
    x_acc = tl.zeros((BLOCK_C,), dtype=tl.float32)
    y_acc = tl.zeros((BLOCK_C,), dtype=tl.float32)
    z_acc = tl.zeros((BLOCK_C,), dtype=tl.float32)
    while edge < last:
        src = tl.load(src_ptr + edge).to(tl.int64)
        dx = tl.load(dir_ptr + edge * 3)
        dy = tl.load(dir_ptr + edge * 3 + 1)
        dz = tl.load(dir_ptr + edge * 3 + 2)
        w = radial_ptr + edge.to(tl.int64) * 4 * C + c
        w0 = tl.load(w, mask=mask, other=0.0).to(tl.float32)
        w1 = tl.load(w + C, mask=mask, other=0.0).to(tl.float32)
        w2 = tl.load(w + 2 * C, mask=mask, other=0.0).to(tl.float32)
        w3 = tl.load(w + 3 * C, mask=mask, other=0.0).to(tl.float32)
        s = tl.load(scalar_ptr + src * C + c, mask=mask, other=0.0)
        vx = tl.load(vector_ptr + src * 3 * C + c, mask=mask, other=0.0)
        vy = tl.load(vector_ptr + src * 3 * C + C + c, mask=mask, other=0.0)
        vz = tl.load(vector_ptr + src * 3 * C + 2 * C + c, mask=mask, other=0.0)
        s_acc += w0 * s + w1 * (vx * dx + vy * dy + vz * dz)
        x_acc += w2 * s * dx + w3 * (vy * dz - vz * dy)
        y_acc += w2 * s * dy + w3 * (vz * dx - vx * dz)
        z_acc += w2 * s * dz + w3 * (vx * dy - vy * dx)
        edge += 1
    tl.store(out_s_ptr + node * C + c, s_acc, mask=mask)
    tl.store(out_v_ptr + node * 3 * C + c, x_acc, mask=mask)
    tl.store(out_v_ptr + node * 3 * C + C + c, y_acc, mask=mask)
    tl.store(out_v_ptr + node * 3 * C + 2 * C + c, z_acc, mask=mask)


@case
def armada_of_vectors_that_meet_directions(nodes=3000, most=22, c=120):
    degree = ints(0, most, nodes)
    degree[0] = most
    rows = F.pad(degree.cumsum(0), (1, 0)).to(torch.int32)
    edges = int(degree.sum())
    src, d = ints(0, nodes, edges), F.normalize(f32(edges, 3), dim=1)
    s, v, w = f32(nodes, c), f32(nodes, 3, c), rand(edges, 4, c)
    os, ov = zeros(nodes, c, dtype="float32"), zeros(nodes, 3, c, dtype="float32")
    launched = run(tensor_product_messages_csr_kernel, (nodes, 1), (rows, src, s, v, d, w, os, ov), (os, ov), C=c, BLOCK_C=128, num_warps=2)

    def reference():
        to = torch.repeat_interleave(torch.arange(nodes, device=s.device), degree.long())
        a, b, ww = s[src.long()], v[src.long()], w.float()
        ms = ww[:, 0] * a + ww[:, 1] * (b * d[..., None]).sum(1)
        mv = (ww[:, 2] * a)[:, None] * d[..., None] + ww[:, 3:] * torch.linalg.cross(b, d[..., None].expand_as(b), dim=1)
        return torch.zeros_like(os).index_add(0, to, ms), torch.zeros_like(ov).index_add(0, to, mv)

    return against(launched, reference)


@triton.jit
def fp8_attention_block_descale_kernel(
    Q, K, Vt, O, Q_scale, K_scale, V_scale, sm_scale, N_CTX, N_KEYS, stride_qz, stride_qm, stride_kz, stride_kn, stride_vz, stride_vd,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
):
    # All in e4m3: blocks of queries and of keys have scales, values (transposed) one a head and channel; weights are made eight bits too.
    pid_m = tl.program_id(0)
    z = tl.program_id(1).to(tl.int64)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    q = tl.load(Q + z * stride_qz + offs_m[:, None] * stride_qm + offs_d[None, :], mask=offs_m[:, None] < N_CTX, other=0.0)
    q_scale = tl.load(Q_scale + z * tl.num_programs(0) + pid_m) * sm_scale * 1.44269504
    blocks = tl.cdiv(N_KEYS, BLOCK_N)
    m_i = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    l_i = tl.full([BLOCK_M], 1.0e-6, dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    for j in tl.range(0, blocks):
        n = j * BLOCK_N + offs_n
        k = tl.load(K + z * stride_kz + n[None, :] * stride_kn + offs_d[:, None], mask=n[None, :] < N_KEYS, other=0.0)
        ks = tl.load(K_scale + z * blocks + j)
        qk = tl.dot(q, k) * (q_scale * ks)
        qk = tl.where(n[None, :] < N_KEYS, qk, -1.0e30)
        m_new = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.exp2(qk - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        v = tl.load(Vt + z * stride_vz + offs_d[:, None] * stride_vd + n[None, :], mask=n[None, :] < N_KEYS, other=0.0)
        acc = acc * alpha[:, None]
        acc += tl.dot((p * 256.0).to(tl.float8e4nv), tl.trans(v))
        m_i = m_new
    v_scale = tl.load(V_scale + z * HEAD_DIM + offs_d)
    acc = acc * (v_scale[None, :] / 256.0) / l_i[:, None]
    tl.store(O + z * stride_qz + offs_m[:, None] * stride_qm + offs_d[None, :], acc.to(O.dtype.element_ty), mask=offs_m[:, None] < N_CTX)


@case
def armada_of_eight_bits_with_scales_of_blocks(heads=24, t=1400, keys=1700, d=128):
    e4 = torch.float8_e4m3fn
    q, k = rand(heads, t, d).to(e4), rand(heads, keys, d).to(e4)
    vt = (rand(heads, d, keys + 12) * 0.25 + 1).to(e4)
    qs, ks, vs = (uniform(heads, n) * 0.3 + 0.4 for n in (cdiv(t, 128), cdiv(keys, 64), d))
    o = zeros(heads, t, d, dtype="bfloat16")
    args = q, k, vt, o, qs, ks, vs, d**-0.5, t, keys, *q.stride()[:2], *k.stride()[:2], *vt.stride()[:2]
    launched = run(fp8_attention_block_descale_kernel, (cdiv(t, 128), heads), args, o, BLOCK_M=128, BLOCK_N=64, HEAD_DIM=d, num_warps=8, num_stages=3)

    def reference():
        a, b = q.float() * qs.repeat_interleave(128, 1)[:, :t, None], k.float() * ks.repeat_interleave(64, 1)[:, :keys, None]
        return (a @ b.transpose(1, 2) * d**-0.5).softmax(2) @ (vt[..., :keys].float() * vs[..., None]).transpose(1, 2)

    return against(launched, reference)


@triton.jit
def oft_neumann_rotate_kernel(x_ptr, packed_ptr, y_ptr, M, stride_xm, stride_ym, packed_len, per_program, TERMS: tl.constexpr, B: tl.constexpr, BLOCK_M: tl.constexpr):
    # Blocks of a layer's inputs are turned: a skew matrix is unpacked, its Cayley transform summed by products, then rows go through it.
    blk = tl.program_id(0)
    i = tl.arange(0, B)[:, None]
    j = tl.arange(0, B)[None, :]
    lo = tl.minimum(i, j)
    hi = tl.maximum(i, j)
    at = lo * (2 * B - lo - 1) // 2 + hi - lo - 1
    val = tl.load(packed_ptr + blk * packed_len + at, mask=i != j, other=0.0)
    skew = tl.where(i < j, val, -val)
    term = skew
    turn = (i == j).to(tl.float32) + 2.0 * skew
    for n in tl.static_range(2, TERMS):
        term = tl.dot(term, skew)
        turn += term if n == TERMS - 1 else 2.0 * term
    turn = turn.to(x_ptr.dtype.element_ty)
    cols = blk * B + tl.arange(0, B)
    start = tl.program_id(1) * per_program
    for m0 in range(start, tl.minimum(start + per_program, M), BLOCK_M):
        rows = m0 + tl.arange(0, BLOCK_M)
        x = tl.load(x_ptr + rows[:, None] * stride_xm + cols[None, :], mask=rows[:, None] < M, other=0.0)
        y = tl.dot(x, turn)
        tl.store(y_ptr + rows[:, None] * stride_ym + cols[None, :], y.to(y_ptr.dtype.element_ty), mask=rows[:, None] < M)


@case
def armada_of_blocks_of_inputs_turned(m=3001, blocks=128, b=32, per=512):
    x, packed, y = rand(m, blocks * b), f32(blocks, b * (b - 1) // 2) * 0.03, zeros(m, blocks * b)
    args = x, packed, y, m, x.stride(0), y.stride(0), packed.shape[1], per
    launched = run(oft_neumann_rotate_kernel, (blocks, cdiv(m, per)), args, y, TERMS=6, B=b, BLOCK_M=128, num_warps=4, num_stages=2)

    def reference():
        s = torch.zeros(blocks, b, b, device=x.device)
        i, j = torch.triu_indices(b, b, 1)
        s[:, i, j] = packed
        s = s - s.transpose(1, 2)
        turn, term = torch.eye(b, device=x.device) + 2 * s, s
        for n in range(2, 6):
            term = term @ s
            turn = turn + (1 if n == 5 else 2) * term
        return torch.einsum("mgi,gij->mgj", x.float().reshape(m, blocks, b), turn).reshape(m, -1)

    return against(launched, reference)


@triton.jit
def causal_conv3d_cached_kernel(
    x_ptr, cache_ptr, w_ptr, bias_ptr, y_ptr, H, W, C, KO, stride_xt, stride_xh, stride_xw, stride_wt, stride_wc, stride_yt, stride_yp,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_C: tl.constexpr,
):
    # 27 taps on a film whose two frames before come from a cache of the last call; channels last, an implicit product.
    pid_m, pid_n, t = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    y = m // W
    x = m % W
    n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for kt in range(3):
        frame = t + kt - 2
        if frame < 0:
            base = cache_ptr + (frame + 2).to(tl.int64) * stride_xt
        else:
            base = x_ptr + frame.to(tl.int64) * stride_xt
        for ks in range(9):
            yy = y + ks // 3 - 1
            xx = x + ks % 3 - 1
            ok = (m < H * W) & (yy >= 0) & (yy < H) & (xx >= 0) & (xx < W)
            pix = base + yy * stride_xh + xx * stride_xw
            for c0 in range(0, C, BLOCK_C):
                c = c0 + tl.arange(0, BLOCK_C)
                a = tl.load(pix[:, None] + c[None, :], mask=ok[:, None] & (c[None, :] < C), other=0.0)
                b = tl.load(w_ptr + (kt * 9 + ks) * stride_wt + c[:, None] * stride_wc + n[None, :], mask=(c[:, None] < C) & (n[None, :] < KO), other=0.0)
                acc = tl.dot(a, b, acc)
    acc += tl.load(bias_ptr + n, mask=n < KO, other=0.0)[None, :]
    tl.store(y_ptr + t * stride_yt + m[:, None] * stride_yp + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(m[:, None] < H * W) & (n[None, :] < KO))


@case
def armada_of_films_with_cached_frames(frames=5, height=45, width=60, c=96, ko=192):
    x, cache, w, bias = rand(frames, height, width, c), rand(2, height, width, c), rand(27, c, ko) * 0.03, f32(ko)
    y = zeros(frames, height * width, ko)
    args = x, cache, w, bias, y, height, width, c, ko, *x.stride()[:3], *w.stride()[:2], *y.stride()[:2]
    launched = run(causal_conv3d_cached_kernel, (cdiv(height * width, 128), cdiv(ko, 64), frames), args, y, BLOCK_M=128, BLOCK_N=64, BLOCK_C=32, num_warps=4, num_stages=4)

    def reference():
        film = torch.cat((cache, x)).float().permute(3, 0, 1, 2)[None]
        taps = w.float().reshape(3, 3, 3, c, ko).permute(4, 3, 0, 1, 2)
        return F.conv3d(film, taps, bias, padding=(0, 1, 1))[0].permute(1, 2, 3, 0).reshape(frames, -1, ko)

    return against(launched, reference)


@triton.jit
def mlstm_parallel_fwd_kernel(Q, K, V, IG, FC, O, M_out, N_out, qk_scale, T, stride_h, stride_t, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    # Matrix memories read all at once: weights have signs, gates add up in logarithms, and sums are kept from zero by what the largest gate says.
    pid = tl.num_programs(0) - 1 - tl.program_id(0)
    h = tl.program_id(1).to(tl.int64)
    offs_m = pid * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    ok_m = offs_m < T
    q = tl.load(Q + h * stride_h + offs_m[:, None] * stride_t + d[None, :], mask=ok_m[:, None], other=0.0)
    fm = tl.load(FC + h * T + offs_m, mask=ok_m, other=0.0)
    top = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    norm = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    for n0 in range(0, tl.minimum((pid + 1) * BLOCK_M, T), BLOCK_N):
        offs_n = n0 + tl.arange(0, BLOCK_N)
        ok_n = offs_n < T
        k = tl.load(K + h * stride_h + offs_n[:, None] * stride_t + d[None, :], mask=ok_n[:, None], other=0.0)
        v = tl.load(V + h * stride_h + offs_n[:, None] * stride_t + d[None, :], mask=ok_n[:, None], other=0.0)
        add = tl.load(IG + h * T + offs_n, mask=ok_n, other=0.0) - tl.load(FC + h * T + offs_n, mask=ok_n, other=0.0)
        gates = tl.where(offs_n[None, :] <= offs_m[:, None], fm[:, None] + add[None, :], float("-inf"))
        new = tl.maximum(top, tl.max(gates, 1))
        c = tl.dot(q, tl.trans(k)) * qk_scale * tl.exp(gates - new[:, None])
        shrink = tl.exp(top - new)
        norm = norm * shrink + tl.sum(c, 1)
        acc = tl.dot(c.to(v.dtype), v, acc * shrink[:, None])
        top = new
    n = tl.maximum(tl.abs(norm), tl.exp(-top))
    tl.store(O + h * stride_h + offs_m[:, None] * stride_t + d[None, :], (acc / n[:, None]).to(O.dtype.element_ty), mask=ok_m[:, None])
    tl.store(M_out + h * T + offs_m, top, mask=ok_m)
    tl.store(N_out + h * T + offs_m, n, mask=ok_m)


@case
def armada_of_matrix_memories_read_at_once(heads=16, t=1900, d=64):
    q, k, v, o = rand(heads, t, d), rand(heads, t, d), rand(heads, t, d), zeros(heads, t, d)
    ig, fc = f32(heads, t), F.logsigmoid(f32(heads, t) + 4).cumsum(1)
    top, norm = zeros(heads, t, dtype="float32"), zeros(heads, t, dtype="float32")
    args = q, k, v, ig, fc, o, top, norm, d**-0.5, t, q.stride(0), q.stride(1)
    launched = run(mlstm_parallel_fwd_kernel, (cdiv(t, 64), heads), args, (o, top, norm), D=d, BLOCK_M=64, BLOCK_N=32, num_warps=4, num_stages=3)

    def reference():
        g = fc[:, :, None] - fc[:, None] + ig[:, None]
        g = g.masked_fill(torch.ones(t, t, device=q.device).triu(1).bool(), float("-inf"))
        m = g.amax(2)
        c = q.float() @ k.float().transpose(1, 2) * d**-0.5 * (g - m[..., None]).exp()
        n = torch.maximum(c.sum(2).abs(), (-m).exp())
        return c @ v.float() / n[..., None], m, n

    return against(launched, reference)


@triton.jit
def rwkv7_recurrent_kernel(r_ptr, w_ptr, k_ptr, v_ptr, a_ptr, b_ptr, h0_ptr, o_ptr, ht_ptr, T, H: tl.constexpr, D: tl.constexpr, BV: tl.constexpr):
    # A state that fades by channel, is corrected along one direction and learns a pair, token after token; rows of it are shared out.
    i_v, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    o_k = tl.arange(0, D)
    o_v = i_v * BV + tl.arange(0, BV)
    p_h = i_bh * D * D + o_v[:, None] * D + o_k[None, :]
    state = tl.load(h0_ptr + p_h)
    at = (i_b * T * H + i_h) * D
    for _ in range(0, T):
        r = tl.load(r_ptr + at + o_k).to(tl.float32)
        w = tl.load(w_ptr + at + o_k).to(tl.float32)
        k = tl.load(k_ptr + at + o_k).to(tl.float32)
        a = tl.load(a_ptr + at + o_k).to(tl.float32)
        b = tl.load(b_ptr + at + o_k).to(tl.float32)
        v = tl.load(v_ptr + at + o_v).to(tl.float32)
        along = tl.sum(state * a[None, :], 1)
        state = state * tl.exp(-tl.exp(w))[None, :] + along[:, None] * b[None, :] + v[:, None] * k[None, :]
        tl.store(o_ptr + at + o_v, tl.sum(state * r[None, :], 1).to(o_ptr.dtype.element_ty))
        at += H * D
    tl.store(ht_ptr + p_h, state)


@case
def armada_of_states_corrected_along_a_direction(batch=4, t=180, heads=16, d=64):
    r, k, v = (rand(batch, t, heads, d, dtype="bfloat16") for _ in range(3))
    w = rand(batch, t, heads, d, dtype="bfloat16") * 0.5 - 2
    kk, gate = F.normalize(f32(batch, t, heads, d), dim=3), uniform(batch, t, heads, d)
    a, b = (-kk).to(torch.bfloat16), (kk * gate).to(torch.bfloat16)
    h0, o, ht = f32(batch, heads, d, d), zeros(batch, t, heads, d, dtype="bfloat16"), zeros(batch, heads, d, d, dtype="float32")
    launched = run(rwkv7_recurrent_kernel, (d // 32, batch * heads), (r, w, k, v, a, b, h0, o, ht, t), (o, ht), H=heads, D=d, BV=32, num_warps=2)

    def reference():
        s, y = h0.clone(), []
        for i in range(t):
            ri, wi, ki, vi, ai, bi = (x[:, i].float() for x in (r, w, k, v, a, b))
            s = s * (-wi.exp()).exp()[:, :, None] + (s * ai[:, :, None]).sum(3)[..., None] * bi[:, :, None] + vi[..., None] * ki[:, :, None]
            y.append((s * ri[:, :, None]).sum(3))
        return torch.stack(y, 1), s

    return against(launched, reference)


@triton.jit
def sigmoid_attention_bwd_dq_kernel(Q, K, V, DO, DQ, Bias, sm_scale, stride_b, stride_t, stride_h, T, H: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    # Gradients of queries where every weight is a sigmoid of its own: no sums over rows are needed; a head's bias is one number.
    pid_m = tl.program_id(0)
    b = tl.program_id(1) // H
    h = tl.program_id(1) % H
    base = b.to(tl.int64) * stride_b + h * stride_h
    m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    rows = base + m[:, None] * stride_t + d[None, :]
    q = tl.load(Q + rows, mask=m[:, None] < T, other=0.0)
    do = tl.load(DO + rows, mask=m[:, None] < T, other=0.0)
    bias = tl.load(Bias + h)
    dq = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    hi = tl.minimum((pid_m + 1) * BLOCK_M, T)
    for n0 in tl.range(0, hi, BLOCK_N, num_stages=2):
        n = n0 + tl.arange(0, BLOCK_N)
        cols = base + n[:, None] * stride_t + d[None, :]
        k = tl.load(K + cols, mask=n[:, None] < T, other=0.0)
        v = tl.load(V + cols, mask=n[:, None] < T, other=0.0)
        s = tl.dot(q, k.T) * sm_scale + bias
        p = 1.0 / (1.0 + tl.exp(-s))
        p = tl.where(m[:, None] >= n[None, :], p, 0.0)
        ds = p * (1.0 - p) * tl.dot(do, v.T)
        dq = tl.dot(ds.to(k.dtype), k, dq)
    tl.store(DQ + rows, (dq * sm_scale).to(DQ.dtype.element_ty), mask=m[:, None] < T)


@case
def armada_of_weights_each_a_sigmoid(batch=2, t=1500, heads=12, d=64):
    q, k, v, do, dq = (rand(batch, t, heads, d, dtype="bfloat16") for _ in range(5))
    bias = f32(heads) - 2
    args = q, k, v, do, dq, bias, d**-0.5, *q.stride()[:3], t
    launched = run(sigmoid_attention_bwd_dq_kernel, (cdiv(t, 128), batch * heads), args, dq, H=heads, D=d, BLOCK_M=128, BLOCK_N=64, num_warps=8, num_stages=2)

    def reference():
        s = torch.einsum("bmhd,bnhd->bhmn", q.float(), k.float()) * d**-0.5 + bias[:, None, None]
        p = s.sigmoid().tril()
        ds = p * (1 - p) * torch.einsum("bmhd,bnhd->bhmn", do.float(), v.float())
        return torch.einsum("bhmn,bnhd->bmhd", ds, k.float()) * d**-0.5

    return against(launched, reference)


@triton.jit
def kivi_pages_to_rows_kernel(
    packed_ptr, scale_ptr, zero_ptr, table_ptr, cu_ptr, out_ptr, stride_pp, stride_ph, stride_pw, stride_sp, stride_sh, stride_table, stride_ot, stride_oh,
    PER_WORD: tl.constexpr, BITS: tl.constexpr, PAGE: tl.constexpr, D: tl.constexpr,
):
    # Pages of two-bit keys, packed along tokens with scales a channel, unpacked to where sequences lie end to end.
    b = tl.program_id(0)
    page = tl.program_id(1)
    h = tl.program_id(2)
    start = tl.load(cu_ptr + b)
    length = tl.load(cu_ptr + b + 1) - start
    if page * PAGE >= length:
        return
    block = tl.load(table_ptr + b * stride_table + page).to(tl.int64)
    d = tl.arange(0, D)
    words = tl.arange(0, PAGE // PER_WORD)
    packed = tl.load(packed_ptr + block * stride_pp + h * stride_ph + words[:, None] * stride_pw + d[None, :])
    scale = tl.load(scale_ptr + block * stride_sp + h * stride_sh + d).to(tl.float32)
    zero = tl.load(zero_ptr + block * stride_sp + h * stride_sh + d).to(tl.float32)
    shifts = (tl.arange(0, PER_WORD) * BITS)[None, :, None]
    codes = (packed[:, None, :] >> shifts) & ((1 << BITS) - 1)
    keys = codes.to(tl.float32) * scale[None, None, :] + zero[None, None, :]
    keys = tl.reshape(keys, (PAGE, D))
    t = page * PAGE + tl.arange(0, PAGE)
    rows = (start + t).to(tl.int64)
    tl.store(out_ptr + rows[:, None] * stride_ot + h * stride_oh + d[None, :], keys.to(out_ptr.dtype.element_ty), mask=t[:, None] < length)


@case
def armada_of_two_bit_pages_laid_end_to_end(lens=(3000, 17, 900, 4097, 2222, 1500, 64, 3333), heads=8, page=64, d=128):
    batch, most = len(lens), cdiv(max(lens), page)
    packed = ints(-(1 << 31), (1 << 31) - 1, batch * most, heads, page // 16, d)
    scale, zero = rand(batch * most, heads, d).abs() * 0.1 + 0.05, rand(batch * most, heads, d)
    table = torch.randperm(batch * most, device="cuda").reshape(batch, most).to(torch.int32)
    cu = F.pad(torch.tensor(lens, device="cuda").cumsum(0), (1, 0)).to(torch.int32)
    out = zeros(sum(lens), heads, d, dtype="bfloat16")
    args = packed, scale, zero, table, cu, out, *packed.stride()[:3], *scale.stride()[:2], table.stride(0), *out.stride()[:2]
    launched = run(kivi_pages_to_rows_kernel, (batch, most, heads), args, out, PER_WORD=16, BITS=2, PAGE=page, D=d, num_warps=4)

    def reference():
        codes = torch.stack([packed >> 2 * i & 3 for i in range(16)], 3).reshape(batch * most, heads, page, d)
        keys = codes * scale.float()[:, :, None] + zero.float()[:, :, None]
        return torch.cat([keys[table[b].long()].transpose(1, 2).reshape(-1, heads, d)[:n] for b, n in enumerate(lens)])

    return against(launched, reference)
