// What may be moved as far as effects go.
#pragma once

#include "llvm/IR/Instructions.h"

namespace tt {
/// Whether nobody sees when `at` runs, as long as the same lanes run it.
inline bool isSilent(const llvm::Instruction &at) {
  return !at.mayReadOrWriteMemory() && !at.mayHaveSideEffects() && !at.isTerminator() && !llvm::isa<llvm::AllocaInst>(at) && !at.isEHPad();
}
}
