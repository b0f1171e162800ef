"""engine_twice.py TTOPT TESTS: runs the layout engine twice on all inputs of lit tests in a folder that it can work on."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "simt"))
from stages import ENGINE, changed, run


def main():
    ttopt, tests = sys.argv[1:]
    failed, inputs = [], 0
    for path in sorted(pathlib.Path(tests).glob("*.mlir")):
        once, error = run(ttopt, path, "-split-input-file", ENGINE)
        if error is None:
            inputs += 1
            if change := changed(ttopt, once):
                failed.append(f"a second run changes something in {path}:\n{change}")
    print("\n".join(failed) or f"{inputs} files agree")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
