//! Pieces of syntax that formats refer to.

use crate::ttg::types::TOKEN_TYPE;
use mlir_host::asm::Punct;
use mlir_host::def::CustomDirective;
use mlir_host::format::Arg;

/// `[%dependency]` where the operation gives a token; the dependency may be missing.
pub(super) const TOKEN: CustomDirective = CustomDirective {
    name: "Token",
    parse: |parser, parsed, args| {
        if !parser.opt_punct(Punct::LSquare) {
            return Ok(());
        }
        let ctx = parser.context();
        let token = TOKEN_TYPE.buildable.map(|build| build(ctx));
        let dependency = parser.opt_operand()?;
        parser.punct(Punct::RSquare)?;
        for arg in args {
            match arg {
                Arg::Operand(i) => parsed.operands[*i] = dependency.into_iter().collect(),
                Arg::ResultType(i) => parsed.result_types[*i] = Some(token.into_iter().collect()),
                _ => {}
            }
        }
        Ok(())
    },
    print: |op, printer, args| {
        let Some(def) = op.def() else { return };
        let mut dependency = None;
        let mut token = false;
        for arg in args {
            match arg {
                Arg::Operand(i) => {
                    let (start, n) = def.operand_group(op, *i);
                    dependency = op.operand_range(start, n).next();
                }
                Arg::ResultType(i) => token = def.result_group(op, *i).1 == 1,
                _ => {}
            }
        }
        if token {
            printer.text("[");
            if let Some(dependency) = dependency {
                printer.operand(dependency);
            }
            printer.text("]");
        }
    },
};

/// `, %barrier[%predicate], …`
pub(super) const BARRIERS_AND_PREDS: CustomDirective = CustomDirective {
    name: "BarriersAndPreds",
    parse: |parser, parsed, args| {
        let [Arg::Operand(barriers), Arg::Operand(preds)] = args else { return Ok(()) };
        while parser.opt_punct(Punct::Comma) {
            parsed.operands[*barriers].push(parser.operand()?);
            parser.punct(Punct::LSquare)?;
            parsed.operands[*preds].push(parser.operand()?);
            parser.punct(Punct::RSquare)?;
        }
        Ok(())
    },
    print: |op, printer, args| {
        let (Some(def), [Arg::Operand(barriers), Arg::Operand(preds)]) = (op.def(), args) else { return };
        let group = |i: usize| {
            let (start, n) = def.operand_group(op, i);
            op.operand_range(start, n)
        };
        for (barrier, pred) in group(*barriers).zip(group(*preds)) {
            printer.text(", ");
            printer.operand(barrier);
            printer.text("[");
            printer.operand(pred);
            printer.text("]");
        }
    },
};
