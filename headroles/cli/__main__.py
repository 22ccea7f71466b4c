"""``python -m headroles.cli``."""

from headroles.cli import main

main()
