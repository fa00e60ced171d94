//! JSON written member by member, for objects whose members depend on the dialect.

use serde::ser::{Serialize, SerializeMap, Serializer};

/// Appends a value as JSON. Our types have string keys only, so the fallback is never written.
pub(crate) fn append<T: Serialize + ?Sized>(bytes: &mut Vec<u8>, value: &T) {
    let start = bytes.len();
    if serde_json::to_writer(&mut *bytes, value).is_err() {
        bytes.truncate(start);
        bytes.extend_from_slice(b"null");
    }
}

pub(crate) fn to_bytes<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    append(&mut bytes, value);
    bytes
}

/// Adds a member if there is a value.
pub(crate) fn optional<M: SerializeMap, T: Serialize + ?Sized>(
    map: &mut M,
    name: &'static str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}

/// For lists that are left out where they are empty.
pub(crate) fn non_empty_list<T>(list: &[T]) -> Option<&[T]> {
    (!list.is_empty()).then_some(list)
}

/// Names and values as an object, in their order.
pub(crate) struct OrderedMap<'a, V>(pub(crate) &'a [(String, V)]);

impl<V: Serialize> Serialize for OrderedMap<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// An object under construction, without its closing brace.
#[derive(Default)]
pub(crate) struct Object(Vec<u8>);

impl Object {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Adds a member.
    pub(crate) fn member<T: Serialize + ?Sized>(mut self, name: &'static str, value: &T) -> Self {
        self.name(name);
        append(&mut self.0, value);
        self
    }

    /// Adds a member if there is a value.
    pub(crate) fn optional<T: Serialize + ?Sized>(self, name: &'static str, value: Option<&T>) -> Self {
        match value {
            Some(value) => self.member(name, value),
            None => self,
        }
    }

    /// Adds a member whose JSON is already there.
    pub(crate) fn encoded(mut self, name: &'static str, json: &[u8]) -> Self {
        self.name(name);
        self.0.extend_from_slice(json);
        self
    }

    /// The whole object.
    pub(crate) fn end(mut self) -> Vec<u8> {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        self.0.push(b'}');
        self.0
    }

    fn name(&mut self, name: &'static str) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        append(&mut self.0, name);
        self.0.push(b':');
    }
}
