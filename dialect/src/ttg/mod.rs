//! The `ttg` dialect.

pub mod attrs;
pub mod infer;
pub mod layout;
pub mod module_attrs;
pub mod verify;

use mlir_host::DialectDef;

/// The dialect.
pub static DIALECT: DialectDef =
    DialectDef { attrs: attrs::ATTRS, attr_alias: Some(attrs::alias), ..DialectDef::new("ttg") };
