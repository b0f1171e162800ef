// Has a loop that would not find room for its masks in scalar registers keep bounds instead.
//
// A matrix whose rows need a mask each, and columns too, is loaded where `row[i] && column < columns`. What is known of
// the rows before the loop is a mask of 64 lanes for each of them, two registers, even where all lanes have it alike. But then
// `column < (row[i] ? columns : least)` says the same, and the bound takes one register. It takes a vector instruction in the place of a
// scalar one, so that is only for loops whose scalar values would be spilled, to lanes of vector registers.

#include "masks.h"
#include "uniformity.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Pass.h"

namespace {
/// Scalar registers that a loop may fill with what it does not change (LLVM, "User Guide for AMDGPU Backend": there are 102
/// on gfx9); the others are for what it computes.
constexpr unsigned Available = 88;
/// Scalar registers of a condition that each of 64 lanes has.
constexpr unsigned MaskWords = 2;

class MaskBounds : public llvm::FunctionPass {
public:
  static char ID;
  MaskBounds() : FunctionPass(ID) {}
  llvm::StringRef getPassName() const override { return "Bounds in the place of masks"; }
  void getAnalysisUsage(llvm::AnalysisUsage &usage) const override {
    usage.setPreservesCFG();
    usage.addRequired<llvm::LoopInfoWrapperPass>();
    tt::Uniformity::require(usage);
  }

  bool runOnFunction(llvm::Function &function) override {
    auto &loops = getAnalysis<llvm::LoopInfoWrapperPass>().getLoopInfo();
    if (loops.empty())
      return false;
    tt::Uniformity known(*this, function);
    uniform = &known;
    bool changed = false;
    for (llvm::Loop *loop : loops.getLoopsInPreorder())
      changed |= bound(*loop);
    return changed;
  }

private:
  /// A condition of which one part is the same in all iterations, and for all lanes, and the other compares with a bound
  /// that is so, too.
  struct Condition {
    llvm::Instruction *both;
    llvm::CmpInst::Predicate order;
    llvm::Value *compared, *limit;
  };

  bool bound(llvm::Loop &loop) {
    llvm::BasicBlock *before = loop.getLoopPreheader();
    if (!before)
      return false;
    llvm::SmallPtrSet<llvm::Value *, 32> kept;
    llvm::MapVector<llvm::Value *, llvm::SmallVector<Condition>> masks;
    unsigned words = 0;
    for (llvm::BasicBlock *block : loop.blocks()) {
      for (llvm::Instruction &at : *block) {
        for (llvm::Value *operand : at.operand_values())
          if (isKept(*operand, loop) && kept.insert(operand).second)
            words += wordsOf(*operand, loop);
        read(at, loop, masks);
      }
    }
    if (words <= Available)
      return false;
    bool changed = false;
    for (auto &[same, conditions] : masks)
      if (isReplaced(*same, loop, conditions)) {
        replace(*same, conditions, *before);
        changed = true;
      }
    return changed;
  }

  /// Whether the loop needs a mask no more with one bound in the place of these conditions.
  static bool isReplaced(llvm::Value &same, const llvm::Loop &loop, llvm::ArrayRef<Condition> conditions) {
    const Condition &first = conditions.front();
    auto alike = [&](const Condition &other) { return other.limit == first.limit && other.order == first.order; };
    auto inside = [&](llvm::User *user) { return loop.contains(llvm::cast<llvm::Instruction>(user)); };
    return llvm::all_of(conditions, alike) && size_t(llvm::count_if(same.users(), inside)) == conditions.size();
  }

  static void replace(llvm::Value &same, llvm::ArrayRef<Condition> conditions, llvm::BasicBlock &before) {
    const Condition &first = conditions.front();
    unsigned bits = first.limit->getType()->getIntegerBitWidth();
    auto least = llvm::CmpInst::isSigned(first.order) ? llvm::APInt::getSignedMinValue(bits)
                                                      : llvm::APInt::getMinValue(bits);
    llvm::Value *limit =
        llvm::SelectInst::Create(&same, first.limit, llvm::ConstantInt::get(first.limit->getType(), least), "",
                                 before.getTerminator()->getIterator());
    for (const Condition &condition : conditions) {
      auto *below = new llvm::ICmpInst(condition.both->getIterator(), condition.order, condition.compared, limit);
      below->setDebugLoc(condition.both->getDebugLoc());
      condition.both->replaceAllUsesWith(below);
      condition.both->eraseFromParent();
    }
  }

  /// Whether a value is in scalar registers throughout a loop.
  bool isKept(llvm::Value &value, const llvm::Loop &loop) const {
    return (llvm::isa<llvm::Instruction>(value) || llvm::isa<llvm::Argument>(value)) && loop.isLoopInvariant(&value) &&
           uniform->isUniform(&value);
  }

  unsigned wordsOf(llvm::Value &value, const llvm::Loop &loop) const {
    llvm::Type *type = value.getType();
    if (type->isIntegerTy(1))
      return MaskWords;
    if (!type->isSized())
      return 0;
    auto bits = loop.getHeader()->getDataLayout().getTypeSizeInBits(type);
    return (bits.getFixedValue() + 31) / 32;
  }

  /// Adds an instruction to the conditions with its mask, if it is one.
  void read(llvm::Instruction &at, const llvm::Loop &loop,
            llvm::MapVector<llvm::Value *, llvm::SmallVector<Condition>> &masks) const {
    using namespace llvm::PatternMatch;
    llvm::Value *same, *other, *compared, *limit;
    llvm::CmpPredicate predicate;
    if (!match(&at, m_And(m_Value(same), m_Value(other))) || !at.getType()->isIntegerTy(1))
      return;
    if (!isKept(*same, loop))
      std::swap(same, other);
    if (!isKept(*same, loop) || !match(other, m_ICmp(predicate, m_Value(compared), m_Value(limit))))
      return;
    llvm::CmpInst::Predicate order = predicate;
    if (order == llvm::CmpInst::ICMP_SGT || order == llvm::CmpInst::ICMP_UGT) {
      std::swap(compared, limit);
      order = llvm::CmpInst::getSwappedPredicate(order);
    }
    bool less = order == llvm::CmpInst::ICMP_SLT || order == llvm::CmpInst::ICMP_ULT;
    if (less && limit->getType()->isIntegerTy(32) && loop.isLoopInvariant(limit) &&
        (llvm::isa<llvm::ConstantInt>(limit) || isKept(*limit, loop)))
      masks[same].push_back({&at, order, compared, limit});
  }

  const tt::Uniformity *uniform = nullptr;
};
char MaskBounds::ID;
} // namespace

llvm::Pass *tt::createMaskBounds() { return new MaskBounds(); }
