//! Where the memory is that operations were given: shared memory, global scratch memory, the stack.

use super::internal;
use super::{Lower, module};
use crate::emit::{Lowered, address_space, unsupported};
use crate::target::GRID_DIMS;
use mlir_host::ir::{Attr, Op, Type, Value};
use ttopt_dialect::ttg::module_attrs;
use ttopt_passes::shared_memory;

impl<'c> Lower<'_, 'c> {
    /// The shared memory that an operation was given for as long as it runs,
    /// where allocation put it: `allocation.offset` bytes from the start.
    ///
    /// # Errors
    /// When shared memory has not been allocated.
    pub fn scratch(&mut self, op: Op<'c>) -> Lowered<Value<'c>> {
        let Some(offset) = op.attr(shared_memory::OFFSET).and_then(Attr::as_int) else {
            return unsupported("has no shared memory: run --allocate-shared-memory-nv first");
        };
        self.shared_at(offset)
    }

    /// Byte `at` of the shared memory of an operation.
    ///
    /// # Errors
    /// As [`scratch`](Self::scratch).
    pub fn scratch_part(&mut self, op: Op<'c>, at: u64) -> Lowered<Value<'c>> {
        let start = self.scratch(op)?;
        if at == 0 {
            return Ok(start);
        }
        let (byte, at) = (self.emit.int(8), self.emit.const_i32(at as i64)?);
        self.emit.gep(start, at, byte)
    }

    /// The address of byte `offset` of the CTA's shared memory.
    pub fn shared_at(&mut self, offset: i64) -> Lowered<Value<'c>> {
        let base = self.shared_base()?;
        if offset == 0 {
            return Ok(base);
        }
        let byte = self.emit.int(8);
        let offset = self.emit.const_i32(offset)?;
        self.emit.gep(base, offset, byte)
    }

    /// The start of the CTA's shared memory: the symbol that launchers size.
    fn shared_base(&mut self) -> Lowered<Value<'c>> {
        if let Some(found) = self.function()?.shared {
            return Ok(found);
        }
        self.with_module(|e, module| module.shared_memory(e))?;
        let base = self.in_prologue(|this| {
            let e = &mut this.emit;
            let symbol = Attr::symbol(e.context(), module::SHARED_MEMORY);
            let ty = e.ptr(address_space::SHARED)?;
            e.value("llvm.mlir.addressof", &[], ty, &[("global_name", symbol)])
        })?;
        self.function()?.shared = Some(base);
        Ok(base)
    }

    /// The address of byte `offset` of the global scratch memory of this function.
    ///
    /// # Errors
    /// When it has none.
    pub fn global_scratch_at(&mut self, offset: i64) -> Lowered<Value<'c>> {
        let Some(mut base) = self.function()?.global_scratch else {
            return unsupported("is in a function without global scratch memory");
        };
        if self.function()?.is_scratch_of_all {
            base = self.in_prologue(|this| this.scratch_of_program(base))?;
            let function = self.function()?;
            (function.global_scratch, function.is_scratch_of_all) = (Some(base), false);
        }
        if offset == 0 {
            return Ok(base);
        }
        let (byte, offset) = (self.emit.int(8), self.emit.const_int(64, offset)?);
        self.emit.gep(base, offset, byte)
    }

    /// The part of this program: programs are numbered along x first, then y and z.
    fn scratch_of_program(&mut self, all: Value<'c>) -> Lowered<Value<'c>> {
        let (blocks, e, i64t) = (self.num_blocks, &mut self.emit, Type::int(all.context(), 64));
        let mut number: Option<Value<'c>> = None;
        for axis in (0..GRID_DIMS).rev() {
            let id = self.target.program_id(e, axis, blocks)?;
            let id = e.value("llvm.zext", &[id], i64t, &[])?;
            number = Some(match number {
                None => id,
                Some(outer) => {
                    let count = self.target.num_programs(e, axis, blocks)?;
                    let count = e.value("llvm.zext", &[count], i64t, &[])?;
                    let outer = e.same("llvm.mul", &[outer, count])?;
                    e.add(outer, id)?
                }
            });
        }
        let Some(mut number) = number else { return Ok(all) };
        if blocks > 1 {
            // Each block of a program has its own.
            let (_, _, block) = self.thread()?;
            let e = &mut self.emit;
            let (block, count) =
                (e.value("llvm.zext", &[block], i64t, &[])?, e.const_int(64, blocks.into())?);
            let first = e.same("llvm.mul", &[number, count])?;
            number = e.add(first, block)?;
        }
        let e = &mut self.emit;
        let Some(size) = module_attrs::global_scratch_size(self.module) else {
            return internal("global scratch memory was not allocated");
        };
        let size = e.const_int(64, size.into())?;
        let (offset, byte) = (e.same("llvm.mul", &[number, size])?, e.int(8));
        e.gep(all, offset, byte)
    }

    /// A place on the stack for a value of type `ty`, the same at every call.
    pub fn stack_slot(&mut self, ty: Type<'c>) -> Lowered<Value<'c>> {
        if let Some(found) = self.function()?.stack.get(&ty) {
            return Ok(*found);
        }
        let slot = self.in_prologue(|this| {
            let e = &mut this.emit;
            let (one, generic) = (e.const_i32(1)?, e.ptr(0)?);
            e.value("llvm.alloca", &[one], generic, &[("elem_type", Attr::type_of(ty))])
        })?;
        self.function()?.stack.insert(ty, slot);
        Ok(slot)
    }
}
