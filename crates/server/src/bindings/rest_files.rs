//! How files are encoded in v0.3 REST: base64 once, as the format says, or twice, as Python's SDK does in both
//! directions ([`switchboard_a2a::rest_files`]).
//!
//! With `v03.restFiles: auto` a request is read as encoded twice if two signs agree: it comes from httpx, the HTTP client of
//! that SDK, and every file of it is base64 within base64. One sign alone would damage files: others use httpx too, and a
//! file may well hold base64 text. Answers have only the first sign, unless the request itself has shown by a file how its
//! sender encodes them.

use std::sync::Arc;

use http::HeaderMap;
use http::header::USER_AGENT;
use switchboard_a2a::rest_files::{self, DetectedEncoding};
use switchboard_a2a::{Dialect, Error, Message, RestFiles};
use switchboard_engine::{AgentName, Served};

use super::operation::OperationCall;
use super::task::{TaskForm, TaskStyle};
use crate::State;

/// How httpx introduces itself unless its user changes that; the SDK adds nothing of its own.
const HTTPX: &[u8] = b"python-httpx/";

impl OperationCall<'_> {
    /// Removes the second layer from the files of a request that has one.
    pub(super) fn read_files(&mut self, message: &mut Message) -> Result<(), Error> {
        if self.dialect != Dialect::V03Rest {
            return Ok(());
        }
        match setting(self.served.as_deref()) {
            RestFiles::Once => {}
            RestFiles::Twice => rest_files::remove_required_layer(message)?,
            RestFiles::Auto if is_httpx(self.headers) => {
                self.sent_files_once = rest_files::remove_layer_if_all(message) == DetectedEncoding::Once;
            }
            RestFiles::Auto => {}
        }
        Ok(())
    }

    /// Whether the caller expects a second layer on the files of its agent's answer.
    pub(super) fn writes_files_twice(&self) -> bool {
        self.writes_files_of(self.served.as_deref())
    }

    /// How the caller gets a task of its agent.
    pub(super) fn style(&self, form: TaskForm, history_length: Option<u32>) -> TaskStyle {
        TaskStyle { dialect: self.dialect, form, history_length, files_twice: self.writes_files_twice() }
    }

    /// The same for the files of a list, which at the root is of many agents' tasks.
    pub(super) fn listed_files(&self) -> ListedFiles {
        if self.dialect != Dialect::V03Rest || self.hosted.is_some() {
            return ListedFiles::Alike(self.writes_files_twice());
        }
        ListedFiles::ByAgent { state: Arc::clone(self.state), unless_set: self.writes_files_of(None) }
    }

    fn writes_files_of(&self, served: Option<&Served>) -> bool {
        self.dialect == Dialect::V03Rest && are_twice(served, is_httpx(self.headers) && !self.sent_files_once)
    }
}

/// Whether the caller of a list expects a second layer on the files in it.
pub(super) enum ListedFiles {
    /// On all of them, or on none.
    Alike(bool),
    /// As each task's agent is set, or as the caller seems to encode them.
    ByAgent { state: Arc<State>, unless_set: bool },
}

impl ListedFiles {
    /// On those of an agent's task.
    pub(super) fn are_twice(&self, agent: &AgentName) -> bool {
        match self {
            Self::Alike(is_twice) => *is_twice,
            Self::ByAgent { state, unless_set } => {
                let served = state.engine.directory().find(agent).map(|hosted| hosted.served());
                are_twice(served.as_deref(), *unless_set)
            }
        }
    }
}

fn are_twice(served: Option<&Served>, unless_set: bool) -> bool {
    match setting(served) {
        RestFiles::Once => false,
        RestFiles::Twice => true,
        RestFiles::Auto => unless_set,
    }
}

/// Whether an agent's setting must be known before its files can be written.
pub(super) fn is_set(served: &Served) -> bool {
    served.switches.v03_rest_files != RestFiles::Auto
}

fn setting(served: Option<&Served>) -> RestFiles {
    served.map(|served| served.switches.v03_rest_files).unwrap_or_default()
}

fn is_httpx(headers: &HeaderMap) -> bool {
    headers.get(USER_AGENT).is_some_and(|agent| agent.as_bytes().starts_with(HTTPX))
}
