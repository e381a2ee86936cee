//! Points in time as Aeron's tools print them.

/// Epoch milliseconds in the zone of this machine: `2026-01-01 10:00:00.442+0000`.
pub fn format_date(epoch_ms: i64) -> String {
    let seconds = epoch_ms.div_euclid(1000) as _;
    // SAFETY: all-zero bytes are a valid tm (zeros and a null pointer).
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live locals.
    let known = unsafe { !libc::localtime_r(&seconds, &mut local).is_null() };
    if !known {
        // Beyond the years that the C library knows.
        return format!("{epoch_ms}ms");
    }
    let offset_minutes = local.tm_gmtoff / 60;
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:03}{}{:02}{:02}",
        i64::from(local.tm_year) + 1900,
        local.tm_mon + 1,
        local.tm_mday,
        local.tm_hour,
        local.tm_min,
        local.tm_sec,
        epoch_ms.rem_euclid(1000),
        if offset_minutes < 0 { '-' } else { '+' },
        offset_minutes.abs() / 60,
        offset_minutes.abs() % 60,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_has_milliseconds_and_a_zone() {
        let date = format_date(1_767_261_600_442);
        let (_, zone) = date.split_at(23);
        assert_eq!(&date[19..23], ".442");
        assert!(zone.len() == 5 && zone.starts_with(['+', '-']), "{date}");
        if zone == "+0000" {
            assert_eq!(date, "2026-01-01 10:00:00.442+0000");
            assert_eq!(format_date(-1), "1969-12-31 23:59:59.999+0000");
        }
    }

    #[test]
    fn times_beyond_all_calendars_have_a_text_too() {
        for epoch_ms in [i64::MIN, i64::MAX] {
            assert!(!format_date(epoch_ms).is_empty());
        }
    }
}
