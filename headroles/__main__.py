"""``python -m headroles``."""

from headroles.cli import main

main()
