//! Compiles a file of TTIR to PTX from Rust: `cargo run --example embed -- KERNEL.ttir`

use ttopt_tools::compile::{Options, Stage};
use ttopt_tools::session::{Cancellation, Session};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: embed KERNEL.ttir")?;
    let text = std::fs::read(&path)?;
    let mut options = Options::for_target("cuda:90", Stage::Ptx);
    (options.keep, options.explain) = (true, true);
    let outcome = Session::new().compile(&text, &path, &options, &Cancellation::default());
    for diagnostic in &outcome.diagnostics {
        eprintln!("{diagnostic}");
    }
    let compiled = outcome.result?;
    print!("{}", String::from_utf8_lossy(&compiled.output));
    if let (Some(metadata), Some(ttgir)) = (compiled.metadata, compiled.artifacts.ttgir) {
        println!("// {}: {} bytes of TTGIR, {}", metadata.name, ttgir.len(), metadata.to_json());
    }
    Ok(())
}
