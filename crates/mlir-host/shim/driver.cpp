// Hosted patterns and passes, registration and the stock drivers.
#include "shim.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/ROCDL/ROCDLToLLVMIRTranslation.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/CAPI/Pass.h"
#include "mlir-c/Dialect/Arith.h"
#include "mlir-c/Dialect/ControlFlow.h"
#include "mlir-c/Dialect/LLVM.h"
#include "mlir-c/Dialect/Math.h"
#include "mlir-c/Dialect/NVVM.h"
#include "mlir-c/Dialect/ROCDL.h"
#include "mlir-c/Dialect/SCF.h"
#include "mlir-c/Dialect/UB.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm-c/Core.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"
#include <deque>
#include <mutex>

using namespace mlir;
using mh::callbacks;
using mh::str;

extern "C" {
struct MhPassOption {
  MlirStringRef name;
  MlirStringRef description;
  int kind; // 0 bool, 1 integer, 2 string, 3 integers, 4 strings
  int64_t intDefault;
  MlirStringRef stringDefault;
  const int64_t *intDefaults;
  const MlirStringRef *stringDefaults;
  intptr_t numDefaults;
};
struct MhPassSpec {
  const void *def;
  MlirStringRef argument;
  MlirStringRef description;
  MlirStringRef anchor; // op name, empty for any
  const MlirStringRef *dependencies;
  intptr_t numDependencies;
  const MhPassOption *options;
  intptr_t numOptions;
};
}

namespace {

struct HostedPattern : public RewritePattern {
  HostedPattern(const void *def, StringRef root, PatternBenefit benefit, MLIRContext *ctx)
      : RewritePattern(root, benefit, ctx), def(def) {}
  HostedPattern(const void *def, PatternBenefit benefit, MLIRContext *ctx)
      : RewritePattern(MatchAnyOpTypeTag(), benefit, ctx), def(def) {}
  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    return success(callbacks->matchAndRewrite(def, wrap(op), wrap(static_cast<RewriterBase *>(&rewriter))));
  }
  const void *def;
};

class HostedPass : public Pass {
public:
  HostedPass(const MhPassSpec &spec, TypeID id)
      : Pass(id, spec.anchor.length ? std::optional<StringRef>(str(spec.anchor)) : std::nullopt), spec(spec), id(id) {
    for (intptr_t i = 0; i < spec.numOptions; ++i) {
      const MhPassOption &option = spec.options[i];
      switch (option.kind) {
      case 0:
        bools.emplace_back(*this, str(option.name), llvm::cl::desc(str(option.description)),
                           llvm::cl::init(option.intDefault != 0));
        break;
      case 1:
        ints.emplace_back(*this, str(option.name), llvm::cl::desc(str(option.description)),
                          llvm::cl::init(option.intDefault));
        break;
      case 2:
        strings.emplace_back(*this, str(option.name), llvm::cl::desc(str(option.description)),
                             llvm::cl::init(str(option.stringDefault).str()));
        break;
      case 3:
        intLists.emplace_back(*this, str(option.name), llvm::cl::desc(str(option.description)),
                              llvm::cl::list_init(ArrayRef(option.intDefaults, option.numDefaults)));
        break;
      default: {
        SmallVector<std::string> defaults;
        for (intptr_t j = 0; j < option.numDefaults; ++j)
          defaults.push_back(str(option.stringDefaults[j]).str());
        stringLists.emplace_back(*this, str(option.name), llvm::cl::desc(str(option.description)),
                                 llvm::cl::list_init(ArrayRef(defaults)));
      }
      }
    }
  }
  StringRef getName() const override { return str(spec.argument); }
  StringRef getArgument() const override { return str(spec.argument); }
  StringRef getDescription() const override { return str(spec.description); }
  // Dependent dialects are known by name, and a DialectRegistry only takes
  // C++ types: they are loaded here, before the passes start to run.
  LogicalResult initialize(MLIRContext *ctx) override {
    for (intptr_t i = 0; i < spec.numDependencies; ++i)
      if (!ctx->getOrLoadDialect(str(spec.dependencies[i])))
        return emitError(UnknownLoc::get(ctx))
               << getArgument() << ": dialect '" << str(spec.dependencies[i]) << "' is not registered";
    return success();
  }
  bool canScheduleOn(RegisteredOperationName name) const override {
    return !spec.anchor.length || name.getStringRef() == str(spec.anchor);
  }
  void runOnOperation() override {
    if (!callbacks->runPass(spec.def, this, wrap(getOperation())))
      signalPassFailure();
  }
  std::unique_ptr<Pass> clonePass() const override {
    auto clone = std::make_unique<HostedPass>(spec, id);
    clone->copyOptionValuesFrom(this);
    return clone;
  }

  const MhPassSpec &spec;
  TypeID id;
  std::deque<Option<bool>> bools;
  std::deque<Option<int64_t>> ints;
  std::deque<Option<std::string>> strings;
  std::deque<ListOption<int64_t>> intLists;
  std::deque<ListOption<std::string>> stringLists;
};

} // namespace

extern "C" {

void mhOpBury(MlirOperation op);

void mhSinkPattern(MhSink *sink, MlirContext ctx, const void *def, MlirStringRef root, unsigned benefit) {
  auto &patterns = *static_cast<RewritePatternSet *>(sink);
  if (root.length)
    patterns.add(std::make_unique<HostedPattern>(def, str(root), benefit, unwrap(ctx)));
  else
    patterns.add(std::make_unique<HostedPattern>(def, benefit, unwrap(ctx)));
}

/// As `RewriterBase::eraseOp`, for an operation without uses, but it is only
/// taken out of the IR, not freed.
void mhRewriterBury(MlirRewriterBase rewriter, MlirOperation op) {
  RewriterBase &base = *unwrap(rewriter);
  if (base.getInsertionBlock() && base.getInsertionPoint() == Block::iterator(unwrap(op)))
    base.setInsertionPointAfter(unwrap(op));
  if (auto *listener = dyn_cast_if_present<RewriterBase::Listener>(base.getListener()))
    unwrap(op)->walk<WalkOrder::PostOrder>([&](Operation *each) { listener->notifyOperationErased(each); });
  mhOpBury(op);
}
/// Whether what the rewriter inserts before, where that is an operation, is still there.
int mhRewriterHasPlace(MlirRewriterBase rewriter) {
  RewriterBase &base = *unwrap(rewriter);
  Block *block = base.getInsertionBlock();
  return !block || base.getInsertionPoint() == block->end() || base.getInsertionPoint()->getBlock() == block;
}
void mhRewriterReplaceUses(MlirRewriterBase rewriter, MlirOperation op, const MlirValue *values, intptr_t n) {
  SmallVector<Value> to;
  for (intptr_t i = 0; i < n; ++i)
    to.push_back(unwrap(values[i]));
  unwrap(rewriter)->replaceAllOpUsesWith(unwrap(op), to);
}

RewritePatternSet *mhPatternSetNew(MlirContext ctx) { return new RewritePatternSet(unwrap(ctx)); }

/// Applies and frees the set; 0 when it did not converge.
int mhApplyPatternsGreedily(MlirOperation op, RewritePatternSet *patterns) {
  FrozenRewritePatternSet frozen(std::move(*patterns));
  delete patterns;
  // Canonicalization simplifies regions; doing so for each set of patterns takes longer than the patterns.
  auto config = GreedyRewriteConfig().setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return succeeded(applyPatternsGreedily(unwrap(op), frozen, config));
}

void mhBuilderInsert(void *builder, MlirOperation op) { static_cast<OpBuilder *>(builder)->insert(unwrap(op)); }

/// The spec must stay alive for the process.
void mhRegisterPass(const MhPassSpec *spec) {
  static std::mutex mutex;
  static TypeIDAllocator ids;
  TypeID id;
  {
    std::lock_guard<std::mutex> lock(mutex);
    id = ids.allocate();
  }
  registerPass([spec, id]() -> std::unique_ptr<Pass> { return std::make_unique<HostedPass>(*spec, id); });
}

int mhPassBool(void *pass, intptr_t i) { return static_cast<HostedPass *>(pass)->bools[i]; }
int64_t mhPassInt(void *pass, intptr_t i) { return static_cast<HostedPass *>(pass)->ints[i]; }
MlirStringRef mhPassString(void *pass, intptr_t i) {
  return str(StringRef(static_cast<HostedPass *>(pass)->strings[i].getValue()));
}

intptr_t mhPassIntsCount(void *pass, intptr_t i) { return static_cast<HostedPass *>(pass)->intLists[i].size(); }
int64_t mhPassIntsAt(void *pass, intptr_t i, intptr_t at) { return static_cast<HostedPass *>(pass)->intLists[i][at]; }
intptr_t mhPassStringsCount(void *pass, intptr_t i) {
  return static_cast<HostedPass *>(pass)->stringLists[i].size();
}
MlirStringRef mhPassStringsAt(void *pass, intptr_t i, intptr_t at) {
  return str(StringRef(static_cast<HostedPass *>(pass)->stringLists[i][at]));
}

void mhRegisterUpstream(MlirDialectRegistry registry) {
  registerAllDialects(*unwrap(registry));
  registerAllExtensions(*unwrap(registry));
  registerAllToLLVMIRTranslations(*unwrap(registry));
}
void mhRegisterUpstreamPasses() { registerAllPasses(); }

} // extern "C"

namespace {
/// Says no to what MLIR must not read, after appending why to `message`. The input is split at the marker, if any.
using CheckInput = int (*)(MlirStringRef input, MlirStringRef marker, MhSink *message);

/// As `MlirOptMain` of the same arguments, with a look at the input before it is read.
LogicalResult runOpt(int argc, char **argv, StringRef tool, DialectRegistry &registry, CheckInput check) {
  llvm::InitLLVM init(argc, argv);
  auto [input, output] = registerAndParseCLIOptions(argc, argv, tool, registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects() || config.shouldListPasses())
    return MlirOptMain(argc, argv, input, output, registry);
  if (input == "-" && llvm::sys::Process::FileDescriptorIsDisplayed(fileno(stdin)))
    llvm::errs() << "(processing input from stdin now, hit ctrl-c/ctrl-d to interrupt)\n";
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(input, &message);
  if (!file) {
    llvm::errs() << message << "\n";
    return failure();
  }
  if (!check(str(file->getBuffer()), str(config.inputSplitMarker()), &message)) {
    llvm::errs() << file->getBufferIdentifier() << ": error: " << message << "\n";
    return failure();
  }
  std::unique_ptr<llvm::ToolOutputFile> out = openOutputFile(output, &message);
  if (!out) {
    llvm::errs() << message << "\n";
    return failure();
  }
  if (failed(MlirOptMain(out->os(), std::move(file), registry, config)))
    return failure();
  out->keep();
  return success();
}
} // namespace

extern "C" {
int mhOptMain(int argc, char **argv, MlirStringRef tool, MlirDialectRegistry registry, CheckInput check) {
  uint64_t before = llvm::errs().tell();
  int code = asMainReturnCode(runOpt(argc, argv, str(tool), *unwrap(registry), check));
  // MLIR's reader of bytecode refuses some builtin attributes without a word.
  if (code && llvm::errs().tell() == before)
    llvm::errs() << argv[0] << ": error: failed, and MLIR does not say why: the input may be malformed bytecode\n";
  return code;
}
int mhLspMain(int argc, char **argv, MlirDialectRegistry registry) {
  return asMainReturnCode(MlirLspServerMain(argc, argv, *unwrap(registry)));
}
/// The dialects a GPU compiler meets, and translations to LLVM IR: much
/// quicker to set up than all of them.
void mhRegisterCodegen(MlirDialectRegistry raw) {
  DialectRegistry &registry = *unwrap(raw);
  // By handles: the headers that declare the dialects take longer to compile than all else here.
  for (MlirDialectHandle dialect :
       {mlirGetDialectHandle__arith__(), mlirGetDialectHandle__cf__(), mlirGetDialectHandle__llvm__(),
        mlirGetDialectHandle__math__(), mlirGetDialectHandle__nvvm__(), mlirGetDialectHandle__rocdl__(),
        mlirGetDialectHandle__scf__(), mlirGetDialectHandle__ub__()})
    mlirDialectHandleInsertDialect(dialect, raw);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
  registerROCDLDialectTranslation(registry);
}

/// A source buffer whose diagnostics are printed with the lines they are about.
struct MhSource {
  llvm::SourceMgr manager;
  std::unique_ptr<SourceMgrDiagnosticHandler> handler;
};

/// Copies the text. The handler is attached to the context until `mhSourceFree`.
MhSource *mhSourceNew(MlirContext ctx, MlirStringRef text, MlirStringRef name) {
  auto *source = new MhSource();
  source->manager.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(str(text), str(name)), llvm::SMLoc());
  source->handler = std::make_unique<SourceMgrDiagnosticHandler>(source->manager, unwrap(ctx));
  return source;
}
static MlirModule parseModule(const llvm::SourceMgr &manager, MlirContext ctx) {
  bool said = false;
  OwningOpRef<ModuleOp> module;
  {
    // Asked first; it leaves diagnostics to the others.
    ScopedDiagnosticHandler listener(unwrap(ctx), [&](Diagnostic &) {
      said = true;
      return failure();
    });
    module = parseSourceFile<ModuleOp>(manager, ParserConfig(unwrap(ctx)));
  }
  // As above.
  if (!module && !said)
    emitError(UnknownLoc::get(unwrap(ctx)))
        << manager.getMemoryBuffer(manager.getMainFileID())->getBufferIdentifier()
        << " is malformed, and MLIR does not say where";
  return module ? MlirModule{module.release().getAsOpaquePointer()} : MlirModule{nullptr};
}
MlirModule mhSourceParse(MhSource *source, MlirContext ctx) { return parseModule(source->manager, ctx); }
/// Copies the text. What is wrong with it is said to the context's handlers.
MlirModule mhModuleParse(MlirContext ctx, MlirStringRef text, MlirStringRef name) {
  llvm::SourceMgr manager;
  manager.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(str(text), str(name)), llvm::SMLoc());
  return parseModule(manager, ctx);
}
void mhSourceFree(MhSource *source) { delete source; }

/// Links what `module` needs of a bitcode file, and no more, with internal
/// linkage. 0 on failure, after appending to `message`.
int mhLinkNeeded(LLVMModuleRef raw, MlirStringRef path, MhSink *message) {
  auto &text = *static_cast<std::string *>(message);
  llvm::Module &module = *llvm::unwrap(raw);
  auto buffer = llvm::MemoryBuffer::getFile(str(path));
  if (!buffer) {
    text = buffer.getError().message();
    return 0;
  }
  auto library = llvm::getOwningLazyBitcodeModule(std::move(*buffer), module.getContext());
  if (!library) {
    text = llvm::toString(library.takeError());
    return 0;
  }
  (*library)->setTargetTriple(module.getTargetTriple());
  (*library)->setDataLayout(module.getDataLayout());
  llvm::StringSet<> before;
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      before.insert(function.getName());
  if (llvm::Linker::linkModules(module, std::move(*library), llvm::Linker::Flags::LinkOnlyNeeded)) {
    text = "cannot be linked";
    return 0;
  }
  for (llvm::Function &function : module)
    if (!function.isDeclaration() && !before.contains(function.getName()))
      function.setLinkage(llvm::GlobalValue::InternalLinkage);
  for (llvm::GlobalVariable &global : module.globals())
    if (global.hasExternalLinkage() && global.hasInitializer() && global.isConstant())
      global.setLinkage(llvm::GlobalValue::InternalLinkage);
  return 1;
}

void mhPrintOpOnDiagnostic(MlirContext ctx, int enable) { unwrap(ctx)->printOpOnDiagnostic(enable != 0); }
} // extern "C"

namespace {
namespace cl = llvm::cl;

/// A tool like mlir-opt gives the passes that are registered when its command line is set up a flag each: all are names of one
/// option, which builds the pipeline. A plugin is loaded while the command line is parsed, too late for that, but its passes are
/// known in `--pass-pipeline`. This option takes over the names of that one and has those of the plugin's passes, too. What it
/// is given it hands on to the tool's option, as long as passes of the tool's own are asked for. From the first of the plugin's
/// on, it writes all of them as a pipeline, in their order, into `--pass-pipeline`.
class LateFlags final : public cl::Option {
public:
  LateFlags(cl::Option &own, cl::Option &pipeline)
      : Option(cl::ZeroOrMore, cl::NotHidden), own(own), pipeline(pipeline) {
    setDescription("Passes of plugins to run");
    setValueExpectedFlag(cl::ValueOptional);
    addArgument();
  }

  void add(StringRef name) {
    const PassRegistryEntry *entry = PassInfo::lookup(name);
    // The option's map keeps the name.
    if (!entry || !cl::getRegisteredOptions().try_emplace(entry->getPassArgument(), this).second)
      return;
    late.push_back(entry);
  }

  /// Takes the place of the tool's option for this name.
  void takeOver(StringRef name) {
    const PassRegistryEntry *entry = PassInfo::lookup(name);
    if (!entry)
      entry = PassPipelineInfo::lookup(name);
    if (entry)
      cl::getRegisteredOptions()[entry->getPassArgument()] = this;
  }

private:
  bool handleOccurrence(unsigned position, StringRef name, StringRef options) override {
    if (name == pipeline.ArgStr || name == "p")
      return error("can't be used with flags of passes", name);
    const PassRegistryEntry *entry = PassInfo::lookup(name);
    bool isLate = llvm::is_contained(late, entry);
    if (!entry)
      entry = PassPipelineInfo::lookup(name);
    passes.emplace_back(entry, options.str());
    if (!written && !isLate)
      return own.addOccurrence(position, name, options);
    if (!written && own.getNumOccurrences() + 1 != int(passes.size()))
      return error("comes after flags of passes that stand before the plugin: put --load-pass-plugin first", name);
    if (!written && pipeline.getNumOccurrences())
      return error("can't be used with --" + pipeline.ArgStr, name);
    if (!written) {
      // What would come after this would take the place of the flags.
      for (StringRef given : {pipeline.ArgStr, StringRef("p")})
        if (auto known = cl::getRegisteredOptions().find(given); known != cl::getRegisteredOptions().end())
          known->second = this;
    }
    own.reset();
    pipeline.reset();
    written = true;
    // Functions' passes among a module's are put into pipelines of their own, as the tool does.
    OpPassManager manager(ModuleOp::getOperationName(), OpPassManager::Nesting::Implicit);
    auto complain = [&](const Twine &message) {
      error(message, name);
      return failure();
    };
    for (auto &[pass, given] : passes)
      if (failed(pass->addToPipeline(manager, given, complain)))
        return true;
    std::string text;
    llvm::raw_string_ostream stream(text);
    manager.printAsTextualPipeline(stream);
    return pipeline.addOccurrence(position, pipeline.ArgStr, text);
  }

  size_t getOptionWidth() const override {
    size_t width = own.getOptionWidth();
    for (const PassRegistryEntry *entry : late)
      width = std::max(width, entry->getOptionWidth() + 4);
    return width;
  }
  void printOptionInfo(size_t width) const override {
    own.printOptionInfo(width);
    llvm::outs() << "  " << HelpStr << "\n";
    for (const PassRegistryEntry *entry : late)
      entry->printHelpStr(/*indent=*/4, width);
  }
  void printOptionValue(size_t, bool) const override {}
  void setDefault() override {
    own.reset();
    passes.clear();
    written = false;
  }

  /// The tool's options: of which passes have flags, and `--pass-pipeline`.
  cl::Option &own;
  cl::Option &pipeline;
  std::vector<const PassRegistryEntry *> late;
  /// All that were asked for, in their order, with their options.
  std::vector<std::pair<const PassRegistryEntry *, std::string>> passes;
  /// Whether `pipeline` has them.
  bool written = false;
};
} // namespace

extern "C" {
/// Gives registered passes flags in a tool that is parsing its command line.
void mhAddLateFlags(const MlirStringRef *names, intptr_t count) {
  auto &options = cl::getRegisteredOptions();
  cl::Option *pipeline = options.lookup("pass-pipeline");
  cl::Option *own = options.lookup("canonicalize");
  // Not a tool like mlir-opt; or one whose passes had flags in time.
  if (!pipeline || !own || own->hasArgStr())
    return;
  static LateFlags *flags = nullptr;
  if (!flags) {
    flags = new LateFlags(*own, *pipeline);
    SmallVector<StringRef> taken;
    for (auto &[name, option] : options)
      if (option == own)
        taken.push_back(name);
    for (StringRef name : taken)
      flags->takeOver(name);
  }
  for (intptr_t i = 0; i < count; ++i)
    flags->add(str(names[i]));
}
} // extern "C"
