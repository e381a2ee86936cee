//! Datagrams for the socket of a receiver, a sender or a name resolver. A datagram is decoded, dropped or refused. A
//! decoded datagram survives a round trip through the encoder, and accepted frames are within the term.
#![no_main]

use aeron_protocol::frame::resolution::{self, ResolutionEncoder};
use aeron_protocol::frame::{ControlFrame, DataFrame, MAX_TERM_LENGTH, MIN_TERM_LENGTH, walk};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|datagram: &[u8]| {
    receive(datagram);
    control(datagram);
    resolve(datagram);
});

fn receive(datagram: &[u8]) {
    let Ok(Some(frame)) = DataFrame::decode(datagram) else {
        return;
    };
    let mut out = [0; 64];
    let length = match &frame {
        DataFrame::Data(header) => header.encode(&mut out),
        DataFrame::Setup(setup) => setup.encode(&mut out),
        DataFrame::Rttm(rttm) => rttm.encode(&mut out),
    };
    assert_eq!(DataFrame::decode(&out[..length]), Ok(Some(frame)));

    let DataFrame::Data(header) = frame else {
        return;
    };
    for term_length in [MIN_TERM_LENGTH, MAX_TERM_LENGTH] {
        let Ok(walk) = walk(datagram, term_length) else {
            continue;
        };
        assert_eq!(walk.is_heartbeat, header.is_heartbeat(datagram.len()));
        assert!(walk.is_heartbeat || walk.length >= datagram.len());
        assert!(header.term_offset as usize + walk.length <= term_length);
    }
}

fn control(datagram: &[u8]) {
    let Ok(Some(frame)) = ControlFrame::decode(datagram) else {
        return;
    };
    let mut out = vec![0; datagram.len().max(64)];
    let length = match &frame {
        ControlFrame::Nak(nak) => {
            let _ = nak.check(MIN_TERM_LENGTH);
            nak.encode(&mut out)
        }
        ControlFrame::StatusMessage(message) => {
            let _ = message.check(MIN_TERM_LENGTH);
            message.encode(&mut out)
        }
        ControlFrame::Error(error) => error.encode(&mut out),
        ControlFrame::Rttm(rttm) => rttm.encode(&mut out),
        ControlFrame::ResponseSetup(setup) => setup.encode(&mut out),
    };
    assert_eq!(ControlFrame::decode(&out[..length]), Ok(Some(frame)));
}

fn resolve(datagram: &[u8]) {
    let Ok(entries) = resolution::entries(datagram) else {
        return;
    };
    let sound: Vec<_> = entries.flatten().collect();
    // Padding may be missing after the last received name, so the encoded datagram may be up to 7 bytes longer.
    let mut out = vec![0; datagram.len().max(8) + 7];
    let mut encoder = ResolutionEncoder::new(&mut out);
    for entry in &sound {
        assert!(encoder.push(entry));
    }
    let read: Vec<_> = resolution::entries(encoder.finish())
        .expect("just written")
        .flatten()
        .collect();
    assert_eq!(read, sound);
}
