//! The libraries of device functions that lowered modules call: libdevice on NVIDIA GPUs, ocml and ockl on AMD's.
//!
//! What a kernel calls is simplified in a module of its own, by all of LLVM's passes for the target, before the kernel gets
//! it and inlines it: the kernel itself needs few of these passes, and has so much code that all of them take long.

use crate::codegen;
use crate::companions::Companions;
use crate::refusal::{About, Refusal};
use anyhow::{Result, anyhow, bail};
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{FlagBehavior, Linkage, Module};
use inkwell::targets::TargetMachine;
use inkwell::types::FunctionType;
use linear_layout::target::{TargetDesc, Vendor};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// The functions with this prefix that a module calls and does not have, with their types. LLVM has those of its own.
fn all_missing<'m>(module: &Module<'m>, prefix: &str) -> Vec<(String, FunctionType<'m>)> {
    let functions = module.get_functions().filter(|function| function.count_basic_blocks() == 0);
    let named =
        functions.map(|function| (function.get_name().to_string_lossy().into_owned(), function.get_type()));
    named.filter(|(name, _)| name.starts_with(prefix) && !name.starts_with("llvm.")).collect()
}

/// The first function with this prefix that a module calls and does not have.
fn missing(module: &Module<'_>, prefix: &str) -> Option<String> {
    all_missing(module, prefix).into_iter().next().map(|(name, _)| name)
}

/// Refuses calls of functions that have other types in their library: LLVM would take the bits of the arguments as they are.
fn check_types<'m>(module: &Module<'m>, called: &[(String, FunctionType<'m>)]) -> Result<()> {
    for (name, ty) in called {
        let has = module.get_function(name).map(|function| function.get_type());
        if let Some(has) = has.filter(|has| has != ty) {
            let [has, ty] = [has, *ty].map(|ty| ty.print_to_string().to_string());
            let text = format!("'{name}' is {has} in its library, and is called as {ty}");
            return Err(Refusal { text, about: About::Function(name.clone()) }.into());
        }
    }
    Ok(())
}

/// Links a library with what functions of these names are in it.
fn link_file(module: &Module<'_>, prefix: &str, needed: &str, library: &str, path: &Path) -> Result<()> {
    // SAFETY: the module is valid.
    unsafe { mlir_host::driver::link_needed(module.as_mut_ptr().cast(), &path.to_string_lossy()) }.map_err(
        |err| anyhow!("'{needed}' is in {library}, which cannot be linked: {}: {err}", path.display()),
    )?;
    match missing(module, prefix) {
        Some(name) => {
            let text = format!("{library} has no function '{name}': {}", path.display());
            Err(Refusal { text, about: About::Function(name) }.into())
        }
        None => Ok(()),
    }
}

/// The module flag by which libdevice's functions know whether denormal numbers are zero.
const REFLECT_FTZ: &str = "nvvm-reflect-ftz";

/// Lets libdevice's functions take denormal numbers for zero (NVVM, "Reflection Parameters").
pub fn flush_denormals(module: &Module<'_>) {
    let yes = module.get_context().i32_type().const_int(1, false);
    module.add_basic_value_flag(REFLECT_FTZ, FlagBehavior::Override, yes);
}

/// Which functions of libraries a module got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linked {
    /// None.
    Nothing,
    /// Simplified ones of the target's library, to be inlined.
    Simplified,
    /// Any, as they were found.
    Raw,
}

/// Links what a module calls of the caller's libraries and of its target's.
///
/// # Errors
/// When a library is not there, cannot be read, or lacks a function.
pub fn link(
    module: &Module<'_>,
    machine: &TargetMachine,
    target: &TargetDesc,
    companions: &Companions,
) -> Result<Linked> {
    let more = link_more(module, companions)?;
    let linked = link_vendor(module, machine, target, companions)?;
    Ok(if more { Linked::Raw } else { linked })
}

/// Links what a module calls of the caller's own libraries.
fn link_more(module: &Module<'_>, companions: &Companions) -> Result<bool> {
    let mut linked = false;
    let called = all_missing(module, "");
    for path in &companions.more_libraries {
        if missing(module, "").is_none() {
            break;
        }
        // SAFETY: the module is valid.
        unsafe { mlir_host::driver::link_needed(module.as_mut_ptr().cast(), &path.to_string_lossy()) }
            .map_err(|err| anyhow!("{} cannot be linked: {err}", path.display()))?;
        linked = true;
    }
    check_types(module, &called)?;
    Ok(linked)
}

fn link_vendor(
    module: &Module<'_>,
    machine: &TargetMachine,
    target: &TargetDesc,
    companions: &Companions,
) -> Result<Linked> {
    match target.vendor {
        Vendor::Nvidia => {
            let Some(needed) = missing(module, "__nv_") else { return Ok(Linked::Nothing) };
            let path = companions.libdevice.as_ref().ok_or_else(|| {
                anyhow!(
                    "'{needed}' is in libdevice.10.bc, which was not found: set TTOPT_LIBDEVICE to its path, or CUDA_HOME"
                )
            })?;
            let flushes = module.get_flag(REFLECT_FTZ).is_some();
            let from = if flushes { "libdevice, no denormals" } else { "libdevice" };
            link_simplified(module, machine, target, "__nv_", (from, Some(path)), |functions| {
                if flushes {
                    flush_denormals(functions);
                }
                link_file(functions, "__nv_", &needed, "libdevice", path)
            })?;
        }
        Vendor::Amd => {
            add_flag(module, "amdhsa_code_object_version", FlagBehavior::Error, CODE_OBJECT_VERSION);
            if missing(module, "__ocml_").is_none() {
                return Ok(Linked::Nothing);
            }
            let path = companions.device_library("ocml");
            link_simplified(module, machine, target, "__ocml_", ("ocml", path.as_deref()), |functions| {
                link_amd(functions, target, companions, "ocml").map(drop)
            })?;
        }
    }
    Ok(Linked::Simplified)
}

/// What functions of a library were simplified for: the target, the library and what it was told, its file with the time of its last
/// change, and their names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wanted {
    target: String,
    library: String,
    file: Option<(PathBuf, Option<SystemTime>)>,
    names: Vec<String>,
}

/// The bitcode of functions that were simplified before, which takes a fifth of the time of a kernel that calls some.
static SIMPLIFIED: Mutex<BTreeMap<Wanted, Arc<[u8]>>> = Mutex::new(BTreeMap::new());

/// How many sets of functions are kept: programs call few different ones.
const MOST_SIMPLIFIED: usize = 256;

/// Links the functions with this prefix that a module calls and does not have, after `link` has put them into a module of
/// their own and LLVM has simplified them there.
fn link_simplified(
    module: &Module<'_>,
    machine: &TargetMachine,
    target: &TargetDesc,
    prefix: &str,
    (library, file): (&str, Option<&Path>),
    link: impl FnOnce(&Module<'_>) -> Result<()>,
) -> Result<()> {
    let context = module.get_context();
    let functions = context.create_module("device functions");
    functions.set_triple(&machine.get_triple());
    functions.set_data_layout(&machine.get_target_data().get_data_layout());
    let called = all_missing(module, prefix);
    for (name, ty) in &called {
        functions.add_function(name, *ty, None);
    }
    let names = called.iter().map(|(name, _)| name.clone()).collect();
    let changed = |file: &Path| file.metadata().and_then(|of| of.modified()).ok();
    let wanted = Wanted {
        target: target.name.to_owned(),
        library: library.to_owned(),
        file: file.map(|file| (file.to_owned(), changed(file))),
        names,
    };
    let all = || SIMPLIFIED.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = all().get(&wanted).cloned();
    let bitcode = match kept {
        Some(bitcode) => bitcode,
        None => {
            link(&functions)?;
            // Those that only this module calls would be dropped.
            set_linkage(&functions, &wanted.names, Linkage::External);
            codegen::simplify(&functions, machine, target.vendor)?;
            let bitcode: Arc<[u8]> = functions.write_bitcode_to_memory().as_slice().into();
            let mut all = all();
            if all.len() < MOST_SIMPLIFIED {
                all.insert(wanted.clone(), bitcode.clone());
            }
            bitcode
        }
    };
    // Read the first time, too: uses are in the order in which they are read, which instruction selection sees.
    let buffer = MemoryBuffer::create_from_memory_range_copy(&bitcode, "device functions");
    let error = |err: inkwell::support::LLVMString| anyhow!("functions of a library cannot be linked: {err}");
    let simplified = Module::parse_bitcode_from_buffer(&buffer, context).map_err(error)?;
    check_types(&simplified, &called)?;
    module.link_in_module(simplified).map_err(error)?;
    set_linkage(module, &wanted.names, Linkage::Internal);
    Ok(())
}

fn set_linkage(module: &Module<'_>, names: &[String], linkage: Linkage) {
    names
        .iter()
        .filter_map(|name| module.get_function(name))
        .for_each(|function| function.set_linkage(linkage));
}

/// Links the functions that reach the host, for printing. They are calls until then.
///
/// # Errors
/// As [`link`].
pub fn link_host_calls(module: &Module<'_>, target: &TargetDesc, companions: &Companions) -> Result<bool> {
    match target.vendor {
        Vendor::Nvidia => Ok(false),
        Vendor::Amd => link_amd(module, target, companions, "ockl"),
    }
}

fn link_amd(
    module: &Module<'_>,
    target: &TargetDesc,
    companions: &Companions,
    library: &str,
) -> Result<bool> {
    let prefix = format!("__{library}_");
    let Some(needed) = missing(module, &prefix) else { return Ok(false) };
    let path = companions.device_library(library).ok_or_else(|| {
        anyhow!(
            "'{needed}' is in {library}.bc, which was not found: install rocm-device-libs, or set TTOPT_DEVICE_LIBS to \
             the folder of the bitcode"
        )
    })?;
    link_file(module, &prefix, &needed, library, &path)?;
    set_controls(module, target)?;
    Ok(true)
}

/// Version 5 (LLVM, "User Guide for AMDGPU Backend", "Code Object V5 Metadata"), times a hundred.
const CODE_OBJECT_VERSION: u64 = 500;

fn add_flag(module: &Module<'_>, name: &str, behaviour: FlagBehavior, value: u64) {
    let value = module.get_context().i32_type().const_int(value, false);
    module.add_basic_value_flag(name, behaviour, value);
}

/// Defines the constants that the functions ask about the GPU and about what they may assume (ROCm device libraries,
/// "OCLC"): all of a number's values count, square roots are exact.
fn set_controls(module: &Module<'_>, target: &TargetDesc) -> Result<()> {
    let arch = target.name.strip_prefix("hip:gfx").unwrap_or_default();
    let (major, rest) = arch.split_at(arch.len().saturating_sub(2));
    let step = |text: &str| u64::from_str_radix(text, 16).ok();
    let version =
        (|| Some(major.parse::<u64>().ok()? * 1000 + step(&rest[..1])? * 100 + step(&rest[1..])?))();
    let version = version.ok_or_else(|| anyhow!("the version of {} is not known", target.name))?;
    for global in module.get_globals().filter(|global| global.get_initializer().is_none()) {
        let name = global.get_name().to_string_lossy().into_owned();
        let Some(control) = name.strip_prefix("__oclc_") else { continue };
        let value = match control {
            "finite_only_opt" | "unsafe_math_opt" | "daz_opt" => 0,
            "correctly_rounded_sqrt32" => 1,
            "wavefrontsize64" => (target.lanes == 64).into(),
            "ISA_version" => version,
            "ABI_version" => CODE_OBJECT_VERSION,
            _ => bail!("the device libraries ask for '{name}', which is not known"),
        };
        global.set_initializer(&global.get_value_type().into_int_type().const_int(value, false));
        global.set_constant(true);
        global.set_linkage(Linkage::Internal);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{SIMPLIFIED, link};
    use crate::codegen::{Fences, with_machine};
    use crate::companions::Companions;
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;
    use linear_layout::target::TargetDesc;

    /// LLVM IR of a module that calls functions of one `f32`, linked.
    fn linked(names: &[&str], companions: &Companions) -> String {
        let (name, context) = ("hip:gfx90a", Context::create());
        let calls: String = names
            .iter()
            .map(|name| format!("declare float @{name}(float)\ndefine float @of_{name}(float %x) {{\n  %y = call float @{name}(float %x)\n  ret float %y\n}}\n"))
            .collect();
        let buffer = MemoryBuffer::create_from_memory_range_copy(calls.as_bytes(), "calls");
        let module = context.create_module_from_ir(buffer).unwrap();
        let target = TargetDesc::parse(name).unwrap();
        with_machine(name, Fences::Absent, |machine| link(&module, machine, &target, companions)).unwrap();
        module.print_to_string().to_string()
    }

    #[test]
    fn functions_are_simplified_once_for_each_set_of_names() {
        let companions = Companions::find();
        assert!(companions.device_library("ocml").is_some(), "set-up fetches ocml");
        let (sine, both) = (["__ocml_sin_f32"], ["__ocml_sin_f32", "__ocml_erf_f32"]);
        let (first, more) = (linked(&sine, &companions), linked(&both, &companions));
        assert!(first.contains("define internal float @__ocml_sin_f32") && !first.contains("__ocml_erf_f32"));
        assert!(more.contains("define internal float @__ocml_erf_f32"));
        let kept =
            |names: &[&str]| SIMPLIFIED.lock().unwrap().keys().filter(|wanted| wanted.names == names).count();
        assert_eq!((kept(&sine), kept(&both)), (1, 1));
        assert_eq!((linked(&sine, &companions), linked(&both, &companions)), (first, more));
        assert_eq!((kept(&sine), kept(&both)), (1, 1));
    }
}
