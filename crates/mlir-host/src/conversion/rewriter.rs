//! What a pattern of a dialect conversion is given.

use super::{Signature, TypeConverter};
use crate::def::OpDef;
use crate::ffi;
use crate::ir::{Block, Loc, Op, Region, Type, Value};
use crate::rewrite::{Mode, Rewriter};
use mlir_sys::{MlirLocation, MlirRewriterBase, MlirType, MlirValue, mlirRewriterBaseMoveOpBefore};
use std::ffi::c_void;

/// The operands of an operation as they were converted: each is one value or, where the types are such, several or none.
pub struct Operands<'a, 'c> {
    values: &'a [Value<'c>],
    ends: &'a [isize],
}

impl<'a, 'c> Operands<'a, 'c> {
    pub(super) fn new(values: &'a [Value<'c>], ends: &'a [isize]) -> Self {
        Self { values, ends }
    }
    /// How many operands the operation has.
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
    /// What operand `i` became; panics when out of range.
    pub fn many(&self, i: usize) -> &'a [Value<'c>] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.values[start as usize..self.ends[i] as usize]
    }
    /// The value that operand `i` became.
    ///
    /// # Panics
    /// When there are several or none, which a pattern is only given where it says so, or `i` is out of range.
    #[track_caller]
    pub fn one(&self, i: usize) -> Value<'c> {
        match self.many(i) {
            [value] => *value,
            values => panic!("operand {i} became {} values", values.len()),
        }
    }
    /// What the operands of the group `name` of a hosted operation became, one after another.
    ///
    /// # Panics
    /// When the definition of `op`, which the operands are of, has no such group.
    #[track_caller]
    pub fn group(&self, op: Op<'c>, name: &str) -> &'a [Value<'c>] {
        let group = |def: &'static OpDef| Some((def, def.operand_index(name)?));
        let (def, group) = op.def().and_then(group).unwrap_or_else(|| panic!("{} has no {name}", op.name()));
        let (start, n) = def.operand_group(op, group);
        let end = |i: usize| if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.values[end(start)..end(start + n)]
    }
    /// What all operands became, one after another.
    pub fn flat(&self) -> &'a [Value<'c>] {
        self.values
    }
    /// Whether each became one value.
    pub fn are_one_to_one(&self) -> bool {
        self.ends.iter().zip(1..).all(|(end, i)| *end == i)
    }
}

/// Makes and changes operations in a dialect conversion. It is a [`Rewriter`] that MLIR can take back the changes of.
pub struct ConversionRewriter<'c> {
    inner: Rewriter<'c>,
    types: Option<&'static TypeConverter>,
    raw_types: *const c_void,
}

impl<'c> std::ops::Deref for ConversionRewriter<'c> {
    type Target = Rewriter<'c>;
    fn deref(&self) -> &Rewriter<'c> {
        &self.inner
    }
}
impl std::ops::DerefMut for ConversionRewriter<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}

// SAFETY of this impl's blocks: the rewriter is valid while the callback that was given it runs, and is one of conversions;
// handles are valid by their own contract; slices have the layout of the C API's handles.
impl<'c> ConversionRewriter<'c> {
    /// # Safety
    /// `raw` is a rewriter of conversions, and `raw_types` the shim's converter for `types`, while this value lives.
    pub(super) unsafe fn new(
        raw: MlirRewriterBase,
        root: Op<'c>,
        types: Option<&'static TypeConverter>,
        raw_types: *const c_void,
    ) -> Self {
        let inner = unsafe { Rewriter::with_mode(raw, Mode::Conversion { root, touched: false }) };
        Self { inner, types, raw_types }
    }
    /// Whether the operation to be converted was replaced, erased or modified.
    pub(super) fn touched(&self) -> bool {
        matches!(self.inner.mode(), Mode::Conversion { touched: true, .. })
    }
    fn raw(&self) -> MlirRewriterBase {
        self.inner.raw()
    }
    /// The type converter of the pattern.
    ///
    /// # Panics
    /// When it has none.
    #[track_caller]
    pub fn types(&self) -> &'static TypeConverter {
        self.types.expect("the pattern has a type converter")
    }
    /// Replaces each result by several values, or none, and erases `op`.
    pub fn replace_by_many(&mut self, op: Op<'c>, values: &[impl AsRef<[Value<'c>]>]) {
        assert_eq!(op.num_results(), values.len(), "values to replace {}", op.name());
        self.inner.assert_may_erase(op);
        let mut flat: Vec<Value<'c>> = Vec::new();
        let ends = values.iter().map(|list| {
            flat.extend(list.as_ref());
            flat.len() as isize
        });
        let ends: Vec<isize> = ends.collect();
        // SAFETY: as many ends as results, the last of which is the number of values.
        unsafe {
            ffi::mhConversionReplace(self.raw(), op.raw(), flat.as_ptr().cast::<MlirValue>(), ends.as_ptr())
        }
    }
    /// Gives a block the arguments of a signature; the new block, which has the operations of the old one.
    ///
    /// # Panics
    /// When the signature is of another number of arguments, or the block in no region, or in what was erased.
    pub fn convert_block(&mut self, block: Block<'c>, signature: &Signature<'c>) -> Block<'c> {
        let parent = block.parent().expect("a block in an operation");
        self.assert_alive(parent);
        assert_eq!(signature.num_inputs(), block.num_args(), "arguments of a block");
        let steps = signature.specs();
        let (raw, n) = (self.raw(), steps.len() as isize);
        unsafe {
            let made = ffi::mhConversionBlock(raw, block.raw(), self.raw_types, steps.as_ptr(), n);
            Block::from_raw(made).expect("a block")
        }
    }
    /// Converts the arguments of all blocks of a region, those of the first one by the signature that is given. `false` where
    /// a type has no conversion.
    ///
    /// # Panics
    /// When the pattern has no type converter, the signature is of another number of arguments, or the region is in what was
    /// erased.
    pub fn convert_region(&mut self, region: Region<'c>, entry: Option<&Signature<'c>>) -> bool {
        assert!(!self.raw_types.is_null(), "the pattern has a type converter");
        let Some(first) = region.first_block() else { return true };
        self.assert_alive(first.parent().expect("a region in an operation"));
        let steps = entry.map(Signature::specs);
        if let Some(entry) = entry {
            assert_eq!(entry.num_inputs(), first.num_args(), "arguments of a region");
        }
        let (steps, n) =
            steps.as_ref().map_or((std::ptr::null(), -1), |steps| (steps.as_ptr(), steps.len() as isize));
        unsafe { ffi::mhConversionRegion(self.raw(), region.raw(), self.raw_types, steps, n) != 0 }
    }
    /// Moves all blocks of `from` to the end of `to`.
    pub fn move_region(&mut self, from: Region<'c>, to: Region<'c>) {
        let within = unsafe { ffi::mhRegionIsAncestor(from.raw(), to.raw()) } != 0;
        assert!(!within, "a region is moved into itself");
        unsafe { ffi::mhConversionMoveRegion(self.raw(), from.raw(), to.raw()) }
    }
    /// Moves an operation before another one. Panics when one of them is in no block, the other one in the first, or the
    /// first was erased.
    pub fn move_before(&mut self, op: Op<'c>, other: Op<'c>) {
        assert!(op.block().is_some() && other.block().is_some(), "operations in blocks");
        let within = std::iter::successors(Some(other), |op| op.parent()).any(|around| around == op);
        assert!(!within, "{} is moved into itself", op.name());
        self.assert_alive(op);
        unsafe { mlirRewriterBaseMoveOpBefore(self.raw(), op.raw(), other.raw()) }
    }
    /// Makes a block at the end of a region, and inserts at its end from now on.
    pub fn create_block(&mut self, region: Region<'c>, args: &[(Type<'c>, Loc<'c>)]) -> Block<'c> {
        let types: Vec<MlirType> = args.iter().map(|arg| arg.0.raw()).collect();
        let locs: Vec<MlirLocation> = args.iter().map(|arg| arg.1.raw()).collect();
        let (raw, n) = (self.raw(), args.len() as isize);
        unsafe {
            let made = ffi::mhConversionCreateBlock(raw, region.raw(), types.as_ptr(), locs.as_ptr(), n);
            Block::from_raw(made).expect("a block")
        }
    }
    /// Moves `op`, and what follows it in its block, to a new block behind that one. Panics when it is in no block.
    pub fn split_block(&mut self, op: Op<'c>) -> Block<'c> {
        assert!(op.block().is_some(), "{} is in no block", op.name());
        unsafe { Block::from_raw(ffi::mhConversionSplit(self.raw(), op.raw())) }.expect("a block")
    }
    /// Moves the operations of a block before `op`, which becomes what follows them; the arguments become `values`, and the
    /// block goes away.
    ///
    /// # Panics
    /// When there are not as many values as arguments, the block is in no region, something branches to it, it ends in a
    /// branch, or `op` is in it.
    pub fn inline_block(&mut self, block: Block<'c>, op: Op<'c>, values: &[Value<'c>]) {
        assert_eq!(block.num_args(), values.len(), "values for arguments of a block");
        assert!(block.parent_region().is_some(), "a block that is inlined is in no region");
        assert_eq!(block.num_predecessors(), 0, "branches to a block that is inlined");
        let branches = block.last().is_some_and(|last| last.successors().len() > 0);
        assert!(!branches, "a block that is inlined ends in a branch");
        assert!(op.block().is_some(), "{} is in no block", op.name());
        assert!(unsafe { ffi::mhBlockHolds(block.raw(), op.raw()) } == 0, "a block is inlined into itself");
        let (values, n) = (values.as_ptr().cast::<MlirValue>(), values.len() as isize);
        unsafe { ffi::mhConversionInlineBlock(self.raw(), block.raw(), op.raw(), values, n) }
    }
    fn assert_alive(&self, op: Op<'c>) {
        let erased = unsafe { ffi::mhConversionIsErased(op.raw()) } != 0;
        assert!(!erased, "{} was replaced or erased already", op.name());
    }
}
