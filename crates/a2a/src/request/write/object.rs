//! A JSON object written member by member, for requests whose members depend on the dialect.

use serde::Serialize;

use crate::encode::append;

/// The object so far, without its closing brace.
#[derive(Default)]
pub(super) struct Object(Vec<u8>);

impl Object {
    /// Adds a member.
    pub(super) fn member<T: Serialize + ?Sized>(mut self, name: &'static str, value: &T) -> Self {
        self.name(name);
        append(&mut self.0, value);
        self
    }

    /// Adds a member if there is a value.
    pub(super) fn optional<T: Serialize + ?Sized>(self, name: &'static str, value: Option<&T>) -> Self {
        match value {
            Some(value) => self.member(name, value),
            None => self,
        }
    }

    /// Adds an object as a member.
    pub(super) fn object(self, name: &'static str, inner: Self) -> Self {
        self.encoded(name, &inner.end())
    }

    /// Adds a member whose JSON is already there.
    pub(super) fn encoded(mut self, name: &'static str, json: &[u8]) -> Self {
        self.name(name);
        self.0.extend_from_slice(json);
        self
    }

    /// The whole object.
    pub(super) fn end(mut self) -> Vec<u8> {
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
