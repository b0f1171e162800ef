//! The section of operations.

use super::cursor::Cursor;
use super::{ELIDED_LOCATIONS, ISOLATED_SECTIONS, PROPERTIES, Result, Tables, USE_LIST_ORDERS, section};
use std::collections::{BTreeMap, BTreeSet};

/// What an operation has, as bits.
mod has {
    pub(super) const ATTRS: u8 = 1;
    pub(super) const RESULTS: u8 = 2;
    pub(super) const OPERANDS: u8 = 4;
    pub(super) const SUCCESSORS: u8 = 8;
    pub(super) const REGIONS: u8 = 16;
    pub(super) const USE_LIST_ORDERS: u8 = 32;
    pub(super) const PROPERTIES: u8 = 64;
}

/// The fewest bytes of an operation: name, what it has, location.
const OP_BYTES: usize = 3;

/// Walks the operations of a file.
pub(super) fn check<'a>(tables: &'a Tables<'a>, part: Cursor<'a>) -> Result<()> {
    let mut body = Body {
        tables,
        frames: Vec::new(),
        scope: Vec::new(),
        outer: Vec::new(),
        uses: Vec::new(),
        orders: BTreeMap::new(),
    };
    // As if in a region of one block, whose operations define nothing that others can name.
    let mut top = Frame { blocks: 1, block: 1, ..Frame::new(part, false, 0, 0) };
    body.block(&mut top)?;
    body.frames.push(top);
    while let Some(frame) = body.frames.pop() {
        body.step(frame)?;
    }
    body.check_orders()
}

/// Regions of an operation on the way through them.
struct Frame<'a> {
    cursor: Cursor<'a>,
    /// Whether they are in a section of their own, with values of their own.
    isolated: bool,
    /// Regions not begun.
    regions: usize,
    /// Blocks of this region, and how many of them were begun.
    blocks: usize,
    block: usize,
    /// Operations of this block not begun.
    ops: usize,
    /// The region's first value in its scope, how many it has, and the next one to be defined.
    first: usize,
    values: usize,
    next: usize,
}

impl<'a> Frame<'a> {
    fn new(cursor: Cursor<'a>, isolated: bool, regions: usize, first: usize) -> Self {
        Self { cursor, isolated, regions, blocks: 0, block: 0, ops: 0, first, values: 0, next: first }
    }
}

/// The order that a file asks for of a value's uses.
struct Order<'a> {
    at: Cursor<'a>,
    /// Whether the indices are pairs of what moves where.
    pairs: bool,
    indices: Vec<u64>,
}

struct Body<'a> {
    tables: &'a Tables<'a>,
    frames: Vec<Frame<'a>>,
    /// The values that operations can name, as places in `uses`.
    scope: Vec<usize>,
    /// The scopes around that of an operation that is isolated from above.
    outer: Vec<Vec<usize>>,
    /// How many operands name each value of the file.
    uses: Vec<u64>,
    /// By value.
    orders: BTreeMap<usize, Order<'a>>,
}

impl<'a> Body<'a> {
    /// One operation, block or region further; the frame goes back unless it is done.
    fn step(&mut self, mut frame: Frame<'a>) -> Result<()> {
        if frame.ops > 0 {
            frame.ops -= 1;
            return self.op(frame);
        }
        if frame.block < frame.blocks {
            frame.block += 1;
            self.block(&mut frame)?;
            self.frames.push(frame);
            return Ok(());
        }
        self.scope.truncate(frame.first);
        if frame.regions > 0 {
            frame.regions -= 1;
            self.region(&mut frame)?;
            self.frames.push(frame);
            return Ok(());
        }
        if frame.isolated {
            self.scope = self.outer.pop().unwrap_or_default();
        }
        match self.frames.last_mut() {
            Some(parent) if !(frame.isolated && self.tables.version >= ISOLATED_SECTIONS) => {
                parent.cursor = frame.cursor;
                Ok(())
            }
            _ => frame.cursor.finish("the last operation"),
        }
    }

    fn region(&mut self, frame: &mut Frame<'a>) -> Result<()> {
        (frame.first, frame.next) = (self.scope.len(), self.scope.len());
        (frame.block, frame.ops, frame.values) = (0, 0, 0);
        frame.blocks = frame.cursor.count("blocks")?;
        if frame.blocks > 0 {
            frame.values = frame.cursor.count("values of a region")?;
            let known = self.uses.len();
            self.uses.resize(known + frame.values, 0);
            self.scope.extend(known..known + frame.values);
        }
        Ok(())
    }

    fn block(&mut self, frame: &mut Frame<'a>) -> Result<()> {
        let (ops, has_args) = frame.cursor.flagged()?;
        frame.ops = frame.cursor.fits(ops, OP_BYTES, "operations")?;
        if !has_args {
            return Ok(());
        }
        let args = frame.cursor.count("arguments of a block")?;
        for _ in 0..args {
            let (ty, located) = match self.tables.version {
                ..ELIDED_LOCATIONS => (frame.cursor.varint()?, true),
                _ => frame.cursor.flagged()?,
            };
            frame.cursor.within(ty, self.tables.types, "type")?;
            if located {
                frame.cursor.index(self.tables.attributes, "attribute")?;
            }
        }
        let values = self.define(frame, args)?;
        if self.tables.version >= USE_LIST_ORDERS && frame.cursor.byte()? != 0 {
            let orders = use_list_orders(&mut frame.cursor, args)?;
            self.ask(values, orders)?;
        }
        Ok(())
    }

    /// The places of the next `count` values of a region.
    fn define(&mut self, frame: &mut Frame<'a>, count: usize) -> Result<Vec<usize>> {
        let (from, to) = (frame.next, frame.next + count);
        frame.next = to;
        match self.scope.get(from..to) {
            Some(values) => Ok(values.to_vec()),
            None => frame.cursor.wrong("a region defines more values than it has"),
        }
    }

    fn op(&mut self, mut frame: Frame<'a>) -> Result<()> {
        let tables = self.tables;
        let cursor = &mut frame.cursor;
        let name = cursor.index(tables.ops.len(), "operation name")?;
        let mask = cursor.byte()?;
        cursor.index(tables.attributes, "attribute")?;
        if mask & has::ATTRS != 0 {
            cursor.index(tables.attributes, "attribute")?;
        }
        if mask & has::PROPERTIES != 0 {
            match tables.ops[name] {
                Some(true) => cursor.index(tables.properties, "properties")?,
                Some(false) => cursor.index(tables.attributes, "attribute")?,
                None => return cursor.wrong(format!("properties before version {PROPERTIES} of the format")),
            };
        }
        let mut results = 0;
        if mask & has::RESULTS != 0 {
            results = cursor.count("results")?;
            for _ in 0..results {
                cursor.index(tables.types, "type")?;
            }
        }
        if mask & has::OPERANDS != 0 {
            for _ in 0..cursor.count("operands")? {
                let value = cursor.index(self.scope.len(), "value")?;
                self.uses[self.scope[value]] += 1;
            }
        }
        if mask & has::SUCCESSORS != 0 {
            for _ in 0..cursor.count("successors")? {
                cursor.index(frame.blocks, "block")?;
            }
        }
        let mut orders = Vec::new();
        if tables.version >= USE_LIST_ORDERS && mask & has::USE_LIST_ORDERS != 0 {
            orders = use_list_orders(cursor, results)?;
        }
        let regions = if mask & has::REGIONS != 0 { Some(cursor.flagged()?) } else { None };
        if frame.values > 0 {
            let values = self.define(&mut frame, results)?;
            self.ask(values, orders)?;
        }
        self.enter(frame, regions)
    }

    /// Goes on with an operation's regions, if it has any.
    fn enter(&mut self, mut frame: Frame<'a>, regions: Option<(u64, bool)>) -> Result<()> {
        let Some((count, isolated)) = regions.filter(|(count, _)| *count > 0) else {
            self.frames.push(frame);
            return Ok(());
        };
        let mut inner = frame.cursor;
        if isolated && self.tables.version >= ISOLATED_SECTIONS {
            let (id, part) = frame.cursor.section()?;
            if id != section::IR {
                return frame.cursor.wrong(format!("section {id} where an operation's regions are"));
            }
            inner = part;
        }
        let regions = inner.fits(count, 1, "regions")?;
        self.frames.push(frame);
        if isolated {
            self.outer.push(std::mem::take(&mut self.scope));
        }
        let first = self.scope.len();
        self.frames.push(Frame::new(inner, isolated, regions, first));
        Ok(())
    }

    /// Keeps the orders asked for of some of `values`.
    fn ask(&mut self, values: Vec<usize>, orders: Vec<(usize, Order<'a>)>) -> Result<()> {
        for (number, order) in orders {
            let at = order.at;
            if self.orders.insert(values[number], order).is_some() {
                return at.wrong("two orders of the uses of one value");
            }
        }
        Ok(())
    }

    /// Each order is a permutation. MLIR ignores those of a single use.
    fn check_orders(&self) -> Result<()> {
        for (value, order) in &self.orders {
            let uses = self.uses[*value];
            if uses > 1 && !is_permutation(uses, order) {
                return order.at.wrong(format!("no order of the {uses} uses of a value"));
            }
        }
        Ok(())
    }
}

fn is_permutation(uses: u64, order: &Order<'_>) -> bool {
    if order.indices.iter().any(|index| *index >= uses) {
        return false;
    }
    if order.pairs {
        let pairs = order.indices.chunks_exact(2);
        let whole = pairs.remainder().is_empty();
        let moves: BTreeMap<u64, u64> = pairs.map(|pair| (pair[0], pair[1])).collect();
        return whole && moves.keys().copied().collect::<BTreeSet<_>>() == moves.into_values().collect();
    }
    let seen: BTreeSet<u64> = order.indices.iter().copied().collect();
    order.indices.len() as u64 == uses && seen.len() as u64 == uses
}

/// Orders of the uses of some of `count` values, with the values' numbers.
fn use_list_orders<'a>(cursor: &mut Cursor<'a>, count: usize) -> Result<Vec<(usize, Order<'a>)>> {
    let several = count > 1;
    let ordered = if several { cursor.count("orders of uses")? } else { 1 };
    let mut orders = Vec::new();
    for _ in 0..ordered {
        let number = if several { cursor.varint()? } else { 0 };
        let number = cursor.within(number, count, "result")?;
        let at = *cursor;
        let (len, pairs) = cursor.flagged()?;
        let len = cursor.fits(len, 1, "uses")?;
        let indices = (0..len).map(|_| cursor.varint()).collect::<Result<_>>()?;
        orders.push((number, Order { at, pairs, indices }));
    }
    Ok(orders)
}
