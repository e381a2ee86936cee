//! Tests of settings: their sources and their validation.

use std::io::Write;

use aeron_agent::known;
use aeron_driver::config::{
    Context, SETTINGS, Sources, TerminationValidator, ThreadingMode, Value,
};

/// Returns the configuration from `-D` definitions, and its warnings.
fn context(definitions: &[&str]) -> (Context, Vec<String>) {
    let mut sources = Sources::default();
    for definition in definitions {
        sources.define(definition).unwrap();
    }
    let mut context = Context::default();
    let warnings = context.apply(&sources);
    (context, warnings)
}

fn refusal(change: impl FnOnce(&mut Context)) -> String {
    let mut context = Context::default();
    change(&mut context);
    context
        .validate()
        .expect_err("should be refused")
        .to_string()
}

fn properties_file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// 05-47
#[test]
fn every_variable_changes_its_setting_and_the_printed_configuration() {
    for setting in SETTINGS {
        let default = setting.get(&Context::default());
        let text = match (&default, setting.grammar.limits()) {
            (Value::Boolean(value), _) => (!value).to_string(),
            (_, Some((min, max))) => {
                let other = if default == Value::Number(max) {
                    min
                } else {
                    max
                };
                if setting.variable().contains("TIMEOUT") {
                    other.min(123_456_789).to_string()
                } else {
                    other.to_string()
                }
            }
            _ if setting.variable() == "AERON_THREADING_MODE" => "SHARED".into(),
            _ if setting.variable() == "AERON_THREAD_NAMING" => "new".into(),
            _ if setting.variable() == "AERON_RECEIVER_GROUP_CONSIDERATION" => "true".into(),
            _ => "something".into(),
        };
        let (context, warnings) = context(&[&format!("{}={text}", setting.variable())]);
        assert_eq!(warnings, [""; 0], "{}", setting.variable());
        assert_ne!(setting.get(&context), default, "{}", setting.variable());
        let shown = match setting.get(&context) {
            Value::Boolean(value) => u8::from(value).to_string(),
            Value::Number(value) => value.to_string(),
            Value::Text(value) => value,
        };
        assert!(
            context.to_print().contains(&format!(
                "\n    {}={shown}\n",
                Context::printed_name(setting)
            )),
            "{}",
            setting.name
        );
    }
}

/// 05-47: a rule derives the name of a property from the name of its variable, with one exception.
#[test]
fn a_property_sets_the_variable_with_the_corresponding_name() {
    let (context, _) = context(&[
        "aeron.mtu.length=4k",
        "aeron.name.resolver.threshold=3s",
        "aeron.unicast.FlowControl.supplier=x",
    ]);
    assert_eq!(
        (context.mtu_length, context.name_resolver_threshold_ns),
        (4096, 3_000_000_000)
    );
    assert_eq!(context.unicast_flow_control_supplier, "x");
}

/// 05-57
#[test]
fn each_setting_is_in_the_list_of_known_names() {
    for setting in SETTINGS {
        assert!(
            known::is_known(&setting.variable()),
            "{}",
            setting.variable()
        );
        assert!(Context::has_variable(&setting.variable()));
    }
}

/// 05-47: variables for the event log of the C driver are accepted and have no effect.
#[test]
fn variables_that_are_not_settings_are_ignored() {
    let (context, warnings) =
        context(&["AERON_EVENT_LOG=all", "AERON_EVENT_LOG_FILENAME=/nowhere"]);
    assert_eq!((context, warnings), (Context::default(), vec![]));
}

/// 05-48
#[test]
fn properties_files_are_read_with_comments_continuation_lines_and_escapes() {
    let text = "# comment\n! comment\n\n  aeron.mtu.length = 4k\naeron.ipc.mtu.length:8k\r\naeron.dir=/some\\\n   where\naeron.driver.resolver.name=a\\:b";
    let file = properties_file(text);
    let mut sources = Sources::default();
    sources.define("aeron.timer.interval=5s").unwrap();
    sources
        .load_file(&format!("file://{}", file.path().display()))
        .unwrap();
    sources
        .load_file(
            properties_file("aeron.timer.interval=\n")
                .path()
                .to_str()
                .unwrap(),
        )
        .unwrap();
    let mut context = Context::default();
    assert_eq!(context.apply(&sources), [""; 0]);
    assert_eq!((context.mtu_length, context.ipc_mtu_length), (4096, 8192));
    assert_eq!(context.dir.to_str(), Some("/somewhere"));
    assert_eq!(context.timer_interval_ns, 1_000_000_000);
    assert_eq!(context.resolver_name, "a:b");
    let error = sources
        .load_file(properties_file("\nnothing\n").path().to_str().unwrap())
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("properties file line 2 malformed"),
        "{error}"
    );
    let error = sources.load_file("/no/such/file").unwrap_err();
    assert!(
        error
            .to_string()
            .contains("could not open properties file: /no/such/file"),
        "{error}"
    );
    let error = sources.load_file("http://127.0.0.1:1/file").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("loading properties from http://127.0.0.1:1/file "),
        "{error}"
    );
    let error = sources.define("nothing").unwrap_err();
    assert_eq!(error.to_string(), "malformed define: nothing");
}

/// 05-49: the tests of `aeronmd` cover the environment.
#[test]
fn properties_files_override_definitions() {
    let file = properties_file("aeron.mtu.length=4k\n");
    let mut sources = Sources::default();
    sources.define("aeron.mtu.length=8k").unwrap();
    sources.load_file(file.path().to_str().unwrap()).unwrap();
    let mut context = Context::default();
    context.apply(&sources);
    assert_eq!(context.mtu_length, 4096);
}

/// 05-50, 04-6, 04-3, 01-13
#[test]
fn numbers_beyond_their_limits_are_clamped_and_invalid_texts_keep_the_default() {
    let (clamped, warnings) = context(&[
        "AERON_MTU_LENGTH=999999",
        "AERON_CONDUCTOR_BUFFER_LENGTH=1k",
        "AERON_ERROR_BUFFER_LENGTH=0",
        "AERON_COUNTERS_BUFFER_LENGTH=1g",
        "AERON_MAX_RESEND=1000",
        "AERON_CLIENT_LIVENESS_TIMEOUT=1ns",
        "AERON_CONDUCTOR_CPU_AFFINITY=-7",
    ]);
    assert_eq!(warnings, [""; 0]);
    assert_eq!(
        (clamped.mtu_length, clamped.to_driver_buffer_length),
        (65504, 1024 * 1024 + 768)
    );
    assert_eq!(
        (
            clamped.error_buffer_length,
            clamped.counters_values_buffer_length
        ),
        (4 << 20, 500 << 20)
    );
    assert_eq!(
        (
            clamped.max_resend,
            clamped.client_liveness_timeout_ns,
            clamped.conductor_cpu_affinity
        ),
        (256, 1_000, -1)
    );

    let (unchanged, warnings) = context(&[
        "AERON_MTU_LENGTH=abc",
        "AERON_TIMER_INTERVAL=1 s",
        "AERON_DRIVER_TIMEOUT=soon",
        "AERON_THREADING_MODE=shared",
        "AERON_DIR_DELETE_ON_START=yes",
        "AERON_RECEIVER_GROUP_TAG=x",
    ]);
    assert_eq!(unchanged, Context::default());
    assert_eq!(
        warnings,
        [
            "WARNING: AERON_DIR_DELETE_ON_START=yes is neither true nor false (true, on, 1, false, off, 0), using default",
            "WARNING: AERON_THREADING_MODE=shared is invalid, using default",
            "WARNING: AERON_DRIVER_TIMEOUT=soon is invalid, using default",
            "WARNING: AERON_MTU_LENGTH=abc is invalid, using default",
            "WARNING: AERON_TIMER_INTERVAL=1 s is invalid, using default",
            "WARNING: AERON_RECEIVER_GROUP_TAG=x is invalid, using default",
        ]
    );
}

/// 05-50: the C driver ignores text after the digits only in these four settings.
#[test]
fn text_after_the_digits_is_ignored_with_a_warning_in_four_settings() {
    let (read, warnings) = context(&[
        "AERON_DRIVER_TIMEOUT=5000s",
        "AERON_SOCKET_MULTICAST_TTL=3hops",
        "AERON_NAK_MULTICAST_GROUP_SIZE=7x",
        "AERON_SEND_TO_STATUS_POLL_RATIO=9 ",
        "AERON_MAX_RESEND=5x",
    ]);
    assert_eq!(
        warnings,
        [
            "WARNING: AERON_DRIVER_TIMEOUT=5000s has more than digits, using 5000 milliseconds",
            "WARNING: AERON_SOCKET_MULTICAST_TTL=3hops has more than digits, using 3",
            "WARNING: AERON_MAX_RESEND=5x is invalid, using default",
            "WARNING: AERON_NAK_MULTICAST_GROUP_SIZE=7x has more than digits, using 7",
        ]
    );
    assert_eq!((read.driver_timeout_ms, read.multicast_ttl), (5000, 3));
    assert_eq!(
        (
            read.nak_multicast_group_size,
            read.send_to_status_poll_ratio
        ),
        (7, 9)
    );
}

/// 05-54
#[test]
fn names_of_the_java_drivers_classes_are_accepted_and_other_names_are_refused_with_the_valid_ones()
{
    let valid = [
        (
            "AERON_UNICAST_FLOWCONTROL_SUPPLIER",
            "DefaultUnicastFlowControlSupplier",
        ),
        (
            "AERON_MULTICAST_FLOWCONTROL_SUPPLIER",
            "DefaultMulticastFlowControlSupplier",
        ),
        (
            "AERON_MULTICAST_FLOWCONTROL_SUPPLIER",
            "MaxMulticastFlowControlSupplier",
        ),
        (
            "AERON_MULTICAST_FLOWCONTROL_SUPPLIER",
            "MinMulticastFlowControlSupplier",
        ),
        (
            "AERON_MULTICAST_FLOWCONTROL_SUPPLIER",
            "TaggedMulticastFlowControlSupplier",
        ),
        (
            "AERON_CONGESTIONCONTROL_SUPPLIER",
            "DefaultCongestionControlSupplier",
        ),
        (
            "AERON_CONGESTIONCONTROL_SUPPLIER",
            "ext.CubicCongestionControlSupplier",
        ),
        (
            "AERON_DRIVER_TERMINATION_VALIDATOR",
            "DefaultAllowTerminationValidator",
        ),
        (
            "AERON_DRIVER_TERMINATION_VALIDATOR",
            "DefaultDenyTerminationValidator",
        ),
        ("AERON_NAME_RESOLVER_SUPPLIER", "DefaultNameResolver"),
    ];
    for (variable, class) in valid {
        let (context, warnings) = context(&[&format!("{variable}=io.aeron.driver.{class}")]);
        assert_eq!(warnings, [""; 0]);
        context.validate().unwrap();
    }
    for (variable, names) in [
        (
            "AERON_MULTICAST_FLOWCONTROL_SUPPLIER",
            "multicast_min or multicast_tagged",
        ),
        (
            "AERON_CONGESTIONCONTROL_SUPPLIER",
            "default, static or cubic",
        ),
        ("AERON_DRIVER_TERMINATION_VALIDATOR", "deny or allow"),
        (
            "AERON_NAME_RESOLVER_SUPPLIER",
            "default, csv_table or driver",
        ),
    ] {
        let (context, _) = context(&[&format!("{variable}=com.acme.Mine")]);
        let error = context.validate().unwrap_err().to_string();
        assert!(error.contains(names), "{error}");
    }
}

/// 05-47: scripts may search the printed configuration for these names.
#[test]
fn the_printed_configuration_has_the_names_of_the_c_driver() {
    let text = Context::default().to_print();
    assert!(text.starts_with("aeron_driver_context_t {\n    cnc_version=0.2.0\n    aeron_dir="));
    for line in [
        "driver_timeout_ms=10000",
        "print_configuration_on_start=0",
        "warn_if_dirs_exists=0",
        "counter_free_to_reuse_ns=1000000000",
        "socket_sndbuf_length=0",
        "socket_rcvbuf_length=131072",
        "loss_report_length=1048576",
        "send_to_sm_poll_ratio=6",
        "conductor_cpu_affinity_no=-1",
        "flow_control.group_min_size=0",
    ] {
        assert!(text.contains(&format!("\n    {line}\n")), "{line}");
    }
    assert!(text.ends_with("}\n"));
}

/// 05-50
#[test]
fn a_boolean_may_be_a_number_on_off_true_or_false() {
    for (text, expected) in [
        ("1", true),
        ("on", true),
        ("true", true),
        ("0", false),
        ("off", false),
        ("false", false),
    ] {
        let (context, _) = context(&[&format!("AERON_PERFORM_STORAGE_CHECKS={text}")]);
        assert_eq!(context.perform_storage_checks, expected, "{text}");
    }
}

#[test]
fn the_defaults_are_the_defaults_of_the_c_driver() {
    let context = Context::default();
    assert_eq!(context.validate(), Ok(()));
    assert_eq!(
        (context.term_buffer_length, context.ipc_term_buffer_length),
        (16 << 20, 64 << 20)
    );
    assert_eq!(
        (context.threading_mode, context.driver_timeout_ms),
        (ThreadingMode::Dedicated, 10_000)
    );
    assert_eq!(
        (
            context.untethered_linger_timeout_ns,
            context.receiver_group_tag
        ),
        (None, None)
    );
    assert_eq!(context.termination_validator, TerminationValidator::Deny);
}

/// 05-51, 04-7, 04-8, 04-10, 01-13, 01-55, 03-64
#[test]
fn the_error_of_each_check_contains_the_invalid_values() {
    for length in [1024, 96 * 1024, 2 << 30] {
        let text = refusal(|context| context.term_buffer_length = length);
        assert!(
            text.starts_with("(22) Invalid argument\nterm length "),
            "{text}"
        );
        assert!(text.ends_with(&format!(": length={length}")), "{text}");
        assert_eq!(
            refusal(|context| context.ipc_term_buffer_length = length),
            text
        );
    }
    for length in [32, 65536, 0] {
        let text = refusal(|context| context.mtu_length = length);
        assert!(
            text.contains("mtuLength must be a > HEADER_LENGTH and <= MAX_UDP_PAYLOAD_LENGTH"),
            "{text}"
        );
        assert!(text.contains(&format!("mtuLength={length}")), "{text}");
    }
    type Change = fn(&mut Context);
    let cases: [(Change, &str); 20] = [
        (
            |c| c.ipc_mtu_length = 1400,
            "mtuLength must be a multiple of FRAME_ALIGNMENT: mtuLength=1400",
        ),
        (
            |c| c.file_page_size = 5000,
            "Page size not a power of 2: page size=5000",
        ),
        (|c| c.file_page_size = 1024, "file_page_size=1024"),
        (
            |c| c.to_driver_buffer_length += 8,
            "Invalid capacity: 1048584",
        ),
        (
            |c| c.to_clients_buffer_length += 8,
            "Invalid capacity: 1048584",
        ),
        (
            |c| c.counters_values_buffer_length = 500 << 20,
            "CnC file length greater than max size of 2147483647: value=2627735552",
        ),
        (|c| c.error_buffer_length = 1024, "error_buffer_length=1024"),
        (
            |c| c.publication_unblock_timeout_ns = c.client_liveness_timeout_ns,
            "publication_unblock_timeout_ns=10000000000 <= client_liveness_timeout_ns=10000000000",
        ),
        (
            |c| c.timer_interval_ns = c.client_liveness_timeout_ns,
            "client_liveness_timeout_ns=10000000000 <= timer_interval_ns=10000000000",
        ),
        (
            |c| c.untethered_window_limit_timeout_ns = 1_000_000_000,
            "untethered_window_limit_timeout_ns=1000000000 <= timer_interval_ns=1000000000",
        ),
        (
            |c| c.untethered_linger_timeout_ns = Some(1),
            "untethered_linger_timeout_ns=1 <= timer_interval_ns=1000000000",
        ),
        (
            |c| c.untethered_resting_timeout_ns = 5,
            "untethered_resting_timeout_ns=5 <= timer_interval_ns=1000000000",
        ),
        (
            |c| c.nak_unicast_retry_delay_ratio = i64::MAX,
            "nak_unicast_retry_delay_ratio=9223372036854775807",
        ),
        (
            |c| c.publication_reserved_session_id_low = 2000,
            "publication_reserved_session_id_low=2000",
        ),
        (
            |c| c.resolver_interface = "localhost:1".into(),
            "`resolverName` is required when `resolverInterface` is set",
        ),
        (
            |c| c.sender_wildcard_port_range = "foo".into(),
            "failed to parse first part of port range\nsender wildcard port range \"foo\" is invalid",
        ),
        (
            |c| c.receiver_wildcard_port_range = "9 70000".into(),
            "failed to parse second part of port range\nreceiver wildcard port range \"9 70000\" is invalid",
        ),
        (
            |c| c.receiver_wildcard_port_range = "9 8".into(),
            "low port should be less than or equal to high port",
        ),
        (
            |c| c.receiver_wildcard_port_range = "0 8".into(),
            "port range must not begin with 0",
        ),
        (
            |c| c.receiver_wildcard_port_range = "7 8 9".into(),
            "port range has more than two parts",
        ),
    ];
    for (change, expected) in cases {
        let text = refusal(change);
        assert!(text.contains(expected), "{text}");
    }
}

/// 05-54
#[test]
fn settings_accept_the_names_of_the_c_drivers_functions() {
    let (context, warnings) = context(&[
        "AERON_DRIVER_TERMINATION_VALIDATOR=aeron_driver_termination_validator_default_allow",
        "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA=aeron_udp_channel_transport_bindings_default",
        "AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS=aeron_udp_channel_interceptor_loss_load,\
         aeron_udp_channel_interceptor_fixed_loss_load,\
         aeron_udp_channel_interceptor_multi_gap_loss_load",
    ]);
    assert_eq!(warnings, [""; 0]);
    context.validate().unwrap();
    assert_eq!(context.termination_validator, TerminationValidator::Allow);
}

/// 05-54, 04-5
#[test]
fn settings_refuse_unknown_names() {
    for (setting, kind) in [
        (
            "conductor_idle_strategy",
            "could not find idle strategy nonsense",
        ),
        (
            "native_resource_agent_idle_strategy",
            "could not find idle strategy nonsense",
        ),
        (
            "conductor_idle_strategy_init_args",
            "invalid idle strategy arguments: backoff=nonsense",
        ),
        (
            "termination_validator",
            "could not find termination validator nonsense",
        ),
        (
            "unicast_flow_control_supplier",
            "could not find flow control supplier nonsense",
        ),
        (
            "congestion_control_supplier",
            "could not find congestion control supplier nonsense",
        ),
        (
            "name_resolver_supplier",
            "could not find name resolver nonsense",
        ),
        (
            "udp_channel_transport_bindings",
            "could not find transport bindings nonsense",
        ),
        (
            "udp_channel_incoming_interceptors",
            "could not find interceptor nonsense",
        ),
        (
            "agent_on_start_function",
            "could not find agent start function nonsense",
        ),
        (
            "dynamic_libraries",
            "could not find dynamic library nonsense",
        ),
    ] {
        let setting = Context::setting(setting).unwrap();
        let text = refusal(|context| assert!(setting.set(context, Value::Text("nonsense".into()))));
        assert!(text.contains(kind), "{text}");
        assert_eq!(text.lines().count(), 2);
    }
    for interceptor in ["loss", "multi-gap-loss"] {
        let text =
            refusal(|context| context.udp_channel_outgoing_interceptors = interceptor.into());
        assert!(text.contains("could not find interceptor"), "{text}");
    }
    let eleven = ["loss"; 11].join(",");
    let text = refusal(|context| context.udp_channel_incoming_interceptors = eleven);
    assert!(
        text.contains("11 interceptors are more than the limit of 10"),
        "{text}"
    );
}

#[test]
fn a_setting_refuses_a_value_of_a_wrong_type() {
    let mut context = Context::default();
    let setting = Context::setting("mtu_length").unwrap();
    assert!(!setting.set(&mut context, Value::Text("1408".into())));
    assert!(!setting.set(&mut context, Value::Number(-1)));
    assert!(setting.set(&mut context, Value::Number(4096)));
    assert_eq!(context.mtu_length, 4096);
    assert!(Context::setting("no_such_setting").is_none());
}

#[test]
fn port_ranges_and_bootstrap_neighbors_are_parsed_from_text() {
    let context = Context {
        sender_wildcard_port_range: " 20000  20010 ".into(),
        resolver_bootstrap_neighbor: "one:1,two:2,".into(),
        ..Context::default()
    };
    assert_eq!(context.validate(), Ok(()));
    assert_eq!(context.sender_wildcard_ports(), Some(20000..=20010));
    assert_eq!(context.receiver_wildcard_ports(), None);
    let neighbors: Vec<_> = context.bootstrap_neighbors().collect();
    assert_eq!(neighbors, ["one:1", "two:2"]);
}
