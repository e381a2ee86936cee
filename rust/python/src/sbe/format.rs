//! [`sbe_format`] and [`sbe_encoder`]: the format of payloads from a text that travels to the tasks of Spark.

use std::collections::BTreeMap;
use std::sync::Arc;

use aeron_columns::read::ValueFormat;
use aeron_columns::sbe::{SbeColumnOptions, SbeColumns, SbeEncoder};
use aeron_sbe::plan::{SbePlan, SbePlanOptions};
use aeron_sbe::schema::SbeSchema;
use pyo3::prelude::*;
use serde_json::Value;

use super::errors::invalid;
use super::schema::{decimal_column, enum_column, set_column, units};

/// Returns the format that a JSON object describes: the text of the schema, the texts of its included files by name,
/// template, group, and the options of the columns. Unless `for_spark` is false, the columns have Spark's types.
pub fn sbe_format(json: &str) -> PyResult<ValueFormat> {
    let given = parsed(json)?;
    let plan = plan_of(&given)?;
    let text = |name: &str| given.get(name).and_then(Value::as_str);
    let scale = given["decimal_scale"].as_u64();
    let scale = scale.map(|scale| u8::try_from(scale).unwrap_or(u8::MAX));
    let options = SbeColumnOptions {
        for_spark: given["for_spark"].as_bool().unwrap_or(true),
        decimals: decimal_column(scale)?,
        sets: set_column(text("sets").unwrap_or("names"))?,
        enums: enum_column(text("enums").unwrap_or("names"))?,
        refuses_unknown: given["refuse_unknown"].as_bool().unwrap_or_default(),
    };
    let template = text("template").unwrap_or_default();
    let columns = SbeColumns::new(&plan, template, text("group"), options);
    let columns = columns.map_err(|error| invalid(error.to_string()))?;
    Ok(ValueFormat::sbe(columns))
}

/// Returns the encoder that a JSON object describes, as for [`sbe_format`].
pub fn sbe_encoder(json: &str) -> PyResult<SbeEncoder> {
    let given = parsed(json)?;
    let plan = plan_of(&given)?;
    let encoder = SbeEncoder::new(&plan, given["template"].as_str().unwrap_or_default());
    encoder.map_err(|error| invalid(error.to_string()))
}

fn parsed(json: &str) -> PyResult<Value> {
    serde_json::from_str(json).map_err(|error| invalid(format!("value_schema is no JSON: {error}")))
}

fn plan_of(given: &Value) -> PyResult<Arc<SbePlan>> {
    let text = |name: &str| given.get(name).and_then(Value::as_str);
    let included = texts(&given["included"]);
    let mut load = |name: &str| {
        let found = included.get(name).cloned();
        found.ok_or_else(|| "the text of this file was not passed".to_owned())
    };
    let schema = SbeSchema::parse_with(text("text").unwrap_or_default(), &mut load)
        .map_err(|error| invalid(error.to_string()))?;
    let options = SbePlanOptions {
        timestamps: units(texts(&given["timestamps"]))?,
        decimals: texts(&given["decimals"]),
    };
    let plan = SbePlan::new(&schema, &options).map_err(|error| invalid(error.to_string()))?;
    Ok(Arc::new(plan))
}

/// Returns the texts of an object; empty for any other value.
fn texts(object: &Value) -> BTreeMap<String, String> {
    let members = object.as_object().into_iter().flatten();
    let texts = members.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned())));
    texts.collect()
}
