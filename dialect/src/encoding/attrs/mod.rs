//! Layout encodings as attributes.
//!
//! Each attribute keeps its fields as builtin attributes in a fixed order, so
//! that equal encodings are one uniqued pointer. [`encoding`] and
//! [`encoding_attr`] convert to and from [`linear_layout::Encoding`], the same
//! thing as a plain value; all checks are written on that value.

mod check;
mod codec;
mod dict;

use dict::Dict;
use linear_layout::Encoding;
use mlir_host::Alias;
use mlir_host::asm::{ParseResult, Parser, Printer, Punct};
use mlir_host::def::AttrDef;
use mlir_host::dialect::hosted_attr;
use mlir_host::ir::{Attr, Context};

/// Defines an encoding attribute whose text is `#ttg.mnemonic<{…}>`.
macro_rules! encodings {
    ($( $(#[doc = $doc:literal])+ $name:ident = $mnemonic:literal; )*) => {
        $(
            $(#[doc = $doc])+
            pub static $name: AttrDef = AttrDef {
                summary: concat!($($doc),+),
                parse: |parser| parse(parser, $mnemonic),
                print: |params, printer| print($mnemonic, params, printer),
                verify: Some(|_, params| check::check(&codec::from_params($mnemonic, params)?)),
                ..AttrDef::new("ttg", $mnemonic)
            };
        )*
        /// All encodings of this dialect.
        static ENCODINGS: &[&AttrDef] = &[$(&$name),*];
        /// All attributes of this dialect.
        pub static ATTRS: &[&AttrDef] = &[$(&$name,)* &SHARED_MEMORY];
    };
}

encodings! {
    /// Each thread holds a contiguous box; threads tile a warp, warps tile a block.
    BLOCKED = "blocked";
    /// The parent with one dimension removed.
    SLICE = "slice";
    /// An operand of a dot whose result has the parent as its layout.
    DOT_OPERAND = "dot_op";
    /// The result of NVIDIA's `mma` and `wgmma` instructions.
    NVIDIA_MMA = "nvidia_mma";
    /// The result of AMD's matrix instructions with 64 lanes.
    AMD_MFMA = "amd_mfma";
    /// The result of AMD's matrix instructions with 32 lanes.
    AMD_WMMA = "amd_wmma";
    /// A distributed layout written out as bases, each basis along one dimension.
    LINEAR = "linear";
    /// A distributed layout written out as any bases.
    GENERIC_LINEAR = "generic_linear";
    /// Shared memory whose rows are permuted by XOR with their phase.
    SWIZZLED_SHARED = "swizzled_shared";
    /// As swizzled, and the phase advances by one after each full round.
    AMD_ROTATING_SHARED = "amd_rotating_shared";
    /// The operand layouts of `wgmma` and `tcgen05.mma` in shared memory.
    NVMMA_SHARED = "nvmma_shared";
    /// Shared memory with padding inserted at intervals.
    PADDED_SHARED = "padded_shared";
    /// Pieces of a tensor dealt out to separate buffers of shared memory.
    PARTITIONED_SHARED = "partitioned_shared";
    /// A layout of shared memory written out as bases.
    SHARED_LINEAR = "shared_linear";
}

/// `#ttg.shared_memory`: the memory space of descriptors of shared memory.
pub static SHARED_MEMORY: AttrDef =
    AttrDef { summary: "the space of shared memory", ..AttrDef::new("ttg", "shared_memory") };

fn parse<'c>(parser: &mut Parser<'c>, mnemonic: &'static str) -> ParseResult<Vec<Attr<'c>>> {
    let loc = parser.loc();
    parser.punct(Punct::Less)?;
    let pads = if mnemonic == "padded_shared" { parse_pads(parser)? } else { Vec::new() };
    let mut entries = parser.attr(None)?.as_dict();
    if mnemonic == "shared_linear" {
        parser.punct(Punct::Comma)?;
        parser.keyword("alignment")?;
        parser.punct(Punct::Equal)?;
        let alignment = Attr::int(parser.context(), 64, parser.integer()?);
        if let Some(entries) = &mut entries {
            entries.push(("alignment", alignment));
        }
    }
    parser.punct(Punct::Greater)?;
    let Some(entries) = entries else {
        return Err(parser.error(loc, format!("expected `<{{parameter = value, …}}>` after #ttg.{mnemonic}")));
    };
    let ctx = parser.context();
    let made =
        codec::from_dict(mnemonic, Dict::new(entries), &pads).and_then(|value| codec::to_params(ctx, &value));
    made.map_err(|reason| parser.error(loc, format!("#ttg.{mnemonic}: {reason}")))
}

/// `[interval:+padding, …]`
fn parse_pads(parser: &mut Parser<'_>) -> ParseResult<Vec<(i64, i64)>> {
    parser.list(Punct::LSquare, Punct::RSquare, |parser| {
        let interval = parser.integer()?;
        parser.punct(Punct::Colon)?;
        parser.punct(Punct::Plus)?;
        Ok((interval, parser.integer()?))
    })
}

fn print<'c>(mnemonic: &'static str, params: &[Attr<'c>], printer: &mut Printer<'c>) {
    // A parent goes through the printer, which knows its alias.
    match (mnemonic, params) {
        ("slice", [dim, parent]) => {
            printer.text(&format!("<{{dim = {}, parent = ", dim.as_int().unwrap_or(0)));
            printer.attr(*parent);
            printer.text("}>");
        }
        ("dot_op", [op_idx, parent, k_width]) => {
            printer.text(&format!("<{{opIdx = {}, parent = ", op_idx.as_int().unwrap_or(0)));
            printer.attr(*parent);
            match k_width.as_int() {
                Some(0) | None => printer.text("}>"),
                Some(k_width) => printer.text(&format!(", kWidth = {k_width}}}>")),
            }
        }
        ("partitioned_shared", [partitions, groups, dim, layout]) => {
            let [partitions, groups, dim] =
                [partitions, groups, dim].map(|value| value.as_int().unwrap_or(0));
            printer.text(&format!("<{{numPartitions = {partitions}, numGroups = {groups}, "));
            printer.text(&format!("partitionDim = {dim}, partitionLayout = "));
            printer.attr(*layout);
            printer.text("}>");
        }
        _ => {
            // Parameters were checked when the attribute was made.
            let text = codec::from_params(mnemonic, params).map(|value| value.to_string());
            let text = text.unwrap_or_else(|reason| format!("#ttg.<<{reason}>>"));
            printer.text(text.find('<').map_or(text.as_str(), |at| &text[at..]));
        }
    }
}

/// The value of an encoding attribute of `ttg` or `ttng`.
///
/// # Errors
/// When it is no encoding.
pub fn encoding(attr: Attr<'_>) -> Result<Encoding, String> {
    match attr.def() {
        Some(def) if def.dialect == "ttg" => codec::from_params(def.mnemonic, attr.params()),
        _ => super::tensor_memory::encoding(attr).ok_or_else(|| format!("{attr} is not a layout encoding")),
    }
}

/// The attribute of an encoding.
///
/// # Errors
/// When its verifier refuses it, or its dialect is not loaded.
pub fn encoding_attr<'c>(ctx: Context<'c>, value: &Encoding) -> Result<Attr<'c>, String> {
    if let Some(made) = super::tensor_memory::encoding_attr(ctx, value) {
        return made;
    }
    let mnemonic = value.mnemonic();
    let def = ENCODINGS.iter().find(|def| def.mnemonic == mnemonic);
    let def = def.ok_or_else(|| format!("{value} is no encoding of ttg"))?;
    check::check(value)?;
    let params = codec::to_params(ctx, value)?;
    hosted_attr(ctx, def, &params)
        .ok_or_else(|| format!("cannot make {value}: the ttg dialect is not loaded"))
}

/// `#ttg.shared_memory`.
pub fn shared_memory(ctx: Context<'_>) -> Option<Attr<'_>> {
    hosted_attr(ctx, &SHARED_MEMORY, &[])
}

/// Whether the attribute distributes a tensor over registers, lanes and warps.
pub fn is_distributed(attr: Attr<'_>) -> bool {
    [&BLOCKED, &SLICE, &DOT_OPERAND, &NVIDIA_MMA, &AMD_MFMA, &AMD_WMMA, &LINEAR, &GENERIC_LINEAR]
        .into_iter()
        .any(|def| attr.is(def))
}

/// Whether the attribute lays a tensor out in shared memory.
pub fn is_shared(attr: Attr<'_>) -> bool {
    ENCODINGS.iter().any(|def| attr.is(def)) && !is_distributed(attr)
}

/// The parent of `#ttg.slice` and `#ttg.dot_op`.
pub fn parent(attr: Attr<'_>) -> Option<Attr<'_>> {
    if attr.is(&SLICE) || attr.is(&DOT_OPERAND) { attr.params().get(1).copied() } else { None }
}

/// The parent of a slice along `axis`.
pub fn sliced_parent(attr: Attr<'_>, axis: usize) -> Option<Attr<'_>> {
    let (true, [dim, parent]) = (attr.is(&SLICE), attr.params()) else { return None };
    (dim.as_int() == i64::try_from(axis).ok()).then_some(*parent)
}

/// The names under which Triton prints encodings at the top of a file.
pub(crate) fn alias(attr: Attr<'_>) -> Alias {
    let Some(def) = attr.def() else { return Alias::None };
    let name = match def.mnemonic {
        "blocked" => "blocked",
        "linear" => "linear",
        "generic_linear" => "generic_linear",
        "nvidia_mma" | "amd_mfma" | "amd_wmma" => "mma",
        "swizzled_shared"
        | "amd_rotating_shared"
        | "nvmma_shared"
        | "padded_shared"
        | "partitioned_shared"
        | "shared_linear" => "shared",
        "shared_memory" => "smem",
        _ => return Alias::None,
    };
    Alias::Final(name.to_owned())
}
