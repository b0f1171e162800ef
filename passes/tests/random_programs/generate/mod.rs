//! Random programs of the Triton language, each valid by construction: shape operations, arithmetic, casts, accesses
//! to memory by pointers and descriptors, atomics, reductions, scans, gathers, histograms, matrix products, calls,
//! inline assembly, output, loops, branches and blocks.
//!
//! A program reads from one buffer for each element type and writes to others, each store to a part of its own.

mod elementwise;
mod memory;
mod products;
mod regions;
mod shapes;

/// What programs may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All that the front end can write.
    Any,
    /// What has one result, in whatever order threads do their parts: sums of floats are of small integers, indices
    /// are in range, and nothing is overwritten by another thread.
    Exact,
}

/// Tensors have at most so many elements.
pub const LARGEST: usize = 4096;
/// A program stores at most so often.
pub const STORES: usize = 24;
/// Element types that memory has, in the order of the arguments: one buffer to read of each, then one to write.
pub const ELEMENTS: [&str; 6] = ["f32", "f16", "bf16", "i32", "i64", "i8"];

/// A small generator, so that failures can be repeated from their seed.
pub struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// The type of a tensor.
#[derive(Clone, Debug, PartialEq)]
struct Ty {
    shape: Vec<usize>,
    element: &'static str,
}

impl Ty {
    fn new(shape: &[usize], element: &'static str) -> Ty {
        Ty { shape: shape.to_vec(), element }
    }
    fn of(&self, element: &'static str) -> Ty {
        Ty::new(&self.shape, element)
    }
    fn elements(&self) -> usize {
        self.shape.iter().product()
    }
    fn rank(&self) -> usize {
        self.shape.len()
    }
    fn is_float(&self) -> bool {
        !self.element.starts_with('i')
    }
    fn bits(&self) -> usize {
        self.element.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0)
    }
    fn sizes(&self) -> String {
        self.shape.iter().map(|size| format!("{size}x")).collect()
    }
    fn pointers(&self) -> String {
        format!("tensor<{}!tt.ptr<{}>>", self.sizes(), self.element)
    }
}

impl std::fmt::Display for Ty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "tensor<{}{}>", self.sizes(), self.element)
    }
}

struct Program {
    random: Random,
    kind: Kind,
    out: String,
    /// Functions that are called.
    callees: String,
    /// Values that can be used here.
    scope: Vec<(String, Ty)>,
    names: usize,
    /// Operations still to be made.
    budget: usize,
    stores: usize,
}

/// The program of a seed; its function is `f`.
pub fn program(seed: u64, kind: Kind) -> String {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66D);
    let budget = 5 + random.below(60);
    let mut program = Program {
        random,
        kind,
        out: String::new(),
        callees: String::new(),
        scope: Vec::new(),
        names: 0,
        budget,
        stores: 0,
    };
    program.function();
    program.out + &program.callees
}

impl Program {
    fn exact(&self) -> bool {
        self.kind == Kind::Exact
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("%v{}", self.names)
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// A new value, defined by `text` after the equals sign.
    fn def(&mut self, ty: Ty, text: &str) -> String {
        let name = self.name();
        self.line(&format!("{name} = {text}"));
        self.scope.push((name.clone(), ty));
        name
    }

    fn any(&mut self) -> Option<(String, Ty)> {
        // Young values more often, so that chains get long.
        let n = self.scope.len();
        let from = if self.random.chance(60) { n.saturating_sub(6) } else { 0 };
        let i = from + self.random.below(n - from);
        self.scope.get(i).cloned()
    }

    /// A value of a type, one that there is where possible.
    fn of(&mut self, ty: &Ty) -> String {
        let all: Vec<String> =
            self.scope.iter().filter(|(_, other)| other == ty).map(|(name, _)| name.clone()).collect();
        if all.is_empty() || self.random.chance(5) {
            self.source(ty)
        } else {
            all[self.random.below(all.len())].clone()
        }
    }

    fn shape(&mut self) -> Vec<usize> {
        let rank = self.random.pick(&[1, 1, 2, 2, 2, 3, 4]);
        let sizes: &[usize] = match rank {
            1 => &[2, 16, 64, 128, 256, 1024],
            2 => &[1, 2, 8, 16, 32, 64],
            3 => &[1, 2, 4, 8, 16],
            _ => &[1, 2, 4, 8],
        };
        (0..rank).map(|_| self.random.pick(sizes)).collect()
    }

    fn ty(&mut self) -> Ty {
        let elements = ["f32", "f32", "f16", "i32", "i32", "i32", "bf16", "i64", "i8"];
        Ty { shape: self.shape(), element: self.random.pick(&elements) }
    }

    /// A value of a type, out of nothing or memory.
    fn source(&mut self, ty: &Ty) -> String {
        let number = self.random.below(8);
        match ty.element {
            "i1" => {
                let (a, b) = (self.of(&ty.of("i32")), self.of(&ty.of("i32")));
                self.def(ty.clone(), &format!("arith.cmpi slt, {a}, {b} : {}", ty.of("i32")))
            }
            "i32" if ty.rank() == 1 && ty.elements() > 1 && self.random.chance(50) => {
                let text = format!("tt.make_range {{start = 0 : i32, end = {} : i32}} : {ty}", ty.elements());
                self.def(ty.clone(), &text)
            }
            "i32" if self.random.chance(30) => self.def(ty.clone(), &format!("tt.splat %n : i32 -> {ty}")),
            _ if self.random.chance(60) => self.load(ty),
            _ if ty.is_float() => self.def(ty.clone(), &format!("arith.constant dense<{number}.0> : {ty}")),
            _ => self.def(ty.clone(), &format!("arith.constant dense<{number}> : {ty}")),
        }
    }

    fn operations(&mut self, count: usize, depth: usize) {
        for _ in 0..count {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            match self.random.below(33) {
                0 | 1 => {
                    let ty = self.ty();
                    self.source(&ty);
                }
                2..=8 => self.arithmetic(),
                9..=12 => self.reshape(),
                13..=16 => self.along_an_axis(),
                17 => self.dot(),
                18 => self.dot_scaled(),
                19 => self.chained_dots(),
                20 | 21 => self.store(),
                22 => self.atomic(),
                23 => self.descriptor(),
                24 => self.call(),
                25 => self.advancing(depth),
                26 => self.sum_in_a_loop(depth),
                27 => self.guarded(depth),
                28 => self.effect(),
                _ => self.with_regions(depth),
            }
        }
    }

    fn function(&mut self) {
        let argument = |name: String, element: &str| {
            format!("%{name}: !tt.ptr<{element}> {{tt.divisibility = 16 : i32}}")
        };
        let from = ELEMENTS.map(|element| argument(element.to_owned(), element));
        let to = ELEMENTS.map(|element| argument(format!("o_{element}"), element));
        self.line(&format!("tt.func public @f({}, {}, %n: i32, %c: i1) {{", from.join(", "), to.join(", ")));
        self.line(
            "%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32\n%c1l = arith.constant 1 : i64",
        );
        for _ in 0..3 {
            let ty = self.ty();
            self.source(&ty);
        }
        while self.budget > 0 {
            let count = 1 + self.random.below(20);
            self.operations(count, 0);
            if self.random.chance(15) {
                self.blocks();
            }
        }
        for _ in 0..4 {
            self.store();
        }
        self.line("tt.return\n}");
    }
}
