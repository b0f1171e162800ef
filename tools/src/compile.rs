//! The one-shot compiler: TTIR or TTGIR, text or bytecode, to any later stage.

mod loads_ahead;
mod options;
mod results;
mod room;

use crate::binary::{self, Resources};
use crate::contexts::Contexts;
use crate::diagnostics::{Handler, Sink};
use crate::occupancy::{self, Assembled, Chosen, Limits};
use crate::overrides::{self, Expected};
use crate::refusal::Refusal;
use crate::{codegen, device_library, llvm_errors};
use anyhow::{Context as _, Result, anyhow, bail};
use inkwell::context::Context as LlvmContext;
use inkwell::module::Module as LlvmModule;
use inkwell::targets::TargetMachine;
use linear_layout::show::timeline;
use linear_layout::target::{TargetDesc, Vendor};
use melior::ir::Module;
use mlir_host::bytecode::is_bytecode;
use mlir_host::driver::{Pipelines, Source};
use mlir_host::ir::{Attr, Op, Walk};
use mlir_host::upstream::LlvmFenceOp;
use std::borrow::Cow;
use std::time::Instant;
use ttopt_dialect::tt::ops::FuncOp;
use ttopt_dialect::ttg::module_attrs::{TARGET, TOTAL_NUM_WARPS};
use ttopt_lowering::{FLUSH_DENORMALS, FP_FUSION, LINE_INFO, MAX_REGISTERS, WAVES_PER_EU, flushes_denormals};
use ttopt_passes::choice::{Choice, Unit};
use ttopt_passes::estimate::Estimate;
use ttopt_passes::kernel_decisions::{MOST_CTAS, REDUCE_LOOP_ADDRESSES};
use ttopt_passes::last_use::COMES_BACK;
use ttopt_passes::schedule::pass::{FEW_PROGRAMS, SCHEDULES};

pub use options::{Options, Stage, launch_of_json};
pub use results::{Artifacts, Compiled, Metadata, TensorMapArgument, Times};

/// Compilation failed, and diagnostics that were printed say why: nobody need print this error, too.
#[derive(Debug, thiserror::Error)]
#[error("compilation failed")]
pub struct Reported;

/// The caller did not want it any more.
#[derive(Debug, thiserror::Error)]
#[error("compilation was cancelled")]
pub struct Cancelled;

/// What a caller hears and says while it compiles.
#[derive(Default)]
pub struct Control<'a> {
    /// Takes diagnostics; without it they are printed to stderr with the lines that they are about.
    pub diagnostics: Option<&'a mut Sink<'a>>,
    /// Asked between passes and stages.
    pub is_cancelled: Option<&'a (dyn Fn() -> bool + 'a)>,
}

/// Refuses what is neither bytecode nor text, and what MLIR's lexer would take for white space.
///
/// # Errors
/// What is in the input that no module has.
pub fn check_input(bytes: &[u8], name: &str) -> Result<()> {
    if is_bytecode(bytes) {
        return Ok(());
    }
    if bytes.trim_ascii().is_empty() {
        bail!("{name}: the file is empty");
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
    compile_with(input, name, options, Control::default())
}

/// [`compile`] for a caller that takes the diagnostics, or that may change its mind.
///
/// # Errors
/// As [`compile`], and [`Cancelled`].
pub fn compile_with(
    input: &(impl AsRef<[u8]> + ?Sized),
    name: &str,
    options: &Options,
    control: Control<'_>,
) -> Result<Compiled> {
    compile_among(&Contexts::default(), input.as_ref(), name, options, control)
}

/// [`compile_with`] in one of the contexts, or in a new one.
pub(crate) fn compile_among(
    contexts: &Contexts,
    input: &[u8],
    name: &str,
    options: &Options,
    control: Control<'_>,
) -> Result<Compiled> {
    check_input(input, name)?;
    // Unknown targets and names are refused before any work.
    let wanted = options.target.as_deref().map(known_target).transpose()?;
    if let Some(wanted) = &wanted {
        check_stage(options.emit, wanted)?;
    }
    overrides::check_use(&options.overrides, options.emit)?;
    let passes = Passes::new(options, wanted.as_ref(), control.diagnostics.is_none())?;
    let start = Instant::now();
    let given = options.overrides.iter().map(|given| given.bytes.as_slice());
    let inputs: Vec<&[u8]> = std::iter::once(input).chain(given).collect();
    contexts.with(&inputs, |context, pipelines| {
        let wanted = wanted.map(|target| target.name);
        compile_in(context, input, name, options, control, Prepared { wanted, passes, pipelines, start })
    })
}

/// What was found out before there is a module.
struct Prepared<'a> {
    wanted: Option<&'static str>,
    passes: Passes,
    pipelines: &'a Pipelines,
    start: Instant,
}

fn compile_in(
    context: &melior::Context,
    input: &[u8],
    name: &str,
    options: &Options,
    control: Control<'_>,
    prepared: Prepared<'_>,
) -> Result<Compiled> {
    let Prepared { wanted, passes, pipelines, start } = prepared;
    let source = |input: &[u8], name: &str| {
        let input = ttopt_dialect::legacy::with_numbers_as_masks(input);
        // SAFETY: the context outlives the source.
        unsafe { Source::new(context.to_raw(), &input, name) }.map_err(|err| anyhow!("{name}: {err}"))
    };
    let given = |stage: Stage| {
        let given = overrides::of(&options.overrides, stage);
        given.map(|given| {
            check_input(&given.bytes, &given.name).and_then(|()| source(&given.bytes, &given.name))
        })
    };
    let (ttir, ttgir) = (given(Stage::Ttir).transpose()?, given(Stage::Ttgir).transpose()?);
    let source = source(input, name)?;
    // Attached last, asked first: the sources' own handlers print.
    let Control { diagnostics, is_cancelled } = control;
    // SAFETY: the sink is borrowed for longer than this function takes, and the context has no threads.
    let _handler = diagnostics.map(|sink| unsafe { Handler::attach_borrowed(context.into(), sink) });
    let module = parse(context, &source)?;
    let parse = |source: &Source| parse(context, source);
    let (ttir, ttgir) = (ttir.as_ref().map(parse).transpose()?, ttgir.as_ref().map(parse).transpose()?);
    let mut compilation = Compilation {
        module,
        name,
        options,
        is_cancelled,
        wanted,
        ttgir: None,
        passes,
        pipelines,
        anew: &|| parse(&source),
        waits: false,
        copies: false,
        replicates: false,
        leaves_room: false,
        second: None,
        spills: 0,
        made: Compiled::default(),
    };
    if let Some(ttir) = ttir {
        compilation.replace_ttir(ttir)?;
    }
    compilation.ttgir = ttgir;
    compilation.made.times.parse = start.elapsed();
    compilation.run()?;
    // What panicked on the way may have left something out.
    if as_op(&compilation.module).context().is_poisoned() {
        return Err(Reported.into());
    }
    Ok(compilation.made)
}

/// Parses, verifies and upgrades a module.
fn parse<'c>(context: &'c melior::Context, source: &Source) -> Result<Module<'c>> {
    let raw = source.parse().ok_or(Reported)?;
    // SAFETY: the module was just made and is owned here.
    let module = unsafe { Module::from_raw(raw) };
    context.get_or_load_dialect("ttg");
    ttopt_dialect::legacy::upgrade(as_op(&module)).map_err(|_| Reported)?;
    Ok(module)
}

/// The passes of all stages, in the syntax of textual pipelines.
struct Passes {
    to_ttgir: Vec<String>,
    explain: bool,
    /// Whether the table of layouts may be printed to stderr, which only a tool does.
    prints: bool,
}

impl Passes {
    /// Refuses names of passes to print after that no pass has.
    fn new(options: &Options, wanted: Option<&TargetDesc>, prints: bool) -> Result<Self> {
        let target = wanted.map_or(DEFAULT_TARGET, |target| target.name);
        let made = Self::as_told(&Self::of(options, target), prints);
        let all = [made.to_llvm(Vendor::Nvidia), made.to_llvm(Vendor::Amd)].concat();
        let passes = || made.to_ttgir.iter().chain(&all).map(|pass| pass_name(pass));
        let mut asked = options.print_after.iter().map(String::as_str);
        if let Some(name) = asked.find(|name| !PRINTED.contains(name) && passes().all(|pass| pass != *name)) {
            let mut known: Vec<&str> = Vec::new();
            for name in PRINTED.into_iter().chain(passes()) {
                if !known.contains(&name) {
                    known.push(name);
                }
            }
            bail!("nothing to print after '{name}'; known are {}", known.join(", "));
        }
        Ok(made)
    }

    /// The passes that are told so.
    fn as_told(pipeline: &ttopt_passes::pipeline::Options, prints: bool) -> Self {
        let mut to_ttgir = ttopt_passes::pipeline::ttir_to_ttgir(pipeline);
        if !prints {
            to_ttgir.iter_mut().for_each(|pass| *pass = pass.replace("{table=true}", ""));
        }
        Self { to_ttgir, explain: pipeline.explain, prints }
    }

    /// What passes are told for `target`.
    fn of(options: &Options, target: &str) -> ttopt_passes::pipeline::Options {
        let mut pipeline = ttopt_passes::pipeline::Options::for_target(target);
        pipeline.num_warps = options.num_warps;
        pipeline.num_stages = options.num_stages;
        pipeline.num_ctas = options.num_ctas;
        pipeline.explain = options.explain;
        pipeline.record_schedules = options.schedules;
        pipeline.all_tensor_maps = options.all_tensor_maps;
        pipeline
    }

    fn to_llvm(&self, vendor: Vendor) -> Vec<String> {
        ttopt_lowering::ttgir_to_llvm(vendor, self.explain)
    }
}

/// A module on its way through the stages.
struct Compilation<'a, 'c> {
    module: Module<'c>,
    name: &'a str,
    options: &'a Options,
    is_cancelled: Option<&'a (dyn Fn() -> bool + 'a)>,
    wanted: Option<&'static str>,
    /// What takes the place of the TTGIR.
    ttgir: Option<Module<'c>>,
    passes: Passes,
    pipelines: &'a Pipelines,
    /// The input once more.
    anew: &'a dyn Fn() -> Result<Module<'c>>,
    /// Whether all that runs ahead in some loop only waits in registers, which nobody asked for.
    waits: bool,
    /// Whether some loop has the stages that the options ask for, and copies for later iterations.
    copies: bool,
    /// Whether many threads load the same in some load.
    replicates: bool,
    /// Whether rings leave shared memory for a second CTA.
    leaves_room: bool,
    /// What became of it without loads that wait in registers, with one stage, or with few threads that load the same.
    second: Option<Compiled>,
    /// Vector registers that the code for an AMD GPU spills, where that is short enough to be made in other ways.
    spills: u64,
    made: Compiled,
}

impl<'c> Compilation<'_, 'c> {
    /// Each stage takes what it needs from the one before.
    fn run(&mut self) -> Result<()> {
        self.print_after("ttir");
        if self.finish_text(Stage::Ttir)? {
            return Ok(());
        }
        self.make_ttgir()?;
        self.leave_room()?;
        self.make_second()?;
        if self.finish_text(Stage::Ttgir)? {
            self.made.metadata = metadata(&self.module, self.options).ok();
            return Ok(());
        }
        let start = Instant::now();
        let target = self.make_llvm()?;
        if self.finish_text(Stage::Llvm)? {
            self.made.times.llir = start.elapsed();
            return Ok(());
        }
        let llvm_context = LlvmContext::create();
        let errors = llvm_errors::Errors::collect(&llvm_context);
        let fences = self.fences(&target);
        let made = codegen::with_machine(target.name, fences, |machine| {
            self.with_llvm(&llvm_context, &target, machine, start)
        });
        match errors.first() {
            Some(error) => return Err(self.place(Refusal::of_llvm(&error).into())),
            None => made.map_err(|error| self.place(error))?,
        }
        self.take_least_spills()
    }

    /// Whether lowering made fences that hang on the assembler's version.
    fn fences(&self, target: &TargetDesc) -> codegen::Fences {
        let stops = |op| if LlvmFenceOp::cast(op).is_some() { Walk::Stop } else { Walk::Advance };
        match target.vendor == Vendor::Nvidia && as_op(&self.module).walk(&mut |op| stops(op)) == Walk::Stop {
            true => codegen::Fences::Present,
            false => codegen::Fences::Absent,
        }
    }

    /// Reports what a back end refuses where it belongs. What it refuses of code that a caller edited is no matter of the source.
    fn place(&self, error: anyhow::Error) -> anyhow::Error {
        let Some(refusal) = error.downcast_ref::<Refusal>().filter(|_| self.options.overrides.is_empty())
        else {
            return error;
        };
        let kernel = self.made.metadata.as_ref().map_or("", |metadata| &metadata.name);
        refusal.report(as_op(&self.module), kernel);
        Reported.into()
    }

    /// Keeps the module as text where that is wanted; says whether it is the last thing wanted.
    fn finish_text(&mut self, stage: Stage) -> Result<bool> {
        let is_last = self.options.emit == stage;
        let keeps = self.keeps() && stage != Stage::Llvm;
        if is_last || keeps {
            let text = module_text(&self.module, self.options.locations);
            self.keep(stage, text)?;
        }
        Ok(is_last)
    }

    /// Whether stages before the last one are wanted.
    fn keeps(&self) -> bool {
        self.options.keep || self.options.dump.is_some()
    }

    /// Takes what a stage made.
    fn keep(&mut self, stage: Stage, bytes: Vec<u8>) -> Result<()> {
        self.dump(stage, &bytes)?;
        if self.options.keep {
            let artifacts = &mut self.made.artifacts;
            let place = match stage {
                Stage::Ttir => &mut artifacts.ttir,
                Stage::Ttgir => &mut artifacts.ttgir,
                Stage::Llvm => &mut artifacts.llvm,
                Stage::Llvmir => &mut artifacts.llvmir,
                Stage::Asm | Stage::Ptx | Stage::Amdgcn => &mut artifacts.asm,
                Stage::Bin | Stage::Cubin | Stage::Hsaco => &mut artifacts.bin,
                Stage::Sass => &mut artifacts.sass,
            };
            *place = Some(bytes.clone());
        }
        self.made.output = bytes;
        Ok(())
    }

    /// Writes what a stage made where stages are to be written.
    fn dump(&self, stage: Stage, bytes: &[u8]) -> Result<()> {
        let Some(folder) = &self.options.dump else { return Ok(()) };
        let target = self.made.metadata.as_ref().map(|metadata| metadata.target.as_str());
        let is_amd = target
            .and_then(|name| TargetDesc::parse(name).ok())
            .is_some_and(|target| target.vendor == Vendor::Amd);
        let extension = match stage {
            Stage::Ttir => "ttir",
            Stage::Ttgir => "ttgir",
            // It is between the stages of Triton.
            Stage::Llvm => return Ok(()),
            Stage::Llvmir => "llir",
            Stage::Asm | Stage::Ptx | Stage::Amdgcn => {
                if is_amd {
                    "amdgcn"
                } else {
                    "ptx"
                }
            }
            Stage::Bin | Stage::Cubin | Stage::Hsaco => {
                if is_amd {
                    "hsaco"
                } else {
                    "cubin"
                }
            }
            Stage::Sass => "sass",
        };
        let known = self.made.metadata.as_ref().map(|metadata| metadata.name.as_str());
        let name = known.or_else(|| kernel_of(&self.module).ok().map(kernel_name)).unwrap_or("module");
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let path = folder.join(format!("{name}.{extension}"));
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }

    fn make_ttgir(&mut self) -> Result<()> {
        let start = Instant::now();
        self.set_limits();
        if is_ttgir(&self.module) {
            if let (Some(wanted), Some(has)) = (self.wanted, target_of(&self.module))
                && wanted != has
            {
                bail!("{} has layouts for {has}, which --target {wanted} cannot change", self.name);
            }
        } else if self.ttgir.is_none() {
            let passes = std::mem::take(&mut self.passes.to_ttgir);
            // Loops are counted while an iteration is one.
            let pipeline = passes.iter().position(|pass| pass_name(pass) == "tritongpu-pipeline");
            let (before, after) =
                passes.split_at(pipeline.filter(|_| self.options.estimate.is_some()).unwrap_or(0));
            if !before.is_empty() {
                self.run_passes(before)?;
            }
            if let Some(launch) = &self.options.estimate {
                self.made.estimate = Some(Estimate::of(as_op(&self.module), launch).map_err(|_| Reported)?);
            }
            self.run_passes(after)?;
            self.take_schedules()?;
        }
        if let Some(ttgir) = self.ttgir.take() {
            self.replace_ttgir(ttgir)?;
        }
        self.set_target();
        self.made.times.ttgir = start.elapsed();
        self.print_after("ttgir");
        Ok(())
    }

    /// Takes what passes wrote down of loops out of the module.
    fn take_schedules(&mut self) -> Result<()> {
        if !self.options.schedules {
            return Ok(());
        }
        let module = as_op(&self.module);
        let texts = module.attr(SCHEDULES).and_then(Attr::as_array).unwrap_or_default();
        let texts = texts.into_iter().filter_map(Attr::as_str);
        let read =
            texts.map(|text| timeline::from_json(text).map_err(|err| anyhow!("internal: schedules: {err}")));
        let loops = read.collect::<Result<Vec<_>>>()?.concat();
        module.remove_attr(SCHEDULES);
        self.made.schedules = Some(loops);
        Ok(())
    }

    /// Takes TTIR in the place of the input.
    fn replace_ttir(&mut self, given: Module<'c>) -> Result<()> {
        let name = name_of_override(self.options, Stage::Ttir);
        if is_ttgir(&self.module) {
            bail!("{name} is not used: {} has layouts already", self.name);
        }
        if is_ttgir(&given) {
            bail!("{name} is TTGIR: it has layouts");
        }
        check_kernel(&self.module, &given, name)?;
        self.module = given;
        Ok(())
    }

    /// Takes TTGIR in the place of what passes would make, for the same kernel and target.
    fn replace_ttgir(&mut self, given: Module<'c>) -> Result<()> {
        let name = name_of_override(self.options, Stage::Ttgir);
        if !is_ttgir(&given) {
            bail!("{name} is not TTGIR: it does not say how many warps there are (ttg.num-warps)");
        }
        check_kernel(&self.module, &given, name)?;
        let wanted = target_of(&self.module).or(self.wanted).unwrap_or(DEFAULT_TARGET);
        match target_of(&given) {
            Some(found) if found != wanted => {
                bail!("{name} is for {found}, and the kernel is compiled for {wanted}")
            }
            _ => {}
        }
        self.module = given;
        self.set_limits();
        Ok(())
    }

    /// Writes the target that the caller names, or the default, into TTGIR that names none, as people write it for Triton.
    fn set_target(&self) {
        let module = as_op(&self.module);
        if module.attr(TARGET).is_none() {
            module.set_attr(TARGET, Attr::string(module.context(), self.wanted.unwrap_or(DEFAULT_TARGET)));
        }
    }

    /// Writes down for lowering what the caller asks of the code.
    fn set_limits(&self) {
        let module = as_op(&self.module);
        let context = module.context();
        if let Some(registers) = self.options.max_registers {
            module.set_attr(MAX_REGISTERS, Attr::int(context, 32, registers.into()));
        }
        if let Some(waves) = self.options.waves_per_eu {
            module.set_attr(WAVES_PER_EU, Attr::int(context, 32, waves.into()));
        }
        if !self.options.fp_fusion {
            module.set_attr(FP_FUSION, Attr::bool(context, false));
        }
        if !self.options.line_info {
            module.set_attr(LINE_INFO, Attr::bool(context, false));
        }
        if !self.options.flush_denormals {
            module.set_attr(FLUSH_DENORMALS, Attr::bool(context, false));
        }
    }

    fn make_llvm(&mut self) -> Result<TargetDesc> {
        // Functions are counted while they are there, memory when it has been allocated.
        let mut metadata = metadata(&self.module, self.options).map_err(Fault::report)?;
        let target = known_target(&metadata.target)
            .map_err(|err| Fault { op: as_op(&self.module), text: err.to_string() }.report())?;
        check_stage(self.options.emit, &target)?;
        self.check_limits(&target)?;
        let passes = self.passes.to_llvm(target.vendor);
        self.run_passes(&passes)?;
        // A launch has the warps of partitions, too.
        if let Some(total) = number(&self.module, TOTAL_NUM_WARPS).and_then(|total| u32::try_from(total).ok())
        {
            (metadata.num_warps, metadata.threads) = (total, total * target.lanes);
        }
        metadata.shared = number(&self.module, "ttg.shared").unwrap_or(0);
        metadata.global_scratch = number(&self.module, "ttg.global_scratch_memory_size").unwrap_or(0);
        metadata.global_scratch_align =
            number(&self.module, "ttg.global_scratch_memory_alignment").unwrap_or(1);
        self.made.metadata = Some(metadata);
        self.print_after("llvm");
        Ok(target)
    }

    /// Refuses numbers of waves that LLVM would pass over in silence, and what is for other GPUs than the target's.
    fn check_limits(&self, target: &TargetDesc) -> Result<()> {
        if target.vendor == Vendor::Amd {
            let name = target.name;
            if self.options.max_registers.is_some() {
                bail!(
                    "a most of registers is for NVIDIA GPUs, the target is {name}: waves per EU give out AMD's"
                );
            }
            if !self.options.ptxas_options.is_empty() {
                bail!("options of ptxas are for NVIDIA GPUs, the target is {name}");
            }
        }
        let Some(waves) = number(&self.module, WAVES_PER_EU) else { return Ok(()) };
        match (target.vendor, target.simd_waves) {
            (Vendor::Amd, most) if (1..=u64::from(most)).contains(&waves) => Ok(()),
            (Vendor::Amd, most) => {
                bail!("{waves} waves per EU are asked for, {} has at least 1 and at most {most}", target.name)
            }
            _ => bail!("waves per EU are for AMD GPUs, the target is {}", target.name),
        }
    }

    fn with_llvm(
        &mut self,
        context: &LlvmContext,
        target: &TargetDesc,
        machine: &TargetMachine,
        start: Instant,
    ) -> Result<()> {
        let metadata = self.made.metadata.clone().unwrap_or_default();
        let expected = Expected { kernel: &metadata.name, target, threads: metadata.threads };
        let llvm = self.optimized_llvm(context, machine, &expected)?;
        self.made.times.llir = start.elapsed();
        if self.wants("llvmir") {
            eprintln!("// -----// IR Dump After llvmir //----- //\n{}", llvm.print_to_string());
        }
        if self.keeps() || self.options.emit == Stage::Llvmir {
            self.keep(Stage::Llvmir, llvm.print_to_string().to_bytes().to_vec())?;
        }
        if self.options.emit == Stage::Llvmir {
            return Ok(());
        }
        self.check_cancelled()?;
        let start = Instant::now();
        if let Some(given) = overrides::of(&self.options.overrides, Stage::Asm) {
            let code = overrides::read_assembly(given, machine, &expected)?;
            self.keep(Stage::Asm, code.clone())?;
            self.made.times.asm = start.elapsed();
            return if self.options.emit.is_assembly() {
                Ok(())
            } else {
                self.make_binary_of(&code, &given.name, target, machine)
            };
        }
        let contents = self.finish_llvm(&llvm, target, machine)?;
        // AMD's linker takes object files, NVIDIA's assembler takes text.
        let object = target.vendor == Vendor::Amd && !self.options.emit.is_assembly();
        let kind = if object { codegen::Output::Object } else { codegen::Output::Assembly };
        let emit =
            |llvm: &LlvmModule<'_>, attempt: &codegen::Attempt, kind: codegen::Output| -> Result<Vec<u8>> {
                codegen::attempt(llvm, attempt);
                let buffer = codegen::emit(llvm, machine, target.vendor, contents, attempt, kind)?;
                let bytes = buffer.as_slice();
                Ok(if kind == codegen::Output::Object { bytes } else { without_zero(bytes) }.to_vec())
            };
        // Code generation changes the module.
        let shown = (object && self.keeps()).then(|| llvm.clone());
        let can_be_tried = target.vendor == Vendor::Amd && codegen::can_be_tried(&llvm);
        let mut attempt = codegen::Attempt::new();
        let mut code = emit(&llvm, &attempt, kind)?;
        if can_be_tried && codegen::spills(&code) > (0, 0) {
            // MLIR does not make the domain of an alias scope twice in a context: it changes a node that is there already.
            let other_context = LlvmContext::create();
            let again = self.optimized_llvm(&other_context, machine, &expected)?;
            self.finish_llvm(&again, target, machine)?;
            // A copy has its uses in another order, which instruction selection sees.
            let other = |attempt: &codegen::Attempt| emit(&again.clone(), attempt, kind);
            let (spreads, length) = (codegen::spreads(&again), codegen::length(&again));
            (code, attempt) = codegen::with_least_spills(code, machine, spreads, length, other)?;
            self.spills = codegen::spills(&code).0;
        }
        if let Some(shown) = shown {
            self.keep(Stage::Asm, emit(&shown, &attempt, codegen::Output::Assembly)?)?;
        }
        // A number of registers that the caller demands decides how many CTAs there are.
        let mut bound = None;
        if target.vendor == Vendor::Nvidia && self.options.max_registers.is_none() {
            let most = number(&self.module, MOST_CTAS).unwrap_or(1);
            let mut tell = |choice: &Choice| self.remark(&metadata.name, choice);
            let tell: Option<&mut dyn FnMut(&Choice)> =
                if self.options.explain { Some(&mut tell) } else { None };
            let few = self.has_few_programs() || module_attr(&self.module, COMES_BACK).is_some();
            bound = occupancy::bound_and_tell(&mut code, most, few, tell);
        }
        if !object {
            self.keep(Stage::Asm, code.clone())?;
        }
        self.made.times.asm = start.elapsed();
        if let Some(bound) = bound {
            self.made.ctas = bound.ctas;
            self.make_second_of_many_registers(bound.registers)?;
        }
        self.make_second_with_few_replicas()?;
        let more = self.take_second(&metadata);
        self.made.times.asm += more;
        if self.options.emit.is_assembly() {
            return Ok(());
        }
        self.check_cancelled()?;
        self.make_binary(&code, target)
    }

    /// Whether there are likely too few programs for as many CTAs as fit.
    fn has_few_programs(&self) -> bool {
        module_attr(&self.module, FEW_PROGRAMS).is_some()
    }

    /// Says at the kernel, which is lowered already, what was chosen.
    fn remark(&self, kernel: &str, choice: &Choice) {
        let body = as_op(&self.module).region(0).first_block();
        let is_kernel = |op: &Op<'_>| op.attr("sym_name").and_then(Attr::as_str) == Some(kernel);
        if let Some(op) = body.into_iter().flat_map(|block| block.ops()).find(is_kernel) {
            op.remark(choice.to_string());
        }
    }

    /// Whether LLVM's passes for loops run before code generation.
    fn reduces_loops(&self) -> bool {
        module_attr(&self.module, REDUCE_LOOP_ADDRESSES).and_then(Attr::as_bool).unwrap_or(false)
    }

    /// Optimized LLVM IR: of the `llvm` dialect, or what takes its place.
    fn optimized_llvm<'l>(
        &self,
        context: &'l LlvmContext,
        machine: &TargetMachine,
        expected: &Expected<'_>,
    ) -> Result<LlvmModule<'l>> {
        if let Some(given) = overrides::of(&self.options.overrides, Stage::Llvmir) {
            return overrides::read_llvm(given, context, machine, expected);
        }
        let (target, companions) = (expected.target, &self.options.companions);
        let llvm = translate(&self.module, context)?;
        llvm.set_triple(&machine.get_triple());
        llvm.set_data_layout(&machine.get_target_data().get_data_layout());
        if target.vendor == Vendor::Nvidia && flushes_denormals(as_op(&self.module)) {
            device_library::flush_denormals(&llvm);
        }
        codegen::define_arguments(&llvm, target.vendor);
        let linked = device_library::link(&llvm, machine, target, companions)?;
        self.check_cancelled()?;
        codegen::optimize(&llvm, machine, target.vendor, linked, self.reduces_loops())?;
        Ok(llvm)
    }

    /// Runs what comes before code generation and is not shown as LLVM IR. Says what the module may have in it.
    fn finish_llvm(
        &self,
        llvm: &LlvmModule<'_>,
        target: &TargetDesc,
        machine: &TargetMachine,
    ) -> Result<codegen::Contents> {
        let Options { companions, overrides, .. } = self.options;
        let calls_host = device_library::link_host_calls(llvm, target, companions)?;
        if calls_host {
            let raw = device_library::Linked::Raw;
            codegen::optimize(llvm, machine, target.vendor, raw, self.reduces_loops())?;
        }
        codegen::finish(llvm, machine, target.vendor)?;
        let is_given = overrides::of(overrides, Stage::Llvmir).is_some();
        let is_lowered = !calls_host && !is_given && companions.more_libraries.is_empty();
        Ok(if is_lowered { codegen::Contents::Lowered } else { codegen::Contents::Anything })
    }

    /// The binary of assembly that a caller wrote, as it is.
    fn make_binary_of(
        &mut self,
        code: &[u8],
        name: &str,
        target: &TargetDesc,
        machine: &TargetMachine,
    ) -> Result<()> {
        let start = Instant::now();
        let Options { companions, ptxas_options, .. } = self.options;
        let (bytes, resources) = match target.vendor {
            Vendor::Nvidia => binary::assemble(code, target.name, companions, ptxas_options)
                .with_context(|| format!("{name} cannot be assembled"))?,
            Vendor::Amd => {
                let object = codegen::assemble(code, name, machine)?;
                (binary::link(&object, companions)?, Resources::of_amd(&object))
            }
        };
        self.finish_binary(bytes, resources, target, start)
    }

    /// The binary of assembly: the best of those of texts that say the same (`occupancy::best_text`).
    fn make_binary(&mut self, code: &[u8], target: &TargetDesc) -> Result<()> {
        let start = Instant::now();
        let Options { companions, ptxas_options, max_registers, .. } = self.options;
        let assemble = |code: &[u8]| {
            let (cubin, facts) = binary::assemble(code, target.name, companions, ptxas_options)?;
            // A stack may also hold what a kernel prints.
            let spills = facts.filter(|facts: &Resources| facts.spill_stores > 0);
            anyhow::Ok(Assembled { cubin, stack: spills.map_or(0, |facts| facts.stack), facts })
        };
        let (bytes, resources) = match target.vendor {
            Vendor::Nvidia => {
                let most_ctas = number(&self.module, MOST_CTAS).unwrap_or(1);
                let keeps_ctas = max_registers.is_some();
                let few_programs = self.has_few_programs();
                let limits = Limits { keeps_ctas, few_programs, ..Limits::new(target.name, most_ctas) };
                // A text that is refused is a mistake of ours that costs no more than a warning.
                let other = |code: &[u8]| {
                    let made = assemble(code);
                    made.inspect_err(|error| tracing::warn!("other text for a kernel is left: {error:#}"))
                        .ok()
                };
                let made = occupancy::with_next_text(code, limits, || assemble(code), &other);
                // So is a bound that leaves an instruction too few registers.
                let (made, code) = match made {
                    Ok(made) => (made, Cow::Borrowed(code)),
                    Err(error) => {
                        let text = occupancy::unbounded(code);
                        let Some((made, text)) = text.and_then(|text| Some((assemble(&text).ok()?, text)))
                        else {
                            return Err(error);
                        };
                        tracing::warn!("a kernel has no bound on its CTAs: {error:#}");
                        self.keep(Stage::Asm, text.clone())?;
                        ((made, None), Cow::Owned(text))
                    }
                };
                let code = &*code;
                let go_on = || self.check_cancelled().is_ok();
                let first = occupancy::best_text(code, made, limits, &other, &go_on);
                let second = self.made.second.as_deref();
                let Chosen { made, text, tried, place } =
                    occupancy::better_of(first, second, limits, &other, &go_on);
                self.check_cancelled()?;
                if self.options.explain
                    && let Some(choice) = Choice::among("the stack of a thread", Unit::Bytes, tried, place)
                {
                    let kernel = self.made.metadata.as_ref().map_or("", |metadata| &metadata.name);
                    self.remark(kernel, &choice);
                }
                if let Cow::Owned(text) = text {
                    self.keep(Stage::Asm, text)?;
                }
                (made.cubin, made.facts)
            }
            Vendor::Amd => (binary::link(code, companions)?, Resources::of_amd(code)),
        };
        self.finish_binary(bytes, resources, target, start)
    }

    /// Keeps a binary, and its machine code as text where that is wanted.
    fn finish_binary(
        &mut self,
        bytes: Vec<u8>,
        resources: Option<Resources>,
        target: &TargetDesc,
        start: Instant,
    ) -> Result<()> {
        let companions = &self.options.companions;
        self.made.times.bin = start.elapsed();
        let launch = self.made.metadata.as_ref().map(|metadata| (metadata.num_warps, metadata.shared));
        self.made.resources =
            resources.zip(launch).map(|(needs, (warps, shared))| needs.on(target, warps, shared));
        let sass = match self.options.emit {
            Stage::Sass => Some(binary::disassemble(&bytes, companions)?),
            _ => None,
        };
        self.keep(Stage::Bin, bytes)?;
        if let Some(sass) = sass {
            self.keep(Stage::Sass, sass)?;
        }
        Ok(())
    }

    fn check_cancelled(&self) -> Result<()> {
        match self.is_cancelled {
            Some(is_cancelled) if is_cancelled() => Err(Cancelled.into()),
            _ => Ok(()),
        }
    }

    fn wants(&self, what: &str) -> bool {
        self.options.print_after.iter().any(|name| name == what || name == "all")
    }

    fn print_after(&self, what: &str) {
        if self.wants(what) {
            let text = module_text(&self.module, self.options.locations);
            eprintln!("// -----// IR Dump After {what} //----- //\n{}", String::from_utf8_lossy(&text));
        }
    }

    /// Runs the passes of a stage, given in the syntax of textual pipelines, one after another,
    /// and verifies what they make.
    fn run_passes(&mut self, passes: &[String]) -> Result<()> {
        let prints = !self.options.print_after.is_empty();
        let each = prints || self.is_cancelled.is_some();
        let groups: Vec<String> = if each { passes.to_vec() } else { vec![passes.join(",")] };
        for group in groups {
            self.check_cancelled()?;
            tracing::debug!(passes = %group, "running");
            let (pipeline, module) = (format!("builtin.module({group})"), as_op(&self.module));
            let ran = self.pipelines.run(&pipeline, module, self.options.verify_each);
            if !ran.map_err(|error| anyhow!("pass pipeline {group}: {error}"))? {
                return Err(Reported.into());
            }
            if prints {
                self.print_after(pass_name(&group));
            }
        }
        if self.options.verify_each || as_op(&self.module).verify() { Ok(()) } else { Err(Reported.into()) }
    }
}

/// LLVM ends text with a zero.
fn without_zero(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"\0").unwrap_or(text)
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

/// Whether layouts were chosen.
fn is_ttgir(module: &Module<'_>) -> bool {
    module_attr(module, "ttg.num-warps").is_some()
}

/// What the override of a stage is called, where there is one.
fn name_of_override(options: &Options, stage: Stage) -> &str {
    overrides::of(&options.overrides, stage).map_or("", |given| &given.name)
}

/// Refuses an override of another kernel.
fn check_kernel(module: &Module<'_>, given: &Module<'_>, name: &str) -> Result<()> {
    let wanted = kernel_name(kernel_of(module).map_err(Fault::report)?);
    let found = kernel_name(kernel_of(given).map_err(Fault::report).with_context(|| format!("in {name}"))?);
    if found != wanted {
        bail!("{name} has no kernel '{wanted}', which is compiled here: it has '{found}'");
    }
    Ok(())
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

fn as_op<'a>(module: &'a Module<'_>) -> Op<'a> {
    module.into()
}

fn module_attr<'a>(module: &'a Module<'_>, name: &str) -> Option<Attr<'a>> {
    as_op(module).attr(name)
}

fn number(module: &Module<'_>, name: &str) -> Option<u64> {
    module_attr(module, name).and_then(Attr::as_int).and_then(|n| u64::try_from(n).ok())
}

fn module_text(module: &Module<'_>, locations: bool) -> Vec<u8> {
    if !locations {
        return as_op(module).to_string().into_bytes();
    }
    /// # Safety
    /// `data` is a vector that nobody else uses.
    unsafe extern "C" fn append(text: mlir_sys::MlirStringRef, data: *mut std::ffi::c_void) {
        if text.length > 0 {
            // SAFETY: by the caller; MLIR passes a valid range.
            unsafe {
                let bytes = std::slice::from_raw_parts(text.data.cast::<u8>(), text.length);
                (*data.cast::<Vec<u8>>()).extend_from_slice(bytes);
            }
        }
    }
    let mut out: Vec<u8> = Vec::new();
    // SAFETY: the module is valid, the flags are freed once, the vector outlives the call.
    unsafe {
        let flags = mlir_sys::mlirOpPrintingFlagsCreate();
        mlir_sys::mlirOpPrintingFlagsEnableDebugInfo(flags, true, false);
        mlir_sys::mlirOpPrintingFlagsPrintNameLocAsPrefix(flags);
        let op = module.as_operation().to_raw();
        mlir_sys::mlirOperationPrintWithFlags(op, flags, Some(append), (&raw mut out).cast());
        mlir_sys::mlirOpPrintingFlagsDestroy(flags);
    }
    out
}

/// The function that the host calls.
fn kernel_of<'a>(module: &'a Module<'_>) -> Result<Op<'a>, Fault<'a>> {
    let body = as_op(module).region(0).first_block();
    let kernels: Vec<Op<'_>> = body
        .into_iter()
        .flat_map(|block| block.ops())
        .filter(|op| FuncOp::cast(*op).is_some())
        .filter(|op| !ttopt_passes::is_private(*op))
        .collect();
    match kernels.as_slice() {
        [] => Err(Fault { op: as_op(module), text: "has no public tt.func to compile".to_owned() }),
        [one] => Ok(*one),
        [_, second, ..] => {
            let text = format!("is one of {} public functions; a kernel is the only one", kernels.len());
            Err(Fault { op: *second, text })
        }
    }
}

/// What is wrong with an operation, and not reported yet.
struct Fault<'a> {
    op: Op<'a>,
    text: String,
}

impl Fault<'_> {
    fn report(self) -> anyhow::Error {
        self.op.error(self.text);
        Reported.into()
    }
}

fn kernel_name(kernel: Op<'_>) -> &str {
    kernel.attr("sym_name").and_then(Attr::as_str).unwrap_or_default()
}

fn metadata<'a>(module: &'a Module<'_>, options: &Options) -> Result<Metadata, Fault<'a>> {
    let number = |name: &str| number(module, name);
    let kernel = kernel_of(module)?;
    let name = kernel_name(kernel).to_owned();
    let num_warps = number("ttg.num-warps").unwrap_or(options.num_warps.into()) as u32;
    let lanes = number("ttg.threads-per-warp").unwrap_or(32) as u32;
    // Lowering refuses an unknown one where it stands.
    let target = target_of(module).unwrap_or(options.target.as_deref().unwrap_or(DEFAULT_TARGET)).to_owned();
    let args = || kernel.region(0).first_block().into_iter().flat_map(|block| block.args());
    if let Some(tensor) = args().find(|arg| arg.ty().as_tensor().is_some()) {
        let text = format!("is a kernel, which cannot be given a tensor as {}: pass a pointer", tensor.ty());
        return Err(Fault { op: kernel, text });
    }
    let tensor_maps = args()
        .filter_map(|arg| TensorMapArgument::of(arg.ty(), &target))
        .collect::<Result<_>>()
        .map_err(|err: anyhow::Error| Fault { op: kernel, text: err.to_string() })?;
    Ok(Metadata {
        name,
        target,
        num_warps,
        // Lowering refuses more than a CTA can have.
        threads: num_warps.saturating_mul(lanes),
        shared: number("ttg.shared").unwrap_or(0),
        global_scratch: number("ttg.global_scratch_memory_size").unwrap_or(0),
        profile_scratch: number("ttg.profile_scratch_memory_size").unwrap_or(0),
        global_scratch_align: number("ttg.global_scratch_memory_alignment").unwrap_or(1),
        cluster: number("ttg.num-ctas").unwrap_or(1) as u32,
        tensor_maps,
    })
}

/// LLVM IR of a module in the `llvm` dialect. MLIR's C API runs LLVM's verifier on it, which finds what the dialect's does not, as domains of
/// alias scopes.
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
