//! [`ObjectLocation`]: the URL of the object storage and its settings; [`ObjectStorage`]: the open storage.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aeron_archive::objects::RecordingIdentity;
use aeron_archive::server::context::ArchiveContext;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::ObjectError;
use crate::key::{self, MANIFEST_NAME, SegmentKey};

/// Region if neither a setting nor the environment names one.
const DEFAULT_REGION: &str = "us-east-1";
/// Number of immediate retries of one request. If all of them fail, a copy fails, and is tried again later.
const MAX_RETRIES: usize = 2;

/// Where the copies are. Contains no credentials: those come from the environment of each process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectLocation {
    /// `s3://bucket/prefix` or `file:///directory`.
    pub url: String,
    /// Address of an S3-compatible service; empty for AWS.
    pub endpoint: String,
    /// Region of the bucket; empty for that of the environment.
    pub region: String,
    /// Time limit for a request, in milliseconds.
    pub timeout_ms: u64,
}

/// Open object storage.
#[derive(Clone)]
pub struct ObjectStorage {
    pub(crate) store: Arc<dyn ObjectStore>,
    prefix: Path,
    timeout: Duration,
}

impl ObjectLocation {
    /// Returns the location in the settings of an archive.
    #[must_use]
    pub fn of(context: &ArchiveContext) -> Self {
        Self {
            url: context.objects_url.clone(),
            endpoint: context.objects_endpoint.clone(),
            region: context.objects_region.clone(),
            timeout_ms: (context.objects_timeout_ns / 1_000_000).max(1) as u64,
        }
    }

    /// Returns whether both locations have the same objects: url and endpoint are equal.
    pub(crate) fn is_same_storage(&self, other: &Self) -> bool {
        let storage = |it: &Self| {
            let (url, endpoint) = (
                it.url.trim_end_matches('/'),
                it.endpoint.trim_end_matches('/'),
            );
            (url.to_owned(), endpoint.to_owned())
        };
        storage(self) == storage(other)
    }

    /// Opens the storage. Sends no request.
    ///
    /// # Errors
    /// A text with the reason, and what to do. It does not contain the URL if that has a password.
    pub fn open(&self) -> Result<ObjectStorage, String> {
        const REMEDY: &str = "use s3://bucket/prefix or file:///directory";
        let url = Url::parse(&self.url).map_err(|error| {
            // A text with `@` may contain a password.
            let shown = match self.url.contains('@') {
                true => "...",
                false => &self.url,
            };
            format!("aeron.archive.objects.url={shown} is not a URL ({error}): {REMEDY}")
        })?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "aeron.archive.objects.url contains credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead"
                    .to_owned(),
            );
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(format!(
                "aeron.archive.objects.url={} has a query or a fragment: {REMEDY}",
                self.url
            ));
        }
        let timeout = Duration::from_millis(self.timeout_ms);
        let (store, prefix): (Arc<dyn ObjectStore>, _) = match url.scheme() {
            "file" => (Arc::new(self.directory(&url)?), Path::default()),
            "s3" => {
                let prefix = Path::from_url_path(url.path());
                let prefix = prefix
                    .map_err(|error| format!("aeron.archive.objects.url={}: {error}", self.url))?;
                (Arc::new(self.bucket(&url, timeout)?), prefix)
            }
            scheme => {
                return Err(format!(
                    "aeron.archive.objects.url={} has the scheme {scheme}: {REMEDY}",
                    self.url
                ));
            }
        };
        Ok(ObjectStorage {
            store,
            prefix,
            timeout,
        })
    }

    fn directory(&self, url: &Url) -> Result<LocalFileSystem, String> {
        let failed =
            |error: &dyn fmt::Display| format!("aeron.archive.objects.url={}: {error}", self.url);
        let path: PathBuf = url
            .to_file_path()
            .map_err(|()| failed(&"is not a directory of this machine: use file:///directory"))?;
        std::fs::create_dir_all(&path).map_err(|error| failed(&error))?;
        let store = LocalFileSystem::new_with_prefix(&path).map_err(|error| failed(&error))?;
        Ok(store.with_fsync(true))
    }

    fn bucket(&self, url: &Url, timeout: Duration) -> Result<object_store::aws::AmazonS3, String> {
        // Another part of the process may have chosen its own provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let bucket = url.host_str().ok_or_else(|| {
            format!(
                "aeron.archive.objects.url={} names no bucket: use s3://bucket/prefix",
                self.url
            )
        })?;
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_client_options(
                ClientOptions::new()
                    .with_timeout(timeout)
                    .with_connect_timeout(timeout.min(Duration::from_secs(5)))
                    .with_allow_http(self.endpoint.starts_with("http://")),
            )
            .with_retry(RetryConfig {
                backoff: BackoffConfig::default(),
                max_retries: MAX_RETRIES,
                retry_timeout: timeout,
            });
        if !self.endpoint.is_empty() {
            builder = builder.with_endpoint(self.endpoint.trim_end_matches('/'));
        }
        let has_region = ["AWS_REGION", "AWS_DEFAULT_REGION"]
            .iter()
            .any(|name| std::env::var_os(name).is_some());
        if !self.region.is_empty() {
            builder = builder.with_region(&self.region);
        } else if !has_region {
            builder = builder.with_region(DEFAULT_REGION);
        }
        builder
            .build()
            .map_err(|error| format!("aeron.archive.objects.url={}: {error}", self.url))
    }
}

impl ObjectStorage {
    /// Creates the storage with any implementation, for tests.
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>, timeout: Duration) -> Self {
        Self {
            store,
            prefix: Path::default(),
            timeout,
        }
    }

    pub(crate) fn folder(&self, recording: &RecordingIdentity) -> Path {
        self.prefix.clone().join(key::folder(recording))
    }

    pub(crate) fn segment(&self, recording: &RecordingIdentity, key: &SegmentKey) -> Path {
        self.folder(recording).join(key.name())
    }

    pub(crate) fn manifest(&self, recording: &RecordingIdentity) -> Path {
        self.folder(recording).join(MANIFEST_NAME)
    }

    /// Runs an operation on an object, within the time limit.
    pub(crate) async fn within_time<T>(
        &self,
        object: &Path,
        operation: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, ObjectError> {
        match tokio::time::timeout(self.timeout, operation).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(source)) => Err(ObjectError::Store {
                object: object.to_string(),
                source,
            }),
            Err(_) => Err(ObjectError::Timeout {
                object: object.to_string(),
                timeout: self.timeout,
            }),
        }
    }
}

impl fmt::Debug for ObjectStorage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ObjectStorage")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
