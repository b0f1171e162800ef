"""Reverses: gradients whose dots share what they load, and dots next to scans, sorts, histograms and reductions along all axes."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, zeros


@triton.jit
def window_gradients(q_ptr, k_ptr, v_ptr, do_ptr, dq_ptr, dk_ptr, dv_ptr, scale, T: tl.constexpr, D: tl.constexpr):
    # Attention's three gradients of a window of 32 tokens: scores again, and five dots, of which nothing leaves registers between.
    at = (tl.program_id(0) * T + tl.arange(0, T))[:, None] * D + tl.arange(0, D)[None, :]
    q, k, v, do = tl.load(q_ptr + at), tl.load(k_ptr + at), tl.load(v_ptr + at), tl.load(do_ptr + at)
    s = tl.dot(q, k.T) * scale
    p = tl.exp(s - tl.max(s, axis=1)[:, None])
    p = p / tl.sum(p, axis=1)[:, None]
    dp = tl.dot(do, v.T)
    ds = (p * (dp - tl.sum(p * dp, axis=1)[:, None]) * scale).to(q.dtype)
    tl.store(dv_ptr + at, tl.dot(p.to(q.dtype).T, do).to(q.dtype))
    tl.store(dq_ptr + at, tl.dot(ds, k).to(q.dtype))
    tl.store(dk_ptr + at, tl.dot(ds.T, q).to(q.dtype))


@case
def gradients_of_windows_of_32_tokens_by_two_warps():
    windows, t, d = 6000, 32, 32
    q, k, v, do = (rand(windows, t, d) for _ in range(4))
    grads = [zeros(windows, t, d) for _ in range(3)]
    launched = run(window_gradients, (windows,), (q, k, v, do, *grads, d**-0.5), grads, T=t, D=d, num_warps=2)

    def reference():
        a, b, c, g = (z.float() for z in (q, k, v, do))
        p = (a @ b.mT * d**-0.5).softmax(2)
        dp = g @ c.mT
        ds = p * (dp - (p * dp).sum(2, keepdim=True)) * d**-0.5
        return ds @ b, ds.mT @ a, p.mT @ g

    return against(launched, reference)


@triton.jit
def normed_weight_gradient(dy_ptr, x_ptr, mean_ptr, rstd_ptr, dw_ptr, db_ptr, M, N, K, SPAN, BN: tl.constexpr, BK: tl.constexpr, BM: tl.constexpr):
    # dW of a layer after a norm: inputs are normed again on the way into the dot; the first column of programs also sums dy.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.program_id(1) * BK + tl.arange(0, BK)
    part = tl.program_id(2)
    dw = tl.zeros((BN, BK), tl.float32)
    db = tl.zeros((BN,), tl.float32)
    end = min(part * SPAN + SPAN, M)
    for m0 in range(part * SPAN, end, BM):
        m = m0 + tl.arange(0, BM)
        dy = tl.load(dy_ptr + m[:, None] * N + n[None, :], mask=(m < end)[:, None] & (n < N)[None, :], other=0.0)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < end)[:, None] & (k < K)[None, :], other=0.0)
        mean = tl.load(mean_ptr + m, mask=m < end, other=0.0)
        rstd = tl.load(rstd_ptr + m, mask=m < end, other=0.0)
        xhat = ((x.to(tl.float32) - mean[:, None]) * rstd[:, None]).to(dy.dtype)
        dw = tl.dot(tl.trans(dy), xhat, dw)
        db += tl.sum(dy.to(tl.float32), axis=0)
    tl.store(dw_ptr + (part * N + n)[:, None] * K + k[None, :], dw, mask=(n < N)[:, None] & (k < K)[None, :])
    if tl.program_id(1) == 0:
        tl.store(db_ptr + part * N + n, db, mask=n < N)


@case
def weight_gradient_of_a_layer_after_a_norm_in_parts():
    m, n, k, parts = 6000, 250, 330, 5
    dy, x = rand(m, n, dtype="bfloat16"), rand(m, k, dtype="bfloat16") * 3 + 1
    mean, rstd = x.float().mean(1), x.float().var(1, correction=0).rsqrt()
    dw, db = zeros(parts, n, k, dtype="float32"), zeros(parts, n, dtype="float32")
    args = dy, x, mean, rstd, dw, db, m, n, k, m // parts
    launched = run(normed_weight_gradient, (cdiv(n, 64), cdiv(k, 64), parts), args, (dw, db), BN=64, BK=64, BM=32)

    def reference():
        g = dy.float().reshape(parts, m // parts, n)
        z = ((x.float() - mean[:, None]) * rstd[:, None]).bfloat16().float().reshape(parts, m // parts, k)
        return g.mT @ z, g.sum(1)

    return against(launched, reference)


@triton.jit
def bilinear_gradients(g_ptr, x_ptr, z_ptr, w_ptr, dx_ptr, dz_ptr, M, A: tl.constexpr, B: tl.constexpr, BM: tl.constexpr):
    # y = x' W z of rows: gradients of both sides by one weight, which one dot takes as it lies and the other turned.
    m, a, b = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, A), tl.arange(0, B)
    w = tl.load(w_ptr + a[:, None] * B + b[None, :])
    g = tl.load(g_ptr + m, mask=m < M, other=0.0)[:, None]
    x = tl.load(x_ptr + m[:, None] * A + a[None, :], mask=(m < M)[:, None], other=0.0)
    z = tl.load(z_ptr + m[:, None] * B + b[None, :], mask=(m < M)[:, None], other=0.0)
    dx = tl.dot((z * g).to(z.dtype), w.T)
    dz = tl.dot((x * g).to(x.dtype), w)
    tl.store(dx_ptr + m[:, None] * A + a[None, :], dx.to(dx_ptr.dtype.element_ty), mask=(m < M)[:, None])
    tl.store(dz_ptr + m[:, None] * B + b[None, :], dz.to(dz_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def gradients_of_both_sides_of_a_bilinear_form_8_warps():
    m, a, b = 30000, 64, 128
    g, x, z, w = f32(m), rand(m, a), rand(m, b), rand(a, b) / 9
    dx, dz = zeros(m, a), zeros(m, b)
    launched = run(bilinear_gradients, (cdiv(m, 128),), (g, x, z, w, dx, dz, m), (dx, dz), A=a, B=b, BM=128, num_warps=8)
    return against(launched, lambda: ((z.float() * g[:, None]) @ w.float().t(), (x.float() * g[:, None]) @ w.float()))


@triton.jit
def cell_of_woven_gates(x_ptr, h_ptr, c_ptr, wx_ptr, wh_ptr, b_ptr, h_out_ptr, c_out_ptr, M, K, H, BM: tl.constexpr, BH: tl.constexpr, BK: tl.constexpr):
    # Four gates of a unit are neighbors in the weights: one wide sum of two products, taken apart by a reshape and two splits.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    wide = tl.program_id(1) * 4 * BH + tl.arange(0, 4 * BH)
    acc = tl.zeros((BM, 4 * BH), tl.float32) + tl.load(b_ptr + wide)[None, :]
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
        acc = tl.dot(x, tl.load(wx_ptr + k[:, None] * 4 * H + wide[None, :]), acc)
    for k0 in range(0, H, BK):
        k = k0 + tl.arange(0, BK)
        h = tl.load(h_ptr + m[:, None] * H + k[None, :], mask=(m < M)[:, None], other=0.0)
        acc = tl.dot(h, tl.load(wh_ptr + k[:, None] * 4 * H + wide[None, :]), acc)
    left, right = tl.split(tl.reshape(acc, (BM, BH, 2, 2)))
    i, g = tl.split(left)
    f, o = tl.split(right)
    u = tl.program_id(1) * BH + tl.arange(0, BH)
    at = m[:, None] * H + u[None, :]
    c = tl.load(c_ptr + at, mask=(m < M)[:, None], other=0.0)
    c = tl.sigmoid(f) * c + tl.sigmoid(i) * (2.0 * tl.sigmoid(2.0 * g) - 1.0)
    h = tl.sigmoid(o) * (2.0 * tl.sigmoid(2.0 * c) - 1.0)
    tl.store(c_out_ptr + at, c, mask=(m < M)[:, None])
    tl.store(h_out_ptr + at, h.to(h_out_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def cells_of_four_gates_woven_in_one_product():
    m, k, hidden = 2000, 192, 256
    x, h, c = rand(m, k), rand(m, hidden), f32(m, hidden)
    wx, wh, b = rand(k, 4 * hidden) / 20, rand(hidden, 4 * hidden) / 20, f32(4 * hidden)
    h_out, c_out = zeros(m, hidden), zeros(m, hidden, dtype="float32")
    args = x, h, c, wx, wh, b, h_out, c_out, m, k, hidden
    launched = run(cell_of_woven_gates, (cdiv(m, 64), hidden // 32), args, (h_out, c_out), BM=64, BH=32, BK=32, num_warps=4)

    def reference():
        z = (x.float() @ wx.float() + h.float() @ wh.float() + b).reshape(m, hidden, 2, 2)
        i, f, g, o = z[..., 0, 0], z[..., 0, 1], z[..., 1, 0], z[..., 1, 1]
        new = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * new.tanh(), new

    return against(launched, reference)


@triton.jit
def woven_gate_gradients(x_ptr, w_ptr, dy_ptr, dw_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # silu(gate) * up of a product with woven columns, made again, split, differentiated, and joined to be stored as woven.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    wide = tl.program_id(1) * 2 * BN + tl.arange(0, 2 * BN)
    acc = tl.zeros((BM, 2 * BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
        acc = tl.dot(x, tl.load(w_ptr + wide[None, :] * K + k[:, None]), acc)
    gate, up = tl.split(tl.reshape(acc, (BM, BN, 2)))
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    dy = tl.load(dy_ptr + m[:, None] * N + n[None, :], mask=(m < M)[:, None], other=0.0).to(tl.float32)
    s = tl.sigmoid(gate)
    dgate = dy * up * s * (1.0 + gate * (1.0 - s))
    both = tl.reshape(tl.join(dgate, dy * gate * s), (BM, 2 * BN))
    tl.store(dw_ptr + m[:, None] * 2 * N + wide[None, :], both.to(dw_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def gradients_of_gates_woven_with_what_they_gate():
    m, n, k = 3000, 512, 256
    x, w, dy, out = rand(m, k, dtype="bfloat16"), rand(2 * n, k, dtype="bfloat16") / 16, rand(m, n, dtype="bfloat16"), zeros(m, 2 * n, dtype="bfloat16")
    launched = run(woven_gate_gradients, (cdiv(m, 64), n // 64), (x, w, dy, out, m, n, k), out, BM=64, BN=64, BK=64, num_warps=8)

    def reference():
        gate, up = (x.float() @ w.float().t()).reshape(m, n, 2).unbind(2)
        s = gate.sigmoid()
        return torch.stack([dy.float() * up * s * (1 + gate * (1 - s)), dy.float() * gate * s], 2).reshape(m, 2 * n)

    return against(launched, reference)


@triton.jit
def kernel_density_gradient(x_ptr, z_ptr, a_ptr, out_ptr, M, N, gamma, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Gradient of sum_j a_j exp(-gamma |x - z_j|^2): squares of the operands that the dots take, a weight a column, and its total.
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    x = tl.load(x_ptr + m[:, None] * D + d[None, :], mask=(m < M)[:, None], other=0.0)
    xx = tl.sum(x * x, axis=1)
    pull = tl.zeros((BM, D), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        z = tl.load(z_ptr + n[:, None] * D + d[None, :], mask=(n < N)[:, None], other=0.0)
        a = tl.load(a_ptr + n, mask=n < N, other=0.0)
        squares = xx[:, None] + tl.sum(z * z, axis=1)[None, :] - 2.0 * tl.dot(x, z.T)
        p = tl.exp(-gamma * squares) * a[None, :]
        total += tl.sum(p, axis=1)
        pull = tl.dot(p, z, pull)
    out = 2.0 * gamma * (pull - x * total[:, None])
    tl.store(out_ptr + m[:, None] * D + d[None, :], out, mask=(m < M)[:, None])


@case
def gradient_of_sums_of_bells_in_floats_of_16():
    m, n, d = 6000, 2000, 16
    x, z, a, out = f32(m, d), f32(n, d), uniform(n), zeros(m, d, dtype="float32")
    launched = run(kernel_density_gradient, (cdiv(m, 64),), (x, z, a, out, m, n, 0.05), out, D=d, BM=64, BN=32, num_warps=4, num_stages=2)

    def reference():
        p = torch.exp(-0.05 * torch.cdist(x.double(), z.double()).square()) * a
        return 0.1 * (p @ z.double() - x * p.sum(1, keepdim=True))

    return against(launched, reference)


@triton.jit
def later_sums_of_features(q_ptr, do_ptr, k_ptr, den_ptr, dk_ptr, T: tl.constexpr, D: tl.constexpr, BT: tl.constexpr):
    # From the last block back: what later queries ask of a key is a state, plus a sum from behind within the block.
    b = tl.program_id(0)
    t, d = tl.arange(0, BT), tl.arange(0, D)
    state = tl.zeros((D, D), tl.float32)
    tail = tl.zeros((D,), tl.float32)
    for t0 in range(T - BT, -1, -BT):
        at = (b * T + t0 + t)[:, None] * D + d[None, :]
        q, do, k = tl.load(q_ptr + at), tl.load(do_ptr + at), tl.load(k_ptr + at)
        w = q.to(tl.float32) * tl.load(den_ptr + b * T + t0 + t)[:, None]
        behind = tl.cumsum(w, axis=0, reverse=True) + tail[None, :]
        inside = tl.where(t[:, None] <= t[None, :], tl.dot(k, do.T), 0.0)
        dk = tl.dot(inside.to(q.dtype), q) + tl.dot(k, state.to(k.dtype)) + behind
        tl.store(dk_ptr + at, dk.to(dk_ptr.dtype.element_ty))
        state = tl.dot(do.T, q, state)
        tail += tl.sum(w, axis=0)


@case
def gradients_of_keys_by_states_and_sums_from_behind():
    b, t, d, bt = 200, 512, 64, 32
    q, do, k, den, dk = rand(b, t, d), rand(b, t, d), rand(b, t, d) / 8, f32(b, t), zeros(b, t, d)
    launched = run(later_sums_of_features, (b,), (q, do, k, den, dk), dk, T=t, D=d, BT=bt, num_warps=4, num_stages=2)

    def reference():
        w = (q.float() * den[..., None]).flip(1).cumsum(1).flip(1)
        return (k.float() @ do.float().mT).triu() @ q.float() + w

    return against(launched, reference)


@triton.jit
def first_order(decay_left, left, decay_right, right):
    return decay_left * decay_right, left * decay_right + right


@triton.jit
def averaged_then_mixed(x_ptr, decay_ptr, w_ptr, y_ptr, H, T, B: tl.constexpr, BT: tl.constexpr, D: tl.constexpr):
    # Recurrences down the middle axis of a tile of four heads by a scan of pairs; then each head's own matrix by a dot of three axes.
    h = tl.program_id(1) * B + tl.arange(0, B)[:, None, None]
    seq = tl.program_id(0)
    t, d, e = tl.arange(0, BT)[None, :, None], tl.arange(0, D)[None, None, :], tl.arange(0, D)[None, :, None]
    w = tl.load(w_ptr + (h * D + e) * D + d)
    carry = tl.zeros((B, D), tl.float32)
    for t0 in range(0, T, BT):
        at = ((seq * T + t0 + t) * H + h) * D + d
        x = tl.load(x_ptr + at, mask=t0 + t < T, other=0.0).to(tl.float32)
        a = tl.sigmoid(tl.load(decay_ptr + (seq * T + t0 + t) * H + h, mask=t0 + t < T, other=0.0))
        a = tl.broadcast_to(a, (B, BT, D))
        products, states = tl.associative_scan((a, x), 1, first_order)
        states += products * carry[:, None, :]
        carry = tl.sum(tl.where(t == BT - 1, states, 0.0), axis=1)
        y = tl.dot(states.to(w.dtype), w)
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=t0 + t < T)


@case
def recurrences_down_a_middle_axis_then_a_matrix_a_head():
    seqs, t, h, d = 16, 300, 32, 32
    x, decay, w, y = rand(seqs, t, h, d), f32(seqs, t, h), rand(h, d, d) / 6, zeros(seqs, t, h, d)
    launched = run(averaged_then_mixed, (seqs, h // 4), (x, decay, w, y, h, t), y, B=4, BT=16, D=d, num_warps=4)

    def reference():
        a, s, states = decay.sigmoid(), torch.zeros_like(x[:, 0], dtype=torch.float32), []
        for i in range(t):
            s = s * a[:, i, :, None] + x[:, i].float()
            states.append(s)
        return torch.einsum("sthd,hde->sthe", torch.stack(states, 1), w.float())

    return against(launched, reference)


@triton.jit
def best_rows_of_columns(x_ptr, z_ptr, best_ptr, row_ptr, M, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # For each column the row of the largest product, the first of equals: a reduction down the dot's first axis, carried along.
    n, d = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, D)
    z = tl.load(z_ptr + n[None, :] * D + d[:, None], mask=(n < N)[None, :], other=0)
    best = tl.full((BN,), -2147483647, tl.int32)
    row = tl.full((BN,), -1, tl.int32)
    for m0 in range(0, M, BM):
        m = m0 + tl.arange(0, BM)
        x = tl.load(x_ptr + m[:, None] * D + d[None, :], mask=(m < M)[:, None], other=0)
        s = tl.where((m < M)[:, None], tl.dot(x, z, out_dtype=tl.int32), -2147483647)
        here, at = tl.max(s, axis=0, return_indices=True)
        row = tl.where(here > best, m0 + at, row)
        best = tl.maximum(best, here)
    tl.store(best_ptr + n, best, mask=n < N)
    tl.store(row_ptr + n, row, mask=n < N)


@case
def best_rows_of_columns_by_dots_of_bytes():
    m, n, d = 3000, 9000, 64
    x, z = ints(-9, 10, m, d, dtype="int8"), ints(-9, 10, n, d, dtype="int8")
    best, row = zeros(n, dtype="int32"), zeros(n, dtype="int32")
    launched = run(best_rows_of_columns, (cdiv(n, 64),), (x, z, best, row, m, n), (best, row), D=d, BM=64, BN=64, num_stages=4)

    def reference():
        s = x.double() @ z.double().t()
        top = s.amax(0)
        return top, torch.where(s == top, arange(m)[:, None], m).amin(0)

    return against(launched, reference)


@triton.jit
def column_potentials(x_ptr, z_ptr, u_ptr, v_ptr, M, N, eps, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # A step of transport whose costs are products: logarithms of sums of powers down columns, their maximum kept up as rows come.
    b = tl.program_id(1)
    n, d = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, D)
    z = tl.load(z_ptr + (b * N + n)[None, :] * D + d[:, None], mask=(n < N)[None, :], other=0.0)
    top = tl.full((BN,), -1e30, tl.float32)
    total = tl.zeros((BN,), tl.float32)
    for m0 in range(0, M, BM):
        m = m0 + tl.arange(0, BM)
        x = tl.load(x_ptr + (b * M + m)[:, None] * D + d[None, :], mask=(m < M)[:, None], other=0.0)
        u = tl.load(u_ptr + b * M + m, mask=m < M, other=-1e30)
        s = tl.dot(x, z) / eps + u[:, None]
        new = tl.maximum(top, tl.max(s, axis=0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(s - new[None, :]), axis=0)
        top = new
    tl.store(v_ptr + b * N + n, -(top + tl.log(total)), mask=n < N)


@case
def potentials_of_columns_whose_costs_are_products():
    b, m, n, d = 12, 700, 900, 32
    x, z, u, v = rand(b, m, d, dtype="bfloat16"), rand(b, n, d, dtype="bfloat16"), f32(b, m), zeros(b, n, dtype="float32")
    launched = run(column_potentials, (cdiv(n, 32), b), (x, z, u, v, m, n, 2.0), v, D=d, BM=128, BN=32, num_warps=4)
    return against(launched, lambda: -torch.logsumexp(x.float() @ z.float().mT / 2 + u[..., None], 1))


@triton.jit
def highest(a, b):
    return tl.maximum(a, b)


@triton.jit
def gained_over_highest(x_ptr, w_ptr, v_ptr, y_ptr, T, K: tl.constexpr, S: tl.constexpr, O: tl.constexpr, BT: tl.constexpr):
    # Signals of a product against their own highest value so far, a scan down the rows, are what the next dot takes.
    b = tl.program_id(0)
    t, k, s, o = tl.arange(0, BT), tl.arange(0, K), tl.arange(0, S), tl.arange(0, O)
    w = tl.load(w_ptr + k[:, None] * S + s[None, :])
    v = tl.load(v_ptr + s[:, None] * O + o[None, :])
    high = tl.full((S,), -1e9, tl.float32)
    for t0 in range(0, T, BT):
        x = tl.load(x_ptr + (b * T + t0 + t)[:, None] * K + k[None, :], mask=(t0 + t < T)[:, None], other=0.0)
        signal = tl.dot(x, w)
        so_far = tl.maximum(tl.associative_scan(signal, 0, highest), high[None, :])
        y = tl.dot((signal - so_far).to(v.dtype), v)
        tl.store(y_ptr + (b * T + t0 + t)[:, None] * O + o[None, :], y.to(y_ptr.dtype.element_ty), mask=(t0 + t < T)[:, None])
        high = tl.max(tl.where((t0 + t < T)[:, None], so_far, -1e9), axis=0)


@case
def signals_less_their_highest_so_far_into_a_product():
    b, t, k, s, o = 500, 250, 32, 64, 32
    x, w, v, y = rand(b, t, k), rand(k, s) / 6, rand(s, o) / 8, zeros(b, t, o)
    launched = run(gained_over_highest, (b,), (x, w, v, y, t), y, K=k, S=s, O=o, BT=64, num_warps=4, num_stages=2)

    def reference():
        z = x.float() @ w.float()
        return (z - z.cummax(1).values) @ v.float()

    return against(launched, reference)


@triton.jit
def sums_of_diagonals(ds_q_ptr, ds_k_ptr, out_ptr, HEADS, D: tl.constexpr, T: tl.constexpr):
    # A bias by distance gets the sums of the diagonals of a product: rows are moved by gathers, and then columns are summed.
    head, b = tl.program_id(0), tl.program_id(1)
    t, d = tl.arange(0, T), tl.arange(0, D)
    at = ((b * HEADS + head) * T + t)[:, None] * D + d[None, :]
    s = tl.dot(tl.load(ds_q_ptr + at), tl.load(ds_k_ptr + at).T)
    s = tl.where(t[:, None] >= t[None, :], s, 0.0)
    back = t[:, None] - t[None, :]
    moved = tl.gather(s, tl.maximum(back, 0), 1)
    tl.atomic_add(out_ptr + head * T + t, tl.sum(tl.where(back >= 0, moved, 0.0), axis=0), sem="relaxed")


@case
def sums_of_diagonals_of_products_by_gathers():
    batch, heads, t, d = 160, 16, 64, 64
    q, k, out = rand(batch, heads, t, d) / 8, rand(batch, heads, t, d), zeros(heads, t, dtype="float32")
    launched = run(sums_of_diagonals, (heads, batch), (q, k, out, heads), out, D=d, T=t, num_warps=4)

    def reference():
        s = (q.float() @ k.float().mT).sum(0)
        return torch.stack([s.diagonal(-i, 1, 2).sum(1) for i in range(t)], 1)

    return against(cleared(launched, out), reference)


@triton.jit
def network_gradient(x_ptr, dy_ptr, w1_ptr, w2_ptr, dx_ptr, M, HID, D: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr):
    # dx = ((dy W2') * [x W1 > 0]) W1': the hidden units in blocks; W1's block is the operand of two dots, once turned.
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    x = tl.load(x_ptr + m[:, None] * D + d[None, :], mask=(m < M)[:, None], other=0.0)
    dy = tl.load(dy_ptr + m[:, None] * D + d[None, :], mask=(m < M)[:, None], other=0.0)
    dx = tl.zeros((BM, D), tl.float32)
    for h0 in range(0, HID, BH):
        h = h0 + tl.arange(0, BH)
        w1 = tl.load(w1_ptr + d[:, None] * HID + h[None, :])
        w2 = tl.load(w2_ptr + h[None, :] * D + d[:, None])
        u = tl.dot(x, w1)
        du = tl.dot(dy, w2)
        du = tl.where(u > 0.0, du, du * 0.1).to(x.dtype)
        dx = tl.dot(du, w1.T, dx)
    tl.store(dx_ptr + m[:, None] * D + d[None, :], dx.to(dx_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def gradient_through_a_leaky_network_by_three_dots_a_step():
    m, hidden, d = 9000, 512, 64
    x, dy, w1, w2, dx = rand(m, d), rand(m, d), rand(d, hidden) / 8, rand(hidden, d) / 22, zeros(m, d)
    launched = run(network_gradient, (cdiv(m, 64),), (x, dy, w1, w2, dx, m, hidden), dx, D=d, BM=64, BH=64, num_warps=4, num_stages=3)

    def reference():
        u, du = x.float() @ w1.float(), dy.float() @ w2.float().t()
        return torch.where(u > 0, du, du * 0.1) @ w1.float().t()

    return against(launched, reference)


@triton.jit
def softmax_layer_gradient(x_ptr, w_ptr, label_ptr, dx_ptr, loss_ptr, M, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Loss and gradient of a layer and its softmax: one loop for the sums, and a second that makes scores again for (p - y) W.
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    x = tl.load(x_ptr + m[:, None] * D + d[None, :], mask=(m < M)[:, None], other=0.0)
    label = tl.load(label_ptr + m, mask=m < M, other=-1)
    top = tl.full((BM,), -1e30, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    own = tl.zeros((BM,), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        w = tl.load(w_ptr + n[:, None] * D + d[None, :], mask=(n < N)[:, None], other=0.0)
        s = tl.where((n < N)[None, :], tl.dot(x, w.T), -1e30)
        new = tl.maximum(top, tl.max(s, axis=1))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(s - new[:, None]), axis=1)
        own += tl.sum(tl.where(n[None, :] == label[:, None], s, 0.0), axis=1)
        top = new
    lse = top + tl.log(total)
    tl.store(loss_ptr + m, lse - own, mask=m < M)
    dx = tl.zeros((BM, D), tl.float32)
    for n0 in range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        w = tl.load(w_ptr + n[:, None] * D + d[None, :], mask=(n < N)[:, None], other=0.0)
        p = tl.exp(tl.where((n < N)[None, :], tl.dot(x, w.T), -1e30) - lse[:, None])
        p -= tl.where(n[None, :] == label[:, None], 1.0, 0.0)
        dx = tl.dot(p.to(w.dtype), w, dx)
    tl.store(dx_ptr + m[:, None] * D + d[None, :], dx, mask=(m < M)[:, None])


@case
def loss_and_gradient_of_a_layer_of_1500_classes_in_two_loops():
    m, n, d = 6000, 1500, 64
    x, w, label = rand(m, d, dtype="bfloat16"), rand(n, d, dtype="bfloat16") / 8, ints(0, n, m)
    dx, loss = zeros(m, d, dtype="float32"), zeros(m, dtype="float32")
    launched = run(softmax_layer_gradient, (cdiv(m, 64),), (x, w, label, dx, loss, m, n), (dx, loss), D=d, BM=64, BN=64, num_warps=4, num_stages=2)

    def reference():
        s = x.float() @ w.float().t()
        p = s.softmax(1) - F.one_hot(label.long(), n)
        return p @ w.float(), F.cross_entropy(s, label.long(), reduction="none")

    return against(launched, reference)


@triton.jit
def projected_heads_normed(x_ptr, w_ptr, g_ptr, angle_ptr, y_ptr, M, N, K, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Four heads of 32 in a tile of a product: each is normed by itself in three axes, and its pairs are turned by the token's angles.
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
        acc = tl.dot(x, tl.load(w_ptr + n[None, :] * K + k[:, None]), acc)
    heads = tl.reshape(acc, (BM, BN // D, D))
    r = tl.rsqrt(tl.sum(heads * heads, axis=2) / D + 1e-6)
    heads = heads * r[:, :, None] * tl.load(g_ptr + tl.arange(0, D))[None, None, :]
    even, odd = tl.split(tl.reshape(heads, (BM, BN // D, D // 2, 2)))
    angle = tl.load(angle_ptr + (m % T)[:, None] * (D // 2) + tl.arange(0, D // 2)[None, :])[:, None, :]
    c, s = tl.cos(angle), tl.sin(angle)
    turned = tl.reshape(tl.join(even * c - odd * s, even * s + odd * c), (BM, BN))
    tl.store(y_ptr + m[:, None] * N + n[None, :], turned.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def projected_heads_of_32_normed_and_turned_in_their_tile():
    m, n, k, t, d = 5000, 256, 256, 1000, 32
    x, w, g, angle, y = rand(m, k), rand(n, k) / 16, f32(d), uniform(t, d // 2) * 6, zeros(m, n)
    launched = run(projected_heads_normed, (cdiv(m, 32), n // 128), (x, w, g, angle, y, m, n, k, t), y, D=d, BM=32, BN=128, BK=64)

    def reference():
        z = (x.float() @ w.float().t()).reshape(m, n // d, d)
        z = z * (z.square().mean(2, keepdim=True) + 1e-6).rsqrt() * g
        a = angle[torch.arange(m, device=x.device) % t][:, None]
        z = torch.view_as_complex(z.reshape(m, n // d, d // 2, 2).contiguous()) * torch.polar(torch.ones_like(a), a)
        return torch.view_as_real(z).reshape(m, n)

    return against(launched, reference)


@triton.jit
def joined_if_open(open_left, left, open_right, right):
    return open_left & open_right, tl.where(open_right != 0, left, 0.0) + right


@triton.jit
def layer_summed_by_segments(x_ptr, w_ptr, id_ptr, out_ptr, M, K: tl.constexpr, N: tl.constexpr, BM: tl.constexpr):
    # A layer, then sums of runs of rows of one id within the tile: a scan down the rows of flags and values; ends add to memory.
    m, k, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, K), tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
    y = tl.maximum(tl.dot(x, tl.load(w_ptr + k[:, None] * N + n[None, :])), 0.0)
    mine = tl.load(id_ptr + m, mask=m < M, other=-1)
    before = tl.load(id_ptr + m - 1, mask=(m > 0) & (m < M), other=-2)
    after = tl.load(id_ptr + m + 1, mask=m + 1 < M, other=-2)
    go_on = (mine == before) & (tl.arange(0, BM) > 0)
    _, sums = tl.associative_scan((tl.broadcast_to(go_on.to(tl.int32)[:, None], (BM, N)), y), 0, joined_if_open)
    end = ((mine != after) | (tl.arange(0, BM) == BM - 1)) & (m < M)
    tl.atomic_add(out_ptr + mine[:, None] * N + n[None, :], sums, mask=end[:, None], sem="relaxed")


@case
def layer_then_sums_of_runs_by_a_scan_of_flags_and_values():
    m, k, n, segments = 40000, 64, 32, 3000
    x, w, out = rand(m, k), rand(k, n) / 8, zeros(segments, n, dtype="float32")
    ids = ints(0, segments, m).sort().values
    launched = run(layer_summed_by_segments, (cdiv(m, 128),), (x, w, ids, out, m), out, K=k, N=n, BM=128, num_warps=4)
    y = lambda: (x.float() @ w.float()).relu()  # noqa: E731
    return against(cleared(launched, out), lambda: torch.zeros_like(out).index_add(0, ids.long(), y()))


@triton.jit
def strongest_units(x_ptr, w_ptr, v_ptr, y_ptr, M, N, K, D: tl.constexpr, U: tl.constexpr, KEEP: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    # Only a row's strongest units stay: the product is sorted along its rows for the least that stays, and masked before the next dot.
    m, u, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, U), tl.arange(0, D)
    s = tl.zeros((BM, U), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
        s = tl.dot(x, tl.load(w_ptr + k[:, None] * U + u[None, :]), s)
    ordered = tl.sort(s, dim=1, descending=True)
    least = tl.sum(tl.where(u[None, :] == KEEP - 1, ordered, 0.0), axis=1)
    s = tl.where(s >= least[:, None], s, 0.0).to(v_ptr.dtype.element_ty)
    y = tl.dot(s, tl.load(v_ptr + u[:, None] * D + d[None, :]))
    tl.store(y_ptr + m[:, None] * D + d[None, :], y.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None])


@case
def strongest_nine_of_64_units_by_a_sort_between_dots():
    m, k, u, d, keep = 8000, 128, 64, 64, 9
    x, w, v, y = rand(m, k), rand(k, u) / 11, rand(u, d), zeros(m, d)
    launched = run(strongest_units, (cdiv(m, 32),), (x, w, v, y, m, u, k), y, D=d, U=u, KEEP=keep, BM=32, BK=32, num_warps=2)

    def reference():
        s = x.float() @ w.float()
        return torch.where(s >= s.sort(1, descending=True).values[:, keep - 1 : keep], s, 0.0).half().float() @ v.float()

    return against(launched, reference)


@triton.jit
def votes_of_nearest(x_ptr, proto_ptr, half_ptr, votes_ptr, T, D: tl.constexpr, P: tl.constexpr, BT: tl.constexpr):
    # A document's histogram of nearest prototypes: products less half their norms, the best along rows, and counts of a tile's winners.
    doc = tl.program_id(0)
    p, d = tl.arange(0, P), tl.arange(0, D)
    proto = tl.load(proto_ptr + p[None, :] * D + d[:, None])
    half = tl.load(half_ptr + p)
    votes = tl.zeros((P,), tl.int32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        x = tl.load(x_ptr + (doc * T + t)[:, None] * D + d[None, :], mask=(t < T)[:, None], other=0.0)
        best = tl.argmax(tl.dot(x, proto) - half[None, :], axis=1)
        votes += tl.histogram(best, P, mask=t < T)
    tl.store(votes_ptr + doc * P + p, votes.to(tl.float32) / T)


@case
def histograms_of_nearest_of_64_prototypes_a_document():
    docs, t, d, p = 800, 200, 64, 64
    proto = ints(-3, 4, p, d).half()
    x, votes = ints(-3, 4, docs, t, d).half(), zeros(docs, p, dtype="float32")
    half = proto.float().square().sum(1) / 2 + arange(p) / 128
    launched = run(votes_of_nearest, (docs,), (x, proto, half, votes, t), votes, D=d, P=p, BT=64, num_warps=4, num_stages=2)
    return against(launched, lambda: F.one_hot((x.float() @ proto.float().t() - half).argmax(2), p).float().mean(1))
