//! Device memory: buffers in one 64-bit address space.
//!
//! | addresses | what |
//! | --- | --- |
//! | `0x2000_0000_0000` … | the lane's own stack, as a generic address |
//! | `0x3000_0000_0000` … | the program's shared memory, as a generic address |
//! | `0x6000_0000_0000` … | constant data of the module |
//! | `0x7000_0000_0000` + i · 128 GiB | buffer i |
//!
//! Buffers stand so far apart that an index that runs off one cannot reach the next: it is found out of
//! bounds. Programs that run on several threads share the buffers, as on the device; every access of a
//! naturally aligned element is a relaxed atomic access of the host, so racing programs see some value but
//! never tear one.

use std::cell::UnsafeCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Window of generic addresses for a lane's stack.
pub const LOCAL_WINDOW: u64 = 0x2000_0000_0000;
/// Bytes that a lane's stack may take (CUDA C++ Programming Guide, "Compute Capabilities": local memory per thread).
pub const MOST_LOCAL: u64 = 512 << 10;
/// Bytes that a module's variables may take together; GPUs have more, kernels have tables of some kilobytes.
pub const MOST_VARIABLES: u64 = 16 << 20;
/// Window of generic addresses for shared memory.
pub const SHARED_WINDOW: u64 = 0x3000_0000_0000;
/// Size of those windows.
pub const WINDOW: u64 = 1 << 32;
/// Constant data of the module.
pub const CONST_BASE: u64 = 0x6000_0000_0000;
/// The first buffer.
pub const GLOBAL_BASE: u64 = 0x7000_0000_0000;
const STRIDE_BITS: u32 = 37;

struct Cells(Box<[UnsafeCell<u64>]>);

// SAFETY: every access goes through the atomic types below.
unsafe impl Sync for Cells {}

/// A buffer.
pub struct Buffer {
    /// Name for messages.
    pub name: String,
    cells: Cells,
    len: u64,
    read_only: bool,
}

impl Buffer {
    fn new(name: &str, bytes: &[u8], read_only: bool) -> Buffer {
        let cells = bytes
            .chunks(8)
            .map(|c| {
                let mut word = [0; 8];
                word[..c.len()].copy_from_slice(c);
                UnsafeCell::new(u64::from_le_bytes(word))
            })
            .collect();
        Buffer { name: name.to_owned(), cells: Cells(cells), len: bytes.len() as u64, read_only }
    }

    /// Size in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn at(&self, offset: u64) -> *mut u8 {
        debug_assert!(offset < self.len);
        // SAFETY: callers have checked that the offset is inside; the pointer stays in the allocation.
        unsafe { self.cells.0.as_ptr().cast::<u8>().cast_mut().add(offset as usize) }
    }

    /// Reads `n` ≤ 8 bytes, zero-extended. The range must be inside.
    #[inline]
    pub fn read(&self, offset: u64, n: u8) -> u64 {
        let p = self.at(offset);
        // SAFETY: the range is inside the allocation, naturally aligned, and only accessed atomically.
        unsafe {
            match n {
                4 if offset.is_multiple_of(4) => {
                    u64::from(AtomicU32::from_ptr(p.cast()).load(Ordering::Relaxed))
                }
                8 if offset.is_multiple_of(8) => AtomicU64::from_ptr(p.cast()).load(Ordering::Relaxed),
                2 if offset.is_multiple_of(2) => {
                    u64::from(AtomicU16::from_ptr(p.cast()).load(Ordering::Relaxed))
                }
                _ => (0..u64::from(n))
                    .map(|i| {
                        u64::from(AtomicU8::from_ptr(self.at(offset + i)).load(Ordering::Relaxed)) << (8 * i)
                    })
                    .sum(),
            }
        }
    }

    /// Writes the low `n` ≤ 8 bytes. The range must be inside.
    #[inline]
    pub fn write(&self, offset: u64, n: u8, v: u64) {
        let p = self.at(offset);
        // SAFETY: as in `read`.
        unsafe {
            match n {
                4 if offset.is_multiple_of(4) => {
                    AtomicU32::from_ptr(p.cast()).store(v as u32, Ordering::Relaxed)
                }
                8 if offset.is_multiple_of(8) => AtomicU64::from_ptr(p.cast()).store(v, Ordering::Relaxed),
                2 if offset.is_multiple_of(2) => {
                    AtomicU16::from_ptr(p.cast()).store(v as u16, Ordering::Relaxed)
                }
                _ => {
                    for i in 0..u64::from(n) {
                        AtomicU8::from_ptr(self.at(offset + i))
                            .store((v >> (8 * i)) as u8, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    /// Replaces `n` bytes (2, 4 or 8, aligned) by what `f` makes of them; returns the old value.
    pub fn update(&self, offset: u64, n: u8, f: impl Fn(u64) -> u64) -> u64 {
        if !offset.is_multiple_of(u64::from(n)) || !matches!(n, 2 | 4 | 8) {
            // Reported where it was found; no atomicity is owed.
            let old = self.read(offset, n);
            self.write(offset, n, f(old));
            return old;
        }
        let p = self.at(offset);
        // SAFETY: as in `read`.
        unsafe {
            match n {
                2 => {
                    let a = AtomicU16::from_ptr(p.cast());
                    u64::from(
                        a.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |v| Some(f(u64::from(v)) as u16))
                            .unwrap_or(0),
                    )
                }
                4 => {
                    let a = AtomicU32::from_ptr(p.cast());
                    u64::from(
                        a.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |v| Some(f(u64::from(v)) as u32))
                            .unwrap_or(0),
                    )
                }
                _ => {
                    let a = AtomicU64::from_ptr(p.cast());
                    a.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |v| Some(f(v))).unwrap_or(0)
                }
            }
        }
    }

    /// Replaces 16 bytes by what `f` makes of them; returns the old ones. One after the other among all such updates.
    pub fn update_pair(&self, offset: u64, f: impl Fn([u64; 2]) -> [u64; 2]) -> [u64; 2] {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _held = ONE_AT_A_TIME.lock().unwrap_or_else(|e| e.into_inner());
        let old = [self.read(offset, 8), self.read(offset + 8, 8)];
        for (i, word) in f(old).into_iter().enumerate() {
            self.write(offset + 8 * i as u64, 8, word);
        }
        old
    }

    /// A copy of the contents.
    pub fn bytes(&self) -> Vec<u8> {
        (0..self.len).map(|i| self.read(i, 1) as u8).collect()
    }
}

/// Why an address cannot be accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// No buffer there.
    Nowhere,
    /// Outside the buffer of this name and size, by its offset.
    Outside(String, u64, i64),
    /// A write to constant data.
    ReadOnly,
}

/// All buffers of a launch.
#[derive(Default)]
pub struct Global {
    buffers: Vec<Buffer>,
    rodata: Option<Buffer>,
}

impl Global {
    /// Memory with the constant data of a module.
    pub fn new(rodata: &[u8]) -> Global {
        let rodata = (!rodata.is_empty()).then(|| Buffer::new("constant data", rodata, true));
        Global { buffers: Vec::new(), rodata }
    }

    /// Adds a buffer and returns its address.
    pub fn add(&mut self, name: &str, bytes: &[u8]) -> u64 {
        self.buffers.push(Buffer::new(name, bytes, false));
        GLOBAL_BASE + ((self.buffers.len() as u64 - 1) << STRIDE_BITS)
    }

    /// As [`Global::add`], for what kernels only read.
    pub fn add_read_only(&mut self, name: &str, bytes: &[u8]) -> u64 {
        let address = self.add(name, bytes);
        if let Some(b) = self.buffers.last_mut() {
            b.read_only = true;
        }
        address
    }

    /// The buffer at an address that [`Global::add`] returned.
    pub fn buffer(&self, address: u64) -> Option<&Buffer> {
        self.buffers.get((address.wrapping_sub(GLOBAL_BASE) >> STRIDE_BITS) as usize)
    }

    /// The buffer that holds `n` bytes from `address` on, and the offset in it.
    #[inline]
    pub fn locate(&self, address: u64, n: u64) -> Result<(&Buffer, u64), Fault> {
        let (buffer, offset) = match address.checked_sub(GLOBAL_BASE) {
            Some(rel) => match self.buffers.get((rel >> STRIDE_BITS) as usize) {
                Some(b) => (b, rel & ((1 << STRIDE_BITS) - 1)),
                None => return Err(Fault::Nowhere),
            },
            None => match (&self.rodata, address.checked_sub(CONST_BASE)) {
                (Some(b), Some(rel)) => (b, rel),
                _ => return self.before(address),
            },
        };
        if offset + n <= buffer.len {
            return Ok((buffer, offset));
        }
        // The upper half of the stride belongs to the next buffer, as negative offsets.
        if offset >> (STRIDE_BITS - 1) != 0 {
            return self.before(address);
        }
        Err(Fault::Outside(buffer.name.clone(), buffer.len, offset as i64))
    }

    /// Blames the buffer that starts shortly behind the address.
    fn before(&self, address: u64) -> Result<(&Buffer, u64), Fault> {
        let half = 1u64 << (STRIDE_BITS - 1);
        let next = address.wrapping_add(half).wrapping_sub(GLOBAL_BASE);
        match self.buffers.get((next >> STRIDE_BITS) as usize) {
            Some(b) if address >= GLOBAL_BASE - half => {
                let start = GLOBAL_BASE + (next >> STRIDE_BITS << STRIDE_BITS);
                Err(Fault::Outside(b.name.clone(), b.len, address.wrapping_sub(start) as i64))
            }
            _ => Err(Fault::Nowhere),
        }
    }

    /// As [`Global::locate`], for a write.
    #[inline]
    pub fn locate_mut(&self, address: u64, n: u64) -> Result<(&Buffer, u64), Fault> {
        match self.locate(address, n) {
            Ok((b, _)) if b.read_only => Err(Fault::ReadOnly),
            found => found,
        }
    }

    /// A zero-terminated string of constant data or a buffer.
    pub fn string(&self, address: u64) -> Option<String> {
        let (b, start) = self.locate(address, 1).ok()?;
        let bytes: Vec<u8> = (start..b.len).map(|i| b.read(i, 1) as u8).take_while(|c| *c != 0).collect();
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_outside_name_the_buffer() {
        let mut g = Global::new(b"abc\0");
        let x = g.add("x", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        let y = g.add("y", &[0; 4]);
        let (b, o) = g.locate(x + 4, 8).unwrap();
        assert_eq!(b.read(o, 8), 0x0c0b_0a09_0807_0605);
        assert_eq!(g.locate(x + 5, 8).err(), Some(Fault::Outside("x".into(), 12, 5)));
        assert_eq!(g.locate(y - 4, 4).err(), Some(Fault::Outside("y".into(), 4, -4)));
        assert_eq!(g.locate(16, 4).err(), Some(Fault::Nowhere));
        assert_eq!(g.locate_mut(CONST_BASE, 1).err(), Some(Fault::ReadOnly));
        assert_eq!(g.string(CONST_BASE).as_deref(), Some("abc"));
    }

    #[test]
    fn narrow_accesses_leave_neighbours_alone() {
        let mut g = Global::default();
        let x = g.add("x", &[0xff; 8]);
        let (b, o) = g.locate(x + 1, 2).unwrap();
        b.write(o, 2, 0x1234);
        assert_eq!(b.bytes(), [0xff, 0x34, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(b.update(4, 4, |v| v.wrapping_add(1)), 0xffff_ffff);
        assert_eq!(b.bytes()[4..], [0, 0, 0, 0]);
    }
}
