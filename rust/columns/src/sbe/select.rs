//! Decodes the messages of a template among messages of any kind.

use std::borrow::Cow;
use std::iter::{repeat, repeat_n};

use aeron_sbe::plan::SbePlan;
use aeron_sbe::read::SbeHeader;
use arrow_array::{BinaryArray, UInt64Array};

use super::{SbeBadMessage, SbeColumns, SbeDecoded};
use crate::read::{MixedRows, Mode};
use crate::write::Payloads;

/// The columns for the messages of a template, and the numbers of messages without rows.
#[derive(Debug)]
pub struct SbeSelected {
    /// The columns.
    pub decoded: SbeDecoded,
    /// The bytes of malformed messages that were kept as rows without values; `None` if there are none.
    pub corrupt: Option<BinaryArray>,
    accepted: Accepted,
}

impl SbeSelected {
    /// Returns the index of the message of each row.
    pub fn indexes(&self) -> UInt64Array {
        self.accepted.message_of_each_row()
    }

    /// Returns the number of messages of other templates and schemas.
    pub fn skipped(&self) -> u64 {
        self.accepted.skipped
    }

    /// Returns the number of malformed messages that were dropped or kept.
    pub fn malformed(&self) -> u64 {
        self.accepted.malformed.len() as u64
    }
}

impl SbeSelected {
    /// Keeps the malformed messages as rows without values.
    fn keep(&mut self, payloads: &Payloads<'_>) -> Result<(), String> {
        let rows = self.accepted.with_malformed(|index| payloads.at(index));
        self.decoded.rows = rows.len();
        let (columns, corrupt) = rows.finish(&self.decoded.columns)?;
        self.decoded.columns = columns;
        self.corrupt = Some(corrupt);
        Ok(())
    }
}

/// Messages of the template.
#[derive(Debug, Default)]
struct Accepted {
    /// Number of messages if all messages are accepted and each is one row. The vectors are empty then.
    count: usize,
    /// Index of each message.
    indexes: Vec<usize>,
    /// Number of rows of each message, if it may differ from 1.
    rows: Vec<usize>,
    skipped: u64,
    /// Indexes of the malformed messages.
    malformed: Vec<usize>,
}

impl SbeColumns {
    /// Decodes the payloads with the indexes `candidates`, or all payloads, to the columns with the indexes `columns`.
    /// Each message begins `skip` bytes after the start of its payload.
    ///
    /// # Errors
    /// The mode is `FailFast`, and a message is malformed.
    pub fn decode_messages(
        &self,
        payloads: &Payloads<'_>,
        candidates: Option<&[usize]>,
        columns: &[usize],
        skip: usize,
        mode: Mode,
    ) -> Result<SbeSelected, SbeBadMessage> {
        if let (None, 0, Some((messages, length))) = (candidates, skip, payloads.uniform())
            && let Some(Ok(decoded)) = self.decode_own(messages, length, columns)
        {
            return Ok(SbeSelected {
                decoded,
                corrupt: None,
                accepted: Accepted {
                    count: payloads.count(),
                    ..Accepted::default()
                },
            });
        }
        let mut accepted = match candidates {
            None => self.accept(payloads, 0..payloads.count(), skip, mode)?,
            Some(candidates) => self.accept(payloads, candidates.iter().copied(), skip, mode)?,
        };
        let decoded = self.decode_accepted(payloads, &mut accepted, columns, skip, mode);
        let decoded = decoded.map_err(|bad| SbeBadMessage {
            message: accepted.indexes.get(bad.message).copied().unwrap_or(0),
            reason: bad.reason,
        })?;
        let mut selected = SbeSelected {
            decoded,
            corrupt: None,
            accepted,
        };
        if mode == Mode::Permissive && selected.malformed() > 0 {
            let kept = selected.keep(payloads);
            kept.map_err(|reason| SbeBadMessage {
                message: selected.accepted.malformed[0],
                reason,
            })?;
        }
        Ok(selected)
    }

    fn accept(
        &self,
        payloads: &Payloads<'_>,
        candidates: impl ExactSizeIterator<Item = usize>,
        skip: usize,
        mode: Mode,
    ) -> Result<Accepted, SbeBadMessage> {
        let mut accepted = Accepted {
            indexes: Vec::with_capacity(candidates.len()),
            ..Accepted::default()
        };
        for index in candidates {
            match self.rows(message(payloads, index, skip)) {
                Ok(Some(rows)) => {
                    accepted.indexes.push(index);
                    if self.has_entries() {
                        accepted.rows.push(rows);
                    }
                }
                Ok(None) => accepted.skipped += 1,
                Err(malformed) if mode == Mode::FailFast => {
                    return Err(SbeBadMessage {
                        message: index,
                        reason: malformed.to_string(),
                    });
                }
                Err(_) => accepted.malformed.push(index),
            }
        }
        Ok(accepted)
    }

    /// Decodes the accepted messages. If a message is malformed and this is no error, it is not accepted any more.
    fn decode_accepted(
        &self,
        payloads: &Payloads<'_>,
        accepted: &mut Accepted,
        columns: &[usize],
        skip: usize,
        mode: Mode,
    ) -> Result<SbeDecoded, SbeBadMessage> {
        let is_all = skip == 0 && accepted.indexes.len() == payloads.count();
        let (bytes, begin) = match payloads.consecutive() {
            Some((bytes, begin)) if is_all => (Cow::Borrowed(bytes), begin),
            _ => (Cow::Owned(copied(payloads, &accepted.indexes, skip)), 0),
        };
        let indexes = accepted.indexes.iter();
        let lengths = indexes.map(|index| message(payloads, *index, skip).len());
        let ends = lengths.scan(begin, |end, length| {
            *end += length;
            Some(*end)
        });
        match self.decode(&bytes, begin, ends.clone(), columns) {
            Err(_) if mode != Mode::FailFast => {}
            decoded => return decoded,
        }
        let ends: Vec<usize> = ends.collect();
        let sound = self.sound(&bytes, begin, &ends, columns);
        accepted.retain(&sound);
        let bytes = copied(payloads, &accepted.indexes, skip);
        let mut end = 0;
        let ends = accepted.indexes.iter().map(|index| {
            end += message(payloads, *index, skip).len();
            end
        });
        self.decode(&bytes, 0, ends, columns)
    }
}

impl Accepted {
    /// Drops the messages that are not sound.
    fn retain(&mut self, sound: &[bool]) {
        let mut kept = sound.iter();
        let (kept_indexes, malformed) = std::mem::take(&mut self.indexes)
            .into_iter()
            .partition::<Vec<_>, _>(|_| *kept.next().unwrap_or(&false));
        self.indexes = kept_indexes;
        self.malformed.extend(malformed);
        let mut kept = sound.iter();
        self.rows.retain(|_| *kept.next().unwrap_or(&false));
    }

    /// Returns the rows of accepted and malformed messages in the order of the messages, and accepts the malformed
    /// messages with one row each.
    fn with_malformed<'a>(&mut self, message: impl Fn(usize) -> &'a [u8]) -> MixedRows {
        let mut rows = MixedRows::default();
        let mut malformed = self.malformed.clone();
        malformed.sort_unstable();
        let mut malformed = malformed.into_iter().peekable();
        let mut all = Self::default();
        let counts = self.rows.iter().copied().chain(repeat(1));
        for (index, count) in self.indexes.iter().copied().zip(counts) {
            while let Some(bad) = malformed.next_if(|bad| *bad < index) {
                all.add(bad, 1);
                rows.add_malformed(message(bad));
            }
            all.add(index, count);
            rows.add_sound(count);
        }
        for bad in malformed {
            all.add(bad, 1);
            rows.add_malformed(message(bad));
        }
        (self.indexes, self.rows) = (all.indexes, all.rows);
        rows
    }

    fn add(&mut self, index: usize, rows: usize) {
        self.indexes.push(index);
        self.rows.push(rows);
    }

    fn message_of_each_row(&self) -> UInt64Array {
        if self.count > 0 {
            return UInt64Array::from_iter_values(0..self.count as u64);
        }
        let indexes = self.indexes.iter().map(|index| *index as u64);
        match self.rows.is_empty() {
            true => UInt64Array::from_iter_values(indexes),
            false => {
                let rows = indexes.zip(&self.rows);
                rows.flat_map(|(index, rows)| repeat_n(Some(index), *rows))
                    .collect()
            }
        }
    }
}

/// Returns the indexes of the messages of each template, in the order of the plan, and the number of messages of no
/// template. Messages without a whole header are of no template.
pub fn messages_of_templates(
    plan: &SbePlan,
    payloads: &Payloads<'_>,
    skip: usize,
) -> (Vec<Vec<usize>>, u64) {
    let mut of_templates = vec![Vec::new(); plan.templates.len()];
    let mut others = 0;
    for index in 0..payloads.count() {
        let header = SbeHeader::read(&plan.header, message(payloads, index, skip));
        let template = header.ok().and_then(|header| {
            let is_ours = header.schema_id == u64::from(plan.schema_id);
            plan.index_of(header.template_id).filter(|_| is_ours)
        });
        match template {
            Some(template) => of_templates[template].push(index),
            None => others += 1,
        }
    }
    (of_templates, others)
}

/// Returns a message; empty if its payload is shorter than `skip`.
#[inline(always)]
fn message<'a>(payloads: &'a Payloads<'_>, index: usize, skip: usize) -> &'a [u8] {
    payloads.at(index).get(skip..).unwrap_or_default()
}

/// Returns these messages one after the other.
fn copied(payloads: &Payloads<'_>, indexes: &[usize], skip: usize) -> Vec<u8> {
    let messages = indexes.iter().map(|index| message(payloads, *index, skip));
    let mut bytes = Vec::with_capacity(messages.clone().map(<[u8]>::len).sum());
    messages.for_each(|message| bytes.extend_from_slice(message));
    bytes
}
