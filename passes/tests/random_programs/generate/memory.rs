//! Loads, stores, atomics and descriptors.

use super::{LARGEST, Program, STORES, Ty};

impl Program {
    /// Elements from one index along a dimension to the next, by dimension: mostly of dense rows, sometimes of rows
    /// that begin at any address, and where `overlap` allows it also of rows that share elements. All elements lie
    /// within [`LARGEST`] of the first.
    fn strides(&mut self, shape: &[usize], overlap: bool) -> Vec<usize> {
        let mut order: Vec<usize> = (0..shape.len()).rev().collect();
        if self.random.chance(30) {
            order.reverse();
        }
        let (shifted, overlaps) = (self.random.chance(25), overlap && self.random.chance(10));
        let (mut dense, mut strides) = (vec![0; shape.len()], vec![0; shape.len()]);
        let (mut next_dense, mut next) = (1, 1);
        for d in order {
            (dense[d], strides[d]) =
                (next_dense, if overlaps { self.random.pick(&[1, 1, 2, 3]) } else { next });
            next_dense *= shape[d];
            next = next * shape[d] + if shifted { self.random.pick(&[0, 1, 1, 2, 3, 4, 6]) } else { 0 };
        }
        let last: usize = shape.iter().zip(&strides).map(|(size, stride)| (size - 1) * stride).sum();
        if last < LARGEST { strides } else { dense }
    }

    /// Offsets that run along the dimensions in some order, of elements that are read; no two alike where they are
    /// `written`.
    pub(super) fn offsets(&mut self, shape: &[usize], written: bool) -> String {
        let strides = self.strides(shape, !written);
        let whole = Ty::new(shape, "i32");
        let mut sum = None;
        for (d, stride) in strides.into_iter().enumerate() {
            let size = shape[d];
            let flat = Ty::new(&[size], "i32");
            let mut at = if size > 1 {
                self.def(
                    flat.clone(),
                    &format!("tt.make_range {{start = 0 : i32, end = {size} : i32}} : {flat}"),
                )
            } else {
                self.constant(&flat, 0)
            };
            let step = self.constant(&flat, stride);
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
        }
        sum.unwrap_or_default()
    }

    /// Pointers from the scalar `base` on.
    pub(super) fn pointers(&mut self, base: &str, ty: &Ty, offsets: &str) -> String {
        let (splat, at) = (self.name(), self.name());
        let pointers = ty.pointers();
        self.line(&format!("{splat} = tt.splat {base} : !tt.ptr<{}> -> {pointers}", ty.element));
        self.line(&format!("{at} = tt.addptr {splat}, {offsets} : {pointers}, {}", ty.of("i32")));
        at
    }

    /// The start of a part of the output that nothing else writes.
    fn part(&mut self, ty: &Ty) -> String {
        let (number, base) = (self.name(), self.name());
        self.line(&format!("{number} = arith.constant {} : i32", self.stores * LARGEST));
        self.stores += 1;
        let element = ty.element;
        self.line(&format!("{base} = tt.addptr %o_{element}, {number} : !tt.ptr<{element}>, i32"));
        base
    }

    pub(super) fn load(&mut self, ty: &Ty) -> String {
        let places = ty.of("i32");
        // Offsets out of nowhere may be anything.
        let runs = self.random.chance(70);
        let mut offsets = if runs { self.offsets(&ty.shape, false) } else { self.of(&places) };
        if self.exact() && !(runs && ty.elements() <= LARGEST) {
            let mask = self.constant(&places, LARGEST - 1);
            offsets = self.def(places.clone(), &format!("arith.andi {offsets}, {mask} : {places}"));
        }
        let at = self.pointers(&format!("%{}", ty.element), ty, &offsets);
        let mut extra = String::new();
        if self.random.chance(30) {
            extra = format!(", {}", self.of(&ty.of("i1")));
            let other: Vec<String> =
                self.scope.iter().filter(|(_, other)| other == ty).map(|(name, _)| name.clone()).collect();
            if let Some(other) = other.first() {
                extra += &format!(", {other}");
            }
        }
        let how = if self.random.chance(5) { " {isVolatile = true}" } else { "" };
        self.def(ty.clone(), &format!("tt.load {at}{extra}{how} : {}", ty.pointers()))
    }

    /// Something that is neither computed nor stored.
    pub(super) fn effect(&mut self) {
        let Some((value, ty)) = self.any() else { return };
        match self.random.below(3) {
            0 | 1 if self.exact() => {}
            0 => self.line(&format!(
                "tt.print \"value\" {{hex = false, isSigned = array<i32: 1>}} : {value} : {ty}"
            )),
            1 => {
                let (bound, holds) = (self.of(&ty.of("i32")), ty.of("i1"));
                let holds_for =
                    self.def(holds.clone(), &format!("arith.cmpi sle, {bound}, {bound} : {}", ty.of("i32")));
                self.line(&format!("tt.assert {holds_for}, \"holds\" : {holds}"));
            }
            _ if ty.element != "i1" => {
                let (low, one) = (self.name(), Ty::new(&[1], ty.element));
                let first = self.of(&one);
                self.line(&format!("{low} = tt.unsplat {first} : {one}"));
                self.def(ty.clone(), &format!("tt.splat {low} : {} -> {ty}", ty.element));
            }
            _ => {}
        }
    }

    pub(super) fn store(&mut self) {
        let Some((value, ty)) = self.any().filter(|(_, ty)| ty.element != "i1") else { return };
        if self.stores == STORES || ty.elements() > LARGEST {
            return;
        }
        let offsets = self.offsets(&ty.shape, true);
        let base = self.part(&ty);
        let at = self.pointers(&base, &ty, &offsets);
        let mask =
            if self.random.chance(20) { format!(", {}", self.of(&ty.of("i1"))) } else { String::new() };
        self.line(&format!("tt.store {at}, {value}{mask} : {}", ty.pointers()));
    }

    /// An operation on elements of memory that each belong to one element of the tensor.
    pub(super) fn atomic(&mut self) {
        let is_known = |ty: &Ty| matches!(ty.element, "i32" | "i64" | "f32" | "f16" | "bf16");
        let Some((value, ty)) = self.any().filter(|(_, ty)| is_known(ty)) else { return };
        if self.stores == STORES || ty.elements() > LARGEST {
            return;
        }
        let offsets = self.offsets(&ty.shape, true);
        let base = self.part(&ty);
        let (at, pointers) = (self.pointers(&base, &ty, &offsets), ty.pointers());
        let order = self.random.pick(&["relaxed", "acq_rel", "acquire", "release"]);
        if ty.element == "i32" && self.random.chance(25) {
            let compared = self.of(&ty);
            let text = format!(
                "tt.atomic_cas {order}, gpu, {at}, {compared}, {value} : ({pointers}, {ty}, {ty}) -> {ty}"
            );
            self.def(ty, &text);
            return;
        }
        let op = match ty.is_float() {
            true => "fadd",
            false => self.random.pick(&["add", "max", "umin", "and", "or", "xor", "exch"]),
        };
        let (mask, mask_ty) = match self.random.chance(40) {
            true => (format!(", {}", self.of(&ty.of("i1"))), format!(", {}", ty.of("i1"))),
            false => Default::default(),
        };
        let text = format!(
            "tt.atomic_rmw {op}, {order}, gpu, {at}, {value}{mask} : ({pointers}, {ty}{mask_ty}) -> {ty}"
        );
        if mask.is_empty() || !self.exact() {
            self.def(ty, &text);
        } else {
            // Where the mask is off there is no result.
            let unused = self.name();
            self.line(&format!("{unused} = {text}"));
        }
    }

    /// A tile through a descriptor: loaded, stored, or combined with what is there.
    pub(super) fn descriptor(&mut self) {
        let element = self.random.pick(&["f16", "f32", "i32"]);
        let ty = Ty::new(&[self.random.pick(&[8, 16, 32]), self.random.pick(&[16, 32, 64])], element);
        let how = self.random.below(3);
        if how > 0 && self.stores == STORES {
            return;
        }
        let value = if how > 0 { self.of(&ty) } else { String::new() };
        let base = if how > 0 { self.part(&ty) } else { format!("%{element}") };
        let [rows, columns, step, made] = [(); 4].map(|()| self.name());
        self.line(&format!("{rows} = arith.constant {} : i32", ty.shape[0]));
        self.line(&format!("{columns} = arith.constant {} : i32", ty.shape[1]));
        self.line(&format!("{step} = arith.constant {} : i64", ty.shape[1]));
        let (sizes, tile) = (ty.sizes(), format!("!tt.tensordesc<{}{element}>", ty.sizes()));
        self.line(&format!(
            "{made} = tt.make_tensor_descriptor {base}, [{rows}, {columns}], [{step}, %c1l] : <{element}>, \
             <{sizes}{element}>"
        ));
        match how {
            0 => {
                // Perhaps beyond the end, where there are zeros.
                let row = if self.random.chance(50) { "%n" } else { "%c0" };
                self.def(ty.clone(), &format!("tt.descriptor_load {made}[{row}, %c0] : {tile} -> {ty}"));
            }
            1 => self.line(&format!("tt.descriptor_store {made}[%c0, %c0], {value} : {tile}, {ty}")),
            _ => self.line(&format!("tt.descriptor_reduce add, {made}[%c0, %c0], {value} : {tile}, {ty}")),
        }
    }
}
