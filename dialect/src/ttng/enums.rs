//! Enums.

pub use crate::encoding::tensor_memory::BlockRepOrder;
use mlir_host::enum_attr;

enum_attr! {
    /// When a line of an NVIDIA cache goes.
    pub enum CacheEvictionPriority {
        /// Not said.
        None = 0 => "none",
        /// As usual.
        Normal = 1 => "evict_normal",
        /// As before this access.
        Unchanged = 2 => "evict_unchanged",
        /// Early.
        First = 3 => "evict_first",
        /// Late.
        Last = 4 => "evict_last",
        /// The line is not kept at all.
        NoAllocate = 5 => "no_allocate",
    }
}

enum_attr! {
    /// The accesses to tensor memory that a wait is for.
    pub enum TmemWaitKind {
        /// Loads.
        Load = 0 => "load",
        /// Stores.
        Store = 1 => "store",
    }
}

enum_attr! {
    /// What packed arithmetic computes.
    pub enum PackedArithOpKind {
        /// Sum.
        Add = 0 => "add",
        /// Difference.
        Sub = 1 => "sub",
        /// Product.
        Mul = 2 => "mul",
        /// Product plus a third operand, rounded once.
        Fma = 3 => "fma",
        /// Minimum.
        Min = 4 => "min",
        /// Maximum.
        Max = 5 => "max",
    }
}

enum_attr! {
    /// The reduction that a load from tensor memory does along the rows.
    pub enum LoadReduction {
        /// Minimum.
        Min = 1 => "min",
        /// Maximum.
        Max = 2 => "max",
    }
}
