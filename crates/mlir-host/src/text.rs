//! Checks MLIR's text before MLIR reads it.
//!
//! MLIR 22's parser asks of how many bits the elements of a dense array are (`array<i32: 1, 2>`), and ends the process where they are of type
//! `index`, which has no number of bits. Fuzzing found nothing else in text that it does not give a diagnostic for.

use std::collections::HashSet;

/// What ends MLIR's parser.
const REFUSED: &str = "elements of a dense array cannot be of type 'index'";

/// Whether a byte can be in the middle of a name.
fn is_inner(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'-')
}

/// Where the next token begins: behind spaces and comments.
fn skip(text: &[u8], mut at: usize) -> usize {
    loop {
        match &text[at.min(text.len())..] {
            [b'/', b'/', rest @ ..] => {
                at += 2 + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            }
            [byte, ..] if byte.is_ascii_whitespace() || *byte == 0 => at += 1,
            _ => return at,
        }
    }
}

/// The token that begins at `at`: a name with what stands before it (`!`, `#`), a string, or one byte.
fn token(text: &[u8], at: usize) -> &[u8] {
    let rest = &text[at..];
    let length = match rest {
        [] => 0,
        [b'"', string @ ..] => {
            let mut escaped = false;
            let ends = |byte: &u8| {
                let ends = !escaped && matches!(byte, b'"' | b'\n');
                escaped = !escaped && *byte == b'\\';
                ends
            };
            1 + string.iter().position(ends).map_or(string.len(), |end| end + 1)
        }
        [first, name @ ..] if is_inner(*first) || matches!(first, b'!' | b'#' | b'%' | b'^' | b'@') => {
            1 + name.iter().position(|byte| !is_inner(*byte)).unwrap_or(name.len())
        }
        _ => 1,
    };
    &rest[..length]
}

/// Whether `array` at `at` may be an array of what is no number of bits, as far as can be said without what comes before it.
fn may_be_refused(text: &[u8], at: usize) -> bool {
    let open = skip(text, at + b"array".len());
    let of = skip(text, open + 1);
    text.get(open) == Some(&b'<')
        && (text[of.min(text.len())..].starts_with(b"index") || text.get(of) == Some(&b'!'))
}

/// Where something in `text` would end MLIR's parser, as a number of bytes, and what it is.
pub(crate) fn check(text: &[u8]) -> Result<(), (usize, &'static str)> {
    let places = text.windows(b"array".len()).enumerate().filter(|(_, word)| *word == b"array");
    // Nearly all inputs are done here.
    if !places.into_iter().any(|(at, _)| may_be_refused(text, at)) {
        return Ok(());
    }
    // The last tokens but one, and names of types that are `index`.
    let (mut before, mut last): (&[u8], &[u8]) = (b"", b"");
    let mut names = HashSet::new();
    let mut at = skip(text, 0);
    while at < text.len() {
        let this = token(text, at);
        if this == b"index" || names.contains(this) {
            match (before, last) {
                (b"array", b"<") => return Err((at, REFUSED)),
                (name, b"=") if name.starts_with(b"!") => _ = names.insert(name),
                _ => {}
            }
        }
        (before, last) = (last, this);
        at = skip(text, at + this.len());
    }
    Ok(())
}

/// The line and the column of a place in text, from 1.
pub(crate) fn position(text: &[u8], at: usize) -> (usize, usize) {
    let before = &text[..at.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Option<(usize, usize)> {
        check(text.as_bytes()).err().map(|(at, _)| position(text.as_bytes(), at))
    }

    #[test]
    fn arrays_of_index_are_refused_where_the_type_stands() {
        assert_eq!(refused("{a = array<index: 1>}"), Some((1, 12)));
        assert_eq!(refused("{\n  a = array // of\n < // what\n index>}"), Some((4, 2)));
        assert_eq!(refused("!t = index\n!u = !t\n{a = array<!u: 1>}"), Some((3, 12)));
    }

    #[test]
    fn what_only_looks_like_one_is_not() {
        for text in [
            "{a = array<i32: 1>}",
            "{a = array<i32: 1>, b = 1 : index}",
            "{a = \"array<index: 1>\"}",
            "{a = \"\\\"array<index: 1>\"}",
            "// array<index: 1>\n{}",
            "!my.array<index>",
            "{b.array = 1} array<indexes",
            "!t = i32\n!u = !t\n{a = array<!u: 1>}",
            "array<",
            "array",
            "array<!",
        ] {
            assert_eq!(refused(text), None, "{text}");
        }
    }
}
