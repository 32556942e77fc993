"""Values in PostgreSQL's types: which type a column has, how values are written, and how parameters are read. Pure."""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from tacit.model.attribute import Attribute
from tacit.model.bands import Bands
from tacit.model.values import Days, Integers, Listed
from tacit.serve.postgres.messages import measured
from tacit.serve.postgres.sqlstate import BAD_VALUE, WireError

BOOL, BYTEA, NAME, INT8, INT2, INT4, TEXT, OID = 16, 17, 19, 20, 21, 23, 25, 26
JSON, FLOAT4, FLOAT8, UNKNOWN, BPCHAR, VARCHAR = 114, 700, 701, 705, 1042, 1043
DATE, TIME, TIMESTAMP, TIMESTAMPTZ, NUMERIC = 1082, 1083, 1114, 1184, 1700
ARRAY_OF = {BOOL: 1000, INT2: 1005, INT4: 1007, TEXT: 1009, INT8: 1016, FLOAT8: 1022, OID: 1028, NAME: 1003}
_FORMS = {BOOL: "!?", INT8: "!q", INT4: "!i", INT2: "!h", OID: "!I", FLOAT8: "!d", FLOAT4: "!f"}  # in `struct`'s words
_ELEMENT = {array: element for element, array in ARRAY_OF.items()}
_EPOCH = dt.date(2000, 1, 1).toordinal()
_EPOCH_TIME = dt.datetime(2000, 1, 1)


class TypeFact(NamedTuple):
    """What the catalogues say about a type."""

    name: str
    size: int
    category: str
    sql: str  # as `format_type` has it


WIRE_TYPES: dict[int, TypeFact] = {
    BOOL: TypeFact("bool", 1, "B", "boolean"),
    BYTEA: TypeFact("bytea", -1, "U", "bytea"),
    NAME: TypeFact("name", 64, "S", "name"),
    INT8: TypeFact("int8", 8, "N", "bigint"),
    INT2: TypeFact("int2", 2, "N", "smallint"),
    INT4: TypeFact("int4", 4, "N", "integer"),
    TEXT: TypeFact("text", -1, "S", "text"),
    OID: TypeFact("oid", 4, "N", "oid"),
    JSON: TypeFact("json", -1, "U", "json"),
    FLOAT4: TypeFact("float4", 4, "N", "real"),
    FLOAT8: TypeFact("float8", 8, "N", "double precision"),
    UNKNOWN: TypeFact("unknown", -2, "X", "unknown"),
    BPCHAR: TypeFact("bpchar", -1, "S", "character"),
    VARCHAR: TypeFact("varchar", -1, "S", "character varying"),
    DATE: TypeFact("date", 4, "D", "date"),
    TIME: TypeFact("time", 8, "D", "time without time zone"),
    TIMESTAMP: TypeFact("timestamp", 8, "D", "timestamp without time zone"),
    TIMESTAMPTZ: TypeFact("timestamptz", 8, "D", "timestamp with time zone"),
    NUMERIC: TypeFact("numeric", -1, "N", "numeric"),
}
NAMED = {fact.name: number for number, fact in WIRE_TYPES.items()} | {
    fact.sql: number for number, fact in WIRE_TYPES.items()
}
NAMED |= {"int": INT4, "double": FLOAT8, "float": FLOAT8, "decimal": NUMERIC, "string": TEXT}


def size_of(type: int) -> int:
    return WIRE_TYPES[type].size if type in WIRE_TYPES else -1


# -- columns ----------------------------------------------------------------------------------------------------------


def declared_type(attribute: Attribute) -> int:
    """The type of the column that an attribute declares: what it is compared with in conditions."""
    return {"integer": INT8, "numeric": FLOAT8, "date": DATE, "boolean": BOOL}.get(attribute.kind) or _listed(attribute)


def group_type(attribute: Attribute) -> int:
    """The type of the column in a result: its own where each group is one value, else text, for bins have names.

    A missing value is NULL. What was declared as `other` is a name, which no other type has room for.
    """
    values = attribute.values
    if attribute.other is not None:
        return TEXT
    if isinstance(values, Listed):
        return _listed(attribute)
    if isinstance(values, Integers) and values.width == 1:
        return INT8
    return DATE if isinstance(values, Days) and values.by == "day" else TEXT


def band_type(bands: Bands) -> int:
    """The type of a column of groups that a statement has made: that of their values where these are their labels."""
    shown = [(value, label) for value, label in zip(bands.values, bands.labels, strict=True) if label != bands.null]
    if any(str(value) != label for value, label in shown):
        return TEXT
    kinds = {type(value) for value, _ in shown}
    if kinds <= {int, float}:
        long = any(abs(value) >= 2**63 for value, _ in shown if isinstance(value, int))
        return FLOAT8 if float in kinds else TEXT if long else INT8
    return DATE if kinds == {dt.date} else TEXT


def _listed(attribute: Attribute) -> int:
    assert isinstance(attribute.values, Listed)
    first = attribute.values.values[0]
    return BOOL if isinstance(first, bool) else INT8 if isinstance(first, int) else TEXT


# -- values that are sent ---------------------------------------------------------------------------------------------


def encoder(type: int, binary: int) -> Callable[[Any], bytes | None]:
    """What writes the values of a type."""
    if type in _ELEMENT:
        write = _binary_array(type) if binary else _array
    else:
        write = (_BINARY if binary else _TEXT).get(type, _text)

    def encode(value: Any) -> bytes | None:
        return None if value is None else write(value)

    return encode


def _text(value: Any) -> bytes:
    return str(value).replace("\0", "").encode("utf-8", "replace")


def _bool_text(value: Any) -> bytes:
    return b"t" if value else b"f"


def _float_text(value: Any) -> bytes:
    """The shortest decimal that is this number, without a point where it is whole, as PostgreSQL has it."""
    number = float(value)
    if math.isnan(number):
        return b"NaN"
    if math.isinf(number):
        return b"Infinity" if number > 0 else b"-Infinity"
    return repr(number).removesuffix(".0").encode()


def _array(value: Any) -> bytes:
    def item(one: Any) -> str:
        if one is None:
            return "NULL"
        if isinstance(one, bool):
            return "t" if one else "f"
        if isinstance(one, list):
            return "{" + ",".join(map(item, one)) + "}"
        words = str(one)
        plain = words and words.upper() != "NULL" and not set(words) & set(' {},"\\\t\n\r\v\f')
        return words if plain else '"' + words.replace("\\", "\\\\").replace('"', '\\"') + '"'

    return ("{" + ",".join(map(item, value)) + "}").encode("utf-8", "replace")


def _binary_array(type: int) -> Callable[[Any], bytes]:
    element = _ELEMENT[type]
    write = encoder(element, 1)

    def encode(value: Any) -> bytes:
        items = list(value)
        if not items:
            return struct.pack("!iiI", 0, 0, element)
        parts = [write(item) for item in items]
        head = struct.pack("!iiIii", 1, any(part is None for part in parts), element, len(items), 1)
        return head + b"".join(map(measured, parts))

    return encode


def _packed(form: str, make: Callable[[Any], Any] = lambda value: value) -> Callable[[Any], bytes]:
    pack = struct.Struct(form).pack
    return lambda value: pack(make(value))


def _microseconds(value: dt.datetime) -> int:
    if value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    return (value - _EPOCH_TIME) // dt.timedelta(microseconds=1)


def _numeric(value: Any) -> bytes:
    """Groups of four decimal digits, the weight of the first, the sign, and how many digits follow the point."""
    number = Decimal(str(value))
    if not number.is_finite():
        sign = 0xC000 if number.is_nan() else 0xD000 if number > 0 else 0xF000
        return struct.pack("!hhHh", 0, 0, sign, 0)
    sign, digits, power = number.as_tuple()
    exponent = int(power)
    scale = max(0, -exponent)
    whole = "".join(map(str, digits)) + "0" * max(0, exponent)
    whole = whole.rjust(scale + 1, "0")
    before, after = whole[: len(whole) - scale], whole[len(whole) - scale :]
    before, after = before.rjust(-(-len(before) // 4) * 4, "0"), after.ljust(-(-len(after) // 4) * 4, "0")
    groups = [int((before + after)[i : i + 4]) for i in range(0, len(before + after), 4)]
    weight = len(before) // 4 - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    return struct.pack(f"!hhHh{len(groups)}h", len(groups), weight if groups else 0, 0x4000 * sign, scale, *groups)


_TEXT: dict[int, Callable[[Any], bytes]] = {BOOL: _bool_text, FLOAT8: _float_text, FLOAT4: _float_text}
_TEXT[DATE] = lambda value: value.isoformat().encode()
_TEXT[TIMESTAMP] = _TEXT[TIMESTAMPTZ] = lambda value: value.isoformat(" ").encode()
_BINARY: dict[int, Callable[[Any], bytes]] = {type: _packed(form) for type, form in _FORMS.items()} | {
    DATE: _packed("!i", lambda value: value.toordinal() - _EPOCH),
    TIMESTAMP: _packed("!q", _microseconds),
    TIMESTAMPTZ: _packed("!q", _microseconds),
    NUMERIC: _numeric,
}


# -- parameters that come ---------------------------------------------------------------------------------------------

WireValue = bool | int | float | Decimal | str | dt.date | dt.datetime | None


def decode(data: bytes | None, type: int, binary: int) -> WireValue:
    """The value of a parameter."""
    if data is None:
        return None
    try:
        if binary and type in _READ_BINARY:
            return _READ_BINARY[type](data)
        if binary and type not in (TEXT, VARCHAR, BPCHAR, NAME, UNKNOWN, 0):
            raise WireError(BAD_VALUE, f"parameters of type {type} are taken as text.")
        return _READ_TEXT.get(type, str)(data.decode())
    except (ValueError, struct.error, InvalidOperation, OverflowError):
        name = WIRE_TYPES[type].sql if type in WIRE_TYPES else "text"
        raise WireError(BAD_VALUE, f"a parameter is no {name}.") from None


def literal(value: WireValue) -> str:
    """The value as it is written in a statement."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float | Decimal):
        if not -(2**63) < value < 2**63:  # a decimal can be too large to be written out
            raise WireError(BAD_VALUE, "a parameter is no number below 2**63.")
        if isinstance(value, int):
            return str(value)
        return str(int(value)) if -(2**53) < value < 2**53 and value == int(value) else repr(float(value))
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None or value.time() != dt.time():
            raise WireError(BAD_VALUE, "a moment within a day is not asked for: columns have whole days.")
        return f"DATE '{value.date().isoformat()}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    if "\0" in value:
        raise WireError(BAD_VALUE, "a text has no zero byte.")
    return "'" + value.replace("'", "''") + "'"


def _read_bool(text: str) -> bool:
    word = text.strip().lower()
    if word in ("t", "true", "on", "yes", "y", "1"):
        return True
    if word in ("f", "false", "off", "no", "n", "0"):
        return False
    raise ValueError


def _read_numeric(data: bytes) -> Decimal:
    count, weight, sign, _ = struct.unpack_from("!hhHh", data)
    groups: tuple[int, ...] = struct.unpack_from(f"!{count}h", data, 8)
    if len(data) != 8 + 2 * count or sign not in (0, 0x4000) or not all(0 <= group < 10_000 for group in groups):
        raise ValueError
    if abs(weight) > 100 or count > 100:
        raise ValueError
    number = sum((Decimal(group).scaleb(4 * (weight - i)) for i, group in enumerate(groups)), Decimal(0))
    return -number if sign else number


def _unpacked(form: str, make: Callable[[Any], WireValue] = lambda value: value) -> Callable[[bytes], WireValue]:
    unpack = struct.Struct(form).unpack
    return lambda data: make(unpack(data)[0])


def _moment(microseconds: int) -> dt.datetime:
    return _EPOCH_TIME + dt.timedelta(microseconds=microseconds)


def _decimal(text: str) -> Decimal:
    found = Decimal(text.strip())
    if not found.is_finite():
        raise ValueError
    return found


def _day(text: str) -> dt.date:
    return dt.date.fromisoformat(text.strip())


_READ_BINARY: dict[int, Callable[[bytes], WireValue]] = {type: _unpacked(form) for type, form in _FORMS.items()} | {
    DATE: _unpacked("!i", lambda days: dt.date.fromordinal(_EPOCH + days)),
    TIMESTAMP: _unpacked("!q", _moment),
    TIMESTAMPTZ: _unpacked("!q", _moment),
    NUMERIC: _read_numeric,
}
_READ_TEXT: dict[int, Callable[[str], WireValue]] = dict.fromkeys((INT8, INT4, INT2, OID), int) | {
    BOOL: _read_bool,
    FLOAT8: float,
    FLOAT4: float,
    NUMERIC: _decimal,
    DATE: _day,
    TIMESTAMP: dt.datetime.fromisoformat,
    TIMESTAMPTZ: dt.datetime.fromisoformat,
}
