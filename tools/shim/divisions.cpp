#include "divisions.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

using namespace llvm;

namespace {
/// A divisor before a loop: its magnitude, all bits of its sign, and 2^32 over the magnitude, rounded down, or a little less.
struct Divisor {
  Value *magnitude, *sign, *reciprocal;
};

/// A divisor, where its reciprocal is known, and whether it is signed.
using Group = std::tuple<Value *, BasicBlock *, unsigned>;

/// What is divided, by what, and whether both are signed.
using Operands = std::tuple<Value *, Value *, unsigned>;

/// A quotient and a remainder of magnitudes.
struct Result {
  Value *quotient, *remainder;
};

bool isSigned(const Instruction &at) {
  return at.getOpcode() == Instruction::SDiv || at.getOpcode() == Instruction::SRem;
}

bool isQuotient(const Instruction &at) {
  return at.getOpcode() == Instruction::SDiv || at.getOpcode() == Instruction::UDiv;
}

bool isDivision(const Instruction &at) {
  auto *operation = dyn_cast<BinaryOperator>(&at);
  return operation && operation->isIntDivRem() && operation->getType()->isIntegerTy(32) &&
         !isa<Constant>(operation->getOperand(1));
}

class Divisions {
public:
  explicit Divisions(Function &function) : function(function), dominators(function), loops(dominators) {}

  void run() {
    SmallVector<Instruction *> found;
    DenseMap<Group, SmallPtrSet<Value *, 4>> divided;
    for (Instruction &at : instructions(function))
      if (isDivision(at)) {
        found.push_back(&at);
        divided[{at.getOperand(1), at.getParent(), isSigned(at)}].insert(at.getOperand(0));
      }
    for (Instruction *at : found)
      if (BasicBlock *before = place(*at))
        replace(*at, before->getTerminator());
      else if (divided[{at->getOperand(1), at->getParent(), isSigned(*at)}].size() > 1)
        replace(*at, at);
    // Not before: what is erased may be a key of results.
    for (Instruction *at : replaced)
      at->eraseFromParent();
  }

private:
  Function &function;
  DominatorTree dominators;
  LoopInfo loops;
  DenseMap<Group, Divisor> divisors;
  DenseMap<Operands, Result> results;
  SmallVector<Instruction *> replaced;

  /// The block before the loop around `at`, if it does not change the divisor. Only where it has no other in it: a reciprocal that
  /// waits through one takes registers there.
  BasicBlock *place(const Instruction &at) {
    Loop *loop = loops.getLoopFor(at.getParent());
    bool moves = loop && loop->isInnermost() && loop->isLoopInvariant(at.getOperand(1));
    return moves ? loop->getLoopPreheader() : nullptr;
  }

  bool isNegative(Value *value) { return !isKnownNonNegative(value, SimplifyQuery(function.getDataLayout())); }

  /// All bits as the sign of `value`, or none where it has no sign.
  static Value *sign(IRBuilder<> &builder, Value *value) { return builder.CreateAShr(value, 31); }

  /// `value` without its sign, where it has one.
  static Value *magnitude(IRBuilder<> &builder, Value *value, Value *sign) {
    return sign ? builder.CreateBinaryIntrinsic(Intrinsic::abs, value, builder.getFalse()) : value;
  }

  /// `value`, which is not negative, with a sign.
  static Value *signedAs(IRBuilder<> &builder, Value *value, Value *sign) {
    return sign ? builder.CreateSub(builder.CreateXor(value, sign), sign) : value;
  }

  /// The upper half of a product.
  static Value *upperHalf(IRBuilder<> &builder, Value *left, Value *right) {
    Type *wide = builder.getInt64Ty();
    Value *product = builder.CreateMul(builder.CreateZExt(left, wide), builder.CreateZExt(right, wide));
    return builder.CreateTrunc(builder.CreateLShr(product, 32), builder.getInt32Ty());
  }

  Divisor divisor(Value *value, Instruction *before, bool isSigned) {
    Divisor &known = divisors[{value, before->getParent(), isSigned}];
    auto *made = dyn_cast_or_null<Instruction>(known.reciprocal);
    if (made && dominators.dominates(made, before))
      return known;
    IRBuilder<> builder(before);
    Value *negative = isSigned && isNegative(value) ? sign(builder, value) : nullptr;
    Value *size = magnitude(builder, value, negative);
    Value *number = builder.CreateUIToFP(size, builder.getFloatTy());
    Value *inverse = builder.CreateIntrinsic(Intrinsic::nvvm_rcp_approx_ftz_f, {}, {number});
    // 2^32 less four units of 2^-24 of it. The product exceeds what it stands for by less: the inverse is off by one unit in its last place
    // at most (PTX ISA, "rcp"), the number and the product by half of one, and where one of these is the largest share of a number another
    // is not: 3.5 in all. So what comes of it is never too large, for which a step of Newton's would be wrong.
    constexpr float Scale = 4294966272.0f;
    Value *scaled = builder.CreateFMul(inverse, ConstantFP::get(builder.getFloatTy(), Scale));
    Value *first = builder.CreateFPToUI(scaled, builder.getInt32Ty());
    // A step of Newton's.
    Value *missing = builder.CreateMul(builder.CreateNeg(size), first);
    Value *reciprocal = builder.CreateAdd(first, upperHalf(builder, first, missing));
    return known = Divisor{size, negative, reciprocal};
  }

  void replace(Instruction &at, Instruction *before) {
    bool hasSigns = isSigned(at);
    Value *numerator = at.getOperand(0);
    Divisor by = divisor(at.getOperand(1), before, hasSigns);
    IRBuilder<> builder(&at);
    Value *negative = hasSigns && isNegative(numerator) ? sign(builder, numerator) : nullptr;
    Result &found = results[Operands(numerator, at.getOperand(1), hasSigns)];
    auto *known = dyn_cast_or_null<Instruction>(found.remainder);
    if (!known || !dominators.dominates(known, &at))
      found = divide(builder, magnitude(builder, numerator, negative), by);
    Value *result = isQuotient(at) ? found.quotient : found.remainder;
    if (isQuotient(at) && by.sign)
      negative = negative ? builder.CreateXor(negative, by.sign) : by.sign;
    result = signedAs(builder, result, negative);
    result->takeName(&at);
    at.replaceAllUsesWith(result);
    replaced.push_back(&at);
  }

  /// The quotient by the reciprocal is too small by two at most.
  static Result divide(IRBuilder<> &builder, Value *numerator, const Divisor &by) {
    Value *quotient = upperHalf(builder, numerator, by.reciprocal);
    Value *remainder = builder.CreateSub(numerator, builder.CreateMul(quotient, by.magnitude));
    for (int step = 0; step < 2; ++step) {
      Value *isMore = builder.CreateICmpUGE(remainder, by.magnitude);
      quotient = builder.CreateSelect(isMore, builder.CreateAdd(quotient, builder.getInt32(1)), quotient);
      // A difference below zero is a large number.
      remainder = builder.CreateBinaryIntrinsic(Intrinsic::umin, remainder, builder.CreateSub(remainder, by.magnitude));
    }
    return {quotient, remainder};
  }
};
} // namespace

namespace tt {
void divideByReciprocals(Function &function) {
  if (any_of(instructions(function), isDivision))
    Divisions(function).run();
}
} // namespace tt
