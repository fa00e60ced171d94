//! What an agent may do without asking, may not do, and must ask for.
//!
//! A permission rule names a tool. One with a pattern, such as `Bash(git *)`, allows the commands that fit it. It is
//! only about one simple command: a pattern does not see what a shell makes of an operator, a variable or a
//! substitution, so that a command with any of these is decided by the default. For the same reason nothing can be
//! denied by a pattern.

/// What to do when a tool is to be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permission {
    Allow,
    /// Ask a human.
    #[default]
    Ask,
    Deny,
}

/// The rules of one agent. A rule is a tool's name; a `*` in it stands for any characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Where no rule fits.
    pub default: Permission,
    /// Tools that may be used.
    pub allow: Vec<String>,
    /// Tools that may not; they win over `allow`.
    pub deny: Vec<String>,
    /// Commands that may be run, where the program reports them before it runs them.
    pub allow_commands: Vec<CommandRule>,
}

/// Allows the commands of a tool that fit a pattern: `Bash(git *)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRule {
    /// The tool's name; a `*` in it stands for any characters.
    pub tool: String,
    /// What the whole command is like; a `*` in it stands for any characters.
    pub pattern: String,
}

impl CommandRule {
    /// Characters with which a shell does more than run one command with the arguments that are written there.
    pub const SHELL_SYNTAX: [char; 11] = [';', '&', '|', '$', '`', '<', '>', '(', ')', '\n', '\r'];

    /// A command without the spaces around it, if it is one that a pattern can be about: not empty, and no shell makes more
    /// of it than it says. Other blanks than the space, and control characters, are parts of a word to a shell, or invisible.
    fn simple(command: &str) -> Option<&str> {
        let command = command.trim_matches([' ', '\t', '\n']);
        let is_odd = |letter: char| letter.is_control() || (letter.is_whitespace() && letter != ' ');
        let has_comment = command.starts_with('#') || command.contains(" #");
        let is_simple = !command.contains(Self::SHELL_SYNTAX) && !command.contains(is_odd) && !has_comment;
        (is_simple && !command.is_empty()).then_some(command)
    }

    fn allows(&self, names: &[&str], command: &str) -> bool {
        names.iter().any(|name| fits(&self.tool, name)) && fits(&self.pattern, command)
    }
}

impl Permissions {
    /// What to do about a tool.
    #[must_use]
    pub fn of(&self, tool: &str) -> Permission {
        self.of_any(&[tool])
    }

    /// What to do about a tool that has several names.
    #[must_use]
    pub fn of_any(&self, names: &[&str]) -> Permission {
        let named = |rules: &[String]| rules.iter().any(|rule| names.iter().any(|name| fits(rule, name)));
        if named(&self.deny) {
            Permission::Deny
        } else if named(&self.allow) {
            Permission::Allow
        } else {
            self.default
        }
    }

    /// What to do about a call of a tool, of which the command may be known that it would run.
    #[must_use]
    pub fn of_call(&self, names: &[&str], command: Option<&str>) -> Permission {
        let allows = |command| self.allow_commands.iter().any(|rule| rule.allows(names, command));
        let is_allowed = command.and_then(CommandRule::simple).is_some_and(allows);
        match is_allowed && !self.denies_by_name(names) {
            true => Permission::Allow,
            false => self.of_any(names),
        }
    }

    /// Whether a rule denies a tool by name, rather than the default.
    #[must_use]
    pub fn denies_by_name(&self, names: &[&str]) -> bool {
        Self { default: Permission::Allow, ..self.clone() }.of_any(names) == Permission::Deny
    }

    /// The rules that are the name of a tool, with the names of their lists.
    #[must_use]
    pub fn lists(&self) -> [(&'static str, &[String]); 2] {
        [("allow", &self.allow), ("deny", &self.deny)]
    }

    /// Whether any tool is named.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        !self.allow_commands.is_empty() || self.lists().into_iter().any(|(_, rules)| !rules.is_empty())
    }

    /// Whether any tool at all may lead to a question.
    #[must_use]
    pub fn may_ask(&self) -> bool {
        self.default == Permission::Ask
    }
}

/// Whether a rule is about a tool. Case counts, because tools are named so by their programs.
fn fits(rule: &str, tool: &str) -> bool {
    let mut pieces = rule.split('*');
    let Some(rest) = pieces.next().and_then(|first| tool.strip_prefix(first)) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    let mut rest = rest;
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Whether a rule can be about any tool of a program, which names its tools so; in both, a `*` stands for any
/// characters.
#[must_use]
pub fn can_fit(rule: &str, tools: &[&str]) -> bool {
    tools.iter().any(|tool| meet(rule.as_bytes(), tool.as_bytes()))
}

/// Whether two patterns have a name in common. `here[at]` is whether the rest of one, and the rest of the other from
/// `at` on, have.
fn meet(one: &[u8], other: &[u8]) -> bool {
    let end = other.len();
    let mut below = vec![false; end + 1];
    for (at, is_common) in below.iter_mut().enumerate() {
        *is_common = other[at..].iter().all(|letter| *letter == b'*');
    }
    for letter in one.iter().rev() {
        let mut here = vec![false; end + 1];
        here[end] = *letter == b'*' && below[end];
        for at in (0..end).rev() {
            here[at] = match (*letter, other[at]) {
                (b'*', _) | (_, b'*') => below[at] || here[at + 1],
                (letter, other) => letter == other && below[at + 1],
            };
        }
        below = here;
    }
    below[0]
}
