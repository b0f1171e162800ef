//! Encodings as linear layouts, memoised.

use super::attrs::{encoding, is_distributed};
use linear_layout::{Encoding, LinearLayout};
use mlir_host::hash::FastMap;
use mlir_host::ir::Attr;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::Arc;

/// An attribute by [`Attr::global_id`], which never names two things, and a shape.
type Key = (u64, usize, SmallVec<[i64; 4]>);

/// Entries a thread keeps; the table starts anew beyond.
const CAPACITY: usize = 1 << 14;

thread_local! {
    // MLIR's passes run on several threads: a table for each needs no lock, and
    // what is computed twice is cheap. Entries of contexts that are gone can
    // never be asked for again, because global ids are not reused.
    static TABLE: RefCell<FastMap<Key, Arc<LinearLayout>>> = RefCell::default();
}

/// The linear layout of a tensor of `shape` with this encoding.
///
/// Computed once per attribute and shape. Two attributes that denote the same
/// map give equal layouts: compare those, not attributes.
///
/// # Errors
/// When the attribute is no encoding, or does not fit the shape.
pub fn to_linear_layout(attr: Attr<'_>, shape: &[i64]) -> Result<Arc<LinearLayout>, String> {
    let Some((instance, pointer)) = attr.global_id() else {
        return Err(format!("{attr} is not a layout encoding"));
    };
    let key: Key = (instance, pointer, SmallVec::from_slice(shape));
    if let Some(found) = TABLE.with_borrow(|table| table.get(&key).cloned()) {
        return Ok(found);
    }
    let layout = Arc::new(compute(attr, shape)?);
    TABLE.with_borrow_mut(|table| {
        if table.len() >= CAPACITY {
            table.clear();
        }
        table.insert(key, layout.clone());
    });
    Ok(layout)
}

fn compute(attr: Attr<'_>, shape: &[i64]) -> Result<LinearLayout, String> {
    let sizes: Result<SmallVec<[u64; 4]>, _> = shape.iter().map(|size| u64::try_from(*size)).collect();
    let sizes = sizes.map_err(|_| format!("shape {shape:?} has a dimension that is not static"))?;
    encoding(attr)?.to_linear_layout(&sizes).map_err(|err| err.to_string())
}

/// Whether two encodings place every element of a tensor of `shape` alike.
/// Equal attributes do without looking at the layouts.
pub fn equivalent(a: Attr<'_>, b: Attr<'_>, shape: &[i64]) -> bool {
    a == b
        || (padding(a) == padding(b)
            && matches!((to_linear_layout(a, shape), to_linear_layout(b, shape)), (Ok(a), Ok(b)) if a == b))
}

/// Whether registers laid out as `from` says, taken as `to` says, are the same elements in some order: as many
/// registers, and copies in the same places.
pub fn reorders_in_place(from: &LinearLayout, to: &LinearLayout) -> bool {
    from.repeats_like(to)
}

/// What an encoding of shared memory inserts between elements, which is not part of the layout.
fn padding(attr: Attr<'_>) -> Vec<(u64, u64)> {
    if is_distributed(attr) {
        return Vec::new();
    }
    match encoding(attr) {
        Ok(Encoding::PaddedShared(e)) => e.intervals,
        Ok(Encoding::PartitionedShared(e)) => match *e.partition_layout {
            Encoding::PaddedShared(e) => e.intervals,
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}
