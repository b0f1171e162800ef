// Numbers of iterations as ptxas finds them.

#pragma once

namespace llvm {
class Function;
} // namespace llvm

namespace tt {
/// Gives loops that end by the lower half of a 64-bit counter a counter of 32 bits beside it. LLVM's strength reduction makes
/// one counter of two where an address needs the wide one; ptxas does not see how often such a loop runs, and unrolls it no
/// more.
void splitCounters(llvm::Function &function);
} // namespace tt
