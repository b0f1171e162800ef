"""Layout conversions left in TTGIR, against Triton 3.9.

For each kernel of the corpus and cuda:80, cuda:90 and hip:gfx942: how many conversions there are, and
what they cost: the cycles of their plans, as our --tritongpu-explain-layouts computes them
for both compilers, times 16 for each loop around them. Triton's TTGIR is taken where its
software pipeliner would begin, without its fusion of nested loops: that moves no conversion,
but a fused loop would count once where it stands for two. A conversion is a ttg.convert_layout, or a ttg.local_load of
what a ttg.local_alloc was made from.

TTOPT_BIN_DIR has our binaries; TTOPT_TRITON_PYTHON names a python with triton 3.9, without
which only our numbers are shown. Prints a table in Markdown; exits with 1 when a kernel has
more conversions than Triton's, or costlier ones.

As a worker (`conversions.py --triton`, run by that python) it answers each line of
`FILE TARGET WARPS CTAS OUTPUT` on stdin by writing Triton's TTGIR.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / "test" / "corpus"
TARGETS = ["cuda:80", "cuda:90", "hip:gfx942"]


def triton_ttgir(path, target, warps, ctas):
    """Triton's module before pipelining, and the seconds its passes took."""
    from triton._C.libtriton import amd, ir, nvidia, passes

    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    amd.load_dialects(context)
    module = ir.parse_mlir_module(path, context)
    module.context = context
    manager = ir.pass_manager(context)
    kind, chip = target.split(":")
    if kind == "cuda":
        nvidia_passes(manager, int(chip), warps, ctas, nvidia, passes)
    else:
        amd_passes(manager, chip, warps, ctas, amd, passes)
    start = time.perf_counter()
    manager.run(module, "ttgir")
    return module.str_nodebug(), time.perf_counter() - start


def nvidia_passes(manager, capability, warps, ctas, nvidia, passes):
    ttir, ttgpu, ttng, common = passes.ttir, passes.ttgpuir, nvidia.passes.ttnvgpuir, passes.common
    if capability < 90:
        ttir.add_rewrite_tensor_descriptor_to_pointer(manager)
    common.add_canonicalizer(manager)
    ttir.add_combine(manager)
    ttir.add_reorder_broadcast(manager)
    common.add_cse(manager)
    common.add_symbol_dce(manager)
    ttir.add_convert_to_ttgpuir(manager, f"cuda:{capability}", warps, 32, ctas)
    ttgpu.add_coalesce(manager)
    ttgpu.add_f32_dot_tc(manager, True)
    ttng.add_assign_cga_layouts(manager)
    ttgpu.add_remove_layout_conversions(manager)
    ttng.add_optimize_cta_locality(manager)
    ttgpu.add_remove_layout_conversions(manager)
    ttgpu.add_optimize_thread_locality(manager)
    ttgpu.add_accelerate_matmul(manager)
    ttgpu.add_remove_layout_conversions(manager)
    ttgpu.add_optimize_dot_operands(manager, True)
    ttng.add_optimize_descriptor_encoding(manager)
    ttir.add_loop_aware_cse(manager)
    common.add_canonicalizer(manager)
    ttir.add_triton_licm(manager)
    common.add_canonicalizer(manager)
    ttgpu.add_combine_tensor_select_and_if(manager)


def amd_passes(manager, chip, warps, ctas, amd, passes):
    ttir, ttgpu, own, common = passes.ttir, passes.ttgpuir, amd.passes.ttgpuir, passes.common
    ttir.add_rewrite_tensor_descriptor_to_pointer(manager)
    common.add_canonicalizer(manager)
    ttir.add_combine(manager)
    ttir.add_reorder_broadcast(manager)
    common.add_cse(manager)
    ttir.add_triton_licm(manager)
    common.add_symbol_dce(manager)
    ttir.add_convert_to_ttgpuir(manager, f"hip:{chip}", warps, 64, ctas)
    ttgpu.add_coalesce(manager)
    ttgpu.add_f32_dot_tc(manager, False)
    ttgpu.add_remove_layout_conversions(manager)
    ttgpu.add_optimize_thread_locality(manager)
    own.add_accelerate_matmul(manager, chip, 0, 1)
    ttgpu.add_remove_layout_conversions(manager)
    own.add_optimize_epilogue(manager)
    own.add_optimize_dot_operands(manager, chip)
    own.add_hoist_layout_conversions(manager)
    own.add_sink_layout_conversions(manager)
    common.add_canonicalizer(manager)
    ttir.add_triton_licm(manager)
    common.add_canonicalizer(manager)


def worker():
    for line in sys.stdin:
        path, target, warps, ctas, output = line.split()
        text, seconds = triton_ttgir(path, target, int(warps), int(ctas))
        pathlib.Path(output).write_text(text)
        print(seconds, flush=True)


class Triton:
    """Triton in a process of its own."""

    def __init__(self, python):
        command = [python, __file__, "--triton"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def compile(self, path, target, launch, output):
        request = f"{path} {target} {launch['num_warps']} {launch['num_ctas']} {output}"
        print(request, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"triton failed on {path}")
        return float(line)


def run(command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {result.stderr}")
    return result


def measure(binaries, path):
    """The number of conversions in a module of TTGIR, and their weighted cycles."""
    text = run([binaries / "ttopt", path, "--tritongpu-explain-layouts=table=true", "-o", os.devnull]).stderr
    found = re.search(r"^conversions: (\d+), weighted cycles: ([\d.]+)$", text, re.M)
    if not found:
        sys.exit(f"no totals for {path}:\n{text}")
    return int(found[1]), float(found[2])


def compile_ours(binaries, path, target, launch, output):
    command = [binaries / "ttc", path, "--target", target, "--emit", "ttgir", "-o", output]
    command += ["--num-warps", launch["num_warps"], "--num-stages", 1, "--num-ctas", launch["num_ctas"]]
    run(command)


def main():
    binaries = pathlib.Path(os.environ.get("TTOPT_BIN_DIR", ROOT / "target" / "release"))
    python = os.environ.get("TTOPT_TRITON_PYTHON")
    triton = Triton(python) if python else None
    worse = []
    for target in TARGETS:
        print(f"## {target}\n\n| kernel | ours | cycles | Triton | cycles |\n| --- | --- | --- | --- | --- |")
        totals, equal = [0, 0, 0, 0], 0
        for path in sorted(CORPUS.glob("*.ttir")):
            launch = json.loads(path.with_suffix(".json").read_text())
            with tempfile.TemporaryDirectory() as folder:
                output = pathlib.Path(folder) / f"{path.stem}.mlir"
                compile_ours(binaries, path, target, launch, output)
                mine = measure(binaries, output)
                other = (0, 0.0)
                if triton:
                    triton.compile(path, target, launch, output)
                    other = measure(binaries, output)
            totals = [sum(pair) for pair in zip(totals, mine + other)]
            if triton and (mine[0] > other[0] or mine[1] > other[1]):
                worse.append(f"{path.stem} ({target})")
            if mine == other:
                equal += 1
            else:
                row = f"{mine[0]} | {mine[1]:.0f} | " + (f"{other[0]} | {other[1]:.0f} |" if triton else "| |")
                print(f"| {path.stem} | {row}", flush=True)
        print(f"| all | {totals[0]} | {totals[1]:.0f} | {totals[2]} | {totals[3]:.0f} |\n")
        if triton:
            print(f"In {equal} more kernels both have the same conversions at the same cost, or none.\n")
    if worse:
        print(f"Worse than Triton: {', '.join(worse)}.")
    sys.exit(bool(worse))


if __name__ == "__main__":
    worker() if sys.argv[1:2] == ["--triton"] else main()
