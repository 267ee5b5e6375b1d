"""Makes openapi/master.yaml: the requests of all heads, around the documents of openapi/schemas.yaml."""

from __future__ import annotations

import copy
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import quick_yaml
import yaml
from vocabulary import PLAIN

from jqmaster.manifest.contract import ANYBODY, CONDITIONS, SERVER, Argument, Operation, Reply, Route, Type, type_of
from jqmaster.manifest.manifest import operations
from jqmaster.server.http.calls import in_query
from jqmaster.server.http.routes import OWN
from jqmaster.server.http_error import STATUS
from jqmaster.server.message import JSON, MSGPACK

FOLDER = Path(__file__).resolve().parents[1] / "openapi"
SCHEMAS, DOCUMENT = FOLDER / "schemas.yaml", FOLDER / "master.yaml"
HAND = quick_yaml.read(SCHEMAS.read_text())
EXAMPLES: Mapping[str, Any] = HAND["components"]["examples"]
Schema = dict[str, Any]

MEDIA = {"yaml": ["application/yaml"], "metrics": ["text/plain; version=0.0.4; charset=utf-8"]}
TRACED = ("enqueue", "enqueue_one", "finish")
FAILURES = {
    400: ("Invalid", "The request is wrong; `field` names what.", "INVALID"),
    401: ("Unauthorized", "A key is asked for, and there is none, or one that is not good.", "UNAUTHORIZED"),
    403: ("Forbidden", "The key may not do this; or a page of another site asks.", "FORBIDDEN"),
    404: ("NotFound", "There is nothing of this name or id.", "NOTFOUND"),
    408: ("Slow", "The time is up: of the body, or of what was waited for.", "TIMEOUT"),
    409: ("Conflict", "Its state does not allow it.", "CONFLICT"),
    410: ("Gone", "It was there, and is not kept any more.", "EXPIRED"),
    413: ("TooLarge", "The body is larger than the server takes.", "TOOLARGE"),
    415: ("Unsupported", "The body is of a type that the server does not read.", "UNSUPPORTED"),
    429: ("TooMany", "A bound is reached: try again later (`Retry-After`).", "FULL"),
    500: ("Internal", "A fault of the server. Never the answer to a bad request.", "INTERNAL"),
    503: ("Unavailable", "The server or its Redis cannot serve now; another, or a moment later, may.", "UNAVAILABLE"),
}  # fmt: skip
TAGS = {
    "viewer": "Reading: jobs, queues, limits, schedules, workers, statistics and settings.",
    "pusher": "Enqueueing, and what became of the jobs.",
    "worker": "Work: taking jobs, and saying what became of them.",
    "operator": "Acting on what is there: queues, limits, schedules, webhooks, jobs that wait or failed.",
    "admin": "Settings, keys and exports.",
    ANYBODY: "What takes no key.",
    "calls": "Every operation as it is, with the script's own arguments.",
}
"""Each operation has the role that it takes as its tag."""


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


# -- schemas --------------------------------------------------------------------------------------


def schema(of: Type, least: float | None = None, most: float | None = None) -> Schema:
    """Of a type, with the range of an argument."""
    inner = of.of or of
    match of.kind:
        case "document":
            return ref(of.name)
        case "choice":
            return {"type": "string", "enum": list(of.words)}
        case "list" | "page":
            entry = {"oneOf": [schema(inner), {"type": "null"}]} if inner.optional else schema(inner)
            made: Schema = {"type": "array", "items": entry} | ends(least, most, "Items")
            made |= {"uniqueItems": True} if of.distinct else {}
            return {"oneOf": [schema(inner), made]} if inner.name == "queue" else made  # one will do
        case "map":
            return {"type": "object", "additionalProperties": schema(inner)} | ends(least, most, "Properties")
        case "members":
            return members({name: schema(member) for name, member in of.members})
    if of.name == "states":
        return {"type": "array", "items": {"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}}
    made = dict(PLAIN[of.name].schema) if of.name in PLAIN else {}
    sizes = {"integer": "imum", "number": "imum"}.get(made.get("type", ""), "Length")
    return made | (ends(least, most, sizes) if made else {})


def ends(least: float | None, most: float | None, what: str) -> Schema:
    return {name: value for name, value in ((f"min{what}", least), (f"max{what}", most)) if value is not None}


def members(properties: Mapping[str, Schema], required: Iterable[str] | None = None) -> Schema:
    names = list(properties) if required is None else list(required)
    return {
        "type": "object", **({"required": names} if names else {}), "additionalProperties": False,
        "properties": dict(properties),
    }  # fmt: skip


def of_argument(one: Argument, *, in_query: bool = False) -> Schema:
    if in_query and (one.type == "Matcher" or one.name == "status"):
        made: Schema = {"type": "string"}
    else:
        made = schema(one.of, one.least, one.most)
    is_said = one.default not in (None, "nil") and "$ref" not in made
    default = {"default": one.default} if is_said else {}
    meaning = one.meaning.removesuffix("; or")
    return made | default | ({"description": sentence(meaning)} if meaning else {})


def sentence(text: str) -> str:
    return text[0].upper() + text[1:].rstrip(".") + "."


# -- examples -------------------------------------------------------------------------------------


def example(of: Type) -> Any:
    """A value that is right."""
    match of.kind:
        case "document":
            return sample(ref(of.name))
        case "choice":
            return of.words[0]
        case "list" | "page":
            return [example(of.of or of)]
        case "map":
            return {"a": example(of.of or of)}
        case "members":
            return {name: example(member) for name, member in of.members}
    if of.name == "states":
        return ["queued", "NOTFOUND"]
    return PLAIN[of.name].example if of.name in PLAIN else None


def sample(made: Schema) -> Any:
    """A value of a schema by hand, for what has no example there."""
    if "$ref" in made:
        found: Any = HAND
        for part in made["$ref"].removeprefix("#/").split("/"):
            if part not in found:
                raise SystemExit(f"openapi/schemas.yaml has no {part}, which a head names")
            found = found[part]
        name = made["$ref"].rpartition("/")[2]
        return EXAMPLES[name] if name in EXAMPLES else sample(found)
    if several := made.get("oneOf", made.get("anyOf")):
        return sample(several[0])
    if "allOf" in made:
        return {name: value for one in made["allOf"] for name, value in sample(one).items()}
    for known in ("example", "default", "const"):
        if known in made:
            return made[known]
    if "enum" in made:
        return made["enum"][0]
    kind = made.get("type", "string")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            return {name: sample(made["properties"][name]) for name in made.get("required", [])}
        case "array":
            return [sample(made["items"])] * max(1, made.get("minItems", 0)) if "items" in made else []
        case "integer" | "number":
            return made.get("minimum", 1)
        case "boolean":
            return False
    return "0664a3b1c05c00" if "pattern" in made else "a"


# -- operations -----------------------------------------------------------------------------------


def content(made: Schema, value: Any = None, media: Iterable[str] = (MSGPACK, JSON)) -> dict[str, Any]:
    one = {"schema": made} | ({} if value is None else {"example": copy.deepcopy(value)})
    return {"content": dict.fromkeys(media, one)}


def parameters(operation: Operation, route: Route) -> Iterator[dict[str, Any]]:
    if route.place:
        one = operation.named[route.place]
        made = {"name": route.place, "in": "path", "required": True, "schema": schema(one.of)}
        yield made | {"example": example(one.of)}
    queried, asked = operation.stand(route)
    for name, one, outer in in_query(queried):
        meaning = CONDITIONS[name][1] if outer else one.meaning
        yield _parameter(replace(one, meaning=meaning), required=not (outer or one.optional))
    if any(one.name == "body" for one in asked):
        asked = list(operation.arguments)
    for one in asked:
        if one.header:
            yield _header(one.header, one.meaning or f"instead of `{one.name}` in the body")
    if operation.name in TRACED:
        yield _header("traceparent", "W3C Trace Context, with `tracestate`: carried to the worker")
        yield _header("tracestate", "see `traceparent`")


def _header(name: str, meaning: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": sentence(meaning), "schema": {"type": "string"}}


def _parameter(one: Argument, *, required: bool = False) -> dict[str, Any]:
    made = of_argument(one, in_query=True)
    description = made.pop("description", "")
    return {
        "name": one.name, "in": "query", **({"required": True} if required else {}),
        **({"description": description} if description else {}), "schema": made,
        **({"allowEmptyValue": True} if one.type == "flag" else {}),
    }  # fmt: skip


def body(operation: Operation, route: Route) -> dict[str, Any] | None:
    _, asked = operation.stand(route)
    if not asked:
        return None
    whole = next((one for one in asked if one.name == "body"), None)
    if whole is not None:
        return {"required": True, **content(schema(whole.of), example(whole.of))}
    required = [one for one in asked if not one.optional and not one.header]
    properties = members({one.name: of_argument(one) for one in asked}, [one.name for one in required])
    shown = {one.name: example(one.of) for one in required or asked[:1]}
    return {**({"required": True} if required else {}), **content(properties, shown)}


def answer(operation: Operation) -> tuple[Schema | None, Any]:
    """The schema of a success, and an example; None where there is no body."""
    made, shown = zip(*(_of_reply(operation, one) for one in operation.replies), strict=True)
    return made[0] if len(made) == 1 else {"oneOf": list(made)}, shown[0]


def _of_reply(operation: Operation, told: Reply) -> tuple[Schema | None, Any]:
    of = told.of
    match of.name:
        case "nothing":
            return None, None
        case "states":
            return members({told.name: schema(of)}), {told.name: ["queued", "NOTFOUND"]}
        case "enqueued":
            of = type_of("{job_ids: list<job>, created: list<flag>}")
        case "picked" | "finished":
            of = type_of(of.name.capitalize())
        case "yaml" | "metrics" | "result":
            return {}, None
    if of.kind not in ("list", "page"):
        return schema(of), example(of)
    found, shown = {told.name: schema(of)}, {told.name: example(of)}
    if of.kind == "page":
        found["cursor"] = {"type": "string", "description": "Where to go on; empty at the end."}
        shown["cursor"] = ""
    if any(one.name == "looked" for one in operation.arguments):
        found["looked"] = {"type": "integer", "minimum": 0, "description": "How many jobs were looked at."}
    return members(found, shown), shown


def statuses(operation: Operation, route: Route) -> set[int]:
    """All errors that a request may meet."""
    found = {500, *(STATUS[error.code] for error in operation.errors)}
    kind = operation.replies[0].type
    if kind == "yaml":
        return {400, 500}
    found |= {400, 503}
    if operation.roles != (ANYBODY,):
        found |= {401, 403, 429}
    if route.path.startswith("/job/{"):
        found |= {404, 409}
    if body(operation, route):
        found |= {408, 413, 415}
    return found | ({404} if operation.name == "enqueue" else set())


def outcome(operation: Operation, status: int) -> str:
    """What a success means."""
    told = operation.replies[0]
    if status in (201, 204):
        return "Enqueued." if status == 201 else "Done."
    if told.meaning and not told.meaning.startswith("with"):
        return sentence(told.meaning)
    return "A state for each, in order." if told.of.name == "states" else "What there is."


def described(operation: Operation, route: Route) -> dict[str, Any]:
    """An operation as an OpenAPI document has it."""
    made: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.roles[0]],
        "summary": operation.summary.rstrip("."),
        **({"description": operation.description} if operation.description else {}),
    }
    if found := list(parameters(operation, route)):
        made["parameters"] = found
    if asked := body(operation, route):
        made["requestBody"] = asked
    good, value = answer(operation)
    responses: dict[str, Any] = {}
    for status in (201, 200) if operation.name == "enqueue_one" else (204,) if good is None else (200,):
        responses[str(status)] = {"description": outcome(operation, status)}
        if status != 204 and good is not None:
            responses[str(status)] |= content(good, value, MEDIA.get(operation.replies[0].type, (MSGPACK, JSON)))
    for status in sorted(statuses(operation, route)):
        responses[str(status)] = {"$ref": f"#/components/responses/{FAILURES[status][0]}"}
    made["responses"] = responses
    if operation.roles == (ANYBODY,):
        made["security"] = []
    return made


def call() -> dict[str, Any]:
    """`POST /call/{operation}`, which stands for many."""
    names = [name for name, one in operations().items() if one.roles != (SERVER,)]
    every = (400, 401, 403, 404, 408, 409, 410, 413, 415, 429, 500, 503)
    argument = {"oneOf": [{"type": "string"}, {"type": "object", "required": ["$bin"], "properties": {"$bin": {}}}]}
    return {
        "operationId": "call",
        "tags": ["calls"],
        "summary": "Run any operation with the script's own arguments",
        "description": "The body is the list of what stands behind the keys in `EVALSHA` (docs/operations.md): specs "
        "and values as binary data, in JSON as `{\"$bin\": base64}`. The answer is the script's own reply. Each needs "
        "the role that docs/operations.md names.",
        "parameters": [
            {"name": "operation", "in": "path", "required": True, "schema": {"type": "string", "enum": names}},
            _parameter(Argument(name="timeout", type="seconds", least=0, most=300, meaning="of pick: waits so long")),
        ],
        "requestBody": {"required": True, **content({"type": "array", "items": argument}, ["0664a3b1c05c00"])},
        "responses": {
            "200": {"description": "The script's reply.", **content({})},
            **{str(status): {"$ref": f"#/components/responses/{FAILURES[status][0]}"} for status in every},
        },
    }  # fmt: skip


def failures() -> dict[str, Any]:
    found = {}
    for name, meaning, code in FAILURES.values():
        error: dict[str, Any] = {"code": code, "message": "why"}
        found[name] = {"description": meaning, **content(ref("Error"), {"error": error})}
    return found


def document() -> dict[str, Any]:
    """All of it."""
    paths: dict[str, Any] = {}
    for operation in (*operations().values(), *(one.operation for one in OWN)):
        for route in operation.routes:
            paths.setdefault(route.path, {})[route.method.lower()] = described(operation, route)
    paths["/call/{operation}"] = {"post": call()}
    hand = dict(HAND["components"]["schemas"])
    made = {
        **{name: HAND[name] for name in ("openapi", "info")},
        "servers": [{"url": "http://localhost:8000", "description": "`jqmaster serve`"}],
        "security": [{}, {"key": []}],
        "tags": [{"name": name, "description": meaning} for name, meaning in TAGS.items()],
        "paths": paths,
        "components": {
            "securitySchemes": HAND["components"]["securitySchemes"], "responses": failures(), "schemas": hand
        },
    }  # fmt: skip
    needed = used(made, hand)
    made["components"]["schemas"] = {name: of for name, of in hand.items() if name in needed}
    return made


def used(made: Any, hand: Mapping[str, Any]) -> set[str]:
    """The documents that something refers to."""
    found: set[str] = set()
    new = referred([made["paths"], made["components"]["responses"]])
    while new:
        found |= new
        new = referred([hand[name] for name in new]) - found
    return found


def referred(node: Any) -> set[str]:
    return set(re.findall(r"#/components/schemas/(\w+)", json.dumps(node)))


class Dumper(yaml.SafeDumper):
    """Long text as it is; a part that stands twice under a name that hardly depends on what is before it."""

    def generate_anchor(self, node: Any) -> str:
        self.named: Counter[str] = getattr(self, "named", Counter())
        name = f"a{zlib.crc32(str(node).encode()):08x}"
        self.named[name] += 1
        return f"{name}-{self.named[name]}"


Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def written() -> str:
    head = "# Generated by `make generate` from the heads of scripts/*.lua and openapi/schemas.yaml.\n"
    return head + yaml.dump(
        document(), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=118, default_flow_style=None
    )
