// What copies past the registers (`cp.async`) take by their width: `copy` of `CostModel` (crates/linear-layout/src/target.rs).
//
//     nvcc -O2 -arch=native copies.cu -o copies && ./copies
//
// Cycles of a multiprocessor for 16 KiB that eight warps copy from the L2, each lane so many bytes at once, with one, two and four CTAs
// on it. The next 16 KiB are under way meanwhile.

#include <algorithm>
#include <cstdio>
#include <cuda_runtime.h>

constexpr int THREADS = 256, PIECE = 16 << 10, ROUNDS = 200;

template <int B>
__global__ void copy(const char *from, long long *cycles, int pieces) {
    __shared__ __align__(128) char memory[2 * PIECE];
    unsigned to = unsigned(__cvta_generic_to_shared(memory));
    const char *own = from + size_t(blockIdx.x) * pieces * PIECE;
    long long begin = clock64();
    for (int i = 0; i < ROUNDS; i++) {
        const char *piece = own + size_t(i % pieces) * PIECE;
#pragma unroll
        for (int j = 0; j < PIECE / (B * THREADS); j++) {
            int at = (j * THREADS + threadIdx.x) * B;
            unsigned slot = to + (i & 1) * PIECE + at;
            if (B == 16)
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(slot), "l"(piece + at));
            else
                asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(slot), "l"(piece + at), "n"(B));
        }
        asm volatile("cp.async.commit_group;");
        asm volatile("cp.async.wait_group 1;");
        __syncthreads();
    }
    asm volatile("cp.async.wait_all;");
    if (threadIdx.x == 0)
        cycles[blockIdx.x] = clock64() - begin;
}

template <int B>
void measure(const char *from, long long *cycles, int processors, int ctas, int pieces) {
    int all = processors * ctas;
    for (int warm = 0; warm < 2; warm++)
        copy<B><<<all, THREADS>>>(from, cycles, pieces);
    cudaDeviceSynchronize();
    double sum = 0;
    for (int i = 0; i < all; i++)
        sum += double(cycles[i]);
    printf("%2d bytes, %d CTAs: %.1f\n", B, ctas, sum / all / ROUNDS / ctas);
}

int main() {
    int processors = 0;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    char *from = nullptr;
    long long *cycles = nullptr;
    cudaMalloc(&from, size_t(processors) * 8 * PIECE);
    cudaMallocManaged(&cycles, processors * 4 * sizeof(long long));
    for (int ctas : {1, 2, 4}) {
        int pieces = std::max(1, 8 / ctas);
        measure<4>(from, cycles, processors, ctas, pieces);
        measure<8>(from, cycles, processors, ctas, pieces);
        measure<16>(from, cycles, processors, ctas, pieces);
    }
}
