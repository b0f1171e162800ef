//! Different code on different warps.

use super::ASYNC_REGIONS;
use crate::ttg::verify::ON_BUFFERS;
use crate::ttg::{canonicalize, verify_ops};
use mlir_host::asm::{OpParser, OpPrinter, ParseResult, Punct, Unresolved};
use mlir_host::attrs::DenseI32Array;
use mlir_host::def::{ANY_TYPE, Blocks, Format, Speculation};
use mlir_host::ir::{Attr, Op, Region};
use mlir_host::op;
use mlir_host::traits::Trait;

op! {
    /// Runs the default region on the warps that came here, and each partition
    /// region on warps of its own, all at the same time.
    pub struct WarpSpecializeOp = "ttg.warp_specialize" {
        results: [default_passthrough("defaultPassthrough")[var]: ANY_TYPE],
        attrs: [
            partition_num_warps("partitionNumWarps"): DenseI32Array,
            warp_group_start_ids("warpGroupStartIds")[opt]: DenseI32Array,
            requested_registers("requestedRegisters")[opt]: DenseI32Array,
            actual_registers("actualRegisters")[opt]: DenseI32Array,
        ],
        regions: [
            default_region("defaultRegion"): Blocks::AtLeast(1),
            partition_op_holder("partitionOpHolder"): Blocks::Exactly(1),
        ],
        traits: [Trait::RECURSIVE_EFFECTS, ASYNC_REGIONS, ON_BUFFERS],
        with: {
            format: Format::Custom { parse: parse_warp_specialize, print: print_warp_specialize },
            verify: Some(verify_ops::warp_specialize),
            canonicalize: &canonicalize::WARP_SPECIALIZE,
            speculation: Speculation::Recursive,
            successor_regions: Some(|_, from, push| match from {
                -1 => {
                    push(0);
                    push(1);
                }
                0 => push(-1),
                _ => {}
            }),
        },
    }
}

impl<'c> WarpSpecializeOp<'c> {
    /// The operation that holds the partition regions.
    pub fn partitions(self) -> Option<WarpSpecializePartitionsOp<'c>> {
        WarpSpecializePartitionsOp::cast(self.partition_op_holder().first_block()?.first()?)
    }
    /// The partition regions.
    pub fn partition_regions(self) -> Vec<Region<'c>> {
        self.partitions().map(|op| op.partition_regions().collect()).unwrap_or_default()
    }
}

op! {
    /// Holds the partition regions of `ttg.warp_specialize`, which see nothing
    /// of their surroundings but what is captured for them.
    pub struct WarpSpecializePartitionsOp = "ttg.warp_specialize.partitions" {
        operands: [explicit_captures("explicitCaptures")[var]: ANY_TYPE],
        regions: [partition_regions("partitionRegions")[var]: Blocks::AtLeast(1)],
        traits: [
            Trait::ISOLATED, Trait::RECURSIVE_EFFECTS, Trait::TERMINATOR, Trait::HasParent(&["ttg.warp_specialize"]),
            ON_BUFFERS,
        ],
        with: {
            verify: Some(verify_ops::warp_specialize_partitions),
            canonicalize: &canonicalize::WARP_SPECIALIZE_PARTITIONS,
            speculation: Speculation::Recursive,
            passes_operands: true,
            successor_regions: Some(|op, from, push| {
                if from == -1 {
                    (0..op.num_regions()).for_each(|region| push(region as isize));
                }
            }),
        },
    }
}

op! {
    /// Ends the default region with the results of `ttg.warp_specialize`.
    pub struct WarpYieldOp = "ttg.warp_yield" {
        operands: [values[var]: ANY_TYPE],
        traits: [Trait::Pure,
            Trait::TERMINATOR, Trait::RETURN_LIKE, Trait::HasParent(&["ttg.warp_specialize"]),
            ON_BUFFERS,
        ],
        format: "($values^)? attr-dict (`:` type($values)^)?",
        with: { verify: Some(verify_ops::warp_yield) },
    }
}

op! {
    /// Ends a partition region.
    pub struct WarpReturnOp = "ttg.warp_return" {
        traits: [Trait::Pure,
            Trait::TERMINATOR, Trait::RETURN_LIKE, Trait::HasParent(&["ttg.warp_specialize.partitions"]),
            ON_BUFFERS,
        ],
        format: "attr-dict",
    }
}

/// `(captures) attributes {…} default {…} partition0(args) num_warps(n) {…} … : (types) -> types`
fn parse_warp_specialize(parser: &mut OpParser<'_>) -> ParseResult<()> {
    let loc = parser.loc();
    parser.punct(Punct::LParen)?;
    let captures: Vec<Unresolved> = parser.operand_list()?;
    parser.punct(Punct::RParen)?;
    parser.attr_dict(true)?;
    parser.keyword("default")?;
    parser.region(None)?;
    let mut warps = Vec::new();
    let mut results = Vec::new();
    let partitions = parser.nested(WarpSpecializePartitionsOp::DEF, |parser| {
        while parser.opt_keyword(&format!("partition{}", warps.len())) {
            let args = parser.region_args(true)?;
            parser.keyword("num_warps")?;
            parser.punct(Punct::LParen)?;
            let loc = parser.loc();
            let count = parser.integer()?;
            let Ok(count) = i32::try_from(count) else {
                return Err(parser.error(loc, format!("{count} warps are more than 32 bits hold")));
            };
            warps.push(count);
            parser.punct(Punct::RParen)?;
            parser.region(Some(&args))?;
        }
        parser.punct(Punct::Colon)?;
        let Some(types) = parser.ty()?.as_function() else {
            return Err(parser.error(loc, "expected the types of captures and results, as of a function"));
        };
        let inputs = types.inputs();
        if inputs.len() != captures.len() {
            return Err(parser.error(
                loc,
                format!("{} captures cannot have the {} types given for them", captures.len(), inputs.len()),
            ));
        }
        for (capture, ty) in captures.iter().zip(inputs) {
            parser.resolve(capture, ty)?;
        }
        results = types.results();
        Ok(())
    })?;
    parser.add_region_with(partitions);
    parser.add_results(&results);
    parser.set_attr("partitionNumWarps", Attr::i32_array(parser.context(), &warps));
    Ok(())
}

fn print_warp_specialize<'c>(op: Op<'c>, printer: &mut OpPrinter<'c>) {
    let ws = WarpSpecializeOp::of(op);
    let captures: Vec<_> = ws.partitions().map(|op| op.explicit_captures().collect()).unwrap_or_default();
    printer.text("(");
    printer.operands(captures.iter().copied());
    printer.text(")");
    printer.attr_dict(op, 1, &[], true);
    printer.newline();
    printer.text("default ");
    printer.region(ws.default_region(), false, true);
    let warps = ws.unverified().partition_num_warps().unwrap_or_default();
    for (i, region) in ws.partition_regions().into_iter().enumerate() {
        printer.newline();
        printer.text(&format!("partition{i}("));
        for (arg, value) in region.first_block().into_iter().flat_map(|block| block.args()).enumerate() {
            if arg > 0 {
                printer.text(", ");
            }
            printer.region_arg(value);
        }
        printer.text(&format!(") num_warps({}) ", warps.get(i).copied().unwrap_or(0)));
        printer.region(region, false, true);
    }
    printer.text(" : (");
    for (i, value) in captures.iter().enumerate() {
        printer.text(if i > 0 { ", " } else { "" });
        printer.ty(value.ty());
    }
    printer.text(") -> ");
    let results: Vec<_> = op.results().map(|value| value.ty()).collect();
    // A lone result needs no parentheses, unless it is a function.
    match results[..] {
        [one] if one.as_function().is_none() => printer.ty(one),
        _ => {
            printer.text("(");
            for (i, ty) in results.into_iter().enumerate() {
                printer.text(if i > 0 { ", " } else { "" });
                printer.ty(ty);
            }
            printer.text(")");
        }
    }
}
