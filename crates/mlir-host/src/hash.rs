//! Tables keyed by handles and small numbers.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A table whose keys nobody chooses maliciously.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;
/// A set of such keys.
pub type FastSet<K> = HashSet<K, BuildHasherDefault<Mix>>;

/// Odd, and its bits look random.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
/// The bits that tell keys apart which have the same place.
const TAG: u64 = !0 << 57;

/// A fast hash for pointers and sizes.
#[derive(Clone, Copy, Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        // Tables take the place from the low bits, and tell keys there apart by the highest.
        self.0 ^ (self.0.wrapping_mul(SPREAD) & TAG)
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }
    fn write_i32(&mut self, word: i32) {
        self.write_u64(word as u64);
    }
    fn write_u64(&mut self, word: u64) {
        // Multiplication spreads the low bits, the rotation brings them back down. What was first is added to, so
        // that neighbours stay neighbours.
        let spread = (word ^ self.0 >> 32).wrapping_mul(SPREAD).rotate_left(26);
        self.0 = self.0.wrapping_add(spread);
    }
    /// Keys that begin with neighbouring numbers have neighbouring places: what goes through the IR in the order in
    /// which it lies in memory then goes through tables in order, too.
    fn write_usize(&mut self, word: usize) {
        match self.0 {
            0 => self.0 = word as u64,
            _ => self.write_u64(word as u64),
        }
    }
    fn write_i64(&mut self, word: i64) {
        self.write_u64(word as u64);
    }
    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }
}
