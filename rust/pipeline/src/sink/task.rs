//! [`SinkTask`]: publishes the rows of one attempt at one partition.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aeron_client::{Aeron, AppendError, Error};
use aeron_columns::write::{
    ArrowMessages, EncodedRows, Headers, MAX_MESSAGES, Packing, Payloads, Reserved, ReservedValue,
    RowEncoding, RowSendError, Rows, RowsOfStream, by_stream,
};
use arrow_array::RecordBatch;

use super::error::{SinkError, SinkProgress};
use super::offer::OfferStop;
use super::patience::{Refusal, RetryLimits};
use super::publication::Sharing;
use super::publications::{LeaseError, MAX_STREAMS, SharedPublications};
use super::stream::{DrainError, Sent, SinkStream, StreamReceipt, deadline_in};

/// Settings of a task: the destination, the encoding and the time-outs.
pub struct SinkSettings {
    /// Directory of the media driver.
    pub directory: PathBuf,
    /// Creates a client of that driver. Called if there is no connected client.
    pub connect: Box<dyn Fn() -> Result<Aeron, Error> + Send + Sync>,
    /// Called while the task waits; `true` ends the wait.
    pub is_interrupted: fn() -> bool,
    /// Channel of all streams.
    pub channel: String,
    /// Stream of rows that do not name a stream.
    pub stream_id: Option<i32>,
    /// Whether other tasks may publish into the same session.
    pub sharing: Sharing,
    /// Name of the query in the label of the row counter.
    pub query: String,
    /// Partition of the task.
    pub partition: u32,
    /// Attempt at the partition, counted from 0.
    pub attempt: u32,
    /// Maximum time to wait for a subscriber.
    pub connect_timeout: Duration,
    /// Maximum time to wait for room in the publication, and maximum time to wait until subscribers have read all
    /// messages.
    pub offer_timeout: Duration,
    /// Origin of the reserved value in each frame.
    pub reserved_value: ReservedValue,
    /// Format of the payloads.
    pub encoding: Box<dyn RowEncoding>,
}

/// Result of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Number of rows.
    pub rows: u64,
    /// Number of messages.
    pub messages: u64,
    /// Number of payload bytes of the messages.
    pub bytes: u64,
    /// Results of each stream, by stream id.
    pub streams: Vec<StreamReceipt>,
}

/// Publishes the rows of one task. Used by one thread at a time.
pub struct SinkTask {
    settings: Arc<SinkSettings>,
    publications: SharedPublications,
    streams: BTreeMap<i32, SinkStream>,
    published: Receipt,
    /// Number of rows that were passed to the task.
    rows: u64,
    /// Payloads that are encoded at the moment.
    encoded: EncodedRows,
}

impl SinkTask {
    /// Creates a task that uses and fills the shared `publications`. Opens nothing yet.
    pub fn new(settings: SinkSettings, publications: SharedPublications) -> Self {
        Self {
            settings: Arc::new(settings),
            publications,
            streams: BTreeMap::new(),
            published: Receipt::default(),
            rows: 0,
            encoded: EncodedRows::default(),
        }
    }

    /// Publishes the rows of a record batch. Waits for subscribers and for room. Returns when the rows are in the log
    /// buffers.
    ///
    /// # Errors
    /// [`SinkError`] says which rows were published. After an error, do not use the task any more.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), SinkError> {
        let first_row = self.rows;
        self.rows += batch.num_rows() as u64;
        let settings = Arc::clone(&self.settings);
        if matches!(settings.reserved_value, ReservedValue::Keys(_)) && self.rows > MAX_MESSAGES {
            let limit = format!("more than {MAX_MESSAGES} rows, the maximum with message keys");
            return Err(self.failed(limit + ": use more partitions, or reservedValue=zero"));
        }
        let mut encoded = std::mem::take(&mut self.encoded);
        let rows_at_once = settings.encoding.rows_at_once();
        // A batch without rows is checked too.
        for offset in (0..batch.num_rows().max(1)).step_by(rows_at_once) {
            let slice = batch.slice(offset, rows_at_once.min(batch.num_rows() - offset));
            let first_row = first_row + offset as u64;
            let payloads = settings.encoding.payloads(&slice, &mut encoded);
            let rows = payloads.and_then(|payloads| {
                let headers = Headers::of(&slice)?;
                Ok(Rows { payloads, headers })
            });
            let rows = rows.map_err(|error| self.row_error(first_row, error))?;
            self.send_rows(&rows, first_row)?;
        }
        self.encoded = encoded;
        Ok(())
    }

    /// Publishes the remaining rows, in messages that are not full. If `drain` is `true`, waits until all subscribers
    /// with a counter at the local driver have read the task's messages. Returns the counts of everything that the task
    /// published.
    ///
    /// # Errors
    /// The same errors as [`write`](Self::write). With `drain`, also [`SinkError::Undrained`].
    pub fn finish(&mut self, drain: bool) -> Result<Receipt, SinkError> {
        let stream_ids: Vec<i32> = self.streams.keys().copied().collect();
        for stream_id in stream_ids {
            self.send_packed(stream_id, Packing::last)?;
        }
        if drain {
            self.drain()?;
        }
        Ok(self.receipt())
    }

    /// Returns the counts of everything that the task has published so far.
    pub fn receipt(&self) -> Receipt {
        Receipt {
            streams: self
                .streams
                .values()
                .map(|stream| stream.receipt().clone())
                .collect(),
            ..self.published
        }
    }

    /// Sends rows. The first one has the number `first_row` in the partition.
    fn send_rows(&mut self, rows: &Rows<'_>, first_row: u64) -> Result<(), SinkError> {
        let reserved = match (self.settings.reserved_value, rows.headers.reserved_values) {
            (ReservedValue::Zero, _) => Reserved::Zero,
            (ReservedValue::Column, Some(values)) => Reserved::Column(values),
            (ReservedValue::Column, None) => {
                let reason = "reservedValue=column needs a column 'reserved_value'";
                return Err(self.failed(reason.to_owned()));
            }
            (ReservedValue::Keys(key), _) => Reserved::Keys {
                key,
                first: first_row,
            },
        };
        for RowsOfStream { stream_id, order } in self.open_streams(rows)? {
            let order = order.as_deref();
            if self.stream(stream_id)?.pack(rows, order) {
                self.send_packed(stream_id, Packing::complete)?;
                continue;
            }
            let payloads = rows.payloads;
            let messages = ArrowMessages {
                payloads,
                reserved,
                order,
            };
            let is_interrupted = self.settings.is_interrupted;
            let sent = self.stream(stream_id)?.send(&messages, &is_interrupted);
            let next_row = first_row + messages.place(sent.messages) as u64;
            self.conclude(stream_id, sent, Some(next_row))?;
        }
        Ok(())
    }

    fn send_packed(
        &mut self,
        stream_id: i32,
        which: fn(&Packing) -> Payloads<'_>,
    ) -> Result<(), SinkError> {
        let settings = Arc::clone(&self.settings);
        let stream = self.stream(stream_id)?;
        let sent = stream.send_packed(which, settings.reserved_value, &settings.is_interrupted);
        self.conclude(stream_id, sent, None)
    }

    /// Counts sent rows. Returns an error if not all rows were sent. `next_row` is the number of the first row that was
    /// not sent.
    fn conclude(
        &mut self,
        stream_id: i32,
        sent: Sent,
        next_row: Option<u64>,
    ) -> Result<(), SinkError> {
        self.published.rows += sent.rows;
        self.published.messages += sent.messages as u64;
        self.published.bytes += sent.bytes;
        debug_assert!(
            self.published.rows <= self.rows,
            "{} rows were published, but only {} rows were written",
            self.published.rows,
            self.rows
        );
        match sent.stopped {
            None => Ok(()),
            Some(stop) => Err(self.stopped(stream_id, stop, next_row)),
        }
    }

    /// Splits the rows by stream, and opens the streams.
    fn open_streams(&mut self, rows: &Rows<'_>) -> Result<Vec<RowsOfStream>, SinkError> {
        let streams = self.streams_of(rows)?;
        let is_new = |rows: &&RowsOfStream| !self.streams.contains_key(&rows.stream_id);
        let count = self.streams.len() + streams.iter().filter(is_new).count();
        if count > MAX_STREAMS {
            return Err(self.too_many_streams(count));
        }
        for rows in &streams {
            self.stream(rows.stream_id)?;
        }
        Ok(streams)
    }

    fn streams_of(&self, rows: &Rows<'_>) -> Result<Vec<RowsOfStream>, SinkError> {
        match (rows.headers.stream_ids, self.settings.stream_id) {
            (Some(stream_ids), _) => Ok(by_stream(stream_ids)),
            (None, Some(_)) if rows.payloads.count() == 0 => Ok(Vec::new()),
            (None, Some(stream_id)) => Ok(vec![RowsOfStream {
                stream_id,
                order: None,
            }]),
            (None, None) => {
                Err(self
                    .failed("no stream: give option streamId, or a column 'stream_id'".to_owned()))
            }
        }
    }

    /// Returns the stream with this id; opens it if necessary.
    fn stream(&mut self, stream_id: i32) -> Result<&mut SinkStream, SinkError> {
        if !self.streams.contains_key(&stream_id) {
            let stream = self.open(stream_id)?;
            self.streams.insert(stream_id, stream);
        }
        Ok(self
            .streams
            .get_mut(&stream_id)
            .expect("there, or just inserted"))
    }

    fn open(&self, stream_id: i32) -> Result<SinkStream, SinkError> {
        let settings = &self.settings;
        let publication = self
            .publications
            .publication(
                &settings.directory,
                &settings.connect,
                &settings.channel,
                stream_id,
                settings.sharing,
            )
            .map_err(|error| self.not_opened(stream_id, error))?;
        let counter =
            self.publications
                .rows_counter(&settings.directory, &settings.query, stream_id);
        if let Err(error @ Error::Interrupted) = counter {
            return Err(self.driver_error(stream_id, error));
        }
        let packing = settings.encoding.packing();
        if let Some(packing) = &packing {
            self.check_packed(packing, stream_id, publication.max_message_length())?;
        }
        let patience = RetryLimits::new(settings.connect_timeout, settings.offer_timeout);
        Ok(SinkStream::new(
            publication,
            counter.unwrap_or_default(),
            patience,
            packing,
        ))
    }

    /// Returns an error if a full message would be too long. Call it before rows are packed.
    fn check_packed(
        &self,
        packing: &Packing,
        stream_id: i32,
        longest: usize,
    ) -> Result<(), SinkError> {
        let (records, length) = packing.size();
        if records.saturating_mul(length) <= longest {
            return Ok(());
        }
        let channel = &self.settings.channel;
        Err(self.failed(format!(
            "recordsPerMessage={records} of {length} bytes are more than the longest message of channel={channel} \
             streamId={stream_id}, {longest} bytes: at most {} fit",
            longest / length
        )))
    }

    fn drain(&self) -> Result<(), SinkError> {
        let settings = &self.settings;
        let deadline = deadline_in(settings.offer_timeout);
        for (stream_id, stream) in &self.streams {
            match stream.drain(deadline, &settings.is_interrupted) {
                Ok(()) => {}
                Err(DrainError::Stopped(stop)) => {
                    return Err(self.stopped(*stream_id, stop, None));
                }
                Err(DrainError::Undrained) => {
                    return Err(SinkError::Undrained {
                        channel: settings.channel.clone(),
                        stream_id: *stream_id,
                        waited_ms: settings.offer_timeout.as_millis(),
                        subscribers: stream.slowest_position(),
                        end: stream.receipt().last_position,
                        progress: self.progress(),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Functions that create errors.
impl SinkTask {
    fn progress(&self) -> SinkProgress {
        SinkProgress {
            partition: self.settings.partition,
            attempt: self.settings.attempt,
            rows: self.rows,
            published: self.published.rows,
            is_prefix: self.streams.len() <= 1,
        }
    }

    fn failed(&self, reason: String) -> SinkError {
        let progress = self.progress();
        SinkError::Task { reason, progress }
    }

    fn row_error(&self, first_row: u64, error: RowSendError) -> SinkError {
        let reason = error.reason;
        match error.row {
            None => self.failed(reason),
            Some(row) => SinkError::Row {
                row: first_row + row as u64,
                reason,
                progress: self.progress(),
            },
        }
    }

    fn not_opened(&self, stream_id: i32, error: LeaseError) -> SinkError {
        match error {
            LeaseError::Client(error) => self.driver_error(stream_id, error),
            LeaseError::TooManyStreams => self.too_many_streams(MAX_STREAMS + 1),
        }
    }

    fn too_many_streams(&self, count: usize) -> SinkError {
        self.failed(format!(
            "column 'stream_id' has {count} distinct values or more in this worker, the limit is {MAX_STREAMS}"
        ))
    }

    fn driver_error(&self, stream_id: i32, error: Error) -> SinkError {
        if matches!(error, Error::Interrupted) {
            return SinkError::Interrupted(self.progress());
        }
        SinkError::Driver {
            channel: self.settings.channel.clone(),
            stream_id,
            error,
            progress: self.progress(),
        }
    }

    fn stopped(&self, stream_id: i32, stop: OfferStop, next_row: Option<u64>) -> SinkError {
        let (channel, progress) = (self.settings.channel.clone(), self.progress());
        let stream = self.streams.get(&stream_id);
        match stop {
            OfferStop::Interrupted => SinkError::Interrupted(progress),
            OfferStop::Exhausted(Refusal::NotConnected) => SinkError::NoSubscriber {
                channel,
                stream_id,
                waited_ms: self.settings.connect_timeout.as_millis(),
                progress,
            },
            OfferStop::Exhausted(Refusal::Pressed) => SinkError::BackPressure {
                channel,
                stream_id,
                waited_ms: self.settings.offer_timeout.as_millis(),
                subscribers: stream.and_then(SinkStream::slowest_position),
                limit: stream.map_or(0, |stream| {
                    stream.publication().position_limit().unwrap_or_default()
                }),
                progress,
            },
            OfferStop::Failed(AppendError::Closed) => {
                let cause = stream.map(|stream| stream.publication().close_cause());
                let resource = "Publication";
                let cause = cause.unwrap_or_default();
                self.driver_error(stream_id, Error::ResourceClosed { resource, cause })
            }
            OfferStop::Failed(error) => {
                let reason = format!("channel={channel} streamId={stream_id}: {error}");
                self.row_error(
                    0,
                    RowSendError {
                        row: next_row.map(|row| row as usize),
                        reason,
                    },
                )
            }
        }
    }
}
