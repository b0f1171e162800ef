//! The table of matrix instructions: what each multiplies, where, how fast, and what each bit of the register
//! and lane numbers of its fragments means.
//!
//! Everything that chooses or emits a matrix instruction follows from a row of this table: the layouts that
//! the passes give to a dot, and the [plans](crate::plan::DotTilePlan) that say which registers go into
//! which execution. [`check_matrix_instruction`](crate::checker::check_matrix_instruction) multiplies small
//! matrices through the fragments of a row.

use crate::plan::DotType;
use crate::target::{MatrixUnit, TargetDesc};

/// An axis of a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DotAxis {
    /// Dots that are independent of each other.
    Batch,
    /// Rows of the left operand and of the result.
    M,
    /// Columns of the right operand and of the result.
    N,
    /// What is summed over.
    K,
}

impl DotAxis {
    /// The axis in the transposed dot.
    fn transposed(self) -> DotAxis {
        match self {
            DotAxis::M => DotAxis::N,
            DotAxis::N => DotAxis::M,
            axis => axis,
        }
    }
}

/// What a bit of a register, lane or warp number of a fragment means: it moves along an axis by so many (log2)
/// elements. `None`: the fragment has copies there.
pub type Role = Option<(DotAxis, u32)>;

/// Consecutive bits of a register, lane or warp number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bits {
    /// They move along the axis by the elements of bits `from..to` of its coordinate.
    Along(DotAxis, u32, u32),
    /// So many bits that the element does not depend on.
    Copies(u32),
}

impl Bits {
    fn roles(self) -> impl Iterator<Item = Role> {
        let (axis, range) = match self {
            Bits::Along(axis, from, to) => (Some(axis), from..to),
            Bits::Copies(count) => (None, 0..count),
        };
        range.map(move |i| axis.map(|axis| (axis, i)))
    }
}

/// Which element of an operand or result a register of a lane holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// Bits of the number of a register, in elements.
    pub registers: &'static [Bits],
    /// Bits of the number of a lane.
    pub lanes: &'static [Bits],
    /// Bits of the number of a warp of a group; none where a warp computes alone.
    pub warps: &'static [Bits],
}

impl Fragment {
    /// What each bit of a register's number means.
    pub fn register_roles(&self) -> Vec<Role> {
        self.registers.iter().flat_map(|bits| bits.roles()).collect()
    }

    /// What each bit of a lane's number means.
    pub fn lane_roles(&self) -> Vec<Role> {
        self.lanes.iter().flat_map(|bits| bits.roles()).collect()
    }

    /// What each bit of a warp's number means.
    pub fn warp_roles(&self) -> Vec<Role> {
        self.warps.iter().flat_map(|bits| bits.roles()).collect()
    }

    /// log2 of the consecutive elements along K in the lowest registers.
    pub fn k_run(&self) -> u32 {
        match self.registers.first() {
            Some(&Bits::Along(DotAxis::K, 0, to)) => to,
            _ => 0,
        }
    }
}

/// Families of matrix instructions, each with an encoding of layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixFamily {
    /// `mma.sync` of a warp (PTX ISA, "Matrix multiply-accumulate operation using mma instruction").
    Mma,
    /// `wgmma.mma_async` of four warps (PTX ISA, "Asynchronous warpgroup level matrix instructions").
    Wgmma,
    /// `v_mfma` (CDNA ISA, "Matrix Arithmetic Instructions").
    Mfma,
    /// `v_wmma` (RDNA ISA, "Wave Matrix Multiply Accumulate").
    Wmma,
}

/// Where an instruction takes an operand from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandSource {
    /// Registers only.
    Registers,
    /// Shared memory only.
    Shared,
    /// Either.
    Either,
}

/// How many multiplications and additions a multiprocessor (compute unit) does in a cycle; `None` where
/// nobody has told or measured.
pub type Rate = Option<u32>;

/// A row of the table: a matrix instruction for certain types of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixInstruction {
    /// Mnemonic without types: `mma.m16n8k16`, `v_mfma_16x16x16`.
    pub name: &'static str,
    /// Its family.
    pub family: MatrixFamily,
    /// Rows, columns and summands, of the group of warps that computes it. Pairs count as one summand.
    pub shape: [u32; 3],
    /// The fewest columns: every power of two from there to those of `shape` is an instruction, with the
    /// fragments of `shape` as far as its columns go.
    pub fewest_columns: u32,
    /// Elements of both operands.
    pub operand: DotType,
    /// Elements of the result.
    pub sum: DotType,
    /// Whether operands lose bits on the way, as 32-bit floats that are rounded to TF32.
    pub rounds: bool,
    /// Elements along K for each scale of a row of the left operand or a column of the right one, where the instruction
    /// multiplies operands with scales, powers of two in 8 bits. Of `v_mfma` the scale of the first of them along K is in the lanes of the
    /// first row or column, those that follow in the lanes behind; of `v_wmma` as [`scales_in_register`](Self::scales_in_register) says.
    pub scaled: Option<u32>,
    /// Left operand.
    pub a: Fragment,
    /// Right operand.
    pub b: Fragment,
    /// Result, and what is added to.
    pub c: Fragment,
    /// Where the left and the right operand come from.
    pub sources: [OperandSource; 2],
    /// The units that have it, and how fast it is there.
    pub units: &'static [(MatrixUnit, Rate)],
    /// Registers of 32 bits that each thread of the kernel is to have at most, or more: an assembler refuses it with fewer.
    pub least_registers: u32,
}

impl MatrixInstruction {
    /// The instructions of a target, the one to prefer first.
    pub fn of(target: &TargetDesc) -> impl Iterator<Item = &'static MatrixInstruction> {
        let (unit, registers) = (target.matrix_unit, target.thread_registers);
        let has = move |row: &&MatrixInstruction| {
            row.least_registers <= registers && row.units.iter().any(|own| own.0 == unit)
        };
        TABLE.iter().copied().flatten().filter(has)
    }

    /// All rows of the table.
    pub fn all() -> impl Iterator<Item = &'static MatrixInstruction> {
        TABLE.iter().copied().flatten()
    }

    /// The instructions of a single warp that multiply elements of type `operand` and sum in type `sum`, the one
    /// to prefer first: of those that `depth` summands fill, and then the shortest.
    pub fn of_warp(
        operand: DotType,
        sum: DotType,
        exact: bool,
        depth: u64,
        target: &TargetDesc,
    ) -> Vec<&'static MatrixInstruction> {
        let fits = |row: &&MatrixInstruction| row.c.warps.is_empty() && row.multiplies(operand, sum, exact);
        let mut rows: Vec<_> = Self::of(target).filter(fits).collect();
        rows.sort_by_key(|row| Some(row.shape[2]).filter(|&k| u64::from(k) > depth));
        rows
    }

    /// Blocks along K whose scales an execution takes from the bytes of one register, for as many lanes as there are rows (columns): those of
    /// the lower half of the wave or of the upper one. One where each lane has the scale of a block.
    pub fn scales_in_register(&self) -> u32 {
        match (self.family, self.scaled) {
            (MatrixFamily::Wmma, Some(block)) => self.shape[2] / block,
            _ => 1,
        }
    }

    /// Whether it multiplies elements of type `operand` and sums in type `sum`, losing nothing where products
    /// must be `exact`.
    pub fn multiplies(&self, operand: DotType, sum: DotType, exact: bool) -> bool {
        self.operand == operand && self.sum == sum && !(exact && self.rounds)
    }

    /// Multiplications and additions of one execution.
    pub fn multiply_adds(&self) -> u64 {
        self.shape.iter().map(|&size| u64::from(size)).product()
    }

    /// Cycles that one execution keeps the multiprocessor's matrix units busy, all of them together; `None`
    /// where the target does not have it or nobody has told its rate.
    pub fn cycles(&self, target: &TargetDesc) -> Option<f64> {
        let (_, rate) = self.units.iter().find(|(unit, _)| *unit == target.matrix_unit)?;
        Some(self.multiply_adds() as f64 / f64::from((*rate)?))
    }

    /// Whether an instruction computes the transposed dot, too: operands exchanged, rows for columns.
    pub fn is_symmetric(&self) -> bool {
        self.shape[0] == self.shape[1] && self.sources == [OperandSource::Registers; 2]
    }

    /// Register and lane bits of the fragments of left operand, right operand and result; `swapped` those of the
    /// transposed dot, of which the right operand is the instruction's first.
    pub(super) fn roles(&self, swapped: bool) -> [Roles; 3] {
        let roles = |fragment: &Fragment| Roles {
            registers: fragment.register_roles(),
            lanes: fragment.lane_roles(),
        };
        let [a, b, c] = [&self.a, &self.b, &self.c].map(roles);
        if swapped { [b.transposed(), a.transposed(), c.transposed()] } else { [a, b, c] }
    }
}

/// What each bit of the register and lane numbers of a fragment means.
pub(super) struct Roles {
    pub registers: Vec<Role>,
    pub lanes: Vec<Role>,
}

impl Roles {
    fn transposed(self) -> Roles {
        let of = |roles: Vec<Role>| roles.into_iter().map(|r| r.map(|(axis, i)| (axis.transposed(), i)));
        Roles { registers: of(self.registers).collect(), lanes: of(self.lanes).collect() }
    }
}

/// The rows by family. Where several instructions fit, the earlier one is preferred.
const TABLE: [&[MatrixInstruction]; 4] = [WGMMA, MMA, MFMA, WMMA];

use Bits::Along;
use DotAxis::{K, M, N};
use DotType::{Bf16, F4Pair, F8, F16, F32, F64, I8, I32};
use MatrixUnit::{Ada, Ampere, AmpereSmall, Blackwell, Cdna2, Cdna3, Cdna4, Cdna5, Hopper, Rdna3, Rdna4};

/// Fragments `[a, b, c]` of `mma.sync` with `2^E` elements in a register of 32 bits (PTX ISA, "Matrix Fragments
/// for mma.m16n8k16" and its neighbours; paper, Proposition 9.2).
const fn mma_fragments<const E: u32>() -> [Fragment; 3] {
    let warps = &[];
    [
        Fragment {
            registers: const { &[Along(K, 0, E), Along(M, 3, 4), Along(K, E + 2, E + 3)] },
            lanes: const { &[Along(K, E, E + 2), Along(M, 0, 3)] },
            warps,
        },
        Fragment {
            registers: const { &[Along(K, 0, E), Along(K, E + 2, E + 3)] },
            lanes: const { &[Along(K, E, E + 2), Along(N, 0, 3)] },
            warps,
        },
        Fragment {
            registers: &[Along(N, 0, 1), Along(M, 3, 4)],
            lanes: &[Along(N, 1, 3), Along(M, 0, 3)],
            warps,
        },
    ]
}

const fn mma<const E: u32>(
    name: &'static str,
    operand: DotType,
    sum: DotType,
    units: &'static [(MatrixUnit, Rate)],
) -> MatrixInstruction {
    let [a, b, c] = mma_fragments::<E>();
    MatrixInstruction {
        name,
        family: MatrixFamily::Mma,
        shape: [16, 8, 8 << E],
        fewest_columns: 8,
        operand,
        sum,
        rounds: matches!(operand, F32),
        scaled: None,
        a,
        b,
        c,
        sources: [OperandSource::Registers; 2],
        units,
        least_registers: 0,
    }
}

/// The dot of 64-bit floats, with one row of 8 lanes instead of two.
const MMA_F64: MatrixInstruction = MatrixInstruction {
    shape: [8, 8, 4],
    rounds: false,
    a: Fragment { registers: &[], lanes: &[Along(K, 0, 2), Along(M, 0, 3)], warps: &[] },
    b: Fragment { registers: &[], lanes: &[Along(K, 0, 2), Along(N, 0, 3)], warps: &[] },
    c: Fragment { registers: &[Along(N, 0, 1)], lanes: &[Along(N, 1, 3), Along(M, 0, 3)], warps: &[] },
    ..mma::<0>("mma.m8n8k4", F64, F64, {
        &[(Ampere, Some(64)), (AmpereSmall, None), (Ada, None), (Hopper, Some(64)), (Blackwell, None)]
    })
};

/// ptxas 12.8 to 13.4 refuses the dots of 64-bit floats with 16 rows in kernels of which a thread is to have fewer registers.
pub const REGISTERS_OF_LONG_F64: u32 = 64;

/// … with two rows of 8 lanes and `2^D` summands, four in lanes and the others in registers (PTX ISA, "Matrix Fragments for
/// mma.m16n8k4, mma.m16n8k8 and mma.m16n8k16 with .f64", sm_90 and later). An H100 multiplies twice as much in a cycle by them as by
/// `m8n8k4` (docs/objective.md).
const fn mma_f64<const D: u32>(name: &'static str) -> MatrixInstruction {
    let warps = &[];
    MatrixInstruction {
        shape: [16, 8, 1 << D],
        a: Fragment { registers: const { &[Along(M, 3, 4), Along(K, 2, D)] }, lanes: MMA_F64.a.lanes, warps },
        b: Fragment { registers: const { &[Along(K, 2, D)] }, lanes: MMA_F64.b.lanes, warps },
        c: Fragment { registers: &[Along(N, 0, 1), Along(M, 3, 4)], lanes: MMA_F64.c.lanes, warps },
        name,
        units: &[(Hopper, Some(128)), (Blackwell, None)],
        least_registers: REGISTERS_OF_LONG_F64,
        ..MMA_F64
    }
}

/// Where and how fast `mma.sync` multiplies 16-bit floats.
const HALF: &[(MatrixUnit, Rate)] = &[
    (Ampere, Some(1024)),
    (AmpereSmall, Some(512)),
    (Ada, Some(512)),
    (Hopper, Some(1353)),
    (Blackwell, None),
];

const MMA: &[MatrixInstruction] = &[
    mma::<1>("mma.m16n8k16", F16, F32, HALF),
    mma::<1>("mma.m16n8k16", F16, F16, HALF),
    mma::<1>("mma.m16n8k16", Bf16, F32, HALF),
    mma::<0>("mma.m16n8k8", F32, F32, {
        &[
            (Ampere, Some(512)),
            (AmpereSmall, Some(256)),
            (Ada, Some(256)),
            (Hopper, Some(676)),
            (Blackwell, None),
        ]
    }),
    mma::<2>("mma.m16n8k32", I8, I32, {
        &[
            (Ampere, Some(2048)),
            (AmpereSmall, Some(1024)),
            (Ada, Some(1024)),
            (Hopper, Some(2805)),
            (Blackwell, None),
        ]
    }),
    mma::<2>("mma.m16n8k32", F8, F32, &[(Ada, Some(1024)), (Hopper, None), (Blackwell, None)]),
    mma_f64::<4>("mma.m16n8k16"),
    mma_f64::<3>("mma.m16n8k8"),
    mma_f64::<2>("mma.m16n8k4"),
    MMA_F64,
];

/// A dot of a warp group, 16 rows in each warp: fragments of `mma.sync` side by side (PTX ISA, "Register
/// Fragments for wgmma.mma_async"). The right operand is never in registers.
const fn wgmma<const E: u32>(
    name: &'static str,
    operand: DotType,
    sum: DotType,
    units: &'static [(MatrixUnit, Rate)],
) -> MatrixInstruction {
    let [a, _, c] = mma_fragments::<E>();
    let warps = &[Along(M, 4, 6)];
    MatrixInstruction {
        name,
        family: MatrixFamily::Wgmma,
        shape: [64, 256, 8 << E],
        fewest_columns: 8,
        operand,
        sum,
        rounds: matches!(operand, F32),
        scaled: None,
        a: Fragment { warps, ..a },
        b: Fragment { registers: &[], lanes: &[], warps: &[] },
        c: Fragment { registers: &[Along(N, 0, 1), Along(M, 3, 4), Along(N, 3, 8)], warps, ..c },
        sources: [OperandSource::Either, OperandSource::Shared],
        units,
        least_registers: 0,
    }
}

const WGMMA: &[MatrixInstruction] = &[
    wgmma::<1>("wgmma.m64n256k16", F16, F32, &[(Hopper, Some(2048))]),
    wgmma::<1>("wgmma.m64n256k16", F16, F16, &[(Hopper, Some(2048))]),
    wgmma::<1>("wgmma.m64n256k16", Bf16, F32, &[(Hopper, Some(2048))]),
    wgmma::<0>("wgmma.m64n256k8", F32, F32, &[(Hopper, Some(1024))]),
    wgmma::<2>("wgmma.m64n256k32", I8, I32, &[(Hopper, Some(4096))]),
    wgmma::<2>("wgmma.m64n256k32", F8, F32, &[(Hopper, Some(4096))]),
    wgmma::<2>("wgmma.m64n256k32", F8, F16, &[(Hopper, Some(4096))]),
];

/// Operands of `v_mfma` with `2^S` rows, each in so many lanes; the other lanes and `2^E` elements in each are along
/// K.
const fn mfma_operand<const S: u32, const E: u32>(left: bool) -> Fragment {
    let lanes: &[Bits] = if left {
        const { &[Along(M, 0, S), Along(K, E, E + 6 - S)] }
    } else {
        const { &[Along(N, 0, S), Along(K, E, E + 6 - S)] }
    };
    Fragment { registers: const { &[Along(K, 0, E)] }, lanes, warps: &[] }
}

const fn mfma<const S: u32, const E: u32>(
    name: &'static str,
    operand: DotType,
    sum: DotType,
    units: &'static [(MatrixUnit, Rate)],
) -> MatrixInstruction {
    // Four rows in a lane, then the lanes, and then, of 32 rows, again.
    let (registers, lanes): (&[Bits], &[Bits]) = match (S, operand) {
        (4, F64) => (&[Along(M, 2, 4)], &[Along(N, 0, 4), Along(M, 0, 2)]),
        (4, _) => (&[Along(M, 0, 2)], &[Along(N, 0, 4), Along(M, 2, 4)]),
        _ => (&[Along(M, 0, 2), Along(M, 3, 5)], &[Along(N, 0, 5), Along(M, 2, 3)]),
    };
    MatrixInstruction {
        name,
        family: MatrixFamily::Mfma,
        shape: [1 << S, 1 << S, 1 << (E + 6 - S)],
        fewest_columns: 1 << S,
        operand,
        sum,
        rounds: false,
        scaled: None,
        a: mfma_operand::<S, E>(true),
        b: mfma_operand::<S, E>(false),
        c: Fragment { registers, lanes, warps: &[] },
        sources: [OperandSource::Registers; 2],
        units,
        least_registers: 0,
    }
}

/// Operands of `v_mfma_*_f8f6f4` with elements of 8 bits: 32 in a lane, in two runs of 16 along K (CDNA4 ISA).
const fn narrow_operand<const S: u32>(left: bool) -> Fragment {
    let lanes: &[Bits] = if left {
        const { &[Along(M, 0, S), Along(K, 4, 10 - S)] }
    } else {
        const { &[Along(N, 0, S), Along(K, 4, 10 - S)] }
    };
    Fragment { registers: const { &[Along(K, 0, 4), Along(K, 10 - S, 11 - S)] }, lanes, warps: &[] }
}

const fn narrow<const S: u32>(name: &'static str) -> MatrixInstruction {
    MatrixInstruction {
        scaled: Some(32),
        a: narrow_operand::<S>(true),
        b: narrow_operand::<S>(false),
        ..mfma::<S, 5>(name, F8, F32, &[(Cdna4, Some(4096))])
    }
}

/// … with pairs of 4-bit floats: 16 pairs in a lane, one block of those that have a scale.
const fn narrow_pairs<const S: u32>(name: &'static str) -> MatrixInstruction {
    MatrixInstruction { scaled: Some(16), ..mfma::<S, 4>(name, F4Pair, F32, &[(Cdna4, Some(4096))]) }
}

/// The dot of 32-bit floats that are rounded to TF32, which CDNA4 has no more.
const fn xf32(instruction: MatrixInstruction) -> MatrixInstruction {
    MatrixInstruction { rounds: true, ..instruction }
}

const SHORT_HALF: &[(MatrixUnit, Rate)] = &[(Cdna2, Some(512)), (Cdna3, Some(1024)), (Cdna4, Some(1024))];
const LONG_HALF: &[(MatrixUnit, Rate)] = &[(Cdna4, Some(2048))];
const SINGLE: &[(MatrixUnit, Rate)] = &[(Cdna2, Some(128)), (Cdna3, Some(128)), (Cdna4, Some(128))];
const BYTES: &[(MatrixUnit, Rate)] = &[(Cdna3, Some(2048)), (Cdna4, Some(2048))];

const MFMA: &[MatrixInstruction] = &[
    mfma::<5, 3>("v_mfma_32x32x16", F16, F32, LONG_HALF),
    mfma::<4, 3>("v_mfma_16x16x32", F16, F32, LONG_HALF),
    mfma::<5, 2>("v_mfma_32x32x8", F16, F32, SHORT_HALF),
    mfma::<4, 2>("v_mfma_16x16x16", F16, F32, SHORT_HALF),
    mfma::<5, 3>("v_mfma_32x32x16", Bf16, F32, LONG_HALF),
    mfma::<4, 3>("v_mfma_16x16x32", Bf16, F32, LONG_HALF),
    mfma::<5, 2>("v_mfma_32x32x8", Bf16, F32, SHORT_HALF),
    mfma::<4, 2>("v_mfma_16x16x16", Bf16, F32, SHORT_HALF),
    xf32(mfma::<5, 1>("v_mfma_32x32x4", F32, F32, &[(Cdna3, Some(512))])),
    xf32(mfma::<4, 1>("v_mfma_16x16x8", F32, F32, &[(Cdna3, Some(512))])),
    mfma::<5, 0>("v_mfma_32x32x2", F32, F32, SINGLE),
    mfma::<4, 0>("v_mfma_16x16x4", F32, F32, SINGLE),
    mfma::<4, 0>("v_mfma_16x16x4", F64, F64, &[(Cdna2, Some(128)), (Cdna3, Some(128)), (Cdna4, Some(64))]),
    narrow::<5>("v_mfma_32x32x64"),
    narrow::<4>("v_mfma_16x16x128"),
    narrow_pairs::<5>("v_mfma_32x32x64"),
    narrow_pairs::<4>("v_mfma_16x16x128"),
    mfma::<5, 3>("v_mfma_32x32x16", F8, F32, BYTES),
    mfma::<4, 3>("v_mfma_16x16x32", F8, F32, BYTES),
    mfma::<5, 4>("v_mfma_32x32x32", I8, I32, &[(Cdna4, Some(4096))]),
    mfma::<4, 4>("v_mfma_16x16x64", I8, I32, &[(Cdna4, Some(4096))]),
    mfma::<5, 3>("v_mfma_32x32x16", I8, I32, BYTES),
    mfma::<4, 3>("v_mfma_16x16x32", I8, I32, BYTES),
    mfma::<5, 2>("v_mfma_32x32x8", I8, I32, &[(Cdna2, Some(512))]),
    mfma::<4, 2>("v_mfma_16x16x16", I8, I32, &[(Cdna2, Some(512))]),
];

/// `v_wmma` of RDNA3, whose operands are in both halves of the wave, and whose results alternate between them.
const fn wmma_rdna3(operand: DotType, sum: DotType) -> MatrixInstruction {
    MatrixInstruction {
        name: "v_wmma_16x16x16",
        family: MatrixFamily::Wmma,
        shape: [16, 16, 16],
        fewest_columns: 16,
        operand,
        sum,
        rounds: false,
        scaled: None,
        a: Fragment { registers: &[Along(K, 0, 4)], lanes: &[Along(M, 0, 4), Bits::Copies(1)], warps: &[] },
        b: Fragment { registers: &[Along(K, 0, 4)], lanes: &[Along(N, 0, 4), Bits::Copies(1)], warps: &[] },
        c: Fragment { registers: &[Along(M, 1, 4)], lanes: &[Along(N, 0, 4), Along(M, 0, 1)], warps: &[] },
        sources: [OperandSource::Registers; 2],
        units: &[(Rdna3, Some(256))],
        least_registers: 0,
    }
}

/// `v_wmma` of RDNA4, which divides summands and rows between the halves of the wave.
const fn wmma_rdna4(
    operand: DotType,
    sum: DotType,
    units: &'static [(MatrixUnit, Rate)],
) -> MatrixInstruction {
    MatrixInstruction {
        a: Fragment { registers: &[Along(K, 0, 3)], lanes: &[Along(M, 0, 4), Along(K, 3, 4)], warps: &[] },
        b: Fragment { registers: &[Along(K, 0, 3)], lanes: &[Along(N, 0, 4), Along(K, 3, 4)], warps: &[] },
        c: Fragment { registers: &[Along(M, 0, 3)], lanes: &[Along(N, 0, 4), Along(M, 3, 4)], warps: &[] },
        units,
        least_registers: 0,
        ..wmma_rdna3(operand, sum)
    }
}

/// Operands of `v_wmma` of gfx1250 with `2^D` summands: each half of the wave has runs of `2^RUN` along K in turn. There is no manual: LLVM
/// says how many elements a lane has, the layouts of Triton 3.9 which.
const fn wmma_gfx1250_operand<const RUN: u32, const D: u32>(left: bool) -> Fragment {
    let lanes: &[Bits] = if left {
        const { &[Along(M, 0, 4), Along(K, RUN, RUN + 1)] }
    } else {
        const { &[Along(N, 0, 4), Along(K, RUN, RUN + 1)] }
    };
    let registers = const { &[Along(K, 0, RUN), Along(K, RUN + 1, D)] };
    Fragment { registers, lanes, warps: &[] }
}

/// `v_wmma` of gfx1250, whose results are those of RDNA4. Nobody has told how fast it is.
const fn wmma_gfx1250<const RUN: u32, const D: u32>(
    name: &'static str,
    operand: DotType,
    sum: DotType,
) -> MatrixInstruction {
    MatrixInstruction {
        name,
        shape: [16, 16, 1 << D],
        a: wmma_gfx1250_operand::<RUN, D>(true),
        b: wmma_gfx1250_operand::<RUN, D>(false),
        ..wmma_rdna4(operand, sum, &[(Cdna5, None)])
    }
}

/// … with a scale for so many elements, which pairs count as.
const fn scaled_gfx1250(block: u32, instruction: MatrixInstruction) -> MatrixInstruction {
    MatrixInstruction { scaled: Some(block), ..instruction }
}

const WMMA: &[MatrixInstruction] = &[
    wmma_rdna3(F16, F32),
    wmma_rdna3(Bf16, F32),
    wmma_rdna3(I8, I32),
    wmma_rdna4(F16, F32, &[(Rdna4, Some(512))]),
    wmma_rdna4(Bf16, F32, &[(Rdna4, Some(512))]),
    wmma_rdna4(I8, I32, &[(Rdna4, Some(1024))]),
    wmma_rdna4(F8, F32, &[(Rdna4, Some(1024))]),
    wmma_gfx1250::<3, 5>("v_wmma_16x16x32", F16, F32),
    wmma_gfx1250::<3, 5>("v_wmma_16x16x32", Bf16, F32),
    wmma_gfx1250::<1, 2>("v_wmma_16x16x4", F32, F32),
    wmma_gfx1250::<3, 6>("v_wmma_16x16x64", I8, I32),
    scaled_gfx1250(32, wmma_gfx1250::<3, 7>("v_wmma_16x16x128", F8, F32)),
    scaled_gfx1250(16, wmma_gfx1250::<4, 6>("v_wmma_16x16x128", F4Pair, F32)),
    wmma_gfx1250::<3, 6>("v_wmma_16x16x64", F8, F32),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Vendor;

    /// Every element of a tile is in a register of a lane, as often as the fragment has copies.
    #[test]
    fn fragments_hold_their_tiles() {
        for row in MatrixInstruction::all() {
            let [m, n, k] = row.shape.map(u32::ilog2);
            let expected = |axes: [(DotAxis, u32); 2]| -> Vec<(DotAxis, u32)> {
                axes.into_iter().flat_map(|(axis, size)| (0..size).map(move |i| (axis, i))).collect()
            };
            let fragments = [
                (&row.a, expected([(M, m), (K, k)]), row.sources[0]),
                (&row.b, expected([(N, n), (K, k)]), row.sources[1]),
                (&row.c, expected([(M, m), (N, n)]), OperandSource::Registers),
            ];
            for (fragment, expected, source) in fragments {
                let roles =
                    [fragment.register_roles(), fragment.lane_roles(), fragment.warp_roles()].concat();
                if source == OperandSource::Shared {
                    assert!(roles.is_empty(), "{row:?}");
                    continue;
                }
                let mut has: Vec<_> = roles.into_iter().flatten().collect();
                has.sort();
                assert_eq!(has, expected, "{row:?}");
            }
        }
    }

    /// Lanes that hold replicas along K for want of elements are then the same of both operands.
    #[test]
    fn both_operands_have_the_same_lanes_along_k() {
        for row in MatrixInstruction::all().filter(|row| row.c.warps.is_empty()) {
            let along_k = |fragment: &Fragment| -> Vec<Role> {
                fragment.lane_roles().into_iter().map(|role| role.filter(|(axis, _)| *axis == K)).collect()
            };
            assert_eq!(along_k(&row.a), along_k(&row.b), "{row:?}");
        }
    }

    #[test]
    fn square_tiles_of_registers_are_symmetric() {
        let is_symmetric = |family, shape: [u32; 3]| {
            let row = MatrixInstruction::all().find(|row| row.family == family && row.shape == shape);
            row.map(|row| (row.is_symmetric(), row.multiply_adds()))
        };
        assert_eq!(is_symmetric(MatrixFamily::Mma, [16, 8, 16]), Some((false, 16 * 8 * 16)));
        assert_eq!(is_symmetric(MatrixFamily::Mfma, [32, 32, 8]), Some((true, 32 * 32 * 8)));
        assert!(MatrixInstruction::all().all(|row| row.family != MatrixFamily::Wgmma || !row.is_symmetric()));
    }

    #[test]
    fn lanes_are_those_of_the_target() {
        for target in TargetDesc::all() {
            assert_ne!(MatrixInstruction::of(&target).count(), 0, "{target}");
            for row in MatrixInstruction::of(&target) {
                assert_eq!(row.c.lane_roles().len() as u32, target.lane_bits(), "{target} {row:?}");
                let nvidia = matches!(row.family, MatrixFamily::Mma | MatrixFamily::Wgmma);
                assert_eq!(nvidia, target.vendor == Vendor::Nvidia, "{target} {row:?}");
            }
        }
    }

    /// No two rows of a unit are the same instruction, and the preferred ones are not slower.
    #[test]
    fn rows_differ_and_are_in_order() {
        for target in TargetDesc::all() {
            let rows: Vec<_> = MatrixInstruction::of(&target).collect();
            for (i, row) in rows.iter().enumerate() {
                for later in &rows[i + 1..] {
                    let same = (row.operand, row.sum) == (later.operand, later.sum);
                    assert!(!same || row.shape != later.shape, "{target}: {row:?} and {later:?}");
                    let rate =
                        |row: &MatrixInstruction| Some(row.multiply_adds() as f64 / row.cycles(&target)?);
                    if let (true, Some(own), Some(other)) = (same, rate(row), rate(later)) {
                        assert!(own >= other, "{target}: {} is faster than {}", later.name, row.name);
                    }
                }
            }
        }
    }

    #[test]
    fn fp8_is_multiplied_where_its_format_is_known() {
        for target in TargetDesc::all() {
            let has = MatrixInstruction::of(&target).any(|row| row.operand == F8);
            assert_eq!(has, target.fp8_dots.is_some(), "{target}");
            let has = MatrixInstruction::of(&target).any(|row| row.family == MatrixFamily::Wgmma);
            assert_eq!(has, target.primitives.wgmma, "{target}");
        }
    }

    /// Peak rates of data sheets: 312 TFLOP/s of 108 multiprocessors at 1.41 GHz, 1307 of 304 at 2.1 GHz.
    #[test]
    fn rates_are_those_of_data_sheets() {
        let peak = |target: &str, operand, multiprocessors: f64, hertz: f64| {
            let target = TargetDesc::parse(target).unwrap();
            let rows = MatrixInstruction::of(&target).filter(|row| row.operand == operand);
            let best = rows
                .filter_map(|row| Some(row.multiply_adds() as f64 / row.cycles(&target)?))
                .fold(0.0, f64::max);
            (2.0 * best * multiprocessors * hertz / 1e12).round()
        };
        assert_eq!(peak("cuda:80", F16, 108.0, 1.41e9), 312.0);
        assert_eq!(peak("cuda:80", I8, 108.0, 1.41e9), 624.0);
        assert_eq!(peak("cuda:90", F64, 132.0, 1.98e9), 67.0);
        assert_eq!(peak("hip:gfx90a", F16, 220.0, 1.7e9), 383.0);
        assert_eq!(peak("hip:gfx942", F16, 304.0, 2.1e9), 1307.0);
        assert_eq!(peak("hip:gfx942", F8, 304.0, 2.1e9), 2615.0);
        assert_eq!(peak("hip:gfx942", F64, 304.0, 2.1e9), 163.0);
    }
}
