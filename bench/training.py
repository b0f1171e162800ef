#!/usr/bin/env python3
"""Jobs for `ttc --batch`, from which `./dev layout` counts what code of `ttc` runs.

    training.py FOLDER

prints them: the kernels of bench/kernels, none of which the tables of compile times have, for GPUs of three kinds, but for those
that call NVIDIA's libdevice, which need not be there. What they make goes to FOLDER.
"""
import json
import pathlib
import sys

KERNELS = pathlib.Path(__file__).resolve().parent / "kernels"
TARGETS = ["hip:gfx942", "hip:gfx1100", "cuda:90"]


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(KERNELS.glob("*.ttir")):
        if "__nv_" in path.read_text():
            continue
        launch = json.loads(path.with_suffix(".json").read_text())
        options = {key: launch[key] for key in ["num_warps", "num_stages", "num_ctas"]}
        for target in TARGETS:
            output = out / f"{path.stem}.{target.replace(':', '_')}"
            print(json.dumps({"input": str(path), "output": str(output), "target": target, "emit": "asm"} | options))


if __name__ == "__main__":
    main()
