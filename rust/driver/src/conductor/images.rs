//! Images: tracked while they live, and ended.

use aeron_memory::counters::AtomicCounter;

use super::Conductor;
use crate::error::DriverError;
use crate::image::{ImageTick, PublicationImage};
use crate::log_storage::LogId;
use crate::receiver::{ForgettableState, ReceiverCommand};
use crate::resources::ResourceCommand;
use crate::stream::StreamSession;

impl Conductor {
    /// Pages that an image needs were allocated, or there are none left.
    pub(super) fn on_image_pages(&mut self, id: i64, result: Result<usize, DriverError>) {
        let mut is_first_failure = false;
        for image in &mut self.images {
            if image.config().correlation_id == id {
                match result {
                    Ok(length) => image.on_pages_allocated(length),
                    Err(_) => is_first_failure |= image.on_pages_missing(),
                }
            }
        }
        if let (true, Err(error)) = (is_first_failure, result) {
            self.outlets.errors.record(&error);
        }
    }

    /// Finds out what images need: missing data, room in the window, pages.
    pub(super) fn track_images(&mut self) -> usize {
        let mut work_count = 0;
        let (now_ns, now_ms) = (self.outlets.now_ns, self.outlets.now_ms);
        for image in &mut self.images {
            let report = (&mut self.loss_report, now_ms);
            work_count += usize::from(image.track_rebuild(now_ns, report));
            if let Some(pages) = image.page_request() {
                let log = LogId::Image(image.config().correlation_id);
                self.outlets
                    .resource_commands
                    .send(ResourceCommand::AllocateLog {
                        log,
                        pages,
                        promise: 0,
                    });
                work_count += 1;
            }
        }
        work_count
    }

    /// One timer tick of all images.
    pub(super) fn check_images(&mut self) {
        for index in (0..self.images.len()).rev() {
            let image = &mut self.images[index];
            let mut tether_actions = Vec::new();
            let tick = image.on_tick(self.outlets.now_ns, |action| tether_actions.push(action));
            self.outlets.on_tether_actions(image, tether_actions);
            match tick {
                ImageTick::Nothing => {}
                ImageTick::Unavailable => self.end_image(index),
                ImageTick::EndOfLife => self.delete_image(index),
            }
        }
    }

    /// Has the receiver let go of an image, and tells its subscribers that it is gone.
    fn end_image(&mut self, index: usize) {
        let image = &self.images[index];
        let config = image.config();
        let (endpoint, correlation_id) = (config.endpoint, config.correlation_id);
        let session = StreamSession {
            stream_id: config.stream_id,
            session_id: config.session_id,
        };
        self.outlets
            .receiver_commands
            .send(ReceiverCommand::RemoveImage(correlation_id));
        self.outlets.announce_unavailable(image, None);
        if image.rejoins() {
            self.outlets
                .receiver_commands
                .send(ReceiverCommand::RemoveState {
                    endpoint,
                    session,
                    state: ForgettableState::CoolDown,
                });
        }
        self.endpoints.remove_image(endpoint, &mut self.outlets);
    }

    /// The receiver let go of an image.
    pub(super) fn on_image_released(&mut self, id: i64) {
        self.images
            .iter_mut()
            .filter(|image| image.config().correlation_id == id)
            .for_each(PublicationImage::on_released_by_receiver);
    }

    fn delete_image(&mut self, index: usize) {
        let mut image = self.images.swap_remove(index);
        self.outlets.free_subscribers(&mut image);
        self.outlets.free_counters(image.counter_ids());
        let log = LogId::Image(image.config().correlation_id);
        self.outlets.remove_log(log);
    }
}

/// The counters of an image.
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
