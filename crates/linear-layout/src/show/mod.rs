//! Layouts and conversions as tables, matrices, bases, JSON and pictures, for people and tools.
//!
//! ```
//! use linear_layout::show::{Format, Request, text};
//! let request = Request {
//!     layout: "#ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>".into(),
//!     shape: vec![256],
//!     dtype: "f16".into(),
//!     to: None,
//!     target: "cuda:90".into(),
//!     num_warps: None,
//! };
//! assert!(text(&request, Format::Json)?.starts_with(r#"{"in_dims":{"register":[[1]]"#));
//! # Ok::<(), String>(())
//! ```

mod banks;
mod json;
mod pair;
mod properties;
mod request;
mod style;
mod svg;
mod text;
pub mod timeline;

pub use json::error as error_json;
pub use request::{Request, parse_shape};

use pair::Pair;
use request::Subject;
use std::io::{self, Write};
use style::Style;

/// How to show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Who holds which element; of a conversion, the steps of the plan.
    Table,
    /// The matrix over F2, rows and columns labelled.
    Matrix,
    /// The basis vectors.
    Bases,
    /// For tools: a layout's bases, a conversion's plan with its cost.
    Json,
    /// A picture.
    Svg,
}

/// Writes what is asked for, in colours for terminals where these are wanted.
///
/// # Errors
/// What is wrong with the request; the inner error is about writing.
pub fn write(
    out: &mut impl Write,
    request: &Request,
    format: Format,
    color: bool,
) -> Result<io::Result<()>, String> {
    let subject = Subject::new(request)?;
    let style = Style { color };
    if let Some(destination) = Subject::destination(request)? {
        let pair = Pair::new(subject, destination)?;
        return Ok(match format {
            Format::Table => text::plan(out, &pair, style),
            Format::Matrix => text::plan_matrix(out, &pair.map()?, style),
            Format::Bases => text::write_bases(out, &pair.map()?),
            Format::Json => writeln!(out, "{}", json::plan(&pair)),
            Format::Svg => svg::plan(out, &pair)?,
        });
    }
    Ok(match format {
        Format::Table => text::table(out, &subject, style)?,
        Format::Matrix => text::matrix(out, &subject, style),
        Format::Bases => text::bases(out, &subject),
        Format::Json => writeln!(out, "{}", json::layout(&subject.layout)),
        Format::Svg => svg::layout(out, &subject)?,
    })
}

/// What is asked for as text without colours, and without an end of line.
///
/// # Errors
/// As [`write()`].
pub fn text(request: &Request, format: Format) -> Result<String, String> {
    let mut out = Vec::new();
    write(&mut out, request, format, false)?.map_err(|error| error.to_string())?;
    let mut text = String::from_utf8(out).map_err(|error| error.to_string())?;
    text.truncate(text.trim_end_matches('\n').len());
    Ok(text)
}
