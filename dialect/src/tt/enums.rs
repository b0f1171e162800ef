//! Enums.

use mlir_host::enum_attr;

enum_attr! {
    /// The address space of a pointer.
    pub enum AddressSpace {
        /// A tensor descriptor.
        Descriptor = 0 => "descriptor",
        /// Global memory.
        Global = 1 => "global",
        /// Global memory that nobody writes.
        Constant = 4 => "constant",
    }
}

enum_attr! {
    /// The caches that an access goes through.
    pub enum CacheModifier {
        /// The default.
        None = 1 => "none",
        /// All levels.
        Ca = 2 => "ca",
        /// L2 only.
        Cg = 3 => "cg",
        /// Write back.
        Wb = 4 => "wb",
        /// Streaming: likely accessed once.
        Cs = 5 => "cs",
        /// Write through.
        Wt = 6 => "wt",
        /// Volatile: not cached.
        Cv = 7 => "cv",
    }
}

enum_attr! {
    /// When a cached line goes.
    pub enum EvictionPolicy {
        /// The default.
        Normal = 1 => "evict_normal",
        /// Early.
        First = 2 => "evict_first",
        /// Late.
        Last = 3 => "evict_last",
    }
}

enum_attr! {
    /// What an atomic access orders.
    pub enum MemSemantic {
        /// Nothing.
        Relaxed = 1 => "relaxed",
        /// Later accesses come after.
        Acquire = 2 => "acquire",
        /// Earlier accesses come before.
        Release = 3 => "release",
        /// Both.
        AcquireRelease = 4 => "acq_rel",
    }
}

enum_attr! {
    /// The threads among which an atomic access is one.
    pub enum MemSyncScope {
        /// Those of the GPU.
        Gpu = 1 => "gpu",
        /// Those of the CTA.
        Cta = 2 => "cta",
        /// All of the system.
        System = 3 => "sys",
    }
}

enum_attr! {
    /// What loads outside of the tensor give.
    pub enum PaddingOption {
        /// Zero.
        Zero = 1 => "zero",
        /// Not a number.
        Nan = 2 => "nan",
    }
}

enum_attr! {
    /// What an atomic read-modify-write does.
    pub enum RmwOp {
        /// Bitwise and.
        And = 1 => "and",
        /// Bitwise or.
        Or = 2 => "or",
        /// Bitwise exclusive or.
        Xor = 3 => "xor",
        /// Integer sum.
        Add = 4 => "add",
        /// Floating-point sum.
        Fadd = 5 => "fadd",
        /// Signed maximum.
        Max = 6 => "max",
        /// Signed minimum.
        Min = 7 => "min",
        /// Unsigned maximum.
        Umax = 8 => "umax",
        /// Unsigned minimum.
        Umin = 9 => "umin",
        /// Exchange.
        Exchange = 10 => "exch",
    }
}

enum_attr! {
    /// What a reducing store through a descriptor does.
    pub enum DescriptorReduceKind {
        /// Sum.
        Add = 1 => "add",
        /// Minimum.
        Min = 2 => "min",
        /// Maximum.
        Max = 3 => "max",
        /// Increment, wrapping at the operand.
        Inc = 4 => "inc",
        /// Decrement, wrapping to the operand.
        Dec = 5 => "dec",
        /// Bitwise and.
        And = 6 => "and",
        /// Bitwise or.
        Or = 7 => "or",
        /// Bitwise exclusive or.
        Xor = 8 => "xor",
    }
}

enum_attr! {
    /// A dimension of the launch grid.
    pub enum ProgramDim {
        /// The first.
        X = 0 => "x",
        /// The second.
        Y = 1 => "y",
        /// The third.
        Z = 2 => "z",
    }
}

enum_attr! {
    /// How a float is rounded to a narrower format.
    pub enum RoundingMode {
        /// Towards zero.
        TowardsZero = 0 => "rtz",
        /// To the nearest, ties to even.
        NearestEven = 1 => "rtne",
    }
}

enum_attr! {
    /// Whether minimum and maximum give NaN when an operand is one.
    pub enum PropagateNan {
        /// Only when both are.
        None = 0 => "none",
        /// When any is.
        All = 0xFFFF => "all",
    }
}

enum_attr! {
    /// How f32 operands are multiplied.
    pub enum InputPrecision {
        /// Rounded to TF32.
        Tf32 = 0 => "tf32",
        /// As three TF32 products.
        Tf32x3 = 1 => "tf32x3",
        /// Without tensor cores.
        Ieee = 2 => "ieee",
        /// As three BF16 products.
        Bf16x3 = 3 => "bf16x3",
        /// As six BF16 products.
        Bf16x6 = 4 => "bf16x6",
    }
}

enum_attr! {
    /// Element format of an operand of a scaled dot.
    pub enum ScaleDotElemType {
        /// 8 bits: 4 of exponent, 3 of mantissa.
        E4M3 = 0 => "e4m3",
        /// 8 bits: 5 of exponent, 2 of mantissa.
        E5M2 = 1 => "e5m2",
        /// 6 bits: 2 of exponent, 3 of mantissa.
        E2M3 = 2 => "e2m3",
        /// 6 bits: 3 of exponent, 2 of mantissa.
        E3M2 = 3 => "e3m2",
        /// 4 bits: 2 of exponent, 1 of mantissa; two in a byte.
        E2M1 = 4 => "e2m1",
        /// bfloat16.
        Bf16 = 5 => "bf16",
        /// IEEE half precision.
        Fp16 = 6 => "fp16",
    }
}
