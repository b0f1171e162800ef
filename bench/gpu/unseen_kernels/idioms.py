"""Idioms of libraries: chunks of ragged sequences by tables, block pointers of both orders, optional pointers, records of quantized bytes, hints."""

import math

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, viewed, zeros


def ragged(lengths, step):
    """Where sequences of `lengths` begin, and a table of (sequence, chunk) of all chunks of `step`."""
    starts = torch.tensor([sum(lengths[:i]) for i in range(len(lengths) + 1)], device="cuda", dtype=torch.int64)
    table = torch.tensor([(i, c) for i, n in enumerate(lengths) for c in range(cdiv(n, step))], device="cuda", dtype=torch.int32)
    return starts, table


LENGTHS = [37, 1500, 64, 700, 333, 1, 2048, 129, 911, 65, 400, 1100]


@triton.jit
def sums_in_chunks(s, o, cu_seqlens, chunk_indices, H: tl.constexpr, S: tl.constexpr, BT: tl.constexpr, BS: tl.constexpr, REVERSE: tl.constexpr):
    # Running sums as a dot with a triangle of ones; the chunk is looked up, and the sequence's end checked by the block pointer.
    i_s, i_t, i_h = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_n, i_t = tl.load(chunk_indices + i_t * 2).to(tl.int32), tl.load(chunk_indices + i_t * 2 + 1).to(tl.int32)
    bos, eos = tl.load(cu_seqlens + i_n), tl.load(cu_seqlens + i_n + 1)
    T = (eos - bos).to(tl.int32)
    o_i = tl.arange(0, BT)
    if REVERSE:
        m_s = tl.where(o_i[:, None] <= o_i[None, :], 1.0, 0.0)
    else:
        m_s = tl.where(o_i[:, None] >= o_i[None, :], 1.0, 0.0)
    p_s = tl.make_block_ptr(s + (bos * H + i_h) * S, (T, S), (H * S, 1), (i_t * BT, i_s * BS), (BT, BS), (1, 0))
    p_o = tl.make_block_ptr(o + (bos * H + i_h) * S, (T, S), (H * S, 1), (i_t * BT, i_s * BS), (BT, BS), (1, 0))
    b_s = tl.load(p_s, boundary_check=(0, 1)).to(tl.float32)
    b_o = tl.dot(m_s, b_s, allow_tf32=False)
    tl.store(p_o, b_o.to(p_o.dtype.element_ty), boundary_check=(0, 1))


@case
def sums_in_chunks_of_ragged_sequences_from_behind():
    h, s, step = 8, 100, 64
    starts, table = ragged(LENGTHS, step)
    total = sum(LENGTHS)
    x, y = rand(total, h, s, dtype="bfloat16"), zeros(total, h, s, dtype="float32")
    launched = run(sums_in_chunks, (cdiv(s, 32), len(table), h), (x, y, starts, table), y, H=h, S=s, BT=step, BS=32, REVERSE=True, num_warps=2)

    def reference():
        parts = [c.flip(0).double().cumsum(0).flip(0) for part in x.split(LENGTHS) for c in part.split(step)]
        return torch.cat(parts)

    return against(launched, reference)


@triton.jit
def states_of_chunks(k, v, g, h, h0, ht, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr, USE_H0: tl.constexpr, STORE_HT: tl.constexpr):
    # A decay for each token and head: the state before each chunk is kept, keys come transposed by order (0, 1).
    i_k, i_v, i_nh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_n, i_h = i_nh // H, i_nh % H
    bos = (i_n * T).to(tl.int64)
    NT = tl.cdiv(T, BT)
    b_h = tl.zeros([BK, BV], dtype=tl.float32)
    if USE_H0:
        p_h0 = tl.make_block_ptr(h0 + i_nh * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0))
        b_h = tl.load(p_h0, boundary_check=(0, 1)).to(tl.float32)
    for i_t in range(NT):
        p_h = tl.make_block_ptr(h + ((i_n * NT + i_t) * H + i_h).to(tl.int64) * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0))
        tl.store(p_h, b_h.to(p_h.dtype.element_ty), boundary_check=(0, 1))
        p_k = tl.make_block_ptr(k + (bos * H + i_h) * K, (K, T), (1, H * K), (i_k * BK, i_t * BT), (BK, BT), (0, 1))
        p_v = tl.make_block_ptr(v + (bos * H + i_h) * V, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_v = tl.load(p_v, boundary_check=(0, 1))
        last_idx = min((i_t + 1) * BT, T) - 1
        o_t = i_t * BT + tl.arange(0, BT)
        b_g = tl.load(g + bos * H + o_t * H + i_h, mask=o_t < T, other=0.0)
        b_g_last = tl.load(g + (bos + last_idx) * H + i_h)
        b_h *= tl.exp(b_g_last)
        b_v = (b_v * tl.exp(b_g_last - b_g)[:, None]).to(b_v.dtype)
        b_h += tl.dot(b_k, b_v)
    if STORE_HT:
        p_ht = tl.make_block_ptr(ht + i_nh * K * V, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0))
        tl.store(p_ht, b_h.to(p_ht.dtype.element_ty), boundary_check=(0, 1))


@case
def states_before_chunks_with_a_decay_a_head_and_state_to_begin_with():
    n, t, h, k, v, step = 4, 1000, 16, 100, 128, 64
    keys, values = rand(n, t, h, k, dtype="bfloat16") / 10, rand(n, t, h, v, dtype="bfloat16")
    g = torch.cat([-uniform(n, c, h).cumsum(1) / 20 for c in [step] * (t // step) + [t % step]], 1)
    states, first, last = zeros(n, cdiv(t, step), h, k, v, dtype="bfloat16"), f32(n, h, k, v), zeros(n, h, k, v, dtype="float32")
    args = keys, values, g, states, first, last, t
    options = dict(H=h, K=k, V=v, BT=step, BK=64, BV=64, USE_H0=True, STORE_HT=True, num_warps=4, num_stages=2)
    return run(states_of_chunks, (cdiv(k, 64), cdiv(v, 64), n * h), args, (states, last), **options)


@triton.jit
def outputs_of_chunks(q, k, v, h, g, o, scale, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr):
    # Queries meet the state and the keys of their chunk in one loop over channels.
    i_v, i_t, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    NT = tl.cdiv(T, BT)
    q += (i_b * T * H + i_h) * K
    k += (i_b * T * H + i_h) * K
    v += (i_b * T * H + i_h) * V
    o += (i_b * T * H + i_h) * V
    h += ((i_b * NT + i_t) * H + i_h).to(tl.int64) * K * V
    b_o = tl.zeros([BT, BV], dtype=tl.float32)
    b_A = tl.zeros([BT, BT], dtype=tl.float32)
    for i_k in range(tl.cdiv(K, BK)):
        p_q = tl.make_block_ptr(q, (T, K), (H * K, 1), (i_t * BT, i_k * BK), (BT, BK), (1, 0))
        p_k = tl.make_block_ptr(k, (K, T), (1, H * K), (i_k * BK, i_t * BT), (BK, BT), (0, 1))
        p_h = tl.make_block_ptr(h, (K, V), (V, 1), (i_k * BK, i_v * BV), (BK, BV), (1, 0))
        b_q = tl.load(p_q, boundary_check=(0, 1))
        b_k = tl.load(p_k, boundary_check=(0, 1))
        b_h = tl.load(p_h, boundary_check=(0, 1))
        b_o += tl.dot(b_q, b_h)
        b_A += tl.dot(b_q, b_k)
    o_t = i_t * BT + tl.arange(0, BT)
    m_t = o_t < T
    b_g = tl.load(g + (i_b * T + o_t) * H + i_h, mask=m_t, other=0.0)
    b_o = b_o * tl.exp(b_g)[:, None]
    m_A = (o_t[:, None] >= o_t[None, :]) & (m_t[:, None] & m_t)
    b_A = tl.where(m_A, b_A * tl.exp(b_g[:, None] - b_g[None, :]), 0)
    p_v = tl.make_block_ptr(v, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
    p_o = tl.make_block_ptr(o, (T, V), (H * V, 1), (i_t * BT, i_v * BV), (BT, BV), (1, 0))
    b_v = tl.load(p_v, boundary_check=(0, 1))
    b_o = b_o * scale + tl.dot(b_A.to(b_v.dtype), b_v) * scale
    tl.store(p_o, b_o.to(p_o.dtype.element_ty), boundary_check=(0, 1))


@case
def outputs_of_chunks_of_128_from_states_and_own_keys():
    b, t, h, k, v, step = 2, 1900, 12, 96, 160, 128
    q, keys, values = rand(b, t, h, k) / 4, rand(b, t, h, k) / 4, rand(b, t, h, v)
    g, states, o = -uniform(b, t, h), rand(b, cdiv(t, step), h, k, v) / 4, zeros(b, t, h, v)
    grid = cdiv(v, 64), cdiv(t, step), b * h
    args = q, keys, values, states, g, o, k**-0.5, t
    return run(outputs_of_chunks, grid, args, o, H=h, K=k, V=v, BT=step, BK=32, BV=64, num_warps=8, num_stages=3)


@triton.jit
def recurrent_with_bonus(r, k, v, w, u, o, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr, REVERSE: tl.constexpr):
    # Pointers that step over tokens, forwards or backwards; the newest token counts by weights of its own.
    i_v, i_nh = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    i_n, i_h = i_nh // H, i_nh % H
    o_k, o_v = tl.arange(0, BK), i_v * BV + tl.arange(0, BV)
    first = (i_n * T + ((T - 1) if REVERSE else 0)) * H + i_h
    p_r, p_k, p_w = r + first * K + o_k, k + first * K + o_k, w + first * K + o_k
    p_v, p_o = v + first * V + o_v, o + first * V + o_v
    mask_k, mask_v = o_k < K, o_v < V
    b_u = tl.load(u + i_h * K + o_k, mask=mask_k, other=0).to(tl.float32)
    b_h = tl.zeros([BV, BK], dtype=tl.float32)
    for _ in range(0, T):
        b_r = tl.load(p_r, mask=mask_k, other=0).to(tl.float32)
        b_k = tl.load(p_k, mask=mask_k, other=0).to(tl.float32)
        b_v = tl.load(p_v, mask=mask_v, other=0).to(tl.float32)
        b_w = tl.load(p_w, mask=mask_k, other=0).to(tl.float32)
        b_kv = b_k[None, :] * b_v[:, None]
        b_o = tl.sum((b_h + b_kv * b_u[None, :]) * b_r[None, :], 1)
        b_h = b_h * tl.exp(b_w)[None, :] + b_kv
        tl.store(p_o, b_o.to(p_o.dtype.element_ty), mask=mask_v)
        p_r += (-1 if REVERSE else 1) * H * K
        p_k += (-1 if REVERSE else 1) * H * K
        p_w += (-1 if REVERSE else 1) * H * K
        p_v += (-1 if REVERSE else 1) * H * V
        p_o += (-1 if REVERSE else 1) * H * V


@case
def recurrent_states_by_pointers_that_step_backwards():
    n, t, h, k, v = 8, 200, 16, 64, 60
    r, keys, values, w = rand(n, t, h, k), rand(n, t, h, k) / 8, rand(n, t, h, v), -uniform(n, t, h, k) - 0.1
    u, o = f32(h, k), zeros(n, t, h, v)
    return run(recurrent_with_bonus, (cdiv(v, 16), n * h), (r, keys, values, w, u, o, t), o, H=h, K=k, V=v, BK=64, BV=16, REVERSE=True, num_warps=1, num_stages=4)


@triton.jit
def mixes_with_the_token_before(x, mix, delta, out, T, D, total, BD: tl.constexpr, MIXES: tl.constexpr):
    i_t, i_b = tl.program_id(1), tl.program_id(2)
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    d = tl.max_contiguous(tl.multiple_of(d, BD), BD)
    m = d < D
    at = (i_b * T + i_t).to(tl.int64) * D + d
    now = tl.load(x + at, mask=m, other=0.0).to(tl.float32)
    before = tl.load(x + at - D, mask=m & (i_t > 0), other=0.0).to(tl.float32)
    step = before - now
    for i in tl.static_range(MIXES):
        weight = tl.load(mix + i * D + d, mask=m, other=0.0).to(tl.float32)
        more = tl.load(delta + i * total + at, mask=m, other=0.0).to(tl.float32)
        tl.store(out + i * total + at, (now + step * (weight + more)).to(out.dtype.element_ty), mask=m, cache_modifier=".cs")


@case
def five_mixes_of_tokens_with_the_ones_before():
    b, t, d = 3, 700, 1000
    x, mix, delta = rand(b, t, d, dtype="bfloat16"), rand(5, d, dtype="bfloat16"), rand(5, b, t, d, dtype="bfloat16")
    out = zeros(5, b, t, d, dtype="bfloat16")
    launched = run(mixes_with_the_token_before, (cdiv(d, 512), t, b), (x, mix, delta, out, t, d, b * t * d), out, BD=512, MIXES=5, num_warps=2)

    def reference():
        step = F.pad(x.float(), (0, 0, 1, 0))[:, :-1] - x.float()
        return x.float() + step * (mix.float()[:, None, None] + delta.float())

    return against(launched, reference)


@triton.jit
def short_conv_gradients(x, y, dy, w, dx, dw, cu_seqlens, chunk_indices, D: tl.constexpr, W: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr):
    # Of taps along time behind a silu: the later gradients of a block that begins at its token, partial sums for the taps.
    i_d, i_c = tl.program_id(0), tl.program_id(1)
    i_n, i_t = tl.load(chunk_indices + i_c * 2), tl.load(chunk_indices + i_c * 2 + 1)
    bos, eos = tl.load(cu_seqlens + i_n), tl.load(cu_seqlens + i_n + 1)
    T = eos - bos
    o_d = i_d * BD + tl.arange(0, BD)
    m_d = o_d < D
    p_x = tl.make_block_ptr(x + bos * D, (T, D), (D, 1), (i_t * BT, i_d * BD), (BT, BD), (1, 0))
    b_x = tl.load(p_x, boundary_check=(0, 1)).to(tl.float32)
    b_dx = tl.zeros((BT, BD), dtype=tl.float32)
    for i_w in tl.static_range(0, W):
        p_dy = tl.make_block_ptr(dy + bos * D, (T, D), (D, 1), (i_t * BT + i_w, i_d * BD), (BT, BD), (1, 0))
        p_y = tl.make_block_ptr(y + bos * D, (T, D), (D, 1), (i_t * BT + i_w, i_d * BD), (BT, BD), (1, 0))
        b_dy = tl.load(p_dy, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        b_y = tl.load(p_y, boundary_check=(0, 1), padding_option="zero").to(tl.float32)
        b_s = tl.sigmoid(b_y)
        b_dy = b_dy * b_s * (1 + b_y * (1 - b_s))
        b_w = tl.load(w + o_d * W + (W - i_w - 1), mask=m_d, other=0).to(tl.float32)
        b_dx += b_dy * b_w[None, :]
        tl.store(dw + (i_c * D + o_d) * W + W - i_w - 1, tl.sum(b_dy * b_x, 0), mask=m_d)
    p_dx = tl.make_block_ptr(dx + bos * D, (T, D), (D, 1), (i_t * BT, i_d * BD), (BT, BD), (1, 0))
    tl.store(p_dx, b_dx.to(p_dx.dtype.element_ty), boundary_check=(0, 1))


@case
def gradients_of_short_taps_of_ragged_sequences():
    d, w, step = 1160, 4, 32
    starts, table = ragged(LENGTHS, step)
    total = sum(LENGTHS)
    x, y, dy, taps = rand(total, d), rand(total, d), rand(total, d), f32(d, w)
    dx, dw = zeros(total, d), zeros(len(table), d, w, dtype="float32")
    args = x, y, dy, taps, dx, dw, starts, table
    return run(short_conv_gradients, (cdiv(d, 128), len(table)), args, (dx, dw), D=d, W=w, BT=step, BD=128, num_warps=4)


@triton.jit
def unit_length_backward(x, dy, dx, eps, N, D: tl.constexpr, BT: tl.constexpr, BD: tl.constexpr):
    i_t = tl.program_id(0)
    p_x = tl.make_block_ptr(x, (N, D), (D, 1), (i_t * BT, 0), (BT, BD), (1, 0))
    p_dy = tl.make_block_ptr(dy, (N, D), (D, 1), (i_t * BT, 0), (BT, BD), (1, 0))
    p_dx = tl.make_block_ptr(dx, (N, D), (D, 1), (i_t * BT, 0), (BT, BD), (1, 0))
    b_x = tl.load(p_x, boundary_check=(0, 1)).to(tl.float32)
    b_dy = tl.load(p_dy, boundary_check=(0, 1)).to(tl.float32)
    b_rstd = 1 / tl.sqrt(tl.sum(b_x * b_x, 1) + eps)
    b_y = b_x * b_rstd[:, None]
    b_dx = b_dy * b_rstd[:, None] - tl.sum(b_dy * b_y, 1)[:, None] * b_y * b_rstd[:, None]
    tl.store(p_dx, b_dx.to(p_dx.dtype.element_ty), boundary_check=(0, 1))


@case
def gradients_of_vectors_of_96_made_of_unit_length():
    n, d = 100_003, 96
    x, dy, dx = rand(n, d, dtype="bfloat16"), rand(n, d, dtype="bfloat16"), zeros(n, d, dtype="bfloat16")
    launched = run(unit_length_backward, (cdiv(n, 16),), (x, dy, dx, 1e-6, n), dx, D=d, BT=16, BD=128, num_warps=8)

    def reference():
        r = (x.double().square().sum(1, keepdim=True) + 1e-6).rsqrt()
        y = x * r
        return (dy - (dy * y).sum(1, keepdim=True) * y) * r

    return against(launched, reference)


@triton.jit
def inverses_from_blocks_of_16(A, Ad, Ai, T, H: tl.constexpr, PRECISION: tl.constexpr):
    # The blocks on the diagonal are inverted already: what is below them, by dots of 16x16, as a chain of block pointers.
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    A += (i_b * T * H + i_h) * 64
    Ad += (i_b * T * H + i_h) * 16
    Ai += (i_b * T * H + i_h) * 64
    a21 = tl.load(tl.make_block_ptr(A, (T, 64), (H * 64, 1), (i_t * 64 + 16, 0), (16, 16), (1, 0)), boundary_check=(0, 1))
    a32 = tl.load(tl.make_block_ptr(A, (T, 64), (H * 64, 1), (i_t * 64 + 32, 16), (16, 16), (1, 0)), boundary_check=(0, 1))
    a31 = tl.load(tl.make_block_ptr(A, (T, 64), (H * 64, 1), (i_t * 64 + 32, 0), (16, 16), (1, 0)), boundary_check=(0, 1))
    a43 = tl.load(tl.make_block_ptr(A, (T, 64), (H * 64, 1), (i_t * 64 + 48, 32), (16, 16), (1, 0)), boundary_check=(0, 1))
    a42 = tl.load(tl.make_block_ptr(A, (T, 64), (H * 64, 1), (i_t * 64 + 48, 16), (16, 16), (1, 0)), boundary_check=(0, 1))
    a41 = tl.load(tl.make_block_ptr(A, (T, 64), (H * 64, 1), (i_t * 64 + 48, 0), (16, 16), (1, 0)), boundary_check=(0, 1))
    d1 = tl.load(tl.make_block_ptr(Ad, (T, 16), (H * 16, 1), (i_t * 64, 0), (16, 16), (1, 0)), boundary_check=(0, 1))
    d2 = tl.load(tl.make_block_ptr(Ad, (T, 16), (H * 16, 1), (i_t * 64 + 16, 0), (16, 16), (1, 0)), boundary_check=(0, 1))
    d3 = tl.load(tl.make_block_ptr(Ad, (T, 16), (H * 16, 1), (i_t * 64 + 32, 0), (16, 16), (1, 0)), boundary_check=(0, 1))
    d4 = tl.load(tl.make_block_ptr(Ad, (T, 16), (H * 16, 1), (i_t * 64 + 48, 0), (16, 16), (1, 0)), boundary_check=(0, 1))
    i21 = -tl.dot(tl.dot(d2, a21, input_precision=PRECISION), d1, input_precision=PRECISION)
    i32 = -tl.dot(tl.dot(d3, a32, input_precision=PRECISION), d2, input_precision=PRECISION)
    i43 = -tl.dot(tl.dot(d4, a43, input_precision=PRECISION), d3, input_precision=PRECISION)
    i31 = -tl.dot(d3, tl.dot(a31, d1, input_precision=PRECISION) + tl.dot(a32, i21, input_precision=PRECISION), input_precision=PRECISION)
    i42 = -tl.dot(d4, tl.dot(a42, d2, input_precision=PRECISION) + tl.dot(a43, i32, input_precision=PRECISION), input_precision=PRECISION)
    i41 = tl.dot(a41, d1, input_precision=PRECISION) + tl.dot(a42, i21, input_precision=PRECISION) + tl.dot(a43, i31, input_precision=PRECISION)
    i41 = -tl.dot(d4, i41, input_precision=PRECISION)
    for i in tl.static_range(4):
        d = d1 if i == 0 else d2 if i == 1 else d3 if i == 2 else d4
        tl.store(tl.make_block_ptr(Ai, (T, 64), (H * 64, 1), (i_t * 64 + i * 16, i * 16), (16, 16), (1, 0)), d, boundary_check=(0, 1))
    tl.store(tl.make_block_ptr(Ai, (T, 64), (H * 64, 1), (i_t * 64 + 16, 0), (16, 16), (1, 0)), i21, boundary_check=(0, 1))
    tl.store(tl.make_block_ptr(Ai, (T, 64), (H * 64, 1), (i_t * 64 + 32, 16), (16, 16), (1, 0)), i32, boundary_check=(0, 1))
    tl.store(tl.make_block_ptr(Ai, (T, 64), (H * 64, 1), (i_t * 64 + 48, 32), (16, 16), (1, 0)), i43, boundary_check=(0, 1))
    tl.store(tl.make_block_ptr(Ai, (T, 64), (H * 64, 1), (i_t * 64 + 32, 0), (16, 16), (1, 0)), i31, boundary_check=(0, 1))
    tl.store(tl.make_block_ptr(Ai, (T, 64), (H * 64, 1), (i_t * 64 + 48, 16), (16, 16), (1, 0)), i42, boundary_check=(0, 1))
    tl.store(tl.make_block_ptr(Ai, (T, 64), (H * 64, 1), (i_t * 64 + 48, 0), (16, 16), (1, 0)), i41, boundary_check=(0, 1))


@case
def inverses_of_triangles_joined_from_blocks_of_16_in_tf32x3():
    b, t, h = 2, 2048, 16
    a = f32(b, t // 64, 64, h, 64).transpose(2, 3).tril(-1) / 8
    whole = torch.linalg.inv(a + torch.eye(64, device="cuda")) if a.device.type != "meta" else a
    diagonal = torch.cat([whole[..., i : i + 16, i : i + 16] for i in range(0, 64, 16)], 3).transpose(2, 3).reshape(b, t, h, 16).contiguous()
    lower, made = a.transpose(2, 3).reshape(b, t, h, 64).contiguous(), zeros(b, t, h, 64, dtype="float32")
    launched = run(inverses_from_blocks_of_16, (t // 64, b * h), (lower, diagonal, made, t), made, H=h, PRECISION="tf32x3", num_warps=4, num_stages=3)
    return against(launched, lambda: whole.transpose(2, 3).reshape(b, t, h, 64))


@triton.jit
def gates_of_key_blocks(q, means, chosen, T, NB, H, stride_qt, stride_qh, D: tl.constexpr, BQ: tl.constexpr, BN: tl.constexpr, STEP: tl.constexpr, KEEP: tl.constexpr):
    # Scores with means of key blocks; the threshold by a sort of the row; which blocks a query reads, as bits of a long word.
    i_t, i_h = tl.program_id(0), tl.program_id(1)
    o_t, o_n, o_d = i_t * BQ + tl.arange(0, BQ), tl.arange(0, BN), tl.arange(0, D)
    b_q = tl.load(q + o_t[:, None] * stride_qt + i_h * stride_qh + o_d[None, :], mask=(o_t < T)[:, None], other=0.0)
    b_m = tl.load(means + (o_n[None, :] * H + i_h) * D + o_d[:, None], mask=(o_n < NB)[None, :], other=0.0)
    own = o_t // STEP
    s = tl.dot(b_q, b_m)
    s = tl.where(o_n[None, :] < own[:, None], s, float("-inf"))
    s = tl.where(o_n[None, :] == own[:, None], float("inf"), s)
    ordered = tl.sort(s, 1, descending=True)
    bar = tl.min(tl.where((o_n < KEEP)[None, :], ordered, float("inf")), 1)
    keep = (s >= bar[:, None]) & (s > float("-inf"))
    bits = tl.sum(keep.to(tl.int64) << o_n.to(tl.int64)[None, :], 1)
    tl.store(chosen + o_t * H + i_h, bits, mask=o_t < T)


@case
def gates_of_key_blocks_as_bits_of_long_words():
    t, h, d, step = 7000, 16, 64, 128
    blocks = cdiv(t, step)
    qkv, means, chosen = ints(-3, 4, t, h, 3, d).half(), ints(-3, 4, blocks, h, d).half(), zeros(t, h, dtype="int64")
    args = qkv, means, chosen, t, blocks, h, h * 3 * d, 3 * d
    launched = run(gates_of_key_blocks, (cdiv(t, 32), h), args, chosen, D=d, BQ=32, BN=64, STEP=step, KEEP=8, num_warps=4)
    return viewed(launched, lambda bits: torch.stack([(bits >> i) & 1 for i in range(blocks)]).to(torch.int8))


@triton.jit
def softmax_of_sparse_blocks(values, starts, out, scale, SIZE: tl.constexpr, MOST: tl.constexpr, stride_b):
    # A row of all its blocks at once: a table says which lie one after another; a hint says that they are whole.
    head, row, inner = tl.program_id(2), tl.program_id(0), tl.program_id(1)
    first, last = tl.load(starts + row), tl.load(starts + row + 1)
    n = tl.arange(0, MOST * SIZE)
    block, column = n // SIZE, n % SIZE
    at = head.to(tl.int64) * stride_b + (first + block) * SIZE * SIZE + inner * SIZE + column
    ok = block < last - first
    x = tl.load(values + at, mask=ok, other=float("-inf")).to(tl.float32) * scale
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out + at, (e / tl.sum(e, 0)).to(out.dtype.element_ty), mask=ok)


@case
def softmax_of_rows_of_sparse_blocks_of_32():
    heads, rows, size = 24, 40, 32
    counts = [(i * 7) % 13 + 1 for i in range(rows)]
    starts = torch.tensor([sum(counts[:i]) for i in range(rows + 1)], device="cuda", dtype=torch.int32)
    blocks = sum(counts)
    x, y = rand(heads, blocks, size, size), zeros(heads, blocks, size, size)
    launched = run(softmax_of_sparse_blocks, (rows, size, heads), (x, starts, y, 0.5), y, SIZE=size, MOST=16, stride_b=blocks * size * size, num_warps=1)

    def reference():
        parts = [p.transpose(1, 2).reshape(heads, size, -1).float().mul(0.5).softmax(-1).view(heads, size, -1, size).transpose(1, 2) for p in x.split(counts, 1)]
        return torch.cat(parts, 1)

    return against(launched, reference)


@triton.jit
def gemv_two_of_four(x, kept, places, y, N, K, BN: tl.constexpr, BK: tl.constexpr):
    # Of each four weights two are kept, their places two bits each: x is gathered by what a nibble says.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK), tl.float32)
    for k0 in tl.range(0, K // 4, BK, num_stages=3):
        g = k0 + tl.arange(0, BK)
        ok = (n < N)[:, None] & (g < K // 4)[None, :]
        code = tl.load(places + n[:, None] * (K // 8) + (g // 2)[None, :], mask=ok, other=0).to(tl.int32)
        code = (code >> (g % 2 * 4)[None, :]) & 15
        w0 = tl.load(kept + n[:, None] * (K // 2) + 2 * g[None, :], mask=ok, other=0.0)
        w1 = tl.load(kept + n[:, None] * (K // 2) + 2 * g[None, :] + 1, mask=ok, other=0.0)
        x0 = tl.load(x + 4 * g[None, :] + (code & 3), mask=ok, other=0.0)
        x1 = tl.load(x + 4 * g[None, :] + (code >> 2), mask=ok, other=0.0)
        acc += w0.to(tl.float32) * x0.to(tl.float32) + w1.to(tl.float32) * x1.to(tl.float32)
    tl.store(y + n, tl.sum(acc, 1), mask=n < N)


@case
def gemv_of_two_of_four_with_places_in_nibbles():
    n, k = 9001, 4096
    x, kept, y = rand(k), rand(n, k // 2), zeros(n, dtype="float32")
    pairs = torch.tensor([4, 8, 12, 9, 13, 14], device="cuda", dtype=torch.uint8)
    codes = pairs[ints(0, 6, n, k // 4, dtype="int64")]
    places = codes[:, ::2] | codes[:, 1::2] << 4
    launched = run(gemv_two_of_four, (cdiv(n, 8),), (x, kept, places.contiguous(), y, n, k), y, BN=8, BK=128, num_warps=4)

    def reference():
        at = torch.stack([codes & 3, codes >> 2], 2).long() + 4 * arange(k // 4, "int64")[None, :, None]
        return (kept.double() * x.double()[at.view(n, -1)]).sum(1)

    return against(launched, reference)


@triton.jit
def records_of_210_bytes(q, out, N, ROWS: tl.constexpr):
    # 256 numbers of six bits: low nibbles, high pairs, sixteen scales, and a half that begins at an odd multiple of two bytes.
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    j = tl.arange(0, 256)[None, :]
    ok = i < N
    half, r = j // 128, j % 128
    low = tl.load(q + i * 210 + half * 64 + r % 64, mask=ok, other=0)
    low = tl.where(r < 64, low & 15, low >> 4).to(tl.int32)
    high = tl.load(q + i * 210 + 128 + half * 32 + r % 32, mask=ok, other=0).to(tl.int32)
    high = (high >> (r // 32 * 2)) & 3
    scale = tl.load(q + i * 210 + 192 + j // 16, mask=ok, other=0).to(tl.int8, bitcast=True).to(tl.float32)
    d = tl.load((q + i * 210 + 208).to(tl.pointer_type(tl.float16)), mask=ok, other=0.0).to(tl.float32)
    tl.store(out + i * 256 + j, (d * scale * ((low | (high << 4)) - 32).to(tl.float32)).to(tl.float16), mask=ok)


@case
def records_of_210_bytes_of_six_bit_numbers_to_half():
    n = 30_001
    q = ints(0, 256, n, 210, dtype="uint8")
    q[:, 208:] = (rand(n, 1) / 100).view(torch.uint8)
    out = zeros(n, 256)
    launched = run(records_of_210_bytes, (cdiv(n, 4),), (q, out, n), out, ROWS=4, num_warps=4)

    def reference():
        r, half = arange(128, "int64"), q[:, :192].long()
        parts = []
        for h in range(2):
            low = half[:, h * 64 + r % 64]
            low = torch.where(r < 64, low & 15, low >> 4)
            parts.append(low | ((half[:, 128 + h * 32 + r % 32] >> (r // 32 * 2)) & 3) << 4)
        scale = q[:, 192:208].view(torch.int8).double().repeat_interleave(16, 1)
        return q[:, 208:].contiguous().view(torch.float16).double() * scale * (torch.cat(parts, 1) - 32)

    return against(launched, reference)


@triton.jit
def gemv_of_records_of_144_bytes(q, x, y, N, BLOCKS, BN: tl.constexpr):
    # 256 numbers of four bits in eight groups, scales and minima of six bits packed in twelve bytes; a program sums some rows.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    j = tl.arange(0, 256)
    g = j // 32
    acc = tl.zeros((BN, 256), tl.float32)
    for b in range(BLOCKS):
        at = q + ((n * BLOCKS + b) * 144)[:, None]
        ok = (n < N)[:, None]
        d = tl.load(at.to(tl.pointer_type(tl.float16)), mask=ok, other=0.0).to(tl.float32)
        least = tl.load((at + 2).to(tl.pointer_type(tl.float16)), mask=ok, other=0.0).to(tl.float32)
        s0 = tl.load(at + 4 + (g % 4)[None, :], mask=ok, other=0).to(tl.int32)
        s1 = tl.load(at + 8 + (g % 4)[None, :], mask=ok, other=0).to(tl.int32)
        s2 = tl.load(at + 12 + (g % 4)[None, :], mask=ok, other=0).to(tl.int32)
        scale = tl.where((g < 4)[None, :], s0 & 63, (s2 & 15) | ((s0 >> 6) << 4))
        shift = tl.where((g < 4)[None, :], s1 & 63, (s2 >> 4) | ((s1 >> 6) << 4))
        code = tl.load(at + 16 + (g // 2 * 32 + j % 32)[None, :], mask=ok, other=0).to(tl.int32)
        code = (code >> (g % 2 * 4)[None, :]) & 15
        v = tl.load(x + b * 256 + j)[None, :]
        acc += (d * scale.to(tl.float32) * code.to(tl.float32) - least * shift.to(tl.float32)) * v
    tl.store(y + n, tl.sum(acc, 1), mask=n < N)


@case
def gemv_of_records_of_144_bytes_with_packed_scales():
    n, blocks = 6000, 16
    q = ints(0, 256, n, blocks, 144, dtype="uint8")
    q[:, :, :4] = (uniform(n, blocks, 2).half() / 100).view(torch.uint8)
    x, y = f32(blocks * 256), zeros(n, dtype="float32")
    return run(gemv_of_records_of_144_bytes, (cdiv(n, 4),), (q, x, y, n, blocks), y, BN=4, num_warps=8)


@triton.jit
def rows_to_bytes_but_outliers(x, codes, scales, columns, counter, M, N, bar, BLOCK: tl.constexpr):
    # Largest of what is below the bar; above it a column is marked, once, and its codes are zero.
    row = tl.program_id(0)
    top = tl.zeros((BLOCK,), tl.float32)
    for n0 in range(0, N, BLOCK):
        n = n0 + tl.arange(0, BLOCK)
        v = tl.abs(tl.load(x + row * N + n, mask=n < N, other=0.0, eviction_policy="evict_last").to(tl.float32))
        top = tl.maximum(top, tl.where(v < bar, v, 0.0))
    top = tl.maximum(tl.max(top, 0), 1e-8)
    tl.store(scales + row, top / 127)
    inv = 127 / top
    for n0 in range(0, N, BLOCK):
        n = n0 + tl.arange(0, BLOCK)
        v = tl.load(x + row * N + n, mask=n < N, other=0.0, eviction_policy="evict_first").to(tl.float32)
        large = tl.abs(v) >= bar
        code = libdevice.rint(tl.where(large, 0.0, v) * inv).to(tl.int8)
        tl.store(codes + row * N + n, code, mask=n < N)
        seen = tl.atomic_xchg(columns + n, 1, mask=large & (n < N), sem="relaxed")
        tl.atomic_add(counter + tl.zeros_like(n), 1, mask=large & (n < N) & (seen == 0), sem="relaxed", scope="gpu")


@case
def rows_to_bytes_but_columns_with_outliers():
    m, n = 3000, 4104
    x, codes, scales = rand(m, n), zeros(m, n, dtype="int8"), zeros(m, dtype="float32")
    columns, counter = zeros(n, dtype="int32"), zeros(1, dtype="int32")
    launched = run(rows_to_bytes_but_outliers, (m,), (x, codes, scales, columns, counter, m, n, 4.2), (codes, scales, columns, counter), BLOCK=1024, num_warps=4)
    launched = cleared(launched, columns, counter)
    return viewed(launched, lambda outs: (outs[0].float() + 200, *outs[1:]))


@triton.jit
def sophia_step(p, m, h, g, lr, beta, rho, decay, N, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    w, a = tl.load(p + i, mask=ok), tl.load(m + i, mask=ok)
    grad = tl.load(g + i, mask=ok).to(tl.float32)
    a = beta * a + (1 - beta) * grad
    ratio = tl.clamp(a / tl.maximum(rho * tl.load(h + i, mask=ok, other=1.0), 1e-12), -1.0, 1.0)
    tl.store(m + i, a, mask=ok)
    tl.store(p + i, w * (1 - lr * decay) - lr * ratio, mask=ok)


@case
def second_order_steps_cut_at_one():
    n = 12_345_678
    p, m, h, g = f32(n), f32(n) / 100, uniform(n), rand(n, dtype="bfloat16")
    return run(sophia_step, (cdiv(n, 2048),), (p, m, h, g, 1e-3, 0.96, 0.04, 0.1, n), (p, m), BLOCK=2048, num_warps=8)


@triton.jit
def mixed_averages_step(p, fast, slow, second, g, lr, beta1, beta2, beta3, alpha, c1, c2, eps, decay, N, BLOCK: tl.constexpr, UNROLL: tl.constexpr):
    # Two averages, one of them slow and of half width; a program takes several blocks in turn.
    base = tl.program_id(0) * (BLOCK * UNROLL)
    for u in tl.static_range(UNROLL):
        i = base + u * BLOCK + tl.arange(0, BLOCK)
        ok = i < N
        grad = tl.load(g + i, mask=ok, other=0.0)
        f = beta1 * tl.load(fast + i, mask=ok, other=0.0).to(tl.float32) + (1 - beta1) * grad
        s = beta3 * tl.load(slow + i, mask=ok, other=0.0).to(tl.float32) + (1 - beta3) * grad
        v = beta2 * tl.load(second + i, mask=ok, other=0.0) + (1 - beta2) * grad * grad
        w = tl.load(p + i, mask=ok, other=0.0)
        w -= lr * ((f / c1 + alpha * s) / (tl.sqrt_rn(v / c2) + eps) + decay * w)
        tl.store(fast + i, f.to(fast.dtype.element_ty), mask=ok)
        tl.store(slow + i, s.to(slow.dtype.element_ty), mask=ok)
        tl.store(second + i, v, mask=ok)
        tl.store(p + i, w, mask=ok)


@case
def steps_by_a_fast_and_a_slow_average():
    n = 7_000_001
    p, fast, slow, second, g = f32(n), rand(n, dtype="bfloat16"), rand(n, dtype="bfloat16"), uniform(n), f32(n)
    args = p, fast, slow, second, g, 1e-4, 0.9, 0.999, 0.9999, 5.0, 0.1, 0.001, 1e-8, 0.05, n
    return run(mixed_averages_step, (cdiv(n, 4096),), args, (p, fast, slow, second), BLOCK=1024, UNROLL=4, num_warps=4)


@triton.jit
def confident_rows(u, m, rows, columns, M, N, beta, eps, BM: tl.constexpr, BN: tl.constexpr):
    # Squares of what an update differs from its average: means of rows stored, means of columns added by atomics.
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    total = tl.zeros((BM,), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        ok = (r < M)[:, None] & (n < N)[None, :]
        at = r[:, None] * N + n[None, :]
        x, a = tl.load(u + at, mask=ok, other=0.0), tl.load(m + at, mask=ok, other=0.0)
        a = beta * a + (1 - beta) * x
        tl.store(m + at, a, mask=ok)
        d = tl.where(ok, (x - a) * (x - a) + eps, 0.0)
        total += tl.sum(d, 1)
        tl.atomic_add(columns + n, tl.sum(d, 0) / M, mask=n < N, sem="relaxed")
    tl.store(rows + r, total / N, mask=r < M)


@case
def confidence_of_updates_by_rows_and_columns():
    m, n = 2050, 1500
    u, average, rows, columns = f32(m, n), f32(m, n), zeros(m, dtype="float32"), zeros(n, dtype="float32")
    # The average is written: of it only what no repetition changes much is compared.
    launched = run(confident_rows, (cdiv(m, 16),), (u, average, rows, columns, m, n, 0.999, 1e-16), (rows, columns), BM=16, BN=128, num_warps=4)
    return cleared(launched, columns)


@triton.jit
def one_second_moment_a_row(p, m, v, g, lr, beta1, beta2, eps, N, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    ok = i < N
    grad = tl.load(g + row * N + i, mask=ok, other=0.0).to(tl.float32)
    second = tl.load(v + row) * beta2 + (1 - beta2) * (tl.sum(grad * grad, 0) / N)
    first = tl.load(m + row * N + i, mask=ok, other=0.0).to(tl.float32) * beta1 + (1 - beta1) * grad
    w = tl.load(p + row * N + i, mask=ok, other=0.0).to(tl.float32) - first * (lr / (tl.sqrt(second) + eps))
    tl.store(p + row * N + i, w.to(p.dtype.element_ty), mask=ok)
    tl.store(m + row * N + i, first.to(m.dtype.element_ty), mask=ok)
    tl.store(v + row, second)


@case
def steps_with_one_second_moment_a_row_of_1360():
    rows, n = 6000, 1360
    p, m, v, g = rand(rows, n, dtype="bfloat16"), rand(rows, n, dtype="bfloat16"), uniform(rows), rand(rows, n, dtype="bfloat16")
    return run(one_second_moment_a_row, (rows,), (p, m, v, g, 1e-2, 0.9, 0.95, 1e-8, n), (p, m, v), BLOCK=2048, num_warps=4)


@triton.jit
def margin_rows(cosines, labels, loss, N, s, cos_m, sin_m, bar, BLOCK: tl.constexpr):
    # An angle is added to the label's; past a bar a straight line goes on.
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    c = tl.load(cosines + row * N + label).to(tl.float32)
    turned = c * cos_m - tl.sqrt(tl.maximum(1 - c * c, 0.0)) * sin_m
    turned = tl.where(c > bar, turned, c - sin_m * 0.4794255)
    top, total = tl.full((BLOCK,), float("-inf"), tl.float32), tl.zeros((BLOCK,), tl.float32)
    for n0 in tl.range(0, N, BLOCK, num_stages=4):
        n = n0 + tl.arange(0, BLOCK)
        z = s * tl.load(cosines + row * N + n, mask=n < N, other=-100.0).to(tl.float32)
        z = tl.where(n == label, s * turned, z)
        high = tl.maximum(top, z)
        total = total * tl.exp(top - high) + tl.exp(z - high)
        top = high
    m = tl.max(top, 0)
    tl.store(loss + row, m + tl.log(tl.sum(total * tl.exp(top - m), 0)) - s * turned)


@case
def losses_of_classes_with_a_margin_of_angle():
    rows, n = 1500, 30_011
    cosines = (uniform(rows, n) * 1.8 - 0.9).half()
    labels, loss = ints(0, n, rows, dtype="int64"), zeros(rows, dtype="float32")
    cos_m, sin_m, bar = math.cos(0.5), math.sin(0.5), math.cos(math.pi - 0.5)
    launched = run(margin_rows, (rows,), (cosines, labels, loss, n, 30.0, cos_m, sin_m, bar), loss, BLOCK=1024, num_warps=4)

    def reference():
        z = cosines.float()
        c = z.gather(1, labels[:, None])
        turned = torch.where(c > bar, c * cos_m - (1 - c * c).sqrt() * sin_m, c - sin_m * 0.4794255)
        return F.cross_entropy(z.scatter(1, labels[:, None], turned) * 30, labels, reduction="none")

    return against(launched, reference)


@triton.jit
def rank_gradients(scores, gains, out, sigma, N: tl.constexpr, BLOCK: tl.constexpr, BJ: tl.constexpr):
    # Places by comparing all pairs of a list; what exchanging two would change weighs the slope of their order.
    q = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    s, g = tl.load(scores + q * N + i, mask=i < N, other=-1e30), tl.load(gains + q * N + i, mask=i < N, other=0.0)
    place = tl.zeros((BLOCK,), tl.int32)
    for j0 in range(0, N, BJ):
        j = j0 + tl.arange(0, BJ)
        sj = tl.load(scores + q * N + j, mask=j < N, other=-2e30)
        ahead = (sj[None, :] > s[:, None]) | ((sj[None, :] == s[:, None]) & (j[None, :] < i[:, None]))
        place += tl.sum(ahead.to(tl.int32), 1)
    discount = 1.0 / tl.log2(place.to(tl.float32) + 2.0)
    grad = tl.zeros((BLOCK,), tl.float32)
    for j in range(N):
        sj, gj = tl.load(scores + q * N + j), tl.load(gains + q * N + j)
        dj = tl.sum(tl.where(i == j, discount, 0.0), 0)
        change = tl.abs((g - gj) * (discount - dj))
        rho = 1.0 / (1.0 + tl.exp(sigma * tl.abs(s - sj)))
        sign = tl.where(g > gj, -1.0, tl.where(g < gj, 1.0, 0.0))
        rho = tl.where((s - sj) * sign <= 0, rho, 1.0 - rho)
        grad += tl.where(i < N, sign * sigma * rho * change, 0.0)
    tl.store(out + q * N + i, grad, mask=i < N)


@case
def gradients_of_ranks_of_lists_of_100():
    lists, n = 2000, 100
    scores, gains, out = f32(lists, n), ints(0, 5, lists, n).float(), zeros(lists, n, dtype="float32")
    launched = run(rank_gradients, (lists,), (scores, gains, out, 1.0), out, N=n, BLOCK=128, BJ=32, num_warps=4)

    def reference():
        s, g = scores.double(), gains.double()
        d = 1 / torch.log2(s.argsort(1, descending=True).argsort(1) + 2.0)
        change = ((g[:, :, None] - g[:, None]) * (d[:, :, None] - d[:, None])).abs()
        sign = (g[:, None] - g[:, :, None]).sign()
        return (sign * change * torch.sigmoid((s[:, :, None] - s[:, None]) * sign)).sum(2)

    return against(launched, reference)


@triton.jit
def box_corners(p, i, ok):
    x, y = tl.load(p + i * 4, mask=ok, other=0.0), tl.load(p + i * 4 + 1, mask=ok, other=0.0)
    w, h = tl.load(p + i * 4 + 2, mask=ok, other=1.0), tl.load(p + i * 4 + 3, mask=ok, other=1.0)
    return x - w / 2, y - h / 2, x + w / 2, y + h / 2, w, h


@triton.jit
def complete_overlap(a, b, loss, mean, N, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < N
    ax0, ay0, ax1, ay1, aw, ah = box_corners(a, i, ok)
    bx0, by0, bx1, by1, bw, bh = box_corners(b, i, ok)
    inner = tl.maximum(tl.minimum(ax1, bx1) - tl.maximum(ax0, bx0), 0.0) * tl.maximum(tl.minimum(ay1, by1) - tl.maximum(ay0, by0), 0.0)
    iou = inner / (aw * ah + bw * bh - inner + 1e-7)
    cw, ch = tl.maximum(ax1, bx1) - tl.minimum(ax0, bx0), tl.maximum(ay1, by1) - tl.minimum(ay0, by0)
    dx, dy = ax0 + ax1 - bx0 - bx1, ay0 + ay1 - by0 - by1
    v = 0.4052847 * libdevice.pow(libdevice.atan2(bw, bh) - libdevice.atan2(aw, ah), 2.0)
    alpha = v / (1 - iou + v + 1e-7)
    value = 1 - iou + (dx * dx + dy * dy) / 4 / (cw * cw + ch * ch + 1e-7) + alpha * v
    tl.store(loss + i, value, mask=ok)
    tl.atomic_add(mean, tl.sum(tl.where(ok, value, 0.0), 0) / N, sem="relaxed")


@case
def losses_of_boxes_by_overlap_distance_and_aspect():
    n = 1_500_001
    a = torch.cat([f32(n, 2), uniform(n, 2) + 0.1], 1)
    b = torch.cat([a[:, :2] + f32(n, 2) / 4, uniform(n, 2) + 0.1], 1)
    loss, mean = zeros(n, dtype="float32"), zeros(1, dtype="float32")
    return cleared(run(complete_overlap, (cdiv(n, 256),), (a, b, loss, mean, n), (loss, mean), BLOCK=256, num_warps=8), mean)


@triton.jit
def logistic_mixture(x, curves, nll, N, K: tl.constexpr, KP: tl.constexpr, BLOCK: tl.constexpr):
    # Of a pixel's level under K logistic curves, with open ends; parameters lie [3, K, pixels].
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, KP)
    ok = (k < K)[:, None] & (i < N)[None, :]
    at = k[:, None] * N + i[None, :]
    level = tl.load(x + i, mask=i < N, other=0).to(tl.float32)[None, :] / 127.5 - 1.0
    logit = tl.load(curves + at, mask=ok, other=float("-inf"))
    mu = tl.load(curves + K * N + at, mask=ok, other=0.0)
    inv = tl.exp(-tl.maximum(tl.load(curves + 2 * K * N + at, mask=ok, other=0.0), -7.0))
    plus, minus = inv * (level - mu + 1 / 255), inv * (level - mu - 1 / 255)
    upper, lower = tl.sigmoid(plus), tl.sigmoid(minus)
    p = tl.where(level < -0.999, upper, tl.where(level > 0.999, 1 - lower, upper - lower))
    joint = logit + tl.log(tl.maximum(p, 1e-12))
    a, b = tl.max(joint, 0), tl.max(logit, 0)
    value = b + tl.log(tl.sum(tl.exp(logit - b[None, :]), 0)) - a - tl.log(tl.sum(tl.exp(joint - a[None, :]), 0))
    tl.store(nll + i, value, mask=i < N)


@case
def likelihoods_of_levels_under_ten_logistic_curves():
    n, k = 400_009, 10
    x, curves, nll = ints(0, 256, n, dtype="uint8"), f32(3, k, n), zeros(n, dtype="float32")
    return run(logistic_mixture, (cdiv(n, 64),), (x, curves, nll, n), nll, K=k, KP=16, BLOCK=64, num_warps=4)


@triton.jit
def total_variation_distance(p, q, loss, grad, labels, V, ignore, scale, BLOCK: tl.constexpr, HAS_LABEL: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    p += row * V
    q += row * V
    grad += row * V
    if HAS_LABEL:
        if tl.load(labels + row) == ignore:
            for i in range(0, V, BLOCK):
                o = i + tl.arange(0, BLOCK)
                tl.store(grad + o, 0.0, mask=o < V)
            tl.store(loss + row, 0.0)
            return
    total = 0.0
    for i in range(0, V, BLOCK):
        o = i + tl.arange(0, BLOCK)
        a, b = tl.load(p + o, mask=o < V, other=0.0), tl.load(q + o, mask=o < V, other=0.0)
        total += tl.sum(0.5 * tl.abs(a - b), axis=0)
        tl.store(grad + o, tl.where(a > b, 0.5, -0.5) * scale, mask=o < V)
    tl.store(loss + row, total * scale)


@case
def distances_of_distributions_where_labels_are_ignored():
    rows, v = 1000, 25_000
    p, q = f32(rows, v).softmax(1), f32(rows, v).softmax(1)
    loss, grad, labels = zeros(rows, dtype="float32"), zeros(rows, v, dtype="float32"), ints(-2, 9, rows, dtype="int64") * 50 - 100
    launched = run(total_variation_distance, (rows,), (p, q, loss, grad, labels, v, -100, 0.001), (loss, grad), BLOCK=4096, HAS_LABEL=True, num_warps=16)

    def reference():
        live = (labels != -100)[:, None]
        return ((p.double() - q).abs().sum(1) * 0.0005) * live[:, 0], torch.where(p > q, 0.0005, -0.0005) * live

    return against(launched, reference)


@triton.jit
def grams_scaled_by_projection(g, r, scale, M, N, K: tl.constexpr, BN: tl.constexpr):
    # Columns of a gradient against few random rows in blocks of three axes; the ratio of norms before and after scales them.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    k, m = tl.arange(0, K), tl.arange(0, 32)
    projected, square = tl.zeros((K, BN), tl.float32), tl.zeros((BN,), tl.float32)
    for m0 in range(0, M, 32):
        ok = (m0 + m < M)[:, None] & (n < N)[None, :]
        b_g = tl.load(g + (m0 + m)[:, None] * N + n[None, :], mask=ok, other=0.0)
        b_r = tl.load(r + k[:, None] * M + m0 + m[None, :], mask=(m0 + m < M)[None, :], other=0.0)
        projected = tl.dot(b_r, b_g, projected, input_precision="ieee")
        square += tl.sum(b_g * b_g, 0)
    ratio = tl.sqrt(tl.sum(projected * projected, 0)) * tl.rsqrt(tl.maximum(square, 1e-20))
    tl.store(scale + n, ratio, mask=n < N)


@case
def columns_of_gradients_scaled_by_their_projections_ieee():
    m, n, k = 1001, 3000, 16
    g, r, scale = f32(m, n), f32(k, m) / 4, zeros(n, dtype="float32")
    launched = run(grams_scaled_by_projection, (cdiv(n, 32),), (g, r, scale, m, n), scale, K=k, BN=32, num_warps=2, num_stages=5)
    return against(launched, lambda: (r.double() @ g.double()).norm(dim=0) / g.double().norm(dim=0))
