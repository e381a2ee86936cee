//! The test hooks of a build with the feature `test-hooks`.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Point;

const VARIABLE: &str = "AERON_PIPELINE_PAUSE";

/// Parsed value of the environment variable.
struct Pause {
    point: String,
    count: u64,
    file: PathBuf,
    seen: AtomicU64,
}

static PAUSE: OnceLock<Option<Pause>> = OnceLock::new();

/// Sleeps for ever if the environment variable names this point, and the process reaches it for the n-th time.
#[inline]
pub fn at(point: Point) {
    if let Some(pause) = PAUSE.get_or_init(Pause::of_environment) {
        pause.pass(point);
    }
}

impl Pause {
    fn of_environment() -> Option<Self> {
        Self::parse(&std::env::var(VARIABLE).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        Some(Self {
            point: parts.next()?.to_owned(),
            count: parts.next()?.parse().ok()?,
            file: parts.next()?.into(),
            seen: AtomicU64::new(0),
        })
    }

    #[cold]
    fn pass(&self, point: Point) {
        if point.0 != self.point || self.seen.fetch_add(1, Ordering::Relaxed) + 1 != self.count {
            return;
        }
        // If the file cannot be written, the test fails by its own deadline.
        let _ = std::fs::write(&self.file, "");
        loop {
            std::thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_without_point_or_count_or_file_is_ignored() {
        let pause = Pause::parse("purged:3:/a:b").unwrap();
        assert_eq!(pause.point, "purged");
        assert_eq!(pause.count, 3);
        assert_eq!(pause.file, PathBuf::from("/a:b"));
        pause.pass(Point::INDEXED);
        pause.pass(Point::new("purged"));
        for text in ["", "purged", "purged:1", "purged:x:/a"] {
            assert!(Pause::parse(text).is_none(), "{text}");
        }
    }
}
