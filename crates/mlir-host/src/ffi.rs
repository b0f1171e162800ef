//! The C functions of the shim. Private: every use is wrapped by a safe item.

use mlir_sys::*;
use std::ffi::{c_char, c_int, c_void};

/// Where a callback appends what it produces; its C++ type depends on the callback.
pub(crate) enum Sink {}
pub(crate) enum RawParser {}
pub(crate) enum RawOpParser {}
pub(crate) enum RawPrinter {}
pub(crate) enum RawOpPrinter {}
pub(crate) enum RawState {}
pub(crate) enum RawArgs {}
pub(crate) enum RawDims {}
pub(crate) enum RawString {}
pub(crate) enum RawSource {}

/// Mirrors `MhOperand`: an operand that has been parsed and not yet resolved.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawOperand {
    pub(crate) loc: *const c_char,
    name: *const c_char,
    name_len: usize,
    number: u32,
}

impl RawOperand {
    pub(crate) const EMPTY: RawOperand =
        RawOperand { loc: std::ptr::null(), name: std::ptr::null(), name_len: 0, number: 0 };
}

type Def = *const c_void;

/// Mirrors `MhOpKind`: what tells an operation from those of other types.
#[repr(C)]
pub(crate) struct MhOpKind {
    pub(crate) def: Def,
    pub(crate) type_id: *const c_void,
}

#[repr(C)]
pub(crate) struct Callbacks {
    pub parse_params: extern "C" fn(Def, *mut RawParser, *mut Sink) -> c_int,
    pub print_params: extern "C" fn(Def, *mut RawPrinter, *const MlirAttribute, isize),
    pub verify_params: extern "C" fn(Def, MlirContext, *const MlirAttribute, isize, *mut Sink) -> c_int,
    pub parse_op: extern "C" fn(Def, *mut RawOpParser, *mut RawState) -> c_int,
    pub print_op: extern "C" fn(Def, MlirOperation, *mut RawOpPrinter) -> c_int,
    pub verify_op: extern "C" fn(Def, MlirOperation) -> c_int,
    pub verify_regions: extern "C" fn(Def, MlirOperation) -> c_int,
    pub fold_op: extern "C" fn(Def, MlirOperation, *const MlirAttribute, isize, *mut Sink) -> c_int,
    pub effects: extern "C" fn(Def, MlirOperation, *mut Sink),
    pub speculatability: extern "C" fn(Def, MlirOperation) -> c_int,
    pub successor_regions: extern "C" fn(Def, MlirOperation, isize, *mut Sink),
    pub result_group: extern "C" fn(Def, MlirOperation, isize) -> isize,
    pub infer_types: extern "C" fn(
        Def,
        MlirLocation,
        *const MlirValue,
        isize,
        *const MlirAttribute,
        MlirAttribute,
        *const MlirRegion,
        isize,
        *mut Sink,
        *mut Sink,
    ) -> c_int,
    pub compatible_types: extern "C" fn(Def, MlirType, MlirType) -> c_int,
    pub destinations: extern "C" fn(Def, MlirOperation, *mut isize, *mut isize),
    pub verify_symbol_uses: extern "C" fn(Def, MlirOperation, *mut c_void) -> c_int,
    pub default_attr: extern "C" fn(Def, MlirContext, isize) -> MlirAttribute,
    pub canonicalization_patterns: extern "C" fn(Def, MlirContext, *mut Sink),
    pub attr_alias: extern "C" fn(Def, MlirAttribute, *mut Sink) -> c_int,
    pub type_alias: extern "C" fn(Def, MlirType, *mut Sink) -> c_int,
    pub verify_op_attr: extern "C" fn(Def, MlirOperation, MlirStringRef, MlirAttribute) -> c_int,
    pub verify_arg_attr: extern "C" fn(Def, MlirOperation, isize, MlirStringRef, MlirAttribute) -> c_int,
    pub materialize_constant:
        extern "C" fn(Def, *mut c_void, MlirAttribute, MlirType, MlirLocation) -> MlirOperation,
    pub legal_to_inline_op: extern "C" fn(Def, MlirOperation, MlirRegion) -> c_int,
    pub legal_to_inline_call: extern "C" fn(Def, MlirOperation, MlirOperation) -> c_int,
    pub match_and_rewrite: extern "C" fn(Def, MlirOperation, MlirRewriterBase) -> c_int,
    pub run_pass: extern "C" fn(Def, *mut c_void, MlirOperation) -> c_int,
    pub is_legal: extern "C" fn(Def, MlirOperation) -> c_int,
    pub convert_type: extern "C" fn(Def, MlirType, MlirLocation, *mut Sink) -> c_int,
    pub materialize: extern "C" fn(
        Def,
        c_int,
        MlirRewriterBase,
        *const MlirType,
        isize,
        *const MlirValue,
        isize,
        MlirLocation,
        MlirType,
        *mut Sink,
    ) -> c_int,
    pub convert_op: extern "C" fn(
        Def,
        MlirOperation,
        *const MlirValue,
        *const isize,
        isize,
        MlirRewriterBase,
        *const c_void,
    ) -> c_int,
}

#[repr(C)]
pub(crate) struct OpSpec {
    pub def: Def,
    pub name: MlirStringRef,
    pub attr_names: *const MlirStringRef,
    pub num_attrs: isize,
    pub traits: *const u32,
    pub num_traits: isize,
    pub interfaces: u32,
    pub result_names: *const MlirStringRef,
    pub num_result_names: isize,
}

#[repr(C)]
pub(crate) struct ParamSpec {
    pub def: Def,
    pub name: MlirStringRef,
}

#[repr(C)]
pub(crate) struct DialectSpec {
    pub def: Def,
    pub name: MlirStringRef,
    pub ops: *const OpSpec,
    pub num_ops: isize,
    pub attrs: *const ParamSpec,
    pub num_attrs: isize,
    pub types: *const ParamSpec,
    pub num_types: isize,
    pub dependencies: *const MlirStringRef,
    pub num_dependencies: isize,
    pub version: u64,
}

#[repr(C)]
pub(crate) struct PassOptionSpec {
    pub name: MlirStringRef,
    pub description: MlirStringRef,
    pub kind: c_int,
    pub int_default: i64,
    pub string_default: MlirStringRef,
    pub int_defaults: *const i64,
    pub string_defaults: *const MlirStringRef,
    pub num_defaults: isize,
}

#[repr(C)]
pub(crate) struct PassSpec {
    pub def: Def,
    pub argument: MlirStringRef,
    pub description: MlirStringRef,
    pub anchor: MlirStringRef,
    pub dependencies: *const MlirStringRef,
    pub num_dependencies: isize,
    pub options: *const PassOptionSpec,
    pub num_options: isize,
}

/// Mirrors `MhRule`.
#[repr(C)]
pub(crate) struct RuleSpec {
    pub def: Def,
    pub name: MlirStringRef,
    pub of: c_int,
    pub legality: c_int,
}

/// Mirrors `MhConversionPattern`.
#[repr(C)]
pub(crate) struct ConversionPatternSpec {
    pub def: Def,
    pub root: MlirStringRef,
    pub benefit: u32,
    pub recursive: c_int,
    pub types: Def,
}

/// Mirrors `MhSignatureStep`.
#[repr(C)]
pub(crate) struct SignatureStep {
    pub kind: c_int,
    pub input: isize,
    pub types: *const MlirType,
    pub values: *const MlirValue,
    pub n: isize,
}

/// Receives where an operand goes: the operation, the operand's number, the value.
pub(crate) type PushEdge = extern "C" fn(*mut c_void, MlirOperation, isize, MlirValue);
/// Receives where control goes: what kind of place, and its handle.
pub(crate) type PushNext = extern "C" fn(*mut c_void, c_int, *mut c_void);

unsafe extern "C" {
    pub(crate) fn mhSetCallbacks(callbacks: *const Callbacks);
    pub(crate) fn mhDefineDialect(spec: *const DialectSpec) -> *const c_void;
    pub(crate) fn mhInsertDialect(registry: MlirDialectRegistry, dialect: *const c_void);
    pub(crate) fn mhPoison(ctx: MlirContext);
    pub(crate) fn mhIsPoisoned(ctx: MlirContext) -> c_int;
    pub(crate) fn mhAttrDef(attr: MlirAttribute) -> Def;
    pub(crate) fn mhAttrInstance(attr: MlirAttribute) -> u64;
    pub(crate) fn mhOpName(op: MlirOperation, registered: *mut c_int) -> MlirStringRef;
    pub(crate) fn mhTensorShape(ty: MlirType, n: *mut isize) -> *const i64;
    pub(crate) fn mhTensorWithEncoding(ty: MlirType, encoding: MlirAttribute) -> MlirType;
    pub(crate) fn mhI64Array(attr: MlirAttribute, n: *mut isize) -> *const i64;
    pub(crate) fn mhI32Array(attr: MlirAttribute, n: *mut isize) -> *const i32;
    pub(crate) fn mhAttrParams(attr: MlirAttribute, n: *mut isize) -> *const MlirAttribute;
    pub(crate) fn mhTypeDef(ty: MlirType) -> Def;
    pub(crate) fn mhTypeParams(ty: MlirType, n: *mut isize) -> *const MlirAttribute;
    pub(crate) fn mhAttrGet(
        ctx: MlirContext,
        dialect: MlirStringRef,
        def: Def,
        params: *const MlirAttribute,
        n: isize,
        loc: MlirLocation,
    ) -> MlirAttribute;
    pub(crate) fn mhTypeGet(
        ctx: MlirContext,
        dialect: MlirStringRef,
        def: Def,
        params: *const MlirAttribute,
        n: isize,
        loc: MlirLocation,
    ) -> MlirType;
    pub(crate) fn mhSinkString(sink: *mut Sink, text: MlirStringRef);
    pub(crate) fn mhSinkType(sink: *mut Sink, ty: MlirType);
    pub(crate) fn mhVerifyDestinations(op: MlirOperation) -> c_int;
    pub(crate) fn mhSinkAttr(sink: *mut Sink, attr: MlirAttribute);
    pub(crate) fn mhSinkFoldAttr(sink: *mut Sink, attr: MlirAttribute);
    pub(crate) fn mhSinkFoldValue(sink: *mut Sink, value: MlirValue);
    pub(crate) fn mhSinkRegion(sink: *mut Sink, region: isize);
    pub(crate) fn mhSinkEffect(
        sink: *mut Sink,
        op: MlirOperation,
        kind: c_int,
        resource: *mut c_void,
        value: isize,
    );
    pub(crate) fn mhSinkPattern(
        sink: *mut Sink,
        ctx: MlirContext,
        def: Def,
        root: MlirStringRef,
        benefit: u32,
    );
    pub(crate) fn mhSinkValue(sink: *mut Sink, value: MlirValue);
    pub(crate) fn mhConvert(
        op: MlirOperation,
        full: c_int,
        rules: *const RuleSpec,
        num_rules: isize,
        patterns: *const ConversionPatternSpec,
        num_patterns: isize,
    ) -> c_int;
    pub(crate) fn mhConversionIsErased(op: MlirOperation) -> c_int;
    pub(crate) fn mhConversionUnmark(op: MlirOperation);
    pub(crate) fn mhConversionReplace(
        rewriter: MlirRewriterBase,
        op: MlirOperation,
        values: *const MlirValue,
        ends: *const isize,
    );
    pub(crate) fn mhConversionErase(rewriter: MlirRewriterBase, op: MlirOperation);
    pub(crate) fn mhConversionBlock(
        rewriter: MlirRewriterBase,
        block: MlirBlock,
        types: *const c_void,
        steps: *const SignatureStep,
        n: isize,
    ) -> MlirBlock;
    pub(crate) fn mhConversionRegion(
        rewriter: MlirRewriterBase,
        region: MlirRegion,
        types: *const c_void,
        steps: *const SignatureStep,
        n: isize,
    ) -> c_int;
    pub(crate) fn mhConversionMoveRegion(rewriter: MlirRewriterBase, from: MlirRegion, to: MlirRegion);
    pub(crate) fn mhConversionCreateBlock(
        rewriter: MlirRewriterBase,
        region: MlirRegion,
        types: *const MlirType,
        locs: *const MlirLocation,
        n: isize,
    ) -> MlirBlock;
    pub(crate) fn mhConversionSplit(rewriter: MlirRewriterBase, op: MlirOperation) -> MlirBlock;
    pub(crate) fn mhConversionInlineBlock(
        rewriter: MlirRewriterBase,
        block: MlirBlock,
        before: MlirOperation,
        values: *const MlirValue,
        n: isize,
    );
    pub(crate) fn mhRegionIsAncestor(region: MlirRegion, of: MlirRegion) -> c_int;
    pub(crate) fn mhBlockHolds(block: MlirBlock, op: MlirOperation) -> c_int;
    pub(crate) fn mhPatternSetNew(ctx: MlirContext) -> *mut Sink;
    pub(crate) fn mhApplyPatternsGreedily(op: MlirOperation, patterns: *mut Sink) -> c_int;

    pub(crate) fn mhVerifyTrait(op: MlirOperation, which: u32) -> c_int;
    pub(crate) fn mhVerifyRegionTrait(op: MlirOperation, which: u32) -> c_int;
    pub(crate) fn mhOpHasTrait(op: MlirOperation, which: u32) -> c_int;
    pub(crate) fn mhOpDef(op: MlirOperation) -> Def;
    pub(crate) fn mhOpKind(op: MlirOperation) -> MhOpKind;
    pub(crate) fn mhOpSlot(op: MlirOperation, slot: isize) -> MlirAttribute;
    pub(crate) fn mhOpSetSlot(op: MlirOperation, slot: isize, attr: MlirAttribute) -> c_int;
    pub(crate) fn mhOpBury(op: MlirOperation);
    pub(crate) fn mhOpFree(op: MlirOperation);
    pub(crate) fn mhOpIsUsed(op: MlirOperation) -> c_int;
    pub(crate) fn mhRewriterHasPlace(rewriter: MlirRewriterBase) -> c_int;
    pub(crate) fn mhRewriterBury(rewriter: MlirRewriterBase, op: MlirOperation);
    pub(crate) fn mhRewriterReplaceUses(
        rewriter: MlirRewriterBase,
        op: MlirOperation,
        values: *const MlirValue,
        n: isize,
    );
    pub(crate) fn mhOpDefault(op: MlirOperation, slot: isize) -> MlirAttribute;
    pub(crate) fn mhResource(name: MlirStringRef) -> *mut c_void;
    pub(crate) fn mhIsMemoryEffectFree(op: MlirOperation) -> c_int;
    pub(crate) fn mhIsPure(op: MlirOperation) -> c_int;
    pub(crate) fn mhVerifySymbol(op: MlirOperation, function: c_int) -> c_int;
    pub(crate) fn mhWritesMemory(op: MlirOperation) -> c_int;
    pub(crate) fn mhIsSpeculatable(op: MlirOperation) -> c_int;
    pub(crate) fn mhLookupSymbol(
        from: MlirOperation,
        symbol: MlirAttribute,
        tables: *mut c_void,
    ) -> MlirOperation;
    pub(crate) fn mhOpEmit(
        op: MlirOperation,
        severity: c_int,
        prefix: c_int,
        message: MlirStringRef,
        note_locs: *const MlirLocation,
        notes: *const MlirStringRef,
        num_notes: isize,
    );
    pub(crate) fn mhEmit(loc: MlirLocation, severity: c_int, message: MlirStringRef);
    pub(crate) fn mhRegionNumber(region: MlirRegion) -> isize;
    pub(crate) fn mhIsBeforeInBlock(a: MlirOperation, b: MlirOperation) -> c_int;

    pub(crate) fn mhOpParserBase(p: *mut RawOpParser) -> *mut RawParser;
    pub(crate) fn mhParserContext(p: *mut RawParser) -> MlirContext;
    pub(crate) fn mhParserLoc(p: *mut RawParser) -> *const c_char;
    pub(crate) fn mhParserNameLoc(p: *mut RawParser) -> *const c_char;
    pub(crate) fn mhParserEncodedLoc(p: *mut RawParser, loc: *const c_char) -> MlirLocation;
    pub(crate) fn mhParserError(p: *mut RawParser, loc: *const c_char, message: MlirStringRef);
    pub(crate) fn mhParsePunct(p: *mut RawParser, punct: c_int, optional: c_int) -> c_int;
    pub(crate) fn mhParseKeyword(p: *mut RawParser, keyword: MlirStringRef) -> c_int;
    pub(crate) fn mhParseOptionalKeyword(p: *mut RawParser, keyword: MlirStringRef) -> c_int;
    pub(crate) fn mhParseAnyKeyword(p: *mut RawParser, optional: c_int, out: *mut MlirStringRef) -> c_int;
    pub(crate) fn mhParseKeywordOrString(p: *mut RawParser, optional: c_int, out: *mut RawString) -> c_int;
    pub(crate) fn mhParseString(p: *mut RawParser, optional: c_int, out: *mut RawString) -> c_int;
    pub(crate) fn mhParseInteger(p: *mut RawParser, optional: c_int, out: *mut i64) -> c_int;
    pub(crate) fn mhParseType(p: *mut RawParser, out: *mut MlirType) -> c_int;
    pub(crate) fn mhParseOptionalType(p: *mut RawParser, out: *mut MlirType) -> c_int;
    pub(crate) fn mhParseAttr(p: *mut RawParser, ty: MlirType, out: *mut MlirAttribute) -> c_int;
    pub(crate) fn mhParseOptionalAttr(p: *mut RawParser, ty: MlirType, out: *mut MlirAttribute) -> c_int;
    pub(crate) fn mhParseSymbol(p: *mut RawParser, out: *mut MlirAttribute) -> c_int;
    pub(crate) fn mhParseOptionalSymbol(p: *mut RawParser, out: *mut MlirAttribute) -> c_int;
    pub(crate) fn mhParseDims(p: *mut RawParser, trailing_x: c_int, out: *mut RawDims) -> c_int;
    pub(crate) fn mhDimsNew() -> *mut RawDims;
    pub(crate) fn mhDimsFree(dims: *mut RawDims);
    pub(crate) fn mhDimsData(dims: *mut RawDims, n: *mut isize) -> *const i64;
    pub(crate) fn mhStringNew() -> *mut RawString;
    pub(crate) fn mhStringFree(text: *mut RawString);
    pub(crate) fn mhStringData(text: *mut RawString) -> MlirStringRef;

    pub(crate) fn mhParseOperand(p: *mut RawOpParser, out: *mut RawOperand) -> c_int;
    pub(crate) fn mhParseOptionalOperand(p: *mut RawOpParser, out: *mut RawOperand) -> c_int;
    pub(crate) fn mhResolveOperand(
        p: *mut RawOpParser,
        operand: *const RawOperand,
        ty: MlirType,
        state: *mut RawState,
    ) -> c_int;
    pub(crate) fn mhStateAddTypes(state: *mut RawState, types: *const MlirType, n: isize);
    pub(crate) fn mhStateAddAttr(state: *mut RawState, name: MlirStringRef, attr: MlirAttribute);
    pub(crate) fn mhStateGetAttr(state: *mut RawState, name: MlirStringRef) -> MlirAttribute;
    pub(crate) fn mhStateLoc(state: *mut RawState) -> MlirLocation;
    pub(crate) fn mhStateOperands(state: *mut RawState, out: *mut MlirValue, max: isize) -> isize;
    pub(crate) fn mhParseAttrDict(p: *mut RawOpParser, with_keyword: c_int, state: *mut RawState) -> c_int;
    pub(crate) fn mhParsePropDict(p: *mut RawOpParser, state: *mut RawState) -> c_int;
    pub(crate) fn mhArgsNew() -> *mut RawArgs;
    pub(crate) fn mhArgsFree(args: *mut RawArgs);
    pub(crate) fn mhParseArgs(p: *mut RawOpParser, args: *mut RawArgs, allow_types: c_int) -> c_int;
    pub(crate) fn mhArgsCount(args: *mut RawArgs) -> isize;
    pub(crate) fn mhArgsType(args: *mut RawArgs, i: isize) -> MlirType;
    pub(crate) fn mhArgsSetType(args: *mut RawArgs, i: isize, ty: MlirType);
    pub(crate) fn mhParseRegion(p: *mut RawOpParser, state: *mut RawState, args: *mut RawArgs) -> c_int;
    pub(crate) fn mhParseOptionalRegion(p: *mut RawOpParser, state: *mut RawState) -> c_int;
    pub(crate) fn mhStateAddRegion(state: *mut RawState);
    pub(crate) fn mhStateAddRegionWith(state: *mut RawState, op: MlirOperation);
    pub(crate) fn mhStateNew(loc: MlirLocation, name: MlirStringRef) -> *mut RawState;
    pub(crate) fn mhStateFree(state: *mut RawState);
    pub(crate) fn mhStateCreate(state: *mut RawState) -> MlirOperation;
    pub(crate) fn mhStateRegionEmpty(state: *mut RawState, i: isize) -> c_int;
    pub(crate) fn mhParseSuccessor(p: *mut RawOpParser, state: *mut RawState) -> c_int;
    pub(crate) fn mhParseFunction(p: *mut RawOpParser, state: *mut RawState) -> c_int;

    pub(crate) fn mhPrintFunction(p: *mut RawOpPrinter, op: MlirOperation);
    pub(crate) fn mhOpPrinterBase(p: *mut RawOpPrinter) -> *mut RawPrinter;
    pub(crate) fn mhPrint(p: *mut RawPrinter, text: MlirStringRef);
    pub(crate) fn mhPrintType(p: *mut RawPrinter, ty: MlirType);
    pub(crate) fn mhPrintAttr(p: *mut RawPrinter, attr: MlirAttribute);
    pub(crate) fn mhPrintAttrWithoutType(p: *mut RawPrinter, attr: MlirAttribute);
    pub(crate) fn mhPrintAttrAlias(p: *mut RawPrinter, attr: MlirAttribute) -> c_int;
    pub(crate) fn mhPrintTypeAlias(p: *mut RawPrinter, ty: MlirType) -> c_int;
    pub(crate) fn mhPrintString(p: *mut RawPrinter, text: MlirStringRef);
    pub(crate) fn mhPrintKeywordOrString(p: *mut RawPrinter, text: MlirStringRef);
    pub(crate) fn mhPrintSymbol(p: *mut RawPrinter, name: MlirStringRef);
    pub(crate) fn mhPrintOperand(p: *mut RawOpPrinter, value: MlirValue);
    pub(crate) fn mhPrintRegion(
        p: *mut RawOpPrinter,
        region: MlirRegion,
        entry_args: c_int,
        terminators: c_int,
        empty_block: c_int,
    );
    pub(crate) fn mhPrintRegionArg(p: *mut RawOpPrinter, arg: MlirValue);
    pub(crate) fn mhPrintSuccessor(p: *mut RawOpPrinter, block: MlirBlock);
    pub(crate) fn mhPrintNewline(p: *mut RawOpPrinter);
    pub(crate) fn mhPrintIndent(p: *mut RawOpPrinter, more: c_int);
    pub(crate) fn mhPrintAttrDict(
        p: *mut RawOpPrinter,
        op: MlirOperation,
        elided: u64,
        names: *const MlirStringRef,
        n: isize,
        with_keyword: c_int,
    );

    pub(crate) fn mhEdges(op: MlirOperation, push: PushEdge, out: *mut c_void);
    pub(crate) fn mhIncoming(value: MlirValue, push: PushEdge, out: *mut c_void) -> c_int;
    pub(crate) fn mhNext(op: MlirOperation, push: PushNext, out: *mut c_void) -> c_int;
    pub(crate) fn mhIsLoop(op: MlirOperation) -> c_int;
    pub(crate) fn mhIsRegionBranch(op: MlirOperation) -> c_int;

    pub(crate) fn mhBuilderInsert(builder: *mut c_void, op: MlirOperation);
    pub(crate) fn mhRegisterPass(spec: *const PassSpec);
    pub(crate) fn mhPassBool(pass: *mut c_void, i: isize) -> c_int;
    pub(crate) fn mhPassInt(pass: *mut c_void, i: isize) -> i64;
    pub(crate) fn mhPassString(pass: *mut c_void, i: isize) -> MlirStringRef;
    pub(crate) fn mhPassIntsCount(pass: *mut c_void, i: isize) -> isize;
    pub(crate) fn mhPassIntsAt(pass: *mut c_void, i: isize, at: isize) -> i64;
    pub(crate) fn mhPassStringsCount(pass: *mut c_void, i: isize) -> isize;
    pub(crate) fn mhPassStringsAt(pass: *mut c_void, i: isize, at: isize) -> MlirStringRef;
    pub(crate) fn mhRegisterUpstream(registry: MlirDialectRegistry);
    pub(crate) fn mhRegisterUpstreamPasses();
    pub(crate) fn mhRegisterCodegen(registry: MlirDialectRegistry);
    pub(crate) fn mhSourceNew(ctx: MlirContext, text: MlirStringRef, name: MlirStringRef) -> *mut RawSource;
    pub(crate) fn mhSourceParse(source: *mut RawSource, ctx: MlirContext) -> MlirModule;
    pub(crate) fn mhModuleParse(ctx: MlirContext, text: MlirStringRef, name: MlirStringRef) -> MlirModule;
    pub(crate) fn mhSourceFree(source: *mut RawSource);
    pub(crate) fn mhLinkNeeded(module: *mut c_void, path: MlirStringRef, message: *mut RawString) -> c_int;
    pub(crate) fn mhOptMain(
        argc: c_int,
        argv: *mut *mut c_char,
        tool: MlirStringRef,
        registry: MlirDialectRegistry,
        check: CheckInput,
    ) -> c_int;
    pub(crate) fn mhAddLateFlags(names: *const MlirStringRef, count: isize);
    pub(crate) fn mhPrintOpOnDiagnostic(ctx: MlirContext, enable: c_int);
    pub(crate) fn mhLspMain(argc: c_int, argv: *mut *mut c_char, registry: MlirDialectRegistry) -> c_int;
}

/// Whether a driver may read an input that is split at a marker, if not after appending why.
pub(crate) type CheckInput = extern "C" fn(MlirStringRef, MlirStringRef, *mut Sink) -> c_int;

pub(crate) fn str_ref(text: &str) -> MlirStringRef {
    MlirStringRef { data: text.as_ptr().cast(), length: text.len() }
}

/// # Safety
/// `text` points to valid memory that outlives `'a`.
pub(crate) unsafe fn str_of<'a>(text: MlirStringRef) -> &'a str {
    // SAFETY: by the caller.
    std::str::from_utf8(unsafe { bytes_of(text) }).unwrap_or("<not UTF-8>")
}

/// # Safety
/// `text` points to valid memory that outlives `'a`.
pub(crate) unsafe fn bytes_of<'a>(text: MlirStringRef) -> &'a [u8] {
    if text.length == 0 {
        return &[];
    }
    // SAFETY: by the caller.
    unsafe { std::slice::from_raw_parts(text.data.cast::<u8>(), text.length) }
}
