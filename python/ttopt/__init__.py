"""Compiles the IR of the Triton language for GPUs, explains what was chosen, and checks kernels without a GPU.

``compile`` and ``explain`` take TTIR or TTGIR, ``layout`` shows a layout, ``simulate`` runs a kernel on the CPU.
``ttopt.triton.enable()``, or ``TTOPT=1`` in the environment, compiles ``@triton.jit`` kernels; see ``ttopt.triton``.
"""

from ._compile import Cancellation, CompileError, Diagnostic, Kernel, compile, explain
from ._layout import Conversion, Layout, layout
from ._simulate import Finding, Simulation, simulate
from ._sweep import Job, sweep
from ._ttopt import __version__

__all__ = [
    "Cancellation",
    "CompileError",
    "Conversion",
    "Diagnostic",
    "Finding",
    "Job",
    "Kernel",
    "Layout",
    "Simulation",
    "__version__",
    "compile",
    "explain",
    "layout",
    "simulate",
    "sweep",
]
