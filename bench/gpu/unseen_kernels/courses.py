"""Courses: states that run along a sequence, by chunks with dots, by steps in registers, forth and back."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import against, arange, case, cdiv, f32, ints, rand, run, uniform, zeros


@triton.jit
def decayed_chunks(q_ptr, k_ptr, v_ptr, g_ptr, o_ptr, end_ptr, T, C: tl.constexpr, K: tl.constexpr, V: tl.constexpr):
    # Linear attention, a decay a token: the state of one head's slice of values stays in registers from chunk to chunk.
    b, part = tl.program_id(0), tl.program_id(1)
    c, k, v = tl.arange(0, C), tl.arange(0, K), part * V + tl.arange(0, V)
    wide = tl.num_programs(1) * V
    state = tl.zeros((K, V), tl.float32)
    for t0 in range(0, T, C):
        at = b * T + t0 + c
        g = tl.cumsum(tl.load(g_ptr + at), 0)
        whole = tl.sum(tl.where(c == C - 1, g, 0.0), 0)
        q = tl.load(q_ptr + at[:, None] * K + k[None, :])
        kt = tl.load(k_ptr + at[None, :] * K + k[:, None])
        x = tl.load(v_ptr + at[:, None] * wide + v[None, :])
        a = tl.dot(q, kt) * tl.exp(tl.where(c[:, None] >= c[None, :], g[:, None] - g[None, :], float("-inf")))
        o = tl.dot(q, state.to(q.dtype)) * tl.exp(g)[:, None]
        o = tl.dot(a.to(q.dtype), x, o)
        tl.store(o_ptr + at[:, None] * wide + v[None, :], o.to(o_ptr.dtype.element_ty))
        later = (kt * tl.exp(whole - g)[None, :]).to(q.dtype)
        state = tl.dot(later, x, state * tl.exp(whole))
    tl.store(end_ptr + (b * K + k)[:, None] * wide + v[None, :], state)


def decayed(q, k, v, g):
    """The same token by token, in float32 and by all pairs."""
    q, k, v = q.float(), k.float(), v.float()
    sums = g.double().cumsum(1)
    t = q.shape[1]
    by = torch.exp((sums[:, :, None] - sums[:, None]).masked_fill(arange(t)[:, None] < arange(t)[None, :], float("-inf"))).float()
    end = (k * torch.exp(sums[:, -1:] - sums).float()[..., None]).mT @ v
    return ((q @ k.mT) * by) @ v, end


@case
def course_of_decayed_chunks_state_in_registers():
    b, t, k, v = 32, 1024, 64, 128
    q, key, x = rand(b, t, k) / 8, rand(b, t, k) / 8, rand(b, t, v)
    g = -uniform(b, t) / 10
    o, end = zeros(b, t, v), zeros(b, k, v, dtype="float32")
    launched = run(decayed_chunks, (b, v // 32), (q, key, x, g, o, end, t), (o, end), C=64, K=k, V=32, num_warps=4, num_stages=2)
    return against(launched, lambda: decayed(q, key, x, g))


@triton.jit
def decayed_chunks_back(q_ptr, k_ptr, do_ptr, g_ptr, dv_ptr, T, C: tl.constexpr, K: tl.constexpr, V: tl.constexpr):
    # Gradients of values: the state's gradient comes from behind.
    b, part = tl.program_id(0), tl.program_id(1)
    c, k, v = tl.arange(0, C), tl.arange(0, K), part * V + tl.arange(0, V)
    wide = tl.num_programs(1) * V
    dstate = tl.zeros((K, V), tl.float32)
    for step in range(T // C):
        at = b * T + T - C - step * C + c
        g = tl.cumsum(tl.load(g_ptr + at), 0)
        whole = tl.max(tl.where(c == C - 1, g, float("-inf")), 0)
        q = tl.load(q_ptr + at[:, None] * K + k[None, :])
        key = tl.load(k_ptr + at[:, None] * K + k[None, :])
        do = tl.load(do_ptr + at[:, None] * wide + v[None, :])
        at_ = tl.dot(key, q.T) * tl.where(c[:, None] <= c[None, :], tl.exp(tl.minimum(g[None, :] - g[:, None], 0.0)), 0.0)
        dv = tl.dot(at_.to(do.dtype), do)
        dv = tl.dot((key * tl.exp(whole - g)[:, None]).to(do.dtype), dstate.to(do.dtype), dv)
        tl.store(dv_ptr + at[:, None] * wide + v[None, :], dv.to(dv_ptr.dtype.element_ty))
        dstate = tl.dot((q * tl.exp(g)[:, None]).to(do.dtype).T, do, dstate * tl.exp(whole))


@case
def course_back_through_decayed_chunks_to_values():
    b, t, k, v = 48, 768, 64, 64
    q, key, do = rand(b, t, k) / 8, rand(b, t, k) / 8, rand(b, t, v)
    g = -uniform(b, t) / 10
    dv = zeros(b, t, v)
    launched = run(decayed_chunks_back, (b, 2), (q, key, do, g, dv, t), dv, C=32, K=k, V=32, num_warps=2, num_stages=2)

    def reference():
        sums = g.double().cumsum(1)
        by = torch.exp((sums[:, :, None] - sums[:, None]).masked_fill(arange(t)[:, None] < arange(t)[None, :], float("-inf"))).float()
        return ((q.float() @ key.float().mT) * by).mT @ do.float()

    return against(launched, reference)


@triton.jit
def gates_a_channel(q_ptr, k_ptr, v_ptr, a_ptr, o_ptr, T, C: tl.constexpr, K: tl.constexpr, V: tl.constexpr):
    # A decay a token and channel of keys: queries grow and keys shrink by the same sums within chunks of 16.
    b = tl.program_id(0)
    c, k, v = tl.arange(0, C), tl.arange(0, K), tl.program_id(1) * V + tl.arange(0, V)
    wide = tl.num_programs(1) * V
    state = tl.zeros((V, K), tl.float32)
    at = (b * T + c)[:, None] * K + k[None, :]
    vat = (b * T + c)[:, None] * wide + v[None, :]
    for _ in range(0, T, C):
        a = tl.cumsum(tl.load(a_ptr + at).to(tl.float32), 0)
        end = tl.sum(tl.where((c == C - 1)[:, None], a, 0.0), 0)
        q = (tl.load(q_ptr + at) * tl.exp(a)).to(tl.bfloat16)
        key = tl.load(k_ptr + at).to(tl.float32)
        x = tl.load(v_ptr + vat)
        s = tl.where(c[:, None] >= c[None, :], tl.dot(q, (key * tl.exp(-a)).to(tl.bfloat16).T), 0.0)
        o = tl.dot(s.to(tl.bfloat16), x) + tl.dot(q, state.to(tl.bfloat16).T)
        tl.store(o_ptr + vat, o.to(tl.bfloat16))
        state = tl.dot(x.T, (key * tl.exp(end[None, :] - a)).to(tl.bfloat16), state * tl.exp(end)[None, :])
        at += C * K
        vat += C * wide


@case
def course_of_chunks_of_16_gated_a_channel():
    b, t, k, v = 24, 640, 128, 128
    q, key, x = rand(b, t, k, dtype="bfloat16") / 8, rand(b, t, k, dtype="bfloat16") / 8, rand(b, t, v, dtype="bfloat16")
    a = (-uniform(b, t, k) / 8).bfloat16()
    o = zeros(b, t, v, dtype="bfloat16")
    launched = run(gates_a_channel, (b, v // 64), (q, key, x, a, o, t), o, C=16, K=k, V=64, num_warps=4, num_stages=1)

    def reference():
        state, out = torch.zeros(b, k, v, device=q.device), []
        for i in range(t):
            state = state * a[:, i].float().exp()[:, :, None] + key[:, i].float()[:, :, None] * x[:, i].float()[:, None]
            out.append((q[:, i].float()[:, None] @ state)[:, 0])
        return torch.stack(out, 1)

    return against(launched, reference)


@triton.jit
def delta_rule_by_substitution(q_ptr, k_ptr, v_ptr, beta_ptr, o_ptr, T, C: tl.constexpr, K: tl.constexpr, V: tl.constexpr):
    # Corrections of a chunk are found row by row: row r is what is left of it after the rows before, by masked sums.
    b = tl.program_id(0)
    c, k, v = tl.arange(0, C), tl.arange(0, K), tl.program_id(1) * V + tl.arange(0, V)
    wide = tl.num_programs(1) * V
    state = tl.zeros((K, V), tl.float32)
    for t0 in range(0, T, C):
        at = b * T + t0 + c
        key = tl.load(k_ptr + at[:, None] * K + k[None, :])
        q = tl.load(q_ptr + at[:, None] * K + k[None, :])
        x = tl.load(v_ptr + at[:, None] * wide + v[None, :]).to(tl.float32)
        beta = tl.load(beta_ptr + at)
        low = state.to(key.dtype)
        u = (x - tl.dot(key, low)) * beta[:, None]
        a = tl.where(c[:, None] > c[None, :], tl.dot(key, key.T) * beta[:, None], 0.0)
        for r in range(1, C):
            row = tl.sum(tl.where(c[:, None] == r, a, 0.0), 0)
            u -= tl.where(c[:, None] == r, tl.sum(row[:, None] * u, 0)[None, :], 0.0)
        s = tl.where(c[:, None] >= c[None, :], tl.dot(q, key.T), 0.0)
        o = tl.dot(q, low) + tl.dot(s.to(key.dtype), u.to(key.dtype))
        tl.store(o_ptr + at[:, None] * wide + v[None, :], o.to(o_ptr.dtype.element_ty))
        state += tl.dot(key.T, u.to(key.dtype))


@case
def course_of_a_delta_rule_by_rows_of_chunks():
    b, t, k, v = 32, 256, 64, 64
    q, key, x = rand(b, t, k) / 8, F.normalize(rand(b, t, k), dim=2), rand(b, t, v)
    beta = uniform(b, t)
    o = zeros(b, t, v)
    launched = run(delta_rule_by_substitution, (b, v // 32), (q, key, x, beta, o, t), o, C=16, K=k, V=32, num_warps=1, num_stages=2)

    def reference():
        state, out = torch.zeros(b, k, v, device=q.device), []
        for i in range(t):
            ki = key[:, i].float()
            u = (x[:, i].float() - (ki[:, None] @ state)[:, 0]) * beta[:, i, None]
            state = state + ki[:, :, None] * u[:, None]
            out.append((q[:, i].float()[:, None] @ state)[:, 0])
        return torch.stack(out, 1)

    return against(launched, reference)


@triton.jit
def rotating_states(x_ptr, mag_ptr, angle_ptr, re_ptr, im_ptr, T, N, B: tl.constexpr, UNROLL: tl.constexpr):
    # Complex decays a channel: four steps are read before any is taken, and written after.
    n = tl.program_id(0) * B + tl.arange(0, B)
    r = tl.load(mag_ptr + n, mask=n < N, other=0.0)
    w = tl.load(angle_ptr + n, mask=n < N, other=0.0)
    ar, ai = r * tl.cos(w), r * tl.sin(w)
    gain = tl.sqrt(1.0 - r * r)
    hr = tl.zeros((B,), tl.float32)
    hi = tl.zeros((B,), tl.float32)
    u = tl.arange(0, UNROLL)
    base = tl.program_id(1) * T * N
    for t0 in range(0, T, UNROLL):
        at = base + (t0 + u)[:, None] * N + n[None, :]
        x = tl.load(x_ptr + at, mask=n[None, :] < N, other=0.0).to(tl.float32) * gain[None, :]
        yr = tl.zeros((UNROLL, B), tl.float32)
        yi = tl.zeros((UNROLL, B), tl.float32)
        for i in tl.static_range(UNROLL):
            now = tl.sum(tl.where(u[:, None] == i, x, 0.0), 0)
            hr, hi = ar * hr - ai * hi + now, ar * hi + ai * hr
            yr = tl.where(u[:, None] == i, hr[None, :], yr)
            yi = tl.where(u[:, None] == i, hi[None, :], yi)
        tl.store(re_ptr + at, yr.to(re_ptr.dtype.element_ty), mask=n[None, :] < N)
        tl.store(im_ptr + at, yi.to(im_ptr.dtype.element_ty), mask=n[None, :] < N)


@case
def course_of_states_that_turn_four_steps_at_once():
    b, t, n = 16, 256, 1000
    x, mag, angle = rand(b, t, n), uniform(n) / 2 + 0.4, uniform(n) * 3
    re, im = zeros(b, t, n), zeros(b, t, n)
    launched = run(rotating_states, (cdiv(n, 128), b), (x, mag, angle, re, im, t, n), (re, im), B=128, UNROLL=4, num_warps=4)

    def reference():
        a = torch.polar(mag, angle)
        h, out = torch.zeros(b, n, dtype=torch.complex64, device=x.device), []
        for i in range(t):
            h = a * h + (1 - mag * mag).sqrt() * x[:, i].float()
            out.append(h)
        h = torch.stack(out, 1)
        return h.real, h.imag

    return against(launched, reference)


@triton.jit
def lstm_of_four_dots(z_ptr, w_ptr, h_ptr, c_ptr, T, B, BB: tl.constexpr, H: tl.constexpr):
    # Sixteen samples a program go through time; four squares of weights stay, inputs were projected before.
    b, i, j = tl.program_id(0) * BB + tl.arange(0, BB), tl.arange(0, H), tl.arange(0, H)
    wi = tl.load(w_ptr + i[:, None] * 4 * H + j[None, :])
    wf = tl.load(w_ptr + i[:, None] * 4 * H + H + j[None, :])
    wg = tl.load(w_ptr + i[:, None] * 4 * H + 2 * H + j[None, :])
    wo = tl.load(w_ptr + i[:, None] * 4 * H + 3 * H + j[None, :])
    h = tl.zeros((BB, H), w_ptr.dtype.element_ty)
    c = tl.zeros((BB, H), tl.float32)
    for t in range(T):
        z = z_ptr + (t * B + b)[:, None] * 4 * H + j[None, :]
        gi = tl.sigmoid(tl.dot(h, wi, tl.load(z).to(tl.float32)))
        gf = tl.sigmoid(tl.dot(h, wf, tl.load(z + H).to(tl.float32)) + 1.0)
        gg = 2.0 * tl.sigmoid(2.0 * tl.dot(h, wg, tl.load(z + 2 * H).to(tl.float32))) - 1.0
        go = tl.sigmoid(tl.dot(h, wo, tl.load(z + 3 * H).to(tl.float32)))
        c = gf * c + gi * gg
        h = (go * (2.0 * tl.sigmoid(2.0 * c) - 1.0)).to(h.dtype)
        tl.store(h_ptr + (t * B + b)[:, None] * H + j[None, :], h)
    tl.store(c_ptr + b[:, None] * H + j[None, :], c)


@case
def course_of_an_lstm_of_four_resident_squares():
    t, b, h = 48, 1600, 64
    z, w = rand(t, b, 4 * h) / 2, rand(h, 4 * h) / 12
    hs, c = zeros(t, b, h), zeros(b, h, dtype="float32")
    launched = run(lstm_of_four_dots, (b // 16,), (z, w, hs, c, t, b), (hs, c), BB=16, H=h, num_warps=4, num_stages=2)

    def reference():
        state, cell, out = torch.zeros(b, h, device=z.device), torch.zeros(b, h, device=z.device), []
        for s in range(t):
            i, f, g, o = (z[s].float() + state @ w.float()).chunk(4, 1)
            cell = (f + 1).sigmoid() * cell + i.sigmoid() * g.tanh()
            state = (o.sigmoid() * cell.tanh()).half().float()
            out.append(state)
        return torch.stack(out), cell

    return against(launched, reference)


@triton.jit
def _follow(a, x, b, y):
    return a * b, x * b + y


@triton.jit
def carried_scan(f_ptr, x_ptr, y_ptr, T, N, BT: tl.constexpr, BN: tl.constexpr):
    # Gates in logits; blocks of 64 tokens are scanned, and the block's last row is what the next begins with.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    r = tl.arange(0, BT)
    base = tl.program_id(1) * T * N
    carry = tl.zeros((BN,), tl.float32)
    for t0 in range(0, T, BT):
        at = base + (t0 + r)[:, None] * N + n[None, :]
        ok = (t0 + r < T)[:, None] & (n < N)[None, :]
        f = tl.sigmoid(tl.load(f_ptr + at, mask=ok, other=0.0).to(tl.float32))
        x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32) * (1.0 - f)
        a, y = tl.associative_scan((f, x), 0, _follow)
        y += a * carry[None, :]
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=ok)
        carry = tl.sum(tl.where((r == BT - 1)[:, None], y, 0.0), 0)


@case
def course_of_gates_by_scans_with_a_row_carried():
    b, t, n = 24, 500, 700
    f, x = rand(b, t, n, dtype="bfloat16"), rand(b, t, n, dtype="bfloat16")
    y = zeros(b, t, n, dtype="bfloat16")
    launched = run(carried_scan, (cdiv(n, 32), b), (f, x, y, t, n), y, BT=64, BN=32, num_warps=4)

    def reference():
        h, out = torch.zeros(b, n, device=x.device), []
        for i in range(t):
            g = f[:, i].float().sigmoid()
            h = g * h + (1 - g) * x[:, i].float()
            out.append(h)
        return torch.stack(out, 1)

    return against(launched, reference)


@triton.jit
def positive_features(q_ptr, k_ptr, v_ptr, o_ptr, T, C: tl.constexpr, D: tl.constexpr):
    # Features elu + 1, numerators by dots and denominators by running sums, of heads woven into tokens, (T, H, 3 D).
    h, wide = tl.program_id(0), tl.num_programs(0) * D
    c, d = tl.arange(0, C), tl.arange(0, D)
    state = tl.zeros((D, D), tl.float32)
    z = tl.zeros((D,), tl.float32)
    for t0 in tl.range(0, T, C, num_stages=3):
        at = (t0 + c)[:, None] * wide + h * D + d[None, :]
        q = tl.load(q_ptr + at).to(tl.float32)
        k = tl.load(k_ptr + at).to(tl.float32)
        q = tl.where(q > 0.0, q + 1.0, tl.exp(q))
        k = tl.where(k > 0.0, k + 1.0, tl.exp(k))
        v = tl.load(v_ptr + at)
        s = tl.where(c[:, None] >= c[None, :], tl.dot(q.to(v.dtype), k.to(v.dtype).T), 0.0)
        top = tl.dot(s.to(v.dtype), v, tl.dot(q.to(v.dtype), state.to(v.dtype)))
        low = tl.sum(q * (tl.cumsum(k, 0) + z[None, :]), 1)
        tl.store(o_ptr + at, (top / low[:, None]).to(o_ptr.dtype.element_ty))
        state += tl.dot(k.to(v.dtype).T, v)
        z += tl.sum(k, 0)


@case
def course_of_positive_features_with_running_denominators():
    t, h, d = 1024, 96, 64
    q, k, v = (rand(t, h, d, dtype="bfloat16") for _ in range(3))
    o = zeros(t, h, d, dtype="bfloat16")
    launched = run(positive_features, (h,), (q, k, v, o, t), o, C=64, D=d, num_warps=8, num_stages=2)

    def reference():
        a, b, c = ((F.elu(z.float()) + 1 if i < 2 else z.float()).transpose(0, 1) for i, z in enumerate((q, k, v)))
        s = (a @ b.mT).tril()
        return ((s @ c) / s.sum(2, keepdim=True)).transpose(0, 1)

    return against(launched, reference)


@triton.jit
def stable_matrix_memory(q_ptr, k_ptr, v_ptr, i_ptr, f_ptr, o_ptr, T, C: tl.constexpr, D: tl.constexpr):
    # Exponential input gates: a running maximum keeps the matrix and its normalizer small, and chunks agree on it.
    b = tl.program_id(0)
    c, d = tl.arange(0, C), tl.arange(0, D)
    mat = tl.zeros((D, D), tl.float32)
    norm = tl.zeros((D,), tl.float32)
    m = -1e30
    for t0 in range(0, T, C):
        at = b * T + t0 + c
        f = tl.cumsum(tl.load(f_ptr + at), 0)
        gate = tl.load(i_ptr + at)
        whole = tl.sum(tl.where(c == C - 1, f, 0.0), 0)
        w = tl.where(c[:, None] >= c[None, :], f[:, None] - f[None, :] + gate[None, :], -1e30)
        own = tl.maximum(tl.max(w, 1), f + m)
        q = tl.load(q_ptr + at[:, None] * D + d[None, :])
        k = tl.load(k_ptr + at[:, None] * D + d[None, :])
        v = tl.load(v_ptr + at[:, None] * D + d[None, :])
        s = tl.dot(q, k.T) * tl.exp(w - own[:, None])
        old = tl.exp(f + m - own)
        top = tl.dot(s.to(v.dtype), v, tl.dot(q, mat.to(v.dtype)) * old[:, None])
        low = tl.sum(s, 1) + tl.sum(q.to(tl.float32) * norm[None, :], 1) * old
        low = tl.maximum(tl.abs(low), 1.0)
        tl.store(o_ptr + at[:, None] * D + d[None, :], (top / low[:, None]).to(o_ptr.dtype.element_ty))
        to_end = whole - f + gate
        new = tl.maximum(whole + m, tl.max(to_end, 0))
        by = tl.exp(to_end - new)
        scaled = (k * by[:, None]).to(v.dtype)
        mat = tl.dot(scaled.T, v, mat * tl.exp(whole + m - new))
        norm = norm * tl.exp(whole + m - new) + tl.sum(k.to(tl.float32) * by[:, None], 0)
        m = new


@case
def course_of_a_matrix_memory_with_exponential_gates():
    b, t, d = 96, 512, 64
    q, k, v = rand(b, t, d) / 8, rand(b, t, d), rand(b, t, d)
    gate, forget = f32(b, t) * 2, F.logsigmoid(f32(b, t) + 3)
    o = zeros(b, t, d)
    launched = run(stable_matrix_memory, (b,), (q, k, v, gate, forget, o, t), o, C=32, D=d, num_warps=4, num_stages=2)

    def reference():
        sums = forget.double().cumsum(1)
        w = (sums[:, :, None] - sums[:, None] + gate[:, None]).masked_fill(arange(t)[:, None] < arange(t)[None, :], float("-inf"))
        own = w.amax(2, keepdim=True)
        s = (q.float() @ k.float().mT) * torch.exp(w - own).float()
        return (s @ v.float()) / s.sum(2, keepdim=True).abs().clamp(min=1)

    return against(launched, reference)


@triton.jit
def selective_steps(x_ptr, dt_ptr, a_ptr, bc_ptr, skip_ptr, z_ptr, y_ptr, T, CH, BD: tl.constexpr, N: tl.constexpr):
    # A step a token over (channels, 16 states) by broadcasts; B and C of a token lie together; gated by silu of z at once.
    d, n = tl.program_id(0) * BD + tl.arange(0, BD), tl.arange(0, N)
    base = tl.program_id(1) * T
    a = -tl.exp(tl.load(a_ptr + d[:, None] * N + n[None, :]))
    skip = tl.load(skip_ptr + d)
    h = tl.zeros((BD, N), tl.float32)
    for t in range(T):
        at = (base + t) * CH + d
        x, dt = tl.load(x_ptr + at).to(tl.float32), tl.load(dt_ptr + at).to(tl.float32)
        dt = tl.where(dt > 20.0, dt, tl.log(1.0 + tl.exp(dt)))
        b = tl.load(bc_ptr + (base + t) * 2 * N + n)
        c = tl.load(bc_ptr + (base + t) * 2 * N + N + n)
        h = tl.exp(dt[:, None] * a) * h + (dt * x)[:, None] * b[None, :]
        y = tl.sum(h * c[None, :], 1) + skip * x
        z = tl.load(z_ptr + at).to(tl.float32)
        tl.store(y_ptr + at, (y * z * tl.sigmoid(z)).to(y_ptr.dtype.element_ty))


@case
def course_of_selective_steps_of_16_states_one_warp():
    b, t, ch, n = 8, 256, 1024, 16
    x, dt, z = rand(b, t, ch), rand(b, t, ch) - 1, rand(b, t, ch)
    a, bc, skip = uniform(ch, n) * 2, f32(b, t, 2 * n), f32(ch)
    y = zeros(b, t, ch)
    launched = run(selective_steps, (ch // 32, b), (x, dt, a, bc, skip, z, y, t, ch), y, BD=32, N=n, num_warps=1, num_stages=3)

    def reference():
        h, out = torch.zeros(b, ch, n, device=x.device), []
        for i in range(t):
            d, xi = F.softplus(dt[:, i].float()), x[:, i].float()
            h = torch.exp(-d[:, :, None] * a.exp()) * h + (d * xi)[:, :, None] * bc[:, i, None, :n]
            out.append((h * bc[:, i, None, n:]).sum(2) + skip * xi)
        return torch.stack(out, 1) * F.silu(z.float())

    return against(launched, reference)


@triton.jit
def forward_of_a_chain(obs_ptr, trans_ptr, emit_ptr, first_ptr, logp_ptr, alpha_ptr, T, SYMBOLS, B: tl.constexpr, S: tl.constexpr):
    # Probabilities of 32 states of 16 sequences a program through a matrix in tf32, brought back to a sum of one at each step.
    b, s = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, S)
    trans = tl.load(trans_ptr + s[:, None] * S + s[None, :])
    obs = tl.load(obs_ptr + b * T)
    alpha = tl.load(first_ptr + s)[None, :] * tl.load(emit_ptr + s[None, :] * SYMBOLS + obs[:, None])
    total = tl.sum(alpha, 1)
    alpha = alpha / total[:, None]
    logp = tl.log(total)
    for t in range(1, T):
        obs = tl.load(obs_ptr + b * T + t)
        alpha = tl.dot(alpha, trans, input_precision="tf32") * tl.load(emit_ptr + s[None, :] * SYMBOLS + obs[:, None])
        total = tl.sum(alpha, 1)
        alpha = alpha / total[:, None]
        logp += tl.log(total)
    tl.store(logp_ptr + b, logp)
    tl.store(alpha_ptr + b[:, None] * S + s[None, :], alpha)


@case
def course_of_hidden_states_of_chains_by_small_dots():
    b, t, s, symbols = 4096, 96, 32, 40
    obs = ints(0, symbols, b, t)
    trans, emit, first = f32(s, s).softmax(1), f32(s, symbols).softmax(1), f32(s).softmax(0)
    logp, alpha = zeros(b, dtype="float32"), zeros(b, s, dtype="float32")
    launched = run(forward_of_a_chain, (b // 16,), (obs, trans, emit, first, logp, alpha, t, symbols), (logp, alpha), B=16, S=s, num_warps=2)

    def reference():
        a = first * emit[:, obs[:, 0].long()].t()
        p = a.sum(1).log()
        a = a / a.sum(1, keepdim=True)
        for i in range(1, t):
            a = (a @ trans) * emit[:, obs[:, i].long()].t()
            p = p + a.sum(1).log()
            a = a / a.sum(1, keepdim=True)
        return p, a

    return against(launched, reference)


@triton.jit
def weights_learned_on_the_way(q_ptr, k_ptr, v_ptr, eta_ptr, w_ptr, o_ptr, T, C: tl.constexpr, D: tl.constexpr):
    # A layer whose weights take a gradient step of squared errors after each 16 tokens, with momentum, and answers before it.
    b = tl.program_id(0)
    c, i, j = tl.arange(0, C), tl.arange(0, D), tl.arange(0, D)
    w = tl.load(w_ptr + i[:, None] * D + j[None, :])
    speed = tl.zeros((D, D), tl.float32)
    for t0 in range(0, T, C):
        at = (b * T + t0 + c)[:, None] * D + i[None, :]
        k, v, q = tl.load(k_ptr + at), tl.load(v_ptr + at), tl.load(q_ptr + at)
        eta = tl.load(eta_ptr + b * T + t0 + c)
        low = w.to(k.dtype)
        tl.store(o_ptr + at, tl.dot(q, low).to(o_ptr.dtype.element_ty))
        error = (tl.dot(k, low) - v.to(tl.float32)) * eta[:, None]
        speed = 0.5 * speed + tl.dot(tl.trans(k), error.to(k.dtype))
        w -= speed


@case
def course_of_weights_that_learn_every_16_tokens():
    b, t, d = 160, 384, 64
    q, k, v = rand(b, t, d) / 8, F.normalize(rand(b, t, d), dim=2), rand(b, t, d)
    eta, w = uniform(b, t) / 4, f32(d, d) / 8
    o = zeros(b, t, d)
    launched = run(weights_learned_on_the_way, (b,), (q, k, v, eta, w, o, t), o, C=16, D=d, num_warps=4, num_stages=3)

    def reference():
        ws, speed, out = w.expand(b, d, d).clone(), 0.0, []
        for s in range(0, t, 16):
            kk, vv, qq = (z[:, s : s + 16].float() for z in (k, v, q))
            out.append(qq @ ws)
            speed = 0.5 * speed + kk.mT @ ((kk @ ws - vv) * eta[:, s : s + 16, None])
            ws = ws - speed
        return torch.cat(out, 1)

    return against(launched, reference)


@triton.jit
def gradients_from_both_states(q_ptr, k_ptr, v_ptr, do_ptr, s_ptr, ds_ptr, dq_ptr, dk_ptr, T, CHUNKS, C: tl.constexpr, D: tl.constexpr, V: tl.constexpr, BV: tl.constexpr):
    # Queries' and keys' gradients of a chunk: from the state before, the state's gradient behind, and the chunk itself.
    b, chunk = tl.program_id(1), tl.program_id(0)
    c, d = tl.arange(0, C), tl.arange(0, D)
    at = b * T + chunk * C + c
    dq = tl.zeros((C, D), tl.float32)
    dk = tl.zeros((C, D), tl.float32)
    ds = tl.zeros((C, C), tl.float32)
    for v0 in range(0, V, BV):
        e = v0 + tl.arange(0, BV)
        v = tl.load(v_ptr + at[:, None] * V + e[None, :])
        do = tl.load(do_ptr + at[:, None] * V + e[None, :])
        state = tl.load(s_ptr + ((b * CHUNKS + chunk) * D + d)[None, :] * V + e[:, None])
        dstate = tl.load(ds_ptr + ((b * CHUNKS + chunk) * D + d)[None, :] * V + e[:, None])
        dq = tl.dot(do, state, dq)
        dk = tl.dot(v, dstate, dk)
        ds = tl.dot(do, v.T, ds)
    ds = tl.where(c[:, None] >= c[None, :], ds, 0.0).to(q_ptr.dtype.element_ty)
    q = tl.load(q_ptr + at[:, None] * D + d[None, :])
    k = tl.load(k_ptr + at[:, None] * D + d[None, :])
    tl.store(dq_ptr + at[:, None] * D + d[None, :], tl.dot(ds, k, dq).to(dq_ptr.dtype.element_ty))
    tl.store(dk_ptr + at[:, None] * D + d[None, :], tl.dot(ds.T, q, dk).to(dk_ptr.dtype.element_ty))


@case
def course_gradients_of_chunks_from_states_on_both_sides():
    b, t, d, v, c = 16, 1024, 128, 256, 64
    q, k, x, do = rand(b, t, d), rand(b, t, d), rand(b, t, v), rand(b, t, v)
    s, ds = rand(b, t // c, d, v), rand(b, t // c, d, v)
    dq, dk = zeros(b, t, d, dtype="float32"), zeros(b, t, d, dtype="float32")
    args = q, k, x, do, s, ds, dq, dk, t, t // c
    launched = run(gradients_from_both_states, (t // c, b), args, (dq, dk), C=c, D=d, V=v, BV=32, num_warps=8, num_stages=3)

    def reference():
        a, g, e, h = (z.float().reshape(b, t // c, c, -1) for z in (q, k, x, do))
        w = (h @ e.mT).tril()
        dq, dk = h @ s.float().mT + w @ g, e @ ds.float().mT + w.mT @ a
        return dq.reshape(b, t, d), dk.reshape(b, t, d)

    return against(launched, reference)


@triton.jit
def selective_back(a_ptr, h_ptr, dy_ptr, dx_ptr, da_ptr, T, N, B: tl.constexpr):
    # Gradients of h = a h + x from the end, by pointers that step back; a's gradient needs the state before.
    n = tl.program_id(0) * B + tl.arange(0, B)
    ok = n < N
    at = (tl.program_id(1) * T + T - 1) * N + n
    dh = tl.zeros((B,), tl.float32)
    for t in range(T - 1, -1, -1):
        dh += tl.load(dy_ptr + at, mask=ok, other=0.0).to(tl.float32)
        before = tl.load(h_ptr + at - N, mask=ok & (t > 0), other=0.0).to(tl.float32)
        a = tl.load(a_ptr + at, mask=ok, other=0.0).to(tl.float32)
        tl.store(dx_ptr + at, dh.to(dx_ptr.dtype.element_ty), mask=ok)
        tl.store(da_ptr + at, (dh * before * a * (1.0 - a)).to(da_ptr.dtype.element_ty), mask=ok)
        dh *= a
        at -= N


@case
def course_back_step_by_step_to_gates_and_inputs():
    b, t, n = 32, 200, 1500
    h, dy = rand(b, t, n), rand(b, t, n)
    a = uniform(b, t, n).half()
    dx, da = zeros(b, t, n), zeros(b, t, n)
    launched = run(selective_back, (cdiv(n, 256), b), (a, h, dy, dx, da, t, n), (dx, da), B=256, num_warps=8, num_stages=4)

    def reference():
        dh, one, two = torch.zeros(b, n, device=h.device), [], []
        for i in range(t - 1, -1, -1):
            dh = dh + dy[:, i].float()
            g = a[:, i].float()
            one.append(dh)
            two.append(dh * (h[:, i - 1].float() if i else 0.0) * g * (1 - g))
            dh = dh * g
        return torch.stack(one[::-1], 1), torch.stack(two[::-1], 1)

    return against(launched, reference)


@triton.jit
def tracked_covariances(z_ptr, f_ptr, noise_ptr, p_ptr, x_ptr, T, B: tl.constexpr, S: tl.constexpr):
    # Filters of 16 states seen through their first: covariances by dots of three axes, gains by a row, four filters a program.
    b, i, j = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, S), tl.arange(0, S)
    f = tl.broadcast_to(tl.load(f_ptr + i[:, None] * S + j[None, :])[None, :, :], (B, S, S))
    eye = (i[:, None] == j[None, :]).to(tl.float32)[None, :, :]
    p = tl.zeros((B, S, S), tl.float32) + eye
    x = tl.zeros((B, S), tl.float32)
    noise = tl.load(noise_ptr + b)
    for t in range(T):
        x = tl.sum(f * x[:, None, :], 2)
        p = tl.dot(tl.dot(f, p, input_precision="ieee"), tl.permute(f, (0, 2, 1)), input_precision="ieee") + 0.01 * eye
        row = tl.sum(tl.where((i == 0)[None, :, None], p, 0.0), 1)
        var = tl.sum(tl.where((j == 0)[None, :], row, 0.0), 1) + noise
        gain = row / var[:, None]
        seen = tl.load(z_ptr + b * T + t) - tl.sum(tl.where((i == 0)[None, :], x, 0.0), 1)
        x += gain * seen[:, None]
        p -= gain[:, :, None] * row[:, None, :]
    tl.store(x_ptr + b[:, None] * S + i[None, :], x)
    tl.store(p_ptr + b[:, None, None] * S * S + i[None, :, None] * S + j[None, None, :], p)


@case
def course_of_covariances_by_dots_of_three_axes_ieee():
    n, t, s = 1024, 12, 16
    z, noise = f32(n, t), uniform(n) + 0.5
    f = torch.linalg.qr(torch.randn(s, s))[0].contiguous().to(z.device) * 0.9
    p, x = zeros(n, s, s, dtype="float32"), zeros(n, s, dtype="float32")
    launched = run(tracked_covariances, (n // 4,), (z, f, noise, p, x, t), (p, x), B=4, S=s, num_warps=4)

    def reference():
        cov, mean = torch.eye(s, device=z.device).expand(n, s, s), torch.zeros(n, s, device=z.device)
        for i in range(t):
            mean = mean @ f.t()
            cov = f @ cov @ f.t() + 0.01 * torch.eye(s, device=z.device)
            gain = cov[:, :, 0] / (cov[:, :1, 0] + noise[:, None])
            mean = mean + gain * (z[:, i] - mean[:, 0])[:, None]
            cov = cov - gain[:, :, None] * cov[:, :1, :]
        return cov, mean

    return against(launched, reference)
