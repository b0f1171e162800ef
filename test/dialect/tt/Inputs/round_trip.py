"""Prints every file of the corpus in every form and reads it back.

usage: round_trip.py TTOPT CORPUS

All files go through one process a form, separated by MLIR's split marker.
"""

import difflib
import pathlib
import subprocess
import sys

MARKER = "// -----"


def run(ttopt, texts, *flags):
    text = f"\n{MARKER}\n".join(texts)
    done = subprocess.run(
        [ttopt, "-", "--split-input-file", f"--output-split-marker={MARKER}", *flags],
        input=text, capture_output=True, text=True,
    )
    if done.returncode:
        sys.exit(f"ttopt {' '.join(flags)} failed:\n{done.stderr[:4000]}")
    return done.stdout.split(f"{MARKER}\n")


def expect_same(what, names, wanted, got):
    if len(wanted) != len(got):
        sys.exit(f"{what}: {len(wanted)} modules became {len(got)}")
    different = [i for i, (a, b) in enumerate(zip(wanted, got)) if a.strip() != b.strip()]
    for i in different[:3]:
        diff = difflib.unified_diff(wanted[i].splitlines(), got[i].splitlines(), "wanted", "got", lineterm="")
        print(f"{what}: {names[i]}:", *list(diff)[:20], sep="\n")
    if different:
        sys.exit(f"{what}: {len(different)} of {len(wanted)} files differ")
    print(f"{what}: {len(wanted)} files agree")


def main(ttopt, corpus):
    files = sorted(pathlib.Path(corpus).glob("*.ttir"))
    names = [file.name for file in files]
    texts = [file.read_text() for file in files]
    for debug in [(), ("--mlir-print-debuginfo",)]:
        form = "with locations" if debug else "without locations"
        once = run(ttopt, texts, *debug)
        if len(once) != len(files):
            sys.exit(f"{len(files)} files became {len(once)} modules")
        expect_same(f"printed twice, {form}", names, once, run(ttopt, once, *debug))
        generic = run(ttopt, texts, "--mlir-print-op-generic", *debug)
        expect_same(f"through the generic form, {form}", names, once, run(ttopt, generic, *debug))
        if debug:
            expect_same("given with locations, printed without", names, run(ttopt, texts), run(ttopt, once))


main(*sys.argv[1:])
