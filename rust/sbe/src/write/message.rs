//! Encodes whole messages.

use crate::limits::MAX_BLOCK_LENGTH;
use crate::plan::{SbeBlockPlan, SbeData, SbeField, SbeGroup, SbeTemplate};
use crate::schema::SbeCounter;
use crate::value::{SbeRecord, SbeValue};
use crate::write::SbeEncodeError;

impl SbeTemplate {
    /// Returns the length of a message in bytes, with its header.
    ///
    /// `entries` has the number of entries of each group, `data` the length of each data. Missing numbers are 0.
    /// Entries count without the entries of their groups and without the bytes of their data.
    pub fn encoded_length(&self, entries: &[usize], data: &[usize]) -> usize {
        let block = &self.block;
        let counts = entries.iter().zip(&block.groups);
        let entries = counts.map(|(count, group)| count.saturating_mul(group.block.empty_length()));
        let all = entries.chain(data.iter().copied());
        all.fold(
            self.header.length + block.empty_length(),
            usize::saturating_add,
        )
    }

    /// Checks the sizes of [`encoded_length`](Self::encoded_length).
    ///
    /// # Errors
    /// [`SbeEncodeError::Count`] if a dimension or length cannot hold its number.
    pub fn check_sizes(&self, entries: &[usize], data: &[usize]) -> Result<(), SbeEncodeError> {
        for (count, group) in entries.iter().zip(&self.block.groups) {
            check_count(&group.name, *count, &group.dimension.num_in_group)?;
        }
        for (length, data) in data.iter().zip(&self.block.data) {
            check_count(&data.name, *length, &data.layout.length)?;
        }
        Ok(())
    }

    /// Returns the length of a record's message in bytes, with its header.
    pub fn record_length(&self, record: &SbeRecord<'_>) -> usize {
        self.header
            .length
            .saturating_add(self.block.record_length(record))
    }

    /// Writes the header of this schema version to the start of a message.
    ///
    /// # Errors
    /// [`SbeEncodeError::Buffer`] if the message is shorter than its header.
    pub fn write_header(&self, message: &mut [u8]) -> Result<(), SbeEncodeError> {
        let layout = &self.header;
        let available = message.len();
        let bytes = message
            .get_mut(..layout.length)
            .ok_or(SbeEncodeError::Buffer {
                needed: layout.length,
                available,
            })?;
        bytes.fill(0);
        // The schema's rules say that all of these numbers fit.
        layout
            .block_length
            .write(bytes, self.block.block_length as u64);
        layout.template_id.write(bytes, self.id.into());
        layout.schema_id.write(bytes, self.schema_id.into());
        layout.version.write(bytes, self.version.into());
        write_counts(
            &self.block,
            &layout.num_groups,
            &layout.num_var_data_fields,
            bytes,
        );
        Ok(())
    }

    /// Appends the message of a record.
    ///
    /// # Errors
    /// The first value that cannot be encoded. Nothing is appended then.
    pub fn encode(&self, record: &SbeRecord<'_>, out: &mut Vec<u8>) -> Result<(), SbeEncodeError> {
        let begin = out.len();
        out.resize(begin + self.record_length(record), 0);
        let written = self.encode_into(record, &mut out[begin..]);
        if written.is_err() {
            out.truncate(begin);
        }
        written.map(|_| ())
    }

    /// Writes the message of a record to the start of a buffer. Returns the length of the message in bytes.
    ///
    /// # Errors
    /// The first value that cannot be encoded, or [`SbeEncodeError::Buffer`]. The buffer may then be written in part.
    pub fn encode_into(
        &self,
        record: &SbeRecord<'_>,
        buffer: &mut [u8],
    ) -> Result<usize, SbeEncodeError> {
        let length = self.record_length(record);
        let available = buffer.len();
        let message = buffer.get_mut(..length).ok_or(SbeEncodeError::Buffer {
            needed: length,
            available,
        })?;
        self.write_header(message)?;
        let outer = Outer {
            plan: &self.block,
            record,
            outer: None,
        };
        let rest = &mut message[self.header.length..];
        let rest = write_block(&self.name, outer, rest)?;
        debug_assert!(rest.is_empty(), "a message has the length of its record");
        Ok(length)
    }
}

impl SbeBlockPlan {
    /// Returns the length of a block with empty groups and empty data.
    fn empty_length(&self) -> usize {
        let groups = self.groups.iter().map(|group| group.dimension.length);
        let data = self.data.iter().map(|data| data.layout.prefix);
        self.block_length + groups.sum::<usize>() + data.sum::<usize>()
    }

    fn record_length(&self, record: &SbeRecord<'_>) -> usize {
        let groups = self.groups.iter().zip(&record.groups);
        let entries = groups.flat_map(|(group, entries)| {
            entries.iter().map(|entry| group.block.record_length(entry))
        });
        let data = record.data.iter().take(self.data.len());
        let data = data.map(|bytes| bytes.as_ref().map_or(0, |bytes| bytes.len()));
        entries
            .chain(data)
            .fold(self.empty_length(), usize::saturating_add)
    }
}

/// A record with its plan, and the records around it.
#[derive(Clone, Copy)]
struct Outer<'a> {
    plan: &'a SbeBlockPlan,
    record: &'a SbeRecord<'a>,
    outer: Option<&'a Outer<'a>>,
}

/// Writes a block, its groups and its data. Returns the rest of the buffer.
fn write_block<'b>(
    name: &str,
    level: Outer<'_>,
    buffer: &'b mut [u8],
) -> Result<&'b mut [u8], SbeEncodeError> {
    let (plan, record) = (level.plan, level.record);
    check_shape(name, "fields", record.fields.len(), plan.fields.len())?;
    check_shape(name, "groups", record.groups.len(), plan.groups.len())?;
    check_shape(name, "data", record.data.len(), plan.data.len())?;
    debug_assert!(
        plan.block_length <= MAX_BLOCK_LENGTH,
        "a plan's blocks are bounded"
    );
    let (block, mut rest) = buffer.split_at_mut(plan.block_length);
    block.fill(0);
    for (field, value) in plan.fields.iter().zip(&record.fields) {
        match mantissa(field, value, level)? {
            Some(mantissa) => field.put(block, &mantissa)?,
            None => field.put(block, value)?,
        }
    }
    for (group, entries) in plan.groups.iter().zip(&record.groups) {
        rest = write_group(group, entries, level, rest)?;
    }
    for (data, bytes) in plan.data.iter().zip(&record.data) {
        rest = data.write(bytes.as_deref().unwrap_or_default(), rest)?;
    }
    Ok(rest)
}

fn write_group<'b>(
    group: &SbeGroup,
    entries: &[SbeRecord<'_>],
    outer: Outer<'_>,
    buffer: &'b mut [u8],
) -> Result<&'b mut [u8], SbeEncodeError> {
    let rest = group.write_dimension(entries.len(), buffer)?;
    let mut rest = rest;
    for (index, entry) in entries.iter().enumerate() {
        let level = Outer {
            plan: &group.block,
            record: entry,
            outer: Some(&outer),
        };
        let written = write_block(&group.name, level, rest);
        rest = written.map_err(|error| error.within(&group.name, index))?;
    }
    Ok(rest)
}

impl SbeGroup {
    /// Writes the dimension of a group with a number of entries. Returns the rest of the buffer.
    ///
    /// # Errors
    /// [`SbeEncodeError::Count`] if the dimension cannot hold the number, or [`SbeEncodeError::Buffer`].
    pub fn write_dimension<'b>(
        &self,
        count: usize,
        buffer: &'b mut [u8],
    ) -> Result<&'b mut [u8], SbeEncodeError> {
        let layout = &self.dimension;
        check_count(&self.name, count, &layout.num_in_group)?;
        let available = buffer.len();
        let (bytes, rest) =
            buffer
                .split_at_mut_checked(layout.length)
                .ok_or(SbeEncodeError::Buffer {
                    needed: layout.length,
                    available,
                })?;
        bytes.fill(0);
        layout
            .block_length
            .write(bytes, self.block.block_length as u64);
        layout.num_in_group.write(bytes, count as u64);
        write_counts(
            &self.block,
            &layout.num_groups,
            &layout.num_var_data_fields,
            bytes,
        );
        Ok(rest)
    }
}

impl SbeData {
    /// Writes the length of data and their bytes. Returns the rest of the buffer.
    ///
    /// # Errors
    /// [`SbeEncodeError::Count`] if the length does not suit its encoding, or [`SbeEncodeError::Buffer`].
    pub fn write<'b>(
        &self,
        bytes: &[u8],
        buffer: &'b mut [u8],
    ) -> Result<&'b mut [u8], SbeEncodeError> {
        let layout = &self.layout;
        check_count(&self.name, bytes.len(), &layout.length)?;
        let needed = layout.prefix.saturating_add(bytes.len());
        let available = buffer.len();
        let (place, rest) = buffer
            .split_at_mut_checked(needed)
            .ok_or(SbeEncodeError::Buffer { needed, available })?;
        let (prefix, place) = place.split_at_mut(layout.prefix);
        prefix.fill(0);
        layout.length.write(prefix, bytes.len() as u64);
        place.copy_from_slice(bytes);
        Ok(rest)
    }
}

/// Returns the mantissa of a decimal. The exponent is the value of another field.
fn mantissa(
    field: &SbeField,
    value: &SbeValue<'_>,
    level: Outer<'_>,
) -> Result<Option<SbeValue<'static>>, SbeEncodeError> {
    let Some((levels_up, index)) = field.other_exponent() else {
        return Ok(None);
    };
    let mut holder = Some(&level);
    for _ in 0..levels_up {
        holder = holder.and_then(|level| level.outer);
    }
    let exponent = holder.and_then(|holder| exponent_of(holder, index));
    field.mantissa_of(value, exponent)
}

fn exponent_of(holder: &Outer<'_>, index: usize) -> Option<i32> {
    let constant = holder.plan.fields.get(index)?.constant_value();
    let value = match &constant {
        Some(constant) => constant,
        None => holder.record.fields.get(index)?,
    };
    match value {
        SbeValue::Number(number) => number.as_i64()?.try_into().ok(),
        _ => None,
    }
}

/// Writes the numbers of groups and data, if the schema has members for them.
fn write_counts(
    plan: &SbeBlockPlan,
    groups: &Option<SbeCounter>,
    data: &Option<SbeCounter>,
    bytes: &mut [u8],
) {
    if let Some(counter) = groups {
        counter.write(bytes, plan.groups.len() as u64);
    }
    if let Some(counter) = data {
        counter.write(bytes, plan.data.len() as u64);
    }
}

fn check_count(element: &str, count: usize, counter: &SbeCounter) -> Result<(), SbeEncodeError> {
    let range = counter.min..=counter.max;
    if range.contains(&(count as u64)) && count as u64 != counter.null {
        return Ok(());
    }
    Err(SbeEncodeError::Count {
        element: element.to_owned(),
        count,
        min: counter.min,
        max: counter.max,
    })
}

fn check_shape(
    element: &str,
    what: &'static str,
    found: usize,
    expected: usize,
) -> Result<(), SbeEncodeError> {
    if found == expected {
        return Ok(());
    }
    Err(SbeEncodeError::Shape {
        element: element.to_owned(),
        what,
        found,
        expected,
    })
}
