//! Reads LLVM IR into [`crate::ir`].
//!
//! This and `merge` are the only places that touch LLVM. All unsafe code is calls of LLVM's C API on values that
//! belong to the module given, which outlives the walk.

mod constant;
mod names;

use std::collections::HashMap;
use std::ffi::CStr;

use inkwell::context::Context;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::*;
use inkwell::llvm_sys::target::{
    LLVMABISizeOfType, LLVMGetModuleDataLayout, LLVMOffsetOfElement, LLVMPointerSizeForAS,
};
use inkwell::llvm_sys::{LLVMAtomicOrdering, LLVMOpcode, LLVMTypeKind, LLVMValueKind};
use inkwell::memory_buffer::MemoryBuffer;

use names::{fcmp_name, icmp_name, printed, rmw_name, simple};

use crate::ir::*;
use crate::mem::MOST_VARIABLES;
use crate::{Error, gpu, merge, text};

/// LLVM's number of the calling convention `ptx_kernel`.
pub(crate) const PTX_KERNEL: u32 = 71;
/// And of `amdgpu_kernel`.
const AMDGPU_KERNEL: u32 = 91;

/// Parses LLVM IR, as text or bitcode. Text of a newer LLVM is normalized first (see [`crate::text`]). For
/// NVIDIA, neighbouring accesses of a thread are merged as the code generator and `ptxas` would merge them, so
/// that the counts are those of the accesses the hardware sees.
///
/// # Errors
/// For what LLVM cannot parse or its verifier refuses. Bitcode that has debug information and that the verifier refuses is
/// the exception: there LLVM ends the process.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Module, Error> {
    let failed = |message: String| Error::Parse { file: name.to_owned(), message: message.trim().to_owned() };
    let context = Context::create();
    let module = match std::str::from_utf8(bytes) {
        Ok(source) if !bytes.starts_with(b"BC") => {
            let source = text::normalize(source);
            if source.contains(VERSION_FLAG) {
                verified_without_lines(name, &source).map_err(failed)?;
            }
            load(&context, name, source.as_bytes())
        }
        _ => load(&context, name, bytes),
    };
    let module = module.map_err(failed)?;
    merge::accesses(&module).map_err(failed)?;
    from_llvm(&module)
}

/// The flag of a module that has debug information.
const VERSION_FLAG: &str = "!\"Debug Info Version\"";
/// As long as the flag, so that places in messages stay.
const OTHER_FLAG: &str = "!\"Debug Info Removed\"";

/// LLVM verifies modules with debug information while it parses them, and ends the process where they are wrong. So they are
/// verified without first.
fn verified_without_lines(name: &str, source: &str) -> Result<(), String> {
    extern "C" fn say_nothing(_: LLVMDiagnosticInfoRef, _: *mut std::ffi::c_void) {}
    let context = Context::create();
    // That debug information of no version is removed is a warning.
    // SAFETY: the context is alive, and the handler keeps nothing.
    unsafe { LLVMContextSetDiagnosticHandler(context.raw(), Some(say_nothing), std::ptr::null_mut()) };
    load(&context, name, source.replace(VERSION_FLAG, OTHER_FLAG).as_bytes()).map(drop)
}

fn load<'c>(context: &'c Context, name: &str, data: &[u8]) -> Result<inkwell::module::Module<'c>, String> {
    // LLVM ends its copy with the zero that its parser needs.
    let buffer = MemoryBuffer::create_from_memory_range_copy(data, name);
    let module = context.create_module_from_ir(buffer).map_err(|e| e.to_string())?;
    module.verify().map_err(|e| e.to_string())?;
    Ok(module)
}

/// Reads a module that is already in memory, for instance the one a compiler is about to emit.
pub fn from_llvm(module: &inkwell::module::Module<'_>) -> Result<Module, Error> {
    // SAFETY: `module` keeps every value the reader reaches alive during the walk.
    unsafe { Reader::new(module.as_mut_ptr()).module() }
}

struct Reader {
    module: LLVMModuleRef,
    layout: inkwell::llvm_sys::target::LLVMTargetDataRef,
    globals: HashMap<LLVMValueRef, usize>,
    files: Vec<String>,
}

/// A constant as scalars, or a reason why not.
type Scalars = Result<Vec<Scalar>, String>;

unsafe fn text_of(p: *const std::ffi::c_char, len: usize) -> String {
    if p.is_null() {
        return String::new();
    }
    // SAFETY: LLVM returns pointers to `len` bytes it owns.
    let bytes = unsafe { std::slice::from_raw_parts(p.cast::<u8>(), len) };
    String::from_utf8_lossy(bytes).into_owned()
}

unsafe fn name_of(v: LLVMValueRef) -> String {
    let mut len = 0;
    // SAFETY: `v` is a live value.
    unsafe { text_of(LLVMGetValueName2(v, &mut len), len) }
}

/// What a call calls.
unsafe fn callee(v: LLVMValueRef) -> Callee {
    // SAFETY: `v` is a live value; LLVM returns text of the lengths that it says.
    unsafe {
        if LLVMIsAInlineAsm(v).is_null() {
            return Callee::Named(name_of(v));
        }
        let (mut a, mut c) = (0, 0);
        let asm = text_of(LLVMGetInlineAsmAsmString(v, &mut a), a);
        let constraints = text_of(LLVMGetInlineAsmConstraintString(v, &mut c), c);
        let text = |text: String| text.trim_end_matches('\0').to_owned();
        Callee::Asm(text(asm), text(constraints))
    }
}

#[allow(unused_unsafe)]
impl Reader {
    unsafe fn new(module: LLVMModuleRef) -> Reader {
        // SAFETY: the module is live.
        let layout = unsafe { LLVMGetModuleDataLayout(module) };
        Reader { module, layout, globals: HashMap::new(), files: vec![String::new()] }
    }

    unsafe fn module(mut self) -> Result<Module, Error> {
        // SAFETY: walks the lists of a live module.
        unsafe {
            let mut order = Vec::new();
            let mut g = LLVMGetFirstGlobal(self.module);
            while !g.is_null() {
                self.globals.insert(g, order.len());
                order.push(g);
                g = LLVMGetNextGlobal(g);
            }
            let mut globals = Vec::new();
            for g in order {
                let ty = LLVMGlobalGetValueType(g);
                let size = LLVMABISizeOfType(self.layout, ty);
                if size > MOST_VARIABLES {
                    let what = format!("a variable of {size} bytes, the most is {MOST_VARIABLES}");
                    return Err(Error::Unsupported { what, place: name_of(g) });
                }
                let init = LLVMGetInitializer(g);
                let mut bytes = Vec::new();
                if !init.is_null()
                    && !matches!(
                        LLVMGetValueKind(init),
                        LLVMValueKind::LLVMUndefValueValueKind | LLVMValueKind::LLVMPoisonValueKind
                    )
                {
                    bytes = vec![0; size as usize];
                    let scalars =
                        self.constant(init).map_err(|m| Error::Unsupported { what: m, place: name_of(g) })?;
                    let mut at = Vec::new();
                    self.field_offsets(ty, 0, &mut at);
                    for (s, (off, len)) in scalars.iter().zip(at) {
                        if let Scalar::Bits(b) = s {
                            bytes[off as usize..off as usize + len].copy_from_slice(&b.to_le_bytes()[..len]);
                        }
                    }
                }
                let space = LLVMGetPointerAddressSpace(LLVMTypeOf(g));
                globals.push(Global {
                    name: name_of(g),
                    space,
                    init: bytes,
                    size,
                    align: LLVMGetAlignment(g).max(1),
                });
            }
            let mut functions = Vec::new();
            let mut f = LLVMGetFirstFunction(self.module);
            while !f.is_null() {
                if LLVMCountBasicBlocks(f) > 0 {
                    functions.push(self.function(f)?);
                }
                f = LLVMGetNextFunction(f);
            }
            let mut len = 0;
            let flag = LLVMGetModuleFlag(self.module, c"nvvm-reflect-ftz".as_ptr(), 16);
            let reflect_ftz = !flag.is_null() && {
                let v = LLVMMetadataAsValue(LLVMGetModuleContext(self.module), flag);
                let c = if LLVMIsAValueAsMetadata(v).is_null() {
                    std::ptr::null_mut()
                } else {
                    LLVMGetOperand(v, 0)
                };
                !c.is_null() && LLVMConstIntGetZExtValue(c) != 0
            };
            let triple = CStr::from_ptr(LLVMGetTarget(self.module)).to_string_lossy().into_owned();
            let data_layout = text_of(
                LLVMGetDataLayoutStr(self.module),
                CStr::from_ptr(LLVMGetDataLayoutStr(self.module)).count_bytes(),
            );
            let mut source = LLVMGetSourceFileName(self.module, &mut len);
            if len == 0 {
                source = std::ptr::null();
            }
            if !source.is_null() {
                self.files[0] = text_of(source, len);
            }
            let amd_kernel = functions.iter().any(|f: &(Function, u32)| f.1 == AMDGPU_KERNEL);
            let amd = triple.starts_with("amdg") || amd_kernel || data_layout.contains("-A5");
            let functions = functions.into_iter().map(|f| f.0).collect();
            Ok(Module {
                functions,
                globals,
                files: self.files,
                vendor: if amd { Vendor::Amd } else { Vendor::Nvidia },
                triple_cpu: gpu::of_triple(&triple),
                cpu: None,
                reflect_ftz,
            })
        }
    }

    unsafe fn ty(&self, t: LLVMTypeRef) -> Ty {
        // SAFETY: `t` belongs to the module's context.
        unsafe {
            match LLVMGetTypeKind(t) {
                LLVMTypeKind::LLVMVoidTypeKind => Ty::Void,
                LLVMTypeKind::LLVMIntegerTypeKind => Ty::Int(LLVMGetIntTypeWidth(t)),
                LLVMTypeKind::LLVMHalfTypeKind => Ty::F16,
                LLVMTypeKind::LLVMBFloatTypeKind => Ty::BF16,
                LLVMTypeKind::LLVMFloatTypeKind => Ty::F32,
                LLVMTypeKind::LLVMDoubleTypeKind => Ty::F64,
                LLVMTypeKind::LLVMPointerTypeKind => {
                    let space = LLVMGetPointerAddressSpace(t);
                    // Buffer resources (AMD address space 8) are 128 bits wide; their value here is the
                    // address of a descriptor that the interpreter keeps.
                    Ty::Ptr(space, (LLVMPointerSizeForAS(self.layout, space) * 8).min(64))
                }
                LLVMTypeKind::LLVMVectorTypeKind => {
                    Ty::Vec(Box::new(self.ty(LLVMGetElementType(t))), LLVMGetVectorSize(t))
                }
                LLVMTypeKind::LLVMArrayTypeKind => {
                    Ty::Array(Box::new(self.ty(LLVMGetElementType(t))), LLVMGetArrayLength2(t))
                }
                LLVMTypeKind::LLVMStructTypeKind => Ty::Struct(
                    (0..LLVMCountStructElementTypes(t))
                        .map(|i| self.ty(LLVMStructGetTypeAtIndex(t, i)))
                        .collect(),
                ),
                _ => {
                    let p = LLVMPrintTypeToString(t);
                    let s = CStr::from_ptr(p).to_string_lossy().into_owned();
                    LLVMDisposeMessage(p);
                    Ty::Other(s)
                }
            }
        }
    }

    /// A function and its calling convention.
    unsafe fn function(&mut self, f: LLVMValueRef) -> Result<(Function, u32), Error> {
        // SAFETY: walks a live function.
        unsafe {
            let name = name_of(f);
            let mut ids = HashMap::new();
            let mut blocks_of = HashMap::new();
            let mut args = HashMap::new();
            let params: Vec<Ty> = (0..LLVMCountParams(f))
                .map(|i| {
                    let p = LLVMGetParam(f, i);
                    args.insert(p, i);
                    self.ty(LLVMTypeOf(p))
                })
                .collect();
            let mut order = Vec::new();
            let mut b = LLVMGetFirstBasicBlock(f);
            while !b.is_null() {
                blocks_of.insert(b, order.len() as u32);
                let mut list = Vec::new();
                let mut i = LLVMGetFirstInstruction(b);
                while !i.is_null() {
                    ids.insert(i, ids.len() as u32);
                    list.push(i);
                    i = LLVMGetNextInstruction(i);
                }
                order.push(list);
                b = LLVMGetNextBasicBlock(b);
            }
            let names = Names { ids, args, blocks: blocks_of };
            let mut blocks = Vec::new();
            for list in order {
                let mut block = Vec::new();
                for i in list {
                    let inst = self.inst(i, &names).map_err(|what| Error::Unsupported {
                        what,
                        place: format!("@{name}: {}", printed(i)),
                    })?;
                    block.push(inst);
                }
                blocks.push(block);
            }
            let cc = LLVMGetFunctionCallConv(f);
            let sizes = |key: &str| {
                let text = self.attribute(f, key)?;
                let malformed = || Error::Launch(format!("@{name}: the attribute {key}=\"{text}\""));
                Some(numbers(&text).ok_or_else(malformed))
            };
            let block = match sizes("nvvm.reqntid").transpose()? {
                Some(list) => Some(dims(&list)),
                None => self.work_group_size(f).map(|list| dims(&list)),
            };
            let threads = match sizes("amdgpu-flat-work-group-size").transpose()?.as_deref() {
                Some([least, most]) => Some((*least, *most)),
                _ => None,
            };
            let cluster = sizes("nvvm.cluster_dim").transpose()?.map(|list| dims(&list));
            let cpu = self.attribute(f, "target-cpu").filter(|s| !s.is_empty());
            let features = self.attribute(f, "target-features").unwrap_or_default();
            let kernel = cc == PTX_KERNEL || cc == AMDGPU_KERNEL;
            let insts = names.ids.len() as u32;
            let function =
                Function { name, params, blocks, insts, kernel, block, threads, cluster, cpu, features };
            Ok((function, cc))
        }
    }

    /// Whether a fence orders device memory between the threads of a program: not one of a wave or a thread, nor one that
    /// says to order the LDS only (LLVM, "User Guide for AMDGPU Backend", "Memory Model": `amdgpu-synchronize-as`).
    unsafe fn orders_device(&self, v: LLVMValueRef) -> bool {
        // SAFETY: `v` is a live fence; names are given with their lengths.
        unsafe {
            let context = LLVMGetModuleContext(self.module);
            let scope = LLVMGetAtomicSyncScopeID(v);
            let is = |name: &str| LLVMGetSyncScopeID(context, name.as_ptr().cast(), name.len()) == scope;
            let narrow = ["wavefront", "wavefront-one-as", "singlethread", "singlethread-one-as"];
            let kind = LLVMGetMDKindIDInContext(context, c"mmra".as_ptr(), 4);
            let node = LLVMGetMetadata(v, kind);
            !narrow.into_iter().any(is) && (node.is_null() || !is_of_lds(node))
        }
    }

    /// The metadata `reqd_work_group_size`.
    unsafe fn work_group_size(&self, f: LLVMValueRef) -> Option<Vec<u32>> {
        // SAFETY: walks the metadata of a live function; LLVM's copy of the list is disposed of.
        unsafe {
            let context = LLVMGetModuleContext(self.module);
            let key = "reqd_work_group_size";
            let kind = LLVMGetMDKindIDInContext(context, key.as_ptr().cast(), key.len() as u32);
            let mut count = 0;
            let list = LLVMGlobalCopyAllMetadata(f, &mut count);
            let node = (0..count as u32)
                .find(|i| LLVMValueMetadataEntriesGetKind(list, *i) == kind)
                .map(|i| LLVMValueMetadataEntriesGetMetadata(list, i));
            LLVMDisposeValueMetadataEntries(list);
            let node = LLVMMetadataAsValue(context, node?);
            let mut operands = vec![std::ptr::null_mut(); LLVMGetMDNodeNumOperands(node) as usize];
            LLVMGetMDNodeOperands(node, operands.as_mut_ptr());
            let number = |v: &LLVMValueRef| {
                let known = !v.is_null() && !LLVMIsAConstantInt(*v).is_null();
                known.then(|| LLVMConstIntGetZExtValue(*v) as u32)
            };
            operands.iter().map(number).collect()
        }
    }

    unsafe fn attribute(&self, f: LLVMValueRef, key: &str) -> Option<String> {
        // SAFETY: `f` is live; the attribute's text lives as long as the context.
        unsafe {
            let a = LLVMGetStringAttributeAtIndex(f, u32::MAX, key.as_ptr().cast(), key.len() as u32);
            if a.is_null() {
                return None;
            }
            let mut len = 0;
            let p = LLVMGetStringAttributeValue(a, &mut len);
            Some(text_of(p, len as usize))
        }
    }

    unsafe fn operand(&self, v: LLVMValueRef, names: &Names) -> Result<Operand, String> {
        if let Some(id) = names.ids.get(&v) {
            return Ok(Operand::Inst(*id));
        }
        if let Some(i) = names.args.get(&v) {
            return Ok(Operand::Arg(*i));
        }
        // SAFETY: what is neither instruction nor argument is a constant or metadata.
        unsafe {
            if LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMTypeKind::LLVMMetadataTypeKind {
                return Ok(Operand::Const(Vec::new()));
            }
            self.constant(v).map(Operand::Const)
        }
    }

    unsafe fn inst(&mut self, v: LLVMValueRef, names: &Names) -> Result<Inst, String> {
        // SAFETY: `v` is a live instruction.
        unsafe {
            use LLVMOpcode::*;
            let op = LLVMGetInstructionOpcode(v);
            let n = LLVMGetNumOperands(v) as u32;
            let block = |i: u32| names.blocks[&LLVMValueAsBasicBlock(LLVMGetOperand(v, i))];
            let mut sources: Vec<LLVMValueRef> = Vec::new();
            let mut all = || sources.extend((0..n).map(|i| LLVMGetOperand(v, i)));
            let code = match op {
                LLVMRet => {
                    all();
                    Code::Ret
                }
                LLVMBr if n == 1 => Code::Br(block(0)),
                LLVMBr => {
                    sources.push(LLVMGetCondition(v));
                    Code::CondBr(names.blocks[&LLVMGetSuccessor(v, 0)], names.blocks[&LLVMGetSuccessor(v, 1)])
                }
                LLVMSwitch => {
                    sources.push(LLVMGetOperand(v, 0));
                    let value = |i| LLVMConstIntGetZExtValue(LLVMGetSwitchCaseValue(v, i));
                    let case = |i| (value(i), names.blocks[&LLVMGetSuccessor(v, i)]);
                    let cases = (1..LLVMGetNumSuccessors(v)).map(case).collect();
                    Code::Switch(names.blocks[&LLVMGetSwitchDefaultDest(v)], cases)
                }
                LLVMUnreachable => Code::Unreachable,
                LLVMPHI => {
                    let k = LLVMCountIncoming(v);
                    sources.extend((0..k).map(|i| LLVMGetIncomingValue(v, i)));
                    Code::Phi((0..k).map(|i| names.blocks[&LLVMGetIncomingBlock(v, i)]).collect())
                }
                LLVMCall => {
                    let k = LLVMGetNumArgOperands(v);
                    sources.extend((0..k).map(|i| LLVMGetOperand(v, i)));
                    Code::Call(callee(LLVMGetCalledValue(v)))
                }
                LLVMGetElementPtr => {
                    let mut offset = 0;
                    let mut dynamic = Vec::new();
                    self.gep(v, &mut offset, &mut dynamic);
                    sources.push(LLVMGetOperand(v, 0));
                    sources.extend(dynamic.iter().map(|d| d.0));
                    Code::Gep { offset, strides: dynamic.iter().map(|d| d.1).collect() }
                }
                LLVMAlloca => {
                    let count = LLVMGetOperand(v, 0);
                    if LLVMIsAConstantInt(count).is_null() {
                        return Err("alloca of unknown size".into());
                    }
                    let each = LLVMABISizeOfType(self.layout, LLVMGetAllocatedType(v));
                    Code::Alloca(each.saturating_mul(LLVMConstIntGetZExtValue(count)))
                }
                LLVMLoad | LLVMStore => {
                    all();
                    let order = order(LLVMGetOrdering(v), LLVMGetVolatile(v) != 0);
                    let align = LLVMGetAlignment(v);
                    if op == LLVMLoad { Code::Load { align, order } } else { Code::Store { align, order } }
                }
                LLVMAtomicRMW => {
                    all();
                    Code::AtomicRmw(rmw_name(LLVMGetAtomicRMWBinOp(v)), order(LLVMGetOrdering(v), true))
                }
                LLVMAtomicCmpXchg => {
                    all();
                    Code::CmpXchg(order(LLVMGetCmpXchgSuccessOrdering(v), true))
                }
                LLVMFence => {
                    Code::Fence { order: order(LLVMGetOrdering(v), true), device: self.orders_device(v) }
                }
                LLVMICmp => {
                    all();
                    Code::ICmp(icmp_name(LLVMGetICmpPredicate(v)))
                }
                LLVMFCmp => {
                    all();
                    Code::FCmp(fcmp_name(LLVMGetFCmpPredicate(v)))
                }
                LLVMExtractValue | LLVMInsertValue => {
                    all();
                    let (first, count) = self.part(v)?;
                    if op == LLVMExtractValue {
                        Code::ExtractValue { first, count }
                    } else {
                        Code::InsertValue { first }
                    }
                }
                LLVMShuffleVector => {
                    sources.push(LLVMGetOperand(v, 0));
                    sources.push(LLVMGetOperand(v, 1));
                    Code::Shuffle((0..LLVMGetNumMaskElements(v)).map(|i| LLVMGetMaskValue(v, i)).collect())
                }
                _ => {
                    all();
                    simple(op)
                }
            };
            let mut args = Vec::with_capacity(sources.len());
            let mut arg_tys = Vec::with_capacity(sources.len());
            for s in sources {
                args.push(self.operand(s, names)?);
                arg_tys.push(self.ty(LLVMTypeOf(s)));
            }
            let loc = self.location(v);
            Ok(Inst { id: names.ids[&v], code, ty: self.ty(LLVMTypeOf(v)), args, arg_tys, loc })
        }
    }

    /// The scalars of an aggregate that `extractvalue` or `insertvalue` names: the first, and how many.
    unsafe fn part(&self, v: LLVMValueRef) -> Result<(usize, usize), String> {
        // SAFETY: `v` is one of these instructions, and LLVM's verifier knows that its path is one of its aggregate.
        unsafe {
            let path = std::slice::from_raw_parts(LLVMGetIndices(v), LLVMGetNumIndices(v) as usize);
            let mut ty = self.ty(LLVMTypeOf(LLVMGetOperand(v, 0)));
            let mut first = 0;
            for i in path.iter().map(|i| *i as usize) {
                ty = match ty {
                    Ty::Struct(f) => {
                        first += f[..i].iter().map(|t| t.scalars().len()).sum::<usize>();
                        f[i].clone()
                    }
                    Ty::Array(t, _) => {
                        first += i * t.scalars().len();
                        *t
                    }
                    other => return Err(format!("index into {other:?}")),
                };
            }
            Ok((first, ty.scalars().len()))
        }
    }

    unsafe fn location(&mut self, v: LLVMValueRef) -> Loc {
        // SAFETY: `v` is a live instruction; LLVM returns null without a location.
        unsafe {
            let line = LLVMGetDebugLocLine(v);
            if line == 0 {
                return Loc::default();
            }
            let mut len = 0;
            let p = LLVMGetDebugLocFilename(v, &mut len);
            let file = text_of(p, len as usize);
            let index = match self.files.iter().position(|f| *f == file) {
                Some(i) => i,
                None => {
                    self.files.push(file);
                    self.files.len() - 1
                }
            };
            Loc { file: index as u32, line }
        }
    }
}

/// What LLVM's ordering of an access means.
fn order(o: LLVMAtomicOrdering, volatile: bool) -> Order {
    use LLVMAtomicOrdering::*;
    match o {
        LLVMAtomicOrderingNotAtomic | LLVMAtomicOrderingUnordered if !volatile => Order::default(),
        LLVMAtomicOrderingAcquire => Order::atomic(true, false),
        LLVMAtomicOrderingRelease => Order::atomic(false, true),
        LLVMAtomicOrderingAcquireRelease | LLVMAtomicOrderingSequentiallyConsistent => {
            Order::atomic(true, true)
        }
        _ => Order::RELAXED,
    }
}

/// One to three positive numbers.
fn numbers(text: &str) -> Option<Vec<u32>> {
    let list: Vec<u32> = text.split(',').map(|n| n.trim().parse().ok()).collect::<Option<_>>()?;
    (list.len() <= 3 && !list.contains(&0)).then_some(list)
}

/// Sizes along x, y, z; what is not said is 1.
fn dims(list: &[u32]) -> [u32; 3] {
    std::array::from_fn(|i| list.get(i).copied().unwrap_or(1))
}

struct Names {
    ids: HashMap<LLVMValueRef, u32>,
    args: HashMap<LLVMValueRef, u32>,
    blocks: HashMap<LLVMBasicBlockRef, u32>,
}

/// Whether a node `!{!"amdgpu-synchronize-as", !"local"}`, of `!mmra`, is of the LDS alone.
unsafe fn is_of_lds(node: LLVMValueRef) -> bool {
    // SAFETY: a live node of metadata; the texts live as long as its context.
    unsafe {
        let mut parts = vec![std::ptr::null_mut(); LLVMGetMDNodeNumOperands(node) as usize];
        LLVMGetMDNodeOperands(node, parts.as_mut_ptr());
        let text = |v: &LLVMValueRef| {
            let mut len = 0;
            let p = if v.is_null() { std::ptr::null() } else { LLVMGetMDString(*v, &mut len) };
            if p.is_null() { String::new() } else { text_of(p, len as usize) }
        };
        let texts: Vec<String> = parts.iter().map(text).collect();
        texts == ["amdgpu-synchronize-as", "local"]
    }
}
