#!/usr/bin/env python3
"""Predicts times of kernels from the objective, and compares them with measured ones.

    python3 predicted.py MEASURED.json --ttc PATH/TO/ttc [--data FOLDER ...] [--gpu h200] [--table]

MEASURED.json is what `launch.py --json` wrote. A row is taken for our code where its name is KERNEL.ttopt, KERNEL.own, or
KERNEL.sN (N stages); rows of others are left out, and counted. KERNEL.ttir and KERNEL.json lie in one of the folders.

The model has no constant that was fitted to times. A program takes, by `ttc --estimate` for the arguments of the launch,

    cycles   of a multiprocessor: the objective's terms, or those of the matrix units where they are more, since these
             run beside the others;
    bytes    loaded from and stored to global memory; all programs together load no array more than once from device
             memory, as far as the L2 is believed;
    waits    for loads, one after another, of LATENCY cycles each; where loops with dots have S stages, 1/S of them.

A multiprocessor holds as many CTAs as registers (ptxas tells), threads and shared memory allow. It works off its share of
the programs in waves: a wave takes the cycles of all its CTAs, or, where that is more, those of a CTA that has it to itself
and its waits. The kernel takes the larger of that and of its bytes against the bandwidth of device memory, and LAUNCH.

Printed are Spearman's rank correlation of predicted and measured times; the regression of their logarithms, of which a slope
of one and an intercept of zero say that nothing is missing; and, where a kernel was timed in several variants, how many pairs
of variants that differ by more than 2 % are in the right order.
"""
import argparse
import concurrent.futures
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# Multiprocessors, cycles in a second, bytes in a second of device memory: data sheets, and the highest clock.
GPUS = {"h100": (132, 1.98e9, 3.35e12), "h200": (132, 1.98e9, 4.8e12), "a100": (108, 1.41e9, 2.04e12)}
# Cycles from a load that misses the L1 to its use while others load, as the scheduler has it (schedule/worth.rs). Unmeasured.
LATENCY = 1000.0
# Seconds between the events around an empty kernel. Unmeasured.
LAUNCH = 3e-6
# Of a multiprocessor: registers, threads, CTAs, bytes of shared memory, what the system takes of these for each CTA.
REGISTERS, THREADS, CTAS, SHARED, RESERVED = 65536, 2048, 32, 233472, 1024
PARTS = 4


def variant(name):
    """The number of stages that a row asks for, 0 for the kernel's own; None where it is no code of ours that we know."""
    suffix = name.rsplit(".", 1)[-1] if "." in name else ""
    if suffix in ("ttopt", "own"):
        return 0
    stages = re.fullmatch(r"s(\d+)", suffix)
    return int(stages[1]) if stages else None


def find(folders, kernel):
    return next((folder for folder in folders if (folder / f"{kernel}.ttir").exists()), None)


def compiled(args, folder, kernel, stages):
    """Spec, metadata and estimate of a kernel."""
    spec = json.loads((folder / f"{kernel}.json").read_text())
    launch = spec.get("bench", spec)
    with tempfile.TemporaryDirectory() as out:
        paths = [pathlib.Path(out) / name for name in ("image", "meta.json", "estimate.json")]
        given = json.dumps({"grid": launch["grid"], "args": [{"value": arg.get("value")} for arg in launch["args"]]})
        command = [args.ttc, folder / f"{kernel}.ttir", "--target", args.target, "--emit", "cubin", "--num-warps",
                   spec["num_warps"], "--num-stages", stages or spec["num_stages"], "--num-ctas", spec.get("num_ctas", 1),
                   "-o", paths[0], "--metadata", paths[1], "--estimate", paths[2], "--launch", given]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode:
            return None
        return spec, json.loads(paths[1].read_text()), json.loads(paths[2].read_text())


def width(dtype):
    """Bytes of an element."""
    bits = re.search(r"\d+", dtype.replace("fp", "f"))
    return max(int(bits[0]) // 8, 1) if bits else 4


def array_bytes(args, names=None):
    pointers = [arg for arg in args if arg.get("shape") and (names is None or arg["name"] in names)]
    return sum(math.prod(arg["shape"]) * width(arg["dtype"]) for arg in pointers)


def ctas(meta):
    """CTAs that a multiprocessor holds."""
    threads, registers = meta["threads"], meta["resources"]["registers"]
    of_warp = -(-registers * 32 // 256) * 256
    return max(1, min(REGISTERS // (of_warp * threads // 32), THREADS // threads, CTAS,
                      SHARED // (meta["shared"] + RESERVED)))


def predict(spec, meta, estimate, stages, gpu):
    """Seconds, and what bounds them."""
    multiprocessors, clock, bandwidth = gpu
    launch = spec.get("bench", spec)
    programs = math.prod(launch["grid"])
    stages = stages or spec["num_stages"]
    terms = sum(estimate["cycles"].values())
    cycles = max(terms, estimate["dots"])
    waits = estimate["waits"] * LATENCY / (stages if estimate["dots"] > 0 else 1)
    alone = max(cycles, terms * PARTS / (meta["threads"] / 32)) + waits
    held = ctas(meta)
    share = -(-programs // multiprocessors)
    full, rest = divmod(share, held)
    wave = lambda count: max(count * cycles, alone) if count else 0.0
    work = (full * wave(held) + wave(rest)) / clock
    loaded = min(programs * estimate["loaded"], array_bytes(launch["args"]) or math.inf)
    stored = min(programs * estimate["stored"], array_bytes(launch["args"], spec["outputs"]) or math.inf)
    memory = (loaded + stored) / bandwidth
    return LAUNCH + max(work, memory), "memory" if memory >= work else "work" if held * cycles >= alone else "waits"


def ranks(values):
    """Ranks, equal values sharing theirs."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    ranked, start = [0.0] * len(values), 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for i in order[start:end]:
            ranked[i] = (start + end - 1) / 2
        start = end
    return ranked


def correlation(xs, ys):
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    sx, sy = sum((x - mx) ** 2 for x in xs), sum((y - my) ** 2 for y in ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / math.sqrt(sx * sy) if sx and sy else math.nan


def regression(pairs):
    """Spearman's correlation; slope, intercept and R squared of log(measured) over log(predicted); spread of their ratio."""
    xs, ys = [math.log(p) for p, _ in pairs], [math.log(m) for _, m in pairs]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs)
    residuals = [y - x for x, y in zip(xs, ys)]
    mean = sum(residuals) / len(residuals)
    return {"spearman": correlation(ranks(xs), ranks(ys)), "slope": slope, "intercept": my - slope * mx,
            "r2": correlation(xs, ys) ** 2, "factor": math.exp(mean),
            "spread": math.exp(math.sqrt(sum((r - mean) ** 2 for r in residuals) / len(residuals)))}


def say(what, pairs):
    if len(pairs) < 3:
        return
    r = regression(pairs)
    print(f"{what}: {len(pairs)} kernels, Spearman {r['spearman']:.3f}; log(measured) = {r['slope']:.2f} log(predicted) "
          f"{r['intercept']:+.2f}, R² {r['r2']:.3f}; measured over predicted {r['factor']:.2f} in the geometric mean, "
          f"spread by a factor of {r['spread']:.2f}")


def within(groups):
    """How many pairs of variants of one kernel are ordered as measured, of those that differ by more than 2 %."""
    right = pairs = tied = 0
    for rows in groups.values():
        for n, (p, m) in enumerate(rows):
            for q, o in rows[:n]:
                if max(m, o) / min(m, o) > 1.02:
                    pairs += 1
                    tied += abs(math.log(p / q)) < 1e-9
                    right += (p - q) * (m - o) > 0
    return right, pairs, tied


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", type=pathlib.Path)
    parser.add_argument("--ttc", required=True)
    parser.add_argument("--data", type=pathlib.Path, action="append",
                        help="folder of kernels with their .json; repeat for more (the corpus and bench/kernels)")
    parser.add_argument("--gpu", choices=sorted(GPUS), default="h200")
    parser.add_argument("--target", default="cuda:90")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--table", action="store_true", help="print every kernel")
    args = parser.parse_args()
    folders = args.data or [ROOT / "test" / "corpus", HERE.parent / "kernels"]
    rows, others = [], 0
    for row in json.loads(args.measured.read_text()):
        stages = variant(row["name"])
        kernel = row["name"].rsplit(".", 1)[0]
        folder = find(folders, kernel)
        if stages is None or folder is None or not row.get("us"):
            others += 1
            continue
        rows.append((kernel, stages, row["us"] * 1e-6, folder))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        made = list(pool.map(lambda row: compiled(args, row[3], row[0], row[1]), rows))
    predicted, groups, failed = [], {}, []
    for (kernel, stages, measured, folder), found in zip(rows, made):
        if found is None:
            failed.append(kernel)
            continue
        time, bound = predict(*found, stages, GPUS[args.gpu])
        predicted.append((kernel, stages, time, measured, bound, folder.name))
        groups.setdefault(kernel, []).append((time, measured))
    if not predicted:
        sys.exit("no row of MEASURED.json is code of ours for a kernel in the folders")
    if args.table:
        for kernel, stages, time, measured, bound, folder in sorted(predicted, key=lambda row: row[3] / row[2]):
            name = kernel + (f" ({stages} stages)" if stages else "")
            print(f"{name:40} {time * 1e6:10.1f} us predicted {measured * 1e6:10.1f} us measured  {measured / time:6.2f}  {bound}")
    own = [row for row in predicted if row[1] == 0]
    pairs = lambda rows: [(row[2], row[3]) for row in rows]
    say("all kernels", pairs(own))
    for folder in dict.fromkeys(row[5] for row in own):
        say(folder, pairs([row for row in own if row[5] == folder]))
    for bound in ("memory", "work", "waits"):
        say(f"predicted to be bound by {bound}", pairs([row for row in own if row[4] == bound]))
    right, count, tied = within(groups)
    if count:
        print(f"variants of one kernel: {right} of {count} pairs in the measured order, {tied} predicted alike")
    print(f"{others} rows left out, {len(failed)} kernels not compiled{': ' + ', '.join(failed) if failed else ''}")


if __name__ == "__main__":
    main()
