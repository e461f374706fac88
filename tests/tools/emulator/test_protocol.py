"""The runner's side of the protocol in docs/architecture.md, spoken by real runners."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
import torch

from stitch_tui.tools.emulator import Emulator, Mode
from stitch_tui.tools.verdict import Finding
from tests.tools.emulator.judge import POISON, Answer, Call, Ended, Runner, running

HEAD = '#include <cstdio>\n#include <cstdlib>\n#include <cuda_runtime.h>\n#include "stitch.h"\n'
KERNEL = """
__global__ void fill(float* y, float v, int n) { int i = threadIdx.x; if (i < n) y[i] = v; }
static float* out(const stitch_call* c) { return (float*)c->out[0].data; }
static void fill_with(const stitch_call* c, float v) {
  fill<<<1, 64, 0, (cudaStream_t)c->stream>>>(out(c), v, (int)c->out[0].numel);
}
"""


def run_body(body: str, more: str = "") -> str:
    return f'{HEAD}{KERNEL}{more}\nextern "C" int stitch_run(const stitch_call* c) {{ {body} }}\n'


def with_runner(
    emulator: Emulator,
    path: Path,
    text: str,
    use: Callable[[Runner], Awaitable[None]],
    mode: Mode = Mode.FAST,
) -> None:
    path.write_text(text)

    async def run() -> None:
        build = await emulator.build(path, mode)
        async with running(emulator, build) as runner:
            await use(runner)

    asyncio.run(run())


def one_output(inputs: list[torch.Tensor] | None = None, count: int = 8, **extra: int) -> Call:
    return Call(inputs or [], [torch.empty(count)], **extra)


PACKED = """
static const float* g_last;
extern "C" int stitch_sizes(const stitch_call* c, int64_t* workspace, int64_t* bound) {
  *workspace = 64; *bound = c->in[0].numel * 4; return 0;
}
__global__ void pack(const float* w, float* to, int n) { int i = threadIdx.x; if (i < n) to[i] = 2 * w[i]; }
__global__ void add(const float* b, float* y, int n) { int i = threadIdx.x; if (i < n) y[i] = b[i] + 1; }
extern "C" int stitch_bind(const stitch_call* c) {
  *c->host_state = new int(41);
  const stitch_tensor w = c->in[0];
  pack<<<1, 64, 0, (cudaStream_t)c->stream>>>((const float*)w.data, (float*)c->bound, (int)w.numel);
  return 0;
}
extern "C" int stitch_unbind(const stitch_call* c) {
  int was = *(int*)*c->host_state; delete (int*)*c->host_state; *c->host_state = nullptr; return was;
}
"""
ADD = """
  add<<<1, 64, 0, (cudaStream_t)c->stream>>>((const float*)c->bound, out(c), (int)c->out[0].numel);
  return *(int*)*c->host_state - 41;
"""


def test_bound_memory_and_host_state_live_from_bind_to_unbind(emulator: Emulator, candidate: Path) -> None:
    async def use(runner: Runner) -> None:
        w = torch.arange(8.0)
        sizes = await runner.call("sizes", one_output([w]))
        assert (sizes.rc, sizes.workspace, sizes.bound) == (0, 64, 32)
        sized = {"workspace": sizes.workspace, "bound": sizes.bound}
        assert (await runner.call("bind", one_output([w], **sized))).rc == 0
        for _ in range(2):  # the weight is not looked at again: run sees what bind packed
            ran = await runner.call("run", one_output([torch.zeros(8)], **sized))
            assert ran.rc == 0
            assert torch.equal(ran.outputs[0], 2 * w + 1)
            assert not ran.raw
        assert (await runner.call("unbind", one_output([w], **sized))).rc == 41
        assert await runner.quit() == 0

    with_runner(emulator, candidate, run_body(ADD, PACKED), use, Mode.CHECK)


def test_verbs_that_are_not_exported_answer_minus_one(emulator: Emulator, candidate: Path) -> None:
    async def use(runner: Runner) -> None:
        for verb in ("sizes", "bind", "unbind"):
            answer = await runner.call(verb, one_output())
            assert (answer.rc, answer.workspace, answer.bound) == (-1, 0, 0)
        assert (await runner.call("run", one_output())).rc == 0

    with_runner(emulator, candidate, run_body("fill_with(c, 3); return 0;"), use)


def test_a_write_into_an_input_is_seen_by_the_judge(emulator: Emulator, candidate: Path) -> None:
    async def use(runner: Runner) -> None:
        answer = await runner.call("run", one_output([torch.zeros(8)]))
        assert torch.equal(answer.inputs[0], torch.full((8,), 5.0))

    spoil = (
        "fill<<<1, 64, 0, (cudaStream_t)c->stream>>>((float*)c->in[0].data, 5, 8); fill_with(c, 1); return 0;"
    )
    with_runner(emulator, candidate, run_body(spoil), use)


def test_a_tensor_keeps_its_device_address_between_calls(emulator: Emulator, candidate: Path) -> None:
    keep = """
      static void* seen[2]; int k = c->ints[0];
      if (!seen[k]) seen[k] = c->in[0].data;
      fill_with(c, seen[k] == c->in[0].data && seen[0] != seen[1]); return 0;"""

    async def use(runner: Runner) -> None:
        for size, which in ((8, 0), (16, 1), (8, 0), (16, 1)):
            call = Call([torch.zeros(size)], [torch.empty(8)], ints=[which], names=["w"])
            assert (await runner.call("run", call)).outputs[0][0] == 1

    with_runner(emulator, candidate, run_body(keep), use)


def test_bytes_that_are_not_written_come_back_as_the_judge_left_them(
    emulator: Emulator, candidate: Path
) -> None:
    async def use(runner: Runner) -> None:
        answer = await runner.call("run", one_output())
        assert bytes(answer.outputs[0].view(torch.uint8).tolist()) == bytes([POISON]) * 32
        assert [item["kind"] for item in answer.raw] == ["output-not-written"]

    with_runner(emulator, candidate, run_body("return 0;"), use, Mode.CHECK)


def test_strides_are_passed_through_and_gaps_are_not_missed_writes(
    emulator: Emulator, candidate: Path
) -> None:
    columns = """
__global__ void copy(const float* x, float* y, int rows, int cols, int xr, int xc, int yr, int yc) {
  for (int r = 0; r < rows; r++) for (int k = 0; k < cols; k++) y[r * yr + k * yc] = x[r * xr + k * xc];
}"""
    body = """
  const stitch_tensor x = c->in[0], y = c->out[0];
  copy<<<1, 1, 0, (cudaStream_t)c->stream>>>((float*)x.data, (float*)y.data, x.shape[0], x.shape[1],
    x.strides[0], x.strides[1], y.strides[0], y.strides[1]);
  return 0;"""

    async def use(runner: Runner) -> None:
        x, y = torch.arange(12.0).reshape(3, 4).t(), torch.zeros(4, 7)[:, :3]
        answer = await runner.call("run", Call([x], [y]))
        assert torch.equal(answer.outputs[0], x)
        assert not answer.raw

    with_runner(emulator, candidate, run_body(body, columns), use, Mode.CHECK)


def test_workspace_is_poisoned_before_each_call(emulator: Emulator, candidate: Path) -> None:
    peek = """
__global__ void peek(float* ws, float* y) { y[threadIdx.x] = ws[0]; ws[0] = 1; }"""
    body = "peek<<<1, 8, 0, (cudaStream_t)c->stream>>>((float*)c->workspace, out(c)); return 0;"

    async def use(runner: Runner) -> None:
        for _ in range(2):
            assert (await runner.call("run", one_output(workspace=256))).outputs[0][0].isnan()

    with_runner(emulator, candidate, run_body(body, peek), use)


def test_scalars_and_the_generator_state_arrive(emulator: Emulator, candidate: Path) -> None:
    body = """
  bool ok = c->struct_size == sizeof *c && c->abi == STITCH_ABI && c->n_int == 1 && c->ints[0] == -9000000000
    && c->n_float == 2 && c->floats[0] == 0.1 && c->floats[1] == -HUGE_VAL
    && c->rng_seed == 7 && c->rng_offset == 11;
  fill_with(c, ok); return STITCH_UNSUPPORTED_SHAPE;"""

    async def use(runner: Runner) -> None:
        call = Call([], [torch.empty(4)], ints=[-9_000_000_000], floats=[0.1, float("-inf")])
        answer = await runner.call("run", call)
        assert answer.rc == 2
        assert answer.outputs[0][0] == 1

    with_runner(emulator, candidate, run_body(body), use)


def test_what_a_candidate_prints_stays_out_of_the_protocol(emulator: Emulator, candidate: Path) -> None:
    noisy = '__global__ void say() { printf("done n1 0 0 0 0 0 from thread %d\\n", threadIdx.x); }'
    body = 'say<<<1, 2, 0, (cudaStream_t)c->stream>>>(); puts("finding {}"); fill_with(c, 2); return 0;'

    async def use(runner: Runner) -> None:
        assert (await runner.call("run", one_output())).outputs[0][0] == 2
        assert await runner.quit() == 0
        assert runner.process.stdout
        printed = (await runner.process.stdout.read()).decode()
        assert "from thread 1" in printed
        assert "finding {}" in printed

    with_runner(emulator, candidate, run_body(body, noisy), use)


def one_of(statements: Sequence[str]) -> str:
    """A body that does the one that a call's first integer counts: one build for all of them."""
    return " ".join(f"if (c->ints[0] == {k}) {{ {statement} }}" for k, statement in enumerate(statements))


def the(number: int) -> Call:
    return Call([], [torch.empty(8)], ints=[number])


ENDS = {
    "exit": "exit(0);",
    "abort": "abort();",
    "uncaught-exception": "throw 3;",
    "illegal-address": "volatile int* p = (int*)64; return *p;",
}


@pytest.mark.parametrize("kind", ENDS)
def test_a_run_that_ends_the_process_is_a_finding_and_a_failure(
    emulator: Emulator, candidate: Path, kind: str
) -> None:
    async def use(runner: Runner) -> None:
        with pytest.raises(Ended) as ended:
            await runner.call("run", the(list(ENDS).index(kind)))
        assert [item["kind"] for item in ended.value.raw] == [kind]
        assert await runner.process.wait() != 0

    with_runner(emulator, candidate, run_body(one_of([*ENDS.values()]) + " return 0;"), use)


def test_a_failing_device_assert_is_named_with_its_line(emulator: Emulator, candidate: Path) -> None:
    text = "#include <cassert>\n" + run_body(
        "k<<<1, 1>>>(); cudaDeviceSynchronize(); return 0;",
        "__global__ void k() { assert(threadIdx.x == 1); }",
    )

    async def use(runner: Runner) -> None:
        with pytest.raises(Ended) as ended:
            await runner.call("run", one_output())
        (finding,) = ended.value.raw
        line = next(n for n, text_line in enumerate(text.splitlines(), 1) if "assert(" in text_line)
        assert (finding["kind"], finding["file"], finding["line"]) == ("assert", "candidate.cu", line)

    with_runner(emulator, candidate, text, use)


def test_a_runner_whose_judge_hangs_up_ends(emulator: Emulator, candidate: Path) -> None:
    async def use(runner: Runner) -> None:
        runner.hang_up()
        assert await runner.process.wait() == 0

    with_runner(emulator, candidate, run_body("return 0;"), use)


def test_an_endless_host_loop_dies_with_its_group(emulator: Emulator, candidate: Path) -> None:
    async def use(runner: Runner) -> None:
        with pytest.raises(TimeoutError):
            await runner.call("run", one_output(), timeout=0.5)
        os.killpg(runner.process.pid, signal.SIGKILL)
        assert await runner.process.wait() == -signal.SIGKILL

    with_runner(emulator, candidate, run_body("volatile int go = 1; while (go) {} return 0;"), use)


def test_each_call_reports_its_findings_again(emulator: Emulator, candidate: Path) -> None:
    past = "fill<<<1, 64, 0, (cudaStream_t)c->stream>>>(out(c), 1, (int)c->out[0].numel + 1); return 0;"

    async def use(runner: Runner) -> None:
        answers: list[Answer] = [await runner.call("run", one_output()) for _ in range(2)]
        assert [[item["kind"] for item in answer.raw] for answer in answers] == [["out-of-bounds"]] * 2

    with_runner(emulator, candidate, run_body(past), use, Mode.CHECK)


@pytest.mark.usefixtures("unread")
def test_the_descriptor_is_not_on_the_command_line_when_the_candidate_runs(
    emulator: Emulator, candidate: Path
) -> None:
    body = """
  char text[4096]; FILE* f = fopen("/proc/self/cmdline", "r");
  size_t n = fread(text, 1, sizeof text, f); fclose(f);
  bool digits = false; for (size_t i = n; i-- > 1 && text[i - 1];) digits |= text[i - 1] != '0';
  fill_with(c, digits); return 0;"""

    async def use(runner: Runner) -> None:
        assert (await runner.call("run", one_output())).outputs[0][0] == 0

    with_runner(emulator, candidate, run_body(body), use)


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """No build is refused for what its object code calls: the kernel's own limits are looked at."""

    async def nothing(*_: object) -> tuple[Finding, ...]:
        return ()

    monkeypatch.setattr("stitch_tui.tools.emulator.emulator.forbidden_imports", nothing)


HIDDEN = """
extern "C" int a_signal(int, int) __asm__("kill");
extern "C" int a_copy() __asm__("fork");
extern "C" int a_wire(int, int, int) __asm__("socket");
extern "C" int a_program(const char*, char**, char**) __asm__("execve");
extern "C" int a_group() __asm__("setsid");
extern "C" int my_id() __asm__("getpid");
extern "C" int parent() __asm__("getppid");
"""


REACHES_OUT = (
    "a_signal(parent(), 0);",
    "a_signal(-parent(), 0);",
    "a_signal(0, 0);",
    "a_copy();",
    "a_wire(2, 1, 0);",
    'a_program("/bin/true", nullptr, nullptr);',
    "a_group();",
)


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize("call", REACHES_OUT)
def test_a_system_call_that_reaches_out_of_the_process_ends_the_candidate(
    emulator: Emulator, candidate: Path, call: str
) -> None:
    async def use(runner: Runner) -> None:
        with pytest.raises(Ended) as ended:
            await runner.call("run", the(REACHES_OUT.index(call)))
        assert [finding["kind"] for finding in ended.value.raw] == ["forbidden-call"]

    body = one_of(REACHES_OUT) + " fill_with(c, 1); return 0;"
    with_runner(emulator, candidate, run_body(body, HIDDEN), use)


@pytest.mark.usefixtures("unread")
def test_a_program_started_with_signals_blocked_is_killed_by_the_kernel(
    emulator: Emulator, candidate: Path
) -> None:
    async def use(runner: Runner) -> None:
        with pytest.raises(Ended):
            await runner.call("run", one_output())
        assert await runner.process.wait() == -signal.SIGSYS

    with_runner(emulator, candidate, run_body('return system("true");'), use)


@pytest.mark.usefixtures("unread")
def test_the_kernel_lets_a_candidate_have_threads_and_signal_itself(
    emulator: Emulator, candidate: Path
) -> None:
    async def use(runner: Runner) -> None:
        assert (await runner.call("run", one_output())).outputs[0].tolist() == [2.0] * 8

    body = "float v = 0; std::thread t([&] { v = 2; }); t.join(); a_signal(my_id(), 0); fill_with(c, v);"
    with_runner(emulator, candidate, run_body(body + " return 0;", "#include <thread>" + HIDDEN), use)
