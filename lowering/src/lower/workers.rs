//! Worker warps: those of a CTA that run the partitions of `ttg.warp_specialize`.
//!
//! ```text
//! entry:    worker warps go to workers, default warps run the kernel
//! kernel:   …, what is captured and the operation's number to shared memory, all warps meet,
//!           the default region, all warps meet, …; before it returns: number 0, all warps meet
//! workers:  all warps meet; return where the number is 0; the partition of this warp; all warps meet; workers
//! ```
//!
//! Where an operation runs exactly once and is the only one ([`ttopt_passes::warp_groups::RUNS_ONCE`]), the workers need
//! neither numbers nor the loop: they run their partitions and return.
//!
//! A barrier of a cluster counts all threads of all its CTAs (PTX ISA, "barrier.cluster"), so in a cluster such a barrier
//! is a work, too: the default warps send the worker warps to it. While partitions run there can be none.

use super::{Lower, Values};
use crate::emit::{Failure, ICmp, Lowered, internal};
use crate::target::{BarrierMemory, need};
use mlir_host::ir::{Block, Op, Value};
use ttopt_passes::thread_group::ThreadGroup;
use ttopt_passes::warp_groups::BARRIER_OF_ALL;

/// The worker warps of a kernel.
pub(super) struct Workers<'c> {
    /// Where they begin.
    start: Block<'c>,
    /// The number of this thread in its CTA.
    thread: Value<'c>,
    /// Where in shared memory the number of their next work is, in bytes.
    dispatch: Option<i64>,
    /// Where each work begins and ends: the first has number 1.
    works: Vec<(Block<'c>, Block<'c>)>,
    /// The numbers of the works that are a barrier of the cluster: one that orders memory, and a relaxed one.
    cluster_barriers: [Option<usize>; 2],
    /// Whether they run partitions where code is being lowered.
    at_work: bool,
}

impl<'c> Lower<'_, 'c> {
    /// Ends the entry of a kernel: worker warps part from the default warps, which go on to `kernel`. Returns the
    /// terminators of what all warps run, and of what the default warps run first.
    pub(super) fn part_workers(
        &mut self,
        kernel: Block<'c>,
        dispatch: Option<i64>,
    ) -> Lowered<(Op<'c>, Op<'c>, Workers<'c>)> {
        let (entry, threads) = (self.emit.block(), self.cta_threads());
        let (start, prologue) = (self.new_block(&[])?, self.new_block(&[])?);
        let thread = self.target.thread_id(&mut self.emit, threads)?;
        let own = self.emit.const_i32(self.num_threads().into())?;
        let is_default = self.emit.icmp(ICmp::Ult, thread, own)?;
        self.emit.cond_br(is_default, (prologue, &[]), (start, &[]))?;
        self.emit.set_block(prologue);
        self.emit.br(kernel, &[], None)?;
        let (Some(all), Some(own)) = (entry.last(), prologue.last()) else {
            return internal("empty prologue");
        };
        Ok((all, own, {
            let (works, cluster_barriers) = (Vec::new(), [None; 2]);
            Workers { start, thread, dispatch, works, cluster_barriers, at_work: false }
        }))
    }

    fn workers(&mut self) -> Lowered<&mut Workers<'c>> {
        let workers = self.function()?.workers.as_mut();
        workers.ok_or_else(|| {
            Failure::Unsupported(
                "has no warps for partitions: run --tritongpu-allocate-warp-groups first".to_owned(),
            )
        })
    }

    /// The default warps send the worker warps to work. Returns the empty blocks in which the work begins and ends.
    pub fn begin_work(&mut self, only: bool) -> Lowered<(Block<'c>, Block<'c>)> {
        let (work, done) = (self.new_block(&[])?, self.new_block(&[])?);
        let workers = self.workers()?;
        workers.works.push((work, done));
        workers.at_work = true;
        let (number, told) = (workers.works.len(), !only || workers.dispatch.is_some());
        if told {
            self.tell_workers(number as i64)?;
        }
        self.all_warps_meet()?;
        Ok((work, done))
    }

    /// The default warps wait until the worker warps have done their work.
    pub fn end_work(&mut self) -> Lowered<()> {
        self.all_warps_meet()?;
        self.workers()?.at_work = false;
        Ok(())
    }

    /// All threads of the cluster wait for each other, worker warps included. What they wrote to shared memory is then
    /// visible to all, unless the barrier is `relaxed`.
    pub fn cluster_barrier(&mut self, relaxed: bool) -> Lowered<()> {
        let barrier =
            |l: &mut Self| need(l.target.clusters(), "clusters", l.target)?.barrier(&mut l.emit, relaxed);
        if self.cta_warps == self.group.warps {
            return barrier(self);
        }
        let Some(workers) = self.function()?.workers.as_ref().filter(|workers| !workers.at_work) else {
            return Err(Failure::Unsupported(
                "needs a barrier of the cluster, which all warps of its CTAs would have to reach, where partitions of \
                 `ttg.warp_specialize` may be running: CTAs exchange data before or after it, or through mbarriers"
                    .to_owned(),
            ));
        };
        if workers.dispatch.is_none() {
            // There is no work, so the worker warps have returned: threads that have are not waited for.
            return barrier(self);
        }
        let number = match workers.cluster_barriers[usize::from(relaxed)] {
            Some(number) => number,
            None => {
                let (work, done, here) = (self.new_block(&[])?, self.new_block(&[])?, self.emit.block());
                self.emit.set_block(work);
                barrier(self)?;
                self.emit.br(done, &[], None)?;
                self.emit.set_block(here);
                let workers = self.workers()?;
                workers.works.push((work, done));
                let number = workers.works.len();
                workers.cluster_barriers[usize::from(relaxed)] = Some(number);
                number
            }
        };
        self.tell_workers(number as i64)?;
        self.all_warps_meet()?;
        barrier(self)?;
        self.all_warps_meet()
    }

    /// Writes down the number of the work that comes next; 0 for none.
    fn tell_workers(&mut self, number: i64) -> Lowered<()> {
        let Some(offset) = self.workers()?.dispatch else {
            return internal("there is no place for the number of the work");
        };
        let (place, writes) = (self.shared_at(offset)?, self.is_first_thread()?);
        let number = self.emit.const_i32(number)?;
        self.target.store_shared(&mut self.emit, place, &[number], Some(writes))
    }

    /// Before the kernel returns: worker warps that wait for work return, too.
    pub fn dismiss_workers(&mut self) -> Lowered<()> {
        if self.function()?.workers.as_ref().is_none_or(|workers| workers.dispatch.is_none()) {
            return Ok(());
        }
        self.tell_workers(0)?;
        self.all_warps_meet()
    }

    /// What the worker warps of a kernel do, after all of its works are known.
    pub(super) fn finish_workers(&mut self) -> Lowered<()> {
        let Some(Workers { start, dispatch, works, .. }) = self.function()?.workers.take() else {
            return Ok(());
        };
        let next = match (dispatch, &works[..]) {
            (None, []) => {
                self.emit.set_block(start);
                return self.return_nothing();
            }
            (None, [(work, _)]) => {
                self.emit.set_block(start);
                self.all_warps_meet()?;
                self.emit.br(*work, &[], None)?;
                let end = self.new_block(&[])?;
                self.emit.set_block(end);
                self.return_nothing()?;
                end
            }
            (None, _) => return internal("worker warps are not told which of several works to do"),
            (Some(offset), works) => {
                let next = self.new_block(&[])?;
                self.emit.set_block(start);
                self.emit.br(next, &[], None)?;
                self.emit.set_block(next);
                self.all_warps_meet()?;
                self.choose_work(offset, works)?;
                next
            }
        };
        for (_, done) in works {
            self.emit.set_block(done);
            self.all_warps_meet()?;
            self.emit.br(next, &[], None)?;
        }
        Ok(())
    }

    fn choose_work(&mut self, offset: i64, works: &[(Block<'c>, Block<'c>)]) -> Lowered<()> {
        let place = self.shared_at(offset)?;
        let loaded = self.target.load_shared(&mut self.emit, place, 1, 32)?;
        let [told] = loaded[..] else { return internal("a word is loaded as several") };
        for (i, (work, _)) in works.iter().enumerate() {
            let others = self.new_block(&[])?;
            let number = self.emit.const_i32(i as i64 + 1)?;
            let is_this = self.emit.icmp(ICmp::Eq, told, number)?;
            self.emit.cond_br(is_this, (*work, &[]), (others, &[]))?;
            self.emit.set_block(others);
        }
        self.return_nothing()
    }

    fn return_nothing(&mut self) -> Lowered<()> {
        self.emit.op("llvm.return", &[], &[], &[])?;
        Ok(())
    }

    /// All warps of the CTA wait for each other.
    pub fn all_warps_meet(&mut self) -> Lowered<()> {
        let all = ThreadGroup { first_warp: 0, warps: self.cta_warps, barrier: BARRIER_OF_ALL };
        self.target.barrier(&mut self.emit, &all, false, BarrierMemory::All)
    }

    /// Whether this worker's warp is one of `group`.
    pub fn is_worker_of(&mut self, group: &ThreadGroup) -> Lowered<Value<'c>> {
        let thread = self.workers()?.thread;
        let lanes = self.target.desc().lanes;
        let first = self.emit.const_i32((group.first_warp * lanes).into())?;
        let count = self.emit.const_i32((group.warps * lanes).into())?;
        let number = self.emit.same("llvm.sub", &[thread, first])?;
        self.emit.icmp(ICmp::Ult, number, count)
    }

    /// Whether this is the first thread of those that run what is being lowered.
    pub fn is_first_thread(&mut self) -> Lowered<Value<'c>> {
        let (lanes, warps) = (self.target.desc().lanes, self.group.warps);
        let first = self.is_representative(u64::from(lanes) - 1, u64::from(warps) - 1, 0)?;
        first.ok_or_else(|| Failure::Internal("warps have one lane".to_owned()))
    }

    /// Lowers with `f` what the threads of `group` alone run.
    pub fn as_group<T>(&mut self, group: ThreadGroup, f: impl FnOnce(&mut Self) -> Lowered<T>) -> Lowered<T> {
        let numbers = self.begin_numbers()?;
        let outer = std::mem::replace(self.threads()?, numbers);
        let (outer_group, issuing) = (self.group, self.issuing_warp);
        (self.group, self.issuing_warp) = (group, issuing.min(group.warps - 1));
        let result = f(self);
        (self.group, self.issuing_warp) = (outer_group, issuing);
        *self.threads()? = outer;
        result
    }

    /// The values of `value`, computed here once more.
    pub fn lowered_again(&mut self, value: Value<'c>) -> Lowered<Values<'c>> {
        let Some(op) = value.def_op() else { return internal("an argument cannot be computed again") };
        let before = self.get(value)?;
        self.lower_op(op)?;
        let again = self.get(value)?;
        self.set(value, before);
        Ok(again)
    }
}
