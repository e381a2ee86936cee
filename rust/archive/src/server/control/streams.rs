//! [`ControlStreams`]: the subscriptions that receive requests.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use aeron_client::{
    Action, FragmentAssembler, Image, PendingOperation, Subscription, SubscriptionHandlers,
};

use crate::server::ArchiveError;

/// Maximum number of fragments that one duty cycle reads from a stream.
const FRAGMENT_LIMIT: usize = 10;
/// Maximum length of a request, in bytes. Valid requests are far shorter, and a longer message is
/// dropped. The limit also bounds the memory that an image can occupy with a request that never ends.
const MAX_REQUEST_LENGTH: usize = 64 * 1024;

/// The streams of requests: one for clients on the same machine, and one for clients on the
/// network, if it is enabled.
#[derive(Default)]
pub(in crate::server) struct ControlStreams {
    streams: Vec<ControlStream>,
    request: Vec<u8>,
    /// Session ids of images that have become unavailable.
    gone: Option<Receiver<i32>>,
}

/// Collects the session ids of unavailable images, so that the streams can drop the incomplete requests of these
/// images.
#[derive(Debug)]
pub(in crate::server) struct GoneImages {
    sender: Sender<i32>,
    receiver: Receiver<i32>,
}

impl GoneImages {
    pub fn new() -> Self {
        let (sender, receiver) = channel();
        Self { sender, receiver }
    }

    /// Returns the handlers for a subscription of requests.
    pub fn handlers(&self) -> SubscriptionHandlers {
        let sender = self.sender.clone();
        SubscriptionHandlers {
            // An error of `send` is ignored: it means that the archive has ended.
            unavailable_image: Some(Arc::new(move |image: &Image| {
                let _ = sender.send(image.session_id());
            })),
            ..SubscriptionHandlers::default()
        }
    }
}

struct ControlStream {
    state: StreamState,
    assembler: FragmentAssembler,
}

enum StreamState {
    Adding(PendingOperation<Subscription>),
    Open(Subscription),
}

impl ControlStreams {
    /// Creates the streams from the pending subscriptions.
    pub fn new(
        subscriptions: impl IntoIterator<Item = PendingOperation<Subscription>>,
        gone: GoneImages,
    ) -> Self {
        let stream = |subscription| ControlStream {
            state: StreamState::Adding(subscription),
            assembler: FragmentAssembler::with_max_message_length(MAX_REQUEST_LENGTH),
        };
        Self {
            streams: subscriptions.into_iter().map(stream).collect(),
            request: Vec::new(),
            gone: Some(gone.receiver),
        }
    }

    /// Returns whether the driver has added all subscriptions, so that clients can connect.
    ///
    /// # Errors
    /// The driver refuses a subscription.
    pub fn poll_ready(&mut self) -> Result<bool, ArchiveError> {
        let mut is_ready = true;
        for stream in &mut self.streams {
            if let StreamState::Adding(operation) = &mut stream.state {
                match operation.poll()? {
                    Some(subscription) => stream.state = StreamState::Open(subscription),
                    None => is_ready = false,
                }
            }
        }
        Ok(is_ready)
    }

    /// Calls `on_request` with each arrived request and its image. Returns the number of fragments.
    ///
    /// # Errors
    /// A stream returns an error. The other streams are polled nevertheless, and the first error is returned.
    pub fn poll(
        &mut self,
        mut on_request: impl FnMut(&Image, &[u8]),
    ) -> Result<usize, ArchiveError> {
        self.forget_gone_images();
        let mut outcome = Ok(0);
        for stream in &mut self.streams {
            let StreamState::Open(subscription) = &stream.state else {
                continue;
            };
            let (assembler, request) = (&mut stream.assembler, &mut self.request);
            let polled = subscription.poll(
                |fragment| {
                    assembler.on_controlled_fragment(fragment, |message| {
                        if message.len() <= MAX_REQUEST_LENGTH {
                            request.resize(message.len(), 0);
                            message.copy_to(request);
                            on_request(message.header().image(), request);
                        }
                        Action::Continue
                    })
                },
                FRAGMENT_LIMIT,
            );
            match (polled, &mut outcome) {
                (Ok(fragments), Ok(count)) => *count += fragments,
                (Err(error), Ok(_)) => outcome = Err(error.into()),
                (_, Err(_)) => {}
            }
        }
        outcome
    }

    fn forget_gone_images(&mut self) {
        for session_id in self.gone.iter().flat_map(Receiver::try_iter) {
            for stream in &mut self.streams {
                stream.assembler.free_session_buffer(session_id);
            }
        }
    }
}
