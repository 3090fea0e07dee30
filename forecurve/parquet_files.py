"""Parquet files: whatever pyarrow makes of a damaged one is told as a fault of the file, and none fills the memory.

A text that a million rows have stands in a file once, and pyarrow would write it out for each of them. Texts are
therefore read as places in a list of the different ones, wherever the encoding lets pyarrow do so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forecurve.curve_cells import CurveFileError
from forecurve.science.arrays import IntArray
from forecurve.signs import visible

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ColumnChunkMetaData, ColumnSchema, FileMetaData, ParquetFile


MOST_IN_A_CHUNK = 1 << 30
"""Bytes of a column in a group of rows, unpacked: a text of gigabytes is packed into kilobytes."""
_MOST_WRITTEN_OUT = 64 << 20
"""Bytes of texts that are read at once where pyarrow writes out each, however often it is there."""
_ROWS_AT_ONCE = 1 << 16
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}
_TEXT = "BYTE_ARRAY"


def refuse_large(
    path: Path, file: ParquetFile, columns: Collection[str] | None = None, *, as_a_whole: bool = False
) -> None:
    """CurveFileError for a file whose columns, or those that are to be read, would not fit into memory.

    Args:
        as_a_whole: what is read of all groups of rows is kept.
    """
    sizes: Counter[str] = Counter()
    for leaf, chunk in _chunks(file.metadata):
        name = leaf.path
        if columns is not None and not _is_of(name, columns):
            continue
        sizes[name] = _unpacked(leaf, chunk) + (sizes[name] if as_a_whole else 0)
        if sizes[name] > MOST_IN_A_CHUNK:
            told = f"at most {MOST_IN_A_CHUNK >> 20:,} MB of a column are taken at once"
            way_out = "leave the column out" if as_a_whole else "leave the column out, or write smaller groups of rows"
            raise CurveFileError(f"{visible(name)} in {path.name}", f"{sizes[name] >> 20:,} MB", told, way_out)


def single(file: ParquetFile) -> list[str]:
    """The columns, by their paths, of which a row has one cell: no lists."""
    schema = file.metadata.schema
    leaves = (schema.column(at) for at in range(len(schema)))
    return [leaf.path for leaf in leaves if not leaf.max_repetition_level]


def batches(file: ParquetFile, columns: Sequence[str], most_rows: int = _ROWS_AT_ONCE) -> Iterator[pyarrow.RecordBatch]:
    """The rows of a file, so many at once that they fit into memory where `refuse_large` let the file pass."""
    written_out = (
        chunk.total_uncompressed_size
        for leaf, chunk in _chunks(file.metadata)
        if leaf.physical_type == _TEXT and _is_of(leaf.path, columns) and not _tells_apart(chunk)
    )
    rows = _MOST_WRITTEN_OUT // max(written_out, default=1)
    yield from file.iter_batches(batch_size=min(most_rows, max(1, rows)), columns=list(columns))


def rows_in(batch: pyarrow.RecordBatch, known: dict[str, str] | None = None) -> Iterator[dict[str, Any]]:
    """The rows by the names of their columns; `known` as in `cells`."""
    names = batch.schema.names
    columns = (cells(column, known) for column in batch.columns)
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def cells(array: pyarrow.Array, known: dict[str, str] | None = None) -> list[Any]:
    """What the rows of a column say; those with the same text share it.

    Args:
        known: the texts that came before, which are shared too.
    """
    import pyarrow as arrow

    names = [field.name for field in array.type] if arrow.types.is_struct(array.type) else []
    if len(set(names)) == len(names) > 0:  # of two with one name pyarrow makes an error
        fields = [array.field(at) for at in range(len(names))]
        rows = zip(array.is_valid().to_pylist(), *(cells(field, known) for field in fields), strict=True)
        return [dict(zip(names, row, strict=True)) if valid else None for valid, *row in rows]
    places: Sequence[int] | None = None
    if arrow.types.is_dictionary(array.type):
        which, values = told_apart(array)
        places = which.tolist()
    else:
        values = array.to_pylist()
    if known is not None:
        values = [known.setdefault(value, value) if isinstance(value, str) else value for value in values]
    return values if places is None else [values[place] for place in places]


def told_apart(array: pyarrow.Array) -> tuple[IntArray, list[Any]]:
    """Of each row the place in a list of the different values, and that list. None is one of them."""
    import pyarrow as arrow

    encoded = array if arrow.types.is_dictionary(array.type) else array.dictionary_encode()
    nothing = len(encoded.dictionary)
    indices = encoded.indices.cast(arrow.int64()).fill_null(nothing).to_numpy(zero_copy_only=False)
    used, places = np.unique(indices, return_inverse=True)  # a group of rows has one list, of which few may be here
    there = used[used < nothing]
    values = encoded.dictionary.take(arrow.array(there)).to_pylist()
    return places.astype(np.int64), values if len(there) == len(used) else [*values, None]


def _chunks(metadata: FileMetaData) -> Iterator[tuple[ColumnSchema, ColumnChunkMetaData]]:
    """Each column of each group of rows; what is inside a column is one of its own here."""
    groups = (metadata.row_group(at) for at in range(metadata.num_row_groups))
    return ((metadata.schema.column(at), group.column(at)) for group in groups for at in range(group.num_columns))


def _is_of(path: str, columns: Collection[str]) -> bool:
    return path in columns or any(path.startswith(f"{name}.") for name in columns)


def _unpacked(leaf: ColumnSchema, chunk: ColumnChunkMetaData) -> int:
    """Bytes in memory, at most."""
    is_repeated = leaf.max_repetition_level > 0  # a row of kilobytes may be a list of gigabytes
    width = _WIDTHS.get(leaf.physical_type, leaf.length)
    if leaf.physical_type == _TEXT:
        width = chunk.total_uncompressed_size if is_repeated else 0
    elif leaf.physical_type in _WIDTHS and not is_repeated:
        width = 0  # many rows are taken by and by
    return int(max(chunk.total_uncompressed_size, chunk.num_values * width))


def _tells_apart(chunk: ColumnChunkMetaData) -> bool:
    """Whether pyarrow can read the texts of this as places in a list."""
    return not any(encoding.startswith("DELTA") for encoding in chunk.encodings)


def _texts(metadata: FileMetaData) -> list[str]:
    """The columns of texts that are read as places in a list."""
    texts = [
        (leaf.path, _tells_apart(chunk))
        for leaf, chunk in _chunks(metadata)
        if leaf.physical_type == _TEXT and not leaf.max_repetition_level
    ]
    written_out = {path for path, tells_apart in texts if not tells_apart}
    return list({path: None for path, _ in texts if path not in written_out})


def opened(path: Path) -> ParquetFile:
    """An open file whose texts are told apart."""
    from pyarrow.parquet import ParquetFile, read_metadata

    metadata = read_metadata(path)
    return ParquetFile(path, metadata=metadata, read_dictionary=_texts(metadata))


@contextmanager
def parquet_file(path: Path) -> Iterator[ParquetFile]:
    """An open file, to be read within: damage shows where it lies, in the names of columns or in the last page.

    Raises:
        CurveFileError: pyarrow is not installed, or what is read here is damaged.
        OSError: the file cannot be opened.
    """
    try:
        import pyarrow as arrow
    except ImportError as error:
        way_out = "pip install 'forecurve[parquet]', or save it as CSV"
        raise CurveFileError("file", path.name, "Parquet needs pyarrow", way_out) from error
    path.open("rb").close()  # of what pyarrow raises as OSError then the most is damage
    try:
        with opened(path) as file:
            yield file
    except (CurveFileError, MemoryError):  # of who reads it; pyarrow's own of memory is one, and no damage
        raise
    # beside its own, pyarrow raises what Python does of names that are no UTF-8 and of days before the year 1
    except (arrow.ArrowException, ArithmeticError, LookupError, OSError, ValueError) as error:
        told = f"it is not Parquet, or is damaged ({visible(' '.join(str(error).split()))})"
        raise CurveFileError("file", path.name, told, "save it again, or save it as CSV") from error
