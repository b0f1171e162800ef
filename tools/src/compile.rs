//! The one-shot compiler: TTIR or TTGIR, text or bytecode, to any later stage.

use crate::{binary, codegen, device_library, occupancy};
use anyhow::{Context as _, Result, anyhow, bail};
use inkwell::context::Context as LlvmContext;
use inkwell::module::Module as LlvmModule;
use linear_layout::target::{TargetDesc, Vendor};
use melior::ir::Module;
use melior::pass::PassManager;
use mlir_host::bytecode::is_bytecode;
use mlir_host::driver::Source;
use mlir_host::ir::{Attr, Op, Type};
use std::time::{Duration, Instant};
use ttopt_dialect::tt::ops::FuncOp;
use ttopt_dialect::tt::types::TensorDescType;
use ttopt_dialect::ttng::types::TensorDescIm2ColType;
use ttopt_passes::kernel_decisions::{MOST_CTAS, REDUCE_LOOP_ADDRESSES};

/// What to stop at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Stage {
    /// The input, parsed and verified.
    Ttir,
    /// With layouts.
    Ttgir,
    /// The `llvm` dialect.
    Llvm,
    /// Optimized LLVM IR.
    Llvmir,
    /// The target's assembly: PTX or AMDGCN.
    Asm,
    /// Assembly for NVIDIA GPUs.
    Ptx,
    /// Assembly for AMD GPUs.
    Amdgcn,
    /// A binary for the target: a cubin or an hsaco.
    Bin,
    /// A binary for NVIDIA GPUs.
    Cubin,
    /// A binary for AMD GPUs: a code object.
    Hsaco,
}

impl Stage {
    /// Whose GPUs have it; all have the others.
    fn vendor(self) -> Option<Vendor> {
        match self {
            Stage::Ptx | Stage::Cubin => Some(Vendor::Nvidia),
            Stage::Amdgcn | Stage::Hsaco => Some(Vendor::Amd),
            _ => None,
        }
    }

    /// Whether it is assembly.
    pub fn is_assembly(self) -> bool {
        matches!(self, Stage::Asm | Stage::Ptx | Stage::Amdgcn)
    }
}

/// What to compile for.
#[derive(Clone, Debug)]
pub struct Options {
    /// As in `ttg.target`: `cuda:80`; without one the module's, or `cuda:90`.
    pub target: Option<String>,
    /// Warps of a program.
    pub num_warps: u32,
    /// Stages of software pipelines.
    pub num_stages: u32,
    /// CTAs of a cluster that run one program.
    pub num_ctas: u32,
    /// What to stop at.
    pub emit: Stage,
    /// Stages or passes after which the IR is printed to stderr; `all` for all.
    pub print_after: Vec<String>,
    /// Whether passes explain their choices as remarks.
    pub explain: bool,
    /// Whether the IR is verified after each pass, not only after each stage.
    pub verify_each: bool,
    /// Whether all descriptors that can have a tensor map have one, also where pointers were measured to be
    /// faster.
    pub all_tensor_maps: bool,
}

/// How long the stages took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Reading and verifying the input.
    pub parse: Duration,
    /// TTIR to TTGIR.
    pub ttgir: Duration,
    /// TTGIR to optimized LLVM IR.
    pub llir: Duration,
    /// LLVM IR to assembly, or to an object file.
    pub asm: Duration,
    /// Assembly or an object file to a binary.
    pub bin: Duration,
}

impl Times {
    /// All stages together.
    pub fn total(&self) -> Duration {
        self.parse + self.ttgir + self.llir + self.asm + self.bin
    }
}

/// What a launcher needs to know.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// The kernel's symbol.
    pub name: String,
    /// As in `ttg.target`.
    pub target: String,
    /// Warps of a program.
    pub num_warps: u32,
    /// Threads of a program.
    pub threads: u32,
    /// Dynamic shared memory, in bytes.
    pub shared: u64,
    /// Global scratch memory, in bytes per program.
    pub global_scratch: u64,
    /// Alignment of the global scratch memory, in bytes.
    pub global_scratch_align: u64,
    /// Profile scratch memory, in bytes per program.
    pub profile_scratch: u64,
    /// CTAs of a cluster.
    pub cluster: u32,
    /// The tensor maps that the launcher makes of the descriptors among the arguments, in their order.
    pub tensor_maps: Vec<TensorMapArgument>,
}

/// An argument that is a tensor map (CUDA driver API, `cuTensorMapEncodeTiled`).
#[derive(Clone, Debug)]
pub struct TensorMapArgument {
    /// Elements of a box by dimension, the contiguous one last.
    pub box_shape: Vec<u64>,
    /// Bytes of an element.
    pub elem_bytes: u32,
    /// The number of the element's type, as PTX counts.
    pub elem_type: u32,
    /// The number of the swizzle mode.
    pub swizzle: u32,
    /// Whether it is made by `cuTensorMapEncodeIm2col` instead.
    pub is_im2col: bool,
}

impl Metadata {
    /// As JSON.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "name": self.name,
            "target": self.target,
            "num_warps": self.num_warps,
            "threads": self.threads,
            "shared": self.shared,
            "global_scratch_size": self.global_scratch,
            "global_scratch_align": self.global_scratch_align,
            "profile_scratch_size": self.profile_scratch,
            "cluster_size": self.cluster,
            "tensordesc_meta": self.tensor_maps.iter().map(TensorMapArgument::to_json).collect::<Vec<_>>(),
        })
    }
}

impl TensorMapArgument {
    /// As Triton's launcher reads it.
    fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "block_size": self.box_shape,
            "elem_size": self.elem_bytes,
            "elem_type": self.elem_type,
            "swizzle": self.swizzle,
            "fp4_padded": false,
            "is_im2col": self.is_im2col,
        })
    }

    /// That of an argument's type; `None` for other arguments.
    fn of(ty: Type<'_>, target: &str) -> Option<Result<Self>> {
        if let Some(im2col) = TensorDescIm2ColType::cast(ty) {
            return Some(Self::new(im2col.tiled()?, true, target));
        }
        Some(Self::new(TensorDescType::cast(ty)?, false, target))
    }

    fn new(desc: TensorDescType<'_>, is_im2col: bool, target: &str) -> Result<Self> {
        let target = known_target(target)?;
        let map = ttopt_passes::buffer_plans::tma_map(desc, &target).map_err(|err| anyhow!("{err}"))?;
        Ok(Self {
            box_shape: map.box_shape.to_vec(),
            elem_bytes: map.elem_bits / 8,
            elem_type: ttopt_passes::tma::element_type(desc.element()),
            swizzle: map.swizzle_mode(),
            is_im2col,
        })
    }
}

/// What came out.
pub struct Compiled {
    /// Text, or a binary.
    pub output: Vec<u8>,
    /// Of the kernel; absent before layouts are chosen.
    pub metadata: Option<Metadata>,
    /// How long the stages took.
    pub times: Times,
}

/// Compilation failed, and diagnostics that were printed say why: nobody need print this error, too.
#[derive(Debug, thiserror::Error)]
#[error("compilation failed")]
pub struct Reported;

/// Refuses what is neither bytecode nor text, and what MLIR's lexer would take for white space.
///
/// # Errors
/// What is in the input that no module has.
pub fn check_input(bytes: &[u8], name: &str) -> Result<()> {
    if is_bytecode(bytes) {
        return Ok(());
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => bail!("{name} is not MLIR text: it contains zero bytes"),
        Ok(_) => Ok(()),
        Err(err) => bail!("{name} is not MLIR text: byte {} is not UTF-8", err.valid_up_to()),
    }
}

/// Compiles a module, text or bytecode; `name` is its file name in diagnostics.
///
/// # Errors
/// [`Reported`] when MLIR has printed located diagnostics, otherwise the
/// message says what is wrong.
pub fn compile(input: &(impl AsRef<[u8]> + ?Sized), name: &str, options: &Options) -> Result<Compiled> {
    let before = mlir_host::poison::caught();
    let compiled = compile_stages(input.as_ref(), name, options)?;
    // What panicked on the way may have left something out.
    if mlir_host::poison::caught() == before { Ok(compiled) } else { Err(Reported.into()) }
}

fn compile_stages(input: &[u8], name: &str, options: &Options) -> Result<Compiled> {
    // Unknown targets and names are refused before any work.
    let wanted = options.target.as_deref().map(known_target).transpose()?;
    if let Some(wanted) = &wanted {
        check_stage(options.emit, wanted)?;
    }
    let wanted = wanted.map(|target| target.name);
    let pipeline = ttopt_passes::pipeline::Options {
        target: wanted.unwrap_or(DEFAULT_TARGET).to_owned(),
        num_warps: options.num_warps,
        num_stages: options.num_stages,
        num_ctas: options.num_ctas,
        explain: options.explain,
        all_tensor_maps: options.all_tensor_maps,
    };
    let to_ttgir = ttopt_passes::pipeline::ttir_to_ttgir(&pipeline);
    let to_llvm = |vendor| ttopt_lowering::ttgir_to_llvm(vendor, options.explain);
    let all = [to_llvm(Vendor::Nvidia), to_llvm(Vendor::Amd)].concat();
    let passes = || to_ttgir.iter().chain(&all).map(|pass| pass_name(pass));
    if let Some(name) = options
        .print_after
        .iter()
        .find(|name| !PRINTED.contains(&name.as_str()) && passes().all(|pass| pass != *name))
    {
        let mut known: Vec<&str> = Vec::new();
        PRINTED.into_iter().chain(passes()).for_each(|name| {
            if !known.contains(&name) {
                known.push(name);
            }
        });
        bail!("nothing to print after '{name}'; known are {}", known.join(", "));
    }
    let mut times = Times::default();
    let start = Instant::now();
    let context = make_context();
    // SAFETY: the context outlives the source.
    let source =
        unsafe { Source::new(context.to_raw(), input, name) }.map_err(|err| anyhow!("{name}: {err}"))?;
    let raw = source.parse().ok_or(Reported)?;
    // SAFETY: the module was just made and is owned here.
    let mut module = unsafe { Module::from_raw(raw) };
    times.parse = start.elapsed();
    print_after(options, "ttir", &module);
    if options.emit == Stage::Ttir {
        return Ok(Compiled { output: module_text(&module), metadata: None, times });
    }

    let start = Instant::now();
    if module_attr(&module, "ttg.num-warps").is_some() {
        let has = target_of(&module);
        if let (Some(wanted), Some(has)) = (wanted, has)
            && wanted != has
        {
            bail!("{name} has layouts for {has}, which --target {wanted} cannot change");
        }
    } else {
        run_passes(&context, &mut module, &to_ttgir, options)?;
    }
    times.ttgir = start.elapsed();
    print_after(options, "ttgir", &module);
    if options.emit == Stage::Ttgir {
        let metadata = metadata(&module, options).ok();
        return Ok(Compiled { output: module_text(&module), metadata, times });
    }

    let start = Instant::now();
    // Functions are counted while they are there, memory when it has been allocated.
    let mut metadata = metadata(&module, options)?;
    let target = known_target(&metadata.target)?;
    check_stage(options.emit, &target)?;
    run_passes(&context, &mut module, &to_llvm(target.vendor), options)?;
    let loops = module_attr(&module, REDUCE_LOOP_ADDRESSES).and_then(Attr::as_bool).unwrap_or(false);
    let most_ctas = number(&module, MOST_CTAS).unwrap_or(1);
    metadata.shared = number(&module, "ttg.shared").unwrap_or(0);
    metadata.global_scratch = number(&module, "ttg.global_scratch_memory_size").unwrap_or(0);
    metadata.global_scratch_align = number(&module, "ttg.global_scratch_memory_alignment").unwrap_or(1);
    print_after(options, "llvm", &module);
    if options.emit == Stage::Llvm {
        times.llir = start.elapsed();
        return Ok(Compiled { output: module_text(&module), metadata: Some(metadata), times });
    }
    let llvm_context = LlvmContext::create();
    let llvm = translate(&module, &llvm_context)?;
    let machine = codegen::target_machine(target.name)?;
    llvm.set_triple(&machine.get_triple());
    llvm.set_data_layout(&machine.get_target_data().get_data_layout());
    let with_library = device_library::link(&llvm, &target)?;
    codegen::optimize(&llvm, &machine, target.vendor, with_library, loops)?;
    times.llir = start.elapsed();
    if wants(options, "llvmir") {
        eprintln!("// -----// IR Dump After llvmir //----- //\n{}", llvm.print_to_string());
    }
    if options.emit == Stage::Llvmir {
        let output = llvm.print_to_string().to_bytes().to_vec();
        return Ok(Compiled { output, metadata: Some(metadata), times });
    }

    let start = Instant::now();
    if device_library::link_host_calls(&llvm, &target)? {
        codegen::optimize(&llvm, &machine, target.vendor, true, loops)?;
    }
    codegen::finish(&llvm, &machine, target.vendor)?;
    // AMD's linker takes object files, NVIDIA's assembler takes text.
    let object = target.vendor == Vendor::Amd && !options.emit.is_assembly();
    let kind = if object { codegen::Output::Object } else { codegen::Output::Assembly };
    let buffer = codegen::emit(&llvm, &machine, target.vendor, kind)?;
    let mut code =
        buffer.as_slice().strip_suffix(b"\0").filter(|_| !object).unwrap_or(buffer.as_slice()).to_vec();
    if target.vendor == Vendor::Nvidia {
        occupancy::bound(&mut code, most_ctas);
    }
    times.asm = start.elapsed();
    if options.emit.is_assembly() {
        return Ok(Compiled { output: code, metadata: Some(metadata), times });
    }

    let start = Instant::now();
    let output = match target.vendor {
        Vendor::Nvidia => binary::assemble(&code, target.name)?,
        Vendor::Amd => binary::link(&code)?,
    };
    times.bin = start.elapsed();
    Ok(Compiled { output, metadata: Some(metadata), times })
}

/// Refuses what a target does not have.
fn check_stage(stage: Stage, target: &TargetDesc) -> Result<()> {
    match stage.vendor() {
        Some(vendor) if vendor != target.vendor => {
            let has = match target.vendor {
                Vendor::Nvidia => "ptx and cubin",
                Vendor::Amd => "amdgcn and hsaco",
            };
            bail!("{} has no {}: it has {has}", target.name, format!("{stage:?}").to_lowercase())
        }
        _ => Ok(()),
    }
}

/// What a module is compiled for where nobody says so.
const DEFAULT_TARGET: &str = "cuda:90";

/// The stages that modules are printed after.
const PRINTED: [&str; 5] = ["all", "ttir", "ttgir", "llvm", "llvmir"];

fn known_target(name: &str) -> Result<TargetDesc> {
    TargetDesc::parse(name).map_err(|err| anyhow!("{err}"))
}

/// What a module in TTGIR is for: a name in one spelling, where it is known.
fn target_of<'a>(module: &'a Module<'_>) -> Option<&'a str> {
    let name = module_attr(module, "ttg.target").and_then(Attr::as_str)?;
    Some(TargetDesc::parse(name).map_or(name, |known| known.name))
}

/// The name of a pass in the syntax of textual pipelines.
fn pass_name(pass: &str) -> &str {
    pass.split(['{', '(']).next().unwrap_or(pass)
}

fn make_context() -> melior::Context {
    let mut registry = mlir_host::driver::Registry::new();
    registry.add_codegen();
    registry.add(&ttopt_dialect::DIALECTS);
    crate::passes().iter().for_each(|pass| pass.register());
    mlir_host::driver::register_transform_passes();
    let context = melior::Context::new();
    // SAFETY: both handles are valid; the context copies the registry.
    unsafe { mlir_sys::mlirContextAppendDialectRegistry(context.to_raw(), registry.raw()) };
    // A pass manager on one module of one kernel gains nothing from threads.
    context.enable_multi_threading(false);
    // Errors name a line of the source; the module as it is by then would bury it.
    // SAFETY: the context is valid.
    unsafe { mlir_host::driver::print_op_on_diagnostic(context.to_raw(), false) };
    context
}

fn as_op<'a>(module: &'a Module<'_>) -> Op<'a> {
    // SAFETY: the module lives for the returned lifetime, its operation is not null.
    unsafe { Op::from_raw(module.as_operation().to_raw()) }.expect("a module is an operation")
}

fn module_attr<'a>(module: &'a Module<'_>, name: &str) -> Option<Attr<'a>> {
    as_op(module).attr(name)
}

fn number(module: &Module<'_>, name: &str) -> Option<u64> {
    module_attr(module, name).and_then(Attr::as_int).and_then(|n| u64::try_from(n).ok())
}

fn module_text(module: &Module<'_>) -> Vec<u8> {
    as_op(module).to_string().into_bytes()
}

fn wants(options: &Options, what: &str) -> bool {
    options.print_after.iter().any(|name| name == what || name == "all")
}

fn print_after(options: &Options, what: &str, module: &Module<'_>) {
    if wants(options, what) {
        eprintln!("// -----// IR Dump After {what} //----- //\n{}", as_op(module));
    }
}

/// Runs the passes of a stage, given in the syntax of textual pipelines, one after another,
/// and verifies what they make.
fn run_passes(
    context: &melior::Context,
    module: &mut Module<'_>,
    passes: &[String],
    options: &Options,
) -> Result<()> {
    let each = !options.print_after.is_empty();
    let groups: Vec<String> = if each { passes.to_vec() } else { vec![passes.join(",")] };
    for group in groups {
        tracing::debug!(passes = %group, "running");
        let manager = PassManager::new(context);
        melior::utility::parse_pass_pipeline(
            manager.as_operation_pass_manager(),
            &format!("builtin.module({group})"),
        )
        .with_context(|| format!("pass pipeline {group}"))?;
        manager.enable_verifier(options.verify_each);
        if manager.run(module).is_err() {
            return Err(Reported.into());
        }
        if each {
            print_after(options, pass_name(&group), module);
        }
    }
    if options.verify_each || as_op(module).verify() { Ok(()) } else { Err(Reported.into()) }
}

fn metadata(module: &Module<'_>, options: &Options) -> Result<Metadata> {
    let number = |name: &str| number(module, name);
    let op = as_op(module);
    let body = op.region(0).first_block();
    let kernels: Vec<Op<'_>> = body
        .into_iter()
        .flat_map(|block| block.ops())
        .filter(|op| FuncOp::cast(*op).is_some())
        .filter(|op| !ttopt_passes::is_private(*op))
        .collect();
    let kernel = match kernels.as_slice() {
        [] => bail!("the module has no public tt.func to compile"),
        [one] => one,
        many => bail!("the module has {} public functions; a kernel is the only one", many.len()),
    };
    let name = kernel.attr("sym_name").and_then(Attr::as_str).unwrap_or_default().to_owned();
    let num_warps = number("ttg.num-warps").unwrap_or(options.num_warps.into()) as u32;
    let lanes = number("ttg.threads-per-warp").unwrap_or(32) as u32;
    // Lowering refuses an unknown one where it stands.
    let target = target_of(module).unwrap_or(options.target.as_deref().unwrap_or(DEFAULT_TARGET)).to_owned();
    let args = kernel.region(0).first_block().into_iter().flat_map(|block| block.args());
    let tensor_maps =
        args.filter_map(|arg| TensorMapArgument::of(arg.ty(), &target)).collect::<Result<_>>()?;
    Ok(Metadata {
        name,
        target,
        num_warps,
        threads: num_warps * lanes,
        shared: number("ttg.shared").unwrap_or(0),
        global_scratch: number("ttg.global_scratch_memory_size").unwrap_or(0),
        profile_scratch: number("ttg.profile_scratch_memory_size").unwrap_or(0),
        global_scratch_align: number("ttg.global_scratch_memory_alignment").unwrap_or(1),
        cluster: number("ttg.num-ctas").unwrap_or(1) as u32,
        tensor_maps,
    })
}

fn translate<'a>(module: &Module<'_>, context: &'a LlvmContext) -> Result<LlvmModule<'a>> {
    // SAFETY: the operation is a module in the llvm dialect and the LLVM
    // context lives for the result. Both APIs describe one LLVM, in one library.
    unsafe {
        let raw = mlir_sys::mlirTranslateModuleToLLVMIR(module.as_operation().to_raw(), context.raw().cast());
        if raw.is_null() {
            return Err(Reported.into());
        }
        Ok(LlvmModule::new(raw.cast()))
    }
}
