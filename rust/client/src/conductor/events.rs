//! Handles the events of the driver, in the duty cycle of the conductor. Ignores responses to commands of other
//! clients.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::LogBuffers;
use aeron_protocol::event::{self, Event};
use aeron_protocol::{DecodeError, ErrorCode};

use super::commands::{Answered, Purpose};
use super::removal::Removal;
use super::{Conductor, notify_counter};
use crate::client::Client;
use crate::counter::core::CounterCore;
use crate::error::{CloseCause, Error, Result};
use crate::handlers::PublicationErrorFrame;
use crate::image::{Image, ImageParts};
use crate::publication::core::{
    ConcurrentCore, ExclusiveCore, PublicationBase, PublicationCore, PublicationParts,
    PublishedStream,
};
use crate::subscription::core::SubscriptionCore;

impl Conductor {
    /// Decodes and handles one event record of the driver.
    pub(super) fn on_record(&mut self, client: &Arc<Client>, type_id: i32, body: &[u8]) {
        match Event::decode(type_id, body) {
            Ok(event) => self.on_event(client, &event),
            // A newer driver may send events that this client does not know.
            Err(DecodeError::UnknownTypeId { .. }) => {}
            Err(error) => client.dispatcher.report(Error::MalformedEvent(error)),
        }
    }

    fn on_event(&mut self, client: &Arc<Client>, event: &Event<'_>) {
        match event {
            Event::Error(error) => self.on_error(client, error),
            Event::PublicationReady(ready) | Event::ExclusivePublicationReady(ready) => {
                self.on_publication_ready(client, ready);
            }
            Event::SubscriptionReady(ready) => self.on_subscription_ready(client, ready),
            Event::AvailableImage(available) => self.on_available_image(client, available),
            Event::UnavailableImage(unavailable) => self.on_unavailable_image(client, unavailable),
            Event::OperationSuccess(success) => {
                self.on_operation_success(client, success.correlation_id);
            }
            Event::CounterReady(counter) => self.on_counter_ready(client, counter),
            Event::UnavailableCounter(counter) => {
                notify_counter(
                    client,
                    &self.link,
                    &self.handlers.unavailable_counter,
                    counter.correlation_id,
                    counter.counter_id,
                );
            }
            Event::StaticCounter(counter) => self.on_static_counter(client, counter),
            Event::ClientTimeout(timeout) => {
                let client_id = self.link.proxy.client_id();
                if timeout.client_id == client_id {
                    self.terminate(client, Error::ClientTimeout { client_id });
                }
            }
            Event::PublicationError(error) => self.on_publication_error(client, error),
            Event::NextAvailableSessionId(next) => {
                let id = next.correlation_id;
                if let Some(purpose) = self.wanted(client, id) {
                    self.commands.succeed(id, purpose, next.next_session_id);
                }
            }
        }
    }

    fn on_error(&mut self, client: &Arc<Client>, refusal: &event::Error<'_>) {
        let correlation_id = refusal.offending_command_correlation_id;
        let message = text(refusal.error_message);
        if refusal.error_code == ErrorCode::ChannelEndpointError {
            self.on_channel_endpoint_error(client, correlation_id as i32, &message);
        }
        let Some(Answered::Wanted(purpose)) = self.commands.answered(correlation_id) else {
            return;
        };
        let error = Error::Registration {
            correlation_id,
            code: refusal.error_code,
            message,
        };
        match purpose {
            Purpose::Removal { .. } => return,
            Purpose::AddSubscription => self.abandon_subscription(client, correlation_id, &error),
            Purpose::Restoration => {
                return self.on_restoration_refused(client, correlation_id, error);
            }
            _ => {}
        }
        self.commands.fail(correlation_id, error);
    }

    /// Closes a subscription that the driver refused to add. The subscription was created when the command was sent.
    fn abandon_subscription(&mut self, client: &Arc<Client>, registration_id: i64, error: &Error) {
        if let Some(core) = self.subscriptions.remove(&registration_id) {
            core.close(&CloseCause::error(error.clone()));
            client.dispatcher.push(move || drop(core));
        }
    }

    fn on_channel_endpoint_error(
        &mut self,
        client: &Arc<Client>,
        status_indicator_id: i32,
        message: &str,
    ) {
        let publications = self
            .publications
            .values()
            .map(|core| core.base().parts().channel_status_id);
        let exclusive = self
            .exclusive_publications
            .values()
            .map(|core| core.base().parts().channel_status_id);
        let subscriptions = self
            .subscriptions
            .values()
            .map(|core| core.channel_status_id());
        for _ in publications
            .chain(exclusive)
            .chain(subscriptions)
            .filter(|id| *id == status_indicator_id)
        {
            let message = message.to_owned();
            client.dispatcher.report(Error::ChannelEndpoint {
                status_indicator_id,
                message,
            });
        }
    }

    fn on_publication_ready(&mut self, client: &Arc<Client>, ready: &event::PublicationReady<'_>) {
        let id = ready.correlation_id;
        let Some(purpose) = self.wanted(client, id) else {
            return;
        };
        let stream = match &purpose {
            Purpose::AddPublication(stream) => stream.clone(),
            Purpose::Restoration => return self.on_publication_restored(client, ready),
            _ => return,
        };
        match self.add_publication(client, ready, stream) {
            Ok(()) => self.commands.succeed(id, purpose, 0),
            Err(error) => {
                self.commands.fail(id, error);
                let removal = Removal::Publication {
                    registration_id: id,
                    revoke: false,
                };
                self.send_removal(client, removal);
            }
        }
    }

    fn add_publication(
        &mut self,
        client: &Arc<Client>,
        ready: &event::PublicationReady<'_>,
        stream: PublishedStream,
    ) -> Result<()> {
        let (id, is_exclusive) = (ready.correlation_id, stream.is_exclusive);
        let parts = self.publication_parts(ready)?;
        let registration = self.registration(id);
        if is_exclusive {
            let core = ExclusiveCore::new(stream, registration, parts)?;
            self.exclusive_publications.insert(id, Arc::new(core));
        } else {
            let core = ConcurrentCore::new(stream, registration, parts, client.reconnects());
            self.publications.insert(id, Arc::new(core));
        }
        Ok(())
    }

    pub(super) fn publication_parts(
        &mut self,
        ready: &event::PublicationReady<'_>,
    ) -> Result<PublicationParts> {
        let log = self.open_log(ready.registration_id, ready.log_file_name)?;
        let limit = self.link.counter(ready.publication_limit_counter_id)?;
        Ok(PublicationParts {
            link: Arc::clone(&self.link),
            session_id: ready.session_id,
            registration_id: ready.correlation_id,
            original_registration_id: ready.registration_id,
            channel_status_id: ready.channel_status_indicator_id,
            limit,
            start_position: log.producer_position(),
            log,
            has_ended: AtomicBool::new(false),
        })
    }

    fn on_subscription_ready(&mut self, client: &Arc<Client>, ready: &event::SubscriptionReady) {
        match self.wanted(client, ready.correlation_id) {
            Some(Purpose::AddSubscription) => {}
            Some(Purpose::Restoration) => return self.on_subscription_restored(client, ready),
            _ => return,
        }
        if let Some(subscription) = self.subscriptions.get(&ready.correlation_id) {
            subscription.set_ready(ready.channel_status_indicator_id);
        }
        self.commands
            .succeed(ready.correlation_id, Purpose::AddSubscription, 0);
    }

    fn on_available_image(&mut self, client: &Arc<Client>, available: &event::AvailableImage<'_>) {
        let Some(subscription) = self
            .subscriptions
            .get(&available.subscription_registration_id)
        else {
            return;
        };
        let subscription = Arc::clone(subscription);
        if subscription.has_image(available.correlation_id) {
            return;
        }
        let image = match self.make_image(client, &subscription, available) {
            Ok(image) => image,
            Err(error) => return client.dispatcher.report(error),
        };
        if !subscription.add_image(image.clone()) {
            return;
        }
        if let Some(handler) = subscription.available_handler() {
            client.dispatcher.push(move || handler(&image));
        }
    }

    fn on_unavailable_image(
        &mut self,
        client: &Arc<Client>,
        unavailable: &event::UnavailableImage<'_>,
    ) {
        let Some(subscription) = self
            .subscriptions
            .get(&unavailable.subscription_registration_id)
        else {
            return;
        };
        let subscription = Arc::clone(subscription);
        if let Some(image) = subscription.remove_image(unavailable.correlation_id) {
            self.retire_image(client, &subscription, image, &CloseCause::default());
        }
    }

    fn on_operation_success(&mut self, client: &Arc<Client>, correlation_id: i64) {
        let Some(purpose) = self.wanted(client, correlation_id) else {
            return;
        };
        match &purpose {
            Purpose::Removal { .. } => return,
            Purpose::Restoration => return self.on_destination_restored(correlation_id),
            Purpose::AddDestination {
                publication_id,
                channel,
            } => self.on_destination_added(correlation_id, *publication_id, channel),
            Purpose::AddReceiveDestination {
                subscription_id,
                channel,
            } => {
                if let Some(core) = self.subscriptions.get(subscription_id) {
                    core.on_destination(channel);
                }
            }
            _ => {}
        }
        self.commands.succeed(correlation_id, purpose, 0);
    }

    /// Records a destination in the publication that it belongs to. If several share it, one of them is enough.
    fn on_destination_added(&self, id: i64, publication_id: i64, channel: &str) {
        let concurrent = self.publications.values().map(|core| core.base());
        let exclusive = self.exclusive_publications.values().map(|core| core.base());
        let mut sharing = concurrent
            .chain(exclusive)
            .filter(|base| base.parts().original_registration_id == publication_id);
        if let Some(base) = sharing.next() {
            base.on_destination(id, id, channel);
        }
    }

    fn on_counter_ready(&mut self, client: &Arc<Client>, ready: &event::CounterUpdate) {
        let id = ready.correlation_id;
        self.on_counter(client, id, ready.counter_id);
        notify_counter(
            client,
            &self.link,
            &self.handlers.available_counter,
            id,
            ready.counter_id,
        );
    }

    fn on_static_counter(&mut self, client: &Arc<Client>, ready: &event::StaticCounter) {
        self.on_counter(client, ready.correlation_id, ready.counter_id);
    }

    fn on_counter(&mut self, client: &Arc<Client>, correlation_id: i64, counter_id: i32) {
        let purpose = match self.wanted(client, correlation_id) {
            Some(Purpose::Restoration) => {
                return self.on_counter_restored(client, correlation_id, counter_id);
            }
            Some(purpose) => purpose,
            None => return,
        };
        let Purpose::AddCounter(description) = &purpose else {
            return;
        };
        match self.link.counter(counter_id) {
            Ok(value) => {
                let registration = self.registration(correlation_id);
                let description = description.clone();
                let core = CounterCore::new(value, registration, description, client.reconnects());
                self.counters.insert(correlation_id, Arc::new(core));
                self.commands.succeed(correlation_id, purpose, 0);
            }
            Err(error) => self.commands.fail(correlation_id, error),
        }
    }

    fn on_publication_error(&mut self, client: &Arc<Client>, error: &event::PublicationError<'_>) {
        let Some(handler) = &self.handlers.publication_error else {
            return;
        };
        let concurrent = self.publications.values().map(|core| core.base());
        let exclusive = self.exclusive_publications.values().map(|core| core.base());
        let is_named = |base: &&PublicationBase| {
            base.parts().original_registration_id == error.registration_id
        };
        for _ in concurrent.chain(exclusive).filter(is_named) {
            let (handler, frame) = (Arc::clone(handler), error_frame(error));
            client.dispatcher.push(move || handler(&frame));
        }
    }

    fn make_image(
        &mut self,
        client: &Arc<Client>,
        subscription: &SubscriptionCore,
        available: &event::AvailableImage<'_>,
    ) -> Result<Image> {
        let position = self.link.counter(available.subscriber_position_id)?;
        let log = self.open_log(available.correlation_id, available.log_file_name)?;
        let parts = ImageParts {
            client: Arc::clone(client),
            link: Arc::clone(&self.link),
            correlation_id: available.correlation_id,
            session_id: available.session_id,
            stream_id: available.stream_id,
            subscription_registration_id: available.subscription_registration_id,
            is_spy: subscription.is_spy(),
            source_identity: text(available.source_identity),
            position,
            log,
        };
        subscription.skip_consumed(&parts);
        Ok(Image::new(parts))
    }

    /// Returns the log with this id; maps it if necessary. The driver may delete the file at any later time.
    fn open_log(&mut self, id: i64, name: &[u8]) -> Result<Arc<LogBuffers<SharedBuffer>>> {
        if let Some(log) = self.logs.get(&id).and_then(Weak::upgrade) {
            return Ok(log);
        }
        let log = Arc::new(self.link.logs.open(name)?);
        self.logs.insert(id, Arc::downgrade(&log));
        Ok(log)
    }
}

fn error_frame(error: &event::PublicationError<'_>) -> PublicationErrorFrame {
    PublicationErrorFrame {
        registration_id: error.registration_id,
        destination_registration_id: error.destination_registration_id,
        session_id: error.session_id,
        stream_id: error.stream_id,
        receiver_id: error.receiver_id,
        group_tag: error.group_tag,
        error_code: error.error_code,
        error_message: text(error.error_message),
        source_address: error.source_address,
    }
}

/// Converts text of a peer, which may be invalid UTF-8.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
