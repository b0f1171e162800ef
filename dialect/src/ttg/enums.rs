//! Enums.

use mlir_host::def::{AttrConstraint, AttrKind, AttrSyntax};
use mlir_host::enum_attr;
use mlir_host::ir::Attr;

enum_attr! {
    /// By what an access to shared memory is made.
    pub enum SharedKind {
        /// Ordinary loads and stores.
        Generic = 0 => "generic",
        /// Copies that run beside the program.
        Async = 1 => "async",
        /// Operations on barriers.
        Barrier = 2 => "barrier",
    }
}

/// Address spaces whose accesses a barrier orders: a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddrSpace(pub u32);

impl AddrSpace {
    /// None: threads wait for each other, and no access is ordered.
    pub const NONE: AddrSpace = AddrSpace(0);
    /// Shared memory.
    pub const LOCAL: AddrSpace = AddrSpace(1);
    /// Reads of global memory.
    pub const GLOBAL_READ: AddrSpace = AddrSpace(2);
    /// Writes of global memory.
    pub const GLOBAL_WRITE: AddrSpace = AddrSpace(4);
    /// Reads of tensor memory.
    pub const TENSOR_READ: AddrSpace = AddrSpace(8);
    /// Writes of tensor memory.
    pub const TENSOR_WRITE: AddrSpace = AddrSpace(16);
    /// All of them.
    pub const ALL: AddrSpace = AddrSpace(31);

    const NAMES: [(&'static str, AddrSpace); 5] = [
        ("local", AddrSpace::LOCAL),
        ("global_read", AddrSpace::GLOBAL_READ),
        ("global_write", AddrSpace::GLOBAL_WRITE),
        ("tensor_read", AddrSpace::TENSOR_READ),
        ("tensor_write", AddrSpace::TENSOR_WRITE),
    ];

    /// Whether every space of `other` is in this set.
    pub fn contains(self, other: AddrSpace) -> bool {
        self.0 & other.0 == other.0
    }
    /// The spaces of both sets.
    pub fn union(self, other: AddrSpace) -> AddrSpace {
        AddrSpace(self.0 | other.0)
    }
    /// The set that one word names.
    pub fn from_keyword(word: &str) -> Option<AddrSpace> {
        match word {
            "none" => Some(AddrSpace::NONE),
            "all" => Some(AddrSpace::ALL),
            _ => Self::NAMES.iter().find(|entry| entry.0 == word).map(|entry| entry.1),
        }
    }
    /// The spelling: words with `|` between them.
    pub fn text(self) -> String {
        match self {
            AddrSpace::NONE => "none".to_owned(),
            AddrSpace::ALL => "all".to_owned(),
            _ => {
                let names = Self::NAMES.iter().filter(|entry| self.contains(entry.1)).map(|entry| entry.0);
                names.collect::<Vec<_>>().join("|")
            }
        }
    }
    /// As an attribute.
    pub fn attr(self, ctx: mlir_host::ir::Context<'_>) -> Attr<'_> {
        Attr::int(ctx, 32, self.0.into())
    }
}

impl AttrKind for AddrSpace {
    type Value<'c> = AddrSpace;
    const CONSTRAINT: AttrConstraint = AttrConstraint {
        summary: "a set of address spaces: a 32-bit integer from 0 to 31",
        matches: |attr| attr.ty().is_some_and(|ty| ty.is_int(32)) && matches!(attr.as_int(), Some(0..=31)),
        syntax: AttrSyntax::Any,
    };
    fn decode(attr: Attr<'_>) -> Option<AddrSpace> {
        attr.as_int().and_then(|value| u32::try_from(value).ok()).map(AddrSpace)
    }
    fn encode(ctx: mlir_host::ir::Context<'_>, value: AddrSpace) -> Option<Attr<'_>> {
        Some(value.attr(ctx))
    }
}
