#include "halves.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace {
/// Significant bits of a single: integers of as many are exact.
constexpr unsigned SingleBits = 24;

/// Whether a conversion gives the same number by way of a single. What is too large to be exact there is infinite as `f16`, which
/// ends at 65,504.
bool isExact(const CastInst &convert, const DataLayout &layout) {
  const Value *number = convert.getOperand(0);
  if (convert.getType()->getScalarType()->isHalfTy())
    return true;
  if (isa<UIToFPInst>(convert))
    return computeKnownBits(number, layout).countMaxActiveBits() <= SingleBits;
  return ComputeMaxSignificantBits(number, layout) <= SingleBits;
}
/// Whether something computes with a number or packs it with another one: alone it takes as many instructions by way of a single, of
/// which more is asked.
bool isPacked(const Instruction &number) {
  return number.getType()->isVectorTy() || any_of(number.users(), [](const User *user) { return isa<InsertElementInst, BinaryOperator, IntrinsicInst>(user); });
}
} // namespace

void tt::convertBySingles(Function &function) {
  const DataLayout &layout = function.getDataLayout();
  for (Instruction &at : make_early_inc_range(instructions(function))) {
    auto *convert = dyn_cast<CastInst>(&at);
    if (!convert || !isa<SIToFPInst, UIToFPInst>(convert) || !at.getType()->getScalarType()->is16bitFPTy())
      continue;
    unsigned bits = convert->getSrcTy()->getScalarSizeInBits();
    // A selection of two halves has ptxas keep predicates (docs/ptxas.md, "Integers as halves").
    if (bits == 1 || bits > 32)
      continue;
    IRBuilder<> builder(convert);
    if (!isPacked(*convert) || !isExact(*convert, layout))
      continue;
    Type *wide = convert->getType()->getWithNewType(builder.getFloatTy());
    Value *single = builder.CreateCast(convert->getOpcode(), convert->getOperand(0), wide);
    convert->replaceAllUsesWith(builder.CreateFPTrunc(single, convert->getType()));
    convert->eraseFromParent();
  }
}
