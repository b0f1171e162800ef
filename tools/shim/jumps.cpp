// Branches whose outcome an earlier one decides: kernels test one number several times (`r >= 1`, `r >= 2`, `r >= 3`), and what is computed
// for the tests that follow runs although the first has failed. LLVM's jump threading has a way around them, but not on targets whose lanes
// may take different ways. Branches of a kernel's own control flow are alike in all lanes, and ptxas brings lanes together again behind
// those that are not.

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ValueHandle.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Scalar/JumpThreading.h"
#include "llvm-c/Core.h"
#include <optional>

using namespace llvm;

namespace {
/// Whether lanes of a warp have to execute `call` together (PTX ISA, ".aligned", ".sync", "bar"): of those none may be made two. LLVM
/// knows it of its own functions, and nothing of assembly.
bool isCollective(const CallInst &call) {
  auto *assembly = dyn_cast<InlineAsm>(call.getCalledOperand());
  if (!assembly)
    return false;
  StringRef text = assembly->getAsmString();
  return any_of(ArrayRef<StringRef>{".aligned", ".sync", "bar.", "barrier"}, [&](StringRef part) { return text.contains(part); });
}

bool branches(const BasicBlock &block) {
  auto *branch = dyn_cast<BranchInst>(block.getTerminator());
  return branch && branch->isConditional();
}

/// Calls of nothing that keep blocks of `loops` from being made two: with a second way through a body ptxas no longer unrolls a loop
/// (`flock_step` of bench/gpu/unseen_kernels takes 121 us in place of 102).
SmallVector<WeakVH> keepBodies(const LoopInfo &loops, Function &function) {
  SmallVector<WeakVH> kept;
  auto *nothing = FunctionType::get(Type::getVoidTy(function.getContext()), false);
  for (BasicBlock &block : function)
    if (loops.getLoopFor(&block)) {
      auto *call = CallInst::Create(nothing, InlineAsm::get(nothing, "", "", true), "", block.getTerminator()->getIterator());
      call->setConvergent();
      kept.push_back(call);
    }
  return kept;
}

/// Blocks of `function` that end in a choice, and are in no loop.
size_t choices(const LoopInfo &loops, const Function &function) {
  return count_if(function, [&](const BasicBlock &block) { return branches(block) && !loops.getLoopFor(&block); });
}

/// What LLVM's passes ask of functions, none of which knows the target.
struct Analyses {
  PassBuilder builder;
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager calls;
  ModuleAnalysisManager modules;

  Analyses() {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(calls);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, calls, modules);
  }
};
}

extern "C" {
/// Threads jumps of the functions of `module` that choose more than once outside of loops, there.
void ttThreadJumps(LLVMModuleRef module) {
  std::optional<Analyses> analyses;
  for (Function &function : *unwrap(module)) {
    if (count_if(function, branches) < 2)
      continue;
    DominatorTree dominators(function);
    LoopInfo loops(dominators);
    if (choices(loops, function) < 2)
      continue;
    for (Instruction &at : instructions(function))
      if (auto *call = dyn_cast<CallInst>(&at); call && isCollective(*call))
        call->setConvergent();
    auto kept = keepBodies(loops, function);
    // Few kernels come here.
    if (!analyses)
      analyses.emplace();
    JumpThreadingPass().run(function, analyses->functions);
    for (WeakVH &call : kept)
      if (call)
        cast<Instruction>(call)->eraseFromParent();
  }
}
}
