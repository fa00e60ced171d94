//! What a program may do without asking, may not do, and must ask for.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::config::problem::Mismatch;
use crate::config::section::Section;
use crate::config::time_span::TimeSpan;
use crate::config::value::{Scalar, choice};

/// What a program may do.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default, deny_unknown_fields)]
pub struct Permissions {
    /// What is done where no rule fits.
    ///
    /// `ask` asks the caller, `allow` lets it go ahead, `deny` refuses.
    pub default: Permission,
    /// Tools it may use without asking.
    ///
    /// Named as the program names them; a `*` stands for any characters.
    pub allow: Vec<ToolRule>,
    /// Tools it may not use.
    ///
    /// They win over `allow`.
    pub deny: Vec<ToolRule>,
    /// Time a question waits for its answer.
    ///
    /// Then the task fails; another message in the same context goes on.
    pub expiry: TimeSpan,
}

/// What is done when a tool is to be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// The caller is asked.
    #[default]
    Ask,
    /// It goes ahead.
    Allow,
    /// It is refused.
    Deny,
}

/// The name of a tool, or of several with a `*` in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ToolRule(String);

impl Default for Permissions {
    fn default() -> Self {
        Self { default: Permission::default(), allow: Vec::new(), deny: Vec::new(), expiry: TimeSpan::from_hours(1) }
    }
}

impl Permissions {
    pub(super) fn read(&mut self, section: &mut Section<'_, '_>) {
        section.read("default", &mut self.default);
        section.read("allow", &mut self.allow);
        section.read("deny", &mut self.deny);
        section.read("expiry", &mut self.expiry);
        section.refuse_zero("expiry", self.expiry);
        if let Some(both) = self.allow.iter().find(|rule| self.deny.contains(rule)) {
            let wrong = format!("\"{}\" is in deny too, which wins", both.as_str());
            section.refuse("allow", wrong, "keep it in one of the two");
        }
    }
}

impl Permissions {
    /// The same for the programs' adapters.
    #[must_use]
    pub fn rules(&self) -> switchboard_cli_agents::adapters::Permissions {
        use switchboard_cli_agents::adapters::Permission as Rule;
        let names = |rules: &[ToolRule]| rules.iter().map(|rule| rule.as_str().to_owned()).collect();
        let default = match self.default {
            Permission::Ask => Rule::Ask,
            Permission::Allow => Rule::Allow,
            Permission::Deny => Rule::Deny,
        };
        switchboard_cli_agents::adapters::Permissions { default, allow: names(&self.allow), deny: names(&self.deny) }
    }
}

impl ToolRule {
    /// The rule as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Scalar for Permission {
    const WRITE: &'static str = "ask, allow or deny";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        choice(text, &[("ask", Self::Ask), ("allow", Self::Allow), ("deny", Self::Deny)])
    }
}

impl Scalar for ToolRule {
    const WRITE: &'static str = "the name of a tool, such as Read or mcp__*";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        if text.is_empty() {
            return Err(Mismatch::new("a rule is empty", format!("write {}", Self::WRITE)));
        }
        if text.contains(['(', ')']) {
            let wrong = format!("\"{text}\" has brackets, and a rule is a tool's name");
            let right = format!("patterns of arguments are not known here; write {}", Self::WRITE);
            return Err(Mismatch::new(wrong, right));
        }
        Ok(Self(text.to_owned()))
    }
}

impl JsonSchema for ToolRule {
    fn schema_name() -> Cow<'static, str> {
        "ToolRule".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "pattern": "^[^()]*$", "examples": ["Read", "mcp__*"] })
    }
}
