// The parser and printer interfaces, flattened.
#include "shim.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using mh::str;

static int ok(ParseResult result) { return succeeded(result); }
static int ok(OptionalParseResult result) { return !result.has_value() ? 2 : succeeded(*result) ? 1 : 0; }

extern "C" {

//===-- Parsing: attributes and types ------------------------------------===//

MhParser *mhOpParserBase(MhOpParser *p) { return p; }
MlirContext mhParserContext(MhParser *p) { return wrap(p->getContext()); }
const char *mhParserLoc(MhParser *p) { return p->getCurrentLocation().getPointer(); }
const char *mhParserNameLoc(MhParser *p) { return p->getNameLoc().getPointer(); }
MlirLocation mhParserEncodedLoc(MhParser *p, const char *loc) {
  return wrap(p->getEncodedSourceLoc(SMLoc::getFromPointer(loc)));
}
void mhParserError(MhParser *p, const char *loc, MlirStringRef message) {
  p->emitError(SMLoc::getFromPointer(loc)) << str(message);
}

/// Punctuation by index, see `Punct` in Rust. With `optional`, 0 means absent
/// and no diagnostic is emitted.
int mhParsePunct(MhParser *p, int punct, int optional) {
  switch (punct) {
#define PUNCT(N, NAME)                                                                                                 \
  case N:                                                                                                              \
    return ok(optional ? p->parseOptional##NAME() : p->parse##NAME());
    PUNCT(0, Arrow)
    PUNCT(1, LBrace)
    PUNCT(2, RBrace)
    PUNCT(3, Colon)
    PUNCT(4, Comma)
    PUNCT(5, Equal)
    PUNCT(6, Less)
    PUNCT(7, Greater)
    PUNCT(8, Question)
    PUNCT(9, Plus)
    PUNCT(10, Star)
    PUNCT(11, LParen)
    PUNCT(12, RParen)
    PUNCT(13, LSquare)
    PUNCT(14, RSquare)
    PUNCT(15, Ellipsis)
    PUNCT(16, VerticalBar)
    PUNCT(17, Minus)
    PUNCT(18, Slash)
#undef PUNCT
  }
  return 0;
}
int mhParseKeyword(MhParser *p, MlirStringRef keyword) { return ok(p->parseKeyword(str(keyword))); }
int mhParseOptionalKeyword(MhParser *p, MlirStringRef keyword) { return ok(p->parseOptionalKeyword(str(keyword))); }
/// Any keyword; `out` points into the source buffer.
int mhParseAnyKeyword(MhParser *p, int optional, MlirStringRef *out) {
  StringRef keyword;
  if (failed(optional ? p->parseOptionalKeyword(&keyword) : p->parseKeyword(&keyword)))
    return 0;
  *out = str(keyword);
  return 1;
}
int mhParseKeywordOrString(MhParser *p, int optional, MhSink *out) {
  auto *text = static_cast<std::string *>(out);
  return ok(optional ? p->parseOptionalKeywordOrString(text) : p->parseKeywordOrString(text));
}
int mhParseString(MhParser *p, int optional, MhSink *out) {
  auto *text = static_cast<std::string *>(out);
  return ok(optional ? p->parseOptionalString(text) : p->parseString(text));
}
/// 0 error, 1 parsed, 2 absent.
int mhParseInteger(MhParser *p, int optional, int64_t *out) {
  if (optional)
    return ok(p->parseOptionalInteger(*out));
  return ok(p->parseInteger(*out));
}
int mhParseType(MhParser *p, MlirType *out) {
  Type type;
  if (p->parseType(type))
    return 0;
  *out = wrap(type);
  return 1;
}
int mhParseOptionalType(MhParser *p, MlirType *out) {
  Type type;
  int result = ok(p->parseOptionalType(type));
  *out = wrap(type);
  return result;
}
int mhParseAttr(MhParser *p, MlirType type, MlirAttribute *out) {
  Attribute attr;
  if (p->parseAttribute(attr, unwrap(type)))
    return 0;
  *out = wrap(attr);
  return 1;
}
int mhParseOptionalAttr(MhParser *p, MlirType type, MlirAttribute *out) {
  Attribute attr;
  int result = ok(p->parseOptionalAttribute(attr, unwrap(type)));
  *out = wrap(attr);
  return result;
}
int mhParseSymbol(MhParser *p, MlirAttribute *out) {
  StringAttr name;
  if (p->parseSymbolName(name))
    return 0;
  *out = wrap(Attribute(name));
  return 1;
}
int mhParseOptionalSymbol(MhParser *p, MlirAttribute *out) {
  StringAttr name;
  if (p->parseOptionalSymbolName(name))
    return 0;
  *out = wrap(Attribute(name));
  return 1;
}
/// Dimensions `4x8x`; dynamic ones are refused.
int mhParseDims(MhParser *p, int trailingX, MhSink *out) {
  SmallVector<int64_t> dims;
  if (p->parseDimensionList(dims, /*allowDynamic=*/false, trailingX))
    return 0;
  *static_cast<SmallVectorImpl<int64_t> *>(out) = dims;
  return 1;
}
SmallVectorImpl<int64_t> *mhDimsNew() { return new SmallVector<int64_t>(); }
void mhDimsFree(SmallVector<int64_t> *dims) { delete dims; }
const int64_t *mhDimsData(SmallVector<int64_t> *dims, intptr_t *n) {
  *n = dims->size();
  return dims->data();
}
std::string *mhStringNew() { return new std::string(); }
void mhStringFree(std::string *text) { delete text; }
MlirStringRef mhStringData(std::string *text) { return str(StringRef(*text)); }

//===-- Parsing: operations ----------------------------------------------===//

/// Mirrors OpAsmParser::UnresolvedOperand.
struct MhOperand {
  const char *loc;
  const char *name;
  size_t nameLen;
  unsigned number;
};
static MhOperand pack(const OpAsmParser::UnresolvedOperand &op) {
  return {op.location.getPointer(), op.name.data(), op.name.size(), op.number};
}
static OpAsmParser::UnresolvedOperand unpack(const MhOperand &op) {
  return {SMLoc::getFromPointer(op.loc), StringRef(op.name, op.nameLen), op.number};
}
int mhParseOperand(MhOpParser *p, MhOperand *out) {
  OpAsmParser::UnresolvedOperand operand;
  if (p->parseOperand(operand))
    return 0;
  *out = pack(operand);
  return 1;
}
/// 0 error, 1 parsed, 2 absent.
int mhParseOptionalOperand(MhOpParser *p, MhOperand *out) {
  OpAsmParser::UnresolvedOperand operand;
  OptionalParseResult result = p->parseOptionalOperand(operand);
  if (result.has_value() && succeeded(*result))
    *out = pack(operand);
  return ok(result);
}
int mhResolveOperand(MhOpParser *p, const MhOperand *operand, MlirType type, MhOpState *state) {
  return ok(p->resolveOperand(unpack(*operand), unwrap(type), state->operands));
}
void mhStateAddTypes(MhOpState *state, const MlirType *types, intptr_t n) {
  for (intptr_t i = 0; i < n; ++i)
    state->addTypes(unwrap(types[i]));
}
void mhStateAddAttr(MhOpState *state, MlirStringRef name, MlirAttribute attr) {
  state->attributes.set(str(name), unwrap(attr));
}
MlirAttribute mhStateGetAttr(MhOpState *state, MlirStringRef name) { return wrap(state->attributes.get(str(name))); }
MlirLocation mhStateLoc(MhOpState *state) { return wrap(state->location); }
intptr_t mhStateOperands(MhOpState *state, MlirValue *out, intptr_t max) {
  for (intptr_t i = 0; i < max && i < (intptr_t)state->operands.size(); ++i)
    out[i] = wrap(state->operands[i]);
  return state->operands.size();
}
int mhParseAttrDict(MhOpParser *p, int withKeyword, MhOpState *state) {
  return ok(withKeyword ? p->parseOptionalAttrDictWithKeyword(state->attributes)
                        : p->parseOptionalAttrDict(state->attributes));
}
/// `<{...}>`
int mhParsePropDict(MhOpParser *p, MhOpState *state) {
  if (failed(p->parseOptionalLess()))
    return 1;
  NamedAttrList attrs;
  if (p->parseOptionalAttrDict(attrs) || p->parseGreater())
    return 0;
  for (NamedAttribute attr : attrs)
    state->attributes.set(attr.getName(), attr.getValue());
  return 1;
}
MhArgs *mhArgsNew() { return new MhArgs(); }
void mhArgsFree(MhArgs *args) { delete args; }
int mhParseArgs(MhOpParser *p, MhArgs *args, int allowTypes) {
  return ok(p->parseArgumentList(*args, OpAsmParser::Delimiter::Paren, allowTypes));
}
intptr_t mhArgsCount(MhArgs *args) { return args->size(); }
MlirType mhArgsType(MhArgs *args, intptr_t i) { return wrap((*args)[i].type); }
void mhArgsSetType(MhArgs *args, intptr_t i, MlirType type) { (*args)[i].type = unwrap(type); }
/// Parses a region into the state's next region; `args` may be null.
int mhParseRegion(MhOpParser *p, MhOpState *state, MhArgs *args) {
  Region *region = state->addRegion();
  return ok(p->parseRegion(*region, args ? ArrayRef<OpAsmParser::Argument>(*args) : ArrayRef<OpAsmParser::Argument>()));
}
/// 0 error, 1 parsed, 2 absent; absent adds an empty region.
int mhParseOptionalRegion(MhOpParser *p, MhOpState *state) {
  Region *region = state->addRegion();
  return ok(p->parseOptionalRegion(*region));
}
void mhStateAddRegion(MhOpState *state) { state->addRegion(); }
/// A region whose only block holds `op`.
void mhStateAddRegionWith(MhOpState *state, MlirOperation op) {
  state->addRegion()->emplaceBlock().push_back(unwrap(op));
}
/// The state of another operation.
MhOpState *mhStateNew(MlirLocation loc, MlirStringRef name) { return new OperationState(unwrap(loc), str(name)); }
void mhStateFree(MhOpState *state) { delete state; }
MlirOperation mhStateCreate(MhOpState *state) { return wrap(Operation::create(*state)); }
int mhParseSuccessor(MhOpParser *p, MhOpState *state) {
  Block *block;
  if (p->parseSuccessor(block))
    return 0;
  state->addSuccessors(block);
  return 1;
}
/// Whether the state's region is empty, or not there.
int mhStateRegionEmpty(MhOpState *state, intptr_t i) {
  return i < 0 || i >= (intptr_t)state->regions.size() || state->regions[i]->empty();
}
/// A function-like op: name, signature, attributes and body.
int mhParseFunction(MhOpParser *p, MhOpState *state) {
  Builder &b = p->getBuilder();
  return ok(function_interface_impl::parseFunctionOp(
      *p, *state, /*allowVariadic=*/false, b.getStringAttr("function_type"),
      [](Builder &builder, ArrayRef<Type> args, ArrayRef<Type> results, function_interface_impl::VariadicFlag,
         std::string &) { return builder.getFunctionType(args, results); },
      b.getStringAttr("arg_attrs"), b.getStringAttr("res_attrs")));
}
void mhPrintFunction(MhOpPrinter *p, MlirOperation op) {
  MLIRContext *ctx = unwrap(op)->getContext();
  function_interface_impl::printFunctionOp(*p, cast<FunctionOpInterface>(unwrap(op)), /*isVariadic=*/false,
                                           "function_type", StringAttr::get(ctx, "arg_attrs"),
                                           StringAttr::get(ctx, "res_attrs"));
}

//===-- Printing ---------------------------------------------------------===//

MhPrinter *mhOpPrinterBase(MhOpPrinter *p) { return p; }
void mhPrint(MhPrinter *p, MlirStringRef text) { p->getStream() << str(text); }
void mhPrintType(MhPrinter *p, MlirType type) { p->printType(unwrap(type)); }
void mhPrintAttr(MhPrinter *p, MlirAttribute attr) { p->printAttribute(unwrap(attr)); }
void mhPrintAttrWithoutType(MhPrinter *p, MlirAttribute attr) { p->printAttributeWithoutType(unwrap(attr)); }
int mhPrintAttrAlias(MhPrinter *p, MlirAttribute attr) { return succeeded(p->printAlias(unwrap(attr))); }
int mhPrintTypeAlias(MhPrinter *p, MlirType type) { return succeeded(p->printAlias(unwrap(type))); }
void mhPrintString(MhPrinter *p, MlirStringRef text) { p->printString(str(text)); }
void mhPrintKeywordOrString(MhPrinter *p, MlirStringRef text) { p->printKeywordOrString(str(text)); }
void mhPrintSymbol(MhPrinter *p, MlirStringRef name) { p->printSymbolName(str(name)); }
void mhPrintOperand(MhOpPrinter *p, MlirValue value) { p->printOperand(unwrap(value)); }
void mhPrintRegion(MhOpPrinter *p, MlirRegion region, int entryArgs, int terminators, int emptyBlock) {
  p->printRegion(*unwrap(region), entryArgs, terminators, emptyBlock);
}
void mhPrintRegionArg(MhOpPrinter *p, MlirValue arg) { p->printRegionArgument(cast<BlockArgument>(unwrap(arg))); }
void mhPrintSuccessor(MhOpPrinter *p, MlirBlock block) { p->printSuccessor(unwrap(block)); }
void mhPrintNewline(MhOpPrinter *p) { p->printNewline(); }
void mhPrintIndent(MhOpPrinter *p, int more) {
  if (more)
    p->increaseIndent();
  else
    p->decreaseIndent();
}
/// Prints the op's attributes but for the inherent ones whose bit is set in
/// `elided` and the discardable ones named in `names`.
void mhPrintAttrDict(MhOpPrinter *p, MlirOperation op, uint64_t elided, const MlirStringRef *names, intptr_t n,
                     int withKeyword) {
  Operation *o = unwrap(op);
  SmallVector<NamedAttribute> attrs;
  for (NamedAttribute attr : o->getDiscardableAttrs()) {
    bool skip = false;
    for (intptr_t i = 0; i < n; ++i)
      skip |= attr.getName() == str(names[i]);
    if (!skip)
      attrs.push_back(attr);
  }
  if (mh::HostedOp *hosted = mh::HostedOp::of(o)) {
    size_t before = attrs.size();
    for (auto [i, name] : llvm::enumerate(hosted->attrNames))
      if (!(elided >> i & 1) && hosted->slots(o)[i])
        attrs.emplace_back(name, hosted->slots(o)[i]);
    if (attrs.size() != before)
      llvm::sort(attrs);
  }
  if (withKeyword)
    p->printOptionalAttrDictWithKeyword(attrs);
  else
    p->printOptionalAttrDict(attrs);
}
} // extern "C"
