"""Kernels of the corpus, written in plain triton.language.

The source of every module in this folder, to read beside it: a public kernel here became one
or more .ttir files; the launches are in the .json files and the expected results in
reference.py.  Names starting with an underscore are device helpers.
"""
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

LOG2E = tl.constexpr(1.4426950408889634)


# ---------------------------------------------------------------------------------------------
# elementwise
# ---------------------------------------------------------------------------------------------


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live)
    y = tl.load(y_ptr + offs, mask=live)
    tl.store(out_ptr + offs, x + y, mask=live)


@triton.jit
def saxpy_bf16(x_ptr, y_ptr, out_ptr, alpha, n, BLOCK: tl.constexpr):
    # alpha is a f32 runtime scalar, so the bf16 blocks are promoted and the arithmetic is f32
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live, other=0.0)
    y = tl.load(y_ptr + offs, mask=live, other=0.0)
    tl.store(out_ptr + offs, alpha * x + y, mask=live)


@triton.jit
def half_arith(x_ptr, y_ptr, u_ptr, v_ptr, bf_ptr, h_ptr, n, BLOCK: tl.constexpr):
    # arithmetic carried out in bf16 and in f16, without promotion
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live, other=0.0)
    y = tl.load(y_ptr + offs, mask=live, other=0.0)
    u = tl.load(u_ptr + offs, mask=live, other=0.0)
    v = tl.load(v_ptr + offs, mask=live, other=1.0)
    _put(bf_ptr, 0, n, offs, x + y, live)
    _put(bf_ptr, 1, n, offs, x * y, live)
    _put(bf_ptr, 2, n, offs, tl.maximum(x, y) - 1.5, live)
    _put(bf_ptr, 3, n, offs, tl.where(x < y, -x, y), live)
    _put(h_ptr, 0, n, offs, u - v, live)
    _put(h_ptr, 1, n, offs, u * v, live)
    _put(h_ptr, 2, n, offs, tl.minimum(u, v) + 0.25, live)
    _put(h_ptr, 3, n, offs, tl.where(u >= v, tl.abs(u), v), live)


@triton.jit
def masked_fill(x_ptr, mask_ptr, out_ptr, flag_ptr, value, n, BLOCK: tl.constexpr):
    # booleans in memory take one byte each
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live, other=0.0)
    m = tl.load(mask_ptr + offs, mask=live, other=0)
    tl.store(out_ptr + offs, tl.where(m, value, x), mask=live)
    tl.store(flag_ptr + offs, m ^ (x > 0.5), mask=live)


@triton.jit
def axpby_f64(x_ptr, y_ptr, out_ptr, a, b, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live, other=0.0)
    y = tl.load(y_ptr + offs, mask=live, other=0.0)
    r = x * a.to(tl.float64) + y * b.to(tl.float64)
    tl.store(out_ptr + offs, tl.sqrt(tl.abs(r)) + tl.floor(x), mask=live)


@triton.jit
def gelu_silu(x_ptr, gelu_ptr, silu_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live, other=0.0).to(tl.float32)
    gelu = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    silu = x * tl.sigmoid(x)
    tl.store(gelu_ptr + offs, gelu.to(tl.float16), mask=live)
    tl.store(silu_ptr + offs, silu.to(tl.float16), mask=live)


@triton.jit
def swiglu(gate_up_ptr, out_ptr, dim, BLOCK: tl.constexpr):
    # gate_up is [rows, 2 * dim]: the gate half, then the up half
    row = tl.program_id(0)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    live = col < dim
    base = gate_up_ptr + row * 2 * dim
    gate = tl.load(base + col, mask=live, other=0.0).to(tl.float32)
    up = tl.load(base + dim + col, mask=live, other=0.0).to(tl.float32)
    y = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out_ptr + row * dim + col, y.to(tl.bfloat16), mask=live)


@triton.jit
def _put(out_ptr, row: tl.constexpr, n, offs, value, live):
    tl.store(out_ptr + row * n + offs, value, mask=live)


@triton.jit
def math_unary(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live, other=1.0)
    _put(out_ptr, 0, n, offs, tl.exp(x), live)
    _put(out_ptr, 1, n, offs, tl.exp2(x), live)
    _put(out_ptr, 2, n, offs, tl.log(x), live)
    _put(out_ptr, 3, n, offs, tl.log2(x), live)
    _put(out_ptr, 4, n, offs, tl.sin(x), live)
    _put(out_ptr, 5, n, offs, tl.cos(x), live)
    _put(out_ptr, 6, n, offs, tl.sqrt(x), live)
    _put(out_ptr, 7, n, offs, tl.rsqrt(x), live)
    _put(out_ptr, 8, n, offs, tl.sqrt_rn(x), live)
    _put(out_ptr, 9, n, offs, tl.erf(x - 2.0), live)
    _put(out_ptr, 10, n, offs, tl.floor(x), live)
    _put(out_ptr, 11, n, offs, tl.ceil(x), live)
    _put(out_ptr, 12, n, offs, tl.abs(x - 2.0), live)
    _put(out_ptr, 13, n, offs, tl.fma(x, x, 0.5), live)
    _put(out_ptr, 14, n, offs, tl.fdiv(1.0, x), live)
    _put(out_ptr, 15, n, offs, tl.div_rn(x, x + 1.0), live)
    _put(out_ptr, 16, n, offs, -x, live)
    _put(out_ptr, 17, n, offs, x % 0.75, live)
    _put(out_ptr, 18, n, offs, tl.fdiv(1.5, x, approx=True), live)
    _put(out_ptr, 19, n, offs, tl.fdiv(x, 3.0, ieee_rounding=True), live)


@triton.jit
def where_clamp(x_ptr, y_ptr, out_ptr, lo, hi, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live, other=0.0)
    y = tl.load(y_ptr + offs, mask=live, other=0.0)
    nan_x = tl.where(x > 2.0, float("nan"), x)
    _put(out_ptr, 0, n, offs, tl.where((x > y) & (x != 0.0), x, -y), live)
    _put(out_ptr, 1, n, offs, tl.clamp(x, lo, hi), live)
    _put(out_ptr, 2, n, offs, tl.clamp(nan_x, lo, hi, propagate_nan=tl.PropagateNan.ALL), live)
    _put(out_ptr, 3, n, offs, tl.minimum(x, y), live)
    _put(out_ptr, 4, n, offs, tl.maximum(x, y), live)
    _put(out_ptr, 5, n, offs, tl.maximum(nan_x, y), live)
    _put(out_ptr, 6, n, offs, tl.maximum(nan_x, y, propagate_nan=tl.PropagateNan.ALL), live)
    _put(out_ptr, 7, n, offs, tl.minimum(nan_x, y, propagate_nan=tl.PropagateNan.ALL), live)
    _put(out_ptr, 8, n, offs, tl.where((x <= lo) | ~(y < hi), 1.0, 0.0), live)


@triton.jit
def int_ops(a_ptr, b_ptr, out_ptr, out64_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    a = tl.load(a_ptr + offs, mask=live, other=0)
    b = tl.load(b_ptr + offs, mask=live, other=3)
    b = tl.where(b == 0, 7, b)
    s = b & 15
    ua = a.to(tl.uint32, bitcast=True)
    ub = b.to(tl.uint32, bitcast=True)
    us = s.to(tl.uint32, bitcast=True)
    _put(out_ptr, 0, n, offs, a // b, live)
    _put(out_ptr, 1, n, offs, a % b, live)
    _put(out_ptr, 2, n, offs, a << s, live)
    _put(out_ptr, 3, n, offs, a >> s, live)
    _put(out_ptr, 4, n, offs, (ua >> us).to(tl.int32, bitcast=True), live)
    _put(out_ptr, 5, n, offs, (ua // ub).to(tl.int32, bitcast=True), live)
    _put(out_ptr, 6, n, offs, (ua % ub).to(tl.int32, bitcast=True), live)
    _put(out_ptr, 7, n, offs, tl.umulhi(ua, ub).to(tl.int32, bitcast=True), live)
    _put(out_ptr, 8, n, offs, a & b, live)
    _put(out_ptr, 9, n, offs, a | b, live)
    _put(out_ptr, 10, n, offs, a ^ b, live)
    _put(out_ptr, 11, n, offs, ~a, live)
    _put(out_ptr, 12, n, offs, tl.abs(a), live)
    _put(out_ptr, 13, n, offs, tl.minimum(a, b), live)
    _put(out_ptr, 14, n, offs, tl.maximum(a, b), live)
    _put(out_ptr, 15, n, offs, tl.minimum(ua, ub).to(tl.int32, bitcast=True), live)
    _put(out_ptr, 16, n, offs, tl.maximum(ua, ub).to(tl.int32, bitcast=True), live)
    _put(out_ptr, 17, n, offs, tl.where(ua < ub, 1, 0) + tl.where(a >= b, 2, 0), live)
    wide = a.to(tl.int64) * b.to(tl.int64)
    uwide = ua.to(tl.uint64) * 0x9E3779B97F4A7C15 + ub.to(tl.uint64)
    _put(out64_ptr, 0, n, offs, wide, live)
    _put(out64_ptr, 1, n, offs, wide // 1000003, live)
    _put(out64_ptr, 2, n, offs, wide % 1000003, live)
    _put(out64_ptr, 3, n, offs, wide >> 13, live)
    _put(out64_ptr, 4, n, offs, tl.umulhi(uwide, uwide).to(tl.int64, bitcast=True), live)
    _put(out64_ptr, 5, n, offs, (uwide >> 17).to(tl.int64, bitcast=True), live)


@triton.jit
def cast_numeric(x_ptr, i_ptr, f16_ptr, bf16_ptr, f64_ptr, i8_ptr, u8_ptr, i16_ptr, i32_ptr, i64_ptr, f32_ptr, n,
                 BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live, other=0.0)
    i = tl.load(i_ptr + offs, mask=live, other=0)
    h = x.to(tl.float16)
    b = x.to(tl.bfloat16)
    tl.store(f16_ptr + offs, h, mask=live)
    tl.store(f16_ptr + n + offs, x.to(tl.float16, fp_downcast_rounding="rtz"), mask=live)
    tl.store(f16_ptr + 2 * n + offs, b.to(tl.float16), mask=live)
    tl.store(bf16_ptr + offs, b, mask=live)
    tl.store(bf16_ptr + n + offs, (i >> 12).to(tl.bfloat16), mask=live)
    tl.store(f64_ptr + offs, x.to(tl.float64) * 3.0, mask=live)
    tl.store(i8_ptr + offs, x.to(tl.int8), mask=live)
    tl.store(i8_ptr + n + offs, i.to(tl.int8), mask=live)
    tl.store(u8_ptr + offs, tl.abs(x).to(tl.uint8), mask=live)
    tl.store(i16_ptr + offs, h.to(tl.int16, bitcast=True), mask=live)
    tl.store(i16_ptr + n + offs, b.to(tl.int16, bitcast=True), mask=live)
    tl.store(i32_ptr + offs, x.to(tl.int32), mask=live)
    tl.store(i32_ptr + n + offs, x.to(tl.int32, bitcast=True), mask=live)
    tl.store(i32_ptr + 2 * n + offs, i.to(tl.int8).to(tl.int32), mask=live)
    tl.store(i32_ptr + 3 * n + offs, i.to(tl.uint8).to(tl.int32), mask=live)
    tl.store(i64_ptr + offs, (x * 1.0e7).to(tl.int64), mask=live)
    tl.store(i64_ptr + n + offs, i.to(tl.int64) << 20, mask=live)
    tl.store(f32_ptr + offs, i.to(tl.float32), mask=live)
    tl.store(f32_ptr + n + offs, i.to(tl.uint32, bitcast=True).to(tl.float32), mask=live)
    tl.store(f32_ptr + 2 * n + offs, i.to(tl.int8).to(tl.float32), mask=live)
    tl.store(f32_ptr + 3 * n + offs, (i > 0).to(tl.float32), mask=live)
    tl.store(f32_ptr + 4 * n + offs, (i.to(tl.int64) * 12345).to(tl.float32), mask=live)
    tl.store(f32_ptr + 5 * n + offs, h.to(tl.float32) + b.to(tl.float32), mask=live)


@triton.jit
def cast_fp8(x_ptr, e4m3_ptr, e5m2_ptr, f32_ptr, f16_ptr, bf16_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live, other=0.0)
    h = x.to(tl.float16)
    b = x.to(tl.bfloat16)
    e4 = x.to(tl.float8e4nv)
    e5 = x.to(tl.float8e5)
    tl.store(e4m3_ptr + offs, e4, mask=live)
    tl.store(e4m3_ptr + n + offs, h.to(tl.float8e4nv), mask=live)
    tl.store(e4m3_ptr + 2 * n + offs, b.to(tl.float8e4nv), mask=live)
    tl.store(e5m2_ptr + offs, e5, mask=live)
    tl.store(e5m2_ptr + n + offs, h.to(tl.float8e5), mask=live)
    tl.store(e5m2_ptr + 2 * n + offs, b.to(tl.float8e5), mask=live)
    tl.store(f32_ptr + offs, e4.to(tl.float32), mask=live)
    tl.store(f32_ptr + n + offs, e5.to(tl.float32), mask=live)
    tl.store(f16_ptr + offs, e4.to(tl.float16), mask=live)
    tl.store(f16_ptr + n + offs, e5.to(tl.float16), mask=live)
    tl.store(bf16_ptr + offs, e4.to(tl.bfloat16), mask=live)
    tl.store(bf16_ptr + n + offs, e5.to(tl.bfloat16), mask=live)


# ---------------------------------------------------------------------------------------------
# memory
# ---------------------------------------------------------------------------------------------


@triton.jit
def copy_strided_2d(src_ptr, dst_ptr, rows, cols, src_rs, src_cs, dst_rs, dst_cs, BR: tl.constexpr, BC: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    live = (r[:, None] < rows) & (c[None, :] < cols)
    tile = tl.load(src_ptr + r[:, None] * src_rs + c[None, :] * src_cs, mask=live)
    tl.store(dst_ptr + r[:, None] * dst_rs + c[None, :] * dst_cs, tile, mask=live)


@triton.jit
def transpose_2d(src_ptr, dst_ptr, rows, cols, src_rs, dst_rs, BR: tl.constexpr, BC: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    tile = tl.load(src_ptr + r[:, None] * src_rs + c[None, :], mask=(r[:, None] < rows) & (c[None, :] < cols))
    flipped = tl.trans(tile)
    tl.store(dst_ptr + c[:, None] * dst_rs + r[None, :], flipped, mask=(c[:, None] < cols) & (r[None, :] < rows))


@triton.jit
def narrow_copy(src_ptr, dst_ptr, rows, W: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, W)
    offs = r[:, None] * W + c[None, :]
    live = (r < rows)[:, None]
    tl.store(dst_ptr + offs, tl.load(src_ptr + offs, mask=live), mask=live)


@triton.jit
def gather_rows(table_ptr, idx_ptr, out_ptr, n_rows, dim, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr):
    r = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    d = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    live_r = r < n_rows
    idx = tl.load(idx_ptr + r, mask=live_r, other=0)
    live = live_r[:, None] & (d[None, :] < dim)
    rows = tl.load(table_ptr + idx[:, None] * dim + d[None, :], mask=live, other=0.0)
    tl.store(out_ptr + r[:, None].to(tl.int64) * dim + d[None, :], rows, mask=live)


@triton.jit
def scatter_rows(src_ptr, perm_ptr, out_ptr, n_rows, dim, BLOCK_D: tl.constexpr):
    row = tl.program_id(0)
    if row < n_rows:
        target = tl.load(perm_ptr + row)
        for d0 in range(0, dim, BLOCK_D):
            d = d0 + tl.arange(0, BLOCK_D)
            v = tl.load(src_ptr + row * dim + d, mask=d < dim)
            tl.store(out_ptr + target * dim + d, v, mask=d < dim)


@triton.jit
def atomic_add_buckets(x_ptr, bucket_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live, other=0.0)
    bucket = tl.load(bucket_ptr + offs, mask=live, other=0)
    tl.atomic_add(out_ptr + bucket, x.to(out_ptr.dtype.element_ty), mask=live, sem="relaxed")


@triton.jit
def atomic_minmax(x_ptr, f_ptr, bucket_ptr, res_ptr, ures_ptr, fres_ptr, n, NB: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live, other=0)
    f = tl.load(f_ptr + offs, mask=live, other=0.0)
    bucket = tl.load(bucket_ptr + offs, mask=live, other=0)
    tl.atomic_max(res_ptr + bucket, x, mask=live)
    tl.atomic_min(res_ptr + NB + bucket, x, mask=live)
    ux = x.to(tl.uint32, bitcast=True)
    tl.atomic_max(ures_ptr + bucket, ux, mask=live)
    tl.atomic_min(ures_ptr + NB + bucket, ux, mask=live)
    tl.atomic_max(fres_ptr + bucket, f, mask=live)
    tl.atomic_min(fres_ptr + NB + bucket, f, mask=live)


@triton.jit
def atomic_bitwise(x_ptr, bucket_ptr, res_ptr, wide_ptr, n, NB: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live, other=0)
    bucket = tl.load(bucket_ptr + offs, mask=live, other=0)
    tl.atomic_and(res_ptr + bucket, x, mask=live)
    tl.atomic_or(res_ptr + NB + bucket, x, mask=live)
    tl.atomic_xor(res_ptr + 2 * NB + bucket, x, mask=live)
    tl.atomic_add(wide_ptr + bucket, x.to(tl.int64), mask=live, sem="release", scope="gpu")


@triton.jit
def atomic_ticket(counter_ptr, out_ptr):
    # every program draws a unique ticket, so the set of writes does not depend on the order
    ticket = tl.atomic_add(counter_ptr, 1, sem="acq_rel", scope="gpu")
    tl.store(out_ptr + ticket, ticket * ticket + 3)


@triton.jit
def atomic_cas_block(slot_ptr, expect_ptr, seen_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    expect = tl.load(expect_ptr + offs)
    seen = tl.atomic_cas(slot_ptr + offs, expect, expect + 100)
    tl.store(seen_ptr + offs, seen)


@triton.jit
def spinlock_accumulate(x_ptr, acc_ptr, lock_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + offs)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(acc_ptr + offs, tl.load(acc_ptr + offs) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def atomic_flags(flag_ptr, x_ptr, out_ptr, done_ptr, BLOCK: tl.constexpr):
    # the flags are already raised at launch, so the poll returns at once
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    ok = tl.atomic_poll(flag_ptr + pid, 5, sem="acquire", scope="gpu")
    x = tl.atomic_load(x_ptr + offs, sem="relaxed", scope="gpu")
    tl.store(out_ptr + offs, tl.where(ok, x * 2, -1))
    tl.atomic_store(done_ptr + pid, pid + 1, sem="release", scope="sys")


@triton.jit
def cache_hints(a_ptr, b_ptr, c_ptr, o0_ptr, o1_ptr, o2_ptr, o3_ptr, o4_ptr, o5_ptr, n, BLOCK: tl.constexpr):
    # PTX does not allow a cache operator together with an eviction priority
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    ca = tl.load(a_ptr + offs, mask=live, other=0.0, cache_modifier=".ca")
    cg = tl.load(b_ptr + offs, mask=live, other=0.0, cache_modifier=".cg")
    cv = tl.load(c_ptr + offs, mask=live, other=0.0, cache_modifier=".cv")
    last = tl.load(a_ptr + offs, mask=live, other=0.0, eviction_policy="evict_last")
    first = tl.load(b_ptr + offs, mask=live, other=0.0, eviction_policy="evict_first")
    vol = tl.load(c_ptr + offs, mask=live, other=0.0, volatile=True)
    tl.store(o0_ptr + offs, ca + cg, mask=live, cache_modifier=".cs")
    tl.store(o1_ptr + offs, cg - cv, mask=live, cache_modifier=".wt")
    tl.store(o2_ptr + offs, last * vol, mask=live, cache_modifier=".cg")
    tl.store(o3_ptr + offs, first + vol, mask=live, cache_modifier=".wb")
    tl.store(o4_ptr + offs, last - first, mask=live, eviction_policy="evict_first")
    tl.store(o5_ptr + offs, cv * 2.0, mask=live, eviction_policy="evict_last")


@triton.jit
def pointer_cast(x_ptr, out_ptr, lane_ptr, BLOCK: tl.constexpr):
    # pointer -> integer -> pointer, and a pointer bitcast that reads f32 data as i32
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    addr = (x_ptr + offs).to(tl.int64)
    lane = (addr % 16).to(tl.int32) // 4
    again = (addr & -4).to(tl.pointer_type(tl.float32))
    bits = tl.load(x_ptr.to(tl.pointer_type(tl.int32), bitcast=True) + offs)
    tl.store(out_ptr + offs, tl.load(again) + (bits & 1).to(tl.float32))
    tl.store(lane_ptr + offs, lane)


@triton.jit
def desc_copy_2d(src_ptr, dst_ptr, rows, cols, BR: tl.constexpr, BC: tl.constexpr):
    src = tl.make_tensor_descriptor(src_ptr, shape=[rows, cols], strides=[cols, 1], block_shape=[BR, BC])
    dst = tl.make_tensor_descriptor(dst_ptr, shape=[rows, cols], strides=[cols, 1], block_shape=[BR, BC])
    r0 = tl.program_id(0) * BR
    c0 = tl.program_id(1) * BC
    dst.store([r0, c0], src.load([r0, c0]))


@triton.jit
def desc_pad_nan_3d(src_ptr, dst_ptr, d0, d1, d2, B0: tl.constexpr, B1: tl.constexpr, B2: tl.constexpr):
    # out-of-bounds elements read as NaN; dst is larger than the source box, so they become visible
    src = tl.make_tensor_descriptor(src_ptr, shape=[d0, d1, d2], strides=[d1 * d2, d2, 1], block_shape=[B0, B1, B2],
                                    padding_option="nan")
    i0 = tl.program_id(0) * B0
    i1 = tl.program_id(1) * B1
    tile = src.load([i0, i1, 0])
    a = i0 + tl.arange(0, B0)
    b = i1 + tl.arange(0, B1)
    c = tl.arange(0, B2)
    p1 = tl.num_programs(1) * B1
    offs = (a[:, None, None] * p1 + b[None, :, None]) * B2 + c[None, None, :]
    tl.store(dst_ptr + offs, tile)


@triton.jit
def desc_reduce_add(x_ptr, acc_ptr, cols, BR: tl.constexpr, BC: tl.constexpr):
    # every program adds its slab into the same [BR, cols] accumulator
    acc = tl.make_tensor_descriptor(acc_ptr, shape=[BR, cols], strides=[cols, 1], block_shape=[BR, BC])
    slab = tl.program_id(0)
    c0 = tl.program_id(1) * BC
    r = slab * BR + tl.arange(0, BR)
    c = c0 + tl.arange(0, BC)
    x = tl.load(x_ptr + r[:, None] * cols + c[None, :], mask=c[None, :] < cols, other=0.0)
    acc.atomic_add([0, c0], x)


# ---------------------------------------------------------------------------------------------
# reductions
# ---------------------------------------------------------------------------------------------


@triton.jit
def row_sum(x_ptr, out_ptr, cols, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK, ), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * stride + offs, mask=offs < cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


@triton.jit
def row_max(x_ptr, out_ptr, rows, cols, stride, BR: tl.constexpr, BC: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = tl.arange(0, BC)
    live = (r[:, None] < rows) & (c[None, :] < cols)
    x = tl.load(x_ptr + r[:, None] * stride + c[None, :], mask=live, other=-float("inf"))
    tl.store(out_ptr + r, tl.max(x, axis=1), mask=r < rows)


@triton.jit
def row_argmax(x_ptr, max_ptr, argmax_ptr, argmin_ptr, cols, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    live = offs < cols
    x = tl.load(x_ptr + row * stride + offs, mask=live, other=-float("inf"))
    best, where = tl.max(x, axis=0, return_indices=True)
    tl.store(max_ptr + row, best)
    tl.store(argmax_ptr + row, where)
    tl.store(argmin_ptr + row, tl.argmin(tl.where(live, x, float("inf")), axis=0))


@triton.jit
def tile_argmin(x_ptr, min_ptr, argmin_ptr, R: tl.constexpr, C: tl.constexpr):
    # along the first axis of a 2D tile, the lower index wins ties
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * R * C + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :])
    low, at = tl.min(x, axis=0, return_indices=True)
    tl.store(min_ptr + pid * C + tl.arange(0, C), low)
    tl.store(argmin_ptr + pid * C + tl.arange(0, C), at)


@triton.jit
def col_sum(x_ptr, out_ptr, rows, cols, stride, BR: tl.constexpr, BC: tl.constexpr):
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    acc = tl.zeros((BR, BC), dtype=tl.float32)
    for r0 in range(0, rows, BR):
        r = r0 + tl.arange(0, BR)
        live = (r[:, None] < rows) & (c[None, :] < cols)
        acc += tl.load(x_ptr + r[:, None] * stride + c[None, :], mask=live, other=0.0).to(tl.float32)
    tl.store(out_ptr + c, tl.sum(acc, axis=0), mask=c < cols)


@triton.jit
def int_reduce(x_ptr, sum_ptr, xor_ptr, any_ptr, total_ptr, BR: tl.constexpr, BC: tl.constexpr):
    pid = tl.program_id(0)
    r = pid * BR + tl.arange(0, BR)
    c = tl.arange(0, BC)
    x = tl.load(x_ptr + r[:, None] * BC + c[None, :])
    tl.store(sum_ptr + r, tl.sum(x, axis=1))
    tl.store(xor_ptr + pid * BC + c, tl.xor_sum(x, axis=0))
    tl.store(any_ptr + r, tl.reduce_or((x > 95).to(tl.int32), axis=1))
    tl.store(total_ptr + pid, tl.sum(x.to(tl.int64)))


@triton.jit
def _welford_merge(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    delta = mean_b - mean_a
    frac = tl.where(n > 0.0, n_b / tl.maximum(n, 1.0), 0.0)
    return mean_a + delta * frac, m2_a + m2_b + delta * delta * n_a * frac, n


@triton.jit
def welford_var(x_ptr, mean_ptr, var_ptr, cols, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    live = offs < cols
    x = tl.load(x_ptr + row * stride + offs, mask=live, other=0.0).to(tl.float32)
    zero = tl.zeros((BLOCK, ), dtype=tl.float32)
    mean, m2, count = tl.reduce((x, zero, live.to(tl.float32)), 0, _welford_merge)
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, m2 / count)


@triton.jit
def logsumexp_rows(x_ptr, out_ptr, cols, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    m = tl.full((BLOCK, ), -float("inf"), dtype=tl.float32)
    s = tl.zeros((BLOCK, ), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + offs, mask=offs < cols, other=-1.0e30)
        m_new = tl.maximum(m, x)
        s = s * tl.exp(m - m_new) + tl.exp(x - m_new)
        m = m_new
    top = tl.max(m, axis=0)
    tl.store(out_ptr + row, top + tl.log(tl.sum(s * tl.exp(m - top), axis=0)))


@triton.jit
def softmax_rows(x_ptr, out_ptr, cols, x_stride, out_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    live = offs < cols
    x = tl.load(x_ptr + row * x_stride + offs, mask=live, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + offs, e / tl.sum(e, axis=0), mask=live)


@triton.jit
def layer_norm_fwd(x_ptr, w_ptr, b_ptr, out_ptr, mean_ptr, rstd_ptr, cols, stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_row = x_ptr + row * stride
    total = tl.zeros((BLOCK, ), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        total += tl.load(x_row + offs, mask=offs < cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / cols
    square = tl.zeros((BLOCK, ), dtype=tl.float32)
    for start in range(0, cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + offs, mask=offs < cols, other=0.0).to(tl.float32)
        d = tl.where(offs < cols, x - mean, 0.0)
        square += d * d
    rstd = tl.rsqrt(tl.sum(square, axis=0) / cols + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        live = offs < cols
        x = tl.load(x_row + offs, mask=live, other=0.0).to(tl.float32)
        w = tl.load(w_ptr + offs, mask=live, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + offs, mask=live, other=0.0).to(tl.float32)
        y = (x - mean) * rstd * w + b
        tl.store(out_ptr + row * stride + offs, y.to(out_ptr.dtype.element_ty), mask=live)


@triton.jit
def rms_norm_fwd(x_ptr, w_ptr, out_ptr, cols, stride, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    live = offs < cols
    x = tl.load(x_ptr + row * stride + offs, mask=live, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + offs, mask=live, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / cols + eps)
    tl.store(out_ptr + row * stride + offs, (x * scale * w).to(tl.bfloat16), mask=live)


@triton.jit
def cross_entropy_fwd(logits_ptr, target_ptr, loss_ptr, lse_ptr, vocab, stride, ignore_index, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(target_ptr + row)
    base = logits_ptr + row * stride
    m = -float("inf")
    s = 0.0
    for start in range(0, vocab, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(base + offs, mask=offs < vocab, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        s = s * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)
        m = m_new
    lse = m + tl.log(s)
    tl.store(lse_ptr + row, lse)
    if target == ignore_index:
        loss = 0.0
    else:
        loss = lse - tl.load(base + target).to(tl.float32)
    tl.store(loss_ptr + row, loss)


# ---------------------------------------------------------------------------------------------
# scans, sorting, in-register gather
# ---------------------------------------------------------------------------------------------


@triton.jit
def cumsum_tile(x_ptr, out_ptr, R: tl.constexpr, C: tl.constexpr, AXIS: tl.constexpr):
    base = tl.program_id(0) * R * C
    offs = base + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    tl.store(out_ptr + offs, tl.cumsum(tl.load(x_ptr + offs), axis=AXIS))


@triton.jit
def cumprod_reverse(x_ptr, out_ptr, R: tl.constexpr, C: tl.constexpr):
    base = tl.program_id(0) * R * C
    offs = base + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    tl.store(out_ptr + offs, tl.cumprod(tl.load(x_ptr + offs), axis=1, reverse=True))


@triton.jit
def _affine_compose(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1


@triton.jit
def linear_recurrence(a_ptr, b_ptr, h_ptr, T: tl.constexpr, C: tl.constexpr):
    # h[t] = a[t] * h[t - 1] + b[t] for each channel, as a scan over affine maps
    c = tl.program_id(0) * C + tl.arange(0, C)
    width = tl.num_programs(0) * C
    offs = tl.arange(0, T)[:, None] * width + c[None, :]
    a = tl.load(a_ptr + offs)
    b = tl.load(b_ptr + offs)
    _, h = tl.associative_scan((a, b), 0, _affine_compose)
    tl.store(h_ptr + offs, h)


@triton.jit
def sort_rows(x_ptr, up_ptr, down_ptr, R: tl.constexpr, C: tl.constexpr):
    base = tl.program_id(0) * R * C
    offs = base + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    x = tl.load(x_ptr + offs)
    tl.store(up_ptr + offs, tl.sort(x))
    tl.store(down_ptr + offs, tl.sort(x, descending=True))


@triton.jit
def topk_rows(x_ptr, out_ptr, C: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * C + tl.arange(0, C))
    tl.store(out_ptr + row * K + tl.arange(0, K), tl.topk(x, K))


@triton.jit
def flip_rows(x_ptr, out_ptr, R: tl.constexpr, C: tl.constexpr):
    base = tl.program_id(0) * R * C
    offs = base + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    tl.store(out_ptr + offs, tl.flip(tl.load(x_ptr + offs), dim=1))


@triton.jit
def histogram_i32(x_ptr, out_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live, other=0)
    counts = tl.histogram(x, BINS, mask=live)
    tl.atomic_add(out_ptr + tl.arange(0, BINS), counts, sem="relaxed")


@triton.jit
def gather_tile(src_ptr, idx_ptr, out_ptr, R: tl.constexpr, C: tl.constexpr, IR: tl.constexpr, IC: tl.constexpr,
                AXIS: tl.constexpr):
    pid = tl.program_id(0)
    src = tl.load(src_ptr + pid * R * C + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :])
    offs = pid * IR * IC + tl.arange(0, IR)[:, None] * IC + tl.arange(0, IC)[None, :]
    idx = tl.load(idx_ptr + offs)
    tl.store(out_ptr + offs, tl.gather(src, idx, axis=AXIS))


# ---------------------------------------------------------------------------------------------
# shape manipulation
# ---------------------------------------------------------------------------------------------


@triton.jit
def reshape_permute(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr):
    # [A*B, C*D] tile regrouped into C x A blocks: (a, b, c, d) -> (c, a, d, b)
    N: tl.constexpr = A * B * C * D
    offs = tl.arange(0, A * B)[:, None] * (C * D) + tl.arange(0, C * D)[None, :]
    x = tl.load(x_ptr + tl.program_id(0) * N + offs)
    y = tl.reshape(x, (A, B, C, D))
    y = tl.permute(y, (2, 0, 3, 1))
    tl.store(out_ptr + tl.program_id(0) * N + tl.arange(0, N), tl.reshape(y, (N, )))


@triton.jit
def outer_broadcast(a_ptr, b_ptr, c_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, A)
    j = tl.arange(0, B)
    k = tl.arange(0, C)
    a = tl.load(a_ptr + pid * A + i)
    b = tl.load(b_ptr + j[:, None] * C + k[None, :])
    c = tl.load(c_ptr + k)
    a3 = tl.expand_dims(tl.expand_dims(a, 1), 2)
    b3 = tl.broadcast_to(b[None, :, :], (A, B, C))
    y = a3 * b3 + c[None, None, :]
    offs = (i[:, None, None] * B + j[None, :, None]) * C + k[None, None, :]
    tl.store(out_ptr + pid * A * B * C + offs, y)


@triton.jit
def complex_mul(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    # complex numbers stored as (re, im) pairs
    base = tl.program_id(0) * 2 * BLOCK
    offs = base + tl.arange(0, 2 * BLOCK)
    xr, xi = tl.split(tl.reshape(tl.load(x_ptr + offs), (BLOCK, 2)))
    yr, yi = tl.split(tl.reshape(tl.load(y_ptr + offs), (BLOCK, 2)))
    z = tl.join(xr * yr - xi * yi, xr * yi + xi * yr)
    tl.store(out_ptr + offs, tl.reshape(z, (2 * BLOCK, )))


@triton.jit
def cat_tiles(a_ptr, b_ptr, out_ptr, sum_ptr, R: tl.constexpr, C: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * R * C + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    a = tl.load(a_ptr + offs)
    b = tl.load(b_ptr + offs)
    wide = tl.cat(a, b, dim=1)
    wide_offs = pid * 2 * R * C + tl.arange(0, R)[:, None] * (2 * C) + tl.arange(0, 2 * C)[None, :]
    tl.store(out_ptr + wide_offs, wide)
    # the element order of a reordering cat is unspecified, so only a reduction may consume it
    mixed = tl.cat(tl.sum(a, axis=1), tl.sum(b, axis=1), can_reorder=True)
    tl.store(sum_ptr + pid, tl.sum(mixed, axis=0))


@triton.jit
def interleave_rows(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + offs, mask=offs < n, other=0.0)
    b = tl.load(b_ptr + offs, mask=offs < n, other=0.0)
    out_offs = pid * 2 * BLOCK + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + out_offs, tl.interleave(a, b), mask=out_offs < 2 * n)


@triton.jit
def rope_fwd(x_ptr, cos_ptr, sin_ptr, out_ptr, seq, heads, HALF: tl.constexpr, BLOCK_H: tl.constexpr):
    # rotary embedding on [seq, heads, 2 * HALF] with the two halves rotated against each other
    pos = tl.program_id(0)
    h = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    d = tl.arange(0, HALF)
    cos = tl.load(cos_ptr + pos * HALF + d)[None, :]
    sin = tl.load(sin_ptr + pos * HALF + d)[None, :]
    offs = (pos * heads + h[:, None]) * (2 * HALF) + d[None, :]
    live = (h[:, None] < heads) & (pos < seq)
    lo = tl.load(x_ptr + offs, mask=live, other=0.0).to(tl.float32)
    hi = tl.load(x_ptr + offs + HALF, mask=live, other=0.0).to(tl.float32)
    tl.store(out_ptr + offs, (lo * cos - hi * sin).to(tl.bfloat16), mask=live)
    tl.store(out_ptr + offs + HALF, (hi * cos + lo * sin).to(tl.bfloat16), mask=live)


@triton.jit
def scalar_split(x_ptr, out_ptr):
    # two-element block taken apart into scalars and put together again
    pid = tl.program_id(0)
    pair = tl.load(x_ptr + pid * 2 + tl.arange(0, 2))
    first, second = tl.split(pair)
    lanes = tl.join(second, first)
    tl.store(out_ptr + pid * 4 + tl.arange(0, 2), lanes)
    tl.store(out_ptr + pid * 4 + 2, first + second)
    tl.store(out_ptr + pid * 4 + 3, first * second)


# ---------------------------------------------------------------------------------------------
# dot
# ---------------------------------------------------------------------------------------------


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
           BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr, PRECISION: tl.constexpr):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + (rm % M)[:, None] * stride_am + rk[None, :] * stride_ak
    b_ptrs = b_ptr + rk[:, None] * stride_bk + (rn % N)[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=ACC)
    for k in range(0, tl.cdiv(K, BK)):
        left = K - k * BK
        a = tl.load(a_ptrs, mask=rk[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=rk[:, None] < left, other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=ACC)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    c = acc.to(c_ptr.dtype.element_ty)
    live = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(c_ptr + rm[:, None] * stride_cm + rn[None, :] * stride_cn, c, mask=live)


@triton.jit
def matmul_bias_relu(a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm, BM: tl.constexpr,
                     BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] * stride_am + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * stride_bk + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptrs, mask=(rm[:, None] < M) & (rk[None, :] + k < K), other=0.0)
        b = tl.load(b_ptrs, mask=(rk[:, None] + k < K) & (rn[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BK
        b_ptrs += BK * stride_bk
    bias = tl.load(bias_ptr + rn, mask=rn < N, other=0.0).to(tl.float32)
    y = tl.maximum(acc + bias[None, :], 0.0)
    tl.store(c_ptr + rm[:, None] * stride_cm + rn[None, :], y.to(tl.float16),
             mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def dot_small(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    # one independent M x N x K product per program, no loop
    pid = tl.program_id(0)
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    a = tl.load(a_ptr + pid * M * K + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + pid * K * N + k[:, None] * N + n[None, :])
    tl.store(c_ptr + pid * M * N + m[:, None] * N + n[None, :], tl.dot(a, b))


@triton.jit
def batched_dot_3d(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    # a block of B batches is multiplied by a single rank-3 dot
    g = tl.program_id(0) * B + tl.arange(0, B)[:, None, None]
    m = tl.arange(0, M)[None, :, None]
    n = tl.arange(0, N)[None, None, :]
    acc = tl.zeros((B, M, N), dtype=tl.float32)
    for k0 in range(0, K, BK):
        ka = k0 + tl.arange(0, BK)[None, None, :]
        kb = k0 + tl.arange(0, BK)[None, :, None]
        a = tl.load(a_ptr + (g * M + m) * K + ka)
        b = tl.load(b_ptr + (g * K + kb) * N + n)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + (g * M + m) * N + n, acc.to(tl.float16))


@triton.jit
def matmul_nt(a_ptr, b_ptr, c_ptr, M, N, K, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # C = A @ B^T with B stored as [N, K]
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rm[:, None] * lda + (k + rk)[None, :], mask=rm[:, None] < M, other=0.0)
        b = tl.load(b_ptr + rn[:, None] * ldb + (k + rk)[None, :], mask=rn[:, None] < N, other=0.0)
        acc = tl.dot(a, tl.trans(b), acc)
    tl.store(c_ptr + rm[:, None] * ldc + rn[None, :], acc.to(c_ptr.dtype.element_ty),
             mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def matmul_tn(a_ptr, b_ptr, c_ptr, M, N, K, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # C = A^T @ B with A stored as [K, M]; read through transposed pointers rather than tl.trans
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] + rk[None, :] * lda
    b_ptrs = b_ptr + rk[:, None] * ldb + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BK * lda
        b_ptrs += BK * ldb
    tl.store(c_ptr + rm[:, None] * ldc + rn[None, :], acc.to(c_ptr.dtype.element_ty))


@triton.jit
def matmul_split_k(a_ptr, b_ptr, c_ptr, M, N, K, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                   SPLIT: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    rk = part * BK + tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK * SPLIT)):
        at = k * BK * SPLIT + rk
        a = tl.load(a_ptr + rm[:, None] * lda + at[None, :], mask=(rm[:, None] < M) & (at[None, :] < K), other=0.0)
        b = tl.load(b_ptr + at[:, None] * ldb + rn[None, :], mask=(at[:, None] < K) & (rn[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.atomic_add(c_ptr + rm[:, None] * ldc + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N),
                  sem="relaxed")


@triton.jit
def matmul_grouped(a_ptr, b_ptr, c_ptr, M, N, K, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                   GROUP: tl.constexpr):
    # one-dimensional grid walked in column strips of GROUP tile rows for L2 reuse
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    strip = pid // (GROUP * tiles_n)
    first = strip * GROUP
    height = tl.minimum(tiles_m - first, GROUP)
    inside = pid % (GROUP * tiles_n)
    pid_m = first + inside % height
    pid_n = inside // height
    # M and N are multiples of 16, so the wrapped indices still come in aligned runs of 16
    rm = tl.max_contiguous(tl.multiple_of((pid_m * BM + tl.arange(0, BM)) % M, 16), 16)
    rn = tl.max_contiguous(tl.multiple_of((pid_n * BN + tl.arange(0, BN)) % N, 16), 16)
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] * lda + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * ldb + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=rk[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * ldb
    om = pid_m * BM + tl.arange(0, BM)
    on = pid_n * BN + tl.arange(0, BN)
    tl.store(c_ptr + om[:, None] * ldc + on[None, :], acc.to(tl.float16), mask=(om[:, None] < M) & (on[None, :] < N))


@triton.jit
def matmul_persistent(a_ptr, b_ptr, c_ptr, M, N, K, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr,
                      BK: tl.constexpr):
    # each program walks over output tiles with a stride of the grid size
    tiles_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * tiles_n
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        pid_m = tile // tiles_n
        pid_n = tile % tiles_n
        rm = pid_m * BM + tl.arange(0, BM)
        rn = pid_n * BN + tl.arange(0, BN)
        rk = tl.arange(0, BK)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            at = k + rk
            a = tl.load(a_ptr + rm[:, None] * lda + at[None, :], mask=(rm[:, None] < M) & (at[None, :] < K), other=0.0)
            b = tl.load(b_ptr + at[:, None] * ldb + rn[None, :], mask=(at[:, None] < K) & (rn[None, :] < N), other=0.0)
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + rm[:, None] * ldc + rn[None, :], acc.to(tl.bfloat16),
                 mask=(rm[:, None] < M) & (rn[None, :] < N))


@triton.jit
def matmul_desc(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m0 = tl.program_id(0) * BM
    n0 = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = a_desc.load([m0, k])
        b = b_desc.load([n0, k])
        acc = tl.dot(a, b.T, acc)
    c_desc.store([m0, n0], acc.to(tl.float16))


@triton.jit
def matmul_desc_persistent(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[N, 1], block_shape=[BK, BN])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    tiles_n = tl.cdiv(N, BN)
    tiles = tl.cdiv(M, BM) * tiles_n
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        m0 = (tile // tiles_n) * BM
        n0 = (tile % tiles_n) * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, tl.cdiv(K, BK)):
            acc = tl.dot(a_desc.load([m0, k * BK]), b_desc.load([k * BK, n0]), acc)
        c_desc.store([m0, n0], acc.to(tl.bfloat16))


@triton.jit
def matmul_desc_ws(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # asks for warp specialization of the K loop; a compiler may ignore the request
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m0 = tl.program_id(0) * BM
    n0 = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, num_stages=3, warp_specialize=True, disallow_acc_multi_buffer=True):
        acc = tl.dot(a_desc.load([m0, k]), b_desc.load([n0, k]).T, acc)
    c_desc.store([m0, n0], acc.to(tl.float16))


@triton.jit
def matmul_w8a16(a_ptr, w_ptr, scale_ptr, c_ptr, M, N, K, lda, ldw, ldc, BM: tl.constexpr, BN: tl.constexpr,
                 BK: tl.constexpr):
    # int8 weights, widened to f16 in registers; one f32 scale per output column
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] * lda + rk[None, :]
    w_ptrs = w_ptr + rk[:, None] * ldw + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=rm[:, None] < M, other=0.0)
        w = tl.load(w_ptrs).to(tl.float16)
        acc = tl.dot(a, w, acc)
        a_ptrs += BK
        w_ptrs += BK * ldw
    scale = tl.load(scale_ptr + rn)
    tl.store(c_ptr + rm[:, None] * ldc + rn[None, :], (acc * scale[None, :]).to(tl.float16), mask=rm[:, None] < M)


@triton.jit
def matmul_w4a16(a_ptr, w_ptr, scale_ptr, c_ptr, M, N, K, lda, ldw, ldc, BM: tl.constexpr, BN: tl.constexpr,
                 BK: tl.constexpr):
    # two unsigned 4-bit weights per byte along K (even k in the low nibble), zero point 8,
    # one f16 scale per K block and column
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    rp = tl.arange(0, BK // 2)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for kb in range(0, K // BK):
        a = tl.load(a_ptr + rm[:, None] * lda + (kb * BK + rk)[None, :], mask=rm[:, None] < M, other=0.0)
        packed = tl.load(w_ptr + (kb * (BK // 2) + rp)[:, None] * ldw + rn[None, :])
        nibbles = tl.join(packed & 0xF, packed >> 4)
        codes = tl.reshape(tl.permute(nibbles, (0, 2, 1)), (BK, BN))
        scale = tl.load(scale_ptr + kb * N + rn)
        w = (codes.to(tl.float16) - 8.0) * scale[None, :]
        acc = tl.dot(a, w, acc)
    tl.store(c_ptr + rm[:, None] * ldc + rn[None, :], acc.to(tl.float16), mask=rm[:, None] < M)


@triton.jit
def mxfp4_matmul(a_ptr, w_ptr, wscale_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # bf16 activations times mxfp4 weights: w is [N, K / 2] bytes, wscale is [N, K / 32] e8m0 exponents
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    rp = tl.arange(0, BK // 2)
    rs = tl.arange(0, BK // 32)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K // BK):
        a = tl.load(a_ptr + rm[:, None] * K + (k * BK + rk)[None, :], mask=rm[:, None] < M, other=0.0)
        w = tl.load(w_ptr + (k * (BK // 2) + rp)[:, None] + rn[None, :] * (K // 2))
        s = tl.load(wscale_ptr + rn[:, None] * (K // 32) + (k * (BK // 32) + rs)[None, :])
        acc = tl.dot_scaled(a, None, "bf16", w, s, "e2m1", acc)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(tl.bfloat16), mask=rm[:, None] < M)


@triton.jit
def mxfp8_matmul(a_ptr, ascale_ptr, b_ptr, bscale_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                 BK: tl.constexpr):
    # e4m3 [M, K] times e5m2 [K, N], both with e8m0 scales per group of 32 along K
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    rs = tl.arange(0, BK // 32)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K // BK):
        a = tl.load(a_ptr + rm[:, None] * K + (k * BK + rk)[None, :])
        b = tl.load(b_ptr + (k * BK + rk)[:, None] * N + rn[None, :])
        sa = tl.load(ascale_ptr + rm[:, None] * (K // 32) + (k * (BK // 32) + rs)[None, :])
        sb = tl.load(bscale_ptr + rn[:, None] * (K // 32) + (k * (BK // 32) + rs)[None, :])
        acc = tl.dot_scaled(a, sa, "e4m3", b, sb, "e5m2", acc)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc)


@triton.jit
def chained_dots(a_ptr, b_ptr, c_ptr, out_ptr, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr, P: tl.constexpr):
    # (A @ B) @ C with the intermediate kept in registers as f16
    pid = tl.program_id(0)
    m = pid * M + tl.arange(0, M)
    k = tl.arange(0, K)
    n = tl.arange(0, N)
    p = tl.arange(0, P)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    c = tl.load(c_ptr + n[:, None] * P + p[None, :])
    ab = tl.dot(a, b)
    tl.store(out_ptr + m[:, None] * P + p[None, :], tl.dot(ab.to(tl.float16), c).to(tl.float16))


@triton.jit
def conv2d_nhwc(x_ptr, w_ptr, out_ptr, PIXELS, H, W, C, KO, P, Q, PAD: tl.constexpr, R: tl.constexpr,
                S: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # implicit GEMM: rows are output pixels, columns are output channels, K runs over (r, s, c)
    pix = tl.program_id(0) * BM + tl.arange(0, BM)
    ko = tl.program_id(1) * BN + tl.arange(0, BN)
    img = pix // (P * Q)
    oy = (pix // Q) % P
    ox = pix % Q
    rc = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for r in range(0, R):
        for s in range(0, S):
            iy = oy + r - PAD
            ix = ox + s - PAD
            inside = (pix < PIXELS) & (iy >= 0) & (iy < H) & (ix >= 0) & (ix < W)
            x_row = ((img * H + iy) * W + ix) * C
            w_row = (r * S + s) * C
            for c0 in range(0, C, BK):
                c = c0 + rc
                a = tl.load(x_ptr + x_row[:, None] + c[None, :], mask=inside[:, None] & (c[None, :] < C), other=0.0)
                b = tl.load(w_ptr + (w_row + c)[:, None] * KO + ko[None, :],
                            mask=(c[:, None] < C) & (ko[None, :] < KO), other=0.0)
                acc = tl.dot(a, b, acc)
    tl.store(out_ptr + pix[:, None] * KO + ko[None, :], acc.to(tl.float16),
             mask=(pix[:, None] < PIXELS) & (ko[None, :] < KO))


# ---------------------------------------------------------------------------------------------
# attention
# ---------------------------------------------------------------------------------------------


@triton.jit
def _attn_block(q, k_ptrs, v_ptrs, m_i, l_i, acc, rm, cols, MASKED: tl.constexpr):
    k = tl.load(k_ptrs)
    s = tl.dot(q, k)
    if MASKED:
        s = tl.where(rm[:, None] >= cols[None, :], s, -1.0e30)
    m_new = tl.maximum(m_i, tl.max(s, axis=1))
    p = tl.exp2(s - m_new[:, None])
    shrink = tl.exp2(m_i - m_new)
    l_new = l_i * shrink + tl.sum(p, axis=1)
    v = tl.load(v_ptrs)
    acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
    return m_new, l_new, acc


@triton.jit
def flash_attn_fwd(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, seq, scale, stride_h, stride_s, D: tl.constexpr,
                   BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    # online softmax in base 2; seq is a multiple of BM, BM a multiple of BN
    m0 = tl.program_id(0) * BM
    head = tl.program_id(1).to(tl.int64) * stride_h
    rm = m0 + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    rd = tl.arange(0, D)
    q = tl.load(q_ptr + head + rm[:, None] * stride_s + rd[None, :])
    q = (q.to(tl.float32) * (scale * LOG2E)).to(q_ptr.dtype.element_ty)
    k_ptrs = k_ptr + head + rd[:, None] + rn[None, :] * stride_s
    v_ptrs = v_ptr + head + rn[:, None] * stride_s + rd[None, :]
    m_i = tl.full((BM, ), -float("inf"), dtype=tl.float32)
    l_i = tl.zeros((BM, ), dtype=tl.float32)
    acc = tl.zeros((BM, D), dtype=tl.float32)
    if CAUSAL:
        full = m0
    else:
        full = seq
    for n0 in range(0, full, BN):
        m_i, l_i, acc = _attn_block(q, k_ptrs, v_ptrs, m_i, l_i, acc, rm, rn, False)
        k_ptrs += BN * stride_s
        v_ptrs += BN * stride_s
    if CAUSAL:
        for n0 in range(m0, m0 + BM, BN):
            m_i, l_i, acc = _attn_block(q, k_ptrs, v_ptrs, m_i, l_i, acc, rm, n0 + rn, True)
            k_ptrs += BN * stride_s
            v_ptrs += BN * stride_s
    o = acc / l_i[:, None]
    tl.store(o_ptr + head + rm[:, None] * stride_s + rd[None, :], o.to(o_ptr.dtype.element_ty))
    tl.store(lse_ptr + tl.program_id(1) * seq + rm, m_i + tl.log2(l_i))


@triton.jit
def attn_bwd_delta(o_ptr, do_ptr, delta_ptr, D: tl.constexpr, BM: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rd = tl.arange(0, D)
    o = tl.load(o_ptr + rm[:, None] * D + rd[None, :]).to(tl.float32)
    do = tl.load(do_ptr + rm[:, None] * D + rd[None, :]).to(tl.float32)
    tl.store(delta_ptr + rm, tl.sum(o * do, axis=1))


@triton.jit
def attn_bwd_dq(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, seq, scale, D: tl.constexpr,
                BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    # lse is in base 2, as flash_attn_fwd writes it
    m0 = tl.program_id(0) * BM
    head = tl.program_id(1).to(tl.int64) * seq * D
    rm = m0 + tl.arange(0, BM)
    rd = tl.arange(0, D)
    q = tl.load(q_ptr + head + rm[:, None] * D + rd[None, :])
    do = tl.load(do_ptr + head + rm[:, None] * D + rd[None, :])
    lse = tl.load(lse_ptr + tl.program_id(1) * seq + rm)
    delta = tl.load(delta_ptr + tl.program_id(1) * seq + rm)
    dq = tl.zeros((BM, D), dtype=tl.float32)
    if CAUSAL:
        stop = m0 + BM
    else:
        stop = seq
    for n0 in range(0, stop, BN):
        rn = n0 + tl.arange(0, BN)
        k = tl.load(k_ptr + head + rn[:, None] * D + rd[None, :])
        v = tl.load(v_ptr + head + rn[:, None] * D + rd[None, :])
        p = tl.exp2(tl.dot(q, tl.trans(k)) * (scale * LOG2E) - lse[:, None])
        if CAUSAL:
            p = tl.where(rm[:, None] >= rn[None, :], p, 0.0)
        dp = tl.dot(do, tl.trans(v))
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    tl.store(dq_ptr + head + rm[:, None] * D + rd[None, :], (dq * scale).to(dq_ptr.dtype.element_ty))


@triton.jit
def attn_bwd_dkdv(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, seq, scale, D: tl.constexpr,
                  BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    n0 = tl.program_id(0) * BN
    head = tl.program_id(1).to(tl.int64) * seq * D
    rn = n0 + tl.arange(0, BN)
    rd = tl.arange(0, D)
    k = tl.load(k_ptr + head + rn[:, None] * D + rd[None, :])
    v = tl.load(v_ptr + head + rn[:, None] * D + rd[None, :])
    dk = tl.zeros((BN, D), dtype=tl.float32)
    dv = tl.zeros((BN, D), dtype=tl.float32)
    if CAUSAL:
        start = (n0 // BM) * BM
    else:
        start = 0
    for m0 in range(start, seq, BM):
        rm = m0 + tl.arange(0, BM)
        q = tl.load(q_ptr + head + rm[:, None] * D + rd[None, :])
        do = tl.load(do_ptr + head + rm[:, None] * D + rd[None, :])
        lse = tl.load(lse_ptr + tl.program_id(1) * seq + rm)
        delta = tl.load(delta_ptr + tl.program_id(1) * seq + rm)
        # work on the transposed score block [BN, BM], so that no accumulator has to be transposed
        pt = tl.exp2(tl.dot(k, tl.trans(q)) * (scale * LOG2E) - lse[None, :])
        if CAUSAL:
            pt = tl.where(rm[None, :] >= rn[:, None], pt, 0.0)
        dv = tl.dot(pt.to(do.dtype), do, dv)
        dpt = tl.dot(v, tl.trans(do))
        dst = pt * (dpt - delta[None, :])
        dk = tl.dot(dst.to(q.dtype), q, dk)
    tl.store(dk_ptr + head + rn[:, None] * D + rd[None, :], (dk * scale).to(dk_ptr.dtype.element_ty))
    tl.store(dv_ptr + head + rn[:, None] * D + rd[None, :], dv.to(dv_ptr.dtype.element_ty))


# ---------------------------------------------------------------------------------------------
# control flow, calls, hints
# ---------------------------------------------------------------------------------------------


@triton.jit
def collatz_steps(x_ptr, out_ptr, BLOCK: tl.constexpr):
    # loops until every lane of the block has reached 1
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    steps = tl.zeros((BLOCK, ), dtype=tl.int32)
    while tl.max(x, axis=0) > 1:
        active = x > 1
        x = tl.where(active, tl.where(x % 2 == 0, x // 2, 3 * x + 1), x)
        steps += active.to(tl.int32)
    tl.store(out_ptr + offs, steps)


@triton.jit
def gcd_scalar(a_ptr, b_ptr, out_ptr):
    pid = tl.program_id(0)
    a = tl.load(a_ptr + pid)
    b = tl.load(b_ptr + pid)
    while b != 0:
        t = a % b
        a = b
        b = t
    tl.store(out_ptr + pid, a)


@triton.jit
def branch_tensor(x_ptr, y_ptr, out_ptr, mode, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live, other=0.0)
    y = tl.load(y_ptr + offs, mask=live, other=0.0)
    pick = (pid + mode) % 3
    if pick == 0:
        z = x + y
        bias = 1.0
    elif pick == 1:
        z = x * y
        bias = 2.0
    else:
        z = tl.load(x_ptr + offs + 0, mask=live & (y > 0), other=-1.0)
        bias = 0.5
    tl.store(out_ptr + offs, z * bias, mask=live)


@triton.jit
def early_return(len_ptr, x_ptr, out_ptr, cut_ptr, n_live, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= n_live:
        return
    offs = tl.arange(0, BLOCK)
    length = tl.load(len_ptr + pid)
    if length == 0:
        tl.store(out_ptr + pid, -1.0)
        return
    if length > 150:
        # a return inside a nested if makes the enclosing one join through branches as well
        if pid % 2 == 1:
            tl.store(out_ptr + pid, -2.0)
            return
        tl.store(cut_ptr + pid, length - 150)
        length = 150
    x = tl.load(x_ptr + pid * BLOCK + offs, mask=offs < length, other=0.0)
    tl.store(out_ptr + pid, tl.sum(x, axis=0) / length)


@triton.jit
def segment_sum(x_ptr, bound_ptr, out_ptr, n_seg, BLOCK: tl.constexpr):
    # segments are dealt out round robin, with bounds read from memory
    for seg in range(tl.program_id(0), n_seg, tl.num_programs(0)):
        start = tl.load(bound_ptr + seg)
        stop = tl.load(bound_ptr + seg + 1)
        acc = tl.zeros((BLOCK, ), dtype=tl.float32)
        for at in range(start, stop, BLOCK):
            offs = at + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + offs, mask=offs < stop, other=0.0)
            if at == start:
                acc = x
            else:
                acc += x
        tl.store(out_ptr + seg, tl.sum(acc, axis=0))


@triton.jit
def stencil_static(x_ptr, tap_ptr, out_ptr, n, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, ), dtype=tl.float32)
    for t in tl.static_range(TAPS):
        at = offs + t - TAPS // 2
        x = tl.load(x_ptr + at, mask=(at >= 0) & (at < n), other=0.0)
        acc += x * tl.load(tap_ptr + t)
    tl.store(out_ptr + offs, acc, mask=offs < n)


@triton.jit
def range_hints(x_ptr, out_ptr, rows, cols, BLOCK: tl.constexpr):
    # loop attributes: software pipelining depth, unrolling, no hoisting
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = c < cols
    a = tl.zeros((BLOCK, ), dtype=tl.float32)
    for r in tl.range(0, rows, num_stages=4):
        a += tl.load(x_ptr + r * cols + c, mask=live, other=0.0)
    b = tl.full((BLOCK, ), -float("inf"), dtype=tl.float32)
    for r in tl.range(0, rows, loop_unroll_factor=4):
        b = tl.maximum(b, tl.load(x_ptr + r * cols + c, mask=live, other=0.0))
    d = tl.zeros((BLOCK, ), dtype=tl.float32)
    for r in tl.range(rows - 1, -1, -1, disable_licm=True):
        d = d * 0.5 + tl.load(x_ptr + r * cols + c, mask=live, other=0.0)
    tl.store(out_ptr + c, a, mask=live)
    tl.store(out_ptr + cols + c, b, mask=live)
    tl.store(out_ptr + 2 * cols + c, d, mask=live)


@triton.jit
def assert_in_range(idx_ptr, x_ptr, out_ptr, limit, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    idx = tl.load(idx_ptr + offs)
    tl.device_assert((idx >= 0) & (idx < limit), "index out of range")
    tl.store(out_ptr + offs, tl.load(x_ptr + idx) + offs)


@triton.jit
def print_values(x_ptr, out_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    if pid == 0:
        tl.device_print("pid", pid)
        tl.device_print("total ", tl.sum(x, axis=0), x)
        tl.device_print("bits", x.to(tl.int32, bitcast=True), hex=True)
    tl.store(out_ptr + offs, x * 2.0)


@triton.jit(noinline=True)
def _block_range(ptr, start, BLOCK: tl.constexpr):
    # noinline functions take scalars and pointers only; blocks live inside
    x = tl.load(ptr + start + tl.arange(0, BLOCK))
    return tl.min(x, axis=0), tl.max(x, axis=0)


@triton.jit(noinline=True)
def _inverse_width(lo, hi):
    if hi <= lo:
        return 0.0
    return 1.0 / (hi - lo)


@triton.jit
def call_noinline(x_ptr, out_ptr, range_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    lo, hi = _block_range(x_ptr, pid * BLOCK, BLOCK)
    inv = _inverse_width(lo, hi)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    t = (tl.load(x_ptr + offs) - lo) * inv
    tl.store(out_ptr + offs, t * t * (3.0 - 2.0 * t))
    tl.store(range_ptr + 2 * pid, lo)
    tl.store(range_ptr + 2 * pid + 1, hi)


@triton.jit
def inline_ptx(a_ptr, b_ptr, f_ptr, xor_ptr, byte_ptr, exp_ptr, log_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + offs)
    b = tl.load(b_ptr + offs)
    f = tl.load(f_ptr + offs)
    # three-input xor, one element at a time
    x = tl.inline_asm_elementwise("lop3.b32 $0, $1, $2, $3, 0x96;", "=r,r,r,r", [a, b, a >> 3], dtype=tl.int32,
                                  is_pure=True, pack=1)
    # four bytes per register
    lo = tl.inline_asm_elementwise("and.b32 $0, $1, 0x3f3f3f3f;", "=r,r", [(a & 255).to(tl.uint8)], dtype=tl.uint8,
                                   is_pure=True, pack=4)
    # two results
    e, g = tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $2;\nlg2.approx.ftz.f32 $1, $2;", "=&f,=&f,f", [f],
                                     dtype=(tl.float32, tl.float32), is_pure=True, pack=1)
    tl.store(xor_ptr + offs, x)
    tl.store(byte_ptr + offs, lo)
    tl.store(exp_ptr + offs, e)
    tl.store(log_ptr + offs, g)


@triton.jit
def libdevice_math(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live, other=1.0)
    y = tl.load(y_ptr + offs, mask=live, other=1.0)
    _put(out_ptr, 0, n, offs, libdevice.tanh(x), live)
    _put(out_ptr, 1, n, offs, libdevice.pow(x, y), live)
    _put(out_ptr, 2, n, offs, libdevice.log1p(x), live)
    _put(out_ptr, 3, n, offs, libdevice.atan2(y, x), live)


@triton.jit(do_not_specialize=["seed"])
def dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = offs < n
    x = tl.load(x_ptr + offs, mask=live, other=0.0)
    keep = tl.rand(seed, offs) > p
    tl.store(out_ptr + offs, tl.where(keep, x / (1.0 - p), 0.0), mask=live)


@triton.jit(do_not_specialize=["seed"])
def random_fill(normal_ptr, bits_ptr, seed, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(normal_ptr + offs, tl.randn(seed, offs))
    tl.store(bits_ptr + offs, tl.randint(seed, offs.to(tl.int64) + 0x100000000).to(tl.int32, bitcast=True))


@triton.jit
def grid_stride_scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lane = tl.program_id(0) + tl.program_id(1) * tl.num_programs(0)
    width = tl.num_programs(0) * tl.num_programs(1) * tl.num_programs(2)
    for block in range(lane, tl.cdiv(n, BLOCK), width):
        offs = block * BLOCK + tl.arange(0, BLOCK)
        live = offs < n
        tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=live) * 3 + width, mask=live)


@triton.jit
def axis_hints(x_ptr, idx_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    # idx holds starts of runs; the hints state what the compiler cannot see
    tl.assume(stride >= 16)
    tl.assume(n > 0)
    pid = tl.program_id(0)
    start = tl.multiple_of(tl.load(idx_ptr + pid), 16)
    offs = tl.max_contiguous(tl.multiple_of(start + tl.arange(0, BLOCK), 16), 16)
    group = tl.max_constancy(tl.arange(0, BLOCK) // 8, 8)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + pid * stride + tl.arange(0, BLOCK), x + group.to(tl.float32))


@triton.jit
def _selu_scalar(x, alpha):
    if x > 0.0:
        y = x
    else:
        y = alpha * (tl.exp(x) - 1.0)
    return y


@triton.jit
def map_scalar_fn(x_ptr, out_ptr, alpha, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    a = tl.full((BLOCK, ), 0.0, dtype=tl.float32) + alpha
    tl.store(out_ptr + offs, tl.map_elementwise(_selu_scalar, x, a))


@triton.jit
def pdl_scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    gdc_wait()
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    gdc_launch_dependents()
    tl.store(out_ptr + offs, x * 0.25, mask=offs < n)
