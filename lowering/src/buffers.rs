//! Buffers in shared memory as values: their address, and for a part of a
//! buffer the offset that is XORed into all others.

use crate::emit::{Failure, Lowered, unsupported};
use crate::lower::Lower;
use crate::shared::{self, Memory, Part};
use crate::words::{from_words, to_words};
use linear_layout::plan::SharedAccessPlan;
use linear_layout::target::Direction;
use mlir_host::ir::{Type, Value};
use ttopt_dialect::ttg::types::MemDescType;
use ttopt_passes::buffer_plans::{self, BufferLayout};

/// A memory descriptor at run time.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'c> {
    /// The descriptor's type.
    pub ty: MemDescType<'c>,
    /// The first byte of the whole buffer that the descriptor is a part of.
    pub base: Value<'c>,
    /// Where the part begins, in elements; absent where it is the whole.
    pub offset: Option<Value<'c>>,
}

impl<'c> Buffer<'c> {
    /// The memory for accesses that `plan` describes.
    ///
    /// # Errors
    /// When the descriptor has no layout.
    pub fn memory<'p>(&self, plan: &'p SharedAccessPlan) -> Lowered<Memory<'p, 'c>> {
        self.memory_of(&plan.padding)
    }

    /// The memory of a buffer with such padding.
    ///
    /// # Errors
    /// As [`memory`](Self::memory).
    pub fn memory_of<'p>(&self, padding: &'p [(u64, u64)]) -> Lowered<Memory<'p, 'c>> {
        let part = match self.offset {
            Some(offset) => {
                let bits = buffer_plans::part_bits(self.ty).map_err(Failure::Unsupported)?;
                Some(Part { offset, bits })
            }
            None => None,
        };
        Ok(Memory { base: self.base, part, padding })
    }

    /// The values that stand for the descriptor.
    pub fn values(&self) -> Vec<Value<'c>> {
        [Some(self.base), self.offset].into_iter().flatten().collect()
    }
}

impl<'c> Lower<'_, 'c> {
    /// The memory descriptor `value`.
    ///
    /// # Errors
    /// When it is none in shared memory.
    pub fn buffer(&self, value: Value<'c>) -> Lowered<Buffer<'c>> {
        let Some(ty) = MemDescType::cast(value.ty()).filter(|ty| ty.is_in_shared_memory()) else {
            return unsupported(format!("{} is no buffer in shared memory", value.ty()));
        };
        match *self.get(value)? {
            [base] => Ok(Buffer { ty, base, offset: None }),
            [base, offset] => Ok(Buffer { ty, base, offset: Some(offset) }),
            _ => unsupported(format!("{} has no address", value.ty())),
        }
    }

    /// The address of the first element of a buffer.
    ///
    /// # Errors
    /// When it has no layout.
    pub fn buffer_start(&mut self, buffer: &Buffer<'c>) -> Lowered<Value<'c>> {
        let Some(mut offset) = buffer.offset else { return Ok(buffer.base) };
        let layout = BufferLayout::of(buffer.ty).map_err(Failure::Unsupported)?;
        offset = shared::padded(&mut self.emit, offset, &layout.padding)?;
        if layout.elem_bytes > 1 {
            offset = self.emit.shl(offset, layout.elem_bytes.trailing_zeros())?;
        }
        let byte = self.emit.int(8);
        self.emit.gep(buffer.base, offset, byte)
    }

    /// Stores the values of a tensor of type `tensor` to a buffer.
    ///
    /// # Errors
    /// When there is no plan.
    pub fn store_buffer(
        &mut self,
        buffer: &Buffer<'c>,
        tensor: Type<'c>,
        values: &[Value<'c>],
    ) -> Lowered<SharedAccessPlan> {
        let plan = buffer_plans::access(tensor, buffer.ty, Direction::Store, self.target.desc());
        let plan = plan.map_err(Failure::Unsupported)?;
        let words = to_words(self, values, tensor.element(), plan.access.storage_bits)?;
        shared::store(self, &plan.access, buffer.memory(&plan)?, &words, 0)?;
        Ok(plan)
    }

    /// Loads a buffer as a tensor of type `tensor`.
    ///
    /// # Errors
    /// When there is no plan.
    pub fn load_buffer(
        &mut self,
        buffer: &Buffer<'c>,
        tensor: Type<'c>,
    ) -> Lowered<(SharedAccessPlan, Vec<Value<'c>>)> {
        let plan = buffer_plans::access(tensor, buffer.ty, Direction::Load, self.target.desc());
        let plan = plan.map_err(Failure::Unsupported)?;
        let mut words = vec![None; plan.access.copies.len()];
        shared::load(self, &plan.access, buffer.memory(&plan)?, &mut words, 0)?;
        let words = shared::spread(&plan.access, &words)?;
        let values = from_words(self, &words, tensor.element())?;
        Ok((plan, values))
    }
}
