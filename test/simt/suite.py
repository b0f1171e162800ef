"""What the suites of generated kernels share: their arguments, a run on the simulator, the comparison, the loop."""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess


def parser(doc):
    """The arguments that all suites have."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--ttsim", default="ttsim")
    made.add_argument("--ttc", default="ttc")
    made.add_argument("--work", type=pathlib.Path, required=True, help="folder for kernels and results")
    made.add_argument("--jobs", type=int, default=os.cpu_count())
    return made


def said(command):
    """What a command that fails says, or None."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    return (done.stderr.strip()[:600] or f"exit status {done.returncode}") if done.returncode else None


def simulate(args, source, target, arguments, folder, *options):
    """Runs one program and writes its arguments to `folder`; what is wrong, or None."""
    command = [args.ttsim, source, "--target", target, "--grid", "1,1,1", "--quiet", "--jobs", 1, "--out-dir", folder]
    return said([*command, *options, *(f"--arg={value}" for value in arguments)])


def raw(path):
    """The elements in a .npy file, as bytes."""
    data = path.read_bytes()
    return data[10 + int.from_bytes(data[8:10], "little") :]


def difference(name, got, wanted):
    """How two sequences of elements differ, or None."""
    if len(got) != len(wanted):
        return f"{name}: {len(got)} elements, not {len(wanted)}"
    wrong = [i for i, (x, y) in enumerate(zip(got, wanted)) if x != y]
    if not wrong:
        return None
    first = wrong[0]
    return f"{name}: {len(wrong)} of {len(wanted)}, first element {first}: {got[first]}, not {wanted[first]}"


def run_all(args, run, cases):
    """`run(args, *case)` for each case, in order."""
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        return list(pool.map(lambda case: run(args, *case), cases))
