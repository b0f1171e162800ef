//! Folders.

use mlir_host::def::Folded;
use mlir_host::ir::{Attr, Loc, Op, Type};
use mlir_host::rewrite;

/// Makes an `arith.constant`.
pub fn materialize_constant<'c>(value: Attr<'c>, ty: Type<'c>, loc: Loc<'c>) -> Option<Op<'c>> {
    if value.ty() != Some(ty) {
        return None;
    }
    rewrite::create("arith.constant", loc, &[], &[ty], &[("value", value)], &[])
}

/// .
pub fn ptr_to_int<'c>(_op: Op<'c>, _operands: &[Option<Attr<'c>>]) -> Option<Vec<Folded<'c>>> {
    None
}

/// .
pub fn bitcast<'c>(_op: Op<'c>, _operands: &[Option<Attr<'c>>]) -> Option<Vec<Folded<'c>>> {
    None
}

/// .
pub fn fp_to_fp<'c>(_op: Op<'c>, _operands: &[Option<Attr<'c>>]) -> Option<Vec<Folded<'c>>> {
    None
}

/// .
pub fn mulhiui<'c>(_op: Op<'c>, _operands: &[Option<Attr<'c>>]) -> Option<Vec<Folded<'c>>> {
    None
}

/// .
pub fn addptr<'c>(_op: Op<'c>, _operands: &[Option<Attr<'c>>]) -> Option<Vec<Folded<'c>>> {
    None
}

/// .
pub fn splat<'c>(_op: Op<'c>, _operands: &[Option<Attr<'c>>]) -> Option<Vec<Folded<'c>>> {
    None
}

/// .
pub fn unsplat<'c>(_op: Op<'c>, _operands: &[Option<Attr<'c>>]) -> Option<Vec<Folded<'c>>> {
    None
}

/// .
pub fn expand_dims<'c>(_op: Op<'c>, _operands: &[Option<Attr<'c>>]) -> Option<Vec<Folded<'c>>> {
    None
}

/// .
pub fn reshape<'c>(_op: Op<'c>, _operands: &[Option<Attr<'c>>]) -> Option<Vec<Folded<'c>>> {
    None
}

/// .
pub fn broadcast<'c>(_op: Op<'c>, _operands: &[Option<Attr<'c>>]) -> Option<Vec<Folded<'c>>> {
    None
}

/// .
pub fn join<'c>(_op: Op<'c>, _operands: &[Option<Attr<'c>>]) -> Option<Vec<Folded<'c>>> {
    None
}

/// .
pub fn split<'c>(_op: Op<'c>, _operands: &[Option<Attr<'c>>]) -> Option<Vec<Folded<'c>>> {
    None
}

/// .
pub fn trans<'c>(_op: Op<'c>, _operands: &[Option<Attr<'c>>]) -> Option<Vec<Folded<'c>>> {
    None
}

/// .
pub fn make_range<'c>(_op: Op<'c>, _operands: &[Option<Attr<'c>>]) -> Option<Vec<Folded<'c>>> {
    None
}
