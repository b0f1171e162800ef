//! Plans broken in one place each, of every kind: the checkers must refute all of them, and the plans as they were
//! made none.

use std::fmt::Debug;

use linear_layout::checker::*;
use linear_layout::plan::*;
use linear_layout::target::{Direction, TargetDesc};
use linear_layout::{Dim, Encoding, LinearLayout};

fn target(name: &str) -> TargetDesc {
    TargetDesc::parse(name).unwrap()
}

fn layout(encoding: &str, shape: &[u64]) -> LinearLayout {
    encoding
        .parse::<Encoding>()
        .unwrap_or_else(|e| panic!("{encoding}: {e}"))
        .to_linear_layout(shape)
        .unwrap()
}

fn blocked(size: [u64; 2], threads: [u64; 2], warps: [u64; 2], order: [u64; 2]) -> String {
    format!(
        "#ttg.blocked<{{sizePerThread = {size:?}, threadsPerWarp = {threads:?}, warpsPerCTA = {warps:?}, order = {order:?}}}>"
    )
}

/// What is changed, and how.
struct Mutation<P>(String, Box<dyn Fn(&mut P)>);

fn mutation<P>(name: impl Into<String>, change: impl Fn(&mut P) + 'static) -> Mutation<P> {
    Mutation(name.into(), Box::new(change))
}

/// Mutations of a part of a plan.
fn within<P: 'static, Q: 'static>(
    name: &str,
    part: fn(&mut P) -> &mut Q,
    mutations: Vec<Mutation<Q>>,
) -> Vec<Mutation<P>> {
    let lift = |m: Mutation<Q>| mutation(format!("{name}: {}", m.0), move |plan: &mut P| m.1(part(plan)));
    mutations.into_iter().map(lift).collect()
}

/// The plan is right, and every mutation of it is caught.
fn all_are_caught<P: Clone + PartialEq + Debug, R: Debug>(
    plan: &P,
    mutations: impl IntoIterator<Item = Mutation<P>>,
    check: impl Fn(&P) -> Result<R, CheckError>,
) {
    if let Err(error) = check(plan) {
        panic!("the plan itself: {error}\n{plan:#?}");
    }
    let mut tried = 0;
    for Mutation(name, change) in mutations {
        let mut broken = plan.clone();
        change(&mut broken);
        assert!(broken != *plan, "{name}: changes nothing");
        assert!(check(&broken).is_err(), "{name}: not caught in {plan:#?}");
        tried += 1;
    }
    assert!(tried > 0);
}

fn shorten<T>(list: &mut Vec<T>) {
    list.pop();
}

/// Every number of a cost, one more and one less.
fn costs() -> Vec<Mutation<Cost>> {
    type Field = fn(&mut Cost) -> &mut u64;
    let fields: [(&str, Field); 9] = [
        ("shuffles", |c| &mut c.shuffles),
        ("selects", |c| &mut c.selects),
        ("permutes", |c| &mut c.permutes),
        ("address computations", |c| &mut c.address_ops),
        ("stores", |c| &mut c.stores),
        ("loads", |c| &mut c.loads),
        ("barriers", |c| &mut c.barriers),
        ("wavefronts", |c| &mut c.wavefronts),
        ("least wavefronts", |c| &mut c.minimum_wavefronts),
    ];
    let one = |(name, field): (&'static str, Field)| {
        [
            mutation(format!("more {name}"), move |c: &mut Cost| *field(c) += 1),
            mutation(format!("fewer {name}"), move |c: &mut Cost| *field(c) = field(c).wrapping_sub(1)),
        ]
    };
    let cycles = [
        mutation("more cycles", |c: &mut Cost| c.cycles += 0.5),
        mutation("fewer cycles", |c: &mut Cost| c.cycles -= 0.5),
    ];
    fields.into_iter().flat_map(one).chain(cycles).collect()
}

/// What all accesses to shared memory have: numbers, registers, addresses.
fn accesses() -> Vec<Mutation<AccessPlan>> {
    vec![
        mutation("more instructions", |a: &mut AccessPlan| a.count += 1),
        mutation("fewer instructions", |a: &mut AccessPlan| a.count -= 1),
        mutation("more wavefronts", |a: &mut AccessPlan| a.wavefronts += 1),
        mutation("fewer wavefronts", |a: &mut AccessPlan| a.wavefronts -= 1),
        mutation("a higher minimum", |a: &mut AccessPlan| a.minimum += 1),
        mutation("a lower minimum", |a: &mut AccessPlan| a.minimum -= 1),
        mutation("more permutes", |a: &mut AccessPlan| a.packing_ops += 1),
        mutation("more words moved", |a: &mut AccessPlan| a.fragment_moves += 1),
        mutation("more addresses", |a: &mut AccessPlan| a.address_ops += 1),
        mutation("an access dropped", |a: &mut AccessPlan| shorten(&mut a.accesses)),
        mutation("an access twice", |a: &mut AccessPlan| a.accesses.push(a.accesses[0].clone())),
        mutation("registers swapped", |a: &mut AccessPlan| {
            let registers = &a.accesses[0].registers;
            match registers.len() {
                1 => a.accesses.swap(0, 1),
                n => a.accesses[0].registers.swap(0, n - 1),
            }
            // Of single registers the addresses stay.
            let offset = a.accesses[0].offset;
            if a.accesses[0].registers.len() == 1 {
                a.accesses[0].offset = std::mem::replace(&mut a.accesses[1].offset, offset);
            }
        }),
        mutation("a register dropped", |a: &mut AccessPlan| shorten(&mut a.accesses[0].registers)),
        mutation("the offset of an access", |a: &mut AccessPlan| a.accesses[0].offset ^= 8),
        mutation("an offset within an access", |a: &mut AccessPlan| a.accesses[0].offset ^= 1),
        mutation("a pass", |a: &mut AccessPlan| a.accesses[0].tile ^= 1),
        mutation("the address of a lane", |a: &mut AccessPlan| a.address.lane[0] ^= 16),
        mutation("no address of a lane", |a: &mut AccessPlan| a.address.lane[4] = 0),
        mutation("the address of a warp", |a: &mut AccessPlan| a.address.warp[0] ^= 32),
        mutation("a lane in another pass", |a: &mut AccessPlan| a.tile.lane[0] ^= 1),
        mutation("a lane that is idle", |a: &mut AccessPlan| a.inactive.lane ^= 1),
        mutation("a warp that is idle", |a: &mut AccessPlan| a.inactive.warp ^= 1),
        mutation("a copy", |a: &mut AccessPlan| a.copies[1] = a.copies[0]),
        mutation("copies missing", |a: &mut AccessPlan| shorten(&mut a.copies)),
        mutation("narrower elements", |a: &mut AccessPlan| a.storage_bits /= 2),
        mutation("wider elements", |a: &mut AccessPlan| a.storage_bits *= 2),
        mutation("the other direction", |a: &mut AccessPlan| {
            a.direction = match a.direction {
                Direction::Load => Direction::Store,
                Direction::Store => Direction::Load,
            }
        }),
        mutation("another width", |a: &mut AccessPlan| {
            a.instruction = match a.instruction {
                MemoryInstruction::Vector { bits } => MemoryInstruction::Vector { bits: bits / 2 },
                MemoryInstruction::Matrix { count, transposed } => {
                    MemoryInstruction::Matrix { count: count / 2, transposed }
                }
                MemoryInstruction::MatrixBytes { words } => {
                    MemoryInstruction::MatrixBytes { words: words / 2 }
                }
                _ => MemoryInstruction::Vector { bits: 64 },
            }
        }),
        mutation("another instruction", |a: &mut AccessPlan| {
            a.instruction = match a.instruction {
                MemoryInstruction::Matrix { count, transposed } => {
                    MemoryInstruction::Matrix { count, transposed: !transposed }
                }
                MemoryInstruction::Vector { .. } => MemoryInstruction::Matrix { count: 4, transposed: false },
                _ => MemoryInstruction::Vector { bits: 32 },
            }
        }),
    ]
}

const MMA: &str =
    "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>";

fn rows() -> String {
    blocked([1, 8], [2, 16], [4, 1], [1, 0])
}

fn columns() -> String {
    blocked([8, 1], [16, 2], [1, 4], [0, 1])
}

fn shared(plan: &mut ConversionPlan) -> &mut SharedPlan {
    match &mut plan.conversion {
        Conversion::SharedMemory(p) | Conversion::Cluster(p) => p,
        other => panic!("{other:?}"),
    }
}

fn shuffle(plan: &mut ConversionPlan) -> &mut ShufflePlan {
    match &mut plan.conversion {
        Conversion::WarpShuffle(p) => p,
        other => panic!("{other:?}"),
    }
}

/// What every conversion has.
fn conversions() -> Vec<Mutation<ConversionPlan>> {
    let mut all = within("cost", |plan: &mut ConversionPlan| &mut plan.cost, costs());
    all.extend([
        mutation("nothing is done", |plan: &mut ConversionPlan| plan.conversion = Conversion::NoOp),
        mutation("more warps", |plan: &mut ConversionPlan| plan.warp_bits += 1),
    ]);
    all
}

#[test]
fn conversions_through_shared_memory() {
    let mut used = Vec::new();
    for (from, to, bits, name, budget) in [
        (rows(), columns(), 32, "cuda:80", 1 << 17),
        // ldmatrix, stmatrix, transposed reads, passes.
        (rows(), columns(), 16, "cuda:90", 1 << 17),
        (MMA.to_owned(), rows(), 16, "cuda:90", 1 << 17),
        (rows(), columns(), 16, "hip:gfx942", 1 << 15),
        (rows(), columns(), 32, "cuda:90", 20 << 10),
        (rows(), columns(), 16, "hip:gfx950", 1 << 17),
        (rows(), columns(), 8, "cuda:100", 1 << 17),
    ] {
        let target = target(name);
        let lanes = |text: &str| {
            if target.lanes == 64 {
                text.replace("[2, 16]", "[4, 16]").replace("[16, 2]", "[16, 4]")
            } else {
                text.to_owned()
            }
        };
        let (a, b) = (layout(&lanes(&from), &[128, 128]), layout(&lanes(&to), &[128, 128]));
        let plan = ConversionPlan::with_budget(&a, &b, bits, &target, budget).unwrap();
        used.extend(plan.instructions());
        let mut mutations = conversions();
        mutations.extend(within("store", |plan| &mut shared(plan).store, accesses()));
        mutations.extend(within("load", |plan| &mut shared(plan).load, accesses()));
        mutations.extend([
            mutation("a narrow barrier", |plan: &mut ConversionPlan| shared(plan).scope = Scope::Warp),
            mutation("a wide barrier", |plan: &mut ConversionPlan| shared(plan).scope = Scope::Cluster),
            mutation("half the memory", |plan: &mut ConversionPlan| shared(plan).shared_bytes /= 2),
            mutation("twice the memory", |plan: &mut ConversionPlan| shared(plan).shared_bytes *= 2),
            mutation("a pass more", |plan: &mut ConversionPlan| shared(plan).tiles *= 2),
            mutation("no pass", |plan: &mut ConversionPlan| shared(plan).tiles = 0),
            mutation("wider elements", |plan: &mut ConversionPlan| plan.elem_bits *= 4),
            mutation("another block's memory", |plan: &mut ConversionPlan| {
                shared(plan).load.block = Some(ThreadBases::default())
            }),
            mutation("stored to another block", |plan: &mut ConversionPlan| {
                shared(plan).store.block = Some(ThreadBases::default())
            }),
            mutation("across a cluster", |plan: &mut ConversionPlan| {
                let inner = shared(plan).clone();
                plan.conversion = Conversion::Cluster(inner);
            }),
            mutation("another memory layout", |plan: &mut ConversionPlan| {
                let p = shared(plan);
                let offsets = p.layout.in_bits(Dim::OFFSET);
                let mut columns = p.layout.columns().to_vec();
                columns.swap(0, offsets as usize - 1);
                let outs: Vec<(Dim, u32)> = p.layout.out_dim_bits().collect();
                let ins: Vec<(Dim, u32)> = p.layout.in_dim_bits().collect();
                p.layout = LinearLayout::from_columns(&ins, &outs, columns).unwrap();
            }),
        ]);
        all_are_caught(&plan, mutations, |plan| check_conversion(plan, &a, &b, &target));
    }
    for name in ["ldmatrix.x4.trans", "stmatrix", ".trans.b8"] {
        assert!(used.iter().any(|i| i.contains(name)), "{name}: {used:?}");
    }
}

#[test]
fn conversions_across_a_cluster() {
    let of = |reg: u64, block: u64| {
        let lanes: Vec<[u64; 1]> = (0..5).map(|i| [1 << i]).collect();
        let bases = [(Dim::REGISTER, vec![[reg]]), (Dim::LANE, lanes), (Dim::BLOCK, vec![[block]])];
        LinearLayout::from_bases(&bases, &[Dim::out(0)]).unwrap()
    };
    let (a, b, target) = (of(32, 64), of(64, 32), target("cuda:90"));
    let plan = ConversionPlan::new(&a, &b, 32, &target).unwrap();
    let bases = |plan: &mut ConversionPlan, change: fn(&mut ThreadBases)| {
        change(shared(plan).load.block.as_mut().unwrap())
    };
    let mut mutations = conversions();
    mutations.extend([
        mutation("a narrow barrier", |plan: &mut ConversionPlan| shared(plan).scope = Scope::Block),
        mutation("the own block only", |plan: &mut ConversionPlan| shared(plan).load.block = None),
        mutation("the other block", move |plan: &mut ConversionPlan| bases(plan, |b| b.block[0] ^= 1)),
        mutation("lanes of other blocks", move |plan: &mut ConversionPlan| bases(plan, |b| b.lane[0] ^= 1)),
        mutation("an access to another block", |plan: &mut ConversionPlan| {
            shared(plan).load.accesses[0].block ^= 1
        }),
        mutation("within a block", |plan: &mut ConversionPlan| {
            let inner = shared(plan).clone();
            plan.conversion = Conversion::SharedMemory(inner);
        }),
    ]);
    all_are_caught(&plan, mutations, |plan| check_conversion(plan, &a, &b, &target));
}

#[test]
fn registers_renamed() {
    let a = layout(&blocked([2, 2], [8, 4], [4, 1], [1, 0]), &[64, 8]);
    let swap = linear_layout::RegisterAction::new(Dim::REGISTER, 2, &[1, 0]).unwrap();
    let (b, target) = (swap.apply_to_layout(&a).unwrap(), target("cuda:90"));
    let plan = ConversionPlan::new(&a, &b, 16, &target).unwrap();
    let sources = |plan: &mut ConversionPlan, change: fn(&mut Vec<u32>)| match &mut plan.conversion {
        Conversion::RegisterPermute { sources } => change(sources),
        other => panic!("{other:?}"),
    };
    let mut mutations = conversions();
    mutations.extend([
        mutation("two swapped", move |plan: &mut ConversionPlan| sources(plan, |s| s.swap(0, 1))),
        mutation("one dropped", move |plan: &mut ConversionPlan| sources(plan, shorten)),
        mutation("one too many", move |plan: &mut ConversionPlan| sources(plan, |s| s.push(0))),
        mutation("one that is not there", move |plan: &mut ConversionPlan| sources(plan, |s| s[2] = 4)),
    ]);
    all_are_caught(&plan, mutations, |plan| check_conversion(plan, &a, &b, &target));
    let same = ConversionPlan::new(&a, &a, 16, &target).unwrap();
    let costs = within("cost", |plan: &mut ConversionPlan| &mut plan.cost, costs());
    all_are_caught(&same, costs, |plan| check_conversion(plan, &a, &a, &target));
}

#[test]
fn exchanges_between_lanes() {
    let operand = format!("#ttg.dot_op<{{opIdx = 0, parent = {MMA}, kWidth = 4}}>");
    let unit = |columns: &[u64], registers: u32, lanes: u32| {
        let ins = [(Dim::REGISTER, registers), (Dim::LANE, lanes)];
        LinearLayout::from_columns(&ins, &[(Dim::out(0), registers + lanes)], columns.iter().copied())
            .unwrap()
    };
    let cases = [
        // Selects on both sides, payloads of two elements.
        (layout(MMA, &[64, 32]), layout(&operand, &[64, 32]), 8, "cuda:90"),
        // By XOR; elements of two words; by DPP; by index.
        (unit(&[1, 2, 4, 8, 16, 32, 64], 2, 5), unit(&[64, 32, 4, 8, 16, 1, 2], 2, 5), 32, "cuda:90"),
        (unit(&[1, 2, 4, 8, 16, 32, 64], 2, 5), unit(&[64, 32, 4, 8, 16, 1, 2], 2, 5), 64, "cuda:90"),
        (unit(&[1, 2, 4, 8, 16, 32, 64], 1, 6), unit(&[2, 1, 4, 8, 16, 32, 64], 1, 6), 32, "hip:gfx942"),
        (unit(&[1, 2, 4, 8, 16, 32], 1, 5), unit(&[4, 2, 8, 1, 32, 16], 1, 5), 32, "cuda:90"),
    ];
    for (a, b, bits, name) in cases {
        let target = target(name);
        let plan = ConversionPlan::through_shuffles(&a, &b, bits, &target).unwrap().unwrap();
        let Conversion::WarpShuffle(p) = plan.conversion.clone() else { panic!("{plan}") };
        let mut mutations = conversions();
        mutations.extend([
            mutation("a round dropped", |plan: &mut ConversionPlan| shorten(&mut shuffle(plan).rounds)),
            mutation("rounds swapped", |plan: &mut ConversionPlan| shuffle(plan).rounds.swap(0, 1)),
            mutation("another payload", |plan: &mut ConversionPlan| shuffle(plan).rounds[1].payload ^= 1),
            mutation("no such payload", |plan: &mut ConversionPlan| shuffle(plan).rounds[0].payload = 99),
            mutation("targets swapped", |plan: &mut ConversionPlan| shuffle(plan).targets.swap(0, 1)),
            mutation("a target dropped", |plan: &mut ConversionPlan| shorten(&mut shuffle(plan).targets)),
            mutation("sources swapped", |plan: &mut ConversionPlan| shuffle(plan).sources.swap(0, 1)),
            mutation("a source that is not there", |plan: &mut ConversionPlan| {
                shuffle(plan).sources[0][0] = 99
            }),
            mutation("no elements", |plan: &mut ConversionPlan| shuffle(plan).sources.clear()),
            mutation("wider elements", |plan: &mut ConversionPlan| shuffle(plan).storage_bits *= 2),
            mutation("narrower elements", |plan: &mut ConversionPlan| shuffle(plan).storage_bits /= 2),
            mutation("sent nowhere", |plan: &mut ConversionPlan| {
                shuffle(plan).rounds.iter_mut().for_each(|round| round.exchange = Exchange::Local);
            }),
            mutation("another lane", |plan: &mut ConversionPlan| {
                match &mut shuffle(plan).rounds.last_mut().unwrap().exchange {
                    Exchange::Xor { mask, .. } => *mask ^= 1,
                    Exchange::Index { base, .. } => *base ^= 1,
                    other => panic!("{other:?}"),
                }
            }),
            mutation("no such lane", |plan: &mut ConversionPlan| {
                match &mut shuffle(plan).rounds.last_mut().unwrap().exchange {
                    Exchange::Xor { mask, .. } => *mask ^= 64,
                    Exchange::Index { base, .. } => *base ^= 64,
                    other => panic!("{other:?}"),
                }
            }),
            mutation("another instruction", |plan: &mut ConversionPlan| {
                match &mut shuffle(plan).rounds.last_mut().unwrap().exchange {
                    Exchange::Xor { instruction, .. } => *instruction = ShuffleInstruction::PermlaneSwap,
                    Exchange::Index { instruction, .. } => *instruction = ShuffleInstruction::ShflBfly,
                    other => panic!("{other:?}"),
                }
            }),
        ]);
        for (n, side) in [(p.send.len(), 0), (p.receive.len(), 1)] {
            let stages = move |plan: &mut ConversionPlan, change: fn(&mut Vec<SelectStage>)| {
                let p = shuffle(plan);
                change(if side == 0 { &mut p.send } else { &mut p.receive });
            };
            mutations.push(mutation("a select added", move |plan: &mut ConversionPlan| {
                stages(plan, |s| {
                    s.push(SelectStage { xor: 1, condition: ThreadMasks { lane: 1, ..Default::default() } })
                });
            }));
            if n > 0 {
                mutations.push(mutation("a select dropped", move |plan: &mut ConversionPlan| {
                    stages(plan, shorten)
                }));
                mutations.push(mutation("other values", move |plan: &mut ConversionPlan| {
                    stages(plan, |s| s[0].xor ^= 2)
                }));
                mutations.push(mutation("other lanes", move |plan: &mut ConversionPlan| {
                    stages(plan, |s| s[0].condition.lane ^= 1)
                }));
                mutations.push(mutation("the other lanes", move |plan: &mut ConversionPlan| {
                    stages(plan, |s| s[0].condition.lane = 0)
                }));
            }
        }
        all_are_caught(&plan, mutations, |plan| check_conversion(plan, &a, &b, &target));
    }
}

fn loads_to_the_lds() {
    let wave_rows = blocked([1, 8], [8, 8], [4, 1], [1, 0]);
    let swizzled = "#ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 8, order = [1, 0]}>";
    let (d, m) = (layout(&wave_rows, &[64, 64]), layout(swizzled, &[64, 64]));
    let (facts, target, padding) = (AddressFacts::row_major(&d, 64, 64), target("hip:gfx950"), [(1024, 8)]);
    let plan = LdsLoadPlan::new(&d, &m, &padding, 16, &facts, &target).unwrap();
    fn sources(plan: &mut LdsLoadPlan) -> &mut LaneSources {
        plan.sources.as_mut().unwrap()
    }
    let mut mutations = within("access", |plan: &mut LdsLoadPlan| &mut plan.access, accesses());
    // No registers are packed or follow in fragments, nobody loads, and lanes have no address of their own.
    let meaningless =
        ["permutes", "words moved", "a pass", "another pass", "a copy", "copies missing", "direction"];
    mutations.retain(|m| !meaningless.iter().any(|what| m.0.ends_with(what)) && !m.0.contains("of a lane"));
    mutations.extend([
        mutation("another instruction", |plan: &mut LdsLoadPlan| {
            plan.mnemonic = "global_load_lds_dword".into()
        }),
        mutation("no exchange", |plan: &mut LdsLoadPlan| plan.sources = None),
        mutation("the source of a lane", |plan: &mut LdsLoadPlan| sources(plan).thread.lane[3] ^= 1),
        mutation("the source of a warp", |plan: &mut LdsLoadPlan| sources(plan).thread.warp[0] ^= 2),
        mutation("the source of a load", |plan: &mut LdsLoadPlan| sources(plan).loads[1] ^= 4),
        mutation("no source of a load", |plan: &mut LdsLoadPlan| shorten(&mut sources(plan).loads)),
    ]);
    let check = |plan: &LdsLoadPlan| check_lds_load(plan, &d, &m, &padding, &facts, &target);
    all_are_caught(&plan, mutations, check);
    let narrow = AddressFacts::row_major(&d, 4, 64);
    assert!(check_lds_load(&plan, &d, &m, &padding, &narrow, &target).is_err(), "runs of four elements only");
    assert!(check_lds_load(&plan, &d, &m, &[], &facts, &target).is_ok(), "offsets before padding");
}

#[test]
fn given_shared_memory() {
    let swizzled = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>";
    let operand = format!("#ttg.dot_op<{{opIdx = 0, parent = {MMA}, kWidth = 2}}>");
    let plain = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>";
    let mfma =
        "#ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [16, 16, 32], isTransposed = false}>";
    let transposed = format!("#ttg.dot_op<{{opIdx = 1, parent = {mfma}, kWidth = 4}}>");
    let wmma = "#ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}, instrShape = [16, 16, 32]}>";
    let squares = format!("#ttg.dot_op<{{opIdx = 1, parent = {wmma}, kWidth = 8}}>");
    for (distributed, memory, direction, name) in [
        (rows(), swizzled, Direction::Store, "cuda:80"),
        (operand.clone(), swizzled, Direction::Load, "cuda:80"),
        (columns(), plain, Direction::Load, "cuda:90"),
        (MMA.to_owned(), swizzled, Direction::Store, "cuda:90"),
        (transposed, swizzled, Direction::Load, "hip:gfx950"),
        (squares, swizzled, Direction::Load, "hip:gfx1250"),
    ] {
        let (d, m, target) = (layout(&distributed, &[64, 64]), layout(memory, &[64, 64]), target(name));
        let plan = SharedAccessPlan::new(&d, &m, 16, direction, &target).unwrap();
        assert_eq!(name == "hip:gfx950", plan.mnemonic == "ds_read_b64_tr_b16");
        assert_eq!(name == "hip:gfx1250", plan.mnemonic == "ds_load_tr16_b128");
        let mut mutations = within("access", |plan: &mut SharedAccessPlan| &mut plan.access, accesses());
        mutations.push(mutation("partitions", |plan: &mut SharedAccessPlan| plan.partition_bits += 1));
        // What is right for loads may be right for stores.
        mutations.retain(|m| !m.0.ends_with("the other direction"));
        all_are_caught(&plan, mutations, |plan| check_shared_access(plan, &d, &m, &target));
    }
    let (d, m, cuda) = (layout(&rows(), &[64, 64]), layout(plain, &[64, 64]), target("cuda:80"));
    let padded = SharedAccessPlan::with_padding(&d, &m, &[(64, 8)], 16, Direction::Store, &cuda).unwrap();
    let mutations = [
        mutation("other padding", |plan: &mut SharedAccessPlan| plan.padding[0].1 = 4),
        mutation("a higher minimum", |plan: &mut SharedAccessPlan| plan.access.minimum += 1),
        mutation("more wavefronts", |plan: &mut SharedAccessPlan| plan.access.wavefronts += 1),
        mutation("fewer instructions", |plan: &mut SharedAccessPlan| plan.access.count -= 1),
        mutation("more permutes", |plan: &mut SharedAccessPlan| plan.access.packing_ops += 1),
    ];
    all_are_caught(&padded, mutations, |plan| check_shared_access(plan, &d, &m, &cuda));
    let facts = AddressFacts::row_major(&d, 64, 64);
    let copy = SharedAccessPlan::async_copy(&d, &m, 16, &facts, &cuda).unwrap();
    let mut mutations = within("access", |plan: &mut SharedAccessPlan| &mut plan.access, accesses());
    mutations.push(mutation("another instruction", |plan: &mut SharedAccessPlan| {
        plan.mnemonic = "cp.async.ca.shared.global 16".into()
    }));
    mutations.push(mutation("through the L1", |plan: &mut SharedAccessPlan| plan.through_l1 = true));
    all_are_caught(&copy, mutations, |plan| check_async_copy(plan, &d, &m, &facts, &cuda));
    loads_to_the_lds();
    let narrow = AddressFacts::row_major(&d, 4, 64);
    assert!(check_async_copy(&copy, &d, &m, &narrow, &cuda).is_err(), "runs of four elements only");
}

#[test]
fn global_accesses() {
    let cuda = target("cuda:90");
    let bases = [
        (Dim::REGISTER, vec![[0, 1], [0, 2], [0, 4], [0, 0]]),
        (Dim::LANE, vec![[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]]),
        (Dim::WARP, vec![[0, 0]]),
    ];
    let d = LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1)]).unwrap();
    let facts = AddressFacts { neighbours: 32, ..AddressFacts::row_major(&d, 4, 64) };
    let plan = VectorPlan::for_addresses(&d, 16, &facts, &cuda).unwrap();
    assert_eq!((plan.vec_elems, plan.accesses.len()), (4, 2));
    let mutations = [
        mutation("other elements", |plan: &mut VectorPlan| plan.elem_bits *= 2),
        mutation("wider", |plan: &mut VectorPlan| plan.vec_elems *= 2),
        mutation("narrower", |plan: &mut VectorPlan| {
            plan.vec_elems = 2;
            let halves = |a: &VectorAccess| a.registers.chunks(2).map(<[u32]>::to_vec).collect::<Vec<_>>();
            let all: Vec<Vec<u32>> = plan.accesses.iter().flat_map(halves).collect();
            let one = plan.accesses[0].clone();
            plan.accesses = all
                .into_iter()
                .map(|registers| {
                    let mut access = one.clone();
                    access.registers = registers;
                    access
                })
                .collect();
        }),
        mutation("registers swapped", |plan: &mut VectorPlan| plan.accesses[0].registers.swap(1, 2)),
        mutation("an access twice", |plan: &mut VectorPlan| plan.accesses.push(plan.accesses[0].clone())),
        mutation("an access dropped", |plan: &mut VectorPlan| shorten(&mut plan.accesses)),
        mutation("a copy", |plan: &mut VectorPlan| plan.copies[1] = 0),
        mutation("copies missing", |plan: &mut VectorPlan| shorten(&mut plan.copies)),
        mutation("a warp stores copies", |plan: &mut VectorPlan| plan.duplicates.warp = 0),
        mutation("a lane does not store", |plan: &mut VectorPlan| plan.duplicates.lane = 1),
        mutation("sectors", |plan: &mut VectorPlan| plan.sectors += 1),
        mutation("sectors of all", |plan: &mut VectorPlan| plan.all_sectors *= 2),
        mutation("runs", |plan: &mut VectorPlan| plan.runs *= 2),
        mutation("bytes of runs", |plan: &mut VectorPlan| plan.run_bytes += 1),
        mutation("alignment of runs", |plan: &mut VectorPlan| plan.run_alignment *= 2),
        mutation("lines", |plan: &mut VectorPlan| plan.lines -= 1),
    ];
    all_are_caught(&plan, mutations, |plan| check_vector(plan, &d, 16, &facts, &cuda));
}

fn stages() -> Vec<Mutation<LocalReduction>> {
    vec![
        mutation("a register left out", |r: &mut LocalReduction| shorten(&mut r.registers[0])),
        mutation("a register twice", |r: &mut LocalReduction| {
            let first = r.registers[0][0];
            r.registers[0].push(first);
        }),
        mutation("values swapped", |r: &mut LocalReduction| r.registers.swap(0, 1)),
        mutation("a value dropped", |r: &mut LocalReduction| shorten(&mut r.registers)),
        mutation("an exchange more", |r: &mut LocalReduction| {
            let again = r.shuffles.last().copied();
            r.shuffles.extend(again);
            r.registers[0].extend(again.is_none().then_some(0));
        }),
    ]
}

#[test]
fn reductions() {
    let cuda = target("cuda:90");
    let exchange =
        |plan: &mut ReducePlan, change: fn(&mut ReduceExchange)| change(plan.exchange.as_mut().unwrap());
    for (warps, shape, across) in [([4, 1], [16, 128], false), ([1, 4], [4, 512], true)] {
        let d = layout(&blocked([1, 4], [1, 32], warps, [1, 0]), &shape);
        let plan = ReducePlan::new(&d, Dim::out(1), &[32, 64], &cuda).unwrap();
        let mut mutations = within("cost", |plan: &mut ReducePlan| &mut plan.cost, costs());
        mutations.extend(within("local", |plan: &mut ReducePlan| &mut plan.local, stages()));
        mutations.extend([
            mutation("an exchange dropped", |plan: &mut ReducePlan| shorten(&mut plan.local.shuffles)),
            mutation("another lane", |plan: &mut ReducePlan| {
                plan.local.shuffles[0].lane = plan.local.shuffles[1].lane
            }),
            mutation("another value", |plan: &mut ReducePlan| plan.local.shuffles[0].value ^= 1),
            mutation("another instruction", |plan: &mut ReducePlan| {
                plan.local.shuffles[0].instruction = ShuffleInstruction::DsSwizzle;
            }),
            mutation("all lanes at once", |plan: &mut ReducePlan| {
                plan.local.whole_warp = Some(WarpCombine::Add)
            }),
            mutation("a target", |plan: &mut ReducePlan| plan.targets[0] ^= 1),
            mutation("targets missing", |plan: &mut ReducePlan| shorten(&mut plan.targets)),
            mutation("another result", |plan: &mut ReducePlan| {
                let outs: Vec<(Dim, u32)> = plan.result.out_dim_bits().collect();
                let ins: Vec<(Dim, u32)> = plan.result.in_dim_bits().collect();
                let mut columns = plan.result.columns().to_vec();
                columns.reverse();
                plan.result = LinearLayout::from_columns(&ins, &outs, columns).unwrap();
            }),
        ]);
        if across {
            mutations.extend([
                mutation("no exchange between warps", |plan: &mut ReducePlan| plan.exchange = None),
                mutation("a conversion dropped", move |plan: &mut ReducePlan| {
                    exchange(plan, |x| shorten(&mut x.conversions))
                }),
                mutation("conversions swapped", move |plan: &mut ReducePlan| {
                    exchange(plan, |x| x.conversions.swap(0, 1))
                }),
                mutation("a barrier of a warp", move |plan: &mut ReducePlan| {
                    exchange(plan, |x| shared(&mut x.conversions[0]).scope = Scope::Warp);
                }),
                mutation("other partial results", move |plan: &mut ReducePlan| {
                    exchange(plan, |x| x.partial = x.gathered.clone())
                }),
                mutation("gathered elsewhere", move |plan: &mut ReducePlan| {
                    exchange(plan, |x| x.gathered = x.partial.clone())
                }),
                mutation("a result left out", move |plan: &mut ReducePlan| {
                    exchange(plan, |x| {
                        if x.combine.shuffles.pop().is_none() {
                            x.combine.registers[0].pop();
                        }
                    });
                }),
            ]);
        }
        // One row has one value.
        let values = plan.local.registers.len();
        mutations.retain(|m| values > 1 || !m.0.contains("swapped") || m.0.contains("conversions"));
        all_are_caught(&plan, mutations, |plan| check_reduce(plan, &d, &[32, 64], &cuda));
    }
    // Values that lanes share among them.
    let d = layout(&blocked([1, 1], [1, 32], [4, 1], [1, 0]), &[32, 32]);
    let plan = ReducePlan::new(&d, Dim::out(1), &[32], &cuda).unwrap();
    assert_eq!((plan.local.halvings.len(), plan.local.shuffles.len()), (3, 2));
    let mut mutations = within("cost", |plan: &mut ReducePlan| &mut plan.cost, costs());
    mutations.extend([
        mutation("a halving dropped", |plan: &mut ReducePlan| shorten(&mut plan.local.halvings)),
        mutation("halvings swapped", |plan: &mut ReducePlan| plan.local.halvings.swap(0, 1)),
        mutation("another lane", |plan: &mut ReducePlan| plan.local.halvings[0].lane = 8),
        mutation("another bit", |plan: &mut ReducePlan| plan.local.halvings[0].bit = 3),
        mutation("a bit that no lane has", |plan: &mut ReducePlan| plan.local.halvings[0].bit = 40),
        mutation("another instruction", |plan: &mut ReducePlan| {
            plan.local.halvings[0].instruction = ShuffleInstruction::DsSwizzle;
        }),
        mutation("an exchange dropped", |plan: &mut ReducePlan| shorten(&mut plan.local.shuffles)),
        mutation("not brought together", |plan: &mut ReducePlan| plan.exchange = None),
    ]);
    all_are_caught(&plan, mutations, |plan| check_reduce(plan, &d, &[32], &cuda));
    // The lanes of four hold the same: adding them would count them twice.
    let d = layout(&blocked([1, 1], [1, 32], [4, 1], [1, 0]), &[4, 8]);
    let plan = ReducePlan::with_combine(&d, Dim::out(1), &[32], Some(WarpCombine::SMin), &cuda).unwrap();
    assert_eq!(plan.local.whole_warp, Some(WarpCombine::SMin));
    let mutations = [
        mutation("added", |plan: &mut ReducePlan| plan.local.whole_warp = Some(WarpCombine::Add)),
        mutation("lane by lane, at the same cost", |plan: &mut ReducePlan| plan.local.whole_warp = None),
    ];
    all_are_caught(&plan, mutations, |plan| check_reduce(plan, &d, &[32], &cuda));
    assert!(check_reduce(&plan, &d, &[32], &target("hip:gfx1100")).is_err(), "no such instruction");
    assert!(check_reduce(&plan, &d, &[64], &cuda).is_err(), "the cost of halves");
    assert!(check_reduce(&plan, &d, &[32, 64], &cuda).is_err(), "two operands");
}

/// Two operands that are scanned in another layout than they come in.
#[test]
fn scans_elsewhere() {
    let cuda = target("cuda:90");
    let d = layout(&blocked([1, 1], [1, 32], [4, 1], [1, 0]), &[4, 512]);
    let plan = ScanPlan::with_combine(&d, Dim::out(1), &[32, 32], vec![1], false, 2.0, &cuda).unwrap();
    let detour = plan.detour.as_ref().expect("lanes beside each other send every element through shuffles");
    assert_eq!((detour.before.len(), detour.after.len(), plan.cost.shuffles), (2, 1, 2 * 6));
    let (scope, conversions) =
        ConversionPlan::one_wait(&detour.before).expect("both go through shared memory");
    assert_eq!((scope, conversions), (Scope::Warp, 2));
    fn detour_of(plan: &mut ScanPlan) -> &mut Detour {
        plan.detour.as_mut().unwrap()
    }
    let mut mutations = within("cost", |plan: &mut ScanPlan| &mut plan.cost, costs());
    mutations.extend([
        mutation("no detour", |plan: &mut ScanPlan| plan.detour = None),
        mutation("an operand stays", |plan: &mut ScanPlan| shorten(&mut detour_of(plan).before)),
        mutation("a result stays", |plan: &mut ScanPlan| shorten(&mut detour_of(plan).after)),
        mutation("a result that is not wanted", |plan: &mut ScanPlan| plan.wanted = vec![0, 1]),
        mutation("a result that does not exist", |plan: &mut ScanPlan| plan.wanted = vec![2]),
        mutation("back before", |plan: &mut ScanPlan| {
            let detour = detour_of(plan);
            detour.before[0] = detour.after[0].clone();
        }),
    ]);
    all_are_caught(&plan, mutations, |plan| check_scan(plan, &d, &[32, 32], &cuda));
}

#[test]
fn scans() {
    let cuda = target("cuda:90");
    for (warps, shape, reverse) in
        [([4, 1], [4, 128], false), ([1, 4], [2, 1024], false), ([1, 4], [2, 1024], true)]
    {
        let d = layout(&blocked([1, 4], [1, 32], warps, [1, 0]), &shape);
        let plan = ScanPlan::new(&d, Dim::out(1), &[32], reverse, &cuda).unwrap();
        let mut mutations = within("cost", |plan: &mut ScanPlan| &mut plan.cost, costs());
        mutations.extend([
            mutation("a step dropped", |plan: &mut ScanPlan| shorten(&mut plan.steps)),
            mutation("steps swapped", |plan: &mut ScanPlan| plan.steps.swap(0, 1)),
            mutation("the other direction", |plan: &mut ScanPlan| plan.reverse ^= true),
            mutation("a pair dropped", |plan: &mut ScanPlan| shorten(&mut plan.steps[0].pairs)),
            mutation("another source", |plan: &mut ScanPlan| plan.steps[1].pairs[0].1 ^= 1),
            mutation("another destination", |plan: &mut ScanPlan| plan.steps[1].pairs[0].0 ^= 1),
            mutation("another lane", |plan: &mut ScanPlan| plan.steps[4].lane.set ^= 1),
            mutation("a lane that stays", |plan: &mut ScanPlan| plan.steps[4].lane.clear = 0),
            mutation("other lanes take part", |plan: &mut ScanPlan| plan.steps[4].condition ^= 1),
            mutation("not from another lane", |plan: &mut ScanPlan| plan.steps[4].shuffled = false),
            mutation("another neighbour", |plan: &mut ScanPlan| {
                plan.steps.last_mut().unwrap().neighbour ^= 16
            }),
            mutation("a copy", |plan: &mut ScanPlan| plan.copies[1] = 0),
            mutation("copies missing", |plan: &mut ScanPlan| shorten(&mut plan.copies)),
            mutation("fewer combinations", |plan: &mut ScanPlan| plan.combinations -= 1),
            mutation("more selects", |plan: &mut ScanPlan| plan.selects += 1),
            mutation("results in another order", |plan: &mut ScanPlan| plan.wanted.push(0)),
        ]);
        if !plan.exchanges.is_empty() {
            let x = |plan: &mut ScanPlan, change: fn(&mut ScanExchange)| change(&mut plan.exchanges[0]);
            mutations.extend([
                mutation("no exchange between warps", |plan: &mut ScanPlan| plan.exchanges.clear()),
                mutation("the totals of other lanes", move |plan: &mut ScanPlan| {
                    x(plan, |x| x.lane.set ^= 1)
                }),
                mutation("the totals of all lanes", move |plan: &mut ScanPlan| x(plan, |x| x.lane.clear = 0)),
                mutation("the totals of other warps", move |plan: &mut ScanPlan| {
                    x(plan, |x| x.warp.clear ^= 1)
                }),
                mutation("idle threads", move |plan: &mut ScanPlan| x(plan, |x| x.duplicates.warp ^= 1)),
                mutation("stored elsewhere", move |plan: &mut ScanPlan| x(plan, |x| x.store.warp[0] ^= 1)),
                mutation("loaded from elsewhere", move |plan: &mut ScanPlan| {
                    x(plan, |x| x.load.lane[0] ^= 1)
                }),
                mutation("another number", move |plan: &mut ScanPlan| x(plan, |x| x.number.warp[0] ^= 1)),
                mutation("another block's total", move |plan: &mut ScanPlan| {
                    x(plan, |x| x.offsets.swap(0, 1))
                }),
                mutation("a line dropped", move |plan: &mut ScanPlan| x(plan, |x| shorten(&mut x.lines))),
                mutation("a total dropped", move |plan: &mut ScanPlan| {
                    x(plan, |x| shorten(&mut x.lines[0].totals))
                }),
                mutation("a register dropped", move |plan: &mut ScanPlan| {
                    x(plan, |x| shorten(&mut x.lines[0].registers))
                }),
                mutation("another line", move |plan: &mut ScanPlan| x(plan, |x| x.lines[0].offset ^= 1)),
                mutation("wider stores", move |plan: &mut ScanPlan| x(plan, |x| x.store_elems *= 2)),
                mutation("narrower loads", move |plan: &mut ScanPlan| x(plan, |x| x.load_elems /= 2)),
                mutation("wider loads", move |plan: &mut ScanPlan| x(plan, |x| x.load_elems *= 2)),
                mutation("more memory", move |plan: &mut ScanPlan| x(plan, |x| x.elems *= 2)),
                mutation("less memory", move |plan: &mut ScanPlan| x(plan, |x| x.elems /= 2)),
                mutation("the other way round", move |plan: &mut ScanPlan| x(plan, |x| x.reverse ^= true)),
            ]);
        }
        all_are_caught(&plan, mutations, |plan| check_scan(plan, &d, &[32], &cuda));
    }
}

/// Rows of 128 elements in two blocks.
fn divided() -> LinearLayout {
    let bases = [
        (Dim::REGISTER, vec![[0, 1], [0, 2], [4, 0], [8, 0]]),
        (Dim::LANE, vec![[0, 4], [0, 8], [0, 16], [0, 32], [1, 0]]),
        (Dim::WARP, vec![[2, 0]]),
        (Dim::BLOCK, vec![[0, 64]]),
    ];
    LinearLayout::from_bases(&bases, &[Dim::out(0), Dim::out(1)]).unwrap()
}

fn detours() -> Vec<Mutation<Detour>> {
    vec![
        mutation("no conversion", |d: &mut Detour| shorten(&mut d.before)),
        mutation("one conversion more", |d: &mut Detour| d.before.push(d.before[0].clone())),
        mutation("not converted", |d: &mut Detour| d.before[0].conversion = Conversion::NoOp),
        mutation("a barrier of a block", |d: &mut Detour| shared(&mut d.before[0]).scope = Scope::Block),
        mutation("back or not", |d: &mut Detour| {
            if d.after.pop().is_none() {
                d.after.push(d.before[0].clone());
            }
        }),
    ]
}

#[test]
fn detours_of_scans_gathers_and_histograms() {
    let (d, cuda) = (divided(), target("cuda:90"));
    let scan = ScanPlan::new(&d, Dim::out(1), &[32], true, &cuda).unwrap();
    let mut mutations = within("detour", |plan: &mut ScanPlan| plan.detour.as_mut().unwrap(), detours());
    mutations.push(mutation("none", |plan: &mut ScanPlan| plan.detour = None));
    all_are_caught(&scan, mutations, |plan| check_scan(plan, &d, &[32], &cuda));
    let index = |element: u64| element.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let gather = GatherPlan::new(&d, &d, Dim::out(1), 32, &cuda).unwrap();
    let mut mutations = within("detour", |plan: &mut GatherPlan| plan.detour.as_mut().unwrap(), detours());
    mutations.push(mutation("none", |plan: &mut GatherPlan| plan.detour = None));
    all_are_caught(&gather, mutations, |plan| check_gather(plan, &d, &d, 32, &cuda, &index));
    let bins = LinearLayout::identity_1d(32, Dim::LANE, Dim::out(0)).unwrap();
    let histogram = HistogramPlan::new(&d, &bins, 32, &cuda).unwrap();
    let mut mutations = within("detour", |plan: &mut HistogramPlan| plan.detour.as_mut().unwrap(), detours());
    mutations.push(mutation("none", |plan: &mut HistogramPlan| plan.detour = None));
    all_are_caught(&histogram, mutations, |plan| check_histogram(plan, &d, &bins, 32, &cuda));
}

#[test]
fn gathers() {
    let cuda = target("cuda:90");
    let index = |element: u64| element.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let d = layout(&blocked([2, 2], [4, 8], [4, 1], [1, 0]), &[32, 16]);
    let by_shuffles = GatherPlan::by_shuffles(&d, &d, Dim::out(1), 32, &cuda).unwrap().unwrap();
    let shuffle = |plan: &mut GatherPlan, change: fn(&mut GatherShuffle)| match &mut plan.gather {
        Gather::Shuffle(g) => change(g),
        other => panic!("{other:?}"),
    };
    let mut mutations = within("cost", |plan: &mut GatherPlan| &mut plan.cost, costs());
    mutations.extend([
        mutation("another lane bit", move |plan: &mut GatherPlan| shuffle(plan, |g| g.lane_bits[0].1 ^= 1)),
        mutation("another index bit", move |plan: &mut GatherPlan| shuffle(plan, |g| g.lane_bits[0].0 ^= 3)),
        mutation("a lane bit dropped", move |plan: &mut GatherPlan| {
            shuffle(plan, |g| shorten(&mut g.lane_bits))
        }),
        mutation("another register bit", move |plan: &mut GatherPlan| {
            shuffle(plan, |g| g.register_bits[0] ^= 2)
        }),
        mutation("candidates swapped", move |plan: &mut GatherPlan| {
            shuffle(plan, |g| g.candidates[0].swap(0, 1))
        }),
        mutation("a candidate dropped", move |plan: &mut GatherPlan| {
            shuffle(plan, |g| shorten(&mut g.candidates[0]))
        }),
        mutation("a copy", |plan: &mut GatherPlan| plan.copies[2] = 0),
        mutation("copies missing", |plan: &mut GatherPlan| shorten(&mut plan.copies)),
    ]);
    all_are_caught(&by_shuffles, mutations, |plan| check_gather(plan, &d, &d, 32, &cuda, &index));
    let through = GatherPlan::through_shared(&d, (&d, &Indices::default()), Dim::out(1), 16, &cuda).unwrap();
    let memory = |plan: &mut GatherPlan, change: fn(&mut GatherShared)| match &mut plan.gather {
        Gather::Shared(g) => change(g),
        other => panic!("{other:?}"),
    };
    let mut mutations = within("cost", |plan: &mut GatherPlan| &mut plan.cost, costs());
    mutations.extend([
        mutation("a lookup dropped", move |plan: &mut GatherPlan| memory(plan, |g| shorten(&mut g.lookups))),
        mutation("lookups swapped", move |plan: &mut GatherPlan| memory(plan, |g| g.lookups.reverse())),
        mutation("another line", move |plan: &mut GatherPlan| memory(plan, |g| g.address.lane[4] ^= 1)),
        mutation("another offset", move |plan: &mut GatherPlan| memory(plan, |g| g.offsets[0] ^= 1)),
        mutation("another place", move |plan: &mut GatherPlan| memory(plan, |g| g.index.swap(0, 1))),
        mutation("more memory", move |plan: &mut GatherPlan| memory(plan, |g| g.shared_bytes *= 2)),
        mutation("more conflicts", move |plan: &mut GatherPlan| memory(plan, |g| g.wavefronts *= 2.0)),
        mutation("two lookups at once", move |plan: &mut GatherPlan| memory(plan, |g| g.vector = 2)),
        mutation("an element not stored", move |plan: &mut GatherPlan| {
            memory(plan, |g| shorten(&mut g.store.access.accesses))
        }),
        mutation("fewer stores", move |plan: &mut GatherPlan| memory(plan, |g| g.store.access.count -= 1)),
    ]);
    all_are_caught(&through, mutations, |plan| check_gather(plan, &d, &d, 16, &cuda, &index));
    // Whole rows, two elements of each a lookup.
    let rows = Indices { alike: [Dim::out(1)].into_iter().collect(), ..Indices::default() };
    let through = GatherPlan::through_shared(&d, (&d, &rows), Dim::out(0), 16, &cuda).unwrap();
    let alike = |element: u64| (element >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let mutations = [
        mutation("one lookup at once", move |plan: &mut GatherPlan| memory(plan, |g| g.vector = 1)),
        mutation("four lookups at once", move |plan: &mut GatherPlan| memory(plan, |g| g.vector = 4)),
        mutation("lookups of a load swapped", move |plan: &mut GatherPlan| {
            memory(plan, |g| g.lookups.swap(0, 1))
        }),
        mutation("lookups of two loads swapped", move |plan: &mut GatherPlan| {
            memory(plan, |g| g.lookups.swap(0, 2))
        }),
        mutation("a line that is not aligned", move |plan: &mut GatherPlan| {
            memory(plan, |g| g.address.warp[0] ^= 1)
        }),
    ];
    all_are_caught(&through, mutations, |plan| check_gather(plan, &d, &d, 16, &cuda, &alike));
}

#[test]
fn histograms() {
    let cuda = target("cuda:90");
    let d = layout(&blocked([1, 4], [1, 32], [4, 1], [1, 0]), &[2, 128]);
    let line = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>";
    let bins = layout(line, &[64]);
    let plan = HistogramPlan::new(&d, &bins, 32, &cuda).unwrap();
    let mut mutations = within("cost", |plan: &mut HistogramPlan| &mut plan.cost, costs());
    mutations.extend([
        mutation("a register not counted", |plan: &mut HistogramPlan| shorten(&mut plan.registers)),
        mutation("a register counted twice", |plan: &mut HistogramPlan| plan.registers.push(0)),
        mutation("copies counted", |plan: &mut HistogramPlan| plan.duplicates.warp = 0),
        mutation("lanes not counted", |plan: &mut HistogramPlan| plan.duplicates.lane = 1),
        mutation("fewer bins", |plan: &mut HistogramPlan| plan.bins /= 2),
        mutation("more memory", |plan: &mut HistogramPlan| plan.shared_bytes += 4),
        mutation("bins not cleared", |plan: &mut HistogramPlan| shorten(&mut plan.clear.access.accesses)),
        mutation("bins not loaded", |plan: &mut HistogramPlan| shorten(&mut plan.load.access.accesses)),
        mutation("cleared by loading", |plan: &mut HistogramPlan| plan.clear = plan.load.clone()),
        mutation("loaded by clearing", |plan: &mut HistogramPlan| plan.load = plan.clear.clone()),
    ]);
    all_are_caught(&plan, mutations, |plan| check_histogram(plan, &d, &bins, 32, &cuda));
}

#[test]
fn products() {
    let cuda = target("cuda:80");
    let operand = |i| format!("#ttg.dot_op<{{opIdx = {i}, parent = {MMA}, kWidth = 2}}>");
    let (a, b, c) = (layout(&operand(0), &[64, 32]), layout(&operand(1), &[32, 16]), layout(MMA, &[64, 16]));
    let types = DotTypes::new(DotType::F16, DotType::F16, &cuda);
    let plan = DotTilePlan::new(&a, &b, &c, types, &cuda).unwrap();
    let matrix = |plan: &mut DotTilePlan, change: fn(&mut Vec<DotInstruction>)| match &mut plan.dot {
        Dot::Matrix { executions, .. } => change(executions),
        other => panic!("{other:?}"),
    };
    let mutations = [
        mutation("an instruction dropped", move |plan: &mut DotTilePlan| matrix(plan, shorten)),
        mutation("an instruction twice", move |plan: &mut DotTilePlan| {
            matrix(plan, |all| all.push(all[0].clone()))
        }),
        mutation("registers of the left operand", move |plan: &mut DotTilePlan| {
            matrix(plan, |all| all[0].a.swap(0, 1))
        }),
        mutation("registers of the right operand", move |plan: &mut DotTilePlan| {
            matrix(plan, |all| all[0].b.swap(0, 1))
        }),
        mutation("registers of the result", move |plan: &mut DotTilePlan| {
            matrix(plan, |all| all[0].c.swap(0, 1))
        }),
        mutation("a zero", move |plan: &mut DotTilePlan| matrix(plan, |all| all[0].a[0] = None)),
        mutation("a dropped result", move |plan: &mut DotTilePlan| matrix(plan, |all| all[0].c[0] = None)),
        mutation("zero lanes", |plan: &mut DotTilePlan| match &mut plan.dot {
            Dot::Matrix { zero_lanes, .. } => *zero_lanes = 1,
            other => panic!("{other:?}"),
        }),
        mutation("operands exchanged", |plan: &mut DotTilePlan| match &mut plan.dot {
            Dot::Matrix { swapped, .. } => *swapped = true,
            other => panic!("{other:?}"),
        }),
        mutation("a copy", |plan: &mut DotTilePlan| plan.copies.swap(0, 1)),
    ];
    all_are_caught(&plan, mutations, |plan| check_dot(plan, &a, &b, &c, &cuda));
    let parent = blocked([2, 2], [8, 4], [4, 1], [1, 0]);
    let operand = |i| format!("#ttg.dot_op<{{opIdx = {i}, parent = {parent}}}>");
    let (a, b, c) = (layout(&operand(0), &[64, 4]), layout(&operand(1), &[4, 8]), layout(&parent, &[64, 8]));
    let types = DotTypes { exact: true, ..DotTypes::new(DotType::F32, DotType::F32, &cuda) };
    let plan = DotTilePlan::new(&a, &b, &c, types, &cuda).unwrap();
    let fma = |plan: &mut DotTilePlan, change: fn(&mut Vec<[u32; 3]>)| match &mut plan.dot {
        Dot::Fma(triples) => change(triples),
        other => panic!("{other:?}"),
    };
    let mutations = [
        mutation("one dropped", move |plan: &mut DotTilePlan| fma(plan, shorten)),
        mutation("one twice", move |plan: &mut DotTilePlan| fma(plan, |all| all.push(all[0]))),
        mutation("another operand", move |plan: &mut DotTilePlan| fma(plan, |all| all[0][1] ^= 1)),
        mutation("another result", move |plan: &mut DotTilePlan| fma(plan, |all| all[0][0] ^= 1)),
    ];
    all_are_caught(&plan, mutations, |plan| check_dot(plan, &a, &b, &c, &cuda));
    let hip = target("hip:gfx1100");
    let plan = DotTilePlan::new(&a, &b, &c, DotTypes::new(DotType::I8, DotType::I8, &hip), &hip).unwrap();
    let products = |plan: &mut DotTilePlan, change: fn(&mut Vec<DotProducts>)| match &mut plan.dot {
        Dot::Products(all) => change(all),
        other => panic!("{other:?}"),
    };
    let mutations = [
        mutation("a sum dropped", move |plan: &mut DotTilePlan| products(plan, shorten)),
        mutation("a sum twice", move |plan: &mut DotTilePlan| products(plan, |all| all.push(all[0].clone()))),
        mutation("products exchanged", move |plan: &mut DotTilePlan| {
            products(plan, |all| all[0].a.swap(0, 1))
        }),
        mutation("a product twice", move |plan: &mut DotTilePlan| {
            products(plan, |all| (all[0].a[1], all[0].b[1]) = (all[0].a[0], all[0].b[0]))
        }),
        mutation("a product dropped", move |plan: &mut DotTilePlan| {
            products(plan, |all| shorten(&mut all[0].a))
        }),
        mutation("another sum", move |plan: &mut DotTilePlan| products(plan, |all| all[0].c ^= 1)),
    ];
    all_are_caught(&plan, mutations, |plan| check_dot(plan, &a, &b, &c, &hip));
}

#[test]
fn bulk_copies() {
    let cuda = target("cuda:90");
    let cga = vec![vec![1, 0]];
    let encoding = TmaPlan::encoding(&[128, 128], 16, &cga, &cuda).unwrap();
    let memory = Encoding::NvmmaShared(encoding.clone()).to_linear_layout(&[128, 128]).unwrap();
    let plan = TmaPlan::new(&encoding, &[128, 128], &cuda).unwrap();
    let mutations = [
        mutation("another swizzle", |plan: &mut TmaPlan| plan.map.swizzle = MatrixSwizzle::Bytes64),
        mutation("a smaller box", |plan: &mut TmaPlan| plan.map.box_shape[0] /= 2),
        mutation("a larger box", |plan: &mut TmaPlan| plan.map.box_shape[0] *= 2),
        mutation("other elements", |plan: &mut TmaPlan| plan.map.elem_bits *= 2),
        mutation("a box dropped", |plan: &mut TmaPlan| shorten(&mut plan.boxes)),
        mutation("boxes swapped", |plan: &mut TmaPlan| {
            let start = plan.boxes[0].start.clone();
            plan.boxes[0].start = std::mem::replace(&mut plan.boxes[1].start, start);
        }),
        mutation("a box elsewhere in memory", |plan: &mut TmaPlan| plan.boxes[0].offset_bytes += 1024),
        mutation("a block's part", |plan: &mut TmaPlan| plan.parts[0][0] /= 2),
        mutation("less aligned", |plan: &mut TmaPlan| plan.alignment /= 2),
        mutation("more aligned", |plan: &mut TmaPlan| plan.alignment *= 2),
    ];
    all_are_caught(&plan, mutations, |plan| check_tma(plan, &memory));
    let bases = [
        (Dim::REGISTER, vec![[1], [2]]),
        (Dim::LANE, vec![[0]; 5]),
        (Dim::WARP, vec![[4], [0]]),
        (Dim::BLOCK, vec![[8]]),
    ];
    let numbers = LinearLayout::from_bases(&bases, &[Dim::out(0)]).unwrap();
    for name in ["cuda:90", "cuda:100"] {
        let target = target(name);
        let encoding = TmaRowsPlan::encoding(128, 16, &cga, &target).unwrap();
        let memory = Encoding::NvmmaShared(encoding.clone()).to_linear_layout(&[16, 128]).unwrap();
        let plan = TmaRowsPlan::new(&encoding, &[16, 128], &numbers, &target).unwrap();
        let mutations = [
            mutation("other rows", |plan: &mut TmaRowsPlan| plan.rows ^= 5),
            mutation("a copy dropped", |plan: &mut TmaRowsPlan| shorten(&mut plan.copies)),
            mutation("another register", |plan: &mut TmaRowsPlan| plan.copies[0].register ^= 1),
            mutation("another column", |plan: &mut TmaRowsPlan| plan.copies[0].column ^= 64),
            mutation("elsewhere in memory", |plan: &mut TmaRowsPlan| plan.copies[0].offset_bytes += 128),
            mutation("another warp's place", |plan: &mut TmaRowsPlan| plan.warp_bytes[0] *= 2),
            mutation("warps that copy the same", |plan: &mut TmaRowsPlan| plan.idle_warps = 0),
            mutation("an idle warp", |plan: &mut TmaRowsPlan| plan.idle_warps = 3),
            mutation("other bytes", |plan: &mut TmaRowsPlan| plan.bytes *= 2),
            mutation("another box", |plan: &mut TmaRowsPlan| plan.map.box_shape[1] /= 2),
            mutation("another swizzle", |plan: &mut TmaRowsPlan| plan.map.swizzle = MatrixSwizzle::None),
        ];
        all_are_caught(&plan, mutations, |plan| check_tma_rows(plan, &memory, &numbers));
    }
}

#[test]
fn matrix_descriptors() {
    let cuda = target("cuda:90");
    let text = "#ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>";
    let memory = layout(text, &[128, 64]);
    for dims in [(Dim::out(0), Dim::out(1)), (Dim::out(1), Dim::out(0))] {
        let plan = MatrixDescriptorPlan::new(&memory, dims, 64, 16, &cuda).unwrap();
        let transposed = plan.transposed;
        let mutations = [
            mutation("another tile", |plan: &mut MatrixDescriptorPlan| plan.tile[0] *= 2),
            mutation("fewer summands", |plan: &mut MatrixDescriptorPlan| plan.tile[1] /= 2),
            mutation("another swizzle", |plan: &mut MatrixDescriptorPlan| {
                plan.swizzle = MatrixSwizzle::Bytes32
            }),
            mutation("the other side contiguous", |plan: &mut MatrixDescriptorPlan| plan.transposed ^= true),
            mutation("another stride", |plan: &mut MatrixDescriptorPlan| plan.stride_bytes *= 2),
            mutation("a tile elsewhere", |plan: &mut MatrixDescriptorPlan| plan.starts[1][0] ^= 16),
            mutation("a tile dropped", |plan: &mut MatrixDescriptorPlan| {
                plan.starts[1].pop();
            }),
            mutation("less aligned", |plan: &mut MatrixDescriptorPlan| plan.alignment /= 2),
            mutation("more aligned", |plan: &mut MatrixDescriptorPlan| plan.alignment *= 2),
            mutation("another leading dimension", move |plan: &mut MatrixDescriptorPlan| {
                // What is contiguous along K has no leading dimension.
                plan.leading_bytes *= 2;
                plan.stride_bytes += if transposed { 0 } else { 16 };
            }),
        ];
        all_are_caught(&plan, mutations, |plan| check_matrix_descriptor(plan, &memory, dims, 16));
    }
}

#[test]
fn products_of_warp_groups() {
    let cuda = target("cuda:90");
    let mma = "#ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>";
    let text = "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>";
    let operand = format!("#ttg.dot_op<{{opIdx = 0, parent = {mma}, kWidth = 2}}>");
    let (c, b) = (layout(mma, &[128, 128]), layout(text, &[64, 128]));
    let (memory, registers) = (layout(text, &[128, 64]), layout(&operand, &[128, 64]));
    for a in [WarpGroupOperand::Shared(&memory), WarpGroupOperand::Registers(&registers)] {
        let types = DotTypes::new(DotType::F16, DotType::F16, &cuda);
        let product = WarpGroupDot { a, b: &b, c: &c, depth: 64, types, max_imprecise: 64 };
        let plan = WarpGroupDotPlan::new(&product, &cuda).unwrap();
        let mut mutations = vec![
            mutation("a run dropped", |plan: &mut WarpGroupDotPlan| shorten(&mut plan.runs)),
            mutation("a run twice", |plan: &mut WarpGroupDotPlan| plan.runs.push(plan.runs[0].clone())),
            mutation("a step dropped", |plan: &mut WarpGroupDotPlan| shorten(&mut plan.runs[0].steps)),
            mutation("another step", |plan: &mut WarpGroupDotPlan| plan.runs[0].steps[0].k ^= 1),
            mutation("another column", |plan: &mut WarpGroupDotPlan| plan.runs[0].tile[1] ^= 1),
            mutation("registers of the result", |plan: &mut WarpGroupDotPlan| plan.runs[0].c.swap(0, 1)),
            mutation("a copy", |plan: &mut WarpGroupDotPlan| plan.copies.swap(0, 1)),
            mutation("another start", |plan: &mut WarpGroupDotPlan| plan.starts[1].warp[0] ^= 1024),
            mutation("other columns", |plan: &mut WarpGroupDotPlan| plan.shape[1] /= 2),
            mutation("fewer summands", |plan: &mut WarpGroupDotPlan| plan.shape[2] /= 2),
            mutation("other elements", |plan: &mut WarpGroupDotPlan| plan.kind = DotType::F8),
            mutation("another stride", |plan: &mut WarpGroupDotPlan| plan.b.stride_bytes *= 2),
            mutation("sums of runs", |plan: &mut WarpGroupDotPlan| plan.promoted ^= true),
        ];
        if plan.a.is_none() {
            mutations.push(mutation("registers of the operand", |plan: &mut WarpGroupDotPlan| {
                plan.runs[0].steps[0].a.swap(0, 1)
            }));
            mutations.push(mutation("no registers", |plan: &mut WarpGroupDotPlan| {
                plan.runs[0].steps[0].a.clear()
            }));
        } else {
            mutations.push(mutation("another tile", |plan: &mut WarpGroupDotPlan| plan.runs[0].tile[0] ^= 1));
            mutations.push(mutation("not in memory", |plan: &mut WarpGroupDotPlan| plan.a = None));
        }
        all_are_caught(&plan, mutations, |plan| check_warp_group_dot(plan, &product));
    }
}
