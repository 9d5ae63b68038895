"""Styles, pictures and scripts of the pages, and their addresses. Pure. (decision 348)

The address changes with the contents, so browsers may cache them without revalidation. The scripts are joined into one,
so that a browser sends one request instead of twenty. Only what a module loads by `import("./name.js")` is joined into a script of
its own, with what it alone needs. Each module becomes a function of its own, so private names may repeat. What a module imports from one that runs later,
which happens when two modules import each other, is called through a function and must be one itself.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files

_IMPORT = re.compile(r'^import \{ (\w+(?:, \w+)*) \} from "\./(\w+)\.js";\n', re.MULTILINE)
_LATE = re.compile(r'\bimport\("\./(\w+)\.js"\)')
_EXPORT = re.compile(r"^export ((?:async )?function|class|const) (\w+)", re.MULTILINE)
_LEFT = re.compile(r"^\s*(?:import|export)\b.*$", re.MULTILINE)
_COMMENT = re.compile(r"^\s*//.*\n", re.MULTILINE)

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}


@cache
def asset_contents() -> Mapping[str, tuple[str, bytes]]:
    """Types and bytes of the assets by name. The scripts are one asset, `app.js`, and one for each that it loads later."""
    found, scripts = {}, {}
    for entry in files("grid.gateway").joinpath("assets").iterdir():
        stem, _, ending = entry.name.rpartition(".")
        if ending == "js":
            scripts[stem] = entry.read_text(encoding="utf-8")
        elif f".{ending}" in _TYPES:
            found[entry.name] = (_TYPES[f".{ending}"], entry.read_bytes())
    joined = {"app.js": join_scripts(scripts, "app")}
    for name in {name for text in scripts.values() for name in _LATE.findall(text)}:
        joined[f"{name}.js"] = join_scripts(scripts, name, after="app")
    return {**found, **{name: (_TYPES[".js"], text.encode("utf-8")) for name, text in joined.items()}}


@cache
def assets_version() -> str:
    """A hash of all assets."""
    digest = sha256()
    for name, (_, data) in sorted(asset_contents().items()):
        digest.update(f"{name} {len(data)}\n".encode() + data)
    return digest.hexdigest()[:16]


def assets_address() -> str:
    """The path below which all assets of this version are, and nothing else."""
    return f"/assets/{assets_version()}/"


def asset_path(name: str) -> str:
    """The path of one asset."""
    return f"{assets_address()}{name}"


@cache
def styles() -> str:
    """The style sheet, for pages that contain it."""
    return asset_contents()["grid.css"][1].decode("utf-8")


@cache
def styles_source() -> str:
    """What a content security policy says to permit the style sheet, and no other, inside a page."""
    return f"'sha256-{b64encode(sha256(styles().encode('utf-8')).digest()).decode('ascii')}'"


def join_scripts(sources: Mapping[str, str], first: str, after: str | None = None) -> str:
    """One script that runs module `first` and everything that it imports. sources: by name, without `.js`.

    after: the first module of a joined script that is running already, whose modules are used and not run again.
    ValueError for a form of import or export that is not known here.
    """
    there: list[str] = []
    if after is not None:
        _visit(sources, after, there, set())
    order = list(there)
    _visit(sources, first, order, set(there))
    run = order[len(there) :]
    begin = f'import {{ {", ".join(f"${name}" for name in there)} }} from "./{after}.js";\n' if there else ""
    begin += "".join(f"export const ${name} = {{}};\n" for name in run)
    names = ", ".join(exported for _, exported in _EXPORT.findall(sources[first]))
    end = f"export const {{ {names} }} = ${first};\n" if there else ""
    return begin + "".join(_module(sources, name, order) for name in run) + end


def _visit(sources: Mapping[str, str], name: str, order: list[str], seen: set[str]) -> None:
    """Append a module after all that it imports, as far as they do not import it."""
    seen.add(name)
    for _, other in _IMPORT.findall(sources[name]):
        if other not in seen:
            _visit(sources, other, order, seen)
    order.append(name)


def _module(sources: Mapping[str, str], name: str, order: list[str]) -> str:
    imports = []
    for names, other in _IMPORT.findall(sources[name]):
        if order.index(other) < order.index(name):
            imports.append(f"const {{ {names} }} = ${other};\n")
            continue
        kinds = {exported: kind for kind, exported in _EXPORT.findall(sources[other])}
        for wanted in names.split(", "):
            if not kinds.get(wanted, "").endswith("function"):
                raise ValueError(f"{name}.js needs {wanted} of {other}.js before that has run")
            imports.append(f"const {wanted} = (...all) => ${other}.{wanted}(...all);\n")
    body = _COMMENT.sub("", _EXPORT.sub(r"\1 \2", _IMPORT.sub("", sources[name])))
    if left := _LEFT.search(body):
        raise ValueError(f"{name}.js: {left[0].strip()} is not understood")
    exports = ", ".join(exported for _, exported in _EXPORT.findall(sources[name]))
    return f"(() => {{\n{''.join(imports)}{body}Object.assign(${name}, {{ {exports} }});\n}})();\n"
