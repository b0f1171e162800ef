//! What the engine chose, for those who ask.

use crate::choice::Choice;
use crate::ir_util::enclosing_function;
use mlir_host::ir::{Loc, Op};
use std::cell::RefCell;

/// A choice, where it is about, and the function that it is a part of.
struct Note<'c> {
    function: Option<Op<'c>>,
    place: Loc<'c>,
    text: String,
}

/// Choices of an attempt, told once the attempt turns out to make a function cheaper.
pub struct Said<'c>(Option<RefCell<Vec<Note<'c>>>>);

impl<'c> Said<'c> {
    /// Nothing yet, and nothing ever unless somebody `asks`.
    pub fn new(asks: bool) -> Self {
        Self(asks.then(RefCell::default))
    }

    /// Whether anybody asks.
    pub fn asks(&self) -> bool {
        self.0.is_some()
    }

    /// Notes a choice about `op`.
    pub fn note(&self, op: Op<'c>, choice: &Choice) {
        self.note_at(op, op.loc(), choice);
    }

    /// Notes a choice about something at `place`, in the function of `op`.
    pub fn note_at(&self, op: Op<'c>, place: Loc<'c>, choice: &Choice) {
        if let Some(notes) = &self.0 {
            let function = enclosing_function(op);
            notes.borrow_mut().push(Note { function, place, text: choice.to_string() });
        }
    }

    /// Forgets what was noted.
    pub fn forget(&self) {
        self.0.iter().for_each(|notes| notes.borrow_mut().clear());
    }

    /// Tells what was noted about a function.
    pub fn tell(&self, function: Op<'c>) {
        let Some(notes) = &self.0 else { return };
        for note in notes.borrow().iter().filter(|note| note.function == Some(function)) {
            note.place.remark(&note.text);
        }
    }
}
