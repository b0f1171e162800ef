// Branches of device functions as selections. A function is called once for each element of a thread, and lanes of a warp hold other
// elements: most warps take both ways of a branch, one after the other, with the instructions that part the lanes and bring them
// together, and ptxas overlaps nothing of one element with another. LLVM speculates four instructions at most, and no assembly.

#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm-c/Core.h"

using namespace llvm;

namespace {
/// Instructions that a way may have to be taken by all lanes.
constexpr unsigned LongestWay = 16;

/// Whether an instruction does no harm where its result is not needed.
bool isHarmless(const Instruction &at) {
  if (auto *call = dyn_cast<CallInst>(&at)) {
    auto *assembly = dyn_cast<InlineAsm>(call->getCalledOperand());
    if (assembly ? !assembly->hasSideEffects() : call->getIntrinsicID() != Intrinsic::not_intrinsic && call->willReturn())
      return call->doesNotAccessMemory() && !call->isConvergent();
  }
  return isSafeToSpeculativelyExecute(&at);
}

/// Whether `way` leads from `from` to one block alone, by few instructions that do no harm.
bool isShort(const BasicBlock &way, const BasicBlock &from) {
  auto *branch = dyn_cast<BranchInst>(way.getTerminator());
  return branch && branch->isUnconditional() && way.getSinglePredecessor() == &from && way.size() <= LongestWay + 1 &&
         !isa<PHINode>(way.front()) && all_of(make_range(way.begin(), std::prev(way.end())), isHarmless);
}

/// Whether a condition compares with a bound that only denormal, infinite numbers and NaN are beyond: few warps have any, and take
/// one way.
bool isRare(const Value *condition) {
  auto *compare = dyn_cast<CmpInst>(condition);
  if (!compare)
    return false;
  for (const Value *operand : compare->operands()) {
    if (auto *number = dyn_cast<ConstantFP>(operand)) {
      const APFloat &value = number->getValueAPF();
      APFloat smallest = APFloat::getSmallestNormalized(value.getSemantics());
      if (value.isInfinity() || (!value.isZero() && abs(value).compare(smallest) != APFloat::cmpGreaterThan))
        return true;
    }
    // The bits of a single.
    if (auto *number = dyn_cast<ConstantInt>(operand); number && number->getBitWidth() == 32) {
      uint64_t bits = number->getZExtValue() & 0x7fffffff;
      if (bits >= 0x7f7fffff || bits == 0x00800000 || bits == 0x007fffff || bits == 0x00100000 || bits == 0x000fffff)
        return true;
    }
  }
  return false;
}

/// Makes the branch at the end of `block` a selection, where both of its ways are short and end in the same block. Where one has
/// nothing to do, warps of which all lanes take it save what the other one does.
bool select(BasicBlock &block) {
  auto *branch = dyn_cast<BranchInst>(block.getTerminator());
  if (!branch || !branch->isConditional() || isRare(branch->getCondition()))
    return false;
  BasicBlock *ways[] = {branch->getSuccessor(0), branch->getSuccessor(1)};
  BasicBlock *end = ways[0]->getSingleSuccessor();
  if (!end || end == &block || end != ways[1]->getSingleSuccessor() || !isShort(*ways[0], block) || !isShort(*ways[1], block))
    return false;
  for (BasicBlock *way : ways)
    block.splice(branch->getIterator(), way, way->begin(), std::prev(way->end()));
  IRBuilder<> builder(branch);
  for (PHINode &phi : end->phis()) {
    Value *values[] = {phi.getIncomingValueForBlock(ways[0]), phi.getIncomingValueForBlock(ways[1])};
    phi.addIncoming(values[0] == values[1] ? values[0] : builder.CreateSelect(branch->getCondition(), values[0], values[1]), &block);
    for (BasicBlock *way : ways)
      phi.removeIncomingValue(way, /*DeletePHIIfEmpty=*/false);
  }
  builder.CreateBr(end);
  branch->eraseFromParent();
  for (BasicBlock *way : ways)
    way->eraseFromParent();
  MergeBlockIntoPredecessor(end);
  return true;
}
} // namespace

extern "C" {
/// Makes selections of branches of the functions of `module` whose ways are both short, and says how many there were.
unsigned ttSelect(LLVMModuleRef module) {
  unsigned made = 0;
  for (Function &function : *unwrap(module)) {
    if (function.isDeclaration())
      continue;
    // Inner branches first: what they leave may be a short way of an outer one.
    SmallVector<BasicBlock *> blocks(post_order(&function));
    for (BasicBlock *block : blocks)
      made += select(*block);
  }
  return made;
}
}
