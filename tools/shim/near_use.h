// What costs next to nothing is computed where it is used.
#pragma once

namespace llvm {
class Pass;
}

namespace tt {
/// A pass on functions, before instructions are selected for a target whose registers LLVM allocates.
llvm::Pass *createNearUse();
} // namespace tt
