//! Copies from global to shared memory that run beside the program.

use super::{GLOBAL_TO_LOCAL_COPY, MEM_WAIT, shared};
use crate::constraints::*;
use crate::tt::ops::global;
use crate::tt::types::{mask_like, pointee_like};
use crate::ttg::types::{MEMDESC_TYPE, TOKEN_TYPE};
use crate::ttg::verify::ON_BUFFERS;
use crate::ttg::verify_ops;
use mlir_host::asm::{OpParser, ParseResult};
use mlir_host::attrs::{AnyAttr, BoolAttr, I32Attr};
use mlir_host::def::{CustomDirective, EffectKind, EffectOn, Effects, TypeRule};
use mlir_host::format::{Arg, Parsed};
use mlir_host::op;

op! {
    /// Waits until at most `num` groups of copies are under way.
    pub struct AsyncWaitOp = "ttg.async_wait" {
        operands: [async_token("asyncToken")[var]: TOKEN_TYPE],
        results: [ret_token("retToken"): TOKEN_TYPE],
        attrs: [num: I32Attr],
        traits: [MEM_WAIT, ON_BUFFERS],
        format: "($asyncToken^)? attr-dict",
    }
}

/// `%token, …` without `tokens`, as Triton 3.4 prints it, and only on the line of the operation: on the next one it is a
/// result of the next operation.
const OLDER_TOKENS: CustomDirective =
    CustomDirective { name: "OlderTokens", parse: parse_older_tokens, print: |_, _, _| {} };

fn parse_older_tokens<'c>(parser: &mut OpParser<'c>, parsed: &mut Parsed<'c>, _: &[Arg]) -> ParseResult<()> {
    let line = |at| parser.encoded_loc(at).position().map(|(_, line, _)| line);
    let own = line(parser.name_loc());
    // The operation has no other operands.
    let tokens = &mut parsed.operands[0];
    if tokens.is_empty() && own.is_some() && own == line(parser.loc()) {
        *tokens = parser.operand_list()?;
    }
    Ok(())
}

op! {
    /// Makes one group of the copies begun so far, for `ttg.async_wait`.
    pub struct AsyncCommitGroupOp = "ttg.async_commit_group" {
        operands: [input_tokens("inputTokens")[var]: TOKEN_TYPE],
        results: [async_token("asyncToken"): TOKEN_TYPE],
        traits: [ON_BUFFERS],
        format: "(`tokens` $inputTokens^)? legacy<OlderTokens> attr-dict",
        with: { custom: &[OLDER_TOKENS] },
    }
}

op! {
    /// Begins a copy of what pointers point to into a buffer.
    pub struct AsyncCopyGlobalToLocalOp = "ttg.async_copy_global_to_local" {
        operands: [src: PTR_TENSOR, result: MEMDESC_TYPE, mask[opt]: BOOL_TENSOR, other[opt]: ANY],
        results: [token: TOKEN_TYPE],
        attrs: [
            cache_policy("cachePolicy")[opt]: AnyAttr,
            is_volatile("isVolatile")[default "false"]: BoolAttr,
            contiguity[default "1 : i32"]: I32Attr,
        ],
        traits: [GLOBAL_TO_LOCAL_COPY, ON_BUFFERS],
        types: [
            TypeRule::new("infer mask type from src type", "src", "mask", mask_like),
            TypeRule::new("infer other type from src type", "src", "other", pointee_like),
        ],
        format: "$src `,` $result (`mask` $mask^)? (`other` $other^)? attr-dict `:` type($src) `->` type($result)",
        with: {
            verify: Some(verify_ops::async_copy),
            effects: Effects::List(&[
                global(EffectKind::Read, EffectOn::Operand("src")),
                shared(EffectKind::Write, EffectOn::Operand("result")),
            ]),
        },
    }
}
