//! Tables, matrices and bases for terminals and files.

use std::io::{self, Write};
use std::ops::Range;

use crate::{Dim, LinearLayout};

use super::banks::{BankMap, Touch};
use super::pair::Pair;
use super::properties;
use super::request::Subject;
use super::style::Style;

/// How many holders of one element a cell spells out.
const MAX_HOLDERS: usize = 2;
/// How many banks of a bank map lie side by side.
const BANKS_PER_LINE: usize = 32;

/// Who holds which element: the last dimension across, the others down.
pub fn table(out: &mut impl Write, subject: &Subject, style: Style) -> Result<io::Result<()>, String> {
    let grid = Grid::new(&subject.layout)?;
    Ok(heading(out, subject, style).and_then(|()| write_grid(out, &grid, style)))
}

/// The matrix over F2.
pub fn matrix(out: &mut impl Write, subject: &Subject, style: Style) -> io::Result<()> {
    heading(out, subject, style)?;
    write_matrix(out, &subject.layout, style)
}

/// The matrix that leads from the places of the source to those of the destination.
pub fn plan_matrix(out: &mut impl Write, map: &LinearLayout, style: Style) -> io::Result<()> {
    writeln!(
        out,
        "{}\n",
        style.bold("B⁻¹A: from places of the source, across, to places of the destination")
    )?;
    write_matrix(out, map, style)
}

fn write_matrix(out: &mut impl Write, layout: &LinearLayout, style: Style) -> io::Result<()> {
    let text = layout.matrix_display().to_string();
    for (i, line) in text.lines().enumerate() {
        let painted = match i {
            0 | 1 => style.bold(line),
            _ => line.replace(" 1 ", &style.paint(0, " 1 ")).replace(" . ", &style.dim(" . ")),
        };
        writeln!(out, "{painted}")?;
    }
    Ok(())
}

/// The basis vectors, one input dimension a line.
pub fn bases(out: &mut impl Write, subject: &Subject) -> io::Result<()> {
    write_bases(out, &subject.layout)
}

/// The same of any layout.
pub fn write_bases(out: &mut impl Write, layout: &LinearLayout) -> io::Result<()> {
    let width = layout.in_dims().map(|d| d.name().len()).max().unwrap_or(0);
    for dim in layout.in_dims() {
        let bases: Vec<_> = layout.columns_of(dim).iter().map(|&c| layout.coords(c).to_vec()).collect();
        writeln!(out, "{:<width$} = {bases:?}", dim.name())?;
    }
    Ok(())
}

fn heading(out: &mut impl Write, subject: &Subject, style: Style) -> io::Result<()> {
    writeln!(out, "{}", style.bold(&subject.encoding.to_string()))?;
    for (name, value) in properties::of(subject) {
        writeln!(out, "  {}  {value}", style.dim(&format!("{name:<10}")))?;
    }
    writeln!(out)
}

/// The plan step by step and the banks that its first accesses touch.
pub fn plan(out: &mut impl Write, pair: &Pair, style: Style) -> io::Result<()> {
    writeln!(out, "{} {}", style.dim("from"), style.bold(&pair.from.encoding.to_string()))?;
    writeln!(out, "{} {}", style.dim("  to"), style.bold(&pair.to.encoding.to_string()))?;
    let shape: Vec<String> = pair.from.shape.iter().map(u64::to_string).collect();
    writeln!(out, "{} {} of {}\n", style.dim("  of"), shape.join("x"), pair.from.dtype)?;
    for line in pair.steps().lines() {
        writeln!(out, "{}", if line.starts_with(' ') { line.to_owned() } else { style.bold(line) })?;
    }
    for side in pair.sides() {
        let map = BankMap::new(side, &pair.from.target);
        let (name, mnemonic) = (side.name(), pair.mnemonic(side));
        let title = format!("banks of the first {name} ({mnemonic}) of warp 0: {}", map.verdict());
        writeln!(out, "\n{}", style.bold(&title))?;
        bank_map(out, &map, style)?;
    }
    if !pair.sides().is_empty() {
        let legend = "one line per wavefront, the lanes served by each bank; + with others, ! in conflict";
        writeln!(out, "{}", style.dim(legend))?;
    }
    Ok(())
}

/// Banks across, wavefronts down.
fn bank_map(out: &mut impl Write, map: &BankMap, style: Style) -> io::Result<()> {
    let lines: Vec<Range<u64>> =
        (0..map.banks).step_by(BANKS_PER_LINE).map(|b| b..map.banks.min(b + BANKS_PER_LINE as u64)).collect();
    for banks in lines {
        let numbers: String = banks.clone().map(|bank| format!("{bank:>3} ")).collect();
        writeln!(out, "{}", style.dim(&format!("  {:>8} {}", "bank", numbers.trim_end())))?;
        for (number, phase) in map.phases.iter().enumerate() {
            for (i, wavefront) in phase.wavefronts.iter().enumerate() {
                let name = if i == 0 { format!("phase {number}") } else { String::new() };
                let cells: String = banks.clone().map(|bank| touch(wavefront.get(&bank), style)).collect();
                writeln!(out, "  {:>8} {}", name, cells.trim_end())?;
            }
        }
    }
    Ok(())
}

fn touch(touch: Option<&Touch>, style: Style) -> String {
    let Some(touch) = touch else { return format!("  {} ", style.dim(".")) };
    let lane = touch.lanes.first().copied().unwrap_or(0);
    let mark = match touch {
        Touch { conflict: true, .. } => '!',
        Touch { lanes, .. } if lanes.len() > 1 => '+',
        _ => ' ',
    };
    let text = format!("{lane:>3}{mark}");
    if touch.conflict { style.alarm(&text) } else { style.paint(lane, &text) }
}

/// The elements of a tensor in rows, each with the places that hold it.
pub struct Grid {
    pub columns: usize,
    /// Rows of one matrix, the last two dimensions.
    pub rows: usize,
    /// The dimensions before the last two, the last of them fastest.
    outer: Vec<(Dim, u32)>,
    /// Row by row, the last dimension fastest.
    pub cells: Vec<Cell>,
}

/// One element.
pub struct Cell {
    /// The places that hold the element, first the lowest.
    pub label: String,
    /// Register (or offset), lane and warp of the lowest place; zero where there is no such dimension.
    pub register: u64,
    pub lane: u64,
    pub warp: u64,
    /// How many places hold the element.
    pub copies: usize,
}

impl Grid {
    pub fn new(layout: &LinearLayout) -> Result<Grid, String> {
        let too_large = || {
            let (ins, outs) = (layout.total_in_bits(), layout.total_out_bits());
            format!("2^{ins} places and 2^{outs} elements are too many to draw; try --format matrix")
        };
        // With the dimensions reversed, counting packed words runs through the tensor row by row.
        let order: Vec<Dim> = layout.out_dims().rev().collect();
        let layout = layout.transpose_outs(&order).map_err(|error| error.to_string())?;
        let holders = layout.holders().ok_or_else(too_large)?;
        let size = |nth| layout.out_dim_bits().nth(nth).map_or(1, |(_, bits)| 1 << bits);
        let cells = holders.iter().map(|holders| cell(&layout, holders)).collect();
        let outer = layout.out_dim_bits().skip(2).collect();
        Ok(Grid { columns: size(0), rows: size(1), outer, cells })
    }

    /// The coordinates of the `index`-th matrix of a tensor of more than two dimensions.
    fn matrix_label(&self, mut index: usize) -> String {
        let mut parts = Vec::new();
        for &(dim, bits) in &self.outer {
            parts.push(format!("{dim} = {}", index % (1 << bits)));
            index >>= bits;
        }
        parts.reverse();
        parts.join(", ")
    }
}

fn cell(layout: &LinearLayout, holders: &[u64]) -> Cell {
    let mut labels: Vec<String> = holders.iter().take(MAX_HOLDERS).map(|&h| layout.input_label(h)).collect();
    if holders.len() > MAX_HOLDERS {
        labels.push(format!("+{}", holders.len() - MAX_HOLDERS));
    }
    let first = layout.unpack_in(holders.first().copied().unwrap_or(0));
    let of = |dims: [Dim; 2]| first.iter().find(|(d, _)| dims.contains(d)).map_or(0, |&(_, v)| v);
    Cell {
        label: if labels.is_empty() { "-".into() } else { labels.join(",") },
        register: of([Dim::REGISTER, Dim::OFFSET]),
        lane: of([Dim::LANE, Dim::ROW]),
        warp: of([Dim::WARP, Dim::PARTITION]),
        copies: holders.len(),
    }
}

fn write_grid(out: &mut impl Write, grid: &Grid, style: Style) -> io::Result<()> {
    let width = grid.cells.iter().map(|c| c.label.len()).max().unwrap_or(0);
    for (i, row) in grid.cells.chunks(grid.columns).enumerate() {
        if i % grid.rows == 0 && grid.rows * grid.columns < grid.cells.len() {
            let separator = if i == 0 { "" } else { "\n" };
            writeln!(out, "{separator}{}", style.bold(&grid.matrix_label(i / grid.rows)))?;
        }
        let painted: Vec<String> = row
            .iter()
            .map(|cell| style.paint(cell.lane + 5 * cell.warp, &format!("{:<width$}", cell.label)))
            .collect();
        writeln!(out, "{}", painted.join("  ").trim_end())?;
    }
    Ok(())
}
