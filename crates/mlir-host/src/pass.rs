//! Passes hosted in Rust, in MLIR's own registry.

use crate::asm::Reported;
use crate::ffi;
use crate::ir::Op;
use crate::once::Once;
use mlir_sys::MlirStringRef;
use std::ffi::c_void;

/// The result of a pass: an error was reported where it occurred.
pub type PassResult = Result<(), Reported>;

/// The type and default of an option.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum OptionKind {
    /// `name=true`
    Bool(bool),
    /// `name=42`
    Int(i64),
    /// `name=text`
    Str(&'static str),
    /// `name=1,2,3`
    Ints(&'static [i64]),
    /// `name=one,two`
    Strs(&'static [&'static str]),
}

/// An option of a pass.
pub struct PassOption {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line about it, for `--help`.
    pub description: &'static str,
    /// Type and default.
    pub kind: OptionKind,
}

/// A pass.
pub struct PassDef {
    /// The flag, without dashes.
    pub argument: &'static str,
    /// One line about it, for `--help`.
    pub description: &'static str,
    /// The operation it runs on; empty for any.
    pub anchor: &'static str,
    /// Dialects whose operations it makes.
    pub dependencies: &'static [&'static str],
    /// Options.
    pub options: &'static [PassOption],
    /// The work.
    pub run: for<'c> fn(Op<'c>, &Options) -> PassResult,
    /// Filled on registration.
    pub registered: Once<()>,
}

impl PassDef {
    /// A pass on any operation without options, to be extended by struct update.
    pub const fn new(
        argument: &'static str,
        description: &'static str,
        run: for<'c> fn(Op<'c>, &Options) -> PassResult,
    ) -> Self {
        Self {
            argument,
            description,
            anchor: "",
            dependencies: &[],
            options: &[],
            run,
            registered: Once::new(),
        }
    }

    /// Registers the pass with MLIR, once.
    pub fn register(&'static self) {
        self.registered.get_or_init(|| {
            crate::dialect::install_callbacks();
            let options: Vec<ffi::PassOptionSpec> = self
                .options
                .iter()
                .map(|option| {
                    let mut spec = ffi::PassOptionSpec {
                        name: ffi::str_ref(option.name),
                        description: ffi::str_ref(option.description),
                        kind: 0,
                        int_default: 0,
                        string_default: ffi::str_ref(""),
                        int_defaults: std::ptr::null(),
                        string_defaults: std::ptr::null(),
                        num_defaults: 0,
                    };
                    match option.kind {
                        OptionKind::Bool(value) => spec.int_default = value.into(),
                        OptionKind::Int(value) => (spec.kind, spec.int_default) = (1, value),
                        OptionKind::Str(value) => (spec.kind, spec.string_default) = (2, ffi::str_ref(value)),
                        OptionKind::Ints(values) => {
                            (spec.kind, spec.int_defaults) = (3, values.as_ptr());
                            spec.num_defaults = values.len() as isize;
                        }
                        OptionKind::Strs(values) => {
                            let texts = values.iter().map(|text| ffi::str_ref(text)).collect();
                            (spec.kind, spec.string_defaults) = (4, crate::dialect::leak(texts));
                            spec.num_defaults = values.len() as isize;
                        }
                    }
                    spec
                })
                .collect();
            let dependencies: Vec<MlirStringRef> =
                self.dependencies.iter().map(|name| ffi::str_ref(name)).collect();
            let spec = ffi::PassSpec {
                def: (self as *const Self).cast::<c_void>(),
                argument: ffi::str_ref(self.argument),
                description: ffi::str_ref(self.description),
                anchor: ffi::str_ref(self.anchor),
                num_dependencies: dependencies.len() as isize,
                dependencies: crate::dialect::leak(dependencies),
                num_options: options.len() as isize,
                options: crate::dialect::leak(options),
            };
            // SAFETY: the spec lives for the process.
            unsafe { ffi::mhRegisterPass(crate::dialect::leak(vec![spec])) }
        });
    }
}

/// The options of a running pass.
pub struct Options {
    def: &'static PassDef,
    values: Values,
}

enum Values {
    /// Of a pass object of MLIR's.
    Pass(*mut c_void),
    /// Set by name, for direct calls.
    Given(Vec<(String, OptionValue)>),
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum OptionValue {
    Bool(bool),
    Int(i64),
    Str(String),
    Ints(Vec<i64>),
    Strs(Vec<String>),
}

impl Options {
    /// # Safety
    /// `raw` is the hosted pass of `def`, alive while this value is.
    pub(crate) unsafe fn new(def: &'static PassDef, raw: *mut c_void) -> Self {
        Self { def, values: Values::Pass(raw) }
    }

    /// Options to call `def.run` with, outside of a pass manager.
    ///
    /// # Panics
    /// When an option is unknown.
    pub fn given(def: &'static PassDef, values: &[(&str, OptionValue)]) -> Self {
        for (name, _) in values {
            assert!(
                def.options.iter().any(|option| option.name == *name),
                "{} has no option {name}",
                def.argument
            );
        }
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Self { def, values: Values::Given(values) }
    }

    fn get(&self, name: &str) -> OptionValue {
        let option = self.def.options.iter().find(|option| option.name == name);
        let option = option.unwrap_or_else(|| panic!("{} has no option {name}", self.def.argument));
        match &self.values {
            Values::Given(values) => match (values.iter().find(|value| value.0 == name), option.kind) {
                (Some((_, value)), _) => value.clone(),
                (None, OptionKind::Bool(value)) => OptionValue::Bool(value),
                (None, OptionKind::Int(value)) => OptionValue::Int(value),
                (None, OptionKind::Str(value)) => OptionValue::Str(value.to_owned()),
                (None, OptionKind::Ints(values)) => OptionValue::Ints(values.to_vec()),
                (None, OptionKind::Strs(values)) => {
                    OptionValue::Strs(values.iter().map(|text| (*text).to_owned()).collect())
                }
            },
            Values::Pass(raw) => {
                // The shim numbers options of one kind in order.
                let same =
                    |kind: &OptionKind| std::mem::discriminant(kind) == std::mem::discriminant(&option.kind);
                let before = self.def.options.iter().take_while(|other| !std::ptr::eq(*other, option));
                let index = before.filter(|other| same(&other.kind)).count() as isize;
                // SAFETY: the pass is alive, the index counts its options.
                unsafe {
                    match option.kind {
                        OptionKind::Bool(_) => OptionValue::Bool(ffi::mhPassBool(*raw, index) != 0),
                        OptionKind::Int(_) => OptionValue::Int(ffi::mhPassInt(*raw, index)),
                        OptionKind::Str(_) => {
                            OptionValue::Str(ffi::str_of(ffi::mhPassString(*raw, index)).to_owned())
                        }
                        OptionKind::Ints(_) => {
                            let all = 0..ffi::mhPassIntsCount(*raw, index);
                            OptionValue::Ints(all.map(|at| ffi::mhPassIntsAt(*raw, index, at)).collect())
                        }
                        OptionKind::Strs(_) => {
                            let all = 0..ffi::mhPassStringsCount(*raw, index);
                            let text = |at| ffi::str_of(ffi::mhPassStringsAt(*raw, index, at)).to_owned();
                            OptionValue::Strs(all.map(text).collect())
                        }
                    }
                }
            }
        }
    }

    /// A boolean option. Panics when `name` is not one.
    pub fn bool(&self, name: &str) -> bool {
        match self.get(name) {
            OptionValue::Bool(value) => value,
            other => panic!("option {name} is {other:?}, not a boolean"),
        }
    }
    /// An integer option. Panics when `name` is not one.
    pub fn int(&self, name: &str) -> i64 {
        match self.get(name) {
            OptionValue::Int(value) => value,
            other => panic!("option {name} is {other:?}, not an integer"),
        }
    }
    /// A string option. Panics when `name` is not one.
    pub fn string(&self, name: &str) -> String {
        match self.get(name) {
            OptionValue::Str(value) => value,
            other => panic!("option {name} is {other:?}, not a string"),
        }
    }
    /// A list of integers. Panics when `name` is not one.
    pub fn ints(&self, name: &str) -> Vec<i64> {
        match self.get(name) {
            OptionValue::Ints(values) => values,
            other => panic!("option {name} is {other:?}, not a list of integers"),
        }
    }
    /// A list of strings. Panics when `name` is not one.
    pub fn strings(&self, name: &str) -> Vec<String> {
        match self.get(name) {
            OptionValue::Strs(values) => values,
            other => panic!("option {name} is {other:?}, not a list of strings"),
        }
    }
}
