"""Kernels on the CPU: results, races, bad accesses, bank conflicts."""

import json
from dataclasses import dataclass, field

from . import _ttopt
from ._compile import Explanation, Kernel, compile


@dataclass(frozen=True)
class Finding:
    """Something wrong: a race, an access out of bounds, a value that was never written, and so on."""

    kind: str
    message: str
    file: str
    line: int
    raw: dict = field(repr=False)

    def __str__(self):
        return f"{self.file}:{self.line}: {self.kind}: {self.message}"


@dataclass(frozen=True)
class Simulation:
    """What a launch did. The arrays that were passed hold its results."""

    findings: tuple
    report: dict = field(repr=False)
    table: str = field(repr=False)

    def __bool__(self):
        """Whether nothing was found."""
        return not self.findings

    def __str__(self):
        return "\n".join([*map(str, self.findings), self.table])

    def _repr_html_(self):
        return Explanation(str(self))._repr_html_()

    @property
    def lines(self):
        """Counts by source line: accesses, sectors, wavefronts, conflicts."""
        return self.report.get("lines", [])


def simulate(kernel, grid, *args, target="cuda:90", jobs=None, **options):
    """Runs a kernel, TTIR or what ``compile`` made, for a grid of programs.

    Arguments are numpy arrays, whose contents are the buffers and get the results, numbers, and None for null. Options are
    those of ``compile``.
    """
    import numpy

    if not isinstance(kernel, Kernel) or "llir" not in kernel.asm:
        kernel = compile(kernel, target=target, emit="llir", **options)
    facts = kernel.metadata
    grid = (grid,) if isinstance(grid, int) else tuple(grid)
    grid = list(grid) + [1] * (3 - len(grid))
    passed, arrays = [], []
    for at, arg in enumerate(args):
        if isinstance(arg, numpy.ndarray):
            arrays.append(arg)
            passed.append((f"argument {at}", numpy.ascontiguousarray(arg).tobytes()))
        elif isinstance(arg, (bool, int, numpy.integer)):
            passed.append(int(arg))
        elif arg is None:
            passed.append(None)
        else:
            passed.append(float(arg))
    raw = _ttopt.simulate(
        kernel.asm["llir"].encode(),
        facts["name"],
        facts["target"],
        facts["threads"],
        facts["shared"],
        grid,
        facts["cluster_size"],
        passed,
        jobs,
    )
    for array, data in zip(arrays, raw["buffers"]):
        array[...] = numpy.frombuffer(data, array.dtype).reshape(array.shape)
    report = json.loads(raw["report"])
    findings = tuple(
        Finding(one["kind"], one["message"], one["file"] or "", one["line"] or 0, one) for one in report["findings"]
    )
    return Simulation(findings, report, raw["table"])
