//! Bytes that lie in words of 32 bits, and operations on four of them at once.
//!
//! No instruction of a GPU computes with single bytes: LLVM takes each out of the word that was loaded, computes with 16 or 32
//! bits, and where the results are converted or stored together puts them into a word again. Operations that act on each byte of a
//! word as on the whole word, save for what crosses from one byte to the next, take two or three instructions for four bytes. What
//! crosses is masked (H. S. Warren, Hacker's Delight, 2-18 "Multibyte add, subtract, absolute value").

use crate::emit::{Emit, Lowered, internal};
use crate::lower::Args;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Value};

/// Operations on integers of 8 bits that are done with four of them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ByteOp {
    Add,
    Sub,
    And,
    Or,
    Xor,
    Shl,
    /// Shifts zeros in.
    ShiftRight,
    /// Shifts the sign in.
    ShiftRightSigned,
}

impl ByteOp {
    /// The operation of `arith` with this name.
    pub fn of(name: &str) -> Option<Self> {
        Some(match name {
            "arith.addi" => Self::Add,
            "arith.subi" => Self::Sub,
            "arith.andi" => Self::And,
            "arith.ori" => Self::Or,
            "arith.xori" => Self::Xor,
            "arith.shli" => Self::Shl,
            "arith.shrui" => Self::ShiftRight,
            "arith.shrsi" => Self::ShiftRightSigned,
            _ => return None,
        })
    }

    fn is_shift(self) -> bool {
        matches!(self, Self::Shl | Self::ShiftRight | Self::ShiftRightSigned)
    }
}

/// A byte in all four places of a word.
fn in_each(byte: u32) -> i64 {
    i64::from((byte & 0xff).wrapping_mul(0x0101_0101).cast_signed())
}

/// The integer of a constant.
fn constant(value: Value<'_>) -> Option<i64> {
    value.def_op().filter(|op| op.name() == "llvm.mlir.constant")?.attr("value").and_then(Attr::as_int)
}

/// Places of four bytes each of `values`, all different, that were taken out of one word or out of two halves of words, in their order.
pub fn in_words<'c>(e: &Emit<'c>, values: &[Value<'c>]) -> Vec<[usize; 4]> {
    // Halves of words of which both bytes are there, in the order of their first bytes.
    let mut at: FastMap<(Value<'c>, u32), usize> = FastMap::default();
    let mut halves: Vec<[Option<usize>; 2]> = Vec::new();
    let mut keys: Vec<(Value<'c>, u32)> = Vec::new();
    let mut fours = Vec::new();
    for (i, value) in values.iter().enumerate() {
        let Some((whole, first)) = e.byte_of(*value) else { continue };
        let key = (whole, first / 16);
        let half = *at.entry(key).or_insert_with(|| {
            halves.push([None; 2]);
            keys.push(key);
            halves.len() - 1
        });
        halves[half][(first / 8 % 2) as usize].get_or_insert(i);
    }
    let both = |half: usize| match halves[half] {
        [Some(low), Some(high)] => Some([low, high]),
        _ => None,
    };
    let mut waiting: Option<[usize; 2]> = None;
    let mut done = vec![false; halves.len()];
    for (half, (whole, place)) in keys.iter().enumerate() {
        if done[half] {
            continue;
        }
        let Some(mine) = both(half) else { continue };
        // The other half of the same word, wherever it is first used.
        let other = at.get(&(*whole, place ^ 1)).copied().filter(|other| *other > half);
        if let Some((other, theirs)) = other.and_then(|other| both(other).map(|theirs| (other, theirs))) {
            done[other] = true;
            let ([a, b], [c, d]) = if place % 2 == 0 { (mine, theirs) } else { (theirs, mine) };
            fours.push([a, b, c, d]);
            continue;
        }
        match waiting.take() {
            Some([a, b]) => fours.push([a, b, mine[0], mine[1]]),
            None => waiting = Some(mine),
        }
    }
    fours
}

/// Four bytes as a word, the first the lowest: constants, or bytes of one word or of two halves; `None` where they are neither.
///
/// # Errors
/// When an operation cannot be made.
pub fn word<'c>(e: &mut Emit<'c>, bytes: &[Value<'c>; 4]) -> Lowered<Option<Value<'c>>> {
    let constants: Option<Vec<i64>> = bytes.iter().map(|byte| constant(*byte)).collect();
    if let Some(constants) = constants {
        let bits = constants.iter().rev().fold(0u32, |word, byte| word << 8 | (*byte as u32 & 0xff));
        return Ok(Some(e.const_i32(bits.cast_signed().into())?));
    }
    let mut places = [None; 4];
    for (place, byte) in places.iter_mut().zip(bytes) {
        *place = e.byte_of(*byte);
    }
    let [Some(a), Some(b), Some(c), Some(d)] = places else { return Ok(None) };
    let is_half = |(low, at): (Value<'c>, u32), high| at % 16 == 0 && (low, at + 8) == high;
    if !is_half(a, b) || !is_half(c, d) {
        return Ok(None);
    }
    if a.1 % 32 == 0 && (a.0, a.1 + 16) == c {
        return e.part(a.0, a.1, 32);
    }
    let (Some(low), Some(high)) = (e.part(a.0, a.1, 16)?, e.part(c.0, c.1, 16)?) else { return Ok(None) };
    let (i16t, i32t) = (e.i16(), e.i32());
    let pair = e.vector(2, i16t)?;
    let halves = e.undef(pair)?;
    let halves = e.insert_element(halves, low, 0)?;
    let halves = e.insert_element(halves, high, 1)?;
    Ok(Some(e.bitcast(halves, i32t)?))
}

/// The bytes of a word, the lowest first.
///
/// # Errors
/// When an operation cannot be made.
pub fn taken_apart<'c>(e: &mut Emit<'c>, word: Value<'c>) -> Lowered<[Value<'c>; 4]> {
    let i8t = e.i8();
    let vector = e.vector(4, i8t)?;
    let split = e.bitcast(word, vector)?;
    let mut bytes = [split; 4];
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = e.extract_element(split, i, i8t)?;
    }
    Ok(bytes)
}

/// `operation` of pairs of bytes: four pairs at once where they lie in words, the others one by one.
///
/// # Errors
/// When an operation cannot be made.
pub fn combine<'c>(
    e: &mut Emit<'c>,
    operation: ByteOp,
    pairs: &[Args<'c>],
    mut one: impl FnMut(&mut Emit<'c>, &[Value<'c>]) -> Lowered<Value<'c>>,
) -> Lowered<Vec<Value<'c>>> {
    let mut out: Vec<Option<Value<'c>>> = vec![None; pairs.len()];
    // A pair is where its first byte is that is no constant.
    let leading: Vec<Value<'c>> = pairs
        .iter()
        .map(|pair| pair[usize::from(!operation.is_shift() && constant(pair[0]).is_some())])
        .collect();
    for four in in_words(e, &leading) {
        let of = |side: usize| four.map(|place| pairs[place][side]);
        let done = if operation.is_shift() {
            let amounts = of(1).map(constant);
            match (amounts[0], word(e, &of(0))?) {
                (Some(by @ 0..8), Some(bytes)) if amounts.iter().all(|other| *other == amounts[0]) => {
                    shifted(e, operation, bytes, by as u32)?
                }
                _ => continue,
            }
        } else {
            match (word(e, &of(0))?, word(e, &of(1))?) {
                (Some(a), Some(b)) => combined(e, operation, a, b)?,
                _ => continue,
            }
        };
        for (place, byte) in four.into_iter().zip(taken_apart(e, done)?) {
            out[place] = Some(byte);
        }
    }
    let mut values = Vec::with_capacity(pairs.len());
    for (pair, value) in pairs.iter().zip(out) {
        values.push(match value {
            Some(value) => value,
            None => one(e, pair)?,
        });
    }
    Ok(values)
}

fn combined<'c>(e: &mut Emit<'c>, operation: ByteOp, a: Value<'c>, b: Value<'c>) -> Lowered<Value<'c>> {
    let (rest, top) = (in_each(0x7f), in_each(0x80));
    match operation {
        ByteOp::And => e.and(a, b),
        ByteOp::Or => e.or(a, b),
        ByteOp::Xor => e.xor(a, b),
        // The highest bits are added without a carry: that of the lower seven stops in them.
        ByteOp::Add => {
            let (low_a, low_b) = (e.mask(a, rest)?, e.mask(b, rest)?);
            let sum = e.add(low_a, low_b)?;
            let either = e.xor(a, b)?;
            let highest = e.mask(either, top)?;
            e.xor(sum, highest)
        }
        // The highest bit of `a` is set before, so that nothing is borrowed from above it.
        ByteOp::Sub => {
            let set = e.const_i32(top)?;
            let (full, low_b) = (e.or(a, set)?, e.mask(b, rest)?);
            let difference = e.same("llvm.sub", &[full, low_b])?;
            let either = e.xor(a, b)?;
            let flipped = e.xor(either, set)?;
            let highest = e.mask(flipped, top)?;
            e.xor(difference, highest)
        }
        _ => internal("a shift by a word"),
    }
}

/// Each byte shifted by `by` bits, fewer than eight.
fn shifted<'c>(e: &mut Emit<'c>, operation: ByteOp, bytes: Value<'c>, by: u32) -> Lowered<Value<'c>> {
    if by == 0 {
        return Ok(bytes);
    }
    if operation == ByteOp::Shl {
        let whole = e.shl(bytes, by)?;
        return e.mask(whole, in_each(0xff << by));
    }
    let whole = e.lshr(bytes, by)?;
    let filled = e.mask(whole, in_each(0xff >> by))?;
    if operation == ByteOp::ShiftRight {
        return Ok(filled);
    }
    // (x ^ sign) - sign repeats the sign above it; 128 more, so that nothing is borrowed from the next byte.
    let sign = 0x80 >> by;
    let flip = e.const_i32(in_each(0x80 | sign))?;
    let above = e.xor(filled, flip)?;
    let less = e.const_i32(in_each(sign))?;
    let above = e.same("llvm.sub", &[above, less])?;
    let top = e.const_i32(in_each(0x80))?;
    e.xor(above, top)
}
