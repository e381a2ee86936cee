//! Tests persistent subscriptions with a driver in heap memory and virtual time, and without an archive.

use std::sync::{Arc, Mutex};

use aeron_agent::NanoClock;
use aeron_client::Aeron;

use super::super::context::ArchiveClientContext;
use super::super::error::ArchiveClientError;
use super::*;
use crate::tests::driver::TestDriver;

const TIMEOUT_NS: i64 = 1_000_000_000;

/// A subscription, its driver, and the texts of the errors that were reported to its listener.
struct Fixture {
    driver: Arc<TestDriver>,
    aeron: Aeron,
    subscription: PersistentSubscription,
    errors: Arc<Mutex<Vec<String>>>,
}

struct Recorder(Arc<Mutex<Vec<String>>>);

impl PersistentSubscriptionListener for Recorder {
    fn on_error(&mut self, error: &PersistentSubscriptionError) {
        self.0.lock().unwrap().push(error.to_string());
    }
}

impl Fixture {
    fn new(change: impl FnOnce(&Aeron, &mut PersistentSubscriptionContext)) -> Self {
        let driver = TestDriver::new();
        let aeron = driver.connect();
        let archive = ArchiveClientContext {
            message_timeout_ns: TIMEOUT_NS.unsigned_abs(),
            nano_clock: driver.nano_clock() as Arc<dyn NanoClock>,
            ..ArchiveClientContext::new("aeron:ipc", "aeron:ipc")
        };
        let mut context =
            PersistentSubscriptionContext::new(archive, 7, "aeron:ipc", 1, "aeron:ipc", 2);
        let errors = Arc::new(Mutex::new(Vec::new()));
        context.listener = Some(Box::new(Recorder(Arc::clone(&errors))));
        change(&aeron, &mut context);
        let subscription = PersistentSubscription::new(&aeron, context).unwrap();
        Self {
            driver,
            aeron,
            subscription,
            errors,
        }
    }

    fn poll(&mut self) -> usize {
        self.subscription.poll(|_| (), 10).unwrap()
    }

    /// Polls for this long, in steps of a millisecond.
    fn poll_for_ns(&mut self, duration_ns: i64) {
        let end_ns = self.driver.now_ns() + duration_ns;
        while self.driver.now_ns() < end_ns {
            self.driver.advance_ns(1_000_000);
            self.poll();
        }
    }

    fn errors(&self) -> Vec<String> {
        self.errors.lock().unwrap().clone()
    }
}

#[test]
fn subscriptions_are_send_and_a_status_is_send_and_sync() {
    fn assert_send<T: Send>() {}
    fn assert_sync<T: Sync>() {}
    assert_send::<PersistentSubscription>();
    assert_send::<PersistentSubscriptionStatus>();
    assert_sync::<PersistentSubscriptionStatus>();
}

/// 11-10: the client connects to the archive only when the subscription is polled.
#[test]
fn no_command_for_the_archive_is_sent_before_the_first_poll() {
    let mut fixture = Fixture::new(|_, _| {});
    assert!(!fixture.aeron.has_active_commands());
    fixture.poll_for_ns(TIMEOUT_NS / 2);
    assert!(fixture.aeron.has_active_commands());
}

/// 11-35, 11-64, 11-65, 11-66
#[test]
fn an_invalid_archive_setting_fails_the_subscription_once_at_the_first_poll() {
    let mut fixture = Fixture::new(|_, context| context.archive.control_request_channel.clear());
    let status = fixture.subscription.status();
    assert!(status.failure_reason().is_none());
    for _ in 0..3 {
        fixture.poll();
    }
    assert!(status.has_failed());
    let failure = status.failure_reason().unwrap();
    assert_eq!(failure.reason(), FailureReason::Generic);
    assert_eq!(failure.to_string(), "control_request_channel is not set");
    assert_eq!(fixture.errors(), [failure.to_string()]);
    assert_eq!(fixture.poll(), 0);
}

/// 11-34
#[test]
fn a_missing_archive_is_reported_after_each_timeout_and_the_subscription_continues() {
    let mut fixture = Fixture::new(|_, _| {});
    fixture.poll_for_ns(5 * TIMEOUT_NS / 2);
    let errors = fixture.errors();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].starts_with("no connection to the archive on "));
    let status = fixture.subscription.status();
    assert_eq!(
        status.state(),
        PersistentSubscriptionState::AwaitArchiveConnection
    );
    assert!(!status.has_failed() && status.failure_reason().is_none());
}

/// 11-6, 11-67
#[test]
fn the_counters_have_their_initial_values_and_close_keeps_the_client() {
    let mut fixture = Fixture::new(|_, context| context.listener = None);
    let values = |fixture: &Fixture| {
        let counters = &fixture.subscription.core.counters;
        counters.values()
    };
    assert_eq!(values(&fixture), [0, NO_JOIN_DIFFERENCE, 0, 0]);
    fixture.subscription.close();
    assert!(fixture.subscription.status().is_closed());
    assert_eq!(fixture.poll(), 0);
    assert!(!fixture.aeron.is_closed());
}

/// 11-8, 11-69
#[test]
fn counters_of_the_application_are_used_and_stay_open() {
    let mut given = None;
    let mut fixture = Fixture::new(|aeron, context| {
        let counter = aeron.add_counter(1001, &[], "state").unwrap();
        given = Some(counter.clone());
        context.counters.state = Some(counter);
        context.archive.control_request_channel.clear();
    });
    let given = given.unwrap();
    assert_eq!(given.get(), 0);
    fixture.poll();
    assert_eq!(given.get(), 17);
    fixture.subscription.close();
    assert!(!given.is_closed());
}

/// 11-3: a context can be used once, because `new` consumes it. 11-1: errors in the context are
/// returned before a counter is added.
#[test]
fn invalid_settings_are_refused_before_a_counter_is_added() {
    let driver = TestDriver::new();
    let aeron = driver.connect();
    let archive = ArchiveClientContext::default();
    let context = PersistentSubscriptionContext::new(archive, -2, "aeron:ipc", 1, "aeron:ipc", 2);
    let error = PersistentSubscription::new(&aeron, context).unwrap_err();
    assert!(matches!(error, ArchiveClientError::Configuration(_)));
    assert_eq!(driver.step(), 0);
}

/// 11-73
#[test]
fn a_temporary_error_of_the_driver_leads_to_another_attempt_and_other_errors_are_final() {
    let mut fixture = Fixture::new(|_, _| {});
    let core = &mut fixture.subscription.core;
    let refusal = |code| aeron_client::Error::Registration {
        correlation_id: 1,
        code,
        message: "refused".to_owned(),
    };
    let plan = set_up::AwaitedReplayPlan {
        position: 0,
        join_window: 0,
    };
    let code = |transition: &core::Transition| transition.to.code();
    let notice = |transition: &core::Transition| match &transition.notice {
        Some(core::TransitionNotice::Error(_)) => "error",
        Some(core::TransitionNotice::Failure(_)) => "failure",
        _ => "",
    };
    let mut outcomes = |error: aeron_client::ErrorCode| {
        [
            core.resource_failed(plan, "replay subscription", refusal(error), 0),
            live::LiveFailure::of(refusal(error)).into_transition(core, 0),
        ]
        .map(|transition| (code(&transition), notice(&transition)))
    };
    let temporary = outcomes(aeron_client::ErrorCode::ResourceTemporarilyUnavailable);
    assert_eq!(
        temporary,
        [
            (PersistentSubscriptionState::SendReplayRequest, "error"),
            (PersistentSubscriptionState::AddLiveSubscription, "error")
        ]
    );
    let failed = (PersistentSubscriptionState::Failed, "failure");
    assert_eq!(outcomes(aeron_client::ErrorCode::GenericError), [failed; 2]);
}

/// A full command buffer refuses a command at once: without a pause, each poll would report an error.
#[test]
fn the_next_command_is_sent_after_a_pause_if_the_driver_had_no_room_for_a_resource() {
    let mut fixture = Fixture::new(|_, _| {});
    let full = aeron_client::Error::CommandBufferFull {
        command: "ADD_SUBSCRIPTION",
    };
    let now_ns = fixture.driver.now_ns();
    let subscription = &mut fixture.subscription;
    let failed = live::LiveFailure::of(full).into_transition(&mut subscription.core, now_ns);
    subscription.state = failed.to;
    let state = |fixture: &Fixture| fixture.subscription.state.code();
    fixture.poll();
    assert_eq!(
        state(&fixture),
        PersistentSubscriptionState::AddLiveSubscription
    );
    fixture.poll_for_ns(2_000_000);
    assert_eq!(state(&fixture), PersistentSubscriptionState::AwaitLive);
}

/// 11-64
#[test]
fn closing_the_aeron_client_fails_the_subscription() {
    let mut fixture = Fixture::new(|_, _| {});
    fixture.poll();
    fixture.aeron.close();
    fixture.poll_for_ns(TIMEOUT_NS);
    assert!(fixture.subscription.status().has_failed());
}
