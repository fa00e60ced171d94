//! Everything that can be wrong with a reply. The first one of a run is reported, the rest are counted.

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("socket: {0}")]
    Socket(#[from] std::io::Error),
    #[error("connection closed in the middle of a reply")]
    Closed,
    #[error("no reply within {0} s of the end of the run")]
    Late(u64),
    #[error("HTTP status {status}: {body}")]
    Status { status: u16, body: String },
    #[error("not HTTP/1.1 as expected: {0}")]
    Http(&'static str),
    #[error("reply is not the expected JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("JSON-RPC error {code}: {message}")]
    Rpc { code: i64, message: String },
    #[error("reply carries id {found:?} instead of {expected}")]
    Id { expected: u64, found: Option<u64> },
    #[error("reply has no {0}")]
    Missing(&'static str),
    #[error("task {found} was returned for {expected}")]
    Task { expected: String, found: String },
    #[error("task ended as {0} instead of TASK_STATE_COMPLETED")]
    State(String),
    #[error("task has {0} artifacts instead of 1")]
    Artifacts(usize),
    #[error("chunk {expected} expected, text {found:?} arrived")]
    Chunk { expected: u64, found: String },
    #[error("stream ended after {found} of {expected} chunks, state {state}")]
    Short { expected: u64, found: u64, state: String },
    #[error("page of {tasks} tasks with a total of {total}")]
    Page { tasks: usize, total: u64 },
}
