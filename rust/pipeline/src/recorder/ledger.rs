//! [`Ledger`]: the counts of a query over all its runs, and the ranges of its streams that were not recorded.
//!
//! A session whose stream has not ended is *open*. If its image goes away, the join position of the session's next
//! image shows how many bytes were missed. If no image comes back, the number of missed bytes is unknown. The ledger
//! then has a gap of unknown length, not a gap of 0 bytes.

use aeron_archive::storage::Directory;

use super::shared::SharedRecorder;
use super::statistics::Statistics;
use crate::private::{
    OpenSession, PrivateArchive, RecordingGap, SESSION_RETURN_TIMEOUT_MS, SessionKey, Totals,
};

/// The totals of a query, kept in its private archive. Owned by the recorder's thread.
pub(super) struct Ledger {
    storage: Directory,
    totals: Totals,
    /// Whether the query has recorded before this connection. If so, and an unknown session joins after position 0, the
    /// earlier part of its stream was missed.
    pub has_run_before: bool,
    /// Whether a change must be written to disk soon, because a kill must not lose it.
    is_urgent: bool,
}

/// Description of an image at the start of its recording.
pub(super) struct JoinedImage<'a> {
    /// Session of the image.
    pub key: &'a SessionKey,
    /// The recording that begins.
    pub recording_id: i64,
    /// Position of the image's first frame.
    pub join_position: i64,
    /// Head of the session's earlier recording, if bytes between this head and the join position were missed.
    pub missed_since: Option<i64>,
    /// Whether the archive has an earlier recording of the session.
    pub is_known: bool,
    /// Reason why nothing was recorded between the two recordings.
    pub reason: &'a str,
}

/// Start and end of a gap in a session's stream, as far as known.
#[derive(Clone, Copy, Debug, Default)]
struct GapBounds {
    from: Option<i64>,
    to: Option<i64>,
}

impl Ledger {
    /// Reads the totals of an open archive, and publishes them.
    pub fn open(archive: &PrivateArchive<Directory>, shared: &SharedRecorder) -> Self {
        let mut ledger = Self {
            storage: archive.storage().clone(),
            totals: Totals::default(),
            has_run_before: archive.has_recorded(),
            is_urgent: false,
        };
        match Totals::load(&ledger.storage) {
            Ok(None) => {}
            Ok(Some(totals)) => ledger.resume(totals, archive, shared),
            Err(error) => ledger.add_unknown(
                None,
                GapBounds::default(),
                format!("the totals of earlier runs cannot be read: {error}"),
                shared,
            ),
        }
        ledger
    }

    fn resume(
        &mut self,
        totals: Totals,
        archive: &PrivateArchive<Directory>,
        shared: &SharedRecorder,
    ) {
        self.has_run_before |= totals.written_ms > 0;
        self.totals = totals;
        for (name, number) in shared.statistics.sums() {
            number.set(self.totals.numbers.get(name).copied().unwrap_or(0));
        }
        let written_ms = self.totals.written_ms;
        for session in &mut self.totals.open_sessions {
            session.gone_ms.get_or_insert(written_ms);
        }
        self.settle_after_kill(archive, shared);
        self.show(shared);
        self.log_totals(shared);
    }

    /// Settles the gaps without an exact end. A kill leaves such a gap if the recording after the gap has begun and the
    /// exact end is not stored yet. If this recording has a message, the join position stays the end of the gap.
    /// Otherwise the gap is removed, and the session's next recording reports it again.
    fn settle_after_kill(&mut self, archive: &PrivateArchive<Directory>, shared: &SharedRecorder) {
        let pending: Vec<i64> = self
            .totals
            .gaps
            .iter()
            .filter_map(|gap| gap.recording)
            .collect();
        for recording_id in pending {
            let mut recordings = archive.recordings();
            let recording = recordings.find(|found| found.stream.recording_id() == recording_id);
            match recording.and_then(|recording| recording.published.head()) {
                None => self.withdraw(recording_id, shared),
                Some(_) => {
                    if let Some(gap) = self.gap_before(recording_id) {
                        gap.recording = None;
                    }
                }
            }
        }
    }

    /// Logs one line with the totals of earlier runs, if they have gaps or lost bytes.
    fn log_totals(&self, shared: &SharedRecorder) {
        let Statistics {
            gap_bytes,
            lost_bytes,
            unknown_gaps,
            ..
        } = &shared.statistics;
        let counted = [gap_bytes.get(), lost_bytes.get(), unknown_gaps.get()];
        if counted != [0; 3] {
            let [gap_bytes, lost_bytes, unknown_gaps] = counted;
            shared.add_line(format!(
                "totals go on: gapBytes {gap_bytes}, lostBytes {lost_bytes}, gaps of unknown length {unknown_gaps}"
            ));
        }
    }

    /// Registers the start of a recording. Call it before the first frame is recorded.
    pub fn begin(&mut self, joined: &JoinedImage<'_>, shared: &SharedRecorder) {
        self.is_urgent = true;
        let JoinedImage {
            key,
            join_position,
            missed_since,
            ..
        } = *joined;
        let sessions = &mut self.totals.open_sessions;
        match sessions.iter_mut().find(|session| session.key == *key) {
            Some(session) => session.gone_ms = None,
            None => sessions.push(OpenSession {
                key: key.clone(),
                gone_ms: None,
            }),
        }
        debug_assert!(
            self.gap_before(joined.recording_id).is_none(),
            "recording {} begins, but a gap before it is counted already",
            joined.recording_id
        );
        if let Some(from) = missed_since {
            debug_assert!(
                from < join_position,
                "nothing can be missed from {from} to {join_position}"
            );
            let bytes = join_position - from;
            self.totals.push_gap(RecordingGap {
                stream: Some(key.stream_id),
                session: Some(key.session_id),
                from: Some(from),
                to: Some(join_position),
                bytes: Some(bytes),
                reason: joined.reason.to_owned(),
                recording: Some(joined.recording_id),
            });
            shared.statistics.gap_bytes.add(bytes);
            self.show(shared);
        } else if self.has_run_before && !joined.is_known && join_position > 0 {
            let reason = format!(
                "the session is new to this query; what it sent before is not known ({})",
                joined.reason
            );
            let bounds = GapBounds {
                from: None,
                to: Some(join_position),
            };
            self.add_unknown(Some(key), bounds, reason, shared);
        }
    }

    /// Sets the exact length of the gap before a recording. The length is known after the recording's first message has
    /// begun or its stream has ended. Returns the changed gap.
    pub fn settle(
        &mut self,
        recording_id: i64,
        bytes: i64,
        shared: &SharedRecorder,
    ) -> Option<RecordingGap> {
        let gap = self.gap_before(recording_id)?;
        let more = bytes - gap.bytes.unwrap_or(0);
        debug_assert!(
            more >= 0,
            "the gap before recording {recording_id} has {bytes} bytes, {} fewer than its image had missed",
            -more
        );
        gap.bytes = Some(bytes);
        gap.to = gap.from.map(|from| from + bytes);
        gap.recording = None;
        let settled = gap.clone();
        shared.statistics.gap_bytes.add(more);
        self.is_urgent = true;
        self.show(shared);
        Some(settled)
    }

    /// Removes the gap before a recording that ended before its first message began. The session's next recording
    /// reports the gap again, with a later end.
    pub fn withdraw(&mut self, recording_id: i64, shared: &SharedRecorder) {
        let Some(gap) = self.gap_before(recording_id) else {
            return;
        };
        let bytes = gap.bytes.unwrap_or(0);
        shared.statistics.gap_bytes.add(-bytes);
        let is_other = |gap: &RecordingGap| gap.recording != Some(recording_id);
        self.totals.gaps.retain(is_other);
        self.is_urgent = true;
        self.show(shared);
    }

    fn gap_before(&mut self, recording_id: i64) -> Option<&mut RecordingGap> {
        let mut gaps = self.totals.gaps.iter_mut();
        gaps.find(|gap| gap.recording == Some(recording_id))
    }

    /// Registers that the image of a session went away. `is_end_of_stream` says whether the stream itself has ended.
    pub fn end(&mut self, key: &SessionKey, is_end_of_stream: bool, now_ms: i64) {
        let sessions = &mut self.totals.open_sessions;
        if is_end_of_stream {
            sessions.retain(|session| session.key != *key);
        } else if let Some(session) = sessions.iter_mut().find(|session| session.key == *key) {
            session.gone_ms = Some(now_ms);
        }
        self.is_urgent = true;
    }

    /// Stops waiting for sessions that did not come back in time, and adds a gap of unknown length for each of them.
    /// `head_of` returns the position up to which a session was recorded.
    pub fn give_up_absent(
        &mut self,
        now_ms: i64,
        subscribed_since_ms: Option<i64>,
        head_of: impl Fn(&SessionKey) -> Option<i64>,
        shared: &SharedRecorder,
    ) {
        let Some(since) = subscribed_since_ms else {
            return;
        };
        let is_absent = |session: &OpenSession| {
            let gone_ms = session.gone_ms.map(|gone_ms| gone_ms.max(since));
            gone_ms.is_some_and(|gone_ms| now_ms - gone_ms >= SESSION_RETURN_TIMEOUT_MS)
        };
        if !self.totals.open_sessions.iter().any(is_absent) {
            return;
        }
        let sessions = std::mem::take(&mut self.totals.open_sessions);
        let (absent, open): (Vec<_>, Vec<_>) = sessions.into_iter().partition(is_absent);
        self.totals.open_sessions = open;
        for session in absent {
            let reason = format!(
                "the session did not come back within {} s; what it sent after that position is not known",
                SESSION_RETURN_TIMEOUT_MS / 1000
            );
            let bounds = GapBounds {
                from: head_of(&session.key),
                to: None,
            };
            self.add_unknown(Some(&session.key), bounds, reason, shared);
        }
    }

    /// Stores a gap of unknown length and logs it.
    fn add_unknown(
        &mut self,
        key: Option<&SessionKey>,
        bounds: GapBounds,
        reason: String,
        shared: &SharedRecorder,
    ) {
        let gap = RecordingGap {
            stream: key.map(|key| key.stream_id),
            session: key.map(|key| key.session_id),
            from: bounds.from,
            to: bounds.to,
            bytes: None,
            reason,
            recording: None,
        };
        shared.add_line(gap.to_string());
        self.keep_unknown(gap, shared);
    }

    /// Adds the loss of an earlier archive as one gap for all its sessions. The loss was logged before, when it was
    /// found.
    pub fn add_lost_archive(&mut self, bytes: i64, reason: String, shared: &SharedRecorder) {
        shared.statistics.lost_bytes.add(bytes);
        let gap = RecordingGap {
            stream: None,
            session: None,
            from: None,
            to: None,
            bytes: None,
            reason,
            recording: None,
        };
        self.keep_unknown(gap, shared);
    }

    fn keep_unknown(&mut self, gap: RecordingGap, shared: &SharedRecorder) {
        shared.statistics.unknown_gaps.add(1);
        self.totals.push_gap(gap);
        self.is_urgent = true;
        self.show(shared);
    }

    fn show(&self, shared: &SharedRecorder) {
        let gaps = self.totals.gaps.iter().cloned().collect();
        shared.change(|state| state.gaps = gaps);
    }

    /// Writes the totals if a change must survive a kill.
    pub fn store_urgent(&mut self, now_ms: i64, shared: &SharedRecorder) {
        if self.is_urgent {
            self.store(now_ms, shared);
        }
    }

    /// Writes the totals if they changed.
    pub fn store_changes(&mut self, now_ms: i64, shared: &SharedRecorder) {
        let numbers = &self.totals.numbers;
        let mut sums = shared.statistics.sums();
        if self.is_urgent || sums.any(|(name, sum)| numbers.get(name) != Some(&sum.get())) {
            self.store(now_ms, shared);
        }
    }

    fn store(&mut self, now_ms: i64, shared: &SharedRecorder) {
        let sums = shared.statistics.sums();
        self.totals.numbers = sums
            .map(|(name, sum)| (name.to_owned(), sum.get()))
            .collect();
        self.totals.written_ms = now_ms;
        self.is_urgent = false;
        if let Err(error) = self.totals.store(&self.storage) {
            self.is_urgent = true;
            shared.add_line(format!(
                "the totals of this query cannot be written: {error}"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private::ImageDescription;

    const SESSION: i32 = -7;
    const NOW_MS: i64 = 1_700_000_000_000;

    fn image() -> ImageDescription {
        ImageDescription {
            original_channel: "aeron:ipc".to_owned(),
            stripped_channel: "aeron:ipc".to_owned(),
            stream_id: 1001,
            session_id: SESSION,
            source_identity: "aeron:ipc".to_owned(),
            initial_term_id: 3,
            term_length: 65536,
            mtu_length: 1408,
            join_position: 0,
        }
    }

    fn joined(key: &SessionKey, join_position: i64, missed_since: Option<i64>) -> JoinedImage<'_> {
        JoinedImage {
            key,
            recording_id: 5,
            join_position,
            missed_since,
            is_known: missed_since.is_some(),
            reason: "sent while no query ran",
        }
    }

    struct Runs {
        directory: tempfile::TempDir,
        key: SessionKey,
    }

    impl Runs {
        fn new() -> Self {
            Self {
                directory: tempfile::tempdir().unwrap(),
                key: SessionKey::of_image(&image()),
            }
        }

        /// Starts the next run of the query. Returns its ledger, and the shared state that other threads read.
        fn start(&self) -> (Ledger, SharedRecorder) {
            let storage = Directory::new(self.directory.path());
            let archive = PrivateArchive::open(storage.clone(), &[], 1 << 30, NOW_MS)
                .unwrap()
                .0;
            let shared = SharedRecorder::default();
            (Ledger::open(&archive, &shared), shared)
        }
    }

    fn is_counted(shared: &SharedRecorder, gap_bytes: i64, unknown_gaps: i64) -> bool {
        let statistics = &shared.statistics;
        (statistics.gap_bytes.get(), statistics.unknown_gaps.get()) == (gap_bytes, unknown_gaps)
    }

    #[test]
    fn a_session_that_does_not_come_back_in_time_is_counted_as_a_gap_of_unknown_length() {
        let runs = Runs::new();
        let (mut ledger, shared) = runs.start();
        ledger.begin(&joined(&runs.key, 0, None), &shared);
        ledger.end(&runs.key, false, NOW_MS);
        ledger.store_changes(NOW_MS, &shared);

        let (mut ledger, shared) = runs.start();
        let since = NOW_MS + 500_000;
        let in_time = since + SESSION_RETURN_TIMEOUT_MS - 1;
        ledger.give_up_absent(in_time, None, |_| Some(640), &shared);
        ledger.give_up_absent(in_time, Some(since), |_| Some(640), &shared);
        assert!(is_counted(&shared, 0, 0));
        ledger.give_up_absent(in_time + 1, Some(since), |_| Some(640), &shared);
        ledger.give_up_absent(in_time + 2, Some(since), |_| Some(640), &shared);
        assert!(is_counted(&shared, 0, 1));
        let gaps = shared.gaps();
        assert_eq!(
            (gaps[0].from, gaps[0].to, gaps[0].bytes),
            (Some(640), None, None)
        );
        assert_eq!(gaps[0].session, Some(SESSION));
        let lines = shared.take_lines();
        assert!(
            lines[0].contains("did not come back within 60 s"),
            "{lines:?}"
        );
        assert_eq!(lines.len(), 1);
    }

    #[test]
    fn a_session_with_an_ended_stream_is_never_counted_as_a_gap() {
        let runs = Runs::new();
        let (mut ledger, shared) = runs.start();
        ledger.begin(&joined(&runs.key, 0, None), &shared);
        ledger.end(&runs.key, true, NOW_MS);
        ledger.give_up_absent(i64::MAX, Some(NOW_MS), |_| None, &shared);
        assert!(is_counted(&shared, 0, 0));
    }

    #[test]
    fn a_gap_is_counted_at_the_join_and_corrected_at_the_first_message() {
        let runs = Runs::new();
        let (mut ledger, shared) = runs.start();
        ledger.begin(&joined(&runs.key, 1000 * 32, Some(64)), &shared);
        assert!(is_counted(&shared, 1000 * 32 - 64, 0));
        let gap = ledger.settle(5, 1001 * 32 - 64, &shared).unwrap();
        assert_eq!((gap.from, gap.to), (Some(64), Some(1001 * 32)));
        assert!(is_counted(&shared, 1001 * 32 - 64, 0));
        assert_eq!(ledger.settle(5, 32, &shared), None, "a gap is settled once");
    }

    #[test]
    fn the_gap_before_a_recording_without_a_message_is_part_of_the_next_gap() {
        let runs = Runs::new();
        let (mut ledger, shared) = runs.start();
        ledger.begin(&joined(&runs.key, 640, Some(64)), &shared);
        ledger.withdraw(5, &shared);
        ledger.begin(&joined(&runs.key, 960, Some(64)), &shared);
        assert!(is_counted(&shared, 960 - 64, 0));
        assert_eq!(shared.gaps().len(), 1);
    }

    #[test]
    fn a_kill_keeps_the_sums_and_removes_the_gap_before_a_recording_without_a_message() {
        let runs = Runs::new();
        let (mut ledger, shared) = runs.start();
        ledger.add_lost_archive(96, "gone".to_owned(), &shared);
        ledger.begin(&joined(&runs.key, 640, Some(64)), &shared);
        ledger.store_urgent(NOW_MS, &shared);
        drop(ledger);
        let (ledger, shared) = runs.start();
        assert!(is_counted(&shared, 0, 1));
        assert_eq!(shared.statistics.lost_bytes.get(), 96);
        assert!(ledger.has_run_before);
        assert_eq!(ledger.totals.open_sessions[0].gone_ms, Some(NOW_MS));
    }

    #[test]
    fn totals_that_cannot_be_read_are_counted_as_a_gap_of_unknown_length() {
        let runs = Runs::new();
        runs.start();
        std::fs::write(runs.directory.path().join(crate::private::TOTALS_FILE), "{").unwrap();
        let (_, shared) = runs.start();
        assert!(is_counted(&shared, 0, 1));
        assert!(shared.take_lines()[0].contains("the totals of earlier runs cannot be read"));
    }

    #[test]
    fn a_new_session_that_joins_after_position_0_is_a_gap_only_if_the_query_ran_before() {
        let runs = Runs::new();
        let (mut ledger, shared) = runs.start();
        ledger.begin(&joined(&runs.key, 640, None), &shared);
        assert!(is_counted(&shared, 0, 0), "the first run misses nothing");
        ledger.store_urgent(NOW_MS, &shared);
        let (mut ledger, shared) = runs.start();
        ledger.begin(&joined(&runs.key, 640, None), &shared);
        assert!(is_counted(&shared, 0, 1));
        ledger.begin(&joined(&runs.key, 0, None), &shared);
        assert!(is_counted(&shared, 0, 1), "joins at position 0");
    }
}
