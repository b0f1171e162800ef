//! Verifiers.

mod mma;
mod packed;
mod tensor_memory;
mod tma;

pub use mma::*;
pub use packed::packed_arith;
pub use tensor_memory::*;
pub use tma::*;

use super::ops::*;
use crate::tt::ops::FuncOp;
use crate::tt::types::pointee;
use crate::ttg::attrs::encoding;
use crate::ttg::layout::to_linear_layout;
use crate::ttg::module_attrs;
use crate::ttg::ops::WarpSpecializeOp;
use crate::ttg::types::MemDescType;
use linear_layout::Encoding;
use linear_layout::encoding::CgaLayout;
use mlir_host::def::VerifyResult;
use mlir_host::ir::{Attr, Op, TensorType, Type, Value};
use mlir_host::is_one_of;
use mlir_host::traits::Trait;
use mlir_host::upstream::{FuncFuncOp, LlvmFuncOp};

/// Every barrier is one, in shared memory.
pub const BARRIER: Trait = Trait::Verify("barrier", barriers);

//===----------------------------------------------------------------------===//
// Shared
//===----------------------------------------------------------------------===//

pub(crate) fn memdesc(value: Value<'_>) -> Result<MemDescType<'_>, String> {
    MemDescType::cast(value.ty()).ok_or_else(|| format!("expected a memory descriptor, got '{}'", value.ty()))
}

pub(crate) fn tensor(value: Value<'_>) -> Result<TensorType<'_>, String> {
    value.ty().as_tensor().ok_or_else(|| format!("expected a tensor, got '{}'", value.ty()))
}

pub(crate) fn num_ctas(op: Op<'_>) -> u32 {
    module_attrs::num_ctas(op).unwrap_or(1)
}

fn multi_cta(op: Op<'_>) -> VerifyResult {
    match num_ctas(op) {
        0 | 1 => Err(format!("needs a cluster of several CTAs ({} > 1)", module_attrs::NUM_CTAS)),
        _ => Ok(()),
    }
}

/// Whether the machine that the module is for has tensor memory; a module that does not say may run anywhere.
fn tcgen05(op: Op<'_>) -> VerifyResult {
    let Some(target) = module_attrs::target(op) else { return Ok(()) };
    let capability = target.strip_prefix("cuda:").and_then(|capability| capability.parse::<u32>().ok());
    match capability {
        Some(capability) if matches!(capability / 10, 10 | 11) => Ok(()),
        None if !target.starts_with("cuda:") && !target.starts_with("hip:") => Ok(()),
        _ => Err(format!("needs tensor memory (tcgen05), which {target} does not have")),
    }
}

fn cga_layout(attr: Attr<'_>) -> Result<CgaLayout, String> {
    Ok(encoding(attr)?.cga_layout())
}

/// The division of a vector among CTAs that gives each its own element.
fn one_per_cta(ctas: u32) -> CgaLayout {
    (0..ctas.max(1).ilog2()).map(|bit| vec![1 << bit]).collect()
}

fn cga_must_be(what: &str, barrier: MemDescType<'_>, wanted: &CgaLayout) -> VerifyResult {
    let given = cga_layout(barrier.encoding())?;
    if given == *wanted {
        Ok(())
    } else {
        Err(format!("{what} must have CGALayout = {wanted:?}, got {given:?}"))
    }
}

/// The tensor and the buffer that it is moved to or from agree.
fn same_contents(what: &str, tensor: TensorType<'_>, buffer: MemDescType<'_>) -> VerifyResult {
    if tensor.shape().as_slice() != buffer.shape().as_slice() {
        return Err(format!(
            "{what} has the shape {:?}, but the buffer has {:?}",
            tensor.shape(),
            buffer.shape()
        ));
    }
    if tensor.element() != buffer.element() {
        return Err(format!(
            "{what} has elements of '{}', but the buffer has '{}'",
            tensor.element(),
            buffer.element()
        ));
    }
    Ok(())
}

fn writable(buffer: MemDescType<'_>) -> VerifyResult {
    if buffer.mutable() {
        Ok(())
    } else {
        Err(format!("cannot store to the immutable buffer '{}'", buffer.ty()))
    }
}

pub(crate) fn bits(ty: Type<'_>) -> u32 {
    ty.bits().unwrap_or(0)
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

fn barriers(op: Op<'_>) -> VerifyResult {
    let Some(def) = op.def() else { return Ok(()) };
    for name in ["alloc", "barrier", "mbarrier", "barriers"] {
        let Some(group) = def.operand_index(name) else { continue };
        let (start, n) = def.operand_group(op, group);
        op.operand_range(start, n).try_for_each(|value| barrier_type(op, memdesc(value)?))?;
    }
    Ok(())
}

/// A vector of one or several 64-bit words, at most one for each CTA of the cluster.
fn barrier_type(op: Op<'_>, ty: MemDescType<'_>) -> VerifyResult {
    let most = num_ctas(op);
    match ty.shape()[..] {
        [n] if ty.element().is_int(64) && n <= i64::from(most) => words("a barrier", ty),
        _ => Err(format!(
            "a barrier must be a descriptor of Nxi64 with N at most {most}, the number of CTAs, got '{}'",
            ty.ty()
        )),
    }
}

/// Words one after the other, the whole of a buffer.
fn words(what: &str, ty: MemDescType<'_>) -> VerifyResult {
    let alloc = ty.alloc_shape();
    if !alloc.ends_with(&ty.shape()) {
        return Err(format!("{what} must be a whole buffer, got '{}'", ty.ty()));
    }
    match encoding(ty.encoding())? {
        Encoding::SwizzledShared(e) if (e.vec, e.per_phase, e.max_phase) == (1, 1, 1) => Ok(()),
        _ => Err(format!(
            "{what} must be contiguous, with a #ttg.swizzled_shared layout that does not swizzle (vec, perPhase \
             and maxPhase 1), got {}",
            ty.encoding()
        )),
    }
}

pub(crate) fn positive(count: i64) -> VerifyResult {
    if count < 1 { Err(format!("count must be at least 1, got {count}")) } else { Ok(()) }
}

/// Initialization for a count of arrivals.
pub fn init_barrier(op: Op<'_>) -> VerifyResult {
    let init = InitBarrierOp::of(op);
    positive(init.count())?;
    // What several CTAs share needs a barrier of the cluster before its first
    // use, for which there is no place among specialized warps.
    let shared = memdesc(init.alloc())?.shape().first() != Some(&i64::from(num_ctas(op)));
    if shared && op.ancestor(|outer| WarpSpecializeOp::cast(outer).is_some()).is_some() {
        return Err("a barrier that CTAs share cannot be initialized inside `ttg.warp_specialize`".into());
    }
    Ok(())
}

/// `fromCTA` selects bits of the number of a CTA.
fn from_cta(op: Op<'_>, barrier: Value<'_>, mask: Option<i64>) -> VerifyResult {
    let Some(mask) = mask else { return Ok(()) };
    let ctas = num_ctas(op);
    if !(0..i64::from(ctas)).contains(&mask) {
        return Err(format!(
            "fromCTA must be from 0 to {}, one less than the number of CTAs, got {mask}",
            ctas - 1
        ));
    }
    let barrier = memdesc(barrier)?;
    if barrier.shape() != [i64::from(ctas)] || cga_layout(barrier.encoding())? != one_per_cta(ctas) {
        return Err(format!(
            "fromCTA needs a barrier with one element for each of {ctas} CTAs, and CGALayout = {:?}, got '{}'",
            one_per_cta(ctas),
            barrier.ty()
        ));
    }
    Ok(())
}

/// Arrival with bytes to come.
pub fn barrier_expect(op: Op<'_>) -> VerifyResult {
    let expect = BarrierExpectOp::of(op);
    from_cta(op, expect.alloc(), expect.from_cta())
}

/// Arrival, maybe at the barriers of several CTAs.
pub fn arrive_barrier(op: Op<'_>) -> VerifyResult {
    let arrive = ArriveBarrierOp::of(op);
    positive(arrive.count())?;
    let ctas = i64::from(num_ctas(op));
    let multicast = arrive.multicast_cta().unwrap_or(0);
    if multicast != 0 {
        if ctas <= 1 {
            return Err(format!(
                "an arrival at several CTAs needs a cluster of several ({} > 1)",
                module_attrs::NUM_CTAS
            ));
        }
        if !(0..ctas).contains(&multicast) {
            return Err(format!(
                "multicastCTA = {multicast} exceeds {}, one less than the number of CTAs",
                ctas - 1
            ));
        }
        cga_must_be(
            "the barrier of an arrival at several CTAs",
            memdesc(arrive.alloc())?,
            &one_per_cta(num_ctas(op)),
        )?;
        if let Some(from) = arrive.from_cta().filter(|from| *from != ctas - 1) {
            return Err(format!("fromCTA = {from} cannot be combined with multicastCTA = {multicast}"));
        }
    }
    from_cta(op, arrive.alloc(), arrive.from_cta())
}

/// An asynchronous store to shared memory of the cluster.
pub fn async_shared_store(op: Op<'_>) -> VerifyResult {
    let store = AsyncSharedStoreOp::of(op);
    multi_cta(op)?;
    let (src, dst) = (tensor(store.src())?, memdesc(store.dst())?);
    writable(dst)?;
    same_contents("source", src, dst)?;
    let Some(attr) = src.encoding() else { return Ok(()) };
    let shape = src.shape();
    // Pointers have 64 bits.
    let width = if pointee(src.element()).is_some() { 64 } else { bits(src.element()) };
    let memory = to_linear_layout(dst.encoding(), &dst.shape())?;
    let moves = to_linear_layout(attr, &shape)?.invert_and_compose(&memory).map_err(|err| err.to_string())?;
    let mut vector = moves.num_consecutive_in_out();
    if let Encoding::PaddedShared(padded) = encoding(dst.encoding())? {
        vector = padded.intervals.iter().map(|(interval, _)| *interval).fold(vector, u64::min);
    }
    if vector * u64::from(width) < 32 {
        return Err(format!(
            "stores must have at least 32 bits, but these layouts give {vector} consecutive elements of {width} bits"
        ));
    }
    Ok(())
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

/// Of a cluster of several CTAs.
pub fn in_cluster(op: Op<'_>) -> VerifyResult {
    multi_cta(op)
}

/// All warps of a kernel take part.
pub fn cluster_barrier(op: Op<'_>) -> VerifyResult {
    multi_cta(op)?;
    let function = op.ancestor(|outer| is_one_of!(outer, FuncOp | FuncFuncOp | LlvmFuncOp));
    let Some(function) = function else { return Err("must be inside of a kernel".into()) };
    let private = function.attr("sym_visibility").and_then(Attr::as_str) == Some("private");
    let noinline = function.attr("noinline").and_then(Attr::as_bool) == Some(true);
    if private && (FuncOp::cast(function).is_none() || noinline) {
        return Err("must be inside of a kernel or of a function that is inlined into one".into());
    }
    Ok(())
}

/// The response of cluster launch control: two words, the same in every CTA.
fn clc_response(ty: MemDescType<'_>) -> VerifyResult {
    if !ty.element().is_int(64) {
        return Err(format!("a response must have elements of 'i64', got '{}'", ty.element()));
    }
    if ty.shape() != [2] {
        return Err(format!("a response must have the shape [2], got {:?}", ty.shape()));
    }
    words("a response", ty)?;
    let cga = cga_layout(ty.encoding())?;
    if cga.iter().flatten().any(|coordinate| *coordinate != 0) {
        return Err(format!("a response must be the same in every CTA, got CGALayout = {cga:?}"));
    }
    Ok(())
}

/// A request that is waited for.
pub fn clc_try_cancel_sync(op: Op<'_>) -> VerifyResult {
    let response = tensor(ClcTryCancelSyncOp::of(op).response())?;
    if response.shape().as_slice() != [2] || !response.element().is_int(64) {
        return Err(format!(
            "the response must have the shape [2] and elements of 'i64', got '{}'",
            response.ty()
        ));
    }
    Ok(())
}

/// A request whose response arrives later.
pub fn clc_try_cancel(op: Op<'_>) -> VerifyResult {
    let request = ClcTryCancelOp::of(op);
    clc_response(memdesc(request.result())?)?;
    cga_must_be("the barrier", memdesc(request.mbarrier())?, &one_per_cta(num_ctas(op)))
}

/// Loading a response.
pub fn clc_load_result(op: Op<'_>) -> VerifyResult {
    clc_response(memdesc(ClcLoadResultOp::of(op).src())?)
}
