//! A doctor finding: one result of a check, and its fix.

use serde::Serialize;
use switchboard_host::sanitize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Level {
    /// It is as it should be.
    Ok,
    /// It is not there, and nothing here needs it.
    Missing,
    /// It cannot be found out.
    Unknown,
    /// It works, or may work, and is probably not meant.
    Warning,
    /// Something will not work.
    Problem,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    pub(super) text: String,
    /// What to do about it; nothing if it is as it should be and there is nothing to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) fix: String,
}

impl Level {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

impl Finding {
    /// Sanitizes both texts to one line, because they may contain output of programs.
    pub(super) fn new(level: Level, text: impl AsRef<str>, fix: impl AsRef<str>) -> Self {
        Self { level, text: sanitize::line(text.as_ref()), fix: sanitize::line(fix.as_ref()) }
    }

    /// Problems from an error message, one on each line.
    pub(super) fn refused(message: &str) -> Vec<Self> {
        message.lines().map(|line| Self::worded(Level::Problem, line)).collect()
    }

    /// A finding from a message whose fix stands after the last colon.
    pub(super) fn worded(level: Level, line: &str) -> Self {
        let (text, fix) = line.rsplit_once(": ").unwrap_or((line, ""));
        Self::new(level, text, fix)
    }

    pub(super) fn about(mut self, what: Option<&str>) -> Self {
        if let Some(what) = what {
            self.text = format!("{what}: {}", self.text);
        }
        self
    }

    pub(super) fn ok(text: impl AsRef<str>) -> Self {
        Self::new(Level::Ok, text, "")
    }

    pub(super) fn warning(text: impl AsRef<str>, fix: impl AsRef<str>) -> Self {
        Self::new(Level::Warning, text, fix)
    }

    pub(super) fn problem(text: impl AsRef<str>, fix: impl AsRef<str>) -> Self {
        Self::new(Level::Problem, text, fix)
    }
}
