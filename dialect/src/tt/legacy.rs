//! What Triton 3.4 to 3.8 print otherwise than 3.9 does. It is read, and printed as 3.9 prints it.

use crate::tt::attrs::CachePolicy;
use crate::tt::enums::{CacheModifier, EvictionPolicy};
use mlir_host::asm::{OpParser, ParseResult, Punct};
use mlir_host::def::{CustomDirective, EnumCase};
use mlir_host::format::{Arg, Parsed};

/// `cacheModifier = ca evictionPolicy = evict_last`, each at most once, for `{cachePolicy = #tt.cache_policy<…>}`.
pub(super) const CACHE_HINTS: CustomDirective =
    CustomDirective { name: "CacheHints", parse: parse_cache_hints, print: |_, _, _| {} };

fn parse_cache_hints<'c>(parser: &mut OpParser<'c>, _: &mut Parsed<'c>, _: &[Arg]) -> ParseResult<()> {
    let mut modifier = None;
    let mut eviction = None;
    loop {
        if modifier.is_none() && parser.opt_keyword("cacheModifier") {
            modifier = Some(value(parser, "a cache modifier", CacheModifier::CASES)?);
        } else if eviction.is_none() && parser.opt_keyword("evictionPolicy") {
            eviction = Some(value(parser, "an eviction policy", EvictionPolicy::CASES)?);
        } else {
            break;
        }
    }
    let modifier = modifier.and_then(CacheModifier::from_value);
    let eviction = eviction.and_then(EvictionPolicy::from_value);
    if modifier.is_none() && eviction.is_none() {
        return Ok(());
    }
    let policy = CachePolicy {
        modifier: modifier.unwrap_or(CacheModifier::None),
        eviction: eviction.unwrap_or(EvictionPolicy::Normal),
    };
    if let Some(policy) = policy.attr(parser.context()) {
        parser.set_attr("cachePolicy", policy);
    }
    Ok(())
}

fn value(parser: &mut OpParser<'_>, what: &str, cases: &[EnumCase]) -> ParseResult<i64> {
    parser.punct(Punct::Equal)?;
    let keywords: Vec<(&str, i64)> = cases.iter().map(|case| (case.keyword, case.value)).collect();
    parser.one_of(what, &keywords)
}
