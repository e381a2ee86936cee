//! Sends runs with segmentation offload where the path can do it, and plain where it cannot.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;

use rustix::io::Errno;

use super::is_not_now;
use crate::media::transport::{MAX_RUN_DATAGRAMS, Run};

/// Destinations that are remembered to refuse trains; beyond it all are forgotten, and found out again.
const MAX_PLAIN_DESTINATIONS: usize = 4_096;

/// Datagrams of a refused run in one call.
const PLAIN_BATCH: usize = 16;

/// The system call: sends runs in order, answers how many of them were taken, at least one. Trains are left to the system to cut.
pub trait SendCall {
    /// Sends to `to`, or to the connected peer.
    fn send(&self, to: Option<SocketAddr>, runs: &[Run<'_>]) -> io::Result<usize>;
}

/// What a socket has learnt of its destinations.
#[derive(Debug)]
pub struct RunSender {
    can_segment: bool,
    plain_destinations: HashSet<Option<SocketAddr>>,
}

impl RunSender {
    /// Nothing is known yet; trains are tried if the system knows them.
    pub fn new(can_segment: bool) -> Self {
        RunSender {
            can_segment,
            plain_destinations: HashSet::new(),
        }
    }

    /// How many datagrams the next run should have at most.
    pub fn max_run_datagrams(&self, to: Option<SocketAddr>) -> usize {
        match self.segments_to(to) {
            true => MAX_RUN_DATAGRAMS,
            false => 1,
        }
    }

    /// The connected peer is another one now.
    pub fn forget_peer(&mut self) {
        self.plain_destinations.remove(&None);
    }

    /// Sends `runs` by as few calls as it takes; answers how many of them were taken as a whole.
    ///
    /// # Errors
    /// What the system says if no run was taken, except that it can take none now.
    pub fn send(
        &mut self,
        call: &impl SendCall,
        to: Option<SocketAddr>,
        runs: &[Run<'_>],
    ) -> io::Result<usize> {
        let mut taken = 0;
        while taken < runs.len() {
            match self.send_some(call, to, &runs[taken..]) {
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
        runs: &[Run<'_>],
    ) -> io::Result<usize> {
        let segments = self.segments_to(to);
        let batch = match segments {
            true => runs,
            false => leading_singles(runs),
        };
        if let Some(first) = batch.first() {
            match call.send(to, batch) {
                Err(error) if is_train(first) && is_refusal(&error) => {}
                result => return result,
            }
        }
        send_plain(call, to, &runs[0])?;
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

fn is_train(run: &Run<'_>) -> bool {
    run.length > run.datagram_length
}

/// Whether the error says that a train cannot go this way: its datagrams are longer than the MTU of the path, which would have to
/// cut each of them again; kernels and devices differ in how they say it.
fn is_refusal(error: &io::Error) -> bool {
    [Errno::MSGSIZE, Errno::INVAL, Errno::IO]
        .iter()
        .any(|refusal| error.raw_os_error() == Some(refusal.raw_os_error()))
}

fn leading_singles<'r, 'a>(runs: &'r [Run<'a>]) -> &'r [Run<'a>] {
    let count = runs.iter().take_while(|run| !is_train(run)).count();
    &runs[..count]
}

/// Sends the datagrams of a run one by one, many in a call.
fn send_plain(call: &impl SendCall, to: Option<SocketAddr>, run: &Run<'_>) -> io::Result<()> {
    let mut datagrams = run.datagrams();
    let mut batch = [*run; PLAIN_BATCH];
    loop {
        let mut count = 0;
        for (slot, datagram) in batch.iter_mut().zip(datagrams.by_ref()) {
            *slot = datagram;
            count += 1;
        }
        if count == 0 {
            return Ok(());
        }
        let mut sent = 0;
        while sent < count {
            sent += call.send(to, &batch[sent..count])?;
        }
    }
}
