//! LLVM's names of predicates and operations, and bits of constants.

use std::ffi::CStr;

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::*;
use inkwell::llvm_sys::{LLVMAtomicRMWBinOp, LLVMIntPredicate, LLVMOpcode, LLVMRealPredicate};

use crate::ir::Code;

pub(super) fn mask(v: u64, bits: u32) -> u64 {
    if bits == 0 || bits >= 64 { v } else { v & ((1 << bits) - 1) }
}

pub(super) fn sign_extend(v: u64, bits: u32) -> i64 {
    if bits == 0 || bits >= 64 { v as i64 } else { ((v << (64 - bits)) as i64) >> (64 - bits) }
}

pub(super) unsafe fn printed(v: LLVMValueRef) -> String {
    // SAFETY: `v` is live; the text is copied before it is freed.
    unsafe {
        let p = LLVMPrintValueToString(v);
        let s = CStr::from_ptr(p).to_string_lossy().trim().to_owned();
        LLVMDisposeMessage(p);
        s.chars().take(200).collect()
    }
}

pub(super) fn icmp_name(p: LLVMIntPredicate) -> &'static str {
    use LLVMIntPredicate::*;
    match p {
        LLVMIntEQ => "eq",
        LLVMIntNE => "ne",
        LLVMIntUGT => "ugt",
        LLVMIntUGE => "uge",
        LLVMIntULT => "ult",
        LLVMIntULE => "ule",
        LLVMIntSGT => "sgt",
        LLVMIntSGE => "sge",
        LLVMIntSLT => "slt",
        LLVMIntSLE => "sle",
    }
}

pub(super) fn fcmp_name(p: LLVMRealPredicate) -> &'static str {
    use LLVMRealPredicate::*;
    match p {
        LLVMRealPredicateFalse => "false",
        LLVMRealOEQ => "oeq",
        LLVMRealOGT => "ogt",
        LLVMRealOGE => "oge",
        LLVMRealOLT => "olt",
        LLVMRealOLE => "ole",
        LLVMRealONE => "one",
        LLVMRealORD => "ord",
        LLVMRealUNO => "uno",
        LLVMRealUEQ => "ueq",
        LLVMRealUGT => "ugt",
        LLVMRealUGE => "uge",
        LLVMRealULT => "ult",
        LLVMRealULE => "ule",
        LLVMRealUNE => "une",
        LLVMRealPredicateTrue => "true",
    }
}

pub(super) fn rmw_name(op: LLVMAtomicRMWBinOp) -> &'static str {
    use LLVMAtomicRMWBinOp::*;
    match op {
        LLVMAtomicRMWBinOpXchg => "xchg",
        LLVMAtomicRMWBinOpAdd => "add",
        LLVMAtomicRMWBinOpSub => "sub",
        LLVMAtomicRMWBinOpAnd => "and",
        LLVMAtomicRMWBinOpOr => "or",
        LLVMAtomicRMWBinOpXor => "xor",
        LLVMAtomicRMWBinOpMax => "max",
        LLVMAtomicRMWBinOpMin => "min",
        LLVMAtomicRMWBinOpUMax => "umax",
        LLVMAtomicRMWBinOpUMin => "umin",
        LLVMAtomicRMWBinOpFAdd => "fadd",
        LLVMAtomicRMWBinOpFMax => "fmax",
        LLVMAtomicRMWBinOpFMin => "fmin",
        LLVMAtomicRMWBinOpUIncWrap => "uinc_wrap",
        LLVMAtomicRMWBinOpUDecWrap => "udec_wrap",
        _ => "other",
    }
}

/// Instructions that are known by their opcode alone.
pub(super) fn simple(op: LLVMOpcode) -> Code {
    use LLVMOpcode::*;
    match op {
        LLVMFNeg => Code::FNeg,
        LLVMSelect => Code::Select,
        LLVMFreeze => Code::Freeze,
        LLVMExtractElement => Code::ExtractElement,
        LLVMInsertElement => Code::InsertElement,
        LLVMAdd => Code::Binary("add"),
        LLVMFAdd => Code::Binary("fadd"),
        LLVMSub => Code::Binary("sub"),
        LLVMFSub => Code::Binary("fsub"),
        LLVMMul => Code::Binary("mul"),
        LLVMFMul => Code::Binary("fmul"),
        LLVMUDiv => Code::Binary("udiv"),
        LLVMSDiv => Code::Binary("sdiv"),
        LLVMFDiv => Code::Binary("fdiv"),
        LLVMURem => Code::Binary("urem"),
        LLVMSRem => Code::Binary("srem"),
        LLVMFRem => Code::Binary("frem"),
        LLVMShl => Code::Binary("shl"),
        LLVMLShr => Code::Binary("lshr"),
        LLVMAShr => Code::Binary("ashr"),
        LLVMAnd => Code::Binary("and"),
        LLVMOr => Code::Binary("or"),
        LLVMXor => Code::Binary("xor"),
        LLVMTrunc => Code::Cast("trunc"),
        LLVMZExt => Code::Cast("zext"),
        LLVMSExt => Code::Cast("sext"),
        LLVMFPToUI => Code::Cast("fptoui"),
        LLVMFPToSI => Code::Cast("fptosi"),
        LLVMUIToFP => Code::Cast("uitofp"),
        LLVMSIToFP => Code::Cast("sitofp"),
        LLVMFPTrunc => Code::Cast("fptrunc"),
        LLVMFPExt => Code::Cast("fpext"),
        LLVMPtrToInt => Code::Cast("ptrtoint"),
        LLVMIntToPtr => Code::Cast("inttoptr"),
        LLVMBitCast => Code::Cast("bitcast"),
        LLVMAddrSpaceCast => Code::Cast("addrspacecast"),
        other => Code::Unsupported(format!("{other:?}").trim_start_matches("LLVM").to_lowercase()),
    }
}
