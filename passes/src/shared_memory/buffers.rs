//! What occupies shared memory, and which values refer to it.

use super::slots::{differ, takes_turns};
use super::{ALIGNMENT, callee};
use crate::analysis::flow_graph::FlowGraph;
use crate::buffer_plans::BufferLayout;
use crate::ir_util::constant;
use crate::plans::{TENSOR_MAP_BYTES, scratch_bytes};
use linear_layout::target::TargetDesc;
use mlir_host::flow::becomes;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Op, Value};
use mlir_host::match_op;
use mlir_host::upstream::SelectOp;
use smallvec::SmallVec;
use ttopt_dialect::tt::ops::{CallOp, ReturnOp};
use ttopt_dialect::ttg::ops::AsyncWaitOp;
use ttopt_dialect::ttg::ops::{LocalAllocOp, MemDescIndexOp, is_memdesc_view};
use ttopt_dialect::ttg::types::{ASYNC_TOKEN, MemDescType};
use ttopt_dialect::ttng::ops::{TensormapCreateOp, WarpGroupDotWaitOp};

/// Bytes to which scratch memory is aligned: the widest access.
const SCRATCH_ALIGNMENT: u64 = 16;

/// Shared memory that a callee needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// How much, in bytes.
    pub bytes: u64,
    /// To which its start must be aligned, in bytes.
    pub alignment: u64,
}

/// Something that occupies shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'c> {
    /// What it belongs to: a `ttg.local_alloc`, or an operation that needs memory while it runs.
    pub op: Op<'c>,
    /// Whether it lives only while `op` runs.
    pub is_scratch: bool,
    /// How much, and how aligned.
    pub needs: Needs,
}

/// What an access may touch: a buffer, or one of several that an allocation is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place<'c> {
    /// Its number in [`Buffers::all`].
    pub buffer: usize,
    /// Which of several, as a number that the program computes, or as the buffer itself where loops carry it; all of them
    /// where absent.
    pub index: Option<Value<'c>>,
}

/// The buffers of a function.
pub struct Buffers<'c> {
    /// All of them, in the order of the program.
    pub all: Vec<Buffer<'c>>,
    /// What accesses may touch; first each buffer as a whole, by its number.
    pub places: Vec<Place<'c>>,
    of_op: FastMap<Op<'c>, usize>,
    aliases: FastMap<Value<'c>, SmallVec<[usize; 2]>>,
}

impl<'c> Buffers<'c> {
    /// The buffers of the function of `graph`. `callees` has what functions called need, by symbol.
    ///
    /// # Errors
    /// An operation without a plan, with the reason.
    pub fn new(
        graph: &FlowGraph<'c>,
        callees: &FastMap<String, Needs>,
        target: &TargetDesc,
    ) -> Result<Self, (Op<'c>, String)> {
        let mut found = Self {
            all: Vec::new(),
            places: Vec::new(),
            of_op: FastMap::default(),
            aliases: FastMap::default(),
        };
        for op in graph.ops() {
            let op = *op;
            let (needs, is_scratch) = if let Some(alloc) = LocalAllocOp::cast(op) {
                let ty = MemDescType::cast(alloc.result().ty());
                let ty = ty.ok_or_else(|| (op, "does not allocate a buffer".to_owned()))?;
                let layout = BufferLayout::of(ty).map_err(|err| (op, err))?;
                let asked = alloc.alignment().unwrap_or(1);
                let asked = u64::try_from(asked)
                    .ok()
                    .filter(|asked| asked.is_power_of_two())
                    .ok_or_else(|| (op, format!("the alignment {asked} is no power of two")))?;
                let alignment = layout.alignment.max(asked);
                if alignment > ALIGNMENT {
                    let why = format!(
                        "is to be aligned to {alignment} bytes, shared memory itself is to {ALIGNMENT}"
                    );
                    return Err((op, why));
                }
                (Needs { bytes: layout.bytes(), alignment }, false)
            } else if let Some(symbol) = callee(op) {
                // Functions without a body need none.
                (callees.get(symbol).copied().unwrap_or_default(), true)
            } else {
                let bytes = scratch_bytes(op, target).map_err(|err| (op, err))?;
                let map = TensormapCreateOp::cast(op).is_some();
                (Needs { bytes, alignment: if map { TENSOR_MAP_BYTES } else { SCRATCH_ALIGNMENT } }, true)
            };
            if needs.bytes == 0 {
                continue;
            }
            let number = found.all.len();
            found.all.push(Buffer { op, is_scratch, needs });
            found.places.push(Place { buffer: number, index: None });
            found.of_op.insert(op, number);
        }
        for number in 0..found.all.len() {
            let Buffer { op, is_scratch, .. } = found.all[number];
            if !is_scratch {
                found.add(op.result(0), number)?;
            }
        }
        Ok(found)
    }

    /// The buffer that an operation allocates, or has while it runs.
    pub fn of_op(&self, op: Op<'c>) -> Option<usize> {
        self.of_op.get(&op).copied()
    }

    /// The buffers that a memory descriptor may refer to; for a token, those that are being filled.
    pub fn of_value(&self, value: Value<'c>) -> SmallVec<[usize; 2]> {
        let mut buffers: SmallVec<[usize; 2]> =
            self.places_of(value).iter().map(|place| self.places[*place].buffer).collect();
        buffers.sort_unstable();
        buffers.dedup();
        buffers
    }

    /// The same, as numbers of [`places`](Self::places).
    pub fn places_of(&self, value: Value<'c>) -> &[usize] {
        self.aliases.get(&value).map_or(&[], |places| places)
    }

    /// Whether two places are different buffers of one allocation, as long as
    /// no iteration of a loop ends between accesses to them.
    pub fn are_apart(&self, a: usize, b: usize) -> bool {
        let (a, b) = (self.places[a], self.places[b]);
        let (Some(i), Some(j)) = (a.index, b.index) else { return false };
        a.buffer == b.buffer && self.count(a.buffer).is_some_and(|count| differ(i, j, count))
    }

    /// A place as seen from the next iteration of a loop, in which numbers are others.
    pub fn lasting(&self, place: usize) -> usize {
        match self.places[place] {
            Place { buffer, index: Some(index) } if constant(index).is_none() => buffer,
            _ => place,
        }
    }

    /// Whether a loop carries the buffers of an allocation, in turn, as `value`.
    fn takes_turns(&self, value: Value<'c>, buffer: usize) -> bool {
        self.count(buffer).is_some_and(|count| takes_turns(value, count))
    }

    /// The buffers of which an allocation may be made.
    fn count(&self, buffer: usize) -> Option<i64> {
        let allocated = self.all[buffer].op.results().next().map(Value::ty);
        allocated.and_then(MemDescType::cast).and_then(|ty| ty.shape().first().copied())
    }

    /// The place of the buffer that `index` names.
    fn indexed(&mut self, buffer: usize, index: Value<'c>) -> usize {
        let place = Place { buffer, index: Some(index) };
        self.places.iter().position(|known| *known == place).unwrap_or_else(|| {
            self.places.push(place);
            self.places.len() - 1
        })
    }

    /// Notes that `value`, and what is made of it, may refer to a buffer.
    fn add(&mut self, value: Value<'c>, buffer: usize) -> Result<(), (Op<'c>, String)> {
        let allocated = value.ty();
        let mut open = vec![(value, buffer)];
        while let Some((value, place)) = open.pop() {
            let known = self.aliases.entry(value).or_default();
            if known.contains(&place) {
                continue;
            }
            known.push(place);
            // What control flow passes on was indexed by what the number was then.
            let lasting = self.lasting(place);
            let is_buffer = MemDescType::cast(value.ty()).is_some();
            for (user, operand) in value.uses() {
                for target in becomes(user, operand) {
                    let turns = is_buffer && self.takes_turns(target, buffer);
                    open.push((target, if turns { self.indexed(buffer, target) } else { lasting }));
                }
                match_op!(user, {
                    SelectOp => open.push((user.result(0), place)),
                    // The result is the operand after the wait.
                    WarpGroupDotWaitOp => open.push((user.result(operand), place)),
                    // The numbers of a view of some of them would be others.
                    MemDescIndexOp(view) if place == buffer && value.ty() == allocated => {
                        let place = self.indexed(buffer, view.index());
                        open.push((view.result(), place));
                    },
                    CallOp | ReturnOp if is_buffer => {
                        return Err((user, "passes a buffer between functions, which cannot be".to_owned()));
                    },
                    // What waits is the last that needs what its tokens stand for.
                    AsyncWaitOp => {},
                    _ => {
                        if is_memdesc_view(user) {
                            open.push((user.result(0), place));
                        } else {
                            let tokens = user.results().filter(|result| result.ty().is(&ASYNC_TOKEN));
                            open.extend(tokens.map(|token| (token, place)));
                        }
                    },
                });
            }
        }
        Ok(())
    }
}
