//! A log that another process overwrites, terms and metadata included: all operations of driver and client end, stay
//! within the log, and return a value or an error.
#![no_main]

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::append::{ConcurrentAppender, ExclusiveAppender};
use aeron_memory::log::frame::FRAME_ALIGNMENT;
use aeron_memory::log::gap::{self, Gap};
use aeron_memory::log::metadata::METADATA_LENGTH;
use aeron_memory::log::position::PARTITION_COUNT;
use aeron_memory::log::{LogBuffers, LogDescription, LogType, clean, rebuild, scan, unblock};
use aeron_memory::words::Words;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

const TERM_LENGTH: usize = 64 * 1024;
const LOG_LENGTH: usize = PARTITION_COUNT * TERM_LENGTH + METADATA_LENGTH;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    start_position: u64,
    initial_term_id: i32,
    patches: Vec<Patch<'a>>,
    operations: Vec<Operation<'a>>,
}

/// Bytes that the other process writes.
#[derive(Arbitrary, Debug)]
struct Patch<'a> {
    is_metadata: bool,
    offset: u32,
    bytes: &'a [u8],
}

#[derive(Arbitrary, Debug)]
enum Place {
    FromProducer(i16),
    At(i64),
}

#[derive(Arbitrary, Debug)]
enum Operation<'a> {
    Patch(Patch<'a>),
    Poll {
        from: Place,
        limit: i64,
    },
    Block {
        from: Place,
        limit: u32,
    },
    ScanGap {
        partition: u8,
        from: u16,
        limit: u32,
    },
    FillGap {
        term_id: i32,
        offset: u32,
        length: u32,
    },
    Send {
        from: Place,
        max_length: u16,
    },
    Insert {
        partition: u8,
        offset: u32,
        datagram: &'a [u8],
    },
    Unblock {
        at: Place,
    },
    Clean {
        from: Place,
        target: i64,
    },
    Offer {
        limit: i64,
        length: u16,
    },
    Claim {
        limit: i64,
        length: u16,
    },
    Batch {
        limit: i64,
        lengths: &'a [u8],
    },
    OfferExclusive {
        limit: i64,
        length: u16,
    },
    PadExclusive {
        limit: i64,
        length: u16,
    },
    BatchExclusive {
        limit: i64,
        lengths: &'a [u8],
    },
    BlockExclusive {
        limit: i64,
        block: &'a [u8],
    },
}

fuzz_target!(|input: Input| {
    let memory = SharedBuffer::heap(LOG_LENGTH);
    let description = LogDescription::new(
        LogType::ConcurrentPublication,
        7,
        1001,
        input.initial_term_id,
    );
    let max_position = (TERM_LENGTH as u64) << 31;
    let start_position = (input.start_position % max_position) as i64 & -(FRAME_ALIGNMENT as i64);
    LogBuffers::create(&memory, &description, start_position).expect("the description is valid");
    for patch in &input.patches {
        patch.apply(&memory);
    }
    let Ok(log) = LogBuffers::attach(&memory) else {
        return;
    };
    let _ = log.metadata().description();
    for operation in &input.operations {
        operation.run(&memory, &log);
    }
});

impl Patch<'_> {
    fn apply(&self, memory: &SharedBuffer) {
        let begin = if self.is_metadata {
            LOG_LENGTH - METADATA_LENGTH
        } else {
            0
        };
        let offset = begin + self.offset as usize % (LOG_LENGTH - begin);
        memory.copy_in(
            offset,
            &self.bytes[..self.bytes.len().min(LOG_LENGTH - offset)],
        );
    }
}

impl Place {
    fn position(&self, log: &LogBuffers<SharedBuffer>) -> i64 {
        match self {
            Self::FromProducer(delta) => log
                .producer_position()
                .saturating_add(i64::from(*delta) * FRAME_ALIGNMENT as i64),
            Self::At(position) => *position,
        }
    }

    /// Returns the position as the driver itself would have recorded it: aligned, and below the maximum position.
    fn own_position(&self, log: &LogBuffers<SharedBuffer>) -> i64 {
        self.position(log)
            .clamp(0, log.positions().max_position() - 1)
            & -(FRAME_ALIGNMENT as i64)
    }
}

impl Operation<'_> {
    fn run(&self, memory: &SharedBuffer, log: &LogBuffers<SharedBuffer>) {
        match self {
            Self::Patch(patch) => patch.apply(memory),
            Self::Poll { from, limit } => poll(log, from.position(log), *limit),
            Self::Block { from, limit } => {
                if let Ok(mut cursor) = log.cursor(from.position(log)) {
                    while let Ok(Some(block)) = cursor.next_block(*limit as usize) {
                        assert!(block.offset() + block.length() <= log.term_length());
                    }
                }
            }
            Self::ScanGap {
                partition,
                from,
                limit,
            } => {
                let from = usize::from(*from) & !(FRAME_ALIGNMENT - 1);
                let limit = *limit as usize & !(FRAME_ALIGNMENT - 1);
                let _ = gap::scan(log.term(usize::from(partition % 3)), 0, from, limit);
            }
            Self::FillGap {
                term_id,
                offset,
                length,
            } => {
                let _ = gap::fill(
                    log,
                    *term_id,
                    Gap {
                        offset: *offset as usize,
                        length: *length as usize,
                    },
                );
            }
            Self::Send { from, max_length } => {
                let _ = scan::scan(log, from.position(log), usize::from(*max_length));
            }
            Self::Insert {
                partition,
                offset,
                datagram,
            } => {
                let _ = rebuild::insert(
                    log.term(usize::from(partition % 3)),
                    *offset as usize,
                    datagram,
                );
            }
            Self::Unblock { at } => {
                let _ = unblock::unblock(log, at.own_position(log));
            }
            Self::Clean { from, target } => {
                let _ = clean::clean(log, from.own_position(log), *target);
            }
            _ => self.append(log),
        }
    }

    fn append(&self, log: &LogBuffers<SharedBuffer>) {
        let concurrent = ConcurrentAppender::new(log.clone());
        match self {
            Self::Offer { limit, length } => {
                let _ = concurrent.offer(*limit, &vec![7; usize::from(*length)]);
            }
            Self::Claim { limit, length } => {
                let _ = concurrent.try_claim(*limit, usize::from(*length));
            }
            Self::Batch { limit, lengths } if !lengths.is_empty() => {
                let _ = concurrent.offer_batch(*limit, messages(lengths).as_slice(), 0);
            }
            _ => {}
        }
        let Ok(mut exclusive) = ExclusiveAppender::new(log.clone()) else {
            return;
        };
        match self {
            Self::OfferExclusive { limit, length } => {
                let _ = exclusive.offer(*limit, &vec![7; usize::from(*length)]);
            }
            Self::PadExclusive { limit, length } => {
                let _ = exclusive.append_padding(*limit, usize::from(*length));
            }
            Self::BatchExclusive { limit, lengths } if !lengths.is_empty() => {
                let _ = exclusive.offer_batch(*limit, messages(lengths).as_slice(), 0);
            }
            Self::BlockExclusive { limit, block } => {
                let _ = exclusive.offer_block(*limit, block);
            }
            _ => {}
        }
    }
}

fn poll(log: &LogBuffers<SharedBuffer>, position: i64, limit: i64) {
    let Ok(cursor) = log.cursor(position) else {
        return;
    };
    let mut cursor = cursor.bounded(limit);
    while let Ok(Some(fragment)) = cursor.next_fragment() {
        assert!(fragment.position() > fragment.begin_position());
        let _ = (
            fragment.to_vec(),
            fragment.flags(),
            fragment.term_id(),
            fragment.reserved_value(),
        );
    }
}

/// Returns messages of 0 to 4,080 bytes. The longer ones need several frames.
fn messages(lengths: &[u8]) -> Vec<Vec<u8>> {
    lengths
        .iter()
        .take(256)
        .map(|length| vec![*length; usize::from(*length) * 16])
        .collect()
}
