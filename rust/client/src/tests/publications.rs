//! Tests of publishing.

use aeron_memory::log::AppendError;
use aeron_memory::log::append::{FixedLengthMessages, InvalidBlock};

use crate::aeron::Aeron;
use crate::fragment::Fragment;
use crate::publication::{ExclusivePublication, OfferError, Publication, error_string};
use crate::subscription::Subscription;
use crate::testing::{FIRST_SESSION_ID, FakeDriver, INITIAL_TERM_ID, TERM_LENGTH};

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 7;
const HEADER: i64 = 32;

struct Streams {
    driver: std::sync::Arc<FakeDriver>,
    aeron: Aeron,
    subscription: Subscription,
}

/// Creates a client with a subscription. Publications on its stream are connected as soon as they are added.
fn streams() -> Streams {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let subscription = aeron.add_subscription(CHANNEL, STREAM_ID).unwrap();
    Streams {
        driver,
        aeron,
        subscription,
    }
}

impl Streams {
    fn concurrent(&self) -> Publication {
        let publication = self.aeron.add_publication(CHANNEL, STREAM_ID).unwrap();
        self.driver.run_ms(&self.aeron, 5);
        publication
    }

    fn exclusive(&self) -> ExclusivePublication {
        let publication = self
            .aeron
            .add_exclusive_publication(CHANNEL, STREAM_ID)
            .unwrap();
        self.driver.run_ms(&self.aeron, 5);
        publication
    }

    /// Returns the payloads and flags of all available fragments.
    fn receive(&self) -> Vec<(Vec<u8>, u8)> {
        let mut fragments = Vec::new();
        let mut take =
            |fragment: Fragment<'_>| fragments.push((fragment.to_vec(), fragment.header().flags()));
        while self.subscription.poll(&mut take, 100).unwrap() > 0 {}
        fragments
    }
}

/// 03-86, 01-67
#[test]
fn offers_return_the_reason_if_nothing_was_accepted() {
    let driver = FakeDriver::new();
    let aeron = driver.connect(|_| {});
    let concurrent = aeron.add_publication(CHANNEL, STREAM_ID).unwrap();
    let exclusive = aeron.add_exclusive_publication(CHANNEL, STREAM_ID).unwrap();
    assert_eq!(concurrent.offer(b"x"), Err(AppendError::NotConnected));
    assert_eq!(exclusive.offer(b"x").unwrap_err().code(), -1);
    let _subscription = aeron.add_subscription(CHANNEL, STREAM_ID).unwrap();
    let message = [0; 1000];
    while concurrent.offer(&message).is_ok() {}
    assert_eq!(concurrent.offer(&message), Err(AppendError::BackPressured));
    while exclusive.offer(&message).is_ok() {}
    assert_eq!(
        exclusive.offer(&message),
        Err(OfferError::Append(AppendError::BackPressured))
    );
    assert!(concurrent.available_window().unwrap() <= 0);
    concurrent.close();
    exclusive.close();
    assert_eq!(concurrent.offer(&message).unwrap_err().code(), -4);
    assert_eq!(exclusive.offer(&message).unwrap_err().code(), -4);
    assert_eq!(concurrent.offer_parts(&[]), Err(AppendError::Closed));
    assert_eq!(exclusive.append_padding(1).unwrap_err().code(), -4);
}

/// 03-86, 03-91
#[test]
fn a_full_term_is_padded_and_the_next_offer_uses_the_next_term() {
    let streams = streams();
    let publication = streams.concurrent();
    let fake = streams.driver.publication();
    let message = [1; 1000];
    fake.limit.set(i64::MAX);
    for _ in 0..61 {
        publication.offer(&message).unwrap();
    }
    let full = publication.offer(&message).unwrap();
    assert_eq!(full, 62 * 1056);
    assert_eq!(publication.offer(&message), Err(AppendError::AdminAction));
    assert_eq!(publication.offer(&message), Ok(TERM_LENGTH as i64 + 1056));
    assert_eq!(streams.receive().len(), 63);
    let image = streams.subscription.image_at(0).unwrap();
    assert_eq!(
        image.position(),
        TERM_LENGTH as i64 + 1056,
        "the image's position is after the padding"
    );
}

/// 03-86
#[test]
fn a_stream_at_its_maximum_position_accepts_no_message() {
    let streams = streams();
    let max = (TERM_LENGTH as i64) << 31;
    streams.driver.set_start_position(max - 64);
    let publication = streams.concurrent();
    streams.driver.publication().limit.set(i64::MAX);
    assert_eq!(publication.max_possible_position(), max);
    assert_eq!(publication.offer(b"last"), Ok(max));
    assert_eq!(
        publication.offer(b""),
        Err(AppendError::MaxPositionExceeded)
    );
    assert_eq!(publication.offer(b"").unwrap_err().code(), -5);
}

/// 03-87
#[test]
fn an_offer_returns_the_end_of_its_aligned_frame() {
    let streams = streams();
    let (concurrent, exclusive) = (streams.concurrent(), streams.exclusive());
    assert_eq!(concurrent.offer(b""), Ok(32));
    assert_eq!(concurrent.offer(&[0; 33]), Ok(32 + 96));
    assert_eq!(exclusive.offer(&[0; 32]), Ok(64));
    assert_eq!(concurrent.position(), Ok(128));
    assert_eq!(exclusive.position(), Ok(64));
}

/// 03-88, 03-109
#[test]
fn a_long_message_becomes_fragments() {
    let streams = streams();
    for publication in [true, false] {
        let message: Vec<u8> = (0..3000).map(|i| i as u8).collect();
        let end = match publication {
            true => streams.concurrent().offer(&message).unwrap(),
            false => streams.exclusive().offer(&message).unwrap(),
        };
        assert_eq!(end, 1408 + 1408 + 288);
        let fragments = streams.receive();
        let flags: Vec<_> = fragments.iter().map(|(_, flags)| *flags).collect();
        assert_eq!(flags, [0x80, 0x00, 0x40]);
        let joined: Vec<u8> = fragments
            .into_iter()
            .flat_map(|(payload, _)| payload)
            .collect();
        assert_eq!(joined, message);
    }
}

/// 03-89
#[test]
fn a_message_that_is_too_long_is_an_error_but_not_while_back_pressured() {
    let streams = streams();
    let (concurrent, exclusive) = (streams.concurrent(), streams.exclusive());
    let max = concurrent.max_message_length();
    assert_eq!(max, TERM_LENGTH / 8);
    let too_long = vec![0; max + 1];
    let refused = AppendError::TooLong {
        length: max + 1,
        max,
    };
    assert_eq!(concurrent.offer(&too_long), Err(refused));
    assert_eq!(refused.code(), -6);
    assert_eq!(exclusive.offer(&too_long), Err(OfferError::Append(refused)));
    assert!(concurrent.offer(&too_long[..max]).is_ok());
    while concurrent.offer(&[0; 1000]).is_ok() {}
    while exclusive.offer(&[0; 1000]).is_ok() {}
    assert_eq!(concurrent.offer(&too_long), Err(AppendError::BackPressured));
    assert_eq!(
        exclusive.offer(&too_long),
        Err(OfferError::Append(AppendError::BackPressured))
    );
}

/// 03-90
#[test]
fn a_claim_that_is_too_long_is_an_error_even_when_closed() {
    let streams = streams();
    let (concurrent, exclusive) = (streams.concurrent(), streams.exclusive());
    let max = concurrent.max_payload_length();
    assert_eq!(max, 1408 - 32);
    concurrent.close();
    exclusive.close();
    let refused = AppendError::TooLong {
        length: max + 1,
        max,
    };
    assert_eq!(concurrent.try_claim(max + 1).map(drop), Err(refused));
    assert_eq!(
        exclusive.try_claim(max + 1).map(drop),
        Err(OfferError::Append(refused))
    );
    assert_eq!(
        concurrent.try_claim(max).map(drop),
        Err(AppendError::Closed)
    );
    assert_eq!(
        exclusive.try_claim(max).map(drop),
        Err(OfferError::Append(AppendError::Closed))
    );
}

/// 03-92
#[test]
fn two_publishers_at_the_end_of_a_term_rotate_the_log_once() {
    let streams = streams();
    let first = streams.concurrent();
    let second = streams.aeron.add_publication(CHANNEL, STREAM_ID).unwrap();
    let fake = streams.driver.publication();
    fake.limit.set(i64::MAX);
    let message = [0; 1000];
    for publication in std::iter::repeat_n([&first, &second], 31).flatten() {
        publication.offer(&message).unwrap();
    }
    std::thread::scope(|scope| {
        for publication in [&first, &second] {
            scope.spawn(move || while publication.offer(&[0; 1000]).is_err() {});
        }
    });
    assert_eq!(fake.log.metadata().active_term_count(), 1);
    assert_eq!(first.position(), Ok(TERM_LENGTH as i64 + 2 * 1056));
}

/// 03-93
#[test]
fn an_aborted_claim_is_padding_that_polls_skip() {
    let streams = streams();
    let publication = streams.concurrent();
    let claim = publication.try_claim(100).unwrap();
    claim.put(0, b"never seen");
    claim.abort();
    drop(publication.try_claim(100).unwrap());
    assert_eq!(
        streams
            .subscription
            .poll(|_| -> () { panic!("padding") }, 10)
            .unwrap(),
        0
    );
    assert_eq!(
        streams.subscription.image_at(0).unwrap().position(),
        2 * 160
    );
}

#[test]
fn a_claim_becomes_visible_with_its_commit_and_has_its_header_values() {
    let streams = streams();
    let (concurrent, exclusive) = (streams.concurrent(), streams.exclusive());
    let claim = exclusive.try_claim(5).unwrap();
    assert_eq!(
        exclusive.offer(b"behind").unwrap(),
        128,
        "more may be appended after a claim"
    );
    assert!(streams.receive().is_empty());
    claim.put(0, b"hello");
    claim.set_reserved_value(42);
    claim.set_flags(0xC8);
    assert_eq!(claim.commit(), Ok(64));
    assert_eq!(
        streams.receive(),
        [(b"hello".to_vec(), 0xC8), (b"behind".to_vec(), 0xC0)]
    );
    let claim = concurrent.try_claim(3).unwrap();
    claim.put(0, b"abc");
    claim.commit().unwrap();
    assert_eq!(streams.receive(), [(b"abc".to_vec(), 0xC0)]);
}

/// 03-94
#[test]
fn the_reserved_value_supplier_is_called_for_each_fragment() {
    let streams = streams();
    let (concurrent, exclusive) = (streams.concurrent(), streams.exclusive());
    let message = vec![9; 3000];
    let mut lengths = Vec::new();
    concurrent
        .offer_with_reserved_value(&message, |fragment| {
            lengths.push(fragment.payload_length());
            fragment.begin_position() + 1
        })
        .unwrap();
    assert_eq!(lengths, [1376, 1376, 248]);
    exclusive.offer_with_reserved_value(b"x", |_| -5).unwrap();
    let mut values = Vec::new();
    streams
        .subscription
        .poll(
            |fragment| values.push(fragment.header().reserved_value()),
            10,
        )
        .unwrap();
    assert_eq!(values, [1, 1409, 2817, -5]);
}

/// 03-95
#[test]
fn an_exclusive_publication_stores_its_tail_first_and_stays_at_the_end_of_its_stream() {
    let streams = streams();
    let max = (TERM_LENGTH as i64) << 31;
    streams.driver.set_start_position(max - 64);
    let publication = streams.exclusive();
    let metadata = streams.driver.publication().log.metadata().clone();
    let partition = (i32::MAX % 3) as usize;
    streams.driver.publication().limit.set(i64::MAX);
    let claim = publication.try_claim(4).unwrap();
    assert_eq!(
        metadata.tail(partition).unclamped_offset(),
        TERM_LENGTH,
        "the tail is stored before the data"
    );
    assert_eq!(claim.commit(), Ok(max));
    for _ in 0..3 {
        assert_eq!(publication.offer(b"").unwrap_err().code(), -5);
        assert_eq!(metadata.active_term_count(), i32::MAX);
        assert_eq!(publication.term_offset(), Ok(TERM_LENGTH));
    }
}

/// 03-96
#[test]
fn a_block_that_does_not_continue_the_stream_is_refused_and_so_is_padding_that_is_too_long() {
    let streams = streams();
    let publication = streams.exclusive();
    let max = publication.max_message_length();
    assert_eq!(publication.append_padding(100), Ok(160));
    assert_eq!(publication.append_padding(max + 1).unwrap_err().code(), -6);

    let mut block = vec![0; 128];
    write_frame(&mut block[..64], 160, b"one");
    write_frame(&mut block[64..], 224, b"two");
    for (offset, what) in [
        (8, "term offset"),
        (12, "session id"),
        (16, "stream id"),
        (20, "term id"),
    ] {
        let mut wrong = block.clone();
        wrong[offset] ^= 1;
        let Err(OfferError::Append(AppendError::InvalidBlock(InvalidBlock::Field {
            field, ..
        }))) = publication.offer_block(&wrong)
        else {
            panic!("{what}")
        };
        assert_eq!(field, what);
    }
    assert!(publication.offer_block(&vec![0; TERM_LENGTH]).is_err());
    assert_eq!(publication.offer_block(&block), Ok(288));
    assert_eq!(
        streams.receive(),
        [(b"one".to_vec(), 0xC0), (b"two".to_vec(), 0xC0)]
    );
}

/// Writes a frame of the first exclusive publication to `bytes`.
fn write_frame(bytes: &mut [u8], term_offset: i32, payload: &[u8]) {
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &(HEADER as i32 + payload.len() as i32).to_le_bytes());
    put(5, &[0xC0, 1, 0]);
    put(8, &term_offset.to_le_bytes());
    put(12, &FIRST_SESSION_ID.to_le_bytes());
    put(16, &STREAM_ID.to_le_bytes());
    put(20, &INITIAL_TERM_ID.to_le_bytes());
    put(32, payload);
}

/// 03-97
#[test]
fn closing_one_of_two_shared_publications_leaves_the_other_open() {
    let streams = streams();
    let first = streams.concurrent();
    let second = streams.aeron.add_publication(CHANNEL, STREAM_ID).unwrap();
    assert_eq!(first.session_id(), second.session_id());
    assert_eq!(second.original_registration_id(), first.registration_id());
    first.close();
    first.close();
    assert!(first.is_closed() && !second.is_closed());
    assert_eq!(second.offer(b"still"), Ok(64));
    assert_eq!(streams.receive().len(), 1);
    assert!(matches!(first.position_limit(), Err(AppendError::Closed)));
}

/// 03-98
#[test]
fn an_offer_of_parts_equals_an_offer_of_the_joined_parts() {
    let streams = streams();
    let (concurrent, exclusive) = (streams.concurrent(), streams.exclusive());
    let parts: [&[u8]; 4] = [b"", &[1; 1000], b"", &[2; 1000]];
    assert_eq!(concurrent.offer_parts(&parts), Ok(1408 + 672));
    assert_eq!(exclusive.offer_parts(&parts), Ok(1408 + 672));
    let fragments = streams.receive();
    let joined: Vec<u8> = fragments[..2]
        .iter()
        .flat_map(|(payload, _)| payload.clone())
        .collect();
    assert_eq!(joined, parts.concat());
    assert_eq!(fragments[2..], fragments[..2]);
}

/// 03-99
#[test]
fn the_available_window_is_the_distance_to_the_limit() {
    let streams = streams();
    let publication = streams.concurrent();
    assert_eq!(publication.available_window(), Ok(TERM_LENGTH as i64 / 2));
    publication.offer(b"x").unwrap();
    assert_eq!(publication.position_limit(), Ok(TERM_LENGTH as i64 / 2));
    assert_eq!(
        publication.available_window(),
        Ok(TERM_LENGTH as i64 / 2 - 64)
    );
    publication.close();
    assert_eq!(publication.available_window(), Err(AppendError::Closed));
    assert_eq!(publication.position(), Err(AppendError::Closed));
    assert!(!publication.is_connected());
    assert_eq!(publication.channel_status(), -1);
}

#[test]
fn a_batch_is_appended_up_to_the_limit_and_resumed_later() {
    let streams = streams();
    let (concurrent, exclusive) = (streams.concurrent(), streams.exclusive());
    let bytes: Vec<u8> = (0..32 * 2000).map(|i| i as u8).collect();
    let records = FixedLengthMessages::new(&bytes, 32, 32, 2000).unwrap();
    for offer in [
        &(|first| {
            concurrent
                .offer_batch(&records, first)
                .map_err(OfferError::from)
        }) as &dyn Fn(usize) -> _,
        &|first| exclusive.offer_batch(&records, first),
    ] {
        let mut sent = 0;
        while let Ok(appended) = offer(sent) {
            sent += appended.messages;
            assert_eq!(appended.position, sent as i64 * 64);
        }
        assert_eq!(sent, TERM_LENGTH / 2 / 64);
        let received = streams.receive();
        assert_eq!(received.len(), sent);
        assert!(
            received
                .iter()
                .zip(bytes.chunks(32))
                .all(|((payload, _), record)| payload == record)
        );
    }
}

#[test]
fn an_exclusive_publication_serves_one_thread_at_a_time() {
    let streams = streams();
    let publication = streams.exclusive();
    let mut writer = publication.writer().unwrap();
    assert_eq!(publication.offer(b"x"), Err(OfferError::InUse));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| publication.offer(b"x"));
        assert_eq!(other.join().unwrap(), Err(OfferError::InUse));
    });
    assert_eq!(OfferError::InUse.code(), -6);
    assert_eq!(writer.offer(b"x"), Ok(64));
    let claim = writer.try_claim(2).unwrap();
    claim.put(0, b"ok");
    claim.commit();
    drop(writer);
    assert_eq!(publication.offer(b"x"), Ok(192));
    let reentrant = publication.offer_with_reserved_value(b"x", |_| {
        assert_eq!(publication.offer(b"y"), Err(OfferError::InUse));
        0
    });
    assert_eq!(reentrant, Ok(256));
}

#[test]
fn results_have_the_names_that_other_aeron_clients_use() {
    let names = [0, 5, -1, -2, -3, -4, -5, -6].map(error_string);
    assert_eq!(
        names,
        [
            "NONE",
            "NONE",
            "NOT_CONNECTED",
            "BACK_PRESSURED",
            "ADMIN_ACTION",
            "CLOSED",
            "MAX_POSITION_EXCEEDED",
            "UNKNOWN"
        ]
    );
}

#[test]
fn a_revocation_is_sent_with_the_removal() {
    let streams = streams();
    let publication = streams.exclusive();
    publication.revoke();
    streams.driver.step();
    let id = aeron_protocol::command::type_id::REMOVE_PUBLICATION;
    assert_eq!(streams.driver.bodies(id)[0][24..32], 1u64.to_le_bytes());
    assert!(publication.is_closed());
}
