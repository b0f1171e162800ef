// What costs next to nothing is computed where it is used.
#pragma once

namespace llvm {
class Pass;
}

namespace tt {
/// A pass on functions, before instructions are selected, for blocks in which more than `most` registers of 32 bits are alive at once.
llvm::Pass *createNearUse(unsigned most);
} // namespace tt
