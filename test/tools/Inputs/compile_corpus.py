"""Compiles the corpus to PTX, checks the accesses that it makes, and has it assembled.

Usage: compile_corpus.py TTC PTXAS CORPUS FOLDER TARGET...
The widest global loads and stores of kernels whose pointers are aligned move 128 bits.
"""

import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

# Dependent launches begin with sm_90.
NEITHER = {("pdl_scale", "cuda:80")}
# Their pointers are aligned, and a thread has 128 bits of consecutive elements.
WIDE = """
axpby_f64 gelu_silu narrow_copy_f16_w2 narrow_copy_f16_w4 narrow_copy_f16_w8 narrow_copy_f16_w16
narrow_copy_f8e4m3_w2 narrow_copy_i8_w4 outer_broadcast rope_fwd saxpy_bf16 swiglu vector_add
""".split()


def access_bits(ptx, opcode):
    """The widths in bits of the global accesses of a kernel."""
    widths = set()
    for parts in (word.split(".") for word in ptx.split()):
        if parts[0] == opcode and "global" in parts:
            vectors = [int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)]
            widths.add(int(parts[-1][1:]) * (vectors or [1])[0])
    return widths


def compile_one(job):
    ttc, ptxas, path, folder, target = job
    launch = json.loads(path.with_suffix(".json").read_text())
    name = f"{path.stem} for {target}"
    ptx = folder / f"{path.stem}.{target.replace(':', '_')}.ptx"
    warps, ctas = str(launch["num_warps"]), str(launch.get("num_ctas", 1))
    command = [ttc, path, "--target", target, "--num-warps", warps, "--num-ctas", ctas, "--emit", "ptx", "-o", ptx]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        return f"{name}: exit code {run.returncode}: {run.stderr}"
    arch = re.search(r"^\.target (\w+)", ptx.read_text(), re.MULTILINE)[1]
    run = subprocess.run([ptxas, f"-arch={arch}", ptx, "-o", ptx.with_suffix(".cubin")], capture_output=True, text=True)
    if run.returncode:
        return f"{name}: ptxas: {run.stderr}"
    if path.stem in WIDE:
        for opcode in ["ld", "st"]:
            widest = max(access_bits(ptx.read_text(), opcode), default=0)
            if widest != 128:
                return f"{name}: the widest {opcode}.global moves {widest} bits"
    return None


def main():
    ttc, ptxas, corpus, folder, *targets = sys.argv[1:]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = sorted(pathlib.Path(corpus).glob("*.ttir"))
    both = [(path, target) for path in paths for target in targets if (path.stem, target) not in NEITHER]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [(ttc, ptxas, path, folder, target) for path, target in both]
        errors = [error for error in pool.map(compile_one, jobs) if error]
    for error in errors:
        print("error:", error)
    print(f"{len(paths)} kernels, {len(jobs)} assembled, {len(errors)} errors")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
