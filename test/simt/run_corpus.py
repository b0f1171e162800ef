"""Compiles the corpus with our compiler, runs it on the simulator with all checks on, and checks the results.

    run_corpus.py --ttsim TTSIM --data DIR --targets cuda:90,cuda:80 [--num-ctas N] [--num-stages N] [--small-tensors]
                  [--covering] [--modules DIR] [--stages DIR] [--jobs N] [NAME ...]

With --modules kernels are NAME.TARGET.ttgir in that folder, with _ for :, instead of the corpus' TTIR;
with --stages they are TARGET/NAME.llir, the LLVM IR that stages.py left there. A kernel that the compiler refuses is only counted, unless it is in REQUIRED or named; whatever compiles must run
without a finding and give what reference.py expects. Needs numpy and ml_dtypes.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "corpus"))
import numpy as np
import reference

# What must compile.
REQUIRED = """
assert_in_range attn_bwd_delta attn_bwd_dkdv attn_bwd_dkdv_causal attn_bwd_dq axis_hints axpby_f64 batched_dot_3d
branch_tensor cache_hints call_noinline cast_fp8 cast_numeric cat_tiles chained_dots col_sum collatz_steps
complex_mul conv2d_nhwc copy_strided_2d cross_entropy_fwd cumprod_reverse cumsum_axis0 cumsum_axis1 dot_16x16x16
dot_16x64x32 dot_32x8x16 dropout early_return flash_attn_fwd flash_attn_fwd_causal flash_attn_fwd_causal_d128
flip_rows gather_axis0 gather_axis1 gather_rows gcd_scalar gelu_silu grid_stride_scale half_arith histogram_i32
inline_ptx int_ops int_reduce interleave_rows layer_norm_fwd libdevice_math linear_recurrence logsumexp_rows
map_scalar_fn masked_fill math_unary matmul_bf16 matmul_bias_relu matmul_desc matmul_desc_persistent matmul_desc_ws
matmul_f16 matmul_f16_acc16 matmul_f32_ieee matmul_f32_tf32x3 matmul_f64 matmul_f8e4m3 matmul_f8e5m2 matmul_grouped
matmul_i8 matmul_nt matmul_persistent matmul_split_k matmul_tf32 matmul_tn matmul_w4a16 matmul_w8a16 mxfp4_matmul
mxfp8_matmul narrow_copy_f16_w1 narrow_copy_f16_w16 narrow_copy_f16_w2 narrow_copy_f16_w4 narrow_copy_f16_w8
narrow_copy_f8e4m3_w2 narrow_copy_i8_w1 narrow_copy_i8_w16 narrow_copy_i8_w2 narrow_copy_i8_w4 narrow_copy_i8_w8
outer_broadcast pdl_scale pointer_cast print_values random_fill range_hints reshape_permute rms_norm_fwd rope_fwd
row_argmax row_max row_sum saxpy_bf16 scalar_split scatter_rows segment_sum softmax_rows sort_rows stencil_static
swiglu tile_argmin topk_rows vector_add welford_var where_clamp
""".split()


def run(ttsim, name, doc, target, folder, num_ctas, num_stages, modules, stages):
    """(state, explanation) of one kernel for one target."""
    for n in doc["outputs"]:
        (folder / f"{n}.out.bin").unlink(missing_ok=True)
    case = os.path.join(reference.HERE, name + ".json")
    command = [ttsim, "--case", case, "--data", str(folder), "--target", target, "--quiet", "--jobs", "1"]
    if modules:
        command.append(str(modules / f"{name}.{target.replace(':', '_')}.ttgir"))
    if stages:
        module = stages / target.replace(":", "_") / f"{name}.llir"
        shared = json.loads(module.with_suffix(".json").read_text())["shared"]
        command += ["--llvm", str(module), "--shared", str(shared)]
    if num_ctas:
        command += ["--num-ctas", str(num_ctas)]
    if num_stages:
        command += ["--num-stages", str(num_stages)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    except subprocess.TimeoutExpired:
        return "bad", "takes longer than 200 s"
    said = done.stderr.strip()
    if done.returncode:
        return ("refused" if "ttsim: error: cannot compile" in said else "bad"), said
    outputs = {n: (folder / f"{n}.out.bin").read_bytes() for n in doc["outputs"]}
    good, lines = reference.check(name, outputs)
    return ("good", "") if good else ("bad", "\n".join(lines))


def mark_small(text):
    """`text`, a module, with the mark of small tensors, as Triton's front end gives it to AMD GPUs, on each pointer
    argument of its kernel."""

    def mark(signature):
        marked = re.sub(r"(!tt\.ptr<[^>]*>) \{", r"\1 {tt.pointer_range = 32 : i32, ", signature[0])
        return re.sub(r"(!tt\.ptr<[^>]*>)(?! \{)(?=[,)])", r"\1 {tt.pointer_range = 32 : i32}", marked)

    return re.sub(r"tt\.func public @[^\n]*", mark, text, count=1)


def covering(names):
    """Those of the kernels, by turns the one with most that is new, which together have every operation, type and attribute."""
    words = {}
    for name in names:
        text = pathlib.Path(reference.HERE, name + ".ttir").read_text()
        # Names of values, functions and locations are none of them.
        words[name] = set(re.findall(r"[#!]?[a-zA-Z][\w.]*", re.sub(r"[%@][\w.$]+|loc\([^)]*\)|\"[^\"]*\"", "", text)))
    left, chosen = set().union(*words.values()), []
    while left:
        chosen.append(max(names, key=lambda name: len(words[name] & left)))
        left -= words[chosen[-1]]
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ttsim", default="ttsim")
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--targets", default="cuda:90,cuda:80")
    parser.add_argument("--num-ctas", type=int, help="blocks that work on a program, instead of the corpus' number")
    parser.add_argument("--num-stages", type=int, help="stages of software pipelines, instead of the corpus' number")
    parser.add_argument("--modules", type=pathlib.Path, help="folder of TTGIR to run instead of the corpus")
    parser.add_argument("--stages", type=pathlib.Path, help="folder of LLVM IR to run instead of the corpus")
    parser.add_argument("--small-tensors", action="store_true", help="say that all tensors have less than 2 GiB")
    parser.add_argument("--covering", action="store_true", help="only kernels that have every operation, type and attribute of the corpus")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    targets = args.targets.split(",")
    if args.small_tensors:
        args.modules = args.data / "small"
        args.modules.mkdir(parents=True, exist_ok=True)
        for path in pathlib.Path(reference.HERE).glob("*.ttir"):
            for target in targets:
                module = args.modules / f"{path.stem}.{target.replace(':', '_')}.ttgir"
                module.write_text(mark_small(path.read_text()))

    def kernel(name):
        doc = reference.load(name)
        folder = args.data / name
        folder.mkdir(parents=True, exist_ok=True)
        for n, v in reference.make_inputs(doc).items():
            if isinstance(v, np.ndarray):
                v.tofile(folder / f"{n}.bin")
        results = []
        for target in targets:
            # What only Hopper can do is listed for it alone.
            # What AMD GPUs can do is listed for one of them.
            vendors = {other.split(":")[0] for other in doc["targets"]}
            if target in doc["targets"] or (target.split(":")[0] in vendors and len(doc["targets"]) > 1):
                start = time.monotonic()
                outcome = run(args.ttsim, name, doc, target, folder, args.num_ctas, args.num_stages, args.modules, args.stages)
                results.append((name, target, *outcome, time.monotonic() - start))
        return results

    names = args.names or reference.names()
    if args.covering:
        names = covering(names)
    needed = set(args.names or REQUIRED)
    count = {"good": 0, "refused": 0, "bad": 0}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for results in pool.map(kernel, names):
            for name, target, state, why, seconds in results:
                if state == "refused" and name in needed:
                    state = "bad"
                count[state] += 1
                if state == "bad":
                    print(f"FAIL {name} for {target}, {seconds:.1f} s:\n{why}", flush=True)
    print(f"{count['good']} right, {count['refused']} not compiled yet, {count['bad']} wrong")
    return 1 if count["bad"] or not count["good"] else 0


if __name__ == "__main__":
    sys.exit(main())
