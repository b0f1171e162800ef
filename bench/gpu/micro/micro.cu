// What single instructions cost on a GPU: the constants of `CostModel` (crates/linear-layout/src/target.rs).
//
//     nvcc -O2 -arch=native micro.cu -o micro && ./micro > micro.txt
//
// Prints lines `name value unit`. Throughputs are cycles of a multiprocessor per warp instruction with 32 warps on it, latencies
// cycles of one warp whose next instruction needs the result, rates of memory GB/s and bytes per cycle and multiprocessor with all
// of them at work. Bodies are inline PTX in unrolled loops; what a loop itself costs is one part in some hundred.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                                     \
    do {                                                                                                \
        cudaError_t error_ = (call);                                                                    \
        if (error_ != cudaSuccess) {                                                                    \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_));       \
            std::exit(1);                                                                               \
        }                                                                                               \
    } while (0)

constexpr int ROUNDS = 64;
constexpr int UNROLL = 16;

// Eight chains of one instruction each: `x[k] = f(x[k])`, independent of each other; `chain` makes them one.
#define ARITHMETIC(NAME, TYPE, CONSTRAINT, ASM)                                                         \
    template <bool CHAIN> __global__ void NAME(uint64_t *cycles, TYPE *sink, TYPE seed) {               \
        TYPE x[8];                                                                                      \
        TYPE y = seed + TYPE(threadIdx.x), z = seed;                                                    \
        for (int k = 0; k < 8; ++k) x[k] = seed + TYPE(k);                                              \
        __syncthreads();                                                                                \
        uint64_t start = clock64();                                                                     \
        for (int round = 0; round < ROUNDS; ++round) {                                                  \
            _Pragma("unroll") for (int u = 0; u < UNROLL; ++u) {                                        \
                const int k = CHAIN ? 0 : u % 8;                                                        \
                asm volatile(ASM : "+" CONSTRAINT(x[k]) : CONSTRAINT(y), CONSTRAINT(z));                \
            }                                                                                           \
        }                                                                                               \
        uint64_t stop = clock64();                                                                      \
        TYPE all = 0;                                                                                   \
        for (int k = 0; k < 8; ++k) all += x[k];                                                        \
        sink[blockIdx.x * blockDim.x + threadIdx.x] = all;                                              \
        if (threadIdx.x % 32 == 0) {                                                                    \
            cycles[2 * (threadIdx.x / 32)] = start;                                                     \
            cycles[2 * (threadIdx.x / 32) + 1] = stop;                                                  \
        }                                                                                               \
    }

ARITHMETIC(add_f32, float, "f", "add.f32 %0, %0, %1;")
ARITHMETIC(fma_f32, float, "f", "fma.rn.f32 %0, %0, %1, %2;")
ARITHMETIC(max_f32, float, "f", "max.f32 %0, %0, %1;")
ARITHMETIC(add_s32, uint32_t, "r", "add.u32 %0, %0, %1;")
ARITHMETIC(mad_s32, uint32_t, "r", "mad.lo.u32 %0, %0, %1, %2;")
ARITHMETIC(lop3, uint32_t, "r", "lop3.b32 %0, %0, %1, %2, 0x96;")
ARITHMETIC(shift, uint32_t, "r", "shf.l.wrap.b32 %0, %0, %1, 7;")
ARITHMETIC(prmt, uint32_t, "r", "prmt.b32 %0, %0, %1, 0x5410;")
ARITHMETIC(select, uint32_t, "r",
           "{ .reg .pred p; setp.lt.u32 p, %0, %1; selp.b32 %0, %0, %2, p; }")
ARITHMETIC(ex2, float, "f", "ex2.approx.f32 %0, %0;")
ARITHMETIC(lg2, float, "f", "lg2.approx.f32 %0, %0;")
ARITHMETIC(rcp, float, "f", "rcp.approx.f32 %0, %0;")
ARITHMETIC(rsqrt, float, "f", "rsqrt.approx.f32 %0, %0;")
ARITHMETIC(sine, float, "f", "sin.approx.f32 %0, %0;")
ARITHMETIC(tanh_f32, float, "f", "tanh.approx.f32 %0, %0;")
ARITHMETIC(hadd2, uint32_t, "r", "add.f16x2 %0, %0, %1;")
ARITHMETIC(hfma2, uint32_t, "r", "fma.rn.bf16x2 %0, %0, %1, %2;")
ARITHMETIC(f32_to_f16x2, uint32_t, "r",
           "{ .reg .f32 a; mov.b32 a, %0; cvt.rn.f16x2.f32 %0, a, a; }")
ARITHMETIC(f16_to_f32, uint32_t, "r",
           "{ .reg .b16 a, b; .reg .f32 c; mov.b32 {a, b}, %0; cvt.f32.f16 c, a; mov.b32 %0, c; }")
ARITHMETIC(s32_to_f32, uint32_t, "r", "{ .reg .f32 a; cvt.rn.f32.s32 a, %0; mov.b32 %0, a; }")
ARITHMETIC(f32_to_s32, uint32_t, "r",
           "{ .reg .f32 a; mov.b32 a, %0; cvt.rzi.s32.f32 %0, a; }")
ARITHMETIC(e4m3x2_to_f16x2, uint32_t, "r",
           "{ .reg .b16 a, b; mov.b32 {a, b}, %0; cvt.rn.f16x2.e4m3x2 %0, a; }")
ARITHMETIC(shfl_bfly, uint32_t, "r", "shfl.sync.bfly.b32 %0, %0, %1, 0x1f, -1;")
ARITHMETIC(shfl_idx, uint32_t, "r", "shfl.sync.idx.b32 %0, %0, %1, 0x1f, -1;")
ARITHMETIC(redux, uint32_t, "r", "redux.sync.add.u32 %0, %0, -1;")
ARITHMETIC(vote, uint32_t, "r",
           "{ .reg .pred p; setp.ne.u32 p, %0, %1; vote.sync.ballot.b32 %0, p, -1; }")
ARITHMETIC(fma_f64, double, "d", "fma.rn.f64 %0, %0, %1, %2;")

// Shared memory. Lane `l` reads or writes `BYTES` at `l * stride`; with CHAIN the next address comes from what was read.
template <int BYTES, bool STORE, bool CHAIN>
__global__ void shared_memory(uint64_t *cycles, uint32_t *sink, uint32_t stride) {
    extern __shared__ uint4 memory[];
    uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(memory));
    for (uint32_t i = threadIdx.x; i < 8192; i += blockDim.x) reinterpret_cast<uint32_t *>(memory)[i] = 0;
    __syncthreads();
    uint32_t at = base + threadIdx.x % 32 * stride % 2048;
    uint32_t a = at, b = at, c = at, d = at, sum = 0;
    uint64_t start = clock64();
    for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            if constexpr (STORE) {
                if constexpr (BYTES == 4) asm volatile("st.volatile.shared.b32 [%0], %1;" ::"r"(at), "r"(a) : "memory");
                if constexpr (BYTES == 8)
                    asm volatile("st.volatile.shared.v2.b32 [%0], {%1, %2};" ::"r"(at), "r"(a), "r"(b) : "memory");
                if constexpr (BYTES == 16)
                    asm volatile("st.volatile.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(a), "r"(b), "r"(c), "r"(d)
                                 : "memory");
            } else {
                // Sixteen places, so that no load repeats the one before.
                const uint32_t here = CHAIN ? at : at + (round * 5 + u) % 16 * 2048;
                if constexpr (BYTES == 4) asm volatile("ld.shared.b32 %0, [%1];" : "=r"(a) : "r"(here) : "memory");
                if constexpr (BYTES == 8)
                    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"(here) : "memory");
                if constexpr (BYTES == 16)
                    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                                 : "r"(here)
                                 : "memory");
                sum += a ^ b ^ c ^ d;
                if constexpr (CHAIN) at += a;
            }
        }
    }
    uint64_t stop = clock64();
    sink[blockIdx.x * blockDim.x + threadIdx.x] = sum + at;
    if (threadIdx.x % 32 == 0) {
        cycles[2 * (threadIdx.x / 32)] = start;
        cycles[2 * (threadIdx.x / 32) + 1] = stop;
    }
}

template <bool STORE> __global__ void matrices(uint64_t *cycles, uint32_t *sink) {
    extern __shared__ uint4 memory[];
    uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(memory)) + threadIdx.x % 32 * 16;
    uint32_t a = at, b = at, c = at, d = at, sum = 0;
    __syncthreads();
    uint64_t start = clock64();
    for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            if constexpr (STORE)
                asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(a), "r"(b),
                             "r"(c), "r"(d)
                             : "memory");
            else
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                             : "r"(at + (round * UNROLL + u) % 32 * 512)
                             : "memory");
            sum += a + b + c + d;
        }
    }
    uint64_t stop = clock64();
    sink[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    if (threadIdx.x % 32 == 0) {
        cycles[2 * (threadIdx.x / 32)] = start;
        cycles[2 * (threadIdx.x / 32) + 1] = stop;
    }
}

__global__ void barriers(uint64_t *cycles, uint32_t *sink) {
    __syncthreads();
    uint64_t start = clock64();
    for (int round = 0; round < ROUNDS; ++round) {
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) asm volatile("bar.sync 0;" ::: "memory");
    }
    uint64_t stop = clock64();
    sink[threadIdx.x] = threadIdx.x;
    if (threadIdx.x % 32 == 0) {
        cycles[2 * (threadIdx.x / 32)] = start;
        cycles[2 * (threadIdx.x / 32) + 1] = stop;
    }
}

// A chain of dependent loads through `next`, which holds offsets in bytes: latency of a level of the memory.
template <bool LEVEL1> __global__ void chase(uint64_t *cycles, const char *next, uint32_t *sink, int steps) {
    uint32_t at = 0;
    for (int i = 0; i < steps; ++i) {
        if (i == steps / 2) cycles[0] = clock64();
        if constexpr (LEVEL1) asm volatile("ld.global.ca.b32 %0, [%1];" : "=r"(at) : "l"(next + at));
        else asm volatile("ld.global.cg.b32 %0, [%1];" : "=r"(at) : "l"(next + at));
    }
    cycles[1] = clock64();
    *sink = at;
}

// How lanes of a warp lie in memory. `rows` rows of a warp's access, each of `32 / rows` lanes next to each other; rows are
// `pitch` bytes apart, and the next access of the warp continues each row where this one ended, as fragments of matrices do.
template <int BYTES, bool STORE> __global__ void pattern(char *memory, uint32_t *sink, int rows, size_t pitch, int tiles) {
    int lane = threadIdx.x % 32;
    size_t warp = (size_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    int across = 32 / rows;
    int steps = int(pitch) / (across * BYTES);
    char *at = memory + (warp * rows + lane / across) * pitch + lane % across * BYTES;
    size_t all = size_t(gridDim.x) * (blockDim.x / 32) * rows * pitch;
    uint32_t a = lane, b = lane, c = lane, d = lane, sum = 0;
    for (int tile = 0; tile < tiles; ++tile, at += all) {
#pragma unroll 8
        for (int step = 0; step < steps; ++step) {
            char *here = at + size_t(step) * across * BYTES;
            if constexpr (STORE) {
                if constexpr (BYTES == 4) asm volatile("st.global.b32 [%0], %1;" ::"l"(here), "r"(a) : "memory");
                if constexpr (BYTES == 8)
                    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(here), "r"(a), "r"(b) : "memory");
                if constexpr (BYTES == 16)
                    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(here), "r"(a), "r"(b), "r"(c), "r"(d)
                                 : "memory");
            } else {
                if constexpr (BYTES == 4) asm volatile("ld.global.cg.b32 %0, [%1];" : "=r"(a) : "l"(here));
                if constexpr (BYTES == 8)
                    asm volatile("ld.global.cg.v2.b32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(here));
                if constexpr (BYTES == 16)
                    asm volatile("ld.global.cg.v4.b32 {%0, %1, %2, %3}, [%4];"
                                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                                 : "l"(here));
                sum += a + b + c + d;
            }
        }
    }
    if (!STORE && sum == 0x12345) *sink = sum;
}

// Hits in the L1: all warps read the same lines.
template <int BYTES> __global__ void level1(uint64_t *cycles, const char *memory, uint32_t *sink, int rows, int pitch) {
    int lane = threadIdx.x % 32, across = 32 / rows;
    const char *at = memory + lane / across * pitch + lane % across * BYTES;
    uint32_t a = 0, b = 0, c = 0, d = 0, sum = 0;
    uint64_t start = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        if (round == 1) start = clock64();
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            // Sixteen places, so that no load repeats the one before.
            const char *here = at + (round + u) % 16 * 4096;
            if constexpr (BYTES == 4) asm volatile("ld.global.ca.b32 %0, [%1];" : "=r"(a) : "l"(here));
            if constexpr (BYTES == 8) asm volatile("ld.global.ca.v2.b32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(here));
            if constexpr (BYTES == 16)
                asm volatile("ld.global.ca.v4.b32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                             : "l"(here));
            sum += a ^ b ^ c ^ d;
        }
    }
    uint64_t stop = clock64();
    sink[threadIdx.x] = sum;
    if (threadIdx.x % 32 == 0) {
        cycles[2 * (threadIdx.x / 32)] = start;
        cycles[2 * (threadIdx.x / 32) + 1] = stop;
    }
}

static uint64_t *cycles;
static char *sink;

// Cycles from the first warp's start to the last one's end.
static double elapsed(int warps) {
    CHECK(cudaDeviceSynchronize());
    std::vector<uint64_t> all(2 * warps);
    CHECK(cudaMemcpy(all.data(), cycles, all.size() * sizeof(uint64_t), cudaMemcpyDeviceToHost));
    uint64_t first = ~0ull, last = 0;
    for (int warp = 0; warp < warps; ++warp) {
        first = std::min(first, all[2 * warp]);
        last = std::max(last, all[2 * warp + 1]);
    }
    return double(last - first);
}

// The least of several runs of `launch` with `warps` warps, per instruction of a warp.
template <typename Launch> static double per_instruction(int warps, Launch launch, int rounds = ROUNDS) {
    double best = 1e30;
    for (int run = 0; run < 5; ++run) {
        launch(32 * warps);
        best = std::min(best, elapsed(warps));
    }
    return best / (double(rounds) * UNROLL);
}

static void say(const char *what, const char *kind, double value, const char *unit) {
    std::printf("%-28s %-10s %10.3f %s\n", what, kind, value, unit);
}

#define MEASURE(NAME, TYPE)                                                                             \
    say(#NAME, "rate", per_instruction(32, [&](int threads) {                                           \
            NAME<false><<<1, threads>>>(cycles, reinterpret_cast<TYPE *>(sink), TYPE(3));               \
        }) / 32, "cycles");                                                                             \
    say(#NAME, "latency", per_instruction(1, [&](int threads) {                                         \
            NAME<true><<<1, threads>>>(cycles, reinterpret_cast<TYPE *>(sink), TYPE(3));                \
        }), "cycles");

template <int BYTES, bool STORE> static void shared_rates(const char *name) {
    for (uint32_t conflicts : {0u, 1u, 2u, 4u, 8u}) {
        uint32_t stride = BYTES * conflicts;
        double cost = per_instruction(32, [&](int threads) {
            shared_memory<BYTES, STORE, false><<<1, threads, 32768>>>(cycles, reinterpret_cast<uint32_t *>(sink), stride);
        });
        char what[64];
        std::snprintf(what, sizeof what, "%s.stride%u", name, stride);
        say(what, "rate", cost / 32, "cycles");
    }
}

template <int BYTES, bool STORE>
static void pattern_rate(const char *level, char *memory, size_t bytes, int rows, size_t pitch, int sms, double clock) {
    const int threads = 128;
    const size_t each = size_t(sms) * (threads / 32) * rows * pitch;
    const int ctas = sms * int(std::clamp<size_t>(bytes / each, 1, 16));
    size_t tile = size_t(ctas) * (threads / 32) * rows * pitch;
    int repeats = 1;
    int tiles = int(std::max<size_t>(1, bytes / tile));
    if (bytes < (size_t(1) << 26)) repeats = 16;
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    float best = 1e30f;
    for (int run = 0; run < 4; ++run) {
        CHECK(cudaEventRecord(begin));
        for (int repeat = 0; repeat < repeats; ++repeat)
            pattern<BYTES, STORE><<<ctas, threads>>>(memory, reinterpret_cast<uint32_t *>(sink), rows, pitch, tiles);
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float ms = 0;
        CHECK(cudaEventElapsedTime(&ms, begin, end));
        best = std::min(best, ms / repeats);
    }
    double moved = double(tile) * tiles;
    double gigabytes = moved / best * 1e-6;
    double requests = moved / (32.0 * BYTES) / sms;
    char what[96];
    std::snprintf(what, sizeof what, "%s.%s%d.rows%d.pitch%zu", level, STORE ? "st" : "ld", BYTES, rows, pitch);
    say(what, "rate", gigabytes, "GB/s");
    say(what, "request", best * 1e-3 * clock / requests, "cycles");
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
}

// `twice` visits each place before the walk that counts.
static double latency(bool level1, bool twice, size_t bytes, size_t stride, char *memory) {
    std::vector<uint32_t> next(bytes / 4, 0);
    size_t count = bytes / stride;
    // A walk that visits each place once, in an order that no prefetch guesses.
    std::vector<uint32_t> order(count);
    for (size_t i = 0; i < count; ++i) order[i] = uint32_t(i);
    uint32_t state = 12345;
    for (size_t i = count - 1; i > 0; --i) {
        state = state * 1664525u + 1013904223u;
        std::swap(order[i], order[state % i]);
    }
    for (size_t i = 0; i < count; ++i) next[order[i] * stride / 4] = uint32_t(order[(i + 1) % count] * stride);
    CHECK(cudaMemcpy(memory, next.data(), bytes, cudaMemcpyHostToDevice));
    int steps = int(twice ? 2 * count : count);
    // Nothing of it is left in the L2.
    if (!twice) CHECK(cudaMemset(memory + (size_t(1) << 30), 0, size_t(1) << 30));
    if (level1) chase<true><<<1, 1>>>(cycles, memory, reinterpret_cast<uint32_t *>(sink), steps);
    else chase<false><<<1, 1>>>(cycles, memory, reinterpret_cast<uint32_t *>(sink), steps);
    return elapsed(1) / (steps - steps / 2);
}

int main() {
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    int khz = 0;
    CHECK(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
    double clock = khz * 1e3;
    std::printf("# %s, %d multiprocessors, %.0f MHz\n", device.name, device.multiProcessorCount, clock * 1e-6);
    CHECK(cudaMalloc(&cycles, 4096));
    CHECK(cudaMalloc(&sink, 1 << 20));
    const size_t large = size_t(2) << 30;
    char *memory;
    CHECK(cudaMalloc(&memory, large + (size_t(256) << 20)));
    CHECK(cudaMemset(memory, 0, large));
    MEASURE(add_f32, float)
    MEASURE(fma_f32, float)
    MEASURE(max_f32, float)
    MEASURE(add_s32, uint32_t)
    MEASURE(mad_s32, uint32_t)
    MEASURE(lop3, uint32_t)
    MEASURE(shift, uint32_t)
    MEASURE(prmt, uint32_t)
    MEASURE(select, uint32_t)
    MEASURE(ex2, float)
    MEASURE(lg2, float)
    MEASURE(rcp, float)
    MEASURE(rsqrt, float)
    MEASURE(sine, float)
    MEASURE(tanh_f32, float)
    MEASURE(hadd2, uint32_t)
    MEASURE(hfma2, uint32_t)
    MEASURE(f32_to_f16x2, uint32_t)
    MEASURE(f16_to_f32, uint32_t)
    MEASURE(s32_to_f32, uint32_t)
    MEASURE(f32_to_s32, uint32_t)
    MEASURE(e4m3x2_to_f16x2, uint32_t)
    MEASURE(fma_f64, double)
    MEASURE(shfl_bfly, uint32_t)
    MEASURE(shfl_idx, uint32_t)
    MEASURE(redux, uint32_t)
    MEASURE(vote, uint32_t)
    shared_rates<4, false>("lds32");
    shared_rates<8, false>("lds64");
    shared_rates<16, false>("lds128");
    shared_rates<4, true>("sts32");
    shared_rates<8, true>("sts64");
    shared_rates<16, true>("sts128");
    say("lds32", "latency", per_instruction(1, [&](int threads) {
            shared_memory<4, false, true><<<1, threads, 32768>>>(cycles, reinterpret_cast<uint32_t *>(sink), 4);
        }), "cycles");
    say("lds128", "latency", per_instruction(1, [&](int threads) {
            shared_memory<16, false, true><<<1, threads, 32768>>>(cycles, reinterpret_cast<uint32_t *>(sink), 16);
        }), "cycles");
    say("ldmatrix.x4", "rate", per_instruction(32, [&](int threads) {
            matrices<false><<<1, threads, 32768>>>(cycles, reinterpret_cast<uint32_t *>(sink));
        }) / 32, "cycles");
    say("stmatrix.x4", "rate", per_instruction(32, [&](int threads) {
            matrices<true><<<1, threads, 32768>>>(cycles, reinterpret_cast<uint32_t *>(sink));
        }) / 32, "cycles");
    for (int warps : {1, 2, 4, 8, 16, 32}) {
        char what[32];
        std::snprintf(what, sizeof what, "bar.sync.warps%d", warps);
        say(what, "latency", per_instruction(warps, [&](int threads) {
                barriers<<<1, threads>>>(cycles, reinterpret_cast<uint32_t *>(sink));
            }), "cycles");
    }
    for (int rows : {1, 2, 4, 8, 16, 32}) {
        auto one = [&](const char *name, auto launch) {
            char what[64];
            std::snprintf(what, sizeof what, "%s.rows%d", name, rows);
            say(what, "rate", per_instruction(32, launch, ROUNDS - 1) / 32, "cycles");
        };
        one("l1.ld4", [&](int threads) {
            level1<4><<<1, threads>>>(cycles, memory, reinterpret_cast<uint32_t *>(sink), rows, 512);
        });
        one("l1.ld8", [&](int threads) {
            level1<8><<<1, threads>>>(cycles, memory, reinterpret_cast<uint32_t *>(sink), rows, 512);
        });
        one("l1.ld16", [&](int threads) {
            level1<16><<<1, threads>>>(cycles, memory, reinterpret_cast<uint32_t *>(sink), rows, 512);
        });
    }
    say("l1", "latency", latency(true, true, 32 << 10, 128, memory), "cycles");
    say("l2", "latency", latency(false, true, 2 << 20, 128, memory), "cycles");
    say("hbm", "latency", latency(false, false, size_t(1) << 30, 1 << 17, memory), "cycles");
    const int sms = device.multiProcessorCount;
    for (bool far : {false, true}) {
        // Twenty MiB stay in the L2, two GiB do not.
        const size_t bytes = far ? large : size_t(20) << 20;
        const char *level = far ? "hbm" : "l2";
        for (int rows : {1, 2, 4, 8, 16, 32}) {
            pattern_rate<4, false>(level, memory, bytes, rows, 512, sms, clock);
            pattern_rate<8, false>(level, memory, bytes, rows, 512, sms, clock);
            pattern_rate<16, false>(level, memory, bytes, rows, 512, sms, clock);
            pattern_rate<4, true>(level, memory, bytes, rows, 512, sms, clock);
            pattern_rate<8, true>(level, memory, bytes, rows, 512, sms, clock);
            pattern_rate<16, true>(level, memory, bytes, rows, 512, sms, clock);
        }
    }
    return 0;
}
