//! Layout encodings: the attributes of `ttg` and `ttng` that say where the elements of a tensor are.
//!
//! A leaf: it knows linear layouts and nothing of the dialects' operations and types, so that `tt`, whose tensors
//! may have encodings, `ttg` and `ttng` can all use it.

pub mod attrs;
pub mod infer;
pub mod layout;
pub mod module_attrs;
mod reshape;
pub mod tensor_memory;
pub mod verify;
