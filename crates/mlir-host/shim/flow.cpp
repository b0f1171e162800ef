// Where control flow takes values: what MLIR's interfaces for regions, branches
// and loops say, in one form.
//
// A loop with results is described by its LoopLikeOpInterface, whose answer
// depends on the structure alone: its RegionBranchOpInterface leaves out edges
// that a known trip count rules out, while types must agree along them all the same.
#include "shim.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace {

/// A loop whose initial and yielded values become its arguments and results.
LoopLikeOpInterface carryingLoop(Operation *op) {
  auto loop = dyn_cast_or_null<LoopLikeOpInterface>(op);
  return loop && loop.getLoopResults() ? loop : LoopLikeOpInterface();
}

/// Calls `forward(first operand, number of operands, inputs)` for all that the
/// operation passes on.
template <typename F>
void forEachForward(Operation *op, F forward) {
  if (!op->getNumRegions() && !op->hasTrait<OpTrait::IsTerminator>())
    return;
  auto operands = [&](MutableArrayRef<OpOperand> passed, LoopLikeOpInterface loop) {
    if (passed.empty())
      return;
    unsigned first = passed.front().getOperandNumber();
    forward(first, passed.size(), ValueRange(loop.getRegionIterArgs()));
    forward(first, passed.size(), ValueRange(*loop.getLoopResults()));
  };
  auto range = [&](OperandRange passed, ValueRange inputs) {
    if (!passed.empty())
      forward(passed.getBeginOperandIndex(), passed.size(), inputs);
  };
  SmallVector<RegionSuccessor> successors;
  if (LoopLikeOpInterface loop = carryingLoop(op)) {
    operands(loop.getInitsMutable(), loop);
  } else if (auto branch = dyn_cast<RegionBranchOpInterface>(op)) {
    branch.getSuccessorRegions(RegionBranchPoint::parent(), successors);
    for (RegionSuccessor successor : successors)
      range(branch.getEntrySuccessorOperands(successor), successor.getSuccessorInputs());
  }
  successors.clear();
  Operation *parent = op->getParentOp();
  auto end = dyn_cast<RegionBranchTerminatorOpInterface>(op);
  if (LoopLikeOpInterface loop = end ? carryingLoop(parent) : LoopLikeOpInterface()) {
    auto yielded = loop.getYieldedValuesMutable();
    if (yielded && !yielded->empty() && yielded->front().getOwner() == op)
      operands(*yielded, loop);
  } else if (end && isa_and_nonnull<RegionBranchOpInterface>(parent)) {
    end.getSuccessorRegions(SmallVector<Attribute>(op->getNumOperands()), successors);
    for (RegionSuccessor successor : successors)
      range(end.getSuccessorOperands(successor), successor.getSuccessorInputs());
  } else if (auto branch = dyn_cast<BranchOpInterface>(op)) {
    for (unsigned i = 0; i < op->getNumSuccessors(); ++i) {
      SuccessorOperands passed = branch.getSuccessorOperands(i);
      ValueRange inputs = op->getSuccessor(i)->getArguments();
      range(passed.getForwardedOperands(), inputs.drop_front(std::min<size_t>(passed.getProducedOperandCount(), inputs.size())));
    }
  }
}

unsigned numberOf(Value value) {
  if (auto result = dyn_cast<OpResult>(value))
    return result.getResultNumber();
  return cast<BlockArgument>(value).getArgNumber();
}

} // namespace

extern "C" {

typedef void (*MhPushEdge)(void *out, MlirOperation op, intptr_t operand, MlirValue target);

/// All values that operands of the operation become.
void mhEdges(MlirOperation op, MhPushEdge push, void *out) {
  forEachForward(unwrap(op), [&](unsigned first, unsigned count, ValueRange inputs) {
    for (unsigned i = 0; i < count && i < inputs.size(); ++i)
      push(out, op, first + i, wrap(inputs[i]));
  });
}

/// All operands that a value stands for. 0 where they are not known.
int mhIncoming(MlirValue raw, MhPushEdge push, void *out) {
  Value value = unwrap(raw);
  bool known = false;
  // Whether the operation passes something to the value.
  auto from = [&](Operation *op) {
    bool found = false;
    forEachForward(op, [&](unsigned first, unsigned count, ValueRange inputs) {
      if (inputs.empty())
        return;
      unsigned at = numberOf(value) - numberOf(inputs.front());
      if (at >= count || at >= inputs.size() || inputs[at] != value)
        return;
      push(out, wrap(op), first + at, raw);
      found = true;
    });
    known |= found;
    return found;
  };
  Operation *around = value.getDefiningOp();
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    Block *block = arg.getOwner();
    if (!block->isEntryBlock()) {
      for (Block *before : block->getPredecessors()) {
        Operation *branch = before->getTerminator();
        // What passes two things to one block is not told apart by who passes it.
        if (llvm::count(branch->getSuccessors(), block) != 1 || !from(branch))
          return 0;
      }
      return known;
    }
    around = block->getParentOp();
  }
  if (!isa_and_nonnull<RegionBranchOpInterface>(around))
    return 0;
  from(around);
  for (Region &region : around->getRegions())
    for (Block &block : region)
      if (!block.empty() && isa<RegionBranchTerminatorOpInterface>(block.back()))
        from(&block.back());
  return known;
}

enum MhNext { MH_NEXT_REGION = 0, MH_NEXT_BLOCK = 1, MH_NEXT_AFTER = 2 };
typedef void (*MhPushNext)(void *out, int kind, void *place);

/// Where control can go right behind the operation. 0 where that is not known.
int mhNext(MlirOperation raw, MhPushNext push, void *out) {
  Operation *op = unwrap(raw);
  auto regions = [&](ArrayRef<RegionSuccessor> successors, Operation *parent) {
    for (RegionSuccessor successor : successors) {
      if (Region *region = successor.getSuccessor())
        push(out, MH_NEXT_REGION, wrap(region).ptr);
      else
        push(out, MH_NEXT_AFTER, parent);
    }
    return 1;
  };
  auto loop = [&](LoopLikeOpInterface loop) {
    for (Region *region : loop.getLoopRegions())
      push(out, MH_NEXT_REGION, wrap(region).ptr);
    push(out, MH_NEXT_AFTER, loop.getOperation());
    return 1;
  };
  SmallVector<RegionSuccessor> successors;
  if (LoopLikeOpInterface carrying = carryingLoop(op))
    return loop(carrying);
  if (auto branch = dyn_cast<RegionBranchOpInterface>(op)) {
    branch.getSuccessorRegions(RegionBranchPoint::parent(), successors);
    return regions(successors, op);
  }
  if (op->getNumRegions())
    return 0;
  Operation *parent = op->getParentOp();
  auto end = dyn_cast<RegionBranchTerminatorOpInterface>(op);
  if (end && carryingLoop(parent))
    return loop(carryingLoop(parent));
  if (end && isa_and_nonnull<RegionBranchOpInterface>(parent)) {
    end.getSuccessorRegions(SmallVector<Attribute>(op->getNumOperands()), successors);
    return regions(successors, parent);
  }
  for (Block *successor : op->getSuccessors())
    push(out, MH_NEXT_BLOCK, successor);
  if (op->getNumSuccessors())
    return 1;
  if (op->hasTrait<OpTrait::IsTerminator>())
    return 0;
  push(out, MH_NEXT_AFTER, op);
  return 1;
}

int mhIsLoop(MlirOperation op) { return isa<LoopLikeOpInterface>(unwrap(op)); }
int mhIsRegionBranch(MlirOperation op) { return isa<RegionBranchOpInterface>(unwrap(op)); }
} // extern "C"
