"""Many compilations on all cores, or on a Ray cluster, of which none is done twice where there is a store."""

import itertools
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from . import _store
from ._compile import CompileError, compile


@dataclass(frozen=True)
class Job:
    """A kernel with options and a target, and what came of it: its metadata, resources and estimate, or an error.

    ``cached`` says that it came from the store.
    """

    kernel: str
    target: str
    options: dict
    metadata: dict = field(default_factory=dict)
    resources: dict = field(default_factory=dict)
    asm: dict = field(default_factory=dict, repr=False)
    estimate: dict = field(default=None, repr=False)
    error: str = ""
    cached: bool = False


def _run(job):
    name, source, target, options, launch, emit, keep, store, store_bytes = job
    place = None
    if store is not None:
        place = _store.entry(store, store_bytes, _store.key(source, name, target, {**options, "estimate": launch}, emit, keep))
        known = _store.get(place)
        if known is not None:
            return Job(name, target, options, **known, cached=True)
    try:
        made = compile(source, name=name, target=target, emit=emit, estimate=launch, **options)
    except CompileError as error:
        return Job(name, target, options, error=str(error))
    asm = {stage: made.asm[stage] for stage in keep if stage in made.asm}
    fields = {"metadata": made.metadata, "resources": made.resources, "estimate": made.estimate, "asm": asm}
    if place is not None:
        _store.put(place, fields)
    return Job(name, target, options, **fields)


def sweep(
    kernels,
    options=({},),
    targets=("cuda:90",),
    *,
    emit="asm",
    keep=("ptx", "amdgcn"),
    launches=None,
    workers=None,
    ray=None,
    store=None,
    store_bytes=4 << 30,
):
    """Compiles every kernel with every set of options for every target, in this order of nesting.

    ``kernels`` maps names to TTIR. With ``emit="bin"`` jobs have registers, spills and occupancy,
    and always what the objective counts for a program (``estimate``; of TTIR only), so that an autotuner can leave out
    candidates before it measures. ``launches`` maps names of kernels to launches, as ``compile(estimate=…)`` takes them;
    without one, loops count as many iterations as the objective assumes. ``ray=True`` spreads the jobs over a Ray cluster, which takes the package ``ray``; a text
    is the cluster's address. Otherwise ``workers`` processes of this machine do them.

    ``store`` keeps what was made for later sweeps, of other processes and machines, too: a folder, which takes at most
    ``store_bytes``; ``"redis"``, a server by Triton's variables ``TRITON_REDIS_…``, which takes the package ``redis``; or a class with the interface of Triton's
    ``RemoteCacheBackend``, which workers can import. Errors are not kept.
    """
    jobs = [
        (name, source, target, dict(choice), (launches or {}).get(name, {}), emit, tuple(keep), store, store_bytes)
        for (name, source), choice, target in itertools.product(dict(kernels).items(), options, targets)
    ]
    if ray:
        import ray as cluster

        if not cluster.is_initialized():
            cluster.init(address=ray if isinstance(ray, str) else "auto")
        task = cluster.remote(_run)
        return cluster.get([task.remote(job) for job in jobs])
    workers = min(workers or os.cpu_count() or 1, max(len(jobs), 1))
    if workers == 1:
        return [_run(job) for job in jobs]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(_run, jobs, chunksize=max(1, len(jobs) // (4 * workers))))
