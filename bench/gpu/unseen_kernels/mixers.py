"""Mixers of tokens and channels: attention of further forms, states in chunks, experts, quantized and fused products."""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from .common import PROGRAMS, case, cdiv, f8, f32, far, far8, ints, rand, run, uniform, viewed, zeros


@triton.jit
def _online(s, v, acc, l, m):
    new = tl.maximum(m, tl.max(s, 1))
    p = tl.exp2(s - new[:, None])
    alpha = tl.exp2(m - new)
    acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
    return acc, l * alpha + tl.sum(p, 1), new


@triton.jit
def ring_decode(Q, KSINK, VSINK, KRING, VRING, POS, O, scale, W, H_KV: tl.constexpr, GROUP: tl.constexpr, SINKS: tl.constexpr, D: tl.constexpr,
                BLOCK_G: tl.constexpr, BLOCK_N: tl.constexpr):
    # A ring of the last W tokens, and the first few that are kept for ever.
    b, h = tl.program_id(0), tl.program_id(1)
    g, d = tl.arange(0, BLOCK_G), tl.arange(0, D)
    q = tl.load(Q + ((b * H_KV + h) * GROUP + g)[:, None] * D + d[None, :], mask=(g < GROUP)[:, None], other=0.0)
    pos = tl.load(POS + b)
    m = tl.full((BLOCK_G,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK_G,), tl.float32)
    acc = tl.zeros((BLOCK_G, D), tl.float32)
    s_off = tl.arange(0, 16)
    ok = (s_off < SINKS) & (s_off < pos)
    k0 = tl.load(KSINK + ((b * SINKS + s_off) * H_KV + h)[None, :] * D + d[:, None], mask=(s_off < SINKS)[None, :], other=0.0)
    v0 = tl.load(VSINK + ((b * SINKS + s_off) * H_KV + h)[:, None] * D + d[None, :], mask=(s_off < SINKS)[:, None], other=0.0)
    s0 = tl.where(ok[None, :], tl.dot(q, k0) * scale, float("-inf"))
    acc, l, m = _online(s0, v0, acc, l, m)
    first = tl.maximum(pos - W, SINKS)
    for n0 in range(first, pos, BLOCK_N):
        n = n0 + tl.arange(0, BLOCK_N)
        slot = ((b * W + n % W) * H_KV + h) * D
        live = n < pos
        k = tl.load(KRING + slot[None, :] + d[:, None], mask=live[None, :], other=0.0)
        v = tl.load(VRING + slot[:, None] + d[None, :], mask=live[:, None], other=0.0)
        s = tl.where(live[None, :], tl.dot(q, k) * scale, float("-inf"))
        acc, l, m = _online(s, v, acc, l, m)
    tl.store(O + ((b * H_KV + h) * GROUP + g)[:, None] * D + d[None, :], (acc / l[:, None]).to(O.dtype.element_ty), mask=(g < GROUP)[:, None])


@case
def attn_decode_ring_with_sinks():
    b, kv, group, sinks, w, d = 48, 8, 6, 4, 1000, 64
    x = lambda *shape: rand(*shape, dtype="bfloat16")
    out = zeros(b, kv * group, d, dtype="bfloat16")
    args = x(b, kv * group, d), x(b, sinks, kv, d), x(b, sinks, kv, d), x(b, w, kv, d), x(b, w, kv, d), ints(100, 5000, b), out
    args += d**-0.5 * 1.44269504, w
    options = dict(H_KV=kv, GROUP=group, SINKS=sinks, D=d, BLOCK_G=16, BLOCK_N=64, num_warps=4, num_stages=3)
    return run(ring_decode, (b, kv), args, out, **options)


@triton.jit
def rotary_causal(Q, K, V, COS, SIN, O, T, scale, HQ: tl.constexpr, HK: tl.constexpr, HALF: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    # Queries and keys are rotated as they are read; their halves meet in two dots.
    pid, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    hk = h // (HQ // HK)
    offs_m = pid * BLOCK_M + tl.arange(0, BLOCK_M)
    f, d = tl.arange(0, HALF), tl.arange(0, 2 * HALF)
    qm = (offs_m < T)[:, None]
    qp = Q + ((b * T + offs_m) * HQ + h)[:, None] * (2 * HALF) + f[None, :]
    a, c = tl.load(qp, mask=qm, other=0.0).to(tl.float32), tl.load(qp + HALF, mask=qm, other=0.0).to(tl.float32)
    cos, sin = tl.load(COS + offs_m[:, None] * HALF + f[None, :], mask=qm, other=1.0), tl.load(SIN + offs_m[:, None] * HALF + f[None, :], mask=qm, other=0.0)
    q1, q2 = (a * cos - c * sin).to(tl.bfloat16), (c * cos + a * sin).to(tl.bfloat16)
    m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, 2 * HALF), tl.float32)
    for n0 in range(0, tl.minimum((pid + 1) * BLOCK_M, T), BLOCK_N):
        n = n0 + tl.arange(0, BLOCK_N)
        nm = n < T
        kp = K + ((b * T + n) * HK + hk)[None, :] * (2 * HALF) + f[:, None]
        k1, k2 = tl.load(kp, mask=nm[None, :], other=0.0).to(tl.float32), tl.load(kp + HALF, mask=nm[None, :], other=0.0).to(tl.float32)
        ck, sk = tl.load(COS + n[None, :] * HALF + f[:, None], mask=nm[None, :], other=1.0), tl.load(SIN + n[None, :] * HALF + f[:, None], mask=nm[None, :], other=0.0)
        s = tl.dot(q1, (k1 * ck - k2 * sk).to(tl.bfloat16))
        s = tl.dot(q2, (k2 * ck + k1 * sk).to(tl.bfloat16), s) * scale
        s = tl.where((offs_m[:, None] >= n[None, :]) & nm[None, :], s, float("-inf"))
        v = tl.load(V + ((b * T + n) * HK + hk)[:, None] * (2 * HALF) + d[None, :], mask=nm[:, None], other=0.0)
        acc, l, m = _online(s, v, acc, l, m)
    tl.store(O + ((b * T + offs_m) * HQ + h)[:, None] * (2 * HALF) + d[None, :], (acc / l[:, None]).to(tl.bfloat16), mask=qm)


@case
def attn_causal_rotary_inside():
    b, t, hq, hk, half = 2, 1500, 16, 4, 32
    angle = torch.arange(t, device="cuda")[:, None] * 10000.0 ** (-torch.arange(half, device="cuda") / half)[None, :]
    out = zeros(b, t, hq, 2 * half, dtype="bfloat16")
    x = lambda h: rand(b, t, h, 2 * half, dtype="bfloat16")
    args = x(hq), x(hk), x(hk), torch.cos(angle).float(), torch.sin(angle).float(), out, t, (2 * half) ** -0.5 * 1.44269504
    return run(rotary_causal, (cdiv(t, 64), hq, b), args, out, HQ=hq, HK=hk, HALF=half, BLOCK_M=64, BLOCK_N=64, num_warps=4, num_stages=2)


@triton.jit
def shifted_window_attention(QKV, BIAS, O, H, W, HEADS, shift, scale, WIN: tl.constexpr, D: tl.constexpr, TOK: tl.constexpr):
    # Windows of WIN x WIN of a picture rolled by `shift`; tokens that came from another side do not see each other.
    win, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    per_row = W // WIN
    t = tl.arange(0, TOK)
    d = tl.arange(0, D)
    live = t < WIN * WIN
    wy, wx = win // per_row * WIN + t // WIN, win % per_row * WIN + t % WIN
    zone = tl.where(wy < H - WIN, 0, tl.where(wy < H - shift, 1, 2)) * 3 + tl.where(wx < W - WIN, 0, tl.where(wx < W - shift, 1, 2))
    y, x = (wy + shift) % H, (wx + shift) % W
    base = ((b * H + y) * W + x) * (3 * HEADS * D) + h * D
    q = tl.load(QKV + base[:, None] + d[None, :], mask=live[:, None], other=0.0)
    k = tl.load(QKV + base[None, :] + HEADS * D + d[:, None], mask=live[None, :], other=0.0)
    v = tl.load(QKV + base[:, None] + 2 * HEADS * D + d[None, :], mask=live[:, None], other=0.0)
    dy = t[:, None] // WIN - t[None, :] // WIN + WIN - 1
    dx = t[:, None] % WIN - t[None, :] % WIN + WIN - 1
    both = live[:, None] & live[None, :]
    s = tl.dot(q, k) * scale + tl.load(BIAS + (dy * (2 * WIN - 1) + dx) * HEADS + h, mask=both, other=0.0)
    s = tl.where(zone[:, None] == zone[None, :], s, s - 100.0)
    s = tl.where(live[None, :], s, float("-inf"))
    p = tl.exp(s - tl.max(s, 1)[:, None])
    p = p / tl.sum(p, 1)[:, None]
    o = tl.dot(p.to(v.dtype), v)
    tl.store(O + (((b * H + y) * W + x) * HEADS + h)[:, None] * D + d[None, :], o.to(O.dtype.element_ty), mask=live[:, None])


@case
def attn_shifted_windows_7x7():
    b, h, w, heads, d, win = 16, 56, 56, 4, 32, 7
    out = zeros(b, h, w, heads, d)
    args = rand(b, h, w, 3, heads, d), f32((2 * win - 1) ** 2, heads), out, h, w, heads, 3, d**-0.5
    return run(shifted_window_attention, (h * w // win**2, heads, b), args, out, WIN=win, D=d, TOK=64, num_warps=4)


@triton.jit
def compressed_branch(Q, KC, VC, O, SCORE, T, NC, scale, STRIDE: tl.constexpr, LEN: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr,
                      BLOCK_N: tl.constexpr, BLOCK_G: tl.constexpr):
    # A token's heads of one group see compressed keys of the past; then what each key got, summed over the heads, is written.
    t, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads = tl.num_programs(1)
    g, d = tl.arange(0, BLOCK_G), tl.arange(0, D)
    gm = (g < GROUP)[:, None]
    q = tl.load(Q + (((b * T + t) * heads + h) * GROUP + g)[:, None] * D + d[None, :], mask=gm, other=0.0)
    seen = tl.minimum(tl.maximum((t - LEN + 1 + STRIDE) // STRIDE, 0), NC)
    m = tl.full((BLOCK_G,), -1e30, tl.float32)
    l = tl.zeros((BLOCK_G,), tl.float32)
    acc = tl.zeros((BLOCK_G, D), tl.float32)
    for n0 in range(0, seen, BLOCK_N):
        n = n0 + tl.arange(0, BLOCK_N)
        k = tl.load(KC + ((b * NC + n) * heads + h)[None, :] * D + d[:, None], mask=(n < seen)[None, :], other=0.0)
        v = tl.load(VC + ((b * NC + n) * heads + h)[:, None] * D + d[None, :], mask=(n < seen)[:, None], other=0.0)
        s = tl.where((n < seen)[None, :], tl.dot(q, k) * scale, -1e30)
        acc, l, m = _online(s, v, acc, l, m)
    inv = tl.where(l > 0, 1.0 / l, 0.0)
    tl.store(O + (((b * T + t) * heads + h) * GROUP + g)[:, None] * D + d[None, :], (acc * inv[:, None]).to(O.dtype.element_ty), mask=gm)
    for n0 in range(0, seen, BLOCK_N):
        n = n0 + tl.arange(0, BLOCK_N)
        k = tl.load(KC + ((b * NC + n) * heads + h)[None, :] * D + d[:, None], mask=(n < seen)[None, :], other=0.0)
        p = tl.exp2(tl.dot(q, k) * scale - m[:, None]) * inv[:, None]
        p = tl.sum(tl.where(gm, p, 0.0), 0)
        tl.store(SCORE + ((b * T + t) * heads + h) * NC + n, p, mask=n < seen)


@case
def attn_compressed_keys_with_scores():
    b, t, heads, group, d, stride, length = 1, 2048, 4, 16, 64, 16, 32
    nc = (t - length) // stride + 1
    out, score = zeros(b, t, heads * group, d, dtype="bfloat16"), zeros(b, t, heads, nc, dtype="float32")
    x = lambda *shape: rand(*shape, dtype="bfloat16")
    args = x(b, t, heads * group, d), x(b, nc, heads, d), x(b, nc, heads, d), out, score, t, nc, d**-0.5 * 1.44269504
    options = dict(STRIDE=stride, LEN=length, GROUP=group, D=d, BLOCK_N=64, BLOCK_G=16, num_warps=2, num_stages=2)
    return run(compressed_branch, (t, heads, b), args, (out, score), **options)


@triton.jit
def latent_prefill(QN, QR, KN, KR, V, O, LSE, T, scale, H, DN: tl.constexpr, DR: tl.constexpr, DV: tl.constexpr, BLOCK_M: tl.constexpr,
                   BLOCK_N: tl.constexpr):
    # Keys of 128 that heads own and 64 rotated ones that they share; values of 128; the longest rows start first.
    pid, bh = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1)
    b, h = bh // H, bh % H
    m_off, n_off = pid * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    dn, dr, dv = tl.arange(0, DN), tl.arange(0, DR), tl.arange(0, DV)
    qm = (m_off < T)[:, None]
    qn = tl.load(QN + ((b * T + m_off) * H + h)[:, None] * DN + dn[None, :], mask=qm, other=0.0)
    qr = tl.load(QR + ((b * T + m_off) * H + h)[:, None] * DR + dr[None, :], mask=qm, other=0.0)
    m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, DV), tl.float32)
    for start in tl.range(0, tl.minimum((pid + 1) * BLOCK_M, T), BLOCK_N):
        n = start + n_off
        nm = n < T
        kn = tl.load(KN + ((b * T + n) * H + h)[None, :] * DN + dn[:, None], mask=nm[None, :], other=0.0)
        kr = tl.load(KR + (b * T + n)[None, :] * DR + dr[:, None], mask=nm[None, :], other=0.0)
        s = tl.dot(qr, kr, tl.dot(qn, kn)) * scale
        s = tl.where(m_off[:, None] >= n[None, :], s, float("-inf"))
        v = tl.load(V + ((b * T + n) * H + h)[:, None] * DV + dv[None, :], mask=nm[:, None], other=0.0)
        acc, l, m = _online(s, v, acc, l, m)
    tl.store(O + ((b * T + m_off) * H + h)[:, None] * DV + dv[None, :], (acc / l[:, None]).to(tl.bfloat16), mask=qm)
    tl.store(LSE + (b * H + h) * T + m_off, m + tl.log2(l), mask=m_off < T)


@case
def attn_latent_prefill_192_by_128():
    b, t, h, dn, dr, dv = 1, 2048, 32, 128, 64, 128
    out, lse = zeros(b, t, h, dv, dtype="bfloat16"), zeros(b, h, t, dtype="float32")
    x = lambda *shape: rand(*shape, dtype="bfloat16")
    args = x(b, t, h, dn), x(b, t, h, dr), x(b, t, h, dn), x(b, t, dr), x(b, t, h, dv), out, lse, t, (dn + dr) ** -0.5 * 1.44269504, h
    return run(latent_prefill, (cdiv(t, 128), b * h), args, (out, lse), DN=dn, DR=dr, DV=dv, BLOCK_M=128, BLOCK_N=64, num_warps=8, num_stages=2)


@triton.jit
def shared_prefix_decode(Q, K, V, O, LSE, BATCH, P, scale, H_KV: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr,
                         BLOCK_N: tl.constexpr, SPLITS: tl.constexpr):
    # All sequences share a prompt: queries of the batch and of a group are the rows of one dot; the prompt is split.
    h, split = tl.program_id(1), tl.program_id(2)
    r = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, D)
    rows = BATCH * GROUP
    at = (r // GROUP * H_KV + h) * GROUP + r % GROUP
    q = tl.load(Q + at[:, None] * D + d[None, :], mask=(r < rows)[:, None], other=0.0)
    each = tl.cdiv(tl.cdiv(P, SPLITS), BLOCK_N) * BLOCK_N
    lo = split * each
    hi = tl.minimum(lo + each, P)
    m = tl.full((BLOCK_M,), -1e30, tl.float32)
    l = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for n0 in range(lo, hi, BLOCK_N):
        n = n0 + tl.arange(0, BLOCK_N)
        k = tl.load(K + (h * P + n)[None, :] * D + d[:, None], mask=(n < hi)[None, :], other=0.0)
        v = tl.load(V + (h * P + n)[:, None] * D + d[None, :], mask=(n < hi)[:, None], other=0.0)
        s = tl.where((n < hi)[None, :], tl.dot(q, k.to(q.dtype)) * scale, -1e30)
        acc, l, m = _online(s, v.to(q.dtype), acc, l, m)
    out = at * SPLITS + split
    tl.store(O + out[:, None] * D + d[None, :], acc / tl.maximum(l, 1e-20)[:, None], mask=(r < rows)[:, None])
    tl.store(LSE + out, m + tl.log2(tl.maximum(l, 1e-20)), mask=r < rows)


@case
def attn_shared_prefix_fp8_split():
    batch, kv, group, d, prefix, splits = 100, 8, 4, 128, 5000, 8
    part, lse = zeros(batch, kv * group, splits, d, dtype="float32"), zeros(batch, kv * group, splits, dtype="float32")
    args = rand(batch, kv * group, d), f8(kv, prefix, d), f8(kv, prefix, d), part, lse, batch, prefix, d**-0.5 * 1.44269504
    options = dict(H_KV=kv, GROUP=group, D=d, BLOCK_M=64, BLOCK_N=64, SPLITS=splits, num_warps=4, num_stages=2)
    return run(shared_prefix_decode, (cdiv(batch * group, 64), kv, splits), args, (part, lse), **options)


@triton.jit
def block_sparse_rows(Q, K, V, START, COLS, O, T, scale, H, D: tl.constexpr, BLOCK: tl.constexpr):
    # A list of key blocks for each block of queries; the last of a list is the diagonal.
    pid, bh = tl.program_id(0), tl.program_id(1)
    base = bh * T * D
    r, d = tl.arange(0, BLOCK), tl.arange(0, D)
    i = pid * BLOCK + r
    q = tl.load(Q + base + i[:, None] * D + d[None, :])
    q = (q.to(tl.float32) * scale).to(q.dtype)
    lo, hi = tl.load(START + pid), tl.load(START + pid + 1)
    m = tl.full((BLOCK,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK,), tl.float32)
    acc = tl.zeros((BLOCK, D), tl.float32)
    for e in range(lo, hi - 1):
        n = tl.load(COLS + e) * BLOCK + r
        k = tl.load(K + base + n[None, :] * D + d[:, None])
        v = tl.load(V + base + n[:, None] * D + d[None, :])
        acc, l, m = _online(tl.dot(q, k), v, acc, l, m)
    k = tl.load(K + base + i[None, :] * D + d[:, None])
    v = tl.load(V + base + i[:, None] * D + d[None, :])
    s = tl.where(r[:, None] >= r[None, :], tl.dot(q, k), float("-inf"))
    acc, l, m = _online(s, v, acc, l, m)
    tl.store(O + base + i[:, None] * D + d[None, :], (acc / l[:, None]).to(O.dtype.element_ty))


@case
def attn_block_sparse_lists():
    b, h, t, d, block = 2, 8, 4096, 64, 64
    blocks = t // block
    pick = torch.tril((uniform(blocks, blocks) < 0.25) | torch.eye(blocks, device="cuda").bool())
    start = zeros(blocks + 1, dtype="int32")
    start[1:] = torch.cumsum(pick.sum(1), 0)
    out = zeros(b, h, t, d)
    args = rand(b, h, t, d), rand(b, h, t, d), rand(b, h, t, d), start, pick.nonzero()[:, 1].int().contiguous(), out, t, d**-0.5 * 1.44269504, h
    return run(block_sparse_rows, (blocks, b * h), args, out, D=d, BLOCK=block, num_warps=4, num_stages=3)


@triton.jit
def attention_dq(Q, K, V, DO, O, LSE, DQ, T, scale, HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    # The gradient of queries; the sum of gradients times outputs is made here.
    pid, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    hk = h // (HQ // HK)
    i, d = pid * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, D)
    im = (i < T)[:, None]
    at = ((b * HQ + h) * T + i)[:, None] * D + d[None, :]
    q = tl.load(Q + at, mask=im, other=0.0)
    do = tl.load(DO + at, mask=im, other=0.0)
    delta = tl.sum(do.to(tl.float32) * tl.load(O + at, mask=im, other=0.0).to(tl.float32), 1)
    lse = tl.load(LSE + (b * HQ + h) * T + i, mask=i < T, other=0.0)
    dq = tl.zeros((BLOCK_M, D), tl.float32)
    for n0 in range(0, tl.minimum(pid * BLOCK_M + BLOCK_M, T), BLOCK_N):
        n = n0 + tl.arange(0, BLOCK_N)
        nm = n < T
        kv = ((b * HK + hk) * T + n)[:, None] * D + d[None, :]
        k = tl.load(K + kv, mask=nm[:, None], other=0.0)
        v = tl.load(V + kv, mask=nm[:, None], other=0.0)
        p = tl.exp2(tl.dot(q, tl.trans(k)) * scale - lse[:, None])
        p = tl.where((i[:, None] >= n[None, :]) & nm[None, :], p, 0.0)
        dp = tl.dot(do, tl.trans(v))
        ds = (p * (dp - delta[:, None])).to(q.dtype)
        dq = tl.dot(ds, k, dq)
    tl.store(DQ + at, (dq * (scale * 0.6931472)).to(DQ.dtype.element_ty), mask=im)


@case
def attn_gradient_of_queries():
    b, hq, hk, t, d = 2, 16, 4, 1700, 64
    x = lambda h: rand(b, h, t, d, dtype="bfloat16")
    dq = zeros(b, hq, t, d, dtype="bfloat16")
    args = x(hq), x(hk), x(hk), x(hq), x(hq), uniform(b, hq, t) * 2 + 12, dq, t, d**-0.5 * 1.44269504
    return run(attention_dq, (cdiv(t, 64), hq, b), args, dq, HQ=hq, HK=hk, D=d, BLOCK_M=64, BLOCK_N=64, num_warps=4, num_stages=3)


@triton.jit
def ssd_chunk_cumsum(dt_ptr, bias_ptr, a_ptr, dt_out, da_out, T, H, CHUNK: tl.constexpr, BLOCK_H: tl.constexpr):
    # Softplus of steps, and sums of what they decay by inside a chunk.
    b, c = tl.program_id(0), tl.program_id(1)
    h = tl.program_id(2) * BLOCK_H + tl.arange(0, BLOCK_H)
    t = tl.arange(0, CHUNK)
    hm = h < H
    ok = hm[:, None] & (c * CHUNK + t < T)[None, :]
    dt = tl.load(dt_ptr + (b * T + c * CHUNK + t)[None, :] * H + h[:, None], mask=ok, other=0.0).to(tl.float32)
    dt += tl.load(bias_ptr + h, mask=hm, other=0.0)[:, None]
    dt = tl.where(dt <= 20.0, tl.log(1.0 + tl.exp(dt)), dt)
    dt = tl.where(ok, dt, 0.0)
    da = dt * -tl.exp(tl.load(a_ptr + h, mask=hm, other=0.0))[:, None]
    out = ((b * H + h)[:, None] * tl.num_programs(1) + c) * CHUNK + t[None, :]
    tl.store(dt_out + out, dt, mask=hm[:, None])
    tl.store(da_out + out, tl.cumsum(da, axis=1), mask=hm[:, None])


@triton.jit
def ssd_chunk_state(x_ptr, b_ptr, dt_ptr, da_ptr, state_ptr, T, H, G, CHUNK: tl.constexpr, P: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr):
    # The state that a chunk leaves: x^T (B decayed to the chunk's end).
    b, c, h = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    p, n, k = tl.arange(0, P), tl.arange(0, N), tl.arange(0, BLOCK_K)
    g = h // (H // G)
    base = ((b * H + h) * tl.num_programs(1) + c) * CHUNK
    last = tl.load(da_ptr + base + CHUNK - 1)
    acc = tl.zeros((P, N), tl.float32)
    for k0 in range(0, CHUNK, BLOCK_K):
        t = c * CHUNK + k0 + k
        scale = tl.exp(last - tl.load(da_ptr + base + k0 + k)) * tl.load(dt_ptr + base + k0 + k)
        x = tl.load(x_ptr + ((b * T + t) * H + h)[None, :] * P + p[:, None], mask=(t < T)[None, :], other=0.0)
        bt = tl.load(b_ptr + ((b * T + t) * G + g)[:, None] * N + n[None, :], mask=(t < T)[:, None], other=0.0)
        acc += tl.dot(x, (bt.to(tl.float32) * scale[:, None]).to(x.dtype))
    tl.store(state_ptr + ((b * tl.num_programs(1) + c) * H + h) * P * N + p[:, None] * N + n[None, :], acc)


@case
def ssd_chunk_sums_and_states():
    b, t, h, g, p, n, chunk = 2, 4096, 32, 2, 64, 128, 256
    chunks = t // chunk
    dt_out, da_out = zeros(b, h, chunks, chunk, dtype="float32"), zeros(b, h, chunks, chunk, dtype="float32")
    state = zeros(b, chunks, h, p, n, dtype="float32")

    def launch(dt, bias, a, x, bt):
        ssd_chunk_cumsum[(b, chunks, cdiv(h, 8))](dt, bias, a, dt_out, da_out, t, h, CHUNK=chunk, BLOCK_H=8, num_warps=4)
        ssd_chunk_state[(b, chunks, h)](x, bt, dt_out, da_out, state, t, h, g, CHUNK=chunk, P=p, N=n, BLOCK_K=64, num_warps=4, num_stages=2)
        return da_out, state

    x = lambda *shape: rand(*shape, dtype="bfloat16")
    return launch, (x(b, t, h), f32(h) - 4, uniform(h) * 2, x(b, t, h, p), x(b, t, g, n))


@triton.jit
def ssd_state_passing(state_ptr, da_ptr, init_ptr, out_ptr, final_ptr, CHUNKS, H, DIM, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    b, h = tl.program_id(1), tl.program_id(2)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < DIM
    s = tl.load(init_ptr + (b * H + h) * DIM + i, mask=m, other=0.0)
    for c in range(CHUNKS):
        at = ((b * CHUNKS + c) * H + h) * DIM + i
        tl.store(out_ptr + at, s.to(out_ptr.dtype.element_ty), mask=m)
        decay = tl.exp(tl.load(da_ptr + ((b * H + h) * CHUNKS + c) * CHUNK + CHUNK - 1))
        s = s * decay + tl.load(state_ptr + at, mask=m, other=0.0)
    tl.store(final_ptr + (b * H + h) * DIM + i, s, mask=m)


@case
def ssd_states_through_chunks():
    b, chunks, h, dim, chunk = 4, 32, 32, 64 * 128, 128
    out, final = zeros(b, chunks, h, dim, dtype="bfloat16"), zeros(b, h, dim, dtype="float32")
    da = torch.cumsum(-uniform(b, h, chunks, chunk) * 0.01, 3).contiguous()
    args = f32(b, chunks, h, dim), da, f32(b, h, dim), out, final, chunks, h, dim
    return run(ssd_state_passing, (dim // 512, b, h), args, (out, final), CHUNK=chunk, BLOCK=512, num_warps=4)


@triton.jit
def ssd_chunk_scan(c_ptr, b_ptr, x_ptr, dt_ptr, da_ptr, prev_ptr, d_ptr, z_ptr, out_ptr, T, H, G, CHUNK: tl.constexpr, P: tl.constexpr, N: tl.constexpr,
                   BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    # Outputs of a chunk: what the state before it gives, and C B^T with decays below the diagonal; then skip and gate.
    mb, bc, h = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    chunks = T // CHUNK
    b, c = bc // chunks, bc % chunks
    g = h // (H // G)
    m, k = mb * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_K)
    p, n = tl.arange(0, P), tl.arange(0, N)
    t = b * T + c * CHUNK + m
    base = ((b * H + h) * chunks + c) * CHUNK
    da_m = tl.load(da_ptr + base + m)
    cm = tl.load(c_ptr + (t * G + g)[:, None] * N + n[None, :])
    prev = tl.load(prev_ptr + ((b * chunks + c) * H + h) * P * N + p[None, :] * N + n[:, None])
    acc = tl.dot(cm, prev) * tl.exp(da_m)[:, None]
    for k0 in range(0, (mb + 1) * BLOCK_M, BLOCK_K):
        kk = k0 + k
        s = b * T + c * CHUNK + kk
        bk = tl.load(b_ptr + (s * G + g)[None, :] * N + n[:, None])
        x = tl.load(x_ptr + (s * H + h)[:, None] * P + p[None, :])
        cb = tl.dot(cm, bk)
        decay = tl.exp(tl.minimum(da_m[:, None] - tl.load(da_ptr + base + kk)[None, :], 0.0))
        cb = tl.where(m[:, None] >= kk[None, :], cb * decay * tl.load(dt_ptr + base + kk)[None, :], 0.0)
        acc += tl.dot(cb.to(x.dtype), x)
    at = (t * H + h)[:, None] * P + p[None, :]
    acc += tl.load(d_ptr + h) * tl.load(x_ptr + at).to(tl.float32)
    z = tl.load(z_ptr + at).to(tl.float32)
    tl.store(out_ptr + at, (acc * z * tl.sigmoid(z)).to(out_ptr.dtype.element_ty))


@case
def ssd_chunk_outputs_gated():
    b, t, h, g, p, n, chunk = 2, 2048, 24, 1, 64, 64, 128
    x = lambda *shape: rand(*shape, dtype="bfloat16")
    chunks = t // chunk
    out = zeros(b, t, h, p, dtype="bfloat16")
    da = torch.cumsum(-uniform(b, h, chunks, chunk) * 0.1, 3).contiguous()
    args = x(b, t, g, n) * 0.3, x(b, t, g, n) * 0.3, x(b, t, h, p), uniform(b, h, chunks, chunk), da, x(b, chunks, h, p, n), f32(h), x(b, t, h, p), out, t, h, g
    return run(ssd_chunk_scan, (chunk // 64, b * chunks, h), args, out, CHUNK=chunk, P=p, N=n, BLOCK_M=64, BLOCK_K=32, num_warps=4, num_stages=2)


@triton.jit
def gated_delta_step(q_ptr, k_ptr, v_ptr, g_ptr, beta_ptr, state_ptr, slot_ptr, out_ptr, new_ptr, scale, H: tl.constexpr, HV: tl.constexpr,
                     K: tl.constexpr, V: tl.constexpr, BLOCK_V: tl.constexpr):
    # Decoding: the state of a slot decays, is corrected by what it would have said, and answers.
    bv, b, hv = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    h = hv // (HV // H)
    k_off, v_off = tl.arange(0, K), bv * BLOCK_V + tl.arange(0, BLOCK_V)
    slot = tl.load(slot_ptr + b).to(tl.int64)
    q = tl.load(q_ptr + (b * H + h) * K + k_off).to(tl.float32)
    k = tl.load(k_ptr + (b * H + h) * K + k_off).to(tl.float32)
    q = q * tl.rsqrt(tl.sum(q * q) + 1e-6) * scale
    k = k * tl.rsqrt(tl.sum(k * k) + 1e-6)
    v = tl.load(v_ptr + (b * HV + hv) * V + v_off).to(tl.float32)
    at = (slot * HV + hv) * K * V + k_off[:, None] * V + v_off[None, :]
    s = tl.load(state_ptr + at).to(tl.float32) * tl.exp(tl.load(g_ptr + b * HV + hv))
    v = (v - tl.sum(s * k[:, None], 0)) * tl.sigmoid(tl.load(beta_ptr + b * HV + hv).to(tl.float32))
    s += k[:, None] * v[None, :]
    tl.store(out_ptr + (b * HV + hv) * V + v_off, tl.sum(s * q[:, None], 0).to(out_ptr.dtype.element_ty))
    tl.store(new_ptr + at, s)


@case
def gated_delta_decode_slots():
    b, h, hv, k, v, slots = 64, 8, 16, 128, 128, 80
    out, new = zeros(b, hv, v, dtype="bfloat16"), zeros(slots, hv, k, v, dtype="float32")
    x = lambda *shape: rand(*shape, dtype="bfloat16")
    args = x(b, h, k), x(b, h, k), x(b, hv, v), -uniform(b, hv), x(b, hv), f32(slots, hv, k, v), torch.randperm(slots, device="cuda")[:b].int(), out, new, k**-0.5
    return run(gated_delta_step, (v // 32, b, hv), args, (out, new), H=h, HV=hv, K=k, V=v, BLOCK_V=32, num_warps=4)


@triton.jit
def gated_linear_chunks(q_ptr, k_ptr, v_ptr, g_ptr, o_ptr, T, scale, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, C: tl.constexpr):
    # Gates of their own for each feature of a key: chunks in turn, the state in registers.
    h, b = tl.program_id(0), tl.program_id(1)
    c, k_off, v_off = tl.arange(0, C), tl.arange(0, K), tl.program_id(2) * V + tl.arange(0, V)
    stride_v = tl.num_programs(2) * V
    state = tl.zeros((K, V), tl.float32)
    for t0 in range(0, T, C):
        t = (b * T + t0 + c) * H + h
        g = tl.cumsum(tl.load(g_ptr + t[:, None] * K + k_off[None, :]), axis=0)
        last = tl.sum(tl.where((c == C - 1)[:, None], g, 0.0), 0)
        q = tl.load(q_ptr + t[:, None] * K + k_off[None, :]).to(tl.float32) * scale
        k = tl.load(k_ptr + t[:, None] * K + k_off[None, :]).to(tl.float32)
        v = tl.load(v_ptr + t[:, None] * stride_v + v_off[None, :])
        qg = (q * tl.exp(g)).to(tl.bfloat16)
        kd = (k * tl.exp(-g)).to(tl.bfloat16)
        a = tl.dot(qg, tl.trans(kd))
        a = tl.where(c[:, None] >= c[None, :], a, 0.0)
        o = tl.dot(a.to(tl.bfloat16), v) + tl.dot(qg, state.to(tl.bfloat16))
        tl.store(o_ptr + t[:, None] * stride_v + v_off[None, :], o.to(tl.bfloat16))
        ke = (k * tl.exp(last[None, :] - g)).to(tl.bfloat16)
        state = state * tl.exp(last)[:, None] + tl.dot(tl.trans(ke), v)


@case
def gated_linear_attention_features():
    b, t, h, k, v, c = 8, 1024, 4, 64, 128, 32
    out = zeros(b, t, h, v, dtype="bfloat16")
    x = lambda n: rand(b, t, h, n, dtype="bfloat16")
    args = x(k), x(k), x(v), -uniform(b, t, h, k) * 0.1, out, t, k**-0.5
    return run(gated_linear_chunks, (h, b, v // 64), args, out, H=h, K=k, V=64, C=c, num_warps=4, num_stages=1)


@triton.jit
def toeplitz_mixer(u_ptr, h_ptr, x_ptr, skip_ptr, y_ptr, T, C, BATCH: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_S: tl.constexpr):
    # A long filter for each channel as tiles of a Toeplitz matrix, which meet the batch; then a gate.
    c, tb = tl.program_id(1), tl.program_id(0)
    t, s, b = tb * BLOCK_T + tl.arange(0, BLOCK_T), tl.arange(0, BLOCK_S), tl.arange(0, BATCH)
    acc = tl.zeros((BLOCK_T, BATCH), tl.float32)
    for s0 in range(0, (tb + 1) * BLOCK_T, BLOCK_S):
        lag = t[:, None] - (s0 + s)[None, :]
        h = tl.load(h_ptr + c * T + lag, mask=lag >= 0, other=0.0)
        u = tl.load(u_ptr + (b[None, :] * C + c) * T + (s0 + s)[:, None])
        acc = tl.dot(h, u, acc)
    at = (b[None, :] * C + c) * T + t[:, None]
    acc += tl.load(skip_ptr + c) * tl.load(u_ptr + at).to(tl.float32)
    tl.store(y_ptr + at, (acc * tl.load(x_ptr + at).to(tl.float32)).to(tl.float16))


@case
def long_convolution_toeplitz():
    batch, c, t = 16, 128, 1024
    y = zeros(batch, c, t)
    h = (f32(c, t) * torch.exp(-torch.arange(t, device="cuda") * 0.005)).half()
    args = rand(batch, c, t) * 0.3, h, rand(batch, c, t), f32(c), y, t, c
    return run(toeplitz_mixer, (t // 128, c), args, y, BATCH=batch, BLOCK_T=128, BLOCK_S=64, num_warps=4, num_stages=3)


@triton.jit
def _decay_add(f1, x1, f2, x2):
    return f1 * f2, f2 * x1 + x2


@triton.jit
def gated_scan_columns(x_ptr, f_ptr, o_ptr, y_ptr, last_ptr, T, D, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    # h = f h + (1 - f) silu(x); time along the first axis of a tile, a carry between tiles, and a gate on what goes out.
    b = tl.program_id(1)
    d = tl.program_id(0) * BLOCK_D + tl.arange(0, BLOCK_D)
    i = tl.arange(0, BLOCK_T)
    carry = tl.zeros((BLOCK_D,), tl.float32)
    for t0 in range(0, T, BLOCK_T):
        m = (t0 + i < T)[:, None] & (d < D)[None, :]
        at = (b * T + t0 + i)[:, None] * D + d[None, :]
        x = tl.load(x_ptr + at, mask=m, other=0.0).to(tl.float32)
        f = tl.sigmoid(tl.load(f_ptr + at, mask=m, other=0.0).to(tl.float32))
        f = tl.where(m, f, 1.0)
        decay, h = tl.associative_scan((f, (1.0 - f) * x * tl.sigmoid(x)), 0, _decay_add)
        h += decay * carry[None, :]
        g = tl.sigmoid(tl.load(o_ptr + at, mask=m, other=0.0).to(tl.float32))
        tl.store(y_ptr + at, (h * g).to(y_ptr.dtype.element_ty), mask=m)
        carry = tl.sum(tl.where((i == BLOCK_T - 1)[:, None], h, 0.0), 0)
    tl.store(last_ptr + b * D + d, carry, mask=d < D)


@case
def gated_recurrence_scan_columns():
    b, t, d = 8, 2000, 1024
    y, last = zeros(b, t, d, dtype="bfloat16"), zeros(b, d, dtype="float32")
    x = lambda: rand(b, t, d, dtype="bfloat16")
    return run(gated_scan_columns, (d // 32, b), (x(), x(), x(), y, last, t, d), (y, last), BLOCK_T=64, BLOCK_D=32, num_warps=4)


@triton.jit
def top2_gating(logit_ptr, weight_ptr, id_ptr, count_ptr, prob_ptr, T, E: tl.constexpr, BLOCK_T: tl.constexpr):
    # Two experts of each token with normalized weights, their ranks in the block, and sums for the loss of balance.
    t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    e = tl.arange(0, E)
    m = (t < T)[:, None]
    x = tl.load(logit_ptr + t[:, None] * E + e[None, :], mask=m, other=0.0)
    p = tl.softmax(x, dim=1, keep_dims=True)
    p = tl.where(m, p, 0.0)
    w1, i1 = tl.max(p, 1, return_indices=True)
    first = e[None, :] == i1[:, None]
    w2, i2 = tl.max(tl.where(first, -1.0, p), 1, return_indices=True)
    second = e[None, :] == i2[:, None]
    hit = (first & m).to(tl.int32) + (second & m).to(tl.int32)
    before = tl.cumsum(hit, 0) - hit
    r1 = tl.sum(tl.where(first, before, 0), 1)
    r2 = tl.sum(tl.where(second, before, 0), 1)
    total = w1 + w2
    tl.store(weight_ptr + t * 2, w1 / total, mask=t < T)
    tl.store(weight_ptr + t * 2 + 1, w2 / total, mask=t < T)
    tl.store(id_ptr + t * 2, i1 | (r1 << 16), mask=t < T)
    tl.store(id_ptr + t * 2 + 1, i2 | (r2 << 16), mask=t < T)
    tl.store(count_ptr + tl.program_id(0) * E + e, tl.sum(hit, 0))
    tl.store(prob_ptr + tl.program_id(0) * E + e, tl.sum(p, 0))


@case
def moe_top2_with_ranks():
    t, e = 32000, 64
    blocks = cdiv(t, 64)
    weight, ids = zeros(t, 2, dtype="float32"), zeros(t, 2, dtype="int32")
    count, prob = zeros(blocks, e, dtype="int32"), zeros(blocks, e, dtype="float32")
    logits = torch.argsort(uniform(t, e), dim=1).float() / 8 + f32(1, e) * 0.1
    return run(top2_gating, (blocks,), (logits.contiguous(), weight, ids, count, prob, t), (weight, ids, count, prob), E=e, BLOCK_T=64, num_warps=4)


@triton.jit
def grouped_gemm_persistent(a_ptr, b_ptr, c_ptr, start_ptr, groups, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, NUM: tl.constexpr):
    # Tiles of all experts in a row; programs take every NUM-th.
    tile = tl.program_id(0)
    done = 0
    n_tiles = tl.cdiv(N, BN)
    for g in range(groups):
        lo, hi = tl.load(start_ptr + g), tl.load(start_ptr + g + 1)
        tiles = tl.cdiv(hi - lo, BM) * n_tiles
        while (tile >= done) & (tile < done + tiles):
            local = tile - done
            m = lo + local // n_tiles * BM + tl.arange(0, BM)
            n = local % n_tiles * BN + tl.arange(0, BN)
            k = tl.arange(0, BK)
            a = a_ptr + m[:, None] * K + k[None, :]
            b = b_ptr + g * K * N + k[:, None] * N + n[None, :]
            acc = tl.zeros((BM, BN), tl.float32)
            for k0 in range(0, K, BK):
                x = tl.load(a, mask=(m < hi)[:, None] & (k0 + k < K)[None, :], other=0.0)
                w = tl.load(b, mask=(k0 + k < K)[:, None] & (n < N)[None, :], other=0.0)
                acc = tl.dot(x, w, acc)
                a += BK
                b += BK * N
            tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=(m < hi)[:, None] & (n < N)[None, :])
            tile += NUM
        done += tiles


@case
def moe_grouped_gemm_tile_loop():
    groups, k, n = 16, 1024, 768
    start = zeros(groups + 1, dtype="int32")
    start[1:] = torch.cumsum(ints(0, 600, groups), 0)
    total = int(start[-1])
    c = zeros(total, n, dtype="bfloat16")
    args = rand(total, k, dtype="bfloat16"), rand(groups, k, n, dtype="bfloat16"), c, start, groups, n, k
    return run(grouped_gemm_persistent, (PROGRAMS,), args, c, BM=128, BN=128, BK=64, NUM=PROGRAMS, num_warps=8, num_stages=3)


@triton.jit
def permute_quantize_fp8(x_ptr, row_ptr, y_ptr, scale_ptr, D, GROUP: tl.constexpr, BLOCK_G: tl.constexpr):
    # Rows in the order of experts, groups of 128 in FP8, scales that are powers of two and lie column by column.
    out = tl.program_id(0)
    rows = tl.num_programs(0)
    src = tl.load(row_ptr + out).to(tl.int64)
    g = tl.program_id(1) * BLOCK_G + tl.arange(0, BLOCK_G)
    i = tl.arange(0, GROUP)
    gm = g < D // GROUP
    x = tl.load(x_ptr + src * D + g[:, None] * GROUP + i[None, :], mask=gm[:, None], other=0.0).to(tl.float32)
    top = tl.maximum(tl.max(tl.abs(x), 1), 1e-4) / 448.0
    scale = tl.exp2(tl.ceil(tl.log2(top) - 1e-4))
    y = tl.clamp(x / scale[:, None], -448.0, 448.0)
    tl.store(y_ptr + out * D + g[:, None] * GROUP + i[None, :], y.to(y_ptr.dtype.element_ty), mask=gm[:, None])
    tl.store(scale_ptr + g * rows + out, scale, mask=gm)


@case
def moe_permute_to_fp8_groups():
    tokens, top, d = 4096, 6, 2048
    y, scale = zeros(tokens * top, d).to(torch.float8_e4m3fn), zeros(d // 128, tokens * top, dtype="float32")
    args = rand(tokens, d, dtype="bfloat16"), (torch.randperm(tokens * top, device="cuda") // top).int(), y, scale, d
    return viewed(run(permute_quantize_fp8, (tokens * top, 1), args, (y, scale), GROUP=128, BLOCK_G=16, num_warps=4), lambda outs: (far8(outs[0]), outs[1]))


@triton.jit
def unpermute_weighted(y_ptr, where_ptr, weight_ptr, shared_ptr, out_ptr, D, TOP: tl.constexpr, BLOCK_D: tl.constexpr):
    t = tl.program_id(0)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    m = d < D
    acc = tl.load(shared_ptr + t * D + d, mask=m, other=0.0).to(tl.float32)
    for k in tl.static_range(TOP):
        row = tl.load(where_ptr + t * TOP + k)
        w = tl.load(weight_ptr + t * TOP + k)
        if row >= 0:
            acc += w * tl.load(y_ptr + row.to(tl.int64) * D + d, mask=m, other=0.0).to(tl.float32)
    tl.store(out_ptr + t * D + d, acc.to(out_ptr.dtype.element_ty), mask=m)


@case
def moe_unpermute_with_dropped():
    tokens, top, d = 8192, 6, 2048
    where = torch.randperm(tokens * top, device="cuda").int()
    where = torch.where(uniform(tokens * top) < 0.1, -1, where)
    out = zeros(tokens, d, dtype="bfloat16")
    args = rand(tokens * top, d, dtype="bfloat16"), where.int(), uniform(tokens, top), rand(tokens, d, dtype="bfloat16"), out, d
    return run(unpermute_weighted, (tokens, d // 1024), args, out, TOP=top, BLOCK_D=1024, num_warps=4)


@triton.jit
def gptq_act_order(a_ptr, qw_ptr, scale_ptr, zero_ptr, gidx_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP_M: tl.constexpr):
    # Eight nibbles of K in a word; the group of each row of K comes from a table.
    pid = tl.program_id(0)
    num_m, num_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    width = GROUP_M * num_n
    first = pid // width * GROUP_M
    size = tl.minimum(num_m - first, GROUP_M)
    pid_m, pid_n = first + pid % width % size, pid % width // size
    m, n, k = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        kk = k0 + k
        a = tl.load(a_ptr + m[:, None] * K + kk[None, :], mask=(m < M)[:, None], other=0.0)
        word = tl.load(qw_ptr + (kk // 8)[:, None] * N + n[None, :])
        g = tl.load(gidx_ptr + kk)
        scale = tl.load(scale_ptr + g[:, None] * N + n[None, :])
        zero = tl.load(zero_ptr + g[:, None] * (N // 8) + (n // 8)[None, :])
        zero = ((zero >> ((n % 8) * 4)[None, :]) & 15) + 1
        b = ((word >> ((kk % 8) * 4)[:, None]) & 15) - zero
        acc = tl.dot(a, b.to(tl.float16) * scale, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16), mask=(m < M)[:, None])


@case
def gemm_w4_group_table():
    m, n, k, groups = 100, 4096, 4096, 32
    c = zeros(m, n)
    words = lambda *shape: ints(-(2**31), 2**31, *shape)
    args = rand(m, k), words(k // 8, n), (uniform(groups, n) * 0.01).half(), words(groups, n // 8), ints(0, groups, k), c, m, n, k
    return run(gptq_act_order, (cdiv(m, 32) * (n // 128),), args, c, BM=32, BN=128, BK=32, GROUP_M=8, num_warps=4, num_stages=3)


@triton.jit
def nf4_matmul(a_ptr, code_ptr, absmax_ptr, level_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, QBLOCK: tl.constexpr):
    # Weights as codes of a table of sixteen levels, two in a byte along K, scaled by blocks of 64.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    half = tl.arange(0, BK // 2)
    k = tl.arange(0, BK)
    levels = tl.load(level_ptr + tl.arange(0, 16))
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        byte = tl.load(code_ptr + n[:, None] * (K // 2) + (k0 // 2 + half)[None, :]).to(tl.int32)
        both = tl.reshape(tl.join(byte >> 4, byte & 15), (BN, BK))
        w = tl.reshape(tl.gather(levels, tl.reshape(both, (BN * BK,)), 0), (BN, BK))
        s = tl.load(absmax_ptr + n[:, None] * (K // QBLOCK) + ((k0 + k) // QBLOCK)[None, :])
        a = tl.load(a_ptr + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None], other=0.0)
        acc = tl.dot(a, tl.trans((w * s).to(a.dtype)), acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def gemm_nf4_table_of_levels():
    m, n, k = 250, 2048, 2048
    c = zeros(m, n, dtype="bfloat16")
    levels = torch.linspace(-1, 1, 16, device="cuda") ** 3
    args = rand(m, k, dtype="bfloat16"), ints(0, 256, n, k // 2, dtype="uint8"), uniform(n, k // 64), levels, c, m, n, k
    return run(nf4_matmul, (cdiv(m, 64), n // 64), args, c, BM=64, BN=64, BK=64, QBLOCK=64, num_warps=4, num_stages=2)


@triton.jit
def int8_gelu_requantize(a_ptr, b_ptr, sa_ptr, sb_ptr, bias_ptr, c_ptr, M, N, K, inv_out, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                         EVEN_K: tl.constexpr):
    m, n, k = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    rm = tl.max_contiguous(tl.multiple_of(m % M, BM), BM)
    rn = tl.max_contiguous(tl.multiple_of(n % N, BN), BN)
    a, b = a_ptr + rm[:, None] * K + k[None, :], b_ptr + rn[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.int32)
    for left in range(K, 0, -BK):
        if EVEN_K:
            x, w = tl.load(a), tl.load(b)
        else:
            x, w = tl.load(a, mask=(k < left)[None, :], other=0), tl.load(b, mask=(k < left)[:, None], other=0)
        acc = tl.dot(x, w, acc, out_dtype=tl.int32)
        a += BK
        b += BK
    y = acc.to(tl.float32) * tl.load(sa_ptr + rm)[:, None] * tl.load(sb_ptr + rn)[None, :] + tl.load(bias_ptr + rn)[None, :]
    y = 0.5 * y * (1.0 + tl.math.erf(y * 0.70710678))
    q = tl.clamp(tl.floor(y * inv_out + 0.5), -128.0, 127.0)
    tl.store(c_ptr + m[:, None] * N + n[None, :], q.to(tl.int8), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def gemm_int8_gelu_to_int8():
    m, n, k = 2000, 3072, 1024
    c = zeros(m, n, dtype="int8")
    args = ints(-127, 128, m, k, dtype="int8"), ints(-127, 128, n, k, dtype="int8"), uniform(m) * 1e-3, uniform(n) * 1e-2, f32(n), c, m, n, k, 8.0
    launched = run(int8_gelu_requantize, (n // 128, cdiv(m, 128)), args, c, BM=128, BN=128, BK=64, EVEN_K=True, num_warps=8, num_stages=4)
    return viewed(launched, far)


@triton.jit
def fp8_weight_split_k(a_ptr, b_ptr, part_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    # Few rows: K is divided among programs, FP8 weights become bfloat16 before the dot.
    n, z = tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1)
    m, k = tl.arange(0, BM), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(z * BK, K, BK * SPLIT):
        a = tl.load(a_ptr + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None], other=0.0)
        b = tl.load(b_ptr + n[None, :] * K + (k0 + k)[:, None], eviction_policy="evict_first")
        acc = tl.dot(a, b.to(tl.bfloat16), acc)
    tl.store(part_ptr + (z * M + m[:, None]) * N + n[None, :], acc, mask=(m < M)[:, None])


@triton.jit
def add_parts_scaled(part_ptr, scale_ptr, res_ptr, c_ptr, MN, N, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < MN
    acc = tl.zeros((BLOCK,), tl.float32)
    for s in tl.static_range(SPLIT):
        acc += tl.load(part_ptr + s * MN + i, mask=m, other=0.0)
    acc = acc * tl.load(scale_ptr + i % N, mask=m, other=0.0) + tl.load(res_ptr + i, mask=m, other=0.0).to(tl.float32)
    tl.store(c_ptr + i, acc.to(c_ptr.dtype.element_ty), mask=m)


@case
def gemm_fp8_weights_split_k_reduced():
    m, n, k, split = 13, 4096, 7168, 4
    part, c = zeros(split, m, n, dtype="float32"), zeros(m, n, dtype="bfloat16")

    def launch(a, b, scale, res):
        fp8_weight_split_k[(n // 64, split)](a, b, part, m, n, k, BM=16, BN=64, BK=128, SPLIT=split, num_warps=4, num_stages=4)
        add_parts_scaled[(cdiv(m * n, 512),)](part, scale, res, c, m * n, n, SPLIT=split, BLOCK=512, num_warps=4)
        return c

    return launch, (rand(m, k, dtype="bfloat16"), f8(n, k), uniform(n), rand(m, n, dtype="bfloat16"))


@triton.jit
def dual_descriptor_swiglu(x_desc, g_desc, u_desc, o_desc, K, limit, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Gate and up share the tile of activations; both are clamped before they meet.
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    g = tl.zeros((BM, BN), tl.float32)
    u = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = x_desc.load([pid_m * BM, k])
        g = tl.dot(x, g_desc.load([pid_n * BN, k]).T, g)
        u = tl.dot(x, u_desc.load([pid_n * BN, k]).T, u)
    g = tl.minimum(g, limit)
    u = tl.clamp(u, -limit, limit)
    o_desc.store([pid_m * BM, pid_n * BN], ((u + 1.0) * g * tl.sigmoid(1.702 * g)).to(tl.bfloat16))


@case
def gemm_dual_swiglu_descriptors():
    m, n, k, bm, bn, bk = 2048, 1536, 1024, 128, 64, 64
    x, g, u = rand(m, k, dtype="bfloat16"), rand(n, k, dtype="bfloat16") * 0.1, rand(n, k, dtype="bfloat16") * 0.1
    out = zeros(m, n, dtype="bfloat16")
    describe = lambda tensor, *block: TensorDescriptor(tensor, tensor.shape, tensor.stride(), list(block))
    args = describe(x, bm, bk), describe(g, bn, bk), describe(u, bn, bk), describe(out, bm, bn), k, 7.0
    return run(dual_descriptor_swiglu, (m // bm, n // bn), args, out, BM=bm, BN=bn, BK=bk, num_warps=8, num_stages=3)


@triton.jit
def bmm_bias_dropout_residual(a_ptr, b_ptr, bias_ptr, res_ptr, c_ptr, M, N, K, stride_ab, stride_am, stride_ak, stride_bb, stride_bk, stride_bn,
                              stride_cb, stride_cm, stride_cn, p, seed, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A batch of products; dropout by the element's number.
    z = tl.program_id(2)
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    a = a_ptr + z * stride_ab + m[:, None] * stride_am + k[None, :] * stride_ak
    b = b_ptr + z * stride_bb + k[:, None] * stride_bk + n[None, :] * stride_bn
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, tl.cdiv(K, BK)):
        km = k < K - k0 * BK
        acc += tl.dot(tl.load(a, mask=(m < M)[:, None] & km[None, :], other=0.0), tl.load(b, mask=km[:, None] & (n < N)[None, :], other=0.0))
        a += BK * stride_ak
        b += BK * stride_bk
    acc += tl.load(bias_ptr + n, mask=n < N, other=0.0)[None, :]
    at = z * stride_cb + m[:, None] * stride_cm + n[None, :] * stride_cn
    keep = tl.rand(seed, at) > p
    mask = (m < M)[:, None] & (n < N)[None, :]
    acc = tl.where(keep, acc / (1.0 - p), 0.0) + tl.load(res_ptr + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(c_ptr + at, acc.to(c_ptr.dtype.element_ty), mask=mask)


@case
def bmm_transposed_dropout_residual():
    batch, m, n, k = 12, 500, 700, 300
    a, b = rand(batch, k, m).transpose(1, 2), rand(batch, k, n)
    c = zeros(batch, m, n)
    args = a, b, f32(n), rand(batch, m, n), c, m, n, k, *a.stride(), *b.stride(), *c.stride(), 0.1, 77
    return run(bmm_bias_dropout_residual, (cdiv(m, 64), cdiv(n, 128), batch), args, c, BM=64, BN=128, BK=32, num_warps=4, num_stages=4)


@triton.jit
def fp8_rowwise_persistent(a_ptr, b_ptr, sa_ptr, sb_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
                           NUM: tl.constexpr):
    # Tiles in turn in one flattened loop; scales of rows and of columns at the end of each.
    num_m, num_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    k = tl.arange(0, BK)
    for tile in tl.range(tl.program_id(0), num_m * num_n, NUM, flatten=True):
        pid_m, pid_n = tl.swizzle2d(tile // num_n, tile % num_n, num_m, num_n, GROUP)
        m, n = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
        rm, rn = tl.where(m < M, m, 0), tl.where(n < N, n, 0)
        acc = tl.zeros((BM, BN), tl.float32)
        for k0 in range(0, tl.cdiv(K, BK)):
            a = tl.load(a_ptr + rm[:, None] * K + (k0 * BK + k)[None, :])
            b = tl.load(b_ptr + rn[None, :] * K + (k0 * BK + k)[:, None])
            acc = tl.dot(a, b, acc)
        acc = acc * tl.load(sa_ptr + rm)[:, None] * tl.load(sb_ptr + rn)[None, :]
        tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.bfloat16), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def gemm_fp8_rowwise_flattened():
    m, n, k = 3000, 2048, 2048
    c = zeros(m, n, dtype="bfloat16")
    args = f8(m, k), f8(n, k), uniform(m), uniform(n), c, m, n, k
    options = dict(BM=128, BN=128, BK=128, GROUP=8, NUM=PROGRAMS, num_warps=8, num_stages=3)
    return run(fp8_rowwise_persistent, (PROGRAMS,), args, c, **options)


@triton.jit
def int8_gemv_few_rows(x_ptr, w_ptr, scale_ptr, y_ptr, N, K, B: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    # Weights of a byte are read once for B rows of activations.
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    b = tl.arange(0, B)
    nm = n < N
    acc = tl.zeros((B, BLOCK_N), tl.float32)
    for k0 in range(0, K, BLOCK_K):
        k = k0 + tl.arange(0, BLOCK_K)
        w = tl.load(w_ptr + n[:, None] * K + k[None, :], mask=nm[:, None] & (k < K)[None, :], other=0).to(tl.float32)
        x = tl.load(x_ptr + b[:, None] * K + k[None, :], mask=(k < K)[None, :], other=0.0).to(tl.float32)
        acc += tl.sum(x[:, None, :] * w[None, :, :], axis=2)
    acc = acc * tl.load(scale_ptr + n, mask=nm, other=0.0)[None, :]
    tl.store(y_ptr + b[:, None] * N + n[None, :], acc.to(tl.float16), mask=nm[None, :])


@case
def gemv_int8_for_four_rows():
    b, n, k = 4, 5000, 4096
    y = zeros(b, n)
    return run(int8_gemv_few_rows, (cdiv(n, 8),), (rand(b, k), ints(-127, 128, n, k, dtype="int8"), uniform(n) * 0.01, y, n, k), y, B=b, BLOCK_N=8, BLOCK_K=256, num_warps=4)


@triton.jit
def tall_products(a_ptr, b_ptr, part_ptr, M, KA: tl.constexpr, KB: tl.constexpr, ROWS, BLOCK_M: tl.constexpr):
    # A^T B of two tall and narrow matrices: each program sums over its rows.
    pid = tl.program_id(0)
    i, j, r = tl.arange(0, KA), tl.arange(0, KB), tl.arange(0, BLOCK_M)
    acc = tl.zeros((KA, KB), tl.float32)
    for m0 in range(pid * ROWS, tl.minimum(pid * ROWS + ROWS, M), BLOCK_M):
        m = m0 + r
        at = tl.load(a_ptr + m[None, :] * KA + i[:, None], mask=(m < M)[None, :], other=0.0)
        b = tl.load(b_ptr + m[:, None] * KB + j[None, :], mask=(m < M)[:, None], other=0.0)
        acc = tl.dot(at, b, acc)
    tl.store(part_ptr + pid * KA * KB + i[:, None] * KB + j[None, :], acc)


@case
def gemm_tall_transposed_partial():
    m, ka, kb, programs = 300000, 64, 32, 264
    part = zeros(programs, ka, kb, dtype="float32")
    args = rand(m, ka), rand(m, kb), part, m, ka, kb, cdiv(m, programs * 64) * 64
    return run(tall_products, (programs,), args, part, BLOCK_M=64, num_warps=4, num_stages=4)
