// Booleans for which PTX has too few registers.

#pragma once

namespace llvm {
class Function;
} // namespace llvm

namespace tt {
/// Keeps booleans in integers of 32 bits, 0 or 1, where more of them live across accesses to memory than there are predicate
/// registers. ptxas has seven, and keeps others as bits of an integer: two instructions to write one, one more to read it.
/// An `and` with an integer is one instruction, a `selp`, which needs no predicate but the other operand. Only chains of `and`,
/// `or` and `phi` are kept so, such as conditions that must hold for all of several loads: ptxas takes a comparison that is made an
/// integer for a predicate again.
void keepBooleans(llvm::Function &function);
} // namespace tt
