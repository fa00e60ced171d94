//! The prompt of a message for a program that reads only text: its texts, and its data and text files as fenced blocks.

use switchboard_a2a::{Message, Part, PartContent};

/// The text for the program.
pub(super) fn message_text(message: &Message) -> Result<String, String> {
    let parts: Vec<String> = message.parts.iter().map(part_text).collect::<Result<_, _>>()?;
    let is_empty = message.joined_text().trim().is_empty();
    if is_empty { Err("the message has no text: say what to do".to_owned()) } else { Ok(parts.join("\n")) }
}

fn part_text(part: &Part) -> Result<String, String> {
    let name = part.filename.as_deref().unwrap_or("a file without a name");
    match &part.content {
        PartContent::Text(text) => Ok(text.clone()),
        PartContent::Data(data) => Ok(block("Data that came with the message", "json", data.as_str())),
        PartContent::Raw(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(block(&format!("A file that came with the message, {name}"), "", text)),
            Err(_) => {
                Err(format!("{name} is no text, and this agent reads only text: send text, or a path it can read"))
            }
        },
        PartContent::Url(_) => {
            Err("this agent fetches no files: send the text itself, or say in words where it is".to_owned())
        }
    }
}

/// A block that no line of the text ends before its time.
fn block(title: &str, kind: &str, text: &str) -> String {
    let longest = text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("\n{title}:\n{fence}{kind}\n{text}\n{fence}")
}
