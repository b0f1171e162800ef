//! The one-shot compiler: `ttc kernel.ttir --target cuda:90 --emit ptx`.

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use linear_layout::target::{TargetDesc, Vendor};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use ttopt_tools::companions::Companions;
use ttopt_tools::compile::{Compiled, Options, Reported, Stage, Times, check_input, compile};
use ttopt_tools::explain;

/// Compiles a Triton module for a GPU.
#[derive(Parser)]
#[command(name = "ttc", version, max_term_width = 100)]
struct Args {
    /// TTIR or TTGIR, text or bytecode; `-` for stdin
    input: PathBuf,
    /// What to compile for, as in ttg.target: cuda:90, hip:gfx942, … [default: the module's, or cuda:90]
    #[arg(long)]
    target: Option<String>,
    /// Warps of a program
    #[arg(long, default_value_t = 4, value_parser = power_of_two)]
    num_warps: u32,
    /// Stages of software pipelines
    #[arg(long, default_value_t = 3)]
    num_stages: u32,
    /// CTAs of a cluster that run one program
    #[arg(long, default_value_t = 1, value_parser = power_of_two)]
    num_ctas: u32,
    /// What to stop at
    #[arg(long, value_enum, default_value_t = Stage::Asm)]
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
    /// Verify the IR after each pass, not only after each stage; builds with assertions do so by default
    #[arg(long, value_name = "BOOL", default_value_t = cfg!(debug_assertions), default_missing_value = "true",
        num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    verify_each: bool,
    /// Make tensor maps of all descriptors that can have one, also where pointers were measured to be faster
    #[arg(long)]
    all_tensor_maps: bool,
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

fn write(output: &PathBuf, bytes: &[u8]) -> Result<()> {
    if output.as_os_str() == "-" {
        return std::io::stdout().write_all(bytes).context("cannot write to stdout");
    }
    std::fs::write(output, bytes).with_context(|| format!("cannot write {}", output.display()))
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

fn run(args: &Args) -> Result<()> {
    let (input, name) = read(&args.input)?;
    let options = Options {
        target: args.target.clone(),
        num_warps: args.num_warps,
        num_stages: args.num_stages,
        num_ctas: args.num_ctas,
        emit: args.emit,
        print_after: args.print_after.clone(),
        explain: args.explain,
        verify_each: args.verify_each,
        all_tensor_maps: args.all_tensor_maps,
        companions: Companions::find(),
        ..Options::default()
    };
    let Compiled { output, metadata, times, .. } = compile(&input, &name, &options)?;
    write(&args.output, &output)?;
    if args.time {
        print_times(&times);
    }
    if let Some(path) = &args.time_json {
        let json = serde_json::json!({
            "parse_us": times.parse.as_micros() as u64,
            "ttgir_us": times.ttgir.as_micros() as u64,
            "llir_us": times.llir.as_micros() as u64,
            "asm_us": times.asm.as_micros() as u64,
            "bin_us": times.bin.as_micros() as u64,
            "total_us": times.total().as_micros() as u64,
        });
        write(path, format!("{json}\n").as_bytes())?;
    }
    if let Some(path) = &args.metadata {
        match &metadata {
            Some(metadata) => write(path, format!("{:#}\n", metadata.to_json()).as_bytes())?,
            None => bail!("metadata is known from --emit ttgir on, not for --emit ttir"),
        }
    }
    // The summary reads PTX.
    let is_ptx = |target: &str| TargetDesc::parse(target).is_ok_and(|desc| desc.vendor == Vendor::Nvidia);
    let explains = args.explain && args.emit.is_assembly();
    if let Some(metadata) = metadata.as_ref().filter(|metadata| explains && is_ptx(&metadata.target)) {
        eprint!("{}", explain::summary(metadata, &String::from_utf8_lossy(&output)));
    }
    Ok(())
}

fn main() -> ExitCode {
    let args = Args::parse();
    let level = ["warn", "info", "debug", "trace"][usize::from(args.verbose.min(3))];
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| level.into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().init();
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
