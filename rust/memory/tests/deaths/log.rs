//! Log buffers: publishers that die after each of their stores, at each distance from the end of a term, in the first
//! terms and in the last terms of a stream.

use aeron_memory::log::append::Appended;
use aeron_memory::log::buffers::log_length;
use aeron_memory::log::gap::{self, Gap};
use aeron_memory::log::rebuild::insert;
use aeron_memory::log::unblock::{unblock, unblock_abandoned};
use aeron_memory::log::{
    AppendError, ConcurrentAppender, ExclusiveAppender, LogBuffers, LogDescription, LogType,
    Positions,
};
use aeron_memory::{SharedBuffer, Words};

use crate::mortal::{MortalWords, die_after, every_death};

const TERM: usize = 64 * 1024;
/// A frame has up to 64 bytes of payload.
const MTU: i32 = 96;
const NO_LIMIT: i64 = i64::MAX;
/// Number of terms before the last term of a stream.
const LAST: i32 = i32::MAX;

/// Payload bytes of the publisher that dies, and of the one that lives.
const DEAD: u8 = 0xDD;
const LIVING: u8 = 0x11;

/// A log that starts at a position.
struct Scene {
    memory: SharedBuffer,
    log: LogBuffers<SharedBuffer>,
    start: i64,
}

/// Progress of a subscriber.
struct Read {
    position: i64,
    dead_bytes: usize,
    living_messages: usize,
}

impl Scene {
    fn new(initial_term_id: i32, start: i64) -> Self {
        let description = LogDescription {
            mtu_length: MTU,
            ..LogDescription::new(LogType::ConcurrentPublication, 1, 2, initial_term_id)
        };
        let length = log_length(TERM as i64, description.page_size.into()).unwrap();
        let memory = SharedBuffer::heap(length);
        let log = LogBuffers::create(&memory, &description, start).unwrap();
        log.metadata().set_is_connected(true);
        Self { memory, log, start }
    }

    /// Appends in a process that dies after `stores` stores.
    fn append(&self, append: Append, stores: usize) -> Option<Result<usize, AppendError>> {
        die_after(&self.memory, stores, |words| {
            append(LogBuffers::attach(&words).unwrap())
        })
    }

    fn max_position(&self) -> i64 {
        self.log.positions().max_position()
    }

    /// Reads all frames from the subscriber's position on.
    fn read(&self, read: &mut Read) {
        loop {
            let mut cursor = self.log.cursor(read.position).unwrap();
            while let Some(fragment) = cursor.next_fragment().unwrap() {
                let payload = fragment.to_vec();
                let value = payload.first().copied().unwrap_or(DEAD);
                assert!(
                    payload.iter().all(|byte| *byte == value) && [DEAD, LIVING].contains(&value),
                    "a frame is torn: {payload:?}"
                );
                match value {
                    DEAD => read.dead_bytes += payload.len(),
                    _ => read.living_messages += 1,
                }
            }
            if cursor.position() == read.position || cursor.position() == self.max_position() {
                read.position = cursor.position();
                return;
            }
            read.position = cursor.position();
        }
    }

    fn read_from_start(&self) -> Read {
        Read {
            position: self.start,
            dead_bytes: 0,
            living_messages: 0,
        }
    }

    /// Whether the driver considers the log as blocked at `position`.
    fn is_blocked(&self, position: i64) -> bool {
        let count = i64::from(self.log.metadata().active_term_count());
        count != position / TERM as i64 || self.log.producer_position() > position
    }

    fn check_producer_position(&self) {
        let position = self.log.producer_position();
        assert!(
            (self.start..=self.max_position()).contains(&position),
            "the publishers' position {position} has left the stream that starts at {}",
            self.start
        );
    }

    /// Checks that a subscriber gets a message of a living publisher, or that the stream has ended. Returns the payload
    /// bytes of the dead publisher.
    fn check_progress(&self, context: &str) -> usize {
        let living = ConcurrentAppender::new(self.log.clone());
        let mut read = self.read_from_start();
        let (mut end, mut is_over) = (None, false);
        for _ in 0..8 {
            if end.is_none() && !is_over {
                match living.offer(NO_LIMIT, &[LIVING; 8]) {
                    Ok(position) => end = Some(position),
                    Err(AppendError::AdminAction) => {}
                    Err(AppendError::MaxPositionExceeded) => is_over = true,
                    Err(error) => panic!("{error}"),
                }
            }
            self.read(&mut read);
            self.check_producer_position();
            if self.is_blocked(read.position) {
                unblock(&self.log, read.position);
                self.check_producer_position();
            }
        }
        match end {
            Some(end) => assert_eq!(
                (read.living_messages, read.position),
                (1, end),
                "blocked for ever: {context}"
            ),
            None => assert_eq!(
                (is_over, read.position),
                (true, self.max_position()),
                "blocked for ever: {context}"
            ),
        }
        read.dead_bytes
    }

    /// Checks that a subscriber reaches the end of the stream after all publishers have left. Returns the payload bytes
    /// of the dead publisher.
    fn check_drained(&self, context: &str) -> usize {
        let mut read = self.read_from_start();
        for _ in 0..4 {
            self.read(&mut read);
            unblock_abandoned(&self.log, read.position);
            self.check_producer_position();
        }
        assert_eq!(
            read.position,
            self.log.producer_position(),
            "blocked for ever: {context}"
        );
        // Otherwise the driver would unblock the log again and again.
        let is_at_end = read.position == self.max_position();
        assert!(is_at_end || !self.is_blocked(read.position), "{context}");
        read.dead_bytes
    }
}

/// Starts of streams: before and after each frame boundary near the end of a term, in the first three terms and in the
/// last two, with term ids that wrap.
fn starts() -> impl Iterator<Item = (i32, i64)> {
    let counts = [0, 1, 2, LAST - 1, LAST];
    counts.into_iter().flat_map(|count| {
        [7, i32::MAX].into_iter().flat_map(move |initial_term_id| {
            let positions = Positions::new(TERM, initial_term_id).unwrap();
            let term_begin = positions.position(initial_term_id.wrapping_add(count), 0);
            let rooms = (0..=12).map(|frames| 32 * frames).chain([TERM]);
            rooms.map(move |room| (initial_term_id, term_begin + (TERM - room) as i64))
        })
    })
}

/// Appends to a log. Returns the number of appended payload bytes.
type Append = fn(LogBuffers<MortalWords>) -> Result<usize, AppendError>;
/// A name, the payload bytes, whether they become visible at once, and the append.
type Case = (&'static str, usize, bool, Append);

/// A batch of three messages.
const BATCH: [&[u8]; 3] = [&[DEAD; 8], &[DEAD; 64], &[DEAD; 33]];

fn batch_bytes(appended: Appended) -> usize {
    let messages = BATCH.iter().take(appended.messages);
    messages.map(|message| message.len()).sum()
}

fn offer(log: LogBuffers<MortalWords>, message: &[u8]) -> Result<usize, AppendError> {
    ConcurrentAppender::new(log).offer(NO_LIMIT, message)?;
    Ok(message.len())
}

/// Appends through a [`ConcurrentAppender`].
const CONCURRENT: [Case; 8] = [
    ("empty message", 0, true, |log| offer(log, &[])),
    ("short message", 5, true, |log| offer(log, &[DEAD; 5])),
    ("whole frame", 64, true, |log| offer(log, &[DEAD; 64])),
    ("two fragments", 65, false, |log| offer(log, &[DEAD; 65])),
    ("three whole fragments", 192, false, |log| {
        offer(log, &[DEAD; 192])
    }),
    ("batch", 105, false, |log| {
        let publisher = ConcurrentAppender::new(log);
        publisher
            .offer_batch(NO_LIMIT, &BATCH[..], 0)
            .map(batch_bytes)
    }),
    ("claim", 40, true, |log| {
        let publisher = ConcurrentAppender::new(log);
        let claim = publisher.try_claim(NO_LIMIT, 40)?;
        claim.put(0, &[DEAD; 40]);
        claim.commit();
        Ok(40)
    }),
    ("aborted claim", 0, true, |log| {
        let publisher = ConcurrentAppender::new(log);
        let claim = publisher.try_claim(NO_LIMIT, 40)?;
        claim.put(0, &[DEAD; 40]);
        claim.abort();
        Ok(0)
    }),
];

fn exclusive(log: LogBuffers<MortalWords>) -> ExclusiveAppender<MortalWords> {
    ExclusiveAppender::new(log).unwrap()
}

fn offer_exclusively(log: LogBuffers<MortalWords>, message: &[u8]) -> Result<usize, AppendError> {
    exclusive(log).offer(NO_LIMIT, message)?;
    Ok(message.len())
}

/// Appends through an [`ExclusiveAppender`].
const EXCLUSIVE: [Case; 7] = [
    ("empty message", 0, true, |log| offer_exclusively(log, &[])),
    ("whole frame", 64, true, |log| {
        offer_exclusively(log, &[DEAD; 64])
    }),
    ("three whole fragments", 192, false, |log| {
        offer_exclusively(log, &[DEAD; 192])
    }),
    ("batch", 105, false, |log| {
        exclusive(log)
            .offer_batch(NO_LIMIT, &BATCH[..], 0)
            .map(batch_bytes)
    }),
    ("claim", 40, true, |log| {
        let mut publisher = exclusive(log);
        let claim = publisher.try_claim(NO_LIMIT, 40)?;
        claim.put(0, &[DEAD; 40]);
        claim.commit();
        Ok(40)
    }),
    ("aborted claim", 0, true, |log| {
        let mut publisher = exclusive(log);
        let claim = publisher.try_claim(NO_LIMIT, 40)?;
        claim.put(0, &[DEAD; 40]);
        claim.abort();
        Ok(0)
    }),
    ("padding", 0, true, |log| {
        exclusive(log).append_padding(NO_LIMIT, 70)?;
        Ok(0)
    }),
];

/// Lets a publisher die after each of its stores, at each start, and calls `check`, which returns the payload bytes of
/// the dead publisher that a subscriber has read. Returns the number of deaths.
fn at_each_death(cases: &[Case], check: impl Fn(&Scene, &str) -> usize) -> usize {
    let mut deaths = 0;
    for (initial_term_id, start) in starts() {
        for &(name, payload_bytes, is_at_once, append) in cases {
            deaths += every_death(|stores| {
                let scene = Scene::new(initial_term_id, start);
                let outcome = scene.append(append, stores);
                let context = format!("{name} at {start}, died after {stores} stores");
                let read = check(&scene, &context);
                // A batch of one run is visible at once. Near the end of a term, it has two runs.
                let room = TERM - scene.log.positions().term_offset(start);
                let is_at_once = is_at_once || (name == "batch" && room >= 256);
                match outcome {
                    Some(Ok(appended)) => assert_eq!(read, appended, "{context}"),
                    Some(Err(_)) => assert_eq!(read, 0, "{context}"),
                    None if is_at_once => assert_eq!(read, 0, "a part is visible: {context}"),
                    None => assert!(read < payload_bytes, "all is visible: {context}"),
                }
                outcome.is_some()
            });
        }
    }
    deaths
}

/// 01-63, 01-64, 01-66, 01-74
#[test]
fn a_log_makes_progress_after_a_publisher_dies_at_any_store() {
    let deaths = at_each_death(&CONCURRENT, |scene, context| scene.check_progress(context));
    assert!(deaths > 5_000, "{deaths}");
}

/// 01-74
#[test]
fn a_log_is_drained_after_its_last_publisher_dies_at_any_store() {
    let deaths = at_each_death(&CONCURRENT, |scene, context| scene.check_drained(context));
    assert!(deaths > 5_000, "{deaths}");
}

/// 01-65, 01-66, 01-74
#[test]
fn the_log_of_an_exclusive_publisher_is_drained_after_a_death_at_any_store() {
    let deaths = at_each_death(&EXCLUSIVE, |scene, context| scene.check_drained(context));
    assert!(deaths > 5_000, "{deaths}");
}

/// 01-74: several publishers die, each directly after its claim.
#[test]
fn a_log_makes_progress_after_several_publishers_die_after_their_claims() {
    for (initial_term_id, start) in starts() {
        for (name, _, _, append) in CONCURRENT {
            for dead in 2..=4 {
                let scene = Scene::new(initial_term_id, start);
                for _ in 0..dead {
                    scene.append(append, 1);
                }
                let context = format!("{dead} of {name} at {start}");
                assert_eq!(scene.check_progress(&context), 0);
            }
        }
    }
}

/// 01-72, 01-73: a driver that dies while it stores a datagram, or fills a gap, leaves nothing half readable.
#[test]
fn subscribers_of_a_dead_driver_see_no_half_frame() {
    let scene = Scene::new(7, 0);
    let publisher = ConcurrentAppender::new(scene.log.clone());
    publisher.offer(NO_LIMIT, &[DEAD; 64]).unwrap();
    let mut datagram = vec![0; 96];
    scene.log.term(0).copy_out(0, &mut datagram);

    let rebuild = |words: MortalWords| {
        let log = LogBuffers::attach(&words).unwrap();
        assert!(insert(log.term(0), 0, &datagram));
    };
    let fill = |words: MortalWords| {
        let log = LogBuffers::attach(&words).unwrap();
        let gap = Gap {
            offset: 0,
            length: 96,
        };
        assert!(gap::fill(&log, 7, gap));
    };
    let stores: [&dyn Fn(MortalWords); 2] = [&rebuild, &fill];
    for store in stores {
        let deaths = every_death(|stores| {
            let image = Scene::new(7, 0);
            let survived = die_after(&image.memory, stores, store).is_some();
            let mut read = image.read_from_start();
            image.read(&mut read);
            assert_eq!(read.position, if survived { 96 } else { 0 });
            survived
        });
        assert!(deaths >= 4, "{deaths}");
    }
}
