// LLVM's code generation without passes that gain nothing.

#include "again.h"
#include "booleans.h"
#include "counters.h"
#include "divisions.h"
#include "halves.h"
#include "inlining.h"
#include "masks.h"
#include "near_use.h"
#include "needed.h"
#include "sinking.h"
#include "llvm-c/TargetMachine.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/CodeGen/AsmPrinter.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/MC/MCStreamer.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Pass.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

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

/// How many basic blocks LLVM's register allocator looks at as it splits one live range, in place of 10,000: a kernel with 2,048 blocks, for
/// hundreds of masked accesses, took it half a minute (docs/amd.md). Nothing else says it, and it is the
/// same for all functions, so it is set once in LLVM's command line, which is a copy of our own.
void limitSplitting() {
  static constexpr unsigned Blocks = 300;
  [[maybe_unused]] static const bool once = [] {
    auto &options = llvm::cl::getRegisteredOptions();
    auto found = options.find("grow-region-complexity-budget");
    if (found != options.end())
      static_cast<llvm::cl::opt<unsigned> *>(found->second)->setValue(Blocks);
    return true;
  }();
}

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
/// The pass that runs on either target before instructions are selected.
constexpr llvm::StringLiteral Preparation = "CodeGen Prepare";
/// Registers of a thread that others than matrix instructions can name (LLVM, "AMDGPU Instruction Syntax").
constexpr unsigned NamedRegisters = 256;
/// Before the name of a pass of which only the first run is left out.
constexpr llvm::StringLiteral First = "First ";
constexpr llvm::StringLiteral Printer = "AMDGPU Assembly Printer";
/// What AMDGPU's scheduling asks about functions.
constexpr llvm::StringLiteral MemoryBound = "Analysis if a function is memory bound";
/// AMDGPU's pass that has lanes of vector registers for spilled scalar registers, and what gives those registers. Registers are
/// allocated three times: scalar ones, these, the other vector ones.
constexpr llvm::StringLiteral Lanes = "SI lower SGPR spill instructions", Allocation[] = {"Greedy Register Allocator",
                                                                                         "Virtual Register Rewriter"};

/// Runs a pass that LLVM makes anew for each module: `AMDGPUPerfHintAnalysis` keeps what it counts in a function by the function's
/// address, and adds to it where another module's function has the same one.
class Anew : public llvm::ModulePass {
public:
  static char ID;
  Anew(const llvm::PassInfo &info, llvm::TargetMachine &machine) : ModulePass(ID), info(info), machine(machine) {}
  llvm::StringRef getPassName() const override { return "Analysis made anew"; }
  bool runOnModule(llvm::Module &module) override {
    llvm::legacy::PassManager passes;
    passes.add(machine.createPassConfig(passes));
    passes.add(info.createPass());
    return passes.run(module);
  }

private:
  const llvm::PassInfo &info;
  llvm::TargetMachine &machine;
};
char Anew::ID;

/// Adds to a pass manager what is not to be left out, and around LLVM's sinking what keeps it from making more registers live.
class Filter : public llvm::legacy::PassManagerBase {
public:
  Filter(llvm::legacy::PassManager &passes, const char *const *names, size_t count, llvm::TargetMachine &machine)
      : passes(passes), machine(machine), allocates(machine.getTargetTriple().isAMDGCN()),
        // A mask of 32 lanes takes no more registers than a bound.
        wide_masks(allocates && machine.getMCSubtargetInfo()->checkFeatures("+wavefrontsize64")) {
    for (size_t i = 0; i < count; ++i)
      names_out.insert(names[i]);
  }
  void add(llvm::Pass *pass) override {
    // ptxas allocates registers, and moves instructions itself, but not across calls, and few that take numbers out of words.
    if (!allocates && pass->getPassName() == Preparation) {
      passes.add(tt::createHold(true));
      passes.add(tt::createNearUse(0));
    }
    if (allocates && pass->getPassName() == Sinking) {
      if (wide_masks)
        passes.add(tt::createMaskBounds());
      passes.add(tt::createAgain());
      passes.add(tt::createHold(false));
      passes.add(tt::createNearUse(NamedRegisters));
    }
    if (allocates && pass->getPassName() == MemoryBound) {
      auto *info = llvm::PassRegistry::getPassRegistry()->getPassInfo(pass->getPassID());
      if (info && info->getNormalCtor()) {
        delete pass;
        return passes.add(new Anew(*info, machine));
      }
      is_reusable = false;
    }
    if (allocates)
      pass = whereNeeded(pass);
    if (pass->getPassName() == Printer)
      printer = static_cast<llvm::AsmPrinter *>(pass);
    bool sinks = pass->getPassName() == MachineSinking;
    bool first = names_seen.insert(pass->getPassName()).second;
    if (!names_out.contains(pass->getPassName()) && !(first && names_out.contains((First + pass->getPassName()).str()))) {
      passes.add(pass);
    } else {
      names_met.insert(pass->getPassName());
      delete pass;
    }
    if (sinks)
      passes.add(tt::createLetGo());
  }
  size_t met() const { return names_met.size(); }
  /// Whether the passes may run on another module afterwards.
  bool isReusable() const { return is_reusable && printer; }
  /// What writes the code.
  llvm::AsmPrinter *writer() const { return printer; }

private:
  /// What an earlier pass says of the function in which all of them are.
  struct Found {
    unsigned registers = 0;
  };

  /// The pass itself, or what runs it where it finds something to do.
  llvm::Pass *whereNeeded(llvm::Pass *pass) {
    llvm::StringRef name = pass->getPassName();
    if (pass->getPassKind() != llvm::PT_Function)
      return pass;
    auto *on_functions = static_cast<llvm::FunctionPass *>(pass);
    auto found = this->found;
    if (name == Lanes) {
      behind_lanes = true;
      auto count = [found](llvm::Function &function, llvm::Pass &pass) {
        found->registers = tt::virtualRegisters(function, pass);
        return true;
      };
      return tt::createWhereNeeded(on_functions, count);
    }
    if (behind_lanes && llvm::is_contained(Allocation, name)) {
      behind_lanes = name != Allocation[1];
      auto more = [found](llvm::Function &function, llvm::Pass &pass) {
        return tt::virtualRegisters(function, pass) != found->registers;
      };
      return tt::createWhereNeeded(on_functions, more);
    }
    return pass;
  }

  std::shared_ptr<Found> found = std::make_shared<Found>();
  bool behind_lanes = false;
  llvm::legacy::PassManager &passes;
  llvm::TargetMachine &machine;
  bool allocates, wide_masks, is_reusable = true;
  llvm::StringSet<> names_out, names_met, names_seen;
  llvm::AsmPrinter *printer = nullptr;
};

/// The passes of code generation, and where they write.
class Generator {
public:
  Generator(llvm::TargetMachine &machine, bool object, llvm::ArrayRef<const char *> names)
      : machine(machine), type(object ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile),
        out(text) {
    Filter filter(passes, names.data(), names.size(), machine);
    is_possible = !machine.addPassesToEmitFile(filter, out, nullptr, type);
    is_reusable = filter.isReusable();
    printer = filter.writer();
    met = filter.met();
  }
  llvm::SmallString<0> &run(llvm::Module &module) {
    text.clear();
    // One that wrote before leaves out the directive of the first section.
    if (has_run) {
      auto streamer = machine.createMCStreamer(out, nullptr, type, printer->OutContext);
      if (!streamer)
        llvm::reportFatalInternalError(streamer.takeError());
      printer->OutStreamer = std::move(*streamer);
    }
    has_run = true;
    passes.run(module);
    return text;
  }
  bool isPossible() const { return is_possible; }
  bool isReusable() const { return is_reusable; }
  size_t namesMet() const { return met; }

private:
  llvm::TargetMachine &machine;
  llvm::CodeGenFileType type;
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out;
  llvm::legacy::PassManager passes;
  llvm::AsmPrinter *printer = nullptr;
  bool is_possible, is_reusable, has_run = false;
  size_t met;
};

/// Generators that made code before, by the machine and by what they make and leave out: to list LLVM's passes and to take the list
/// down takes longer than the passes themselves take for the smallest kernels.
class Generators {
public:
  using Key = std::pair<llvm::TargetMachine *, std::string>;
  static Key keyOf(llvm::TargetMachine &machine, bool object, llvm::ArrayRef<const char *> names) {
    std::string text = object ? "object" : "text";
    for (const char *name : names)
      (text += '\n') += name;
    return {&machine, std::move(text)};
  }
  std::unique_ptr<Generator> take(const Key &key) {
    std::lock_guard<std::mutex> guard(lock);
    auto found = spare.find(key);
    if (found == spare.end())
      return nullptr;
    auto generator = std::move(found->second);
    spare.erase(found);
    return generator;
  }
  void keep(Key key, std::unique_ptr<Generator> generator) {
    std::lock_guard<std::mutex> guard(lock);
    spare[std::move(key)] = std::move(generator);
  }
  /// Lets go of those of a machine.
  void forget(llvm::TargetMachine *machine) {
    std::lock_guard<std::mutex> guard(lock);
    spare.erase(spare.lower_bound({machine, ""}), spare.lower_bound({machine + 1, ""}));
  }

private:
  std::mutex lock;
  std::map<Key, std::unique_ptr<Generator>> spare;
};

Generators &generators() {
  // LLVM's own statics may be gone before this one.
  static auto *all = new Generators;
  return *all;
}
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
  limitSplitting();
  for (llvm::Function &function : *llvm::unwrap(module))
    cutAddressChains(function);
  bool isPtx = machine.getTargetTriple().isNVPTX();
  if (isPtx)
    for (llvm::Function &function : *llvm::unwrap(module)) {
      tt::divideByReciprocals(function);
      tt::splitCounters(function);
      tt::countLast(function);
      tt::keepBooleans(function);
      tt::convertBySingles(function);
    }
  llvm::ArrayRef<const char *> left_out(names, count);
  auto key = Generators::keyOf(machine, object, left_out);
  auto generator = generators().take(key);
  if (!generator)
    generator = std::make_unique<Generator>(machine, object, left_out);
  if (!generator->isPossible())
    return nullptr;
  *met = generator->namesMet();
  std::optional<tt::Inlining> inlining;
  if (isPtx)
    inlining.emplace(*llvm::unwrap(module));
  auto &text = generator->run(*llvm::unwrap(module));
  if (inlining)
    inlining->write(text);
  auto *code = llvm::wrap(llvm::MemoryBuffer::getMemBufferCopy(text.str()).release());
  if (generator->isReusable())
    generators().keep(std::move(key), std::move(generator));
  return code;
}

/// Lets go of what is kept with a target machine, which is about to go.
void ttForget(LLVMTargetMachineRef machine) {
  generators().forget(reinterpret_cast<llvm::TargetMachine *>(machine));
}
}
