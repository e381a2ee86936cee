//! What drivers tell each other about names: a datagram of entries, each a name with its address.

use std::net::{IpAddr, SocketAddr};

use super::layout::begin;
use super::{FrameError, FrameHeader, FrameType};

const HEADER_LENGTH: usize = 8;
const ENTRY_ALIGNMENT: usize = 8;
const IPV4: i8 = 1;
const IPV6: i8 = 2;
const SELF_FLAG: u8 = 0x80;
const ADDRESS_AT: usize = 8;
const NAME_LENGTH_LENGTH: usize = 2;

/// Where a driver is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The driver that sends the entry is the one that it is about.
    pub is_self: bool,
    /// Address and port of the named driver's resolver.
    pub address: SocketAddr,
    /// How long ago the sender last heard of it, in milliseconds; at most `i32::MAX` travels.
    pub age_ms: u32,
    /// ASCII, may be empty.
    pub name: &'a [u8],
}

/// The entries of a datagram, in order, up to the first that is not sound; then the error, as the last item.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    rest: &'a [u8],
}

/// Puts entries into a datagram.
#[derive(Debug)]
pub struct Encoder<'b> {
    out: &'b mut [u8],
    length: usize,
}

/// Understands a datagram that came to a resolver's socket. The frame length is not looked at; without entries, the type is
/// not either.
///
/// # Errors
/// [`FrameError`] for an invalid packet, as far as that shows before the first entry.
pub fn entries(datagram: &[u8]) -> Result<Entries<'_>, FrameError> {
    if datagram.is_empty() {
        return Ok(Entries { rest: &[] });
    }
    let header = FrameHeader::decode(datagram)?;
    let rest = &datagram[HEADER_LENGTH..];
    if header.frame_type != FrameType::Resolution && !rest.is_empty() {
        return Err(FrameError::Type(header.frame_type.id()));
    }
    Ok(Entries { rest })
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.rest);
        if bytes.is_empty() {
            return None;
        }
        Some(Entry::decode(bytes).inspect(|entry| {
            self.rest = bytes.get(entry.length()..).unwrap_or_default();
        }))
    }
}

impl<'a> Entry<'a> {
    /// Reads the entry that `bytes` begin with. What the padding after it holds does not matter, nor whether it is there.
    fn decode(bytes: &'a [u8]) -> Result<Self, FrameError> {
        let &[entry_type, entry_flags, port_0, port_1, ref age @ ..] =
            chunk::<ADDRESS_AT>(bytes, 0)?;
        let ip = match entry_type as i8 {
            IPV4 => IpAddr::from(*chunk::<4>(bytes, ADDRESS_AT)?),
            IPV6 => IpAddr::from(*chunk::<16>(bytes, ADDRESS_AT)?),
            unknown => return Err(FrameError::ResolutionType(unknown)),
        };
        let name_length_at = ADDRESS_AT + octets_of(ip);
        let name_length = i16::from_le_bytes(*chunk(bytes, name_length_at)?);
        let rest = &bytes[name_length_at + NAME_LENGTH_LENGTH..];
        let name = usize::try_from(name_length)
            .ok()
            .and_then(|length| rest.get(..length))
            .ok_or(FrameError::NameLength {
                name_length,
                available: rest.len(),
            })?;
        Ok(Self {
            is_self: entry_flags & SELF_FLAG != 0,
            address: SocketAddr::new(ip, u16::from_le_bytes([port_0, port_1])),
            age_ms: u32::try_from(i32::from_le_bytes(*age)).unwrap_or(0),
            name,
        })
    }

    /// Bytes that the entry takes in a datagram, with its padding.
    fn length(&self) -> usize {
        let fixed = ADDRESS_AT + octets_of(self.address.ip()) + NAME_LENGTH_LENGTH;
        (fixed + self.name.len()).next_multiple_of(ENTRY_ALIGNMENT)
    }

    /// Fills `place`, which is as long as the entry, and answers whether the name's length can be said.
    fn encode(&self, place: &mut [u8]) -> bool {
        let Ok(name_length) = i16::try_from(self.name.len()) else {
            return false;
        };
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            place[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let entry_type = if self.address.is_ipv4() { IPV4 } else { IPV6 };
        put(&entry_type.to_le_bytes());
        put(&[if self.is_self { SELF_FLAG } else { 0 }]);
        put(&self.address.port().to_le_bytes());
        put(&i32::try_from(self.age_ms).unwrap_or(i32::MAX).to_le_bytes());
        match self.address.ip() {
            IpAddr::V4(ip) => put(&ip.octets()),
            IpAddr::V6(ip) => put(&ip.octets()),
        }
        put(&name_length.to_le_bytes());
        put(self.name);
        place[at..].fill(0);
        true
    }
}

impl<'b> Encoder<'b> {
    /// Begins a datagram in `out`, which is as long as the datagram may become: the MTU.
    ///
    /// # Panics
    /// When `out` is shorter than the 8 bytes of a header.
    #[must_use]
    pub fn new(out: &'b mut [u8]) -> Self {
        begin(out, FrameType::Resolution, HEADER_LENGTH);
        Self {
            out,
            length: HEADER_LENGTH,
        }
    }

    /// Adds an entry and answers whether there was room for it; if not, nothing changes.
    #[must_use]
    pub fn push(&mut self, entry: &Entry<'_>) -> bool {
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

    /// The datagram.
    #[must_use]
    pub fn finish(self) -> &'b [u8] {
        begin(self.out, FrameType::Resolution, self.length);
        &self.out[..self.length]
    }
}

/// The `N` bytes at an offset of an entry.
fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Result<&[u8; N], FrameError> {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk())
        .ok_or(FrameError::TooShort {
            length: bytes.len(),
            required: at + N,
        })
}

const fn octets_of(ip: IpAddr) -> usize {
    match ip {
        IpAddr::V4(_) => 4,
        IpAddr::V6(_) => 16,
    }
}
