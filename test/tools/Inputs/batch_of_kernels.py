"""Writes jobs for `ttc --batch`: each kernel of a folder for each target, with the warps and stages of its launch. Those that call
NVIDIA's libdevice are for its targets alone.

    batch_of_kernels.py FOLDER TARGET... > JOBS
"""
import json
import pathlib
import sys

for path in sorted(pathlib.Path(sys.argv[1]).glob("*.ttir")):
    launch = json.loads(path.with_suffix(".json").read_text())
    options = {"num_warps": launch["num_warps"], "num_stages": launch["num_stages"]}
    calls_libdevice = "__nv_" in path.read_text()
    for target in (target for target in sys.argv[2:] if target.startswith("cuda:") or not calls_libdevice):
        print(json.dumps({"input": str(path), "target": target, **options}))
