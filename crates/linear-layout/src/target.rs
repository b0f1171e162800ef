//! What a plan needs to know about a GPU: how wide its warps, banks and vectors are, which instructions
//! move data, and what they cost.
//!
//! Every number is a plain field with its unit in its name or its comment, so that a plan depends on a
//! [`TargetDesc`] and on nothing else about the machine.

use std::fmt;
use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

/// Who makes the GPU: it decides the families of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vendor {
    /// PTX instructions: `ld.shared`, `ldmatrix`, `shfl.sync`.
    Nvidia,
    /// AMDGCN instructions: `ds_read`, `ds_write`, DPP, `ds_bpermute`.
    Amd,
}

/// Which lane gives which address of a transposing load, and what each receives.
///
/// Lanes give the addresses of rows of `2ⁿ` units. What a lane receives are units of one column: the lowest `n` bits of its
/// number are the place within the rows, and the bits of the row's number, that of the lane that gives its address, are
/// its other bits and those of the number of the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransposedReads {
    /// `ds_read_b64_tr_b16` and `_b8` (CDNA4 ISA): the 8 bytes of each of 16 lanes, in order, are rows of 16 units.
    Rows,
    /// `ds_load_tr16_b128` and `ds_load_tr8_b64` (LLVM 22's gfx1250). Eight lanes read a square of units of 16 bits; sixteen lanes
    /// two of 8 bits, of which each is in fours of lanes. No manual is public: these are the layouts that Triton 3.9 reads so.
    Squares,
}

/// A bit of the number of a lane that gives an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowBit {
    /// This bit of the number of the lane that receives.
    Lane(u8),
    /// This bit of the place in what it receives.
    Register(u8),
}

impl TransposedReads {
    /// Bits of registers of one lane, for units of `unit_bits` bits; `None` where there is no such instruction.
    pub fn bits_per_lane(self, unit_bits: u32) -> Option<u32> {
        match (self, unit_bits) {
            (TransposedReads::Rows, 8 | 16) | (TransposedReads::Squares, 8) => Some(64),
            (TransposedReads::Squares, 16) => Some(128),
            _ => None,
        }
    }

    /// What the bits of the number of the lane that gives an address are, lowest first.
    pub fn rows(self, unit_bits: u32) -> &'static [RowBit] {
        use RowBit::{Lane, Register};
        match (self, unit_bits) {
            (TransposedReads::Rows, 16) => &[Lane(2), Lane(3), Register(0), Register(1), Lane(4), Lane(5)],
            (TransposedReads::Rows, 8) => &[Lane(3), Register(0), Register(1), Register(2), Lane(4), Lane(5)],
            (TransposedReads::Squares, 16) => &[Register(0), Register(1), Register(2), Lane(3), Lane(4)],
            (TransposedReads::Squares, 8) => &[Register(0), Register(1), Lane(3), Register(2), Lane(4)],
            _ => &[],
        }
    }

    /// The mnemonic.
    pub(crate) fn name(self, unit_bits: u32) -> String {
        match self {
            TransposedReads::Rows => format!("ds_read_b64_tr_b{unit_bits}"),
            TransposedReads::Squares => {
                format!("ds_load_tr{unit_bits}_b{}", self.bits_per_lane(unit_bits).unwrap_or(0))
            }
        }
    }
}

/// How a target adds floats of 16 bits to global memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HalfSums {
    /// One alone, in a loop that exchanges it unless others have changed it since it was read.
    #[default]
    Loop,
    /// One alone, or two neighbours at once, in a loop that exchanges their word of 32 bits.
    LoopOfPairs,
    /// Two neighbours at once by an instruction (`global_atomic_pk_add_f16`; CDNA3 ISA, "Global Instructions"); -0, which changes
    /// no number, is added to the neighbour of one that is alone.
    Pairs,
    /// One alone, or two neighbours at once, by an instruction (`red.add.noftz.f16` and `.f16x2`; PTX ISA).
    Any,
}

impl HalfSums {
    /// How many neighbours are added at once at most.
    #[must_use]
    pub fn together(self) -> u64 {
        if self == HalfSums::Loop { 1 } else { 2 }
    }

    /// Instructions that adding one alone takes, or two at once: of a loop those of one turn, as LLVM 22 makes it for gfx942 and gfx1100.
    #[must_use]
    pub fn instructions(self, alone: bool) -> f64 {
        match (self, alone) {
            (HalfSums::Loop | HalfSums::LoopOfPairs, _) => 20.0,
            (HalfSums::Pairs, true) => 7.0,
            _ => 1.0,
        }
    }
}

/// The instructions that move data between lanes or between registers and shared memory, beyond plain
/// loads, stores and indexed shuffles, which every target has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Primitives {
    /// `ldmatrix.m8n8.{x1,x2,x4}[.trans].b16` (PTX ISA, sm_75 on).
    pub ldmatrix: bool,
    /// `stmatrix.m8n8.{x1,x2,x4}[.trans].b16` (PTX ISA, sm_90 on).
    pub stmatrix: bool,
    /// `ldmatrix.m16n16.trans.b8` and `stmatrix.m16n8.trans.b8` (PTX ISA, sm_100a on).
    pub matrix_b8: bool,
    /// `cp.async` of 4, 8 or 16 bytes (PTX ISA, sm_80 on).
    pub cp_async: bool,
    /// Bulk tensor copies, `cp.async.bulk.tensor` (PTX ISA, sm_90 on).
    pub bulk_copy: bool,
    /// … that take the numbers of four rows, `.tile::gather4` and `.tile::scatter4` (PTX ISA, sm_100 on).
    pub bulk_rows: bool,
    /// `wgmma.mma_async` with operands in shared memory (PTX ISA, sm_90a only).
    pub wgmma: bool,
    /// `mma` multiplies 8-bit floats itself (`QMMA` of sm_89). For sm_90 and sm_100 ptxas 13.5 makes 16-bit floats of them, and
    /// adds what these give to the sums apart.
    pub mma_fp8: bool,
    /// Tensor memory and `tcgen05.mma`, which reads it (PTX ISA, sm_100a on).
    pub tensor_memory: bool,
    /// `redux.sync` of 32-bit integers (PTX ISA, sm_80 on).
    pub redux: bool,
    /// CTAs in clusters with distributed shared memory (PTX ISA, sm_90 on).
    pub clusters: bool,
    /// `red.global.add` of vectors of 128 bits of floats (PTX ISA, sm_90 on).
    pub atomic_vectors: bool,
    /// Atomic sums of `f16`.
    pub f16_sums: HalfSums,
    /// Atomic sums of `bf16`.
    pub bf16_sums: HalfSums,
    /// `ds_read_b96`/`ds_read_b128` and the writes (CDNA and RDNA).
    pub ds_b128: bool,
    /// Loads of shared memory that transpose, if any.
    pub transposed_reads: Option<TransposedReads>,
    /// Loads that write the LDS, past the registers: 32 bits a lane, the lanes of a wave one after the other (CDNA3 ISA,
    /// "Memory Buffer Load to LDS").
    pub lds_loads: bool,
    /// … of 128 bits a lane (CDNA4 ISA).
    pub lds_loads_b128: bool,
    /// Copies from global to shared memory past the registers, of 32, 64 or 128 bits a lane, which lanes write where they say, and
    /// which have a counter of their own: `global_load_async_to_lds_b8`, `_b32`, `_b64` and `_b128` (LLVM 22's gfx1250).
    pub async_to_lds: bool,
    /// Tensor operations, which move tiles of tensors between global and shared memory by a descriptor: `tensor_load_to_lds` and
    /// `tensor_store_from_lds` (LLVM 22's gfx1250).
    pub tensor_data_mover: bool,
    /// Buffer instructions: an address for all lanes, and for each an offset that is checked against a length (CDNA and
    /// RDNA ISA).
    pub buffers: bool,
    /// Descriptors of buffers say which check an offset must pass, OOB_SELECT (RDNA ISA).
    pub buffer_checks_selected: bool,
    /// `quad_perm` and rotations within rows of 16 lanes as part of a vector instruction (DPP).
    pub dpp: bool,
    /// `row_xmask`: XOR with any mask below 16 by DPP (RDNA).
    pub dpp_row_xmask: bool,
    /// `v_permlanex16`: a lane of the other half of 32 (RDNA).
    pub permlanex16: bool,
    /// `v_permlane16_swap` and `v_permlane32_swap` (CDNA4).
    pub permlane_swap: bool,
    /// `ds_swizzle_b32`: XOR within 32 lanes through the crossbar of the LDS, no address register.
    pub ds_swizzle: bool,
    /// `v_cvt_scalef32_pk_{f16,bf16}_fp4` (CDNA4).
    pub fp4_conversions: bool,
    /// `v_dot2_f32_f16`: two products of 16-bit floats, added to a float (CDNA and RDNA).
    pub dot2_f16: bool,
    /// `v_dot2_f32_bf16` (CDNA4, RDNA3 on).
    pub dot2_bf16: bool,
    /// `v_dot4_i32_i8`, `v_dot4_i32_iu8`: four products of bytes with sign, added to an integer (CDNA and RDNA).
    pub dot4_i8: bool,
    /// A barrier of a CTA orders all memory (PTX ISA, "bar.sync"), not what fences around it say (LLVM, "User Guide for AMDGPU
    /// Backend", "Memory Model").
    pub barriers_order_all: bool,
}

impl Primitives {
    /// Whether there are copies to shared memory past the registers that write where each lane says.
    pub fn copies_anywhere(&self) -> bool {
        self.cp_async || self.async_to_lds
    }
}

/// A generation of matrix units: the key by which rows of the
/// [table of matrix instructions](crate::plan::MatrixInstruction) say where they exist and how fast they are.
///
/// Architectures that multiply alike share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MatrixUnit {
    /// sm_80.
    Ampere,
    /// sm_86.
    AmpereSmall,
    /// sm_89.
    Ada,
    /// sm_90a, with dots of warp groups.
    Hopper,
    /// sm_100: `mma.sync` only; those of tensor memory are not in the table.
    Blackwell,
    /// gfx90a.
    Cdna2,
    /// gfx942.
    Cdna3,
    /// gfx950.
    Cdna4,
    /// gfx11.
    Rdna3,
    /// gfx12.
    Rdna4,
    /// gfx1250.
    Cdna5,
}

impl MatrixUnit {
    /// The `version` of `#ttg.amd_mfma` and `#ttg.amd_wmma` that stands for the instructions of this unit;
    /// `None` where those of NVIDIA do.
    pub fn amd_version(self) -> Option<u32> {
        match self {
            MatrixUnit::Cdna2 => Some(2),
            MatrixUnit::Cdna3 => Some(3),
            MatrixUnit::Cdna4 => Some(4),
            MatrixUnit::Rdna3 => Some(1),
            MatrixUnit::Rdna4 => Some(2),
            MatrixUnit::Cdna5 => Some(3),
            _ => None,
        }
    }
}

/// Which 8-bit floats instructions take: the two families have the same names but other numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fp8 {
    /// E4M3 and E5M2 of the Open Compute Project: `f8E4M3FN` and `f8E5M2`.
    Ocp,
    /// Those without negative zero: `f8E4M3FNUZ` and `f8E5M2FNUZ`.
    Fnuz,
}

/// What instructions cost, in cycles of one multiprocessor (compute unit), for one warp.
///
/// Throughputs are per warp instruction when the pipeline is full; latencies are paid once per dependent
/// step. NVIDIA: CUDA programming guide, "Arithmetic Instructions", results per cycle per multiprocessor
/// (32 for shuffles, 64 for selects and byte permutes), and 128 bytes of shared memory per cycle. AMD: one
/// vector instruction of 64 lanes takes four cycles on one of four SIMDs, and the LDS moves one line per
/// cycle (CDNA3 ISA, "Data Share Operations").
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct CostModel {
    /// One select, byte permute or logic instruction.
    pub alu: f64,
    /// One exchange of 32 bits between lanes by index.
    pub shuffle: f64,
    /// One exchange by XOR through a fixed pattern (DPP, permlane) where the target has it.
    pub fixed_shuffle: f64,
    /// One pass of the shared memory over one line of its banks.
    pub wavefront: f64,
    /// Issuing one shared-memory instruction, besides its wavefronts.
    pub issue: f64,
    /// One copy of a warp from global to shared memory past the registers, besides what an access to shared memory takes.
    pub copy: f64,
    /// Issuing one access of a warp to global memory, its address included, besides the lines that it touches.
    pub request: f64,
    /// What a mask costs an access of a warp besides where it is a branch around the access, not a predicate.
    pub mask: f64,
    /// Putting together what one load of a part of a register gave and others did: none where loads write the part that is asked for.
    pub packing: f64,
    /// One load of a warp of what finds no register until others are used: its latency, which few other warps fill.
    pub late: f64,
    /// Looking up one line of 128 bytes in the L1, for an access that touches sectors of it in full.
    pub line: f64,
    /// What one line takes longer than a cycle some of whose sectors come from the L2, for an access of parts of sectors.
    pub missed_line: f64,
    /// One sector of 32 bytes that a store writes in full: stores are written through to the L2, sector by sector.
    pub stored_sector: f64,
    /// One sector of which a store writes a part.
    pub stored_part: f64,
    /// One line more than such sectors fill, where nobody writes the rest of them.
    pub stored_line: f64,
    /// One special function: exponentials, logarithms, reciprocals.
    pub special: f64,
    /// Multiply-adds of 16-bit numbers in a cycle that the matrix unit does; those of wider numbers take as many times longer.
    pub multiply_adds: f64,
    /// Bytes in a cycle that device memory gives each multiprocessor when all of them ask.
    pub memory_bytes: f64,
    /// Bytes of the L2 for each multiprocessor.
    pub l2_bytes: f64,
    /// Multiprocessors of the GPU.
    pub multiprocessors: f64,
    /// From a shuffle to the use of its result.
    pub shuffle_latency: f64,
    /// The same of an exchange by XOR through a fixed pattern (DPP, permlane).
    pub fixed_shuffle_latency: f64,
    /// From a shared-memory load to the use of its result; a store counts half.
    pub shared_latency: f64,
    /// A barrier of the lanes of a warp.
    pub warp_barrier: f64,
    /// A barrier of the warps of a CTA.
    pub block_barrier: f64,
    /// A barrier of the CTAs of a cluster.
    pub cluster_barrier: f64,
    /// How many times slower the shared memory of another CTA is.
    pub remote_factor: f64,
}

/// What one access of a warp touches of device memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Touched {
    /// Bytes that it reads or writes.
    pub bytes: u64,
    /// Sectors of 32 bytes.
    pub sectors: u64,
    /// Lines of 128 bytes.
    pub lines: u64,
    /// Sectors that all such accesses of the CTA touch together, for each of them.
    pub new: f64,
}

impl Touched {
    /// Whether it touches all bytes of its sectors.
    fn is_full(self) -> bool {
        32 * self.sectors <= self.bytes
    }

    /// Lines more than its sectors fill.
    fn apart(self) -> f64 {
        (self.lines as f64 - self.sectors as f64 / 4.0).max(0.0)
    }

    /// Whether all accesses of the CTA together do.
    fn is_full_in_turn(self) -> bool {
        32.0 * self.new <= self.bytes as f64
    }
}

impl CostModel {
    /// Cycles that the memory takes for one store of a warp.
    #[must_use]
    pub fn stored(&self, t: Touched) -> f64 {
        if t.is_full() {
            return self.stored_sector * t.sectors as f64;
        }
        let sectors = self.stored_part * t.sectors as f64;
        if t.is_full_in_turn() { sectors } else { sectors + self.stored_line * t.apart() }
    }

    /// Cycles that the L1 takes for one load of a warp. Sectors that are used in full count a quarter of a line each, or what looking
    /// up their line takes where they are in lines of their own. Of others a line takes a cycle where a load before had its sectors,
    /// and longer where they come from the L2, one in a cycle.
    #[must_use]
    pub fn loaded(&self, t: Touched) -> f64 {
        let lines = t.lines as f64;
        if t.is_full() {
            (t.sectors as f64 / 4.0).max(self.line * lines).max(1.0)
        } else if t.is_full_in_turn() {
            lines
        } else {
            t.new.max(lines + self.missed_line * t.new.min(lines))
        }
    }
}

impl Hash for CostModel {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Taken apart without `..`: a new field cannot be forgotten.
        let CostModel {
            alu,
            shuffle,
            fixed_shuffle,
            wavefront,
            issue,
            copy,
            request,
            mask,
            packing,
            late,
            line,
            missed_line,
            stored_sector,
            stored_part,
            stored_line,
            special,
            multiply_adds,
            memory_bytes,
            l2_bytes,
            multiprocessors,
            shuffle_latency,
            fixed_shuffle_latency,
            shared_latency,
            warp_barrier,
            block_barrier,
            cluster_barrier,
            remote_factor,
        } = self;
        let throughputs =
            [alu, shuffle, fixed_shuffle, wavefront, issue, copy, request, special, multiply_adds];
        let stores = [stored_sector, stored_part, stored_line];
        let memory = [mask, packing, late, line, missed_line, memory_bytes, l2_bytes, multiprocessors];
        let latencies = [shuffle_latency, fixed_shuffle_latency, shared_latency];
        let barriers = [warp_barrier, block_barrier, cluster_barrier];
        for cycles in throughputs
            .into_iter()
            .chain(memory)
            .chain(stores)
            .chain(latencies)
            .chain(barriers)
            .chain([remote_factor])
        {
            state.write_u64(cycles.to_bits());
        }
    }
}

/// Whether shared memory is read or written: some targets serve lanes in different orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Registers to memory.
    Store,
    /// Memory to registers.
    Load,
}

/// How shared memory serves one kind of access of a warp.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Service {
    /// Banks that take part. A power of two.
    pub banks: u32,
    /// The lanes that are served together: a basis of a space of lane numbers. The warp is served one coset
    /// of that space after the other, each a *phase*; bank conflicts happen only within one.
    pub lanes: SmallVec<[u64; 6]>,
}

/// An access that shared memory serves otherwise than in consecutive lanes that fill its
/// [`banks`](TargetDesc::banks).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ServiceRule {
    /// Bytes of each lane.
    pub bytes: u32,
    /// Load or store.
    pub direction: Direction,
    /// Whether the instruction exchanges elements between lanes ([`TransposedReads`]).
    pub transposed: bool,
    /// Banks that take part.
    pub banks: u32,
    /// As [`Service::lanes`].
    pub lanes: &'static [u64],
}

impl ServiceRule {
    /// A rule of plain loads or stores of `bytes` bytes a lane.
    pub const fn plain(bytes: u32, direction: Direction, banks: u32, lanes: &'static [u64]) -> Self {
        Self { bytes, direction, transposed: false, banks, lanes }
    }
}

/// One GPU architecture, as far as moving data goes.
///
/// ```
/// use linear_layout::target::{Direction, TargetDesc};
/// let hopper = TargetDesc::parse("cuda:90")?;
/// assert_eq!((hopper.lanes, hopper.banks, hopper.bank_width), (32, 32, 4));
/// assert!(hopper.primitives.stmatrix);
/// // 16-byte accesses are served for eight lanes at a time: 128 bytes, one line.
/// assert_eq!(hopper.phase_lanes(16, Direction::Load).as_slice(), &[1, 2, 4]);
/// let error = TargetDesc::parse("cuda:20").unwrap_err().to_string();
/// assert!(error.contains("cuda:80") && error.contains("hip:gfx942"));
/// # Ok::<(), linear_layout::target::UnknownTarget>(())
/// ```
#[derive(Clone, Debug, PartialEq, Hash)]
#[non_exhaustive]
pub struct TargetDesc {
    /// The name that [`parse`](Self::parse) takes: `cuda:90`, `hip:gfx942`.
    pub name: &'static str,
    /// Family of instructions.
    pub vendor: Vendor,
    /// Lanes of a warp (wave). A power of two.
    pub lanes: u32,
    /// Banks of shared memory, where [`services`](Self::services) does not say otherwise. A power of two.
    pub banks: u32,
    /// Bytes of one bank in one line. A power of two.
    pub bank_width: u32,
    /// Widest access of one lane to shared memory, in bits.
    pub max_vector_bits: u32,
    /// Widest access of one lane to global memory, in bits.
    pub max_global_vector_bits: u32,
    /// Shared memory that one CTA can have, in bytes.
    pub shared_bytes: u64,
    /// Threads that a multiprocessor (compute unit) holds at once.
    pub resident_threads: u32,
    /// CTAs that a multiprocessor (compute unit) holds at once.
    pub resident_ctas: u32,
    /// Warps (waves) that one of a multiprocessor's SIMDs holds at once.
    pub simd_waves: u32,
    /// Registers of 32 bits of each lane that a SIMD has for all its warps (waves).
    pub simd_registers: u32,
    /// The most of them that a thread can have.
    pub thread_registers: u32,
    /// Accesses to shared memory that are served in an order of their own.
    pub services: &'static [ServiceRule],
    /// What multiplies matrices.
    pub matrix_unit: MatrixUnit,
    /// 8-bit floats that matrix instructions multiply, if any.
    pub fp8_dots: Option<Fp8>,
    /// 8-bit floats that conversion instructions take, if any.
    pub fp8_conversions: Option<Fp8>,
    /// One instruction gives the lesser magnitude of two floats of 32 bits, with the product of their signs:
    /// `min.xorsign.abs.f32` (PTX ISA, sm_86 on).
    pub signed_minimum: bool,
    /// What else there is.
    pub primitives: Primitives,
    /// What it costs.
    pub cost: CostModel,
}

/// A target name that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown target `{name}`{}; known are {}", why_unknown(name), TargetDesc::NAMES.join(", "))]
#[non_exhaustive]
pub struct UnknownTarget {
    /// The name given.
    pub name: String,
}

/// Why GPUs that exist are no targets, by how their names begin.
const UNSUPPORTED: [(&str, &str); 8] = [
    ("cuda:7", "the oldest has cp.async and mma of bf16, sm_80"),
    ("cuda:87", "sm_87 has no table of rates; code for cuda:80 and cuda:86 runs on it"),
    ("cuda:103", "of sm_100's family only sm_100 has a table of rates"),
    ("cuda:12", "sm_120 has no table of rates, and other matrix instructions than sm_100"),
    ("hip:gfx90", "of CDNA1 and before, nothing is known of the LDS and of matrix instructions"),
    ("hip:gfx10", "RDNA1 and RDNA2 have no matrix instructions, and nothing is known of their LDS"),
    ("hip:gfx11", "of RDNA3 only gfx1100 has a table of rates"),
    ("hip:gfx12", "of gfx12 only gfx1201 and gfx1250 have a table of rates"),
];

/// What to say of a name that is no target's, behind it.
fn why_unknown(name: &str) -> String {
    let why = UNSUPPORTED.iter().find(|(start, _)| name.starts_with(start));
    why.map_or_else(String::new, |(_, why)| format!(" ({why})"))
}

const NVIDIA_COST: CostModel = CostModel {
    alu: 0.5,
    shuffle: 1.0,
    fixed_shuffle: 1.0,
    wavefront: 1.0,
    issue: 0.5,
    // Alone a copy takes 1.4 (bench/gpu/micro/copies.cu). In kernels its addresses wait for registers, too: by 1.0 memory of which copies of 4
    // bytes are made is chosen that costs 1.3 times as much (docs/objective.md).
    copy: 3.0,
    request: 1.0,
    // Instructions have predicates.
    mask: 0.0,
    // A byte permute, which takes as long as an addition.
    packing: 0.5,
    // 33 cycles of the L1, over the eight warps whose threads have all registers.
    late: 4.0,
    // An H200 takes a cycle for each line (bench/gpu/micro/rows.cu). Loads are compared with conversions, which take longer than is
    // counted where few warps wait: a whole cycle makes 100 kernels 1.02 times slower, this makes 30 as much faster (docs/objective.md).
    line: 0.6,
    // The same of bench/gpu/micro/strided.cu: loads from the L2.
    missed_line: 0.75,
    // An H200's `hbm.st*` and, for parts, `l2.st*` of bench/gpu/micro (docs/objective.md); for lines those of strided.cu, the
    // geometric mean of how much longer stores to the L2 and to device memory take.
    stored_sector: 2.1,
    stored_part: 4.2,
    stored_line: 4.0,
    special: 2.0,
    // 989 TFLOP/s of 132 multiprocessors at 1.83 GHz, and 4.8 TB/s (H200 datasheet).
    multiply_adds: 2048.0,
    memory_bytes: 20.0,
    // 50 MB of 132 multiprocessors (the same datasheet).
    l2_bytes: 50e6 / 132.0,
    multiprocessors: 132.0,
    shuffle_latency: 24.0,
    fixed_shuffle_latency: 24.0,
    shared_latency: 30.0,
    warp_barrier: 4.0,
    block_barrier: 20.0,
    cluster_barrier: 190.0,
    remote_factor: 2.0,
};

/// The costs of an NVIDIA GPU other than an H200: `l2` is the bytes of the whole L2.
fn nvidia_cost(multiply_adds: f64, memory_bytes: f64, l2: f64, multiprocessors: f64) -> CostModel {
    CostModel { multiply_adds, memory_bytes, l2_bytes: l2 / multiprocessors, multiprocessors, ..NVIDIA_COST }
}

/// A branch takes 32 cycles (LLVM, `SISchedule.td`, `WriteBranch`).
const RDNA_COST: CostModel = CostModel { shuffle: 1.0, request: 4.0, mask: 11.0, ..AMD_COST };

const AMD_COST: CostModel = CostModel {
    alu: 1.0,
    shuffle: 2.0,
    fixed_shuffle: 1.0,
    wavefront: 1.0,
    issue: 1.0,
    // Not used: loads to the LDS have plans of their own.
    copy: 0.0,
    // The texture addresser takes 16 lanes a cycle (CDNA3 white paper), and two vector instructions make the 64-bit
    // address. Unmeasured here.
    request: 6.0,
    // Three scalar instructions (the mask saved and set, a branch, the mask restored), of which a compute unit executes one in
    // a cycle, and the 8 cycles of a branch (LLVM, `SISchedule.td`, `WriteBranch`) on one of four SIMDs. Unmeasured.
    mask: 5.0,
    // `global_load_short_d16_hi` and such.
    packing: 0.0,
    // Unmeasured.
    late: 0.0,
    // The tag memory looks up one line after the other (ROCm Compute Profiler, "Vector L1 cache"). Unmeasured.
    line: 1.0,
    missed_line: 0.0,
    // 64 bytes a cycle go from a compute unit to the L2 (CDNA3 white paper). Unmeasured.
    stored_sector: 0.5,
    stored_part: 0.5,
    stored_line: 0.0,
    special: 4.0,
    // 1307 TFLOP/s of 304 compute units at 2.1 GHz, and 5.3 TB/s (MI300X datasheet). Unmeasured.
    multiply_adds: 1024.0,
    memory_bytes: 8.3,
    // 4 MB for each of eight dies (the same datasheet).
    l2_bytes: 4e6 / 38.0,
    multiprocessors: 304.0,
    shuffle_latency: 50.0,
    // A vector instruction, and the wait states between it and what it reads (LLVM, GCNHazardRecognizer). Unmeasured.
    fixed_shuffle_latency: 8.0,
    shared_latency: 64.0,
    warp_barrier: 1.0,
    block_barrier: 24.0,
    cluster_barrier: 24.0,
    remote_factor: 1.0,
};

/// CDNA2 and CDNA3 read 16 bytes in groups of lanes that are not consecutive: 0–3 with 20–23, 4–7 with
/// 16–19, and so on (AMD, "Avoiding LDS Bank Conflicts on AMD GPUs Using CK-Tile Framework").
const CDNA3_SERVICES: &[ServiceRule] = &[
    ServiceRule { bytes: 16, direction: Direction::Load, transposed: false, banks: 32, lanes: &[1, 2, 20] },
    ServiceRule { bytes: 12, direction: Direction::Load, transposed: false, banks: 32, lanes: &[1, 2, 20] },
];

/// CDNA4 reads 8 and 16 bytes from 64 banks: 32 lanes at a time, and 0–3 with 12–15 and 20–27, and so on
/// (HipKittens, measured; unmeasured here). All else goes to 32 banks.
const CDNA4_SERVICES: &[ServiceRule] = &[
    ServiceRule {
        bytes: 16,
        direction: Direction::Load,
        transposed: false,
        banks: 64,
        lanes: &[1, 2, 12, 20],
    },
    ServiceRule { bytes: 12, direction: Direction::Load, transposed: false, banks: 32, lanes: &[1, 2, 20] },
    ServiceRule {
        bytes: 8,
        direction: Direction::Load,
        transposed: false,
        banks: 64,
        lanes: &[1, 2, 4, 8, 16],
    },
    ServiceRule {
        bytes: 8,
        direction: Direction::Load,
        transposed: true,
        banks: 64,
        lanes: &[1, 2, 4, 8, 16],
    },
];

impl TargetDesc {
    /// The same GPU under another name, on which no plan depends.
    #[must_use]
    pub fn renamed(mut self, name: &'static str) -> TargetDesc {
        self.name = name;
        self
    }

    /// The names that [`parse`](Self::parse) knows.
    pub const NAMES: [&'static str; 11] = [
        "cuda:80",
        "cuda:86",
        "cuda:89",
        "cuda:90",
        "cuda:100",
        "hip:gfx90a",
        "hip:gfx942",
        "hip:gfx950",
        "hip:gfx1100",
        "hip:gfx1201",
        "hip:gfx1250",
    ];

    /// The description of a target by name. A trailing feature letter (`cuda:90a`) is ignored.
    ///
    /// # Errors
    /// An unknown name; the message lists the known ones.
    pub fn parse(name: &str) -> Result<TargetDesc, UnknownTarget> {
        let unknown = || UnknownTarget { name: name.to_owned() };
        let base = match name.strip_prefix("cuda:") {
            Some(arch) => format!("cuda:{}", arch.strip_suffix(['a', 'f']).unwrap_or(arch)),
            None => name.to_owned(),
        };
        let known = Self::NAMES.into_iter().find(|&n| n == base).ok_or_else(unknown)?;
        Ok(match known.strip_prefix("cuda:") {
            Some(arch) => nvidia(known, arch),
            None => amd(known, known.trim_start_matches("hip:")),
        })
    }

    /// The same for code of which a thread may have at most `most` registers of 32 bits, where that is said.
    #[must_use]
    pub fn with_registers(self, most: Option<u32>) -> TargetDesc {
        let thread_registers = self.thread_registers.min(most.unwrap_or(u32::MAX));
        TargetDesc { thread_registers, ..self }
    }

    /// Every known target.
    pub fn all() -> impl Iterator<Item = TargetDesc> {
        Self::NAMES.into_iter().filter_map(|name| Self::parse(name).ok())
    }

    /// log2 of the lanes of a warp.
    pub fn lane_bits(&self) -> u32 {
        self.lanes.trailing_zeros()
    }

    /// Bytes of one line: all the banks side by side.
    pub fn line_bytes(&self) -> u32 {
        self.banks * self.bank_width
    }

    /// How shared memory serves lanes that each access `bytes`: as a rule of [`services`](Self::services)
    /// says, or else in phases of consecutive lanes that access at most one line together.
    pub fn service(&self, bytes: u32, direction: Direction, transposed: bool) -> Service {
        let own = |rule: &&ServiceRule| {
            rule.bytes == bytes && rule.direction == direction && rule.transposed == transposed
        };
        if let Some(rule) = self.services.iter().find(own) {
            return Service { banks: rule.banks, lanes: SmallVec::from_slice(rule.lanes) };
        }
        let together = self.line_bytes() / bytes.clamp(self.bank_width, self.line_bytes());
        let bits = together.min(self.lanes).trailing_zeros();
        Service { banks: self.banks, lanes: (0..bits).map(|i| 1 << i).collect() }
    }

    /// The [lanes](Service::lanes) that shared memory serves together when each accesses `bytes` by a plain
    /// load or store.
    pub fn phase_lanes(&self, bytes: u32, direction: Direction) -> SmallVec<[u64; 6]> {
        self.service(bytes, direction, false).lanes
    }

    /// How many phases an access of `bytes` per lane takes: the least number of wavefronts of one
    /// instruction.
    pub fn phases(&self, bytes: u32, direction: Direction) -> u32 {
        self.lanes >> self.phase_lanes(bytes, direction).len()
    }

    /// A number that stands for all that the description says, costs and primitives included: a key for
    /// what was planned for it. The same in every run of one build.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
        self.hash(&mut hasher);
        hasher.finish()
    }
}

/// Fowler, Noll and Vo's hash (FNV-1a), words at a time: seeded by nothing, unlike the standard library's.
struct Fnv(u64);

impl Fnv {
    fn word(&mut self, word: u64) {
        // The product carries upwards only; the rotation brings high bits back.
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x0000_0100_0000_01b3);
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.word(byte.into()));
    }
    fn write_u32(&mut self, word: u32) {
        self.word(word.into());
    }
    fn write_u64(&mut self, word: u64) {
        self.word(word);
    }
    fn write_usize(&mut self, word: usize) {
        self.word(word as u64);
    }
}

impl fmt::Display for TargetDesc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

fn nvidia(name: &'static str, arch: &str) -> TargetDesc {
    let hopper = matches!(arch, "90" | "100");
    let blackwell = arch == "100";
    let fp8 = (!matches!(arch, "80" | "86")).then_some(Fp8::Ocp);
    TargetDesc {
        name,
        vendor: Vendor::Nvidia,
        lanes: 32,
        banks: 32,
        bank_width: 4,
        max_vector_bits: 128,
        max_global_vector_bits: if blackwell { 256 } else { 128 },
        // CUDA programming guide, "Technical Specifications per Compute Capability": 163, 99 and 227 KiB.
        shared_bytes: match arch {
            "80" => 163 << 10,
            "86" | "89" => 99 << 10,
            _ => 227 << 10,
        },
        // The same table: "Maximum number of resident threads" and "… thread blocks per SM".
        resident_threads: if matches!(arch, "86" | "89") { 1536 } else { 2048 },
        resident_ctas: match arch {
            "86" => 16,
            "89" => 24,
            _ => 32,
        },
        // CUDA C Programming Guide, "Compute Capabilities": four schedulers.
        simd_waves: if matches!(arch, "86" | "89") { 12 } else { 16 },
        // The same table: 64 K registers of a multiprocessor, 255 of a thread.
        simd_registers: 512,
        thread_registers: 255,
        services: &[],
        matrix_unit: match arch {
            "80" => MatrixUnit::Ampere,
            "86" => MatrixUnit::AmpereSmall,
            "89" => MatrixUnit::Ada,
            "90" => MatrixUnit::Hopper,
            _ => MatrixUnit::Blackwell,
        },
        // PTX ISA, `mma` and `cvt` with `.e4m3` and `.e5m2`: sm_89 on.
        fp8_dots: fp8,
        fp8_conversions: fp8,
        signed_minimum: arch != "80",
        primitives: Primitives {
            ldmatrix: true,
            stmatrix: hopper,
            matrix_b8: blackwell,
            cp_async: true,
            redux: true,
            bulk_copy: hopper,
            bulk_rows: blackwell,
            wgmma: arch == "90",
            mma_fp8: arch == "89",
            tensor_memory: blackwell,
            clusters: hopper,
            atomic_vectors: hopper,
            f16_sums: HalfSums::Any,
            bf16_sums: if hopper { HalfSums::Any } else { HalfSums::Loop },
            barriers_order_all: true,
            ..Primitives::default()
        },
        // Rates of the datasheets of an A100, A10, L4 and B200, by multiprocessors and clock; unmeasured.
        cost: match arch {
            "80" => nvidia_cost(1024.0, 13.0, 40e6, 108.0),
            "86" => nvidia_cost(512.0, 5.0, 6e6, 72.0),
            "89" => nvidia_cost(512.0, 2.5, 48e6, 58.0),
            "90" => NVIDIA_COST,
            _ => nvidia_cost(4096.0, 29.0, 126e6, 148.0),
        },
    }
}

fn amd(name: &'static str, arch: &str) -> TargetDesc {
    let cdna4 = arch == "gfx950";
    // As LLVM 22 has it, which also packs the fields of buffers' descriptors; there is no ISA manual. Rates, banks and which lanes the LDS
    // serves together are gfx12's.
    let cdna5 = arch == "gfx1250";
    let rdna = matches!(arch, "gfx1100" | "gfx1201");
    let wave32 = rdna || cdna5;
    // CDNA3 ISA; CDNA4 and RDNA4 ISA.
    let fp8 = match arch {
        "gfx942" => Some(Fp8::Fnuz),
        "gfx950" | "gfx1201" | "gfx1250" => Some(Fp8::Ocp),
        _ => None,
    };
    TargetDesc {
        name,
        vendor: Vendor::Amd,
        lanes: if wave32 { 32 } else { 64 },
        banks: 32,
        bank_width: 4,
        max_vector_bits: 128,
        max_global_vector_bits: 128,
        shared_bytes: match arch {
            "gfx950" => 160 << 10,
            "gfx1250" => 320 << 10,
            _ => 64 << 10,
        },
        // CDNA3 ISA: four SIMDs with eight waves each; RDNA3 ISA: two with sixteen. A workgroup of several waves has one of
        // the compute unit's barriers, 16 in CDNA and 32 in RDNA.
        resident_threads: if wave32 { 1024 } else { 2048 },
        resident_ctas: if wave32 { 32 } else { 16 },
        simd_waves: if wave32 { 16 } else { 8 },
        // LLVM's `AMDGPUBaseInfo` (`getTotalNumVGPRs`, `getAddressableNumVGPRs`): those of CDNA are half accumulators.
        simd_registers: if rdna {
            1536
        } else if cdna5 {
            1024
        } else {
            512
        },
        thread_registers: if rdna {
            256
        } else if cdna5 {
            1024
        } else {
            512
        },
        services: match arch {
            "gfx90a" | "gfx942" => CDNA3_SERVICES,
            "gfx950" => CDNA4_SERVICES,
            _ => &[],
        },
        matrix_unit: match arch {
            "gfx90a" => MatrixUnit::Cdna2,
            "gfx942" => MatrixUnit::Cdna3,
            "gfx950" => MatrixUnit::Cdna4,
            "gfx1100" => MatrixUnit::Rdna3,
            "gfx1250" => MatrixUnit::Cdna5,
            _ => MatrixUnit::Rdna4,
        },
        fp8_dots: fp8,
        fp8_conversions: fp8,
        signed_minimum: false,
        primitives: Primitives {
            ds_b128: true,
            buffers: true,
            buffer_checks_selected: wave32,
            transposed_reads: match arch {
                "gfx950" => Some(TransposedReads::Rows),
                "gfx1250" => Some(TransposedReads::Squares),
                _ => None,
            },
            lds_loads: !wave32,
            lds_loads_b128: cdna4,
            async_to_lds: cdna5,
            tensor_data_mover: cdna5,
            fp4_conversions: cdna4,
            dpp: true,
            dpp_row_xmask: wave32,
            permlanex16: wave32,
            permlane_swap: cdna4,
            ds_swizzle: true,
            dot2_f16: !cdna5,
            dot2_bf16: cdna4 || wave32 && !cdna5,
            dot4_i8: true,
            // LLVM's `FeatureAtomicGlobalPkAddF16Insts` and `FeatureAtomicGlobalPkAddBF16Inst`.
            f16_sums: if arch == "gfx1100" { HalfSums::LoopOfPairs } else { HalfSums::Pairs },
            bf16_sums: if matches!(arch, "gfx90a" | "gfx1100") {
                HalfSums::LoopOfPairs
            } else {
                HalfSums::Pairs
            },
            ..Primitives::default()
        },
        cost: if wave32 { RDNA_COST } else { AMD_COST },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_to_itself() {
        for name in TargetDesc::NAMES {
            assert_eq!(TargetDesc::parse(name).unwrap().name, name);
        }
        assert_eq!(TargetDesc::parse("cuda:90a").unwrap().name, "cuda:90");
        assert!(TargetDesc::parse("hip:gfx9").is_err());
        assert!(TargetDesc::parse("90").is_err());
    }

    #[test]
    fn a_phase_fills_at_most_one_line() {
        for target in TargetDesc::all() {
            for bytes in [1, 2, 4, 8, 16] {
                for direction in [Direction::Load, Direction::Store] {
                    let Service { banks, lanes } = target.service(bytes, direction, false);
                    assert!((bytes << lanes.len()) <= banks * target.bank_width, "{target} {bytes}");
                    assert_eq!(crate::f2::rank(&lanes) as usize, lanes.len());
                }
            }
        }
    }

    #[test]
    fn cdna3_reads_sixteen_bytes_in_scattered_groups() {
        let target = TargetDesc::parse("hip:gfx942").unwrap();
        let basis = target.phase_lanes(16, Direction::Load);
        let mut first: Vec<u64> = (0..8).map(|i| crate::f2::mul(&basis, i)).collect();
        first.sort();
        assert_eq!(first, [0, 1, 2, 3, 20, 21, 22, 23]);
        assert_eq!(target.phases(16, Direction::Load), 8);
        assert_eq!(target.phase_lanes(16, Direction::Store).as_slice(), &[1, 2, 4]);
    }

    /// The groups that were measured, written out.
    #[test]
    fn cdna4_reads_sixteen_bytes_from_64_banks_in_four_groups() {
        let target = TargetDesc::parse("hip:gfx950").unwrap();
        let Service { banks, lanes } = target.service(16, Direction::Load, false);
        let group = |from: u64| {
            let mut group: Vec<u64> = (0..16).map(|i| from ^ crate::f2::mul(&lanes, i)).collect();
            group.sort();
            group
        };
        let ranges = |ranges: [std::ops::Range<u64>; 3]| ranges.into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(banks, 64);
        assert_eq!(group(0), ranges([0..4, 12..16, 20..28]));
        assert_eq!(group(4), ranges([4..12, 16..20, 28..32]));
        assert_eq!(
            target.service(8, Direction::Store, false),
            Service { banks: 32, ..target.service(8, Direction::Store, true) }
        );
        assert_eq!(target.phases(8, Direction::Store), 4);
    }

    #[test]
    fn a_fingerprint_tells_every_field() {
        let base = TargetDesc::parse("cuda:90").unwrap();
        assert_eq!(base.fingerprint(), TargetDesc::parse("cuda:90a").unwrap().fingerprint());
        type Change = fn(&mut TargetDesc);
        let changes: &[Change] = &[
            |_| {},
            |t| t.name = "cuda:91",
            |t| t.vendor = Vendor::Amd,
            |t| t.lanes = 64,
            |t| t.banks = 64,
            |t| t.bank_width = 8,
            |t| t.max_vector_bits = 64,
            |t| t.max_global_vector_bits = 64,
            |t| t.shared_bytes -= 1,
            |t| t.simd_registers -= 1,
            |t| t.thread_registers -= 1,
            |t| t.services = CDNA3_SERVICES,
            |t| t.services = CDNA4_SERVICES,
            |t| t.matrix_unit = MatrixUnit::Ada,
            |t| t.fp8_dots = Some(Fp8::Fnuz),
            |t| t.fp8_dots = None,
            |t| t.fp8_conversions = None,
            |t| t.signed_minimum = false,
            |t| t.primitives.stmatrix = false,
            |t| t.primitives.mma_fp8 = true,
            |t| t.primitives.wgmma = false,
            |t| t.primitives.ds_swizzle = true,
            |t| t.cost.alu *= 2.0,
            |t| t.cost.shuffle *= 2.0,
            |t| t.cost.shared_latency += 1.0,
            |t| t.cost.remote_factor += 1.0,
        ];
        let mut prints: Vec<u64> = Vec::new();
        for change in changes {
            let mut target = base.clone();
            change(&mut target);
            prints.push(target.fingerprint());
        }
        prints.extend(TargetDesc::all().filter(|t| t.name != base.name).map(|t| t.fingerprint()));
        let count = prints.len();
        prints.sort_unstable();
        prints.dedup();
        assert_eq!(prints.len(), count, "two descriptions have one fingerprint");
    }
}
