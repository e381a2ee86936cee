//! [`GsoSender`]: sends GSO batches with segmentation offload if the path supports it, and otherwise datagram by
//! datagram.
//!
//! A *train* is a GSO batch of more than one datagram.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;

use rustix::io::Errno;

use super::is_not_now;
use crate::media::transport::{GsoBatch, MAX_GSO_BATCH_DATAGRAMS};

/// Maximum number of remembered destinations that refuse trains. If one more destination refuses a train, the others
/// are forgotten, and trains to them are tried again.
const MAX_PLAIN_DESTINATIONS: usize = 4_096;

/// Maximum number of datagrams that one call sends from a refused GSO batch.
const PLAIN_BATCH: usize = 16;

/// The system call that sends datagrams.
pub trait SendCall {
    /// Sends `batches` to `to`; `None` stands for the connected peer. The system cuts the batches into datagrams.
    ///
    /// Returns the number of accepted batches, at least one.
    fn send(&self, to: Option<SocketAddr>, batches: &[GsoBatch<'_>]) -> io::Result<usize>;
}

/// Sends batches and remembers which destinations refuse trains.
#[derive(Debug)]
pub struct GsoSender {
    can_segment: bool,
    plain_destinations: HashSet<Option<SocketAddr>>,
}

impl GsoSender {
    /// Creates a sender without knowledge of destinations. If `can_segment` is true, the sender tries trains.
    pub fn new(can_segment: bool) -> Self {
        GsoSender {
            can_segment,
            plain_destinations: HashSet::new(),
        }
    }

    /// Returns the maximum number of datagrams for the next batch.
    pub fn max_gso_batch_datagrams(&self, to: Option<SocketAddr>) -> usize {
        match self.segments_to(to) {
            true => MAX_GSO_BATCH_DATAGRAMS,
            false => 1,
        }
    }

    /// Forgets whether the connected peer refuses trains, because the peer was replaced.
    pub fn forget_peer(&mut self) {
        self.plain_destinations.remove(&None);
    }

    /// Sends `batches` with as few calls as possible. Returns the number of batches that were accepted
    /// completely.
    ///
    /// # Errors
    /// The error of the system, if no batch was accepted. A socket that cannot accept a batch now is not an error.
    pub fn send(
        &mut self,
        call: &impl SendCall,
        to: Option<SocketAddr>,
        batches: &[GsoBatch<'_>],
    ) -> io::Result<usize> {
        let mut taken = 0;
        while taken < batches.len() {
            match self.send_some(call, to, &batches[taken..]) {
                Ok(0) => break,
                Ok(count) => taken += count,
                Err(error) if taken > 0 || is_not_now(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }

    fn segments_to(&self, to: Option<SocketAddr>) -> bool {
        self.can_segment
            && (self.plain_destinations.is_empty() || !self.plain_destinations.contains(&to))
    }

    fn send_some(
        &mut self,
        call: &impl SendCall,
        to: Option<SocketAddr>,
        batches: &[GsoBatch<'_>],
    ) -> io::Result<usize> {
        let segments = self.segments_to(to);
        let sendable = match segments {
            true => batches,
            false => leading_singles(batches),
        };
        if let Some(first) = sendable.first() {
            match call.send(to, sendable) {
                Err(error) if is_train(first) && is_refusal(&error) => {}
                result => return result,
            }
        }
        send_plain(call, to, &batches[0])?;
        if segments {
            self.remember_plain(to);
        }
        Ok(1)
    }

    fn remember_plain(&mut self, to: Option<SocketAddr>) {
        if self.plain_destinations.len() == MAX_PLAIN_DESTINATIONS {
            self.plain_destinations.clear();
        }
        self.plain_destinations.insert(to);
    }
}

fn is_train(batch: &GsoBatch<'_>) -> bool {
    !batch.is_single()
}

/// Returns whether the error means that trains cannot be sent on this path.
///
/// The reason is that the datagrams of the train are longer than the MTU of the path and would have to be fragmented.
/// Kernels and devices report this with different errors.
fn is_refusal(error: &io::Error) -> bool {
    [Errno::MSGSIZE, Errno::INVAL, Errno::IO]
        .iter()
        .any(|refusal| error.raw_os_error() == Some(refusal.raw_os_error()))
}

fn leading_singles<'r, 'a>(batches: &'r [GsoBatch<'a>]) -> &'r [GsoBatch<'a>] {
    let count = batches.iter().take_while(|batch| !is_train(batch)).count();
    &batches[..count]
}

/// Sends the datagrams of a batch without offload, up to [`PLAIN_BATCH`] of them in one call.
fn send_plain(
    call: &impl SendCall,
    to: Option<SocketAddr>,
    batch: &GsoBatch<'_>,
) -> io::Result<()> {
    let mut datagrams = batch.datagrams();
    let mut singles = [*batch; PLAIN_BATCH];
    loop {
        let mut count = 0;
        for (slot, datagram) in singles.iter_mut().zip(datagrams.by_ref()) {
            *slot = datagram;
            count += 1;
        }
        if count == 0 {
            return Ok(());
        }
        let mut sent = 0;
        while sent < count {
            let taken = call.send(to, &singles[sent..count])?;
            debug_assert!(
                (1..=count - sent).contains(&taken),
                "the system call has sent {taken} of {} datagrams: none at all would be repeated forever",
                count - sent
            );
            sent += taken;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use aeron_memory::{SharedBuffer, Words};
    use proptest::prelude::*;

    use super::*;

    const DATAGRAM_LENGTH: usize = 32;

    /// A simulated kernel.
    ///
    /// It stores sent datagrams, accepts a limited number of batches in a call, and refuses batches if a test asks for
    /// it.
    #[derive(Default)]
    struct Kernel {
        /// The first byte of each sent datagram.
        sent: RefCell<Vec<u8>>,
        /// Number of datagrams in each sent batch.
        gso_batch_sizes: RefCell<Vec<usize>>,
        /// Results of the next calls. Later calls accept all batches.
        answers: RefCell<Vec<Answer>>,
        takes_no_trains: bool,
    }

    #[derive(Clone, Copy, Debug)]
    enum Answer {
        TakeAtMost(usize),
        Fail(Errno),
    }

    impl SendCall for Kernel {
        fn send(&self, _to: Option<SocketAddr>, batches: &[GsoBatch<'_>]) -> io::Result<usize> {
            let limit = match self.answers.borrow_mut().pop() {
                Some(Answer::Fail(error)) if is_train(&batches[0]) || error == Errno::AGAIN => {
                    return Err(error.into());
                }
                Some(Answer::TakeAtMost(limit)) => limit,
                _ => batches.len(),
            };
            for (i, batch) in batches.iter().take(limit).enumerate() {
                if self.takes_no_trains && is_train(batch) {
                    return if i == 0 {
                        Err(Errno::MSGSIZE.into())
                    } else {
                        Ok(i)
                    };
                }
                self.gso_batch_sizes
                    .borrow_mut()
                    .push(batch.datagram_count());
                let first_bytes = batch
                    .datagrams()
                    .map(|one| one.memory().load_u8_relaxed(one.offset()));
                self.sent.borrow_mut().extend(first_bytes);
            }
            Ok(limit.min(batches.len()))
        }
    }

    /// Returns 250 datagrams, each beginning with its number.
    fn numbered() -> SharedBuffer {
        let bytes: Vec<u8> = (0..250)
            .flat_map(|number| [number; DATAGRAM_LENGTH])
            .collect();
        SharedBuffer::copy_of(&bytes)
    }

    /// Returns GSO batches with these numbers of datagrams.
    fn batches<'a>(memory: &'a SharedBuffer, counts: &[usize]) -> Vec<GsoBatch<'a>> {
        let mut first = 0;
        let mut batch = |count: &usize| {
            let offset = first * DATAGRAM_LENGTH;
            first += count;
            let end = first * DATAGRAM_LENGTH;
            GsoBatch::new(memory, offset..end, DATAGRAM_LENGTH)
        };
        counts.iter().map(&mut batch).collect()
    }

    fn destination(port: u16) -> Option<SocketAddr> {
        Some(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    #[test]
    fn one_call_sends_all_batches_as_whole_trains() {
        let (memory, kernel) = (numbered(), Kernel::default());
        let mut sender = GsoSender::new(true);
        let taken = sender
            .send(&kernel, None, &batches(&memory, &[46, 1, 64]))
            .unwrap();
        assert_eq!(taken, 3);
        assert_eq!(*kernel.gso_batch_sizes.borrow(), [46, 1, 64]);
    }

    #[test]
    fn a_destination_that_refuses_a_train_gets_its_datagrams_one_by_one_and_no_more_trains() {
        for refusal in [Errno::MSGSIZE, Errno::INVAL, Errno::IO] {
            let (memory, kernel) = (numbered(), Kernel::default());
            let mut sender = GsoSender::new(true);
            kernel.answers.borrow_mut().push(Answer::Fail(refusal));
            let batches = batches(&memory, &[20, 20]);
            assert_eq!(sender.send(&kernel, destination(1), &batches).unwrap(), 2);
            assert_eq!(*kernel.sent.borrow(), (0..40).collect::<Vec<u8>>());
            assert_eq!(*kernel.gso_batch_sizes.borrow(), [1; 40]);
            assert_eq!(sender.max_gso_batch_datagrams(destination(1)), 1);
            assert_eq!(
                sender.max_gso_batch_datagrams(destination(2)),
                MAX_GSO_BATCH_DATAGRAMS
            );
            kernel.gso_batch_sizes.borrow_mut().clear();
            sender.send(&kernel, destination(2), &batches).unwrap();
            assert_eq!(*kernel.gso_batch_sizes.borrow(), [20, 20]);
        }
    }

    #[test]
    fn trains_are_tried_again_after_the_peer_was_replaced() {
        let memory = numbered();
        let kernel = Kernel {
            takes_no_trains: true,
            ..Kernel::default()
        };
        let mut sender = GsoSender::new(true);
        sender
            .send(&kernel, None, &batches(&memory, &[1, 9]))
            .unwrap();
        assert_eq!(sender.max_gso_batch_datagrams(None), 1);
        sender.forget_peer();
        assert_eq!(
            sender.max_gso_batch_datagrams(None),
            MAX_GSO_BATCH_DATAGRAMS
        );
    }

    #[test]
    fn the_number_of_remembered_destinations_is_limited() {
        let memory = numbered();
        let kernel = Kernel {
            takes_no_trains: true,
            ..Kernel::default()
        };
        let mut sender = GsoSender::new(true);
        for port in 0..=MAX_PLAIN_DESTINATIONS as u16 {
            sender
                .send(&kernel, destination(port), &batches(&memory, &[2]))
                .unwrap();
        }
        assert_eq!(sender.plain_destinations.len(), 1);
    }

    #[test]
    fn without_segmentation_datagrams_are_sent_one_by_one_and_no_destination_is_remembered() {
        let (memory, kernel) = (numbered(), Kernel::default());
        let mut sender = GsoSender::new(false);
        assert_eq!(
            sender
                .send(&kernel, None, &batches(&memory, &[1, 1, 40]))
                .unwrap(),
            3
        );
        assert_eq!(*kernel.gso_batch_sizes.borrow(), [1; 42]);
        assert_eq!(sender.max_gso_batch_datagrams(None), 1);
        assert!(sender.plain_destinations.is_empty());
    }

    #[test]
    fn a_full_socket_is_not_an_error_and_other_errors_are_returned_if_no_batch_was_accepted() {
        let (memory, kernel) = (numbered(), Kernel::default());
        let batches = batches(&memory, &[4, 4]);
        let mut sender = GsoSender::new(true);
        for not_now in [Errno::AGAIN, Errno::INTR, Errno::CONNREFUSED] {
            *kernel.answers.borrow_mut() = vec![Answer::Fail(not_now)];
            assert_eq!(sender.send(&kernel, None, &batches).unwrap(), 0);
        }
        *kernel.answers.borrow_mut() = vec![Answer::Fail(Errno::NETUNREACH)];
        let error = sender.send(&kernel, None, &batches).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::NETUNREACH.raw_os_error()));
        *kernel.answers.borrow_mut() = vec![Answer::Fail(Errno::PERM), Answer::TakeAtMost(1)];
        assert_eq!(sender.send(&kernel, None, &batches).unwrap(), 1);
    }

    fn answers() -> impl Strategy<Value = Vec<Answer>> {
        let answer = prop_oneof![
            4 => (1usize..4).prop_map(Answer::TakeAtMost),
            1 => prop::sample::select(vec![Errno::MSGSIZE, Errno::INVAL, Errno::IO]).prop_map(Answer::Fail),
            2 => Just(Answer::Fail(Errno::AGAIN)),
        ];
        prop::collection::vec(answer, 0..40)
    }

    proptest! {
        /// After a refusal, the test sends again from the first batch that was not accepted, as a publication does.
        ///
        /// If the repeated copies are left out, the sent datagrams are the complete stream in order. A datagram is
        /// repeated only together with its whole batch.
        #[test]
        fn no_refusal_of_the_kernel_loses_a_datagram(
            counts in prop::collection::vec(1usize..24, 1..10),
            answers in answers(),
            can_segment: bool,
        ) {
            let (memory, kernel) = (numbered(), Kernel { answers: answers.into(), ..Kernel::default() });
            let all = batches(&memory, &counts);
            let mut sender = GsoSender::new(can_segment);
            let mut done = 0;
            while done < all.len() {
                let before = kernel.sent.borrow().len();
                done += sender.send(&kernel, destination(9), &all[done..]).unwrap_or(0);
                let first = kernel.sent.borrow().get(before).copied();
                let is_batch_start = |number: u8| {
                    all.iter().any(|batch| batch.offset() == usize::from(number) * DATAGRAM_LENGTH)
                };
                prop_assert!(first.is_none_or(is_batch_start));
            }
            let mut first_copies = kernel.sent.take();
            let mut seen = std::collections::HashSet::new();
            first_copies.retain(|number| seen.insert(*number));
            let total: usize = counts.iter().sum();
            prop_assert_eq!(first_copies, (0..total as u8).collect::<Vec<u8>>());
        }
    }
}
