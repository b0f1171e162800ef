"""What a case of the language sweep is: a kernel's source, arguments with seeded data, options, and how results compare.

Buffers are bytes until Triton sees them, so that every type of the language needs numpy alone.
"""

import functools
import zlib
from dataclasses import dataclass, field

import numpy as np

HEADER = """import triton
import triton.language as tl
from triton.language.extra import libdevice


"""

# A type of the language: its name in signatures, bits, what it is, and numpy's type of its bytes.
TYPES = {
    "int1": ("i1", 8, "bool", np.uint8),
    "int8": ("i8", 8, "int", np.int8),
    "int16": ("i16", 16, "int", np.int16),
    "int32": ("i32", 32, "int", np.int32),
    "int64": ("i64", 64, "int", np.int64),
    "uint8": ("u8", 8, "int", np.uint8),
    "uint16": ("u16", 16, "int", np.uint16),
    "uint32": ("u32", 32, "int", np.uint32),
    "uint64": ("u64", 64, "int", np.uint64),
    "float8e4nv": ("fp8e4nv", 8, "float", np.uint8),
    "float8e5": ("fp8e5", 8, "float", np.uint8),
    "float16": ("fp16", 16, "float", np.float16),
    "bfloat16": ("bf16", 16, "float", np.uint16),
    "float32": ("fp32", 32, "float", np.float32),
    "float64": ("fp64", 64, "float", np.float64),
}
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTS = SIGNED + UNSIGNED
FLOATS = ("float16", "bfloat16", "float32", "float64")
FP8 = ("float8e4nv", "float8e5")
NUMBERS = INTS + FLOATS
ALL = ("int1", *NUMBERS, *FP8)

# Bits of the significand behind the point, the largest finite value, and the smallest positive one.
FORMATS = {
    "float8e4nv": (3, 448.0, 2.0**-9),
    "float8e5": (2, 57344.0, 2.0**-16),
    "float16": (10, 65504.0, 2.0**-24),
    "bfloat16": (7, 3.3895313892515355e38, 2.0**-133),
    "float32": (23, float(np.finfo(np.float32).max), 2.0**-149),
    "float64": (52, float(np.finfo(np.float64).max), 2.0**-1074),
}


def bits(dtype):
    return TYPES[dtype][1]


def kind(dtype):
    return TYPES[dtype][2]


def is_signed(dtype):
    return dtype in SIGNED


def limits(dtype):
    info = np.iinfo(TYPES[dtype][3])
    return int(info.min), int(info.max)


@functools.lru_cache(None)
def _fp8_values(dtype):
    """What each of the 256 bytes means: OCP 8-bit floating point, E4M3 without infinities and E5M2 with them."""
    fraction, bias = (3, 7) if dtype == "float8e4nv" else (2, 15)
    values = np.empty(256)
    for byte in range(256):
        sign = -1.0 if byte & 0x80 else 1.0
        exponent, mantissa = (byte & 0x7F) >> fraction, byte & ((1 << fraction) - 1)
        top = exponent == (0x7F >> fraction)
        if dtype == "float8e4nv" and byte & 0x7F == 0x7F or dtype == "float8e5" and top and mantissa:
            values[byte] = np.nan
        elif dtype == "float8e5" and top:
            values[byte] = sign * np.inf
        elif exponent == 0:
            values[byte] = sign * mantissa * 2.0 ** (1 - bias - fraction)
        else:
            values[byte] = sign * (1 + mantissa / (1 << fraction)) * 2.0 ** (exponent - bias)
    return values


def encode(values, dtype):
    """Numbers as a type's storage; narrow floats to nearest."""
    storage = TYPES[dtype][3]
    with np.errstate(all="ignore"):
        if dtype == "int1":
            return (np.asarray(values) != 0).astype(np.uint8)
        if dtype == "bfloat16":
            raw = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
            rounded = ((raw + 0x7FFF + ((raw >> 16) & 1)) >> 16).astype(np.uint16)
            return np.where(np.isnan(np.asarray(values, np.float32)), np.uint16(0x7FC0), rounded)
        if dtype in FP8:
            wanted = np.asarray(values, np.float64)
            table = _fp8_values(dtype)
            order = np.argsort(table[:128][np.isfinite(table[:128])])
            finite = table[:128][order]
            at = np.clip(np.searchsorted(finite, np.abs(wanted)), 1, len(finite) - 1)
            closer = np.abs(np.abs(wanted) - finite[at - 1]) <= np.abs(finite[at] - np.abs(wanted))
            code = order[np.where(closer, at - 1, at)].astype(np.uint8)
            code = np.where(np.isnan(wanted), 0x7F, code)
            if dtype == "float8e5":
                code = np.where(np.isinf(wanted), 0x7C, code)
            return (code | np.where(np.signbit(wanted), 0x80, 0)).astype(np.uint8)
        return np.asarray(values).astype(storage)


def decode(storage, dtype):
    """Storage as numbers: float64 for floats."""
    with np.errstate(all="ignore"):  # Signaling NaN is converted, too.
        return _decoded(storage, dtype)


def _decoded(storage, dtype):
    if dtype == "bfloat16":
        return (storage.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype in FP8:
        return _fp8_values(dtype)[storage]
    if kind(dtype) == "float":
        return storage.astype(np.float64)
    return storage


def edges(dtype):
    """Values where implementations differ: zeros, ones, limits, and for floats denormals, infinities and NaN."""
    if kind(dtype) == "bool":
        return [0, 1]
    if kind(dtype) == "int":
        low, high = limits(dtype)
        return [0, 1, 2, 3, 7, high, high - 1, low, low + 1, high // 2] + ([-1, -2, -7] if low else [high // 2 + 1])
    fraction, most, least = FORMATS[dtype]
    normal = least * 2.0**fraction
    found = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.0, most, -most, least, -least, normal, normal - least, np.nan]
    return found + ([] if dtype == "float8e4nv" else [np.inf, -np.inf])


def fill(how, dtype, count, rng):
    """Numbers of a kind: a name below, a list that is repeated, or a function of the generator and the count."""
    if callable(how):
        return how(rng, count)
    if isinstance(how, (list, tuple)):
        return np.resize(np.array(how, np.float64 if kind(dtype) == "float" else object), count)
    name, _, rest = how.partition(":")
    numbers = [float(part) for part in rest.split(",")] if rest else []
    if name == "zeros":
        return np.zeros(count)
    if name == "count":
        return np.arange(count)
    if name == "shuffled":
        return rng.permutation(count) - (count // 2 if dtype not in UNSIGNED else 0)
    if kind(dtype) == "bool":
        return rng.integers(0, 2, count)
    if kind(dtype) == "int":
        low, high = limits(dtype)
        if name in ("any", "edges", "crossed", "tiled", "nonzero"):
            values = rng.integers(low, high, count, dtype=TYPES[dtype][3], endpoint=True).astype(object)
            small = rng.random(count) < 0.3
            values[small] = rng.integers(max(low, -9), 10, count)[small]
            _place_edges(values, name, edges(dtype))
            if name == "nonzero":
                # Division by zero, and of the least number by -1, has no meaning.
                values[(values == 0) | (values == -1)] = 3
            return values
        bounds = {"unit": (max(low, -9), 9), "small": (max(low, -4), 4), "positive": (1, min(high, 99))}
        least, most = bounds[name] if name in bounds else (int(numbers[0]), int(numbers[1]))
        return rng.integers(least, most, count, endpoint=True)
    if name in ("any", "edges", "crossed", "tiled", "nonzero"):
        _, most, _ = FORMATS[dtype]
        reach = min(np.log2(most) - 1, 60)
        values = rng.standard_normal(count) * np.exp2(rng.uniform(-reach / 3, reach / 3, count))
        _place_edges(values, name, edges(dtype))
        return values
    if name == "unit":
        return rng.uniform(-1, 1, count)
    if name == "small":
        return rng.integers(-4, 5, count).astype(np.float64)
    if name == "normal":
        return rng.standard_normal(count)
    least, most = {"positive": (0.1, 9.0)}.get(name) or numbers
    return rng.uniform(least, most, count)


def _place_edges(values, name, found):
    """Edges first: `crossed` and `tiled` together make all pairs of them."""
    if name == "crossed":
        pattern = [one for one in found for _ in range(16)]
    elif name == "tiled":
        pattern = [found[at % len(found)] if at < len(found) else 1 for at in range(16)] * len(found)
    else:
        pattern = found
    count = min(len(pattern), len(values))
    values[:count] = pattern[:count]


@dataclass(frozen=True)
class Buffer:
    """Memory that the kernel gets a pointer to, with bytes around it that nobody may change."""

    dtype: str
    shape: tuple
    how: object = "any"
    offset: int = 0  # elements between an aligned address and the pointer
    written: bool = False
    block: tuple = None  # the kernel gets a tensor descriptor with such blocks instead of a pointer

    GUARD = 256

    @property
    def count(self):
        return int(np.prod(self.shape))

    def bytes(self, seed):
        """The whole allocation: a guard, the data, and a guard."""
        rng = np.random.default_rng(seed)
        data = encode(fill(self.how, self.dtype, self.count, rng), self.dtype).tobytes()
        head = self.GUARD + self.offset * bits(self.dtype) // 8
        return b"\xa5" * head + data + b"\xa5" * self.GUARD

    @property
    def start(self):
        return self.GUARD + self.offset * bits(self.dtype) // 8


def out(dtype, *shape, **options):
    return Buffer(dtype, shape, "zeros", written=True, **options)


def inout(dtype, shape, how="any", **options):
    return Buffer(dtype, tuple(np.atleast_1d(shape)), how, written=True, **options)


def given(dtype, shape, how="any", **options):
    return Buffer(dtype, tuple(np.atleast_1d(shape)), how, **options)


@dataclass(frozen=True)
class Exact:
    """The same bits, but for NaN: one is as good as another. Zeros of either sign are equal where `zeros` is set."""

    zeros: bool = False

    def __str__(self):
        return "exact"

    def differs(self, wanted, got, dtype):
        differs = wanted != got
        if kind(dtype) != "float":
            return differs
        a, b = decode(wanted, dtype), decode(got, dtype)
        if not self.zeros:
            unsigned = np.dtype(f"u{wanted.dtype.itemsize}")
            differs = wanted.view(unsigned) != got.view(unsigned)
        return differs & ~(np.isnan(a) & np.isnan(b))


@dataclass(frozen=True)
class Near:
    """Within so many units in the last place of the result's type, relatively, or within an absolute distance."""

    ulps: float = 2
    absolute: float = 0.0

    def __str__(self):
        return f"{self.ulps} ulp" + (f" + {self.absolute:g}" if self.absolute else "")

    def differs(self, wanted, got, dtype):
        if kind(dtype) != "float":
            return wanted != got
        a, b = decode(wanted, dtype), decode(got, dtype)
        fraction, _, least = FORMATS[dtype]
        # Denormals may be flushed where results are approximate.
        slack = self.absolute + max(self.ulps * least, least * 2.0**fraction)
        with np.errstate(all="ignore"):
            close = np.isfinite(a) & (np.abs(a - b) <= self.ulps * 2.0**-fraction * np.abs(a) + slack)
        return ~(close | (a == b) | (np.isnan(a) & np.isnan(b)))


EXACT = Exact()
SAME_VALUE = Exact(zeros=True)


@dataclass(frozen=True)
class Case:
    """One kernel, called `kernel` in its source, with everything for a launch of it."""

    family: str
    name: str
    source: str
    args: dict  # by parameter: a Buffer, a number, a bool, or None
    constants: dict = field(default_factory=dict)
    options: dict = field(default_factory=dict)
    grid: tuple = (1,)
    compare: object = EXACT
    needs: tuple = ()  # what must exist: attributes of tl such as "topk", "cuda90" or "range.flatten"

    @property
    def id(self):
        return f"{self.family}/{self.name}"

    def seed(self, parameter):
        return zlib.crc32(f"{self.id}/{parameter}".encode())

    def buffers(self):
        return [(name, arg) for name, arg in self.args.items() if isinstance(arg, Buffer)]

    def text(self):
        return HEADER + self.source


def difference(case, wanted, got):
    """What differs between the memory that two runs left, by parameter; None where nothing does."""
    for name, buffer in case.buffers():
        a, b = wanted[name], got[name]
        if len(a) != len(b):
            return f"{name}: {len(b)} bytes instead of {len(a)}"
        start, size = buffer.start, buffer.count * bits(buffer.dtype) // 8
        storage = TYPES[buffer.dtype][3]
        first, second = (np.frombuffer(raw[start : start + size], storage) for raw in (a, b))
        rule = case.compare if buffer.written else EXACT
        differs = rule.differs(first, second, buffer.dtype)
        if differs.any():
            at = int(np.argmax(differs))
            x, y = (decode(part[at : at + 1], buffer.dtype)[0] for part in (first, second))
            index = tuple(int(part) for part in np.unravel_index(at, buffer.shape))
            place = index if len(index) > 1 else index[0]
            return f"{name}[{place}]: Triton {x!s}, ttopt {y!s}; {int(differs.sum())} of {buffer.count} differ ({rule})"
        for part in (slice(0, start), slice(start + size, None)):
            if a[part] != b[part]:
                return f"{name}: bytes outside of it differ"
    return None


class Cases:
    """Collects cases, and gives those of a family that say nothing about warps all numbers of them in turn."""

    WARPS = (4, 1, 8, 2)

    def __init__(self):
        self.all = []
        self.seen = set()

    def add(self, family, name, source, args, **details):
        options = dict(details.pop("options", {}))
        options.setdefault("num_warps", self.WARPS[len(self.all) % 4])
        case = Case(family, name, source, args, options=options, **details)
        if case.id in self.seen:
            raise ValueError(f"two cases are called {case.id}")
        self.seen.add(case.id)
        self.all.append(case)


@functools.lru_cache(None)
def all_cases():
    import language_sweep_dots
    import language_sweep_flow
    import language_sweep_memory
    import language_sweep_tensors
    import language_sweep_values

    cases = Cases()
    for module in (
        language_sweep_values,
        language_sweep_tensors,
        language_sweep_memory,
        language_sweep_dots,
        language_sweep_flow,
    ):
        module.add_to(cases)
    return tuple(cases.all)
