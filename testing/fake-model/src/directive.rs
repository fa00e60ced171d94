//! What a prompt may tell the model to do. Several directives in one prompt are followed in turn: first what stands in the
//! way (`status`, `cut`, `hang`), then one tool call per request, then what is said at the end.

use std::time::Duration;

use serde_json::Value;

/// One `[[…]]` of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Directive {
    /// `[[say TEXT]]`: answers with the text.
    Say(String),
    /// `[[bash COMMAND]]`: calls the agent's shell tool, and then says what it answered.
    Bash(String),
    /// `[[write PATH TEXT]]`: calls the agent's tool that writes a file, and then says what it answered.
    Write {
        /// Up to the first space.
        path: String,
        /// The rest, which becomes the file.
        text: String,
    },
    /// `[[mcp SERVER TOOL ARGUMENTS]]`: calls a tool of an MCP server of the agent's, and then says what it answered.
    Mcp {
        /// As the agent's configuration names it.
        server: String,
        /// As the server names it.
        tool: String,
        /// What it is called with: a JSON object.
        arguments: Value,
    },
    /// `[[think TEXT]]`: thinks this before it answers.
    Think(String),
    /// `[[slow PIECES MILLISECONDS]]`: answers with so many pieces, so far apart, each with the time at which it was sent.
    Slow {
        /// How many.
        pieces: u32,
        /// Before each of them.
        pause: Duration,
    },
    /// `[[hang]]`: takes the request and never answers.
    Hang,
    /// `[[status STATUS TIMES]]`: refuses that often, or always without a number.
    Status {
        /// An HTTP status from 400 to 599.
        status: u16,
        /// None is always.
        times: Option<u32>,
    },
    /// `[[cut TIMES]]`: the stream ends in the middle of the answer, that often, or always without a number.
    Cut {
        /// None is always.
        times: Option<u32>,
    },
    /// `[[history]]`: says how many prompts it was given, and the first of them.
    History,
}

/// A directive that is known but not written as it must be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read [[{directive}]]: it is written {usage}")]
pub struct Unreadable {
    /// As it came, without the brackets.
    pub directive: String,
    /// As it should be.
    pub usage: &'static str,
}

/// A text, taken apart.
pub(crate) struct Reading {
    /// In the order of the text.
    pub(crate) directives: Vec<Result<Directive, Unreadable>>,
    /// What is left of the text without them.
    pub(crate) rest: String,
}

/// Takes the directives out of a text. Brackets around anything that is no directive are part of the text.
pub(crate) fn read(text: &str) -> Reading {
    let mut directives = Vec::new();
    let mut rest = String::new();
    let mut left = text;
    while let Some((before, after)) = left.split_once("[[") {
        rest.push_str(before);
        let inside = closing(after).and_then(|end| after.get(..end));
        match inside.and_then(|inside| Some((inside, parse(inside)?))) {
            Some((inside, directive)) => {
                directives.push(directive);
                left = after.get(inside.len() + "]]".len()..).unwrap_or_default();
            }
            None => {
                rest.push_str("[[");
                left = after;
            }
        }
    }
    rest.push_str(left);
    Reading { directives, rest: rest.trim().to_owned() }
}

/// Where the brackets close that were opened before this text; a shell's own `[[ … ]]` may be in between.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 1_usize;
    let mut at = 0;
    loop {
        let left = text.get(at..)?;
        let close = left.find("]]")?;
        match left.find("[[").filter(|open| *open < close) {
            Some(open) => {
                depth += 1;
                at += open + "[[".len();
            }
            None if depth == 1 => return Some(at + close),
            None => {
                depth -= 1;
                at += close + "]]".len();
            }
        }
    }
}

/// None where the first word is that of no directive.
fn parse(inside: &str) -> Option<Result<Directive, Unreadable>> {
    let (word, rest) = inside.split_once(' ').unwrap_or((inside, ""));
    let (parsed, usage) = match word {
        "say" => (some_text(rest).map(Directive::Say), "[[say TEXT]]"),
        "bash" => (some_text(rest).map(Directive::Bash), "[[bash COMMAND]]"),
        "write" => (write(rest), "[[write PATH TEXT]]"),
        "mcp" => (mcp(rest), "[[mcp SERVER TOOL ARGUMENTS]], these as a JSON object"),
        "think" => (some_text(rest).map(Directive::Think), "[[think TEXT]]"),
        "slow" => (slow(rest), "[[slow PIECES MILLISECONDS]]"),
        "hang" => (nothing(rest).map(|()| Directive::Hang), "[[hang]]"),
        "status" => (status(rest), "[[status STATUS]] or [[status STATUS TIMES]], from 400 to 599"),
        "cut" => (times(rest).map(|times| Directive::Cut { times }), "[[cut]] or [[cut TIMES]]"),
        "history" => (nothing(rest).map(|()| Directive::History), "[[history]]"),
        _ => return None,
    };
    Some(parsed.ok_or_else(|| Unreadable { directive: inside.to_owned(), usage }))
}

fn some_text(rest: &str) -> Option<String> {
    (!rest.is_empty()).then(|| rest.to_owned())
}

fn nothing(rest: &str) -> Option<()> {
    rest.trim().is_empty().then_some(())
}

fn write(rest: &str) -> Option<Directive> {
    let (path, text) = rest.split_once(' ')?;
    (!path.is_empty()).then(|| Directive::Write { path: path.to_owned(), text: text.to_owned() })
}

fn mcp(rest: &str) -> Option<Directive> {
    let mut words = rest.splitn(3, ' ');
    let (server, tool, arguments) = (words.next()?.to_owned(), words.next()?.to_owned(), words.next()?);
    let arguments = serde_json::from_str(arguments).ok().filter(Value::is_object)?;
    Some(Directive::Mcp { server, tool, arguments })
}

fn slow(rest: &str) -> Option<Directive> {
    let (pieces, pause) = rest.trim().split_once(' ')?;
    Some(Directive::Slow { pieces: pieces.parse().ok()?, pause: Duration::from_millis(pause.parse().ok()?) })
}

fn status(rest: &str) -> Option<Directive> {
    let (status, rest) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
    let status = status.parse().ok().filter(|status| (400..600).contains(status))?;
    Some(Directive::Status { status, times: times(rest)? })
}

/// The outer None is a number that cannot be read, the inner one no number.
fn times(rest: &str) -> Option<Option<u32>> {
    match rest.trim() {
        "" => Some(None),
        number => number.parse().ok().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directives(text: &str) -> Vec<Directive> {
        read(text).directives.into_iter().map(|directive| directive.unwrap()).collect()
    }

    #[test]
    fn each_directive_is_read() {
        let slow = Directive::Slow { pieces: 3, pause: Duration::from_millis(20) };
        let arguments = serde_json::json!({ "text": "a b" });
        let mcp = Directive::Mcp { server: "notes".to_owned(), tool: "add".to_owned(), arguments };
        for (text, expected) in [
            ("[[say Hello you]]", Directive::Say("Hello you".to_owned())),
            ("[[bash echo a  b]]", Directive::Bash("echo a  b".to_owned())),
            ("[[write a/b.txt two words]]", Directive::Write { path: "a/b.txt".into(), text: "two words".into() }),
            (r#"[[mcp notes add {"text": "a b"}]]"#, mcp),
            ("[[think hm]]", Directive::Think("hm".to_owned())),
            ("[[slow 3 20]]", slow),
            ("[[hang]]", Directive::Hang),
            ("[[status 429 2]]", Directive::Status { status: 429, times: Some(2) }),
            ("[[status 500]]", Directive::Status { status: 500, times: None }),
            ("[[cut]]", Directive::Cut { times: None }),
            ("[[cut 1]]", Directive::Cut { times: Some(1) }),
            ("[[history]]", Directive::History),
        ] {
            assert_eq!(directives(text), [expected], "{text}");
        }
    }

    #[test]
    fn several_are_read_in_order_and_the_rest_is_left() {
        let reading = read("First [[bash true]] then [[say done]] and end.");
        assert_eq!(reading.directives.len(), 2);
        assert_eq!(reading.rest, "First  then  and end.");
    }

    #[test]
    fn brackets_of_the_shell_belong_to_the_command() {
        let command = "if [[ -f a ]]; then echo [[x]]; fi";
        assert_eq!(directives(&format!("[[bash {command}]]")), [Directive::Bash(command.to_owned())]);
    }

    #[test]
    fn other_brackets_are_text() {
        for text in ["see [[a page]]", "[[say", "[[", "]] [[ ]]", "[[ [[ [[", "[[sayTEXT]]"] {
            let reading = read(text);
            assert_eq!((reading.directives, reading.rest.as_str()), (vec![], text));
        }
    }

    #[test]
    fn a_directive_inside_brackets_that_are_text_is_read() {
        assert_eq!(directives("[[note [[say hi]]"), [Directive::Say("hi".to_owned())]);
    }

    #[test]
    fn a_directive_that_is_written_wrongly_says_how_to() {
        for (text, usage) in [
            ("[[say]]", "[[say TEXT]]"),
            ("[[write a]]", "[[write PATH TEXT]]"),
            ("[[mcp notes add 3]]", "[[mcp SERVER TOOL ARGUMENTS]], these as a JSON object"),
            ("[[slow 3]]", "[[slow PIECES MILLISECONDS]]"),
            ("[[hang 3]]", "[[hang]]"),
            ("[[status 200]]", "[[status STATUS]] or [[status STATUS TIMES]], from 400 to 599"),
            ("[[status 429 often]]", "[[status STATUS]] or [[status STATUS TIMES]], from 400 to 599"),
            ("[[cut x]]", "[[cut]] or [[cut TIMES]]"),
        ] {
            let read = read(text).directives;
            let directive = text.trim_matches(['[', ']']).to_owned();
            assert_eq!(read, [Err(Unreadable { directive, usage })], "{text}");
        }
    }
}
