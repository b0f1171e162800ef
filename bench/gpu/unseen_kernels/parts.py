"""Parts of models as they are first written for a module of PyTorch: cells, embeddings, excitation, windows, resampling, quantization."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, arange, case, cdiv, f32, far, far8, full, ints, rand, run, uniform, zeros


@triton.jit
def rnn_cell(x_ptr, h_ptr, w_ptr, b_ptr, out_ptr, B, I, H, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # tanh of [x, h] W + b: the joined row is read from two tensors under two masks.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, I + H, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(x_ptr + m[:, None] * I + k[None, :], mask=(m < B)[:, None] & (k < I)[None, :], other=0.0)
        h = tl.load(h_ptr + m[:, None] * H + (k - I)[None, :], mask=(m < B)[:, None] & (k >= I)[None, :] & (k < I + H)[None, :], other=0.0)
        w = tl.load(w_ptr + n[:, None] * (I + H) + k[None, :], mask=(n < H)[:, None] & (k < I + H)[None, :], other=0.0)
        acc += tl.dot(x + h, tl.trans(w))
    acc += tl.load(b_ptr + n, mask=n < H, other=0.0)[None, :]
    e = tl.exp(-2.0 * tl.abs(acc))
    y = (1.0 - e) / (1.0 + e)
    tl.store(out_ptr + m[:, None] * H + n[None, :], tl.where(acc < 0, -y, y), mask=(m < B)[:, None] & (n < H)[None, :])


@case
def rnn_cell_of_joined_input_and_state():
    b, i, h = 512, 700, 1000
    x, state, w, bias, out = f32(b, i), f32(b, h), f32(h, i + h) / 40, f32(h), zeros(b, h, dtype="float32")
    launched = run(rnn_cell, (cdiv(b, 32), cdiv(h, 64)), (x, state, w, bias, out, b, i, h), out, BM=32, BN=64, BK=32)
    return against(launched, lambda: torch.tanh(torch.cat((x, state), 1) @ w.t() + bias))


@triton.jit
def gru_gates(x, h, wi, wh, bi, bh, out, B, I, H, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Six products of a step of a GRU in one program: three of the input, three of the state.
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    rx, zx, nx = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, I, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(x + m[:, None] * I + k[None, :], mask=(m < B)[:, None] & (k < I)[None, :], other=0.0)
        at = wi + n[None, :] * I + k[:, None]
        ok = (n < H)[None, :] & (k < I)[:, None]
        rx = tl.dot(a, tl.load(at, mask=ok, other=0.0), rx)
        zx = tl.dot(a, tl.load(at + H * I, mask=ok, other=0.0), zx)
        nx = tl.dot(a, tl.load(at + 2 * H * I, mask=ok, other=0.0), nx)
    nh = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, H, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(h + m[:, None] * H + k[None, :], mask=(m < B)[:, None] & (k < H)[None, :], other=0.0)
        at = wh + n[None, :] * H + k[:, None]
        ok = (n < H)[None, :] & (k < H)[:, None]
        rx = tl.dot(a, tl.load(at, mask=ok, other=0.0), rx)
        zx = tl.dot(a, tl.load(at + H * H, mask=ok, other=0.0), zx)
        nh = tl.dot(a, tl.load(at + 2 * H * H, mask=ok, other=0.0), nh)
    in_n = n < H
    r = tl.sigmoid(rx + (tl.load(bi + n, mask=in_n) + tl.load(bh + n, mask=in_n))[None, :])
    z = tl.sigmoid(zx + (tl.load(bi + H + n, mask=in_n) + tl.load(bh + H + n, mask=in_n))[None, :])
    c = nx + tl.load(bi + 2 * H + n, mask=in_n)[None, :] + r * (nh + tl.load(bh + 2 * H + n, mask=in_n)[None, :])
    c = 2.0 * tl.sigmoid(2.0 * c) - 1.0
    ok = (m < B)[:, None] & in_n[None, :]
    old = tl.load(h + m[:, None] * H + n[None, :], mask=ok, other=0.0).to(tl.float32)
    tl.store(out + m[:, None] * H + n[None, :], ((1 - z) * c + z * old).to(out.dtype.element_ty), mask=ok)


@case
def gru_step_of_six_products():
    b, i, h = 256, 512, 1000
    x, state, wi, wh, bi, bh = rand(b, i), rand(b, h), rand(3 * h, i) / 22, rand(3 * h, h) / 31, f32(3 * h), f32(3 * h)
    out = zeros(b, h)
    args = x, state, wi, wh, bi, bh, out, b, i, h
    launched = run(gru_gates, (cdiv(b, 32), cdiv(h, 32)), args, out, BM=32, BN=32, BK=64)

    def reference():
        ri, zi, ni = (x.float() @ wi.float().t() + bi).chunk(3, 1)
        rh, zh, nh = (state.float() @ wh.float().t() + bh).chunk(3, 1)
        z = (zi + zh).sigmoid()
        return (1 - z) * torch.tanh(ni + (ri + rh).sigmoid() * nh) + z * state

    return against(launched, reference)


@triton.jit
def lstm_rows(g_ptr, w_ptr, out_ptr, T, H: tl.constexpr):
    # A batch row a program through all of time: the state times four matrices that stay in registers, by sums.
    row = tl.program_id(0)
    i, j = tl.arange(0, H), tl.arange(0, H)
    wi = tl.load(w_ptr + (0 * H + i)[:, None] * H + j[None, :])
    wf = tl.load(w_ptr + (1 * H + i)[:, None] * H + j[None, :])
    wg = tl.load(w_ptr + (2 * H + i)[:, None] * H + j[None, :])
    wo = tl.load(w_ptr + (3 * H + i)[:, None] * H + j[None, :])
    h, c = tl.zeros((1, H), tl.float32), tl.zeros((1, H), tl.float32)
    for t in range(T):
        g = g_ptr + (row * T + t) * 4 * H + i
        gi = tl.sigmoid(tl.load(g) + tl.sum(wi * h, axis=1))
        gf = tl.sigmoid(tl.load(g + H) + tl.sum(wf * h, axis=1))
        gg = libdevice.tanh(tl.load(g + 2 * H) + tl.sum(wg * h, axis=1))
        go = tl.sigmoid(tl.load(g + 3 * H) + tl.sum(wo * h, axis=1))
        c = tl.expand_dims(gf, 0) * c + tl.expand_dims(gi * gg, 0)
        h = tl.expand_dims(go, 0) * libdevice.tanh(c)
        tl.store(out_ptr + (row * T + t) * H + j[None, :], h)


@case
def lstm_through_time_by_sums_in_registers():
    b, t, h = 256, 60, 64
    g, w, out = f32(b, t, 4 * h), f32(4 * h, h) / 8, zeros(b, t, h, dtype="float32")
    launched = run(lstm_rows, (b,), (g, w, out, t), out, H=h, num_warps=8)

    def reference():
        made, state, cell = [], torch.zeros(b, h, device=g.device), torch.zeros(b, h, device=g.device)
        for step in range(t):
            i, f, c, o = (g[:, step] + state @ w.t()).chunk(4, 1)
            cell = f.sigmoid() * cell + i.sigmoid() * c.tanh()
            state = o.sigmoid() * cell.tanh()
            made.append(state)
        return torch.stack(made, 1)

    return against(launched, reference)


@triton.jit
def squeeze(x_ptr, s_ptr, HW, BLOCK: tl.constexpr):
    plane = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for i0 in range(0, HW, BLOCK):
        i = i0 + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + plane * HW + i, mask=i < HW, other=0.0)
    tl.store(s_ptr + plane, tl.sum(acc, axis=0) / HW)


@triton.jit
def excite(s_ptr, w1_ptr, w2_ptr, e_ptr, C: tl.constexpr, R: tl.constexpr):
    # Two layers of one sample by sums of whole matrices.
    n = tl.program_id(0)
    c, r = tl.arange(0, C), tl.arange(0, R)
    s = tl.load(s_ptr + n * C + c)
    a = tl.sum(tl.load(w1_ptr + r[:, None] * C + c[None, :]) * s[None, :], axis=1)
    a = tl.maximum(a, 0.0)
    b = tl.sum(tl.load(w2_ptr + c[:, None] * R + r[None, :]) * a[None, :], axis=1)
    tl.store(e_ptr + n * C + c, 1.0 / (1.0 + tl.exp(-b)))


@triton.jit
def scale_planes(x_ptr, e_ptr, y_ptr, HW, total, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    e = tl.load(e_ptr + i // HW, mask=i < total)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < total) * e, mask=i < total)


@case
def squeeze_and_excite_in_three_kernels():
    n, c, r, h = 64, 256, 16, 29
    x, w1, w2, y = f32(n, c, h, h), f32(r, c), f32(c, r), zeros(n, c, h, h, dtype="float32")
    s, e = zeros(n, c, dtype="float32"), zeros(n, c, dtype="float32")

    def launch(*args):
        squeeze[(n * c,)](x, s, h * h, BLOCK=256)
        excite[(n,)](s, w1, w2, e, C=c, R=r)
        scale_planes[(cdiv(x.numel(), 1024),)](x, e, y, h * h, x.numel(), BLOCK=1024)
        return y

    return against((launch, (x,)), lambda: x * ((x.mean((2, 3)) @ w1.t()).relu() @ w2.t()).sigmoid()[:, :, None, None])


@triton.jit
def shuffle_and_grouped(x_ptr, w_ptr, scale_ptr, shift_ptr, y_ptr, P, C, O, G: tl.constexpr, BP: tl.constexpr, BO: tl.constexpr, BC: tl.constexpr):
    # Pointwise products of a group, batch norm and ReLU, stored where the shuffle of channels puts them.
    n, g = tl.program_id(2) // G, tl.program_id(2) % G
    cg, og = C // G, O // G
    p, o = tl.program_id(0) * BP + tl.arange(0, BP), tl.program_id(1) * BO + tl.arange(0, BO)
    acc = tl.zeros((BO, BP), tl.float32)
    for c0 in range(0, cg, BC):
        c = c0 + tl.arange(0, BC)
        w = tl.load(w_ptr + (g * og + o)[:, None] * cg + c[None, :], mask=(o < og)[:, None] & (c < cg)[None, :], other=0.0)
        x = tl.load(x_ptr + (n * C + g * cg + c)[:, None] * P + p[None, :], mask=(c < cg)[:, None] & (p < P)[None, :], other=0.0)
        acc += tl.dot(w, x)
    ch = g * og + o
    acc = acc * tl.load(scale_ptr + ch, mask=o < og, other=0.0)[:, None] + tl.load(shift_ptr + ch, mask=o < og, other=0.0)[:, None]
    to = o * G + g
    tl.store(y_ptr + (n * O + to)[:, None] * P + p[None, :], tl.maximum(acc, 0.0), mask=(o < og)[:, None] & (p < P)[None, :])


@case
def grouped_pointwise_norm_and_channel_shuffle():
    n, c, o, g, h, w = 16, 240, 480, 3, 29, 28
    x, weight, scale, shift, y = f32(n, c, h, w), f32(o, c // g) / 9, f32(o), f32(o), zeros(n, o, h, w, dtype="float32")
    grid = cdiv(h * w, 64), cdiv(o // g, 32), n * g
    launched = run(shuffle_and_grouped, grid, (x, weight, scale, shift, y, h * w, c, o), y, G=g, BP=64, BO=32, BC=16)

    def reference():
        made = F.conv2d(x, weight[:, :, None, None], groups=g) * scale[:, None, None] + shift[:, None, None]
        return made.relu().view(n, g, o // g, h, w).transpose(1, 2).reshape(n, o, h, w)

    return against(launched, reference)


@triton.jit
def dense_concat(a_ptr, b_ptr, c_ptr, scale_ptr, shift_ptr, y_ptr, CA, CB, CC, HW, total, BLOCK: tl.constexpr):
    # Three inputs joined along channels, norm and ReLU: all three are read under masks, and one is selected.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < total
    C = CA + CB + CC
    p, c, n = i % HW, i // HW % C, i // (HW * C)
    a = tl.load(a_ptr + (n * CA + c) * HW + p, mask=ok & (c < CA), other=0.0)
    b = tl.load(b_ptr + (n * CB + c - CA) * HW + p, mask=ok & (c >= CA) & (c < CA + CB), other=0.0)
    d = tl.load(c_ptr + (n * CC + c - CA - CB) * HW + p, mask=ok & (c >= CA + CB), other=0.0)
    x = tl.where(c < CA, a, tl.where(c < CA + CB, b, d)).to(tl.float32)
    x = x * tl.load(scale_ptr + c, mask=ok) + tl.load(shift_ptr + c, mask=ok)
    tl.store(y_ptr + i, tl.maximum(x, 0.0).to(y_ptr.dtype.element_ty), mask=ok)


@case
def concat_of_three_norm_relu_flat():
    n, ca, cb, cc, hw = 24, 64, 32, 33, 56 * 56
    c = ca + cb + cc
    a, b, d, scale, shift, y = rand(n, ca, hw), rand(n, cb, hw), rand(n, cc, hw), f32(c), f32(c), zeros(n, c, hw)
    args = a, b, d, scale, shift, y, ca, cb, cc, hw, y.numel()
    launched = run(dense_concat, (cdiv(y.numel(), 1024),), args, y, BLOCK=1024)
    return against(launched, lambda: (torch.cat((a, b, d), 1).float() * scale[:, None] + shift[:, None]).relu())


@triton.jit
def patches_embedded(x_ptr, w_ptr, b_ptr, pos_ptr, cls_ptr, y_ptr, H, W, NP, D, P: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A transformer's patches: pixels by divisions of K, positions added, and a row of its own for the class.
    n = tl.program_id(2)
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    patch = m - 1
    py, px = patch // (W // P) * P, patch % (W // P) * P
    live = (m > 0) & (m <= NP)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, 3 * P * P, BK):
        k = k0 + tl.arange(0, BK)
        c, dy, dx = k // (P * P), k // P % P, k % P
        x = tl.load(x_ptr + ((n * 3 + c)[None, :] * H + py[:, None] + dy[None, :]) * W + px[:, None] + dx[None, :], mask=live[:, None], other=0.0)
        w = tl.load(w_ptr + d[None, :] * (3 * P * P) + k[:, None], mask=(d < D)[None, :], other=0.0)
        acc += tl.dot(x, w)
    acc += tl.load(b_ptr + d, mask=d < D, other=0.0)[None, :]
    acc = tl.where((m == 0)[:, None], tl.load(cls_ptr + d, mask=d < D, other=0.0)[None, :], acc)
    ok = (m <= NP)[:, None] & (d < D)[None, :]
    acc += tl.load(pos_ptr + m[:, None] * D + d[None, :], mask=ok, other=0.0)
    tl.store(y_ptr + (n * (NP + 1) + m)[:, None] * D + d[None, :], acc, mask=ok)


@case
def patch_embedding_with_class_and_positions():
    n, h, p, d = 16, 224, 16, 400
    count = (h // p) ** 2
    x, w, b, pos, cls = f32(n, 3, h, h), f32(d, 3, p, p) / 27, f32(d), f32(count + 1, d), f32(d)
    y = zeros(n, count + 1, d, dtype="float32")
    grid = cdiv(count + 1, 32), cdiv(d, 64), n
    launched = run(patches_embedded, grid, (x, w, b, pos, cls, y, h, h, count, d), y, P=p, BM=32, BN=64, BK=32)

    def reference():
        made = F.conv2d(x, w, b, stride=p).flatten(2).transpose(1, 2)
        return torch.cat((cls.expand(n, 1, d), made), 1) + pos

    return against(launched, reference)


@triton.jit
def upsample_nearest(x_ptr, y_ptr, H, W, OH, OW, BLOCK: tl.constexpr):
    plane = tl.program_id(1)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    oh, ow = i // OW, i % OW
    h = tl.minimum((oh * (H / OH)).to(tl.int32), H - 1)
    w = tl.minimum((ow * (W / OW)).to(tl.int32), W - 1)
    tl.store(y_ptr + plane * OH * OW + i, tl.load(x_ptr + plane * H * W + h * W + w, mask=i < OH * OW), mask=i < OH * OW)


@case
def upsample_nearest_of_bytes_by_two():
    planes, h, w = 256, 150, 170
    x, y = ints(0, 256, planes, h, w, dtype="uint8"), zeros(planes, 2 * h, 2 * w, dtype="uint8")
    launched = run(upsample_nearest, (cdiv(4 * h * w, 1024), planes), (x, y, h, w, 2 * h, 2 * w), y, BLOCK=1024)
    return against(launched, lambda: x.repeat_interleave(2, 1).repeat_interleave(2, 2))


@triton.jit
def upsample_bilinear(x_ptr, y_ptr, H, W, OH, OW, rh, rw, BLOCK_H: tl.constexpr, BLOCK_W: tl.constexpr):
    # Corners aligned; four loads of a two-dimensional tile.
    plane = tl.program_id(2)
    oh, ow = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H), tl.program_id(0) * BLOCK_W + tl.arange(0, BLOCK_W)
    fh, fw = oh * rh, ow * rw
    h0, w0 = tl.floor(fh).to(tl.int32), tl.floor(fw).to(tl.int32)
    h1, w1 = tl.minimum(h0 + 1, H - 1), tl.minimum(w0 + 1, W - 1)
    ah, aw = (fh - h0)[:, None], (fw - w0)[None, :]
    ok = (oh < OH)[:, None] & (ow < OW)[None, :]
    base = x_ptr + plane * H * W
    v00 = tl.load(base + h0[:, None] * W + w0[None, :], mask=ok, other=0.0)
    v01 = tl.load(base + h0[:, None] * W + w1[None, :], mask=ok, other=0.0)
    v10 = tl.load(base + h1[:, None] * W + w0[None, :], mask=ok, other=0.0)
    v11 = tl.load(base + h1[:, None] * W + w1[None, :], mask=ok, other=0.0)
    y = (1 - ah) * ((1 - aw) * v00 + aw * v01) + ah * ((1 - aw) * v10 + aw * v11)
    tl.store(y_ptr + plane * OH * OW + oh[:, None] * OW + ow[None, :], y, mask=ok)


@case
def upsample_bilinear_with_aligned_corners():
    planes, h, w, oh, ow = 128, 100, 120, 333, 251
    x, y = f32(planes, h, w), zeros(planes, oh, ow, dtype="float32")
    args = x, y, h, w, oh, ow, (h - 1) / (oh - 1), (w - 1) / (ow - 1)
    launched = run(upsample_bilinear, (cdiv(ow, 64), cdiv(oh, 8), planes), args, y, BLOCK_H=8, BLOCK_W=64)
    return against(launched, lambda: F.interpolate(x[None], (oh, ow), mode="bilinear", align_corners=True)[0])


@triton.jit
def embed_and_norm(id_ptr, type_ptr, word_ptr, pos_ptr, kind_ptr, g_ptr, b_ptr, y_ptr, S, D, eps, BLOCK: tl.constexpr):
    # Word, position and segment of a token, added up and normalized.
    token = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    ok = i < D
    word, kind = tl.load(id_ptr + token), tl.load(type_ptr + token)
    x = tl.load(word_ptr + word * D + i, mask=ok, other=0.0).to(tl.float32)
    x += tl.load(pos_ptr + token % S * D + i, mask=ok, other=0.0).to(tl.float32)
    x += tl.load(kind_ptr + kind * D + i, mask=ok, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / D
    d = tl.where(ok, x - mean, 0.0)
    y = d * (1 / tl.sqrt(tl.sum(d * d, axis=0) / D + eps)) * tl.load(g_ptr + i, mask=ok) + tl.load(b_ptr + i, mask=ok)
    tl.store(y_ptr + token * D + i, y.to(y_ptr.dtype.element_ty), mask=ok)


@case
def embeddings_of_three_kinds_and_layer_norm():
    b, s, v, d = 32, 500, 30000, 768
    ids, kinds = ints(0, v, b, s, dtype="int64"), ints(0, 2, b, s, dtype="int64")
    word, pos, kind, g, bias = rand(v, d, dtype="bfloat16"), rand(s, d, dtype="bfloat16"), rand(2, d, dtype="bfloat16"), f32(d), f32(d)
    y = zeros(b, s, d, dtype="bfloat16")
    launched = run(embed_and_norm, (b * s,), (ids, kinds, word, pos, kind, g, bias, y, s, d, 1e-12), y, BLOCK=1024)
    return against(launched, lambda: F.layer_norm(word[ids].float() + pos.float() + kind[kinds].float(), (d,), g, bias, 1e-12))


@triton.jit
def unshuffle_pixels(x_ptr, y_ptr, C, OH, OW, R: tl.constexpr, total, BLOCK: tl.constexpr):
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    ow, oh, oc, n = i % OW, i // OW % OH, i // (OW * OH) % (C * R * R), i // (OW * OH * C * R * R)
    c, dy, dx = oc // (R * R), oc // R % R, oc % R
    x = tl.load(x_ptr + ((n * C + c) * OH * R + oh * R + dy) * OW * R + ow * R + dx, mask=i < total)
    tl.store(y_ptr + i, x, mask=i < total)


@case
def pixel_unshuffle_by_three_of_int16():
    n, c, oh, ow, r = 16, 20, 50, 61, 3
    x, y = ints(-30000, 30000, n, c, oh * r, ow * r, dtype="int16"), zeros(n, c * r * r, oh, ow, dtype="int16")
    launched = run(unshuffle_pixels, (cdiv(y.numel(), 1024),), (x, y, c, oh, ow), y, R=r, total=y.numel(), BLOCK=1024)
    return against(launched, lambda: F.pixel_unshuffle(x.float(), r))


@triton.jit
def unfold_windows(x_ptr, y_ptr, L, OUT, step, total, SIZE: tl.constexpr, BLOCK_R: tl.constexpr):
    # Tensor.unfold of the last axis as copies, weighed by a window that is computed.
    r, k = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R), tl.arange(0, SIZE)
    row, o = r // OUT, r % OUT
    window = 0.5 - 0.5 * tl.cos(k.to(tl.float32) * (6.283185307179586 / SIZE))
    x = tl.load(x_ptr + (row * L + o * step)[:, None] + k[None, :], mask=(r < total)[:, None], other=0.0)
    tl.store(y_ptr + r[:, None] * SIZE + k[None, :], x * window[None, :], mask=(r < total)[:, None])


@case
def unfolded_frames_times_a_window():
    rows, length, size, step = 64, 32001, 512, 160
    out = (length - size) // step + 1
    x, y = f32(rows, length), zeros(rows, out, size, dtype="float32")
    launched = run(unfold_windows, (cdiv(rows * out, 4),), (x, y, length, out, step, rows * out), y, SIZE=size, BLOCK_R=4)
    return against(launched, lambda: x.unfold(1, size, step) * torch.hann_window(size, device=x.device))


@triton.jit
def vlad(x_ptr, w_ptr, b_ptr, centers_ptr, y_ptr, S, GHOSTS: tl.constexpr, K: tl.constexpr, D: tl.constexpr, BS: tl.constexpr):
    # Soft assignment of features to clusters, of which some are ghosts; residuals are normalized within clusters, then all.
    n = tl.program_id(0)
    s, k, d = tl.arange(0, BS), tl.arange(0, K), tl.arange(0, D)
    w = tl.load(w_ptr + d[:, None] * K + k[None, :])
    total = tl.zeros((K, D), tl.float32)
    weight = tl.zeros((K,), tl.float32)
    for s0 in range(0, S, BS):
        ok = s0 + s < S
        x = tl.load(x_ptr + (n * S + s0 + s)[:, None] * D + d[None, :], mask=ok[:, None], other=0.0)
        a = tl.dot(x, w) + tl.load(b_ptr + k)[None, :]
        a = tl.exp(a - tl.max(a, 1)[:, None])
        a = tl.where(ok[:, None], a / tl.sum(a, 1)[:, None], 0.0)
        weight += tl.sum(a, 0)
        total += tl.dot(tl.trans(a), x)
    v = total - weight[:, None] * tl.load(centers_ptr + k[:, None] * D + d[None, :])
    v = tl.where((k < K - GHOSTS)[:, None], v, 0.0)
    v = v / tl.maximum(tl.sqrt(tl.sum(v * v, 1)), 1e-12)[:, None]
    v = v / tl.sqrt(tl.sum(tl.sum(v * v, 1), 0))
    tl.store(y_ptr + (n * (K - GHOSTS) + k)[:, None] * D + d[None, :], v, mask=(k < K - GHOSTS)[:, None])


@case
def vectors_of_local_descriptors_with_ghosts():
    n, s, d, k, ghosts = 264, 100, 128, 32, 4
    x, w, b, centers = f32(n, s, d), f32(d, k) / 11, f32(k), f32(k, d)
    y = zeros(n, k - ghosts, d, dtype="float32")
    launched = run(vlad, (n,), (x, w, b, centers, y, s), y, GHOSTS=ghosts, K=k, D=d, BS=16)

    def reference():
        a = (x @ w + b).softmax(2)
        v = a.transpose(1, 2) @ x - a.sum(1)[:, :, None] * centers
        return F.normalize(F.normalize(v[:, : k - ghosts], dim=2).flatten(1), dim=1)

    return against(launched, reference)


@triton.jit
def segment_sums_diagonal(a_ptr, b_ptr, c_ptr, x_ptr, y_ptr, state_ptr, H, L: tl.constexpr, N: tl.constexpr, P: tl.constexpr):
    # A block of Mamba-2 as its listing has it: exp of segment sums masks C B^T, and the block's last state.
    bh = tl.program_id(0)
    t, n, p = tl.arange(0, L), tl.arange(0, N), tl.arange(0, P)
    cum = tl.cumsum(tl.load(a_ptr + bh * L + t), 0)
    seg = cum[:, None] - cum[None, :]
    mask = tl.where(t[:, None] >= t[None, :], tl.exp(tl.where(t[:, None] >= t[None, :], seg, 0.0)), 0.0)
    b = tl.load(b_ptr + (bh // H * L + t)[:, None] * N + n[None, :])
    c = tl.load(c_ptr + (bh // H * L + t)[:, None] * N + n[None, :])
    x = tl.load(x_ptr + (bh * L + t)[:, None] * P + p[None, :])
    scores = tl.dot(c, tl.trans(b)) * mask
    tl.store(y_ptr + (bh * L + t)[:, None] * P + p[None, :], tl.dot(scores, x))
    last = tl.sum(tl.where(t == L - 1, cum, 0.0), 0)
    decay = tl.exp(last - cum)
    state = tl.dot(tl.trans(x * decay[:, None]), b)
    tl.store(state_ptr + (bh * P + p)[:, None] * N + n[None, :], state)


@case
def block_of_segment_sums_and_last_states():
    chunks, h, length, n, p = 64, 8, 64, 64, 64
    a, b, c = -uniform(chunks, h, length), f32(chunks, length, n) / 8, f32(chunks, length, n)
    x, y, state = f32(chunks, h, length, p), zeros(chunks, h, length, p, dtype="float32"), zeros(chunks, h, p, n, dtype="float32")
    launched = run(segment_sums_diagonal, (chunks * h,), (a, b, c, x, y, state, h), (y, state), L=length, N=n, P=p)

    def reference():
        cum = a.cumsum(2)
        seg = (cum[..., :, None] - cum[..., None, :]).tril().exp().tril()
        want = (c @ b.transpose(1, 2))[:, None] * seg @ x
        decay = (cum[..., -1:] - cum).exp()
        return want, (x * decay[..., None]).transpose(2, 3) @ b[:, None]

    return against(launched, reference)


@triton.jit
def fake_quant_groups(x_ptr, q_ptr, scale_ptr, zero_ptr, y_ptr, N, G: tl.constexpr, ROWS: tl.constexpr):
    # Asymmetric bytes of groups along a row, and what they are worth.
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    g = tl.arange(0, G)
    at = row[:, None] * G + g[None, :]
    x = tl.load(x_ptr + at, mask=(row < N)[:, None], other=0.0).to(tl.float32)
    low, high = tl.minimum(tl.min(x, axis=1), 0.0), tl.maximum(tl.max(x, axis=1), 0.0)
    scale = tl.maximum((high - low) / 255.0, 1e-8)
    zero = tl.floor(-low / scale + 0.5)
    q = tl.clamp(tl.floor(x / scale[:, None] + 0.5) + zero[:, None], 0.0, 255.0)
    tl.store(q_ptr + at, q.to(tl.uint8), mask=(row < N)[:, None])
    tl.store(scale_ptr + row, scale, mask=row < N)
    tl.store(zero_ptr + row, zero.to(tl.uint8), mask=row < N)
    tl.store(y_ptr + at, ((q - zero[:, None]) * scale[:, None]).to(y_ptr.dtype.element_ty), mask=(row < N)[:, None])


@case
def quantized_by_groups_of_128_and_back():
    n, g = 180_001, 128
    x = rand(n, g, dtype="bfloat16")
    q, scale, zero, y = zeros(n, g, dtype="uint8"), zeros(n, dtype="float32"), zeros(n, dtype="uint8"), zeros(n, g, dtype="bfloat16")
    launch, args = run(fake_quant_groups, (cdiv(n, 16),), (x, q, scale, zero, y, n), None, G=g, ROWS=16)

    def reference():
        v = x.float()
        low, high = v.amin(1).clamp(max=0), v.amax(1).clamp(min=0)
        s = (high - low) / 255
        z = (-low / s + 0.5).floor()
        c = ((v / s[:, None] + 0.5).floor() + z[:, None]).clamp(0, 255)
        return far(c), s, far(z), ((c - z[:, None]) * s[:, None] + 9)

    return against((lambda *args: launch(*args) or (far(q), scale, far(zero), y.float() + 9), args), reference)


@triton.jit
def complex_times(a_ptr, b_ptr, y_ptr, N, BLOCK: tl.constexpr):
    # Interleaved parts, split and joined; the conjugate of the second.
    i = tl.program_id(0) * BLOCK * 2 + tl.arange(0, BLOCK * 2)
    ar, ai = tl.split(tl.reshape(tl.load(a_ptr + i, mask=i < 2 * N, other=0.0), (BLOCK, 2)))
    br, bi = tl.split(tl.reshape(tl.load(b_ptr + i, mask=i < 2 * N, other=0.0), (BLOCK, 2)))
    tl.store(y_ptr + i, tl.interleave(ar * br + ai * bi, ai * br - ar * bi), mask=i < 2 * N)


@case
def complex_numbers_times_conjugates():
    n = 6_000_001
    a, b, y = f32(n, 2), f32(n, 2), zeros(n, 2, dtype="float32")
    launched = run(complex_times, (cdiv(n, 512),), (a, b, y, n), y, BLOCK=512)
    return against(launched, lambda: torch.view_as_real(torch.view_as_complex(a) * torch.view_as_complex(b).conj()))


@triton.jit
def norm_then_linear(x_ptr, g_ptr, w_ptr, b_ptr, y_ptr, M, N, eps, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # RMS norm of whole rows that stay in registers, then a loop over columns of the weight.
    m, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, K)
    x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0).to(tl.float32)
    x = x * tl.rsqrt(tl.sum(x * x, axis=1, keep_dims=True) / K + eps) * tl.load(g_ptr + k)[None, :]
    x = x.to(tl.bfloat16)
    for n0 in tl.range(0, N, BN):
        n = n0 + tl.arange(0, BN)
        w = tl.load(w_ptr + n[None, :] * K + k[:, None], mask=(n < N)[None, :], other=0.0)
        y = tl.dot(x, w) + tl.load(b_ptr + n, mask=n < N, other=0.0)[None, :]
        y = y / (1 + tl.exp(-1.702 * y))
        tl.store(y_ptr + m[:, None] * N + n[None, :], y.to(tl.bfloat16), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def rms_norm_then_linear_quick_gelu():
    m, n, k = 5000, 1030, 256
    x, g, w, b = rand(m, k, dtype="bfloat16"), f32(k), rand(n, k, dtype="bfloat16") / 16, f32(n)
    y = zeros(m, n, dtype="bfloat16")
    launched = run(norm_then_linear, (cdiv(m, 32),), (x, g, w, b, y, m, n, 1e-6), y, K=k, BM=32, BN=64)

    def reference():
        v = x.float()
        v = (v * (v.square().mean(1, keepdim=True) + 1e-6).rsqrt() * g).bfloat16().float()
        z = v @ w.float().t() + b
        return z * (1.702 * z).sigmoid()

    return against(launched, reference)


@triton.jit(noinline=True)
def _corner(window, shift, W, S: tl.constexpr):
    # The first row and column of a window in a picture that was rolled.
    per_row = W // S
    return window // per_row * S + shift, window % per_row * S + shift


@triton.jit
def attend_in_window(qkv_ptr, table_ptr, out_ptr, H, W, shift, C, scale, S: tl.constexpr, D: tl.constexpr, T: tl.constexpr):
    # Windows of a Swin block from the unpartitioned picture; where one begins, a called function tells.
    window, head, n = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    t, d = tl.arange(0, T), tl.arange(0, D)
    live = t < S * S
    y0, x0 = _corner(window, shift, W, S)
    at = (y0 + t // S) % H * W + (x0 + t % S) % W
    base = qkv_ptr + n * H * W * 3 * C + head * D
    q = tl.load(base + at[:, None] * 3 * C + d[None, :], mask=live[:, None], other=0.0)
    k = tl.load(base + C + at[:, None] * 3 * C + d[None, :], mask=live[:, None], other=0.0)
    v = tl.load(base + 2 * C + at[:, None] * 3 * C + d[None, :], mask=live[:, None], other=0.0)
    dy = (t // S)[:, None] - (t // S)[None, :] + S - 1
    dx = (t % S)[:, None] - (t % S)[None, :] + S - 1
    bias = tl.load(table_ptr + (dy * (2 * S - 1) + dx) * tl.num_programs(1) + head, mask=live[:, None] & live[None, :], other=0.0)
    s = tl.dot(q, tl.trans(k)) * scale + bias
    s = tl.where(live[None, :], s, -1e30)
    p = tl.exp(s - tl.max(s, 1)[:, None])
    o = tl.dot(p, v) / tl.sum(p, 1)[:, None]
    tl.store(out_ptr + (n * H * W + at)[:, None] * C + head * D + d[None, :], o, mask=live[:, None])


@case
def attention_of_rolled_windows_8x8_by_a_called_function():
    n, h, heads, d, s, shift = 2, 64, 6, 32, 8, 4
    c = heads * d
    qkv, table, out = f32(n, h, h, 3 * c), f32((2 * s - 1) ** 2, heads), zeros(n, h, h, c, dtype="float32")
    args = qkv, table, out, h, h, shift, c, d**-0.5
    launched = run(attend_in_window, ((h // s) ** 2, heads, n), args, out, S=s, D=d, T=64)

    def reference():
        x = qkv.roll((-shift, -shift), (1, 2)).view(n, h // s, s, h // s, s, 3, heads, d)
        q, k, v = x.permute(5, 0, 1, 3, 6, 2, 4, 7).reshape(3, -1, heads, s * s, d)
        t = arange(s * s, "int64")
        place = (t[:, None] // s - t // s + s - 1) * (2 * s - 1) + t[:, None] % s - t % s + s - 1
        o = (q @ k.transpose(2, 3) * d**-0.5 + table[place].permute(2, 0, 1)).softmax(3) @ v
        o = o.view(n, h // s, h // s, heads, s, s, d).permute(0, 1, 4, 2, 5, 3, 6).reshape(n, h, h, c)
        return o.roll((shift, shift), (1, 2))

    return against(launched, reference)


@triton.jit
def _keep_last(a, fa, b, fb):
    return tl.where(fb > 0, b, a), tl.maximum(fa, fb)


@triton.jit
def forward_fill(x_ptr, valid_ptr, y_ptr, T, C, BT: tl.constexpr, BC: tl.constexpr):
    # What is missing takes the last value seen, by a scan of pairs down the time axis.
    b = tl.program_id(1)
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    last = tl.zeros((BC,), tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        ok = (t < T)[:, None] & (c < C)[None, :]
        at = (b * T + t)[:, None] * C + c[None, :]
        x = tl.load(x_ptr + at, mask=ok, other=0.0).to(tl.float32)
        f = tl.load(valid_ptr + at, mask=ok, other=0).to(tl.int32)
        v, seen = tl.associative_scan((x, f), 0, _keep_last)
        y = tl.where(seen > 0, v, last[None, :])
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=ok)
        last = tl.sum(tl.where((tl.arange(0, BT) == BT - 1)[:, None], y, 0.0), 0)


@case
def missing_values_filled_down_columns_by_pairs():
    b, t, c = 32, 1024, 250
    x, valid, y = rand(b, t, c), (ints(0, 10, b, t, c) < 3).to(torch.uint8), zeros(b, t, c)
    launched = run(forward_fill, (cdiv(c, 32), b), (x, valid, y, t, c), y, BT=64, BC=32)

    def reference():
        place = torch.where(valid != 0, arange(t, "int64")[:, None] + 1, 0).cummax(1)[0]
        return F.pad(x, (0, 0, 1, 0)).gather(1, place)

    return against(launched, reference)


@triton.jit
def sorted_median(x_ptr, y_ptr, N, TRIM, BLOCK: tl.constexpr):
    # Rows sorted in whole: the median, and the mean of what is left when both ends are cut.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=float("inf"))
    s = tl.sort(x)
    median = tl.sum(tl.where(i == (N - 1) // 2, s, 0.0), 0)
    kept = (i >= TRIM) & (i < N - TRIM)
    tl.store(y_ptr + row * 2, median)
    tl.store(y_ptr + row * 2 + 1, tl.sum(tl.where(kept, s, 0.0), 0) / (N - 2 * TRIM))


@case
def median_and_trimmed_mean_of_sorted_rows():
    rows, n, trim = 4000, 500, 50
    x, y = f32(rows, n) + 1, zeros(rows, 2, dtype="float32")
    launched = run(sorted_median, (rows,), (x, y, n, trim), y, BLOCK=512)
    return against(launched, lambda: torch.stack((x.median(1)[0], x.sort(1)[0][:, trim : n - trim].mean(1)), 1))


@triton.jit
def e5m2_swish(x_ptr, scale_ptr, y_ptr, bits_ptr, n, BLOCK: tl.constexpr):
    # FP8 in and out around a fast exponential of inline assembly; the sign bits of sixteen in one number of a block's.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.float32) * tl.load(scale_ptr)
    e = tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x * -1.4426950408889634], dtype=tl.float32, is_pure=True, pack=1)
    y = x / (1.0 + e)
    tl.store(y_ptr + i, y.to(tl.float8e5), mask=i < n)
    bits = tl.reshape((x < 0).to(tl.int32), (BLOCK // 16, 16)) << tl.arange(0, 16)[None, :]
    word = tl.program_id(0) * (BLOCK // 16) + tl.arange(0, BLOCK // 16)
    tl.store(bits_ptr + word, tl.sum(bits, 1).to(tl.int16), mask=word < n // 16)


@case
def swish_of_e5m2_with_bits_of_signs():
    n = 24_000_000
    x, scale = rand(n).to(torch.float8_e5m2), full(0.75, 1)
    y, bits = zeros(n, dtype="float32").to(torch.float8_e5m2), zeros(n // 16, dtype="int16")
    launch, args = run(e5m2_swish, (cdiv(n, 1024),), (x, scale, y, bits, n), None, BLOCK=1024)

    def reference():
        v = x.float() * scale
        word = ((v < 0).view(-1, 16).int() << arange(16)).sum(1)
        return far8(F.silu(v).to(torch.float8_e5m2)), torch.where(word >= 1 << 15, word - (1 << 16), word)

    return against((lambda *args: launch(*args) or (far8(y), bits), args), reference)


configs = [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((256, 2), (512, 4), (1024, 8))]


@triton.jit
def affine_residual(x_ptr, r_ptr, g_ptr, b_ptr, y_ptr, C, total, BLOCK: tl.constexpr):
    # Layer scale, drop path of a sample and residual, channels last: the middle one of its author's configurations.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < total
    c = i % C
    x = tl.load(x_ptr + i, mask=ok).to(tl.float32)
    y = x * tl.load(g_ptr + c, mask=ok) + tl.load(b_ptr + c, mask=ok) + tl.load(r_ptr + i, mask=ok).to(tl.float32)
    tl.store(y_ptr + i, y.to(y_ptr.dtype.element_ty), mask=ok)


@case
def layer_scale_and_residual_of_its_middle_configuration():
    rows, c = 32 * 14 * 14, 3 * 449
    x, r, g, b, y = rand(rows, c), rand(rows, c), f32(c), f32(c), zeros(rows, c)
    middle = configs[1]
    grid = (cdiv(rows * c, middle.kwargs["BLOCK"]),)
    launched = run(affine_residual, grid, (x, r, g, b, y, c, rows * c), y, **middle.kwargs, num_warps=middle.num_warps)
    return against(launched, lambda: x.float() * g + b + r.float())


@triton.jit
def permute_4d(x_ptr, y_ptr, H, S, B0: tl.constexpr, B1: tl.constexpr, D: tl.constexpr):
    # (batch, sequence, head, D) to (batch, head, D, sequence): a tile of three axes through the language's permutation.
    b = tl.program_id(2)
    s, h, d = tl.program_id(0) * B0 + tl.arange(0, B0), tl.program_id(1) * B1 + tl.arange(0, B1), tl.arange(0, D)
    ok = (s < S)[:, None, None] & (h < H)[None, :, None]
    at = ((b * S + s)[:, None, None] * H + h[None, :, None]) * D + d[None, None, :]
    x = tl.load(x_ptr + at, mask=ok, other=0.0)
    x = tl.permute(x, (1, 2, 0))
    ok = (h < H)[:, None, None] & (s < S)[None, None, :]
    at = ((b * H + h)[:, None, None] * D + d[None, :, None]) * S + s[None, None, :]
    tl.store(y_ptr + at, x, mask=ok)


@case
def heads_to_front_and_sequence_to_back():
    b, s, h, d = 8, 1030, 12, 64
    x, y = rand(b, s, h, d), zeros(b, h, d, s)
    launched = run(permute_4d, (cdiv(s, 32), cdiv(h, 4), b), (x, y, h, s), y, B0=32, B1=4, D=d, num_warps=4)
    return against(launched, lambda: x.permute(0, 2, 3, 1).contiguous())
