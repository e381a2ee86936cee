//! Entries of groups as rows: the rows are those of the nested lists.

use std::sync::Arc;

use crate::generated::{Choices, Document, Features, record};
use crate::sbe_support::plan_of;
use aeron_columns::sbe::{SbeColumnOptions, SbeColumns, SbeDecoded};
use aeron_sbe::plan::{SbeBlockPlan, SbePlan, SbePlanOptions, SbeTemplate};
use aeron_sbe::schema::{SbePresence, SbeSchema};
use aeron_sbe::value::{SbeRecord, SbeValue};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, StructArray, UInt64Array};
use arrow_schema::Fields;
use proptest::collection::vec;
use proptest::prelude::*;

fn message_of(template: &SbeTemplate, record: &SbeRecord<'_>) -> Vec<u8> {
    let mut message = Vec::new();
    template.encode(record, &mut message).expect("sound values");
    message
}

fn decoded(columns: &SbeColumns, messages: &[Vec<u8>], selected: &[usize]) -> Option<SbeDecoded> {
    let ends = messages.iter().scan(0, |end, message| {
        *end += message.len();
        Some(*end)
    });
    // A value that no column can hold is tested elsewhere.
    columns.decode(&messages.concat(), 0, ends, selected).ok()
}

fn all_of(columns: &SbeColumns) -> Vec<usize> {
    (0..columns.fields().len()).collect()
}

/// Returns the paths of all groups.
fn paths(plan: &SbeBlockPlan, before: &str) -> Vec<String> {
    let of_group = |group: &aeron_sbe::plan::SbeGroup| {
        let path = format!("{before}{}", group.name);
        let mut inner = paths(&group.block, &format!("{path}."));
        inner.insert(0, path);
        inner
    };
    plan.groups.iter().flat_map(of_group).collect()
}

/// Returns the columns of a block at a path, repeated for the rows of the last one. `rows` has the block's columns by
/// name.
fn exploded(plan: &SbeBlockPlan, rows: &StructArray, path: &[&str]) -> Vec<ArrayRef> {
    let column = |name: &str| Arc::clone(rows.column_by_name(name).expect("a column"));
    let fields = plan.fields.iter();
    let fields = fields.filter(|field| field.presence != SbePresence::Constant);
    let mut columns: Vec<ArrayRef> = fields.map(|field| column(&field.name)).collect();
    let data = plan.data.iter().map(|data| column(&data.name));
    let Some((name, rest)) = path.split_first() else {
        columns.extend(plan.groups.iter().map(|group| column(&group.name)));
        columns.extend(data);
        return columns;
    };
    columns.extend(data);
    let lists = column(name);
    let lists = lists.as_list::<i32>();
    let group = plan.group(name).expect("a group");
    let entries = lists.values().as_struct();
    let inner = exploded(&group.block, entries, rest);
    // The index of the last level's rows in the entries of this group, and then in the rows.
    let entries_of_rows = parents(&group.block, entries, rest);
    let parent = |entry: u64| lists.offsets().partition_point(|end| *end as u64 <= entry) - 1;
    let indexes = entries_of_rows.iter().map(|entry| parent(*entry) as u64);
    let indexes = UInt64Array::from_iter_values(indexes);
    let repeated = columns.iter().map(|column| {
        arrow_select::take::take(column.as_ref(), &indexes, None).expect("indexes of rows")
    });
    repeated
        .collect::<Vec<_>>()
        .into_iter()
        .chain(inner)
        .collect()
}

/// Returns the row of a block around each row of the last block of a path.
fn parents(plan: &SbeBlockPlan, rows: &StructArray, path: &[&str]) -> Vec<u64> {
    let Some((name, rest)) = path.split_first() else {
        return (0..rows.len() as u64).collect();
    };
    let lists = rows.column_by_name(name).expect("a group").as_list::<i32>();
    let group = plan.group(name).expect("a group");
    let inner = parents(&group.block, lists.values().as_struct(), rest);
    let parent = |entry: &u64| lists.offsets().partition_point(|end| *end as u64 <= *entry) - 1;
    inner.iter().map(|entry| parent(entry) as u64).collect()
}

proptest! {
    /// 13-34
    #[test]
    fn rows_of_a_path_are_those_of_the_nested_lists(
        bytes in vec(any::<u8>(), 0..800),
        rows in 0_usize..6,
        features in prop_oneof![Just(Features::All), Just(Features::Reference)],
    ) {
        let mut choices = Choices::new(&bytes);
        let document = Document::new(&mut choices, features);
        let text = document.text("generated", document.version);
        let schema = SbeSchema::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let plan = Arc::new(SbePlan::new(&schema, &SbePlanOptions::default()).expect("no options"));
        for template in &plan.templates {
            let messages: Vec<_> = (0..rows)
                .map(|_| message_of(template, &record(&mut choices, &template.block)))
                .collect();
            let options = SbeColumnOptions::default();
            let lists = SbeColumns::new(&plan, &template.name, None, options).expect("columns");
            let Some(whole) = decoded(&lists, &messages, &all_of(&lists)) else {
                continue;
            };
            if whole.columns.is_empty() {
                continue;
            }
            let fields: Fields = lists.fields().into();
            let whole = StructArray::new(fields, whole.columns, None);
            for path in paths(&template.block, "") {
                let columns = SbeColumns::new(&plan, &template.name, Some(&path), options);
                let columns = columns.expect("names of the generator differ");
                let found = decoded(&columns, &messages, &all_of(&columns)).expect("sound messages");
                let names: Vec<_> = path.split('.').collect();
                let expected = exploded(&template.block, &whole, &names);
                let counts = messages.iter().map(|message| columns.rows(message).expect("sound"));
                prop_assert_eq!(found.rows, counts.map(Option::unwrap_or_default).sum::<usize>());
                prop_assert_eq!(found.columns.len(), expected.len());
                for (column, expected) in found.columns.iter().zip(&expected) {
                    prop_assert_eq!(column, expected, "{}", path);
                }
                let none = decoded(&columns, &messages, &[]).expect("sound messages");
                prop_assert_eq!(none.rows, found.rows);
            }
        }
    }
}

const ORDER: &str = r#"<field name="id" id="1" type="int64"/><field name="price" id="2" type="int64"/>
    <group name="legs" id="3"><field name="price" id="4" type="int64"/><field name="two" id="5" type="two"/>
      <group name="fills" id="6"><field name="price" id="7" type="int64"/><field name="size" id="8" type="int64"/>
        <field name="two" id="9" type="two"/></group></group>
    <group name="others" id="10"><field name="x" id="11" type="int64"/></group>"#;
const TYPES: &str = r#"<type name="two" primitiveType="uint8" presence="constant">2</type>"#;

fn of_path(plan: &Arc<SbePlan>, path: &str) -> Result<SbeColumns, String> {
    let columns = SbeColumns::new(plan, "M", Some(path), SbeColumnOptions::default());
    columns.map_err(|error| error.to_string())
}

fn order() -> SbeRecord<'static> {
    let entry = |values: &[i64], groups| SbeRecord {
        fields: values
            .iter()
            .map(|value| match value {
                2 => SbeValue::Null,
                value => SbeValue::from(*value),
            })
            .collect(),
        groups,
        data: Vec::new(),
    };
    let fill = |price, size| entry(&[price, size, 2], Vec::new());
    let legs = vec![
        entry(&[20, 2], vec![vec![fill(30, 40), fill(31, 41)]]),
        entry(&[21, 2], vec![vec![]]),
        entry(&[22, 2], vec![vec![fill(32, 42)]]),
    ];
    entry(&[1, 10], vec![legs, vec![entry(&[7], Vec::new())]])
}

/// 13-34
#[test]
fn a_row_of_a_nested_group_has_the_columns_of_all_blocks_around_it() {
    let plan = plan_of(TYPES, ORDER);
    let columns = of_path(&plan, "legs.fills").expect("a nested group");
    let names: Vec<_> = columns
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect();
    assert_eq!(names, ["id", "price", "legs_price", "fills_price", "size"]);
    let message = message_of(&plan.templates[0], &order());
    let found = decoded(&columns, &[message.clone(), message], &all_of(&columns)).expect("sound");
    let values = |index: usize| {
        found.columns[index]
            .as_primitive::<Int64Type>()
            .values()
            .to_vec()
    };
    assert_eq!(values(0), [1; 6]);
    assert_eq!(values(1), [10; 6]);
    assert_eq!(values(2), [20, 20, 22, 20, 20, 22]);
    assert_eq!(values(3), [30, 31, 32, 30, 31, 32]);
    assert_eq!(values(4), [40, 41, 42, 40, 41, 42]);
    let header = columns.header_fields();
    let header: Vec<_> = header.iter().map(|field| field.name().as_str()).collect();
    assert_eq!(
        header,
        ["two", "fills_two", "template_id", "schema_id", "version"]
    );
}

#[test]
fn a_path_may_begin_with_the_name_of_the_template() {
    let plan = plan_of(TYPES, ORDER);
    for (one, two) in [("legs", "M.legs"), ("legs.fills", "M.legs.fills")] {
        let fields = of_path(&plan, one).expect("a path").fields();
        assert_eq!(of_path(&plan, two).expect("a path").fields(), fields);
    }
    for path in [
        "",
        "M",
        "fills",
        "legs.",
        "legs.fills.more",
        "Mlegs",
        "N.legs",
        "legs.M.fills",
    ] {
        let refused = of_path(&plan, path).expect_err(path);
        assert_eq!(
            refused,
            format!("message 'M' has no group '{path}': it has legs, legs.fills, others")
        );
    }
}

/// 13-19
#[test]
fn hostile_counts_of_a_nested_group_are_malformed() {
    let plan = plan_of(TYPES, ORDER);
    let columns = of_path(&plan, "legs.fills").expect("a nested group");
    let message = message_of(&plan.templates[0], &order());
    assert_eq!(columns.rows(&message), Ok(Some(3)));
    // The header, the block, the dimension of legs, the block of the first leg, and the block length of fills.
    let count = 8 + 16 + 4 + 8 + 2;
    let mut hostile = message.clone();
    hostile[count..count + 2].copy_from_slice(&u16::MAX.to_le_bytes());
    assert!(columns.rows(&hostile).is_err());
    for end in 0..message.len() {
        assert!(columns.rows(&message[..end]).is_err(), "{end} bytes");
    }
}
