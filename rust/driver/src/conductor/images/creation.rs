//! Creates images after the receiver has received the SETUP of a stream that matches a subscription.

use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::types;
use aeron_memory::directory::image_log;
use aeron_memory::log::buffers::log_length;
use aeron_memory::log::position::Positions;
use aeron_memory::log::{LogBuffers, LogDescription, LogType};

use super::Images;
use super::plan::ImagePlan;
use crate::conductor::outlets::{ConductorOutlets, NULL_ID, StreamOwner};
use crate::congestion::{
    Congestion, CongestionStrategy, CubicIndicators, ImageLengths, max_window_length,
};
use crate::error::DriverError;
use crate::image::{ImageConfig, ImageCounters, ImageStrategies, PublicationImage};
use crate::log_storage::LogId;
use crate::loss_detector::LossDetector;
use crate::nak_delay::NakDelay;
use crate::receiver::{
    ImageRequest, MAX_IMAGES, ReceiverCommand, ReceiverImage, ReceiverImageConfig,
};
use crate::resources::ResourceCommand;
use crate::stream::{PageRequest, Pages};

/// Number of bytes after the join position that are allocated together with the log. If half a term is shorter, only
/// half a term is allocated. If the window is longer, the whole window is allocated. Later pages are requested as the
/// stream advances.
const FIRST_PAGES_LENGTH: i64 = 256 * 1024;

/// Number of counters of an image with one subscriber.
const COUNTERS_PER_IMAGE: usize = 4;

/// An image that waits for its log.
#[derive(Debug)]
pub struct PendingImage {
    pub correlation_id: i64,
    pub request: Box<ImageRequest>,
    first_pages: PageRequest,
    is_sparse: bool,
}

/// A new image: the conductor's half and the receiver's half.
pub struct NewImage {
    pub image: PublicationImage,
    receiving: ReceiverImage,
}

impl Images {
    /// Checks whether a requested image may be created.
    pub fn check_request(
        &self,
        request: &ImageRequest,
        plan: &ImagePlan,
        outlets: &ConductorOutlets,
    ) -> Result<(), DriverError> {
        self.check_count(request, plan)?;
        self.check_counters(outlets)?;
        check_datagrams(request, plan, self.context.mtu_length)
    }

    /// Requests the log of the image with the id `correlation_id`.
    pub fn request_log(
        &mut self,
        correlation_id: i64,
        request: Box<ImageRequest>,
        plan: &ImagePlan,
        outlets: &mut ConductorOutlets,
    ) -> Result<(), DriverError> {
        let join_position = join_position(&request)?;
        let term_length = i64::from(request.setup.term_length);
        let window = max_window_length(plan.window_length, request.setup.term_length as usize);
        let ahead = (term_length / 2).min(FIRST_PAGES_LENGTH).max(window.into());
        let first_pages = Pages::first_request(join_position, term_length, ahead);
        let length = log_length(term_length, self.context.file_page_size as i64)
            .map_err(DriverError::invalid_argument)?;
        outlets.resource_commands.send(ResourceCommand::CreateLog {
            log: LogId::Image(correlation_id),
            length,
            sparse: plan.is_sparse.then(|| {
                let heads = Pages::term_heads(term_length, first_pages);
                std::iter::once(first_pages).chain(heads).collect()
            }),
            first_pages: None,
        });
        self.pending.push(PendingImage {
            correlation_id,
            request,
            first_pages,
            is_sparse: plan.is_sparse,
        });
        Ok(())
    }

    /// Checks that the endpoint may have another image.
    ///
    /// Images that the receiver has released still count while subscribers use them.
    fn check_count(&self, request: &ImageRequest, plan: &ImagePlan) -> Result<(), DriverError> {
        let images = self.live.iter().map(|image| image.config().endpoint);
        let pending = self.pending.iter().map(|it| it.request.endpoint);
        let of_endpoint = images.chain(pending).filter(|id| *id == request.endpoint);
        if of_endpoint.count() < MAX_IMAGES {
            return Ok(());
        }
        // The text must be the same for every image. Otherwise each image would add an entry to the error log.
        Err(DriverError::invalid_argument(format_args!(
            "exceeded {MAX_IMAGES} images: channel={}",
            plan.endpoint_channel.text
        )))
    }

    /// Checks that images use at most half of the counters that would be free without images. Clients can use the rest.
    fn check_counters(&self, outlets: &ConductorOutlets) -> Result<(), DriverError> {
        let of_images = (self.live.len() + self.pending.len()) * COUNTERS_PER_IMAGE;
        let without_images = outlets.counters.available() + of_images;
        if of_images + COUNTERS_PER_IMAGE <= without_images / 2 {
            return Ok(());
        }
        Err(DriverError::invalid_argument(
            "images may not take more than half of the free counters: raise counters_values_buffer_length",
        ))
    }

    /// Removes and returns the image that waits for this log.
    pub fn take_pending(&mut self, correlation_id: i64) -> Option<PendingImage> {
        let mut pending = self.pending.iter();
        let index = pending.position(|pending| pending.correlation_id == correlation_id)?;
        Some(self.pending.swap_remove(index))
    }

    /// Creates both halves of an image in its log, without subscribers.
    pub fn create(
        &self,
        pending: &PendingImage,
        plan: &ImagePlan,
        memory: &SharedBuffer,
        outlets: &mut ConductorOutlets,
    ) -> Result<NewImage, DriverError> {
        let request = &pending.request;
        let now_ns = outlets.now_ns;
        let join_position = join_position(request)?;
        let description = self.describe_image_log(pending, plan);
        let log = LogBuffers::create(memory, &description, join_position).map_err(|error| {
            DriverError::invalid_argument(format_args!("failed to create log: {error}"))
        })?;
        let uri = &plan.endpoint_channel.uri;
        let strategy = CongestionStrategy::of_channel(uri, &self.context)?;
        let max_window = max_window_length(plan.window_length, log.term_length());
        let mut cubic_counter_ids = Vec::new();
        let indicators = || {
            let indicators = allocate_cubic_indicators(pending, plan, outlets);
            indicators.inspect(|CubicIndicators { rtt, window }| {
                cubic_counter_ids.extend([rtt.id(), window.id()]);
            })
        };
        let lengths = ImageLengths {
            max_window_length: max_window,
            mtu_length: request.setup.mtu_length,
        };
        let congestion = Congestion::new(strategy, lengths, &self.context, indicators, now_ns)?;
        let counters = allocate_counters(pending, plan, outlets)
            .inspect_err(|_| outlets.free_counters(cubic_counter_ids.clone()))?;
        let nak_delay = NakDelay::of_image(
            &self.context,
            plan.is_reliable,
            plan.is_group,
            plan.endpoint_channel.params.nak_delay_ns,
            outlets.random.u64(..),
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
            now_ns,
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
        Ok(NewImage { image, receiving })
    }

    /// Adds a new image and passes the receiver's half to the receiver.
    pub fn add(&mut self, new: NewImage, outlets: &mut ConductorOutlets) {
        debug_assert!(
            self.find(new.image.config().correlation_id).is_none(),
            "there are two images with the id {}",
            new.image.config().correlation_id
        );
        self.live.push(new.image);
        outlets
            .receiver_commands
            .send(ReceiverCommand::AddImage(Box::new(new.receiving)));
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

/// Checks that the sender's datagrams fit into the window, and that datagrams and window fit into the socket's buffer.
fn check_datagrams(
    request: &ImageRequest,
    plan: &ImagePlan,
    own_mtu_length: usize,
) -> Result<(), DriverError> {
    let (mtu_length, window) = (i64::from(request.setup.mtu_length), plan.window_length);
    let buffer = plan.receive_buffer_length;
    // The text has the MTU only if it is the MTU of this driver. Peers choose the MTU, and each other value would add
    // an entry to the error log.
    let problem = if mtu_length > window {
        match mtu_length == own_mtu_length as i64 {
            true => format!("mtuLength={mtu_length} > initialWindowLength={window}"),
            false => format!("mtuLength > initialWindowLength={window}"),
        }
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

/// Allocates the counters of the congestion control `cubic`.
fn allocate_cubic_indicators(
    pending: &PendingImage,
    plan: &ImagePlan,
    outlets: &mut ConductorOutlets,
) -> Result<CubicIndicators, DriverError> {
    let owner = StreamOwner {
        owner_id: NULL_ID,
        ..image_owner(pending, plan)
    };
    let names = [
        (types::PER_IMAGE_INDICATOR, "rcv-cc-cubic-rtt"),
        (types::PER_IMAGE_INDICATOR, "rcv-cc-cubic-wnd"),
    ];
    let [rtt, window] = outlets.allocate_stream_counters(&owner, names)?;
    Ok(CubicIndicators { rtt, window })
}

fn allocate_counters(
    pending: &PendingImage,
    plan: &ImagePlan,
    outlets: &mut ConductorOutlets,
) -> Result<ImageCounters, DriverError> {
    let names = [
        (types::RECEIVER_HWM, "rcv-hwm"),
        (types::RECEIVER_POSITION, "rcv-pos"),
        (types::RECEIVER_NAKS_SENT, "rcv-naks-sent"),
    ];
    let owner = image_owner(pending, plan);
    let [high_water_mark, receiver_position, naks_sent] =
        outlets.allocate_stream_counters(&owner, names)?;
    Ok(ImageCounters {
        high_water_mark,
        receiver_position,
        naks_sent,
    })
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

/// Returns the current position of the stream: the term and offset of the SETUP.
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
