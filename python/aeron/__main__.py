"""``python -m aeron``: the ``aeron`` command."""

from aeron.cli import main

main()
