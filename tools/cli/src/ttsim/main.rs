//! Runs a GPU kernel on the CPU, checks it and counts what it costs: TTIR and TTGIR go through our compiler,
//! LLVM IR of any origin runs as it is.

mod arguments;
mod simulate;

use anyhow::{Context as _, Result};
use simulate::{CompileRequest, Compiled};
use std::process::ExitCode;
use ttopt_tools::companions::Companions;
use ttopt_tools::compile::{Options, Stage, check_input, compile};

/// Compiles a kernel to LLVM IR.
fn to_llvm(request: &CompileRequest) -> Result<Compiled> {
    let name = request.file.display().to_string();
    let bytes = std::fs::read(&request.file).with_context(|| format!("cannot read {name}"))?;
    check_input(&bytes, &name)?;
    let mut options = Options::new(Stage::Llvmir);
    options.target = request.target.clone();
    options.num_warps = request.num_warps.unwrap_or(4);
    options.num_stages = request.num_stages.unwrap_or(3);
    options.num_ctas = request.num_ctas.unwrap_or(1);
    options.companions = Companions::find();
    let compiled = compile(&bytes, &name, &options).with_context(|| format!("cannot compile {name}"))?;
    let metadata = compiled.metadata;
    Ok(Compiled {
        llvm: compiled.output,
        kernel: metadata.as_ref().map(|m| m.name.clone()),
        threads: metadata.as_ref().map(|m| m.threads),
        target: metadata.as_ref().map(|m| m.target.clone()),
        shared: metadata.as_ref().and_then(|m| u32::try_from(m.shared).ok()),
    })
}

fn main() -> ExitCode {
    simulate::main(std::env::args_os())
}
