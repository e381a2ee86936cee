//! Tests of the functions that plan Spark batches and cut them into partitions. The recordings exist only in memory.

use std::convert::Infallible;

use proptest::prelude::*;

use super::*;

/// Messages of a recording in memory: the end position and the payload bytes of each message.
#[derive(Debug, Clone)]
struct Model(Vec<(i64, i64)>);

impl Model {
    /// Creates consecutive messages with these payload lengths. The first one starts at position 0.
    fn of(payloads: &[i64]) -> Self {
        let mut end = 0;
        let message = |&payload: &i64| {
            end += 32 + (payload + 31) / 32 * 32;
            (end, payload)
        };
        Self(payloads.iter().map(message).collect())
    }

    fn head(&self) -> i64 {
        self.0.last().map_or(0, |message| message.0)
    }

    fn between(&self, from: i64, to: i64) -> impl Iterator<Item = &(i64, i64)> {
        self.0
            .iter()
            .filter(move |message| from < message.0 && message.0 <= to)
    }

    fn all(&self) -> Range<&Self> {
        self.from(0)
    }

    fn from(&self, from: i64) -> Range<&Self> {
        Range {
            messages: self,
            from,
            to: self.head(),
        }
    }
}

impl RecordingMessages for &Model {
    type Error = Infallible;

    fn counts(&self, from: i64, to: i64) -> Result<Counts, Infallible> {
        Ok(Counts {
            messages: self.between(from, to).count() as i64,
            payload_bytes: self.between(from, to).map(|message| message.1).sum(),
        })
    }

    fn cut(&self, from: i64, to: i64, quota: Counts) -> Result<Cut, Infallible> {
        let mut cut = Cut {
            position: from,
            counts: Counts::default(),
        };
        for &(position, payload_bytes) in self.between(from, to) {
            let one = Counts {
                messages: 1,
                payload_bytes,
            };
            if !fits(cut.counts + one, quota) {
                break;
            }
            cut = Cut {
                position,
                counts: cut.counts + one,
            };
        }
        Ok(cut)
    }
}

fn take_of(models: &[Model], limits: PlanLimits, rows: RowKind) -> Vec<Counts> {
    let ranges: Vec<_> = models.iter().map(Model::all).collect();
    let ends = take(&ranges, limits, rows).unwrap();
    let counts = models
        .iter()
        .zip(ends)
        .map(|(model, end)| (&model).counts(0, end));
    counts.map(Result::unwrap).collect()
}

fn rows(limit: u64) -> PlanLimits {
    PlanLimits {
        rows: Some(limit),
        payload_bytes: None,
    }
}

fn messages_taken(models: &[Model], limits: PlanLimits) -> Vec<i64> {
    let counts = take_of(models, limits, RowKind::Messages);
    counts.iter().map(|counts| counts.messages).collect()
}

/// 08-39
#[test]
fn shares_are_proportional_and_the_oldest_recordings_get_the_remainder() {
    let models = [
        Model::of(&[8; 30]),
        Model::of(&[8; 60]),
        Model::of(&[8; 10]),
    ];
    assert_eq!(messages_taken(&models, PlanLimits::default()), [30, 60, 10]);
    assert_eq!(messages_taken(&models, rows(100)), [30, 60, 10]);
    assert_eq!(messages_taken(&models, rows(50)), [15, 30, 5]);
    assert_eq!(messages_taken(&models, rows(19)), [7, 11, 1]);
    assert_eq!(messages_taken(&models, rows(1)), [1, 0, 0]);
}

/// 08-39
#[test]
fn a_message_longer_than_the_byte_limit_is_a_batch_of_its_own() {
    let bytes = |limit| PlanLimits {
        rows: None,
        payload_bytes: Some(limit),
    };
    let models = [Model::of(&[]), Model::of(&[500, 1]), Model::of(&[500])];
    assert_eq!(messages_taken(&models, bytes(499)), [0, 1, 0]);
    assert_eq!(messages_taken(&models, bytes(500)), [0, 1, 0]);
    assert_eq!(messages_taken(&models, bytes(1001)), [0, 2, 1]);
    assert_eq!(messages_taken(&models, bytes(0)), [0, 1, 0]);
}

/// 08-39: if both rows and bytes are limited, the smaller limit applies.
#[test]
fn the_smaller_one_of_both_limits_applies() {
    let models = [Model::of(&[100; 10])];
    let both = |rows, payload_bytes| PlanLimits {
        rows: Some(rows),
        payload_bytes: Some(payload_bytes),
    };
    assert_eq!(messages_taken(&models, both(3, 900)), [3]);
    assert_eq!(messages_taken(&models, both(9, 399)), [3]);
}

/// 08-39: with a record layout, each record is a row. A message may contain several records.
#[test]
fn rows_of_records_are_counted_by_the_record_length() {
    let models = [Model::of(&[48, 96, 144, 48])];
    let typed = RowKind::Records { length: 48 };
    let taken = |limit| take_of(&models, rows(limit), typed)[0];
    assert_eq!(typed.of(taken(7)), 7);
    assert_eq!(typed.of(taken(3)), 3);
    assert_eq!(typed.of(taken(5)), 3);
}

/// 08-43: publishers may send other messages between their records.
#[test]
fn messages_that_are_shorter_than_a_record_get_no_partition_of_their_own() {
    let pieces = |payloads: &[i64], max_rows| {
        let model = Model::of(payloads);
        let rows = RowKind::Records { length: 1024 };
        let cutting = RangeCutting {
            min_partitions: 1,
            max_rows,
            rows,
        };
        cut(&[model.all()], cutting).unwrap().len()
    };
    assert_eq!(pieces(&[1; 500], None), 1);
    assert_eq!(pieces(&[1024, 8], None), 1);
    assert_eq!(pieces(&[1024, 8, 8, 1024, 1], Some(2)), 1);
    assert_eq!(pieces(&[1024, 1024, 8], Some(1)), 2);
}

#[test]
fn a_range_without_messages_gives_no_piece() {
    let empty = Model::of(&[]);
    let range = Range {
        messages: &empty,
        from: 0,
        to: 4096,
    };
    let cutting = RangeCutting {
        min_partitions: 4,
        max_rows: Some(1),
        rows: RowKind::Messages,
    };
    assert_eq!(cut(&[range], cutting), Ok(vec![]));
}

#[test]
fn too_many_partitions_are_refused_with_the_numbers_in_the_error() {
    let model = Model::of(&vec![8; MAX_PARTITIONS + 1]);
    let cutting = RangeCutting {
        min_partitions: 1,
        max_rows: Some(1),
        rows: RowKind::Messages,
    };
    let error = cut(&[model.all()], cutting).unwrap_err().to_string();
    assert!(error.contains("maxRowsPerPartition=1"), "{error}");
    assert!(error.contains("100001 rows"), "{error}");
}

fn models() -> impl Strategy<Value = Vec<Model>> {
    let payloads = prop::collection::vec(0i64..2000, 0..60);
    prop::collection::vec(payloads.prop_map(|payloads| Model::of(&payloads)), 1..6)
}

fn row_kinds() -> impl Strategy<Value = RowKind> {
    prop_oneof![
        Just(RowKind::Messages),
        (1u32..200).prop_map(|length| RowKind::Records { length }),
    ]
}

proptest! {
    /// 08-39: no batch exceeds a limit, except with a single message. The batches together contain each message once.
    #[test]
    fn every_batch_is_within_the_limits_and_makes_progress(
        models in models(),
        row_kind in row_kinds(),
        row_limit in prop::option::of(1u64..100),
        byte_limit in prop::option::of(1u64..10_000),
    ) {
        let limits = PlanLimits { rows: row_limit, payload_bytes: byte_limit };
        let mut positions = vec![0; models.len()];
        loop {
            let ranges: Vec<_> = models.iter().zip(&positions)
                .map(|(model, &from)| model.from(from)).collect();
            let ends = take(&ranges, limits, row_kind).unwrap();
            let taken: Vec<Counts> = ranges.iter().zip(&ends)
                .map(|(range, &end)| range.messages.counts(range.from, end).unwrap()).collect();
            let total = sum(&taken);
            let is_all = ranges.iter().zip(&ends).all(|(range, &end)| range.to == end);
            prop_assert!(is_all || total.messages > 0, "no progress");
            if total.messages > 1 {
                prop_assert!(row_limit.is_none_or(|limit| row_kind.of(total) <= limit));
                prop_assert!(byte_limit.is_none_or(|limit| total.payload_bytes as u64 <= limit));
            }
            for (range, &end) in ranges.iter().zip(&ends) {
                let is_end = range.messages.0.iter().any(|message| message.0 == end);
                prop_assert!(end >= range.from && (end == range.from || is_end));
            }
            positions = ends;
            if is_all {
                break;
            }
        }
    }

    /// 08-39: each recording gets at least its proportional share of a row limit, rounded down.
    #[test]
    fn each_recording_gets_its_share_of_a_row_limit(models in models(), limit in 1u64..100) {
        let taken = messages_taken(&models, rows(limit));
        let total: usize = models.iter().map(|model| model.0.len()).sum();
        for (model, taken) in models.iter().zip(taken) {
            let own = model.0.len();
            let fair = (limit as usize * own / total.max(1)).min(own);
            prop_assert!(taken as usize >= fair);
        }
    }

    /// 08-43
    #[test]
    fn partitions_are_cut_between_messages_and_together_cover_the_range(
        models in models(),
        rows in row_kinds(),
        min_partitions in 1usize..50,
        max_rows in prop::option::of(1u64..50),
    ) {
        let ranges: Vec<_> = models.iter().map(Model::all).collect();
        let pieces = match cut(&ranges, RangeCutting { min_partitions, max_rows, rows }) {
            Ok(pieces) => pieces,
            // A message may have so many rows that one row each makes too many partitions.
            Err(CutError::TooMany { rows, max_rows, .. }) => {
                prop_assert!(rows > MAX_PARTITIONS as u64 * (max_rows - 1));
                return Ok(());
            }
            Err(error) => panic!("{error}"),
        };
        for (number, model) in models.iter().enumerate() {
            let own: Vec<_> = pieces.iter().filter(|piece| piece.range == number).collect();
            let mut at = 0;
            for piece in own {
                prop_assert_eq!(piece.from, at);
                prop_assert!(model.0.iter().any(|message| message.0 == piece.to));
                let counts = model.between(piece.from, piece.to).count();
                let records = rows.of((&model).counts(piece.from, piece.to).unwrap());
                prop_assert!(counts == 1 || max_rows.is_none_or(|most| records <= most));
                at = piece.to;
            }
            prop_assert_eq!(at, model.head());
        }
        let messages: usize = models.iter().map(|model| model.0.len()).sum();
        if rows == RowKind::Messages {
            prop_assert!(pieces.len() >= min_partitions.min(messages));
        }
    }
}
