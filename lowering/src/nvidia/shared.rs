//! Shared memory and exchanges between lanes: `ld.shared`, `st.shared`,
//! `ldmatrix`, `stmatrix`, `shfl.sync` (PTX ISA, "Data Movement and Conversion
//! Instructions", "Warp-level matrix load instruction").

use crate::emit::{Emit, Lowered, address_space, int_bits, unsupported};
use crate::target::AsyncCopy;
use linear_layout::plan::{MemoryInstruction, WarpCombine};
use linear_layout::target::Direction;
use mlir_host::ir::{Attr, Type, Value};

/// All lanes take part.
const ALL_LANES: i64 = -1;

fn alignment<'c>(e: &Emit<'c>, bits: usize) -> Attr<'c> {
    Attr::int(e.context(), 64, (bits / 8).max(1) as i64)
}

/// An address in shared memory as inline assembly takes it.
pub(super) fn address<'c>(e: &mut Emit<'c>, ptr: Value<'c>) -> Lowered<Value<'c>> {
    let i32t = e.i32();
    e.value("llvm.ptrtoint", &[ptr], i32t, &[])
}

fn vector_of<'c>(e: &Emit<'c>, count: usize, word: Type<'c>) -> Lowered<Type<'c>> {
    if count == 1 { Ok(word) } else { e.vector(count, word) }
}

pub(super) fn load<'c>(e: &mut Emit<'c>, ptr: Value<'c>, count: usize, bits: u32) -> Lowered<Vec<Value<'c>>> {
    let word = e.int(bits);
    let ty = vector_of(e, count, word)?;
    let align = alignment(e, count * bits as usize);
    let loaded = e.value("llvm.load", &[ptr], ty, &[("alignment", align)])?;
    if count == 1 {
        return Ok(vec![loaded]);
    }
    (0..count).map(|i| e.extract_element(loaded, i, word)).collect()
}

pub(super) fn store<'c>(
    e: &mut Emit<'c>,
    ptr: Value<'c>,
    words: &[Value<'c>],
    mask: Option<Value<'c>>,
) -> Lowered<()> {
    let Some(first) = words.first() else { return Ok(()) };
    let word = first.ty();
    let bits = int_bits(*first)?;
    let Some(mask) = mask else {
        let ty = vector_of(e, words.len(), word)?;
        let value = if words.len() == 1 {
            *first
        } else {
            let mut vector = e.undef(ty)?;
            for (i, word) in words.iter().enumerate() {
                vector = e.insert_element(vector, *word, i)?;
            }
            vector
        };
        let align = alignment(e, words.len() * bits as usize);
        e.op("llvm.store", &[value, ptr], &[], &[("alignment", align)])?;
        return Ok(());
    };
    // Four registers at most: narrow words are joined first.
    let (operands, bits) = if words.len() > 4 || (bits < 32 && words.len() > 1) {
        let total = words.len() * bits as usize;
        let joined = e.vector(words.len(), word)?;
        let mut vector = e.undef(joined)?;
        for (i, word) in words.iter().enumerate() {
            vector = e.insert_element(vector, *word, i)?;
        }
        let wide_bits = total.min(32) as u32;
        let wide = e.int(wide_bits);
        let count = total / wide_bits as usize;
        let ty = vector_of(e, count, wide)?;
        let packed = e.bitcast(vector, ty)?;
        let words = if count == 1 {
            vec![packed]
        } else {
            (0..count).map(|i| e.extract_element(packed, i, wide)).collect::<Lowered<Vec<_>>>()?
        };
        (words, wide_bits)
    } else {
        (words.to_vec(), bits)
    };
    let (suffix, count) =
        (if operands.len() == 1 { String::new() } else { format!(".v{}", operands.len()) }, operands.len());
    let letter = match bits {
        64 => "l",
        32 => "r",
        _ => "h",
    };
    let mut inputs = vec![address(e, ptr)?];
    for operand in operands {
        // Bytes travel in 16-bit registers.
        inputs.push(if bits == 8 {
            let i16t = e.i16();
            e.value("llvm.zext", &[operand], i16t, &[])?
        } else {
            operand
        });
    }
    inputs.push(mask);
    let names: Vec<String> = (1..=count).map(|i| format!("${i}")).collect();
    let list = if count == 1 { names.concat() } else { format!("{{ {} }}", names.join(", ")) };
    let text = format!("@${} st.shared{suffix}.b{bits} [ $0 ], {list};", count + 1);
    let mut constraints = vec!["r"];
    constraints.extend(std::iter::repeat_n(letter, count));
    constraints.push("b");
    e.inline_asm(&text, &constraints.join(","), &inputs, &[], true)?;
    Ok(())
}

/// `red`, since `atom` would return what nobody needs.
pub(super) fn count<'c>(e: &mut Emit<'c>, ptr: Value<'c>, mask: Option<Value<'c>>) -> Lowered<()> {
    let red = "red.relaxed.cta.shared.add.u32 [ $0 ], 1;";
    match mask {
        Some(mask) => e.inline_asm(&format!("@$1 {red}"), "r,b,~{memory}", &[ptr, mask], &[], true)?,
        None => e.inline_asm(red, "r,~{memory}", &[ptr], &[], true)?,
    };
    Ok(())
}

pub(super) fn shuffle<'c>(
    e: &mut Emit<'c>,
    mode: &str,
    value: Value<'c>,
    lane: Value<'c>,
) -> Lowered<Value<'c>> {
    let (all, clamp) = (e.const_i32(ALL_LANES)?, e.const_i32(31)?);
    let i32t = e.i32();
    e.intrinsic(&format!("llvm.nvvm.shfl.sync.{mode}.i32"), &[all, value, lane, clamp], i32t)
}

pub(super) fn combine_warp<'c>(
    e: &mut Emit<'c>,
    value: Value<'c>,
    combine: WarpCombine,
) -> Lowered<Value<'c>> {
    let (all, i32t) = (e.const_i32(ALL_LANES)?, e.i32());
    e.intrinsic(&format!("llvm.nvvm.redux.sync.{}", combine.name()), &[value, all], i32t)
}

/// Shape, number and type in the name of an instruction that moves matrices.
fn matrix_form(instruction: MemoryInstruction, direction: Direction) -> Lowered<String> {
    match (instruction, direction) {
        (MemoryInstruction::Matrix { count, transposed: false }, _) => Ok(format!("m8n8.x{count}.b16")),
        (MemoryInstruction::Matrix { count, transposed: true }, _) => Ok(format!("m8n8.x{count}.trans.b16")),
        (MemoryInstruction::MatrixBytes { words }, Direction::Load) => {
            Ok(format!("m16n16.x{}.trans.b8", words / 2))
        }
        (MemoryInstruction::MatrixBytes { words }, Direction::Store) => {
            Ok(format!("m16n8.x{words}.trans.b8"))
        }
        _ => unsupported("an instruction that moves no matrices"),
    }
}

pub(super) fn load_matrix<'c>(
    e: &mut Emit<'c>,
    ptr: Value<'c>,
    instruction: MemoryInstruction,
) -> Lowered<Vec<Value<'c>>> {
    let i32t = e.i32();
    let count = instruction.bits_per_lane() / 32;
    let results = vec![i32t; count as usize];
    let ty = if count == 1 { i32t } else { e.struct_of(&results)? };
    let form = matrix_form(instruction, Direction::Load)?;
    let loaded = e.intrinsic(&format!("llvm.nvvm.ldmatrix.sync.aligned.{form}.p3"), &[ptr], ty)?;
    if count == 1 {
        return Ok(vec![loaded]);
    }
    (0..count as usize).map(|i| e.extract_value(loaded, i, i32t)).collect()
}

pub(super) fn store_matrix<'c>(
    e: &mut Emit<'c>,
    ptr: Value<'c>,
    words: &[Value<'c>],
    instruction: MemoryInstruction,
) -> Lowered<()> {
    let name = format!("llvm.nvvm.stmatrix.sync.aligned.{}.p3", matrix_form(instruction, Direction::Store)?);
    let mut operands = vec![ptr];
    operands.extend_from_slice(words);
    e.intrinsic_void(&name, &operands)
}

/// `mapa` (PTX ISA, "Data Movement and Conversion Instructions: mapa").
pub(super) fn remote<'c>(e: &mut Emit<'c>, ptr: Value<'c>, rank: Value<'c>) -> Lowered<Value<'c>> {
    let cluster = e.ptr(address_space::SHARED_CLUSTER)?;
    e.intrinsic("llvm.nvvm.mapa.shared.cluster", &[ptr, rank], cluster)
}

/// `cp.async` (PTX ISA, "Data Movement and Conversion Instructions: cp.async").
/// Copies of 16 bytes may leave out the L1, as what is read once needs not go through it.
pub(super) fn copy_async<'c>(e: &mut Emit<'c>, copy: &AsyncCopy<'c>) -> Lowered<()> {
    let cache = if copy.through_l1 { "ca" } else { "cg" };
    let mut operands = vec![address(e, copy.to)?, copy.from];
    let mut constraints = vec!["r", "l"];
    let mut text = format!("cp.async.{cache}.shared.global [ $0 ], [ $1 ], {}", copy.bytes);
    // What is not read is zero. A number of bytes says so for all copies with one mask; for each mask of its own LLVM would
    // choose between numbers once for each part of it. Of a predicate that is the same in all threads ptxas makes another one
    // for each copy, and each waits until the copy before has read its own.
    match copy.mask {
        Some(mask) if copy.predicates => {
            operands.push(mask);
            constraints.push("b");
            text += ", !$2";
        }
        Some(mask) => {
            let (all, none) = (e.const_i32(copy.bytes.into())?, e.const_i32(0)?);
            operands.push(e.select(mask, all, none)?);
            constraints.push("r");
            text += ", $2";
        }
        None => {}
    }
    if let Some(active) = copy.active {
        text = format!("@${} {text}", operands.len());
        operands.push(active);
        constraints.push("b");
    }
    e.note_global_access(8 * copy.bytes);
    e.inline_asm(&format!("{text};"), &constraints.join(","), &operands, &[], true)?;
    Ok(())
}

/// The CTAs of a cluster wait for each other (PTX ISA, "barrier.cluster"); a `relaxed` barrier orders no accesses to memory.
pub(super) fn cluster_barrier<'c>(e: &mut Emit<'c>, relaxed: bool) -> Lowered<()> {
    let order = if relaxed { ".relaxed" } else { "" };
    e.intrinsic_void(&format!("llvm.nvvm.barrier.cluster.arrive{order}.aligned"), &[])?;
    e.intrinsic_void("llvm.nvvm.barrier.cluster.wait.aligned", &[])
}
