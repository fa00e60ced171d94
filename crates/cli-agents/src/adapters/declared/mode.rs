//! Launch arguments of a declared program for each permission default.

use crate::adapters::declared::section::Section;
use crate::adapters::field_error::FieldError;
use crate::adapters::permissions::{Permission, Permissions};

/// What is added for each default of the permissions; nothing where the program cannot do it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Modes {
    allow: Option<Mode>,
    ask: Option<Mode>,
    deny: Option<Mode>,
    /// Whether single tools can be allowed and denied, because the program asks about them.
    lists: bool,
}

/// What is added to start a program in one way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

impl Modes {
    /// Reads `permissions`. Without it, a program that never asks is unrestricted, so it is started only where
    /// everything is allowed; one that asks leaves each decision to the approver.
    pub(crate) fn read(section: &mut Section<'_, '_>, asks: bool) -> Self {
        let default = || {
            let asked = asks.then(Mode::default);
            Self { allow: Some(Mode::default()), ask: asked.clone(), deny: asked, lists: asks }
        };
        let read = |section: &mut Section<'_, '_>| {
            let modes = Self {
                allow: section.section("allow", Mode::read),
                ask: section.section("ask", Mode::read),
                deny: section.section("deny", Mode::read),
                lists: asks,
            };
            if modes.ask.is_some() && !asks {
                section.refuse("ask", "needs a program that asks", "remove it, or write approvals");
            }
            if section.is_mapping() && (&modes.allow, &modes.ask, &modes.deny) == (&None, &None, &None) {
                section.refuse_whole("allows no way to start it", "write allow: {}, deny: {} or both");
            }
            modes
        };
        section.section("permissions", read).unwrap_or_else(default)
    }

    /// Of a program whose questions are never heard, where it is up to the program what asking means.
    pub(crate) fn of_unasking() -> Self {
        Self { allow: Some(Mode::default()), ask: Some(Mode::default()), deny: None, lists: false }
    }

    pub(crate) fn of(&self, permissions: &Permissions, title: &str) -> Result<&Mode, FieldError> {
        if !self.lists && permissions.has_rules() {
            let allows = !permissions.allow.is_empty() || !permissions.allow_commands.is_empty();
            let key = if allows { "allow" } else { "deny" };
            let wrong = format!("{title} never asks, so single tools cannot be allowed or denied");
            return Err(FieldError::new(key, wrong, "remove it"));
        }
        let (mode, word) = match permissions.default {
            Permission::Allow => (&self.allow, "allow"),
            Permission::Ask => (&self.ask, "ask"),
            Permission::Deny => (&self.deny, "deny"),
        };
        mode.as_ref().ok_or_else(|| {
            let can: Vec<&str> = [(&self.allow, "allow"), (&self.ask, "ask"), (&self.deny, "deny")]
                .into_iter()
                .filter_map(|(mode, word)| mode.as_ref().map(|_| word))
                .collect();
            FieldError::new(
                "default",
                format!("{title} cannot be run with {word}"),
                format!("write {}", can.join(" or ")),
            )
        })
    }
}

impl Mode {
    fn read(section: &mut Section<'_, '_>) -> Self {
        Self { args: section.texts("args").unwrap_or_default(), env: section.variables("env") }
    }
}
