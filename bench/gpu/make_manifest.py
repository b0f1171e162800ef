#!/usr/bin/env python3
"""Compiles corpus kernels for a GPU and writes a folder that launch.py runs.

    python3 make_manifest.py --ttc PATH/TO/ttc --out DIR [NAME ...]

DIR gets PTX made by ttc, inputs and expected outputs made by the corpus'
reference.py, launch.py, and two manifests: check.json (results against the
references) and, when --triton names a python that has triton 3.9, bench.json
(large launches, interleaved with Triton's own cubin of the same TTIR). Copy DIR
to a machine with a GPU and run

    python3 launch.py check.json
    python3 launch.py bench.json

A GPU runs no cubin of another generation: with --ptxas both compilers' PTX is assembled
for --arch, as for code of cuda:80 on a GPU with sm_90a.

Without names, every kernel that ttc compiles is taken; the others, and those that
Triton does not compile, are listed with their errors. Needs numpy and ml_dtypes.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE.parent.parent / "test" / "corpus"

TRITON = """
import json, sys, triton
from triton.backends.compiler import GPUTarget
ttir, capability, options, image = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4]
k = triton.compile(ttir, target=GPUTarget("cuda", capability, 32), options=options)
code = k.asm[image.rsplit(".", 1)[1]]
open(image, "wb").write(code if isinstance(code, bytes) else code.encode())
print(k.metadata.shared, k.metadata.global_scratch_size)
"""


def run(command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True)


def cubin(args, name, spec):
    """Our code as `ttc --emit cubin` makes it."""
    image = args.out / f"{name}.cubin"
    done = run([args.ttc, args.data / f"{name}.ttir", "--target", f"cuda:{args.capability}", "--emit", "cubin",
                "--num-warps", spec["num_warps"], "--num-stages", spec["num_stages"], "-o", image])
    if done.returncode:
        sys.exit(f"ttc {name}: {done.stderr}")
    return image


def assembled(args, image):
    """The file that is timed: `image`, or what --ptxas makes of it, which is PTX then."""
    if not args.ptxas:
        return image
    cubin = image.with_suffix(".cubin")
    done = run([args.ptxas, f"-arch={args.arch}", image, "-o", cubin])
    if done.returncode:
        sys.exit(f"ptxas on {image}: {done.stderr}")
    return cubin


def compile_case(args, name, spec, out):
    """PTX and metadata of one kernel; the error message where there is none."""
    meta = out / f"{name}.meta.json"
    done = run([args.ttc, args.data / f"{name}.ttir", "--target", f"cuda:{args.capability}", "--emit", "ptx",
                "--num-warps", spec["num_warps"], "--num-stages", spec["num_stages"],
                "-o", out / f"{name}.ptx", "--metadata", meta])
    if done.returncode:
        return None, next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
    return json.loads(meta.read_text()), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ttc", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=CORPUS,
                        help="folder of kernels with their .json, and reference.py where results are to be checked (the corpus)")
    parser.add_argument("--capability", type=int, default=90)
    parser.add_argument("--triton", help="python with triton 3.9, to make the baseline")
    parser.add_argument("--ptxas", help="assembles what is timed of both compilers, instead of the driver and Triton")
    parser.add_argument("--arch", default="sm_90a", help="what --ptxas assembles for")
    parser.add_argument("--cubin", action="store_true", help="time what ttc's ptxas makes of our PTX, instead of the driver's")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--num-stages", type=int, help="stages of software pipelines, of both compilers, instead of what the kernels ask for")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    names = args.names or sorted(path.stem for path in args.data.glob("*.ttir"))
    checks, bench, refused = [], [], []
    for name in names:
        spec = json.loads((args.data / f"{name}.json").read_text())
        spec["num_stages"] = spec["num_stages"] if args.num_stages is None else args.num_stages
        meta, error = compile_case(args, name, spec, args.out)
        if meta is None:
            refused.append((name, error))
            continue
        data = args.out / name
        data.mkdir(exist_ok=True)
        referenced = (args.data / "reference.py").exists()
        for what in ("inputs", "expected") if referenced else ():
            done = run([sys.executable, args.data / "reference.py", what, name, data])
            if done.returncode:
                sys.exit(f"reference.py {what} {name}: {done.stderr}")
        kernel = {"entry": meta["name"], "threads": meta["threads"], "outputs": spec["outputs"],
                  "scratch": meta["global_scratch_size"]}
        inputs = [dict(arg, init={"kind": "file", "path": f"{name}/{arg['name']}.bin"}) if arg["kind"] == "ptr" else arg
                  for arg in spec["args"]]
        if referenced:
            checks.append({**kernel, "name": name, "image": f"{name}.ptx", "shared": meta["shared"],
                           "grid": spec["grid"], "args": inputs, "rtol": spec["rtol"], "atol": spec["atol"],
                           "expect": {out: f"{name}/{out}.expected.bin" for out in spec["outputs"]}})
        if args.triton and "bench" in spec:
            image = args.out / f"{name}.triton.{'ptx' if args.ptxas else 'cubin'}"
            # Of one stage Triton has no pipeline, `ttc` of none.
            options = json.dumps({"num_warps": spec["num_warps"], "num_stages": max(1, spec["num_stages"])})
            done = run([args.triton, "-c", TRITON, args.data / f"{name}.ttir", args.capability, options, image])
            if done.returncode:
                refused.append((name, f"not timed, since Triton does not compile it: {done.stderr.splitlines()[-1]}"))
                continue
            large = spec["bench"]
            # The two may contract and approximate differently: compared loosely here, exactly by check.json.
            case = {**kernel, "group": name, "grid": large["grid"], "args": large["args"],
                    "rtol": max(spec["rtol"], 1e-3), "atol": max(spec["atol"], 1e-3),
                    "bytes": large.get("bytes"), "flops": large.get("flops")}
            shared, scratch = map(int, done.stdout.split()[-2:])
            bench.append({**case, "name": f"{name}.triton", "image": assembled(args, image).name, "shared": shared, "scratch": scratch})
            ours = cubin(args, name, spec) if args.cubin else assembled(args, args.out / f"{name}.ptx")
            bench.append({**case, "name": f"{name}.ttopt", "image": ours.name, "shared": meta["shared"]})
    shutil.copy(HERE / "launch.py", args.out)
    (args.out / "check.json").write_text(json.dumps({"cases": checks}))
    (args.out / "bench.json").write_text(json.dumps({"cases": bench}))
    print(f"{len(checks)} kernels to check, {len(bench) // 2} to time, {len(refused)} refused")
    for name, error in refused:
        print(f"  {name}: {error}")


if __name__ == "__main__":
    main()
