"""Kernels in the shapes that a compiler of graphs gives them: flat indices split by constants, masks of clamps, reductions of tuples."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, arange, case, cdiv, cleared, f32, full, ints, rand, run, uniform, zeros


@triton.jit
def pad_reflect_relu(
    in_ptr0, in_ptr1, out_ptr0, xnumel, H: tl.constexpr, W: tl.constexpr, P: tl.constexpr, C: tl.constexpr, XBLOCK: tl.constexpr,
):  # fmt: skip
    # Reflection by absolute values of what is left of the index, after a bias and ReLU.
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex % (W + 2 * P)
    x1 = (xindex // (W + 2 * P)) % (H + 2 * P)
    x2 = xindex // ((W + 2 * P) * (H + 2 * P))
    at = (H * W - 1) - tl.abs((1 - W) + tl.abs(x0 - P)) - W * tl.abs((1 - H) + tl.abs(x1 - P)) + H * W * x2
    tmp0 = tl.load(in_ptr0 + at, xmask, eviction_policy="evict_last").to(tl.float32)
    tmp1 = tl.load(in_ptr1 + x2 % C, xmask, eviction_policy="evict_last").to(tl.float32)
    tmp2 = tl.maximum(tl.full([1], 0, tl.int32), tmp0 + tmp1)
    tl.store(out_ptr0 + xindex, tmp2, xmask)


@case
def reflected_borders_of_bf16_planes():
    n, c, h, w, p = 8, 64, 117, 131, 3
    x, b, y = rand(n, c, h, w, dtype="bfloat16"), rand(c, dtype="bfloat16"), zeros(n, c, h + 2 * p, w + 2 * p, dtype="bfloat16")
    launched = run(pad_reflect_relu, (cdiv(y.numel(), 1024),), (x, b, y, y.numel()), y, H=h, W=w, P=p, C=c, XBLOCK=1024)
    return against(launched, lambda: F.pad((x.float() + b.float()[:, None, None]).relu(), (p, p, p, p), mode="reflect"))


@triton.jit
def cat_last_axis(in_ptr0, in_ptr1, in_ptr2, out_ptr0, xnumel, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, XBLOCK: tl.constexpr):
    # [x, gelu(x), y * z, z] along the last axis: each part is computed everywhere, under its mask.
    xindex = tl.program_id(0).to(tl.int64) * XBLOCK + tl.arange(0, XBLOCK)[:].to(tl.int64)
    xmask = xindex < xnumel
    x0 = xindex % (2 * A + B + C)
    x1 = xindex // (2 * A + B + C)
    in_x = x0 < A
    tmp0 = tl.load(in_ptr0 + A * x1 + x0, in_x & xmask, eviction_policy="evict_last", other=0.0)
    in_gelu = (x0 >= A) & (x0 < 2 * A)
    tmp1 = tl.load(in_ptr0 + A * x1 + (x0 - A), in_gelu & xmask, eviction_policy="evict_last", other=0.0)
    tmp2 = tmp1 * 0.5 * (libdevice.erf(tmp1 * 0.7071067811865476) + 1.0)
    tmp2 = tl.where(in_gelu, tmp2, tl.full(tmp2.shape, 0.0, tmp2.dtype))
    in_y = (x0 >= 2 * A) & (x0 < 2 * A + B)
    tmp3 = tl.load(in_ptr1 + B * x1 + (x0 - 2 * A), in_y & xmask, eviction_policy="evict_last", other=0.0)
    tmp4 = tl.load(in_ptr2 + C * x1 + (x0 - 2 * A) % C, in_y & xmask, eviction_policy="evict_last", other=0.0)
    in_z = x0 >= 2 * A + B
    tmp5 = tl.load(in_ptr2 + C * x1 + (x0 - 2 * A - B), in_z & xmask, eviction_policy="evict_last", other=0.0)
    tmp6 = tl.where(in_x, tmp0, tl.where(in_gelu, tmp2, tl.where(in_y, tmp3 * tmp4, tmp5)))
    tl.store(out_ptr0 + xindex, tmp6, xmask)


@case
def joined_features_of_four_kinds_long_indices():
    rows, a, b, c = 20000, 129, 200, 67
    x, y, z, out = f32(rows, a), f32(rows, b), f32(rows, c), zeros(rows, 2 * a + b + c, dtype="float32")
    launched = run(cat_last_axis, (cdiv(out.numel(), 512),), (x, y, z, out, out.numel()), out, A=a, B=b, C=c, XBLOCK=512)
    return against(launched, lambda: torch.cat((x, F.gelu(x), y * z[:, torch.arange(b, device=x.device) % c], z), 1))


@triton.jit
def two_means(mean_1, m2_1, count_1, mean_2, m2_2, count_2):
    count = count_1 + count_2
    part = tl.where(count == 0.0, 0.0, count_2 / count)
    delta = mean_2 - mean_1
    return mean_1 + delta * part, m2_1 + m2_2 + delta * delta * count_1 * part, count


@triton.jit
def layer_norm_looped(in_ptr0, in_ptr1, in_ptr2, out_ptr0, out_ptr1, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    # Running means of every lane; lanes are joined at the end; the row is read again.
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    mean = tl.zeros([XBLOCK, RBLOCK], tl.float32)
    m2 = tl.zeros([XBLOCK, RBLOCK], tl.float32)
    count = tl.zeros([XBLOCK, RBLOCK], tl.float32)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        rmask = rindex < rnumel
        x = tl.load(in_ptr0 + rindex + rnumel * xindex, rmask & xmask, eviction_policy="evict_last", other=0.0).to(tl.float32)
        count_next = count + 1.0
        delta = x - mean
        mean_next = mean + delta / count_next
        m2_next = m2 + delta * (x - mean_next)
        mean = tl.where(rmask & xmask, mean_next, mean)
        m2 = tl.where(rmask & xmask, m2_next, m2)
        count = tl.where(rmask & xmask, count_next, count)
    mean_1, m2_1, count_1 = tl.reduce((mean, m2, count), 1, two_means)
    mean_1, m2_1 = mean_1[:, None], m2_1[:, None]
    rstd = libdevice.rsqrt(m2_1 / rnumel + 1e-5)
    tl.store(out_ptr1 + xindex, rstd, xmask)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        rmask = rindex < rnumel
        x = tl.load(in_ptr0 + rindex + rnumel * xindex, rmask & xmask, eviction_policy="evict_first", other=0.0).to(tl.float32)
        g = tl.load(in_ptr1 + rindex, rmask, eviction_policy="evict_last", other=0.0).to(tl.float32)
        b = tl.load(in_ptr2 + rindex, rmask, eviction_policy="evict_last", other=0.0).to(tl.float32)
        tl.store(out_ptr0 + rindex + rnumel * xindex, ((x - mean_1) * rstd * g + b).to(out_ptr0.dtype.element_ty), rmask & xmask)


def looped_norm(rows, cols, xblock, rblock, warps):
    x, g, b = rand(rows, cols) + 3, rand(cols), rand(cols)
    y, rstd = zeros(rows, cols), zeros(rows, dtype="float32")
    args = x, g, b, y, rstd, rows, cols
    launched = run(layer_norm_looped, (cdiv(rows, xblock),), args, (y, rstd), XBLOCK=xblock, RBLOCK=rblock, num_warps=warps)

    def reference():
        z = x.float()
        return F.layer_norm(z, (cols,), g.float(), b.float()), (z.var(1, correction=0) + 1e-5).rsqrt()

    return against(launched, reference)


@case
def means_of_lanes_joined_one_row_a_program():
    return looped_norm(4096, 5003, 1, 2048, 16)


@case
def means_of_lanes_joined_eight_rows_a_program():
    return looped_norm(8191, 1600, 8, 256, 8)


@triton.jit
def channel_means_split(
    in_ptr0, out_ptr0, out_ptr1, out_ptr2, xnumel, rnumel, C: tl.constexpr, HW: tl.constexpr, SPLIT: tl.constexpr, XBLOCK: tl.constexpr,
    RBLOCK: tl.constexpr,
):  # fmt: skip
    # Statistics of NCHW planes: the reduced index is split over samples and pixels, and over SPLIT pieces.
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    x0, x1 = xindex % C, xindex // C
    mean = tl.zeros([XBLOCK, RBLOCK], tl.float32)
    m2 = tl.zeros([XBLOCK, RBLOCK], tl.float32)
    count = tl.zeros([XBLOCK, RBLOCK], tl.float32)
    for roffset in range(0, rnumel, RBLOCK):
        r = roffset + rbase + rnumel * x1
        ok = (roffset + rbase < rnumel) & xmask
        x = tl.load(in_ptr0 + (r // HW) * C * HW + x0 * HW + r % HW, ok, eviction_policy="evict_first", other=0.0).to(tl.float32)
        mean_next, m2_next, count_next = two_means(mean, m2, count, x, tl.zeros_like(x), tl.full(x.shape, 1.0, tl.float32))
        mean, m2, count = tl.where(ok, mean_next, mean), tl.where(ok, m2_next, m2), tl.where(ok, count_next, count)
    mean_1, m2_1, count_1 = tl.reduce((mean, m2, count), 1, two_means)
    tl.store(out_ptr0 + xindex, mean_1[:, None], xmask)
    tl.store(out_ptr1 + xindex, m2_1[:, None], xmask)
    tl.store(out_ptr2 + xindex, count_1[:, None], xmask)


@triton.jit
def channel_means_joined(
    in_ptr0, in_ptr1, in_ptr2, in_out_ptr0, in_out_ptr1, out_ptr0, xnumel, C: tl.constexpr, SPLIT: tl.constexpr, XBLOCK: tl.constexpr,
    RBLOCK: tl.constexpr,
):  # fmt: skip
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rindex = tl.arange(0, RBLOCK)[None, :]
    ok = (rindex < SPLIT) & xmask
    a = tl.load(in_ptr0 + xindex + C * rindex, ok, other=0.0)
    b = tl.load(in_ptr1 + xindex + C * rindex, ok, other=0.0)
    c = tl.load(in_ptr2 + xindex + C * rindex, ok, other=0.0)
    mean, m2, count = tl.reduce((a, b, c), 1, two_means)
    mean, m2, count = mean[:, None], m2[:, None], count[:, None]
    tl.store(in_out_ptr0 + xindex, 0.9 * tl.load(in_out_ptr0 + xindex, xmask) + 0.1 * mean, xmask)
    tl.store(in_out_ptr1 + xindex, 0.9 * tl.load(in_out_ptr1 + xindex, xmask) + 0.1 * (m2 / (count - 1.0)), xmask)
    tl.store(out_ptr0 + xindex, libdevice.rsqrt(m2 / count + 1e-5), xmask)


@case
def statistics_of_channels_in_two_reductions():
    n, c, h, split = 64, 96, 56, 14
    x = rand(n, c, h, h) * 2 + 1
    parts = [zeros(split, c, dtype="float32") for _ in range(3)]
    mean, var, rstd = f32(c), uniform(c), zeros(c, dtype="float32")
    first = mean.clone(), var.clone()

    def launch(*args):
        mean.copy_(first[0])
        var.copy_(first[1])
        each = n * h * h // split
        channel_means_split[(cdiv(c * split, 2),)](x, *parts, c * split, each, C=c, HW=h * h, SPLIT=split, XBLOCK=2, RBLOCK=1024, num_warps=8)
        channel_means_joined[(cdiv(c, 8),)](*parts, mean, var, rstd, c, C=c, SPLIT=split, XBLOCK=8, RBLOCK=16, num_warps=2)
        return mean, var, rstd

    def reference():
        z = x.float().transpose(0, 1).reshape(c, -1)
        made = z.var(1, correction=0)
        return first[0] * 0.9 + 0.1 * z.mean(1), first[1] * 0.9 + 0.1 * z.var(1), (made + 1e-5).rsqrt()

    return against((launch, (x,)), reference)


@triton.jit
def larger_with_sum(max_1, sum_1, max_2, sum_2):
    high = tl.maximum(max_1, max_2)
    safe = tl.where(high == float("-inf"), 0.0, high)
    return high, sum_1 * libdevice.exp(max_1 - safe) + sum_2 * libdevice.exp(max_2 - safe)


@triton.jit
def online_log_softmax_nll(in_ptr0, in_ptr1, out_ptr0, out_ptr1, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    # Maximum and sum of every lane on the fly; pairs of them are reduced; the label's logit is gathered.
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    high = tl.full([XBLOCK, RBLOCK], float("-inf"), tl.float32)
    total = tl.zeros([XBLOCK, RBLOCK], tl.float32)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        ok = (rindex < rnumel) & xmask
        x = tl.load(in_ptr0 + rindex + rnumel * xindex, ok, eviction_policy="evict_first", other=float("-inf")).to(tl.float32)
        x = x * 0.0625
        high_next, total_next = larger_with_sum(high, total, x, tl.where(ok, 1.0, 0.0))
        high, total = tl.where(ok, high_next, high), tl.where(ok, total_next, total)
    high_1, total_1 = tl.reduce((high, total), 1, larger_with_sum)
    lse = high_1[:, None] + libdevice.log(total_1[:, None])
    label = tl.load(in_ptr1 + xindex, xmask, other=0)
    ignored = label == -100
    label = tl.where(ignored, tl.full(label.shape, 0, tl.int64), label)
    picked = tl.load(in_ptr0 + label + rnumel * xindex, xmask, other=0.0).to(tl.float32) * 0.0625
    tl.store(out_ptr0 + xindex, lse, xmask)
    tl.store(out_ptr1 + xindex, tl.where(ignored, 0.0, lse - picked), xmask)


@case
def label_losses_by_pairs_of_maximum_and_sum():
    rows, cols = 1501, 30522
    x, label = rand(rows, cols, dtype="bfloat16") * 40, ints(0, cols, rows, dtype="int64")
    label[::7] = -100
    lse, loss = zeros(rows, dtype="float32"), zeros(rows, dtype="float32")
    args = x, label, lse, loss, rows, cols
    launched = run(online_log_softmax_nll, (cdiv(rows, 2),), args, (lse, loss), XBLOCK=2, RBLOCK=1024, num_warps=8)

    def reference():
        z = x.float() / 16
        return z.logsumexp(1), F.cross_entropy(z, label, reduction="none")

    return against(launched, reference)


@triton.jit
def trilinear_flat(
    in_ptr0, out_ptr0, xnumel, D: tl.constexpr, H: tl.constexpr, W: tl.constexpr, OD: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr,
    XBLOCK: tl.constexpr,
):  # fmt: skip
    # Half-pixel centers, indices clamped on either side, eight loads by long indices.
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0, x1, x2, x3 = xindex % OW, (xindex // OW) % OH, (xindex // (OW * OH)) % OD, xindex // (OW * OH * OD)
    fw = tl.maximum((x0.to(tl.float32) + 0.5) * (W / OW) - 0.5, 0.0)
    fh = tl.maximum((x1.to(tl.float32) + 0.5) * (H / OH) - 0.5, 0.0)
    fd = tl.maximum((x2.to(tl.float32) + 0.5) * (D / OD) - 0.5, 0.0)
    w0, h0, d0 = fw.to(tl.int64), fh.to(tl.int64), fd.to(tl.int64)
    w1, h1, d1 = tl.minimum(w0 + 1, W - 1), tl.minimum(h0 + 1, H - 1), tl.minimum(d0 + 1, D - 1)
    aw = tl.minimum(tl.maximum(fw - w0.to(tl.float32), 0.0), 1.0)
    ah = tl.minimum(tl.maximum(fh - h0.to(tl.float32), 0.0), 1.0)
    ad = tl.minimum(tl.maximum(fd - d0.to(tl.float32), 0.0), 1.0)
    base = D * H * W * x3
    v000 = tl.load(in_ptr0 + base + (d0 * H + h0) * W + w0, xmask, eviction_policy="evict_last")
    v001 = tl.load(in_ptr0 + base + (d0 * H + h0) * W + w1, xmask, eviction_policy="evict_last")
    v010 = tl.load(in_ptr0 + base + (d0 * H + h1) * W + w0, xmask, eviction_policy="evict_last")
    v011 = tl.load(in_ptr0 + base + (d0 * H + h1) * W + w1, xmask, eviction_policy="evict_last")
    v100 = tl.load(in_ptr0 + base + (d1 * H + h0) * W + w0, xmask, eviction_policy="evict_last")
    v101 = tl.load(in_ptr0 + base + (d1 * H + h0) * W + w1, xmask, eviction_policy="evict_last")
    v110 = tl.load(in_ptr0 + base + (d1 * H + h1) * W + w0, xmask, eviction_policy="evict_last")
    v111 = tl.load(in_ptr0 + base + (d1 * H + h1) * W + w1, xmask, eviction_policy="evict_last")
    t0, t1 = v000 + (v001 - v000) * aw, v010 + (v011 - v010) * aw
    t2, t3 = v100 + (v101 - v100) * aw, v110 + (v111 - v110) * aw
    t4, t5 = t0 + (t1 - t0) * ah, t2 + (t3 - t2) * ah
    tl.store(out_ptr0 + xindex, t4 + (t5 - t4) * ad, xmask)


@case
def volumes_upsampled_trilinearly_by_flat_indices():
    planes, d, h, w = 32, 13, 33, 35
    od, oh, ow = 26, 66, 80
    x, y = f32(1, planes, d, h, w), zeros(1, planes, od, oh, ow, dtype="float32")
    launched = run(trilinear_flat, (cdiv(y.numel(), 512),), (x, y, y.numel()), y, D=d, H=h, W=w, OD=od, OH=oh, OW=ow, XBLOCK=512)
    return against(launched, lambda: F.interpolate(x, size=(od, oh, ow), mode="trilinear"))


@triton.jit
def max_pool_backward_gathered(
    in_ptr0, in_ptr1, out_ptr0, xnumel, H: tl.constexpr, W: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr, XBLOCK: tl.constexpr,
):  # fmt: skip
    # Gradients of 3x3 windows by 2: each input looks at up to four windows whether their place is its own.
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0, x1, x2 = xindex % W, (xindex // W) % H, xindex // (W * H)
    own = x1 * W + x0
    ph0, pw0 = x1 // 2, x0 // 2
    ph1, pw1 = tl.minimum((x1 + 1) // 2, OH - 1), tl.minimum((x0 + 1) // 2, OW - 1)
    ph0, pw0 = tl.minimum(ph0, OH - 1), tl.minimum(pw0, OW - 1)
    base = x2 * OH * OW
    i00 = tl.load(in_ptr0 + base + ph0 * OW + pw0, xmask, eviction_policy="evict_last")
    g00 = tl.load(in_ptr1 + base + ph0 * OW + pw0, xmask, eviction_policy="evict_last").to(tl.float32)
    acc = tl.where(i00 == own, g00, 0.0)
    i01 = tl.load(in_ptr0 + base + ph0 * OW + pw1, xmask, eviction_policy="evict_last")
    g01 = tl.load(in_ptr1 + base + ph0 * OW + pw1, xmask, eviction_policy="evict_last").to(tl.float32)
    acc = tl.where((pw1 != pw0) & (i01 == own), acc + g01, acc)
    i10 = tl.load(in_ptr0 + base + ph1 * OW + pw0, xmask, eviction_policy="evict_last")
    g10 = tl.load(in_ptr1 + base + ph1 * OW + pw0, xmask, eviction_policy="evict_last").to(tl.float32)
    acc = tl.where((ph1 != ph0) & (i10 == own), acc + g10, acc)
    i11 = tl.load(in_ptr0 + base + ph1 * OW + pw1, xmask, eviction_policy="evict_last")
    g11 = tl.load(in_ptr1 + base + ph1 * OW + pw1, xmask, eviction_policy="evict_last").to(tl.float32)
    acc = tl.where((ph1 != ph0) & (pw1 != pw0) & (i11 == own), acc + g11, acc)
    tl.store(out_ptr0 + xindex, acc, xmask)


@case
def gradients_of_pooled_maxima_looked_up_by_long_places():
    planes, h, w = 512, 112, 112
    oh, ow = (h + 1) // 2, (w + 1) // 2
    x, g = f32(1, planes, h, w), rand(1, planes, oh, ow)
    _, at = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    y = zeros(1, planes, h, w, dtype="float16")
    launched = run(max_pool_backward_gathered, (cdiv(y.numel(), 1024),), (at, g, y, y.numel()), y, H=h, W=w, OH=oh, OW=ow, XBLOCK=1024)

    def reference():
        made = torch.zeros(planes, h * w, device=x.device)
        return made.scatter_add_(1, at.view(planes, -1), g.float().view(planes, -1)).view(1, planes, h, w)

    return against(launched, reference)


@triton.jit
def avg_pool_backward_uncounted(
    in_ptr0, out_ptr0, xnumel, H: tl.constexpr, W: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr, K: tl.constexpr, S: tl.constexpr,
    P: tl.constexpr, XBLOCK: tl.constexpr,
):  # fmt: skip
    # Windows overlap; what lies outside is not counted, so each window divides by its own size.
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0, x1, x2 = xindex % W, (xindex // W) % H, xindex // (W * H)
    acc = tl.zeros([XBLOCK], tl.float32)
    for i in tl.static_range((K + S - 1) // S):
        for j in tl.static_range((K + S - 1) // S):
            ph, pw = (x1 + P) // S - i, (x0 + P) // S - j
            ok = (ph >= 0) & (pw >= 0) & (ph < OH) & (pw < OW) & (ph * S - P + K > x1) & (pw * S - P + K > x0) & xmask
            hs, ws = tl.maximum(ph * S - P, 0), tl.maximum(pw * S - P, 0)
            he, we = tl.minimum(ph * S - P + K, H), tl.minimum(pw * S - P + K, W)
            g = tl.load(in_ptr0 + (x2 * OH + ph) * OW + pw, ok, eviction_policy="evict_last", other=0.0)
            acc += tl.where(ok, g / ((he - hs) * (we - ws)).to(tl.float32), 0.0)
    tl.store(out_ptr0 + xindex, acc, xmask)


@case
def gradients_of_means_of_5x5_windows_by_two():
    planes, h, w, k, s, p = 400, 91, 77, 5, 2, 2
    oh, ow = (h + 2 * p - k) // s + 1, (w + 2 * p - k) // s + 1
    g, y = f32(planes, oh, ow), zeros(planes, h, w, dtype="float32")
    launched = run(avg_pool_backward_uncounted, (cdiv(y.numel(), 512),), (g, y, y.numel()), y, H=h, W=w, OH=oh, OW=ow, K=k, S=s, P=p, XBLOCK=512)

    def reference():
        counted = F.avg_pool2d(torch.ones(1, 1, h, w, device=g.device), k, s, p) * k * k
        kernel = torch.ones(1, 1, k, k, device=g.device)
        spread = F.conv_transpose2d((g / counted[0])[:, None], kernel, stride=s, padding=p, output_padding=(h - (oh - 1) * s + 2 * p - k, w - (ow - 1) * s + 2 * p - k))
        return spread[:, 0]

    return against(launched, reference)


@triton.jit
def foreach_step(
    p0, g0, m0, n0, p1, g1, m1, n1, p2, g2, m2, n2, p3, g3, m3, n3, lr, E0: tl.constexpr, E1: tl.constexpr, E2: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    # Four tensors in one launch: which of them is told by the program's number.
    pid = tl.program_id(0)
    if pid < E0:
        i = pid * BLOCK + tl.arange(0, BLOCK)
        ok = i < n0
        m = 0.9 * tl.load(m0 + i, ok, other=0.0) + tl.load(g0 + i, ok, other=0.0)
        tl.store(m0 + i, m, ok)
        tl.store(p0 + i, tl.load(p0 + i, ok, other=0.0) - lr * m, ok)
    elif pid < E1:
        i = (pid - E0) * BLOCK + tl.arange(0, BLOCK)
        ok = i < n1
        m = 0.9 * tl.load(m1 + i, ok, other=0.0) + tl.load(g1 + i, ok, other=0.0)
        tl.store(m1 + i, m, ok)
        tl.store(p1 + i, tl.load(p1 + i, ok, other=0.0) - lr * m, ok)
    elif pid < E2:
        i = (pid - E1) * BLOCK + tl.arange(0, BLOCK)
        ok = i < n2
        m = 0.9 * tl.load(m2 + i, ok, other=0.0) + tl.load(g2 + i, ok, other=0.0)
        tl.store(m2 + i, m, ok)
        tl.store(p2 + i, tl.load(p2 + i, ok, other=0.0) - lr * m, ok)
    else:
        i = (pid - E2) * BLOCK + tl.arange(0, BLOCK)
        ok = i < n3
        m = 0.9 * tl.load(m3 + i, ok, other=0.0) + tl.load(g3 + i, ok, other=0.0)
        tl.store(m3 + i, m, ok)
        tl.store(p3 + i, tl.load(p3 + i, ok, other=0.0) - lr * m, ok)


@case
def momentum_of_four_tensors_by_numbers_of_programs():
    sizes = 4096 * 1024, 1001 * 999, 2048 * 513, 77777
    params = [f32(n) for n in sizes]
    grads, moments, olds = [f32(n) for n in sizes], [f32(n) for n in sizes], [f32(n) for n in sizes]
    for m, old in zip(moments, olds):
        old.copy_(m)
    firsts = [p.clone() for p in params]
    ends = [sum(cdiv(n, 1024) for n in sizes[: i + 1]) for i in range(4)]

    def launch(*args):
        for p, first, m, old in zip(params, firsts, moments, olds):
            p.copy_(first)
            m.copy_(old)
        flat = [v for p, g, m, n in zip(params, grads, moments, sizes) for v in (p, g, m, n)]
        foreach_step[(ends[3],)](*flat, 1e-2, E0=ends[0], E1=ends[1], E2=ends[2], BLOCK=1024, num_warps=8)
        return params

    return against((launch, ()), lambda: [p - 1e-2 * (0.9 * m + g) for p, m, g in zip(firsts, olds, grads)])


@triton.jit
def add_template(
    arg_a, arg_b, in_ptr2, in_ptr3, out_ptr0, M, N, K, S, stride_am, stride_ak, stride_bk, stride_bn, GROUP_M: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    # A product of which rows are pixels: layer scale and the residual of NCHW, stored to NCHW by split indices.
    pid = tl.program_id(0)
    grid_m, grid_n = (M + BLOCK_M - 1) // BLOCK_M, (N + BLOCK_N - 1) // BLOCK_N
    width = GROUP_M * grid_n
    group_id = pid // width
    group_size = min(grid_m - group_id * GROUP_M, GROUP_M)
    pid_m, pid_n = group_id * GROUP_M + (pid % group_size), (pid % width) // group_size
    rm, rn = pid_m * BLOCK_M + tl.arange(0, BLOCK_M), pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_a_m = tl.max_contiguous(tl.multiple_of(rm % M, BLOCK_M), BLOCK_M)
    offs_b_n = tl.max_contiguous(tl.multiple_of(rn % N, BLOCK_N), BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k_idx in range(0, tl.cdiv(K, BLOCK_K)):
        k = k_idx * BLOCK_K + offs_k
        a = tl.load(arg_a + offs_a_m[:, None] * stride_am + k[None, :] * stride_ak, mask=k[None, :] < K, other=0.0)
        b = tl.load(arg_b + k[:, None] * stride_bk + offs_b_n[None, :] * stride_bn, mask=k[:, None] < K, other=0.0)
        acc += tl.dot(a, b, allow_tf32=True)
    idx_m, idx_n = rm[:, None], rn[None, :]
    mask = (idx_m < M) & (idx_n < N)
    xindex = (idx_m // S) * N * S + idx_n * S + idx_m % S
    tmp0 = tl.load(in_ptr2 + tl.broadcast_to(idx_n, acc.shape), mask, eviction_policy="evict_last").to(tl.float32)
    tmp1 = tl.load(in_ptr3 + tl.broadcast_to(xindex, acc.shape), mask, eviction_policy="evict_last").to(tl.float32)
    tl.store(out_ptr0 + tl.broadcast_to(xindex, acc.shape), (acc * tmp0 + tmp1).to(out_ptr0.dtype.element_ty), mask)


@case
def product_of_pixels_stored_to_planes_with_residual():
    n, s, c, k = 8, 28 * 28, 320, 1280
    a, b, g, x = rand(n * s, k, dtype="bfloat16"), rand(c, k, dtype="bfloat16") / 36, rand(c, dtype="bfloat16"), rand(n, c, s, dtype="bfloat16")
    y = zeros(n, c, s, dtype="bfloat16")
    args = a, b, g, x, y, n * s, c, k, s, k, 1, 1, k
    grid = (cdiv(n * s, 128) * cdiv(c, 64),)
    launched = run(add_template, grid, args, y, GROUP_M=8, BLOCK_M=128, BLOCK_N=64, BLOCK_K=32, num_stages=4)
    return against(launched, lambda: (a.float() @ b.float().t() * g.float()).view(n, s, c).transpose(1, 2) + x.float())


@triton.jit
def norm_backward_mixed(
    in_ptr0, in_ptr1, in_ptr2, in_ptr3, in_ptr4, out_ptr0, out_ptr1, out_ptr2, xnumel, rnumel, RSPLIT, XBLOCK: tl.constexpr,
    RBLOCK: tl.constexpr,
):  # fmt: skip
    # Gradients of rows and, in the same pass, partial sums for the gradients of gains and biases.
    pid = tl.program_id(0)
    r = tl.arange(0, RBLOCK)[None, :]
    rmask = r < rnumel
    g = tl.load(in_ptr2 + r, rmask, eviction_policy="evict_last", other=0.0)
    dgain = tl.zeros([1, RBLOCK], tl.float32)
    dbias = tl.zeros([1, RBLOCK], tl.float32)
    for x0 in range(0, RSPLIT, XBLOCK):
        x = pid * RSPLIT + x0 + tl.arange(0, XBLOCK)[:, None]
        xmask = x < xnumel
        dy = tl.load(in_ptr0 + r + rnumel * x, rmask & xmask, eviction_policy="evict_first", other=0.0).to(tl.float32)
        v = tl.load(in_ptr1 + r + rnumel * x, rmask & xmask, eviction_policy="evict_first", other=0.0).to(tl.float32)
        mean = tl.load(in_ptr3 + x, xmask, eviction_policy="evict_last", other=0.0)
        rstd = tl.load(in_ptr4 + x, xmask, eviction_policy="evict_last", other=0.0)
        hat = tl.where(rmask & xmask, (v - mean) * rstd, 0.0)
        wdy = dy * g
        s1 = tl.sum(wdy, 1)[:, None]
        s2 = tl.sum(wdy * hat, 1)[:, None]
        tl.store(out_ptr0 + r + rnumel * x, (rstd / rnumel * (rnumel * wdy - s1 - hat * s2)).to(out_ptr0.dtype.element_ty), rmask & xmask)
        dgain += tl.sum(dy * hat, 0, keep_dims=True)
        dbias += tl.sum(dy, 0, keep_dims=True)
    tl.store(out_ptr1 + pid * rnumel + r, dgain, rmask)
    tl.store(out_ptr2 + pid * rnumel + r, dbias, rmask)


@case
def norm_gradients_of_rows_and_columns_in_one_pass():
    rows, cols, split = 16384, 768, 64
    x, dy, g = rand(rows, cols, dtype="bfloat16"), rand(rows, cols, dtype="bfloat16"), f32(cols)
    mean, rstd = x.float().mean(1), (x.float().var(1, correction=0) + 1e-5).rsqrt()
    dx, a, b = zeros(rows, cols, dtype="bfloat16"), zeros(rows // split, cols, dtype="float32"), zeros(rows // split, cols, dtype="float32")
    args = dy, x, g, mean, rstd, dx, a, b, rows, cols, split
    launched = run(norm_backward_mixed, (rows // split,), args, (dx, a, b), XBLOCK=2, RBLOCK=1024, num_warps=8)

    def reference():
        hat, d = (x.float() - mean[:, None]) * rstd[:, None], dy.float()
        w = d * g
        made = rstd[:, None] * (w - w.mean(1, keepdim=True) - hat * (w * hat).mean(1, keepdim=True))
        return made, (d * hat).view(-1, split, cols).sum(1), d.view(-1, split, cols).sum(1)

    return against(launched, reference)


@triton.jit
def better_of_two(value_1, at_1, value_2, at_2):
    nan_1, nan_2 = value_1 != value_1, value_2 != value_2
    first = (value_1 > value_2) | (nan_1 & ~nan_2) | (((value_1 == value_2) | (nan_1 & nan_2)) & (at_1 < at_2))
    return tl.where(first, value_1, value_2), tl.where(first, at_1, at_2)


@triton.jit
def argmax_with_nan(in_ptr0, out_ptr0, out_ptr1, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    # Every lane's best with its place as a long integer; then pairs are reduced; what is no number wins.
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    best = tl.full([XBLOCK, RBLOCK], float("-inf"), tl.float32)
    where = tl.full([XBLOCK, RBLOCK], 9223372036854775807, tl.int64)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        ok = (rindex < rnumel) & xmask
        x = tl.load(in_ptr0 + rindex + rnumel * xindex, ok, eviction_policy="evict_first", other=0.0).to(tl.float32)
        best_next, where_next = better_of_two(best, where, x, tl.broadcast_to(rindex.to(tl.int64), x.shape))
        best, where = tl.where(ok, best_next, best), tl.where(ok, where_next, where)
    value, at = tl.reduce((best, where), 1, better_of_two)
    tl.store(out_ptr0 + xindex, at[:, None], xmask)
    tl.store(out_ptr1 + xindex, value[:, None].to(out_ptr1.dtype.element_ty), xmask)


@case
def places_of_maxima_where_some_are_no_numbers():
    rows, cols = 4000, 7001
    x = rand(rows, cols)
    x[::5, 17::1000] = float("nan")
    at, value = zeros(rows, dtype="int64"), zeros(rows)
    launched = run(argmax_with_nan, (cdiv(rows, 4),), (x, at, value, rows, cols), (at, value), XBLOCK=4, RBLOCK=512, num_warps=8)

    def reference():
        key = torch.where(x.isnan(), 1e6, x.float())
        top = key.amax(1, keepdim=True)
        return torch.where(key == top, arange(cols, "int64"), cols).amin(1), torch.where(top == 1e6, float("nan"), top)[:, 0]

    return against(launched, reference)


@triton.jit
def pointwise_3d(
    in_ptr0, in_ptr1, in_ptr2, out_ptr0, znumel, ynumel, xnumel, ZBLOCK: tl.constexpr, YBLOCK: tl.constexpr, XBLOCK: tl.constexpr,
):  # fmt: skip
    # A tile of three axes of which each input has another one innermost.
    z = tl.program_id(2) * ZBLOCK + tl.arange(0, ZBLOCK)[:, None, None]
    y = tl.program_id(1) * YBLOCK + tl.arange(0, YBLOCK)[None, :, None]
    x = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[None, None, :]
    mask = (z < znumel) & (y < ynumel) & (x < xnumel)
    tmp0 = tl.load(in_ptr0 + (z * ynumel + y) * xnumel + x, mask, other=0.0)
    tmp1 = tl.load(in_ptr1 + (z * xnumel + x) * ynumel + y, mask, other=0.0).to(tl.float32)
    tmp2 = tl.load(in_ptr2 + (x * ynumel + y) * znumel + z, mask, other=0.0)
    tl.store(out_ptr0 + (y * znumel + z) * xnumel + x, tmp0 * tl.sigmoid(tmp1) + tmp2, mask)


@case
def three_layouts_of_three_axes_in_one_tile():
    a, b, c = 130, 257, 260
    u, v, w, y = f32(a, b, c), rand(a, c, b), f32(c, b, a), zeros(b, a, c, dtype="float32")
    grid = cdiv(c, 16), cdiv(b, 16), cdiv(a, 16)
    launched = run(pointwise_3d, grid, (u, v, w, y, a, b, c), y, ZBLOCK=16, YBLOCK=16, XBLOCK=16, num_warps=8)
    return against(launched, lambda: (u * v.float().transpose(1, 2).sigmoid() + w.permute(2, 1, 0)).transpose(0, 1))


@triton.jit
def window_softmax(
    in_ptr0, in_ptr1, in_ptr2, in_ptr3, out_ptr0, xnumel, H: tl.constexpr, NW: tl.constexpr, L: tl.constexpr, XBLOCK: tl.constexpr,
    RBLOCK: tl.constexpr,
):  # fmt: skip
    # Scores of windows plus biases of a table by an index table, plus the mask of shifted windows; persistent.
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    r = tl.arange(0, RBLOCK)[None, :]
    ok = (r < L) & xmask
    x0, x1, x2 = xindex % L, (xindex // L) % H, xindex // (L * H)
    tmp0 = tl.load(in_ptr0 + r + L * xindex, ok, other=0.0).to(tl.float32)
    tmp1 = tl.load(in_ptr1 + r + L * x0, ok, eviction_policy="evict_last", other=0)
    tmp1 = tl.where(tmp1 < 0, tmp1 + 169, tmp1)
    tmp2 = tl.load(in_ptr2 + x1 + H * tmp1, ok, eviction_policy="evict_last", other=0.0)
    tmp3 = tl.load(in_ptr3 + r + L * x0 + L * L * (x2 % NW), ok, eviction_policy="evict_last", other=0.0)
    s = tl.where(ok, tmp0 * 0.17677669 + tmp2 + tmp3, float("-inf"))
    top = tl.max(s, 1)[:, None]
    e = libdevice.exp(s - tl.where(xmask, top, 0.0))
    e = tl.where(ok, e, 0.0)
    tl.store(out_ptr0 + r + L * xindex, (e / tl.sum(e, 1)[:, None]).to(out_ptr0.dtype.element_ty), ok)


@case
def scores_of_windows_with_two_kinds_of_bias():
    b, nw, h, length = 32, 64, 4, 49
    s, table, mask = rand(b * nw, h, length, length), f32(169, h), full(0.0, nw, length, length)
    mask[1::3, :20, 25:] = -100
    index = ints(-169, 169, length, length, dtype="int64")
    y = zeros(b * nw, h, length, length)
    rows = b * nw * h * length
    launched = run(window_softmax, (cdiv(rows, 8),), (s, index, table, mask, y, rows), y, H=h, NW=nw, L=length, XBLOCK=8, RBLOCK=64, num_warps=4)

    def reference():
        bias = table[index].permute(2, 0, 1)
        x = s.float() * 0.17677669 + bias
        return (x.view(b, nw, h, length, length) + mask[:, None]).view_as(s).softmax(-1)

    return against(launched, reference)


@triton.jit
def cubic(t, A: tl.constexpr):
    near = ((A + 2.0) * t - (A + 3.0)) * t * t + 1.0
    far_t = t + 1.0
    return ((A * far_t - 5.0 * A) * far_t + 8.0 * A) * far_t - 4.0 * A, near


@triton.jit
def affine_bicubic(in_ptr0, in_ptr1, out_ptr0, xnumel, C: tl.constexpr, H: tl.constexpr, W: tl.constexpr, XBLOCK: tl.constexpr):
    # An affine grid, cubic weights, indices clamped to the border: sixteen gathers of a flat index.
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0, x1, x2 = xindex % W, (xindex // W) % H, xindex // (W * H)
    n = x2 // C
    gx, gy = (2.0 * x0 + 1.0) / W - 1.0, (2.0 * x1 + 1.0) / H - 1.0
    t0, t1, t2 = tl.load(in_ptr1 + 6 * n, xmask), tl.load(in_ptr1 + 6 * n + 1, xmask), tl.load(in_ptr1 + 6 * n + 2, xmask)
    t3, t4, t5 = tl.load(in_ptr1 + 6 * n + 3, xmask), tl.load(in_ptr1 + 6 * n + 4, xmask), tl.load(in_ptr1 + 6 * n + 5, xmask)
    fx = ((t0 * gx + t1 * gy + t2 + 1.0) * W - 1.0) * 0.5
    fy = ((t3 * gx + t4 * gy + t5 + 1.0) * H - 1.0) * 0.5
    ix, iy = libdevice.floor(fx).to(tl.int32), libdevice.floor(fy).to(tl.int32)
    ax, ay = fx - ix, fy - iy
    wx0, wx1 = cubic(ax, -0.75)
    wx3, wx2 = cubic(1.0 - ax, -0.75)
    wy0, wy1 = cubic(ay, -0.75)
    wy3, wy2 = cubic(1.0 - ay, -0.75)
    acc = tl.zeros([XBLOCK], tl.float32)
    for i in tl.static_range(4):
        yy = tl.minimum(tl.maximum(iy + (i - 1), 0), H - 1)
        row = tl.zeros([XBLOCK], tl.float32)
        for j in tl.static_range(4):
            xx = tl.minimum(tl.maximum(ix + (j - 1), 0), W - 1)
            v = tl.load(in_ptr0 + (x2 * H + yy) * W + xx, xmask, eviction_policy="evict_last")
            row += v * (wx0 if j == 0 else wx1 if j == 1 else wx2 if j == 2 else wx3)
        acc += row * (wy0 if i == 0 else wy1 if i == 1 else wy2 if i == 2 else wy3)
    tl.store(out_ptr0 + xindex, acc, xmask)


@case
def images_turned_by_cubic_weights_of_flat_indices():
    n, c, h, w = 8, 3, 331, 402
    x, theta = f32(n, c, h, w), torch.tensor([[0.9, 0.3, 0.1], [-0.2, 1.1, -0.05]], device="cuda").repeat(n, 1, 1) + f32(n, 2, 3) / 50
    y = zeros(n, c, h, w, dtype="float32")
    launched = run(affine_bicubic, (cdiv(y.numel(), 256),), (x, theta, y, y.numel()), y, C=c, H=h, W=w, XBLOCK=256)

    def reference():
        grid = F.affine_grid(theta, (n, c, h, w), align_corners=False)
        return F.grid_sample(x, grid, mode="bicubic", padding_mode="border", align_corners=False)

    return against(launched, reference)


@triton.jit
def antialiased_columns(in_ptr0, out_ptr0, xnumel, IN: tl.constexpr, OUT: tl.constexpr, TAPS: tl.constexpr, XBLOCK: tl.constexpr):
    # Triangle weights as wide as the ratio, made where they are used; their sum is divided out.
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0, x1 = xindex % OUT, xindex // OUT
    ratio: tl.constexpr = IN / OUT
    center = (x0.to(tl.float32) + 0.5) * ratio
    low = tl.maximum((center - ratio + 0.5).to(tl.int64), 0)
    high = tl.minimum((center + ratio + 0.5).to(tl.int64), IN)
    acc = tl.zeros([XBLOCK], tl.float32)
    total = tl.zeros([XBLOCK], tl.float32)
    for t in range(TAPS):
        at = low + t
        ok = (at < high) & xmask
        weight = 1.0 - tl.abs((at.to(tl.float32) - center + 0.5) / ratio)
        weight = tl.where(ok, tl.maximum(weight, 0.0), 0.0)
        acc += weight * tl.load(in_ptr0 + x1 * IN + tl.minimum(at, IN - 1), ok, eviction_policy="evict_last", other=0).to(tl.float32)
        total += weight
    tl.store(out_ptr0 + xindex, libdevice.nearbyint(acc / total).to(tl.uint8), xmask)


@case
def rows_of_bytes_shrunk_by_triangles_as_wide_as_the_ratio():
    rows, wide, narrow = 30000, 640, 224
    x, y = ints(0, 256, rows, wide, dtype="uint8"), zeros(rows, narrow, dtype="uint8")
    args = x, y, y.numel()
    launched = run(antialiased_columns, (cdiv(y.numel(), 512),), args, y, IN=wide, OUT=narrow, TAPS=7, XBLOCK=512)

    def reference():
        center = (torch.arange(narrow, device=x.device, dtype=torch.float32) + 0.5) * (wide / narrow)
        weight = (1 - ((torch.arange(wide, device=x.device) + 0.5 - center[:, None]) / (wide / narrow)).abs()).clamp(min=0)
        return x.float() @ (weight / weight.sum(1, keepdim=True)).t()

    return against(launched, reference)


@triton.jit
def either(a, b):
    return a | b


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def three_reductions(in_ptr0, in_ptr1, out_ptr0, out_ptr1, out_ptr2, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    # Over the first axis: whether any is true, how many there are as long integers, and the product in double.
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    some = tl.full([XBLOCK, RBLOCK], False, tl.int1)
    many = tl.zeros([XBLOCK, RBLOCK], tl.int64)
    times = tl.full([XBLOCK, RBLOCK], 1.0, tl.float64)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        ok = (rindex < rnumel) & xmask
        flag = tl.load(in_ptr0 + xindex + xnumel * rindex, ok, eviction_policy="evict_first", other=0).to(tl.int1)
        x = tl.load(in_ptr1 + xindex + xnumel * rindex, ok, eviction_policy="evict_first", other=0.0)
        negative = x < 0.0
        some = tl.where(ok, some | (flag & negative), some)
        many = tl.where(ok, many + (flag ^ negative).to(tl.int64), many)
        times = tl.where(ok, times * (1.0 + x.to(tl.float64) * 0.01), times)
    tl.store(out_ptr0 + xindex, tl.reduce(some, 1, either)[:, None], xmask)
    tl.store(out_ptr1 + xindex, tl.sum(many, 1)[:, None], xmask)
    tl.store(out_ptr2 + xindex, tl.reduce(times, 1, product)[:, None], xmask)


@case
def any_count_and_product_over_the_first_axis():
    rows, cols = 1000, 12000
    flag, x = (ints(0, 100, rows, cols, dtype="uint8") < 1), f32(rows, cols)
    some, many, times = zeros(cols, dtype="bool"), zeros(cols, dtype="int64"), zeros(cols, dtype="float64")
    launched = run(three_reductions, (cdiv(cols, 32),), (flag, x, some, many, times, cols, rows), (some, many, times), XBLOCK=32, RBLOCK=32, num_warps=8)
    return against(launched, lambda: ((flag & (x < 0)).any(0), (flag ^ (x < 0)).sum(0), (1 + x.double() * 0.01).prod(0)))


@triton.jit
def sum_of_pairs(a_1, b_1, a_2, b_2):
    return a_1 + a_2, b_1 + b_2


@triton.jit
def running_standard_scores(in_ptr0, out_ptr0, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    # Prefix sums of values and squares by one scan of pairs: persistent rows, several in a program.
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    r = tl.arange(0, RBLOCK)[None, :]
    ok = (r < rnumel) & xmask
    x = tl.load(in_ptr0 + r + rnumel * xindex, ok, other=0.0).to(tl.float32)
    a, b = tl.associative_scan((x, x * x), 1, sum_of_pairs)
    count = (r + 1).to(tl.float32)
    mean = a / count
    var = tl.maximum(b / count - mean * mean, 0.0)
    tl.store(out_ptr0 + r + rnumel * xindex, ((x - mean) * libdevice.rsqrt(var + 1e-2)).to(out_ptr0.dtype.element_ty), ok)


@case
def running_scores_of_rows_of_200_by_scans_of_pairs():
    rows, cols = 60000, 200
    x, y = rand(rows, cols, dtype="bfloat16"), zeros(rows, cols, dtype="bfloat16")
    launched = run(running_standard_scores, (cdiv(rows, 16),), (x, y, rows, cols), y, XBLOCK=16, RBLOCK=256, num_warps=8)

    def reference():
        z, count = x.double(), torch.arange(1, cols + 1, device=x.device)
        mean = z.cumsum(1) / count
        return (z - mean) * ((z * z).cumsum(1) / count - mean * mean + 1e-2).rsqrt()

    return against(launched, reference)


@triton.jit
def roll_to_windows(
    in_ptr0, in_ptr1, in_ptr2, out_ptr0, xnumel, H: tl.constexpr, W: tl.constexpr, C: tl.constexpr, WS: tl.constexpr,
    SHIFT: tl.constexpr, XBLOCK: tl.constexpr,
):  # fmt: skip
    # Norm, roll by a shift, and partition to windows: one flat index whose remainders wrap.
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex % C
    x1 = (xindex // C) % WS
    x2 = (xindex // (C * WS)) % WS
    x3 = (xindex // (C * WS * WS)) % (W // WS)
    x4 = (xindex // (C * WS * W)) % (H // WS)
    x5 = xindex // (C * W * H)
    row, col = (x4 * WS + x2 + SHIFT) % H, (x3 * WS + x1 + SHIFT) % W
    pixel = (x5 * H + row) * W + col
    tmp0 = tl.load(in_ptr0 + x0 + C * pixel, xmask).to(tl.float32)
    tmp1 = tl.load(in_ptr1 + pixel, xmask, eviction_policy="evict_last")
    tmp2 = tl.load(in_ptr2 + pixel, xmask, eviction_policy="evict_last")
    tl.store(out_ptr0 + xindex, (tmp0 - tmp1) * tmp2, xmask)


@case
def rolled_windows_of_normalized_pixels_channels_last():
    n, h, w, c, ws, shift = 16, 56, 63, 180, 7, 3
    x, mean, rstd, y = rand(n, h, w, c), f32(n, h, w), uniform(n, h, w), zeros(n * h * w // 49, 49, c)
    launched = run(roll_to_windows, (cdiv(y.numel(), 1024),), (x, mean, rstd, y, y.numel()), y, H=h, W=w, C=c, WS=ws, SHIFT=shift, XBLOCK=1024)

    def reference():
        z = torch.roll((x.float() - mean[..., None]) * rstd[..., None], (-shift, -shift), (1, 2))
        return z.view(n, h // ws, ws, w // ws, ws, c).transpose(2, 3).reshape(-1, ws * ws, c)

    return against(launched, reference)


@triton.jit
def index_put_accumulate(
    in_ptr0, in_ptr1, in_ptr2, out_ptr0, xnumel, D: tl.constexpr, ROWS: tl.constexpr, SKIP: tl.constexpr, XBLOCK: tl.constexpr,
):  # fmt: skip
    # Gradients of a table: wrapped negative rows, a row that is padding, a gain for each element; relaxed atomics.
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0, x1 = xindex % D, xindex // D
    tmp0 = tl.load(in_ptr0 + x1, xmask, eviction_policy="evict_last")
    tmp1 = tl.where(tmp0 < 0, tmp0 + ROWS, tmp0)
    tl.device_assert(((0 <= tmp1) & (tmp1 < ROWS)) | ~xmask, "index out of bounds")
    tmp2 = tl.load(in_ptr1 + xindex, xmask).to(tl.float32)
    tmp3 = tl.load(in_ptr2 + x0, xmask, eviction_policy="evict_last")
    tmp4 = tl.where(tmp1 == SKIP, 0.0, tmp2 * tmp3)
    tl.atomic_add(out_ptr0 + x0 + D * tmp1, tmp4, xmask, sem="relaxed")


@case
def gradients_of_a_table_with_padding_added_by_atomics():
    tokens, d, rows = 8192, 600, 3000
    at, g, gain, out = ints(-rows, rows, tokens, dtype="int64"), rand(tokens, d, dtype="bfloat16"), f32(d), zeros(rows, d, dtype="float32")
    launched = run(index_put_accumulate, (cdiv(g.numel(), 1024),), (at, g, gain, out, g.numel()), out, D=d, ROWS=rows, SKIP=5, XBLOCK=1024)

    def reference():
        made = torch.zeros(rows, d, device=g.device).index_add_(0, at % rows, g.float() * gain)
        made[5] = 0
        return made

    return against(cleared(launched, out), reference)
