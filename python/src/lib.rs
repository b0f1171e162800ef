//! `ttopt._ttopt`: what the Python package `ttopt` asks of the compiler. Python's side of it makes this pleasant.

mod simulate;

use linear_layout::show::{self, timeline};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::path::PathBuf;
use std::sync::LazyLock;
use ttopt_tools::companions::Companions;
use ttopt_tools::compile::{Compiled, Options, Stage, launch_of_json};
use ttopt_tools::diagnostics::{Diagnostic, Severity};
use ttopt_tools::overrides::Override;
use ttopt_tools::session::{Cancellation, Outcome, Session};
use ttopt_tools::store::{Key, Store};
use ttopt_tools::{binary, occupancy};

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

/// What `ptx` should say instead once `cubin` was made of it, where its threads spill too much for the sake of more CTAs.
#[pyfunction]
fn with_fewer_spills(ptx: &str, cubin: &[u8]) -> Option<String> {
    // Arrays of a kernel are on its stack, too: there nothing is known of spills.
    let stack = binary::stack_bytes(cubin).filter(|_| !ptx.contains(".local"))?;
    String::from_utf8(occupancy::with_fewer_spills(ptx.as_bytes(), stack)?).ok()
}

/// What `ptx` should say instead once `cubin` was made of it, where its threads spill nothing, for more CTAs of `shared` bytes
/// of shared memory on `target`.
#[pyfunction]
fn with_more_ctas(ptx: &str, cubin: &[u8], shared: u64, target: &str) -> Option<String> {
    binary::stack_bytes(cubin).filter(|stack| *stack == 0)?;
    let most = occupancy::room_for(shared, target);
    let text = occupancy::with_more_ctas(ptx.as_bytes(), binary::registers(cubin)?, most)?;
    String::from_utf8(text).ok()
}

/// Whether `stack` bytes are so few that more CTAs, which need them, had better stay.
#[pyfunction]
fn is_worth_more_ctas(stack: u32) -> bool {
    occupancy::is_worth_more_ctas(stack)
}

/// `ptx` with its instructions in other orders, to be tried one by one once `cubin` was made of it and its threads spill.
#[pyfunction]
fn in_other_orders(ptx: &str, cubin: &[u8]) -> Vec<String> {
    let stack = binary::stack_bytes(cubin).filter(|_| !ptx.contains(".local")).unwrap_or(0);
    occupancy::in_other_orders(ptx.as_bytes(), stack)
        .filter_map(|text| String::from_utf8(text).ok())
        .collect()
}

/// Other texts for the kernel of `ptx` that an estimate of machine code tells to be better or not.
const VARIANTS: usize = occupancy::BY_MACHINE_CODE.len();

/// The variant of that number of `ptx`, to be tried once `cubin` was made of it for `capability`, as in 90.
#[pyfunction]
fn variant(number: usize, ptx: &str, cubin: &[u8], capability: u32) -> Option<String> {
    let text = occupancy::BY_MACHINE_CODE.get(number)?.text;
    String::from_utf8(text(ptx.as_bytes(), cubin, capability)?).ok()
}

/// Whether the kernel of `ptx` had better be `other`, the cubin of that variant, than `cubin`.
#[pyfunction]
fn is_variant_worth(number: usize, ptx: &str, cubin: &[u8], other: &[u8], capability: u32) -> bool {
    let variant = occupancy::BY_MACHINE_CODE.get(number);
    variant.is_some_and(|variant| (variant.is_worth)(ptx.as_bytes(), cubin, other, capability))
}

/// Whether `stack` bytes are so many fewer than `before` that instructions had better stay in the order that needs them.
#[pyfunction]
fn is_worth_another_order(stack: u32, before: u32) -> bool {
    occupancy::is_worth_another_order(stack, before)
}

/// Whether `stack` bytes are so many fewer than `before` that fewer CTAs, which need them, had better stay.
#[pyfunction]
fn is_worth_fewer_ctas(stack: u32, before: u32) -> bool {
    occupancy::is_worth_fewer_ctas(stack, before)
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
    module.add_function(wrap_pyfunction!(with_fewer_spills, module)?)?;
    module.add_function(wrap_pyfunction!(is_worth_fewer_ctas, module)?)?;
    module.add_function(wrap_pyfunction!(in_other_orders, module)?)?;
    module.add("VARIANTS", VARIANTS)?;
    module.add_function(wrap_pyfunction!(variant, module)?)?;
    module.add_function(wrap_pyfunction!(is_variant_worth, module)?)?;
    module.add_function(wrap_pyfunction!(is_worth_another_order, module)?)?;
    module.add_function(wrap_pyfunction!(stack_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(with_more_ctas, module)?)?;
    module.add_function(wrap_pyfunction!(is_worth_more_ctas, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)
}
