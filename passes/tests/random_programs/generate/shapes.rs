//! Operations that rearrange elements, and those along an axis.

use super::{LARGEST, Program, Ty};

impl Program {
    pub(super) fn reshape(&mut self) {
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
                for i in (1..ty.rank()).rev() {
                    order.swap(i, self.random.below(i + 1));
                }
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
                let most = 1 + self.random.below(4);
                to.shape.clear();
                while left > 1 && to.shape.len() < most {
                    let size = 1 << self.random.below(left.ilog2() as usize + 1);
                    to.shape.push(size);
                    left /= size;
                }
                to.shape.push(left);
                let any = if !self.exact() && self.random.chance(20) { " allow_reorder" } else { "" };
                self.def(to.clone(), &format!("tt.reshape {value}{any} : {ty} -> {to}"));
            }
            4 if ty.elements() * 2 <= LARGEST && ty.rank() < 5 => {
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
            6 if ty.rank() == 1 && ty.elements() * 2 <= LARGEST && !self.exact() => {
                let other = self.of(&ty);
                to.shape[0] *= 2;
                self.def(to.clone(), &format!("tt.cat {value}, {other} : {ty} -> {to}"));
            }
            _ => {}
        }
    }

    /// A region that combines two elements, for reductions and scans.
    fn combiner(&mut self, ty: &Ty, end: &str) -> String {
        let element = ty.element;
        let op = match (ty.is_float(), self.exact()) {
            // Sums of floats depend on the order.
            (true, true) => self.random.pick(&["arith.maximumf", "arith.minnumf"]),
            (true, false) => self.random.pick(&["arith.addf", "arith.maxnumf", "arith.mulf"]),
            (false, _) => self.random.pick(&["arith.addi", "arith.xori", "arith.maxsi", "arith.muli"]),
        };
        format!(
            "({{\n^bb0(%x: {element}, %y: {element}):\n%z = {op} %x, %y : {element}\n{end} %z : {element}\n}})"
        )
    }

    /// The larger element and where it is, the first of equals.
    fn arg_combiner(ty: &Ty, end: &str) -> String {
        let e = ty.element;
        let (equal, more) = if ty.is_float() { ("cmpf oeq", "cmpf ogt") } else { ("cmpi eq", "cmpi sgt") };
        format!(
            "({{\n^bb0(%x: {e}, %i: i32, %y: {e}, %j: i32):\n%tie = arith.{equal}, %x, %y : {e}\n\
             %first = arith.cmpi slt, %i, %j : i32\n%kept = arith.andi %tie, %first : i1\n\
             %more = arith.{more}, %x, %y : {e}\n%take = arith.ori %more, %kept : i1\n\
             %v = arith.select %take, %x, %y : {e}\n%k = arith.select %take, %i, %j : i32\n\
             {end} %v, %k : {e}, i32\n}})"
        )
    }

    pub(super) fn along_an_axis(&mut self) {
        let Some((value, ty)) = self.any().filter(|(_, ty)| ty.element != "i1") else { return };
        let axis = self.random.below(ty.rank());
        match self.random.below(6) {
            0 | 1 if ty.rank() > 1 => {
                let mut to = ty.clone();
                to.shape.remove(axis);
                let region = self.combiner(&ty, "tt.reduce.return");
                self.def(
                    to.clone(),
                    &format!("\"tt.reduce\"({value}) <{{axis = {axis} : i32}}> {region} : ({ty}) -> {to}"),
                );
            }
            0 | 1 => {
                let region = self.combiner(&ty, "tt.reduce.return");
                let (scalar, element) = (self.name(), ty.element);
                self.line(&format!(
                    "{scalar} = \"tt.reduce\"({value}) <{{axis = 0 : i32}}> {region} : ({ty}) -> {element}"
                ));
                self.def(ty.clone(), &format!("tt.splat {scalar} : {element} -> {ty}"));
            }
            // NaNs compare with nothing: whichever comes last would remain.
            2 if ty.rank() > 1 && !ty.is_float() => {
                let places = ty.of("i32");
                let at = self.of(&places);
                let mut to = ty.clone();
                to.shape.remove(axis);
                let (found, region) = (self.name(), Self::arg_combiner(&ty, "tt.reduce.return"));
                self.line(&format!(
                    "{found}:2 = \"tt.reduce\"({value}, {at}) <{{axis = {axis} : i32}}> {region} : \
                     ({ty}, {places}) -> ({to}, {})",
                    to.of("i32")
                ));
                self.scope.push((format!("{found}#0"), to.clone()));
                self.scope.push((format!("{found}#1"), to.of("i32")));
            }
            2 if !ty.is_float() => {
                let places = ty.of("i32");
                let at = self.of(&places);
                let (found, region) = (self.name(), Self::arg_combiner(&ty, "tt.scan.return"));
                self.line(&format!(
                    "{found}:2 = \"tt.scan\"({value}, {at}) <{{axis = {axis} : i32, reverse = false}}> {region} : \
                     ({ty}, {places}) -> ({ty}, {places})"
                ));
                self.scope.push((format!("{found}#0"), ty));
                self.scope.push((format!("{found}#1"), places));
            }
            2 | 3 => {
                let region = self.combiner(&ty, "tt.scan.return");
                let reverse = self.random.chance(40);
                let text = format!(
                    "\"tt.scan\"({value}) <{{axis = {axis} : i32, reverse = {reverse}}}> {region} : ({ty}) -> {ty}"
                );
                self.def(ty, &text);
            }
            4 if ty.element == "i32" && ty.rank() == 1 && ty.elements() > 1 => {
                let to = Ty::new(&[self.random.pick(&[16, 32, 128])], "i32");
                let mask = self.constant(&ty, to.elements() - 1);
                let low = self.def(ty.clone(), &format!("arith.andi {value}, {mask} : {ty}"));
                self.def(to.clone(), &format!("tt.histogram {low} : {ty} -> {to}"));
            }
            _ => {
                // As many places along the axis as one likes.
                let mut places = ty.of("i32");
                if self.random.chance(30) {
                    places.shape[axis] = self.random.pick(&[1, 2, 8, 16]);
                }
                let mut at = self.of(&places);
                if self.exact() {
                    let mask = self.constant(&places, ty.shape[axis] - 1);
                    at = self.def(places.clone(), &format!("arith.andi {at}, {mask} : {places}"));
                }
                let to = places.of(ty.element);
                if to.elements() <= LARGEST {
                    self.def(
                        to.clone(),
                        &format!(
                            "tt.gather {value}[{at}] {{axis = {axis} : i32}} : ({ty}, {places}) -> {to}"
                        ),
                    );
                }
            }
        }
    }
}
