"""What breaks a rule and is right so."""

from __future__ import annotations

ALLOWED: dict[tuple[str, str], str] = {
    ("test put aside", "tests/immutable/test_vectors.py"): "the published vectors are not ours to ship, only to name",
    ("test put aside", "tests/interop/conftest.py"): "the peer is a program that only tox -e interop installs",
    ("test put aside", "tests/interop/programs/conftest.py"): "a program that cannot be installed is skipped by name",
    (
        "broad except",
        "src/grid/gateway/http/request.py::GatewayRequest._serve",
    ): "no mistake of ours may reach a client",
    ("broad except", "src/grid/wire/http/client/pool.py::Pool._connect"): "whatever it is, connecting failed",
    ("broad except", "src/grid/wire/single_flight.py::SingleFlight._land"): "nobody is left waiting for it",
    ("broad except", "src/grid/runtime.py::ThreadCpuPool._work"): "what a call raises is for whoever waits for it",
    ("module too short", "src/grid/cli/__main__.py"): "what `python -m grid.cli` runs",
    ("module too short", "src/grid/codec/isal_declarations.py"): "a table for cffi",
    ("module too short", "src/grid/crypto/lanes_declarations.py"): "a table for cffi",
    ("module too short", "src/grid/plural.py"): "every layer uses it and it uses none",
    ("module too short", "src/grid/sinks.py"): "the port's two plain forms, under every layer",
    ("module too short", "src/grid/discovery/plain_yaml.py"): "imported only for what has not the form of JSON",
    ("module too short", "src/grid/discovery/yaml_files.py"): "what it reads of JSON's form does without plain_yaml",
    ("class too wide", "perf/records/record.py::Sample"): "a row of a record: one field for each column",
    ("class too wide", "perf/processes/node_directory.py::NodeSettings"): "one field for each key of the configuration",
    ("class too wide", "src/grid/node/config.py::NodeSettings"): "one field for each key of the configuration",
}
"""(rule, what it names) -> why that is right. What it names: a path from the root, with `::name` for a function."""
