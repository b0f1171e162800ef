//! Addresses, loads, stores and read-modify-writes of LLVM IR.

use super::inst::{fmt, width};
use super::{Decoder, What};
use crate::bytecode::*;
use crate::ir::{Inst, Order, Ty, Vendor};

impl Decoder<'_> {
    /// The memory space of an LLVM address space.
    pub(super) fn space(&self, n: u32) -> Space {
        match (n, self.gpu.vendor) {
            // The shared memory of a cluster.
            (7, Vendor::Nvidia) => Space::Shared,
            (1 | 4 | 7, _) => Space::Global,
            (3, _) => Space::Shared,
            (5, _) => Space::Local,
            _ => Space::Generic,
        }
    }

    pub(super) fn rmw(&self, name: &str, ty: &Ty) -> What<AtomOp> {
        Ok(match name {
            "xchg" => AtomOp::Exch,
            "add" => AtomOp::Add,
            "sub" => AtomOp::Sub,
            "and" => AtomOp::And,
            "or" => AtomOp::Or,
            "xor" => AtomOp::Xor,
            "max" => AtomOp::SMax,
            "min" => AtomOp::SMin,
            "umax" => AtomOp::UMax,
            "umin" => AtomOp::UMin,
            "fadd" if matches!(ty, Ty::Vec(_, 2)) => AtomOp::FAdd2(fmt(ty.element())?),
            "fmax" if matches!(ty, Ty::Vec(_, 2)) => AtomOp::FMax2(fmt(ty.element())?),
            "fmin" if matches!(ty, Ty::Vec(_, 2)) => AtomOp::FMin2(fmt(ty.element())?),
            "uinc_wrap" => AtomOp::Inc,
            "udec_wrap" => AtomOp::Dec,
            "fadd" => AtomOp::FAdd(fmt(ty)?),
            "fmax" => AtomOp::FMax(fmt(ty)?),
            "fmin" => AtomOp::FMin(fmt(ty)?),
            other => return Err(format!("the atomic operation '{other}'")),
        })
    }

    pub(super) fn gep(
        &mut self,
        inst: &Inst,
        offset: i64,
        strides: &[i64],
        args: &[Vec<Src>],
    ) -> What<Vec<Src>> {
        let lanes = args.iter().map(Vec::len).max().unwrap_or(1);
        let pick = |v: &[Src], i: usize| if v.len() == 1 { v[0] } else { v[i] };
        let Ty::Ptr(_, bits) = inst.ty.element() else {
            return Err("an address that is not a pointer".into());
        };
        let bits = *bits as u8;
        let mut out = Vec::new();
        for i in 0..lanes {
            let mut base = pick(&args[0], i);
            if strides.is_empty() && offset != 0 {
                let b = self.constant(offset as u64 & if bits == 64 { u64::MAX } else { (1 << bits) - 1 });
                base = self.int_op(IntOp::Add, bits, base, b);
            }
            for (k, stride) in strides.iter().enumerate() {
                let index = pick(&args[k + 1], i);
                let index_bits = width(inst.arg_tys[k + 1].element())?;
                let offset = if k == 0 { offset } else { 0 };
                base = self.value(|d| Op::Lea { d, base, index, index_bits, stride: *stride, offset, bits });
            }
            out.push(base);
        }
        Ok(out)
    }

    pub(crate) fn access(&self, ptr: &Ty, addr: Src, align: u32, order: Order) -> What<Access> {
        let Ty::Ptr(n, _) = ptr else { return Err(format!("an access through {ptr:?}")) };
        Ok(Access {
            space: self.space(*n),
            addr,
            offset: 0,
            bytes: 0,
            align,
            pred: None,
            gaps: 0,
            order,
            buffer: None,
        })
    }

    /// Emits a load of any type.
    pub(crate) fn load(&mut self, ty: &Ty, mut at: Access) -> What<Vec<Src>> {
        let scalars = ty.scalars();
        let bits = scalars.first().map_or(0, Ty::bits);
        if scalars.iter().any(|s| s.bits() != bits) || bits == 0 || bits > 64 {
            return Err(format!("a load of {ty:?}"));
        }
        if !bits.is_multiple_of(8) && scalars.len() > 1 {
            // A vector of bits is packed in memory.
            let total = bits * scalars.len() as u32;
            if total > 64 {
                return Err(format!("a load of {ty:?}"));
            }
            at.bytes = total.div_ceil(8).next_power_of_two() as u8;
            let d = self.fresh();
            self.emit(Op::Ld { d: vec![d].into(), at });
            return Ok(self.unpack(ty, Src::reg(d)));
        }
        at.bytes = bits.div_ceil(8).next_power_of_two() as u8;
        let d: Vec<Reg> = scalars.iter().map(|_| self.fresh()).collect();
        self.emit(Op::Ld { d: d.clone().into(), at });
        let out = d.into_iter().map(Src::reg);
        if !bits.is_multiple_of(8) {
            let w = bits as u8;
            return Ok(out.map(|a| self.value(|d| Op::Cvt { cvt: Cvt::Zext(w), d, a })).collect());
        }
        Ok(out.collect())
    }

    pub(crate) fn store(&mut self, ty: &Ty, v: &[Src], mut at: Access) -> What<()> {
        let scalars = ty.scalars();
        let bits = scalars.first().map_or(0, Ty::bits);
        if scalars.iter().any(|s| s.bits() != bits) || bits == 0 || bits > 64 {
            return Err(format!("a store of {ty:?}"));
        }
        if !bits.is_multiple_of(8) && scalars.len() > 1 {
            let total = bits * scalars.len() as u32;
            if total > 64 {
                return Err(format!("a store of {ty:?}"));
            }
            at.bytes = total.div_ceil(8).next_power_of_two() as u8;
            let packed = self.pack(ty, v);
            self.emit(Op::St { v: vec![packed].into(), at });
            return Ok(());
        }
        at.bytes = bits.div_ceil(8).next_power_of_two() as u8;
        self.emit(Op::St { v: v.into(), at });
        Ok(())
    }
}
