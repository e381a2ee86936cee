//! The test hooks of a build with the feature `test-hooks`.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Point;

const VARIABLE: &str = "AERON_PIPELINE_PAUSE";

/// Parsed value of the environment variable.
struct Pause {
    point: Point,
    count: u64,
    file: PathBuf,
    seen: AtomicU64,
}

static PAUSE: OnceLock<Option<Pause>> = OnceLock::new();

/// Sleeps for ever if the environment variable names this point.
#[inline]
pub fn at(point: Point) {
    if let Some(pause) = PAUSE.get_or_init(Pause::of_environment) {
        pause.pass(point);
    }
}

impl Point {
    fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "batch-zero" => Self::BatchZero,
            "planned" => Self::Planned,
            "appended" => Self::Appended,
            "indexed" => Self::Indexed,
            "purged" => Self::Purged,
            "taken-over" => Self::TakenOver,
            _ => return None,
        })
    }
}

impl Pause {
    fn of_environment() -> Option<Self> {
        Self::parse(&std::env::var(VARIABLE).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        Some(Self {
            point: Point::of_name(parts.next()?)?,
            count: parts.next()?.parse().ok()?,
            file: parts.next()?.into(),
            seen: AtomicU64::new(0),
        })
    }

    #[cold]
    fn pass(&self, point: Point) {
        if point != self.point || self.seen.fetch_add(1, Ordering::Relaxed) + 1 != self.count {
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
    fn only_a_whole_setting_makes_a_pause() {
        let pause = Pause::parse("purged:3:/a:b").unwrap();
        assert_eq!(pause.point, Point::Purged);
        assert_eq!(pause.count, 3);
        assert_eq!(pause.file, PathBuf::from("/a:b"));
        pause.pass(Point::Indexed);
        pause.pass(Point::Purged);
        for text in ["", "purged", "purged:x:/a", "nowhere:1:/a"] {
            assert!(Pause::parse(text).is_none(), "{text}");
        }
    }
}
