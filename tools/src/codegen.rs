//! LLVM's part: which of its passes run before and during code generation.

use crate::device_library::Linked;
use crate::{bit_loads, loop_sums, opaque_numbers, pointer_steps, rounded_pairs, row_products};
use anyhow::{Context as _, Result, anyhow, bail};
use inkwell::OptimizationLevel;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::Builder;
use inkwell::llvm_sys::core::LLVMDisposeMessage;
use inkwell::llvm_sys::prelude::{LLVMMemoryBufferRef, LLVMModuleRef};
use inkwell::llvm_sys::target_machine::{LLVMTargetMachineRef, LLVMTargetRef};
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{Linkage, Module};
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{CodeModel, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple};
use inkwell::types::{AnyTypeEnum, BasicTypeEnum};
use inkwell::values::{
    BasicValue, BasicValueEnum, CallSiteValue, FastMathFlags, FloatMathValue, FunctionValue,
    InstructionOpcode, InstructionValue,
};
use linear_layout::target::Vendor;
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashSet};
use std::ffi::{CStr, CString, c_char};
use std::sync::{Mutex, PoisonError};

/// A target machine, which one thread uses at a time.
struct Spare(TargetMachine);

// SAFETY: a target machine knows nothing of threads or of contexts, and whoever takes it out of `SPARE` is alone with it.
unsafe impl Send for Spare {}

impl Drop for Spare {
    fn drop(&mut self) {
        // SAFETY: whoever drops a machine is alone with it.
        unsafe { ttForget(self.0.as_mut_ptr()) };
    }
}

/// Machines that nobody uses, by their targets and fences. What LLVM finds out about the registers and instructions of a GPU is kept
/// with a machine: on AMD's GPUs that takes longer than the code of a small kernel.
static SPARE: Mutex<BTreeMap<(String, Fences), Vec<Spare>>> = Mutex::new(BTreeMap::new());

/// Spare machines of one target; further ones are let go.
const MOST_SPARE: usize = 64;

/// Whether code has fences that order memory. On NVIDIA's GPUs those that only acquire or only release take a newer assembler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fences {
    /// It has none, or nothing hangs on it.
    Absent,
    /// It has some.
    Present,
}

/// Does `work` with what makes code for a target, as in `ttg.target`: a machine that made code before, where there is one.
///
/// # Errors
/// When LLVM makes no code for it, or those of `work`.
pub fn with_machine<R>(
    name: &str,
    fences: Fences,
    work: impl FnOnce(&TargetMachine) -> Result<R>,
) -> Result<R> {
    let all = || SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (name.to_owned(), fences);
    let spare = all().get_mut(&key).and_then(Vec::pop);
    let machine = match spare {
        Some(machine) => machine,
        None => Spare(target_machine(name, fences)?),
    };
    // What a panic leaves is not used again.
    let made = work(&machine.0);
    let mut all = all();
    let spare = all.entry(key).or_default();
    if spare.len() < MOST_SPARE {
        spare.push(machine);
    }
    made
}

fn target_machine(name: &str, fences: Fences) -> Result<TargetMachine> {
    let capability = match name.split_once(':') {
        Some(("cuda", capability)) => capability,
        Some(("hip", cpu)) => return amd_machine(cpu),
        _ => bail!("code for '{name}' is not supported: only cuda and hip targets are"),
    };
    let capability: u32 = capability.parse().with_context(|| format!("compute capability of '{name}'"))?;
    Target::initialize_nvptx(&InitializationConfig::default());
    let triple = TargetTriple::create("nvptx64-nvidia-cuda");
    let target = Target::from_triple(&triple).map_err(|err| anyhow!("LLVM has no NVPTX backend: {err}"))?;
    // From sm_90 on, features of one generation only (wgmma) need the suffix.
    let cpu = if capability >= 90 { format!("sm_{capability}a") } else { format!("sm_{capability}") };
    // Products of 8-bit floats need PTX 8.4, fences that only acquire or only release PTX 8.6, accesses of 256 bits PTX 8.8
    // (PTX ISA, mma, fence, ld, st). Older assemblers read text that says no more than it needs.
    let features = match capability {
        100.. => "+ptx88",
        90.. if fences == Fences::Present => "+ptx86",
        89.. => "+ptx84",
        _ => "+ptx83",
    };
    // Pointers to local and shared memory of 32 bits take half the registers: libdevice's functions keep arrays in
    // local memory.
    let (cpu_name, features) = (CString::new(cpu.as_str())?, CString::new(features)?);
    // SAFETY: the target lives as long as LLVM, the strings during the call; the machine is ours.
    let machine = unsafe {
        ttShortPointerMachine(
            target.as_mut_ptr(),
            triple.as_str().as_ptr(),
            cpu_name.as_ptr(),
            features.as_ptr(),
        )
    };
    if machine.is_null() {
        bail!("LLVM cannot make code for {cpu}");
    }
    // SAFETY: it was just made and is nobody else's.
    Ok(unsafe { TargetMachine::new(machine) })
}

fn amd_machine(cpu: &str) -> Result<TargetMachine> {
    Target::initialize_amd_gpu(&InitializationConfig::default());
    let triple = TargetTriple::create("amdgcn-amd-amdhsa");
    let target = Target::from_triple(&triple).map_err(|err| anyhow!("LLVM has no AMDGPU backend: {err}"))?;
    let (level, relocations) = (OptimizationLevel::Aggressive, RelocMode::PIC);
    target
        .create_target_machine(&triple, cpu, "", level, relocations, CodeModel::Default)
        .ok_or_else(|| anyhow!("LLVM cannot make code for {cpu}"))
}

/// The LLVM passes that pay for what they cost on lowered kernels: long
/// straight-line code with much address arithmetic, few loops, no allocas.
/// `bench/compile_time.sh` times them, `bench/ptxas.py` says what code they leave.
const LLVM_PASSES: &str = "early-cse<memssa>,simplifycfg,\
    instcombine<max-iterations=1;no-verify-fixpoint>,aggressive-instcombine,\
    loop-mssa(licm),gvn<no-memdep>,\
    instcombine<max-iterations=1;no-verify-fixpoint>";
/// The same for loops that compute without matrix instructions. Few iterations of a known number become straight-line
/// code, and what only the first one does (running statistics begin so) goes before the loop: a branch in the body
/// keeps ptxas from having the loads of several iterations under way.
const LLVM_PASSES_LOOPS: &str = "early-cse<memssa>,simplifycfg,\
    instcombine<max-iterations=1;no-verify-fixpoint>,aggressive-instcombine,\
    loop-mssa(loop-rotate,licm),loop-unroll<O3;partial;no-runtime>,simplifycfg,gvn<no-memdep>,\
    instcombine<max-iterations=1;no-verify-fixpoint>";
/// The same where LLVM schedules: a loop that tests at its end needs no copies of what it carries. The first of them tell which masks
/// are one.
const LLVM_PASSES_AMD_FIRST: &str = "early-cse<memssa>,simplifycfg";
const LLVM_PASSES_AMD: &str = "instcombine<max-iterations=1;no-verify-fixpoint>,aggressive-instcombine,\
    loop-mssa(loop-rotate,licm),gvn<no-memdep>,simplifycfg,\
    instcombine<max-iterations=1;no-verify-fixpoint>";
/// Divisions of 64-bit numbers that are known to be small become divisions of 32-bit ones, which take a third of the
/// instructions.
const DIVISION_PASSES: &str = "instcombine<max-iterations=1;no-verify-fixpoint>,correlated-propagation,";
/// Pairs of numbers of 16 bits share registers and instructions.
const PAIR_PASSES: &str = "slp-vectorizer,early-cse,simplifycfg,adce";
/// Functions of a device library are to be inlined, specialized to the target and simplified.
const LLVM_PASSES_LIBRARY: &str = "default<O3>";
/// What selections leave to do.
const LIBRARY_PASSES_AFTER: &str = "function(early-cse,instcombine,simplifycfg)";
/// Inlines functions that were simplified before.
const INLINE_PASSES: &str = "inliner-wrapper,globaldce";
/// Before it, for functions of the program.
const CALLEE_PASSES: &str =
    "function(early-cse<memssa>,simplifycfg,instcombine<max-iterations=1;no-verify-fixpoint>)";

/// Of loops that test at their end, ptxas has the loads of several iterations under way. Strength reduction gives many
/// addresses of a loop a register each.
const LOOP_PASSES: &str = "function(loop(loop-rotate,loop-reduce))";

fn run_passes(module: &Module<'_>, machine: &TargetMachine, passes: &str, pairs: bool) -> Result<()> {
    let options = PassBuilderOptions::create();
    options.set_loop_slp_vectorization(pairs);
    module.run_passes(passes, machine, options).map_err(|err| anyhow!("LLVM passes failed: {err}"))
}

/// Says that launchers pass every argument of a kernel: LLVM's passes look for proof of that again and again where it is
/// not said, and straight-line strength reduction does less where it finds none.
///
/// On AMD GPUs arguments are to be in scalar registers when a wave begins, where the hardware can (LLVM, "User Guide for
/// AMDGPU Backend", "Preloaded Kernel Arguments"): nothing else changes, and LLVM knows which GPUs can.
pub fn define_arguments(module: &Module<'_>, vendor: Vendor) {
    let names: &[&str] = if vendor == Vendor::Amd { &["noundef", "inreg"] } else { &["noundef"] };
    let attributes: Vec<_> = names
        .iter()
        .map(|name| Attribute::get_named_enum_kind_id(name))
        .map(|kind| module.get_context().create_enum_attribute(kind, 0))
        .collect();
    let kernels = module
        .get_functions()
        .filter(|function| function.get_linkage() == Linkage::External && function.count_basic_blocks() > 0);
    for kernel in kernels {
        for number in 0..kernel.count_params() {
            for attribute in &attributes {
                kernel.add_attribute(AttributeLoc::Param(number), *attribute);
            }
        }
    }
}

/// Simplifies functions of a device library.
///
/// # Errors
/// When LLVM refuses.
pub fn simplify(functions: &Module<'_>, machine: &TargetMachine, vendor: Vendor) -> Result<()> {
    run_passes(functions, machine, LLVM_PASSES_LIBRARY, false)?;
    // SAFETY: the module lives during the call, and nothing else has its instructions.
    if vendor == Vendor::Nvidia && unsafe { ttSelect(functions.as_mut_ptr()) } > 0 {
        run_passes(functions, machine, LIBRARY_PASSES_AFTER, false)?;
    }
    Ok(())
}

/// Runs LLVM's passes before code generation, those of `loops` where they are asked for.
///
/// # Errors
/// When LLVM refuses.
pub fn optimize(
    module: &Module<'_>,
    machine: &TargetMachine,
    vendor: Vendor,
    linked: Linked,
    loops: bool,
) -> Result<()> {
    let pairs = has_narrow_arithmetic(module);
    let run = |passes: &str| run_passes(module, machine, passes, pairs);
    if linked == Linked::Raw {
        run(LLVM_PASSES_LIBRARY)?;
    } else {
        if linked == Linked::Simplified {
            run(INLINE_PASSES)?;
        } else if has_inlinable(module) {
            run(&format!("{CALLEE_PASSES},{INLINE_PASSES}"))?;
        }
        let passes = match vendor {
            Vendor::Nvidia if loops => LLVM_PASSES_LOOPS,
            Vendor::Nvidia => LLVM_PASSES,
            _ => LLVM_PASSES_AMD,
        };
        let divisions = if has_wide_divisions(module) { DIVISION_PASSES } else { "" };
        let first = format!("{divisions}{LLVM_PASSES_AMD_FIRST}");
        let before = match vendor {
            Vendor::Amd if has_guards(module) => {
                run(&format!("function({first})"))?;
                join_guards(module);
                String::new()
            }
            Vendor::Amd => first + ",",
            Vendor::Nvidia => divisions.to_owned(),
        };
        // Before branches around few instructions become selections.
        if vendor == Vendor::Nvidia {
            thread_jumps(module);
        }
        run(&format!("function({before}{passes})"))?;
        // What follows from them is known, too, and often all that a thread does with a part of its tile.
        if vendor == Vendor::Nvidia && leave_out_masked(module) {
            run(&format!("function({passes})"))?;
        }
    }
    keep_roundings(module)?;
    // Pairs of bits would no longer be seen to come from words.
    bit_loads::widen(module)?;
    if pairs && linked != Linked::Raw {
        run(&format!("function({PAIR_PASSES})"))?;
    }
    match vendor {
        Vendor::Nvidia => {
            rounded_pairs::round_together(module)?;
            if loops {
                opaque_numbers::behind(module, || run(LOOP_PASSES))?;
            } else {
                pointer_steps::share(module, &machine.get_target_data())?;
            }
            if is_too_long_to_reduce(module, vendor) {
                row_products::follow(module)?;
            }
            loop_sums::share(module)
        }
        _ => Ok(()),
    }
}

/// Leads branches that an earlier one decides past the tests between (`shim/jumps.cpp`).
fn thread_jumps(module: &Module<'_>) {
    // SAFETY: the module lives during the call, and nothing else has its instructions.
    unsafe { ttThreadJumps(module.as_mut_ptr()) }
}

/// Whether branches around accesses follow each other.
fn has_guards(module: &Module<'_>) -> bool {
    // SAFETY: the module lives during the call.
    unsafe { ttHasGuards(module.as_mut_ptr()) }
}

/// Makes one branch of those around accesses that follow each other under one mask (`shim/guards.cpp`).
fn join_guards(module: &Module<'_>) {
    // SAFETY: the module lives during the call, and nothing else has its instructions.
    let joined = unsafe { ttJoinGuards(module.as_mut_ptr()) };
    tracing::debug!("{joined} branches joined with others");
}

/// Leaves out accesses whose masks are never true, and says whether there were any.
fn leave_out_masked(module: &Module<'_>) -> bool {
    // SAFETY: the module lives during the call, and nothing else has its instructions.
    unsafe { ttLeaveOutMasked(module.as_mut_ptr()) > 0 }
}

/// Runs the passes that see the whole module: on AMD GPUs, what kernels do not use of the arguments that the runtime adds
/// is left out.
///
/// # Errors
/// When LLVM refuses.
pub fn finish(module: &Module<'_>, machine: &TargetMachine, vendor: Vendor) -> Result<()> {
    if vendor == Vendor::Nvidia {
        return Ok(());
    }
    let options = PassBuilderOptions::create();
    module
        .run_passes("amdgpu-attributor", machine, options)
        .map_err(|err| anyhow!("LLVM passes failed: {err}"))
}

/// The instructions of all functions.
/// Lets no sum take in a product that was rounded to 16 bits: InstCombine made both of operations on 32 bits and of the rounding, and
/// kept their `contract`. What was of 16 bits from the start also has `arcp` (`Emit::contracted`).
fn keep_roundings(module: &Module<'_>) -> Result<()> {
    let builder = module.get_context().create_builder();
    for instruction in instructions(module).filter(|it| was_narrowed(*it)).collect::<Vec<_>>() {
        // Flags can be added to an instruction, not taken.
        builder.position_before(&instruction);
        let operand = |number: u32| instruction.get_operand(number).and_then(|operand| operand.value());
        let operands = operand(0).zip(operand(1)).context("an operation without operands")?;
        let opcode = instruction.get_opcode();
        let kept = match operands {
            (BasicValueEnum::FloatValue(a), BasicValueEnum::FloatValue(b)) => {
                float_operation(&builder, opcode, a, b)?.as_instruction_value()
            }
            (BasicValueEnum::VectorValue(a), BasicValueEnum::VectorValue(b)) => {
                float_operation(&builder, opcode, a, b)?.as_instruction_value()
            }
            _ => continue,
        };
        instruction.replace_all_uses_with(&kept.context("an operation on constants")?);
        instruction.erase_from_basic_block();
    }
    Ok(())
}

/// Whether `instruction` adds or multiplies numbers of 16 bits that may be contracted, and were wider.
fn was_narrowed(instruction: InstructionValue<'_>) -> bool {
    use InstructionOpcode as Op;
    if !matches!(instruction.get_opcode(), Op::FAdd | Op::FSub | Op::FMul) {
        return false;
    }
    let element = match instruction.get_type() {
        AnyTypeEnum::FloatType(ty) => Some(ty),
        AnyTypeEnum::VectorType(ty) => {
            Some(ty.get_element_type()).filter(|ty| ty.is_float_type()).map(BasicTypeEnum::into_float_type)
        }
        _ => None,
    };
    let is_narrow = element.is_some_and(|ty| ty.get_bit_width() == 16);
    let flags = instruction.get_fast_math_flags().unwrap_or(FastMathFlags::empty());
    is_narrow
        && flags.contains(FastMathFlags::AllowContract)
        && !flags.contains(FastMathFlags::AllowReciprocal)
}

/// The operation that `opcode` says.
fn float_operation<'c, T: FloatMathValue<'c>>(
    builder: &Builder<'c>,
    opcode: InstructionOpcode,
    a: T,
    b: T,
) -> Result<T> {
    Ok(match opcode {
        InstructionOpcode::FAdd => builder.build_float_add(a, b, "")?,
        InstructionOpcode::FSub => builder.build_float_sub(a, b, "")?,
        _ => builder.build_float_mul(a, b, "")?,
    })
}

fn instructions<'m>(module: &Module<'m>) -> impl Iterator<Item = InstructionValue<'m>> {
    let blocks = module.get_functions().flat_map(|function| function.get_basic_block_iter());
    blocks.flat_map(|block| block.get_instructions())
}

/// Whether a module has functions of its own that nobody said are to be called.
fn has_inlinable(module: &Module<'_>) -> bool {
    let noinline = Attribute::get_named_enum_kind_id("noinline");
    module.get_functions().any(|function| {
        function.get_linkage() == Linkage::Internal
            && function.count_basic_blocks() > 0
            && function.get_enum_attribute(AttributeLoc::Function, noinline).is_none()
    })
}

/// Whether a module divides 64-bit numbers by others than powers of two.
fn has_wide_divisions(module: &Module<'_>) -> bool {
    use InstructionOpcode as Op;
    instructions(module).any(|at| {
        matches!(at.get_opcode(), Op::SDiv | Op::SRem | Op::UDiv | Op::URem)
            && matches!(at.get_type(), AnyTypeEnum::IntType(ty) if ty.get_bit_width() == 64)
            && at.get_operand(1).is_some_and(|by| by.value().is_some_and(|by| !is_power_of_two(by)))
    })
}

/// Whether a module computes with scalars of 8 or 16 bits, the only ones that PTX packs.
fn has_narrow_arithmetic(module: &Module<'_>) -> bool {
    instructions(module).any(is_narrow_arithmetic)
}

fn is_narrow_arithmetic(instruction: InstructionValue<'_>) -> bool {
    use InstructionOpcode as Op;
    // Those only move, or have a result that is not theirs.
    if matches!(
        instruction.get_opcode(),
        Op::Load
            | Op::ExtractElement
            | Op::ExtractValue
            | Op::BitCast
            | Op::Trunc
            | Op::FPTrunc
            | Op::ZExt
            | Op::SExt
            | Op::Phi
            | Op::Freeze
    ) {
        return false;
    }
    match instruction.get_type() {
        AnyTypeEnum::IntType(ty) => matches!(ty.get_bit_width(), 8 | 16),
        AnyTypeEnum::FloatType(ty) => ty.get_bit_width() == 16,
        _ => false,
    }
}

/// Passes of code generation that change nothing in lowered kernels, by LLVM's names for them: what they look for was
/// done before, or is never there. All of them are optimizations.
const LEFT_OUT: [&CStr; 10] = [
    // Where the addresses of loops are reduced in strength, `optimize` says.
    c"Loop Strength Reduction",
    c"Canonicalize Freeze Instructions in Loops",
    c"Early CSE",
    c"Merge contiguous icmps into a memcmp",
    c"Expand memcmp() to load/stores",
    c"Constant Hoisting",
    c"Replace intrinsics with calls to vector library",
    c"Partially inline calls to library functions",
    c"Early Tail Duplication",
    c"Machine Instruction Scheduler",
];

/// The same where functions have arrays on the stack, as those of sines and cosines have for large numbers, behind a branch for each element
/// of a thread. What is computed of a result, as a polynomial, would be put behind the branches of all other elements, to where it is
/// used, and two numbers of each element would live until then in place of one.
const LEFT_OUT_WITH_ARRAYS: [&CStr; 1] = [c"Machine code sinking"];

/// The same where LLVM schedules and allocates registers. Only lines are known to debuggers, no variables. What straight-line
/// strength reduction leaves is cleaned up by Early CSE; its GVN, with memory dependence analysis, takes a twentieth of code
/// generation and makes longer lives of registers as often as it saves an instruction.
const LEFT_OUT_AMD: [&CStr; 12] = [
    c"Global Value Numbering",
    c"Nary reassociation",
    c"Flatten the CFG",
    c"AMDGPU Uniform Intrinsic Combine",
    c"PostRA Machine Sink",
    c"Live DEBUG_VALUE analysis",
    c"Canonicalize Freeze Instructions in Loops",
    c"Merge contiguous icmps into a memcmp",
    c"Expand memcmp() to load/stores",
    c"Constant Hoisting",
    c"Replace intrinsics with calls to vector library",
    c"Partially inline calls to library functions",
];

/// The same in what lowering makes, for what it never makes: calls of `printf`, constructors, images, functions with any number of
/// arguments, OpenCL's blocks, named barriers, `invoke`, `callbr`, pointers of address space 7, statepoints, masked accesses to vectors,
/// blocks that are worth a copy at the end of others, and attributes that ask for instrumentation. They look at each function all the same, and some ask for analyses.
const LEFT_OUT_LOWERED_AMD: [&CStr; 24] = [
    c"AMDGPU Printf lowering",
    c"Lower ctors and dtors for AMDGPU",
    c"AMDGPU Image Intrinsic Optimizer",
    c"Expand variadic functions",
    c"Externalize enqueued block runtime handles",
    c"AMDGPU lowering of execution synchronization",
    c"AMDGPU Software lowering of LDS",
    c"Lower buffer fat pointer operations to buffer resources",
    c"Instrument function entry/exit with calls to e.g. mcount() (post inlining)",
    c"Lower invoke and unwind, for unwindless code generators",
    c"ObjC ARC contraction",
    c"Prepare callbr",
    c"Safe Stack instrumentation pass",
    c"GCN NSA Reassign",
    c"Remove Redundant DEBUG_VALUE analysis",
    c"Fixup Statepoint Caller Saved",
    c"Insert fentry calls",
    c"Insert XRay ops",
    c"Remove Loads Into Fake Uses",
    c"Stack Frame Layout Analysis",
    c"Insert stack protectors",
    c"Scalarize Masked Memory Intrinsics",
    c"Machine Sanitizer Binary Metadata",
    c"Tail Duplication",
];

/// The same where there is one function: nobody calls it.
const LEFT_OUT_ALONE_AMD: [&CStr; 4] = [
    c"AMDGPU Inline All Functions",
    c"Inliner for always_inline functions",
    c"Register Usage Information Propagation",
    c"Register Usage Information Collector Pass",
];

/// Optimizations of what is in some modules only, by [`Found`].
const LEFT_OUT_WITHOUT_ATOMICS_AMD: [&CStr; 1] = [c"AMDGPU atomic optimizations"];
const LEFT_OUT_WITHOUT_ARRAYS_AMD: [&CStr; 3] =
    [c"AMDGPU Promote Alloca", c"Merge disjoint stack slots", c"Local Stack Slot Allocation"];
const LEFT_OUT_WITHOUT_LOOPS_AMD: [&CStr; 6] = [
    c"Loop Invariant Code Motion",
    c"Loop Strength Reduction",
    c"Early Machine Loop Invariant Code Motion",
    c"Machine Loop Invariant Code Motion",
    c"Optimize machine instruction PHIs",
    // It runs again on what instructions became.
    c"First Machine Common Subexpression Elimination",
];

/// What is in the functions of a module, as far as passes of code generation are for it alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Found {
    /// Functions with a body.
    functions: usize,
    /// Operations on memory that are atomic.
    atomics: bool,
    /// Arrays on the stack.
    arrays: bool,
    /// Branches to a block before, or to their own: each loop has one.
    loops: bool,
    /// Matrix instructions.
    matrices: bool,
}

impl Found {
    fn of(module: &Module<'_>) -> Self {
        use InstructionOpcode as Op;
        let mut found = Self::default();
        let defined = module.get_functions().filter(|function| function.count_basic_blocks() > 0);
        for function in defined {
            found.functions += 1;
            let mut before = HashSet::new();
            for block in function.get_basic_block_iter() {
                before.insert(block);
                for at in block.get_instructions() {
                    match at.get_opcode() {
                        Op::AtomicRMW | Op::AtomicCmpXchg => found.atomics = true,
                        Op::Alloca => found.arrays = true,
                        Op::Br | Op::Switch => {
                            let operands = (0..at.get_num_operands()).filter_map(|i| at.get_operand(i));
                            found.loops |=
                                operands.filter_map(|operand| operand.block()).any(|to| before.contains(&to));
                        }
                        _ => {}
                    }
                }
            }
        }
        let is_atomic = |function: FunctionValue<'_>| {
            function.count_basic_blocks() == 0 && function.get_name().to_string_lossy().contains("atomic")
        };
        found.atomics |= module.get_functions().any(is_atomic);
        let is_matrix = |function: FunctionValue<'_>| {
            let name = function.get_name().to_string_lossy();
            name.starts_with("llvm.amdgcn.mfma") || name.starts_with("llvm.amdgcn.wmma")
        };
        found.matrices = module.get_functions().any(is_matrix);
        found
    }
}

/// What only GPUs from gfx10, gfx11, gfx12 and gfx1250 on need, on others.
const LEFT_OUT_GFX9: [&CStr; 5] = [
    c"SI Insert Hard Clauses",
    c"GCN Create VOPD Instructions",
    c"AMDGPU Insert Delay ALU",
    c"AMDGPU Insert waits for SGPR read hazards",
    c"AMDGPU Lower VGPR Encoding",
];

/// Where nothing runs again and again, scheduling once more what registers were allocated for: it takes up to a tenth of the time, and
/// saves a few `s_nop` of a cycle, between matrix instructions many. From gfx11 on pairs of instructions come of it.
const LEFT_OUT_STRAIGHT_GFX9: [&CStr; 1] = [c"PostRA Machine Instruction Scheduler"];

/// What a module may have in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// What lowering makes, and simplified functions of the device library.
    Lowered,
    /// What somebody else wrote.
    Anything,
}

/// The passes of code generation that are left out of a module.
fn left_out(
    module: &Module<'_>,
    machine: &TargetMachine,
    vendor: Vendor,
    contents: Contents,
) -> impl Iterator<Item = &'static CStr> {
    let long = is_too_long_to_reduce(module, vendor).then_some(STRENGTH_REDUCTION);
    // ptxas schedules on its own; for AMD's GPUs LLVM does it.
    let mut lists: SmallVec<[&'static [&'static CStr]; 8]> = SmallVec::new();
    let mut is_straight = false;
    match vendor {
        Vendor::Nvidia => {
            lists.push(&LEFT_OUT);
            if Found::of(module).arrays {
                lists.push(&LEFT_OUT_WITH_ARRAYS);
            }
        }
        Vendor::Amd => {
            lists.push(&LEFT_OUT_AMD);
            if contents == Contents::Lowered {
                lists.push(&LEFT_OUT_LOWERED_AMD);
                let found = Found::of(module);
                if found.functions == 1 {
                    lists.push(&LEFT_OUT_ALONE_AMD);
                }
                if !found.atomics {
                    lists.push(&LEFT_OUT_WITHOUT_ATOMICS_AMD);
                }
                if !found.arrays {
                    lists.push(&LEFT_OUT_WITHOUT_ARRAYS_AMD);
                }
                // Atomic operations may become loops.
                if !found.loops && !found.atomics {
                    is_straight = !found.matrices;
                    lists.push(&LEFT_OUT_WITHOUT_LOOPS_AMD);
                }
            }
            if machine.get_cpu().to_bytes().starts_with(b"gfx9") {
                lists.push(&LEFT_OUT_GFX9);
                if is_straight {
                    lists.push(&LEFT_OUT_STRAIGHT_GFX9);
                }
            }
        }
    }
    lists.into_iter().flatten().copied().chain(long)
}

/// LLVM 22 compares each product, sum and address with all earlier ones of its kind, and looks at up to 32 instructions
/// for each pair: 4,000 of them in a function took 10 seconds.
const STRENGTH_REDUCTION: &CStr = c"Straight line strength reduction";
/// Moves what a loop does not change out of it, before registers are allocated.
const HOISTING: &CStr = c"Early Machine Loop Invariant Code Motion";
/// With so many integer instructions the pass takes about a tenth of a second.
const MOST_REDUCED: usize = 256;
/// The same for AMD's GPUs, where it gains next to nothing in long functions (docs/amd.md).
const MOST_REDUCED_AMD: usize = 96;

/// Whether a function computes so many numbers that straight-line strength reduction would take too long.
fn is_too_long_to_reduce(module: &Module<'_>, vendor: Vendor) -> bool {
    let most = if vendor == Vendor::Nvidia { MOST_REDUCED } else { MOST_REDUCED_AMD };
    module.get_functions().any(|function| {
        let blocks = function.get_basic_block_iter();
        let reducible = blocks.flat_map(|block| block.get_instructions()).filter(|at| is_reducible(*at));
        reducible.take(most + 1).count() > most
    })
}

/// Whether strength reduction may rewrite an instruction: an integer's product or sum, or an address with an index.
fn is_reducible(instruction: InstructionValue<'_>) -> bool {
    use InstructionOpcode as Op;
    match instruction.get_opcode() {
        Op::Add | Op::Mul | Op::Shl | Op::Or => matches!(instruction.get_type(), AnyTypeEnum::IntType(_)),
        Op::GetElementPtr => {
            let mut indices = (1..instruction.get_num_operands()).filter_map(|i| instruction.get_operand(i));
            indices.any(|index| index.value().is_some_and(|index| !is_constant(index)))
        }
        _ => false,
    }
}

fn is_constant(value: BasicValueEnum<'_>) -> bool {
    matches!(value, BasicValueEnum::IntValue(value) if value.is_const())
}

/// Whether dividing by `value` is a shift.
fn is_power_of_two(value: BasicValueEnum<'_>) -> bool {
    let BasicValueEnum::IntValue(value) = value else { return false };
    value.get_sign_extended_constant().is_some_and(|number| number.unsigned_abs().is_power_of_two())
}

unsafe extern "C" {
    fn ttShortPointerMachine(
        target: LLVMTargetRef,
        triple: *const c_char,
        cpu: *const c_char,
        features: *const c_char,
    ) -> LLVMTargetMachineRef;
    fn ttEmit(
        machine: LLVMTargetMachineRef,
        module: LLVMModuleRef,
        object: bool,
        names: *const *const c_char,
        count: usize,
        met: *mut usize,
    ) -> LLVMMemoryBufferRef;
    fn ttForget(machine: LLVMTargetMachineRef);
    fn ttLeaveOutMasked(module: LLVMModuleRef) -> usize;
    fn ttThreadJumps(module: LLVMModuleRef);
    fn ttHasGuards(module: LLVMModuleRef) -> bool;
    fn ttJoinGuards(module: LLVMModuleRef) -> usize;
    fn ttSelect(module: LLVMModuleRef) -> std::ffi::c_uint;
    fn ttAssemble(
        triple: *const c_char,
        cpu: *const c_char,
        text: *const c_char,
        length: usize,
        name: *const c_char,
        error: *mut *mut c_char,
    ) -> LLVMMemoryBufferRef;
}

/// What code generation makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Text.
    Assembly,
    /// A relocatable object file.
    Object,
}

/// The code of a module, whose functions have the attributes of `attempt`.
///
/// # Errors
/// When the target has no such output.
pub fn emit(
    module: &Module<'_>,
    machine: &TargetMachine,
    vendor: Vendor,
    contents: Contents,
    attempt: &Attempt,
    output: Output,
) -> Result<MemoryBuffer<'static>> {
    let stays = |saving: &Saving| matches!(saving, Saving::NoHoisting | Saving::ComputedAgain);
    let hoisting = attempt.iter().any(stays).then_some(HOISTING);
    let names = left_out(module, machine, vendor, contents).chain(hoisting);
    let names: Vec<_> = names.map(CStr::as_ptr).collect();
    let mut met = 0;
    // SAFETY: machine, module and names live during the call; the buffer is ours.
    let buffer = unsafe {
        let (machine, module) = (machine.as_mut_ptr(), module.as_mut_ptr());
        ttEmit(machine, module, output == Output::Object, names.as_ptr(), names.len(), &raw mut met)
    };
    if buffer.is_null() {
        bail!("LLVM cannot emit code for this target");
    }
    tracing::debug!("{met} of {} passes of code generation left out", names.len());
    // SAFETY: it was just made and is nobody else's.
    Ok(unsafe { MemoryBuffer::new(buffer) })
}

/// The object file of assembly that a caller wrote, by LLVM's assembler; `name` is its file in errors.
///
/// # Errors
/// What is wrong with it, by line.
pub fn assemble(text: &[u8], name: &str, machine: &TargetMachine) -> Result<Vec<u8>> {
    let (triple, cpu, file) = (machine.get_triple(), machine.get_cpu(), CString::new(name)?);
    let mut error = std::ptr::null_mut();
    // SAFETY: the strings live during the call, the text has so many bytes; what comes back is ours.
    let object = unsafe {
        let (triple, cpu) = (triple.as_str().as_ptr(), cpu.as_ptr());
        ttAssemble(triple, cpu, text.as_ptr().cast(), text.len(), file.as_ptr(), &raw mut error)
    };
    if object.is_null() {
        // SAFETY: an error comes as a message of LLVM's, which is freed once.
        let message = unsafe {
            let message = CStr::from_ptr(error).to_string_lossy().into_owned();
            LLVMDisposeMessage(error);
            message
        };
        bail!("{name} cannot be assembled:\n{}", message.trim_end());
    }
    // SAFETY: it was just made and is nobody else's.
    Ok(unsafe { MemoryBuffer::new(object) }.as_slice().to_vec())
}

/// One way in which LLVM's code generation may take fewer registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saving {
    /// Accesses to memory that are neighbours are not scheduled together: what a cluster of LDS reads gives is alive at once.
    NoClusters,
    /// Accesses to memory are not spread between matrix instructions: what is read has to wait in registers, too.
    NotSpread,
    /// What loops do not change is not moved out of them, where it would be alive throughout.
    NoHoisting,
    /// Loops compute again what few scalar instructions make of numbers that they keep anyway (`shim/again.cpp`), and nothing is moved out
    /// of them. For code that spills scalar registers.
    ComputedAgain,
    /// Registers of 16 bits, which gfx11 has, are not used: LLVM 22 puts halves together by moves, and keeps copies of whole operands.
    NoHalves,
    /// LLVM's schedulers for few registers: the one that has the fewest with which as many waves run, and the one that has the
    /// fewest of all.
    Scheduler(&'static str),
}

/// Instructions of LLVM that code is generated for again, all attempts together: where that is two of them it takes seconds.
const MOST_TRIED: usize = 40_000;

/// Basic blocks of the longest function that is tried in other ways. LLVM's register allocator takes time for each live range in each block: a kernel
/// with a block for each of hundreds of masked accesses takes it several seconds, and has more registers alive than any order saves.
const MOST_BLOCKS: u32 = 1024;

/// Scalar registers that are spilled, to lanes of a vector register, for which only that is tried which is meant for them.
const FEW_SCALARS: u64 = 8;

/// What code generation is tried with at once.
pub type Attempt = SmallVec<[Saving; 4]>;

/// Code that spills least, and what it was made with: `code` is what code generation makes by default, `emit` makes it in other ways.
///
/// Each saving that helps is kept as the next one is tried. LLVM's other schedulers are tried on their own. `spread` says whether the code
/// has accesses spread between matrix instructions, `length` how many instructions of LLVM it is made of: long code is tried in fewer ways.
///
/// # Errors
/// Those of `emit`.
pub fn with_least_spills(
    mut code: Vec<u8>,
    machine: &TargetMachine,
    spread: bool,
    length: usize,
    mut emit: impl FnMut(&Attempt) -> Result<Vec<u8>>,
) -> Result<(Vec<u8>, Attempt)> {
    let halves = machine.get_cpu().to_bytes().starts_with(b"gfx11").then_some(Saving::NoHalves);
    let mut best = Attempt::new();
    let mut tried = vec![Attempt::new()];
    let most = (MOST_TRIED / length.max(1)).max(1);
    let mut attempt = |attempt: Attempt, best: &mut Attempt| -> Result<()> {
        let (_, scalars) = spills(&code);
        let again = attempt.contains(&Saving::ComputedAgain);
        let useless = if again { scalars == 0 } else { spills(&code) <= (0, FEW_SCALARS) };
        if spills(&code) == (0, 0) || useless || tried.contains(&attempt) || tried.len() > most {
            return Ok(());
        }
        let other = emit(&attempt)?;
        if spills(&other) < spills(&code) {
            code = other;
            best.clone_from(&attempt);
        }
        tried.push(attempt);
        Ok(())
    };
    let not_spread = spread.then_some(Saving::NotSpread).into_iter();
    let others = [Saving::NoClusters, Saving::NoHoisting, Saving::ComputedAgain];
    for saving in not_spread.chain(others).chain(halves) {
        let more = best.iter().copied().chain([saving]).collect();
        attempt(more, &mut best)?;
    }
    let schedulers = [None, Some("iterative-maxocc"), Some("iterative-minreg")];
    for halves in std::iter::once(None).chain(halves.map(Some)) {
        for scheduler in schedulers {
            attempt(scheduler.map(Saving::Scheduler).into_iter().chain(halves).collect(), &mut best)?;
        }
    }
    Ok((code, best))
}

/// Registers that a kernel of AMDGCN spills: vector registers, to memory, and scalar ones, to lanes of vector registers.
pub type Spills = (u64, u64);

/// What says in `function` between which matrix instructions accesses to memory are issued.
fn orders(function: FunctionValue<'_>) -> Vec<InstructionValue<'_>> {
    let calls = |instruction: &InstructionValue<'_>| {
        let called = CallSiteValue::try_from(*instruction).ok().and_then(|call| call.get_called_fn_value());
        called.is_some_and(|called| called.get_name().to_bytes() == b"llvm.amdgcn.sched.group.barrier")
    };
    function.get_basic_block_iter().flat_map(|block| block.get_instructions()).filter(calls).collect()
}

/// Instructions of a module.
pub fn length(module: &Module<'_>) -> usize {
    instructions(module).count()
}

/// Whether the functions of a module have few enough basic blocks to be tried in other ways.
pub fn can_be_tried(module: &Module<'_>) -> bool {
    module.get_functions().all(|function| function.count_basic_blocks() <= MOST_BLOCKS)
}

/// Whether accesses to memory are spread between matrix instructions in `module`.
pub fn spreads(module: &Module<'_>) -> bool {
    module.get_function("llvm.amdgcn.sched.group.barrier").is_some()
}

/// Gives the functions of `module` the attributes of an attempt, and takes out of them what it does without.
pub fn attempt(module: &Module<'_>, attempt: &Attempt) {
    let context = module.get_context();
    for function in module.get_functions().filter(|function| function.count_basic_blocks() > 0) {
        for saving in attempt {
            let (name, value) = match saving {
                Saving::NoClusters => ("amdgpu-max-memory-cluster-dwords", "1"),
                Saving::NoHalves => ("target-features", "-real-true16"),
                Saving::Scheduler(strategy) => ("amdgpu-sched-strategy", *strategy),
                Saving::ComputedAgain => ("tt-computes-again", ""),
                Saving::NotSpread => {
                    orders(function).into_iter().for_each(|order| order.erase_from_basic_block());
                    continue;
                }
                Saving::NoHoisting => continue,
            };
            function.add_attribute(AttributeLoc::Function, context.create_string_attribute(name, value));
        }
    }
}

/// What the kernels in an object file, or in assembly, spill, by their metadata (LLVM, "User Guide for AMDGPU Backend",
/// "Code Object V5 Metadata"), which is YAML in assembly and MessagePack in object files.
pub fn spills(code: &[u8]) -> Spills {
    let mut spills = (0, 0);
    for (place, rest) in
        (0..code.len()).filter(|place| code[*place] == b'.').map(|place| (place, &code[place..]))
    {
        let sum = match (rest.starts_with(VGPR_SPILLS), rest.starts_with(SGPR_SPILLS)) {
            (true, _) => &mut spills.0,
            (_, true) => &mut spills.1,
            _ => continue,
        };
        *sum += number_after(&code[place + VGPR_SPILLS.len()..]).unwrap_or(0);
    }
    spills
}

/// Of the same length.
const VGPR_SPILLS: &[u8] = b".vgpr_spill_count";
const SGPR_SPILLS: &[u8] = b".sgpr_spill_count";

/// The number that follows `key` first.
pub(crate) fn number_of(code: &[u8], key: &[u8]) -> Option<u64> {
    let place = code.windows(key.len()).position(|bytes| bytes == key)?;
    number_after(&code[place + key.len()..])
}

/// The number at the start of `bytes`: decimal after a colon, or in MessagePack (its specification, "int format family").
fn number_after(bytes: &[u8]) -> Option<u64> {
    let big_endian = |count: usize| {
        let bytes = bytes.get(1..=count)?;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    match *bytes.first()? {
        b':' => {
            let digits =
                bytes[1..].iter().skip_while(|byte| **byte == b' ').take_while(|byte| byte.is_ascii_digit());
            Some(digits.fold(0, |number, digit| 10 * number + u64::from(digit - b'0')))
        }
        small @ 0..=0x7f => Some(u64::from(small)),
        0xcc => big_endian(1),
        0xcd => big_endian(2),
        0xce => big_endian(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Attempt, Contents, Fences, Output, Saving, Spare, emit, spills, target_machine, with_least_spills,
        with_machine,
    };
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;
    use inkwell::targets::TargetMachine;
    use linear_layout::target::Vendor;

    /// What is tried on `target` where code spills so many registers as `count` says, what is kept, and what that spills.
    fn tried(target: &str, count: impl Fn(&[Saving]) -> u64) -> (Vec<Attempt>, Attempt, u64) {
        let code = |count: u64| format!(".vgpr_spill_count: {count}\n").into_bytes();
        let machine = target_machine(target, Fences::Absent).unwrap();
        let mut all = Vec::new();
        let (kept, best) = with_least_spills(code(count(&[])), &machine, false, 1, |attempt| {
            all.push(attempt.clone());
            Ok(code(count(attempt)))
        })
        .unwrap();
        (all, best, spills(&kept).0)
    }

    #[test]
    fn what_helps_is_kept_as_more_is_tried() {
        use Saving::{NoClusters, NoHalves, NoHoisting, Scheduler};
        let (all, best, left) = tried("hip:gfx1100", |attempt| {
            10 - 3 * u64::from(attempt.contains(&NoHoisting)) - 2 * u64::from(attempt.contains(&NoHalves))
        });
        assert_eq!((best.as_slice(), left), ([NoHoisting, NoHalves].as_slice(), 5));
        // All that is tried on its own is, once.
        let all: Vec<&[Saving]> = all.iter().map(Attempt::as_slice).collect();
        let (most, least) = (Scheduler("iterative-maxocc"), Scheduler("iterative-minreg"));
        let alone: [&[Saving]; 5] = [&[most], &[least], &[NoHalves], &[most, NoHalves], &[least, NoHalves]];
        assert_eq!(all[..3], [&[NoClusters][..], &[NoHoisting], &[NoHoisting, NoHalves]]);
        assert_eq!(all[3..], alone);
    }

    #[test]
    fn accesses_are_not_spread_where_that_spills() {
        let machine = target_machine("hip:gfx950", Fences::Absent).unwrap();
        let code = |attempt: &[Saving]| {
            let count = if attempt.contains(&Saving::NotSpread) { 0 } else { 9 };
            format!(".vgpr_spill_count: {count}\n").into_bytes()
        };
        let emit = |attempt: &Attempt| Ok(code(attempt));
        let (_, best) = with_least_spills(code(&[]), &machine, true, 1, emit).unwrap();
        assert_eq!(best.as_slice(), [Saving::NotSpread]);
        let (_, best) = with_least_spills(code(&[]), &machine, false, 1, emit).unwrap();
        assert!(best.is_empty());

        let ir = "
            declare void @llvm.amdgcn.sched.group.barrier(i32 immarg, i32 immarg, i32 immarg)
            define amdgpu_kernel void @spread() {
              call void @llvm.amdgcn.sched.group.barrier(i32 8, i32 1, i32 0)
              ret void
            }";
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(ir.as_bytes(), "ir");
        let module = context.create_module_from_ir(buffer).unwrap();
        assert!(super::spreads(&module));
        super::attempt(&module, &best);
        assert!(module.to_string().contains("call void"));
        super::attempt(&module, &[Saving::NotSpread].into_iter().collect());
        assert!(!module.to_string().contains("call void"));
    }

    #[test]
    fn scalars_are_computed_again_where_scalar_registers_are_spilled() {
        let machine = target_machine("hip:gfx942", Fences::Absent).unwrap();
        let spilling = |key: &str| format!(".{key}: 9\n").into_bytes();
        let mut tried = Vec::new();
        for key in ["vgpr_spill_count", "sgpr_spill_count"] {
            let mut again = false;
            with_least_spills(spilling(key), &machine, false, 1, |attempt| {
                again |= attempt.contains(&Saving::ComputedAgain);
                Ok(spilling(key))
            })
            .unwrap();
            tried.push(again);
        }
        assert_eq!(tried, [false, true]);
    }

    #[test]
    fn long_code_and_little_that_is_spilled_are_tried_in_fewer_ways() {
        let machine = target_machine("hip:gfx942", Fences::Absent).unwrap();
        let tries = |said: &str, length: usize| {
            let mut tries = Vec::new();
            let code = format!("{said}\n").into_bytes();
            with_least_spills(code.clone(), &machine, false, length, |attempt| {
                tries.push(attempt.last().copied());
                Ok(code.clone())
            })
            .unwrap();
            tries
        };
        let vectors = ".vgpr_spill_count: 9";
        let lengths = [1000, 15_000, 30_000, 100_000].map(|length| tries(vectors, length).len());
        assert_eq!(lengths, [4, 2, 1, 1]);
        assert_eq!(tries(".sgpr_spill_count: 8", 1000), [Some(Saving::ComputedAgain)]);
        assert_eq!(tries(".sgpr_spill_count: 9", 1000).len(), 5);
    }

    /// A kernel that has rows and a bound of one of them in its loop, which are computed before it.
    const ROWS: &str = "
        target triple = \"amdgcn-amd-amdhsa\"
        define amdgpu_kernel void @rows(ptr addrspace(1) inreg %out, i32 inreg %first, i32 inreg %rows, i32 inreg %columns) {
          %row = or i32 %first, 4
          %next = or i32 %first, 8
          %inside = icmp slt i32 %next, %rows
          %bound = select i1 %inside, i32 %columns, i32 77
          br label %loop
        loop:
          %i = phi i32 [ 0, %0 ], [ %after, %loop ]
          store volatile i32 %first, ptr addrspace(1) %out
          store volatile i32 %rows, ptr addrspace(1) %out
          store volatile i32 %columns, ptr addrspace(1) %out
          store volatile i32 %row, ptr addrspace(1) %out
          store volatile i32 %bound, ptr addrspace(1) %out
          %after = add i32 %i, 1
          %more = icmp ult i32 %after, %columns
          br i1 %more, label %loop, label %end
        end:
          ret void
        }";

    /// What `machine` makes of LLVM IR.
    fn made(machine: &TargetMachine, ir: &str, attempt: &Attempt, output: Output) -> Vec<u8> {
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(ir.as_bytes(), "ir");
        let module = context.create_module_from_ir(buffer).unwrap();
        super::attempt(&module, attempt);
        let code = emit(&module, machine, Vendor::Amd, Contents::Lowered, attempt, output).unwrap();
        code.as_slice().to_vec()
    }

    /// How many instructions of these kinds the loop of `ROWS` has.
    fn scalars_in_loop(kinds: &[&str], saving: Option<Saving>) -> Vec<usize> {
        let attempt: Attempt = saving.into_iter().collect();
        let code = with_machine("hip:gfx1100", Fences::Absent, |machine| {
            Ok(made(machine, ROWS, &attempt, Output::Assembly))
        });
        let code = String::from_utf8(code.unwrap()).unwrap();
        let (_, after) = code.split_once(".LBB0_1:").unwrap();
        let (inside, _) = after.split_once("s_cbranch").unwrap();
        kinds.iter().map(|kind| inside.matches(kind).count()).collect()
    }

    #[test]
    fn passes_that_ran_before_make_the_same_code() {
        let other = ROWS.replace("rows", "lines").replace("77", "78").replace("volatile", "");
        for output in [Output::Assembly, Output::Object] {
            let code = |ir: &[&str]| {
                let machine = Spare(target_machine("hip:gfx90a", Fences::Absent).unwrap());
                let all: Vec<_> = ir.iter().map(|ir| made(&machine.0, ir, &Attempt::new(), output)).collect();
                all.last().cloned()
            };
            assert_eq!(code(&[ROWS]), code(&[ROWS, &other, ROWS]));
            assert_eq!(code(&[&other]), code(&[ROWS, &other]));
            assert_ne!(code(&[&other]), code(&[ROWS]));
        }
    }

    #[test]
    fn loops_compute_scalars_again() {
        let kinds = ["s_or_b32", "s_cselect_b32"];
        assert_eq!(scalars_in_loop(&kinds, None), [0, 0]);
        assert_eq!(scalars_in_loop(&kinds, Some(Saving::ComputedAgain)), [2, 1]);
    }

    #[test]
    fn nothing_is_tried_once_nothing_spills() {
        let (all, best, left) = tried("hip:gfx942", |attempt| u64::from(attempt.is_empty()));
        assert_eq!((all.len(), best.as_slice(), left), (1, [Saving::NoClusters].as_slice(), 0));
        let (all, best, left) = tried("hip:gfx942", |_| 1);
        assert_eq!((all.len(), best.as_slice(), left), (4, [].as_slice(), 1));
        assert!(tried("hip:gfx942", |_| 0).0.is_empty());
    }

    #[test]
    fn spills_are_read_from_assembly_and_from_object_files() {
        assert_eq!(spills(b"  .sgpr_spill_count: 12\n  .vgpr_spill_count:     345\n"), (345, 12));
        // Fixed, of one byte and of two.
        assert_eq!(spills(b"\xb1.sgpr_spill_count\x07\xb1.vgpr_spill_count\xcc\xff"), (255, 7));
        assert_eq!(spills(b"\xb1.vgpr_spill_count\xcd\x01\x00"), (256, 0));
        assert_eq!(spills(b"nothing of it"), (0, 0));
    }
}
