"""Parquet files: whatever pyarrow makes of a damaged one is told as a fault of the file."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from forecurve.curve_cells import CurveFileError
from forecurve.signs import visible

if TYPE_CHECKING:
    import pyarrow.parquet


MOST_IN_A_CHUNK = 1 << 30
"""Bytes of a column in a group of rows, unpacked: a text of gigabytes is packed into kilobytes."""


def refuse_large(path: Path, file: pyarrow.parquet.ParquetFile, columns: Container[str] | None = None) -> None:
    """CurveFileError for a file whose columns, or those that are to be read, would not fit into memory."""
    groups = (file.metadata.row_group(at) for at in range(file.metadata.num_row_groups))
    for chunk in (group.column(at) for group in groups for at in range(group.num_columns)):
        name, size = chunk.path_in_schema, chunk.total_uncompressed_size
        if size > MOST_IN_A_CHUNK and (columns is None or name in columns):
            told = f"at most {MOST_IN_A_CHUNK >> 20:,} MB of a column are taken at once"
            way_out = "leave the column out, or write smaller groups of rows"
            raise CurveFileError(f"{visible(name)} in {path.name}", f"{size >> 20:,} MB", told, way_out)


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
    except (CurveFileError, MemoryError):  # of who reads it; pyarrow's own of memory is one, and no damage
        raise
    # beside its own, pyarrow raises what Python does of names that are no UTF-8 and of days before the year 1
    except (arrow.ArrowException, ArithmeticError, LookupError, OSError, ValueError) as error:
        told = f"it is not Parquet, or is damaged ({visible(' '.join(str(error).split()))})"
        raise CurveFileError("file", path.name, told, "save it again, or save it as CSV") from error
