//! Random programs of the Triton language: shape operations, arithmetic,
//! accesses to memory, reductions, scans, gathers, matrix products, loops,
//! branches and blocks, each valid by construction.

use std::fmt::Write;

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
        self.element.starts_with('f')
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

/// Tensors have at most so many elements.
const LARGEST: usize = 4096;

struct Program {
    random: Random,
    out: String,
    /// Values that can be used here.
    scope: Vec<(String, Ty)>,
    names: usize,
    /// Operations still to be made.
    budget: usize,
}

/// The program of a seed.
pub fn program(seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66D);
    let budget = 5 + random.below(60);
    let mut program = Program { random, out: String::new(), scope: Vec::new(), names: 0, budget };
    program.function();
    program.out
}

impl Program {
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
        let rank = self.random.pick(&[1, 1, 2, 2, 2, 3]);
        let sizes: &[usize] = match rank {
            1 => &[2, 16, 64, 128, 256, 1024],
            2 => &[1, 2, 8, 16, 32, 64],
            _ => &[1, 2, 4, 8, 16],
        };
        (0..rank).map(|_| self.random.pick(sizes)).collect()
    }

    fn ty(&mut self) -> Ty {
        Ty { shape: self.shape(), element: self.random.pick(&["f32", "f32", "f16", "i32", "i32"]) }
    }

    /// A value of a type, out of nothing or memory.
    fn source(&mut self, ty: &Ty) -> String {
        let number = self.random.below(8);
        match ty.element {
            "i1" => {
                let integer = self.of(&ty.of("i32"));
                self.def(ty.clone(), &format!("arith.cmpi slt, {integer}, {integer} : {}", ty.of("i32")))
            }
            "i32" if ty.rank() == 1 && ty.elements() > 1 && self.random.chance(50) => {
                let text = format!("tt.make_range {{start = 0 : i32, end = {} : i32}} : {ty}", ty.elements());
                self.def(ty.clone(), &text)
            }
            "i32" if self.random.chance(30) => self.def(ty.clone(), &format!("tt.splat %n : i32 -> {ty}")),
            _ if ty.element != "i1" && self.random.chance(50) => self.load(ty),
            "i32" => self.def(ty.clone(), &format!("arith.constant dense<{number}> : {ty}")),
            _ => self.def(ty.clone(), &format!("arith.constant dense<{number}.0> : {ty}")),
        }
    }

    /// Offsets that run along the dimensions in some order.
    fn offsets(&mut self, shape: &[usize]) -> String {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        if self.random.chance(30) {
            order.reverse();
        }
        let whole = Ty::new(shape, "i32");
        let (mut stride, mut sum) = (1, None);
        for &d in order.iter().rev() {
            let size = shape[d];
            let flat = Ty::new(&[size], "i32");
            let mut at = if size > 1 {
                self.def(
                    flat.clone(),
                    &format!("tt.make_range {{start = 0 : i32, end = {size} : i32}} : {flat}"),
                )
            } else {
                self.def(flat.clone(), &format!("arith.constant dense<0> : {flat}"))
            };
            let step = self.def(flat.clone(), &format!("arith.constant dense<{stride}> : {flat}"));
            at = self.def(flat.clone(), &format!("arith.muli {at}, {step} : {flat}"));
            let mut ty = flat;
            for axis in (0..shape.len()).filter(|axis| *axis != d) {
                let mut larger = ty.clone();
                larger.shape.insert(axis, 1);
                at = self.def(
                    larger.clone(),
                    &format!("tt.expand_dims {at} {{axis = {axis} : i32}} : {ty} -> {larger}"),
                );
                ty = larger;
            }
            if ty != whole {
                at = self.def(whole.clone(), &format!("tt.broadcast {at} : {ty} -> {whole}"));
            }
            sum = Some(match sum {
                Some(sum) => self.def(whole.clone(), &format!("arith.addi {sum}, {at} : {whole}")),
                None => at,
            });
            stride *= size;
        }
        sum.unwrap_or_default()
    }

    fn address(&mut self, ty: &Ty) -> String {
        let offsets_ty = ty.of("i32");
        let offsets = if self.random.chance(70) { self.offsets(&ty.shape) } else { self.of(&offsets_ty) };
        let base = format!("%{}", ty.element);
        let (splat, at) = (self.name(), self.name());
        let pointers = ty.pointers();
        self.line(&format!("{splat} = tt.splat {base} : !tt.ptr<{}> -> {pointers}", ty.element));
        self.line(&format!("{at} = tt.addptr {splat}, {offsets} : {pointers}, {offsets_ty}"));
        at
    }

    fn load(&mut self, ty: &Ty) -> String {
        let at = self.address(ty);
        let mask =
            if self.random.chance(30) { format!(", {}", self.of(&ty.of("i1"))) } else { String::new() };
        self.def(ty.clone(), &format!("tt.load {at}{mask} : {}", ty.pointers()))
    }

    fn store(&mut self) {
        let Some((value, ty)) = self.any().filter(|(_, ty)| ty.element != "i1") else { return };
        let at = self.address(&ty);
        self.line(&format!("tt.store {at}, {value} : {}", ty.pointers()));
    }

    fn arithmetic(&mut self) {
        let Some((a, ty)) = self.any() else { return };
        let b = self.of(&ty);
        match ty.element {
            "i1" => {
                let chosen = ty.of(self.random.pick(&["f32", "i32"]));
                let (x, y) = (self.of(&chosen), self.of(&chosen));
                self.def(chosen.clone(), &format!("arith.select {a}, {x}, {y} : {ty}, {chosen}"));
            }
            "i32" if self.random.chance(25) => {
                let to = ty.of("f32");
                self.def(to.clone(), &format!("arith.sitofp {a} : {ty} to {to}"));
            }
            "i32" if self.random.chance(20) => {
                self.def(ty.of("i1"), &format!("arith.cmpi slt, {a}, {b} : {ty}"));
            }
            "i32" => {
                let op = self.random.pick(&["addi", "muli", "xori", "maxsi", "divsi"]);
                self.def(ty.clone(), &format!("arith.{op} {a}, {b} : {ty}"));
            }
            "f32" if self.random.chance(20) => {
                let to = ty.of("f16");
                self.def(to.clone(), &format!("arith.truncf {a} : {ty} to {to}"));
            }
            "f16" if self.random.chance(40) => {
                let to = ty.of("f32");
                self.def(to.clone(), &format!("arith.extf {a} : {ty} to {to}"));
            }
            "f32" if self.random.chance(15) => {
                self.def(ty.clone(), &format!("math.exp {a} : {ty}"));
            }
            _ => {
                let op = self.random.pick(&["addf", "mulf", "subf", "maximumf"]);
                self.def(ty.clone(), &format!("arith.{op} {a}, {b} : {ty}"));
            }
        }
    }

    fn reshape(&mut self) {
        let Some((value, ty)) = self.any() else { return };
        let mut to = ty.clone();
        match self.random.below(7) {
            0 if ty.rank() < 4 => {
                let axis = self.random.below(ty.rank() + 1);
                to.shape.insert(axis, 1);
                self.def(
                    to.clone(),
                    &format!("tt.expand_dims {value} {{axis = {axis} : i32}} : {ty} -> {to}"),
                );
            }
            1 => {
                for size in &mut to.shape {
                    if *size == 1 {
                        *size = self.random.pick(&[1, 2, 8, 32]);
                    }
                }
                if to != ty && to.elements() <= LARGEST {
                    self.def(to.clone(), &format!("tt.broadcast {value} : {ty} -> {to}"));
                }
            }
            2 if ty.rank() > 1 => {
                let mut order: Vec<usize> = (0..ty.rank()).collect();
                order.rotate_left(1 + self.random.below(ty.rank() - 1));
                to.shape = order.iter().map(|d| ty.shape[*d]).collect();
                let order: Vec<String> = order.iter().map(usize::to_string).collect();
                let order = order.join(", ");
                self.def(
                    to.clone(),
                    &format!("tt.trans {value} {{order = array<i32: {order}>}} : {ty} -> {to}"),
                );
            }
            3 => {
                let mut left = ty.elements();
                to.shape.clear();
                while left > 1 && to.shape.len() < 2 {
                    let size = 1 << self.random.below(left.ilog2() as usize + 1);
                    to.shape.push(size);
                    left /= size;
                }
                to.shape.push(left);
                let any = if self.random.chance(20) { " allow_reorder" } else { "" };
                self.def(to.clone(), &format!("tt.reshape {value}{any} : {ty} -> {to}"));
            }
            4 if ty.elements() * 2 <= LARGEST && ty.rank() < 4 => {
                let other = self.of(&ty);
                to.shape.push(2);
                self.def(to.clone(), &format!("tt.join {value}, {other} : {ty} -> {to}"));
            }
            5 if ty.rank() > 1 && ty.shape.last() == Some(&2) => {
                to.shape.pop();
                let (a, b) = (self.name(), self.name());
                self.line(&format!("{a}, {b} = tt.split {value} : {ty} -> {to}"));
                self.scope.push((a, to.clone()));
                self.scope.push((b, to));
            }
            6 if ty.rank() == 1 && ty.elements() * 2 <= LARGEST => {
                let other = self.of(&ty);
                to.shape[0] *= 2;
                self.def(to.clone(), &format!("tt.cat {value}, {other} : {ty} -> {to}"));
            }
            _ => {}
        }
    }

    /// A region that combines two elements, for reductions and scans.
    fn combiner(ty: &Ty, end: &str) -> String {
        let element = ty.element;
        let op = if ty.is_float() { "arith.addf" } else { "arith.addi" };
        format!(
            "({{\n^bb0(%x: {element}, %y: {element}):\n%z = {op} %x, %y : {element}\n{end} %z : {element}\n}})"
        )
    }

    fn along_an_axis(&mut self) {
        let Some((value, ty)) = self.any().filter(|(_, ty)| ty.element != "i1") else { return };
        let axis = self.random.below(ty.rank());
        match self.random.below(3) {
            0 if ty.rank() > 1 => {
                let mut to = ty.clone();
                to.shape.remove(axis);
                let region = Self::combiner(&ty, "tt.reduce.return");
                self.def(
                    to.clone(),
                    &format!("\"tt.reduce\"({value}) <{{axis = {axis} : i32}}> {region} : ({ty}) -> {to}"),
                );
            }
            0 => {
                let region = Self::combiner(&ty, "tt.reduce.return");
                let (scalar, element) = (self.name(), ty.element);
                self.line(&format!(
                    "{scalar} = \"tt.reduce\"({value}) <{{axis = 0 : i32}}> {region} : ({ty}) -> {element}"
                ));
                self.def(ty.clone(), &format!("tt.splat {scalar} : {element} -> {ty}"));
            }
            1 => {
                let region = Self::combiner(&ty, "tt.scan.return");
                let text = format!(
                    "\"tt.scan\"({value}) <{{axis = {axis} : i32, reverse = false}}> {region} : ({ty}) -> {ty}"
                );
                self.def(ty, &text);
            }
            _ => {
                let places = ty.of("i32");
                let at = self.of(&places);
                self.def(
                    ty.clone(),
                    &format!("tt.gather {value}[{at}] {{axis = {axis} : i32}} : ({ty}, {places}) -> {ty}"),
                );
            }
        }
    }

    fn dot(&mut self) {
        let [m, n, k] = [(); 3].map(|()| self.random.pick(&[16, 16, 32, 64]));
        let (a, b, c) = (Ty::new(&[m, k], "f16"), Ty::new(&[k, n], "f16"), Ty::new(&[m, n], "f32"));
        let (x, y, z) = (self.of(&a), self.of(&b), self.of(&c));
        self.def(c.clone(), &format!("tt.dot {x}, {y}, {z} : {a} * {b} -> {c}"));
    }

    /// Some operations of which only `keep` remain visible.
    fn body(&mut self, depth: usize, keep: &[Ty]) -> Vec<String> {
        let before = self.scope.len();
        let count = 1 + self.random.below(6);
        self.operations(count, depth + 1);
        let kept = keep.iter().map(|ty| self.of(ty)).collect();
        self.scope.truncate(before);
        kept
    }

    fn carried(&mut self) -> Vec<(String, Ty)> {
        (0..1 + self.random.below(3)).filter_map(|_| self.any()).collect()
    }

    fn types(values: &[(String, Ty)]) -> String {
        values.iter().map(|(_, ty)| ty.to_string()).collect::<Vec<_>>().join(", ")
    }

    /// Adds the results of an operation with regions.
    fn results(&mut self, name: &str, values: &[(String, Ty)]) {
        for (i, (_, ty)) in values.iter().enumerate() {
            self.scope.push((format!("{name}#{i}"), ty.clone()));
        }
    }

    fn with_regions(&mut self, depth: usize) {
        let values = self.carried();
        if values.is_empty() || depth > 2 {
            return;
        }
        let tys: Vec<Ty> = values.iter().map(|(_, ty)| ty.clone()).collect();
        let (types, result, n) = (Self::types(&values), self.name(), values.len());
        let args: Vec<String> = values.iter().map(|_| self.name()).collect();
        let bind: Vec<String> =
            args.iter().zip(&values).map(|(arg, (name, _))| format!("{arg} = {name}")).collect();
        let bind = bind.join(", ");
        let outside = self.scope.len();
        let enter = |this: &mut Self| this.scope.extend(args.iter().cloned().zip(tys.iter().cloned()));
        match self.random.below(3) {
            0 => {
                let i = self.name();
                self.line(&format!(
                    "{result}:{n} = scf.for {i} = %c0 to %n step %c1 iter_args({bind}) -> ({types}) : i32 {{"
                ));
                enter(self);
                let last = self.body(depth, &tys);
                self.line(&format!("scf.yield {} : {types}\n}}", last.join(", ")));
            }
            1 => {
                let counter = self.name();
                let next = self.name();
                self.line(&format!(
                    "{result}:{} = scf.while ({bind}, {counter} = %c0) : ({types}, i32) -> ({types}, i32) {{",
                    n + 1
                ));
                enter(self);
                let passed = self.body(depth, &tys);
                let more = self.name();
                self.line(&format!("{more} = arith.cmpi slt, {counter}, %n : i32"));
                self.line(&format!(
                    "scf.condition({more}) {}, {counter} : {types}, i32\n}} do {{",
                    passed.join(", ")
                ));
                let typed: Vec<String> =
                    args.iter().zip(&tys).map(|(arg, ty)| format!("{arg}w: {ty}")).collect();
                self.line(&format!("^bb0({}, {next}: i32):", typed.join(", ")));
                self.scope.truncate(outside);
                self.scope.extend(args.iter().map(|arg| format!("{arg}w")).zip(tys.iter().cloned()));
                let last = self.body(depth, &tys);
                let stepped = self.name();
                self.line(&format!("{stepped} = arith.addi {next}, %c1 : i32"));
                self.line(&format!("scf.yield {}, {stepped} : {types}, i32\n}}", last.join(", ")));
            }
            _ => {
                self.line(&format!("{result}:{n} = scf.if %c -> ({types}) {{"));
                let yes = self.body(depth, &tys);
                self.line(&format!("scf.yield {} : {types}\n}} else {{", yes.join(", ")));
                let no = self.body(depth, &tys);
                self.line(&format!("scf.yield {} : {types}\n}}", no.join(", ")));
            }
        }
        self.scope.truncate(outside);
        self.results(&result, &values);
    }

    fn operations(&mut self, count: usize, depth: usize) {
        for _ in 0..count {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            match self.random.below(20) {
                0 | 1 => {
                    let ty = self.ty();
                    self.source(&ty);
                }
                2..=7 => self.arithmetic(),
                8..=11 => self.reshape(),
                12..=14 => self.along_an_axis(),
                15 => self.dot(),
                16 | 17 => self.store(),
                _ => self.with_regions(depth),
            }
        }
    }

    fn function(&mut self) {
        self.line(
            "tt.func public @f(%f32: !tt.ptr<f32> {tt.divisibility = 16 : i32}, \
             %f16: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %i32: !tt.ptr<i32>, %n: i32, %c: i1) {",
        );
        self.line("%c0 = arith.constant 0 : i32\n%c1 = arith.constant 1 : i32");
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
        for _ in 0..3 {
            self.store();
        }
        self.line("tt.return\n}");
    }

    /// Two blocks, one that joins them, and perhaps a way back.
    fn blocks(&mut self) {
        let values = self.carried();
        let tys: Vec<Ty> = values.iter().map(|(_, ty)| ty.clone()).collect();
        if tys.is_empty() {
            return;
        }
        let types = Self::types(&values);
        let id = self.names;
        let pass = |names: &[String]| format!("({} : {types})", names.join(", "));
        let first: Vec<String> = values.iter().map(|(name, _)| name.clone()).collect();
        let returns = self.random.chance(20);
        let mut left = String::new();
        let _ = write!(left, "^left{id}");
        self.line(&format!("cf.cond_br %c, {left}, ^join{id}{}\n{left}:", pass(&first)));
        let before = self.scope.len();
        let last = self.body(0, &tys);
        self.scope.truncate(before);
        self.line(&if returns { "tt.return".to_owned() } else { format!("cf.br ^join{id}{}", pass(&last)) });
        let args: Vec<String> = tys.iter().map(|_| self.name()).collect();
        let typed: Vec<String> = args.iter().zip(&tys).map(|(arg, ty)| format!("{arg}: {ty}")).collect();
        self.line(&format!("^join{id}({}):", typed.join(", ")));
        self.scope.extend(args.into_iter().zip(tys.iter().cloned()));
        if self.random.chance(30) {
            let last = self.body(0, &tys);
            let on = self.name();
            self.line(&format!("{on} = arith.cmpi slt, %n, %c0 : i32"));
            self.line(&format!("cf.cond_br {on}, ^join{id}{}, ^after{id}\n^after{id}:", pass(&last)));
        }
    }
}
