//! The syntax that all attributes share: names, numbers, lists and dictionaries, with byte positions.

use crate::{Error, Result};

/// How deep attributes, lists and dictionaries may nest.
const MAX_DEPTH: u32 = 64;

/// A parsed value and where its text begins.
#[derive(Clone, Debug)]
pub(super) struct Value<'a> {
    pub(super) position: usize,
    pub(super) kind: Kind<'a>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind<'a> {
    Number(u64),
    /// A bare word: `true`, `mnThenK`.
    Word(&'a str),
    List(Vec<Value<'a>>),
    Dict(Vec<Entry<'a>>),
    Attribute(Attribute<'a>),
}

/// `key = value`.
#[derive(Clone, Debug)]
pub(super) struct Entry<'a> {
    pub(super) position: usize,
    pub(super) key: &'a str,
    pub(super) value: Value<'a>,
}

/// `#dialect.mnemonic<pads {…}, key = value, …>`.
#[derive(Clone, Debug)]
pub(super) struct Attribute<'a> {
    pub(super) position: usize,
    /// `ttg.blocked`
    pub(super) name: &'a str,
    /// `interval:+padding` pairs of `padded_shared`.
    pub(super) pads: Vec<(u64, u64)>,
    /// The part in braces.
    pub(super) body: Option<Vec<Entry<'a>>>,
    /// Entries outside braces.
    pub(super) entries: Vec<Entry<'a>>,
}

pub(super) fn error(position: usize, reason: impl Into<String>) -> Error {
    Error::Parse { position, reason: reason.into() }
}

/// Parses one attribute that makes up the whole text.
pub(super) fn parse_attribute(text: &str) -> Result<Attribute<'_>> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    parser.space();
    let attribute = parser.attribute()?;
    parser.space();
    match parser.rest().chars().next() {
        None => Ok(attribute),
        Some(c) => Err(error(parser.at, format!("unexpected `{c}` after the attribute"))),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Skips white space, then `token` if it comes next.
    fn eat(&mut self, token: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { Err(self.unexpected(&format!("`{token}`"))) }
    }

    fn unexpected(&self, wanted: &str) -> Error {
        match self.rest().chars().next() {
            Some(c) => error(self.at, format!("expected {wanted}, found `{c}`")),
            None => error(self.at, format!("expected {wanted}, found the end")),
        }
    }

    fn take(&mut self, wanted: &str, accept: impl Fn(char) -> bool) -> Result<&'a str> {
        self.space();
        let rest = self.rest();
        let end = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.unexpected(wanted));
        }
        self.at += end;
        Ok(&rest[..end])
    }

    fn word(&mut self) -> Result<&'a str> {
        self.take("a name", |c| c.is_ascii_alphanumeric() || c == '_')
    }

    fn number(&mut self) -> Result<u64> {
        let digits = self.take("a number", |c| c.is_ascii_digit())?;
        let position = self.at - digits.len();
        digits.parse().map_err(|_| error(position, format!("{digits} is more than 64 bits hold")))
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            return Err(error(self.at, format!("nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn value(&mut self) -> Result<Value<'a>> {
        self.space();
        let position = self.at;
        let kind = match self.rest().chars().next() {
            Some('0'..='9') => Kind::Number(self.number()?),
            Some('[') => Kind::List(self.nested(Self::list)?),
            Some('{') => Kind::Dict(self.nested(Self::dict)?),
            Some('#') => Kind::Attribute(self.nested(Self::attribute)?),
            Some(c) if c.is_ascii_alphabetic() => Kind::Word(self.word()?),
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Value { position, kind })
    }

    fn list(&mut self) -> Result<Vec<Value<'a>>> {
        self.expect("[")?;
        self.separated("]", Self::value)
    }

    fn dict(&mut self) -> Result<Vec<Entry<'a>>> {
        self.expect("{")?;
        self.separated("}", Self::entry)
    }

    /// Items with commas between them up to and including `close`.
    fn separated<T>(&mut self, close: &str, item: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(close) {
                return Ok(items);
            }
            if !self.eat(",") {
                return Err(self.unexpected(&format!("`,` or `{close}`")));
            }
        }
    }

    fn entry(&mut self) -> Result<Entry<'a>> {
        self.space();
        let position = self.at;
        let key = self.word()?;
        self.expect("=")?;
        Ok(Entry { position, key, value: self.value()? })
    }

    fn pad(&mut self) -> Result<(u64, u64)> {
        let interval = self.number()?;
        self.expect(":")?;
        self.expect("+")?;
        Ok((interval, self.number()?))
    }

    fn attribute(&mut self) -> Result<Attribute<'a>> {
        let position = self.at;
        self.expect("#")?;
        let name = self.take("an attribute name", |c| c.is_ascii_alphanumeric() || c == '_' || c == '.')?;
        let mut attribute = Attribute { position, name, pads: Vec::new(), body: None, entries: Vec::new() };
        if !self.eat("<") {
            return Ok(attribute);
        }
        if self.eat("[") {
            attribute.pads = self.separated("]", Self::pad)?;
        }
        self.space();
        if self.rest().starts_with('{') {
            attribute.body = Some(self.nested(Self::dict)?);
            if !self.eat(",") {
                self.expect(">")?;
                return Ok(attribute);
            }
        }
        attribute.entries = self.separated(">", Self::entry)?;
        Ok(attribute)
    }
}
