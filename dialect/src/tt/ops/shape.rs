//! Operations that make, rearrange or pick the elements of tensors.

use crate::constraints::*;
use crate::tt::traits::ON_TENSORS;
use crate::tt::types::{bool_like, same};
use crate::tt::verify::{SAME_ENCODING, SAME_RESULTS};
use crate::tt::{canonicalize, fold, infer, verify};
use mlir_host::attrs::{DenseI32Array, I32Attr, UnitAttr};
use mlir_host::def::{Effects, TypeRule};
use mlir_host::op;
use mlir_host::traits::Trait;

op! {
    /// A tensor whose elements are all the scalar operand.
    pub struct SplatOp = "tt.splat" {
        operands: [src: ANY],
        results: [result: TENSOR],
        traits: [Trait::Pure, Trait::SAME_ELEMENT, SAME_ENCODING, ON_TENSORS],
        format: "$src attr-dict `:` type($src) `->` type($result)",
        with: {
            verify: Some(verify::splat),
            fold: Some(fold::splat),
        },
    }
}

op! {
    /// The element of a tensor that has only one.
    pub struct UnsplatOp = "tt.unsplat" {
        operands: [src: TENSOR],
        results: [result: ANY],
        traits: [Trait::Pure, ON_TENSORS],
        format: "$src attr-dict `:` type($src)",
        with: {
            verify: Some(verify::unsplat),
            infer: Some(infer::unsplat),
            fold: Some(fold::unsplat),
        },
    }
}

op! {
    /// Inserts a dimension of size one.
    pub struct ExpandDimsOp = "tt.expand_dims" {
        operands: [src: TENSOR],
        results: [result: TENSOR],
        attrs: [axis: I32Attr],
        traits: [Trait::Pure, Trait::SAME_ELEMENT, ON_TENSORS],
        format: "$src attr-dict `:` type($src) `->` type($result)",
        with: {
            infer: Some(infer::expand_dims),
            fold: Some(fold::expand_dims),
            canonicalize: &canonicalize::EXPAND_DIMS,
        },
    }
}

op! {
    /// Gives the elements another shape, in the same order unless `allow_reorder`.
    pub struct ReshapeOp = "tt.reshape" {
        operands: [src: TENSOR],
        results: [result: TENSOR],
        attrs: [allow_reorder[opt]: UnitAttr, efficient_layout[opt]: UnitAttr],
        traits: [Trait::Pure, Trait::SAME_ELEMENT, ON_TENSORS],
        format: "$src (`allow_reorder` $allow_reorder^)? (`efficient_layout` $efficient_layout^)? attr-dict `:` type($src) `->` type($result)",
        with: {
            verify: Some(verify::reshape),
            fold: Some(fold::reshape),
            canonicalize: &canonicalize::RESHAPE,
        },
    }
}

op! {
    /// Repeats elements along dimensions of size one.
    pub struct BroadcastOp = "tt.broadcast" {
        operands: [src: TENSOR],
        results: [result: TENSOR],
        traits: [Trait::Pure, Trait::SAME_ELEMENT, ON_TENSORS],
        format: "$src attr-dict `:` type($src) `->` type($result)",
        with: {
            verify: Some(verify::broadcast),
            fold: Some(fold::broadcast),
            canonicalize: &canonicalize::BROADCAST,
        },
    }
}

op! {
    /// Concatenates two tensors; the order of the elements is unspecified,
    /// so this does not commute with anything.
    pub struct CatOp = "tt.cat" {
        operands: [lhs: TENSOR, rhs: TENSOR],
        results: [result: TENSOR],
        traits: [Trait::SAME_OPERAND_TYPES, Trait::SAME_ELEMENT, ON_TENSORS],
        format: "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)",
        with: { verify: Some(verify::cat), effects: Effects::None },
    }
}

op! {
    /// Puts two tensors side by side in a new last dimension.
    pub struct JoinOp = "tt.join" {
        operands: [lhs: TENSOR, rhs: TENSOR],
        results: [result: TENSOR],
        traits: [Trait::Pure, Trait::SAME_OPERAND_TYPES, ON_TENSORS],
        format: "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)",
        with: {
            infer: Some(infer::join),
            compatible: Some(infer::joined_alike),
            fold: Some(fold::join),
            canonicalize: &canonicalize::JOIN,
        },
    }
}

op! {
    /// The two tensors that lie side by side in a last dimension of size two.
    pub struct SplitOp = "tt.split" {
        operands: [src: TENSOR],
        results: [out_lhs("outLHS"): TENSOR, out_rhs("outRHS"): TENSOR],
        traits: [Trait::Pure, SAME_RESULTS, ON_TENSORS],
        types: [TypeRule::new("outLHS and outRHS types match", "outLHS", "outRHS", same)],
        format: "$src attr-dict `:` type($src) `->` type($outLHS)",
        with: {
            infer: Some(infer::split),
            compatible: Some(infer::compatible),
            fold: Some(fold::split),
            canonicalize: &canonicalize::SPLIT,
        },
    }
}

op! {
    /// Permutes dimensions: result dimension `i` is source dimension `order[i]`.
    pub struct TransOp = "tt.trans" {
        operands: [src: TENSOR],
        results: [result: TENSOR],
        attrs: [order: DenseI32Array],
        traits: [Trait::Pure, Trait::SAME_ELEMENT, ON_TENSORS],
        format: "$src attr-dict `:` type($src) `->` type($result)",
        with: {
            verify: Some(verify::trans),
            infer: Some(infer::trans),
            compatible: Some(infer::compatible),
            fold: Some(fold::trans),
            canonicalize: &canonicalize::TRANS,
        },
    }
}

op! {
    /// The integers from `start` up to `end`, which is not among them.
    pub struct MakeRangeOp = "tt.make_range" {
        results: [result: INT_TENSOR],
        attrs: [start: I32Attr, end: I32Attr],
        traits: [Trait::Pure, ON_TENSORS],
        format: "attr-dict `:` type($result)",
        with: {
            verify: Some(verify::make_range),
            fold: Some(fold::make_range),
        },
    }
}

op! {
    /// Counts how often each value below the number of bins occurs.
    pub struct HistogramOp = "tt.histogram" {
        operands: [src: INT_TENSOR, mask[opt]: BOOL_LIKE],
        results: [result: INT_TENSOR],
        traits: [Trait::Pure, ON_TENSORS],
        types: [TypeRule::new("mask type matches src type", "src", "mask", bool_like)],
        format: "$src (`,` $mask^)? attr-dict `:` type($src) `->` type($result)",
    }
}

op! {
    /// Picks elements along one axis by index.
    pub struct GatherOp = "tt.gather" {
        operands: [src: TENSOR, indices: INT_TENSOR],
        results: [result: TENSOR],
        attrs: [axis: I32Attr, efficient_layout[opt]: UnitAttr],
        traits: [Trait::Pure, ON_TENSORS],
        format: "$src `[` $indices `]` attr-dict `:` functional-type(operands, results)",
        with: {
            verify: Some(verify::gather),
            infer: Some(infer::gather),
        },
    }
}
