//! Attributes: cache hints.

use crate::tt::enums::{CacheModifier, EvictionPolicy};
use mlir_host::asm::{ParseResult, Parser, Punct};
use mlir_host::def::{AttrDef, EnumCase};
use mlir_host::dialect::hosted_attr;
use mlir_host::ir::{Attr, Context};

fn case<'c>(parser: &mut Parser<'c>, what: &str, cases: &[EnumCase]) -> ParseResult<Attr<'c>> {
    let keywords: Vec<(&str, i64)> = cases.iter().map(|case| (case.keyword, case.value)).collect();
    let value = parser.one_of(what, &keywords)?;
    Ok(Attr::int(parser.context(), 32, value))
}

/// `#tt.cache_policy<cache_modifier = cg, eviction_policy = evict_normal>`:
/// cache hints for an access to global memory.
pub static CACHE_POLICY: AttrDef = AttrDef {
    summary: "cache hints of an access to global memory",
    parse: |parser| {
        parser.punct(Punct::Less)?;
        let (mut modifier, mut policy) = (None, None);
        for i in 0..2 {
            if i > 0 {
                parser.punct(Punct::Comma)?;
            }
            let loc = parser.loc();
            let name = parser.any_keyword()?;
            parser.punct(Punct::Equal)?;
            match name.as_str() {
                "cache_modifier" if modifier.is_none() => {
                    modifier = Some(case(parser, "a cache modifier", CacheModifier::CASES)?);
                }
                "eviction_policy" if policy.is_none() => {
                    policy = Some(case(parser, "an eviction policy", EvictionPolicy::CASES)?);
                }
                _ => {
                    let message = format!("duplicate or unknown parameter of a cache policy: {name}");
                    return Err(parser.error(loc, message));
                }
            }
        }
        parser.punct(Punct::Greater)?;
        Ok(modifier.into_iter().chain(policy).collect())
    },
    print: |params, printer| {
        let value = |i: usize| params.get(i).and_then(|param| param.as_int());
        let modifier = value(0).and_then(CacheModifier::from_value).map_or("none", CacheModifier::keyword);
        let policy =
            value(1).and_then(EvictionPolicy::from_value).map_or("evict_normal", EvictionPolicy::keyword);
        printer.text(&format!("<cache_modifier = {modifier}, eviction_policy = {policy}>"));
    },
    ..AttrDef::new("tt", "cache_policy")
};

/// Cache hints, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CachePolicy {
    /// Caches to go through.
    pub modifier: CacheModifier,
    /// When the line goes.
    pub eviction: EvictionPolicy,
}

impl CachePolicy {
    /// Reads a `#tt.cache_policy`; `None` for any other attribute.
    pub fn decode(attr: Attr<'_>) -> Option<Self> {
        if !attr.is(&CACHE_POLICY) {
            return None;
        }
        let params = attr.params();
        Some(Self {
            modifier: CacheModifier::from_value(params.first()?.as_int()?)?,
            eviction: EvictionPolicy::from_value(params.get(1)?.as_int()?)?,
        })
    }
    /// As an attribute.
    pub fn attr(self, ctx: Context<'_>) -> Option<Attr<'_>> {
        hosted_attr(ctx, &CACHE_POLICY, &[self.modifier.attr(ctx), self.eviction.attr(ctx)])
    }
}
