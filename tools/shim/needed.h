// Passes of code generation that run on a function only where an earlier pass left them something to do.
#pragma once

#include "llvm/Pass.h"
#include <functional>

namespace tt {
/// Runs `pass`, which it owns, on the functions of which `isNeeded` says so.
llvm::Pass *createWhereNeeded(llvm::FunctionPass *pass, std::function<bool(llvm::Function &, llvm::Pass &)> isNeeded);
/// How many virtual registers the machine function of a function has; for passes on machine functions.
unsigned virtualRegisters(llvm::Function &function, llvm::Pass &pass);
} // namespace tt
