//! Operations, values, blocks and regions.

use super::{Attr, Context, Loc, Type, handle};
use crate::asm::Reported;
use crate::def::OpDef;
use crate::ffi;
use crate::traits::Upstream;
use mlir_sys::*;
use std::ffi::c_void;

handle!(
    /// An operation.
    Op, MlirOperation, *mut c_void
);
handle!(
    /// An SSA value: an operation's result or a block argument.
    Value, MlirValue, *const c_void
);
handle!(
    /// A basic block.
    Block, MlirBlock, *mut c_void
);
handle!(
    /// A region: a list of blocks.
    Region, MlirRegion, *mut c_void
);

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Severity {
    Error = 0,
    Warning = 1,
    Remark = 2,
}

/// What a walk does after visiting an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// Continue with nested operations and the next one.
    Advance,
    /// Do not visit the regions of this operation.
    Skip,
    /// Stop altogether.
    Stop,
}

/// Symbol tables that a verifier caches, while it runs.
#[derive(Clone, Copy)]
pub struct Symbols<'a>(*mut c_void, std::marker::PhantomData<&'a ()>);

impl Symbols<'_> {
    /// # Safety
    /// The tables are valid for the lifetime.
    pub(crate) unsafe fn from_raw(raw: *mut c_void) -> Self {
        Self(raw, std::marker::PhantomData)
    }
}

/// An operation with what tells it from operations of other types. [`match_op!`](crate::match_op) asks for it.
#[derive(Clone, Copy)]
pub struct OpKind<'c> {
    op: Op<'c>,
    def: Option<&'static OpDef>,
    id: *const c_void,
}

impl<'c> OpKind<'c> {
    /// The operation.
    pub fn op(self) -> Op<'c> {
        self.op
    }
    /// Whether it is hosted and defined by `def`.
    pub fn is(self, def: &'static OpDef) -> bool {
        self.def.is_some_and(|mine| std::ptr::eq(mine, def))
    }
    /// Whether it is hosted.
    pub fn is_hosted(self) -> bool {
        self.def.is_some()
    }
    /// The TypeID; null where the operation is not registered.
    pub(crate) fn id(self) -> *const c_void {
        self.id
    }
}

impl<'c> Op<'c> {
    /// The context.
    pub fn context(self) -> Context<'c> {
        // SAFETY: the handle is valid.
        unsafe { Context::from_raw(mlirOperationGetContext(self.raw())) }
    }
    /// The location.
    pub fn loc(self) -> Loc<'c> {
        // SAFETY: every operation has a location.
        unsafe { Loc::from_raw(mlirOperationGetLocation(self.raw())) }.expect("a location")
    }
    /// Full name, such as `arith.addi`.
    pub fn name(self) -> &'c str {
        let mut registered = 0;
        // SAFETY: names are uniqued in the context; those that a dialect registers are identifiers.
        unsafe {
            let name = ffi::mhOpName(self.raw(), &mut registered);
            if registered == 0 {
                return ffi::str_of(name);
            }
            std::str::from_utf8_unchecked(std::slice::from_raw_parts(name.data.cast(), name.length))
        }
    }
    /// The uniqued pointer of the name, for fast dispatch within one context.
    pub fn name_id(self) -> usize {
        // SAFETY: the handle is valid.
        unsafe { mlirOperationGetName(self.raw()).ptr as usize }
    }
    /// The definition when the operation is hosted.
    pub fn def(self) -> Option<&'static OpDef> {
        // SAFETY: hosted operations are registered with a pointer to their definition.
        unsafe { ffi::mhOpDef(self.raw()).cast::<OpDef>().as_ref() }
    }
    /// What tells it from operations of other types, for those who compare with several.
    pub fn kind(self) -> OpKind<'c> {
        // SAFETY: the handle is valid; the TypeID of an operation that is not registered is null.
        let kind = unsafe { ffi::mhOpKind(self.raw()) };
        // SAFETY: hosted operations are registered with a pointer to their definition.
        OpKind { op: self, id: kind.type_id, def: unsafe { kind.def.cast::<OpDef>().as_ref() } }
    }
    /// Whether the operation is hosted and defined by `def`.
    pub fn is(self, def: &'static OpDef) -> bool {
        self.def().is_some_and(|mine| std::ptr::eq(mine, def))
    }
    /// Number of operands.
    pub fn num_operands(self) -> usize {
        // SAFETY: the handle is valid.
        unsafe { mlirOperationGetNumOperands(self.raw()) as usize }
    }
    /// Operand `i`; panics when out of range.
    pub fn operand(self, i: usize) -> Value<'c> {
        assert!(i < self.num_operands(), "operand {i} of {}", self.name());
        // SAFETY: in range; operands are never null.
        unsafe { Value::from_raw(mlirOperationGetOperand(self.raw(), i as isize)) }.expect("an operand")
    }
    /// All operands.
    pub fn operands(self) -> OpOperands<'c> {
        self.operand_range(0, self.num_operands())
    }
    /// Operands `start..start + len`.
    pub fn operand_range(self, start: usize, len: usize) -> OpOperands<'c> {
        OpOperands { op: self, next: start, end: start + len }
    }
    /// Replaces operand `i`.
    pub fn set_operand(self, i: usize, value: Value<'c>) {
        assert!(i < self.num_operands(), "operand {i} of {}", self.name());
        // SAFETY: in range.
        unsafe { mlirOperationSetOperand(self.raw(), i as isize, value.raw()) }
    }
    /// Replaces all operands.
    pub fn set_operands(self, values: &[Value<'c>]) {
        // SAFETY: `Value` has the layout of `MlirValue`.
        unsafe { mlirOperationSetOperands(self.raw(), values.len() as isize, values.as_ptr().cast()) }
    }
    /// Number of results.
    pub fn num_results(self) -> usize {
        // SAFETY: the handle is valid.
        unsafe { mlirOperationGetNumResults(self.raw()) as usize }
    }
    /// Result `i`; panics when out of range.
    pub fn result(self, i: usize) -> Value<'c> {
        assert!(i < self.num_results(), "result {i} of {}", self.name());
        // SAFETY: in range; results are never null.
        unsafe { Value::from_raw(mlirOperationGetResult(self.raw(), i as isize)) }.expect("a result")
    }
    /// All results.
    pub fn results(self) -> impl DoubleEndedIterator<Item = Value<'c>> + ExactSizeIterator {
        (0..self.num_results()).map(move |i| self.result(i))
    }
    /// Number of regions.
    pub fn num_regions(self) -> usize {
        // SAFETY: the handle is valid.
        unsafe { mlirOperationGetNumRegions(self.raw()) as usize }
    }
    /// Region `i`; panics when out of range.
    pub fn region(self, i: usize) -> Region<'c> {
        assert!(i < self.num_regions(), "region {i} of {}", self.name());
        // SAFETY: in range.
        unsafe { Region::from_raw(mlirOperationGetRegion(self.raw(), i as isize)) }.expect("a region")
    }
    /// All regions.
    pub fn regions(self) -> impl ExactSizeIterator<Item = Region<'c>> {
        (0..self.num_regions()).map(move |i| self.region(i))
    }
    /// Successor blocks.
    pub fn successors(self) -> impl ExactSizeIterator<Item = Block<'c>> {
        // SAFETY: the handle is valid; indices are in range.
        let n = unsafe { mlirOperationGetNumSuccessors(self.raw()) } as usize;
        (0..n).map(move |i| {
            // SAFETY: in range.
            unsafe { Block::from_raw(mlirOperationGetSuccessor(self.raw(), i as isize)) }.expect("a block")
        })
    }
    /// Attribute by name, inherent or discardable.
    pub fn attr(self, name: &str) -> Option<Attr<'c>> {
        // SAFETY: the handle is valid.
        unsafe { Attr::from_raw(mlirOperationGetAttributeByName(self.raw(), ffi::str_ref(name))) }
    }
    /// Discardable attribute by name.
    pub fn discardable_attr(self, name: &str) -> Option<Attr<'c>> {
        // SAFETY: the handle is valid.
        unsafe { Attr::from_raw(mlirOperationGetDiscardableAttributeByName(self.raw(), ffi::str_ref(name))) }
    }
    /// All discardable attributes.
    pub fn discardable_attrs(self) -> Vec<(&'c str, Attr<'c>)> {
        // SAFETY: indices are in range, names are uniqued in the context.
        unsafe {
            (0..mlirOperationGetNumDiscardableAttributes(self.raw()))
                .filter_map(|i| {
                    let named = mlirOperationGetDiscardableAttribute(self.raw(), i);
                    Some((ffi::str_of(mlirIdentifierStr(named.name)), Attr::from_raw(named.attribute)?))
                })
                .collect()
        }
    }
    /// All attributes, inherent and discardable, sorted by name.
    pub fn attrs(self) -> Vec<(&'c str, Attr<'c>)> {
        // SAFETY: indices are in range, names are uniqued in the context.
        unsafe {
            (0..mlirOperationGetNumAttributes(self.raw()))
                .filter_map(|i| {
                    let named = mlirOperationGetAttribute(self.raw(), i);
                    Some((ffi::str_of(mlirIdentifierStr(named.name)), Attr::from_raw(named.attribute)?))
                })
                .collect()
        }
    }
    /// Sets an attribute, inherent or discardable.
    pub fn set_attr(self, name: &str, attr: Attr<'c>) {
        // SAFETY: the handles are valid.
        unsafe { mlirOperationSetAttributeByName(self.raw(), ffi::str_ref(name), attr.raw()) }
    }
    /// Removes an attribute; returns whether it was there.
    pub fn remove_attr(self, name: &str) -> bool {
        // SAFETY: the handle is valid.
        unsafe { mlirOperationRemoveAttributeByName(self.raw(), ffi::str_ref(name)) }
    }
    /// Inherent attribute number `slot` of a hosted operation; `None` where there is no such slot.
    pub fn slot(self, slot: usize) -> Option<Attr<'c>> {
        // SAFETY: the handle is valid; the shim knows which operations have which slots.
        unsafe { Attr::from_raw(ffi::mhOpSlot(self.raw(), slot as isize)) }
    }
    /// Default of inherent attribute number `slot` of a hosted operation.
    pub fn slot_default(self, slot: usize) -> Option<Attr<'c>> {
        // SAFETY: the handle is valid; unknown slots give null.
        unsafe { Attr::from_raw(ffi::mhOpDefault(self.raw(), slot as isize)) }
    }
    /// Sets inherent attribute number `slot` of a hosted operation; panics where there is no such slot.
    pub fn set_slot(self, slot: usize, attr: Option<Attr<'c>>) {
        // SAFETY: as above.
        let set = unsafe {
            let raw = attr.map_or_else(|| mlirAttributeGetNull(), Attr::raw);
            ffi::mhOpSetSlot(self.raw(), slot as isize, raw)
        };
        assert!(set != 0, "slot {slot} of {}", self.name());
    }
    /// The operation around this one.
    pub fn parent(self) -> Option<Op<'c>> {
        // SAFETY: the handle is valid; the parent of a detached operation is null.
        unsafe {
            if mlirOperationGetBlock(self.raw()).ptr.is_null() {
                return None;
            }
            Op::from_raw(mlirOperationGetParentOperation(self.raw()))
        }
    }
    /// The closest enclosing operation that satisfies `matches`.
    pub fn ancestor(self, matches: impl Fn(Op<'c>) -> bool) -> Option<Op<'c>> {
        std::iter::successors(self.parent(), |op| op.parent()).find(|op| matches(*op))
    }
    /// The block that holds the operation.
    pub fn block(self) -> Option<Block<'c>> {
        // SAFETY: the handle is valid.
        unsafe { Block::from_raw(mlirOperationGetBlock(self.raw())) }
    }
    /// The next operation of the block.
    pub fn next(self) -> Option<Op<'c>> {
        // SAFETY: the handle is valid.
        unsafe { Op::from_raw(mlirOperationGetNextInBlock(self.raw())) }
    }
    /// Whether this comes before `other` in their common block.
    pub fn is_before_in_block(self, other: Op<'c>) -> bool {
        // SAFETY: the handles are valid.
        unsafe { ffi::mhIsBeforeInBlock(self.raw(), other.raw()) != 0 }
    }
    /// Whether the operation, hosted or not, has the trait.
    pub fn has_trait(self, which: Upstream) -> bool {
        // SAFETY: the handle is valid.
        unsafe { ffi::mhOpHasTrait(self.raw(), which as u32) != 0 }
    }
    /// Whether the operation and all nested ones have no memory effects.
    pub fn is_memory_effect_free(self) -> bool {
        // SAFETY: the handle is valid.
        unsafe { ffi::mhIsMemoryEffectFree(self.raw()) != 0 }
    }
    /// Whether the operation is speculatable and free of memory effects.
    pub fn is_pure(self) -> bool {
        // SAFETY: the handle is valid.
        unsafe { ffi::mhIsPure(self.raw()) != 0 }
    }
    /// Whether the operation itself, not what is nested in it, says that it writes memory.
    pub fn writes_memory(self) -> bool {
        // SAFETY: the handle is valid.
        unsafe { ffi::mhWritesMemory(self.raw()) != 0 }
    }
    /// Whether the operation may run when it would not have.
    pub fn is_speculatable(self) -> bool {
        // SAFETY: the handle is valid.
        unsafe { ffi::mhIsSpeculatable(self.raw()) != 0 }
    }
    /// The operation that `symbol` names, seen from here.
    pub fn lookup_symbol(self, symbol: Attr<'c>, tables: Option<Symbols<'_>>) -> Option<Op<'c>> {
        symbol.as_symbol()?;
        let tables = tables.map_or(std::ptr::null_mut(), |tables| tables.0);
        // SAFETY: the handles are valid, the attribute is a symbol reference.
        unsafe { Op::from_raw(ffi::mhLookupSymbol(self.raw(), symbol.raw(), tables)) }
    }
    /// Reports an error prefixed with the operation's name: `'tt.load' op …`.
    pub fn error(self, message: impl AsRef<str>) -> Reported {
        self.emit(Severity::Error, true, message.as_ref(), &[]);
        Reported::BY_MLIR
    }
    /// Reports an error at the operation, with notes.
    pub fn error_with_notes(self, message: impl AsRef<str>, notes: &[(Loc<'c>, String)]) -> Reported {
        self.emit(Severity::Error, true, message.as_ref(), notes);
        Reported::BY_MLIR
    }
    /// Reports a remark at the operation.
    pub fn remark(self, message: impl AsRef<str>) {
        self.emit(Severity::Remark, false, message.as_ref(), &[]);
    }
    /// Reports a diagnostic with notes.
    pub fn emit(self, severity: Severity, prefix: bool, message: &str, notes: &[(Loc<'c>, String)]) {
        let locs: Vec<MlirLocation> = notes.iter().map(|note| note.0.raw()).collect();
        let texts: Vec<MlirStringRef> = notes.iter().map(|note| ffi::str_ref(&note.1)).collect();
        if matches!(severity, Severity::Error) {
            crate::poison::note_error();
        }
        // SAFETY: all handles and texts are valid during the call.
        unsafe {
            ffi::mhOpEmit(
                self.raw(),
                severity as i32,
                prefix.into(),
                ffi::str_ref(message),
                locs.as_ptr(),
                texts.as_ptr(),
                notes.len() as isize,
            );
        }
    }
    /// Verifies the operation and all nested ones; errors are reported.
    pub fn verify(self) -> bool {
        // SAFETY: the handle is valid.
        unsafe { mlirOperationVerify(self.raw()) }
    }
    /// Erases the operation. It is out of the IR at once, and its memory is kept until the pass or pattern ends,
    /// so that other handles to it, and to what it contains, find an operation without operands in no block.
    ///
    /// # Panics
    /// When its results still have uses, and in a dialect conversion.
    pub fn erase(self) {
        crate::grave::Converting::forbid("an operation is erased");
        self.assert_unused();
        // SAFETY: the handle is valid, and nothing uses the results.
        unsafe { ffi::mhOpBury(self.raw()) };
        crate::grave::bury(self);
    }
    pub(crate) fn assert_unused(self) {
        // SAFETY: the handle is valid.
        assert!(unsafe { ffi::mhOpIsUsed(self.raw()) } == 0, "{} is erased, and used", self.name());
    }
    /// A copy of the operation with its regions, in no block.
    pub fn clone_detached(self) -> Op<'c> {
        // SAFETY: the handle is valid; a clone is never null.
        unsafe { Op::from_raw(mlirOperationClone(self.raw())) }.expect("a clone")
    }
    /// Moves the operation, which may be detached, before `other`, which is in a block. Panics in a dialect conversion.
    pub fn move_before(self, other: Op<'c>) {
        crate::grave::Converting::forbid("an operation is moved");
        let block = other.block().expect("an operation in a block");
        // SAFETY: the handles are valid; a detached operation is given to the block.
        unsafe {
            match self.block() {
                Some(_) => mlirOperationMoveBefore(self.raw(), other.raw()),
                None => mlirBlockInsertOwnedOperationBefore(block.raw(), other.raw(), self.raw()),
            }
        }
    }
    /// Moves the operation, which may be detached, after `other`, which is in a block. Panics in a dialect conversion.
    pub fn move_after(self, other: Op<'c>) {
        crate::grave::Converting::forbid("an operation is moved");
        let block = other.block().expect("an operation in a block");
        // SAFETY: as above.
        unsafe {
            match self.block() {
                Some(_) => mlirOperationMoveAfter(self.raw(), other.raw()),
                None => mlirBlockInsertOwnedOperationAfter(block.raw(), other.raw(), self.raw()),
            }
        }
    }
    /// Visits this operation and all nested ones, outer before inner. The
    /// visitor may erase the operation it is given, after returning `Skip`.
    pub fn walk(self, visit: &mut dyn FnMut(Op<'c>) -> Walk) -> Walk {
        // Whatever is needed to go on is read before the visitor may erase.
        match visit(self) {
            Walk::Advance => {}
            Walk::Skip => return Walk::Advance,
            Walk::Stop => return Walk::Stop,
        }
        for region in self.regions() {
            for block in region.blocks() {
                let mut next = block.first();
                while let Some(op) = next {
                    next = op.next();
                    if op.walk(visit) == Walk::Stop {
                        return Walk::Stop;
                    }
                }
            }
        }
        Walk::Advance
    }
    /// Visits all operations, inner before outer. The visitor may erase the
    /// operation it is given.
    pub fn walk_post(self, visit: &mut dyn FnMut(Op<'c>)) {
        for region in self.regions() {
            for block in region.blocks() {
                let mut next = block.first();
                while let Some(op) = next {
                    next = op.next();
                    op.walk_post(visit);
                }
            }
        }
        visit(self);
    }
}

/// Iterator over operands.
#[derive(Clone, Copy)]
pub struct OpOperands<'c> {
    op: Op<'c>,
    next: usize,
    end: usize,
}

impl<'c> OpOperands<'c> {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.next >= self.end
    }
    /// Position of the first one among all operands of the operation.
    pub fn start(&self) -> usize {
        self.next
    }
}

impl<'c> Iterator for OpOperands<'c> {
    type Item = Value<'c>;
    fn next(&mut self) -> Option<Value<'c>> {
        (self.next < self.end).then(|| {
            self.next += 1;
            self.op.operand(self.next - 1)
        })
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.end - self.next, Some(self.end - self.next))
    }
}
impl ExactSizeIterator for OpOperands<'_> {}

impl<'c> Value<'c> {
    /// The context.
    pub fn context(self) -> Context<'c> {
        self.ty().context()
    }
    /// The type.
    pub fn ty(self) -> Type<'c> {
        // SAFETY: every value has a type.
        unsafe { Type::from_raw(mlirValueGetType(self.raw())) }.expect("a type")
    }
    /// Changes the type in place; the caller keeps the IR valid.
    pub fn set_type(self, ty: Type<'c>) {
        // SAFETY: the handles are valid.
        unsafe { mlirValueSetType(self.raw(), ty.raw()) }
    }
    /// The operation whose result this is; `None` for a block argument.
    pub fn def_op(self) -> Option<Op<'c>> {
        // SAFETY: checked to be a result.
        unsafe {
            if mlirValueIsAOpResult(self.raw()) {
                Op::from_raw(mlirOpResultGetOwner(self.raw()))
            } else {
                None
            }
        }
    }
    /// The number of the result or of the block argument.
    pub fn index(self) -> usize {
        // SAFETY: a value is either one.
        unsafe {
            if mlirValueIsAOpResult(self.raw()) {
                mlirOpResultGetResultNumber(self.raw()) as usize
            } else {
                mlirBlockArgumentGetArgNumber(self.raw()) as usize
            }
        }
    }
    /// The block whose argument this is; `None` for a result.
    pub fn arg_block(self) -> Option<Block<'c>> {
        // SAFETY: checked to be an argument.
        unsafe {
            if mlirValueIsABlockArgument(self.raw()) {
                Block::from_raw(mlirBlockArgumentGetOwner(self.raw()))
            } else {
                None
            }
        }
    }
    /// Where the value is defined.
    pub fn loc(self) -> Loc<'c> {
        match self.def_op() {
            Some(op) => op.loc(),
            // SAFETY: every value has a location.
            None => unsafe { Loc::from_raw(mlirValueGetLocation(self.raw())) }.expect("a location"),
        }
    }
    /// Uses as (operation, operand number).
    pub fn uses(self) -> Uses<'c> {
        // SAFETY: the handle is valid.
        Uses(unsafe { mlirValueGetFirstUse(self.raw()) }, std::marker::PhantomData)
    }
    /// Whether nothing uses the value.
    pub fn is_unused(self) -> bool {
        self.uses().next().is_none()
    }
    /// Replaces all uses.
    pub fn replace_all_uses_with(self, other: Value<'c>) {
        // SAFETY: the handles are valid.
        unsafe { mlirValueReplaceAllUsesOfWith(self.raw(), other.raw()) }
    }
    /// The region in whose block the value is defined.
    pub fn parent_region(self) -> Option<Region<'c>> {
        let block = self.arg_block().or_else(|| self.def_op()?.block())?;
        block.parent_region()
    }
}

/// Iterator over the uses of a value. The current use may be replaced while iterating.
pub struct Uses<'c>(MlirOpOperand, std::marker::PhantomData<&'c ()>);

impl<'c> Iterator for Uses<'c> {
    type Item = (Op<'c>, usize);
    fn next(&mut self) -> Option<Self::Item> {
        // SAFETY: the use list is valid while the value is.
        unsafe {
            if mlirOpOperandIsNull(self.0) {
                return None;
            }
            let current = self.0;
            self.0 = mlirOpOperandGetNextUse(current);
            Some((
                Op::from_raw(mlirOpOperandGetOwner(current))?,
                mlirOpOperandGetOperandNumber(current) as usize,
            ))
        }
    }
}

impl<'c> Block<'c> {
    /// A new block with arguments, to be put into a region.
    pub fn new(args: &[(Type<'c>, Loc<'c>)]) -> Block<'c> {
        let types: Vec<MlirType> = args.iter().map(|arg| arg.0.raw()).collect();
        let locs: Vec<MlirLocation> = args.iter().map(|arg| arg.1.raw()).collect();
        // SAFETY: the arrays are valid during the call.
        unsafe { Block::from_raw(mlirBlockCreate(args.len() as isize, types.as_ptr(), locs.as_ptr())) }
            .expect("a block")
    }
    /// Number of arguments.
    pub fn num_args(self) -> usize {
        // SAFETY: the handle is valid.
        unsafe { mlirBlockGetNumArguments(self.raw()) as usize }
    }
    /// Argument `i`; panics when out of range.
    pub fn arg(self, i: usize) -> Value<'c> {
        assert!(i < self.num_args(), "block argument {i} of {}", self.num_args());
        // SAFETY: in range.
        unsafe { Value::from_raw(mlirBlockGetArgument(self.raw(), i as isize)) }.expect("an argument")
    }
    /// All arguments.
    pub fn args(self) -> impl ExactSizeIterator<Item = Value<'c>> {
        (0..self.num_args()).map(move |i| self.arg(i))
    }
    /// Adds an argument.
    pub fn add_arg(self, ty: Type<'c>, loc: Loc<'c>) -> Value<'c> {
        // SAFETY: the handles are valid.
        unsafe { Value::from_raw(mlirBlockAddArgument(self.raw(), ty.raw(), loc.raw())) }
            .expect("an argument")
    }
    /// Erases argument `i`; handles to it are invalid. Panics when it is used, and in a dialect conversion.
    pub fn erase_arg(self, i: usize) {
        crate::grave::Converting::forbid("a block argument is erased");
        assert!(self.arg(i).is_unused(), "block argument {i} is erased, and used");
        // SAFETY: in range.
        unsafe { mlirBlockEraseArgument(self.raw(), i as u32) }
    }
    /// The first operation.
    pub fn first(self) -> Option<Op<'c>> {
        // SAFETY: the handle is valid.
        unsafe { Op::from_raw(mlirBlockGetFirstOperation(self.raw())) }
    }
    /// The terminator, where the last operation is one.
    pub fn terminator(self) -> Option<Op<'c>> {
        // SAFETY: the handle is valid.
        unsafe { Op::from_raw(mlirBlockGetTerminator(self.raw())) }
    }
    /// The last operation, terminator or not.
    pub fn last(self) -> Option<Op<'c>> {
        self.terminator().or_else(|| self.ops().last())
    }
    /// All operations. The one last returned may be erased while iterating.
    pub fn ops(self) -> impl Iterator<Item = Op<'c>> {
        let mut next = self.first();
        std::iter::from_fn(move || {
            let op = next?;
            next = op.next();
            Some(op)
        })
    }
    /// The next block of the region.
    pub fn next(self) -> Option<Block<'c>> {
        // SAFETY: the handle is valid.
        unsafe { Block::from_raw(mlirBlockGetNextInRegion(self.raw())) }
    }
    /// The operation around the block.
    pub fn parent(self) -> Option<Op<'c>> {
        // SAFETY: the handle is valid.
        unsafe { Op::from_raw(mlirBlockGetParentOperation(self.raw())) }
    }
    /// The region that holds the block.
    pub fn parent_region(self) -> Option<Region<'c>> {
        // SAFETY: the handle is valid.
        unsafe { Region::from_raw(mlirBlockGetParentRegion(self.raw())) }
    }
    /// Appends a detached operation; panics when it is in a block, and in a dialect conversion.
    pub fn append(self, op: Op<'c>) {
        crate::grave::Converting::forbid("an operation is appended");
        assert!(op.block().is_none(), "{} is in a block already", op.name());
        // SAFETY: the block takes ownership of the operation.
        unsafe { mlirBlockAppendOwnedOperation(self.raw(), op.raw()) }
    }
    /// Number of predecessors of the block.
    pub fn num_predecessors(self) -> usize {
        // SAFETY: the handle is valid.
        unsafe { mlirBlockGetNumPredecessors(self.raw()) as usize }
    }
    /// The blocks that branch here.
    pub fn predecessors(self) -> impl ExactSizeIterator<Item = Block<'c>> {
        (0..self.num_predecessors()).map(move |i| {
            // SAFETY: in range.
            unsafe { Block::from_raw(mlirBlockGetPredecessor(self.raw(), i as isize)) }.expect("a block")
        })
    }
}

impl<'c> Region<'c> {
    /// The first block.
    pub fn first_block(self) -> Option<Block<'c>> {
        // SAFETY: the handle is valid.
        unsafe { Block::from_raw(mlirRegionGetFirstBlock(self.raw())) }
    }
    /// All blocks.
    pub fn blocks(self) -> impl Iterator<Item = Block<'c>> {
        std::iter::successors(self.first_block(), |block| block.next())
    }
    /// Whether there is no block.
    pub fn is_empty(self) -> bool {
        self.first_block().is_none()
    }
    /// The number of the region in its operation.
    pub fn number(self) -> usize {
        // SAFETY: the handle is valid.
        unsafe { ffi::mhRegionNumber(self.raw()) as usize }
    }
    /// Appends a detached block; panics when it is in a region, and in a dialect conversion.
    pub fn append(self, block: Block<'c>) {
        crate::grave::Converting::forbid("a block is appended");
        assert!(block.parent_region().is_none(), "the block is in a region already");
        // SAFETY: the region takes ownership of the block.
        unsafe { mlirRegionAppendOwnedBlock(self.raw(), block.raw()) }
    }
    /// Moves all blocks of `other` here. What was here is destroyed, and handles to it are invalid. Panics in a dialect
    /// conversion.
    pub fn take_body(self, other: Region<'c>) {
        crate::grave::Converting::forbid("a region is replaced");
        // SAFETY: the handles are valid.
        unsafe { mlirRegionTakeBody(self.raw(), other.raw()) }
    }
}
