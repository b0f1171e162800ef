//! Memory accesses, atomic operations and fields of tensor maps.

use super::{Fmt, Src};
use crate::ir::Order;

/// A predicate of one instruction of inline assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pred {
    /// Zero means false.
    pub src: Src,
    /// Whether the instruction runs where it is false.
    pub negate: bool,
}

/// Where an address points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Any, by the address itself.
    Generic,
    /// Device memory.
    Global,
    /// The program's shared memory.
    Shared,
    /// The lane's own memory.
    Local,
}

/// A memory access by every lane.
#[derive(Clone, Debug)]
pub struct Access {
    /// Address space.
    pub space: Space,
    /// Address register.
    pub addr: Src,
    /// Constant offset in bytes.
    pub offset: i64,
    /// Bytes of an element.
    pub bytes: u8,
    /// Alignment that the instruction demands; a violation is reported.
    pub align: u32,
    /// Predicate.
    pub pred: Option<Pred>,
    /// Elements of a load, as bits, that nobody asks for: they are loaded for the sake of their neighbours.
    pub gaps: u64,
    /// What it means to other threads.
    pub order: Order,
    /// For AMD buffer instructions: number of bytes from `addr` on that may be touched, and the register
    /// with each lane's own offset. Loads outside give zero, stores are dropped.
    pub buffer: Option<(Src, Src)>,
}

/// An atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AtomOp {
    Exch,
    Cas,
    Add,
    Sub,
    And,
    Or,
    Xor,
    SMin,
    SMax,
    UMin,
    UMax,
    FAdd(Fmt),
    FMin(Fmt),
    FMax(Fmt),
    /// Two halves in one word.
    FAdd2(Fmt),
    FMin2(Fmt),
    FMax2(Fmt),
    Inc,
    Dec,
}

/// A field of a tensor map that `tensormap.replace` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MapField {
    GlobalAddress,
    Rank,
    BoxDim(u8),
    GlobalDim(u8),
    GlobalStride(u8),
    ElementStride(u8),
    ElemType,
    Interleave,
    Swizzle,
    Fill,
}

/// What a tensor copy to global memory does with the old contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TmaReduce {
    Store,
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}
