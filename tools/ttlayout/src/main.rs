//! `ttlayout`: shows what a layout attribute of Triton means.
//!
//! ```text
//! ttlayout '#ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>' --shape 16x16
//! ```
//!
//! With `--to` it shows how a tensor gets from one layout to another: step by step, and which banks of
//! shared memory that touches.

mod batch;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use linear_layout::show::{self, Request};

/// Shows which register, lane, warp and block holds which element of a tensor, or which offset of a
/// memory.
#[derive(Parser)]
#[command(name = "ttlayout", version, max_term_width = 100)]
struct Args {
    /// The attribute as Triton prints it, such as '#ttg.blocked<{…}>'.
    #[arg(required_unless_present = "batch")]
    layout: Option<String>,
    /// Shape of the tensor, such as 128x64.
    #[arg(long, value_name = "MxN", required_unless_present = "batch")]
    shape: Option<String>,
    /// Element type, such as f16, i8 or ptr.
    #[arg(long, default_value = "f32")]
    dtype: String,
    /// Show how to convert to this layout instead: the plan, the banks it touches, or (`matrix`, `bases`)
    /// where in this layout every element goes.
    #[arg(long, value_name = "LAYOUT")]
    to: Option<String>,
    /// GPU: cuda:80, cuda:90, cuda:100, hip:gfx942, …
    #[arg(long, default_value = "cuda:90")]
    target: String,
    /// What to print.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Colour: `auto` colours terminals unless NO_COLOR is set.
    #[arg(long, value_enum, default_value_t = Color::Auto)]
    color: Color,
    /// Answer one JSON request a line from FILE (`-` for standard input), one JSON answer a line.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["layout", "shape", "to"])]
    batch: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Who holds which element; with --to, the steps of the plan.
    Table,
    /// The matrix over F2, rows and columns labelled.
    Matrix,
    /// The basis vectors.
    Bases,
    /// For tools.
    Json,
    /// A picture for documents.
    Svg,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are answers, not errors. Nothing is left to do if printing fails.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let out = io::stdout().lock();
    match run(&args, io::BufWriter::new(out)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("ttlayout: error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args, mut out: impl Write) -> Result<(), String> {
    let written = match &args.batch {
        Some(path) => batch::run(path, &mut out)?,
        None => show(args, &mut out)?,
    };
    match written.and_then(|()| out.flush()) {
        // The reader has seen enough: `ttlayout … | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| format!("cannot write: {error}")),
    }
}

/// The outer error is about the request, the inner one about writing.
fn show(args: &Args, out: &mut impl Write) -> Result<io::Result<()>, String> {
    let request = Request {
        layout: args.layout.clone().unwrap_or_default(),
        shape: show::parse_shape(args.shape.as_deref().unwrap_or_default())?,
        dtype: args.dtype.clone(),
        to: args.to.clone(),
        target: args.target.clone(),
        num_warps: None,
    };
    let color = match args.color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    let format = match args.format {
        Format::Table => show::Format::Table,
        Format::Matrix => show::Format::Matrix,
        Format::Bases => show::Format::Bases,
        Format::Json => show::Format::Json,
        Format::Svg => show::Format::Svg,
    };
    show::write(out, &request, format, color)
}
