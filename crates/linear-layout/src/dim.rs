//! Names of dimensions, interned so that comparing two of them is comparing two integers.

use std::collections::HashMap;
use std::fmt;
use std::sync::{OnceLock, PoisonError, RwLock};

/// The name of an input or output dimension of a [`LinearLayout`](crate::LinearLayout).
///
/// A `Dim` is a small integer: copying and comparing it neither allocates nor follows a pointer. The
/// names that every layout uses are constants; any other name is interned by [`Dim::new`] and stays
/// for the life of the process.
///
/// ```
/// use linear_layout::Dim;
/// assert_eq!(Dim::new("lane"), Dim::LANE);
/// assert_eq!(Dim::out(1).name(), "dim1");
/// assert_ne!(Dim::new("message"), Dim::LANE);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dim(u32);

const WELL_KNOWN: [&str; 8] = ["register", "lane", "warp", "block", "offset", "partition", "row", "col"];

/// First id of the tensor dimensions `dim0`, `dim1`, ...
const OUT_BASE: u32 = 16;
/// How many tensor dimensions have constant ids.
const OUT_COUNT: u32 = 64;
/// First id handed out by the interner.
const INTERNED_BASE: u32 = OUT_BASE + OUT_COUNT;

impl Dim {
    /// A register of one thread. One register holds one element, whatever its width.
    pub const REGISTER: Dim = Dim(0);
    /// A thread within its warp (wave on AMD).
    pub const LANE: Dim = Dim(1);
    /// A warp (wave on AMD) within its thread block.
    pub const WARP: Dim = Dim(2);
    /// A thread block (CTA) within its cluster (CGA).
    pub const BLOCK: Dim = Dim(3);
    /// A position in shared memory, counted in elements.
    pub const OFFSET: Dim = Dim(4);
    /// One of several separately allocated buffers of shared memory.
    pub const PARTITION: Dim = Dim(5);
    /// A row of tensor memory (PTX ISA, "Tensor Memory Addressing").
    pub const ROW: Dim = Dim(6);
    /// A column of tensor memory, counted in elements.
    pub const COL: Dim = Dim(7);

    /// The name `dim{index}` of a dimension of the logical tensor.
    pub fn out(index: usize) -> Dim {
        match u32::try_from(index) {
            Ok(i) if i < OUT_COUNT => Dim(OUT_BASE + i),
            _ => intern(&format!("dim{index}")),
        }
    }

    /// Interns `name`.
    pub fn new(name: &str) -> Dim {
        if let Some(i) = WELL_KNOWN.iter().position(|&known| known == name) {
            return Dim(i as u32);
        }
        match parse_out(name) {
            Some(i) => Dim(OUT_BASE + i),
            None => intern(name),
        }
    }

    /// The name that was interned.
    pub fn name(self) -> &'static str {
        if let Some(name) = WELL_KNOWN.get(self.0 as usize) {
            return name;
        }
        if (OUT_BASE..INTERNED_BASE).contains(&self.0) {
            return out_names()[(self.0 - OUT_BASE) as usize];
        }
        let table = table().read().unwrap_or_else(PoisonError::into_inner);
        table.names.get((self.0 - INTERNED_BASE) as usize).copied().unwrap_or("")
    }

    /// The `i` of `dim{i}`, when this is the name of a tensor dimension.
    pub fn out_index(self) -> Option<usize> {
        (OUT_BASE..INTERNED_BASE).contains(&self.0).then(|| (self.0 - OUT_BASE) as usize)
    }
}

/// `dim0`, `dim1`, ... `dim{rank-1}`: the output dimensions of a layout of a tensor of that rank.
pub fn standard_out_dims(rank: usize) -> impl Iterator<Item = Dim> + Clone {
    (0..rank).map(Dim::out)
}

impl From<&str> for Dim {
    fn from(name: &str) -> Dim {
        Dim::new(name)
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

fn parse_out(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("dim")?;
    let canonical = digits == "0" || !digits.starts_with('0');
    let i = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<u32>().ok())??;
    (canonical && i < OUT_COUNT).then_some(i)
}

fn out_names() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| (0..OUT_COUNT).map(|i| leak(&format!("dim{i}"))).collect())
}

#[derive(Default)]
struct Table {
    names: Vec<&'static str>,
    ids: HashMap<&'static str, u32>,
}

fn table() -> &'static RwLock<Table> {
    static TABLE: OnceLock<RwLock<Table>> = OnceLock::new();
    TABLE.get_or_init(RwLock::default)
}

fn leak(name: &str) -> &'static str {
    Box::leak(name.to_owned().into_boxed_str())
}

fn intern(name: &str) -> Dim {
    let known = table().read().unwrap_or_else(PoisonError::into_inner).ids.get(name).copied();
    if let Some(id) = known {
        return Dim(id);
    }
    let mut table = table().write().unwrap_or_else(PoisonError::into_inner);
    if let Some(&id) = table.ids.get(name) {
        return Dim(id);
    }
    let name = leak(name);
    let id = INTERNED_BASE + table.names.len() as u32;
    table.names.push(name);
    table.ids.insert(name, id);
    Dim(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_identity() {
        for name in ["register", "dim0", "dim63", "dim64", "dim007", "dim", "", "message"] {
            assert_eq!(Dim::new(name), Dim::new(name));
            assert_eq!(Dim::new(name).name(), name);
        }
        assert_eq!(Dim::new("dim64"), Dim::out(64));
        assert_ne!(Dim::new("dim07"), Dim::out(7));
        assert_eq!(Dim::out(63).out_index(), Some(63));
        assert_eq!(Dim::LANE.out_index(), None);
    }
}
