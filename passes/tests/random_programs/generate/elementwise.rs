//! Arithmetic, casts, and scalar functions over tensors.

use super::{Program, Ty};

impl Program {
    pub(super) fn arithmetic(&mut self) {
        let Some((a, ty)) = self.any() else { return };
        if self.random.chance(25) && ty.element != "i1" {
            self.cast(&a, &ty);
            return;
        }
        if self.random.chance(5) && matches!(ty.element, "f32" | "i32") {
            self.map(&a, &ty);
            return;
        }
        if self.random.chance(3) && ty.element == "i32" && !self.exact() {
            let text = format!(
                "tt.elementwise_inline_asm \"mov.b32 $0, $1;\" {{constraints = \"=r,r\", packed_element = 1 : i32, \
                 pure = true}} {a} : {ty} -> {ty}"
            );
            self.def(ty, &text);
            return;
        }
        let b = self.of(&ty);
        let small = |this: &mut Self| {
            // From one to eight: no division by zero, no overflow.
            let (mask, one) = (this.constant(&ty, 7), this.constant(&ty, 1));
            let low = this.def(ty.clone(), &format!("arith.andi {b}, {mask} : {ty}"));
            this.def(ty.clone(), &format!("arith.addi {low}, {one} : {ty}"))
        };
        match ty.element {
            "i1" if self.random.chance(30) => {
                let op = self.random.pick(&["andi", "ori", "xori"]);
                self.def(ty.clone(), &format!("arith.{op} {a}, {b} : {ty}"));
            }
            "i1" => {
                let chosen = ty.of(self.random.pick(&["f32", "i32"]));
                let (x, y) = (self.of(&chosen), self.of(&chosen));
                self.def(chosen.clone(), &format!("arith.select {a}, {x}, {y} : {ty}, {chosen}"));
            }
            _ if !ty.is_float() && self.random.chance(15) => {
                let order = self.random.pick(&["slt", "eq", "ule", "sge"]);
                self.def(ty.of("i1"), &format!("arith.cmpi {order}, {a}, {b} : {ty}"));
            }
            _ if !ty.is_float() && self.random.chance(15) => {
                let op = self.random.pick(&["divsi", "remsi", "divui", "shrui", "shrsi", "shli"]);
                // Shifts by eight are one too far in bytes.
                let by = if ty.element == "i8" && op.starts_with("sh") {
                    let bits = self.random.below(8);
                    self.constant(&ty, bits)
                } else {
                    small(self)
                };
                self.def(ty.clone(), &format!("arith.{op} {a}, {by} : {ty}"));
            }
            "i32" if self.random.chance(5) => {
                self.def(ty.clone(), &format!("tt.mulhiui {a}, {b} : {ty}"));
            }
            _ if !ty.is_float() => {
                let op = self.random.pick(&["addi", "subi", "muli", "xori", "andi", "ori", "maxsi", "minui"]);
                self.def(ty.clone(), &format!("arith.{op} {a}, {b} : {ty}"));
            }
            _ if self.random.chance(10) => {
                self.def(ty.of("i1"), &format!("arith.cmpf olt, {a}, {b} : {ty}"));
            }
            "f32" if self.random.chance(15) => {
                let text = match self.random.below(4) {
                    0 => format!("math.exp {a} : {ty}"),
                    1 => format!("math.absf {a} : {ty}"),
                    2 => format!("tt.clampf {a}, {a}, {b}, propagateNan = none : {ty}"),
                    _ => format!("math.floor {a} : {ty}"),
                };
                self.def(ty.clone(), &text);
            }
            _ => {
                let op = self.random.pick(&["addf", "mulf", "subf", "maximumf", "minnumf"]);
                self.def(ty.clone(), &format!("arith.{op} {a}, {b} : {ty}"));
            }
        }
    }

    /// A tensor that repeats a number.
    pub(super) fn constant(&mut self, ty: &Ty, number: usize) -> String {
        let point = if ty.is_float() { ".0" } else { "" };
        self.def(ty.clone(), &format!("arith.constant dense<{number}{point}> : {ty}"))
    }

    /// A value in another type that arithmetic has.
    fn cast(&mut self, value: &str, ty: &Ty) {
        let to = ty.of(self.random.pick(&["f32", "f16", "bf16", "i32", "i64", "i8"]));
        if to != *ty && (!ty.is_float() || to.is_float() || !self.exact()) {
            self.cast_to(value, ty, &to);
        }
    }

    pub(super) fn cast_to(&mut self, value: &str, ty: &Ty, to: &Ty) -> String {
        let op = match (ty.is_float(), to.is_float()) {
            (false, false) if to.bits() > ty.bits() => self.random.pick(&["arith.extsi", "arith.extui"]),
            (false, false) => "arith.trunci",
            (false, true) => self.random.pick(&["arith.sitofp", "arith.uitofp"]),
            (true, false) => "arith.fptosi",
            (true, true) if to.bits() > ty.bits() => "arith.extf",
            (true, true) if to.bits() < ty.bits() => "arith.truncf",
            _ => {
                let wide = ty.of("f32");
                let value = self.def(wide.clone(), &format!("arith.extf {value} : {ty} to {wide}"));
                return self.def(to.clone(), &format!("arith.truncf {value} : {wide} to {to}"));
            }
        };
        self.def(to.clone(), &format!("{op} {value} : {ty} to {to}"))
    }

    /// A scalar function with a branch, over two tensors.
    fn map(&mut self, a: &str, ty: &Ty) {
        let (b, element) = (self.of(ty), ty.element);
        let (less, op) = if ty.is_float() { ("cmpf olt", "subf") } else { ("cmpi slt", "subi") };
        let text = format!(
            "\"tt.map_elementwise\"({a}, {b}) <{{pack = 1 : i32}}> ({{\n^bb0(%x: {element}, %y: {element}):\n\
             %less = arith.{less}, %x, %y : {element}\n%r = scf.if %less -> ({element}) {{\n\
             %d = arith.{op} %y, %x : {element}\nscf.yield %d : {element}\n}} else {{\nscf.yield %x : {element}\n}}\n\
             tt.map_elementwise.return %r : {element}\n}}) : ({ty}, {ty}) -> {ty}"
        );
        self.def(ty.clone(), &text);
    }
}
