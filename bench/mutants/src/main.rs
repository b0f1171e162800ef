//! Writes Rust files anew with all small changes (*mutants*) in them, one of which is chosen when the program runs:
//! `a + b` becomes `(if mutant::is(7) { a - b } else if mutant::is(8) { a * b } else { a + b })`.
//!
//!     mutants LEFT_OUT FILE…
//!
//! LEFT_OUT is a file with the numbers of mutants to leave out, those that do not compile. Each FILE is changed in place.
//! Prints the list of mutants as JSON: number, file, line and text of the change, and the lines of the new file where
//! the changed code is, which are its own.
//!
//! Changed are operators, negations, guards, and arms of matches that have a last arm for the rest; not code in macros, in
//! constants and in `const` functions, nor `a | b` to `a ^ b`, which is the same where no bit is in both.

use proc_macro2::Span;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, UnOp};

/// Something that can be changed.
struct Place {
    /// What is replaced.
    range: Range<usize>,
    line: usize,
    /// What may stand there instead, each with what it says of itself.
    alternatives: Vec<Alternative>,
    kind: Kind,
}

enum Kind {
    /// An expression: alternatives are expressions.
    Expression,
    /// What stands behind the pattern of an arm: alternatives are further conditions.
    Condition { guard: Option<Range<usize>> },
}

struct Alternative {
    text: String,
    name: String,
}

struct Finder<'a> {
    source: &'a str,
    places: Vec<Place>,
}

fn others(op: &BinOp) -> &'static [&'static str] {
    match op {
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Lt(_) => &["==", ">", "<="],
        BinOp::Gt(_) => &["==", "<", ">="],
        BinOp::Le(_) => &[">"],
        BinOp::Ge(_) => &["<"],
        BinOp::Add(_) => &["-", "*"],
        BinOp::Sub(_) => &["+", "/"],
        BinOp::Mul(_) => &["+", "/"],
        BinOp::Div(_) => &["%", "*"],
        BinOp::Rem(_) => &["/", "+"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::BitAnd(_) => &["|", "^"],
        BinOp::BitOr(_) => &["&"],
        BinOp::BitXor(_) => &["|", "&"],
        BinOp::AddAssign(_) => &["-=", "*="],
        BinOp::SubAssign(_) => &["+=", "/="],
        BinOp::MulAssign(_) => &["+=", "/="],
        BinOp::DivAssign(_) => &["%=", "*="],
        BinOp::RemAssign(_) => &["/=", "+="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        BinOp::BitAndAssign(_) => &["|="],
        BinOp::BitOrAssign(_) => &["&="],
        BinOp::BitXorAssign(_) => &["|=", "&="],
        _ => &[],
    }
}

/// Whether `let` is an operand of `&&`: that can be in no parentheses.
fn binds(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(e) if matches!(e.op, BinOp::And(_)) => binds(&e.left) || binds(&e.right),
        _ => false,
    }
}

impl Finder<'_> {
    fn text(&self, span: Span) -> &str {
        &self.source[span.byte_range()]
    }

    fn place(&mut self, span: Span, at: Span, alternatives: Vec<Alternative>, kind: Kind) {
        if !alternatives.is_empty() {
            self.places.push(Place { range: span.byte_range(), line: at.start().line, alternatives, kind });
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_expr_binary(&mut self, e: &'ast syn::ExprBinary) {
        if !binds(&e.left) && !binds(&e.right) {
            let (left, right) = (self.text(e.left.span()), self.text(e.right.span()));
            let op = self.text(e.op.span());
            let other = |new: &&str| Alternative {
                text: format!("({left}) {new} ({right})"),
                name: format!("replace {op} with {new}"),
            };
            let alternatives = others(&e.op).iter().map(other).collect();
            self.place(e.span(), e.op.span(), alternatives, Kind::Expression);
        }
        visit::visit_expr_binary(self, e);
    }

    fn visit_expr_unary(&mut self, e: &'ast syn::ExprUnary) {
        if matches!(e.op, UnOp::Not(_) | UnOp::Neg(_)) {
            let name = format!("delete {}", self.text(e.op.span()));
            let alternative = Alternative { text: self.text(e.expr.span()).to_owned(), name };
            self.place(e.span(), e.span(), vec![alternative], Kind::Expression);
        }
        visit::visit_expr_unary(self, e);
    }

    fn visit_expr_match(&mut self, e: &'ast syn::ExprMatch) {
        let rest = e.arms.iter().rposition(|arm| matches!(arm.pat, syn::Pat::Wild(_)) && arm.guard.is_none());
        for (number, arm) in e.arms.iter().enumerate() {
            let pattern = self.text(arm.pat.span()).to_owned();
            let mut alternatives = Vec::new();
            if rest.is_some_and(|rest| number < rest) {
                alternatives.push(Alternative {
                    text: "false".to_owned(),
                    name: format!("delete the arm {pattern}"),
                });
            }
            let guard = arm.guard.as_ref().map(|(_, guard)| guard).filter(|guard| !binds(guard));
            if arm.guard.is_some() && guard.is_none() {
                continue;
            }
            if guard.is_some() {
                let name = format!("replace the guard of {pattern} with true");
                alternatives.push(Alternative { text: "true".to_owned(), name });
            }
            let (end, guard) =
                (arm.pat.span().byte_range().end, guard.map(|guard| guard.span().byte_range()));
            let range = end..guard.as_ref().map_or(end, |guard| guard.end);
            if !alternatives.is_empty() {
                let line = arm.pat.span().start().line;
                self.places.push(Place { range, line, alternatives, kind: Kind::Condition { guard } });
            }
        }
        visit::visit_expr_match(self, e);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if item.sig.constness.is_none() {
            visit::visit_item_fn(self, item);
        }
    }
    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.constness.is_none() {
            visit::visit_impl_item_fn(self, item);
        }
    }
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !item.attrs.iter().any(|attr| attr.path().is_ident("cfg")) {
            visit::visit_item_mod(self, item);
        }
    }
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
}

/// The new text of a file.
struct Writer<'a> {
    source: &'a str,
    places: &'a [Place],
    /// The number of each place's first alternative.
    first: &'a [usize],
    left_out: &'a HashSet<usize>,
    out: String,
    /// First and last line of alternatives in the new text.
    lines: HashMap<usize, [usize; 2]>,
}

impl Writer<'_> {
    fn line(&self) -> usize {
        1 + self.out.matches('\n').count()
    }

    /// Writes what lies in a range, and the places inside of it from the `at`-th on.
    fn write(&mut self, range: Range<usize>, at: usize) {
        let (mut from, mut next) = (range.start, at);
        while let Some(place) = self.places.get(next).filter(|place| place.range.end <= range.end) {
            if place.range.start < from || self.is_empty(next) {
                next += 1;
                continue;
            }
            self.out.push_str(&self.source[from..place.range.start]);
            self.change(next);
            from = place.range.end;
            next += 1;
        }
        self.out.push_str(&self.source[from..range.end]);
    }

    fn is_empty(&self, at: usize) -> bool {
        (0..self.places[at].alternatives.len()).all(|n| self.left_out.contains(&(self.first[at] + n)))
    }

    fn alternative(&mut self, number: usize, text: &str) {
        self.out.push('\n');
        let line = self.line();
        self.out.push_str(text);
        self.lines.insert(number, [line, self.line()]);
        self.out.push('\n');
    }

    fn change(&mut self, at: usize) {
        let place = &self.places[at];
        let left = (0..place.alternatives.len()).filter(|n| !self.left_out.contains(&(self.first[at] + n)));
        let numbered: Vec<(usize, &str)> =
            left.map(|n| (self.first[at] + n, place.alternatives[n].text.as_str())).collect();
        let inside = match &place.kind {
            Kind::Expression => {
                self.out.push('(');
                Some(place.range.clone())
            }
            Kind::Condition { guard } => {
                self.out.push_str(" if ");
                guard.clone()
            }
        };
        for (number, text) in numbered {
            self.out.push_str(&format!("if crate::mutant::is({number}) {{"));
            self.alternative(number, text);
            self.out.push_str("} else ");
        }
        self.out.push_str("{ ");
        match inside {
            Some(range) => self.write(range, at + 1),
            None => self.out.push_str("true"),
        }
        self.out.push_str(" }");
        if matches!(place.kind, Kind::Expression) {
            self.out.push(')');
        }
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let left_out = std::fs::read_to_string(args.next().expect("a file of numbers")).expect("numbers");
    let left_out: HashSet<usize> =
        left_out.split_whitespace().map(|n| n.parse().expect("a number")).collect();
    let (mut number, mut listed) = (1, Vec::new());
    for file in args {
        let source = std::fs::read_to_string(&file).expect("a file");
        let parsed = syn::parse_file(&source).unwrap_or_else(|err| panic!("{file}: {err}"));
        let mut finder = Finder { source: &source, places: Vec::new() };
        finder.visit_file(&parsed);
        // Those around others first.
        finder.places.sort_by_key(|place| (place.range.start, std::cmp::Reverse(place.range.end)));
        let mut first = Vec::new();
        for place in &finder.places {
            first.push(number);
            number += place.alternatives.len();
        }
        let (out, lines) = (String::new(), HashMap::new());
        let mut writer = Writer {
            source: &source,
            places: &finder.places,
            first: &first,
            left_out: &left_out,
            out,
            lines,
        };
        writer.write(0..source.len(), 0);
        for (place, first) in finder.places.iter().zip(&first) {
            for (n, alternative) in place.alternatives.iter().enumerate() {
                listed.push(serde_json::json!({
                    "number": first + n, "file": file, "line": place.line, "name": alternative.name,
                    "lines": writer.lines.get(&(first + n)),
                }));
            }
        }
        std::fs::write(&file, writer.out).expect("a file to write");
    }
    println!("{}", serde_json::Value::from(listed));
}
