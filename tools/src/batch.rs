//! Many compilations in one process, on all cores, with what was compiled before taken from a [`Store`].
//!
//! A job is a line of JSON: `{"input": "kernel.ttir", "output": "kernel.ptx"}`, and, where they are not the defaults of the
//! command line, `target`, `num_warps`, `num_stages`, `num_ctas`, `emit`, `max_registers`, `waves_per_eu`, `fp_fusion`,
//! `flush_denormals`. For each job there is
//! a line of JSON, in their order: `{"input": …, "ok": true, "cached": false, "metadata": {…}, "resources": {…}, "times": {…}}`
//! (what compiling took, `null` where it was done before), with the result under `asm` where there is no `output`, or with
//! `error`.

use crate::companions::Companions;
use crate::compile::{Compiled, Options, Stage};
use crate::session::{Cancellation, Session};
use crate::store::{Key, Store};
use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::UNIX_EPOCH;

/// A kernel with options.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Job {
    /// Where it is.
    pub input: PathBuf,
    /// Where the result goes; into the answer without it.
    pub output: Option<PathBuf>,
    /// What to compile for.
    pub options: Options,
}

impl Job {
    /// From a line of JSON; what it does not say is as in `defaults`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(line: &str, defaults: &Options) -> Result<Self> {
        let value: Value = serde_json::from_str(line).context("not JSON")?;
        let object = value.as_object().ok_or_else(|| anyhow!("a job is a JSON object"))?;
        let (mut input, mut output, mut options) = (None, None, defaults.clone());
        for (key, value) in object {
            let text = || value.as_str().ok_or_else(|| anyhow!("`{key}` must be a string, not {value}"));
            let number = || {
                let number = value.as_u64().and_then(|n| u32::try_from(n).ok());
                number.ok_or_else(|| anyhow!("`{key}` must be a number, not {value}"))
            };
            let flag =
                || value.as_bool().ok_or_else(|| anyhow!("`{key}` must be true or false, not {value}"));
            let power = || match number()? {
                n if n.is_power_of_two() && n <= 64 => Ok(n),
                n => bail!("`{key}` is {n}, which is not a power of two of at most 64"),
            };
            match key.as_str() {
                "input" => input = Some(PathBuf::from(text()?)),
                "output" => output = Some(PathBuf::from(text()?)),
                "target" => options.target = Some(text()?.to_owned()),
                "num_warps" => options.num_warps = power()?,
                "num_stages" => options.num_stages = number()?,
                "num_ctas" => options.num_ctas = power()?,
                "max_registers" => options.max_registers = Some(number()?),
                "waves_per_eu" => options.waves_per_eu = Some(number()?),
                "fp_fusion" => options.fp_fusion = flag()?,
                "flush_denormals" => options.flush_denormals = flag()?,
                "emit" => {
                    options.emit = Stage::of_name(text()?).ok_or_else(|| anyhow!("no stage {value}"))?;
                }
                _ => bail!("unknown key `{key}`"),
            }
        }
        Ok(Self { input: input.ok_or_else(|| anyhow!("`input` is missing"))?, output, options })
    }
}

/// Does jobs on threads, each of which takes the next one; calls back with answers, in the order of the jobs.
pub fn run(jobs: &[Result<Job>], threads: usize, store: Option<&Store>, mut answer: impl FnMut(Value)) {
    let (session, next) = (Session::new(), AtomicUsize::new(0));
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            let send = send.clone();
            let (session, next) = (&session, &next);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(at) else { break };
                    if send.send((at, done(session, job, store))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let mut waiting = std::collections::BTreeMap::new();
        let mut wanted = 0;
        for (at, made) in receive {
            waiting.insert(at, made);
            while let Some(made) = waiting.remove(&wanted) {
                answer(made);
                wanted += 1;
            }
        }
    });
}

fn done(session: &Session, job: &Result<Job>, store: Option<&Store>) -> Value {
    match job {
        Err(err) => json!({"ok": false, "error": format!("{err:#}")}),
        Ok(job) => {
            let mut made = compiled(session, job, store)
                .unwrap_or_else(|err| json!({"ok": false, "error": format!("{err:#}")}));
            made["input"] = json!(job.input);
            made
        }
    }
}

/// What is kept: a line of facts, then the result.
struct Made {
    facts: Value,
    output: Vec<u8>,
}

impl Made {
    fn new(compiled: Compiled) -> Self {
        let resources = compiled.resources.map(|used| used.to_json());
        let metadata = compiled.metadata.map(|metadata| metadata.to_json());
        let facts = json!({"metadata": metadata, "resources": resources});
        Self { facts, output: compiled.output }
    }

    fn to_bytes(&self) -> Vec<u8> {
        [self.facts.to_string().as_bytes(), b"\n", &self.output].concat()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let facts = serde_json::from_slice(&bytes[..end]).ok()?;
        Some(Self { facts, output: bytes[end + 1..].to_vec() })
    }
}

fn compiled(session: &Session, job: &Job, store: Option<&Store>) -> Result<Value> {
    let name = job.input.display().to_string();
    let input = std::fs::read(&job.input).with_context(|| format!("cannot read {name}"))?;
    let key = store.map(|_| key(&input, &name, &job.options));
    let known = store.zip(key.as_ref()).and_then(|(store, key)| Made::from_bytes(&store.get(key)?));
    let cached = known.is_some();
    let (made, times) = match known {
        Some(made) => (made, None),
        None => {
            let outcome = session.compile(&input, &name, &job.options, &Cancellation::default());
            let message = outcome.message();
            let compiled = outcome.result.map_err(|_| anyhow!("{message}"))?;
            let times = compiled.times.to_json();
            let made = Made::new(compiled);
            if let Some((store, key)) = store.zip(key.as_ref()) {
                store.put(key, &made.to_bytes())?;
            }
            (made, Some(times))
        }
    };
    let mut answer = json!({
        "ok": true,
        "cached": cached,
        "metadata": made.facts["metadata"],
        "resources": made.facts["resources"],
        "times": times,
    });
    match &job.output {
        Some(path) => {
            std::fs::write(path, &made.output).with_context(|| format!("cannot write {}", path.display()))?;
            answer["output"] = json!(path);
        }
        None => answer["asm"] = json!(String::from_utf8_lossy(&made.output)),
    }
    Ok(answer)
}

/// Of all that a result depends on: the compiler, the options, the tools and libraries that may be used, and the input with
/// its name, which is in the code's line information.
fn key(input: &[u8], name: &str, options: &Options) -> Key {
    let compiler = std::env::current_exe().map(|path| facts_of(&path)).unwrap_or_default();
    let Companions { ptxas, nvdisasm, libdevice, lld, device_libraries, more_libraries } =
        &options.companions;
    let tools = [ptxas, nvdisasm, libdevice, lld, device_libraries];
    let tools = tools.into_iter().flatten().chain(more_libraries).map(|path| facts_of(path));
    let tools: Vec<String> = tools.collect();
    let options = format!("{options:?}");
    Key::new(&[compiler.as_bytes(), tools.join("\n").as_bytes(), options.as_bytes(), name.as_bytes(), input])
}

/// What tells versions of a file apart: its path, size and time.
fn facts_of(path: &Path) -> String {
    let facts = path.metadata().ok();
    let time = facts.as_ref().and_then(|facts| facts.modified().ok()?.duration_since(UNIX_EPOCH).ok());
    format!(
        "{} {} {}",
        path.display(),
        facts.map_or(0, |facts| facts.len()),
        time.map_or(0, |t| t.as_nanos())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_say_what_is_wrong_with_them() {
        let parse = |line: &str| Job::parse(line, &Options::default());
        let job = parse(r#"{"input": "k.ttir", "target": "cuda:80", "num_warps": 8, "emit": "ptx"}"#)
            .expect("a job");
        assert_eq!((job.options.num_warps, job.options.emit), (8, Stage::Ptx));
        for (line, what) in [
            ("[]", "a job is a JSON object"),
            ("{}", "`input` is missing"),
            (r#"{"input": 3}"#, "`input` must be a string"),
            (r#"{"input": "k", "num_warps": 3}"#, "not a power of two"),
            (r#"{"input": "k", "emit": "exe"}"#, "no stage"),
            (r#"{"input": "k", "color": 1}"#, "unknown key `color`"),
        ] {
            let error = format!("{:#}", parse(line).expect_err(line));
            assert!(error.contains(what), "{line}: {error}");
        }
    }

    #[test]
    fn other_options_have_other_keys() {
        let key = |change: fn(&mut Options)| {
            let mut options = Options::default();
            change(&mut options);
            super::key(b"input", "name", &options)
        };
        let keys = [
            key(|_| {}),
            key(|o| o.num_warps = 8),
            key(|o| o.fp_fusion = false),
            key(|o| o.flush_denormals = false),
            key(|o| o.emit = Stage::Bin),
        ];
        assert!((0..5).all(|i| (0..i).all(|j| keys[i] != keys[j])));
        assert_eq!(keys[0], key(|_| {}));
    }
}
