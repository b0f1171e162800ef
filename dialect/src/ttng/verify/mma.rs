//! Verifiers of dots.

use super::super::attrs::{matrix, scales};
use super::super::enums::BlockRepOrder;
use super::super::ops::*;
use super::{bits, cga_layout, cga_must_be, memdesc, num_ctas, one_per_cta, tcgen05, tensor};
use crate::tt::enums::ScaleDotElemType;
use crate::ttg::attrs::{encoding, encoding_attr};
use crate::ttg::layout::equivalent;
use crate::ttg::module_attrs;
use crate::ttg::types::MemDescType;
use linear_layout::encoding::{CgaLayout, DotOperand, TensorMemory};
use linear_layout::{Dim, Encoding};
use mlir_host::def::VerifyResult;
use mlir_host::ir::{Attr, FloatKind, Op, Type, Value};
use mlir_host::traits::Trait;

/// Operands and result of a dot have shapes that fit.
pub const DOT_SHAPES: Trait = Trait::Verify("dot shapes", dot_shapes);
/// Blocks in tensor memory are arranged as a dot can use them.
pub const MMA: Trait = Trait::Verify("mma", interleaving);

/// Shape and encoding of a tensor or a memory descriptor.
fn shaped(value: Value<'_>) -> Result<(Vec<i64>, Option<Attr<'_>>, Type<'_>), String> {
    let ty = value.ty();
    if let Some(tensor) = ty.as_tensor() {
        return Ok((tensor.shape().to_vec(), tensor.encoding(), tensor.element()));
    }
    let buffer = memdesc(value)?;
    Ok((buffer.shape(), Some(buffer.encoding()), buffer.element()))
}

/// Rows and columns of an operand, with two fp4 in a byte counted as two.
fn unpacked(value: Value<'_>, fp4: bool, along_rows: bool) -> Result<[i64; 2], String> {
    let (shape, ..) = shaped(value)?;
    let [rows, columns] = shape[..] else {
        return Err(format!("operands of a dot must be matrices, got '{}'", value.ty()));
    };
    Ok(match (fp4, along_rows) {
        (false, _) => [rows, columns],
        (true, true) => [rows.saturating_mul(2), columns],
        (true, false) => [rows, columns.saturating_mul(2)],
    })
}

fn is_transposed(buffer: Value<'_>) -> bool {
    let attr = MemDescType::cast(buffer.ty()).map(MemDescType::encoding);
    attr.is_some_and(|attr| matches!(encoding(attr), Ok(Encoding::NvmmaShared(e)) if e.transposed))
}

/// `[M, K]`, `[K, N]` and `[M, N]` of a dot.
fn matrices(op: Op<'_>) -> Result<[[i64; 2]; 3], String> {
    if let Some(dot) = WarpGroupDotOp::cast(op) {
        return Ok([
            unpacked(dot.a(), false, false)?,
            unpacked(dot.b(), false, false)?,
            unpacked(dot.d(), false, false)?,
        ]);
    }
    if let Some(mma) = TcGen5MmaOp::cast(op) {
        return Ok([
            unpacked(mma.a(), false, false)?,
            unpacked(mma.b(), false, false)?,
            unpacked(mma.d(), false, false)?,
        ]);
    }
    let mma = TcGen5MmaScaledOp::of(op);
    let fp4 = |format: ScaleDotElemType| format == ScaleDotElemType::E2M1;
    // Pairs are packed along the dimension that is contiguous: K, unless the operand is transposed.
    let (a, b) =
        (is_transposed(mma.a()), MemDescType::cast(mma.b().ty()).is_some() && !k_contiguous(mma.b()));
    Ok([
        unpacked(mma.a(), fp4(mma.a_type()), a)?,
        unpacked(mma.b(), fp4(mma.b_type()), !b)?,
        unpacked(mma.d(), false, false)?,
    ])
}

/// Whether the rows of a right operand are contiguous, which is what `wgmma` and `tcgen05.mma` call K-major.
fn k_contiguous(buffer: Value<'_>) -> bool {
    let attr = MemDescType::cast(buffer.ty()).map(MemDescType::encoding);
    attr.is_none_or(|attr| !matches!(encoding(attr), Ok(Encoding::NvmmaShared(e)) if !e.transposed))
}

fn dot_shapes(op: Op<'_>) -> VerifyResult {
    let [a, b, d] = matrices(op)?;
    crate::dot::sizes([&a, &b, &d], [[1, 1]; 2]).map(|_| ())
}

//===----------------------------------------------------------------------===//
// Warp groups
//===----------------------------------------------------------------------===//

/// A dot of warp groups.
pub fn warp_group_dot(op: Op<'_>) -> VerifyResult {
    let dot = WarpGroupDotOp::of(op);
    let result = tensor(dot.d())?;
    let mma = match result.encoding().map(|attr| (attr, encoding(attr))) {
        Some((attr, Ok(Encoding::NvidiaMma(e)))) if e.version_major == 3 => attr,
        _ => {
            return Err(format!(
                "the result must have an #ttg.nvidia_mma layout of version 3, got '{}'",
                result.ty()
            ));
        }
    };
    let (_, a, a_element) = shaped(dot.a())?;
    match a.map(encoding) {
        Some(Ok(Encoding::NvmmaShared(_) | Encoding::SharedLinear(_))) => {}
        Some(Ok(Encoding::DotOperand(e))) => {
            let wanted = u64::from(32 / bits(a_element).clamp(1, 32));
            if e.k_width != wanted {
                return Err(format!(
                    "a left operand in registers must have kWidth = {wanted}, got {}",
                    e.k_width
                ));
            }
            let shape = tensor(dot.a())?.shape();
            let fitting = DotOperand { parent: Box::new(encoding(mma)?), ..e.clone() };
            let fitting = encoding_attr(op.context(), &Encoding::DotOperand(fitting))?;
            if !a.is_some_and(|attr| equivalent(attr, fitting, &shape)) {
                return Err(format!(
                    "the left operand must be laid out as {fitting}, got '{}'",
                    dot.a().ty()
                ));
            }
        }
        _ => {
            return Err(format!(
                "the left operand must have an #ttg.nvmma_shared, #ttg.shared_linear or #ttg.dot_op layout, got '{}'",
                dot.a().ty()
            ));
        }
    }
    let b = memdesc(dot.b())?;
    if !matches!(encoding(b.encoding()), Ok(Encoding::NvmmaShared(_) | Encoding::SharedLinear(_))) {
        return Err(format!(
            "the right operand must have an #ttg.nvmma_shared or #ttg.shared_linear layout, got {}",
            b.encoding()
        ));
    }
    if let Some(warps) = module_attrs::num_warps(op)
        && warps % 4 != 0
    {
        return Err(format!("warp groups have 4 warps, but here there are {warps}"));
    }
    let shape = result.shape();
    let [m, n] = shape[..] else { return Err(format!("the result must be a matrix, got '{}'", result.ty())) };
    let part = per_cta(&cga_layout(mma)?, [m, n]);
    if part[0] % 64 != 0 || part[1] % 8 != 0 {
        return Err(format!(
            "each CTA's part of the result must have a multiple of 64 rows and of 8 columns, got {}x{}",
            part[0], part[1]
        ));
    }
    for (what, element) in [("left", a_element), ("right", b.element())] {
        use FloatKind::*;
        let known =
            element.is_int(8) || matches!(element.float_kind(), Some(F16 | BF16 | F32 | F8E4M3FN | F8E5M2));
        if !known {
            return Err(format!("no instruction takes a {what} operand of '{element}'"));
        }
    }
    let fp8 = matches!(a_element.float_kind(), Some(FloatKind::F8E4M3FN | FloatKind::F8E5M2));
    let imprecise = dot.max_num_imprecise_acc();
    if fp8 && result.element().float_kind() == Some(FloatKind::F32) && imprecise < 32 {
        return Err(format!(
            "products of fp8 are summed with less than f32's precision over at least 32 elements, but \
             maxNumImpreciseAcc = {imprecise}"
        ));
    }
    Ok(())
}

/// Waiting for dots.
pub fn warp_group_dot_wait(op: Op<'_>) -> VerifyResult {
    if op.num_operands() == 0 { Err("must wait for at least one value".into()) } else { Ok(()) }
}

//===----------------------------------------------------------------------===//
// Tensor memory
//===----------------------------------------------------------------------===//

/// Sizes of one CTA's part of a matrix.
fn per_cta(cga: &CgaLayout, shape: [i64; 2]) -> [i64; 2] {
    let split = |dim: usize| {
        let largest = cga.iter().filter_map(|basis| basis.get(dim)).max().copied().unwrap_or(0);
        i64::try_from(if largest == 0 { 1 } else { 2 * largest }).unwrap_or(i64::MAX)
    };
    [(shape[0] / split(0)).max(1), (shape[1] / split(1)).max(1)]
}

/// Whether other blocks lie in the rows that a block of 64 leaves free.
fn is_interleaved(ty: MemDescType<'_>) -> bool {
    let (Some(e), [.., m, n]) = (matrix(ty.encoding()), &ty.shape()[..]) else { return false };
    let [rows, columns] = per_cta(&e.cga, [*m, *n]);
    e.block_m == 64 && (rows > 64 || u64::try_from(columns).is_ok_and(|columns| columns > e.block_n))
}

fn mma_operands<'c>(op: Op<'c>) -> [Value<'c>; 3] {
    match TcGen5MmaOp::cast(op) {
        Some(mma) => [mma.a(), mma.b(), mma.d()],
        None => {
            let mma = TcGen5MmaScaledOp::of(op);
            [mma.a(), mma.b(), mma.d()]
        }
    }
}

fn interleaving(op: Op<'_>) -> VerifyResult {
    let [a, _, d] = mma_operands(op);
    if is_interleaved(memdesc(a)?) && is_interleaved(memdesc(d)?) {
        return Err("left operand and accumulator cannot both have interleaved blocks of 64 rows".into());
    }
    Ok(())
}

/// Families of instructions by operand format (PTX ISA, "tcgen05.mma kinds").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Tf32,
    F16,
    F8f6f4,
    I8,
}

/// The family that takes a format, and what it accumulates in.
fn family(ty: Type<'_>) -> Option<(Kind, &'static [FloatKind])> {
    use FloatKind::*;
    if ty.is_int(8) {
        return Some((Kind::I8, &[]));
    }
    Some(match ty.float_kind() {
        Some(F32) => (Kind::Tf32, &[F32]),
        Some(F16) => (Kind::F16, &[F16, F32]),
        Some(BF16) => (Kind::F16, &[F32]),
        _ if ty.is_float() && matches!(bits(ty), 4 | 6 | 8) => (Kind::F8f6f4, &[F16, F32]),
        _ => return None,
    })
}

fn formats(a: Type<'_>, b: Type<'_>, d: Type<'_>) -> VerifyResult {
    let of =
        |what: &str, ty| family(ty).ok_or_else(|| format!("no instruction takes a {what} operand of '{ty}'"));
    let ((left, sums), (right, more)) = (of("left", a)?, of("right", b)?);
    if left != right {
        return Err(format!("no instruction takes both '{a}' (kind {left:?}) and '{b}' (kind {right:?})"));
    }
    let fits = if left == Kind::I8 {
        d.is_int(32)
    } else {
        d.float_kind().is_some_and(|kind| sums.contains(&kind) && more.contains(&kind))
    };
    if fits { Ok(()) } else { Err(format!("dots of '{a}' and '{b}' are not accumulated in '{d}'")) }
}

/// What completion is reported to.
fn completion(op: Op<'_>, is_async: bool, barriers: &[Value<'_>], preds: usize) -> VerifyResult {
    if !is_async && !barriers.is_empty() {
        return Err("only an asynchronous dot (is_async) reports completion to barriers".into());
    }
    if barriers.len() != preds {
        return Err(format!("{} barriers need as many predicates, got {preds}", barriers.len()));
    }
    let wanted = one_per_cta(num_ctas(op));
    barriers.iter().try_for_each(|barrier| cga_must_be("the completion barrier", memdesc(*barrier)?, &wanted))
}

fn accumulator<'c>(d: MemDescType<'c>) -> Result<TensorMemory, String> {
    let e = matrix(d.encoding()).ok_or_else(|| {
        format!("the accumulator must have a #ttng.tensor_memory_encoding, got {}", d.encoding())
    })?;
    if e.fp4_padded {
        return Err("the accumulator cannot be padded fp4".into());
    }
    Ok(e)
}

/// Bases of the division among CTAs in elements.
fn in_elements(cga: &CgaLayout, shape: [i64; 2], basis: &[u64]) -> [u64; 2] {
    let part = per_cta(cga, shape);
    let at = |dim: usize| basis.get(dim).copied().unwrap_or(0) * u64::try_from(part[dim]).unwrap_or(0);
    [at(0), at(1)]
}

/// Every CTA has the rows of the left operand and the columns of the right one that its part of the result needs.
fn division(a: MemDescType<'_>, b: MemDescType<'_>, d: MemDescType<'_>, two_ctas: bool) -> VerifyResult {
    let ([.., m, k], [.., n], [.., rows, columns]) = (&a.shape()[..], &b.shape()[..], &d.shape()[..]) else {
        return Ok(());
    };
    let [of_a, of_b, of_d] =
        [cga_layout(a.encoding())?, cga_layout(b.encoding())?, cga_layout(d.encoding())?];
    let splits =
        |cga: &CgaLayout, dim: usize| cga.iter().any(|basis| basis.get(dim).is_some_and(|value| *value != 0));
    if splits(&of_a, 1) {
        return Err(format!("CTAs must have all columns (K) of the left operand, got CGALayout = {of_a:?}"));
    }
    if splits(&of_b, 0) {
        return Err(format!("CTAs must have all rows (K) of the right operand, got CGALayout = {of_b:?}"));
    }
    if two_ctas && of_b.first().is_none_or(|basis| *basis != [0, 1]) {
        return Err(format!(
            "a pair of CTAs shares the right operand by columns: its CGALayout must begin with [0, 1], got {of_b:?}"
        ));
    }
    for (i, basis) in of_d.iter().enumerate() {
        let given = in_elements(&of_d, [*rows, *columns], basis);
        let [row, _] = of_a.get(i).map_or([0, 0], |basis| in_elements(&of_a, [*m, *k], basis));
        let [_, column] = of_b.get(i).map_or([0, 0], |basis| in_elements(&of_b, [*k, *n], basis));
        // A pair works on the columns of both.
        let wanted = if two_ctas && i == 0 { [row, 0] } else { [row, column] };
        if given != wanted {
            return Err(format!(
                "the result must be divided among CTAs as the operands: basis {i} is {given:?}, not {wanted:?}"
            ));
        }
    }
    Ok(())
}

fn deep_enough(what: &str, k: i64, least: i64) -> VerifyResult {
    if k < least { Err(format!("{what} needs K of at least {least}, got {k}")) } else { Ok(()) }
}

/// A dot with the accumulator in tensor memory.
pub fn tc_gen5_mma(op: Op<'_>) -> VerifyResult {
    tcgen05(op)?;
    let mma = TcGen5MmaOp::of(op);
    let barriers: Vec<Value<'_>> = mma.barriers().collect();
    completion(op, mma.is_async().is_some(), &barriers, mma.barrier_preds().count())?;
    let [a, b, d] = [memdesc(mma.a())?, memdesc(mma.b())?, memdesc(mma.d())?];
    formats(a.element(), b.element(), d.element())?;
    let left = encoding(a.encoding())?;
    if !matches!(left, Encoding::NvmmaShared(_) | Encoding::SharedLinear(_) | Encoding::TensorMemory(_)) {
        return Err(format!(
            "the left operand must have an #ttg.nvmma_shared, #ttg.shared_linear or \
             #ttng.tensor_memory_encoding layout, got {}",
            a.encoding()
        ));
    }
    if !matches!(encoding(b.encoding())?, Encoding::NvmmaShared(_) | Encoding::SharedLinear(_)) {
        return Err(format!(
            "the right operand must have an #ttg.nvmma_shared or #ttg.shared_linear layout, got {}",
            b.encoding()
        ));
    }
    let result = accumulator(d)?;
    if let Encoding::TensorMemory(e) = &left {
        if e.col_stride != 1 {
            return Err(format!("the left operand must have colStride = 1, got {}", e.col_stride));
        }
        if e.fp4_padded {
            return Err("only a scaled dot takes a left operand of padded fp4".into());
        }
    }
    let stride = u64::from(32 / bits(d.element()).clamp(1, 32));
    if result.col_stride != stride {
        return Err(format!(
            "an accumulator of '{}' must have colStride = {stride}, got {}",
            d.element(),
            result.col_stride
        ));
    }
    let shape = d.shape();
    let [rows, columns] = [shape.first().copied().unwrap_or(1), shape.get(1).copied().unwrap_or(1)];
    let columns = u64::try_from(per_cta(&result.cga, [rows, columns])[1]).unwrap_or(0);
    if result.block_n.min(columns) > 256 {
        return Err(format!("an instruction computes at most 256 columns, got blocks of {}", result.block_n));
    }
    let k = a.shape().get(1).copied().unwrap_or(0);
    deep_enough(&format!("a dot of '{}'", a.element()), k, i64::from(256 / bits(a.element()).max(1)))?;
    let two_ctas = mma.two_ctas().is_some();
    division(a, b, d, two_ctas)?;
    let in_tensor_memory = match left {
        Encoding::TensorMemory(e) => Some(("left operand", e.two_ctas)),
        _ => None,
    };
    for (what, mine) in [Some(("accumulator", result.two_ctas)), in_tensor_memory].into_iter().flatten() {
        if mine != two_ctas {
            return Err(format!("the {what} must have twoCTAs = {two_ctas}, as the dot has"));
        }
    }
    Ok(())
}

/// The format of an operand whose bytes do not say it.
fn scaled_format(element: Type<'_>, format: ScaleDotElemType) -> Result<Type<'_>, String> {
    let ctx = element.context();
    if element.is_float() {
        return Ok(element);
    }
    Ok(Type::float(
        ctx,
        match format {
            ScaleDotElemType::E4M3 => FloatKind::F8E4M3FN,
            ScaleDotElemType::E5M2 => FloatKind::F8E5M2,
            ScaleDotElemType::E2M1 => FloatKind::F4E2M1FN,
            ScaleDotElemType::Bf16 => FloatKind::BF16,
            ScaleDotElemType::Fp16 => FloatKind::F16,
            // Six bits fit where four do.
            ScaleDotElemType::E2M3 | ScaleDotElemType::E3M2 => FloatKind::F4E2M1FN,
        },
    ))
}

fn is_fp8(format: ScaleDotElemType) -> bool {
    matches!(format, ScaleDotElemType::E4M3 | ScaleDotElemType::E5M2)
}

/// A left operand in tensor memory is stored as its format and the right one ask for.
fn scaled_left(mma: TcGen5MmaScaledOp<'_>, element: Type<'_>, e: &TensorMemory) -> VerifyResult {
    if mma.a_type() == ScaleDotElemType::E2M1 {
        if !element.is_int(8) {
            return Err(format!("a left operand of e2m1 must be stored as 'i8', got '{element}'"));
        }
        let wanted = is_fp8(mma.b_type());
        if e.fp4_padded != wanted {
            return Err(format!(
                "a left operand of e2m1 must have fp4Padded = {wanted}: it is padded where the right one is fp8"
            ));
        }
        return Ok(());
    }
    let stored_fp8 = matches!(element.float_kind(), Some(FloatKind::F8E4M3FN | FloatKind::F8E5M2));
    if !stored_fp8 {
        return Err(format!("no scaled dot takes a left operand of '{element}' in tensor memory"));
    }
    if is_fp8(mma.a_type()) {
        Ok(())
    } else {
        Err("a left operand of fp8 must have the format e4m3 or e5m2".into())
    }
}

/// Repeated blocks of scales lie in the order that the instruction reads them.
fn scale_order(what: &str, ty: MemDescType<'_>) -> VerifyResult {
    if ty.is_in_shared_memory() {
        return Ok(());
    }
    let cga = cga_layout(ty.encoding())?;
    let [.., rows, k] = ty.shape()[..] else { return Ok(()) };
    let part = per_cta(&cga, [rows, k]);
    match scales(ty.encoding()) {
        // Only rows beyond one block and columns beyond one can be taken in either order.
        None if part[0] <= 128 || part[1] <= 4 => Ok(()),
        None => Err(format!(
            "{what} scales must have a #ttng.tensor_memory_scales_encoding, got {}",
            ty.encoding()
        )),
        Some(e) if e.k_then_mn => {
            let wanted = BlockRepOrder::MnThenK.keyword();
            Err(format!(
                "{what} scales must have blockRepOrder = {wanted}, got {}",
                BlockRepOrder::KThenMn.keyword()
            ))
        }
        Some(_) => Ok(()),
    }
}

/// A dot of block-scaled operands.
pub fn tc_gen5_mma_scaled(op: Op<'_>) -> VerifyResult {
    tcgen05(op)?;
    let mma = TcGen5MmaScaledOp::of(op);
    let barriers: Vec<Value<'_>> = mma.barriers().collect();
    completion(op, mma.is_async().is_some(), &barriers, mma.barrier_preds().count())?;
    let [a, b, d] = [memdesc(mma.a())?, memdesc(mma.b())?, memdesc(mma.d())?];
    formats(
        scaled_format(a.element(), mma.a_type())?,
        scaled_format(b.element(), mma.b_type())?,
        d.element(),
    )?;
    let result = accumulator(d)?;
    if result.block_m != 128 {
        return Err(format!("scaled dots have blocks of 128 rows, got blockM = {}", result.block_m));
    }
    if let Some(e) = matrix(a.encoding()) {
        scaled_left(mma, a.element(), &e)?;
    }
    let both_fp4 = [mma.a_type(), mma.b_type()] == [ScaleDotElemType::E2M1; 2];
    let transposed = is_transposed(mma.a()) || !k_contiguous(mma.b());
    let fp8_scales = memdesc(mma.a_scale())?.element().is_float();
    if both_fp4 && fp8_scales && transposed {
        return Err("a dot of e2m1 with scales of fp8 takes operands that are contiguous along K only".into());
    }
    let [[_, k], ..] = matrices(op)?;
    deep_enough("this scaled dot", k, if both_fp4 && !transposed { 64 } else { 32 })?;
    scale_order("left", memdesc(mma.a_scale())?)?;
    scale_order("right", memdesc(mma.b_scale())?)
}

/// What a barrier tracks.
pub fn tc_gen5_commit(op: Op<'_>) -> VerifyResult {
    tcgen05(op)?;
    let commit = TcGen5CommitOp::of(op);
    let n = commit.descs().count();
    if n > 4 {
        return Err(format!("expected at most 4 descriptors, got {n}"));
    }
    cga_must_be("the completion barrier", memdesc(commit.barrier())?, &one_per_cta(num_ctas(op)))
}

/// Dimensions of tensor memory.
pub(super) const TENSOR_MEMORY_DIMS: [Dim; 2] = [Dim::ROW, Dim::COL];
