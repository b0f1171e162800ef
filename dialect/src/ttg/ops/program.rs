//! Threads of a program, and its schedule.

use crate::constraints::{I1, I32};
use crate::tt::types::same;
use crate::ttg::enums::AddrSpace;
use crate::ttg::verify::ON_BUFFERS;
use mlir_host::asm::{OpParser, OpPrinter, ParseResult, Punct};
use mlir_host::attrs::{I32Attr, UnitAttr};
use mlir_host::def::{ANY_TYPE, Blocks, Format, TypeConstraint, TypeRule};
use mlir_host::ir::Op;
use mlir_host::op;
use mlir_host::traits::Trait;

static INTEGER_OR_INDEX: TypeConstraint =
    TypeConstraint::new("signless integer or index", |ty| ty.is_signless() || ty.is_index());

op! {
    /// Whether stage `stage` of a pipelined loop has work in an iteration.
    pub struct PredicateStageOp = "ttg.predicate_stage" {
        operands: [iv: INTEGER_OR_INDEX, ub: INTEGER_OR_INDEX, step: INTEGER_OR_INDEX],
        results: [result: I1],
        attrs: [max_stage("maxStage"): I32Attr, stage: I32Attr],
        traits: [Trait::Pure, ON_BUFFERS],
        types: [
            TypeRule::new("all of {iv, ub, step} have same type", "iv", "ub", same),
            TypeRule::new("all of {iv, ub, step} have same type", "iv", "step", same),
        ],
        format: "$iv `,` $ub `,` $step `maxStage` $maxStage `stage` $stage attr-dict `:` type($iv) `->` type($result)",
    }
}

op! {
    /// Runs its region where the predicate holds, while a loop is pipelined.
    pub struct MaskOp = "ttg.mask" {
        operands: [pred: I1],
        results: [result[var]: ANY_TYPE],
        regions: [region: Blocks::Exactly(1)],
        traits: [Trait::SINGLE_BLOCK, ON_BUFFERS],
    }
}

op! {
    /// Ends the region of `ttg.mask` with its results.
    pub struct MaskReturnOp = "ttg.mask.return" {
        operands: [result[var]: ANY_TYPE],
        traits: [Trait::Pure,
            Trait::HasParent(&["ttg.mask"]), Trait::TERMINATOR, Trait::RETURN_LIKE, ON_BUFFERS,
        ],
        format: "$result attr-dict `:` type($result)",
    }
}

fn parse_barrier(parser: &mut OpParser<'_>) -> ParseResult<()> {
    let mut spaces = AddrSpace::NONE;
    let mut words = 0;
    let mut none = false;
    loop {
        let loc = parser.loc();
        let word = parser.any_keyword()?;
        let Some(space) = AddrSpace::from_keyword(&word) else {
            return Err(parser.error(
                loc,
                format!(
                    "unknown address space '{word}': expected none, local, global_read, global_write, \
                     tensor_read, tensor_write or all"
                ),
            ));
        };
        words += 1;
        none |= space == AddrSpace::NONE;
        if none && words > 1 {
            return Err(parser.error(loc, "'none' cannot be combined with other address spaces"));
        }
        spaces = spaces.union(space);
        if !parser.opt_punct(Punct::VerticalBar) {
            break;
        }
    }
    parser.set_attr("addrSpace", spaces.attr(parser.context()));
    parser.attr_dict(false)
}

fn print_barrier<'c>(op: Op<'c>, printer: &mut OpPrinter<'c>) {
    let spaces = BarrierOp::of(op).unverified().addr_space().unwrap_or(AddrSpace::NONE);
    printer.text(" ");
    printer.text(&spaces.text());
    printer.attr_dict(op, 1, &[], false);
}

op! {
    /// Waits for all threads of the block, whose accesses to these address
    /// spaces are then visible to each other.
    pub struct BarrierOp = "ttg.barrier" {
        attrs: [addr_space("addrSpace"): AddrSpace],
        traits: [ON_BUFFERS],
        with: { format: Format::Custom { parse: parse_barrier, print: print_barrier } },
    }
}

op! {
    /// The number of the warp that asks.
    pub struct WarpIdOp = "ttg.warp_id" {
        results: [result: I32],
        attrs: [omit_uniform_hint("omitUniformHint")[opt]: UnitAttr],
        traits: [Trait::Pure, ON_BUFFERS],
        format: "attr-dict",
    }
}
