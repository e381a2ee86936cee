//! Formats points in time as Aeron's tools do.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Formats epoch milliseconds in the time zone of this machine: `2026-01-01 10:00:00.442+0000`.
///
/// If a time is outside the range of [`Timestamp`], returns the number of milliseconds, followed by `ms`. The range is
/// about a day shorter at each end than the years -9999 to 9999.
pub fn format_date(epoch_ms: i64) -> String {
    format_in(epoch_ms, TimeZone::system())
}

fn format_in(epoch_ms: i64, zone: TimeZone) -> String {
    match Timestamp::from_millisecond(epoch_ms) {
        Ok(time) => time
            .to_zoned(zone)
            .strftime("%Y-%m-%d %H:%M:%S%.3f%z")
            .to_string(),
        Err(_) => format!("{epoch_ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_has_milliseconds_and_the_offset_of_its_zone() {
        let date = |zone, epoch_ms| format_in(epoch_ms, TimeZone::posix(zone).unwrap());
        assert_eq!(
            date("UTC0", 1_767_261_600_442),
            "2026-01-01 10:00:00.442+0000"
        );
        assert_eq!(date("UTC0", -1), "1969-12-31 23:59:59.999+0000");
        assert_eq!(date("UTC0", 0), "1970-01-01 00:00:00.000+0000");
        assert_eq!(
            date("<-0330>3:30", 1_767_261_600_040),
            "2026-01-01 06:30:00.040-0330"
        );
        let berlin = "CET-1CEST,M3.5.0,M10.5.0/3";
        assert_eq!(
            date(berlin, 1_782_900_000_000),
            "2026-07-01 12:00:00.000+0200"
        );
    }

    #[test]
    fn a_date_is_in_the_time_zone_of_this_machine() {
        let date = format_date(1_767_261_600_442);
        assert_eq!(date, format_in(1_767_261_600_442, TimeZone::system()));
        assert_eq!(date.len(), 28);
    }

    #[test]
    fn a_time_that_no_date_can_show_is_a_number_of_milliseconds() {
        for epoch_ms in [i64::MIN, i64::MAX] {
            assert_eq!(format_date(epoch_ms), format!("{epoch_ms}ms"));
        }
    }
}
