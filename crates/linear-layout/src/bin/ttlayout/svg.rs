//! A picture of who holds which element.

use std::io::{self, Write};

use crate::request::Subject;
use crate::style::svg_fill;
use crate::text::Grid;

/// Largest picture, in elements.
const MAX_CELLS: usize = 1 << 14;
const CELL_HEIGHT: usize = 22;
const CHARACTER: usize = 7;
const MARGIN: usize = 40;

/// One rectangle per element: the hue is the lane, the frame the warp, the label says the rest. Elements
/// with copies have a dashed frame.
pub fn layout(out: &mut impl Write, subject: &Subject) -> Result<io::Result<()>, String> {
    let grid = Grid::new(&subject.layout)?;
    if grid.cells.len() > MAX_CELLS {
        return Err(format!("{} elements are too many to draw; at most {MAX_CELLS}", grid.cells.len()));
    }
    Ok(draw(out, subject, &grid))
}

fn draw(out: &mut impl Write, subject: &Subject, grid: &Grid) -> io::Result<()> {
    let cell_width = CHARACTER * grid.cells.iter().map(|c| c.label.len()).max().unwrap_or(1) + 8;
    let rows = grid.cells.len().div_ceil(grid.columns);
    let (width, height) = (MARGIN + grid.columns * cell_width + 4, MARGIN + rows * CELL_HEIGHT + 4);
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="monospace" font-size="11" text-anchor="middle">"#
    )?;
    writeln!(out, "<title>{} on {:?}</title>", escape(&subject.encoding.to_string()), subject.shape)?;
    writeln!(out, r##"<rect width="{width}" height="{height}" fill="#fff"/>"##)?;
    for column in 0..grid.columns {
        let x = MARGIN + column * cell_width + cell_width / 2;
        writeln!(out, r##"<text x="{x}" y="{}" fill="#666">{column}</text>"##, MARGIN - 8)?;
    }
    for row in 0..rows {
        let y = MARGIN + row * CELL_HEIGHT + CELL_HEIGHT - 7;
        writeln!(out, r##"<text x="{}" y="{y}" fill="#666">{row}</text>"##, MARGIN / 2)?;
    }
    for (i, cell) in grid.cells.iter().enumerate() {
        let x = MARGIN + i % grid.columns * cell_width;
        let y = MARGIN + i / grid.columns * CELL_HEIGHT;
        // Registers of one lane go from light to less light.
        let fill = svg_fill(cell.lane, 90 - 4 * (cell.register % 4));
        let frame = svg_fill(cell.warp + 3, 35);
        let dash = if cell.copies > 1 { r#" stroke-dasharray="3 2""# } else { "" };
        writeln!(
            out,
            r#"<rect x="{}" y="{}" width="{}" height="{}" fill="{fill}" stroke="{frame}"{dash}/>"#,
            x + 1,
            y + 1,
            cell_width - 2,
            CELL_HEIGHT - 2
        )?;
        let (text_x, text_y) = (x + cell_width / 2, y + CELL_HEIGHT - 7);
        writeln!(out, r#"<text x="{text_x}" y="{text_y}">{}</text>"#, escape(&cell.label))?;
    }
    writeln!(out, "</svg>")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
