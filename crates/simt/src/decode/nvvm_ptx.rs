//! NVVM intrinsics that stand for one PTX instruction: they are decoded as that instruction.
//!
//! Source: LLVM's IntrinsicsNVVM for names and the order of operands.

use super::{Decoder, What};
use crate::bytecode::Src;
use crate::ir::{Inst, Ty};

/// Names of the operands: results first, then arguments.
struct Names {
    results: usize,
    arguments: usize,
}

impl Names {
    fn arg(&self, i: usize) -> String {
        format!("${}", self.results + i)
    }

    fn args(&self, range: std::ops::Range<usize>) -> String {
        range.map(|i| self.arg(i)).collect::<Vec<_>>().join(", ")
    }

    fn result_list(&self) -> String {
        (0..self.results).map(|i| format!("${i}")).collect::<Vec<_>>().join(", ")
    }
}

impl Decoder<'_> {
    /// Decodes an intrinsic (without `llvm.nvvm.`) as PTX. `None`: it is none of these.
    pub(super) fn nvvm_as_ptx(
        &mut self,
        name: &str,
        inst: &Inst,
        args: &[Vec<Src>],
    ) -> Option<What<Vec<Src>>> {
        let results = match &inst.ty {
            Ty::Void => 0,
            Ty::Struct(f) => f.len(),
            _ => 1,
        };
        let known = |i: usize| args.get(i).and_then(|a| a.first()).and_then(|s| self.known(*s));
        let text = ptx(name, &Names { results, arguments: args.len() }, inst, known)?;
        let constraints = ["=r"].repeat(results).into_iter().chain(["r"].repeat(args.len()));
        let constraints = constraints.collect::<Vec<_>>().join(",");
        Some(self.inline_asm(&text, &constraints, inst, args))
    }
}

fn ptx(name: &str, n: &Names, inst: &Inst, known: impl Fn(usize) -> Option<u64>) -> Option<String> {
    let mut parts: Vec<&str> = name.split('.').collect();
    // Names of overloaded intrinsics end in the types of their pointers.
    let pointer =
        |p: &str| p.strip_prefix('p').is_some_and(|n| !n.is_empty() && n.bytes().all(|c| c.is_ascii_digit()));
    while parts.last().is_some_and(|p| pointer(p)) {
        parts.pop();
    }
    let has = |p: &str| parts.contains(&p);
    let a = |i: usize| n.arg(i);
    Some(match parts[..] {
        ["barrier", "cluster", ..] => format!("{name};"),
        ["barrier", "cta", "red", op, ..] => {
            let ty = if op == "popc" { "u32" } else { "pred" };
            format!("barrier.cta.red.{op}.{ty} $0, {};", n.args(0..n.arguments))
        }
        ["match", kind @ ("any" | "all"), "sync", ty] => {
            let bits = if ty.starts_with("i64") { 64 } else { 32 };
            let d = if kind == "all" { "$0|$1" } else { "$0" };
            format!("match.{kind}.sync.b{bits} {d}, {}, {};", a(1), a(0))
        }
        ["mapa", ..] => format!("mapa.u64 $0, {}, {};", a(0), a(1)),
        ["getctarank", ..] => format!("getctarank.u64 $0, {};", a(0)),
        ["cp", "async", "mbarrier", "arrive", ..] => {
            let noinc = if has("noinc") { ".noinc" } else { "" };
            format!("cp.async.mbarrier.arrive{noinc}.b64 [{}];", a(0))
        }
        ["cp", "async", how @ ("ca" | "cg"), "shared", "global", bytes, ..] => {
            let size = if has("s") { format!(", {}", a(2)) } else { String::new() };
            format!("cp.async.{how}.shared.global [{}], [{}], {bytes}{size};", a(0), a(1))
        }
        ["cp", "async", "bulk", "tensor", ..] => tensor(&parts[4..], n, known)?,
        ["cp", "async", "bulk", "prefetch", ..]
        | ["prefetch" | "prefetchu" | "applypriority" | "discard", ..] => "prefetch.global.L2;".into(),
        ["cp", "async", "bulk", "global", "to", "shared", to] => {
            let (multicast, mask) = match to {
                "cluster" if known(6)? & 1 != 0 => (".multicast::cluster", format!(", {}", a(4))),
                _ => ("", String::new()),
            };
            format!(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{multicast} [{}], [{}], {}, [{}]{mask};",
                a(0),
                a(2),
                a(3),
                a(1)
            )
        }
        ["cp", "async", "bulk", "shared", "cta", "to", "cluster"] => format!(
            "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [{}], [{}], {}, [{}];",
            a(0),
            a(2),
            a(3),
            a(1)
        ),
        ["cp", "async", "bulk", "shared", "cta", "to", "global"] => {
            format!("cp.async.bulk.global.shared::cta.bulk_group [{}], [{}], {};", a(0), a(1), a(2))
        }
        ["tensormap", "replace", ..] => {
            let field = parts[2..].join("_");
            format!("tensormap.replace.tile.{field}.global.b1024.b64 [{}], {};", a(0), n.args(1..n.arguments))
        }
        ["mbarrier", ..] => mbarrier(&parts[1..], n)?,
        ["mma", shape, "row", "col", ..] => mma(shape, &parts[4..], n)?,
        ["atomic", op, "gen", _, _scope, ..] => {
            format!("atom.{op}.{} $0, [{}], {};", atomic_type(op, &inst.ty)?, a(0), n.args(1..n.arguments))
        }
        _ => return None,
    })
}

/// `mma.sync`, from its shape and what its name says behind that.
fn mma(shape: &str, rest: &[&str], n: &Names) -> Option<String> {
    let satfinite = if rest.contains(&"satfinite") { ".satfinite" } else { "" };
    let types: Vec<&str> = rest.iter().copied().filter(|p| *p != "satfinite").collect();
    let (d, ta, tb, c) = match types[..] {
        [d @ ("f16" | "f32"), c @ ("f16" | "f32")] => (d, "f16", "f16", c),
        [t] => (sum_type(t)?, t, t, sum_type(t)?),
        [x, y] => (sum_type(x)?, x, y, sum_type(x)?),
        [d, x, y, c] => (d, x, y, c),
        _ => return None,
    };
    // C has as many registers as D; those of A and B are as many as m is to n.
    let c_first = n.arguments.checked_sub(n.results)?;
    let (m, rest) = shape.strip_prefix('m')?.split_once('n')?;
    let (m, cols): (usize, usize) = (m.parse().ok()?, rest.split_once('k')?.0.parse().ok()?);
    let a_count = (c_first * m).checked_div(m + cols)?;
    let list = |r: std::ops::Range<usize>| format!("{{{}}}", n.args(r));
    Some(format!(
        "mma.sync.aligned.{shape}.row.col{satfinite}.{d}.{ta}.{tb}.{c} {{{}}}, {}, {}, {};",
        n.result_list(),
        list(0..a_count),
        list(a_count..c_first),
        list(c_first..n.arguments)
    ))
}

/// The type that PTX writes for an atomic operation on a value.
fn atomic_type(op: &str, ty: &Ty) -> Option<&'static str> {
    Some(match (ty, op) {
        (Ty::F32, _) => "f32",
        (Ty::F64, _) => "f64",
        (Ty::Int(32), "max" | "min") => "s32",
        (Ty::Int(64), "max" | "min") => "s64",
        (Ty::Int(32), "add" | "inc" | "dec") => "u32",
        (Ty::Int(64), "add") => "u64",
        (Ty::Int(16), "cas") => "b16",
        (Ty::Int(32), _) => "b32",
        (Ty::Int(64), _) => "b64",
        _ => return None,
    })
}

/// The accumulator of a matrix instruction whose name says only what it multiplies.
fn sum_type(t: &str) -> Option<&'static str> {
    Some(match t {
        "bf16" | "tf32" => "f32",
        "f64" => "f64",
        "s8" | "u8" => "s32",
        _ => return None,
    })
}

/// `cp.async.bulk.tensor.*`, by the parts that follow.
fn tensor(parts: &[&str], n: &Names, known: impl Fn(usize) -> Option<u64>) -> Option<String> {
    let dims: usize = parts.last()?.strip_suffix('d')?.parse().ok()?;
    let rows = parts.contains(&"gather4") || parts.contains(&"scatter4");
    let count = if rows { 5 } else { dims };
    let mode = match (rows, parts[0]) {
        _ if !parts.contains(&"tile") => return None,
        (false, _) => "tile",
        (true, "g2s") => "tile::gather4",
        (true, _) => "tile::scatter4",
    };
    let a = |i: usize| n.arg(i);
    Some(match parts[0] {
        "prefetch" => "prefetch.global.L2;".into(),
        "s2g" | "reduce" => {
            let (head, op) = match parts[0] {
                "reduce" => ("cp.reduce.async.bulk", format!(".{}", parts[1])),
                _ => ("cp.async.bulk", String::new()),
            };
            let coords = n.args(2..2 + count);
            format!(
                "{head}.tensor.{dims}d.global.shared::cta{op}.{mode}.bulk_group [{}, {{{coords}}}], [{}];",
                a(1),
                a(0)
            )
        }
        "g2s" => {
            let coords = n.args(3..3 + count);
            let flag = 3 + count + 2;
            let (multicast, mask) = if parts[1] != "cta" && known(flag)? & 1 != 0 {
                (".multicast::cluster", format!(", {}", a(3 + count)))
            } else {
                ("", String::new())
            };
            format!(
                "cp.async.bulk.tensor.{dims}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes{multicast} \
                 [{}], [{}, {{{coords}}}], [{}]{mask};",
                a(0),
                a(2),
                a(1)
            )
        }
        _ => return None,
    })
}

/// `mbarrier.*`, by the parts that follow.
fn mbarrier(parts: &[&str], n: &Names) -> Option<String> {
    let has = |p: &str| parts.contains(&p);
    let a = |i: usize| n.arg(i);
    let d = if n.results == 1 { "$0" } else { "_" };
    let drop = if has("drop") { "arrive_drop" } else { "arrive" };
    let parity = if has("parity") { ".parity" } else { "" };
    Some(match parts[0] {
        "init" => format!("mbarrier.init.b64 [{}], {};", a(0), a(1)),
        "inval" => format!("mbarrier.inval.b64 [{}];", a(0)),
        "expect" => format!("mbarrier.expect_tx.b64 [{}], {};", a(0), a(1)),
        "complete" => format!("mbarrier.complete_tx.b64 [{}], {};", a(0), a(1)),
        "arrive" if has("expect") => format!("mbarrier.{drop}.expect_tx.b64 {d}, [{}], {};", a(0), a(1)),
        "arrive" if n.arguments == 2 => format!("mbarrier.{drop}.b64 {d}, [{}], {};", a(0), a(1)),
        "arrive" => format!("mbarrier.{drop}.b64 {d}, [{}];", a(0)),
        "test" => format!("mbarrier.test_wait{parity}.b64 $0, [{}], {};", a(0), a(1)),
        "try" => format!("mbarrier.try_wait{parity}.b64 $0, [{}], {};", a(0), a(1)),
        _ => return None,
    })
}
