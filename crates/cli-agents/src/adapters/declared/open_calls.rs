//! The tool of each open call: most programs name it only when the call begins, and some identify a call only by its
//! tool.

use std::collections::VecDeque;

/// More calls than this are hardly running at once; the oldest is forgotten, not kept for ever.
const MOST: usize = 1_000;

/// The name of a tool that the program leaves out.
const UNNAMED: &str = "tool";

#[derive(Debug, Default)]
pub(crate) struct OpenCalls {
    calls: VecDeque<Call>,
    numbered: u64,
}

/// A call, as its result will have to name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) tool: String,
}

impl OpenCalls {
    /// A call has begun. It is given a number if it has no id.
    pub(crate) fn open(&mut self, id: Option<String>, tool: Option<String>) -> Call {
        let id = id.unwrap_or_else(|| self.number());
        let call = Call { id, tool: tool.unwrap_or_else(|| UNNAMED.to_owned()) };
        if self.calls.len() == MOST {
            self.calls.pop_front();
        }
        self.calls.push_back(call.clone());
        call
    }

    /// A call has its result: the one of that id; without an id the first one of that tool; without either the last.
    pub(crate) fn close(&mut self, id: Option<String>, tool: Option<String>) -> Call {
        let at = match (&id, &tool) {
            (Some(id), _) => self.calls.iter().position(|call| call.id == *id),
            (None, Some(tool)) => self.calls.iter().position(|call| call.tool == *tool),
            (None, None) => self.calls.len().checked_sub(1),
        };
        let known = at.and_then(|at| self.calls.remove(at));
        let (known_id, known_tool) = known.map_or((None, None), |call| (Some(call.id), Some(call.tool)));
        Call {
            id: id.or(known_id).unwrap_or_else(|| self.number()),
            tool: tool.or(known_tool).unwrap_or_else(|| UNNAMED.to_owned()),
        }
    }

    fn number(&mut self) -> String {
        self.numbered += 1;
        self.numbered.to_string()
    }
}
