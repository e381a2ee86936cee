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

/// URL and settings of the storage with the copies. Contains no credentials: those come from the environment of each
/// process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectLocation {
    /// `s3://bucket/prefix` or `file:///directory`.
    pub url: String,
    /// Address of an S3-compatible service; empty for AWS.
    pub endpoint: String,
    /// Region of the bucket; if empty, the region of the environment, else `us-east-1`.
    pub region: String,
    /// Time limit for a request, in milliseconds.
    pub timeout_ms: u64,
}

/// Handle on object storage that is open.
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
        // The result is ignored: an error means that another part of the process has installed a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let bucket = url.host_str().ok_or_else(|| {
            format!(
                "aeron.archive.objects.url={} names no bucket: use s3://bucket/prefix",
                self.url
            )
        })?;
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_client_options(client_options(
                timeout,
                self.endpoint.starts_with("http://"),
            ))
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

/// Returns the options of the HTTP client. The time limit is for each wait, so that a long segment can be read over a
/// slow link.
fn client_options(timeout: Duration, is_http_allowed: bool) -> ClientOptions {
    ClientOptions::new()
        .with_timeout_disabled()
        .with_read_timeout(timeout)
        .with_connect_timeout(timeout.min(Duration::from_secs(5)))
        .with_allow_http(is_http_allowed)
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

    /// Returns the object with this name in the folder of a recording.
    pub(crate) fn beside_manifest(&self, recording: &RecordingIdentity, name: &str) -> Path {
        self.folder(recording).join(name)
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use object_store::ObjectStoreExt;
    use tokio::runtime::Builder;

    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(600);
    const PIECES: usize = 12;

    #[test]
    fn an_object_may_take_longer_than_the_time_limit_while_bytes_arrive() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let server = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            assert!(client.read(&mut [0; 4096]).unwrap() > 0);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {PIECES}\r\nETag: \"1\"\r\nLast-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n"
            );
            client.write_all(head.as_bytes()).unwrap();
            for _ in 0..PIECES {
                thread::sleep(TIMEOUT / 6);
                // The client may have given up.
                let _ = client.write_all(b"x");
            }
        });
        let store = AmazonS3Builder::new()
            .with_bucket_name("bucket")
            .with_region(DEFAULT_REGION)
            .with_endpoint(endpoint)
            .with_skip_signature(true)
            .with_client_options(client_options(TIMEOUT, true))
            .with_retry(RetryConfig {
                max_retries: 0,
                ..RetryConfig::default()
            })
            .build()
            .unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let bytes = runtime.block_on(async { store.get(&Path::from("x")).await?.bytes().await });
        assert_eq!(bytes.unwrap().len(), PIECES);
        server.join().unwrap();
    }
}
