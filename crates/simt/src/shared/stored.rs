//! What the programs of a cluster stored to device memory, to find loads of it by other threads that nothing orders.
//!
//! Each byte remembers its last store. Only loads are checked: that two threads store to one place, or that one stores what
//! another has loaded, is what scatters and updates in place do, and no more is known of it here.

use super::{Epoch, Who};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

const PAGE_BITS: u32 = 8;
const PAGE: usize = 1 << PAGE_BITS;

/// Spreads numbers of pages, which are few and follow each other.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(self.0 << 8 | u64::from(*b)));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

/// The last stores to device memory.
pub struct Stored {
    pages: HashMap<u64, Box<[Epoch; PAGE]>, BuildHasherDefault<Spread>>,
    /// The lowest and the highest page with a store.
    range: (u64, u64),
    checks: bool,
}

impl Stored {
    /// Nothing yet; without `checks` it stays so.
    pub fn new(checks: bool) -> Self {
        Stored { pages: HashMap::default(), range: (u64::MAX, 0), checks }
    }

    /// Notes a store of `n` bytes.
    pub fn note_write(&mut self, address: u64, n: u64, who: Who<'_>) {
        if !self.checks {
            return;
        }
        let mut at = address;
        while at < address + n {
            let (page, first) = (at >> PAGE_BITS, at as usize % PAGE);
            let len = (PAGE - first).min((address + n - at) as usize);
            let epochs = self.pages.entry(page).or_insert_with(|| Box::new([Epoch::default(); PAGE]));
            epochs[first..first + len].fill(who.now);
            self.range = (self.range.0.min(page), self.range.1.max(page));
            at += len as u64;
        }
    }

    /// The store by another thread that a load of `n` bytes may or may not see.
    pub fn race(&self, address: u64, n: u64, who: Who<'_>) -> Option<Epoch> {
        self.find(address, n, &|e| !who.covers_device(e))
    }

    /// The store of a thread that a load of `n` bytes by the asynchronous proxy may not see: nothing fences it.
    pub fn unfenced(&self, address: u64, n: u64, who: Who<'_>) -> Option<Epoch> {
        self.find(address, n, &|e| !who.sees_device(e))
    }

    fn find(&self, address: u64, n: u64, is_wrong: &dyn Fn(Epoch) -> bool) -> Option<Epoch> {
        if address >> PAGE_BITS > self.range.1 || (address + n) >> PAGE_BITS < self.range.0 {
            return None;
        }
        let mut last = Epoch::default();
        (address..address + n).find_map(|at| {
            let e = self.pages.get(&(at >> PAGE_BITS))?[at as usize % PAGE];
            let found = e != last && !e.is_none() && is_wrong(e);
            last = e;
            found.then_some(e)
        })
    }
}
