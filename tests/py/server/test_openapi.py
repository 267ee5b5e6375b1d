"""The OpenAPI documents: valid, complete, true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import quick_yaml
import yaml

from http_support import JSON, MSGPACK, OPENAPI, document
from jqmaster.server.http.handlers import document as served
from jqmaster.server.http.routes import ROUTES

METHODS = ("get", "post", "put", "patch", "delete")
# Their answers have one form, and some go on without end.


@pytest.mark.parametrize("name", ["master", "worker"])
def test_the_document_is_valid(name: str) -> None:
    from openapi_spec_validator import validate  # takes long to import

    validate(document(name))


@pytest.mark.parametrize("name", ["master", "worker"])
def test_keys_are_text_and_stand_once(name: str) -> None:
    """Of two entries with one key YAML takes the last, silently; `on` and `no` are no text unless they are quoted."""
    wrong: list[str] = []

    def look(node: Any) -> None:
        if isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value]
            odd = {key for key in keys if keys.count(key) > 1}
            odd |= {key.value for key, _ in node.value if not key.tag.endswith((":str", ":merge"))}
            wrong.extend(f"{key} in line {node.start_mark.line + 1}" for key in odd)
        if isinstance(node, yaml.CollectionNode):
            for child in node.value:
                for one in child if isinstance(child, tuple) else (child,):
                    look(one)

    look(yaml.compose((OPENAPI / f"{name}.yaml").read_text(), Loader=quick_yaml.LOADER))
    assert not wrong


def keys_without_value(node: Any, path: str = "") -> Iterator[str]:
    """What a comma in an unquoted description makes of the rest of it."""
    if isinstance(node, dict):
        for key, value in node.items():
            if value is None:
                yield f"{path}/{key}"
            elif key not in ("example", "examples"):
                yield from keys_without_value(value, f"{path}/{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from keys_without_value(value, f"{path}/{index}")


def test_every_route_is_documented_and_nothing_else() -> None:
    described = {(m.upper(), path) for path, item in document()["paths"].items() for m in METHODS if m in item}
    paths = {(route.method, re.sub(r"^/call/.*", "/call/{operation}", route.path)) for route in ROUTES}
    assert described == paths


def test_the_served_documents_are_these() -> None:
    for name in ("master", "worker"):
        assert quick_yaml.read(served(f"{name}.yaml")) == document(name)


def test_every_operation_says_how_it_fails() -> None:
    for path, item in document()["paths"].items():
        for method, operation in ((m, item[m]) for m in METHODS if m in item):
            known = set(operation["responses"])
            assert "500" in known, (path, method)
            if not path.endswith((".yaml", "/metrics")):
                assert "503" in known, (path, method)
            if "requestBody" in operation:
                assert {"400", "408", "413", "415"} <= known, (path, method)
                assert set(operation["requestBody"]["content"]) == {MSGPACK, JSON}
