//! Attributes: cache hints; those of tensor memory are in [`crate::encoding::tensor_memory`].

use super::enums::{BlockRepOrder, CacheEvictionPriority, LoadReduction};
use crate::encoding::tensor_memory::{ParseField, parse_case, parse_struct};
pub use crate::encoding::tensor_memory::{
    TENSOR_MEMORY, TENSOR_MEMORY_ENCODING, TENSOR_MEMORY_SCALES_ENCODING, encoding, encoding_attr, matrix,
    scales, tensor_memory,
};
use crate::tt::enums::CacheModifier;
use mlir_host::asm::{ParseResult, Parser, Printer, Punct};
use mlir_host::def::{AttrConstraint, AttrDef, AttrKind, AttrSyntax, EnumCase, VerifyResult};
use mlir_host::dialect::hosted_attr;
use mlir_host::ir::{Attr, Context, FloatKind};

/// All attributes of this dialect.
pub static ATTRS: &[&AttrDef] = &[
    &CACHE_POLICY,
    &TENSOR_MEMORY,
    &TENSOR_MEMORY_ENCODING,
    &TENSOR_MEMORY_SCALES_ENCODING,
    &LOAD_REDUCTION,
    &BLOCK_REP_ORDER,
];

//===----------------------------------------------------------------------===//
// Enums that are attributes of their own
//===----------------------------------------------------------------------===//

/// `#ttng.redOp<max>`: the reduction of `ttng.tmem_load`.
pub static LOAD_REDUCTION: AttrDef = AttrDef {
    summary: "reduction of a load from tensor memory",
    parse: |parser| parse_enum(parser, "a reduction", LoadReduction::CASES),
    print: |params, printer| print_enum(params, printer, LoadReduction::CASES),
    ..AttrDef::new("ttng", "redOp")
};

/// `#ttng.blockRepOrder<kThenMn>`: the order of repeated blocks of scales.
pub static BLOCK_REP_ORDER: AttrDef = AttrDef {
    summary: "order of repeated blocks of scales",
    parse: |parser| parse_enum(parser, "an order of repetition", BlockRepOrder::CASES),
    print: |params, printer| print_enum(params, printer, BlockRepOrder::CASES),
    ..AttrDef::new("ttng", "blockRepOrder")
};

fn parse_enum<'c>(parser: &mut Parser<'c>, what: &str, cases: &[EnumCase]) -> ParseResult<Vec<Attr<'c>>> {
    parser.punct(Punct::Less)?;
    let case = parse_case(parser, what, cases)?;
    parser.punct(Punct::Greater)?;
    Ok(vec![case])
}

fn print_enum(params: &[Attr<'_>], printer: &mut Printer<'_>, cases: &[EnumCase]) {
    let value = params.first().and_then(|param| param.as_int());
    let keyword = cases.iter().find(|case| Some(case.value) == value).map_or("", |case| case.keyword);
    printer.text(&format!("<{keyword}>"));
}

/// A `#ttng.redOp` as an attribute of an operation.
pub struct LoadReductionAttr;
impl AttrKind for LoadReductionAttr {
    type Value<'c> = LoadReduction;
    const CONSTRAINT: AttrConstraint = AttrConstraint {
        summary: "min or max as #ttng.redOp",
        matches: |attr| attr.is(&LOAD_REDUCTION),
        syntax: AttrSyntax::Any,
    };
    fn decode(attr: Attr<'_>) -> Option<LoadReduction> {
        LoadReduction::from_value(attr.params().first()?.as_int()?)
    }
    fn encode(ctx: Context<'_>, value: LoadReduction) -> Option<Attr<'_>> {
        hosted_attr(ctx, &LOAD_REDUCTION, &[value.attr(ctx)])
    }
}

//===----------------------------------------------------------------------===//
// Cache hints
//===----------------------------------------------------------------------===//

/// `#ttng.cache_policy<cache_modifier = cg, l2_prefetch_size = 128 : i32>`:
/// hints for the caches of NVIDIA GPUs. Parameters that are not given are
/// `unit`.
pub static CACHE_POLICY: AttrDef = AttrDef {
    summary: "cache hints of an access to global memory on NVIDIA GPUs",
    parse: |parser| {
        let values = parse_struct(parser, &POLICY_FIELDS)?;
        let ctx = parser.context();
        Ok(values
            .into_iter()
            .enumerate()
            .map(|(i, value)| {
                // `none` is the same as not given.
                let given = value.filter(|value| match i {
                    0 => value.as_int() != Some(CacheModifier::None as i64),
                    1..=3 => value.as_int() != Some(CacheEvictionPriority::None as i64),
                    _ => true,
                });
                given.unwrap_or_else(|| Attr::unit(ctx))
            })
            .collect())
    },
    print: |params, printer| {
        printer.text("<");
        let given = params.iter().zip(POLICY_FIELDS).filter(|(param, _)| !param.is_unit());
        printer.join(", ", given, |printer, (param, (name, _))| {
            printer.text(&format!("{name} = "));
            let value = param.as_int();
            match name {
                "cache_modifier" => {
                    printer.text(value.and_then(CacheModifier::from_value).map_or("", CacheModifier::keyword))
                }
                "l1" | "l2_primary" | "l2_secondary" => {
                    let case = value.and_then(CacheEvictionPriority::from_value);
                    printer.text(case.map_or("", CacheEvictionPriority::keyword));
                }
                _ => printer.attr(*param),
            }
        });
        printer.text(">");
    },
    verify: Some(|_, params| verify_policy(params)),
    ..AttrDef::new("ttng", "cache_policy")
};

const POLICY_FIELDS: [(&str, ParseField); 6] = [
    ("cache_modifier", |parser| parse_case(parser, "a cache modifier", CacheModifier::CASES)),
    ("l1", |parser| parse_case(parser, "an eviction priority", CacheEvictionPriority::CASES)),
    ("l2_primary", |parser| parse_case(parser, "an eviction priority", CacheEvictionPriority::CASES)),
    ("l2_secondary", |parser| parse_case(parser, "an eviction priority", CacheEvictionPriority::CASES)),
    ("l2_fraction", |parser| {
        let loc = parser.loc();
        let value = parser.attr(None)?;
        if value.as_float().is_some() {
            Ok(value)
        } else {
            Err(parser.error(loc, "expected a floating-point attribute"))
        }
    }),
    ("l2_prefetch_size", |parser| {
        let loc = parser.loc();
        let value = parser.attr(None)?;
        if value.as_int().is_some() {
            Ok(value)
        } else {
            Err(parser.error(loc, "expected an integer attribute"))
        }
    }),
];

/// NVIDIA cache hints, decoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CachePolicy {
    /// Caches to go through.
    pub modifier: CacheModifier,
    /// When lines of L1 go.
    pub l1: CacheEvictionPriority,
    /// When lines of L2 go: of the given fraction of accesses, of the rest, and the fraction.
    pub l2: Option<(CacheEvictionPriority, CacheEvictionPriority, f64)>,
    /// Bytes of L2 to fetch along: 64, 128 or 256.
    pub l2_prefetch_size: Option<u32>,
}

impl CachePolicy {
    /// Reads a `#ttng.cache_policy`; `None` for any other attribute.
    pub fn decode(attr: Attr<'_>) -> Option<Self> {
        let [modifier, l1, primary, secondary, fraction, prefetch] = attr.params() else { return None };
        if !attr.is(&CACHE_POLICY) {
            return None;
        }
        let priority = |param: &Attr<'_>| {
            param.as_int().and_then(CacheEvictionPriority::from_value).unwrap_or(CacheEvictionPriority::None)
        };
        Some(Self {
            modifier: modifier.as_int().and_then(CacheModifier::from_value).unwrap_or(CacheModifier::None),
            l1: priority(l1),
            l2: fraction.as_float().map(|fraction| (priority(primary), priority(secondary), fraction)),
            l2_prefetch_size: prefetch.as_int().and_then(|size| u32::try_from(size).ok()),
        })
    }
}

fn verify_policy(params: &[Attr<'_>]) -> VerifyResult {
    use CacheEvictionPriority as Priority;
    let [modifier, l1, primary, secondary, fraction, prefetch] = params else {
        return Err(format!("a cache policy has 6 parameters, got {}", params.len()));
    };
    if !modifier.is_unit() && !l1.is_unit() {
        return Err("a cache modifier cannot be combined with an L1 eviction priority".into());
    }
    let priority = |param: &Attr<'_>| param.as_int().and_then(Priority::from_value).unwrap_or(Priority::None);
    match (primary.is_unit(), secondary.is_unit(), fraction.is_unit()) {
        (true, true, true) => {}
        (true, ..) => return Err("l2_secondary and l2_fraction require l2_primary".into()),
        (false, false, false) => {
            if priority(primary) == Priority::NoAllocate {
                return Err(format!(
                    "invalid L2 primary eviction priority '{}'",
                    priority(primary).keyword()
                ));
            }
            if !matches!(priority(secondary), Priority::First | Priority::Unchanged) {
                return Err(format!(
                    "invalid L2 secondary eviction priority '{}': only evict_first and evict_unchanged are",
                    priority(secondary).keyword()
                ));
            }
            let value = fraction.as_float().unwrap_or(f64::NAN);
            let single = fraction.ty().is_some_and(|ty| ty.float_kind() == Some(FloatKind::F32));
            if !(single && value > 0.0 && value <= 1.0) {
                return Err(format!("L2 fraction must be a finite f32 in (0, 1], got {fraction}"));
            }
        }
        _ => return Err("an L2 policy requires l2_primary, l2_secondary and l2_fraction".into()),
    }
    if !prefetch.is_unit() {
        let bits = prefetch.ty().and_then(|ty| ty.int_bits());
        if bits != Some(32) || !matches!(prefetch.as_int(), Some(64 | 128 | 256)) {
            return Err(format!("L2 prefetch size must be 64, 128, or 256 as an i32, got {prefetch}"));
        }
    }
    Ok(())
}
