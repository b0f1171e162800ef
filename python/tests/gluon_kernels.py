"""Gluon kernels that the tests compile and run: each with how it is compiled, and launch data with the result."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language.nvidia import ampere, hopper
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

# Triton 3.6 has other names for some.
copy_ahead = getattr(ampere.async_copy, "async_load", None) or ampere.async_copy.async_copy_global_to_shared
load_tile = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
barrier = getattr(gl, "barrier", None) or gl.thread_barrier


@gluon.jit
def scale(x, out, n, BLOCK: gl.constexpr, layout: gl.constexpr):
    at = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(out + at, gl.load(x + at, mask=at < n) * 2.0, mask=at < n)


@gluon.jit
def turn(x, out, ROWS: gl.constexpr, COLS: gl.constexpr, read: gl.constexpr, write: gl.constexpr):
    """out[c, r] = x[r, c], through a conversion of layouts and sums of rows by a callee."""
    r = gl.arange(0, ROWS, layout=gl.SliceLayout(1, read))
    c = gl.arange(0, COLS, layout=gl.SliceLayout(0, read))
    tile = gl.load(x + r[:, None] * COLS + c[None, :])
    tile = tile + gl.sum(tile, 1)[:, None]
    tile = gl.convert_layout(tile, write)
    r = gl.arange(0, ROWS, layout=gl.SliceLayout(1, write))
    c = gl.arange(0, COLS, layout=gl.SliceLayout(0, write))
    gl.store(out + c[None, :] * ROWS + r[:, None], tile)


@gluon.jit
def staged(x, out, n, BLOCK: gl.constexpr, STAGES: gl.constexpr, layout: gl.constexpr, shared: gl.constexpr):
    """Sums blocks that cp.async brings into a ring."""
    ring = gl.allocate_shared_memory(x.dtype.element_ty, [STAGES, BLOCK], shared)
    at = gl.arange(0, BLOCK, layout=layout)
    for stage in gl.static_range(STAGES - 1):
        copy_ahead(ring.index(stage), x + stage * BLOCK + at)
        ampere.async_copy.commit_group()
    total = gl.full([BLOCK], 0.0, gl.float32, layout)
    for i in range(n):
        ahead = i + STAGES - 1
        copy_ahead(ring.index(ahead % STAGES), x + ahead * BLOCK + at, mask=at < BLOCK * (n - ahead))
        ampere.async_copy.commit_group()
        ampere.async_copy.wait_group(STAGES - 1)
        total += ring.index(i % STAGES).load(layout)
        barrier()
    gl.store(out + at, total)


@gluon.jit
def matmul(a, b, c, M, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, shared: gl.constexpr,
           out: gl.constexpr, mma: gl.constexpr):
    """TMA and wgmma, one buffer of each operand."""
    a_desc = tma.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK], shared)
    b_desc = tma.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN], shared)
    a_tile = gl.allocate_shared_memory(gl.float16, [BM, BK], shared)
    b_tile = gl.allocate_shared_memory(gl.float16, [BK, BN], shared)
    loaded = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(loaded, count=1)
    row, col = gl.program_id(0) * BM, gl.program_id(1) * BN
    acc = gl.full([BM, BN], 0.0, gl.float32, mma)
    phase = 0
    for k in range(0, K, BK):
        mbarrier.expect(loaded, 2 * BK * (BM + BN))
        load_tile(a_desc, [row, k], loaded, a_tile)
        load_tile(b_desc, [k, col], loaded, b_tile)
        mbarrier.wait(loaded, phase)
        phase ^= 1
        acc = hopper.warpgroup_mma(a_tile, b_tile, acc)
    mbarrier.invalidate(loaded)
    r = gl.arange(0, BM, layout=gl.SliceLayout(1, out))
    n = gl.arange(0, BN, layout=gl.SliceLayout(0, out))
    acc = gl.convert_layout(acc, out)
    gl.store(c + (row + r[:, None]) * N + col + n[None, :], acc)


@gluon.jit
def produce(a_desc, b_desc, row, col, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, STAGES: gl.constexpr,
            a_ring, b_ring, full, empty):
    i = 0
    for k in range(0, K, BK):
        slot, turns = i % STAGES, i // STAGES
        mbarrier.wait(empty.index(slot), (turns & 1) ^ 1)
        mbarrier.expect(full.index(slot), 2 * BK * (BM + BN))
        load_tile(a_desc, [row, k], full.index(slot), a_ring.index(slot))
        load_tile(b_desc, [k, col], full.index(slot), b_ring.index(slot))
        i += 1


@gluon.jit
def consume(c, row, col, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, STAGES: gl.constexpr, a_ring,
            b_ring, full, empty, out: gl.constexpr, mma: gl.constexpr):
    acc = gl.full([BM, BN], 0.0, gl.float32, mma)
    i = 0
    for k in range(0, K, BK):
        slot, turns = i % STAGES, i // STAGES
        mbarrier.wait(full.index(slot), turns & 1)
        acc = hopper.warpgroup_mma(a_ring.index(slot), b_ring.index(slot), acc)
        mbarrier.arrive(empty.index(slot), count=1)
        i += 1
    r = gl.arange(0, BM, layout=gl.SliceLayout(1, out))
    n = gl.arange(0, BN, layout=gl.SliceLayout(0, out))
    acc = gl.convert_layout(acc, out)
    gl.store(c + (row + r[:, None]) * N + col + n[None, :], acc)


@gluon.jit
def specialized(a, b, c, M, N, K, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, STAGES: gl.constexpr,
                shared: gl.constexpr, out: gl.constexpr, mma: gl.constexpr):
    """The same with a ring that a warp of its own fills."""
    a_desc = tma.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK], shared)
    b_desc = tma.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN], shared)
    a_ring = gl.allocate_shared_memory(gl.float16, [STAGES, BM, BK], shared)
    b_ring = gl.allocate_shared_memory(gl.float16, [STAGES, BK, BN], shared)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=1)
    row, col = gl.program_id(0) * BM, gl.program_id(1) * BN
    gl.warp_specialize([
        (consume, (c, row, col, N, K, BM, BN, BK, STAGES, a_ring, b_ring, full, empty, out, mma)),
        (produce, (a_desc, b_desc, row, col, K, BM, BN, BK, STAGES, a_ring, b_ring, full, empty)),
    ], [1], [24])
    for stage in gl.static_range(STAGES):
        mbarrier.invalidate(full.index(stage))
        mbarrier.invalidate(empty.index(stage))


_ROW = gl.BlockedLayout([4], [32], [4], [0])
_READ = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
_WRITE = gl.BlockedLayout([4, 1], [8, 4], [1, 4], [0, 1])
_OUT = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
_SHARED = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)
_LINE = gl.SwizzledSharedLayout(1, 1, 1, [0])
_MMA = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16])
_TILES = dict(BM=64, BN=64, BK=64, shared=_SHARED, out=_OUT, mma=_MMA)


def _matmul(numpy, stages=()):
    r = numpy.random.default_rng(0)
    m, n, k = 128, 128, 320
    a, b = (r.standard_normal(shape).astype(numpy.float16) for shape in ((m, k), (k, n)))
    c = numpy.zeros((m, n), numpy.float32)
    return (m // 64, n // 64), [a, b, c, m, n, k], c, a.astype(numpy.float32) @ b.astype(numpy.float32)


def _scale(numpy):
    x = numpy.arange(1000, dtype=numpy.float32)
    out = numpy.zeros_like(x)
    return (4,), [x, out, len(x)], out, 2 * x


def _turn(numpy):
    x = numpy.arange(64 * 32, dtype=numpy.float32).reshape(64, 32)
    out = numpy.zeros((32, 64), numpy.float32)
    return (1,), [x, out], out, (x + x.sum(1, keepdims=True)).T


def _staged(numpy):
    x = numpy.random.default_rng(1).standard_normal((9, 512)).astype(numpy.float32)
    out = numpy.zeros(512, numpy.float32)
    return (1,), [x, out, len(x)], out, x.sum(0)


_POINTERS = {"x": "*fp32", "out": "*fp32", "a": "*fp16", "b": "*fp16", "c": "*fp32"}

# Kernel, constexprs, launch: grid, arguments, what has the result, and the result.
CASES = [
    (scale, dict(BLOCK=512, layout=_ROW), _scale),
    (turn, dict(ROWS=64, COLS=32, read=_READ, write=_WRITE), _turn),
    (staged, dict(BLOCK=512, STAGES=3, layout=_ROW, shared=_LINE), _staged),
    (matmul, _TILES, _matmul),
    (specialized, dict(_TILES, STAGES=3), _matmul),
]


def source(case):
    kernel, constants, _ = case
    signature, attributes = {}, {}
    for number, parameter in enumerate(kernel.params):
        name = parameter.name
        if name in constants:
            signature[name] = "constexpr"
            continue
        is_pointer = name in _POINTERS and constants.get(name) is None
        signature[name] = _POINTERS[name] if is_pointer else "i32"
        if is_pointer:
            attributes[(number,)] = [["tt.divisibility", 16]]
    return GluonASTSource(kernel, signature, dict(constants), attributes)
