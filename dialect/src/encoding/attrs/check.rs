//! What makes an encoding valid, whatever tensor it is used for.

use linear_layout::encoding::*;
use linear_layout::{Dim, LinearLayout};

type Check = Result<(), String>;

/// Checks an encoding; parents were checked when they were made.
pub(super) fn check(value: &Encoding) -> Check {
    check_cga(value)?;
    match value {
        Encoding::Blocked(e) => blocked(e),
        Encoding::Slice(e) => slice(e),
        Encoding::DotOperand(e) => dot_operand(e),
        Encoding::NvidiaMma(e) => match e.version_major {
            2 | 3 => Ok(()),
            other => Err(format!("versionMajor must be 2 (mma) or 3 (wgmma), got {other}")),
        },
        Encoding::AmdMfma(e) => mfma(e),
        Encoding::AmdWmma(e) => wmma(e),
        Encoding::Linear(e) => {
            if permutes(e.layout.columns()) {
                Ok(())
            } else {
                Err("the bases that are not zero must be distinct, each a power of two along one dimension"
                    .into())
            }
        }
        Encoding::GenericLinear(e) => {
            for dim in [Dim::REGISTER, Dim::LANE, Dim::BLOCK] {
                one_dimension(&e.layout, dim)?;
            }
            Ok(())
        }
        Encoding::SwizzledShared(e) => check_order(&e.order),
        Encoding::AmdRotatingShared(_) => Ok(()),
        Encoding::NvmmaShared(e) => {
            if !matches!(e.swizzling_byte_width, 0 | 32 | 64 | 128) {
                return Err(format!(
                    "swizzlingByteWidth must be 0, 32, 64 or 128, got {}",
                    e.swizzling_byte_width
                ));
            }
            if e.element_bit_width == 0 {
                return Err("elementBitWidth must not be zero".into());
            }
            Ok(())
        }
        Encoding::PaddedShared(e) => padded(e),
        Encoding::PartitionedShared(e) => partitioned(e),
        Encoding::SharedLinear(e) => {
            if !e.alignment.is_power_of_two() {
                return Err(format!("alignment must be a power of two, got {}", e.alignment));
            }
            let used = e.layout.columns().iter().filter(|column| **column != 0).count();
            if used > e.layout.total_out_bits() as usize {
                return Err(format!(
                    "{used} bases that are not zero reach only {} bits of the tensor: some element has two places",
                    e.layout.total_out_bits()
                ));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Whether the columns that are not zero are distinct powers of two.
fn permutes(columns: &[u64]) -> bool {
    let mut seen = 0;
    columns.iter().filter(|column| **column != 0).all(|column| {
        let new = column.is_power_of_two() && seen & column == 0;
        seen |= column;
        new
    })
}

/// The division among blocks must be a permutation too, once copies are left out.
fn check_cga(value: &Encoding) -> Check {
    // Those of other encodings come from a parent or a layout.
    let (cga, rank) = match value {
        Encoding::Blocked(e) => (&e.cga, e.order.len()),
        Encoding::NvidiaMma(e) => (&e.cga, e.warps_per_cta.len()),
        Encoding::AmdMfma(e) => (&e.cga, e.warps_per_cta.len()),
        Encoding::AmdWmma(e) => (&e.cga, e.rank),
        Encoding::SwizzledShared(e) | Encoding::AmdRotatingShared(e) => (&e.cga, e.order.len()),
        Encoding::NvmmaShared(e) => (&e.cga, e.rank),
        _ => return Ok(()),
    };
    check_cga_layout(cga, rank)
}

/// Checks the division of a tensor of `rank` dimensions among the blocks of a cluster.
pub(crate) fn check_cga_layout(cga: &CgaLayout, rank: usize) -> Check {
    if cga.is_empty() {
        return Ok(());
    }
    let outs: Vec<Dim> = linear_layout::standard_out_dims(rank).collect();
    match LinearLayout::from_bases(&[(Dim::BLOCK, cga.clone())], &outs) {
        Ok(layout) if permutes(layout.columns()) => Ok(()),
        _ => Err(format!(
            "CGALayout = {cga:?} must reach every block of the tensor once: besides copies, \
             bases are distinct powers of two, without gaps"
        )),
    }
}

fn check_order(order: &[usize]) -> Check {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if sorted.into_iter().eq(0..order.len()) {
        Ok(())
    } else {
        Err(format!("order must list 0 to {} once each, got {order:?}", order.len().saturating_sub(1)))
    }
}

fn powers_of_two(name: &str, values: &[u64]) -> Check {
    match values.iter().find(|value| !value.is_power_of_two()) {
        Some(value) => Err(format!("{name} must hold powers of two, got {value} in {values:?}")),
        None => Ok(()),
    }
}

fn blocked(e: &Blocked) -> Check {
    let lists = [
        ("sizePerThread", &e.size_per_thread),
        ("threadsPerWarp", &e.threads_per_warp),
        ("warpsPerCTA", &e.warps_per_cta),
    ];
    for (name, list) in lists {
        if list.len() != e.order.len() {
            return Err(format!("{name} = {list:?} and order = {:?} have different ranks", e.order));
        }
        powers_of_two(name, list)?;
    }
    check_order(&e.order)
}

fn slice(e: &Slice) -> Check {
    let rank = e.parent.rank();
    if !e.parent.is_distributed() {
        return Err(format!(
            "the parent must distribute a tensor over threads, #ttg.{} does not",
            e.parent.mnemonic()
        ));
    }
    if rank < 2 {
        return Err(format!("the parent must have at least 2 dimensions, it has {rank}"));
    }
    if e.dim >= rank {
        return Err(format!("dim = {} must be less than the rank {rank} of the parent", e.dim));
    }
    Ok(())
}

fn dot_operand(e: &DotOperand) -> Check {
    if e.op_idx > 1 {
        return Err(format!("opIdx must be 0 or 1, got {}", e.op_idx));
    }
    match &*e.parent {
        Encoding::NvidiaMma(parent) => {
            if e.k_width == 0 {
                return Err("kWidth is needed under an #ttg.nvidia_mma parent".into());
            }
            if parent.version_major == 3 && e.op_idx != 0 {
                return Err(
                    "opIdx must be 0 under a version 3 parent: wgmma takes only its left operand from registers"
                        .into(),
                );
            }
            Ok(())
        }
        Encoding::AmdWmma(parent) => {
            let allowed: &[u64] = match parent.version {
                1 => &[8, 16],
                2 => &[4, 8, 16],
                _ if e.k_width == 0 => return Err("kWidth is needed under an #ttg.amd_wmma parent".into()),
                _ => return Ok(()),
            };
            if allowed.contains(&e.k_width) {
                return Ok(());
            }
            Err(format!(
                "kWidth must be one of {allowed:?} under an #ttg.amd_wmma parent of version {}, got {}",
                parent.version, e.k_width
            ))
        }
        Encoding::AmdMfma(_) if e.k_width == 0 => {
            Err("kWidth is needed under an #ttg.amd_mfma parent".into())
        }
        Encoding::AmdMfma(_) => Ok(()),
        Encoding::Blocked(_) if e.k_width != 0 => {
            Err(format!("kWidth has no meaning under a #ttg.blocked parent, got {}", e.k_width))
        }
        Encoding::Blocked(_) => Ok(()),
        other => Err(format!("#ttg.{} cannot be the parent of an operand", other.mnemonic())),
    }
}

fn mfma(e: &AmdMfma) -> Check {
    if e.version > 4 {
        return Err(format!("version must be 0 to 4, got {}", e.version));
    }
    match e.instr_shape[..] {
        [32, 32, ..] | [16, 16, ..] | [64, 4, ..] | [4, 64, ..] => {}
        _ => return Err(format!("no instruction has instrShape = {:?}", e.instr_shape)),
    }
    if !matches!(e.element_bit_width, 32 | 64) {
        return Err(format!("elementBitWidth must be 32 or 64, got {}", e.element_bit_width));
    }
    Ok(())
}

fn wmma(e: &AmdWmma) -> Check {
    let allowed = match (e.version, &e.instr_shape[..]) {
        (1..=2, [16, 16, 16]) => true,
        (2, [16, 16, 32]) => true,
        (3, [16, 16, 4 | 32 | 64 | 128] | [32, 16, 128]) => true,
        (1..=3, _) => false,
        (other, _) => return Err(format!("version must be 1 to 3, got {other}")),
    };
    if !allowed {
        return Err(format!("no instruction of version {} has instrShape = {:?}", e.version, e.instr_shape));
    }
    // Repetitions and warps together cover the tiles.
    let outs: Vec<Dim> = linear_layout::standard_out_dims(e.rank).collect();
    let bases = [(Dim::REGISTER, e.tile_registers.clone()), (Dim::WARP, e.tile_warps.clone())];
    LinearLayout::from_bases(&bases, &outs).map(|_| ()).map_err(|err| format!("ctaLayout: {err}"))
}

/// Every basis of `dim` moves along one dimension at most.
fn one_dimension(layout: &LinearLayout, dim: Dim) -> Check {
    let basis = layout.columns_of(dim).iter().map(|column| layout.coords(*column));
    let mut many = basis.filter(|basis| basis.iter().filter(|value| **value != 0).count() > 1);
    match many.next() {
        Some(basis) => {
            Err(format!("basis {:?} of `{dim}` moves along more than one dimension", basis.as_slice()))
        }
        None => Ok(()),
    }
}

fn padded(e: &PaddedShared) -> Check {
    if e.intervals.is_empty() {
        return Err("expected at least one `interval:+padding`".into());
    }
    for (i, (interval, padding)) in e.intervals.iter().enumerate() {
        if !interval.is_power_of_two() || !padding.is_power_of_two() {
            return Err(format!("interval and padding must be powers of two, got {interval}:+{padding}"));
        }
        if e.intervals[..i].iter().any(|earlier| earlier.0 == *interval) {
            return Err(format!("interval {interval} is given twice"));
        }
    }
    one_dimension(&e.layout, Dim::OFFSET)?;
    if e.layout.columns_of(Dim::OFFSET).contains(&0) {
        return Err("a basis of `offset` is zero: two offsets would hold one element".into());
    }
    Ok(())
}

fn partitioned(e: &PartitionedShared) -> Check {
    if !e.num_partitions.is_power_of_two() || e.num_partitions < 2 {
        return Err(format!("numPartitions must be a power of two from 2 up, got {}", e.num_partitions));
    }
    if !e.num_groups.is_power_of_two() {
        return Err(format!("numGroups must be a power of two, got {}", e.num_groups));
    }
    if !e.partition_layout.is_shared() {
        return Err(format!(
            "partitionLayout must lay out shared memory, #ttg.{} does not",
            e.partition_layout.mnemonic()
        ));
    }
    let rank = e.partition_layout.rank();
    if e.partition_dim >= rank {
        return Err(format!(
            "partitionDim = {} must be less than the rank {rank} of partitionLayout",
            e.partition_dim
        ));
    }
    Ok(())
}
