//! A client with a hostile driver and hostile peers, which send any event and overwrite any shared memory: every call
//! must return a value or an error.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use aeron_agent::{CachedEpochClock, CachedNanoClock};
use aeron_client::{
    Action, Aeron, Batch, BatchLimits, Context, Counter, ExclusivePublication, FragmentAssembler,
    PendingOperation, Publication, Subscription,
};
use aeron_memory::broadcast::{self, BroadcastTransmitter};
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::cnc::{CncFile, Reader};
use aeron_memory::counters::{CountersManager, NewCounter};
use aeron_memory::log::buffers::log_length;
use aeron_memory::log::{ConcurrentAppender, LogBuffers, LogDescription, LogType};
use aeron_memory::mapped::{Allocation, MappedFile};
use aeron_memory::ring;
use aeron_memory::words::Words;
use aeron_protocol::ErrorCode;
use aeron_protocol::event::{self, Event};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

const KIB: usize = 1024;
const TERM_LENGTH: usize = 64 * KIB;
const COUNTERS_VALUES_LENGTH: usize = 4 * KIB;
const START_MS: i64 = 1_000;

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    AddPublication {
        exclusive: bool,
    },
    AddSubscription,
    AddCounter {
        is_static: bool,
    },
    AskSessionId,
    PublicationReady {
        to: u8,
        exclusive: bool,
        log: bool,
        limit_counter: i8,
    },
    SubscriptionReady {
        to: u8,
    },
    AvailableImage {
        id: u8,
        to: u8,
        log: bool,
        position_counter: i8,
    },
    UnavailableImage {
        id: u8,
        to: u8,
    },
    CounterReady {
        to: u8,
        is_static: bool,
        counter: i8,
    },
    Refused {
        to: u8,
        code: u8,
    },
    Succeeded {
        to: u8,
    },
    Record {
        type_id: i32,
        body: &'a [u8],
    },
    Heartbeat,
    Offer {
        length: u16,
    },
    Claim {
        length: u16,
        abort: bool,
    },
    OfferBatch {
        lengths: &'a [u8],
    },
    Pad {
        length: u16,
    },
    PeerOffers {
        log: bool,
        length: u16,
    },
    Poll {
        limit: u8,
    },
    PollAssembled {
        limit: u8,
    },
    PollControlled {
        limit: u8,
        abort: bool,
    },
    PollBatch {
        messages: u8,
    },
    PollBlock {
        limit: u16,
    },
    PollBounded {
        limit_position: i64,
    },
    LookAtAll,
    Reject,
    CloseOne {
        which: u8,
    },
    SetCounter {
        id: u8,
        value: i64,
    },
    Write {
        section: Section,
        offset: u32,
        bytes: &'a [u8],
    },
    Advance {
        by_ms: u16,
    },
}

#[derive(Arbitrary, Debug)]
enum Section {
    ToClients,
    CountersMetadata,
    CountersValues,
    Log(bool),
}

fuzz_target!(|steps: Vec<Step>| {
    let Some(mut peers) = Peers::new() else {
        return;
    };
    let mut client = Handles::default();
    for step in &steps {
        if !peers.take(step) {
            client.take(&peers, step);
        }
        peers.aeron.do_work();
        client.find();
    }
    peers.aeron.close();
});

/// The driver's directory. All runs in one process use the same directory.
static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
    let shared_memory = PathBuf::from("/dev/shm");
    let parent = if shared_memory.is_dir() {
        shared_memory
    } else {
        std::env::temp_dir()
    };
    parent.join(format!("aeron-fuzz-client-{}", std::process::id()))
});

/// The client under test, and the shared memory through which the driver and other clients act on it.
struct Peers {
    aeron: Aeron,
    cnc: CncFile,
    events: BroadcastTransmitter<SharedBuffer>,
    logs: [SharedBuffer; 2],
    epoch_clock: Arc<CachedEpochClock>,
    nano_clock: Arc<CachedNanoClock>,
}

impl Peers {
    fn new() -> Option<Self> {
        let _ = fs::remove_dir_all(&*DIRECTORY);
        fs::create_dir(&*DIRECTORY).ok()?;
        let cnc = create_cnc();
        cnc.to_driver().set_consumer_heartbeat_ms(START_MS);
        cnc.to_driver().next_correlation_id();
        let logs = [false, true].map(create_log);
        let events = BroadcastTransmitter::new(cnc.to_clients().clone())
            .expect("the length is that of a broadcast");
        let epoch_clock = Arc::new(CachedEpochClock::new(START_MS));
        let nano_clock = Arc::new(CachedNanoClock::new(0));
        let context = Context {
            aeron_dir: DIRECTORY.clone(),
            use_conductor_agent_invoker: true,
            error_handler: Arc::new(|_| {}),
            epoch_clock: epoch_clock.clone(),
            nano_clock: nano_clock.clone(),
            ..Context::default()
        };
        let aeron = Aeron::connect(context).expect("the driver is alive");
        Some(Self {
            aeron,
            cnc,
            events,
            logs,
            epoch_clock,
            nano_clock,
        })
    }

    /// Performs the action. Returns `false` for actions of the client itself.
    fn take(&mut self, step: &Step<'_>) -> bool {
        match step {
            Step::Heartbeat => self
                .cnc
                .to_driver()
                .set_consumer_heartbeat_ms(START_MS + 1_000_000_000),
            Step::Record { type_id, body } => {
                let _ = self.events.transmit(*type_id, body);
            }
            Step::PeerOffers { log, length } => {
                if let Ok(log) = LogBuffers::attach(&self.logs[usize::from(*log)]) {
                    let _ = ConcurrentAppender::new(log)
                        .offer(i64::MAX, &vec![1; usize::from(*length)]);
                }
            }
            Step::SetCounter { id, value } => {
                let offset = usize::from(*id) * 128 % COUNTERS_VALUES_LENGTH;
                self.cnc.counters_values().store_i64_release(offset, *value);
            }
            Step::Write {
                section,
                offset,
                bytes,
            } => {
                let words = match section {
                    Section::ToClients => self.cnc.to_clients(),
                    Section::CountersMetadata => self.cnc.counters_metadata(),
                    Section::CountersValues => self.cnc.counters_values(),
                    Section::Log(which) => &self.logs[usize::from(*which)],
                };
                let offset = *offset as usize % words.len();
                words.copy_in(offset, &bytes[..bytes.len().min(words.len() - offset)]);
            }
            Step::Advance { by_ms } => {
                self.epoch_clock.advance(i64::from(*by_ms));
                self.nano_clock.advance(i64::from(*by_ms) * 1_000_000);
            }
            answer => return self.answer(answer),
        }
        true
    }

    fn answer(&mut self, step: &Step<'_>) -> bool {
        let (file_a, file_b) = (log_file(false), log_file(true));
        let name = |log: bool| {
            if log { &file_b } else { &file_a }
                .as_os_str()
                .as_encoded_bytes()
        };
        let event = match step {
            Step::PublicationReady {
                to,
                exclusive,
                log,
                limit_counter,
            } => {
                let ready = event::PublicationReady {
                    correlation_id: i64::from(*to),
                    registration_id: i64::from(*to),
                    session_id: 7,
                    stream_id: 1001,
                    publication_limit_counter_id: i32::from(*limit_counter),
                    channel_status_indicator_id: event::NO_COUNTER_ID,
                    log_file_name: name(*log),
                };
                if *exclusive {
                    Event::ExclusivePublicationReady(ready)
                } else {
                    Event::PublicationReady(ready)
                }
            }
            Step::SubscriptionReady { to } => Event::SubscriptionReady(event::SubscriptionReady {
                correlation_id: i64::from(*to),
                channel_status_indicator_id: event::NO_COUNTER_ID,
            }),
            Step::AvailableImage {
                id,
                to,
                log,
                position_counter,
            } => Event::AvailableImage(event::AvailableImage {
                correlation_id: i64::from(*id),
                session_id: 7,
                stream_id: 1001,
                subscription_registration_id: i64::from(*to),
                subscriber_position_id: i32::from(*position_counter),
                log_file_name: name(*log),
                source_identity: b"aeron:ipc",
            }),
            Step::UnavailableImage { id, to } => Event::UnavailableImage(event::UnavailableImage {
                correlation_id: i64::from(*id),
                subscription_registration_id: i64::from(*to),
                stream_id: 1001,
                channel: b"aeron:ipc",
            }),
            Step::CounterReady {
                to,
                is_static: false,
                counter,
            } => Event::CounterReady(event::CounterUpdate {
                correlation_id: i64::from(*to),
                counter_id: i32::from(*counter),
            }),
            Step::CounterReady {
                to,
                is_static: true,
                counter,
            } => Event::StaticCounter(event::StaticCounter {
                correlation_id: i64::from(*to),
                counter_id: i32::from(*counter),
            }),
            Step::Refused { to, code } => Event::Error(event::Error {
                offending_command_correlation_id: i64::from(*to),
                error_code: ErrorCode::from_value(i32::from(*code)),
                error_message: b"no",
            }),
            Step::Succeeded { to } => Event::OperationSuccess(event::OperationSuccess {
                correlation_id: i64::from(*to),
            }),
            _ => return false,
        };
        let mut body = vec![0; event.encoded_length()];
        event.encode(&mut body).expect("the length was measured");
        self.events
            .transmit(event.type_id(), &body)
            .expect("events are short");
        true
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&*DIRECTORY);
    }
}

/// Operations that add a resource and have no response of the driver yet.
#[derive(Default)]
struct Adding {
    publications: Vec<PendingOperation<Publication>>,
    exclusive: Vec<PendingOperation<ExclusivePublication>>,
    subscriptions: Vec<PendingOperation<Subscription>>,
    counters: Vec<PendingOperation<Counter>>,
}

/// Resources of the application.
#[derive(Default)]
struct Handles {
    adding: Adding,
    publications: Vec<Publication>,
    exclusive_publications: Vec<ExclusivePublication>,
    subscriptions: Vec<Subscription>,
    counters: Vec<Counter>,
    batch: Batch,
    assembler: FragmentAssembler,
}

impl Handles {
    /// Takes the resources that the driver has confirmed since the last call.
    fn find(&mut self) {
        fn take<T: Clone>(pending: &mut Vec<PendingOperation<T>>, open: &mut Vec<T>) {
            pending.retain_mut(|operation| {
                open.extend(operation.poll().ok().flatten());
                !operation.is_finished()
            });
        }
        take(&mut self.adding.publications, &mut self.publications);
        take(&mut self.adding.exclusive, &mut self.exclusive_publications);
        take(&mut self.adding.subscriptions, &mut self.subscriptions);
        take(&mut self.adding.counters, &mut self.counters);
    }

    fn take(&mut self, peers: &Peers, step: &Step<'_>) {
        let aeron = &peers.aeron;
        let channel = "aeron:ipc";
        match step {
            Step::AddPublication { exclusive: false } => self
                .adding
                .publications
                .extend(aeron.async_add_publication(channel, 1001)),
            Step::AddPublication { exclusive: true } => {
                self.adding
                    .exclusive
                    .extend(aeron.async_add_exclusive_publication(channel, 1001));
            }
            Step::AddSubscription => self
                .adding
                .subscriptions
                .extend(aeron.async_add_subscription(channel, 1001)),
            Step::AddCounter { is_static: false } => self
                .adding
                .counters
                .extend(aeron.async_add_counter(1, b"key", "label")),
            Step::AddCounter { is_static: true } => {
                self.adding
                    .counters
                    .extend(aeron.async_add_static_counter(1, b"key", "label", 5));
            }
            Step::AskSessionId => drop(aeron.async_next_session_id(1001)),
            Step::CloseOne { which } => self.close(*which),
            Step::LookAtAll => self.look(),
            Step::Reject => {
                for image in self
                    .subscriptions
                    .iter()
                    .flat_map(|subscription| subscription.images().to_vec())
                {
                    let _ = image.async_reject("because");
                }
            }
            Step::Offer { .. }
            | Step::Claim { .. }
            | Step::OfferBatch { .. }
            | Step::Pad { .. } => self.publish(step),
            poll => self.poll(poll),
        }
    }

    fn publish(&self, step: &Step<'_>) {
        for publication in &self.publications {
            match step {
                Step::Offer { length } => {
                    let _ = publication.offer(&vec![1; usize::from(*length)]);
                }
                Step::Claim { length, abort } => {
                    if let Ok(claim) = publication.try_claim(usize::from(*length))
                        && !abort
                    {
                        let _ = claim.commit();
                    }
                }
                Step::OfferBatch { lengths } => drop(
                    publication
                        .offer_batch(messages(lengths).as_slice(), 0)
                        .ok(),
                ),
                _ => {}
            }
        }
        for publication in &self.exclusive_publications {
            match step {
                Step::Offer { length } => {
                    let _ = publication.offer(&vec![1; usize::from(*length)]);
                }
                Step::Claim { length, abort } => {
                    if let Ok(claim) = publication.try_claim(usize::from(*length))
                        && !abort
                    {
                        let _ = claim.commit();
                    }
                }
                Step::OfferBatch { lengths } => drop(
                    publication
                        .offer_batch(messages(lengths).as_slice(), 0)
                        .ok(),
                ),
                Step::Pad { length } => drop(publication.append_padding(usize::from(*length)).ok()),
                _ => {}
            }
        }
    }

    fn poll(&mut self, step: &Step<'_>) {
        for subscription in &self.subscriptions {
            match step {
                Step::Poll { limit } => {
                    drop(subscription.poll(|fragment| drop(fragment.to_vec()), usize::from(*limit)))
                }
                Step::PollAssembled { limit } => {
                    let assembler = &mut self.assembler;
                    let _ = subscription.poll(
                        |fragment| {
                            assembler.on_fragment(fragment, |message| drop(message.to_vec()))
                        },
                        usize::from(*limit),
                    );
                }
                Step::PollControlled { limit, abort } => {
                    let action = if *abort {
                        Action::Abort
                    } else {
                        Action::Commit
                    };
                    let _ = subscription.controlled_poll(|_| action, usize::from(*limit));
                }
                Step::PollBatch { messages } => {
                    let limits = BatchLimits {
                        messages: usize::from(*messages),
                        bytes: 64 * KIB,
                    };
                    let _ = subscription.poll_batch(&mut self.batch, limits);
                    assert_eq!(self.batch.offsets().len(), self.batch.len() + 1);
                    self.batch.clear();
                }
                Step::PollBlock { limit } => {
                    drop(subscription.block_poll(|_| (), usize::from(*limit)))
                }
                Step::PollBounded { limit_position } => {
                    for image in subscription.images().iter() {
                        let _ = image.bounded_poll(|_| (), *limit_position, 10);
                    }
                }
                _ => {}
            }
        }
    }

    fn look(&self) {
        for publication in &self.publications {
            let _ = (
                publication.position(),
                publication.position_limit(),
                publication.available_window(),
            );
            let _ = (
                publication.is_connected(),
                publication.channel_status(),
                publication.local_socket_addresses(),
            );
        }
        for publication in &self.exclusive_publications {
            let _ = (
                publication.position(),
                publication.available_window(),
                publication.term_offset(),
            );
        }
        for subscription in &self.subscriptions {
            let _ = (
                subscription.is_connected(),
                subscription.resolved_endpoint(),
            );
            for image in subscription.images().iter() {
                let _ = (
                    image.position(),
                    image.is_end_of_stream(),
                    image.end_of_stream_position(),
                );
                let _ = (
                    image.active_transport_count(),
                    image.is_publication_revoked(),
                    image.is_closed(),
                );
            }
        }
        for counter in &self.counters {
            let _ = (counter.label(), counter.state(), counter.is_closed());
        }
    }

    fn close(&mut self, which: u8) {
        match which % 4 {
            0 => drop(self.publications.pop()),
            1 => drop(self.exclusive_publications.pop()),
            2 => drop(self.subscriptions.pop()),
            _ => drop(self.counters.pop()),
        }
    }
}

/// Returns messages of 0 to 4,080 bytes. The longer ones need several frames.
fn messages(lengths: &[u8]) -> Vec<Vec<u8>> {
    let lengths = if lengths.is_empty() { &[0] } else { lengths };
    lengths
        .iter()
        .take(64)
        .map(|length| vec![*length; usize::from(*length) * 16])
        .collect()
}

/// A CnC file with short sections and a few counters.
fn create_cnc() -> CncFile {
    let lengths = [
        64 * KIB + ring::TRAILER_LENGTH,
        64 * KIB + broadcast::TRAILER_LENGTH,
        4 * COUNTERS_VALUES_LENGTH,
        COUNTERS_VALUES_LENGTH,
        4 * KIB,
    ];
    let path = DIRECTORY.join("cnc.dat");
    let file = MappedFile::create(
        &path,
        128 + lengths.iter().sum::<usize>(),
        Allocation::Sparse,
    )
    .expect("a new file");
    let header = file.buffer();
    header.store_i32_relaxed(0, 0x0200);
    for (index, length) in lengths.iter().enumerate() {
        header.store_i32_relaxed(4 + 4 * index, *length as i32);
    }
    header.store_i64_relaxed(24, 10_000_000_000);
    let cnc = CncFile::map(&path, Reader::Client)
        .expect("the file exists")
        .expect("the header is valid");
    let mut counters = CountersManager::new(
        cnc.counters_metadata().clone(),
        cnc.counters_values().clone(),
        0,
    )
    .expect("the sections fit together");
    for id in 0..16 {
        let new = NewCounter {
            type_id: 1,
            key: &[],
            label: b"",
            registration_id: id,
            owner_id: -1,
            reference_id: 0,
            value: 0,
        };
        counters.allocate(&new, 0).expect("there is room");
    }
    cnc
}

fn log_file(which: bool) -> PathBuf {
    DIRECTORY.join(format!("{}.logbuffer", u8::from(which)))
}

fn create_log(which: bool) -> SharedBuffer {
    let length = log_length(TERM_LENGTH as i64, 4096).expect("valid lengths");
    let file =
        MappedFile::create(&log_file(which), length, Allocation::Sparse).expect("a new file");
    let kind = if which {
        LogType::ExclusivePublication
    } else {
        LogType::ConcurrentPublication
    };
    LogBuffers::create(file.buffer(), &LogDescription::new(kind, 7, 1001, 3), 0)
        .expect("a valid description");
    file.buffer().clone()
}
