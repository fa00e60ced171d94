//! Commands in printed text. Each keeps the flags of the command that prints it, so that it finds the same data when it is
//! pasted. A server does not know under which flags a command reaches it, so its texts are completed here.

use clap::{Command, CommandFactory};

use super::{CommandLine, DataFlags};

const PROGRAM: &str = "switchboard";

impl DataFlags {
    /// A text in which every command that takes these flags has them.
    pub(crate) fn in_commands(&self, text: &str) -> String {
        let flags = self.again();
        if flags.is_empty() {
            return text.to_owned();
        }
        let root = CommandLine::command();
        let mut completed = String::with_capacity(text.len() + flags.len());
        let mut rest = text;
        while let Some(start) = rest.find(PROGRAM) {
            let words = start + PROGRAM.len();
            let (length, command) = named(&root, &rest[words..]);
            let (printed, after) = rest.split_at(words + length);
            completed.push_str(printed);
            let has_flags = after.starts_with(" --data-dir") || after.starts_with(" --workspace");
            if command.get_arguments().any(|argument| argument.get_id() == "data_dir") && !has_flags {
                completed.push_str(&flags);
            }
            rest = after;
        }
        completed + rest
    }
}

/// The subcommand whose name a text begins with, and how long that is.
fn named<'a>(root: &'a Command, text: &str) -> (usize, &'a Command) {
    let (mut length, mut command) = (0, root);
    while let Some(after) = text[length..].strip_prefix(' ') {
        let end = after.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').unwrap_or(after.len());
        let Some(subcommand) = command.find_subcommand(&after[..end]) else { break };
        length += 1 + end;
        command = subcommand;
    }
    (length, command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_in_a_text_gets_the_flags_it_takes() {
        let flags = DataFlags { workspace: "my work".into(), data_dir: Some("d".into()) };
        let again = " --workspace 'my work' --data-dir d";
        for (text, completed) in [
            ("switchboard task list --all shows them", format!("switchboard task list{again} --all shows them")),
            (
                "there is none; switchboard keys list, or switchboard webhooks secret show --caller ID",
                format!(
                    "there is none; switchboard keys list{again}, or switchboard webhooks secret show{again} --caller ID"
                ),
            ),
            ("switchboard serve starts one", format!("switchboard serve{again} starts one")),
            ("switchboard db check", format!("switchboard db check{again}")),
            ("switchboard keys create --data-dir e", "switchboard keys create --data-dir e".to_owned()),
            (
                "switchboard version, the switchboard program, é switchboard",
                "switchboard version, the switchboard program, é switchboard".to_owned(),
            ),
        ] {
            assert_eq!(flags.in_commands(text), completed);
        }
        let none = DataFlags { workspace: ".".into(), data_dir: None };
        assert_eq!(none.in_commands("switchboard serve"), "switchboard serve");
    }
}
