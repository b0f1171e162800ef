//! Tensor memory and its layouts, as attributes of `ttng`.

use linear_layout::encoding::{CgaLayout, TensorMemory, TensorMemoryScales};
use linear_layout::{Dim, Encoding, LinearLayout};
use mlir_host::Alias;
use mlir_host::asm::{ParseResult, Parser, Printer, Punct};
use mlir_host::def::{AttrDef, EnumCase, VerifyResult};
use mlir_host::dialect::hosted_attr;
use mlir_host::enum_attr;
use mlir_host::ir::{Attr, Context};

enum_attr! {
    /// Which dimension repeated blocks of scales advance along first.
    pub enum BlockRepOrder {
        /// M or N, then K.
        MnThenK = 0 => "mnThenK",
        /// K, then M or N.
        KThenMn = 1 => "kThenMn",
    }
}

/// Tensors in tensor memory are matrices.
const RANK: usize = 2;

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

pub(crate) type ParseField = for<'c> fn(&mut Parser<'c>) -> ParseResult<Attr<'c>>;

/// `<name = value, …>` in any order, each at most once.
pub(crate) fn parse_struct<'c>(
    parser: &mut Parser<'c>,
    fields: &[(&str, ParseField)],
) -> ParseResult<Vec<Option<Attr<'c>>>> {
    let mut values = vec![None; fields.len()];
    parser.punct(Punct::Less)?;
    if parser.opt_punct(Punct::Greater) {
        return Ok(values);
    }
    loop {
        let loc = parser.loc();
        let name = parser.any_keyword()?;
        let Some(i) = fields.iter().position(|field| field.0 == name).filter(|i| values[*i].is_none()) else {
            return Err(parser.error(loc, format!("duplicate or unknown struct parameter name: {name}")));
        };
        parser.punct(Punct::Equal)?;
        values[i] = Some((fields[i].1)(parser)?);
        if !parser.opt_punct(Punct::Comma) {
            break;
        }
    }
    parser.punct(Punct::Greater)?;
    Ok(values)
}

pub(crate) fn parse_case<'c>(
    parser: &mut Parser<'c>,
    what: &str,
    cases: &[EnumCase],
) -> ParseResult<Attr<'c>> {
    let keywords: Vec<(&str, i64)> = cases.iter().map(|case| (case.keyword, case.value)).collect();
    let value = parser.one_of(what, &keywords)?;
    Ok(Attr::int(parser.context(), 32, value))
}

/// A number that fits 32 bits.
pub(crate) fn parse_number<'c>(parser: &mut Parser<'c>) -> ParseResult<Attr<'c>> {
    let loc = parser.loc();
    let value = parser.integer()?;
    if u32::try_from(value).is_err() {
        return Err(parser.error(loc, format!("{value} is not an unsigned number of 32 bits")));
    }
    Ok(Attr::int(parser.context(), 64, value))
}

pub(crate) fn parse_boolean<'c>(parser: &mut Parser<'c>) -> ParseResult<Attr<'c>> {
    let value = parser.boolean()?;
    Ok(Attr::bool(parser.context(), value))
}

/// `[[1, 0], …]`: the division of a matrix among the blocks of a cluster.
fn parse_cga<'c>(parser: &mut Parser<'c>) -> ParseResult<Attr<'c>> {
    let loc = parser.loc();
    let bases = parser.list(Punct::LSquare, Punct::RSquare, |parser| parser.int_list())?;
    if let Some(basis) = bases.iter().find(|basis| basis.len() != RANK) {
        let message = format!("CGALayout basis {basis:?} has {} coordinates, not {RANK}", basis.len());
        return Err(parser.error(loc, message));
    }
    if let Some(value) = bases.iter().flatten().find(|value| u32::try_from(**value).is_err()) {
        return Err(
            parser.error(loc, format!("CGALayout must hold unsigned numbers of 32 bits, got {value}"))
        );
    }
    let bases: Vec<Attr<'c>> = bases.iter().map(|basis| Attr::i64_array(parser.context(), basis)).collect();
    Ok(Attr::array(parser.context(), &bases))
}

//===----------------------------------------------------------------------===//
// Tensor memory
//===----------------------------------------------------------------------===//

/// `#ttng.tensor_memory`: the memory space of descriptors of tensor memory.
pub static TENSOR_MEMORY: AttrDef =
    AttrDef { summary: "the space of tensor memory", ..AttrDef::new("ttng", "tensor_memory") };

/// `#ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>`:
/// how a matrix lies in tensor memory.
pub static TENSOR_MEMORY_ENCODING: AttrDef = AttrDef {
    summary: "layout of a matrix in tensor memory",
    parse: |parser| {
        const FIELDS: [(&str, ParseField); 6] = [
            ("blockM", |parser| parse_number(parser)),
            ("blockN", |parser| parse_number(parser)),
            ("colStride", |parser| parse_number(parser)),
            ("CGALayout", |parser| parse_cga(parser)),
            ("twoCTAs", |parser| parse_boolean(parser)),
            ("fp4Padded", |parser| parse_boolean(parser)),
        ];
        let loc = parser.loc();
        let values = parse_struct(parser, &FIELDS)?;
        let ctx = parser.context();
        let defaults = [
            None,
            None,
            None,
            Some(Attr::array(ctx, &[])),
            Some(Attr::bool(ctx, false)),
            Some(Attr::bool(ctx, false)),
        ];
        let mut params = Vec::with_capacity(FIELDS.len());
        for ((value, default), (name, _)) in values.into_iter().zip(defaults).zip(FIELDS) {
            let Some(value) = value.or(default) else {
                return Err(parser.error(loc, format!("struct is missing required parameter: {name}")));
            };
            params.push(value);
        }
        Ok(params)
    },
    print: |params, printer| print_encoding(matrix_from_params(params).map(Encoding::TensorMemory), printer),
    verify: Some(|_, params| {
        verify_matrix(&matrix_from_params(params).ok_or("tensor memory layout with malformed parameters")?)
    }),
    ..AttrDef::new("ttng", "tensor_memory_encoding")
};

/// `#ttng.tensor_memory_scales_encoding<>`: how the scale factors of a
/// block-scaled dot lie in tensor memory.
pub static TENSOR_MEMORY_SCALES_ENCODING: AttrDef = AttrDef {
    summary: "layout of scale factors in tensor memory",
    parse: |parser| {
        const FIELDS: [(&str, ParseField); 2] = [
            ("CGALayout", |parser| parse_cga(parser)),
            ("blockRepOrder", |parser| parse_case(parser, "an order of repetition", BlockRepOrder::CASES)),
        ];
        let values = parse_struct(parser, &FIELDS)?;
        let ctx = parser.context();
        let defaults = [Attr::array(ctx, &[]), BlockRepOrder::MnThenK.attr(ctx)];
        Ok(values.into_iter().zip(defaults).map(|(value, default)| value.unwrap_or(default)).collect())
    },
    print: |params, printer| {
        print_encoding(scales_from_params(params).map(Encoding::TensorMemoryScales), printer)
    },
    verify: Some(|_, params| {
        verify_cga(&scales_from_params(params).ok_or("layout of scales with malformed parameters")?.cga)
    }),
    ..AttrDef::new("ttng", "tensor_memory_scales_encoding")
};

fn cga_from_param(param: Attr<'_>) -> Option<CgaLayout> {
    let basis = |basis: Attr<'_>| -> Option<Vec<u64>> {
        basis.as_i64_array()?.into_iter().map(|value| u64::try_from(value).ok()).collect()
    };
    param.as_array()?.into_iter().map(basis).collect()
}

fn cga_to_param<'c>(ctx: Context<'c>, cga: &CgaLayout) -> Attr<'c> {
    let basis = |basis: &Vec<u64>| {
        let values: Vec<i64> = basis.iter().map(|value| *value as i64).collect();
        Attr::i64_array(ctx, &values)
    };
    Attr::array(ctx, &cga.iter().map(basis).collect::<Vec<_>>())
}

fn matrix_from_params(params: &[Attr<'_>]) -> Option<TensorMemory> {
    let [block_m, block_n, col_stride, cga, two_ctas, fp4_padded] = params else { return None };
    let number = |param: &Attr<'_>| u64::try_from(param.as_int()?).ok();
    Some(TensorMemory {
        block_m: number(block_m)?,
        block_n: number(block_n)?,
        col_stride: number(col_stride)?,
        cga: cga_from_param(*cga)?,
        two_ctas: two_ctas.as_bool()?,
        fp4_padded: fp4_padded.as_bool()?,
    })
}

fn scales_from_params(params: &[Attr<'_>]) -> Option<TensorMemoryScales> {
    let [cga, order] = params else { return None };
    let order = BlockRepOrder::from_value(order.as_int()?)?;
    Some(TensorMemoryScales { cga: cga_from_param(*cga)?, k_then_mn: order == BlockRepOrder::KThenMn })
}

fn print_encoding(value: Option<Encoding>, printer: &mut Printer<'_>) {
    let text = value.map(|value| value.to_string()).unwrap_or_default();
    printer.text(text.find('<').map_or("<>", |at| &text[at..]));
}

fn verify_cga(cga: &CgaLayout) -> VerifyResult {
    let outs: Vec<Dim> = linear_layout::standard_out_dims(RANK).collect();
    let mut seen = 0u64;
    let permutation = LinearLayout::from_bases(&[(Dim::BLOCK, cga.clone())], &outs).is_ok_and(|layout| {
        layout.columns().iter().filter(|column| **column != 0).all(|column| {
            let new = column.is_power_of_two() && seen & column == 0;
            seen |= column;
            new
        })
    });
    if cga.is_empty() || permutation {
        return Ok(());
    }
    Err(format!(
        "CGALayout = {cga:?} must reach every block of the tensor once: besides copies, bases are distinct powers \
         of two, without gaps"
    ))
}

fn verify_matrix(e: &TensorMemory) -> VerifyResult {
    verify_cga(&e.cga)?;
    if !matches!(e.block_m, 64 | 128) {
        return Err(format!("blockM must be 64 or 128 but got {}", e.block_m));
    }
    if !e.block_n.is_power_of_two() {
        return Err(format!("blockN must be a power of 2 but got {}", e.block_n));
    }
    if e.block_n > 512 {
        return Err(format!(
            "blockN must be at most 512, the columns of tensor memory, but got {}",
            e.block_n
        ));
    }
    if !matches!(e.col_stride, 1 | 2 | 4) {
        return Err(format!("colStride must be 1, 2, or 4 but got {}", e.col_stride));
    }
    if e.two_ctas && e.cga.first().is_none_or(|basis| *basis != [1, 0]) {
        return Err(format!(
            "twoCTAs needs a CGALayout whose first basis is [1, 0], the rows split among the two blocks, but got {:?}",
            e.cga
        ));
    }
    if e.fp4_padded && e.col_stride != 1 {
        return Err(format!("fp4Padded needs colStride = 1 but got {}", e.col_stride));
    }
    Ok(())
}

/// The value of an encoding attribute of this dialect; `None` for any other attribute.
pub fn encoding(attr: Attr<'_>) -> Option<Encoding> {
    matrix(attr).map(Encoding::TensorMemory).or_else(|| scales(attr).map(Encoding::TensorMemoryScales))
}

/// The value of a `#ttng.tensor_memory_encoding`.
pub fn matrix(attr: Attr<'_>) -> Option<TensorMemory> {
    attr.is(&TENSOR_MEMORY_ENCODING).then(|| matrix_from_params(attr.params()))?
}

/// The value of a `#ttng.tensor_memory_scales_encoding`.
pub fn scales(attr: Attr<'_>) -> Option<TensorMemoryScales> {
    attr.is(&TENSOR_MEMORY_SCALES_ENCODING).then(|| scales_from_params(attr.params()))?
}

/// The attribute of an encoding of tensor memory; `None` for other encodings.
///
/// # Errors
/// When it is not valid, or the dialect is not loaded.
pub fn encoding_attr<'c>(ctx: Context<'c>, value: &Encoding) -> Option<Result<Attr<'c>, String>> {
    let not_loaded = || format!("cannot make {value}: the ttng dialect is not loaded");
    match value {
        Encoding::TensorMemory(e) => Some(verify_matrix(e).and_then(|()| {
            let number = |value: u64| Attr::int(ctx, 64, value as i64);
            let params = [
                number(e.block_m),
                number(e.block_n),
                number(e.col_stride),
                cga_to_param(ctx, &e.cga),
                Attr::bool(ctx, e.two_ctas),
                Attr::bool(ctx, e.fp4_padded),
            ];
            hosted_attr(ctx, &TENSOR_MEMORY_ENCODING, &params).ok_or_else(not_loaded)
        })),
        Encoding::TensorMemoryScales(e) => Some(verify_cga(&e.cga).and_then(|()| {
            let order = if e.k_then_mn { BlockRepOrder::KThenMn } else { BlockRepOrder::MnThenK };
            let params = [cga_to_param(ctx, &e.cga), order.attr(ctx)];
            hosted_attr(ctx, &TENSOR_MEMORY_SCALES_ENCODING, &params).ok_or_else(not_loaded)
        })),
        _ => None,
    }
}

/// `#ttng.tensor_memory`.
pub fn tensor_memory(ctx: Context<'_>) -> Option<Attr<'_>> {
    hosted_attr(ctx, &TENSOR_MEMORY, &[])
}

/// The names under which Triton prints encodings at the top of a file.
pub(crate) fn alias(attr: Attr<'_>) -> Alias {
    if attr.is(&TENSOR_MEMORY_ENCODING) {
        Alias::Final("tmem".to_owned())
    } else if attr.is(&TENSOR_MEMORY_SCALES_ENCODING) {
        Alias::Final("tmem_scales".to_owned())
    } else {
        Alias::None
    }
}
