//! Merges neighbouring memory accesses of a thread as they are merged on the way to machine code.
//!
//! LLVM's code generator merges what it knows to be aligned. `ptxas` then goes further with shared memory:
//! whatever vectors the module has, it makes the widest accesses that the alignment allows (seen in the SASS of
//! `matmul_f32_ieee`, see docs/simt.md). Global sectors agree with a GPU without that.

use inkwell::OptimizationLevel;
use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::*;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{CodeModel, InitializationConfig, RelocMode, Target, TargetTriple};

use crate::read::PTX_KERNEL;

/// What the code generator does before it selects instructions.
const CODE_GENERATOR: &str = "function(separate-const-offset-from-gep,early-cse,load-store-vectorizer)";
/// What `ptxas` does to shared memory.
const ASSEMBLER: &str = "function(scalarizer<load-store>,early-cse,infer-alignment,load-store-vectorizer)";
/// The address space of shared memory.
const SHARED: u32 = 3;

/// Merges the accesses of a module for NVIDIA; leaves others alone.
pub fn accesses(module: &Module<'_>) -> Result<(), String> {
    let mut triple = module.get_triple();
    let kernel = |f: inkwell::values::FunctionValue<'_>| f.get_call_conventions() == PTX_KERNEL;
    if triple.as_str().is_empty() && module.get_functions().any(kernel) {
        // Triton prints its modules without the target they are for.
        triple = TargetTriple::create("nvptx64-nvidia-cuda");
        module.set_triple(&triple);
    }
    if !triple.as_str().to_bytes().starts_with(b"nvptx") {
        return Ok(());
    }
    Target::initialize_nvptx(&InitializationConfig::default());
    let target = Target::from_triple(&triple).map_err(|e| e.to_string())?;
    // Accesses of up to 16 bytes, which every chip has.
    let machine = target
        .create_target_machine(
            &triple,
            "sm_80",
            "",
            OptimizationLevel::Default,
            RelocMode::Default,
            CodeModel::Default,
        )
        .ok_or("LLVM has no machine for this target")?;
    if module.get_data_layout().as_str().is_empty() {
        module.set_data_layout(&machine.get_target_data().get_data_layout());
    }
    let run = |passes: &str| {
        module.run_passes(passes, &machine, PassBuilderOptions::create()).map_err(|e| e.to_string())
    };
    run(CODE_GENERATOR)?;
    // Volatile accesses stay as they are.
    let others = plain_accesses_elsewhere(module);
    let mark = |volatile: LLVMBool| {
        for i in &others {
            // SAFETY: no pass removes or replaces a volatile access, and these passes remove no blocks.
            unsafe { LLVMSetVolatile(*i, volatile) };
        }
    };
    mark(1);
    let done = run(ASSEMBLER);
    mark(0);
    done
}

/// Loads and stores of other memory than shared that are neither volatile nor atomic.
fn plain_accesses_elsewhere(module: &Module<'_>) -> Vec<LLVMValueRef> {
    let mut out = Vec::new();
    // SAFETY: walks the lists of a live module; only loads and stores are asked what only they know.
    unsafe {
        for f in module.get_functions() {
            for b in f.get_basic_block_iter() {
                let mut i = LLVMGetFirstInstruction(b.as_mut_ptr());
                while !i.is_null() {
                    let pointer = match LLVMGetInstructionOpcode(i) {
                        LLVMOpcode::LLVMLoad => Some(0),
                        LLVMOpcode::LLVMStore => Some(1),
                        _ => None,
                    };
                    if let Some(p) = pointer {
                        let space = LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, p)));
                        if space != SHARED && LLVMGetVolatile(i) == 0 {
                            out.push(i);
                        }
                    }
                    i = LLVMGetNextInstruction(i);
                }
            }
        }
    }
    out
}
