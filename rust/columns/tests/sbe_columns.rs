//! SBE messages as columns: values, nulls, versions, groups and malformed messages.

use std::borrow::Cow;
use std::sync::Arc;

use aeron_columns::sbe::{
    SbeBadMessage, SbeColumnOptions, SbeColumns, SbeDecoded, SbeEncoder, SbeSetColumn,
};
use aeron_columns::write::EncodedRows;
use aeron_sbe::plan::{SbePlan, SbePlanOptions};
use aeron_sbe::schema::SbeSchema;
use aeron_sbe::value::{SbeRecord, SbeValue};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampNanosecondType, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Schema, TimeUnit};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

const MARKET: &str = include_str!("../../../tests/sbe/market.xml");
const NANOSECONDS: i64 = 1_700_000_000_123_456_789;

fn market() -> Arc<SbePlan> {
    let schema = SbeSchema::parse(MARKET).expect("a sound schema");
    Arc::new(SbePlan::new(&schema, &SbePlanOptions::default()).expect("no options"))
}

fn columns(template: &str, group: Option<&str>) -> SbeColumns {
    SbeColumns::new(&market(), template, group, SbeColumnOptions::default()).expect("a template")
}

fn encoded(template: &str, record: &SbeRecord<'_>) -> Vec<u8> {
    let plan = market();
    let template = plan.template(template).expect("a template");
    let mut bytes = Vec::new();
    template.encode(record, &mut bytes).expect("sound values");
    bytes
}

/// Returns a trade with this id. Its quantity is null if the id is even.
fn trade(id: u64) -> Vec<u8> {
    let quantity = match id % 2 {
        0 => SbeValue::Null,
        _ => SbeValue::from(id as i64 * 10),
    };
    let record = SbeRecord {
        fields: vec![
            SbeValue::from(NANOSECONDS),
            SbeValue::from(id),
            SbeValue::from("Sell"),
            SbeValue::Decimal {
                mantissa: 12_345,
                exponent: -2,
            },
            quantity,
            SbeValue::from("ESZ6"),
            SbeValue::from(3u64),
            SbeValue::from(20_000u64),
        ],
        ..SbeRecord::default()
    };
    encoded("Trade", &record)
}

fn book(prices: &[Option<i128>], orders: u64, note: &'static [u8]) -> Vec<u8> {
    let order = |id: u64| SbeRecord {
        fields: vec![SbeValue::from(id), SbeValue::from(id * 100)],
        ..SbeRecord::default()
    };
    let entry = |price: &Option<i128>| SbeRecord {
        fields: vec![
            price.map_or(SbeValue::Null, |mantissa| SbeValue::Decimal {
                mantissa,
                exponent: 0,
            }),
            SbeValue::from(7i64),
            SbeValue::from(-5i64),
            SbeValue::from("Change"),
            SbeValue::from("Buy"),
        ],
        groups: vec![(0..orders).map(order).collect()],
        data: Vec::new(),
    };
    let record = SbeRecord {
        fields: vec![
            SbeValue::from(NANOSECONDS),
            SbeValue::List(vec![
                SbeValue::from("LastQuote"),
                SbeValue::from("EndOfEvent"),
            ]),
        ],
        groups: vec![prices.iter().map(entry).collect()],
        data: vec![Some(Cow::Borrowed(note))],
    };
    encoded("BookUpdate", &record)
}

fn decode(columns: &SbeColumns, messages: &[Vec<u8>]) -> Result<SbeDecoded, SbeBadMessage> {
    let bytes: Vec<u8> = messages.concat();
    let ends = messages.iter().scan(0, |end, message| {
        *end += message.len();
        Some(*end)
    });
    let count = columns.fields().len() + columns.header_fields().len();
    let all: Vec<usize> = (0..count).collect();
    columns.decode(&bytes, 0, ends, &all)
}

/// Returns the column of a name.
fn column(columns: &SbeColumns, decoded: &SbeDecoded, name: &str) -> ArrayRef {
    let fields = columns.fields().into_iter().chain(columns.header_fields());
    let mut fields = fields.zip(&decoded.columns);
    let found = fields.find(|(field, _)| field.name() == name);
    let (field, array) = found.expect("a column of this name");
    assert_eq!(field.data_type(), array.data_type(), "{name}");
    Arc::clone(array)
}

fn texts(array: &dyn Array) -> Vec<Option<String>> {
    let dictionary = array.as_any_dictionary_opt();
    let text = |values: &StringArray, index: usize| values.value(index).to_owned();
    (0..array.len())
        .map(|row| {
            array.is_valid(row).then(|| match dictionary {
                Some(dictionary) => text(
                    dictionary.values().as_string(),
                    dictionary.normalized_keys()[row],
                ),
                None => text(array.as_string(), row),
            })
        })
        .collect()
}

#[test]
fn fields_of_fixed_messages_become_typed_columns() {
    let trades = columns("Trade", None);
    let decoded = decode(&trades, &[trade(7), trade(8)]).expect("sound messages");
    let get = |name| column(&trades, &decoded, name);
    assert_eq!((decoded.rows, decoded.unknown), (2, 0));
    let times = get("transactTime");
    let utc = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
    assert_eq!(times.data_type(), &utc);
    let times = times.as_primitive::<TimestampNanosecondType>();
    assert_eq!(times.value(1), NANOSECONDS);
    assert_eq!(
        get("tradeId").as_primitive::<UInt32Type>().values()[..],
        [7, 8]
    );
    assert_eq!(
        texts(&get("side")),
        [Some("Sell".to_owned()), Some("Sell".to_owned())]
    );
    let price = get("price");
    assert_eq!(price.data_type(), &DataType::Decimal128(19, 9));
    assert_eq!(
        price.as_primitive::<Decimal128Type>().value(0),
        123_450_000_000
    );
    let quantity = get("quantity");
    assert_eq!(quantity.as_primitive::<Int32Type>().value(0), 70);
    assert!(quantity.is_valid(0) && quantity.is_null(1));
    assert_eq!(texts(&get("symbol"))[1].as_deref(), Some("ESZ6"));
    assert_eq!(get("expiry").as_primitive::<Date32Type>().value(0), 20_000);
    assert_eq!(get("template_id").as_primitive::<UInt32Type>().value(1), 1);
    assert_eq!(get("schema_id").as_primitive::<UInt32Type>().value(1), 71);
    assert_eq!(get("version").as_primitive::<UInt32Type>().value(1), 2);
}

#[test]
fn a_field_that_is_newer_than_the_message_is_null() {
    let trades = columns("Trade", None);
    let mut old = trade(1);
    old[0] = 37; // the block of version 0
    old[6] = 0; // the version
    old.truncate(8 + 37);
    let decoded = decode(&trades, &[trade(2), old.clone(), old, trade(4)]).expect("sound");
    let venue = column(&trades, &decoded, "venue");
    let venues: Vec<_> = venue.as_primitive::<UInt16Type>().iter().collect();
    assert_eq!(venues, [Some(3), None, None, Some(3)]);
    let versions = column(&trades, &decoded, "version");
    assert_eq!(
        versions.as_primitive::<UInt32Type>().values()[..],
        [2, 0, 0, 2]
    );
    let ids = column(&trades, &decoded, "tradeId");
    assert_eq!(ids.as_primitive::<UInt32Type>().values()[..], [2, 1, 1, 4]);
}

#[test]
fn a_value_that_the_enum_does_not_know_is_null_and_counted_or_refused() {
    let mut odd = trade(1);
    odd[8 + 12] = b'X';
    let trades = columns("Trade", None);
    let decoded = decode(&trades, &[trade(1), odd.clone()]).expect("unknown values are allowed");
    let side = column(&trades, &decoded, "side");
    assert!(side.is_valid(0) && side.is_null(1));
    assert_eq!(decoded.unknown, 1);

    let options = SbeColumnOptions {
        refuses_unknown: true,
        ..SbeColumnOptions::default()
    };
    let strict = SbeColumns::new(&market(), "Trade", None, options).expect("a template");
    let bad = decode(&strict, &[trade(1), odd]).expect_err("a value is unknown");
    assert_eq!(bad.message, 1);
    assert!(bad.reason.contains("'side'"), "{bad}");
}

#[test]
fn groups_become_lists_of_structures_with_their_groups_inside() {
    let books = columns("BookUpdate", None);
    let messages = [
        book(&[Some(5), None], 2, b"ok"),
        book(&[], 0, "\u{e9}".as_bytes()),
        book(&[Some(-1)], 0, b""),
    ];
    let decoded = decode(&books, &messages).expect("sound messages");
    let entries = column(&books, &decoded, "entries");
    let entries = entries.as_list::<i32>();
    assert_eq!(entries.offsets()[..], [0, 2, 2, 3]);
    let entries = entries.values().as_struct();
    let prices: Vec<_> = entries
        .column_by_name("price")
        .expect("a field")
        .as_primitive::<Decimal128Type>()
        .iter()
        .collect();
    assert_eq!(prices, [Some(5_000_000_000), None, Some(-1_000_000_000)]);
    let orders = entries.column_by_name("orders").expect("a group");
    let orders = orders.as_list::<i32>();
    assert_eq!(orders.offsets()[..], [0, 2, 4, 4]);
    let ids = orders.values().as_struct().column(0);
    assert_eq!(ids.as_primitive::<UInt64Type>().values()[..], [0, 1, 0, 1]);
    let notes = texts(&column(&books, &decoded, "note"));
    let notes: Vec<_> = notes.iter().map(Option::as_deref).collect();
    assert_eq!(notes, [Some("ok"), Some("é"), Some("")]);
    let flags = column(&books, &decoded, "flags");
    let flags = flags.as_list::<i32>();
    assert_eq!(flags.value_length(0), 2);
    assert_eq!(flags.values().as_string::<i32>().value(1), "EndOfEvent");
}

#[test]
fn each_entry_of_a_chosen_group_is_a_row_with_the_fields_of_its_message() {
    let rows = columns("BookUpdate", Some("entries"));
    let messages = [
        book(&[Some(5), None], 1, b"first"),
        book(&[], 0, b"none"),
        book(&[Some(6)], 0, b"third"),
    ];
    let counts = messages
        .iter()
        .map(|message| rows.rows(message).expect("sound"));
    assert_eq!(counts.collect::<Vec<_>>(), [Some(2), Some(0), Some(1)]);
    let decoded = decode(&rows, &messages).expect("sound messages");
    assert_eq!(decoded.rows, 3);
    let notes = texts(&column(&rows, &decoded, "note"));
    let notes: Vec<_> = notes.iter().flatten().collect();
    assert_eq!(notes, ["first", "first", "third"]);
    let prices = column(&rows, &decoded, "price");
    let prices: Vec<_> = prices.as_primitive::<Decimal128Type>().iter().collect();
    assert_eq!(prices, [Some(5_000_000_000), None, Some(6_000_000_000)]);
    let orders = column(&rows, &decoded, "orders");
    assert_eq!(orders.as_list::<i32>().offsets()[..], [0, 1, 2, 2]);
}

#[test]
fn messages_of_other_templates_and_schemas_are_no_rows() {
    let trades = columns("Trade", None);
    assert_eq!(trades.rows(&trade(1)), Ok(Some(1)));
    assert_eq!(trades.rows(&book(&[], 0, b"")), Ok(None));
    let mut other = trade(1);
    other[4] = 72; // the schema's id
    assert_eq!(trades.rows(&other), Ok(None));
}

#[test]
fn a_part_of_a_message_is_malformed() {
    let cases = [
        ("Trade", trade(1)),
        ("BookUpdate", book(&[Some(1)], 3, b"note")),
    ];
    for (template, message) in cases {
        let columns = columns(template, None);
        for length in 0..message.len() {
            let rows = columns.rows(&message[..length]);
            // A part with the fixed fields of the version is whole: the padding of a block may not be cut.
            assert!(rows.is_err(), "{template}: {length} bytes: {rows:?}");
        }
    }
}

#[test]
fn a_text_outside_its_character_set_is_refused_with_message_and_field() {
    let trades = columns("Trade", None);
    let mut bad = trade(3);
    bad[8 + 25] = 0xff;
    let refused = decode(&trades, &[trade(1), trade(2), bad]).expect_err("a text is bad");
    assert_eq!(refused.message, 2);
    assert!(refused.reason.contains("symbol"), "{refused}");
}

#[test]
fn a_time_beyond_64_bits_is_refused() {
    let trades = columns("Trade", None);
    let mut late = trade(3);
    late[8..16].fill(0xff);
    let refused = decode(&trades, &[late]).expect_err("a time is beyond the column");
    assert!(refused.reason.contains("transactTime"), "{refused}");
}

#[test]
fn columns_for_spark_have_no_unsigned_integers_and_no_dictionaries() {
    let options = SbeColumnOptions {
        for_spark: true,
        ..SbeColumnOptions::default()
    };
    let trades = SbeColumns::new(&market(), "Trade", None, options).expect("a template");
    let decoded = decode(&trades, &[trade(7)]).expect("sound");
    let get = |name| column(&trades, &decoded, name);
    assert_eq!(get("tradeId").as_primitive::<Int64Type>().value(0), 7);
    assert_eq!(texts(&get("side")), [Some("Sell".to_owned())]);
    assert_eq!(get("side").data_type(), &DataType::Utf8);
    let times = get("transactTime");
    let times = times.as_primitive::<TimestampMicrosecondType>();
    assert_eq!(times.value(0), NANOSECONDS.div_euclid(1000));
}

#[test]
fn unknown_templates_and_groups_are_refused_with_the_known_names() {
    let refused = |template, group| {
        let columns = SbeColumns::new(&market(), template, group, SbeColumnOptions::default());
        columns.expect_err("the name is unknown").to_string()
    };
    assert!(refused("Quote", None).contains("Trade, BookUpdate, Instrument"));
    assert!(refused("BookUpdate", Some("legs")).contains("it has entries"));
}

/// Returns the columns of all elements as a record batch.
fn batch(columns: &SbeColumns, decoded: SbeDecoded) -> RecordBatch {
    let fields = columns.fields();
    let arrays = decoded.columns.into_iter().take(fields.len()).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns of these types")
}

fn reencoded(template: &str, messages: &[Vec<u8>], options: SbeColumnOptions) -> Vec<Vec<u8>> {
    let columns = SbeColumns::new(&market(), template, None, options).expect("a template");
    let decoded = decode(&columns, messages).expect("sound messages");
    let mut encoded = EncodedRows::default();
    let encoder = SbeEncoder::new(&market(), template).expect("a template");
    let rows = batch(&columns, decoded);
    encoder.encode(&rows, &mut encoded).expect("sound values");
    let payloads = encoded.payloads();
    (0..payloads.count())
        .map(|index| payloads.at(index).to_vec())
        .collect()
}

/// Returns books of any prices, numbers of orders and notes.
fn books() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let prices = vec(option::of(-1_000_000_i128..1_000_000), 0..4);
    let notes = prop_oneof![
        Just(&b""[..]),
        Just(&b"a note"[..]),
        Just("\u{e9}".as_bytes())
    ];
    vec((prices, 0..3_u64, notes), 0..5).prop_map(|books| {
        let books = books.into_iter();
        let encoded = books.map(|(prices, orders, note)| book(&prices, orders, note));
        encoded.collect()
    })
}

proptest! {
    #[test]
    fn messages_that_became_columns_are_encoded_to_the_same_bytes(
        ids in vec(0..1_000_u64, 0..20),
        books in books(),
        booleans: bool,
    ) {
        let sets = if booleans { SbeSetColumn::Booleans } else { SbeSetColumn::Names };
        let options = SbeColumnOptions { sets, ..SbeColumnOptions::default() };
        let trades: Vec<_> = ids.into_iter().map(trade).collect();
        prop_assert_eq!(&reencoded("Trade", &trades, options), &trades);
        prop_assert_eq!(&reencoded("BookUpdate", &books, options), &books);
    }

    #[test]
    fn damaged_messages_are_rows_or_errors(
        books in books(),
        id: u8,
        edits in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut: prop::sample::Index,
    ) {
        let mut damaged: Vec<_> = books.into_iter().chain([trade(id.into())]).collect();
        for message in &mut damaged {
            for (place, byte) in &edits {
                let place = place.index(message.len());
                message[place] = *byte;
            }
        }
        let cut = cut.index(damaged[0].len());
        damaged[0].truncate(cut);
        let kinds = [("Trade", None), ("BookUpdate", None), ("BookUpdate", Some("entries"))];
        for (template, group) in kinds {
            let columns = columns(template, group);
            let rows = damaged.iter().map(|message| columns.rows(message));
            let accepted = damaged.iter().zip(rows);
            let accepted = accepted.filter_map(|(message, rows)| Some((message.clone(), rows.ok()??)));
            let (accepted, rows): (Vec<_>, Vec<_>) = accepted.unzip();
            if let Ok(decoded) = decode(&columns, &accepted) {
                prop_assert_eq!(decoded.rows, rows.iter().sum::<usize>());
                prop_assert!(decoded.columns.iter().all(|column| column.len() == decoded.rows));
            }
        }
    }
}
