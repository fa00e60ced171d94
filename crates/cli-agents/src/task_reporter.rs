//! Turns the events of a program into the events of its task.
//!
//! | event | task |
//! |---|---|
//! | init | WORKING; artifact `agent-metadata` with the model and the session |
//! | text | artifact `assistant-response`, appended |
//! | reasoning | artifact `reasoning`, appended |
//! | tool use, tool result | WORKING with a message, which is also a frame of the tool-call extension |
//! | notice | WORKING with a message |
//! | changes in a worktree | artifact `diff` |
//! | done | artifact `result`, then COMPLETED with the answer as its message |

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;
use switchboard_a2a::extension::Payload;
use switchboard_a2a::extension::cost::{Cost as CostReport, TokenUsage};
use switchboard_a2a::{Artifact, ArtifactId, Json, Metadata, Part, PartContent, TaskState};
use switchboard_engine::{Stopped, TaskHandle, ToolCall};

use super::deadlines::QUIET_NOTICE;
use super::sessions::{AgentMetadata, ConversationRecord, METADATA_ARTIFACT, RESULT_ARTIFACT, TokenTotals};
use super::worktree::{Changes, Worktree};
use crate::adapters::{About, Event, Scope, Usage, cut, plain};

const RESPONSE_ARTIFACT: &str = "assistant-response";
const REASONING_ARTIFACT: &str = "reasoning";
const DIFF_ARTIFACT: &str = "diff";
/// Of a tool's output so many characters are shown.
const OUTPUT_CHARACTERS: usize = 200;
/// Text is appended in chunks of at most this: a line of a program may be longer than the largest event.
const PIECE_BYTES: usize = 1 << 20;
const NOTICE_CHARACTERS: usize = 1_000;
/// So much of the answer is repeated in the final message and in the result.
const ANSWER_BYTES: usize = 30 << 10;
/// The most changed files that are named.
const MOST_FILES: usize = 1_000;

pub(super) struct TaskReporter {
    task: TaskHandle,
    /// The CLI, the model and the session.
    pub(super) metadata: AgentMetadata,
    /// The folder, and the branches of the conversation, the newest first; noted for later tasks.
    folder: String,
    branches: Vec<String>,
    published_metadata: Option<AgentMetadata>,
    is_working: bool,
    begun: HashSet<String>,
    /// The current message and the last whole one, as far as they are repeated at the end.
    saying: String,
    said: String,
    /// The next text begins another message.
    separate: bool,
    tools: HashMap<String, String>,
    changed: BTreeSet<String>,
    cost: Cost,
}

/// The usage of the turn, of its task and of its session.
pub(super) struct Cost {
    /// This task's earlier turns.
    pub(super) before: TokenTotals,
    /// The session's earlier turns, where the program counts them in.
    pub(super) session_before: TokenTotals,
    turn: TokenTotals,
    /// The session as the program has counted it last.
    session: TokenTotals,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultData<'a> {
    summary: &'a str,
    stats: Stats,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    files_changed: &'a BTreeSet<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DiffFacts<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'a str>,
    base: &'a str,
    /// Files are left out, for which there was no room.
    is_cut: bool,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    left_out: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stats {
    #[serde(flatten)]
    total: TokenTotals,
    duration_ms: u64,
}

impl Cost {
    pub(super) fn new(before: TokenTotals, session_before: TokenTotals) -> Self {
        Self { before, session_before, turn: TokenTotals::default(), session: session_before }
    }

    fn take(&mut self, usage: &Usage) {
        let told = TokenTotals::of(usage);
        match usage.scope {
            Scope::Run => self.turn = told,
            Scope::Session => {
                self.turn = told.since(self.session_before);
                self.session = told;
            }
        }
    }

    /// What the task has cost in all.
    fn of_task(&self) -> switchboard_engine::Usage {
        let TokenTotals { input_tokens, output_tokens, cost_usd, .. } = self.before.plus(self.turn);
        switchboard_engine::Usage { input_tokens, output_tokens, cost_usd }
    }

    /// The same for readers on other servers; nothing if the program has counted nothing.
    fn report(&self, duration_ms: u64) -> Option<CostReport> {
        let totals = self.before.plus(self.turn);
        if totals == TokenTotals::default() {
            return None;
        }
        let usage = TokenUsage {
            input_tokens: totals.input_tokens,
            output_tokens: totals.output_tokens,
            cache_creation_input_tokens: None,
            cache_read_input_tokens: (totals.cached_tokens > 0).then_some(totals.cached_tokens),
            total_tokens: None,
        };
        // A cost of nothing for tokens is a cost that was not reported.
        let cost_usd = (totals.cost_usd > 0.0).then_some(totals.cost_usd);
        Some(CostReport { usage: Some(usage), duration_ms: Some(duration_ms), cost_usd, model: None, success: None })
    }
}

impl TaskReporter {
    pub(super) fn new(
        task: TaskHandle,
        metadata: AgentMetadata,
        folder: String,
        branches: Vec<String>,
        cost: Cost,
    ) -> Self {
        let begun: HashSet<String> =
            task.snapshot().artifacts.iter().map(|artifact| artifact.artifact_id.to_string()).collect();
        let separate = begun.contains(RESPONSE_ARTIFACT);
        Self {
            task,
            metadata,
            folder,
            branches,
            published_metadata: None,
            is_working: false,
            begun,
            saying: String::new(),
            said: String::new(),
            separate,
            tools: HashMap::new(),
            changed: BTreeSet::new(),
            cost,
        }
    }

    /// Reports one event. Approvals are not reported here.
    pub(super) async fn event(&mut self, event: Event) -> Result<(), Stopped> {
        if !matches!(event, Event::Init { .. } | Event::Usage(_) | Event::Notice { .. }) {
            self.begin().await?;
        }
        match event {
            Event::Init { session, model } => {
                self.metadata.session_id = session.or(self.metadata.session_id.take());
                self.metadata.model = model.or(self.metadata.model.take());
                self.publish_metadata().await
            }
            Event::Text { text } => self.text(&text).await,
            Event::TextEnd => {
                self.end_message();
                Ok(())
            }
            Event::Reasoning { text } => self.append(REASONING_ARTIFACT, &plain(&text)).await,
            Event::ToolUse { id, tool, input } => {
                self.tools.insert(id.clone(), tool.clone());
                self.end_message();
                let words = format!("Using tool: {}", plain(&tool));
                self.task.tool_call(ToolCall::started(id, tool).args(&input).saying(words)).await
            }
            Event::ToolResult { id, tool, output, is_error } => {
                let tool = self.tools.remove(&id).filter(|_| tool.is_empty()).unwrap_or(tool);
                let shown = plain(output.trim());
                let shown = cut(&shown, OUTPUT_CHARACTERS);
                let words = format!("Tool result: {shown}");
                let call = match is_error {
                    true => ToolCall::failed(id, tool, &output),
                    false => ToolCall::completed(id, tool).result(&output),
                };
                self.task.tool_call(call.saying(words)).await
            }
            Event::Usage(usage) => {
                self.cost.take(&usage);
                self.task.usage(self.cost.of_task()).await?;
                match self.published_metadata.is_some() && usage.scope == Scope::Session {
                    true => self.note().await,
                    false => Ok(()),
                }
            }
            Event::FilesChanged { paths } => {
                let room = MOST_FILES.saturating_sub(self.changed.len());
                self.changed.extend(paths.into_iter().take(room));
                Ok(())
            }
            Event::Notice { text } => {
                self.is_working = true;
                self.task.status(cut(&plain(text.trim()), NOTICE_CHARACTERS)).await
            }
            Event::ApprovalRequired(_) | Event::ApprovalWithdrawn { .. } => Ok(()),
        }
    }

    /// Reports what a quiet program is probably waiting for.
    pub(super) async fn quiet(&self, about: &About) -> Result<(), Stopped> {
        let (title, seconds) = (&about.title, QUIET_NOTICE.as_secs());
        let tools: BTreeSet<String> = self.tools.values().map(|tool| plain(tool).into_owned()).collect();
        let tools = tools.into_iter().collect::<Vec<String>>().join(", ");
        let waiting = match (tools.is_empty(), about.capabilities.resume) {
            (false, _) => format!("Waiting for {tools}: nothing from {title} for {seconds} s."),
            (true, true) => format!(
                "Waiting for {title} and its model: nothing from it for {seconds} s. If this goes on, look whether the \
                 model's endpoint can be reached."
            ),
            // A program without sessions is hardly one with a model.
            (true, false) => format!("Waiting for {title}: nothing from it for {seconds} s."),
        };
        self.task.status(waiting).await
    }

    /// The program works, whether or not it has sent an init event. If it was given its session id, it need not report
    /// it.
    async fn begin(&mut self) -> Result<(), Stopped> {
        match self.published_metadata.is_none() && self.metadata.session_id.is_some() {
            true => self.publish_metadata().await,
            false => self.working().await,
        }
    }

    async fn working(&mut self) -> Result<(), Stopped> {
        let was_told = std::mem::replace(&mut self.is_working, true);
        match was_told || self.task.snapshot().status.state == TaskState::Working {
            true => Ok(()),
            false => self.task.working().await,
        }
    }

    /// Publishes the agent metadata, if they have changed.
    pub(super) async fn publish_metadata(&mut self) -> Result<(), Stopped> {
        if self.published_metadata.as_ref() == Some(&self.metadata) {
            return Ok(());
        }
        self.working().await?;
        self.published_metadata = Some(self.metadata.clone());
        let metadata = self.metadata.clone();
        self.note().await?;
        self.data(METADATA_ARTIFACT, &metadata).await
    }

    /// Notes for the conversation where its session is, and what that has cost.
    async fn note(&self) -> Result<(), Stopped> {
        let (metadata, branches) = (self.metadata.clone(), self.branches.clone());
        let folder = Some(self.folder.clone());
        self.task.note(&ConversationRecord { metadata, folder, branches, total: self.cost.session }).await
    }

    async fn text(&mut self, text: &str) -> Result<(), Stopped> {
        let text = plain(text);
        if text.is_empty() {
            return Ok(());
        }
        keep(&mut self.saying, &text);
        let begins_another = std::mem::take(&mut self.separate) && self.begun.contains(RESPONSE_ARTIFACT);
        let text = if begins_another { Cow::Owned(format!("\n\n{text}")) } else { text };
        self.append(RESPONSE_ARTIFACT, &text).await
    }

    fn end_message(&mut self) {
        if !self.saying.trim().is_empty() {
            self.said = std::mem::take(&mut self.saying);
        }
        self.saying.clear();
        self.separate = true;
    }

    async fn append(&mut self, id: &str, text: &str) -> Result<(), Stopped> {
        let mut rest = text;
        loop {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
            let begun = !self.begun.insert(id.to_owned());
            self.task.chunk(chunk(id, piece), begun, false, None).await?;
            if after.is_empty() {
                return Ok(());
            }
            rest = after;
        }
    }

    async fn data(&mut self, id: &str, data: &impl Serialize) -> Result<(), Stopped> {
        let Some(artifact) = data_artifact(id, data) else { return Ok(()) };
        self.begun.insert(id.to_owned());
        self.task.artifact(artifact).await
    }

    /// Whether the last message says this already, or ends with it, as far as it is kept.
    fn has_said(&self, answer: &str) -> bool {
        let (said, answer) = (self.said.trim(), answer.trim());
        let before = said.strip_suffix(answer);
        // "no" is not said by "piano".
        let ends_with_it = before.is_some_and(|before| !before.ends_with(char::is_alphanumeric));
        ends_with_it || (said.len() >= ANSWER_BYTES && answer.starts_with(said))
    }

    /// Publishes the diff of the task's worktree.
    pub(super) async fn changes(&mut self, worktree: &Worktree, changes: Changes) -> Result<(), Stopped> {
        let Changes { patch, files } = changes;
        let is_cut = patch.left_out_count > 0;
        let mut metadata = Metadata::default();
        let (branch, base) = (worktree.branch(), worktree.base());
        if let Ok(worktree) = Json::from_serialize(&DiffFacts { branch, base, is_cut, left_out: &patch.left_out }) {
            metadata.insert("switchboard/worktree", worktree);
        }
        let note = is_cut.then(|| {
            let (left_out, all, first) = (patch.left_out_count, files.len(), patch.left_out.join(", "));
            let note = format!(
                "The diff is cut: it leaves out {left_out} of {all} files, which are too large for it: {first}"
            );
            cut(&note, NOTICE_CHARACTERS).into_owned()
        });
        self.changed = files.into_iter().take(MOST_FILES).collect();
        // Byte for byte: what is no UTF-8 cannot be text.
        let content = match String::from_utf8(patch.bytes) {
            Ok(text) => PartContent::Text(text),
            Err(error) => PartContent::Raw(error.into_bytes()),
        };
        let part = Part { media_type: Some("text/x-diff".to_owned()), ..Part::new(content) };
        let artifact = Artifact {
            artifact_id: ArtifactId::from(DIFF_ARTIFACT),
            description: note.clone(),
            metadata: Some(metadata),
            ..Artifact::new(vec![part]).named(DIFF_ARTIFACT)
        };
        self.task.artifact(artifact).await?;
        match note {
            Some(note) => self.task.status(note).await,
            None => Ok(()),
        }
    }

    /// Sends the last chunk of the text artifacts.
    pub(super) async fn end_texts(&mut self) -> Result<(), Stopped> {
        for id in [REASONING_ARTIFACT, RESPONSE_ARTIFACT] {
            if self.begun.contains(id) {
                self.task.chunk(chunk(id, ""), true, true, None).await?;
            }
        }
        Ok(())
    }

    /// The turn is done: publishes the result artifact and returns the answer.
    pub(super) async fn result(&mut self, answer: Option<String>, duration_ms: u64) -> Result<String, Stopped> {
        self.begin().await?;
        self.end_message();
        let answer = answer.map(|answer| plain(&answer).into_owned()).filter(|answer| !answer.trim().is_empty());
        if let Some(answer) = answer.as_ref().filter(|answer| !self.has_said(answer)) {
            self.text(answer).await?;
            self.end_message();
        }
        let answer = answer.unwrap_or_else(|| std::mem::take(&mut self.said));
        self.end_texts().await?;
        let summary = shortened(&answer);
        let changed = std::mem::take(&mut self.changed);
        let stats = Stats { total: self.cost.turn, duration_ms };
        let data = ResultData { summary: &summary, stats, files_changed: &changed };
        let Some(mut result) = data_artifact(RESULT_ARTIFACT, &data) else { return Ok(summary) };
        if let Some(report) = self.cost.report(duration_ms) {
            CostReport { model: self.metadata.model.clone(), ..report }
                .write_to_artifact(&mut result, self.task.emit());
        }
        self.begun.insert(RESULT_ARTIFACT.to_owned());
        self.task.artifact(result).await?;
        Ok(summary)
    }
}

/// An artifact of one data part, which says what it is: readers that look for the result of a skill must not take it for one.
fn data_artifact(id: &str, data: &impl Serialize) -> Option<Artifact> {
    let mut metadata = Metadata::default();
    metadata.insert("mimeType", Json::from_serialize(&format!("application/vnd.switchboard.{id}-v1+json")).ok()?);
    let part = Part { metadata: Some(metadata), ..Part::data(Json::from_serialize(data).ok()?) };
    Some(Artifact { artifact_id: ArtifactId::from(id), ..Artifact::new(vec![part]).named(id) })
}

/// A piece of a text artifact. Each has the name: clients may look at one piece alone.
fn chunk(id: &str, text: &str) -> Artifact {
    Artifact { artifact_id: ArtifactId::from(id), ..Artifact::text(text).named(id) }
}

/// Adds to what is kept of a message: no more than is repeated at the end.
fn keep(kept: &mut String, text: &str) {
    let room = (ANSWER_BYTES + 1).saturating_sub(kept.len());
    kept.push_str(&text[..text.floor_char_boundary(room)]);
}

fn shortened(answer: &str) -> String {
    if answer.len() <= ANSWER_BYTES {
        return answer.to_owned();
    }
    let beginning = &answer[..answer.floor_char_boundary(ANSWER_BYTES)];
    format!("{beginning}…\n(The whole answer is in the artifact {RESPONSE_ARTIFACT}.)")
}
