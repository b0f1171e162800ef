"""Compiles the elementwise kernels of the corpus and checks the accesses they make.

Usage: compile_corpus.py TTC CORPUS STAGE TARGET...
For stage ptx, also: the widest global loads and stores of kernels whose pointers
are aligned move 128 bits.
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys

KERNELS = """
assert_in_range axis_hints axpby_f64 branch_tensor cache_hints cast_fp8 cast_numeric
copy_strided_2d dropout gather_rows gcd_scalar gelu_silu grid_stride_scale half_arith inline_ptx
int_ops libdevice_math map_scalar_fn masked_fill math_unary narrow_copy_* outer_broadcast
pointer_cast random_fill range_hints rope_fwd saxpy_bf16 scatter_rows stencil_static swiglu
vector_add where_clamp
""".split()
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
    ttc, path, stage, target = job
    run = subprocess.run([ttc, path, "--target", target, "--emit", stage], capture_output=True)
    if run.returncode:
        return f"{path.stem} for {target}: exit code {run.returncode}: {run.stderr.decode()}"
    if stage == "cubin":
        return None if run.stdout[:4] == b"\x7fELF" else f"{path.stem} for {target}: no ELF file"
    if path.stem in WIDE:
        text = run.stdout.decode()
        for opcode in ["ld", "st"]:
            widest = max(access_bits(text, opcode), default=0)
            if widest != 128:
                return f"{path.stem} for {target}: the widest {opcode}.global moves {widest} bits"
    return None


def main():
    ttc, corpus, stage, *targets = sys.argv[1:]
    paths = sorted({path for name in KERNELS for path in pathlib.Path(corpus).glob(f"{name}.ttir")})
    jobs = [(ttc, path, stage, target) for path in paths for target in targets]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        errors = [error for error in pool.map(compile_one, jobs) if error]
    for error in errors:
        print("error:", error)
    print(f"{len(paths)} kernels, {len(jobs)} compiled, {len(errors)} errors")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main())
