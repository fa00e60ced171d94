//! JSON that passes through untouched: data parts and metadata.
//!
//! Values are kept as the text that came in, so that large integers and number spellings survive. The text
//! is always compact: no line break may reach an SSE frame or a row of the log.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use memchr::memchr3;
use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::jsonrpc::hides_nesting;

/// One JSON value as compact text.
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Encodes any value. Fails only for maps whose keys are not strings.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// Checks and keeps JSON text.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.to_owned()).map(Self::compacted)
    }

    /// The compact text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Reads the value into a type; not if the stack could be too short for it.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        if hides_nesting(self.0.get().as_bytes()) {
            return Err(serde_json::Error::custom("a member has a name of which serde_json makes use itself"));
        }
        serde_json::from_str(self.0.get())
    }

    /// The value if it is a string.
    pub fn as_text(&self) -> Option<String> {
        self.read().ok()
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.get().starts_with('{')
    }

    fn compacted(raw: Box<RawValue>) -> Self {
        match compact(raw.get()) {
            Cow::Borrowed(_) => Self(raw),
            // Removing white space between tokens cannot make valid JSON invalid.
            Cow::Owned(text) => Self(RawValue::from_string(text).unwrap_or(raw)),
        }
    }
}

/// Removes white space between tokens; borrows where there is none.
fn compact(text: &str) -> Cow<'_, str> {
    // What programs write has mostly none anywhere, which is seen much faster than where it is.
    if memchr3(b' ', b'\n', b'\t', text.as_bytes()).is_none() && !text.contains('\r') {
        return Cow::Borrowed(text);
    }
    let mut in_string = false;
    let mut escaped = false;
    let is_gap = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let mut kept = Vec::new();
    let mut copying = false;
    for (index, byte) in text.bytes().enumerate() {
        let gap = !in_string && is_gap(byte);
        if gap && !copying {
            copying = true;
            kept.reserve(text.len());
            kept.extend_from_slice(&text.as_bytes()[..index]);
        }
        if !gap && copying {
            kept.push(byte);
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ => {}
        }
    }
    match copying {
        false => Cow::Borrowed(text),
        true => String::from_utf8(kept).map_or(Cow::Borrowed(text), Cow::Owned),
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::compacted)
    }
}

/// A JSON object whose values pass through untouched, in the order they came.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata(Vec<(String, Json)>);

impl Metadata {
    /// The value under a key.
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Sets a key, replacing what was there.
    pub fn insert(&mut self, key: impl Into<String>, value: Json) {
        let key = key.into();
        match self.0.iter_mut().find(|(name, _)| *name == key) {
            Some((_, existing)) => *existing = value,
            None => self.0.push((key, value)),
        }
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        let index = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(index).1)
    }

    /// Keeps the keys that pass.
    pub fn retain(&mut self, mut keeps: impl FnMut(&str) -> bool) {
        self.0.retain(|(key, _)| keeps(key));
    }

    /// Copies every key of `other` over this object, replacing equal keys.
    pub fn merge(&mut self, other: &Metadata) {
        for (key, value) in &other.0 {
            self.insert(key.clone(), value.clone());
        }
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }
}

/// Up to here a scan per key is the fastest way to find duplicates; beyond, it would let a peer make us quadratic.
const LINEAR_KEYS: usize = 32;

/// Collects what a peer sent, of which there may be any number of keys.
#[derive(Default)]
pub(crate) struct MetadataBuilder {
    metadata: Metadata,
    index_of_key: HashMap<String, usize>,
}

impl MetadataBuilder {
    /// Sets a key, replacing what was there.
    pub(crate) fn insert(&mut self, key: String, value: Json) {
        let members = &mut self.metadata.0;
        let length = members.len();
        if length < LINEAR_KEYS {
            self.metadata.insert(key, value);
            return;
        }
        if self.index_of_key.is_empty() {
            self.index_of_key = members.iter().map(|(key, _)| key.clone()).zip(0..).collect();
        }
        let index = *self.index_of_key.entry(key.clone()).or_insert(length);
        match members.get_mut(index) {
            Some((_, existing)) => *existing = value,
            None => members.push((key, value)),
        }
    }

    pub(crate) fn build(self) -> Metadata {
        self.metadata
    }
}

impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Metadata;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Metadata, A::Error> {
                let mut members = MetadataBuilder::default();
                while let Some((key, value)) = access.next_entry()? {
                    members.insert(key, value);
                }
                Ok(members.build())
            }
        }
        deserializer.deserialize_map(Entries)
    }
}
