//! Copies from global to shared memory that run beside the program.

use super::{GLOBAL_TO_LOCAL_COPY, MEM_WAIT, shared};
use crate::constraints::*;
use crate::tt::ops::global;
use crate::tt::types::{mask_like, pointee_like};
use crate::ttg::types::{MEMDESC_TYPE, TOKEN_TYPE};
use crate::ttg::verify::ON_BUFFERS;
use crate::ttg::verify_ops;
use mlir_host::attrs::{AnyAttr, BoolAttr, I32Attr};
use mlir_host::def::{EffectKind, EffectOn, Effects, TypeRule};
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

op! {
    /// Makes one group of the copies begun so far, for `ttg.async_wait`.
    pub struct AsyncCommitGroupOp = "ttg.async_commit_group" {
        operands: [input_tokens("inputTokens")[var]: TOKEN_TYPE],
        results: [async_token("asyncToken"): TOKEN_TYPE],
        traits: [ON_BUFFERS],
        format: "(`tokens` $inputTokens^)? attr-dict",
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
