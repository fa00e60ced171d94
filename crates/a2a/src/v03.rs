//! The v0.3 forms of the model: borrowed views that only exist to be written.
//!
//! JSON-RPC and REST share the structure and differ in names, enums and nesting; each view asks its [`Binding`].

mod event;
mod message;
mod part;
pub(crate) mod part_kinds;
mod push;
pub(crate) mod rest_data;
mod task;
pub(crate) mod wrapped_data;

use crate::Dialect;

pub(crate) use event::{artifact_update, status_update};
pub(crate) use message::message;
pub(crate) use push::{nested_push_config, push_config};
pub(crate) use task::{artifact, listed_task, state, task};

/// Which of the two v0.3 forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binding {
    /// `kind`, kebab-case, `parts`.
    Rpc,
    /// Protocol buffer JSON: members, `ROLE_USER`, `content`.
    Rest,
}

impl Binding {
    /// The v0.3 form of a dialect; none for v1.0.
    pub(crate) fn of(dialect: Dialect) -> Option<Self> {
        match dialect {
            Dialect::V1 => None,
            Dialect::V03Rpc => Some(Self::Rpc),
            Dialect::V03Rest => Some(Self::Rest),
        }
    }

    /// The discriminator, where this form has one.
    fn kind(self, kind: &'static str) -> Option<&'static str> {
        (self == Self::Rpc).then_some(kind)
    }
}
