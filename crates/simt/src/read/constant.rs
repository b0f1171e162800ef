//! Constants as scalars, and places within types.

use super::names::{mask, printed, sign_extend};
use super::*;

/// Scalars of `from` bits as those of `to` bits that have the same bits, the lowest first.
fn cut_anew(scalars: Vec<Scalar>, from: u32, to: u32) -> Scalars {
    if from == to {
        return Ok(scalars);
    }
    if from > 64 || to > 64 || !(from.is_multiple_of(to) || to.is_multiple_of(from)) {
        return Err(format!("a constant bitcast between elements of {from} and {to} bits"));
    }
    let smaller = from.min(to);
    let mut pieces = Vec::new();
    for scalar in &scalars {
        for at in (0..from).step_by(smaller as usize) {
            pieces.push(match scalar {
                Scalar::Bits(bits) => Some(mask(bits >> at, smaller)),
                Scalar::Undef => None,
                Scalar::Global(..) => return Err("a constant bitcast of an address's parts".into()),
            });
        }
    }
    let joined = |pieces: &[Option<u64>]| {
        let with = |bits: u64, (n, piece): (usize, &Option<u64>)| {
            Some(bits | piece.as_ref()? << (n as u32 * smaller))
        };
        pieces.iter().enumerate().try_fold(0, with).map_or(Scalar::Undef, Scalar::Bits)
    };
    Ok(pieces.chunks((to / smaller) as usize).map(joined).collect())
}

#[allow(unused_unsafe)]
impl Reader {
    /// Byte offset and byte count of every scalar of a type in memory.
    pub(super) unsafe fn field_offsets(&self, ty: LLVMTypeRef, base: u64, out: &mut Vec<(u64, usize)>) {
        // SAFETY: `ty` belongs to the module's context.
        unsafe {
            match LLVMGetTypeKind(ty) {
                LLVMTypeKind::LLVMArrayTypeKind => {
                    let element = LLVMGetElementType(ty);
                    let step = LLVMABISizeOfType(self.layout, element);
                    for i in 0..LLVMGetArrayLength2(ty) {
                        self.field_offsets(element, base + i * step, out);
                    }
                }
                LLVMTypeKind::LLVMVectorTypeKind => {
                    let element = LLVMGetElementType(ty);
                    let step = LLVMABISizeOfType(self.layout, element);
                    for i in 0..u64::from(LLVMGetVectorSize(ty)) {
                        self.field_offsets(element, base + i * step, out);
                    }
                }
                LLVMTypeKind::LLVMStructTypeKind => {
                    for i in 0..LLVMCountStructElementTypes(ty) {
                        let at = LLVMOffsetOfElement(self.layout, ty, i);
                        self.field_offsets(LLVMStructGetTypeAtIndex(ty, i), base + at, out);
                    }
                }
                _ => out.push((base, LLVMABISizeOfType(self.layout, ty).min(8) as usize)),
            }
        }
    }

    pub(super) unsafe fn constant(&self, v: LLVMValueRef) -> Scalars {
        // SAFETY: `v` is a live constant.
        unsafe {
            let ty = self.ty(LLVMTypeOf(v));
            let scalars = ty.scalars();
            match LLVMGetValueKind(v) {
                LLVMValueKind::LLVMUndefValueValueKind | LLVMValueKind::LLVMPoisonValueKind => {
                    Ok(vec![Scalar::Undef; scalars.len()])
                }
                LLVMValueKind::LLVMConstantAggregateZeroValueKind
                | LLVMValueKind::LLVMConstantPointerNullValueKind => Ok(vec![Scalar::Bits(0); scalars.len()]),
                LLVMValueKind::LLVMConstantIntValueKind => match ty {
                    // A vector splat is printed as an integer constant of vector type.
                    Ty::Vec(..) => {
                        Ok(vec![
                            Scalar::Bits(LLVMConstIntGetZExtValue(LLVMGetAggregateElement(v, 0)));
                            scalars.len()
                        ])
                    }
                    Ty::Int(w) if w > 64 => {
                        // The C API reads 64 bits of a constant; its text has them all.
                        let text = printed(v);
                        let digits = text.rsplit(' ').next().unwrap_or("");
                        let value: i128 = digits.parse().map_err(|_| format!("the constant {text}"))?;
                        if w != 128 {
                            return Err(format!("a constant of {w} bits"));
                        }
                        Ok(vec![Scalar::Bits(value as u64), Scalar::Bits((value >> 64) as u64)])
                    }
                    _ => Ok(vec![Scalar::Bits(LLVMConstIntGetZExtValue(v))]),
                },
                LLVMValueKind::LLVMConstantFPValueKind if !matches!(ty, Ty::Vec(..)) => {
                    let int = LLVMIntTypeInContext(LLVMGetTypeContext(LLVMTypeOf(v)), ty.bits());
                    Ok(vec![Scalar::Bits(LLVMConstIntGetZExtValue(LLVMConstBitCast(v, int)))])
                }
                LLVMValueKind::LLVMConstantDataVectorValueKind
                | LLVMValueKind::LLVMConstantDataArrayValueKind
                | LLVMValueKind::LLVMConstantVectorValueKind
                | LLVMValueKind::LLVMConstantArrayValueKind
                | LLVMValueKind::LLVMConstantStructValueKind
                | LLVMValueKind::LLVMConstantFPValueKind => {
                    let n = match &ty {
                        Ty::Vec(_, n) => *n,
                        Ty::Array(_, n) => *n as u32,
                        Ty::Struct(f) => f.len() as u32,
                        _ => return Err("a constant of unknown shape".into()),
                    };
                    let mut out = Vec::new();
                    for i in 0..n {
                        let element = LLVMGetAggregateElement(v, i);
                        if element.is_null() {
                            return Err("a constant without elements".into());
                        }
                        out.extend(self.constant(element)?);
                    }
                    Ok(out)
                }
                LLVMValueKind::LLVMGlobalVariableValueKind => Ok(vec![Scalar::Global(self.globals[&v], 0)]),
                LLVMValueKind::LLVMConstantExprValueKind => self.constant_expr(v),
                LLVMValueKind::LLVMFunctionValueKind => {
                    Err(format!("the address of function @{}", name_of(v)))
                }
                other => Err(format!("a constant of kind {other:?}")),
            }
        }
    }

    pub(super) unsafe fn constant_expr(&self, v: LLVMValueRef) -> Scalars {
        // SAFETY: `v` is a live constant expression.
        unsafe {
            let first = self.constant(LLVMGetOperand(v, 0))?;
            let bits = self.ty(LLVMTypeOf(v)).bits();
            let add = |s: &Scalar, n: i64| match s {
                Scalar::Bits(b) => Scalar::Bits(mask(b.wrapping_add(n as u64), bits)),
                Scalar::Undef => Scalar::Undef,
                Scalar::Global(g, o) => Scalar::Global(*g, o + n),
            };
            match LLVMGetConstOpcode(v) {
                LLVMOpcode::LLVMGetElementPtr => {
                    let mut offset = 0;
                    let mut dynamic = Vec::new();
                    self.gep(v, &mut offset, &mut dynamic);
                    if dynamic.is_empty() {
                        Ok(vec![add(&first[0], offset)])
                    } else {
                        Err("a constant getelementptr with an unknown index".into())
                    }
                }
                LLVMOpcode::LLVMBitCast => {
                    let from = self.ty(LLVMTypeOf(LLVMGetOperand(v, 0)));
                    // A 128-bit integer is two words already.
                    let words =
                        |ty: &Ty| if *ty.element() == Ty::Int(128) { 64 } else { ty.element().bits() };
                    cut_anew(first, words(&from), words(&self.ty(LLVMTypeOf(v))))
                }
                LLVMOpcode::LLVMAddrSpaceCast | LLVMOpcode::LLVMPtrToInt | LLVMOpcode::LLVMIntToPtr => {
                    Ok(first)
                }
                LLVMOpcode::LLVMTrunc => match &first[0] {
                    Scalar::Bits(b) => Ok(vec![Scalar::Bits(mask(*b, bits))]),
                    other => Ok(vec![other.clone()]),
                },
                op @ (LLVMOpcode::LLVMAdd | LLVMOpcode::LLVMSub) => {
                    let second = self.constant(LLVMGetOperand(v, 1))?;
                    match (&first[0], &second[0]) {
                        (a, Scalar::Bits(b)) => {
                            let n = sign_extend(*b, bits);
                            Ok(vec![add(a, if op == LLVMOpcode::LLVMSub { -n } else { n })])
                        }
                        (Scalar::Bits(a), b @ Scalar::Global(..)) if op == LLVMOpcode::LLVMAdd => {
                            Ok(vec![add(b, sign_extend(*a, bits))])
                        }
                        _ => Err("a constant sum of two addresses".into()),
                    }
                }
                other => Err(format!("a constant expression of {other:?}")),
            }
        }
    }

    /// Splits a getelementptr into a constant offset and (operand, stride) pairs.
    pub(super) unsafe fn gep(
        &self,
        v: LLVMValueRef,
        offset: &mut i64,
        dynamic: &mut Vec<(LLVMValueRef, i64)>,
    ) {
        // SAFETY: `v` is a live getelementptr.
        unsafe {
            let mut ty = LLVMGetGEPSourceElementType(v);
            for i in 1..LLVMGetNumOperands(v) as u32 {
                let index = LLVMGetOperand(v, i);
                let known = !LLVMIsAConstantInt(index).is_null();
                if i > 1 && LLVMGetTypeKind(ty) == LLVMTypeKind::LLVMStructTypeKind {
                    let field = LLVMConstIntGetZExtValue(index) as u32;
                    *offset += LLVMOffsetOfElement(self.layout, ty, field) as i64;
                    ty = LLVMStructGetTypeAtIndex(ty, field);
                    continue;
                }
                if i > 1 {
                    ty = LLVMGetElementType(ty);
                }
                let stride = LLVMABISizeOfType(self.layout, ty) as i64;
                if known {
                    *offset += LLVMConstIntGetSExtValue(index) * stride;
                } else {
                    dynamic.push((index, stride));
                }
            }
        }
    }
}
