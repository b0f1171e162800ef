// Computes conversions right before their first use where more is alive in a block than there are registers.
//
// Lowering computes tensor by tensor: all elements are extended before the first one is added up. Instruction selection keeps that order,
// the scheduler improves it by little, and the register allocator then takes minutes: a program that reduces three tensors of 65,536
// halves with four waves has 768 numbers of 32 bits alive, of 384 registers that were loaded. ptxas moves few of them: eight bytes that
// a thread takes out of two words before it draws random numbers are in eight registers meanwhile.

#include "near_use.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Pass.h"
#include <algorithm>

namespace {
class NearUse : public llvm::FunctionPass {
public:
  static char ID;
  explicit NearUse(unsigned most) : FunctionPass(ID), most(most) {}
  llvm::StringRef getPassName() const override { return "Conversions near their uses"; }
  void getAnalysisUsage(llvm::AnalysisUsage &usage) const override { usage.setPreservesCFG(); }

  bool runOnFunction(llvm::Function &function) override {
    layout = &function.getDataLayout();
    bool changed = false;
    for (llvm::BasicBlock &block : function)
      changed |= block.size() > most && moreAlive(block) && order(block);
    return changed;
  }

private:
  /// Registers of 32 bits.
  unsigned words(const llvm::Value &value) const {
    llvm::Type *type = value.getType();
    if (!type->isSized() || type->isAggregateType() || type->isIntOrIntVectorTy(1))
      return 0;
    return (layout->getTypeSizeInBits(type).getFixedValue() + 31) / 32;
  }

  /// Whether more registers than `most` are alive at once in a block, of what it computes.
  bool moreAlive(llvm::BasicBlock &block) const {
    llvm::DenseSet<const llvm::Value *> alive;
    unsigned now = 0;
    for (llvm::Instruction &at : llvm::reverse(block)) {
      if (alive.contains(&at))
        now -= words(at);
      for (llvm::Value *operand : at.operand_values())
        if (auto *made = llvm::dyn_cast<llvm::Instruction>(operand); made && made->getParent() == &block && alive.insert(made).second)
          now += words(*made);
      if (now > most)
        return true;
    }
    return false;
  }

  /// Whether an instruction is cheap and takes no fewer registers than its operands, which may have other uses. Conditions are in
  /// predicates and masks of lanes, of which there are fewer.
  bool isCheap(const llvm::Instruction &at) const {
    if (at.getNumOperands() > 0 && at.getOperand(0)->getType()->isIntOrIntVectorTy(1))
      return false;
    if (llvm::isa<llvm::ExtractElementInst>(at))
      return llvm::isa<llvm::Constant>(at.getOperand(1));
    return (llvm::isa<llvm::FPExtInst>(at) || llvm::isa<llvm::ZExtInst>(at) || llvm::isa<llvm::SExtInst>(at) || llvm::isa<llvm::BitCastInst>(at)) &&
           words(at) >= words(*at.getOperand(0));
  }

  /// Moves them. The place of an instruction is its number in the block, that of a cheap one the place of its first user.
  bool order(llvm::BasicBlock &block) const {
    llvm::SmallVector<llvm::Instruction *> all;
    llvm::DenseMap<const llvm::Instruction *, unsigned> places;
    for (llvm::Instruction &at : block) {
      places[&at] = all.size();
      all.push_back(&at);
    }
    bool changed = false;
    llvm::SmallVector<std::pair<unsigned, unsigned>> sorted;
    for (unsigned number = all.size(); number-- > 0;) {
      llvm::Instruction &at = *all[number];
      if (isCheap(at) && !at.use_empty()) {
        unsigned first = all.size() - 1;
        for (llvm::User *user : at.users()) {
          auto *by = llvm::cast<llvm::Instruction>(user);
          if (by->getParent() == &block && !llvm::isa<llvm::PHINode>(by))
            first = std::min(first, places[by]);
        }
        changed |= first > number + 1;
        places[&at] = std::max(first, number);
      }
      sorted.push_back({places[&at], number});
    }
    if (!changed)
      return false;
    std::sort(sorted.begin(), sorted.end());
    for (auto [place, number] : sorted)
      if (!llvm::isa<llvm::PHINode>(all[number]) && !all[number]->isTerminator())
        all[number]->moveBefore(block.getTerminator()->getIterator());
    return true;
  }

  /// Registers of 32 bits that may be alive.
  unsigned most;
  const llvm::DataLayout *layout = nullptr;
};
char NearUse::ID;
} // namespace

llvm::Pass *tt::createNearUse(unsigned most) { return new NearUse(most); }
