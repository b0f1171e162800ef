//! Kernels once more without loads that wait in registers for later iterations, with one stage where one was asked for, with one where
//! registers likely do not suffice for more, and with few threads that load the same. Whether loads pay that run ahead, or that many threads
//! make, is known when registers are allocated: for NVIDIA GPUs both texts are assembled (`docs/ptxas.md`, "A second text"), code for AMD
//! GPUs says what it spills (`docs/amd.md`).

use super::{Artifacts, Compilation, Compiled, Metadata, Options, Passes, Stage, as_op, target_of};
use crate::{codegen, diagnostics, occupancy};
use anyhow::Result;
use linear_layout::target::{TargetDesc, Vendor};
use std::time::Duration;
use ttopt_passes::choice::{Candidate, Choice, Unit};
use ttopt_passes::remove_layout_conversions::HAS_REPLICAS;
use ttopt_passes::schedule::pass::{AHEAD_IN_REGISTERS, COPIES_AHEAD};

/// Vector registers that code for AMD GPUs may spill before it is made without loads that wait in registers: as many as of NVIDIA's are few.
const LITTLE_SPILLED: u64 = 4;

/// Registers that a kernel seems to need from which it may spill, those that an assembler needs besides included.
const MANY_REGISTERS: u64 = 200;

/// Bytes of shared memory that conversions in place of loads may take: so much leaves a multiprocessor all the CTAs that it has warps for.
const LITTLE_SHARED: u64 = 4 << 10;

/// What a kernel is made without for other code of it.
#[derive(Clone, Copy)]
pub(super) enum Without {
    /// Loads that nobody asked for, all of which wait in registers, and a second stage where one is asked for.
    LoadsAhead,
    /// That, and all stages but the first.
    Stages,
    /// Loads of which many threads load the same, where a conversion costs less than twice as much.
    Replicas,
    /// Slots of rings that take one more CTA's shared memory, where a schedule is as good by all that is known.
    Slots,
}

impl Compilation<'_, '_> {
    /// Makes PTX in which no loads run ahead of which registers decide whether they pay, where some do.
    pub(super) fn make_second(&mut self) -> Result<()> {
        let module = as_op(&self.module);
        self.waits = module.attr(AHEAD_IN_REGISTERS).is_some();
        self.copies = module.attr(COPIES_AHEAD).is_some();
        module.remove_attr(AHEAD_IN_REGISTERS);
        module.remove_attr(COPIES_AHEAD);
        self.replicates = module.attr(HAS_REPLICAS).is_some();
        module.remove_attr(HAS_REPLICAS);
        if self.waits && self.is_second_wanted() {
            self.second = self.made_without(Without::LoadsAhead, self.options_of_second())?;
        }
        Ok(())
    }

    /// Makes PTX with one stage beside PTX that seems to need so many registers, where that copies for later iterations what iterations then
    /// load: what is copied takes none, but addresses and the order of what overlaps do.
    pub(super) fn make_second_of_many_registers(&mut self, registers: u64) -> Result<()> {
        if self.copies && self.second.is_none() && registers >= MANY_REGISTERS && self.is_second_wanted() {
            self.second = self.made_without(Without::Stages, self.options_of_second())?;
        }
        Ok(())
    }

    /// Makes PTX in which few threads load the same, where many do and there is no other second text.
    pub(super) fn make_second_with_few_replicas(&mut self) -> Result<()> {
        if self.replicates && self.second.is_none() && self.is_second_wanted() {
            self.second = self.made_without(Without::Replicas, self.options_of_second())?;
            if let Some(second) = &mut self.second {
                second.output.splice(0..0, occupancy::WITH_FEW_REPLICAS.bytes());
            }
        }
        Ok(())
    }

    /// Whether there is somebody who assembles two texts.
    fn is_second_wanted(&self) -> bool {
        let Options { emit, second, .. } = self.options;
        let is_wanted = *emit > Stage::Amdgcn || *second && emit.is_assembly();
        is_wanted && self.vendor() == Some(Vendor::Nvidia)
    }

    pub(super) fn options_of_second(&self) -> Options {
        Options {
            emit: Stage::Asm,
            schedules: false,
            estimate: None,
            keep: false,
            dump: None,
            ..self.options.clone()
        }
    }

    /// Takes code in which no loads wait in registers for later iterations where the code with them spills most of what they take: on AMD GPUs, whose
    /// code says what it spills.
    pub(super) fn take_least_spills(&mut self) -> Result<()> {
        if !self.waits || self.spills <= LITTLE_SPILLED || self.vendor() != Some(Vendor::Amd) {
            return Ok(());
        }
        let options = Options { keep: self.keeps(), dump: None, ..self.options.clone() };
        let Some(other) = self.made_without(Without::LoadsAhead, options)? else { return Ok(()) };
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

    pub(super) fn vendor(&self) -> Option<Vendor> {
        TargetDesc::parse(target_of(&self.module)?).ok().map(|target| target.vendor)
    }

    /// What the input becomes without something; `None` where it cannot be made.
    pub(super) fn made_without(&self, without: Without, options: Options) -> Result<Option<Compiled>> {
        if !options.overrides.is_empty() {
            return Ok(None);
        }
        let Some(target) = target_of(&self.module) else { return Ok(None) };
        let options = Options { print_after: Vec::new(), explain: false, second: false, ..options };
        let mut pipeline = Passes::of(&options, target);
        pipeline.leave_room = self.leaves_room || matches!(without, Without::Slots);
        pipeline.ahead_in_registers = matches!(without, Without::Slots | Without::Replicas);
        pipeline.few_replicas = matches!(without, Without::Replicas);
        if matches!(without, Without::Stages) {
            pipeline.num_stages = 1;
        }
        let passes = Passes::as_told(&pipeline, false);
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
            copies: false,
            replicates: false,
            leaves_room: pipeline.leave_room,
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
    /// Conversions in place of loads may have a little shared memory, which both are launched with then.
    pub(super) fn take_second(&mut self, metadata: &Metadata) -> Duration {
        let Some(second) = self.second.take() else { return Duration::ZERO };
        let converts = occupancy::has_few_replicas(&second.output);
        let most = if converts { metadata.shared.max(LITTLE_SHARED) } else { metadata.shared };
        let fits = |other: &Metadata| {
            let as_first = Metadata { shared: metadata.shared, ..other.clone() };
            other.shared <= most && as_first.to_json() == metadata.to_json()
        };
        let took = second.times.total();
        if let Some(shared) = second.metadata.filter(|other| fits(other)).map(|other| other.shared) {
            self.made.second = Some(second.output);
            if let Some(metadata) = &mut self.made.metadata {
                metadata.shared = metadata.shared.max(shared);
            }
        }
        took
    }
}
