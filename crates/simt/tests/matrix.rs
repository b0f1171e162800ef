//! `ldmatrix` and `stmatrix` of bytes, and instructions that are not known.

use simt::{Arg, Error, Launch};

const ROWS: &str = "
@smem = internal addrspace(3) global [1024 x i8] undef, align 16
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.bar.warp.sync(i32)
";

/// What a body with $t, $s (shared memory), $x and $y (words of a lane) stores as %r.
fn lanes(body: &str, x: impl Fn(u32) -> u32, y: impl Fn(u32) -> u32) -> Vec<u32> {
    let ir = format!(
        "{ROWS}
         define ptx_kernel void @k(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %out) \"nvvm.reqntid\"=\"32\" {{
           %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
           %s = ptrtoint ptr addrspace(3) @smem to i32
           %row = mul i32 %t, 16
           %at = add i32 %s, %row
           %pa = getelementptr i32, ptr addrspace(1) %a, i32 %t
           %pb = getelementptr i32, ptr addrspace(1) %b, i32 %t
           %x = load i32, ptr addrspace(1) %pa
           %y = load i32, ptr addrspace(1) %pb
           {body}
           %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
           store i32 %r, ptr addrspace(1) %po
           ret void
         }}"
    );
    let module = simt::read::parse("test.ll", ir.as_bytes()).unwrap();
    let program = simt::decode(&module, None).unwrap();
    let words = |f: &dyn Fn(u32) -> u32| (0..32).flat_map(|l| f(l).to_le_bytes()).collect();
    let args = [words(&x), words(&y), vec![0; 128]]
        .into_iter()
        .map(|data: Vec<u8>| Arg::Buffer { name: "data".into(), data })
        .collect();
    let o = simt::run(&program, &Launch { args, ..Launch::default() }).unwrap();
    assert!(o.findings.is_empty(), "{:?}", o.findings);
    o.buffers[2].chunks(4).map(|c| u32::from_le_bytes(c.try_into().unwrap())).collect()
}

/// Byte `c` of row `r` of 32 rows in shared memory.
fn byte(r: u32, c: u32) -> u32 {
    (r % 16 * 16 + c) ^ if r < 16 { 0 } else { 0xff }
}

/// A lane's word of a load after every lane stored a row of [`byte`]s; `registers` of them, the one asked for.
fn loaded(form: &str, registers: usize, which: usize) -> Vec<u32> {
    let outputs: Vec<String> = (0..registers).map(|i| format!("${i}")).collect();
    let ty = if registers == 1 {
        "i32".to_owned()
    } else {
        format!("{{ {} }}", vec!["i32"; registers].join(", "))
    };
    let take = match registers {
        1 => "%r = add i32 %m, 0".to_owned(),
        _ => format!("%r = extractvalue {ty} %m, {which}"),
    };
    let body = format!(
        "%x1 = xor i32 %x, 67372036
         %x2 = xor i32 %x, 134744072
         %x3 = xor i32 %x, 202116108
         call void asm sideeffect \"st.shared.v4.b32 [$0], {{$1, $2, $3, $4}};\", \"r,r,r,r,r\"(i32 %at, i32 %x, i32 %x1, i32 %x2, i32 %x3)
         call void @llvm.nvvm.bar.warp.sync(i32 -1)
         %m = call {ty} asm sideeffect \"ldmatrix.sync.aligned.{form} {{{}}}, [${registers}];\", \"{},r\"(i32 %at)
         {take}",
        outputs.join(", "),
        vec!["=r"; registers].join(",")
    );
    lanes(&body, |l| (0..4).fold(0, |w, c| w | byte(l, c) << (8 * c)), |_| 0)
}

fn each(f: impl Fn(u32, u32) -> u32) -> Vec<u32> {
    (0..32).map(|l| (0..4).fold(0, |w, j| w | f(l, j) << (8 * j))).collect()
}

#[test]
fn bytes_are_loaded_transposed() {
    for r in 0..4u32 {
        let want = each(|l, j| byte(16 * (r / 2) + 4 * (l % 4) + j, l / 4 + 8 * (r % 2)));
        assert_eq!(loaded("m16n16.x2.trans.shared.b8", 4, r as usize), want, "register {r}");
    }
    assert_eq!(loaded("m16n16.x1.trans.shared.b8", 2, 1), each(|l, j| byte(4 * (l % 4) + j, l / 4 + 8)));
}

#[test]
fn narrow_elements_are_unpacked_to_bytes() {
    let bits = |row: u32, e: u32, n: u32| {
        let all = (0..16).fold(0u128, |w, c| w | u128::from(byte(row, c)) << (8 * c));
        (all >> (e * n)) as u32 & ((1 << n) - 1)
    };
    let four = each(|l, j| bits(l / 4, 4 * (l % 4) + j, 4));
    assert_eq!(loaded("m8n16.x1.shared.b8x16.b4x16_p64", 1, 0), four);
    let six = each(|l, j| bits(8 + l / 4, 4 * (l % 4) + j, 6));
    assert_eq!(loaded("m8n16.x2.shared.b8x16.b6x16_p32", 2, 1), six);
    let transposed = each(|l, j| bits(4 * (l % 4) + j, l / 4 + 8, 4));
    assert_eq!(loaded("m16n16.x1.trans.shared.b8x16.b4x16_p64", 2, 1), transposed);
}

#[test]
fn bytes_are_stored_transposed() {
    let word = |l: u32| l.wrapping_mul(0x0107_1b65);
    for m in 0..2u32 {
        let body = format!(
            "call void asm sideeffect \"stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [$0], {{$1, $2}};\", \"r,r,r\"(i32 %at, i32 %x, i32 %y)
             call void @llvm.nvvm.bar.warp.sync(i32 -1)
             %o = mul i32 %t, 4
             %p = add i32 %s, %o
             %r = call i32 asm sideeffect \"ld.shared.b32 $0, [$1 + {}];\", \"=r,r\"(i32 %p)",
            128 * m
        );
        let want = each(|l, j| {
            let (row, column) = (l / 4, 4 * (l % 4) + j);
            let from = 4 * (column % 8) + row / 2;
            let v = if m == 0 { word(from) } else { !word(from) };
            v >> (8 * (row % 2 + 2 * (column / 8))) & 0xff
        });
        assert_eq!(lanes(&body, word, |l| !word(l)), want, "matrix {m}");
    }
}

#[test]
fn instructions_that_are_not_known_are_errors_with_their_place() {
    let asm = |text: &str| {
        let ir = format!(
            "define ptx_kernel void @k(ptr %p) \"nvvm.reqntid\"=\"32\" {{
               call void asm sideeffect \"{text}\", \"l\"(ptr %p)
               ret void
             }}"
        );
        let module = simt::read::parse("test.ll", ir.as_bytes()).unwrap();
        match simt::decode(&module, None) {
            Err(Error::Unsupported { what, place }) => format!("{what} in {place}"),
            other => panic!("{other:?}"),
        }
    };
    let im2col = "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes";
    assert_eq!(
        asm(&format!("{im2col} [$0], [$0, {{0, 0, 0}}], [$0], {{0}};")),
        format!("the instruction '{im2col}' in inline assembly in @k")
    );
    assert_eq!(
        asm("tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [$0];"),
        "the instruction 'tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64' in inline assembly in @k"
    );
    // No such shape or number of matrices.
    assert!(asm("ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {_, _}, [$0];").contains("m16n16.x4"));
    assert!(asm("ldmatrix.sync.aligned.m16n16.x1.shared.b8 {_, _}, [$0];").contains("m16n16.x1.shared"));
}
