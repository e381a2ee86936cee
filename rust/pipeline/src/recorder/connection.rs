//! [`RecorderConnection`]: the recorder's client and its subscriptions. The recorder's thread runs the client.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use aeron_client::{
    Aeron, CloseCause, Context, DriverTimeout, Error, HandlerMode, Image, Subscription,
    SubscriptionHandlers, is_driver_active,
};

use aeron_memory::cnc::{CncFile, Reader};
use aeron_memory::directory;

use super::shared::SharedRecorder;
use crate::error::{LiveCode, LiveError};
use crate::machine;

/// Name of the client in its heartbeat counter.
const CLIENT_NAME: &str = "spark-source";

/// An image event of the driver.
pub(super) enum ImageEvent {
    Available(Image),
    Unavailable(Image),
}

/// Reason why a client ended.
pub(super) struct Ended {
    pub error: LiveError,
    /// Whether the only reason is that the client or the driver did not run in time, for example because the machine
    /// was overloaded. Then another client may connect.
    pub is_late: bool,
}

/// A client and its subscriptions.
pub(super) struct RecorderConnection {
    aeron: Aeron,
    aeron_dir: PathBuf,
    /// Never read. Kept because dropping a subscription removes it.
    _subscriptions: Vec<Subscription>,
    events: Receiver<ImageEvent>,
}

impl RecorderConnection {
    /// Connects a client and subscribes to all streams.
    pub fn open(
        mut context: Context,
        channel_uri: &str,
        stream_ids: &[i32],
        shared: &Arc<SharedRecorder>,
    ) -> Result<Self, LiveError> {
        let aeron_dir = context.aeron_dir.clone();
        let stop = shared.stop_flag();
        let log = Arc::clone(shared);
        context.client_name = CLIENT_NAME.to_owned();
        context.use_conductor_agent_invoker = true;
        context.handler_mode = HandlerMode::Inline;
        context.interrupt_check = Some(Arc::new(move || stop.load(Ordering::Acquire)));
        context.error_handler = Arc::new(move |error| log.add_line(error.to_string()));
        let failed = |error: Error| start_error(&error, &aeron_dir, channel_uri);
        let aeron = Aeron::connect(context).map_err(failed)?;
        let (sender, events) = channel();
        let mut subscriptions = Vec::with_capacity(stream_ids.len());
        for &stream_id in stream_ids {
            let handlers = handlers(&sender);
            let added = aeron.add_subscription_with(channel_uri, stream_id, handlers);
            subscriptions.push(added.map_err(failed)?);
        }
        Ok(Self {
            aeron,
            aeron_dir,
            _subscriptions: subscriptions,
            events,
        })
    }

    /// Returns the client.
    pub fn aeron(&self) -> &Aeron {
        &self.aeron
    }

    /// Runs one duty cycle of the client.
    pub fn do_work(&self) -> usize {
        self.aeron.do_work()
    }

    /// Returns the oldest image event that was not returned yet.
    pub fn next_event(&self) -> Option<ImageEvent> {
        self.events.try_recv().ok()
    }

    /// Returns the reason why the client ended by itself; `None` while it runs.
    pub fn ended(&self) -> Option<Ended> {
        if !self.aeron.is_closed() {
            return None;
        }
        let cause = self.aeron.close_cause();
        Some(Ended {
            error: end_error(&cause, &self.aeron_dir),
            is_late: is_late(&cause, &self.aeron_dir),
        })
    }

    /// Closes the client, which removes the subscriptions at once.
    pub fn close(&self) {
        self.aeron.close();
    }
}

/// Whether a driver runs, so that a client can connect without a wait.
pub(super) fn is_driver_there(context: &Context) -> bool {
    let timeout = Duration::from_millis(context.driver_timeout_ms);
    context.aeron_dir.exists() && is_driver_active(&context.aeron_dir, timeout).unwrap_or(false)
}

/// Creates the image handlers. Both handlers run on the thread that runs the client, between the polls of the images.
fn handlers(events: &Sender<ImageEvent>) -> SubscriptionHandlers {
    let (available, unavailable) = (events.clone(), events.clone());
    // Sending fails only while the connection closes. The event is not needed then.
    SubscriptionHandlers {
        available_image: Some(Arc::new(move |image| {
            let _ = available.send(ImageEvent::Available(image.clone()));
        })),
        unavailable_image: Some(Arc::new(move |image| {
            let _ = unavailable.send(ImageEvent::Unavailable(image.clone()));
        })),
    }
}

/// Whether a client ended only because it or its driver did not run in time. A driver without a recent heartbeat counts
/// as late while its process exists. In another pid namespace its process is not visible, so the driver counts as dead.
fn is_late(cause: &CloseCause, aeron_dir: &Path) -> bool {
    match cause.0.as_deref() {
        Some(
            Error::ServiceTimeout { .. }
            | Error::ClientTimeout { .. }
            | Error::HeartbeatCounterClosed { .. },
        ) => true,
        Some(Error::DriverTimeout(DriverTimeout::Keepalive { .. })) => is_process_there(aeron_dir),
        _ => false,
    }
}

/// Whether the process of the directory's driver exists.
fn is_process_there(aeron_dir: &Path) -> bool {
    let cnc = CncFile::map(&directory::cnc_file(aeron_dir), Reader::Tool);
    let Ok(Ok(cnc)) = cnc else {
        return false;
    };
    i32::try_from(cnc.identity().pid).is_ok_and(machine::is_process)
}

fn start_error(error: &Error, aeron_dir: &std::path::Path, channel: &str) -> LiveError {
    let dir = aeron_dir.display();
    match error {
        Error::DriverTimeout(DriverTimeout::NoResponse(waited)) => LiveError::new(
            LiveCode::DriverTimeout,
            format!(
                "media driver in {dir} did not respond within {} ms",
                waited.as_millis()
            ),
        ),
        Error::DriverTimeout(_) => LiveError::new(
            LiveCode::DriverTimeout,
            format!(
                "no media driver in {dir}; start one with \"aeron driver --dir {dir}\" or set embeddedDriver=true"
            ),
        ),
        Error::Interrupted => LiveError::closed(),
        Error::Registration { message, .. } => LiveError::new(
            LiveCode::Option,
            format!("option channel: the media driver in {dir} refuses '{channel}': {message}"),
        ),
        error => LiveError::new(
            LiveCode::DriverTimeout,
            format!("no connection to the media driver in {dir}: {error}"),
        ),
    }
}

fn end_error(cause: &CloseCause, aeron_dir: &std::path::Path) -> LiveError {
    let dir = aeron_dir.display();
    let text = match cause.0.as_deref() {
        Some(Error::DriverTimeout(DriverTimeout::Keepalive { age_ms, .. })) => {
            format!("media driver in {dir} stopped (no heartbeat for {age_ms} ms)")
        }
        Some(Error::DriverTimeout(_)) | None => {
            format!("media driver in {dir} stopped (no heartbeat for 0 ms: it was shut down)")
        }
        Some(error) => format!("the client of the media driver in {dir} ended: {error}"),
    };
    LiveError::new(LiveCode::DriverTimeout, text)
}
