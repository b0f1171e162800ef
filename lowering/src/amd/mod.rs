//! AMD GPUs: CDNA (waves of 64 lanes) and RDNA (waves of 32).
//!
//! What a target can do is in its [`TargetDesc`]; names of intrinsics are LLVM's ("User Guide for AMDGPU Backend",
//! IntrinsicsAMDGPU), what they do is in the CDNA2, CDNA3, CDNA4, RDNA3 and RDNA4 instruction set documents.

mod atomic;
mod casts;
mod copies;
mod hints;
mod lanes;
mod math;
mod matrix;
mod memory;
mod print;
mod tdm;
mod waits;

use crate::emit::{Emit, Lowered, internal, unsupported};
use crate::lower::SHARED_MEMORY;
use crate::target::{
    Access, AsmRegisters, Assertion, AsyncCopies, AtomicAccess, BarrierMemory, BlockScales, Clusters,
    Declare, Handlers, Launch, LaunchLimits, MatrixTypes, Target,
};
use linear_layout::plan::{DotType, MatrixInstruction, MemoryInstruction, ShuffleInstruction, WarpCombine};
use linear_layout::target::TargetDesc;
use mlir_host::ir::{Attr, FloatKind, Type, Value};
use ttopt_dialect::tt::enums::{MemSemantic, MemSyncScope};
use ttopt_passes::thread_group::ThreadGroup;

/// A GPU of AMD's.
pub struct Amd {
    desc: TargetDesc,
}

impl Amd {
    /// The target that `desc` describes.
    pub fn new(desc: TargetDesc) -> Self {
        Self { desc }
    }
}

/// The passes from TTGIR to the `llvm` dialect, each in the notation of MLIR's textual pipelines and to be run on the
/// module. With `explain`, they say what they chose as remarks.
pub fn passes(explain: bool) -> Vec<String> {
    let pass = |name: &str, option: &str| format!("{name}{{{option}={explain}}}");
    vec![
        "tritongpu-fuse-reduce-conversions".to_owned(),
        "tritonamdgpu-plain-operations".to_owned(),
        "tritongpu-combine-tensor-select-and-if".to_owned(),
        "tritonamdgpu-buffer-accesses".to_owned(),
        "cse".to_owned(),
        pass("allocate-shared-memory-nv", "report"),
        pass("tritongpu-insert-barriers", "report"),
        "tritonamdgpu-update-async-wait-count".to_owned(),
        "tritonamdgpu-spread-accesses".to_owned(),
        "tritongpu-global-scratch-memory-allocation".to_owned(),
        pass("tritongpu-kernel-decisions", "explain"),
        pass("convert-triton-gpu-to-llvm", "explain"),
    ]
}

/// Bytes of the arguments of a launch that the runtime adds: the number of workgroups along an axis, 32 bits each, comes
/// first (LLVM, "User Guide for AMDGPU Backend", "Code Object V5 Metadata", `hidden_block_count_x`).
const BLOCK_COUNT_BYTES: i64 = 4;

const AXES: [&str; 3] = ["x", "y", "z"];

/// A fence of the threads of a workgroup. One that only orders the LDS does not wait for global memory (LLVM, "Memory
/// Model Relaxation Annotations", `amdgpu-synchronize-as`).
fn fence<'c>(e: &mut Emit<'c>, scope: &str, order: MemSemantic, memory: BarrierMemory) -> Lowered<()> {
    if memory != BarrierMemory::Shared {
        return e.fence(order, scope, &[]);
    }
    let local = "#llvm.mmra_tag<\"amdgpu-synchronize-as\":\"local\">";
    let Some(local) = Attr::parse(e.context(), local) else { return internal("cannot make a tag") };
    e.fence(order, scope, &[("llvm.mmra", local)])
}

impl Target for Amd {
    fn desc(&self) -> &TargetDesc {
        &self.desc
    }
    fn handlers(&self) -> &'static [Handlers] {
        &[hints::HANDLERS, copies::HANDLERS, tdm::HANDLERS]
    }
    fn async_copies(&self) -> Option<&dyn AsyncCopies> {
        None
    }
    fn clusters(&self) -> Option<&dyn Clusters> {
        None
    }
    fn launch_limits(&self) -> LaunchLimits {
        // HSA: work-items of a workgroup.
        LaunchLimits { threads: 1024, blocks: 1 }
    }
    fn descriptor_types<'c>(&self, e: &mut Emit<'c>, rank: usize) -> Lowered<Option<Vec<Type<'c>>>> {
        if self.desc.primitives.tensor_data_mover { tdm::types(e, rank).map(Some) } else { Ok(None) }
    }
    fn keeps_vectors(&self) -> bool {
        true
    }
    fn triple(&self) -> &'static str {
        "amdgcn-amd-amdhsa"
    }
    fn asm_registers(&self) -> &'static AsmRegisters {
        // LLVM's language reference, "Supported Constraint Code List", AMDGPU.
        &AsmRegisters {
            of_lanes: &["v", "a", "VA"],
            one_for_all: &["s", "r"],
            least_bits: 16,
            numbers: &["A", "B", "C", "DA", "DB"],
            about: "it has 'v' for vector registers, 's' for scalar ones and 'a' for accumulators; other letters are for PTX",
        }
    }
    fn thread_id<'c>(&self, e: &mut Emit<'c>, threads: u32) -> Lowered<Value<'c>> {
        let i32t = e.i32();
        let id = e.intrinsic("llvm.amdgcn.workitem.id.x", &[], i32t)?;
        // The register has no other bits; LLVM is told so.
        if threads.is_power_of_two() { e.mask(id, i64::from(threads) - 1) } else { Ok(id) }
    }
    fn lane_id<'c>(&self, e: &mut Emit<'c>) -> Lowered<Value<'c>> {
        lanes::number(e, self.desc.lanes)
    }
    fn uniform<'c>(&self, e: &mut Emit<'c>, value: Value<'c>) -> Lowered<Value<'c>> {
        let i32t = e.i32();
        e.intrinsic("llvm.amdgcn.readfirstlane", &[value], i32t)
    }
    fn program_id<'c>(&self, e: &mut Emit<'c>, axis: usize, _: u32) -> Lowered<Value<'c>> {
        let i32t = e.i32();
        e.intrinsic(&format!("llvm.amdgcn.workgroup.id.{}", AXES[axis]), &[], i32t)
    }
    fn num_programs<'c>(&self, e: &mut Emit<'c>, axis: usize, _: u32) -> Lowered<Value<'c>> {
        let (constant, i32t, i8t) = (e.ptr(memory::CONSTANT)?, e.i32(), e.i8());
        let hidden = e.intrinsic("llvm.amdgcn.implicitarg.ptr", &[], constant)?;
        let at = e.const_i32(BLOCK_COUNT_BYTES * axis as i64)?;
        let at = e.gep(hidden, at, i8t)?;
        let (alignment, invariant) = (Attr::int(e.context(), 64, 4), Attr::unit(e.context()));
        e.value("llvm.load", &[at], i32t, &[("alignment", alignment), ("invariant", invariant)])
    }
    fn load_global<'c>(
        &self,
        e: &mut Emit<'c>,
        access: &Access<'_, 'c>,
        other: Option<&[Value<'c>]>,
    ) -> Lowered<Vec<Value<'c>>> {
        let mask = match (access.mask, access.needed) {
            (Some(mask), Some(needed)) => Some(e.and(mask, needed)?),
            (mask, needed) => mask.or(needed),
        };
        memory::load(e, &Access { mask, ..*access }, other, &self.desc)
    }
    fn store_global<'c>(
        &self,
        e: &mut Emit<'c>,
        access: &Access<'_, 'c>,
        values: &[Value<'c>],
    ) -> Lowered<()> {
        memory::store(e, access, values, &self.desc)
    }
    fn load_shared<'c>(
        &self,
        e: &mut Emit<'c>,
        ptr: Value<'c>,
        count: usize,
        bits: u32,
    ) -> Lowered<Vec<Value<'c>>> {
        memory::load_shared(e, ptr, count, bits)
    }
    fn store_shared<'c>(
        &self,
        e: &mut Emit<'c>,
        ptr: Value<'c>,
        words: &[Value<'c>],
        mask: Option<Value<'c>>,
    ) -> Lowered<()> {
        memory::store_shared(e, ptr, words, mask)
    }
    fn count_shared<'c>(&self, e: &mut Emit<'c>, ptr: Value<'c>, mask: Option<Value<'c>>) -> Lowered<()> {
        atomic::count_shared(e, ptr, mask)
    }
    fn shuffle_xor<'c>(
        &self,
        e: &mut Emit<'c>,
        value: Value<'c>,
        mask: u64,
        instruction: ShuffleInstruction,
    ) -> Lowered<Value<'c>> {
        lanes::exchange(e, value, mask, instruction, self.desc.lanes)
    }
    fn picks_bytes(&self) -> bool {
        true
    }
    fn pick_bytes<'c>(
        &self,
        e: &mut Emit<'c>,
        words: [Value<'c>; 2],
        places: Value<'c>,
    ) -> Lowered<Value<'c>> {
        let i32t = e.i32();
        // `v_perm_b32` numbers the bytes of its second operand first.
        e.intrinsic("llvm.amdgcn.perm", &[words[1], words[0], places], i32t)
    }
    fn shuffle_index<'c>(&self, e: &mut Emit<'c>, value: Value<'c>, lane: Value<'c>) -> Lowered<Value<'c>> {
        lanes::read_lane(e, value, lane)
    }
    fn combine_warp<'c>(&self, _: &mut Emit<'c>, _: Value<'c>, combine: WarpCombine) -> Lowered<Value<'c>> {
        unsupported(format!("the target {} combines no warp by '{}' at once", self.desc.name, combine.name()))
    }
    fn load_matrix<'c>(
        &self,
        e: &mut Emit<'c>,
        ptr: Value<'c>,
        instruction: MemoryInstruction,
    ) -> Lowered<Vec<Value<'c>>> {
        memory::load_transposed(e, ptr, instruction)
    }
    fn store_matrix<'c>(
        &self,
        _: &mut Emit<'c>,
        _: Value<'c>,
        _: &[Value<'c>],
        _: MemoryInstruction,
    ) -> Lowered<()> {
        unsupported(format!("the target {} stores no matrices", self.desc.name))
    }
    fn matrix_fragment<'c>(
        &self,
        e: &mut Emit<'c>,
        kind: DotType,
        elements: &[Value<'c>],
    ) -> Lowered<Vec<Value<'c>>> {
        matrix::pack(e, kind, elements)
    }
    fn matrix_elements<'c>(
        &self,
        e: &mut Emit<'c>,
        _: DotType,
        fragment: &[Value<'c>],
    ) -> Lowered<Vec<Value<'c>>> {
        matrix::unpack(e, fragment)
    }
    fn multiply_matrices<'c>(
        &self,
        e: &mut Emit<'c>,
        instruction: &MatrixInstruction,
        types: &MatrixTypes<'c>,
        fragments: [&[Value<'c>]; 3],
    ) -> Lowered<Vec<Value<'c>>> {
        matrix::multiply(e, instruction, types, fragments)
    }
    fn multiply_scaled<'c>(
        &self,
        e: &mut Emit<'c>,
        instruction: &MatrixInstruction,
        types: &MatrixTypes<'c>,
        fragments: [&[Value<'c>]; 3],
        scales: [&BlockScales<'c>; 2],
    ) -> Lowered<Vec<Value<'c>>> {
        matrix::multiply_scaled(e, instruction, types, fragments, scales)
    }
    fn add_products<'c>(
        &self,
        e: &mut Emit<'c>,
        kind: DotType,
        fragments: [&[Value<'c>]; 2],
        sum: Value<'c>,
    ) -> Lowered<Value<'c>> {
        matrix::add_products(e, kind, fragments, sum)
    }
    fn math<'c>(
        &self,
        e: &mut Emit<'c>,
        module: &mut dyn Declare<'c>,
        name: &str,
        args: &[Value<'c>],
    ) -> Lowered<Value<'c>> {
        math::emit(e, module, name, args)
    }
    fn external<'c>(
        &self,
        e: &mut Emit<'c>,
        symbol: &str,
        args: &[Value<'c>],
        result: Type<'c>,
    ) -> Lowered<Option<Value<'c>>> {
        if symbol.starts_with("__nv_") {
            return unsupported(format!(
                "'{symbol}' is a function of NVIDIA's libdevice, which {} does not have",
                self.desc.name
            ));
        }
        symbol.strip_prefix("__triton_hip_").map(|name| math::of_front_end(e, name, args, result)).transpose()
    }
    fn convert_floats<'c>(
        &self,
        e: &mut Emit<'c>,
        values: &[Value<'c>],
        from: FloatKind,
        to: FloatKind,
        towards_zero: bool,
    ) -> Lowered<Vec<Value<'c>>> {
        casts::convert(e, values, from, to, towards_zero, self.desc.fp8_conversions)
    }
    fn convert_bytes<'c>(
        &self,
        e: &mut Emit<'c>,
        values: &[Value<'c>],
        is_signed: bool,
        to: FloatKind,
    ) -> Lowered<Vec<Value<'c>>> {
        let (name, ty) = (if is_signed { "llvm.sitofp" } else { "llvm.uitofp" }, e.float(to));
        values.iter().map(|value| e.value(name, &[*value], ty, &[])).collect()
    }
    fn unpack_fp4<'c>(
        &self,
        e: &mut Emit<'c>,
        bytes: &[Value<'c>],
        to: FloatKind,
    ) -> Lowered<Option<Vec<[Value<'c>; 2]>>> {
        casts::unpack_fp4(e, bytes, to, self.desc.primitives.fp4_conversions)
    }
    fn assert<'c>(
        &self,
        e: &mut Emit<'c>,
        module: &mut dyn Declare<'c>,
        failed: &Assertion<'_>,
    ) -> Lowered<()> {
        print::assert(e, module, failed)
    }
    fn print<'c>(
        &self,
        e: &mut Emit<'c>,
        module: &mut dyn Declare<'c>,
        format: &str,
        args: &[Value<'c>],
        _: Value<'c>,
    ) -> Lowered<()> {
        print::print(e, module, format, args)
    }
    fn barrier<'c>(
        &self,
        e: &mut Emit<'c>,
        _: &ThreadGroup,
        alone: bool,
        memory: BarrierMemory,
    ) -> Lowered<()> {
        if !alone {
            return unsupported(format!("the target {} has no barrier for a part of a CTA", self.desc.name));
        }
        if e.has_copies() && memory == BarrierMemory::Shared && !self.desc.primitives.async_to_lds {
            // A fence of the workgroup would wait for copies, too, unless they are counted apart.
            fence(e, "wavefront", MemSemantic::Release, memory)?;
            waits::shared(e, &self.desc)?;
            e.intrinsic_void("llvm.amdgcn.s.barrier", &[])?;
            return fence(e, "wavefront", MemSemantic::Acquire, memory);
        }
        fence(e, "workgroup", MemSemantic::Release, memory)?;
        e.intrinsic_void("llvm.amdgcn.s.barrier", &[])?;
        fence(e, "workgroup", MemSemantic::Acquire, memory)
    }
    fn gives_zero_where_masked(&self) -> bool {
        true
    }
    fn keep_order<'c>(&self, e: &mut Emit<'c>, issued: bool) -> Lowered<()> {
        // What may cross (LLVM, "User Guide for AMDGPU Backend", llvm.amdgcn.sched.barrier): arithmetic and reads of the
        // LDS; or all but matrix instructions and accesses to global memory.
        const TO_ISSUE: i64 = 0x1 | 0x100;
        const ISSUED: i64 = 0x2 | 0x4 | 0x80 | 0x400;
        let mask = e.const_i32(if issued { ISSUED } else { TO_ISSUE })?;
        e.intrinsic_void("llvm.amdgcn.sched.barrier", &[mask])
    }
    fn warp_barrier<'c>(&self, e: &mut Emit<'c>, memory: BarrierMemory) -> Lowered<()> {
        // Lanes run in step, and the LDS serves a wave in order: only LLVM must not reorder.
        fence(e, "wavefront", MemSemantic::Release, memory)?;
        e.intrinsic_void("llvm.amdgcn.wave.barrier", &[])?;
        fence(e, "wavefront", MemSemantic::Acquire, memory)
    }
    fn atomic<'c>(&self, e: &mut Emit<'c>, access: &AtomicAccess<'_, 'c>) -> Lowered<Option<Vec<Value<'c>>>> {
        atomic::emit(e, self, access).map(Some)
    }
    fn fence<'c>(
        &self,
        e: &mut Emit<'c>,
        _: Option<Value<'c>>,
        order: MemSemantic,
        scope: MemSyncScope,
    ) -> Lowered<()> {
        // A wave that has nothing to order waits for nothing: it costs less than a branch around it.
        e.fence(order, self.sync_scope(scope), &[])
    }
    fn nanoseconds<'c>(&self, e: &mut Emit<'c>) -> Lowered<Value<'c>> {
        // The clock runs at 100 MHz (CDNA3 ISA, S_MEMREALTIME).
        let i64t = e.i64();
        let ticks = e.intrinsic("llvm.readsteadycounter", &[], i64t)?;
        let each = e.const_int(64, 10)?;
        e.same("llvm.mul", &[ticks, each])
    }
    fn sync_scope(&self, scope: MemSyncScope) -> &'static str {
        match scope {
            MemSyncScope::Gpu => "agent",
            MemSyncScope::Cta => "workgroup",
            MemSyncScope::System => "",
        }
    }
    fn refuses_name(&self, name: &str, _: bool) -> Option<String> {
        let is_reserved = name == SHARED_MEMORY
            || ["__ocml_", "__ockl_", "__oclc_", "__ttopt_", "llvm."]
                .iter()
                .any(|prefix| name.starts_with(prefix));
        if is_reserved {
            return Some(format!("'{name}' is a name of the target's or the compiler's own"));
        }
        self.refuses_symbol(name)
    }
    fn refuses_symbol(&self, name: &str) -> Option<String> {
        // What is behind an '@' is a symbol's version (System V ABI, "Symbol Versioning"); names end with a zero.
        let is_symbol = !name.is_empty() && !name.contains(['@', '\0']);
        (!is_symbol).then(|| format!("'{}' is no symbol of an object file", name.escape_default()))
    }
    fn descriptor_attrs(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    fn kernel_attrs(&self, launch: &Launch) -> Vec<(&'static str, String)> {
        let threads = launch.threads;
        // LLVM, "User Guide for AMDGPU Backend", "Function attributes".
        let cpu = self.desc.name.trim_start_matches("hip:");
        let mut strings = vec![
            ("target-cpu", cpu.to_owned()),
            ("amdgpu-flat-work-group-size", format!("{threads},{threads}")),
            ("uniform-work-group-size", "true".to_owned()),
            ("amdgpu-no-completion-action", String::new()),
            ("amdgpu-no-default-queue", String::new()),
            ("amdgpu-no-heap-ptr", String::new()),
            ("amdgpu-no-multigrid-sync-arg", String::new()),
        ];
        // At least and at most.
        strings.extend(launch.waves_per_eu.map(|waves| ("amdgpu-waves-per-eu", format!("{waves},{waves}"))));
        let list: Vec<String> =
            strings
                .iter()
                .map(|(key, value)| {
                    if value.is_empty() { format!("\"{key}\"") } else { format!("[\"{key}\", \"{value}\"]") }
                })
                .collect();
        vec![
            ("CConv", "#llvm.cconv<amdgpu_kernelcc>".to_owned()),
            ("passthrough", format!("[{}]", list.join(", "))),
        ]
    }
}
