//! How much output of a program is taken, so that one that never stops talking fills neither memory nor disk.

use schemars::JsonSchema;
use serde::Serialize;
use switchboard_host::config::section::Section;
use switchboard_host::config::size::{Count, Size};
use switchboard_host::section_keys;

/// How much output is taken.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default, deny_unknown_fields)]
pub struct OutputLimits {
    /// Longest line of output.
    ///
    /// A longer one is left out.
    pub line: Size,
    /// How much of its standard error is kept, from the end.
    pub stderr: Size,
    /// Most events of one turn.
    ///
    /// Then the program is ended and the task fails.
    pub events: Count,
    /// Most output of one turn.
    ///
    /// Then the program is ended and the task fails.
    pub output: Size,
}

section_keys!(OutputLimits with check, {
    line: Size::from_mebibytes(16),
    stderr: Size::from_kibibytes(64),
    events: Count::new(100_000),
    output: Size::from_mebibytes(256),
});

impl OutputLimits {
    fn check(&self, section: &mut Section<'_, '_>) {
        if self.line > self.output {
            // Whichever of the two was set is the one to look at.
            let key = if section.is_set("line") { "line" } else { "output" };
            section.refuse(
                key,
                format!("a line may have {} and the whole output only {}", self.line, self.output),
                "make limits.output at least as large as limits.line",
            );
        }
    }
}
