//! Three ways to read a layout: its bases, its matrix, and who holds which element.

use std::fmt;

use super::LinearLayout;
use crate::f2::low_mask;

/// How many holders a table cell spells out before it says how many more there are.
const MAX_HOLDERS: usize = 4;
/// Largest layout, in input or output bits, that a table is made of.
const MAX_TABLE_BITS: u32 = 20;

impl fmt::Display for LinearLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.bases_display(), f)
    }
}

impl fmt::Debug for LinearLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.bases_display(), f)
    }
}

impl LinearLayout {
    /// The basis vectors on one line: `{register: [[0, 1]], lane: []} -> [dim0: 1, dim1: 2]`.
    pub fn bases_display(&self) -> BasesDisplay<'_> {
        BasesDisplay(self)
    }

    /// The matrix over F2, columns labelled with input bits and rows with output bits. Zeros are dots.
    pub fn matrix_display(&self) -> MatrixDisplay<'_> {
        MatrixDisplay(self)
    }

    /// For each output point, the inputs that hold it. The last output dimension runs across, the others
    /// down. Says so instead when the layout has more than 2²⁰ points.
    pub fn table_display(&self) -> TableDisplay<'_> {
        TableDisplay(self)
    }

    /// For each packed output point, the packed inputs that map to it, ascending. `None` when there are
    /// more than 2²⁰ inputs or outputs.
    pub fn holders(&self) -> Option<Vec<Vec<u64>>> {
        let (ins, outs) = (self.total_in_bits(), self.total_out_bits());
        if ins > MAX_TABLE_BITS || outs > MAX_TABLE_BITS {
            return None;
        }
        let mut holders = vec![Vec::new(); 1 << outs];
        for input in 0..1u64 << ins {
            holders[self.apply_packed(input) as usize].push(input);
        }
        Some(holders)
    }

    /// A short label for a packed input: the dimensions larger than one, as their initial letter and
    /// coordinate, outermost first: `w1:l9:r1`.
    pub fn input_label(&self, input: u64) -> String {
        let parts: Vec<String> = self
            .unpack_in(input)
            .iter()
            .rev()
            .filter(|(dim, _)| self.in_bits(*dim) > 0)
            .map(|(dim, value)| format!("{}{value}", dim.name().chars().next().unwrap_or('?')))
            .collect();
        if parts.is_empty() { "0".into() } else { parts.join(":") }
    }
}

/// See [`LinearLayout::bases_display`].
pub struct BasesDisplay<'a>(&'a LinearLayout);

impl fmt::Display for BasesDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = self.0;
        f.write_str("{")?;
        for (i, dim) in layout.in_dims().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{dim}: [")?;
            for (j, &column) in layout.columns_of(dim).iter().enumerate() {
                let separator = if j == 0 { "" } else { ", " };
                write!(f, "{separator}{:?}", layout.coords(column))?;
            }
            f.write_str("]")?;
        }
        f.write_str("} -> [")?;
        for (i, (dim, bits)) in layout.out_dim_bits().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{dim}: {}", 1u64 << bits)?;
        }
        f.write_str("]")
    }
}

/// See [`LinearLayout::matrix_display`].
pub struct MatrixDisplay<'a>(&'a LinearLayout);

impl fmt::Display for MatrixDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = self.0;
        // A column label is the bit within its dimension; the name stands above the first of them.
        let rows: Vec<String> = layout
            .out_dim_bits()
            .flat_map(|(dim, bits)| (0..bits).map(move |b| format!("{dim}[{b}]")))
            .collect();
        let margin = rows.iter().map(String::len).max().unwrap_or(0);
        let (mut names, mut bits) = (" ".repeat(margin), " ".repeat(margin));
        let mut groups = Vec::new();
        for (dim, count) in layout.in_dim_bits().filter(|&(_, count)| count > 0) {
            let width = (count as usize * 3).max(dim.name().len());
            names += &format!(" | {:<width$}", dim.name());
            let labels: String = (0..count).map(|b| format!("{b:>2} ")).collect();
            bits += &format!(" | {labels:<width$}");
            groups.push((dim, width));
        }
        writeln!(f, "{}", names.trim_end())?;
        writeln!(f, "{}", bits.trim_end())?;
        for (row, label) in rows.iter().enumerate() {
            let mut line = format!("{label:>margin$}");
            for &(dim, width) in &groups {
                let cell = |c: &u64| if c >> row & 1 == 1 { " 1 " } else { " . " };
                let cells: String = layout.columns_of(dim).iter().map(cell).collect();
                line += &format!(" | {cells:<width$}");
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// See [`LinearLayout::table_display`].
pub struct TableDisplay<'a>(&'a LinearLayout);

impl fmt::Display for TableDisplay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = self.0;
        let Some(holders) = layout.holders() else {
            let (ins, outs) = (layout.total_in_bits(), layout.total_out_bits());
            return writeln!(f, "(2^{ins} inputs, 2^{outs} outputs: too many for a table)");
        };
        let cell = |word: u64| {
            let holders = &holders[word as usize];
            let mut labels: Vec<String> =
                holders.iter().take(MAX_HOLDERS).map(|&h| layout.input_label(h)).collect();
            if holders.len() > MAX_HOLDERS {
                labels.push(format!("+{}", holders.len() - MAX_HOLDERS));
            }
            if labels.is_empty() { "-".to_owned() } else { labels.join(",") }
        };
        let across = layout.outs.last().map_or(0, |d| d.bits);
        let down = layout.total_out_bits() - across;
        let word = |row: u64, column: u64| row | column.checked_shl(down).unwrap_or(0);
        let cells: Vec<Vec<String>> = (0..1u64 << down)
            .map(|row| (0..1u64 << across).map(|column| cell(word(row_major(layout, row), column))).collect())
            .collect();
        let width = cells.iter().flatten().map(String::len).max().unwrap_or(0);
        for row in &cells {
            let line: Vec<String> = row.iter().map(|c| format!("{c:<width$}")).collect();
            writeln!(f, "{}", line.join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// The packed coordinates, all but the last dimension, of the `row`-th line when the last of these runs
/// fastest: the order in which tensors are read, where packed words have the first dimension fastest.
fn row_major(layout: &LinearLayout, mut row: u64) -> u64 {
    let outer = layout.outs.len().saturating_sub(1);
    let mut word = 0;
    let mut shift: u32 = layout.outs[..outer].iter().map(|d| d.bits).sum();
    for d in layout.outs[..outer].iter().rev() {
        shift -= d.bits;
        word |= (row & low_mask(d.bits)).checked_shl(shift).unwrap_or(0);
        row >>= d.bits;
    }
    word
}
