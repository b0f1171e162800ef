//! Random small functions: chains and graphs of arithmetic, casts, reductions, transposes, reshapes and dots between
//! loads and stores whose layouts coalescing could have chosen, with a loop or a branch.

use crate::function::{Block, BlockId, Function, Id, Kind, Node, Step, Ty};
use linear_layout::Encoding;
use linear_layout::encoding::{DotOperand, NvidiaMma};
use linear_layout::target::TargetDesc;
use std::collections::BTreeMap;
use ttopt_passes::machine::{Machine, for_warps};

/// A function grows until it has nearly so many values or groups of values whose layout is open, accesses and pointers
/// apart; the last step may add three.
const OPEN: usize = 8;

/// A small generator, so that a function can be had again from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % n.max(1) as u64) as usize
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

struct Builder {
    random: Random,
    function: Function,
    /// Values that can be used.
    scope: Vec<Id>,
    block: BlockId,
    /// Open values so far.
    open: usize,
    tile: [i64; 2],
    machine: Machine,
}

/// The machine that a function is for.
pub fn machine(function: &Function) -> Machine {
    let target = TargetDesc::parse(function.target).expect("a target");
    Machine {
        num_warps: function.warps,
        threads_per_warp: target.lanes.into(),
        num_ctas: 1,
        target: Some(for_warps(target, function.warps)),
    }
}

/// The function of a seed.
pub fn function(seed: u64) -> Function {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x0BAD_CAFE);
    random.below(2);
    let target = random.pick(&["cuda:90", "cuda:90", "cuda:80", "hip:gfx942"]);
    let tiles = [[32, 32], [32, 64], [64, 32], [64, 64], [128, 32], [128, 64]];
    let tile = random.pick(&tiles);
    // A thread holds 4 to 32 elements of a tile.
    let threads = tile[0] * tile[1] / if target.starts_with("hip") { 64 } else { 32 };
    let fits: Vec<u64> =
        [1, 2, 4, 8].into_iter().filter(|warps| (4..=32).contains(&(threads / *warps as i64))).collect();
    let warps = random.pick(&fits);
    let blocks = vec![Block { parent: None, times: 1.0, trips: None }];
    let function = Function {
        nodes: Vec::new(),
        blocks,
        steps: Vec::new(),
        anchors: BTreeMap::new(),
        arguments: Vec::new(),
        target,
        warps,
    };
    let machine = machine(&function);
    let mut builder = Builder { random, function, scope: Vec::new(), block: 0, open: 0, tile, machine };
    builder.body();
    builder.function
}

impl Builder {
    fn body(&mut self) {
        let tile = self.tile;
        for _ in 0..1 + self.random.below(3) {
            let element = self.element();
            self.load(&Ty::new(&tile, element));
        }
        if self.random.chance(40) {
            let (element, size) = (self.element(), self.random.pick(&tile));
            self.load(&Ty::new(&[size], element));
        }
        let most = 2 + self.random.below(OPEN - 2);
        let (mut loops, mut branches) = (self.random.below(3) == 0, self.random.below(4) == 0);
        while self.open < most {
            match self.random.below(12) {
                0 | 1 if loops && self.open + 3 <= OPEN => {
                    loops = false;
                    self.looped();
                }
                2 if branches && self.open + 3 <= OPEN => {
                    branches = false;
                    self.branch();
                }
                3 if self.function.target.starts_with("cuda") => self.dot(),
                _ => self.operation(),
            }
        }
        let sinks: Vec<Id> = self.scope.iter().copied().filter(|id| self.is_unused(*id)).collect();
        sinks.into_iter().for_each(|id| self.store(id));
    }

    fn is_unused(&self, id: Id) -> bool {
        !self.function.nodes.iter().any(|node| node.operands.contains(&id))
    }

    fn element(&mut self) -> &'static str {
        self.random.pick(&["f32", "f32", "f16", "f16", "bf16"])
    }

    /// A node that no others see.
    fn node(&mut self, kind: Kind, operands: &[Id], ty: Ty) -> Id {
        let id = self.function.nodes.len();
        self.function.nodes.push(Node { kind, operands: operands.to_vec(), ty, block: self.block });
        self.function.steps.push(Step::Node(id));
        id
    }

    /// A node whose layout is open.
    fn open(&mut self, kind: Kind, operands: &[Id], ty: Ty) -> Id {
        self.open += 1;
        let id = self.node(kind, operands, ty);
        self.scope.push(id);
        id
    }

    fn ty(&self, id: Id) -> Ty {
        self.function.nodes[id].ty.clone()
    }

    /// A value, a young one more often.
    fn any(&mut self) -> Id {
        let n = self.scope.len();
        let from = if self.random.chance(60) { n.saturating_sub(3) } else { 0 };
        self.scope[from + self.random.below(n - from)]
    }

    /// A value of a type, another one than `than` where possible.
    fn other(&mut self, ty: &Ty, than: Id) -> Id {
        let fits = |id: &Id| self.function.nodes[*id].ty == *ty && *id != than;
        let all: Vec<Id> = self.scope.iter().copied().filter(fits).collect();
        match all.len() {
            0 if self.block == 0 && self.random.chance(60) => self.load(ty),
            0 => self.node(Kind::Constant, &[], ty.clone()),
            _ => self.random.pick(&all),
        }
    }

    /// Pointers to a tensor of its own, and how it is accessed.
    fn pointers(&mut self, ty: &Ty) -> (Id, Encoding) {
        let bytes = if ty.element == "f32" { 4 } else { 2 };
        // What an access moves at once is what the alignment allows.
        let alignment = self.random.pick(&[16, 16, 16, 16, 8, 4]);
        let argument = self.function.arguments.len();
        self.function.arguments.push((ty.element, alignment));
        let fast = if ty.shape.len() == 2 && self.random.chance(60) { 1 } else { 0 };
        let strides = match (ty.shape.len(), fast) {
            (1, _) => vec![1],
            (_, 1) => vec![ty.shape[1], 1],
            _ => vec![1, ty.shape[0]],
        };
        let id = self.node(Kind::Pointers { argument, strides }, &[], ty.pointers());
        let vector = (alignment / bytes).min(ty.shape[fast] as u64);
        let mut size = vec![1; ty.shape.len()];
        size[fast] = vector;
        let order: Vec<usize> =
            std::iter::once(fast).chain((0..ty.shape.len()).filter(|d| *d != fast)).collect();
        (id, Encoding::Blocked(self.machine.blocked(&ty.shape, &size, &order)))
    }

    fn load(&mut self, ty: &Ty) -> Id {
        let (pointers, layout) = self.pointers(ty);
        self.load_at(pointers, layout, ty)
    }

    fn load_at(&mut self, pointers: Id, layout: Encoding, ty: &Ty) -> Id {
        let id = self.node(Kind::Load, &[pointers], ty.clone());
        self.function.anchors.insert(id, vec![layout]);
        self.scope.push(id);
        id
    }

    fn store(&mut self, value: Id) {
        let ty = self.ty(value);
        let same = |node: &Node| node.kind == Kind::Load && node.ty == ty && node.block == 0;
        let in_place = (0..self.function.nodes.len()).find(|id| same(&self.function.nodes[*id]));
        let (pointers, layout) = match in_place {
            Some(load) if self.random.chance(25) => {
                (self.function.nodes[load].operands[0], self.function.anchors[&load][0].clone())
            }
            _ => self.pointers(&ty),
        };
        let id = self.node(Kind::Store, &[pointers, value], ty);
        self.function.anchors.insert(id, vec![layout]);
    }

    fn operation(&mut self) {
        let x = self.any();
        let ty = self.ty(x);
        match (self.random.below(20), ty.shape.len()) {
            (0..=2, _) => self.unary(x),
            (3..=4, _) => self.cast(x),
            (5..=7, 2) => self.reduce(x),
            (8..=9, 2) => {
                let to = Ty::new(&[ty.shape[1], ty.shape[0]], ty.element);
                _ = self.open(Kind::Trans, &[x], to);
            }
            (10, 2) => {
                let to = if self.random.chance(50) {
                    [ty.shape[0] * 2, ty.shape[1] / 2]
                } else {
                    [ty.shape[0] / 2, ty.shape[1] * 2]
                };
                _ = self.open(Kind::Reshape, &[x], Ty::new(&to, ty.element));
            }
            (11..=12, _) => self.select(x),
            (5..=10, _) => self.spread(x),
            _ => _ = self.binary(x),
        }
    }

    fn unary(&mut self, x: Id) {
        let op = self.random.pick(&["math.exp", "math.exp2", "math.absf", "arith.negf"]);
        let ty = self.ty(x);
        self.open(Kind::Elementwise(op), &[x], ty);
    }

    fn binary(&mut self, x: Id) -> Id {
        let ty = self.ty(x);
        let y = self.other(&ty, x);
        let op =
            self.random.pick(&["arith.addf", "arith.mulf", "arith.subf", "arith.maximumf", "arith.divf"]);
        self.open(Kind::Elementwise(op), &[x, y], ty)
    }

    fn cast(&mut self, x: Id) {
        let ty = self.ty(x);
        let (op, to) = match ty.element {
            "f32" => ("arith.truncf", self.random.pick(&["f16", "bf16"])),
            _ => ("arith.extf", "f32"),
        };
        self.open(Kind::Cast(op), &[x], ty.of(to));
    }

    fn select(&mut self, x: Id) {
        let ty = self.ty(x);
        let (y, z) = (self.other(&ty, x), self.other(&ty, x));
        let less = self.node(Kind::Compare, &[x, y], ty.of("i1"));
        self.open(Kind::Select, &[less, x, z], ty);
    }

    fn reduce(&mut self, x: Id) {
        let ty = self.ty(x);
        let axis = self.random.below(2);
        let op = self.random.pick(&["arith.addf", "arith.maximumf"]);
        let kind = Kind::Reduce { axis, op };
        let vector = self.open(kind, &[x], Ty::new(&[ty.shape[1 - axis]], ty.element));
        if self.random.chance(60) {
            // As in a softmax.
            let whole = self.repeat(vector, axis, &ty.shape);
            let op = self.random.pick(&["arith.subf", "arith.mulf", "arith.divf"]);
            self.open(Kind::Elementwise(op), &[x, whole], ty);
        }
    }

    /// A vector along the rows or columns of a matrix.
    fn repeat(&mut self, vector: Id, axis: usize, shape: &[i64]) -> Id {
        let ty = self.ty(vector);
        let mut thin = shape.to_vec();
        thin[axis] = 1;
        let thin = self.node(Kind::ExpandDims(axis), &[vector], Ty::new(&thin, ty.element));
        self.open += 1;
        self.node(Kind::Broadcast, &[thin], Ty::new(shape, ty.element))
    }

    /// Combines a vector with a matrix.
    fn spread(&mut self, vector: Id) {
        let ty = self.ty(vector);
        let fits = |id: &Id| {
            let of = &self.function.nodes[*id].ty;
            of.shape.len() == 2 && of.element == ty.element && of.shape.contains(&ty.shape[0])
        };
        let all: Vec<Id> = self.scope.iter().copied().filter(fits).collect();
        let Some(matrix) = (!all.is_empty()).then(|| self.random.pick(&all)) else {
            return self.cast(vector);
        };
        let whole = self.ty(matrix);
        let axis = usize::from(whole.shape[0] == ty.shape[0]);
        let repeated = self.repeat(vector, axis, &whole.shape);
        self.open(Kind::Elementwise("arith.mulf"), &[matrix, repeated], whole);
    }

    fn dot(&mut self) {
        let (tile, k) = (self.tile, self.random.pick(&[16, 32]));
        let first = Ty::new(&[tile[0], k], "f16");
        let second = Ty::new(&[k, tile[1]], "f16");
        let warps = self.function.warps;
        let warps_per_cta =
            if self.random.chance(50) || warps == 1 { vec![warps, 1] } else { vec![warps / 2, 2] };
        let result = Encoding::NvidiaMma(NvidiaMma {
            version_major: 2,
            version_minor: 0,
            warps_per_cta,
            cga: Vec::new(),
            instr_shape: vec![16, 8],
        });
        let operand = |op_idx| {
            Encoding::DotOperand(DotOperand { op_idx, parent: Box::new(result.clone()), k_width: 2 })
        };
        let mut a = self.load(&first);
        if self.random.chance(30) {
            a = self.open(Kind::Elementwise("arith.mulf"), &[a, a], first);
        }
        let b = self.load(&second);
        let ty = Ty::new(&tile, "f32");
        let zero = self.node(Kind::Constant, &[], ty.clone());
        let id = self.open(Kind::Dot, &[a, b, zero], ty);
        let anchors = vec![result.clone(), operand(0), operand(1)];
        self.function.anchors.insert(id, anchors);
    }

    fn enter(&mut self, times: f64, trips: Option<Option<u64>>) -> BlockId {
        self.function.blocks.push(Block { parent: Some(self.block), times, trips });
        self.block = self.function.blocks.len() - 1;
        self.block
    }

    fn leave(&mut self) {
        self.block = self.function.blocks[self.block].parent.unwrap_or(0);
    }

    /// A loop that loads a tile in each iteration and adds up something of it.
    fn looped(&mut self) {
        let (tile, element) = (self.tile, self.element());
        let loaded = Ty::new(&tile, element);
        let (pointers, layout) = self.pointers(&loaded);
        let axis = self.random.chance(35).then(|| self.random.below(2));
        let sum_ty = axis.map_or(loaded.clone(), |axis| Ty::new(&[tile[1 - axis]], element));
        let same = |id: &Id| self.function.nodes[*id].ty == sum_ty;
        let all: Vec<Id> = self.scope.iter().copied().filter(same).collect();
        let first = match all.len() {
            0 => self.node(Kind::Constant, &[], sum_ty.clone()),
            _ => self.random.pick(&all),
        };
        let trips = self.random.pick(&[None, Some(4), Some(32)]);
        let body = self.enter(trips.map_or(16.0, |trips| trips as f64), Some(trips));
        self.function.steps.push(Step::Loop(body));
        let outside = self.scope.len();
        let sum = self.open(Kind::Carried, &[first], sum_ty.clone());
        let step = self.node(Kind::Step(tile[0] * tile[1]), &[], loaded.of("i32"));
        let at = self.node(Kind::AddPtr, &[pointers, step], loaded.pointers());
        let mut part = self.load_at(at, layout, &loaded);
        if self.random.chance(50) {
            self.unary(part);
            part = self.scope[self.scope.len() - 1];
        }
        if let Some(axis) = axis {
            part = self.open(Kind::Reduce { axis, op: "arith.addf" }, &[part], sum_ty.clone());
        } else if self.random.chance(30) {
            part = self.binary(part);
        }
        let next = self.open(Kind::Elementwise("arith.addf"), &[sum, part], sum_ty.clone());
        self.scope.truncate(outside);
        self.node(Kind::Yield, &[sum, next], sum_ty.clone());
        self.function.steps.push(Step::EndLoop(body));
        self.leave();
        let result = self.node(Kind::LoopResult, &[sum], sum_ty);
        self.scope.push(result);
    }

    /// A branch that computes something of a value on one side, and takes another or computes something else on the
    /// other.
    fn branch(&mut self) {
        let x = self.any();
        let ty = self.ty(x);
        let y = self.other(&ty, x);
        let outside = self.scope.len();
        let yes = self.enter(0.5, None);
        self.function.steps.push(Step::Then(yes));
        let first = self.open(Kind::Elementwise("arith.mulf"), &[x, y], ty.clone());
        self.scope.truncate(outside);
        self.leave();
        let no = self.enter(0.5, None);
        self.function.steps.push(Step::Else(no));
        let second = match self.random.below(3) {
            0 => x,
            1 => self.open(Kind::Elementwise("math.exp"), &[y], ty.clone()),
            _ => self.open(Kind::Elementwise("arith.negf"), &[x], ty.clone()),
        };
        self.scope.truncate(outside);
        self.leave();
        self.function.steps.push(Step::EndIf(yes, no));
        self.open(Kind::IfResult, &[first, second], ty);
    }
}
