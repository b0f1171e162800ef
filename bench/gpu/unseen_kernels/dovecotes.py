"""Dovecotes: what engines and trainers ship: sticks broken between keys, latent pages of a rank, rooms for experts, two weights of four, filtered losses, mixed streams, hashed bytes, tiled scales."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, case, cdiv, cleared, f8, f32, far8, ints, rand, run, uniform, viewed, zeros


@triton.jit
def _softplus(x):
    return tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))


@triton.jit
def stickbreaking_fwd_kernel(
    Q, K, V, Out, Rem, sm_scale, stride_qb, stride_qh, stride_qm, stride_kb, stride_kh, stride_kn, stride_ob, stride_oh, stride_om, H, N_CTX,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr,
):
    # Every key breaks off its share of what later keys left of a query's stick; keys are read from right to left.
    pid_m = tl.num_programs(0) - 1 - tl.program_id(0)
    off_bh = tl.program_id(1)
    b = (off_bh // H).to(tl.int64)
    h = (off_bh % H).to(tl.int64)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, HEAD_DIM)
    q = tl.load(Q + b * stride_qb + h * stride_qh + offs_m[:, None] * stride_qm + offs_d[None, :], mask=offs_m[:, None] < N_CTX, other=0.0)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    neg_log = tl.zeros([BLOCK_M], dtype=tl.float32)
    last = tl.cdiv(tl.minimum((pid_m + 1) * BLOCK_M, N_CTX), BLOCK_N)
    for step in range(last):
        offs_n = (last - 1 - step) * BLOCK_N + tl.arange(0, BLOCK_N)
        at = b * stride_kb + h * stride_kh + offs_n[:, None] * stride_kn + offs_d[None, :]
        k = tl.load(K + at, mask=offs_n[:, None] < N_CTX, other=0.0)
        z = tl.dot(q, tl.trans(k)) * sm_scale
        valid = offs_n[None, :] < offs_m[:, None]
        keep = tl.where(valid, -_softplus(z), 0.0)
        later = tl.cumsum(keep, axis=1, reverse=True) - keep
        p = tl.where(valid, tl.exp(-_softplus(-z) + later + neg_log[:, None]), 0.0)
        v = tl.load(V + at, mask=offs_n[:, None] < N_CTX, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        neg_log += tl.sum(keep, axis=1)
    out = Out + b * stride_ob + h * stride_oh + offs_m[:, None] * stride_om + offs_d[None, :]
    tl.store(out, acc.to(Out.dtype.element_ty), mask=offs_m[:, None] < N_CTX)
    tl.store(Rem + off_bh * N_CTX + offs_m, tl.exp(neg_log), mask=offs_m < N_CTX)


@case
def dovecote_of_sticks_broken_between_keys(batch=2, heads=12, t=1500, d=64):
    q, k, v = (rand(batch, t, heads, d, dtype="bfloat16") for _ in range(3))
    o, rem = zeros(batch, t, heads, d, dtype="bfloat16"), zeros(batch, heads, t, dtype="float32")
    bhm = [x.stride(i) for x in (q, k, o) for i in (0, 2, 1)]
    args = q, k, v, o, rem, d**-0.5, *bhm, heads, t
    launched = run(stickbreaking_fwd_kernel, (cdiv(t, 64), batch * heads), args, (o, rem), BLOCK_M=64, BLOCK_N=32, HEAD_DIM=d, num_warps=4, num_stages=2)

    def reference():
        z = torch.einsum("bmhd,bnhd->bhmn", q.float(), k.float()) * d**-0.5
        valid = torch.ones(t, t, device=q.device).tril(-1).bool()
        keep = torch.where(valid, F.logsigmoid(-z), 0)
        later = keep.flip(-1).cumsum(-1).flip(-1) - keep
        p = torch.where(valid, (F.logsigmoid(z) + later).exp(), 0)
        return torch.einsum("bhmn,bnhd->bmhd", p, v.float()), keep.sum(-1).exp()

    return against(launched, reference)


@triton.jit
def mla_decode_of_rank_kernel(
    Q, KV_Cache, Req_to_pages, Seq_lens, Att_out, Att_lse, sm_scale, stride_qb, stride_qh, stride_page, stride_tok, stride_pages, stride_ob, stride_oh, stride_os,
    num_heads, RANK: tl.constexpr, WORLD: tl.constexpr, INTERLEAVE: tl.constexpr, LORA: tl.constexpr, PE: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr,
    PAGE: tl.constexpr, NUM_KV_SPLITS: tl.constexpr,
):
    # Latent attention of one rank of a context that is dealt out in turns: its own share of a request's tokens, split over programs.
    cur_batch = tl.program_id(0)
    cur_head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    split = tl.program_id(2)
    total = tl.load(Seq_lens + cur_batch)
    rounds = total // (INTERLEAVE * WORLD)
    rest = total - rounds * (INTERLEAVE * WORLD)
    local = rounds * INTERLEAVE + tl.minimum(tl.maximum(rest - RANK * INTERLEAVE, 0), INTERLEAVE)
    per_split = tl.cdiv(tl.cdiv(local, NUM_KV_SPLITS), BLOCK_N) * BLOCK_N
    start = per_split * split
    end = tl.minimum(start + per_split, local)
    mask_h = cur_head < num_heads
    offs_c = tl.arange(0, LORA)
    offs_pe = LORA + tl.arange(0, PE)
    if end > start:
        q = tl.load(Q + cur_batch * stride_qb + cur_head[:, None] * stride_qh + offs_c[None, :], mask=mask_h[:, None], other=0.0)
        qpe = tl.load(Q + cur_batch * stride_qb + cur_head[:, None] * stride_qh + offs_pe[None, :], mask=mask_h[:, None], other=0.0)
        e_max = tl.zeros([BLOCK_H], dtype=tl.float32) - float("inf")
        e_sum = tl.zeros([BLOCK_H], dtype=tl.float32)
        acc = tl.zeros([BLOCK_H, LORA], dtype=tl.float32)
        for start_n in range(start, end, BLOCK_N):
            offs_n = start_n + tl.arange(0, BLOCK_N)
            page = tl.load(Req_to_pages + cur_batch * stride_pages + offs_n // PAGE, mask=offs_n < end, other=0).to(tl.int64)
            loc = page * stride_page + (offs_n % PAGE) * stride_tok
            k = tl.load(KV_Cache + loc[None, :] + offs_c[:, None], mask=offs_n[None, :] < end, other=0.0)
            qk = tl.dot(q, k.to(q.dtype))
            kpe = tl.load(KV_Cache + loc[None, :] + offs_pe[:, None], mask=offs_n[None, :] < end, other=0.0)
            qk += tl.dot(qpe, kpe.to(qpe.dtype))
            qk *= sm_scale
            qk = tl.where(mask_h[:, None] & (offs_n[None, :] < end), qk, float("-inf"))
            n_e_max = tl.maximum(tl.max(qk, 1), e_max)
            n_e_max = tl.where(mask_h, n_e_max, 0.0)
            re_scale = tl.exp(e_max - n_e_max)
            p = tl.exp(qk - n_e_max[:, None])
            acc *= re_scale[:, None]
            acc += tl.dot(p.to(k.dtype), tl.trans(k))
            e_sum = e_sum * re_scale + tl.sum(p, 1)
            e_max = n_e_max
        o = Att_out + cur_batch * stride_ob + cur_head[:, None] * stride_oh + split * stride_os + offs_c[None, :]
        tl.store(o, acc / e_sum[:, None], mask=mask_h[:, None])
        lse = Att_lse + (cur_batch * num_heads + cur_head) * NUM_KV_SPLITS + split
        tl.store(lse, e_max + tl.log(e_sum), mask=mask_h)


@case
def dovecote_of_latent_pages_dealt_out_to_ranks(lens=(9000, 77, 16001, 4096, 12345, 3, 8000, 20000), heads=24, page=64, splits=8, rank=2, world=4, deal=16):
    batch = len(lens)
    local = [n // (deal * world) * deal + min(max(n % (deal * world) - rank * deal, 0), deal) for n in lens]
    most = cdiv(max(local), page)
    q, cache = rand(batch, heads, 576), rand(batch * most, page, 576)
    pages = torch.randperm(batch * most, device="cuda").reshape(batch, most).to(torch.int32)
    seq = torch.tensor(lens, dtype=torch.int32, device="cuda")
    out, lse = zeros(batch, heads, splits, 512, dtype="float32"), zeros(batch, heads, splits, dtype="float32")
    args = q, cache, pages, seq, out, lse, 0.0417, q.stride(0), q.stride(1), cache.stride(0), cache.stride(1), pages.stride(0), out.stride(0), out.stride(1), out.stride(2), heads
    flags = dict(RANK=rank, WORLD=world, INTERLEAVE=deal, LORA=512, PE=64, BLOCK_H=16, BLOCK_N=32, PAGE=page, NUM_KV_SPLITS=splits)
    launched = run(mla_decode_of_rank_kernel, (batch, cdiv(heads, 16), splits), args, (out, lse), num_warps=4, num_stages=2, **flags)

    def reference():
        o, e = torch.zeros_like(out), torch.zeros_like(lse)
        for b in range(batch):
            kv, per = cache[pages[b].long()].reshape(-1, 576).float(), cdiv(cdiv(local[b], splits), 32) * 32
            for s in range(splits):
                part = kv[s * per : min((s + 1) * per, local[b])]
                if len(part):
                    z = q[b].float() @ part.t() * 0.0417
                    o[b, :, s], e[b, :, s] = z.softmax(1) @ part[:, :512], z.logsumexp(1)
        return o, e

    return against(launched, reference)


@triton.jit
def batched_experts_masked_fp8_kernel(
    a_ptr, b_ptr, c_ptr, a_scale_ptr, b_scale_ptr, expert_num_tokens, max_num_tokens, N, K, stride_ae, stride_am, stride_be, stride_bn, stride_ce, stride_cm,
    stride_ase, stride_asm, stride_ask, stride_bse, stride_bsn, group_k: tl.constexpr, group_n: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Every expert has a room of its own for tokens, of which only the first few are taken; scales of 1 x 128 and 128 x 128.
    expert = tl.program_id(axis=0).to(tl.int64)
    e_num_tokens = tl.load(expert_num_tokens + expert)
    if e_num_tokens == 0:
        return
    pid_mn = tl.program_id(axis=1)
    num_n = tl.cdiv(N, BLOCK_N)
    m0 = (pid_mn // num_n) * BLOCK_M
    if m0 >= e_num_tokens:
        return
    offs_m = m0 + tl.arange(0, BLOCK_M)
    offs_n = (pid_mn % num_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    mask_m = offs_m < e_num_tokens
    mask_n = offs_n < N
    a_ptrs = a_ptr + expert * stride_ae + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + expert * stride_be + offs_n[None, :] * stride_bn + offs_k[:, None]
    as_ptrs = a_scale_ptr + expert * stride_ase + offs_m * stride_asm
    bs_ptrs = b_scale_ptr + expert * stride_bse + (offs_n // group_n) * stride_bsn
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=mask_m[:, None] & (offs_k[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < left) & mask_n[None, :], other=0.0)
        g = (k * BLOCK_K) // group_k
        a_scale = tl.load(as_ptrs + g * stride_ask, mask=mask_m, other=0.0)
        b_scale = tl.load(bs_ptrs + g, mask=mask_n, other=0.0)
        accumulator += tl.dot(a, b) * a_scale[:, None] * b_scale[None, :]
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    c_ptrs = c_ptr + expert * stride_ce + offs_m[:, None] * stride_cm + offs_n[None, :]
    tl.store(c_ptrs, accumulator.to(c_ptr.dtype.element_ty), mask=mask_m[:, None] & mask_n[None, :])


@case
def dovecote_of_rooms_for_experts_tokens(experts=32, room=128, n=1536, k=2048):
    a, b = f8(experts, room, k), f8(experts, n, k)
    sa, sb = uniform(experts, cdiv(k, 128), room).transpose(1, 2) * 0.1 + 0.01, uniform(experts, cdiv(n, 128), cdiv(k, 128)) * 0.1 + 0.01
    sa = sa.transpose(1, 2).contiguous().transpose(1, 2)
    counts = ints(0, room, experts)
    counts[::5] = 0
    c = zeros(experts, room, n, dtype="bfloat16")
    args = a, b, c, sa, sb, counts, room, n, k, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1), *sa.stride(), sb.stride(0), sb.stride(1)
    flags = dict(group_k=128, group_n=128, BLOCK_M=64, BLOCK_N=64, BLOCK_K=128)
    launched = run(batched_experts_masked_fp8_kernel, (experts, cdiv(room, 64) * cdiv(n, 64)), args, c, num_warps=4, num_stages=3, **flags)

    def reference():
        x = a.float() * sa.repeat_interleave(128, 2)[..., :k]
        w = b.float() * sb.repeat_interleave(128, 1)[:, :n].repeat_interleave(128, 2)[..., :k]
        live = torch.arange(room, device=a.device) < counts[:, None]
        return torch.bmm(x, w.transpose(1, 2)) * live[..., None]

    return against(launched, reference)


@triton.jit
def sparse24_linear_kernel(
    x_ptr, val_ptr, meta_ptr, bias_ptr, y_ptr, M, N, K, stride_xm, stride_vn, stride_en, stride_ym, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, HAS_BIAS: tl.constexpr,
):
    # Two of four weights are stored, with their places in four bits; they are spread out in registers before the product.
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    offs_g = tl.arange(0, BLOCK_K // 4)
    lane = tl.arange(0, 4)[None, None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        x = tl.load(x_ptr + offs_m[:, None] * stride_xm + (k + offs_k)[None, :], mask=offs_m[:, None] < M, other=0.0)
        g = k // 4 + offs_g
        meta = tl.load(meta_ptr + offs_n[:, None] * stride_en + g[None, :], mask=offs_n[:, None] < N, other=0).to(tl.int32)
        v0 = tl.load(val_ptr + offs_n[:, None] * stride_vn + 2 * g[None, :], mask=offs_n[:, None] < N, other=0.0)
        v1 = tl.load(val_ptr + offs_n[:, None] * stride_vn + 2 * g[None, :] + 1, mask=offs_n[:, None] < N, other=0.0)
        w = tl.where(lane == (meta & 3)[:, :, None], v0[:, :, None], 0.0)
        w = tl.where(lane == ((meta >> 2) & 3)[:, :, None], v1[:, :, None], w)
        w = tl.reshape(w, (BLOCK_N, BLOCK_K)).to(x.dtype)
        acc = tl.dot(x, tl.trans(w), acc)
    if HAS_BIAS:
        acc += tl.load(bias_ptr + offs_n, mask=offs_n < N, other=0.0)[None, :]
    tl.store(y_ptr + offs_m[:, None] * stride_ym + offs_n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@case
def dovecote_of_two_weights_of_four(m=500, n=2040, k=2048):
    x, val, bias, y = rand(m, k), rand(n, k // 2), f32(n), zeros(m, n)
    places = torch.rand(n, k // 4, 4, device="cuda").topk(2, 2).indices.sort(2).values
    meta = (places[..., 0] | (places[..., 1] << 2)).to(torch.uint8)
    args = x, val, meta, bias, y, m, n, k, x.stride(0), val.stride(0), meta.stride(0), y.stride(0)
    launched = run(sparse24_linear_kernel, (cdiv(m, 64), cdiv(n, 64)), args, y, BLOCK_M=64, BLOCK_N=64, BLOCK_K=64, HAS_BIAS=True, num_warps=4, num_stages=3)

    def reference():
        w = torch.zeros(n, k // 4, 4, device=x.device).scatter_(2, places, val.float().reshape(n, k // 4, 2)).reshape(n, k)
        return x.float() @ w.t() + bias

    return against(launched, reference)


@triton.jit
def linear_loss_backward_filtered_kernel(
    E, C, LSE, Targets, dE, B, D, V, stride_eb, stride_cv, grad_scale, filter_eps, softcap, BLOCK_B: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_D: tl.constexpr, GROUP_B: tl.constexpr,
):
    # Gradients of a last layer's inputs from tiles of logits that are made again; tiles in which no probability matters are left out.
    pid = tl.program_id(0)
    num_b = tl.cdiv(B, BLOCK_B)
    num_v = tl.cdiv(V, BLOCK_V)
    group = pid // (GROUP_B * num_v)
    first = group * GROUP_B
    size = min(num_b - first, GROUP_B)
    pid_b = first + ((pid % (GROUP_B * num_v)) % size)
    pid_v = (pid % (GROUP_B * num_v)) // size
    offs_b = pid_b * BLOCK_B + tl.arange(0, BLOCK_B)
    offs_v = pid_v * BLOCK_V + tl.arange(0, BLOCK_V)
    offs_d = tl.arange(0, BLOCK_D)
    accum = tl.zeros((BLOCK_B, BLOCK_V), dtype=tl.float32)
    e_ptrs = E + (offs_b % B)[:, None] * stride_eb + offs_d[None, :]
    c_ptrs = C + (offs_v % V)[None, :] * stride_cv + offs_d[:, None]
    for d in range(0, tl.cdiv(D, BLOCK_D)):
        e = tl.load(e_ptrs, mask=offs_d[None, :] < D - d * BLOCK_D, other=0.0)
        c = tl.load(c_ptrs, mask=offs_d[:, None] < D - d * BLOCK_D, other=0.0)
        accum = tl.dot(e, c, accum)
        e_ptrs += BLOCK_D
        c_ptrs += BLOCK_D
    t = 2.0 / (1.0 + tl.exp(-2.0 * accum / softcap)) - 1.0
    lse = tl.load(LSE + offs_b, mask=offs_b < B, other=0.0)
    targets = tl.load(Targets + offs_b, mask=offs_b < B, other=-1)
    p = tl.exp(softcap * t - lse[:, None])
    p = tl.where((offs_b[:, None] < B) & (offs_v[None, :] < V), p, 0.0)
    p = tl.where(targets[:, None] == offs_v[None, :], p - 1.0, p)
    if tl.max(tl.max(tl.abs(p), 1), 0) < filter_eps:
        return
    grad = (p * (1.0 - t * t) * grad_scale).to(e_ptrs.dtype.element_ty)
    for d in range(0, tl.cdiv(D, BLOCK_D)):
        at = d * BLOCK_D + offs_d
        c = tl.load(C + (offs_v % V)[:, None] * stride_cv + at[None, :], mask=at[None, :] < D, other=0.0)
        tl.atomic_add(dE + offs_b[:, None] * D + at[None, :], tl.dot(grad, c), mask=(offs_b[:, None] < B) & (at[None, :] < D))


@case
def dovecote_of_losses_that_pass_over_what_hardly_counts(b=700, d=320, v=10000, often=1500):
    e, c = rand(b, d, dtype="bfloat16"), rand(v, d, dtype="bfloat16") * (5 / d**0.5)
    c[often:] *= 0.04
    lse = (torch.tanh(e.float() @ c.float().t() / 30) * 30).logsumexp(1)
    targets, de = ints(0, often, b, dtype="int64"), zeros(b, d, dtype="float32")
    args = e, c, lse, targets, de, b, d, v, e.stride(0), c.stride(0), 1.0, 2.0**-12, 30.0
    launched = run(linear_loss_backward_filtered_kernel, (cdiv(b, 64) * cdiv(v, 128),), args, de, BLOCK_B=64, BLOCK_V=128, BLOCK_D=64, GROUP_B=4, num_warps=8, num_stages=3)

    def reference():
        t = torch.tanh(e.float() @ c.float().t() / 30)
        p = (30 * t - lse[:, None]).exp()
        p[torch.arange(b, device=e.device), targets] -= 1
        p[:, cdiv(often, 128) * 128 :] = 0
        return (p * (1 - t * t)).bfloat16().float() @ c.float()

    return against(cleared(launched, de), reference)


@triton.jit
def relu2_gated_masked_quant_kernel(
    input_ptr, counts_ptr, output_ptr, scale_ptr, H, stride_ie, stride_it, stride_oe, stride_ot, stride_se, stride_sg, GROUP: tl.constexpr, NUM_STAGE: tl.constexpr, SLICES: tl.constexpr,
):
    # Squares of positive gates times values of the tokens that an expert has, in fp8 with powers of two as scales, which are stored with tokens last.
    expert = tl.program_id(2).to(tl.int64)
    slice_id = tl.program_id(1)
    group = tl.program_id(0)
    tokens = tl.load(counts_ptr + expert)
    offs = group * GROUP + tl.arange(0, GROUP)
    for t in tl.range(slice_id, tokens, SLICES, num_stages=NUM_STAGE):
        base = input_ptr + expert * stride_ie + t * stride_it
        gate = tl.load(base + offs, mask=offs < H, other=0.0).to(tl.float32)
        up = tl.load(base + H + offs, mask=offs < H, other=0.0).to(tl.float32)
        gate = tl.maximum(gate, 0.0)
        y = gate * gate * up
        absmax = tl.maximum(tl.max(tl.abs(y)), 1e-10)
        bits = (absmax * (1.0 / 448.0)).to(tl.int32, bitcast=True)
        expo = (bits >> 23) + ((bits & 0x7FFFFF) != 0).to(tl.int32)
        scale = (expo << 23).to(tl.float32, bitcast=True)
        inverse = ((254 - expo) << 23).to(tl.float32, bitcast=True)
        tl.store(output_ptr + expert * stride_oe + t * stride_ot + offs, (y * inverse).to(output_ptr.dtype.element_ty), mask=offs < H)
        tl.store(scale_ptr + expert * stride_se + group * stride_sg + t, scale)


@case
def dovecote_of_squared_gates_in_fp8_with_tokens_last(experts=16, room=512, h=2048):
    x, counts = rand(experts, room, 2 * h, dtype="bfloat16"), ints(0, room + 1, experts)
    out, scale = zeros(experts, room, h).to(torch.float8_e4m3fn), zeros(experts, cdiv(h, 128), room, dtype="float32")
    args = x, counts, out, scale, h, x.stride(0), x.stride(1), out.stride(0), out.stride(1), scale.stride(0), scale.stride(1)
    launched = run(relu2_gated_masked_quant_kernel, (cdiv(h, 128), 32, experts), args, (out, scale), GROUP=128, NUM_STAGE=4, SLICES=32, num_warps=1)

    def reference():
        g, u = x.float().split(h, 2)
        y = (g.relu().square() * u).reshape(experts, room, -1, 128)
        absmax = y.abs().amax(3).clamp_min(1e-10) * (1 / 448)
        m, e = torch.frexp(absmax)
        s = torch.exp2((e - (m == 0.5).int()).float())
        live = torch.arange(room, device=x.device) < counts[:, None]
        codes = (y / s[..., None]).reshape(experts, room, h) * live[..., None]
        return far8((codes + 0.0).to(torch.float8_e4m3fn)), torch.where(live[:, None], s.transpose(1, 2), 0)

    return against(viewed(launched, lambda outs: (far8(outs[0]), outs[1])), reference)


@triton.jit
def typical_acceptance_kernel(logits_ptr, draft_ptr, accepted_ptr, entropy_ptr, vocab_size, stride_b, stride_s, posterior_threshold, alpha, MAX_DRAFT: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    # Drafted tokens are accepted as long as they are likelier than a threshold that falls with the entropy of what the model expects.
    b = tl.program_id(0)
    alive = 1
    s = 0
    entropy = 0.0
    while (alive != 0) & (s < MAX_DRAFT):
        row = logits_ptr + b.to(tl.int64) * stride_b + s * stride_s
        m = tl.full([BLOCK_SIZE], float("-inf"), dtype=tl.float32)
        z = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
        w = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
        for start in range(0, vocab_size, BLOCK_SIZE):
            offs = start + tl.arange(0, BLOCK_SIZE)
            x = tl.load(row + offs, mask=offs < vocab_size, other=-1.0e4).to(tl.float32)
            new = tl.maximum(m, x)
            c = tl.exp(m - new)
            e = tl.exp(x - new)
            z = z * c + e
            w = w * c + e * x
            m = new
        top = tl.max(m, axis=0)
        c = tl.exp(m - top)
        total = tl.sum(z * c, axis=0)
        log_z = top + tl.log(total)
        entropy = log_z - tl.sum(w * c, axis=0) / total
        threshold = tl.minimum(posterior_threshold, alpha * tl.exp(-entropy))
        token = tl.load(draft_ptr + b * MAX_DRAFT + s)
        p = tl.exp(tl.load(row + token).to(tl.float32) - log_z)
        alive = (p > threshold).to(tl.int32)
        s += alive
    tl.store(accepted_ptr + b, s)
    tl.store(entropy_ptr + b, entropy)


@case
def dovecote_of_drafts_that_are_typical(batch=264, drafts=4, vocab=32003):
    logits = rand(batch, drafts, vocab, dtype="bfloat16") * 3.5
    draft = torch.where(uniform(batch, drafts) < 0.75, logits.argmax(2), ints(0, vocab, batch, drafts, dtype="int64"))
    accepted, entropy = zeros(batch, dtype="int32"), zeros(batch, dtype="float32")
    args = logits, draft, accepted, entropy, vocab, logits.stride(0), logits.stride(1), 0.09, 0.3
    launched = run(typical_acceptance_kernel, (batch,), args, (accepted, entropy), MAX_DRAFT=drafts, BLOCK_SIZE=2048, num_warps=8)

    def reference():
        log_p = logits.float().log_softmax(2)
        h = -(log_p.exp() * log_p).sum(2)
        ok = log_p.gather(2, draft[..., None])[..., 0].exp() > torch.minimum(torch.full_like(h, 0.09), 0.3 * (-h).exp())
        count = ok.int().cumprod(1).sum(1)
        return count, h.gather(1, count.clamp_max(drafts - 1)[:, None])[:, 0]

    return against(launched, reference)


@triton.jit
def hyper_connection_streams_kernel(
    streams_ptr, branch_ptr, res_logits_ptr, post_logits_ptr, out_ptr, D, stride_xt, stride_xs, stride_bt, iters, S: tl.constexpr, BLOCK_D: tl.constexpr, EPS: tl.constexpr,
):
    # Four residual streams are mixed by a matrix that is made doubly stochastic, and what a layer gave is added to each by a share of its own.
    token = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, S)
    logits = tl.load(res_logits_ptr + token * S * S + i[:, None] * S + i[None, :])
    mix = tl.exp(logits - tl.max(logits, axis=1)[:, None]) + EPS
    for _ in range(iters):
        mix = mix / (tl.sum(mix, axis=1)[:, None] + EPS)
        mix = mix / (tl.sum(mix, axis=0)[None, :] + EPS)
    post = 2.0 * tl.sigmoid(tl.load(post_logits_ptr + token * S + i))
    for d0 in range(0, D, BLOCK_D):
        d = d0 + tl.arange(0, BLOCK_D)
        mask = d < D
        x = tl.load(streams_ptr + token * stride_xt + i[:, None] * stride_xs + d[None, :], mask=mask[None, :], other=0.0).to(tl.float32)
        y = tl.load(branch_ptr + token * stride_bt + d, mask=mask, other=0.0).to(tl.float32)
        out = tl.sum(mix[:, :, None] * x[None, :, :], axis=1) + post[:, None] * y[None, :]
        tl.store(out_ptr + token * stride_xt + i[:, None] * stride_xs + d[None, :], out.to(out_ptr.dtype.element_ty), mask=mask[None, :])


@case
def dovecote_of_four_streams_evenly_mixed(tokens=3000, d=2560):
    x, y = rand(tokens, 4, d, dtype="bfloat16"), rand(tokens, d, dtype="bfloat16")
    res, post, out = f32(tokens, 4, 4), f32(tokens, 4), zeros(tokens, 4, d, dtype="bfloat16")
    args = x, y, res, post, out, d, x.stride(0), x.stride(1), y.stride(0), 20
    launched = run(hyper_connection_streams_kernel, (tokens,), args, out, S=4, BLOCK_D=512, EPS=1e-6, num_warps=4)

    def reference():
        m = (res - res.amax(2, keepdim=True)).exp() + 1e-6
        for _ in range(20):
            m = m / (m.sum(2, keepdim=True) + 1e-6)
            m = m / (m.sum(1, keepdim=True) + 1e-6)
        return m @ x.float() + 2 * post.sigmoid()[..., None] * y.float()[:, None]

    return against(launched, reference)


@triton.jit
def byte_ngram_embedding_kernel(bytes_ptr, table_ptr, base_ptr, out_ptr, T, table_size, stride_table, D: tl.constexpr, MIN_N: tl.constexpr, MAX_N: tl.constexpr, PRIME: tl.constexpr):
    # A byte's vector plus those that rolling hashes of the last three to eight bytes find in tables, averaged.
    row = tl.program_id(1)
    t = tl.program_id(0)
    d = tl.arange(0, D)
    code = tl.load(bytes_ptr + row * T + t).to(tl.int64)
    acc = tl.load(base_ptr + code * D + d).to(tl.float32)
    value = code * 0
    for i in tl.static_range(0, MAX_N):
        byte = tl.load(bytes_ptr + row * T + t - i, mask=t >= i, other=0).to(tl.int64)
        value = (value * PRIME + byte + 1) & 0xFFFFFFFF
        if i + 1 >= MIN_N:
            slot = (value ^ (value >> 15)) % table_size
            acc += tl.load(table_ptr + (i + 1 - MIN_N) * stride_table + slot * D + d).to(tl.float32)
    tl.store(out_ptr + (row * T + t).to(tl.int64) * D + d, (acc / (MAX_N - MIN_N + 2)).to(out_ptr.dtype.element_ty))


@case
def dovecote_of_bytes_found_by_rolling_hashes(batch=4, t=2500, d=512, size=5003):
    codes = ints(0, 256, batch, t, dtype="uint8")
    table, base, out = rand(6, size, d, dtype="bfloat16"), rand(256, d, dtype="bfloat16"), zeros(batch, t, d, dtype="bfloat16")
    launched = run(byte_ngram_embedding_kernel, (t, batch), (codes, table, base, out, t, size, table.stride(0)), out, D=d, MIN_N=3, MAX_N=8, PRIME=1000003, num_warps=4)

    def reference():
        x = F.pad(codes.long(), (7, 0))
        total, value = base.float()[codes.long()], torch.zeros_like(codes, dtype=torch.int64)
        for i in range(8):
            value = (value * 1000003 + x[:, 7 - i : 7 - i + t] + 1) & 0xFFFFFFFF
            if i >= 2:
                total = total + table[i - 2].float()[(value ^ (value >> 15)) % size]
        return total / 7

    return against(launched, reference)


@triton.jit
def mxfp4_quant_swizzled_kernel(x_ptr, q_ptr, s_ptr, M, K, stride_xm, stride_qm, groups_padded, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    # Groups of 32 become four-bit floats; powers of two go to tiles of 128 x 4 scales in the order that tensor cores read.
    pid_m = tl.program_id(0)
    pid_k = tl.program_id(1)
    G: tl.constexpr = BLOCK_K // 32
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_k = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    mask = (offs_m[:, None] < M) & (offs_k[None, :] < K)
    x = tl.load(x_ptr + offs_m[:, None].to(tl.int64) * stride_xm + offs_k[None, :], mask=mask, other=0.0).to(tl.float32)
    x = tl.reshape(x, (BLOCK_M, G, 32))
    amax = tl.max(tl.abs(x), axis=2)
    expo = tl.maximum((amax.to(tl.int32, bitcast=True) >> 23) - 2, 1)
    y = x * ((254 - expo) << 23).to(tl.float32, bitcast=True)[:, :, None]
    a = tl.abs(y)
    code = (a > 0.25).to(tl.int32) + (a >= 0.75).to(tl.int32) + (a > 1.25).to(tl.int32) + (a >= 1.75).to(tl.int32)
    code += (a > 2.5).to(tl.int32) + (a >= 3.5).to(tl.int32) + (a > 5.0).to(tl.int32)
    code |= tl.where(y < 0, 8, 0)
    low, high = tl.split(tl.reshape(code, (BLOCK_M, BLOCK_K // 2, 2)))
    offs_q = pid_k * (BLOCK_K // 2) + tl.arange(0, BLOCK_K // 2)
    tl.store(q_ptr + offs_m[:, None].to(tl.int64) * stride_qm + offs_q[None, :], (low | (high << 4)).to(tl.uint8), mask=(offs_m[:, None] < M) & (offs_q[None, :] < K // 2))
    g = pid_k * G + tl.arange(0, G)
    tile = (offs_m // 128)[:, None] * (groups_padded // 4) + (g // 4)[None, :]
    inside = ((offs_m % 32) * 16 + (offs_m % 128) // 32 * 4)[:, None] + (g % 4)[None, :]
    tl.store(s_ptr + tile * 512 + inside, expo.to(tl.uint8), mask=(offs_m[:, None] < M) & (g[None, :] < K // 32))


@case
def dovecote_of_four_bits_with_scales_in_tiles(m=5000, k=4160):
    x = rand(m, k, dtype="bfloat16") * torch.exp2(ints(-9, 9, m, 1).float()).bfloat16()
    groups = cdiv(k // 32, 4) * 4
    q, s = zeros(m, k // 2, dtype="uint8"), zeros(cdiv(m, 128) * 128 * groups, dtype="uint8")
    launched = run(mxfp4_quant_swizzled_kernel, (cdiv(m, 32), cdiv(k, 128)), (x, q, s, m, k, x.stride(0), q.stride(0), groups), (q, s), BLOCK_M=32, BLOCK_K=128, num_warps=4)

    def reference():
        y = x.float().reshape(m, k // 32, 32)
        e = (y.abs().amax(2).view(torch.int32) >> 23) - 2
        y = y * torch.exp2((127 - e).float())[..., None]
        marks = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0], device=x.device)
        a = y.abs()[..., None]
        code = torch.where(torch.arange(7, device=x.device) % 2 == 0, a > marks, a >= marks).sum(3) + 8 * (y < 0)
        code = code.reshape(m, k // 2, 2)
        padded = torch.zeros(cdiv(m, 128) * 128, groups, dtype=torch.int32, device=x.device)
        padded[:m, : k // 32] = e
        return code[..., 0] + 16 * code[..., 1], padded.reshape(-1, 4, 32, groups // 4, 4).permute(0, 3, 2, 1, 4).reshape(-1)

    return against(launched, reference)


@triton.jit
def principal_neighborhood_kernel(x_ptr, rowptr_ptr, col_ptr, out_ptr, D, stride_x, stride_out, avg_log_deg, BLOCK_E: tl.constexpr, BLOCK_D: tl.constexpr):
    # Mean, maximum, minimum and deviation of a node's neighbors, and all of them scaled by the logarithm of how many there are.
    node = tl.program_id(0)
    d = tl.arange(0, BLOCK_D)
    e = tl.arange(0, BLOCK_E)
    start = tl.load(rowptr_ptr + node)
    end = tl.load(rowptr_ptr + node + 1)
    total = tl.zeros((BLOCK_E, BLOCK_D), dtype=tl.float32)
    square = tl.zeros((BLOCK_E, BLOCK_D), dtype=tl.float32)
    most = tl.full((BLOCK_E, BLOCK_D), float("-inf"), dtype=tl.float32)
    least = tl.full((BLOCK_E, BLOCK_D), float("inf"), dtype=tl.float32)
    for at in range(start, end, BLOCK_E):
        live = at + e < end
        col = tl.load(col_ptr + at + e, mask=live, other=0)
        mask = live[:, None] & (d[None, :] < D)
        x = tl.load(x_ptr + col[:, None] * stride_x + d[None, :], mask=mask, other=0.0).to(tl.float32)
        total += x
        square += x * x
        most = tl.maximum(most, tl.where(mask, x, float("-inf")))
        least = tl.minimum(least, tl.where(mask, x, float("inf")))
    degree = (end - start).to(tl.float32)
    count = tl.maximum(degree, 1.0)
    mean = tl.sum(total, 0) / count
    std = tl.sqrt(tl.maximum(tl.sum(square, 0) / count - mean * mean, 0.0) + 1e-5)
    high = tl.where(degree > 0, tl.max(most, 0), 0.0)
    low = tl.where(degree > 0, tl.min(least, 0), 0.0)
    amplify = tl.log(degree + 1.0) / avg_log_deg
    base = out_ptr + node * stride_out + d
    for i in tl.static_range(2):
        f = amplify if i == 1 else 1.0
        tl.store(base + (4 * i) * D, (mean * f).to(out_ptr.dtype.element_ty), mask=d < D)
        tl.store(base + (4 * i + 1) * D, (high * f).to(out_ptr.dtype.element_ty), mask=d < D)
        tl.store(base + (4 * i + 2) * D, (low * f).to(out_ptr.dtype.element_ty), mask=d < D)
        tl.store(base + (4 * i + 3) * D, (std * f).to(out_ptr.dtype.element_ty), mask=d < D)


@case
def dovecote_of_neighbors_in_eight_ways(nodes=9000, d=80, most=60):
    degree = ints(0, most, nodes, dtype="int64")
    degree[::50] = 0
    rowptr = F.pad(degree.cumsum(0), (1, 0))
    edges = int(rowptr[-1])
    x, col, out = rand(nodes, d), ints(0, nodes, edges, dtype="int64"), zeros(nodes, 8 * d)
    launched = run(principal_neighborhood_kernel, (nodes,), (x, rowptr, col, out, d, x.stride(0), out.stride(0), 3.2), out, BLOCK_E=8, BLOCK_D=128, num_warps=2)

    def reference():
        src, row = x.float()[col], torch.repeat_interleave(torch.arange(nodes, device=x.device), degree)
        n = degree.clamp_min(1)[:, None]
        mean, sq = (torch.zeros(nodes, d, device=x.device).index_add_(0, row, y) / n for y in (src, src * src))
        at = row[:, None].expand(-1, d)
        high, low = (torch.zeros(nodes, d, device=x.device).scatter_reduce_(0, at, src, how, include_self=False) for how in ("amax", "amin"))
        std = ((sq - mean * mean).clamp_min(0) + 1e-5).sqrt()
        y = torch.cat((mean, high, low, std), 1)
        return torch.cat((y, y * ((degree + 1).float().log() / 3.2)[:, None]), 1)

    return against(launched, reference)


@triton.jit
def chunk_state_of_sequences_kernel(
    x_ptr, b_ptr, states_ptr, dt_ptr, dA_cumsum_ptr, seq_idx_ptr, hdim, dstate, chunk_size, seqlen, nheads_ngroups_ratio,
    stride_x_batch, stride_x_seqlen, stride_x_head, stride_b_batch, stride_b_seqlen, stride_b_head, stride_states_batch, stride_states_chunk, stride_states_head, stride_states_hdim,
    stride_dt_batch, stride_dt_chunk, stride_dt_head, stride_seq_batch, HAS_SEQ_IDX: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # States at chunks' ends: decayed outer products of inputs and keys, of the sequence only that the chunk ends in.
    pid_bc = tl.program_id(axis=1).to(tl.int64)
    pid_h = tl.program_id(axis=2)
    nchunks = tl.cdiv(seqlen, chunk_size)
    pid_b = pid_bc // nchunks
    pid_c = pid_bc % nchunks
    num_pid_n = tl.cdiv(dstate, BLOCK_N)
    offs_m = (tl.program_id(axis=0) // num_pid_n) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = (tl.program_id(axis=0) % num_pid_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    limit = min(chunk_size, seqlen - pid_c * chunk_size)
    x_ptrs = x_ptr + pid_b * stride_x_batch + (pid_c * chunk_size + offs_k[None, :]) * stride_x_seqlen + pid_h * stride_x_head + offs_m[:, None]
    b_ptrs = b_ptr + pid_b * stride_b_batch + (pid_c * chunk_size + offs_k[:, None]) * stride_b_seqlen + (pid_h // nheads_ngroups_ratio) * stride_b_head + offs_n[None, :]
    dt_at = pid_b * stride_dt_batch + pid_c * stride_dt_chunk + pid_h * stride_dt_head
    dA_last = tl.load(dA_cumsum_ptr + dt_at + limit - 1).to(tl.float32)
    if HAS_SEQ_IDX:
        seq_last = tl.load(seq_idx_ptr + pid_b * stride_seq_batch + pid_c * chunk_size + limit - 1)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, limit, BLOCK_K):
        live = offs_k < limit - k
        x = tl.load(x_ptrs, mask=(offs_m[:, None] < hdim) & live[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=live[:, None] & (offs_n[None, :] < dstate), other=0.0).to(tl.float32)
        dA = tl.load(dA_cumsum_ptr + dt_at + k + offs_k, mask=live, other=0.0).to(tl.float32)
        dt = tl.load(dt_ptr + dt_at + k + offs_k, mask=live, other=0.0).to(tl.float32)
        scale = tl.exp(tl.minimum(dA_last - dA, 0.0)) * dt
        if HAS_SEQ_IDX:
            seq = tl.load(seq_idx_ptr + pid_b * stride_seq_batch + pid_c * chunk_size + k + offs_k, mask=live, other=-1)
            scale = tl.where(seq == seq_last, scale, 0.0)
        b = (b * scale[:, None]).to(x_ptr.dtype.element_ty)
        acc += tl.dot(x, b)
        x_ptrs += BLOCK_K * stride_x_seqlen
        b_ptrs += BLOCK_K * stride_b_seqlen
    out = states_ptr + pid_b * stride_states_batch + pid_c * stride_states_chunk + pid_h * stride_states_head + offs_m[:, None] * stride_states_hdim + offs_n[None, :]
    tl.store(out, acc.to(states_ptr.dtype.element_ty), mask=(offs_m[:, None] < hdim) & (offs_n[None, :] < dstate))


@case
def dovecote_of_states_where_sequences_end_in_chunks(batch=2, t=4000, heads=24, groups=2, p=80, n=128, q=256):
    chunks = cdiv(t, q)
    x, b = rand(batch, t, heads, p, dtype="bfloat16"), rand(batch, t, groups, n, dtype="bfloat16")
    dt, fall = uniform(batch, chunks, heads, q), -(uniform(batch, chunks, heads, q) * 0.02).cumsum(3)
    seq = (uniform(batch, t) < 0.004).cumsum(1).to(torch.int32)
    states = zeros(batch, chunks, heads, p, n, dtype="float32")
    args = x, b, states, dt, fall, seq, p, n, q, t, heads // groups, *x.stride()[:3], *b.stride()[:3], *states.stride()[:4], *dt.stride()[:3], seq.stride(0)
    launched = run(chunk_state_of_sequences_kernel, (cdiv(p, 64) * cdiv(n, 64), batch * chunks, heads), args, states, HAS_SEQ_IDX=True, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_warps=2, num_stages=4)

    def reference():
        out = []
        for c in range(chunks):
            at = slice(c * q, min((c + 1) * q, t))
            size = at.stop - at.start
            scale = (fall[:, c, :, size - 1 : size] - fall[:, c, :, :size]).clamp_max(0).exp() * dt[:, c, :, :size]
            scale = scale * (seq[:, at] == seq[:, at.stop - 1 : at.stop])[:, None]
            out.append(torch.einsum("blhp,blhn,bhl->bhpn", x[:, at].float(), b[:, at].float().repeat_interleave(heads // groups, 2), scale))
        return torch.stack(out, 1)

    return against(launched, reference)


@triton.jit
def ternary_bytes_linear_kernel(
    x_ptr, w_ptr, xs_ptr, y_ptr, w_scale, M, N, K, stride_xm, stride_wn, stride_ym, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_Q: tl.constexpr, GROUP_M: tl.constexpr,
):
    # Weights -1, 0 and 1 in two bits, four quarters of a row in each byte, times bytes with a scale a token.
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP_M * num_n)
    size = tl.minimum(num_m - group * GROUP_M, GROUP_M)
    pid_m = group * GROUP_M + pid % (GROUP_M * num_n) % size
    pid_n = pid % (GROUP_M * num_n) // size
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_q = tl.arange(0, BLOCK_Q)
    quarter = K // 4
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for q in range(0, quarter, BLOCK_Q):
        packed = tl.load(w_ptr + offs_n[None, :] * stride_wn + (q + offs_q)[:, None], mask=(offs_n[None, :] < N) & ((q + offs_q)[:, None] < quarter), other=0x55)
        for j in tl.static_range(4):
            w = ((packed >> (2 * j)) & 3).to(tl.int8) - 1
            x = tl.load(x_ptr + offs_m[:, None] * stride_xm + (j * quarter + q + offs_q)[None, :], mask=(offs_m[:, None] < M) & ((q + offs_q)[None, :] < quarter), other=0)
            acc = tl.dot(x, w, acc, out_dtype=tl.int32)
    y = acc.to(tl.float32) * tl.load(xs_ptr + offs_m, mask=offs_m < M, other=0.0)[:, None] * w_scale
    tl.store(y_ptr + offs_m[:, None] * stride_ym + offs_n[None, :], y.to(y_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@case
def dovecote_of_quarters_of_ternary_rows(m=600, n=2100, k=2560):
    x, w = ints(-127, 128, m, k, dtype="int8"), ints(-1, 2, n, k, dtype="int32")
    parts = (w + 1).reshape(n, 4, k // 4)
    packed = (parts[:, 0] | (parts[:, 1] << 2) | (parts[:, 2] << 4) | (parts[:, 3] << 6)).to(torch.uint8)
    xs, y = uniform(m) * 0.02, zeros(m, n, dtype="bfloat16")
    args = x, packed, xs, y, 0.037, m, n, k, x.stride(0), packed.stride(0), y.stride(0)
    launched = run(ternary_bytes_linear_kernel, (cdiv(m, 64) * cdiv(n, 64),), args, y, BLOCK_M=64, BLOCK_N=64, BLOCK_Q=64, GROUP_M=4, num_warps=4, num_stages=3)
    return against(launched, lambda: (x.float() @ w.float().t()) * xs[:, None] * 0.037)


@triton.jit
def merge_16x16_to_32x32_inverse_kernel(A, Ai, T, H: tl.constexpr, BT: tl.constexpr, PRECISION: tl.constexpr):
    # Inverses of one plus strictly lower triangles of 32 rows: two of 16 by substitution, joined by two products.
    i_t = tl.program_id(0)
    i_h = tl.program_id(1)
    o_i = tl.arange(0, 16)
    m_A = o_i[:, None] > o_i[None, :]
    m_I = (o_i[:, None] == o_i[None, :]).to(tl.float32)
    A += i_h * BT
    Ai += i_h * BT
    p_11 = tl.make_block_ptr(A, (T, BT), (H * BT, 1), (i_t * BT, 0), (16, 16), (1, 0))
    p_22 = tl.make_block_ptr(A, (T, BT), (H * BT, 1), (i_t * BT + 16, 16), (16, 16), (1, 0))
    b_1 = -tl.where(m_A, tl.load(p_11, boundary_check=(0, 1)).to(tl.float32), 0.0)
    b_2 = -tl.where(m_A, tl.load(p_22, boundary_check=(0, 1)).to(tl.float32), 0.0)
    for i in range(2, min(16, T - i_t * BT)):
        row = -tl.load(A + (i_t * BT + i) * H * BT + o_i).to(tl.float32)
        row = tl.where(o_i < i, row, 0.0)
        row += tl.sum(row[:, None] * b_1, 0)
        b_1 = tl.where((o_i == i)[:, None], row[None, :], b_1)
    for i in range(16 + 2, min(32, T - i_t * BT)):
        row = -tl.load(A + (i_t * BT + i) * H * BT + o_i + 16).to(tl.float32)
        row = tl.where(o_i < i - 16, row, 0.0)
        row += tl.sum(row[:, None] * b_2, 0)
        b_2 = tl.where((o_i == i - 16)[:, None], row[None, :], b_2)
    b_1 += m_I
    b_2 += m_I
    p_21 = tl.make_block_ptr(A, (T, BT), (H * BT, 1), (i_t * BT + 16, 0), (16, 16), (1, 0))
    b_21 = tl.load(p_21, boundary_check=(0, 1)).to(tl.float32)
    b_21 = -tl.dot(tl.dot(b_2, b_21, input_precision=PRECISION), b_1, input_precision=PRECISION)
    o_11 = tl.make_block_ptr(Ai, (T, BT), (H * BT, 1), (i_t * BT, 0), (16, 16), (1, 0))
    o_22 = tl.make_block_ptr(Ai, (T, BT), (H * BT, 1), (i_t * BT + 16, 16), (16, 16), (1, 0))
    o_21 = tl.make_block_ptr(Ai, (T, BT), (H * BT, 1), (i_t * BT + 16, 0), (16, 16), (1, 0))
    tl.store(o_11, b_1.to(Ai.dtype.element_ty), boundary_check=(0, 1))
    tl.store(o_22, b_2.to(Ai.dtype.element_ty), boundary_check=(0, 1))
    tl.store(o_21, b_21.to(Ai.dtype.element_ty), boundary_check=(0, 1))


@case
def dovecote_of_triangles_undone_in_halves(t=16373, heads=12):
    chunks = cdiv(t, 32)
    low = torch.ones(32, 32, device="cuda").tril(-1)
    full = f32(chunks, heads, 32, 32) * 0.15 * low
    a = full.permute(0, 2, 1, 3).reshape(chunks * 32, heads, 32)[:t].contiguous()
    ai = zeros(t, heads, 32, dtype="float32")
    launched = run(merge_16x16_to_32x32_inverse_kernel, (chunks, heads), (a, ai, t), ai, H=heads, BT=32, PRECISION="ieee", num_warps=1, num_stages=2)

    def reference():
        padded = F.pad(a, (0, 0, 0, 0, 0, chunks * 32 - t)).reshape(chunks, 32, heads, 32).transpose(1, 2)
        inverse = torch.linalg.inv(torch.eye(32, device=a.device, dtype=torch.float64) + padded.double())
        return inverse.transpose(1, 2).reshape(chunks * 32, heads, 32)[:t].float()

    return against(launched, reference)


@triton.jit
def lora_shrink_of_slices_kernel(
    input_ptr, lora_ptr, out_ptr, token_indices_sorted, num_tokens_per_lora, lora_token_start_loc, lora_ids, scaling, M, N, K, stride_im, stride_ls, stride_ll, stride_ln, stride_os, stride_om,
    SPLIT_K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, EVEN_K: tl.constexpr,
):
    # Tokens of one adapter, listed one after another, to ranks of three slices, with parts of the sums added up in memory.
    pid_sk_m = tl.program_id(0)
    slice_id = tl.program_id(1)
    lora_idx = tl.program_id(2)
    lora_id = tl.load(lora_ids + lora_idx)
    if lora_id == -1:
        return
    size = tl.load(num_tokens_per_lora + lora_idx)
    pid_sk = pid_sk_m % SPLIT_K
    m_offset = (pid_sk_m // SPLIT_K) * BLOCK_M
    if m_offset >= size:
        return
    length = min(BLOCK_M, size - m_offset)
    first = tl.load(lora_token_start_loc + lora_idx) + m_offset
    offset_m = tl.arange(0, BLOCK_M) % length
    ram = tl.load(token_indices_sorted + first + offset_m)
    rn = tl.arange(0, BLOCK_N) % N
    offset_k = pid_sk * BLOCK_K + tl.arange(0, BLOCK_K)
    a_ptr = input_ptr + ram[:, None] * stride_im + offset_k[None, :]
    b_ptr = lora_ptr + slice_id * stride_ls + lora_id * stride_ll + rn[None, :] * stride_ln + offset_k[:, None]
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K * SPLIT_K)):
        if EVEN_K:
            a = tl.load(a_ptr)
            b = tl.load(b_ptr)
        else:
            left = K - k * (BLOCK_K * SPLIT_K)
            a = tl.load(a_ptr, mask=offset_k[None, :] < left, other=0.0)
            b = tl.load(b_ptr, mask=offset_k[:, None] < left, other=0.0)
        accumulator += tl.dot(a, b)
        a_ptr += BLOCK_K * SPLIT_K
        b_ptr += BLOCK_K * SPLIT_K
    offset_n = tl.arange(0, BLOCK_N)
    c_mask = (tl.arange(0, BLOCK_M)[:, None] < length) & (offset_n[None, :] < N)
    tl.atomic_add(out_ptr + slice_id * stride_os + ram[:, None] * stride_om + offset_n[None, :], accumulator * scaling, mask=c_mask, sem="relaxed")


@case
def dovecote_of_tokens_of_adapters_to_three_slices(m=1000, k=4000, rank=16, loras=8, split=8):
    x, w = rand(m, k, dtype="bfloat16"), rand(3, loras, rank, k, dtype="bfloat16")
    who = ints(-1, loras - 1, m)
    order = who.argsort(stable=True)
    counts = torch.bincount(who + 1, minlength=loras)
    starts, ids = (F.pad(counts.cumsum(0), (1, 0))).to(torch.int32), torch.arange(-1, loras - 1, device="cuda")
    out = zeros(3, m, rank, dtype="float32")
    args = x, w, out, order, counts, starts, ids, 0.5, m, rank, k, x.stride(0), w.stride(0), w.stride(1), w.stride(2), out.stride(0), out.stride(1)
    flags = dict(SPLIT_K=split, BLOCK_M=32, BLOCK_N=16, BLOCK_K=256, EVEN_K=k % (256 * split) == 0)
    launched = run(lora_shrink_of_slices_kernel, (split * cdiv(m, 32), 3, loras), args, out, num_warps=4, num_stages=2, **flags)

    def reference():
        y = torch.zeros(3, m, rank, device=x.device)
        for i in range(loras):
            y[:, who == i] = x[who == i].float() @ w[:, i].float().transpose(1, 2) * 0.5
        return y

    return against(cleared(launched, out), reference)


@triton.jit
def conv2d_input_gradient_kernel(
    dy_ptr, w_ptr, dx_ptr, N, H, W, C, P, Q, KO, stride_dyn, stride_dyh, stride_dyw, stride_wo, stride_wr, stride_ws,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_C: tl.constexpr, BLOCK_K: tl.constexpr,
):
    # Gradients of the pixels that a strided convolution has read, channels last: which taps reach a pixel depends on its place.
    pid_m = tl.program_id(0)
    pid_c = tl.program_id(1)
    m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = m // (H * W)
    h = (m // W) % H
    w = m % W
    c = pid_c * BLOCK_C + tl.arange(0, BLOCK_C)
    acc = tl.zeros((BLOCK_M, BLOCK_C), dtype=tl.float32)
    for r in range(R):
        hh = h + PAD - r
        p = hh // STRIDE
        ok_h = (hh >= 0) & (hh % STRIDE == 0) & (p < P) & (n < N)
        for s in range(S):
            ww = w + PAD - s
            q = ww // STRIDE
            ok = ok_h & (ww >= 0) & (ww % STRIDE == 0) & (q < Q)
            for k0 in range(0, KO, BLOCK_K):
                k = k0 + tl.arange(0, BLOCK_K)
                dy = tl.load(dy_ptr + (n * stride_dyn + p * stride_dyh + q * stride_dyw)[:, None] + k[None, :], mask=ok[:, None] & (k[None, :] < KO), other=0.0)
                wt = tl.load(w_ptr + k[:, None] * stride_wo + r * stride_wr + s * stride_ws + c[None, :], mask=(k[:, None] < KO) & (c[None, :] < C), other=0.0)
                acc = tl.dot(dy, wt, acc)
    tl.store(dx_ptr + m[:, None].to(tl.int64) * C + c[None, :], acc.to(dx_ptr.dtype.element_ty), mask=(n[:, None] < N) & (c[None, :] < C))


@case
def dovecote_of_pixels_behind_strided_taps(batch=8, height=55, width=57, c=96, ko=128):
    p, q = (height + 1) // 2, (width + 1) // 2
    dy, w, dx = rand(batch, p, q, ko), rand(ko, 3, 3, c) * 0.1, zeros(batch, height, width, c)
    args = dy, w, dx, batch, height, width, c, p, q, ko, *dy.stride()[:3], *w.stride()[:3]
    launched = run(conv2d_input_gradient_kernel, (cdiv(batch * height * width, 128), cdiv(c, 32)), args, dx, R=3, S=3, STRIDE=2, PAD=1, BLOCK_M=128, BLOCK_C=32, BLOCK_K=64, num_warps=4, num_stages=3)

    def reference():
        d = torch.nn.grad.conv2d_input((batch, c, height, width), w.float().permute(0, 3, 1, 2), dy.float().permute(0, 3, 1, 2), stride=2, padding=1)
        return d.permute(0, 2, 3, 1)

    return against(launched, reference)


@triton.jit
def keys_gradients_of_head_96_kernel(
    Q, K, V, DO, LSE, Delta, DK, DV, sm_scale, stride_qz, stride_qh, stride_qm, stride_kz, stride_kh, stride_kn, T,
    GROUPS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D1: tl.constexpr, D2: tl.constexpr,
):
    # Gradients of keys and values that four heads of queries share; the 96 numbers of a head are taken as 64 and 32.
    pid_n = tl.program_id(0)
    kv_head = tl.program_id(1)
    z = tl.program_id(2)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    d1 = tl.arange(0, D1)
    d2 = D1 + tl.arange(0, D2)
    n_mask = offs_n[:, None] < T
    at = z * stride_kz + kv_head * stride_kh + offs_n[:, None] * stride_kn
    k1 = tl.load(K + at + d1[None, :], mask=n_mask, other=0.0)
    k2 = tl.load(K + at + d2[None, :], mask=n_mask, other=0.0)
    v1 = tl.load(V + at + d1[None, :], mask=n_mask, other=0.0)
    v2 = tl.load(V + at + d2[None, :], mask=n_mask, other=0.0)
    dk1 = tl.zeros((BLOCK_N, D1), dtype=tl.float32)
    dk2 = tl.zeros((BLOCK_N, D2), dtype=tl.float32)
    dv1 = tl.zeros((BLOCK_N, D1), dtype=tl.float32)
    dv2 = tl.zeros((BLOCK_N, D2), dtype=tl.float32)
    heads = tl.num_programs(1) * GROUPS
    for g in range(GROUPS):
        head = kv_head * GROUPS + g
        for m0 in range(pid_n * BLOCK_N // BLOCK_M * BLOCK_M, T, BLOCK_M):
            offs_m = m0 + tl.arange(0, BLOCK_M)
            m_mask = offs_m[:, None] < T
            row = z * stride_qz + head * stride_qh + offs_m[:, None] * stride_qm
            q1 = tl.load(Q + row + d1[None, :], mask=m_mask, other=0.0)
            q2 = tl.load(Q + row + d2[None, :], mask=m_mask, other=0.0)
            lse = tl.load(LSE + (z * heads + head) * T + offs_m, mask=offs_m < T, other=0.0)
            qk = tl.dot(k1, tl.trans(q1))
            qk = tl.dot(k2, tl.trans(q2), qk)
            pT = tl.exp(qk * sm_scale - lse[None, :])
            pT = tl.where((offs_m[None, :] >= offs_n[:, None]) & (offs_m[None, :] < T), pT, 0.0)
            do1 = tl.load(DO + row + d1[None, :], mask=m_mask, other=0.0)
            do2 = tl.load(DO + row + d2[None, :], mask=m_mask, other=0.0)
            dv1 = tl.dot(pT.to(do1.dtype), do1, dv1)
            dv2 = tl.dot(pT.to(do2.dtype), do2, dv2)
            dp = tl.dot(v1, tl.trans(do1))
            dp = tl.dot(v2, tl.trans(do2), dp)
            delta = tl.load(Delta + (z * heads + head) * T + offs_m, mask=offs_m < T, other=0.0)
            ds = (pT * (dp - delta[None, :])).to(q1.dtype)
            dk1 = tl.dot(ds, q1, dk1)
            dk2 = tl.dot(ds, q2, dk2)
    tl.store(DK + at + d1[None, :], (dk1 * sm_scale).to(DK.dtype.element_ty), mask=n_mask)
    tl.store(DK + at + d2[None, :], (dk2 * sm_scale).to(DK.dtype.element_ty), mask=n_mask)
    tl.store(DV + at + d1[None, :], dv1.to(DV.dtype.element_ty), mask=n_mask)
    tl.store(DV + at + d2[None, :], dv2.to(DV.dtype.element_ty), mask=n_mask)


@case
def dovecote_of_heads_of_96_learnt_as_64_and_32(batch=2, t=1000, kv_heads=4, groups=4):
    q, do = (rand(batch, kv_heads * groups, t, 96) for _ in range(2))
    k, v = (rand(batch, kv_heads, t, 96) for _ in range(2))
    dk, dv = zeros(batch, kv_heads, t, 96), zeros(batch, kv_heads, t, 96)

    def weights():
        z = q.float() @ k.float().repeat_interleave(groups, 1).transpose(2, 3) * 96**-0.5
        return z.masked_fill(torch.ones(t, t, device=q.device).triu(1).bool(), float("-inf"))

    lse = weights().logsumexp(3)
    delta = ((weights().softmax(3) @ v.float().repeat_interleave(groups, 1)) * do.float()).sum(3)
    args = q, k, v, do, lse, delta, dk, dv, 96**-0.5, *q.stride()[:3], *k.stride()[:3], t
    launched = run(keys_gradients_of_head_96_kernel, (cdiv(t, 64), kv_heads, batch), args, (dk, dv), GROUPS=groups, BLOCK_M=32, BLOCK_N=64, D1=64, D2=32, num_warps=4, num_stages=2)

    def reference():
        p = weights().softmax(3)
        ds = p * (do.float() @ v.float().repeat_interleave(groups, 1).transpose(2, 3) - delta[..., None]) * 96**-0.5
        shared = [(x.transpose(2, 3) @ y.float()).reshape(batch, kv_heads, groups, t, 96).sum(2) for x, y in ((ds, q), (p, do))]
        return shared[0], shared[1]

    return against(launched, reference)
