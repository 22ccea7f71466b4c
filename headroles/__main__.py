"""Entry point of ``python -m headroles`` and of the command ``headroles``."""

import os
import sys
from contextlib import suppress

from headroles import interrupts


def main() -> None:
    """Run the command line; signals are handled even while it is being imported."""
    try:
        interrupts.handle_signals()
        try:
            from headroles.cli import main as run

            run()
        except SystemExit as end:
            interrupts.end_at_once()
            if isinstance(end.code, int):
                interrupts.leave(end.code)
            raise
    except KeyboardInterrupt as stop:  # before a command or after it
        with suppress(OSError):
            os.write(2, b"interrupted\n")
        interrupts.leave(interrupts.exit_code(stop))
        sys.exit(interrupts.exit_code(stop))


if __name__ == "__main__":
    main()
