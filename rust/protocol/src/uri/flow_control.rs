//! The flow control strategy that a publication's channel names.
//!
//! ```text
//! fc     = "max" [ ",rrwm:" count ] | ( "min" | "tagged" ) { "," option }
//! option = "g:" [ tag ] [ "/" size ] | "t:" duration | "rrwm:" count
//! ```

use aeron_agent::value::parse_duration_ns;

use super::{ChannelUri, UriError, key};

/// Flow control strategy. It selects the receiver whose window limits a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowControlStrategy {
    /// The fastest receiver.
    Max,
    /// The slowest receiver.
    Min,
    /// The slowest of the receivers with the group tag.
    Tagged,
}

/// A strategy and its options in the channel. The driver's settings apply to options that are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowControlParams {
    /// The strategy.
    pub strategy: FlowControlStrategy,
    /// Group tag; only receivers with this tag count.
    pub group_tag: Option<i64>,
    /// Number of receivers that must be present for the publication to be connected.
    pub group_min_size: Option<i32>,
    /// Time without a status message after which a receiver no longer counts, in nanoseconds.
    pub receiver_timeout_ns: Option<i64>,
    /// Maximum length of a retransmission, as a multiple of the receiver window.
    pub retransmit_window_multiple: Option<i32>,
}

impl ChannelUri {
    /// Returns the flow control of the channel. Drivers use it only for channels with several receivers.
    ///
    /// # Errors
    /// Code 11 for an unknown name or option, and for options with an invalid value.
    pub fn flow_control(&self) -> Result<Option<FlowControlParams>, UriError> {
        let Some(options) = self.get(key::FLOW_CONTROL) else {
            return Ok(None);
        };
        let mut fields = options.split(',');
        let mut flow_control = FlowControlParams {
            strategy: self.strategy(fields.next().unwrap_or_default())?,
            group_tag: None,
            group_min_size: None,
            receiver_timeout_ns: None,
            retransmit_window_multiple: None,
        };
        for field in fields {
            flow_control.take_option(field, options)?;
        }
        Ok(Some(flow_control))
    }

    /// Returns the strategy with a short name, or with the name of the Java driver's class.
    fn strategy(&self, name: &str) -> Result<FlowControlStrategy, UriError> {
        match name {
            "max"
            | "io.aeron.driver.MaxMulticastFlowControl"
            | "io.aeron.driver.MaxMulticastFlowControlSupplier" => Ok(FlowControlStrategy::Max),
            "min"
            | "io.aeron.driver.MinMulticastFlowControl"
            | "io.aeron.driver.MinMulticastFlowControlSupplier" => Ok(FlowControlStrategy::Min),
            "tagged"
            | "io.aeron.driver.TaggedMulticastFlowControl"
            | "io.aeron.driver.TaggedMulticastFlowControlSupplier" => {
                Ok(FlowControlStrategy::Tagged)
            }
            "" => Err(UriError::generic(format!(
                "No flow control strategy name specified, URI: {self}"
            ))),
            _ => Err(UriError::generic(format!(
                "Invalid flow control strategy name: {name} from URI: {self}, use max, min or tagged"
            ))),
        }
    }
}

impl FlowControlParams {
    fn take_option(&mut self, field: &str, options: &str) -> Result<(), UriError> {
        let problem = |what: &str| {
            UriError::generic(format!(
                "Flow control options - {what}, field: {field}, options: {options}"
            ))
        };
        let is_max = self.strategy == FlowControlStrategy::Max;
        match field.split_once(':') {
            Some(("rrwm", count)) if !count.is_empty() => {
                let multiple = count.parse().ok().filter(|multiple| *multiple > 0);
                self.retransmit_window_multiple = Some(multiple.ok_or_else(|| {
                    problem("invalid flow control retransmit receiver window multiple")
                })?);
            }
            Some(("t", timeout)) if !is_max && !timeout.is_empty() => {
                let timeout_ns =
                    parse_duration_ns(timeout).map_err(|_| problem("invalid timeout"))?;
                self.receiver_timeout_ns = Some(timeout_ns);
            }
            Some(("g", group)) if !is_max && !group.is_empty() => {
                let (tag, size) = match group.split_once('/') {
                    Some((tag, size)) => (tag, Some(size)),
                    None => (group, None),
                };
                if !tag.is_empty() {
                    self.group_tag = Some(tag.parse().map_err(|_| problem("invalid group"))?);
                }
                if let Some(size) = size {
                    self.group_min_size = Some(parse_group_size(size, field, options)?);
                }
            }
            _ => return Err(problem("unrecognised option")),
        }
        Ok(())
    }
}

fn parse_group_size(text: &str, field: &str, options: &str) -> Result<i32, UriError> {
    text.parse().ok().filter(|size| *size >= 0).ok_or_else(|| {
        UriError::generic(format!(
            "Group count invalid, field: {field}, options: {options}"
        ))
    })
}
