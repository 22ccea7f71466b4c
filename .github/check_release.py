"""Refuse a tag whose version pyproject.toml, the changelog or the citation does not have.

python .github/check_release.py v0.3.0
"""

import re
import runpy
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def find_faults(tag: str, root: Path = ROOT) -> list[str]:
    """Return what is wrong with a release by this tag, one sentence each."""
    version = tag.removeprefix("v")
    declared = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    heads = re.findall(r"^## (.+)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    faults = []
    if declared["version"] != version:
        faults.append(f"pyproject.toml has version {declared['version']}, and the tag is {tag}.")
    if not any(
        re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", head) for head in heads
    ):
        faults.append(f"CHANGELOG.md has no head '## {version} (YYYY-MM-DD)'.")
    if "Unreleased" in heads:
        faults.append("CHANGELOG.md still has a head '## Unreleased'; name the version in it.")
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    if f"version: {version}\n" not in citation:
        faults.append(f"CITATION.cff has another version than {version}.")
    tables = runpy.run_path(str(root / "headroles" / "public_names.py"))
    names = {*tables["module_by_name"](tables["HEADROLES"])}
    promised = (root / "tests" / "public_names.txt").read_text(encoding="utf-8").split()
    if new := sorted(names - {*promised}):
        faults.append(f"tests/public_names.txt lacks {', '.join(new)}.")
    return faults


if __name__ == "__main__":
    sys.exit("\n".join(find_faults(sys.argv[1])) or 0)
