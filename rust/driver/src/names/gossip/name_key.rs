//! [`NameKey`]: the key of a name in the records.

use crate::media::address::Family;

/// The address family and the name.
pub type NameKey = (Family, Box<[u8]>);
