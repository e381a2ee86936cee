//! [`ArchivePeer`]: performs the requests with an Aeron client, an archive client and their streams.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use aeron_archive::client::{
    AeronArchive, ArchiveCall, ArchiveClientContext, ArchiveClientError, ArchiveSessionState,
    CredentialsSupplier, RecordingPositionKey,
};
use aeron_client::{Aeron, Context, Counter};
use aeron_protocol::archive::RecordingSignalEvent;
use serde_json::{Value, json};

use super::Result;
use super::request::Request;
use super::streams::{Publisher, Receiver, Sender};

/// An Aeron client, a client of an archive, and their resources.
#[derive(Default)]
pub struct ArchivePeer {
    aeron: Option<Aeron>,
    archive: Option<AeronArchive>,
    publishers: HashMap<i64, Publisher>,
    receivers: HashMap<i64, Receiver>,
    counters: HashMap<i64, Counter>,
    heard: Arc<Heard>,
}

/// Events that the handlers have received.
#[derive(Default)]
struct Heard {
    signals: Mutex<Vec<Value>>,
    errors: Mutex<Vec<String>>,
    /// The archive client, for a handler that calls it.
    archive: Mutex<Option<AeronArchive>>,
}

/// Credentials from a request.
struct Credentials {
    first: Vec<u8>,
    challenged: Vec<u8>,
}

impl CredentialsSupplier for Credentials {
    fn encoded_credentials(&self) -> Vec<u8> {
        self.first.clone()
    }

    fn on_challenge(&self, encoded_challenge: &[u8]) -> Vec<u8> {
        [encoded_challenge, self.challenged.as_slice()].concat()
    }
}

impl ArchivePeer {
    pub fn perform(&mut self, request: &Request) -> Result<Value> {
        match request.operation.as_str() {
            "connect" => self.connect(request),
            "reconnect" => self.connect_archive(request),
            "state" => self.state(),
            "close_archive" => {
                self.archive()?.close()?;
                Ok(json!({}))
            }
            "disconnect" => {
                if let Some(archive) = &self.archive {
                    archive.close()?;
                }
                *self = Self::default();
                Ok(json!({}))
            }
            "add_publication" => self.add_publication(request),
            "add_subscription" => self.add_subscription(request),
            "replay" => self.replay(request),
            "publish" => self.publish(request),
            "receive" => self.receive(request),
            "close" => self.close(request),
            "stop_recording_publication" => self.stop_recording_publication(request),
            "add_counter" => self.add_counter(request),
            "set_counter" => self.set_counter(request),
            "recording_counter" => self.recording_counter(request),
            "counters" => self.counters(request),
            "read_persistently" => super::persistent::read(request),
            "signals" => self.signals(),
            "errors" => self.errors(),
            "check" => {
                self.archive()?.check_for_error_response()?;
                Ok(json!({}))
            }
            _ => super::calls::perform(self.archive()?, request),
        }
    }

    fn aeron(&self) -> Result<&Aeron> {
        self.aeron.as_ref().ok_or_else(|| "not connected".into())
    }

    fn archive(&self) -> Result<&AeronArchive> {
        self.archive.as_ref().ok_or_else(|| "no archive".into())
    }

    fn connect(&mut self, request: &Request) -> Result<Value> {
        self.aeron = Some(Aeron::connect(Context {
            aeron_dir: request.text("dir")?.into(),
            use_conductor_agent_invoker: request.flag("invoker"),
            ..Context::default()
        })?);
        self.connect_archive(request)
    }

    fn connect_archive(&mut self, request: &Request) -> Result<Value> {
        let mut context =
            ArchiveClientContext::new(request.text("request")?, request.text("response")?);
        context.message_timeout_ns = request.number_or("timeout_ms", 10_000)? * 1_000_000;
        context.client_name = request.text_or("name", "").to_owned();
        context.control_request_stream_id = request.number_or("stream", 10)?;
        context.credentials = Arc::new(Credentials {
            first: request.text_or("credentials", "").into(),
            challenged: request.text_or("challenged", "").into(),
        });
        if request.flag("handlers") {
            let (signals, errors) = (Arc::clone(&self.heard), Arc::clone(&self.heard));
            context.recording_signal_handler = Some(Arc::new(move |signal| signals.hear(signal)));
            context.error_handler = Some(Arc::new(move |error| {
                errors.errors.lock().unwrap().push(error.to_string());
            }));
        }
        let archive = AeronArchive::connect(self.aeron()?, context)?;
        if request.flag("handlers") {
            *self.heard.archive.lock().unwrap() = Some(archive.clone());
        }
        let answer = json!({
            "control_session": archive.control_session_id(),
            "archive": archive.archive_id(),
        });
        self.archive = Some(archive);
        Ok(answer)
    }

    fn state(&self) -> Result<Value> {
        let state = match self.archive()?.state()? {
            ArchiveSessionState::Connected => "connected",
            ArchiveSessionState::Disconnected => "disconnected",
            ArchiveSessionState::Closed => "closed",
        };
        Ok(json!({ "state": state }))
    }

    /// Adds a publication, which may be recorded from its first byte on.
    fn add_publication(&mut self, request: &Request) -> Result<Value> {
        let (channel, stream) = (request.text("channel")?, request.number("stream")?);
        let sender = match (request.flag("recorded"), request.flag("exclusive")) {
            (true, true) => Sender::Exclusive(
                self.archive()?
                    .async_add_recorded_exclusive_publication(channel, stream)?
                    .wait()?,
            ),
            (true, false) => Sender::Shared(
                self.archive()?
                    .async_add_recorded_publication(channel, stream)?
                    .wait()?,
            ),
            (false, true) => {
                Sender::Exclusive(self.aeron()?.add_exclusive_publication(channel, stream)?)
            }
            (false, false) => Sender::Shared(self.aeron()?.add_publication(channel, stream)?),
        };
        let publisher = Publisher::new(sender);
        let answer = publisher.constants();
        self.publishers
            .insert(publisher.sender.registration_id(), publisher);
        Ok(answer)
    }

    fn add_subscription(&mut self, request: &Request) -> Result<Value> {
        let (channel, stream) = (request.text("channel")?, request.number("stream")?);
        let receiver = Receiver::new(self.aeron()?.add_subscription(channel, stream)?);
        Ok(self.add_receiver(receiver))
    }

    fn replay(&mut self, request: &Request) -> Result<Value> {
        let subscription = self
            .archive()?
            .async_replay(
                request.number("recording")?,
                request.text("channel")?,
                request.number("stream")?,
                &super::calls::replay_params(request)?,
            )?
            .wait()?
            .subscription;
        Ok(self.add_receiver(Receiver::new(subscription)))
    }

    fn add_receiver(&mut self, receiver: Receiver) -> Value {
        let id = receiver.subscription.registration_id();
        let answer = json!({
            "registration": id,
            "channel": receiver.subscription.try_resolve_channel_endpoint_port(),
        });
        self.receivers.insert(id, receiver);
        answer
    }

    fn publish(&mut self, request: &Request) -> Result<Value> {
        let aeron = self.aeron()?.clone();
        let publisher = self.publishers.get_mut(&request.number("id")?);
        publisher
            .ok_or("no such publication")?
            .publish(&aeron, request)
    }

    fn receive(&mut self, request: &Request) -> Result<Value> {
        let aeron = self.aeron()?.clone();
        let receiver = self.receivers.get_mut(&request.number("id")?);
        receiver
            .ok_or("no such subscription")?
            .receive(&aeron, request)
    }

    fn close(&mut self, request: &Request) -> Result<Value> {
        let id = request.number("id")?;
        if let Some(publisher) = self.publishers.remove(&id) {
            publisher.sender.close();
        }
        if let Some(receiver) = self.receivers.remove(&id) {
            receiver.subscription.close();
        }
        if let Some(counter) = self.counters.remove(&id) {
            counter.close();
        }
        Ok(json!({}))
    }

    fn stop_recording_publication(&self, request: &Request) -> Result<Value> {
        let archive = self.archive()?;
        let (channel, session_id, stream_id) = match &self.publishers[&request.number("id")?].sender
        {
            Sender::Shared(publication) => (
                publication.channel(),
                publication.session_id(),
                publication.stream_id(),
            ),
            Sender::Exclusive(publication) => (
                publication.channel(),
                publication.session_id(),
                publication.stream_id(),
            ),
        };
        let channel = AeronArchive::session_channel(channel, session_id)?;
        archive.call(ArchiveCall::stop_recording(&channel, stream_id))?;
        Ok(json!({}))
    }

    fn add_counter(&mut self, request: &Request) -> Result<Value> {
        let counter = self.aeron()?.add_counter(1001, &[], "limit")?;
        counter.set(request.number("value")?);
        let (id, registration) = (counter.id(), counter.registration_id());
        self.counters.insert(registration, counter);
        Ok(json!({ "id": id, "registration": registration }))
    }

    fn set_counter(&self, request: &Request) -> Result<Value> {
        self.counters[&request.number("id")?].set(request.number("value")?);
        Ok(json!({}))
    }

    /// Returns the counter of a session's active recording, or an empty JSON object if there is no such recording.
    fn recording_counter(&self, request: &Request) -> Result<Value> {
        let counters = &self.aeron()?.counters_reader();
        let archive_id = Some(self.archive()?.archive_id());
        let session = request.number("session")?;
        let found = RecordingPositionKey::find_by_session(counters, session, archive_id);
        let Some((id, key)) =
            found.and_then(|id| Some((id, RecordingPositionKey::of(counters, id)?)))
        else {
            return Ok(json!({}));
        };
        let recording = key.recording_id;
        Ok(json!({
            "id": id,
            "recording": recording,
            "source": key.source_identity,
            "archive": key.archive_id,
            "value": counters.value(id),
            "is_active": RecordingPositionKey::is_active(counters, id, recording),
            "by_recording": RecordingPositionKey::find_by_recording(counters, recording, archive_id),
        }))
    }

    /// Returns all counters of a type.
    fn counters(&self, request: &Request) -> Result<Value> {
        let type_id: i32 = request.number("type")?;
        let reader = self.aeron()?.counters_reader();
        let records = reader.records();
        let counters: Vec<Value> = records
            .filter(|record| record.type_id == type_id)
            .map(|record| {
                json!({
                    "label": record.label,
                    "value": record.value,
                    "registration": record.registration_id,
                    "reference": record.reference_id,
                })
            })
            .collect();
        Ok(json!({ "counters": counters }))
    }

    /// Polls once and returns the signals that have arrived since the last call.
    fn signals(&self) -> Result<Value> {
        let archive = self.archive()?;
        let polled = archive.poll_for_recording_signals()?;
        let mut signals = std::mem::take(&mut *self.heard.signals.lock().unwrap());
        while let Some(signal) = archive.take_recording_signal()? {
            signals.push(signal_of(&signal));
        }
        Ok(json!({ "signals": signals, "polled": polled }))
    }

    /// Polls once and returns the errors that have arrived since the last call.
    fn errors(&self) -> Result<Value> {
        let mut errors = std::mem::take(&mut *self.heard.errors.lock().unwrap());
        errors.extend(
            self.archive()?
                .poll_for_error_response()?
                .map(|error| error.to_string()),
        );
        Ok(json!({ "errors": errors }))
    }
}

impl Heard {
    /// Stores a signal, and whether the archive client refuses a call from its own handler.
    fn hear(&self, signal: &RecordingSignalEvent) {
        let mut value = signal_of(signal);
        if let Some(archive) = &*self.archive.lock().unwrap() {
            let refused = archive.call(ArchiveCall::start_position(signal.recording_id));
            let is_reentrant = matches!(refused, Err(ArchiveClientError::ReentrantCall));
            value["refused_call"] = json!(is_reentrant);
        }
        self.signals.lock().unwrap().push(value);
    }
}

fn signal_of(signal: &RecordingSignalEvent) -> Value {
    json!({
        "signal": format!("{:?}", signal.signal),
        "correlation": signal.correlation_id,
        "recording": signal.recording_id,
        "subscription": signal.subscription_id,
        "position": signal.position,
    })
}
