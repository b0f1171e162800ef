//! Stages that a caller made itself: a dump that was edited takes the place of what the compiler would make there, and every
//! later stage is made from it.

use crate::compile::Stage;
use anyhow::{Context as _, Result, anyhow, bail};
use inkwell::attributes::AttributeLoc;
use inkwell::context::Context as LlvmContext;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module as LlvmModule;
use inkwell::targets::TargetMachine;
use inkwell::values::FunctionValue;
use linear_layout::target::{TargetDesc, Vendor};
use std::path::Path;

/// One stage of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Override {
    /// What it is: [`Stage::Ttir`], [`Stage::Ttgir`], [`Stage::Llvmir`], [`Stage::Ptx`], [`Stage::Amdgcn`], or
    /// [`Stage::Asm`] for whichever of the two the target has.
    pub stage: Stage,
    /// What it is called in diagnostics.
    pub name: String,
    /// Text, or bytecode of MLIR or LLVM.
    pub bytes: Vec<u8>,
}

/// The stages that can be overridden, by the extensions of their files: Triton's, and our names of the stages.
const EXTENSIONS: [(&str, Stage); 6] = [
    ("ttir", Stage::Ttir),
    ("ttgir", Stage::Ttgir),
    ("llir", Stage::Llvmir),
    ("llvmir", Stage::Llvmir),
    ("ptx", Stage::Ptx),
    ("amdgcn", Stage::Amdgcn),
];

impl Override {
    /// A stage by its name, which is the extension of its file in a dump.
    ///
    /// # Errors
    /// When no stage of that name can be overridden.
    pub fn new(stage: &str, name: impl Into<String>, bytes: Vec<u8>) -> Result<Self> {
        let name = name.into();
        let known = EXTENSIONS.iter().find(|(extension, _)| *extension == stage);
        let (_, stage) = known.ok_or_else(|| {
            anyhow!(
                "{name} overrides no stage: those that can be overridden are ttir, ttgir, llir, ptx, amdgcn"
            )
        })?;
        Ok(Self { stage: *stage, name, bytes })
    }

    /// A stage as programs call it, `Asm` among them.
    ///
    /// # Errors
    /// When it cannot be overridden.
    pub fn of_stage(stage: Stage, name: impl Into<String>, bytes: Vec<u8>) -> Result<Self> {
        let name = name.into();
        if stage == Stage::Asm || EXTENSIONS.iter().any(|(_, known)| *known == stage) {
            return Ok(Self { stage, name, bytes });
        }
        bail!("{name} overrides a stage that cannot be overridden: nothing is made from it")
    }

    /// A file, whose extension names the stage.
    ///
    /// # Errors
    /// When it cannot be read, or is named after no stage.
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        if path.is_dir() {
            bail!(
                "{name} is a folder: name the file of the stage that was edited, as the others are to be made anew"
            );
        }
        let stage = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default().to_owned();
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
        Self::new(&stage, name, bytes)
    }
}

/// What is known of the kernel that an override must be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'a> {
    /// Its symbol.
    pub kernel: &'a str,
    /// What it is compiled for.
    pub target: &'a TargetDesc,
    /// Threads of a CTA.
    pub threads: u32,
}

impl Expected<'_> {
    fn check_threads(&self, file: &str, found: Option<u32>) -> Result<()> {
        match found {
            Some(found) if found != self.threads => bail!(
                "{file} is for {found} threads, and the kernel is launched with {}: its options must be those that the dump was \
                 made with",
                self.threads
            ),
            _ => Ok(()),
        }
    }

    fn wrong_kernel(&self, file: &str) -> anyhow::Error {
        anyhow!("{file} has no kernel '{}', which is compiled here", self.kernel)
    }

    fn wrong_target(&self, file: &str, found: &str) -> anyhow::Error {
        anyhow!("{file} is for {found}, and the kernel is compiled for {}", self.target.name)
    }
}

/// Refuses overrides of which nothing would be used, before any work.
pub(crate) fn check_use(overrides: &[Override], emit: Stage) -> Result<()> {
    for (i, one) in overrides.iter().enumerate() {
        let rank = rank(one.stage);
        if rank > self::rank(emit) {
            bail!("{} is not used: compilation stops before it", one.name);
        }
        for other in &overrides[i + 1..] {
            let (early, late) = if rank <= self::rank(other.stage) { (one, other) } else { (other, one) };
            match (early.stage, late.stage) {
                (early_stage, late_stage) if self::rank(early_stage) == self::rank(late_stage) => {
                    bail!("{} and {} override the same stage", early.name, late.name)
                }
                // TTGIR says how a kernel is launched, whatever its code is.
                (Stage::Ttgir, _) | (Stage::Ttir, Stage::Llvmir | Stage::Ptx | Stage::Amdgcn) => {}
                _ => bail!("{} is not used: {} overrides what is made from it", early.name, late.name),
            }
        }
    }
    Ok(())
}

/// Stages in their order; those of vendors are one.
fn rank(stage: Stage) -> u32 {
    match stage {
        Stage::Ttir => 0,
        Stage::Ttgir => 1,
        Stage::Llvm => 2,
        Stage::Llvmir => 3,
        Stage::Asm | Stage::Ptx | Stage::Amdgcn => 4,
        Stage::Bin | Stage::Cubin | Stage::Hsaco => 5,
        Stage::Sass => 6,
    }
}

/// The override of a stage; of assembly, whichever vendor's.
pub(crate) fn of(overrides: &[Override], stage: Stage) -> Option<&Override> {
    overrides.iter().find(|one| rank(one.stage) == rank(stage))
}

/// Reads LLVM IR that stands for a kernel's.
pub(crate) fn read_llvm<'c>(
    given: &Override,
    context: &'c LlvmContext,
    machine: &TargetMachine,
    expected: &Expected<'_>,
) -> Result<LlvmModule<'c>> {
    let name = &given.name;
    let buffer = MemoryBuffer::create_from_memory_range_copy(&given.bytes, name);
    let module =
        context.create_module_from_ir(buffer).map_err(|err| anyhow!("{name} is not LLVM IR: {err}"))?;
    module.verify().map_err(|err| anyhow!("{name} is not valid LLVM IR: {err}"))?;
    let (found, wanted) = (module.get_triple(), machine.get_triple());
    if found != wanted {
        return Err(expected.wrong_target(name, &found.as_str().to_string_lossy()));
    }
    if *module.get_data_layout() != machine.get_target_data().get_data_layout() {
        bail!("{name} has another data layout than {}", expected.target.name);
    }
    let kernel = module
        .get_function(expected.kernel)
        .filter(|kernel| kernel.count_basic_blocks() > 0 && is_kernel(*kernel, expected.target.vendor))
        .ok_or_else(|| expected.wrong_kernel(name))?;
    let attribute = |key: &str| {
        let attribute = kernel.get_string_attribute(AttributeLoc::Function, key)?;
        Some(attribute.get_string_value().to_string_lossy().into_owned())
    };
    if let Some(cpu) = attribute("target-cpu")
        && *cpu != *machine.get_cpu().to_string_lossy()
    {
        return Err(expected.wrong_target(name, &cpu));
    }
    let threads = match expected.target.vendor {
        Vendor::Nvidia => attribute("nvvm.reqntid").and_then(|threads| product(&threads)),
        Vendor::Amd => attribute("amdgpu-flat-work-group-size")
            .and_then(|range| range.rsplit(',').next().and_then(|most| most.trim().parse().ok())),
    };
    expected.check_threads(name, threads)?;
    Ok(module)
}

/// Whether a function is called by the host: LLVM's calling conventions `ptx_kernel` and `amdgpu_kernel`.
fn is_kernel(function: FunctionValue<'_>, vendor: Vendor) -> bool {
    function.get_call_conventions() == if vendor == Vendor::Nvidia { 71 } else { 91 }
}

/// Of numbers with commas between them.
fn product(numbers: &str) -> Option<u32> {
    numbers.split(',').try_fold(1_u32, |product, number| product.checked_mul(number.trim().parse().ok()?))
}

/// Assembly that stands for a kernel's, as it was given.
pub(crate) fn read_assembly(
    given: &Override,
    machine: &TargetMachine,
    expected: &Expected<'_>,
) -> Result<Vec<u8>> {
    let name = &given.name;
    let vendor = match given.stage {
        Stage::Ptx => Vendor::Nvidia,
        Stage::Amdgcn => Vendor::Amd,
        _ => expected.target.vendor,
    };
    if vendor != expected.target.vendor {
        let kind = if vendor == Vendor::Nvidia { "PTX" } else { "AMDGCN" };
        bail!("{name} is {kind}, which {} does not have", expected.target.name);
    }
    let text = std::str::from_utf8(&given.bytes)
        .map_err(|err| anyhow!("{name} is not text: byte {} is not UTF-8", err.valid_up_to()))?;
    let facts = if vendor == Vendor::Nvidia { ptx_facts(text) } else { amdgcn_facts(text) };
    let cpu = machine.get_cpu();
    match facts.cpu {
        None => bail!("{name} does not say what it is for"),
        Some(found) if *found != *cpu.to_string_lossy() => return Err(expected.wrong_target(name, found)),
        Some(_) => {}
    }
    if !facts.kernels.contains(&expected.kernel) {
        return Err(expected.wrong_kernel(name));
    }
    expected.check_threads(name, facts.threads)?;
    Ok(given.bytes.clone())
}

/// What assembly says about itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Facts<'t> {
    cpu: Option<&'t str>,
    kernels: Vec<&'t str>,
    threads: Option<u32>,
}

/// By PTX's directives `.target`, `.entry` and `.reqntid` (PTX ISA, "Directives").
fn ptx_facts(text: &str) -> Facts<'_> {
    let mut facts = Facts::default();
    for line in text.lines().map(|line| line.split("//").next().unwrap_or_default().trim()) {
        if let Some(rest) = line.strip_prefix(".target ") {
            facts.cpu = rest.split(',').next().map(str::trim);
        } else if let Some((_, rest)) = line.split_once(".entry ") {
            facts.kernels.extend(rest.split(['(', ' ']).next());
        } else if let Some(rest) = line.strip_prefix(".reqntid ") {
            facts.threads = product(rest.trim_end_matches('{'));
        }
    }
    facts
}

/// By LLVM's directives `.amdgcn_target` and `.amdhsa_kernel`, and the kernel's metadata (LLVM, "User Guide for AMDGPU
/// Backend").
fn amdgcn_facts(text: &str) -> Facts<'_> {
    let mut facts = Facts::default();
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix(".amdgcn_target ") {
            // The processor, behind the triple, with features behind colons.
            let processor = rest.trim().trim_matches('"').rsplit('-').next();
            facts.cpu = processor.and_then(|processor| processor.split(':').next());
        } else if let Some(rest) = line.strip_prefix(".amdhsa_kernel ") {
            facts.kernels.push(rest.trim());
        } else if let Some(rest) = line.trim_start_matches("- ").strip_prefix(".max_flat_workgroup_size:") {
            facts.threads = rest.trim().parse().ok();
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(names: &[&str]) -> Vec<Override> {
        let one = |name: &&str| Override::new(name.rsplit('.').next().expect("one"), *name, Vec::new());
        names.iter().map(|name| one(name).expect("a stage")).collect()
    }

    #[test]
    fn overrides_of_which_nothing_is_used_are_refused() {
        let refused = |names: &[&str], emit: Stage| {
            check_use(&given(names), emit).err().map(|err| err.to_string()).unwrap_or_default()
        };
        assert_eq!(refused(&["k.ttgir"], Stage::Ttgir), "");
        assert_eq!(
            refused(&["k.ptx", "k.ttgir", "l.ttir"], Stage::Bin),
            "l.ttir is not used: k.ttgir overrides what is made from it"
        );
        assert_eq!(refused(&["k.ptx", "k.ttgir"], Stage::Bin), "");
        assert_eq!(refused(&["k.ptx"], Stage::Llvmir), "k.ptx is not used: compilation stops before it");
        assert_eq!(
            refused(&["k.ptx", "k.llir"], Stage::Asm),
            "k.llir is not used: k.ptx overrides what is made from it"
        );
        assert_eq!(
            refused(&["k.llir", "l.llvmir"], Stage::Asm),
            "k.llir and l.llvmir override the same stage"
        );
        assert!(Override::new("cubin", "k.cubin", Vec::new()).is_err());
        assert!(Override::of_stage(Stage::Bin, "k", Vec::new()).is_err());
        let asm = Override::of_stage(Stage::Asm, "k", Vec::new()).expect("a stage");
        let both = [asm, Override::new("ptx", "k.ptx", Vec::new()).expect("a stage")];
        assert!(check_use(&both, Stage::Bin).is_err_and(|err| err.to_string().contains("the same stage")));
    }

    #[test]
    fn assembly_is_asked_what_it_is() {
        let ptx = ".version 8.4\n.target sm_90a, debug // x\n.visible .entry k(\n\t.param .u64 a\n)\n.reqntid 128, 2\n{\n";
        let wanted = Facts { cpu: Some("sm_90a"), kernels: vec!["k"], threads: Some(256) };
        assert_eq!(ptx_facts(ptx), wanted);
        let amdgcn = "\t.amdgcn_target \"amdgcn-amd-amdhsa--gfx942:xnack+\"\n\t.amdhsa_kernel k\n  - .args:\n    \
                      .max_flat_workgroup_size: 256\n";
        let wanted = Facts { cpu: Some("gfx942"), kernels: vec!["k"], threads: Some(256) };
        assert_eq!(amdgcn_facts(amdgcn), wanted);
    }
}
