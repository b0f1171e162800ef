//! Matrix products.

use super::{Program, Ty};

impl Program {
    /// A tensor of small integers of an element type, or anything where sums need not be exact.
    fn operand(&mut self, ty: &Ty) -> String {
        if !self.exact() {
            return self.of(ty);
        }
        let number = ty.of("i32");
        let (any, mask) = (self.of(&number), self.constant(&number, 3));
        let small = self.def(number.clone(), &format!("arith.andi {any}, {mask} : {number}"));
        if *ty == number { small } else { self.cast_to(&small, &number, ty) }
    }

    fn size(&mut self) -> usize {
        self.random.pick(&[16, 16, 32, 64])
    }

    pub(super) fn dot(&mut self) {
        let [m, n, k] = [(); 3].map(|()| self.size());
        let (of, to, precision) = self.random.pick(&[
            ("f16", "f32", "tf32"),
            ("bf16", "f32", "tf32"),
            ("f32", "f32", "tf32"),
            ("f32", "f32", "ieee"),
            ("i8", "i32", "ieee"),
        ]);
        let k = if of == "i8" { k.max(32) } else { k };
        let batch: &[usize] = if self.random.chance(15) { &[2] } else { &[] };
        let (m, n, k) = if batch.is_empty() { (m, n, k) } else { (m.min(32), n.min(32), k.min(32)) };
        let ty = |a, b, element| Ty::new(&[batch, &[a, b]].concat(), element);
        let (a, b, c) = (ty(m, k, of), ty(k, n, of), ty(m, n, to));
        let (x, y, z) = (self.operand(&a), self.operand(&b), self.operand(&c));
        let precision = if precision == "ieee" { "" } else { ", inputPrecision = tf32" };
        self.def(c.clone(), &format!("tt.dot {x}, {y}, {z}{precision} : {a} * {b} -> {c}"));
    }

    /// Two products, the first of which is an operand of the second.
    pub(super) fn chained_dots(&mut self) {
        let [m, n, k, l] = [(); 4].map(|()| self.size());
        let (a, b, c) = (Ty::new(&[m, k], "f16"), Ty::new(&[k, n], "f16"), Ty::new(&[m, n], "f32"));
        let (x, y, z) = (self.operand(&a), self.operand(&b), self.operand(&c));
        let first =
            self.def(c.clone(), &format!("tt.dot {x}, {y}, {z}, inputPrecision = tf32 : {a} * {b} -> {c}"));
        let narrow = c.of("f16");
        let p = self.def(narrow.clone(), &format!("arith.truncf {first} : {c} to {narrow}"));
        let (d, e) = (Ty::new(&[n, l], "f16"), Ty::new(&[m, l], "f32"));
        let (v, w) = (self.operand(&d), self.operand(&e));
        self.def(e.clone(), &format!("tt.dot {p}, {v}, {w}, inputPrecision = tf32 : {narrow} * {d} -> {e}"));
    }

    /// Zeros and ones of a scaled operand's type, packed along `k` where that is 4 bits.
    fn scaled_operand(&mut self, shape: [usize; 2], k: usize, format: &str) -> (String, Ty) {
        let (one, element) = match format {
            "e4m3" => (0x38, "f8E4M3FN"),
            "e5m2" => (0x3c, "f8E5M2"),
            _ => (2, "i8"),
        };
        let mut shape = shape;
        shape[k] /= if format == "e2m1" { 2 } else { 1 };
        let (ty, number) = (Ty::new(&shape, "i8"), Ty::new(&shape, "i32"));
        let (any, mask) = (self.of(&number), self.constant(&number, if format == "e2m1" { 0x11 } else { 1 }));
        let bits = self.def(number.clone(), &format!("arith.andi {any}, {mask} : {number}"));
        let factor = self.constant(&number, one);
        let bits = self.def(number.clone(), &format!("arith.muli {bits}, {factor} : {number}"));
        let bits = self.def(ty.clone(), &format!("arith.trunci {bits} : {number} to {ty}"));
        if element == "i8" {
            return (bits, ty);
        }
        // No arithmetic has these types: they are not for others to use.
        let (name, to) = (self.name(), ty.of(element));
        self.line(&format!("{name} = tt.bitcast {bits} : {ty} -> {to}"));
        (name, to)
    }

    pub(super) fn dot_scaled(&mut self) {
        let (m, n, k) =
            (self.random.pick(&[16, 32, 64]), self.random.pick(&[16, 32, 64]), self.random.pick(&[64, 128]));
        let (lhs, rhs) =
            self.random.pick(&[("e4m3", "e4m3"), ("e2m1", "e2m1"), ("e5m2", "e2m1"), ("e2m1", "e4m3")]);
        let (a, a_ty) = self.scaled_operand([m, k], 1, lhs);
        let (b, b_ty) = self.scaled_operand([k, n], 0, rhs);
        let c = Ty::new(&[m, n], "f32");
        let z = self.operand(&c);
        let (s, s_ty) = self.scales(m, k / 32);
        let both = self.random.chance(70);
        let (t, t_ty) = if both { self.scales(n, k / 32) } else { (String::new(), s_ty.clone()) };
        let (scale, scale_ty) =
            if both { (format!(" scale {t}"), format!(", {t_ty}")) } else { Default::default() };
        let text = format!(
            "tt.dot_scaled {a} scale {s}, {b}{scale}, {z} lhs = {lhs} rhs = {rhs} {{fastMath = false}} : \
             {a_ty}, {s_ty} * {b_ty}{scale_ty} -> {c}"
        );
        self.def(c, &text);
    }

    /// Scales of one and two: exponents from 127 on.
    fn scales(&mut self, rows: usize, columns: usize) -> (String, Ty) {
        let number = Ty::new(&[rows, columns], "i32");
        let (any, one, bias) = (self.of(&number), self.constant(&number, 1), self.constant(&number, 127));
        let low = self.def(number.clone(), &format!("arith.andi {any}, {one} : {number}"));
        let biased = self.def(number.clone(), &format!("arith.addi {low}, {bias} : {number}"));
        let bytes = number.of("i8");
        (self.def(bytes.clone(), &format!("arith.trunci {biased} : {number} to {bytes}")), bytes)
    }
}
