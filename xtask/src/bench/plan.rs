//! What is measured, and how much of it: the full plan or the quick one.

use crate::bench::Arguments;
use crate::bench::server::{Kind, Placement};

pub(crate) struct Plan {
    pub(crate) kinds: Vec<Kind>,
    pub(crate) rounds: u32,
    pub(crate) seconds: f64,
    pub(crate) quick: bool,
    pub(crate) works: Vec<Work>,
    /// Finished tasks that memory is measured after.
    pub(crate) filled: u64,
    /// Finished tasks that listing is measured over.
    pub(crate) listed: u64,
    /// Streams held open at once.
    pub(crate) streams: u64,
    /// Starts that the median is taken of.
    pub(crate) starts: u32,
}

/// One line of the rate table: how the load is called and which servers can do it.
pub(crate) struct Work {
    pub(crate) name: WorkName,
    pub(crate) title: String,
    pub(crate) mode: &'static str,
    pub(crate) options: Vec<String>,
    pub(crate) connections: u32,
    pub(crate) placement: Placement,
    /// Bare axum stores nothing, so it cannot be asked for a task.
    pub(crate) needs_store: bool,
    /// The official SDK folds an artifact anew for each chunk: long streams would take minutes.
    pub(crate) skips_official: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WorkName {
    Send,
    SendUnpinned,
    SendMany,
    Stream,
    StreamYielding,
    StreamLong,
    GetHot,
    GetRandom,
    OneClient,
}

impl Work {
    fn new(name: WorkName, title: impl Into<String>, mode: &'static str, options: &[&str], connections: u32) -> Self {
        Self {
            name,
            title: title.into(),
            mode,
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            connections,
            placement: if name == WorkName::SendUnpinned { Placement::Unpinned } else { Placement::Pinned },
            needs_store: mode == "get",
            skips_official: name == WorkName::StreamLong,
        }
    }

    pub(crate) fn suits(&self, kind: Kind) -> bool {
        !(self.needs_store && kind == Kind::Axum || self.skips_official && kind == Kind::Official)
    }
}

impl Plan {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        let quick = arguments.quick;
        let random = if quick { 5_000 } else { 100_000 };
        let random_title = format!("GetTask at random over {} finished tasks, req/s", number(random));
        let random = random.to_string();
        let works = vec![
            Work::new(WorkName::Send, "SendMessage, req/s", "send", &[], 32),
            Work::new(WorkName::SendUnpinned, "SendMessage, both with all cores, req/s", "send", &[], 32),
            Work::new(WorkName::SendMany, "SendMessage at 256 connections, req/s", "send", &[], 256),
            Work::new(WorkName::Stream, "`stream:100`, events/s", "stream", &["--text", "stream:100"], 32),
            Work::new(WorkName::StreamYielding, "`streamy:100`, events/s", "stream", &["--text", "streamy:100"], 32),
            Work::new(
                WorkName::StreamLong,
                "`stream:10000`, 4 connections, events/s",
                "stream",
                &["--text", "stream:10000"],
                4,
            ),
            Work::new(WorkName::GetHot, "GetTask, one hot task, req/s", "get", &[], 32),
            Work::new(WorkName::GetRandom, random_title, "get", &["--tasks", &random], 32),
            Work::new(WorkName::OneClient, "one client, `streamy:100`, ms", "stream", &["--text", "streamy:100"], 1),
        ];
        Self {
            kinds: kinds(arguments),
            rounds: if quick { 1 } else { arguments.rounds.max(1) },
            seconds: if quick { 1.0 } else { arguments.seconds },
            quick,
            works,
            filled: if quick { 10_000 } else { 100_000 },
            listed: if quick { 20_000 } else { 1_000_000 },
            streams: if quick { 200 } else { 1_000 },
            starts: if quick { 5 } else { 20 },
        }
    }
}

/// The chosen servers, each of ours followed by the binary that it is compared with.
fn kinds(arguments: &Arguments) -> Vec<Kind> {
    let before = |kind: Kind| kind.before().filter(|_| arguments.against.is_some());
    arguments.only.iter().flat_map(|kind| [Some(*kind), before(*kind)]).flatten().collect()
}

fn number(value: u64) -> String {
    crate::bench::number::grouped(value as f64)
}
