//! From the attribute syntax to [`Encoding`].

use std::str::FromStr;

use super::value::{Attribute, Entry, Kind, Value, error, parse_attribute};
use super::*;
use crate::standard_out_dims;

impl FromStr for Encoding {
    type Err = Error;

    /// Parses the attribute as Triton prints it, `#ttg.blocked<{…}>`, aliases expanded.
    ///
    /// # Errors
    /// [`Error::Parse`] with the byte position where the text is not that of an encoding.
    fn from_str(text: &str) -> Result<Encoding> {
        encoding(&parse_attribute(text)?)
    }
}

fn encoding(attribute: &Attribute<'_>) -> Result<Encoding> {
    let mut f = Fields::of(attribute)?;
    let parsed = match attribute.name {
        "ttg.blocked" => {
            let order = f.indices("order")?;
            Encoding::Blocked(Blocked {
                size_per_thread: f.numbers("sizePerThread")?,
                threads_per_warp: f.numbers("threadsPerWarp")?,
                warps_per_cta: f.numbers("warpsPerCTA")?,
                cga: f.cga(order.len())?,
                order,
            })
        }
        "ttg.slice" => {
            Encoding::Slice(Slice { dim: f.index("dim")?, parent: Box::new(f.encoding("parent")?) })
        }
        "ttg.dot_op" => Encoding::DotOperand(DotOperand {
            op_idx: f.small("opIdx")?,
            parent: Box::new(f.encoding("parent")?),
            k_width: f.number_or("kWidth", 0)?,
        }),
        "ttg.nvidia_mma" => {
            let warps_per_cta = f.numbers("warpsPerCTA")?;
            Encoding::NvidiaMma(NvidiaMma {
                version_major: f.small("versionMajor")?,
                version_minor: f.small("versionMinor")?,
                cga: f.cga(warps_per_cta.len())?,
                instr_shape: f.numbers("instrShape")?,
                warps_per_cta,
            })
        }
        "ttg.amd_mfma" => {
            let warps_per_cta = f.numbers("warpsPerCTA")?;
            Encoding::AmdMfma(AmdMfma {
                version: f.small("version")?,
                instr_shape: f.numbers("instrShape")?,
                is_transposed: f.boolean("isTransposed")?,
                cga: f.cga(warps_per_cta.len())?,
                tiles_per_warp: f.numbers_or("tilesPerWarp", || vec![1; warps_per_cta.len()])?,
                element_bit_width: if f.has("elementBitWidth") { f.small("elementBitWidth")? } else { 32 },
                warps_per_cta,
            })
        }
        "ttg.amd_wmma" => wmma(&mut f)?,
        "ttg.linear" => Encoding::Linear(Linear { layout: f.distributed_layout()? }),
        "ttg.generic_linear" => Encoding::GenericLinear(Linear { layout: f.distributed_layout()? }),
        "ttg.swizzled_shared" => Encoding::SwizzledShared(swizzled(&mut f)?),
        "ttg.amd_rotating_shared" => Encoding::AmdRotatingShared(swizzled(&mut f)?),
        "ttg.nvmma_shared" => {
            let bases = f.bases_or_none("CGALayout")?;
            let of_bases = bases.as_ref().and_then(|b| b.first()).map_or(2, Vec::len);
            let rank = if f.has("rank") { f.index("rank")? } else { of_bases };
            let cga = bases.unwrap_or_default();
            f.check_rank("CGALayout", &cga, rank)?;
            Encoding::NvmmaShared(NvmmaShared {
                swizzling_byte_width: f.number("swizzlingByteWidth")?,
                transposed: f.boolean("transposed")?,
                element_bit_width: f.number("elementBitWidth")?,
                fp4_padded: f.boolean_or("fp4Padded", false)?,
                rank,
                cga,
            })
        }
        "ttg.padded_shared" => padded(&mut f, attribute)?,
        "ttg.partitioned_shared" => Encoding::PartitionedShared(PartitionedShared {
            num_partitions: f.number("numPartitions")?,
            num_groups: f.number("numGroups")?,
            partition_dim: f.index("partitionDim")?,
            partition_layout: Box::new(f.encoding("partitionLayout")?),
        }),
        "ttg.shared_linear" => {
            let layout = f.memory_layout()?;
            Encoding::SharedLinear(SharedLinear { layout, alignment: f.number("alignment")? })
        }
        "ttng.tensor_memory_encoding" => Encoding::TensorMemory(TensorMemory {
            block_m: f.number("blockM")?,
            block_n: f.number("blockN")?,
            col_stride: f.number("colStride")?,
            cga: f.cga(2)?,
            two_ctas: f.boolean_or("twoCTAs", false)?,
            fp4_padded: f.boolean_or("fp4Padded", false)?,
        }),
        "ttng.tensor_memory_scales_encoding" => Encoding::TensorMemoryScales(TensorMemoryScales {
            cga: f.cga(2)?,
            k_then_mn: match f.take("blockRepOrder") {
                None => false,
                Some(Value { kind: Kind::Word("mnThenK"), .. }) => false,
                Some(Value { kind: Kind::Word("kThenMn"), .. }) => true,
                Some(other) => return Err(error(other.position, "expected mnThenK or kThenMn")),
            },
        }),
        other => return Err(error(attribute.position, format!("`#{other}` is not a layout of Triton 3.9"))),
    };
    f.finish()?;
    Ok(parsed)
}

fn swizzled(f: &mut Fields<'_, '_>) -> Result<SwizzledShared> {
    let order = f.indices("order")?;
    Ok(SwizzledShared {
        vec: f.number("vec")?,
        per_phase: f.number("perPhase")?,
        max_phase: f.number("maxPhase")?,
        cga: f.cga(order.len())?,
        order,
    })
}

fn wmma(f: &mut Fields<'_, '_>) -> Result<Encoding> {
    let arrangement = f.required("ctaLayout")?;
    let Kind::Dict(entries) = &arrangement.kind else {
        return Err(error(arrangement.position, "expected `{warp = …}`"));
    };
    let mut inner = Fields::new(arrangement.position, entries.iter())?;
    let tile_registers = inner.bases_or_none("register")?.unwrap_or_default();
    let tile_warps = inner.bases_or_none("warp")?.unwrap_or_default();
    inner.finish()?;
    let cga = f.bases_or_none("CGALayout")?.unwrap_or_default();
    let all = || tile_registers.iter().chain(&tile_warps).chain(&cga);
    let implied = all().next().map_or(2, Vec::len);
    let rank = if f.has("rank") { f.index("rank")? } else { implied };
    if let Some(basis) = all().find(|b| b.len() != rank) {
        return Err(error(arrangement.position, format!("basis {basis:?} does not have {rank} coordinates")));
    }
    Ok(Encoding::AmdWmma(AmdWmma {
        version: f.small("version")?,
        tile_registers,
        tile_warps,
        rank,
        is_transposed: f.boolean("isTranspose")?,
        cga,
        instr_shape: f.numbers_or("instrShape", || vec![16; 3])?,
    }))
}

fn padded(f: &mut Fields<'_, '_>, attribute: &Attribute<'_>) -> Result<Encoding> {
    if attribute.pads.is_empty() {
        return Err(error(attribute.position, "expected `[interval:+padding, …]`"));
    }
    if let Some((i, p)) = attribute.pads.iter().find(|(i, p)| !i.is_power_of_two() || !p.is_power_of_two()) {
        return Err(error(attribute.position, format!("{i}:+{p} are not powers of two")));
    }
    let layout = if f.has("order") {
        let (order, shape) = (f.indices("order")?, f.numbers("shape")?);
        let cga = f.cga(order.len())?;
        let name = "padded_shared";
        fit::check_order(name, &order)?;
        if shape.len() != order.len() {
            let reason = format!("shape {shape:?} does not go with order {order:?}");
            return Err(error(attribute.position, reason));
        }
        let (blocks, part) = fit::divide_among_blocks(name, &cga, &shape)?;
        let outs: Vec<Dim> = standard_out_dims(order.len()).collect();
        fit::identity_nd(Dim::OFFSET, &part, &order)?.transpose_outs(&outs)?.product(&blocks)?
    } else {
        f.memory_layout()?
    };
    Ok(Encoding::PaddedShared(PaddedShared { intervals: attribute.pads.clone(), layout }))
}

/// The entries of an attribute, taken one by one by key.
struct Fields<'v, 'a> {
    position: usize,
    entries: Vec<Option<&'v Entry<'a>>>,
}

impl<'v, 'a> Fields<'v, 'a> {
    fn of(attribute: &'v Attribute<'a>) -> Result<Self> {
        let all = attribute.body.iter().flatten().chain(&attribute.entries);
        Self::new(attribute.position, all)
    }

    fn new(position: usize, entries: impl Iterator<Item = &'v Entry<'a>>) -> Result<Self> {
        let entries: Vec<_> = entries.collect();
        for (i, entry) in entries.iter().enumerate() {
            if entries[..i].iter().any(|e| e.key == entry.key) {
                return Err(error(entry.position, format!("`{}` is given twice", entry.key)));
            }
        }
        Ok(Fields { position, entries: entries.into_iter().map(Some).collect() })
    }

    fn has(&self, key: &str) -> bool {
        self.entries.iter().flatten().any(|e| e.key == key)
    }

    fn take(&mut self, key: &str) -> Option<&'v Value<'a>> {
        let entry = self.entries.iter_mut().find(|e| e.is_some_and(|e| e.key == key))?;
        entry.take().map(|e| &e.value)
    }

    fn required(&mut self, key: &str) -> Result<&'v Value<'a>> {
        self.take(key).ok_or_else(|| error(self.position, format!("`{key}` is missing")))
    }

    fn finish(self) -> Result<()> {
        match self.entries.iter().flatten().next() {
            Some(entry) => Err(error(entry.position, format!("unknown parameter `{}`", entry.key))),
            None => Ok(()),
        }
    }

    fn number(&mut self, key: &str) -> Result<u64> {
        self.required(key).and_then(number)
    }

    fn number_or(&mut self, key: &str, default: u64) -> Result<u64> {
        self.take(key).map_or(Ok(default), number)
    }

    fn small(&mut self, key: &str) -> Result<u32> {
        let value = self.required(key)?;
        number(value)?
            .try_into()
            .map_err(|_| error(value.position, format!("`{key}` is more than 32 bits hold")))
    }

    fn index(&mut self, key: &str) -> Result<usize> {
        self.required(key).and_then(index)
    }

    fn boolean(&mut self, key: &str) -> Result<bool> {
        self.required(key).and_then(boolean)
    }

    fn boolean_or(&mut self, key: &str, default: bool) -> Result<bool> {
        self.take(key).map_or(Ok(default), boolean)
    }

    fn numbers(&mut self, key: &str) -> Result<Vec<u64>> {
        self.required(key).and_then(|value| list(value)?.iter().map(number).collect())
    }

    fn numbers_or(&mut self, key: &str, default: impl FnOnce() -> Vec<u64>) -> Result<Vec<u64>> {
        if self.has(key) { self.numbers(key) } else { Ok(default()) }
    }

    fn indices(&mut self, key: &str) -> Result<Vec<usize>> {
        self.required(key).and_then(|value| list(value)?.iter().map(index).collect())
    }

    fn bases_or_none(&mut self, key: &str) -> Result<Option<Vec<Vec<u64>>>> {
        let Some(value) = self.take(key) else { return Ok(None) };
        let basis = |v: &Value<'_>| list(v)?.iter().map(number).collect();
        list(value)?.iter().map(basis).collect::<Result<_>>().map(Some)
    }

    fn cga(&mut self, rank: usize) -> Result<CgaLayout> {
        let bases = self.bases_or_none("CGALayout")?.unwrap_or_default();
        self.check_rank("CGALayout", &bases, rank)?;
        Ok(bases)
    }

    fn check_rank(&self, key: &str, bases: &[Vec<u64>], rank: usize) -> Result<()> {
        match bases.iter().find(|b| b.len() != rank) {
            Some(basis) => {
                Err(error(self.position, format!("{key} basis {basis:?} does not have {rank} coordinates")))
            }
            None => Ok(()),
        }
    }

    fn encoding(&mut self, key: &str) -> Result<Encoding> {
        let value = self.required(key)?;
        match &value.kind {
            Kind::Attribute(attribute) => encoding(attribute),
            _ => Err(error(value.position, format!("`{key}` must be an attribute"))),
        }
    }

    fn distributed_layout(&mut self) -> Result<LinearLayout> {
        self.layout([Dim::REGISTER, Dim::LANE, Dim::WARP, Dim::BLOCK].into_iter(), false)
    }

    fn memory_layout(&mut self) -> Result<LinearLayout> {
        self.layout([Dim::OFFSET, Dim::BLOCK].into_iter(), true)
    }

    /// The layout with the bases given for each of `dims`. Blocks may be left out of memory layouts.
    fn layout(&mut self, dims: impl Iterator<Item = Dim>, blocks_optional: bool) -> Result<LinearLayout> {
        let mut bases = Vec::new();
        for dim in dims {
            let given = self.bases_or_none(dim.name())?;
            if given.is_none() && !(blocks_optional && dim == Dim::BLOCK) {
                return Err(error(self.position, format!("`{dim}` is missing")));
            }
            bases.push((dim, given.unwrap_or_default()));
        }
        let Some(rank) = bases.iter().flat_map(|(_, b)| b).map(Vec::len).next() else {
            return Err(error(self.position, "without a basis the number of dimensions is not known"));
        };
        for (dim, vectors) in &bases {
            self.check_rank(dim.name(), vectors, rank)?;
        }
        let outs: Vec<Dim> = standard_out_dims(rank).collect();
        LinearLayout::from_bases(&bases, &outs).map_err(|e| error(self.position, e.to_string()))
    }
}

fn number(value: &Value<'_>) -> Result<u64> {
    match value.kind {
        Kind::Number(n) => Ok(n),
        _ => Err(error(value.position, "expected a number")),
    }
}

fn index(value: &Value<'_>) -> Result<usize> {
    let n = number(value)?;
    // More dimensions than bits of a layout cannot be of use, and the number sizes allocations.
    if n < 64 {
        Ok(n as usize)
    } else {
        Err(error(value.position, format!("{n} is not a dimension below 64")))
    }
}

fn boolean(value: &Value<'_>) -> Result<bool> {
    match value.kind {
        Kind::Word("true") => Ok(true),
        Kind::Word("false") => Ok(false),
        _ => Err(error(value.position, "expected true or false")),
    }
}

fn list<'v, 'a>(value: &'v Value<'a>) -> Result<&'v [Value<'a>]> {
    match &value.kind {
        Kind::List(items) => Ok(items),
        _ => Err(error(value.position, "expected a list")),
    }
}
