"""Checks the corpus folder given as argument: modules and launches pair up and agree."""

import json
import pathlib
import re
import sys

# The type in the module for an element type of the JSON files, where they differ.
MLIR_TYPE = {"u32": "i32", "u8": "i8", "f8e4m3": "f8E4M3FN", "f8e5m2": "f8E5M2"}


def signature(module, kernel):
    """The argument types of a public function, or None."""
    function = re.search(rf"tt\.func public @{kernel}\((.*?)\) attributes", module)
    return function and re.findall(r"%(\w+): (\S+?)(?= |,|$)", function[1])


def errors(module, launch):
    arguments = signature(module, launch["kernel"])
    if arguments is None:
        yield f"no public function {launch['kernel']}"
        return
    if [name for name, _ in arguments] != [argument["name"] for argument in launch["args"]]:
        yield f"arguments {arguments} are not those of the launch"
        return
    for (name, found), argument in zip(arguments, launch["args"]):
        dtype = argument["dtype"]
        wanted = MLIR_TYPE.get(dtype, dtype)
        if argument["kind"] == "ptr":
            wanted = f"!tt.ptr<{wanted}>"
        if found != wanted:
            yield f"%{name} is {found}, the launch says {argument['kind']} {dtype}"
    pointers = {argument["name"] for argument in launch["args"] if argument["kind"] == "ptr"}
    for output in set(launch["outputs"]) - pointers:
        yield f"output {output} is not a pointer argument"


corpus = pathlib.Path(sys.argv[1])
modules = {path.stem for path in corpus.glob("*.ttir")}
launches = {path.stem for path in corpus.glob("*.json")}
count = 0
for name in sorted(modules | launches):
    if name not in modules or name not in launches:
        found = ["has no module" if name not in modules else "has no launch"]
    else:
        launch = json.loads((corpus / f"{name}.json").read_text())
        found = list(errors((corpus / f"{name}.ttir").read_text(), launch))
    for error in found:
        print(f"{name}: {error}")
    count += len(found)
print(f"{len(modules)} modules, {len(launches)} launches, {count} errors")
