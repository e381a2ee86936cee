//! Numbers with a name: enumerations of the schema, and the codes of errors.

/// Declares an enumeration whose numbers are in messages.
macro_rules! codes {
    ($(
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $( $(#[$variant_attribute:meta])* $variant:ident = $value:literal, )*
        }
    )*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i32)]
        pub enum $name {
            $( $(#[$variant_attribute])* $variant = $value, )*
        }

        impl $name {
            /// Returns the variant for a number from a message; `None` if the number is not defined.
            #[must_use]
            pub const fn from_value(value: i32) -> Option<Self> {
                match value {
                    $( $value => Some(Self::$variant), )*
                    _ => None,
                }
            }

            /// Returns the number that is written into messages.
            #[must_use]
            pub const fn value(self) -> i32 {
                self as i32
            }
        }
    )*};
}

codes! {
    /// Kind of a response. It determines the meaning of the response's `relevant_id`.
    pub enum ControlResponseCode {
        /// The request succeeded; `relevant_id` is its result.
        Ok = 0,
        /// The request failed; `relevant_id` is an [`ArchiveErrorCode`].
        Error = 1,
        /// No recording, or no further recording, was found; `relevant_id` is the recording id at which the search
        /// ended.
        RecordingUnknown = 2,
        /// No further subscription was found.
        SubscriptionUnknown = 3,
    }

    /// Location of a recorded stream, seen from the archive.
    pub enum SourceLocation {
        /// A publication of the archive's own driver. The archive records the publication through a spy subscription.
        Local = 0,
        /// A publication of another driver. The archive subscribes to the channel.
        Remote = 1,
    }

    /// An event of a recording.
    pub enum RecordingSignal {
        /// A recording began.
        Start = 0,
        /// A recording ended.
        Stop = 1,
        /// A recording continues an existing recording.
        Extend = 2,
        /// A replication began.
        Replicate = 3,
        /// A replication has merged with the live stream.
        Merge = 4,
        /// A replication is at the end of its source.
        Sync = 5,
        /// Files of a recording were deleted.
        Delete = 6,
        /// A replication ended.
        ReplicateEnd = 7,
    }

    /// Reason of a failed request, as in [`ControlResponse::relevant_id`](super::ControlResponse::relevant_id).
    pub enum ArchiveErrorCode {
        /// An error that has no other code; see the message.
        Generic = 0,
        /// The session has a listing that has not ended.
        ActiveListing = 1,
        /// The recording is active: it is being recorded or replayed.
        ActiveRecording = 2,
        /// A subscription already records this stream and channel.
        ActiveSubscription = 3,
        /// No subscription of the archive matches.
        UnknownSubscription = 4,
        /// No recording has the id, or the recording has another stream.
        UnknownRecording = 5,
        /// No replay has the id. Aeron does not send this code.
        UnknownReplay = 6,
        /// The archive has reached its maximum number of replays.
        MaxReplays = 7,
        /// The archive has reached its maximum number of recordings.
        MaxRecordings = 8,
        /// The stream does not continue the recording to extend.
        InvalidExtension = 9,
        /// The credentials were refused.
        AuthenticationRejected = 10,
        /// The file system has too little space.
        StorageSpace = 11,
        /// No replication has the id.
        UnknownReplication = 12,
        /// The client is not authorised for this action.
        UnauthorisedAction = 13,
        /// The source archive of a replication cannot be reached.
        ReplicationConnectionFailure = 14,
        /// The range to replay is empty.
        EmptyRecording = 15,
        /// The position is out of range, or no frame begins at the position.
        InvalidPosition = 16,
    }

    /// Whether a range begins or ends at a position that is found by time.
    pub enum TimeEdge {
        /// A range begins at the position. The first message that arrived at or after the time is in this range.
        Since = 0,
        /// A range ends at the position. The last message that arrived before the time is in this range.
        Until = 1,
    }

    /// Reason why an archive keeps data that a retention policy would delete.
    pub enum RetentionHolder {
        /// No reason: nothing prevents the deletion.
        Nothing = 0,
        /// A named reader has not committed the data.
        Reader = 1,
        /// An active replay reads the data.
        Replay = 2,
        /// The recording is being changed: deletion, migration, start, extension, or replication into it.
        Change = 3,
        /// A segment has no copy in object storage yet.
        Copy = 4,
        /// The wall clock is not trusted, so nothing is deleted because of its age.
        Clock = 5,
    }
}
