//! What one image tells the loss report: every missing byte once, however often it is asked for.

use aeron_memory::Words;
use aeron_memory::loss_report::{LossEntry, LossReport, LossSource};

use crate::loss_detector::TermGap;

/// The image's entry in the loss report, and what it already says.
#[derive(Debug)]
pub struct ImageLoss<W> {
    entry: Entry<W>,
    /// Term of the last gap that was observed, and where it ends.
    last: Option<(i32, usize)>,
}

#[derive(Debug)]
enum Entry<W> {
    /// Nothing was lost yet.
    None,
    Created(LossEntry<W>),
    /// The report had no room; this image is not in it.
    Refused,
}

impl<W> Default for ImageLoss<W> {
    fn default() -> Self {
        ImageLoss {
            entry: Entry::None,
            last: None,
        }
    }
}

impl<W: Words> ImageLoss<W> {
    /// A gap was reported at `epoch_ms`; `source` says which image this is, for its first one.
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
            Entry::Created(entry) => entry.record(bytes_lost, epoch_ms),
            Entry::None => {
                let created = report.create_entry(&source(), bytes_lost, epoch_ms);
                self.entry = created.map_or(Entry::Refused, Entry::Created);
            }
            Entry::Refused => {}
        }
    }

    /// The bytes of `gap` beyond the last observed one; from then on it is the last one itself.
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
