//! Binaries: cubins by `ptxas`, their machine code as text by `nvdisasm`, code objects (hsaco) by LLVM's linker.

use crate::companions::Companions;
use crate::refusal::Refusal;
use anyhow::{Context as _, Result, anyhow, bail};
use std::path::Path;
use std::process::{Command, Output};

fn run(command: &mut Command, program: &Path) -> Result<Output> {
    command.output().with_context(|| format!("cannot run {}", program.display()))
}

pub use crate::resources::Resources;

/// Runs `ptxas` on PTX for a target as in `cuda:90`, with further options.
///
/// # Errors
/// When there is no `ptxas`, or it refuses.
pub fn assemble(
    ptx: &[u8],
    target: &str,
    companions: &Companions,
    options: &[String],
) -> Result<(Vec<u8>, Option<Resources>)> {
    let ptxas = companions.ptxas.as_ref().ok_or_else(|| {
        anyhow!("a cubin needs ptxas, which was not found: set TTOPT_PTXAS to its path, or CUDA_HOME")
    })?;
    let capability = target.strip_prefix("cuda:").unwrap_or(target);
    let suffix = if capability.parse::<u32>().is_ok_and(|n| n >= 90) { "a" } else { "" };
    let dir = tempfile::tempdir().context("temporary directory")?;
    let (input, output) = (dir.path().join("kernel.ptx"), dir.path().join("kernel.cubin"));
    std::fs::write(&input, ptx).with_context(|| format!("cannot write {}", input.display()))?;
    let assemble = |more: &[&str]| {
        let mut command = Command::new(ptxas);
        command
            .arg(format!("-arch=sm_{capability}{suffix}"))
            .args(["-lineinfo", "-v"])
            .args(more)
            .args(options);
        run(command.arg("-o").arg(&output).arg(&input), ptxas)
    };
    // Without it ptxas 12.9 to 13.5 fall back to few registers and kilobytes of spills on some large kernels.
    let mut more = &["--regAllocOptLevel=2"][..];
    let mut made = assemble(more)?;
    if !made.status.success() && String::from_utf8_lossy(&made.stderr).contains("Unknown option") {
        more = &[];
        made = assemble(more)?;
    }
    if !made.status.success()
        && let Some(newest) = newest_version(&String::from_utf8_lossy(&made.stderr))
        && let Ok(text) = str::from_utf8(ptx)
    {
        std::fs::write(&input, in_version(text, newest))
            .with_context(|| format!("cannot write {}", input.display()))?;
        made = assemble(more)?;
    }
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr).trim_end().to_owned();
        if said.contains("Unknown option") {
            bail!("{said}");
        }
        return Err(Refusal::of_ptxas(said, &String::from_utf8_lossy(ptx)).into());
    }
    let log = [&made.stdout[..], &made.stderr].concat();
    let resources = Resources::of_ptxas(&String::from_utf8_lossy(&log));
    let binary = std::fs::read(&output).with_context(|| format!("cannot read {}", output.display()))?;
    Ok((binary, resources))
}

/// The newest version of PTX that `ptxas` reads, which refused a newer one: 84 for 8.4.
fn newest_version(said: &str) -> Option<u32> {
    let (_, after) = said.split_once("Unsupported .version")?;
    let (_, after) = after.split_once("current version is '")?;
    version(after.split_once('\'')?.0)
}

/// Of `8.4` 84.
fn version(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once('.')?;
    Some(10 * major.parse::<u32>().ok()? + minor.parse::<u32>().ok()?)
}

/// The same PTX as text of another version, 84 for 8.4. Before 8.6 there are no fences that only acquire or only release (PTX ISA,
/// "membar, fence"): they become those that do both.
#[must_use]
pub fn in_version(ptx: &str, wanted: u32) -> String {
    const ONE_SIDED_FENCES: u32 = 86;
    let Some((head, (number, rest))) = ptx.split_once(".version ").and_then(|(head, after)| {
        let end = after.find(|c: char| c != '.' && !c.is_ascii_digit())?;
        Some((head, after.split_at(end)))
    }) else {
        return ptx.to_owned();
    };
    let rest = match version(number).is_some_and(|has| has >= ONE_SIDED_FENCES) && wanted < ONE_SIDED_FENCES {
        true => rest
            .replace("\tfence.acquire.", "\tfence.acq_rel.")
            .replace("\tfence.release.", "\tfence.acq_rel."),
        false => rest.to_owned(),
    };
    format!("{head}.version {}.{}{rest}", wanted / 10, wanted % 10)
}

/// Bytes of stack of the thread of a cubin's kernel that has the most: what it spills, and its arrays. `None` where that is
/// not said.
#[must_use]
pub fn stack_bytes(cubin: &[u8]) -> Option<u32> {
    const FRAME: u8 = 0x11;
    largest_of_functions(cubin, FRAME)
}

/// Bytes of stack that arrays of the functions of PTX take, all together, in steps of the stack's alignment. `None` where a declaration
/// does not say how many it has (PTX ISA, "State Spaces": `.local`).
#[must_use]
pub fn array_bytes(ptx: &str) -> Option<u32> {
    const ALIGNMENT: u32 = 16;
    let declarations = ptx.lines().map(str::trim_start).filter(|line| line.starts_with(".local"));
    let bytes = declarations.map(|line| line.split_once('[')?.1.split_once(']')?.0.parse::<u32>().ok());
    bytes
        .map(|bytes| bytes?.checked_next_multiple_of(ALIGNMENT))
        .try_fold(0, |all: u32, bytes| all.checked_add(bytes?))
}

/// Registers of a thread of a cubin's kernel that has the most. `None` where that is not said.
#[must_use]
pub fn registers(cubin: &[u8]) -> Option<u32> {
    const REGISTERS: u8 = 0x2f;
    largest_of_functions(cubin, REGISTERS)
}

/// The only section of a cubin, which is an ELF file, whose name, with a zero at its end, begins with `wanted`.
pub(crate) fn section<'a>(cubin: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let half = |at: usize| Some(u16::from_le_bytes(cubin.get(at..)?.first_chunk().copied()?));
    let word = |at: usize| Some(u32::from_le_bytes(cubin.get(at..)?.first_chunk().copied()?));
    let long = |at: usize| usize::try_from(u64::from_le_bytes(cubin.get(at..)?.first_chunk().copied()?)).ok();
    if !cubin.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    // ELF-64: where section headers begin, their size and number, and which of them has the names.
    let (headers, size) = (long(0x28)?, usize::from(half(0x3a)?));
    let header = |n: u16| headers.checked_add(usize::from(n) * size);
    let names = long(header(half(0x3e)?)?.checked_add(0x18)?)?;
    let is_wanted = |at: usize| {
        let name = word(at).and_then(|name| names.checked_add(name as usize));
        name.and_then(|name| cubin.get(name..)).is_some_and(|name| name.starts_with(wanted))
    };
    let mut found = (0..half(0x3c)?).filter_map(header).filter(|at| is_wanted(*at));
    let (section, None) = (found.next()?, found.next()) else { return None };
    cubin.get(long(section + 0x18)?..)?.get(..long(section + 0x20)?)
}

/// The largest number that a cubin has under `wanted` for one of its functions.
///
/// The section `.nv.info` lists attributes: a format, a kind, and for format 4 the length of what
/// follows. Kind 0x11 is a function's symbol and the size of its frame, kind 0x2f its symbol and registers of a thread.
fn largest_of_functions(cubin: &[u8], wanted: u8) -> Option<u32> {
    const SIZED: u8 = 4;
    let mut rest = section(cubin, b".nv.info\0")?;
    let mut most = None;
    while let [format, kind, low, high, ..] = *rest {
        let length = if format == SIZED { usize::from(u16::from_le_bytes([low, high])) } else { 0 };
        let value = rest.get(4..4 + length)?;
        if kind == wanted {
            let number = value.get(4..).and_then(<[u8]>::first_chunk).copied().map(u32::from_le_bytes);
            most = most.max(number);
        }
        rest = &rest[4 + length..];
    }
    most
}

/// The machine code of a cubin as text, with the lines of the source that it comes from.
///
/// # Errors
/// When there is no `nvdisasm`, or it refuses.
pub fn disassemble(cubin: &[u8], companions: &Companions) -> Result<Vec<u8>> {
    let nvdisasm = companions.nvdisasm.as_ref().ok_or_else(|| {
        anyhow!("SASS needs nvdisasm, which was not found: set TTOPT_NVDISASM to its path, or CUDA_HOME")
    })?;
    let dir = tempfile::tempdir().context("temporary directory")?;
    let input = dir.path().join("kernel.cubin");
    std::fs::write(&input, cubin).with_context(|| format!("cannot write {}", input.display()))?;
    let made =
        run(Command::new(nvdisasm).args(["--print-code", "--print-line-info-inline"]).arg(&input), nvdisasm)?;
    if !made.status.success() {
        bail!("nvdisasm refused the cubin:\n{}", String::from_utf8_lossy(&made.stderr).trim_end());
    }
    Ok(made.stdout)
}

/// Links an object file to a code object that AMD's runtime loads (LLVM, "User Guide for AMDGPU Backend", "Code Object").
///
/// # Errors
/// When there is no linker, or it refuses.
pub fn link(object: &[u8], companions: &Companions) -> Result<Vec<u8>> {
    let lld = companions.lld.as_ref().ok_or_else(|| {
        anyhow!("an hsaco needs LLVM's linker, which was not found: install lld-22, or set TTOPT_LLD to ld.lld's path")
    })?;
    let dir = tempfile::tempdir().context("temporary directory")?;
    let (input, output) = (dir.path().join("kernel.o"), dir.path().join("kernel.hsaco"));
    std::fs::write(&input, object).with_context(|| format!("cannot write {}", input.display()))?;
    let made = run(
        Command::new(lld)
            .args(["-flavor", "gnu", "-shared", "--no-undefined", "-o"])
            .arg(&output)
            .arg(&input),
        lld,
    )?;
    if !made.status.success() {
        return Err(Refusal::of_linker(String::from_utf8_lossy(&made.stderr).trim_end()).into());
    }
    std::fs::read(&output).with_context(|| format!("cannot read {}", output.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ptxas_says_is_read() {
        let log = "ptxas info    : Function properties for k\n    16 bytes stack frame, 8 bytes spill stores, 12 bytes \
                   spill loads\nptxas info    : Used 255 registers, used 1 barriers, 384 bytes cmem[0]\n";
        let made = Resources::of_ptxas(log).expect("all is there");
        assert_eq!((made.registers, made.spill_stores, made.spill_loads, made.stack), (255, 8, 12, 16));
        assert_eq!(Resources::of_ptxas(""), None);
    }

    #[test]
    fn older_assemblers_get_older_text() {
        let said = "ptxas k.ptx, line 5; fatal   : Unsupported .version 8.6; current version is '8.4'\n";
        assert_eq!(newest_version(said), Some(84));
        assert_eq!(newest_version("ptxas fatal   : Unknown option"), None);
        let ptx = "// a\n.version 8.6\n.target sm_90a\n\tfence.release.gpu;\n\tfence.acquire.sys;\n\tfence.proxy.async;\n";
        let older = "// a\n.version 8.4\n.target sm_90a\n\tfence.acq_rel.gpu;\n\tfence.acq_rel.sys;\n\tfence.proxy.async;\n";
        assert_eq!(in_version(ptx, 84), older);
        assert_eq!(in_version(ptx, 87), ptx.replace("8.6", "8.7"));
        assert_eq!(in_version(older, 83), older.replace("8.4", "8.3"));
        assert_eq!(in_version("no text", 84), "no text");
    }

    #[test]
    fn arrays_of_a_text_are_added_up() {
        assert_eq!(array_bytes("ret; // .local\n"), Some(0));
        assert_eq!(
            array_bytes("\t.local .align 4 .b8 \ta[28];\n\t.local .align 8 .b8 b[40];\n"),
            Some(32 + 48)
        );
        assert_eq!(array_bytes(".local .b8 a[];"), None);
        assert_eq!(array_bytes(".local .b32 one;"), None);
    }
}
