//! [`UdpPoller`]: finds readable sockets. On Linux, it calls epoll if there are many sockets. Otherwise it reports all
//! sockets.

use std::io;
#[cfg(target_os = "linux")]
use std::mem::MaybeUninit;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;

#[cfg(target_os = "linux")]
use rustix::event::epoll;

use crate::media::transport::{Poller, Socket, SocketKey};

/// Maximum number of sockets that are all reported as ready. Up to this number, reading from all sockets takes less
/// time than a call of epoll.
#[cfg(target_os = "linux")]
const MAX_SOCKETS_TRIED: usize = 5;

/// Maximum number of sockets in one epoll call; the next call reports the others.
#[cfg(target_os = "linux")]
const MAX_EVENTS: usize = 64;

/// Polls sockets of the operating system.
#[derive(Debug, Default)]
pub struct UdpPoller {
    keys: Vec<SocketKey>,
    #[cfg(target_os = "linux")]
    epoll: Option<OwnedFd>,
}

impl Poller for UdpPoller {
    fn add(&mut self, key: SocketKey, socket: &dyn Socket) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            let descriptor = socket.descriptor().ok_or(io::ErrorKind::Unsupported)?;
            let epoll = match &mut self.epoll {
                Some(epoll) => epoll,
                none => none.insert(epoll::create(epoll::CreateFlags::CLOEXEC)?),
            };
            let data = epoll::EventData::new_u64(key);
            epoll::add(epoll, descriptor, data, epoll::EventFlags::IN)?;
        }
        #[cfg(not(target_os = "linux"))]
        let _ = socket;
        self.keys.push(key);
        Ok(())
    }

    fn remove(&mut self, key: SocketKey, socket: &dyn Socket) {
        #[cfg(target_os = "linux")]
        if let (Some(epoll), Some(descriptor)) = (&self.epoll, socket.descriptor()) {
            // Fails only if the socket was not added.
            let _ = epoll::delete(epoll, descriptor);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = socket;
        self.keys.retain(|known| *known != key);
    }

    fn ready(&mut self, on_ready: &mut dyn FnMut(SocketKey)) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if let (Some(epoll), true) = (&self.epoll, self.keys.len() > MAX_SOCKETS_TRIED) {
            return ready_by(epoll, on_ready);
        }
        self.keys.iter().copied().for_each(on_ready);
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn ready_by(epoll: &OwnedFd, on_ready: &mut dyn FnMut(SocketKey)) -> io::Result<()> {
    let mut events = [const { MaybeUninit::uninit() }; MAX_EVENTS];
    let ready = match epoll::wait(epoll, &mut events, Some(&NOW)) {
        Ok((ready, _)) => ready,
        Err(rustix::io::Errno::INTR) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for event in ready {
        on_ready(event.data.u64());
    }
    Ok(())
}

#[cfg(target_os = "linux")]
const NOW: rustix::event::Timespec = rustix::event::Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};
