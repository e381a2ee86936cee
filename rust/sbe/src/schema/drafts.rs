//! Features of the drafts of SBE 2.0 that a reader of SBE 1.0 cannot carry.
//!
//! The drafts also have `<messages>`, which only collects messages, and the counts of groups and data, which are read.

use crate::schema::SbeSchemaError;
use crate::schema::element::Element;

const DRAFT: &str = "http://fixprotocol.io/2017/sbe";

/// Refuses a schema of the draft's namespace with a feature that SBE 1.0 does not have.
pub(super) fn refuse(root: &Element) -> Result<(), SbeSchemaError> {
    if root.namespace.as_deref() == Some(DRAFT) {
        return refuse_alignment(root);
    }
    Ok(())
}

/// Refuses alignment: it adds padding between blocks, whose length a reader of SBE 1.0 does not know.
fn refuse_alignment(element: &Element) -> Result<(), SbeSchemaError> {
    if let Some(alignment) = element.attribute("alignment") {
        return Err(element.error(format!(
            "alignment {alignment} of SBE 2.0 is not supported: blocks follow each other in SBE 1.0"
        )));
    }
    element.children.iter().try_for_each(refuse_alignment)
}
