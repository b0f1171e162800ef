"""Times variants of the machine code of kernels of `unseen.py`, or of another file with cases, in one process, beside Triton's own.

    python bench/gpu/variants.py FOLDER [--cases NAME] [--only REGEX] [--shares N] [--repeats N] [--warps N] [--json FILE]

Needs a GPU, PyTorch and its Triton; not this project. FOLDER/CASE.KERNEL has the variants NAME.cubin of the kernel that
`kernels_of.py` calls so, and NAME.json with `shared`, the bytes of shared memory that a CTA of it takes. Each case is launched by Triton's
launcher with one variant after the other, the L2 overwritten in between, so often that each has its number of times: medians are
printed, with registers of a thread. A kernel of which a launch passes descriptors differs from Triton's by its arguments: leave it out.
"""

import argparse
import fcntl
import glob
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile


def loaded(folder, kernel):
    """Of each variant of a compiled kernel: name, function, what the launcher is told, and registers."""
    import torch
    from triton.runtime import driver

    found = [("triton", kernel.function, kernel.packed_metadata, kernel.n_regs)]
    for path in sorted(glob.glob(os.path.join(folder, "*.cubin"))):
        with open(path, "rb") as file:
            cubin = file.read()
        with open(path[: -len("cubin")] + "json") as file:
            shared = json.load(file)["shared"]
        load = driver.active.utils.load_binary
        _, function, registers, *_ = load(kernel.metadata.name, cubin, shared, torch.cuda.current_device())
        # Warps, CTAs, and shared memory.
        told = list(kernel.packed_metadata)
        told[2] = shared
        found.append((os.path.basename(path)[: -len(".cubin")], function, tuple(told), registers))
    return found


def timed(make, kernels, repeats, flush):
    """Microseconds and registers of each variant of `kernels`, which a case launches, or why there are none."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.manual_seed(0)
    function, args = make()
    torch.manual_seed(1)
    function(*args)
    torch.cuda.synchronize()
    most = max(len(variants) for _, variants in kernels.values())

    def choose(at):
        for kernel, variants in kernels.values():
            _, kernel.function, kernel.packed_metadata, _ = variants[min(at, len(variants) - 1)]

    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        for _ in range(repeats):
            for at in range(most):
                choose(at)
                flush.zero_()
                function(*args)
        torch.cuda.synchronize()
    choose(0)
    runs = {}
    for event in trace.events():
        runs.setdefault(event.name, []).append((event.time_range.start, event.device_time))
    results = {}
    for name, (kernel, variants) in kernels.items():
        symbol = kernel.metadata.name
        alike = sum(other.metadata.name == symbol for other, _ in kernels.values())
        times = [time for _, time in sorted(runs.get(symbol, []))]
        each, left = divmod(len(times), repeats * most)
        if not each or left or alike > 1:
            results[name] = {"failure": f"{len(times)} launches of {alike} kernels of that name"}
            continue
        place = lambda repeat, at: (repeat * most + at) * each
        median = lambda at: statistics.median(sum(times[place(r, at) : place(r, at) + each]) for r in range(repeats))
        results[name] = {variant[0]: [median(at), variant[3]] for at, variant in enumerate(variants)}
    return results


def child(options, share, shares, lock, out):
    with open(lock) as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        import torch
        from triton.runtime.jit import JITFunction

        from kernels_of import name_of
        from paired import vary

        if options.warps != 1:
            vary(options.warps, None)
        case, seen, plain = [None], {}, JITFunction._do_compile

        def compiled(self, *args):
            kernel = plain(self, *args)
            seen[name_of(self, case[0], seen)] = kernel
            return kernel

        JITFunction._do_compile = compiled
        there = set(os.listdir(options.folder))
        # Names of cases may have dots, and some kernels have a number behind theirs.
        parts = [name.split(".") for name in there]
        wanted = {".".join(words[:end]) for words in parts for end in range(1, len(words))}
        cases = [one for one in importlib.import_module(options.cases).cases() if one[0] in wanted and re.search(options.only, one[0])]
        results, ready = {}, []
        for case[0], make in cases[share::shares]:
            try:
                before = set(seen)
                torch.manual_seed(0)
                function, args = make()
                torch.manual_seed(1)
                function(*args)
                torch.cuda.synchronize()
                names = (set(seen) - before) & there
                ready.append((case[0], make, {name: (seen[name], loaded(f"{options.folder}/{name}", seen[name])) for name in names}))
                del function, args
            except Exception as failure:  # noqa: BLE001: one case that fails must not end the others
                results[case[0]] = {"failure": f"{type(failure).__name__}: {str(failure)[:200]}"}
            torch.cuda.empty_cache()
        fcntl.flock(file, fcntl.LOCK_UN)
        fcntl.flock(file, fcntl.LOCK_EX)
        flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
        for name, make, kernels in ready:
            try:
                results |= timed(make, kernels, options.repeats, flush) if kernels else {}
            except Exception as failure:  # noqa: BLE001
                results[name] = {"failure": f"{type(failure).__name__}: {str(failure)[:200]}"}
                if isinstance(failure, torch.AcceleratorError):
                    break
            torch.cuda.empty_cache()
        with open(out, "w") as file:
            json.dump(results, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--cases", default="unseen", help="the file with the cases (default %(default)s)")
    parser.add_argument("--only", default="", help="cases whose names match this expression")
    parser.add_argument("--shares", type=int, default=8, help="processes (default %(default)s)")
    parser.add_argument("--repeats", type=int, default=9, help="launches of each variant (default %(default)s)")
    parser.add_argument("--warps", type=float, default=1, help="times as many warps as a kernel's author gave it")
    parser.add_argument("--json", help="write the times here")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        share, lock, out = options.child
        return child(options, *map(int, share.split("/")), lock, out)
    with tempfile.TemporaryDirectory() as folder:
        lock = os.path.join(folder, "lock")
        open(lock, "w").close()
        running = []
        for share in range(options.shares):
            out = os.path.join(folder, f"{share}.json")
            command = [sys.executable, sys.argv[0], options.folder, "--cases", options.cases, "--only", options.only, "--repeats", str(options.repeats)]
            command += ["--warps", str(options.warps)]
            command += ["--child", f"{share}/{options.shares}", lock, out]
            cache = os.path.join(folder, f"cache{share}")
            running.append((subprocess.Popen(command, env=os.environ | {"TRITON_CACHE_DIR": cache}), out))
        results = {}
        for process, out in running:
            if process.wait():
                print(f"a process ended with {process.returncode}")
            elif os.path.exists(out):
                with open(out) as file:
                    results |= json.load(file)
    for name, times in sorted(results.items()):
        shown = [f"{variant} {time[0]:.1f} us ({time[1]})" for variant, time in times.items() if variant != "failure"]
        print(f"{name}: " + (times.get("failure") or ", ".join(shown)))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
