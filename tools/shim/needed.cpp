// Passes of code generation that run on a function only where an earlier pass left them something to do.

#include "needed.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/MachineRegisterInfo.h"
#include <memory>
#include <utility>

namespace {
/// Stands for a pass in a list of passes: requires and preserves what that one does, and lends it its analyses.
class WhereNeeded : public llvm::FunctionPass {
public:
  static char ID;
  WhereNeeded(llvm::FunctionPass *pass, std::function<bool(llvm::Function &, llvm::Pass &)> isNeeded)
      : FunctionPass(ID), pass(pass), isNeeded(std::move(isNeeded)) {}
  llvm::StringRef getPassName() const override { return pass->getPassName(); }
  void getAnalysisUsage(llvm::AnalysisUsage &usage) const override { pass->getAnalysisUsage(usage); }
  bool doInitialization(llvm::Module &module) override {
    Lent lent(*this);
    return pass->doInitialization(module);
  }
  bool runOnFunction(llvm::Function &function) override {
    if (!isNeeded(function, *this))
      return false;
    Lent lent(*this);
    return pass->runOnFunction(function);
  }
  bool doFinalization(llvm::Module &module) override {
    Lent lent(*this);
    return pass->doFinalization(module);
  }
  void releaseMemory() override { pass->releaseMemory(); }

private:
  /// Where the pass finds analyses: where this one does. Each pass frees its own.
  class Lent {
  public:
    explicit Lent(WhereNeeded &all) : pass(*all.pass) { pass.setResolver(all.getResolver()); }
    ~Lent() { pass.setResolver(nullptr); }

  private:
    llvm::Pass &pass;
  };
  std::unique_ptr<llvm::FunctionPass> pass;
  std::function<bool(llvm::Function &, llvm::Pass &)> isNeeded;
};
char WhereNeeded::ID;
} // namespace

llvm::Pass *tt::createWhereNeeded(llvm::FunctionPass *pass,
                                  std::function<bool(llvm::Function &, llvm::Pass &)> isNeeded) {
  return new WhereNeeded(pass, std::move(isNeeded));
}

unsigned tt::virtualRegisters(llvm::Function &function, llvm::Pass &pass) {
  auto &all = pass.getAnalysis<llvm::MachineModuleInfoWrapperPass>().getMMI();
  return all.getOrCreateMachineFunction(function).getRegInfo().getNumVirtRegs();
}
