//! Descriptors ("D#") of AMD's tensor data mover (LLVM 22's gfx1250): the fields as MLIR's conversion of
//! `amdgpu.make_dma_descriptor` has them. Dimension 0 is the contiguous one.

/// Dimensions of a tensor.
const RANK: usize = 5;
/// What bits 30 and 31 of the first group's last word must be: an image of a tensor.
const TYPE: u64 = 2;

/// What a descriptor says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Whether anything is moved.
    pub active: bool,
    /// Where the tile begins.
    pub global: u64,
    /// … in shared memory.
    pub shared: u32,
    /// Bytes of an element.
    pub bytes: u64,
    /// Sizes of the tensor from where the tile begins on: elements beyond are outside.
    tensor: [u64; RANK],
    /// Sizes of the tile; one along dimensions that are not there.
    tile: [u64; RANK],
    /// Elements from one index to the next, of all dimensions but the first.
    strides: [u64; RANK - 1],
    /// Bytes after which a load leaves bytes of shared memory out, and how many.
    padding: Option<(u64, u64)>,
}

/// A row of elements of a tile that follow each other in both memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where it lies.
    pub global: u64,
    /// … in shared memory.
    pub shared: u32,
    /// Bytes.
    pub bytes: u32,
    /// Of these, the first so many are inside of the tensor.
    pub inside: u32,
}

/// `n` bits from bit `at` of 32-bit words on.
fn bits(words: &[u32], at: u32, n: u32) -> u64 {
    (0..n).fold(0, |sum, i| {
        let bit = at + i;
        let word = words.get(bit as usize / 32).copied().unwrap_or(0);
        sum | u64::from(word >> (bit % 32) & 1) << i
    })
}

impl Descriptor {
    /// Of groups of four and eight words, and where there are more than two dimensions, of four and four.
    ///
    /// # Errors
    /// What the simulator does not know.
    pub fn new(words: &[u32]) -> Result<Descriptor, String> {
        let (first, rest) = words.split_at_checked(4).ok_or("a descriptor of too few words")?;
        let (second, more) = rest.split_at_checked(8).ok_or("a descriptor of too few words")?;
        let (third, fourth) = more.split_at(more.len().min(4));
        let kind = bits(first, 126, 2);
        if bits(first, 0, 32) > 1 || kind != TYPE {
            return Err(format!("a descriptor whose first word is {:#x}, of type {kind}", first[0]));
        }
        if bits(second, 0, 16) != 0 {
            return Err("a descriptor that sends what is loaded to several programs of a cluster".to_owned());
        }
        if bits(second, 18, 2) != 0 || bits(second, 21, 1) != 0 {
            return Err("a descriptor with a barrier, iterations or an early end".to_owned());
        }
        let tile = [
            bits(second, 112, 16),
            bits(second, 128, 16),
            bits(second, 144, 16),
            bits(third, 112, 16),
            bits(fourth, 80, 16),
        ];
        // Dimensions that are not there have zeros.
        let rank = 1 + (1..RANK).rev().find(|dim| tile[*dim] != 0).unwrap_or(0);
        if tile[..rank].contains(&0) && bits(first, 0, 1) == 1 {
            return Err(format!("a tile of {:?} elements", &tile[..rank]));
        }
        let sizes = [
            bits(second, 48, 32),
            bits(second, 80, 32),
            bits(third, 0, 32),
            bits(third, 32, 32),
            bits(fourth, 48, 32),
        ];
        let there = |dim: usize, value: u64| if dim < rank { value } else { 1 };
        let padding =
            (bits(second, 20, 1) == 1).then(|| (8 << bits(second, 22, 3), 4 * (bits(second, 25, 7) + 1)));
        Ok(Descriptor {
            active: bits(first, 0, 1) == 1,
            global: bits(first, 64, 57),
            shared: bits(first, 32, 32) as u32,
            bytes: 1 << bits(second, 16, 2),
            tensor: std::array::from_fn(|dim| there(dim, sizes[dim])),
            tile: std::array::from_fn(|dim| there(dim, tile[dim])),
            strides: [bits(second, 160, 48), bits(second, 208, 48), bits(third, 64, 48), bits(fourth, 0, 48)],
            padding,
        })
    }

    /// The elements of the tile in the order of shared memory. A load leaves padding out; a store does not.
    pub fn rows(&self, loads: bool) -> Vec<Row> {
        let [width, ..] = self.tile;
        let mut rows = Vec::new();
        for number in 0..self.tile[1..].iter().product::<u64>() {
            let (mut rest, mut global, mut inside) = (number, self.global, self.tensor[0].min(width));
            for dim in 1..RANK {
                let at = rest % self.tile[dim];
                rest /= self.tile[dim];
                let step = at.wrapping_mul(self.strides[dim - 1]).wrapping_mul(self.bytes);
                global = global.wrapping_add(step);
                if at >= self.tensor[dim] {
                    inside = 0;
                }
            }
            let (start, inside) = (number * width * self.bytes, inside * self.bytes);
            let end = start + width * self.bytes;
            let mut at = start;
            while at < end {
                let (piece, moved) = match self.padding.filter(|_| loads) {
                    Some((every, pad)) => ((at / every + 1) * every, at / every * pad),
                    None => (end, 0),
                };
                let piece = piece.min(end);
                rows.push(Row {
                    global: global.wrapping_add(at - start),
                    shared: self.shared.wrapping_add((at + moved) as u32),
                    bytes: (piece - at) as u32,
                    inside: inside.saturating_sub(at - start).min(piece - at) as u32,
                });
                at = piece;
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 3 × 40 of 16 bits at byte 0x100000040 and at 0x80, of a tensor of which 2 × 33 are left, whose rows are 50 elements.
    fn matrix(flags: u32) -> [u32; 12] {
        [1, 0x80, 0x40, 0x8000_0001, 1 << 16 | flags, 33 << 16, 2 << 16, 40 << 16, 3, 50, 0, 0]
    }

    #[test]
    fn rows_end_with_the_tensor() {
        let rows = Descriptor::new(&matrix(0)).unwrap().rows(true);
        let row = |n: u64, inside| Row {
            global: 0x1_0000_0040 + 100 * n,
            shared: 0x80 + 80 * n as u32,
            bytes: 80,
            inside,
        };
        assert_eq!(rows, [row(0, 66), row(1, 66), row(2, 0)]);
    }

    #[test]
    fn loads_leave_padding_out() {
        // Three words after every 16.
        let made = Descriptor::new(&matrix(1 << 20 | 3 << 22 | 2 << 25)).unwrap();
        let rows = made.rows(true);
        let places: Vec<(u32, u32, u32)> =
            rows.iter().map(|row| (row.shared, row.bytes, row.inside)).collect();
        let expected = [
            (0x80, 64, 64),
            (0x80 + 76, 16, 2),
            (0x80 + 92, 48, 48),
            (0x80 + 152, 32, 18),
            (0x80 + 184, 32, 0),
            (0x80 + 228, 48, 0),
        ];
        assert_eq!(places, expected);
        assert_eq!(made.rows(false).len(), 3);
    }

    #[test]
    fn five_dimensions() {
        let mut words = vec![1, 0, 0x1000, 0x8000_0000, 2 << 16];
        words.extend([4 << 16, 9 << 16, 4 << 16, 2 | 2 << 16, 10, 200 << 16, 0]);
        words.extend([9, 1, 3000, 2 << 16, 40000, 9 << 16, 2 << 16, 0]);
        let rows = Descriptor::new(&words).unwrap().rows(true);
        assert_eq!(rows.len(), 16);
        assert_eq!((rows[15].shared, rows[15].inside), (15 * 16, 0));
        assert_eq!(rows[11].global, 0x1000 + 4 * (10 + 200 + 40000));
        assert_eq!((rows[11].inside, rows[7].inside), (16, 0));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for (word, bit, part) in
            [(0, 1, "first word"), (3, 30, "type 3"), (4, 0, "cluster"), (4, 18, "barrier")]
        {
            let mut words = matrix(0);
            words[word] |= 1 << bit;
            let why = Descriptor::new(&words).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
        assert!(Descriptor::new(&[0; 11]).is_err());
    }
}
