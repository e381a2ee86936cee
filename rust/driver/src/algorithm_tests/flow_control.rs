//! Tests of the flow control strategies.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::Context;
use crate::flow_control::{
    FlowControl, FlowControlProblem, FlowControlSpec, FlowControlSupplier, GroupConfig,
    MAX_RECEIVERS_PER_PUBLICATION, MaxFlowControl, MinFlowControl, ReceiverStatus,
};
use aeron_memory::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_protocol::ErrorCode;
use aeron_protocol::uri::ChannelUri;
use proptest::prelude::*;

use super::support::{SECOND, counter};

const TIMEOUT: i64 = 5 * SECOND;
const WINDOW: i32 = 1000;
const TAG: i64 = 77;

fn status(receiver_id: i64, position: i64) -> ReceiverStatus {
    ReceiverStatus {
        receiver_id,
        position,
        window_length: WINDOW,
        group_tag: None,
        feedback_length: 0,
        is_end_of_stream: false,
    }
}

fn tagged(group_tag: i64, status: ReceiverStatus) -> ReceiverStatus {
    ReceiverStatus {
        group_tag: Some(group_tag),
        feedback_length: 8,
        ..status
    }
}

fn leaving(status: ReceiverStatus) -> ReceiverStatus {
    ReceiverStatus {
        is_end_of_stream: true,
        ..status
    }
}

fn group(group_tag: Option<i64>, group_min_size: usize) -> GroupConfig {
    GroupConfig {
        group_tag,
        group_min_size,
        receiver_timeout_ns: TIMEOUT,
    }
}

/// A strategy with the limit and the clock of its sender.
struct Sender {
    flow_control: Box<dyn FlowControl>,
    receivers: AtomicCounter<SharedBuffer>,
    limit: i64,
    now_ns: i64,
}

impl Sender {
    fn max() -> Self {
        Sender::with(Box::new(MaxFlowControl), counter())
    }

    fn min(config: GroupConfig) -> Self {
        let receivers = counter();
        let flow_control = MinFlowControl::new(config, receivers.clone());
        Sender::with(Box::new(flow_control), receivers)
    }

    fn with(flow_control: Box<dyn FlowControl>, receivers: AtomicCounter<SharedBuffer>) -> Self {
        Sender {
            flow_control,
            receivers,
            limit: 0,
            now_ns: 100 * SECOND,
        }
    }

    fn hears(&mut self, status: ReceiverStatus) -> i64 {
        assert_eq!(self.problem(status), None);
        self.limit
    }

    fn problem(&mut self, status: ReceiverStatus) -> Option<FlowControlProblem> {
        let update = self
            .flow_control
            .on_status_message(&status, self.limit, self.now_ns);
        self.limit = update.sender_limit;
        update.problem
    }

    fn sends_elicited_setup(&mut self, asking: ReceiverStatus) {
        self.flow_control.on_setup_elicited(&asking);
        self.flow_control.on_setup(self.limit, self.now_ns);
    }

    fn idles(&mut self) -> i64 {
        self.limit = self.flow_control.on_idle(self.limit, self.now_ns);
        self.limit
    }

    fn is_connected(&self) -> bool {
        self.flow_control.has_required_receivers()
    }

    fn receivers(&self) -> i64 {
        self.receivers.get()
    }
}

/// 04-121, 02-31
#[test]
fn max_follows_the_fastest_receiver_and_never_decreases() {
    let mut sender = Sender::max();
    assert!(sender.is_connected());
    assert_eq!(sender.hears(status(1, 5000)), 6000);
    assert_eq!(sender.hears(status(2, 200)), 6000);
    assert_eq!(sender.hears(leaving(status(2, 5500))), 6500);
    sender.now_ns += 100 * TIMEOUT;
    sender.flow_control.on_error(1);
    sender.sends_elicited_setup(status(3, 0));
    assert_eq!(sender.idles(), 6500);
    assert!(sender.is_connected());
}

#[test]
fn a_limit_beyond_the_largest_position_is_the_largest_position() {
    let far = ReceiverStatus {
        window_length: i32::MAX,
        ..status(1, i64::MAX - 1)
    };
    assert_eq!(Sender::max().hears(far), i64::MAX);
    assert_eq!(Sender::min(group(None, 0)).hears(far), i64::MAX);
}

/// 04-122, 04-125
#[test]
fn min_follows_the_slowest_receiver_until_it_is_silent_for_the_timeout() {
    let mut sender = Sender::min(group(None, 0));
    assert_eq!(sender.hears(status(1, 0)), 1000);
    assert_eq!(sender.hears(status(2, 500)), 1000);
    assert_eq!(sender.hears(status(2, 900)), 1000);
    assert_eq!(sender.hears(status(1, 300)), 1300);
    assert_eq!((sender.idles(), sender.receivers()), (1300, 2));

    sender.now_ns += TIMEOUT;
    assert_eq!(sender.hears(status(2, 1300)), 1300);
    assert_eq!((sender.idles(), sender.receivers()), (1300, 2));
    sender.now_ns += 1;
    assert_eq!((sender.idles(), sender.receivers()), (2300, 1));

    sender.now_ns += TIMEOUT + 1;
    assert_eq!((sender.idles(), sender.receivers()), (2300, 0));
    assert_eq!(
        sender.hears(status(1, 300)),
        2300,
        "the first receiver of an empty group joins even if the receiver lags far behind"
    );
    assert_eq!(sender.receivers(), 1);
}

#[test]
fn a_status_message_never_lowers_the_limit_but_an_idle_cycle_does() {
    let mut sender = Sender::min(group(None, 0));
    sender.hears(status(1, 4000));
    assert_eq!(sender.hears(status(2, 3100)), 5000);
    assert_eq!(sender.idles(), 4100);
}

/// 04-123
#[test]
fn without_the_required_receivers_the_limit_is_constant_and_the_publication_is_not_connected() {
    for config in [group(None, 2), group(Some(TAG), 2)] {
        let mut sender = Sender::min(config);
        let status = |id, position| tagged(TAG, status(id, position));
        assert!(!sender.is_connected());
        assert_eq!(sender.hears(status(1, 0)), 0);
        assert_eq!(sender.idles(), 0);
        assert!(!sender.is_connected());
        assert_eq!(sender.hears(status(2, 0)), 1000);
        assert!(sender.is_connected());

        sender.flow_control.on_error(2);
        assert!(
            sender.is_connected(),
            "the receiver counts until the next idle cycle"
        );
        assert_eq!(sender.idles(), 1000);
        assert!(!sender.is_connected());
        assert_eq!(sender.hears(status(1, 700)), 1000);
    }
}

/// 04-124, 04-125
#[test]
fn tagged_waits_only_for_receivers_with_its_tag() {
    let mut sender = Sender::min(group(Some(TAG), 0));
    assert_eq!(
        sender.hears(status(1, 0)),
        1000,
        "while the group is empty, any receiver raises the limit"
    );
    assert_eq!(sender.hears(tagged(TAG + 1, status(2, 100))), 1100);
    assert_eq!(sender.receivers(), 0);

    assert_eq!(sender.hears(tagged(TAG, status(3, 200))), 1200);
    assert_eq!(sender.receivers(), 1);
    for other in [status(1, 5000), tagged(TAG + 1, status(2, 5000))] {
        assert_eq!(sender.hears(other), 1200);
    }
    assert_eq!(sender.hears(tagged(TAG, status(3, 400))), 1400);
    assert_eq!(sender.receivers(), 1);
}

#[test]
fn a_receiver_that_drops_its_tag_stays_in_the_group_until_the_timeout() {
    let mut sender = Sender::min(group(Some(TAG), 0));
    sender.hears(tagged(TAG, status(1, 0)));
    assert_eq!(sender.hears(status(1, 500)), 1000);
    sender.now_ns += TIMEOUT + 1;
    sender.idles();
    assert_eq!(sender.receivers(), 0);
}

/// 04-126
#[test]
fn a_new_receiver_that_lags_by_more_than_a_window_does_not_hold_back_the_limit() {
    let mut sender = Sender::min(group(None, 0));
    sender.hears(status(1, 10_000));
    assert_eq!(sender.hears(status(2, 8_999)), 11_000);
    assert_eq!((sender.idles(), sender.receivers()), (11_000, 1));
    sender.hears(status(2, 9_000));
    assert_eq!((sender.idles(), sender.receivers()), (10_000, 2));
}

/// 04-127, 04-125
#[test]
fn the_end_of_the_stream_or_an_error_removes_a_receiver_at_the_next_idle_cycle() {
    let mut sender = Sender::min(group(None, 0));
    for id in 1..=3 {
        sender.hears(status(id, 0));
    }
    sender.hears(status(3, 200));
    assert_eq!(sender.hears(leaving(status(1, 0))), 1000);
    sender.flow_control.on_error(2);
    sender.flow_control.on_error(999);
    assert_eq!(sender.receivers(), 3);
    assert_eq!((sender.idles(), sender.receivers()), (1200, 1));
    assert_eq!(
        sender.hears(leaving(status(1, 0))),
        1200,
        "a receiver that leaves the stream does not join"
    );
    assert_eq!(sender.receivers(), 1);
}

#[test]
fn a_receiver_that_sends_a_new_status_message_before_the_idle_cycle_stays() {
    let mut sender = Sender::min(group(None, 0));
    sender.hears(leaving(status(1, 0)));
    assert_eq!(sender.receivers(), 0);
    sender.hears(status(1, 0));
    sender.flow_control.on_error(1);
    sender.hears(status(1, 100));
    sender.idles();
    assert_eq!(sender.receivers(), 1);
}

#[test]
fn only_tagged_flow_control_reports_a_tag_of_the_wrong_length_and_then_ignores_it() {
    let odd = ReceiverStatus {
        feedback_length: 4,
        ..status(1, 0)
    };
    let mut sender = Sender::min(group(Some(TAG), 0));
    assert_eq!(
        sender.problem(odd),
        Some(FlowControlProblem::GroupTagLength)
    );
    assert_eq!((sender.limit, sender.receivers()), (1000, 0));
    assert_eq!(Sender::min(group(None, 0)).problem(odd), None);
    assert_eq!(Sender::max().problem(odd), None);
    assert_eq!(
        FlowControlProblem::GroupTagLength.to_string(),
        "Received a status message for tagged flow control that did not have 0 or 8 bytes for the group_tag"
    );
}

#[test]
fn a_setup_holds_the_limit_until_the_receiver_that_requested_it_joins() {
    let mut sender = Sender::min(group(None, 0));
    sender.hears(status(1, 0));
    sender.sends_elicited_setup(status(2, 0));
    assert_eq!(sender.hears(status(1, 600)), 1000);
    assert_eq!(sender.idles(), 1000);
    sender.hears(status(2, 500));
    assert_eq!(sender.idles(), 1500);
}

#[test]
fn a_held_limit_is_released_after_the_receiver_timeout() {
    let mut sender = Sender::min(group(None, 0));
    sender.hears(status(1, 0));
    sender.sends_elicited_setup(status(2, 0));
    sender.now_ns += TIMEOUT;
    sender.hears(status(1, 600));
    assert_eq!(sender.idles(), 1000);
    sender.now_ns += 1;
    assert_eq!(sender.idles(), 1600);
}

#[test]
fn a_setup_does_not_hold_the_limit_for_receivers_outside_the_group_or_for_an_empty_group() {
    let mut sender = Sender::min(group(Some(TAG), 0));
    sender.sends_elicited_setup(tagged(TAG, status(1, 0)));
    sender.hears(tagged(TAG, status(2, 0)));
    assert_eq!(sender.hears(tagged(TAG, status(2, 100))), 1100);
    sender.sends_elicited_setup(status(1, 0));
    assert_eq!(sender.hears(tagged(TAG, status(2, 200))), 1200);
    sender.flow_control.on_setup(sender.limit, sender.now_ns);
    assert_eq!(sender.hears(tagged(TAG, status(2, 300))), 1300);
}

#[test]
fn the_number_of_remembered_receivers_is_limited() {
    let mut sender = Sender::min(group(None, 0));
    let bound = MAX_RECEIVERS_PER_PUBLICATION as i64;
    for id in 0..bound {
        sender.hears(status(id, 0));
    }
    for id in bound..3 * bound {
        let problem = sender.problem(status(id, 0));
        assert_eq!(problem, Some(FlowControlProblem::TooManyReceivers));
    }
    assert_eq!((sender.receivers(), sender.limit), (bound, 1000));
    assert_eq!(
        sender.problem(status(1, 0)),
        None,
        "known receivers are still accepted"
    );
    sender.now_ns += TIMEOUT + 1;
    sender.idles();
    assert_eq!(sender.receivers(), 0);
}

fn spec(channel: &str, has_group_semantics: bool, context: &Context) -> FlowControlSpec {
    let uri = ChannelUri::parse(channel).unwrap();
    FlowControlSpec::of_channel(&uri, has_group_semantics, context).unwrap()
}

fn max_spec(retransmit_window_multiple: usize) -> FlowControlSpec {
    FlowControlSpec {
        group: None,
        retransmit_window_multiple,
    }
}

fn group_spec(group: GroupConfig, retransmit_window_multiple: usize) -> FlowControlSpec {
    FlowControlSpec {
        group: Some(group),
        retransmit_window_multiple,
    }
}

/// 05-28
#[test]
fn a_channel_with_several_receivers_chooses_the_strategy_and_its_options() {
    let context = Context::default();
    let of = |options: &str| {
        spec(
            &format!("aeron:udp?endpoint=224.20.30.39:54326|fc={options}"),
            true,
            &context,
        )
    };
    let seconds = |timeout_s, config: GroupConfig| GroupConfig {
        receiver_timeout_ns: timeout_s * SECOND,
        ..config
    };
    assert_eq!(of("max"), max_spec(4));
    assert_eq!(of("max,rrwm:7"), max_spec(7));
    assert_eq!(of("min"), group_spec(group(None, 0), 4));
    assert_eq!(
        of("min,t:3s,g:/2"),
        group_spec(seconds(3, group(None, 2)), 4)
    );
    assert_eq!(
        of("min,g:5/2"),
        group_spec(group(None, 2), 4),
        "min has no use for the tag"
    );
    assert_eq!(of("tagged"), group_spec(group(Some(-1), 0), 4));
    assert_eq!(of("tagged,g:9/3,rrwm:2"), group_spec(group(Some(9), 3), 2));
    assert_eq!(of("tagged,g:/3"), group_spec(group(Some(-1), 3), 4));
    assert_eq!(of("tagged,g:-8"), group_spec(group(Some(-8), 0), 4));
}

/// 05-28, 04-49
#[test]
fn an_invalid_fc_is_an_error_with_several_receivers_and_is_ignored_with_one() {
    let context = Context::default();
    for (options, text) in [
        ("foo", "Invalid flow control strategy name: foo from URI: "),
        (",t:1s", "No flow control strategy name specified, URI: "),
        (
            "min,x:1",
            "unrecognised option, field: x:1, options: min,x:1",
        ),
        (
            "max,g:/1",
            "unrecognised option, field: g:/1, options: max,g:/1",
        ),
        (
            "tagged,g:9x",
            "invalid group, field: g:9x, options: tagged,g:9x",
        ),
        (
            "tagged,g:9/-1",
            "Group count invalid, field: g:9/-1, options: tagged,g:9/-1",
        ),
        (
            "min,t:abc",
            "invalid timeout, field: t:abc, options: min,t:abc",
        ),
        (
            "max,rrwm:0",
            "invalid flow control retransmit receiver window multiple, field: rrwm:0, options: max,rrwm:0",
        ),
    ] {
        let channel = format!("aeron:udp?endpoint=localhost:24325|fc={options}");
        let uri = ChannelUri::parse(&channel).unwrap();
        let error = FlowControlSpec::of_channel(&uri, true, &context).unwrap_err();
        assert_eq!(error.code, ErrorCode::GenericError);
        assert!(error.message.contains(text), "{}", error.message);
        assert_eq!(spec(&channel, false, &context), max_spec(16));
    }
}

#[test]
fn settings_choose_the_flow_control_if_the_channel_does_not() {
    let mut context = Context {
        flow_control_group_tag: 5,
        flow_control_group_min_size: 6,
        flow_control_receiver_timeout_ns: TIMEOUT,
        ..Context::default()
    };
    let udp = "aeron:udp?endpoint=localhost:24325";
    for (name, expected) in [
        ("unicast_max", max_spec(16)),
        ("aeron_unicast_flow_control_strategy_supplier", max_spec(16)),
        ("multicast_max", max_spec(4)),
        (
            "aeron_max_multicast_flow_control_strategy_supplier",
            max_spec(4),
        ),
        (
            "aeron_default_multicast_flow_control_strategy_supplier",
            max_spec(4),
        ),
        ("multicast_min", group_spec(group(None, 6), 4)),
        (
            "aeron_min_flow_control_strategy_supplier",
            group_spec(group(None, 6), 4),
        ),
        ("multicast_tagged", group_spec(group(Some(5), 6), 4)),
        (
            "aeron_tagged_flow_control_strategy_supplier",
            group_spec(group(Some(5), 6), 4),
        ),
    ] {
        context.unicast_flow_control_supplier = name.into();
        context.multicast_flow_control_supplier = "multicast_max".into();
        context.validate().unwrap();
        assert_eq!(spec(udp, false, &context), expected, "{name}");
        context.unicast_flow_control_supplier = "unicast_max".into();
        context.multicast_flow_control_supplier = name.into();
        context.validate().unwrap();
        assert_eq!(spec(udp, true, &context), expected, "{name}");
        let stated = spec(&format!("{udp}|fc=tagged,g:1"), true, &context);
        assert_eq!(stated, group_spec(group(Some(1), 6), 4));
    }
    assert_eq!(FlowControlSupplier::from_name("max"), None);
}

#[test]
fn only_a_strategy_that_waits_for_receivers_has_a_receiver_counter() {
    let refused = max_spec(16).build(|| Err("no counter"));
    assert!(refused.unwrap().has_required_receivers());
    let receivers = counter();
    let built = group_spec(group(None, 1), 4).build(|| Ok::<_, Infallible>(receivers.clone()));
    let mut flow_control = built.unwrap();
    flow_control.on_status_message(&status(1, 0), 0, 0);
    assert_eq!(receivers.get(), 1);
    assert!(
        group_spec(group(None, 1), 4)
            .build(|| Err("no counter"))
            .is_err()
    );
}

#[derive(Clone, Debug)]
enum Step {
    Status(ReceiverStatus),
    Elicit(ReceiverStatus),
    Setup,
    Error(i64),
    Idle,
    Wait(i64),
}

fn any_status() -> impl Strategy<Value = ReceiverStatus> {
    let tag = prop_oneof![Just(None), Just(Some(TAG)), Just(Some(1))];
    (0..4i64, 0..40i64, 0..4i32, tag, prop::bool::weighted(0.1)).prop_map(
        |(receiver_id, position, window, group_tag, is_end_of_stream)| ReceiverStatus {
            receiver_id,
            position: position * 100,
            window_length: window * 500,
            group_tag,
            feedback_length: if group_tag.is_some() { 8 } else { 0 },
            is_end_of_stream,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => any_status().prop_map(Step::Status),
        1 => any_status().prop_map(Step::Elicit),
        1 => Just(Step::Setup),
        1 => (0..4i64).prop_map(Step::Error),
        2 => Just(Step::Idle),
        2 => (0..3i64).prop_map(|n| Step::Wait(n * TIMEOUT / 2)),
    ]
}

/// A model of the rules in `docs/spec/04-media-driver.md`, section 10.3, in their order.
struct Model {
    config: GroupConfig,
    /// The key is the receiver id. The value is: position + window, time of the last status message, and whether the
    /// receiver is leaving.
    receivers: BTreeMap<i64, (i64, i64, bool)>,
    pin: Option<(i64, i64)>,
    is_elicited: bool,
}

impl Model {
    fn matches(&self, status: &ReceiverStatus) -> bool {
        self.config
            .group_tag
            .is_none_or(|tag| status.group_tag == Some(tag))
    }

    fn min(&mut self, now_ns: i64) -> i64 {
        if self
            .pin
            .is_some_and(|(_, time_ns)| time_ns + TIMEOUT < now_ns)
        {
            self.pin = None;
        }
        let limits = self.receivers.values().map(|receiver| receiver.0);
        limits
            .chain(self.pin.map(|pin| pin.0))
            .min()
            .unwrap_or(i64::MAX)
    }

    fn on_status(&mut self, status: &ReceiverStatus, sender_limit: i64, now_ns: i64) -> i64 {
        let limit = status.position + i64::from(status.window_length);
        let news = (limit, now_ns, status.is_end_of_stream);
        let is_known = self.receivers.contains_key(&status.receiver_id);
        if self.matches(status) && is_known {
            self.receivers.insert(status.receiver_id, news);
        }
        let mut min = self.min(now_ns);
        let may_join = self.receivers.is_empty()
            || i128::from(limit) >= i128::from(min) - i128::from(status.window_length);
        if !is_known && !status.is_end_of_stream && self.matches(status) && may_join {
            self.receivers.insert(status.receiver_id, news);
            min = min.min(limit);
            self.pin = None;
        }
        if self.receivers.len() < self.config.group_min_size {
            sender_limit
        } else if self.receivers.is_empty() {
            sender_limit.max(limit)
        } else {
            sender_limit.max(min)
        }
    }

    fn on_idle(&mut self, sender_limit: i64, now_ns: i64) -> i64 {
        self.receivers
            .retain(|_, (_, time_ns, is_leaving)| *time_ns + TIMEOUT >= now_ns && !*is_leaving);
        let min = self.min(now_ns);
        if self.receivers.len() < self.config.group_min_size || self.receivers.is_empty() {
            sender_limit
        } else {
            min
        }
    }
}

proptest! {
    /// 04-125
    #[test]
    fn min_and_tagged_follow_the_rules_after_any_script(
        is_tagged: bool,
        group_min_size in 0..3usize,
        steps in prop::collection::vec(step(), 0..60),
    ) {
        let config = group(is_tagged.then_some(TAG), group_min_size);
        let mut sender = Sender::min(config);
        let mut model = Model {
            config,
            receivers: BTreeMap::new(),
            pin: None,
            is_elicited: false,
        };
        let mut limit = 0;
        for step in steps {
            match step {
                Step::Status(status) => {
                    sender.hears(status);
                    limit = model.on_status(&status, limit, sender.now_ns);
                }
                Step::Elicit(status) => {
                    sender.flow_control.on_setup_elicited(&status);
                    model.is_elicited |= model.matches(&status);
                }
                Step::Setup => {
                    sender.flow_control.on_setup(sender.limit, sender.now_ns);
                    if std::mem::take(&mut model.is_elicited) && !model.receivers.is_empty() {
                        model.pin = Some((limit, sender.now_ns));
                    }
                }
                Step::Error(id) => {
                    sender.flow_control.on_error(id);
                    if let Some(receiver) = model.receivers.get_mut(&id) {
                        receiver.2 = true;
                    }
                }
                Step::Idle => {
                    sender.idles();
                    limit = model.on_idle(limit, sender.now_ns);
                }
                Step::Wait(duration_ns) => sender.now_ns += duration_ns,
            }
            prop_assert_eq!(sender.limit, limit);
            prop_assert_eq!(sender.receivers(), model.receivers.len() as i64);
            let is_connected = model.receivers.len() >= group_min_size;
            prop_assert_eq!(sender.is_connected(), is_connected);
        }
    }
}
