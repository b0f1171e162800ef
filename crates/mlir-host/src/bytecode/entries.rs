//! The sections of attributes and types.
//!
//! Those of the dialect `builtin` are encoded in fields, as `mlir/IR/BuiltinDialectBytecode.td` lists them.

use super::cursor::Cursor;
use super::{Result, Tables};
use std::collections::BTreeSet;

/// Where attributes and types are, and how they are written.
pub(super) struct Entries<'a> {
    pub(super) attributes: Vec<Entry<'a>>,
    pub(super) types: Vec<Entry<'a>>,
}

pub(super) struct Entry<'a> {
    part: Cursor<'a>,
    /// Of the dialect `builtin`.
    builtin: bool,
    /// Not text.
    custom: bool,
}

impl<'a> Entries<'a> {
    pub(super) fn read(tables: &Tables<'_>, mut data: Cursor<'a>, mut offsets: Cursor<'_>) -> Result<Self> {
        let attributes = offsets.count("attributes")?;
        let types = offsets.count("types")?;
        let mut read = |count| Self::read_some(tables, &mut data, &mut offsets, count);
        let entries = Self { attributes: read(attributes)?, types: read(types)? };
        offsets.finish("the offsets of attributes and types")?;
        Ok(entries)
    }

    /// `count` entries, grouped by dialect.
    fn read_some(
        tables: &Tables<'_>,
        data: &mut Cursor<'a>,
        offsets: &mut Cursor<'_>,
        count: usize,
    ) -> Result<Vec<Entry<'a>>> {
        let mut entries = Vec::new();
        while entries.len() < count {
            let dialect = offsets.index(tables.dialects.len(), "dialect")?;
            let group = offsets.varint()?;
            if group > (count - entries.len()) as u64 {
                return offsets
                    .wrong(format!("a group of {group} attributes or types, where fewer are left"));
            }
            for _ in 0..group {
                let (len, custom) = offsets.flagged()?;
                let part = data.part(len, "an attribute or type")?;
                entries.push(Entry { part, builtin: tables.dialects[dialect] == b"builtin", custom });
            }
        }
        Ok(entries)
    }

    /// Checks what is in them.
    pub(super) fn check(&self, tables: &Tables<'_>) -> Result<()> {
        let mut refs = Vec::with_capacity(self.attributes.len() + self.types.len());
        let mut types = Vec::with_capacity(self.types.len());
        for entry in &self.types {
            let mut fields = Fields::new(tables, entry);
            types.push(match (entry.custom, entry.builtin) {
                (true, true) => fields.builtin_type()?,
                (true, false) => Type::Other,
                (false, builtin) => text_type(fields.text()?, builtin),
            });
            refs.push(fields.finish(entry)?);
        }
        for (entry, ty) in self.types.iter().zip(&types) {
            check_elements(entry, ty, &types)?;
        }
        let names = Names::read(tables, &self.attributes)?;
        for entry in &self.attributes {
            let mut fields = Fields::new(tables, entry);
            match (entry.custom, entry.builtin) {
                (true, true) => fields.builtin_attribute(&types, &names)?,
                (true, false) => {}
                (false, _) => drop(fields.text()?),
            }
            refs.push(fields.finish(entry)?);
        }
        self.check_order(&refs)
    }

    /// Nothing contains itself. Types are numbered before attributes here.
    fn check_order(&self, refs: &[Vec<usize>]) -> Result<()> {
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            No,
            Within,
            Done,
        }
        let mut seen = vec![Seen::No; refs.len()];
        let part = |entry: usize| match entry.checked_sub(self.types.len()) {
            None => self.types[entry].part,
            Some(attribute) => self.attributes[attribute].part,
        };
        for root in 0..refs.len() {
            // What is being walked, each with its references that are left.
            let mut path = Vec::new();
            if seen[root] == Seen::No {
                seen[root] = Seen::Within;
                path.push((root, refs[root].iter()));
            }
            while let Some((entry, left)) = path.last_mut() {
                match left.next() {
                    None => {
                        seen[*entry] = Seen::Done;
                        path.pop();
                    }
                    Some(&next) if seen[next] == Seen::Within => {
                        return part(next).wrong("an attribute or type contains itself");
                    }
                    Some(&next) if seen[next] == Seen::No => {
                        seen[next] = Seen::Within;
                        path.push((next, refs[next].iter()));
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }
}

/// What others need to know of a type.
enum Type {
    Integer(u64),
    Index,
    /// Of so many bits.
    Float(u64),
    Complex(usize),
    /// A tensor or vector, with the number of its elements where it is known.
    Shaped {
        element: usize,
        elements: Option<u64>,
        vector: bool,
    },
    Unranked(usize),
    /// Of another dialect, or text that may be.
    Other,
    /// Builtin, and in no tensor.
    NoElement,
}

/// What a type is whose entry is text: those of `builtin` are what has no other encoding, small floats above all.
fn text_type(text: &[u8], builtin: bool) -> Type {
    let bits = match text {
        [b'f', bits @ b'0'..=b'9', b'E', ..] => u64::from(bits - b'0'),
        b"tf32" => 19,
        _ if builtin => return Type::NoElement,
        _ => return Type::Other,
    };
    Type::Float(bits)
}

/// Tensors and vectors have elements that they can have.
fn check_elements(entry: &Entry<'_>, ty: &Type, types: &[Type]) -> Result<()> {
    let (element, fits) = match ty {
        Type::Complex(element) => (*element, matches!(types[*element], Type::Integer(_) | Type::Float(_))),
        Type::Shaped { element, vector, .. } => (
            *element,
            match types[*element] {
                Type::NoElement | Type::Unranked(_) => false,
                Type::Shaped { vector: inner, .. } => inner && !vector,
                Type::Complex(_) => !vector,
                _ => true,
            },
        ),
        Type::Unranked(element) => {
            (*element, !matches!(types[*element], Type::NoElement | Type::Unranked(_)))
        }
        _ => return Ok(()),
    };
    if fits { Ok(()) } else { entry.part.wrong(format!("type {element} can be no element")) }
}

/// Which attributes are strings that can be names, and which string each is.
struct Names(Vec<Option<usize>>);

impl Names {
    fn read(tables: &Tables<'_>, attributes: &[Entry<'_>]) -> Result<Self> {
        let names = attributes.iter().map(|entry| {
            let mut part = entry.part;
            if !(entry.custom && entry.builtin && part.varint()? == STRING) {
                return Ok(None);
            }
            let string = part.index(tables.strings.len(), "string")?;
            Ok((!tables.strings[string].is_empty()).then_some(string))
        });
        Ok(Self(names.collect::<Result<_>>()?))
    }
}

/// The number of `StringAttr`.
const STRING: u64 = 2;
/// `ShapedType::kDynamic`.
const DYNAMIC: i64 = i64::MIN;
/// `IntegerType::kMaxWidth`.
const MAX_WIDTH: u64 = (1 << 24) - 1;

/// The fields of an entry, and what it refers to.
struct Fields<'a, 't> {
    tables: &'t Tables<'t>,
    cursor: Cursor<'a>,
    refs: Vec<usize>,
}

impl<'a, 't> Fields<'a, 't> {
    fn new(tables: &'t Tables<'t>, entry: &Entry<'a>) -> Self {
        Self { tables, cursor: entry.part, refs: Vec::new() }
    }
    /// What it refers to, when nothing is left.
    fn finish(self, entry: &Entry<'_>) -> Result<Vec<usize>> {
        if entry.builtin || !entry.custom {
            self.cursor.finish("an attribute or type")?;
        }
        Ok(self.refs)
    }

    fn text(&mut self) -> Result<&'a [u8]> {
        let text = self.cursor.rest();
        self.cursor.part(text.len() as u64, "text")?;
        match text.split_last() {
            Some((0, text)) if !text.contains(&0) => match crate::text::check(text) {
                Ok(()) => Ok(text),
                Err((_, why)) => self.cursor.wrong(why),
            },
            _ => self.cursor.wrong("text has no end"),
        }
    }
    fn attr(&mut self) -> Result<usize> {
        let attr = self.cursor.index(self.tables.attributes, "attribute")?;
        self.refs.push(self.tables.types + attr);
        Ok(attr)
    }
    fn ty(&mut self) -> Result<usize> {
        let ty = self.cursor.index(self.tables.types, "type")?;
        self.refs.push(ty);
        Ok(ty)
    }
    fn string(&mut self) -> Result<usize> {
        self.cursor.index(self.tables.strings.len(), "string")
    }
    fn list(&mut self, mut each: impl FnMut(&mut Self) -> Result<()>) -> Result<usize> {
        let count = self.cursor.count("elements of a list")?;
        for _ in 0..count {
            each(self)?;
        }
        Ok(count)
    }
    fn attrs(&mut self) -> Result<usize> {
        self.list(|fields| fields.attr().map(drop))
    }
    fn types(&mut self) -> Result<usize> {
        self.list(|fields| fields.ty().map(drop))
    }

    /// Sizes of dimensions, with their product where all are known.
    fn shape(&mut self, vector: bool) -> Result<Option<u64>> {
        let mut elements = Some(1u64);
        self.list(|fields| {
            let size = fields.cursor.signed()?;
            elements = match u64::try_from(size) {
                Ok(0) if vector => return fields.cursor.wrong("a vector with a dimension of no elements"),
                Ok(size) => match elements.map(|n| n.checked_mul(size).filter(|n| *n <= i64::MAX as u64)) {
                    Some(None) => return fields.cursor.wrong("a shape of more elements than can be counted"),
                    product => product.flatten(),
                },
                Err(_) if size == DYNAMIC && !vector => None,
                Err(_) => return fields.cursor.wrong(format!("a dimension of {size} elements")),
            };
            Ok(())
        })?;
        Ok(elements)
    }

    fn builtin_type(&mut self) -> Result<Type> {
        let start = self.cursor;
        Ok(match self.cursor.varint()? {
            0 => self.integer_type()?,
            1 => Type::Index,
            2 => {
                self.types()?;
                self.types()?;
                Type::NoElement
            }
            3 | 4 => Type::Float(16),
            5 => Type::Float(32),
            6 => Type::Float(64),
            7 => Type::Float(80),
            8 => Type::Float(128),
            9 => Type::Complex(self.ty()?),
            // Memory, without and with a space.
            kind @ (10 | 11) => {
                if kind == 11 {
                    self.attr()?;
                }
                self.shape(false)?;
                self.ty()?;
                self.attr()?;
                Type::NoElement
            }
            12 => Type::NoElement,
            // Tensors, without and with an encoding.
            kind @ (13 | 14) => {
                if kind == 14 {
                    self.attr()?;
                }
                let elements = self.shape(false)?;
                Type::Shaped { elements, element: self.ty()?, vector: false }
            }
            15 => {
                self.types()?;
                Type::NoElement
            }
            kind @ (16 | 17) => {
                if kind == 17 {
                    self.attr()?;
                }
                self.ty()?;
                Type::NoElement
            }
            18 => Type::Unranked(self.ty()?),
            kind @ (19 | 20) => self.vector_type(kind == 20)?,
            kind => return start.wrong(format!("no builtin type has the number {kind}")),
        })
    }

    fn integer_type(&mut self) -> Result<Type> {
        let word = self.cursor.varint()?;
        let (width, sign) = (word >> 2, word & 3);
        if width > MAX_WIDTH || sign == 3 {
            return self.cursor.wrong(format!("an integer type of {width} bits and signedness {sign}"));
        }
        Ok(Type::Integer(width))
    }

    fn vector_type(&mut self, scalable: bool) -> Result<Type> {
        let flags = if scalable { Some(self.list(|fields| fields.cursor.byte().map(drop))?) } else { None };
        let mut shape = self.cursor;
        let rank = shape.varint()?;
        if flags.is_some_and(|flags| flags as u64 != rank) {
            return shape.wrong("a vector whose scalable dimensions are not its dimensions");
        }
        let elements = self.shape(true)?.filter(|_| !scalable);
        Ok(Type::Shaped { elements, element: self.ty()?, vector: true })
    }

    fn builtin_attribute(&mut self, types: &[Type], names: &Names) -> Result<()> {
        let start = self.cursor;
        match self.cursor.varint()? {
            // Arrays, and locations fused without metadata.
            0 | 12 => drop(self.attrs()?),
            1 => self.dictionary(names)?,
            STRING => drop(self.string()?),
            3 => {
                self.string()?;
                self.ty()?;
            }
            // References to symbols and distinct attributes.
            4 | 21 => drop(self.attr()?),
            5 => {
                self.attr()?;
                self.attrs()?;
            }
            6 => drop(self.ty()?),
            7 | 15 => {}
            8 => self.integer(types)?,
            9 => self.float(types)?,
            // Locations of calls and of names.
            10 | 14 => {
                self.attr()?;
                self.attr()?;
            }
            11 => {
                self.attr()?;
                self.cursor.varint()?;
                self.cursor.varint()?;
            }
            13 => {
                self.attrs()?;
                self.attr()?;
            }
            16 => {
                self.ty()?;
                self.cursor.index(self.tables.resources, "resource")?;
            }
            17 => self.dense_array(types)?,
            18 => self.dense_elements(types)?,
            19 => self.dense_strings(types)?,
            20 => {
                self.ty()?;
                self.attr()?;
                self.attr()?;
            }
            22 => {
                self.attr()?;
                if self.list(|fields| fields.cursor.varint().map(drop))? > 4 {
                    return start.wrong("a range of more than four numbers");
                }
            }
            kind => return start.wrong(format!("no builtin attribute has the number {kind}")),
        }
        Ok(())
    }

    /// Names are strings, and each is there once.
    fn dictionary(&mut self, names: &Names) -> Result<()> {
        let mut seen = BTreeSet::new();
        self.list(|fields| {
            let name = fields.attr()?;
            fields.attr()?;
            match names.0[name] {
                None => fields.cursor.wrong("the name of an attribute is no string, or empty"),
                Some(name) if !seen.insert(name) => fields.cursor.wrong("a dictionary has a name twice"),
                Some(_) => Ok(()),
            }
        })
        .map(drop)
    }

    /// A number of so many bits.
    fn bits(&mut self, width: u64) -> Result<()> {
        let value = match width {
            ..=8 => u64::from(self.cursor.byte()?),
            9..=64 => self.cursor.signed()? as u64,
            _ => {
                let words = self.list(|fields| fields.cursor.signed().map(drop))?;
                return match words as u64 <= width.div_ceil(64) {
                    true => Ok(()),
                    false => self.cursor.wrong(format!("{words} words for {width} bits")),
                };
            }
        };
        match u32::try_from(width).ok().and_then(|width| value.checked_shr(width)) {
            None | Some(0) => Ok(()),
            Some(_) => self.cursor.wrong(format!("{value} does not fit into {width} bits")),
        }
    }
    fn integer(&mut self, types: &[Type]) -> Result<()> {
        match types[self.ty()?] {
            Type::Integer(width) => self.bits(width),
            Type::Index => self.bits(64),
            _ => self.cursor.wrong("an integer of a type that is none"),
        }
    }
    fn float(&mut self, types: &[Type]) -> Result<()> {
        match types[self.ty()?] {
            Type::Float(width) => self.bits(width),
            _ => self.cursor.wrong("a float of a type that is none"),
        }
    }

    fn blob(&mut self) -> Result<u64> {
        let len = self.cursor.varint()?;
        self.cursor.part(len, "a blob")?;
        Ok(len)
    }
    fn dense_array(&mut self, types: &[Type]) -> Result<()> {
        let bytes = match types[self.ty()?] {
            Type::Integer(1) => 1,
            Type::Integer(width @ (8 | 16 | 32 | 64)) | Type::Float(width @ (32 | 64)) => width / 8,
            _ => return self.cursor.wrong("an array of a type that no array has"),
        };
        let count = self.cursor.varint()?;
        let len = self.blob()?;
        if count.checked_mul(bytes) == Some(len) {
            Ok(())
        } else {
            self.cursor.wrong(format!("{count} elements of {bytes} bytes in {len} bytes"))
        }
    }
    /// All elements, or one for all of them.
    fn dense_elements(&mut self, types: &[Type]) -> Result<()> {
        let Type::Shaped { element, elements: Some(elements), .. } = types[self.ty()?] else {
            return self.cursor.wrong("elements of a type that has no fixed number of them");
        };
        let part = match types[element] {
            Type::Complex(part) => Some(part),
            _ => None,
        };
        let width = match types[part.unwrap_or(element)] {
            Type::Integer(width) | Type::Float(width) => width,
            Type::Index => 64,
            _ => return self.cursor.wrong("elements that are no numbers"),
        };
        let each = width.div_ceil(8).saturating_mul(if part.is_some() { 2 } else { 1 });
        // Eight to a byte.
        let packed = width == 1 && part.is_none();
        let len = self.blob()?;
        let all = if packed { elements.div_ceil(8) } else { elements.saturating_mul(each) };
        if len == each || len == all {
            Ok(())
        } else {
            self.cursor.wrong(format!("{elements} elements of {each} bytes in {len} bytes"))
        }
    }
    fn dense_strings(&mut self, types: &[Type]) -> Result<()> {
        let Type::Shaped { elements: Some(elements), .. } = types[self.ty()?] else {
            return self.cursor.wrong("elements of a type that has no fixed number of them");
        };
        let splat = self.cursor.varint()? != 0;
        let count = self.cursor.fits(if splat { 1 } else { elements }, 1, "strings")?;
        for _ in 0..count {
            self.string()?;
        }
        Ok(())
    }
}
