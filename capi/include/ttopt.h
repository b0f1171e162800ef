/* libttopt: compiles the IR of the Triton language for GPUs. For C, C++ and whatever calls C.
 *
 *   TtoptSession *session = ttoptSessionCreate();
 *   TtoptOptions options = TTOPT_OPTIONS_INIT;
 *   options.target = "cuda:90";
 *   TtoptResult *result = NULL;
 *   if (ttoptCompile(session, text, length, "kernel.ttir", &options, &result) == TTOPT_OK) {
 *     size_t size;
 *     const char *ptx = ttoptResultArtifact(result, TTOPT_STAGE_ASM, &size);
 *   }
 *   ttoptResultDestroy(result);
 *   ttoptSessionDestroy(session);
 *
 * Rules. Every function may be called from any thread, and a session by many threads at once. The library prints nothing,
 * ends nothing and does not read the environment, unless TTOPT_FIND_COMPANIONS asks it to look for tools. Strings are
 * UTF-8 and end with a zero; what a function returns belongs to the object it was asked of, and lives as long.
 *
 * Versions. ttoptAbiVersion() is TTOPT_ABI_VERSION of the header that the library was built with. Within one version
 * functions and constants are only added, and structures grow at their end: `size` says what the caller's has, and what
 * is not there is zero, which means the default everywhere.
 *
 * This library has its own MLIR inside, which nobody else sees. To use our dialects and passes in an MLIRContext of your
 * own, link libttopt_plugin.so and include ttopt_mlir.h instead.
 */
#ifndef TTOPT_H
#define TTOPT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TTOPT_ABI_VERSION 1

typedef struct TtoptSession TtoptSession;
typedef struct TtoptResult TtoptResult;
typedef struct TtoptCancellation TtoptCancellation;

/* What a function has to say. */
typedef int32_t TtoptStatus;
enum {
  TTOPT_OK = 0,
  /* The input or the options are not accepted: diagnostics say why. */
  TTOPT_FAILED = 1,
  /* ttoptCancel was called. */
  TTOPT_CANCELLED = 2,
  /* A bug of ours: diagnostics say where. The session is still good. */
  TTOPT_INTERNAL = 3,
  /* A pointer is null that must not be, or a number is none that this header knows. */
  TTOPT_INVALID_ARGUMENT = 4
};

/* What a compilation makes, in this order. */
typedef int32_t TtoptStage;
enum {
  /* The default: TTOPT_STAGE_ASM. */
  TTOPT_STAGE_DEFAULT = 0,
  /* The input, parsed, verified and printed. */
  TTOPT_STAGE_TTIR = 1,
  /* With layouts. */
  TTOPT_STAGE_TTGIR = 2,
  /* Optimized LLVM IR, as text. */
  TTOPT_STAGE_LLVMIR = 3,
  /* PTX, or assembly of AMD GPUs. */
  TTOPT_STAGE_ASM = 4,
  /* A cubin (needs ptxas) or an hsaco (needs ld.lld). */
  TTOPT_STAGE_BIN = 5
};

typedef uint32_t TtoptFlags;
enum {
  /* Remarks say what was chosen and why. */
  TTOPT_EXPLAIN = 1 << 0,
  /* The IR is verified after each pass. */
  TTOPT_VERIFY_EACH = 1 << 1,
  /* All descriptors that can have a tensor map have one. */
  TTOPT_ALL_TENSOR_MAPS = 1 << 2,
  /* TTIR and TTGIR come with locations and names of values. */
  TTOPT_LOCATIONS = 1 << 3,
  /* No product and sum become one operation. */
  TTOPT_NO_FP_FUSION = 1 << 4,
  /* Looks for ptxas, libdevice, ld.lld and ROCm's libraries where TTOPT_PTXAS, TTOPT_LIBDEVICE, TTOPT_LLD,
   * TTOPT_DEVICE_LIBS and CUDA_HOME say, and where they are commonly installed. */
  TTOPT_FIND_COMPANIONS = 1 << 5,
  /* Functions of singles keep denormal numbers, which they take for zero otherwise (NVIDIA). */
  TTOPT_KEEP_DENORMALS = 1 << 6,
  /* The schedules of loops are kept: ttoptResultSchedules. */
  TTOPT_SCHEDULES = 1 << 7,
  /* The code has no lines of the source. */
  TTOPT_NO_LINE_INFO = 1 << 8
};

typedef int32_t TtoptSeverity;
enum { TTOPT_ERROR = 0, TTOPT_WARNING = 1, TTOPT_NOTE = 2, TTOPT_REMARK = 3 };

/* A message at a place. Lines and columns count from 1; 0 where nobody knows. */
typedef struct TtoptDiagnostic {
  size_t size;
  const char *message;
  const char *file; /* empty where nobody knows */
  const struct TtoptDiagnostic *notes;
  size_t num_notes;
  TtoptSeverity severity;
  uint32_t line, column, end_line, end_column;
} TtoptDiagnostic;

/* Called on the thread that compiles, before ttoptCompile returns. What it is given lives until it returns. */
typedef void (*TtoptDiagnosticCallback)(const TtoptDiagnostic *diagnostic, void *user_data);

/* A stage that the caller made itself, say a dump that was edited: it takes the place of what would be made, and the
 * stages behind it are made from it. Those before are made all the same; metadata are of the TTGIR. One of another kernel,
 * target or number of threads is an error, and so is one of which nothing would be used. */
typedef struct TtoptOverride {
  size_t size;      /* sizeof(TtoptOverride), in all of an array */
  const char *name; /* what diagnostics call it; null: <override> */
  const char *bytes;
  size_t length;
  TtoptStage stage; /* TTOPT_STAGE_TTIR to TTOPT_STAGE_ASM */
} TtoptOverride;

#define TTOPT_OVERRIDE_INIT {sizeof(TtoptOverride), 0, 0, 0, 0}

typedef struct TtoptOptions {
  size_t size;        /* sizeof(TtoptOptions) */
  const char *target; /* "cuda:80", "cuda:90", "hip:gfx942", ...; null: the module's, or cuda:90 */
  uint32_t num_warps;  /* 0: 4 */
  uint32_t num_stages; /* 0: 3 */
  uint32_t num_ctas;   /* 0: 1 */
  TtoptStage stop_after;
  TtoptFlags flags;
  uint32_t max_registers; /* of a thread; 0: no limit */
  const char *ptxas;      /* paths, or null */
  const char *libdevice;
  const char *lld;
  const char *device_libraries; /* the folder that has ocml.bc and ockl.bc */
  const char *const *libraries; /* bitcode files with functions that kernels call */
  size_t num_libraries;
  const char *const *ptxas_options;
  size_t num_ptxas_options;
  TtoptDiagnosticCallback diagnostic; /* null: nobody is told */
  void *user_data;
  const TtoptCancellation *cancellation; /* null: nobody stops it */
  const TtoptOverride *overrides;
  size_t num_overrides;
} TtoptOptions;

#define TTOPT_OPTIONS_INIT {sizeof(TtoptOptions), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

/* TTOPT_ABI_VERSION of the library, and its release as text. */
uint32_t ttoptAbiVersion(void);
const char *ttoptVersion(void);

/* A session compiles from any thread. Keep one for all that you compile: later compilations use again what earlier ones set
 * up. Null when there is no memory. */
TtoptSession *ttoptSessionCreate(void);
/* No compilation may be under way. */
void ttoptSessionDestroy(TtoptSession *session);

/* Lets one thread stop the compilations of others, between passes and stages. */
TtoptCancellation *ttoptCancellationCreate(void);
void ttoptCancel(const TtoptCancellation *cancellation);
void ttoptCancellationDestroy(TtoptCancellation *cancellation);

/* Compiles `length` bytes, text or bytecode, TTIR or TTGIR. `name` is the file name in diagnostics and may be null, as may
 * `options`. On success `*result` is a result to destroy; otherwise it is null. */
TtoptStatus ttoptCompile(TtoptSession *session, const char *input, size_t length, const char *name,
                         const TtoptOptions *options, TtoptResult **result);

/* What a stage made, and how many bytes; a zero follows them. Null where the compilation did not come there. */
const char *ttoptResultArtifact(const TtoptResult *result, TtoptStage stage, size_t *size);
/* What a launcher needs to know, as JSON; null before layouts are chosen. */
const char *ttoptResultMetadataJson(const TtoptResult *result);
/* The kernel's symbol; null before layouts are chosen. */
const char *ttoptResultKernelName(const TtoptResult *result);

typedef int32_t TtoptScheduleFormat;
enum { TTOPT_SCHEDULE_JSON = 0, TTOPT_SCHEDULE_SVG = 1 };
/* The schedules of loops, or why they have none, for TTOPT_SCHEDULES; null without it, and where no loops were scheduled:
 * the input had layouts already, or compilation stopped before. */
const char *ttoptResultSchedules(const TtoptResult *result, TtoptScheduleFormat format);

typedef int32_t TtoptNumber;
enum {
  TTOPT_NUM_WARPS = 0,
  TTOPT_NUM_THREADS = 1,
  TTOPT_SHARED_BYTES = 2,
  TTOPT_GLOBAL_SCRATCH_BYTES = 3,
  TTOPT_GLOBAL_SCRATCH_ALIGNMENT = 4,
  TTOPT_CLUSTER_CTAS = 5,
  /* From ptxas or LLVM, where there is a binary. */
  TTOPT_REGISTERS = 6,
  TTOPT_SPILL_STORE_BYTES = 7,
  TTOPT_SPILL_LOAD_BYTES = 8,
  TTOPT_STACK_BYTES = 9,
  /* CTAs that fit on a multiprocessor (compute unit), warps of these, and warps that it can hold. */
  TTOPT_RESIDENT_CTAS = 10,
  TTOPT_RESIDENT_WARPS = 11,
  TTOPT_MOST_RESIDENT_WARPS = 12
};
/* A number of the kernel's; -1 where it is not known. */
int64_t ttoptResultNumber(const TtoptResult *result, TtoptNumber which);
void ttoptResultDestroy(TtoptResult *result);

typedef int32_t TtoptLayoutFormat;
enum {
  /* Who holds which element; of a conversion, the steps of its plan. */
  TTOPT_LAYOUT_TABLE = 0,
  TTOPT_LAYOUT_MATRIX = 1,
  TTOPT_LAYOUT_BASES = 2,
  /* A layout's bases; a conversion's plan with instructions, wavefronts and cycles. */
  TTOPT_LAYOUT_JSON = 3,
  TTOPT_LAYOUT_SVG = 4
};
/* Shows a layout attribute for a shape, or with `to` how a tensor gets from it to another one. `dtype` (null: f32) and
 * `target` (null: cuda:90) matter to plans. `*text` is the answer, or what is wrong; free it. */
TtoptStatus ttoptLayoutShow(const char *layout, const char *to, const uint64_t *shape, size_t rank, const char *dtype,
                            const char *target, TtoptLayoutFormat format, char **text);
void ttoptTextFree(char *text);

#ifdef __cplusplus
}
#endif

#endif /* TTOPT_H */
