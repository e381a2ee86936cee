//! [`SourceConnections`]: the sources of an image, at most one for each destination of its endpoint.

use std::net::SocketAddr;

use super::destination::ACTIVITY_TIMEOUT_NS;

/// The source that sends to one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceConnection {
    /// Key of the destination in the receiver.
    pub destination: usize,
    /// Source address of the first frame. Control frames are sent to this address, even if later frames come from
    /// another address.
    pub source: Option<SocketAddr>,
    end_of_stream_position: Option<i64>,
    time_of_last_activity_ns: i64,
    time_of_last_frame_ns: Option<i64>,
}

impl SourceConnection {
    /// Returns whether a frame has arrived recently.
    pub fn is_active(&self, now_ns: i64) -> bool {
        now_ns < self.time_of_last_activity_ns + ACTIVITY_TIMEOUT_NS
    }
}

/// The connections of an image.
#[derive(Debug, Default)]
pub struct SourceConnections {
    list: Vec<SourceConnection>,
}

impl SourceConnections {
    /// Adds a connection for a destination that has none. The connection is active, as if a frame had just arrived.
    pub fn add(&mut self, destination: usize, source: Option<SocketAddr>, now_ns: i64) {
        debug_assert!(
            self.list
                .iter()
                .all(|connection| connection.destination != destination),
            "destination {destination} has a connection already"
        );
        self.list.push(SourceConnection {
            destination,
            source,
            end_of_stream_position: None,
            time_of_last_activity_ns: now_ns,
            time_of_last_frame_ns: None,
        });
    }

    pub fn remove(&mut self, destination: usize) {
        self.list
            .retain(|connection| connection.destination != destination);
    }

    /// Records that a frame has arrived at a destination.
    #[inline]
    pub fn track(&mut self, destination: usize, source: SocketAddr, now_ns: i64) {
        let connection = self.of(destination, now_ns);
        debug_assert!(
            connection.time_of_last_activity_ns <= now_ns,
            "the last frame of destination {destination} arrived later than now, {now_ns}"
        );
        connection.source.get_or_insert(source);
        connection.time_of_last_activity_ns = now_ns;
        connection.time_of_last_frame_ns = Some(now_ns);
    }

    /// Records that the source of a destination has ended the stream.
    ///
    /// If all sources have ended the stream, returns the end position.
    pub fn end(&mut self, destination: usize, position: i64, now_ns: i64) -> Option<i64> {
        self.of(destination, now_ns).end_of_stream_position = Some(position);
        self.list
            .iter()
            .map(|connection| connection.end_of_stream_position)
            .reduce(|a, b| Some(a?.max(b?)))
            .flatten()
    }

    pub fn iter(&self) -> impl Iterator<Item = &SourceConnection> {
        self.list.iter()
    }

    /// Returns the number of connections that received a frame in the last `timeout_ns`.
    pub fn active_count(&self, timeout_ns: i64, now_ns: i64) -> usize {
        self.list
            .iter()
            .filter_map(|connection| connection.time_of_last_frame_ns)
            .filter(|time_ns| now_ns < time_ns.saturating_add(timeout_ns))
            .count()
    }

    fn of(&mut self, destination: usize, now_ns: i64) -> &mut SourceConnection {
        let found = self
            .list
            .iter()
            .position(|connection| connection.destination == destination);
        let index = found.unwrap_or_else(|| {
            self.add(destination, None, now_ns);
            self.list.len() - 1
        });
        &mut self.list[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn the_source_of_a_connection_is_the_source_of_its_first_frame_04_159() {
        let mut connections = SourceConnections::default();
        connections.add(3, None, 0);
        connections.track(3, address(1), 10);
        connections.track(3, address(2), 20);
        let sources: Vec<_> = connections.iter().map(|c| c.source).collect();
        assert_eq!(sources, [Some(address(1))]);
    }

    #[test]
    fn the_stream_ends_when_all_sources_have_ended_it_02_70_04_158() {
        let mut connections = SourceConnections::default();
        connections.track(1, address(1), 0);
        connections.track(2, address(2), 0);
        assert_eq!(connections.end(1, 640, 0), None);
        assert_eq!(connections.end(2, 320, 0), Some(640));
    }

    #[test]
    fn a_source_is_active_for_five_seconds_after_its_last_frame() {
        let mut connections = SourceConnections::default();
        connections.track(1, address(1), 7);
        let is_active = |connections: &SourceConnections, now_ns| {
            connections
                .iter()
                .all(|connection| connection.is_active(now_ns))
        };
        assert!(is_active(&connections, 6 + ACTIVITY_TIMEOUT_NS));
        assert!(!is_active(&connections, 7 + ACTIVITY_TIMEOUT_NS));
        assert_eq!(connections.active_count(100, 106), 1);
        assert_eq!(connections.active_count(100, 107), 0);
    }
}
