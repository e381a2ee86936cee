//! Checks the settings in a context, and parses those of them that are names, such as the name of an idle strategy. The
//! archive calls [`ArchiveContext::conclude`] before it creates a file or a thread.

use aeron_agent::IdleStrategySpec;

use super::setting::check_limits;
use super::{
    ARCHIVE_SETTINGS, ArchiveConfigurationError, ArchiveContext, ArchiveThreadingMode,
    AuthenticatorKind, AuthorisationKind,
};
use crate::checksum::Checksum;

/// The length of the longest frame must be a multiple of this length, in bytes.
const FRAME_ALIGNMENT: usize = 32;
const ACCEPT_ALL: &str = "io.aeron.security.DefaultAuthenticatorSupplier";
const USERS_FILE: &str = "io.aeron.samples.archive.SampleAuthenticatorSupplier";
const CONTROL_CHANNEL_REMEDY: &str = "set it to a UDP channel such as aeron:udp?endpoint=localhost:8010, or turn aeron.archive.control.channel.enabled off";

/// The parsed values of those settings of an [`ArchiveContext`] that are names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveChoices {
    /// Idle strategy of the conductor.
    pub conductor_idle_strategy: IdleStrategySpec,
    /// Idle strategy of the recorder.
    pub recorder_idle_strategy: IdleStrategySpec,
    /// Idle strategy of the replayer.
    pub replayer_idle_strategy: IdleStrategySpec,
    /// Checksum of recorded frames.
    pub record_checksum: Option<Checksum>,
    /// Checksum that replayed frames must have.
    pub replay_checksum: Option<Checksum>,
    /// Authenticator of connect requests.
    pub authenticator: AuthenticatorKind,
    /// Authorisation of requests.
    pub authorisation: AuthorisationKind,
}

impl ArchiveContext {
    /// Checks each value, and checks that the values agree with each other. Creates nothing.
    /// Returns the parsed names.
    ///
    /// # Errors
    /// The first setting with which the archive cannot start.
    pub fn conclude(&self) -> Result<ArchiveChoices, ArchiveConfigurationError> {
        self.check_limits()?;
        self.check_lengths()?;
        self.check_sync_levels()?;
        self.check_directories()?;
        self.check_channels()?;
        self.check_driver()?;
        self.choices()
    }

    fn check_limits(&self) -> Result<(), ArchiveConfigurationError> {
        for setting in ARCHIVE_SETTINGS {
            if let Err((problem, remedy)) = check_limits(setting, &setting.get(self)) {
                return Err(self.refusal(setting.name, problem, remedy));
            }
        }
        Ok(())
    }

    fn check_lengths(&self) -> Result<(), ArchiveConfigurationError> {
        for (name, length) in [
            (
                "control_term_buffer_length",
                self.control_term_buffer_length,
            ),
            ("file_io_max_length", self.file_io_max_length),
            ("segment_file_length", self.segment_file_length),
        ] {
            if !length.is_power_of_two() {
                let above = length.next_power_of_two();
                let remedy = format!("use {} or {above}", above / 2);
                return Err(self.refusal(name, "is not a power of two", remedy));
            }
        }
        if !self.control_mtu_length.is_multiple_of(FRAME_ALIGNMENT) {
            let above = self.control_mtu_length.next_multiple_of(FRAME_ALIGNMENT);
            let remedy = format!("use {} or {above}", above - FRAME_ALIGNMENT);
            let problem = format!("is not a multiple of {FRAME_ALIGNMENT}");
            return Err(self.refusal("control_mtu_length", problem, remedy));
        }
        Ok(())
    }

    fn check_sync_levels(&self) -> Result<(), ArchiveConfigurationError> {
        let level = self.file_sync_level;
        if self.catalog_file_sync_level >= level {
            return Ok(());
        }
        Err(self.refusal(
            "catalog_file_sync_level",
            format!("is below aeron.archive.file.sync.level={}", level as i32),
            "set both to the same level",
        ))
    }

    /// Checks that the directories are UTF-8: the mark file contains them as text.
    fn check_directories(&self) -> Result<(), ArchiveConfigurationError> {
        for (name, directory) in [
            ("aeron_dir", &*self.aeron_dir),
            ("archive_dir", &*self.archive_dir),
            ("mark_file_dir", self.mark_file_dir()),
        ] {
            if directory.to_str().is_none() {
                return Err(self.refusal(name, "is not UTF-8", "use another directory"));
            }
        }
        Ok(())
    }

    /// Checks that one thread can run the agents and the driver, if the driver has no threads.
    fn check_driver(&self) -> Result<(), ArchiveConfigurationError> {
        let is_dedicated = self.threading_mode == ArchiveThreadingMode::Dedicated;
        if self.driver_invoker.is_some() && is_dedicated {
            return Err(self.refusal(
                "threading_mode",
                "cannot run a driver with aeron.threading.mode=INVOKER",
                "use SHARED or INVOKER",
            ));
        }
        Ok(())
    }

    fn check_channels(&self) -> Result<(), ArchiveConfigurationError> {
        if self.control_channel_enabled && !self.control_channel.starts_with("aeron:udp") {
            return Err(self.refusal(
                "control_channel",
                "is not a UDP channel",
                CONTROL_CHANNEL_REMEDY,
            ));
        }
        if !self.local_control_channel.starts_with("aeron:ipc") {
            return Err(self.refusal(
                "local_control_channel",
                "is not an IPC channel",
                "set it to a channel such as aeron:ipc?term-length=64k",
            ));
        }
        if self.replication_channel.is_empty() {
            return Err(self.refusal(
                "replication_channel",
                "is not set",
                "set it to a channel such as aeron:udp?endpoint=localhost:0",
            ));
        }
        if self.recording_events_enabled && self.recording_events_channel.is_empty() {
            return Err(self.refusal(
                "recording_events_channel",
                "is not set, and recording events are enabled",
                "set it to a channel such as aeron:udp?control-mode=dynamic|control=localhost:8030",
            ));
        }
        Ok(())
    }

    fn choices(&self) -> Result<ArchiveChoices, ArchiveConfigurationError> {
        Ok(ArchiveChoices {
            conductor_idle_strategy: self.idle_strategy_of("idle_strategy", "")?,
            recorder_idle_strategy: self
                .idle_strategy_of("recorder_idle_strategy", &self.recorder_idle_strategy)?,
            replayer_idle_strategy: self
                .idle_strategy_of("replayer_idle_strategy", &self.replayer_idle_strategy)?,
            record_checksum: self.checksum_of("record_checksum", &self.record_checksum)?,
            replay_checksum: self.checksum_of("replay_checksum", &self.replay_checksum)?,
            authenticator: self.authenticator()?,
            authorisation: self.authorisation()?,
        })
    }

    /// Parses an idle strategy. If the text is empty, returns the idle strategy of the conductor.
    fn idle_strategy_of(
        &self,
        name: &str,
        text: &str,
    ) -> Result<IdleStrategySpec, ArchiveConfigurationError> {
        let (name, text) = match text {
            "" => ("idle_strategy", self.idle_strategy.as_str()),
            text => (name, text),
        };
        let mut spec = IdleStrategySpec::parse(text, None)
            .map_err(|error| self.refusal(name, "is not known", error.to_string()))?;
        if let IdleStrategySpec::Backoff {
            max_idle_park_ns, ..
        } = &mut spec
        {
            *max_idle_park_ns = self.max_idle_park_ns;
        }
        Ok(spec)
    }

    fn checksum_of(
        &self,
        name: &str,
        text: &str,
    ) -> Result<Option<Checksum>, ArchiveConfigurationError> {
        if text.is_empty() {
            return Ok(None);
        }
        let unknown = |_| self.refusal(name, "is not known", "use CRC-32 or CRC-32C");
        text.parse().map(Some).map_err(unknown)
    }

    fn authenticator(&self) -> Result<AuthenticatorKind, ArchiveConfigurationError> {
        if let Some(function) = &self.authenticate {
            return match self.authenticator_supplier.as_str() {
                "" => Ok(AuthenticatorKind::Function(function.clone())),
                _ => Err(self.refusal(
                    "authenticator_supplier",
                    "is set, and a function decides about clients",
                    "leave out one of the two",
                )),
            };
        }
        let users = self.users_file.clone().map(AuthenticatorKind::UsersFile);
        match (self.authenticator_supplier.as_str(), users) {
            ("" | USERS_FILE, Some(users)) => Ok(users),
            ("" | ACCEPT_ALL, None) => Ok(AuthenticatorKind::AcceptAll),
            (ACCEPT_ALL, Some(_)) => Err(self.refusal(
                "authenticator_supplier",
                "accepts everybody, and aeron.archive.users.file is set",
                "leave out one of the two",
            )),
            (USERS_FILE, None) => Err(self.refusal(
                "users_file",
                format!("is not set, and {USERS_FILE} accepts the users in it"),
                "set it to a TOML file of users, secrets and roles",
            )),
            _ => Err(self.refusal(
                "authenticator_supplier",
                "is a class that cannot run here",
                format!("use {USERS_FILE} with aeron.archive.users.file, or leave it out to accept everybody"),
            )),
        }
    }

    fn authorisation(&self) -> Result<AuthorisationKind, ArchiveConfigurationError> {
        match self.authorisation_service_supplier.as_str() {
            "" if self.users_file.is_some() => Ok(AuthorisationKind::Roles),
            "" | "ALLOW_ALL" => Ok(AuthorisationKind::AllowAll),
            "DENY_ALL" => Ok(AuthorisationKind::DenyAll),
            _ => Err(self.refusal(
                "authorisation_service_supplier",
                "is a class that cannot run here",
                "use ALLOW_ALL or DENY_ALL",
            )),
        }
    }

    fn refusal(
        &self,
        name: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> ArchiveConfigurationError {
        let setting = Self::setting(name).expect("the name is that of a field");
        ArchiveConfigurationError {
            property: setting.property,
            value: setting.get(self).to_string(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::context::ArchiveThreadingMode;
    use crate::storage::SyncLevel;

    fn valid() -> ArchiveContext {
        ArchiveContext {
            control_channel: "aeron:udp?endpoint=localhost:8010".into(),
            replication_channel: "aeron:udp?endpoint=localhost:0".into(),
            ..ArchiveContext::default()
        }
    }

    #[track_caller]
    fn check_refused(change: impl FnOnce(&mut ArchiveContext), expected: &str) {
        let mut context = valid();
        change(&mut context);
        assert_eq!(context.conclude().unwrap_err().to_string(), expected);
    }

    #[test]
    fn the_defaults_with_channels_are_valid() {
        let choices = valid().conclude().unwrap();
        assert_eq!(choices.authenticator, AuthenticatorKind::AcceptAll);
        assert_eq!(choices.authorisation, AuthorisationKind::AllowAll);
        assert_eq!(choices.record_checksum, None);
        assert_eq!(valid().threading_mode, ArchiveThreadingMode::Dedicated);
        let without_network = ArchiveContext {
            control_channel: String::new(),
            control_channel_enabled: false,
            ..valid()
        };
        without_network.conclude().unwrap();
    }

    /// 07-68, 07-76
    #[test]
    fn the_error_of_a_value_outside_its_limits_has_property_value_limits_and_remedy() {
        check_refused(
            |context| context.catalog_capacity = 31,
            "aeron.archive.catalog.capacity=31 is not in the range 32 to 2147483647: choose a value in it",
        );
        check_refused(
            |context| context.catalog_capacity = 1 << 31,
            "aeron.archive.catalog.capacity=2147483648 is not in the range 32 to 2147483647: choose a value in it",
        );
        check_refused(
            |context| context.error_buffer_length = (1 << 20) - 1,
            "aeron.archive.error.buffer.length=1048575 is not in the range 1048576 to 2147483647: choose a value in it",
        );
        check_refused(
            |context| context.segment_file_length = 2 << 30,
            "aeron.archive.segment.file.length=2147483648 is not in the range 65536 to 1073741824: choose a value in it",
        );
    }

    #[test]
    fn lengths_that_are_not_powers_of_two_are_refused() {
        check_refused(
            |context| context.segment_file_length = 100_000,
            "aeron.archive.segment.file.length=100000 is not a power of two: use 65536 or 131072",
        );
        check_refused(
            |context| context.file_io_max_length = 1_000_000,
            "aeron.archive.file.io.max.length=1000000 is not a power of two: use 524288 or 1048576",
        );
        check_refused(
            |context| context.control_term_buffer_length = 65_537,
            "aeron.archive.control.term.buffer.length=65537 is not a power of two: use 65536 or 131072",
        );
        check_refused(
            |context| context.control_mtu_length = 1500,
            "aeron.archive.control.mtu.length=1500 is not a multiple of 32: use 1472 or 1504",
        );
    }

    /// 07-53
    #[test]
    fn a_catalog_sync_level_below_the_file_sync_level_is_refused() {
        check_refused(
            |context| context.file_sync_level = SyncLevel::Data,
            "aeron.archive.catalog.file.sync.level=0 is below aeron.archive.file.sync.level=1: set both to the same level",
        );
    }

    #[test]
    fn missing_channels_and_channels_of_other_media_are_refused() {
        check_refused(
            |context| context.control_channel.clear(),
            "aeron.archive.control.channel= is not a UDP channel: set it to a UDP channel such as aeron:udp?endpoint=localhost:8010, or turn aeron.archive.control.channel.enabled off",
        );
        check_refused(
            |context| context.local_control_channel = "aeron:udp".into(),
            "aeron.archive.local.control.channel=aeron:udp is not an IPC channel: set it to a channel such as aeron:ipc?term-length=64k",
        );
        check_refused(
            |context| context.replication_channel.clear(),
            "aeron.archive.replication.channel= is not set: set it to a channel such as aeron:udp?endpoint=localhost:0",
        );
        check_refused(
            |context| context.recording_events_enabled = true,
            "aeron.archive.recording.events.channel= is not set, and recording events are enabled: set it to a channel such as aeron:udp?control-mode=dynamic|control=localhost:8030",
        );
    }

    #[test]
    fn the_error_of_an_unknown_class_or_name_has_the_setting_and_the_remedy() {
        check_refused(
            |context| context.authenticator_supplier = "com.acme.Guard".into(),
            "aeron.archive.authenticator.supplier=com.acme.Guard is a class that cannot run here: use io.aeron.samples.archive.SampleAuthenticatorSupplier with aeron.archive.users.file, or leave it out to accept everybody",
        );
        check_refused(
            |context| context.authenticator_supplier = USERS_FILE.into(),
            "aeron.archive.users.file= is not set, and io.aeron.samples.archive.SampleAuthenticatorSupplier accepts the users in it: set it to a TOML file of users, secrets and roles",
        );
        check_refused(
            |context| context.authorisation_service_supplier = "com.acme.Rights".into(),
            "aeron.archive.authorisation.service.supplier=com.acme.Rights is a class that cannot run here: use ALLOW_ALL or DENY_ALL",
        );
        check_refused(
            |context| context.record_checksum = "com.acme.Sum".into(),
            "aeron.archive.record.checksum=com.acme.Sum is not known: use CRC-32 or CRC-32C",
        );
        check_refused(
            |context| context.replayer_idle_strategy = "com.acme.Rest".into(),
            "aeron.archive.replayer.idle.strategy=com.acme.Rest is not known: could not find idle strategy com.acme.Rest: use one of backoff, yield, spin, noop, sleep-ns, sleeping, sleep-ms",
        );
    }

    #[test]
    fn a_users_file_selects_authentication_by_users_and_authorisation_by_roles() {
        let context = ArchiveContext {
            users_file: Some("users.toml".into()),
            ..valid()
        };
        let choices = context.conclude().unwrap();
        let users = AuthenticatorKind::UsersFile("users.toml".into());
        assert_eq!(choices.authenticator, users);
        assert_eq!(choices.authorisation, AuthorisationKind::Roles);
        check_refused(
            |context| {
                context.users_file = Some("users.toml".into());
                context.authenticator_supplier = ACCEPT_ALL.into();
            },
            "aeron.archive.authenticator.supplier=io.aeron.security.DefaultAuthenticatorSupplier accepts everybody, and aeron.archive.users.file is set: leave out one of the two",
        );
    }

    #[test]
    fn idle_strategies_and_checksums_are_parsed_from_short_names_and_class_names() {
        let context = ArchiveContext {
            idle_strategy: "org.agrona.concurrent.YieldingIdleStrategy".into(),
            replayer_idle_strategy: "spin".into(),
            record_checksum: "org.agrona.checksum.Crc32c".into(),
            replay_checksum: "CRC-32".into(),
            authenticator_supplier: USERS_FILE.into(),
            users_file: Some("users.toml".into()),
            authorisation_service_supplier: "DENY_ALL".into(),
            ..valid()
        };
        let expected = ArchiveChoices {
            conductor_idle_strategy: IdleStrategySpec::Yielding,
            recorder_idle_strategy: IdleStrategySpec::Yielding,
            replayer_idle_strategy: IdleStrategySpec::BusySpin,
            record_checksum: Some(Checksum::Crc32c),
            replay_checksum: Some(Checksum::Crc32),
            authenticator: AuthenticatorKind::UsersFile("users.toml".into()),
            authorisation: AuthorisationKind::DenyAll,
        };
        assert_eq!(context.conclude().unwrap(), expected);
    }
}
