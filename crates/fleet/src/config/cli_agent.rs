//! An entry of `agents.yaml` with `cli`: a command-line coding agent, or any other program, that is started for each
//! turn. This is what the operator says of it; how each program is spoken to stands elsewhere.

pub mod arguments;
pub mod cli;
pub mod generic;
mod key_checks;
pub mod output_limits;
pub(crate) mod permission_checks;
pub mod permissions;
pub mod profiles;
pub mod variable_name;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use switchboard_host::config::section::Section;
use switchboard_host::config::size::Count;
use switchboard_host::config::time_span::{TimeLimit, TimeSpan};
use switchboard_host::word_setting;

use crate::config::cli_agent::arguments::{Arguments, Command};
use crate::config::cli_agent::cli::Cli;
use crate::config::cli_agent::generic::{Approval, Input, Output, Separator};
use crate::config::cli_agent::output_limits::OutputLimits;
use crate::config::cli_agent::permissions::Permissions;
use crate::config::cli_agent::profiles::Profiles;
use crate::config::cli_agent::variable_name::VariableName;
use crate::config::path_text;

/// A command-line agent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CliAgent {
    /// Program that does the work.
    ///
    /// `claude-code`, `codex`, `cursor`, `gemini`, `opencode`, `acp` for any that speaks the Agent Client Protocol, or
    /// `generic` for any at all.
    pub cli: Cli,
    /// Path or name of the program, instead of its usual names.
    ///
    /// A name is looked up on the path; a relative path starts at the workspace folder.
    #[schemars(default)]
    #[serde(serialize_with = "path_text::option")]
    pub program: Option<PathBuf>,
    /// Arguments to add, before the prompt.
    #[schemars(default)]
    pub args: Arguments,
    /// Program and its arguments, for `acp` and `generic`.
    ///
    /// No shell reads it. A relative path of the program starts at the workspace folder.
    #[schemars(default)]
    pub command: Option<Command>,
    /// File that describes the program's language, for `generic`.
    ///
    /// YAML. It takes the place of `command`, `input`, `separator`, `output` and `approval`; a relative path starts at the
    /// workspace folder.
    #[schemars(default)]
    #[serde(serialize_with = "path_text::option")]
    pub adapter: Option<PathBuf>,
    /// How a generic program gets the prompt.
    ///
    /// `stdin`, or `argument` for its last argument.
    #[schemars(default)]
    pub input: Input,
    /// What stands before a prompt that is an argument.
    ///
    /// `dashes` for `--`, so that no prompt is taken for an option, or `none` for a program that does not know `--`. Then a
    /// message that begins with a dash is refused.
    #[schemars(default)]
    pub separator: Separator,
    /// What a generic program writes.
    ///
    /// `text`, or `jsonl` for an event on each line.
    #[schemars(default)]
    pub output: Output,
    /// How a generic program asks for approval.
    ///
    /// By a line of text that fits `pattern`, or with an event of its own (`events: true`, with `output: jsonl`). Without
    /// this key it never asks.
    #[schemars(default)]
    pub approval: Option<Approval>,
    /// Folder it works in.
    ///
    /// A relative path starts at the workspace folder, which is also the default.
    #[schemars(default = "workspace_folder")]
    #[serde(serialize_with = "path_text::one")]
    pub cwd: PathBuf,
    /// Folders within which `metadata.repo` of a request may choose another one to work in.
    ///
    /// Without any, a request cannot choose. A relative path starts at the workspace folder.
    #[schemars(default)]
    #[serde(serialize_with = "path_text::list")]
    pub repos: Vec<PathBuf>,
    /// Whether each task works in a git worktree of its own.
    ///
    /// `off`, `keep` to keep what it has changed as a branch, or `remove` to keep nothing. The diff is an artifact of the
    /// task either way.
    #[schemars(default)]
    pub worktree: Worktree,
    /// Whether only one task at a time works in a repository.
    ///
    /// Others wait for their turn.
    #[schemars(default = "enabled")]
    pub repo_lock: bool,
    /// Names of the variables of the environment that the program sees.
    ///
    /// It sees no others. Without this key it sees its own, such as `ANTHROPIC_API_KEY` for `claude-code`, and the usual
    /// ones: `PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL`, `LANG`, `LANGUAGE`, `LC_ALL`, `LC_CTYPE`, `TZ`, `TMPDIR`,
    /// `XDG_CONFIG_HOME`, `XDG_DATA_HOME`, `XDG_CACHE_HOME`, `SSL_CERT_FILE` and `SSL_CERT_DIR`.
    #[schemars(default)]
    pub env: Option<Vec<VariableName>>,
    /// Account to run it as.
    ///
    /// Needs a server that runs as root.
    #[schemars(default)]
    pub user: Option<String>,
    /// What it may do without asking, and what it may not do.
    #[schemars(default)]
    pub permissions: Permissions,
    /// Time for one turn, or `none`.
    ///
    /// Then the program is ended and the task fails. The time rests while a human is waited for.
    #[schemars(default = "usual_timeout")]
    pub timeout: TimeLimit,
    /// Time the program may be silent while it works, or `none`.
    ///
    /// Then it is ended and the task fails. The time rests while a human is waited for, and while a tool runs.
    #[schemars(default = "usual_idle")]
    pub idle: TimeLimit,
    /// Programs at a time.
    ///
    /// Further turns wait.
    #[schemars(default = "usual_parallel")]
    pub max_parallel: Count,
    /// How much output is taken.
    #[schemars(default)]
    pub limits: OutputLimits,
    /// Model, if it is not the program's own choice.
    #[schemars(default)]
    pub model: Option<String>,
    /// Models that a request may choose with `metadata.model`.
    ///
    /// Without any, a request cannot choose. A profile of another program has its own.
    #[schemars(default)]
    pub models: Vec<String>,
    /// How hard to think, in the program's own words, if it is not the program's own choice.
    #[schemars(default)]
    pub effort: Option<String>,
    /// Efforts that a request may choose with `metadata.effort`.
    ///
    /// Without any, a request cannot choose. A profile of another program has its own.
    #[schemars(default)]
    pub efforts: Vec<String>,
    /// What hard, middling and routine tasks are done with.
    ///
    /// All three or none, under these names or the same in capitals. `metadata.profile` of a request chooses one.
    #[schemars(default)]
    pub profiles: Option<Profiles>,
    /// Whether a summary of the repository stands before the prompt.
    #[schemars(default)]
    pub context: bool,
    /// The permissions of its skills that have their own, with what these leave out.
    #[serde(skip)]
    pub skill_permissions: BTreeMap<String, Permissions>,
}

/// Whether each task works in a git worktree of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Worktree {
    /// It works in the repository itself.
    #[default]
    Off,
    /// It has one, and what was changed is kept as a branch.
    Keep,
    /// It has one, and nothing of it is kept.
    Remove,
}

fn workspace_folder() -> PathBuf {
    PathBuf::from(".")
}

fn enabled() -> bool {
    true
}

fn usual_timeout() -> TimeLimit {
    TimeLimit(Some(TimeSpan::from_minutes(30)))
}

fn usual_idle() -> TimeLimit {
    TimeLimit(Some(TimeSpan::from_minutes(5)))
}

fn usual_parallel() -> Count {
    Count::new(2)
}

impl CliAgent {
    /// One of that kind with nothing changed.
    fn new(cli: Cli) -> Self {
        Self {
            cli,
            program: None,
            args: Arguments::default(),
            command: None,
            adapter: None,
            input: Input::default(),
            separator: Separator::default(),
            output: Output::default(),
            approval: None,
            cwd: workspace_folder(),
            repos: Vec::new(),
            worktree: Worktree::default(),
            repo_lock: enabled(),
            env: None,
            user: None,
            permissions: Permissions::default(),
            timeout: usual_timeout(),
            idle: usual_idle(),
            max_parallel: usual_parallel(),
            limits: OutputLimits::default(),
            model: None,
            models: Vec::new(),
            effort: None,
            efforts: Vec::new(),
            profiles: None,
            context: false,
            skill_permissions: BTreeMap::new(),
        }
    }

    /// Reads the keys of one item of the list; nothing when it cannot be an agent, which is then reported.
    pub(super) fn read(section: &mut Section<'_, '_>) -> Option<Self> {
        let cli = section.require::<Cli>("cli");
        // Of an unknown kind all keys are read for their own mistakes, and nothing comes of it.
        let mut agent = Self::new(cli.unwrap_or(Cli::Generic));
        agent.read_program(section);
        agent.read_place(section);
        section.read("timeout", &mut agent.timeout);
        section.read("idle", &mut agent.idle);
        section.read("maxParallel", &mut agent.max_parallel);
        section.section("limits", |section| agent.limits.read(section));
        section.read("model", &mut agent.model);
        section.read("models", &mut agent.models);
        refuse_stranger(section, "model", agent.model.as_deref(), "models", &agent.models);
        section.read("effort", &mut agent.effort);
        section.read("efforts", &mut agent.efforts);
        refuse_stranger(section, "effort", agent.effort.as_deref(), "efforts", &agent.efforts);
        section.read("context", &mut agent.context);
        if cli.is_none() {
            // What a profile may hold depends on the kind.
            section.mark_known("profiles");
            section.section("permissions", |section| agent.permissions.read(section));
            return None;
        }
        agent.profiles = Profiles::read(section, &agent);
        permission_checks::read(section, &mut agent);
        key_checks::check(section, &agent);
        Some(agent)
    }

    /// What is started, and how it is talked to.
    fn read_program(&mut self, section: &mut Section<'_, '_>) {
        section.read("program", &mut self.program);
        refuse_tilde(section, "program", &self.program);
        section.read("args", &mut self.args);
        self.command = section.require("command");
        refuse_tilde(section, "command", self.command.as_ref().map(|command| &command.program));
        section.read("adapter", &mut self.adapter);
        refuse_tilde(section, "adapter", &self.adapter);
        section.read("input", &mut self.input);
        section.read("separator", &mut self.separator);
        section.read("output", &mut self.output);
        if section.is_set("approval") {
            section.section("approval", |section| self.approval = Approval::read(section));
        } else {
            section.mark_known("approval");
        }
    }

    /// Where it works, as whom, and with what around it.
    fn read_place(&mut self, section: &mut Section<'_, '_>) {
        section.read("cwd", &mut self.cwd);
        refuse_tilde(section, "cwd", [&self.cwd]);
        section.read("repos", &mut self.repos);
        refuse_tilde(section, "repos", &self.repos);
        section.read("worktree", &mut self.worktree);
        section.read("repoLock", &mut self.repo_lock);
        let mut env = Vec::new();
        section.read("env", &mut env);
        self.env = section.is_set("env").then_some(env);
        section.read("user", &mut self.user);
    }

    /// Makes relative paths start at a folder, and all of them absolute.
    pub(super) fn start_at(&mut self, folder: &Path) {
        let full = |path: &mut PathBuf| {
            let joined = folder.join(&*path);
            *path = std::path::absolute(&joined).unwrap_or(joined);
        };
        full(&mut self.cwd);
        self.repos.iter_mut().for_each(full);
        self.adapter.iter_mut().for_each(full);
        let commands = self.command.iter_mut().map(|command| &mut command.program);
        let profiles = self.profiles.iter_mut().flat_map(Profiles::all_mut);
        let programs = self.program.iter_mut().chain(commands).chain(profiles.filter_map(|own| own.program.as_mut()));
        // A plain name is looked up when the program is started.
        programs.filter(|program| program.components().count() > 1 || program.has_root()).for_each(full);
    }

    /// Folders that are named and are not there, each as a sentence. They may still come, so that this is no error.
    pub(super) fn missing(&self) -> Vec<String> {
        let folders = std::iter::once(("cwd", &self.cwd)).chain(self.repos.iter().map(|folder| ("repos", folder)));
        let absent = |(key, folder): (&str, &PathBuf)| {
            format!("{key}: there is no folder {}: create it, or correct {key}", folder.display())
        };
        folders.filter(|(_, folder)| !folder.is_dir()).map(absent).collect()
    }
}

/// Refuses a tilde: it is for shells, and there is none here.
fn refuse_tilde<'a>(section: &mut Section<'_, '_>, key: &str, paths: impl IntoIterator<Item = &'a PathBuf>) {
    let Some(path) = paths.into_iter().find(|path| path.starts_with("~")) else { return };
    let wrong = format!("\"{}\" begins with a ~, which only a shell understands", path.display());
    section.refuse(key, wrong, format!("write ${{HOME}}{}", path.display().to_string().trim_start_matches('~')));
}

/// Refuses a value that requests could not choose again once they have chosen another.
fn refuse_stranger(section: &mut Section<'_, '_>, key: &str, value: Option<&str>, list_key: &str, list: &[String]) {
    let Some(value) = value.filter(|value| !list.is_empty() && !list.iter().any(|item| item == value)) else {
        return;
    };
    let right = format!("add it to {list_key}, or write one of {}", list.join(", "));
    section.refuse(key, format!("\"{value}\" is not among {list_key}"), right);
}

word_setting!(Worktree: "off" => Off, "keep" => Keep or "remove" => Remove);
