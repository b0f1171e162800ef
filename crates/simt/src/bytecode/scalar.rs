//! Scalar formats, operations, comparisons and conversions.

use crate::num::{Format, Round};

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
    /// 53 bits of 2/π that the angle's exponent and the second operand, an i32, choose (AMD).
    TwoByPi,
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
    /// The exponent that goes with [`FrexpMant`](Self::FrexpMant), zero for what has none.
    FrexpExp,
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
