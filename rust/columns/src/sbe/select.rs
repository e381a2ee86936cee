//! Decodes the messages of a template among messages of any kind.

use std::iter::repeat_n;

use aeron_sbe::plan::SbePlan;
use aeron_sbe::read::SbeHeader;
use arrow_array::UInt64Array;

use super::{SbeBadMessage, SbeColumns, SbeDecoded};
use crate::read::Mode;
use crate::write::Payloads;

/// The columns for the messages of a template, and the numbers of messages without rows.
#[derive(Debug)]
pub struct SbeSelected {
    /// The columns.
    pub decoded: SbeDecoded,
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

    /// Returns the number of malformed messages that were dropped.
    pub fn dropped(&self) -> u64 {
        self.accepted.dropped
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
    dropped: u64,
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
        let decoded = match self.decode_accepted(payloads, &accepted, columns, skip) {
            Err(_) if mode == Mode::DropMalformed => {
                self.drop_malformed(payloads, &mut accepted, columns, skip);
                self.decode_accepted(payloads, &accepted, columns, skip)
            }
            decoded => decoded,
        };
        let decoded = decoded.map_err(|bad| SbeBadMessage {
            message: accepted.indexes.get(bad.message).copied().unwrap_or(0),
            reason: bad.reason,
        })?;
        Ok(SbeSelected { decoded, accepted })
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
                Err(_) if mode == Mode::DropMalformed => accepted.dropped += 1,
                Err(malformed) => {
                    return Err(SbeBadMessage {
                        message: index,
                        reason: malformed.to_string(),
                    });
                }
            }
        }
        Ok(accepted)
    }

    fn decode_accepted(
        &self,
        payloads: &Payloads<'_>,
        accepted: &Accepted,
        columns: &[usize],
        skip: usize,
    ) -> Result<SbeDecoded, SbeBadMessage> {
        let is_all = skip == 0 && accepted.indexes.len() == payloads.count();
        if let (true, Some((bytes, begin))) = (is_all, payloads.consecutive()) {
            let lengths = (0..payloads.count()).map(|index| payloads.at(index).len());
            return self.decode(bytes, begin, ends(begin, lengths), columns);
        }
        let messages = accepted.indexes.iter();
        let messages = messages.map(|index| message(payloads, *index, skip));
        let lengths: Vec<usize> = messages.clone().map(<[u8]>::len).collect();
        let mut bytes = Vec::with_capacity(lengths.iter().sum());
        messages.for_each(|message| bytes.extend_from_slice(message));
        self.decode(&bytes, 0, ends(0, lengths.into_iter()), columns)
    }

    /// Removes the messages that no row can hold.
    fn drop_malformed(
        &self,
        payloads: &Payloads<'_>,
        accepted: &mut Accepted,
        columns: &[usize],
        skip: usize,
    ) {
        let is_sound = |index: &usize| {
            let message = message(payloads, *index, skip);
            let end = std::iter::once(message.len());
            self.decode(message, 0, end, columns).is_ok()
        };
        let sound: Vec<bool> = accepted.indexes.iter().map(is_sound).collect();
        let before = accepted.indexes.len();
        let mut kept = sound.iter();
        accepted.indexes.retain(|_| *kept.next().unwrap_or(&false));
        let mut kept = sound.iter();
        accepted.rows.retain(|_| *kept.next().unwrap_or(&false));
        accepted.dropped += (before - accepted.indexes.len()) as u64;
    }
}

impl Accepted {
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

fn ends(begin: usize, lengths: impl Iterator<Item = usize>) -> impl Iterator<Item = usize> {
    lengths.scan(begin, |end, length| {
        *end += length;
        Some(*end)
    })
}
