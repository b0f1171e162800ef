//! Control flow: loops, branches, blocks and calls.

use super::{Program, Ty};
use std::fmt::Write;

impl Program {
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

    pub(super) fn with_regions(&mut self, depth: usize) {
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

    /// A loop that goes through memory by pointers that it carries, and combines what it reads.
    pub(super) fn advancing(&mut self, depth: usize) {
        // Elements are not told to be in range.
        if depth > 2 || self.exact() {
            return;
        }
        let Some((first, ty)) = self.any().filter(|(_, ty)| ty.element != "i1") else { return };
        let (offsets, pointers, places) = (self.offsets(&ty.shape, false), ty.pointers(), ty.of("i32"));
        let (from, step) = (self.pointers(&format!("%{}", ty.element), &ty, &offsets), self.of(&places));
        let [result, i, at, sum, read, next] = [(); 6].map(|()| self.name());
        let types = format!("{ty}, {pointers}");
        self.line(&format!(
            "{result}:2 = scf.for {i} = %c0 to %n step %c1 iter_args({sum} = {first}, {at} = {from}) -> ({types}) : \
             i32 {{"
        ));
        let outside = self.scope.len();
        self.line(&format!("{read} = tt.load {at} : {pointers}"));
        self.scope.extend([(sum.clone(), ty.clone()), (read, ty.clone())]);
        let last = self.body(depth, std::slice::from_ref(&ty));
        self.line(&format!("{next} = tt.addptr {at}, {step} : {pointers}, {places}"));
        // The stages follow from the name of the loop, so that no other choice changes.
        let stages = 1 + result.bytes().filter(u8::is_ascii_digit).map(u64::from).sum::<u64>() % 5;
        self.line(&format!(
            "scf.yield {}, {next} : {types}\n}} {{tt.num_stages = {stages} : i32}}",
            last.join(", ")
        ));
        self.scope.truncate(outside);
        self.scope.push((format!("{result}#0"), ty));
    }

    /// A loop that adds up a reduction.
    pub(super) fn sum_in_a_loop(&mut self, depth: usize) {
        let Some((_, ty)) = self.any().filter(|(_, ty)| ty.rank() > 1) else { return };
        if depth > 2 || ty.element == "i1" || self.exact() && ty.is_float() {
            return;
        }
        let (axis, mut to, e) = (self.random.below(ty.rank()), ty.clone(), ty.element);
        to.shape.remove(axis);
        let first = self.of(&to);
        let op = if ty.is_float() { "arith.addf" } else { "arith.addi" };
        let [result, i, sum, part, next] = [(); 5].map(|()| self.name());
        self.line(&format!(
            "{result} = scf.for {i} = %c0 to %n step %c1 iter_args({sum} = {first}) -> ({to}) : i32 {{"
        ));
        let outside = self.scope.len();
        self.scope.push((sum.clone(), to.clone()));
        let last = self.body(depth, std::slice::from_ref(&ty)).join(", ");
        self.scope.truncate(outside);
        self.line(&format!(
            "{part} = \"tt.reduce\"({last}) <{{axis = {axis} : i32}}> ({{\n^bb0(%x: {e}, %y: {e}):\n\
             %z = {op} %x, %y : {e}\ntt.reduce.return %z : {e}\n}}) : ({ty}) -> {to}"
        ));
        self.line(&format!("{next} = {op} {sum}, {part} : {to}\nscf.yield {next} : {to}\n}}"));
        self.scope.push((result, to));
    }

    /// Operations that may not run, with nothing to give.
    pub(super) fn guarded(&mut self, depth: usize) {
        if depth > 2 {
            return;
        }
        self.line("scf.if %c {");
        let outside = self.scope.len();
        self.body(depth, &[]);
        self.store();
        self.scope.truncate(outside);
        self.line("}");
    }

    /// Two blocks, one that joins them, and perhaps a way back.
    pub(super) fn blocks(&mut self) {
        let values = self.carried();
        let tys: Vec<Ty> = values.iter().map(|(_, ty)| ty.clone()).collect();
        if tys.is_empty() {
            return;
        }
        let types = Self::types(&values);
        let id = self.names;
        let pass = |names: &[String]| names.join(", ");
        let first: Vec<String> = values.iter().map(|(name, _)| name.clone()).collect();
        let returns = self.random.chance(20);
        let mut left = String::new();
        let _ = write!(left, "^left{id}");
        self.line(&format!(
            "cf.cond_br %c, {left}, ^join{id}({}, %c0 : {types}, i32)\n{left}:",
            pass(&first)
        ));
        let before = self.scope.len();
        let last = self.body(0, &tys);
        self.scope.truncate(before);
        self.line(&match returns {
            true => "tt.return".to_owned(),
            false => format!("cf.br ^join{id}({}, %c0 : {types}, i32)", pass(&last)),
        });
        let (args, round): (Vec<String>, String) = (tys.iter().map(|_| self.name()).collect(), self.name());
        let typed: Vec<String> = args.iter().zip(&tys).map(|(arg, ty)| format!("{arg}: {ty}")).collect();
        self.line(&format!("^join{id}({}, {round}: i32):", typed.join(", ")));
        self.scope.extend(args.into_iter().zip(tys.iter().cloned()));
        if self.random.chance(30) {
            let last = self.body(0, &tys);
            let (on, next) = (self.name(), self.name());
            self.line(&format!("{next} = arith.addi {round}, %c1 : i32"));
            self.line(&format!("{on} = arith.cmpi slt, {next}, %n : i32"));
            self.line(&format!(
                "cf.cond_br {on}, ^join{id}({}, {next} : {types}, i32), ^after{id}\n^after{id}:",
                pass(&last)
            ));
        }
    }

    /// A call of a function of its own, which works on tensors.
    pub(super) fn call(&mut self) {
        let Some((a, ty)) = self.any().filter(|(_, ty)| ty.element != "i1") else { return };
        let b = self.of(&ty);
        let id = self.names;
        // The body is made apart, where only the parameters are visible.
        let outer = std::mem::take(&mut self.out);
        let visible = std::mem::replace(
            &mut self.scope,
            vec![("%a".to_owned(), ty.clone()), ("%b".to_owned(), ty.clone())],
        );
        for _ in 0..1 + self.random.below(3) {
            match self.random.below(3) {
                0 => self.along_an_axis(),
                1 => self.reshape(),
                _ => self.arithmetic(),
            }
        }
        let (result, result_ty) = self.scope.last().cloned().unwrap_or(("%a".to_owned(), ty.clone()));
        let body = std::mem::replace(&mut self.out, outer);
        self.scope = visible;
        // What only the kernel has: values from memory or of its arguments.
        if ["%n", "%c,", "tt.load", "%o_"].iter().any(|outside| body.contains(outside)) {
            return;
        }
        let _ = write!(
            self.callees,
            "tt.func private @g{id}(%a: {ty}, %b: {ty}) -> {result_ty} attributes {{noinline = true}} {{\n\
             {body}tt.return {result} : {result_ty}\n}}\n"
        );
        self.def(result_ty.clone(), &format!("tt.call @g{id}({a}, {b}) : ({ty}, {ty}) -> {result_ty}"));
    }
}
