//! `poly-opt`: `mlir-opt` with a dialect of polynomials, and a pass that evaluates them.
//!
//! ```mlir
//! %p = poly.constant [1, 2, 3] : !poly.poly<4>     // 1 + 2x + 3x², of degree less than 4
//! %q = poly.add %p, %p : !poly.poly<4>
//! %y = poly.eval %q at %x : !poly.poly<4>          // an i32
//! ```

use mlir_host::asm::{Punct, Reported};
use mlir_host::attrs::DenseI32Array;
use mlir_host::def::*;
use mlir_host::ir::{Attr, Op, Type, Value, Walk};
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use mlir_host::rewrite::{IrRewriter, create};
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
    at: &mut IrRewriter<'c>,
    op: Op<'c>,
    name: &str,
    numbers: [Value<'c>; 2],
) -> Result<Value<'c>, Reported> {
    Ok(at.insert(create(name, op.loc(), &numbers, &[numbers[0].ty()], &[], &[])?).result(0))
}

fn lower(eval: Eval<'_>) -> PassResult {
    let (op, point) = (eval.op(), eval.point());
    let Some(coefficients) = coefficients(eval.poly()) else {
        return Err(op.error("evaluates a polynomial that is not known"));
    };
    let mut at = IrRewriter::new(op.context());
    at.set_before(op);
    let mut sum: Option<Value<'_>> = None;
    for n in coefficients.iter().rev() {
        let value = [("value", Attr::int(op.context(), 32, (*n).into()))];
        let next = create("arith.constant", op.loc(), &[], &[point.ty()], &value, &[])?;
        let next = at.insert(next).result(0);
        sum = Some(match sum {
            Some(sum) => {
                let product = arith(&mut at, op, "arith.muli", [sum, point])?;
                arith(&mut at, op, "arith.addi", [product, next])?
            }
            None => next,
        });
    }
    match sum {
        Some(sum) => at.replace(op, &[sum]),
        None => return Err(op.error("evaluates a polynomial without coefficients")),
    }
    Ok(())
}

fn main() {
    std::process::exit(mlir_host::driver::opt_main("poly-opt\n", &[&DIALECT], &[&EVALUATE]));
}
