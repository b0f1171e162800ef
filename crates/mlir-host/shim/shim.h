// The C boundary between MLIR's C++ extension points and Rust.
//
// Everything here forwards: a hosted dialect, op, attribute, type, pattern or
// pass is an opaque `def` pointer owned by Rust, and each virtual method that
// MLIR calls becomes one call through `MhCallbacks`. Nothing in this folder
// knows which dialects are hosted.
#pragma once

#include "mlir/CAPI/AffineMap.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Rewrite.h"
#include "mlir/CAPI/Support.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectInterface.h"
#include "mlir/IR/ExtensibleDialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/DenseMap.h"
#include <atomic>

using MhParser = mlir::AsmParser;
using MhOpParser = mlir::OpAsmParser;
using MhPrinter = mlir::AsmPrinter;
using MhOpPrinter = mlir::OpAsmPrinter;
using MhOpState = mlir::OperationState;
using MhArgs = llvm::SmallVector<mlir::OpAsmParser::Argument>;
using MhTypeList = llvm::SmallVector<mlir::Type>;

extern "C" {

/// Collects strings, attributes, values or effects that a callback produces.
typedef void MhSink;

/// Functions that Rust provides. All return values are 0 for failure and
/// non-zero for success unless said otherwise. None of them unwinds.
struct MhCallbacks {
  // Attributes and types. `params` of print and verify has `n` elements.
  int (*parseParams)(const void *def, MhParser *parser, MhSink *params);
  void (*printParams)(const void *def, MhPrinter *printer, const MlirAttribute *params, intptr_t n);
  /// Returns failure after appending the message to `message`.
  int (*verifyParams)(const void *def, MlirContext ctx, const MlirAttribute *params, intptr_t n, MhSink *message);
  // Operations.
  int (*parseOp)(const void *def, MhOpParser *parser, MhOpState *state);
  /// Failure means that the printer panicked: it is not asked again, and such
  /// operations are printed in the generic form.
  int (*printOp)(const void *def, MlirOperation op, MhOpPrinter *printer);
  int (*verifyOp)(const void *def, MlirOperation op);
  int (*verifyRegions)(const void *def, MlirOperation op);
  int (*foldOp)(const void *def, MlirOperation op, const MlirAttribute *operands, intptr_t n, MhSink *results);
  void (*effects)(const void *def, MlirOperation op, MhSink *effects);
  /// 0: never, 1: always, 2: as its regions are.
  int (*speculatability)(const void *def, MlirOperation op);
  /// Pushes successor region numbers (-1 for the parent) reached from
  /// `region` (-1: on entry).
  void (*successorRegions)(const void *def, MlirOperation op, intptr_t region, MhSink *successors);
  /// The first result of a result group, or -1 when the group is empty.
  intptr_t (*resultGroup)(const void *def, MlirOperation op, intptr_t group);
  /// Infers result types from operands, inherent attributes (by slot where there are properties, else by name) and regions;
  /// appends types, or the message.
  int (*inferTypes)(const void *def, MlirLocation loc, const MlirValue *operands, intptr_t numOperands,
                    const MlirAttribute *slots, MlirAttribute attrs, const MlirRegion *regions, intptr_t numRegions,
                    MhSink *types, MhSink *message);
  int (*compatibleTypes)(const void *def, MlirType inferred, MlirType given);
  /// The operands that results are tied to: the first, and how many.
  void (*destinations)(const void *def, MlirOperation op, intptr_t *first, intptr_t *count);
  int (*verifySymbolUses)(const void *def, MlirOperation op, void *symbolTables);
  /// Writes the default of inherent attribute `slot`, or a null attribute.
  MlirAttribute (*defaultAttr)(const void *def, MlirContext ctx, intptr_t slot);
  void (*canonicalizationPatterns)(const void *def, MlirContext ctx, MhSink *patterns);
  // Dialects.
  /// Returns 0: no alias, 1: overridable, 2: final; appends the name.
  int (*attrAlias)(const void *def, MlirAttribute attr, MhSink *name);
  int (*typeAlias)(const void *def, MlirType type, MhSink *name);
  int (*verifyOpAttr)(const void *def, MlirOperation op, MlirStringRef name, MlirAttribute attr);
  int (*verifyArgAttr)(const void *def, MlirOperation op, intptr_t arg, MlirStringRef name, MlirAttribute attr);
  /// Returns the constant op, inserted at the builder, or null.
  MlirOperation (*materializeConstant)(const void *def, void *builder, MlirAttribute value, MlirType type, MlirLocation loc);
  /// Inliner: may `op` be inlined into `dest`?
  int (*legalToInlineOp)(const void *def, MlirOperation op, MlirRegion dest);
  int (*legalToInlineCall)(const void *def, MlirOperation call, MlirOperation callable);
  // Patterns and passes.
  int (*matchAndRewrite)(const void *def, MlirOperation op, MlirRewriterBase rewriter);
  int (*runPass)(const void *def, void *pass, MlirOperation op);
  // Dialect conversion. An answer beyond those that are listed means that an error was reported.
  /// 0: illegal, 1: legal, 2: unknown.
  int (*isLegal)(const void *def, MlirOperation op);
  /// 0: there is no conversion, 1: to the types appended, 2: unknown. An error is reported at `loc`.
  int (*convertType)(const void *def, MlirType type, MlirLocation loc, MhSink *types);
  /// Makes values of `types` of `inputs`, for what is converted, or what is not. 0: cannot be made, 1: as appended.
  int (*materialize)(const void *def, int target, MlirRewriterBase rewriter, const MlirType *types, intptr_t numTypes,
                     const MlirValue *inputs, intptr_t numInputs, MlirLocation loc, MlirType original, MhSink *values);
  /// Operand i became operands[ends[i - 1]..ends[i]]. 0: does not match, 1: converted.
  int (*convertOp)(const void *def, MlirOperation op, const MlirValue *operands, const intptr_t *ends, intptr_t numOperands,
                   MlirRewriterBase rewriter, const void *types);
};

/// What tells an operation from those of other types: the definition where it is hosted, and its TypeID where it is
/// registered.
struct MhOpKind {
  const void *def;
  const void *typeId;
};

/// One operation to register. Arrays stay alive for the process.
struct MhOpSpec {
  const void *def;
  MlirStringRef name;
  const MlirStringRef *attrNames;
  intptr_t numAttrs;
  const uint32_t *traits;
  intptr_t numTraits;
  uint32_t interfaces; // bits of MhInterface
  const MlirStringRef *resultNames; // one per result group, may be empty
  intptr_t numResultNames;
};

enum MhInterface : uint32_t {
  MH_EFFECTS = 1,
  MH_NO_EFFECTS = 2,
  MH_SPECULATABLE = 4,
  MH_ALWAYS_SPECULATABLE = 8,
  MH_SYMBOL = 16,
  MH_FUNCTION = 32,
  MH_CALL = 64,
  MH_SYMBOL_USER = 128,
  MH_ASM_NAMES = 256,
  MH_REGION_BRANCH = 512,
  MH_RETURN_LIKE = 1024,
  MH_GENERIC_FORM = 2048, // no custom assembly form
  MH_PASSES_OPERANDS = 4096, // to each region reached on entry
  MH_INFER_TYPES = 8192,
  MH_DESTINATIONS = 16384,
};

struct MhParamSpec {
  const void *def;
  MlirStringRef name; // mnemonic, without the dialect
};

struct MhDialectSpec {
  const void *def;
  MlirStringRef name;
  const MhOpSpec *ops;
  intptr_t numOps;
  const MhParamSpec *attrs;
  intptr_t numAttrs;
  const MhParamSpec *types;
  intptr_t numTypes;
  const MlirStringRef *dependencies;
  intptr_t numDependencies;
  uint64_t version; // of what bytecode holds
};
}

namespace mh {

extern const MhCallbacks *callbacks;

/// Marks a dialect as hosted and finds definitions from Rust's pointers.
struct HostedInfo : public mlir::DialectInterface::Base<HostedInfo> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(HostedInfo)
  HostedInfo(mlir::Dialect *dialect);
  llvm::DenseMap<const void *, mlir::DynamicAttrDefinition *> attrs;
  llvm::DenseMap<const void *, const void *> attrDefs;
  llvm::DenseMap<const void *, mlir::DynamicTypeDefinition *> types;
  llvm::DenseMap<const void *, const void *> typeDefs;
  /// Differs between any two loaded dialects of a process, also when contexts come and go.
  uint64_t instance;
  /// Whether a callback panicked in this context: nothing that it holds is to be trusted.
  mutable std::atomic<bool> poisoned{false};
};

class HostedOp;

/// By which a hosted operation is known, and found, wherever an operation is at hand: an interface (and its model) of its
/// own. Rust asks for each operation that it looks at, so this must be quicker than to ask the dialect.
struct HostedSelf {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(HostedSelf)
  using Interface = HostedSelf;
  using Concept = HostedSelf;
  static mlir::TypeID getInterfaceID() { return mlir::TypeID::get<HostedSelf>(); }
  HostedOp *op = nullptr;
};

/// An operation whose behaviour lives in Rust. Its inherent attributes are the
/// property: an array with one attribute slot per name, null where absent.
class HostedOp : public mlir::OperationName::Impl {
public:
  HostedOp(const MhOpSpec &spec, mlir::Dialect *dialect, mlir::TypeID id);

  static HostedOp *of(mlir::Operation *op);
  intptr_t slotOf(llvm::StringRef name) const;
  mlir::Attribute *slots(mlir::Operation *op) const {
    return op->getPropertiesStorage().as<mlir::Attribute *>();
  }

  llvm::LogicalResult foldHook(mlir::Operation *, llvm::ArrayRef<mlir::Attribute>,
                               llvm::SmallVectorImpl<mlir::OpFoldResult> &) final;
  void getCanonicalizationPatterns(mlir::RewritePatternSet &, mlir::MLIRContext *) final;
  bool hasTrait(mlir::TypeID) final;
  mlir::OperationName::ParseAssemblyFn getParseAssemblyFn() final;
  void populateDefaultAttrs(const mlir::OperationName &, mlir::NamedAttrList &) final {}
  void printAssembly(mlir::Operation *, mlir::OpAsmPrinter &, llvm::StringRef) final;
  llvm::LogicalResult verifyInvariants(mlir::Operation *) final;
  llvm::LogicalResult verifyRegionInvariants(mlir::Operation *) final;
  std::optional<mlir::Attribute> getInherentAttr(mlir::Operation *, llvm::StringRef) final;
  void setInherentAttr(mlir::Operation *, mlir::StringAttr, mlir::Attribute) final;
  void populateInherentAttrs(mlir::Operation *, mlir::NamedAttrList &) final;
  llvm::LogicalResult verifyInherentAttrs(mlir::OperationName, mlir::NamedAttrList &,
                                          llvm::function_ref<mlir::InFlightDiagnostic()>) final {
    return mlir::success();
  }
  int getOpPropertyByteSize() final { return attrNames.size() * sizeof(mlir::Attribute); }
  void initProperties(mlir::OperationName, mlir::OpaqueProperties, mlir::OpaqueProperties) final;
  void deleteProperties(mlir::OpaqueProperties) final {}
  void populateDefaultProperties(mlir::OperationName, mlir::OpaqueProperties) final;
  llvm::LogicalResult setPropertiesFromAttr(mlir::OperationName, mlir::OpaqueProperties, mlir::Attribute,
                                            llvm::function_ref<mlir::InFlightDiagnostic()>) final;
  mlir::Attribute getPropertiesAsAttr(mlir::Operation *) final;
  void copyProperties(mlir::OpaqueProperties, mlir::OpaqueProperties) final;
  bool compareProperties(mlir::OpaqueProperties, mlir::OpaqueProperties) final;
  llvm::hash_code hashProperties(mlir::OpaqueProperties) final;

  const void *def;
  uint32_t interfaces;
  std::atomic<bool> printerPanicked{false};
  llvm::SmallVector<mlir::StringAttr, 4> attrNames;
  llvm::SmallVector<mlir::Attribute, 4> defaults;
  llvm::SmallVector<mlir::TypeID, 4> traitIds;
  llvm::SmallVector<llvm::StringRef, 2> resultNames;
};

/// Adds the interface models that `op`'s bits ask for.
void attachInterfaces(HostedOp &op);
/// How an operation with inherent attributes goes to bytecode and back.
void attachBytecode(mlir::detail::InterfaceMap &map);
/// How a dialect's version does.
std::unique_ptr<mlir::DialectInterface> bytecodeOf(mlir::Dialect *dialect, uint64_t version);
/// TypeID of upstream trait number `trait` (see mhTraits in op.cpp).
mlir::TypeID traitId(uint32_t trait);

inline llvm::StringRef str(MlirStringRef s) { return llvm::StringRef(s.data, s.length); }
inline MlirStringRef str(llvm::StringRef s) { return MlirStringRef{s.data(), s.size()}; }

} // namespace mh
