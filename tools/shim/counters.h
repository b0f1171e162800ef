// Numbers of iterations as ptxas finds them.

#pragma once

namespace llvm {
class Function;
} // namespace llvm

namespace tt {
/// Gives loops that end by the lower half of a 64-bit counter a counter of 32 bits beside it, and loops that end by a counter and a
/// constant one that begins by that later. LLVM's strength reduction makes one counter of two where an address needs the other
/// one; ptxas does not see how often such a loop runs, and unrolls it no more.
void splitCounters(llvm::Function &function);
/// Has counters go on where their loops end. ptxas sees how often a loop runs only if its counter goes on in the last of its blocks,
/// and masked accesses, which are predicated instructions in PTX, end blocks there.
void countLast(llvm::Function &function);
} // namespace tt
