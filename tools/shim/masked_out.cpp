// Accesses under masks that are never true: lowering writes an access under a mask as inline assembly, which LLVM knows nothing of. A tile that is
// larger than what it holds has such where elements that a thread holds lie beyond, and their number is known.

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm-c/Core.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace {
/// Takes `$12` from the front of `text`.
std::optional<unsigned> takeOperand(StringRef &text) {
  unsigned number;
  if (!text.consume_front("$") || text.consumeInteger(10, number))
    return std::nullopt;
  return number;
}

/// The results that a call of inline assembly has.
SmallVector<Type *> resultsOf(CallInst &call) {
  if (auto *all = dyn_cast<StructType>(call.getType()))
    return SmallVector<Type *>(all->elements());
  return call.getType()->isVoidTy() ? SmallVector<Type *>() : SmallVector<Type *>{call.getType()};
}

/// What `call` gives where its last instruction runs under a mask that is never true, and those before it only move numbers to its results. Results
/// of which nothing is known are null. Nothing where it may do more.
std::optional<SmallVector<Value *>> withoutAccess(CallInst &call) {
  auto *assembly = dyn_cast<InlineAsm>(call.getCalledOperand());
  auto isNever = [](const Use &use) { return use->getType()->isIntegerTy(1) && match(use.get(), m_Zero()); };
  if (!assembly || none_of(call.args(), isNever))
    return std::nullopt;
  SmallVector<Type *> types = resultsOf(call);
  SmallVector<Value *> results(types.size());
  auto operand = [&](std::optional<unsigned> number) -> Value * {
    bool isInput = number && *number >= types.size() && *number - types.size() < call.arg_size();
    return isInput ? call.getArgOperand(*number - types.size()) : nullptr;
  };
  StringRef text(assembly->getAsmString());
  if (text.consume_front("{"))
    text.consume_back("}");
  SmallVector<StringRef> lines;
  text.trim().split(lines, '\n');
  for (StringRef line : ArrayRef(lines).drop_back()) {
    line = line.trim();
    if (!line.consume_front("mov.b"))
      return std::nullopt;
    line = line.drop_while(isDigit).ltrim();
    auto to = takeOperand(line);
    if (!to || *to >= types.size() || !line.consume_front(", ") || !line.consume_back(";"))
      return std::nullopt;
    Value *from = line == "0" ? Constant::getNullValue(types[*to]) : operand(takeOperand(line));
    if (!from || from->getType() != types[*to])
      return std::nullopt;
    results[*to] = from;
  }
  StringRef access = lines.back().trim();
  if (!access.consume_front("@"))
    return std::nullopt;
  auto *mask = dyn_cast_or_null<ConstantInt>(operand(takeOperand(access)));
  bool isOne = access.starts_with(" ") && access.count(';') == 1;
  if (!mask || !mask->getType()->isIntegerTy(1) || !mask->isZero() || !isOne || is_contained(results, nullptr))
    return std::nullopt;
  return results;
}

/// One value of all.
Value *joined(CallInst &call, ArrayRef<Value *> results) {
  if (!isa<StructType>(call.getType()))
    return results.front();
  IRBuilder<> builder(&call);
  Value *all = PoisonValue::get(call.getType());
  for (auto [at, result] : enumerate(results))
    all = builder.CreateInsertValue(all, result, at);
  return all;
}
} // namespace

extern "C" {
/// Leaves out accesses of `module` whose masks are never true; loads give what they give without an access. Says how many there were.
size_t ttLeaveOutMasked(LLVMModuleRef module) {
  size_t count = 0;
  for (Function &function : *unwrap(module))
    for (Instruction &at : make_early_inc_range(instructions(function))) {
      auto *call = dyn_cast<CallInst>(&at);
      auto results = call ? withoutAccess(*call) : std::nullopt;
      if (!results)
        continue;
      if (!results->empty())
        call->replaceAllUsesWith(joined(*call, *results));
      call->eraseFromParent();
      ++count;
    }
  return count;
}
}
