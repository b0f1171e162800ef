// What a load of a warp takes whose lanes read rows apart, as operands of dots are loaded: `line` of `CostModel`
// (crates/linear-layout/src/target.rs).
//
//     nvcc -O2 -arch=native rows.cu -o rows && ./rows
//
// Cycles of a multiprocessor for one load of a warp, eight CTAs of four warps on each. Lane l reads B bytes of row l / (32 / R); rows are
// `stride` bytes apart. All warps of a CTA read the same rows, or each its own. "hit" reads the same lines again and again, "next"
// goes on by a line in each iteration. Below 4 cycles it is the loop that takes them.

#include <algorithm>
#include <cstdint>
#include <cstdio>

template <int B> __device__ __forceinline__ uint32_t load(const char *p) {
    uint32_t a, b, c, d;
    if (B == 4) { asm volatile("ld.global.ca.b32 %0, [%1];" : "=r"(a) : "l"(p)); return a; }
    if (B == 8) { asm volatile("ld.global.ca.v2.b32 {%0,%1}, [%2];" : "=r"(a), "=r"(b) : "l"(p)); return a ^ b; }
    asm volatile("ld.global.ca.v4.b32 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(p));
    return a ^ b ^ c ^ d;
}

template <int B, int R> __global__ void rows(const char *p, uint32_t *sink, long stride, int iterations, long step, bool same) {
    constexpr int Row = 32 / R * B, Loads = 4;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const char *mine = p + lane / (32 / R) * stride + lane % (32 / R) * B + (same ? 0 : warp * R * stride);
    uint32_t all = 0;
    for (int i = 0; i < iterations; ++i) {
        const char *at = mine + i * step % (1 << 16);
#pragma unroll
        for (int j = 0; j < Loads; ++j)
            all ^= load<B>(at + j * Row % 128 + j * Row / 128 * R * 4 * stride);
    }
    if (all == 0x12345) sink[threadIdx.x] = all;
}

template <int B, int R> void time(const char *p, uint32_t *sink, long stride, long step, bool same) {
    constexpr int Iterations = 400, Ctas = 132 * 8;
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    float best = 1e9;
    for (int round = 0; round < 4; ++round) {
        cudaEventRecord(begin);
        rows<B, R><<<Ctas, 128>>>(p, sink, stride, Iterations, step, same);
        cudaEventRecord(end);
        cudaEventSynchronize(end);
        float took;
        cudaEventElapsedTime(&took, begin, end);
        best = std::min(best, took);
    }
    int khz;
    cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0);
    printf("%s %2d bytes a lane, %2d rows %5ld bytes apart, %s: %.2f cycles\n", step ? "next" : "hit ", B, R, stride, same ? "the same" : "its own",
           (best - 0.003) * khz / (8.0 * 4 * Iterations * 4));
}

template <int B, int R> void all(const char *p, uint32_t *sink) {
    for (long stride : {128L, 1024L, 4096L, 8320L})
        for (bool same : {true, false})
            for (long step : {0L, 128L})
                time<B, R>(p, sink, stride, step, same);
}

int main() {
    char *p;
    uint32_t *sink;
    cudaMalloc(&p, 256L << 20);
    cudaMalloc(&sink, 4096);
    cudaMemset(p, 0, 256L << 20);
    all<4, 1>(p, sink);
    all<4, 8>(p, sink);
    all<8, 8>(p, sink);
    all<16, 8>(p, sink);
    all<16, 4>(p, sink);
    all<16, 2>(p, sink);
    all<16, 1>(p, sink);
    all<4, 32>(p, sink);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
