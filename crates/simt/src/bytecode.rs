//! The register bytecode that the interpreter runs.
//!
//! A kernel is decoded once (see [`crate::decode`]) into a flat list of [`Op`]s over dense registers. Every
//! register is a scalar; vectors and structures of the LLVM IR are split into their scalars, so inserting,
//! extracting, shuffling and same-width bitcasts become mere renaming and cost nothing at run time. A register
//! holds one 64-bit word a lane; a value narrower than that is zero-extended, floats are held as their bits.
//! Constants and kernel arguments are registers too, outside the warp's own file.

use std::sync::Arc;

use crate::ir::{Arch, Loc};
use crate::num::{Format, Round};
use crate::tma::ElemType;

/// A register of the warp.
pub type Reg = u32;

/// A source operand: a register of the warp or, with the top bit set, an entry of the constant table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Src(pub u32);

impl Src {
    const CONST: u32 = 1 << 31;

    /// A warp register.
    pub fn reg(r: Reg) -> Src {
        Src(r)
    }

    /// An entry of the constant table.
    pub fn constant(i: u32) -> Src {
        Src(i | Src::CONST)
    }

    /// The constant index, or the register.
    pub fn split(self) -> Result<Reg, u32> {
        if self.0 & Src::CONST != 0 { Err(self.0 & !Src::CONST) } else { Ok(self.0) }
    }
}

/// A scalar floating-point format of arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fmt {
    /// IEEE half.
    F16,
    /// bfloat16.
    BF16,
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
}

impl Fmt {
    /// Width in bits.
    pub fn bits(self) -> u32 {
        match self {
            Fmt::F16 | Fmt::BF16 => 16,
            Fmt::F32 => 32,
            Fmt::F64 => 64,
        }
    }
}

/// Two-operand integer operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IntOp {
    Add,
    Sub,
    Mul,
    MulHiU,
    MulHiS,
    UDiv,
    SDiv,
    URem,
    SRem,
    Shl,
    LShr,
    AShr,
    And,
    Or,
    Xor,
    SMin,
    SMax,
    UMin,
    UMax,
    USubSat,
    UAddSat,
    SAddSat,
    SSubSat,
    /// Signed overflow of an addition (0 or 1).
    SAddOvf,
    SSubOvf,
    SMulOvf,
    UAddOvf,
    USubOvf,
    UMulOvf,
}

/// One-operand integer operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IntUn {
    Not,
    Neg,
    Abs,
    Popc,
    /// Position of the highest set bit, all ones if there is none (`bfind`); of a negative number, the highest clear one.
    FindU,
    FindS,
    Clz,
    Ctz,
    BitReverse,
    ByteSwap,
}

/// Three-operand integer operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IntTern {
    /// `a * b + c`, low half.
    MadLo,
    MadHiU,
    MadHiS,
    /// Funnel shift left of (a:b) by c modulo the width.
    Fshl,
    Fshr,
    /// `prmt.b32`, default mode: bytes of (b:a) chosen by c.
    Prmt,
    /// `v_perm_b32`: bytes of (a:b) chosen by c.
    AmdPerm,
    /// A lookup table on three bits.
    Lop3(u8),
    /// Bit field extract (value, position, length).
    BfeU,
    BfeS,
    /// Carry out of `a + b + c`.
    AddCarry,
    /// Borrow of `a - b - c`.
    SubBorrow,
    /// `|a - b| + c`.
    SadU,
    SadS,
    /// Median of three signed integers.
    Med3S,
    Med3U,
    /// Dot product of four signed bytes plus c.
    Dp4aS,
    Dp4aU,
    /// `(a << c) + b` with c below the width.
    ShlAdd,
    /// (a & c) | (b & !c).
    BitSelect,
}

/// Two-operand floating-point operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FloatOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    /// IEEE minNum: the other operand if one is NaN.
    Min,
    Max,
    /// NaN if either is NaN; −0 below +0.
    Minimum,
    Maximum,
    CopySign,
    Pow,
    LdExp,
}

/// One-operand floating-point operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FloatUn {
    Neg,
    Abs,
    Sqrt,
    Rsqrt,
    Rcp,
    Exp2,
    Exp,
    Log2,
    Log,
    Log10,
    Sin,
    Cos,
    Tanh,
    Floor,
    Ceil,
    Trunc,
    /// To nearest integer, ties to even.
    Rint,
    /// To nearest integer, ties away from zero.
    Round,
    Fract,
    /// Sine and cosine of an angle in revolutions (AMD).
    SinRev,
    CosRev,
    /// The value itself, NaNs quieted and subnormals kept.
    Canonical,
    /// Exponent and mantissa of `frexp` (AMD).
    FrexpMant,
}

/// Comparison of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Cmp {
    Eq,
    Ne,
    ULt,
    ULe,
    UGt,
    UGe,
    SLt,
    SLe,
    SGt,
    SGe,
}

/// Comparison of floats: which of (less, equal, greater, unordered) give true, as a bit set 1, 2, 4, 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatCmp(pub u8);

/// A conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Cvt {
    /// Zero-extension or truncation to a width.
    Zext(u8),
    /// Sign-extension from one width to another.
    Sext(u8, u8),
    /// Float to integer of a width: signed, rounding, saturating always. NaN gives zero or, for `top`, the highest bit.
    FloatToInt { from: Fmt, width: u8, signed: bool, round: Round, top: bool },
    /// Integer of a width to float.
    IntToFloat { width: u8, signed: bool, to: Fmt, round: Round },
    /// Float to float.
    Float { from: Fmt, to: Fmt, round: Round, saturate: bool, relu: bool, ftz: bool },
    /// To a code of at most 32 bits in any format.
    ToCode { from: Fmt, to: Format, round: Round, saturate: bool, relu: bool },
    /// From a code.
    FromCode { from: Format, to: Fmt },
    /// To tf32, a float with 13 zero bits.
    ToTf32 { round: Round },
}

/// A predicate of one instruction of inline assembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pred {
    /// Zero means false.
    pub src: Src,
    /// Whether the instruction runs where it is false.
    pub negate: bool,
}

/// Where an address points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Any, by the address itself.
    Generic,
    /// Device memory.
    Global,
    /// The program's shared memory.
    Shared,
    /// The lane's own memory.
    Local,
}

/// A memory access by every lane.
#[derive(Clone, Debug)]
pub struct Access {
    /// Address space.
    pub space: Space,
    /// Address register.
    pub addr: Src,
    /// Constant offset in bytes.
    pub offset: i64,
    /// Bytes of an element.
    pub bytes: u8,
    /// Alignment that the instruction demands; a violation is reported.
    pub align: u32,
    /// Predicate.
    pub pred: Option<Pred>,
    /// Elements of a load, as bits, that nobody asks for: they are loaded for the sake of their neighbours.
    pub gaps: u64,
    /// Volatile, relaxed or atomic: may be polled by a spin loop.
    pub volatile: bool,
    /// For AMD buffer instructions: number of bytes from `addr` on that may be touched, and the register
    /// with each lane's own offset. Loads outside give zero, stores are dropped.
    pub buffer: Option<(Src, Src)>,
}

/// An atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AtomOp {
    Exch,
    Cas,
    Add,
    Sub,
    And,
    Or,
    Xor,
    SMin,
    SMax,
    UMin,
    UMax,
    FAdd(Fmt),
    FMin(Fmt),
    FMax(Fmt),
    /// Two halves in one word.
    FAdd2(Fmt),
    FMin2(Fmt),
    FMax2(Fmt),
    Inc,
    Dec,
}

/// A warp shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Shfl {
    Up,
    Down,
    Bfly,
    Idx,
}

/// A reduction or vote over the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Vote {
    All,
    Any,
    Uni,
    Ballot,
    Add,
    SMin,
    SMax,
    UMin,
    UMax,
    And,
    Or,
    Xor,
}

/// What a barrier makes of the predicates of its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum BarReduce {
    Popc,
    And,
    Or,
}

/// A register that the hardware sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Special {
    /// Thread index along x, y, z.
    Tid(u8),
    NTid(u8),
    Ctaid(u8),
    NCtaid(u8),
    LaneId,
    WarpId,
    LaneMaskLt,
    LaneMaskLe,
    LaneMaskGt,
    LaneMaskGe,
    ActiveMask,
    Clock,
    /// The program's place in its cluster, along x, y, z.
    ClusterCtaid(u8),
    /// Programs of a cluster along x, y, z.
    ClusterNCtaid(u8),
    /// The cluster's place in the grid along x, y, z.
    ClusterId(u8),
    /// Clusters of the grid along x, y, z.
    NClusterId(u8),
    ClusterRank,
    ClusterSize,
    /// Warps of a program.
    NWarpId,
    /// Address of the kernel's implicit arguments (AMD code object version 5).
    ImplicitArgs,
    Zero,
}

/// A warp-level permutation of AMD hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Permute {
    /// `ds_bpermute_b32`: read from the lane given (address / 4).
    Backward,
    /// `ds_permute_b32`: write to the lane given.
    Forward,
    /// `ds_swizzle_b32` with its immediate.
    Swizzle(u16),
    /// `v_permlane16_b32` / `v_permlanex16_b32` with the two selector words.
    PermLane16 { x: bool },
    /// `v_permlane32_swap` / `v_permlane16_swap`: swaps rows between the two operands.
    Swap(u8),
}

/// A data-parallel-primitive move.
#[derive(Clone, Copy, Debug)]
pub struct Dpp {
    /// Result.
    pub d: Reg,
    /// Value of lanes that receive nothing.
    pub old: Src,
    /// Source.
    pub v: Src,
    /// `dpp_ctrl`.
    pub ctrl: u16,
    /// Rows that are written.
    pub row_mask: u8,
    /// Banks that are written.
    pub bank_mask: u8,
    /// Lanes with an invalid source receive zero instead of keeping `old`.
    pub bound_ctrl: bool,
}

/// Element type of a matrix operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Elem {
    F64,
    F32,
    Tf32,
    F16,
    BF16,
    E4M3,
    E5M2,
    E4M3Fnuz,
    E5M2Fnuz,
    S8,
    U8,
    S32,
}

impl Elem {
    /// Width in bits in a register.
    pub fn bits(self) -> u32 {
        match self {
            Elem::F64 => 64,
            Elem::F32 | Elem::Tf32 | Elem::S32 => 32,
            Elem::F16 | Elem::BF16 => 16,
            _ => 8,
        }
    }
}

/// A matrix multiply-accumulate of one warp with all operands in registers.
#[derive(Clone, Debug)]
pub struct Mma {
    /// Which hardware's fragment layout.
    pub layout: MmaLayout,
    /// Rows, columns, depth.
    pub shape: (u32, u32, u32),
    /// Element types of a, b.
    pub ab: (Elem, Elem),
    /// Element type of c and d.
    pub cd: Elem,
    /// Result registers.
    pub d: Box<[Reg]>,
    /// Operands.
    pub a: Box<[Src]>,
    /// Operands.
    pub b: Box<[Src]>,
    /// Operands.
    pub c: Box<[Src]>,
    /// Clamp integer sums.
    pub saturate: bool,
}

/// The family of fragment layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmaLayout {
    /// `mma.sync` (PTX ISA, "Matrix Fragments for mma").
    Ptx,
    /// `v_mfma_*` (CDNA3 ISA, "Matrix Arithmetic Instructions"), with the number of independent blocks.
    Mfma {
        /// Independent matrices multiplied by one instruction.
        blocks: u32,
    },
    /// `v_wmma_*` of RDNA3 (a and b replicated in both halves of the wave).
    WmmaGfx11,
    /// `v_wmma_*` of RDNA4.
    WmmaGfx12,
}

/// `wgmma.mma_async`: the part of one warp.
#[derive(Clone, Debug)]
pub struct Wgmma {
    /// Columns.
    pub n: u32,
    /// Depth.
    pub k: u32,
    /// Element types of a, b.
    pub ab: (Elem, Elem),
    /// Element type of the accumulator.
    pub cd: Elem,
    /// Accumulators, read and written.
    pub d: Box<[Reg]>,
    /// Initial accumulators; empty when the accumulators are `d` themselves.
    pub c: Box<[Src]>,
    /// A descriptor (one register) or A fragments (four registers).
    pub a: Box<[Src]>,
    /// B descriptor.
    pub b: Src,
    /// False clears the accumulators first.
    pub scale_d: Src,
    /// Negate a, b.
    pub neg: (bool, bool),
    /// A, B transposed in shared memory.
    pub trans: (bool, bool),
    /// Clamp integer sums.
    pub saturate: bool,
}

/// A field of a tensor map that `tensormap.replace` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MapField {
    GlobalAddress,
    Rank,
    BoxDim(u8),
    GlobalDim(u8),
    GlobalStride(u8),
    ElementStride(u8),
    ElemType,
    Interleave,
    Swizzle,
    Fill,
}

/// What a tensor copy to global memory does with the old contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TmaReduce {
    Store,
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

/// One operation.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Op {
    Mov {
        d: Reg,
        s: Src,
    },
    /// As `Mov`, but the result counts as initialized (`freeze`).
    Freeze {
        d: Reg,
        s: Src,
    },
    Undef {
        d: Reg,
    },
    Int {
        op: IntOp,
        w: u8,
        d: Reg,
        a: Src,
        b: Src,
    },
    IntUn {
        op: IntUn,
        w: u8,
        d: Reg,
        a: Src,
    },
    IntTern {
        op: IntTern,
        w: u8,
        d: Reg,
        a: Src,
        b: Src,
        c: Src,
    },
    Float {
        op: FloatOp,
        f: Fmt,
        round: Round,
        ftz: bool,
        d: Reg,
        a: Src,
        b: Src,
    },
    FloatUn {
        op: FloatUn,
        f: Fmt,
        round: Round,
        ftz: bool,
        approx: bool,
        d: Reg,
        a: Src,
    },
    Fma {
        f: Fmt,
        round: Round,
        ftz: bool,
        relu: bool,
        d: Reg,
        a: Src,
        b: Src,
        c: Src,
    },
    Med3 {
        d: Reg,
        a: Src,
        b: Src,
        c: Src,
    },
    /// d = c + a.lo * b.lo + a.hi * b.hi (AMD `fdot2`).
    Dot2 {
        f: Fmt,
        d: Reg,
        a: [Src; 2],
        b: [Src; 2],
        c: Src,
    },
    ICmp {
        op: Cmp,
        w: u8,
        d: Reg,
        a: Src,
        b: Src,
    },
    FCmp {
        op: FloatCmp,
        f: Fmt,
        ftz: bool,
        d: Reg,
        a: Src,
        b: Src,
    },
    FClass {
        f: Fmt,
        mask: u16,
        d: Reg,
        a: Src,
    },
    Select {
        d: Reg,
        c: Src,
        a: Src,
        b: Src,
    },
    Cvt {
        cvt: Cvt,
        d: Reg,
        a: Src,
    },
    /// d = base + sext(index) * stride + offset, in `bits` bits.
    Lea {
        d: Reg,
        base: Src,
        index: Src,
        index_bits: u8,
        stride: i64,
        offset: i64,
        bits: u8,
    },
    /// d = (a >> shift) & mask(width).
    Bits {
        d: Reg,
        a: Src,
        shift: u8,
        width: u8,
    },
    /// d = a | b << shift.
    Join {
        d: Reg,
        a: Src,
        b: Src,
        shift: u8,
    },
    /// `d = items[index]` for an index that is not constant.
    Pick {
        d: Reg,
        index: Src,
        items: Box<[Src]>,
    },
    Special {
        d: Reg,
        what: Special,
    },
    /// Population of the mask below this lane, plus a (AMD `mbcnt.lo`, `.hi`).
    Mbcnt {
        d: Reg,
        high: bool,
        mask: Src,
        a: Src,
    },
    Ld {
        d: Box<[Reg]>,
        at: Access,
    },
    St {
        v: Box<[Src]>,
        at: Access,
    },
    Atom {
        op: AtomOp,
        /// Old values, as many as new ones, or none.
        d: Box<[Reg]>,
        v: Box<[Src]>,
        cmp: Option<Src>,
        at: Access,
    },
    CpAsync {
        dst: Access,
        src: Src,
        src_bytes: Option<Src>,
    },
    CpCommit,
    CpWait {
        keep: u32,
    },
    /// Arrival on a barrier object when the lane's copies so far are done.
    CpMbarArrive {
        addr: Src,
        noinc: bool,
        pred: Option<Pred>,
    },
    Shfl {
        kind: Shfl,
        d: Reg,
        p: Option<Reg>,
        v: Src,
        b: Src,
        c: Src,
        mask: Src,
    },
    Vote {
        kind: Vote,
        d: Reg,
        v: Src,
        mask: Src,
    },
    /// `match.sync`: the lanes with the same value, or all lanes if all have the same one.
    Match {
        all: bool,
        d: Reg,
        p: Option<Reg>,
        v: Src,
        mask: Src,
    },
    Elect {
        d: Option<Reg>,
        p: Reg,
        mask: Src,
    },
    Permute {
        kind: Permute,
        d: Reg,
        d2: Option<Reg>,
        v: Src,
        idx: Src,
        c: Src,
    },
    Dpp(Box<Dpp>),
    /// Value of one lane (`None`: the first active one) in all lanes.
    ReadLane {
        d: Reg,
        v: Src,
        lane: Option<Src>,
    },
    WriteLane {
        d: Reg,
        old: Src,
        v: Src,
        lane: Src,
    },
    WarpSync {
        mask: Src,
    },
    Bar {
        id: Src,
        threads: Option<Src>,
        wait: bool,
        /// A value of all its threads combined, and where it goes.
        reduce: Option<(BarReduce, Src, Reg)>,
        pred: Option<Pred>,
    },
    /// `barrier.cluster.arrive`; a relaxed one orders no memory accesses.
    ClusterArrive {
        relaxed: bool,
    },
    ClusterWait,
    /// `mapa`: the address of the same place in the shared memory of another program of the cluster.
    MapShared {
        d: Reg,
        addr: Src,
        rank: Src,
    },
    /// `getctarank`: whose shared memory an address points into.
    RankOf {
        d: Reg,
        addr: Src,
    },
    MbarInit {
        addr: Src,
        count: Src,
        pred: Option<Pred>,
    },
    MbarInval {
        addr: Src,
        pred: Option<Pred>,
    },
    MbarArrive {
        addr: Src,
        count: Src,
        tx: Option<Src>,
        arrive: bool,
        /// Later phases expect that many arrivals less.
        drop: bool,
        d: Option<Reg>,
        pred: Option<Pred>,
    },
    MbarTry {
        d: Reg,
        addr: Src,
        parity: Src,
        wait: bool,
        pred: Option<Pred>,
    },
    FenceAsync,
    LdMatrix {
        d: Box<[Reg]>,
        addr: Access,
        trans: bool,
    },
    StMatrix {
        v: Box<[Src]>,
        addr: Access,
        trans: bool,
    },
    Mma(Box<Mma>),
    Wgmma(Box<Wgmma>),
    WgmmaCommit,
    WgmmaWait {
        keep: u32,
        regs: Box<[Reg]>,
    },
    MapReplace {
        field: MapField,
        addr: Src,
        value: Src,
        pred: Option<Pred>,
    },
    MapCopy {
        dst: Src,
        src: Src,
        pred: Option<Pred>,
    },
    TmaLoad {
        dst: Src,
        map: Src,
        coords: Box<[Src]>,
        mbar: Src,
        /// `tile::gather4`: the coordinates are a column and four rows.
        rows: bool,
        /// Programs of the cluster that receive the data.
        multicast: Option<Src>,
        pred: Option<Pred>,
    },
    TmaStore {
        src: Src,
        map: Src,
        coords: Box<[Src]>,
        /// `tile::scatter4`.
        rows: bool,
        reduce: TmaReduce,
        pred: Option<Pred>,
    },
    BulkLoad {
        dst: Src,
        src: Src,
        bytes: Src,
        mbar: Src,
        multicast: Option<Src>,
        pred: Option<Pred>,
    },
    /// A bulk copy from one program's shared memory to another's.
    BulkMove {
        dst: Src,
        src: Src,
        bytes: Src,
        mbar: Src,
        pred: Option<Pred>,
    },
    /// `st.async`: every lane stores and its barrier object counts the bytes.
    StAsync {
        v: Box<[Src]>,
        at: Access,
        mbar: Src,
    },
    BulkStore {
        dst: Src,
        src: Src,
        bytes: Src,
        reduce: TmaReduce,
        elem: ElemType,
        pred: Option<Pred>,
    },
    BulkCommit {
        pred: Option<Pred>,
    },
    BulkWait {
        keep: u32,
        pred: Option<Pred>,
    },
    /// `printf`: address of the format string, address of the arguments.
    Print {
        format: Src,
        args: Src,
    },
    Assert {
        message: Src,
        file: Src,
        line: Src,
        func: Src,
    },
    Trap,
    /// Something without effect here (fences, hints), kept to be counted.
    Nop(&'static str),
    Jump {
        to: u32,
    },
    Branch {
        c: Src,
        yes: u32,
        no: u32,
        join: u32,
    },
    Exit,
}

/// No reconvergence point: the lanes meet only at the end.
pub const NO_JOIN: u32 = u32::MAX;

/// A decoded kernel.
#[derive(Clone, Debug)]
pub struct Program {
    /// Symbol of the kernel.
    pub name: String,
    /// Architecture.
    pub arch: Arch,
    /// Operations; execution starts at 0.
    pub code: Arc<[Op]>,
    /// Source location of every operation.
    pub locs: Arc<[Loc]>,
    /// Source files.
    pub files: Vec<String>,
    /// Registers of a warp.
    pub regs: u32,
    /// Constants: value and whether it is undefined. Kernel arguments follow, one entry each.
    pub consts: Vec<(u64, bool)>,
    /// Types of the kernel's arguments, and their bytes.
    pub params: Vec<crate::ir::Ty>,
    /// Threads of a program if the module says so.
    pub threads: Option<u32>,
    /// Programs of a cluster along x, y, z if the module says so.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of statically allocated shared memory, from [`Program::shared_base`] on.
    pub static_shared: u32,
    /// Whether the kernel uses dynamic shared memory.
    pub dynamic_shared: bool,
    /// First usable byte of shared memory.
    pub shared_base: u32,
    /// Bytes of stack a lane needs.
    pub local_bytes: u32,
    /// Contents of constant global variables, at [`crate::mem::CONST_BASE`].
    pub rodata: Vec<u8>,
}

impl Program {
    /// Lanes of a warp.
    pub fn lanes(&self) -> u32 {
        match self.arch {
            Arch::Nvidia => 32,
            Arch::Amd { wave } => wave,
        }
    }
}
