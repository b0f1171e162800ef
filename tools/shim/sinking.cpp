// Keeps LLVM from moving instructions to the block of their uses where that only makes more registers live.
//
// Two of LLVM's passes move an instruction as far down as its uses allow (`Sinking` of IR, `MachineSinking`), which saves
// work on ways that do not need it. Where every way needs it nothing is saved, and its operands stay in registers in its
// place. Neither pass counts registers there.

#include "sinking.h"
#include "silent.h"
#include "uniformity.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/TargetOpcodes.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Pass.h"

namespace {
/// Whether LLVM may move an instruction to another block.
bool isMovable(const llvm::Instruction &at) {
  auto *call = llvm::dyn_cast<llvm::CallBase>(&at);
  return !(call && call->isConvergent()) && !llvm::isa<llvm::PHINode>(at) && tt::isSilent(at);
}

/// Whether `at` is a matrix instruction of RDNA. LLVM 22 says of the intrinsic that all lanes execute it together, and of the instruction that
/// nothing keeps it from being moved to a block that fewer execute (`V_WMMA_*`; those of CDNA are kept).
bool isMovedApart(const llvm::Instruction &at) {
  auto *call = llvm::dyn_cast<llvm::CallBase>(&at);
  llvm::Function *callee = call ? call->getCalledFunction() : nullptr;
  return callee && (callee->getName().starts_with("llvm.amdgcn.wmma") || callee->getName().starts_with("llvm.amdgcn.swmmac"));
}

/// Moves instructions up and gives them a use in their own block, which keeps LLVM from moving them to the block of their uses, where that
/// only makes more registers live: that block runs whenever theirs does, and the operands that live on take more
/// registers than the result. LLVM's pass looks at no registers. Functions of a device library branch (`erf`, `sin`); behind each
/// call of one it would leave what the result is computed from, for as long as all the others take.
class Hold : public llvm::FunctionPass {
public:
  static char ID;
  explicit Hold(bool assembled) : FunctionPass(ID), assembled(assembled) {}
  llvm::StringRef getPassName() const override { return "Hold what takes fewer registers than its operands"; }
  void getAnalysisUsage(llvm::AnalysisUsage &usage) const override {
    usage.setPreservesCFG();
    tt::Uniformity::require(usage);
  }

  bool runOnFunction(llvm::Function &function) override {
    if (function.size() == 1)
      return false;
    bool values = !assembled || calls(function);
    bool loads = assembled && loadsForOtherBlocks(function);
    if (!values && !loads)
      return false;
    layout = &function.getDataLayout();
    dominators.recalculate(function);
    after.recalculate(function);
    uses_first.assign(llvm::po_begin(&function), llvm::po_end(&function));
    llvm::SmallVector<llvm::Instruction *> held;
    if (loads)
      holdLoads(held);
    if (!values)
      return hold(function, held);
    tt::Uniformity known(*this, function);
    uniform = &known;
    bool changed = raise();
    findTargets();
    for (llvm::Instruction &at : llvm::instructions(function))
      if (isMovedApart(at) && !at.use_empty() && targetOf(at) != at.getParent())
        held.push_back(&at);
    for (llvm::BasicBlock *block : uses_first) {
      holdTogether(*block, held);
      for (llvm::Instruction &at : llvm::reverse(*block)) {
        if (!targets.contains(&at))
          continue;
        // What it is for may stay by now.
        llvm::BasicBlock *target = targetOf(at);
        unsigned own = words(at);
        bool hold = target != block && after.dominates(target, block) && own && livingOn(at, *block) > own;
        if (hold)
          held.push_back(&at);
        if (hold || target == block)
          targets.erase(&at);
      }
    }
    targets.clear();
    return hold(function, held) || changed;
  }

private:
  /// Gives instructions a use at the end of their block.
  static bool hold(llvm::Function &function, llvm::ArrayRef<llvm::Instruction *> held) {
    for (llvm::Instruction *at : held) {
      auto *use = llvm::Intrinsic::getOrInsertDeclaration(function.getParent(), llvm::Intrinsic::fake_use);
      llvm::CallInst::Create(use, {at}, "", at->getParent()->getTerminator()->getIterator());
    }
    return !held.empty();
  }

  /// Registers of loads that are held in one block.
  static constexpr unsigned MostLoaded = 64;

  /// Holds loads from global memory, which are under way while what comes before their uses is computed, as masked ones are, which LLVM does not
  /// move.
  void holdLoads(llvm::SmallVectorImpl<llvm::Instruction *> &held) const {
    for (llvm::BasicBlock *block : uses_first) {
      unsigned all = 0;
      for (llvm::Instruction &at : *block) {
        if (!isLoad(at) || at.use_empty())
          continue;
        llvm::BasicBlock *target = targetOf(at);
        unsigned own = registers(at.getType());
        if (!target || target == block || !after.dominates(target, block) || all + own > MostLoaded)
          continue;
        all += own;
        held.push_back(&at);
      }
    }
  }

  /// Whether an instruction loads from global memory, and LLVM may move it.
  static bool isLoad(const llvm::Instruction &at) {
    auto *load = llvm::dyn_cast<llvm::LoadInst>(&at);
    return load && load->isSimple() && load->getPointerAddressSpace() == GlobalSpace;
  }

  /// Whether some load has a use in another block: in most functions none has.
  static bool loadsForOtherBlocks(llvm::Function &function) {
    return llvm::any_of(llvm::instructions(function),
                        [](llvm::Instruction &at) { return isLoad(at) && at.isUsedOutsideOfBlock(at.getParent()); });
  }

  /// The address space of global memory (LLVM, "User Guide for NVPTX Back-end").
  static constexpr unsigned GlobalSpace = 1;

  /// Whether a function calls another one that stays one.
  static bool calls(llvm::Function &function) {
    return llvm::any_of(llvm::instructions(function), [](llvm::Instruction &at) {
      auto *call = llvm::dyn_cast<llvm::CallBase>(&at);
      llvm::Function *callee = call ? call->getCalledFunction() : nullptr;
      return callee && !callee->isDeclaration();
    });
  }

  /// What sinking may cost, in registers.
  static constexpr unsigned FewRegisters = 32;
  /// Instructions that are looked at together.
  static constexpr unsigned MostTogether = 16;

  /// The block to which LLVM would move an instruction: the last one that dominates all uses, wherever those go.
  llvm::BasicBlock *targetOf(llvm::Instruction &at) const {
    llvm::BasicBlock *target = nullptr;
    for (llvm::Use &use : at.uses()) {
      auto *user = llvm::cast<llvm::Instruction>(use.getUser());
      llvm::BasicBlock *in = user->getParent();
      if (auto *phi = llvm::dyn_cast<llvm::PHINode>(user))
        in = phi->getIncomingBlock(use);
      else if (auto moved = targets.find(user); moved != targets.end())
        in = moved->second;
      target = target ? dominators.findNearestCommonDominator(target, in) : in;
    }
    return target;
  }

  /// Finds what LLVM would move.
  void findTargets() {
    for (llvm::BasicBlock *block : uses_first) {
      for (llvm::Instruction &at : llvm::reverse(*block)) {
        if (at.use_empty() || !isMovable(at))
          continue;
        if (llvm::BasicBlock *target = targetOf(at); target != block)
          targets[&at] = target;
      }
    }
  }

  /// Vector registers of a number, an address or a vector: what all lanes have alike and conditions are in scalar ones.
  unsigned words(llvm::Value &value) const {
    llvm::Type *type = value.getType();
    if (!type->isSized() || type->isAggregateType() || type->isIntOrIntVectorTy(1) || uniform->isUniform(&value))
      return 0;
    return registers(type);
  }

  /// Registers of 32 bits that a type takes.
  unsigned registers(llvm::Type *type) const { return (layout->getTypeSizeInBits(type).getFixedValue() + 31) / 32; }

  /// Moves instructions back up to the last of their operands: InstCombine moves them, too, to a block that returns. What is computed in
  /// the block for an instruction moves with it: of a polynomial whose coefficients a table has, the loads stay where they are, and one
  /// sum alone may take no fewer registers than what it is made of.
  bool raise() {
    llvm::LoopInfo loops(dominators);
    bool changed = false;
    for (llvm::BasicBlock *block : llvm::reverse(uses_first)) {
      for (llvm::Instruction &at : llvm::make_early_inc_range(*block)) {
        Together together;
        llvm::BasicBlock *last = nullptr;
        if (!words(at) || !addTo(together, at, last) || !last || !after.dominates(block, last) ||
            loops.getLoopFor(last) != loops.getLoopFor(block))
          continue;
        unsigned own = 0;
        for (llvm::Instruction *one : together)
          if (llvm::any_of(one->users(), [&](llvm::User *user) { return !together.contains(llvm::cast<llvm::Instruction>(user)); }))
            own += words(*one);
        if (endingIn(together, *last) <= own)
          continue;
        for (llvm::Instruction *one : together)
          one->moveBefore(last->getTerminator()->getIterator());
        changed = true;
      }
    }
    return changed;
  }

  /// Instructions of a block, each behind its operands.
  using Together = llvm::SmallSetVector<llvm::Instruction *, MostTogether>;

  /// Adds an instruction and what its block computes for it; `last` is the last block that has any of their operands. False where
  /// one of them has to stay in its block, or where they are many.
  bool addTo(Together &together, llvm::Instruction &at, llvm::BasicBlock *&last) const {
    if (!isMovable(at) || !llvm::isSafeToSpeculativelyExecute(&at))
      return false;
    for (llvm::Value *operand : at.operand_values()) {
      auto *made = llvm::dyn_cast<llvm::Instruction>(operand);
      if (!made || together.contains(made))
        continue;
      if (made->getParent() == at.getParent()) {
        if (!addTo(together, *made, last))
          return false;
      } else if (!last || dominators.dominates(last, made->getParent())) {
        last = made->getParent();
      }
    }
    return together.size() < MostTogether && together.insert(&at);
  }

  /// Registers of operands that are used by these instructions last of all, if they are in a block.
  unsigned endingIn(const Together &together, llvm::BasicBlock &block) const {
    llvm::SmallPtrSet<llvm::Value *, MostTogether> seen;
    unsigned all = 0;
    auto ends = [&](llvm::User *user) {
      auto *by = llvm::cast<llvm::Instruction>(user);
      return together.contains(by) || endsBy(*by, block);
    };
    for (llvm::Instruction *one : together)
      for (llvm::Value *operand : one->operand_values())
        if (auto *made = llvm::dyn_cast<llvm::Instruction>(operand); !llvm::isa<llvm::Constant>(operand) && !(made && together.contains(made)))
          if (seen.insert(operand).second && llvm::all_of(operand->users(), ends))
            all += words(*operand);
    return all;
  }

  /// Registers that live on behind a block if an instruction of it is behind it, with what is computed there for that instruction alone:
  /// of operands that would else end in it.
  unsigned livingOn(llvm::Instruction &root, llvm::BasicBlock &block) const {
    llvm::SmallPtrSet<llvm::Value *, MostTogether> together{&root}, seen;
    llvm::SmallVector<llvm::Instruction *> todo{&root};
    unsigned all = 0;
    while (!todo.empty()) {
      llvm::Instruction *at = todo.pop_back_val();
      for (llvm::Value *operand : at->operand_values()) {
        if (llvm::isa<llvm::Constant>(operand) || together.contains(operand) || !seen.insert(operand).second)
          continue;
        auto within = [&](llvm::User *user) { return together.contains(user); };
        auto ends = [&](llvm::User *user) { return within(user) || endsBy(*llvm::cast<llvm::Instruction>(user), block); };
        auto *made = llvm::dyn_cast<llvm::Instruction>(operand);
        if (made && made->getParent() == &block && isMovable(*made) && together.size() < MostTogether &&
            llvm::all_of(made->users(), within)) {
          together.insert(made);
          todo.push_back(made);
        } else if (llvm::all_of(operand->users(), ends)) {
          all += words(*operand);
        }
      }
    }
    return all;
  }

  /// Holds instructions of a block that share operands, as the products of a dot do, where those would take more registers than the results. Whether
  /// the blocks of their uses run is not asked: lanes whose mask is off compute for nothing then, which costs less than the registers of all.
  void holdTogether(llvm::BasicBlock &block, llvm::SmallVectorImpl<llvm::Instruction *> &held) {
    llvm::EquivalenceClasses<llvm::Value *> shared;
    for (llvm::Instruction &at : block)
      if (targets.contains(&at))
        for (llvm::Value *operand : at.operand_values())
          if (!llvm::isa<llvm::Constant>(operand) && words(*operand))
            shared.unionSets(&at, operand);
    auto is_moved = [&](llvm::Value *member) {
      auto *made = llvm::dyn_cast<llvm::Instruction>(member);
      return made && made->getParent() == &block && targets.contains(made);
    };
    auto leaves = [&](llvm::User *user) { return llvm::cast<llvm::Instruction>(user)->getParent() != &block; };
    auto ends = [&](llvm::User *user) { return !leaves(user) || endsBy(*llvm::cast<llvm::Instruction>(user), block); };
    for (auto &set : shared) {
      if (!set->isLeader())
        continue;
      unsigned living = 0, results = 0;
      for (llvm::Value *member : shared.members(*set)) {
        if (is_moved(member))
          results += llvm::any_of(member->users(), leaves) ? words(*member) : 0;
        else if (llvm::all_of(member->users(), ends))
          living += words(*member);
      }
      if (living <= results + FewRegisters)
        continue;
      for (llvm::Value *member : shared.members(*set)) {
        if (!is_moved(member))
          continue;
        if (llvm::any_of(member->users(), leaves))
          held.push_back(llvm::cast<llvm::Instruction>(member));
        targets.erase(llvm::cast<llvm::Instruction>(member));
      }
    }
  }

  /// Whether a user needs nothing behind a block: it is in no later one and is not moved.
  bool endsBy(llvm::Instruction &user, llvm::BasicBlock &block) const {
    return !dominators.properlyDominates(&block, user.getParent()) && !targets.contains(&user);
  }

  bool assembled;
  const tt::Uniformity *uniform = nullptr;
  const llvm::DataLayout *layout = nullptr;
  llvm::DominatorTree dominators;
  llvm::PostDominatorTree after;
  llvm::SmallVector<llvm::BasicBlock *> uses_first;
  llvm::DenseMap<llvm::Instruction *, llvm::BasicBlock *> targets;
};
char Hold::ID;

/// Removes what `Hold` added, of which instructions were made.
class LetGo : public llvm::MachineFunctionPass {
public:
  static char ID;
  LetGo() : MachineFunctionPass(ID) {}
  llvm::StringRef getPassName() const override { return "Let go of what was held"; }
  void getAnalysisUsage(llvm::AnalysisUsage &usage) const override {
    usage.setPreservesAll();
    MachineFunctionPass::getAnalysisUsage(usage);
  }
  bool runOnMachineFunction(llvm::MachineFunction &function) override {
    bool changed = false;
    for (llvm::MachineBasicBlock &block : function) {
      for (llvm::MachineInstr &at : llvm::make_early_inc_range(block)) {
        if (at.getOpcode() != llvm::TargetOpcode::FAKE_USE)
          continue;
        at.eraseFromParent();
        changed = true;
      }
    }
    return changed;
  }
};
char LetGo::ID;
} // namespace

llvm::Pass *tt::createHold(bool assembled) { return new Hold(assembled); }
llvm::Pass *tt::createLetGo() { return new LetGo(); }
