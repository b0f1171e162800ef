//! Where in the source it belongs what a back end refuses: LLVM, `ptxas` and the linker know of the code that they are given only.

use mlir_host::ir::{Attr, Op, Severity, Walk};

/// What a back end refuses, and what in the `llvm` dialect that is about.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// What it says.
    pub text: String,
    /// What that is about.
    pub about: About,
}

/// What a refusal is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// Calls of a function.
    Function(String),
    /// What lines of the code say that they are from: file, line and column.
    Place(String, u32, u32),
    /// Inline assembly that has this line.
    Assembly(String),
    /// The kernel as a whole.
    Kernel,
}

impl Refusal {
    /// What `ptxas` says about PTX.
    pub fn of_ptxas(text: String, ptx: &str) -> Self {
        let quoted = |text: &str| Some(text.split_once('\'')?.1.split_once('\'')?.0.to_owned());
        // A warning before what is fatal is about a kernel as a whole.
        let about = text.lines().filter(|line| !line.contains("warning")).find_map(|line| {
            if line.contains("Unresolved extern") {
                return quoted(line).map(About::Function);
            }
            let after = line.split_once("line ")?.1;
            let number: usize = after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
            place_of_line(ptx, number)
        });
        Self { text: format!("ptxas refused the PTX:\n{text}"), about: about.unwrap_or(About::Kernel) }
    }

    /// What LLVM's linker says about an object file.
    pub fn of_linker(text: &str) -> Self {
        let undefined =
            text.split_once("undefined symbol: ").and_then(|(_, rest)| rest.split_whitespace().next());
        let undefined = undefined.map(|name| About::Function(name.to_owned()));
        Self {
            text: format!("the linker refused the object file:\n{text}"),
            about: undefined.unwrap_or(About::Kernel),
        }
    }

    /// What LLVM's back end says, with the line of inline assembly below that it refuses.
    pub fn of_llvm(text: &str) -> Self {
        let line = text.lines().nth(1).filter(|_| text.contains("<inline asm>"));
        let about = line.map_or(About::Kernel, |line| About::Assembly(line.trim().to_owned()));
        Self { text: text.trim_end().to_owned(), about }
    }

    /// Reports it where it belongs, at the kernel where nothing better is known.
    pub fn report(&self, module: Op<'_>, kernel: &str) {
        let mut ops = Vec::new();
        module.walk(&mut |op| {
            ops.push(op);
            Walk::Advance
        });
        let symbol = |op: Op<'_>, name| op.attr(name).and_then(Attr::as_str).map(str::to_owned);
        let is_kernel =
            |op: &Op<'_>| op.name() == "llvm.func" && symbol(*op, "sym_name").as_deref() == Some(kernel);
        let found = match &self.about {
            About::Function(name) => ops.iter().find(|op| {
                let callee = op.attr("callee").map(|callee| callee.to_string());
                op.name() == "llvm.call"
                    && callee.is_some_and(|callee| callee.trim_matches(['@', '"']) == name)
            }),
            About::Assembly(line) => ops.iter().find(|op| {
                op.name() == "llvm.inline_asm"
                    && symbol(**op, "asm_string")
                        .is_some_and(|text| text.lines().any(|of| could_be(of, line)))
            }),
            About::Place(file, line, column) => ops.iter().find(|op| {
                op.loc().position().is_some_and(|at| {
                    at.1 == *line && at.2 == *column && at.0.rsplit('/').next() == file.rsplit('/').next()
                })
            }),
            About::Kernel => None,
        };
        found.or_else(|| ops.iter().find(|op| is_kernel(op))).copied().unwrap_or(module).emit(
            Severity::Error,
            false,
            &self.text,
            &[],
        );
    }
}

/// Whether a line of inline assembly is the pattern that becomes `made`: what is between operands is in `made`, in this order.
fn could_be(pattern: &str, made: &str) -> bool {
    let mut rest = made;
    let mut parts = pattern.trim().split('$');
    let first = parts.next().unwrap_or_default();
    let Some(after) = rest.strip_prefix(first) else { return false };
    rest = after;
    for part in parts {
        let text = part.trim_start_matches(|c: char| c.is_ascii_digit());
        let Some(at) = rest.find(text) else { return false };
        rest = &rest[at + text.len()..];
    }
    !pattern.trim().is_empty()
}

/// What a line of PTX, counted from one, says that it is from: the last `.loc` before it (PTX ISA, "Debugging Directives").
fn place_of_line(ptx: &str, number: usize) -> Option<About> {
    let before: Vec<&str> = ptx.lines().take(number.saturating_sub(1)).collect();
    let mut words =
        before.iter().rev().find_map(|line| line.trim_start().strip_prefix(".loc"))?.split_whitespace();
    let (file, line, column) = (words.next()?, words.next()?, words.next()?);
    let column = column.trim_end_matches(',');
    let name = ptx.lines().find_map(|text| {
        let (index, name) =
            text.trim_start().strip_prefix(".file")?.trim_start().split_once(char::is_whitespace)?;
        (index == file).then(|| name.trim().trim_matches('"').to_owned())
    })?;
    Some(About::Place(name, line.parse().ok()?, column.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_ptx_say_where_they_are_from() {
        let ptx = ".file\t1 \"/code/a.py\"\n\t.loc\t1 7 3\n\tadd\n\t.loc\t1 8 5, function_name $L, inlined_at 1 2 3\n\tbad\n";
        let at = |line| place_of_line(ptx, line);
        assert_eq!(at(3), Some(About::Place("/code/a.py".to_owned(), 7, 3)));
        assert_eq!(at(5), Some(About::Place("/code/a.py".to_owned(), 8, 5)));
        assert_eq!(at(1), None);
    }

    #[test]
    fn what_ptxas_and_the_linker_miss_is_a_function() {
        let missing = Refusal::of_ptxas("ptxas fatal   : Unresolved extern function 'f'".to_owned(), "");
        assert_eq!(missing.about, About::Function("f".to_owned()));
        let missing = Refusal::of_linker("ld.lld: error: undefined symbol: g\n>>> referenced by k.o");
        assert_eq!(missing.about, About::Function("g".to_owned()));
    }

    #[test]
    fn lines_of_assembly_are_known_again() {
        assert!(could_be(" mov $0, $1;", "mov v1, v2;"));
        assert!(!could_be("mov $0, $1;", "add v1, v2;"));
        assert!(!could_be("", "add"));
    }
}
