//! Reductions, scans and maps by a region over scalars.

use crate::constraints::*;
use crate::tt::traits::ON_TENSORS;
use crate::tt::verify::{SAME_ENCODING, SAME_OPERANDS_ENCODING};
use crate::tt::{infer, verify};
use mlir_host::attrs::{BoolAttr, I32Attr};
use mlir_host::def::{ANY_TYPE, Blocks};
use mlir_host::op;
use mlir_host::traits::Trait;

op! {
    /// Combines all elements along an axis.
    pub struct ReduceOp = "tt.reduce" {
        operands: [srcs[var]: TENSOR],
        results: [result[var]: ANY],
        attrs: [axis: I32Attr],
        regions: [combine_op("combineOp"): Blocks::Exactly(1)],
        traits: [Trait::Pure,
            Trait::SAME_OPERANDS_SHAPE, SAME_OPERANDS_ENCODING, Trait::SINGLE_BLOCK, ON_TENSORS,
        ],
        with: {
            infer: Some(infer::reduce),
            verify: Some(verify::reduce),
            verify_regions: Some(verify::reduce_region),
        },
    }
}

op! {
    /// Ends the region of a reduction.
    pub struct ReduceReturnOp = "tt.reduce.return" {
        operands: [result[var]: ANY_TYPE],
        traits: [Trait::Pure,
            Trait::HasParent(&["tt.reduce"]), Trait::TERMINATOR, Trait::RETURN_LIKE, ON_TENSORS,
        ],
        format: "$result attr-dict `:` type($result)",
    }
}

op! {
    /// Combines each element along an axis with all before it, or after it in reverse.
    pub struct ScanOp = "tt.scan" {
        operands: [srcs[var]: TENSOR],
        results: [result[var]: TENSOR],
        attrs: [axis: I32Attr, reverse: BoolAttr],
        regions: [combine_op("combineOp"): Blocks::Exactly(1)],
        traits: [Trait::Pure, SAME_ENCODING, Trait::SAME_SHAPE, Trait::SINGLE_BLOCK, ON_TENSORS],
        with: {
            infer: Some(infer::scan),
            verify: Some(verify::scan),
            verify_regions: Some(verify::scan_region),
        },
    }
}

op! {
    /// Ends the region of a scan.
    pub struct ScanReturnOp = "tt.scan.return" {
        operands: [result[var]: ANY_TYPE],
        traits: [Trait::Pure,
            Trait::HasParent(&["tt.scan"]), Trait::TERMINATOR, Trait::RETURN_LIKE, ON_TENSORS,
        ],
        format: "$result attr-dict `:` type($result)",
    }
}

op! {
    /// Applies a region over scalars to `pack` elements at a time.
    pub struct MapElementwiseOp = "tt.map_elementwise" {
        operands: [srcs[var]: TENSOR],
        results: [result[var]: TENSOR],
        attrs: [pack: I32Attr],
        regions: [scalar_op("scalarOp"): Blocks::Any],
        traits: [SAME_ENCODING, Trait::SAME_SHAPE, Trait::RECURSIVE_EFFECTS, ON_TENSORS],
        with: {
            verify: Some(verify::map_elementwise),
            verify_regions: Some(verify::map_elementwise_region),
        },
    }
}

op! {
    /// Ends a path through the region of a map.
    pub struct MapElementwiseReturnOp = "tt.map_elementwise.return" {
        operands: [result[var]: ANY_TYPE],
        traits: [Trait::Pure,
            Trait::HasParent(&["tt.map_elementwise"]), Trait::TERMINATOR, Trait::RETURN_LIKE,
            ON_TENSORS,
        ],
        format: "attr-dict ($result^ `:` type($result))?",
    }
}
