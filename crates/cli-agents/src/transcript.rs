//! The transcript of a conversation, for a program that has no session of it: it was lost, or another program had it.

use switchboard_a2a::{Message, Role};
use switchboard_engine::TaskHandle;

use crate::adapters::cut;

/// So many of the newest messages are looked at.
const MESSAGES: usize = 100;
/// Characters of one message, and bytes of all of them: some 4,000 tokens.
const MESSAGE_CHARACTERS: usize = 2_000;
const BYTES: usize = 16 << 10;
/// What begins every line of a message but the first. A line that begins with a role is always a message.
const INDENT: &str = "    ";
/// Whatever a program or its model may take for the end of a line.
const LINE_BREAKS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// A prompt with the transcript of its conversation before the `current` message, of earlier tasks and of this one.
pub(super) async fn with_transcript(task: &TaskHandle, current: &Message, prompt: &str) -> String {
    let mut messages = task.context_history(MESSAGES).await;
    let snapshot = task.snapshot();
    messages.extend(snapshot.history.iter().take_while(|message| message.message_id != current.message_id).cloned());
    prepend(&messages, prompt)
}

/// A prompt with a transcript before it; the newest messages are kept.
fn prepend(messages: &[Message], prompt: &str) -> String {
    let mut kept = Vec::new();
    let mut bytes = 0;
    for message in messages.iter().rev() {
        let text = message.joined_text();
        if text.trim().is_empty() {
            continue;
        }
        let who = if message.role == Role::Agent { "You" } else { "User" };
        let message = format!("{who}: {}", indented(&cut(text.trim(), MESSAGE_CHARACTERS)));
        bytes += message.len();
        if bytes > BYTES {
            break;
        }
        kept.push(message);
    }
    if kept.is_empty() {
        return prompt.to_owned();
    }
    kept.reverse();
    format!("Earlier in this conversation:\n\n{}\n\nThe new message:\n\n{prompt}", kept.join("\n\n"))
}

/// A text whose lines cannot be taken for messages of their own.
fn indented(text: &str) -> String {
    text.replace("\r\n", "\n").replace(LINE_BREAKS, &format!("\n{INDENT}"))
}
