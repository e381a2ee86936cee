"""The native module; import ``aeron`` instead."""

__all__ = ["__version__"]

__version__: str
