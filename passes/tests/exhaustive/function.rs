//! A function whose layouts are open: values, what computes them, and the blocks they stand in.

use linear_layout::Encoding;
use std::collections::BTreeMap;

/// A value, which is also the node that computes it.
pub type Id = usize;
/// A block, by number.
pub type BlockId = usize;

/// The type of a tensor without its layout.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ty {
    /// Its sizes.
    pub shape: Vec<i64>,
    /// Its elements, as they are written.
    pub element: &'static str,
    /// Whether it holds pointers to them.
    pub pointers: bool,
}

impl Ty {
    /// Of elements.
    pub fn new(shape: &[i64], element: &'static str) -> Ty {
        Ty { shape: shape.to_vec(), element, pointers: false }
    }
    /// The same shape of other elements.
    pub fn of(&self, element: &'static str) -> Ty {
        Ty::new(&self.shape, element)
    }
    /// The same shape of pointers to elements.
    pub fn pointers(&self) -> Ty {
        Ty { pointers: true, ..self.clone() }
    }
    /// How it is written with a layout.
    pub fn text(&self, layout: &str) -> String {
        let sizes: String = self.shape.iter().map(|size| format!("{size}x")).collect();
        let element =
            if self.pointers { format!("!tt.ptr<{}>", self.element) } else { self.element.to_owned() };
        format!("tensor<{sizes}{element}, {layout}>")
    }
}

/// What a node does.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Pointers to elements that lie `strides` apart: one group of operations that share a layout, slices of it included.
    Pointers { argument: usize, strides: Vec<i64> },
    /// A load through the pointers.
    Load,
    /// A store: pointers, then the value.
    Store,
    /// An operation on elements, all operands and the result in one layout.
    Elementwise(&'static str),
    /// The same, with another type of elements.
    Cast(&'static str),
    /// Which elements are less.
    Compare,
    /// Of two values, by a third one, the first operand.
    Select,
    /// All elements alike.
    Constant,
    /// What a loop around adds to pointers.
    Step(i64),
    /// Pointers moved by a number.
    AddPtr,
    /// A sum, or the largest element, along a dimension.
    Reduce { axis: usize, op: &'static str },
    /// A new dimension of size one.
    ExpandDims(usize),
    /// Repeats the operand.
    Broadcast,
    /// The two dimensions exchanged.
    Trans,
    /// The same elements in another shape.
    Reshape,
    /// A product of matrices, by which the layouts of all its operands are given.
    Dot,
    /// An iter_arg; the operand is what it is at first.
    Carried,
    /// What the iter_arg, the first operand, is in the next iteration: the second one.
    Yield,
    /// What the iter_arg, the operand, is behind the loop.
    LoopResult,
    /// The result of a branch: of the first block, and of the second.
    IfResult,
}

impl Kind {
    /// Whether the node makes a value.
    pub fn has_value(&self) -> bool {
        !matches!(self, Kind::Store | Kind::Yield)
    }
    /// Whether it has the same layout in another place, and decides nothing.
    pub fn follows(&self) -> bool {
        matches!(self, Kind::Yield | Kind::LoopResult)
    }
}

/// An operation, or several that share a layout.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it does.
    pub kind: Kind,
    /// What with.
    pub operands: Vec<Id>,
    /// The type of its value, or of what it stores.
    pub ty: Ty,
    /// Where it stands.
    pub block: BlockId,
}

/// A block and where it is.
#[derive(Clone, Debug)]
pub struct Block {
    /// The block around it.
    pub parent: Option<BlockId>,
    /// How often it runs for each time that the one around it does.
    pub times: f64,
    /// Iterations of the loop that it is the body of, where they are known; none for an unknown number.
    pub trips: Option<Option<u64>>,
}

/// One step of the text of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A node.
    Node(Id),
    /// The beginning of a loop with this body; its iter_args follow as nodes.
    Loop(BlockId),
    /// The end of a loop; its results follow as nodes.
    EndLoop(BlockId),
    /// The beginning of a branch.
    Then(BlockId),
    /// Its other side.
    Else(BlockId),
    /// The end of a branch with these two sides; its results follow as nodes.
    EndIf(BlockId, BlockId),
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its nodes, each after those that it uses.
    pub nodes: Vec<Node>,
    /// Its blocks; the first is that of the function.
    pub blocks: Vec<Block>,
    /// Its text.
    pub steps: Vec<Step>,
    /// Layouts that are given: of loads and stores; of a dot's result and of its operands.
    pub anchors: BTreeMap<Id, Vec<Encoding>>,
    /// Elements that the pointers among its arguments point to, and how many bytes divide the addresses.
    pub arguments: Vec<(&'static str, u64)>,
    /// The GPU.
    pub target: &'static str,
    /// Warps of a CTA.
    pub warps: u64,
}

impl Function {
    /// How often a block runs.
    pub fn times(&self, block: BlockId) -> f64 {
        let mut at = Some(block);
        std::iter::from_fn(|| {
            let block = &self.blocks[at?];
            at = block.parent;
            Some(block.times)
        })
        .product()
    }

    /// The blocks from one to the function, which comes last.
    fn path(&self, block: BlockId) -> Vec<BlockId> {
        std::iter::successors(Some(block), |block| self.blocks[*block].parent).collect()
    }

    /// The innermost block that has both.
    pub fn common(&self, a: BlockId, b: BlockId) -> BlockId {
        let above = self.path(b);
        self.path(a).into_iter().find(|block| above.contains(block)).unwrap_or(0)
    }

    /// Where a conversion of a value of block `from` stands whose uses are all in block `to`: as far in as it gets
    /// without entering a loop.
    pub fn place(&self, from: BlockId, to: BlockId) -> BlockId {
        let path = self.path(to);
        let inner: Vec<BlockId> = path.into_iter().take_while(|block| *block != from).collect();
        let enters = |block: &&BlockId| self.blocks[**block].trips.is_none();
        inner.iter().rev().take_while(enters).last().copied().unwrap_or(from)
    }

    /// Where a node uses operand `i`.
    pub fn use_block(&self, id: Id, i: usize) -> BlockId {
        let node = &self.nodes[id];
        match node.kind {
            Kind::Carried => self.blocks[node.block].parent.unwrap_or(0),
            Kind::IfResult => self.sides(id)[i],
            _ => node.block,
        }
    }

    /// The two sides of the branch that ends before a result of it.
    fn sides(&self, id: Id) -> [BlockId; 2] {
        let at = self.steps.iter().position(|step| *step == Step::Node(id)).unwrap_or(0);
        let ends = self.steps[..at].iter().rev().find_map(|step| match step {
            Step::EndIf(yes, no) => Some([*yes, *no]),
            _ => None,
        });
        ends.unwrap_or([0, 0])
    }

    /// The last node that needs each value.
    pub fn last_uses(&self) -> Vec<Id> {
        let mut last: Vec<Id> = (0..self.nodes.len()).collect();
        for (id, node) in self.nodes.iter().enumerate() {
            node.operands.iter().for_each(|operand| last[*operand] = id);
        }
        last
    }

    /// The nodes of a kind in a block.
    pub fn in_block(&self, block: BlockId, matches: impl Fn(&Kind) -> bool) -> Vec<Id> {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter(|(_, node)| node.block == block && matches(&node.kind)).map(|(id, _)| id).collect()
    }
}
