//! Checks MLIR bytecode before MLIR reads it.
//!
//! MLIR's reader trusts what it is given: it allocates what a count asks for, writes where an offset points, and
//! follows attributes that contain themselves without end. [`check`] walks a file as the reader would, and refuses
//! what cannot be: sections, counts and lengths that do not fit into the bytes that are left, numbers of things that
//! do not exist, values whose size their type does not have, attributes and types that contain themselves, orders of
//! uses that are no permutation. What passes may still be refused by MLIR or by a dialect, with a diagnostic.
//!
//! The format is described at <https://mlir.llvm.org/docs/BytecodeFormat/>; versions 0 to 6 are known. Attributes and
//! types of the dialect `builtin` are walked, those of others are text, which MLIR's parser checks. Not checked are
//! the properties of operations and the encoding of `quant`'s types, which only their dialects know, and whether
//! builtin attributes are of the kinds that others ask for, which MLIR does check.

mod body;
mod cursor;
mod entries;
#[cfg(test)]
mod tests;

use cursor::Cursor;
use entries::Entries;
use std::fmt;

/// The first thing in a file that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Where, in bytes from the start.
    pub at: usize,
    /// The line and the column, from 1, in what is text.
    pub line: Option<(usize, usize)>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some((line, column)) => write!(f, "line {line}, column {column}: {}", self.what),
            None => write!(f, "malformed bytecode at byte {}: {}", self.at, self.what),
        }
    }
}

impl std::error::Error for Malformed {}

type Result<T> = std::result::Result<T, Malformed>;

/// What bytecode begins with.
pub(crate) const MAGIC: &[u8] = b"ML\xEFR";

/// Whether this is MLIR bytecode (its magic number), not text.
pub fn is_bytecode(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// The newest version of the format that MLIR 22 reads.
const NEWEST: u64 = 6;
/// The versions from which on dialects have versions, isolated regions are sections of their own, orders of uses are
/// kept, arguments of blocks may have no location, and operations have properties.
const DIALECT_VERSIONS: u64 = 1;
const ISOLATED_SECTIONS: u64 = 2;
const USE_LIST_ORDERS: u64 = 3;
const ELIDED_LOCATIONS: u64 = 4;
const PROPERTIES: u64 = 5;

/// Numbers of sections.
mod section {
    pub(super) const STRING: u8 = 0;
    pub(super) const DIALECT: u8 = 1;
    pub(super) const ATTR_TYPE: u8 = 2;
    pub(super) const ATTR_TYPE_OFFSET: u8 = 3;
    pub(super) const IR: u8 = 4;
    pub(super) const RESOURCE: u8 = 5;
    pub(super) const RESOURCE_OFFSET: u8 = 6;
    pub(super) const DIALECT_VERSIONS: u8 = 7;
    pub(super) const PROPERTIES: u8 = 8;
    pub(super) const COUNT: usize = 9;
}

/// What a file says before its operations.
#[derive(Default)]
struct Tables<'a> {
    version: u64,
    strings: Vec<&'a [u8]>,
    /// The names of the dialects.
    dialects: Vec<&'a [u8]>,
    /// For each name of operations, whether it was registered, where the file says so.
    ops: Vec<Option<bool>>,
    /// How many operations' properties there are.
    properties: usize,
    /// How many resources of dialects there are.
    resources: usize,
    attributes: usize,
    types: usize,
}

/// Checks bytecode: what [`is_bytecode`] says yes to.
///
/// # Errors
/// The first thing that cannot be.
pub fn check(bytes: &[u8]) -> Result<()> {
    let mut cursor = Cursor::new(bytes);
    if !is_bytecode(bytes) {
        return cursor.wrong("no magic number");
    }
    cursor.part(MAGIC.len() as u64, "the magic number")?;
    let version = cursor.varint()?;
    if version > NEWEST {
        return cursor.wrong(format!("version {version} of the format is newer than {NEWEST}"));
    }
    let Some(producer) = cursor.rest().iter().position(|byte| *byte == 0) else {
        return cursor.wrong("the producer's name has no end");
    };
    cursor.part(producer as u64 + 1, "the producer's name")?;
    let sections = Sections::read(cursor)?;

    let mut tables = Tables { version, ..Tables::default() };
    tables.strings = strings(sections.get(section::STRING, "strings")?)?;
    if let Some(part) = sections.0[usize::from(section::PROPERTIES)] {
        tables.properties = properties(part)?;
    }
    dialects(&mut tables, sections.get(section::DIALECT, "dialects")?)?;
    resources(&mut tables, &sections)?;
    let offsets = sections.get(section::ATTR_TYPE_OFFSET, "offsets of attributes and types")?;
    let entries = Entries::read(&tables, sections.get(section::ATTR_TYPE, "attributes and types")?, offsets)?;
    (tables.attributes, tables.types) = (entries.attributes.len(), entries.types.len());
    entries.check(&tables)?;
    body::check(&tables, sections.get(section::IR, "operations")?)
}

/// The sections of a file by number, each there once at most.
struct Sections<'a>([Option<Cursor<'a>>; section::COUNT], Cursor<'a>);

impl<'a> Sections<'a> {
    fn read(mut cursor: Cursor<'a>) -> Result<Self> {
        let mut parts = [None; section::COUNT];
        while !cursor.is_empty() {
            let start = cursor;
            let (id, part) = cursor.section()?;
            match parts.get_mut(usize::from(id)) {
                None => return start.wrong(format!("no section has the number {id}")),
                Some(Some(_)) => return start.wrong(format!("section {id} is there twice")),
                Some(place) => *place = Some(part),
            }
        }
        Ok(Self(parts, cursor))
    }
    fn get(&self, id: u8, what: &str) -> Result<Cursor<'a>> {
        match self.0[usize::from(id)] {
            Some(part) => Ok(part),
            None => self.1.wrong(format!("the section of {what} is missing")),
        }
    }
}

/// The strings' lengths, last one first, then the strings.
fn strings(mut part: Cursor<'_>) -> Result<Vec<&[u8]>> {
    let count = part.count("strings")?;
    let lengths = (0..count).map(|_| part.varint()).collect::<Result<Vec<_>>>()?;
    let strings = lengths.into_iter().rev().map(|len| {
        let text = part.part(len, "a string")?;
        match text.rest().split_last() {
            Some((0, text)) => Ok(text),
            _ => text.wrong("a string without its end"),
        }
    });
    let strings = strings.collect::<Result<_>>()?;
    part.finish("the strings")?;
    Ok(strings)
}

/// How many operations' properties are in their section.
fn properties(mut part: Cursor<'_>) -> Result<usize> {
    let count = part.count("properties")?;
    for _ in 0..count {
        let len = part.varint()?;
        part.part(len, "an operation's properties")?;
    }
    part.finish("the properties")?;
    Ok(count)
}

/// Dialects with their versions, and the names of operations.
fn dialects<'a>(tables: &mut Tables<'a>, mut part: Cursor<'a>) -> Result<()> {
    let strings = tables.strings.clone();
    for _ in 0..part.count("dialects")? {
        let (name, versioned) = match tables.version {
            ..DIALECT_VERSIONS => (part.varint()?, false),
            _ => part.flagged()?,
        };
        tables.dialects.push(strings[part.within(name, strings.len(), "string")?]);
        if versioned {
            let (id, _) = part.section()?;
            if id != section::DIALECT_VERSIONS {
                return part.wrong(format!("section {id} where a dialect's version is"));
            }
        }
    }
    if tables.version >= ELIDED_LOCATIONS {
        part.count("names of operations")?;
    }
    while !part.is_empty() {
        part.index(tables.dialects.len(), "dialect")?;
        for _ in 0..part.count("names of operations")? {
            let (name, registered) = match tables.version {
                ..PROPERTIES => (part.varint()?, None),
                _ => part.flagged().map(|(name, flag)| (name, Some(flag)))?,
            };
            part.within(name, strings.len(), "string")?;
            tables.ops.push(registered);
        }
    }
    Ok(())
}

/// Resources: keys, kinds and lengths in one section, what they are in another.
fn resources(tables: &mut Tables<'_>, sections: &Sections<'_>) -> Result<()> {
    let place = |id: u8| sections.0[usize::from(id)];
    let (mut data, mut keys) = match (place(section::RESOURCE), place(section::RESOURCE_OFFSET)) {
        (None, None) => return Ok(()),
        (Some(data), Some(keys)) => (data, keys),
        (Some(part), None) | (None, Some(part)) => {
            return part.wrong("resources or their offsets are missing");
        }
    };
    for _ in 0..keys.count("groups of resources")? {
        keys.index(tables.strings.len(), "string")?;
        resource_group(tables, &mut keys, &mut data)?;
    }
    while !keys.is_empty() {
        keys.index(tables.dialects.len(), "dialect")?;
        tables.resources += resource_group(tables, &mut keys, &mut data)?;
    }
    Ok(())
}

fn resource_group(tables: &Tables<'_>, keys: &mut Cursor<'_>, data: &mut Cursor<'_>) -> Result<usize> {
    let count = keys.count("resources")?;
    for _ in 0..count {
        keys.index(tables.strings.len(), "string")?;
        let len = keys.varint()?;
        let kind = keys.byte()?;
        let mut entry = data.part(len, "a resource")?;
        match kind {
            _ if entry.is_empty() => continue,
            0 => {
                let (alignment, len) = (entry.varint()?, entry.varint()?);
                entry.align(alignment)?;
                entry.part(len, "a blob")?;
            }
            1 => drop(entry.byte()?),
            2 => drop(entry.index(tables.strings.len(), "string")?),
            _ => return keys.wrong(format!("no resource is of the kind {kind}")),
        }
        entry.finish("a resource")?;
    }
    Ok(count)
}
