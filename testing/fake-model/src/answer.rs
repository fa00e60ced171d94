//! What the model answers to a conversation: the directives of the newest prompt, followed one request at a time.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::conversation::{Conversation, Prompt};
use crate::directive::{self, Directive};
use crate::tools::{Call, Task};
use crate::wire::Wire;

/// What becomes of a request.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    Reply(Reply),
    Refuse { status: u16, message: String },
    Hang,
}

/// What the model says, in this order.
#[derive(Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) thought: Option<String>,
    pub(crate) then: Then,
    /// Whether the stream ends before the answer does.
    pub(crate) is_cut: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Then {
    Say(Pieces),
    Call(Call),
}

/// A text that is sent in pieces.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pieces {
    Halves(String),
    Slow { pieces: u32, pause: Duration },
}

impl Pieces {
    pub(crate) fn count(&self) -> u32 {
        match self {
            Self::Halves(_) => 2,
            Self::Slow { pieces, .. } => *pieces,
        }
    }

    pub(crate) fn pause(&self) -> Duration {
        match self {
            Self::Halves(_) => Duration::ZERO,
            Self::Slow { pause, .. } => *pause,
        }
    }

    /// The piece with this number, counted from 0, as it is at the moment it is sent.
    pub(crate) fn piece(&self, number: u32) -> String {
        match self {
            Self::Halves(text) => {
                let middle = text.floor_char_boundary(text.len() / 2);
                let (first, second) = text.split_at(middle);
                if number == 0 { first.to_owned() } else { second.to_owned() }
            }
            Self::Slow { .. } => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                format!("piece {} at {}\n", number + 1, since.as_micros())
            }
        }
    }

    /// All of it at once.
    pub(crate) fn whole(&self) -> String {
        (0..self.count()).map(|number| self.piece(number)).collect()
    }
}

/// How often a prompt was refused or cut already, by the wire, the prompt and its place in the conversation.
pub(crate) type Tries = HashMap<(Wire, usize, String), u32>;

/// What a side question, for a title and the like, is answered.
const SIDE: &str = "Fake title";

pub(crate) fn answer(wire: Wire, conversation: &Conversation, tries: &mut Tries) -> Answer {
    if conversation.is_side {
        let text = if conversation.wants_json { format!("{{\"title\":\"{SIDE}\"}}") } else { SIDE.to_owned() };
        return reply(Then::Say(Pieces::Halves(text)));
    }
    let prompt = conversation.prompt();
    let reading = directive::read(prompt.text);
    let mut directives = Vec::new();
    for directive in reading.directives {
        match directive {
            Ok(directive) => directives.push(directive),
            Err(unreadable) => return Answer::Refuse { status: 400, message: unreadable.to_string() },
        }
    }
    let tried = tries.entry((wire, conversation.prompts().count(), prompt.text.to_owned())).or_default();
    let is_cut = match in_the_way(&directives, conversation.is_streamed, tried) {
        Some(InTheWay::Answer(answer)) => return answer,
        Some(InTheWay::Cut) => true,
        None => false,
    };
    let thought = directives.iter().find_map(|directive| match directive {
        Directive::Think(thought) if prompt.results.is_empty() => Some(thought.clone()),
        _ => None,
    });
    let then = match tasks(&directives).nth(prompt.results.len()) {
        Some(task) => Then::Call(task.call(wire, &conversation.tools)),
        None => Then::Say(last_words(&directives, &reading.rest, &prompt, conversation)),
    };
    Answer::Reply(Reply { thought, then, is_cut })
}

fn reply(then: Then) -> Answer {
    Answer::Reply(Reply { thought: None, then, is_cut: false })
}

enum InTheWay {
    Answer(Answer),
    Cut,
}

/// What keeps the prompt from being answered this time. Each directive takes its share of the tries, in order.
fn in_the_way(directives: &[Directive], is_streamed: bool, tried: &mut u32) -> Option<InTheWay> {
    let mut spent = 0_u32;
    for directive in directives {
        let (times, found) = match directive {
            Directive::Hang => return Some(InTheWay::Answer(Answer::Hang)),
            Directive::Status { status, times } => {
                let refusal = Answer::Refuse { status: *status, message: format!("fake {status}") };
                (times, InTheWay::Answer(refusal))
            }
            // There is no stream to cut in an answer that comes whole.
            Directive::Cut { times } if is_streamed => (times, InTheWay::Cut),
            _ => continue,
        };
        spent = spent.saturating_add(times.unwrap_or(u32::MAX));
        if *tried < spent {
            *tried += 1;
            return Some(found);
        }
    }
    None
}

fn tasks(directives: &[Directive]) -> impl Iterator<Item = Task> {
    directives.iter().filter_map(|directive| match directive {
        Directive::Bash(command) => Some(Task::Shell { command: command.clone() }),
        Directive::Write { path, text } => Some(Task::Write { path: path.clone(), text: text.clone() }),
        Directive::Mcp { server, tool, arguments } => {
            let (server, tool, arguments) = (server.clone(), tool.clone(), arguments.clone());
            Some(Task::Mcp { server, tool, arguments })
        }
        _ => None,
    })
}

/// What is said when there is nothing left to call.
fn last_words(directives: &[Directive], rest: &str, prompt: &Prompt<'_>, conversation: &Conversation) -> Pieces {
    let told = directives.iter().find_map(|directive| match directive {
        Directive::Say(text) => Some(Pieces::Halves(text.clone())),
        Directive::Slow { pieces, pause } => Some(Pieces::Slow { pieces: *pieces, pause: *pause }),
        Directive::History => Some(Pieces::Halves(history(conversation))),
        _ => None,
    });
    told.unwrap_or_else(|| match prompt.results.last() {
        Some(result) => Pieces::Halves(format!("tool said: {}", beginning(result))),
        None => Pieces::Halves(format!("echo: {rest}")),
    })
}

fn history(conversation: &Conversation) -> String {
    let first = conversation.prompts().next().unwrap_or_default();
    format!("history: {} user messages, first: {first}", conversation.prompts().count())
}

/// Enough of a tool's answer to recognise it. Agents add reminders to some of them, which no tool has said.
fn beginning(result: &str) -> &str {
    const LONGEST: usize = 4_000;
    let result = result.split("<system-reminder>").next().unwrap_or(result).trim();
    result.get(..result.floor_char_boundary(LONGEST)).unwrap_or(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Turn;

    fn asked(turns: Vec<Turn>) -> Conversation {
        Conversation { turns, is_streamed: true, tools: vec!["Bash".to_owned()], ..Conversation::default() }
    }

    fn user(text: &str) -> Turn {
        Turn::User(vec![text.to_owned()])
    }

    fn said(conversation: &Conversation, tries: &mut Tries) -> String {
        match answer(Wire::AnthropicMessages, conversation, tries) {
            Answer::Reply(Reply { then: Then::Say(pieces), .. }) => pieces.whole(),
            other => format!("{other:?}"),
        }
    }

    fn once(turns: Vec<Turn>) -> String {
        said(&asked(turns), &mut Tries::new())
    }

    #[test]
    fn without_a_directive_the_prompt_is_echoed() {
        assert_eq!(once(vec![user("Grüße")]), "echo: Grüße");
        assert_eq!(once(vec![user("[[think hm]] What?")]), "echo: What?");
    }

    #[test]
    fn tools_are_called_one_after_the_other_and_the_last_is_told_of() {
        let mut turns = vec![user("[[bash one]] [[bash two]]")];
        for command in ["one", "two"] {
            let Answer::Reply(Reply { then: Then::Call(call), .. }) =
                answer(Wire::AnthropicMessages, &asked(turns.clone()), &mut Tries::new())
            else {
                panic!("no call for {command}");
            };
            assert_eq!((call.name.as_str(), call.arguments["command"].as_str()), ("Bash", Some(command)));
            turns.extend([Turn::Assistant, Turn::Tool(format!("{command} ran\n\n<system-reminder>tokens"))]);
        }
        assert_eq!(once(turns), "tool said: two ran");
    }

    #[test]
    fn what_to_say_counts_more_than_what_the_tool_said() {
        assert_eq!(once(vec![user("[[bash x]] [[say done]]"), Turn::Assistant, Turn::Tool("y".into())]), "done");
    }

    #[test]
    fn a_status_comes_so_often_and_then_the_next_directive() {
        let (mut tries, asked) = (Tries::new(), asked(vec![user("[[status 429 2]] [[cut 1]] [[say ok]]")]));
        let mut next = || answer(Wire::AnthropicMessages, &asked, &mut tries);
        let refused = Answer::Refuse { status: 429, message: "fake 429".to_owned() };
        assert_eq!([next(), next()], [refused, Answer::Refuse { status: 429, message: "fake 429".to_owned() }]);
        let ok = |is_cut| {
            let then = Then::Say(Pieces::Halves("ok".to_owned()));
            Answer::Reply(Reply { thought: None, then, is_cut })
        };
        assert_eq!([next(), next(), next()], [ok(true), ok(false), ok(false)]);
    }

    #[test]
    fn the_same_prompt_later_in_the_conversation_is_refused_again() {
        let mut tries = Tries::new();
        let prompt = "[[status 500 1]]";
        for turns in [vec![user(prompt)], vec![user(prompt), Turn::Assistant, user(prompt)]] {
            assert!(said(&asked(turns.clone()), &mut tries).contains("Refuse"));
            assert_eq!(said(&asked(turns), &mut tries), "echo: ");
        }
    }

    #[test]
    fn an_answer_that_comes_whole_is_not_cut() {
        let whole = Conversation { is_streamed: false, ..asked(vec![user("[[cut]] [[say ok]]")]) };
        let answer = answer(Wire::AnthropicMessages, &whole, &mut Tries::new());
        assert!(matches!(answer, Answer::Reply(Reply { is_cut: false, .. })), "{answer:?}");
    }

    #[test]
    fn history_tells_what_was_given() {
        let turns = vec![user("<env>"), user("First."), Turn::Assistant, user("[[history]]")];
        assert_eq!(once(turns), "history: 2 user messages, first: First.");
    }

    #[test]
    fn side_questions_follow_no_directive() {
        let side = Conversation { is_side: true, ..asked(vec![user("[[hang]]")]) };
        assert_eq!(said(&side, &mut Tries::new()), "Fake title");
        let side = Conversation { wants_json: true, ..side };
        assert_eq!(said(&side, &mut Tries::new()), "{\"title\":\"Fake title\"}");
    }

    #[test]
    fn a_directive_that_cannot_be_read_is_refused_with_the_reason() {
        let told = once(vec![user("[[slow fast]]")]);
        assert!(told.contains("400") && told.contains("[[slow PIECES MILLISECONDS]]"), "{told}");
    }

    #[test]
    fn a_text_is_halved_between_its_letters() {
        let pieces = Pieces::Halves("äöü".to_owned());
        assert_eq!([pieces.piece(0), pieces.piece(1)], ["ä", "öü"]);
    }

    #[test]
    fn a_slow_piece_names_the_moment_it_was_sent() {
        let pieces = Pieces::Slow { pieces: 2, pause: Duration::ZERO };
        let whole = pieces.whole();
        let lines: Vec<_> = whole.lines().collect();
        assert!(lines.len() == 2 && lines[1].starts_with("piece 2 at 1"), "{whole}");
    }
}
