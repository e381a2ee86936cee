//! Little-endian integers at an offset of a byte slice whose length the caller has checked.

pub(crate) fn get_i32(bytes: &[u8], offset: usize) -> i32 {
    i32::from_le_bytes(array(bytes, offset))
}

pub(crate) fn get_i64(bytes: &[u8], offset: usize) -> i64 {
    i64::from_le_bytes(array(bytes, offset))
}

pub(crate) fn put_i32(bytes: &mut [u8], offset: usize, value: i32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_i64(bytes: &mut [u8], offset: usize, value: i64) {
    bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
}

fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[offset..offset + N]);
    array
}
