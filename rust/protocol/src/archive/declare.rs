//! Macros that declare messages, and the sets of messages of one stream.

/// Declares a message: its template id, the fields of its block in the layout `$layout`, then its variable data.
///
/// `= value since version` after a field: a message of an earlier version lacks the field, so the field gets `value`.
/// Such fields are at the end of the block, in the order of their versions. `padded by function` names a function that
/// writes padding after the variable data.
macro_rules! archive_message {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident $(<$lifetime:lifetime>)? ($layout:ident) = $template_id:literal $(padded by $pad:ident)? {
            $( $(#[$field_attribute:meta])* pub $field:ident: $type:ty $(= $absent:tt since $since:literal)?, )*
            $( data { $( $(#[$data_attribute:meta])* $data:ident $(since $data_since:literal)?, )* } )?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name $(<$lifetime>)? {
            $( $(#[$field_attribute])* pub $field: $type, )*
            $( $( $(#[$data_attribute])* pub $data: &'a [u8], )* )?
        }

        impl<'a> $crate::archive::body::ArchiveMessage<'a> for $name $(<$lifetime>)? {
            const TEMPLATE_ID: u16 = $template_id;

            fn read(
                body: $crate::archive::body::Body<'a>,
            ) -> Result<Self, $crate::archive::ArchiveDecodeError> {
                #[allow(unused_mut, reason = "a message without variable data is read from its block alone")]
                let mut parts = body.split::<$layout>(&[ $( $( (
                    $since,
                    aeron_layout::offset!($layout, $field: <$type as $crate::archive::body::BlockValue>::Layout),
                ), )? )* ])?;
                Ok(Self {
                    $( $field: parts.value(
                        stringify!($field),
                        parts.layout.$field,
                        $crate::archive::declare::addition!($( $since, $absent )?),
                    )?, )*
                    $( $( $data: parts.next_data(
                        stringify!($data),
                        $crate::archive::declare::version!($( $data_since )?),
                    )?, )* )?
                })
            }
        }

        impl $(<$lifetime>)? $crate::codec::Encode for $name $(<$lifetime>)? {
            fn write(&self, writer: &mut $crate::codec::Writer<'_>) {
                $crate::archive::body::write_block(writer, $template_id, &$layout {
                    $( $field: $crate::archive::body::BlockValue::layout(self.$field), )*
                });
                $( $( writer.data(self.$data); )* )?
                $( $pad(writer); )?
            }
        }
    };
}

/// Declares a request of a control session: the two ids, then the request's fields.
macro_rules! session_request {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident $(<$lifetime:lifetime>)? ($layout:ident) = $template_id:literal { $($fields:tt)* }
    ) => {
        $crate::archive::declare::archive_message! {
            $(#[$attribute])*
            pub struct $name $(<$lifetime>)? ($layout) = $template_id {
                /// Control session id from the response to the connect request.
                pub control_session_id: i64,
                /// Correlation id that the client chooses and the response repeats.
                pub correlation_id: i64,
                $($fields)*
            }
        }
    };
}

/// Version that added a field, with the field's value in earlier messages.
macro_rules! addition {
    () => {
        None
    };
    ($since:literal, $absent:tt) => {
        Some(($since, $absent))
    };
}

/// Version that added a text or byte string; 0 if every version has it.
macro_rules! version {
    () => {
        0
    };
    ($since:literal) => {
        $since
    };
}

/// Declares the messages of one stream.
macro_rules! archive_message_set {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident $(<$lifetime:lifetime>)? {
            $( $(#[$variant_attribute:meta])* $variant:ident($message:ty), )*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name<'a> {
            $( $(#[$variant_attribute])* $variant($message), )*
        }

        impl<'a> $name<'a> {
            /// Template ids of the messages.
            pub const TEMPLATE_IDS: &'static [u16] = &[
                $( <$message as $crate::archive::body::ArchiveMessage<'a>>::TEMPLATE_ID, )*
            ];

            /// Reads a message that begins with its header. Texts and byte strings are borrowed from `message`. Bytes
            /// after the last field are ignored.
            ///
            /// # Errors
            /// [`ArchiveDecodeError`](crate::archive::ArchiveDecodeError) if the message does not belong to this set,
            /// is incomplete, or contains an undefined number. Never reads outside `message` and never panics.
            pub fn decode(message: &'a [u8]) -> Result<Self, $crate::archive::ArchiveDecodeError> {
                use $crate::archive::body::{ArchiveMessage, Body};
                let body = Body::of(message)?;
                match body.template_id() {
                    $( <$message>::TEMPLATE_ID => <$message>::read(body).map(Self::$variant), )*
                    template_id => Err($crate::archive::ArchiveDecodeError::UnknownTemplateId { template_id }),
                }
            }

            /// Returns the template id for the message's header.
            #[must_use]
            pub fn template_id(&self) -> u16 {
                use $crate::archive::body::ArchiveMessage;
                match self {
                    $( Self::$variant(_) => <$message>::TEMPLATE_ID, )*
                }
            }

            /// Returns the number of bytes that [`encode`](Self::encode) writes.
            #[must_use]
            pub fn encoded_length(&self) -> usize {
                use $crate::codec::Encode;
                match self {
                    $( Self::$variant(message) => message.measure(), )*
                }
            }

            /// Writes the message with its header at the start of `out`. Returns its length in bytes.
            ///
            /// # Errors
            /// [`EncodeError`](crate::EncodeError) if `out` is shorter than [`encoded_length`](Self::encoded_length).
            pub fn encode(&self, out: &mut [u8]) -> Result<usize, $crate::EncodeError> {
                use $crate::codec::Encode;
                match self {
                    $( Self::$variant(message) => message.encode(out), )*
                }
            }
        }
    };
}

/// Declares the requests of one stream. Each has the lowest role that may send it; `unchecked` messages open, keep and
/// close a session, which needs no role.
macro_rules! archive_request_set {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident $(<$lifetime:lifetime>)? {
            $( $(#[$variant_attribute:meta])* $variant:ident($message:ty): $role:ident, )*
        }
    ) => {
        $crate::archive::declare::archive_message_set! {
            $(#[$attribute])*
            pub enum $name $(<$lifetime>)? {
                $( $(#[$variant_attribute])* $variant($message), )*
            }
        }

        impl<'a> $name<'a> {
            /// Returns the lowest role that may send requests with this template id. `None` if the set has no such
            /// request, or if it needs no role.
            #[must_use]
            pub const fn role_of(template_id: u16) -> Option<$crate::archive::Role> {
                use $crate::archive::body::ArchiveMessage;
                match template_id {
                    $( <$message>::TEMPLATE_ID => $crate::archive::declare::role!($role), )*
                    _ => None,
                }
            }
        }
    };
}

/// The role of a word in a declaration.
macro_rules! role {
    (unchecked) => {
        None
    };
    (read) => {
        Some($crate::archive::Role::Read)
    };
    (record) => {
        Some($crate::archive::Role::Record)
    };
    (admin) => {
        Some($crate::archive::Role::Admin)
    };
}

pub(super) use {
    addition, archive_message, archive_message_set, archive_request_set, role, session_request,
    version,
};
