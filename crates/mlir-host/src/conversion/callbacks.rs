//! What the shim asks in the course of a conversion.
//!
//! An answer beyond those listed in the shim says that an error was reported: nothing is asked any more, and the conversion
//! fails.

use super::{
    ConversionPattern, ConversionRewriter, Converted, Legality, Materialization, Operands, Rule,
    TypeConverter,
};
use crate::dialect::{def_of, op_of};
use crate::ffi::{self, Sink};
use crate::ir::{Loc, Op, Type, Value};
use crate::poison::{catch, errors_here};
use crate::rewrite::{Mode, Rewriter};
use mlir_sys::*;
use std::ffi::{c_int, c_void};

// SAFETY of the following functions: the shim calls them with pointers to the rules and statics that `apply` was given, with
// handles that are valid during the call, and with arrays of the lengths that it says.

/// # Safety
/// `data` points to `n` handles of the C API, of which `T` is one, valid for `'a`; or `n` is 0.
unsafe fn slice_of<'a, R, T>(data: *const R, n: isize) -> &'a [T] {
    const { assert!(size_of::<R>() == size_of::<T>()) };
    // SAFETY: by the caller.
    if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data.cast(), n as usize) } }
}

/// Runs a callback. After a panic, which is reported at `loc`, or an error the answer is `stop`.
fn ask(loc: Loc<'_>, stop: c_int, who: impl Fn() -> String, f: impl FnOnce() -> c_int) -> c_int {
    let before = errors_here();
    let answer = catch(loc.context(), f, |message| {
        loc.error(&format!("{}: {message}", who()));
        stop
    });
    if errors_here() == before { answer } else { stop }
}

pub(crate) extern "C" fn is_legal(def: *const c_void, op: MlirOperation) -> c_int {
    let (rule, op) = unsafe { (&*def.cast::<Rule<'_>>(), op_of(op)) };
    let Legality::Dynamic(legal) = rule.legality else { return 2 };
    let who = || format!("legality of {}", op.name());
    ask(op.loc(), 3, who, || legal(op).map_or(2, c_int::from))
}

pub(crate) extern "C" fn convert_type(
    def: *const c_void,
    ty: MlirType,
    loc: MlirLocation,
    sink: *mut Sink,
) -> c_int {
    let types = unsafe { def_of::<TypeConverter>(def) };
    let (ty, loc) = unsafe { (Type::from_raw(ty).expect("a type"), Loc::from_raw(loc).expect("a location")) };
    let push = |ty: &Type<'_>| unsafe { ffi::mhSinkType(sink, ty.raw()) };
    let who = || format!("type converter {}, of {ty}", types.name);
    ask(loc, 3, who, || match types.ask(ty) {
        Converted::Unknown => 2,
        Converted::Fails => 0,
        Converted::To(ty) => {
            push(&ty);
            1
        }
        Converted::ToMany(types) => {
            types.iter().for_each(push);
            1
        }
    })
}

pub(crate) extern "C" fn materialize(
    def: *const c_void,
    target: c_int,
    rewriter: MlirRewriterBase,
    types: *const MlirType,
    num_types: isize,
    inputs: *const MlirValue,
    num_inputs: isize,
    loc: MlirLocation,
    original: MlirType,
    sink: *mut Sink,
) -> c_int {
    let converter = unsafe { def_of::<TypeConverter>(def) };
    let loc = unsafe { Loc::from_raw(loc) }.expect("a location");
    let wanted = Materialization {
        types: unsafe { slice_of(types, num_types) },
        inputs: unsafe { slice_of(inputs, num_inputs) },
        original: unsafe { Type::from_raw(original) },
        loc,
    };
    let Some(make) = (if target == 0 { converter.to_source } else { converter.to_target }) else { return 0 };
    let mut rewriter = unsafe { Rewriter::with_mode(rewriter, Mode::Materialization) };
    let who = || format!("materialization of type converter {}", converter.name);
    ask(loc, 2, who, || {
        let Ok(Some(made)) = make(&mut rewriter, &wanted) else { return 0 };
        let types: Vec<Type<'_>> = made.iter().map(|value| value.ty()).collect();
        assert!(types == wanted.types, "it makes {types:?} where {:?} is wanted", wanted.types);
        made.iter().for_each(|value| unsafe { ffi::mhSinkValue(sink, value.raw()) });
        1
    })
}

pub(crate) extern "C" fn convert_op(
    def: *const c_void,
    op: MlirOperation,
    operands: *const MlirValue,
    ends: *const isize,
    num_operands: isize,
    rewriter: MlirRewriterBase,
    raw_types: *const c_void,
) -> c_int {
    let (pattern, op): (_, Op<'_>) = unsafe { (def_of::<ConversionPattern>(def), op_of(op)) };
    let ends: &[isize] = unsafe { slice_of(ends, num_operands) };
    let values: &[Value<'_>] = unsafe { slice_of(operands, ends.last().copied().unwrap_or(0)) };
    let operands = Operands::new(values, ends);
    if !pattern.one_to_many && !operands.are_one_to_one() {
        return 0;
    }
    let mut rewriter = unsafe { ConversionRewriter::new(rewriter, op, pattern.types, raw_types) };
    let who = || format!("pattern {}", pattern.name);
    ask(op.loc(), 2, who, || {
        let applied = matches!((pattern.apply)(op, &operands, &mut rewriter), Ok(true));
        assert!(!applied || rewriter.touched(), "{} was neither replaced nor modified", op.name());
        applied.into()
    })
}
