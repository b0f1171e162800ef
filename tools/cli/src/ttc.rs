//! The one-shot compiler: `ttc kernel.ttir --target cuda:90 --emit ptx`.

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use linear_layout::show::timeline::{self, Timeline};
use linear_layout::target::{TargetDesc, Vendor};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use ttopt_passes::estimate::Launch;
use ttopt_tools::batch::{self, Job};
use ttopt_tools::binary::Resources;
use ttopt_tools::companions::Companions;
use ttopt_tools::compile::{Compiled, Options, Reported, Stage, Times, check_input, compile, launch_of_json};
use ttopt_tools::explain;
use ttopt_tools::overrides::Override;
use ttopt_tools::store::Store;

/// The names of stages.
fn stages() -> impl TypedValueParser<Value = Stage> {
    let names = Stage::ALL.map(|(stage, name, what)| {
        let value = PossibleValue::new(name).help(what);
        if stage == Stage::Llvmir { value.alias("llir") } else { value }
    });
    PossibleValuesParser::new(names).try_map(|name| Stage::of_name(&name).ok_or("no such stage"))
}

/// Compiles a Triton module for a GPU.
#[derive(Parser)]
#[command(name = "ttc", version, max_term_width = 100)]
struct Args {
    /// TTIR or TTGIR, text or bytecode; `-` for stdin
    #[arg(required_unless_present = "batch")]
    input: Option<PathBuf>,
    /// Compile many: one job a line, {"input": "k.ttir", "output": "k.ptx", "num_warps": 8}, one answer a line; `-` for
    /// stdin. What a job does not say is as in the other options
    #[arg(long, value_name = "FILE", conflicts_with_all = ["input", "output", "time", "time_json", "metadata",
        "print_after", "explain"])]
    batch: Option<PathBuf>,
    /// Threads for --batch [default: one for each core]
    #[arg(long, requires = "batch")]
    jobs: Option<usize>,
    /// Where --batch keeps what it made, for later runs and other processes
    #[arg(long, value_name = "DIR", requires = "batch")]
    cache: Option<PathBuf>,
    /// Bytes that the cache may take
    #[arg(long, value_name = "BYTES", requires = "cache", default_value_t = 4 << 30)]
    cache_bytes: u64,
    /// What to compile for, as in ttg.target: cuda:90, hip:gfx942, … [default: the module's, or cuda:90]
    #[arg(long)]
    target: Option<String>,
    /// Warps of a program
    #[arg(long, default_value_t = 4, value_parser = power_of_two)]
    num_warps: u32,
    /// Stages of software pipelines; 0 for none (of one wanted, NVIDIA GPUs have two where few programs share a multiprocessor)
    #[arg(long, default_value_t = 3)]
    num_stages: u32,
    /// CTAs of a cluster that run one program
    #[arg(long, default_value_t = 1, value_parser = power_of_two)]
    num_ctas: u32,
    /// What to stop at
    #[arg(long, value_parser = stages(), default_value = "asm")]
    emit: Stage,
    /// Where the result goes; `-` for stdout
    #[arg(short, long, default_value = "-")]
    output: PathBuf,
    /// Print how long the stages took to stderr
    #[arg(long)]
    time: bool,
    /// Write how long the stages took, in microseconds, as JSON
    #[arg(long, value_name = "FILE")]
    time_json: Option<PathBuf>,
    /// Write what a launcher needs to know as JSON
    #[arg(long, value_name = "FILE")]
    metadata: Option<PathBuf>,
    /// Print the IR to stderr after a stage (ttir, ttgir, llvm, llvmir) or pass, or after all
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    print_after: Vec<String>,
    /// Say what was chosen and why, as remarks and a summary on stderr
    #[arg(long)]
    explain: bool,
    /// Write the schedules of loops, or why they have none: a picture where FILE ends in .svg, else JSON
    #[arg(long, value_name = "FILE", conflicts_with = "batch")]
    schedules: Option<PathBuf>,
    /// Write as JSON what a program of a launch asks of the GPU: cycles by what they are for, bytes, waits
    #[arg(long, value_name = "FILE", conflicts_with = "batch")]
    estimate: Option<PathBuf>,
    /// The launch for --estimate, {"grid": [1, 1, 1], "args": [{"value": 7}, …]}; else loops count 16 iterations
    #[arg(long, value_name = "JSON", requires = "estimate")]
    launch: Option<String>,
    /// Verify the IR after each pass, not only after each stage; builds with assertions do so by default
    #[arg(long, value_name = "BOOL", default_value_t = cfg!(debug_assertions), default_missing_value = "true",
        num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    verify_each: bool,
    /// Make tensor maps of all descriptors that can have one, also where pointers were measured to be faster
    #[arg(long)]
    all_tensor_maps: bool,
    /// The most registers that a thread may have (NVIDIA)
    #[arg(long, value_name = "N")]
    max_registers: Option<u32>,
    /// The waves that a SIMD is to hold (AMD)
    #[arg(long, value_name = "N")]
    waves_per_eu: Option<u32>,
    /// Let no product and sum become one operation that rounds once
    #[arg(long)]
    no_fp_fusion: bool,
    /// Let functions of singles keep denormal numbers, which they take for zero otherwise (NVIDIA)
    #[arg(long)]
    keep_denormals: bool,
    /// An option for ptxas; repeat for more (NVIDIA)
    #[arg(long = "ptxas-option", value_name = "OPTION", allow_hyphen_values = true)]
    ptxas_options: Vec<String>,
    /// Print TTIR and TTGIR with locations and names of values: what is edited and compiled again keeps its lines
    #[arg(long)]
    locations: bool,
    /// Give the code no lines of the source
    #[arg(long)]
    no_line_info: bool,
    /// Write what each stage made to DIR/KERNEL.ttir, .ttgir, .llir, .ptx and so on, TTIR and TTGIR with locations
    #[arg(long, value_name = "DIR", conflicts_with = "batch")]
    dump: Option<PathBuf>,
    /// Take FILE, a stage from --dump that was edited, in the place of what would be made: its extension says which stage, and
    /// what follows is made from it; repeat for more. Its kernel, target and options must be those of this run
    #[arg(long = "override", value_name = "FILE", conflicts_with = "batch")]
    overrides: Vec<PathBuf>,
    /// Log what happens; repeat for more
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

fn power_of_two(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(n) if n.is_power_of_two() && n <= 64 => Ok(n),
        Ok(n) => Err(format!("{n} is not a power of two of at most 64")),
        Err(err) => Err(err.to_string()),
    }
}

fn read(input: &PathBuf) -> Result<(Vec<u8>, String)> {
    let (bytes, name) = if input.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).context("cannot read stdin")?;
        (bytes, "<stdin>".to_owned())
    } else {
        let bytes = std::fs::read(input).with_context(|| format!("cannot read {}", input.display()))?;
        (bytes, input.display().to_string())
    };
    check_input(&bytes, &name)?;
    Ok((bytes, name))
}

fn write(output: &Path, bytes: &[u8]) -> Result<()> {
    if output.as_os_str() == "-" {
        return std::io::stdout().write_all(bytes).context("cannot write to stdout");
    }
    std::fs::write(output, bytes).with_context(|| format!("cannot write {}", output.display()))
}

/// Writes the schedules of loops.
fn write_schedules(path: &Path, schedules: Option<&[Timeline]>, name: &str) -> Result<()> {
    let Some(loops) = schedules else {
        bail!("no loops were scheduled: {name} has layouts already, or compilation stopped before")
    };
    let is_picture = path.extension().is_some_and(|extension| extension == "svg");
    let text = if is_picture { timeline::svg(loops) } else { timeline::to_json(loops) + "\n" };
    write(path, text.as_bytes())
}

fn print_times(times: &Times) {
    let rows = [
        ("parse", times.parse),
        ("ttgir", times.ttgir),
        ("llir", times.llir),
        ("asm", times.asm),
        ("bin", times.bin),
        ("total", times.total()),
    ];
    eprintln!("{:>8} {:>12}", "stage", "time (us)");
    for (name, time) in rows {
        eprintln!("{name:>8} {:>12}", time.as_micros());
    }
}

fn options(args: &Args) -> Options {
    let mut options = Options::new(args.emit);
    options.target = args.target.clone();
    options.num_warps = args.num_warps;
    options.num_stages = args.num_stages;
    options.num_ctas = args.num_ctas;
    options.print_after = args.print_after.clone();
    options.explain = args.explain;
    options.schedules = args.schedules.is_some();
    options.verify_each = args.verify_each;
    options.all_tensor_maps = args.all_tensor_maps;
    options.max_registers = args.max_registers;
    options.waves_per_eu = args.waves_per_eu;
    options.fp_fusion = !args.no_fp_fusion;
    options.flush_denormals = !args.keep_denormals;
    options.ptxas_options = args.ptxas_options.clone();
    options.locations = args.locations || args.dump.is_some();
    options.line_info = !args.no_line_info;
    options.dump = args.dump.clone();
    options.companions = Companions::find();
    options
}

/// Says whether all jobs were done.
fn run_batch(args: &Args, list: &PathBuf) -> Result<bool> {
    let defaults = options(args);
    let mut text = String::new();
    if list.as_os_str() == "-" {
        std::io::stdin().read_to_string(&mut text).context("cannot read stdin")?;
    } else {
        text = std::fs::read_to_string(list).with_context(|| format!("cannot read {}", list.display()))?;
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let jobs: Vec<_> = lines.map(|line| Job::parse(line, &defaults)).collect();
    let store = args.cache.as_ref().map(|folder| Store::open(folder, args.cache_bytes)).transpose()?;
    let threads = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let mut out = std::io::stdout().lock();
    let (mut good, mut written) = (true, Ok(()));
    batch::run(&jobs, threads, store.as_ref(), |answer| {
        good &= answer["ok"] == true;
        written = std::mem::replace(&mut written, Ok(())).and_then(|()| writeln!(out, "{answer}"));
    });
    written.and_then(|()| out.flush()).context("cannot write to stdout")?;
    if let Some(store) = store.filter(|store| store.corrupt() > 0) {
        eprintln!("ttc: note: {} entries of the cache were not whole, and were made anew", store.corrupt());
    }
    Ok(good)
}

fn run(args: &Args) -> Result<()> {
    if let Some(list) = &args.batch {
        return if run_batch(args, list)? { Ok(()) } else { Err(Reported.into()) };
    }
    let (input, name) = read(args.input.as_ref().context("no input")?)?;
    let mut options = options(args);
    options.overrides = args.overrides.iter().map(|path| Override::read(path)).collect::<Result<_>>()?;
    if args.estimate.is_some() {
        options.estimate = Some(args.launch.as_deref().map_or(Ok(Launch::default()), launch_of_json)?);
    }
    let compiled = compile(&input, &name, &options)?;
    let estimate = compiled.estimate_json();
    let Compiled { output, metadata, times, resources, schedules, .. } = compiled;
    write(&args.output, &output)?;
    if args.time {
        print_times(&times);
    }
    if let Some(path) = &args.time_json {
        let json = times.to_json();
        write(path, format!("{json}\n").as_bytes())?;
    }
    if let Some(path) = &args.metadata {
        match &metadata {
            Some(metadata) => {
                let mut json = metadata.to_json();
                if let Some(used) = &resources {
                    json["resources"] = used.to_json();
                }
                write(path, format!("{json:#}\n").as_bytes())?;
            }
            None => bail!("metadata is known from --emit ttgir on, not for --emit ttir"),
        }
    }
    if let Some(path) = &args.schedules {
        write_schedules(path, schedules.as_deref(), &name)?;
    }
    if let Some(path) = &args.estimate {
        let Some(estimate) = estimate else {
            bail!("{name} has layouts: there is an estimate from TTIR only")
        };
        write(path, format!("{estimate:#}\n").as_bytes())?;
    }
    // The summary reads PTX.
    let is_ptx = |target: &str| TargetDesc::parse(target).is_ok_and(|desc| desc.vendor == Vendor::Nvidia);
    let explains = args.explain && args.emit.is_assembly();
    if let Some(used) = resources.filter(|_| args.explain) {
        let Resources { registers, spill_stores, spill_loads, stack, ctas, warps, most_warps, .. } = used;
        let is_nvidia = metadata.as_ref().is_some_and(|metadata| is_ptx(&metadata.target));
        let who = if is_nvidia { "ptxas" } else { "LLVM" };
        eprintln!(
            "{who}: {registers} registers a thread, {stack} bytes of stack, {spill_stores} bytes of spill stores, \
             {spill_loads} bytes of spill loads; CTAs that fit on a multiprocessor: {ctas}, {warps} of {most_warps} warps"
        );
    }
    if let Some(metadata) = metadata.as_ref().filter(|metadata| explains && is_ptx(&metadata.target)) {
        eprint!("{}", explain::summary(metadata, &String::from_utf8_lossy(&output)));
    }
    Ok(())
}

fn main() -> ExitCode {
    ttopt_tools::memory::keep_freed();
    let args = Args::parse();
    let level = ["warn", "info", "debug", "trace"][usize::from(args.verbose.min(3))];
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| level.into());
    // Colours are for people.
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let log =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours);
    log.without_time().init();
    match mlir_host::driver::on_large_stack(|| run(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        // Diagnostics were printed with their locations.
        Err(err) if err.is::<Reported>() => ExitCode::FAILURE,
        Err(err) => {
            eprintln!("ttc: error: {err:#}");
            ExitCode::FAILURE
        }
    }
}
