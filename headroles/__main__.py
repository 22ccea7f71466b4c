"""Entry point of ``python -m headroles`` and of the command ``headroles``."""

from headroles import interrupts, memory


def main() -> None:
    """Run the command line; signals are handled even while it is being imported."""
    try:
        interrupts.handle_signals()
        from headroles.cli import main as run

        run()
    except KeyboardInterrupt as stop:
        interrupts.end(str(stop) or interrupts.written_so_far())
    except SystemExit as end:
        if interrupts.has_signal():
            interrupts.end(interrupts.written_so_far())
        if isinstance(end.code, int):
            memory.leave(end.code)
        raise


if __name__ == "__main__":
    main()
