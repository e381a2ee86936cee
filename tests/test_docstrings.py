"""Tests that the docstrings of all public names are complete and in the Google style."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import aeron
from aeron import types

PACKAGE = Path(aeron.__file__).parent
SECTION = re.compile(r"^(Args|Returns|Raises|Attributes|Example):$", re.MULTILINE)
ITEM = re.compile(r"^    (\w+): \S", re.MULTILINE)


class Function(NamedTuple):
    """A public function, method or constructor."""

    name: str
    parameters: list[str]
    returns: str
    docstring: str


def sections(docstring: str) -> dict[str, str]:
    """Returns the text of each section by the name of the section."""
    parts = SECTION.split(inspect.cleandoc(docstring))
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def definitions() -> Iterator[ast.stmt]:
    """Yields the top-level statements of the stub files and of the Python modules, which define all public names."""
    files = [*(PACKAGE / "_stubs").glob("*.pyi"), *PACKAGE.glob("*.py")]
    for file in sorted(files):
        yield from ast.parse(file.read_text()).body


def public_classes() -> dict[str, ast.ClassDef]:
    found = {node.name: node for node in definitions() if isinstance(node, ast.ClassDef) and node.name in aeron.__all__}
    assert found.keys() == {name for name in aeron.__all__ if isinstance(getattr(aeron, name), type)} - {"connect"}
    return found


def of_node(name: str, node: ast.FunctionDef | ast.AsyncFunctionDef, docstring: str | None) -> Function:
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    parameters = [argument.arg for argument in every if argument.arg not in ("self", "cls")]
    return Function(name, parameters, ast.unparse(node.returns) if node.returns else "None", docstring or "")


def is_property(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list)


def attributes_of(node: ast.ClassDef) -> set[str]:
    properties = {each.name for each in node.body if isinstance(each, ast.FunctionDef) and is_property(each)}
    fields = {
        each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    return properties | fields


def fields_of(node: ast.ClassDef) -> list[str]:
    """Returns the constructor parameters of a dataclass. For any other class the list is empty."""
    decorators = [ast.unparse(each) for each in node.decorator_list]
    if not any("dataclass" in each for each in decorators):
        return []
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and "ClassVar" not in ast.unparse(each)]
    return [ast.unparse(each.target) for each in fields]


def functions() -> list[Function]:
    """Returns all public functions and methods, and the constructors of public classes."""
    found = []
    for node in definitions():
        if isinstance(node, ast.FunctionDef) and node.name in aeron.__all__:
            found.append(of_node(node.name, node, getattr(aeron, node.name).__doc__))
    for name, node in public_classes().items():
        kind = getattr(aeron, name)
        methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
        for method in methods:
            if method.name in ("__new__", "__init__"):
                made = of_node(name, method, kind.__doc__)
                # If every parameter of a constructor is an attribute, the attributes describe the parameters.
                if not set(made.parameters) <= attributes_of(node):
                    found.append(made._replace(returns="None"))
            elif not method.name.startswith("_") and not (isinstance(method, ast.FunctionDef) and is_property(method)):
                docstring = getattr(kind, method.name).__doc__
                found.append(of_node(f"{name}.{method.name}", method, docstring))
        if fields := fields_of(node):
            found.append(Function(name, fields, "None", kind.__doc__))
    assert len(found) > 300
    return found


REMOVALS = {"async_remove_publication", "async_remove_subscription", "async_remove_counter"}


def is_twin(function: Function) -> bool:
    """Returns whether a function starts the operation of the function that has the same name without ``async_``.

    `REMOVALS` have no other form: an object of the client is removed by its `close`.
    """
    name = function.name.split(".")[-1]
    return name.startswith("async_") and name not in REMOVALS and not is_of_protocol(function)


def is_of_protocol(function: Function) -> bool:
    """Returns whether a function is a method of the protocol of publications, which refers to `Publication`."""
    return function.name.startswith("AnyPublication.")


def test_the_docstring_of_a_twin_refers_to_the_function_with_the_same_parameters() -> None:
    found = {function.name: function for function in functions()}
    twins = [function for function in found.values() if is_twin(function)]
    assert len(twins) > 50
    for twin in twins:
        name = twin.name.replace("async_", "")
        beginning = f"Starts `{name.split('.')[-1]}`, and returns its `PendingOperation` at once."
        assert twin.docstring.startswith(beginning), twin.name
        # `connect` is a class, which has its keywords from `async_connect`.
        assert name == "connect" or twin.parameters == [each for each in found[name].parameters if each != "timeout"]
        assert twin.returns.startswith("PendingOperation["), twin.name


def test_every_parameter_and_every_result_has_a_description() -> None:
    incomplete = []
    for function in functions():
        if is_twin(function) or is_of_protocol(function):
            continue
        texts = sections(function.docstring)
        described = ITEM.findall(texts.get("Args", ""))
        if described != function.parameters:
            incomplete.append(f"{function.name}: Args are {described}, not {function.parameters}")
        if ("Returns" in texts) != (function.returns != "None"):
            incomplete.append(f"{function.name} -> {function.returns}: Returns is {texts.get('Returns')!r}")
    assert not incomplete, "\n".join(incomplete)


def test_every_exception_in_a_docstring_exists() -> None:
    unknown = []
    for function in functions():
        raised = sections(function.docstring).get("Raises")
        if raised is None:
            continue
        names = ITEM.findall(raised)
        assert names, f"{function.name} has no exception below Raises"
        kinds = [getattr(aeron, name, getattr(builtins, name, None)) for name in names]
        unknown += [
            f"{function.name}: {name}"
            for name, kind in zip(names, kinds, strict=True)
            if not (isinstance(kind, type) and issubclass(kind, BaseException))
        ]
    assert not unknown


def test_a_docstring_that_mentions_an_exception_has_a_section_raises() -> None:
    prose = [
        function.name
        for function in functions()
        if re.search(r"\b[Rr]aises `?\w+Error", SECTION.split(function.docstring)[0])
        if "Raises" not in sections(function.docstring)
        if not isinstance(getattr(aeron, function.name, None), type)
    ]
    assert not prose


def exceptions() -> list[str]:
    kinds = {name: getattr(aeron, name) for name in aeron.__all__}
    return [name for name, kind in kinds.items() if isinstance(kind, type) and issubclass(kind, BaseException)]


@pytest.mark.parametrize("name", exceptions())
def test_the_docstring_of_an_exception_has_the_cause_and_the_remedy(name: str) -> None:
    description = SECTION.split(inspect.cleandoc(getattr(aeron, name).__doc__))[0]
    paragraphs = [part for part in description.strip().split("\n\n") if part]
    assert len(paragraphs) == 2, "the docstring must have two paragraphs: the cause, and the remedy"


def test_every_public_class_has_the_module_name_of_the_package() -> None:
    classes = [getattr(aeron, name) for name in aeron.__all__ if isinstance(getattr(aeron, name), type)]
    assert {kind.__module__ for kind in classes} == {"aeron"}
    called = [getattr(aeron, name) for name in aeron.__all__ if inspect.isbuiltin(getattr(aeron, name))]
    assert {function.__module__ for function in called} == {"aeron"}


def test_both_publications_have_the_members_of_the_protocol() -> None:
    """The methods of the protocol have the same parameters and annotations in both classes. The classes have the same
    docstrings, to which the protocol refers.
    """

    def members(name: str) -> dict[str, str]:
        methods = [each for each in public_classes()[name].body if isinstance(each, ast.FunctionDef)]
        public = [each for each in methods if not each.name.startswith("_") or each.name in ("__enter__", "__exit__")]
        return {
            each.name: f"({ast.unparse(each.args)}) -> {ast.unparse(each.returns or ast.Constant(None))}"
            for each in public
        }

    protocol = members("AnyPublication")
    assert members("Publication") == protocol
    assert members("ExclusivePublication").items() > protocol.items()
    for name in protocol:
        if not name.startswith("_"):
            assert getattr(types.AnyPublication, name).__doc__ == f"See `Publication.{name}`."
            texts = {getattr(kind, name).__doc__ for kind in (aeron.Publication, aeron.ExclusivePublication)}
            assert len(texts) == 1, name


def test_aliases_can_be_evaluated_in_annotations() -> None:
    for name in types.__all__:
        assert getattr(aeron, name) is getattr(types, name)
        assert getattr(types, name) | None
