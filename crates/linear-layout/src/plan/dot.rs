//! Matrix products: which registers go into which matrix instruction.
//!
//! An instruction says for every bit of the register and lane numbers of its three fragments along which
//! axis it moves, M, N or K, and which bit of that axis it is. A product `C += A B` of given layouts can be
//! done by an instruction when each axis bit can be given one vector of the tensors such that all
//! fragments agree: then the layouts are divisible by the instruction's tile up to an order of the rows,
//! columns and summands, which does not change the result. In particular
//!
//! * K need not be in order: wide loads that give a lane more than 32 consecutive bits along K (`kWidth`)
//!   work, as long as both operands have the same order;
//! * a tensor smaller than the tile has zero columns or lacks registers. Along M and N results come out
//!   several times and the copies are dropped; along K the missing summands are zeros, and where *lanes*
//!   hold copies along K all but one of them must be set to zero.
//!
//! Every small and every low-precision case is therefore the general case (paper, Section 6.1, Table 4).

use std::fmt;

use crate::f2::{Echelon, Vectors};
use crate::plan::space::Distributed;
use crate::plan::{PlanError, PlanResult};
use crate::target::{TargetDesc, Vendor};
use crate::{Dim, LinearLayout};

/// The type of an element of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DotType {
    /// Any 8-bit float.
    F8,
    /// 16-bit float.
    F16,
    /// 16-bit float with the exponent of 32 bits.
    Bf16,
    /// 32-bit float, rounded to TF32 by tensor cores.
    F32,
    /// 64-bit float.
    F64,
    /// 8-bit integer.
    I8,
    /// 16-bit integer.
    I16,
    /// 32-bit integer.
    I32,
    /// 64-bit integer.
    I64,
}

impl DotType {
    /// Bits of an element.
    pub fn bits(self) -> u32 {
        match self {
            DotType::F8 | DotType::I8 => 8,
            DotType::F16 | DotType::Bf16 | DotType::I16 => 16,
            DotType::F32 | DotType::I32 => 32,
            DotType::F64 | DotType::I64 => 64,
        }
    }

    fn is_float(self) -> bool {
        matches!(self, DotType::F8 | DotType::F16 | DotType::Bf16 | DotType::F32 | DotType::F64)
    }

    /// The type in which a product of these operands is computed: the wider float; the float when the other
    /// is an integer, but at least 16 bits; the wider integer. 8-bit floats stay only where the target
    /// multiplies them.
    pub fn common(self, other: DotType, target: &TargetDesc) -> DotType {
        let wider = |a: DotType, b: DotType| if a.bits() >= b.bits() { a } else { b };
        let common = match (self.is_float(), other.is_float()) {
            (true, true) | (false, false) => wider(self, other),
            (true, false) => wider(self, DotType::F16),
            (false, true) => wider(other, DotType::F16),
        };
        let has_f8 = !matches!(target.name, "cuda:80" | "cuda:86" | "hip:gfx90a" | "hip:gfx1100");
        if common == DotType::F8 && !has_f8 { DotType::F16 } else { common }
    }
}

/// An axis of a matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DotAxis {
    /// Rows of the left operand and of the result.
    M,
    /// Columns of the right operand and of the result.
    N,
    /// What is summed over.
    K,
}

/// What each bit of a register or lane number of a fragment means; `None` for lanes that hold copies.
type Roles = Vec<Option<(DotAxis, u32)>>;

/// A matrix instruction and the layouts of its fragments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixInstruction {
    /// Mnemonic without types: `mma.m16n8k16`, `v_mfma_16x16x16`.
    pub name: String,
    /// Rows, columns and summands.
    pub shape: [u32; 3],
    /// Left operand: register bits, then lane bits.
    a: (Roles, Roles),
    /// Right operand.
    b: (Roles, Roles),
    /// Result.
    c: (Roles, Roles),
}

impl MatrixInstruction {
    /// The instructions of the target that multiply elements of `kind`, the one to prefer first.
    pub fn candidates(kind: DotType, target: &TargetDesc) -> Vec<MatrixInstruction> {
        match target.vendor {
            Vendor::Nvidia => mma(kind).into_iter().collect(),
            Vendor::Amd if target.lanes == 64 => mfma(kind, target),
            Vendor::Amd => wmma(kind, target.name == "hip:gfx1201").into_iter().collect(),
        }
    }
}

fn bits(axis: DotAxis, range: std::ops::Range<u32>) -> Roles {
    range.map(|i| Some((axis, i))).collect()
}

fn roles(parts: &[Roles]) -> Roles {
    parts.concat()
}

/// `mma.sync` (PTX ISA, "Matrix Fragments for mma.m16n8k16" and its neighbours; paper, Proposition 9.2).
fn mma(kind: DotType) -> Option<MatrixInstruction> {
    use DotAxis::{K, M, N};
    if kind == DotType::F64 {
        return Some(MatrixInstruction {
            name: "mma.m8n8k4".into(),
            shape: [8, 8, 4],
            a: (Roles::new(), roles(&[bits(K, 0..2), bits(M, 0..3)])),
            b: (Roles::new(), roles(&[bits(K, 0..2), bits(N, 0..3)])),
            c: (bits(N, 0..1), roles(&[bits(N, 1..3), bits(M, 0..3)])),
        });
    }
    if !matches!(kind, DotType::F8 | DotType::F16 | DotType::Bf16 | DotType::F32 | DotType::I8) {
        return None;
    }
    let low = (32 / kind.bits()).ilog2();
    let k = 8 << low;
    Some(MatrixInstruction {
        name: format!("mma.m16n8k{k}"),
        shape: [16, 8, k],
        a: (
            roles(&[bits(K, 0..low), bits(M, 3..4), bits(K, low + 2..low + 3)]),
            roles(&[bits(K, low..low + 2), bits(M, 0..3)]),
        ),
        b: (
            roles(&[bits(K, 0..low), bits(K, low + 2..low + 3)]),
            roles(&[bits(K, low..low + 2), bits(N, 0..3)]),
        ),
        c: (roles(&[bits(N, 0..1), bits(M, 3..4)]), roles(&[bits(N, 1..3), bits(M, 0..3)])),
    })
}

/// `v_mfma` (CDNA3 and CDNA4 ISA, "Matrix Arithmetic Instructions"): 16×16 and 32×32.
fn mfma(kind: DotType, target: &TargetDesc) -> Vec<MatrixInstruction> {
    use DotAxis::{K, M, N};
    let gfx950 = target.name == "hip:gfx950";
    // log2 of the summands in one lane.
    let own = match kind {
        DotType::F64 | DotType::F32 => 0,
        DotType::F16 | DotType::Bf16 => 2 + u32::from(gfx950),
        DotType::F8 => 3,
        DotType::I8 if target.name == "hip:gfx90a" => 2,
        DotType::I8 => 3 + u32::from(gfx950),
        DotType::I16 | DotType::I32 | DotType::I64 => return Vec::new(),
    };
    let one = |side: u32| {
        let k_lanes = 6 - side;
        let operand = |axis| roles(&[bits(axis, 0..side), bits(K, own..own + k_lanes)]);
        let (rows, lanes) = match (side, kind) {
            (4, DotType::F64) => (bits(M, 2..4), bits(M, 0..2)),
            (4, _) => (bits(M, 0..2), bits(M, 2..4)),
            (_, _) => (roles(&[bits(M, 0..2), bits(M, 3..5)]), bits(M, 2..3)),
        };
        let (edge, k) = (1 << side, 1 << (own + k_lanes));
        MatrixInstruction {
            name: format!("v_mfma_{edge}x{edge}x{k}"),
            shape: [edge, edge, k],
            a: (bits(K, 0..own), operand(M)),
            b: (bits(K, 0..own), operand(N)),
            c: (rows, roles(&[bits(N, 0..side), lanes])),
        }
    };
    if kind == DotType::F64 { vec![one(4)] } else { vec![one(5), one(4)] }
}

/// `v_wmma_16x16x16` (RDNA3 and RDNA4 ISA, "Wave Matrix Multiply Accumulate").
fn wmma(kind: DotType, rdna4: bool) -> Option<MatrixInstruction> {
    use DotAxis::{K, M, N};
    let supported =
        matches!(kind, DotType::F16 | DotType::Bf16 | DotType::I8) || rdna4 && kind == DotType::F8;
    if !supported {
        return None;
    }
    let (own, half): (u32, Roles) = if rdna4 { (3, bits(K, 3..4)) } else { (4, vec![None]) };
    let operand = |axis| roles(&[bits(axis, 0..4), half.clone()]);
    let (rows, upper) = if rdna4 { (bits(M, 0..3), bits(M, 3..4)) } else { (bits(M, 1..4), bits(M, 0..1)) };
    Some(MatrixInstruction {
        name: "v_wmma_16x16x16".into(),
        shape: [16, 16, 16],
        a: (bits(K, 0..own), operand(M)),
        b: (bits(K, 0..own), operand(N)),
        c: (rows, roles(&[bits(N, 0..4), upper])),
    })
}

/// One execution of a matrix instruction: registers in the order of its fragments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotInstruction {
    /// Of the left operand; `None` is zero.
    pub a: Vec<Option<u32>>,
    /// Of the right operand; `None` is zero.
    pub b: Vec<Option<u32>>,
    /// Of the result, which is also the third operand; `None` is zero and its result dropped.
    pub c: Vec<Option<u32>>,
}

/// How a product is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dot {
    /// By matrix instructions of a warp.
    Matrix {
        /// The instruction.
        instruction: MatrixInstruction,
        /// Its executions, in order.
        executions: Vec<DotInstruction>,
        /// Lanes whose number has one of these bits set take zeros for their left operand.
        zero_lanes: u64,
    },
    /// By one multiplication and addition after the other: `c += a · b` for each of these registers.
    Fma(Vec<[u32; 3]>),
}

/// How the product of two operands in given layouts is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DotTilePlan {
    /// The type that operands are converted to first.
    pub kind: DotType,
    /// How it is computed.
    pub dot: Dot,
    /// For each register of the result, the register that is computed and holds the same element.
    pub copies: Vec<u32>,
}

impl DotTilePlan {
    /// The plan for `a` of M×K, `b` of K×N and `c` of M×N elements, dimensions in that order.
    ///
    /// # Errors
    /// Layouts that are not of two dimensions or whose shapes do not fit together, and layouts that neither
    /// an instruction of the target nor multiplications within threads can work on.
    pub fn new(
        a: &LinearLayout,
        b: &LinearLayout,
        c: &LinearLayout,
        types: (DotType, DotType),
        target: &TargetDesc,
    ) -> PlanResult<DotTilePlan> {
        let operands = Operands::new(a, b, c, target)?;
        let kind = types.0.common(types.1, target);
        let copies = operands.c.all.representatives();
        for instruction in MatrixInstruction::candidates(kind, target) {
            if let Some(dot) = operands.matrix(instruction) {
                return Ok(DotTilePlan { kind, dot, copies });
            }
        }
        let fma = operands.fma().ok_or_else(|| {
            PlanError::Unsupported(format!("no instruction of {target} multiplies {kind:?} in these layouts"))
        })?;
        Ok(DotTilePlan { kind, dot: Dot::Fma(fma), copies })
    }

    /// Matrix instructions, or multiplications, of one warp.
    pub fn count(&self) -> usize {
        match &self.dot {
            Dot::Matrix { executions, .. } => executions.len(),
            Dot::Fma(triples) => triples.len(),
        }
    }
}

impl fmt::Display for DotTilePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.dot {
            Dot::Matrix { instruction, executions, zero_lanes } => {
                writeln!(f, "{} × {} in {:?}", executions.len(), instruction.name, self.kind)?;
                if *zero_lanes != 0 {
                    writeln!(f, "  left operand zero where lane & {zero_lanes:#x} != 0")?;
                }
                Ok(())
            }
            Dot::Fma(triples) => {
                writeln!(f, "{} multiplications and additions in {:?}", triples.len(), self.kind)
            }
        }
    }
}

/// A layout with each column told apart by axis.
struct Operand {
    all: Distributed,
    axes: [DotAxis; 2],
    split: u32,
}

impl Operand {
    /// The vector of a column along an axis, if it moves along no other. Zero moves along any.
    fn along(&self, column: u64, axis: DotAxis) -> Option<u64> {
        let (first, second) = (column & crate::f2::low_mask(self.split), column >> self.split);
        match (axis == self.axes[0], first, second) {
            (true, v, 0) | (false, 0, v) => Some(v),
            _ => None,
        }
    }

    /// The distinct register bits: their number, axis and vector.
    fn registers(&self) -> Option<Vec<(u32, DotAxis, u64)>> {
        let mut span = Echelon::new();
        let fresh = self.all.reg.iter().enumerate().filter(|&(_, &c)| span.insert(c));
        fresh
            .map(|(i, &c)| {
                let axis = if self.along(c, self.axes[0]).is_some() { self.axes[0] } else { self.axes[1] };
                Some((i as u32, axis, self.along(c, axis)?))
            })
            .collect()
    }
}

struct Operands {
    a: Operand,
    b: Operand,
    c: Operand,
}

/// The vectors given to the bits of an axis: `None` while undecided, zero where the tensor ends.
type Vectorised = std::collections::BTreeMap<(u8, u32), u64>;

fn key(role: (DotAxis, u32)) -> (u8, u32) {
    (role.0 as u8, role.1)
}

impl Operands {
    fn new(
        a: &LinearLayout,
        b: &LinearLayout,
        c: &LinearLayout,
        target: &TargetDesc,
    ) -> PlanResult<Operands> {
        let dims = [Dim::out(0), Dim::out(1)];
        let size = |l: &LinearLayout, i: usize| l.out_size(dims[i]);
        let fit = size(a, 0) == size(c, 0) && size(b, 1) == size(c, 1) && size(a, 1) == size(b, 0);
        if !fit || [a, b, c].iter().any(|l| l.num_out_dims() != 2) {
            let shape =
                |l: &LinearLayout| format!("{:?}×{:?}", size(l, 0).unwrap_or(0), size(l, 1).unwrap_or(0));
            let shapes = format!("{} times {} is not {}", shape(a), shape(b), shape(c));
            return Err(PlanError::Unsupported(shapes));
        }
        let operand = |l: &LinearLayout, axes| -> PlanResult<Operand> {
            Ok(Operand { all: Distributed::new(l, &dims, target)?, axes, split: l.out_bits(dims[0]) })
        };
        use DotAxis::{K, M, N};
        Ok(Operands { a: operand(a, [M, K])?, b: operand(b, [K, N])?, c: operand(c, [M, N])? })
    }

    /// Whether every warp and block holds all that its part of the result needs.
    fn warps_fit(&self) -> bool {
        let groups = [
            (&self.a.all.warp, &self.b.all.warp, &self.c.all.warp),
            (&self.a.all.block, &self.b.all.block, &self.c.all.block),
        ];
        groups.iter().all(|(a, b, c)| {
            (0..a.len().max(b.len()).max(c.len())).all(|i| {
                let at = |v: &Vectors| v.get(i).copied().unwrap_or(0);
                let part =
                    |o: &Operand, column: u64| (column & crate::f2::low_mask(o.split), column >> o.split);
                let ((m, k), (l, n)) = (part(&self.a, at(a)), part(&self.b, at(b)));
                (m, n) == part(&self.c, at(c)) && k == 0 && l == 0
            })
        })
    }

    fn matrix(&self, instruction: MatrixInstruction) -> Option<Dot> {
        if !self.warps_fit() {
            return None;
        }
        let sides = [(&self.a, &instruction.a), (&self.b, &instruction.b), (&self.c, &instruction.c)];
        let mut vectors = Vectorised::new();
        for (operand, (_, lanes)) in sides {
            if lanes.len() != operand.all.lane.len() {
                return None;
            }
            for (&role, &column) in lanes.iter().zip(&operand.all.lane) {
                match role {
                    None if column == 0 => {}
                    None => return None,
                    Some(role) => {
                        let v = operand.along(column, role.0)?;
                        if *vectors.entry(key(role)).or_insert(v) != v {
                            return None;
                        }
                    }
                }
            }
        }
        let mut registers = [self.a.registers()?, self.b.registers()?, self.c.registers()?];
        self.choose_registers(&instruction, &registers, &mut vectors);
        // Lanes of both operands that hold copies along K.
        let copies = |lanes: &Roles, i: usize| match lanes[i] {
            Some(role @ (DotAxis::K, _)) => vectors.get(&key(role)) == Some(&0),
            _ => false,
        };
        let (la, lb) = (&instruction.a.1, &instruction.b.1);
        let zero_lanes =
            (0..la.len()).filter(|&i| copies(la, i) && copies(lb, i)).fold(0, |mask, i| mask | 1u64 << i);
        let mut fragments = Vec::new();
        for ((_, (roles, _)), held) in sides.iter().zip(&mut registers) {
            fragments.push(take(roles, held, &vectors)?);
        }
        let executions = repetitions(&registers, &fragments)?;
        Some(Dot::Matrix { instruction, executions, zero_lanes })
    }

    /// Gives a vector to every axis bit that is a register in both of its fragments: one that both have.
    fn choose_registers(
        &self,
        instruction: &MatrixInstruction,
        registers: &[Vec<(u32, DotAxis, u64)>; 3],
        vectors: &mut Vectorised,
    ) {
        let [a, b, c] = registers;
        let pairs = [
            (DotAxis::K, &instruction.a.0, a, b),
            (DotAxis::M, &instruction.a.0, a, c),
            (DotAxis::N, &instruction.b.0, b, c),
        ];
        for (axis, roles, one, other) in pairs {
            for role in roles.iter().flatten().filter(|r| r.0 == axis) {
                if vectors.contains_key(&key(*role)) {
                    continue;
                }
                let used = |v: u64| vectors.iter().any(|(k, &x)| k.0 == axis as u8 && x == v);
                let both = |&&(_, x, v): &&(u32, DotAxis, u64)| {
                    x == axis && !used(v) && other.iter().any(|o| o.1 == axis && o.2 == v)
                };
                let v = one.iter().find(both).map_or(0, |r| r.2);
                vectors.insert(key(*role), v);
            }
        }
    }

    /// Multiplications within threads, when every thread holds the rows and columns that it needs.
    fn fma(&self) -> Option<Vec<[u32; 3]>> {
        let lanes = |o: &Operand| o.all.lane.clone();
        let (a, b, c) = (lanes(&self.a), lanes(&self.b), lanes(&self.c));
        let low = |o: &Operand, column: u64| column & crate::f2::low_mask(o.split);
        let fits = (0..c.len()).all(|i| {
            let (m, n) = (low(&self.c, c[i]), c[i] >> self.c.split);
            a[i] == m && b[i] == n << self.b.split
        });
        if !fits || !self.warps_fit() {
            return None;
        }
        let (ra, rb) = (Echelon::of(&self.a.all.reg), Echelon::of(&self.b.all.reg));
        let k_bits = self.a.all.out_bits - self.a.split;
        let mut triples = Vec::new();
        for r in crate::plan::scan::distinct_registers(&self.c.all) {
            let element = crate::f2::mul(&self.c.all.reg, r.into());
            let (m, n) = (low(&self.c, element), element >> self.c.split);
            for k in 0..1u64 << k_bits {
                let x = ra.express(m | k << self.a.split)?;
                let y = rb.express(k | n << self.b.split)?;
                triples.push([r, x as u32, y as u32]);
            }
        }
        Some(triples)
    }
}

/// The register bits of a fragment, `None` where the tensor ends; they are taken out of `held`.
fn take(
    roles: &Roles,
    held: &mut Vec<(u32, DotAxis, u64)>,
    vectors: &Vectorised,
) -> Option<Vec<Option<u32>>> {
    roles
        .iter()
        .map(|role| match *role {
            None => Some(None),
            Some(role) => match vectors.get(&key(role)).copied().unwrap_or(0) {
                0 => Some(None),
                v => {
                    let i = held.iter().position(|r| r.1 == role.0 && r.2 == v)?;
                    Some(Some(held.remove(i).0))
                }
            },
        })
        .collect()
}

/// All executions: the registers that no fragment took count them, the same in both fragments of an axis.
fn repetitions(
    left: &[Vec<(u32, DotAxis, u64)>; 3],
    fragments: &[Vec<Option<u32>>],
) -> Option<Vec<DotInstruction>> {
    use DotAxis::{K, M, N};
    let [a, b, c] = left;
    let matched =
        |axis, one: &[(u32, DotAxis, u64)], other: &[(u32, DotAxis, u64)]| -> Option<Vec<(u32, u32)>> {
            let mine: Vec<_> = one.iter().filter(|r| r.1 == axis).collect();
            let theirs: Vec<_> = other.iter().filter(|r| r.1 == axis).collect();
            let find = |r: &&(u32, DotAxis, u64)| theirs.iter().find(|o| o.2 == r.2).map(|o| (r.0, o.0));
            if mine.len() == theirs.len() { mine.iter().map(find).collect() } else { None }
        };
    let (m, n, k) = (matched(M, a, c)?, matched(N, b, c)?, matched(K, a, b)?);
    let pick = |bits: &[(u32, u32)], x: u32, first: bool| {
        let bit = |&(p, q): &(u32, u32)| if first { p } else { q };
        bits.iter().enumerate().fold(0u32, |r, (i, pair)| r | (x >> i & 1) << bit(pair))
    };
    let fragment = |bits: &[Option<u32>], base: u32| -> Vec<Option<u32>> {
        let at = |x: u32| {
            bits.iter().enumerate().try_fold(base, |r, (i, bit)| match (x >> i & 1, bit) {
                (0, _) => Some(r),
                (_, Some(b)) => Some(r | 1 << b),
                (_, None) => None,
            })
        };
        (0..1u32 << bits.len()).map(at).collect()
    };
    let mut all = Vec::new();
    for mi in 0..1u32 << m.len() {
        for ni in 0..1u32 << n.len() {
            for ki in 0..1u32 << k.len() {
                all.push(DotInstruction {
                    a: fragment(&fragments[0], pick(&m, mi, true) | pick(&k, ki, true)),
                    b: fragment(&fragments[1], pick(&n, ni, true) | pick(&k, ki, false)),
                    c: fragment(&fragments[2], pick(&m, mi, false) | pick(&n, ni, false)),
                });
            }
        }
    }
    Some(all)
}
