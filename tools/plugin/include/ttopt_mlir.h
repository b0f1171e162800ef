/* Triton's dialects (tt, ttg, ttng, amdg) and ttopt's passes for programs that
 * use MLIR through its C API, from C, C++ or anything that calls C.
 *
 *   MlirDialectRegistry registry = mlirDialectRegistryCreate();
 *   ttoptRegisterDialects(registry);
 *   ttoptRegisterPasses();
 *   MlirContext context = mlirContextCreateWithRegistry(registry, false);
 *   MlirModule module = mlirModuleCreateParse(context, text);
 *
 * Link libttopt_plugin.so and the libMLIR.so it was built with, in one copy.
 */
#ifndef TTOPT_MLIR_H
#define TTOPT_MLIR_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the dialects available to contexts that use the registry, and with them
 * the dialects of MLIR that kernels use: arith, cf, llvm, math, nvvm, rocdl, scf, ub. */
void ttoptRegisterDialects(MlirDialectRegistry registry);

/* Adds the passes to MLIR's registry, where textual pipelines find them.
 * Calling it again does nothing. */
void ttoptRegisterPasses(void);

#ifdef __cplusplus
}
#endif

#endif /* TTOPT_MLIR_H */
