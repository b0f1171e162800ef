//! NVIDIA GPUs.

mod atomic;
mod casts;
mod handlers;
mod math;
mod memory;
mod mma;
mod shared;
mod tma;
mod wgmma;

use crate::emit::{Emit, Lowered, internal, unsupported};
use crate::floats;
use crate::lower::SHARED_MEMORY;
use crate::target::{
    Access, AsmRegisters, Assertion, AsyncCopies, AsyncCopy, AtomicAccess, BarrierMemory, Clusters, Declare,
    Handlers, Launch, LaunchLimits, MatrixTypes, Target, WarpGroups,
};
use linear_layout::plan::{DotType, MatrixInstruction, MemoryInstruction, ShuffleInstruction, WarpCombine};
use linear_layout::target::{Fp8, HalfSums, TargetDesc};
use mlir_host::ir::{Attr, FloatKind, Type, Value};
use ttopt_dialect::tt::enums::MemSyncScope;
use ttopt_passes::plans::TENSOR_MAP_BYTES;
use ttopt_passes::thread_group::ThreadGroup;

/// A GPU of NVIDIA's.
pub struct Nvidia {
    desc: TargetDesc,
}

impl Nvidia {
    /// The target that `desc` describes.
    pub fn new(desc: TargetDesc) -> Self {
        Self { desc }
    }
    /// Whether there are conversion instructions for 8-bit floats.
    fn has_fp8_conversions(&self) -> bool {
        self.desc.fp8_conversions == Some(Fp8::Ocp)
    }
    /// A special register that is less than `end`.
    fn sreg_below<'c>(&self, e: &mut Emit<'c>, name: &str, end: u32) -> Lowered<Value<'c>> {
        let i32t = e.i32();
        match Attr::parse(e.context(), &format!("#llvm.constant_range<i32, 0, {end}>")) {
            Some(range) => e.value(&format!("nvvm.read.ptx.sreg.{name}"), &[], i32t, &[("range", range)]),
            None => internal("cannot make the range of a register"),
        }
    }
}

/// Alignment in bytes of a tensor map among the arguments of a kernel (CUDA driver API, `CUtensorMap`).
const TENSOR_MAP_ALIGNMENT: i64 = 64;

const AXES: [&str; 3] = ["x", "y", "z"];

/// `cp.async` (PTX ISA, "Data Movement and Conversion Instructions: Non-bulk copy").
struct CpAsync;

impl AsyncCopies for CpAsync {
    fn copy<'c>(&self, e: &mut Emit<'c>, copy: &AsyncCopy<'c>) -> Lowered<()> {
        shared::copy_async(e, copy)
    }
    fn commit<'c>(&self, e: &mut Emit<'c>) -> Lowered<()> {
        e.op("nvvm.cp.async.commit.group", &[], &[], &[])?;
        Ok(())
    }
    fn wait<'c>(&self, e: &mut Emit<'c>, left: u32) -> Lowered<()> {
        let left = Attr::int(e.context(), 32, left.into());
        e.op("nvvm.cp.async.wait.group", &[], &[], &[("n", left)])?;
        Ok(())
    }
}

/// Thread block clusters (PTX ISA, "Cluster of Cooperative Thread Arrays").
struct CtaClusters;

impl Clusters for CtaClusters {
    fn cta_id<'c>(&self, e: &mut Emit<'c>) -> Lowered<Value<'c>> {
        special_register(e, "cluster.ctarank")
    }
    fn remote_shared<'c>(&self, e: &mut Emit<'c>, ptr: Value<'c>, rank: Value<'c>) -> Lowered<Value<'c>> {
        shared::remote(e, ptr, rank)
    }
    fn barrier<'c>(&self, e: &mut Emit<'c>, relaxed: bool) -> Lowered<()> {
        shared::cluster_barrier(e, relaxed)
    }
}

impl WarpGroups for Nvidia {
    fn set_registers<'c>(&self, e: &mut Emit<'c>, registers: u32, more: bool) -> Lowered<()> {
        // PTX ISA, "setmaxnreg": sm_90a and later.
        if !self.desc.primitives.wgmma {
            return unsupported(format!("registers cannot move between warps of {}", self.desc.name));
        }
        let (what, registers) = (if more { "inc" } else { "dec" }, e.const_i32(registers.into())?);
        e.intrinsic_void(&format!("llvm.nvvm.setmaxnreg.{what}.sync.aligned.u32"), &[registers])
    }
}

fn special_register<'c>(e: &mut Emit<'c>, name: &str) -> Lowered<Value<'c>> {
    let i32t = e.i32();
    e.value(&format!("nvvm.read.ptx.sreg.{name}"), &[], i32t, &[])
}

/// The passes from TTGIR to the `llvm` dialect, each in the notation of MLIR's textual pipelines and to be run on the
/// module. With `explain`, they say what they chose as remarks.
pub fn passes(explain: bool) -> Vec<String> {
    let pass = |name: &str, option: &str| format!("{name}{{{option}={explain}}}");
    vec![
        "tritongpu-fuse-reduce-conversions".to_owned(),
        // Triton's fused loops select from the result of a dot that is still being added to.
        "tritongpu-combine-tensor-select-and-if".to_owned(),
        "tritongpu-allocate-warp-groups".to_owned(),
        "triton-nvidia-gpu-fence-insertion".to_owned(),
        pass("allocate-shared-memory-nv", "report"),
        pass("tritongpu-insert-barriers", "report"),
        "triton-nvidia-gpu-proxy-fence-insertion".to_owned(),
        "tritongpu-global-scratch-memory-allocation".to_owned(),
        pass("tritongpu-kernel-decisions", "explain"),
        pass("convert-triton-gpu-to-llvm", "explain"),
    ]
}

/// Names that are letters of identifiers, and no identifiers (PTX ISA, "Identifiers").
const NO_IDENTIFIERS: [&str; 3] = ["_", "$", "WARP_SZ"];

impl Target for Nvidia {
    fn desc(&self) -> &TargetDesc {
        &self.desc
    }
    fn handlers(&self) -> &'static [Handlers] {
        handlers::ALL
    }
    fn async_copies(&self) -> Option<&dyn AsyncCopies> {
        self.desc.primitives.cp_async.then_some(&CpAsync)
    }
    fn clusters(&self) -> Option<&dyn Clusters> {
        (self.launch_limits().blocks > 1).then_some(&CtaClusters)
    }
    fn warp_groups(&self) -> Option<&dyn WarpGroups> {
        Some(self)
    }
    fn launch_limits(&self) -> LaunchLimits {
        // CUDA C++ Programming Guide, "Compute capabilities"; clusters of 16 blocks are asked for at launch.
        LaunchLimits { threads: 1024, blocks: if self.desc.primitives.clusters { 16 } else { 1 } }
    }
    fn triple(&self) -> &'static str {
        "nvptx64-nvidia-cuda"
    }
    fn asm_registers(&self) -> &'static AsmRegisters {
        // LLVM's language reference, "Supported Constraint Code List", NVPTX.
        &AsmRegisters {
            of_lanes: &["b", "c", "h", "r", "l", "q", "f", "d"],
            one_for_all: &[],
            least_bits: 1,
            numbers: &[],
            about: "PTX has 'h', 'r', 'l' and 'q' for integers of 16 to 128 bits, 'f' and 'd' for floats, 'b' for predicates",
        }
    }
    fn thread_id<'c>(&self, e: &mut Emit<'c>, threads: u32) -> Lowered<Value<'c>> {
        self.sreg_below(e, "tid.x", threads)
    }
    fn lane_id<'c>(&self, e: &mut Emit<'c>) -> Lowered<Value<'c>> {
        self.sreg_below(e, "laneid", self.desc.lanes)
    }
    fn uniform<'c>(&self, _: &mut Emit<'c>, value: Value<'c>) -> Lowered<Value<'c>> {
        Ok(value)
    }
    fn program_id<'c>(&self, e: &mut Emit<'c>, axis: usize, blocks: u32) -> Lowered<Value<'c>> {
        let unit = if blocks > 1 { "clusterid" } else { "ctaid" };
        special_register(e, &format!("{unit}.{}", AXES[axis]))
    }
    fn num_programs<'c>(&self, e: &mut Emit<'c>, axis: usize, blocks: u32) -> Lowered<Value<'c>> {
        let unit = if blocks > 1 { "nclusterid" } else { "nctaid" };
        special_register(e, &format!("{unit}.{}", AXES[axis]))
    }
    fn load_global<'c>(
        &self,
        e: &mut Emit<'c>,
        access: &Access<'_, 'c>,
        other: Option<&[Value<'c>]>,
    ) -> Lowered<Vec<Value<'c>>> {
        memory::load(e, access, other)
    }
    fn store_global<'c>(
        &self,
        e: &mut Emit<'c>,
        access: &Access<'_, 'c>,
        values: &[Value<'c>],
    ) -> Lowered<()> {
        memory::store(e, access, values)
    }
    fn load_shared<'c>(
        &self,
        e: &mut Emit<'c>,
        ptr: Value<'c>,
        count: usize,
        bits: u32,
    ) -> Lowered<Vec<Value<'c>>> {
        shared::load(e, ptr, count, bits)
    }
    fn store_shared<'c>(
        &self,
        e: &mut Emit<'c>,
        ptr: Value<'c>,
        words: &[Value<'c>],
        mask: Option<Value<'c>>,
    ) -> Lowered<()> {
        shared::store(e, ptr, words, mask)
    }
    fn count_shared<'c>(&self, e: &mut Emit<'c>, ptr: Value<'c>, mask: Option<Value<'c>>) -> Lowered<()> {
        shared::count(e, ptr, mask)
    }
    fn shuffle_xor<'c>(
        &self,
        e: &mut Emit<'c>,
        value: Value<'c>,
        mask: u64,
        _: ShuffleInstruction,
    ) -> Lowered<Value<'c>> {
        let mask = e.const_i32(mask as i64)?;
        shared::shuffle(e, "bfly", value, mask)
    }
    fn shuffle_index<'c>(&self, e: &mut Emit<'c>, value: Value<'c>, lane: Value<'c>) -> Lowered<Value<'c>> {
        shared::shuffle(e, "idx", value, lane)
    }
    fn combine_warp<'c>(
        &self,
        e: &mut Emit<'c>,
        value: Value<'c>,
        combine: WarpCombine,
    ) -> Lowered<Value<'c>> {
        shared::combine_warp(e, value, combine)
    }
    fn load_matrix<'c>(
        &self,
        e: &mut Emit<'c>,
        ptr: Value<'c>,
        instruction: MemoryInstruction,
    ) -> Lowered<Vec<Value<'c>>> {
        shared::load_matrix(e, ptr, instruction)
    }
    fn store_matrix<'c>(
        &self,
        e: &mut Emit<'c>,
        ptr: Value<'c>,
        words: &[Value<'c>],
        instruction: MemoryInstruction,
    ) -> Lowered<()> {
        shared::store_matrix(e, ptr, words, instruction)
    }
    fn matrix_fragment<'c>(
        &self,
        e: &mut Emit<'c>,
        kind: DotType,
        elements: &[Value<'c>],
    ) -> Lowered<Vec<Value<'c>>> {
        mma::pack(e, kind, elements)
    }
    fn matrix_elements<'c>(
        &self,
        e: &mut Emit<'c>,
        kind: DotType,
        fragment: &[Value<'c>],
    ) -> Lowered<Vec<Value<'c>>> {
        mma::unpack(e, kind, fragment)
    }
    fn multiply_matrices<'c>(
        &self,
        e: &mut Emit<'c>,
        instruction: &MatrixInstruction,
        types: &MatrixTypes<'c>,
        fragments: [&[Value<'c>]; 3],
    ) -> Lowered<Vec<Value<'c>>> {
        mma::multiply(e, instruction, types, fragments)
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
        _: &mut Emit<'c>,
        symbol: &str,
        _: &[Value<'c>],
        _: Type<'c>,
    ) -> Lowered<Option<Value<'c>>> {
        if ["__ocml_", "__ockl_", "__triton_hip_"].iter().any(|prefix| symbol.starts_with(prefix)) {
            return unsupported(format!(
                "'{symbol}' is a function of AMD's device library, which {} does not have",
                self.desc().name
            ));
        }
        Ok(None)
    }

    fn bound_magnitude<'c>(
        &self,
        e: &mut Emit<'c>,
        value: Value<'c>,
        bound: Value<'c>,
        propagates: bool,
    ) -> Lowered<Option<Value<'c>>> {
        if !self.desc.signed_minimum {
            return Ok(None);
        }
        let flushed = if e.flushes() { ".ftz" } else { "" };
        let nan = if propagates { ".nan" } else { "" };
        let name = format!("llvm.nvvm.fmin{flushed}{nan}.xorsign.abs.f");
        e.intrinsic(&name, &[value, bound], value.ty()).map(Some)
    }

    fn convert_floats<'c>(
        &self,
        e: &mut Emit<'c>,
        values: &[Value<'c>],
        from: FloatKind,
        to: FloatKind,
        towards_zero: bool,
    ) -> Lowered<Vec<Value<'c>>> {
        let small = |kind: FloatKind| kind.bits() == 8;
        for kind in [from, to] {
            let native = matches!(
                kind,
                FloatKind::F16 | FloatKind::BF16 | FloatKind::F32 | FloatKind::F64 | FloatKind::TF32
            );
            if !native && floats::format(kind).is_none() {
                return unsupported(format!("conversions of {kind:?} are not supported"));
            }
        }
        if from == to {
            return Ok(values.to_vec());
        }
        if small(from) {
            let wide = self.widen_fp8(e, values, from)?;
            return self.convert_floats(e, &wide, FloatKind::F32, to, towards_zero);
        }
        if small(to) {
            let singles = values
                .iter()
                .map(|value| self.to_f32_for_rounding(e, *value, from))
                .collect::<Lowered<Vec<_>>>()?;
            return self.narrow_fp8(e, &singles, to, towards_zero);
        }
        let ty = if to == FloatKind::TF32 { e.f32() } else { e.float(to) };
        values.iter().map(|value| self.convert_native(e, *value, ty, towards_zero)).collect()
    }

    fn convert_bytes<'c>(
        &self,
        e: &mut Emit<'c>,
        values: &[Value<'c>],
        is_signed: bool,
        to: FloatKind,
    ) -> Lowered<Vec<Value<'c>>> {
        casts::from_bytes(e, values, is_signed, to)
    }
    fn assert<'c>(
        &self,
        e: &mut Emit<'c>,
        module: &mut dyn Declare<'c>,
        failed: &Assertion<'_>,
    ) -> Lowered<()> {
        let (generic, i32t, i64t) = (e.ptr(0)?, e.i32(), e.i64());
        module.function("__assertfail", &[generic, generic, i32t, generic, i64t], None, false)?;
        let text = module.string(e, failed.message)?;
        let file = module.string(e, failed.file)?;
        let function = module.string(e, failed.function)?;
        let line = e.const_i32(i64::from(failed.line))?;
        let char_size = e.const_int(64, 1)?;
        e.call("__assertfail", &[text, file, line, function, char_size], &[])?;
        Ok(())
    }
    fn print<'c>(
        &self,
        e: &mut Emit<'c>,
        module: &mut dyn Declare<'c>,
        format: &str,
        args: &[Value<'c>],
        slot: Value<'c>,
    ) -> Lowered<()> {
        // CUDA programming guide, "Formatted Output": `vprintf` takes the format
        // and the address of the arguments, each at its natural alignment.
        let (generic, i32t) = (e.ptr(0)?, e.i32());
        module.function("vprintf", &[generic, generic], Some(i32t), false)?;
        let text = module.string(e, format)?;
        let byte = e.int(8);
        let mut offset = 0;
        for arg in args {
            // Floats were made f64; pointers have as many bits.
            let bytes = i64::from(arg.ty().int_bits().unwrap_or(64) / 8);
            offset += -offset & (bytes - 1);
            let place = e.const_i32(offset)?;
            let place = e.gep(slot, place, byte)?;
            e.op("llvm.store", &[*arg, place], &[], &[])?;
            offset += bytes;
        }
        e.call("vprintf", &[text, slot], &[i32t])?;
        Ok(())
    }
    fn barrier<'c>(
        &self,
        e: &mut Emit<'c>,
        group: &ThreadGroup,
        alone: bool,
        _: BarrierMemory,
    ) -> Lowered<()> {
        // PTX ISA, "bar": it orders all memory.
        if alone {
            e.op("nvvm.barrier0", &[], &[], &[])?;
            return Ok(());
        }
        // PTX ISA, "bar": the barrier's number and how many threads arrive.
        let number = e.const_i32(group.barrier.into())?;
        let threads = e.const_i32(group.threads(&self.desc).into())?;
        e.intrinsic_void("llvm.nvvm.barrier.cta.sync.aligned.count", &[number, threads])
    }
    fn warp_barrier<'c>(&self, e: &mut Emit<'c>, _: BarrierMemory) -> Lowered<()> {
        let all = e.const_i32(-1)?;
        e.intrinsic_void("llvm.nvvm.bar.warp.sync", &[all])
    }
    fn atomic<'c>(&self, e: &mut Emit<'c>, access: &AtomicAccess<'_, 'c>) -> Lowered<Option<Vec<Value<'c>>>> {
        atomic::emit(e, self.desc.primitives.bf16_sums == HalfSums::Any, access)
    }
    fn nanoseconds<'c>(&self, e: &mut Emit<'c>) -> Lowered<Value<'c>> {
        let i64t = e.i64();
        e.intrinsic("llvm.nvvm.read.ptx.sreg.globaltimer", &[], i64t)
    }
    fn sync_scope(&self, scope: MemSyncScope) -> &'static str {
        match scope {
            MemSyncScope::Gpu => "device",
            MemSyncScope::Cta => "block",
            MemSyncScope::System => "",
        }
    }
    fn refuses_name(&self, name: &str, is_kernel: bool) -> Option<String> {
        let is_reserved = matches!(name, SHARED_MEMORY | "vprintf" | "__assertfail")
            || ["__nv_", "__ttopt_", "llvm."].iter().any(|prefix| name.starts_with(prefix));
        if is_reserved {
            return Some(format!("'{name}' is a name of the target's or the compiler's own"));
        }
        // LLVM renames what only this module knows, but for its first letter.
        let can_be_one = !is_kernel
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '.'))
            && !NO_IDENTIFIERS.contains(&name);
        if can_be_one { None } else { self.refuses_symbol(name) }
    }
    fn refuses_symbol(&self, name: &str) -> Option<String> {
        // PTX ISA, "Identifiers".
        let others = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$');
        let is_identifier = name.starts_with(|c: char| others(c) && !c.is_ascii_digit())
            && !NO_IDENTIFIERS.contains(&name)
            && name.chars().all(others);
        (!is_identifier).then(|| {
            format!(
                "'{name}' is no identifier of PTX: letters without accents, digits, '_' and '$', no digit first"
            )
        })
    }
    fn descriptor_attrs(&self) -> Vec<(&'static str, String)> {
        // The launcher passes the tensor map itself (CUDA driver API, `CUtensorMap`).
        vec![
            ("llvm.byval", format!("!llvm.array<{TENSOR_MAP_BYTES} x i8>")),
            ("llvm.align", format!("{TENSOR_MAP_ALIGNMENT} : i64")),
            ("nvvm.grid_constant", "unit".to_owned()),
        ]
    }
    fn kernel_attrs(&self, launch: &Launch) -> Vec<(&'static str, String)> {
        let Launch { threads, cluster, min_ctas, max_registers, waves_per_eu: _ } = launch;
        let mut attrs =
            vec![("nvvm.kernel", "unit".to_owned()), ("nvvm.reqntid", format!("array<i32: {threads}>"))];
        if *cluster > 1 {
            attrs.push(("nvvm.cluster_dim", format!("array<i32: {cluster}>")));
        }
        // PTX ISA, ".minnctapersm": it is ignored, with a warning, beside ".maxnreg".
        attrs.push(match max_registers {
            Some(most) => ("nvvm.maxnreg", format!("{most} : i32")),
            None => ("nvvm.minctasm", format!("{min_ctas} : i32")),
        });
        attrs
    }
}
