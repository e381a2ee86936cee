//! Resolution frames: drivers exchange names and addresses in a datagram of entries.

use std::net::{IpAddr, SocketAddr};

use aeron_layout::frame::{
    FrameHeaderLayout, ResolutionEntryLayout, ResolutionIpv4Layout, ResolutionIpv6Layout,
};
use aeron_layout::{I16, IntoBytes, Layout, offset};

use super::fixed::header;
use super::{FrameError, FrameHeader, FrameType};

/// Length of the header before the first entry, in bytes.
pub const HEADER_LENGTH: usize = FrameHeaderLayout::LENGTH;
const ENTRY_ALIGNMENT: usize = 8;
const IPV4: i8 = 1;
const IPV6: i8 = 2;
const SELF_FLAG: u8 = 0x80;
const IPV4_ADDRESS: usize = offset!(ResolutionIpv4Layout, address: [u8; 4]);
const IPV4_NAME_LENGTH: usize = offset!(ResolutionIpv4Layout, name_length: I16);
const IPV6_ADDRESS: usize = offset!(ResolutionIpv6Layout, address: [u8; 16]);
const IPV6_NAME_LENGTH: usize = offset!(ResolutionIpv6Layout, name_length: I16);

/// Name and address of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolutionEntry<'a> {
    /// Whether the entry describes the driver that sends it.
    pub is_self: bool,
    /// Address and port of the named driver's resolver.
    pub address: SocketAddr,
    /// Time in milliseconds since the sender last received a frame about this driver. The encoder writes at most
    /// `i32::MAX`.
    pub age_ms: u32,
    /// Name of the driver in ASCII; may be empty.
    pub name: &'a [u8],
}

/// Iterator over the entries of a datagram. After the error for an invalid entry, the iterator ends.
#[derive(Clone, Debug)]
pub struct ResolutionEntries<'a> {
    rest: &'a [u8],
}

/// Encoder that writes entries into a datagram.
#[derive(Debug)]
pub struct ResolutionEncoder<'b> {
    out: &'b mut [u8],
    length: usize,
}

/// Decodes a datagram that a resolver's socket received. Ignores the frame length. If there are no entries, ignores the
/// frame type too.
///
/// # Errors
/// [`FrameError`] if the packet is invalid before its first entry. The iterator returns later errors.
pub fn entries(datagram: &[u8]) -> Result<ResolutionEntries<'_>, FrameError> {
    if datagram.is_empty() {
        return Ok(ResolutionEntries { rest: &[] });
    }
    let header = FrameHeader::decode(datagram)?;
    let rest = &datagram[HEADER_LENGTH..];
    if header.frame_type != FrameType::Resolution && !rest.is_empty() {
        return Err(FrameError::Type(header.frame_type.id()));
    }
    Ok(ResolutionEntries { rest })
}

impl<'a> Iterator for ResolutionEntries<'a> {
    type Item = Result<ResolutionEntry<'a>, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.rest);
        if bytes.is_empty() {
            return None;
        }
        Some(ResolutionEntry::decode(bytes).inspect(|entry| {
            self.rest = bytes.get(entry.length()..).unwrap_or_default();
        }))
    }
}

impl<'a> ResolutionEntry<'a> {
    /// Reads the entry at the start of `bytes`. The padding after the entry may have any content, or be missing.
    fn decode(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let entry = ResolutionEntryLayout::first_in(bytes).ok_or(FrameError::TooShort {
            length: bytes.len(),
            required: ResolutionEntryLayout::LENGTH,
        })?;
        let (ip, name_length_at) = match entry.entry_type {
            IPV4 => (
                IpAddr::from(*chunk::<4>(bytes, IPV4_ADDRESS)?),
                IPV4_NAME_LENGTH,
            ),
            IPV6 => (
                IpAddr::from(*chunk::<16>(bytes, IPV6_ADDRESS)?),
                IPV6_NAME_LENGTH,
            ),
            unknown => return Err(FrameError::ResolutionType(unknown)),
        };
        let name_length = I16::from_bytes(*chunk(bytes, name_length_at)?).get();
        let rest = &bytes[name_length_at + size_of::<I16>()..];
        let name = usize::try_from(name_length)
            .ok()
            .and_then(|length| rest.get(..length))
            .ok_or(FrameError::NameLength {
                name_length,
                available: rest.len(),
            })?;
        Ok(Self {
            is_self: entry.flags & SELF_FLAG != 0,
            address: SocketAddr::new(ip, entry.port.get()),
            age_ms: u32::try_from(entry.age_ms.get()).unwrap_or(0),
            name,
        })
    }

    /// Returns the number of bytes that the entry uses in a datagram, padding included.
    #[must_use]
    pub fn length(&self) -> usize {
        let fixed = match self.address.ip() {
            IpAddr::V4(_) => ResolutionIpv4Layout::LENGTH,
            IpAddr::V6(_) => ResolutionIpv6Layout::LENGTH,
        };
        (fixed + self.name.len()).next_multiple_of(ENTRY_ALIGNMENT)
    }

    /// Writes the entry to `place`, which is as long as the entry. If the name is too long for its length field,
    /// returns `false` and writes nothing.
    fn encode(&self, place: &mut [u8]) -> bool {
        let Ok(name_length) = i16::try_from(self.name.len()) else {
            return false;
        };
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            place[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let entry = ResolutionEntryLayout {
            entry_type: if self.address.is_ipv4() { IPV4 } else { IPV6 },
            flags: if self.is_self { SELF_FLAG } else { 0 },
            port: self.address.port().into(),
            age_ms: i32::try_from(self.age_ms).unwrap_or(i32::MAX).into(),
        };
        match self.address.ip() {
            IpAddr::V4(ip) => put(ResolutionIpv4Layout {
                entry,
                address: ip.octets(),
                name_length: name_length.into(),
            }
            .as_bytes()),
            IpAddr::V6(ip) => put(ResolutionIpv6Layout {
                entry,
                address: ip.octets(),
                name_length: name_length.into(),
            }
            .as_bytes()),
        }
        put(self.name);
        place[at..].fill(0);
        true
    }
}

impl<'b> ResolutionEncoder<'b> {
    /// Starts a datagram in `out`, whose length is the maximum length of the datagram: the MTU.
    ///
    /// # Panics
    /// If `out` is shorter than the 8 bytes of a header.
    #[must_use]
    pub fn new(out: &'b mut [u8]) -> Self {
        write_header(out, HEADER_LENGTH);
        Self {
            out,
            length: HEADER_LENGTH,
        }
    }

    /// Adds an entry. Returns whether the entry was added. If there is no room, or the name is too long, nothing
    /// changes.
    #[must_use]
    pub fn push(&mut self, entry: &ResolutionEntry<'_>) -> bool {
        let place = self
            .out
            .get_mut(self.length..)
            .and_then(|rest| rest.get_mut(..entry.length()));
        let is_put = place.is_some_and(|place| entry.encode(place));
        if is_put {
            self.length += entry.length();
        }
        is_put
    }

    /// Whether no entry was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == HEADER_LENGTH
    }

    /// Returns the datagram.
    #[must_use]
    pub fn finish(self) -> &'b [u8] {
        write_header(self.out, self.length);
        &self.out[..self.length]
    }
}

/// Returns the `N` bytes at an offset of an entry.
fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Result<&[u8; N], FrameError> {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .ok_or(FrameError::TooShort {
            length: bytes.len(),
            required: at + N,
        })
}

/// Writes the header of a datagram of `length` bytes at the start of `out`.
fn write_header(out: &mut [u8], length: usize) {
    let header = header(FrameType::Resolution, 0, length);
    out[..HEADER_LENGTH].copy_from_slice(header.as_bytes());
}
