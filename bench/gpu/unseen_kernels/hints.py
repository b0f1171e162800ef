"""Kernels with what few authors write: heuristics, hints of caches, rounding and scopes, functions of libraries, 32 warps, functions of elements."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .common import against, case, cdiv, cleared, f32, ints, rand, run, uniform, viewed, zeros


def even_k(args):
    return args["K"] % args["BK"] == 0


def rows_in_group(args):
    return 4 if args["M"] > args["N"] else 8


@triton.heuristics({"EVEN_K": even_k, "GROUP": rows_in_group})
@triton.jit
def product_by_heuristics(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, EVEN_K: tl.constexpr, GROUP: tl.constexpr):
    # Flags follow from arguments; every index comes with what its author knows of it; the result is rounded toward zero.
    tl.static_assert(BM >= BN)
    tl.assume(stride_am > 0)
    tl.assume(stride_bk > 0)
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    width = GROUP * tiles_n
    first = pid // width * GROUP
    size = min(tiles_m - first, GROUP)
    pid_m, pid_n = first + (pid % width) % size, (pid % width) // size
    rm = tl.max_contiguous(tl.multiple_of((pid_m * BM + tl.arange(0, BM)) % M, BM), BM)
    rn = tl.max_contiguous(tl.multiple_of((pid_n * BN + tl.arange(0, BN)) % N, BN), BN)
    rk = tl.arange(0, BK)
    a, b = a_ptr + rm[:, None] * stride_am + rk[None, :], b_ptr + rk[:, None] * stride_bk + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        if EVEN_K:
            x, y = tl.load(a), tl.load(b)
        else:
            left = K - k * BK
            x = tl.load(a, mask=rk[None, :] < left, other=0.0)
            y = tl.load(b, mask=rk[:, None] < left, other=0.0)
        acc += tl.dot(x, y)
        a += BK
        b += BK * stride_bk
    rm, rn = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
    tl.store(c_ptr + rm[:, None] * stride_cm + rn[None, :], acc.to(tl.bfloat16, fp_downcast_rounding="rtz"), mask=(rm < M)[:, None] & (rn < N)[None, :])


@case
def gemm_256x64_by_heuristics_rounded_toward_zero():
    m, n, k = 2048, 1536, 1000
    a, b, c = rand(m, k, dtype="bfloat16"), rand(k, n, dtype="bfloat16"), zeros(m, n, dtype="bfloat16")
    grid = (cdiv(m, 256) * cdiv(n, 64),)
    launched = run(product_by_heuristics, grid, (a, b, c, m, n, k, k, n, n), c, BM=256, BN=64, BK=32, num_warps=8, num_stages=4)
    return against(launched, lambda: a.float() @ b.float())


@case
def gemm_64x32_by_heuristics_one_warp():
    m, n, k = 1000, 800, 1024
    a, b, c = rand(m, k, dtype="bfloat16"), rand(k, n, dtype="bfloat16"), zeros(m, n, dtype="bfloat16")
    grid = (cdiv(m, 64) * cdiv(n, 32),)
    launched = run(product_by_heuristics, grid, (a, b, c, m, n, k, k, n, n), c, BM=64, BN=32, BK=64, num_warps=1, num_stages=3)
    return against(launched, lambda: a.float() @ b.float())


@triton.jit
def clear_and_toggle(words_ptr, flips_ptr, place_ptr, keep_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    place = tl.load(place_ptr + i, mask=ok, other=0)
    keep = tl.load(keep_ptr + i, mask=ok, other=0)
    tl.atomic_and(words_ptr + place // 32, ~(1 << (place % 32)), mask=ok & (keep == 0), sem="relaxed")
    tl.atomic_xor(flips_ptr + place // 32, 1 << (place % 32), mask=ok, sem="relaxed", scope="gpu")


@case
def bits_cleared_and_toggled_by_atomics():
    n, bits = 1_500_000, 1 << 22
    place, keep = ints(0, bits, n), ints(0, 2, n, dtype="int8")
    words, flips = zeros(bits // 32, dtype="int32"), zeros(bits // 32, dtype="int32")
    launch, args = run(clear_and_toggle, (cdiv(n, 512),), (words, flips, place, keep, n), (words, flips), BLOCK=512)

    def all_set(*args):
        words.fill_(-1)
        flips.zero_()
        return launch(*args)

    return all_set, args


@triton.jit
def root_of_one(a, b, c):
    # An element by itself: bisection of x^3 + a x^2 + b x + c until it is narrow.
    low, high = -8.0, 8.0
    steps = 0
    while steps < 40 and high - low > 1e-5:
        middle = 0.5 * (low + high)
        if ((middle + a) * middle + b) * middle + c > 0.0:
            high = middle
        else:
            low = middle
        steps += 1
    return 0.5 * (low + high), steps


@triton.jit
def cubic_roots(a_ptr, b_ptr, c_ptr, root_ptr, steps_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    a, b, c = tl.load(a_ptr + i, mask=ok, other=0.0), tl.load(b_ptr + i, mask=ok, other=0.0), tl.load(c_ptr + i, mask=ok, other=0.0)
    root, steps = tl.map_elementwise(root_of_one, a, b, c)
    tl.store(root_ptr + i, root, mask=ok)
    tl.store(steps_ptr + i, steps, mask=ok)


@case
def roots_by_a_function_of_single_elements():
    n = 700_000
    a, b, c = f32(n), uniform(n) * 3 + 4, f32(n)
    root, steps = zeros(n, dtype="float32"), zeros(n, dtype="int32")
    return run(cubic_roots, (cdiv(n, 256),), (a, b, c, root, steps, n), (root, steps), BLOCK=256)


@triton.jit
def softmax_gradient_row(y_ptr, dy_ptr, dx_ptr, N, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * N
    n = tl.arange(0, BLOCK)
    ok = n < N
    y = tl.load(y_ptr + row + n, mask=ok, other=0.0, eviction_policy="evict_first").to(tl.float32)
    dy = tl.load(dy_ptr + row + n, mask=ok, other=0.0, eviction_policy="evict_first").to(tl.float32)
    inner = tl.sum(y * dy, 0)
    tl.store(dx_ptr + row + n, ((dy - inner) * y * scale).to(dx_ptr.dtype.element_ty), mask=ok, cache_modifier=".cs")


@case
def softmax_gradients_of_15000_by_32_warps():
    m, n = 900, 15000
    y, dy, dx = torch.softmax(rand(m, n).float(), 1).half(), rand(m, n), zeros(m, n)
    launched = run(softmax_gradient_row, (m,), (y, dy, dx, n, 64.0), dx, BLOCK=16384, num_warps=32)
    return against(launched, lambda: 64 * y.double() * (dy.double() - (y.double() * dy.double()).sum(1, keepdim=True)))


@case
def softmax_gradients_of_600_by_32_warps():
    m, n = 6000, 600
    y, dy, dx = torch.softmax(rand(m, n).float(), 1).half(), rand(m, n), zeros(m, n)
    return run(softmax_gradient_row, (m,), (y, dy, dx, n, 64.0), dx, BLOCK=1024, num_warps=32)


@triton.jit
def take_apart(x_ptr, e_ptr, m_ptr, up_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    x = tl.load(x_ptr + i, mask=ok, other=1.0)
    e = libdevice.ilogb(x)
    m = libdevice.ldexp(x, -e)
    tl.store(e_ptr + i, e.to(tl.int16), mask=ok)
    tl.store(m_ptr + i, libdevice.copysign(libdevice.fdim(libdevice.abs(m), 1.0), x), mask=ok)
    tl.store(up_ptr + i, libdevice.nextafter(x, libdevice.trunc(x)) - x, mask=ok)


@case
def floats_to_exponents_fractions_and_neighbors():
    n = 3_000_000
    x, e, m, up = f32(n) * 100, zeros(n, dtype="int16"), zeros(n, dtype="float32"), zeros(n, dtype="float32")
    return run(take_apart, (cdiv(n, 1024),), (x, e, m, up, n), (e, m, up), BLOCK=1024, num_warps=8)


@triton.jit
def mix_of_bytes(a_ptr, b_ptr, out_ptr, sad_ptr, W, BLOCK: tl.constexpr):
    # Words of four bytes: planes swapped by permutations, means by halving additions, differences of whole rows.
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.int32)
    for w0 in range(0, W, BLOCK):
        w = w0 + tl.arange(0, BLOCK)
        ok = w < W
        a = tl.load(a_ptr + row * W + w, mask=ok, other=0)
        b = tl.load(b_ptr + row * W + w, mask=ok, other=0)
        swapped = libdevice.byte_perm(a, b, tl.full((BLOCK,), 0x5140, tl.int32))
        mean = libdevice.hadd(a & 0x7FFFFFFF, b & 0x7FFFFFFF)
        high = libdevice.mulhi(swapped, mean)
        tl.store(out_ptr + row * W + w, swapped ^ libdevice.brev(high) ^ libdevice.mul24(a, b), mask=ok)
        total = libdevice.sad(a & 0xFFFF, b & 0xFFFF, total.to(tl.uint32, bitcast=True)).to(tl.int32, bitcast=True)
    tl.store(sad_ptr + row, tl.sum(total.to(tl.int64), 0))


@case
def words_of_two_images_permuted_averaged_and_compared():
    h, w = 3000, 1900
    a, b = ints(-(1 << 31), (1 << 31) - 1, h, w), ints(-(1 << 31), (1 << 31) - 1, h, w)
    out, sad = zeros(h, w, dtype="int32"), zeros(h, dtype="int64")
    return run(mix_of_bytes, (h,), (a, b, out, sad, w), (out, sad), BLOCK=512)


@triton.jit
def rare_functions(u_ptr, v_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = i < n
    u, v = tl.load(u_ptr + i, mask=ok, other=0.5), tl.load(v_ptr + i, mask=ok, other=0.5)
    gauss = libdevice.erfinv(2.0 * u - 1.0)
    far = libdevice.rcbrt(1.0 + v) * libdevice.rhypot(u + 0.5, v + 0.5)
    wave = libdevice.sinpi(3.0 * u) * libdevice.cospi(5.0 * v)
    beta = libdevice.tgamma(1.0 + u) * libdevice.tgamma(1.0 + v) / libdevice.tgamma(2.0 + u + v)
    tl.store(out_ptr + i, gauss + far + wave + beta + libdevice.atanh(u * 0.9) - libdevice.acosh(1.0 + v), mask=ok)


@case
def sums_of_functions_that_few_call():
    n = 2_000_000
    u, v, out = uniform(n) * 0.98 + 0.01, uniform(n), zeros(n, dtype="float32")
    return run(rare_functions, (cdiv(n, 512),), (u, v, out, n), out, BLOCK=512)


@triton.jit
def own_counts(x_ptr, counts_ptr, out_ptr, N, BINS: tl.constexpr, BLOCK: tl.constexpr, BINS_AT_ONCE: tl.constexpr):
    # Counts of a row in global memory that only this program sees; then the share of each bin.
    row = tl.program_id(0)
    own = counts_ptr + row * BINS
    for n0 in range(0, N, BLOCK):
        n = n0 + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * N + n, mask=n < N, other=0)
        tl.atomic_add(own + (x & (BINS - 1)), 1, mask=n < N, sem="relaxed", scope="cta")
    tl.debug_barrier()
    for b0 in tl.static_range(0, BINS, BINS_AT_ONCE):
        b = b0 + tl.arange(0, BINS_AT_ONCE)
        c = tl.load(own + b, volatile=True)
        tl.store(out_ptr + row * BINS + b, c.to(tl.float32) / N)


@case
def shares_of_bins_by_atomics_seen_by_one_program():
    m, n, bins = 1000, 5000, 1024
    x, counts, out = ints(0, 1 << 20, m, n), zeros(m, bins, dtype="int32"), zeros(m, bins, dtype="float32")
    launched = cleared(run(own_counts, (m,), (x, counts, out, n), out, BINS=bins, BLOCK=1024, BINS_AT_ONCE=256), counts)

    def reference():
        return torch.stack([torch.bincount(row & (bins - 1), minlength=bins) for row in x.long()]).double() / n

    return against(launched, reference)


@triton.jit
def middle_then(a0, b0, c0, a1, b1, c1):
    return a0 * a1, b0 * a1 + b1, tl.maximum(c0, c1)


@triton.jit
def scan_middle(a_ptr, b_ptr, y_ptr, top_ptr, T, C, S: tl.constexpr, BT: tl.constexpr, BC: tl.constexpr):
    # Three axes (chunks, times, channels) scanned along the middle, backwards, a triple an element.
    s, t, c = tl.arange(0, S)[:, None, None], tl.arange(0, BT)[None, :, None], tl.program_id(0) * BC + tl.arange(0, BC)[None, None, :]
    at = tl.program_id(1) * T * C + (s * BT + t) * C + c
    ok = (s * BT + t < T) & (c < C)
    a, b = tl.load(a_ptr + at, mask=ok, other=1.0), tl.load(b_ptr + at, mask=ok, other=0.0)
    _, y, top = tl.associative_scan((a, b, b), 1, middle_then, reverse=True)
    tl.store(y_ptr + at, y, mask=ok)
    tl.store(top_ptr + at, top, mask=ok)


@case
def triples_scanned_backwards_along_a_middle_axis():
    n, t, c = 60, 120, 200
    a, b = uniform(n, t, c), f32(n, t, c)
    y, top = zeros(n, t, c, dtype="float32"), zeros(n, t, c, dtype="float32")
    return run(scan_middle, (cdiv(c, 16), n), (a, b, y, top, t, c), (y, top), S=4, BT=32, BC=16, num_warps=4)


@triton.jit
def last_least(x0, i0, x1, i1):
    second = (x1 < x0) | ((x1 == x0) & (i1 > i0))
    return tl.where(second, x1, x0), tl.where(second, i1, i0)


@triton.jit
def least_of_middle(x_ptr, value_ptr, place_ptr, first_ptr, A: tl.constexpr, B, C, BB: tl.constexpr, BC: tl.constexpr):
    a, b, c = tl.arange(0, A)[:, None, None], tl.arange(0, BB)[None, :, None], tl.program_id(0) * BC + tl.arange(0, BC)[None, None, :]
    plane = tl.program_id(1) * A * B * C
    ok = (b < B) & (c < C)
    x = tl.load(x_ptr + plane + (a * B + b) * C + c, mask=ok, other=127)
    value, place = tl.reduce((x, tl.broadcast_to(b, A, BB, BC)), 1, last_least, keep_dims=True)
    first = tl.argmin(x, 1, tie_break_left=True)
    to = tl.program_id(1) * A * C + a * C + c
    tl.store(value_ptr + to, value, mask=c < C)
    tl.store(place_ptr + to, place.to(tl.int16), mask=c < C)
    flat = tl.program_id(1) * A * C + tl.arange(0, A)[:, None] * C + tl.program_id(0) * BC + tl.arange(0, BC)[None, :]
    tl.store(first_ptr + flat, first, mask=(tl.program_id(0) * BC + tl.arange(0, BC) < C)[None, :])


@case
def least_bytes_of_a_middle_axis_first_and_last_place():
    n, a, b, c = 100, 8, 60, 333
    x = ints(-20, 100, n, a, b, c, dtype="int8")
    value, place, first = zeros(n, a, c, dtype="int8"), zeros(n, a, c, dtype="int16"), zeros(n, a, c, dtype="int32")
    grid = cdiv(c, 32), n
    return run(least_of_middle, grid, (x, value, place, first), (value, place, first), A=a, B=b, C=c, BB=64, BC=32, num_warps=8)


@triton.jit
def merge_two(a_ptr, b_ptr, out_ptr, low_ptr, R, N: tl.constexpr, BR: tl.constexpr):
    # One list behind the other turned around is bitonic.
    r, n = tl.program_id(0) * BR + tl.arange(0, BR)[:, None], tl.arange(0, N)[None, :]
    ok = r < R
    a = tl.load(a_ptr + r * N + n, mask=ok, other=0.0)
    b = tl.flip(tl.load(b_ptr + r * N + n, mask=ok, other=0.0), 1)
    both = tl.reshape(tl.permute(tl.join(a, b), (0, 2, 1)), (BR, 2 * N))
    merged = tl.bitonic_merge(both, 1, True)
    n2 = tl.arange(0, 2 * N)[None, :]
    tl.store(out_ptr + r * 2 * N + n2, merged, mask=ok)
    tl.store(low_ptr + r * 2 * N + n2, tl.softmax(merged.to(tl.float32), 1, keep_dims=True), mask=ok)


@case
def two_sorted_rows_of_64_merged_and_weighted():
    r, n = 40_000, 64
    a, b = rand(r, n).sort(1).values, rand(r, n).sort(1).values
    out, low = zeros(r, 2 * n), zeros(r, 2 * n, dtype="float32")
    launched = run(merge_two, (cdiv(r, 16),), (a, b, out, low, r), (out, low), N=n, BR=16)

    def reference():
        both = torch.cat([a, b], 1).sort(1, descending=True).values
        return both, both.double().softmax(1)

    return against(launched, reference)


@triton.jit
def batched_bytes(a_ptr, b_ptr, c_ptr, scale_ptr, M, N, K, BB: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Bytes with a batch axis in the dot; scales of batches at the end.
    batch = tl.program_id(2) * BB + tl.arange(0, BB)[:, None, None]
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BB, BM, BN), tl.int32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + batch * M * K + m[None, :, None] * K + k[None, None, :], mask=(m < M)[None, :, None] & (k < K)[None, None, :], other=0)
        b = tl.load(b_ptr + batch * N * K + n[None, None, :] * K + k[None, :, None], mask=(n < N)[None, None, :] & (k < K)[None, :, None], other=0)
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
    c = acc.to(tl.float32) * tl.load(scale_ptr + batch)
    tl.store(c_ptr + batch * M * N + m[None, :, None] * N + n[None, None, :], c.to(tl.float16), mask=(m < M)[None, :, None] & (n < N)[None, None, :])


@case
def bytes_multiplied_with_a_batch_axis_in_the_dot():
    b, m, n, k = 64, 200, 180, 256
    x, y, scale = ints(-100, 100, b, m, k, dtype="int8"), ints(-100, 100, b, n, k, dtype="int8"), uniform(b) / 1000
    c = zeros(b, m, n)
    grid = cdiv(m, 32), cdiv(n, 32), b // 2
    launched = run(batched_bytes, grid, (x, y, c, scale, m, n, k), c, BB=2, BM=32, BN=32, BK=64)
    return against(launched, lambda: (x.double() @ y.double().mT) * scale[:, None, None])


@triton.jit
def copy_with_modifiers(src_ptr, add_ptr, dst_ptr, total_ptr, N, BLOCK: tl.constexpr):
    # What is read once bypasses, what is read by all stays, what is written goes through.
    pid = tl.program_id(0)
    n = tl.multiple_of(pid * BLOCK, BLOCK) + tl.max_contiguous(tl.arange(0, BLOCK), BLOCK)
    x = tl.load(src_ptr + n, mask=n < N, other=0.0, cache_modifier=".cg")
    y = tl.load(add_ptr + n % 4096, cache_modifier=".ca")
    z = tl.fma(x, y, tl.fdiv(x, y + 8.0))
    tl.store(dst_ptr + n, z, mask=n < N, cache_modifier=".wt")
    tl.store(total_ptr + pid, tl.sum(tl.ravel(tl.where(n < N, z, 0.0)), 0))


@case
def copies_with_modifiers_of_caches_and_sums_of_blocks():
    n = 6_000_000
    x, y, z = f32(n), uniform(4096), zeros(n, dtype="float32")
    total = zeros(cdiv(n, 2048), dtype="float32")
    launched = run(copy_with_modifiers, (cdiv(n, 2048),), (x, y, z, total, n), (z, total), BLOCK=2048)
    return viewed(launched, lambda outs: (outs[0], outs[1] + 1000))


@triton.constexpr_function
def power_of_two_above(n):
    return triton.next_power_of_2(n)


@triton.jit
def cosines_with_padding(x_ptr, y_ptr, out_ptr, D: tl.constexpr, R, BR: tl.constexpr):
    PAD: tl.constexpr = power_of_two_above(D)
    tl.static_assert(PAD >= D)
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    d = tl.arange(0, PAD)
    ok = (r < R).expand_dims(1) & (d < D)[None]
    x = tl.load(x_ptr + r.expand_dims(1) * D + d, mask=ok, other=0).to(tl.float32)
    y = tl.load(y_ptr + r.expand_dims(1) * D + d, mask=ok, other=0).to(tl.float32)
    xy, xx, yy = tl.sum(x * y, 1), tl.sum(x * x, 1), tl.sum(y * y, 1)
    tl.store(out_ptr + r, tl.div_rn(xy, tl.sqrt_rn(xx) * tl.sqrt_rn(yy)), mask=r < R)


@case
def cosines_of_rows_of_200_padded_by_a_function_of_constants():
    r, d = 30_000, 200
    x, y, out = rand(r, d), rand(r, d), zeros(r, dtype="float32")
    launched = run(cosines_with_padding, (cdiv(r, 8),), (x, y, out), out, D=d, R=r, BR=8, num_warps=2)
    launched = viewed(launched, lambda out: out + 1)
    return against(launched, lambda: torch.cosine_similarity(x.double(), y.double()) + 1)


@triton.jit
def chosen_dot(a_ptr, b_ptr, c_ptr, kinds_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Whether a block of K counts is a number: nothing, added, or taken away.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    N = tl.num_programs(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, K // BK):
        kind = tl.load(kinds_ptr + tl.program_id(0) * (K // BK) + i)
        if kind != 0:
            a = tl.load(a_ptr + m[:, None] * K + i * BK + k[None, :])
            b = tl.load(b_ptr + (i * BK + k)[:, None] * N + n[None, :])
            if kind > 0:
                acc = tl.dot(a, b, acc)
            else:
                acc = tl.dot(-a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.float16))


@case
def gemm_of_blocks_added_taken_away_or_left_out():
    m, n, k = 1024, 1024, 2048
    a, b, c, kinds = rand(m, k), rand(k, n), zeros(m, n), ints(-1, 2, m // 128, k // 64)
    launched = run(chosen_dot, (m // 128, n // 64), (a, b, c, kinds, k), c, BM=128, BN=64, BK=64, num_warps=4)

    def reference():
        signs = kinds.repeat_interleave(128, 0).repeat_interleave(64, 1)
        return (a.float() * signs) @ b.float()

    return against(launched, reference)


@triton.jit
def four_tiny_products(x_ptr, w_ptr, y_ptr, R, STEPS: tl.constexpr, D: tl.constexpr):
    # One warp: sixteen rows go through as many small layers as there are, each a dot of 16x16x16.
    r, d = tl.program_id(0) * 16 + tl.arange(0, 16), tl.arange(0, D)
    h = tl.load(x_ptr + r[:, None] * D + d[None, :], mask=(r < R)[:, None], other=0.0)
    for step in range(STEPS):
        w = tl.load(w_ptr + step * D * D + d[:, None] * D + d[None, :])
        u = tl.dot(h, w)
        h = (h.to(tl.float32) + u * tl.sigmoid(u)).to(tl.float16)
    tl.store(y_ptr + r[:, None] * D + d[None, :], h, mask=(r < R)[:, None])


@case
def twelve_layers_of_16_by_one_warp():
    r, d, steps = 100_000, 16, 12
    x, w, y = rand(r, d), rand(steps, d, d) / 8, zeros(r, d)
    launched = run(four_tiny_products, (cdiv(r, 16),), (x, w, y, r), y, STEPS=steps, D=d, num_warps=1)

    def reference():
        h = x.double()
        for one in w.double():
            u = h @ one
            h = h + u * u.sigmoid()
        return h

    return against(launched, reference)


@triton.jit
def halves_all_the_way(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Sums stay in half precision; both operands lie along the wrong axis.
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float16)
    for k0 in tl.range(0, K, BK, num_stages=4):
        a = tl.load(a_ptr + (k0 + k)[:, None] * M + m[None, :], mask=(m < M)[None, :], other=0.0)
        b = tl.load(b_ptr + n[:, None] * K + (k0 + k)[None, :], mask=(n < N)[:, None], other=0.0)
        acc = tl.dot(a.T, b.T, acc, out_dtype=tl.float16)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


@case
def gemm_summed_in_halves_of_operands_turned_in_registers():
    m, n, k = 1800, 1000, 512
    a, b, c = rand(k, m) / 4, rand(n, k) / 4, zeros(m, n)
    launched = run(halves_all_the_way, (cdiv(m, 64), cdiv(n, 128)), (a, b, c, m, n, k), c, BM=64, BN=128, BK=32, num_warps=8)
    return against(launched, lambda: a.float().mT @ b.float().mT)
