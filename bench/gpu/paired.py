"""Times functions whose kernels are Triton's twice: compiled by Triton, and by ttopt through its hook.

What benchmarks give is a generator of cases: a name, and a function without arguments that makes the tensors and returns
the function to time and its arguments, the same ones at each call (seeds are set here). Two groups of processes run them,
one with `TTOPT=strict`. Each process takes its share of the cases; it compiles them while others do, and only when all have
compiled are kernels timed, one process at a time: each by its own time on the GPU, with the L2 overwritten in between.
Results of both compilers are compared with each other, and with a reference where the case has one.

`--warps` and `--stages` launch every kernel with other parameters than its author gave it, for both compilers: what was tuned by
these kernels was not tuned by them as they are then.
"""

import argparse
import fcntl
import glob
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile

REPEATS = 12
SAMPLES = 1 << 16


def leaves(value):
    if isinstance(value, (tuple, list)):
        return [leaf for one in value for leaf in leaves(one)]
    return [value] if hasattr(value, "dtype") else []


def sample(value):
    """At most SAMPLES elements of a tensor, evenly spread, as doubles on the CPU."""
    import torch

    flat = value.detach().as_subclass(torch.Tensor).reshape(-1)
    flat = flat[:: max(1, flat.numel() // SAMPLES)][:SAMPLES]
    if flat.is_complex():
        flat = torch.view_as_real(flat)
    return flat.double().nan_to_num().cpu()


def difference(one, other):
    """The largest difference of two lists of samples, over the magnitude of the second one's elements."""
    if len(one) != len(other) or any(a.shape != b.shape for a, b in zip(one, other)):
        return math.inf
    pairs = [(a, b) for a, b in zip(one, other) if a.numel()]
    return max((((a - b).abs() / (b.abs() + b.abs().mean() + 1e-6)).max().item() for a, b in pairs), default=0.0)


def times(function, args, flush, cache):
    """Microseconds that a call spends in each kernel of Triton's: medians of the repetitions, launches of a call added."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    # A kernel may have another name for each specialization than the function has.
    kernels = {json.load(open(path)).get("name") for path in glob.glob(os.path.join(cache, "*", "*.json"))}
    kernels |= {os.path.basename(path)[: -len(".cubin")] for path in glob.glob(os.path.join(cache, "*", "*.cubin"))}
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        for _ in range(REPEATS):
            flush.zero_()
            function(*args)
        torch.cuda.synchronize()
    found = {}
    for event in trace.events():
        if event.name in kernels:
            found.setdefault(event.name, []).append((event.time_range.start, event.device_time))
    result = {}
    for name, runs in found.items():
        runs = [time for _, time in sorted(runs)]
        per_call = max(1, len(runs) // REPEATS)
        result[name] = statistics.median(sum(runs[at : at + per_call]) for at in range(0, len(runs) - per_call + 1, per_call))
    return result


def lost(name, failure):
    """After a fault of function `name` the GPU is lost to this process: the other functions run in a new one."""
    print(f"{name}: {os.environ.get('TTOPT') and 'ttopt' or 'triton'}: {str(failure)[:80]}", flush=True)
    os.execv(sys.executable, [sys.executable, *sys.argv, "--skip", name])


def vary(warps, stages):
    """From now on kernels are launched with `warps` times as many warps (1 to 32), and with `stages` stages unless that is None."""
    from triton.runtime.jit import JITFunction

    plain = JITFunction.run

    def run(self, *args, **kwargs):
        kwargs["num_warps"] = min(32, max(1, int((kwargs.get("num_warps") or 4) * warps)))
        if stages is not None:
            kwargs["num_stages"] = stages
        return plain(self, *args, **kwargs)

    JITFunction.run = run


def child(cases, only, skip, share, lock, out):
    with open(lock) as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        import torch

        results, ready, at = {}, [], -1
        for name, make in cases():
            if not re.search(only, name):
                continue
            at += 1
            if at % share[1] != share[0]:
                continue
            if name in skip:
                results[name] = {"failure": "a fault on the GPU"}
                continue
            try:
                torch.manual_seed(0)
                function, args = make()
                torch.manual_seed(1)
                value = function(*args)
                torch.cuda.synchronize()
                results[name] = {"values": [sample(leaf) for leaf in leaves(value)]}
                if hasattr(function, "reference"):
                    results[name]["wanted"] = [sample(leaf) for leaf in leaves(function.reference(*args))]
                ready.append((name, make))
                del function, args, value
            except torch.AcceleratorError as failure:
                lost(name, failure)
            except Exception as failure:  # noqa: BLE001: one function that fails must not end the others
                results[name] = {"failure": f"{type(failure).__name__}: {str(failure)[:300]}"}
            torch.cuda.empty_cache()
        fcntl.flock(file, fcntl.LOCK_UN)
        fcntl.flock(file, fcntl.LOCK_EX)
        flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
        for name, make in ready:
            try:
                torch.manual_seed(0)
                function, args = make()
                torch.manual_seed(1)
                function(*args)
                torch.cuda.synchronize()
                results[name]["kernels"] = times(function, args, flush, os.environ["TRITON_CACHE_DIR"])
                del function, args
            except torch.AcceleratorError as failure:
                lost(name, failure)
            except Exception as failure:  # noqa: BLE001
                results[name] = {"failure": f"{type(failure).__name__}: {str(failure)[:300]}"}
            torch.cuda.empty_cache()
        torch.save(results, out)


def main(description, cases, shares=1):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--only", default="", help="functions whose names match this expression")
    parser.add_argument("--json", help="write the times here")
    parser.add_argument("--keep", help="leave what was compiled in this folder (TTIR, PTX and cubins of both)")
    parser.add_argument("--shares", type=int, default=shares, help="processes for each compiler (default %(default)s)")
    parser.add_argument("--skip", action="append", default=[], help="a function that is not to be run")
    parser.add_argument("--warps", type=float, default=1, help="times as many warps as a kernel's author gave it")
    parser.add_argument("--stages", type=int, help="as many stages for every kernel")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        share, lock, out = options.child
        if options.warps != 1 or options.stages is not None:
            vary(options.warps, options.stages)
        return child(cases, options.only, options.skip, tuple(map(int, share.split("/"))), lock, out)
    folder = os.path.abspath(options.keep or tempfile.mkdtemp(prefix="ttopt-paired-"))
    os.makedirs(folder, exist_ok=True)
    lock = os.path.join(folder, "lock")
    open(lock, "w").close()
    running = []
    for who, switch in (("triton", None), ("ttopt", "strict")):
        own = os.path.join(folder, who)
        environment = {name: value for name, value in os.environ.items() if name != "TTOPT"}
        environment |= {"TORCHINDUCTOR_CACHE_DIR": own, "TRITON_CACHE_DIR": os.path.join(own, "triton")}
        environment |= {"FLAGGEMS_CACHE_DIR": os.path.join(own, "gems")}
        environment |= {"TTOPT": switch} if switch else {}
        for share in range(options.shares):
            out = os.path.join(folder, f"{who}{share}.pt")
            command = [sys.executable, sys.argv[0], "--only", options.only, "--child", f"{share}/{options.shares}", lock, out]
            command += ["--warps", str(options.warps)] + ([] if options.stages is None else ["--stages", str(options.stages)])
            command += [word for name in options.skip for word in ("--skip", name)]
            running.append((who, subprocess.Popen(command, env=environment), out))
    import torch

    found = {"triton": {}, "ttopt": {}}
    for who, process, out in running:
        if process.wait():
            print(f"a process of {who} ended with {process.returncode}")
        else:
            found[who] |= torch.load(out, weights_only=False)
    report(found, options.json)


def report(found, out):
    ratios, written = [], {}
    for name, theirs in sorted(found["triton"].items()):
        ours = found["ttopt"].get(name, {"failure": "not run"})
        for who, result in (("triton", theirs), ("ttopt", ours)):
            if "failure" in result:
                print(f"{name}: {who}: {result['failure']}")
        if "failure" in theirs or "failure" in ours:
            continue
        if "wanted" in ours:
            error, theirs_error = (difference(who["values"], who["wanted"]) for who in (ours, theirs))
            wrong = error > max(2 * theirs_error, 2e-2)
        else:
            error, theirs_error = difference(ours["values"], theirs["values"]), 0.0
            wrong = error > 2e-2
        if wrong:
            print(f"{name}: WRONG: {error:.2e}, Triton {theirs_error:.2e}")
        if set(theirs["kernels"]) != set(ours["kernels"]):
            print(f"{name}: kernels differ: {sorted(theirs['kernels'])} and {sorted(ours['kernels'])}")
        written[name] = {"error": error, "triton": theirs["kernels"], "ttopt": ours["kernels"]}
        for kernel, before in theirs["kernels"].items():
            after = ours["kernels"].get(kernel)
            if after:
                ratios.append(before / after)
                print(f"{name:28s} {kernel[:60]:60s} {before:9.1f} us {after:9.1f} us {before / after:6.3f}")
    if out:
        with open(out, "w") as file:
            json.dump(written, file, indent=1)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} kernels, geometric mean {mean:.3f}, lowest {min(ratios):.3f}, {sum(r < 0.95 for r in ratios)} below 0.95")
