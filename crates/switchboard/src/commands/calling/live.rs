//! What an agent produces, written while it is being produced, each piece once.

use switchboard_a2a::{Artifact, ArtifactId, PartContent, StreamResponse, TaskStatus};

use crate::commands::calling::clean;
use crate::commands::calling::follow::{Form, Style};
use crate::commands::calling::shown::{self, Page, Written};

/// Writes pieces of artifacts as they come.
pub(super) struct Live {
    style: Style,
    page: Page,
    last: Option<ArtifactId>,
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
            if self.style.is_verbose
                || self.made.is_empty()
                || !shown::says_the_same(&message.joined_text(), &self.made)
            {
                self.page.message("message", message);
            }
            self.written.message = Some(message.message_id.clone());
        }
    }

    /// Parts that come together stand on lines of their own; those of a picture may have come one after the other.
    fn artifact(&mut self, artifact: &Artifact, append: bool, is_together: bool) {
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
        for (place, part) in artifact.parts.iter().enumerate() {
            let follows_text = place > 0 && artifact.parts[place - 1].as_text().is_some();
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

    fn text(&mut self, text: &str) {
        if !self.is_in_text && !text.is_empty() {
            self.page.printer.line("text:");
            self.is_in_text = true;
        }
        self.piece(&shown::indented(&clean::text(text), self.is_at_line_start));
    }

    fn piece(&mut self, text: &str) {
        let text = clean::text(text);
        if !text.is_empty() {
            self.page.printer.piece(&text);
            self.is_at_line_start = text.ends_with('\n');
        }
    }
}
