//! Dialects: lists of definitions, and the callbacks MLIR reaches them by.

use crate::asm::{OpParser, OpPrinter, Parser, Printer, Reported};
use crate::conversion;
use crate::def::{
    AttrDef, EffectKind, EffectOn, Effects, Folded, Format, Inputs, OpDef, ParamDef, Presence, Speculation,
    TypeDef, VerifyResult,
};
use crate::ffi::{self, Callbacks, RawOpParser, RawOpPrinter, RawParser, RawPrinter, RawState, Sink};
use crate::grave::Erasing;
use crate::ir::{Attr, Context, Loc, Op, Region, Symbols, Type, Value};
use crate::once::Once;
use crate::pass;
use crate::poison::{catch, caught_here, errors_here, guard, guard_at};
use crate::rewrite::{Pattern, Rewriter};
use crate::traits::{Trait, Upstream};
use mlir_sys::*;
use std::ffi::{c_int, c_void};

/// How an attribute or type is abbreviated when a file is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alias {
    /// Written out.
    None,
    /// `#name`, unless another dialect has a better one.
    Overridable(String),
    /// `#name`.
    Final(String),
}

/// Builds a constant at the point the builder stands at.
pub type MaterializeFn = for<'c> fn(Attr<'c>, Type<'c>, Loc<'c>) -> Option<Op<'c>>;

/// Verifies an attribute of an argument: the function, the argument's number, the attribute.
pub type VerifyArgFn = fn(Op<'_>, usize, &str, Attr<'_>) -> VerifyResult;

/// A dialect.
pub struct DialectDef {
    /// Its namespace.
    pub name: &'static str,
    /// Operations.
    pub ops: &'static [&'static OpDef],
    /// Attributes.
    pub attrs: &'static [&'static AttrDef],
    /// Types.
    pub types: &'static [&'static TypeDef],
    /// Dialects whose operations, attributes or types it makes.
    pub dependencies: &'static [&'static str],
    /// Aliases of attributes.
    pub attr_alias: Option<fn(Attr<'_>) -> Alias>,
    /// Aliases of types.
    pub type_alias: Option<fn(Type<'_>) -> Alias>,
    /// Verifies a discardable attribute `dialect.x` on any operation.
    pub verify_op_attr: Option<fn(Op<'_>, &str, Attr<'_>) -> VerifyResult>,
    /// Verifies a discardable attribute `dialect.x` on an argument of a function.
    pub verify_arg_attr: Option<VerifyArgFn>,
    /// Makes a detached constant operation for a folded value.
    pub materialize_constant: Option<MaterializeFn>,
    /// Whether one of its operations may be inlined into a region; yes if absent.
    pub inline_op: Option<fn(Op<'_>, Region<'_>) -> bool>,
    /// Whether a call may be inlined; yes if absent.
    pub inline_call: Option<fn(Op<'_>, Op<'_>) -> bool>,
    /// Of what bytecode holds: raised when operations lose or rename attributes. Bytecode of a newer version is
    /// refused with a diagnostic.
    pub version: u64,
    /// Filled on registration.
    pub defined: Once<Defined>,
}

/// What the shim knows a registered dialect by.
pub struct Defined(*const c_void);

// SAFETY: the pointer is to an entry that lives for the process and never changes.
unsafe impl Send for Defined {}
// SAFETY: as above.
unsafe impl Sync for Defined {}

impl DialectDef {
    /// A dialect with nothing in it, to be extended by struct update.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            ops: &[],
            attrs: &[],
            types: &[],
            dependencies: &[],
            attr_alias: None,
            type_alias: None,
            verify_op_attr: None,
            verify_arg_attr: None,
            materialize_constant: None,
            inline_op: None,
            inline_call: None,
            version: 1,
            defined: Once::new(),
        }
    }

    /// Makes the dialect available to contexts that use the registry.
    ///
    /// # Panics
    /// When a format of the dialect is malformed, or two operations have one
    /// name: errors of its author.
    ///
    /// # Safety
    /// The registry is valid.
    pub unsafe fn register(&'static self, registry: MlirDialectRegistry) {
        for def in self.ops {
            if let Format::Assembly(text) = def.format {
                def.compiled
                    .get_or_init(|| crate::format::compile(def, text).unwrap_or_else(|err| panic!("{err}")));
            }
        }
        let defined = self.defined.get_or_init(|| self.define());
        // SAFETY: by the caller; the dialect was defined.
        unsafe { ffi::mhInsertDialect(registry, defined.0) }
    }

    fn define(&'static self) -> Defined {
        // SAFETY: the callbacks are static.
        unsafe { ffi::mhSetCallbacks(&CALLBACKS) };
        let mut names = std::collections::HashSet::new();
        let ops: Vec<ffi::OpSpec> = self
            .ops
            .iter()
            .map(|def| {
                assert!(names.insert(def.name), "operation {} is defined twice", def.name);
                op_spec(def)
            })
            .collect();
        let param = |def: &&'static ParamDef| ffi::ParamSpec {
            def: (*def as *const ParamDef).cast(),
            name: ffi::str_ref(def.mnemonic),
        };
        let attrs: Vec<ffi::ParamSpec> = self.attrs.iter().map(param).collect();
        let types: Vec<ffi::ParamSpec> = self.types.iter().map(param).collect();
        let dependencies: Vec<MlirStringRef> =
            self.dependencies.iter().map(|name| ffi::str_ref(name)).collect();
        let spec = ffi::DialectSpec {
            def: (self as *const Self).cast(),
            name: ffi::str_ref(self.name),
            num_ops: ops.len() as isize,
            ops: leak(ops),
            num_attrs: attrs.len() as isize,
            attrs: leak(attrs),
            num_types: types.len() as isize,
            types: leak(types),
            num_dependencies: dependencies.len() as isize,
            dependencies: leak(dependencies),
            version: self.version,
        };
        // SAFETY: the arrays are leaked: the shim keeps them for the process.
        Defined(unsafe { ffi::mhDefineDialect(&spec) })
    }
}

pub(crate) fn leak<T>(items: Vec<T>) -> *const T {
    Box::leak(items.into_boxed_slice()).as_ptr()
}

/// Bits shared with the shim.
mod interface {
    pub const EFFECTS: u32 = 1;
    pub const NO_EFFECTS: u32 = 2;
    pub const SPECULATABLE: u32 = 4;
    pub const ALWAYS_SPECULATABLE: u32 = 8;
    pub const SYMBOL: u32 = 16;
    pub const FUNCTION: u32 = 32;
    pub const CALL: u32 = 64;
    pub const SYMBOL_USER: u32 = 128;
    pub const ASM_NAMES: u32 = 256;
    pub const REGION_BRANCH: u32 = 512;
    pub const RETURN_LIKE: u32 = 1024;
    pub const GENERIC_FORM: u32 = 2048;
    pub const PASSES_OPERANDS: u32 = 4096;
    pub const INFER_TYPES: u32 = 8192;
    pub const DESTINATIONS: u32 = 16384;
}

fn op_spec(def: &'static OpDef) -> ffi::OpSpec {
    assert!(def.num_slots() <= 64, "{} has more than 64 inherent attributes", def.name);
    let mut bits = match def.effects {
        Effects::Unknown => 0,
        Effects::None => interface::NO_EFFECTS,
        Effects::List(_) | Effects::Dynamic(_) => interface::EFFECTS,
    };
    bits |= match def.speculation {
        Speculation::Never => 0,
        Speculation::Always => interface::ALWAYS_SPECULATABLE,
        Speculation::Recursive | Speculation::Dynamic(_) => interface::SPECULATABLE,
    };
    for (which, bit) in [
        (Trait::Symbol, interface::SYMBOL),
        (Trait::Function, interface::SYMBOL | interface::FUNCTION),
        (Trait::Call, interface::CALL),
        (Trait::RETURN_LIKE, interface::RETURN_LIKE),
        (Trait::InferTypes, interface::INFER_TYPES),
    ] {
        if def.has_trait(&which) {
            bits |= bit;
        }
    }
    if def.verify_symbols.is_some() {
        bits |= interface::SYMBOL_USER;
    }
    if def.results.len() > 1 {
        bits |= interface::ASM_NAMES;
    }
    if def.successor_regions.is_some() {
        bits |= interface::REGION_BRANCH;
    }
    if def.passes_operands {
        bits |= interface::PASSES_OPERANDS;
    }
    if let Some(group) = def.destinations {
        assert!(def.operand_index(group).is_some(), "{} has no operands '{group}'", def.name);
        bits |= interface::DESTINATIONS;
    }
    if matches!(def.format, Format::Generic) {
        bits |= interface::GENERIC_FORM;
    }
    let attr_names: Vec<MlirStringRef> = def.slot_names().map(ffi::str_ref).collect();
    let mut traits: Vec<u32> = Vec::new();
    _ = def.try_each_trait(|which| {
        traits.extend(match which {
            Trait::Upstream(upstream) => Some(*upstream as u32),
            Trait::Function => Some(Upstream::AutomaticAllocationScope as u32),
            _ => None,
        });
        Ok::<(), ()>(())
    });
    let result_names: Vec<MlirStringRef> = def.results.iter().map(|value| ffi::str_ref(value.name)).collect();
    ffi::OpSpec {
        def: (def as *const OpDef).cast(),
        name: ffi::str_ref(def.name),
        num_attrs: attr_names.len() as isize,
        attr_names: leak(attr_names),
        num_traits: traits.len() as isize,
        traits: leak(traits),
        interfaces: bits,
        num_result_names: result_names.len() as isize,
        result_names: leak(result_names),
    }
}

/// A hosted attribute. `None` when its dialect is not loaded or the
/// parameters are wrong; the error is reported at an unknown location.
pub fn hosted_attr<'c>(ctx: Context<'c>, def: &'static AttrDef, params: &[Attr<'c>]) -> Option<Attr<'c>> {
    hosted_attr_checked(def, params, ctx.unknown_loc())
}

/// A hosted attribute; errors are reported at `loc`.
pub fn hosted_attr_checked<'c>(def: &'static AttrDef, params: &[Attr<'c>], loc: Loc<'c>) -> Option<Attr<'c>> {
    // SAFETY: `Attr` has the layout of `MlirAttribute`.
    unsafe {
        Attr::from_raw(ffi::mhAttrGet(
            loc.context().raw(),
            ffi::str_ref(def.dialect),
            (def as *const AttrDef).cast(),
            params.as_ptr().cast(),
            params.len() as isize,
            loc.raw(),
        ))
    }
}

/// A hosted type. `None` as for [`hosted_attr`].
pub fn hosted_type<'c>(ctx: Context<'c>, def: &'static TypeDef, params: &[Attr<'c>]) -> Option<Type<'c>> {
    hosted_type_checked(def, params, ctx.unknown_loc())
}

/// A hosted type; errors are reported at `loc`.
pub fn hosted_type_checked<'c>(def: &'static TypeDef, params: &[Attr<'c>], loc: Loc<'c>) -> Option<Type<'c>> {
    // SAFETY: `Attr` has the layout of `MlirAttribute`.
    unsafe {
        Type::from_raw(ffi::mhTypeGet(
            loc.context().raw(),
            ffi::str_ref(def.dialect),
            (def as *const TypeDef).cast(),
            params.as_ptr().cast(),
            params.len() as isize,
            loc.raw(),
        ))
    }
}

//===----------------------------------------------------------------------===//
// Callbacks
//===----------------------------------------------------------------------===//

// SAFETY of the following functions: MLIR calls them with the pointers that
// were registered and with handles that are valid during the call.

/// # Safety
/// `def` is the static that was registered.
pub(crate) unsafe fn def_of<T>(def: *const c_void) -> &'static T {
    // SAFETY: by the caller.
    unsafe { &*def.cast::<T>() }
}

/// # Safety
/// The operation is valid for `'c`.
pub(crate) unsafe fn op_of<'c>(op: MlirOperation) -> Op<'c> {
    // SAFETY: by the caller; MLIR never passes null here.
    unsafe { Op::from_raw(op) }.expect("MLIR passes an operation")
}

/// # Safety
/// `data` points to `n` attributes, null or valid for `'c`.
unsafe fn attrs_of<'a, T>(data: *const MlirAttribute, n: isize) -> &'a [T] {
    debug_assert_eq!(size_of::<T>(), size_of::<Attr<'_>>());
    if n == 0 {
        return &[];
    }
    // SAFETY: by the caller; `Attr` and `Option<Attr>` are pointer sized.
    unsafe { std::slice::from_raw_parts(data.cast(), n as usize) }
}

fn finish(op: Op<'_>, result: VerifyResult) -> c_int {
    match result {
        Ok(()) => 1,
        Err(message) => {
            op.error(message);
            0
        }
    }
}

extern "C" fn parse_params(def: *const c_void, raw: *mut RawParser, sink: *mut Sink) -> c_int {
    let (def, mut parser) = unsafe { (def_of::<ParamDef>(def), Parser::new(raw)) };
    let loc = parser.loc();
    let ctx = parser.context();
    let mut message = None;
    let parsed = catch(
        ctx,
        || (def.parse)(&mut parser),
        |text| {
            message = Some(text);
            Err(Reported::BY_MLIR)
        },
    );
    if let Some(message) = message {
        parser.error(loc, message);
    }
    match parsed {
        Ok(params) => {
            params.iter().for_each(|attr| unsafe { ffi::mhSinkAttr(sink, attr.raw()) });
            1
        }
        Err(Reported::BY_MLIR) => 0,
    }
}

extern "C" fn print_params(def: *const c_void, raw: *mut RawPrinter, params: *const MlirAttribute, n: isize) {
    let (def, mut printer) = unsafe { (def_of::<ParamDef>(def), Printer::new(raw)) };
    let params: &[Attr<'_>] = unsafe { attrs_of(params, n) };
    // Without parameters nothing is known of the context, and there is nothing to print either.
    let Some(ctx) = params.first().map(|attr| attr.context()) else { return };
    guard_at(ctx.unknown_loc(), (), || (def.print)(params, &mut printer));
}

extern "C" fn verify_params(
    def: *const c_void,
    ctx: MlirContext,
    params: *const MlirAttribute,
    n: isize,
    message: *mut Sink,
) -> c_int {
    let def = unsafe { def_of::<ParamDef>(def) };
    let params: &[Attr<'_>] = unsafe { attrs_of(params, n) };
    let Some(verify) = def.verify else { return 1 };
    let ctx = unsafe { Context::from_raw(ctx) };
    match catch(ctx, || verify(ctx, params), Err) {
        Ok(()) => 1,
        Err(text) => {
            unsafe { ffi::mhSinkString(message, ffi::str_ref(&text)) };
            0
        }
    }
}

extern "C" fn parse_op(def: *const c_void, raw: *mut RawOpParser, state: *mut RawState) -> c_int {
    let (def, mut parser) = unsafe { (def_of::<OpDef>(def), OpParser::new(raw, state)) };
    let loc = parser.loc();
    let ctx = parser.context();
    let mut message = None;
    let parse = || match (&def.format, def.compiled.get()) {
        (Format::Custom { parse, .. }, _) => parse(&mut parser),
        (Format::Function, _) => parser.function(),
        (_, Some(format)) => crate::format::parse(def, format, &mut parser),
        _ => {
            let loc = parser.loc();
            Err(parser.error(loc, "this operation has no custom assembly form"))
        }
    };
    let parsed = catch(ctx, parse, |text| {
        message = Some(text);
        Err(Reported::BY_MLIR)
    });
    if let Some(message) = message {
        parser.error(loc, message);
    }
    parsed.is_ok().into()
}

extern "C" fn print_op(def: *const c_void, op: MlirOperation, raw: *mut RawOpPrinter) -> c_int {
    let (def, op, mut printer) = unsafe { (def_of::<OpDef>(def), op_of(op), OpPrinter::new(raw)) };
    guard(op, 0, || {
        match (&def.format, def.compiled.get()) {
            (Format::Custom { print, .. }, _) => print(op, &mut printer),
            (Format::Function, _) => printer.function(op),
            (_, Some(format)) => crate::format::print(def, format, op, &mut printer),
            _ => {}
        }
        1
    })
}

extern "C" fn verify_op(def: *const c_void, op: MlirOperation) -> c_int {
    let (def, op) = unsafe { (def_of::<OpDef>(def), op_of(op)) };
    if op.context().is_poisoned() {
        op.error("cannot be trusted: an internal error was reported before");
        return 0;
    }
    guard(op, 0, || match crate::verify::verify(def, op) {
        Ok(()) => 1,
        Err(Some(message)) => finish(op, Err(message)),
        Err(None) => 0,
    })
}

extern "C" fn verify_regions(def: *const c_void, op: MlirOperation) -> c_int {
    let (def, op) = unsafe { (def_of::<OpDef>(def), op_of(op)) };
    guard(op, 0, || {
        let holds = def.try_each_trait(|which| match which {
            Trait::Upstream(upstream)
                if unsafe { ffi::mhVerifyRegionTrait(op.raw(), *upstream as u32) } == 0 =>
            {
                Err(())
            }
            _ => Ok(()),
        });
        if holds.is_err() {
            return 0;
        }
        finish(op, def.verify_regions.map_or(Ok(()), |verify| verify(op)))
    })
}

extern "C" fn fold_op(
    def: *const c_void,
    op: MlirOperation,
    operands: *const MlirAttribute,
    n: isize,
    sink: *mut Sink,
) -> c_int {
    let (def, op) = unsafe { (def_of::<OpDef>(def), op_of(op)) };
    let Some(fold) = def.fold else { return 0 };
    let operands: &[Option<Attr<'_>>] = unsafe { attrs_of(operands, n) };
    let Some(results) = guard(op, None, || fold(op, operands)) else { return 0 };
    for result in results {
        match result {
            Folded::Value(value) => unsafe { ffi::mhSinkFoldValue(sink, value.raw()) },
            Folded::Attr(attr) => unsafe { ffi::mhSinkFoldAttr(sink, attr.raw()) },
        }
    }
    1
}

extern "C" fn effects(def: *const c_void, op: MlirOperation, sink: *mut Sink) {
    let (def, op) = unsafe { (def_of::<OpDef>(def), op_of(op)) };
    let mut push = |effect: crate::def::Effect| {
        let resource = if effect.resource.is_empty() {
            std::ptr::null_mut()
        } else {
            unsafe { ffi::mhResource(ffi::str_ref(effect.resource)) }
        };
        let kind = effect.kind as c_int;
        let add = |value: isize| unsafe { ffi::mhSinkEffect(sink, op.raw(), kind, resource, value) };
        match effect.on {
            EffectOn::Nothing => add(0),
            EffectOn::Operand(name) => {
                if let Some(group) = def.operand_index(name) {
                    let (start, n) = def.operand_group(op, group);
                    (start..start + n).for_each(|i| add(i as isize + 1));
                }
            }
            EffectOn::Result(name) => {
                if let Some(group) = def.result_index(name) {
                    let (start, n) = def.result_group(op, group);
                    (start..start + n).for_each(|i| add(-(i as isize) - 1));
                }
            }
        }
    };
    let known = guard(op, false, || {
        match def.effects {
            Effects::List(list) => list.iter().for_each(|effect| push(*effect)),
            Effects::Dynamic(f) => f(op, &mut push),
            Effects::Unknown | Effects::None => {}
        }
        true
    });
    if !known {
        // MLIR has no word for unknown effects where the interface is there: everything on everything.
        for kind in [EffectKind::Read, EffectKind::Write, EffectKind::Allocate, EffectKind::Free] {
            unsafe { ffi::mhSinkEffect(sink, op.raw(), kind as c_int, std::ptr::null_mut(), 0) }
        }
    }
}

extern "C" fn speculatability(def: *const c_void, op: MlirOperation) -> c_int {
    let (def, op) = unsafe { (def_of::<OpDef>(def), op_of(op)) };
    guard(op, 0, || match def.speculation {
        Speculation::Never => 0,
        Speculation::Always => 1,
        Speculation::Recursive => 2,
        Speculation::Dynamic(f) => f(op).into(),
    })
}

extern "C" fn successor_regions(def: *const c_void, op: MlirOperation, region: isize, sink: *mut Sink) {
    let (def, op) = unsafe { (def_of::<OpDef>(def), op_of(op)) };
    let push = |to| unsafe { ffi::mhSinkRegion(sink, to) };
    let known = def.successor_regions.is_none_or(|f| {
        guard(op, false, || {
            f(op, region, &mut |to| push(to));
            true
        })
    });
    if !known {
        (-1..op.num_regions() as isize).for_each(push);
    }
}

/// The first result of a group, -1 for an empty one.
extern "C" fn result_group(def: *const c_void, op: MlirOperation, group: isize) -> isize {
    let (def, op) = unsafe { (def_of::<OpDef>(def), op_of(op)) };
    let Some(group) = usize::try_from(group).ok().filter(|group| *group < def.results.len()) else {
        return -1;
    };
    guard(op, -1, || match def.result_group(op, group) {
        (_, 0) => -1,
        (start, _) => start as isize,
    })
}

extern "C" fn infer_types(
    def: *const c_void,
    loc: MlirLocation,
    operands: *const MlirValue,
    num_operands: isize,
    slots: *const MlirAttribute,
    attrs: MlirAttribute,
    regions: *const MlirRegion,
    num_regions: isize,
    types: *mut Sink,
    message: *mut Sink,
) -> c_int {
    let (def, loc) = unsafe { (def_of::<OpDef>(def), Loc::from_raw(loc)) };
    let Some(loc) = loc else { return 0 };
    let operands: Vec<Value<'_>> =
        (0..num_operands).filter_map(|i| unsafe { Value::from_raw(operands.offset(i).read()) }).collect();
    let regions: Vec<Region<'_>> =
        (0..num_regions).filter_map(|i| unsafe { Region::from_raw(regions.offset(i).read()) }).collect();
    let slots: &[Option<Attr<'_>>] = match slots.is_null() {
        true => &[],
        false => unsafe { attrs_of(slots, def.num_slots() as isize) },
    };
    let attrs = unsafe { Attr::from_raw(attrs) };
    let attr = |name: &str| {
        let slot = def.slot(name).and_then(|slot| *slots.get(slot)?);
        let named = || attrs.and_then(|attrs| attrs.get(name));
        slot.or_else(named).or_else(|| crate::format::default_attr(def, loc.context(), name))
    };
    let inputs = Inputs { ctx: loc.context(), operands: &operands, attr: &attr, regions: &regions };
    let inferred = catch(loc.context(), || inputs.infer(def), Err);
    match inferred {
        Ok(inferred) => inferred.iter().for_each(|ty| unsafe { ffi::mhSinkType(types, ty.raw()) }),
        Err(text) => {
            unsafe { ffi::mhSinkString(message, ffi::str_ref(&text)) };
            return 0;
        }
    }
    1
}

extern "C" fn compatible_types(def: *const c_void, inferred: MlirType, given: MlirType) -> c_int {
    let def = unsafe { def_of::<OpDef>(def) };
    let (Some(inferred), Some(given)) = (unsafe { (Type::from_raw(inferred), Type::from_raw(given)) }) else {
        return 0;
    };
    let fits = || def.compatible.is_some_and(|compatible| compatible(inferred, given));
    guard_at(inferred.context().unknown_loc(), false, fits).into()
}

extern "C" fn destinations(def: *const c_void, op: MlirOperation, first: *mut isize, count: *mut isize) {
    let (def, op) = unsafe { (def_of::<OpDef>(def), op_of(op)) };
    let group = def.destinations.and_then(|name| def.operand_index(name));
    let (start, n) = guard(op, (0, 0), || group.map_or((0, 0), |group| def.operand_group(op, group)));
    unsafe { (*first, *count) = (start as isize, n as isize) };
}

extern "C" fn verify_symbol_uses(def: *const c_void, op: MlirOperation, tables: *mut c_void) -> c_int {
    let (def, op) = unsafe { (def_of::<OpDef>(def), op_of(op)) };
    let symbols = unsafe { Symbols::from_raw(tables) };
    guard(op, 0, || finish(op, def.verify_symbols.map_or(Ok(()), |verify| verify(op, symbols))))
}

extern "C" fn default_attr(def: *const c_void, ctx: MlirContext, slot: isize) -> MlirAttribute {
    let (def, ctx) = unsafe { (def_of::<OpDef>(def), Context::from_raw(ctx)) };
    let null = MlirAttribute { ptr: std::ptr::null() };
    let Some(Presence::Default(text)) = def.attrs.get(slot as usize).map(|field| field.presence) else {
        return null;
    };
    guard_at(ctx.unknown_loc(), null, || match Attr::parse(ctx, text) {
        Some(attr) => attr.raw(),
        // An error of the author of the definition.
        None => panic!("the default of attribute {slot} of {}, `{text}`, does not parse", def.name),
    })
}

extern "C" fn canonicalization_patterns(def: *const c_void, ctx: MlirContext, sink: *mut Sink) {
    let def = unsafe { def_of::<OpDef>(def) };
    for pattern in def.canonicalize {
        unsafe { crate::rewrite::add_pattern(sink, ctx, pattern) };
    }
}

fn alias(found: Option<Alias>, sink: *mut Sink) -> c_int {
    let (kind, name) = match found {
        None | Some(Alias::None) => return 0,
        Some(Alias::Overridable(name)) => (1, name),
        Some(Alias::Final(name)) => (2, name),
    };
    unsafe { ffi::mhSinkString(sink, ffi::str_ref(&name)) };
    kind
}

extern "C" fn attr_alias(def: *const c_void, attr: MlirAttribute, sink: *mut Sink) -> c_int {
    let def = unsafe { def_of::<DialectDef>(def) };
    let found = def.attr_alias.and_then(|f| {
        let attr = unsafe { Attr::from_raw(attr) }?;
        guard_at(attr.context().unknown_loc(), None, || Some(f(attr)))
    });
    alias(found, sink)
}

extern "C" fn type_alias(def: *const c_void, ty: MlirType, sink: *mut Sink) -> c_int {
    let def = unsafe { def_of::<DialectDef>(def) };
    let found = def.type_alias.and_then(|f| {
        let ty = unsafe { Type::from_raw(ty) }?;
        guard_at(ty.context().unknown_loc(), None, || Some(f(ty)))
    });
    alias(found, sink)
}

extern "C" fn verify_op_attr(
    def: *const c_void,
    op: MlirOperation,
    name: MlirStringRef,
    attr: MlirAttribute,
) -> c_int {
    let (def, op) = unsafe { (def_of::<DialectDef>(def), op_of(op)) };
    let (Some(verify), Some(attr)) = (def.verify_op_attr, unsafe { Attr::from_raw(attr) }) else { return 1 };
    guard(op, 0, || finish(op, verify(op, unsafe { ffi::str_of(name) }, attr)))
}

extern "C" fn verify_arg_attr(
    def: *const c_void,
    op: MlirOperation,
    arg: isize,
    name: MlirStringRef,
    attr: MlirAttribute,
) -> c_int {
    let (def, op) = unsafe { (def_of::<DialectDef>(def), op_of(op)) };
    let (Some(verify), Some(attr)) = (def.verify_arg_attr, unsafe { Attr::from_raw(attr) }) else { return 1 };
    guard(op, 0, || finish(op, verify(op, arg as usize, unsafe { ffi::str_of(name) }, attr)))
}

extern "C" fn materialize_constant(
    def: *const c_void,
    builder: *mut c_void,
    value: MlirAttribute,
    ty: MlirType,
    loc: MlirLocation,
) -> MlirOperation {
    let def = unsafe { def_of::<DialectDef>(def) };
    let made = def.materialize_constant.and_then(|f| {
        let (value, ty, loc) = unsafe { (Attr::from_raw(value)?, Type::from_raw(ty)?, Loc::from_raw(loc)?) };
        guard_at(loc, None, || f(value, ty, loc))
    });
    match made {
        Some(op) => {
            unsafe { ffi::mhBuilderInsert(builder, op.raw()) };
            op.raw()
        }
        None => MlirOperation { ptr: std::ptr::null_mut() },
    }
}

extern "C" fn legal_to_inline_op(def: *const c_void, op: MlirOperation, dest: MlirRegion) -> c_int {
    let (def, op) = unsafe { (def_of::<DialectDef>(def), op_of(op)) };
    let Some(dest) = (unsafe { Region::from_raw(dest) }) else { return 0 };
    guard(op, 0, || def.inline_op.is_none_or(|f| f(op, dest)).into())
}

extern "C" fn legal_to_inline_call(
    def: *const c_void,
    call: MlirOperation,
    callable: MlirOperation,
) -> c_int {
    let (def, call, callable) = unsafe { (def_of::<DialectDef>(def), op_of(call), op_of(callable)) };
    guard(call, 0, || def.inline_call.is_none_or(|f| f(call, callable)).into())
}

extern "C" fn match_and_rewrite(def: *const c_void, op: MlirOperation, rewriter: MlirRewriterBase) -> c_int {
    let (pattern, op) = unsafe { (def_of::<Pattern>(def), op_of(op)) };
    // MLIR applies patterns until nothing changes, which what one panics behind may do again and again.
    if op.context().is_poisoned() {
        return 0;
    }
    let mut rewriter = unsafe { Rewriter::new(rewriter) };
    // The operation may be gone after a panic: the error goes to its location.
    let (loc, before) = (op.loc(), errors_here());
    let _erasing = Erasing::new();
    let applied = catch(
        loc.context(),
        || (pattern.apply)(op, &mut rewriter),
        |message| {
            loc.error(&format!("pattern {}: {message}", pattern.name));
            false
        },
    );
    if errors_here() != before {
        loc.context().poison();
    }
    applied.into()
}

extern "C" fn run_pass(def: *const c_void, raw: *mut c_void, op: MlirOperation) -> c_int {
    let (def, op) = unsafe { (def_of::<pass::PassDef>(def), op_of(op)) };
    let loc = op.loc();
    let options = unsafe { pass::Options::new(def, raw) };
    let before = (caught_here(), errors_here());
    let _erasing = Erasing::new();
    let done = catch(
        loc.context(),
        || (def.run)(op, &options),
        |message| {
            loc.error(&format!("pass {}: {message}", def.argument));
            Err(Reported::BY_MLIR)
        },
    );
    // Patterns, folds and verifiers run on this thread while the pass does.
    (done.is_ok() && (caught_here(), errors_here()) == before).into()
}

static CALLBACKS: Callbacks = Callbacks {
    parse_params,
    print_params,
    verify_params,
    parse_op,
    print_op,
    verify_op,
    verify_regions,
    fold_op,
    effects,
    speculatability,
    successor_regions,
    result_group,
    infer_types,
    compatible_types,
    destinations,
    verify_symbol_uses,
    default_attr,
    canonicalization_patterns,
    attr_alias,
    type_alias,
    verify_op_attr,
    verify_arg_attr,
    materialize_constant,
    legal_to_inline_op,
    legal_to_inline_call,
    match_and_rewrite,
    run_pass,
    is_legal: conversion::is_legal,
    convert_type: conversion::convert_type,
    materialize: conversion::materialize,
    convert_op: conversion::convert_op,
};

pub(crate) fn install_callbacks() {
    // SAFETY: the callbacks are static.
    unsafe { ffi::mhSetCallbacks(&CALLBACKS) }
}

/// Operands of a group as values, for typed accessors.
pub fn operand_values<'c>(op: Op<'c>, group: usize) -> crate::ir::OpOperands<'c> {
    match op.def() {
        Some(def) => {
            let (start, n) = def.operand_group(op, group);
            op.operand_range(start, n)
        }
        None => op.operand_range(0, 0),
    }
}

/// Results of a group, for typed accessors.
pub fn result_values<'c>(op: Op<'c>, group: usize) -> Vec<Value<'c>> {
    match op.def() {
        Some(def) => {
            let (start, n) = def.result_group(op, group);
            op.results().skip(start).take(n).collect()
        }
        None => Vec::new(),
    }
}
