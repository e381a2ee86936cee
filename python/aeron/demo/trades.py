"""Trades as fixed-length records: read from a file of trades or quotes, or generated from a seed.

Each source is one numpy array of :data:`TRADE` records, which can be published as messages. This module does not use
Aeron itself."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from aeron.exceptions import AeronError

TRADE = np.dtype(
    [
        ("time_ns", "<i8"),
        ("sent_ns", "<i8"),
        ("sequence", "<i8"),
        ("price", "<f8"),
        ("quantity", "<f8"),
        ("symbol", "S16"),
    ]
)
"""One trade, 56 bytes: market time (ns since the epoch), time of sending (monotonic ns; when paced, the due time),
sequence number, price, quantity, symbol (at most 16 bytes, zero padded). The publisher sets time of sending and
sequence number."""

Column = npt.NDArray[np.generic]


class TradesError(AeronError, ValueError):
    """A file that cannot be read as trades. The text names the missing part and the option that supplies it."""


@dataclass(frozen=True)
class ColumnNames:
    """Names of columns. ``None`` means that the column is found by its usual names."""

    time: str | None = None
    price: str | None = None
    quantity: str | None = None
    symbol: str | None = None


@dataclass(frozen=True)
class Trades:
    """Records in file order, their source, and whether they are quotes. The quantity of a quote is 1."""

    records: npt.NDArray[np.void]
    source: str
    is_quotes: bool

    @property
    def kind(self) -> str:
        """Kind of the records: trades or quotes."""
        return "quotes" if self.is_quotes else "trades"

    @property
    def symbols(self) -> list[str]:
        """The distinct symbols, sorted."""
        return sorted(symbol.decode() for symbol in np.unique(self.records["symbol"]))


def load_trades(path: Path, names: ColumnNames = ColumnNames(), symbol: str | None = None) -> Trades:
    """Reads a ``.csv`` or ``.parquet`` file of trades or of quotes (bid and ask).

    Without a symbol column every record gets ``symbol``, or the file's stem.

    Raises:
        TradesError: the file is missing, is empty, is of another kind, or has no column of the time
            or price.
    """
    if not path.is_file():
        raise TradesError(f"{path}: no such file")
    columns = _columns(path)
    if not columns or not len(next(iter(columns.values()))):
        raise TradesError(f"{path}: holds no rows")
    time = columns[_require(columns, names.time, _TIME_NAMES, "time", path)]
    price, is_quotes = _price(columns, names.price, path)
    records = np.zeros(len(time), TRADE)
    records["time_ns"] = time_ns(time, path)
    records["price"] = price
    records["quantity"] = 1.0 if is_quotes else _quantity(columns, names.quantity, path)
    records["symbol"] = _symbol(columns, names.symbol, symbol or path.stem, path)
    return Trades(records, path.name, is_quotes)


def generate_trades(count: int, seed: int = 1) -> Trades:
    """Generates ``count`` trades of four invented symbols.

    Prices are random walks. Quantities and the times between trades have exponential distributions. The same seed
    yields the same trades.
    """
    random = np.random.default_rng(seed)
    records = np.zeros(count, TRADE)
    symbol = random.integers(0, len(_GENERATED), count)
    records["symbol"] = np.array([name for name, _ in _GENERATED], "S16")[symbol]
    for index, (_, start) in enumerate(_GENERATED):
        mine = symbol == index
        steps = random.normal(0.0, 1e-4, int(mine.sum()))
        records["price"][mine] = np.round(start * np.exp(np.cumsum(steps)), 2)
    records["quantity"] = np.round(random.exponential(2.0, count) + 0.001, 3)
    records["time_ns"] = _GENERATED_START_NS + np.cumsum(random.exponential(20e6, count)).astype(np.int64)
    return Trades(records, f"generated (seed {seed})", is_quotes=False)


_GENERATED = (("ALPHA", 101.0), ("BRAVO", 52.5), ("CHARLIE", 1890.0), ("DELTA", 7.25))
_GENERATED_START_NS = 1_700_000_000_000_000_000
_TIME_NAMES = ("timestamp", "time", "datetime", "date", "ts", "time_ns", "trade_time", "event_time")
_PRICE_NAMES = ("price", "px", "last", "close", "trade_price")
_QUANTITY_NAMES = ("quantity", "qty", "size", "volume", "amount", "trade_size")
_SYMBOL_NAMES = ("symbol", "sym", "ticker", "instrument", "pair")
_BID_NAMES = ("bid", "bid_price", "bidprice")
_ASK_NAMES = ("ask", "ask_price", "askprice", "offer")


def _columns(path: Path) -> Mapping[str, Column]:
    reader = _reader(path)
    try:
        return reader(path)
    except TradesError:
        raise
    # pyarrow raises NotImplementedError for a Parquet file with an unsupported codec or type.
    except (OSError, ValueError, NotImplementedError, csv.Error) as error:
        raise TradesError(f"{path}: cannot be read: {error}") from error


def _reader(path: Path) -> Callable[[Path], Mapping[str, Column]]:
    readers = {".csv": _read_csv, ".parquet": _read_parquet}
    suffix = path.suffix.lower()
    if suffix not in readers:
        raise TradesError(f"{path}: unknown kind of file {suffix or '(no suffix)'!r}, use one of {', '.join(readers)}")
    return readers[suffix]


def _read_csv(path: Path) -> Mapping[str, Column]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        header = next(rows, [])
        lines = [row for row in rows if row]
    for row in lines:
        if len(row) != len(header):
            raise TradesError(
                f"{path}: a row has {len(row)} values, the header has {len(header)}: {','.join(row)[:80]}"
            )
    return {name: np.array(values) for name, values in zip(header, zip(*lines, strict=True), strict=False)}


def _read_parquet(path: Path) -> Mapping[str, Column]:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise TradesError(f"{path}: reading Parquet needs pyarrow: pip install 'aeron-py[arrow]'") from error
    table = parquet.read_table(path)
    return {name: table.column(name).to_numpy() for name in table.column_names}


def _find(columns: Mapping[str, Column], usual: Sequence[str]) -> str | None:
    by_lower = {name.lower(): name for name in columns}
    return next((by_lower[name] for name in usual if name in by_lower), None)


def _require(columns: Mapping[str, Column], named: str | None, usual: Sequence[str], what: str, path: Path) -> str:
    if named is not None and named not in columns:
        raise TradesError(f"{path}: no column {named!r}; it has {', '.join(columns)}")
    found = named or _find(columns, usual)
    if found is None:
        raise TradesError(f"{path}: no {what} column among {', '.join(columns)}; name it with --{what}-column")
    return found


def _price(columns: Mapping[str, Column], named: str | None, path: Path) -> tuple[npt.NDArray[np.float64], bool]:
    bid, ask = _find(columns, _BID_NAMES), _find(columns, _ASK_NAMES)
    if named is None and _find(columns, _PRICE_NAMES) is None and bid is not None and ask is not None:
        return (_number(columns[bid], bid, path) + _number(columns[ask], ask, path)) / 2, True
    name = _require(columns, named, _PRICE_NAMES, "price", path)
    return _number(columns[name], name, path), False


def _quantity(columns: Mapping[str, Column], named: str | None, path: Path) -> npt.NDArray[np.float64]:
    name = _require(columns, named, _QUANTITY_NAMES, "quantity", path)
    return _number(columns[name], name, path)


def _symbol(columns: Mapping[str, Column], named: str | None, constant: str, path: Path) -> npt.NDArray[np.bytes_]:
    if named is None:
        named = _find(columns, _SYMBOL_NAMES)
    texts = np.array([constant]) if named is None else columns[_require(columns, named, (), "symbol", path)]
    encoded = np.char.encode(texts.astype(str), "utf-8")
    longest = max(encoded, key=len)
    if len(longest) > TRADE["symbol"].itemsize:
        raise TradesError(
            f"{path}: symbol {longest.decode()!r} has {len(longest)} bytes, at most {TRADE['symbol'].itemsize} fit; "
            "give a shorter one with --symbol"
        )
    return encoded


def _number(column: Column, name: str, path: Path) -> npt.NDArray[np.float64]:
    try:
        numbers = column.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise TradesError(f"{path}: column {name!r} is not a number: {error}") from error
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise TradesError(f"{path}: column {name!r} has {column[row]} instead of a number in row {row + 1}")
    return numbers


def time_ns(column: Column, path: Path) -> npt.NDArray[np.int64]:
    """Converts timestamps, ISO 8601 texts or numbers since the epoch to ns since the epoch.

    A text without a time zone is in UTC. The largest number of a column determines the unit: below 1e11 it is seconds,
    below 1e14 ms, below 1e17 us, and otherwise ns.
    """
    if np.issubdtype(column.dtype, np.datetime64):
        times_us = column.astype("datetime64[us]").astype(np.int64)
        _check_times(times_us / 1e6, column, path)
        return column.astype("datetime64[ns]").astype(np.int64)
    try:
        numbers = column.astype(np.float64)
    except (ValueError, TypeError):
        return np.array([_iso_ns(str(text), path) for text in column], np.int64)
    largest = float(np.abs(numbers).max())
    unit = next((unit for limit, unit in ((1e11, 10**9), (1e14, 10**6), (1e17, 10**3)) if largest < limit), 1)
    _check_times(numbers * unit / 1e9, column, path)
    if np.issubdtype(column.dtype, np.floating) or np.any(numbers != np.trunc(numbers)):
        return np.round(numbers * unit).astype(np.int64)
    return column.astype(np.int64) * unit


def _check_times(seconds: npt.NDArray[np.float64], column: Column, path: Path) -> None:
    """Checks that no time is missing, and that all times fit into 64 bits of nanoseconds."""
    is_time = np.abs(seconds) < _FARTHEST_S
    if not is_time.all():
        row = int(np.argmin(is_time))
        raise TradesError(f"{path}: {column[row]} in row {row + 1} is no time between 1680 and 2260")


def _iso_ns(text: str, path: Path) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise TradesError(f"{path}: {text!r} is not a time") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    if abs(since.total_seconds()) > _FARTHEST_S:
        raise TradesError(f"{path}: {text!r} is no time between 1680 and 2260")
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1_000


_FARTHEST_S = 290 * 365.25 * 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
