//! The output of `AERON_PRINT_CONFIGURATION`: one line for each setting, with the names that the C driver prints.

use aeron_memory::cnc::CNC_VERSION;

use super::{Context, SETTINGS, Setting, Value};

/// Printed names that differ from the names of the fields.
const PRINTED_NAMES: &[(&str, &str)] = &[
    ("dir", "aeron_dir"),
    ("dir_delete_on_start", "dirs_delete_on_start"),
    ("dir_delete_on_shutdown", "dirs_delete_on_shutdown"),
    ("dir_warn_if_exists", "warn_if_dirs_exists"),
    ("print_configuration", "print_configuration_on_start"),
    ("termination_validator", "termination_validator_func"),
    ("loss_report_buffer_length", "loss_report_length"),
    ("socket_rcvbuf", "socket_rcvbuf_length"),
    ("socket_sndbuf", "socket_sndbuf_length"),
    (
        "counter_free_to_reuse_timeout_ns",
        "counter_free_to_reuse_ns",
    ),
    (
        "unicast_flow_control_supplier",
        "unicast_flow_control_supplier_func",
    ),
    (
        "multicast_flow_control_supplier",
        "multicast_flow_control_supplier_func",
    ),
    ("flow_control_group_tag", "flow_control.group_tag"),
    ("flow_control_group_min_size", "flow_control.group_min_size"),
    ("receiver_group_tag", "receiver_group_tag.value"),
    (
        "congestion_control_supplier",
        "congestion_control_supplier_func",
    ),
    ("name_resolver_supplier", "name_resolver_supplier_func"),
    (
        "udp_channel_transport_bindings",
        "udp_channel_transport_bindings.media",
    ),
    (
        "conductor_udp_channel_transport_bindings",
        "conductor_udp_channel_transport_bindings.media",
    ),
    (
        "udp_channel_outgoing_interceptors",
        "udp_channel_outgoing_interceptor_bindings.interceptor",
    ),
    (
        "udp_channel_incoming_interceptors",
        "udp_channel_incoming_interceptor_bindings.interceptor",
    ),
    ("conductor_idle_strategy", "conductor_idle_strategy_func"),
    ("sender_idle_strategy", "sender_idle_strategy_func"),
    ("receiver_idle_strategy", "receiver_idle_strategy_func"),
    (
        "shared_network_idle_strategy",
        "shared_network_idle_strategy_func",
    ),
    ("shared_idle_strategy", "shared_idle_strategy_func"),
    (
        "native_resource_agent_idle_strategy",
        "native_resource_agent_idle_strategy_func",
    ),
    ("conductor_cpu_affinity", "conductor_cpu_affinity_no"),
    ("sender_cpu_affinity", "sender_cpu_affinity_no"),
    ("receiver_cpu_affinity", "receiver_cpu_affinity_no"),
    (
        "native_resource_agent_cpu_affinity",
        "native_resource_agent_cpu_affinity_no",
    ),
    ("agent_on_start_function", "agent_on_start_func"),
    ("send_to_status_poll_ratio", "send_to_sm_poll_ratio"),
];

impl Context {
    /// Returns the name of a setting in the output of [`Context::to_print`], which is the name that the C driver
    /// prints.
    pub fn printed_name(setting: &Setting<Self>) -> &'static str {
        let printed = PRINTED_NAMES.iter().find(|(name, _)| *name == setting.name);
        printed.map_or(setting.name, |(_, printed)| printed)
    }

    /// Returns the output of `AERON_PRINT_CONFIGURATION`.
    pub fn to_print(&self) -> String {
        let version = CNC_VERSION;
        let mut text = format!("aeron_driver_context_t {{\n    cnc_version={version}\n");
        for setting in SETTINGS {
            let value = match setting.get(self) {
                Value::Boolean(value) => u8::from(value).to_string(),
                value => value.to_string(),
            };
            text.push_str(&format!("    {}={value}\n", Self::printed_name(setting)));
        }
        text.push_str("}\n");
        text
    }
}
