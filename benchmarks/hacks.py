"""Which detector catches which hack: the corpus of ``tests/hacks``, beside format checks alone.

``python -m benchmarks.hacks [--device cuda] [--missing] [--kernelbench SRC]`` in a checkout writes
``benchmarks/results/hacks_cpu.json`` or ``hacks_cuda.json``; ``--table`` writes ``hacks.md`` from what is
there.  Each answer stands there as soon as it is known, with its commit; a run that was cut goes on where it
ended, and ``--missing`` judges only what has no answer for its present text.  On a GPU all candidates and the
honest kernels are judged there, without the emulator.  SRC is the ``src`` folder of a KernelBench checkout,
for the column of its static checker.
"""

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks import provenance
from benchmarks.format_checks import text_checker
from benchmarks.hacks_gpu import on_gpu
from benchmarks.hacks_rows import Answers, Checker, Courts, honest_texts, results_of, row_of
from benchmarks.hacks_table import written
from tests.hacks import judging
from tests.hacks.table import CASES, Case, Run
from tests.honest.kernels import HONEST

HERE = tuple(run for run in Run if run is not Run.GPU)
SLOW = (Run.MODULE, Run.EMULATOR, Run.DEVICE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="leave out Python modules and the emulator")
    parser.add_argument("--missing", action="store_true", help="only what has no answer for its present text")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--kernelbench", type=Path)
    parser.add_argument("--seconds", type=float, default=300.0, help="for the GPU's candidates together")
    parser.add_argument("--every", type=int, default=1, help="judge every so manyeth honest kernel on a GPU")
    parser.add_argument("--table", action="store_true", help="only write hacks.md")
    options = parser.parse_args()
    if not options.table:
        checker = text_checker(options.kernelbench) if options.kernelbench else _unchecked
        output = provenance.RESULTS / f"hacks_{options.device}.json"
        if options.device == "cuda":
            programs = HONEST[:: options.every]
            on_gpu(output, checker, options.seconds, programs, missing=options.missing)
        else:
            on_cpu(output, checker, quick=options.quick, missing=options.missing)
    written(provenance.RESULTS)


def _unchecked(text: str, suffix: str) -> str:
    return "not run"


def on_cpu(output: Path, checker: Checker, *, quick: bool, missing: bool) -> None:
    """One candidate after the other, the emulator's last: they take minutes.

    Args:
        missing: only what has no answer for its present text.
    """
    answers = Answers(output, provenance.processor(), HERE, honest_texts(checker))
    left_out = (*SLOW, Run.GPU) if quick else (Run.GPU,)
    cases = [case for case in CASES if case.run not in left_out and answers.wanted(case, missing=missing)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        courts = Courts(folder, "cpu")
        for case in sorted(cases, key=lambda case: list(Run).index(case.run)):
            started = time.monotonic()
            found = judged(case, folder, courts)
            seconds = time.monotonic() - started
            results = answers.format_checks(case) or results_of(case, folder, courts)
            answers.of_case(case, row_of(case, found, results, checker, seconds))
        courts.close()


def judged(case: Case, folder: Path, courts: Courts) -> judging.Found:
    """By the cheapest that catches it."""
    if case.run is Run.SCREEN:
        return judging.screened(case)
    if case.run is Run.HOST:
        return judging.hosted(case.number, folder)
    return courts.carry(case)


if __name__ == "__main__":
    main()
