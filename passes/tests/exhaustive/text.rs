//! A function with an assignment of layouts, as text.

use crate::function::{BlockId, Function, Id, Kind, Step, Ty};
use crate::search::{Choice, State};
use crate::space::{LayoutId, Space, Variant};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

/// The text of a module, and which node each of its lines belongs to.
pub struct Text {
    /// The module.
    pub text: String,
    /// By line, from 0.
    pub lines: Vec<Option<Id>>,
}

struct Writer<'a, 'f, 'c> {
    space: &'a Space<'f, 'c>,
    choice: &'a Choice,
    state: &'a State,
    used: BTreeSet<(Id, LayoutId)>,
    names: HashMap<(Id, LayoutId), String>,
    out: Text,
    /// The node whose lines are being written.
    node: Option<Id>,
    temporaries: usize,
}

/// The text of the function where each node is computed as `choice` says, and `state` has what is converted.
pub fn write(space: &Space<'_, '_>, choice: &Choice, state: &State) -> Text {
    let mut writer = Writer {
        space,
        choice,
        state,
        used: used(space.function, choice, state),
        names: HashMap::new(),
        out: Text { text: String::new(), lines: Vec::new() },
        node: None,
        temporaries: 0,
    };
    writer.module();
    writer.out
}

/// The values that stores need, each in a layout in which it is computed or to which it is converted.
fn used(function: &Function, choice: &Choice, state: &State) -> BTreeSet<(Id, LayoutId)> {
    let mut used = BTreeSet::new();
    loop {
        let before = used.len();
        for (id, node) in function.nodes.iter().enumerate().rev() {
            let from: Vec<_> = state[id].converted.iter().filter(|c| used.contains(&(id, c.to))).collect();
            used.extend(from.into_iter().map(|conversion| (id, conversion.from)));
            for way in &choice[id] {
                let stays = match node.kind {
                    Kind::Store => true,
                    Kind::Yield => used.contains(&(node.operands[0], way.result)),
                    _ => used.contains(&(id, way.result)),
                };
                if stays {
                    used.extend(node.operands.iter().copied().zip(way.operands.iter().copied()));
                }
            }
        }
        if used.len() == before {
            return used;
        }
    }
}

impl Writer<'_, '_, '_> {
    fn function(&self) -> &Function {
        self.space.function
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out.text, "{text}");
        self.out.lines.push(self.node);
    }

    fn temporary(&mut self) -> String {
        self.temporaries += 1;
        format!("%t{}", self.temporaries)
    }

    /// A new line that defines a temporary.
    fn def(&mut self, text: &str) -> String {
        let name = self.temporary();
        self.line(&format!("{name} = {text}"));
        name
    }

    fn is_used(&self, id: Id, layout: LayoutId) -> bool {
        self.used.contains(&(id, layout))
    }

    fn name(&self, id: Id, layout: LayoutId) -> String {
        self.names
            .get(&(id, layout))
            .cloned()
            .unwrap_or_else(|| panic!("value {id} is not there in layout {layout}"))
    }

    fn module(&mut self) {
        let function = self.space.function;
        let lanes = if function.target.starts_with("hip") { 64 } else { 32 };
        self.line(&format!(
            "module attributes {{\"ttg.num-ctas\" = 1 : i32, \"ttg.num-warps\" = {} : i32, ttg.target = \"{}\", \
             \"ttg.threads-per-warp\" = {lanes} : i32}} {{",
            function.warps, function.target
        ));
        let arguments = function.arguments.iter().enumerate();
        let arguments: Vec<String> = arguments
            .map(|(n, (element, by))| format!("%p{n}: !tt.ptr<{element}> {{tt.divisibility = {by} : i32}}"))
            .collect();
        self.line(&format!("tt.func public @f({}, %n: i32, %c: i1) {{", arguments.join(", ")));
        self.line("%c0 = arith.constant 0 : i32");
        self.line("%c1 = arith.constant 1 : i32");
        for (at, step) in function.steps.iter().enumerate() {
            match *step {
                Step::Node(id) => self.node(id),
                Step::Loop(body) => self.begin_loop(body),
                Step::EndLoop(body) => self.end_loop(body),
                Step::Then(block) => self.begin_if(at, block),
                Step::Else(block) => {
                    self.yield_if(at, 0);
                    self.line("} else {");
                    self.conversions(block, None);
                }
                Step::EndIf(..) => {
                    self.yield_if(at, 1);
                    self.line("}");
                }
            }
        }
        self.line("tt.return");
        self.line("}");
        self.line("}");
    }

    /// The conversions of a block: those of `of`, or of all values of other blocks.
    fn conversions(&mut self, block: BlockId, of: Option<Id>) {
        self.node = None;
        for id in 0..self.state.len() {
            let home = self.function().nodes[id].block;
            if of.map_or(home == block, |of| id != of) {
                continue;
            }
            for conversion in self.state[id].converted.iter().filter(|c| c.block == block) {
                if self.is_used(id, conversion.to) {
                    let (from, name) = (self.name(id, conversion.from), format!("%v{id}_{}", conversion.to));
                    let from_type = self.space.type_text(id, conversion.from);
                    let to_type = self.space.type_text(id, conversion.to);
                    self.line(&format!("{name} = ttg.convert_layout {from} : {from_type} -> {to_type}"));
                    self.names.insert((id, conversion.to), name);
                }
            }
        }
    }

    /// The values that are passed on to those of `nodes`, in the layouts that are used; with the types.
    fn passed(&self, nodes: &[Id], operand: usize) -> (Vec<String>, Vec<String>) {
        let mut values = (Vec::new(), Vec::new());
        for id in nodes {
            for way in &self.choice[*id] {
                let node = &self.function().nodes[*id];
                let carried = if node.kind == Kind::Yield { node.operands[0] } else { *id };
                if self.is_used(carried, way.result) {
                    values.0.push(self.name(node.operands[operand], way.operands[operand]));
                    values.1.push(self.space.type_text(node.operands[operand], way.operands[operand]));
                }
            }
        }
        values
    }

    fn begin_loop(&mut self, body: BlockId) {
        let carried = self.function().in_block(body, |kind| *kind == Kind::Carried);
        let (initial, types) = self.passed(&carried, 0);
        let to = match self.function().blocks[body].trips.flatten() {
            Some(count) => self.def(&format!("arith.constant {count} : i32")),
            None => "%n".to_owned(),
        };
        let mut args = Vec::new();
        for id in &carried {
            for way in &self.choice[*id] {
                if self.is_used(*id, way.result) {
                    let name = format!("%v{id}_{}", way.result);
                    self.names.insert((*id, way.result), name.clone());
                    args.push(name);
                }
            }
        }
        let bound: Vec<String> =
            args.iter().zip(&initial).map(|(arg, from)| format!("{arg} = {from}")).collect();
        let head = format!("scf.for %i{body} = %c0 to {to} step %c1");
        match bound.len() {
            0 => self.line(&format!("{head} : i32 {{")),
            n => self.line(&format!(
                "%r{body}:{n} = {head} iter_args({}) -> ({}) : i32 {{",
                bound.join(", "),
                types.join(", ")
            )),
        }
        self.conversions(body, None);
    }

    fn end_loop(&mut self, body: BlockId) {
        self.node = None;
        let yields = self.function().in_block(body, |kind| *kind == Kind::Yield);
        let (next, types) = self.passed(&yields, 1);
        if !next.is_empty() {
            self.line(&format!("scf.yield {} : {}", next.join(", "), types.join(", ")));
        }
        self.line("}");
    }

    /// The results of the branch around step `at`.
    fn if_results(&self, at: usize) -> Vec<Id> {
        let mut steps =
            self.function().steps[at..].iter().skip_while(|step| !matches!(step, Step::EndIf(..)));
        steps.next();
        let results = steps.map_while(|step| match step {
            Step::Node(id) if self.function().nodes[*id].kind == Kind::IfResult => Some(*id),
            _ => None,
        });
        results.collect()
    }

    fn begin_if(&mut self, at: usize, block: BlockId) {
        let mut types = Vec::new();
        for id in self.if_results(at) {
            for way in &self.choice[id] {
                if self.is_used(id, way.result) {
                    self.names.insert((id, way.result), format!("%r{block}#{}", types.len()));
                    types.push(self.space.type_text(id, way.result));
                }
            }
        }
        self.node = None;
        match types.len() {
            0 => self.line("scf.if %c {"),
            n => self.line(&format!("%r{block}:{n} = scf.if %c -> ({}) {{", types.join(", "))),
        }
        self.conversions(block, None);
    }

    fn yield_if(&mut self, at: usize, side: usize) {
        self.node = None;
        let (values, types) = self.passed(&self.if_results(at), side);
        if !values.is_empty() {
            self.line(&format!("scf.yield {} : {}", values.join(", "), types.join(", ")));
        }
    }

    fn node(&mut self, id: Id) {
        let node = self.space.function.nodes[id].clone();
        match node.kind {
            Kind::Yield => return,
            Kind::LoopResult => self.loop_results(id, node.operands[0]),
            Kind::Carried | Kind::IfResult => {}
            _ => {
                for way in self.choice[id].clone() {
                    if node.kind == Kind::Store || self.is_used(id, way.result) {
                        self.node = Some(id);
                        self.compute(id, &way);
                    }
                }
            }
        }
        self.conversions(node.block, Some(id));
    }

    /// Names the results of a loop: they come in the order of its iter_args.
    fn loop_results(&mut self, id: Id, carried: Id) {
        let body = self.function().nodes[carried].block;
        let mut at = 0;
        for arg in self.function().in_block(body, |kind| *kind == Kind::Carried) {
            for way in &self.choice[arg] {
                if self.is_used(arg, way.result) {
                    if arg == carried {
                        self.names.insert((id, way.result), format!("%r{body}#{at}"));
                    }
                    at += 1;
                }
            }
        }
    }

    fn compute(&mut self, id: Id, way: &Variant) {
        let node = self.space.function.nodes[id].clone();
        let operands: Vec<String> =
            node.operands.iter().zip(&way.operands).map(|(of, layout)| self.name(*of, *layout)).collect();
        let types: Vec<String> = node
            .operands
            .iter()
            .zip(&way.operands)
            .map(|(of, layout)| self.space.type_text(*of, *layout))
            .collect();
        let ty = self.space.type_text(id, way.result);
        let all = operands.join(", ");
        let text = match &node.kind {
            Kind::Pointers { argument, strides } => self.pointers(id, *argument, strides, way.result),
            Kind::Load => format!("tt.load {all} : {}", types[0]),
            Kind::Store => return self.line(&format!("tt.store {all} : {}", types[0])),
            Kind::Elementwise(op) => format!("{op} {all} : {ty}"),
            Kind::Cast(op) => format!("{op} {all} : {} to {ty}", types[0]),
            Kind::Compare => format!("arith.cmpf olt, {all} : {}", types[0]),
            Kind::Select => format!("arith.select {all} : {}, {ty}", types[0]),
            Kind::Constant => {
                let number = if node.ty.element.starts_with('i') { "3" } else { "3.0" };
                format!("arith.constant dense<{number}> : {ty}")
            }
            Kind::Step(stride) => {
                let stride = self.def(&format!("arith.constant {stride} : i32"));
                let at = self.def(&format!("arith.muli %i{}, {stride} : i32", node.block));
                format!("tt.splat {at} : i32 -> {ty}")
            }
            Kind::AddPtr => format!("tt.addptr {all} : {}, {}", types[0], types[1]),
            Kind::Reduce { axis, op } => {
                let e = node.ty.element;
                format!(
                    "\"tt.reduce\"({all}) <{{axis = {axis} : i32}}> ({{ ^bb0(%x: {e}, %y: {e}): %z = {op} %x, %y : {e} \
                     tt.reduce.return %z : {e} }}) : ({}) -> {ty}",
                    types[0]
                )
            }
            Kind::ExpandDims(axis) => {
                format!("tt.expand_dims {all} {{axis = {axis} : i32}} : {} -> {ty}", types[0])
            }
            Kind::Broadcast => format!("tt.broadcast {all} : {} -> {ty}", types[0]),
            Kind::Trans => format!("tt.trans {all} {{order = array<i32: 1, 0>}} : {} -> {ty}", types[0]),
            Kind::Reshape => format!("tt.reshape {all} : {} -> {ty}", types[0]),
            Kind::Dot => format!("tt.dot {all} : {} * {} -> {ty}", types[0], types[1]),
            Kind::Carried | Kind::Yield | Kind::LoopResult | Kind::IfResult => return,
        };
        let name = format!("%v{id}_{}", way.result);
        self.line(&format!("{name} = {text}"));
        self.names.insert((id, way.result), name);
    }

    /// Pointers from an argument on, as Triton's front end writes them; the last operation of them.
    fn pointers(&mut self, id: Id, argument: usize, strides: &[i64], layout: LayoutId) -> String {
        let ty = self.space.function.nodes[id].ty.clone();
        let layout = self.space.layout(layout).to_string();
        let offsets = ty.of("i32");
        let (whole, pointers) = (offsets.text(&layout), ty.text(&layout));
        let sum = if let [size] = ty.shape[..] {
            self.def(&format!("tt.make_range {{start = 0 : i32, end = {size} : i32}} : {whole}"))
        } else {
            let along = [0, 1].map(|d| self.offsets(&ty.shape, d, strides[d], &layout));
            self.def(&format!("arith.addi {}, {} : {whole}", along[0], along[1]))
        };
        let base = self.def(&format!("tt.splat %p{argument} : !tt.ptr<{}> -> {pointers}", ty.element));
        format!("tt.addptr {base}, {sum} : {pointers}, {whole}")
    }

    /// Offsets along one of two dimensions, repeated along the other.
    fn offsets(&mut self, shape: &[i64], d: usize, stride: i64, layout: &str) -> String {
        let other = 1 - d;
        let mut thin = shape.to_vec();
        thin[other] = 1;
        let size = shape[d];
        let row = Ty::new(&[size], "i32").text(&format!("#ttg.slice<{{dim = {other}, parent = {layout}}}>"));
        let thin = Ty::new(&thin, "i32").text(layout);
        let range = self.def(&format!("tt.make_range {{start = 0 : i32, end = {size} : i32}} : {row}"));
        let mut at = self.def(&format!("tt.expand_dims {range} {{axis = {other} : i32}} : {row} -> {thin}"));
        if stride != 1 {
            let step = self.def(&format!("arith.constant dense<{stride}> : {thin}"));
            at = self.def(&format!("arith.muli {at}, {step} : {thin}"));
        }
        self.def(&format!("tt.broadcast {at} : {thin} -> {}", Ty::new(shape, "i32").text(layout)))
    }
}
