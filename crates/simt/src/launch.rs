//! Launches a decoded kernel over a grid.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use crate::Error;
use crate::bytecode::Program;
use crate::check::{Finding, Findings};
use crate::counts::{Counts, Summary};
use crate::exec::{Consts, Cta, Shape, Slice, Trace};
use crate::ir::{Ty, Vendor};
use crate::mem::Global;
use crate::shared::MAX_WARPS;
use crate::tma::HostMap;

/// A kernel argument.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Arg {
    /// A buffer of device memory with its initial contents.
    Buffer {
        /// Name for messages.
        name: String,
        /// Contents.
        data: Vec<u8>,
    },
    /// A tensor map that the host made, of a buffer with these contents or, without, of the one of that name before it.
    TensorMap {
        /// Name of the buffer.
        buffer: String,
        /// Its contents.
        data: Option<Vec<u8>>,
        /// What the map says.
        map: HostMap,
    },
    /// A scalar, as the bits of the parameter's type.
    Scalar(u64),
    /// An address of one's own, such as null.
    Address(u64),
}

impl Arg {
    /// Whether it brings a buffer, whose contents the outcome has.
    fn holds_data(&self) -> bool {
        matches!(self, Arg::Buffer { .. } | Arg::TensorMap { data: Some(_), .. })
    }
}

/// How to launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Programs along x, y, z.
    pub grid: [u32; 3],
    /// Of these, how many run, the first ones along x, y and z; all by default. Who asks how many there are is told of the grid.
    pub first: Option<[u32; 3]>,
    /// Arguments in order. Up to two pointers that the kernel has beyond them (Triton's scratch pointers) get buffers
    /// of [`Launch::scratch`] bytes per program.
    pub args: Vec<Arg>,
    /// Threads of a program along x, y, z; by default what the module says.
    pub block: Option<[u32; 3]>,
    /// Programs of a cluster along x, y, z; by default what the module says, else one.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory; by default all the hardware has.
    pub shared: Option<u32>,
    /// Bytes of scratch memory per program.
    pub scratch: u32,
    /// Whether races, uninitialized values and the like are looked for.
    pub checks: bool,
    /// Threads of the host.
    pub jobs: usize,
    /// Prints what one lane does.
    pub trace: Option<Trace>,
    /// Warp instructions after which a program is taken to run for ever.
    pub limit: u64,
}

impl Default for Launch {
    fn default() -> Launch {
        Launch {
            grid: [1; 3],
            first: None,
            args: Vec::new(),
            block: None,
            cluster: None,
            shared: None,
            scratch: 16 << 10,
            checks: true,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            trace: None,
            limit: 1 << 30,
        }
    }
}

/// Connections to the outside while a launch runs.
pub struct Control<'a> {
    /// Set it to stop.
    pub stop: &'a AtomicBool,
    /// Called with the number of programs done and of all programs.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
    /// Receives what the device prints, and traces.
    pub print: &'a (dyn Fn(&str) + Sync),
}

/// What a launch gives.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// Contents of the buffer arguments, in the order of the arguments.
    pub buffers: Vec<Vec<u8>>,
    /// What the checks found.
    pub findings: Vec<Finding>,
    /// What it cost.
    pub counts: Summary,
    /// Whether it was stopped before the end.
    pub stopped: bool,
    /// Wall-clock seconds of the simulation.
    pub seconds: f64,
}

/// Bytes of shared memory that a program has.
fn shared_bytes(p: &Program, launch: &Launch) -> Result<u32, Error> {
    let most = p.gpu.most_shared();
    let gpu = p.gpu.cpu.map_or("any GPU", |c| c.name);
    let fits = |what: &str, n: u32| match n <= most {
        true => Ok(n),
        false => Err(Error::Launch(format!("{n} bytes of {what}shared memory; there are {most} on {gpu}"))),
    };
    let fixed = fits("static ", p.static_shared)?;
    match (p.dynamic_shared, launch.shared) {
        (false, _) => Ok(fixed),
        (true, Some(n)) => fits("", fixed.saturating_add(n)),
        (true, None) => {
            let cpu = p.gpu.demand("nor is it said how much dynamic shared memory it has (--shared)")?;
            Ok(cpu.shared)
        }
    }
}

/// Threads of a program along x, y, z. A size that the module demands is the only one there is.
fn block(p: &Program, launch: &Launch) -> Result<[u32; 3], Error> {
    let (least, most) = p.threads.unwrap_or((1, 1024));
    // AMD's modules say at most how many threads they have: so many, unless the launch says otherwise.
    let usual = p.threads.map(|(_, most)| [most, 1, 1]);
    let block = launch.block.or(p.block).or(usual).ok_or_else(|| {
        Error::Launch(
            "the module does not say how many threads a program has; give it (--threads)".to_owned(),
        )
    })?;
    let named = |b: [u32; 3]| b.map(|n| n.to_string()).join(" × ");
    if let Some(own) = p.block.filter(|own| *own != block) {
        return Err(Error::Launch(format!(
            "a program of {} threads; @{} is for {}",
            named(block),
            p.name,
            named(own)
        )));
    }
    let all = block.iter().try_fold(1u32, |n, k| n.checked_mul(*k)).unwrap_or(u32::MAX);
    if block.contains(&0) || all > 1024 || all < least || all > most {
        return Err(Error::Launch(format!(
            "a program of {} threads; it has {} to {}",
            named(block),
            least.max(1),
            most.min(1024)
        )));
    }
    Ok(block)
}

/// Runs a kernel with nobody watching.
pub fn run(p: &Program, launch: &Launch) -> Result<Outcome, Error> {
    let control = Control { stop: &AtomicBool::new(false), progress: &|_, _| {}, print: &|_| {} };
    run_with(p, launch, &control)
}

/// Runs a kernel.
pub fn run_with(p: &Program, launch: &Launch, control: &Control<'_>) -> Result<Outcome, Error> {
    match p.lanes() {
        32 => run_width::<32>(p, launch, control),
        _ => run_width::<64>(p, launch, control),
    }
}

/// How much runs.
struct Extent {
    /// Programs up to the last one that runs, x first, then y, then z.
    programs: u64,
    /// Clusters that run, along x, y and z.
    clusters: [u64; 3],
    /// Threads of a program along x, y and z, and all of them.
    block: [u32; 3],
    threads: u32,
    /// Programs of a cluster along x, y and z, and all of them.
    cluster: [u32; 3],
    size: u64,
}

fn extent<const W: usize>(p: &Program, launch: &Launch) -> Result<Extent, Error> {
    let product = |sizes: [u32; 3]| sizes.iter().try_fold(1u64, |n, s| n.checked_mul(u64::from(*s)));
    if !product(launch.grid).is_some_and(|n| (1..=u64::from(u32::MAX)).contains(&n)) {
        return Err(Error::Launch(format!(
            "a grid of {:?} programs; there are 1 to {}",
            launch.grid,
            u32::MAX
        )));
    }
    let block = block(p, launch)?;
    let threads = block.iter().product();
    let cluster = launch.cluster.or(p.cluster).unwrap_or([1; 3]);
    let size = product(cluster).unwrap_or(u64::MAX);
    if !(1..=16).contains(&size) || launch.grid.iter().zip(cluster).any(|(g, c)| !g.is_multiple_of(c)) {
        return Err(Error::Launch(format!(
            "clusters of {cluster:?} programs in a grid of {:?}; a cluster has 1 to 16 and divides the grid",
            launch.grid
        )));
    }
    let warps = u32::div_ceil(threads, W as u32) * size as u32;
    if warps > MAX_WARPS {
        return Err(Error::Launch(format!("a cluster of {warps} warps; the simulator takes {MAX_WARPS}")));
    }
    let first = launch.first.unwrap_or(launch.grid);
    if first.contains(&0) {
        return Err(Error::Launch(format!("the first {first:?} programs; at least one has to run")));
    }
    let clusters = [0, 1, 2].map(|i| u64::from(first[i].min(launch.grid[i]).div_ceil(cluster[i])));
    let [last_x, last_y, last_z] = [0, 1, 2].map(|i| clusters[i] * u64::from(cluster[i]) - 1);
    let [nx, ny, _] = launch.grid.map(u64::from);
    let programs = (last_z * ny + last_y) * nx + last_x + 1;
    Ok(Extent { programs, clusters, block, threads, cluster, size })
}

fn run_width<const W: usize>(p: &Program, launch: &Launch, control: &Control<'_>) -> Result<Outcome, Error> {
    let start = Instant::now();
    let Extent { programs, clusters, block, threads, cluster, size } = extent::<W>(p, launch)?;
    let [x, y, z] = clusters;
    let all = x * y * z;
    let shared = shared_bytes(p, launch)?;
    let mut global = Global::new(&p.rodata);
    let mut consts = p.consts.clone();
    let addresses = bind(p, launch, programs, &mut global, &mut consts)?;
    let consts = Consts::<W>::new(&consts);
    let implicit_args = match p.gpu.vendor {
        Vendor::Amd => global.add("implicit arguments", &implicit_arguments(launch.grid, block)),
        Vendor::Nvidia => 0,
    };
    let progress = AtomicU64::new(0);
    let shape = Shape {
        program: p,
        grid: launch.grid,
        cluster,
        threads,
        block,
        shared_bytes: shared,
        checks: launch.checks,
        global: &global,
        implicit_args,
        stop: control.stop,
        progress: &progress,
        print: control.print,
        trace: launch.trace,
        limit: launch.limit,
    };
    let next = AtomicU64::new(0);
    let done = AtomicU64::new(0);
    let result = Mutex::new((Counts::new(p.code.len()), Findings::default(), false));
    let worker = || {
        let mut counts = Counts::new(p.code.len());
        let mut findings = Findings::default();
        let mut stopped = false;
        let mut paused: VecDeque<Cta<'_, W>> = VecDeque::new();
        loop {
            // A program that seems to wait for another one makes room for the next.
            let fresh = if paused.len() < 256 { next.fetch_add(1, Ordering::Relaxed) } else { all };
            let mut cta = if fresh < all {
                let place = [fresh % x, fresh / x % y, fresh / (x * y)].map(|n| n as u32);
                let id = [0, 1, 2].map(|i| place[i] * cluster[i]);
                Cta::<W>::new(&shape, &consts, id)
            } else {
                match paused.pop_front() {
                    Some(c) => c,
                    None => break,
                }
            };
            match cta.run() {
                Slice::Again => {
                    paused.push_back(cta);
                    continue;
                }
                Slice::Stopped => stopped = true,
                Slice::Done => (control.progress)(done.fetch_add(size, Ordering::Relaxed) + size, all * size),
            }
            counts.merge(&cta.counts);
            findings.merge(std::mem::take(&mut cta.findings));
            if stopped {
                break;
            }
        }
        let mut r = result.lock().unwrap_or_else(|e| e.into_inner());
        r.0.merge(&counts);
        r.1.merge(findings);
        r.2 |= stopped;
    };
    let jobs = launch.jobs.clamp(1, (all * size).min(1024) as usize);
    std::thread::scope(|s| {
        for _ in 1..jobs {
            s.spawn(worker);
        }
        worker();
    });
    let (counts, findings, stopped) = result.into_inner().unwrap_or_else(|e| e.into_inner());
    let buffers = addresses.iter().filter_map(|a| global.buffer(*a)).map(|b| b.bytes()).collect();
    Ok(Outcome {
        buffers,
        findings: findings.into_vec(),
        counts: counts.summary(p),
        stopped,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// The hidden kernel arguments of AMD code objects of version 5: block counts at 0, group sizes at 12,
/// remainders at 18, dimensions at 64 (LLVM, "User Guide for AMDGPU Backend", code object V5 metadata).
fn implicit_arguments(grid: [u32; 3], block: [u32; 3]) -> Vec<u8> {
    let mut out = vec![0; 256];
    for (i, n) in grid.iter().enumerate() {
        out[4 * i..4 * i + 4].copy_from_slice(&n.to_le_bytes());
    }
    for (i, n) in block.iter().enumerate() {
        out[12 + 2 * i..14 + 2 * i].copy_from_slice(&(*n as u16).to_le_bytes());
    }
    out[64..66].copy_from_slice(&3u16.to_le_bytes());
    out
}

/// Pointers at the end of a kernel's parameters that its launcher gives: Triton's global and profile scratch memory.
const SCRATCH_POINTERS: usize = 2;

/// What an argument must be, in words.
fn wanted(ty: &Ty) -> String {
    match ty {
        Ty::Ptr(..) => "a pointer".to_owned(),
        Ty::Int(1) => "a truth value (i1)".to_owned(),
        Ty::Int(n) => format!("an integer of {n} bits"),
        Ty::F16 => "a number in f16".to_owned(),
        Ty::BF16 => "a number in bf16".to_owned(),
        Ty::F32 => "a number in f32".to_owned(),
        Ty::F64 => "a number in f64".to_owned(),
        _ => "a value of a type that has no arguments here".to_owned(),
    }
}

/// That there are as many arguments as the kernel takes, but for scratch pointers.
fn check_count(p: &Program, given: usize) -> Result<(), Error> {
    let takes = p.params.len();
    if given > takes {
        return Err(Error::Launch(format!("{given} arguments for @{}, which takes {takes}", p.name)));
    }
    let optional = |i: usize| matches!(p.params[i], Ty::Ptr(..)) && i + SCRATCH_POINTERS >= takes;
    let missing: Vec<String> = (given..takes)
        .filter(|i| !optional(*i))
        .map(|i| format!("argument {}, {}", i + 1, wanted(&p.params[i])))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::Launch(format!(
        "@{} takes {takes} arguments and got {given}; missing: {}",
        p.name,
        missing.join("; ")
    )))
}

/// The buffers of a launch while they are put into memory.
struct Binding<'a> {
    program: &'a Program,
    launch: &'a Launch,
    global: &'a mut Global,
    /// Addresses of the buffers so far, in order.
    addresses: Vec<u64>,
}

impl Binding<'_> {
    fn add(&mut self, name: &str, data: &[u8]) -> u64 {
        let a = self.global.add(name, data);
        self.addresses.push(a);
        a
    }

    /// The address of a buffer that an earlier argument brought.
    fn earlier(&self, buffer: &str) -> Option<u64> {
        let holders = self.launch.args.iter().filter(|a| a.holds_data());
        let named = |arg: &Arg| match arg {
            Arg::Buffer { name, .. } | Arg::TensorMap { buffer: name, data: Some(_), .. } => name == buffer,
            _ => false,
        };
        self.addresses.iter().zip(holders).find_map(|(a, arg)| named(arg).then_some(*a))
    }

    /// A tensor map in memory, and its buffer where it brings one.
    fn tensor_map(
        &mut self,
        i: usize,
        buffer: &str,
        data: Option<&[u8]>,
        map: &HostMap,
    ) -> Result<u64, Error> {
        let a = match data {
            Some(data) => self.add(buffer, data),
            None => self.earlier(buffer).ok_or_else(|| {
                Error::Launch(format!(
                    "argument {} is a tensor map of '{buffer}', no buffer before it",
                    i + 1
                ))
            })?,
        };
        let map = map.encode(a).map_err(|e| Error::Launch(format!("argument {} is {e}", i + 1)))?;
        Ok(self.global.add_read_only(&format!("tensor map of {buffer}"), &map))
    }

    /// The word that the kernel gets for argument `i`.
    fn value(&mut self, i: usize, ty: &Ty, programs: u64) -> Result<u64, Error> {
        let pointer = matches!(ty, Ty::Ptr(..));
        let launch = self.launch;
        let unfit = |what: String| {
            let name = &self.program.name;
            Err(Error::Launch(format!("argument {} of @{name} is {}, not {what}", i + 1, wanted(ty))))
        };
        match launch.args.get(i) {
            Some(Arg::Buffer { name, data }) if pointer => Ok(self.add(name, data)),
            Some(Arg::TensorMap { buffer, data, map }) if pointer => {
                self.tensor_map(i, buffer, data.as_deref(), map)
            }
            Some(Arg::Address(a)) if pointer => Ok(*a),
            Some(Arg::Scalar(v)) if !pointer => Ok(crate::alu::low(*v, ty.bits() as u8)),
            Some(Arg::Buffer { name, .. }) => unfit(format!("the buffer '{name}'")),
            Some(Arg::TensorMap { buffer, .. }) => unfit(format!("a tensor map of '{buffer}'")),
            Some(Arg::Address(_)) => unfit("an address".to_owned()),
            Some(Arg::Scalar(_)) => unfit("a number; give a tensor (x.npy, f32[64]), or null".to_owned()),
            None => {
                let bytes = u64::from(launch.scratch).saturating_mul(programs).min(1 << 30);
                Ok(self.global.add(&format!("scratch pointer {i}"), &vec![0; bytes as usize]))
            }
        }
    }
}

/// Puts the arguments into memory and the constant table; returns the buffers' addresses.
fn bind(
    program: &Program,
    launch: &Launch,
    programs: u64,
    global: &mut Global,
    consts: &mut [(u64, bool)],
) -> Result<Vec<u64>, Error> {
    check_count(program, launch.args.len())?;
    let mut binding = Binding { program, launch, global, addresses: Vec::new() };
    for (i, ty) in program.params.iter().enumerate() {
        consts[i] = (binding.value(i, ty, programs)?, false);
    }
    Ok(binding.addresses)
}
