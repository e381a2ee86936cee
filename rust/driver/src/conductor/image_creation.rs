//! Images are made when the receiver hears of a stream that somebody wants.

use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::types;
use aeron_memory::directory::image_log;
use aeron_memory::log::buffers::log_length;
use aeron_memory::log::position::Positions;
use aeron_memory::log::{LogBuffers, LogDescription, LogType};
use aeron_protocol::uri::ReceiverGroup;

use super::Conductor;
use super::links::{Origin, Subscription};
use super::outlets::NULL_ID;
use super::outlets::StreamOwner;
use crate::congestion::{Congestion, CongestionStrategy, CubicIndicators, max_window_length};
use crate::error::DriverError;
use crate::image::{ImageConfig, ImageCounters, ImageStrategies, PublicationImage};
use crate::log_storage::LogId;
use crate::loss_detector::LossDetector;
use crate::nak_delay::NakDelay;
use crate::receiver::{
    ForgettableState, ImageRequest, MAX_IMAGES, ReceiverCommand, ReceiverImage, ReceiverImageConfig,
};
use crate::resources::ResourceCommand;
use crate::stream::{PageRequest, Pages, Stream, StreamSession, TetherTimeouts};

/// Of a long term, an image may be sent at least this much beyond its window before pages for it are asked for.
const FIRST_PAGES_LENGTH: i64 = 256 * 1024;

/// Counters of an image with one subscriber.
const COUNTERS_PER_IMAGE: usize = 4;

/// An image that waits for its log.
#[derive(Debug)]
pub(super) struct PendingImage {
    correlation_id: i64,
    request: Box<ImageRequest>,
    first_pages: PageRequest,
    is_sparse: bool,
}

/// What the endpoint of an image, and the subscription that it is made for, say about it.
struct ImagePlan {
    /// Of the subscription that is matched first.
    client_id: i64,
    channel: String,
    is_reliable: bool,
    /// Whether there may be several receivers.
    is_group: bool,
    tether: bool,
    rejoin: bool,
    window_length: i64,
    endpoint_channel: Arc<crate::media::UdpChannel>,
    tether_timeouts: TetherTimeouts,
}

impl Conductor {
    /// Asks for the log of an image, if a subscription wants it.
    pub(super) fn request_image(&mut self, request: Box<ImageRequest>) -> Result<(), DriverError> {
        let Some(plan) = self.plan_image(&request) else {
            self.refuse_image(&request, None);
            return Ok(());
        };
        self.check_image_count(&request, &plan)?;
        self.check_counters()?;
        self.check_datagrams(&request, &plan)?;
        let join_position = join_position(&request)?;
        let is_sparse = self.is_sparse(&request);
        let correlation_id = self.commands.ring().next_correlation_id();
        let term_length = i64::from(request.setup.term_length);
        let window = max_window_length(plan.window_length, request.setup.term_length as usize);
        let ahead = (term_length / 2).min(FIRST_PAGES_LENGTH).max(window.into());
        let first_pages = Pages::first_request(join_position, term_length, ahead);
        let length = log_length(term_length, self.context.file_page_size as i64)
            .map_err(DriverError::invalid_argument)?;
        self.outlets
            .resource_commands
            .send(ResourceCommand::CreateLog {
                log: LogId::Image(correlation_id),
                length,
                sparse: is_sparse.then_some(first_pages),
            });
        self.pending_images.push(PendingImage {
            correlation_id,
            request,
            first_pages,
            is_sparse,
        });
        Ok(())
    }

    /// Lets the receiver ask again. The reason goes to the error log.
    pub(super) fn refuse_image(&mut self, request: &ImageRequest, error: Option<&DriverError>) {
        error
            .into_iter()
            .for_each(|error| self.outlets.errors.record(error));
        self.outlets
            .receiver_commands
            .send(ReceiverCommand::RemoveState {
                endpoint: request.endpoint,
                session: session_of(request),
                state: ForgettableState::InitInProgress,
            });
    }

    /// What the image should be; nothing when nobody wants it.
    fn plan_image(&self, request: &ImageRequest) -> Option<ImagePlan> {
        let endpoint = self
            .endpoints
            .receive_endpoint(request.endpoint)
            .filter(|endpoint| endpoint.is_active())?;
        let subscription = self.matching(request).next()?;
        let params = &endpoint.params;
        let is_group = match subscription.group {
            ReceiverGroup::Yes => true,
            ReceiverGroup::No => false,
            ReceiverGroup::Infer => {
                endpoint.channel.is_multicast || request.setup.has_group_semantics
            }
        };
        Some(ImagePlan {
            client_id: subscription.client_id,
            channel: subscription.channel.to_string(),
            is_reliable: subscription.is_reliable,
            is_group,
            tether: params.is_tether,
            rejoin: params.is_rejoin,
            window_length: params.receiver_window_length,
            endpoint_channel: Arc::clone(&endpoint.channel),
            tether_timeouts: TetherTimeouts {
                window_limit_timeout_ns: params.untethered_window_limit_timeout_ns,
                linger_timeout_ns: params.untethered_linger_timeout_ns,
                resting_timeout_ns: params.untethered_resting_timeout_ns,
            },
        })
    }

    /// The subscriptions that want the stream.
    fn matching(&self, request: &ImageRequest) -> impl Iterator<Item = &Subscription> {
        let stream = (request.setup.stream_id, request.setup.session_id);
        let origin = Origin::Received(request.endpoint);
        self.subscriptions
            .iter()
            .filter(move |subscription| subscription.matches(stream, origin))
    }

    /// As the oldest subscription says.
    fn is_sparse(&self, request: &ImageRequest) -> bool {
        self.matching(request)
            .min_by_key(|subscription| subscription.registration_id)
            .is_none_or(|subscription| subscription.is_sparse)
    }

    /// Checks that the endpoint may have one more image, those included that the receiver let go of but subscribers did not.
    fn check_image_count(
        &self,
        request: &ImageRequest,
        plan: &ImagePlan,
    ) -> Result<(), DriverError> {
        let images = self.images.iter().map(|image| image.config().endpoint);
        let pending = self.pending_images.iter().map(|it| it.request.endpoint);
        let of_endpoint = images.chain(pending).filter(|id| *id == request.endpoint);
        if of_endpoint.count() < MAX_IMAGES {
            return Ok(());
        }
        // The text must not change with each image: the error log would fill up.
        Err(DriverError::invalid_argument(format_args!(
            "exceeded {MAX_IMAGES} images: channel={}",
            plan.endpoint_channel.text
        )))
    }

    /// Checks that images leave half of the counters that are free without them to clients.
    fn check_counters(&self) -> Result<(), DriverError> {
        let of_images = (self.images.len() + self.pending_images.len()) * COUNTERS_PER_IMAGE;
        let without_images = self.outlets.counters.available() + of_images;
        if of_images + COUNTERS_PER_IMAGE <= without_images / 2 {
            return Ok(());
        }
        Err(DriverError::invalid_argument(
            "images may not take more than half of the free counters: raise counters_values_buffer_length",
        ))
    }

    /// Checks that the sender's datagrams fit the window, and that both fit the socket's buffer.
    fn check_datagrams(&self, request: &ImageRequest, plan: &ImagePlan) -> Result<(), DriverError> {
        let (mtu_length, window) = (i64::from(request.setup.mtu_length), plan.window_length);
        let buffer = self.endpoints.receive_buffer_length(&plan.endpoint_channel);
        // Without the MTU, which is whatever the SETUP says: one entry for each would fill the error log.
        let problem = if mtu_length > window {
            format!("mtuLength > initialWindowLength={window}")
        } else if window > buffer {
            format!(
                "Max Window length greater than socket SO_RCVBUF, increase OS socket buffer: rcv-wnd={window} so-rcvbuf={buffer}"
            )
        } else if mtu_length > buffer {
            format!("Sender MTU greater than socket SO_RCVBUF: so-rcvbuf={buffer}")
        } else {
            return Ok(());
        };
        Err(DriverError::invalid_argument(format_args!(
            "{problem} channel={}",
            plan.endpoint_channel.text
        )))
    }

    /// The log that an image waits for is there, or cannot be made.
    pub(super) fn on_image_log(&mut self, id: i64, result: Result<SharedBuffer, DriverError>) {
        let mut pending = self.pending_images.iter();
        let Some(index) = pending.position(|pending| pending.correlation_id == id) else {
            return;
        };
        let pending = self.pending_images.swap_remove(index);
        let memory = match result {
            Ok(memory) => memory,
            Err(error) => return self.refuse_image(&pending.request, Some(&error)),
        };
        let outcome = match self.plan_image(&pending.request) {
            Some(plan) => self.add_image(&pending, &plan, &memory).map_err(Some),
            None => Err(None),
        };
        if let Err(error) = outcome {
            let log = LogId::Image(id);
            self.outlets.remove_log(log);
            self.refuse_image(&pending.request, error.as_ref());
        }
    }

    fn add_image(
        &mut self,
        pending: &PendingImage,
        plan: &ImagePlan,
        memory: &SharedBuffer,
    ) -> Result<(), DriverError> {
        let request = &pending.request;
        let join_position = join_position(request)?;
        let description = self.describe_image_log(pending, plan);
        let log = LogBuffers::create(memory, &description, join_position).map_err(|error| {
            DriverError::invalid_argument(format_args!("failed to create log: {error}"))
        })?;
        let uri = &plan.endpoint_channel.uri;
        let strategy = CongestionStrategy::of_channel(uri, &self.context)?;
        let max_window = max_window_length(plan.window_length, log.term_length());
        let mut cubic_counter_ids = Vec::new();
        let congestion = self.new_congestion(
            (strategy, max_window),
            (pending, plan),
            &mut cubic_counter_ids,
        )?;
        let counters = self
            .allocate_image_counters(pending, plan)
            .inspect_err(|_| self.outlets.free_counters(cubic_counter_ids.clone()))?;
        let nak_delay = NakDelay::of_image(
            &self.context,
            plan.is_reliable,
            plan.is_group,
            plan.endpoint_channel.params.nak_delay_ns,
            self.outlets.random.u64(..),
        );
        let config = self.image_config(pending, plan, join_position, cubic_counter_ids);
        let strategies = ImageStrategies {
            congestion_control: congestion.control,
            loss_detector: LossDetector::new(nak_delay),
        };
        let image = PublicationImage::new(
            config,
            log,
            pending.first_pages,
            counters,
            strategies,
            self.outlets.now_ns,
        );
        let receiving = ReceiverImage::new(ReceiverImageConfig {
            correlation_id: pending.correlation_id,
            endpoint: request.endpoint,
            destination: request.destination,
            source_address: request.source_address,
            session_id: request.setup.session_id,
            stream_id: request.setup.stream_id,
            log: image.log().clone(),
            join_position,
            max_window_length: max_window.into(),
            is_reliable: plan.is_reliable,
            high_water_mark: image.counters().high_water_mark.clone(),
            naks_sent: image.counters().naks_sent.clone(),
            rtt_meter: congestion.rtt_meter,
            status: Arc::clone(image.status()),
        });
        self.start_image(image, receiving);
        Ok(())
    }

    /// Links an image to all who want it, and gives the receiver its half.
    fn start_image(&mut self, mut image: PublicationImage, receiving: ReceiverImage) {
        let endpoint = image.config().endpoint;
        if let Some(endpoint) = self.endpoints.receive_endpoint_mut(endpoint) {
            endpoint.add_image();
        }
        let identity = image.identity();
        let stream = (identity.stream_id, identity.session_id);
        for subscription in &self.subscriptions {
            if subscription.matches(stream, Origin::Received(endpoint))
                && let Err(error) = self.outlets.link(&mut image, subscription)
            {
                self.outlets.errors.record(&error);
            }
        }
        self.images.push(image);
        self.outlets
            .receiver_commands
            .send(ReceiverCommand::AddImage(Box::new(receiving)));
    }

    fn new_congestion(
        &mut self,
        (strategy, max_window): (CongestionStrategy, i32),
        (pending, plan): (&PendingImage, &ImagePlan),
        counter_ids: &mut Vec<i32>,
    ) -> Result<Congestion, DriverError> {
        let owner = StreamOwner {
            owner_id: NULL_ID,
            ..image_owner(pending, plan)
        };
        let names = [
            (types::PER_IMAGE_INDICATOR, "rcv-cc-cubic-rtt"),
            (types::PER_IMAGE_INDICATOR, "rcv-cc-cubic-wnd"),
        ];
        let (context, now_ns) = (Arc::clone(&self.context), self.outlets.now_ns);
        let indicators = || {
            let [rtt, window] = self.outlets.allocate_stream_counters(&owner, names)?;
            counter_ids.extend([rtt.id(), window.id()]);
            Ok(CubicIndicators { rtt, window })
        };
        let lengths = (max_window, pending.request.setup.mtu_length);
        Congestion::new(strategy, lengths, &context, indicators, now_ns)
    }

    fn allocate_image_counters(
        &mut self,
        pending: &PendingImage,
        plan: &ImagePlan,
    ) -> Result<ImageCounters, DriverError> {
        let names = [
            (types::RECEIVER_HWM, "rcv-hwm"),
            (types::RECEIVER_POSITION, "rcv-pos"),
            (types::RECEIVER_NAKS_SENT, "rcv-naks-sent"),
        ];
        let owner = image_owner(pending, plan);
        let [high_water_mark, receiver_position, naks_sent] =
            self.outlets.allocate_stream_counters(&owner, names)?;
        Ok(ImageCounters {
            high_water_mark,
            receiver_position,
            naks_sent,
        })
    }

    fn image_config(
        &self,
        pending: &PendingImage,
        plan: &ImagePlan,
        join_position: i64,
        cubic_counter_ids: Vec<i32>,
    ) -> ImageConfig {
        let (id, request) = (pending.correlation_id, &pending.request);
        ImageConfig {
            correlation_id: id,
            endpoint: request.endpoint,
            session_id: request.setup.session_id,
            stream_id: request.setup.stream_id,
            join_position,
            is_sparse: pending.is_sparse,
            wants_response: request.setup.wants_response,
            log_file_name: image_log(&self.context.dir, id).display().to_string(),
            source_identity: request.source_address.to_string(),
            channel: plan.endpoint_channel.text.clone(),
            tether_timeouts: plan.tether_timeouts,
            liveness_timeout_ns: self.context.image_liveness_timeout_ns,
            status_message_timeout_ns: self.context.status_message_timeout_ns,
            congestion_counter_ids: cubic_counter_ids,
        }
    }

    fn describe_image_log(&self, pending: &PendingImage, plan: &ImagePlan) -> LogDescription {
        let request = &pending.request;
        let params = &plan.endpoint_channel.params;
        let stated = |length: Option<i64>| length.unwrap_or(0) as i32;
        LogDescription {
            correlation_id: pending.correlation_id,
            mtu_length: request.setup.mtu_length,
            term_length: request.setup.term_length,
            page_size: self.context.file_page_size as i32,
            receiver_window_length: plan.window_length as i32,
            socket_sndbuf_length: stated(params.socket_sndbuf_length),
            socket_rcvbuf_length: stated(params.socket_rcvbuf_length),
            os_default_socket_sndbuf_length: self.system_socket_buffers.send,
            os_default_socket_rcvbuf_length: self.system_socket_buffers.receive,
            untethered_window_limit_timeout_ns: plan.tether_timeouts.window_limit_timeout_ns,
            untethered_linger_timeout_ns: plan.tether_timeouts.linger_timeout_ns,
            untethered_resting_timeout_ns: plan.tether_timeouts.resting_timeout_ns,
            group: plan.is_group,
            is_response: plan.endpoint_channel.is_response(),
            rejoin: plan.rejoin,
            reliable: plan.is_reliable,
            sparse: pending.is_sparse,
            signal_eos: false,
            tether: plan.tether,
            ..LogDescription::new(
                LogType::Image,
                request.setup.session_id,
                request.setup.stream_id,
                request.setup.initial_term_id,
            )
        }
    }
}

fn image_owner<'a>(pending: &PendingImage, plan: &'a ImagePlan) -> StreamOwner<'a> {
    StreamOwner {
        registration_id: pending.correlation_id,
        owner_id: plan.client_id,
        session_id: pending.request.setup.session_id,
        stream_id: pending.request.setup.stream_id,
        channel: &plan.channel,
    }
}

fn session_of(request: &ImageRequest) -> StreamSession {
    StreamSession {
        stream_id: request.setup.stream_id,
        session_id: request.setup.session_id,
    }
}

/// Where the stream is now: the SETUP's term and offset.
fn join_position(request: &ImageRequest) -> Result<i64, DriverError> {
    let positions = Positions::new(
        request.setup.term_length as usize,
        request.setup.initial_term_id,
    )
    .map_err(DriverError::invalid_argument)?;
    Ok(positions.position(
        request.setup.active_term_id,
        request.setup.term_offset as usize,
    ))
}
