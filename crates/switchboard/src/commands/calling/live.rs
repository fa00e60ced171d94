//! What an agent produces, written while it is being produced, each piece once.

use std::collections::BTreeSet;

use switchboard_a2a::{Artifact, ArtifactId, Part, PartContent, StreamResponse, TaskStatus};
use switchboard_client::is_secondary;

use crate::commands::calling::answer::is_data;
use crate::commands::calling::follow::{Form, Style};
use crate::commands::calling::shown::{self, Page, Written};
use crate::commands::calling::{answer, sanitize};

/// Writes pieces of artifacts as they come.
pub(super) struct Live {
    style: Style,
    page: Page,
    last: Option<ArtifactId>,
    /// Artifacts that are no part of the answer.
    secondary: BTreeSet<ArtifactId>,
    /// The text of the artifact that came last, which agents like to repeat at the end.
    made: String,
    /// Whether a block of text is open.
    is_in_text: bool,
    is_at_line_start: bool,
    /// Whether this is about a task; else a message is the whole answer.
    is_task: bool,
    /// What was written.
    pub(super) written: Written,
}

impl Live {
    pub(super) fn new(style: Style) -> Self {
        let page = style.page();
        Self {
            style,
            page,
            last: None,
            secondary: BTreeSet::new(),
            made: String::new(),
            is_in_text: false,
            is_at_line_start: true,
            is_task: false,
            written: Written::default(),
        }
    }

    /// Writes what an event brings.
    pub(super) fn hear(&mut self, event: &StreamResponse) {
        self.is_task |= !matches!(event, StreamResponse::Message(_));
        match event {
            StreamResponse::ArtifactUpdate(update) => self.artifact(&update.artifact, update.append, true),
            StreamResponse::Task(task) => {
                if self.style.shows_states {
                    self.close();
                    self.page.ids(task);
                }
                // A picture of a task that has produced something already; later ones hold what was written.
                if !self.written.artifacts {
                    task.artifacts.iter().for_each(|artifact| self.artifact(artifact, false, false));
                }
            }
            StreamResponse::StatusUpdate(update) if self.style.shows_states => self.status(&update.status),
            StreamResponse::Message(message) if self.style.shows_states && self.is_task => {
                self.close();
                self.page.message("message", message);
            }
            StreamResponse::StatusUpdate(_) | StreamResponse::Message(_) => {}
        }
    }

    /// Whether the cursor stands where a line begins.
    pub(super) fn is_at_line_start(&self) -> bool {
        self.is_at_line_start
    }

    /// Ends what was begun, so that something else can be written.
    pub(super) fn close(&mut self) {
        if !self.is_at_line_start {
            self.piece("\n");
        }
        if std::mem::take(&mut self.is_in_text) {
            self.page.printer.line("");
        }
        self.last = None;
    }

    fn status(&mut self, status: &TaskStatus) {
        self.close();
        self.page.field("state", &shown::state(status.state));
        if let Some(message) = status.message.as_ref().filter(|message| !message.parts.is_empty()) {
            if self.style.is_verbose || !answer::is_repeated(status, &self.made, message) {
                self.page.said(status, message);
            }
            self.written.message = Some(message.message_id.clone());
        }
    }

    /// Parts that come together stand on lines of their own; those of a picture may have come one after the other.
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
                self.page.heading(artifact);
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
                    self.page.part(content, part);
                    self.last = Some(artifact.artifact_id.clone());
                }
                (_, Form::Plain) => {
                    if !self.is_at_line_start {
                        self.piece("\n");
                    }
                    self.piece(&format!("{}\n", shown::part(part)));
                }
            }
        }
    }

    /// Whether a piece has something for people. What is no part of the answer may be all there is, which is known at the
    /// end only; and the empty piece that ends an artifact is not to begin it again.
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
            self.page.printer.line("text:");
            self.is_in_text = true;
        }
        self.piece(&shown::indented(&sanitize::text(text), self.is_at_line_start));
    }

    fn piece(&mut self, text: &str) {
        let text = sanitize::text(text);
        if !text.is_empty() {
            self.page.printer.piece(&text);
            self.is_at_line_start = text.ends_with('\n');
        }
    }
}
