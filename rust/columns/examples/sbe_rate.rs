//! Measures the time for decoding SBE messages to columns, beside records of the same fields, and for encoding the
//! columns again.
//!
//! The cases alternate in each of several rounds. Prints the median in nanoseconds for each row or entry, and the rate
//! relative to another case: the median of the rounds, with the first and the last of ten parts.

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
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch};
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
      <field name="level" id="5" type="uint8"/><field name="side" id="6" type="uint8"/>
      <field name="time" id="7" type="uint64" semanticType="UTCTimestamp"/></group></message>
</messageSchema>"#;
const LAYOUT: &str = "ts ts_ns, px f64, qty i64, sym i32, side i32, seq i64, flags i64";
const ROWS: usize = 100_000;
const ENTRIES: usize = 10;
const ROUNDS: usize = 30;

/// A measured function.
struct Case<'a> {
    name: String,
    rows: usize,
    run: Box<dyn FnMut() -> usize + 'a>,
    /// Index of the case with which the rate is compared.
    reference: usize,
    /// Nanoseconds for each row, in each round.
    times: Vec<f64>,
}

fn main() {
    let schema = SbeSchema::parse(SCHEMA).expect("a sound schema");
    let plan = SbePlan::new(&schema, &SbePlanOptions::default()).expect("no options");
    let plan = Arc::new(plan);
    let layout: RecordLayout = LAYOUT.parse().expect("a layout");
    let decoder = RecordDecoder::new(&layout.with_nanoseconds());
    let records = vec![1; 48 * ROWS];

    let trade = SbeRecord {
        fields: (0..7).map(|number| SbeValue::from(number as i64)).collect(),
        ..SbeRecord::default()
    };
    let trades = Messages::new("Trade", &plan, &trade, ROWS);
    let entry = SbeRecord {
        fields: vec![
            SbeValue::Decimal {
                mantissa: 5,
                exponent: 0,
            },
            SbeValue::from(1i64),
            SbeValue::from(2u64),
            SbeValue::from(3u64),
            SbeValue::from(1_700_000_000_000_000_000u64),
        ],
        ..SbeRecord::default()
    };
    let book = SbeRecord {
        fields: vec![SbeValue::from(1i64)],
        groups: vec![vec![entry; ENTRIES]],
        data: Vec::new(),
    };
    let books = Messages::new("Book", &plan, &book, ROWS / ENTRIES);
    let mut cases = Vec::new();
    add(&mut cases, "records", ROWS, 0, || {
        decoder.decode(&records).expect("sound").len()
    });
    for (messages, entries) in [(&trades, 1), (&books, ENTRIES)] {
        let (name, rows) = (messages.name, messages.bytes.len() * entries);
        let decoded = add(&mut cases, name, rows, 0, || messages.decode().len());
        let encoded = format!("{name} encoded");
        add(&mut cases, &encoded, rows, decoded, || messages.encode());
    }
    measure(&mut cases);
    for case in &cases {
        let reference = &cases[case.reference];
        let rates = case.times.iter().zip(&reference.times);
        let rates = sorted(rates.map(|(time, reference)| reference / time).collect());
        let (median, least) = (sorted(case.times.clone())[ROUNDS / 2], ROUNDS / 10);
        println!(
            "{:14} {median:6.2} ns  {:.2} ({:.2} to {:.2}) of {}",
            case.name,
            rates[ROUNDS / 2],
            rates[least],
            rates[ROUNDS - 1 - least],
            reference.name,
        );
    }
}

fn add<'a>(
    cases: &mut Vec<Case<'a>>,
    name: &str,
    rows: usize,
    reference: usize,
    run: impl FnMut() -> usize + 'a,
) -> usize {
    cases.push(Case {
        name: name.to_owned(),
        rows,
        run: Box::new(run),
        reference,
        times: Vec::new(),
    });
    cases.len() - 1
}

fn measure(cases: &mut [Case<'_>]) {
    for _ in 0..ROUNDS {
        for case in cases.iter_mut() {
            let begin = Instant::now();
            black_box((case.run)());
            let time = begin.elapsed().as_nanos() as f64 / case.rows as f64;
            case.times.push(time);
        }
    }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// Messages of a template, and the rows that they become.
struct Messages {
    name: &'static str,
    bytes: BinaryArray,
    columns: SbeColumns,
    encoder: SbeEncoder,
    rows: RecordBatch,
}

impl Messages {
    fn new(name: &'static str, plan: &Arc<SbePlan>, record: &SbeRecord<'_>, count: usize) -> Self {
        let mut message = Vec::new();
        let template = plan.template(name).expect("a template");
        template.encode(record, &mut message).expect("sound values");
        let columns = SbeColumns::new(plan, name, None, SbeColumnOptions::default());
        let columns = columns.expect("a template");
        let mut messages = Self {
            name,
            bytes: BinaryArray::from_iter_values((0..count).map(|_| &message)),
            rows: RecordBatch::new_empty(Arc::new(Schema::new(columns.fields()))),
            columns,
            encoder: SbeEncoder::new(plan, name).expect("a template"),
        };
        let decoded = messages.decode();
        messages.rows = RecordBatch::try_new(messages.rows.schema(), decoded).expect("columns");
        messages
    }

    fn decode(&self) -> Vec<ArrayRef> {
        let all: Vec<usize> = (0..self.columns.fields().len()).collect();
        let payloads = Payloads::of(&self.bytes).expect("bytes");
        let decoded = self
            .columns
            .decode_messages(&payloads, None, &all, 0, Mode::FailFast);
        decoded.expect("sound messages").decoded.columns
    }

    fn encode(&self) -> usize {
        let mut encoded = EncodedRows::default();
        let written = self.encoder.encode(&self.rows, &mut encoded);
        written.expect("sound values");
        encoded.bytes.len()
    }
}
