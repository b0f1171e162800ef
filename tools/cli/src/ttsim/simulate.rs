//! The command line: kernels in LLVM IR run as they are, others are compiled first.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use clap::Parser;

use simt::input::{Array, Case, Dtype};
use simt::{Control, Launch, Outcome, Trace, run_with};

use crate::arguments::{self, Named, arguments};
use crate::to_llvm;

/// What a compiler is asked for.
#[derive(Clone, Debug)]
pub struct CompileRequest {
    /// The file.
    pub file: PathBuf,
    /// The target, such as `cuda:90` or `hip:gfx942`; what the module says where there is none.
    pub target: Option<String>,
    /// Warps of a program.
    pub num_warps: Option<u32>,
    /// Pipeline stages.
    pub num_stages: Option<u32>,
    /// Programs of a cluster.
    pub num_ctas: Option<u32>,
}

/// What a compiler gives back.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// LLVM IR, as text or bitcode.
    pub llvm: Vec<u8>,
    /// The kernel's symbol.
    pub kernel: Option<String>,
    /// Threads of a program, if the module does not say so.
    pub threads: Option<u32>,
    /// What it was compiled for, if the module does not say so: `cuda:90`, `sm_90`, `hip:gfx942`, …
    pub target: Option<String>,
    /// Bytes of dynamic shared memory.
    pub shared: Option<u32>,
}

/// Runs a GPU kernel on the CPU, checks it and counts what it costs.
#[derive(Parser, Debug)]
#[command(name = "ttsim", version)]
struct Options {
    /// The kernel: .ttir, .ttgir, .ll or .bc
    kernel: Option<PathBuf>,
    /// The kernel as LLVM IR, whatever its name
    #[arg(long, value_name = "FILE")]
    llvm: Option<PathBuf>,
    /// What to compile for, or what LLVM IR was compiled for where it does not say so: cuda:80, cuda:90, hip:gfx942,
    /// … [default: the module's, or cuda:90]
    #[arg(long)]
    target: Option<String>,
    /// The kernel's symbol, where the module has several
    #[arg(long, value_name = "SYMBOL")]
    entry: Option<String>,
    /// Programs along x, y, z
    #[arg(long, value_name = "X,Y,Z", value_parser = parse_grid)]
    grid: Option<[u32; 3]>,
    /// Runs only the first programs along x, y, z; kernels that ask for the number of programs are told of all
    #[arg(long, value_name = "X,Y,Z", value_parser = parse_grid)]
    first: Option<[u32; 3]>,
    /// Threads of a program along x, y, z, where the module does not say
    #[arg(long, value_name = "X,Y,Z", value_parser = parse_grid)]
    threads: Option<[u32; 3]>,
    /// Warps of a program, for the compiler
    #[arg(long)]
    num_warps: Option<u32>,
    /// Pipeline stages, for the compiler
    #[arg(long)]
    num_stages: Option<u32>,
    /// Programs of a cluster that work as one; the grid counts clusters
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=16))]
    num_ctas: Option<u32>,
    /// Bytes of dynamic shared memory; all there is by default
    #[arg(long, value_name = "BYTES")]
    shared: Option<u32>,
    /// An argument, in order: [name=]file.npy, [name=]f32[64,64] (zeros), a number (3, 0.5, f16:0.5, i64:7), null, or
    /// a tensor map: [name=]tensormap(TENSOR,[BOX],swizzle=128,fill=nan), TENSOR a file, f32[64,64] or another's name
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true)]
    args: Vec<String>,
    /// A launch described in JSON; the kernel is the .ttir beside it unless one is given
    #[arg(long, value_name = "FILE", conflicts_with = "args")]
    case: Option<PathBuf>,
    /// Where the raw inputs of the case lie (<arg>.bin) and its raw results go (<arg>.out.bin)
    #[arg(long, value_name = "DIR", requires = "case")]
    data: Option<PathBuf>,
    /// Writes every named buffer to DIR/<name>.npy
    #[arg(long, value_name = "DIR")]
    out_dir: Option<PathBuf>,
    /// Compares a buffer with a file: [name=]file.npy
    #[arg(long, value_name = "FILE")]
    compare: Vec<String>,
    /// Relative tolerance of --compare
    #[arg(long, default_value_t = 0.0)]
    rtol: f64,
    /// Absolute tolerance of --compare
    #[arg(long, default_value_t = 0.0)]
    atol: f64,
    /// Writes counts and findings as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Prints no table of counts
    #[arg(long, short)]
    quiet: bool,
    /// Prints what one lane does: lane=3,warp=0[,program=0/0/0]
    #[arg(long, value_name = "LANE", value_parser = parse_trace)]
    trace: Option<Trace>,
    /// Looks only for what stops a kernel
    #[arg(long)]
    no_checks: bool,
    /// Threads of the host
    #[arg(long, short)]
    jobs: Option<usize>,
    /// Warp instructions after which a program is taken to run for ever
    #[arg(long, default_value_t = 1 << 30)]
    limit: u64,
}

fn parse_grid(s: &str) -> Result<[u32; 3], String> {
    let list: Vec<u32> = s
        .split(',')
        .map(|n| n.trim().parse())
        .collect::<Result<_, _>>()
        .map_err(|_| "not one to three numbers")?;
    match list[..] {
        [x] => Ok([x, 1, 1]),
        [x, y] => Ok([x, y, 1]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err("not one to three numbers".into()),
    }
}

fn parse_trace(s: &str) -> Result<Trace, String> {
    let mut t = Trace { program: [0; 3], warp: 0, lane: 0 };
    for part in s.split(',') {
        let (key, value) = part.split_once('=').ok_or("not of the form lane=3,warp=0")?;
        let number = || value.parse().map_err(|_| format!("'{value}' is not a number"));
        match key {
            "lane" => t.lane = number()?,
            "warp" => t.warp = number()?,
            "program" => t.program = parse_grid(&value.replace('/', ","))?,
            _ => return Err(format!("'{key}' is none of lane, warp, program")),
        }
    }
    if t.lane > 63 {
        return Err("a warp has at most 64 lanes".into());
    }
    Ok(t)
}

/// Runs the command line.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let options = match Options::try_parse_from(args) {
        Ok(o) => o,
        Err(e) => {
            // Help and version are no errors.
            // 1 is what findings give.
            let code = if e.use_stderr() { 2 } else { 0 };
            let _ = e.print();
            return ExitCode::from(code);
        }
    };
    match simulate(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("ttsim: error: {e:#}");
            ExitCode::from(1)
        }
    }
}

fn simulate(o: &Options) -> Result<bool> {
    let case = match &o.case {
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
            Some(Case::parse(&text).with_context(|| path.display().to_string())?)
        }
        None => None,
    };
    let compiled = kernel(o, case.as_ref())?;
    let mut module = simt::read::parse(&compiled.0, &compiled.1.llvm)?;
    module.cpu = compiled.1.target;
    let entry = o.entry.clone().or(compiled.1.kernel).or_else(|| {
        // A case names its kernel, but a compiler may have changed the symbol.
        let name = &case.as_ref()?.kernel;
        module.functions.iter().any(|f| f.name == *name).then(|| name.clone())
    });
    let program = simt::decode(&module, entry.as_deref())?;
    let (args, named) = match &case {
        Some(c) => arguments::of_case(c, o.data.as_deref())?,
        None => arguments(&o.args, &program.params)?,
    };
    let num_ctas = o.num_ctas.or(case.as_ref().map(|c| c.num_ctas)).unwrap_or(1);
    let [x, y, z] = o.grid.or(case.as_ref().map(|c| c.grid)).unwrap_or([1; 3]);
    let Some(x) = x.checked_mul(num_ctas) else { bail!("a grid of {x} clusters of {num_ctas} programs") };
    let launch = Launch {
        grid: [x, y, z],
        first: o.first.map(|[x, y, z]| [x.saturating_mul(num_ctas), y, z]),
        cluster: (num_ctas > 1).then_some([num_ctas, 1, 1]),
        args,
        block: o
            .threads
            .or(compiled.1.threads.map(|n| [n, 1, 1]))
            .or(program.block)
            .or(case.as_ref().map(|c| [c.num_warps * program.lanes(), 1, 1])),
        shared: o.shared.or(compiled.1.shared),
        checks: !o.no_checks,
        jobs: o.jobs.unwrap_or(Launch::default().jobs),
        trace: o.trace,
        limit: o.limit,
        ..Launch::default()
    };
    let outcome = watched(&program, &launch)?;
    let mut good = !outcome.stopped;
    if outcome.stopped {
        eprintln!("ttsim: stopped");
    }
    let arrays: Vec<(&Named, Array)> = named
        .iter()
        .zip(&outcome.buffers)
        .map(|(n, data)| (n, Array { dtype: n.dtype, shape: n.shape.clone(), data: data.clone() }))
        .collect();
    write_results(o, &arrays)?;
    for f in &outcome.findings {
        eprintln!("{f}");
        good = false;
    }
    good &= compare(o, &arrays)?;
    if !o.quiet {
        print!("{}", outcome.counts.table());
        let lanes = outcome.counts.total.lanes as f64;
        println!(
            "simulated in {:.2} s, {:.1} million lane instructions a second",
            outcome.seconds,
            lanes / outcome.seconds / 1e6
        );
    }
    if let Some(path) = &o.report {
        std::fs::write(path, simt::report(&launch, &outcome)).with_context(|| path.display().to_string())?;
    }
    Ok(good)
}

/// The kernel's LLVM IR and a name for it.
fn kernel(o: &Options, case: Option<&Case>) -> Result<(String, Compiled)> {
    let read = |p: &Path| -> Result<(String, Compiled)> {
        let llvm = std::fs::read(p).with_context(|| p.display().to_string())?;
        Ok((
            p.display().to_string(),
            Compiled { llvm, kernel: None, threads: None, target: o.target.clone(), shared: None },
        ))
    };
    if let Some(p) = &o.llvm {
        return read(p);
    }
    let beside = o.case.as_ref().map(|c| c.with_extension("ttir"));
    let file =
        o.kernel.clone().or(beside).ok_or_else(|| anyhow!("no kernel; give a file, --llvm or --case"))?;
    match file.extension().and_then(|e| e.to_str()) {
        Some("ll" | "bc" | "llir") => read(&file),
        Some("ttir" | "ttgir" | "mlir") => {
            let request = CompileRequest {
                file: file.clone(),
                target: o.target.clone(),
                num_warps: o.num_warps.or(case.map(|c| c.num_warps)),
                num_stages: o.num_stages.or(case.map(|c| c.num_stages)),
                num_ctas: o.num_ctas.or(case.map(|c| c.num_ctas)),
            };
            Ok((file.display().to_string(), to_llvm(&request)?))
        }
        _ => bail!("{}: neither .ttir, .ttgir, .ll nor .bc", file.display()),
    }
}

/// Runs with a progress line and so that Ctrl-C ends it in order.
fn watched(program: &simt::bytecode::Program, launch: &Launch) -> Result<Outcome> {
    static STOP: AtomicBool = AtomicBool::new(false);
    // A second run in one process keeps the first handler, which does the same.
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
    let start = Instant::now();
    let shown = AtomicU64::new(0);
    let terminal = std::io::stderr().is_terminal();
    let progress = |done: u64, all: u64| {
        let tick = start.elapsed().as_millis() as u64 / 200;
        if terminal && tick > 5 && shown.swap(tick, Ordering::Relaxed) != tick {
            let width = 40 * done / all.max(1);
            let bar: String = (0..40).map(|i| if i < width { '#' } else { '.' }).collect();
            eprint!("\r[{bar}] {done}/{all} programs, {:.0} s ", start.elapsed().as_secs_f64());
        }
    };
    let print = |s: &str| {
        let _ = std::io::stdout().lock().write_all(s.as_bytes());
    };
    let outcome = run_with(program, launch, &Control { stop: &STOP, progress: &progress, print: &print })?;
    if terminal && shown.load(Ordering::Relaxed) != 0 {
        eprint!("\r{:80}\r", "");
    }
    Ok(outcome)
}

fn write_results(o: &Options, arrays: &[(&Named, Array)]) -> Result<()> {
    let write =
        |path: PathBuf, data: &[u8]| std::fs::write(&path, data).with_context(|| path.display().to_string());
    for (n, a) in arrays {
        if let (true, Some(dir)) = (n.output, &o.data) {
            write(dir.join(format!("{}.out.bin", n.name)), &a.data)?;
        }
        if let Some(dir) = &o.out_dir {
            std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
            write(dir.join(format!("{}.npy", n.name)), &a.to_npy())?;
        }
    }
    Ok(())
}

fn compare(o: &Options, arrays: &[(&Named, Array)]) -> Result<bool> {
    let mut good = true;
    for text in &o.compare {
        let (name, file) = match text.split_once('=') {
            Some((n, f)) => (Some(n), f),
            None => (None, text.as_str()),
        };
        let (n, got) = match name {
            Some(name) => arrays
                .iter()
                .find(|(n, _)| n.name == name)
                .ok_or_else(|| anyhow!("--compare of '{name}', which is no buffer"))?,
            None => arrays.last().ok_or_else(|| anyhow!("--compare without a buffer"))?,
        };
        let bytes = std::fs::read(file).with_context(|| file.to_owned())?;
        let mut want = Array::from_npy(&bytes).with_context(|| file.to_owned())?;
        if want.dtype.bytes() == got.dtype.bytes()
            && matches!(got.dtype, Dtype::BF16 | Dtype::F8E4M3 | Dtype::F8E5M2)
        {
            want.dtype = got.dtype;
        }
        match got.compare(&want, o.rtol, o.atol)? {
            None => println!("{}: agrees with {file}", n.name),
            Some((i, a, b, count)) => {
                good = false;
                println!(
                    "{}: {count} elements differ from {file}, first element {i}: {a} instead of {b}",
                    n.name
                );
            }
        }
    }
    Ok(good)
}
