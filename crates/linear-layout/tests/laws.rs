//! The laws of the algebra, over random labelled layouts: rank-deficient and broadcasting ones, with
//! dimensions that are empty, of size one, and in any order.

use linear_layout::{Dim, Error, LinearLayout, f2};
use proptest::prelude::*;

const IN_DIMS: [Dim; 4] = [Dim::REGISTER, Dim::LANE, Dim::WARP, Dim::BLOCK];

fn mid_dims() -> [Dim; 3] {
    [Dim::new("x"), Dim::new("y"), Dim::new("z")]
}

/// A few of `names` in random order, each with up to `max` bits.
fn dims(names: Vec<Dim>, max: u32) -> impl Strategy<Value = Vec<(Dim, u32)>> {
    let n = names.len();
    (Just(names).prop_shuffle(), 0..=n, proptest::collection::vec(0..=max, n))
        .prop_map(|(names, keep, bits)| names.into_iter().zip(bits).take(keep).collect())
}

fn total(dims: &[(Dim, u32)]) -> u32 {
    dims.iter().map(|d| d.1).sum()
}

fn matrix(ins: Vec<(Dim, u32)>, outs: Vec<(Dim, u32)>) -> impl Strategy<Value = LinearLayout> {
    let (n, rows) = (total(&ins) as usize, total(&outs));
    // Zeros and repetitions often enough to see broadcasting and deficient rank.
    let column = prop_oneof![
        1 => Just(0u64),
        3 => (0..rows.max(1)).prop_map(move |b| (1 << b) & f2::low_mask(rows)),
        2 => 0..=f2::low_mask(rows),
    ];
    proptest::collection::vec(column, n)
        .prop_map(move |columns| LinearLayout::from_columns(&ins, &outs, columns).unwrap())
}

fn any_layout() -> impl Strategy<Value = LinearLayout> {
    (dims(IN_DIMS.to_vec(), 3), dims(mid_dims().to_vec(), 3)).prop_flat_map(|(i, o)| matrix(i, o))
}

fn surjective() -> impl Strategy<Value = LinearLayout> {
    // A random layout cut down to what it reaches: choose pivots, express every column in them.
    any_layout().prop_map(|layout| {
        let basis = f2::basis(layout.columns());
        let columns = layout.columns().iter().map(|&c| f2::solve(&basis, c).unwrap());
        let outs = [(Dim::new("x"), basis.len() as u32 / 2), (Dim::new("y"), basis.len().div_ceil(2) as u32)];
        let ins: Vec<_> = layout.in_dim_bits().collect();
        LinearLayout::from_columns(&ins, &outs, columns).unwrap()
    })
}

/// Layouts that can be composed, the first into the second into the third.
fn chain() -> impl Strategy<Value = (LinearLayout, LinearLayout, LinearLayout)> {
    let names = |prefix: &str| (0..3).map(|i| Dim::new(&format!("{prefix}{i}"))).collect::<Vec<_>>();
    (dims(names("a"), 3), dims(names("b"), 3), dims(names("c"), 3), dims(names("d"), 3))
        .prop_flat_map(|(a, b, c, d)| (matrix(a, b.clone()), matrix(b, c.clone()), matrix(c, d)))
}

fn identity_on(dims: impl Iterator<Item = (Dim, u32)>) -> LinearLayout {
    let dims: Vec<_> = dims.collect();
    LinearLayout::from_columns(&dims, &dims, (0..total(&dims)).map(|i| 1 << i)).unwrap()
}

fn inputs(layout: &LinearLayout) -> std::ops::Range<u64> {
    0..1 << layout.total_in_bits()
}

proptest! {
    #[test]
    fn apply_is_linear(l in any_layout(), x in any::<u64>(), y in any::<u64>()) {
        let mask = f2::low_mask(l.total_in_bits());
        let (x, y) = (x & mask, y & mask);
        prop_assert_eq!(l.apply_packed(x ^ y), l.apply_packed(x) ^ l.apply_packed(y));
        let point = l.apply(&l.unpack_in(x)).unwrap();
        prop_assert_eq!(l.pack_out(&point).unwrap(), l.apply_packed(x));
    }

    #[test]
    fn bases_round_trip(l in any_layout()) {
        let bases: Vec<_> = l.in_dims()
            .map(|d| (d, (0..l.in_bits(d)).map(|b| l.basis_coords(d, b).unwrap().to_vec()).collect::<Vec<_>>()))
            .collect();
        let outs: Vec<_> = l.out_dims().map(|d| (d, l.out_size(d).unwrap())).collect();
        let again = LinearLayout::from_bases_sized(&bases, &outs, false).unwrap();
        prop_assert_eq!(&again, &l);
        let checked = LinearLayout::from_bases_sized(&bases, &outs, true);
        prop_assert_eq!(checked.is_ok(), l.is_surjective());
    }

    #[test]
    fn composition_is_applying_twice((f, g, _) in chain()) {
        let both = f.compose(&g).unwrap();
        for x in inputs(&f) {
            let middle = f.unpack_out(f.apply_packed(x));
            prop_assert_eq!(both.apply_packed(x), g.apply_packed(g.pack_in(&middle).unwrap()));
        }
    }

    #[test]
    fn composition_is_associative((f, g, h) in chain()) {
        let left = f.compose(&g).unwrap().compose(&h).unwrap();
        let right = f.compose(&g.compose(&h).unwrap()).unwrap();
        prop_assert_eq!(left, right);
    }

    #[test]
    fn composition_matches_by_name((f, g, _) in chain()) {
        let reversed: Vec<Dim> = f.out_dims().rev().collect();
        let turned = f.transpose_outs(&reversed).unwrap();
        prop_assert_eq!(turned.compose(&g).unwrap(), f.compose(&g).unwrap());
    }

    #[test]
    fn the_identity_is_neutral(l in any_layout()) {
        prop_assert_eq!(identity_on(l.in_dim_bits()).compose(&l).unwrap(), l.clone());
        prop_assert_eq!(l.compose(&identity_on(l.out_dim_bits())).unwrap(), l.clone());
        prop_assert_eq!(l.product(&LinearLayout::empty()).unwrap(), l.clone());
        prop_assert_eq!(LinearLayout::empty().product(&l).unwrap(), l);
    }

    #[test]
    fn a_product_acts_on_low_and_high_bits(f in any_layout(), g in any_layout()) {
        let Ok(p) = f.product(&g) else { return Ok(()) };
        for x in inputs(&p).step_by(7) {
            let point = p.unpack_in(x);
            let split = |l: &LinearLayout, high: bool| -> Vec<(Dim, u64)> {
                l.in_dims().map(|d| {
                    let value = point.iter().find(|e| e.0 == d).map_or(0, |e| e.1);
                    (d, if high { value >> f.in_bits(d) } else { value & f2::low_mask(f.in_bits(d)) })
                }).collect()
            };
            let (low, high) = (f.apply(&split(&f, false)).unwrap(), g.apply(&split(&g, true)).unwrap());
            for (d, value) in p.unpack_out(p.apply_packed(x)) {
                let part = |point: &[(Dim, u64)]| point.iter().find(|e| e.0 == d).map_or(0, |e| e.1);
                prop_assert_eq!(value, part(&low) | part(&high) << f.out_bits(d));
            }
        }
    }

    #[test]
    fn a_product_is_associative_up_to_order(f in any_layout(), g in any_layout(), h in any_layout()) {
        let left = f.product(&g).and_then(|fg| fg.product(&h));
        let right = g.product(&h).and_then(|gh| f.product(&gh));
        if let (Ok(left), Ok(right)) = (left, right) {
            prop_assert!(left.equal_up_to_dim_order(&right), "{left} vs {right}");
        }
    }

    #[test]
    fn division_undoes_the_product(f in any_layout(), g in any_layout()) {
        let Ok(p) = f.product(&g) else { return Ok(()) };
        // The quotient keeps all dimensions, those used up with size one.
        let rest = p.divide_left(&f).expect("f is a left factor");
        prop_assert_eq!(&f.product(&rest).unwrap(), &p);
        let rest = p.divide_right(&g).expect("g is a right factor");
        prop_assert!(rest.product(&g).unwrap().equal_up_to_dim_order(&p));
    }

    #[test]
    fn a_quotient_is_a_factor(l in any_layout(), tile in any_layout()) {
        // Division goes by names, so the factors may list their dimensions in another order than `l`.
        let in_order = |of: &LinearLayout| {
            let ins: Vec<_> = l.in_dims().filter(|&d| of.has_in_dim(d)).collect();
            let outs: Vec<_> = l.out_dims().filter(|&d| of.has_out_dim(d)).collect();
            of.transpose_ins(&ins).and_then(|of| of.transpose_outs(&outs)).unwrap()
        };
        if let Some(rest) = l.divide_left(&tile) {
            prop_assert_eq!(&in_order(&tile).product(&rest).unwrap(), &l);
        }
        if let Some(rest) = l.divide_right(&tile) {
            prop_assert_eq!(&rest.product(&in_order(&tile)).unwrap(), &l);
        }
    }

    #[test]
    fn rank_says_what_is_reached(l in any_layout()) {
        let mut reached: Vec<u64> = inputs(&l).map(|x| l.apply_packed(x)).collect();
        reached.sort_unstable();
        reached.dedup();
        prop_assert_eq!(reached.len(), 1usize << l.rank());
        prop_assert_eq!(l.is_surjective(), reached.len() as u64 == 1 << l.total_out_bits());
        prop_assert_eq!(l.is_injective(), reached.len() as u64 == 1 << l.total_in_bits());
        let free: u32 = l.free_variable_masks().map(|(_, m)| m.count_ones()).sum();
        prop_assert_eq!(free + l.rank(), l.total_in_bits());
    }

    #[test]
    fn an_inverse_undoes_and_exists_when_it_should(l in any_layout()) {
        match l.invert() {
            Ok(inverse) => {
                prop_assert!(l.is_invertible());
                prop_assert_eq!(l.compose(&inverse).unwrap(), identity_on(l.in_dim_bits()));
                prop_assert_eq!(inverse.compose(&l).unwrap(), identity_on(l.out_dim_bits()));
                prop_assert_eq!(inverse.invert().unwrap(), l);
            }
            Err(error) => {
                prop_assert!(!l.is_invertible());
                let is_not_invertible = matches!(error, Error::NotInvertible { .. });
                prop_assert!(is_not_invertible);
            }
        }
    }

    #[test]
    fn a_pseudo_inverse_is_one_on_both_sides(l in any_layout()) {
        let p = l.pseudo_invert();
        prop_assert_eq!(&l.compose(&p).unwrap().compose(&l).unwrap(), &l);
        prop_assert_eq!(&p.compose(&l).unwrap().compose(&p).unwrap(), &p);
        if l.is_surjective() {
            prop_assert_eq!(p.compose(&l).unwrap(), identity_on(l.out_dim_bits()));
        }
        if l.is_injective() {
            prop_assert_eq!(l.compose(&p).unwrap(), identity_on(l.in_dim_bits()));
        }
    }

    #[test]
    fn a_conversion_finds_every_element(b in surjective(), seed in any::<u64>()) {
        // Some A into the same space: columns of B, mixed.
        let shift = (seed % 64) as u32;
        let columns = b.columns().iter().enumerate().map(|(i, &c)| {
            if seed.rotate_left(i as u32) & 1 == 1 { b.apply_packed(seed.rotate_right(shift + i as u32)) } else { c }
        });
        let (ins, outs): (Vec<_>, Vec<_>) = (b.in_dim_bits().collect(), b.out_dim_bits().collect());
        let a = LinearLayout::from_columns(&ins, &outs, columns).unwrap();
        for x in [a.invert_and_compose(&b).unwrap(), a.solve_for(&b).unwrap()] {
            prop_assert_eq!(&x.compose(&b).unwrap(), &a);
        }
        let x = a.invert_and_compose(&b).unwrap();
        for dim in a.in_dims() {
            if a.columns_of(dim) == b.columns_of(dim) {
                prop_assert!(x.sublayout_is_identity(&[dim], &[dim]));
            }
        }
        let local = a.solve_for(&b).unwrap();
        for (i, (ca, cb)) in a.columns().iter().zip(b.columns()).enumerate() {
            if ca == cb {
                prop_assert_eq!(local.columns()[i], 1 << i);
            }
        }
    }

    #[test]
    fn broadcast_data_come_from_one_place(picks in proptest::collection::vec(0usize..6, 8), wanted in 0u64..16) {
        // B: unit vectors of 4 bits with repetitions and zeros. Of all inputs that hold a point, the
        // solution is one with the fewest bits set.
        let unit = [0, 1, 2, 4, 8, 1];
        let columns: Vec<u64> = picks.iter().map(|&p| unit[p]).collect();
        let outs = [(Dim::new("x"), 4)];
        let b = LinearLayout::from_columns(&[(Dim::LANE, 8)], &outs, columns).unwrap();
        let a = LinearLayout::from_columns(&[(Dim::REGISTER, 1)], &outs, [wanted]).unwrap();
        let fewest = inputs(&b).filter(|&i| b.apply_packed(i) == wanted).map(u64::count_ones).min();
        match a.invert_and_compose(&b) {
            Ok(x) => prop_assert_eq!(Some(x.columns()[0].count_ones()), fewest),
            Err(error) => {
                prop_assert_eq!(error, Error::NoSolution { dim: Dim::REGISTER, bit: 0 });
                prop_assert_eq!(fewest, None);
            }
        }
    }

    #[test]
    fn reshaping_and_transposing_round_trip(l in any_layout()) {
        let ins: Vec<_> = l.in_dims().map(|d| (d, l.in_size(d).unwrap())).collect();
        let outs: Vec<_> = l.out_dims().map(|d| (d, l.out_size(d).unwrap())).collect();
        prop_assert_eq!(&l.flatten_ins().unwrap().reshape_ins(&ins).unwrap(), &l);
        prop_assert_eq!(&l.flatten_outs().unwrap().reshape_outs(&outs).unwrap(), &l);
        let (in_order, out_order): (Vec<_>, Vec<_>) = (l.in_dims().collect(), l.out_dims().collect());
        let (mut in_back, mut out_back) = (in_order.clone(), out_order.clone());
        in_back.reverse();
        out_back.reverse();
        let turned = l.transpose_ins(&in_back).unwrap().transpose_outs(&out_back).unwrap();
        prop_assert!(turned.equal_up_to_dim_order(&l));
        for x in inputs(&l) {
            let point = l.unpack_in(x);
            prop_assert_eq!(turned.pack_out(&l.apply(&point).unwrap()), turned.apply(&point).and_then(|p| turned.pack_out(&p)));
        }
        prop_assert_eq!(turned.transpose_ins(&in_order).unwrap().transpose_outs(&out_order).unwrap(), l);
    }

    #[test]
    fn parts_put_together_are_the_whole(l in any_layout(), cut in 0usize..4) {
        let (ins, outs): (Vec<_>, Vec<_>) = (l.in_dims().collect(), l.out_dims().collect());
        let (a, b) = ins.split_at(cut.min(ins.len()));
        let joined = l.sublayout(a, &outs).unwrap().concat_ins(&l.sublayout(b, &outs).unwrap()).unwrap();
        prop_assert_eq!(&joined, &l);
        let (a, b) = outs.split_at(cut.min(outs.len()));
        let joined = l.sublayout(&ins, a).unwrap().concat_outs(&l.sublayout(&ins, b).unwrap()).unwrap();
        prop_assert_eq!(&joined, &l);
        prop_assert_eq!(l.sublayout(&ins, a).unwrap().columns().iter().all(|&c| c == 0), l.sublayout_is_zero(&ins, a));
    }

    #[test]
    fn resizing_wraps_and_grows(l in any_layout(), bits in 0u32..5) {
        for dim in l.out_dims() {
            let resized = l.resize_out(dim, 1 << bits).unwrap();
            for x in inputs(&l).step_by(3) {
                let point = resized.unpack_out(resized.apply_packed(x));
                for (d, c) in l.unpack_out(l.apply_packed(x)) {
                    let expected = if d == dim { c & f2::low_mask(bits) } else { c };
                    prop_assert_eq!(point.iter().find(|e| e.0 == d).unwrap().1, expected);
                }
            }
        }
        for dim in l.in_dims() {
            let resized = l.resize_in(dim, 1 << bits).unwrap();
            prop_assert_eq!(resized.in_bits(dim), bits);
            let kept = bits.min(l.in_bits(dim)) as usize;
            prop_assert_eq!(&resized.columns_of(dim)[..kept], &l.columns_of(dim)[..kept]);
            prop_assert!(resized.columns_of(dim)[kept..].iter().all(|&c| c == 0));
        }
    }

    #[test]
    fn a_quotient_by_an_identity_gives_the_rest(l in any_layout(), bits in 0u32..3) {
        let dim = Dim::new("cluster");
        let with = l.product(&identity_on([(dim, bits)].into_iter())).unwrap();
        prop_assert_eq!(with.quotient(&[dim]), Some(l.clone()));
        prop_assert_eq!(with.unsqueeze_in(Dim::new("one")).unwrap().squeeze_in(Dim::new("one")).unwrap(), with);
    }

    #[test]
    fn consecutive_is_an_identity_block(l in any_layout()) {
        let n = l.num_consecutive_in_out();
        if let Some(first) = l.in_dims().next() {
            let (one_in, one_out) = (Dim::new("i"), Dim::new("o"));
            let flat = l.rename_in(first, one_in).unwrap();
            let flat = flat.flatten_outs().unwrap();
            let only = flat.out_dims().next().unwrap();
            let flat = flat.rename_out(only, one_out).unwrap();
            let tile = |n| LinearLayout::identity_1d(n, one_in, one_out).unwrap();
            prop_assert!(flat.divide_left(&tile(n)).is_some());
            prop_assert!(flat.divide_left(&tile(2 * n)).is_none());
        } else {
            prop_assert_eq!(n, 1);
        }
    }

    #[test]
    fn every_element_is_in_the_table(l in any_layout()) {
        let holders = l.holders().unwrap();
        prop_assert_eq!(holders.iter().map(Vec::len).sum::<usize>(), 1usize << l.total_in_bits());
        let lines = l.table_display().to_string();
        let rows = l.total_out_bits() - l.out_dim_bits().last().map_or(0, |d| d.1);
        prop_assert_eq!(lines.lines().count(), 1usize << rows);
        prop_assert_eq!(l.matrix_display().to_string().lines().count() as u32, 2 + l.total_out_bits());
    }
}

/// A size of 1, 2, 4 or 8.
fn size() -> impl Strategy<Value = u64> {
    (0u32..4).prop_map(|bits| 1 << bits)
}

proptest! {
    /// A blocked layout is the product of its registers, lanes and warps, repeated along registers until it covers the
    /// shape; where the shape is smaller, registers beyond it do not exist, and lanes and warps there hold replicas.
    #[test]
    fn a_blocked_layout_is_the_product_of_its_parts(
        parts in proptest::array::uniform3(proptest::array::uniform2(size())),
        shape in proptest::array::uniform2((0u32..9).prop_map(|bits| 1u64 << bits)),
        row_major in any::<bool>(),
    ) {
        let order = if row_major { [1, 0] } else { [0, 1] };
        let [registers, lanes, warps] = parts;
        let text = format!(
            "#ttg.blocked<{{sizePerThread = {registers:?}, threadsPerWarp = {lanes:?}, warpsPerCTA = {warps:?}, \
             order = {order:?}}}>"
        );
        let encoding: linear_layout::Encoding = text.parse().unwrap();
        let mut product = LinearLayout::empty();
        for (sizes, dim) in parts.iter().zip([Dim::REGISTER, Dim::LANE, Dim::WARP]) {
            for d in order {
                let part = LinearLayout::identity_1d(sizes[d], dim, Dim::out(d)).unwrap();
                product = product.product(&part).unwrap();
            }
        }
        let tile = |d: usize| registers[d] * lanes[d] * warps[d];
        for d in order {
            let more = LinearLayout::identity_1d((shape[d] / tile(d)).max(1), Dim::REGISTER, Dim::out(d)).unwrap();
            product = product.product(&more).unwrap();
        }
        let product = product.transpose_outs(&[Dim::out(0), Dim::out(1)]).unwrap();
        let fits = |word: u64| product.coords(word).iter().zip(shape).all(|(c, size)| *c < size);
        let expected = [Dim::REGISTER, Dim::LANE, Dim::WARP].map(|dim| {
            let columns = product.columns_of(dim).iter().map(|c| product.coords(*c).to_vec());
            let kept = columns.zip(product.columns_of(dim)).filter_map(|(coords, word)| match fits(*word) {
                true => Some(coords),
                false => (dim != Dim::REGISTER).then(|| vec![0, 0]),
            });
            kept.collect::<Vec<_>>()
        });
        let layout = encoding.to_linear_layout(&shape).unwrap();
        let found = [Dim::REGISTER, Dim::LANE, Dim::WARP].map(|dim| {
            layout.columns_of(dim).iter().map(|c| layout.coords(*c).to_vec()).collect::<Vec<_>>()
        });
        prop_assert_eq!(found, expected);
        prop_assert_eq!(layout.out_dim_bits().collect::<Vec<_>>(), [0, 1].map(|d| (Dim::out(d), shape[d].ilog2())));
        prop_assert_eq!(layout.in_bits(Dim::BLOCK), 0);
        prop_assert!(layout.has_in_dim(Dim::BLOCK));
    }
}
