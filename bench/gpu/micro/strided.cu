// What an access of a warp takes whose lanes are a stride apart: constants of `CostModel` (crates/linear-layout/src/target.rs).
//
//     nvcc -O2 -arch=native strided.cu -o strided && ./strided
//
// Cycles of a multiprocessor for one instruction of a warp, all multiprocessors at work, of which each thread executes 16: first for
// lanes side by side, then for lanes 16 elements apart, whose further accesses are next to their first. 16 MB stay in the L2, 1 GB do not.

#include <cstdio>
#include <cstdint>
#include <algorithm>
template <class T> __device__ T mk(int x);
template <> __device__ float mk<float>(int x) { return x; }
template <> __device__ float2 mk<float2>(int x) { return make_float2(x, x); }
template <> __device__ float4 mk<float4>(int x) { return make_float4(x, x, x, x); }
template <> __device__ unsigned short mk<unsigned short>(int x) { return x; }
__device__ float sum(float x) { return x; }
__device__ float sum(float2 x) { return x.x + x.y; }
__device__ float sum(float4 x) { return x.x + x.y + x.z + x.w; }
__device__ float sum(unsigned short x) { return x; }
template <class T, int MODE, bool STORE> __global__ void k(char *p, float *sink, int s, int m) {
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    int base = (warp * 512) % m;
    T v[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        int at = MODE == 0 ? base + i * 32 + lane : base + lane * 16 + i;
        T *q = (T *)(p + (size_t)at * s);
        if (STORE) *q = mk<T>(lane + i); else v[i] = *q;
    }
    if (!STORE) { float t = 0; for (int i = 0; i < 16; ++i) t += sum(v[i]); if (t == 12345.f) sink[threadIdx.x] = t; }
}
template <class T, int M, bool ST> float run(char *p, float *sink, int s, int m) {
    const int n = 1 << 23;
    cudaEvent_t a, b; cudaEventCreate(&a); cudaEventCreate(&b);
    float best = 1e9;
    for (int r = 0; r < 5; ++r) {
        cudaEventRecord(a);
        k<T, M, ST><<<n / 512 / 4, 128>>>(p, sink, s, m);
        cudaEventRecord(b); cudaEventSynchronize(b);
        float t; cudaEventElapsedTime(&t, a, b); best = std::min(best, t);
    }
    int khz; cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0);
    return (best - 0.003) * 1e-3 * khz * 1e3 / (n / 32 / 132.0);
}
template <class T> void all(char *p, float *sink) {
    for (long mb : {16, 1024})
        for (int s : {2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 512, 768}) {
            if (s < (int)sizeof(T)) continue;
            int m = (int)std::min<long>((mb << 20) / s / 512 * 512, 1 << 23);
            printf("bytes %d, %ld MB, stride %d: cycles an instruction, load %.1f %.1f store %.1f %.1f\n", (int)sizeof(T), mb, s,
                run<T, 0, false>(p, sink, s, m), run<T, 1, false>(p, sink, s, m), run<T, 0, true>(p, sink, s, m), run<T, 1, true>(p, sink, s, m));
            fflush(stdout);
        }
}
int main() {
    char *p; float *sink; cudaMalloc(&p, (size_t)2 << 30); cudaMalloc(&sink, 4096); cudaMemset(p, 0, (size_t)2 << 30);
    all<float>(p, sink); all<unsigned short>(p, sink); all<float2>(p, sink); all<float4>(p, sink);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
