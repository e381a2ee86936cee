//! Tests of response channels. One side sends requests on a stream. The other side sends responses on a stream that
//! only the requester receives.

use aeron_protocol::ErrorCode;

use crate::conductor::harness::{Image, Publication, STREAM, TICK, TestDriver};

const REQUESTS: &str = "aeron:udp?endpoint=localhost:20170";
const RESPONSES: &str = "aeron:udp?control-mode=response|control=localhost:20171";
const RESPONSE_STREAM: i32 = STREAM + 1;

/// A subscription for responses, the publication of requests, and the image of the requests at the responder.
struct Exchange {
    driver: TestDriver,
    responses: i64,
    requests: Publication,
    image: Image,
}

fn exchange() -> Exchange {
    let mut driver = TestDriver::new();
    let (server, _) = driver.add_subscription(REQUESTS, STREAM);
    let (responses, _) = driver.add_subscription(RESPONSES, RESPONSE_STREAM);
    let channel = format!("{REQUESTS}|response-correlation-id={responses}");
    let requests = driver.add_publication(&channel, STREAM);
    driver.advance(5 * TICK);
    let [image] = &driver.images_of(server)[..] else {
        panic!("expected one image");
    };
    let image = image.clone();
    Exchange {
        driver,
        responses,
        requests,
        image,
    }
}

fn response_channel(id: i64) -> String {
    format!("{RESPONSES}|response-correlation-id={id}")
}

/// 02-92, 04-169
#[test]
fn responses_are_sent_to_the_requester() {
    let Exchange {
        mut driver,
        responses,
        requests,
        image,
    } = exchange();
    assert!(requests.is_connected());
    let stranger = driver.add_publication(
        "aeron:udp?control=localhost:20171|control-mode=dynamic",
        RESPONSE_STREAM + 1,
    );
    let answers = driver.add_publication(&response_channel(image.correlation_id), RESPONSE_STREAM);
    driver.advance(10 * TICK);
    assert!(answers.is_connected());
    assert!(!stranger.is_connected());
    let images = driver.images_of(responses);
    assert_eq!(images.len(), 1);
    assert_eq!(images[0].session_id, answers.session_id);
    // This second response stream has another session, so the subscription does not receive it.
    let others =
        driver.add_exclusive_publication(&response_channel(image.correlation_id), RESPONSE_STREAM);
    driver.advance(10 * TICK);
    assert_ne!(others.session_id, answers.session_id);
    assert_eq!(driver.images_of(responses).len(), 1);
}

/// 04-167
#[test]
fn a_response_publication_must_name_an_image_that_requested_responses() {
    let Exchange {
        mut driver, image, ..
    } = exchange();
    let plain = driver.add_publication("aeron:udp?endpoint=localhost:20172", STREAM);
    let (subscription, _) = driver.add_subscription("aeron:udp?endpoint=localhost:20172", STREAM);
    driver.advance(5 * TICK);
    assert!(plain.is_connected());
    let unasked = driver.images_of(subscription)[0].correlation_id;
    for (channel, expected) in [
        (
            RESPONSES.to_owned(),
            "control-mode=response was specified, but no response-correlation-id set".to_owned(),
        ),
        (
            response_channel(12345),
            "image.correlationId=12345 not found".to_owned(),
        ),
        (
            response_channel(unasked),
            format!("image.correlationId={unasked} did not request a response channel"),
        ),
        (
            format!("{REQUESTS}|response-correlation-id=12345"),
            "unable to find response subscription for response-correlation-id=12345".to_owned(),
        ),
    ] {
        let (code, text) = driver.publication_error(&channel, RESPONSE_STREAM);
        assert_eq!(code, ErrorCode::GenericError);
        assert!(text.contains(&expected), "{text}");
    }
    driver.add_publication(&response_channel(image.correlation_id), RESPONSE_STREAM);
}

/// 04-170: a publication with `response-correlation-id=prototype` only reserves the port. Its terms are short, and it
/// sends no frames.
#[test]
fn a_prototype_has_short_terms_and_sends_no_frames() {
    let mut driver = TestDriver::with(|context| context.term_buffer_length = 1 << 20);
    let channel = format!("{RESPONSES}|response-correlation-id=prototype");
    let publication = driver.add_publication(&channel, RESPONSE_STREAM);
    assert_eq!(publication.log.term_length(), 64 * 1024);
    driver.advance(10 * TICK);
    assert!(driver.network.memory.take_sent().is_empty());
}
