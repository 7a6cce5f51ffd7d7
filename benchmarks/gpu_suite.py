"""Everything that needs a GPU, in one command: parity with the CPU at real size, then benchmarks.

It takes under 8 minutes on one H200, without a network. Each section is a function of another file
in this folder and runs in a process of its own with its own time limit, so a section that hangs,
crashes or breaks the device context does not affect the others. The results are written after every
section.

    python benchmarks/gpu_suite.py [--only harvest,count] [--json FILE] [--commit COMMIT]

Exits with 0 if every section passed, 1 if one failed, 2 if there is no GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import math
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from reproduce import record

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
PACKAGES = (
    "numba",
    "numba-cuda",
    "cupy-cuda13x",
    "cuda-toolkit",
    "nvidia-nvvm",
    "numpy",
    "pyarrow",
    "duckdb",
    "polars",
)
TOTAL = 465.0
"""Seconds for all sections: 8 minutes less the start and the last table."""
_TAIL = 2000
"""Characters of a failed section's output that are kept."""


class Section(NamedTuple):
    """A function that takes a device and returns what it found.

    Attributes
    ----------
    name : str
    module, function : str
        Where it is, beside this file.
    budget : float
        Seconds it may take, the start of its process and compilation included.
    arguments : dict
        Given by keyword after the device.
    """

    name: str
    module: str
    function: str
    budget: float
    arguments: dict[str, Any] = {}  # noqa: RUF012 - a NamedTuple's default, never changed


SECTIONS = (
    Section("parity", "gpu_replay", "parity", 75),
    Section("harvest", "gpu_harvest", "measure_harvest", 45),
    Section("optimum", "gpu_optimum", "measure_optimum", 45),
    Section("facts", "gpu_facts", "measure_facts", 40),
    Section("multiway", "gpu_multiway", "measure_multiway", 40),
    Section("vectors", "gpu_vectors", "measure_vectors", 40),
    Section("count", "gpu_probe", "measure_count", 80, {"rows": 100_000_000}),
    Section("replay", "gpu_replay", "measure_replay", 100),
)
"""In the order they run."""


def commit(given: str | None) -> str:
    """Return the commit as given, from ``WINNOW_COMMIT``, from git, or ``unknown``."""
    return given or os.environ.get("WINNOW_COMMIT") or record.commit()


def _driver() -> str:
    """Return the driver's version as nvidia-smi says it; nothing is set."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    with contextlib.suppress(OSError):
        done = subprocess.run(query, capture_output=True, text=True, check=False)  # noqa: S603 - ours
        if done.returncode == 0:
            return done.stdout.splitlines()[0].strip()
    return "unknown"


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _device() -> dict[str, Any]:
    """Return what the runtime says of the GPU, asked in a process that ends."""
    program = (
        "import cupy, json\n"
        "r = cupy.cuda.runtime\n"
        "p = r.getDeviceProperties(r.getDevice())\n"
        "print(json.dumps({'device': p['name'].decode(), 'memory_bytes': p['totalGlobalMem'],\n"
        "    'compute_capability': f\"{p['major']}.{p['minor']}\",\n"
        "    'multiprocessors': p['multiProcessorCount'],\n"
        "    'cuda_driver': r.driverGetVersion(), 'cuda_runtime': r.runtimeGetVersion()}))\n"
    )
    asked = [sys.executable, "-c", program]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode:
        return {"device": "unknown", "why": done.stderr[-_TAIL:]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def surroundings(given_commit: str | None) -> dict[str, Any]:
    """Return what was measured, and on what."""
    return {
        **_device(),
        "driver": _driver(),
        "cpu": record.processor(),
        "cpu_cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "packages": _versions(),
        "commit": commit(given_commit),
        "started_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _plain(value: Any) -> Any:  # noqa: ANN401 - numpy's scalars and arrays
    """Return a number of numpy's as Python's."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def answer(section: Section, folder: Path, path: Path) -> int:
    """Run a section in this process and write what it found, or how it failed, to `path`."""
    sys.path[:0] = [str(folder), str(ROOT)]
    try:
        from gpu_kernels.devices import open_device  # noqa: PLC0415 - the path is set just above

        function = getattr(importlib.import_module(section.module), section.function)
        found = {"passed": True, "found": function(open_device(), **section.arguments)}
        written = json.dumps(found, default=_plain)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is recorded
        trace = traceback.format_exc()[-_TAIL:]
        written = json.dumps(
            {"passed": False, "error": f"{type(error).__name__}: {error}", "traceback": trace}
        )
    path.write_text(written)
    return 0 if json.loads(written)["passed"] else 1


def run_section(section: Section, folder: Path, allowed: float) -> dict[str, Any]:
    """Run a section in its own process, for `allowed` seconds at most.

    Returns
    -------
    dict
        ``passed``, ``seconds`` and ``budget``; ``found``, or ``error`` and what it printed last.
    """
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        path, log = Path(place) / "answer.json", Path(place) / "log"
        request = json.dumps([section._asdict(), str(folder), str(path)])
        command = [sys.executable, str(FOLDER / "gpu_suite.py"), "--answer", request]
        with log.open("wb") as out:
            child = subprocess.Popen(  # noqa: S603 - ours
                command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                code = child.wait(timeout=max(allowed, 0.0))
                error = f"ended with {code} and no answer"
            except subprocess.TimeoutExpired:
                error = f"took longer than {allowed:.0f} s"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)  # its own session: it and its children
                child.wait()
        result: dict[str, Any] = {"passed": False, "error": error}
        if path.exists() and not error.startswith("took"):
            result = json.loads(path.read_text())
        if not result["passed"]:
            result["printed"] = log.read_text(errors="replace")[-_TAIL:]
    return result | {"seconds": time.perf_counter() - begun, "budget": section.budget}


def figures(found: Any, path: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 - JSON
    """Yield every figure of a result with its path.

    Examples
    --------
    >>> list(figures({"a": {"seconds": 0.25}, "b": [1, 2_000_000]}))
    [('a.seconds', '0.25'), ('b.0', '1'), ('b.1', '2,000,000')]
    """
    if isinstance(found, dict | list):
        parts = found.items() if isinstance(found, dict) else enumerate(found)
        for name, part in parts:
            yield from figures(part, f"{path}.{name}" if path else str(name))
    elif isinstance(found, float) and math.isfinite(found):
        yield path, f"{found:,.0f}" if abs(found) >= 1e5 else f"{found:.5g}"
    elif isinstance(found, int) and not isinstance(found, bool):
        yield path, f"{found:,}"
    else:
        yield path, str(found)


def print_section(name: str, result: dict[str, Any]) -> None:
    """Print one section's table."""
    said = "passed" if result["passed"] else "FAILED"
    print(f"\n{name}: {said} in {result['seconds']:.1f} s of {result['budget']:.0f} s")
    if not result["passed"]:
        print(f"  {result['error']}")
        print("\n".join(f"  | {line}" for line in result.get("printed", "").splitlines()[-10:]))
    for path, value in figures(result.get("found", {})):
        print(f"  {path:60}{value:>24}")
    sys.stdout.flush()


def run_suite(sections: Sequence[Section], folder: Path, about: dict[str, Any], out: Path) -> bool:
    """Run sections, print and write what they found; tell whether all passed."""
    begun = time.perf_counter()
    results: dict[str, dict[str, Any]] = {}
    for section in sections:
        left = TOTAL - (time.perf_counter() - begun)
        if left <= 0:
            late = {"passed": False, "error": f"not begun: the suite's {TOTAL:.0f} s are over"}
            results[section.name] = late | {"seconds": 0.0, "budget": section.budget}
        else:
            results[section.name] = run_section(section, folder, min(section.budget, left))
        print_section(section.name, results[section.name])
        content = {"about": about, "seconds": time.perf_counter() - begun, "sections": results}
        record.write(out, content)
    failed = [name for name, result in results.items() if not result["passed"]]
    print(f"\n{len(results) - len(failed)} sections passed, {len(failed)} failed; {out}")
    return not failed


def _chosen(only: str | None) -> list[Section]:
    known = {section.name: section for section in SECTIONS}
    if only is None:
        return list(SECTIONS)
    names = only.split(",")
    for name in names:
        if name not in known:
            raise SystemExit(f"there is no section {name!r}; choose of {', '.join(known)}")
    return [known[name] for name in names]


def main(argv: list[str] | None = None) -> int:
    """Run the suite, or one section for it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--only", help="names of sections, with commas between them")
    parser.add_argument("--json", type=Path, help="default: $OUT or benchmarks/results")
    parser.add_argument("--commit", help="default: $WINNOW_COMMIT, or what git says")
    parser.add_argument("--answer", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.answer:
        section, folder, path = json.loads(args.answer)
        return answer(Section(**section), Path(folder), Path(path))
    sections = _chosen(args.only)
    sys.path.insert(0, str(ROOT))
    from gpu_kernels.devices import gpu_seen  # noqa: PLC0415 - the path is set just above

    seen, why = gpu_seen()
    if not seen:
        print(f"no GPU: {why}; nothing was run and nothing is recorded")
        return 2
    about = surroundings(args.commit)
    for path, value in figures(about):
        print(f"{path:30}{value}")
    results = Path(os.environ["OUT"]) if os.environ.get("OUT") else FOLDER / "results"
    out = args.json or results / "gpu_suite.json"
    return 0 if run_suite(sections, FOLDER, about, out) else 1


if __name__ == "__main__":
    sys.exit(main())
