"""Write the stubs of the packages with public names: functions with all their options.

    python -m tests.typing.make_stubs

A study takes its options as keyword arguments by `takes`, which type checkers and editors cannot
follow. The stub of its package spells its signature: the subjects as the study annotates them, and
each option with what it takes, which is the type of its field, or the annotation of the function
that makes its value (`Convert`). All other public names are imported where they are.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

from headroles import public_names
from headroles.options import Convert, Field, fields_of
from headroles.public_names import module_by_name

ROOT = Path(__file__).parents[2]
STUBS = {
    "headroles/__init__.pyi": public_names.HEADROLES,
    "headroles/report/__init__.pyi": public_names.REPORT,
}
_HEAD = "# Written by `make stubs`; do not edit.\n"
_BUILTINS = {"bool", "dict", "float", "int", "list", "object", "str", "tuple", "type", "None"}


@cache
def tree_of(module: str) -> ast.Module:
    """Return the syntax of an imported module."""
    return ast.parse(inspect.getsource(sys.modules[module]))


@cache
def origins(module: str) -> dict[str, str]:
    """Return for each name of a module an import of it: from where it imports it, or from it.

    Imports for type checkers alone are among them.
    """
    found = {}
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                renamed = f" as {alias.asname}" if alias.asname else ""
                name = alias.asname or alias.name
                found[name] = f"from {node.module} import {alias.name}{renamed}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name] = ast.unparse(node)
    for statement in tree_of(module).body:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        elif isinstance(statement, ast.Assign):
            targets = statement.targets
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        names += [statement.name] if isinstance(statement, ast.ClassDef) else []
        found |= {name: f"from {module} import {name}" for name in names}
    return found


class Stub:
    """The stub of a package, with imports of all names in its annotations."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._imports: dict[str, str] = {}
        self._exports: list[str] = []
        self._functions: list[str] = []
        for name, module in sorted(module_by_name(names).items()):
            __import__(module)
            named = getattr(sys.modules[module], name)
            if hasattr(named, "options") and not inspect.isclass(named):
                self._functions.append(self._function(name, named))
            else:
                self._exports.append(f"from {module} import {name} as {name}")

    def text(self, names: Mapping[str, str]) -> str:
        """Return the text of the stub, formatted."""
        exported = {line.split()[-1] for line in self._exports}
        imports = [line for name, line in self._imports.items() if name not in exported]
        listed = ", ".join(f'"{name}"' for name in sorted(module_by_name(names)))
        lines = [*imports, *self._exports, "__version__: str", f"__all__ = [{listed}]"]
        return _formatted("\n".join([_HEAD, *lines, "", *self._functions]) + "\n")

    def _function(self, name: str, study: Any) -> str:
        """Return the declaration of a study under `takes`."""
        function = inspect.unwrap(study)
        spell = partial(self._spell, module=function.__module__)
        parameters = list(inspect.signature(function).parameters.values())
        place = [parameter.name for parameter in parameters].index("options")
        spelled, is_keyword = [], False
        for parameter in parameters[:place]:
            star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
            if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
                spelled.append("*")
            is_keyword |= bool(star) or parameter.kind is parameter.KEYWORD_ONLY
            default = "" if parameter.default is parameter.empty else _default(parameter.default)
            spelled.append(f"{star}{parameter.name}: {spell(parameter.annotation)}{default}")
        if not is_keyword:
            spelled.append("*")
        spelled += [self._option(field) for field in fields_of(study.options)]
        spelled.append(f"options: {spell(parameters[place].annotation)} = ...")
        returned = spell(inspect.signature(function).return_annotation)
        summary = str(inspect.getdoc(function)).partition("\n\n")[0]
        listing = "".join(f"{one}, " for one in spelled)
        return f'def {name}({listing}) -> {returned}:\n    """{summary}"""\n'

    def _option(self, field: Field) -> str:
        """Return an option as a parameter."""
        converter = next((mark for mark in field.marks if isinstance(mark, Convert)), None)
        annotation = self._taken_by(field, converter) if converter else self._declared(field)
        if field.default is None and not annotation.endswith("None"):
            annotation += " | None"
        return f"{field.name}: {annotation}{_default(field.default)}"

    def _taken_by(self, field: Field, mark: Convert) -> str:
        """Return what the function takes that makes the value of an option."""
        function: Any = mark.function.func if isinstance(mark.function, partial) else mark.function
        signature = inspect.signature(function)
        annotation = next(iter(signature.parameters.values())).annotation
        if annotation in ("Any", "object", inspect.Parameter.empty):
            raise TypeError(f"{function.__qualname__} does not say what `{field.name}` may be")
        return self._spell(annotation, module=function.__module__)

    def _declared(self, field: Field) -> str:
        """Return the type of the field of an option, without marks."""
        module = field.group.__module__
        node = next(
            statement.annotation
            for group in tree_of(module).body
            if isinstance(group, ast.ClassDef) and group.name == field.group.__name__
            for statement in group.body
            if isinstance(statement, ast.AnnAssign) and ast.unparse(statement.target) == field.name
        )
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Annotated":
            assert isinstance(node.slice, ast.Tuple)
            node = node.slice.elts[0]
        else:
            group: Any = field.group
            if get_origin(_hints(group)[field.name]) is Annotated:  # an alias, such as Seed
                return str(field.type.__name__)
        return self._spell(ast.unparse(node), module=module)

    def _spell(self, annotation: str, module: str) -> str:
        """Return an annotation of a module, and import its names."""
        for node in ast.walk(ast.parse(annotation)):
            if isinstance(node, ast.Name) and node.id not in _BUILTINS:
                line = origins(module)[node.id]
                known = self._imports.setdefault(node.id, line)
                if known != line and not _is_same(known, line):
                    raise ValueError(f"{node.id} is not the same in {known!r} and {line!r}")
        return annotation


@cache
def _hints(group: Any) -> dict[str, Any]:
    return get_type_hints(group, include_extras=True)


def _is_same(one: str, other: str) -> bool:
    """Tell whether two imports are of one object."""
    objects: list[dict[str, Any]] = [{}, {}]
    for line, names in zip((one, other), objects, strict=True):
        exec(line, names)
        del names["__builtins__"]
    return objects[0] == objects[1]


def _default(value: object) -> str:
    """Return the default of a parameter, as a stub shows it."""
    is_plain = value is None or isinstance(value, bool | int | float | str)
    return f" = {value!r}" if is_plain else " = ..."


def _formatted(text: str) -> str:
    """Return code as ruff sorts and formats it."""
    for command in (["check", "--fix", "--quiet", "--select", "I"], ["format", "--quiet"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", "stub.pyi", "-"]
        text = subprocess.run(
            ruff, input=text, capture_output=True, text=True, check=True, cwd=ROOT
        ).stdout
    return text


def make_stubs() -> Iterator[tuple[Path, str]]:
    """Yield the file of each stub, and its text."""
    for file, names in STUBS.items():
        yield ROOT / file, Stub(names).text(names)


if __name__ == "__main__":
    for file, text in make_stubs():
        file.write_text(text, encoding="utf-8")
