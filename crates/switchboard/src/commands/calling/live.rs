//! What an agent produces, written while it is being produced, each piece once.

use switchboard_a2a::{Artifact, ArtifactId, PartContent, StreamResponse};

use crate::commands::calling::shown;
use crate::printer::Printer;

/// Writes pieces of artifacts as they come.
pub(super) struct Live {
    printer: Printer,
    last: Option<ArtifactId>,
    is_at_line_start: bool,
    /// Whether anything was written.
    pub(super) has_written: bool,
}

impl Live {
    pub(super) fn new(printer: Printer) -> Self {
        Self { printer, last: None, is_at_line_start: true, has_written: false }
    }

    /// Writes what an event brings.
    pub(super) fn hear(&mut self, event: &StreamResponse) {
        match event {
            StreamResponse::ArtifactUpdate(update) => self.write(&update.artifact, update.append),
            // A picture of a task that has produced something already; later ones hold what was written.
            StreamResponse::Task(task) if !self.has_written => {
                for artifact in &task.artifacts {
                    self.write(artifact, false);
                }
            }
            _ => {}
        }
    }

    /// Whether the cursor stands where a line begins.
    pub(super) fn is_at_line_start(&self) -> bool {
        self.is_at_line_start
    }

    /// Ends the line that was begun.
    pub(super) fn end_line(&mut self) {
        if !self.is_at_line_start {
            self.piece("\n");
        }
    }

    fn write(&mut self, artifact: &Artifact, append: bool) {
        if !append || self.last.as_ref() != Some(&artifact.artifact_id) {
            self.end_line();
        }
        self.last = Some(artifact.artifact_id.clone());
        for part in &artifact.parts {
            let is_text = matches!(part.content, PartContent::Text(_));
            if !is_text {
                self.end_line();
            }
            self.piece(&shown::part(part));
            if !is_text {
                self.end_line();
            }
        }
    }

    fn piece(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.printer.piece(text);
        self.has_written = true;
        self.is_at_line_start = text.ends_with('\n');
    }
}
