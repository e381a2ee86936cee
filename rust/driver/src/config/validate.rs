//! Validates a configuration before the driver creates files.

use aeron_layout::frame::{
    FRAME_ALIGNMENT, MAX_TERM_LENGTH, MAX_UDP_PAYLOAD_LENGTH, MIN_TERM_LENGTH,
};
use aeron_memory::broadcast::TRAILER_LENGTH as BROADCAST_TRAILER_LENGTH;
use aeron_memory::cnc::HEADER_LENGTH as CNC_HEADER_LENGTH;
use aeron_memory::ring::TRAILER_LENGTH as RING_TRAILER_LENGTH;

use super::ports::parse_port_range;
use super::{Context, LoopKind, SETTINGS, TerminationValidator};
use crate::congestion::CongestionSupplier;
use crate::flow_control::FlowControlSupplier;
use crate::media::interceptors::is_incoming;
use crate::names::NameSupplier;

/// The reason why a driver does not start with its configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("(22) Invalid argument\n{0}")]
pub struct ConfigurationError(pub String);

const MAX_BOOTSTRAP_NEIGHBORS: usize = 20;
const MAX_FILE_LENGTH: usize = i32::MAX as usize;
const MAX_INTERCEPTORS: usize = 10;
/// The only supported values: the short name, and the name in the C driver's table.
const TRANSPORT_BINDINGS: [&str; 2] = ["default", "aeron_udp_channel_transport_bindings_default"];

impl Context {
    /// Checks each value alone and in relation to the others.
    pub fn validate(&self) -> Result<(), ConfigurationError> {
        if self.dir.to_str().is_none() {
            return refuse(format!(
                "the directory's name is not UTF-8: {}",
                self.dir.display()
            ));
        }
        self.check_limits()?;
        check_term_length(self.term_buffer_length)?;
        check_term_length(self.ipc_term_buffer_length)?;
        check_mtu(self.mtu_length)?;
        check_mtu(self.ipc_mtu_length)?;
        self.check_buffers()?;
        self.check_timeouts()?;
        self.check_ranges()?;
        self.check_name_resolver()?;
        self.check_names()
    }

    fn check_limits(&self) -> Result<(), ConfigurationError> {
        for setting in SETTINGS {
            let own_check = matches!(
                setting.name,
                "mtu_length" | "ipc_mtu_length" | "term_buffer_length" | "ipc_term_buffer_length"
            );
            let value = setting.get(self);
            if let Some(problem) = setting.grammar.out_of_range(&value)
                && !own_check
            {
                return refuse(format!("{}={value} {problem}", setting.name));
            }
        }
        Ok(())
    }

    fn check_buffers(&self) -> Result<(), ConfigurationError> {
        if !self.file_page_size.is_power_of_two() {
            return refuse(format!(
                "Page size not a power of 2: page size={}",
                self.file_page_size
            ));
        }
        if self.file_page_size > MAX_TERM_LENGTH {
            return refuse(format!(
                "Page size greater than max size of {MAX_TERM_LENGTH}: page size={}",
                self.file_page_size
            ));
        }
        for (length, trailer) in [
            (self.to_driver_buffer_length, RING_TRAILER_LENGTH),
            (self.to_clients_buffer_length, BROADCAST_TRAILER_LENGTH),
        ] {
            if !(length - trailer).is_power_of_two() {
                return refuse(format!("Invalid capacity: {}", length - trailer));
            }
        }
        let cnc_length = CNC_HEADER_LENGTH
            + self.to_driver_buffer_length
            + self.to_clients_buffer_length
            + 5 * self.counters_values_buffer_length
            + self.error_buffer_length;
        let cnc_length = cnc_length.next_multiple_of(self.file_page_size);
        if cnc_length > MAX_FILE_LENGTH {
            return refuse(format!(
                "CnC file length greater than max size of {MAX_FILE_LENGTH}: value={cnc_length}"
            ));
        }
        Ok(())
    }

    fn check_timeouts(&self) -> Result<(), ConfigurationError> {
        check_greater(
            (
                "publication_unblock_timeout_ns",
                self.publication_unblock_timeout_ns,
            ),
            (
                "client_liveness_timeout_ns",
                self.client_liveness_timeout_ns,
            ),
        )?;
        let timer_interval = ("timer_interval_ns", self.timer_interval_ns);
        check_greater(
            (
                "client_liveness_timeout_ns",
                self.client_liveness_timeout_ns,
            ),
            timer_interval,
        )?;
        check_greater(
            (
                "untethered_window_limit_timeout_ns",
                self.untethered_window_limit_timeout_ns,
            ),
            timer_interval,
        )?;
        if let Some(linger_timeout_ns) = self.untethered_linger_timeout_ns {
            check_greater(
                ("untethered_linger_timeout_ns", linger_timeout_ns),
                timer_interval,
            )?;
        }
        check_greater(
            (
                "untethered_resting_timeout_ns",
                self.untethered_resting_timeout_ns,
            ),
            timer_interval,
        )?;
        match self
            .nak_unicast_delay_ns
            .checked_mul(self.nak_unicast_retry_delay_ratio)
        {
            Some(_) => Ok(()),
            None => refuse(format!(
                "nak_unicast_delay_ns={} times nak_unicast_retry_delay_ratio={} does not fit into 63 bits",
                self.nak_unicast_delay_ns, self.nak_unicast_retry_delay_ratio
            )),
        }
    }

    fn check_ranges(&self) -> Result<(), ConfigurationError> {
        let (low, high) = (
            self.publication_reserved_session_id_low,
            self.publication_reserved_session_id_high,
        );
        if low > high {
            return refuse(format!(
                "publication_reserved_session_id_low={low} > publication_reserved_session_id_high={high}"
            ));
        }
        check_port_range("sender", &self.sender_wildcard_port_range)?;
        check_port_range("receiver", &self.receiver_wildcard_port_range)?;
        Ok(())
    }

    fn check_name_resolver(&self) -> Result<(), ConfigurationError> {
        if !self.resolver_interface.is_empty() && self.resolver_name.is_empty() {
            return refuse("`resolverName` is required when `resolverInterface` is set".into());
        }
        let neighbors = self.bootstrap_neighbors().count();
        if neighbors > MAX_BOOTSTRAP_NEIGHBORS {
            return refuse(format!(
                "{neighbors} bootstrap neighbors exceed the limit of {MAX_BOOTSTRAP_NEIGHBORS}"
            ));
        }
        match NameSupplier::from_name(&self.name_resolver_supplier) {
            Some(NameSupplier::Gossip) if self.resolver_interface.is_empty() => refuse(
                "name resolver `driver` needs AERON_DRIVER_RESOLVER_INTERFACE and AERON_DRIVER_RESOLVER_NAME".into(),
            ),
            Some(NameSupplier::CsvTable) if self.name_resolver_init_args.is_empty() => refuse(
                "No CSV configuration, please specify: AERON_NAME_RESOLVER_INIT_ARGS".into(),
            ),
            Some(_) => Ok(()),
            None => unknown(
                "name resolver",
                &self.name_resolver_supplier,
                "default, csv_table or driver",
            ),
        }
    }

    fn check_names(&self) -> Result<(), ConfigurationError> {
        for kind in LoopKind::ALL {
            self.idle_strategy(kind)?;
        }
        if let TerminationValidator::Unknown(name) = &self.termination_validator {
            return unknown("termination validator", name, "deny or allow");
        }
        for name in [
            &self.unicast_flow_control_supplier,
            &self.multicast_flow_control_supplier,
        ] {
            if FlowControlSupplier::from_name(name).is_none() {
                return unknown("flow control supplier", name, FlowControlSupplier::NAMES);
            }
        }
        if CongestionSupplier::from_name(&self.congestion_control_supplier).is_none() {
            return unknown(
                "congestion control supplier",
                &self.congestion_control_supplier,
                "default, static or cubic",
            );
        }
        check_name(
            "transport bindings",
            &self.udp_channel_transport_bindings,
            &TRANSPORT_BINDINGS,
        )?;
        check_name(
            "transport bindings",
            &self.conductor_udp_channel_transport_bindings,
            &TRANSPORT_BINDINGS,
        )?;
        check_name("agent start function", &self.agent_on_start_function, &[""])?;
        check_name("dynamic library", &self.dynamic_libraries, &[""])?;
        check_interceptors(&self.udp_channel_outgoing_interceptors, |_| false)?;
        check_interceptors(&self.udp_channel_incoming_interceptors, is_incoming)
    }
}

fn refuse(reason: String) -> Result<(), ConfigurationError> {
    Err(ConfigurationError(reason))
}

fn unknown(kind: &str, name: &str, valid: &str) -> Result<(), ConfigurationError> {
    let remedy = match valid {
        "" => "leave it out".to_owned(),
        valid => format!("use {valid}"),
    };
    refuse(format!(
        "could not find {kind} {name}: functions of C libraries and classes of Java cannot be used, {remedy}"
    ))
}

fn check_name(kind: &str, name: &str, known: &[&str]) -> Result<(), ConfigurationError> {
    if known.contains(&name) {
        Ok(())
    } else {
        unknown(kind, name, &known.join(" or "))
    }
}

fn check_interceptors(
    names: &str,
    is_known: impl Fn(&str) -> bool,
) -> Result<(), ConfigurationError> {
    let mut names = names.split(',').filter(|name| !name.is_empty());
    let count = names.clone().count();
    if count > MAX_INTERCEPTORS {
        return refuse(format!(
            "{count} interceptors are more than the limit of {MAX_INTERCEPTORS}"
        ));
    }
    match names.find(|name| !is_known(name)) {
        Some(name) => unknown("interceptor", name, ""),
        None => Ok(()),
    }
}

fn check_greater(larger: (&str, i64), smaller: (&str, i64)) -> Result<(), ConfigurationError> {
    if larger.1 <= smaller.1 {
        return refuse(format!(
            "{}={} <= {}={}",
            larger.0, larger.1, smaller.0, smaller.1
        ));
    }
    Ok(())
}

pub(crate) fn check_term_length(length: usize) -> Result<(), ConfigurationError> {
    if length < MIN_TERM_LENGTH {
        return refuse(format!(
            "term length less than min length of {MIN_TERM_LENGTH}: length={length}"
        ));
    }
    if length > MAX_TERM_LENGTH {
        return refuse(format!(
            "term length greater than max length of {MAX_TERM_LENGTH}: length={length}"
        ));
    }
    if !length.is_power_of_two() {
        return refuse(format!("term length not a power of 2: length={length}"));
    }
    Ok(())
}

pub(crate) fn check_mtu(length: usize) -> Result<(), ConfigurationError> {
    if length <= FRAME_ALIGNMENT || length > MAX_UDP_PAYLOAD_LENGTH {
        return refuse(format!(
            "mtuLength must be a > HEADER_LENGTH and <= MAX_UDP_PAYLOAD_LENGTH: mtuLength={length}"
        ));
    }
    if !length.is_multiple_of(FRAME_ALIGNMENT) {
        return refuse(format!(
            "mtuLength must be a multiple of FRAME_ALIGNMENT: mtuLength={length}"
        ));
    }
    Ok(())
}

fn check_port_range(kind: &str, range: &str) -> Result<(), ConfigurationError> {
    match parse_port_range(range) {
        Ok(_) => Ok(()),
        Err(reason) => refuse(format!(
            "{reason}\n{kind} wildcard port range \"{range}\" is invalid"
        )),
    }
}
