// Hosted operations: the type-erased model MLIR calls, and their interfaces.
#include "shim.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/IR/SymbolTable.h"
#include <array>
#include <deque>
#include <mutex>

using namespace mlir;

namespace mh {

//===----------------------------------------------------------------------===//
// Traits
//===----------------------------------------------------------------------===//

namespace {
struct TraitEntry {
  TypeID id;
  LogicalResult (*verify)(Operation *);
  LogicalResult (*verifyRegions)(Operation *);
};

// Order is the ABI: `UpstreamTrait` in Rust numbers them the same way.
const TraitEntry &traitEntry(uint32_t trait) {
  namespace impl = OpTrait::impl;
  static const TraitEntry entries[] = {
      {TypeID::get<OpTrait::IsTerminator>(), impl::verifyIsTerminator, nullptr},
      {TypeID::get<OpTrait::IsIsolatedFromAbove>(), nullptr, impl::verifyIsIsolatedFromAbove},
      {TypeID::get<OpTrait::ReturnLike>(), nullptr, nullptr},
      {TypeID::get<OpTrait::IsCommutative>(), nullptr, nullptr},
      {TypeID::get<OpTrait::ConstantLike>(), nullptr, nullptr},
      {TypeID::get<OpTrait::SymbolTable>(), nullptr, detail::verifySymbolTable},
      {TypeID::get<OpTrait::AffineScope>(), nullptr, nullptr},
      {TypeID::get<OpTrait::AutomaticAllocationScope>(), nullptr, nullptr},
      {TypeID::get<OpTrait::HasRecursiveMemoryEffects>(), nullptr, nullptr},
      {TypeID::get<OpTrait::NoTerminator>(), nullptr, nullptr},
      {TypeID::get<OpTrait::SingleBlock>(), nullptr, nullptr},
      {TypeID::get<OpTrait::Elementwise>(), impl::verifyElementwise, nullptr},
      {TypeID::get<OpTrait::Scalarizable>(), nullptr, nullptr},
      {TypeID::get<OpTrait::Vectorizable>(), nullptr, nullptr},
      {TypeID::get<OpTrait::Tensorizable>(), nullptr, nullptr},
      {TypeID::get<OpTrait::SameOperandsShape>(), impl::verifySameOperandsShape, nullptr},
      {TypeID::get<OpTrait::SameOperandsAndResultShape>(), impl::verifySameOperandsAndResultShape, nullptr},
      {TypeID::get<OpTrait::SameOperandsElementType>(), impl::verifySameOperandsElementType, nullptr},
      {TypeID::get<OpTrait::SameOperandsAndResultElementType>(), impl::verifySameOperandsAndResultElementType,
       nullptr},
      {TypeID::get<OpTrait::SameOperandsAndResultType>(), impl::verifySameOperandsAndResultType, nullptr},
      {TypeID::get<OpTrait::SameTypeOperands>(), impl::verifySameTypeOperands, nullptr},
      {TypeID::get<OpTrait::IsInvolution>(), impl::verifyIsInvolution, nullptr},
      {TypeID::get<OpTrait::IsIdempotent>(), impl::verifyIsIdempotent, nullptr},
      {TypeID::get<OpTrait::HasOnlyGraphRegion>(), nullptr, nullptr},
  };
  return entries[trait];
}
} // namespace

TypeID traitId(uint32_t trait) { return traitEntry(trait).id; }

//===----------------------------------------------------------------------===//
// HostedOp
//===----------------------------------------------------------------------===//

HostedOp::HostedOp(const MhOpSpec &spec, Dialect *dialect, TypeID id)
    : Impl(str(spec.name), dialect, id, mlir::detail::InterfaceMap()), def(spec.def), interfaces(spec.interfaces) {
  MLIRContext *ctx = dialect->getContext();
  for (intptr_t i = 0; i < spec.numAttrs; ++i) {
    attrNames.push_back(StringAttr::get(ctx, str(spec.attrNames[i])));
    defaults.push_back(unwrap(callbacks->defaultAttr(def, wrap(ctx), i)));
  }
  for (intptr_t i = 0; i < spec.numTraits; ++i)
    traitIds.push_back(traitId(spec.traits[i]));
  for (intptr_t i = 0; i < spec.numResultNames; ++i)
    resultNames.push_back(str(spec.resultNames[i]));
}

HostedOp *HostedOp::of(Operation *op) {
  const HostedSelf *self = op->getName().getInterface<HostedSelf>();
  return self ? self->op : nullptr;
}

intptr_t HostedOp::slotOf(StringRef name) const {
  for (auto [i, attr] : llvm::enumerate(attrNames))
    if (attr.getValue() == name)
      return i;
  return -1;
}

LogicalResult HostedOp::foldHook(Operation *op, ArrayRef<Attribute> operands, SmallVectorImpl<OpFoldResult> &results) {
  return success(callbacks->foldOp(def, wrap(op), reinterpret_cast<const MlirAttribute *>(operands.data()),
                                   operands.size(), &results));
}

void HostedOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *ctx) {
  callbacks->canonicalizationPatterns(def, wrap(ctx), &patterns);
}

bool HostedOp::hasTrait(TypeID id) { return llvm::is_contained(traitIds, id); }

OperationName::ParseAssemblyFn HostedOp::getParseAssemblyFn() {
  if (interfaces & MH_GENERIC_FORM)
    return [](OpAsmParser &parser, OperationState &state) -> ParseResult {
      return parser.emitError(parser.getNameLoc()) << "'" << state.name << "' op has no custom assembly form";
    };
  return [d = def](OpAsmParser &parser, OperationState &state) -> ParseResult {
    return success(callbacks->parseOp(d, &parser, &state));
  };
}

void HostedOp::printAssembly(Operation *op, OpAsmPrinter &printer, StringRef defaultDialect) {
  // MLIR first prints everything to nowhere, to find aliases: that a printer
  // panics is usually known before anything was written.
  if ((interfaces & MH_GENERIC_FORM) || printerPanicked)
    return printer.printGenericOp(op, /*printOpName=*/true);
  StringRef opName = op->getName().getStringRef();
  // The dialect is left out where the enclosing op makes it the default.
  if (!defaultDialect.empty() && op->getName().getDialectNamespace() == defaultDialect &&
      opName.count('.') == 1)
    opName = opName.drop_front(defaultDialect.size() + 1);
  printer << opName;
  if (!callbacks->printOp(def, wrap(op), &printer))
    printerPanicked = true;
}

LogicalResult HostedOp::verifyInvariants(Operation *op) { return success(callbacks->verifyOp(def, wrap(op))); }
LogicalResult HostedOp::verifyRegionInvariants(Operation *op) {
  return success(callbacks->verifyRegions(def, wrap(op)));
}

std::optional<Attribute> HostedOp::getInherentAttr(Operation *op, StringRef name) {
  intptr_t slot = slotOf(name);
  if (slot < 0)
    return std::nullopt;
  return slots(op)[slot];
}

void HostedOp::setInherentAttr(Operation *op, StringAttr name, Attribute value) {
  for (auto [i, attr] : llvm::enumerate(attrNames))
    if (attr == name)
      slots(op)[i] = value;
}

void HostedOp::populateInherentAttrs(Operation *op, NamedAttrList &attrs) {
  for (auto [i, name] : llvm::enumerate(attrNames))
    if (Attribute value = slots(op)[i])
      attrs.append(name, value);
}

void HostedOp::initProperties(OperationName name, OpaqueProperties storage, OpaqueProperties init) {
  auto *to = storage.as<Attribute *>();
  const auto *from = init ? init.as<const Attribute *>() : nullptr;
  for (size_t i = 0; i < attrNames.size(); ++i)
    new (to + i) Attribute(from ? from[i] : Attribute());
  populateDefaultProperties(name, storage);
}

void HostedOp::populateDefaultProperties(OperationName, OpaqueProperties properties) {
  auto *slot = properties.as<Attribute *>();
  for (size_t i = 0; i < attrNames.size(); ++i)
    if (!slot[i])
      slot[i] = defaults[i];
}

LogicalResult HostedOp::setPropertiesFromAttr(OperationName name, OpaqueProperties storage, Attribute attr,
                                              function_ref<InFlightDiagnostic()> emitError) {
  auto dict = dyn_cast_or_null<DictionaryAttr>(attr);
  if (!dict) {
    if (emitError)
      emitError() << "expected DictionaryAttr to set properties";
    return failure();
  }
  auto *slot = storage.as<Attribute *>();
  for (NamedAttribute named : dict) {
    auto *at = llvm::find(attrNames, named.getName());
    if (at == attrNames.end()) {
      if (emitError)
        emitError() << "op '" << name.getStringRef() << "' has no property '" << named.getName().getValue() << "'";
      return failure();
    }
    slot[at - attrNames.begin()] = named.getValue();
  }
  return success();
}

Attribute HostedOp::getPropertiesAsAttr(Operation *op) {
  NamedAttrList list;
  populateInherentAttrs(op, list);
  return list.empty() ? Attribute() : Attribute(list.getDictionary(op->getContext()));
}

void HostedOp::copyProperties(OpaqueProperties to, OpaqueProperties from) {
  std::copy_n(from.as<const Attribute *>(), attrNames.size(), to.as<Attribute *>());
}
bool HostedOp::compareProperties(OpaqueProperties a, OpaqueProperties b) {
  return std::equal(a.as<const Attribute *>(), a.as<const Attribute *>() + attrNames.size(),
                    b.as<const Attribute *>());
}
llvm::hash_code HostedOp::hashProperties(OpaqueProperties p) {
  return llvm::hash_combine_range(p.as<const Attribute *>(), p.as<const Attribute *>() + attrNames.size());
}

//===----------------------------------------------------------------------===//
// Interfaces
//===----------------------------------------------------------------------===//

namespace {

using Effects = SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

struct EffectsModel : public MemoryEffectOpInterface::FallbackModel<EffectsModel> {
  void getEffects(Operation *op, Effects &effects) const {
    callbacks->effects(HostedOp::of(op)->def, wrap(op), &effects);
  }
};
struct NoEffectsModel : public MemoryEffectOpInterface::FallbackModel<NoEffectsModel> {
  void getEffects(Operation *, Effects &) const {}
};
struct SpeculatableModel : public ConditionallySpeculatable::FallbackModel<SpeculatableModel> {
  Speculation::Speculatability getSpeculatability(Operation *op) const {
    int kind = callbacks->speculatability(HostedOp::of(op)->def, wrap(op));
    return kind == 0   ? Speculation::NotSpeculatable
           : kind == 1 ? Speculation::Speculatable
                       : Speculation::RecursivelySpeculatable;
  }
};
struct AlwaysSpeculatableModel : public ConditionallySpeculatable::FallbackModel<AlwaysSpeculatableModel> {
  Speculation::Speculatability getSpeculatability(Operation *) const { return Speculation::Speculatable; }
};

struct SymbolModel : public SymbolOpInterface::FallbackModel<SymbolModel> {
  using Visibility = SymbolTable::Visibility;
  StringAttr getNameAttr(Operation *op) const { return SymbolTable::getSymbolName(op); }
  void setName(Operation *op, StringAttr name) const { SymbolTable::setSymbolName(op, name); }
  Visibility getVisibility(Operation *op) const { return SymbolTable::getSymbolVisibility(op); }
  bool isNested(Operation *op) const { return getVisibility(op) == Visibility::Nested; }
  bool isPrivate(Operation *op) const { return getVisibility(op) == Visibility::Private; }
  bool isPublic(Operation *op) const { return getVisibility(op) == Visibility::Public; }
  void setVisibility(Operation *op, Visibility vis) const { SymbolTable::setSymbolVisibility(op, vis); }
  void setNested(Operation *op) const { setVisibility(op, Visibility::Nested); }
  void setPrivate(Operation *op) const { setVisibility(op, Visibility::Private); }
  void setPublic(Operation *op) const { setVisibility(op, Visibility::Public); }
  std::optional<SymbolTable::UseRange> getSymbolUses(Operation *op, Operation *from) const {
    return SymbolTable::getSymbolUses(op, from);
  }
  bool symbolKnownUseEmpty(Operation *op, Operation *from) const {
    return SymbolTable::symbolKnownUseEmpty(op, from);
  }
  LogicalResult replaceAllSymbolUses(Operation *op, StringAttr symbol, Operation *from) const {
    return SymbolTable::replaceAllSymbolUses(op, symbol, from);
  }
  bool isOptionalSymbol(Operation *) const { return false; }
  bool canDiscardOnUseEmpty(Operation *op) const { return !isPublic(op); }
  bool isDeclaration(Operation *op) const { return op->getNumRegions() != 0 && op->getRegion(0).empty(); }
};

Attribute inherent(Operation *op, StringRef name) { return op->getInherentAttr(name).value_or(Attribute()); }

template <typename Model>
struct ArgAttrs : public Model {
  ArrayAttr getArgAttrsAttr(Operation *op) const { return dyn_cast_or_null<ArrayAttr>(inherent(op, "arg_attrs")); }
  ArrayAttr getResAttrsAttr(Operation *op) const { return dyn_cast_or_null<ArrayAttr>(inherent(op, "res_attrs")); }
  void setArgAttrsAttr(Operation *op, ArrayAttr attrs) const { op->setAttr("arg_attrs", attrs); }
  void setResAttrsAttr(Operation *op, ArrayAttr attrs) const { op->setAttr("res_attrs", attrs); }
  Attribute removeArgAttrsAttr(Operation *op) const { return op->removeAttr("arg_attrs"); }
  Attribute removeResAttrsAttr(Operation *op) const { return op->removeAttr("res_attrs"); }
};
struct ArgAttrsModel : public ArgAttrs<ArgAndResultAttrsOpInterface::FallbackModel<ArgAttrsModel>> {};

FunctionType functionType(Operation *op) {
  return cast<FunctionType>(cast<TypeAttr>(inherent(op, "function_type")).getValue());
}

struct CallableModel : public CallableOpInterface::FallbackModel<CallableModel> {
  Region *getCallableRegion(Operation *op) const {
    Region &body = op->getRegion(0);
    return body.empty() ? nullptr : &body;
  }
  ArrayRef<Type> getArgumentTypes(Operation *op) const { return functionType(op).getInputs(); }
  ArrayRef<Type> getResultTypes(Operation *op) const { return functionType(op).getResults(); }
};

struct FunctionModel : public FunctionOpInterface::ExternalModel<FunctionModel, FunctionOpInterface> {
  Type getFunctionType(Operation *op) const { return functionType(op); }
  void setFunctionTypeAttr(Operation *op, TypeAttr type) const { op->setAttr("function_type", type); }
  Type cloneTypeWith(Operation *op, TypeRange inputs, TypeRange results) const {
    return FunctionType::get(op->getContext(), inputs, results);
  }
};

struct CallModel : public CallOpInterface::ExternalModel<CallModel, CallOpInterface> {
  CallInterfaceCallable getCallableForCallee(Operation *op) const {
    return cast<SymbolRefAttr>(inherent(op, "callee"));
  }
  void setCalleeFromCallable(Operation *op, CallInterfaceCallable callee) const {
    op->setAttr("callee", cast<SymbolRefAttr>(callee));
  }
  Operation::operand_range getArgOperands(Operation *op) const { return op->getOperands(); }
  MutableOperandRange getArgOperandsMutable(Operation *op) const { return MutableOperandRange(op); }
};

struct SymbolUserModel : public SymbolUserOpInterface::FallbackModel<SymbolUserModel> {
  LogicalResult verifySymbolUses(Operation *op, SymbolTableCollection &tables) const {
    return success(callbacks->verifySymbolUses(HostedOp::of(op)->def, wrap(op), &tables));
  }
};

struct AsmNamesModel : public OpAsmOpInterface::ExternalModel<AsmNamesModel, OpAsmOpInterface> {
  void getAsmResultNames(Operation *op, OpAsmSetValueNameFn setName) const {
    HostedOp *hosted = HostedOp::of(op);
    for (auto [group, name] : llvm::enumerate(hosted->resultNames)) {
      intptr_t first = callbacks->resultGroup(hosted->def, wrap(op), group);
      if (first >= 0 && first < op->getNumResults() && !name.empty())
        setName(op->getResult(first), name);
    }
  }
};

struct RegionBranchModel : public RegionBranchOpInterface::ExternalModel<RegionBranchModel, RegionBranchOpInterface> {
  void getSuccessorRegions(Operation *op, RegionBranchPoint point, SmallVectorImpl<RegionSuccessor> &out) const {
    intptr_t from = -1;
    if (!point.isParent())
      from = point.getTerminatorPredecessorOrNull()->getParentRegion()->getRegionNumber();
    SmallVector<intptr_t> regions;
    callbacks->successorRegions(HostedOp::of(op)->def, wrap(op), from, &regions);
    for (intptr_t r : regions) {
      if (r < 0)
        out.push_back(RegionSuccessor(op, op->getResults()));
      else
        out.push_back(entry(op, op->getRegion(r), point.isParent()));
    }
  }
  OperandRange getEntrySuccessorOperands(Operation *op, RegionSuccessor successor) const {
    bool passed = successor.getSuccessor() && passes(op);
    return passed ? OperandRange(op->operand_begin(), op->operand_end()) : OperandRange(op->operand_end(), op->operand_end());
  }

private:
  static bool passes(Operation *op) { return HostedOp::of(op)->interfaces & MH_PASSES_OPERANDS; }
  static RegionSuccessor entry(Operation *op, Region &region, bool onEntry) {
    if (onEntry && passes(op) && !region.empty())
      return RegionSuccessor(&region, region.getArguments());
    return RegionSuccessor(&region);
  }
};

struct ReturnLikeModel
    : public RegionBranchTerminatorOpInterface::ExternalModel<ReturnLikeModel, RegionBranchTerminatorOpInterface> {
  MutableOperandRange getMutableSuccessorOperands(Operation *op, RegionSuccessor) const {
    return MutableOperandRange(op);
  }
};

struct DestinationsModel
    : public DestinationStyleOpInterface::ExternalModel<DestinationsModel, DestinationStyleOpInterface> {
  MutableOperandRange getDpsInitsMutable(Operation *op) const {
    intptr_t first = 0, count = 0;
    callbacks->destinations(HostedOp::of(op)->def, wrap(op), &first, &count);
    return MutableOperandRange(op, first, count);
  }
};

/// MLIR asks this interface without an operation, since there is none yet: the function that it calls must know by itself
/// whose types it infers. So there is one function for each number, and each definition has a number.
constexpr unsigned MostInferring = 512;
const void *inferringDefs[MostInferring];

LogicalResult inferReturnTypes(const void *def, MLIRContext *ctx, std::optional<Location> loc, ValueRange operands,
                               DictionaryAttr attrs, OpaqueProperties properties, RegionRange regions,
                               SmallVectorImpl<Type> &types) {
  SmallVector<Value> values(operands);
  SmallVector<Region *> bodies(regions.begin(), regions.end());
  MhTypeList inferred;
  std::string message;
  Location at = loc.value_or(UnknownLoc::get(ctx));
  auto *slots = properties ? reinterpret_cast<const MlirAttribute *>(properties.as<Attribute *>()) : nullptr;
  if (!callbacks->inferTypes(def, wrap(at), reinterpret_cast<const MlirValue *>(values.data()), values.size(), slots,
                             wrap(Attribute(attrs)), reinterpret_cast<const MlirRegion *>(bodies.data()),
                             bodies.size(), &inferred, &message))
    return emitOptionalError(loc, message);
  types.assign(inferred.begin(), inferred.end());
  return success();
}

bool areCompatible(const void *def, TypeRange inferred, TypeRange given) {
  return inferred.size() == given.size() && llvm::all_of(llvm::zip_equal(inferred, given), [def](auto pair) {
           auto [one, other] = pair;
           return one == other || callbacks->compatibleTypes(def, wrap(one), wrap(other));
         });
}

LogicalResult refineReturnTypes(const void *def, MLIRContext *ctx, std::optional<Location> loc, ValueRange operands,
                                DictionaryAttr attrs, OpaqueProperties properties, RegionRange regions,
                                SmallVectorImpl<Type> &types) {
  SmallVector<Type> inferred;
  if (failed(inferReturnTypes(def, ctx, loc, operands, attrs, properties, regions, inferred)))
    return failure();
  if (!areCompatible(def, inferred, types))
    return emitOptionalError(loc, "inferred type(s) ", TypeRange(inferred),
                             " are incompatible with return type(s) of operation ", TypeRange(types));
  types.assign(inferred.begin(), inferred.end());
  return success();
}

/// Nothing but calls: there are as many of these as numbers.
template <unsigned Number>
struct Inference {
  static LogicalResult infer(MLIRContext *ctx, std::optional<Location> loc, ValueRange operands, DictionaryAttr attrs,
                             OpaqueProperties properties, RegionRange regions, SmallVectorImpl<Type> &types) {
    return inferReturnTypes(inferringDefs[Number], ctx, loc, operands, attrs, properties, regions, types);
  }
  static LogicalResult refine(MLIRContext *ctx, std::optional<Location> loc, ValueRange operands, DictionaryAttr attrs,
                              OpaqueProperties properties, RegionRange regions, SmallVectorImpl<Type> &types) {
    return refineReturnTypes(inferringDefs[Number], ctx, loc, operands, attrs, properties, regions, types);
  }
  static bool compatible(TypeRange inferred, TypeRange given) {
    return areCompatible(inferringDefs[Number], inferred, given);
  }
};

/// One class for all of them, whose functions are set where it is attached: MLIR's templates for 512 take long to compile.
struct InferModel : public InferTypeOpInterface::Concept {
  using Interface = InferTypeOpInterface;
  InferModel() : Concept{nullptr, nullptr, nullptr} {}
};

template <unsigned... Numbers>
constexpr std::array<InferTypeOpInterface::Concept, sizeof...(Numbers)>
inferences(std::integer_sequence<unsigned, Numbers...>) {
  return {InferTypeOpInterface::Concept{Inference<Numbers>::infer, Inference<Numbers>::refine,
                                        Inference<Numbers>::compatible}...};
}

void attachInference(mlir::detail::InterfaceMap &map, const void *def) {
  static constexpr auto models = inferences(std::make_integer_sequence<unsigned, MostInferring>());
  static std::mutex mutex;
  static unsigned count = 0;
  std::lock_guard<std::mutex> lock(mutex);
  unsigned number = std::find(inferringDefs, inferringDefs + count, def) - inferringDefs;
  if (number == MostInferring)
    llvm::report_fatal_error("more than 512 hosted operations of a process infer types by MLIR's interface");
  if (number == count)
    inferringDefs[count++] = def;
  map.insertModels<InferModel>();
  *map.lookup<InferTypeOpInterface>() = models[number];
}

} // namespace

void attachInterfaces(HostedOp &op) {
  mlir::detail::InterfaceMap &map = op.getInterfaceMap();
  map.insertModels<HostedSelf>();
  map.lookup<HostedSelf>()->op = &op;
  uint32_t bits = op.interfaces;
  // MLIR's writer asks for it wherever there is property storage.
  if (op.getOpPropertyByteSize())
    attachBytecode(map);
  if (bits & MH_EFFECTS)
    map.insertModels<EffectsModel>();
  if (bits & MH_NO_EFFECTS)
    map.insertModels<NoEffectsModel>();
  if (bits & MH_SPECULATABLE)
    map.insertModels<SpeculatableModel>();
  if (bits & MH_ALWAYS_SPECULATABLE)
    map.insertModels<AlwaysSpeculatableModel>();
  if (bits & MH_SYMBOL)
    map.insertModels<SymbolModel>();
  if (bits & (MH_FUNCTION | MH_CALL))
    map.insertModels<ArgAttrsModel>();
  if (bits & MH_FUNCTION)
    map.insertModels<CallableModel, FunctionModel>();
  if (bits & MH_CALL)
    map.insertModels<CallModel>();
  if (bits & MH_SYMBOL_USER)
    map.insertModels<SymbolUserModel>();
  if (bits & MH_ASM_NAMES)
    map.insertModels<AsmNamesModel>();
  if (bits & MH_REGION_BRANCH)
    map.insertModels<RegionBranchModel>();
  if (bits & MH_RETURN_LIKE)
    map.insertModels<ReturnLikeModel>();
  if (bits & MH_INFER_TYPES)
    attachInference(map, op.def);
  if (bits & MH_DESTINATIONS)
    map.insertModels<DestinationsModel>();
}

namespace {
struct HostedResource : public SideEffects::Resource {
  HostedResource(TypeID id, StringRef name) : Resource(id), name(name) {}
  StringRef getName() final { return name; }
  std::string name;
};
} // namespace
} // namespace mh

using namespace mh;

extern "C" {

int mhVerifyDestinations(MlirOperation op) {
  return succeeded(mlir::detail::verifyDestinationStyleOpInterface(unwrap(op)));
}
void mhSinkType(MhSink *sink, MlirType type) { static_cast<MhTypeList *>(sink)->push_back(unwrap(type)); }

/// Runs the verifier of upstream trait `trait`.
int mhVerifyTrait(MlirOperation op, uint32_t trait) {
  auto verify = traitEntry(trait).verify;
  return !verify || succeeded(verify(unwrap(op)));
}
int mhVerifyRegionTrait(MlirOperation op, uint32_t trait) {
  auto verify = traitEntry(trait).verifyRegions;
  return !verify || succeeded(verify(unwrap(op)));
}

/// What MLIR checks of symbols and, if asked to, of functions.
int mhVerifySymbol(MlirOperation op, int function) {
  Operation *o = unwrap(op);
  if (failed(detail::verifySymbol(o)))
    return 0;
  auto symbol = cast<SymbolOpInterface>(o);
  if (symbol.isDeclaration() && symbol.isPublic()) {
    o->emitOpError("symbol declaration cannot have public visibility");
    return 0;
  }
  return !function || succeeded(function_interface_impl::verifyTrait(cast<FunctionOpInterface>(o)));
}

/// Whether any op, hosted or not, has the upstream trait.
int mhOpHasTrait(MlirOperation op, uint32_t trait) { return unwrap(op)->getName().hasTrait(traitId(trait)); }

/// The name of the operation; says whether its dialect registered it.
MlirStringRef mhOpName(MlirOperation op, int *registered) {
  OperationName name = unwrap(op)->getName();
  *registered = name.isRegistered();
  return wrap(name.getStringRef());
}

const void *mhOpDef(MlirOperation op) {
  HostedOp *hosted = HostedOp::of(unwrap(op));
  return hosted ? hosted->def : nullptr;
}

MhOpKind mhOpKind(MlirOperation op) {
  OperationName name = unwrap(op)->getName();
  const HostedSelf *self = name.getInterface<HostedSelf>();
  return {self ? self->op->def : nullptr, name.isRegistered() ? name.getTypeID().getAsOpaquePointer() : nullptr};
}

/// Null where there is no such slot, also of operations that are not hosted.
MlirAttribute mhOpSlot(MlirOperation op, intptr_t slot) {
  HostedOp *hosted = HostedOp::of(unwrap(op));
  bool known = hosted && slot >= 0 && slot < (intptr_t)hosted->attrNames.size();
  return wrap(known ? hosted->slots(unwrap(op))[slot] : Attribute());
}
/// 0 where there is no such slot.
int mhOpSetSlot(MlirOperation op, intptr_t slot, MlirAttribute attr) {
  HostedOp *hosted = HostedOp::of(unwrap(op));
  if (!hosted || slot < 0 || slot >= (intptr_t)hosted->attrNames.size())
    return 0;
  hosted->slots(unwrap(op))[slot] = unwrap(attr);
  return 1;
}

/// The default of an inherent attribute, or null.
MlirAttribute mhOpDefault(MlirOperation op, intptr_t slot) {
  HostedOp *hosted = HostedOp::of(unwrap(op));
  return wrap(hosted && slot >= 0 && slot < (intptr_t)hosted->defaults.size() ? hosted->defaults[slot] : Attribute());
}

/// A memory resource named `name`; the same name gives the same resource.
void *mhResource(MlirStringRef name) {
  static std::mutex mutex;
  static std::deque<HostedResource> resources;
  static TypeIDAllocator ids;
  std::lock_guard<std::mutex> lock(mutex);
  for (HostedResource &resource : resources)
    if (resource.name == str(name))
      return static_cast<SideEffects::Resource *>(&resource);
  resources.emplace_back(ids.allocate(), str(name));
  return static_cast<SideEffects::Resource *>(&resources.back());
}

/// kind: 0 read, 1 write, 2 allocate, 3 free. `value`: 0 none, i+1 operand i,
/// -(i+1) result i.
void mhSinkEffect(MhSink *sink, MlirOperation op, int kind, void *resource, intptr_t value) {
  auto &effects = *static_cast<Effects *>(sink);
  auto *res = resource ? static_cast<SideEffects::Resource *>(resource) : SideEffects::DefaultResource::get();
  MemoryEffects::Effect *effect = kind == 0   ? static_cast<MemoryEffects::Effect *>(MemoryEffects::Read::get())
                                  : kind == 1 ? static_cast<MemoryEffects::Effect *>(MemoryEffects::Write::get())
                                  : kind == 2 ? static_cast<MemoryEffects::Effect *>(MemoryEffects::Allocate::get())
                                              : static_cast<MemoryEffects::Effect *>(MemoryEffects::Free::get());
  if (value > 0)
    effects.emplace_back(effect, &unwrap(op)->getOpOperand(value - 1), res);
  else if (value < 0)
    effects.emplace_back(effect, unwrap(op)->getOpResult(-value - 1), res);
  else
    effects.emplace_back(effect, res);
}

int mhIsMemoryEffectFree(MlirOperation op) { return isMemoryEffectFree(unwrap(op)); }
int mhIsPure(MlirOperation op) { return isPure(unwrap(op)); }
int mhWritesMemory(MlirOperation op) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(unwrap(op));
  return effects && effects.hasEffect<MemoryEffects::Write>();
}
int mhIsSpeculatable(MlirOperation op) { return isSpeculatable(unwrap(op)); }

MlirOperation mhLookupSymbol(MlirOperation from, MlirAttribute symbol, void *tables) {
  auto ref = cast<SymbolRefAttr>(unwrap(symbol));
  if (tables)
    return wrap(static_cast<SymbolTableCollection *>(tables)->lookupNearestSymbolFrom(unwrap(from), ref));
  return wrap(SymbolTable::lookupNearestSymbolFrom(unwrap(from), ref));
}

/// Emits a diagnostic at the op, prefixed with its name when `prefix`.
/// severity: 0 error, 1 warning, 2 remark. Remarks do not repeat the operation.
void mhOpEmit(MlirOperation op, int severity, int prefix, MlirStringRef message, const MlirLocation *noteLocs,
              const MlirStringRef *notes, intptr_t numNotes) {
  Operation *o = unwrap(op);
  InFlightDiagnostic diag = severity == 0   ? (prefix ? o->emitOpError() : o->emitError())
                            : severity == 1 ? (prefix ? o->emitOpError() : o->emitWarning())
                                            : mlir::emitRemark(o->getLoc());
  diag << str(message);
  for (intptr_t i = 0; i < numNotes; ++i)
    diag.attachNote(unwrap(noteLocs[i])) << str(notes[i]);
}

void mhEmit(MlirLocation loc, int severity, MlirStringRef message) {
  if (severity == 0)
    emitError(unwrap(loc)) << str(message);
  else if (severity == 1)
    emitWarning(unwrap(loc)) << str(message);
  else
    emitRemark(unwrap(loc)) << str(message);
}

/// Takes an operation that has no uses out of its block and from its operands,
/// without freeing it: handles to it, and to what is in it, stay valid.
void mhOpBury(MlirOperation op) {
  Operation *o = unwrap(op);
  if (o->getBlock())
    o->remove();
  o->dropAllReferences();
}
/// Frees it.
void mhOpFree(MlirOperation op) { unwrap(op)->destroy(); }
/// Whether a value defined in the operation is used outside of it.
int mhOpIsUsed(MlirOperation op) { return !unwrap(op)->use_empty(); }

void mhOpMoveBefore(MlirOperation op, MlirOperation before) { unwrap(op)->moveBefore(unwrap(before)); }
intptr_t mhRegionNumber(MlirRegion region) { return unwrap(region)->getRegionNumber(); }
int mhIsBeforeInBlock(MlirOperation a, MlirOperation b) { return unwrap(a)->isBeforeInBlock(unwrap(b)); }
} // extern "C"
