"""What the package offers without Triton."""

import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest

import ttopt
from ttopt import _ttopt

CORPUS = Path(__file__).parents[2] / "test/corpus"
ADD = CORPUS / "vector_add.ttir"
BLOCKED = "#ttg.blocked<{sizePerThread = [%s], threadsPerWarp = [8, 4], warpsPerCTA = [%s], order = [%s]}>"
ROWS, COLUMNS = BLOCKED % ("1, 4", "4, 1", "1, 0"), BLOCKED % ("4, 1", "1, 4", "0, 1")


def test_all_stages_are_kept():
    kernel = ttopt.compile(ADD, target="cuda:90", emit="bin")
    assert list(kernel.asm) == ["ttir", "ttgir", "llir", "ptx", "cubin"]
    assert kernel.name == "vector_add" and kernel.metadata["threads"] == 128
    assert kernel.resources["registers"] > 0 and kernel.resources["spill_stores"] == 0
    assert "EXIT" in ttopt.compile(ADD, target="cuda:90", emit="sass").asm["sass"]
    assert set(ttopt.compile(ADD, target="hip:gfx942").asm) == {"ttir", "ttgir", "llir", "amdgcn"}
    # A stage's text is an input again.
    again = ttopt.compile(kernel.asm["ttgir"])
    assert again.asm["ptx"].splitlines()[10:20] == kernel.asm["ptx"].splitlines()[10:20]


def test_stages_are_dumped_edited_and_compiled_again(tmp_path):
    kernel = ttopt.compile(ADD, target="cuda:90", emit="bin", locations=True)
    paths = kernel.dump(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"vector_add.{stage}" for stage in kernel.asm)
    assert ttopt.compile(ADD, emit="bin", overrides={"ptx": paths["ptx"]}).asm["cubin"] == kernel.asm["cubin"]
    edits = {"ttir": ("arith.addf", "arith.mulf"), "ttgir": ("arith.addf", "arith.mulf"), "llir": ("fadd", "fmul"), "ptx": ("add.f32", "mul.f32")}
    for stage, (before, after) in edits.items():
        edited = kernel.asm[stage].replace(before, after)
        made = ttopt.compile(ADD, target="cuda:90", overrides={stage: edited}).asm["ptx"]
        assert "mul.f32" in made and "add.f32" not in made, stage
    with pytest.raises(ttopt.CompileError, match="vector_add.ptx is for sm_90a"):
        ttopt.compile(ADD, target="cuda:80", overrides={"ptx": paths["ptx"]})
    with pytest.raises(ttopt.CompileError, match="<ptx> is not used"):
        ttopt.compile(ADD, emit="ttgir", overrides={"ptx": kernel.asm["ptx"]})
    with pytest.raises(ValueError, match="overrides no stage"):
        ttopt.compile(ADD, overrides={"cubin": kernel.asm["cubin"]})


def test_errors_have_places():
    with pytest.raises(ttopt.CompileError) as caught:
        ttopt.compile("tt.func @k() {\n  %0 = tt.nothing\n}", name="k.ttir")
    [error] = [one for one in caught.value.diagnostics if one.severity == "error"]
    assert (error.file, error.line) == ("k.ttir", 2) and caught.value.kind == "diagnosed"
    assert "k.ttir:2:" in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).diagnostics == caught.value.diagnostics


@pytest.mark.parametrize(
    "options", [{"num_warps": 3}, {"emit": "nothing"}, {"no_such_option": 1}, {"num_warps": "four"}]
)
def test_wrong_options_are_errors(options):
    with pytest.raises((ValueError, TypeError)):
        ttopt.compile(ADD, **options)


def test_the_wheel_has_the_licences_of_what_it_contains():
    texts = {path.name: path.read_text() for path in metadata.files("ttopt") if "LICENSE" in path.name}
    assert set(texts) == {"LICENSE-MIT", "LICENSE-APACHE", "LICENSES-OTHERS"}
    assert "LLVM Exceptions" in texts["LICENSES-OTHERS"]


def test_a_kernel_is_text_bytes_or_a_path():
    for source in (64, None, ["tt.func"]):
        with pytest.raises(TypeError, match=f"not {type(source).__name__}"):
            ttopt.compile(source)


def test_an_unknown_target_is_an_error():
    with pytest.raises(ttopt.CompileError, match="cuda:12345"):
        ttopt.compile(ADD, target="cuda:12345")


def test_a_compilation_can_be_cancelled():
    stop = ttopt.Cancellation()
    stop.cancel()
    with pytest.raises(ttopt.CompileError) as caught:
        ttopt.compile(ADD, cancellation=stop)
    assert caught.value.kind == "cancelled"


def test_threads_make_the_same_bytes_and_run_at_once():
    kernels = [CORPUS / f"{name}.ttir" for name in ("vector_add", "row_sum", "matmul_f16", "gather_rows")]
    alone = [ttopt.compile(path).asm for path in kernels]
    with ThreadPoolExecutor(64) as pool:
        together = list(pool.map(lambda path: ttopt.compile(path).asm, kernels * 32))
    assert together == alone * 32


def test_compilations_leave_nothing_behind():
    def pages():
        return int(Path("/proc/self/statm").read_text().split()[1])

    def compile(count):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: ttopt.compile(ADD), range(count)))

    compile(100)
    before = pages()
    compile(300)
    # A context that stayed would take some 100 pages each time.
    assert pages() - before < 300 * 20


def test_the_interpreter_runs_while_a_kernel_compiles():
    ticks, done = 0, threading.Event()

    def work():
        ttopt.compile(CORPUS / "flash_attn_fwd.ttir")
        done.set()

    threading.Thread(target=work).start()
    while not done.wait(0.001):
        ticks += 1
    assert ticks > 5


def test_explanations_name_what_was_chosen():
    text = ttopt.explain(ADD, target="cuda:90")
    assert text.startswith("kernel vector_add for cuda:90: 4 warps = 128 threads")
    assert "each thread accesses 4 elements of 32 bits at once" in text
    # What else would have cost, of layouts and of what is chosen for the assembly.
    assert "remark: choice of vector of " in text and " | 2 neighbours in each thread: " in text
    assert "remark: choice of CTAs on a multiprocessor, of code that needs " in text
    assert text._repr_html_().startswith("<pre>kernel")


def test_schedules_are_data_and_a_picture():
    schedules = ttopt.compile(CORPUS / "matmul_f16.ttir", target="cuda:90", schedules=True).schedules
    [loop] = schedules
    assert loop["function"] == "matmul" and loop["stages"] == 3 and len(loop["rings"]) == 2
    assert schedules._repr_svg_().startswith("<svg") and "in matmul: 3 stages" in schedules.svg
    assert ttopt.compile(ADD).schedules is None


def test_nothing_is_printed(capfd):
    ttopt.explain(ADD)
    with pytest.raises(ttopt.CompileError):
        ttopt.compile("nonsense")
    assert capfd.readouterr() == ("", "")


def test_layouts_are_shown():
    layout = ttopt.layout(ROWS, [32, 16], dtype="f16")
    assert layout.bases["register"] == [[0, 1], [0, 2]]
    assert layout._repr_svg_().startswith("<svg") and "lane" in layout.matrix
    conversion = layout.to(COLUMNS)
    assert conversion.plan["kind"] == "shared" and conversion.cycles > 0
    assert conversion._repr_html_().startswith("<svg")
    assert ttopt.layout(ROWS, [1024, 1024])._repr_html_().startswith("<pre>")
    with pytest.raises(ValueError, match="is not a layout"):
        ttopt.layout("#ttg.nothing<{}>", [2])


def test_kernels_run_on_the_cpu():
    numpy = pytest.importorskip("numpy")
    x = numpy.arange(3000, dtype=numpy.float32)
    out = numpy.zeros_like(x)
    good = ttopt.simulate(ADD, 3, x, 2 * x, out, len(x))
    assert good and (out == 3 * x).all()
    assert any(line["global_sectors"] for line in good.lines)
    bad = ttopt.simulate(ADD, 3, x, 2 * x[:100].copy(), out, len(x))
    assert not bad and all(one.line > 0 for one in bad.findings)
    assert "argument 1" in str(bad)


def test_a_sweep_returns_jobs_in_order():
    kernels = {"add": ADD.read_text(), "wrong": "nonsense"}
    jobs = ttopt.sweep(kernels, [{"num_warps": 4}, {"num_warps": 8}], ["cuda:90", "hip:gfx942"], workers=2)
    assert [job.kernel for job in jobs] == ["add"] * 4 + ["wrong"] * 4
    assert [job.metadata["threads"] for job in jobs[:4]] == [128, 256, 256, 512]
    assert "ptx" in jobs[0].asm and "amdgcn" in jobs[1].asm
    assert all(job.error for job in jobs[4:])


def test_the_extension_needs_no_llvm():
    """Nothing but what every Linux with glibc 2.34 has."""
    needed = subprocess.run(["ldd", _ttopt.__file__], capture_output=True, text=True, check=True).stdout
    names = {line.split()[0] for line in needed.splitlines()}
    allowed = ("linux-vdso.so", "libc.so", "libm.so", "libgcc_s.so", "libpthread.so", "libdl.so", "/lib64/ld-linux")
    assert {name for name in names if not name.startswith(allowed)} == set()


def test_importing_triton_is_left_to_others():
    program = "import sys, ttopt; assert not [name for name in sys.modules if name.split('.')[0] in ('triton', 'numpy')]"
    subprocess.run([sys.executable, "-c", program], check=True)
