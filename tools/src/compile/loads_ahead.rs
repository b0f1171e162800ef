//! Kernels once more without loads that wait in registers for later iterations, and with one stage where one was asked for. Whether loads ahead
//! pay is known when registers are allocated: for NVIDIA GPUs both texts are assembled (`docs/ptxas.md`, "A second text"), code for AMD GPUs says what it spills (`docs/amd.md`).

use super::{Artifacts, Compilation, Compiled, Metadata, Options, Passes, Stage, as_op, target_of};
use crate::{codegen, diagnostics};
use anyhow::Result;
use linear_layout::target::{TargetDesc, Vendor};
use std::time::Duration;
use ttopt_passes::choice::{Candidate, Choice, Unit};
use ttopt_passes::schedule::pass::AHEAD_IN_REGISTERS;

/// Vector registers that code for AMD GPUs may spill before it is made without loads that wait in registers: as many as of NVIDIA's are few.
const LITTLE_SPILLED: u64 = 4;

impl Compilation<'_, '_> {
    /// Makes PTX in which no loads run ahead of which registers decide whether they pay, where some do.
    pub(super) fn make_second(&mut self) -> Result<()> {
        let module = as_op(&self.module);
        self.waits = module.attr(AHEAD_IN_REGISTERS).is_some();
        module.remove_attr(AHEAD_IN_REGISTERS);
        let Options { emit, second, .. } = self.options;
        let is_wanted = *emit > Stage::Amdgcn || *second && emit.is_assembly();
        if is_wanted && self.vendor() == Some(Vendor::Nvidia) {
            let options = Options {
                emit: Stage::Asm,
                schedules: false,
                estimate: None,
                keep: false,
                dump: None,
                ..self.options.clone()
            };
            self.second = self.without_loads_ahead(options)?;
        }
        Ok(())
    }

    /// Takes code in which no loads wait in registers for later iterations where the code with them spills most of what they take: on AMD GPUs, whose
    /// code says what it spills.
    pub(super) fn take_least_spills(&mut self) -> Result<()> {
        if self.spills <= LITTLE_SPILLED || self.vendor() != Some(Vendor::Amd) {
            return Ok(());
        }
        let options = Options { keep: self.keeps(), dump: None, ..self.options.clone() };
        let Some(other) = self.without_loads_ahead(options)? else { return Ok(()) };
        let (with, without) = (self.spills, codegen::spills(&other.output).0);
        let all = [("with loads that wait in registers", with), ("without", without)];
        let is_better = 2 * without <= with;
        if self.options.explain {
            let all = all.map(|(name, spills)| Candidate::new(name, Some(spills as f64))).to_vec();
            let choice = Choice::among("what a thread spills", Unit::Registers, all, usize::from(is_better));
            let kernel = self.made.metadata.as_ref().map_or("", |metadata| &metadata.name);
            choice.iter().for_each(|choice| self.remark(kernel, choice));
        }
        if is_better {
            let took = self.made.times.total();
            self.made = other;
            self.made.times.asm += took;
            let Artifacts { ttir: _, ttgir, llvm: _, llvmir, asm, bin, sass: _ } = &self.made.artifacts;
            let stages =
                [(Stage::Ttgir, ttgir), (Stage::Llvmir, llvmir), (Stage::Asm, asm), (Stage::Bin, bin)];
            for (stage, bytes) in stages {
                bytes.as_ref().map_or(Ok(()), |bytes| self.dump(stage, bytes))?;
            }
            if !self.options.keep {
                self.made.artifacts = Artifacts::default();
            }
        }
        Ok(())
    }

    fn vendor(&self) -> Option<Vendor> {
        TargetDesc::parse(target_of(&self.module)?).ok().map(|target| target.vendor)
    }

    /// What the input becomes where loads do not wait in registers for later iterations; `None` where none do, or it cannot be made.
    fn without_loads_ahead(&self, options: Options) -> Result<Option<Compiled>> {
        if !self.waits || !self.options.overrides.is_empty() {
            return Ok(None);
        }
        let Some(target) = target_of(&self.module) else { return Ok(None) };
        let options = Options { print_after: Vec::new(), explain: false, second: false, ..options };
        let mut pipeline = Passes::of(&options, target);
        pipeline.ahead_in_registers = false;
        let passes = Passes { to_ttgir: ttopt_passes::pipeline::ttir_to_ttgir(&pipeline), explain: false };
        let mut other = Compilation {
            module: (self.anew)()?,
            name: self.name,
            options: &options,
            is_cancelled: self.is_cancelled,
            wanted: self.wanted,
            ttgir: None,
            passes,
            pipelines: self.pipelines,
            anew: self.anew,
            waits: false,
            second: None,
            spills: 0,
            made: Compiled::default(),
        };
        // What it has to say the first one says, too.
        let made = diagnostics::during(as_op(&self.module).context(), |_| (), || other.run());
        self.check_cancelled()?;
        match made {
            Ok(()) => Ok(Some(other.made)),
            Err(error) => {
                tracing::warn!("other code for a kernel is left: {error:#}");
                Ok(None)
            }
        }
    }

    /// Takes the text beside the first, which is launched as `metadata` says, if that launch has all that it needs; says how long it took.
    pub(super) fn take_second(&mut self, metadata: &Metadata) -> Duration {
        let fits = |other: &Metadata| {
            let as_first = Metadata { shared: metadata.shared, ..other.clone() };
            other.shared <= metadata.shared && as_first.to_json() == metadata.to_json()
        };
        let Some(second) = self.second.take() else { return Duration::ZERO };
        let took = second.times.total();
        self.made.second = second.metadata.as_ref().is_some_and(fits).then_some(second.output);
        took
    }
}
