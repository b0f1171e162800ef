#include "booleans.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;

namespace {
/// Booleans that may live across an access before any is made an integer: one or two more than ptxas has predicates for
/// cost less as bits than all of them as integers.
constexpr unsigned Most = 8;

/// Links of a chain that is worth integers.
constexpr unsigned ShortestChain = 3;

bool isBoolean(const Value *value) { return value->getType()->isIntegerTy(1); }

/// What ptxas moves nothing across: accesses to memory.
bool isAccess(const Instruction &at) {
  if (isa<LoadInst, StoreInst, AtomicRMWInst, AtomicCmpXchgInst>(at))
    return true;
  auto *call = dyn_cast<CallBase>(&at);
  return call && !isa<IntrinsicInst>(call) && !call->doesNotAccessMemory();
}

/// The operands of a conjunction or disjunction, which may be a `select`.
struct Junction {
  Value *left, *right;
  bool isAnd;
  /// The right one is not looked at where the left one decides.
  bool isLazy;
};

std::optional<Junction> junction(Instruction *at) {
  using namespace PatternMatch;
  if (!isBoolean(at))
    return std::nullopt;
  Value *left, *right;
  bool isLazy = isa<SelectInst>(at);
  if (match(at, m_LogicalAnd(m_Value(left), m_Value(right))))
    return Junction{left, right, true, isLazy};
  if (match(at, m_LogicalOr(m_Value(left), m_Value(right))))
    return Junction{left, right, false, isLazy};
  return std::nullopt;
}

/// The booleans of a function, and which of them are to be integers.
class Booleans {
public:
  explicit Booleans(Function &function) : function(function), order(&function) {
    for (Instruction &at : instructions(function)) {
      if (!isBoolean(&at))
        continue;
      numbers[&at] = unsigned(all.size());
      all.push_back(&at);
      candidates += isCandidate(&at);
    }
  }

  void keep() {
    if (all.size() <= Most || candidates == 0)
      return;
    choose();
    if (kept.empty())
      return;
    spread();
    make();
    replace();
  }

private:
  static bool isCandidate(Instruction *at) { return isa<PHINode>(at) || junction(at); }

  /// The number of a boolean that an instruction gives.
  std::optional<unsigned> number(const Value *value) const {
    auto found = numbers.find(value);
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
  }

  void use(BitVector &live, const Instruction &at) const {
    for (const Value *operand : at.operands())
      if (std::optional<unsigned> boolean = number(operand))
        live.set(*boolean);
  }

  /// Goes through a block from its end, where `live` live, to its begin; `each` sees what lives behind each instruction.
  template <typename Each> void back(const BasicBlock &block, BitVector &live, Each each) const {
    for (const Instruction &at : reverse(block)) {
      each(at, live);
      if (std::optional<unsigned> boolean = number(&at))
        live.reset(*boolean);
      // What a phi takes lives at the end of where it comes from.
      if (!isa<PHINode>(at))
        use(live, at);
    }
  }

  BitVector liveAtEnd(const BasicBlock &block, const DenseMap<const BasicBlock *, BitVector> &atBegin) const {
    BitVector live(all.size());
    for (const BasicBlock *next : successors(&block)) {
      auto found = atBegin.find(next);
      if (found != atBegin.end())
        live |= found->second;
      for (const PHINode &phi : next->phis())
        if (std::optional<unsigned> boolean = number(phi.getIncomingValueForBlock(&block)))
          live.set(*boolean);
    }
    return live;
  }

  /// Chooses what lives across an access beside too many others.
  void choose() {
    DenseMap<const BasicBlock *, BitVector> atBegin;
    SmallVector<BasicBlock *> blocks(order.begin(), order.end());
    for (bool changed = true; changed;) {
      changed = false;
      for (const BasicBlock *block : reverse(blocks)) {
        BitVector live = liveAtEnd(*block, atBegin);
        back(*block, live, [](const Instruction &, const BitVector &) {});
        BitVector &known = atBegin[block];
        if (known != live) {
          known = std::move(live);
          changed = true;
        }
      }
    }
    BitVector chosen(all.size());
    for (const BasicBlock *block : blocks) {
      BitVector live = liveAtEnd(*block, atBegin);
      back(*block, live, [&](const Instruction &at, const BitVector &behind) {
        if (isAccess(at) && behind.count() > Most)
          chosen |= behind;
      });
    }
    for (unsigned boolean : chosen.set_bits())
      if (isCandidate(all[boolean]) && all[boolean]->hasOneUse())
        kept.insert(all[boolean]);
    dropShort();
  }

  /// Leaves predicates what is in a chain, each link of which is an operand of the next one, of less than three links: to make an
  /// integer of the first one and a predicate of the last one is an instruction each.
  void dropShort() {
    // Each has one use, so that chains meet and never part.
    DenseMap<Instruction *, unsigned> lengths;
    DenseMap<Instruction *, Instruction *> lasts;
    for (Instruction *at : kept) {
      Instruction *last = at;
      SmallPtrSet<Instruction *, 8> seen;
      for (auto *user = cast<Instruction>(at->user_back()); kept.contains(user) && seen.insert(user).second;
           user = cast<Instruction>(user->user_back()))
        last = user;
      lasts[at] = last;
      ++lengths[last];
    }
    kept.remove_if([&](Instruction *at) { return lengths.lookup(lasts.lookup(at)) < ShortestChain; });
  }

  /// A phi that takes an integer is one.
  void spread() {
    SmallVector<Instruction *> open(kept.begin(), kept.end());
    while (!open.empty())
      for (User *user : open.pop_back_val()->users())
        if (auto *phi = dyn_cast<PHINode>(user); phi && kept.insert(phi))
          open.push_back(phi);
  }

  /// A boolean as an integer, where the builder is.
  Value *integer(IRBuilder<> &builder, Value *boolean) {
    if (Value *made = integers.lookup(boolean))
      return made;
    return builder.CreateZExt(boolean, builder.getInt32Ty());
  }

  void make() {
    IRBuilder<> builder(function.getContext());
    SmallVector<std::pair<PHINode *, PHINode *>> phis;
    for (BasicBlock *block : order) {
      for (PHINode &phi : block->phis()) {
        if (!kept.contains(&phi))
          continue;
        builder.SetInsertPoint(&phi);
        auto *made = builder.CreatePHI(builder.getInt32Ty(), phi.getNumIncomingValues());
        integers[&phi] = made;
        phis.push_back({&phi, made});
      }
    }
    // Definitions come before uses in this order, but for those of phis.
    for (BasicBlock *block : order)
      for (Instruction &at : *block)
        if (kept.contains(&at) && !isa<PHINode>(at))
          integers[&at] = join(builder, &at, *junction(&at));
    for (auto [phi, made] : phis)
      for (auto [value, block] : zip(phi->incoming_values(), phi->blocks())) {
        builder.SetInsertPoint(block->getTerminator());
        made->addIncoming(integer(builder, value), block);
      }
  }

  Value *join(IRBuilder<> &builder, Instruction *at, Junction of) {
    Value *left = integers.lookup(of.left), *right = integers.lookup(of.right);
    if (!left && !right) {
      builder.SetInsertPoint(at->getNextNode());
      return integer(builder, at);
    }
    builder.SetInsertPoint(at);
    if (left && right)
      return of.isAnd ? builder.CreateAnd(left, right) : builder.CreateOr(left, right);
    Value *predicate = left ? of.right : of.left, *rest = left ? left : right;
    if (of.isLazy)
      predicate = builder.CreateFreeze(predicate);
    return of.isAnd ? builder.CreateSelect(predicate, rest, builder.getInt32(0))
                    : builder.CreateSelect(predicate, builder.getInt32(1), rest);
  }

  /// Has everything else use the integers.
  void replace() {
    IRBuilder<> builder(function.getContext());
    for (Instruction *boolean : kept) {
      Value *made = integers.lookup(boolean);
      SmallPtrSet<const User *, 8> near;
      if (isa<ZExtInst>(made))
        for (const Instruction *at = boolean->getNextNode(); at && !isAccess(*at); at = at->getNextNode())
          near.insert(at);
      for (Use &use : make_early_inc_range(boolean->uses())) {
        auto *user = cast<Instruction>(use.getUser());
        if (near.contains(user) || kept.contains(user))
          continue;
        builder.SetInsertPoint(user);
        if (auto *wide = dyn_cast<ZExtInst>(user)) {
          wide->replaceAllUsesWith(builder.CreateZExtOrTrunc(made, wide->getType()));
          wide->eraseFromParent();
        } else {
          use.set(builder.CreateICmpNE(made, builder.getInt32(0)));
        }
      }
    }
    // Phis may use each other.
    for (Instruction *boolean : kept)
      if (!isa<ZExtInst>(integers.lookup(boolean)))
        boolean->replaceAllUsesWith(PoisonValue::get(boolean->getType()));
    for (Instruction *boolean : kept)
      if (boolean->use_empty())
        boolean->eraseFromParent();
  }

  Function &function;
  ReversePostOrderTraversal<Function *> order;
  SmallVector<Instruction *> all;
  DenseMap<const Value *, unsigned> numbers;
  unsigned candidates = 0;
  /// What becomes integers, in the order in which it was found.
  SetVector<Instruction *> kept;
  DenseMap<const Value *, Value *> integers;
};
} // namespace

namespace tt {
void keepBooleans(Function &function) {
  if (!function.isDeclaration())
    Booleans(function).keep();
}
} // namespace tt
