"""Instructions of one element of each operation of arithmetic: of a kernel that applies it, beyond one that does not.

    PTXAS=PTXAS CUOBJDUMP=CUOBJDUMP python bench/gpu/micro/arithmetic.py TTC

Needs no GPU. What is printed: the operation, its type, what the other operand is, instructions more than with an addition (or
with nothing, of one operand), and of which kinds. Paths for rare arguments, such as of large angles, count like all others.
"""

import collections
import os
import re
import subprocess
import sys
import tempfile

COUNT = 128
UNARY = "exp exp2 log log2 sin cos sqrt rsqrt erf tanh absf floor ceil".split()


def module(ty, body, other):
    """A kernel of one element for each thread; `other` says what the second operand is."""
    tensor = f"tensor<{COUNT}x{ty}>"
    pointers = f"tensor<{COUNT}x!tt.ptr<{ty}>>"

    def address(name):
        return f"""%p{name} = tt.splat %{name} : !tt.ptr<{ty}> -> {pointers}
    %q{name} = tt.addptr %p{name}, %r : {pointers}, tensor<{COUNT}xi32>"""

    second = {
        None: "",
        "load": f"{address('b')}\n    %y = tt.load %qb : {pointers}",
        "splat": f"%y = tt.splat %n : {ty} -> {tensor}",
    }.get(other, f"%y = arith.constant dense<{other}> : {tensor}")
    parameters = ", ".join(f"%{name}: !tt.ptr<{ty}> {{tt.divisibility = 16 : i32}}" for name in "abo")
    return f"""module {{
  tt.func public @k({parameters}, %n: {ty}) {{
    %r = tt.make_range {{start = 0 : i32, end = {COUNT} : i32}} : tensor<{COUNT}xi32>
    {address("a")}
    %x = tt.load %qa : {pointers}
    {second}
    %z = {body} : {tensor}
    {address("o")}
    tt.store %qo, %z : {pointers}
    tt.return
  }}
}}
"""


def count(ttc, source):
    """Instructions of each kind in the machine code of a kernel."""
    with tempfile.TemporaryDirectory() as folder:
        ttir, ptx, cubin = (os.path.join(folder, f"k.{name}") for name in ("ttir", "ptx", "cubin"))
        with open(ttir, "w") as file:
            file.write(source)
        subprocess.run([ttc, ttir, "--target", "cuda:90", "--emit", "ptx", "-o", ptx], check=True)
        subprocess.run([os.environ["PTXAS"], "-arch", "sm_90a", ptx, "-o", cubin], check=True)
        text = subprocess.run([os.environ["CUOBJDUMP"], "-sass", cubin], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"/\*[0-9a-f]{4,5}\*/\s+(?:@!?U?P\d+ )?(\w+)", text)
    return collections.Counter(name for name in found if name != "NOP")


def main():
    ttc, base = sys.argv[1], {}

    def show(name, ty, body, other=None):
        if (ty, other) not in base:
            # A cast to the same type is nothing.
            plain = f"arith.add{'i' if ty[0] == 'i' else 'f'} %x, %y" if other else f"tt.bitcast %x : tensor<{COUNT}x{ty}> ->"
            source = module(ty, plain, other)
            base[ty, other] = count(ttc, source.replace("-> :", "->"))
        made = count(ttc, module(ty, body, other))
        more = made - base[ty, other]
        kinds = " ".join(f"{kind} {number}" for kind, number in more.most_common(8))
        print(f"{name:10} {ty} {other or '':6} {sum(made.values()) - sum(base[ty, other].values()):+4}  {kinds}")

    for ty in ("f32", "f64"):
        for name in UNARY:
            show(name, ty, f"math.{name} %x")
        show("fma", ty, "math.fma %x, %x, %x")
        show("divf", ty, "arith.divf %x, %y", "load")
    show("precise_sqrt", "f32", "tt.precise_sqrt %x")
    show("precise_divf", "f32", "tt.precise_divf %x, %y", "load")
    show("remf", "f32", "arith.remf %x, %y", "load")
    for ty in ("i32", "i64"):
        for name in ("divsi", "divui", "remsi", "remui"):
            for other in ("load", "splat", "7"):
                show(name, ty, f"arith.{name} %x, %y", other)
        show("muli", ty, "arith.muli %x, %y", "load")


if __name__ == "__main__":
    main()
