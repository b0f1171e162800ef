//! Pictures of who holds which element, and of the banks that a plan touches.

use std::io::{self, Write};

use super::banks::{BankMap, Wavefront};
use super::pair::Pair;
use super::request::Subject;
use super::style::svg_fill;
use super::text::Grid;

/// Largest picture, in elements.
const MAX_CELLS: usize = 1 << 14;
const CELL_HEIGHT: usize = 22;
pub(super) const CHARACTER: usize = 7;
pub(super) const MARGIN: usize = 40;
/// Width of one bank.
const BANK: usize = 28;
/// Room for what is written left of the banks.
const BANK_LABELS: usize = 70;
/// Height of a line of text.
pub(super) const LINE: usize = 20;
/// Between the parts of a picture.
pub(super) const GAP: usize = 24;

/// One rectangle per element: the hue is the lane, the frame the warp, the label says the rest. Elements
/// with replicas have a dashed frame.
pub fn layout(out: &mut impl Write, subject: &Subject) -> Result<io::Result<()>, String> {
    let picture = Picture::new(subject)?;
    Ok(draw_layout(out, &picture))
}

/// Both layouts side by side; below them the banks that the first store and the first load touch, conflicts
/// in red.
pub fn plan(out: &mut impl Write, pair: &Pair) -> Result<io::Result<()>, String> {
    let pictures = [Picture::new(&pair.from)?, Picture::new(&pair.to)?];
    Ok(draw_plan(out, pair, &pictures))
}

/// A layout ready to be drawn.
struct Picture<'a> {
    subject: &'a Subject,
    grid: Grid,
    cell_width: usize,
    rows: usize,
}

impl<'a> Picture<'a> {
    fn new(subject: &'a Subject) -> Result<Picture<'a>, String> {
        let grid = Grid::new(&subject.layout)?;
        if grid.cells.len() > MAX_CELLS {
            return Err(format!("{} elements are too many to draw; at most {MAX_CELLS}", grid.cells.len()));
        }
        let longest = grid.cells.iter().map(|c| c.label.len()).max().unwrap_or(1);
        let rows = grid.cells.len().div_ceil(grid.columns);
        Ok(Picture { subject, cell_width: CHARACTER * longest + 8, rows, grid })
    }

    fn width(&self) -> usize {
        MARGIN + self.grid.columns * self.cell_width + 4
    }

    fn height(&self) -> usize {
        MARGIN + self.rows * CELL_HEIGHT + 4
    }

    fn title(&self) -> String {
        format!("{} on {:?}", escape(&self.subject.encoding.to_string()), self.subject.shape)
    }

    fn draw(&self, out: &mut impl Write) -> io::Result<()> {
        let (grid, cell_width) = (&self.grid, self.cell_width);
        for column in 0..grid.columns {
            let x = MARGIN + column * cell_width + cell_width / 2;
            writeln!(out, r##"<text x="{x}" y="{}" fill="#666">{column}</text>"##, MARGIN - 8)?;
        }
        for row in 0..self.rows {
            let y = MARGIN + row * CELL_HEIGHT + CELL_HEIGHT - 7;
            writeln!(out, r##"<text x="{}" y="{y}" fill="#666">{row}</text>"##, MARGIN / 2)?;
        }
        for (i, cell) in grid.cells.iter().enumerate() {
            let x = MARGIN + i % grid.columns * cell_width;
            let y = MARGIN + i / grid.columns * CELL_HEIGHT;
            // Memory has no lanes: groups of eight elements show how it is swizzled.
            let hue = if self.subject.encoding.is_shared() { cell.register / 8 } else { cell.lane };
            // Registers of one lane go from light to less light.
            let fill = svg_fill(hue, 90 - 4 * (cell.register % 4));
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
        Ok(())
    }
}

fn draw_layout(out: &mut impl Write, picture: &Picture<'_>) -> io::Result<()> {
    open(out, picture.width(), picture.height(), &picture.title())?;
    picture.draw(out)?;
    writeln!(out, "</svg>")
}

fn draw_plan(out: &mut impl Write, pair: &Pair, pictures: &[Picture<'_>; 2]) -> io::Result<()> {
    let [a, b] = pictures;
    let lines = [
        format!("A  {}", pair.from.encoding),
        format!("B  {}", pair.to.encoding),
        format!("{:?} {} on {}: {}", pair.from.shape, pair.from.dtype, pair.from.target, pair.summary()),
    ];
    let maps: Vec<(String, BankMap)> = pair
        .sides()
        .into_iter()
        .map(|side| {
            let map = BankMap::new(side, &pair.from.target);
            let (name, mnemonic) = (side.name(), pair.mnemonic(side));
            (format!("banks of the first {name} ({mnemonic}) of warp 0: {}", map.verdict()), map)
        })
        .collect();
    let top = MARGIN / 2 + lines.len() * LINE + GAP;
    let text_width = MARGIN + CHARACTER * lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let bank_width = maps.iter().map(|(_, map)| bank_map_width(map) + MARGIN).max().unwrap_or(0);
    let width = (a.width() + GAP + b.width()).max(text_width).max(bank_width);
    let banks_top = top + a.height().max(b.height()) + GAP;
    let height = banks_top + maps.iter().map(|(_, map)| bank_map_height(map) + GAP).sum::<usize>();
    open(out, width, height, &format!("from {} to {}", a.title(), b.title()))?;
    for (i, line) in lines.iter().enumerate() {
        write_left(out, MARGIN / 2, MARGIN / 2 + (i + 1) * LINE - 6, line)?;
    }
    for (x, name, picture) in [(0, "A", a), (a.width() + GAP, "B", b)] {
        writeln!(out, r#"<g transform="translate({x} {top})">"#)?;
        let (middle, y) = (MARGIN / 2, MARGIN - 8);
        writeln!(out, r#"<text x="{middle}" y="{y}" font-size="16" font-weight="bold">{name}</text>"#)?;
        picture.draw(out)?;
        writeln!(out, "</g>")?;
    }
    let mut y = banks_top;
    for (title, map) in &maps {
        writeln!(out, r#"<g transform="translate(0 {y})">"#)?;
        draw_bank_map(out, title, map)?;
        writeln!(out, "</g>")?;
        y += bank_map_height(map) + GAP;
    }
    writeln!(out, "</svg>")
}

fn bank_map_width(map: &BankMap) -> usize {
    BANK_LABELS + map.banks as usize * BANK
}

fn bank_map_height(map: &BankMap) -> usize {
    2 * LINE + map.wavefronts() * CELL_HEIGHT
}

/// Banks across, wavefronts down; the lanes that are served in each cell.
fn draw_bank_map(out: &mut impl Write, title: &str, map: &BankMap) -> io::Result<()> {
    write_left(out, MARGIN / 2, LINE - 6, title)?;
    for bank in 0..map.banks as usize {
        let x = BANK_LABELS + bank * BANK + BANK / 2;
        writeln!(out, r##"<text x="{x}" y="{}" fill="#666">{bank}</text>"##, 2 * LINE - 6)?;
    }
    let mut y = 2 * LINE;
    for (number, phase) in map.phases.iter().enumerate() {
        for (i, wavefront) in phase.wavefronts.iter().enumerate() {
            if i == 0 {
                let (x, base) = (BANK_LABELS / 2, y + CELL_HEIGHT - 7);
                writeln!(out, r##"<text x="{x}" y="{base}" fill="#666">phase {number}</text>"##)?;
            }
            draw_wavefront(out, y, wavefront)?;
            y += CELL_HEIGHT;
        }
    }
    Ok(())
}

fn draw_wavefront(out: &mut impl Write, y: usize, wavefront: &Wavefront) -> io::Result<()> {
    for (&bank, touch) in wavefront {
        let x = BANK_LABELS + bank as usize * BANK;
        let lane = touch.lanes.first().copied().unwrap_or(0);
        let (fill, frame, ink) = if touch.conflict {
            ("#d61f1f".to_owned(), "#7a0000".to_owned(), "#fff")
        } else {
            (svg_fill(lane, 88), svg_fill(lane, 50), "#000")
        };
        writeln!(
            out,
            r#"<rect x="{}" y="{}" width="{}" height="{}" fill="{fill}" stroke="{frame}"/>"#,
            x + 1,
            y + 1,
            BANK - 2,
            CELL_HEIGHT - 2
        )?;
        let more = if touch.lanes.len() > 1 { "+" } else { "" };
        let (text_x, text_y) = (x + BANK / 2, y + CELL_HEIGHT - 7);
        writeln!(out, r#"<text x="{text_x}" y="{text_y}" fill="{ink}">{lane}{more}</text>"#)?;
    }
    Ok(())
}

/// The start of a picture on white.
pub(super) fn open(out: &mut impl Write, width: usize, height: usize, title: &str) -> io::Result<()> {
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="monospace" font-size="11" text-anchor="middle">"#
    )?;
    writeln!(out, "<title>{title}</title>")?;
    writeln!(out, r##"<rect width="{width}" height="{height}" fill="#fff"/>"##)
}

pub(super) fn write_left(out: &mut impl Write, x: usize, y: usize, text: &str) -> io::Result<()> {
    writeln!(out, r#"<text x="{x}" y="{y}" text-anchor="start">{}</text>"#, escape(text))
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
