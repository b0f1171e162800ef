"""Phrases of the language that few kernels have: tuples of pointers, functions as constants, unrolled ranges, several results of an instruction, lists sorted to keys."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.language.extra import libdevice

from .assorted import with_descriptors
from .common import PROGRAMS, against, arange, case, cdiv, cleared, f32, ints, rand, run, uniform, viewed, zeros

EDGE = tl.constexpr(3)


@triton.jit
def sum_of_pointers(ptrs, weights, out_ptr, N, BLOCK: tl.constexpr):
    # A tuple of pointers of several types and one of numbers, walked when compiled.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for j in tl.static_range(len(ptrs)):
        total += tl.load(ptrs[j] + i, mask=i < N, other=0).to(tl.float32) * weights[j]
    tl.store(out_ptr + i, total, mask=i < N)


@case
def weighted_sums_of_a_tuple_of_tensors_of_four_types():
    n = 6_000_001
    parts, weights = (f32(n), rand(n), rand(n, dtype="bfloat16"), ints(-9, 9, n, dtype="int8")), (0.5, 2.0, -1.5, 0.25)
    out = zeros(n, dtype="float32")
    launched = run(sum_of_pointers, (cdiv(n, 1024),), (parts, weights, out, n), out, BLOCK=1024)
    return against(launched, lambda: sum(p.double() * w for p, w in zip(parts, weights)))


@triton.jit
def leaky_step(x):
    return tl.where(x > 0, x, 0.1 * x)


@triton.jit
def wave_step_of(x):
    return x + libdevice.sin(x) * libdevice.sin(x)


@triton.jit
def dense_with(x_ptr, w_ptr, y_ptr, M, N, K, FIRST: tl.constexpr, LAST: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Functions are constants: one on what goes in, another on what comes out; the program's place by swizzle2d.
    pm, pn = tl.swizzle2d(tl.program_id(0), tl.program_id(1), tl.num_programs(0), tl.num_programs(1), 4)
    m, n, k = pm * BM + tl.arange(0, BM), pn * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in tl.range(0, K, BK, num_stages=3, disallow_acc_multi_buffer=True):
        x = tl.load(x_ptr + m[:, None] * K + (k0 + k)[None, :], mask=(m < M)[:, None] & (k0 + k < K)[None, :], other=0.0)
        w = tl.load(w_ptr + (k0 + k)[:, None] * N + n[None, :], mask=(n < N)[None, :] & (k0 + k < K)[:, None], other=0.0)
        acc = tl.dot(FIRST(x.to(tl.float32)).to(tl.float16), w, acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], LAST(acc).to(tl.float16), mask=(m < M)[:, None] & (n < N)[None, :])


@case
def product_between_two_functions_that_are_constants():
    m, n, k = 1500, 1000, 504
    x, w, y = rand(m, k), rand(k, n) / 22, zeros(m, n)
    launched = run(dense_with, (cdiv(m, 64), cdiv(n, 64)), (x, w, y, m, n, k), y, FIRST=leaky_step, LAST=wave_step_of, BM=64, BN=64, BK=32, num_warps=4)

    def reference():
        z = F.leaky_relu(x.float(), 0.1).half().float() @ w.float()
        return z + z.sin().square()

    return against(launched, reference)


@triton.jit
def keep_sixteen(x_ptr, v_ptr, least_ptr, R, C: tl.constexpr, BR: tl.constexpr):
    r, c = tl.program_id(0) * BR + tl.arange(0, BR), tl.arange(0, C)
    x = tl.load(x_ptr + r[:, None] * C + c[None, :], mask=(r < R)[:, None], other=float("-inf"))
    top = tl.topk(x, 16, dim=1)
    tl.store(v_ptr + r[:, None] * 16 + tl.arange(0, 16)[None, :], top, mask=(r < R)[:, None])
    tl.store(least_ptr + r, tl.min(top, 1), mask=r < R)


@case
def sixteen_largest_of_rows_of_512_four_rows_a_program():
    r, c = 10_001, 512
    x, v, least = f32(r, c), zeros(r, 16, dtype="float32"), zeros(r, dtype="float32")
    launched = run(keep_sixteen, (cdiv(r, 4),), (x, v, least, r), (v, least), C=c, BR=4)
    return against(launched, lambda: (x.topk(16, 1)[0], x.topk(16, 1)[0][:, 15]))


@triton.jit
def keys_of_rows(x_ptr, key_ptr, R, C, P: tl.constexpr):
    # Values and their places as one long word, which sorts as both: floats with their bits turned in order.
    row = tl.program_id(0)
    c = tl.arange(0, P)
    x = tl.load(x_ptr + row * C + c, mask=c < C, other=float("inf"))
    bits = x.to(tl.int32, bitcast=True)
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    key = (bits.to(tl.int64) << 32) | c.to(tl.int64)
    key = tl.sort(key)
    tl.store(key_ptr + row * C + c, (key & 0xFFFFFFFF).to(tl.int32), mask=c < C)


@case
def places_of_floats_in_order_by_long_keys():
    r, c = 1500, 1000
    x, key = ints(-500, 500, r, c).float() / 8, zeros(r, c, dtype="int32")
    return against(run(keys_of_rows, (r,), (x, key, r, c), key, P=1024, num_warps=8), lambda: x.argsort(dim=1, stable=True))


@triton.jit
def best_and_total(m, s, i, n, t, j):
    top = tl.maximum(m, n)
    return top, s * tl.exp(m - top) + t * tl.exp(n - top), tl.where((m > n) | ((m == n) & (i < j)), i, j)


@triton.jit
def statistics_over_two_axes(x_ptr, top_ptr, lse_ptr, at_ptr, N, A: tl.constexpr, B: tl.constexpr, PA: tl.constexpr, PB: tl.constexpr, BN: tl.constexpr):
    # The largest, the log of the sum of exponentials and the place, in one reduction of triples of a tile of three axes seen as two.
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    a, b = tl.arange(0, PA), tl.arange(0, PB)
    ok = (n < N)[:, None, None] & (a < A)[None, :, None] & (b < B)[None, None, :]
    place = (a[:, None] * B + b[None, :])[None, :, :]
    x = tl.load(x_ptr + n[:, None, None] * (A * B) + place, mask=ok, other=-1e30)
    place = tl.broadcast_to(place, (BN, PA, PB))
    s = tl.where(ok, 1.0, 0.0)
    m, s, i = tl.reduce((tl.reshape(x, (BN, PA * PB)), tl.reshape(s, (BN, PA * PB)), tl.reshape(place, (BN, PA * PB))), 1, best_and_total)
    tl.store(top_ptr + n, m, mask=n < N)
    tl.store(lse_ptr + n, m + tl.log(s), mask=n < N)
    tl.store(at_ptr + n, i, mask=n < N)


@case
def largest_sums_and_places_over_planes_of_11x30():
    n, a, b = 30_000, 11, 30
    x, top, lse, at = f32(n, a, b), zeros(n, dtype="float32"), zeros(n, dtype="float32"), zeros(n, dtype="int32")
    launched = run(statistics_over_two_axes, (cdiv(n, 4),), (x, top, lse, at, n), (top, lse, at), A=a, B=b, PA=16, PB=32, BN=4)
    return against(launched, lambda: (x.flatten(1).amax(1), x.double().flatten(1).logsumexp(1), x.flatten(1).argmax(1)))


@triton.jit
def then_line(a, b, c, d):
    # First a x + b, then c x + d.
    return a * c, c * b + d


@triton.jit
def lines_from_the_end(a_ptr, b_ptr, y_ptr, T, C, BT: tl.constexpr, BC: tl.constexpr):
    # y[t] = a[t] y[t + 1] + b[t], by reversed scans of pairs of a block of time, the last block first, a row carried out of the tile.
    n, c = tl.program_id(1), tl.program_id(0) * BC + tl.arange(0, BC)
    carry = tl.zeros((BC,), tl.float32)
    t0 = (T - 1) // BT * BT
    while t0 >= 0:
        t = t0 + tl.arange(0, BT)
        ok = (t < T)[:, None] & (c < C)[None, :]
        at = (n * T + t)[:, None] * C + c[None, :]
        a, b = tl.load(a_ptr + at, mask=ok, other=1.0), tl.load(b_ptr + at, mask=ok, other=0.0)
        a, b = tl.associative_scan((a, b), 0, then_line, reverse=True)
        y = a * carry[None, :] + b
        tl.store(y_ptr + at, y, mask=ok)
        carry = tl.sum(tl.where((t == t0)[:, None], y, 0.0), 0)
        t0 -= BT


@case
def recurrences_from_the_end_by_reversed_scans_of_pairs():
    n, t, c = 24, 1000, 200
    a, b, y = uniform(n, t, c), f32(n, t, c), zeros(n, t, c, dtype="float32")
    launched = run(lines_from_the_end, (cdiv(c, 32), n), (a, b, y, t, c), y, BT=64, BC=32, num_warps=4)

    def reference():
        out, last = [], torch.zeros(n, c, device=a.device, dtype=torch.float64)
        for i in reversed(range(t)):
            last = a[:, i] * last + b[:, i]
            out.insert(0, last)
        return torch.stack(out, 1)

    return against(launched, reference)


@triton.jit
def sum_with_last_program(x_ptr, part_ptr, count_ptr, out_ptr, N, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    # Parts are stored; who counts last adds them up, reading around the caches.
    p = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in tl.range(p * BLOCK, N, PARTS * BLOCK, loop_unroll_factor=4):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < N, other=0.0, cache_modifier=".cg")
        total += x * x
    tl.store(part_ptr + p, tl.sum(total, 0))
    tl.debug_barrier()
    if tl.atomic_add(count_ptr, 1, sem="acq_rel", scope="gpu") == PARTS - 1:
        j = tl.arange(0, 1024)
        parts = tl.load(part_ptr + j, mask=j < PARTS, other=0.0, volatile=True)
        tl.store(out_ptr, tl.sqrt_rn(tl.sum(parts, 0)))


@case
def length_of_a_long_vector_by_the_last_program():
    n, parts = 30_000_003, 6 * PROGRAMS
    x, part, count, out = f32(n), zeros(parts, dtype="float32"), zeros(1, dtype="int32"), zeros(1, dtype="float32")
    launched = run(sum_with_last_program, (parts,), (x, part, count, out, n), out, PARTS=parts, BLOCK=1024, num_warps=4)
    return against(cleared(launched, count), lambda: x.double().norm()[None])


@triton.jit
def best_of_all(x_ptr, best_ptr, R, C, BR: tl.constexpr, BC: tl.constexpr):
    # Columns: the largest and its row as one long word, whose maximum atomics keep; of equals the later row.
    r, c = tl.program_id(1) * BR + tl.arange(0, BR), tl.program_id(0) * BC + tl.arange(0, BC)
    x = tl.load(x_ptr + r[:, None] * C + c[None, :], mask=(r < R)[:, None] & (c < C)[None, :], other=-1e30)
    v, at = tl.max(x, 0, return_indices=True, return_indices_tie_break_left=False)
    bits = v.to(tl.int32, bitcast=True)
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    key = (bits.to(tl.int64) << 32) + tl.program_id(1) * BR + at
    tl.atomic_max(best_ptr + c, key, mask=c < C, sem="relaxed")


@case
def largest_of_columns_and_their_rows_by_atomics_of_long_words():
    r, c = 9000, 1100
    x, best = ints(-999, 999, r, c).float(), zeros(c, dtype="int64")
    launched = run(best_of_all, (cdiv(c, 64), cdiv(r, 64)), (x, best, r, c), best, BR=64, BC=64)
    # Zero is less than any positive float's key.
    launched = viewed(cleared(launched, best), lambda out: (out >> 32, out & 0xFFFFFFFF))

    def reference():
        return x.amax(0).view(torch.int32), r - 1 - x.flip(0).argmax(0)

    return against(launched, reference)


@triton.jit
def bytes_to_halves_inline(x_ptr, scale_ptr, y_ptr, N, BLOCK: tl.constexpr):
    # Four bytes in a register to two registers of halves by permuted bytes and a subtraction: two results of one instruction text.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < N, other=0)
    low, high = tl.inline_asm_elementwise(
        """{
        .reg .b32 t, u, s;
        mov.b32 s, 0x64806480;
        xor.b32 t, $2, 0x80808080;
        prmt.b32 u, t, 0x64646464, 0x4140;
        prmt.b32 t, t, 0x64646464, 0x4342;
        sub.f16x2 $0, u, s;
        sub.f16x2 $1, t, s;
        }""",
        "=r,=r,r",
        [x],
        dtype=(tl.int32, tl.int32),
        is_pure=True,
        pack=1,
    )
    s = tl.load(scale_ptr + i // 64, mask=i < N, other=0.0)
    pairs = tl.join(low, high)
    halves = tl.join((pairs << 16).to(tl.int32) >> 16, pairs >> 16).to(tl.int16).to(tl.float16, bitcast=True)
    at = i[:, None, None] * 4 + tl.arange(0, 2)[None, :, None] * 2 + tl.arange(0, 2)[None, None, :]
    tl.store(y_ptr + at, halves * s[:, None, None], mask=(i < N)[:, None, None])


@case
def words_of_bytes_to_halves_by_instructions_with_two_results():
    n = 4_000_000
    x, s, y = ints(-(2**31), 2**31 - 1, n), rand(n // 64), zeros(4 * n)
    launched = run(bytes_to_halves_inline, (cdiv(n, 512),), (x, s, y, n), y, BLOCK=512, num_warps=4)
    return against(launched, lambda: x.view(torch.int8).double() * s.double().repeat_interleave(256))


@triton.jit
def turn_three_axes(x_ptr, y_ptr, A, B, C, BA: tl.constexpr, BB: tl.constexpr, BC: tl.constexpr):
    # Block pointers of three axes: read as [A, B, C], written as [C, A, B].
    pa, pb, pc = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    source = tl.make_block_ptr(x_ptr, (A, B, C), (B * C, C, 1), (pa * BA, pb * BB, pc * BC), (BA, BB, BC), (2, 1, 0))
    target = tl.make_block_ptr(y_ptr, (C, A, B), (A * B, B, 1), (pc * BC, pa * BA, pb * BB), (BC, BA, BB), (2, 1, 0))
    x = tl.load(source, boundary_check=(0, 1, 2), padding_option="zero")
    tl.store(target, tl.permute(x, (2, 0, 1)), boundary_check=(0, 1, 2))


@case
def three_axes_turned_by_block_pointers():
    a, b, c = 130, 150, 200
    x, y = f32(a, b, c), zeros(c, a, b, dtype="float32")
    launched = run(turn_three_axes, (cdiv(a, 4), cdiv(b, 16), cdiv(c, 32)), (x, y, a, b, c), y, BA=4, BB=16, BC=32, num_warps=4)
    return against(launched, lambda: x.permute(2, 0, 1))


@triton.jit
def exact_arithmetic(a_ptr, b_ptr, c_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # Roots and quotients rounded as they are defined, products whose rounding errors are computed.
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b, c = tl.load(a_ptr + i, mask=i < N, other=1.0), tl.load(b_ptr + i, mask=i < N, other=1.0), tl.load(c_ptr + i, mask=i < N, other=1.0)
    w = b * c
    e = tl.fma(-b, c, w)
    f = tl.fma(a, a, -w)
    d = tl.maximum(f + e, 0.0)
    root = tl.sqrt_rn(d)
    x = tl.div_rn(root + a, b)
    y = tl.fdiv(c, root + a + 1.0)
    tl.store(out_ptr + 2 * i, x, mask=i < N)
    tl.store(out_ptr + 2 * i + 1, y, mask=i < N)


@case
def roots_of_quadratics_with_exact_discriminants():
    n = 6_000_001
    a, b, c, out = uniform(n) + 2, uniform(n) + 1, uniform(n) + 1, zeros(n, 2, dtype="float32")
    launched = run(exact_arithmetic, (cdiv(n, 512),), (a, b, c, out, n), out, BLOCK=512)

    def reference():
        x, y, z = a.double(), b.double(), c.double()
        root = (x * x - y * z).clamp(min=0).sqrt()
        return torch.stack([(root + x) / y, z / (root + x + 1)], 1)

    return against(launched, reference)


@triton.jit
def whichever(a_ptr, b_ptr, choice_ptr, out_ptr, N, D: tl.constexpr, BLOCK: tl.constexpr):
    # Each row from the one table or from the other: the pointer itself is chosen, and the sign, by a branch for the program.
    row = tl.program_id(0)
    p, sign = a_ptr, 1.0
    if tl.load(choice_ptr + row):
        p = b_ptr
        sign = -1.0
    d = tl.arange(0, BLOCK)
    x = tl.load(p + row * D + d, mask=d < D, other=0.0)
    x = tl.where(d % EDGE == 0, x * sign, x)
    tl.store(out_ptr + row * D + d, tl.flip(x, 0), mask=d < D)


@case
def rows_of_one_table_or_another_by_booleans():
    n, d = 60_000, 256
    a, b, choice, out = f32(n, d), f32(n, d), uniform(n) < 0.4, zeros(n, d, dtype="float32")
    launched = run(whichever, (n,), (a, b, choice, out, n), out, D=d, BLOCK=256, num_warps=2)

    def reference():
        x = torch.where(choice[:, None], b, a)
        flip = (arange(d) % 3 == 0) & choice[:, None]
        return torch.where(flip, -x, x).flip(1)

    return against(launched, reference)


@triton.jit
def parities_so_far(x_ptr, y_ptr, R, C, BR: tl.constexpr, BC: tl.constexpr):
    # Gray codes of rows of bytes to numbers: running exclusive ors along a row, in bytes, with a carry.
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    carry = tl.zeros((BR,), tl.uint8)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        ok = (r < R)[:, None] & (c < C)[None, :]
        x = tl.load(x_ptr + r[:, None] * C + c[None, :], mask=ok, other=0)
        y = tl.associative_scan(x, 1, xor_of) ^ carry[:, None]
        tl.store(y_ptr + r[:, None] * C + c[None, :], y, mask=ok)
        carry = carry ^ tl.xor_sum(x, 1)


@triton.jit
def xor_of(a, b):
    return a ^ b


@case
def running_exclusive_ors_along_rows_of_bytes():
    r, c = 6000, 1500
    x, y = ints(0, 256, r, c, dtype="uint8"), zeros(r, c, dtype="uint8")
    launched = run(parities_so_far, (cdiv(r, 8),), (x, y, r, c), y, BR=8, BC=256)

    def reference():
        bits = [((x >> b) & 1).int().cumsum(1) % 2 << b for b in range(8)]
        return sum(bits)

    return against(launched, reference)


@triton.jit
def not_a_number_wins(x_ptr, low_ptr, high_ptr, out_ptr, R, C, BR: tl.constexpr, BC: tl.constexpr):
    # Minima, maxima and clamps that keep what is no number, and ones that drop it.
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    keep, drop = tl.full((BR, BC), float("-inf"), tl.float32), tl.full((BR, BC), float("inf"), tl.float32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        ok = (r < R)[:, None] & (c < C)[None, :]
        x = tl.load(x_ptr + r[:, None] * C + c[None, :], mask=ok, other=0.0).to(tl.float32)
        low, high = tl.load(low_ptr + c, mask=c < C, other=-1.0)[None, :], tl.load(high_ptr + c, mask=c < C, other=1.0)[None, :]
        x = tl.clamp(x, tl.broadcast_to(low, (BR, BC)), tl.broadcast_to(high, (BR, BC)), propagate_nan=tl.PropagateNan.ALL)
        keep = tl.maximum(keep, x, propagate_nan=tl.PropagateNan.ALL)
        drop = tl.minimum(drop, x, propagate_nan=tl.PropagateNan.NONE)
    seen = tl.max((keep != keep).to(tl.int32), 1)
    tl.store(out_ptr + r * 2, tl.where(seen != 0, 99.0, tl.max(keep, 1)), mask=r < R)
    tl.store(out_ptr + r * 2 + 1, tl.min(drop, 1), mask=r < R)


@case
def rows_with_and_without_what_is_no_number():
    r, c = 20_000, 700
    x = rand(r, c)
    x = torch.where(uniform(r, c) < 0.001, float("nan"), x).half()
    low, high, out = -uniform(c) - 1, uniform(c) + 1, zeros(r, 2, dtype="float32")
    launched = run(not_a_number_wins, (cdiv(r, 8),), (x, low, high, out, r, c), out, BR=8, BC=128)

    def reference():
        y = torch.maximum(torch.minimum(x.float(), high), low)
        return torch.stack([y.amax(1).nan_to_num(nan=99.0), y.nan_to_num(nan=9.0).amin(1)], 1)

    return against(launched, reference)


@triton.jit
def equalized_rows(x_ptr, y_ptr, N: tl.constexpr, BLOCK: tl.constexpr, BINS: tl.constexpr):
    # A histogram of a row under a mask, its running sums, and each level's share looked up by a gather.
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + i, mask=i < N, other=0).to(tl.int32)
    share = tl.cumsum(tl.histogram(x, BINS, mask=i < N), 0)
    level = tl.gather(share, x, 0).to(tl.float32) * (255.0 / N)
    tl.store(y_ptr + row * N + i, level.to(tl.uint8), mask=i < N)


@case
def rows_of_3000_bytes_equalized():
    r, n = 4000, 3000
    x, y = (uniform(r, n).square() * 256).to(torch.uint8), zeros(r, n, dtype="uint8")
    launched = run(equalized_rows, (r,), (x, y), y, N=n, BLOCK=4096, BINS=256, num_warps=8)
    return viewed(launched, lambda out: out.float() + 300)


@triton.jit
def rows_reordered(x_ptr, y_ptr, N, LOG: tl.constexpr, BC: tl.constexpr):
    # Rows of a tile in bit-reversed order by gathers along the first axis, then sums and differences of neighbors, a level at a time.
    SIZE: tl.constexpr = 1 << LOG
    b, c, r = tl.program_id(1), tl.program_id(0) * BC + tl.arange(0, BC), tl.arange(0, SIZE)
    at = (b * SIZE + r)[:, None] * N + c[None, :]
    x = tl.load(x_ptr + at, mask=(c < N)[None, :], other=0.0)
    back = tl.zeros((SIZE,), tl.int32)
    for bit in tl.static_range(LOG):
        back = back | (((r >> bit) & 1) << (LOG - 1 - bit))
    x = tl.gather(x, tl.broadcast_to(back[:, None], (SIZE, BC)), 0)
    for level in tl.static_range(LOG):
        other = tl.gather(x, tl.broadcast_to((r ^ (1 << level))[:, None], (SIZE, BC)), 0)
        x = tl.where(((r >> level) & 1 == 0)[:, None], x + other, other - x)
    tl.store(y_ptr + at, x * (SIZE**-0.5), mask=(c < N)[None, :])


@case
def sums_and_differences_down_columns_of_32_reordered():
    b, n, log = 200, 1000, 5
    x, y = f32(b, 32, n), zeros(b, 32, n, dtype="float32")
    launched = run(rows_reordered, (cdiv(n, 64), b), (x, y, n), y, LOG=log, BC=64, num_warps=4)

    def reference():
        h = torch.ones(1, 1, dtype=torch.float64, device=x.device)
        for _ in range(log):
            h = torch.cat([torch.cat([h, h], 1), torch.cat([h, -h], 1)], 0)
        r = arange(32, "int64")
        back = sum(((r >> i) & 1) << (log - 1 - i) for i in range(log))
        return torch.einsum("rs,bsn->brn", h, x.double()[:, back]) * 32**-0.5

    return against(launched, reference)


@triton.jit
def counts_by_descriptor(x_ptr, out_ptr, R, C, BR: tl.constexpr, BC: tl.constexpr):
    # Boxes of whole numbers kept as maxima by a descriptor: many row blocks go to one.
    x = tl.make_tensor_descriptor(x_ptr, shape=[R, C], strides=[C, 1], block_shape=[BR, BC])
    out = tl.make_tensor_descriptor(out_ptr, shape=[BR, C], strides=[C, 1], block_shape=[BR, BC])
    v = x.load([tl.program_id(1) * BR, tl.program_id(0) * BC])
    out.atomic_max([0, tl.program_id(0) * BC], v)


@case
def maxima_of_row_blocks_kept_by_a_descriptor():
    r, c = 8192, 1024
    x, out = ints(0, 1_000_000, r, c), zeros(16, c, dtype="int32")
    launched = run(counts_by_descriptor, (c // 64, r // 16), (x, out, r, c), out, BR=16, BC=64, num_warps=4)
    return against(with_descriptors(cleared(launched, out)), lambda: x.view(-1, 16, c).amax(0))


@triton.jit
def two_sources_joined(a_ptr, b_ptr, w_ptr, y_ptr, NA: tl.constexpr, NB: tl.constexpr):
    # Rows of two tensors as one for the norm: cat, whose order is free, then stores of both from what it was made of.
    row = tl.program_id(0).to(tl.int64)
    i, j = tl.arange(0, NA), tl.arange(0, NB)
    a, b = tl.load(a_ptr + row * NA + i).to(tl.float32), tl.load(b_ptr + row * NB + j).to(tl.float32)
    both = tl.cat(a, b, can_reorder=True)
    inv = tl.rsqrt(tl.sum(both * both, 0) / (NA + NB) + 1e-6)
    top = tl.max(tl.abs(both), 0) * inv
    y_ptr += row * (NA + NB)
    tl.store(y_ptr + i, (a * inv / top * tl.load(w_ptr + i)).to(tl.float16))
    tl.store(y_ptr + NA + j, (b * inv / top * tl.load(w_ptr + NA + j)).to(tl.float16))


@case
def rows_of_two_tensors_normed_as_one():
    r, n = 12_000, 1024
    a, b, w, y = rand(r, n), rand(r, n, dtype="bfloat16"), f32(2 * n), zeros(r, 2 * n)
    launched = run(two_sources_joined, (r,), (a, b, w, y), y, NA=n, NB=n, num_warps=4)

    def reference():
        x = torch.cat([a.float(), b.float()], 1)
        return x / x.abs().amax(1, keepdim=True) * w

    return against(launched, reference)


@triton.jit
def bridge_paths(out_ptr, seed, PATHS, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    # Four normal numbers from a counter at a time; paths tied at both ends; of each its largest and the area below it.
    p = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x, top, area, s = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32), 0
    while s < STEPS:
        n0, n1, n2, n3 = tl.randn4x(seed, p * STEPS + s)
        for k in tl.static_range(4):
            z = n0 if k == 0 else n1 if k == 1 else n2 if k == 2 else n3
            left = (STEPS - s - k).to(tl.float32)
            x = x * (1.0 - 1.0 / left) + z * tl.sqrt((left - 1.0) / left / STEPS)
            top = tl.maximum(top, x)
            area += x
        s += 4
    tl.store(out_ptr + p * 2, top, mask=p < PATHS)
    tl.store(out_ptr + p * 2 + 1, area / STEPS, mask=p < PATHS)


@case
def paths_tied_at_both_ends_their_largest_and_areas():
    paths, steps = 200_000, 64
    out = zeros(paths, 2, dtype="float32")
    return run(bridge_paths, (cdiv(paths, 128),), (out, 4321, paths), out, STEPS=steps, BLOCK=128, num_warps=4)


@triton.jit
def batched_small(a_ptr, b_ptr, c_ptr, Z, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BZ: tl.constexpr):
    # Eight products of 16x32 by 32x16 a program as one dot of three axes; a transpose of its last two and a sum of its diagonal.
    z = tl.program_id(0) * BZ + tl.arange(0, BZ)[:, None, None]
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + (z * M + m[None, :, None]) * K + k[None, None, :], mask=z < Z, other=0.0)
    b = tl.load(b_ptr + (z * N + n[None, :, None]) * K + k[None, None, :], mask=z < Z, other=0.0)
    c = tl.dot(a, tl.trans(b, 0, 2, 1))
    trace = tl.sum(tl.sum(tl.where((m[:, None] == n[None, :])[None, :, :], c, 0.0), 2, keep_dims=True), 1, keep_dims=True)
    tl.store(c_ptr + (z * M + m[None, :, None]) * N + n[None, None, :], (c - trace * (1.0 / M)).to(tl.float16), mask=z < Z)


@case
def products_of_16x32_less_their_mean_diagonals_eight_a_program():
    z, m, n, k = 20_001, 16, 16, 32
    a, b, c = rand(z, m, k), rand(z, n, k), zeros(z, m, n)
    launched = run(batched_small, (cdiv(z, 8),), (a, b, c, z), c, M=m, N=n, K=k, BZ=8, num_warps=4)

    def reference():
        p = a.float() @ b.float().transpose(1, 2)
        return p - p.diagonal(dim1=1, dim2=2).mean(1)[:, None, None]

    return against(launched, reference)
