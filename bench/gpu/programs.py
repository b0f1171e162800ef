#!/usr/bin/env python3
"""Compares what random programs compute on a GPU, compiled in several ways, with the simulator and with Triton.

    TTOPT_PROGRAMS=300 TTOPT_PROGRAMS_DIR=DIR cargo test --release -p ttopt-tools --test random_numbers
        writes the programs, their PTX for three targets and numbers of warps and blocks, and what the simulator makes
        of them
    programs.py triton DIR
        compiles them with Triton, too (triton 3.9, no GPU)
    programs.py launch DIR [--jobs N]
        on the GPU: launches all and compares. Needs launch.py beside this file, and numpy.

Integers and floats must be equal. The simulator's exponentials are not rounded as a GPU's are, and Triton may fuse
other products with sums than ttopt, so there floats that differ by less than CLOSE of their size count as close.
"""
import argparse
import collections
import json
import multiprocessing
import pathlib
import sys

CLOSE = 1e-2
BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "i64": 8, "i8": 1}


def compile_with_triton(folder):
    import triton
    from triton.backends.compiler import GPUTarget

    cases, compiled = json.loads((folder / "cases.json").read_text())["cases"], {}
    for case in cases:
        seed = case["seed"]
        try:
            kernel = triton.compile(
                str(folder / f"{seed}.ttir"), target=GPUTarget("cuda", 90, 32), options={"num_warps": 4, "num_stages": 1}
            )
        except Exception as error:
            print(f"{seed}: {str(error).strip().splitlines()[-1:]}", file=sys.stderr)
            continue
        (folder / f"{seed}-triton.cubin").write_bytes(kernel.asm["cubin"])
        data = kernel.metadata
        compiled[seed] = {
            "image": f"{seed}-triton.cubin", "threads": 32 * data.num_warps, "blocks": 1, "shared": data.shared,
            "scratch": data.global_scratch_size,
        }
    (folder / "triton.json").write_text(json.dumps(compiled))
    print(f"Triton compiled {len(compiled)} of {len(cases)}")


def as_numbers(raw, element):
    import numpy as np

    if element == "bf16":
        return (np.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
    return np.frombuffer(raw, "<" + element[0] + str(BYTES[element]))


def compare(ours, other):
    """How two results agree, and where they do not."""
    import numpy as np

    verdict = ("equal", "")
    for element in BYTES:
        a, b = as_numbers(ours[element], element), as_numbers(other[element], element)
        is_float = element[0] != "i"
        differ = ~((a == b) | (np.isnan(a) & np.isnan(b))) if is_float else a != b
        if not differ.any():
            continue
        with np.errstate(all="ignore"):
            near = np.isclose(a.astype("f8"), b.astype("f8"), rtol=CLOSE, atol=0, equal_nan=True)
        far = differ & ~near if is_float else differ
        worst = far if far.any() else differ
        at = int(np.argmax(worst))
        what = f"o_{element}[{at}]: {a[at]} and {b[at]}, {int(worst.sum())} such"
        if far.any():
            return ("WRONG", what)
        verdict = ("close", what)
    return verdict


def launch_case(work):
    """What the first image computes against the simulator, the other ways, and Triton."""
    folder, sizes, case, others = work
    import launch

    launch.BASE = str(folder)
    results = []
    try:
        cuda = launch.Cuda()
        for image in case["images"] + others:
            pointers = [
                {"name": ty, "kind": "ptr", "dtype": "i8", "shape": [(folder / f"{ty}.bin").stat().st_size],
                 "init": {"kind": "file", "path": f"{ty}.bin"}} for ty in BYTES
            ]
            pointers += [
                {"name": f"o_{ty}", "kind": "ptr", "dtype": "i8", "shape": [sizes[ty] * BYTES[ty]]} for ty in BYTES
            ]
            kernel = {
                **image, "entry": "f", "grid": [image["blocks"], 1, 1],
                "args": pointers + [
                    {"name": "n", "kind": "scalar", "dtype": "i32", "value": case["n"]},
                    {"name": "c", "kind": "scalar", "dtype": "i1", "value": case["c"]},
                ],
            }
            live = launch.Launch(cuda, kernel, str(folder))
            live.run()
            cuda("cuCtxSynchronize")
            results.append({ty: live.output(f"o_{ty}").tobytes() for ty in BYTES})
            live.free()
    except RuntimeError as error:
        failed = (case["images"] + others)[len(results)]["image"]
        return case["seed"], [("launch", "WRONG", f"{failed}: {error}")]
    raw, simulated = (folder / f"{case['seed']}.bin").read_bytes(), {}
    for ty in BYTES:
        simulated[ty], raw = raw[: sizes[ty] * BYTES[ty]], raw[sizes[ty] * BYTES[ty] :]
    verdicts = [("simulator", *compare(results[0], simulated))]
    ways = len(case["images"])
    verdicts += [("other way", *compare(results[0], other)) for other in results[1:ways]]
    verdicts += [("Triton", *compare(results[0], other)) for other in results[ways:]]
    return case["seed"], verdicts


def launch_all(folder, jobs):
    data = json.loads((folder / "cases.json").read_text())
    triton = folder / "triton.json"
    triton = json.loads(triton.read_text()) if triton.exists() else {}
    work = []
    for case in data["cases"]:
        other = triton.get(str(case["seed"]))
        work.append((folder, data["outputs"], case, [other] if other else []))
    counts = collections.Counter()
    # A process for each, for a fault spoils its process.
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=1) as pool:
        for seed, verdicts in pool.imap(launch_case, work, chunksize=1):
            for against, verdict, what in verdicts:
                counts[against, verdict] += 1
                if verdict != "equal":
                    print(f"{seed}: {against}: {verdict}: {what}")
    for (against, verdict), count in sorted(counts.items()):
        print(f"{against}: {count} {verdict}")
    return 1 if any(verdict == "WRONG" for _, verdict in counts) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["triton", "launch"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=8)
    args = parser.parse_args()
    if args.what == "triton":
        return compile_with_triton(args.folder)
    return launch_all(args.folder, args.jobs)


if __name__ == "__main__":
    sys.exit(main())
