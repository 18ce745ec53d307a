"""What expressions mean, in plain Python, one row at a time.

`evaluate` follows the words of `discreet.sql`: whole numbers of 64 bits, doubles, decimals as Fractions of at most 38
digits, three-valued logic, code points, years 1 to 9999. It shares no code with the renderers.
"""

import datetime
import math
import re
import unicodedata
from fractions import Fraction
from typing import Any

from discreet.sql.decimals import Decimals
from discreet.sql.plan import Call, Expression, Literal, Ref

LONG = range(-(2**63), 2**63)
LONGEST_TEXT = 100_000
MOST_TRIES = 10_000_000
SHORTENING = ("lower", "upper", "trim", "ltrim", "rtrim", "skip", "split_part")
WHOLE = re.compile(r" *[+-]?\d+ *", re.ASCII)
NUMBER = re.compile(r" *[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})? *", re.ASCII)
MOMENT = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?", re.ASCII)


def evaluate(expression: Expression, row: dict[str, Any]) -> Any:
    """The value the expression ends with."""
    value = inner(expression, row)
    return settled(value) if isinstance(value, float) else value


def settled(value: float) -> float | None:
    return value + 0.0 if math.isfinite(value) else None


def inner(expression: Expression, row: dict[str, Any]) -> Any:
    """The value inside a larger expression, where a real may be ±∞ or NaN."""
    if isinstance(expression, Ref):
        return row[expression.name]
    if isinstance(expression, Literal):
        exact = isinstance(expression.type, Decimals)
        return float(expression.value) if isinstance(expression.value, Fraction) and not exact else expression.value
    arguments = [inner(argument, row) for argument in expression.arguments]
    if expression.function in LENIENT:
        return LENIENT[expression.function](arguments)
    if None in arguments:
        return None
    if expression.function == "cast":
        return cast(arguments[0], expression.arguments[0].type, expression.type)
    if expression.function == "power":
        return power(*arguments, is_whole=is_whole(expression.arguments[1]))
    longer = expression.function == "concat" or (expression.function == "replace" and stretch(*arguments[1:]) > 1)
    if longer and extent(expression, row) > LONGEST_TEXT:
        return None
    value = STRICT[expression.function](*arguments)
    if isinstance(expression.type, Decimals):
        return value if value is not None and abs(value) * 10**expression.type.scale < 10**38 else None
    return None if expression.type == "integer" and value is not None and value not in LONG else value


def extent(expression: Expression, row: dict[str, Any]) -> int:
    """How many characters a text could have, judged by those of the texts that || and REPLACE make it of."""
    name = expression.function if isinstance(expression, Call) else None
    if isinstance(expression, Call) and name == "concat":
        return sum(extent(argument, row) for argument in expression.arguments)
    if isinstance(expression, Call) and name == "replace":
        text, found, put = expression.arguments
        return extent(text, row) * stretch(inner(found, row), inner(put, row))
    if isinstance(expression, Call) and name in SHORTENING:
        return extent(expression.arguments[0], row)
    return len(inner(expression, row))


def stretch(found: str, put: str) -> int:
    """How many times longer REPLACE makes a text at most."""
    return max(1, math.ceil(Fraction(len(put), len(found))))


def is_whole(exponent: Expression) -> bool:
    """Whether the exponent is a whole number by its type, or written as one."""
    if isinstance(exponent, Literal):
        return isinstance(exponent.value, Fraction) and exponent.value.denominator == 1
    return isinstance(exponent, Call) and exponent.function == "cast" and exponent.arguments[0].type == "integer"


def order(value: Any) -> Any:
    """A key by which NaN is above everything."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


def both(arguments: list[Any]) -> bool | None:
    return False if False in arguments else (None if None in arguments else True)


def either(arguments: list[Any]) -> bool | None:
    return True if True in arguments else (None if None in arguments else False)


def inside(arguments: list[Any]) -> bool | None:
    value, *choices = arguments
    return either([None if None in (value, choice) else order(value) == order(choice) for choice in choices])


def between(arguments: list[Any]) -> bool | None:
    value, low, high = arguments
    return both(
        [
            None if None in (value, low) else order(value) >= order(low),
            None if None in (value, high) else order(value) <= order(high),
        ]
    )


def case(arguments: list[Any]) -> Any:
    for condition, value in zip(arguments[:-1:2], arguments[1::2], strict=True):
        if condition is True:
            return value
    return arguments[-1]


def first(arguments: list[Any]) -> Any:
    return next((value for value in arguments if value is not None), None)


def null_if(arguments: list[Any]) -> Any:
    value, other = arguments
    return None if None not in (value, other) and order(value) == order(other) else value


def extreme(choose: Any) -> Any:
    def among(arguments: list[Any]) -> Any:
        known = [value for value in arguments if value is not None]
        return choose(known, key=order) if known else None

    return among


LENIENT = {
    "and": both,
    "or": either,
    "in": inside,
    "between": between,
    "case": case,
    "coalesce": first,
    "nullif": null_if,
    "least": extreme(min),
    "greatest": extreme(max),
    "is null": lambda arguments: arguments[0] is None,
}


def divide(a: float, b: float) -> float | None:
    if b == 0:
        return None
    if math.isinf(b):
        return math.nan if not math.isfinite(a) else math.copysign(0.0, a) * math.copysign(1, b)
    return a / b


def truncated(a: int, b: int) -> int | None:
    return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def remainder(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    if isinstance(a, int):
        return a - b * truncated(a, b)
    if isinstance(a, Fraction):
        return a - b * math.trunc(a / b)
    return math.nan if not math.isfinite(a) or math.isnan(b) else math.fmod(a, b)


def whole(rule: Any) -> Any:
    def applied(value: Any) -> Any:
        if isinstance(value, Fraction):
            return Fraction(rule(value))
        if isinstance(value, int) or not math.isfinite(value):
            return value
        return float(rule(Fraction(value)))

    return applied


def half_away(value: Fraction) -> int:
    size = math.floor(abs(value) + Fraction(1, 2))
    return size if value >= 0 else -size


def logarithm(function: Any) -> Any:
    return lambda value: None if value <= 0 else function(value)


def exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def power(base: float, exponent: float, is_whole: bool) -> float | None:
    if is_whole:
        defined = exponent >= 0 or base != 0
    else:
        defined = base > 0 or math.isnan(base) or (base == 0 and order(exponent) > order(0.0))
    if not defined:
        return None
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:
        return math.nan


def clamp(value: Any, low: Any, high: Any) -> Any:
    return None if value != value else min(max(value, low), high)


def bucket(value: float, low: float, high: float, count: int) -> int:
    if value < low:
        return 0
    if math.isnan(value) or value >= high:
        return count + 1
    return min(count, math.floor((value - low) * float(Fraction(count) / (Fraction(high) - Fraction(low)))) + 1)


def sign(value: Any) -> int:
    return (value > 0) - (value < 0)


def lower(text: str) -> str:
    return "".join(character.lower()[0] for character in text)


def upper(text: str) -> str:
    return "".join(LONG_CAPITALS.get(c, c.upper() if len(c.upper()) == 1 else c) for c in text)


LONG_CAPITALS = {"ß": "ẞ"}


def is_space(character: str) -> bool:
    return unicodedata.category(character) == "Zs"


def trim(text: str, left: bool = True, right: bool = True) -> str:
    while left and text and is_space(text[0]):
        text = text[1:]
    while right and text and is_space(text[-1]):
        text = text[:-1]
    return text


def is_searched(text: str, sought: str, short: int = 64) -> bool:
    """Whether what is written is looked for at all: longer texts are looked for in texts up to a length."""
    return len(sought) <= short or len(text) <= MOST_TRIES // len(sought)


def like(text: str, pattern: str) -> bool | None:
    if not is_searched(text, pattern, 0 if "%" in pattern and "_" in pattern else 64):
        return None
    parts = {"%": ".*", "_": "."}
    regex = "".join(parts.get(character, re.escape(character)) for character in pattern)
    return re.fullmatch(regex, text, re.DOTALL) is not None


def truncate(unit: str, moment: datetime.date) -> datetime.date:
    day = moment.date() if isinstance(moment, datetime.datetime) else moment
    time = moment.time() if isinstance(moment, datetime.datetime) else datetime.time()
    if unit == "year":
        day, time = day.replace(month=1, day=1), datetime.time()
    elif unit == "quarter":
        day, time = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1), datetime.time()
    elif unit == "month":
        day, time = day.replace(day=1), datetime.time()
    elif unit == "week":
        day, time = day - datetime.timedelta(days=day.weekday()), datetime.time()
    elif unit == "day":
        time = datetime.time()
    elif unit == "hour":
        time = datetime.time(time.hour)
    elif unit == "minute":
        time = datetime.time(time.hour, time.minute)
    else:
        time = time.replace(microsecond=0)
    return datetime.datetime.combine(day, time) if isinstance(moment, datetime.datetime) else day


def difference(unit: str, first: datetime.datetime, last: datetime.datetime) -> int:
    """How many times a unit begins from one moment to the other."""
    if unit in ("year", "quarter", "month"):
        size = {"year": 12, "quarter": 3, "month": 1}[unit]
        return (last.year * 12 + last.month - 1) // size - (first.year * 12 + first.month - 1) // size
    length = {"hour": 3600, "minute": 60, "second": 1}[unit]
    apart = truncate(unit, last) - truncate(unit, first)
    return (apart.days * 86_400 + apart.seconds) // length


def shift(moment: datetime.datetime, count: int, unit: str) -> datetime.datetime | None:
    """The moment so many units later, in the last days of shorter months; None outside the years 1 to 9999."""
    try:
        if unit != "month":
            return moment + datetime.timedelta(**{unit + "s": count})
        months = moment.year * 12 + moment.month - 1 + count
        for day in range(moment.day, 27, -1):
            try:
                return moment.replace(year=months // 12, month=months % 12 + 1, day=day)
            except ValueError:
                continue
        return moment.replace(year=months // 12, month=months % 12 + 1)
    except (OverflowError, ValueError):
        return None


def date_of(moment: datetime.date) -> datetime.date:
    return moment.date() if isinstance(moment, datetime.datetime) else moment


STRICT = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": divide,
    "//": truncated,
    "%": remainder,
    "negate": lambda a: 0 - a,
    "abs": abs,
    "sign": sign,
    "round": whole(half_away),
    "floor": whole(math.floor),
    "ceil": whole(math.ceil),
    "trunc": whole(math.trunc),
    "sqrt": lambda value: None if value < 0 else math.sqrt(value),
    "ln": logarithm(math.log),
    "log10": logarithm(math.log10),
    "log2": logarithm(math.log2),
    "exp": exponential,
    "clamp": clamp,
    "width_bucket": bucket,
    "=": lambda a, b: order(a) == order(b),
    "<>": lambda a, b: order(a) != order(b),
    "<": lambda a, b: order(a) < order(b),
    "<=": lambda a, b: order(a) <= order(b),
    ">": lambda a, b: order(a) > order(b),
    ">=": lambda a, b: order(a) >= order(b),
    "not": lambda a: not a,
    "lower": lower,
    "upper": upper,
    "trim": trim,
    "ltrim": lambda text: trim(text, right=False),
    "rtrim": lambda text: trim(text, left=False),
    "length": len,
    "concat": lambda a, b: a + b,
    "left": lambda text, count: text[:count],
    "right": lambda text, count: text[-count:] if count else "",
    "skip": lambda text, start: text[start - 1 :],
    "substring": lambda text, start, count: text[start - 1 : start - 1 + count],
    "replace": lambda text, found, put: text.replace(found, put),
    "like": like,
    "starts_with": lambda text, part: text.startswith(part),
    "ends_with": lambda text, part: text.endswith(part),
    "contains": lambda text, part: part in text,
    "year": lambda moment: moment.year,
    "quarter": lambda moment: (moment.month + 2) // 3,
    "month": lambda moment: moment.month,
    "week": lambda moment: moment.isocalendar()[1],
    "day": lambda moment: moment.day,
    "dow": lambda moment: moment.isoweekday() % 7,
    "isodow": lambda moment: moment.isoweekday(),
    "doy": lambda moment: moment.timetuple().tm_yday,
    "hour": lambda moment: getattr(moment, "hour", 0),
    "minute": lambda moment: getattr(moment, "minute", 0),
    "second": lambda moment: getattr(moment, "second", 0),
    "date_trunc": truncate,
    "days": lambda a, b: (date_of(b) - date_of(a)).days,
    "date_diff": difference,
    "shift": shift,
    "split_part": lambda text, by, place: text.split(by)[place - 1] if place <= len(text.split(by)) else "",
}


def cast(value: Any, source: str, target: str) -> Any:
    if isinstance(target, Decimals):
        return decimal(value, target)
    if isinstance(source, Decimals):
        return from_decimal(value, source, target)
    if target == "text":
        return written(value, source)
    if source == "text":
        return read(value, target)
    if target == "timestamp":
        return datetime.datetime.combine(value, datetime.time())
    if target == "date":
        return value.date()
    if target == "boolean":
        return value != 0
    if target == "real":
        return float(value)
    if source == "boolean":
        return int(value)
    return round(value) if math.isfinite(value) and round(value) in LONG else None


def decimal(value: Any, target: Decimals) -> Fraction | None:
    """A number with so many digits; a double only where its units have 64 bits."""
    if isinstance(value, float):
        many = value * float(10**target.scale)
        if not math.isfinite(many) or half_away(Fraction(many)) not in LONG:
            return None
        units = half_away(Fraction(many))
    else:
        units = half_away(Fraction(value) * 10**target.scale)
    return Fraction(units, 10**target.scale) if abs(units) < 10**target.precision else None


def from_decimal(value: Fraction, source: Decimals, target: str) -> Any:
    units = int(value * 10**source.scale)
    if target == "real":
        return float(units) / float(10**source.scale)
    if target == "integer":
        return half_away(value) if half_away(value) in LONG else None
    digits = str(abs(units)).rjust(source.scale + 1, "0")
    point = len(digits) - source.scale
    return ("-" if units < 0 else "") + digits[:point] + ("." + digits[point:] if source.scale else "")


def written(value: Any, source: str) -> str | None:
    if source == "boolean":
        return "true" if value else "false"
    if source == "timestamp":
        return value.isoformat(" ").rstrip("0").rstrip(".") if value.microsecond else value.isoformat(" ")
    if source == "date":
        return value.isoformat()
    if source == "real":
        finite = settled(value)
        return None if finite is None else repr(finite)
    return str(value)


def read(text: str, target: str) -> Any:
    """Text that is plainly a number, a date or a timestamp."""
    if target == "integer":
        return int(text) if WHOLE.fullmatch(text) and int(text) in LONG else None
    if target == "real":
        return settled(float(text)) if NUMBER.fullmatch(text) else None
    try:
        if target == "date":
            return datetime.date.fromisoformat(text) if len(text) == 10 and text.count("-") == 2 else None
        return datetime.datetime.fromisoformat(text) if MOMENT.fullmatch(text) else None
    except ValueError:
        return None
