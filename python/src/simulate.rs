//! Kernels on the CPU.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use simt::ir::Ty;
use simt::{Arg, Launch};

/// An argument: a buffer with a name, a number, or null.
#[derive(FromPyObject)]
pub enum Given {
    Buffer(String, Vec<u8>),
    Int(i128),
    Float(f64),
}

/// The bits of a number as the kernel's parameter has it.
fn scalar(given: &Given, ty: Option<&Ty>, at: usize) -> Result<u64, String> {
    let number = match given {
        Given::Int(n) => *n as f64,
        Given::Float(x) => *x,
        Given::Buffer(..) => 0.0,
    };
    let narrow = |dtype: simt::input::Dtype| {
        dtype.scalar(&serde_json::json!(number)).map_err(|err| format!("argument {at}: {err}"))
    };
    match (ty, given) {
        (Some(Ty::F64), _) => Ok(number.to_bits()),
        (Some(Ty::F32), _) => Ok((number as f32).to_bits().into()),
        (Some(Ty::F16), _) => narrow(simt::input::Dtype::F16),
        (Some(Ty::BF16), _) => narrow(simt::input::Dtype::BF16),
        (_, Given::Int(n)) => u64::try_from(*n)
            .or_else(|_| i64::try_from(*n).map(|n| n as u64))
            .map_err(|_| format!("argument {at}: {n} does not fit in 64 bits")),
        _ => Err(format!("argument {at} is {number}, and the kernel wants an integer")),
    }
}

/// Runs a kernel in LLVM IR for a grid. Returns the contents of the buffers and the report as JSON.
#[pyfunction]
#[pyo3(signature = (llvm, kernel, target, threads, shared, grid, cluster, args, jobs=None))]
#[allow(clippy::type_complexity)]
pub fn simulate<'py>(
    py: Python<'py>,
    llvm: &[u8],
    kernel: Option<String>,
    target: String,
    threads: u32,
    shared: u32,
    grid: [u32; 3],
    cluster: u32,
    args: Vec<Option<Given>>,
    jobs: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let run = || -> Result<(Vec<Vec<u8>>, String, String), String> {
        let mut module = simt::read::parse("kernel.llir", llvm).map_err(|err| err.to_string())?;
        module.cpu = Some(target);
        let program = simt::decode(&module, kernel.as_deref()).map_err(|err| err.to_string())?;
        let of = |(at, given): (usize, Option<Given>)| {
            Ok(match given {
                None => Arg::Address(0),
                Some(Given::Buffer(name, data)) => Arg::Buffer { name, data },
                Some(number) => Arg::Scalar(scalar(&number, program.params.get(at), at)?),
            })
        };
        let [x, y, z] = grid;
        let x = x.checked_mul(cluster).ok_or("a grid with too many programs")?;
        let default = Launch::default();
        let launch = Launch {
            grid: [x, y, z],
            cluster: (cluster > 1).then_some([cluster, 1, 1]),
            args: args.into_iter().enumerate().map(of).collect::<Result<_, String>>()?,
            block: Some([threads, 1, 1]),
            shared: Some(shared),
            jobs: jobs.unwrap_or(default.jobs),
            ..default
        };
        let outcome = simt::run(&program, &launch).map_err(|err| err.to_string())?;
        let (report, table) = (simt::report(&launch, &outcome), outcome.counts.table());
        Ok((outcome.buffers, report, table))
    };
    let (buffers, report, table) = py.detach(run).map_err(PyValueError::new_err)?;
    let dict = PyDict::new(py);
    let buffers: Vec<_> = buffers.iter().map(|data| PyBytes::new(py, data)).collect();
    dict.set_item("buffers", PyList::new(py, buffers)?)?;
    dict.set_item("report", report)?;
    dict.set_item("table", table)?;
    Ok(dict)
}
