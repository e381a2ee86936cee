//! `_ArchiveFiles`: the files of an archive, for the commands of `aeron archive`. This module is not public.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use aeron_archive::catalog::CatalogEntry;
use aeron_archive::checksum::Checksum;
use aeron_archive::mark_file::{self, MarkFileState};
use aeron_archive::ownership::Maintenance;
use aeron_archive::storage::{Access, Directory};
use aeron_archive::tool::{
    ArchiveFiles, RebuiltChannel, RecordedFrames, ToolError, TornDecision, Verification,
    VerifyOptions, rebuild_catalog,
};
use aeron_objects::reading::CopiedDirectory;
use pyo3::prelude::*;

use super::errors::from_ownership;
use super::extensions::PyCopiedRange;
use super::recording::PyRecording;
use crate::cnc_file::PyErrorObservation;
use crate::errors::raise;
use crate::snapshot::Octets;

/// Adds the classes and functions for the command line to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyArchiveFiles>()?;
    module.add_class::<PyArchiveMark>()?;
    module.add_class::<PyCatalogEntry>()?;
    module.add_class::<PyCompaction>()?;
    module.add_class::<PyRecordedFrame>()?;
    module.add_class::<PyRecordedFrames>()?;
    module.add_class::<PyVerification>()?;
    module.add_function(wrap_pyfunction!(rebuild_archive_catalog, module)?)?;
    module.add_function(wrap_pyfunction!(read_archive_mark, module)?)
}

/// Contents of the mark file of an archive.
#[pyclass(frozen, get_all, module = "aeron._pipeline", name = "_ArchiveMark")]
pub struct PyArchiveMark {
    path: PathBuf,
    version: i32,
    activity_timestamp_ms: i64,
    start_timestamp_ms: i64,
    pid: i64,
    archive_id: i64,
    control_stream_id: i32,
    local_control_stream_id: i32,
    events_stream_id: i32,
    error_buffer_length: i32,
    control_channel: String,
    local_control_channel: String,
    events_channel: String,
    aeron_directory: String,
    is_active: bool,
    errors: Vec<Py<PyErrorObservation>>,
}

/// An entry of the catalog. It may be valid, invalid or deleted.
#[pyclass(frozen, get_all, module = "aeron._pipeline", name = "_CatalogEntry")]
pub struct PyCatalogEntry {
    state: &'static str,
    length: usize,
    checksum: i32,
    control_session_id: i64,
    correlation_id: i64,
    recording: Py<PyRecording>,
}

/// The result of the verification of a recording.
#[pyclass(frozen, module = "aeron._pipeline", name = "_Verification")]
pub struct PyVerification {
    verification: Verification,
    checksum: Option<Checksum>,
}

/// Counts of the entries, bytes and files that a compaction removed.
#[pyclass(frozen, get_all, module = "aeron._pipeline", name = "_Compaction")]
pub struct PyCompaction {
    entries: usize,
    bytes: u64,
    files: usize,
}

/// A frame of a recording.
#[pyclass(frozen, get_all, module = "aeron._pipeline", name = "_RecordedFrame")]
pub struct PyRecordedFrame {
    position: i64,
    end_position: i64,
    flags: u8,
    is_padding: bool,
    reserved_value: i64,
    payload: Octets,
}

/// An iterator over the frames of a recording.
#[pyclass(frozen, module = "aeron._pipeline", name = "_RecordedFrames")]
pub struct PyRecordedFrames {
    frames: Mutex<RecordedFrames<Directory>>,
}

/// The files of an archive. If `write` is set, no archive can use the directory until the end of the `with` block.
#[pyclass(frozen, module = "aeron._pipeline", name = "_ArchiveFiles")]
pub struct PyArchiveFiles {
    directory: CopiedDirectory,
    files: Mutex<ArchiveFiles<Directory>>,
    maintenance: Mutex<Option<Maintenance>>,
}

/// Reads the mark file of the archive in `directory`. Returns `None` if there is no mark file.
///
/// The mark file may be in another directory. A link file in `directory` then contains the path of that directory.
#[pyfunction]
#[pyo3(name = "_read_archive_mark")]
fn read_archive_mark(py: Python<'_>, directory: PathBuf) -> PyResult<Option<PyArchiveMark>> {
    let linked = mark_file::read_link(&Directory::new(&directory))
        .map_err(|error| unusable(error.to_string()))?;
    let directory = linked.map_or(directory, PathBuf::from);
    let storage = Directory::new(&directory);
    let state = mark_file::read(&storage).map_err(|error| unusable(error.to_string()))?;
    let Some(state) = state else {
        return Ok(None);
    };
    let errors = mark_file::read_errors(&storage).map_err(|error| unusable(error.to_string()))?;
    let errors = errors
        .into_iter()
        .map(|seen| Py::new(py, PyErrorObservation::from(seen)));
    let errors = errors.collect::<PyResult<_>>()?;
    let path = directory.join(mark_file::MARK_FILE);
    Ok(Some(PyArchiveMark::new(path, state, errors)))
}

impl PyArchiveMark {
    fn new(path: PathBuf, state: MarkFileState, errors: Vec<Py<PyErrorObservation>>) -> Self {
        let is_active = state.is_active(now_ms());
        let owner = state.owner;
        Self {
            path,
            version: state.version.0,
            activity_timestamp_ms: state.activity_timestamp_ms,
            start_timestamp_ms: owner.start_timestamp_ms,
            pid: owner.pid,
            archive_id: owner.archive_id,
            control_stream_id: owner.control_stream_id,
            local_control_stream_id: owner.local_control_stream_id,
            events_stream_id: owner.events_stream_id,
            error_buffer_length: state.error_buffer_length,
            control_channel: owner.control_channel,
            local_control_channel: owner.local_control_channel,
            events_channel: owner.events_channel,
            aeron_directory: owner.aeron_directory,
            is_active,
            errors,
        }
    }
}

impl PyCatalogEntry {
    fn new(py: Python<'_>, entry: &CatalogEntry) -> PyResult<Self> {
        let descriptor = entry.descriptor.clone();
        Ok(Self {
            state: entry.state.name(),
            length: entry.body_length(),
            checksum: entry.stored_checksum(),
            control_session_id: descriptor.control_session_id,
            correlation_id: descriptor.correlation_id,
            recording: Py::new(py, PyRecording::from(descriptor))?,
        })
    }
}

#[pymethods]
impl PyVerification {
    #[getter]
    fn recording_id(&self) -> i64 {
        self.verification.recording_id
    }

    #[getter]
    fn state(&self) -> &'static str {
        self.verification.state.name()
    }

    #[getter]
    fn recorded_stop_position(&self) -> i64 {
        self.verification.recorded_stop_position
    }

    /// Name of the segment file whose last fragment may be torn; `None` if there is no such fragment, or if the index
    /// proves that the fragment was not acknowledged.
    #[getter]
    fn torn_file(&self) -> Option<&str> {
        let torn = self.verification.torn.as_ref();
        let undecided = torn.filter(|torn| !torn.is_unacknowledged);
        undecided.map(|torn| torn.name.as_str())
    }

    /// Position at which the fragment that may be torn begins.
    #[getter]
    fn torn_position(&self) -> Option<i64> {
        self.verification.torn.as_ref().map(|torn| torn.position)
    }

    /// Returns the stop position in the files. A fragment that may be torn counts if `keep_torn` is set.
    fn stop_position(&self, keep_torn: bool) -> i64 {
        self.verification.stop_position_by(decision(keep_torn))
    }

    /// Returns the reason why the recording is broken; `None` if it is not. A fragment that may be torn counts as
    /// recorded if `keep_torn` is set.
    fn problem(&self, keep_torn: bool) -> Option<String> {
        self.verification.problem_by(decision(keep_torn))
    }
}

#[pymethods]
impl PyRecordedFrames {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self) -> PyResult<Option<PyRecordedFrame>> {
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        let frame = frames.next_frame().map_err(|error| from_tool(&error))?;
        Ok(frame.map(|frame| PyRecordedFrame {
            position: frame.position(),
            end_position: frame.end_position(),
            flags: frame.flags(),
            is_padding: frame.is_padding(),
            reserved_value: frame.reserved_value(),
            payload: Octets(frame.payload().to_vec()),
        }))
    }
}

#[pymethods]
impl PyArchiveFiles {
    #[new]
    #[pyo3(signature = (directory, *, write = false))]
    fn new(directory: PathBuf, write: bool) -> PyResult<Self> {
        let maintenance = match write {
            true => Some(
                Maintenance::begin(&directory, now_ms()).map_err(|error| from_ownership(&error))?,
            ),
            false => None,
        };
        let access = match write {
            true => Access::Write,
            false => Access::Read,
        };
        let files = ArchiveFiles::open(Directory::new(&directory), access)
            .map_err(|error| from_tool(&error))?;
        Ok(Self {
            directory: CopiedDirectory::new(directory),
            files: Mutex::new(files),
            maintenance: Mutex::new(maintenance),
        })
    }

    /// Returns the checksum of a recording's frames: its name, ``"no checksums"``, or `None` if no frame can be read.
    fn frame_checksum(&self, py: Python<'_>, recording_id: i64) -> PyResult<Option<String>> {
        let found = py.detach(|| self.lock().frame_checksum(recording_id));
        let found = found.map_err(|error| from_tool(&error))?;
        Ok(found.map(|checksum| match checksum {
            Some(checksum) => checksum.to_string(),
            None => "no checksums".to_owned(),
        }))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Permits archives to use the directory again.
    fn __exit__(
        &self,
        _type: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        *self
            .maintenance
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = None;
    }

    #[getter]
    fn capacity(&self) -> u64 {
        self.lock().catalog().capacity()
    }

    fn grow(&self, capacity: u64) -> PyResult<()> {
        self.lock()
            .grow(capacity)
            .map_err(|error| from_tool(&error))
    }

    fn entries(&self, py: Python<'_>) -> PyResult<Vec<PyCatalogEntry>> {
        let files = self.lock();
        let entries = files.catalog().entries().iter();
        entries
            .map(|entry| PyCatalogEntry::new(py, entry))
            .collect()
    }

    /// Returns the ranges of the recordings with copies in object storage.
    fn copied_ranges(&self) -> PyResult<Vec<PyCopiedRange>> {
        let files = self.lock();
        let entries = files.catalog().entries().iter();
        let ranges =
            entries.filter_map(|entry| self.directory.range(&entry.descriptor).transpose());
        ranges
            .map(|range| range.map(PyCopiedRange::from))
            .collect::<Result<_, _>>()
            .map_err(|error| raise("ArchiveDirectoryError", error.to_string()))
    }

    fn entry(&self, py: Python<'_>, recording_id: i64) -> PyResult<PyCatalogEntry> {
        let files = self.lock();
        let entry = files
            .entry(recording_id)
            .map_err(|error| from_tool(&error))?;
        PyCatalogEntry::new(py, entry)
    }

    /// Returns the frames of a recording, or of a range of time in microseconds since the epoch.
    #[pyo3(signature = (recording_id, *, since_us = None, until_us = None))]
    fn frames(
        &self,
        recording_id: i64,
        since_us: Option<i64>,
        until_us: Option<i64>,
    ) -> PyResult<PyRecordedFrames> {
        let frames = self.lock().frames_in_time(recording_id, since_us, until_us);
        let frames = Mutex::new(frames.map_err(|error| from_tool(&error))?);
        Ok(PyRecordedFrames { frames })
    }

    fn mark(&self, recording_id: i64, is_valid: bool) -> PyResult<bool> {
        let marked = self.lock().mark(recording_id, is_valid);
        marked.map_err(|error| from_tool(&error))
    }

    fn segment_bytes(&self, recording_id: i64, all_segments: bool) -> PyResult<u64> {
        let bytes = self.lock().segment_bytes(recording_id, all_segments);
        bytes.map_err(|error| from_tool(&error))
    }

    fn verify(
        &self,
        py: Python<'_>,
        recording_id: i64,
        all_segments: bool,
        checksum: Option<&str>,
        on_progress: Py<PyAny>,
    ) -> PyResult<PyVerification> {
        let checksum = checksum.map(parse_checksum).transpose()?;
        let options = VerifyOptions {
            all_segments,
            checksum,
        };
        let verification = with_progress(py, &on_progress, |progress| {
            self.lock().verify(recording_id, &options, progress)
        })?;
        Ok(PyVerification {
            verification,
            checksum,
        })
    }

    /// Corrects the catalog entry of the recording. Returns its new state.
    fn repair(&self, verification: &PyVerification, keep_torn: bool) -> PyResult<&'static str> {
        let PyVerification {
            verification,
            checksum,
        } = verification;
        let repaired = self
            .lock()
            .repair(verification, decision(keep_torn), *checksum, now_ms());
        repaired
            .map(|repair| repair.state.name())
            .map_err(|error| from_tool(&error))
    }

    /// Writes the checksums of frames. Returns the number of these frames.
    fn write_checksums(
        &self,
        py: Python<'_>,
        recording_id: i64,
        checksum: &str,
        all_segments: bool,
        on_progress: Py<PyAny>,
    ) -> PyResult<u64> {
        let checksum = parse_checksum(checksum)?;
        let report = with_progress(py, &on_progress, |progress| {
            self.lock()
                .write_checksums(recording_id, checksum, all_segments, progress)
        })?;
        Ok(report.frames)
    }

    fn orphans(&self, recording_id: Option<i64>) -> PyResult<Vec<String>> {
        let orphans = self.lock().orphans(recording_id);
        orphans.map_err(|error| from_tool(&error))
    }

    fn delete_orphan(&self, name: &str) -> PyResult<()> {
        let deleted = self.lock().delete_orphan(name);
        deleted.map_err(|error| from_tool(&error))
    }

    fn compact(&self, py: Python<'_>) -> PyResult<PyCompaction> {
        let compaction = py
            .detach(|| self.lock().compact())
            .map_err(|error| from_tool(&error))?;
        Ok(PyCompaction {
            entries: compaction.entries,
            bytes: compaction.bytes,
            files: compaction.files,
        })
    }
}

impl PyArchiveFiles {
    fn lock(&self) -> MutexGuard<'_, ArchiveFiles<Directory>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The recordings of a rebuilt catalog with notes about their entries, and those that were left out with the reason.
type RebuiltEntries = (Vec<(i64, Vec<String>)>, Vec<(i64, String)>);

/// Writes a lost catalog again from the segment files of an archive. Returns the recordings with notes about their
/// entries, and the recordings that were left out with the reason.
#[pyfunction(name = "_rebuild_archive_catalog", signature = (directory, channel, on_progress))]
fn rebuild_archive_catalog(
    py: Python<'_>,
    directory: PathBuf,
    channel: Option<&str>,
    on_progress: Py<PyAny>,
) -> PyResult<RebuiltEntries> {
    let channel = channel
        .map(RebuiltChannel::parse)
        .transpose()
        .map_err(|error| raise("InvalidChannelError", error.to_string()))?
        .unwrap_or_default();
    let _maintenance =
        Maintenance::begin(&directory, now_ms()).map_err(|error| from_ownership(&error))?;
    let storage = Directory::new(&directory);
    let rebuilt = with_progress(py, &on_progress, |progress| {
        rebuild_catalog(&storage, &channel, progress)
    })?;
    let recordings = rebuilt.recordings.into_iter();
    let skipped = rebuilt.skipped.into_iter();
    Ok((
        recordings.map(|it| (it.recording_id, it.notes)).collect(),
        skipped.map(|it| (it.recording_id, it.reason)).collect(),
    ))
}

/// Runs `work` without the GIL. After each segment, `on_progress` is called with the number of bytes of the segment.
/// An exception of `on_progress` ends the work.
fn with_progress<T: Send>(
    py: Python<'_>,
    on_progress: &Py<PyAny>,
    work: impl Send + FnOnce(&mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<T, ToolError>,
) -> PyResult<T> {
    py.detach(|| {
        let mut raised = None;
        let mut progress = |bytes: u64| {
            let called = Python::attach(|py| {
                py.check_signals()?;
                on_progress.call1(py, (bytes,)).map(drop)
            });
            match called {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    raised = Some(error);
                    ControlFlow::Break(())
                }
            }
        };
        let done = work(&mut progress);
        match raised {
            Some(error) => Err(error),
            None => done.map_err(|error| from_tool(&error)),
        }
    })
}

const fn decision(keep_torn: bool) -> TornDecision {
    match keep_torn {
        true => TornDecision::Keep,
        false => TornDecision::Truncate,
    }
}

fn parse_checksum(name: &str) -> PyResult<Checksum> {
    name.parse()
        .map_err(|error: aeron_archive::checksum::UnknownChecksum| {
            raise("InvalidArgumentError", error.to_string())
        })
}

#[cold]
fn from_tool(error: &ToolError) -> PyErr {
    unusable(error.to_string())
}

#[cold]
fn unusable(message: String) -> PyErr {
    raise("ArchiveDirectoryError", message)
}

/// Returns milliseconds since the epoch; 0 if the clock is before 1970.
fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as i64)
}
