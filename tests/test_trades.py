"""Tests of trades from files and of generated trades (``aeron.demo.trades``), and of totals (``aeron.demo.totals``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from aeron.demo.totals import Totals
from aeron.demo.trades import TRADE, ColumnNames, TradesError, generate_trades, load_trades

DATA = Path(__file__).parent.parent / "examples" / "data"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_record_has_48_to_64_bytes() -> None:
    assert 48 <= TRADE.itemsize <= 64


def test_real_trades_are_read_from_parquet_with_the_file_name_as_symbol() -> None:
    trades = load_trades(DATA / "btcusdt-trades.parquet")
    assert len(trades.records) == 2001
    assert trades.symbols == ["btcusdt-trades"]
    assert not trades.is_quotes
    assert trades.records["price"][0] == 39432.48
    assert trades.records["quantity"][0] == 0.000263
    assert trades.records["time_ns"][0] == 1_610_064_000_278_000_000


def test_quotes_become_trades_at_the_mid_price_with_a_quantity_of_one() -> None:
    quotes = load_trades(DATA / "usdjpy-ticks.csv", symbol="USD/JPY")
    assert len(quotes.records) == 1000
    assert quotes.symbols == ["USD/JPY"]
    assert quotes.is_quotes
    assert quotes.records["price"][0] == pytest.approx((86.655 + 86.728) / 2)
    assert set(quotes.records["quantity"]) == {1.0}


@pytest.mark.parametrize(
    ("text", "expected_ns"),
    [
        ("2024-01-02T03:04:05.000006+01:00", 1_704_161_045_000_006_000),
        ("2024-01-02 02:04:05.000006", 1_704_161_045_000_006_000),
        ("1704161045", 1_704_161_045_000_000_000),
        ("1704161045.5", 1_704_161_045_500_000_000),
        ("1704161045000", 1_704_161_045_000_000_000),
        ("1704161045000006", 1_704_161_045_000_006_000),
        ("1704161045000006007", 1_704_161_045_000_006_007),
    ],
)
def test_times_are_iso_texts_or_epoch_numbers_of_any_unit(tmp_path: Path, text: str, expected_ns: int) -> None:
    path = write(tmp_path / "a.csv", f"time,price,size\n{text},1.5,2\n")
    assert load_trades(path).records["time_ns"].tolist() == [expected_ns]


def test_columns_with_unusual_names_are_named_by_options(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "t,p,n,who\n1700000000,10.5,3,X\n1700000001,11.5,4,Y\n")
    records = load_trades(path, ColumnNames("t", "p", "n", "who")).records
    assert records["price"].tolist() == [10.5, 11.5]
    assert records["quantity"].tolist() == [3.0, 4.0]
    assert records["symbol"].tolist() == [b"X", b"Y"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.csv", "time,size\n1,1\n", "no price column among time, size; name it with --price-column"),
        ("a.csv", "price,size\n1,1\n", "no time column"),
        ("a.csv", "time,price\n1,1\n", "no quantity column"),
        ("a.csv", "time,price,size\n", "holds no rows"),
        ("a.csv", "", "holds no rows"),
        ("a.csv", "time,price,size\n1,1\n", "a row has 2 values, the header has 3"),
        ("a.csv", "time,price,size\n1,cheap,1\n", "column 'price' is not a number"),
        ("a.csv", "time,price,size\nnoon,1,1\n", "'noon' is not a time"),
        ("a.csv", "time,price,size,symbol\n1,1,1,A_SYMBOL_OF_22_BYTES__\n", "has 22 bytes, at most 16 fit"),
        ("a.csv", "time,price,size\n1,1,1\n1,,1\n", "column 'price' is not a number"),
        ("a.csv", "time,price,size\n1,1,1\n1,nan,1\n", "column 'price' has nan instead of a number in row 2"),
        ("a.csv", "time,price,size\n1,1,inf\n", "column 'size' has inf instead of a number in row 1"),
        ("a.csv", "time,price,size\nnan,1,1\n", "nan in row 1 is no time between 1680 and 2260"),
        ("a.csv", "time,price,size\n5e10,1,1\n", "5e10 in row 1 is no time between"),
        ("a.csv", "time,price,size\n9999-01-01,1,1\n", "'9999-01-01' is no time between"),
        ("a.parquet", "PAR1 or not", "a.parquet: cannot be read: "),
        ("a.json", "{}", "unknown kind of file '.json'"),
    ],
)
def test_the_error_for_a_file_without_valid_trades_names_the_cause_and_the_remedy(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    with pytest.raises(TradesError, match=says):
        load_trades(write(tmp_path / name, text))


def test_a_text_in_another_encoding_is_refused_and_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"time,price,size,symbol\n1,1,1,Z\xfcrich\n")
    with pytest.raises(TradesError, match=r"a\.csv: cannot be read: 'utf-8' codec can't decode"):
        load_trades(path)
    path.write_bytes(b"\xef\xbb\xbftime,price,size\n1,1,1\n")
    assert len(load_trades(path).records) == 1


def test_the_error_for_a_missing_value_in_a_parquet_file_names_the_row(tmp_path: Path) -> None:
    columns = {"time": [1, 2], "price": [1.0, 2.0], "size": [1.0, 2.0]}
    for name, values, says in (
        ("time", pa.array([1, None], pa.timestamp("us")), "NaT in row 2 is no time"),
        ("price", pa.array([1.0, None]), "column 'price' has nan instead of a number in row 2"),
        ("price", pa.array(["1.0", None]), "column 'price' "),
        ("size", pa.array([1, None]), "column 'size' has nan instead of a number in row 2"),
    ):
        parquet.write_table(pa.table({**columns, name: values}), tmp_path / "a.parquet")
        with pytest.raises(TradesError, match=says):
            load_trades(tmp_path / "a.parquet")


def test_the_error_for_a_missing_file_or_column_names_it(tmp_path: Path) -> None:
    with pytest.raises(TradesError, match="no such file"):
        load_trades(tmp_path / "none.csv")
    path = write(tmp_path / "a.csv", "time,price,size\n1,1,1\n")
    with pytest.raises(TradesError, match="no column 'px'; it has time, price, size"):
        load_trades(path, ColumnNames(price="px"))


def test_the_same_seed_generates_the_same_trades() -> None:
    one, same, other = generate_trades(1000, 7), generate_trades(1000, 7), generate_trades(1000, 8)
    assert np.array_equal(one.records, same.records)
    assert not np.array_equal(one.records, other.records)
    assert (np.diff(one.records["time_ns"]) >= 0).all()
    assert len(one.symbols) == 4


def test_totals_of_several_parts_equal_the_totals_of_all_records() -> None:
    records = generate_trades(10_000).records
    records["sequence"] = np.arange(len(records))
    totals = Totals()
    for start in range(0, len(records), 777):
        totals.add(records[start : start + 777])
    assert totals.received == len(records)
    for name, symbol in totals.by_symbol.items():
        mine = records[records["symbol"] == name.encode()]
        assert symbol.trades == len(mine)
        assert (symbol.last, symbol.high, symbol.low) == (mine["price"][-1], mine["price"].max(), mine["price"].min())
        assert symbol.volume == pytest.approx(mine["quantity"].sum())


def test_a_missing_trade_raises_an_error() -> None:
    records = generate_trades(10).records
    records["sequence"] = np.arange(10)
    with pytest.raises(RuntimeError, match="expected trade 4 but received 5"):
        Totals().add(np.delete(records, 4))
