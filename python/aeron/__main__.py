"""``python -m aeron`` runs the command ``aeron``."""

from aeron.cli import main

main()
