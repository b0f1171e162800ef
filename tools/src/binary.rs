//! Binaries: cubins by `ptxas`, code objects (hsaco) by LLVM's linker.

use crate::companions;
use anyhow::{Context as _, Result, anyhow, bail};
use std::path::Path;
use std::process::{Command, Output};

fn run(command: &mut Command, program: &Path) -> Result<Output> {
    command.output().with_context(|| format!("cannot run {}", program.display()))
}

/// Runs `ptxas` on PTX for a target as in `cuda:90`.
///
/// # Errors
/// When there is no `ptxas`, or it refuses.
pub fn assemble(ptx: &[u8], target: &str) -> Result<Vec<u8>> {
    let ptxas = companions::ptxas().ok_or_else(|| {
        anyhow!("a cubin needs ptxas, which was not found: set TTOPT_PTXAS to its path, or CUDA_HOME")
    })?;
    let capability = target.strip_prefix("cuda:").unwrap_or(target);
    let suffix = if capability.parse::<u32>().is_ok_and(|n| n >= 90) { "a" } else { "" };
    let dir = tempfile::tempdir().context("temporary directory")?;
    let (input, output) = (dir.path().join("kernel.ptx"), dir.path().join("kernel.cubin"));
    std::fs::write(&input, ptx).with_context(|| format!("cannot write {}", input.display()))?;
    let assemble = |more: &[&str]| {
        let mut command = Command::new(&ptxas);
        command.arg(format!("-arch=sm_{capability}{suffix}")).arg("-lineinfo").args(more);
        run(command.arg("-o").arg(&output).arg(&input), &ptxas)
    };
    // Without it ptxas 12.9 to 13.5 fall back to few registers and kilobytes of spills on some large kernels.
    let mut made = assemble(&["--regAllocOptLevel=2"])?;
    if !made.status.success() && String::from_utf8_lossy(&made.stderr).contains("Unknown option") {
        made = assemble(&[])?;
    }
    if !made.status.success() {
        bail!("ptxas refused the PTX:\n{}", String::from_utf8_lossy(&made.stderr).trim_end());
    }
    std::fs::read(&output).with_context(|| format!("cannot read {}", output.display()))
}

/// Links an object file to a code object that AMD's runtime loads (LLVM, "User Guide for AMDGPU Backend", "Code Object").
///
/// # Errors
/// When there is no linker, or it refuses.
pub fn link(object: &[u8]) -> Result<Vec<u8>> {
    let lld = companions::lld().ok_or_else(|| {
        anyhow!("an hsaco needs LLVM's linker, which was not found: install lld-22, or set TTOPT_LLD to ld.lld's path")
    })?;
    let dir = tempfile::tempdir().context("temporary directory")?;
    let (input, output) = (dir.path().join("kernel.o"), dir.path().join("kernel.hsaco"));
    std::fs::write(&input, object).with_context(|| format!("cannot write {}", input.display()))?;
    let made = run(
        Command::new(&lld)
            .args(["-flavor", "gnu", "-shared", "--no-undefined", "-o"])
            .arg(&output)
            .arg(&input),
        &lld,
    )?;
    if !made.status.success() {
        bail!("the linker refused the object file:\n{}", String::from_utf8_lossy(&made.stderr).trim_end());
    }
    std::fs::read(&output).with_context(|| format!("cannot read {}", output.display()))
}
