"""Dots in blocked layouts, multiplied within threads, run on the simulator.

    dot_products.py --ttsim TTSIM --work DIR [--targets hip:gfx942,hip:gfx1100]

Pairs of 16-bit floats and four bytes at once are multiplied by one instruction where the target has it. Needs numpy.
"""
import suite
import table4

PAIRS = [("f16", "f16"), ("bf16", "bf16"), ("i8", "i8"), ("i8", "f16")]
SHAPES = [(16, 16, 16), (32, 8, 4), (8, 32, 64), (16, 16, 2), (64, 64, 8), (2, 64, 32)]


class Blocked(table4.Kernel):
    """The products of operands of two types in blocked layouts."""

    def __init__(self, a, b, layouts, target):
        super().__init__(a, b, layouts, target)
        self.lanes = 64 if target.startswith("hip:gfx9") else 32
        self.result = "i32" if b == "i8" else "f32"
        size = "sizePerThread = [2, 2], warpsPerCTA = [2, 2], order = [1, 0]"
        parent = f"#ttg.blocked<{{{size}, threadsPerWarp = [4, {self.lanes // 4}]}}>"
        operand = f"#ttg.dot_op<{{opIdx = %d, parent = {parent}}}>"
        self.encodings = {"a": operand % 0, "b": operand % 1, "c": parent}


def run(args, pair, target):
    return table4.run(args, pair, SHAPES, target, Blocked)


def main():
    parser = suite.parser(__doc__)
    parser.add_argument("--targets", default="hip:gfx90a,hip:gfx942,hip:gfx950,hip:gfx1100,hip:gfx1201")
    args = parser.parse_args()
    args.layouts = True
    cases = [(pair, target) for pair in PAIRS for target in args.targets.split(",")]
    failed = [line for lines in suite.run_all(args, run, cases) for line in lines]
    print("\n".join(failed))
    count = len(cases) * len(SHAPES)
    print(f"{count - len(failed)} of {count} dots right")


if __name__ == "__main__":
    main()
