//! Whether a column of times suits a field.

use aeron_sbe::plan::{SbeField, SbeKind, SbeTimeKind};
use arrow_schema::DataType;

/// Checks that a column of times has the kind of time of the field. Columns of other types are not checked.
///
/// A timestamp suits a date too, if it is a midnight. Without this check, a date would be written as nanoseconds, and a
/// time of day as a timestamp in 1970.
pub(super) fn check_time_type(field: &SbeField, column: &DataType) -> Result<(), String> {
    let suits: fn(SbeTimeKind) -> bool = match column {
        DataType::Timestamp(..) => |kind| kind != SbeTimeKind::TimeOfDay,
        DataType::Date32 => |kind| kind == SbeTimeKind::Date,
        DataType::Time32(_) | DataType::Time64(_) => |kind| kind == SbeTimeKind::TimeOfDay,
        _ => return Ok(()),
    };
    let expected = match &field.kind {
        SbeKind::Time(time) if suits(time.kind) => return Ok(()),
        SbeKind::Time(time) => match time.kind {
            SbeTimeKind::Timestamp => "is a timestamp",
            SbeTimeKind::TimeOfDay => "is a time of day",
            SbeTimeKind::Date => "is a date",
        },
        _ => "is no time in the schema",
    };
    let name = &field.name;
    Err(format!(
        "column '{name}' cannot be {column}, because the field {expected}: cast it"
    ))
}
