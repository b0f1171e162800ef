//! Attributes that follow from others, worked out once.

use crate::hash::FastMap;
use crate::ir::Attr;
use mlir_sys::MlirAttribute;
use std::cell::RefCell;
use std::ffi::c_void;
use std::hash::Hash;
use std::ptr::NonNull;

/// Entries that a table keeps; it starts anew beyond.
const CAPACITY: usize = 1 << 14;

/// What follows from hosted attributes, by [`Attr::global_id`] and a key; one for each thread.
///
/// An attribute that follows is of the same context, so it is there whenever the one it follows from can be
/// asked for; entries of contexts that are gone are never found, because global ids are not reused.
pub struct AttrMemo<K> {
    table: RefCell<FastMap<(u64, usize, K), Kept>>,
}

/// An attribute, none, or why there is none.
type Kept = Result<Option<NonNull<c_void>>, String>;

impl<K> Default for AttrMemo<K> {
    fn default() -> Self {
        Self { table: RefCell::default() }
    }
}

impl<K: Eq + Hash> AttrMemo<K> {
    /// What `infer` says about `attr` and `key`, asked once.
    ///
    /// # Errors
    /// Those of `infer`, also kept.
    pub fn get<'c>(
        &self,
        attr: Attr<'c>,
        key: K,
        infer: impl FnOnce() -> Result<Option<Attr<'c>>, String>,
    ) -> Result<Option<Attr<'c>>, String> {
        let Some((instance, pointer)) = attr.global_id() else { return infer() };
        let key = (instance, pointer, key);
        if let Some(found) = self.table.borrow().get(&key) {
            // SAFETY: the attribute was of the context of `attr`, which is alive.
            let attr = |ptr: NonNull<c_void>| unsafe { Attr::from_raw(MlirAttribute { ptr: ptr.as_ptr() }) };
            return found.clone().map(|found| found.and_then(attr));
        }
        let made = infer();
        if !matches!(made, Ok(Some(other)) if other.context() != attr.context()) {
            let mut table = self.table.borrow_mut();
            if table.len() >= CAPACITY {
                table.clear();
            }
            let kept: Kept =
                made.clone().map(|made| made.and_then(|made| NonNull::new(made.raw().ptr.cast_mut())));
            table.insert(key, kept);
        }
        made
    }
}
