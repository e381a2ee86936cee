//! Performs the requests that need only the archive client, and no other resource of the peer.

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::client::{
    AeronArchive, ArchiveCall, ArchiveClientError, RecordingSubscription, ReplayParams,
    ReplicationParams,
};
use aeron_protocol::archive::SourceLocation;
use serde_json::{Value, json};

use super::Result;
use super::request::Request;

/// Sends the request for the operation, and waits for the result.
pub fn perform(archive: &AeronArchive, request: &Request) -> Result<Value> {
    let value = match request.operation.as_str() {
        "start_recording"
        | "extend_recording"
        | "stop_recording"
        | "try_stop_recording"
        | "stop_recording_subscription"
        | "try_stop_recording_subscription"
        | "try_stop_recording_by_identity" => recording(archive, request)?,
        "start_replay" | "stop_replay" | "stop_all_replays" => replay(archive, request)?,
        "replicate" | "stop_replication" | "try_stop_replication" => replication(archive, request)?,
        "list_recordings"
        | "list_recordings_for_uri"
        | "list_recording"
        | "list_subscriptions"
        | "find_last"
        | "overlap"
        | "threads" => listing(archive, request)?,
        "start_position" | "recording_position" | "stop_position" | "max_recorded_position" => {
            position(archive, request)?
        }
        _ => maintenance(archive, request)?,
    };
    Ok(json!({ "value": value, "correlation": archive.last_correlation_id()? }))
}

pub fn replay_params(request: &Request) -> Result<ReplayParams> {
    let default = ReplayParams::default();
    Ok(ReplayParams {
        position: request.number_or("position", default.position)?,
        length: request.number_or("length", default.length)?,
        bounding_limit_counter_id: request
            .number_or("counter", default.bounding_limit_counter_id)?,
        file_io_max_length: request.number_or("io_length", default.file_io_max_length)?,
        replay_token: request.number_or("token", default.replay_token)?,
        subscription_registration_id: request
            .number_or("subscription", default.subscription_registration_id)?,
        ..default
    })
}

fn recording(archive: &AeronArchive, request: &Request) -> Result<Value> {
    let source = match request.text_or("source", "local") {
        "remote" => SourceLocation::Remote,
        _ => SourceLocation::Local,
    };
    let (channel, auto_stop) = (request.text_or("channel", ""), request.flag("auto_stop"));
    let stream = request.number_or("stream", 0)?;
    Ok(match request.operation.as_str() {
        "start_recording" => json!(archive.call(ArchiveCall::start_recording(
            channel, stream, source, auto_stop
        ))?),
        "extend_recording" => {
            let id = request.number("recording")?;
            json!(archive.call(ArchiveCall::extend_recording(
                id, channel, stream, source, auto_stop
            ))?)
        }
        "stop_recording" => json!(archive.call(ArchiveCall::stop_recording(channel, stream))?),
        "try_stop_recording" => {
            json!(archive.call(ArchiveCall::try_stop_recording(channel, stream))?)
        }
        "stop_recording_subscription" => {
            json!(archive.call(ArchiveCall::stop_recording_subscription(
                request.number("subscription")?
            ))?)
        }
        "try_stop_recording_subscription" => {
            json!(archive.call(ArchiveCall::try_stop_recording_subscription(
                request.number("subscription")?
            ))?)
        }
        _ => json!(archive.call(ArchiveCall::try_stop_recording_by_identity(
            request.number("recording")?
        ))?),
    })
}

fn replay(archive: &AeronArchive, request: &Request) -> Result<Value> {
    Ok(match request.operation.as_str() {
        "start_replay" => json!(
            archive
                .async_start_replay(
                    request.number("recording")?,
                    request.text("channel")?,
                    request.number("stream")?,
                    &replay_params(request)?,
                )?
                .wait()?
        ),
        "stop_replay" => json!(archive.call(ArchiveCall::stop_replay(request.number("replay")?))?),
        _ => json!(archive.call(ArchiveCall::stop_all_replays(request.number("recording")?))?),
    })
}

fn replication(archive: &AeronArchive, request: &Request) -> Result<Value> {
    let default = ReplicationParams::default();
    Ok(match request.operation.as_str() {
        "replicate" => json!(archive.call(ArchiveCall::replicate(
            request.number("recording")?,
            request.number("stream")?,
            request.text("channel")?,
            &ReplicationParams {
                stop_position: request.number_or("stop", default.stop_position)?,
                dst_recording_id: request.number_or("destination", default.dst_recording_id)?,
                live_destination: request.text_or("live", "").to_owned(),
                replication_channel: request.text_or("replication_channel", "").to_owned(),
                src_response_channel: request.text_or("response", "").to_owned(),
                replication_session_id:
                    request.number_or("session", default.replication_session_id)?,
                ..default
            },
        )?)?),
        "stop_replication" => json!(archive.call(ArchiveCall::stop_replication(
            request.number("replication")?
        ))?),
        _ => json!(archive.call(ArchiveCall::try_stop_replication(
            request.number("replication")?
        ))?),
    })
}

fn listing(archive: &AeronArchive, request: &Request) -> Result<Value> {
    let (from, count) = (
        request.number_or("from", 0)?,
        request.number_or("count", 100)?,
    );
    let (fragment, stream) = (
        request.text_or("channel", ""),
        request.number_or("stream", 0)?,
    );
    Ok(match request.operation.as_str() {
        "list_recordings" => recordings(&archive.call(ArchiveCall::list_recordings(from, count))?),
        "list_recordings_for_uri" => recordings(&archive.call(
            ArchiveCall::list_recordings_for_uri(from, count, fragment, stream),
        )?),
        "list_recording" => {
            let found = archive.call(ArchiveCall::list_recording(request.number("recording")?))?;
            json!(found.as_ref().map(descriptor))
        }
        "list_subscriptions" => {
            let stream = (stream != 0).then_some(stream);
            let index = request.number_or("index", 0)?;
            let found = archive.call(ArchiveCall::list_recording_subscriptions(
                index, count, fragment, stream,
            ))?;
            found.iter().map(subscription).collect()
        }
        "find_last" => {
            let session = request.number("session")?;
            json!(archive.call(ArchiveCall::find_last_matching_recording(
                from, fragment, stream, session
            ))?)
        }
        "threads" => at_once(archive, request)?,
        _ => overlapping(archive, request)?,
    })
}

/// Sends calls from several threads at the same time. Returns the sum of their results.
fn at_once(archive: &AeronArchive, request: &Request) -> Result<Value> {
    let (recording, calls) = (request.number("recording")?, request.number("count")?);
    let call = || -> std::result::Result<i64, ArchiveClientError> {
        let mut sum = 0;
        for _ in 0..calls {
            sum += archive.call(ArchiveCall::max_recorded_position(recording))?;
            sum += archive
                .call(ArchiveCall::list_recordings(recording, 1))?
                .len() as i64;
        }
        Ok(sum)
    };
    let sums = std::thread::scope(|scope| {
        let threads = [(); 4].map(|()| scope.spawn(call));
        threads.map(|thread| thread.join().expect("the thread ends"))
    });
    Ok(json!(
        sums.into_iter().sum::<std::result::Result<i64, _>>()?
    ))
}

/// Runs several operations at the same time. Three of them are listings, and one of these listings is cancelled
/// immediately. Returns the results of the other operations.
fn overlapping(archive: &AeronArchive, request: &Request) -> Result<Value> {
    let recording = request.number("recording")?;
    let mut first = archive.begin(ArchiveCall::list_recordings(recording, 100))?;
    let mut second = archive.begin(ArchiveCall::list_recording(recording))?;
    let mut start = archive.begin(ArchiveCall::start_position(recording))?;
    let mut stop = archive.begin(ArchiveCall::stop_position(recording))?;
    drop(archive.begin(ArchiveCall::list_recordings(0, 100))?);
    Ok(json!({
        "stop": stop.wait()?,
        "second": second.wait()?.as_ref().map(descriptor),
        "first": recordings(&first.wait()?),
        "start": start.wait()?,
    }))
}

fn position(archive: &AeronArchive, request: &Request) -> Result<Value> {
    let recording = request.number("recording")?;
    Ok(match request.operation.as_str() {
        "start_position" => json!(archive.call(ArchiveCall::start_position(recording))?),
        "recording_position" => json!(archive.call(ArchiveCall::recording_position(recording))?),
        "stop_position" => json!(archive.call(ArchiveCall::stop_position(recording))?),
        _ => json!(archive.call(ArchiveCall::max_recorded_position(recording))?),
    })
}

fn maintenance(archive: &AeronArchive, request: &Request) -> Result<Value> {
    let recording = request.number("recording")?;
    Ok(match request.operation.as_str() {
        "truncate" => json!(archive.call(ArchiveCall::truncate_recording(
            recording,
            request.number("position")?
        ))?),
        "purge" => json!(archive.call(ArchiveCall::purge_recording(recording))?),
        "detach" => json!(archive.call(ArchiveCall::detach_segments(
            recording,
            request.number("position")?
        ))?),
        "delete_detached" => json!(archive.call(ArchiveCall::delete_detached_segments(recording))?),
        "purge_segments" => json!(archive.call(ArchiveCall::purge_segments(
            recording,
            request.number("position")?
        ))?),
        "attach" => json!(archive.call(ArchiveCall::attach_segments(recording))?),
        "migrate" => json!(archive.call(ArchiveCall::migrate_segments(
            recording,
            request.number("destination")?
        ))?),
        "update_channel" => json!(archive.call(ArchiveCall::update_channel(
            recording,
            request.text("channel")?
        ))?),
        unknown => return Err(format!("unknown operation {unknown}").into()),
    })
}

fn recordings(descriptors: &[RecordingDescriptor]) -> Value {
    descriptors.iter().map(descriptor).collect()
}

fn descriptor(recording: &RecordingDescriptor) -> Value {
    json!({
        "recording": recording.recording_id,
        "start": recording.start_position,
        "stop": recording.stop_position,
        "started_ms": recording.start_timestamp_ms,
        "stopped_ms": recording.stop_timestamp_ms,
        "initial_term": recording.initial_term_id,
        "segment_length": recording.segment_length,
        "term_length": recording.term_length,
        "mtu": recording.mtu_length,
        "session": recording.session_id,
        "stream": recording.stream_id,
        "stripped_channel": &*recording.stripped_channel,
        "channel": &*recording.original_channel,
        "source": &*recording.source_identity,
    })
}

fn subscription(subscription: &RecordingSubscription) -> Value {
    json!({
        "subscription": subscription.subscription_id,
        "stream": subscription.stream_id,
        "channel": subscription.stripped_channel,
    })
}
