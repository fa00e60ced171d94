//! The v0.3 forms of the model: borrowed views that only exist to be written.
//!
//! JSON-RPC has `kind` discriminators and kebab-case enums, REST the JSON of the v0.3 protocol buffers: `ROLE_USER`,
//! `content`, resource names. The structure is the same, so each view asks its dialect for the names.

mod carriers;
mod event;
mod message;
mod part;
pub(crate) mod part_data;
pub(crate) mod part_kinds;
mod push;
mod task;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::Dialect;

pub(crate) use event::StatusUpdate;
pub(crate) use push::NestedPushConfig;
pub(crate) use task::{ListedTask, state};

/// What v0.3 writes in another form than v1.0.
pub(crate) trait V03 {
    /// Adds the members of the v0.3 object.
    fn entries<M: SerializeMap>(&self, dialect: Dialect, map: &mut M) -> Result<(), M::Error>;
}

/// A value of the model in a dialect: its own JSON in v1.0, the v0.3 object otherwise.
pub(crate) struct View<'a, T: ?Sized> {
    dialect: Dialect,
    value: &'a T,
}

/// Views a value, or a list of values, in a dialect.
pub(crate) fn view<T: ?Sized>(dialect: Dialect, value: &T) -> View<'_, T> {
    View { dialect, value }
}

impl<T: Serialize + V03> Serialize for View<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.dialect == Dialect::V1 {
            return self.value.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        self.value.entries(self.dialect, &mut map)?;
        map.end()
    }
}

impl<T: Serialize + V03> Serialize for View<'_, [T]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.value.iter().map(|value| view(self.dialect, value)))
    }
}

/// Adds the discriminator, which only v0.3 JSON-RPC has.
fn kind_entry<M: SerializeMap>(map: &mut M, dialect: Dialect, kind: &'static str) -> Result<(), M::Error> {
    match dialect {
        Dialect::V03Rpc => map.serialize_entry("kind", kind),
        Dialect::V1 | Dialect::V03Rest => Ok(()),
    }
}
