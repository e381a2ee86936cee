//! Writes the loss of one image to the loss report. A byte that is requested several times is reported once.

use aeron_memory::Words;
use aeron_memory::loss_report::{LossEntry, LossReport, LossSource};

use crate::loss_detector::TermGap;

/// The image's entry in the loss report, and the last gap that it includes.
#[derive(Debug)]
pub struct ImageLoss<W> {
    entry: ImageLossEntry<W>,
    /// Term id of the last gap, and the offset at which it ends.
    last: Option<(i32, usize)>,
}

#[derive(Debug)]
enum ImageLossEntry<W> {
    /// Nothing was lost yet.
    None,
    Created(LossEntry<W>),
    /// The report had no room for an entry, so the losses of this image are not reported.
    Refused,
}

impl<W> Default for ImageLoss<W> {
    fn default() -> Self {
        ImageLoss {
            entry: ImageLossEntry::None,
            last: None,
        }
    }
}

impl<W: Words> ImageLoss<W> {
    /// Adds a gap that was observed at `epoch_ms` to the report.
    ///
    /// `source` is called only for the image's first gap, and returns the identity of the image.
    pub fn on_gap(
        &mut self,
        gap: TermGap,
        epoch_ms: i64,
        report: &mut LossReport<W>,
        source: impl FnOnce() -> LossSource,
    ) {
        let Some(bytes_lost) = self.newly_lost(gap) else {
            return;
        };
        match &self.entry {
            ImageLossEntry::Created(entry) => entry.record(bytes_lost, epoch_ms),
            ImageLossEntry::None => {
                let created = report.create_entry(&source(), bytes_lost, epoch_ms);
                self.entry = created.map_or(ImageLossEntry::Refused, ImageLossEntry::Created);
            }
            ImageLossEntry::Refused => {}
        }
    }

    /// Returns the number of bytes of `gap` that are after the end of the last gap, and stores `gap` as the last gap.
    /// If `gap` has no bytes after this end, returns `None` and stores nothing.
    fn newly_lost(&mut self, TermGap { term_id, gap }: TermGap) -> Option<i64> {
        let end = gap.offset + gap.length;
        let begin = match self.last {
            Some((last_term_id, last_end)) if last_term_id == term_id => gap.offset.max(last_end),
            _ => gap.offset,
        };
        if begin >= end {
            return None;
        }
        self.last = Some((term_id, end));
        Some((end - begin) as i64)
    }
}
