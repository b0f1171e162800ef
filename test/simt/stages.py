"""The corpus, compiled once for each target with all stages kept, for every test that looks at one of them.

    stages.py compile --ttc TTC --corpus DIR --out DIR --targets TARGET,... [--emit STAGE]
    stages.py assemble --ptxas PTXAS --out DIR
    stages.py settled --ttc TTC --ttopt TTOPT --corpus DIR --out DIR

compile writes OUT/TARGET/KERNEL.ttgir, .llir, .ptx and .json (metadata), as far as the stage goes.
assemble gives the PTX to ptxas. The widest global loads and stores of kernels whose pointers are aligned move 128 bits.
settled demands that the layout engine changes nothing in any TTGIR when it runs again, and that compiling once more for
the first target gives the same to the byte.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# Dependent launches begin with sm_90.
NEITHER = {("pdl_scale", "cuda:80")}
# Their pointers are aligned, and a thread has 128 bits of consecutive elements.
WIDE = """
axpby_f64 gelu_silu narrow_copy_f16_w2 narrow_copy_f16_w4 narrow_copy_f16_w8 narrow_copy_f16_w16
narrow_copy_f8e4m3_w2 narrow_copy_i8_w4 outer_broadcast rope_fwd saxpy_bf16 swiglu vector_add
""".split()
ENGINE = "--tritongpu-remove-layout-conversions"


def run(*command):
    """What a command prints, and what it says where it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    return done.stdout, f"exit code {done.returncode}: {done.stderr}" if done.returncode else None


def folder(out, target):
    return out / target.replace(":", "_")


def compile_one(ttc, path, target, out, emit):
    """Compiles a kernel and keeps its stages; what went wrong."""
    launch = json.loads(path.with_suffix(".json").read_text())
    warps, ctas = launch["num_warps"], launch.get("num_ctas", 1)
    with tempfile.TemporaryDirectory() as dump:
        metadata = folder(out, target) / f"{path.stem}.json"
        _, error = run(ttc, path, "--target", target, "--num-warps", warps, "--num-ctas", ctas, "--emit", emit,
                       "--dump", dump, "--metadata", metadata, "-o", os.devnull)
        for stage in pathlib.Path(dump).iterdir():
            (folder(out, target) / (path.stem + stage.suffix)).write_bytes(stage.read_bytes())
    return error and f"{path.stem} for {target}: {error}"


def compile_all(ttc, corpus, out, targets, emit):
    jobs = [(ttc, path, target, out, emit) for target in targets for path in sorted(corpus.glob("*.ttir"))
            if (path.stem, target) not in NEITHER]
    for target in targets:
        folder(out, target).mkdir(parents=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return len(jobs), [error for error in pool.map(lambda job: compile_one(*job), jobs) if error]


def access_bits(ptx, opcode):
    """The widths in bits of the global accesses of a kernel."""
    widths = set()
    for parts in (word.split(".") for word in ptx.split()):
        if parts[0] == opcode and "global" in parts:
            vectors = [int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)]
            widths.add(int(parts[-1][1:]) * (vectors or [1])[0])
    return widths


def assemble_one(ptxas, path):
    ptx = path.read_text()
    name = f"{path.stem} in {path.parent.name}"
    arch = re.search(r"^\.target (\w+)", ptx, re.MULTILINE)[1]
    _, error = run(ptxas, f"-arch={arch}", path, "-o", path.with_suffix(".cubin"))
    if error:
        return f"{name}: ptxas: {error}"
    for opcode in ["ld", "st"] if path.stem in WIDE else []:
        widest = max(access_bits(ptx, opcode), default=0)
        if widest != 128:
            return f"{name}: the widest {opcode}.global moves {widest} bits"
    return None


def assemble_all(ptxas, out):
    paths = sorted(out.glob("*/*.ptx"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return len(paths), [error for error in pool.map(lambda path: assemble_one(ptxas, path), paths) if error]


def changed(ttopt, modules):
    """The first line that the engine changes in text of several modules, as it was and as it is then."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(modules)
        file.flush()
        (before, _), (after, error) = (run(ttopt, file.name, "-split-input-file", *p) for p in ([], [ENGINE]))
    lines = zip(before.splitlines() + ["the end"], after.splitlines() + ["the end"])
    return error or next((f"{a}\n{b}" for a, b in lines if a != b), None)


def settled(ttc, ttopt, corpus, out):
    errors, targets = [], sorted(path for path in out.iterdir() if path.is_dir())
    modules = {target: sorted(target.glob("*.ttgir")) for target in targets}
    for target, paths in modules.items():
        if change := changed(ttopt, "\n// -----\n".join(path.read_text() for path in paths)):
            errors.append(f"the engine changes its own work in {target.name}:\n{change}")
    first = targets[0]
    with tempfile.TemporaryDirectory() as again:
        _, failed = compile_all(ttc, corpus, pathlib.Path(again), [first.name.replace("_", ":")], "ttgir")
        errors += failed
        for path in modules[first]:
            other = pathlib.Path(again) / first.name / path.name
            if not other.exists() or other.read_bytes() != path.read_bytes():
                errors.append(f"two runs differ: {path.stem} in {first.name}")
    return sum(map(len, modules.values())), errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["compile", "assemble", "settled"])
    parser.add_argument("--ttc")
    parser.add_argument("--ttopt")
    parser.add_argument("--ptxas")
    parser.add_argument("--corpus", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--emit", default="ptx")
    parser.add_argument("--targets", type=lambda names: names.split(","), default=[])
    args = parser.parse_args()
    count, errors = {
        "compile": lambda: compile_all(args.ttc, args.corpus, args.out, args.targets, args.emit),
        "assemble": lambda: assemble_all(args.ptxas, args.out),
        "settled": lambda: settled(args.ttc, args.ttopt, args.corpus, args.out),
    }[args.what]()
    for error in errors:
        print("error:", error)
    print(f"{count} kernels, {len(errors)} errors")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
