// Divisions by numbers that loops do not change.

#pragma once

namespace llvm {
class Function;
} // namespace llvm

namespace tt {
/// Divides 32-bit numbers by reciprocals: in loops where the divisor is the same in all iterations, by one that is computed before
/// them, and elsewhere where several numbers are divided by one. ptxas writes divisions out only after it has moved what is invariant, and
/// leaves conversions and a reciprocal in each iteration; and it takes two instructions for each correction of a remainder, where a minimum
/// does, and two for divisors that are zero, of which nothing is promised.
void divideByReciprocals(llvm::Function &function);
} // namespace tt
