//! A cell that is filled once, usable in statics that are made by struct update.
//!
//! `std::sync::OnceLock` has a destructor, which a constant expression may not
//! drop; this one leaks its value instead.

use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

static FILLING: Mutex<()> = Mutex::new(());

/// An empty or filled cell.
pub struct Once<T: 'static>(AtomicPtr<T>);

impl<T: Sync> Once<T> {
    /// An empty cell.
    pub const fn new() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }
    /// The value, once it was made.
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: the pointer is null or leaked by `get_or_init`.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }
    /// The value, made on the first call. `make` must not fill another cell.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &'static T {
        if let Some(value) = self.get() {
            return value;
        }
        let _filling = FILLING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(value) = self.get() {
            return value;
        }
        let value: &'static T = Box::leak(Box::new(make()));
        self.0.store((value as *const T).cast_mut(), Ordering::Release);
        value
    }
}

impl<T: Sync> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}
