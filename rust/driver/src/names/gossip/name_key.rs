//! [`NameKey`]: what names are told apart by.

use crate::media::address::Family;

/// What names are told apart by.
pub type NameKey = (Family, Box<[u8]>);
