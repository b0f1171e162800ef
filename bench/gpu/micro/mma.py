"""What `mma.sync` does in a cycle: the rates of the table of matrix instructions (crates/linear-layout/src/plan/matrix_instruction.rs).

    python3 mma.py > mma.cu && nvcc -O2 -arch=sm_90a mma.cu -o mma && ./mma

Each kernel has one CTA of 1, 4 or 8 warps; each warp has 1, 4 or 8 chains of sums, 256 instructions long. Printed are cycles of a warp
for each instruction, and multiplications and additions of a multiprocessor in a cycle.
"""

# Instruction without types, types of result and operands in PTX, elements of 32 bits, and types of a register of operands and sums.
SHAPES = [
    ("m16n8k16", "f32.f16.f16.f32", 16, "r", "f"),
    ("m16n8k16", "f16.f16.f16.f16", 16, "r", "r"),
    ("m16n8k16", "f32.bf16.bf16.f32", 16, "r", "f"),
    ("m16n8k8", "f32.tf32.tf32.f32", 32, "r", "f"),
    ("m16n8k32", "s32.s8.s8.s32", 8, "r", "r"),
    ("m16n8k32", "f32.e4m3.e4m3.f32", 8, "r", "f"),
    *((shape, "f64.f64.f64.f64", 64, "d", "d") for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")),
]
TYPES = {"r": "unsigned", "f": "float", "d": "double"}


def kernel(name, shape, types, bits, operand, total, chains):
    m, n, k = (int(size) for size in shape[1:].replace("n", " ").replace("k", " ").split())
    width = 64 if operand == "d" else 32
    a, b = m * k * bits // (32 * width), n * k * bits // (32 * width)
    c = m * n // 32 // (2 if types.startswith("f16") else 1)
    numbers = iter(range(a + b + c))
    groups = [", ".join(f"%{next(numbers)}" for _ in range(count)) for count in (c, a, b)]
    text = f"mma.sync.aligned.{shape}.row.col.{types} {{{groups[0]}}}, {{{groups[1]}}}, {{{groups[2]}}}, {{{groups[0]}}};"
    lines = [f"__global__ void {name}({TYPES[total]} *out, long long *cycles) {{"]
    lines += [f"  {TYPES[operand]} a[{a}], b[{b}];", f"  {TYPES[total]} c[{chains}][{c}] = {{}};"]
    lines += [f"  for (int i = 0; i < {a}; i++) a[i] = threadIdx.x + i;", f"  for (int i = 0; i < {b}; i++) b[i] = threadIdx.x + i;"]
    lines += ["  long long start = clock64();", "  for (int round = 0; round < 256; round++) {"]
    for chain in range(chains):
        sums = ", ".join(f'"+{total}"(c[{chain}][{i}])' for i in range(c))
        operands = ", ".join([f'"{operand}"(a[{i}])' for i in range(a)] + [f'"{operand}"(b[{i}])' for i in range(b)])
        lines.append(f'    asm volatile("{text}" : {sums} : {operands});')
    lines += ["  }", "  long long stop = clock64();", f"  {TYPES[total]} all = 0;"]
    lines += [f"  for (int i = 0; i < {chains * c}; i++) all += c[i / {c}][i % {c}];", "  out[threadIdx.x] = all;"]
    return "\n".join(lines + ["  if (threadIdx.x == 0) *cycles = stop - start;", "}"]), m * n * k


def main():
    kernels, calls = [], []
    for shape, types, *rest in SHAPES:
        for chains in (1, 4, 8):
            name = f"{shape}_{types.replace('.', '_')}_{chains}"
            text, products = kernel(name, shape, types, *rest, chains)
            kernels.append(text)
            for warps in (1, 4, 8):
                # The first launch loads the kernel.
                calls.append(f"  for (int i = 0; i < 2; i++) {name}<<<1, {32 * warps}>>>(({TYPES[rest[-1]]} *)out, cycles);")
                calls.append("  cudaMemcpy(&taken, cycles, 8, cudaMemcpyDeviceToHost);")
                what = f"{shape}.{types} {chains} chains {warps} warps: %.1f cycles, %.0f multiply-adds a cycle\\n"
                calls.append(f'  printf("{what}", taken / {256 * chains}.0, {256 * chains * warps * products}.0 / taken);')
    print("#include <cstdio>", *kernels, "int main() {", "  void *out;", "  long long *cycles, taken;", sep="\n")
    print("  cudaMalloc(&out, 65536);", "  cudaMalloc(&cycles, 8);", *calls, "}", sep="\n")


if __name__ == "__main__":
    main()
