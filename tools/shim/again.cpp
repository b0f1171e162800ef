// Has loops compute what few scalar instructions make of numbers that they keep anyway, where they would keep the result, too.
//
// Rows that a wave is given are `first | 4`, `first | 8`, …: numbers that all lanes have alike, and no loop changes. So are bounds
// such as `(first | 4) < rows ? columns : 0`. Each is moved out of the loop, and takes a scalar register throughout. What is
// spilled goes to lanes of a vector register, and every use reads it back (`v_readlane_b32`); computing it again takes no vector
// instruction and no register. So this is for functions that spill scalar registers (`codegen::with_least_spills`).

#include "again.h"
#include "uniformity.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Pass.h"

namespace {
/// Instructions that a use may take: a sum, a comparison and a choice.
constexpr unsigned MostInstructions = 3;

class Again : public llvm::FunctionPass {
public:
  static char ID;
  Again() : FunctionPass(ID) {}
  llvm::StringRef getPassName() const override { return "Compute scalars again"; }
  void getAnalysisUsage(llvm::AnalysisUsage &usage) const override {
    usage.setPreservesCFG();
    usage.addRequired<llvm::LoopInfoWrapperPass>();
    tt::Uniformity::require(usage);
  }

  bool runOnFunction(llvm::Function &function) override {
    if (!function.hasFnAttribute(tt::ComputesAgain))
      return false;
    auto &loops = getAnalysis<llvm::LoopInfoWrapperPass>().getLoopInfo();
    tt::Uniformity known(*this, function);
    uniform = &known;
    bool changed = false;
    // What an outer loop computes is kept by the ones inside.
    for (llvm::Loop *loop : loops.getLoopsInPreorder())
      changed |= compute(*loop);
    return changed;
  }

private:
  bool compute(llvm::Loop &loop) {
    llvm::SetVector<llvm::Instruction *> kept;
    // How many of those are computed from a number, and what the loop uses itself.
    llvm::DenseMap<llvm::Value *, unsigned> shares;
    for (llvm::BasicBlock *block : loop.blocks())
      for (llvm::Instruction &at : *block)
        for (llvm::Value *operand : at.operand_values()) {
          auto *number = llvm::dyn_cast<llvm::Instruction>(operand);
          if (number && isCheap(*number, loop))
            kept.insert(number);
          else
            shares[operand] += 2;
        }
    for (llvm::Instruction *number : kept) {
      llvm::SmallPtrSet<llvm::Value *, 8> from;
      collect(*number, loop, from);
      for (llvm::Value *value : from)
        ++shares[value];
    }
    bool changed = false;
    for (llvm::Instruction *number : kept) {
      unsigned count = 0;
      if (!isComputable(*number, loop, shares, count))
        continue;
      computeAgain(*number, loop, shares);
      changed = true;
    }
    return changed;
  }

  /// Adds what a number is computed from by instructions that may be repeated.
  void collect(llvm::Instruction &number, const llvm::Loop &loop, llvm::SmallPtrSet<llvm::Value *, 8> &from,
               unsigned depth = 1) const {
    for (llvm::Value *operand : number.operand_values()) {
      if (llvm::isa<llvm::Constant>(operand) || !from.insert(operand).second)
        continue;
      auto *inner = llvm::dyn_cast<llvm::Instruction>(operand);
      if (inner && depth < MostInstructions && isCheap(*inner, loop))
        collect(*inner, loop, from, depth + 1);
    }
  }

  /// Whether a number takes so few instructions from those that the loop keeps anyway, for itself or for several numbers.
  bool isComputable(llvm::Instruction &number, const llvm::Loop &loop,
                    const llvm::DenseMap<llvm::Value *, unsigned> &shares, unsigned &count) const {
    if (++count > MostInstructions)
      return false;
    return llvm::all_of(number.operand_values(), [&](llvm::Value *operand) {
      if (llvm::isa<llvm::Constant>(operand) || shares.lookup(operand) > 1)
        return true;
      auto *inner = llvm::dyn_cast<llvm::Instruction>(operand);
      return inner && isCheap(*inner, loop) && isComputable(*inner, loop, shares, count);
    });
  }

  /// Computes a number again in front of each of its uses in the loop.
  static void computeAgain(llvm::Instruction &number, llvm::Loop &loop,
                           const llvm::DenseMap<llvm::Value *, unsigned> &shares) {
    llvm::SmallVector<llvm::Use *> uses;
    for (llvm::Use &use : number.uses())
      if (loop.contains(llvm::cast<llvm::Instruction>(use.getUser())))
        uses.push_back(&use);
    for (llvm::Use *use : uses) {
      auto *user = llvm::cast<llvm::Instruction>(use->getUser());
      auto *phi = llvm::dyn_cast<llvm::PHINode>(user);
      llvm::Instruction *place = phi ? phi->getIncomingBlock(*use)->getTerminator() : user;
      if (loop.contains(place))
        use->set(copy(number, *place, shares));
    }
  }

  static llvm::Instruction *copy(llvm::Instruction &number, llvm::Instruction &place,
                                 const llvm::DenseMap<llvm::Value *, unsigned> &shares) {
    llvm::Instruction *again = number.clone();
    for (llvm::Use &operand : again->operands())
      if (!llvm::isa<llvm::Constant>(operand) && shares.lookup(operand) <= 1)
        operand.set(copy(*llvm::cast<llvm::Instruction>(operand), place, shares));
    again->insertBefore(place.getIterator());
    again->setDebugLoc(place.getDebugLoc());
    return again;
  }

  /// Whether one scalar instruction computes a number of 32 bits, or a condition, before the loop.
  bool isCheap(llvm::Instruction &at, const llvm::Loop &loop) const {
    if (loop.contains(&at) || !uniform->isUniform(&at))
      return false;
    if (auto *compared = llvm::dyn_cast<llvm::ICmpInst>(&at))
      return compared->getOperand(0)->getType()->isIntegerTy(32);
    if (!at.getType()->isIntegerTy(32))
      return false;
    auto *operation = llvm::dyn_cast<llvm::BinaryOperator>(&at);
    return llvm::isa<llvm::SelectInst>(at) || (operation && !operation->isIntDivRem());
  }

  const tt::Uniformity *uniform = nullptr;
};
char Again::ID;
} // namespace

llvm::Pass *tt::createAgain() { return new Again(); }
