//! What the agent has begun and ended, written to a file for a judge that outlives this process.

use std::fs::OpenOptions;
use std::io::Write;

use a2a_server::ExecutorContext;
use futures_util::stream::{self, BoxStream, StreamExt};

const EXECUTIONS: &str = "INTEROP_EXECUTIONS";

/// Ends with the stream of its events, whether that was read to its end or not.
struct Execution {
    file: String,
    what: String,
}

/// The events of an execution, between two notes if a file for them is named.
pub(crate) fn noted<Event: Send + 'static>(
    context: ExecutorContext,
    begin: impl FnOnce(ExecutorContext) -> BoxStream<'static, Event>,
) -> BoxStream<'static, Event> {
    let Ok(file) = std::env::var(EXECUTIONS) else { return begin(context) };
    let message = context.message.as_ref().map(|message| message.message_id.clone()).unwrap_or_default();
    let what = format!("{} {} {message}", std::process::id(), context.task_id);
    let execution = Execution { file, what };
    execution.note("begin");
    let end = stream::once(async move { drop(execution) }).filter_map(|()| async { None });
    begin(context).chain(end).boxed()
}

impl Execution {
    fn note(&self, word: &str) {
        let line = format!("{word} {}\n", self.what);
        let written = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.file)
            .and_then(|mut file| file.write_all(line.as_bytes()));
        if let Err(error) = written {
            eprintln!("cannot write {}: {error}", self.file);
        }
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        self.note("end");
    }
}
