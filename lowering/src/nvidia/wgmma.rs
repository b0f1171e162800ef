//! `wgmma` (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").

use super::mma::format_name;
use crate::emit::{Emit, Lowered, internal, unsupported};
use crate::target::MatrixTypes;
use linear_layout::plan::DotType;
use mlir_host::ir::{FloatKind, Type, Value};
use std::collections::HashMap;
use std::ops::Range;

/// An operand of an instruction of a warp group.
#[derive(Clone, Copy)]
pub(super) enum WarpGroupFragment<'a, 'c> {
    /// Fragments in registers.
    Registers(&'a [Value<'c>]),
    /// A matrix descriptor, an `i64`, and whether rows or columns, not summands, are contiguous.
    Shared(Value<'c>, bool),
}

/// Instructions of a warp group, one after the other, behind a fence, which orders writes to registers before what they read. It is in
/// one statement with them: between two, LLVM may compute what the second one reads.
pub(super) struct WarpGroupMultiply<'a, 'c> {
    /// Rows, columns and summands of each.
    pub(super) shape: [u64; 3],
    /// What is multiplied.
    pub(super) types: &'a MatrixTypes<'c>,
    /// The instructions, in order.
    pub(super) steps: Vec<WarpGroupStep<'a, 'c>>,
}

/// The operands of one of them.
pub(super) struct WarpGroupStep<'a, 'c> {
    /// Which registers are its accumulators, of those that the statement has.
    pub(super) sums: Range<usize>,
    /// The left operand.
    pub(super) a: WarpGroupFragment<'a, 'c>,
    /// The right operand.
    pub(super) b: WarpGroupFragment<'a, 'c>,
    /// Whether the accumulators are added to, an `i1`; otherwise they are set.
    pub(super) adds: Value<'c>,
}

/// Operands of inline assembly after the results and those that are tied to them: each value once.
struct Operands<'c> {
    values: Vec<Value<'c>>,
    constraints: Vec<String>,
    /// Numbers of values, as the text names them.
    known: HashMap<Value<'c>, usize>,
    /// Results, each of which has a number of its own.
    results: usize,
}

impl<'c> Operands<'c> {
    fn add(&mut self, value: Value<'c>, constraint: &str) -> String {
        let next = self.results + self.values.len();
        let number = *self.known.entry(value).or_insert(next);
        if number == next {
            self.values.push(value);
            self.constraints.push(constraint.to_owned());
        }
        format!("${number}")
    }
}

/// Instructions of warp groups, which run asynchronously.
#[derive(Clone, Copy)]
pub(super) struct Wgmma;

/// The letter of the registers that values of a type are in, in constraints of inline assembly.
fn letter(ty: Type<'_>) -> Option<&'static str> {
    Some(match (ty.float_kind(), ty.int_bits()) {
        (Some(FloatKind::F32), _) => "f",
        (Some(FloatKind::F64), _) => "d",
        (_, Some(32)) => "r",
        (_, Some(64)) => "l",
        _ => return None,
    })
}

/// Values in 32-bit registers: pairs of 16-bit floats are one, and narrow elements take one each.
struct Registers<'c> {
    values: Vec<Value<'c>>,
    /// For each original value its register, the element of a pair, and its type.
    places: Vec<(usize, Option<usize>, Type<'c>)>,
}

impl<'c> Registers<'c> {
    fn new(e: &mut Emit<'c>, values: &[Value<'c>]) -> Lowered<Self> {
        let mut registers = Registers { values: Vec::new(), places: vec![] };
        let mut known: HashMap<Value<'c>, (usize, Option<usize>, Type<'c>)> = HashMap::new();
        // A 16-bit value that waits for its neighbour.
        let mut half: Option<Value<'c>> = None;
        for value in values {
            if known.contains_key(value) || half == Some(*value) {
                continue;
            }
            let ty = value.ty();
            if letter(ty).is_some() {
                known.insert(*value, (registers.values.len(), None, ty));
                registers.values.push(*value);
                continue;
            }
            if ty.bits() != Some(16) {
                return unsupported(format!("values of type {ty} are no results of asynchronous dots"));
            }
            match half.filter(|other| other.ty() == ty) {
                None => half = Some(*value),
                Some(other) => {
                    registers.pair(e, &mut known, [other, *value])?;
                    half = None;
                }
            }
        }
        if let Some(single) = half {
            registers.pair(e, &mut known, [single, single])?;
        }
        registers.places = values.iter().filter_map(|value| known.get(value).copied()).collect();
        Ok(registers)
    }

    fn pair(
        &mut self,
        e: &mut Emit<'c>,
        known: &mut HashMap<Value<'c>, (usize, Option<usize>, Type<'c>)>,
        pair: [Value<'c>; 2],
    ) -> Lowered<()> {
        let (ty, i32t) = (pair[0].ty(), e.i32());
        let vector = e.vector(2, ty)?;
        let mut joined = e.undef(vector)?;
        for (i, value) in pair.into_iter().enumerate() {
            joined = e.insert_element(joined, value, i)?;
            known.insert(value, (self.values.len(), Some(i), ty));
        }
        self.values.push(e.bitcast(joined, i32t)?);
        Ok(())
    }

    /// The original values, given the registers.
    fn unpack(&self, e: &mut Emit<'c>, registers: &[Value<'c>]) -> Lowered<Vec<Value<'c>>> {
        let mut values = Vec::with_capacity(self.places.len());
        for (register, element, ty) in &self.places {
            let Some(value) = registers.get(*register).copied() else {
                return internal("too few registers");
            };
            values.push(match element {
                None => value,
                Some(i) => {
                    let vector = e.vector(2, *ty)?;
                    let pair = e.bitcast(value, vector)?;
                    e.extract_element(pair, *i, *ty)?
                }
            });
        }
        Ok(values)
    }
}

/// Output constraints of registers, and the input constraints that tie them to the first operands.
fn tied(registers: &[Value<'_>]) -> Lowered<(Vec<String>, Vec<String>)> {
    let mut outputs = Vec::with_capacity(registers.len());
    for register in registers {
        match letter(register.ty()) {
            Some(letter) => outputs.push(format!("={letter}")),
            None => return unsupported(format!("accumulators of type {}", register.ty())),
        }
    }
    let inputs = (0..registers.len()).map(|i| i.to_string()).collect();
    Ok((outputs, inputs))
}

fn list(range: Range<usize>) -> String {
    let names: Vec<String> = range.map(|i| format!("${i}")).collect();
    format!("{{{}}}", names.join(", "))
}

impl Wgmma {
    /// Starts instructions on the fragments `c`; returns those of the result. They are one statement of inline
    /// assembly: LLVM's register coalescing looks at all operands of a statement for each register that it ties.
    pub(super) fn multiply<'c>(
        &self,
        e: &mut Emit<'c>,
        multiply: &WarpGroupMultiply<'_, 'c>,
        c: &[Value<'c>],
    ) -> Lowered<Vec<Value<'c>>> {
        let i32t = e.i32();
        // Pairs of 16-bit sums are registers of 32 bits.
        let pair = c.first().map(|value| value.ty()).filter(|ty| letter(*ty).is_none());
        let accumulators = match pair {
            Some(_) => c.iter().map(|value| e.bitcast(*value, i32t)).collect::<Lowered<Vec<_>>>()?,
            None => c.to_vec(),
        };
        let (mut constraints, inputs) = tied(&accumulators)?;
        constraints.extend(inputs);
        let mut operands = Operands {
            values: accumulators.clone(),
            constraints,
            known: HashMap::new(),
            results: accumulators.len(),
        };
        let mut lines = Vec::with_capacity(multiply.steps.len() + 1);
        lines.push("wgmma.fence.sync.aligned;".to_owned());
        for step in &multiply.steps {
            lines.push(Self::instruction(e, multiply, step, &mut operands)?);
        }
        let results: Vec<Type<'c>> = accumulators.iter().map(|value| value.ty()).collect();
        let Operands { values, constraints, .. } = operands;
        let sums = e.inline_asm(&lines.join("\n\t"), &constraints.join(","), &values, &results, true)?;
        match pair {
            Some(ty) => sums.iter().map(|value| e.bitcast(*value, ty)).collect(),
            None => Ok(sums),
        }
    }

    /// The text of one instruction; operands other than its accumulators are added to `operands`.
    fn instruction<'c>(
        e: &mut Emit<'c>,
        multiply: &WarpGroupMultiply<'_, 'c>,
        step: &WarpGroupStep<'_, 'c>,
        operands: &mut Operands<'c>,
    ) -> Lowered<String> {
        let types = multiply.types;
        let [left, right] = types.formats.map(|element| format_name(types.kind, element));
        let (Some(left), Some(right)) = (left, right) else {
            return unsupported(format!("no wgmma multiplies {:?} in these formats", types.kind));
        };
        let sum = match types.sum {
            DotType::F16 => "f16",
            DotType::I32 => "s32",
            _ => "f32",
        };
        let a = match step.a {
            WarpGroupFragment::Registers(registers) => {
                let i32t = e.i32();
                let names: Vec<String> = registers
                    .iter()
                    .map(|register| Ok(operands.add(e.bitcast(*register, i32t)?, "r")))
                    .collect::<Lowered<_>>()?;
                format!("{{{}}}", names.join(", "))
            }
            WarpGroupFragment::Shared(descriptor, _) => operands.add(descriptor, "l"),
        };
        let WarpGroupFragment::Shared(descriptor, b_transposed) = step.b else {
            return unsupported("the right operand of wgmma is in shared memory");
        };
        let (b, adds) = (operands.add(descriptor, "l"), operands.add(step.adds, "b"));
        // Signs of the operands, and which of those in shared memory are transposed.
        let flags = match (types.kind, step.a) {
            (DotType::I8, _) => String::new(),
            (DotType::F16 | DotType::Bf16, WarpGroupFragment::Shared(_, a_transposed)) => {
                format!(", 1, 1, {}, {}", u8::from(a_transposed), u8::from(b_transposed))
            }
            (DotType::F16 | DotType::Bf16, _) => format!(", 1, 1, {}", u8::from(b_transposed)),
            _ => ", 1, 1".to_owned(),
        };
        let [m, n, k] = multiply.shape;
        Ok(format!(
            "wgmma.mma_async.sync.aligned.m{m}n{n}k{k}.{sum}.{left}.{right} {}, {a}, {b}, {adds}{flags};",
            list(step.sums.clone()),
        ))
    }

    /// Makes a group of the instructions started since the last one.
    pub(super) fn commit<'c>(&self, e: &mut Emit<'c>) -> Lowered<()> {
        e.intrinsic_void("llvm.nvvm.wgmma.commit_group.sync.aligned", &[])
    }

    /// Waits until at most `pending` groups are not done; returns `values`, to be used after that.
    pub(super) fn wait<'c>(
        &self,
        e: &mut Emit<'c>,
        pending: u64,
        values: &[Value<'c>],
    ) -> Lowered<Vec<Value<'c>>> {
        let registers = Registers::new(e, values)?;
        let (mut constraints, inputs) = tied(&registers.values)?;
        constraints.extend(inputs);
        let results: Vec<Type<'c>> = registers.values.iter().map(|value| value.ty()).collect();
        let text = format!("wgmma.wait_group.sync.aligned {pending};");
        let waited = e.inline_asm(&text, &constraints.join(","), &registers.values, &results, true)?;
        registers.unpack(e, &waited)
    }
}
