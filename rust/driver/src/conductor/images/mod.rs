//! [`Images`]: requests, creates, tracks and ends images.

mod creation;
mod plan;
mod requests;

use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::loss_report::LossReport;

use creation::PendingImage;
use requests::ImageRequests;

use super::endpoints::Endpoints;
use super::outlets::ConductorOutlets;
use crate::config::Context;
use crate::error::DriverError;
use crate::image::{ImageTick, PublicationImage};
use crate::log_storage::LogId;
use crate::receiver::{ForgettableState, ReceiverCommand};
use crate::resources::ResourceCommand;
use crate::socket_buffers::SocketBufferLengths;
use crate::stream::StreamSession;

pub use creation::NewImage;
pub use plan::ImagePlan;
pub use requests::refuse;

/// All images.
pub struct Images {
    context: Arc<Context>,
    system_socket_buffers: SocketBufferLengths,
    loss_report: LossReport<SharedBuffer>,
    requests: ImageRequests,
    /// Images that wait for their logs.
    pending: Vec<PendingImage>,
    live: Vec<PublicationImage>,
}

impl Images {
    /// Creates an empty set of images.
    pub fn new(
        context: Arc<Context>,
        system_socket_buffers: SocketBufferLengths,
        loss_report: LossReport<SharedBuffer>,
        now_ns: i64,
    ) -> Self {
        Self {
            context,
            system_socket_buffers,
            loss_report,
            requests: ImageRequests::new(now_ns),
            pending: Vec::new(),
            live: Vec::new(),
        }
    }

    /// Returns the number of images and of requests for images.
    pub fn count(&self) -> usize {
        self.requests.count() + self.pending.len() + self.live.len()
    }

    pub fn all(&self) -> &[PublicationImage] {
        &self.live
    }

    pub fn all_mut(&mut self) -> &mut [PublicationImage] {
        &mut self.live
    }

    pub fn find(&self, correlation_id: i64) -> Option<&PublicationImage> {
        self.live
            .iter()
            .find(|image| image.config().correlation_id == correlation_id)
    }

    /// Handles the result of allocating pages for an image. `result` is an error if the storage is full.
    pub fn on_pages(
        &mut self,
        id: i64,
        result: Result<usize, DriverError>,
        outlets: &ConductorOutlets,
    ) {
        let mut is_first_failure = false;
        for image in &mut self.live {
            if image.config().correlation_id == id {
                match result {
                    Ok(length) => image.on_pages_allocated(length),
                    Err(_) => is_first_failure |= image.on_pages_missing(),
                }
            }
        }
        if let (true, Err(error)) = (is_first_failure, result) {
            outlets.errors.record(&error);
        }
    }

    /// Tracks each image: requests missing data, updates the window, requests pages. Returns the number of actions.
    pub fn track(&mut self, outlets: &mut ConductorOutlets) -> usize {
        let mut work_count = 0;
        let (now_ns, now_ms) = (outlets.now_ns, outlets.now_ms);
        for image in &mut self.live {
            let report = &mut self.loss_report;
            work_count += usize::from(image.track_rebuild(now_ns, report, now_ms));
            if let Some(pages) = image.page_request() {
                let log = LogId::Image(image.config().correlation_id);
                outlets
                    .resource_commands
                    .send(ResourceCommand::AllocateLog {
                        log,
                        pages,
                        promise: 0,
                        is_awaited: false,
                    });
                work_count += 1;
            }
        }
        work_count
    }

    /// Runs the timer tick of all images.
    pub fn check(&mut self, endpoints: &mut Endpoints, outlets: &mut ConductorOutlets) {
        for index in (0..self.live.len()).rev() {
            let image = &mut self.live[index];
            let mut tether_actions = Vec::new();
            let tick = image.on_tick(outlets.now_ns, |action| tether_actions.push(action));
            outlets.on_tether_actions(image, tether_actions);
            match tick {
                ImageTick::Nothing => {}
                ImageTick::Unavailable => end(image, endpoints, outlets),
                ImageTick::EndOfLife => self.delete(index, outlets),
            }
        }
    }

    /// Handles the event that the receiver has released an image.
    pub fn on_released(&mut self, id: i64) {
        self.live
            .iter_mut()
            .filter(|image| image.config().correlation_id == id)
            .for_each(PublicationImage::on_released_by_receiver);
    }

    fn delete(&mut self, index: usize, outlets: &mut ConductorOutlets) {
        let mut image = self.live.swap_remove(index);
        outlets.free_subscribers(&mut image);
        outlets.free_counters(image.counter_ids());
        let log = LogId::Image(image.config().correlation_id);
        outlets.remove_log(log);
    }

    pub fn clear(&mut self) {
        self.requests.clear();
        self.pending.clear();
        self.live.clear();
    }
}

/// Asks the receiver to release an image, and announces to the subscribers that the image ends.
fn end(image: &PublicationImage, endpoints: &mut Endpoints, outlets: &mut ConductorOutlets) {
    let config = image.config();
    let (endpoint, correlation_id) = (config.endpoint, config.correlation_id);
    let session = StreamSession {
        stream_id: config.stream_id,
        session_id: config.session_id,
    };
    outlets
        .receiver_commands
        .send(ReceiverCommand::RemoveImage(correlation_id));
    outlets.announce_unavailable(image, None);
    if image.rejoins() {
        outlets
            .receiver_commands
            .send(ReceiverCommand::RemoveState {
                endpoint,
                session,
                state: ForgettableState::CoolDown,
            });
    }
    endpoints.remove_image(endpoint, outlets);
}

impl PublicationImage {
    fn counter_ids(&self) -> Vec<i32> {
        let counters = self.counters();
        let own = [
            &counters.high_water_mark,
            &counters.receiver_position,
            &counters.naks_sent,
        ];
        own.map(AtomicCounter::id)
            .into_iter()
            .chain(self.config().congestion_counter_ids.iter().copied())
            .collect()
    }
}
