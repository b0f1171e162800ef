//! Type converters and signatures.

use crate::asm::Reported;
use crate::ffi;
use crate::ir::{FunctionType, Loc, Op, Region, Type, Value};
use crate::rewrite::Rewriter;

/// What becomes of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Converted<'c> {
    /// The next conversion is asked. If there is none, there is no conversion.
    Unknown,
    /// There is no conversion.
    Fails,
    /// This type. A type that becomes itself is legal.
    To(Type<'c>),
    /// Several types, or none.
    ToMany(Vec<Type<'c>>),
}

/// The conversion of a type that is legal: for the end of the list, where all are that no other conversion knows.
pub fn keep(ty: Type<'_>) -> Converted<'_> {
    Converted::To(ty)
}

/// Makes values of some types of values of others. `None` where it cannot. What it makes is not converted any further.
pub type MaterializeFn =
    for<'a, 'c> fn(&mut Rewriter<'c>, &Materialization<'a, 'c>) -> Result<Option<Vec<Value<'c>>>, Reported>;

/// What is wanted.
#[non_exhaustive]
pub struct Materialization<'a, 'c> {
    /// Values of these types; one, where it is for what was not converted.
    pub types: &'a [Type<'c>],
    /// Made of these.
    pub inputs: &'a [Value<'c>],
    /// The type before any conversion, where it is for what was converted.
    pub original: Option<Type<'c>>,
    /// Where.
    pub loc: Loc<'c>,
}

/// Converts types. Conversions are asked in order.
pub struct TypeConverter {
    /// For diagnostics.
    pub name: &'static str,
    /// The conversions. What none of them knows has none. MLIR may ask once for each type, and remember.
    pub conversions: &'static [for<'c> fn(Type<'c>) -> Converted<'c>],
    /// Makes a value of the type before conversion, for what was not converted.
    pub to_source: Option<MaterializeFn>,
    /// Makes values of the types after conversion.
    pub to_target: Option<MaterializeFn>,
}

impl TypeConverter {
    /// A converter without conversions and materializations, to be extended by struct update.
    pub const fn new(name: &'static str) -> Self {
        Self { name, conversions: &[], to_source: None, to_target: None }
    }
    /// What the conversions say.
    pub(crate) fn ask<'c>(&self, ty: Type<'c>) -> Converted<'c> {
        let mut answers = self.conversions.iter().map(|convert| convert(ty));
        answers.find(|answer| *answer != Converted::Unknown).unwrap_or(Converted::Unknown)
    }
    /// The types that a type becomes.
    pub fn convert<'c>(&self, ty: Type<'c>) -> Option<Vec<Type<'c>>> {
        match self.ask(ty) {
            Converted::To(ty) => Some(vec![ty]),
            Converted::ToMany(types) => Some(types),
            Converted::Unknown | Converted::Fails => None,
        }
    }
    /// The one type that a type becomes.
    pub fn convert_one<'c>(&self, ty: Type<'c>) -> Option<Type<'c>> {
        match self.convert(ty)?[..] {
            [ty] => Some(ty),
            _ => None,
        }
    }
    /// The types that several types become, one after another.
    pub fn convert_all<'c>(&self, types: &[Type<'c>]) -> Option<Vec<Type<'c>>> {
        let lists: Option<Vec<_>> = types.iter().map(|ty| self.convert(*ty)).collect();
        Some(lists?.concat())
    }
    /// The type of a function whose inputs and results are converted.
    pub fn convert_function_type<'c>(&self, ty: FunctionType<'c>) -> Option<FunctionType<'c>> {
        let (inputs, results) = (self.convert_all(&ty.inputs())?, self.convert_all(&ty.results())?);
        Some(FunctionType::new(ty.ty().context(), &inputs, &results))
    }
    /// Whether a type becomes itself.
    pub fn is_legal_type(&self, ty: Type<'_>) -> bool {
        self.convert_one(ty) == Some(ty)
    }
    /// Whether the types of all operands and results are legal.
    pub fn is_legal(&self, op: Op<'_>) -> bool {
        op.operands().chain(op.results()).all(|value| self.is_legal_type(value.ty()))
    }
    /// Whether the types of all arguments of a region's blocks are legal.
    pub fn is_legal_region(&self, region: Region<'_>) -> bool {
        region.blocks().all(|block| block.args().all(|arg| self.is_legal_type(arg.ty())))
    }
    /// Whether the inputs and results of a function, and the arguments of its blocks, are legal.
    pub fn is_legal_function(&self, op: Op<'_>) -> bool {
        let ty = op.attr("function_type").and_then(|attr| attr.as_type()).and_then(|ty| ty.as_function());
        let types = ty.map_or(Vec::new(), |ty| [ty.inputs(), ty.results()].concat());
        types.iter().all(|ty| self.is_legal_type(*ty)) && op.regions().all(|body| self.is_legal_region(body))
    }
}

/// Materializes by `builtin.unrealized_conversion_cast`, for another pass to get rid of.
///
/// # Errors
/// When MLIR refuses it, which it has reported.
pub fn cast<'c>(
    rewriter: &mut Rewriter<'c>,
    wanted: &Materialization<'_, 'c>,
) -> Result<Option<Vec<Value<'c>>>, Reported> {
    let name = "builtin.unrealized_conversion_cast";
    let op = rewriter.generic(name, wanted.loc, wanted.inputs, wanted.types, &[])?;
    Ok(Some(op.results().collect()))
}

enum Step<'c> {
    Convert(usize, Vec<Type<'c>>),
    Add(Vec<Type<'c>>),
    Replace(usize, Vec<Value<'c>>),
}

/// What becomes of the arguments of a block. An argument of which it says nothing goes away, and must have no uses by then.
pub struct Signature<'c> {
    inputs: usize,
    steps: Vec<Step<'c>>,
}

impl<'c> Signature<'c> {
    /// Of a block with so many arguments.
    pub fn new(inputs: usize) -> Self {
        Self { inputs, steps: Vec::new() }
    }
    /// All of them are converted.
    pub fn of(types: &TypeConverter, inputs: &[Type<'c>]) -> Option<Self> {
        let mut signature = Self::new(inputs.len());
        for (i, ty) in inputs.iter().enumerate() {
            signature.convert(i, types.convert(*ty)?);
        }
        Some(signature)
    }
    /// An argument becomes arguments of these types, behind those that there are.
    ///
    /// # Panics
    /// When something was said of it already.
    pub fn convert(&mut self, input: usize, types: Vec<Type<'c>>) {
        self.assert_open(input);
        self.steps.push(Step::Convert(input, types));
    }
    /// Arguments more.
    pub fn add(&mut self, types: Vec<Type<'c>>) {
        self.steps.push(Step::Add(types));
    }
    /// An argument goes away, and becomes these values.
    ///
    /// # Panics
    /// When something was said of it already, or there are no values.
    pub fn replace(&mut self, input: usize, values: Vec<Value<'c>>) {
        self.assert_open(input);
        assert!(!values.is_empty(), "argument {input} becomes no value");
        self.steps.push(Step::Replace(input, values));
    }
    /// The types of the new arguments.
    pub fn types(&self) -> Vec<Type<'c>> {
        let lists = self.steps.iter().filter_map(|step| match step {
            Step::Convert(_, types) | Step::Add(types) => Some(types),
            Step::Replace(..) => None,
        });
        lists.flatten().copied().collect()
    }
    /// How many arguments the block has before.
    pub fn num_inputs(&self) -> usize {
        self.inputs
    }
    fn assert_open(&self, input: usize) {
        assert!(input < self.inputs, "argument {input} of {}", self.inputs);
        let said = self.steps.iter().any(|step| match step {
            Step::Convert(i, _) | Step::Replace(i, _) => *i == input,
            Step::Add(_) => false,
        });
        assert!(!said, "argument {input} becomes two things");
    }
    /// For the shim, while this lives.
    pub(super) fn specs(&self) -> Vec<ffi::SignatureStep> {
        let spec = |step: &Step<'c>| {
            let (types, values) = (std::ptr::null(), std::ptr::null());
            match step {
                Step::Convert(input, list) => ffi::SignatureStep {
                    kind: 0,
                    input: *input as isize,
                    types: list.as_ptr().cast(),
                    values,
                    n: list.len() as isize,
                },
                Step::Add(list) => ffi::SignatureStep {
                    kind: 1,
                    input: 0,
                    types: list.as_ptr().cast(),
                    values,
                    n: list.len() as isize,
                },
                Step::Replace(input, list) => ffi::SignatureStep {
                    kind: 2,
                    input: *input as isize,
                    types,
                    values: list.as_ptr().cast(),
                    n: list.len() as isize,
                },
            }
        };
        self.steps.iter().map(spec).collect()
    }
}
