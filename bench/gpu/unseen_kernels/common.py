"""What the kernels' launches share: tensors of seeded values, and the table of cases."""

import torch
import triton

CASES = []
PROGRAMS = 132


def case(make):
    """Lists `make`, which gives a function to time and its arguments, under its name."""
    CASES.append((make.__name__, make))
    return make


def run(kernel, grid, args, outs, **options):
    """A function that launches `kernel` once and returns what it wrote."""

    def launch(*args):
        kernel[grid](*args, **options)
        return outs

    return launch, args


def cleared(launched, *outs):
    """The launch after `outs`, which it adds to, are set to zero."""
    launch, args = launched

    def clear(*args):
        for out in outs:
            out.zero_()
        return launch(*args)

    return clear, args


def viewed(launched, view):
    """The launch with results as `view` shows them: codes that may round either way are far from zero there."""
    launch, args = launched

    def see(*args):
        return view(launch(*args))

    return see, args


def against(launched, reference):
    """The launch with what it is to be compared with, made by `reference` of no arguments."""
    launch, args = launched
    launch.reference = lambda *_: reference()
    return launch, args


def far(codes):
    """Codes of which neighbors differ by little."""
    return codes.to(torch.float32) + 200


def far8(values):
    """The same of FP8 values: their codes in order."""
    bits = values.view(torch.int8).to(torch.int32)
    return far(torch.where(bits < 0, -(bits & 127), bits))


def rand(*shape, dtype="float16"):
    return torch.randn(*shape, device="cuda", dtype=getattr(torch, dtype))


def f32(*shape):
    return rand(*shape, dtype="float32")


def f8(*shape, dtype="float8_e4m3fn"):
    return rand(*shape).to(getattr(torch, dtype))


def uniform(*shape):
    return torch.rand(*shape, device="cuda", dtype=torch.float32)


def ints(low, high, *shape, dtype="int32"):
    return torch.randint(low, high, shape, device="cuda", dtype=getattr(torch, dtype))


def zeros(*shape, dtype="float16"):
    return torch.zeros(*shape, device="cuda", dtype=getattr(torch, dtype))


def full(value, *shape, dtype="float32"):
    return torch.full(shape, value, device="cuda", dtype=getattr(torch, dtype))


def arange(n, dtype="int32"):
    return torch.arange(n, device="cuda", dtype=getattr(torch, dtype))


cdiv = triton.cdiv
