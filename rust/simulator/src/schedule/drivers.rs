//! Configuration of the drivers of a schedule.

use aeron_driver::Context;
use fastrand::Rng;

use super::{one_of, rarely};

/// Nanoseconds in a millisecond.
pub const MS: i64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: i64 = 1_000 * MS;

/// Timeouts that are the same in all drivers of a schedule, so that the recovery time has a limit.
#[derive(Clone, Debug)]
pub struct Timing {
    timer_interval_ns: i64,
    image_liveness_ns: i64,
    linger_ns: i64,
    connection_ns: i64,
    untethered_ns: i64,
}

/// A driver and its machine.
#[derive(Clone, Debug)]
pub struct DriverPlan {
    /// Configuration of the driver.
    pub context: Context,
    /// Whether the driver's sockets have segmentation offload.
    pub has_segmentation: bool,
    /// Maximum packet length of the driver's link, in bytes.
    pub link_mtu: usize,
    /// Seed of the random ids that the driver assigns.
    pub seed: u64,
}

impl Timing {
    /// Generates timeouts that are short enough for a schedule of about a minute.
    pub fn draw(random: &mut Rng) -> Self {
        let timer_interval_ns = random.i64(50 * MS..400 * MS);
        Self {
            timer_interval_ns,
            image_liveness_ns: random.i64(1_500 * MS..4 * SECOND),
            // The linger time is long enough to retransmit lost parts of the last messages.
            linger_ns: SECOND + random.i64(200 * MS..2 * SECOND),
            connection_ns: random.i64(SECOND..4 * SECOND),
            untethered_ns: timer_interval_ns + random.i64(50 * MS..500 * MS),
        }
    }
}

impl DriverPlan {
    /// Generates a driver with these timeouts. All other settings may differ between drivers.
    pub fn draw(random: &mut Rng, timing: &Timing) -> Self {
        let context = Context {
            timer_interval_ns: timing.timer_interval_ns,
            client_liveness_timeout_ns: 4 * SECOND,
            publication_unblock_timeout_ns: 4_500 * MS,
            image_liveness_timeout_ns: timing.image_liveness_ns,
            publication_linger_timeout_ns: timing.linger_ns,
            publication_connection_timeout_ns: timing.connection_ns,
            flow_control_receiver_timeout_ns: timing.connection_ns,
            untethered_window_limit_timeout_ns: timing.untethered_ns,
            untethered_linger_timeout_ns: Some(timing.untethered_ns),
            untethered_resting_timeout_ns: timing.untethered_ns,
            counter_free_to_reuse_timeout_ns: one_of(random, &[0, SECOND]),
            term_buffer_sparse_file: random.bool(),
            perform_storage_checks: random.bool(),
            nak_unicast_delay_ns: random.i64(1_000..200_000),
            nak_multicast_max_backoff_ns: random.i64(MS..10 * MS),
            nak_multicast_group_size: random.i32(2..20),
            retransmit_unicast_delay_ns: one_of(random, &[0, 0, 100_000]),
            retransmit_unicast_linger_ns: random.i64(MS..20 * MS),
            sender_batch_wait_ns: one_of(random, &[0, 20_000, 200_000]),
            network_publication_max_messages_per_send: random.i32(1..=8),
            receiver_io_vector_capacity: random.i32(1..=16),
            send_to_status_poll_ratio: random.i32(1..=8),
            cubic_measure_rtt: rarely(random, 4),
            cubic_initial_rtt_ns: random.i64(MS..50 * MS),
            cubic_tcp_mode: random.bool(),
            connect_enabled: !rarely(random, 4),
            stream_session_limit: if rarely(random, 6) { 1 } else { i32::MAX },
            loss_report_buffer_length: 64 * 1024,
            ..Context::default()
        };
        Self {
            context,
            has_segmentation: random.bool(),
            link_mtu: one_of(random, &[1_400, 1_500, 9_000, 65_535]),
            seed: random.u64(..),
        }
    }
}
