"""Aeron for Python: a media driver and a client in one package, byte-compatible with Aeron 1.52.

``import aeron`` loads the native module and nothing else: numpy, pyarrow and the libraries of the command line are
imported where they are used.
"""

from aeron._aeron import __version__

__all__ = ["__version__"]
