//! Gives the next driver all resources of a client that has lost its driver, in the order in which they were added.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use aeron_protocol::event;

use super::Conductor;
use super::commands::Purpose;
use super::outage::{Connection, Outage};
use super::removal::Removal;
use crate::client::Client;
use crate::counter::core::CounterCore;
use crate::error::{CloseCause, DriverTimeout, Error, Result};
use crate::image::Image;
use crate::proxy::DestinationCommand;
use crate::publication::core::{
    ConcurrentCore, Destination, ExclusiveCore, PublicationBase, PublicationCore, PublicationParts,
};
use crate::reconnect::ReconnectReport;
use crate::subscription::core::SubscriptionCore;

/// Time after which a refused command is sent again. The sockets of a killed driver may need a moment to close.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// One command that gives the next driver a part of the client.
#[derive(Clone)]
enum Step {
    Publication(Arc<ConcurrentCore>),
    ExclusivePublication(Arc<ExclusiveCore>),
    Subscription(Arc<SubscriptionCore>),
    Counter(Arc<CounterCore>),
    Destination(Arc<dyn PublicationCore + Send + Sync>, Destination),
    ReceiveDestination(Arc<SubscriptionCore>, String),
}

/// The resources that the next driver does not have yet.
pub(super) struct Restoration {
    pub(super) outage: Outage,
    deadline_ns: i64,
    /// Steps to send, each not before a time.
    unsent: VecDeque<(i64, Step)>,
    /// Steps without a response, each with the time at which it was sent, by the correlation id of their command.
    sent: HashMap<i64, (i64, Step)>,
    /// Exclusive publications that the application is writing to, with their next log.
    unplaced: Vec<(Arc<ExclusiveCore>, Arc<PublicationParts>)>,
    refused: Vec<Error>,
}

impl Restoration {
    /// Whether the driver has not responded to a command within the driver timeout.
    fn is_without_response(&self, client: &Client, now_ns: i64) -> bool {
        let timeout_ns = client.settings.driver_timeout().as_nanos() as i64;
        let mut sent = self.sent.values();
        sent.any(|(sent_ns, _)| now_ns - sent_ns > timeout_ns)
    }
}

impl Step {
    fn order(&self) -> u64 {
        match self {
            Self::Publication(core) => core.base().registration.order,
            Self::ExclusivePublication(core) => core.base().registration.order,
            Self::Subscription(core) | Self::ReceiveDestination(core, _) => core.registration.order,
            Self::Counter(core) => core.registration.order,
            Self::Destination(core, _) => core.base().registration.order,
        }
    }

    /// Whether the application has closed the resource in the meantime.
    fn is_closed(&self) -> bool {
        match self {
            Self::Publication(core) => core.base().is_closed(),
            Self::ExclusivePublication(core) => core.base().is_closed(),
            Self::Subscription(core) | Self::ReceiveDestination(core, _) => core.is_closed(),
            Self::Counter(core) => core.is_closed(),
            Self::Destination(core, _) => core.base().is_closed(),
        }
    }
}

impl Conductor {
    pub(super) fn begin_restoration(&self, outage: Outage, now_ns: i64) -> Restoration {
        let concurrent = self.publications.values().cloned().map(Step::Publication);
        let exclusive = self.exclusive_publications.values().cloned();
        let subscriptions = self.subscriptions.values().cloned();
        let counters = self.counters.values().cloned();
        let mut steps: Vec<Step> = concurrent
            .chain(exclusive.map(Step::ExclusivePublication))
            .chain(subscriptions.map(Step::Subscription))
            .chain(counters.map(Step::Counter))
            .collect();
        steps.sort_by_key(Step::order);
        Restoration {
            outage,
            deadline_ns: 0,
            unsent: steps.into_iter().map(|step| (now_ns, step)).collect(),
            sent: HashMap::new(),
            unplaced: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Continues the restoration. Returns a work count.
    pub(super) fn restore(&mut self, client: &Arc<Client>) -> usize {
        let Connection::Restoring(mut restoration) =
            std::mem::replace(&mut self.connection, Connection::Up)
        else {
            return 0;
        };
        let now_ns = client.now_ns();
        if restoration.deadline_ns == 0 {
            let timeout_ns = client.settings.driver_timeout().as_nanos() as i64;
            restoration.deadline_ns = now_ns + timeout_ns;
        }
        let work = self.send_steps(client, &mut restoration, now_ns);
        restoration.unplaced.retain(|(core, parts)| {
            // The log was opened before, so it is sound.
            !core.base().is_closed() && !core.try_continue(parts).unwrap_or(true)
        });
        let is_late = now_ns - restoration.deadline_ns > 0;
        if restoration.unsent.is_empty() && restoration.sent.is_empty() {
            // A writer that the application keeps for ever must not keep the client from its report.
            if restoration.unplaced.is_empty() || is_late {
                self.end_restoration(client, *restoration, now_ns);
                return work + 1;
            }
        } else if restoration.is_without_response(client, now_ns) {
            let timeout = client.settings.driver_timeout();
            self.connection = Connection::Restoring(restoration);
            self.suspend(client, DriverTimeout::NoResponse(timeout).into());
            return work + 1;
        }
        self.connection = Connection::Restoring(restoration);
        work
    }

    fn send_steps(
        &mut self,
        client: &Arc<Client>,
        restoration: &mut Restoration,
        now_ns: i64,
    ) -> usize {
        let mut work = 0;
        for _ in 0..restoration.unsent.len() {
            let Some((at_ns, step)) = restoration.unsent.pop_front() else {
                break;
            };
            if step.is_closed() {
                continue;
            }
            if now_ns - at_ns < 0 {
                restoration.unsent.push_back((at_ns, step));
                continue;
            }
            match self.send_step(&step) {
                Ok(None) if now_ns - restoration.deadline_ns > 0 => {
                    let error = Error::InvalidArgument(
                        "the subscription of a response channel is not in the next driver"
                            .to_owned(),
                    );
                    self.refuse_step(client, restoration, &step, error);
                }
                Ok(None) => {
                    let retry_ns = now_ns + RETRY_INTERVAL.as_nanos() as i64;
                    restoration.unsent.push_back((retry_ns, step));
                }
                Ok(Some(id)) => {
                    self.await_answer(client, id, Purpose::Restoration);
                    restoration.sent.insert(id, (now_ns, step));
                    work += 1;
                }
                Err(Error::CommandBufferFull { .. }) => {
                    restoration.unsent.push_front((at_ns, step));
                    break;
                }
                Err(error) => self.refuse_step(client, restoration, &step, error),
            }
        }
        work
    }

    /// Sends the command of a step. Returns its correlation id; `None` if another resource must come first.
    fn send_step(&self, step: &Step) -> Result<Option<i64>> {
        debug_assert!(
            !self.is_down(),
            "client {} gives its resources to a driver",
            self.link.proxy.client_id()
        );
        let proxy = &self.link.proxy;
        let add_publication = |base: &PublicationBase| {
            let Some(channel) = base.next_channel()? else {
                return Ok(None);
            };
            let (stream_id, is_exclusive) = (base.stream.stream_id, base.stream.is_exclusive);
            proxy
                .add_publication(&channel, stream_id, is_exclusive)
                .map(Some)
        };
        match step {
            Step::Publication(core) => return add_publication(core.base()),
            Step::ExclusivePublication(core) => return add_publication(core.base()),
            Step::Subscription(core) => proxy.add_subscription(core.channel(), core.stream_id()),
            Step::Counter(core) => proxy.counter(&core.description),
            Step::Destination(core, destination) => {
                let id = core.base().parts().original_registration_id;
                proxy.destination(DestinationCommand::Add, id, &destination.channel)
            }
            Step::ReceiveDestination(core, channel) => {
                let id = core.registration_id();
                proxy.destination(DestinationCommand::AddReceive, id, channel)
            }
        }
        .map(Some)
    }

    /// Removes the step that waits for this response.
    fn take_step(&mut self, correlation_id: i64) -> Option<Step> {
        match &mut self.connection {
            Connection::Restoring(restoration) => {
                let sent = restoration.sent.remove(&correlation_id);
                sent.map(|(_, step)| step)
            }
            Connection::Up | Connection::Down(_) => None,
        }
    }

    fn add_steps(&mut self, steps: impl Iterator<Item = Step>, now_ns: i64) {
        if let Connection::Restoring(restoration) = &mut self.connection {
            // In front, so that a resource has its destinations before the next resource.
            let steps: Vec<_> = steps.collect();
            for step in steps.into_iter().rev() {
                restoration.unsent.push_front((now_ns, step));
            }
        }
    }

    /// Handles a refusal. Refusals may be temporary, such as that of an address that the killed driver still has. So
    /// the command is sent again until the driver timeout is over.
    pub(super) fn on_restoration_refused(
        &mut self,
        client: &Arc<Client>,
        correlation_id: i64,
        error: Error,
    ) {
        if let Some(step) = self.take_step(correlation_id) {
            self.retry_or_refuse(client, step, error);
        }
    }

    fn retry_or_refuse(&mut self, client: &Arc<Client>, step: Step, error: Error) {
        let now_ns = client.now_ns();
        let retry_ns = now_ns + RETRY_INTERVAL.as_nanos() as i64;
        let Connection::Restoring(mut restoration) =
            std::mem::replace(&mut self.connection, Connection::Up)
        else {
            return;
        };
        if retry_ns - restoration.deadline_ns < 0 {
            restoration.unsent.push_back((retry_ns, step));
        } else {
            self.refuse_step(client, &mut restoration, &step, error);
        }
        self.connection = Connection::Restoring(restoration);
    }

    /// Closes a resource that the next driver does not accept.
    fn refuse_step(
        &mut self,
        client: &Arc<Client>,
        restoration: &mut Restoration,
        step: &Step,
        error: Error,
    ) {
        let cause = CloseCause::error(error.clone());
        match step {
            Step::Publication(core) => self.close_refused_publication(client, core.base(), &cause),
            Step::ExclusivePublication(core) => {
                self.close_refused_publication(client, core.base(), &cause);
            }
            Step::Destination(core, _) => {
                self.close_refused_publication(client, core.base(), &cause);
            }
            Step::Subscription(core) | Step::ReceiveDestination(core, _) => {
                let registration_id = core.registration.key();
                self.subscriptions.remove(&registration_id);
                self.close_subscription(client, core, &cause);
                self.send_removal(client, Removal::Subscription { registration_id });
            }
            Step::Counter(core) => {
                self.counters.remove(&core.registration.key());
                core.close(&cause);
            }
        }
        client.dispatcher.report(error.clone());
        restoration.refused.push(error);
    }

    /// Closes a publication. If only one of its destinations was refused, the driver has the publication, and removes
    /// it.
    fn close_refused_publication(
        &mut self,
        client: &Arc<Client>,
        base: &PublicationBase,
        cause: &CloseCause,
    ) {
        let key = base.registration.key();
        match base.stream.is_exclusive {
            true => drop(self.exclusive_publications.remove(&key)),
            false => drop(self.publications.remove(&key)),
        }
        base.close(cause);
        self.linger(client, &base.log());
        self.send_removal(client, removal_of_publication(key));
    }

    pub(super) fn on_publication_restored(
        &mut self,
        client: &Arc<Client>,
        ready: &event::PublicationReady<'_>,
    ) {
        let id = ready.correlation_id;
        let Some(step) = self.take_step(id) else {
            return;
        };
        if step.is_closed() {
            return self.send_removal(client, removal_of_publication(id));
        }
        let parts = match self.publication_parts(ready) {
            Ok(parts) => Arc::new(parts),
            // Most likely this driver has ended too, and the next one has deleted its files.
            Err(error) => {
                self.send_removal(client, removal_of_publication(id));
                return self.retry_or_refuse(client, step, error);
            }
        };
        let continued = match &step {
            Step::Publication(core) => {
                self.publications.remove(&core.base().registration.key());
                core.base().registration.set_key(id);
                self.publications.insert(id, Arc::clone(core));
                core.try_continue(&parts)
            }
            Step::ExclusivePublication(core) => {
                let key = core.base().registration.key();
                self.exclusive_publications.remove(&key);
                core.base().registration.set_key(id);
                self.exclusive_publications.insert(id, Arc::clone(core));
                core.try_continue(&parts)
            }
            _ => return,
        };
        match (continued, &step) {
            (Err(error), _) => {
                self.send_removal(client, removal_of_publication(id));
                return self.retry_or_refuse(client, step, error);
            }
            (Ok(false), Step::ExclusivePublication(core)) => {
                core.base().announce(&parts);
                if let Connection::Restoring(restoration) = &mut self.connection {
                    restoration.unplaced.push((Arc::clone(core), parts));
                }
            }
            (Ok(_), _) => {}
        }
        let core: Arc<dyn PublicationCore + Send + Sync> = match step {
            Step::Publication(core) => core,
            Step::ExclusivePublication(core) => core,
            _ => return,
        };
        let destinations = core.base().destinations();
        let steps = destinations
            .into_iter()
            .map(|destination| Step::Destination(Arc::clone(&core), destination));
        self.add_steps(steps, client.now_ns());
    }

    pub(super) fn on_subscription_restored(
        &mut self,
        client: &Arc<Client>,
        ready: &event::SubscriptionReady,
    ) {
        let id = ready.correlation_id;
        let Some(Step::Subscription(core)) = self.take_step(id) else {
            return;
        };
        if core.is_closed() {
            let removal = Removal::Subscription {
                registration_id: id,
            };
            return self.send_removal(client, removal);
        }
        self.subscriptions.remove(&core.registration.key());
        core.registration.set_key(id);
        self.subscriptions.insert(id, Arc::clone(&core));
        core.resume(id, ready.channel_status_indicator_id);
        let destinations = core.receive_destinations();
        let steps = destinations
            .into_iter()
            .map(|channel| Step::ReceiveDestination(Arc::clone(&core), channel));
        self.add_steps(steps, client.now_ns());
    }

    pub(super) fn on_counter_restored(&mut self, client: &Arc<Client>, id: i64, counter_id: i32) {
        let Some(Step::Counter(core)) = self.take_step(id) else {
            return;
        };
        if core.is_closed() {
            if !core.is_static() {
                let removal = Removal::Counter {
                    registration_id: id,
                };
                self.send_removal(client, removal);
            }
            return;
        }
        match self.link.counter(counter_id) {
            Ok(value) => {
                self.counters.remove(&core.registration.key());
                core.registration.set_key(id);
                core.resume(&value, id);
                self.counters.insert(id, core);
            }
            Err(error) => client.dispatcher.report(error),
        }
    }

    pub(super) fn on_destination_restored(&mut self, correlation_id: i64) {
        if let Some(Step::Destination(core, destination)) = self.take_step(correlation_id) {
            let base: &PublicationBase = core.base();
            base.on_destination(destination.id, correlation_id, &destination.channel);
        }
    }

    fn end_restoration(&mut self, client: &Arc<Client>, restoration: Restoration, now_ns: i64) {
        self.connection = Connection::Up;
        let Some(reconnecting) = &mut self.reconnecting else {
            return;
        };
        let lost = std::mem::take(&mut reconnecting.lost_streams);
        let outage_ns = now_ns.saturating_sub(restoration.outage.since_ns).max(0);
        let report = ReconnectReport {
            cause: restoration.outage.cause,
            outage: Duration::from_nanos(outage_ns as u64),
            reconnections: reconnecting.count(),
            streams: lost.iter().map(|stream| stream.report()).collect(),
            refused: restoration.refused,
        };
        log::warn!(
            target: "aeron.client",
            "{} has connected again after {:.3} s",
                client.settings.display_name(self.link.proxy.client_id()),
                report.outage.as_secs_f64()
        );
        if let Some(handler) = reconnecting.reconnect_handler() {
            client.dispatcher.push(move || handler(&report));
        }
        client.dispatcher.wake();
    }

    /// Ends the images of the lost driver that are consumed. Then the images of the next driver can be polled: the
    /// messages of old sessions come before those of new ones.
    pub(super) fn retire_consumed(&mut self, client: &Arc<Client>) -> usize {
        if self.is_down() {
            return 0;
        }
        let with_orphans = self
            .subscriptions
            .values()
            .filter(|core| core.has_orphans());
        let subscriptions: Vec<_> = with_orphans.cloned().collect();
        for subscription in &subscriptions {
            self.retire_orphans(client, subscription, |image| !image.is_readable());
        }
        subscriptions.len()
    }

    /// Ends all images of lost drivers, although they are not consumed.
    pub(super) fn retire_all_orphans(
        &mut self,
        client: &Arc<Client>,
        subscription: &Arc<SubscriptionCore>,
    ) {
        subscription.forget_waiting_orphans();
        self.retire_orphans(client, subscription, |_| true);
    }

    /// Ends the images of a lost driver for which `is_due` is true. If none is left, the images of the next driver
    /// become available.
    pub(super) fn retire_orphans(
        &mut self,
        client: &Arc<Client>,
        subscription: &Arc<SubscriptionCore>,
        is_due: impl Fn(&Image) -> bool,
    ) {
        for image in subscription.take_orphans(is_due) {
            self.retire_image(client, subscription, image, &CloseCause::default());
        }
        for image in subscription.admit_waiting() {
            if let Some(handler) = subscription.available_handler() {
                client.dispatcher.push(move || handler(&image));
            }
        }
    }
}

fn removal_of_publication(registration_id: i64) -> Removal {
    Removal::Publication {
        registration_id,
        revoke: false,
    }
}
