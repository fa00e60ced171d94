//! Prints the artifacts of a task while they stream, each chunk once.

use std::collections::BTreeSet;

use switchboard_a2a::{Artifact, ArtifactId, Part, PartContent, StreamResponse, TaskStatus};
use switchboard_client::{is_data, is_secondary};

use crate::commands::calling::follow::{Form, Style};
use crate::commands::calling::task_output::{self, TaskPrinter, WrittenOutput};
use crate::commands::calling::{answer, sanitize};

pub(super) struct StreamPrinter {
    style: Style,
    task_printer: TaskPrinter,
    last: Option<ArtifactId>,
    /// Artifacts that are not part of the answer.
    secondary: BTreeSet<ArtifactId>,
    /// The text of the last artifact, which agents often repeat in the terminal status.
    made: String,
    is_in_text: bool,
    pub(super) is_at_line_start: bool,
    /// Whether there is a task; else a message is the whole answer.
    is_task: bool,
    pub(super) written: WrittenOutput,
}

impl StreamPrinter {
    pub(super) fn new(style: Style) -> Self {
        let task_printer = style.task_printer();
        Self {
            style,
            task_printer,
            last: None,
            secondary: BTreeSet::new(),
            made: String::new(),
            is_in_text: false,
            is_at_line_start: true,
            is_task: false,
            written: WrittenOutput::default(),
        }
    }

    pub(super) fn print_event(&mut self, event: &StreamResponse) {
        self.is_task |= !matches!(event, StreamResponse::Message(_));
        match event {
            StreamResponse::ArtifactUpdate(update) => self.artifact(&update.artifact, update.append, true),
            StreamResponse::Task(task) => {
                if self.style.shows_states {
                    self.close();
                    self.task_printer.ids(task);
                }
                // The first task object may hold artifacts; later ones repeat what was printed.
                if !self.written.artifacts {
                    task.artifacts.iter().for_each(|artifact| self.artifact(artifact, false, false));
                }
            }
            StreamResponse::StatusUpdate(update) if self.style.shows_states => self.status(&update.status),
            StreamResponse::Message(message) if self.style.shows_states && self.is_task => {
                self.close();
                self.task_printer.message("message", message);
            }
            StreamResponse::StatusUpdate(_) | StreamResponse::Message(_) => {}
        }
    }

    /// Ends the open line and block before other output.
    pub(super) fn close(&mut self) {
        if !self.is_at_line_start {
            self.piece("\n");
        }
        if std::mem::take(&mut self.is_in_text) {
            self.task_printer.printer.line("");
        }
        self.last = None;
    }

    fn status(&mut self, status: &TaskStatus) {
        self.close();
        self.task_printer.field("state", &task_output::state(status.state));
        if let Some(message) = status.message.as_ref().filter(|message| !message.parts.is_empty()) {
            if self.style.is_verbose || !answer::is_repeated(status, &self.made, message) {
                self.task_printer.said(status, message);
            }
            self.written.message = Some(message.message_id.clone());
        }
    }

    /// Parts of one update get lines of their own; those of a task object may be chunks of one text.
    fn artifact(&mut self, artifact: &Artifact, append: bool, is_together: bool) {
        if !self.is_shown(artifact, append) {
            return;
        }
        self.written.artifacts = true;
        let goes_on = append && self.last.as_ref() == Some(&artifact.artifact_id);
        if !goes_on {
            self.made.clear();
            self.close();
            if self.style.form == Form::Labeled {
                self.task_printer.heading(artifact);
            }
        }
        self.last = Some(artifact.artifact_id.clone());
        let parts: Vec<&Part> = artifact.parts.iter().filter(|part| self.style.is_verbose || !is_data(part)).collect();
        for (place, part) in parts.iter().enumerate() {
            let follows_text = place > 0 && parts[place - 1].as_text().is_some();
            if is_together && follows_text && part.as_text().is_some() && !self.is_at_line_start {
                self.piece("\n");
            }
            self.made.push_str(part.as_text().unwrap_or_default());
            match (&part.content, self.style.form) {
                (PartContent::Text(text), Form::Labeled) => self.text(text),
                (PartContent::Text(text), Form::Plain) => self.piece(text),
                (content, Form::Labeled) => {
                    self.close();
                    self.task_printer.part(content, part);
                    self.last = Some(artifact.artifact_id.clone());
                }
                (_, Form::Plain) => {
                    if !self.is_at_line_start {
                        self.piece("\n");
                    }
                    self.piece(&format!("{}\n", task_output::part(part)));
                }
            }
        }
    }

    /// Whether an update has readable content. A secondary artifact waits for the end, when it is known whether there is
    /// another answer; the empty chunk that ends an artifact must not open it again.
    fn is_shown(&mut self, artifact: &Artifact, append: bool) -> bool {
        let id = &artifact.artifact_id;
        if self.style.is_verbose {
            return true;
        }
        if !append && is_secondary(artifact) && !artifact.parts.iter().all(is_data) {
            self.secondary.insert(id.clone());
        }
        let says = |part: &Part| !is_data(part) && part.as_text() != Some("");
        let goes_on = append && self.last.as_ref() == Some(id);
        !self.secondary.contains(id) && (goes_on || artifact.parts.iter().any(says))
    }

    fn text(&mut self, text: &str) {
        if !self.is_in_text && !text.is_empty() {
            self.task_printer.printer.line("text:");
            self.is_in_text = true;
        }
        self.piece(&task_output::indented(&sanitize::text(text), self.is_at_line_start));
    }

    fn piece(&mut self, text: &str) {
        let text = sanitize::text(text);
        if !text.is_empty() {
            self.task_printer.printer.piece(&text);
            self.is_at_line_start = text.ends_with('\n');
        }
    }
}
