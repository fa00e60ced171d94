//! The parts of a message, in the order in which they were typed: `--text`, `--file` and `--data`, each with the media type
//! that follows it. Derived flags forget their order, so these are read by hand.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use clap::error::{Error, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use switchboard_a2a::{Json, Part, PartContent};
use url::{Url, form_urlencoded};

use crate::commands::calling::{Failure, media_type};

const TEXT: &str = "text_part";
const FILE: &str = "file";
const DATA: &str = "data";
const MEDIA_TYPE: &str = "media_type";
const STANDARD_INPUT: &str = "-";

#[derive(Debug, Clone, Default)]
pub(super) struct PartFlags(Vec<TypedPart>);

#[derive(Debug, Clone)]
struct TypedPart {
    flag: &'static str,
    value: String,
    media_type: Option<String>,
}

impl PartFlags {
    /// The parts of a message: the words first, then what the flags say.
    pub(super) fn parts(&self, words: &[String]) -> Result<Vec<Part>, Failure> {
        let takes_input = |value: &str| value == STANDARD_INPUT;
        let words_take = matches!(words, [word] if takes_input(word));
        let flags_take = self.0.iter().filter(|typed| typed.flag != TEXT && takes_input(&typed.value)).count();
        if usize::from(words_take) + flags_take > 1 {
            return Err(Failure::usage("standard input can be read once only", "write - once"));
        }
        let mut parts = Vec::new();
        let text = if words_take { standard_text()? } else { words.join(" ") };
        if !text.trim().is_empty() {
            parts.push(Part::text(text));
        }
        for typed in &self.0 {
            let mut part = match typed.flag {
                TEXT => Part::text(typed.value.clone()),
                FILE => file_part(&typed.value)?,
                _ => Part::data(json(&typed.value)?),
            };
            if typed.media_type.is_some() {
                part.media_type.clone_from(&typed.media_type);
            }
            parts.push(part);
        }
        if parts.iter().all(|part| part.as_text().is_some_and(|text| text.trim().is_empty())) {
            let next = "write a text, or - to read it from standard input";
            let empty = if words_take {
                "standard input is empty: there is nothing to send"
            } else {
                "there is nothing to send"
            };
            return Err(Failure::usage(empty, next));
        }
        Ok(parts)
    }
}

impl Args for PartFlags {
    fn augment_args(command: Command) -> Command {
        let flag = |id: &'static str, long: &'static str, value: &'static str| {
            Arg::new(id).long(long).value_name(value).action(ArgAction::Append).help_heading("What to send")
        };
        let text = flag(TEXT, "text", "TEXT")
            .allow_hyphen_values(true)
            .help("Text to send as a part of its own; can be repeated, as all of these");
        let file = flag(FILE, "file", "PATH|URL|-")
            .visible_alias("file-part")
            .help("File to send along, or the URL of one that the agent fetches itself");
        let data = flag(DATA, "data", "JSON|PATH|-")
            .visible_alias("data-part")
            .allow_hyphen_values(true)
            .help("Structured data to send along: JSON, a file of JSON, or - for standard input");
        let media_type = flag(MEDIA_TYPE, "media-type", "TYPE").help(
            "Media type of the part before it, such as application/pdf; without it, it is told by the file's name",
        );
        command.arg(text).arg(file).arg(data).arg(media_type)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PartFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut typed = BTreeMap::new();
        for id in [TEXT, FILE, DATA, MEDIA_TYPE] {
            let values = matches.get_many::<String>(id).into_iter().flatten();
            for (place, value) in matches.indices_of(id).into_iter().flatten().zip(values) {
                typed.insert(place, (id, value.clone()));
            }
        }
        let mut parts: Vec<TypedPart> = Vec::new();
        for (flag, value) in typed.into_values() {
            if flag != MEDIA_TYPE {
                parts.push(TypedPart { flag, value, media_type: None });
                continue;
            }
            match parts.last_mut() {
                Some(part) if part.media_type.is_none() => part.media_type = Some(value),
                _ => {
                    let message = "--media-type says of what kind the part before it is: write it once after --text, --file or --data\n";
                    return Err(Error::raw(ErrorKind::ArgumentConflict, message));
                }
            }
        }
        Ok(Self(parts))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn file_part(file: &str) -> Result<Part, Failure> {
    if file.starts_with("https://") || file.starts_with("http://") {
        let filename = name_in(file);
        let media_type = filename.as_deref().and_then(|name| media_type::of_name(Path::new(name))).map(str::to_owned);
        return Ok(Part { content: PartContent::Url(file.to_owned()), metadata: None, filename, media_type });
    }
    let path = Path::new(file);
    let (content, filename) = match file {
        STANDARD_INPUT => (standard_input()?, None),
        _ => (read(path)?, path.file_name().map(|name| name.to_string_lossy().into_owned())),
    };
    let media_type = media_type::guess(path, &content).to_owned();
    Ok(Part { content: PartContent::Raw(content), metadata: None, filename, media_type: Some(media_type) })
}

/// The name of a file that is elsewhere: the end of its path, if it has one.
fn name_in(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let last = url.path_segments()?.next_back().filter(|last| !last.is_empty())?;
    // In a path these three stand for themselves.
    let last = last.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    let (name, _) = form_urlencoded::parse(last.as_bytes()).next()?;
    Some(name.into_owned())
}

fn json(typed: &str) -> Result<Json, Failure> {
    if typed == STANDARD_INPUT {
        let text = standard_text()?;
        return Json::parse(&text)
            .map_err(|error| Failure::usage(format!("standard input is not JSON: {error}"), "pipe one JSON value"));
    }
    let not_json = match Json::parse(typed) {
        Ok(json) => return Ok(json),
        Err(error) => error,
    };
    let path = Path::new(typed);
    if !path.is_file() {
        let message = format!("--data is neither JSON ({not_json}) nor a file");
        return Err(Failure::usage(message, "write JSON in single quotes, or the path of a file that holds it"));
    }
    let text = String::from_utf8_lossy(&read(path)?).into_owned();
    Json::parse(&text).map_err(|error| Failure::usage(format!("{typed} is not JSON: {error}"), "name a file of JSON"))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed =
        |error| Failure::usage(format!("{} cannot be read: {error}", path.display()), "name a file that exists");
    std::fs::read(path).map_err(failed)
}

fn standard_input() -> Result<Vec<u8>, Failure> {
    let mut content = Vec::new();
    let read = std::io::stdin().read_to_end(&mut content);
    read.map_err(|error| Failure::usage(format!("standard input cannot be read: {error}"), "pipe something into it"))?;
    Ok(content)
}

fn standard_text() -> Result<String, Failure> {
    let text = String::from_utf8(standard_input()?);
    let mut text = text.map_err(|_| Failure::usage("standard input is not text", "send it as a file with --file -"))?;
    // The line break at the end is the shell's and not the message's.
    text.truncate(text.trim_end_matches(['\r', '\n']).len());
    Ok(text)
}
