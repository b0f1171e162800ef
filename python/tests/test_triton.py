"""Triton's compiler with our stages, without a GPU."""

import logging
import os
import re
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest

import ttopt.triton

triton = pytest.importorskip("triton")

import kernels  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402

TARGETS = {
    "cuda:80": GPUTarget("cuda", 80, 32),
    "cuda:90": GPUTarget("cuda", 90, 32),
    "hip:gfx942": GPUTarget("hip", "gfx942", 64),
}


pytestmark = pytest.mark.usefixtures("enabled")


def compile(case, target="cuda:90", **options):
    return triton.compile(kernels.source(case), target=TARGETS[target], options=options)


def case(name):
    return next(case for case in kernels.CASES if case[0].__name__ == name)


def ours(kernel):
    return getattr(kernel.metadata, "compiled_by", None) == ttopt.triton.key()[0]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", kernels.CASES, ids=lambda case: case[0].__name__)
def test_kernels_compile_to_binaries(case, target):
    kernel = compile(case, target)
    assert ours(kernel)
    assembly, binary = ("amdgcn", "hsaco") if target.startswith("hip") else ("ptx", "cubin")
    assert kernel.asm[binary][:4] == b"\x7fELF"
    assert "ttg.num-warps" in kernel.asm["ttgir"] and "define " in kernel.asm["llir"]
    name = kernel.metadata.name
    assert name == case[0].__name__
    assert re.search(rf"\.entry {name}\(|^{name}:", kernel.asm[assembly], re.MULTILINE)


def test_metadata_is_what_launchers_read():
    kernel = compile(case("matmul"))
    facts = kernel.metadata
    assert facts.shared > 0 and facts.num_warps == 4 and facts.num_ctas == 1 and facts.tmem_size == 0
    assert (facts.global_scratch_size, facts.profile_scratch_size) == (0, 0)
    assert facts.global_scratch_align == facts.profile_scratch_align == 1
    assert facts.tensordesc_meta == []


def interface(kernel):
    """What a launcher must know to call a kernel: its parameters, its threads, and what is passed beside arguments."""
    ptx = kernel.asm["ptx"]
    entry = ptx[ptx.index(".entry") :].split("{", 1)[0]
    # A pointer is 64 bits, wherever it points to; a tensor map is 128 bytes.
    parameters = [(kind, size) for kind, size in re.findall(r"\.param(?: \.align \d+)? \.(\w+)[^\n]*?(\[\d+\])?[,\n]", entry)]
    facts = kernel.metadata
    beside = (facts.global_scratch_size, facts.profile_scratch_size, facts.num_warps, facts.num_ctas, facts.tensordesc_meta)
    return parameters, re.findall(r"\.reqntid (\d+)", entry), beside


# ptxas refuses what Triton 3.9 itself makes of `hints`.
@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
@pytest.mark.parametrize(
    "case", [case for case in kernels.CASES if case[0].__name__ != "hints"], ids=lambda case: case[0].__name__
)
def test_a_kernel_is_called_as_tritons_own(case, target, monkeypatch):
    from triton.backends.nvidia.compiler import CUDABackend

    # Nobody asks for the binaries, which take most of the time.
    monkeypatch.setattr(CUDABackend, "make_cubin", lambda *_: b"")
    mine = compile(case, target)
    ttopt.triton.disable()
    theirs = compile(case, target)
    assert ours(mine) and not ours(theirs)
    assert interface(mine) == interface(theirs)
    missing = set(theirs.metadata._fields) - set(mine.metadata._fields)
    assert not missing, missing


def test_descriptors_are_said_to_be_tensor_maps():
    facts = compile(case("copy_tile")).metadata
    assert len(facts.tensordesc_meta) == 2
    one = facts.tensordesc_meta[0]
    assert one["block_size"] == [32, 32] and one["elem_size"] == 4 and not one["fp4_padded"]
    # Older GPUs have no tensor maps: Triton itself passes the parts.
    assert compile(case("copy_tile"), "cuda:80").metadata.tensordesc_meta == []


def test_options_reach_the_code():
    assert ".maxnreg 64" in compile(case("matmul"), maxnreg=64).asm["ptx"]
    assert ".maxnreg" not in compile(case("matmul")).asm["ptx"]
    assert ".reqntid 256" in compile(case("add"), num_warps=8).asm["ptx"]
    waves = "amdgpu-waves-per-eu"
    assert f'"{waves}"="2,2"' in compile(case("matmul"), "hip:gfx942", waves_per_eu=2).asm["llir"]
    assert waves not in compile(case("matmul"), "hip:gfx942").asm["llir"]
    fused = "fma.rn.f32"
    assert fused in compile(case("activation"), enable_fp_fusion=True).asm["ptx"]
    sums = compile(case("column_sums"), num_ctas=2).asm["ptx"]
    assert "cluster" in sums
    few, many = (compile(case("matmul"), num_stages=stages).metadata.shared for stages in (1, 4))
    assert few < many


def test_fences_are_of_the_version_that_is_asked_for():
    @triton.jit
    def spread(x, out):
        at = triton.language.arange(0, 1024)
        triton.language.atomic_add(out + at % 37, triton.language.load(x + at), sem="release")

    one = (spread, {"x": "*fp32", "out": "*fp32"}, {})
    newest = compile(one).asm["ptx"]
    assert ".version 8.6\n" in newest and "\tfence.release.gpu;" in newest
    older = compile(one, ptx_version=84).asm["ptx"]
    assert ".version 8.4\n" in older and "\tfence.acq_rel.gpu;" in older and "release" not in older
    assert ".version 8.4\n" in compile(case("add")).asm["ptx"]


def test_a_product_and_a_sum_stay_two_where_fusion_is_off():
    @triton.jit
    def axpy(x, y, out):
        triton.language.store(out, triton.language.load(x) * 3.5 + triton.language.load(y))

    one = (axpy, {"x": "*fp32", "y": "*fp32", "out": "*fp32"}, {})
    assert "fma.rn.f32" in compile(one, enable_fp_fusion=True).asm["ptx"]
    assert "fma.rn.f32" not in compile(one, enable_fp_fusion=False).asm["ptx"]


def test_lines_of_the_source_are_in_the_code():
    ptx = compile(case("add")).asm["ptx"]
    assert "kernels.py" in ptx and ".loc" in ptx


def test_what_was_inlined_keeps_its_file():
    kernel = compile(case("softmax"))
    files = re.findall(r'\.file\s+\d+ "([^"]*)"', kernel.asm["ptx"])
    assert sorted(os.path.basename(path) for path in files) == ["kernels.py", "standard.py"]
    assert "inlinedAt: " in kernel.asm["llir"]
    assert re.search(r"\.loc\s+\d+ \d+ \d+, function_name \S+, inlined_at \d+ \d+ \d+\n", kernel.asm["ptx"])


def test_an_assertion_says_where_it_is():
    llir = compile(case("checked"), debug=True).asm["llir"]
    line = kernels.checked.starting_line_number + [at for at, line in enumerate(kernels.checked.raw_src) if "device_assert" in line][0]
    assert 'kernels.py\\00"' in llir and 'c"checked\\00"' in llir
    assert re.search(rf"@__assertfail\(ptr .*, ptr .*, i32 {line}, ptr ", llir)


def test_what_is_refused_is_left_to_triton_with_one_line(caplog):
    ttopt.triton.disable()
    ttopt.triton.enable(strict=False)
    before = ttopt.triton.stats()["fallbacks"]
    with caplog.at_level(logging.WARNING, logger="ttopt"):
        kernel = compile(case("add"), instrumentation_mode="consan")
    assert not ours(kernel) and kernel.asm["cubin"]
    lines = [record.getMessage() for record in caplog.records]
    assert lines == ["add is left to Triton: the option instrumentation_mode='consan' is not supported"]
    assert ttopt.triton.stats()["fallbacks"] == before + 1


def test_strict_says_no():
    with pytest.raises(ttopt.triton.Refused, match="add: the option instrumentation_mode"):
        compile(case("add"), instrumentation_mode="consan")


def test_too_large_a_tile_is_what_autotuning_expects():
    from triton.runtime.errors import OutOfResources

    types = {"a": "*fp16", "b": "*fp16", "c": "*fp16"}
    with pytest.raises(OutOfResources) as caught:
        compile((kernels.matmul, types, {"BM": 256, "BN": 256, "BK": 256}), "cuda:90", num_warps=8)
    assert caught.value.required > caught.value.limit


def test_without_the_hook_kernels_are_tritons():
    ttopt.triton.disable()
    assert not ours(compile(case("add")))
    ttopt.triton.enable()
    assert ours(compile(case("add")))


def test_the_key_is_memoized_and_in_tritons():
    from triton import knobs

    assert knobs.runtime.add_stages_inspection_hook() is ttopt.triton.key()
    ours_key = compile(case("add")).hash
    ttopt.triton.disable()
    assert compile(case("add")).hash != ours_key


def test_another_hook_is_called_too():
    from triton import knobs

    ttopt.triton.disable()
    seen = []

    def other(*args):
        seen.append(len(args))
        return "other", "other"

    knobs.runtime.add_stages_inspection_hook = other
    ttopt.triton.enable(strict=True)
    try:
        assert ours(compile(case("add")))
        assert 5 in seen
        assert "other" in knobs.runtime.add_stages_inspection_hook()[0]
    finally:
        ttopt.triton.disable()
        assert knobs.runtime.add_stages_inspection_hook is other
        knobs.runtime.add_stages_inspection_hook = None


def test_ir_of_a_file_compiles(tmp_path):
    made = compile(case("softmax"))
    for stage in ("ttir", "ttgir"):
        path = tmp_path / f"softmax.{stage}"
        path.write_text(made.asm[stage])
        kernel = triton.compile(str(path), target=TARGETS["cuda:90"])
        assert ours(kernel) and ".entry softmax(" in kernel.asm["ptx"]


def test_a_stage_can_be_overridden(tmp_path):
    made = compile(case("add"))
    path = tmp_path / "add.ttgir"
    path.write_text(made.asm["ttgir"].replace("arith.addf", "arith.mulf"))
    kernel = compile(case("add"), ir_override=str(path))
    assert ours(kernel) and re.search(r"mul(\.rn)?\.f32", kernel.asm["ptx"])
    assert not re.search(r"add(\.rn)?\.f32", kernel.asm["ptx"])


def test_threads_compile_together():
    from triton.backends.compiler import Language

    def stages(case):
        backend = triton.compiler.compiler.make_backend(TARGETS["cuda:90"])
        options = backend.parse_options({})
        stages = {}
        backend.add_stages(stages, options, Language.TRITON)
        return stages["ttgir"], texts[case[0].__name__]

    texts = {case[0].__name__: compile(case).asm["ttir"] for case in kernels.CASES}

    def run(case):
        stage, text = stages(case)
        return stage(text, {})

    alone = [run(case) for case in kernels.CASES]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(run, kernels.CASES * 4))
    assert together == alone * 4


def test_the_environment_switches_it_on(tmp_path):
    """As ttopt.pth does, for which the package must be installed."""
    program = textwrap.dedent(
        """
        import ttopt._autoload
        import triton, kernels
        from triton.backends.compiler import GPUTarget
        made = triton.compile(kernels.source(kernels.CASES[0]), target=GPUTarget("cuda", 90, 32))
        print(made.metadata.compiled_by)
        """
    )
    here = os.path.dirname(__file__)
    paths = [here, *filter(None, sys.path)]
    environment = {**os.environ, "TTOPT": "strict", "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == ttopt.triton.key()[0], done.stderr


def test_what_spills_for_more_ctas_is_assembled_again(caplog):
    """Triton assembles our PTX; where the CTAs that were estimated make threads spill, it does so once more with fewer."""
    from ttopt import _ttopt

    # 160 sums that live through a loop do not fit in the 64 registers that 32 CTAs of a warp leave each thread.
    sums = range(160)
    lines = [f"ld.global.f32 %f{i}, [%rd1+{4 * i}];" for i in sums]
    lines += ["$L1:", *(f"fma.rn.f32 %f{i}, %f{i}, %f{(i + 1) % 160}, %f{(i + 7) % 160};" for i in sums)]
    lines += ["add.s32 %r1, %r1, 1;", "setp.lt.s32 %p1, %r1, 100;", "@%p1 bra $L1;"]
    lines += [f"st.global.f32 [%rd1+{4 * i}], %f{i};" for i in sums]
    body = "\n".join(lines)
    ptx = textwrap.dedent("""\
        .version 8.3
        .target sm_90a
        .address_size 64
        .visible .entry spills(.param .u64 p)
        .reqntid 32
        .minnctapersm 32
        {
        .reg .pred %p<2>;
        .reg .b32 %r<2>;
        .reg .b32 %f<160>;
        .reg .b64 %rd<2>;
        ld.param.b64 %rd1, [p];
        mov.b32 %r1, 0;
        """) + body + "\nret;\n}\n"
    from triton.backends.nvidia.compiler import CUDABackend

    backend = CUDABackend(TARGETS["cuda:90"])
    options = backend.parse_options({})
    originals = {"cubin": lambda source, metadata: backend.make_cubin(source, metadata, options, 90)}
    compilation = ttopt.triton._Compilation(backend, options, "ptx", originals)
    spilled = originals["cubin"](ptx, {})
    assert _ttopt.stack_bytes(spilled) > 96
    # Only what we made is changed.
    assert compilation.assemble(ptx, {}) == spilled
    compilation.made = {"ptx": ptx}
    assert _ttopt.stack_bytes(compilation.assemble(ptx, {})) == 0

    # An array of 28 bytes on the stack is no spill.
    declared = ".reg .b64 %rd<2>;"
    with_arrays = ptx.replace(declared, declared + "\n.local .align 4 .b8 array[28];")
    assert with_arrays != ptx
    compilation.made = {"ptx": with_arrays}
    assert _ttopt.stack_bytes(compilation.assemble(with_arrays, {})) <= 32
    compilation.made = {"ptx": ptx}

    # An assembler that refuses the other text costs a warning, and the first cubin stays.
    def refuses(source, metadata):
        if source != ptx:
            raise RuntimeError("ptxas failed")
        return spilled

    originals["cubin"] = refuses
    with caplog.at_level("WARNING", logger="ttopt"):
        assert compilation.assemble(ptx, {}) == spilled
    assert "ptxas failed" in caplog.text

    # What is no failure of an assembler ends the search.
    def is_interrupted(text):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _ttopt.best_binary(ptx, spilled, "cuda:90", None, False, is_interrupted)
    assert _ttopt.stack_bytes(b"no cubin") is None
    assert _ttopt.stack_bytes(spilled[:200]) is None


def test_dots_of_few_warps_are_assembled_for_more_ctas():
    """Where ptxas may make do with the registers of more CTAs, kernels with `mma.sync` and few warps are tried with these."""
    from triton.backends.nvidia.compiler import CUDABackend
    from ttopt import _ttopt

    # 160 numbers wait in registers for twenty dots.
    ptx = textwrap.dedent("""\
        .version 8.3
        .target sm_90a
        .address_size 64
        .visible .entry dots(.param .u64 p)
        .reqntid 256
        .minnctapersm 1
        {
        .reg .b32 %r<1000>;
        .reg .b64 %rd<4>;
        ld.param.b64 %rd1, [p];
        mov.u32 %r0, %tid.x;
        mul.wide.u32 %rd2, %r0, 4;
        add.s64 %rd3, %rd1, %rd2;
        """)
    loads = [f"ld.global.b32 %r{i}, [%rd3+{4096 * i}];" for i in range(100, 260)]
    dots = [
        f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%r{a}, %r{a + 1}, %r{a + 2}, %r{a + 3}}}, "
        f"{{%r{a}, %r{a + 1}, %r{a + 2}, %r{a + 3}}}, {{%r{a + 4}, %r{a + 5}}}, {{%r{a}, %r{a + 1}, %r{a + 2}, %r{a + 3}}};"
        for a in range(100, 254, 8)
    ]
    stores = [f"st.global.b32 [%rd3+{4096 * i}], %r{i};" for i in range(100, 260)]
    ptx += "\n".join([*loads, *dots, *stores, "ret;", "}", ""])
    backend = CUDABackend(TARGETS["cuda:90"])
    options = backend.parse_options({})
    assert _ttopt.stack_bytes(backend.make_cubin(ptx, {}, options, 90)) == 0

    def bounds(ptx, shared):
        """What the texts that the hook has assembled say of CTAs, where they say anything, each once."""
        texts = []
        originals = {"cubin": lambda source, metadata: (texts.append(source), backend.make_cubin(source, metadata, options, 90))[1]}
        compilation = ttopt.triton._Compilation(backend, options, "ptx", originals)
        compilation.made = {"ptx": ptx}
        compilation.assemble(ptx, {"shared": shared})
        return list(dict.fromkeys(re.findall(r"minnctapersm (\d+)", "\n".join(texts))))

    assert bounds(ptx, 1024) == ["1", "2"]
    # Shared memory of the multiprocessor has room for one.
    assert bounds(ptx, 200 << 10) == ["1"]
    without_dots = re.sub("mma.sync.*", "", ptx)
    assert bounds(without_dots, 1024) == ["1"]
