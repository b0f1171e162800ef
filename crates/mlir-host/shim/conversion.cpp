// Dialect conversion: targets, type converters and patterns whose decisions Rust makes.
#include "shim.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/ADT/MapVector.h"
#include <thread>

using namespace mlir;
using mh::callbacks;
using mh::str;

extern "C" {
/// What a target says of operations.
struct MhRule {
  const void *def;
  MlirStringRef name;
  int of;       // 0 an operation, 1 a dialect, 2 whatever no other rule is about
  int legality; // 0 legal, 1 illegal, 2 Rust is asked, 3 legal with all that is nested (operations only)
};
struct MhConversionPattern {
  const void *def;
  MlirStringRef root; // empty for any
  unsigned benefit;
  int recursive;     // may be applied to what it made
  const void *types; // type converter, or null
};
/// What becomes of an argument of a block, or an argument more.
struct MhSignatureStep {
  int kind; // 0: argument `input` becomes arguments of `types`, 1: arguments more, 2: `input` becomes `values`
  intptr_t input;
  const MlirType *types;
  const MlirValue *values;
  intptr_t n;
};
}

namespace {

/// An operation that was replaced or erased stays where it is until the conversion succeeded. It is marked, so that it is not
/// replaced once more, which MLIR only asserts. MLIR takes the mark back where it takes back the rest.
constexpr StringLiteral erasedMark = "mlir_host.erased";

void mark(RewriterBase &rewriter, Operation *op) {
  rewriter.modifyOpInPlace(op, [&] { op->setDiscardableAttr(erasedMark, UnitAttr::get(op->getContext())); });
}

/// A conversion under way.
struct Conversion : public RewriterBase::Listener {
  explicit Conversion(Operation *root) : at(root->getLoc()) {}
  void notifyPatternBegin(const Pattern &, Operation *op) override { at = op->getLoc(); }

  /// Answers of Rust: what is beyond them means that an error was reported, after which nothing is asked any more.
  int ask(int last, llvm::function_ref<int()> question) {
    int answer = stopped ? last + 1 : question();
    stopped |= answer > last;
    return answer;
  }
  const TypeConverter *of(const void *def);

  /// Where a pattern was tried last.
  Location at;
  bool stopped = false;
  llvm::MapVector<const void *, std::unique_ptr<TypeConverter>> types;
};

const TypeConverter *Conversion::of(const void *def) {
  if (!def)
    return nullptr;
  std::unique_ptr<TypeConverter> &made = types[def];
  if (made)
    return made.get();
  made = std::make_unique<TypeConverter>();
  made->addConversion([this, def](Type type, SmallVectorImpl<Type> &results) -> std::optional<LogicalResult> {
    MhTypeList list;
    int answer = ask(2, [&] { return callbacks->convertType(def, wrap(type), wrap(at), &list); });
    if (answer == 2)
      return std::nullopt;
    if (answer == 1)
      results.append(list.begin(), list.end());
    return success(answer == 1);
  });
  auto materialize = [this, def](bool target, OpBuilder &builder, TypeRange types, ValueRange inputs, Location loc,
                                 Type original) {
    // The builder is one of several kinds. This one only inserts.
    IRRewriter rewriter(builder);
    SmallVector<MlirType> rawTypes;
    SmallVector<MlirValue> rawInputs;
    for (Type type : types)
      rawTypes.push_back(wrap(type));
    for (Value value : inputs)
      rawInputs.push_back(wrap(value));
    SmallVector<Value> made;
    int answer = ask(1, [&] {
      return callbacks->materialize(def, target, wrap(static_cast<RewriterBase *>(&rewriter)), rawTypes.data(),
                                    rawTypes.size(), rawInputs.data(), rawInputs.size(), wrap(loc), wrap(original), &made);
    });
    if (answer != 1)
      made.clear();
    return made;
  };
  made->addSourceMaterialization(
      [materialize](OpBuilder &builder, Type type, ValueRange inputs, Location loc) -> Value {
        SmallVector<Value> made = materialize(false, builder, type, inputs, loc, Type());
        return made.empty() ? Value() : made.front();
      });
  made->addTargetMaterialization([materialize](OpBuilder &builder, TypeRange types, ValueRange inputs, Location loc,
                                               Type original) -> SmallVector<Value> {
    return materialize(true, builder, types, inputs, loc, original);
  });
  return made.get();
}

struct HostedConversion : public ConversionPattern {
  HostedConversion(const MhConversionPattern &spec, Conversion &conversion, MLIRContext *ctx)
      : ConversionPattern(str(spec.root), spec.benefit, ctx), def(spec.def), conversion(conversion) {
    finish(spec);
  }
  HostedConversion(std::nullptr_t, const MhConversionPattern &spec, Conversion &conversion, MLIRContext *ctx)
      : ConversionPattern(MatchAnyOpTypeTag(), spec.benefit, ctx), def(spec.def), conversion(conversion) {
    finish(spec);
  }
  void finish(const MhConversionPattern &spec) {
    typeConverter = conversion.of(spec.types);
    setHasBoundedRewriteRecursion(spec.recursive != 0);
  }
  LogicalResult matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                                ConversionPatternRewriter &rewriter) const override {
    SmallVector<MlirValue> values;
    SmallVector<intptr_t> ends;
    for (ValueRange range : operands) {
      for (Value value : range)
        values.push_back(wrap(value));
      ends.push_back(values.size());
    }
    int answer = conversion.ask(1, [&] {
      return callbacks->convertOp(def, wrap(op), values.data(), ends.data(), ends.size(),
                                  wrap(static_cast<RewriterBase *>(&rewriter)), typeConverter);
    });
    return success(answer == 1);
  }
  const void *def;
  Conversion &conversion;
};

void addRule(ConversionTarget &target, const MhRule &rule, Conversion &conversion, MLIRContext *ctx) {
  using Action = ConversionTarget::LegalizationAction;
  auto ask = [def = rule.def, &conversion](Operation *op) -> std::optional<bool> {
    int answer = conversion.ask(2, [&] { return callbacks->isLegal(def, wrap(op)); });
    return answer == 2 ? std::optional<bool>() : std::optional<bool>(answer == 1);
  };
  Action action = rule.legality == 2 ? Action::Dynamic : rule.legality == 1 ? Action::Illegal : Action::Legal;
  if (rule.of == 2) {
    if (action == Action::Dynamic)
      target.markUnknownOpDynamicallyLegal(ask);
    else
      target.markUnknownOpDynamicallyLegal([legal = action == Action::Legal](Operation *) { return legal; });
  } else if (rule.of == 1) {
    if (action == Action::Dynamic)
      target.addDynamicallyLegalDialect(ask, str(rule.name));
    else
      target.setDialectAction({str(rule.name)}, action);
  } else {
    OperationName name(str(rule.name), ctx);
    if (action == Action::Dynamic)
      target.addDynamicallyLegalOp(name, ask);
    else
      target.setOpAction(name, action);
    if (rule.legality == 3)
      target.markOpRecursivelyLegal(name, {});
  }
}

ConversionPatternRewriter &conversionRewriter(MlirRewriterBase rewriter) {
  return *static_cast<ConversionPatternRewriter *>(unwrap(rewriter));
}

SmallVector<Value> valuesOf(const MlirValue *values, intptr_t n) {
  SmallVector<Value> list;
  for (intptr_t i = 0; i < n; ++i)
    list.push_back(unwrap(values[i]));
  return list;
}

TypeConverter::SignatureConversion signatureOf(intptr_t inputs, const MhSignatureStep *steps, intptr_t n) {
  TypeConverter::SignatureConversion signature(inputs);
  for (const MhSignatureStep &step : ArrayRef(steps, n)) {
    SmallVector<Type> types;
    for (intptr_t i = 0; step.kind != 2 && i < step.n; ++i)
      types.push_back(unwrap(step.types[i]));
    switch (step.kind) {
    case 0:
      signature.addInputs(step.input, types);
      break;
    case 1:
      signature.addInputs(types);
      break;
    default:
      signature.remapInput(step.input, valuesOf(step.values, step.n));
    }
  }
  return signature;
}

} // namespace

extern "C" {

void mhSinkValue(MhSink *sink, MlirValue value) { static_cast<SmallVector<Value> *>(sink)->push_back(unwrap(value)); }

/// 1: converted, 0: failed, and an error says so, -1: failed without a word.
int mhConvert(MlirOperation op, int full, const MhRule *rules, intptr_t numRules, const MhConversionPattern *patterns,
              intptr_t numPatterns) {
  Operation *root = unwrap(op);
  MLIRContext *ctx = root->getContext();
  Conversion conversion(root);
  ConversionTarget target(*ctx);
  for (const MhRule &rule : ArrayRef(rules, numRules))
    addRule(target, rule, conversion, ctx);
  RewritePatternSet set(ctx);
  for (const MhConversionPattern &pattern : ArrayRef(patterns, numPatterns)) {
    if (pattern.root.length)
      set.add(std::make_unique<HostedConversion>(pattern, conversion, ctx));
    else
      set.add(std::make_unique<HostedConversion>(nullptr, pattern, conversion, ctx));
  }
  ConversionConfig config;
  config.listener = &conversion;
  // What MLIR says of operations that are left, after an error was reported that is the reason, would hide the reason.
  bool said = false;
  auto here = std::this_thread::get_id();
  ScopedDiagnosticHandler handler(ctx, [&](Diagnostic &diagnostic) {
    if (std::this_thread::get_id() != here || diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return failure();
    said = true;
    return success(conversion.stopped && StringRef(diagnostic.str()).starts_with("failed to legalize"));
  });
  FrozenRewritePatternSet frozen(std::move(set));
  LogicalResult converted = full ? applyFullConversion(root, target, frozen, config)
                                 : applyPartialConversion(root, target, frozen, config);
  if (succeeded(converted) && !conversion.stopped)
    return 1;
  return said || conversion.stopped ? 0 : -1;
}

/// Whether it, or what is around it, was replaced or erased in a conversion.
int mhConversionIsErased(MlirOperation op) {
  for (Operation *each = unwrap(op); each; each = each->getParentOp())
    if (each->hasAttr(erasedMark))
      return 1;
  return 0;
}
/// A copy of an operation that was erased is none.
void mhConversionUnmark(MlirOperation op) {
  unwrap(op)->walk([](Operation *each) { each->removeDiscardableAttr(erasedMark); });
}
/// Replaces result i by values[ends[i - 1]..ends[i]], and erases the operation.
void mhConversionReplace(MlirRewriterBase rewriter, MlirOperation op, const MlirValue *values, const intptr_t *ends) {
  SmallVector<SmallVector<Value>> lists;
  intptr_t start = 0;
  for (unsigned i = 0, n = unwrap(op)->getNumResults(); i < n; start = ends[i++])
    lists.push_back(valuesOf(values + start, ends[i] - start));
  mark(*unwrap(rewriter), unwrap(op));
  conversionRewriter(rewriter).replaceOpWithMultiple(unwrap(op), std::move(lists));
}
void mhConversionErase(MlirRewriterBase rewriter, MlirOperation op) {
  mark(*unwrap(rewriter), unwrap(op));
  unwrap(rewriter)->eraseOp(unwrap(op));
}
MlirBlock mhConversionBlock(MlirRewriterBase rewriter, MlirBlock block, const void *types, const MhSignatureStep *steps,
                            intptr_t n) {
  auto signature = signatureOf(unwrap(block)->getNumArguments(), steps, n);
  return wrap(conversionRewriter(rewriter).applySignatureConversion(unwrap(block), signature,
                                                                    static_cast<const TypeConverter *>(types)));
}
/// `n` is negative where the converter makes the signature of the first block, too. 0 where there is no conversion.
int mhConversionRegion(MlirRewriterBase rewriter, MlirRegion raw, const void *types, const MhSignatureStep *steps,
                       intptr_t n) {
  Region *region = unwrap(raw);
  if (region->empty())
    return 1;
  auto signature = signatureOf(region->front().getNumArguments(), steps, n < 0 ? 0 : n);
  return succeeded(conversionRewriter(rewriter).convertRegionTypes(
      region, *static_cast<const TypeConverter *>(types), n < 0 ? nullptr : &signature));
}
void mhConversionMoveRegion(MlirRewriterBase rewriter, MlirRegion from, MlirRegion to) {
  unwrap(rewriter)->inlineRegionBefore(*unwrap(from), *unwrap(to), unwrap(to)->end());
}
MlirBlock mhConversionCreateBlock(MlirRewriterBase rewriter, MlirRegion region, const MlirType *types,
                                  const MlirLocation *locs, intptr_t n) {
  SmallVector<Type> argTypes;
  SmallVector<Location> argLocs;
  for (intptr_t i = 0; i < n; ++i) {
    argTypes.push_back(unwrap(types[i]));
    argLocs.push_back(unwrap(locs[i]));
  }
  return wrap(unwrap(rewriter)->createBlock(unwrap(region), unwrap(region)->end(), argTypes, argLocs));
}
/// The operation, and what follows it, in a block of their own behind the rest.
MlirBlock mhConversionSplit(MlirRewriterBase rewriter, MlirOperation op) {
  return wrap(unwrap(rewriter)->splitBlock(unwrap(op)->getBlock(), Block::iterator(unwrap(op))));
}
void mhConversionInlineBlock(MlirRewriterBase rewriter, MlirBlock block, MlirOperation before, const MlirValue *values,
                             intptr_t n) {
  Operation *place = unwrap(before);
  unwrap(rewriter)->inlineBlockBefore(unwrap(block), place->getBlock(), Block::iterator(place), valuesOf(values, n));
}
/// Whether they are the same, or the other one is nested in this one.
int mhRegionIsAncestor(MlirRegion region, MlirRegion of) { return unwrap(region)->isAncestor(unwrap(of)); }
/// Whether the operation is in the block, or in what is nested in it.
int mhBlockHolds(MlirBlock block, MlirOperation op) { return unwrap(block)->findAncestorOpInBlock(*unwrap(op)) != nullptr; }
} // extern "C"
