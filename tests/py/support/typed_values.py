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
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar

import msgspec
import pydantic

T = TypeVar("T")
UserId = NewType("UserId", uuid.UUID)


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


class Kind(enum.Enum):
    A = "a"
    TWO = 2
    OTHER = None
    RAW = b"\xff"


class Rank(enum.IntEnum):
    FIRST = 1


class Way(enum.StrEnum):
    NORTH = "n"


class Point(NamedTuple):
    x: int
    day: dt.date


class Row(TypedDict):
    day: dt.date
    id: NotRequired[uuid.UUID]


@dataclasses.dataclass
class Order:
    id: uuid.UUID
    price: Decimal
    due: dt.date | None = None
    sizes: set[Size] = dataclasses.field(default_factory=set)


@dataclasses.dataclass
class Express(Order):
    by: dt.time = dt.time(8)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    order: Order
    kinds: tuple[Size, ...] = ()
    when: dt.datetime | None = None
    made: int = dataclasses.field(init=False, default=7)


@dataclasses.dataclass
class Tree:
    value: dt.date
    parts: list["Tree"] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Box(Generic[T]):
    content: T


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


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True, frozen=True)
    day: dt.date
    kind: Kind
    pair: tuple[int, uuid.UUID]


class Cat(pydantic.BaseModel):
    type: Literal["cat"] = "cat"
    lives: int = 9


class Dog(pydantic.BaseModel):
    type: Literal["dog"] = "dog"
    good: bool = True


class Zoo(pydantic.BaseModel):
    animals: list[Annotated[Cat | Dog, pydantic.Field(discriminator="type")]]


class Tags(pydantic.RootModel[list[str]]):
    pass


class Page(pydantic.BaseModel, Generic[T]):
    items: list[T]


@dataclasses.dataclass
class Mixed:
    """A plain one with a model in it."""

    customer: Customer
    at: ipaddress.IPv4Address


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
    (dt.timedelta, dt.timedelta(days=-1, seconds=5)), (dt.datetime, NOON), (dt.datetime, NAIVE),
    (dt.datetime | None, NAIVE), (bytes, b"\xff"),
    (bytearray, bytearray(b"\xff")), (Size, Size.SMALL), (Rank, Rank.FIRST), (Way, Way.NORTH), (Order, ORDER),
    (Order | None, None), (Order | None, ORDER), (list[Order], [ORDER]),
    (tuple[int, Size], (1, Size.LARGE)), (tuple[dt.date, ...], (DAY, DAY)), (tuple, (1, "a")), (set, {1, "a"}),
    (set[str], {"a", "b"}), (frozenset[int], frozenset({1, 2})), (set[uuid.UUID], {ID}), (Set[int], {1}),
    (set[frozenset[int]], {frozenset({1}), frozenset({2, 3})}), (dict[uuid.UUID, int], {ID: 1}),
    (dict[dt.date, list[Order]], {DAY: [ORDER]}), (dict[int, dt.date], {5: DAY}), (dict[Size, int], {Size.LARGE: 1}),
    (Point, Point(1, DAY)), (list[Point], [Point(1, DAY)]), (Row, {"day": DAY}), (Row, {"day": DAY, "id": ID}),
    (Frozen, Frozen(order=ORDER, kinds=(Size.SMALL,), when=NAIVE)), (Express, Express(ID, Decimal(1), by=dt.time(9))),
    (Tree, Tree(DAY, [Tree(DAY)])), (Box[uuid.UUID], Box(ID)), (Record, Record(ID, frozenset("ab"))),
    (Record | Other, Other(DAY)), (int | dt.date, DAY), (int | dt.date, 3), (Annotated[dt.date, "a day"], DAY),
    (Annotated[int, msgspec.Meta(ge=3)], 5), (Sequence[Order], [ORDER]), (Mapping[str, dt.date], {"a": DAY}),
    (dict[str, dict[str, set[dt.date]]], {"a": {"b": {DAY}}}), (Path, Path("/a/b")),
    (Fraction, Fraction(1, 3)), (memoryview, memoryview(b"a")),
    (list[Path | None], [Path("a"), None]),
    (ipaddress.IPv4Address, ipaddress.IPv4Address("127.0.0.1")),
    # what travels as it is
    (int, 5), (float, 1.5), (list[int], [1]), (dict[str, Any], {"a": [1, None]}), (str | bytes, b"a"), (Any, {"a": 1}),
    (object, [1]), (Literal["a", 1, True, None], True), (Iterable[int], [1, 2]), (dict[int, str], {1: "a"}),
    (None, None),
    (Iterable[Order], [ORDER]),
    # models of pydantic
    (Customer, ACME), (dict[str, Customer], {"a": ACME}), (Customer | None, None), (Customer | None, ACME),
    (list[Customer | None], [ACME, None]), (Account, Account.model_validate({"userId": 5, "in": 3})), (Hook, HOOK),
    (Strict, Strict(day=DAY, kind=Kind.A, pair=(1, ID))), (Zoo, Zoo(animals=[Cat(), Dog(good=False)])),
    (Tags, Tags(["a"])), (Page[Customer], Page[Customer](items=[ACME])), (Page[dt.date], Page[dt.date](items=[DAY])),
    (Mixed, Mixed(ACME, ipaddress.IPv4Address("127.0.0.1"))),
]  # fmt: skip
