"""What libraries of models launch: routing, latent and sparse attention, linear attention, drafts, steps, caches, norms, losses, adapters."""

import torch
import triton
import triton.language as tl

from .common import arange, case, cdiv, f8, f32, far, far8, full, ints, rand, run, uniform, viewed, zeros


@triton.jit
def select_blocks(Q, KC, OUT, TC, T, scale, G: tl.constexpr, D: tl.constexpr, BN: tl.constexpr, NB: tl.constexpr, TOP: tl.constexpr):
    # Compressed keys (one for 16 tokens) score a token's heads; probabilities of a group of heads add up to those of blocks of
    # 64 tokens; the first block and the last two are taken anyway.
    t, kv = tl.program_id(0), tl.program_id(1)
    g, d, nb = tl.arange(0, G), tl.arange(0, D), tl.arange(0, NB)
    q = tl.load(Q + ((t * tl.num_programs(1) + kv) * G + g)[:, None] * D + d[None, :])
    seen = (t + 1) // 16
    m, l = tl.full((G,), -1e30, tl.float32), tl.zeros((G,), tl.float32)
    for n0 in range(0, seen, BN):
        n = n0 + tl.arange(0, BN)
        k = tl.load(KC + (kv * TC + n)[None, :] * D + d[:, None], mask=(n < seen)[None, :], other=0.0)
        s = tl.where((n < seen)[None, :], tl.dot(q, k) * scale, -1e30)
        new = tl.maximum(m, tl.max(s, 1))
        l = l * tl.exp2(m - new) + tl.sum(tl.exp2(s - new[:, None]), 1)
        m = new
    weight = tl.zeros((NB,), tl.float32)
    for n0 in range(0, seen, BN):
        n = n0 + tl.arange(0, BN)
        k = tl.load(KC + (kv * TC + n)[None, :] * D + d[:, None], mask=(n < seen)[None, :], other=0.0)
        s = tl.where((n < seen)[None, :], tl.dot(q, k) * scale, -1e30)
        p = tl.sum(tl.exp2(s - m[:, None]) / l[:, None], 0)
        of_block = tl.sum(tl.reshape(p, (BN // 4, 4)), 1)
        here = n0 // 4 + tl.arange(0, BN // 4)
        weight += tl.sum(tl.where(here[:, None] == nb[None, :], of_block[:, None], 0.0), 0)
    own = t // 64
    weight = tl.where((nb == 0) | (nb == own) | (nb == own - 1), 1e6 - nb, weight)
    weight = tl.where(nb > own, -1.0, weight)
    for i in tl.static_range(TOP):
        best = tl.argmax(weight, 0)
        tl.store(OUT + (t * tl.num_programs(1) + kv) * TOP + i, tl.where(tl.max(weight, 0) < 0, -1, best))
        weight = tl.where(nb == best, -2.0, weight)


@case
def sparse_attention_selects_blocks():
    t, kv, g, d, top = 2048, 2, 16, 64, 8
    out = zeros(t, kv, top, dtype="int32")
    args = rand(t, kv, g, d, dtype="bfloat16"), rand(kv, t // 16, d, dtype="bfloat16"), out, t // 16, t, 0.5 * d**-0.5
    # Ranks of close blocks may change places: how often each block was taken is compared.
    launched = run(select_blocks, (t, kv), args, out, G=g, D=d, BN=32, NB=32, TOP=top, num_warps=2, num_stages=2)
    return viewed(launched, lambda o: (o.view(-1, 1) == arange(32)).sum(0) + 200)


@triton.jit
def gradients_of_a_block(Q, K, V, DO, LSE, DELTA, DK, DV, STARTS, TOKENS, T, scale, G: tl.constexpr, D: tl.constexpr, BN: tl.constexpr,
                         BT: tl.constexpr):
    # Keys of a block, and the list of tokens that chose it: all heads of the group of four tokens are the rows of a step.
    block, kv = tl.program_id(0), tl.program_id(1)
    n, d, r = block * BN + tl.arange(0, BN), tl.arange(0, D), tl.arange(0, G * BT)
    at = (kv * T + n)[:, None] * D + d[None, :]
    k, v = tl.load(K + at), tl.load(V + at)
    dk, dv = tl.zeros((BN, D), tl.float32), tl.zeros((BN, D), tl.float32)
    lo, hi = tl.load(STARTS + kv * tl.num_programs(0) + block), tl.load(STARTS + kv * tl.num_programs(0) + block + 1)
    for i in range(lo, hi, BT):
        which = i + r // G
        live = which < hi
        t = tl.load(TOKENS + which, mask=live, other=0)
        row = (t * tl.num_programs(1) + kv) * G + r % G
        q = tl.load(Q + row[:, None] * D + d[None, :], mask=live[:, None], other=0.0)
        do = tl.load(DO + row[:, None] * D + d[None, :], mask=live[:, None], other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale
        p = tl.exp2(s - tl.load(LSE + row, mask=live, other=float("inf"))[:, None])
        p = tl.where((n[None, :] <= t[:, None]) & live[:, None], p, 0.0)
        dv = tl.dot(tl.trans(p.to(do.dtype)), do, dv)
        dp = tl.dot(do, tl.trans(v))
        ds = p * (dp - tl.load(DELTA + row, mask=live, other=0.0)[:, None])
        dk = tl.dot(tl.trans(ds.to(q.dtype)), q, dk)
    tl.store(DK + at, (dk * scale * 0.6931471805599453).to(DK.dtype.element_ty))
    tl.store(DV + at, dv.to(DV.dtype.element_ty))


@case
def sparse_attention_gradients_of_chosen_blocks():
    t, kv, g, d, bn = 4096, 4, 8, 64, 64
    counts = ints(100, 1000, kv * t // bn)
    starts = torch.nn.functional.pad(counts.cumsum(0), (1, 0)).to(torch.int32)
    tokens = ints(0, t, kv * t // bn * 1000)
    dk, dv = zeros(kv, t, d, dtype="bfloat16"), zeros(kv, t, d, dtype="bfloat16")
    q, do = rand(t, kv, g, d, dtype="bfloat16"), rand(t, kv, g, d, dtype="bfloat16")
    args = q, rand(kv, t, d, dtype="bfloat16"), rand(kv, t, d, dtype="bfloat16"), do, f32(t, kv, g) + 12, f32(t, kv, g), dk, dv
    args += starts, tokens, t, d**-0.5 * 1.44269504
    return run(gradients_of_a_block, (t // bn, kv), args, (dk, dv), G=g, D=d, BN=bn, BT=4, num_warps=4, num_stages=2)


@triton.jit
def absorb_queries(Q, W, COS, SIN, POS, OUT, SCALE, B, H, NOPE: tl.constexpr, ROPE: tl.constexpr, LORA: tl.constexpr, BM: tl.constexpr,
                   BN: tl.constexpr):
    # Queries of latent attention: the part without positions goes through its head's matrix, that with them is rotated; both
    # are FP8 under one scale of a row and head, found first.
    h = tl.program_id(1)
    b = tl.program_id(0) * BM + tl.arange(0, BM)
    live = b < B
    c, r, j = tl.arange(0, NOPE), tl.arange(0, ROPE // 2), tl.arange(0, BN)
    base = (b * H + h) * (NOPE + ROPE)
    q = tl.load(Q + base[:, None] + c[None, :], mask=live[:, None], other=0.0)
    even = tl.load(Q + base[:, None] + NOPE + 2 * r[None, :], mask=live[:, None], other=0.0).to(tl.float32)
    odd = tl.load(Q + base[:, None] + NOPE + 2 * r[None, :] + 1, mask=live[:, None], other=0.0).to(tl.float32)
    pos = tl.load(POS + b, mask=live, other=0)
    cos = tl.load(COS + pos[:, None] * (ROPE // 2) + r[None, :])
    sin = tl.load(SIN + pos[:, None] * (ROPE // 2) + r[None, :])
    one, two = even * cos - odd * sin, even * sin + odd * cos
    top = tl.maximum(tl.max(tl.abs(one), 1), tl.max(tl.abs(two), 1))
    for n0 in range(0, LORA, BN):
        y = tl.dot(q, tl.load(W + (h * NOPE + c)[:, None] * LORA + (n0 + j)[None, :]))
        top = tl.maximum(top, tl.max(tl.abs(y), 1))
    scale = tl.maximum(top, 1e-6) / 448.0
    tl.store(SCALE + b * H + h, scale, mask=live)
    to = (b * H + h) * (LORA + ROPE)
    for n0 in range(0, LORA, BN):
        y = tl.dot(q, tl.load(W + (h * NOPE + c)[:, None] * LORA + (n0 + j)[None, :])) / scale[:, None]
        tl.store(OUT + to[:, None] + (n0 + j)[None, :], y.to(tl.float8e4nv), mask=live[:, None])
    tl.store(OUT + to[:, None] + LORA + r[None, :], (one / scale[:, None]).to(tl.float8e4nv), mask=live[:, None])
    tl.store(OUT + to[:, None] + LORA + ROPE // 2 + r[None, :], (two / scale[:, None]).to(tl.float8e4nv), mask=live[:, None])


@case
def latent_queries_absorbed_to_fp8():
    b, h, nope, rope, lora, positions = 200, 64, 128, 64, 512, 4096
    angle = f32(positions, rope // 2)
    out, scale = zeros(b, h, lora + rope, dtype="float8_e4m3fn"), zeros(b, h, dtype="float32")
    args = rand(b, h, nope + rope, dtype="bfloat16"), rand(h, nope, lora, dtype="bfloat16") * 0.1, angle.cos(), angle.sin()
    args += ints(0, positions, b), out, scale, b, h
    options = dict(NOPE=nope, ROPE=rope, LORA=lora, BM=64, BN=128, num_warps=4, num_stages=3)
    return viewed(run(absorb_queries, (cdiv(b, 64), h), args, (out, scale), **options), lambda o: (far8(o[0]), o[1]))


@triton.jit
def index_keys(X, WEIGHT, BIAS, COS, SIN, POS, SLOT, CODES, SCALES, D: tl.constexpr, R: tl.constexpr, LOG: tl.constexpr):
    # A key of an indexer: layer norm, its first R channels rotated by halves, a Hadamard transform, FP8 with a power of two.
    t, d = tl.program_id(0), tl.arange(0, D)
    x = tl.load(X + t * D + d).to(tl.float32)
    x -= tl.sum(x) / D
    x = x * tl.rsqrt(tl.sum(x * x) / D + 1e-6) * tl.load(WEIGHT + d) + tl.load(BIAS + d)
    pos = tl.load(POS + t)
    other = tl.gather(x, tl.where(d < R, d ^ (R // 2), d), 0)
    cos = tl.load(COS + pos * (R // 2) + d % (R // 2))
    sin = tl.load(SIN + pos * (R // 2) + d % (R // 2))
    x = tl.where(d < R // 2, x * cos - other * sin, tl.where(d < R, x * cos + other * sin, x))
    for b in tl.static_range(LOG):
        pairs = tl.reshape(x, (D >> (b + 1), 2, 1 << b))
        low, high = tl.split(tl.permute(pairs, (0, 2, 1)))
        x = tl.reshape(tl.permute(tl.join(low + high, low - high), (0, 2, 1)), (D,))
    x = x * (D**-0.5)
    exponent = tl.ceil(tl.log2(tl.maximum(tl.max(tl.abs(x)), 1e-10) / 448.0))
    slot = tl.load(SLOT + t)
    if slot >= 0:
        tl.store(CODES + slot * D + d, (x * tl.exp2(-exponent)).to(tl.float8e4nv))
        tl.store(SCALES + slot, (exponent + 127).to(tl.int32).to(tl.uint8))


@case
def indexer_keys_norm_rotate_hadamard_fp8():
    t, d, r, positions = 16384, 128, 64, 8192
    angle = f32(positions, r // 2)
    codes, scales = zeros(t, d, dtype="float8_e4m3fn"), zeros(t, dtype="uint8")
    slot = torch.randperm(t, device="cuda")
    slot[::50] = -1
    args = rand(t, d, dtype="bfloat16"), f32(d), f32(d), angle.cos(), angle.sin(), ints(0, positions, t), slot, codes, scales
    launched = run(index_keys, (t,), args, (codes, scales), D=d, R=r, LOG=7, num_warps=1)
    return viewed(launched, lambda o: (far8(o[0]), far(o[1])))


@triton.jit
def delta_states(K, W, U, G, H, VNEW, H0, HT, T, NH: tl.constexpr, DK: tl.constexpr, DV: tl.constexpr, BV: tl.constexpr, C: tl.constexpr):
    # States of the gated delta rule from chunk to chunk: what the state predicts is taken off the values before they are added.
    h, v0 = tl.program_id(1), tl.program_id(0) * BV
    k1, v, c = tl.arange(0, DK), v0 + tl.arange(0, BV), tl.arange(0, C)
    state = tl.load(H0 + (h * DK + k1)[:, None] * DV + v[None, :])
    for t0 in range(0, T, C):
        tl.store(H + ((t0 // C * NH + h) * DK + k1)[:, None] * DV + v[None, :], state.to(H.dtype.element_ty))
        t = t0 + c
        live = t < T
        w = tl.load(W + (t * NH + h)[:, None] * DK + k1[None, :], mask=live[:, None], other=0.0)
        u = tl.load(U + (t * NH + h)[:, None] * DV + v[None, :], mask=live[:, None], other=0.0)
        new = u.to(tl.float32) - tl.dot(w, state.to(w.dtype))
        tl.store(VNEW + (t * NH + h)[:, None] * DV + v[None, :], new.to(VNEW.dtype.element_ty), mask=live[:, None])
        last = tl.load(G + (tl.minimum(t0 + C, T) - 1) * NH + h)
        g = tl.load(G + t * NH + h, mask=live, other=0.0)
        new = new * tl.where(live, tl.exp(last - g), 0.0)[:, None]
        k = tl.load(K + (t * NH + h)[None, :] * DK + k1[:, None], mask=live[None, :], other=0.0)
        state = tl.dot(k, new.to(k.dtype), state * tl.exp(last))
    tl.store(HT + (h * DK + k1)[:, None] * DV + v[None, :], state)


@case
def gated_delta_states_of_chunks():
    t, nh, dk, dv, c = 4000, 16, 128, 128, 64
    g = -uniform(cdiv(t, c), c, nh) * 0.1
    g = g.cumsum(1).view(-1, nh)[:t].contiguous()
    h, vnew, ht = zeros(cdiv(t, c), nh, dk, dv, dtype="bfloat16"), zeros(t, nh, dv, dtype="bfloat16"), zeros(nh, dk, dv, dtype="float32")
    k, w, u = (rand(t, nh, dk, dtype="bfloat16") * s for s in (0.08, 0.04, 1.0))
    args = k, w, u, g, h, vnew, f32(nh, dk, dv), ht, t
    return run(delta_states, (dv // 32, nh), args, (h, vnew, ht), NH=nh, DK=dk, DV=dv, BV=32, C=c, num_warps=4, num_stages=2)


@triton.jit
def recompute_w_u(K, V, BETA, G, A, W, U, T, NH: tl.constexpr, DK: tl.constexpr, DV: tl.constexpr, BD: tl.constexpr, C: tl.constexpr):
    # w = A (k beta exp g), u = A (v beta): a small triangular operand, and two streams of blocks of channels.
    h, t = tl.program_id(1), tl.program_id(0) * C + tl.arange(0, C)
    live, c, j = t < T, tl.arange(0, C), tl.arange(0, BD)
    beta = tl.load(BETA + t * NH + h, mask=live, other=0.0)
    g = tl.exp(tl.load(G + t * NH + h, mask=live, other=0.0))
    a = tl.load(A + (t * NH + h)[:, None] * C + c[None, :], mask=live[:, None], other=0.0)
    for d0 in range(0, DV, BD):
        at = (t * NH + h)[:, None] * DV + (d0 + j)[None, :]
        v = tl.load(V + at, mask=live[:, None], other=0.0)
        u = tl.dot(a, (v * beta[:, None]).to(v.dtype))
        tl.store(U + at, u.to(U.dtype.element_ty), mask=live[:, None])
    for d0 in range(0, DK, BD):
        at = (t * NH + h)[:, None] * DK + (d0 + j)[None, :]
        k = tl.load(K + at, mask=live[:, None], other=0.0)
        w = tl.dot(a, (k * (beta * g)[:, None]).to(k.dtype))
        tl.store(W + at, w.to(W.dtype.element_ty), mask=live[:, None])


@case
def gated_delta_w_and_u_again():
    t, nh, dk, dv, c = 8192, 16, 128, 256, 64
    k, v, a = rand(t, nh, dk, dtype="bfloat16"), rand(t, nh, dv, dtype="bfloat16"), rand(t, nh, c, dtype="bfloat16") * 0.2
    beta, g = uniform(t, nh), -uniform(t, nh)
    w, u = torch.zeros_like(k), torch.zeros_like(v)
    options = dict(NH=nh, DK=dk, DV=dv, BD=64, C=c, num_warps=4, num_stages=3)
    launch, args = run(recompute_w_u, (t // c, nh), (k, v, beta, g, a, w, u, t), (w, u), **options)

    def reference(*_):
        def by(x, s):
            x = (x * s[..., None]).to(x.dtype).float().view(t // c, c, nh, -1)
            return torch.einsum("nchj,njhd->nchd", a.float().view(t // c, c, nh, c), x).reshape(t, nh, -1)

        return by(k, beta * g.exp()), by(v, beta)

    launch.reference = reference
    return launch, args


@triton.jit
def chunk_inputs_gradient(CB, X, DT, CUM, DOUT, B, DSTATES, DX, DDT, T, NH: tl.constexpr, P: tl.constexpr, N: tl.constexpr, C: tl.constexpr,
                          BK: tl.constexpr, BM: tl.constexpr):
    # Gradients of a chunk's inputs and steps: what later rows of the chunk, and the state after it, take of them.
    h, chunk, k0 = tl.program_id(2), tl.program_id(1), tl.program_id(0) * BK
    k, p = k0 + tl.arange(0, BK), tl.arange(0, P)
    ck = tl.load(CUM + (chunk * C + k) * NH + h)
    last = tl.load(CUM + (chunk * C + C - 1) * NH + h)
    n = tl.arange(0, N)
    b = tl.load(B + (chunk * C + k)[:, None] * N + n[None, :])
    ds = tl.load(DSTATES + ((chunk * NH + h) * P + p)[None, :] * N + n[:, None])
    acc = tl.dot(b, ds) * tl.exp(last - ck)[:, None]
    for m0 in range(k0, C, BM):
        m = m0 + tl.arange(0, BM)
        cb = tl.load(CB + (chunk * C + k)[:, None] * C + m[None, :]).to(tl.float32)
        cm = tl.load(CUM + (chunk * C + m) * NH + h)
        cb = tl.where(m[None, :] >= k[:, None], cb * tl.exp(tl.minimum(cm[None, :] - ck[:, None], 0.0)), 0.0)
        do = tl.load(DOUT + ((chunk * C + m) * NH + h)[:, None] * P + p[None, :])
        acc = tl.dot(cb.to(do.dtype), do, acc)
    at = ((chunk * C + k) * NH + h)
    x = tl.load(X + at[:, None] * P + p[None, :]).to(tl.float32)
    tl.store(DDT + at, tl.sum(acc * x, 1))
    tl.store(DX + at[:, None] * P + p[None, :], (acc * tl.load(DT + at)[:, None]).to(DX.dtype.element_ty))


@case
def ssd_gradients_of_inputs_and_steps():
    t, nh, p, n, c = 4096, 24, 64, 128, 256
    cum = (-uniform(t // c, c, nh) * 0.02).cumsum(1).view(t, nh)
    dx, ddt = zeros(t, nh, p, dtype="bfloat16"), zeros(t, nh, dtype="float32")
    cb, x, dout, b = (rand(*s, dtype="bfloat16") for s in ((t, c), (t, nh, p), (t, nh, p), (t, n)))
    ds, dt = rand(t // c, nh, p, n, dtype="bfloat16"), uniform(t, nh)
    options = dict(NH=nh, P=p, N=n, C=c, BK=64, BM=64, num_warps=4, num_stages=3)
    launch, args = run(chunk_inputs_gradient, (c // 64, t // c, nh), (cb, x, dt, cum, dout, b, ds, dx, ddt, t), (dx, ddt), **options)

    def reference(*_):
        z = t // c
        cu = cum.view(z, c, nh)
        decay = torch.exp((cu[:, None] - cu[:, :, None]).clamp(max=0))
        w = cb.float().view(z, c, c, 1) * decay * torch.ones(c, c, device="cuda").triu()[None, :, :, None]
        acc = torch.einsum("zkmh,zmhp->zkhp", w, dout.float().view(z, c, nh, p))
        acc += torch.einsum("zkn,zhpn->zkhp", b.float().view(z, c, n), ds.float()) * torch.exp(cu[:, -1:] - cu)[..., None]
        acc = acc.reshape(t, nh, p)
        return acc * dt[..., None], (acc * x.float()).sum(-1)

    launch.reference = reference
    return launch, args


@triton.jit
def recurrent_drafts(Q, K, V, G, BETA, STATES, SLOTS, OUT, KEPT, scale, H, S, DK: tl.constexpr, DV: tl.constexpr, BV: tl.constexpr):
    # A delta rule with a gate for each channel, token after token of a draft; the state after each is kept, for some may be
    # rejected. Queries and keys are normalized here.
    v, h, b = tl.program_id(0) * BV + tl.arange(0, BV), tl.program_id(1), tl.program_id(2)
    k = tl.arange(0, DK)
    slot = tl.load(SLOTS + b)
    if slot < 0:
        return
    state = tl.load(STATES + ((slot * H + h) * DV + v)[:, None] * DK + k[None, :])
    for s in range(S):
        row = (b * S + s) * H + h
        q, x = tl.load(Q + row * DK + k).to(tl.float32), tl.load(K + row * DK + k).to(tl.float32)
        q = q * tl.rsqrt(tl.sum(q * q) + 1e-6) * scale
        x = x * tl.rsqrt(tl.sum(x * x) + 1e-6)
        state = state * tl.exp(tl.load(G + row * DK + k))[None, :]
        miss = tl.load(V + row * DV + v).to(tl.float32) - tl.sum(state * x[None, :], 1)
        state += (miss * tl.load(BETA + row).to(tl.float32))[:, None] * x[None, :]
        tl.store(OUT + row * DV + v, tl.sum(state * q[None, :], 1).to(OUT.dtype.element_ty))
        tl.store(KEPT + (row.to(tl.int64) * DV + v)[:, None] * DK + k[None, :], state)


@case
def delta_attention_states_of_drafts():
    b, s, h, d = 24, 4, 16, 128
    out, kept = zeros(b, s, h, d, dtype="bfloat16"), zeros(b, s, h, d, d, dtype="float32")
    q, k, v = (rand(b, s, h, d, dtype="bfloat16") for _ in range(3))
    slots = torch.randperm(40, device="cuda")[:b].to(torch.int32)
    slots[3] = -1
    args = q, k, v, -uniform(b, s, h, d), uniform(b, s, h).to(torch.bfloat16), f32(40, h, d, d), slots, out, kept, d**-0.5, h, s
    return run(recurrent_drafts, (d // 32, h, b), args, (out, kept), DK=d, DV=d, BV=32, num_warps=4, num_stages=1)


@triton.jit
def propose_from_history(TOKENS, LENGTH, DRAFT, FOUND, STRIDE, N: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
    # The latest earlier place whose last N tokens are those at the end, or the longest match that there is; K tokens after it.
    row = tl.program_id(0)
    length = tl.load(LENGTH + row)
    base = TOKENS + row * STRIDE
    best = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, length - 1, BLOCK):
        i = start + tl.arange(0, BLOCK)
        live = i < length - 1
        same = live
        matched = tl.zeros((BLOCK,), tl.int32)
        for n in tl.static_range(N):
            tail = tl.load(base + length - 1 - n)
            same = same & (i >= n) & (tl.load(base + i - n, mask=live & (i >= n), other=-1) == tail)
            matched += same.to(tl.int32)
        best = tl.maximum(best, matched * 65536 + i)
    top = tl.max(best, 0)
    found = top >> 16
    at = (top & 65535) + 1
    k = tl.arange(0, K)
    tl.store(DRAFT + row * K + k, tl.load(base + at + k, mask=(found > 0) & (at + k < length), other=-1))
    tl.store(FOUND + row, found)


@case
def drafts_of_tokens_seen_before():
    rows, stride, k = 512, 8192, 8
    draft, found = zeros(rows, k, dtype="int32"), zeros(rows, dtype="int32")
    args = ints(0, 40, rows, stride), ints(1000, stride, rows), draft, found, stride
    return run(propose_from_history, (rows,), args, (draft, found), N=5, K=k, BLOCK=1024, num_warps=4)


@triton.jit
def expand_beams(LOGP, IDS, SCORES, PARENT, TOKEN, NEXT, BEAMS: tl.constexpr, TOP: tl.constexpr):
    # Beams of a draft's tree: scores of all children, the best of them with their parents and tokens.
    row = tl.program_id(0)
    b, c = tl.arange(0, BEAMS), tl.arange(0, TOP)
    score = tl.load(SCORES + row * BEAMS + b)[:, None] + tl.load(LOGP + (row * BEAMS + b)[:, None] * TOP + c[None, :])
    bits = score.to(tl.int32, bitcast=True)
    key = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.int64) << 16
    key = tl.reshape(key | (b[:, None] * TOP + c[None, :]).to(tl.int64), (BEAMS * TOP,))
    best = tl.topk(key, BEAMS)
    at = (best & 65535).to(tl.int32)
    bits = (best >> 16).to(tl.int32)
    tl.store(NEXT + row * BEAMS + b, (bits ^ ((bits >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True))
    tl.store(PARENT + row * BEAMS + b, at // TOP)
    tl.store(TOKEN + row * BEAMS + b, tl.load(IDS + row * BEAMS * TOP + at))


@case
def tree_of_drafts_takes_best_children():
    rows, beams, top = 2048, 16, 16
    logp, ids, scores = -uniform(rows, beams, top) * 8, ints(0, 100_000, rows, beams, top, dtype="int64"), -uniform(rows, beams)
    outs = zeros(rows, beams, dtype="int32"), zeros(rows, beams, dtype="int64"), zeros(rows, beams, dtype="float32")
    launch, args = run(expand_beams, (rows,), (logp, ids, scores, *outs), outs, BEAMS=beams, TOP=top, num_warps=1)

    def reference(*_):
        value, at = (scores[..., None] + logp).view(rows, -1).sort(dim=1, descending=True)
        at = at[:, :beams]
        return at // top, ids.view(rows, -1).gather(1, at), value[:, :beams]

    launch.reference = reference
    return launch, args


@triton.jit
def three_averages(P, GRAD, FAST, SLOW, SQUARE, SEED, N, lr, b1, b2, b3, alpha, eps, c1, c2, decay, BLOCK: tl.constexpr):
    # Two momenta, one slow; steps against the gradient's sign are left out, and what is kept scaled up; stored with noise.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = i < N
    p = tl.load(P + i, mask=live, other=0.0).to(tl.float32)
    g = tl.load(GRAD + i, mask=live, other=0.0).to(tl.float32)
    fast = b1 * tl.load(FAST + i, mask=live, other=0.0).to(tl.float32) + (1 - b1) * g
    slow = b3 * tl.load(SLOW + i, mask=live, other=0.0) + (1 - b3) * g
    square = b2 * tl.load(SQUARE + i, mask=live, other=0.0) + (1 - b2) * g * g
    step = (fast * c1 + alpha * slow) / (tl.sqrt(square * c2) + eps)
    keep = step * g > 0
    share = tl.sum(keep.to(tl.float32)) / BLOCK
    step = tl.where(keep, step, 0.0) / tl.maximum(share, 1e-3)
    p = p - lr * (step + decay * p)
    r = tl.randint(tl.load(SEED), i) & 0xFFFF
    bits = p.to(tl.int32, bitcast=True) + r.to(tl.int32)
    tl.store(P + i, (bits & -65536).to(tl.float32, bitcast=True).to(tl.bfloat16), mask=live)
    tl.store(FAST + i, fast.to(tl.bfloat16), mask=live)
    tl.store(SLOW + i, slow, mask=live)
    tl.store(SQUARE + i, square, mask=live)


@case
def cautious_step_of_three_averages():
    n = 16_000_000
    p, fast, slow, square = rand(n, dtype="bfloat16"), rand(n, dtype="bfloat16"), f32(n), uniform(n)
    args = p, rand(n, dtype="bfloat16"), fast, slow, square, ints(0, 1000, 1), n, 1e-3, 0.9, 0.999, 0.9999, 5.0, 1e-8, 1.1, 1.2, 0.1
    return run(three_averages, (cdiv(n, 1024),), args, (p, fast, slow, square), BLOCK=1024, num_warps=4)


@triton.jit
def cache_to_e2m1(KEY, SLOT, CODES, SCALES, GLOBAL, H, D: tl.constexpr):
    # Pages of codes of four bits (0, .5, 1, 1.5, 2, 3, 4, 6 with signs) and an E4M3 scale for 16 of them.
    t, h = tl.program_id(0), tl.program_id(1)
    slot = tl.load(SLOT + t)
    if slot < 0:
        return
    d = tl.arange(0, D)
    x = tl.load(KEY + (t * H + h) * D + d).to(tl.float32) * tl.load(GLOBAL)
    x = tl.reshape(x, (D // 16, 16))
    s = (tl.max(tl.abs(x), 1) / 6.0).to(tl.float8e4nv)
    back = s.to(tl.float32)
    y = x / tl.where(back == 0, 1.0, back)[:, None]
    a = tl.abs(y)
    code = ((a > 0.25).to(tl.int32) + (a >= 0.75).to(tl.int32) + (a > 1.25).to(tl.int32) + (a >= 1.75).to(tl.int32) + (a > 2.5).to(tl.int32)
            + (a >= 3.5).to(tl.int32) + (a > 5.0).to(tl.int32))
    code |= (y < 0).to(tl.int32) << 3
    low, high = tl.split(tl.reshape(code, (D // 16, 8, 2)))
    packed = (low | (high << 4)).to(tl.uint8)
    at = (slot * H + h)
    j = tl.arange(0, D // 16)[:, None] * 8 + tl.arange(0, 8)[None, :]
    tl.store(CODES + at * (D // 2) + j, packed)
    tl.store(SCALES + at * (D // 16) + tl.arange(0, D // 16), s)


@case
def cache_of_four_bit_floats_and_scales():
    t, h, d, slots = 8192, 8, 128, 20000
    codes, scales = zeros(slots, h, d // 2, dtype="uint8"), zeros(slots, h, d // 16, dtype="float8_e4m3fn")
    slot = torch.randperm(slots, device="cuda")[:t]
    slot[::40] = -1
    key, whole = rand(t, h, d, dtype="bfloat16"), uniform(1)
    launched = run(cache_to_e2m1, (t, h), (key, slot, codes, scales, whole, h), (codes, scales), D=d, num_warps=1)
    return viewed(launched, lambda o: (far(o[0] & 7), far(o[0] >> 4 & 7), far8(o[1])))


@triton.jit
def rotate_yarn(QKV, POS, QOUT, KOUT, VOUT, base_log2, low, high, factor, mscale, HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, HB: tl.constexpr):
    # Frequencies are computed here, interpolated below a ramp; queries and keys in halves, values copied to their own tensor.
    t = tl.program_id(0)
    i = tl.arange(0, D // 2)
    plain = tl.exp2(-base_log2 * (2.0 * i / D))
    ramp = tl.minimum(tl.maximum((i - low) / (high - low), 0.0), 1.0)
    angle = tl.load(POS + t).to(tl.float32) * (plain / factor * ramp + plain * (1.0 - ramp))
    cos, sin = tl.cos(angle) * mscale, tl.sin(angle) * mscale
    row = QKV + t * (HQ + 2 * HK) * D
    for h0 in tl.static_range(0, HQ + HK, HB):
        h = h0 + tl.arange(0, HB)
        at = h[:, None] * D + i[None, :]
        live = (h < HQ + HK)[:, None]
        one = tl.load(row + at, mask=live, other=0.0).to(tl.float32)
        two = tl.load(row + at + D // 2, mask=live, other=0.0).to(tl.float32)
        a, b = one * cos[None, :] - two * sin[None, :], two * cos[None, :] + one * sin[None, :]
        to_q = (h < HQ)[:, None]
        q = QOUT + t * HQ * D + at
        tl.store(q, a.to(tl.bfloat16), mask=to_q)
        tl.store(q + D // 2, b.to(tl.bfloat16), mask=to_q)
        k = KOUT + t * HK * D + at - HQ * D
        tl.store(k, a.to(tl.bfloat16), mask=live & (h >= HQ)[:, None])
        tl.store(k + D // 2, b.to(tl.bfloat16), mask=live & (h >= HQ)[:, None])
    v = tl.arange(0, HK * D)
    tl.store(VOUT + t * HK * D + v, tl.load(row + (HQ + HK) * D + v))


@case
def rotary_of_ramped_frequencies():
    t, hq, hk, d = 8192, 20, 4, 128
    outs = zeros(t, hq, d, dtype="bfloat16"), zeros(t, hk, d, dtype="bfloat16"), zeros(t, hk, d, dtype="bfloat16")
    args = rand(t, hq + 2 * hk, d, dtype="bfloat16"), ints(0, 500, t, dtype="int64"), *outs, 13.28771238, 8.0, 40.0, 4.0, 1.1386
    return run(rotate_yarn, (t,), args, outs, HQ=hq, HK=hk, D=d, HB=8, num_warps=4)


@triton.jit
def gated_norm_fp8(X, GATE, WEIGHT, CODES, SCALES, H, eps, D: tl.constexpr, BH: tl.constexpr, UE8: tl.constexpr):
    # Heads of linear attention: each normalized, times a SiLU of its gate, to FP8 with a scale of its own.
    t = tl.program_id(0)
    h, d = tl.program_id(1) * BH + tl.arange(0, BH), tl.arange(0, D)
    live = (h < H)[:, None]
    at = (t * H + h)[:, None] * D + d[None, :]
    x = tl.load(X + at, mask=live, other=0.0).to(tl.float32)
    z = tl.load(GATE + at, mask=live, other=0.0).to(tl.float32)
    y = x * tl.rsqrt(tl.sum(x * x, 1) / D + eps)[:, None] * tl.load(WEIGHT + d).to(tl.float32)[None, :] * z * tl.sigmoid(z)
    s = tl.maximum(tl.max(tl.abs(y), 1), 1e-8) / 448.0
    if UE8:
        s = tl.exp2(tl.ceil(tl.log2(s)))
    tl.store(CODES + at, (y / s[:, None]).to(tl.float8e4nv), mask=live)
    tl.store(SCALES + t * H + h, s, mask=h < H)


def gated_norm(t, h, d, bh, power, warps):
    codes, scales = zeros(t, h, d, dtype="float8_e4m3fn"), zeros(t, h, dtype="float32")
    args = rand(t, h, d, dtype="bfloat16"), rand(t, h, d, dtype="bfloat16"), rand(d, dtype="bfloat16"), codes, scales, h, 1e-6
    launched = run(gated_norm_fp8, (t, cdiv(h, bh)), args, (codes, scales), D=d, BH=bh, UE8=power, num_warps=warps)
    return viewed(launched, lambda o: (far8(o[0]), o[1]))


@case
def gated_norm_of_heads_to_fp8():
    return gated_norm(8192, 24, 128, 16, False, 4)


@case
def gated_norm_of_wide_heads_to_powers():
    return gated_norm(4096, 10, 256, 2, True, 2)


@triton.jit
def shard_statistics(LOGITS, LABELS, STATS, V, first, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m, s = tl.full((BLOCK,), float("-inf"), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for v0 in range(0, V, BLOCK):
        v = v0 + tl.arange(0, BLOCK)
        x = tl.load(LOGITS + row * V + v, mask=v < V, other=float("-inf")).to(tl.float32)
        new = tl.maximum(m, x)
        s = s * tl.where(new == float("-inf"), 1.0, tl.exp(m - new)) + tl.where(x == float("-inf"), 0.0, tl.exp(x - new))
        m = new
    top = tl.max(m, 0)
    label = tl.load(LABELS + row) - first
    mine = (label >= 0) & (label < V)
    picked = tl.load(LOGITS + row * V + label, mask=mine, other=0.0).to(tl.float32)
    tl.store(STATS + row * 3, top)
    tl.store(STATS + row * 3 + 1, tl.sum(s * tl.exp(m - top), 0))
    tl.store(STATS + row * 3 + 2, picked)


@triton.jit
def shard_gradient(LOGITS, LABELS, STATS, LOSS, V, first, ROWS, scale, SHARDS: tl.constexpr, BLOCK: tl.constexpr):
    # In place: statistics of all shards give the whole sum; the first program of a row writes its loss.
    row = tl.program_id(0).to(tl.int64)
    r = tl.arange(0, SHARDS)
    tops = tl.load(STATS + (r * ROWS + row) * 3)
    top = tl.max(tops, 0)
    total = tl.sum(tl.load(STATS + (r * ROWS + row) * 3 + 1) * tl.exp(tops - top), 0)
    picked = tl.sum(tl.load(STATS + (r * ROWS + row) * 3 + 2), 0)
    label = tl.load(LABELS + row)
    if tl.program_id(1) == 0:
        tl.store(LOSS + row, tl.where(label < 0, 0.0, tl.log(total) + top - picked))
    v = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(LOGITS + row * V + v, mask=v < V, other=0.0).to(tl.float32)
    g = tl.exp(x - top) / total - tl.where(v == label - first, 1.0, 0.0)
    g = tl.where(label < 0, 0.0, g * scale)
    tl.store(LOGITS + row * V + v, g.to(LOGITS.dtype.element_ty), mask=v < V)


@case
def cross_entropy_of_vocabulary_shards():
    rows, v, shards, me = 2048, 38_016, 4, 1
    saved, labels = rand(rows, v, dtype="bfloat16"), ints(0, v * shards, rows, dtype="int64")
    labels[::9] = -100
    logits, stats, loss = saved.clone(), f32(shards, rows, 3).abs() + 10, zeros(rows, dtype="float32")
    mine = stats[me]

    def launch(logits, labels, stats, loss):
        logits.copy_(saved)
        shard_statistics[(rows,)](logits, labels, mine, v, v * me, BLOCK=2048, num_warps=8)
        shard_gradient[(rows, cdiv(v, 4096))](logits, labels, stats, loss, v, v * me, rows, 1e3, SHARDS=shards, BLOCK=4096, num_warps=8)
        return logits, loss

    return launch, (logits, labels, stats, loss)


@triton.jit
def expand_slices(MID, B0, B1, B2, ADAPTER, RANKS, SCALES, OUT, TOKENS, N0, N1, N2, R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Queries, keys and values of an adapter in one launch: outputs of three widths, ranks of each adapter, added in place.
    part = tl.program_id(2)
    N = tl.where(part == 0, N0, tl.where(part == 1, N1, N2))
    n0 = tl.program_id(1) * BN
    if n0 >= N:
        return
    t = tl.program_id(0) * BM + tl.arange(0, BM)
    adapter = tl.load(ADAPTER + tl.program_id(0))
    if adapter < 0:
        return
    rank = tl.load(RANKS + adapter)
    if part == 0:
        w = B0
        first = 0
    elif part == 1:
        w = B1
        first = N0
    else:
        w = B2
        first = N0 + N1
    n, r = n0 + tl.arange(0, BN), tl.arange(0, R)
    live = t < TOKENS
    mid = tl.load(MID + (part * TOKENS + t)[:, None] * R + r[None, :], mask=live[:, None] & (r < rank)[None, :], other=0.0)
    b = tl.load(w + (adapter.to(tl.int64) * N + n)[None, :] * R + r[:, None], mask=(n < N)[None, :] & (r < rank)[:, None], other=0.0)
    y = tl.dot(mid.to(b.dtype), b) * tl.load(SCALES + adapter)
    at = OUT + t[:, None] * (N0 + N1 + N2) + (first + n)[None, :]
    ok = live[:, None] & (n < N)[None, :]
    tl.store(at, (tl.load(at, mask=ok, other=0.0).to(tl.float32) + y).to(OUT.dtype.element_ty), mask=ok)


@case
def adapters_of_ranks_to_three_slices():
    tokens, adapters, r, n0, n1, n2 = 4000, 20, 32, 4096, 1024, 1024
    weights = [rand(adapters, n, r, dtype="bfloat16") for n in (n0, n1, n2)]
    which = ints(-1, adapters, cdiv(tokens, 32))
    out = zeros(tokens, n0 + n1 + n2, dtype="bfloat16")
    args = f32(3, tokens, r), *weights, which, ints(4, r + 1, adapters), uniform(adapters), out, tokens, n0, n1, n2
    options = dict(R=r, BM=32, BN=128, num_warps=4, num_stages=2)
    launch, args = run(expand_slices, (cdiv(tokens, 32), cdiv(n0, 128), 3), args, out, **options)

    def fresh(*args):
        out.zero_()
        return launch(*args)

    return fresh, args


@triton.jit
def experts_gate_up(X, W, EXPERT, MID, D, HID, TOP: tl.constexpr, BH: tl.constexpr, BD: tl.constexpr):
    # One token and one of its experts: rows of gate and up by sums.
    slot = tl.program_id(1)
    h, d = tl.program_id(0) * BH + tl.arange(0, BH), tl.arange(0, BD)
    e = tl.load(EXPERT + slot).to(tl.int64)
    gate, up = tl.zeros((BH, BD), tl.float32), tl.zeros((BH, BD), tl.float32)
    for d0 in range(0, D, BD):
        x = tl.load(X + slot // TOP * D + d0 + d).to(tl.float32)[None, :]
        at = W + (e * 2 * HID + h)[:, None] * D + (d0 + d)[None, :]
        gate += tl.load(at).to(tl.float32) * x
        up += tl.load(at + HID * D).to(tl.float32) * x
    g, u = tl.sum(gate, 1), tl.sum(up, 1)
    tl.store(MID + slot * HID + h, (g * tl.sigmoid(g) * u).to(MID.dtype.element_ty))


@triton.jit
def experts_down(MID, W, EXPERT, WEIGHT, OUT, D, HID, TOP: tl.constexpr, BD: tl.constexpr, BH: tl.constexpr):
    # All experts of a token in turn, their sums weighted.
    t = tl.program_id(1)
    d, h = tl.program_id(0) * BD + tl.arange(0, BD), tl.arange(0, BH)
    total = tl.zeros((BD,), tl.float32)
    for i in range(TOP):
        e = tl.load(EXPERT + t * TOP + i).to(tl.int64)
        acc = tl.zeros((BD, BH), tl.float32)
        for h0 in range(0, HID, BH):
            x = tl.load(MID + (t * TOP + i) * HID + h0 + h).to(tl.float32)
            acc += tl.load(W + (e * D + d)[:, None] * HID + (h0 + h)[None, :]).to(tl.float32) * x[None, :]
        total += tl.sum(acc, 1) * tl.load(WEIGHT + t * TOP + i)
    tl.store(OUT + t * D + d, total.to(OUT.dtype.element_ty))


@case
def experts_of_single_tokens_by_sums():
    t, experts, top, d, hid = 4, 64, 8, 2048, 768
    x, w1, w2 = rand(t, d, dtype="bfloat16"), rand(experts, 2 * hid, d, dtype="bfloat16") * 0.03, rand(experts, d, hid, dtype="bfloat16") * 0.03
    expert, weight = uniform(t, experts).argsort(1)[:, :top].to(torch.int32).contiguous(), uniform(t, top)
    mid, out = zeros(t * top, hid, dtype="bfloat16"), zeros(t, d, dtype="bfloat16")

    def launch(*_):
        experts_gate_up[(hid // 8, t * top)](x, w1, expert, mid, d, hid, TOP=top, BH=8, BD=512, num_warps=4, num_stages=2)
        experts_down[(d // 16, t)](mid, w2, expert, weight, out, d, hid, TOP=top, BD=16, BH=256, num_warps=4, num_stages=2)
        return mid, out

    def reference(*_):
        y = torch.einsum("td,tkhd->tkh", x.float(), w1[expert.long()].float())
        z = (torch.nn.functional.silu(y[..., :hid]) * y[..., hid:]).to(torch.bfloat16)
        return z.view(-1, hid), (torch.einsum("tkh,tkdh->tkd", z.float(), w2[expert.long()].float()) * weight[..., None]).sum(1)

    launch.reference = reference
    return launch, (x, mid, out)


@triton.jit
def latents_to_rows(CACHE, SCALES, ROPE, TABLE, STARTS, OUT, MAXP, PAGE: tl.constexpr, L: tl.constexpr, R: tl.constexpr, BT: tl.constexpr):
    # Pages of FP8 latents with four scales each, and of bfloat16 positions, to consecutive rows of bfloat16.
    seq = tl.program_id(1)
    lo, hi = tl.load(STARTS + seq), tl.load(STARTS + seq + 1)
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    if tl.program_id(0) * BT >= hi - lo:
        return
    live = (t < hi - lo)
    page = tl.load(TABLE + seq * MAXP + t // PAGE, mask=live, other=0).to(tl.int64)
    slot = page * PAGE + t % PAGE
    c, r = tl.arange(0, L), tl.arange(0, R)
    x = tl.load(CACHE + slot[:, None] * L + c[None, :], mask=live[:, None], other=0.0).to(tl.float32)
    s = tl.load(SCALES + slot[:, None] * 4 + (c // (L // 4))[None, :], mask=live[:, None], other=0.0)
    at = OUT + (lo + t)[:, None] * (L + R)
    tl.store(at + c[None, :], (x * s).to(tl.bfloat16), mask=live[:, None])
    tl.store(at + L + r[None, :], tl.load(ROPE + slot[:, None] * R + r[None, :], mask=live[:, None], other=0.0), mask=live[:, None])


@case
def paged_latents_to_ragged_rows():
    seqs, page, pages, l, r, longest = 16, 64, 1024, 512, 64, 3000
    lengths = ints(500, longest, seqs)
    starts = torch.nn.functional.pad(lengths.cumsum(0), (1, 0)).to(torch.int32)
    maxp = cdiv(longest, page)
    table = torch.randperm(pages, device="cuda")[: seqs * maxp].view(seqs, maxp).to(torch.int32)
    out = zeros(seqs * longest, l + r, dtype="bfloat16")
    args = f8(pages * page, l), uniform(pages * page, 4), rand(pages * page, r, dtype="bfloat16"), table, starts, out, maxp
    return run(latents_to_rows, (cdiv(longest, 8), seqs), args, out, PAGE=page, L=l, R=r, BT=8, num_warps=4)


@triton.jit
def merge_partial_states(PART, LSE, STARTS, OUT, OUTLSE, H, D: tl.constexpr, BD: tl.constexpr):
    # Each token has a list of partial results of any length: sums by the running largest.
    t, h = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, BD)
    lo, hi = tl.load(STARTS + t), tl.load(STARTS + t + 1)
    m, l = -1e30, 0.0
    acc = tl.zeros((BD,), tl.float32)
    for i in range(lo, hi):
        s = tl.load(LSE + i * H + h)
        x = tl.load(PART + (i * H + h).to(tl.int64) * D + d, mask=d < D, other=0.0).to(tl.float32)
        new = tl.maximum(m, s)
        a, b = tl.exp2(m - new), tl.exp2(s - new)
        acc = acc * a + x * b
        l = l * a + b
        m = new
    tl.store(OUT + (t * H + h) * D + d, tl.where(l > 0, acc / l, 0.0).to(OUT.dtype.element_ty), mask=d < D)
    tl.store(OUTLSE + t * H + h, m + tl.log2(tl.maximum(l, 1e-30)))


@case
def merge_states_of_ragged_lists():
    t, h, d = 1024, 32, 128
    starts = torch.nn.functional.pad(ints(0, 12, t).cumsum(0), (1, 0)).to(torch.int32)
    out, lse = zeros(t, h, d, dtype="bfloat16"), zeros(t, h, dtype="float32")
    args = rand(t * 12, h, d, dtype="bfloat16"), f32(t * 12, h), starts, out, lse, h
    return run(merge_partial_states, (t, h), args, (out, lse), D=d, BD=d, num_warps=1, num_stages=3)
