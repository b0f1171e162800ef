// Masks that a loop keeps in scalar registers.

#pragma once

namespace llvm {
class Pass;
}

namespace tt {
/// The pass that makes masks of loops bounds.
llvm::Pass *createMaskBounds();
} // namespace tt
