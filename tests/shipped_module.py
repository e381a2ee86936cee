"""Checks the package that users get. `make test-shipped` runs this file on a wheel."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import aeron
from hooks import VARIABLE, has_hooks


def test_the_shipped_module_has_no_test_hooks() -> None:
    assert not has_hooks(), f"{VARIABLE} is in the module: build it without the feature test-hooks"


def test_the_stubs_have_the_docstrings_of_the_module_for_editors() -> None:
    differing = []
    texts = 0
    for file in (Path(aeron.__file__).parent / "_stubs").glob("*.pyi"):
        for node in ast.parse(file.read_text()).body:
            thing = getattr(aeron, getattr(node, "name", ""), None)
            if not isinstance(node, ast.ClassDef | ast.FunctionDef) or thing is None:
                continue
            members = [each for each in ast.walk(node) if isinstance(each, ast.FunctionDef) and each.name[0] != "_"]
            for each in {node, *members}:
                native = thing if each is node else getattr(thing, each.name)
                texts += 1
                if ast.get_docstring(each) != inspect.cleandoc(native.__doc__):
                    differing.append(f"{node.name}.{each.name}")
    assert texts > 500
    assert differing == []
