//! [`SinkTask`]: the rows of one attempt at one partition, into publications.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aeron_client::{Aeron, AppendError, Error};
use aeron_columns::layout::Layout;
use aeron_columns::write::{
    ArrowMessages, Headers, MAX_MESSAGES, Packing, Payloads, Reserved, ReservedValue, RowError,
    Rows, RowsOfStream, by_stream,
};
use arrow_array::RecordBatch;

use super::error::{Progress, SinkError};
use super::offer::Stop;
use super::patience::{Patience, Refusal};
use super::publications::{LeaseError, MAX_STREAMS, Publications};
use super::stream::{DrainError, Sent, Stream, StreamReceipt, deadline_in};

/// Rows that are made records of before they are sent: few enough to be in the cache still.
const ENCODED_ROWS: usize = 4096;

/// What a task sends, where, and how long it tries.
pub struct SinkSettings {
    /// Directory of the media driver.
    pub directory: PathBuf,
    /// Makes a client of that driver, should none be there.
    pub connect: Box<dyn Fn() -> Result<Aeron, Error> + Send + Sync>,
    /// Asked while the task waits; `true` ends the wait.
    pub is_interrupted: fn() -> bool,
    /// Channel of all streams.
    pub channel: String,
    /// Stream of rows that name none.
    pub stream_id: Option<i32>,
    /// Names the query in the label of a counter of rows.
    pub query: String,
    /// Partition of the task.
    pub partition: u32,
    /// Attempt at the partition, from 0 on.
    pub attempt: u32,
    /// How long to wait for a subscriber.
    pub connect_timeout: Duration,
    /// How long to wait for room, and for subscribers to read to the end.
    pub offer_timeout: Duration,
    /// What the frames' reserved values are.
    pub reserved_value: ReservedValue,
    /// What records the rows are, unless a column [`VALUE`](aeron_columns::write::VALUE) has the payloads.
    pub typed: Option<Typed>,
}

/// Rows as records.
#[derive(Debug, Clone)]
pub struct Typed {
    /// What a record looks like.
    pub layout: Layout,
    /// Records of a message, from 1 on.
    pub records_per_message: usize,
}

/// What a task published.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Rows.
    pub rows: u64,
    /// Messages.
    pub messages: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// What went to each stream, by stream id.
    pub streams: Vec<StreamReceipt>,
}

/// Publishes the rows of one task. Used by one thread at a time.
pub struct SinkTask {
    settings: Arc<SinkSettings>,
    publications: Publications,
    streams: BTreeMap<i32, Stream>,
    published: Receipt,
    /// Rows that were handed over.
    rows: u64,
    records: Vec<u8>,
}

impl SinkTask {
    /// A task that publishes through what others left open, and leaves open what it opens. Opens nothing yet.
    pub fn new(settings: SinkSettings, publications: Publications) -> Self {
        Self {
            settings: Arc::new(settings),
            publications,
            streams: BTreeMap::new(),
            published: Receipt::default(),
            rows: 0,
            records: Vec::new(),
        }
    }

    /// Publishes the rows of a record batch. Returns when they are in the log buffers; waits for subscribers and for room.
    ///
    /// # Errors
    /// See [`SinkError`], which says what was published; the task is to be given up then.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), SinkError> {
        let first_row = self.rows;
        self.rows += batch.num_rows() as u64;
        let settings = Arc::clone(&self.settings);
        if matches!(settings.reserved_value, ReservedValue::Keys(_)) && self.rows > MAX_MESSAGES {
            let limit = format!("more than {MAX_MESSAGES} rows, the most that have keys");
            return Err(self.failed(limit + ": use more partitions, or reservedValue=zero"));
        }
        match &settings.typed {
            None => {
                let rows = Rows::of(batch).map_err(|error| self.row_error(first_row, error))?;
                self.send_rows(&rows, first_row)
            }
            Some(typed) => self.write_records(&typed.layout, batch, first_row),
        }
    }

    /// Publishes what was kept back to fill a message; with `drain` waits until all subscribers that this machine's driver
    /// knows have read what the task published. Answers what that is.
    ///
    /// # Errors
    /// As [`write`](Self::write).
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

    /// What was published so far.
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

    fn write_records(
        &mut self,
        layout: &Layout,
        batch: &RecordBatch,
        first_row: u64,
    ) -> Result<(), SinkError> {
        let mut records = std::mem::take(&mut self.records);
        for offset in (0..batch.num_rows()).step_by(ENCODED_ROWS) {
            let slice = batch.slice(offset, ENCODED_ROWS.min(batch.num_rows() - offset));
            let first_row = first_row + offset as u64;
            records.clear();
            encode(layout, &slice, &mut records)
                .map_err(|error| self.row_error(first_row, error))?;
            let headers = Headers::of(&slice).map_err(|error| self.row_error(first_row, error))?;
            let payloads = Payloads::records(&records, layout.record_length());
            self.send_rows(&Rows { payloads, headers }, first_row)?;
        }
        self.records = records;
        Ok(())
    }

    /// Sends rows, the first of which has the number `first_row` in the partition.
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

    /// Counts what was sent; an error if that is not all. `next_row` is the first that was not.
    fn conclude(
        &mut self,
        stream_id: i32,
        sent: Sent,
        next_row: Option<u64>,
    ) -> Result<(), SinkError> {
        self.published.rows += sent.rows;
        self.published.messages += sent.messages as u64;
        self.published.bytes += sent.bytes;
        match sent.stopped {
            None => Ok(()),
            Some(stop) => Err(self.stopped(stream_id, stop, next_row)),
        }
    }

    /// The rows of each stream; all the streams are open then.
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

    /// The stream of this id, opened if it is not.
    fn stream(&mut self, stream_id: i32) -> Result<&mut Stream, SinkError> {
        if !self.streams.contains_key(&stream_id) {
            let stream = self.open(stream_id)?;
            self.streams.insert(stream_id, stream);
        }
        Ok(self
            .streams
            .get_mut(&stream_id)
            .expect("there, or just inserted"))
    }

    fn open(&self, stream_id: i32) -> Result<Stream, SinkError> {
        let settings = &self.settings;
        let publication = self
            .publications
            .publication(
                &settings.directory,
                &settings.connect,
                &settings.channel,
                stream_id,
            )
            .map_err(|error| self.not_opened(stream_id, error))?;
        let counter =
            self.publications
                .rows_counter(&settings.directory, &settings.query, stream_id);
        if let Err(error @ Error::Interrupted) = counter {
            return Err(self.driver_error(stream_id, error));
        }
        let packing = match &settings.typed {
            Some(typed) if typed.records_per_message > 1 => {
                self.check_packed(typed, stream_id, publication.max_message_length())?;
                let record_length = typed.layout.record_length();
                Some(Packing::new(record_length, typed.records_per_message))
            }
            _ => None,
        };
        let patience = Patience::new(settings.connect_timeout, settings.offer_timeout);
        Ok(Stream::new(
            publication,
            counter.unwrap_or_default(),
            patience,
            packing,
        ))
    }

    /// Refuses messages that would be too long when they are full, before rows are kept back for them.
    fn check_packed(&self, typed: &Typed, stream_id: i32, longest: usize) -> Result<(), SinkError> {
        let (records, length) = (typed.records_per_message, typed.layout.record_length());
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

/// Errors.
impl SinkTask {
    fn progress(&self) -> Progress {
        Progress {
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

    fn row_error(&self, first_row: u64, error: RowError) -> SinkError {
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

    fn stopped(&self, stream_id: i32, stop: Stop, next_row: Option<u64>) -> SinkError {
        let (channel, progress) = (self.settings.channel.clone(), self.progress());
        let stream = self.streams.get(&stream_id);
        match stop {
            Stop::Interrupted => SinkError::Interrupted(progress),
            Stop::Exhausted(Refusal::NotConnected) => SinkError::NoSubscriber {
                channel,
                stream_id,
                waited_ms: self.settings.connect_timeout.as_millis(),
                progress,
            },
            Stop::Exhausted(Refusal::Pressed) => SinkError::BackPressure {
                channel,
                stream_id,
                waited_ms: self.settings.offer_timeout.as_millis(),
                subscribers: stream.and_then(Stream::slowest_position),
                limit: stream.map_or(0, |stream| {
                    stream.publication().position_limit().unwrap_or_default()
                }),
                progress,
            },
            Stop::Failed(AppendError::Closed) => {
                let cause = stream.map(|stream| stream.publication().close_cause());
                let resource = "Publication";
                let cause = cause.unwrap_or_default();
                self.driver_error(stream_id, Error::ResourceClosed { resource, cause })
            }
            Stop::Failed(error) => {
                let reason = format!("channel={channel} streamId={stream_id}: {error}");
                self.row_error(
                    0,
                    RowError {
                        row: next_row.map(|row| row as usize),
                        reason,
                    },
                )
            }
        }
    }
}

/// Makes records of all rows.
fn encode(layout: &Layout, rows: &RecordBatch, records: &mut Vec<u8>) -> Result<(), RowError> {
    let encoder = layout.encoder(rows)?;
    Ok(encoder.encode(0..rows.num_rows(), records)?)
}
