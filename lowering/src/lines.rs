//! Lines of the source, for debuggers and profilers: locations as MLIR's translation to LLVM IR takes them.
//!
//! The translation gives each place the scope of the function that it is lowered into, and with it that function's file, and it
//! drops what was inlined where its places have no scope of their own. So a place in another file gets a scope in that file, and so
//! does every place of an inlined function; what it was inlined at follows as `inlinedAt`. All scopes are blocks of the function
//! that is lowered: locations do not say what the functions that were inlined are called.

use std::borrow::Cow;

use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Context, Loc, LocKind, Op};

/// The lines of one function.
#[derive(Default)]
pub struct Lines<'c> {
    /// Its subprogram and its file; none where nothing is known, or nobody wants lines.
    function: Option<(Attr<'c>, String)>,
    blocks: FastMap<&'c str, Attr<'c>>,
    known: FastMap<Loc<'c>, Loc<'c>>,
}

impl<'c> Lines<'c> {
    /// Of the function `op`, which will be called `name`, and the location that it gets.
    pub fn of_function(op: Op<'c>, name: &str) -> (Self, Loc<'c>) {
        let loc = op.loc();
        let made = || {
            let (path, line, _) = loc.position()?;
            Some((subprogram(op.context(), name, &path, line)?, path))
        };
        let function = made();
        let scoped = function.as_ref().map_or(loc, |(scope, _)| loc.fused(*scope));
        (Self { function, ..Self::default() }, scoped)
    }

    /// A place, as the translation takes it.
    pub fn of(&mut self, loc: Loc<'c>) -> Loc<'c> {
        if self.function.is_none() {
            return loc;
        }
        if let Some(known) = self.known.get(&loc) {
            return *known;
        }
        let made = self.in_function(loc).unwrap_or(loc);
        self.known.insert(loc, made);
        made
    }

    /// A place of the function itself, if it is one.
    fn in_function(&mut self, loc: Loc<'c>) -> Option<Loc<'c>> {
        match loc.kind() {
            LocKind::File(path) if self.function.as_ref().is_some_and(|(_, own)| own == path) => Some(loc),
            LocKind::CallSite { callee, caller } => match self.in_function(caller) {
                Some(caller) => {
                    Some(self.in_block(callee).map_or(caller, |callee| callee.inlined_at(caller)))
                }
                None => self.in_function(callee),
            },
            LocKind::File(_) => self.in_block(loc),
            LocKind::Name(place) => self.in_function(place),
            LocKind::Fused(places) => places.into_iter().find_map(|place| self.in_function(place)),
            _ => None,
        }
    }

    /// A place with a scope of its own, if it is one.
    fn in_block(&mut self, loc: Loc<'c>) -> Option<Loc<'c>> {
        match loc.kind() {
            LocKind::File(path) => {
                let (function, _) = self.function.as_ref()?;
                let made = || Attr::di_block_in_file(*function, &unquoted(path));
                Some(loc.fused(*self.blocks.entry(path).or_insert_with(made)))
            }
            LocKind::Name(place) => self.in_block(place),
            LocKind::CallSite { callee, caller } => match (self.in_block(callee), self.in_block(caller)) {
                (Some(callee), Some(caller)) => Some(callee.inlined_at(caller)),
                (callee, caller) => callee.or(caller),
            },
            LocKind::Fused(places) => places.into_iter().find_map(|place| self.in_block(place)),
            _ => None,
        }
    }
}

/// The path of a file as code names it: ptxas does not read a quotation mark in one, escaped or not.
fn unquoted(path: &str) -> Cow<'_, str> {
    if path.contains('"') { path.replace('"', "'").into() } else { path.into() }
}

fn subprogram<'c>(ctx: Context<'c>, name: &str, path: &str, line: u32) -> Option<Attr<'c>> {
    let quoted = |text: &str| Attr::string(ctx, text).to_string();
    let path = unquoted(path);
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", &path));
    let file = format!("#llvm.di_file<{} in {}>", quoted(file), quoted(folder));
    let unit = format!(
        "#llvm.di_compile_unit<id = distinct[0]<>, sourceLanguage = DW_LANG_C, file = {file}, \
         producer = \"ttopt\", isOptimized = true, emissionKind = DebugDirectivesOnly>"
    );
    let name = quoted(name);
    let text = format!(
        "#llvm.di_subprogram<id = distinct[1]<>, compileUnit = {unit}, scope = {file}, name = {name}, \
         linkageName = {name}, file = {file}, line = {line}, scopeLine = {line}, \
         subprogramFlags = \"Definition|Optimized\", \
         type = #llvm.di_subroutine_type<callingConvention = DW_CC_normal>>"
    );
    Attr::parse(ctx, &text)
}
