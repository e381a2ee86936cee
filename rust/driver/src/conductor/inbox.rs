//! [`ConductorInbox`]: the queues from the other agents. The conductor handles their replies and events.

use super::Conductor;
use super::endpoints::ReResolvedEndpoint;
use crate::log_storage::LogId;
use crate::queue::QueueConsumer;
use crate::receiver::ReceiverEvent;
use crate::resources::ResourceReply;
use crate::sender::SenderEvent;

/// Maximum number of replies of the native resource agent that the conductor handles in one duty cycle. In each of its
/// duty cycles, the agent sends fewer replies, unless many slow lookups end at the same time. The queue of replies
/// therefore stays short, and no client waits long for a reply.
const MAX_REPLIES: usize = 6;
/// Maximum number of events of the receiver that the conductor handles in one duty cycle. An image request takes little
/// time, because the conductor only queues the request. Many requests therefore do not delay the release of an image.
const MAX_RECEIVER_EVENTS: usize = 16;

/// The queues from the other agents to the conductor.
pub(super) struct ConductorInbox {
    pub(super) resource_replies: QueueConsumer<ResourceReply>,
    pub(super) sender_events: QueueConsumer<SenderEvent>,
    pub(super) receiver_events: QueueConsumer<ReceiverEvent>,
}

impl Conductor {
    /// Handles a few messages of each agent. Returns the number of messages.
    pub(super) fn take_messages(&mut self) -> usize {
        let mut work_count = 0;
        while work_count < MAX_REPLIES
            && let Ok(reply) = self.inbox.resource_replies.pop()
        {
            self.on_resource_reply(reply);
            work_count += 1;
        }
        if let Ok(event) = self.inbox.sender_events.pop() {
            self.on_sender_event(event);
            work_count += 1;
        }
        for _ in 0..MAX_RECEIVER_EVENTS {
            let Ok(event) = self.inbox.receiver_events.pop() else {
                break;
            };
            self.on_receiver_event(event);
            work_count += 1;
        }
        work_count
    }

    fn on_resource_reply(&mut self, reply: ResourceReply) {
        match reply {
            ResourceReply::LogCreated {
                log: LogId::Publication(id),
                result,
            } => self.on_publication_log(id, result),
            ResourceReply::LogCreated {
                log: LogId::Image(id),
                result,
            } => self.on_image_log(id, result.map(|log| log.memory)),
            ResourceReply::CreatingLog { registration_id } => {
                self.pending.on_creating_log(registration_id);
            }
            ResourceReply::LogAllocated {
                log: LogId::Publication(id),
                result,
            } => self.publications.on_pages(id, result, &self.outlets),
            ResourceReply::LogAllocated {
                log: LogId::Image(id),
                result,
            } => self.images.on_pages(id, result, &self.outlets),
            ResourceReply::LookingUp { id } => self.pending.on_looking_up(id),
            ResourceReply::ChannelResolved { id, result } => self.on_channel_resolved(id, result),
            ResourceReply::NameResolved { id, result } => self.on_address_resolved(id, result),
        }
    }

    fn on_sender_event(&mut self, event: SenderEvent) {
        match event {
            SenderEvent::EndpointReleased(id) => {
                self.endpoints.on_send_released(id, &mut self.outlets);
            }
            SenderEvent::PublicationReleased(id) => self.publications.on_released(id),
            SenderEvent::ReResolve {
                endpoint,
                name,
                current,
            } => {
                let endpoint = ReResolvedEndpoint::Sender(endpoint);
                self.endpoints
                    .re_resolve(endpoint, name, current, &mut self.outlets);
            }
            SenderEvent::ResponseSetup {
                response_correlation_id,
                response_session_id,
            } => self.on_response_setup(response_correlation_id, response_session_id),
            SenderEvent::ResponseConnected {
                response_correlation_id,
            } => self.on_response_connected(response_correlation_id),
            SenderEvent::PublicationError(report) => {
                self.outlets.announce_publication_error(&report);
            }
        }
    }

    fn on_receiver_event(&mut self, event: ReceiverEvent) {
        match event {
            ReceiverEvent::CreateImage(request) => {
                self.images.on_request(request, &mut self.outlets);
            }
            ReceiverEvent::ReResolveControl {
                endpoint,
                destination,
                name,
                current,
            } => {
                let endpoint = ReResolvedEndpoint::Receiver(endpoint, destination);
                self.endpoints
                    .re_resolve(endpoint, name.into(), Some(current), &mut self.outlets);
            }
            ReceiverEvent::DestinationReleased {
                endpoint,
                destination,
            } => {
                self.endpoints
                    .on_destination_released(endpoint, destination, &mut self.outlets);
            }
            ReceiverEvent::EndpointReleased(id) => {
                self.endpoints.on_receive_released(id, &mut self.outlets);
            }
            ReceiverEvent::ImageReleased(id) => self.images.on_released(id),
        }
    }
}
