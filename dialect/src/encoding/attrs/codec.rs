//! Encodings from dictionaries, and to and from the parameters of attributes.

use super::dict::{Dict, check_rank};
use super::{encoding, encoding_attr};
use linear_layout::encoding::*;
use linear_layout::{Dim, LinearLayout, standard_out_dims};
use mlir_host::ir::{Attr, Context};

const DISTRIBUTED: [Dim; 4] = [Dim::REGISTER, Dim::LANE, Dim::WARP, Dim::BLOCK];
const MEMORY: [Dim; 2] = [Dim::OFFSET, Dim::BLOCK];

/// Ranks beyond this are nonsense and would only size allocations.
const MAX_RANK: usize = 64;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// The encoding that `#ttg.mnemonic<[pads] {dict}>` says.
///
/// What may be left out is what Triton 3.9 gives a sensible value then. It also lets one leave out sizes and lists,
/// which become zero, empty or whatever was in memory (`elementBitWidth` of `nvmma_shared`): these are errors here.
pub(super) fn from_dict(mnemonic: &str, mut d: Dict<'_>, pads: &[(i64, i64)]) -> Result<Encoding, String> {
    let value = match mnemonic {
        "blocked" => {
            let order = d.indices("order")?;
            Encoding::Blocked(Blocked {
                size_per_thread: d.numbers("sizePerThread")?,
                threads_per_warp: d.numbers("threadsPerWarp")?,
                warps_per_cta: d.numbers("warpsPerCTA")?,
                cga: d.cga(order.len())?,
                order,
            })
        }
        "slice" => Encoding::Slice(Slice {
            dim: d.index("dim")?,
            parent: Box::new(encoding(d.required("parent")?)?),
        }),
        "dot_op" => Encoding::DotOperand(DotOperand {
            op_idx: d.small("opIdx")?,
            parent: Box::new(encoding(d.required("parent")?)?),
            k_width: d.numbers_or_number("kWidth")?,
        }),
        "nvidia_mma" => {
            let warps_per_cta = d.numbers("warpsPerCTA")?;
            Encoding::NvidiaMma(NvidiaMma {
                version_major: d.small("versionMajor")?,
                version_minor: d.small_or("versionMinor", 0)?,
                cga: d.cga(warps_per_cta.len())?,
                instr_shape: d.numbers("instrShape")?,
                warps_per_cta,
            })
        }
        "amd_mfma" => {
            let warps_per_cta = d.numbers("warpsPerCTA")?;
            let rank = warps_per_cta.len();
            Encoding::AmdMfma(AmdMfma {
                version: d.small_or("version", 0)?,
                instr_shape: d.numbers("instrShape")?,
                is_transposed: d.boolean_or_false("isTransposed")?,
                cga: d.cga(rank)?,
                tiles_per_warp: d.numbers_or("tilesPerWarp", || vec![1; rank])?,
                element_bit_width: d.small_or("elementBitWidth", 32)?,
                warps_per_cta,
            })
        }
        "amd_wmma" => wmma(&mut d)?,
        "linear" => Encoding::Linear(Linear { layout: layout(&mut d, &DISTRIBUTED)? }),
        "generic_linear" => Encoding::GenericLinear(Linear { layout: layout(&mut d, &DISTRIBUTED)? }),
        "swizzled_shared" => Encoding::SwizzledShared(swizzled(&mut d)?),
        "amd_rotating_shared" => Encoding::AmdRotatingShared(swizzled(&mut d)?),
        "nvmma_shared" => {
            let bases = d.bases("CGALayout")?;
            let implied = bases.as_ref().and_then(|bases| bases.first()).map_or(2, Vec::len);
            let rank = d.small_or("rank", implied as u32)? as usize;
            let cga = bases.unwrap_or_default();
            check_rank("CGALayout", &cga, rank)?;
            Encoding::NvmmaShared(NvmmaShared {
                swizzling_byte_width: d.number("swizzlingByteWidth")?,
                transposed: d.boolean_or_false("transposed")?,
                element_bit_width: d.number("elementBitWidth")?,
                fp4_padded: d.boolean_or_false("fp4Padded")?,
                rank,
                cga,
            })
        }
        "padded_shared" => padded(&mut d, pads)?,
        "partitioned_shared" => Encoding::PartitionedShared(PartitionedShared {
            num_partitions: d.number("numPartitions")?,
            num_groups: d.number("numGroups")?,
            partition_dim: d.index("partitionDim")?,
            partition_layout: Box::new(encoding(d.required("partitionLayout")?)?),
        }),
        "shared_linear" => {
            let alignment = d.number("alignment")?;
            Encoding::SharedLinear(SharedLinear { layout: layout(&mut d, &MEMORY)?, alignment })
        }
        other => return Err(format!("`{other}` is no encoding")),
    };
    d.finish()?;
    Ok(value)
}

fn swizzled(d: &mut Dict<'_>) -> Result<SwizzledShared, String> {
    let order = d.indices("order")?;
    Ok(SwizzledShared {
        vec: d.number("vec")?,
        per_phase: d.number("perPhase")?,
        max_phase: d.number("maxPhase")?,
        cga: d.cga(order.len())?,
        order,
    })
}

fn wmma(d: &mut Dict<'_>) -> Result<Encoding, String> {
    let inner = d.required("ctaLayout")?;
    let inner = inner.as_dict().ok_or_else(|| format!("`ctaLayout` must be `{{warp = …}}`, got {inner}"))?;
    let mut inner = Dict::new(inner);
    let tile_registers = inner.bases("register")?.unwrap_or_default();
    let tile_warps = inner.bases("warp")?.unwrap_or_default();
    inner.finish()?;
    let cga = d.bases("CGALayout")?.unwrap_or_default();
    let implied = tile_registers.iter().chain(&tile_warps).chain(&cga).next().map_or(2, Vec::len);
    let rank = d.small_or("rank", implied as u32)? as usize;
    for (key, bases) in [("ctaLayout", &tile_registers), ("ctaLayout", &tile_warps), ("CGALayout", &cga)] {
        check_rank(key, bases, rank)?;
    }
    Ok(Encoding::AmdWmma(AmdWmma {
        version: d.small("version")?,
        tile_registers,
        tile_warps,
        rank,
        is_transposed: d.boolean_or_false("isTranspose")?,
        cga,
        instr_shape: d.numbers_or("instrShape", || vec![16; 3])?,
    }))
}

fn padded(d: &mut Dict<'_>, pads: &[(i64, i64)]) -> Result<Encoding, String> {
    let positive = |value: i64| u64::try_from(value).map_err(|_| format!("`{value}` is negative"));
    let intervals = pads
        .iter()
        .map(|&(interval, padding)| Ok((positive(interval)?, positive(padding)?)))
        .collect::<Result<Vec<_>, String>>()?;
    let layout = match d.take("order") {
        None => layout(d, &MEMORY)?,
        Some(order) => {
            let shape = d.required("shape")?;
            let text =
                format!("#ttg.padded_shared<[1:+1] {{order = {}, shape = {}", plain(order), plain(shape));
            let cga = d.take("CGALayout").map(|cga| format!(", CGALayout = {}", plain(cga)));
            // The short form is expanded in one place, where encodings are defined.
            match format!("{text}{}}}>", cga.unwrap_or_default()).parse().map_err(|err| format!("{err}"))? {
                Encoding::PaddedShared(padded) => padded.layout,
                other => return Err(format!("unexpected {other}")),
            }
        }
    };
    Ok(Encoding::PaddedShared(PaddedShared { intervals, layout }))
}

/// Numbers and lists without their types.
fn plain(value: Attr<'_>) -> String {
    match (value.as_array(), value.as_int()) {
        (Some(items), _) => format!("[{}]", items.into_iter().map(plain).collect::<Vec<_>>().join(", ")),
        (None, Some(value)) => value.to_string(),
        (None, None) => value.to_string(),
    }
}

/// The layout with the bases given for each of `dims`. Blocks may be left out of memory layouts.
fn layout(d: &mut Dict<'_>, dims: &[Dim]) -> Result<LinearLayout, String> {
    let mut bases = Vec::with_capacity(dims.len());
    for dim in dims {
        let given = d.bases(dim.name())?;
        if given.is_none() && !(*dim == Dim::BLOCK && dims.len() == 2) {
            return Err(format!("parameter `{dim}` is missing"));
        }
        bases.push((*dim, given.unwrap_or_default()));
    }
    let rank = bases.iter().flat_map(|(_, vectors)| vectors).map(Vec::len).next();
    let rank = rank.ok_or("without a basis the number of dimensions is not known")?;
    for (dim, vectors) in &bases {
        check_rank(dim.name(), vectors, rank)?;
    }
    LinearLayout::from_bases(&bases, &out_dims(rank)?).map_err(|err| err.to_string())
}

fn out_dims(rank: usize) -> Result<Vec<Dim>, String> {
    if rank > MAX_RANK {
        return Err(format!("{rank} dimensions are more than {MAX_RANK}"));
    }
    Ok(standard_out_dims(rank).collect())
}

impl Dict<'_> {
    fn small_or(&mut self, key: &str, default: u32) -> Result<u32, String> {
        if self.has(key) { self.small(key) } else { Ok(default) }
    }
    fn numbers_or_number(&mut self, key: &str) -> Result<u64, String> {
        if self.has(key) { self.number(key) } else { Ok(0) }
    }
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

/// Builds parameters in order.
struct Writer<'c> {
    ctx: Context<'c>,
    params: Vec<Attr<'c>>,
}

impl<'c> Writer<'c> {
    fn int(mut self, value: u64) -> Self {
        self.params.push(Attr::int(self.ctx, 64, value as i64));
        self
    }
    fn boolean(mut self, value: bool) -> Self {
        self.params.push(Attr::bool(self.ctx, value));
        self
    }
    fn list(mut self, values: impl IntoIterator<Item = u64>) -> Self {
        let values: Vec<i64> = values.into_iter().map(|value| value as i64).collect();
        self.params.push(Attr::i64_array(self.ctx, &values));
        self
    }
    fn indices(self, values: &[usize]) -> Self {
        self.list(values.iter().map(|value| *value as u64))
    }
    /// Basis vectors one after the other; the reader knows their rank.
    fn bases(self, bases: &[Vec<u64>]) -> Self {
        self.list(bases.iter().flatten().copied())
    }
    fn layout(mut self, layout: &LinearLayout, dims: &[Dim]) -> Self {
        self = self.int(layout.num_out_dims() as u64);
        for dim in dims {
            let coords: Vec<u64> =
                layout.columns_of(*dim).iter().flat_map(|column| layout.coords(*column)).collect();
            self = self.list(coords);
        }
        self
    }
    fn attr(mut self, value: &Encoding) -> Result<Self, String> {
        self.params.push(encoding_attr(self.ctx, value)?);
        Ok(self)
    }
}

/// The parameters of the attribute of an encoding.
pub(super) fn to_params<'c>(ctx: Context<'c>, value: &Encoding) -> Result<Vec<Attr<'c>>, String> {
    let w = Writer { ctx, params: Vec::with_capacity(8) };
    let w = match value {
        Encoding::Blocked(e) => w
            .list(e.size_per_thread.iter().copied())
            .list(e.threads_per_warp.iter().copied())
            .list(e.warps_per_cta.iter().copied())
            .indices(&e.order)
            .bases(&e.cga),
        Encoding::Slice(e) => w.int(e.dim as u64).attr(&e.parent)?,
        Encoding::DotOperand(e) => w.int(e.op_idx.into()).attr(&e.parent)?.int(e.k_width),
        Encoding::NvidiaMma(e) => w
            .int(e.version_major.into())
            .int(e.version_minor.into())
            .list(e.warps_per_cta.iter().copied())
            .bases(&e.cga)
            .list(e.instr_shape.iter().copied()),
        Encoding::AmdMfma(e) => w
            .int(e.version.into())
            .list(e.warps_per_cta.iter().copied())
            .list(e.instr_shape.iter().copied())
            .boolean(e.is_transposed)
            .bases(&e.cga)
            .list(e.tiles_per_warp.iter().copied())
            .int(e.element_bit_width.into()),
        Encoding::AmdWmma(e) => w
            .int(e.version.into())
            .int(e.rank as u64)
            .bases(&e.tile_registers)
            .bases(&e.tile_warps)
            .boolean(e.is_transposed)
            .bases(&e.cga)
            .list(e.instr_shape.iter().copied()),
        Encoding::Linear(e) | Encoding::GenericLinear(e) => w.layout(&e.layout, &DISTRIBUTED),
        Encoding::SwizzledShared(e) | Encoding::AmdRotatingShared(e) => {
            w.int(e.vec).int(e.per_phase).int(e.max_phase).indices(&e.order).bases(&e.cga)
        }
        Encoding::NvmmaShared(e) => w
            .int(e.swizzling_byte_width)
            .boolean(e.transposed)
            .int(e.element_bit_width)
            .boolean(e.fp4_padded)
            .int(e.rank as u64)
            .bases(&e.cga),
        Encoding::PaddedShared(e) => w
            .list(e.intervals.iter().map(|pair| pair.0))
            .list(e.intervals.iter().map(|pair| pair.1))
            .layout(&e.layout, &MEMORY),
        Encoding::PartitionedShared(e) => {
            w.int(e.num_partitions).int(e.num_groups).int(e.partition_dim as u64).attr(&e.partition_layout)?
        }
        Encoding::SharedLinear(e) => w.int(e.alignment).layout(&e.layout, &MEMORY),
        other => return Err(format!("{other} is no encoding of ttg")),
    };
    Ok(w.params)
}

/// Reads parameters in order.
struct Reader<'a, 'c> {
    rest: &'a [Attr<'c>],
}

impl<'c> Reader<'_, 'c> {
    fn next(&mut self) -> Result<Attr<'c>, String> {
        let (first, rest) = self.rest.split_first().ok_or("too few parameters")?;
        self.rest = rest;
        Ok(*first)
    }
    fn int(&mut self) -> Result<u64, String> {
        let attr = self.next()?;
        let value = attr.as_int().and_then(|value| u64::try_from(value).ok());
        value.ok_or_else(|| format!("parameter {attr} is not a number"))
    }
    fn small(&mut self) -> Result<u32, String> {
        let value = self.int()?;
        u32::try_from(value).map_err(|_| format!("parameter {value} is more than 32 bits hold"))
    }
    fn index(&mut self) -> Result<usize, String> {
        Ok(self.small()? as usize)
    }
    fn boolean(&mut self) -> Result<bool, String> {
        let attr = self.next()?;
        attr.as_bool().ok_or_else(|| format!("parameter {attr} is not a boolean"))
    }
    fn list(&mut self) -> Result<Vec<u64>, String> {
        let attr = self.next()?;
        let values = attr.as_i64_array().ok_or_else(|| format!("parameter {attr} is not a list"))?;
        Ok(values.into_iter().map(|value| value as u64).collect())
    }
    fn indices(&mut self) -> Result<Vec<usize>, String> {
        Ok(self.list()?.into_iter().map(|value| value as usize).collect())
    }
    fn bases(&mut self, rank: usize) -> Result<Vec<Vec<u64>>, String> {
        let flat = self.list()?;
        if flat.is_empty() {
            return Ok(Vec::new());
        }
        if rank == 0 || !flat.len().is_multiple_of(rank) {
            return Err(format!("{} coordinates do not make basis vectors of {rank}", flat.len()));
        }
        Ok(flat.chunks(rank).map(<[u64]>::to_vec).collect())
    }
    fn layout(&mut self, dims: &[Dim]) -> Result<LinearLayout, String> {
        let rank = self.index()?;
        let outs = out_dims(rank)?;
        let bases =
            dims.iter().map(|dim| Ok((*dim, self.bases(rank)?))).collect::<Result<Vec<_>, String>>()?;
        LinearLayout::from_bases(&bases, &outs).map_err(|err| err.to_string())
    }
}

/// The encoding with these parameters.
pub(super) fn from_params(mnemonic: &str, params: &[Attr<'_>]) -> Result<Encoding, String> {
    let mut r = Reader { rest: params };
    Ok(match mnemonic {
        "blocked" => {
            let (size_per_thread, threads_per_warp, warps_per_cta) = (r.list()?, r.list()?, r.list()?);
            let order = r.indices()?;
            let cga = r.bases(order.len())?;
            Encoding::Blocked(Blocked { size_per_thread, threads_per_warp, warps_per_cta, order, cga })
        }
        "slice" => Encoding::Slice(Slice { dim: r.index()?, parent: Box::new(encoding(r.next()?)?) }),
        "dot_op" => Encoding::DotOperand(DotOperand {
            op_idx: r.small()?,
            parent: Box::new(encoding(r.next()?)?),
            k_width: r.int()?,
        }),
        "nvidia_mma" => {
            let (version_major, version_minor, warps_per_cta) = (r.small()?, r.small()?, r.list()?);
            let cga = r.bases(warps_per_cta.len())?;
            let instr_shape = r.list()?;
            Encoding::NvidiaMma(NvidiaMma { version_major, version_minor, warps_per_cta, cga, instr_shape })
        }
        "amd_mfma" => {
            let (version, warps_per_cta, instr_shape) = (r.small()?, r.list()?, r.list()?);
            Encoding::AmdMfma(AmdMfma {
                version,
                instr_shape,
                is_transposed: r.boolean()?,
                cga: r.bases(warps_per_cta.len())?,
                tiles_per_warp: r.list()?,
                element_bit_width: r.small()?,
                warps_per_cta,
            })
        }
        "amd_wmma" => {
            let (version, rank) = (r.small()?, r.index()?);
            Encoding::AmdWmma(AmdWmma {
                version,
                tile_registers: r.bases(rank)?,
                tile_warps: r.bases(rank)?,
                rank,
                is_transposed: r.boolean()?,
                cga: r.bases(rank)?,
                instr_shape: r.list()?,
            })
        }
        "linear" => Encoding::Linear(Linear { layout: r.layout(&DISTRIBUTED)? }),
        "generic_linear" => Encoding::GenericLinear(Linear { layout: r.layout(&DISTRIBUTED)? }),
        "swizzled_shared" | "amd_rotating_shared" => {
            let (vec, per_phase, max_phase, order) = (r.int()?, r.int()?, r.int()?, r.indices()?);
            let value = SwizzledShared { vec, per_phase, max_phase, cga: r.bases(order.len())?, order };
            if mnemonic == "swizzled_shared" {
                Encoding::SwizzledShared(value)
            } else {
                Encoding::AmdRotatingShared(value)
            }
        }
        "nvmma_shared" => {
            let (swizzling_byte_width, transposed, element_bit_width, fp4_padded, rank) =
                (r.int()?, r.boolean()?, r.int()?, r.boolean()?, r.index()?);
            let cga = r.bases(rank)?;
            Encoding::NvmmaShared(NvmmaShared {
                swizzling_byte_width,
                transposed,
                element_bit_width,
                fp4_padded,
                rank,
                cga,
            })
        }
        "padded_shared" => {
            let (intervals, paddings) = (r.list()?, r.list()?);
            let intervals = intervals.into_iter().zip(paddings).collect();
            Encoding::PaddedShared(PaddedShared { intervals, layout: r.layout(&MEMORY)? })
        }
        "partitioned_shared" => Encoding::PartitionedShared(PartitionedShared {
            num_partitions: r.int()?,
            num_groups: r.int()?,
            partition_dim: r.index()?,
            partition_layout: Box::new(encoding(r.next()?)?),
        }),
        "shared_linear" => {
            let alignment = r.int()?;
            Encoding::SharedLinear(SharedLinear { layout: r.layout(&MEMORY)?, alignment })
        }
        other => return Err(format!("`{other}` is no encoding")),
    })
}
