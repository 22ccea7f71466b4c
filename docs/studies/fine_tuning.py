"""Changes of the roles of heads by fine-tuning, and models fine-tuned for studies of removed heads.

python -m docs.studies.fine_tuning study --model DIR --cola DIR --sst2 DIR --treebank FILE --out DIR
    [--seeds 1 2] [--examples 4000]
python -m docs.studies.fine_tuning model --model DIR --task sst2|cola|mrpc --data DIR --out DIR
    [--examples 8000] [--seed 1] [--epochs 2]

study  fine-tunes the model on CoLA and on SST-2 once with every seed, scores it before and after
       over the treebank, and compares: before with every checkpoint, and the checkpoints of one
       task with each other, which differ by their seeds only (first weights of the classifier,
       order of the sentences, dropout). Finished steps are read from DIR: an interrupted run goes
       on, and a second run only prints. The tables are also written to DIR/tables.md:

    DIR/study.json               model, tasks, treebank and recipe; another study is refused
    DIR/checkpoints/cola-1/      the model, and task.json with its measure before and after
    DIR/scores/cola-1-bias/      its scores, as `headroles score` writes them

model  fine-tunes one model by the same recipe, with texts cut at 96 word pieces. --data is the
       folder of the task's files as in GLUE
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)
from transformers.utils import logging

from docs.studies.simulations import markdown
from headroles import (
    HeadScores,
    RoleComparison,
    assign_roles,
    compare_roles,
    read_conllu,
    score_heads,
    storage,
)
from headroles.errors import UsageError
from headroles.record import Record
from headroles.studies.comparison.compare import STATUSES

BEFORE = "before"
CLASSIFIER, SEPARATORS = "delimiter:cls", "delimiter:sep"

Labelled: TypeAlias = tuple[str | tuple[str, str], int]
Labels: TypeAlias = NDArray[np.int64]


def accuracy(predicted: Labels, labels: Labels) -> float:
    """Return the share of right predictions (examples,)."""
    return float((predicted == labels).mean())


def matthews(predicted: Labels, labels: Labels) -> float:
    """Return Matthews' correlation of two classes (examples,); 0 for equal predictions."""
    return float(np.corrcoef(predicted, labels)[0, 1]) if np.ptp(predicted) else 0.0


MEASURES: dict[str, Callable[[Labels, Labels], float]] = {
    "accuracy": accuracy,
    "Matthews correlation": matthews,
}


@dataclass(frozen=True)
class Task:
    """Sentences or pairs with labels 0 and 1, and which of ``MEASURES`` tells how well it is done.

    ``epochs`` is how often training goes through its sentences; ``balanced`` whether it takes as
    many of either label.
    """

    name: str
    measure: str
    epochs: float
    train: Sequence[Labelled]
    dev: Sequence[Labelled]
    balanced: bool = True


@dataclass(frozen=True)
class Recipe:
    """Settings of fine-tuning on ``sentences`` of a task; the others are those of the Trainer."""

    sentences: int = 4000
    learning_rate: float = 1e-4
    batch_size: int = 32
    warmup_share: float = 0.1
    max_tokens: int = 64


def main() -> None:
    """Parse the command line, train, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("study", "model"))
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cola", type=Path, help="folder of CoLA's .tsv files")
    parser.add_argument("--sst2", type=Path, help="folder of SST-2's .tsv files")
    parser.add_argument("--treebank", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--task", choices=READERS)
    parser.add_argument("--data", type=Path, help="folder of the task's files")
    parser.add_argument("--examples", type=int, help="most to train on")
    parser.add_argument("--epochs", type=float, help="another number than the task's own")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    be_silent()
    if given.what == "model":
        task = READERS[given.task](given.data)
        task = replace(task, epochs=given.epochs or task.epochs)
        recipe = Recipe(sentences=given.examples or 8000, max_tokens=96)
        print(fine_tune(given.model, task, given.seed, recipe, given.out))
        return
    recipe = Recipe(sentences=given.examples or Recipe.sentences)
    tasks = [read_cola(given.cola), read_sst2(given.sst2)]
    tables = run_study(given.model, tasks, given.treebank, given.out, recipe, given.seeds)
    text = "\n\n".join(f"## {title}\n\n{formatted(table)}" for title, table in tables.items())
    storage.write_bytes(given.out / "tables.md", f"{text}\n".encode())
    print(text)


def be_silent() -> None:
    """Compute in one thread, without progress; that the classifier is new is no news."""
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()


def read_cola(folder: Path) -> Task:
    """Read the corpus of linguistic acceptability (Warstadt et al. 2019), its in-domain part."""

    def read(name: str) -> list[Labelled]:
        lines = (folder / name).read_text(encoding="utf-8").splitlines()
        fields = (line.split("\t") for line in lines)
        return [(sentence, int(label)) for _, label, _, sentence in fields]

    train, dev = read("in_domain_train.tsv"), read("in_domain_dev.tsv")
    return Task("cola", "Matthews correlation", epochs=4, train=train, dev=dev)


def read_sst2(folder: Path) -> Task:
    """Read phrases of film reviews, good or bad (Socher et al. 2013), from GLUE."""

    def read(name: str) -> list[Labelled]:
        lines = (folder / name).read_text(encoding="utf-8").splitlines()[1:]
        fields = (line.split("\t") for line in lines)
        return [(sentence.strip(), int(label)) for sentence, label in fields]

    train, dev = read("train.tsv"), read("dev.tsv")
    return Task("sst2", "accuracy", epochs=2, train=train, dev=dev)


def read_mrpc(folder: Path) -> Task:
    """Read pairs of news sentences, paraphrases or not (Dolan & Brockett 2005).

    Two thirds have label 1; all are kept, as there are few.
    """

    def read(name: str) -> list[Labelled]:
        lines = (folder / name).read_text(encoding="utf-8-sig").splitlines()[1:]
        pairs = {}
        for line in lines:
            label, first, second, *texts = line.split("\t")
            pairs.setdefault((first, second), ((texts[0], texts[1]), int(label)))
        return list(pairs.values())

    train, dev = read("msr_paraphrase_train.txt"), read("msr_paraphrase_test.txt")
    return Task("mrpc", "accuracy", epochs=3, train=train, dev=dev, balanced=False)


READERS: dict[str, Callable[[Path], Task]] = {
    "sst2": read_sst2,
    "cola": read_cola,
    "mrpc": read_mrpc,
}


def run_study(
    model: Path,
    tasks: Sequence[Task],
    treebank: Path,
    out: Path,
    recipe: Recipe,
    seeds: Sequence[int] = (1, 2),
    kinds: Iterable[str] = ("bias", "excess"),
) -> dict[str, pd.DataFrame]:
    """Fine-tune, score, compare; all tables by their titles. What ``out`` has is not done again."""
    be_silent()
    description = {
        "model": str(model),
        "tasks": {t.name: [t.epochs, len(t.train), len(t.dev)] for t in tasks},
        "treebank": str(treebank),
        "recipe": asdict(recipe),
    }
    open_study(out, description)
    corpus = read_conllu(treebank)
    runs = {f"{task.name}-{seed}": (task, seed) for task in tasks for seed in seeds}
    places = {name: out / "checkpoints" / name for name in runs}
    measured = [fine_tune(model, *runs[name], recipe, place) for name, place in places.items()]
    tables = {"Tasks": pd.DataFrame(measured)}
    for kind in kinds:
        scores = {
            name: scores_of(place, corpus, kind, out / "scores")
            for name, place in {BEFORE: model, **places}.items()
        }
        tables |= {f"{title}, {kind}": table for title, table in tables_of(scores).items()}
        if kind == "bias":
            tables["Attention on special tokens, %"] = delimiter_shares(scores)
    return tables


def scores_of(model: Path, corpus: Any, score: str, folder: Path) -> HeadScores:
    """Return scores from the folder; make and save them there first if necessary."""
    place = folder / f"{model.name}-{score}"
    if not place.exists():
        score_heads(str(model), corpus, score=score).save(place)
    return HeadScores.load(place)


def open_study(out: Path, description: dict[str, Any]) -> None:
    """Note what the study is made of; UsageError if ``out`` holds another one."""
    file = out / "study.json"
    if not file.exists():
        out.mkdir(parents=True, exist_ok=True)
        storage.write_bytes(file, storage.encode_json(description))
    found = storage.read_json(file)
    for key, value in description.items():
        if found.get(key) != value:
            raise UsageError(
                f"{out} holds a study with another {key}: {found.get(key)}, and not {value}; "
                "name another folder"
            )


def fine_tune(model: Path, task: Task, seed: int, recipe: Recipe, place: Path) -> dict[str, object]:
    """Fine-tune a copy of ``model``, keep it in ``place``, and tell how well it does the task."""
    record = place / "task.json"
    if not record.exists():
        with storage.result_folder(place) as staging:
            content = {
                **storage.plain(Record.now(options=asdict(recipe))),
                "model": {"id": str(model)},
                "corpus": {"task": task.name},
                "measured": train(model, task, seed, recipe, staging),
            }
        storage.write_bytes(
            record, storage.encode_json(content)
        )  # last: it says that the folder is whole
    measured = dict(storage.read_json(record)["measured"])
    print(f"{place.name}: {task.measure} {measured['before']:.2f} -> {measured['after']:.2f}")
    return measured


def train(model: Path, task: Task, seed: int, recipe: Recipe, folder: Path) -> dict[str, object]:
    """Fine-tune with the Trainer of transformers and write model and tokenizer to ``folder``.

    All runs of a task take the same sentences; ``seed`` sets the first weights of the classifier,
    the order of the sentences, and dropout.
    """
    set_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(model)
    network = AutoModelForSequenceClassification.from_pretrained(model, num_labels=2)
    choose = choose_balanced if task.balanced else choose_first
    chosen = choose(task.train, recipe.sentences)
    steps = int(np.ceil(len(chosen) / recipe.batch_size) * task.epochs)
    trainer = make_trainer(
        network,
        tokenizer,
        encode(chosen, tokenizer, recipe.max_tokens),
        output_dir=str(folder),
        num_train_epochs=task.epochs,
        learning_rate=recipe.learning_rate,
        per_device_train_batch_size=recipe.batch_size,
        warmup_steps=int(recipe.warmup_share * steps),
        seed=seed,
    )
    dev = encode(task.dev, tokenizer, recipe.max_tokens)
    before = predict(trainer, dev)
    trainer.train()
    classes, labels = predict(trainer, dev)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    measure = MEASURES[task.measure]
    return {
        "task": task.name,
        "seed": seed,
        "trained on": len(chosen),
        "tested on": len(labels),
        "measure": task.measure,
        "before": measure(*before),
        "after": measure(classes, labels),
        "accuracy after": accuracy(classes, labels),
        "larger class": float(max(labels.mean(), 1 - labels.mean())),
    }


def make_trainer(network: Any, tokenizer: Any, sentences: Any, **settings: Any) -> Trainer:
    """Make a silent trainer for this processor, with other settings of `TrainingArguments`."""
    arguments = TrainingArguments(
        train_sampling_strategy="group_by_length",
        use_cpu=True,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        **settings,
    )
    trainer = Trainer(
        model=network, args=arguments, train_dataset=sentences, processing_class=tokenizer
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def predict(trainer: Trainer, sentences: Any) -> tuple[Labels, Labels]:
    """Return the likelier class and the label of every sentence.

    The Trainer has an order of its own: by length, also here.
    """
    result = trainer.predict(sentences)
    classes: Labels = np.asarray(result.predictions).argmax(axis=1)
    return classes, np.asarray(result.label_ids)


def choose_balanced(sentences: Sequence[Labelled], n: int) -> list[Labelled]:
    """Choose ``n`` sentences at random, as many of either label; always the same ones.

    In CoLA seven of ten sentences have label 1. A small model that is trained for minutes
    learns to say so of all of them, and nothing else.
    """
    order = np.random.default_rng(0).permutation(len(sentences))
    shuffled = [sentences[place] for place in order]
    halves = [[one for one in shuffled if one[1] == label][: n // 2] for label in (0, 1)]
    return [*halves[0], *halves[1]]


def choose_first(sentences: Sequence[Labelled], n: int) -> list[Labelled]:
    """Choose the first ``n`` of the sentences."""
    return list(sentences[:n])


def encode(
    sentences: Sequence[Labelled], tokenizer: PreTrainedTokenizerBase, max_tokens: int
) -> Any:
    """Make a dataset for the Trainer, with long sentences cut."""
    return [
        {**tokenizer(*own, truncation=True, max_length=max_tokens), "labels": label}
        for own, label in ((_texts(text), label) for text, label in sentences)
    ]


def _texts(text: str | tuple[str, str]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else text


def tables_of(scores: Mapping[str, HeadScores]) -> dict[str, pd.DataFrame]:
    """Make all tables for one kind of score; the scores before come first."""
    shifts = compare_all(scores)
    layers = shifts.layers()
    layers["cell"] = layers["rms_difference"].map("{:.3f}".format)
    return {
        "Heads with each role": heads_by_role(scores),
        "Roles gained and lost": moves_by_role(shifts),
        "What became of all roles": count_statuses(shifts),
        "How far each layer moved": spread(layers, "checkpoint", "layer", "cell"),
        "Correlation of what changed": correlations(scores),
    }


def compare_all(scores: Mapping[str, HeadScores]) -> RoleComparison:
    """Compare before with all checkpoints, as one family, and checkpoints of a task pairwise."""
    names = list(scores)[1:]
    after = compare_roles(*scores.values(), names=names)
    seeds = [
        compare_roles(scores[first], scores[second], names=[f"{first} to {second}"])
        for first, second in same_task(names)
    ]
    frames = [shifts.frame for shifts in (after, *seeds)]
    return RoleComparison(pd.concat(frames, ignore_index=True), after.record)


def same_task(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of checkpoints that differ in their seed only."""
    return (pair for pair in combinations(names, 2) if len({task_of(name) for name in pair}) == 1)


def task_of(name: str) -> str:
    """Return the task of a checkpoint."""
    return name.rpartition("-")[0]


def heads_by_role(scores: Mapping[str, HeadScores]) -> pd.DataFrame:
    """Count heads with each role, before and at each checkpoint."""
    answers = {name: assign_roles(those).answers()["yes"] for name, those in scores.items()}
    return pd.DataFrame(answers).reset_index()


def moves_by_role(shifts: RoleComparison) -> pd.DataFrame:
    """Count heads that gained (+) and lost (-) each role that any head gained or lost."""
    key = ["checkpoint", "role"]
    counts = shifts.counts().groupby(key, sort=False)[["gained", "lost"]].sum().reset_index()
    counts["cell"] = [
        " ".join(f"{sign}{n}" for sign, n in (("+", gained), ("-", lost)) if n)
        for gained, lost in zip(counts["gained"], counts["lost"], strict=True)
    ]
    wide = spread(counts, "role", "checkpoint", "cell")
    return wide[(wide.drop(columns="role") != "").any(axis=1)]


def spread(long: pd.DataFrame, rows: str, columns: str, values: str) -> pd.DataFrame:
    """Pivot a long table, in the order of its rows and columns."""
    wide = long.pivot_table(
        index=rows, columns=columns, values=values, aggfunc="first", sort=False, dropna=False
    )
    return wide.rename_axis(columns=None).reset_index()


def count_statuses(shifts: RoleComparison) -> pd.DataFrame:
    """Count gained, lost and unchanged roles of all heads, and changed means."""
    counts = shifts.counts().groupby("checkpoint", sort=False)
    table = counts[["heads", *STATUSES, "changed", "equivalent"]].sum()
    return table.rename(columns={"heads": "tests"}).reset_index()


def correlations(scores: Mapping[str, HeadScores]) -> pd.DataFrame:
    """Correlate the changes of two checkpoints over heads; mean over the roles.

    If a change belongs to the task, checkpoints of one task are more alike than those of two.
    """
    means = {
        name: np.nanmean(those.values, axis=0, dtype=np.float64).reshape(-1, len(those.roles))
        for name, those in scores.items()
    }
    before, *names = means
    changes = {name: (means[name] - means[before]).T for name in names}
    matrix = [[mean_correlation(changes[x], changes[y]) for y in names] for x in names]
    return pd.DataFrame(matrix, index=names, columns=names).reset_index(names="checkpoint")


def mean_correlation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the mean over the rows (roles, heads) of the correlation of the two."""
    rows = zip(first, second, strict=True)
    return float(np.mean([np.corrcoef(one, other)[0, 1] for one, other in rows]))


def delimiter_shares(scores: Mapping[str, HeadScores]) -> pd.DataFrame:
    """Tabulate attention of all heads, and of heads with most on one special token before.

    Shares of attention in percent, means over examples and heads: all, and the quarter with the
    largest share on separators or [CLS] before. Heads are chosen on one half of the documents and
    all are measured on the other: chosen and measured on the same examples, they would seem to
    lose what was luck. ``more on words`` counts heads that give words more than before.
    """
    documents = np.asarray(scores[BEFORE].documents)
    names = np.random.default_rng(0).permutation(np.unique(documents))
    first = np.isin(documents, names[: len(names) // 2])
    chosen_by = attention_shares(scores[BEFORE], first)
    shares = {name: attention_shares(those, ~first) for name, those in scores.items()}
    groups = {"all": np.arange(len(chosen_by["words"]))}
    for token in ("separators", "[CLS]"):
        groups[f"most on {token}"] = np.argsort(-chosen_by[token])[: len(groups["all"]) // 4]
    rows = []
    for group, heads in groups.items():
        for name, share in shares.items():
            more = share["words"][heads] > shares[BEFORE]["words"][heads]
            rows.append(
                {
                    "heads": f"{group} ({len(heads)})",
                    "checkpoint": name,
                    **{key: 100 * float(values[heads].mean()) for key, values in share.items()},
                    "more on words": int(more.sum()),
                }
            )
    return pd.DataFrame(rows)


def attention_shares(scores: HeadScores, rows: NDArray[np.bool_]) -> dict[str, NDArray[np.float64]]:
    """Return mean shares of attention (layers * heads,) on classifier, separators and words.

    A bias score is n / |S| times the share on the sieve S of an example of n tokens; here S is one
    token, or the separators: two in an example of two sentences, which alone has a block score.
    """
    lengths = scores.lengths[rows, None]
    n_separators = np.where(scores.counts[rows, scores.role_ids.index("block:ratio")] > 0, 2, 1)[
        :, None
    ]
    classifier = (scores.column(CLASSIFIER)[rows] / lengths).mean(axis=0)
    separators = (scores.column(SEPARATORS)[rows] * n_separators / lengths).mean(axis=0)
    return {
        "separators": separators,
        "[CLS]": classifier,
        "words": 1 - classifier - separators,
    }


def formatted(table: pd.DataFrame) -> str:
    """Format a table in Markdown, numbers with two decimals."""
    return markdown(table.map(show).to_dict("records"))  # type: ignore[arg-type]


def show(cell: object) -> str:
    """Format a cell; undefined numbers are empty."""
    if isinstance(cell, float):
        return f"{cell:.2f}" if np.isfinite(cell) else ""
    return str(cell)


if __name__ == "__main__":
    main()
