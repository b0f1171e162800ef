// Hosted dialects, attributes and types.
#include "shim.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include <atomic>
#include <deque>
#include <mutex>

using namespace mlir;

namespace mh {
const MhCallbacks *callbacks = nullptr;

HostedInfo::HostedInfo(Dialect *dialect) : Base(dialect) {
  static std::atomic<uint64_t> last{0};
  instance = ++last;
}

namespace {

struct HostedAsm : public OpAsmDialectInterface {
  HostedAsm(Dialect *dialect, const void *def) : OpAsmDialectInterface(dialect), def(def) {}
  static AliasResult result(int kind) {
    return kind == 0 ? AliasResult::NoAlias : kind == 1 ? AliasResult::OverridableAlias : AliasResult::FinalAlias;
  }
  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    std::string name;
    int kind = callbacks->attrAlias(def, wrap(attr), &name);
    os << name;
    return result(kind);
  }
  AliasResult getAlias(Type type, raw_ostream &os) const override {
    std::string name;
    int kind = callbacks->typeAlias(def, wrap(type), &name);
    os << name;
    return result(kind);
  }
  const void *def;
};

struct HostedInliner : public DialectInlinerInterface {
  HostedInliner(Dialect *dialect, const void *def) : DialectInlinerInterface(dialect), def(def) {}
  bool isLegalToInline(Operation *call, Operation *callable, bool) const final {
    return callbacks->legalToInlineCall(def, wrap(call), wrap(callable));
  }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final { return true; }
  bool isLegalToInline(Operation *op, Region *dest, bool, IRMapping &) const final {
    return callbacks->legalToInlineOp(def, wrap(op), wrap(dest));
  }
  void handleTerminator(Operation *op, Block *newDest) const final {
    OpBuilder builder(op);
    builder.create(OperationState(op->getLoc(), "cf.br", op->getOperands(), {}, {}, newDest));
    op->erase();
  }
  void handleTerminator(Operation *op, ValueRange valuesToRepl) const final {
    for (auto [from, to] : llvm::zip(valuesToRepl, op->getOperands()))
      from.replaceAllUsesWith(to);
  }
  const void *def;
};

/// The dialect that this thread constructs, of which the context knows the name only.
thread_local const HostedInfo *constructing = nullptr;

class HostedDialect : public ExtensibleDialect {
public:
  HostedDialect(const MhDialectSpec &spec, MLIRContext *ctx, TypeID id)
      : ExtensibleDialect(str(spec.name), ctx, id), def(spec.def) {
    for (intptr_t i = 0; i < spec.numDependencies; ++i)
      ctx->getOrLoadDialect(str(spec.dependencies[i]));
    auto &info = addInterface<HostedInfo>();
    const HostedInfo *outer = std::exchange(constructing, &info);
    addInterface<HostedAsm>(def);
    addInterface<HostedInliner>(def);
    Dialect::addInterface(bytecodeOf(this, spec.version));
    for (intptr_t i = 0; i < spec.numAttrs; ++i)
      addAttr(spec.attrs[i], info);
    for (intptr_t i = 0; i < spec.numTypes; ++i)
      addType(spec.types[i], info);
    for (intptr_t i = 0; i < spec.numOps; ++i) {
      auto op = std::make_unique<HostedOp>(spec.ops[i], this, typeIds.allocate());
      attachInterfaces(*op);
      SmallVector<StringRef> names;
      for (StringAttr name : op->attrNames)
        names.push_back(name.getValue());
      RegisteredOperationName::insert(std::move(op), names);
    }
    constructing = outer;
  }

  Type parseType(DialectAsmParser &parser) const override {
    StringRef keyword;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return {};
    Type type;
    OptionalParseResult result = parseOptionalDynamicType(keyword, parser, type);
    if (result.has_value())
      return succeeded(*result) ? type : Type();
    parser.emitError(loc) << "unknown type `" << keyword << "` in dialect `" << getNamespace() << "`";
    return {};
  }
  void printType(Type type, DialectAsmPrinter &printer) const override {
    (void)printIfDynamicType(type, printer);
  }
  Attribute parseAttribute(DialectAsmParser &parser, Type) const override {
    StringRef keyword;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return {};
    Attribute attr;
    OptionalParseResult result = parseOptionalDynamicAttr(keyword, parser, attr);
    if (result.has_value())
      return succeeded(*result) ? attr : Attribute();
    parser.emitError(loc) << "unknown attribute `" << keyword << "` in dialect `" << getNamespace() << "`";
    return {};
  }
  void printAttribute(Attribute attr, DialectAsmPrinter &printer) const override {
    (void)printIfDynamicAttr(attr, printer);
  }
  Operation *materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) override {
    return unwrap(callbacks->materializeConstant(def, &builder, wrap(value), wrap(type), wrap(loc)));
  }
  LogicalResult verifyOperationAttribute(Operation *op, NamedAttribute attr) override {
    return success(callbacks->verifyOpAttr(def, wrap(op), str(attr.getName().getValue()), wrap(attr.getValue())));
  }
  LogicalResult verifyRegionArgAttribute(Operation *op, unsigned, unsigned arg, NamedAttribute attr) override {
    return success(
        callbacks->verifyArgAttr(def, wrap(op), arg, str(attr.getName().getValue()), wrap(attr.getValue())));
  }

private:
  // One set of hooks serves attributes and types: both are parameter lists.
  static LogicalResult verifyParams(const void *def, MLIRContext *ctx,
                                    function_ref<InFlightDiagnostic()> emitError, ArrayRef<Attribute> params) {
    std::string message;
    if (callbacks->verifyParams(def, wrap(ctx), reinterpret_cast<const MlirAttribute *>(params.data()),
                                params.size(), &message))
      return success();
    emitError() << message;
    return failure();
  }
  template <typename Definition>
  std::unique_ptr<Definition> define(const MhParamSpec &spec) {
    const void *d = spec.def;
    MLIRContext *ctx = getContext();
    return Definition::get(
        str(spec.name), this,
        [d, ctx](function_ref<InFlightDiagnostic()> emit, ArrayRef<Attribute> p) {
          return verifyParams(d, ctx, emit, p);
        },
        [d](AsmParser &parser, SmallVectorImpl<Attribute> &params) {
          return success(callbacks->parseParams(d, &parser, &params));
        },
        [d](AsmPrinter &printer, ArrayRef<Attribute> p) {
          callbacks->printParams(d, &printer, reinterpret_cast<const MlirAttribute *>(p.data()), p.size());
        });
  }
  void addAttr(const MhParamSpec &spec, HostedInfo &info) {
    auto attr = define<DynamicAttrDefinition>(spec);
    info.attrs[spec.def] = attr.get();
    info.attrDefs[attr.get()] = spec.def;
    registerDynamicAttr(std::move(attr));
  }
  void addType(const MhParamSpec &spec, HostedInfo &info) {
    auto type = define<DynamicTypeDefinition>(spec);
    info.types[spec.def] = type.get();
    info.typeDefs[type.get()] = spec.def;
    registerDynamicType(std::move(type));
  }

  const void *def;
  TypeIDAllocator typeIds;
};

/// A dialect that was defined, for the life of the process. MLIR keys a loaded
/// dialect by a TypeID, which for a hosted one is allocated, not a class's.
struct DefinedDialect {
  MhDialectSpec spec;
  TypeID id;
};

/// Appended to under the lock; entries neither move nor change.
struct DefinedDialects {
  std::mutex mutex;
  TypeIDAllocator ids;
  std::deque<DefinedDialect> list;
};
DefinedDialects &defined() {
  static DefinedDialects dialects;
  return dialects;
}

const HostedInfo *info(Dialect *dialect) { return dialect ? dialect->getRegisteredInterface<HostedInfo>() : nullptr; }

} // namespace
} // namespace mh

using namespace mh;

extern "C" {

void mhSetCallbacks(const MhCallbacks *cbs) { callbacks = cbs; }

/// Returns what `mhInsertDialect` takes, valid for the process.
const void *mhDefineDialect(const MhDialectSpec *spec) {
  DefinedDialects &all = defined();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.list.push_back({*spec, all.ids.allocate()});
  return &all.list.back();
}

void mhInsertDialect(MlirDialectRegistry registry, const void *dialect) {
  const auto *entry = static_cast<const DefinedDialect *>(dialect);
  unwrap(registry)->insert(entry->id, str(entry->spec.name), [entry](MLIRContext *ctx) {
    return ctx->getOrLoadDialect(str(entry->spec.name), entry->id, [&]() -> std::unique_ptr<Dialect> {
      return std::make_unique<HostedDialect>(entry->spec, ctx, entry->id);
    });
  });
}

/// Marks everything in the context as not to be trusted.
void mhPoison(MlirContext ctx) {
  // The list of loaded dialects cannot be asked for while one is being made.
  if (constructing) {
    constructing->poisoned = true;
    return;
  }
  for (Dialect *dialect : unwrap(ctx)->getLoadedDialects())
    if (const HostedInfo *hosted = info(dialect))
      hosted->poisoned = true;
}
int mhIsPoisoned(MlirContext ctx) {
  if (constructing)
    return constructing->poisoned;
  return llvm::any_of(unwrap(ctx)->getLoadedDialects(), [](Dialect *dialect) {
    const HostedInfo *hosted = info(dialect);
    return hosted && hosted->poisoned;
  });
}

const void *mhAttrDef(MlirAttribute attr) {
  auto dynamic = dyn_cast_or_null<DynamicAttr>(unwrap(attr));
  if (!dynamic)
    return nullptr;
  const HostedInfo *hosted = info(dynamic.getAttrDef()->getDialect());
  return hosted ? hosted->attrDefs.lookup(dynamic.getAttrDef()) : nullptr;
}

uint64_t mhAttrInstance(MlirAttribute attr) {
  const HostedInfo *hosted = info(&unwrap(attr).getDialect());
  return hosted ? hosted->instance : 0;
}

const MlirAttribute *mhAttrParams(MlirAttribute attr, intptr_t *n) {
  ArrayRef<Attribute> params = cast<DynamicAttr>(unwrap(attr)).getParams();
  *n = params.size();
  return reinterpret_cast<const MlirAttribute *>(params.data());
}

/// The sizes of a ranked tensor type.
const int64_t *mhTensorShape(MlirType type, intptr_t *n) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(unwrap(type)).getShape();
  *n = shape.size();
  return shape.data();
}

/// The same shape and elements with another encoding, which may be null.
MlirType mhTensorWithEncoding(MlirType type, MlirAttribute encoding) {
  auto tensor = cast<RankedTensorType>(unwrap(type));
  return wrap(RankedTensorType::get(tensor.getShape(), tensor.getElementType(), unwrap(encoding)));
}

/// The elements of array<i64: ...>; null for other attributes.
const int64_t *mhI64Array(MlirAttribute attr, intptr_t *n) {
  auto array = dyn_cast<DenseI64ArrayAttr>(unwrap(attr));
  if (!array)
    return nullptr;
  *n = array.size();
  return array.asArrayRef().data();
}

/// The elements of array<i32: ...>; null for other attributes.
const int32_t *mhI32Array(MlirAttribute attr, intptr_t *n) {
  auto array = dyn_cast<DenseI32ArrayAttr>(unwrap(attr));
  if (!array)
    return nullptr;
  *n = array.size();
  return array.asArrayRef().data();
}

const void *mhTypeDef(MlirType type) {
  auto dynamic = dyn_cast_or_null<DynamicType>(unwrap(type));
  if (!dynamic)
    return nullptr;
  const HostedInfo *hosted = info(dynamic.getTypeDef()->getDialect());
  return hosted ? hosted->typeDefs.lookup(dynamic.getTypeDef()) : nullptr;
}

const MlirAttribute *mhTypeParams(MlirType type, intptr_t *n) {
  ArrayRef<Attribute> params = cast<DynamicType>(unwrap(type)).getParams();
  *n = params.size();
  return reinterpret_cast<const MlirAttribute *>(params.data());
}

static ArrayRef<Attribute> paramList(const MlirAttribute *params, intptr_t n) {
  return ArrayRef<Attribute>(reinterpret_cast<const Attribute *>(params), n);
}

/// Null when the dialect is not loaded or (with `loc`) the parameters are bad.
MlirAttribute mhAttrGet(MlirContext ctx, MlirStringRef dialect, const void *def, const MlirAttribute *params,
                        intptr_t n, MlirLocation loc) {
  const HostedInfo *hosted = info(unwrap(ctx)->getOrLoadDialect(str(dialect)));
  DynamicAttrDefinition *attr = hosted ? hosted->attrs.lookup(def) : nullptr;
  if (!attr)
    return {nullptr};
  Location at = mlirLocationIsNull(loc) ? Location(UnknownLoc::get(unwrap(ctx))) : unwrap(loc);
  return wrap(Attribute(DynamicAttr::getChecked([at] { return emitError(at); }, attr, paramList(params, n))));
}

MlirType mhTypeGet(MlirContext ctx, MlirStringRef dialect, const void *def, const MlirAttribute *params, intptr_t n,
                   MlirLocation loc) {
  const HostedInfo *hosted = info(unwrap(ctx)->getOrLoadDialect(str(dialect)));
  DynamicTypeDefinition *type = hosted ? hosted->types.lookup(def) : nullptr;
  if (!type)
    return {nullptr};
  Location at = mlirLocationIsNull(loc) ? Location(UnknownLoc::get(unwrap(ctx))) : unwrap(loc);
  return wrap(Type(DynamicType::getChecked([at] { return emitError(at); }, type, paramList(params, n))));
}

// Sinks: what a callback appends to.
void mhSinkString(MhSink *sink, MlirStringRef text) { static_cast<std::string *>(sink)->append(text.data, text.length); }
void mhSinkAttr(MhSink *sink, MlirAttribute attr) {
  static_cast<SmallVectorImpl<Attribute> *>(sink)->push_back(unwrap(attr));
}
void mhSinkFoldAttr(MhSink *sink, MlirAttribute attr) {
  static_cast<SmallVectorImpl<OpFoldResult> *>(sink)->push_back(unwrap(attr));
}
void mhSinkFoldValue(MhSink *sink, MlirValue value) {
  static_cast<SmallVectorImpl<OpFoldResult> *>(sink)->push_back(unwrap(value));
}
void mhSinkRegion(MhSink *sink, intptr_t region) {
  static_cast<SmallVectorImpl<intptr_t> *>(sink)->push_back(region);
}

} // extern "C"
