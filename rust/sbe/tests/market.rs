//! The plan of a schema in the shape of an exchange's: trades with later fields, and a book with nested groups.

use aeron_sbe::plan::{SbeExponent, SbeKind, SbePlan, SbePlanOptions, SbeTimeKind, SbeTimeUnit};
use aeron_sbe::schema::{SbePresence, SbeSchema};

const MARKET: &str = include_str!("../../../tests/sbe/market.xml");

fn market() -> SbePlan {
    let schema = SbeSchema::parse(MARKET).expect("a sound schema");
    SbePlan::new(&schema, &SbePlanOptions::default()).expect("no options")
}

#[test]
fn fields_have_the_offsets_of_the_sum_of_the_lengths_before_them() {
    let plan = market();
    let fields = &plan.template("Trade").expect("a template").block.fields;
    let offsets: Vec<_> = fields
        .iter()
        .map(|field| (field.name.as_str(), field.offset, field.length))
        .collect();
    assert_eq!(
        offsets,
        [
            ("transactTime", 0, 8),
            ("tradeId", 8, 4),
            ("side", 12, 1),
            ("price", 13, 8),
            ("quantity", 21, 4),
            ("symbol", 25, 12),
            ("venue", 37, 2),
            ("expiry", 39, 2),
        ]
    );
}

#[test]
fn a_composite_of_mantissa_and_exponent_is_a_decimal() {
    let plan = market();
    let block = &plan.template("BookUpdate").expect("a template").block;
    let price = &block.groups[0].block.fields[0];
    let SbeKind::Decimal(decimal) = &price.kind else {
        panic!("{:?}", price.kind)
    };
    assert_eq!(decimal.exponent, SbeExponent::Constant(-9));
    assert_eq!(price.presence, SbePresence::Optional);
}

#[test]
fn an_integer_with_a_semantic_type_of_time_is_a_time() {
    let plan = market();
    let block = &plan.template("Trade").expect("a template").block;
    let SbeKind::Time(time) = &block.fields[0].kind else {
        panic!("{:?}", block.fields[0].kind)
    };
    assert_eq!(
        (time.kind, time.unit()),
        (SbeTimeKind::Timestamp, SbeTimeUnit::Nanosecond)
    );
    let SbeKind::Time(date) = &block.fields[7].kind else {
        panic!("{:?}", block.fields[7].kind)
    };
    assert_eq!(date.kind, SbeTimeKind::Date);
}

#[test]
fn the_least_length_of_a_block_grows_with_the_version() {
    let plan = market();
    let block = &plan.template("Trade").expect("a template").block;
    let lengths = [0, 1, 2, 9].map(|version| block.least_length(version));
    assert_eq!(lengths, [37, 39, 41, 41]);
    assert_eq!(block.block_length, 48);
}
