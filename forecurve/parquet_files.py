"""Parquet files: whatever pyarrow makes of a damaged one is told as a fault of the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from forecurve.curve_cells import CurveFileError
from forecurve.signs import visible

if TYPE_CHECKING:
    import pyarrow.parquet


@contextmanager
def parquet_file(path: Path) -> Iterator[pyarrow.parquet.ParquetFile]:
    """An open file, to be read within: damage shows where it lies, in the names of columns or in the last page.

    Raises:
        CurveFileError: pyarrow is not installed, or what is read here is damaged.
        OSError: the file cannot be opened.
    """
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        way_out = "pip install 'forecurve[parquet]', or save it as CSV"
        raise CurveFileError("file", path.name, "Parquet needs pyarrow", way_out) from error
    path.open("rb").close()  # of what pyarrow raises as OSError then the most is damage
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except CurveFileError:  # of who reads it
        raise
    # beside its own, pyarrow raises what Python does of names that are no UTF-8 and of days before the year 1
    except (arrow.ArrowException, ArithmeticError, LookupError, OSError, ValueError) as error:
        told = f"it is not Parquet, or is damaged ({visible(' '.join(str(error).split()))})"
        raise CurveFileError("file", path.name, told, "save it again, or save it as CSV") from error
