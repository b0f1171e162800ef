//! Rings that leave shared memory for one more CTA, where registers suffice for it. A dot that runs beside the program takes a slot more than
//! one that the same iteration waits for, and may take the shared memory of another CTA, which would fill the same waits. How many registers
//! code needs is known when it is there (`docs/schedules.md`, "Stages or CTAs").

use super::loads_ahead::Without;
use super::{Compilation, Options, Passes, Stage, as_op, number, target_of};
use crate::overrides;
use anyhow::Result;
use linear_layout::target::Vendor;
use ttopt_passes::schedule::pass::COULD_LEAVE_ROOM;

impl Compilation<'_, '_> {
    /// Makes the TTGIR again, with rings that leave room for one more CTA, if the code that becomes of it leaves registers for that one.
    pub(super) fn leave_room(&mut self) -> Result<()> {
        let module = as_op(&self.module);
        let ctas = number(&self.module, COULD_LEAVE_ROOM);
        module.remove_attr(COULD_LEAVE_ROOM);
        // A pipeline that somebody gives may not hand the option on.
        let is_wanted = !self.leaves_room
            && self.options.emit >= Stage::Ttgir
            && self.options.max_registers.is_none()
            && [Stage::Ttir, Stage::Ttgir]
                .iter()
                .all(|stage| overrides::of(&self.options.overrides, *stage).is_none());
        if !is_wanted || self.vendor() != Some(Vendor::Nvidia) {
            return Ok(());
        }
        let Some(ctas) = ctas else { return Ok(()) };
        // What takes the place of later stages does not change which TTGIR there is.
        let options = Options { overrides: Vec::new(), ..self.options_of_second() };
        let other = self.made_without(Without::Slots, options)?;
        let (Some(target), Some(other)) = (target_of(&self.module), other) else { return Ok(()) };
        if other.ctas <= ctas {
            return Ok(());
        }
        if self.options.explain {
            as_op(&self.module).remark(format!(
                "rings of fewer slots leave shared memory for {} CTAs, whose code has registers beside each other: the kernel is compiled anew with these",
                other.ctas
            ));
        }
        let mut pipeline = Passes::of(self.options, target);
        pipeline.leave_room = true;
        self.passes = Passes::as_told(&pipeline, self.passes.prints);
        (self.module, self.leaves_room) = ((self.anew)()?, true);
        self.make_ttgir()
    }
}
