"""The figures in the documents are the ones that runs wrote down."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
START, END = "<!-- figures: python benchmarks/examples.py --table -->\n", "\n<!-- end of figures -->"


def test_the_figures_in_the_readme_are_made_from_the_results() -> None:
    shown = (ROOT / "README.md").read_text().partition(START)[2].partition(END)[0]
    command = [sys.executable, "benchmarks/examples.py", "--table"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert shown == made.rstrip("\n")


def test_the_tables_of_kernelbench_are_made_from_the_results() -> None:
    text = (ROOT / "docs" / "kernelbench.md").read_text()
    shown = text.partition("kernelbench_table.py -->\n")[2].partition("\n<!-- end of tables -->")[0]
    command = [sys.executable, "benchmarks/kernelbench_table.py"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert shown == made.rstrip("\n")


def test_every_benchmark_is_named_where_a_reader_looks_for_it() -> None:
    shown = (ROOT / "benchmarks" / "README.md").read_text()
    scripts = [path for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text()]
    assert [path.name for path in scripts if path.stem not in shown] == []
