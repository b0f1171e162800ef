#!/usr/bin/env python3
"""Compares the counts of ttsim with the counters of a GPU, as NVIDIA's ncu reads them.

    ncu.py prepare DIR --ttc TTC --triton PYTHON [--capability 90]
        kernels for both: cubins and LLVM IR from Triton 3.9, PTX and LLVM IR from ttc, and inputs
    ncu.py launch DIR
        on the GPU: every kernel once, checked against the references. Under ncu:
        ncu --clock-control none --csv --page raw --metrics METRICS python3 ncu.py launch DIR > DIR/ncu.csv
    ncu.py metrics
        prints METRICS
    ncu.py table DIR --ttsim TTSIM
        the table of docs/simt.md, from DIR/ncu.csv and a simulation of the same kernels
    ncu.py classes DIR --ttsim TTSIM --nvdisasm NVDISASM
        executed instructions by class, of ttsim and of the machine code, for kernels without loops and calls

Needs numpy and ml_dtypes; launch needs bench/gpu/launch.py beside this file or in the repository.
"""
import argparse
import collections
import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE.parent / "corpus"

# Shared memory needs Triton's code; for what touches only global memory ours is as good.
TRITON = ("transpose_2d_f16 transpose_2d_f32 softmax_rows row_sum col_sum cumsum_axis0 cumsum_axis1 layer_norm_fwd "
          "matmul_f16 matmul_tf32 matmul_f32_ieee matmul_i8 dot_16x64x32 flash_attn_fwd sort_rows gather_axis0 "
          "histogram_i32 linear_recurrence reshape_permute row_argmax").split()
OURS = ("vector_add rope_fwd copy_strided_2d gather_rows scatter_rows narrow_copy_f16_w1 narrow_copy_f16_w16 "
        "saxpy_bf16 stencil_static swiglu outer_broadcast masked_fill").split()

# What is compared: a metric of ncu, and the simulator's name for it.
METRICS = {
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "global load sectors",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "global store sectors",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": "shared load wavefronts",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": "shared store wavefronts",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": "shared load conflicts",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum": "shared store conflicts",
    "smsp__inst_executed.sum": "instructions",
}

COMPILE = """
import json, pathlib, sys, triton
from triton.backends.compiler import GPUTarget
for ttir, options, out in json.loads(sys.argv[2]):
    k = triton.compile(ttir, target=GPUTarget("cuda", int(sys.argv[1]), 32), options=options)
    out = pathlib.Path(out)
    out.with_suffix(".cubin").write_bytes(k.asm["cubin"])
    out.with_suffix(".ll").write_text(k.asm["llir"])
    m = k.metadata
    json.dump({"name": m.name, "threads": 32 * m.num_warps, "shared": m.shared,
               "global_scratch_size": getattr(m, "global_scratch_size", 0)}, open(out.with_suffix(".meta"), "w"))
    print(out.name, flush=True)
"""


def run(command):
    subprocess.run([str(part) for part in command], check=True)


def flags(spec):
    return {key: spec[key] for key in ("num_warps", "num_stages")}


def compile_one(args, name, out):
    spec = flags(reference().load(name))
    base = [args.ttc, CORPUS / f"{name}.ttir", "--target", f"cuda:{args.capability}", "--num-warps",
            spec["num_warps"], "--num-stages", spec["num_stages"]]
    run(base + ["--emit", "llvmir", "-o", out.with_suffix(".ll"), "--metadata", out.with_suffix(".meta")])
    run(base + ["--emit", "ptx", "-o", out.with_suffix(".ptx")])
    print(out.name, flush=True)


def reference():
    sys.path.insert(0, str(CORPUS))
    import reference as module
    return module


def prepare(args):
    import numpy as np

    corpus = reference()
    args.dir.mkdir(parents=True, exist_ok=True)
    work = [(str(CORPUS / f"{n}.ttir"), flags(corpus.load(n)), str(args.dir / f"triton-{n}")) for n in TRITON]
    run([args.triton, "-c", COMPILE, args.capability, json.dumps(work)])
    for name in OURS:
        compile_one(args, name, args.dir / f"ttopt-{name}")
    cases = []
    for who, name in [("triton", n) for n in TRITON] + [("ttopt", n) for n in OURS]:
        spec = corpus.load(name)
        out = args.dir / f"{who}-{name}"
        image = out.with_suffix(".cubin" if who == "triton" else ".ptx")
        meta = json.loads(out.with_suffix(".meta").read_text())
        data = args.dir / name
        data.mkdir(exist_ok=True)
        for n, v in corpus.make_inputs(spec).items():
            if isinstance(v, np.ndarray):
                v.tofile(data / f"{n}.bin")
        for n, v in corpus.expected(name).items():
            v.tofile(data / f"{n}.expected.bin")
        arguments = [dict(a, init={"kind": "file", "path": f"{name}/{a['name']}.bin"}) if a["kind"] == "ptr" else a
                     for a in spec["args"]]
        cases.append({
            "name": out.name, "kernel": name, "image": image.name, "entry": meta["name"],
            "threads": meta["threads"], "shared": meta["shared"], "scratch": meta["global_scratch_size"],
            "grid": spec["grid"], "args": arguments, "outputs": spec["outputs"],
            "rtol": spec["rtol"], "atol": spec["atol"],
            "expect": {n: f"{name}/{n}.expected.bin" for n in spec["outputs"]},
        })
        print(out.name, flush=True)
    (args.dir / "manifest.json").write_text(json.dumps({"cases": cases}, indent=1))
    shutil.copy(HERE.parent.parent / "bench" / "gpu" / "launch.py", args.dir)
    shutil.copy(__file__, args.dir)


def launch(args):
    sys.path[:0] = [str(HERE), str(HERE.parent.parent / "bench" / "gpu")]
    import launch as gpu
    import numpy as np

    base = gpu.BASE = str(args.dir)
    cuda = gpu.Cuda()
    for case in json.loads((args.dir / "manifest.json").read_text())["cases"]:
        kernel = gpu.Launch(cuda, case, base)
        kernel.run()
        cuda("cuCtxSynchronize")
        for n, path in case["expect"].items():
            got = kernel.output(n)
            want = np.fromfile(args.dir / path, got.dtype).reshape(got.shape)
            good, note = gpu.close(got, want, case["rtol"], case["atol"])
            print(f"{'ok   ' if good else 'WRONG'} {case['name']} {n} {note}", file=sys.stderr)
        kernel.free()


def measured(path):
    """One {metric: value} per launch, in order."""
    lines = [line for line in path.read_text().splitlines() if line.startswith('"')]
    rows = [row for row in csv.DictReader(lines) if row.get("ID")]
    return [{m: int(float(row[m].replace(",", ""))) for m in METRICS if m in row} for row in rows]


# Classes of ttsim by the first part of a SASS opcode; whatever is not listed is integer arithmetic.
SASS = {
    "fp32": "FFMA FADD FMUL FSETP FMNMX FSEL FSET FCHK",
    "fp16": "HADD2 HMUL2 HFMA2 HSETP2 HMNMX2",
    "special-function": "MUFU",
    "convert": "I2F F2I F2F I2FP F2FP FRND",
    "move": "MOV UMOV CS2R S2R S2UR R2UR LDC ULDC SEL USEL R2P P2R",
    "branch": "BRA EXIT BSSY BSYNC NOP",
    "global-load": "LDG", "global-store": "STG", "shared-load": "LDS LDSM", "shared-store": "STS STSM",
    "async-copy": "LDGSTS LDGDEPBAR DEPBAR", "shuffle": "SHFL", "barrier": "BAR",
    "matrix": "HMMA IMMA HGMMA IGMMA QGMMA", "atomic": "ATOMG ATOMS RED",
}
CLASS = {op: name for name, ops in SASS.items() for op in ops.split()}


def simulate(args, case):
    report = args.dir / f"{case['name']}.report.json"
    run([args.ttsim, "--llvm", args.dir / f"{case['name']}.ll", "--case", CORPUS / f"{case['kernel']}.json", "--data",
         args.dir / case["kernel"], "--shared", case["shared"], "--quiet", "--report", report])
    return json.loads(report.read_text())["classes"]


def simulated(args, case):
    classes = simulate(args, case)

    def total(key, *names):
        return sum(classes[n][key] for n in names if n in classes)

    return {
        "global load sectors": total("global_sectors", "global-load", "async-copy"),
        "global store sectors": total("global_sectors", "global-store"),
        "shared load wavefronts": total("shared_wavefronts", "shared-load"),
        "shared store wavefronts": total("shared_wavefronts", "shared-store"),
        "shared load conflicts": total("bank_conflicts", "shared-load"),
        "shared store conflicts": total("bank_conflicts", "shared-store"),
        "instructions": total("instructions", *classes),
    }


def table(args):
    cases = json.loads((args.dir / "manifest.json").read_text())["cases"]
    rows = measured(args.dir / "ncu.csv")
    if len(rows) != len(cases):
        sys.exit(f"{len(rows)} launches in ncu.csv, {len(cases)} kernels in the manifest")
    names = list(METRICS.values())
    print("| kernel | " + " | ".join(names) + " |")
    print("|---" + "|---:" * len(names) + "|")
    for case, row in zip(cases, rows):
        ours = simulated(args, case)
        cells = []
        for metric, name in METRICS.items():
            real = row.get(metric)
            cells.append(f"{real}" if real == ours[name] else f"**{ours[name]}** / {real}")
        print(f"| {case['name']} | " + " | ".join(cells) + " |", flush=True)


def disassembled(nvdisasm, cubin):
    """Opcodes up to the end of the program, or None where control flow decides how often they run."""
    text = subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True, text=True).stdout
    ops = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\S+\s+)?([A-Z][A-Z0-9_]*)", text)
    # A kernel ends in a branch to itself, which is not executed.
    last = max((i for i, op in enumerate(ops) if op == "BRA"), default=len(ops))
    return None if {"BRA", "CALL"} & set(ops[:last]) else ops[:last]


def classes(args):
    cases = json.loads((args.dir / "manifest.json").read_text())["cases"]
    rows = measured(args.dir / "ncu.csv")
    print("| kernel | " + " | ".join([*SASS, "integer"]) + " |")
    print("|---" + "|---:" * (len(SASS) + 1) + "|")
    for case, row in zip(cases, rows):
        cubin = args.dir / case["image"]
        ops = disassembled(args.nvdisasm, cubin) if cubin.suffix == ".cubin" else None
        x, y, z = case["grid"]
        warps = x * y * z * case["threads"] // 32
        # What ncu counted must be what stands there, else some warp left early.
        if ops is None or row.get("smsp__inst_executed.sum") != len(ops) * warps:
            continue
        real = collections.Counter(CLASS.get(op, "integer") for op in ops)
        ours = simulate(args, case)
        pairs = [(ours.get(n, {}).get("instructions", 0), real[n] * warps) for n in [*SASS, "integer"]]
        cells = [f"{a}" if a == b else f"**{a}** / {b}" for a, b in pairs]
        print(f"| {case['name']} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["prepare", "launch", "metrics", "table", "classes"])
    parser.add_argument("dir", nargs="?", type=pathlib.Path, default=HERE)
    parser.add_argument("--ttc", default="ttc")
    parser.add_argument("--ttsim", default="ttsim")
    parser.add_argument("--triton", default=sys.executable, help="python with triton 3.9")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--capability", type=int, default=90)
    args = parser.parse_args()
    if args.verb == "metrics":
        print(",".join(METRICS))
    else:
        {"prepare": prepare, "launch": launch, "table": table, "classes": classes}[args.verb](args)


if __name__ == "__main__":
    main()
