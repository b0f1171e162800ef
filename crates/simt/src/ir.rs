//! An owned, flat model of the LLVM IR that a kernel is made of.
//!
//! LLVM's own objects are reached through a C API in which every call is unsafe. [`crate::read`] walks
//! them once and builds this model; everything after it is ordinary Rust. Offsets of structure fields,
//! array strides and constant expressions are already resolved here, so no data layout is needed later.

/// A type. Only what can occur in a kernel is told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ty {
    /// No value.
    Void,
    /// An integer of the given width in bits.
    Int(u32),
    /// IEEE half precision.
    F16,
    /// bfloat16.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// A pointer into the given address space, with its width in bits.
    Ptr(u32, u32),
    /// A vector.
    Vec(Box<Ty>, u32),
    /// An array.
    Array(Box<Ty>, u64),
    /// A structure.
    Struct(Vec<Ty>),
    /// Anything else, by LLVM's name.
    Other(String),
}

impl Ty {
    /// The scalars a value of this type consists of, in order.
    pub fn scalars(&self) -> Vec<Ty> {
        match self {
            Ty::Void => Vec::new(),
            Ty::Vec(t, n) => repeat(t, *n as u64),
            Ty::Array(t, n) => repeat(t, *n),
            Ty::Struct(fields) => fields.iter().flat_map(Ty::scalars).collect(),
            // Two words, the low one first.
            Ty::Int(128) => vec![Ty::Int(64), Ty::Int(64)],
            // An AMD buffer resource: base address and number of bytes behind it.
            Ty::Ptr(8, _) => vec![Ty::Ptr(1, 64), Ty::Int(64)],
            scalar => vec![scalar.clone()],
        }
    }

    /// The width in bits of a scalar type; zero for everything else.
    pub fn bits(&self) -> u32 {
        match self {
            Ty::Int(w) => *w,
            Ty::F16 | Ty::BF16 => 16,
            Ty::F32 => 32,
            Ty::F64 => 64,
            Ty::Ptr(_, w) => *w,
            _ => 0,
        }
    }

    /// The scalar type itself, or that of a vector's elements.
    pub fn element(&self) -> &Ty {
        match self {
            Ty::Vec(t, _) => t,
            t => t,
        }
    }
}

fn repeat(t: &Ty, n: u64) -> Vec<Ty> {
    let one = t.scalars();
    (0..n).flat_map(|_| one.iter().cloned()).collect()
}

/// One scalar of a constant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// Known bits.
    Bits(u64),
    /// `undef` or `poison`.
    Undef,
    /// The address of a global variable plus a byte offset.
    Global(usize, i64),
}

/// An operand of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// The result of the instruction with this number.
    Inst(u32),
    /// A function argument.
    Arg(u32),
    /// A constant, as its scalars.
    Const(Vec<Scalar>),
}

/// What a call calls.
#[derive(Clone, Debug, PartialEq)]
pub enum Callee {
    /// A named function or intrinsic.
    Named(String),
    /// Inline assembly: text and constraints.
    Asm(String, String),
}

/// What a memory access means to other threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Atomic or volatile: does not race with others of that kind, and may be polled by a spin loop.
    pub strong: bool,
    /// A read that takes over what the thread knew that released what is read.
    pub acquire: bool,
    /// A write that makes what its thread knows known to those who acquire it.
    pub release: bool,
    /// A read that says `.weak`: what it reads is undefined where another thread has written with nothing between.
    pub weak: bool,
}

impl Order {
    /// Strong and nothing else.
    pub const RELAXED: Order = Order { strong: true, acquire: false, release: false, weak: false };
    /// Acquires and releases.
    pub const BOTH: Order = Order { acquire: true, release: true, ..Order::RELAXED };

    /// An atomic access that acquires, releases, or both.
    pub fn atomic(acquire: bool, release: bool) -> Order {
        Order { acquire, release, ..Order::RELAXED }
    }
}

/// An instruction's operation with what is not an operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Code {
    /// A two-operand arithmetic or logical instruction, by LLVM's mnemonic.
    Binary(&'static str),
    /// `fneg`.
    FNeg,
    /// A conversion, by LLVM's mnemonic.
    Cast(&'static str),
    /// An integer comparison, by its predicate.
    ICmp(&'static str),
    /// A floating-point comparison, by its predicate.
    FCmp(&'static str),
    /// `select`.
    Select,
    /// `freeze`.
    Freeze,
    /// An address computation: operand 0 plus `offset` plus each further operand times its stride.
    Gep {
        /// Constant byte offset.
        offset: i64,
        /// Stride in bytes of each index operand.
        strides: Vec<i64>,
    },
    /// A phi; its operands come from these blocks.
    Phi(Vec<u32>),
    /// A stack slot of this many bytes.
    Alloca(u64),
    /// A load with its alignment.
    Load {
        /// Alignment in bytes.
        align: u32,
        /// What it means to other threads.
        order: Order,
    },
    /// A store (value, address).
    Store {
        /// Alignment in bytes.
        align: u32,
        /// What it means to other threads.
        order: Order,
    },
    /// A read-modify-write (address, value) by operation name.
    AtomicRmw(&'static str, Order),
    /// A compare-and-swap (address, expected, new).
    CmpXchg(Order),
    /// `fence`: what it orders, and whether it orders device memory between the threads of a program.
    Fence {
        /// Whether it acquires, and whether it releases.
        order: Order,
        /// It does: of a workgroup or more, and not of the LDS alone.
        device: bool,
    },
    /// Scalars `first .. first + count` of operand 0.
    ExtractValue {
        /// First scalar.
        first: usize,
        /// How many.
        count: usize,
    },
    /// Operand 0 with the scalars from `first` on replaced by operand 1.
    InsertValue {
        /// First scalar.
        first: usize,
    },
    /// `extractelement`.
    ExtractElement,
    /// `insertelement`.
    InsertElement,
    /// `shufflevector`; −1 is poison.
    Shuffle(Vec<i32>),
    /// A call.
    Call(Callee),
    /// An unconditional jump.
    Br(u32),
    /// A two-way branch on operand 0.
    CondBr(u32, u32),
    /// A switch on operand 0: default block, then value and block.
    Switch(u32, Vec<(u64, u32)>),
    /// `ret`.
    Ret,
    /// `unreachable`.
    Unreachable,
    /// An instruction that has no meaning here, by LLVM's mnemonic.
    Unsupported(String),
}

/// A place in a source file. Line 0 means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Loc {
    /// Index into [`Module::files`].
    pub file: u32,
    /// Line, counted from 1.
    pub line: u32,
}

/// An instruction.
#[derive(Clone, Debug)]
pub struct Inst {
    /// Its number in the function.
    pub id: u32,
    /// What it does.
    pub code: Code,
    /// Result type.
    pub ty: Ty,
    /// Operands.
    pub args: Vec<Operand>,
    /// Types of the operands.
    pub arg_tys: Vec<Ty>,
    /// Where it comes from.
    pub loc: Loc,
}

/// A function with a body.
#[derive(Clone, Debug)]
pub struct Function {
    /// Symbol.
    pub name: String,
    /// Argument types.
    pub params: Vec<Ty>,
    /// Blocks of instructions; block 0 is the entry.
    pub blocks: Vec<Vec<Inst>>,
    /// Number of instructions; ids are below it.
    pub insts: u32,
    /// Whether it is a kernel (by calling convention).
    pub kernel: bool,
    /// Threads of a program along x, y, z if the module demands it (`nvvm.reqntid`, `reqd_work_group_size`).
    pub block: Option<[u32; 3]>,
    /// The least and the most threads of a program (`amdgpu-flat-work-group-size`).
    pub threads: Option<(u32, u32)>,
    /// Programs of a cluster along x, y, z if the module says so (`nvvm.cluster_dim`).
    pub cluster: Option<[u32; 3]>,
    /// The GPU it is compiled for (`target-cpu`).
    pub cpu: Option<String>,
    /// What that GPU has (`target-features`).
    pub features: String,
}

/// A global variable.
#[derive(Clone, Debug)]
pub struct Global {
    /// Symbol.
    pub name: String,
    /// Address space.
    pub space: u32,
    /// Initial bytes; empty for dynamic shared memory.
    pub init: Vec<u8>,
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u32,
}

/// Whose GPU a module is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Vendor {
    Nvidia,
    Amd,
}

/// A module.
#[derive(Clone, Debug)]
pub struct Module {
    /// Functions with bodies.
    pub functions: Vec<Function>,
    /// Global variables.
    pub globals: Vec<Global>,
    /// Source files that locations name.
    pub files: Vec<String>,
    /// Whose GPU it is for.
    pub vendor: Vendor,
    /// The GPU that the triple names.
    pub triple_cpu: Option<String>,
    /// The GPU that the user names, where the module does not; see [`crate::gpu::Cpu::named`].
    pub cpu: Option<String>,
    /// The module flag `nvvm-reflect-ftz`.
    pub reflect_ftz: bool,
}
