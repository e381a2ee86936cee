//! Runs operations of an archive's client as `PendingOperation`.

use std::sync::Arc;

use aeron_archive::client::{ArchiveClientError, ArchiveOperation, Result};
use pyo3::prelude::*;

use super::errors::from_archive;
use super::link::Link;
use crate::errors::raise;
use crate::operations::{Operation, Owned, ResultBuilder};

/// A task of a `PendingOperation`: one operation of the archive's client, or several in sequence.
pub trait Task<T>: Send {
    /// Continues without waiting. Returns the result, or `None` if the task is not finished. Later calls return the
    /// same result.
    fn poll(&mut self) -> Result<Option<T>>;
    /// Cancels the task. Returns `false` if the task is already finished.
    fn cancel(&mut self) -> bool;
    /// Correlation id of the latest request; -1 before the first request.
    fn correlation_id(&self) -> i64;
}

impl<T: Clone + Send + 'static> Task<T> for ArchiveOperation<T> {
    fn poll(&mut self) -> Result<Option<T>> {
        ArchiveOperation::poll(self)
    }

    fn cancel(&mut self) -> bool {
        ArchiveOperation::cancel(self)
    }

    fn correlation_id(&self) -> i64 {
        ArchiveOperation::correlation_id(self)
    }
}

/// A task, and the function that creates the Python object of its result.
pub struct ArchiveTask<K, F> {
    task: K,
    /// Keeps the session alive until the operation is dropped.
    link: Arc<Link>,
    /// `None` after the result was taken.
    convert: Option<F>,
}

impl<K, F> ArchiveTask<K, F> {
    pub fn new(task: K, link: &Arc<Link>, convert: F) -> Self {
        Self {
            task,
            link: Arc::clone(link),
            convert: Some(convert),
        }
    }
}

impl<T, K, F> Operation for ArchiveTask<K, ConvertOf<T, F>>
where
    T: Send + 'static,
    K: Task<T>,
    F: FnOnce(Python<'_>, &Owned, &Arc<Link>, T) -> PyResult<Py<PyAny>> + Send + 'static,
{
    fn poll(&mut self) -> bool {
        !matches!(
            self.task.poll(),
            Ok(None) | Err(ArchiveClientError::ReentrantCall)
        )
    }

    fn take_result(&mut self) -> ResultBuilder {
        let (result, convert) = (self.task.poll(), self.convert.take());
        let link = Arc::clone(&self.link);
        Box::new(move |py, owned| match (result, convert) {
            (Ok(Some(value)), Some(convert)) => (convert.0)(py, owned, &link, value),
            (Ok(_), _) => Err(raise("AeronError", "the operation is not finished")),
            (Err(error), _) => Err(from_archive(&error)),
        })
    }

    fn cancel(&mut self) -> bool {
        self.task.cancel()
    }

    fn correlation_id(&self) -> i64 {
        self.task.correlation_id()
    }

    fn check_may_wait(&self) -> aeron_client::Result<()> {
        self.link.archive.aeron().check_may_wait()
    }
}

/// A function that creates the Python object for a `T`.
pub struct ConvertOf<T, F>(F, std::marker::PhantomData<fn(T)>);

impl<T, F> ConvertOf<T, F> {
    pub fn new(convert: F) -> Self {
        Self(convert, std::marker::PhantomData)
    }
}
