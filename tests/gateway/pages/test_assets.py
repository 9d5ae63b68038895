"""The scripts of the pages as one: everything that a module needs is there when it runs."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

import pytest

from grid.gateway.pages.assets import asset_contents, join_scripts, styles_source
from grid.gateway.pages.shell import document, with_styles


def test_modules_run_after_what_they_import_and_keep_their_private_names() -> None:
    sources = {
        "first": 'import { b } from "./second.js";\nconst own = 1;\nb(own);\n',
        "second": "// A comment.\nconst own = 2;\nexport function b(x) {\n  return x + own;\n}\n",
        "unused": "throw new Error();\n",
    }
    joined = join_scripts(sources, "first")
    assert joined == (
        "export const $second = {};\nexport const $first = {};\n"
        "(() => {\nconst own = 2;\nfunction b(x) {\n  return x + own;\n}\nObject.assign($second, { b });\n})();\n"
        "(() => {\nconst { b } = $second;\nconst own = 1;\nb(own);\nObject.assign($first, {  });\n})();\n"
    )


def test_modules_that_import_each_other_call_functions_of_the_one_that_runs_later() -> None:
    sources = {
        "a": 'import { b } from "./b.js";\nexport async function a() {\n  b();\n}\n',
        "b": 'import { a } from "./a.js";\nexport function b() {\n  a();\n}\n',
    }
    joined = join_scripts(sources, "a")
    assert "const a = (...all) => $a.a(...all);\nfunction b()" in joined and "const { b } = $b;" in joined


def test_modules_that_are_loaded_later_use_those_that_run_already() -> None:
    sources = {
        "first": 'import { b } from "./second.js";\nb();\nconst late = () => import("./late.js");\n',
        "second": "export function b() {}\n",
        "own": "export class C {}\n",
        "late": 'import { b } from "./second.js";\nimport { C } from "./own.js";\nexport function go() {\n  b(new C());\n}\n',
    }
    assert "$late" not in join_scripts(sources, "first")
    assert join_scripts(sources, "late", after="first") == (
        'import { $second, $first } from "./first.js";\nexport const $own = {};\nexport const $late = {};\n'
        "(() => {\nclass C {}\nObject.assign($own, { C });\n})();\n"
        "(() => {\nconst { b } = $second;\nconst { C } = $own;\nfunction go() {\n  b(new C());\n}\nObject.assign($late, { go });\n})();\n"
        "export const { go } = $late;\n"
    )


@pytest.mark.parametrize(
    "line",
    [
        'import { a as b } from "./b.js";', 'import b from "./b.js";', 'import "./b.js";', "export default 5;",
        "export let x = 1;", "export { x };", 'import {\n  a } from "./b.js";',
    ],
)  # fmt: skip
def test_other_forms_of_import_and_export_are_refused(line: str) -> None:
    with pytest.raises(ValueError, match="is not understood"):
        join_scripts({"a": f"{line}\n", "b": "export const a = 1;\n"}, "a")


def test_value_that_a_module_needs_before_it_is_there_is_refused() -> None:
    sources = {
        "a": 'import { b } from "./b.js";\nexport const a = b;\n',
        "b": 'import { a } from "./a.js";\nexport const b = a;\n',
    }
    with pytest.raises(ValueError, match=r"b\.js needs a of a\.js before that has run"):
        join_scripts(sources, "a")


def test_page_with_its_styles_has_them_last_in_its_head_and_permits_nothing_else() -> None:
    title = "</title><style>a</style>"
    before = document(title, "text")
    after = with_styles(before)

    [inside] = re.findall(r"<style>(.*?)</style></head><body>", after, re.DOTALL)
    assert after.replace(f"<style>{inside}</style>", "") == re.sub('<link rel="stylesheet"[^>]*>', "", before)
    assert inside.encode() == asset_contents()["grid.css"][1] and "</" not in inside and "\r" not in inside
    assert styles_source() == f"'sha256-{b64encode(sha256(inside.encode()).digest()).decode()}'"
