// LLVM's code generation without passes that gain nothing.

#include "again.h"
#include "booleans.h"
#include "counters.h"
#include "divisions.h"
#include "inlining.h"
#include "masks.h"
#include "sinking.h"
#include "llvm-c/TargetMachine.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Pass.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>
#include <optional>

namespace {
/// Sets an option of LLVM's command line, where there is such a one, and restores it at the end of its life. For what
/// can be asked for in no other way, and is read at once.
class ScopedOption {
public:
  ScopedOption(llvm::StringRef name, bool value) {
    auto &options = llvm::cl::getRegisteredOptions();
    auto found = options.find(name);
    if (found == options.end())
      return;
    option = static_cast<llvm::cl::opt<bool> *>(found->second);
    before = *option;
    option->setValue(value);
  }
  ~ScopedOption() {
    if (option)
      option->setValue(before);
  }

private:
  llvm::cl::opt<bool> *option = nullptr;
  bool before = false;
};

/// Addresses computed from one another that instruction selection sees at once.
constexpr unsigned LongestChain = 16;

/// Cuts long chains of addresses, each computed from the one before: for every load LLVM 22 follows the whole chain
/// (TargetLowering::isGAPlusOffset), again and again. A `freeze` costs no instruction, and it does not look through one.
void cutAddressChains(llvm::Function &function) {
  llvm::DenseMap<llvm::Value *, unsigned> lengths;
  llvm::SmallVector<llvm::Instruction *> ends;
  for (llvm::Instruction &at : llvm::instructions(function)) {
    auto *address = llvm::dyn_cast<llvm::GetElementPtrInst>(&at);
    if (!address || address->getType()->isVectorTy())
      continue;
    unsigned length = (lengths.lookup(address->getPointerOperand()) + 1) % LongestChain;
    if (length == 0)
      ends.push_back(address);
    lengths[address] = length;
  }
  for (llvm::Instruction *end : ends) {
    auto *cut = new llvm::FreezeInst(end, "", std::next(end->getIterator()));
    end->replaceUsesWithIf(cut, [=](llvm::Use &use) { return use.getUser() != cut; });
  }
}

/// LLVM's passes that move instructions to the blocks of their uses, by their names.
constexpr llvm::StringLiteral Sinking = "Code sinking", MachineSinking = "Machine code sinking";

/// Adds to a pass manager what is not to be left out, and around LLVM's sinking what keeps it from making more registers live.
class Filter : public llvm::legacy::PassManagerBase {
public:
  Filter(llvm::legacy::PassManager &passes, const char *const *names, size_t count, llvm::TargetMachine &machine)
      : passes(passes), allocates(machine.getTargetTriple().isAMDGCN()),
        // A mask of 32 lanes takes no more registers than a bound.
        wide_masks(allocates && machine.getMCSubtargetInfo()->checkFeatures("+wavefrontsize64")) {
    for (size_t i = 0; i < count; ++i)
      names_out.insert(names[i]);
  }
  void add(llvm::Pass *pass) override {
    // ptxas allocates registers, and moves instructions itself.
    if (allocates && pass->getPassName() == Sinking) {
      if (wide_masks)
        passes.add(tt::createMaskBounds());
      passes.add(tt::createAgain());
      passes.add(tt::createHold());
    }
    if (allocates && pass->getPassName() == MachineSinking) {
      passes.add(pass);
      return passes.add(tt::createLetGo());
    }
    if (!names_out.contains(pass->getPassName()))
      return passes.add(pass);
    names_met.insert(pass->getPassName());
    delete pass;
  }
  size_t met() const { return names_met.size(); }

private:
  llvm::legacy::PassManager &passes;
  bool allocates, wide_masks;
  llvm::StringSet<> names_out, names_met;
};
} // namespace

extern "C" {
/// A target machine whose pointers to shared and local memory have 32 bits. LLVM 22 takes this from its command line, as
/// the machine is made, and only then: neither attributes of functions and modules nor the options of a target say it. The
/// name of the ABI, `shortptr`, that LLVM itself makes the data layout from is not read from those options (`llc
/// --target-abi=shortptr` changes nothing).
LLVMTargetMachineRef ttShortPointerMachine(LLVMTargetRef target, const char *triple, const char *cpu,
                                           const char *features) {
  static std::mutex lock;
  std::lock_guard<std::mutex> guard(lock);
  ScopedOption option("nvptx-short-ptr", true);
  return LLVMCreateTargetMachine(target, triple, cpu, features, LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                 LLVMCodeModelDefault);
}

/// Assembly of a module, or an object file, without the passes of these names; says in `met` how many of the names there
/// were. Null when the target has none.
LLVMMemoryBufferRef ttEmit(LLVMTargetMachineRef raw, LLVMModuleRef module, bool object, const char *const *names,
                           size_t count, size_t *met) {
  auto &machine = *reinterpret_cast<llvm::TargetMachine *>(raw);
  for (llvm::Function &function : *llvm::unwrap(module))
    cutAddressChains(function);
  bool isPtx = machine.getTargetTriple().isNVPTX();
  if (isPtx)
    for (llvm::Function &function : *llvm::unwrap(module)) {
      tt::divideByReciprocals(function);
      tt::splitCounters(function);
      tt::keepBooleans(function);
    }
  llvm::legacy::PassManager passes;
  Filter filter(passes, names, count, machine);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  auto type = object ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
  if (machine.addPassesToEmitFile(filter, out, nullptr, type))
    return nullptr;
  *met = filter.met();
  std::optional<tt::Inlining> inlining;
  if (isPtx)
    inlining.emplace(*llvm::unwrap(module));
  passes.run(*llvm::unwrap(module));
  if (inlining)
    inlining->write(text);
  return llvm::wrap(llvm::MemoryBuffer::getMemBufferCopy(text.str()).release());
}
}
