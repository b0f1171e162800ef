"""Our passes in the order in which Triton 3.9 runs its own (`make_ttir` and `make_ttgir` of its two backends).

    triton_order.py compare --ttopt TTOPT --corpus FOLDER [--target T ...] [--only REGEX] [--slack 1.02]
    triton_order.py write --ttopt TTOPT --corpus FOLDER --out FOLDER [--target T ...] [--only REGEX]

`compare` runs both orders, ours without and Triton's with the same passes for layouts three times over, on every module of the
corpus that a target can have, without software pipelines, and compares what `--tritongpu-explain-layouts` then says: the IR must
verify, and a function must take no more cycles of a CTA by the objective than `--slack` times those of our own order; fewer
conversions and more are counted. `write` writes NAME.TARGET.ttgir in Triton's order, with the software pipelines that the corpus asks for.

Passes that we have no counterpart of are named in docs/passes.md; where one pass of ours does the work of several of Triton's it
stands where the last of them does.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

TARGETS = ["cuda:80", "cuda:90", "hip:gfx942"]
# Modules that a process takes.
TOGETHER = 26


def ttir(target):
    """`make_ttir`; which descriptors become pointers is our own decision on GPUs with tensor maps."""
    rewrite = "triton-rewrite-tensor-descriptor-to-pointer"
    if target == "cuda:90":
        rewrite += "{target=cuda:90}"
    return [rewrite, "canonicalize", "triton-combine", "triton-reorder-broadcast", "cse", "symbol-dce", "triton-loop-unroll"]


def convert(target, warps, ctas):
    lanes = 64 if target.startswith("hip") else 32
    return [f"convert-triton-to-tritongpu{{target={target} num-warps={warps} threads-per-warp={lanes} num-ctas={ctas}}}"]


# Where shared memory would not suffice tensors stay in registers, and CTAs of a cluster write to no other one's: what Triton
# has no passes for, and what must follow all that make buffers.
ROOM = ["tritongpu-fit-shared-memory", "tritongpu-cluster-buffers"]


def triton(target, warps, ctas, stages):
    """Triton's order."""
    pipeline = [f"tritongpu-pipeline{{num-stages={stages}}}"] if stages > 1 else []
    layouts = "tritongpu-remove-layout-conversions"
    begin = ttir(target) + convert(target, warps, ctas)
    if target.startswith("hip"):
        return begin + [
            "tritongpu-coalesce", "tritongpu-F32DotTC{emu-tf32=false}", layouts, "tritongpu-optimize-thread-locality",
            "tritongpu-accelerate-matmul", layouts, "tritongpu-optimize-dot-operands", "canonicalize", "triton-licm",
            "canonicalize", *pipeline, "canonicalize", layouts, "tritongpu-reduce-data-duplication",
            "tritongpu-reorder-instructions", "canonicalize", "cse", "symbol-dce", *ROOM]
    maps = target == "cuda:90"
    return begin + [
        "tritongpu-coalesce", "tritongpu-F32DotTC{emu-tf32=true}", layouts, layouts, "tritongpu-optimize-thread-locality",
        "tritongpu-accelerate-matmul", layouts, "tritongpu-optimize-dot-operands",
        *(["triton-nvidia-optimize-descriptor-encoding"] if maps else []), "triton-loop-aware-cse", "canonicalize",
        "triton-licm", "canonicalize", "tritongpu-combine-tensor-select-and-if", *pipeline, "canonicalize",
        "triton-loop-aware-cse", "tritongpu-optimize-dot-operands", *(["triton-nvidia-tma-lowering"] if maps else []),
        layouts, "tritongpu-reduce-data-duplication", "tritongpu-reorder-instructions", "triton-loop-aware-cse",
        "symbol-dce", "sccp", "cse", "canonicalize", *ROOM]


def ours(target, warps, ctas):
    """Our order (`passes/src/pipeline/`), without software pipelines."""
    maps = target == "cuda:90"
    rewrite = "triton-rewrite-tensor-descriptor-to-pointer" + (f"{{target={target} num-ctas={ctas}}}" if maps else "")
    return [rewrite, "triton-combine", "triton-reorder-broadcast", "triton-loop-unroll", *convert(target, warps, ctas),
            "tritongpu-coalesce", f"tritongpu-F32DotTC{{emu-tf32={'false' if target.startswith('hip') else 'true'}}}",
            "tritongpu-accelerate-matmul", "tritongpu-remove-layout-conversions", "tritongpu-optimize-thread-locality",
            "tritongpu-optimize-dot-operands", "triton-licm", "tritongpu-combine-tensor-select-and-if", "triton-loop-aware-cse",
            "tritongpu-reduce-data-duplication",
            *(["triton-nvidia-optimize-descriptor-encoding", "triton-nvidia-tma-lowering"] if maps else []),
            "canonicalize", "cse", "tritongpu-remove-layout-conversions", "tritongpu-reorder-instructions"]


def text(passes):
    return f"builtin.module({','.join(passes)})"


def measured(ttopt, paths, passes):
    """Of each module cycles of all functions by the objective and the number of conversions; the error where there is one. One
    process takes all modules, which is started more slowly than it takes one; where it does not tell as much of each of them as it
    should, each has a process of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write("\n// -----\n".join(path.read_text() for path in paths))
        file.flush()
        done = subprocess.run([ttopt, file.name, "--split-input-file", "-o", "/dev/null",
                               f"--pass-pipeline={text(passes + ['tritongpu-explain-layouts{table=true}'])}"],
                              capture_output=True, text=True)
    # The line that counts conversions is behind all remarks on a module.
    *modules, _ = re.split(r"(?m)(?<=^conversions: )(?=\d+,)", done.stderr + "\n")
    count = re.findall(r"^conversions: (\d+),", done.stderr, re.M)
    cycles = [re.findall(r"remark: takes (\d+) cycles of a CTA by the objective", module) for module in modules]
    if done.returncode == 0 and len(count) == len(paths) and all(cycles):
        return [((sum(map(int, own)), int(conversions)), None) for own, conversions in zip(cycles, count)]
    if len(paths) > 1:
        return [measured(ttopt, [path], passes)[0] for path in paths]
    error = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[-300:])
    return [(None, error if done.returncode else "nothing was explained")]


def jobs(args):
    """Modules of the corpus with targets, and what they ask for."""
    for path in sorted(args.corpus.glob("*.ttir")):
        spec = json.loads(path.with_suffix(".json").read_text())
        for target in args.target or TARGETS:
            if re.search(args.only, path.stem):
                yield path, target, spec.get("num_warps", 4), spec.get("num_ctas", 1), spec.get("num_stages", 3)


def write(args):
    args.out.mkdir(parents=True, exist_ok=True)

    def run(job):
        path, target, warps, ctas, stages = job
        out = args.out / f"{path.stem}.{target.replace(':', '_')}.ttgir"
        done = subprocess.run([args.ttopt, path, f"--pass-pipeline={text(triton(target, warps, ctas, stages))}", "-o", out],
                              capture_output=True, text=True)
        return path.stem, target, done.returncode, done.stderr[-300:]

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        bad = [row for row in pool.map(run, jobs(args)) if row[2]]
    for name, target, _, said in bad:
        print(f"{target} {name}: fails in Triton's order: {said}")
    return 1 if bad else 0


def compare(args):
    groups = {}
    for path, target, warps, ctas, _ in jobs(args):
        groups.setdefault((target, warps, ctas), []).append(path)
    parts = [(key, paths[first:first + TOGETHER]) for key, paths in groups.items() for first in range(0, len(paths), TOGETHER)]

    def run(part):
        (target, warps, ctas), paths = part
        own = measured(args.ttopt, paths, ours(target, warps, ctas))
        theirs = measured(args.ttopt, paths, triton(target, warps, ctas, 1))
        # What our order refuses is only counted.
        return [(path.stem, target, one, None if refused else other, None if refused else error)
                for path, (one, refused), (other, error) in zip(paths, own, theirs)]

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        rows = [row for part in pool.map(run, parts) for row in part]
    bad = refused = 0
    totals = {}
    for name, target, own, other, error in rows:
        if own is None:
            refused += 1
        elif error:
            bad += 1
            print(f"{target} {name}: fails in Triton's order: {error}")
        else:
            total = totals.setdefault(target, [0, 0, 0, 0, 0])
            for i, value in enumerate((1, own[1], other[1], own[0], other[0])):
                total[i] += value
            if other[0] > args.slack * max(own[0], 1):
                bad += 1
                print(f"{target} {name}: {other[0]} cycles in Triton's order, {own[0]} in ours ({other[0] / max(own[0], 1):.3f}); "
                      f"conversions {other[1]} and {own[1]}")
            elif args.verbose and other != own:
                print(f"{target} {name}: {other} in Triton's order, {own} in ours")
    for target, (count, own, other, cycles, others) in totals.items():
        print(f"{target}: {count} modules, conversions {other} in Triton's order and {own} in ours, cycles {others / max(cycles, 1):.4f} of ours")
    print(f"{len(rows) - refused - bad} modules no worse in Triton's order, {bad} worse, {refused} that our order refuses")
    return 1 if bad or not rows else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("compare", "write"):
        command = commands.add_parser(name)
        command.add_argument("--ttopt", required=True)
        command.add_argument("--corpus", type=pathlib.Path, required=True)
        command.add_argument("--target", action="append", choices=TARGETS)
        command.add_argument("--only", default="")
        command.add_argument("--jobs", type=int, default=2)
        if name == "compare":
            command.add_argument("--slack", type=float, default=1.005)
            command.add_argument("--verbose", action="store_true")
        else:
            command.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    return write(args) if args.command == "write" else compare(args)


if __name__ == "__main__":
    sys.exit(main())
