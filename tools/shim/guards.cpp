// Accesses under one mask that follow each other: lowering to AMD GPUs branches around each access under a mask, and lanes take the same way
// around all that have one mask. LLVM joins such branches where it threads jumps, which it does not on targets whose lanes may take different
// ways; left apart, accesses next to each other are never one wider access, and each branch saves and restores the lanes that execute.

#include "silent.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/BasicBlock.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm-c/Core.h"
#include <optional>

using namespace llvm;

namespace {
/// Instructions between two accesses that may change sides with one of them without regard for registers.
constexpr unsigned FEW_BETWEEN = 16;
/// 32-bit registers that accesses under one branch may take where more lies between them: what was loaded waits for all of it.
constexpr unsigned MOST_HELD = 32;

/// A branch around a block without other ways in or out.
struct Guard {
  BranchInst *branch;
  BasicBlock *act, *done;

  /// The one at the end of `from`, if there is one.
  static std::optional<Guard> of(BasicBlock &from) {
    auto *branch = dyn_cast<BranchInst>(from.getTerminator());
    if (!branch || !branch->isConditional())
      return std::nullopt;
    for (unsigned way : {0u, 1u}) {
      BasicBlock *act = branch->getSuccessor(way), *done = branch->getSuccessor(1 - way);
      if (act != done && act != &from && done != &from && act->getSinglePredecessor() == &from && act->getSingleSuccessor() == done &&
          done->hasNPredecessors(2) && !isa<PHINode>(act->front()) && !act->hasAddressTaken() && comesBack(*act))
        return Guard{branch, act, done};
    }
    return std::nullopt;
  }

  /// Whether whoever acts goes on: what comes behind a call that does not return may be undefined there.
  static bool comesBack(const BasicBlock &act) {
    return all_of(act, [](const Instruction &at) { return isGuaranteedToTransferExecutionToSuccessor(&at); });
  }

  /// Whether `other` acts for the same lanes.
  bool isLike(const Guard &other) const {
    return branch->getCondition() == other.branch->getCondition() &&
           (branch->getSuccessor(0) == act) == (other.branch->getSuccessor(0) == other.act);
  }
};

/// 32-bit registers of what the accesses of `block` load or store.
unsigned held(const BasicBlock &block, const DataLayout &layout) {
  uint64_t bits = 0;
  for (const Instruction &at : block) {
    Type *type = at.getType();
    if (auto *store = dyn_cast<StoreInst>(&at))
      type = store->getValueOperand()->getType();
    else if (!at.mayReadOrWriteMemory())
      continue;
    if (type->isSized())
      bits += alignTo(layout.getTypeSizeInBits(type), 32);
  }
  return bits / 32;
}

/// Joins a guard with those behind it that act for the same lanes.
class Joined {
public:
  explicit Joined(Guard first)
      : guard(first), layout(first.act->getDataLayout()), registers(held(*first.act, layout)), unseen(first.done->begin()) {}

  /// Takes in the guard at the end of `done`.
  bool takeNext() {
    auto next = Guard::of(*guard.done);
    if (!next || !next->isLike(guard) || next->done == guard.branch->getParent() || next->done == guard.act)
      return false;
    unsigned between = 0;
    for (; &*unseen != next->branch; ++unseen) {
      bool isGiven = isa<PHINode>(*unseen);
      if (!isGiven && !tt::isSilent(*unseen))
        return false;
      between += !isGiven;
      if (isGiven || any_of(unseen->operands(), [&](Value *operand) { return waits(operand); }))
        waiting.insert(&*unseen);
    }
    unsigned more = held(*next->act, layout);
    if (between > FEW_BETWEEN && registers + more > MOST_HELD)
      return false;
    if (!findNeeded(*next))
      return false;
    registers += more;
    merge(*next);
    return true;
  }

private:
  /// Whether `value` depends on what the guard gives.
  bool waits(Value *value) const {
    auto *at = dyn_cast<Instruction>(value);
    return at && waiting.contains(at);
  }

  /// Finds what is to run before the access of `next`: what depends on nothing of this guard goes before its branch, the rest along.
  bool findNeeded(const Guard &next) {
    before.clear();
    along.clear();
    SmallPtrSet<Instruction *, 16> found;
    for (Instruction &at : *next.act)
      for (Value *operand : at.operands())
        find(operand, found);
    for (PHINode &phi : next.done->phis())
      for (Value *given : phi.incoming_values())
        find(given, found);
    SmallPtrSet<Instruction *, 16> moves(along.begin(), along.end());
    for (Instruction *at : along) {
      auto *call = dyn_cast<CallBase>(at);
      if (call && call->isConvergent())
        return false;
      for (User *user : at->users()) {
        auto *by = cast<Instruction>(user);
        if (by->getParent() != next.act && !moves.contains(by))
          return false;
      }
    }
    return true;
  }

  /// Adds what `value` is computed from in `done`, each behind its operands. Sums may be thousands of instructions deep.
  void find(Value *value, SmallPtrSet<Instruction *, 16> &found) {
    SmallVector<std::pair<Instruction *, unsigned>> path;
    auto enter = [&](Value *one) {
      auto *at = dyn_cast<Instruction>(one);
      if (at && at->getParent() == guard.done && !isa<PHINode>(at) && found.insert(at).second)
        path.push_back({at, 0});
    };
    enter(value);
    while (!path.empty()) {
      auto &[at, operand] = path.back();
      if (operand < at->getNumOperands()) {
        enter(at->getOperand(operand++));
        continue;
      }
      (waiting.contains(at) ? along : before).push_back(at);
      path.pop_back();
    }
  }

  /// What `value` is where the guard acts, or where it does not.
  Value *within(Value *value, BasicBlock *from) const {
    auto *phi = dyn_cast<PHINode>(value);
    return phi && phi->getParent() == guard.done ? phi->getIncomingValueForBlock(from) : value;
  }

  void merge(const Guard &next) {
    BasicBlock *from = guard.branch->getParent(), *done = guard.done;
    Instruction *end = guard.act->getTerminator();
    for (Instruction *at : before)
      at->moveBefore(guard.branch->getIterator());
    for (Instruction *at : along) {
      at->moveBefore(end->getIterator());
      waiting.erase(at);
      useWithin(*at);
    }
    while (!next.act->front().isTerminator()) {
      Instruction &at = next.act->front();
      at.moveBefore(end->getIterator());
      useWithin(at);
    }
    for (PHINode &phi : make_early_inc_range(next.done->phis())) {
      auto *all = PHINode::Create(phi.getType(), 2, "", done->getFirstNonPHIIt());
      all->setDebugLoc(phi.getDebugLoc());
      all->addIncoming(within(phi.getIncomingValueForBlock(done), from), from);
      all->addIncoming(within(phi.getIncomingValueForBlock(next.act), guard.act), guard.act);
      phi.replaceAllUsesWith(all);
      phi.eraseFromParent();
      waiting.insert(all);
    }
    next.act->getTerminator()->eraseFromParent();
    next.branch->eraseFromParent();
    next.act->eraseFromParent();
    unseen = next.done->begin();
    next.done->replaceSuccessorsPhiUsesWith(done);
    done->splice(done->end(), next.done);
    next.done->replaceAllUsesWith(done);
    next.done->eraseFromParent();
  }

  void useWithin(Instruction &at) {
    for (Use &operand : at.operands())
      operand.set(within(operand, guard.act));
  }

  Guard guard;
  const DataLayout &layout;
  unsigned registers;
  /// The first instruction of `done` that is not looked at.
  BasicBlock::iterator unseen;
  /// What of `done` depends on what the guard gives.
  SmallPtrSet<Instruction *, 16> waiting;
  SmallVector<Instruction *> before, along;
};
}

extern "C" {
/// Whether a branch around accesses of `module` follows another one.
bool ttHasGuards(LLVMModuleRef module) {
  return any_of(*unwrap(module), [](Function &function) {
    return any_of(function, [](BasicBlock &block) {
      auto guard = Guard::of(block);
      return guard && Guard::of(*guard->done);
    });
  });
}

/// Joins branches around accesses of `module` that follow each other and have one condition. Says how many are no more.
size_t ttJoinGuards(LLVMModuleRef module) {
  size_t count = 0;
  for (Function &function : *unwrap(module))
    // What is joined is of blocks behind, which are no more then.
    for (auto block = function.begin(); block != function.end(); ++block) {
      auto guard = Guard::of(*block);
      if (!guard)
        continue;
      for (Joined joined(*guard); joined.takeNext();)
        ++count;
    }
  return count;
}
}
