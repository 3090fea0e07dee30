"""What a cell of a curve file means: a name, a number, a seed; and how a fault in one is told.

`where` is the place of the row, such as `line 7`.
"""

from __future__ import annotations

import math
import re
from typing import Any

from forecurve.science.checks import short
from forecurve.signs import is_obeyed

_WHOLE = r"\s*[-+]?[0-9]{1,300}\s*"


class CurveFileError(ValueError):
    """A file of curves that cannot be read.

    Attributes:
        field: the column, series or file at fault.
        value: the offending value.
        way_out: what to do about it.
        message: what is wrong.
    """

    def __init__(self, field: str, value: Any, message: str, way_out: str):
        self.field = field
        self.value = value
        self.way_out = way_out
        self.message = message
        super().__init__(f"{field}: {message}, got {value}; {way_out}")


def name_of(cell: Any, where: str) -> str:
    """The name of a series: text on one line, without signs that a terminal obeys."""
    name = text_of("series", cell, where)
    if not name:
        raise CurveFileError(f"series at {where}", _shown(cell), "a name is needed", "name every series")
    return _on_one_line("series", name, where, "rename the series")


def unit_of(cell: Any, where: str) -> str:
    """The unit of compute that is named, "" where none is."""
    return _on_one_line("unit", text_of("unit", cell, where), where, "rename the unit")


def _on_one_line(column: str, name: str, where: str, way_out: str) -> str:
    if any(is_obeyed(sign) for sign in name):
        raise CurveFileError(f"{column} at {where}", ascii(name), "a name on one line is needed", way_out)
    return name


def text_of(column: str, cell: Any, where: str) -> str:
    """What a cell says, blanks around it dropped; a plain number is a name too."""
    if isinstance(cell, bool) or not isinstance(cell, str | int | float | None):
        raise CurveFileError(f"{column} at {where}", _shown(cell), "text is needed", "write it as text")
    return "" if cell is None else str(cell).strip()


def seed_of(cell: Any, where: str) -> int | None:
    """A seed, None where the cell is empty or NaN, as it is in a column of floats."""
    if re.fullmatch(_WHOLE, str(cell)):  # with all its digits, which a float has not
        return int(cell)
    number = number_of("seed", cell, where)
    if number is None or math.isnan(number):
        return None
    if not number.is_integer():
        raise CurveFileError(
            f"seed at {where}", _shown(cell), "a whole number is needed", "leave it empty where unknown"
        )
    return int(number)


def needed_of(column: str, cell: Any, where: str) -> float:
    number = number_of(column, cell, where)
    if number is None:
        raise CurveFileError(f"{column} at {where}", _shown(cell), "a number is needed", "leave the line out")
    return number


def number_of(column: str, cell: Any, where: str) -> float | None:
    """A number, None where the cell is empty."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    try:
        if isinstance(cell, bool):
            raise TypeError("a truth value")
        return float(cell)
    except (TypeError, ValueError, OverflowError) as error:
        way_out = as_people_write(cell) or "mend or leave it out"
        raise CurveFileError(f"{column} at {where}", _shown(cell), "a number is needed", way_out) from error


def as_people_write(cell: Any) -> str | None:
    """The way out where a number is written as people do and programs do not; None for any other cell."""
    text = cell.strip() if isinstance(cell, str) else ""
    if re.fullmatch(r"[-+\d., ]*,[\d., ]*", text):
        return "write a point before decimals and nothing between thousands"
    if re.fullmatch(r"[-+\d., ]+%", text):
        return "write the number alone, and state the range with bounds=(low, high)"
    return None


def _shown(cell: Any) -> str:
    return "nothing" if cell is None else short(cell)
