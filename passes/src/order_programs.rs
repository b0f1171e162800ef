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

use crate::ir_util::{Scalars, cmpi, compare, in_block, is_alone, is_dot, is_quiet, takes_turns};
use mlir_host::asm::Reported;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Op, Type, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use mlir_host::rewrite::IrRewriter;
use mlir_host::upstream::{DivSIOp, DivUIOp, ExtSIOp, ExtUIOp, ForOp, IfOp, RemSIOp, RemUIOp, YieldOp};
use ttopt_dialect::interfaces::Dot;
use ttopt_dialect::tt::enums::ProgramDim;
use ttopt_dialect::tt::ops::{FuncOp, GetProgramIdOp, MakeTensorDescOp};

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

/// Of which of the numbers of [`Tiles`] a value is computed.
type Sources = u8;
const SLOW: Sources = 1;
const FAST: Sources = 2;
/// Of both, in a way of its own.
const BOTH: Sources = 4;

/// What is known of the sources of values.
#[derive(Default)]
struct Known<'c> {
    /// Those of the numbers, which do not change.
    seeds: FastMap<Value<'c>, Sources>,
    others: FastMap<Value<'c>, Sources>,
    /// Whether anything was added.
    changed: bool,
}

impl<'c> Known<'c> {
    fn of(&self, value: Value<'c>) -> Sources {
        self.seeds.get(&value).or_else(|| self.others.get(&value)).copied().unwrap_or(0)
    }

    fn add(&mut self, value: Value<'c>, more: Sources) {
        let before = self.of(value);
        if before | more != before && !self.seeds.contains_key(&value) {
            self.others.insert(value, before | more);
            self.changed = true;
        }
    }

    /// Adds what `op` gives on.
    fn visit(&mut self, op: Op<'c>) {
        let around = op.parent().filter(|_| YieldOp::cast(op).is_some());
        if let Some(body) = ForOp::cast(op).and_then(ForOp::body) {
            let bounds = (0..3).fold(0, |all, i| all | self.of(op.operand(i)));
            body.args().take(1).for_each(|number| self.add(number, bounds));
            for (i, (arg, result)) in body.args().skip(1).zip(op.results()).enumerate() {
                let given = bounds | self.of(op.operand(3 + i));
                self.add(arg, given);
                self.add(result, given);
            }
        } else if let Some(around) = around {
            let body = ForOp::cast(around).and_then(ForOp::body);
            for (i, value) in op.operands().enumerate() {
                let given = self.of(value);
                self.add(around.result(i), given);
                body.into_iter().for_each(|body| self.add(body.arg(1 + i), given));
            }
        } else if IfOp::cast(op).is_none() {
            let all = op.operands().fold(0, |all, value| all | self.of(value));
            op.results().for_each(|result| self.add(result, all));
        }
    }
}

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
    counted: Counted<'c>,
}

/// What the number counts.
#[derive(Clone, Copy)]
enum Counted<'c> {
    /// Programs: the operation that gives the number, which may be widened behind it.
    Programs(Op<'c>),
    /// What programs take turns at in a loop.
    Tiles(ForOp<'c>),
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
            let number = wide.unwrap_or(id).result(0);
            all.extend(Parts::of(number, Counted::Programs(id)).map(Self::Parts));
        }
        // A loop over tiles that all programs take turns at. What a program does before and behind it could be for the same tiles.
        let is_all = |tiles: &ForOp<'c>| {
            let done = kernel.walk(&mut |op| {
                if op == tiles.op() {
                    Walk::Skip
                } else if is_quiet(op) || MakeTensorDescOp::cast(op).is_some() {
                    Walk::Advance
                } else {
                    Walk::Stop
                }
            });
            tiles.op().num_results() == 0 && done != Walk::Stop
        };
        for tiles in loops.into_iter().filter(|tiles| takes_turns(*tiles) && is_all(tiles)) {
            let parts =
                tiles.induction_variable().and_then(|number| Parts::of(number, Counted::Tiles(tiles)));
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
        let known = self.sources(kernel);
        let of = |value: Value<'c>| known.of(value);
        let tiles = match self {
            Self::Parts(Parts { counted: Counted::Tiles(tiles), .. }) => Some(tiles.op()),
            _ => None,
        };
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
    fn sources(&self, kernel: Op<'c>) -> Known<'c> {
        let mut known = Known::default();
        match self {
            Self::Grid([fast, slow]) => known.seeds.extend([(fast.result(0), FAST), (slow.result(0), SLOW)]),
            Self::Parts(parts) => {
                known.seeds.insert(parts.number, BOTH);
                known.seeds.extend(parts.quotients.iter().map(|op| (op.result(0), SLOW)));
                known.seeds.extend(parts.remainders.iter().map(|op| (op.result(0), FAST)));
            }
        }
        // Once for each loop that carries sources to others, and once more.
        loop {
            known.changed = false;
            kernel.walk(&mut |op| {
                known.visit(op);
                Walk::Advance
            });
            if !known.changed {
                return known;
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
                let mut scalars = Scalars { ty: x.result(0).ty(), loc: first.loc(), rewriter: &mut rewriter };
                let [fast, slow] = [x, y].map(|id| scalars.rewriter.clone_op(id).result(0));
                let (across, rows) = (programs(&mut scalars, x)?, programs(&mut scalars, y)?);
                let new = grouped(&mut scalars, [slow, fast], across, rows, true)?;
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
    /// What divides `number`.
    fn of(number: Value<'c>, counted: Counted<'c>) -> Option<Self> {
        // Of an index nobody says how many bits it has.
        number.ty().int_bits()?;
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
        let block = match counted {
            Counted::Tiles(tiles) => tiles.body()?,
            Counted::Programs(_) => number.def_op()?.block()?,
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
        users.iter().all(is_behind).then_some(Self { number, divisor, quotients, remainders, after, counted })
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
        let mut scalars = Scalars { ty: number.ty(), loc: at.loc(), rewriter: &mut rewriter };
        let total = match self.counted {
            Counted::Tiles(tiles) => tiles.upper(),
            Counted::Programs(id) => {
                let programs = programs(&mut scalars, id)?;
                if number.ty() == programs.ty() {
                    programs
                } else {
                    scalars.op("arith.extui", &[programs])?
                }
            }
        };
        let [slow, fast] = [at, self.remainders[0]].map(|op| scalars.rewriter.clone_op(op).result(0));
        // Rows of tiles that are all there; of others the numbers stay.
        let rows = scalars.op("arith.divui", &[total, divisor])?;
        let new = grouped(&mut scalars, [slow, fast], divisor, rows, false)?;
        let parts = [(&self.quotients, new.slow), (&self.remainders, new.fast)];
        for (ops, value) in parts {
            for op in ops {
                op.result(0).replace_all_uses_with(value);
            }
        }
        let is_part = |op: &Op<'c>| self.quotients.contains(op) || self.remainders.contains(op);
        let others: Vec<_> = users.into_iter().filter(|(user, _)| !is_part(user)).collect();
        if !others.is_empty() {
            let before = scalars.op("arith.muli", &[new.slow, divisor])?;
            let new = scalars.op("arith.addi", &[before, new.fast])?;
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

/// How many programs there are along the dimension of which `id` is the number of one.
fn programs<'c>(scalars: &mut Scalars<'_, 'c>, id: Op<'c>) -> Result<Value<'c>, Reported> {
    let attrs: Vec<_> = id.attr("axis").map(|axis| ("axis", axis)).into_iter().collect();
    let ty = [Type::int(id.context(), 32)];
    Ok(scalars.rewriter.generic("tt.get_num_programs", scalars.loc, &[], &ty, &attrs)?.result(0))
}

/// The tile that is computed in the place of the one with the numbers `slow` and `fast`, of `across` in each of `rows`: rows are taken
/// together by the largest powers of two that they are a sum of, [`GROUP`] at most, and counted within those first. Numbers beyond
/// `rows`, which `all` says that there are none of, stay as they are.
fn grouped<'c>(
    scalars: &mut Scalars<'_, 'c>,
    [slow, fast]: [Value<'c>; 2],
    across: Value<'c>,
    rows: Value<'c>,
    all: bool,
) -> Result<Numbered<'c>, Reported> {
    // The highest bit in which `slow` is less than `rows` is the size of the group.
    let other = scalars.op("arith.xori", &[slow, rows])?;
    let zeros = scalars.op("math.ctlz", &[other])?;
    let last = scalars.number(i64::from(scalars.ty.int_bits().unwrap_or(32)) - 1)?;
    let bit = scalars.op("arith.subi", &[last, zeros])?;
    let most = scalars.number(i64::from(GROUP.ilog2()))?;
    let bits = scalars.op("arith.minui", &[bit, most])?;
    let few = scalars.number(i64::from(FEW))?;
    let zero = scalars.number(0)?;
    let mut condition = compare(scalars.rewriter, scalars.loc, cmpi::UGT, across, few)?;
    if !all {
        let inside = compare(scalars.rewriter, scalars.loc, cmpi::ULT, slow, rows)?;
        condition = Scalars { ty: condition.ty(), loc: scalars.loc, rewriter: &mut *scalars.rewriter }
            .op("arith.andi", &[condition, inside])?;
    }
    let bits = scalars.op("arith.select", &[condition, bits, zero])?;
    let one = scalars.number(1)?;
    let size = scalars.op("arith.shli", &[one, bits])?;
    let low = scalars.op("arith.subi", &[size, one])?;
    let within = scalars.op("arith.andi", &[slow, low])?;
    // So it is seen to be no less than zero.
    let high = scalars.op("arith.subi", &[zero, size])?;
    let first = scalars.op("arith.andi", &[slow, high])?;
    let before = scalars.op("arith.muli", &[within, across])?;
    let place = scalars.op("arith.addi", &[before, fast])?;
    let row = scalars.op("arith.andi", &[place, low])?;
    Ok(Numbered {
        slow: scalars.op("arith.addi", &[first, row])?,
        fast: scalars.op("arith.shrui", &[place, bits])?,
    })
}
