"""Vocabulary of the launches: the same as that of the workloads' specs, for bench launches only."""
SPECS = []


def randn(seed, std=1.0, mean=0.0):
    return {"kind": "randn", "seed": seed, "mean": mean, "std": std}


def uniform(seed, low=0.0, high=1.0):
    return {"kind": "uniform", "seed": seed, "low": low, "high": high}


def randint(seed, low, high):
    return {"kind": "randint", "seed": seed, "low": low, "high": high}


def arange(start=0, step=1, mod=None):
    d = {"kind": "arange", "start": start, "step": step}
    return d if mod is None else {**d, "mod": mod}


def full(value):
    return {"kind": "full", "value": value}


ZEROS = {"kind": "zeros"}


def P(name, dtype, shape, init):
    shape = list(shape) if isinstance(shape, (list, tuple)) else [shape]
    return {"name": name, "kind": "ptr", "dtype": dtype, "shape": shape, "init": dict(init)}


def O(name, dtype, shape):
    return P(name, dtype, shape, ZEROS)


def I(name, value):
    return {"name": name, "kind": "scalar", "dtype": "i32", "value": value}


def F(name, value):
    return {"name": name, "kind": "scalar", "dtype": "f32", "value": value}


def cdiv(a, b):
    return -(-a // b)


SIZE = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "u32": 4, "f16": 2, "bf16": 2, "i16": 2, "i8": 1, "u8": 1, "i1": 1,
        "f8e4m3": 1, "f8e5m2": 1}


def nbytes(args):
    total = 0
    for a in args:
        if a["kind"] == "ptr":
            n = 1
            for d in a["shape"]:
                n *= d
            total += n * SIZE[a["dtype"]]
    return total


def case(cls, kernel, what, grid, args, outs, consts=None, w=4, s=3, nb=None, fl=None, rtol=1e-3, atol=1e-3, name=None,
         note=None):
    """nb: bytes of traffic (default: every array once); fl: flops (default: 2 per byte)."""
    nb = nbytes(args) if nb is None else nb
    fl = nb if fl is None else fl
    outs = outs.split()
    grid = list(grid) + [1] * (3 - len(grid))
    assert nbytes(args) < 1 << 30, (kernel, nbytes(args))
    assert set(outs) <= {a["name"] for a in args}, kernel
    SPECS.append({
        "name": name or kernel, "kernel": kernel, "class": cls, "what": what, "num_warps": w, "num_stages": s,
        "num_ctas": 1, "grid": grid, "args": args, "outputs": outs, "rtol": rtol, "atol": atol,
        "constexprs": consts or {}, "debug": False, "note": note, "nvidia_only": True,
        "bench": {"grid": grid, "args": args, "flops": int(fl), "bytes": int(nb)}})
