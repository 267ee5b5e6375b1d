"""Annotations, and values that arrive as what they were."""

import dataclasses
import datetime as dt
import enum
import ipaddress
import uuid
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType

import msgspec
import pydantic

UserId = NewType("UserId", uuid.UUID)


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


class Point(NamedTuple):
    x: int
    day: dt.date


@dataclasses.dataclass
class Order:
    id: uuid.UUID
    price: Decimal
    due: dt.date | None = None
    sizes: set[Size] = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class Express(Order):
    by: dt.time = dt.time(8)


class Record(msgspec.Struct, tag=True):
    id: uuid.UUID
    names: frozenset[str] = frozenset()


class Other(msgspec.Struct, tag=True):
    day: dt.date


class Customer(pydantic.BaseModel):
    name: str
    since: dt.date
    orders: list[Order] = []


class Account(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    user_id: int = pydantic.Field(alias="userId")
    other: int = pydantic.Field(0, validation_alias="in", serialization_alias="out")

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.user_id


class Hook(pydantic.BaseModel):
    url: pydantic.HttpUrl
    secret: pydantic.SecretStr
    path: Path
    data: bytes = b"\xff"
    when: dt.datetime = dt.datetime(2030, 1, 2, tzinfo=dt.UTC)
    counts: dict[int, Decimal] = {}
    names: set[str] = set()


ID = uuid.UUID(int=7)
DAY = dt.date(2030, 1, 2)
ORDER = Order(ID, Decimal("9.90"), DAY, {Size.LARGE})
ACME = Customer(name="acme", since=DAY, orders=[ORDER])
HOOK = Hook(
    url="https://example.org/a", secret="s3cret", path="/tmp/x", counts={5: Decimal("1.10")}, names={"a", "b"},
)  # type: ignore[arg-type] # fmt: skip
NOON = dt.datetime(2030, 1, 2, 12, tzinfo=dt.UTC)
NAIVE = dt.datetime(2030, 1, 2, 12)

VALUES: list[tuple[Any, Any]] = [
    # what msgspec makes
    (uuid.UUID, ID), (Decimal, Decimal("0.10")), (dt.date, DAY), (dt.time, dt.time(3, 4)), (UserId, ID),
    (dt.timedelta, dt.timedelta(days=-1, seconds=5)), (dt.datetime, NOON), (dt.datetime | None, NAIVE),
    (bytes, b"\xff"), (Size, Size.SMALL), (Order | None, None), (Order | None, ORDER), (list[Order], [ORDER]),
    (tuple[int, Size], (1, Size.LARGE)), (tuple[dt.date, ...], (DAY, DAY)), (tuple, (1, "a")), (set, {1, "a"}),
    (frozenset[int], frozenset({1, 2})), (Set[int], {1}), (set[frozenset[int]], {frozenset({1}), frozenset({2, 3})}),
    (dict[uuid.UUID, int], {ID: 1}), (dict[dt.date, list[Order]], {DAY: [ORDER]}), (dict[Size, int], {Size.LARGE: 1}),
    (list[Point], [Point(1, DAY)]), (Express, Express(ID, Decimal(1), by=dt.time(9))),
    (Record, Record(ID, frozenset("ab"))), (Record | Other, Other(DAY)), (int | dt.date, DAY), (int | dt.date, 3),
    (Annotated[dt.date, "a day"], DAY), (Annotated[int, msgspec.Meta(ge=3)], 5), (Sequence[Order], [ORDER]),
    (Mapping[str, dt.date], {"a": DAY}), (Path, Path("/a/b")), (Fraction, Fraction(1, 3)),
    (memoryview, memoryview(b"a")), (list[Path | None], [Path("a"), None]),
    (ipaddress.IPv4Address, ipaddress.IPv4Address("127.0.0.1")),
    # what travels as it is
    (int, 5), (dict[str, Any], {"a": [1, None]}), (str | bytes, b"a"), (Any, {"a": 1}), (object, [1]),
    (Literal["a", 1, True, None], True), (Iterable[int], [1, 2]), (dict[int, str], {1: "a"}), (None, None),
    (Iterable[Order], [ORDER]),
    # models of pydantic
    (Customer, ACME), (dict[str, Customer], {"a": ACME}), (list[Customer | None], [ACME, None]),
    (Account, Account.model_validate({"userId": 5, "in": 3})), (Hook, HOOK),
]  # fmt: skip
