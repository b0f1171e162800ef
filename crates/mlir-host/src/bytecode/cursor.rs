//! Reading bytes without reading past them.

use super::Malformed;

type Result<T> = std::result::Result<T, Malformed>;

/// What sections are filled up with.
const PADDING: u8 = 0xCB;

/// A part of a file, and where in it the next byte is read. Positions are of the file, for messages and alignment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    /// The file up to the end of the part.
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }
    pub(super) fn is_empty(&self) -> bool {
        self.remaining() == 0
    }
    /// What is left.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    pub(super) fn wrong<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(Malformed { at: self.at, line: None, what: what.into() })
    }
    /// Nothing may be left.
    pub(super) fn finish(&self, what: &str) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            n => self.wrong(format!("{n} bytes follow {what}")),
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        let Some(&byte) = self.bytes.get(self.at) else { return self.wrong("the end comes too early") };
        self.at += 1;
        Ok(byte)
    }
    /// The next `len` bytes, as a part of its own.
    pub(super) fn part(&mut self, len: u64, what: &str) -> Result<Cursor<'a>> {
        let remaining = self.remaining();
        match usize::try_from(len) {
            Ok(len) if len <= remaining => {
                let part = Cursor { bytes: &self.bytes[..self.at + len], at: self.at };
                self.at += len;
                Ok(part)
            }
            _ => self.wrong(format!("{what} takes {len} bytes, and {remaining} are left")),
        }
    }

    /// An integer whose first byte says, by the zeros it ends in, how many bytes follow it.
    pub(super) fn varint(&mut self) -> Result<u64> {
        let first = self.byte()?;
        let more = first.trailing_zeros() as usize;
        let Some(follow) = self.bytes.get(self.at..self.at + more) else {
            return self.wrong("the end comes within a number");
        };
        self.at += more;
        let mut word = [0; 8];
        if first == 0 {
            word.copy_from_slice(follow);
            return Ok(u64::from_le_bytes(word));
        }
        word[0] = first;
        word[1..=more].copy_from_slice(follow);
        Ok(u64::from_le_bytes(word) >> (more + 1))
    }
    /// An integer, and the flag in its lowest bit.
    pub(super) fn flagged(&mut self) -> Result<(u64, bool)> {
        let word = self.varint()?;
        Ok((word >> 1, word & 1 != 0))
    }
    /// An integer whose lowest bit says that the others are inverted.
    pub(super) fn signed(&mut self) -> Result<i64> {
        let (word, inverted) = self.flagged()?;
        Ok(word as i64 ^ -i64::from(inverted))
    }
    /// `count`, if there is room for so many things of at least `each` bytes.
    pub(super) fn fits(&self, count: u64, each: usize, what: &str) -> Result<usize> {
        let room = self.remaining() / each;
        match usize::try_from(count) {
            Ok(count) if count <= room => Ok(count),
            _ => self.wrong(format!("{count} {what} in {} bytes", self.remaining())),
        }
    }
    /// How many things follow, each of at least one byte.
    pub(super) fn count(&mut self, what: &str) -> Result<usize> {
        let count = self.varint()?;
        self.fits(count, 1, what)
    }
    /// `index`, if it is that of one of `len` things.
    pub(super) fn within(&self, index: u64, len: usize, what: &str) -> Result<usize> {
        match usize::try_from(index) {
            Ok(index) if index < len => Ok(index),
            _ => self.wrong(format!("{what} number {index} of {len}")),
        }
    }
    /// The number of one of `len` things.
    pub(super) fn index(&mut self, len: usize, what: &str) -> Result<usize> {
        let index = self.varint()?;
        self.within(index, len, what)
    }

    /// Skips padding up to a multiple of `alignment`.
    pub(super) fn align(&mut self, alignment: u64) -> Result<()> {
        if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
            return self.wrong(format!("an alignment of {alignment}"));
        }
        while !(self.at as u64).is_multiple_of(alignment) {
            if self.byte()? != PADDING {
                return self.wrong("padding is another byte than 0xCB");
            }
        }
        Ok(())
    }
    /// A section: its number, and what is in it.
    pub(super) fn section(&mut self) -> Result<(u8, Cursor<'a>)> {
        let id = self.byte()?;
        let len = self.varint()?;
        if id & 0x80 != 0 {
            let alignment = self.varint()?;
            self.align(alignment)?;
        }
        Ok((id & 0x7f, self.part(len, "a section")?))
    }
}

/// A page: more than anything is aligned to, and less than an allocator could refuse.
const MAX_ALIGNMENT: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_lengths() {
        let cases: [(&[u8], u64); 6] = [
            (&[0x01], 0),
            (&[0xff], 127),
            (&[0x02, 0x02], 128),
            (&[0xfe, 0xff], 16383),
            (&[0x80, 1, 0, 0, 0, 0, 0, 0], 1),
            (&[0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], u64::MAX),
        ];
        for (bytes, value) in cases {
            let mut cursor = Cursor::new(bytes);
            assert_eq!(cursor.varint(), Ok(value), "{bytes:x?}");
            assert!(cursor.is_empty());
            assert!(Cursor::new(&bytes[..bytes.len() - 1]).varint().is_err(), "{bytes:x?}");
        }
    }

    #[test]
    fn signed_numbers() {
        for (byte, value) in [(0x01, 0), (0x03, -1), (0x05, 1), (0x07, -2)] {
            assert_eq!(Cursor::new(&[byte]).signed(), Ok(value));
        }
        let least = [0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(Cursor::new(&least).signed(), Ok(i64::MIN));
    }

    #[test]
    fn padding_and_lengths_of_sections() {
        let section =
            |bytes: &[u8]| Cursor::new(bytes).section().map(|(id, part)| (id, part.rest().to_vec()));
        assert_eq!(section(&[3, 0x05, 7, 8]), Ok((3, vec![7, 8])));
        assert_eq!(section(&[0x83, 0x03, 0x09, 0xCB, 7]), Ok((3, vec![7])));
        assert!(section(&[3, 0x07, 7, 8]).is_err(), "too long");
        assert!(section(&[0x83, 0x03, 0x09, 0x00, 7]).is_err(), "other padding");
        assert!(section(&[0x83, 0x03, 0x07, 0xCB, 7]).is_err(), "an alignment of 3");
    }
}
