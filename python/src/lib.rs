//! `ttopt._ttopt`: what the Python package `ttopt` asks of the compiler. Python's side of it makes this pleasant.

mod simulate;

use linear_layout::show::{self, timeline};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};
use ttopt_tools::binary;
use ttopt_tools::companions::Companions;
use ttopt_tools::compile::{Compiled, Options, Stage, launch_of_json};
use ttopt_tools::diagnostics::{Diagnostic, Severity};
use ttopt_tools::occupancy::{self, Assembled, Limits};
use ttopt_tools::overrides::Override;
use ttopt_tools::session::{Cancellation, Outcome, Session};
use ttopt_tools::store::{Key, Store};

/// Stops a compilation from another thread.
#[pyclass(name = "Cancellation", frozen)]
#[derive(Default)]
struct PyCancellation(Cancellation);

#[pymethods]
impl PyCancellation {
    #[new]
    fn new() -> Self {
        Self::default()
    }
    /// Stops what uses it, between passes and stages.
    fn cancel(&self) {
        self.0.cancel();
    }
}

fn stage(name: &str) -> PyResult<Stage> {
    Ok(match name {
        "ttir" => Stage::Ttir,
        "ttgir" => Stage::Ttgir,
        "llvmir" | "llir" => Stage::Llvmir,
        "asm" => Stage::Asm,
        "ptx" => Stage::Ptx,
        "amdgcn" => Stage::Amdgcn,
        "bin" => Stage::Bin,
        "cubin" => Stage::Cubin,
        "hsaco" => Stage::Hsaco,
        "sass" => Stage::Sass,
        _ => {
            let known = "ttir, ttgir, llir, asm, ptx, amdgcn, bin, cubin, hsaco, sass";
            return Err(PyValueError::new_err(format!("no stage '{name}'; there are {known}")));
        }
    })
}

/// The options of a dictionary; an unknown one is an error.
fn options(given: &Bound<'_, PyDict>) -> PyResult<Options> {
    let mut options = Options::new(Stage::Asm);
    options.keep = true;
    let Companions { ptxas, nvdisasm, libdevice, lld, device_libraries, more_libraries, .. } =
        &mut options.companions;
    for (key, value) in given {
        let key: String = key.extract()?;
        if value.is_none() {
            continue;
        }
        let path = || value.extract::<PathBuf>();
        match key.as_str() {
            "target" => options.target = Some(value.extract()?),
            "num_warps" => options.num_warps = value.extract()?,
            "num_stages" => options.num_stages = value.extract()?,
            "num_ctas" => options.num_ctas = value.extract()?,
            "emit" => options.emit = stage(&value.extract::<String>()?)?,
            "explain" => options.explain = value.extract()?,
            "schedules" => options.schedules = value.extract()?,
            "verify_each" => options.verify_each = value.extract()?,
            "estimate" => {
                let launch = launch_of_json(&value.extract::<String>()?);
                options.estimate = Some(launch.map_err(|err| PyValueError::new_err(format!("{err:#}")))?);
            }
            "second" => options.second = value.extract()?,
            "all_tensor_maps" => options.all_tensor_maps = value.extract()?,
            "locations" => options.locations = value.extract()?,
            "line_info" => options.line_info = value.extract()?,
            "max_registers" => options.max_registers = Some(value.extract()?),
            "waves_per_eu" => options.waves_per_eu = Some(value.extract()?),
            "fp_fusion" => options.fp_fusion = value.extract()?,
            "flush_denormals" => options.flush_denormals = value.extract()?,
            "ptxas_options" => options.ptxas_options = value.extract()?,
            "overrides" => {
                for (stage, name, bytes) in value.extract::<Vec<(String, String, Vec<u8>)>>()? {
                    let given = Override::new(&stage, name, bytes);
                    options.overrides.push(given.map_err(|err| PyValueError::new_err(err.to_string()))?);
                }
            }
            "ptxas" => *ptxas = Some(path()?),
            "nvdisasm" => *nvdisasm = Some(path()?),
            "libdevice" => *libdevice = Some(path()?),
            "lld" => *lld = Some(path()?),
            "device_libraries" => *device_libraries = Some(path()?),
            "libraries" => *more_libraries = value.extract()?,
            _ => return Err(PyValueError::new_err(format!("no option '{key}'"))),
        }
    }
    for (name, number) in [("num_warps", options.num_warps), ("num_ctas", options.num_ctas)] {
        if !number.is_power_of_two() || number > 64 {
            let message = format!("{name} is {number}, which is not a power of two of at most 64");
            return Err(PyValueError::new_err(message));
        }
    }
    Ok(options)
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
        Severity::Remark => "remark",
    }
}

fn diagnostic<'py>(py: Python<'py>, from: &Diagnostic) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("severity", severity(from.severity))?;
    dict.set_item("message", &from.message)?;
    dict.set_item("file", &from.range.file)?;
    dict.set_item("line", from.range.line)?;
    dict.set_item("column", from.range.column)?;
    dict.set_item("end_line", from.range.end_line)?;
    dict.set_item("end_column", from.range.end_column)?;
    let notes: PyResult<Vec<_>> = from.notes.iter().map(|note| diagnostic(py, note)).collect();
    dict.set_item("notes", PyList::new(py, notes?)?)?;
    Ok(dict)
}

fn made<'py>(py: Python<'py>, compiled: &Compiled) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let artifacts = &compiled.artifacts;
    for (name, text) in [
        ("ttir", &artifacts.ttir),
        ("ttgir", &artifacts.ttgir),
        ("llir", &artifacts.llvmir),
        ("asm", &artifacts.asm),
        ("sass", &artifacts.sass),
    ] {
        if let Some(text) = text {
            dict.set_item(name, String::from_utf8_lossy(text))?;
        }
    }
    if let Some(bin) = &artifacts.bin {
        dict.set_item("bin", PyBytes::new(py, bin))?;
    }
    Ok(dict)
}

/// The same PTX as text of another version, 84 for 8.4 (`binary::in_version`).
#[pyfunction]
fn in_version(ptx: &str, version: u32) -> String {
    binary::in_version(ptx, version)
}

/// The best binary of the kernel of `ptx`, of which `cubin` was made for `target`: other texts are given to `assemble`, on threads
/// of their own, which returns their binaries, or `None`. `shared` bytes of shared memory are what a CTA takes, if that is known;
/// with `keeps_ctas` bounds of CTAs stay as they are. `second` is other PTX of the kernel, as `compile` makes it where it is asked to.
#[pyfunction]
#[pyo3(signature = (ptx, cubin, target, shared, keeps_ctas, assemble, second=None))]
fn best_binary<'py>(
    py: Python<'py>,
    ptx: &str,
    cubin: &[u8],
    target: &str,
    shared: Option<u64>,
    keeps_ctas: bool,
    assemble: Py<PyAny>,
    second: Option<&str>,
) -> PyResult<Bound<'py, PyBytes>> {
    // Arrays of a kernel are on its stack, too, where the assembler leaves them there.
    let arrays = binary::array_bytes(ptx);
    let knows_spills = arrays.is_some();
    let most_ctas = shared.map_or(1, |shared| occupancy::room_for(shared, target));
    let limits = Limits { keeps_ctas, knows_spills, ..Limits::new(target, most_ctas) };
    let failed = Mutex::new(None);
    let assembled = |cubin: Vec<u8>| {
        let stack =
            binary::stack_bytes(&cubin).zip(arrays).map_or(0, |(stack, arrays)| stack.saturating_sub(arrays));
        Assembled { cubin, stack, facts: () }
    };
    let other = |text: &[u8]| {
        let text = std::str::from_utf8(text).ok()?;
        let made = Python::attach(|py| assemble.call1(py, (text,))?.extract::<Option<Vec<u8>>>(py));
        let made = made.unwrap_or_else(|error| {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            None
        });
        Some(assembled(made?))
    };
    let goes_on = || failed.lock().unwrap_or_else(PoisonError::into_inner).is_none();
    let first = assembled(cubin.to_vec());
    let chosen = py.detach(|| {
        let first = occupancy::best_text(ptx.as_bytes(), (first, None), limits, &other, &goes_on);
        occupancy::better_of(first, second.map(str::as_bytes), limits, &other, &goes_on)
    });
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(PyBytes::new(py, &chosen.made.cubin)),
    }
}

/// Bytes of stack that a thread of `cubin` has.
#[pyfunction]
fn stack_bytes(cubin: &[u8]) -> Option<u32> {
    binary::stack_bytes(cubin)
}

/// One for all threads of the process.
fn session() -> &'static Session {
    static SESSION: LazyLock<Session> = LazyLock::new(Session::new);
    &SESSION
}

/// Compiles `source`, text or bytecode. Returns a dictionary: `artifacts` or `error`, `diagnostics`, `metadata` (JSON),
/// `resources`, `seconds`. The interpreter's lock is released meanwhile.
#[pyfunction]
#[pyo3(signature = (source, name, given, cancellation=None))]
fn compile<'py>(
    py: Python<'py>,
    source: &[u8],
    name: &str,
    given: &Bound<'py, PyDict>,
    cancellation: Option<Bound<'py, PyCancellation>>,
) -> PyResult<Bound<'py, PyDict>> {
    let options = options(given)?;
    let cancellation = cancellation.map(|given| given.get().0.clone()).unwrap_or_default();
    let outcome: Outcome = py.detach(|| session().compile(source, name, &options, &cancellation));
    let dict = PyDict::new(py);
    let all: PyResult<Vec<_>> = outcome.diagnostics.iter().map(|one| diagnostic(py, one)).collect();
    dict.set_item("diagnostics", PyList::new(py, all?)?)?;
    match &outcome.result {
        Err(failure) => {
            dict.set_item("error", outcome.message())?;
            dict.set_item("kind", format!("{failure:?}").to_lowercase())?;
        }
        Ok(compiled) => {
            dict.set_item("artifacts", made(py, compiled)?)?;
            let metadata = compiled.metadata.as_ref().map(|metadata| metadata.to_json().to_string());
            dict.set_item("metadata", metadata)?;
            if let Some(used) = compiled.resources {
                let resources = PyDict::new(py);
                resources.set_item("registers", used.registers)?;
                resources.set_item("spill_stores", used.spill_stores)?;
                resources.set_item("spill_loads", used.spill_loads)?;
                resources.set_item("stack", used.stack)?;
                resources.set_item("ctas", used.ctas)?;
                resources.set_item("warps", used.warps)?;
                resources.set_item("most_warps", used.most_warps)?;
                resources.set_item("occupancy", used.occupancy())?;
                dict.set_item("resources", resources)?;
            }
            if let Some(loops) = &compiled.schedules {
                dict.set_item("schedules", (timeline::to_json(loops), timeline::svg(loops)))?;
            }
            if let Some(estimate) = compiled.estimate_json() {
                dict.set_item("estimate", estimate.to_string())?;
            }
            if let Some(second) = &compiled.second {
                dict.set_item("second", String::from_utf8_lossy(second))?;
            }
            let times = &compiled.times;
            let seconds = PyDict::new(py);
            for (name, time) in [
                ("parse", times.parse),
                ("ttgir", times.ttgir),
                ("llir", times.llir),
                ("asm", times.asm),
                ("bin", times.bin),
            ] {
                seconds.set_item(name, time.as_secs_f64())?;
            }
            dict.set_item("seconds", seconds)?;
        }
    }
    Ok(dict)
}

/// A folder of results that processes share: what is not whole is found out, and it stays within a bound.
#[pyclass(name = "Store", frozen)]
struct PyStore(Store);

#[pymethods]
impl PyStore {
    #[new]
    fn new(folder: PathBuf, most_bytes: u64) -> PyResult<Self> {
        Store::open(&folder, most_bytes).map(Self).map_err(|err| PyOSError::new_err(format!("{err:#}")))
    }
    /// An entry, if it is there and whole.
    fn get<'py>(&self, py: Python<'py>, key: &[u8]) -> Option<Bound<'py, PyBytes>> {
        let found = py.detach(|| self.0.get(&Key::new(&[key])));
        found.map(|bytes| PyBytes::new(py, &bytes))
    }
    /// Puts an entry there.
    fn put(&self, py: Python<'_>, key: &[u8], contents: &[u8]) -> PyResult<()> {
        let written = py.detach(|| self.0.put(&Key::new(&[key]), contents));
        written.map_err(|err| PyOSError::new_err(format!("{err:#}")))
    }
}

/// A layout, or a conversion to another one, as `table`, `matrix`, `bases`, `json` or `svg`.
#[pyfunction]
#[pyo3(signature = (layout, shape, format, dtype="f32", target="cuda:90", to=None))]
fn show_layout(
    layout: String,
    shape: Vec<u64>,
    format: &str,
    dtype: &str,
    target: &str,
    to: Option<String>,
) -> PyResult<String> {
    let format = match format {
        "table" => show::Format::Table,
        "matrix" => show::Format::Matrix,
        "bases" => show::Format::Bases,
        "json" => show::Format::Json,
        "svg" => show::Format::Svg,
        _ => return Err(PyValueError::new_err(format!("no format '{format}'"))),
    };
    let (dtype, target) = (dtype.to_owned(), target.to_owned());
    let request = show::Request { layout, shape, dtype, to, target, num_warps: None };
    show::text(&request, format).map_err(PyValueError::new_err)
}

#[pymodule]
fn _ttopt(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<PyCancellation>()?;
    module.add_class::<PyStore>()?;
    module.add_function(wrap_pyfunction!(compile, module)?)?;
    module.add_function(wrap_pyfunction!(show_layout, module)?)?;
    module.add_function(wrap_pyfunction!(best_binary, module)?)?;
    module.add_function(wrap_pyfunction!(in_version, module)?)?;
    module.add_function(wrap_pyfunction!(stack_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)
}
