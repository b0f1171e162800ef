//! The register bytecode that the interpreter runs.
//!
//! A kernel is decoded once (see [`crate::decode`]) into a flat list of [`Op`]s over dense registers. Every
//! register is a scalar; vectors and structures of the LLVM IR are split into their scalars, so inserting,
//! extracting, shuffling and same-width bitcasts become mere renaming and cost nothing at run time. A register
//! holds one 64-bit word a lane; a value narrower than that is zero-extended, floats are held as their bits.
//! Constants and kernel arguments are registers too, outside the warp's own file.

mod matrix;
mod memory;
mod scalar;
mod warp;

use crate::ir::Order;
use std::sync::Arc;

use crate::gpu::Gpu;
use crate::ir::Loc;
use crate::num::Round;
use crate::tma::ElemType;

pub use matrix::*;
pub use memory::*;
pub use scalar::*;
pub use warp::*;

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
        /// What `Cas` expects: as many words as `v`. Two words are exchanged as one.
        cmp: Box<[Src]>,
        at: Access,
    },
    CpAsync {
        dst: Access,
        src: Src,
        src_bytes: Option<Src>,
    },
    /// Makes a group of the copies so far: of the lanes that execute it, or of the `whole` warp, which counts for all its
    /// lanes what some of them began.
    CpCommit {
        whole: bool,
    },
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
    FenceAsync {
        /// Whether it is for device memory, too.
        device: bool,
    },
    /// A fence: what it orders, and whether of device memory, too, or of shared memory only.
    Fence {
        order: Order,
        device: bool,
    },
    /// `wgmma.fence`: orders accesses to registers with the matrix operations that follow.
    WgmmaFence,
    LdMatrix {
        d: Box<[Reg]>,
        addr: Access,
        form: MatrixForm,
        /// Bits of an element in memory where they are unpacked to bytes: 4 or 6.
        packed: Option<u8>,
    },
    StMatrix {
        v: Box<[Src]>,
        addr: Access,
        form: MatrixForm,
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
    /// A tensor operation of AMD's tensor data mover: to shared memory, or from there, by a descriptor of so many words.
    TensorMove {
        loads: bool,
        words: Box<[Src]>,
    },
    /// Waits until at most so many of the warp's tensor operations are under way.
    TensorWait {
        keep: u32,
    },
    /// `printf`: address of the format string, address of the arguments.
    Print {
        format: Src,
        args: Src,
    },
    /// A part of a message to the host (AMD's device library, `__ockl_printf_*`), which is printed after the last one.
    Message {
        d: Reg,
        part: MessagePart,
        /// Whether it is the last one; absent at the begin.
        last: Option<Src>,
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

/// A part of a message to the host.
#[derive(Clone, Debug)]
pub enum MessagePart {
    /// A new one.
    Begin,
    /// The address of the format, a string that ends with zero.
    Text(Src),
    /// How many of these arguments, of 64 bits each, there are.
    Args {
        /// How many count.
        count: Src,
        /// All that were handed over.
        args: Box<[Src]>,
    },
}

/// No reconvergence point: the lanes meet only at the end.
pub const NO_JOIN: u32 = u32::MAX;

/// A decoded kernel.
#[derive(Clone, Debug)]
pub struct Program {
    /// Symbol of the kernel.
    pub name: String,
    /// The GPU it is for.
    pub gpu: Gpu,
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
    /// Threads of a program along x, y, z if the module demands it.
    pub block: Option<[u32; 3]>,
    /// The least and the most threads of a program.
    pub threads: Option<(u32, u32)>,
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
    /// Whether something may acquire what atomic operations or fences release.
    pub acquires: bool,
    /// Whether fewer lanes than a warp's may synchronize, so that each lane's reads must be told apart.
    pub exact: bool,
    /// Whether there are asynchronous matrix operations, whose registers are watched.
    pub wgmma: bool,
    /// Contents of constant global variables, at [`crate::mem::CONST_BASE`].
    pub rodata: Vec<u8>,
}

impl Program {
    /// Lanes of a warp.
    pub fn lanes(&self) -> u32 {
        self.gpu.lanes
    }
}
