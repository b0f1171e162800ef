use super::checker::{check, check_groups};
use super::plan::{Budget, Edge, Kind, LoopGraph, LoopSchedule, Node, Prologue, Slots, Step};
use super::spread::{Group, Item, Unit, groups};

const BUDGET: Budget = Budget {
    stages: 3,
    wanted: u32::MAX,
    shared: 1 << 17,
    taken: 0,
    ctas: 1,
    may_fit_more: true,
    leave_room: false,
    registers: 64,
    threads: 128,
    needed_ahead: 0,
    most_ahead: u64::MAX,
    starts_late: false,
    busy_alone: false,
    few_programs: false,
    halves: false,
};

fn edge(from: usize, to: usize, distance: u32) -> Edge {
    Edge { from, to, distance, accumulates: false }
}

fn copy(ring: usize) -> Node {
    Node { early: true, writes: Some(ring), ..Node::new(Kind::Copy) }
}

fn reading(kind: Kind, rings: &[usize]) -> Node {
    Node { reads: rings.iter().copied().collect(), ..Node::new(kind) }
}

/// `a`, `b` copied to rings, read by threads, multiplied; the address goes on.
fn matmul_of_warps() -> LoopGraph {
    // So many sums of 128 threads leave no registers for a second CTA.
    let heavy = Node { heavy: true, words: 160, ..Node::new(Kind::Pure) };
    LoopGraph {
        nodes: vec![
            copy(0),
            copy(1),
            reading(Kind::Pure, &[0]),
            reading(Kind::Pure, &[1]),
            heavy,
            Node::new(Kind::Pure),
        ],
        edges: vec![edge(2, 4, 0), edge(3, 4, 0), edge(4, 4, 1), edge(5, 0, 1), edge(5, 1, 1), edge(5, 5, 1)],
        rings: vec![1 << 13, 1 << 13],
    }
}

/// The same with a dot that runs beside the program.
fn matmul_of_warp_groups() -> LoopGraph {
    LoopGraph {
        nodes: vec![
            copy(0),
            copy(1),
            Node { heavy: true, ..reading(Kind::Dot, &[0, 1]) },
            Node::new(Kind::Pure),
        ],
        edges: vec![Edge { accumulates: true, ..edge(2, 2, 1) }, edge(3, 0, 1), edge(3, 1, 1), edge(3, 3, 1)],
        rings: vec![1 << 13, 1 << 13],
    }
}

/// Two dots, the second of what is computed from the first, its sums scaled in each iteration.
fn attention() -> LoopGraph {
    let dot = |ring| Node { heavy: true, ..reading(Kind::Dot, &[ring]) };
    LoopGraph {
        nodes: vec![copy(0), dot(0), Node::new(Kind::Pure), copy(1), Node::new(Kind::Pure), dot(1)],
        edges: vec![edge(1, 2, 0), edge(2, 4, 0), edge(5, 4, 1), edge(4, 5, 0), edge(2, 5, 0)],
        rings: vec![1 << 13, 1 << 13],
    }
}

fn right(graph: &LoopGraph, schedule: &LoopSchedule, budget: &Budget) -> Result<(), String> {
    (0..12).try_for_each(|trips| check(graph, schedule, budget, &[trips]))?;
    // The same in a loop over tiles, where the prologue of each comes before its loop, and behind the loop of the one before.
    const TILES: [u64; 9] = [2, 0, 1, 3, 0, 0, 7, 12, 1];
    check(graph, schedule, budget, &TILES)?;
    let ahead = check(graph, &schedule.clone().with_prologue_ahead(graph), budget, &TILES);
    // Halves that run apart have no tile before.
    if schedule.halves {
        ahead.err().map(|_| ()).ok_or("halves in overlapping tiles".to_owned())
    } else {
        ahead
    }
}

fn planned(graph: &LoopGraph, budget: &Budget) -> LoopSchedule {
    let schedule = LoopSchedule::new(graph, budget).expect("a schedule");
    right(graph, &schedule, budget).unwrap_or_else(|what| panic!("{what}\n{schedule:#?}"));
    schedule
}

#[test]
fn copies_run_ahead_by_all_stages_but_one() {
    for stages in 2..=5 {
        let schedule = planned(&matmul_of_warps(), &Budget { stages, ..BUDGET });
        assert_eq!((schedule.stages, schedule.ahead(0), schedule.ahead(4)), (stages, stages - 1, 0));
        // What is copied goes to the slot that was read in the iteration before.
        assert_eq!(schedule.depths, [stages, stages]);
        let waits = |step: &&Step| matches!(step, Step::AwaitCopies { .. });
        let wait = schedule.kernel.iter().find(waits).unwrap();
        assert_eq!(*wait, Step::AwaitCopies { copies: [0, 1].into_iter().collect(), pending: stages - 2 });
    }
}

/// What one iteration stores depends on what earlier ones loaded, in `words` registers, one iteration ahead.
fn recurrence(words: u64) -> LoopGraph {
    let load = Node { early: true, near: true, words, ..Node::new(Kind::Guarded) };
    let nodes = vec![load, Node::new(Kind::Pure), Node::new(Kind::Fixed)];
    LoopGraph { nodes, edges: vec![edge(0, 1, 0), edge(1, 1, 1), edge(1, 2, 0)], rings: vec![] }
}

#[test]
fn loads_of_short_iterations_wait_in_registers_of_their_own() {
    let further = |words, trips| {
        let graph = recurrence(words);
        let near = planned(&graph, &Budget { stages: 2, ..BUDGET });
        assert_eq!((near.ahead(0), near.unroll), (1, 1));
        let far = near.further(&graph, &BUDGET, trips)?;
        right(&graph, &far, &Budget { stages: 8, ..BUDGET }).unwrap_or_else(|what| panic!("{what}"));
        assert_eq!((far.ahead(0) + 1, far.stages), (far.unroll, far.unroll));
        // One iteration less in one of the loop, and values wait for longer than there are registers.
        let few = LoopSchedule { unroll: far.unroll - 1, ..far.clone() };
        let said = right(&graph, &few, &Budget { stages: 8, ..BUDGET }).expect_err("too few registers");
        assert!(said.contains("values wait for"), "{said}");
        Some(far.unroll)
    };
    // Up to 48 registers, and two iterations of the loop.
    assert_eq!([6, 7, 16, 17].map(|words| further(words, None)), [Some(8), Some(4), Some(4), None]);
    assert_eq!([16, 15, 8, 7].map(|trips| further(1, Some(trips))), [Some(8), Some(4), Some(4), None]);
}

#[test]
fn addresses_advance_before_many_copies_that_use_them() {
    let many = Budget { threads: 64, busy_alone: true, ..BUDGET };
    for (stages, graph) in (2..=5).flat_map(|n| [(n, matmul_of_warps()), (n, matmul_of_warp_groups())]) {
        let advance = graph.nodes.len() - 1;
        let schedule = planned(&graph, &Budget { stages, ..many });
        assert_eq!(schedule.ahead(advance), schedule.ahead(0) - 1);
        let at = |node| schedule.kernel.iter().position(|step| *step == Step::Run(node));
        assert!(at(advance) < at(0), "{schedule:?}");
        // Few copies do not wait for each other; those of CTAs that share a multiprocessor, and those of loops that do more
        // than multiply, keep no dot waiting.
        let few = Budget { threads: 128, ..many };
        for budget in [few, Budget { ctas: 2, shared: 1 << 18, ..many }, Budget { busy_alone: false, ..many }]
        {
            let schedule = planned(&graph, &Budget { stages, ..budget });
            assert_eq!((schedule.advances_late, schedule.ahead(advance)), (false, schedule.ahead(0)));
        }
    }
    // What needs an address of its own iteration keeps it there.
    let mut graph = matmul_of_warps();
    graph.edges.push(edge(5, 2, 0));
    let schedule = planned(&graph, &many);
    assert_eq!(schedule.ahead(5), schedule.ahead(0));
}

#[test]
fn copies_two_iterations_ahead_are_awaited_together() {
    let waits = |stages| {
        let schedule = planned(&attention(), &Budget { stages, ..BUDGET });
        schedule.kernel.iter().filter(|step| matches!(step, Step::AwaitCopies { .. })).count()
    };
    // With one iteration ahead what the second dot reads may arrive while the first one runs.
    assert_eq!([2, 3, 4].map(waits), [2, 1, 1]);
}

#[test]
fn copies_of_one_dot_are_awaited_once_however_far_ahead_they_run() {
    // Where rows lie is loaded an iteration before they are copied.
    let load = Node { early: true, words: 1, ..Node::new(Kind::Guarded) };
    for (dot, budget) in [
        (Kind::Dot, BUDGET),
        (Kind::Pure, BUDGET),
        (Kind::Dot, Budget { ctas: 2, shared: 1 << 18, ..BUDGET }),
    ] {
        let mut graph = LoopGraph {
            nodes: vec![
                copy(0),
                load.clone(),
                copy(1),
                Node { heavy: true, ..reading(dot, &[0, 1]) },
                Node::new(Kind::Pure),
            ],
            edges: vec![edge(1, 2, 0), edge(4, 0, 1), edge(4, 1, 1), edge(4, 4, 1)],
            rings: vec![1 << 13, 1 << 13],
        };
        graph.edges.push(Edge { accumulates: dot == Kind::Dot, ..edge(3, 3, 1) });
        for stages in 3..=5 {
            let schedule = planned(&graph, &Budget { stages, ..budget });
            assert!(schedule.ahead(0) == stages - 1 && schedule.ahead(2) < stages - 1, "{schedule:?}");
            let waits = schedule.kernel.iter().filter(|step| matches!(step, Step::AwaitCopies { .. }));
            let copies =
                waits.map(|step| if let Step::AwaitCopies { copies, .. } = step { copies.len() } else { 0 });
            assert_eq!(copies.collect::<Vec<_>>(), [2], "{schedule:?}");
        }
    }
}

#[test]
fn no_more_is_under_way_than_the_l2_bears_where_less_is_enough() {
    let graph = matmul_of_warp_groups();
    let slot = 2u64 << 13;
    let free = Budget { ctas: 4, shared: 16 * slot, stages: 4, ..BUDGET };
    // Four CTAs of three iterations each ahead.
    assert_eq!(planned(&graph, &free).stages, 4);
    // Three iterations ahead of fewer CTAs would be enough, but more CTAs come first.
    let enough = Budget { needed_ahead: 3 * slot, most_ahead: 11 * slot, ..free };
    let schedule = planned(&graph, &enough);
    assert_eq!((schedule.stages, schedule.depths.as_slice()), (3, [4, 4].as_slice()));
    // One iteration ahead of each CTA would be enough where all CTAs are there; where there are few programs it is not.
    let few = planned(&graph, &Budget { most_ahead: 7 * slot, ..enough });
    assert_eq!((few.stages, few.depths.as_slice()), (3, [4, 4].as_slice()));
    let asked = planned(&graph, &Budget { most_ahead: 7 * slot, stages: 2, ..enough });
    assert_eq!(asked.stages, 2);
    // Where fewer CTAs have two iterations ahead, these do.
    let tight = Budget { shared: 8 * slot, needed_ahead: 2 * slot, most_ahead: 4 * slot, ..free };
    assert!(planned(&graph, &tight).stages > 2);
    // A CTA alone has nobody to fill its waits: two CTAs of four stages stay, where one of four is enough.
    let pair = Budget { ctas: 2, shared: 8 * slot, needed_ahead: 2 * slot, most_ahead: 3 * slot, ..free };
    assert_eq!(planned(&graph, &pair), planned(&graph, &Budget { most_ahead: u64::MAX, ..pair }));
    // Nor is one of four lost where their first copies wait for their addresses.
    let four = Budget { stages: 3, shared: 12 * slot, needed_ahead: 4 * slot, most_ahead: 7 * slot, ..free };
    let late = Budget { starts_late: true, ..four };
    let ctas = |budget: &Budget| budget.shared / planned(&graph, budget).shared_bytes(&graph);
    assert_eq!((ctas(&four), ctas(&late)), (3, 4));
    // What needs more than that has most under way, as without a bound.
    let starved = Budget { needed_ahead: 12 * slot, most_ahead: 11 * slot, ..free };
    assert_eq!(planned(&graph, &starved), planned(&graph, &free));
}

#[test]
fn a_stage_that_nobody_wants_is_added_where_no_cta_is_lost() {
    let graph = matmul_of_warp_groups();
    let slot = 2u64 << 13;
    // Three slots for two stages, four for three.
    let two = Budget { ctas: 2, shared: 8 * slot, wanted: 2, ..BUDGET };
    let schedule = planned(&graph, &two);
    assert_eq!((schedule.stages, schedule.depths.as_slice()), (3, [4, 4].as_slice()));
    assert_eq!(planned(&graph, &Budget { stages: 2, ..two }).stages, 2);
    // Three stages have three slots at least, with which one CTA fits, two of two.
    assert_eq!(planned(&graph, &Budget { shared: 5 * slot, ..two }).stages, 2);
    // One of five is not missed.
    assert_eq!(planned(&graph, &Budget { ctas: 5, shared: 14 * slot, ..two }).stages, 3);
    assert_eq!(planned(&graph, &Budget { ctas: 5, shared: 11 * slot, ..two }).stages, 2);
    // Two iterations ahead of two CTAs are more than the L2 bears.
    assert_eq!(planned(&graph, &Budget { most_ahead: 3 * slot, ..two }).stages, 2);
    assert_eq!(planned(&graph, &Budget { most_ahead: 4 * slot, ..two }).stages, 3);
}

#[test]
fn rings_leave_room_for_a_second_cta_whose_registers_may_suffice() {
    // Slots of both rings for three stages: three where copies come first, with which one CTA fits, or two.
    let slot = 2u64 << 13;
    let mut few_sums = matmul_of_warps();
    few_sums.nodes[4].words = 64;
    let depths = |graph: &LoopGraph, shared| {
        let schedule = planned(graph, &Budget { shared, ..BUDGET });
        (schedule.stages, schedule.depths[0])
    };
    let more = depths(&few_sums, 4 * slot - 1);
    let tight = depths(&few_sums, 2 * u64::from(more.1 - 1) * slot);
    assert_eq!((more.0, tight), (3, (3, more.1 - 1)));
    // With too little for two there are as many slots as one CTA wants.
    assert_eq!(depths(&few_sums, 2 * u64::from(more.1 - 1) * slot - 1), more);
    // Nor where sums take the registers; those of dots that run beside the program are in registers, all of them.
    assert_eq!(depths(&matmul_of_warps(), 2 * u64::from(more.1 - 1) * slot), more);
    let beside = depths(&matmul_of_warp_groups(), 8 * slot);
    assert_eq!(depths(&matmul_of_warp_groups(), 2 * u64::from(beside.1 - 1) * slot), beside);
}

#[test]
fn rings_leave_room_for_one_more_cta_where_they_are_told_to() {
    // Three CTAs with four slots of either ring, or four with three.
    let graph = matmul_of_warp_groups();
    let slot = 2u64 << 13;
    let budget = Budget { ctas: 3, shared: 12 * slot, ..BUDGET };
    let schedule = planned(&graph, &budget);
    assert_eq!((schedule.stages, schedule.depths.as_slice()), (3, [4, 4].as_slice()));
    assert_eq!(budget.ctas_in_memory(schedule.shared_bytes(&graph)), 3);
    assert!(schedule.could_leave_room(&graph, &budget));
    let told = Budget { leave_room: true, ..budget };
    let with_room = planned(&graph, &told);
    assert_eq!((with_room.stages, with_room.depths.as_slice()), (3, [3, 3].as_slice()));
    assert!(!with_room.could_leave_room(&graph, &told));
    // Nothing to gain where two fit with four slots, and two with three.
    let tight = Budget { shared: 9 * slot - 1, ctas: 2, ..BUDGET };
    assert!(!planned(&graph, &tight).could_leave_room(&graph, &tight));
}

#[test]
fn stages_come_before_ctas_where_one_cta_keeps_the_matrix_units_busy_or_is_alone() {
    let graph = matmul_of_warp_groups();
    let budget = Budget { ctas: 2, shared: 12 << 13, stages: 4, ..BUDGET };
    assert_eq!(planned(&graph, &budget).stages, 3);
    let busy = planned(&graph, &Budget { busy_alone: true, ..budget });
    assert_eq!((busy.stages, busy.depths.as_slice()), (4, [5, 5].as_slice()));
    // So they do where each CTA is likely alone, though others would fit beside it.
    let alone = planned(&graph, &Budget { few_programs: true, ..budget });
    assert_eq!((alone.stages, alone.depths.as_slice()), (4, [5, 5].as_slice()));
    // Where more stages need no more than what two CTAs share, both have them.
    let roomy = Budget { busy_alone: true, shared: 1 << 18, ..budget };
    assert_eq!(planned(&graph, &roomy).stages, 4);
    assert!(planned(&graph, &roomy).shared_bytes(&graph) <= 1 << 17);
}

#[test]
fn dots_beside_the_program_need_one_more_slot_or_a_wait_before_copies() {
    let graph = matmul_of_warp_groups();
    let schedule = planned(&graph, &BUDGET);
    assert_eq!(schedule.depths, [4, 4]);
    let late = planned(&graph, &Budget { shared: 6 << 13, ..BUDGET });
    assert_eq!((late.stages, late.depths.as_slice()), (3, [3, 3].as_slice()));
    let dots = [(2, 1)].into_iter().collect();
    assert!(late.kernel.contains(&Step::AwaitDots { dots, pending: 1 }));
}

#[test]
fn shared_memory_that_is_short_takes_stages() {
    let schedule = planned(&matmul_of_warps(), &Budget { stages: 5, shared: 5 << 13, ..BUDGET });
    assert_eq!((schedule.stages, schedule.depths.as_slice()), (3, [2, 2].as_slice()));
    assert_eq!(LoopSchedule::new(&matmul_of_warps(), &Budget { shared: 1 << 13, ..BUDGET }), None);
}

#[test]
fn more_ctas_count_as_more_under_way() {
    // Two CTAs with two stages each have as much under way as one with three: then they also hide other latencies.
    let graph = matmul_of_warps();
    let both = planned(&graph, &Budget { ctas: 2, shared: 4 << 13, stages: 3, ..BUDGET });
    assert_eq!(both.stages, 2);
    let one = planned(&graph, &Budget { ctas: 2, shared: 6 << 13, stages: 4, ..BUDGET });
    assert_eq!(one.stages, 2.max(one.stages));
}

#[test]
fn dots_of_attention_are_awaited_where_they_are_used() {
    let schedule = planned(&attention(), &BUDGET);
    let dots = schedule.kernel.iter().filter(|step| matches!(step, Step::AwaitDots { .. }));
    let dots: Vec<_> = dots.collect();
    // The sums of the iteration before are done once the first dot of this one is.
    assert_eq!(dots, [&Step::AwaitDots { dots: [(5, 1), (1, 0)].into_iter().collect(), pending: 0 }]);
}

#[test]
fn loads_that_need_loads_share_the_distance() {
    let load = |early| Node { early, words: 1, ..Node::new(Kind::Guarded) };
    let graph = LoopGraph {
        nodes: vec![load(true), copy(0), reading(Kind::Fixed, &[0])],
        edges: vec![edge(0, 1, 0)],
        rings: vec![1024],
    };
    let schedule = planned(&graph, &Budget { stages: 5, ..BUDGET });
    assert_eq!(schedule.stage, [0, 2, 4]);
    let schedule = planned(&graph, &Budget { stages: 2, ..BUDGET });
    assert_eq!(schedule.stage, [0, 1, 1]);
}

#[test]
fn addresses_that_take_registers_are_loaded_one_iteration_before_what_is_copied_from_there() {
    // Pages, of which a thread has so many numbers that they had better not wait for long, and what is copied from them.
    let pages = Node { early: true, near: true, words: 8, ..Node::new(Kind::Guarded) };
    let nodes = vec![pages, Node::new(Kind::Pure), copy(0), reading(Kind::Pure, &[0])];
    let edges = vec![edge(0, 1, 0), edge(1, 2, 0), edge(2, 3, 0)];
    let graph = LoopGraph { nodes, edges, rings: vec![1 << 13] };
    assert_eq!(planned(&graph, &BUDGET).stage, [0, 1, 1, 2]);
    // Of copies that come before, one iteration before these.
    assert_eq!(planned(&graph, &Budget { stages: 5, ..BUDGET }).stage, [1, 2, 2, 4]);
    assert_eq!(planned(&graph, &Budget { stages: 2, ..BUDGET }).stage, [0, 1, 1, 1]);
}

#[test]
fn registers_are_loaded_again_once_they_are_used() {
    // A load through registers, converted to the ring that a dot beside the program reads; the other operand is copied.
    let load = Node { early: true, near: true, words: 16, ..Node::new(Kind::Guarded) };
    let fill = Node { writes: Some(0), ..Node::new(Kind::Fill) };
    let dot = Node { heavy: true, ..reading(Kind::Dot, &[0, 1]) };
    let graph = LoopGraph {
        nodes: vec![Node::new(Kind::Pure), load, copy(1), fill, dot],
        edges: vec![
            edge(0, 0, 1),
            edge(0, 1, 0),
            edge(0, 2, 0),
            edge(1, 3, 0),
            Edge { accumulates: true, ..edge(4, 4, 1) },
        ],
        rings: vec![1 << 13, 1 << 13],
    };
    // Four slots of copies do not fit: copies wait for the dot of the iteration before. The load and its address do not.
    let schedule = planned(&graph, &Budget { shared: 5 << 13, ..BUDGET });
    let at = |n| schedule.kernel.iter().position(|step| *step == Step::Run(n)).unwrap();
    assert!(at(3) < at(1) && at(1) < at(4) && at(4) < at(2), "{schedule:#?}");
    assert!(at(0) < at(2), "{schedule:#?}");
}

#[test]
fn what_the_program_asks_for_is_done() {
    let mut graph = matmul_of_warps();
    (graph.nodes[0].asked, graph.nodes[1].asked) = (Some(3), Some(1));
    let schedule = planned(&graph, &Budget { stages: 4, ..BUDGET });
    assert_eq!((schedule.ahead(0), schedule.ahead(1)), (3, 1));
}

#[test]
fn operations_come_in_the_order_that_the_program_asks_for() {
    for (graph, dot) in [(matmul_of_warps(), 4), (matmul_of_warp_groups(), 2)] {
        let at = |schedule: &LoopSchedule, n| schedule.kernel.iter().position(|step| *step == Step::Run(n));
        for (copies, multiplies) in [(0, 1), (1, 0)] {
            let mut graph = graph.clone();
            graph.nodes[0].cluster = Some(copies);
            graph.nodes[1].cluster = Some(copies);
            graph.nodes[dot].cluster = Some(multiplies);
            let schedule = planned(&graph, &BUDGET);
            assert_eq!(at(&schedule, 0) < at(&schedule, dot), copies < multiplies, "{schedule:#?}");
            assert_eq!(schedule.misplaced(&graph), None);
        }
    }
    // What cannot be is told.
    let mut graph = matmul_of_warp_groups();
    (graph.nodes[0].cluster, graph.nodes[1].cluster, graph.nodes[2].cluster) = (Some(0), Some(2), Some(1));
    assert_eq!(planned(&graph, &BUDGET).misplaced(&graph), Some((2, 1)));
}

/// A dot whose result is scaled and added in the same iteration: no dot is under way when the next one begins.
fn scaled_sums() -> LoopGraph {
    let scale = Node { heavy: true, ..Node::new(Kind::Pure) };
    LoopGraph {
        nodes: vec![copy(0), copy(1), Node { heavy: true, ..reading(Kind::Dot, &[0, 1]) }, scale],
        edges: vec![edge(2, 3, 0), edge(3, 3, 1)],
        rings: vec![1 << 13, 1 << 13],
    }
}

#[test]
fn copies_are_issued_beside_a_dot_that_begins_at_once() {
    let at = |schedule: &LoopSchedule, wanted: &dyn Fn(&Step) -> bool| {
        schedule.kernel.iter().position(wanted).expect("a step")
    };
    let run = |node: usize| move |step: &Step| *step == Step::Run(node);
    let done = |step: &Step| matches!(step, Step::AwaitDots { .. });
    for stages in 2..=4 {
        let schedule = planned(&scaled_sums(), &Budget { stages, ..BUDGET });
        let (dot, copy, done) = (at(&schedule, &run(2)), at(&schedule, &run(0)), at(&schedule, &done));
        assert!(dot < copy && copy < done, "{schedule:#?}");
        // One that adds to the result of the dot before, which may be under way, would keep copies waiting.
        let schedule = planned(&matmul_of_warp_groups(), &Budget { stages, ..BUDGET });
        assert!(at(&schedule, &run(0)) < at(&schedule, &run(2)), "{schedule:#?}");
    }
}

#[test]
fn what_depends_on_effects_stays() {
    let mut graph = matmul_of_warps();
    graph.nodes.push(Node::new(Kind::Fixed));
    graph.edges.push(edge(6, 0, 1));
    let schedule = planned(&graph, &BUDGET);
    assert_eq!((schedule.ahead(0), schedule.ahead(1)), (0, 2));
    graph.edges.push(edge(6, 5, 1));
    assert_eq!(LoopSchedule::new(&graph, &BUDGET), None);
}

#[test]
fn registers_limit_what_waits_in_them() {
    let graph = LoopGraph {
        nodes: vec![Node { early: true, words: 40, ..Node::new(Kind::Guarded) }, Node::new(Kind::Fixed)],
        edges: vec![edge(0, 1, 0)],
        rings: vec![],
    };
    assert_eq!(planned(&graph, &BUDGET).stages, 2);
    let mut near = graph.clone();
    near.nodes[0].near = true;
    assert_eq!((planned(&near, &BUDGET).stages, planned(&near, &BUDGET).ahead(0)), (3, 1));
    assert_eq!(LoopSchedule::new(&graph, &Budget { registers: 39, ..BUDGET }), None);
}

/// Whatever breaks a schedule in one place.
fn mutants(schedule: &LoopSchedule) -> Vec<(String, LoopSchedule)> {
    let mut all = Vec::new();
    let mut add = |what: String, change: &dyn Fn(&mut LoopSchedule)| {
        let mut mutant = schedule.clone();
        change(&mut mutant);
        all.push((what, mutant));
    };
    for ring in 0..schedule.depths.len() {
        add(format!("ring {ring} has a slot less"), &|mutant| mutant.depths[ring] -= 1);
    }
    for (place, step) in schedule.kernel.iter().enumerate() {
        if !matches!(step, Step::Issued | Step::Spread) {
            add(format!("without {step}"), &|mutant| _ = mutant.kernel.remove(place));
        }
        if *step == Step::Spread {
            add("accesses spread over a part of an iteration".to_owned(), &|mutant| {
                mutant.kernel.swap(place - 1, place)
            });
            add("accesses spread twice".to_owned(), &|mutant| mutant.kernel.push(Step::Spread));
            add("accesses spread over halves".to_owned(), &|mutant| mutant.halves = true);
        }
        match step {
            Step::AwaitCopies { .. } | Step::AwaitNext { .. } | Step::AwaitDots { .. } => {
                add(format!("one more than {step}"), &|mutant| match &mut mutant.kernel[place] {
                    Step::AwaitCopies { pending, .. }
                    | Step::AwaitNext { pending, .. }
                    | Step::AwaitDots { pending, .. } => *pending += 1,
                    _ => {}
                });
            }
            _ => {}
        }
    }
    for node in 0..schedule.stage.len() {
        add(format!("operation {node} in another stage"), &|mutant| {
            mutant.stage[node] = if mutant.stage[node] == 0 { mutant.stages - 1 } else { 0 };
        });
    }
    all
}

#[test]
fn broken_schedules_are_refused() {
    for (graph, budget) in [
        (matmul_of_warps(), BUDGET),
        (matmul_of_warps(), Budget { halves: true, ..BUDGET }),
        (matmul_of_warp_groups(), BUDGET),
        (matmul_of_warp_groups(), Budget { shared: 6 << 13, ..BUDGET }),
        (attention(), BUDGET),
    ] {
        let schedule = planned(&graph, &budget);
        assert_all_refused(&graph, &schedule, &budget);
    }
    let graph = matmul_of_stores();
    for shared in [4 << 13, 3 << 13] {
        let budget = Budget { shared, ..BUDGET };
        let schedule = LoopSchedule::in_turns(&graph, &budget).expect("a schedule");
        assert_all_refused(&graph, &schedule, &budget);
    }
}

fn assert_all_refused(graph: &LoopGraph, schedule: &LoopSchedule, budget: &Budget) {
    for (what, mutant) in mutants(schedule) {
        // An address that is computed in another stage alone, or not in time, is caught as well.
        assert!(right(graph, &mutant, budget).is_err(), "not refused: {what}\n{schedule:#?}");
    }
}

/// The operands loaded to registers, stored to shared memory by threads and read from there; the address goes on.
fn matmul_of_stores() -> LoopGraph {
    let load = || Node { early: true, near: true, words: 16, ..Node::new(Kind::Guarded) };
    let store = |ring| Node { early: true, near: true, writes: Some(ring), ..Node::new(Kind::Fill) };
    let heavy = Node { heavy: true, divisible: true, ..Node::new(Kind::Pure) };
    let nodes = vec![
        load(),
        load(),
        store(0),
        store(1),
        reading(Kind::Fixed, &[0]),
        reading(Kind::Fixed, &[1]),
        heavy,
        Node::new(Kind::Pure),
    ];
    let within = [(0, 2), (1, 3), (4, 6), (5, 6)].map(|(from, to)| edge(from, to, 0));
    let carried = [(6, 6), (7, 0), (7, 1), (7, 7)].map(|(from, to)| edge(from, to, 1));
    LoopGraph { nodes, edges: [within, carried].concat(), rings: vec![1 << 13, 1 << 13] }
}

#[test]
fn halves_of_the_warps_store_and_multiply_in_turns() {
    let graph = matmul_of_stores();
    let turns = |graph: &LoopGraph, budget: &Budget| {
        let schedule = LoopSchedule::in_turns(graph, budget)?;
        right(graph, &schedule, budget).unwrap_or_else(|what| panic!("{what}\n{schedule:#?}"));
        Some(schedule)
    };
    let meets = |schedule: &LoopSchedule| schedule.kernel.iter().filter(|step| **step == Step::Meet).count();
    let at = |schedule: &LoopSchedule, step: Step| schedule.kernel.iter().position(|other| *other == step);
    // With two slots an iteration is a part for memory and one for dots.
    let two = turns(&graph, &Budget { shared: 4 << 13, ..BUDGET }).expect("a schedule");
    assert_eq!((two.stages, two.depths.as_slice(), meets(&two)), (3, [2, 2].as_slice(), 2));
    assert_eq!([0, 2, 4].map(|n| two.ahead(n)), [2, 1, 0]);
    // What is loaded goes to the registers that have just been stored.
    assert!(
        at(&two, Step::Run(5)) < at(&two, Step::Run(2)) && at(&two, Step::Run(3)) < at(&two, Step::Run(0))
    );
    assert!(at(&two, Step::Run(1)) < at(&two, Step::Run(6)), "{two:#?}");
    // With one slot the dot has halves, before and behind what stores to it.
    let one = turns(&graph, &Budget { shared: (4 << 13) - 1, ..BUDGET }).expect("a schedule");
    assert_eq!((one.stages, one.depths.as_slice(), meets(&one)), (3, [1, 1].as_slice(), 4));
    let halves = [false, true].map(|second| at(&one, Step::RunHalf(6, second)));
    assert!(at(&one, Step::Run(5)) < halves[0] && halves[0] < at(&one, Step::Run(2)), "{one:#?}");
    assert!(at(&one, Step::Run(1)) < halves[1], "{one:#?}");
    // Nothing else may be in such a loop: no whole dot in two parts, no second dot, no copies, nothing behind dots that reads.
    let mut whole = graph.clone();
    whole.nodes[6].divisible = false;
    let mut second = graph.clone();
    second.nodes.push(Node { heavy: true, ..Node::new(Kind::Pure) });
    let mut copies = graph.clone();
    copies.nodes[2] = copy(0);
    let mut late = graph.clone();
    late.nodes.push(reading(Kind::Fixed, &[0]));
    let little = Budget { shared: 3 << 13, ..BUDGET };
    for (graph, budget) in [
        (&whole, &little),
        (&second, &BUDGET),
        (&copies, &BUDGET),
        (&late, &BUDGET),
        (&graph, &Budget { shared: 1 << 13, ..BUDGET }),
        (&graph, &Budget { stages: 2, ..BUDGET }),
    ] {
        assert_eq!(turns(graph, budget), None);
    }
}

#[test]
fn halves_of_the_warps_take_turns() {
    let (graph, halves) = (matmul_of_warps(), Budget { halves: true, stages: 4, ..BUDGET });
    let schedule = planned(&graph, &halves);
    assert!(schedule.halves);
    // As many slots as without: what is copied goes to the slot that both halves have read an iteration before.
    assert_eq!(schedule.depths, planned(&graph, &Budget { halves: false, ..halves }).depths);
    let at = |wanted: &dyn Fn(&Step) -> bool| schedule.kernel.iter().position(wanted).expect("a step");
    let meets: Vec<usize> =
        (0..schedule.kernel.len()).filter(|at| schedule.kernel[*at] == Step::Meet).collect();
    let (dot, read) = (at(&|step| *step == Step::Run(4)), at(&|step| *step == Step::Run(3)));
    let next = at(&|step| matches!(step, Step::AwaitNext { pending: 2, .. }));
    assert!(read < next && next + 1 == meets[0] && meets[0] < dot && meets[1] == schedule.kernel.len() - 1);
    // Two stages have nothing under way for it; a store is ordered by barriers that nobody counts; two CTAs take turns by
    // themselves.
    let mut stores = graph.clone();
    stores.nodes.push(reading(Kind::Fill, &[]));
    stores.nodes[6].writes = Some(2);
    stores.rings.push(1 << 10);
    stores.edges.push(edge(4, 6, 0));
    for (graph, budget) in [
        (&graph, Budget { stages: 2, ..halves }),
        (&stores, halves),
        (&graph, Budget { ctas: 2, shared: 1 << 20, ..halves }),
    ] {
        assert!(!planned(graph, &budget).halves);
    }
}

/// A loop whose operands bulk copies bring, the second one read by threads.
fn matmul_of_bulk_copies() -> LoopGraph {
    let mut graph = matmul_of_warp_groups();
    graph.nodes[0].kind = Kind::BulkCopy;
    graph.nodes[1].kind = Kind::BulkCopy;
    graph
}

#[test]
fn prologues_of_the_next_tile_find_slots_as_the_tile_before_left_them() {
    let tiles: [u64; 7] = [3, 0, 5, 1, 0, 2, 4];
    for stages in 2..=5 {
        let budget = Budget { stages, ..BUDGET };
        let restarts =
            planned(&matmul_of_warp_groups(), &budget).with_prologue_ahead(&matmul_of_warp_groups());
        assert_eq!(restarts.prologue, Prologue::TileBefore(Slots::Restart));
        let graph = matmul_of_bulk_copies();
        let goes_on = planned(&graph, &budget).with_prologue_ahead(&graph);
        assert_eq!(goes_on.prologue, Prologue::TileBefore(Slots::Continue));
        assert_eq!(check(&graph, &goes_on, &budget, &tiles), Ok(()));
        // A barrier has announced data of the tile before already.
        let again = LoopSchedule { prologue: Prologue::TileBefore(Slots::Restart), ..goes_on };
        let error = check(&graph, &again, &budget, &tiles).expect_err("phases begin again");
        assert!(error.contains("phase 0 of a barrier that has announced"), "{error}");
    }
}

/// A small generator of numbers (Marsaglia, "Xorshift RNGs").
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A loop of any shape: loads that need loads, dots that need dots, effects in between.
fn random_loop(random: &mut Random) -> LoopGraph {
    let mut graph = LoopGraph::default();
    let count = 3 + random.below(12) as usize;
    for n in 0..count {
        let mut node = match random.below(8) {
            0 => Node::new(Kind::Fixed),
            1 | 2 => {
                let near = random.one_in(3);
                let asked = random.one_in(6).then(|| random.below(4) as u32);
                let cluster = random.one_in(4).then(|| random.below(3) as u32);
                Node { early: !random.one_in(4), near, asked, cluster, ..Node::new(Kind::Guarded) }
            }
            3 | 4 => {
                graph.rings.push(1 << (8 + random.below(5)));
                let kind = if random.one_in(3) { Kind::BulkCopy } else { Kind::Copy };
                Node { early: !random.one_in(5), ..Node::new(kind) }
            }
            5 if random.one_in(2) => {
                graph.rings.push(1 << (8 + random.below(5)));
                let ahead = random.one_in(2);
                Node { early: ahead, near: ahead && random.one_in(2), ..Node::new(Kind::Fill) }
            }
            6 => Node { heavy: true, blocking: random.one_in(3), ..Node::new(Kind::Dot) },
            _ => Node::new(Kind::Pure),
        };
        if matches!(node.kind, Kind::Copy | Kind::BulkCopy | Kind::Fill) {
            node.writes = Some(graph.rings.len() - 1);
        } else if matches!(node.kind, Kind::Pure | Kind::Dot | Kind::Fixed) {
            for ring in 0..graph.rings.len() {
                if random.one_in(3) {
                    node.reads.push(ring);
                }
            }
        }
        node.words = random.below(8);
        node.heavy |= random.one_in(6);
        let has_value = |n: usize, graph: &LoopGraph| graph.nodes[n].writes.is_none();
        for from in (0..n).filter(|from| has_value(*from, &graph)).collect::<Vec<_>>() {
            if random.one_in(5) {
                let accumulates =
                    node.kind == Kind::Dot && graph.nodes[from].kind == Kind::Dot && random.one_in(2);
                graph.edges.push(Edge { from, to: n, distance: 0, accumulates });
            }
        }
        graph.nodes.push(node);
        for to in 0..=n {
            if has_value(n, &graph) && random.one_in(8) {
                let both = [n, to].iter().all(|n| graph.nodes[*n].kind == Kind::Dot);
                graph.edges.push(Edge { from: n, to, distance: 1, accumulates: both && random.one_in(2) });
            }
        }
    }
    // Everything that is copied is read.
    let mut last = Node::new(Kind::Fixed);
    let unread = |ring: &usize| graph.nodes.iter().all(|node| !node.reads.contains(ring));
    last.reads = (0..graph.rings.len()).filter(unread).collect();
    graph.nodes.push(last);
    graph
}

/// The same loop with threads that fill its rings, for a later iteration where that may be.
fn filled_by_threads(mut graph: LoopGraph) -> LoopGraph {
    for node in graph.nodes.iter_mut().filter(|node| node.writes.is_some()) {
        *node = Node { early: true, near: true, writes: node.writes, ..Node::new(Kind::Fill) };
    }
    for node in graph.nodes.iter_mut() {
        (node.asked, node.cluster) = (None, None);
        node.kind = if node.kind == Kind::Dot { Kind::Pure } else { node.kind };
    }
    graph.edges.iter_mut().for_each(|edge| edge.accumulates = false);
    graph
}

/// Has some nodes that do nothing but read rings do so an iteration ahead.
fn some_read_ahead(mut graph: LoopGraph, random: &mut Random) -> LoopGraph {
    for n in 0..graph.nodes.len() {
        let needs_nothing = graph.edges.iter().all(|edge| edge.to != n);
        let used_at_once = graph.edges.iter().all(|edge| edge.from != n || edge.distance == 0);
        let node = &mut graph.nodes[n];
        let reads = matches!(node.kind, Kind::Pure | Kind::Fixed) && !node.reads.is_empty() && !node.heavy;
        if reads && node.writes.is_none() && needs_nothing && used_at_once && random.one_in(2) {
            (node.kind, node.early, node.fetches) = (Kind::Pure, true, true);
        }
    }
    graph
}

#[test]
fn schedules_of_random_loops_are_right() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut found, mut deepest, mut ahead, mut stored, mut spread) = (0, 0, 0, 0, 0);
    for number in 0..6_000 {
        let graph = random_loop(&mut random);
        let budget = Budget {
            stages: 2 + random.below(4) as u32,
            wanted: u32::MAX,
            shared: 1 << (10 + random.below(6)),
            taken: random.below(2000),
            ctas: 1 + random.below(3),
            may_fit_more: random.one_in(2),
            leave_room: random.one_in(2),
            registers: random.below(40),
            threads: 32 << random.below(3),
            needed_ahead: random.below(1 << 12),
            most_ahead: random.below(1 << 15),
            starts_late: random.one_in(2),
            busy_alone: random.one_in(2),
            few_programs: random.one_in(2),
            halves: random.one_in(2),
        };
        let filled = some_read_ahead(filled_by_threads(graph.clone()), &mut random);
        let slots = 1 + random.below(2) as u32;
        if filled.nodes.iter().any(|node| node.fetches)
            && let Some(schedule) = LoopSchedule::reading_stored(&filled, slots, &budget)
        {
            stored += 1;
            let words: u64 = filled.nodes.iter().filter(|node| node.fetches).map(|node| node.words).sum();
            let budget = Budget { stages: 3, registers: budget.registers + words, ..budget };
            if let Err(what) = right(&filled, &schedule, &budget) {
                panic!("loop {number}, stored and read ahead: {what}\n{filled:#?}\n{schedule:#?}");
            }
        }
        let Some(schedule) = LoopSchedule::new(&graph, &budget) else { continue };
        found += 1;
        deepest = deepest.max(schedule.stages);
        if let Err(what) = right(&graph, &schedule, &budget) {
            panic!("loop {number}: {what}\n{graph:#?}\n{schedule:#?}");
        }
        // The same with some of what is read of rings read an iteration ahead.
        let graph = some_read_ahead(graph, &mut random);
        let Some(schedule) = schedule.reading_ahead(&graph, &budget) else { continue };
        ahead += 1;
        let words: u64 = graph.nodes.iter().filter(|node| node.fetches).map(|node| node.words).sum();
        let budget = Budget { stages: schedule.stages, registers: budget.registers + words, ..budget };
        let schedule = schedule.spreading(&graph);
        spread += u32::from(schedule.is_spread());
        if let Err(what) = right(&graph, &schedule, &budget) {
            panic!("loop {number}, read ahead: {what}\n{graph:#?}\n{schedule:#?}");
        }
    }
    assert!(ahead > 50, "{ahead} of {found} schedules read operands ahead");
    assert!(spread > 0, "{spread} of {ahead} spread accesses");
    assert!(stored > 50, "{stored} schedules store operands and read them ahead");
    assert!(found > 1_500 && deepest == 5, "{found} loops had a schedule, of up to {deepest} stages");
}

/// [`matmul_of_warps`] in `parts` parts along K, the first of which is read an iteration ahead.
fn matmul_in_parts(parts: usize) -> LoopGraph {
    let mut graph = LoopGraph { rings: vec![1 << 13, 1 << 13], ..LoopGraph::default() };
    graph.nodes.extend([copy(0), copy(1)]);
    let mut sum = None;
    for part in 0..parts {
        let ahead = part == 0;
        for ring in 0..2 {
            let kind = if ahead { Kind::Pure } else { Kind::Fixed };
            let node = Node { fetches: ahead, early: ahead, words: 8, ..reading(kind, &[ring]) };
            graph.nodes.push(node);
        }
        let dot = graph.nodes.len();
        graph.nodes.push(Node { heavy: true, ..Node::new(Kind::Pure) });
        graph.edges.extend([edge(dot - 2, dot, 0), edge(dot - 1, dot, 0)]);
        graph.edges.extend(sum.map(|sum| edge(sum, dot, 0)));
        sum = Some(dot);
    }
    let first = 4;
    graph.edges.extend(sum.map(|last| edge(last, first, 1)));
    let next = graph.nodes.len();
    graph.nodes.push(Node::new(Kind::Pure));
    graph.edges.extend([edge(next, 0, 1), edge(next, 1, 1), edge(next, next, 1)]);
    graph
}

#[test]
fn operands_of_the_next_iteration_are_read_before_the_last_part_of_a_dot() {
    for (stages, parts) in (2..=5).flat_map(|stages| (1..=4).map(move |parts| (stages, parts))) {
        let budget = Budget { stages, ..BUDGET };
        let plain = planned(&matmul_of_warps(), &budget);
        let graph = matmul_in_parts(parts);
        let schedule = plain.reading_ahead(&graph, &budget).expect("a schedule");
        // Reads have a stage of their own, registers besides, and no more slots.
        let budget = Budget { stages: stages + 1, registers: BUDGET.registers + 16, ..budget };
        assert_eq!(right(&graph, &schedule, &budget), Ok(()), "{schedule:#?}");
        assert_eq!((schedule.stages, &schedule.depths), (stages + 1, &plain.depths));
        let at = |n| schedule.kernel.iter().position(|step| *step == Step::Run(n)).expect("a step");
        let is_wait = |step: &Step| matches!(step, Step::AwaitNext { pending, .. } if *pending == stages - 2);
        let wait = schedule.kernel.iter().position(is_wait).expect("a wait");
        let last = graph.nodes.len() - 2;
        let reads = (0..graph.nodes.len()).filter(|n| !graph.nodes[*n].reads.is_empty());
        for read in reads {
            assert_eq!(graph.nodes[read].fetches, at(read) > wait, "{:?}", schedule.kernel);
        }
        assert!([0, 1, 2, 3].iter().all(|n| wait < at(*n) && at(*n) < at(last)), "{:?}", schedule.kernel);
        assert_eq!(schedule.kernel.iter().filter(|step| matches!(step, Step::AwaitCopies { .. })).count(), 0);
        let schedule = schedule.spreading(&graph);
        assert!(schedule.is_spread());
        assert_eq!(right(&graph, &schedule, &budget), Ok(()));
        assert_all_refused(&graph, &schedule, &budget);
    }
}

#[test]
fn what_threads_store_for_the_next_iteration_is_read_before_the_last_part_of_a_dot() {
    for (slots, parts) in [(1, 1), (1, 2), (1, 4), (2, 2), (2, 4)] {
        // The operands are loaded to registers.
        let mut graph = filled_by_threads(matmul_in_parts(parts));
        let load = Node { early: true, near: true, words: 8, ..Node::new(Kind::Guarded) };
        let stores = [2, 3];
        graph.nodes.splice(0..0, [load.clone(), load]);
        graph.edges.iter_mut().for_each(|edge| (edge.from, edge.to) = (edge.from + 2, edge.to + 2));
        graph.edges.iter_mut().filter(|edge| stores.contains(&edge.to)).for_each(|edge| edge.to -= 2);
        graph.edges.extend(stores.map(|store| edge(store - 2, store, 0)));
        let schedule = LoopSchedule::reading_stored(&graph, slots, &BUDGET).expect("a schedule");
        let budget = Budget { registers: BUDGET.registers + 16, ..BUDGET };
        assert_eq!(right(&graph, &schedule, &budget), Ok(()), "{schedule:#?}");
        assert_eq!((schedule.stages, &schedule.depths), (3, &vec![slots; 2]));
        let at = |n: usize| schedule.kernel.iter().position(|step| *step == Step::Run(n)).expect("a step");
        let dots: Vec<usize> = (0..graph.nodes.len()).filter(|n| graph.nodes[*n].heavy).map(at).collect();
        let reads = (0..graph.nodes.len()).filter(|n| !graph.nodes[*n].reads.is_empty());
        for read in reads {
            let ahead = graph.nodes[read].fetches;
            // The next iteration's come behind what is stored for it, and before the last dot; in a single slot all others before.
            let behind = stores.iter().all(|store| at(read) > at(*store));
            assert!(if ahead { behind } else { slots == 2 || !behind }, "{:?}", schedule.kernel);
            let last_two = (parts < 2 || dots[parts - 2] < at(read)) && at(read) < dots[parts - 1];
            assert!(!ahead || last_two, "{:?}", schedule.kernel);
        }
        // What is loaded goes to the registers that have just been stored.
        assert!(stores.iter().all(|store| at(*store) < at(store - 2)), "{:?}", schedule.kernel);
        assert!(parts < 4 || dots[0] < at(2) && at(3) < dots[parts - 1], "{:?}", schedule.kernel);
        // The second slot of two parts only saves a barrier, of which this checker knows nothing.
        if (slots, parts) != (2, 2) {
            assert_all_refused(&graph, &schedule, &budget);
        }
    }
}

#[test]
fn what_would_take_slots_is_not_read_ahead() {
    // With a single slot the next iteration's copies begin where this one has been read.
    let budget = Budget { stages: 2, shared: 1 << 14, ..BUDGET };
    let plain = planned(&matmul_of_warps(), &budget);
    assert_eq!(plain.depths, [1, 1]);
    assert_eq!(plain.reading_ahead(&matmul_in_parts(2), &budget), None);
    // Copies behind the dots of three stages have two slots, and so have those before the last part of a dot.
    let budget = Budget { stages: 3, shared: 1 << 15, ..BUDGET };
    let plain = planned(&matmul_of_warps(), &budget);
    let ahead = plain.reading_ahead(&matmul_in_parts(2), &budget).expect("a schedule");
    assert_eq!((plain.stages, plain.depths, ahead.stages, ahead.depths), (3, vec![2, 2], 3, vec![2, 2]));
}

/// A load to registers, what writes it to shared memory, what reads that, a dot; the address goes on.
fn matmul_through_registers() -> LoopGraph {
    let load = Node { early: true, near: true, words: 16, ..Node::new(Kind::Guarded) };
    let heavy = Node { heavy: true, ..Node::new(Kind::Pure) };
    LoopGraph {
        nodes: vec![load, Node::new(Kind::Fixed), Node::new(Kind::Fixed), heavy, Node::new(Kind::Pure)],
        edges: vec![edge(0, 1, 0), edge(2, 3, 0), edge(3, 3, 1), edge(4, 0, 1), edge(4, 4, 1)],
        rings: Vec::new(),
    }
}

#[test]
fn loads_to_registers_come_between_what_uses_the_values_that_they_replace_and_the_dot() {
    let graph = matmul_through_registers();
    let schedule = LoopSchedule::new(&graph, &BUDGET).expect("a schedule");
    assert_eq!(right(&graph, &schedule, &BUDGET), Ok(()));
    let at = |n| schedule.kernel.iter().position(|step| *step == Step::Run(n)).expect("a step");
    assert_eq!(schedule.ahead(0), 1);
    assert!(at(2) < at(0) && at(0) < at(3), "{:?}", schedule.kernel);
    // What a second dot reads is loaded before that one.
    let mut graph = matmul_through_registers();
    let first = graph.nodes.len();
    let (nodes, edges) = (graph.nodes.clone(), graph.edges.clone());
    graph.nodes.extend(nodes);
    graph.edges.extend(edges.iter().map(|e| edge(first + e.from, first + e.to, e.distance)));
    let schedule = LoopSchedule::new(&graph, &BUDGET).expect("a schedule");
    assert_eq!(right(&graph, &schedule, &BUDGET), Ok(()));
    let at = |n| schedule.kernel.iter().position(|step| *step == Step::Run(n)).expect("a step");
    assert!(at(first + 1) < at(first) && at(first) < at(first + 3), "{:?}", schedule.kernel);
    assert!(at(0) < at(3) && at(3) < at(first), "{:?}", schedule.kernel);
}

/// An iteration in `parts` dots of `count` instructions, each of which reads what it multiplies a part before, and copies behind a barrier.
fn parts_of_reads(parts: usize, count: u32, reads: u32, copies: u32) -> Vec<Item> {
    let mut items = vec![Item::Dot(count, vec![])];
    for _ in 1..parts {
        items.extend([Item::Access(Unit::Read, reads), Item::Dot(count, vec![items.len()])]);
    }
    let last = items.pop().expect("a dot");
    items.extend([Item::Barrier, Item::Access(Unit::Load, copies), Item::Access(Unit::Read, reads), last]);
    items
}

/// The same in short: the counts of `M`atrix instructions, `R`eads, `S`tores and `L`oads.
fn in_short(groups: &[Group]) -> String {
    let letter = |unit| match unit {
        Unit::Matrix => 'M',
        Unit::Read => 'R',
        Unit::Store => 'S',
        Unit::Load => 'L',
    };
    let all = groups.iter().flat_map(|group| std::iter::repeat_n(letter(group.unit), group.count as usize));
    all.collect()
}

#[test]
fn accesses_lie_between_matrix_instructions_evenly() {
    let issued = |items: &[Item], latency| {
        let groups = groups(items, latency);
        assert_eq!(check_groups(items, &groups, latency as u32), Ok(()), "{}", in_short(&groups));
        in_short(&groups)
    };
    // As many accesses as matrix instructions, and half as many.
    assert_eq!(issued(&parts_of_reads(4, 4, 2, 8), 0), "MRMRMRMRMRMRMRMLMLMLMLMRMLMLMLML");
    assert_eq!(issued(&parts_of_reads(4, 4, 1, 4), 0), "MMRMMRMMRMMRMMLMMLMMLMML");
    // What is needed soon comes sooner, by as much as a read takes, and the rest evenly.
    assert_eq!(issued(&parts_of_reads(2, 4, 4, 0), 2), "MRRMRRMMRMRMMRMR");
    // Before a dot that nothing comes before, all that it needs.
    let reads = [Item::Access(Unit::Read, 3), Item::Barrier, Item::Dot(4, vec![0])];
    assert_eq!(issued(&reads, 1), "RRRMMMM");
    // What threads store is followed by what they load in its place.
    let stores = [
        Item::Dot(2, vec![]),
        Item::Issued,
        Item::Access(Unit::Store, 2),
        Item::Access(Unit::Load, 2),
        Item::Dot(4, vec![]),
    ];
    assert_eq!(issued(&stores, 1), "MMMSMLMSML");
}

#[test]
fn orders_of_random_iterations_are_right() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut refused = [0; 4];
    for number in 0..4_000 {
        let mut items: Vec<Item> = Vec::new();
        let mut reads: Vec<usize> = Vec::new();
        for _ in 0..1 + random.below(10) {
            let count = 1 + random.below(12) as u32;
            match random.below(6) {
                0 => items.push(Item::Access(Unit::Load, count)),
                1 => items.push(Item::Access(Unit::Store, count)),
                2 => {
                    reads.push(items.len());
                    items.push(Item::Access(Unit::Read, count));
                }
                3 => items.push(if random.one_in(3) { Item::Issued } else { Item::Barrier }),
                _ => {
                    let needs = reads.iter().copied().filter(|_| random.one_in(2)).collect();
                    items.push(Item::Dot(count, needs));
                }
            }
        }
        let latency = random.below(4);
        let order = groups(&items, latency);
        let check = |order: &[Group]| check_groups(&items, order, latency as u32);
        if let Err(what) = check(&order) {
            panic!("iteration {number}: {what}\n{items:?}\n{}", in_short(&order));
        }
        // An instruction less, one more, one of another unit, and all accesses at once.
        let mut mutants: Vec<Vec<Group>> = vec![order.clone(); 4];
        let Some(at) = (0..order.len()).find(|_| random.one_in(2)) else { continue };
        mutants[0][at].count -= 1;
        mutants[1][at].count += 1;
        mutants[2][at].unit = if order[at].unit == Unit::Read { Unit::Store } else { Unit::Read };
        for (mutant, refused) in mutants.iter().zip(&mut refused).take(3) {
            assert!(
                check(mutant).is_err(),
                "iteration {number}: not refused\n{items:?}\n{}",
                in_short(mutant)
            );
            *refused += 1;
        }
        mutants[3].sort_by_key(|group| group.unit == Unit::Matrix);
        refused[3] += u32::from(check(&mutants[3]).is_err());
    }
    assert!(refused.iter().all(|count| *count > 500), "{refused:?}");
}
