#include "counters.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace {
/// A counter whose lower half is compared at the end of an iteration.
struct Counter {
  PHINode *phi;
  Instruction *next;
  ConstantInt *step;
};

std::optional<Counter> counter(Value *compared) {
  Value *next, *before;
  ConstantInt *step;
  if (!compared->getType()->isIntegerTy(32) || !match(compared, m_Trunc(m_Value(next))) ||
      !match(next, m_c_Add(m_Value(before), m_ConstantInt(step))) || !next->getType()->isIntegerTy(64))
    return std::nullopt;
  auto *phi = dyn_cast<PHINode>(before);
  if (!phi || phi->getNumIncomingValues() != 2 || !is_contained(phi->incoming_values(), next))
    return std::nullopt;
  return Counter{phi, cast<Instruction>(next), step};
}

/// The comparison that a block ends by.
ICmpInst *testOf(BasicBlock &block) {
  auto *branch = dyn_cast<BranchInst>(block.getTerminator());
  return branch && branch->isConditional() ? dyn_cast<ICmpInst>(branch->getCondition()) : nullptr;
}

/// Whether `next` is what a counter is in the iteration behind `latch`, and nothing but that and `test` uses it.
bool onlyCounts(Value *next, ICmpInst *test, BasicBlock &latch) {
  Value *before;
  if (!match(next, m_c_Add(m_Value(before), m_Value())))
    return false;
  auto *phi = dyn_cast<PHINode>(before);
  if (!phi || phi->getBasicBlockIndex(&latch) < 0 || phi->getIncomingValueForBlock(&latch) != next)
    return false;
  auto isCount = [&](User *user) { return user == phi || user == test; };
  return all_of(next->users(), isCount) && count(phi->incoming_values(), next) == 1;
}

/// Has the lower half of `wide`, wherever it is used, be `narrow`.
void replaceHalf(Value *wide, Value *narrow) {
  for (User *user : make_early_inc_range(wide->users()))
    if (auto *half = dyn_cast<TruncInst>(user); half && half->getType() == narrow->getType()) {
      half->replaceAllUsesWith(narrow);
      half->eraseFromParent();
    }
}

/// A counter beside `of`, and what it is behind an iteration, computed at `place`: it begins by what `begin` makes of that one.
std::pair<PHINode *, Value *> beside(Counter of, Type *type, Instruction *place,
                                     function_ref<Value *(IRBuilder<> &, Value *)> begin) {
  IRBuilder<> builder(of.phi);
  auto *phi = builder.CreatePHI(type, 2);
  builder.SetInsertPoint(place);
  Value *next = builder.CreateAdd(phi, builder.CreateTrunc(of.step, type));
  for (auto [value, block] : zip(of.phi->incoming_values(), of.phi->blocks())) {
    builder.SetInsertPoint(block->getTerminator());
    phi->addIncoming(value == of.next ? next : begin(builder, value), block);
  }
  return {phi, next};
}

void split(Counter of) {
  Type *type = Type::getInt32Ty(of.phi->getContext());
  auto half = [&](IRBuilder<> &builder, Value *value) { return builder.CreateTrunc(value, type); };
  auto [phi, next] = beside(of, type, of.next, half);
  replaceHalf(of.next, next);
  replaceHalf(of.phi, phi);
}

/// The counter of the loop that `latch` ends which is `value` before or behind an iteration, if it is one, and how much less
/// than behind an iteration `value` is.
std::optional<std::pair<Counter, APInt>> counterOf(Value *value, BasicBlock &latch) {
  auto *phi = dyn_cast<PHINode>(value);
  Value *before;
  if (!phi && match(value, m_c_Add(m_Value(before), m_ConstantInt())))
    phi = dyn_cast<PHINode>(before);
  if (!phi || phi->getNumIncomingValues() != 2 || phi->getBasicBlockIndex(&latch) < 0)
    return std::nullopt;
  Value *next = phi->getIncomingValueForBlock(&latch);
  ConstantInt *step;
  if (!match(next, m_c_Add(m_Specific(phi), m_ConstantInt(step))) || (value != phi && value != next))
    return std::nullopt;
  APInt less = value == phi ? step->getValue() : APInt::getZero(step->getBitWidth());
  return std::pair(Counter{phi, cast<Instruction>(next), step}, less);
}

/// Where `compared`, at the end of `latch`, is a counter and a constant, and nothing else uses it: has it be a counter of its own,
/// which begins by the constant later.
bool countApart(Instruction *compared, BasicBlock &latch) {
  Value *value;
  ConstantInt *constant;
  if (!compared || !compared->hasOneUse() || !match(compared, m_c_Add(m_Value(value), m_ConstantInt(constant))))
    return false;
  auto found = counterOf(value, latch);
  if (!found || found->first.next == compared)
    return false;
  APInt ahead = constant->getValue() - found->second;
  auto later = [&](IRBuilder<> &builder, Value *value) { return builder.CreateAdd(value, builder.getInt(ahead)); };
  Value *next = beside(found->first, compared->getType(), compared, later).second;
  compared->replaceAllUsesWith(next);
  compared->eraseFromParent();
  return true;
}
} // namespace

namespace tt {
void splitCounters(Function &function) {
  for (BasicBlock &block : function) {
    ICmpInst *test = testOf(block);
    if (!test)
      continue;
    for (Value *compared : {test->getOperand(0), test->getOperand(1)}) {
      if (std::optional<Counter> found = counter(compared)) {
        split(*found);
        break;
      }
      if (countApart(dyn_cast<Instruction>(compared), block))
        break;
    }
  }
}

void countLast(Function &function) {
  for (BasicBlock &block : function) {
    ICmpInst *test = testOf(block);
    if (!test || !test->hasOneUse())
      continue;
    for (Value *compared : {test->getOperand(0), test->getOperand(1)})
      if (onlyCounts(compared, test, block)) {
        test->moveBefore(block.getTerminator()->getIterator());
        cast<Instruction>(compared)->moveBefore(test->getIterator());
        break;
      }
  }
}
} // namespace tt
