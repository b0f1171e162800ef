//! Reshaping blocked encodings.
//!
//! Source and result dimensions fall into groups of equal size that do not
//! mix. In each group, the box of a thread, the boxes of a warp and the boxes
//! of a block fill the source dimensions from the fastest to the slowest, each
//! going on where the one before stopped; then they fill the result's
//! dimensions in the same way.

use linear_layout::encoding::Blocked;

/// Source and result dimensions that hold the same elements, both ascending.
type Group = (Vec<usize>, Vec<usize>);

/// The smallest groups of dimensions, slowest first.
fn groups(from: &[i64], to: &[i64]) -> Option<Vec<Group>> {
    let mut groups = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < from.len() || j < to.len() {
        let mut group: Group = (Vec::new(), Vec::new());
        let (mut left, mut right) = (1, 1);
        if i < from.len() {
            group.0.push(i);
            left = from[i];
            i += 1;
        }
        if j < to.len() {
            group.1.push(j);
            right = to[j];
            j += 1;
        }
        while left != right {
            if left < right {
                left *= *from.get(i)?;
                group.0.push(i);
                i += 1;
            } else {
                right *= *to.get(j)?;
                group.1.push(j);
                j += 1;
            }
        }
        // Dimensions of size one belong to what is before them.
        while from.get(i) == Some(&1) {
            group.0.push(i);
            i += 1;
        }
        while to.get(j) == Some(&1) {
            group.1.push(j);
            j += 1;
        }
        groups.push(group);
    }
    Some(groups)
}

/// The blocked encoding of the result; `None` when there is none of this kind.
pub(super) fn blocked(e: &Blocked, from: &[i64], to: &[i64]) -> Option<Blocked> {
    let rank = e.order.len();
    if rank != from.len() || !e.cga.is_empty() {
        return None;
    }
    let groups = groups(from, to)?;
    let levels = [&e.size_per_thread, &e.threads_per_warp, &e.warps_per_cta];
    let mut made = [vec![1; to.len()], vec![1; to.len()], vec![1; to.len()]];
    for (sources, results) in &groups {
        if sources.len() > 1 && !follows_order(&e.order, sources) {
            return None;
        }
        let mut left: Vec<u64> = from.iter().map(|size| *size as u64).collect();
        let mut free: Vec<u64> = to.iter().map(|size| *size as u64).collect();
        for (level, made) in levels.iter().zip(&mut made) {
            let mut total = take(level, sources, &mut left)?;
            for dim in results.iter().rev() {
                let part = total.min(free[*dim]);
                made[*dim] *= part;
                free[*dim] /= part;
                total /= part;
            }
            // What is left over repeats the slowest dimension.
            match results.first() {
                Some(first) => made[*first] *= total,
                None if total > 1 => return None,
                None => {}
            }
        }
    }
    let mut ordered: Vec<&Group> = groups.iter().collect();
    ordered.sort_by_key(|group| group.0.iter().filter_map(|dim| e.order.iter().position(|d| d == dim)).min());
    let order = ordered.iter().flat_map(|group| group.1.iter().rev().copied()).collect();
    let [size_per_thread, threads_per_warp, warps_per_cta] = made;
    Some(Blocked { size_per_thread, threads_per_warp, warps_per_cta, order, cga: Vec::new() })
}

/// Whether the dimensions are neighbours in the order, the last one fastest.
fn follows_order(order: &[usize], dims: &[usize]) -> bool {
    let Some(start) = order.iter().position(|dim| Some(dim) == dims.last()) else { return false };
    dims.iter().rev().enumerate().all(|(i, dim)| order.get(start + i) == Some(dim))
}

/// How much of a group one level takes. A dimension must be full before the
/// next slower one is begun.
fn take(level: &[u64], dims: &[usize], left: &mut [u64]) -> Option<u64> {
    let mut total = 1;
    for (i, dim) in dims.iter().enumerate().rev() {
        let size = *level.get(*dim)?;
        total *= size;
        if i > 0 && size > left[*dim] {
            return None;
        }
        left[*dim] = (left[*dim] / size).max(1);
        if left[*dim] > 1 && dims[..i].iter().any(|slower| level[*slower] > 1) {
            return None;
        }
    }
    Some(total)
}
