use super::*;
use crate::testing::Session;
use mlir_host::rewrite::IrRewriter;

/// What the only public function of a body costs; `%p` points to a tensor in `#v`, `%n` is not known.
fn total(body: &str) -> Total {
    let session = Session::new(&format!(
        "tt.func private @use(tensor<512xf32, #w>)
         tt.func @f(%p: tensor<512x!tt.ptr<f32>, #v>, %m: tensor<64x64xf32, #a>, %n: i32, %c: i1) {{
           %c0 = arith.constant 0 : i32
           %c1 = arith.constant 1 : i32
           %c4 = arith.constant 4 : i32
           {body}
           tt.return
         }}"
    ));
    let layouts = Layouts::new(session.context(), Machine::of(session.module()).expect("a machine"));
    let function = session.all("tt.func")[1];
    Objective::new(session.module()).of_function(function, &layouts)
}

fn cycles(body: &str) -> f64 {
    let total = total(body);
    assert_eq!(total.unplanned, 0);
    total.cycles
}

const LOAD: &str = "%x = tt.load %p {isVolatile = true} : tensor<512x!tt.ptr<f32>, #v>";
const CONVERT: &str = "%y = ttg.convert_layout %x : tensor<512xf32, #v> -> tensor<512xf32, #w>";

#[test]
fn every_kind_of_work_counts() {
    let load = cycles(LOAD);
    assert!(load > 0.0);
    let convert = cycles(&format!("{LOAD}\n{CONVERT}"));
    assert!(convert > load + SYNCHRONIZATION, "{convert} beside {load}");
    let add = cycles(&format!("{LOAD}\n%y = arith.addf %x, %x : tensor<512xf32, #v>"));
    let exp = cycles(&format!("{LOAD}\n%y = math.exp2 %x : tensor<512xf32, #v>"));
    assert!(load < add && add < exp, "{load}, {add}, {exp}");
    let matrix = cycles("%y = math.exp2 %m : tensor<64x64xf32, #a>");
    assert_eq!(matrix, 64.0 * 64.0 / 32.0 * 2.0, "two cycles for 32 elements, none computed twice");
}

#[test]
fn replicated_arithmetic_counts_as_often_as_it_is_done() {
    let exp = |ty: &str| cycles(&format!("%z = arith.constant dense<1.0> : {ty}\n%y = math.exp2 %z : {ty}"));
    // 32 elements in each of four warps, or 128 elements, one in each thread.
    assert_eq!(exp("tensor<32xf32, #v>"), exp("tensor<128xf32, #v>"));
    assert_eq!(4.0 * exp("tensor<128xf32, #v>"), exp("tensor<512xf32, #v>"));
}

#[test]
fn places_count_as_often_as_they_run() {
    let once = cycles(LOAD);
    let in_loop = |to: &str| cycles(&format!("scf.for %i = %c0 to {to} step %c1 : i32 {{\n{LOAD}\n}}"));
    assert_eq!(in_loop("%c4"), 4.0 * once);
    assert_eq!(in_loop("%n"), ITERATIONS * once);
    assert_eq!(in_loop("%c0"), once, "what never runs has a place all the same");
    assert_eq!(cycles(&format!("scf.if %c {{\n{LOAD}\n}}")), once / 2.0);
}

#[test]
fn registers_that_there_are_not_cost_their_way_to_memory_and_back() {
    // 64 × 64 elements of four warps take 32 registers of a thread; ten such tensors live at once do not fit.
    let held = |count: usize| {
        let matrix = "tensor<64x64xf32, #a>";
        let makes = (0..count).map(|i| format!("%x{i} = tt.call @make() : () -> {matrix}\n"));
        let uses = (0..count).map(|i| format!("tt.call @take(%x{i}) : ({matrix}) -> ()\n"));
        let text: String = makes.chain(uses).collect();
        let others = format!("tt.func private @make() -> {matrix}\ntt.func private @take({matrix})\n");
        let session = Session::new(&format!("{others}tt.func @f() {{\n{text}\ntt.return\n}}"));
        let layouts = Layouts::new(session.context(), Machine::of(session.module()).expect("a machine"));
        spills(session.all("tt.func")[2], &layouts)
    };
    assert_eq!(held(4), 0.0);
    assert!(held(10) > 0.0);
    assert!(held(12) > held(10), "each register counts");
}

#[test]
fn what_no_plan_does_is_worse_than_any_number() {
    let of = |unplanned, cycles| Total { unplanned, cycles };
    assert_eq!(of(0, 1e9).compare(&of(1, 0.0)), Ordering::Less);
    assert_eq!(of(1, 1.0).compare(&of(1, 2.0)), Ordering::Less);
    assert_eq!(of(0, 2.0).compare(&of(0, 1.0)), Ordering::Greater);
    assert_eq!(of(0, 1.0).compare(&of(0, 1.0 + 1e-12)), Ordering::Equal, "an error of rounding");
}

#[test]
fn what_a_loop_adds_up_is_exchanged_once_after_it() {
    let sums = |added: &str| {
        let session = Session::new(&format!(
            "tt.func @f(%x: tensor<64x64xf32, #a>, %z: tensor<64xf32, #ttg.slice<{{dim = 1, parent = #a}}>>) {{
               %c0 = arith.constant 0 : i32
               %c1 = arith.constant 1 : i32
               %c8 = arith.constant 8 : i32
               %s = scf.for %i = %c0 to %c8 step %c1 iter_args(%t = %z) -> tensor<64xf32, #ttg.slice<{{dim = 1, parent = #a}}>> : i32 {{
                 %r = \"tt.reduce\"(%x) <{{axis = 1 : i32}}> ({{
                 ^bb0(%p: f32, %q: f32):
                   %v = arith.addf %p, %q : f32
                   tt.reduce.return %v : f32
                 }}) : (tensor<64x64xf32, #a>) -> tensor<64xf32, #ttg.slice<{{dim = 1, parent = #a}}>>
                 %u = {added} : tensor<64xf32, #ttg.slice<{{dim = 1, parent = #a}}>>
                 scf.yield %u : tensor<64xf32, #ttg.slice<{{dim = 1, parent = #a}}>>
               }}
               tt.return
             }}"
        ));
        let layouts = Layouts::new(session.context(), Machine::of(session.module()).expect("a machine"));
        let reduce = session.all("tt.reduce")[0];
        let whole = Objective::new(session.module()).cycles(reduce, &layouts).expect("a plan");
        (whole, Objective::before_sums(session.module()).cycles(reduce, &layouts).expect("a plan"))
    };
    let (whole, kept) = sums("arith.addf %t, %r");
    // Threads combine what they have in each of eight iterations, and exchange it in one.
    let own = kept - (whole - kept) / 7.0;
    assert!(kept < whole / 2.0 && own > 0.0, "{kept} of {whole}");
    let (whole, as_before) = sums("arith.mulf %t, %r");
    assert_eq!(whole, as_before, "products of sums are no sums");
}

#[test]
fn what_is_made_later_has_the_facts_of_what_it_copies() {
    // A load of four neighbours with a mask that all of them share.
    let session = Session::new(
        "tt.func @f(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
           %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #w>
           %s = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #w>
           %q = tt.addptr %s, %r : tensor<512x!tt.ptr<f32>, #w>, tensor<512xi32, #w>
           %m = tt.splat %n : i32 -> tensor<512xi32, #w>
           %k = arith.cmpi slt, %r, %m : tensor<512xi32, #w>
           %x = tt.load %q, %k : tensor<512x!tt.ptr<f32>, #w>
           tt.return
         }",
    );
    let layouts = Layouts::new(session.context(), Machine::of(session.module()).expect("a machine"));
    let objective = Objective::new(session.module());
    objective.analysis();
    let load = session.all("tt.load")[0];
    let known = objective.cycles(load, &layouts);
    let mask = session.all("arith.cmpi")[0];
    let mut rewriter = IrRewriter::new(session.context());
    rewriter.set_after(mask);
    let copy = rewriter.clone_op(mask);
    load.set_operand(1, copy.result(0));
    assert!(objective.cycles(load, &layouts) > known, "nothing is known of the new mask");
    objective.note(copy.result(0), mask.result(0));
    assert_eq!(objective.cycles(load, &layouts), known);
}

#[test]
fn what_fills_no_register_is_put_together() {
    let loads = |element: &str, divisibility: u32| {
        let session = Session::new(&format!(
            "tt.func @f(%p: !tt.ptr<{element}> {{tt.divisibility = {divisibility} : i32}}) {{
               %r = tt.make_range {{end = 512 : i32, start = 0 : i32}} : tensor<512xi32, #w>
               %s = tt.splat %p : !tt.ptr<{element}> -> tensor<512x!tt.ptr<{element}>, #w>
               %q = tt.addptr %s, %r : tensor<512x!tt.ptr<{element}>, #w>, tensor<512xi32, #w>
               %x = tt.load %q : tensor<512x!tt.ptr<{element}>, #w>
               tt.return
             }}"
        ));
        let layouts = Layouts::new(session.context(), Machine::of(session.module()).expect("a machine"));
        Objective::new(session.module()).cycles(session.all("tt.load")[0], &layouts).expect("a plan")
    };
    // Four elements of each of four warps' threads, one by one: lines are alike, only halves are put together. Four at once fill registers.
    let alu = 16.0 * 0.5;
    let (halves, words) = (loads("f16", 2), loads("f32", 4));
    assert!(halves >= alu + 16.0 * 2.0 && words < halves + 16.0 * 8.0, "{halves}, {words}");
    assert!(loads("f16", 16) <= 4.0 * 3.0, "{}", loads("f16", 16));
}

#[test]
fn bytes_that_a_thread_holds_one_by_one_are_put_together_to_be_moved() {
    let layout = |size: u32, warps: &str| {
        let lanes = if size == 4 { "[4, 8]" } else { "[1, 32]" };
        format!(
            "#ttg.blocked<{{sizePerThread = [1, {size}], threadsPerWarp = {lanes}, warpsPerCTA = {warps}, order = [1, 0]}}>"
        )
    };
    let packing = |element: &str, from: &str| {
        let to = layout(1, "[1, 4]");
        let session = Session::new(&format!(
            "tt.func @f(%x: tensor<64x32x{element}, {from}>) {{
               %y = ttg.convert_layout %x : tensor<64x32x{element}, {from}> -> tensor<64x32x{element}, {to}>
               tt.return
             }}"
        ));
        let convert = session.all("ttg.convert_layout")[0];
        let ty = convert.operand(0).ty().as_tensor().unwrap();
        let to = convert.result(0).ty().as_tensor().unwrap().encoding().unwrap();
        let machine = Machine::of(session.module()).unwrap();
        let target = machine.target.clone().unwrap();
        let plan = plans::conversion_to(ty, to, &target).unwrap();
        super::packing(ty, to, &plan, &target) / target.cost.alu
    };
    let (apart, words) = (layout(1, "[4, 1]"), layout(4, "[4, 1]"));
    // 16 elements of a thread in each of four warps before, and 64 of each after, where each is in four of them.
    assert_eq!(packing("i8", &apart), 0.75 * 4.0 * (16.0 + 64.0));
    assert_eq!(packing("f8E4M3FN", &apart), 0.75 * 4.0 * 16.0, "casts take them in pairs");
    assert_eq!((packing("i8", &words), packing("f16", &apart)), (0.0, 0.0));
    assert_eq!(packing("i1", &words), 4.0 * (16.0 + 64.0));
}

#[test]
fn booleans_become_bytes_between_threads() {
    let convert = |element: &str| {
        cycles(&format!(
            "%x = tt.load %p {{isVolatile = true}} : tensor<512x!tt.ptr<f32>, #v>
             %b = arith.cmpf ogt, %x, %x : tensor<512xf32, #v>
             %i = arith.extui %b : tensor<512xi1, #v> to tensor<512xi8, #v>
             %y = ttg.convert_layout %{} : tensor<512x{element}, #v> -> tensor<512x{element}, #w>",
            if element == "i1" { "b" } else { "i" }
        ))
    };
    let (bytes, booleans) = (convert("i8"), convert("i1"));
    assert!(booleans > bytes, "{booleans} and {bytes}");
}
