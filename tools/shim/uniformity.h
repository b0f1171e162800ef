// Which numbers all lanes of a wave have alike, for passes that mostly need not know.

#ifndef TTOPT_UNIFORMITY_H
#define TTOPT_UNIFORMITY_H

#include "llvm/Analysis/CycleAnalysis.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Analysis/UniformityAnalysis.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Pass.h"
#include "llvm/Target/TargetMachine.h"

namespace tt {
/// LLVM's analysis of one function. A pass that requires it by `getAnalysisUsage` has it made each time, whether it is asked or not, and each
/// of ours changes the function, so that the next one would have it made anew.
class Uniformity {
public:
  static void require(llvm::AnalysisUsage &usage) { usage.addRequired<llvm::TargetPassConfig>(); }
  Uniformity(llvm::Pass &pass, llvm::Function &function) {
    auto &machine = pass.getAnalysis<llvm::TargetPassConfig>().getTM<llvm::TargetMachine>();
    analyses.registerPass([] { return llvm::PassInstrumentationAnalysis(nullptr); });
    analyses.registerPass([] { return llvm::DominatorTreeAnalysis(); });
    analyses.registerPass([] { return llvm::CycleAnalysis(); });
    analyses.registerPass([&] { return machine.getTargetIRAnalysis(); });
    analyses.registerPass([] { return llvm::UniformityInfoAnalysis(); });
    uniform = &analyses.getResult<llvm::UniformityInfoAnalysis>(function);
  }
  bool isUniform(const llvm::Value *value) const { return uniform->isUniform(value); }

private:
  llvm::FunctionAnalysisManager analyses;
  const llvm::UniformityInfo *uniform;
};
} // namespace tt

#endif
