//! [`ArchiveContext`]: all settings of the archive. Each setting has a field, a default, a property
//! and limits.
//!
//! A context begins with the defaults. [`ArchiveContext::apply`] then applies the environment, `-D`
//! definitions and properties files. After that, code may set fields directly. A text that does not
//! match the grammar of its setting is refused, and so is a value outside of its limits. Like in
//! the Java archive, no value is clamped. Lengths are in bytes.
//!
//! This module and its children `conclude`, `invoked_driver` and `setting` import each other: they have the types of
//! its fields, and the functions that read the whole context.

mod conclude;
mod invoked_driver;
mod modes;
mod setting;
mod step_sizes;

use std::path::{Path, PathBuf};

use aeron_agent::properties::environment_name;
use aeron_agent::sources::Sources;

use crate::recovery::OnTornFragment;
use crate::storage::SyncLevel;

use super::users::AuthenticateFunction;
pub use aeron_agent::setting::{Grammar, Setting, Value};
pub use conclude::ArchiveChoices;
pub use invoked_driver::InvokedDriver;
pub use modes::{ArchiveThreadingMode, AuthenticatorKind, AuthorisationKind, OnFailure};
pub use setting::ArchiveConfigurationError;
pub use step_sizes::StepSizes;

const KIB: i64 = 1024;
const MIB: i64 = 1024 * KIB;
const GIB: i64 = 1024 * MIB;
const MAX_I32: i64 = i32::MAX as i64;
const MAX: i64 = i64::MAX;
const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;
const DEFAULT_MAX_IDLE_PARK_NS: u64 = 2 * MS as u64;

/// Pairs of an archive setting and a driver setting. If the archive setting is not set, the driver
/// setting is its default.
const STAND_INS: [(&str, &str); 2] = [
    ("aeron.archive.control.mtu.length", "aeron.mtu.length"),
    (
        "aeron.archive.replay.linger.timeout",
        "aeron.publication.linger.timeout",
    ),
];

aeron_agent::settings! {
    /// All settings of an archive.
    #[derive(Clone, Debug, PartialEq, Eq)]
    ArchiveContext,
    /// Every setting that has a property.
    ARCHIVE_SETTINGS;

    /// Directory of the driver.
    aeron_dir: PathBuf = aeron_memory::directory::default_directory(), "aeron.dir" Text;
    /// Maximum age of the driver's heartbeat, in milliseconds. If the heartbeat is older, the
    /// driver counts as dead, and the archive ends.
    driver_timeout_ms: i64 = 10_000, "aeron.driver.timeout" Integer(1, MAX);
    /// Directory of catalog and recordings.
    archive_dir: PathBuf = PathBuf::from("aeron-archive"), "aeron.archive.dir" Text;
    /// Delete the archive directory with all its files before the archive starts.
    archive_dir_delete_on_start: bool = false, "aeron.archive.dir.delete.on.start" Boolean;
    /// Directory of the mark file; if empty, the archive directory.
    mark_file_dir: Option<PathBuf> = None, "aeron.archive.mark.file.dir" Text;
    /// Id of the archive, unique among the archives of its driver; -1 lets the driver choose one.
    archive_id: i64 = -1, "aeron.archive.id" Integer(i64::MIN, MAX);

    /// Channel of control requests over the network. It is required if such requests are accepted.
    control_channel: String = String::new(), "aeron.archive.control.channel" Text;
    /// Stream id of control requests over the network.
    control_stream_id: i32 = 10, "aeron.archive.control.stream.id" Integer(i32::MIN as i64, MAX_I32);
    /// Accept control requests over the network.
    control_channel_enabled: bool = true, "aeron.archive.control.channel.enabled" Boolean;
    /// Channel of control requests on the same machine.
    local_control_channel: String = "aeron:ipc?term-length=64k".into(), "aeron.archive.local.control.channel" Text;
    /// Stream id of control requests on the same machine.
    local_control_stream_id: i32 = 10, "aeron.archive.local.control.stream.id" Integer(i32::MIN as i64, MAX_I32);
    /// Term length of control streams; a power of two.
    control_term_buffer_length: usize = 64 * KIB as usize,
        "aeron.archive.control.term.buffer.length" Size(64 * KIB, GIB);
    /// Create sparse logs for control streams.
    control_term_buffer_sparse: bool = true, "aeron.archive.control.term.buffer.sparse" Boolean;
    /// Longest frame of control streams; a multiple of 32. If it is not set, the driver's
    /// `aeron.mtu.length` applies.
    control_mtu_length: usize = 1408, "aeron.archive.control.mtu.length" Size(64, 65_504);
    /// Channel of recording events. It is required if recording events are published.
    recording_events_channel: String = String::new(), "aeron.archive.recording.events.channel" Text;
    /// Stream id of recording events.
    recording_events_stream_id: i32 = 30,
        "aeron.archive.recording.events.stream.id" Integer(i32::MIN as i64, MAX_I32);
    /// Publish recording events.
    recording_events_enabled: bool = false, "aeron.archive.recording.events.enabled" Boolean;
    /// Channel of the replays that source archives send for replications, for example
    /// `aeron:udp?endpoint=localhost:0`. It is required.
    replication_channel: String = String::new(), "aeron.archive.replication.channel" Text;

    /// Length of segment files; a power of two.
    segment_file_length: usize = 128 * MIB as usize, "aeron.archive.segment.file.length" Size(64 * KIB, GIB);
    /// Maximum length of a block in one read or write; a power of two.
    file_io_max_length: usize = MIB as usize, "aeron.archive.file.io.max.length" Size(64 * KIB, GIB);
    /// A recording starts only if more than this space is free in the file system.
    low_storage_space_threshold: u64 = 128 * MIB as u64,
        "aeron.archive.low.storage.space.threshold" Size(0, MAX);
    /// Part of each block of a recording that is forced to the disk: 0 nothing, 1 data, 2 also metadata.
    file_sync_level: SyncLevel = SyncLevel::None, "aeron.archive.file.sync.level" Integer(0, 2);
    /// Part of each change of the catalog that is forced to the disk; at least `aeron.archive.file.sync.level`.
    catalog_file_sync_level: SyncLevel = SyncLevel::None, "aeron.archive.catalog.file.sync.level" Integer(0, 2);
    /// Length of a new catalog.
    catalog_capacity: u64 = MIB as u64, "aeron.archive.catalog.capacity" Size(32, MAX_I32);
    /// Treatment of a last frame that may be torn after a kill, if no index proves that it is whole
    /// or torn. With `refuse`, the archive does not start, and the error has the position of the
    /// frame. With `truncate`, the frame is removed.
    on_torn_fragment: OnTornFragment = OnTornFragment::Refuse, "aeron.archive.on.torn.fragment" Text;
    /// Treatment of a stream after its recording has failed. With `block`, the archive stops reading the stream, so its
    /// publisher is blocked and no data are lost. If the disk is full, the archive tries again each second to continue
    /// the recording. With `release`, the archive reads and drops the rest of the stream.
    recording_on_failure: OnFailure = OnFailure::Block, "aeron.archive.recording.on.failure" Text;
    /// Write an index file for each segment. It has arrival times and ends of messages. After a
    /// kill, it shows whether the last frame is whole.
    index: bool = true, "aeron.archive.index" Boolean;
    /// Resume the recording subscriptions that were active when the archive ended. A stream that
    /// continues without a gap extends its recording. After a gap, the stream becomes a new
    /// recording that is linked to the former recording.
    resume: bool = false, "aeron.archive.resume" Boolean;
    /// Number of bytes of sealed segments that are read per second to find damage. Damage is
    /// reported and never repaired. 0 turns this off.
    scrub_rate: u64 = 0, "aeron.archive.scrub.rate" Size(0, MAX);
    /// Time from the begin of a pass over all sealed segments to the begin of the next pass.
    scrub_interval_ns: i64 = 24 * 3600 * SECOND, "aeron.archive.scrub.interval" Duration(0, MAX);
    /// Time of running for which retention deletes nothing because of its age, and no reader expires by its age, after
    /// the archive finds the wall clock doubtful: the archive started more than an hour after the last known time, or
    /// the clock was set by more than a minute. 0 trusts every clock.
    retention_clock_wait_ns: i64 = 24 * 3600 * SECOND, "aeron.archive.retention.clock.wait" Duration(0, MAX);
    /// TOML file of the retention policies of streams and channels. The archive reads it at its start and when it
    /// reloads. If it is not set, clients set these policies.
    retention_file: Option<PathBuf> = None, "aeron.archive.retention.file" Text;
    /// Object storage to which sealed segments are copied, `s3://bucket/prefix` or `file:///directory`; if empty, none.
    /// Credentials come from the environment variables of AWS, such as `AWS_ACCESS_KEY_ID`.
    objects_url: String = String::new(), "aeron.archive.objects.url" Text;
    /// Address of an S3-compatible service, such as `http://localhost:9000`; if empty, that of AWS.
    objects_endpoint: String = String::new(), "aeron.archive.objects.endpoint" Text;
    /// Region of the bucket; if empty, `AWS_REGION`, else `us-east-1`.
    objects_region: String = String::new(), "aeron.archive.objects.region" Text;
    /// Maximum number of segments that are copied at the same time.
    objects_concurrency: i32 = 2, "aeron.archive.objects.concurrency" Integer(1, 64);
    /// Maximum number of bytes that are sent to object storage per second; 0: no limit.
    objects_rate: u64 = 0, "aeron.archive.objects.rate" Size(0, MAX);
    /// Time limit for each request to object storage.
    objects_timeout_ns: i64 = 30 * SECOND, "aeron.archive.objects.timeout" Duration(MS, 3600 * SECOND);
    /// Delete segment files of which the copy was read back and is equal. Their data are then read from the copies.
    objects_delete_local: bool = false, "aeron.archive.objects.delete.local" Boolean;
    /// Newest bytes of each recording that stay on the disk when copied segment files are deleted.
    objects_local_bytes: u64 = 0, "aeron.archive.objects.local.bytes" Size(0, MAX);
    /// Maximum length of all segments on the disk that were fetched for replays. The latest one always stays.
    objects_cache_bytes: u64 = GIB as u64, "aeron.archive.objects.cache.bytes" Size(0, MAX);
    /// Maximum number of recordings at the same time.
    max_concurrent_recordings: i32 = 20, "aeron.archive.max.concurrent.recordings" Integer(0, MAX_I32);
    /// Maximum number of replays at the same time.
    max_concurrent_replays: i32 = 20, "aeron.archive.max.concurrent.replays" Integer(0, MAX_I32);
    /// Checksum of recorded frames, `CRC-32` or `CRC-32C`; if empty, no checksum.
    record_checksum: String = String::new(), "aeron.archive.record.checksum" Text;
    /// Checksum that replayed frames must have; if empty, no checksum.
    replay_checksum: String = String::new(), "aeron.archive.replay.checksum" Text;

    /// Time limit for a client to connect to its session or replay, and to use a replay token.
    connect_timeout_ns: i64 = 5 * SECOND, "aeron.archive.connect.timeout" Duration(0, MAX);
    /// Time between two pings of a control session.
    session_liveness_check_interval_ns: i64 = SECOND,
        "aeron.archive.session.liveness.check.interval" Duration(0, MAX);
    /// Time for which the publication of a finished replay stays open. If it is not set, the
    /// driver's `aeron.publication.linger.timeout` applies.
    replay_linger_timeout_ns: i64 = 5 * SECOND, "aeron.archive.replay.linger.timeout" Duration(0, MAX);

    /// Threads of the agents: `DEDICATED`, `SHARED` or `INVOKER`.
    threading_mode: ArchiveThreadingMode = ArchiveThreadingMode::Dedicated, "aeron.archive.threading.mode" Text;
    /// Idle strategy of the conductor.
    idle_strategy: String = "backoff".into(), "aeron.archive.idle.strategy" Text;
    /// Idle strategy of the recorder; if empty, the conductor's strategy.
    recorder_idle_strategy: String = String::new(), "aeron.archive.recorder.idle.strategy" Text;
    /// Idle strategy of the replayer; if empty, the conductor's strategy.
    replayer_idle_strategy: String = String::new(), "aeron.archive.replayer.idle.strategy" Text;
    /// Duty cycles of the conductor that take longer than this time are counted.
    conductor_cycle_threshold_ns: i64 = 100 * MS, "aeron.archive.conductor.cycle.threshold" Duration(0, MAX);
    /// Duty cycles of the recorder that take longer than this time are counted.
    recorder_cycle_threshold_ns: i64 = 100 * MS, "aeron.archive.recorder.cycle.threshold" Duration(0, MAX);
    /// Duty cycles of the replayer that take longer than this time are counted.
    replayer_cycle_threshold_ns: i64 = 100 * MS, "aeron.archive.replayer.cycle.threshold" Duration(0, MAX);
    /// Length of the distinct error log in the mark file.
    error_buffer_length: usize = MIB as usize, "aeron.archive.error.buffer.length" Size(MIB, MAX_I32);

    /// Clients that may connect. If it is empty, the users in `aeron.archive.users.file` may
    /// connect, or all clients if that file is not set. With the class name of Aeron's sample, the
    /// file is required.
    authenticator_supplier: String = String::new(), "aeron.archive.authenticator.supplier" Text;
    /// Requests that clients may send: `ALLOW_ALL` or `DENY_ALL`. If it is empty, the roles in
    /// `aeron.archive.users.file` decide. Without that file, all requests are allowed.
    authorisation_service_supplier: String = String::new(),
        "aeron.archive.authorisation.service.supplier" Text;
    /// TOML file of users, their secrets and their roles; mode 0600.
    users_file: Option<PathBuf> = None, "aeron.archive.users.file" Text;

    {
        /// Longest park in nanoseconds of an agent with the idle strategy `backoff`, after one
        /// second without work. It has no effect if the idle strategy itself has a longer park.
        /// 0 turns it off.
        max_idle_park_ns: u64 = DEFAULT_MAX_IDLE_PARK_NS;
        /// Driver that the archive runs, because it has no threads; `None` if the driver runs by itself. The
        /// threading mode of the archive must be SHARED or INVOKER.
        driver_invoker: Option<InvokedDriver> = None;
        /// Function that decides about clients, in place of `authenticator_supplier`. With a users file, the name
        /// that the function returns has the role of the user in the file. Without one, all requests of accepted
        /// clients are allowed, unless `authorisation_service_supplier` denies them.
        authenticate: Option<AuthenticateFunction> = None;
        /// Sizes of the steps in which the archive does long work.
        step_sizes: StepSizes = StepSizes::default();
    }
}

impl ArchiveContext {
    /// Returns the directory of the mark file.
    pub fn mark_file_dir(&self) -> &Path {
        self.mark_file_dir.as_deref().unwrap_or(&self.archive_dir)
    }

    /// Returns all settings as text, one `property=value` on a line.
    pub fn to_print(&self) -> String {
        let line =
            |setting: &Setting<Self>| format!("    {}={}\n", setting.property, setting.get(self));
        let lines: String = ARCHIVE_SETTINGS.iter().map(line).collect();
        format!("aeron_archive_context {{\n{lines}}}")
    }

    /// Applies every setting of `sources`. Two settings of the driver are also applied, because
    /// they are the defaults of archive settings.
    ///
    /// # Errors
    /// A text does not match the grammar of its setting. The settings before this setting stay
    /// applied.
    pub fn apply(&mut self, sources: &Sources) -> Result<(), ArchiveConfigurationError> {
        for setting in ARCHIVE_SETTINGS {
            let stand_in = STAND_INS
                .iter()
                .find(|(property, _)| *property == setting.property);
            let properties = [Some(setting.property), stand_in.map(|(_, driver)| *driver)];
            let mut texts = properties
                .into_iter()
                .flatten()
                .filter_map(|property| sources.get(&environment_name(property)));
            if let Some(text) = texts.next() {
                setting::read(setting, self, text)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(definitions: &[&str]) -> Result<ArchiveContext, ArchiveConfigurationError> {
        let mut sources = Sources::default();
        for definition in definitions {
            sources.define(definition).unwrap();
        }
        let mut context = ArchiveContext::default();
        context.apply(&sources).map(|()| context)
    }

    /// Returns a text with another value than the default.
    fn other_text(setting: &Setting<ArchiveContext>) -> String {
        match (setting.get(&ArchiveContext::default()), setting.grammar) {
            (Value::Boolean(value), _) => (!value).to_string(),
            (Value::Number(value), grammar) => {
                let (min, max) = grammar.limits().unwrap();
                if value == min { max } else { min.max(0) }.to_string()
            }
            _ if setting.name == "threading_mode" => "SHARED".into(),
            _ if setting.name == "on_torn_fragment" => "truncate".into(),
            _ if setting.name == "recording_on_failure" => "release".into(),
            _ => "something".into(),
        }
    }

    #[test]
    fn each_property_and_each_variable_changes_only_its_own_setting() {
        let default = ArchiveContext::default();
        for setting in ARCHIVE_SETTINGS {
            let text = other_text(setting);
            for name in [setting.property.to_owned(), setting.variable()] {
                let context = applied(&[&format!("{name}={text}")]).unwrap();
                assert_ne!(
                    setting.get(&context),
                    setting.get(&default),
                    "{name}={text}"
                );
                let others = ARCHIVE_SETTINGS
                    .iter()
                    .filter(|other| other.name != setting.name)
                    .all(|other| other.get(&context) == other.get(&default));
                assert!(others, "{name} changes another setting");
            }
            assert!(aeron_agent::known::is_known(&setting.variable()));
            assert!(ArchiveContext::has_variable(&setting.variable()));
            assert!(!setting.meaning().is_empty() && !setting.meaning().starts_with(' '));
        }
        let variable = ArchiveContext::setting("archive_dir").unwrap().variable();
        assert_eq!(variable, "AERON_ARCHIVE_DIR");
    }

    #[test]
    fn sizes_and_durations_without_a_suffix_are_bytes_and_nanoseconds() {
        let context = applied(&[
            "aeron.archive.segment.file.length=64m",
            "aeron.archive.catalog.capacity=65536",
            "aeron.archive.connect.timeout=250ms",
            "aeron.archive.replay.linger.timeout=1000",
        ])
        .unwrap();
        assert_eq!(context.segment_file_length, 64 << 20);
        assert_eq!(context.catalog_capacity, 65_536);
        assert_eq!(context.connect_timeout_ns, 250_000_000);
        assert_eq!(context.replay_linger_timeout_ns, 1_000);
    }

    #[test]
    fn a_driver_setting_is_the_default_of_an_archive_setting_that_is_not_set() {
        let driver = ["aeron.mtu.length=8k", "aeron.publication.linger.timeout=1s"];
        let context = applied(&driver).unwrap();
        assert_eq!(
            (context.control_mtu_length, context.replay_linger_timeout_ns),
            (8192, 1_000_000_000)
        );
        let context = applied(&[driver[0], "aeron.archive.control.mtu.length=4k"]).unwrap();
        assert_eq!(context.control_mtu_length, 4096);
    }

    #[test]
    fn the_error_of_an_invalid_text_has_the_property_the_value_and_the_remedy() {
        for (definition, reason) in [
            (
                "aeron.archive.segment.file.length=big",
                "aeron.archive.segment.file.length=big is not a size: use bytes, or a number with a suffix k, m or g",
            ),
            (
                "aeron.archive.threading.mode=shared",
                "aeron.archive.threading.mode=shared is not known: use DEDICATED, SHARED or INVOKER",
            ),
            (
                "aeron.archive.file.sync.level=3",
                "aeron.archive.file.sync.level=3 is not in the range 0 to 2: choose a value in it",
            ),
            (
                "aeron.archive.control.stream.id=4294967296",
                "aeron.archive.control.stream.id=4294967296 is not in the range -2147483648 to 2147483647: choose a value in it",
            ),
        ] {
            assert_eq!(applied(&[definition]).unwrap_err().to_string(), reason);
        }
    }

    #[test]
    fn java_properties_files_are_read_with_their_escape_sequences() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "aeron.archive.control.channel aeron\\:udp?endpoint\\=localhost\\:8010\naeron.archive.dir = /tmp/\\u00fc";
        std::fs::write(file.path(), text).unwrap();
        let mut sources = Sources::default();
        sources.load_file(file.path().to_str().unwrap()).unwrap();
        let mut context = ArchiveContext::default();
        context.apply(&sources).unwrap();
        assert_eq!(context.control_channel, "aeron:udp?endpoint=localhost:8010");
        assert_eq!(context.archive_dir, Path::new("/tmp/ü"));
        assert_eq!(context.mark_file_dir(), Path::new("/tmp/ü"));
    }
}
