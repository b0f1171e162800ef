//! `--triton-order-programs`: programs that run at the same time read the same operands.
//!
//! A product gives each program, or each round of a loop over tiles, a tile of its result: rows of the left operand and columns of the
//! right one. Programs begin in the order of their numbers. Where one of the two counts fastest, as in `pid / n` and `pid % n`, those that
//! run at the same time have all of one operand and little of the other, and what the L2 does not keep is read from memory once for each
//! wave of programs. So the tiles are numbered anew, in groups of up to eight of what counts slowest: in a group that counts fastest. As many
//! programs then read about as much of both operands.
//!
//! Which program computes which tile is all that changes: each still has one of its own. So the numbers are left alone where programs
//! could know of each other's order, by atomic operations whose results they use, by loops that wait, or by what nothing is known of; and
//! where any dot of a loop has an operand that depends on both numbers, as with an order that the kernel has chosen itself.

use crate::ir_util::{cmpi, compare, in_block, is_dot};
use mlir_host::asm::Reported;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Loc, Op, Type, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use mlir_host::rewrite::IrRewriter;
use mlir_host::upstream::{
    DivSIOp, DivUIOp, ExtSIOp, ExtUIOp, ForOp, IfOp, RemSIOp, RemUIOp, WhileOp, YieldOp,
};
use ttopt_dialect::interfaces::Dot;
use ttopt_dialect::tt::enums::ProgramDim;
use ttopt_dialect::tt::ops::{
    AssertOp, AtomicRmwOp, DescriptorGatherOp, DescriptorLoadOp, DescriptorReduceOp, DescriptorScatterOp,
    DescriptorStoreOp, FuncOp, GetNumProgramsOp, GetProgramIdOp, LoadOp, MakeTensorDescOp, PrintOp, StoreOp,
};

/// The pass.
pub static TRITON_ORDER_PROGRAMS: PassDef = PassDef {
    dependencies: &["arith", "math", "tt"],
    options: &[
        PassOption {
            name: "num-ctas",
            description: "CTAs of a program; programs of several keep their order",
            kind: OptionKind::Int(1),
        },
        PassOption {
            name: "explain",
            description: "report whose numbers change, and why, as remarks",
            kind: OptionKind::Bool(false),
        },
    ],
    ..PassDef::new(
        "triton-order-programs",
        "Number the tiles of products so that programs at the same time read the same operands",
        run,
    )
};

/// What counts slowest is in groups of so many at most: a power of two. On an H200 2 to 32 are within 2 % of each other, with 4 to 16 the
/// fastest (docs/passes.md).
const GROUP: u32 = 8;
/// Where there are at most so many of what counts fastest, programs that run at the same time have all of them and many of the other.
const FEW: u32 = 2 * GROUP;

fn run(root: Op<'_>, options: &Options) -> PassResult {
    if options.int("num-ctas") > 1 {
        return Ok(());
    }
    let mut kernels = Vec::new();
    root.walk(&mut |op| {
        kernels.extend(FuncOp::cast(op).map(|_| op));
        Walk::Advance
    });
    kernels.into_iter().try_for_each(|kernel| order(kernel, options.bool("explain")))
}

fn order(kernel: Op<'_>, explains: bool) -> PassResult {
    if kernel.walk(&mut |op| if is_alone(op) { Walk::Advance } else { Walk::Stop }) == Walk::Stop {
        return Ok(());
    }
    let found = Tiles::all(kernel).into_iter().find(|tiles| tiles.are_of_products(kernel));
    let Some(tiles) = found else { return Ok(()) };
    if explains {
        tiles.at().remark(format!(
            "tiles of products are numbered in groups of {GROUP} rows or columns, so that programs which run at the same time read \
             about as much of both operands, and the L2 keeps it: each dot reads its operands by one of two numbers of programs"
        ));
    }
    tiles.renumber()
}

/// Whether `op` cannot let programs know of each other's order.
fn is_alone(op: Op<'_>) -> bool {
    if WhileOp::cast(op).is_some() {
        return false;
    }
    if let Some(load) = LoadOp::cast(op) {
        return !load.is_volatile();
    }
    if AtomicRmwOp::cast(op).is_some() {
        return op.results().all(Value::is_unused);
    }
    let accesses = is_one_of!(
        op,
        StoreOp
            | MakeTensorDescOp
            | DescriptorLoadOp
            | DescriptorGatherOp
            | DescriptorStoreOp
            | DescriptorScatterOp
            | DescriptorReduceOp
            | PrintOp
            | AssertOp
    );
    accesses || op.num_regions() > 0 || op.is_memory_effect_free() || op.next().is_none()
}

/// Of which of the numbers of [`Tiles`] a value is computed.
type Sources = u8;
const SLOW: Sources = 1;
const FAST: Sources = 2;
/// Of both, in a way of its own.
const BOTH: Sources = 4;

/// Two numbers that give each tile to one program.
enum Tiles<'c> {
    /// The numbers of programs along the first two dimensions of the grid, of which the first counts fastest.
    Grid([Op<'c>; 2]),
    /// Quotients and remainders of the number of a program or of a loop over tiles.
    Parts(Parts<'c>),
}

struct Parts<'c> {
    /// The number.
    number: Value<'c>,
    divisor: Value<'c>,
    quotients: Vec<Op<'c>>,
    remainders: Vec<Op<'c>>,
    /// Behind this all that is needed is there; the start of the loop where that is none.
    after: Option<Op<'c>>,
    /// The loop, where it is the number of one.
    tiles: Option<ForOp<'c>>,
}

impl<'c> Tiles<'c> {
    /// All of `kernel` that could be numbered anew.
    fn all(kernel: Op<'c>) -> Vec<Self> {
        let mut programs: [Vec<Op<'c>>; 3] = Default::default();
        let mut loops = Vec::new();
        kernel.walk(&mut |op| {
            if let Some(id) = GetProgramIdOp::cast(op) {
                let along = match id.axis() {
                    ProgramDim::X => 0,
                    ProgramDim::Y => 1,
                    ProgramDim::Z => 2,
                };
                programs[along].push(op);
            }
            loops.extend(ForOp::cast(op));
            Walk::Advance
        });
        let mut all = Vec::new();
        if let ([x], [y]) = (programs[0].as_slice(), programs[1].as_slice())
            && x.block() == y.block()
        {
            all.push(Self::Grid([*x, *y]));
        }
        let single = programs.iter().filter_map(|ids| if let [id] = ids[..] { Some(id) } else { None });
        for id in single {
            // Numbers are often widened first.
            let mut users = id.result(0).uses().map(|(user, _)| user);
            let wide = users.next().filter(|op| users.next().is_none() && is_one_of!(op, ExtSIOp | ExtUIOp));
            all.extend(Parts::of(wide.unwrap_or(id).result(0), None).map(Self::Parts));
        }
        // A loop over tiles that all programs take turns at. What a program does before and behind it could be for the same tiles.
        let is_all = |tiles: Op<'c>| {
            let done = kernel.walk(&mut |op| {
                let aside = op.num_regions() > 0 || op.is_memory_effect_free() || op.next().is_none();
                match op == tiles {
                    true => Walk::Skip,
                    false if aside || MakeTensorDescOp::cast(op).is_some() => Walk::Advance,
                    false => Walk::Stop,
                }
            });
            done != Walk::Stop
        };
        let takes_turns = |tiles: &ForOp<'c>| {
            GetProgramIdOp::defining(tiles.lower()).is_some()
                && GetNumProgramsOp::defining(tiles.step()).is_some()
                && tiles.op().num_results() == 0
                && is_all(tiles.op())
        };
        for tiles in loops.into_iter().filter(takes_turns) {
            let parts = tiles.induction_variable().and_then(|number| Parts::of(number, Some(tiles)));
            all.extend(parts.map(Self::Parts));
        }
        all
    }

    /// Where the numbers are found.
    fn at(&self) -> Op<'c> {
        match self {
            Self::Grid([x, _]) => *x,
            Self::Parts(parts) => parts.quotients[0],
        }
    }

    /// Whether all dots in loops within `kernel` read one operand by one of the numbers and the other one by the other number, as far as
    /// they depend on them, and the loops run as long for all tiles.
    fn are_of_products(&self, kernel: Op<'c>) -> bool {
        let sources = self.sources(kernel);
        let of = |value: Value<'c>| sources.get(&value).copied().unwrap_or(0);
        let tiles = if let Self::Parts(parts) = self { parts.tiles.map(ForOp::op) } else { None };
        let (mut found, mut all) = (false, true);
        kernel.walk(&mut |op| {
            if !is_dot(op) {
                return Walk::Advance;
            }
            let around =
                op.ancestor(|around| ForOp::cast(around).is_some()).filter(|around| Some(*around) != tiles);
            let (Some(around), Some([left, right, _])) = (around, Dot::operands(op)) else {
                return Walk::Advance;
            };
            let (left, right) = (of(left), of(right));
            let alike = (0..3).all(|i| of(around.operand(i)) == 0);
            all &= alike
                && left | right <= SLOW | FAST
                && left & right == 0
                && left.count_ones() < 2
                && right.count_ones() < 2;
            found |= left | right == SLOW | FAST;
            Walk::Advance
        });
        found && all
    }

    /// What values of `kernel` are computed of. Of control flow only the bounds of loops count.
    fn sources(&self, kernel: Op<'c>) -> FastMap<Value<'c>, Sources> {
        let mut seeds: FastMap<Value<'c>, Sources> = FastMap::default();
        match self {
            Self::Grid([fast, slow]) => seeds.extend([(fast.result(0), FAST), (slow.result(0), SLOW)]),
            Self::Parts(parts) => {
                seeds.insert(parts.number, BOTH);
                seeds.extend(parts.quotients.iter().map(|op| (op.result(0), SLOW)));
                seeds.extend(parts.remainders.iter().map(|op| (op.result(0), FAST)));
            }
        }
        let mut sources = seeds.clone();
        // Once for each loop that carries sources to others, and once more.
        loop {
            let mut changed = false;
            let mut add = |sources: &mut FastMap<Value<'c>, Sources>, value: Value<'c>, more: Sources| {
                if more == 0 || seeds.contains_key(&value) {
                    return;
                }
                let known = sources.entry(value).or_insert(0);
                changed |= *known | more != *known;
                *known |= more;
            };
            kernel.walk(&mut |op| {
                let of =
                    |sources: &FastMap<Value<'c>, Sources>, value| sources.get(&value).copied().unwrap_or(0);
                let all = op.operands().fold(0, |all, value| all | of(&sources, value));
                if let Some(body) = ForOp::cast(op).and_then(ForOp::body) {
                    let bounds = (0..3).fold(0, |all, i| all | of(&sources, op.operand(i)));
                    for (i, arg) in body.args().enumerate() {
                        let first = if i == 0 { 0 } else { of(&sources, op.operand(2 + i)) };
                        add(&mut sources, arg, bounds | first);
                    }
                    for (i, result) in op.results().enumerate() {
                        let first = of(&sources, op.operand(3 + i));
                        add(&mut sources, result, bounds | first);
                    }
                } else if let Some(around) = op.parent().filter(|_| YieldOp::cast(op).is_some()) {
                    let body = ForOp::cast(around).and_then(ForOp::body);
                    for (i, value) in op.operands().enumerate() {
                        let given = of(&sources, value);
                        add(&mut sources, around.result(i), given);
                        if let Some(body) = body {
                            add(&mut sources, body.arg(1 + i), given);
                        }
                    }
                } else if IfOp::cast(op).is_none() {
                    for result in op.results() {
                        add(&mut sources, result, all);
                    }
                }
                Walk::Advance
            });
            if !changed {
                return sources;
            }
        }
    }

    /// Numbers them anew.
    fn renumber(self) -> PassResult {
        match self {
            Self::Grid([x, y]) => {
                let first = if x.is_before_in_block(y) { x } else { y };
                let mut rewriter = IrRewriter::new(first.context());
                rewriter.set_before(first);
                let mut numbers = Numbers { ty: x.result(0).ty(), loc: first.loc(), rewriter };
                let [fast, slow] = [x, y].map(|id| numbers.rewriter.clone_op(id).result(0));
                let (across, rows) = (numbers.programs(x)?, numbers.programs(y)?);
                let new = numbers.grouped(slow, fast, across, rows, true)?;
                x.result(0).replace_all_uses_with(new.fast);
                y.result(0).replace_all_uses_with(new.slow);
                x.erase();
                y.erase();
                Ok(())
            }
            Self::Parts(parts) => parts.renumber(),
        }
    }
}

impl<'c> Parts<'c> {
    /// What divides `number`, which `tiles` counts if that is a loop.
    fn of(number: Value<'c>, tiles: Option<ForOp<'c>>) -> Option<Self> {
        let divides = |op: Op<'c>| op.operand(0) == number && op.operand(1) != number;
        let users: Vec<Op<'c>> = number.uses().map(|(user, _)| user).collect();
        let quotient = |op: &&Op<'c>| is_one_of!(op, DivSIOp | DivUIOp) && divides(**op);
        let divisor = users.iter().find(quotient)?.operand(1);
        let by = |op: &&Op<'c>| divides(**op) && op.operand(1) == divisor;
        let quotients: Vec<_> = users.iter().filter(quotient).filter(by).copied().collect();
        let is_remainder = |op: &&Op<'c>| is_one_of!(op, RemSIOp | RemUIOp);
        let remainders: Vec<_> = users.iter().filter(is_remainder).filter(by).copied().collect();
        if remainders.is_empty() {
            return None;
        }
        let block = match tiles {
            Some(tiles) => tiles.body()?,
            None => number.def_op()?.block()?,
        };
        let made = divisor.def_op();
        let after = match made.filter(|made| made.block() == Some(block)) {
            // Within the loop, in some other block: who knows when.
            None if made.is_some_and(|made| in_block(made, block).is_some()) => return None,
            None => number.def_op(),
            Some(made) => match number.def_op() {
                Some(def) if made.is_before_in_block(def) => Some(def),
                _ => Some(made),
            },
        };
        let is_behind = |user: &Op<'c>| {
            let place = in_block(*user, block);
            place.is_some_and(|place| after.is_none_or(|after| after.is_before_in_block(place)))
        };
        users.iter().all(is_behind).then_some(Self { number, divisor, quotients, remainders, after, tiles })
    }

    fn renumber(self) -> PassResult {
        let Self { number, divisor, .. } = self;
        let at = self.quotients[0];
        let users: Vec<(Op<'c>, usize)> = number.uses().collect();
        let mut rewriter = IrRewriter::new(at.context());
        match (self.after, number.arg_block()) {
            (Some(after), _) => rewriter.set_after(after),
            (None, Some(block)) => rewriter.set_start(block),
            (None, None) => return Ok(()),
        }
        let mut numbers = Numbers { ty: number.ty(), loc: at.loc(), rewriter };
        let total = match self.tiles {
            Some(tiles) => tiles.upper(),
            None => {
                let mut id = number.def_op();
                while let Some(wide) = id.filter(|op| GetProgramIdOp::cast(*op).is_none()) {
                    id = wide.operand(0).def_op();
                }
                let Some(id) = id else { return Ok(()) };
                let programs = numbers.programs(id)?;
                if number.ty() == programs.ty() {
                    programs
                } else {
                    numbers.op("arith.extui", &[programs])?
                }
            }
        };
        let [slow, fast] = [at, self.remainders[0]].map(|op| numbers.rewriter.clone_op(op).result(0));
        // Rows of tiles that are all there; of others the numbers stay.
        let rows = numbers.op("arith.divui", &[total, divisor])?;
        let new = numbers.grouped(slow, fast, divisor, rows, false)?;
        let parts = [(&self.quotients, new.slow), (&self.remainders, new.fast)];
        for (ops, value) in parts {
            for op in ops {
                op.result(0).replace_all_uses_with(value);
            }
        }
        let is_part = |op: &Op<'c>| self.quotients.contains(op) || self.remainders.contains(op);
        let others: Vec<_> = users.into_iter().filter(|(user, _)| !is_part(user)).collect();
        if !others.is_empty() {
            let before = numbers.op("arith.muli", &[new.slow, divisor])?;
            let new = numbers.op("arith.addi", &[before, new.fast])?;
            others.into_iter().for_each(|(user, i)| user.set_operand(i, new));
        }
        self.quotients.iter().chain(&self.remainders).for_each(|op| op.erase());
        Ok(())
    }
}

/// The numbers of a tile.
struct Numbered<'c> {
    slow: Value<'c>,
    fast: Value<'c>,
}

/// Makes arithmetic on numbers of one type.
struct Numbers<'c> {
    rewriter: IrRewriter<'c>,
    loc: Loc<'c>,
    ty: Type<'c>,
}

impl<'c> Numbers<'c> {
    fn op(&mut self, name: &str, operands: &[Value<'c>]) -> Result<Value<'c>, Reported> {
        self.made(name, operands, self.ty)
    }

    fn made(&mut self, name: &str, operands: &[Value<'c>], ty: Type<'c>) -> Result<Value<'c>, Reported> {
        Ok(self.rewriter.generic(name, self.loc, operands, &[ty], &[])?.result(0))
    }

    fn compare(&mut self, predicate: i64, a: Value<'c>, b: Value<'c>) -> Result<Value<'c>, Reported> {
        compare(&mut self.rewriter, self.loc, predicate, a, b)
    }

    fn number(&mut self, value: i64) -> Result<Value<'c>, Reported> {
        let attrs = [("value", Attr::int_of(self.ty, value))];
        Ok(self.rewriter.generic("arith.constant", self.loc, &[], &[self.ty], &attrs)?.result(0))
    }

    /// How many programs there are along the dimension of which `id` is the number of one.
    fn programs(&mut self, id: Op<'c>) -> Result<Value<'c>, Reported> {
        let axis = id.attr("axis").map(|axis| ("axis", axis));
        let attrs: Vec<_> = axis.into_iter().collect();
        let ty = [Type::int(id.context(), 32)];
        Ok(self.rewriter.generic("tt.get_num_programs", self.loc, &[], &ty, &attrs)?.result(0))
    }

    /// The tile that is computed in the place of the one with the numbers `slow` and `fast`, of `across` in each of `rows`: rows are taken
    /// together by the largest powers of two that they are a sum of, [`GROUP`] at most, and counted within those first. Numbers beyond
    /// `rows`, which `all` says that there are none of, stay as they are.
    fn grouped(
        &mut self,
        slow: Value<'c>,
        fast: Value<'c>,
        across: Value<'c>,
        rows: Value<'c>,
        all: bool,
    ) -> Result<Numbered<'c>, Reported> {
        // The highest bit in which `slow` is less than `rows` is the size of the group.
        let other = self.op("arith.xori", &[slow, rows])?;
        let zeros = self.op("math.ctlz", &[other])?;
        let last = self.number(i64::from(self.ty.int_bits().unwrap_or(32)) - 1)?;
        let bit = self.op("arith.subi", &[last, zeros])?;
        let most = self.number(i64::from(GROUP.ilog2()))?;
        let bits = self.op("arith.minui", &[bit, most])?;
        let few = self.number(i64::from(FEW))?;
        let zero = self.number(0)?;
        let mut condition = self.compare(cmpi::UGT, across, few)?;
        if !all {
            let inside = self.compare(cmpi::ULT, slow, rows)?;
            condition = self.made("arith.andi", &[condition, inside], condition.ty())?;
        }
        let bits = self.op("arith.select", &[condition, bits, zero])?;
        let one = self.number(1)?;
        let size = self.op("arith.shli", &[one, bits])?;
        let low = self.op("arith.subi", &[size, one])?;
        let within = self.op("arith.andi", &[slow, low])?;
        // So it is seen to be no less than zero.
        let high = self.op("arith.subi", &[zero, size])?;
        let first = self.op("arith.andi", &[slow, high])?;
        let before = self.op("arith.muli", &[within, across])?;
        let place = self.op("arith.addi", &[before, fast])?;
        let row = self.op("arith.andi", &[place, low])?;
        Ok(Numbered {
            slow: self.op("arith.addi", &[first, row])?,
            fast: self.op("arith.shrui", &[place, bits])?,
        })
    }
}
