//! The wire format of an interface: its dialect, and whether its files are base64 twice.
//!
//! Agents that are built with Python's SDK encode files twice over REST of version 0.3, and expect the same of us
//! ([`switchboard_a2a::rest_files`]). No member of the protocol says so. With `auto` it is assumed of agents whose card uvicorn
//! serves, the server of that SDK; and of what they answer, only files that are base64 within base64 are decoded twice.

use switchboard_a2a::{Dialect, RestFiles, VisitParts, rest_files};

use crate::{CallContext, Client, Interface};

#[derive(Clone, Copy, Debug)]
pub(crate) struct WireFormat {
    pub(crate) dialect: Dialect,
    pub(crate) files_twice: bool,
}

impl WireFormat {
    /// Decodes a response.
    pub(crate) fn read<T: VisitParts, E>(
        self,
        decode: impl FnOnce(Dialect, &[u8]) -> Result<T, E>,
        json: &[u8],
    ) -> Result<T, E> {
        decode(self.dialect, json).map(|answer| self.received(answer))
    }

    /// Removes the second base64 layer of files.
    pub(crate) fn received<T: VisitParts>(self, mut answer: T) -> T {
        if self.files_twice {
            rest_files::remove_layer(&mut answer);
        }
        answer
    }
}

impl Client {
    pub(crate) async fn wire_format_of(&self, context: &CallContext, interface: &Interface) -> WireFormat {
        let dialect = interface.dialect();
        let files_twice = dialect == Dialect::V03Rest
            && match self.peer().rest_files {
                RestFiles::Once => false,
                RestFiles::Twice => true,
                RestFiles::Auto => self.card(context).await.is_ok_and(|found| found.is_python_sdk),
            };
        WireFormat { dialect, files_twice }
    }
}
