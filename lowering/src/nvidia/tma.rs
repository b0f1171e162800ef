//! Bulk tensor copies, the barriers that they complete at, and tensor maps (PTX ISA, "Asynchronous copy",
//! "mbarrier", "tensormap.replace").

use super::shared::address;
use crate::emit::{Emit, Lowered};
use mlir_host::ir::Value;
use ttopt_dialect::tt::enums::DescriptorReduceKind;

/// What the coordinates of a bulk copy say (PTX ISA, "cp.async.bulk.tensor", `.load_mode`).
#[derive(Clone, Copy, Debug)]
pub(super) enum TensorCopyMode<'a, 'c> {
    /// Where the box starts.
    Box,
    /// A column and four rows.
    Rows,
    /// Where the bounding box starts; the offsets, `i16`s, are those within it.
    Im2col(&'a [Value<'c>]),
}

/// A bulk copy of a box of a tensor between global and shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct TensorCopy<'a, 'c> {
    /// The tensor map, a generic pointer.
    pub(super) map: Value<'c>,
    /// `i32`s, the contiguous dimension first.
    pub(super) coordinates: &'a [Value<'c>],
    /// What they say.
    pub(super) mode: TensorCopyMode<'a, 'c>,
    /// How long L2 keeps the lines, an `i64` that [`cache_policy`](Bulk::cache_policy) made.
    pub(super) policy: Option<Value<'c>>,
    /// The CTAs of the cluster that get what is loaded, an `i16` with a bit for each; this one where absent.
    pub(super) blocks: Option<Value<'c>>,
    /// The box in shared memory.
    pub(super) shared: Value<'c>,
    /// Whether this thread copies: one does.
    pub(super) active: Value<'c>,
}

/// The fields of a tensor map, the contiguous dimension first.
pub(super) struct TensorMap<'c> {
    /// The tensor in global memory.
    pub(super) base: Value<'c>,
    /// Elements of a box, `i32`s.
    pub(super) box_dims: Vec<Value<'c>>,
    /// Elements of the tensor, `i32`s.
    pub(super) dims: Vec<Value<'c>>,
    /// Bytes from one element to the next in all dimensions but the first, `i64`s.
    pub(super) strides: Vec<Value<'c>>,
    /// Elements of the tensor from one of the box to the next, `i32`s.
    pub(super) element_strides: Vec<Value<'c>>,
    /// The number of the type of elements.
    pub(super) element: u32,
    /// The number of the interleaved layout.
    pub(super) interleave: u32,
    /// The number of the swizzle mode.
    pub(super) swizzle: u32,
    /// Whether elements outside of the tensor are NaN.
    pub(super) fill: u32,
}

/// Where a thread arrives, and whether it does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'c> {
    /// Address of the barrier.
    pub(super) at: Value<'c>,
    /// Whether it may be in the memory of another CTA of the cluster.
    pub(super) remote: bool,
    /// An `i1`.
    pub(super) active: Value<'c>,
}

/// Bulk copies of boxes of tensors, and barriers in shared memory that tell when they are done.
/// Predicates are `i1`s; where one is false nothing happens. What makes and ends barriers and maps in shared
/// memory orders its accesses before copies to the same bytes.
#[derive(Clone, Copy)]
pub(super) struct Bulk;

/// Bytes of a tensor map.
const MAP_BYTES: u32 = ttopt_passes::plans::TENSOR_MAP_BYTES as u32;

impl Bulk {
    /// An instruction on a barrier, done where `active` is true.
    fn on_barrier<'c>(e: &mut Emit<'c>, text: &str, barrier: Value<'c>, active: Value<'c>) -> Lowered<()> {
        let barrier = address(e, barrier)?;
        e.inline_asm(&format!("@$1 {text};"), "r,b,~{memory}", &[barrier, active], &[], true)?;
        Ok(())
    }
}

/// Orders this thread's accesses to shared memory before bulk copies to the same bytes.
fn fence<'c>(e: &mut Emit<'c>) -> Lowered<()> {
    e.inline_asm("fence.proxy.async.shared::cta;", "~{memory}", &[], &[], true)?;
    Ok(())
}

/// Where a barrier is, and what an arrival orders before it.
fn place(remote: bool) -> &'static str {
    if remote { "release.cluster.shared::cluster" } else { "shared::cta" }
}

/// Operands of an instruction as they are gathered: predicate, shared memory, map, coordinates, and more.
struct Operands<'c> {
    values: Vec<Value<'c>>,
    constraints: String,
    /// The map and the coordinates.
    tensor: String,
}

impl<'c> Operands<'c> {
    fn new(e: &mut Emit<'c>, copy: &TensorCopy<'_, 'c>) -> Lowered<Self> {
        let values = vec![copy.active, address(e, copy.shared)?, copy.map];
        let mut this = Self { values, constraints: "b,r,l".to_owned(), tensor: String::new() };
        this.tensor = format!("[ $2, {} ]", this.list(copy.coordinates, 'r'));
        Ok(this)
    }

    fn push(&mut self, value: Value<'c>, constraint: char) -> String {
        self.values.push(value);
        self.constraints += &format!(",{constraint}");
        format!("${}", self.values.len() - 1)
    }

    fn list(&mut self, values: &[Value<'c>], constraint: char) -> String {
        let names: Vec<String> = values.iter().map(|value| self.push(*value, constraint)).collect();
        format!("{{{}}}", names.join(", "))
    }

    fn emit(self, e: &mut Emit<'c>, text: &str) -> Lowered<()> {
        e.inline_asm(text, &format!("{},~{{memory}}", self.constraints), &self.values, &[], true)?;
        Ok(())
    }
}

/// The dimensions of the tensor of a copy, and how its mode is called.
fn mode(copy: &TensorCopy<'_, '_>, to_global: bool) -> (usize, &'static str) {
    match copy.mode {
        TensorCopyMode::Box => (copy.coordinates.len(), "tile"),
        TensorCopyMode::Rows if to_global => (2, "tile::scatter4"),
        TensorCopyMode::Rows => (2, "tile::gather4"),
        TensorCopyMode::Im2col(_) => (copy.coordinates.len(), "im2col"),
    }
}

impl Bulk {
    /// Whether this is the lane that the warp elects; the warp must be converged.
    pub(super) fn elect<'c>(&self, e: &mut Emit<'c>) -> Lowered<Value<'c>> {
        let (i1, i32t, all) = (e.i1(), e.i32(), e.const_i32(-1)?);
        let ty = e.struct_of(&[i32t, i1])?;
        let elected = e.intrinsic("llvm.nvvm.elect.sync", &[all], ty)?;
        e.extract_value(elected, 1, i1)
    }

    /// Makes a barrier for `count` arrivals.
    pub(super) fn init_barrier<'c>(
        &self,
        e: &mut Emit<'c>,
        barrier: Value<'c>,
        count: u32,
        active: Value<'c>,
    ) -> Lowered<()> {
        // Copies, which complete at the barrier, must find it made.
        Self::on_barrier(e, &format!("mbarrier.init.shared::cta.b64 [ $0 ], {count}"), barrier, active)?;
        fence(e)
    }

    /// Ends the life of a barrier.
    pub(super) fn inval_barrier<'c>(
        &self,
        e: &mut Emit<'c>,
        barrier: Value<'c>,
        active: Value<'c>,
    ) -> Lowered<()> {
        Self::on_barrier(e, "mbarrier.inval.shared::cta.b64 [ $0 ]", barrier, active)?;
        fence(e)
    }

    /// Arrives at a barrier and announces `bytes` to come.
    pub(super) fn expect<'c>(&self, e: &mut Emit<'c>, arrival: &Arrival<'c>, bytes: u64) -> Lowered<()> {
        let place = place(arrival.remote);
        let text = format!("mbarrier.arrive.expect_tx.{place}.b64 _, [ $0 ], {bytes}");
        Self::on_barrier(e, &text, arrival.at, arrival.active)
    }

    /// Arrives `count` times at a barrier.
    pub(super) fn arrive<'c>(&self, e: &mut Emit<'c>, arrival: &Arrival<'c>, count: u32) -> Lowered<()> {
        let text = format!("mbarrier.arrive.{}.b64 _, [ $0 ], {count}", place(arrival.remote));
        Self::on_barrier(e, &text, arrival.at, arrival.active)
    }

    /// Each thread arrives when the copies that it began (`cp.async`) are done; with `counted` the barrier was
    /// made for these arrivals.
    pub(super) fn arrive_after_copies<'c>(
        &self,
        e: &mut Emit<'c>,
        barrier: Value<'c>,
        counted: bool,
    ) -> Lowered<()> {
        let noinc = if counted { ".noinc" } else { "" };
        e.intrinsic_void(&format!("llvm.nvvm.cp.async.mbarrier.arrive{noinc}.shared"), &[barrier])
    }

    /// Lets other CTAs of the cluster see the barriers that this thread has made.
    pub(super) fn publish_barriers<'c>(&self, e: &mut Emit<'c>) -> Lowered<()> {
        e.intrinsic_void("llvm.nvvm.fence.mbarrier_init.release.cluster", &[])
    }

    /// Waits until the phase of the parity `phase`, an `i32`, is complete; with `cluster` for what other CTAs
    /// did, too.
    pub(super) fn wait<'c>(
        &self,
        e: &mut Emit<'c>,
        barrier: Value<'c>,
        phase: Value<'c>,
        cluster: bool,
        active: Option<Value<'c>>,
    ) -> Lowered<()> {
        let mut operands = vec![address(e, barrier)?, phase];
        let scope = if cluster { ".acquire.cluster" } else { "" };
        let skip = if active.is_some() { "@!$2 bra.uni done;\n\t" } else { "" };
        operands.extend(active);
        let text = format!(
            "{{\n\t.reg .pred complete;\n\t{skip}wait:\n\t\
             mbarrier.try_wait.parity{scope}.shared::cta.b64 complete, [ $0 ], $1;\n\t\
             @!complete bra.uni wait;\n\tdone:\n}}"
        );
        let constraints = if active.is_some() { "r,r,b,~{memory}" } else { "r,r,~{memory}" };
        e.inline_asm(&text, constraints, &operands, &[], true)?;
        Ok(())
    }

    /// Begins a copy to shared memory, which `barrier` counts the bytes of.
    pub(super) fn load<'c>(
        &self,
        e: &mut Emit<'c>,
        copy: &TensorCopy<'_, 'c>,
        barrier: Value<'c>,
    ) -> Lowered<()> {
        let (rank, mode) = mode(copy, false);
        let mut operands = Operands::new(e, copy)?;
        let barrier = address(e, barrier)?;
        let mut rest = format!("[ {} ]", operands.push(barrier, 'r'));
        if let TensorCopyMode::Im2col(offsets) = copy.mode {
            rest += &format!(", {}", operands.list(offsets, 'h'));
        }
        let mut options = String::new();
        if let Some(blocks) = copy.blocks {
            options += ".multicast::cluster";
            rest += &format!(", {}", operands.push(blocks, 'h'));
        }
        if let Some(policy) = copy.policy {
            options += ".L2::cache_hint";
            rest += &format!(", {}", operands.push(policy, 'l'));
        }
        // Memory of the own block has the same address among that of the cluster.
        let text = format!(
            "@$0 cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes{options} \
             [ $1 ], {}, {rest};",
            operands.tensor
        );
        operands.emit(e, &text)
    }

    /// Begins a copy from shared memory, which replaces the elements or is combined with them.
    pub(super) fn store<'c>(
        &self,
        e: &mut Emit<'c>,
        copy: &TensorCopy<'_, 'c>,
        combine: Option<DescriptorReduceKind>,
    ) -> Lowered<()> {
        let (rank, mode) = mode(copy, true);
        let mut operands = Operands::new(e, copy)?;
        let (head, combine) = match combine {
            Some(kind) => ("cp.reduce.async.bulk", format!(".{}", kind.keyword())),
            None => ("cp.async.bulk", String::new()),
        };
        let (mut options, mut rest) = ("", String::new());
        if let Some(policy) = copy.policy {
            options = ".L2::cache_hint";
            rest = format!(", {}", operands.push(policy, 'l'));
        }
        let text = format!(
            "@$0 {head}.tensor.{rank}d.global.shared::cta{combine}.{mode}.bulk_group{options} {}, [ $1 ]{rest};",
            operands.tensor
        );
        operands.emit(e, &text)
    }

    /// Makes one group of the copies from shared memory that this thread has begun.
    pub(super) fn commit_stores<'c>(&self, e: &mut Emit<'c>) -> Lowered<()> {
        e.intrinsic_void("llvm.nvvm.cp.async.bulk.commit.group", &[])
    }

    /// Waits until at most `left` groups are under way, or with `read_only` read shared memory.
    pub(super) fn wait_for_stores<'c>(&self, e: &mut Emit<'c>, left: u32, read_only: bool) -> Lowered<()> {
        let left = e.const_i32(left.into())?;
        let name = if read_only { "wait.group.read" } else { "wait.group" };
        e.intrinsic_void(&format!("llvm.nvvm.cp.async.bulk.{name}"), &[left])
    }

    /// Sets all fields of a tensor map in shared memory whose bytes are zero.
    pub(super) fn fill_map<'c>(&self, e: &mut Emit<'c>, at: Value<'c>, map: &TensorMap<'c>) -> Lowered<()> {
        let at = address(e, at)?;
        let mut set = |field: &str, value: Option<Value<'c>>, rest: String| -> Lowered<()> {
            let bits = if matches!(field, "global_address" | "global_stride") { 64 } else { 32 };
            let text = format!("tensormap.replace.tile.{field}.shared::cta.b1024.b{bits} [ $0 ], {rest};");
            let constraints = match value {
                Some(_) if bits == 64 => "r,l,~{memory}",
                Some(_) => "r,r,~{memory}",
                None => "r,~{memory}",
            };
            let operands: Vec<Value<'c>> = [Some(at), value].into_iter().flatten().collect();
            e.inline_asm(&text, constraints, &operands, &[], true)?;
            Ok(())
        };
        set("global_address", Some(map.base), "$1".to_owned())?;
        // The field holds the rank less one.
        set("rank", None, (map.box_dims.len() - 1).to_string())?;
        let lists: [(&str, &[Value<'c>]); 4] = [
            ("box_dim", &map.box_dims),
            ("global_dim", &map.dims),
            ("global_stride", &map.strides),
            ("element_stride", &map.element_strides),
        ];
        for (field, values) in lists {
            for (i, value) in values.iter().enumerate() {
                set(field, Some(*value), format!("{i}, $1"))?;
            }
        }
        set("elemtype", None, map.element.to_string())?;
        set("interleave_layout", None, map.interleave.to_string())?;
        set("swizzle_mode", None, map.swizzle.to_string())?;
        set("fill_mode", None, map.fill.to_string())
    }

    /// Copies a tensor map from shared to global memory, for copies to use; all lanes of a warp.
    pub(super) fn publish_map<'c>(&self, e: &mut Emit<'c>, to: Value<'c>, from: Value<'c>) -> Lowered<()> {
        let from = address(e, from)?;
        let text = format!(
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned \
             [ $0 ], [ $1 ], {MAP_BYTES};"
        );
        e.inline_asm(&text, "l,r,~{memory}", &[to, from], &[], true)?;
        fence(e)
    }

    /// Lets the copies that follow see a tensor map that was published.
    pub(super) fn acquire_map<'c>(&self, e: &mut Emit<'c>, map: Value<'c>) -> Lowered<()> {
        let text = format!("fence.proxy.tensormap::generic.acquire.gpu [ $0 ], {MAP_BYTES};");
        e.inline_asm(&text, "l,~{memory}", &[map], &[], true)?;
        // ptxas may move copies before the fence, but none before an earlier wait.
        self.commit_stores(e)?;
        self.wait_for_stores(e, 0, true)
    }
}
