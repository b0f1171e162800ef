// Scalars that loops compute again.

#pragma once

namespace llvm {
class Pass;
}

namespace tt {
/// The attribute of functions that the pass changes.
constexpr char ComputesAgain[] = "tt-computes-again";

/// The pass that has loops compute what they keep in scalar registers.
llvm::Pass *createAgain();
} // namespace tt
