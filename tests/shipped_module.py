"""Checks the native module that users get. `make test-shipped` runs this file on a build with the release profile."""

from __future__ import annotations

from hooks import VARIABLE, has_hooks


def test_the_shipped_module_has_no_test_hooks() -> None:
    assert not has_hooks(), f"{VARIABLE} is in the module: build it without the feature test-hooks"
