//! What was said before, for a program that has no session of it: it has lost that, or another program had it.

use switchboard_a2a::{Message, Role};
use switchboard_adapters::cut;
use switchboard_engine::TaskHandle;

/// So many of the newest messages are looked at.
const MESSAGES: usize = 100;
/// Characters of one message, and bytes of all of them: some 4,000 tokens.
const MESSAGE_CHARACTERS: usize = 2_000;
const BYTES: usize = 16 << 10;

/// A prompt with what was said in its conversation before the `current` message, in earlier tasks and in this one.
pub(super) async fn with(task: &TaskHandle, current: &Message, prompt: &str) -> String {
    let mut said = task.context_history(MESSAGES).await;
    let snapshot = task.snapshot();
    said.extend(snapshot.history.iter().take_while(|message| message.message_id != current.message_id).cloned());
    before(&said, prompt)
}

/// A prompt with what was said before it, newest messages first to be kept.
fn before(said: &[Message], prompt: &str) -> String {
    let mut kept = Vec::new();
    let mut bytes = 0;
    for message in said.iter().rev() {
        let text = message.joined_text();
        if text.trim().is_empty() {
            continue;
        }
        let who = if message.role == Role::Agent { "You" } else { "User" };
        let line = format!("{who}: {}", cut(text.trim(), MESSAGE_CHARACTERS));
        bytes += line.len();
        if bytes > BYTES {
            break;
        }
        kept.push(line);
    }
    if kept.is_empty() {
        return prompt.to_owned();
    }
    kept.reverse();
    format!("Earlier in this conversation:\n\n{}\n\nThe new message:\n\n{prompt}", kept.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_messages_are_kept_and_the_prompt_is_whole() {
        let said: Vec<Message> = (0..100)
            .flat_map(|number| {
                let question = Message::text(Role::User, format!("question {number} {}", "ö".repeat(3_000)));
                [question, Message::text(Role::Agent, format!("answer {number}"))]
            })
            .collect();
        let long = "x".repeat(50_000);
        let prompt = before(&said, &long);
        assert!(prompt.ends_with(&long));
        assert!(prompt.contains("You: answer 99") && prompt.contains("User: question 99"));
        assert!(!prompt.contains("question 5 "));
        assert!(prompt.len() < 50_000 + BYTES + 200);
        assert_eq!(before(&[], "hello"), "hello");
    }
}
