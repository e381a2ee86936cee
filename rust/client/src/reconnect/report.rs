//! [`ReconnectReport`]: what a client has lost with its driver.

use std::sync::Arc;
use std::time::Duration;

use aeron_memory::counters::types;

use crate::error::Error;
use crate::image::Image;
use crate::publication::core::{PublicationBase, PublicationParts, PublishedStream};
use crate::publication::flush::{has_spy, is_ipc};
use crate::subscription::core::SubscriptionCore;

/// Streams that a client has lost with its driver, and how long it had no driver.
#[derive(Debug, Clone)]
pub struct ReconnectReport {
    /// Why the client lost the driver.
    pub cause: Error,
    /// Time from the loss until the next driver had all resources of the client.
    pub outage: Duration,
    /// Number of times that the client has connected again, with this one.
    pub reconnections: u64,
    /// One entry for each publication, and for each image of a subscription, that the lost driver had.
    pub streams: Vec<StreamReport>,
    /// Resources that the next driver has refused. They are closed.
    pub refused: Vec<Error>,
}

/// Kind of a stream of a lost driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostStreamKind {
    /// A publication that several threads or clients may share.
    Publication,
    /// A publication with one writer.
    ExclusivePublication,
    /// An image of a subscription.
    Image,
}

/// State of one stream of a lost driver. `None` means "not known".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamReport {
    /// Kind of the stream.
    pub kind: LostStreamKind,
    /// Channel as the application gave it.
    pub channel: String,
    /// Stream id.
    pub stream_id: i32,
    /// Session id in the lost driver.
    pub session_id: i32,
    /// Position up to which the publication was written, or the image was consumed, in bytes.
    pub position: i64,
    /// Bytes that every subscriber has certainly consumed. Counted from the position at which this client joined the
    /// stream, with the headers of the frames.
    pub delivered_bytes: Option<i64>,
    /// Bytes that no subscriber will ever get.
    pub lost_bytes: Option<i64>,
    /// Bytes that a subscriber may still have in its log, or may have lost.
    pub possibly_lost_bytes: Option<i64>,
}

/// A stream of a lost driver, until the report is made.
pub(crate) enum LostStream {
    Publication {
        stream: PublishedStream,
        parts: Arc<PublicationParts>,
        /// Values of the sender's position at the loss; empty for IPC.
        sent: Vec<i64>,
        /// Whether the driver has certainly ended, so that it sends nothing more.
        has_driver_ended: bool,
    },
    Image {
        channel: String,
        image: Image,
    },
}

impl LostStream {
    pub(crate) fn of_publication(base: &PublicationBase, has_driver_ended: bool) -> Self {
        let parts = base.parts();
        let sent = match is_ipc(&base.stream.channel) {
            true => Vec::new(),
            false => base.positions(&parts, types::SENDER_POSITION).collect(),
        };
        Self::Publication {
            stream: base.stream.clone(),
            parts,
            sent,
            has_driver_ended,
        }
    }

    pub(crate) fn of_image(subscription: &SubscriptionCore, image: &Image) -> Self {
        Self::Image {
            channel: subscription.channel().to_owned(),
            image: image.clone(),
        }
    }

    /// Reports the stream. The files of the lost driver are still mapped: a subscriber of IPC may have consumed more
    /// since the loss.
    pub(crate) fn report(&self) -> StreamReport {
        match self {
            Self::Publication {
                stream,
                parts,
                sent,
                has_driver_ended,
            } => report_publication(stream, parts, sent, *has_driver_ended),
            Self::Image { channel, image } => StreamReport {
                kind: LostStreamKind::Image,
                channel: channel.clone(),
                stream_id: image.stream_id(),
                session_id: image.session_id(),
                position: image.position(),
                delivered_bytes: Some(image.position() - image.join_position()),
                // The publisher may have written bytes that this driver had not received.
                lost_bytes: None,
                possibly_lost_bytes: None,
            },
        }
    }
}

fn report_publication(
    stream: &PublishedStream,
    parts: &PublicationParts,
    sent: &[i64],
    has_driver_ended: bool,
) -> StreamReport {
    let position = parts.log.producer_position();
    let start = parts.start_position;
    let mut report = StreamReport {
        kind: match stream.is_exclusive {
            true => LostStreamKind::ExclusivePublication,
            false => LostStreamKind::Publication,
        },
        channel: stream.channel.clone(),
        stream_id: stream.stream_id,
        session_id: parts.session_id,
        position,
        delivered_bytes: None,
        lost_bytes: None,
        possibly_lost_bytes: None,
    };
    if position == start {
        (report.delivered_bytes, report.lost_bytes) = (Some(0), Some(0));
        report.possibly_lost_bytes = Some(0);
    } else if is_ipc(&stream.channel) {
        let consumed = PublicationBase::positions_of(stream, parts, types::SUBSCRIBER_POSITION);
        if let Some(consumed) = consumed.min() {
            let consumed = consumed.clamp(start, position);
            report.delivered_bytes = Some(consumed - start);
            report.lost_bytes = Some(0);
            report.possibly_lost_bytes = Some(position - consumed);
        }
    } else if let (true, Some(sent)) = (has_driver_ended, sent.iter().max())
        && !has_spy(stream, parts)
    {
        // The receivers' side is not known. Bytes that the sender has not sent are certainly lost, except for spies:
        // they read the log itself.
        report.lost_bytes = Some(position - (*sent).clamp(start, position));
    }
    report
}
