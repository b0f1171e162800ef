//! Pointers that step through memory together.
//!
//! A loop that copies tiles carries a pointer for each row of a tile, and each iteration adds the same to all of them. What
//! is carried here is one offset instead, which is added to where each pointer began. That takes no instruction more, and
//! ptxas needs no copies: a pointer is two registers, each half of which it carries as it likes, but an access wants an
//! aligned pair (a gathered matmul's loop of 141 instructions has 119 then).
//!
//! Where pointers began at numbers of 32 bits behind what they share, as the elements of unaligned rows do behind an argument,
//! the offset is added to what they share: an address is then one register through the loop instead of two, and one
//! instruction (`IMAD.WIDE`) instead of the two of a sum of 64 bits.
//!
//! Where a loop has more addresses than a thread has registers for, and they lie in a row, each is computed from one before it
//! instead: unaligned matrices are loaded element by element (docs/ptxas.md, "Addresses in a row").

use crate::loop_sums::{Addition, addition, operands};
use anyhow::{Context as _, Result};
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::module::Module;
use inkwell::targets::TargetData;
use inkwell::values::{
    AnyValueEnum, AsValueRef, BasicValue, BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue,
    IntValue, PhiValue, PointerValue,
};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// Pointers that share a step, from which on they share an offset: of two, the offset costs as much as is saved.
const LEAST: usize = 3;

/// Registers of a thread that adding the offset to what pointers share must save: elements of one byte take as many instructions
/// as before, and what is shared takes some.
const LEAST_SAVED: usize = 16;

/// Has all loops of `module` carry one offset in place of the pointers that step by the same number of bytes.
///
/// # Errors
/// When LLVM cannot build an instruction.
pub fn share(module: &Module<'_>, data: &TargetData) -> Result<()> {
    for function in module.get_functions() {
        let groups = groups(function, data);
        if !groups.is_empty() {
            share_in(function, &groups, data).context("pointers of a loop")?;
        }
        share_steps(function, data).context("addresses in a loop")?;
        follow_rows(function, data).context("addresses in a row")?;
    }
    Ok(())
}

/// What a pointer steps by.
#[derive(Clone, Copy, PartialEq)]
enum Step<'c> {
    Bytes(i64),
    /// So many times as many bytes.
    Times(IntValue<'c>, u64),
}

/// A pointer that a loop carries.
#[derive(Clone, Copy)]
struct Pointer<'c> {
    phi: PhiValue<'c>,
    /// Which value of it is the first one.
    first: u32,
    /// What it is next.
    next: InstructionValue<'c>,
}

impl<'c> Pointer<'c> {
    /// What it is in the first iteration.
    fn begins(&self) -> Option<PointerValue<'c>> {
        Some(self.phi.get_incoming(self.first)?.0.into_pointer_value())
    }
}

/// Pointers that step by the same.
struct Group<'c> {
    /// The block before the loop, and that which ends an iteration.
    before: BasicBlock<'c>,
    latch: BasicBlock<'c>,
    step: Step<'c>,
    pointers: Vec<Pointer<'c>>,
}

/// The groups of the loops of `function` that are worth an offset.
fn groups<'c>(function: FunctionValue<'c>, data: &TargetData) -> Vec<Group<'c>> {
    let mut groups = Vec::new();
    let mut predecessors = None;
    for header in function.get_basic_block_iter() {
        let first = groups.len();
        let mut body = None;
        for phi in header.get_instructions().map_while(|instruction| PhiValue::try_from(instruction).ok()) {
            let Some((pointer, before, latch, step)) = carried(phi, data) else { continue };
            if let Step::Times(factor, _) = step {
                let predecessors = predecessors.get_or_insert_with(|| predecessors_in(function));
                let body = body.get_or_insert_with(|| loop_of(header, latch, predecessors));
                // What is computed within the loop may differ between its iterations.
                if factor
                    .as_instruction()
                    .and_then(|it| it.get_parent())
                    .is_some_and(|block| body.contains(&block))
                {
                    continue;
                }
            }
            // All loops of a header have the same latch: it has two predecessors.
            match groups[first..].iter_mut().find(|group: &&mut Group<'_>| group.step == step) {
                Some(group) => group.pointers.push(pointer),
                None => groups.push(Group { before, latch, step, pointers: vec![pointer] }),
            }
        }
    }
    groups.retain(|group| group.pointers.len() >= LEAST);
    groups
}

/// The pointer that `phi` is, the block before its loop, that which ends an iteration, and the step.
fn carried<'c>(
    phi: PhiValue<'c>,
    data: &TargetData,
) -> Option<(Pointer<'c>, BasicBlock<'c>, BasicBlock<'c>, Step<'c>)> {
    if phi.count_incoming() != 2 || !phi.as_basic_value().is_pointer_value() {
        return None;
    }
    [0, 1].into_iter().find_map(|first| {
        let (_, before) = phi.get_incoming(first)?;
        let (next, latch) = phi.get_incoming(1 - first)?;
        let next = next.as_instruction_value()?;
        let steps = next.get_opcode() == InstructionOpcode::GetElementPtr
            && next.get_num_operands() == 2
            && next.get_operand(0)?.value()? == phi.as_basic_value();
        if !steps {
            return None;
        }
        let index = operand(next, 1)?;
        let bytes = data.get_abi_size(&next.get_gep_source_element_type().ok()?);
        let step = match index.get_sign_extended_constant() {
            Some(constant) => Step::Bytes(constant.checked_mul(i64::try_from(bytes).ok()?)?),
            None => Step::Times(index, bytes),
        };
        Some((Pointer { phi, first, next }, before, latch, step))
    })
}

type Predecessors<'c> = HashMap<BasicBlock<'c>, Vec<BasicBlock<'c>>>;

fn predecessors_in(function: FunctionValue<'_>) -> Predecessors<'_> {
    let mut predecessors = Predecessors::new();
    for block in function.get_basic_block_iter() {
        let Some(terminator) = block.get_terminator() else { continue };
        for next in terminator.get_operands().flatten().filter_map(|operand| operand.block()) {
            predecessors.entry(next).or_default().push(block);
        }
    }
    predecessors
}

/// The blocks from which `latch` is reached without `header`, and both of these.
fn loop_of<'c>(
    header: BasicBlock<'c>,
    latch: BasicBlock<'c>,
    predecessors: &Predecessors<'c>,
) -> HashSet<BasicBlock<'c>> {
    let mut body = HashSet::from([header]);
    let mut open = vec![latch];
    while let Some(block) = open.pop() {
        if body.insert(block) {
            open.extend(predecessors.get(&block).into_iter().flatten());
        }
    }
    body
}

fn share_in<'c>(function: FunctionValue<'c>, groups: &[Group<'c>], data: &TargetData) -> Result<()> {
    let context = function.get_type().get_context();
    let (builder, i64_type) = (context.create_builder(), context.i64_type());
    for group in groups {
        let step = match group.step {
            Step::Bytes(bytes) => i64_type.const_int(bytes as u64, true),
            Step::Times(factor, bytes) => {
                builder.position_before(&end(group.before)?);
                let wide = builder.build_int_s_extend_or_bit_cast(factor, i64_type, "")?;
                builder.build_int_mul(wide, i64_type.const_int(bytes, false), "")?
            }
        };
        builder.position_before(&group.pointers[0].phi.as_instruction());
        let phi = builder.build_phi(i64_type, "")?;
        let offset = phi.as_basic_value().into_int_value();
        builder.position_before(&end(group.latch)?);
        let next = builder.build_int_add(offset, step, "")?;
        phi.add_incoming(&[(&i64_type.const_zero(), group.before), (&next, group.latch)]);
        let mut sums = Sums::new(&builder, function, group, offset, step, data)?;
        for pointer in &group.pointers {
            replace(&mut sums, pointer)?;
        }
    }
    Ok(())
}

/// Terms of a place that are looked at, from the last one that was added; what comes before them is its root.
const MOST_TERMS: usize = 4;

/// A number of elements of so many bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Term<'c> {
    number: IntValue<'c>,
    bytes: u64,
}

impl<'c> Term<'c> {
    /// Registers of 32 bits that it takes through a loop: what was extended to 64 bits is again where it is added.
    fn registers(&self) -> usize {
        let extended = self.number.as_instruction().is_some_and(|wide| {
            matches!(wide.get_opcode(), InstructionOpcode::SExt | InstructionOpcode::ZExt)
                && operand(wide, 0).is_some_and(|narrow| narrow.get_type().get_bit_width() <= 32)
        });
        if extended { 1 } else { 2 }
    }

    /// The bytes, computed where the number is extended, or where `function` begins if it is an argument. LLVM selects `mul.wide`
    /// for an extension and a product in one block, and only of that and a sum ptxas makes one instruction.
    fn in_bytes(&self, builder: &Builder<'c>, function: FunctionValue<'c>) -> Result<IntValue<'c>> {
        if self.bytes == 1 {
            return Ok(self.number);
        }
        let begin = || function.get_first_basic_block().context("a function has no block");
        builder.position_before(&match self.number.as_instruction() {
            Some(number) => behind(number)?,
            None => first_of(At::Start(begin()?))?,
        });
        let bytes = self.number.get_type().const_int(self.bytes, false);
        Ok(builder.build_int_mul(self.number, bytes, "")?)
    }
}

/// Where a pointer begins: `terms` behind `root`, and `after` bytes behind that.
struct Place<'c> {
    root: PointerValue<'c>,
    terms: Vec<Term<'c>>,
    after: i64,
}

impl<'c> Place<'c> {
    fn of(base: PointerValue<'c>, data: &TargetData) -> Place<'c> {
        let mut place = Place { root: base, terms: Vec::new(), after: 0 };
        while place.terms.len() < MOST_TERMS && place.step_back(data).is_some() {}
        place
    }

    /// Takes the step that gave `root` to the terms.
    fn step_back(&mut self, data: &TargetData) -> Option<()> {
        let step =
            self.root.as_instruction().filter(|it| it.get_opcode() == InstructionOpcode::GetElementPtr)?;
        if step.get_num_operands() != 2 {
            return None;
        }
        let bytes = data.get_abi_size(&step.get_gep_source_element_type().ok()?);
        let number = operand(step, 1)?;
        if number.get_type().get_bit_width() != 64 {
            return None;
        }
        let root = step.get_operand(0)?.value().filter(|it| it.is_pointer_value())?.into_pointer_value();
        match number.get_sign_extended_constant() {
            Some(constant) => {
                self.after = self.after.checked_add(constant.checked_mul(i64::try_from(bytes).ok()?)?)?;
            }
            None => {
                let term = Term { number, bytes };
                if self.terms.contains(&term) {
                    return None;
                }
                self.terms.push(term);
            }
        }
        self.root = root;
        Some(())
    }
}

/// Where in a block an address is computed: before all that may use it, or at the end.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum At<'c> {
    Start(BasicBlock<'c>),
    End(BasicBlock<'c>),
}

/// A place behind what all pointers share that are behind `root`: so many bytes, added one after the other.
struct Behind<'c> {
    root: PointerValue<'c>,
    bytes: Vec<IntValue<'c>>,
    after: i64,
}

/// Those of `bases` that are behind what enough of them share, so that an address takes one register in place of two.
fn places<'c>(
    builder: &Builder<'c>,
    function: FunctionValue<'c>,
    bases: impl Iterator<Item = PointerValue<'c>>,
    data: &TargetData,
) -> Result<HashMap<PointerValue<'c>, Behind<'c>>> {
    let mut of_roots: Vec<Vec<(PointerValue<'c>, Place<'c>)>> = Vec::new();
    let (mut seen, mut numbers) = (HashSet::new(), HashMap::new());
    for base in bases.filter(|&base| seen.insert(base)) {
        let place = Place::of(base, data);
        let number = *numbers.entry(place.root).or_insert(of_roots.len());
        if number == of_roots.len() {
            of_roots.push(Vec::new());
        }
        of_roots[number].push((base, place));
    }
    let mut found = HashMap::new();
    for places in of_roots {
        found.extend(behind_one_root(builder, function, places)?);
    }
    Ok(found)
}

/// The same of `places`, all behind one root; none where that saves too few registers.
fn behind_one_root<'c>(
    builder: &Builder<'c>,
    function: FunctionValue<'c>,
    places: Vec<(PointerValue<'c>, Place<'c>)>,
) -> Result<Vec<(PointerValue<'c>, Behind<'c>)>> {
    let (mut terms, mut having) = (Vec::new(), HashMap::new());
    for &term in places.iter().flat_map(|(_, place)| &place.terms) {
        let places: &mut usize = having.entry(term).or_default();
        if *places == 0 {
            terms.push(term);
        }
        *places += 1;
    }
    let all = places.len();
    let of_all = |term: &&Term<'c>| having[*term] == all;
    // A pointer takes two registers through the loop.
    let registers: usize = terms.iter().filter(|term| !of_all(term)).map(Term::registers).sum();
    let first = places.iter().find_map(|(base, place)| Some((base.as_instruction()?, place)));
    let Some((first, place)) = first.filter(|_| registers + 2 + LEAST_SAVED <= 2 * all) else {
        return Ok(Vec::new());
    };
    let mut bytes = HashMap::new();
    for term in &terms {
        bytes.insert(*term, term.in_bytes(builder, function)?);
    }
    // All terms that the first pointer has are there before it is.
    builder.position_before(&first);
    let mut root = place.root;
    for term in place.terms.iter().rev().filter(of_all) {
        root = sum(builder, root, bytes[term])?;
    }
    let behind = |(base, mut place): (PointerValue<'c>, Place<'c>)| {
        place.terms.retain(|term| !of_all(&term));
        // What most have in common comes first.
        place.terms.sort_by_key(|term| std::cmp::Reverse(having[term]));
        let bytes = place.terms.iter().map(|term| bytes[term]).collect();
        (base, Behind { root, bytes, after: place.after })
    };
    Ok(places.into_iter().map(behind).collect())
}

/// Has the addresses of a loop that are one number behind places from before it computed from what these share and the
/// number, as the rows of a tile that a loop goes along.
fn share_steps(function: FunctionValue<'_>, data: &TargetData) -> Result<()> {
    let builder = function.get_type().get_context().create_builder();
    for block in function.get_basic_block_iter() {
        let mut steps: Vec<(Term<'_>, Vec<(InstructionValue<'_>, PointerValue<'_>)>)> = Vec::new();
        let mut numbers = HashMap::new();
        for address in block.get_instructions() {
            let Some((base, term)) = step_within(address, block, data) else { continue };
            let number = *numbers.entry(term).or_insert(steps.len());
            if number == steps.len() {
                steps.push((term, Vec::new()));
            }
            steps[number].1.push((address, base));
        }
        steps.retain(|(_, addresses)| 2 * addresses.len() > LEAST_SAVED && is_in_loop(block, addresses));
        for (term, addresses) in steps {
            share_step(&builder, block, term, addresses, data)?;
        }
    }
    Ok(())
}

/// The same for `addresses` of `block`, each with the place that it is `term` behind.
fn share_step<'c>(
    builder: &Builder<'c>,
    block: BasicBlock<'c>,
    term: Term<'c>,
    addresses: Vec<(InstructionValue<'c>, PointerValue<'c>)>,
    data: &TargetData,
) -> Result<()> {
    let function = block.get_parent().context("a block is in no function")?;
    let places = places(builder, function, addresses.iter().map(|(_, base)| *base), data)?;
    if places.is_empty() {
        return Ok(());
    }
    let step = term.in_bytes(builder, function)?;
    let computed_by = step.as_instruction().context("a number of a loop comes from it")?;
    let (mut computed, at) = (Computed::new(), At::Start(block));
    for (address, base) in addresses {
        let Some(place) = places.get(&base) else { continue };
        let mut value = match computed.entry((place.root, Added::Bytes(step), at)) {
            Entry::Occupied(found) => *found.get(),
            Entry::Vacant(none) => {
                builder.position_before(&behind(computed_by)?);
                *none.insert(sum(builder, place.root, step)?)
            }
        };
        // What several addresses share comes early, and an address where it stood.
        let shared = place.bytes.len().saturating_sub(1);
        value = add(builder, &mut computed, value, &place.bytes[..shared], at)?;
        builder.position_before(&address);
        let after = step.get_type().const_int(place.after as u64, true);
        for bytes in place.bytes[shared..].iter().copied().chain((place.after != 0).then_some(after)) {
            value = sum(builder, value, bytes)?;
        }
        address.replace_all_uses_with(&value.as_instruction().context("an address is constant")?);
        address.erase_from_basic_block();
    }
    Ok(())
}

/// Addresses of a loop from which on they are computed from each other: where each begins takes two of a thread's 255 registers.
const MOST_KEPT: usize = 64;

/// How far back in a row an address is that another one is computed from: as many sums are under way at a time.
const BESIDE: usize = 4;

/// Distances between addresses of a row, each of which takes registers through the loop.
const MOST_DISTANCES: usize = 8;

/// What places of a row share: all but how many times `step` one is behind what it begins with.
#[derive(PartialEq, Eq, Hash)]
struct Row<'c> {
    root: PointerValue<'c>,
    others: Vec<Term<'c>>,
    after: i64,
    /// What is multiplied, and with what; of so many bytes.
    begin: IntValue<'c>,
    step: IntValue<'c>,
    bytes: u64,
}

impl<'c> Row<'c> {
    /// The row of which `place` is, by its term of that number, and how many steps behind what it begins with.
    fn of(place: &Place<'c>, number: usize) -> Vec<(Self, i64)> {
        let Term { number: product, bytes } = place.terms[number];
        let product = product.as_instruction().filter(|it| it.get_opcode() == InstructionOpcode::Mul);
        let Some([a, b]) = product.and_then(operands) else { return Vec::new() };
        let row = |begin, step, at| {
            let others = place.terms.iter().enumerate().filter(|(other, _)| *other != number);
            let others = others.map(|(_, term)| *term).collect();
            (Row { root: place.root, others, after: place.after, begin, step, bytes }, at)
        };
        let sums = [(a, b), (b, a)].into_iter().filter_map(|(sum, step)| {
            let (begin, at) = sum_with_constant(sum)?;
            Some(row(begin, step, at))
        });
        sums.chain([row(a, b, 0), row(b, a, 0)]).collect()
    }
}

/// A number and the constant of which `value` is the sum.
pub(crate) fn sum_with_constant(value: IntValue<'_>) -> Option<(IntValue<'_>, i64)> {
    let Addition { operands: [number, constant], adds, either } = addition(value.as_instruction()?)?;
    (adds || either).then_some((number, constant.get_sign_extended_constant()?))
}

/// A place in a row: `at` steps behind what the row begins with.
struct InRow<'c> {
    address: InstructionValue<'c>,
    base: PointerValue<'c>,
    at: i64,
}

/// Computes the addresses of each row in a loop from each other, where there are many of them.
fn follow_rows(function: FunctionValue<'_>, data: &TargetData) -> Result<()> {
    let builder = function.get_type().get_context().create_builder();
    for block in function.get_basic_block_iter() {
        let mut steps: HashMap<IntValue<'_>, Vec<(InstructionValue<'_>, PointerValue<'_>)>> = HashMap::new();
        let mut order = Vec::new();
        for address in block.get_instructions() {
            let changes = |number: IntValue<'_>| {
                let by = number.as_instruction();
                by.is_some_and(|it| {
                    it.get_opcode() == InstructionOpcode::Phi || it.get_parent() == Some(block)
                })
            };
            let step =
                step_before(address, block, data).filter(|(_, term)| term.bytes == 1 && changes(term.number));
            let Some((base, term)) = step else { continue };
            let addresses = steps.entry(term.number).or_default();
            if addresses.is_empty() {
                order.push(term.number);
            }
            addresses.push((address, base));
        }
        for number in order {
            let addresses = &steps[&number];
            if addresses.len() >= MOST_KEPT && is_in_loop(block, addresses) {
                follow_row(&builder, block, number, addresses, data)?;
            }
        }
    }
    Ok(())
}

/// The same for `addresses` of `block`, each `number` bytes behind a place from before the loop.
fn follow_row<'c>(
    builder: &Builder<'c>,
    block: BasicBlock<'c>,
    number: IntValue<'c>,
    addresses: &[(InstructionValue<'c>, PointerValue<'c>)],
    data: &TargetData,
) -> Result<()> {
    // With each its number, so that the same one is chosen every time.
    let mut rows: HashMap<Row<'c>, (usize, Vec<InRow<'c>>)> = HashMap::new();
    for &(address, base) in addresses {
        let place = Place::of(base, data);
        for (row, at) in (0..place.terms.len()).flat_map(|number| Row::of(&place, number)) {
            let number = rows.len();
            rows.entry(row).or_insert((number, Vec::new())).1.push(InRow { address, base, at });
        }
    }
    for (_, places) in rows.values_mut() {
        places.sort_by_key(|place| place.at);
        places.dedup_by_key(|place| place.at);
    }
    // An address may be in several rows: the longest counts.
    let is_long =
        |places: &[InRow<'_>]| places.len() >= MOST_KEPT && distances(places).len() <= MOST_DISTANCES;
    let long = rows.iter().filter(|(_, (_, places))| is_long(places));
    let longest = long.max_by_key(|(_, (number, places))| (places.len(), std::cmp::Reverse(*number)));
    let Some((row, (_, places))) = longest else { return Ok(()) };
    let context = block.get_context();
    let first = places[0].base.as_instruction().context("a place comes from before the loop")?;
    builder.position_before(&behind(first)?);
    let mut bytes = HashMap::new();
    for distance in distances(places) {
        // Addresses wrap around.
        let factor = context.i64_type().const_int((distance as u64).wrapping_mul(row.bytes), true);
        bytes.insert(distance, builder.build_int_mul(row.step, factor, "")?);
    }
    builder.position_before(&first_with(number, At::Start(block))?);
    let mut values = Vec::<PointerValue<'c>>::with_capacity(places.len());
    for (i, place) in places.iter().enumerate() {
        let value = match before(i) {
            None => sum(builder, place.base, number)?,
            Some(from) => sum(builder, values[from], bytes[&place.at.wrapping_sub(places[from].at)])?,
        };
        values.push(value);
        place.address.replace_all_uses_with(&value.as_instruction().context("an address is constant")?);
        place.address.erase_from_basic_block();
    }
    Ok(())
}

/// From which place of a row that of this number is computed.
fn before(number: usize) -> Option<usize> {
    if number < BESIDE { number.checked_sub(1) } else { Some(number - BESIDE) }
}

/// How many steps places of a row are behind those that they are computed from, each number once.
fn distances(places: &[InRow<'_>]) -> Vec<i64> {
    let all = (0..places.len()).filter_map(|i| Some(places[i].at.wrapping_sub(places[before(i)?].at)));
    let mut all: Vec<_> = all.collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The pointer from another block, and the number that `block` computes, of which `address` is the sum.
fn step_within<'c>(
    address: InstructionValue<'c>,
    block: BasicBlock<'c>,
    data: &TargetData,
) -> Option<(PointerValue<'c>, Term<'c>)> {
    step_before(address, block, data)
        .filter(|(_, term)| term.number.as_instruction().is_some_and(|it| it.get_parent() == Some(block)))
}

/// The pointer from another block, and the number of 64 bits, of which `address`, in `block`, is the sum.
fn step_before<'c>(
    address: InstructionValue<'c>,
    block: BasicBlock<'c>,
    data: &TargetData,
) -> Option<(PointerValue<'c>, Term<'c>)> {
    if address.get_opcode() != InstructionOpcode::GetElementPtr || address.get_num_operands() != 2 {
        return None;
    }
    let base = address.get_operand(0)?.value().filter(|it| it.is_pointer_value())?.into_pointer_value();
    let number = operand(address, 1)?;
    let bytes = data.get_abi_size(&address.get_gep_source_element_type().ok()?);
    let comes_before = base.as_instruction()?.get_parent()? != block;
    (comes_before && number.get_type().get_bit_width() == 64).then_some((base, Term { number, bytes }))
}

/// Whether `block` runs again without what computes the first of the places that `addresses` are behind.
fn is_in_loop<'c>(block: BasicBlock<'c>, addresses: &[(InstructionValue<'c>, PointerValue<'c>)]) -> bool {
    let before = addresses.first().and_then(|(_, base)| base.as_instruction()?.get_parent());
    let mut seen: HashSet<_> = before.into_iter().collect();
    let mut open = vec![block];
    while let Some(at) = open.pop() {
        let Some(terminator) = at.get_terminator() else { continue };
        for next in terminator.get_operands().flatten().filter_map(|operand| operand.block()) {
            if next == block {
                return true;
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}

/// What was computed at a place: a root and the offset of this iteration or of the next one, or a sum and what follows it.
type Computed<'c> = HashMap<(PointerValue<'c>, Added<'c>, At<'c>), PointerValue<'c>>;

/// `value` and `bytes`, added one after the other, each sum once.
fn add<'c>(
    builder: &Builder<'c>,
    computed: &mut Computed<'c>,
    mut value: PointerValue<'c>,
    bytes: &[IntValue<'c>],
    at: At<'c>,
) -> Result<PointerValue<'c>> {
    for bytes in bytes {
        value = match computed.entry((value, Added::Bytes(*bytes), at)) {
            Entry::Occupied(found) => *found.get(),
            Entry::Vacant(none) => {
                position_after(builder, value)?;
                *none.insert(sum(builder, value, *bytes)?)
            }
        };
    }
    Ok(value)
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Added<'c> {
    Offset(When),
    Bytes(IntValue<'c>),
}

/// Of which iteration a pointer is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum When {
    Now,
    Next,
}

/// The sums of what pointers of a group began with and the offset that they share.
struct Sums<'b, 'c> {
    builder: &'b Builder<'c>,
    offset: IntValue<'c>,
    /// By how much that is more in the next iteration.
    step: IntValue<'c>,
    /// Where pointers began whose sums begin with what others share.
    places: HashMap<PointerValue<'c>, Behind<'c>>,
    /// The offset in the next iteration, where it was computed.
    next: HashMap<At<'c>, IntValue<'c>>,
    computed: Computed<'c>,
}

impl<'b, 'c> Sums<'b, 'c> {
    fn new(
        builder: &'b Builder<'c>,
        function: FunctionValue<'c>,
        group: &Group<'c>,
        offset: IntValue<'c>,
        step: IntValue<'c>,
        data: &TargetData,
    ) -> Result<Self> {
        let places = places(builder, function, group.pointers.iter().filter_map(Pointer::begins), data)?;
        Ok(Sums { builder, offset, step, places, next: HashMap::new(), computed: HashMap::new() })
    }

    /// `base` and the offset, computed at `at`.
    fn at(&mut self, at: At<'c>, base: PointerValue<'c>, when: When) -> Result<PointerValue<'c>> {
        let place = self.places.get(&base);
        let root = place.map_or(base, |place| place.root);
        let mut value = match self.computed.entry((root, Added::Offset(when), at)) {
            Entry::Occupied(found) => *found.get(),
            Entry::Vacant(none) => {
                let offset = match (when, self.next.entry(at)) {
                    (When::Now, _) => self.offset,
                    (When::Next, Entry::Occupied(found)) => *found.get(),
                    (When::Next, Entry::Vacant(none)) => {
                        self.builder.position_before(&first_of(at)?);
                        *none.insert(self.builder.build_int_add(self.offset, self.step, "")?)
                    }
                };
                self.builder.position_before(&first_with(offset, at)?);
                *none.insert(sum(self.builder, root, offset)?)
            }
        };
        let Some(place) = place else { return Ok(value) };
        value = add(self.builder, &mut self.computed, value, &place.bytes, at)?;
        if place.after != 0 {
            position_after(self.builder, value)?;
            value = sum(self.builder, value, self.offset.get_type().const_int(place.after as u64, true))?;
        }
        Ok(value)
    }
}

/// So that what is built next uses `value` and comes before all else that may.
fn position_after<'c>(builder: &Builder<'c>, value: PointerValue<'c>) -> Result<()> {
    builder.position_before(&behind(value.as_instruction().context("an address is constant")?)?);
    Ok(())
}

/// The first instruction before which what uses `value` may be computed.
fn behind(value: InstructionValue<'_>) -> Result<InstructionValue<'_>> {
    if value.get_opcode() == InstructionOpcode::Phi {
        return first_of(At::Start(value.get_parent().context("an instruction is in no block")?));
    }
    value.get_next_instruction().context("a block has no end")
}

/// Computes what `pointer` was from the offset wherever it is used, in each block once, so that it lives no longer than that.
fn replace<'c>(sums: &mut Sums<'_, 'c>, pointer: &Pointer<'c>) -> Result<()> {
    let Pointer { phi, next, .. } = *pointer;
    let base = pointer.begins().context("a phi has fewer values")?;
    let phi = phi.as_instruction();
    for (pointer, when, other) in [(phi, When::Now, next), (next, When::Next, phi)] {
        for (user, number) in uses(pointer).filter(|(user, _)| *user != other) {
            let at = match PhiValue::try_from(user) {
                // What a phi takes is computed where that comes from.
                Ok(user) => At::End(user.get_incoming(number).context("a phi has fewer values")?.1),
                Err(_) => At::Start(user.get_parent().context("an instruction is in no block")?),
            };
            user.set_operand(number, sums.at(at, base, when)?);
        }
    }
    // Only each other used them.
    next.set_operand(0, base);
    phi.erase_from_basic_block();
    next.erase_from_basic_block();
    Ok(())
}

/// The first instruction before which something may be computed at `at`.
fn first_of(at: At<'_>) -> Result<InstructionValue<'_>> {
    match at {
        At::Start(block) => {
            let first = block.get_instructions().find(|it| it.get_opcode() != InstructionOpcode::Phi);
            first.context("a block has no end")
        }
        At::End(block) => end(block),
    }
}

/// The same, where `number` is known.
fn first_with<'c>(number: IntValue<'c>, at: At<'c>) -> Result<InstructionValue<'c>> {
    match (at, number.as_instruction()) {
        (At::Start(block), Some(computed)) if computed.get_parent() == Some(block) => behind(computed),
        _ => first_of(at),
    }
}

fn sum<'c>(builder: &Builder<'c>, base: PointerValue<'c>, offset: IntValue<'c>) -> Result<PointerValue<'c>> {
    let byte = base.get_type().get_context().i8_type();
    // SAFETY: an address is computed, not said to be in bounds, which every offset has; the one index of bytes is all that
    // a pointer takes.
    Ok(unsafe { builder.build_gep(byte, base, &[offset], "")? })
}

fn end(block: BasicBlock<'_>) -> Result<InstructionValue<'_>> {
    block.get_terminator().context("a block has no end")
}

/// An operand that is an integer.
pub(crate) fn operand<'c>(of: InstructionValue<'c>, number: u32) -> Option<IntValue<'c>> {
    of.get_operand(number)?.value().filter(|it| it.is_int_value()).map(BasicValueEnum::into_int_value)
}

/// The instructions that use `value`, and as which operand.
pub(crate) fn uses(value: InstructionValue<'_>) -> impl Iterator<Item = (InstructionValue<'_>, u32)> {
    let each = std::iter::successors(value.get_first_use(), |at| at.get_next_use());
    let mut users: Vec<_> = each.filter_map(|at| instruction(at.get_user())).collect();
    let mut seen = HashSet::new();
    users.retain(|user| seen.insert(user.as_value_ref()));
    users.into_iter().flat_map(move |user| {
        let is_it = move |number: &u32| {
            let operand = user.get_operand(*number).and_then(|operand| operand.value());
            operand.is_some_and(|operand| operand.as_value_ref() == value.as_value_ref())
        };
        (0..user.get_num_operands()).filter(is_it).map(move |number| (user, number))
    })
}

/// What uses an instruction is one, whatever its type.
fn instruction(user: AnyValueEnum<'_>) -> Option<InstructionValue<'_>> {
    match user {
        AnyValueEnum::ArrayValue(value) => value.as_instruction(),
        AnyValueEnum::IntValue(value) => value.as_instruction(),
        AnyValueEnum::FloatValue(value) => value.as_instruction(),
        AnyValueEnum::PhiValue(value) => Some(value.as_instruction()),
        AnyValueEnum::PointerValue(value) => value.as_instruction(),
        AnyValueEnum::StructValue(value) => value.as_instruction(),
        AnyValueEnum::VectorValue(value) => value.as_instruction(),
        AnyValueEnum::ScalableVectorValue(value) => value.as_instruction(),
        AnyValueEnum::InstructionValue(value) => Some(value),
        AnyValueEnum::FunctionValue(_) | AnyValueEnum::MetadataValue(_) => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;
    use inkwell::targets::TargetData;

    /// The module that `text` is as `change` leaves it, which LLVM's verifier accepts.
    pub(crate) fn changed(text: &str, change: impl FnOnce(&Module<'_>) -> Result<()>) -> String {
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "test");
        let module = context.create_module_from_ir(buffer).unwrap();
        change(&module).unwrap();
        module.verify().unwrap();
        module.print_to_string().to_string()
    }

    /// `text` with shared offsets.
    fn shared(text: &str) -> String {
        changed(text, |module| share(module, &TargetData::create("e-i64:64-n16:32:64")))
    }

    /// A loop of three pointers that step by `step` elements of `T`, which stores `sum` to each.
    fn three(kind: &str, step: &str, body: &str) -> String {
        let phis: String = (0..3)
            .map(|i| format!("  %p{i} = phi ptr addrspace(1) [ %b{i}, %entry ], [ %q{i}, %loop ]\n"))
            .collect();
        let steps: String = (0..3)
            .map(|i| format!("  %q{i} = getelementptr {kind}, ptr addrspace(1) %p{i}, i64 {step}\n"))
            .collect();
        let stores: String = (0..3).map(|i| format!("  store i32 %i, ptr addrspace(1) %p{i}\n")).collect();
        format!(
            "define void @k(ptr addrspace(1) %b0, ptr addrspace(1) %b1, ptr addrspace(1) %b2, i64 %s, i32 %n) {{\n\
             entry:\n  br label %loop\n\
             loop:\n{phis}  %i = phi i32 [ 0, %entry ], [ %j, %loop ]\n{body}{stores}{steps}  %j = add i32 %i, 1\n  \
             %c = icmp slt i32 %j, %n\n  br i1 %c, label %loop, label %end\nend:\n  ret void\n}}\n"
        )
    }

    fn carries(text: &str, what: &str) -> usize {
        text.lines().filter(|line| line.contains(&format!(" = phi {what}"))).count()
    }

    #[test]
    fn one_offset_is_carried() {
        let text = shared(&three("half", "64", ""));
        assert_eq!((carries(&text, "ptr"), carries(&text, "i64")), (0, 1), "{text}");
        assert!(text.contains(", 128\n"), "64 elements of two bytes: {text}");
        assert_eq!(text.matches("getelementptr i8").count(), 3, "{text}");
    }

    /// A loop of `rows` times `columns` pointers behind an argument, each a row and a column of numbers of `bits` bits, to which
    /// it stores.
    fn tile(rows: usize, columns: usize, bits: u32) -> String {
        let extended = |name: &str, count: usize| -> String {
            let extend = |i| match bits {
                64 => format!("  %{name}{i} = mul i64 %s, {}\n", i + 3),
                _ => format!(
                    "  %{name}n{i} = mul i{bits} %n, {}\n  %{name}{i} = sext i{bits} %{name}n{i} to i64\n",
                    i + 3
                ),
            };
            (0..count).map(extend).collect()
        };
        let (mut bases, mut phis, mut rest) = (String::new(), String::new(), String::new());
        for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
            bases += &format!("  %a{r}x{c} = getelementptr half, ptr addrspace(1) %b, i64 %r{r}\n");
            bases += &format!("  %p{r}x{c} = getelementptr half, ptr addrspace(1) %a{r}x{c}, i64 %c{c}\n");
            phis +=
                &format!("  %f{r}x{c} = phi ptr addrspace(1) [ %p{r}x{c}, %entry ], [ %q{r}x{c}, %loop ]\n");
            rest += &format!("  store i32 %i, ptr addrspace(1) %f{r}x{c}\n");
            rest += &format!("  %q{r}x{c} = getelementptr half, ptr addrspace(1) %f{r}x{c}, i64 64\n");
        }
        format!(
            "define void @k(ptr addrspace(1) %b, i64 %s, i{} %n) {{\nentry:\n{}{}{bases}  br label %loop\n\
             loop:\n{phis}  %i = phi i32 [ 0, %entry ], [ %j, %loop ]\n{rest}  %j = add i32 %i, 1\n  \
             %d = icmp slt i32 %j, 9\n  br i1 %d, label %loop, label %end\nend:\n  ret void\n}}\n",
            bits.min(32),
            extended("r", rows),
            extended("c", columns),
        )
    }

    fn in_the_loop(text: &str) -> &str {
        text.split_once("loop:").unwrap().1
    }

    /// The addresses that `text` computes in its loop.
    fn in_loop(text: &str) -> usize {
        in_the_loop(text).matches("getelementptr").count()
    }

    /// A loop of pointers to so many elements of a column, each `row` rows of `%s` elements behind the one before, to which it stores.
    fn column(count: usize, row: impl Fn(usize) -> usize, sum: &str) -> String {
        let each = |line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
        let rows = each(&|r| match row(r) {
            0 => format!("  %m{r} = mul i64 %x, %s\n"),
            at => format!("  %r{r} = {sum} i64 %x, {at}\n  %m{r} = mul nsw i64 %r{r}, %s\n"),
        });
        let bases = each(&|r| {
            format!(
                "  %a{r} = getelementptr half, ptr addrspace(1) %b, i64 %m{r}\n  \
                 %p{r} = getelementptr half, ptr addrspace(1) %a{r}, i64 %k\n"
            )
        });
        let phis = each(&|r| format!("  %f{r} = phi ptr addrspace(1) [ %p{r}, %entry ], [ %q{r}, %loop ]\n"));
        let rest = each(&|r| {
            format!(
                "  store i32 %i, ptr addrspace(1) %f{r}\n  %q{r} = getelementptr half, ptr addrspace(1) %f{r}, i64 64\n"
            )
        });
        format!(
            "define void @k(ptr addrspace(1) %b, i64 %s, i64 %k, i64 %y) {{\nentry:\n  %x = shl i64 %y, 9\n{rows}{bases}  \
             br label %loop\nloop:\n{phis}  %i = phi i32 [ 0, %entry ], [ %j, %loop ]\n{rest}  %j = add i32 %i, 1\n  \
             %d = icmp slt i32 %j, 9\n  br i1 %d, label %loop, label %end\nend:\n  ret void\n}}\n"
        )
    }

    #[test]
    fn many_addresses_of_a_row_are_computed_from_each_other() {
        let begins = |text: &str| {
            (0..MOST_KEPT).filter(|r| in_the_loop(text).contains(&format!("%p{r}, i64"))).count()
        };
        for sum in ["or disjoint", "add"] {
            let text = shared(&column(MOST_KEPT, |r| r, sum));
            // The first one, and the distances: one row, and as many as are under way at a time.
            assert_eq!((begins(&text), in_loop(&text)), (1, MOST_KEPT), "{text}");
            let (before, _) = text.split_once("loop:").unwrap();
            assert_eq!(before.matches("mul i64 %s").count(), 2, "{text}");
        }
        // Registers suffice for fewer; what is or'ed may be there already; and distances take registers, too.
        for text in [
            column(MOST_KEPT - 1, |r| r, "add"),
            column(MOST_KEPT, |r| r, "or"),
            column(MOST_KEPT, |r| r * r, "add"),
        ] {
            let text = shared(&text);
            assert!(begins(&text) + 1 >= MOST_KEPT - 1, "{text}");
        }
    }

    #[test]
    fn numbers_of_32_bits_are_added_in_the_loop() {
        let text = shared(&tile(32, 1, 32));
        // The column is that of all: it is added before the loop, the offset to that, and each row to both.
        assert_eq!((carries(&text, "ptr"), in_loop(&text)), (0, 33), "{text}");
        let (before, _) = text.split_once("loop:").unwrap();
        assert_eq!(before.matches("mul i64").count(), 33, "an extension and a product: {text}");
    }

    #[test]
    fn what_is_an_argument_is_multiplied_where_the_function_begins() {
        let text = shared(&tile(32, 1, 32).replace("i64 %c0", "i64 %s"));
        assert_eq!((carries(&text, "ptr"), in_loop(&text)), (0, 33), "{text}");
        let (_, entry) = text.split_once("entry:\n").unwrap();
        assert!(entry.trim_start().split_once(" = ").unwrap().1.starts_with("mul i64 %s, 2\n"), "{text}");
    }

    /// An inner loop goes along rows behind the pointer that the outer one carries, whose step is not known.
    #[test]
    fn addresses_of_a_loop_are_computed_from_what_they_share() {
        let rows: String = (0..24)
            .map(|r| format!("  %n{r} = mul i32 %n, {}\n  %r{r} = sext i32 %n{r} to i64\n  %p{r} = getelementptr half, ptr addrspace(1) %b, i64 %r{r}\n", r + 3))
            .collect();
        let stores: String = (0..24)
            .map(|r| format!("  %a{r} = getelementptr half, ptr addrspace(1) %p{r}, i64 %w\n  store i32 %i, ptr addrspace(1) %a{r}\n"))
            .collect();
        let text = shared(&format!(
            "define void @k(ptr addrspace(1) %b, i32 %n) {{\nentry:\n{rows}  br label %loop\n\
             loop:\n  %i = phi i32 [ 0, %entry ], [ %j, %loop ]\n  %v = mul i32 %i, %n\n  %w = sext i32 %v to i64\n{stores}  \
             %j = add i32 %i, 1\n  %c = icmp slt i32 %j, 9\n  br i1 %c, label %loop, label %end\nend:\n  ret void\n}}\n"
        ));
        assert_eq!(in_loop(&text), 25, "what they share, and a row each: {text}");
        let (before, within) = text.split_once("loop:").unwrap();
        assert_eq!((before.matches("mul i64").count(), within.matches("mul i64").count()), (24, 1), "{text}");
    }

    #[test]
    fn rows_and_columns_are_added_one_after_the_other() {
        let text = shared(&tile(16, 2, 32));
        // The offset, two columns, and a row to each of them.
        assert_eq!((carries(&text, "ptr"), in_loop(&text)), (0, 1 + 2 + 32), "{text}");
        assert_eq!(shared(&tile(16, 2, 32)), text, "each run gives the same");
    }

    #[test]
    fn numbers_of_64_bits_save_nothing() {
        let text = shared(&tile(32, 1, 64));
        assert_eq!((carries(&text, "ptr"), in_loop(&text)), (0, 32), "{text}");
        let text = shared(&tile(8, 1, 32));
        assert_eq!((carries(&text, "ptr"), in_loop(&text)), (0, 8), "few save little: {text}");
    }

    /// A loop that loads what the next iteration uses has the next pointers alone.
    #[test]
    fn pointers_of_the_next_iteration_begin_there_too() {
        let text = tile(32, 1, 32);
        let (before, after) = text.split_once("loop:").unwrap();
        let after = after.lines().filter(|line| !line.contains("store")).map(|line| {
            match line.split_once(" = getelementptr") {
                Some((name, _)) => format!("{line}\n  store i32 %i, ptr addrspace(1) {}\n", name.trim()),
                None => format!("{line}\n"),
            }
        });
        let text = shared(&format!("{before}loop:{}", after.collect::<String>()));
        assert_eq!((carries(&text, "ptr"), in_loop(&text)), (0, 33), "{text}");
    }

    #[test]
    fn what_steps_backwards_has_a_negative_offset() {
        let text = shared(&three("float", "-2", ""));
        assert!(text.contains(", -8\n"), "{text}");
    }

    #[test]
    fn an_argument_is_the_same_in_each_iteration() {
        let text = shared(&three("half", "%s", ""));
        assert_eq!((carries(&text, "ptr"), carries(&text, "i64")), (0, 1), "{text}");
        let (before, _) = text.split_once("loop:").unwrap();
        assert!(before.contains("= mul i64 %s, 2\n"), "{text}");
    }

    #[test]
    fn what_an_iteration_computes_is_no_step() {
        let text = shared(&three("half", "%t", "  %t = sext i32 %i to i64\n"));
        assert_eq!((carries(&text, "ptr"), carries(&text, "i64")), (3, 0), "{text}");
    }

    #[test]
    fn two_are_too_few() {
        let text = three("half", "64", "").replace("%q2 = getelementptr half", "%q2 = getelementptr float");
        let text = shared(&text);
        assert_eq!((carries(&text, "ptr"), carries(&text, "i64")), (3, 0), "{text}");
    }

    /// The inner loop goes on where the outer one is, and the outer one goes on after it; what both were at last is used.
    #[test]
    fn loops_around_loops_and_uses_after_them() {
        let phis = |name: &str, first: &str, before: &str, next: &str, latch: &str| -> String {
            let phi = |i| {
                format!(
                    "  %{name}{i} = phi ptr addrspace(1) [ %{first}{i}, %{before} ], [ %{next}{i}, %{latch} ]\n"
                )
            };
            (0..3).map(phi).collect()
        };
        let steps = |to: &str, from: &str, by: &str| -> String {
            (0..3)
                .map(|i| format!("  %{to}{i} = getelementptr i8, ptr addrspace(1) %{from}{i}, i64 {by}\n"))
                .collect()
        };
        let stores = |to: &str| -> String {
            (0..3).map(|i| format!("  store i32 0, ptr addrspace(1) %{to}{i}\n")).collect()
        };
        let text = format!(
            "define void @k(ptr addrspace(1) %b0, ptr addrspace(1) %b1, ptr addrspace(1) %b2, i1 %c, i1 %d) {{\n\
             entry:\n  br label %outer\n\
             outer:\n{}  br label %inner\n\
             inner:\n{}  br i1 %c, label %then, label %latch\n\
             then:\n{}  br label %latch\n\
             latch:\n{}{}  br i1 %d, label %inner, label %next\n\
             next:\n  %last = phi ptr addrspace(1) [ %r0, %latch ]\n{}  store i32 1, ptr addrspace(1) %last\n  \
             br i1 %c, label %outer, label %end\nend:\n{}  ret void\n}}\n",
            phis("p", "b", "entry", "q", "next"),
            phis("r", "p", "outer", "s", "latch"),
            stores("r"),
            steps("s", "r", "16"),
            stores("s"),
            steps("q", "p", "4096"),
            stores("q"),
        );
        let text = shared(&text);
        // The one that is left is what was used after the loop.
        assert_eq!((carries(&text, "ptr"), carries(&text, "i64")), (1, 2), "{text}");
        let (_, then) = text.split_once("then:").unwrap();
        let (then, _) = then.split_once("latch:").unwrap();
        assert_eq!(then.matches("getelementptr i8").count(), 3, "computed where it is used: {text}");
    }
}
