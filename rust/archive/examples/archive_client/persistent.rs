//! Reads a recording with a persistent subscription that has an Aeron client of its own.

use std::time::{Duration, Instant};

use aeron_archive::client::{
    ArchiveClientContext, PersistentSubscription, PersistentSubscriptionContext, StartPosition,
};
use aeron_client::Context;
use serde_json::{Value, json};

use super::Result;
use super::request::Request;

/// Reads a recording from its start until the requested number of messages has arrived or the time limit is reached.
/// Then closes the subscription.
pub fn read(request: &Request) -> Result<Value> {
    let archive = ArchiveClientContext {
        control_request_stream_id: request.number("stream")?,
        ..ArchiveClientContext::new(request.text("request")?, request.text("response")?)
    };
    let mut context = PersistentSubscriptionContext::new(
        archive,
        request.number("recording")?,
        request.text("live")?,
        request.number("live_stream")?,
        "aeron:ipc",
        request.number("replay_stream")?,
    );
    context.start_position = StartPosition::FromStart;
    let client = Context {
        aeron_dir: request.text("dir")?.into(),
        ..Context::default()
    };
    let mut subscription = PersistentSubscription::connect(client, context)?;
    let count: u64 = request.number("count")?;
    let deadline = Instant::now() + Duration::from_millis(request.number("timeout_ms")?);
    let mut read = 0;
    while read < count && Instant::now() < deadline {
        if subscription.poll(|_| read += 1, 10)? == 0 {
            std::thread::yield_now();
        }
    }
    let is_live = subscription.status().is_live();
    subscription.close();
    Ok(json!({ "read": read, "live": is_live }))
}
