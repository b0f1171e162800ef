// Integers as floats of 16 bits.

#pragma once

namespace llvm {
class Function;
} // namespace llvm

namespace tt {
/// Has integers become singles before they become floats of 16 bits, where that gives the same numbers. Multiprocessors make singles of
/// four times as many integers in a cycle (`I2FP` beside `I2F`), and one instruction rounds two of them.
void convertBySingles(llvm::Function &function);
} // namespace tt
