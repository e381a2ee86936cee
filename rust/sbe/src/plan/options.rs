//! Options of a plan.

use std::collections::BTreeMap;

use crate::plan::SbeTimeUnit;

/// Meanings that a schema does not state.
///
/// A key is the name of a field, or a path such as `Trade.legs.ts`. A name without a point applies to all templates. A
/// key of `timestamps` may also be the name of a type, and then applies to all fields of the type.
#[derive(Debug, Clone, Default)]
pub struct SbePlanOptions {
    /// Integers that are timestamps since 1970-01-01 in UTC, with their units.
    pub timestamps: BTreeMap<String, SbeTimeUnit>,
    /// Integers that are mantissas, with the names of the fields that have their exponents.
    pub decimals: BTreeMap<String, String>,
}
