//! What a program may do without asking, may not do, and must ask for.

use schemars::JsonSchema;
use serde::Serialize;
use switchboard_cli_agents::adapters::{CommandRule, Permission as Rule};
use switchboard_host::config::problem::Mismatch;
use switchboard_host::config::section::Section;
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::config::value::Scalar;
use switchboard_host::{json_schema_of, section_keys, word_setting};

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
    /// Named as the program names them; a `*` stands for any characters. `Bash(git *)` allows one simple command that fits
    /// the pattern, where the program reports its commands; anything that is more than that is decided by `default`.
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

/// What a program may do for one skill. What is left out is as for the agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(default, deny_unknown_fields)]
pub struct SkillPermissions {
    /// What is done where no rule fits, instead of the agent's.
    pub default: Option<Permission>,
    /// Tools it may use without asking, instead of the agent's.
    pub allow: Option<Vec<ToolRule>>,
    /// Tools it may not use, instead of the agent's.
    pub deny: Option<Vec<ToolRule>>,
}

/// The name of a tool, or of several with a `*` in it; with a pattern for its command in `allow`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ToolRule(String);

section_keys!(Permissions with check, {
    default: Permission::Ask,
    allow: Vec::new(),
    deny: Vec::new(),
    expiry (nonzero): TimeSpan::from_hours(1),
});

impl Permissions {
    fn check(&self, section: &mut Section<'_, '_>) {
        if let Some(pattern) = self.deny.iter().find(|rule| rule.command().is_some()) {
            let wrong = format!("\"{}\" has a pattern, and a shell can say the same in other words", pattern.0);
            section.refuse("deny", wrong, "write default: deny, and what may be run under allow");
        }
        let rules = self.rules();
        for CommandRule { tool, pattern } in &rules.allow_commands {
            let rule = format!("{tool}({pattern})");
            match rules.of(tool) {
                Rule::Deny if rules.denies_by_name(&[tool]) => {
                    let wrong = format!("deny names {tool}, which wins over \"{rule}\"");
                    section.refuse("allow", wrong, "remove it from deny, and write default: deny for the rest");
                }
                Rule::Allow => {
                    let wrong = format!("\"{rule}\" holds nothing back: every command of {tool} is allowed");
                    section.refuse("allow", wrong, "write default: ask or deny, and allow no more than the pattern");
                }
                _ => {}
            }
        }
        if let Some(both) = self.allow.iter().find(|rule| self.deny.contains(rule)) {
            let rule = &both.0;
            match (section.is_set("allow"), section.is_set("deny")) {
                (true, true) => {
                    section.refuse(
                        "allow",
                        format!("\"{rule}\" is in deny too, which wins"),
                        "keep it in one of the two",
                    );
                }
                (true, false) => {
                    let wrong = format!("\"{rule}\" is in deny of the agent, which wins");
                    section.refuse("allow", wrong, "write deny for this skill too");
                }
                (false, _) => {
                    let wrong = format!("\"{rule}\" is in allow of the agent, over which it wins");
                    section.refuse("deny", wrong, "write allow for this skill too");
                }
            }
        }
    }
}

impl Permissions {
    /// The same for the programs' adapters.
    pub fn rules(&self) -> switchboard_cli_agents::adapters::Permissions {
        let names = |rules: &[ToolRule]| {
            rules.iter().filter(|rule| rule.command().is_none()).map(|rule| rule.0.clone()).collect()
        };
        let default = match self.default {
            Permission::Ask => Rule::Ask,
            Permission::Allow => Rule::Allow,
            Permission::Deny => Rule::Deny,
        };
        switchboard_cli_agents::adapters::Permissions {
            default,
            allow: names(&self.allow),
            deny: names(&self.deny),
            allow_commands: self.allow.iter().filter_map(ToolRule::command).collect(),
        }
    }
}

impl SkillPermissions {
    /// Reads them, and checks them as they hold together with the agent's.
    pub(crate) fn read(&mut self, section: &mut Section<'_, '_>, agent: &Permissions) -> Permissions {
        section.read("default", &mut self.default);
        let mut list = |key: &'static str| {
            let mut rules = Vec::new();
            section.read(key, &mut rules);
            section.is_set(key).then_some(rules)
        };
        self.allow = list("allow");
        self.deny = list("deny");
        let permissions = Permissions {
            default: self.default.unwrap_or(agent.default),
            allow: self.allow.clone().unwrap_or_else(|| agent.allow.clone()),
            deny: self.deny.clone().unwrap_or_else(|| agent.deny.clone()),
            expiry: agent.expiry,
        };
        permissions.check(section);
        permissions
    }
}

impl ToolRule {
    /// The rule as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The tool and the pattern of a rule that has one.
    pub fn command(&self) -> Option<CommandRule> {
        let (tool, pattern) = self.0.strip_suffix(')')?.split_once('(')?;
        Some(CommandRule { tool: tool.to_owned(), pattern: pattern.to_owned() })
    }
}

word_setting!(Permission: "ask" => Ask, "allow" => Allow or "deny" => Deny);

impl Scalar for ToolRule {
    const WRITE: &'static str = "the name of a tool, such as Read or mcp__*, or a command such as Bash(git *)";

    fn from_text(text: &str) -> Result<Self, Mismatch> {
        if text.is_empty() {
            return Err(Mismatch::new("a rule is empty", format!("write {}", Self::WRITE)));
        }
        let rule = Self(text.to_owned());
        match rule.command() {
            None if text.contains(['(', ')']) => {
                Err(Self::mismatch(text, "is neither a name nor a name with a pattern in brackets"))
            }
            Some(CommandRule { tool, pattern }) if tool.is_empty() || pattern.trim().is_empty() => {
                Err(Self::mismatch(text, if tool.is_empty() { "has no tool" } else { "has no pattern" }))
            }
            Some(CommandRule { pattern, .. }) if pattern != pattern.trim() => {
                let wrong = format!("\"{text}\" would never fit: commands are compared without the spaces around them");
                Err(Mismatch::new(wrong, "remove the space next to the bracket"))
            }
            Some(CommandRule { tool, pattern })
                if pattern.strip_suffix(":*").is_some_and(|word| !word.contains(' ')) =>
            {
                let word = pattern.trim_end_matches(":*");
                let wrong = format!("\"{text}\" is only about commands that begin with {word}:");
                Err(Mismatch::new(wrong, format!("write {tool}({word} *) for {word} with any arguments")))
            }
            Some(CommandRule { pattern, .. }) if pattern.contains(CommandRule::SHELL_SYNTAX) => {
                let wrong = format!(
                    "\"{text}\" would never fit: a command with ; & | $ ` < > ( ) or a line break is asked about"
                );
                Err(Mismatch::new(wrong, "write a pattern of one simple command, such as Bash(git *)"))
            }
            _ => Ok(rule),
        }
    }
}

json_schema_of!(ToolRule, {
    "type": "string", "minLength": 1, "pattern": "^[^()]+(\\([^()]+\\))?$",
    "examples": ["Read", "mcp__*", "Bash(git *)"]
});
