"""Many compilations on all cores, or on a Ray cluster."""

import itertools
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from ._compile import CompileError, compile


@dataclass(frozen=True)
class Job:
    """A kernel with options and a target, and what came of it: its metadata and resources, or an error."""

    kernel: str
    target: str
    options: dict
    metadata: dict = field(default_factory=dict)
    resources: dict = field(default_factory=dict)
    asm: dict = field(default_factory=dict, repr=False)
    error: str = ""


def _run(job):
    name, source, target, options, emit, keep = job
    try:
        made = compile(source, name=name, target=target, emit=emit, **options)
    except CompileError as error:
        return Job(name, target, options, error=str(error))
    asm = {stage: made.asm[stage] for stage in keep if stage in made.asm}
    return Job(name, target, options, made.metadata, made.resources, asm)


def sweep(kernels, options=({},), targets=("cuda:90",), *, emit="asm", keep=("ptx", "amdgcn"), workers=None, ray=None):
    """Compiles every kernel with every set of options for every target, in this order of nesting.

    ``kernels`` maps names to TTIR. With ``emit="bin"`` jobs have registers and spills, so that an autotuner can leave out
    candidates before it measures. ``ray=True`` spreads the jobs over a Ray cluster, which takes the package ``ray``;
    otherwise ``workers`` processes of this machine do them.
    """
    jobs = [
        (name, source, target, dict(choice), emit, tuple(keep))
        for (name, source), choice, target in itertools.product(dict(kernels).items(), options, targets)
    ]
    if ray:
        import ray as cluster

        if not cluster.is_initialized():
            cluster.init(address="auto")
        task = cluster.remote(_run)
        return cluster.get([task.remote(job) for job in jobs])
    workers = min(workers or os.cpu_count() or 1, max(len(jobs), 1))
    if workers == 1:
        return [_run(job) for job in jobs]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(_run, jobs, chunksize=max(1, len(jobs) // (4 * workers))))
