//! `switchboard chat`: a conversation with an agent, a line of standard input a turn. It can be written to a file after
//! every turn and taken up again from there.

mod saved_conversation;

use std::io::IsTerminal;
use std::path::PathBuf;

use switchboard_a2a::{Part, SendResponse};
use switchboard_client::Conversation;
use switchboard_host::printer::Printer;

use crate::commands::calling::follow::{self, Form, Style};
use crate::commands::calling::interrupt::{INTERRUPTED, Interrupt, read_line};
use crate::commands::calling::printed_artifacts::PrintedArtifacts;
use crate::commands::calling::{AgentCall, Failure, message, sanitize};
use saved_conversation::SavedConversation;

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ChatOptions {
    /// File to keep the conversation in; if it exists, the conversation goes on where it was
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    #[command(flatten)]
    about: message::AboutFlags,
}

enum Turn {
    Say(String),
    Task,
    Done,
    Quit,
    Help,
    /// A command that there is not.
    Unknown(String),
    Nothing,
}

const HELP: &str = "/done ends the conversation, /quit leaves it, /task shows where it stands";

pub(crate) async fn run(call: AgentCall<'_>, []: [String; 0], options: ChatOptions) -> Result<(), Failure> {
    let printer = call.printer;
    let conversation = match &options.save {
        Some(file) => {
            // Fails before the first message if the conversation cannot be saved.
            SavedConversation::check_writable(file)?;
            SavedConversation::read(file, &call.client.peer().url)?
        }
        None => Conversation::default(),
    };
    let is_person = std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && !printer.is_json();
    let style =
        Style { form: if is_person { Form::Plain } else { Form::Labeled }, is_live: is_person, ..Style::quiet(&call) };
    let before = PrintedArtifacts::default();
    let mut chat = Chat { call, options: &options, conversation, printer, style, before, is_person };
    chat.talk().await
}

struct Chat<'a> {
    call: AgentCall<'a>,
    options: &'a ChatOptions,
    conversation: Conversation,
    printer: Printer,
    style: Style,
    /// The printed artifacts of the open task.
    before: PrintedArtifacts,
    /// Whether a person types; else standard input is a script.
    is_person: bool,
}

impl Chat<'_> {
    async fn talk(&mut self) -> Result<(), Failure> {
        if self.is_person {
            self.printer.note(HELP);
        }
        let mut interrupt = Interrupt::new();
        for number in 1_u64.. {
            if self.is_person {
                self.printer.piece("> ");
            }
            let line = tokio::select! {
                line = read_line() => line,
                () = interrupt.pressed() => {
                    self.printer.note("");
                    return Err(Failure::silent(INTERRUPTED));
                }
            };
            let line = match line {
                Ok(line) => line,
                Err(error) => {
                    let message = format!("line {number} of standard input cannot be said: {error}");
                    self.refuse(Failure::usage(message, "write it as text"))?;
                    continue;
                }
            };
            match turn(line.as_deref()) {
                Turn::Nothing => {}
                Turn::Help => self.printer.note(HELP),
                Turn::Unknown(command) => {
                    let message = format!("there is no command {}", sanitize::line(&command));
                    let next = format!("{HELP}; to say it to the agent, write /{}", sanitize::line(&command));
                    self.refuse(Failure::usage(message, next))?;
                }
                Turn::Quit => return Ok(()),
                Turn::Task => self.print_ids(),
                Turn::Done => {
                    self.conversation.forget();
                    if let Some(file) = &self.options.save {
                        SavedConversation::remove(file)?;
                    }
                    return Ok(());
                }
                Turn::Say(text) => {
                    if let Err(failure) = self.say(text).await {
                        self.refuse(failure)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A person can repeat the message; a script cannot.
    fn refuse(&self, failure: Failure) -> Result<(), Failure> {
        match self.is_person {
            true => {
                let _ = failure.print(self.printer);
                Ok(())
            }
            false => Err(failure),
        }
    }

    async fn say(&mut self, text: String) -> Result<(), Failure> {
        let Self { call, printer, conversation, style, before, .. } = self;
        let mut message = self.options.about.message(vec![Part::text(text)])?;
        let opening = async {
            let mut placed = message.clone();
            conversation.set_ids(&mut placed);
            match call.client.stream(&call.context, message::request(placed)).await {
                Err(error) if conversation.record_refusal(&error) => {
                    printer.note("the task that was open is gone; going on with a new one in the same conversation");
                    conversation.set_ids(&mut message);
                    call.client.stream(&call.context, message::request(message)).await
                }
                opened => opened,
            }
        };
        let (mut response, written) = follow::follow(call, opening, *style, before).await?;
        conversation.record_response(&response);
        if printer.is_json() {
            printer.json_line(&response);
        } else {
            let whole = response.clone();
            if let SendResponse::Task(task) = &mut response {
                before.remove_printed(task);
            }
            before.record(&whole);
            follow::print_turn(response, &written, *style);
        }
        if let Some(file) = &self.options.save {
            SavedConversation::write(file, &call.client.peer().url, conversation)?;
        }
        Ok(())
    }

    fn print_ids(&self) {
        let Conversation { context_id, task_id } = &self.conversation;
        let shown = |id: Option<&str>| id.map_or_else(|| "none".to_owned(), sanitize::line);
        self.printer.note(&format!("context: {}", shown(context_id.as_ref().map(|id| id.as_str()))));
        self.printer.note(&format!("task: {}", shown(task_id.as_ref().map(|id| id.as_str()))));
    }
}

fn turn(line: Option<&str>) -> Turn {
    match line.map(str::trim) {
        None | Some("/quit") => Turn::Quit,
        Some("") => Turn::Nothing,
        Some("/done") => Turn::Done,
        Some("/task") => Turn::Task,
        Some("/help") => Turn::Help,
        Some(text) => match text.strip_prefix('/') {
            // Twice is how to say what begins with one.
            Some(rest) if rest.starts_with('/') => Turn::Say(rest.to_owned()),
            Some(name) if !name.is_empty() && name.chars().all(char::is_alphabetic) => Turn::Unknown(text.to_owned()),
            _ => Turn::Say(text.to_owned()),
        },
    }
}
