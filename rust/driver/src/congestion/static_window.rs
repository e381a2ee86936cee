//! [`StaticWindow`]: a window of constant length.

use super::{CongestionControl, TrackRebuild, WindowUpdate};

/// Always offers the same window.
#[derive(Clone, Copy, Debug)]
pub struct StaticWindow {
    window_length: i32,
}

impl StaticWindow {
    /// Creates a window of `window_length` bytes.
    pub fn new(window_length: i32) -> Self {
        debug_assert!(
            window_length >= 0,
            "no receiver can offer a window of {window_length} bytes"
        );
        StaticWindow { window_length }
    }
}

impl CongestionControl for StaticWindow {
    fn initial_window_length(&self) -> i32 {
        self.window_length
    }

    fn max_window_length(&self) -> i32 {
        self.window_length
    }

    fn on_track_rebuild(&mut self, _rebuild: &TrackRebuild) -> WindowUpdate {
        WindowUpdate {
            window_length: self.window_length,
            is_forced: false,
        }
    }
}
