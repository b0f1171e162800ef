// MLIR's translation to LLVM IR, with LLVM's verifier where it is asked for: MLIR's C API always runs it.

#include "llvm-c/Types.h"
#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

extern "C" {
/// LLVM IR of a module in the `llvm` dialect, which was verified. Null where an error was reported.
LLVMModuleRef ttTranslate(MlirOperation module, LLVMContextRef context, bool verify) {
  return llvm::wrap(
      mlir::translateModuleToLLVMIR(unwrap(module), *llvm::unwrap(context), "LLVMDialectModule", !verify).release());
}
}
