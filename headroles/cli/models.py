"""``headroles models``: the encoder families."""

from __future__ import annotations

from headroles.cli import console
from headroles.cli.app import app
from headroles.cli.flags import OutputOptions, command


@command(app)
def models(output: OutputOptions) -> None:
    """List the encoder families. Those that cannot be scored come with the reason."""
    from headroles.models.families import FAMILIES, REFUSED
    from headroles.results.shown import Grid

    if output.json:
        supported = {
            kind: {"name": family.name, "read_through": family.read_through, "note": family.note}
            for kind, family in FAMILIES.items()
        }
        console.print_json({"supported": supported, "refused": REFUSED})
        return
    columns = ("family", "read through", "note")
    rows = tuple((family.name, family.read_through, family.note) for family in FAMILIES.values())
    console.print_shown(iter([Grid(columns, rows, left=frozenset(columns))]))
    console.say(
        "Other encoders, code from the hub included, are read through transformers' attention "
        "interface or by the attentions that they return. Refused:"
    )
    for kind, reason in REFUSED.items():
        console.say(f"  {kind}: {reason}")
    console.say("  decoders: headroles scores encoders, those of encoder-decoders included")
