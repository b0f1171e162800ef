//! Views of buffers.

use super::MEMDESC_VIEW;
use crate::constraints::I32;
use crate::ttg::types::MEMDESC_TYPE;
use crate::ttg::verify::ON_BUFFERS;
use crate::ttg::{fold, infer_memdesc, verify_ops};
use mlir_host::asm::{OpParser, OpPrinter, ParseResult, Punct};
use mlir_host::attrs::DenseI32Array;
use mlir_host::def::CustomDirective;
use mlir_host::format::{Arg, Parsed};
use mlir_host::ir::{Attr, Op};
use mlir_host::op;
use mlir_host::traits::Trait;

op! {
    /// The buffer number `index` of a buffer of buffers.
    pub struct MemDescIndexOp = "ttg.memdesc_index" {
        operands: [src: MEMDESC_TYPE, index: I32],
        results: [result: MEMDESC_TYPE],
        traits: [Trait::Pure, MEMDESC_VIEW, ON_BUFFERS],
        format: "$src `[` $index `]` attr-dict `:` qualified(type($src)) `->` qualified(type($result))",
        with: {
            verify: Some(verify_ops::memdesc_index),
        },
    }
}

op! {
    /// The part of a buffer that begins at `offsets`, or of the buffer of the first offset, in Triton 3.4.
    pub struct MemDescSubviewOp = "ttg.memdesc_subview" {
        operands: [src: MEMDESC_TYPE, offsets[var]: I32],
        results: [result: MEMDESC_TYPE],
        traits: [Trait::Pure, MEMDESC_VIEW, ON_BUFFERS],
        format: "$src `[` $offsets `]` attr-dict `:` qualified(type($src)) `->` qualified(type($result))",
    }
}

/// `0, 16`
fn parse_offsets<'c>(parser: &mut OpParser<'c>, _: &mut Parsed<'c>, _: &[Arg]) -> ParseResult<()> {
    let mut offsets = Vec::new();
    let loc = parser.loc();
    if let Some(first) = parser.opt_integer()? {
        offsets.push(first);
        while parser.opt_punct(Punct::Comma) {
            offsets.push(parser.integer()?);
        }
    }
    let narrow: Result<Vec<i32>, _> = offsets.into_iter().map(i32::try_from).collect();
    let Ok(offsets) = narrow else {
        return Err(parser.error(loc, "offsets must be integers of 32 bits"));
    };
    parser.set_attr("offsets", Attr::i32_array(parser.context(), &offsets));
    Ok(())
}

fn print_offsets<'c>(op: Op<'c>, printer: &mut OpPrinter<'c>, _: &[Arg]) {
    let offsets = MemDescSubsliceOp::of(op).unverified().offsets().unwrap_or_default();
    printer.join(", ", offsets, |printer, offset| printer.text(&offset.to_string()));
}

op! {
    /// The part of a buffer that begins at `offsets`.
    pub struct MemDescSubsliceOp = "ttg.memdesc_subslice" {
        operands: [src: MEMDESC_TYPE],
        results: [result: MEMDESC_TYPE],
        attrs: [offsets: DenseI32Array],
        traits: [Trait::Pure, MEMDESC_VIEW, ON_BUFFERS],
        format: "$src `[` custom<Offsets>($offsets) `]` attr-dict `:` qualified(type($src)) `->` qualified(type($result))",
        with: {
            custom: &[CustomDirective { name: "Offsets", parse: parse_offsets, print: print_offsets }],
            verify: Some(verify_ops::memdesc_subslice),
            fold: Some(fold::memdesc_subslice),
        },
    }
}

op! {
    /// The buffer with its dimensions permuted.
    pub struct MemDescTransOp = "ttg.memdesc_trans" {
        operands: [src: MEMDESC_TYPE],
        results: [result: MEMDESC_TYPE],
        attrs: [order: DenseI32Array],
        traits: [Trait::Pure, MEMDESC_VIEW, ON_BUFFERS],
        format: "$src attr-dict `:` qualified(type($src)) `->` qualified(type($result))",
        with: {
            infer: Some(infer_memdesc::trans),
            compatible: Some(infer_memdesc::compatible),
            fold: Some(fold::memdesc_trans),
        },
    }
}

op! {
    /// The buffer with another shape.
    pub struct MemDescReshapeOp = "ttg.memdesc_reshape" {
        operands: [src: MEMDESC_TYPE],
        results: [result: MEMDESC_TYPE],
        traits: [Trait::Pure, MEMDESC_VIEW, ON_BUFFERS],
        format: "$src attr-dict `:` qualified(type($src)) `->` qualified(type($result))",
        with: {
            verify: Some(verify_ops::memdesc_reshape),
        },
    }
}

op! {
    /// The same bytes as a buffer of another shape and element type.
    pub struct MemDescReinterpretOp = "ttg.memdesc_reinterpret" {
        operands: [src: MEMDESC_TYPE],
        results: [result: MEMDESC_TYPE],
        traits: [Trait::Pure, MEMDESC_VIEW, ON_BUFFERS],
        format: "$src attr-dict `:` qualified(type($src)) `->` qualified(type($result))",
        with: {
            verify: Some(verify_ops::memdesc_reinterpret),
            fold: Some(fold::memdesc_reinterpret),
        },
    }
}
