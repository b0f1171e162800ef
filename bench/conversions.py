"""Layout conversions left in TTGIR, against Triton 3.9.

For each kernel of the corpus and cuda:80, cuda:90 and hip:gfx942: how many conversions there are, and
what they cost: the cycles of their plans, as our --tritongpu-explain-layouts computes them
for both compilers, times 16 for each loop around them. Both are taken at the same two points:
where Triton's software pipeliner would begin, and at the end of the passes to TTGIR without
that pipeliner. Between the two both compilers move conversions for the sake of registers.
Triton's fusion of nested loops is left out: it moves no conversion, but a fused loop would
count once where it stands for two. A conversion is a ttg.convert_layout, or a ttg.local_load of
what a ttg.local_alloc was made from.

TTOPT_BIN_DIR has our binaries; TTOPT_TRITON_PYTHON names a python with triton 3.9, without
which only our numbers are shown. Prints tables in Markdown and names the kernels that have
more conversions than Triton's, or costlier ones; exits with 1 when there is one before pipelining.

As a worker (`conversions.py --triton`, run by that python) it answers each line of
`FILE TARGET WARPS CTAS OUTPUT` on stdin by writing Triton's TTGIR to OUTPUT and, at the end,
to OUTPUT.end.
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
POINTS = ["before pipelining", "at the end"]
# The last of our passes before those that move conversions for registers.
LAST_PASS = "triton-loop-aware-cse"


def triton_ttgir(path, target, warps, ctas):
    """Triton's module before pipelining and at the end, and the seconds of its passes up to the former."""
    from triton._C.libtriton import amd, ir, nvidia, passes

    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    amd.load_dialects(context)
    module = ir.parse_mlir_module(path, context)
    module.context = context
    manager, rest = ir.pass_manager(context), ir.pass_manager(context)
    kind, chip = target.split(":")
    if kind == "cuda":
        nvidia_passes(manager, int(chip), warps, ctas, nvidia, passes)
        nvidia_rest(rest, int(chip), nvidia, passes)
    else:
        amd_passes(manager, chip, warps, ctas, amd, passes)
        amd_rest(rest, passes)
    start = time.perf_counter()
    manager.run(module, "ttgir")
    seconds = time.perf_counter() - start
    before = module.str_nodebug()
    rest.run(module, "ttgir_end")
    return before, module.str_nodebug(), seconds


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


def nvidia_rest(manager, capability, nvidia, passes):
    ttgpu, ttng, common = passes.ttgpuir, nvidia.passes.ttnvgpuir, passes.common
    common.add_canonicalizer(manager)
    passes.ttir.add_loop_aware_cse(manager)
    ttgpu.add_optimize_dot_operands(manager, True)
    if capability >= 90:
        ttng.add_tma_lowering(manager)
    ttgpu.add_remove_layout_conversions(manager)
    ttgpu.add_reduce_data_duplication(manager)
    ttgpu.add_reorder_instructions(manager)
    passes.ttir.add_loop_aware_cse(manager)
    common.add_symbol_dce(manager)
    common.add_sccp(manager)
    common.add_cse(manager)
    common.add_canonicalizer(manager)


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


def amd_rest(manager, passes):
    passes.common.add_canonicalizer(manager)
    passes.ttgpuir.add_remove_layout_conversions(manager)
    passes.ttgpuir.add_reduce_data_duplication(manager)
    passes.common.add_canonicalizer(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)


def worker():
    for line in sys.stdin:
        path, target, warps, ctas, output = line.split()
        before, end, seconds = triton_ttgir(path, target, int(warps), int(ctas))
        pathlib.Path(output).write_text(before)
        pathlib.Path(f"{output}.end").write_text(end)
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
    command = [binaries / "ttc", path, "--target", target, "--emit", "ttgir", "-o", f"{output}.end", "--print-after", LAST_PASS]
    command += ["--num-warps", launch["num_warps"], "--num-stages", 1, "--num-ctas", launch["num_ctas"]]
    output.write_text(run(command).stderr)


def compare(binaries, triton, target, path):
    """Per point the number and cycles of our conversions and of Triton's, zero where there is none."""
    launch = json.loads(path.with_suffix(".json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / f"{path.stem}.mlir"
        outputs = [output, f"{output}.end"]
        compile_ours(binaries, path, target, launch, output)
        mine = [measure(binaries, file) for file in outputs]
        if not triton:
            return [pair + (0, 0.0) for pair in mine]
        triton.compile(path, target, launch, output)
        return [pair + measure(binaries, file) for pair, file in zip(mine, outputs)]


def cells(numbers):
    return " | ".join(f"{number:.0f}" for number in numbers)


def main():
    binaries = pathlib.Path(os.environ.get("TTOPT_BIN_DIR", ROOT / "target" / "release"))
    python = os.environ.get("TTOPT_TRITON_PYTHON")
    triton = Triton(python) if python else None
    worse = {name: [] for name in POINTS}
    for target in TARGETS:
        print(f"## {target}\n\n| kernel |" + " ours | cycles | Triton | cycles |" * len(POINTS))
        print("| --- |" + " --- |" * 4 * len(POINTS))
        totals, equal = [0] * 4 * len(POINTS), 0
        for path in sorted(CORPUS.glob("*.ttir")):
            points = compare(binaries, triton, target, path)
            flat = [number for point in points for number in point]
            totals = [total + number for total, number in zip(totals, flat)]
            for name, (number, cycles, others, their_cycles) in zip(POINTS, points):
                if triton and (number > others or cycles > their_cycles):
                    worse[name].append(f"{path.stem} ({target})")
            if all(point[:2] == point[2:] for point in points):
                equal += 1
            else:
                print(f"| {path.stem} | {cells(flat)} |", flush=True)
        print(f"| all | {cells(totals)} |\n")
        if triton:
            print(f"In {equal} more kernels both have the same conversions at the same cost, or none.\n")
    print(f"The first four columns are {POINTS[0]}, the others {POINTS[1]}.")
    for name, kernels in worse.items():
        if triton:
            print(f"Worse than Triton {name}: {', '.join(kernels) or 'none'}.")
    sys.exit(bool(worse[POINTS[0]]))


if __name__ == "__main__":
    worker() if sys.argv[1:2] == ["--triton"] else main()
