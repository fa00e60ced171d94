//! Identifiers as types, so that a context is never passed where a task is meant.
//!
//! All are opaque strings on the wire. Ours are UUIDs; those that are indexed (tasks, contexts) are
//! time-ordered (version 7), so that the newest rows sit together in every index.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use uuid::Uuid;

/// Declares a text as a type of its own. Clones share the text; it is shown and debugged as the text.
#[doc(hidden)]
#[macro_export]
macro_rules! shared_text {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<std::sync::Arc<str>> for $name {
            fn from(text: std::sync::Arc<str>) -> Self {
                Self(text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&*self.0, formatter)
            }
        }
    };
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $generate:expr) => {
        shared_text!($(#[$doc])* #[derive(Serialize)] #[serde(transparent)] $name);

        impl $name {
            /// A new, unique identifier.
            pub fn generate() -> Self {
                let uuid: Uuid = $generate;
                let mut buffer = Uuid::encode_buffer();
                Self(Arc::from(&*uuid.hyphenated().encode_lower(&mut buffer)))
            }
        }

        /// The empty identifier: what a peer that left it out is read as.
        impl Default for $name {
            fn default() -> Self {
                Self(Arc::from(""))
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(SharedText).map(Self)
            }
        }
    };
}

/// Reads text straight into its shared form, without a `String` between.
struct SharedText;

impl serde::de::Visitor<'_> for SharedText {
    type Value = Arc<str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Arc<str>, E> {
        Ok(Arc::from(text))
    }
}

identifier!(
    /// Names one task; only the server makes them.
    TaskId,
    Uuid::now_v7()
);
identifier!(
    /// Groups the tasks of one conversation.
    ContextId,
    Uuid::now_v7()
);
identifier!(
    /// Names one message; its sender makes it.
    MessageId,
    Uuid::new_v4()
);
identifier!(
    /// Names one artifact within its task.
    ArtifactId,
    Uuid::new_v4()
);
