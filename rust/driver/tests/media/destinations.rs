//! Tests of the parameters that are allowed in the channels of destinations.

use aeron_driver::media::ChannelRole;
use aeron_driver::media::destination::send_destination_endpoint;
use aeron_protocol::ErrorCode::InvalidChannel;

use super::machine::{assert_refused, resolve};

/// All parameters other than `endpoint` are ignored in the channel of a send destination.
#[test]
fn only_the_endpoint_of_a_send_destination_is_used() {
    for ignored in [
        "control-mode=dynamic",
        "tags=abc",
        "term-length=1",
        "interface=nowhere",
    ] {
        let channel = format!("aeron:udp?endpoint=nobody:1|{ignored}");
        let endpoint = send_destination_endpoint(channel.as_bytes());
        assert_eq!(endpoint.as_deref(), Ok("nobody:1"), "{ignored}");
    }
}

/// The channel of a receive destination must not contain a parameter that belongs to the subscription.
#[test]
fn receive_destinations_must_not_have_parameters_of_their_subscription() {
    for key in [
        "mtu=1408",
        "rcv-wnd=64k",
        "so-rcvbuf=64k",
        "so-sndbuf=64k",
        "response-correlation-id=1",
    ] {
        let channel = format!("aeron:udp?endpoint=localhost:1|{key}");
        let result = resolve(&channel, ChannelRole::ReceiveDestination);
        let words = format!(
            "destinations must not contain the key: {}",
            key.split('=').next().unwrap()
        );
        assert_refused(result, InvalidChannel, &words);
    }
    let response = "aeron:udp?endpoint=localhost:1|control-mode=response";
    let result = resolve(response, ChannelRole::ReceiveDestination);
    assert_refused(
        result,
        InvalidChannel,
        "destinations may not specify control-mode=response",
    );
}
