"""Every function of libdevice that Triton's front end offers (triton.language.extra.cuda.libdevice), called from TTIR,
compiled, and run on the simulator over ordinary, huge, tiny and special values. The references are exact: integers,
fractions, and mpmath with far more digits than the formats have. The bounds in units in the last place (ulp) are
those of the CUDA C++ Programming Guide, "Mathematical Functions Appendix".

    libdevice.py --ttsim TTSIM --data DIR [--target cuda:90] [FUNCTION ...]

Kernels keep subnormal f32 numbers (`ttg.flush_denormals = false`); where an operand or the result is one, zero is right as
well. By default they are flushed as in Triton, and then some functions are off for them: cbrt(1e-39) is NaN in both.
"""
import argparse
import concurrent.futures
import itertools
import math
import os
import pathlib
import subprocess
import sys
from fractions import Fraction

import mpmath
import numpy
from mpmath import mp

mp.prec = 200
INF, NAN = math.inf, math.nan
TYPES = {"f32": numpy.float32, "f64": numpy.float64, "i32": numpy.int32, "i64": numpy.int64}
# Precision, exponent of the smallest normal and of the largest number.
FORMATS = {"f32": (24, -126, 127), "f64": (53, -1022, 1023)}

# --- exact values ---------------------------------------------------------------------------------------------------


def rounded(v, fmt, mode="n"):
    """A fraction rounded to a format: to nearest even, toward zero (z), down (d) or up (u)."""
    if v == 0:
        return 0.0
    precision, low, high = FORMATS[fmt]
    a = abs(v)
    e = a.numerator.bit_length() - a.denominator.bit_length()
    if Fraction(2) ** e > a:
        e -= 1
    unit = Fraction(2) ** (max(e, low) - precision + 1)
    n = a / unit
    whole, rest = divmod(n, 1)
    away = {"z": False, "d": v < 0, "u": v > 0}.get(mode)
    up = rest > 0 and away if away is not None else rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2)
    n = whole + (1 if up else 0)
    a = n * unit
    if a >= Fraction(2) ** (high + 1):
        a = INF if away is None or away else float((Fraction(2) - Fraction(2) ** (1 - precision)) * Fraction(2) ** high)
    return -float(a) if v < 0 else float(a)


def of_square_root(v, fmt, mode):
    """The square root of a fraction, rounded: exact where it is a number of the format, else beside a fraction near it."""
    shift = 700
    n = v.numerator * 2 ** (2 * shift) // v.denominator
    root = math.isqrt(n)
    exact = root * root == n and n * v.denominator == v.numerator * 2 ** (2 * shift)
    return rounded(Fraction(2 * root + (0 if exact else 1), 2 ** (shift + 1)), fmt, mode)


def finite(*args):
    return all(math.isfinite(a) for a in args)


def add(a, b, fmt, mode):
    if not finite(a, b):
        return a + b
    s = Fraction(a) + Fraction(b)
    if s == 0:
        same = math.copysign(1, a) == math.copysign(1, b)
        return a if same and a == 0 else (-0.0 if mode == "d" else 0.0)
    return rounded(s, fmt, mode)


def mul(a, b, fmt, mode):
    if not finite(a, b) or a * b == 0 and (a == 0 or b == 0):
        return a * b
    return rounded(Fraction(a) * Fraction(b), fmt, mode)


def div(a, b, fmt, mode):
    if b == 0:
        return NAN if a == 0 or math.isnan(a) else math.copysign(INF, a) * math.copysign(1, b)
    if not finite(a, b) or a == 0:
        return a / b
    return rounded(Fraction(a) / Fraction(b), fmt, mode)


def fma(a, b, c, fmt, mode):
    if not finite(a, b, c):
        return (math.copysign(1, a) * math.copysign(1, b) if finite(a, b) else a * b) + c
    s = Fraction(a) * Fraction(b) + Fraction(c)
    if s == 0:
        product = math.copysign(1, a) * math.copysign(1, b)
        return c if product == math.copysign(1, c) and c == 0 else (-0.0 if mode == "d" else 0.0)
    return rounded(s, fmt, mode)


def sqrt(a, fmt, mode):
    if math.isnan(a) or a < 0:
        return NAN
    return a if a in (0, INF) else of_square_root(Fraction(a), fmt, mode)


def integral(a, mode):
    if not finite(a):
        return a
    n = {"n": round, "z": math.trunc, "d": math.floor, "u": math.ceil}[mode](Fraction(a))
    return math.copysign(float(n), a) if abs(a) < 2**60 else a


def half_away(a):
    if not finite(a):
        return a
    return math.copysign(float(math.floor(abs(Fraction(a)) + Fraction(1, 2))), a)


def to_int(a, bits, signed, mode, source):
    if math.isnan(a):
        return 0 if source == "f32" and bits == 32 else 1 << (bits - 1)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if math.isinf(a):
        return low if a < 0 else high
    n = {"n": round, "z": math.trunc, "d": math.floor, "u": math.ceil}[mode](Fraction(a))
    return min(max(n, low), high)


def nextafter(a, b, fmt):
    if math.isnan(a) or math.isnan(b):
        return NAN
    return float(numpy.nextafter(TYPES[fmt](a), TYPES[fmt](b)))


def remainder(a, b, fmt):
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return NAN
    return a if math.isinf(b) else math.remainder(a, b)


def fmod(a, b, fmt):
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return NAN
    return math.fmod(a, b)


def exponent(a):
    """Of a finite number other than zero, as logb counts."""
    return math.frexp(a)[1] - 1


def logb(a, fmt):
    return -INF if a == 0 else abs(a) if not finite(a) else float(exponent(a))


def ilogb(a, fmt):
    low, high = -(1 << 31), (1 << 31) - 1
    return low if a == 0 or math.isnan(a) else high if math.isinf(a) else exponent(a)


def scale(a, n, fmt):
    if not finite(a) or a == 0:
        return a
    return rounded(Fraction(a) * Fraction(2) ** max(min(n, 5000), -5000), fmt)


def bits(v, fmt):
    return int(numpy.array([v], TYPES[fmt]).view(numpy.int32 if fmt == "f32" else numpy.int64)[0])


def unsigned(v, w):
    return v & ((1 << w) - 1)


def signed(v, w):
    v = unsigned(v, w)
    return v - (1 << w) if v >> (w - 1) else v


def reverse(v, w):
    return int(format(unsigned(v, w), f"0{w}b")[::-1], 2)


def byte_perm(a, b, s):
    data = (unsigned(a, 32) | unsigned(b, 32) << 32).to_bytes(8, "little")
    return sum(data[s >> 4 * i & 7] << 8 * i for i in range(4))


# --- references in many digits ----------------------------------------------------------------------------------------


def special(f, **at):
    """f for finite arguments; at inf, ninf, zero what is said, NaN for NaN; anything f raises is NaN."""

    def value(a, fmt=None):
        if math.isnan(a):
            return NAN
        for name, x in (("inf", INF), ("ninf", -INF), ("zero", 0.0)):
            if name in at and a == x:
                r = at[name]
                return math.copysign(r, a) if name == "zero" and r in (0, INF) else r
        if not finite(a):
            return NAN
        return f(mp.mpf(a))

    return value


def nan_if(condition, f):
    return lambda x: NAN if condition(x) else f(x)


def erfcinv(x):
    # erfc(y) = x; near 1 by erfinv, elsewhere with digits enough for 1 - x.
    if x == 0 or x == 2:
        return INF if x == 0 else -INF
    with mp.workprec(1400 if x < 1e-5 else 300):
        return mpmath.erfinv(1 - x)


def pow_(a, b, fmt):
    if a == 1 or b == 0:
        return 1.0
    if math.isnan(a) or math.isnan(b):
        return NAN
    odd = finite(b) and b == int(b) and int(b) % 2 == 1
    if a == 0 or not finite(a, b):
        try:
            return math.pow(a, b)
        except ValueError:
            # A zero to a negative power.
            return math.copysign(INF, a) if odd else INF
    if a < 0 and b != int(b):
        return NAN
    r = mp.mpf(abs(a)) ** mp.mpf(b)
    return -r if a < 0 and odd else r


def norm(*args):
    if any(math.isinf(a) for a in args):
        return INF
    if any(math.isnan(a) for a in args):
        return NAN
    return mp.sqrt(sum(mp.mpf(a) ** 2 for a in args))


def reciprocal(v):
    if v == INF:
        return 0.0
    return v if v != v else INF if v == 0 else 1 / v


def atan2(a, b, fmt):
    if math.isnan(a) or math.isnan(b):
        return NAN
    return math.atan2(a, b) if a == 0 or b == 0 or not finite(a, b) else mp.atan2(mp.mpf(a), mp.mpf(b))


def bessel(f, even, at_zero, second):
    """J or Y of a fixed order: zero at infinity; Y has no value below zero."""

    def value(a, fmt=None):
        if math.isnan(a) or (second and a < 0):
            return NAN
        if math.isinf(a):
            return 0.0
        if a == 0:
            return at_zero
        return f(mp.mpf(a))

    return value


def bessel_n(f, second):
    def value(n, a, fmt=None):
        if n < 0 or math.isnan(a) or (second and a < 0):
            return NAN
        if math.isinf(a):
            return 0.0
        if a == 0:
            return -INF if second else float(n == 0)
        return f(n, mp.mpf(a))

    return value


def log_gamma(x):
    return INF if x <= 0 and x == int(x) else mp.re(mp.loggamma(x))


def gamma(x):
    return NAN if x < 0 and x == int(x) else mp.gamma(x) if x < 1e4 else INF


def scaled_erfc(x):
    if x < -30:
        return INF
    with mp.workprec(4000 if x > 1e3 else 600):
        if x > 1e5:
            # Asymptotic: the next term is x^-4 of this one.
            return (1 - 1 / (2 * x * x)) / (x * mp.sqrt(mp.pi))
        return mp.exp(x * x) * mp.erfc(x)


def exp_(x, base):
    return INF if x > 1e5 else mp.mpf(0) if x < -1e5 else base**x


def pi_times(f):
    def value(x):
        with mp.workprec(1400):
            return f(mp.fmod(x, 2))

    return value


def circular(f):
    def value(x):
        with mp.workprec(1400):
            return f(x)

    return value


# name: (reference, ulp of f32, ulp of f64). The f32 function has an f behind the name.
sinh = special(lambda x: mp.sinh(x) if abs(x) < 2e3 else mp.sign(x) * INF, inf=INF, ninf=-INF, zero=0.0)
cosh = special(lambda x: mp.cosh(x) if abs(x) < 2e3 else INF, inf=INF, ninf=INF)
UNARY = {
    "rsqrt": (special(nan_if(lambda x: x < 0, lambda x: 1 / mp.sqrt(x)), inf=0.0, zero=INF), 2, 1),
    "cbrt": (special(lambda x: mp.sign(x) * mp.cbrt(abs(x)), inf=INF, ninf=-INF, zero=0.0), 1, 1),
    "rcbrt": (special(lambda x: mp.sign(x) / mp.cbrt(abs(x)), inf=0.0, ninf=-0.0, zero=INF), 1, 1),
    "exp": (special(lambda x: exp_(x, mp.e), inf=INF, ninf=0.0), 2, 1),
    "exp2": (special(lambda x: exp_(x, mp.mpf(2)), inf=INF, ninf=0.0), 2, 1),
    "exp10": (special(lambda x: exp_(x, mp.mpf(10)), inf=INF, ninf=0.0), 2, 1),
    "expm1": (special(lambda x: INF if x > 1e5 else mp.expm1(x), inf=INF, ninf=-1.0, zero=0.0), 1, 1),
    "log": (special(nan_if(lambda x: x < 0, mp.log), inf=INF, ninf=NAN, zero=None), 1, 1),
    "log2": (special(nan_if(lambda x: x < 0, lambda x: mp.log(x, 2)), inf=INF, zero=None), 1, 1),
    "log10": (special(nan_if(lambda x: x < 0, mp.log10), inf=INF, zero=None), 2, 1),
    "log1p": (special(lambda x: NAN if x < -1 else -INF if x == -1 else mp.log1p(x), inf=INF, zero=0.0), 1, 1),
    "sin": (special(circular(mp.sin), zero=0.0), 2, 2),
    "cos": (special(circular(mp.cos)), 2, 2),
    "tan": (special(circular(mp.tan), zero=0.0), 4, 2),
    "sinpi": (special(pi_times(mp.sinpi), zero=0.0), 1, 2),
    "cospi": (special(pi_times(mp.cospi)), 1, 2),
    "asin": (special(nan_if(lambda x: abs(x) > 1, mp.asin), zero=0.0), 2, 2),
    "acos": (special(nan_if(lambda x: abs(x) > 1, mp.acos)), 2, 2),
    "atan": (special(mp.atan, inf=math.pi / 2, ninf=-math.pi / 2, zero=0.0), 2, 2),
    "sinh": (sinh, 3, 2),
    "cosh": (cosh, 2, 1),
    "tanh": (special(lambda x: mp.tanh(x) if abs(x) < 1e3 else mp.sign(x), inf=1.0, ninf=-1.0, zero=0.0), 2, 1),
    "asinh": (special(lambda x: mp.sign(x) * mp.asinh(abs(x)), inf=INF, ninf=-INF, zero=0.0), 3, 3),
    "acosh": (special(nan_if(lambda x: x < 1, mp.acosh), inf=INF), 4, 3),
    "atanh": (special(lambda x: NAN if abs(x) > 1 else x * INF if abs(x) == 1 else mp.atanh(x), zero=0.0), 3, 2),
    "erf": (special(mp.erf, inf=1.0, ninf=-1.0, zero=0.0), 2, 2),
    "erfc": (special(lambda x: mp.erfc(x) if x < 1e3 else mp.mpf(0), inf=0.0, ninf=2.0), 4, 5),
    "erfinv": (special(lambda x: NAN if abs(x) > 1 else x * INF if abs(x) == 1 else mp.erfinv(x), zero=0.0), 2, 5),
    "erfcinv": (special(nan_if(lambda x: x < 0 or x > 2, erfcinv)), 4, 6),
    "erfcx": (special(scaled_erfc, inf=0.0, ninf=INF), 4, 4),
    "normcdf": (special(lambda x: mp.erfc(-x / mp.sqrt(2)) / 2 if x > -1e3 else mp.mpf(0), inf=1.0, ninf=0.0), 5, 5),
    "normcdfinv": (special(nan_if(lambda x: x < 0 or x > 1, lambda x: -mp.sqrt(2) * erfcinv(2 * x))), 5, 8),
    "lgamma": (special(log_gamma, inf=INF, ninf=INF), 6, 4),
    "tgamma": (special(gamma, inf=INF, zero=INF), 5, 10),
    "j0": (bessel(lambda x: mp.besselj(0, x), True, 1.0, False), 9, 7),
    "j1": (bessel(lambda x: mp.besselj(1, x), False, 0.0, False), 9, 7),
    "y0": (bessel(lambda x: mp.bessely(0, x), True, -INF, True), 9, 7),
    "y1": (bessel(lambda x: mp.bessely(1, x), True, -INF, True), 9, 7),
    "cyl_bessel_i0": (special(lambda x: mp.besseli(0, x) if abs(x) < 2e3 else INF, inf=INF, ninf=INF), 6, 6),
    "cyl_bessel_i1": (
        special(lambda x: mp.besseli(1, x) if abs(x) < 2e3 else mp.sign(x) * INF, inf=INF, ninf=-INF, zero=0.0),
        6,
        6,
    ),
}
for name in ("log", "log2", "log10"):
    f, *ulps = UNARY[name]
    UNARY[name] = (lambda a, fmt=None, f=f: -INF if a == 0 else f(a), *ulps)
BINARY = {
    "atan2": (atan2, 3, 2),
    "hypot": (lambda a, b, fmt: norm(a, b), 3, 2),
    "rhypot": (lambda a, b, fmt: reciprocal(norm(a, b)), 2, 1),
    "pow": (pow_, 4, 2),
}
TERNARY = {
    "norm3d": (lambda a, b, c, fmt: norm(a, b, c), 3, 2),
    "rnorm3d": (lambda a, b, c, fmt: reciprocal(norm(a, b, c)), 2, 1),
}
QUATERNARY = {
    "norm4d": (lambda a, b, c, d, fmt: norm(a, b, c, d), 3, 2),
    "rnorm4d": (lambda a, b, c, d, fmt: reciprocal(norm(a, b, c, d)), 2, 1),
}
# Fast functions of f32 (intrinsics in CUDA): reference, bound in ulp and bound in absolute terms by the operand, and
# where the documentation promises something.
FAST = {
    "fast_sinf": (UNARY["sin"][0], lambda x: (0, 2**-21.41), lambda x: abs(x) <= math.pi),
    "fast_cosf": (UNARY["cos"][0], lambda x: (0, 2**-21.19), lambda x: abs(x) <= math.pi),
    "fast_tanf": (UNARY["tan"][0], lambda x: (0, 2**-19), lambda x: abs(x) <= 1),
    "fast_log2f": (UNARY["log2"][0], lambda x: (0, 2**-22) if 0.5 <= x <= 2 else (2, 0), lambda x: x > 0),
    "fast_logf": (UNARY["log"][0], lambda x: (0, 2**-21.41) if 0.5 <= x <= 2 else (3, 0), lambda x: x > 0),
    "fast_log10f": (UNARY["log10"][0], lambda x: (0, 2**-24) if 0.5 <= x <= 2 else (3, 0), lambda x: x > 0),
    "fast_expf": (UNARY["exp"][0], lambda x: (2 + math.floor(abs(1.173 * x)), 0), lambda x: abs(x) < 1e3),
    "fast_exp10f": (UNARY["exp10"][0], lambda x: (2 + math.floor(abs(2.97 * x)), 0), lambda x: abs(x) < 1e3),
}

# --- the functions ----------------------------------------------------------------------------------------------------

# name: (result, operands, reference, how to compare): "exact", "truth" (zero or not), or ulp and absolute bounds as a
# function of the operands; None for operands about which nothing is promised.
FUNCTIONS = {}


def define(name, result, operands, reference, how="exact"):
    FUNCTIONS["__nv_" + name] = (result, tuple(operands), reference, how)


def define_families():
    for fmt, suffix, which in (("f32", "f", 1), ("f64", "", 2)):
        limit = 2.2e-6 if fmt == "f32" else 5e-12
        for arity, table in enumerate((UNARY, BINARY, TERNARY, QUATERNARY), 1):
            for name, entry in table.items():
                how = lambda *a, u=entry[which]: (u, 0)
                if name in ("j0", "j1", "y0", "y1"):
                    how = lambda x, u=entry[which], limit=limit: (u, 0) if abs(x) < 8 else (0, limit)
                if name == "lgamma":
                    # Near its zeros below -2 the documentation only says "larger".
                    unit, edge = (2**-20, -10.001) if fmt == "f32" else (2**-48, -23.0001)
                    how = lambda x, u=entry[which], unit=unit, edge=edge: (u, unit if edge < x < -2.26 else 0)
                define(name + suffix, fmt, [fmt] * arity, entry[0], how)
        short = "f" if fmt == "f32" else "d"
        for mode in "nzdu":
            m = lambda f, mode=mode, fmt=fmt: lambda *a, **_: f(*a, fmt, mode)
            for name, f in (("add", add), ("mul", mul), ("div", div)):
                define(f"{short}{name}_r{mode}", fmt, [fmt] * 2, m(f))
            define(f"{short}sub_r{mode}", fmt, [fmt] * 2, m(lambda a, b, fmt, mode: add(a, -b, fmt, mode)))
            define(f"{short}rcp_r{mode}", fmt, [fmt], m(lambda a, fmt, mode: div(1.0, a, fmt, mode)))
            define(f"{short}sqrt_r{mode}", fmt, [fmt], m(sqrt))
            define(f"fma{suffix}_r{mode}", fmt, [fmt] * 3, m(fma))
            long = "float" if fmt == "f32" else "double"
            for short_int, w, s in (("int", 32, True), ("uint", 32, False), ("ll", 64, True), ("ull", 64, False)):
                to = lambda a, fmt, w=w, s=s, mode=mode: to_int(a, w, s, mode, fmt)
                define(f"{long}2{short_int}_r{mode}", f"i{w}", [fmt], to)
                if fmt == "f32" or w == 64 or mode == "n":
                    of = lambda v, to=fmt, w=w, s=s, mode=mode, **_: rounded(
                        Fraction(signed(v, w) if s else unsigned(v, w)), to, mode
                    )
                    define(f"{short_int}2{long}_r{mode}", fmt, [f"i{w}"], of)
        define("fma" + suffix, fmt, [fmt] * 3, lambda a, b, c, fmt: fma(a, b, c, fmt, "n"))
        # Of f32 an approximation: kernels are compiled as with -prec-sqrt=false.
        how = (lambda a: (1, 0)) if fmt == "f32" else "exact"
        define("sqrt" + suffix, fmt, [fmt], lambda a, fmt: sqrt(a, fmt, "n"), how)
        define("fabs" + suffix, fmt, [fmt], lambda a, fmt: abs(a))
        for name, mode in (("floor", "d"), ("ceil", "u"), ("trunc", "z"), ("rint", "n"), ("nearbyint", "n")):
            define(name + suffix, fmt, [fmt], lambda a, fmt, mode=mode: integral(a, mode))
        define("round" + suffix, fmt, [fmt], lambda a, fmt: half_away(a))
        define("llrint" + suffix, "i64", [fmt], lambda a, fmt: to_int(a, 64, True, "n", fmt))
        define("llround" + suffix, "i64", [fmt], lambda a, fmt: to_int(half_away(a), 64, True, "n", fmt))
        define("logb" + suffix, fmt, [fmt], logb)
        define("ilogb" + suffix, "i32", [fmt], ilogb)
        define("copysign" + suffix, fmt, [fmt] * 2, lambda a, b, fmt: math.copysign(a, b))
        define("nextafter" + suffix, fmt, [fmt] * 2, nextafter)
        define("fmod" + suffix, fmt, [fmt] * 2, fmod)
        define("remainder" + suffix, fmt, [fmt] * 2, remainder)
        fdim = lambda a, b, fmt: NAN if a != a or b != b else add(a, -b, fmt, "n") if a > b else 0.0
        define("fdim" + suffix, fmt, [fmt] * 2, fdim)
        define("ldexp" + suffix, fmt, [fmt, "i32"], scale)
        define("scalbn" + suffix, fmt, [fmt, "i32"], scale)
        define("powi" + suffix, fmt, [fmt, "i32"], lambda a, n, fmt: pow_(a, float(n), fmt), lambda a, n: (4 + 2 * abs(n), 0))
        # Documented: jn within an absolute error for n = 128, yn where x is not small against n. At zero libdevice's
        # recurrence for n > 1 divides by zero. Of powi nothing is said; it multiplies.
        at = lambda n, x, limit=limit: (0, limit) if x else None
        order = lambda n, x, limit=limit: (0, limit) if abs(x) > 1.5 * n else None
        define("jn" + suffix, fmt, ["i32", fmt], bessel_n(mp.besselj, False), at)
        define("yn" + suffix, fmt, ["i32", fmt], bessel_n(mp.bessely, True), order)
        define("isinf" + short, "i32", [fmt], lambda a, fmt: math.isinf(a), "truth")
        define("isnan" + short, "i32", [fmt], lambda a, fmt: math.isnan(a), "truth")
        define("signbit" + short, "i32", [fmt], lambda a, fmt: math.copysign(1, a) < 0, "truth")
        define("finitef" if fmt == "f32" else "isfinited", "i32", [fmt], lambda a, fmt: finite(a), "truth")
    for mode in "nzdu":
        narrow = lambda a, fmt, mode=mode: rounded(Fraction(a), "f32", mode) if finite(a) and a else a
        define(f"double2float_r{mode}", "f32", ["f64"], narrow)


def define_others():
    define("frsqrt_rn", "f32", ["f32"], UNARY["rsqrt"][0], lambda a: (0, 0))
    # The upper word of an approximation, which flushes subnormals.
    define("rcp64h", "f64", ["f64"], lambda a, fmt: div(1.0, a, fmt, "n"), lambda a: (2**34, 0) if abs(a) < 2.0**1022 else None)
    clamp = lambda a, fmt: min(a, 1.0) if a > 0 else 0.0
    define("saturatef", "f32", ["f32"], clamp)
    for name, (f, bound, where) in FAST.items():
        define(name, "f32", ["f32"], f, lambda x, bound=bound, where=where: bound(x) if where(x) else None)
    small = lambda a, b: (2, 0) if 2**-126 <= abs(b) <= 2**126 and finite(a) else None
    define("fast_fdividef", "f32", ["f32", "f32"], lambda a, b, fmt: div(a, b, "f64", "n"), small)
    # exp2(b * log2(a)): the error of the product grows with it.
    power = lambda a, b: (4 + abs(b * math.log2(a)) * 4, 0) if 2**-126 < a < INF and abs(b) < 100 else None
    define("fast_powf", "f32", ["f32", "f32"], pow_, power)

    define("float_as_int", "i32", ["f32"], bits, "bits")
    define("float_as_uint", "i32", ["f32"], bits, "bits")
    define("double_as_longlong", "i64", ["f64"], bits, "bits")
    define("double2loint", "i32", ["f64"], lambda a, fmt: bits(a, fmt), "bits")
    define("double2hiint", "i32", ["f64"], lambda a, fmt: bits(a, fmt) >> 32, "bits")
    as_float = lambda v, fmt: float(numpy.array([signed(v, 32)], numpy.int32).view(numpy.float32)[0])
    define("int_as_float", "f32", ["i32"], as_float)
    define("uint_as_float", "f32", ["i32"], as_float)
    as_double = lambda v, fmt: float(numpy.array([signed(v, 64)], numpy.int64).view(numpy.float64)[0])
    define("longlong_as_double", "f64", ["i64"], as_double)
    define("hiloint2double", "f64", ["i32", "i32"], lambda h, l, fmt: as_double(unsigned(h, 32) << 32 | unsigned(l, 32), fmt))

    for w, suffix in ((32, ""), (64, "ll")):
        t = f"i{w}"
        define("clz" + suffix, "i32", [t], lambda v, fmt, w=w: w - unsigned(v, w).bit_length())
        define("popc" + suffix, "i32", [t], lambda v, fmt, w=w: unsigned(v, w).bit_count())
        define("ffs" + suffix, "i32", [t], lambda v, fmt, w=w: (unsigned(v, w) & -unsigned(v, w)).bit_length())
        define("brev" + suffix, t, [t], lambda v, fmt, w=w: reverse(v, w))
        define("abs" if w == 32 else "llabs", t, [t], lambda v, fmt, w=w: abs(v))
        define("mulhi" if w == 32 else "mul64hi", t, [t, t], lambda a, b, fmt, w=w: a * b >> w)
        high = lambda a, b, fmt, w=w: unsigned(a, w) * unsigned(b, w) >> w
        define("umulhi" if w == 32 else "umul64hi", t, [t, t], high)
    two, three = ["i32"] * 2, ["i32"] * 3
    define("mul24", "i32", two, lambda a, b, fmt: signed(a, 24) * signed(b, 24))
    define("umul24", "i32", two, lambda a, b, fmt: unsigned(a, 24) * unsigned(b, 24))
    define("hadd", "i32", two, lambda a, b, fmt: (a + b) >> 1)
    define("rhadd", "i32", two, lambda a, b, fmt: (a + b + 1) >> 1)
    define("uhadd", "i32", two, lambda a, b, fmt: (unsigned(a, 32) + unsigned(b, 32)) >> 1)
    define("urhadd", "i32", two, lambda a, b, fmt: (unsigned(a, 32) + unsigned(b, 32) + 1) >> 1)
    define("sad", "i32", three, lambda a, b, c, fmt: abs(a - b) + c)
    define("usad", "i32", three, lambda a, b, c, fmt: abs(unsigned(a, 32) - unsigned(b, 32)) + c)
    define("byte_perm", "i32", three, lambda a, b, c, fmt: byte_perm(a, b, unsigned(c, 32)))


# --- operands ---------------------------------------------------------------------------------------------------------


def values(t):
    """Operands of a type: special, ordinary, huge and tiny ones."""
    if t in ("i32", "i64"):
        w = int(t[1:])
        some = [0, 1, -1, 2, 3, -7, 100, 12345, -98765, 0x7FFFFF, 0x800001, 0x1000001, -0x800001, 0x3210, 0x7654]
        edge = [2 ** (w - 1) - 1, -(2 ** (w - 1)), 2 ** (w - 2) + 3, -(2 ** (w - 2)) - 1, 0x5A5A5A5A, 0x40490FDB]
        wide = [2**62 + 2**8 + 1, 0x400921FB54442D18, -(2**53) - 1, 2**53 + 3, 2**24 + 1] if w == 64 else [2**24 + 1]
        return some + edge + wide
    precision, low, high = FORMATS[t]
    largest = float((2 - Fraction(2) ** (1 - precision)) * Fraction(2) ** high)
    some = [0.0, -0.0, 0.1, 0.3, 0.5, 0.75, 0.999, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, math.pi, 7.25, 10.0, 21.3, 88.5, 127.7]
    more = [1e-3, 1e-5, 1e-12, 100.7, 1234.5, 65536.5, 1e5, 1e7, 1e10, 1e15, 2.0**31, 2.0**32, 2.0**63, 2.0**64 * 1.5, 1e22]
    edge = [largest, 1.5 * 2.0**100, 2.0 ** (high - 3) * 1.2, 2.0**low, 1.3 * 2.0 ** (low + 2), 1.5 * 2.0 ** (low - 4)]
    edge += [2.0 ** (low - precision + 1), INF]
    if t == "f64":
        edge += [1e100, 1e200, 710.1, 709.5, 1e-100, 1e-200, 1e-307]
    positive = [float(TYPES[t](x)) for x in some + more + edge]
    return positive + [-x for x in positive[2:]] + [NAN]


def operands(types):
    if len(types) == 1:
        return [(x,) for x in values(types[0])]
    if types[0] == "i32" and types[1] in FORMATS:
        xs = [0.0, 0.1, 1.0, 2.5, 7.9, 8.1, 30.0, 200.0, 1000.5, INF, NAN, -1.5]
        return list(itertools.product([0, 1, 2, 3, 5, 128], [float(TYPES[types[1]](x)) for x in xs]))
    if types[1:] == ("i32",) and types[0] in FORMATS:
        return list(itertools.product(values(types[0])[::4] + [NAN], [0, 1, -1, 2, 5, -6, 31, -40, 127, -126, 300, -1074]))
    pick = {"f32": 7, "f64": 8}.get(types[0], 2) if len(types) == 2 else 9
    lists = [values(t)[i::pick] + values(t)[:2] for i, t in enumerate(types)]
    if types[0] in FORMATS:
        for l in lists:
            l += [INF, -INF, NAN, 1.0, 2.0, -3.0][: 6 if len(types) == 2 else 3 if len(types) == 3 else 1]
    if len(types) > 2:
        lists = [l[: 9 if len(types) == 3 else 5] for l in lists]
        lists = [l + ([INF, NAN] if types[0] in FORMATS else []) for l in lists]
    return list(itertools.product(*lists))


# --- running ----------------------------------------------------------------------------------------------------------


def kernel(names, types, result, count):
    t = lambda e: f"tensor<{count}x{e}>"
    p = lambda e: f"tensor<{count}x!tt.ptr<{e}>>"
    out = ["module attributes {ttg.flush_denormals = false} {", "  tt.func public @k(" + ", ".join(f"%a{i}: !tt.ptr<{e}>" for i, e in enumerate(types))]
    out[-1] += f", %out: !tt.ptr<{result}>) {{"
    out.append(f"    %i = tt.make_range {{start = 0 : i32, end = {count} : i32}} : {t('i32')}")
    for i, e in enumerate(types):
        out.append(f"    %s{i} = tt.splat %a{i} : !tt.ptr<{e}> -> {p(e)}")
        out.append(f"    %p{i} = tt.addptr %s{i}, %i : {p(e)}, {t('i32')}")
        out.append(f"    %x{i} = tt.load %p{i} : {p(e)}")
    out.append(f"    %o = tt.splat %out : !tt.ptr<{result}> -> {p(result)}")
    args = ", ".join(f"%x{i}" for i in range(len(types)))
    for n, name in enumerate(names):
        what = f'{{libname = "", libpath = "", pure = true, symbol = "{name}"}}'
        out.append(f"    %y{n} = tt.extern_elementwise {args} {what} : ({', '.join(map(t, types))}) -> {t(result)}")
        out.append(f"    %c{n} = arith.constant dense<{n * count}> : {t('i32')}")
        out.append(f"    %j{n} = arith.addi %i, %c{n} : {t('i32')}")
        out.append(f"    %q{n} = tt.addptr %o, %j{n} : {p(result)}, {t('i32')}")
        out.append(f"    tt.store %q{n}, %y{n} : {p(result)}")
    return "\n".join(out + ["    tt.return", "  }", "}"]) + "\n"


def run(group, opts):
    """Compiles and runs functions of one signature; yields name, operands, result."""
    number, (types, result, names) = group
    tuples = operands(types)
    count = 1 << (len(tuples) - 1).bit_length()
    folder = pathlib.Path(opts.data) / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "k.ttir").write_text(kernel(names, types, result, count))
    padded = tuples + [tuples[-1]] * (count - len(tuples))
    command = [opts.ttsim, str(folder / "k.ttir"), "-q", "--target", opts.target, "--num-warps", "1"]
    for i, t in enumerate(types):
        column = [x[i] for x in padded]
        data = numpy.array(column, TYPES[t])
        numpy.save(folder / f"a{i}.npy", data)
        command += ["--arg", str(folder / f"a{i}.npy")]
    command += ["--arg", f"out={result}[{count * len(names)}]", "--out-dir", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return [(n, None, (done.stdout + done.stderr).strip()[:400]) for n in names]
    data = numpy.load(folder / "out.npy").reshape(len(names), count)
    return [(n, x, data[i][j].item()) for i, n in enumerate(names) for j, x in enumerate(tuples)]


def flushed(x, t):
    return math.copysign(0.0, x) if t == "f32" and x == x and abs(x) < 2.0**-126 else x


def unit(v, fmt):
    """Distance of neighbouring numbers of the format around a value."""
    precision, low, _ = FORMATS[fmt]
    e = mp.frexp(v)[1] - 1 if v else low
    return mp.mpf(2) ** (max(e, low) - precision + 1)


def close(got, want, fmt, ulp, absolute):
    if want != want or got != got:
        return want != want and got != got
    _, low, high = FORMATS[fmt]
    precision = FORMATS[fmt][0]
    if mp.isinf(want):
        return got == want
    if want == 0 and ulp == 0 and absolute == 0:
        return got == 0
    largest = (2 - mp.mpf(2) ** (1 - precision)) * mp.mpf(2) ** high
    tiny = mp.mpf(2) ** low if fmt == "f32" else 0
    if abs(want) < tiny and abs(got) <= tiny:
        return True
    if math.isinf(got):
        return (got > 0) == (want > 0) and abs(want) + (ulp + 0.5) * unit(largest, fmt) >= largest
    return abs(mp.mpf(got) - want) <= (ulp + 0.501) * unit(want, fmt) + absolute


def right(name, x, got):
    result, types, reference, how = FUNCTIONS[name]
    source = types[-1] if types[0] != "f32" and types[0] != "f64" else types[0]
    # Operands as they are, and flushed.
    tries = [x]
    zeros = tuple(flushed(a, t) for a, t in zip(x, types))
    if any(a != b for a, b in zip(x, zeros)):
        tries.append(zeros)
    wanted = []
    for a in tries:
        want = reference(*a, fmt=source)
        wanted.append(want)
        if how == "truth":
            ok = (got != 0) == want
        elif how == "bits" or result in ("i32", "i64"):
            w = 32 if result == "i32" else 64
            ok = unsigned(got, w) == unsigned(want, w) or (how == "bits" and x[0] != x[0])
        elif how == "exact":
            zero = result == "f32" and want == want and 0 < abs(want) <= 2.0**-126 and got == 0
            same = got == want and (want != 0 or math.copysign(1, got) == math.copysign(1, want))
            ok = same or zero or (got != got and want != want)
        else:
            bound = how(*a)
            ok = bound is None or close(got, want, result, *bound)
        if ok:
            return True, wanted
    return False, wanted


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ttsim", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--target", default="cuda:90")
    parser.add_argument("functions", nargs="*")
    opts = parser.parse_args()
    define_families()
    define_others()
    groups = {}
    for name, (result, types, _, _) in FUNCTIONS.items():
        if not opts.functions or name in opts.functions:
            groups.setdefault((types, result), []).append(name)
    work = []
    for (types, result), names in sorted(groups.items()):
        work += [(types, result, names[i : i + 24]) for i in range(0, len(names), 24)]
    wrong, checked = {}, 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for rows in pool.map(lambda g: run(g, opts), enumerate(work)):
            for name, x, got in rows:
                if x is None:
                    wrong.setdefault(name, []).append(got)
                    continue
                checked += 1
                ok, want = right(name, x, got)
                if not ok:
                    shown = " or ".join(mp.nstr(w, 17) if isinstance(w, mp.mpf) else repr(w) for w in want)
                    wrong.setdefault(name, []).append(f"{x} gives {got!r}, not {shown}")
    for name, rows in wrong.items():
        print(f"WRONG {name}: {len(rows)} times, first {rows[0]}")
    total = sum(len(names) for _, _, names in work)
    print(f"{total - len(wrong)} of {total} functions right, {checked} results checked")
    sys.exit(bool(wrong))


main()
