//! `--poly-to-arith`: a polynomial becomes its coefficients, as many values as its type has degrees, everywhere.

use crate::{Add, Constant, Eval, POLY_TYPE, arith, bound, horner, number};
use mlir_host::conversion::*;
use mlir_host::ir::Type;
use mlir_host::pass::PassDef;

/// The pass.
pub static TO_ARITH: PassDef = PassDef {
    dependencies: &["arith"],
    ..PassDef::new("poly-to-arith", "Converts polynomials to their coefficients", |root, _| {
        apply_full_conversion(root, TARGET, &[&CONSTANT, &ADD, &EVAL, &FUNCTION, &RETURN, &CALL])
    })
};

static TYPES: TypeConverter = TypeConverter {
    conversions: &[
        |ty| match ty.is(&POLY_TYPE) {
            true => Converted::ToMany(vec![Type::int(ty.context(), 32); bound(ty) as usize]),
            false => Converted::Unknown,
        },
        keep,
    ],
    ..TypeConverter::new("coefficients")
};

static TARGET: &[Rule<'static>] = &[
    Rule::dialect("poly", Legality::Illegal),
    Rule::op("func.func", Legality::Dynamic(|op| Some(TYPES.is_legal_function(op)))),
    Rule::others(Legality::Dynamic(|op| Some(TYPES.is_legal(op)))),
];

static FUNCTION: ConversionPattern = ConversionPattern::function("func.func", &TYPES);
static RETURN: ConversionPattern = ConversionPattern::types_of("func.return", &TYPES);
static CALL: ConversionPattern = ConversionPattern::types_of("func.call", &TYPES);

/// A pattern that is given polynomials as their coefficients.
const fn pattern(root: &'static str, apply: ConvertFn) -> ConversionPattern {
    ConversionPattern { types: Some(&TYPES), one_to_many: true, ..ConversionPattern::new(root, root, apply) }
}

static CONSTANT: ConversionPattern = pattern(Constant::NAME, |op, _, rewriter| {
    let constant = Constant::of(op);
    let mut numbers = constant.coefficients();
    numbers.resize(bound(constant.result().ty()) as usize, 0);
    let made: Result<Vec<_>, _> = numbers.into_iter().map(|n| number(rewriter, op, n)).collect();
    rewriter.replace_by_many(op, &[made?]);
    Ok(true)
});

static ADD: ConversionPattern = pattern(Add::NAME, |op, operands, rewriter| {
    let pairs = operands.group(op, "lhs").iter().zip(operands.group(op, "rhs"));
    let made: Result<Vec<_>, _> = pairs.map(|(a, b)| arith(rewriter, op, "arith.addi", [*a, *b])).collect();
    rewriter.replace_by_many(op, &[made?]);
    Ok(true)
});

static EVAL: ConversionPattern = pattern(Eval::NAME, |op, operands, rewriter| {
    let value = horner(rewriter, op, operands.group(op, "poly"), operands.one(1))?;
    rewriter.replace(op, &[value]);
    Ok(true)
});
