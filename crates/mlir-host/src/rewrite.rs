//! Building and rewriting operations.

use crate::asm::Reported;
use crate::def::{Inputs, OpDef};
use crate::ffi::{self, Sink};
use crate::grave::Converting;
use crate::ir::{Attr, Block, Context, Loc, Op, Type, Value};
use mlir_sys::*;
use smallvec::SmallVec;
use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;

/// A rewrite: returns whether it changed something.
pub type RewriteFn = for<'c> fn(Op<'c>, &mut Rewriter<'c>) -> bool;

/// A rewrite pattern.
pub struct Pattern {
    /// For debugging output.
    pub name: &'static str,
    /// The operation it starts from; empty for any.
    pub root: &'static str,
    /// Higher goes first.
    pub benefit: u32,
    /// The rewrite. It must leave the IR as it was where it returns `false`.
    pub apply: RewriteFn,
}

/// Creates operations at a point and tells MLIR about every change.
pub struct Rewriter<'c> {
    raw: MlirRewriterBase,
    mode: Mode<'c>,
    context: PhantomData<&'c ()>,
}

/// What a rewriter is for.
#[derive(Clone, Copy)]
pub(crate) enum Mode<'c> {
    /// Greedy patterns, passes.
    Plain,
    /// Dialect conversion: MLIR remembers each change, to take it back.
    Conversion {
        /// What is to be converted.
        root: Op<'c>,
        /// Whether it was changed, replaced or erased.
        touched: bool,
    },
    /// Materializations: operations are made, and nothing else.
    Materialization,
}

// SAFETY of this impl's blocks: `raw` is valid while the callback that was
// given it runs, and handles are valid by their own contract.
impl<'c> Rewriter<'c> {
    /// # Safety
    /// `raw` is valid while this value lives.
    pub(crate) unsafe fn new(raw: MlirRewriterBase) -> Self {
        // SAFETY: by the caller.
        unsafe { Self::with_mode(raw, Mode::Plain) }
    }
    /// # Safety
    /// `raw` is valid while this value lives, and a rewriter of conversions in that mode.
    pub(crate) unsafe fn with_mode(raw: MlirRewriterBase, mode: Mode<'c>) -> Self {
        Self { raw, mode, context: PhantomData }
    }
    pub(crate) fn raw(&self) -> MlirRewriterBase {
        self.raw
    }
    pub(crate) fn mode(&self) -> Mode<'c> {
        self.mode
    }
    /// That this may change `op`.
    pub(crate) fn assert_may_change(&mut self, op: Op<'c>) {
        match &mut self.mode {
            Mode::Plain => Converting::forbid("an operation is changed"),
            Mode::Materialization => panic!("a materialization changes {}", op.name()),
            Mode::Conversion { root, touched } => {
                let erased = unsafe { ffi::mhConversionIsErased(op.raw()) } != 0;
                assert!(!erased, "{} was replaced or erased already", op.name());
                *touched |= *root == op;
            }
        }
    }
    /// That this may take `op` away.
    pub(crate) fn assert_may_erase(&mut self, op: Op<'c>) {
        if let Mode::Conversion { .. } = self.mode {
            Converting::assert_inside(op);
        }
        self.assert_may_change(op);
    }
    /// That this may put `op` somewhere; a conversion would not look at what is in it.
    fn assert_may_insert(&self, op: Op<'c>) {
        match self.mode {
            Mode::Plain => Converting::forbid("an operation is inserted"),
            Mode::Materialization => {}
            Mode::Conversion { .. } => {
                let filled = op.regions().any(|region| !region.is_empty());
                assert!(!filled, "regions of {} are filled before it is inserted", op.name());
                unsafe { ffi::mhConversionUnmark(op.raw()) }
            }
        }
        self.assert_place();
    }
    /// The context.
    pub fn context(&self) -> Context<'c> {
        unsafe { Context::from_raw(mlirRewriterBaseGetContext(self.raw)) }
    }
    /// Insert before `op` from now on.
    pub fn set_before(&mut self, op: Op<'c>) {
        unsafe { mlirRewriterBaseSetInsertionPointBefore(self.raw, op.raw()) }
    }
    /// Insert after `op` from now on.
    pub fn set_after(&mut self, op: Op<'c>) {
        unsafe { mlirRewriterBaseSetInsertionPointAfter(self.raw, op.raw()) }
    }
    /// Insert at the start of `block` from now on.
    pub fn set_start(&mut self, block: Block<'c>) {
        unsafe { mlirRewriterBaseSetInsertionPointToStart(self.raw, block.raw()) }
    }
    /// Insert at the end of `block` from now on.
    pub fn set_end(&mut self, block: Block<'c>) {
        unsafe { mlirRewriterBaseSetInsertionPointToEnd(self.raw, block.raw()) }
    }
    /// Inserts a detached operation; panics when it is in a block. In a dialect conversion its regions are filled afterwards.
    pub fn insert(&mut self, op: Op<'c>) -> Op<'c> {
        assert!(op.block().is_none(), "{} is in a block already", op.name());
        self.assert_may_insert(op);
        unsafe { mlirRewriterBaseInsert(self.raw, op.raw()) };
        op
    }
    /// That the operation to insert before was not erased by another way than this rewriter.
    fn assert_place(&self) {
        assert!(unsafe { ffi::mhRewriterHasPlace(self.raw) } != 0, "the insertion point was erased");
    }
    /// A copy of `op`, inserted.
    pub fn clone_op(&mut self, op: Op<'c>) -> Op<'c> {
        if matches!(self.mode, Mode::Plain) {
            Converting::forbid("an operation is copied");
        }
        self.assert_place();
        let copy = unsafe { Op::from_raw(mlirRewriterBaseClone(self.raw, op.raw())) }.expect("a clone");
        if !matches!(self.mode, Mode::Plain) {
            unsafe { ffi::mhConversionUnmark(copy.raw()) }
        }
        copy
    }
    /// Replaces all results and erases `op`. In a dialect conversion the values may be of other types.
    pub fn replace(&mut self, op: Op<'c>, values: &[Value<'c>]) {
        assert_eq!(op.num_results(), values.len(), "values to replace {}", op.name());
        self.assert_may_erase(op);
        if let Mode::Conversion { .. } = self.mode {
            let ends: SmallVec<[isize; 4]> = (1..=values.len() as isize).collect();
            // SAFETY: one value for each result.
            unsafe { ffi::mhConversionReplace(self.raw, op.raw(), values.as_ptr().cast(), ends.as_ptr()) };
            return;
        }
        // SAFETY: as many values as results, `Value` has the layout of `MlirValue`.
        unsafe {
            ffi::mhRewriterReplaceUses(self.raw, op.raw(), values.as_ptr().cast(), values.len() as isize);
        }
        self.erase(op);
    }
    /// Erases an operation, as [`Op::erase`] does; in a dialect conversion when that succeeds.
    ///
    /// # Panics
    /// When its results still have uses, which in a dialect conversion may go later.
    pub fn erase(&mut self, op: Op<'c>) {
        self.assert_may_erase(op);
        if let Mode::Conversion { .. } = self.mode {
            // SAFETY: it was not erased before.
            unsafe { ffi::mhConversionErase(self.raw, op.raw()) };
            return;
        }
        op.assert_unused();
        // SAFETY: nothing uses the results.
        unsafe { ffi::mhRewriterBury(self.raw, op.raw()) };
        crate::grave::bury(op);
    }
    /// Changes `op` in place.
    pub fn modify(&mut self, op: Op<'c>, change: impl FnOnce(Op<'c>)) {
        /// Ends the modification, also when `change` panics.
        struct Modification(MlirRewriterBase, MlirOperation);
        impl Drop for Modification {
            fn drop(&mut self) {
                unsafe { mlirRewriterBaseFinalizeOpModification(self.0, self.1) }
            }
        }
        self.assert_may_change(op);
        unsafe { mlirRewriterBaseStartOpModification(self.raw, op.raw()) };
        let _modification = Modification(self.raw, op.raw());
        change(op);
    }
    /// Inserts an operation of any dialect.
    pub fn generic(
        &mut self,
        name: &str,
        loc: Loc<'c>,
        operands: &[Value<'c>],
        results: &[Type<'c>],
        attrs: &[(&str, Attr<'c>)],
    ) -> Result<Op<'c>, Reported> {
        let op = create(name, loc, operands, results, attrs, &[])?;
        Ok(self.insert(op))
    }
}

/// Makes a detached operation of any registered dialect.
///
/// # Errors
/// When MLIR refuses it, which it has reported.
pub fn create<'c>(
    name: &str,
    loc: Loc<'c>,
    operands: &[Value<'c>],
    results: &[Type<'c>],
    attrs: &[(&str, Attr<'c>)],
    regions: &[NewRegion],
) -> Result<Op<'c>, Reported> {
    create_with(name, loc, operands, results, attrs, regions, &[])
}

/// Makes a detached terminator with successors; operands for successors are
/// told apart by the segment sizes among `attrs`.
///
/// # Errors
/// As for [`create`].
pub fn create_branch<'c>(
    name: &str,
    loc: Loc<'c>,
    operands: &[Value<'c>],
    attrs: &[(&str, Attr<'c>)],
    successors: &[Block<'c>],
) -> Result<Op<'c>, Reported> {
    create_with(name, loc, operands, &[], attrs, &[], successors)
}

pub(crate) fn create_with<'c>(
    name: &str,
    loc: Loc<'c>,
    operands: &[Value<'c>],
    results: &[Type<'c>],
    attrs: &[(&str, Attr<'c>)],
    regions: &[NewRegion],
    successors: &[Block<'c>],
) -> Result<Op<'c>, Reported> {
    let regions: SmallVec<[MlirRegion; 2]> = regions.iter().map(NewRegion::take).collect();
    // SAFETY: `Value`, `Type` and `Block` have the layout of the C API's
    // handles; all arrays outlive the call; the regions were ours to give.
    unsafe {
        let mut state = mlirOperationStateGet(ffi::str_ref(name), loc.raw());
        mlirOperationStateAddOperands(&mut state, operands.len() as isize, operands.as_ptr().cast());
        mlirOperationStateAddResults(&mut state, results.len() as isize, results.as_ptr().cast());
        let ctx = loc.context();
        let named: SmallVec<[MlirNamedAttribute; 4]> = attrs
            .iter()
            .map(|(name, attr)| {
                mlirNamedAttributeGet(mlirIdentifierGet(ctx.raw(), ffi::str_ref(name)), attr.raw())
            })
            .collect();
        mlirOperationStateAddAttributes(&mut state, named.len() as isize, named.as_ptr());
        mlirOperationStateAddOwnedRegions(&mut state, regions.len() as isize, regions.as_ptr());
        mlirOperationStateAddSuccessors(&mut state, successors.len() as isize, successors.as_ptr().cast());
        Op::from_raw(mlirOperationCreate(&mut state)).ok_or_else(|| {
            crate::poison::note_error();
            Reported::BY_MLIR
        })
    }
}

/// A hosted operation to be made. The builders that [`op!`](crate::op) makes name its groups and slots.
pub struct Build<'c> {
    def: &'static OpDef,
    loc: Loc<'c>,
    /// With the number of its group.
    operands: SmallVec<[(usize, Value<'c>); 4]>,
    results: Option<SmallVec<[Type<'c>; 2]>>,
    result_sizes: Option<SmallVec<[i32; 4]>>,
    attrs: SmallVec<[(&'static str, Attr<'c>); 4]>,
    extra: Vec<(String, Attr<'c>)>,
    regions: usize,
}

impl<'c> Build<'c> {
    /// Nothing set yet.
    pub fn new(def: &'static OpDef, loc: Loc<'c>) -> Self {
        Self {
            def,
            loc,
            operands: SmallVec::new(),
            results: None,
            result_sizes: None,
            attrs: SmallVec::new(),
            extra: Vec::new(),
            regions: def.regions.len(),
        }
    }
    /// The context.
    pub fn context(&self) -> Context<'c> {
        self.loc.context()
    }
    /// The values of operand group `group`.
    pub fn operands(mut self, group: usize, values: &[Value<'c>]) -> Self {
        self.operands.retain(|operand| operand.0 != group);
        self.operands.extend(values.iter().map(|value| (group, *value)));
        self
    }
    /// Inherent attribute number `slot`.
    pub fn attr(mut self, slot: usize, attr: Option<Attr<'c>>) -> Self {
        let name = self.def.attrs[slot].name;
        self.attrs.retain(|attr| attr.0 != name);
        self.attrs.extend(attr.map(|attr| (name, attr)));
        self
    }
    /// The result types; inferred if no types are given.
    pub fn results(mut self, types: &[Type<'c>]) -> Self {
        self.results = Some(types.iter().copied().collect());
        self
    }
    /// The result types by group, for operations that have several groups of any number.
    pub fn result_groups(mut self, groups: &[&[Type<'c>]]) -> Self {
        self.results = Some(groups.iter().copied().flatten().copied().collect());
        self.result_sizes = Some(groups.iter().map(|group| group.len() as i32).collect());
        self
    }
    /// A discardable attribute.
    pub fn discardable(mut self, name: &str, attr: Attr<'c>) -> Self {
        self.extra.push((name.to_owned(), attr));
        self
    }
    /// All discardable attributes of another operation.
    pub fn discardable_of(mut self, op: Op<'c>) -> Self {
        self.extra.extend(op.discardable_attrs().into_iter().map(|(name, attr)| (name.to_owned(), attr)));
        self
    }
    /// The number of regions, where it is not fixed.
    pub fn num_regions(mut self, n: usize) -> Self {
        self.regions = n;
        self
    }

    /// Makes the detached operation; its regions are empty.
    ///
    /// # Errors
    /// When result types could not be inferred or MLIR refused it; the error is reported.
    pub fn finish(mut self) -> Result<Op<'c>, Reported> {
        // Optional groups are set in any order.
        self.operands.sort_by_key(|operand| operand.0);
        let operands: SmallVec<[Value<'c>; 4]> = self.operands.iter().map(|operand| operand.1).collect();
        let ctx = self.loc.context();
        let results = match self.results.take() {
            Some(results) => results,
            None => match self.infer(&operands) {
                Ok(types) => types,
                Err(message) => {
                    return Err(self.loc.error(&format!("'{}' op {message}", self.def.name)));
                }
            },
        };
        if self.def.has_operand_segments() {
            let size = |group| self.operands.iter().filter(|operand| operand.0 == group).count() as i32;
            let sizes: SmallVec<[i32; 8]> = (0..self.def.operands.len()).map(size).collect();
            self.attrs.push(("operandSegmentSizes", Attr::i32_array(ctx, &sizes)));
        }
        if self.def.has_result_segments() {
            match self.result_sizes(results.len()) {
                Some(sizes) => self.attrs.push(("resultSegmentSizes", Attr::i32_array(ctx, &sizes))),
                None => {
                    let (name, n) = (self.def.name, results.len());
                    return Err(self
                        .loc
                        .error(&format!("'{name}' op needs to know which groups its {n} results are of")));
                }
            }
        }
        let mut attrs: SmallVec<[(&str, Attr<'c>); 8]> = self.attrs.iter().copied().collect();
        attrs.extend(self.extra.iter().map(|(name, attr)| (name.as_str(), *attr)));
        let regions: SmallVec<[NewRegion; 2]> = (0..self.regions).map(|_| new_region()).collect();
        create(self.def.name, self.loc, &operands, &results, &attrs, &regions)
    }

    /// The sizes of result groups: given, or one each.
    fn result_sizes(&self, total: usize) -> Option<SmallVec<[i32; 4]>> {
        let groups = self.def.results.len();
        match &self.result_sizes {
            Some(sizes) => (sizes.len() == groups).then(|| sizes.clone()),
            None => (total == groups).then(|| SmallVec::from_elem(1, groups)),
        }
    }

    fn infer(&self, operands: &[Value<'c>]) -> Result<SmallVec<[Type<'c>; 2]>, String> {
        let ctx = self.loc.context();
        if let Some(infer) = self.def.infer {
            let attr = |name: &str| {
                let set = self.attrs.iter().find(|attr| attr.0 == name).map(|attr| attr.1);
                set.or_else(|| crate::format::default_attr(self.def, ctx, name))
            };
            let inputs = Inputs { ctx, operands, attr: &attr, regions: &[] };
            return Ok(infer(&inputs)?.into_iter().collect());
        }
        let mut types = SmallVec::new();
        for value in self.def.results {
            let ruled = self.def.types.iter().find(|rule| rule.to == value.name).and_then(|rule| {
                let group = self.def.operand_index(rule.from)?;
                (rule.with)(self.operands.iter().find(|operand| operand.0 == group)?.1.ty())
            });
            let same = self.def.has_trait(&crate::traits::Trait::SAME_TYPE);
            let ty = ruled
                .or_else(|| value.constraint.buildable.map(|build| build(ctx)))
                .or_else(|| if same { operands.first().map(|value| value.ty()) } else { None });
            types.push(ty.ok_or_else(|| format!("result '{}' needs a type", value.name))?);
        }
        Ok(types)
    }
}

/// A rewriter outside of patterns.
pub struct IrRewriter<'c> {
    inner: Rewriter<'c>,
}

impl<'c> IrRewriter<'c> {
    /// A rewriter without an insertion point.
    pub fn new(ctx: Context<'c>) -> Self {
        // SAFETY: freed on drop.
        Self { inner: unsafe { Rewriter::new(mlirIRRewriterCreate(ctx.raw())) } }
    }
}
impl<'c> std::ops::Deref for IrRewriter<'c> {
    type Target = Rewriter<'c>;
    fn deref(&self) -> &Rewriter<'c> {
        &self.inner
    }
}
impl std::ops::DerefMut for IrRewriter<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}
impl Drop for IrRewriter<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `new`.
        unsafe { mlirIRRewriterDestroy(self.inner.raw) }
    }
}

/// Adds a pattern to a C++ pattern set.
///
/// # Safety
/// `sink` is a pattern set.
pub(crate) unsafe fn add_pattern(sink: *mut Sink, ctx: MlirContext, pattern: &'static Pattern) {
    // SAFETY: by the caller; the pattern is static.
    unsafe {
        ffi::mhSinkPattern(
            sink,
            ctx,
            (pattern as *const Pattern).cast::<c_void>(),
            ffi::str_ref(pattern.root),
            pattern.benefit,
        );
    }
}

/// Applies patterns below `op` until nothing changes; `false` when they do
/// not converge.
pub fn apply_greedily(op: Op<'_>, patterns: &[&'static Pattern]) -> bool {
    Converting::forbid("patterns are applied");
    // SAFETY: the set is freed by the callee.
    unsafe {
        let ctx = op.context().raw();
        let set = ffi::mhPatternSetNew(ctx);
        for pattern in patterns {
            add_pattern(set, ctx, pattern);
        }
        ffi::mhApplyPatternsGreedily(op.raw(), set) != 0
    }
}

/// A region that no operation owns yet. [`create`] takes it; else it is destroyed with what is in it.
pub struct NewRegion(Cell<Option<MlirRegion>>);

impl NewRegion {
    fn take(&self) -> MlirRegion {
        self.0.take().expect("a region is given to one operation")
    }
}

impl Drop for NewRegion {
    fn drop(&mut self) {
        if let Some(region) = self.0.take() {
            // SAFETY: it was made by `new_region`, and nobody took it.
            unsafe { mlirRegionDestroy(region) }
        }
    }
}

/// A new region to give to [`create`].
pub fn new_region() -> NewRegion {
    // SAFETY: creation cannot fail.
    NewRegion(Cell::new(Some(unsafe { mlirRegionCreate() })))
}
