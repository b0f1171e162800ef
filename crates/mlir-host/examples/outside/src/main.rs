//! `poly-opt`: `mlir-opt` with a dialect of polynomials, a pass that evaluates them, and one that converts them.
//!
//! ```mlir
//! %p = poly.constant [1, 2, 3] : !poly.poly<4>     // 1 + 2x + 3x², of degree less than 4
//! %q = poly.add %p, %p : !poly.poly<4>
//! %y = poly.eval %q at %x : !poly.poly<4>          // an i32
//! ```

mod convert;

use mlir_host::asm::{Punct, Reported};
use mlir_host::attrs::DenseI32Array;
use mlir_host::def::*;
use mlir_host::ir::{Attr, Op, Type, Value, Walk};
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use mlir_host::rewrite::{IrRewriter, Rewriter};
use mlir_host::traits::Trait;
use mlir_host::{DialectDef, op};

/// `!poly.poly<4>`: its one parameter is an integer attribute.
static POLY_TYPE: TypeDef = TypeDef {
    summary: "a polynomial of less than so many degrees",
    parse: |parser| {
        parser.punct(Punct::Less)?;
        let bound = parser.integer()?;
        parser.punct(Punct::Greater)?;
        Ok(vec![Attr::int(parser.context(), 32, bound)])
    },
    print: |params, printer| {
        printer.text(&format!("<{}>", params[0].as_int().unwrap_or(0)));
    },
    verify: Some(|_, params| match params[0].as_int() {
        Some(1..=64) => Ok(()),
        bound => Err(format!("the bound of a polynomial is 1 to 64, not {}", bound.unwrap_or(0))),
    }),
    ..TypeDef::new("poly", "poly")
};

static POLY: TypeConstraint = TypeConstraint::hosted("a polynomial", |ty| ty.is(&POLY_TYPE), &POLY_TYPE);
static I32: TypeConstraint =
    TypeConstraint::only("32-bit signless integer", |ty| ty.is_int(32), |ctx| Type::int(ctx, 32));

op! {
    /// A polynomial by its coefficients, that of degree 0 first.
    pub struct Constant = "poly.constant" {
        results: [result: POLY],
        attrs: [coefficients: DenseI32Array],
        traits: [Trait::Pure],
        format: "$coefficients attr-dict `:` qualified(type($result))",
        with: {
            verify: Some(|op| {
                let constant = Constant::of(op);
                let (has, most) = (constant.coefficients().len() as i64, bound(constant.result().ty()));
                if has <= most { Ok(()) } else { Err(format!("has {has} coefficients, and its type {most}").into()) }
            }),
        },
    }
}

op! {
    /// The sum of two polynomials.
    pub struct Add = "poly.add" {
        operands: [lhs: POLY, rhs: POLY],
        results: [sum: POLY],
        traits: [Trait::Pure, Trait::SAME_TYPE],
        format: "$lhs `,` $rhs attr-dict `:` qualified(type($sum))",
    }
}

op! {
    /// The value of a polynomial at a point.
    pub struct Eval = "poly.eval" {
        operands: [poly: POLY, point: I32],
        results: [value: I32],
        traits: [Trait::Pure],
        format: "$poly `at` $point attr-dict `:` qualified(type($poly))",
    }
}

fn bound(ty: Type<'_>) -> i64 {
    ty.params().first().and_then(|bound| bound.as_int()).unwrap_or(0)
}

static DIALECT: DialectDef = DialectDef {
    ops: &[Constant::DEF, Add::DEF, Eval::DEF],
    types: &[&POLY_TYPE],
    ..DialectDef::new("poly")
};

/// `--poly-evaluate`, or `--poly-evaluate=only=4,8`.
static EVALUATE: PassDef = PassDef {
    dependencies: &["arith"],
    options: &[PassOption {
        name: "only",
        description: "Bounds of the polynomials that are evaluated; all without one",
        kind: OptionKind::Ints(&[]),
    }],
    ..PassDef::new(
        "poly-evaluate",
        "Evaluates constant polynomials, and their sums, by Horner's scheme",
        evaluate,
    )
};

fn evaluate(root: Op<'_>, options: &Options) -> PassResult {
    let only = options.ints("only");
    let mut found = Vec::new();
    root.walk(&mut |op| {
        found.extend(Eval::cast(op));
        Walk::Advance
    });
    for eval in found {
        if only.is_empty() || only.contains(&bound(eval.poly().ty())) {
            lower(eval)?;
        }
    }
    Ok(())
}

/// The coefficients of what is a constant, or a sum of constants.
fn coefficients(value: Value<'_>) -> Option<Vec<i32>> {
    let op = value.def_op()?;
    if let Some(constant) = Constant::cast(op) {
        return Some(constant.coefficients());
    }
    let add = Add::cast(op)?;
    let (a, b) = (coefficients(add.lhs())?, coefficients(add.rhs())?);
    let at = |list: &[i32], i: usize| list.get(i).copied().unwrap_or(0);
    Some((0..a.len().max(b.len())).map(|i| at(&a, i).wrapping_add(at(&b, i))).collect())
}

/// `name` of two numbers, where `op` is.
fn arith<'c>(
    at: &mut Rewriter<'c>,
    op: Op<'c>,
    name: &str,
    numbers: [Value<'c>; 2],
) -> Result<Value<'c>, Reported> {
    Ok(at.generic(name, op.loc(), &numbers, &[numbers[0].ty()], &[])?.result(0))
}

/// An i32.
fn number<'c>(at: &mut Rewriter<'c>, op: Op<'c>, n: i32) -> Result<Value<'c>, Reported> {
    let (ty, value) = (Type::int(op.context(), 32), Attr::int(op.context(), 32, n.into()));
    Ok(at.generic("arith.constant", op.loc(), &[], &[ty], &[("value", value)])?.result(0))
}

/// The value at a point, by Horner's scheme.
fn horner<'c>(
    at: &mut Rewriter<'c>,
    op: Op<'c>,
    coefficients: &[Value<'c>],
    point: Value<'c>,
) -> Result<Value<'c>, Reported> {
    let Some((last, rest)) = coefficients.split_last() else {
        return Err(op.error("evaluates a polynomial without coefficients"));
    };
    rest.iter().rev().try_fold(*last, |sum, next| {
        let product = arith(at, op, "arith.muli", [sum, point])?;
        arith(at, op, "arith.addi", [product, *next])
    })
}

fn lower(eval: Eval<'_>) -> PassResult {
    let op = eval.op();
    let Some(coefficients) = coefficients(eval.poly()) else {
        return Err(op.error("evaluates a polynomial that is not known"));
    };
    let mut at = IrRewriter::new(op.context());
    at.set_before(op);
    let numbers: Result<Vec<_>, _> = coefficients.into_iter().map(|n| number(&mut at, op, n)).collect();
    let value = horner(&mut at, op, &numbers?, eval.point())?;
    at.replace(op, &[value]);
    Ok(())
}

fn main() {
    std::process::exit(mlir_host::driver::opt_main(
        "poly-opt\n",
        &[&DIALECT],
        &[&EVALUATE, &convert::TO_ARITH],
    ));
}
