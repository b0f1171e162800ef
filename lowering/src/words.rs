//! Elements as integers of their width in memory, in which form they are
//! loaded, stored and exchanged.

use crate::emit::Lowered;
use crate::handlers::truth;
use crate::lower::Lower;
use mlir_host::ir::{Type, Value};
use ttopt_dialect::tt::types::is_pointer;

/// An element of type `element` as an integer of `bits` bits.
pub fn to_word<'c>(
    l: &mut Lower<'_, 'c>,
    value: Value<'c>,
    element: Type<'c>,
    bits: u32,
) -> Lowered<Value<'c>> {
    let ty = l.emit.int(bits);
    if is_pointer(element) {
        return l.emit.value("llvm.ptrtoint", &[value], ty, &[]);
    }
    if element.bits().is_some_and(|width| width < bits) {
        // `i1` and other widths below a byte.
        return l.emit.value("llvm.zext", &[value], ty, &[]);
    }
    l.emit.bitcast(value, ty)
}

/// The inverse of [`to_word`].
pub fn from_word<'c>(l: &mut Lower<'_, 'c>, word: Value<'c>, element: Type<'c>) -> Lowered<Value<'c>> {
    let ty = l.register_type(element)?;
    if is_pointer(element) {
        return l.emit.value("llvm.inttoptr", &[word], ty, &[]);
    }
    if element.is_int(1) {
        return truth(l, word);
    }
    if element.bits() < word.ty().int_bits() {
        return l.emit.value("llvm.trunc", &[word], ty, &[]);
    }
    l.emit.bitcast(word, ty)
}

/// A thread's values of a tensor with such elements, as integers of `bits` bits.
pub fn to_words<'c>(
    l: &mut Lower<'_, 'c>,
    values: &[Value<'c>],
    element: Type<'c>,
    bits: u32,
) -> Lowered<Vec<Value<'c>>> {
    values.iter().map(|value| to_word(l, *value, element, bits)).collect()
}

/// The inverse of [`to_words`].
pub fn from_words<'c>(
    l: &mut Lower<'_, 'c>,
    words: &[Value<'c>],
    element: Type<'c>,
) -> Lowered<Vec<Value<'c>>> {
    words.iter().map(|word| from_word(l, *word, element)).collect()
}

/// Joins integers of `bits` bits, lowest first, to words of 32 bits, or of what
/// there is if that is less; integers of 32 and more bits stay.
pub fn join_words<'c>(l: &mut Lower<'_, 'c>, elements: &[Value<'c>], bits: u32) -> Lowered<Vec<Value<'c>>> {
    let each = ((32 / bits.max(1)) as usize).min(elements.len());
    if each < 2 {
        return Ok(elements.to_vec());
    }
    let element = l.emit.int(bits);
    let (vector, word) = (l.emit.vector(each, element)?, l.emit.int(bits * each as u32));
    let mut words = Vec::with_capacity(elements.len() / each);
    for elements in elements.chunks(each) {
        if let Some(whole) = l.emit.joined(elements, word)? {
            words.push(whole);
            continue;
        }
        let mut joined = l.emit.undef(vector)?;
        for (i, element) in elements.iter().enumerate() {
            joined = l.emit.insert_element(joined, *element, i)?;
        }
        words.push(l.emit.bitcast(joined, word)?);
    }
    Ok(words)
}

/// The inverse of [`join_words`]: `count` integers of `bits` bits.
pub fn split_words<'c>(
    l: &mut Lower<'_, 'c>,
    words: &[Value<'c>],
    bits: u32,
    count: usize,
) -> Lowered<Vec<Value<'c>>> {
    let each = count / words.len().max(1);
    if each < 2 {
        return Ok(words.to_vec());
    }
    let element = l.emit.int(bits);
    let vector = l.emit.vector(each, element)?;
    let mut elements = Vec::with_capacity(count);
    for word in words {
        let split = l.emit.bitcast(*word, vector)?;
        for i in 0..each {
            elements.push(l.emit.extract_element(split, i, element)?);
        }
    }
    Ok(elements)
}
