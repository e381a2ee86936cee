//! Tests of IPC publications: creation, sharing and subscribers.

use std::time::Duration;

use aeron_memory::counters::types;
use aeron_memory::log::ConcurrentAppender;
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{Command, GetNextAvailableSessionId, RemovePublication};
use aeron_protocol::event::Event;

use crate::conductor::harness::{CLIENT, STREAM, TERM, TestDriver, WINDOW, names};

/// 03-10 to 03-12, 03-18, 03-19, 04-18, 04-25
#[test]
fn the_first_publication_of_a_client_is_announced_after_the_client() {
    let mut driver = TestDriver::new();
    assert_eq!(driver.cnc.to_driver().next_correlation_id(), 1);
    let command = driver.publication_command(CLIENT, "aeron:ipc", STREAM, false);
    let heard = driver.ask(command);
    assert_eq!(names(&heard), ["CounterReady", "PublicationReady"]);
    let Event::CounterReady(counter) = heard[0].event() else {
        panic!()
    };
    assert_eq!((counter.correlation_id, counter.counter_id), (CLIENT, 48));
    let Event::PublicationReady(ready) = heard[1].event() else {
        panic!()
    };
    let correlation_id = command.correlation_id();
    assert_eq!(
        (ready.correlation_id, ready.registration_id),
        (correlation_id, correlation_id)
    );
    assert_eq!(
        (ready.stream_id, ready.publication_limit_counter_id),
        (STREAM, 47)
    );
    assert_eq!(ready.channel_status_indicator_id, -1);
    assert_eq!(
        ready.log_file_name,
        format!("/aeron/publications/{correlation_id}.logbuffer").as_bytes()
    );
    let description = driver.publication(&ready).log.metadata().description();
    assert_eq!(
        (
            description.term_length,
            description.mtu_length,
            description.page_size
        ),
        (65536, 1408, 4096)
    );
    assert_eq!(
        (
            description.session_id,
            description.publication_window_length
        ),
        (ready.session_id, 32768)
    );
    assert_eq!(
        (description.linger_timeout_ns, description.max_resend),
        (5_000_000_000, 0)
    );
}

/// 01-43: the labels of `pub-pos` and `pub-lmt`.
#[test]
fn a_publication_has_a_position_and_a_limit_counter() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc?alias=a", STREAM);
    let exclusive = driver.add_exclusive_publication("aeron:ipc", STREAM);
    let record = |id| driver.cnc.counters().record(id).unwrap();
    let (position, limit) = (record(46), record(47));
    let text = format!(
        "{} {} {STREAM} aeron:ipc?alias=a",
        publication.registration_id, publication.session_id
    );
    assert_eq!(
        (position.type_id, position.label),
        (
            types::PUBLISHER_POSITION,
            format!("pub-pos (concurrent): {text}")
        )
    );
    assert_eq!(
        (limit.type_id, limit.label),
        (types::PUBLISHER_LIMIT, format!("pub-lmt: {text}"))
    );
    for record in [&record(46), &record(47)] {
        assert_eq!(
            (record.registration_id, record.owner_id, record.reference_id),
            (publication.registration_id, CLIENT, 0)
        );
    }
    assert!(record(49).label.starts_with(&format!(
        "pub-pos (exclusive): {}",
        exclusive.registration_id
    )));
}

/// 03-20, 03-26, 03-27, 04-30, 04-35
#[test]
fn a_shared_publication_stays_open_until_its_last_reference_is_removed() {
    let mut driver = TestDriver::new();
    driver.living = vec![CLIENT, 2];
    let first = driver.add_publication("aeron:ipc", STREAM);
    let second = driver.add_publication_for(2, "aeron:ipc?alias=other", STREAM, false);
    assert_ne!(second.correlation_id, first.correlation_id);
    assert_eq!(
        (second.registration_id, second.session_id),
        (first.registration_id, first.session_id)
    );
    assert_eq!(second.limit.id(), first.limit.id());
    assert_eq!(
        names(&driver.remove_publication(&first, false)),
        ["OperationSuccess"]
    );
    let again = Command::RemovePublication(RemovePublication {
        client_id: CLIENT,
        correlation_id: 7,
        registration_id: first.correlation_id,
        revoke: false,
    });
    let (code, text) = driver.ask_error(again);
    assert_eq!(code, ErrorCode::UnknownPublication);
    assert!(
        text.contains("unknown publication client_id=1 registration_id="),
        "{text}"
    );
    driver.advance(Duration::from_secs(1));
    assert_eq!(
        driver.counters_of(types::PUBLISHER_LIMIT),
        [first.limit.id()]
    );
    driver.living = vec![CLIENT];
    driver.advance(Duration::from_secs(12));
    assert!(driver.counters_of(types::PUBLISHER_LIMIT).is_empty());
    assert_eq!(driver.logs.count(), 0);
}

/// 03-21, 04-44, 05-34
#[test]
fn a_channel_with_other_parameters_cannot_share_an_ipc_publication() {
    let mut driver = TestDriver::new();
    let channel = "aeron:ipc?session-id=77|mtu=1408|term-length=64k|init-term-id=5|term-id=7|term-offset=1024";
    let publication = driver.add_publication(channel, STREAM);
    for (stated, key) in [
        ("session-id=78", "'session-id': existing=77 requested=78"),
        ("mtu=4096", "'mtu': existing=1408 requested=4096"),
        (
            "term-length=128k",
            "'term-length': existing=65536 requested=131072",
        ),
        (
            "init-term-id=6|term-id=7|term-offset=1024",
            "'init-term-id': existing=5 requested=6",
        ),
        (
            "init-term-id=5|term-id=8|term-offset=1024",
            "'term-id': existing=7 requested=8",
        ),
        (
            "init-term-id=5|term-id=7|term-offset=64",
            "'term-offset': existing=1024 requested=64",
        ),
    ] {
        let channel = format!("aeron:ipc?{stated}");
        let command = driver.publication_command(CLIENT, &channel, STREAM, false);
        let (code, text) = driver.ask_error(command);
        assert_eq!(code, ErrorCode::GenericError);
        assert!(
            text.contains(&format!("existing publication has different {key}")),
            "{text}"
        );
    }
    assert_eq!(
        driver.add_publication(channel, STREAM).registration_id,
        publication.registration_id
    );
    assert_eq!(
        driver.add_publication("aeron:ipc", STREAM).registration_id,
        publication.registration_id
    );
}

/// 03-23, 04-43, 05-35
#[test]
fn exclusive_publications_are_not_shared_and_need_an_unused_session_id() {
    let mut driver = TestDriver::new();
    let shared = driver.add_publication("aeron:ipc", STREAM);
    let exclusive = driver.add_exclusive_publication("aeron:ipc?session-id=77", STREAM);
    assert_ne!(exclusive.registration_id, shared.registration_id);
    assert_eq!(exclusive.session_id, 77);
    let command = driver.publication_command(CLIENT, "aeron:ipc?session-id=77", STREAM, true);
    let (code, text) = driver.ask_error(command);
    assert_eq!(code, ErrorCode::InvalidChannel);
    let clash = format!(
        "existing publication has clashing sessionId=77 for streamId={STREAM} channel=aeron:ipc?session-id=77"
    );
    assert!(text.contains(&clash), "{text}");
    assert_eq!(
        driver
            .add_exclusive_publication("aeron:ipc?session-id=77", STREAM + 1)
            .session_id,
        77
    );
    assert_eq!(
        driver.add_publication("aeron:ipc", STREAM).registration_id,
        shared.registration_id
    );
    let only_exclusive = driver.add_exclusive_publication("aeron:ipc", STREAM + 2);
    let beside_it = driver.add_publication("aeron:ipc", STREAM + 2);
    assert_ne!(beside_it.registration_id, only_exclusive.registration_id);
}

/// 03-24
#[test]
fn publications_with_different_response_correlation_ids_are_not_shared() {
    let mut driver = TestDriver::new();
    let first = driver.add_publication("aeron:ipc", STREAM);
    let second = driver.add_publication("aeron:ipc?response-correlation-id=1234", STREAM);
    assert_ne!(first.registration_id, second.registration_id);
    assert_eq!(
        driver
            .add_publication("aeron:ipc?response-correlation-id=-1", STREAM)
            .session_id,
        first.session_id
    );
}

#[test]
fn a_response_publication_is_linked_to_the_subscription_that_waits_for_the_responses() {
    let mut driver = TestDriver::new();
    let (waiting, _) = driver.add_subscription("aeron:ipc?control-mode=response", STREAM);
    let request = driver.add_publication(
        &format!("aeron:ipc?response-correlation-id={waiting}"),
        STREAM + 1,
    );
    let stranger = driver.publication_command(CLIENT, "aeron:ipc", STREAM, true);
    assert_eq!(names(&driver.ask(stranger)), ["ExclusivePublicationReady"]);
    let channel = format!(
        "aeron:ipc?response-correlation-id={}",
        request.registration_id
    );
    let response = driver.publication_command(CLIENT, &channel, STREAM, true);
    let heard = driver.ask(response);
    assert_eq!(
        names(&heard),
        ["ExclusivePublicationReady", "AvailableImage"]
    );
    assert_eq!(driver.images(&heard)[0].subscription_id, waiting);
}

/// 05-5: the part about labels.
#[test]
fn labels_contain_special_characters_of_channels_unchanged() {
    let mut driver = TestDriver::new();
    let channel = "aeron:ipc?alias=a=b?c d:é,名";
    driver.add_publication(channel, STREAM);
    driver.add_subscription(channel, STREAM);
    let labels = driver
        .cnc
        .counters()
        .records()
        .filter(|record| record.label.contains(channel));
    assert_eq!(labels.count(), 3);
}

/// 03-14
#[test]
fn every_stream_id_is_allowed() {
    let mut driver = TestDriver::new();
    for stream_id in [0, -5, i32::MIN, i32::MAX] {
        driver.add_publication("aeron:ipc", stream_id);
        assert_eq!(driver.add_subscription("aeron:ipc", stream_id).1.len(), 1);
    }
}

/// 03-13
#[test]
fn a_command_with_the_correlation_id_of_a_publication_is_refused() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let command = driver.publication_command(CLIENT, "aeron:ipc", STREAM + 1, false);
    let Command::AddPublication(mut add) = command else {
        panic!()
    };
    add.correlation_id = publication.correlation_id;
    let counters = driver.cnc.counters().records().count();
    let (code, text) = driver.ask_error(Command::AddPublication(add));
    assert_eq!(code, ErrorCode::GenericError, "{text}");
    assert_eq!(driver.cnc.counters().records().count(), counters);
    assert!(driver.publication_log(&publication).is_some());
}

/// 03-15 to 03-17, 04-60, 04-61
#[test]
fn session_ids_are_consecutive_and_skip_explicit_session_ids() {
    let mut driver = TestDriver::new();
    let first = driver
        .add_exclusive_publication("aeron:ipc", STREAM)
        .session_id;
    driver.add_exclusive_publication("aeron:ipc?session-id=500", STREAM);
    driver.add_exclusive_publication(
        &format!("aeron:ipc?session-id={}", first.wrapping_add(1)),
        STREAM,
    );
    assert_eq!(
        driver
            .add_exclusive_publication("aeron:ipc", STREAM)
            .session_id,
        first.wrapping_add(2)
    );
    let mut next = |stream_id| {
        let command = GetNextAvailableSessionId {
            client_id: CLIENT,
            correlation_id: 5,
            stream_id,
        };
        let heard = driver.ask(Command::GetNextAvailableSessionId(command));
        match heard[0].event() {
            Event::NextAvailableSessionId(answer) => answer.next_session_id,
            event => panic!("{event:?}"),
        }
    };
    assert_eq!(
        [next(STREAM), next(STREAM)],
        [first.wrapping_add(3), first.wrapping_add(4)]
    );
}

#[test]
fn a_publication_starts_at_the_position_in_its_channel() {
    let mut driver = TestDriver::new();
    let channel = "aeron:ipc?term-length=64k|init-term-id=5|term-id=7|term-offset=1024";
    let publication = driver.add_exclusive_publication(channel, STREAM);
    let start = 2 * TERM + 1024;
    assert_eq!(
        (publication.limit.get(), publication.log.producer_position()),
        (start, start)
    );
    let (_, images) = driver.add_subscription("aeron:ipc", STREAM);
    assert_eq!(images[0].position.get(), start);
    driver.work();
    assert_eq!(publication.limit.get(), start + WINDOW);
}

/// 04-75
#[test]
fn a_publication_is_connected_while_it_has_subscribers() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    assert!(!publication.is_connected());
    let (first, _) = driver.add_subscription("aeron:ipc", STREAM);
    let (second, _) = driver.add_subscription("aeron:ipc", STREAM);
    assert!(publication.is_connected());
    driver.remove_subscription(first);
    assert!(publication.is_connected());
    driver.remove_subscription(second);
    assert!(!publication.is_connected());
}

/// 04-76, 01-77: the part about the limit.
#[test]
fn the_limit_is_one_window_ahead_of_the_slowest_subscriber_and_moves_in_steps() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let (_, fast) = driver.add_subscription("aeron:ipc", STREAM);
    let (_, slow) = driver.add_subscription("aeron:ipc", STREAM);
    driver.work();
    assert_eq!(publication.limit.get(), WINDOW);
    let end = publication.offer(8_000);
    fast[0].position.set(end);
    driver.work();
    assert_eq!(publication.limit.get(), WINDOW);
    slow[0].position.set(WINDOW / 8);
    driver.work();
    assert_eq!(publication.limit.get(), WINDOW);
    slow[0].position.set(WINDOW / 8 + 32);
    driver.work();
    assert_eq!(publication.limit.get(), WINDOW + WINDOW / 8 + 32);
    assert_eq!(driver.cnc.counters().value(46), Some(end));
}

/// 04-77, 04-78, 01-77
#[test]
fn without_subscribers_the_limit_is_the_position_of_the_last_subscriber() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let (first, images) = driver.add_subscription("aeron:ipc", STREAM);
    driver.work();
    publication.offer(1_000);
    let end = publication.offer(1_000);
    images[0].position.set(end / 2);
    driver.work();
    driver.remove_subscription(first);
    driver.work();
    assert_eq!(publication.limit.get(), end / 2);
    let (_, images) = driver.add_subscription("aeron:ipc", STREAM);
    assert_eq!(images[0].position.get(), end / 2);
}

/// 04-78
#[test]
fn a_new_subscriber_joins_at_the_position_of_the_slowest_subscriber() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let (_, slow) = driver.add_subscription("aeron:ipc", STREAM);
    let (_, fast) = driver.add_subscription("aeron:ipc", STREAM);
    driver.work();
    let end = publication.offer(1_000);
    slow[0].position.set(64);
    fast[0].position.set(end);
    driver.work();
    assert_eq!(
        driver.add_subscription("aeron:ipc", STREAM).1[0]
            .position
            .get(),
        64
    );
}

/// 04-86, 01-75, 01-76
#[test]
fn publishers_find_every_term_of_a_long_stream_clean() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let (_, images) = driver.add_subscription("aeron:ipc", STREAM);
    driver.work();
    let appender = ConcurrentAppender::new(publication.log.clone());
    let message = [1; 1_000];
    let mut rounds = 0..1_000;
    while publication.log.producer_position() < 10 * TERM {
        rounds.next().expect("the limit advances");
        let limit = publication.limit.get();
        let position = publication.log.producer_position();
        if position < limit {
            let offset = (position % TERM) as usize;
            let term = publication.log.term_at(position);
            let rest = (offset..TERM as usize).step_by(4);
            let dirty = rest
                .filter(|at| aeron_memory::words::Words::load_i32_relaxed(term, *at) != 0)
                .count();
            assert_eq!(dirty, 0, "at {position}");
        }
        while appender.offer(limit, &message).is_ok() {}
        images[0].position.set(publication.log.producer_position());
        driver.work();
    }
}
