//! Measures the time for decoding SBE messages to columns, beside records of the same fields, and for encoding the
//! columns again. Prints the median of several runs in nanoseconds for each row or entry.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use aeron_columns::layout::{RecordDecoder, RecordLayout};
use aeron_columns::read::Mode;
use aeron_columns::sbe::{SbeColumnOptions, SbeColumns, SbeEncoder};
use aeron_columns::write::{EncodedRows, Payloads};
use aeron_sbe::plan::{SbePlan, SbePlanOptions};
use aeron_sbe::schema::SbeSchema;
use aeron_sbe::value::{SbeRecord, SbeValue};
use arrow_array::{BinaryArray, RecordBatch};
use arrow_schema::Schema;

const SCHEMA: &str = r#"<messageSchema id="1" version="0"><types>
  <composite name="messageHeader"><type name="blockLength" primitiveType="uint16"/>
    <type name="templateId" primitiveType="uint16"/><type name="schemaId" primitiveType="uint16"/>
    <type name="version" primitiveType="uint16"/></composite>
  <composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint16"/>
    <type name="numInGroup" primitiveType="uint8"/></composite>
  <composite name="price"><type name="mantissa" primitiveType="int64"/>
    <type name="exponent" primitiveType="int8" presence="constant">-9</type></composite></types>
  <message name="Trade" id="1"><field name="ts" id="1" type="uint64" semanticType="UTCTimestamp"/>
    <field name="px" id="2" type="double"/><field name="qty" id="3" type="int64"/>
    <field name="sym" id="4" type="int32"/><field name="side" id="5" type="int32"/>
    <field name="seq" id="6" type="int64"/><field name="flags" id="7" type="int64"/></message>
  <message name="Book" id="2"><field name="ts" id="1" type="uint64"/>
    <group name="entries" id="2"><field name="px" id="3" type="price"/><field name="qty" id="4" type="int32"/>
      <field name="level" id="5" type="uint8"/><field name="side" id="6" type="uint8"/></group></message>
</messageSchema>"#;
const LAYOUT: &str = "ts ts_ns, px f64, qty i64, sym i32, side i32, seq i64, flags i64";
const ROWS: usize = 100_000;
const ENTRIES: usize = 10;
const RUNS: usize = 15;

fn main() {
    let schema = SbeSchema::parse(SCHEMA).expect("a sound schema");
    let plan = SbePlan::new(&schema, &SbePlanOptions::default()).expect("no options");
    let plan = Arc::new(plan);
    let layout: RecordLayout = LAYOUT.parse().expect("a layout");
    let decoder = RecordDecoder::new(&layout.with_nanoseconds());
    let records = vec![1; 48 * ROWS];
    report("records", ROWS, || {
        decoder.decode(&records).expect("sound").len()
    });

    let trade = SbeRecord {
        fields: (0..7).map(|number| SbeValue::from(number as i64)).collect(),
        ..SbeRecord::default()
    };
    decode("Trade", &plan, &trade, ROWS, 1);
    let entry = SbeRecord {
        fields: vec![
            SbeValue::Decimal {
                mantissa: 5,
                exponent: 0,
            },
            SbeValue::from(1i64),
            SbeValue::from(2u64),
            SbeValue::from(3u64),
        ],
        ..SbeRecord::default()
    };
    let book = SbeRecord {
        fields: vec![SbeValue::from(1i64)],
        groups: vec![vec![entry; ENTRIES]],
        data: Vec::new(),
    };
    decode("Book", &plan, &book, ROWS / ENTRIES, ENTRIES);
}

fn decode(name: &str, plan: &Arc<SbePlan>, record: &SbeRecord<'_>, count: usize, entries: usize) {
    let mut message = Vec::new();
    let template = plan.template(name).expect("a template");
    template.encode(record, &mut message).expect("sound values");
    let messages = BinaryArray::from_iter_values((0..count).map(|_| &message));
    let columns = SbeColumns::new(plan, name, None, SbeColumnOptions::default());
    let columns = columns.expect("a template");
    let all: Vec<usize> = (0..columns.fields().len()).collect();
    let payloads = Payloads::of(&messages).expect("bytes");
    report(name, count * entries, || {
        let decoded = columns.decode_messages(&payloads, None, &all, 0, Mode::FailFast);
        decoded.expect("sound messages").decoded.columns.len()
    });
    let decoded = columns.decode_messages(&payloads, None, &all, 0, Mode::FailFast);
    let decoded = decoded.expect("sound messages").decoded;
    let schema = Arc::new(Schema::new(columns.fields()));
    let rows = RecordBatch::try_new(schema, decoded.columns).expect("columns of the fields");
    let encoder = SbeEncoder::new(plan, name).expect("a template");
    report(&format!("{name} encoded"), count * entries, || {
        let mut encoded = EncodedRows::default();
        encoder.encode(&rows, &mut encoded).expect("sound values");
        encoded.bytes.len()
    });
}

fn report(name: &str, rows: usize, mut run: impl FnMut() -> usize) {
    let mut times: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            black_box(run());
            begin.elapsed().as_nanos() as f64 / rows as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{name:14} {:6.2} ns  (least {:.2})",
        times[RUNS / 2],
        times[0]
    );
}
