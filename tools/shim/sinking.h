// What keeps LLVM's sinking from making more registers live.

#pragma once

namespace llvm {
class Pass;
}

namespace tt {
/// The pass that gives instructions a use in their own block, before the first of LLVM's passes that sink. Where the code is `assembled` by a
/// program that allocates registers itself, as ptxas does, it does so for loads, and for others in functions alone that call others.
llvm::Pass *createHold(bool assembled);
/// The pass that removes those uses, behind the last one.
llvm::Pass *createLetGo();
} // namespace tt
