//! Small schemas for tests of columns.

use std::sync::Arc;

use aeron_sbe::plan::{SbePlan, SbePlanOptions};
use aeron_sbe::schema::SbeSchema;

const LAYOUTS: &str = r#"
<composite name="messageHeader"><type name="blockLength" primitiveType="uint16"/>
  <type name="templateId" primitiveType="uint16"/><type name="schemaId" primitiveType="uint16"/>
  <type name="version" primitiveType="uint16"/></composite>
<composite name="groupSizeEncoding"><type name="blockLength" primitiveType="uint16"/>
  <type name="numInGroup" primitiveType="uint16"/></composite>
<composite name="g32"><type name="blockLength" primitiveType="uint32"/>
  <type name="numInGroup" primitiveType="uint32"/></composite>
<composite name="varText"><type name="length" primitiveType="uint32"/>
  <type name="varData" primitiveType="uint8" length="0" characterEncoding="UTF-8"/></composite>
"#;

/// Returns the plan of a schema with these types and the message `M`, which has these elements.
pub fn plan_of(types: &str, elements: &str) -> Arc<SbePlan> {
    let text = format!(
        r#"<messageSchema package="p" id="7" version="3"><types>{LAYOUTS}{types}</types>
        <message name="M" id="1">{elements}</message></messageSchema>"#
    );
    let schema = SbeSchema::parse(&text).expect("a sound schema");
    Arc::new(SbePlan::new(&schema, &SbePlanOptions::default()).expect("no options"))
}
