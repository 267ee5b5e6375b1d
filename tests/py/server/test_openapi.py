"""The OpenAPI documents: valid, complete, true."""

from __future__ import annotations

import copy
import re
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
import quick_yaml
import requests
import yaml

from http_live import Live, live_server
from http_support import JSON, MSGPACK, OPENAPI, document
from jqmaster.server.http.about import document as served
from jqmaster.server.http.routes import ROUTES

METHODS = ("get", "post", "put", "patch", "delete")
# Their answers have one form, and some go on without end.
STREAMS = {"/job/{id}/events", "/export"}
RECORDS = "application/octet-stream"


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
                assert ({"503"} if path in STREAMS else {"406", "503"}) <= known, (path, method)
            if "requestBody" in operation:
                assert {"400", "408", "413", "415"} <= known, (path, method)
                kinds = {RECORDS} if path == "/import" else {MSGPACK, JSON}
                assert set(operation["requestBody"]["content"]) == kinds


# Schemathesis: whatever it makes of the document, the answer is documented and never a 500.


@pytest.fixture(scope="module")
def live(redis_url: str) -> Iterator[Live]:
    with live_server(redis_url, "{t" + secrets.token_hex(6) + "}", max_content_length=1 << 20) as live:
        yield live


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """Keeps its connections, which saves a third of the time."""
    with requests.Session() as session:
        yield session


def flat_document() -> dict[str, Any]:
    """The document with matchers of two levels, the inner ones about names alone: of those without end so
    many cases are made that it takes minutes. Without what answers without end."""
    flat = copy.deepcopy(document())
    del flat["paths"]["/job/{id}/events"]
    outer = flat["components"]["schemas"]["Matcher"]["properties"]
    inner = {
        "type": "object",
        "required": ["name"],
        "additionalProperties": False,
        "properties": {"name": outer["name"]},
    }
    outer["any"]["items"] = outer["not"] = inner
    return flat


@pytest.fixture(scope="module")
def schema() -> Any:
    import schemathesis

    return schemathesis.openapi.from_dict(flat_document())


OPERATIONS = [(method, path) for path, item in flat_document()["paths"].items() for method in METHODS if method in item]


# Not schemathesis' own `parametrize`: it makes the requests of all operations while tests are collected, in each
# process that runs tests, and gives all its tests one name, of which xdist runs one.
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_generated_requests_get_documented_answers(
    method: str, path: str, schema: Any, live: Live, session: requests.Session
) -> None:
    import generated

    generated.ask(schema[path][method.upper()], live, session)
