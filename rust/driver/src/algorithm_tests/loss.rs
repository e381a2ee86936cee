//! Tests of loss detection, of NAK timing and of the loss report.

use crate::image_loss::ImageLoss;
use crate::loss_detector::{LossDetector, LossScan, TermGap};
use crate::nak_delay::{MulticastBackoff, NakDelay};
use aeron_memory::log::buffers::log_length;
use aeron_memory::log::gap::{self, Gap};
use aeron_memory::log::rebuild::insert;
use aeron_memory::log::{LogBuffers, LogDescription, LogType};
use aeron_memory::loss_report::{self, LossObservation, LossReport, LossSource};
use aeron_memory::{SharedBuffer, Words};
use proptest::prelude::*;

use super::support::{MS, US};

const TERM: i64 = 64 * 1024;
const INITIAL_TERM: i32 = i32::MAX;
const FRAME: i64 = 1408;
const DELAY: i64 = 2 * MS;
const RETRY: i64 = 100 * DELAY;

/// An image that receives datagrams with one frame each.
struct Image {
    log: LogBuffers<SharedBuffer>,
    detector: LossDetector,
    rebuild_position: i64,
    hwm_position: i64,
    now_ns: i64,
}

impl Image {
    fn new() -> Self {
        Image::with_delay(NakDelay::Fixed {
            delay_ns: DELAY,
            retry_ns: RETRY,
        })
    }

    fn with_delay(delay: NakDelay) -> Self {
        let description = LogDescription::new(LogType::Image, 5, 1001, INITIAL_TERM);
        let length = log_length(description.term_length.into(), description.page_size.into());
        let memory = SharedBuffer::heap(length.unwrap());
        Image {
            log: LogBuffers::create(&memory, &description, 0).unwrap(),
            detector: LossDetector::new(delay),
            rebuild_position: 0,
            hwm_position: 0,
            now_ns: 0,
        }
    }

    /// Receives a frame.
    fn gets(&mut self, position: i64, length: i64) -> &mut Self {
        let mut frame = vec![0; length as usize];
        frame[..4].copy_from_slice(&(length as i32).to_le_bytes());
        frame[6] = 1;
        self.inserts(position, &frame);
        self.sees(position + length)
    }

    /// Receives padding, of which only the header is sent.
    fn gets_padding(&mut self, position: i64, length: i64) -> &mut Self {
        let mut header = vec![0; 32];
        header[..4].copy_from_slice(&(length as i32).to_le_bytes());
        self.inserts(position, &header);
        self.sees(position + 32)
    }

    /// Receives a heartbeat.
    fn sees(&mut self, position: i64) -> &mut Self {
        self.hwm_position = self.hwm_position.max(position);
        self
    }

    fn inserts(&mut self, position: i64, frame: &[u8]) {
        let offset = self.log.positions().term_offset(position);
        insert(self.log.term_at(position), offset, frame);
    }

    fn scan(&mut self) -> LossScan {
        let (rebuild, hwm) = (self.rebuild_position, self.hwm_position);
        let scan = self.detector.scan(&self.log, rebuild, hwm, self.now_ns);
        let scan = scan.unwrap();
        self.rebuild_position = scan.rebuild_position;
        scan
    }

    fn scan_after(&mut self, duration_ns: i64) -> LossScan {
        self.now_ns += duration_ns;
        self.scan()
    }
}

fn gap_at(position: i64, length: i64) -> TermGap {
    let term = (position / TERM) as i32;
    TermGap {
        term_id: INITIAL_TERM.wrapping_add(term),
        gap: Gap {
            offset: (position % TERM) as usize,
            length: length as usize,
        },
    }
}

fn complete_up_to(rebuild_position: i64) -> LossScan {
    LossScan {
        rebuild_position,
        is_loss_found: false,
        due: None,
    }
}

fn found(rebuild_position: i64) -> LossScan {
    LossScan {
        is_loss_found: true,
        ..complete_up_to(rebuild_position)
    }
}

fn due(gap_position: i64, length: i64) -> LossScan {
    LossScan {
        due: Some(gap_at(gap_position, length)),
        ..complete_up_to(gap_position)
    }
}

#[test]
fn a_stream_without_gaps_is_complete_up_to_its_highest_position() {
    let mut image = Image::new();
    assert_eq!(image.scan(), complete_up_to(0));
    image.gets(0, 1408).gets(1408, 96);
    assert_eq!(image.scan(), complete_up_to(1504));
    assert_eq!(image.scan_after(RETRY), complete_up_to(1504));
}

#[test]
fn data_after_a_gap_does_not_count_until_the_gap_is_filled_04_146() {
    let mut image = Image::new();
    image.gets(FRAME, FRAME);
    assert_eq!((image.scan(), image.hwm_position), (found(0), 2 * FRAME));
    image.gets(0, FRAME);
    assert_eq!(image.scan(), complete_up_to(2 * FRAME));
}

#[test]
fn a_duplicate_does_not_change_the_log_04_145() {
    let mut image = Image::new();
    image.gets(0, 64).gets(64, 64);
    let bytes = |image: &Image| {
        let mut bytes = vec![0; TERM as usize];
        image.log.term(0).copy_out(0, &mut bytes);
        bytes
    };
    let before = bytes(&image);
    let mut other = vec![7; 96];
    other[..4].copy_from_slice(&96i32.to_le_bytes());
    image.inserts(0, &other);
    image.inserts(64, &other);
    assert_eq!(bytes(&image), before);
}

/// 04-147, 02-75
#[test]
fn a_gap_is_requested_after_the_delay_and_again_after_each_retry() {
    let mut image = Image::new();
    image.gets(0, FRAME).gets(3 * FRAME, FRAME);
    assert_eq!(image.scan(), found(FRAME));
    assert_eq!(image.scan_after(DELAY - 1), complete_up_to(FRAME));
    assert_eq!(image.scan_after(1), due(FRAME, 2 * FRAME));
    for _ in 0..3 {
        assert_eq!(image.scan(), complete_up_to(FRAME));
        assert_eq!(image.scan_after(RETRY - 1), complete_up_to(FRAME));
        assert_eq!(image.scan_after(1), due(FRAME, 2 * FRAME));
    }
}

#[test]
fn consecutive_lost_datagrams_are_one_gap_02_76() {
    let mut image = Image::new();
    image.gets(10 * FRAME, FRAME);
    image.scan();
    assert_eq!(image.scan_after(DELAY), due(0, 10 * FRAME));
}

#[test]
fn a_gap_ends_at_the_end_of_its_term_02_77() {
    let mut image = Image::new();
    image.gets(0, FRAME).gets(TERM + FRAME, FRAME);
    image.scan();
    assert_eq!(image.scan_after(DELAY), due(FRAME, TERM - FRAME));
    image
        .gets(FRAME, FRAME)
        .gets_padding(2 * FRAME, TERM - 2 * FRAME);
    assert_eq!(image.scan(), complete_up_to(TERM));
    assert_eq!(image.scan(), found(TERM));
    assert_eq!(image.scan_after(DELAY), due(TERM, FRAME));
}

/// 02-78, 04-147
#[test]
fn only_the_first_gap_is_requested_until_it_is_repaired() {
    let mut image = Image::new();
    image.gets(FRAME, FRAME).gets(3 * FRAME, FRAME);
    image.scan();
    assert_eq!(image.scan_after(DELAY), due(0, FRAME));
    assert_eq!(image.scan_after(RETRY), due(0, FRAME));
    image.gets(0, FRAME);
    assert_eq!(image.scan(), found(2 * FRAME));
    assert_eq!(image.scan_after(DELAY), due(2 * FRAME, FRAME));
}

#[test]
fn a_gap_that_changes_counts_as_a_new_gap_02_79() {
    let mut image = Image::new();
    image.sees(4 * FRAME);
    assert_eq!(image.scan(), found(0));
    image.now_ns += DELAY - 1;
    image.sees(5 * FRAME);
    assert_eq!(image.scan(), found(0), "longer gap");
    image.now_ns += DELAY - 1;
    image.gets(3 * FRAME, FRAME);
    assert_eq!(image.scan(), found(0), "shorter gap");
    image.now_ns += DELAY - 1;
    image.gets(0, FRAME);
    assert_eq!(image.scan(), found(FRAME), "different gap");
    assert_eq!(image.scan_after(DELAY - 1), complete_up_to(FRAME));
    assert_eq!(image.scan_after(1), due(FRAME, 2 * FRAME));
}

#[test]
fn a_loss_at_the_end_of_the_data_is_found_after_a_heartbeat() {
    let mut image = Image::new();
    image.gets(0, FRAME);
    assert_eq!(image.scan(), complete_up_to(FRAME));
    image.sees(2 * FRAME);
    assert_eq!(image.scan(), found(FRAME));
}

#[test]
fn padding_is_complete_once_its_header_has_arrived() {
    let mut image = Image::new();
    image.gets(0, FRAME).gets_padding(FRAME, TERM - FRAME);
    assert!(image.hwm_position < TERM);
    assert_eq!(image.scan(), complete_up_to(TERM));
    assert_eq!(image.scan(), complete_up_to(TERM));
}

#[test]
fn the_nak_delay_of_a_group_restarts_when_a_repair_changes_the_gap_02_79() {
    let backoff = || NakDelay::Multicast(MulticastBackoff::new(10, 10 * MS, 3));
    let mut expected = backoff();
    let mut image = Image::with_delay(backoff());
    image.sees(4 * FRAME);
    assert_eq!(image.scan(), found(0));
    expected.delay_ns();
    image.gets(0, FRAME);
    assert_eq!(image.scan(), found(FRAME));
    assert_eq!(image.scan_after(expected.delay_ns()), due(FRAME, 3 * FRAME));
    assert_eq!(image.scan_after(expected.retry_ns()), due(FRAME, 3 * FRAME));
}

/// 04-149, 02-81
#[test]
fn a_gap_of_an_unreliable_stream_is_due_at_once_and_padding_in_it_completes_the_stream() {
    let mut image = Image::with_delay(NakDelay::immediate());
    image.gets(0, FRAME).gets(2 * FRAME, FRAME);
    let scan = image.scan();
    assert!(scan.is_loss_found);
    assert_eq!(scan.due, Some(gap_at(FRAME, FRAME)));
    let TermGap { term_id, gap } = scan.due.unwrap();
    assert!(gap::fill(&image.log, term_id, gap));
    assert_eq!(image.scan(), complete_up_to(3 * FRAME));
    let mut cursor = image.log.cursor(0).unwrap();
    assert!(cursor.next_fragment().unwrap().is_some());
    assert!(cursor.next_fragment().unwrap().is_some());
    assert_eq!(cursor.position(), 3 * FRAME);
}

#[test]
fn a_scan_of_invalid_frames_or_from_an_invalid_position_returns_an_error() {
    let mut image = Image::new();
    image.log.term(0).store_i32_relaxed(0, 7);
    image.sees(64);
    assert!(image.detector.scan(&image.log, 0, 64, 0).is_err());
    for rebuild_position in [33, i64::MIN, -32] {
        assert!(
            image
                .detector
                .scan(&image.log, rebuild_position, 96, 0)
                .is_err()
        );
    }
}

fn frames() -> impl Strategy<Value = Vec<(i64, bool)>> {
    prop::collection::vec((1..45i64, any::<bool>()), 1..80)
}

proptest! {
    /// 04-147, 02-76
    #[test]
    fn a_scan_finds_the_first_missing_frames_of_any_stream(frames in frames(), start_term in 0..5i64) {
        let mut image = Image::new();
        let start = start_term * TERM;
        image.rebuild_position = start;
        let mut end = start;
        let mut missing: Vec<(i64, i64)> = Vec::new();
        for (units, has_arrived) in frames {
            let length = units * 32;
            if end + length > start + TERM {
                break;
            }
            if has_arrived {
                image.gets(end, length);
            } else {
                match missing.last_mut() {
                    Some((position, missing_length)) if *position + *missing_length == end => *missing_length += length,
                    _ => missing.push((end, length)),
                }
            }
            end += length;
        }
        image.sees(end);
        for (position, length) in missing {
            prop_assert_eq!(image.scan(), found(position));
            prop_assert_eq!(image.scan_after(DELAY), due(position, length));
            image.gets(position, length);
        }
        prop_assert_eq!(image.scan(), complete_up_to(end));
    }
}

const REPORT_LENGTH: usize = 4096;

fn source() -> LossSource {
    LossSource {
        session_id: 5,
        stream_id: 1001,
        channel: "aeron:udp?endpoint=localhost:24325".into(),
        source: "127.0.0.1:40001".into(),
    }
}

/// Returns the loss report after one image has found `gaps`, one in each millisecond.
fn reported(gaps: &[TermGap]) -> Vec<LossObservation> {
    let memory = SharedBuffer::heap(REPORT_LENGTH);
    let mut report = LossReport::new(memory.clone());
    let mut image = ImageLoss::default();
    for (gap, epoch_ms) in gaps.iter().zip(100..) {
        image.on_gap(*gap, epoch_ms, &mut report, source);
    }
    loss_report::read(&memory)
}

fn observations_and_bytes(gaps: &[TermGap]) -> (i64, i64) {
    let [observation] = &reported(gaps)[..] else {
        panic!("not exactly one entry");
    };
    (observation.observation_count, observation.total_bytes_lost)
}

/// 04-150, 01-51
#[test]
fn an_image_has_one_entry_with_the_bytes_it_lost() {
    assert_eq!(reported(&[]), []);
    let entries = reported(&[gap_at(0, 1408), gap_at(4224, 2816), gap_at(TERM, 64)]);
    let expected = LossObservation {
        observation_count: 3,
        total_bytes_lost: 1408 + 2816 + 64,
        first_observation_ms: 100,
        last_observation_ms: 102,
        image: source(),
    };
    assert_eq!(entries, [expected]);
}

/// 01-51
#[test]
fn a_byte_is_reported_once_even_if_it_is_requested_repeatedly() {
    let first = gap_at(1408, 1408);
    assert_eq!(observations_and_bytes(&[first, first, first]), (1, 1408));
    let inside = gap_at(1408 + 704, 352);
    assert_eq!(observations_and_bytes(&[first, inside, first]), (1, 1408));
    let longer = gap_at(1408, 2816);
    assert_eq!(observations_and_bytes(&[first, longer, longer]), (2, 2816));
    let overlapping = gap_at(2112, 1408);
    assert_eq!(observations_and_bytes(&[first, overlapping]), (2, 2112));
    let adjacent = gap_at(2816, 32);
    assert_eq!(observations_and_bytes(&[first, adjacent]), (2, 1440));
    let same_place_in_the_next_term = gap_at(TERM + 1408, 1408);
    assert_eq!(
        observations_and_bytes(&[first, same_place_in_the_next_term]),
        (2, 2816)
    );
}

#[test]
fn a_full_report_does_not_accept_a_new_image_but_still_counts_the_losses_of_others() {
    let memory = SharedBuffer::heap(128);
    let mut report = LossReport::new(memory.clone());
    let (mut first, mut second) = (ImageLoss::default(), ImageLoss::default());
    first.on_gap(gap_at(0, 32), 1, &mut report, source);
    second.on_gap(gap_at(0, 32), 2, &mut report, source);
    second.on_gap(gap_at(64, 32), 3, &mut report, || panic!("asked again"));
    first.on_gap(gap_at(64, 32), 4, &mut report, source);
    let entries = loss_report::read(&memory);
    assert_eq!(entries.len(), 1);
    assert_eq!(
        (entries[0].observation_count, entries[0].last_observation_ms),
        (2, 4)
    );
}

/// 04-150: if the detector reports a gap repeatedly, only the first report counts.
#[test]
fn a_gap_that_the_detector_reports_again_is_counted_once() {
    let memory = SharedBuffer::heap(REPORT_LENGTH);
    let mut report = LossReport::new(memory.clone());
    let mut loss = ImageLoss::default();
    let mut image = Image::new();
    image.gets(FRAME, FRAME);
    let mut naks = 0;
    for _ in 0..50 {
        if let Some(gap) = image.scan_after(RETRY / 2 + US).due {
            naks += 1;
            loss.on_gap(gap, 7, &mut report, source);
        }
    }
    assert!(naks > 20);
    assert_eq!(loss_report::read(&memory)[0].total_bytes_lost, FRAME);
}
