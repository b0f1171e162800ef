//! What comes out of a compilation.

use super::known_target;
use crate::binary::Resources;
use anyhow::{Result, anyhow};
use linear_layout::show::timeline::Timeline;
use mlir_host::ir::Type;
use std::time::Duration;
use ttopt_dialect::tt::types::TensorDescType;
use ttopt_dialect::ttng::types::TensorDescIm2ColType;
use ttopt_passes::estimate::Estimate;

/// How long the stages took.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Times {
    /// Reading and verifying the input.
    pub parse: Duration,
    /// TTIR to TTGIR.
    pub ttgir: Duration,
    /// TTGIR to optimized LLVM IR.
    pub llir: Duration,
    /// LLVM IR to assembly, or to an object file.
    pub asm: Duration,
    /// Assembly or an object file to a binary.
    pub bin: Duration,
}

impl Times {
    /// In microseconds.
    pub fn to_json(&self) -> serde_json::Value {
        let us = |time: Duration| time.as_micros() as u64;
        serde_json::json!({
            "parse_us": us(self.parse), "ttgir_us": us(self.ttgir), "llir_us": us(self.llir),
            "asm_us": us(self.asm), "bin_us": us(self.bin), "total_us": us(self.total()),
        })
    }

    /// All stages together.
    pub fn total(&self) -> Duration {
        self.parse + self.ttgir + self.llir + self.asm + self.bin
    }
}

/// What a launcher needs to know.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Metadata {
    /// The kernel's symbol.
    pub name: String,
    /// As in `ttg.target`.
    pub target: String,
    /// Warps of a program, those of partitions included.
    pub num_warps: u32,
    /// Threads of a program.
    pub threads: u32,
    /// Dynamic shared memory, in bytes.
    pub shared: u64,
    /// Global scratch memory, in bytes per program.
    pub global_scratch: u64,
    /// Alignment of the global scratch memory, in bytes.
    pub global_scratch_align: u64,
    /// Profile scratch memory, in bytes per program.
    pub profile_scratch: u64,
    /// CTAs of a cluster.
    pub cluster: u32,
    /// The tensor maps that the launcher makes of the descriptors among the arguments, in their order.
    pub tensor_maps: Vec<TensorMapArgument>,
}

/// An argument that is a tensor map (CUDA driver API, `cuTensorMapEncodeTiled`).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TensorMapArgument {
    /// Elements of a box by dimension, the contiguous one last.
    pub box_shape: Vec<u64>,
    /// Bytes of an element.
    pub elem_bytes: u32,
    /// The number of the element's type, as PTX counts.
    pub elem_type: u32,
    /// The number of the swizzle mode.
    pub swizzle: u32,
    /// Whether it is made by `cuTensorMapEncodeIm2col` instead.
    pub is_im2col: bool,
}

impl Metadata {
    /// As JSON.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "name": self.name,
            "target": self.target,
            "num_warps": self.num_warps,
            "threads": self.threads,
            "shared": self.shared,
            "global_scratch_size": self.global_scratch,
            "global_scratch_align": self.global_scratch_align,
            "profile_scratch_size": self.profile_scratch,
            "cluster_size": self.cluster,
            "tensordesc_meta": self.tensor_maps.iter().map(TensorMapArgument::to_json).collect::<Vec<_>>(),
        })
    }
}

impl TensorMapArgument {
    /// As Triton's launcher reads it.
    fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "block_size": self.box_shape,
            "elem_size": self.elem_bytes,
            "elem_type": self.elem_type,
            "swizzle": self.swizzle,
            "fp4_padded": false,
            "is_im2col": self.is_im2col,
        })
    }

    /// That of an argument's type; `None` for other arguments.
    pub(super) fn of(ty: Type<'_>, target: &str) -> Option<Result<Self>> {
        if let Some(im2col) = TensorDescIm2ColType::cast(ty) {
            return Some(Self::new(im2col.tiled()?, true, target));
        }
        Some(Self::new(TensorDescType::cast(ty)?, false, target))
    }

    fn new(desc: TensorDescType<'_>, is_im2col: bool, target: &str) -> Result<Self> {
        let target = known_target(target)?;
        let map = ttopt_passes::buffer_plans::tma_map(desc, &target).map_err(|err| anyhow!("{err}"))?;
        Ok(Self {
            box_shape: map.box_shape.to_vec(),
            elem_bytes: map.elem_bits / 8,
            elem_type: ttopt_passes::tma::element_type(desc.element()),
            swizzle: map.swizzle_mode(),
            is_im2col,
        })
    }
}

/// What the stages made, as far as it was asked for: the last one, or all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Artifacts {
    /// The input, parsed, verified and printed.
    pub ttir: Option<Vec<u8>>,
    /// With layouts.
    pub ttgir: Option<Vec<u8>>,
    /// The `llvm` dialect; only where compilation stops there.
    pub llvm: Option<Vec<u8>>,
    /// Optimized LLVM IR, as text.
    pub llvmir: Option<Vec<u8>>,
    /// PTX or AMDGCN.
    pub asm: Option<Vec<u8>>,
    /// A cubin or an hsaco.
    pub bin: Option<Vec<u8>>,
    /// The machine code of a cubin, as text; only where compilation stops there.
    pub sass: Option<Vec<u8>>,
}

/// What came out.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Compiled {
    /// Text, or a binary: what the last stage made.
    pub output: Vec<u8>,
    /// What the stages before it made, where [`Options::keep`](super::Options::keep) asks for that.
    pub artifacts: Artifacts,
    /// What a binary needs, where its assembler says so.
    pub resources: Option<Resources>,
    /// Of the kernel; absent before layouts are chosen.
    pub metadata: Option<Metadata>,
    /// The schedules of loops, where [`Options::schedules`](super::Options::schedules) asks for them and passes chose them.
    pub schedules: Option<Vec<Timeline>>,
    /// What a program of the launch asks of the GPU, where [`Options::estimate`](super::Options::estimate) asks for that and passes chose layouts.
    pub estimate: Option<Estimate>,
    /// Other PTX of the same kernel for the same launch, where loads of the first wait in registers for later iterations, and
    /// whether they do better without is known when registers are allocated (`occupancy::better_of`).
    pub second: Option<Vec<u8>>,
    /// CTAs that the bound in PTX asks a multiprocessor to hold; 0 where there is none.
    pub(crate) ctas: u64,
    /// How long the stages took.
    pub times: Times,
}

impl Compiled {
    /// The estimate as JSON: cycles by what they are for, bytes, waits.
    pub fn estimate_json(&self) -> Option<serde_json::Value> {
        let Estimate { terms, dots, loaded, stored, waits, .. } = self.estimate.as_ref()?;
        let terms: serde_json::Map<_, _> =
            terms.iter().map(|(name, cycles)| ((*name).to_owned(), (*cycles).into())).collect();
        Some(serde_json::json!({
            "cycles": terms, "dots": dots, "loaded": loaded, "stored": stored, "waits": waits
        }))
    }
}
