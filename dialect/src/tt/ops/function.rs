//! Functions, calls and returns.

use crate::tt::traits::ON_TENSORS;
use crate::tt::verify;
use mlir_host::attrs::{DictArrayAttr, FlatSymbolRefAttr, FunctionTypeAttr, StrAttr, SymbolNameAttr};
use mlir_host::def::{ANY_TYPE, Blocks, Format};
use mlir_host::op;
use mlir_host::traits::{Trait, Upstream};

op! {
    /// Calls a function of the same module.
    pub struct CallOp = "tt.call" {
        operands: [operands[var]: ANY_TYPE],
        results: [results("")[var]: ANY_TYPE],
        attrs: [callee: FlatSymbolRefAttr, arg_attrs[opt]: DictArrayAttr, res_attrs[opt]: DictArrayAttr],
        traits: [Trait::Call, ON_TENSORS],
        format: "$callee `(` $operands `)` attr-dict `:` functional-type($operands, results)",
        with: { verify_symbols: Some(verify::call) },
    }
}

op! {
    /// A function: a kernel, or a callee that was not inlined.
    pub struct FuncOp = "tt.func" {
        attrs: [
            sym_name: SymbolNameAttr,
            function_type: FunctionTypeAttr,
            sym_visibility[opt]: StrAttr,
            arg_attrs[opt]: DictArrayAttr,
            res_attrs[opt]: DictArrayAttr,
        ],
        regions: [body: Blocks::Any],
        traits: [
            Trait::Function, Trait::ISOLATED, Trait::Upstream(Upstream::AffineScope),
            Trait::HasParent(&["builtin.module"]), ON_TENSORS,
        ],
        with: { format: Format::Function },
    }
}

op! {
    /// Returns from a function.
    pub struct ReturnOp = "tt.return" {
        operands: [srcs[var]: ANY_TYPE],
        traits: [Trait::Pure,
            Trait::HasParent(&["tt.func"]), Trait::RETURN_LIKE, Trait::TERMINATOR, ON_TENSORS,
        ],
        format: "attr-dict ($srcs^ `:` type($srcs))?",
        with: { verify: Some(verify::return_) },
    }
}
