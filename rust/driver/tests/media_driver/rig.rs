//! A directory for a driver, a client without the client library, and exchanges of messages through a driver.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aeron_driver::{Context, MediaDriver, ThreadingMode};
use aeron_memory::broadcast::BroadcastReceiver;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::cnc::{CncFile, Reader};
use aeron_memory::log::{ConcurrentAppender, LogBuffers};
use aeron_protocol::command::{AddPublication, AddSubscription, Command, RemovePublication};
use aeron_protocol::event::Event;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

pub struct Place(pub TempDir);

impl Place {
    pub fn new() -> Self {
        let base = if Path::new("/dev/shm").exists() {
            PathBuf::from("/dev/shm")
        } else {
            std::env::temp_dir()
        };
        Place(
            tempfile::Builder::new()
                .prefix("aeron-driver-test-")
                .tempdir_in(base)
                .unwrap(),
        )
    }

    pub fn dir(&self) -> PathBuf {
        self.0.path().join("aeron")
    }

    pub fn context(&self, threading_mode: ThreadingMode) -> Context {
        Context {
            dir: self.dir(),
            threading_mode,
            timer_interval_ns: 50_000_000,
            ipc_term_buffer_length: 64 * 1024,
            ..Context::default()
        }
    }

    pub fn launch(&self) -> MediaDriver {
        MediaDriver::launch(self.context(ThreadingMode::Shared)).unwrap()
    }

    pub fn cnc(&self) -> CncFile {
        CncFile::map(&self.dir().join("cnc.dat"), Reader::Client)
            .unwrap()
            .unwrap()
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.dir())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Returns the entries beside the driver's directory.
    pub fn siblings(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        entries.filter(|path| *path != self.dir()).collect()
    }
}

/// A client that uses the CnC file directly, without the client library.
pub struct Client {
    pub cnc: CncFile,
    pub events: BroadcastReceiver<SharedBuffer>,
}

impl Client {
    pub fn connect(place: &Place) -> Self {
        let cnc = place.cnc();
        let events = BroadcastReceiver::new(cnc.to_clients().clone()).unwrap();
        Client { cnc, events }
    }

    pub fn send(&self, command: Command<'_>) {
        let mut body = vec![0; command.encoded_length()];
        command.encode(&mut body).unwrap();
        self.cnc
            .to_driver()
            .write(command.type_id(), &body)
            .unwrap();
    }

    /// Waits for the first event for which `pick` returns a value. Calls `turn` while it waits.
    pub fn await_event<T>(
        &mut self,
        mut turn: impl FnMut(),
        pick: impl Fn(Event<'_>) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut picked = None;
            let received = self
                .events
                .receive(|type_id, body| picked = pick(Event::decode(type_id, body).unwrap()));
            received.unwrap();
            if let Some(picked) = picked {
                return picked;
            }
            turn();
            assert!(Instant::now() < deadline, "no event arrived");
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}
pub fn publication(correlation_id: i64) -> Command<'static> {
    Command::AddPublication(AddPublication {
        client_id: 1,
        correlation_id,
        stream_id: 1001,
        channel: b"aeron:ipc",
    })
}

pub fn await_true(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Publishes and consumes messages over IPC. Calls `turn` while it waits. `turn` runs the driver's agents if they have
/// no threads.
pub fn exchange_messages(place: &Place, mut turn: impl FnMut()) {
    let mut client = Client::connect(place);
    client.send(publication(100));
    let (log_file_name, limit_id) = client.await_event(&mut turn, |event| match event {
        Event::PublicationReady(ready) => Some((
            String::from_utf8(ready.log_file_name.to_vec()).unwrap(),
            ready.publication_limit_counter_id,
        )),
        _ => None,
    });
    assert_eq!(
        Path::new(&log_file_name),
        place.dir().join("publications/100.logbuffer")
    );
    let log = LogBuffers::open(Path::new(&log_file_name), false).unwrap();
    let (client_id, correlation_id, stream_id) = (1, 101, 1001);
    let (registration_correlation_id, channel) = (-1, b"aeron:ipc".as_slice());
    client.send(Command::AddSubscription(AddSubscription {
        client_id,
        correlation_id,
        registration_correlation_id,
        stream_id,
        channel,
    }));
    let position_id = client.await_event(&mut turn, |event| match event {
        Event::AvailableImage(image) => Some(image.subscriber_position_id),
        _ => None,
    });
    let counter = |id| client.cnc.counters().counter(id).unwrap();
    let (limit, position) = (counter(limit_id), counter(position_id));
    let appender = ConcurrentAppender::new(log.clone());
    await_true("five terms", || {
        turn();
        while appender.offer(limit.get(), &[1; 1_000]).is_ok() {}
        position.set(log.producer_position());
        log.producer_position() > 5 * 65_536
    });
    client.send(Command::RemovePublication(RemovePublication {
        client_id,
        correlation_id: 102,
        registration_id: 100,
        revoke: false,
    }));
    await_true("the removal of the log", || {
        turn();
        counter(1).get();
        !Path::new(&log_file_name).exists()
    });
}

/// Publishes messages over UDP to a subscription of the same driver. Calls `turn` while it waits. `turn` runs the
/// driver's agents if they have no threads.
pub fn exchange_datagrams(place: &Place, mut turn: impl FnMut()) {
    let mut client = Client::connect(place);
    let (client_id, stream_id) = (1, 1001);
    client.send(Command::AddSubscription(AddSubscription {
        client_id,
        correlation_id: 200,
        registration_correlation_id: -1,
        stream_id,
        channel: b"aeron:udp?endpoint=127.0.0.1:0",
    }));
    let channel_status_id = client.await_event(&mut turn, |event| match event {
        Event::SubscriptionReady(ready) => Some(ready.channel_status_indicator_id),
        _ => None,
    });
    let label = client.cnc.counters().label(channel_status_id).unwrap();
    let (_, address) = label.rsplit_once(' ').unwrap();
    let channel = format!("aeron:udp?endpoint={address}|term-length=64k|linger=0s");
    client.send(Command::AddPublication(AddPublication {
        client_id,
        correlation_id: 201,
        stream_id,
        channel: channel.as_bytes(),
    }));
    let (log_file, limit_id) = client.await_event(&mut turn, |event| match event {
        Event::PublicationReady(ready) => Some((
            String::from_utf8(ready.log_file_name.to_vec()).unwrap(),
            ready.publication_limit_counter_id,
        )),
        _ => None,
    });
    let sends_from = client.cnc.counters().records().find_map(|record| {
        let label = record.label.strip_prefix("snd-channel: ")?;
        Some(label.rsplit_once(' ')?.1.to_owned())
    });
    assert!(sends_from.unwrap().starts_with("127.0.0.1:"));
    let published = LogBuffers::open(Path::new(&log_file), false).unwrap();
    let (image_file, position_id) = client.await_event(&mut turn, |event| match event {
        Event::AvailableImage(image) => Some((
            String::from_utf8(image.log_file_name.to_vec()).unwrap(),
            image.subscriber_position_id,
        )),
        _ => None,
    });
    assert!(Path::new(&image_file).starts_with(place.dir().join("images")));
    let received = LogBuffers::open(Path::new(&image_file), false).unwrap();
    let counter = |id| client.cnc.counters().counter(id).unwrap();
    let (limit, position) = (counter(limit_id), counter(position_id));
    let appender = ConcurrentAppender::new(published.clone());
    let mut next = [0, 0];
    await_true("messages over five terms", || {
        turn();
        while published.producer_position() < 5 * 65_536
            && appender.offer(limit.get(), &[next[0] as u8; 1_000]).is_ok()
        {
            next[0] += 1;
        }
        let mut cursor = received.cursor(position.get()).unwrap();
        while let Some(fragment) = cursor.next_fragment().unwrap() {
            assert_eq!(fragment.to_vec(), [next[1] as u8; 1_000]);
            next[1] += 1;
        }
        position.set(cursor.position());
        cursor.position() >= 5 * 65_536
    });
    client.send(Command::RemovePublication(RemovePublication {
        client_id,
        correlation_id: 202,
        registration_id: 201,
        revoke: false,
    }));
    await_true("the removal of the log", || {
        turn();
        !Path::new(&log_file).exists()
    });
}
