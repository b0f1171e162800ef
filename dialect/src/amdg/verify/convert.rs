//! Verifiers of conversions with scales.

use super::super::ops::*;
use super::arch;
use crate::ttg::infer;
use crate::ttg::layout::{equivalent, to_linear_layout};
use crate::ttng::verify::tensor;
use linear_layout::{Dim, LinearLayout};
use mlir_host::def::VerifyResult;
use mlir_host::ir::{Op, TensorType};

/// Where instructions convert eight elements at a time (gfx1250), they take the exponent alone as scale.
fn exponent_scale(op: Op<'_>, scale: TensorType<'_>) -> VerifyResult {
    if arch(op) == Some("gfx1250") && !scale.element().is_int(8) {
        return Err(format!("gfx1250 takes scales of 'i8', the exponent alone, got '{}'", scale.element()));
    }
    Ok(())
}

fn axis_of(axis: i64, rank: usize) -> Result<usize, String> {
    usize::try_from(axis)
        .ok()
        .filter(|axis| *axis < rank)
        .ok_or_else(|| format!("axis {axis} is out of range for {rank} dimensions"))
}

/// `packed` has along `axis` one byte for two elements of `plain`, and the layout that follows.
fn pairs(packed: TensorType<'_>, plain: TensorType<'_>, axis: usize) -> VerifyResult {
    let (from, to) = (packed.shape(), plain.shape());
    if from.len() != to.len() {
        return Err(format!("'{}' and '{}' must have as many dimensions", packed.ty(), plain.ty()));
    }
    for (dim, (from, to)) in from.iter().zip(&to).enumerate() {
        let wanted = if dim == axis { from.checked_mul(2) } else { Some(*from) };
        if wanted != Some(*to) {
            return Err(format!(
                "axis {axis} holds pairs in '{}': dimension {dim} of '{}' does not fit",
                packed.ty(),
                plain.ty()
            ));
        }
    }
    match (packed.encoding(), plain.encoding()) {
        (None, None) => Ok(()),
        (Some(packed_attr), Some(plain_attr)) => {
            let inferred = infer::fp4_to_fp(packed_attr, &from, axis)?;
            if equivalent(inferred, plain_attr, &to) {
                Ok(())
            } else {
                Err(format!("'{}' must have a layout equivalent to {inferred}", plain.ty()))
            }
        }
        _ => Err(format!("'{}' and '{}' must both have a layout, or neither", packed.ty(), plain.ty())),
    }
}

/// The scales of a tensor along an axis: `block` elements share one.
struct Scales<'c> {
    scale: TensorType<'c>,
    axis: usize,
    block: i64,
    /// The layouts of the scales that follows from the output's, and of the scales.
    layouts: Option<(LinearLayout, LinearLayout)>,
}

impl<'c> Scales<'c> {
    fn new(scale: TensorType<'c>, output: TensorType<'c>, axis: usize) -> Result<Scales<'c>, String> {
        let (few, many) = (scale.shape(), output.shape());
        if few.len() != many.len() {
            return Err(format!("the scales have {} dimensions, but the output {}", few.len(), many.len()));
        }
        if let Some(dim) = (0..few.len()).find(|dim| *dim != axis && few[*dim] != many[*dim]) {
            return Err(format!(
                "the scales have {} elements along dimension {dim}, but the output {}",
                few[dim], many[dim]
            ));
        }
        if few[axis] < 1 || many[axis] % few[axis] != 0 {
            return Err(format!(
                "dimension {axis} of the output, {}, is no multiple of the scales', {}",
                many[axis], few[axis]
            ));
        }
        let layouts = match (scale.encoding(), output.encoding()) {
            (None, None) => None,
            (Some(scale_attr), Some(attr)) => {
                let layout = to_linear_layout(attr, &many)?;
                let factor = many[axis] / few[axis];
                if factor.count_ones() != 1 {
                    return Err(format!("{factor} elements share a scale, which is no power of two"));
                }
                let bases: Vec<(Dim, Vec<Vec<u64>>)> = layout
                    .in_dims()
                    .map(|dim| {
                        let of_scales = layout.columns_of(dim).iter().map(|column| {
                            let mut basis = layout.coords(*column).to_vec();
                            basis[axis] /= factor.unsigned_abs();
                            basis
                        });
                        (dim, of_scales.collect())
                    })
                    .collect();
                let outs: Vec<(Dim, u64)> =
                    layout.out_dims().zip(few.iter().map(|size| size.unsigned_abs())).collect();
                let inferred =
                    LinearLayout::from_bases_sized(&bases, &outs, true).map_err(|err| err.to_string())?;
                Some((inferred, (*to_linear_layout(scale_attr, &few)?).clone()))
            }
            _ => {
                return Err(format!(
                    "'{}' and '{}' must both have a layout, or neither",
                    scale.ty(),
                    output.ty()
                ));
            }
        };
        Ok(Scales { scale, axis, block: many[axis] / few[axis], layouts })
    }

    /// The scales are where their elements are.
    fn beside(&self) -> VerifyResult {
        let Some((inferred, given)) = &self.layouts else { return Ok(()) };
        // Copies in registers do not matter.
        let columns = |layout: &LinearLayout, dim| -> Vec<u64> {
            let all = layout.columns_of(dim).iter().copied();
            all.filter(|column| dim != Dim::REGISTER || *column != 0).collect()
        };
        let same = [Dim::REGISTER, Dim::LANE, Dim::WARP, Dim::BLOCK]
            .into_iter()
            .all(|dim| columns(inferred, dim) == columns(given, dim));
        if same {
            return Ok(());
        }
        Err(format!(
            "each thread must hold the scales of its elements, but '{}' is not laid out as {}",
            self.scale.ty(),
            inferred.bases_display()
        ))
    }

    /// Each group of `n` registers shares one scale.
    fn share(&self, n: u32, what: &str) -> VerifyResult {
        let Some((inferred, _)) = &self.layouts else { return Ok(()) };
        let bits = n.ilog2() as usize;
        let columns = inferred.columns_of(Dim::REGISTER);
        if columns.get(..bits).is_some_and(|first| first.iter().all(|column| *column == 0)) {
            return Ok(());
        }
        Err(format!(
            "{n} consecutive registers of a thread hold {what} that are converted at once: they must share one \
             scale, which covers {} along dimension {}",
            self.block, self.axis
        ))
    }
}

/// Pairs of fp4 to plain floats.
pub fn scaled_upcast_fp4(op: Op<'_>) -> VerifyResult {
    let upcast = ScaledUpcastFp4Op::of(op);
    let (input, scale, output) = (tensor(upcast.input())?, tensor(upcast.scale())?, tensor(upcast.output())?);
    let axis = axis_of(upcast.axis(), output.shape().len())?;
    exponent_scale(op, scale)?;
    pairs(input, output, axis)?;
    let scales = Scales::new(scale, output, axis)?;
    if scales.block != 1 {
        scales.share(8, "elements")?;
    }
    scales.beside()
}

/// fp8 to plain floats.
pub fn scaled_upcast_fp8(op: Op<'_>) -> VerifyResult {
    exponent_scale(op, tensor(ScaledUpcastFp8Op::of(op).scale())?)
}

/// Compact scales, each for whole groups of `n` elements of the output.
fn downcast(scales: &Scales<'_>, n: u32, what: &str) -> VerifyResult {
    if scales.layouts.is_none() {
        return Ok(());
    }
    if scales.block == 1 {
        return Err(format!(
            "scales must be compact, one for {n} or more {what} along dimension {}, got one for each",
            scales.axis
        ));
    }
    if scales.block % i64::from(n) != 0 {
        return Err(format!(
            "each scale must cover a multiple of {n} {what} along dimension {}, got {}",
            scales.axis, scales.block
        ));
    }
    scales.share(n, what)?;
    scales.beside()
}

/// Plain floats to pairs of fp4.
pub fn scaled_downcast_fp4(op: Op<'_>) -> VerifyResult {
    let cast = ScaledDowncastFp4Op::of(op);
    let (input, scale, output) = (tensor(cast.input())?, tensor(cast.scale())?, tensor(cast.output())?);
    let axis = axis_of(cast.axis(), output.shape().len())?;
    pairs(output, input, axis)?;
    downcast(&Scales::new(scale, output, axis)?, 4, "bytes")
}

/// Plain floats to fp8.
pub fn scaled_downcast_fp8(op: Op<'_>) -> VerifyResult {
    let cast = ScaledDowncastFp8Op::of(op);
    let (input, scale, output) = (tensor(cast.input())?, tensor(cast.scale())?, tensor(cast.output())?);
    let axis = axis_of(cast.axis(), output.shape().len())?;
    if input.shape() != output.shape() || input.encoding() != output.encoding() {
        return Err(format!(
            "input and output must have the same shape and layout, got '{}' and '{}'",
            input.ty(),
            output.ty()
        ));
    }
    downcast(&Scales::new(scale, output, axis)?, 8, "elements")
}
