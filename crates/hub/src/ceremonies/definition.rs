//! What a ceremony is: when it is due, and what is done then. Files and requests are read by the same reader, which finds every
//! problem before any is told.

use std::time::Duration;

use serde_json::{Map, Value, json};
use switchboard_host::config::ceremonies::MissedRuns;
use switchboard_host::config::time_span::TimeSpan;
use switchboard_host::config::value::Scalar as _;

use super::cron::CronError;
use super::notifier::{Notifier, read_notifiers};
use super::schedule::{Schedule, ScheduleError};
use crate::definition_files::FileDefinition;
use crate::definition_reader::{DefinitionReader, Problem, kind, quoted};
use crate::routes::Template;
use crate::routing::ALL;
use crate::tasks::fanout_plan::FanoutPolicy;
use crate::topics;

/// The longest id.
pub(crate) const ID_BYTES: usize = 128;
/// The longest description.
const DESCRIPTION_BYTES: usize = 2 << 10;
/// The longest content as it is written, and the longest payload of what is published.
const CONTENT_BYTES: usize = 16 << 10;
/// What a run may take where its ceremony does not say.
const TIMEOUT: TimeSpan = TimeSpan::from_minutes(10);
/// The values that content may have.
pub(super) const VALUES: [&str; 3] = ["id", "name", "scheduledAt"];
/// All members, in the order in which they are explained.
const MEMBERS: [&str; 18] = [
    "id",
    "name",
    "description",
    "schedule",
    "at",
    "timezone",
    "skill",
    "targets",
    "fanout",
    "content",
    "publish",
    "notify",
    "notifyChannel",
    "timeout",
    "missed",
    "overlap",
    "jitter",
    "enabled",
];

/// A ceremony.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub(crate) id: Box<str>,
    /// What people call it; its id if it does not say.
    pub(crate) name: Option<Box<str>>,
    pub(crate) description: Option<Box<str>>,
    /// The expression or the time as it was written.
    when: When,
    timezone: Option<Box<str>>,
    pub(crate) schedule: Schedule,
    pub(crate) skill: Option<Box<str>>,
    pub(crate) targets: Box<[String]>,
    pub(crate) fanout: Option<Box<str>>,
    pub(crate) content: Option<Box<str>>,
    pub(crate) publish: Option<Box<Publish>>,
    pub(crate) notify: Box<[Notifier]>,
    pub(crate) notify_channel: Option<Box<str>>,
    timeout: Option<TimeSpan>,
    pub(crate) missed: Option<MissedRuns>,
    pub(crate) overlap: Overlap,
    jitter: Option<TimeSpan>,
    pub(crate) enabled: bool,
}

/// How a schedule was written.
#[derive(Clone, Debug, PartialEq, Eq)]
enum When {
    Cron(Box<str>),
    At(Box<str>),
}

/// A line of the journal that is written at each run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Publish {
    pub(crate) topic: String,
    pub(crate) payload: Value,
}

/// What becomes of a run that is due while another one goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Overlap {
    /// It is left out.
    #[default]
    Skip,
    /// It waits, and further ones are left out.
    Queue,
    Parallel,
}

const OVERLAPS: [(&str, Overlap); 3] =
    [("skip", Overlap::Skip), ("queue", Overlap::Queue), ("parallel", Overlap::Parallel)];
const MISSED: [(&str, MissedRuns); 3] =
    [("run_once", MissedRuns::RunOnce), ("skip", MissedRuns::Skip), ("catch_up", MissedRuns::CatchUp)];

impl Definition {
    /// Reads one. `id` is the one that it has if it does not say.
    pub(crate) fn read(given: &Value, id: Option<&str>) -> Result<Self, Vec<Problem>> {
        let mut reader = DefinitionReader::default();
        let Some(members) = reader.object(given, "", &MEMBERS) else {
            return Err(reader.problems);
        };
        let id = read_id(&mut reader, members, id);
        let text = |text: Option<&str>| text.map(Box::from);
        let timezone = reader.text(members, ("", "timezone"), "a time zone such as Europe/Berlin");
        let when = read_when(&mut reader, members, timezone.unwrap_or("UTC"));
        let skill = text(reader.text(members, ("", "skill"), "the id of a skill"));
        let targets = reader.targets(members, "");
        let publish = read_publish(&mut reader, members);
        if skill.is_none() && targets.is_empty() && publish.is_none() && reader.problems.is_empty() {
            reader.add(
                "skill",
                "is missing, as are targets and publish",
                "a skill, targets or both, or what is published",
            );
        }
        let fanout = read_fanout(&mut reader, members);
        let content = read_content(&mut reader, members);
        let notify = read_notifiers(&mut reader, members.get("notify").unwrap_or(&Value::Null));
        let definition = Self {
            id: id.into(),
            name: text(reader.text(members, ("", "name"), "what people call it")),
            description: text(reader.text_within(members, ("", "description"), "a text", DESCRIPTION_BYTES)),
            when: when.as_ref().map_or_else(|| When::At("".into()), |(when, _)| when.clone()),
            timezone: text(timezone),
            schedule: when.map_or(Schedule::Once(switchboard_a2a::Timestamp(0)), |(_, schedule)| schedule),
            skill,
            targets: targets.into(),
            fanout,
            content,
            publish,
            notify: notify.into(),
            notify_channel: text(reader.text(members, ("", "notifyChannel"), "the name of a channel")),
            timeout: read_span(&mut reader, members, "timeout").filter(|span| !span.duration().is_zero()),
            missed: reader.word(members, "missed", &MISSED),
            overlap: reader.word(members, "overlap", &OVERLAPS).unwrap_or_default(),
            jitter: read_span(&mut reader, members, "jitter").filter(|span| !span.duration().is_zero()),
            enabled: reader.flag(members, "enabled", true),
        };
        if reader.problems.is_empty() { Ok(definition) } else { Err(reader.problems) }
    }

    /// As it was written, without what is as usual.
    pub(crate) fn written(&self) -> Value {
        let mut written = json!({ "id": self.id });
        let mut put = |member: &str, value: Option<Value>| {
            if let Some(value) = value {
                written[member] = value;
            }
        };
        let text = |text: &Option<Box<str>>| text.as_deref().map(Value::from);
        put("name", text(&self.name));
        put("description", text(&self.description));
        match &self.when {
            When::Cron(expression) => put("schedule", Some((&**expression).into())),
            When::At(at) => put("at", Some((&**at).into())),
        }
        put("timezone", text(&self.timezone));
        put("skill", text(&self.skill));
        put("targets", (!self.targets.is_empty()).then(|| json!(self.targets)));
        put("fanout", text(&self.fanout));
        put("content", text(&self.content));
        put("publish", self.publish.as_ref().map(|it| json!({ "topic": it.topic, "payload": it.payload })));
        let notify: Vec<Value> = self.notify.iter().map(Notifier::written).collect();
        put("notify", (!notify.is_empty()).then(|| notify.into()));
        put("notifyChannel", text(&self.notify_channel));
        put("timeout", self.timeout.map(|span| span.to_string().into()));
        put("missed", self.missed.and_then(|missed| word_of(&MISSED, missed)));
        put("overlap", word_of(&OVERLAPS, self.overlap).filter(|_| self.overlap != Overlap::default()));
        put("jitter", self.jitter.map(|span| span.to_string().into()));
        written["enabled"] = self.enabled.into();
        written
    }

    /// What people call it.
    pub(crate) fn title(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }

    /// What its next run follows from: a change of anything else leaves that as it is.
    pub(crate) fn timing(&self) -> String {
        let (how, text) = match &self.when {
            When::Cron(text) => ("cron", text),
            When::At(text) => ("at", text),
        };
        let jitter = self.jitter.map(|span| span.to_string());
        json!([how, text, self.timezone, jitter, self.enabled]).to_string()
    }

    /// The agents as routing is told them. A skill without targets is for all who have it.
    pub(crate) fn asked_targets(&self) -> Vec<String> {
        match self.targets.is_empty() {
            true => vec![ALL.to_owned()],
            false => self.targets.to_vec(),
        }
    }

    /// Whether a message is sent, beside or in place of what is published.
    pub(crate) fn sends(&self) -> bool {
        self.skill.is_some() || !self.targets.is_empty()
    }

    /// How long a run may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(TIMEOUT).duration()
    }

    /// By how much a run may be put off.
    pub(crate) fn jitter(&self) -> Duration {
        self.jitter.unwrap_or(TimeSpan::ZERO).duration()
    }
}

impl FileDefinition for Definition {
    fn read(given: &Value, name: Option<&str>) -> Result<Self, Vec<Problem>> {
        Self::read(given, name)
    }

    fn name(&self) -> &str {
        &self.id
    }
}

fn word_of<T: Copy + PartialEq>(words: &[(&str, T)], value: T) -> Option<Value> {
    words.iter().find(|(_, known)| *known == value).map(|(word, _)| Value::from(*word))
}

/// Whether a text may be an id.
pub(crate) fn is_id(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    // One of dots alone is no segment of a path.
    (1..=ID_BYTES).contains(&text.len()) && text.bytes().all(is_word) && !text.bytes().all(|byte| byte == b'.')
}

fn read_id(reader: &mut DefinitionReader, members: &Map<String, Value>, usual: Option<&str>) -> String {
    let right = format!("1 to {ID_BYTES} letters, digits, -, _ and .");
    let given = reader.text(members, ("", "id"), &right).or(usual.filter(|_| !members.contains_key("id")));
    let Some(id) = given else {
        if !reader.has_problem("id") {
            reader.add("id", "is missing", right);
        }
        return String::new();
    };
    if !is_id(id) {
        reader.add("id", format!("is {:?}", quoted(id)), right);
    }
    id.to_owned()
}

fn read_when(reader: &mut DefinitionReader, members: &Map<String, Value>, zone: &str) -> Option<(When, Schedule)> {
    let expression = reader.text(members, ("", "schedule"), "a cron expression such as 30 9 * * MON-FRI");
    let at = reader.text(members, ("", "at"), "a time such as 2027-01-31T09:00");
    match (expression, at) {
        (Some(expression), None) => match Schedule::cron(expression, zone) {
            Ok(schedule) => Some((When::Cron(expression.into()), schedule)),
            Err(error) => {
                let (key, wrong) = problem_of(&error, "schedule");
                let right = match error {
                    ScheduleError::UnknownZone(_) => "a zone such as Europe/Berlin",
                    _ => "five fields, or six with seconds in front, such as 30 9 * * MON-FRI",
                };
                reader.add(key, wrong, right);
                None
            }
        },
        (None, Some(at)) => match Schedule::once(at, zone) {
            Ok(schedule) => Some((When::At(at.into()), schedule)),
            Err(error) => {
                let (key, wrong) = problem_of(&error, "at");
                let right = match error {
                    ScheduleError::UnknownZone(_) => "a zone such as Europe/Berlin",
                    _ => "a time such as 2027-01-31T09:00:00Z, or 2027-01-31T09:00 in its zone",
                };
                reader.add(key, wrong, right);
                None
            }
        },
        (Some(_), Some(_)) => {
            reader.add("at", "is there beside schedule", "one of the two");
            None
        }
        (None, None) => {
            if !reader.has_problem("schedule") && !reader.has_problem("at") {
                reader.add("schedule", "is missing, as is at", "a cron expression, or at with a time");
            }
            None
        }
    }
}

/// The member that an error is about, and what is wrong with it.
pub(crate) fn problem_of(error: &ScheduleError, member: &'static str) -> (&'static str, String) {
    match error {
        ScheduleError::UnknownZone(zone) => {
            ("timezone", format!("is {zone:?}, which is no time zone of the IANA database"))
        }
        ScheduleError::NoTime(text) => (member, format!("is {text:?}")),
        ScheduleError::Cron(CronError::Field { field, problem }) => (member, format!("has a wrong {field}: {problem}")),
        ScheduleError::Cron(error) => (member, error.to_string()),
    }
}

fn read_publish(reader: &mut DefinitionReader, members: &Map<String, Value>) -> Option<Box<Publish>> {
    let given = members.get("publish").filter(|given| !given.is_null())?;
    let members = reader.object(given, "publish", &["topic", "payload"])?;
    let right = "words of letters, digits, - and _ with dots between, that no part of this server writes";
    let topic = reader.text(members, ("publish", "topic"), right).unwrap_or_default();
    if !reader.has_problem("publish.topic") && (!topics::is_topic(topic) || topics::is_reserved(topic)) {
        reader.add("publish.topic", format!("is {:?}", quoted(topic)), right);
    }
    let payload = match members.get("payload") {
        None | Some(Value::Null) => json!({}),
        Some(Value::Object(object)) => Value::Object(object.clone()),
        Some(other) => {
            reader.add("publish.payload", format!("is {}", kind(other)), "an object");
            json!({})
        }
    };
    let bytes = payload.to_string().len();
    if bytes > CONTENT_BYTES {
        reader.add("publish.payload", format!("has {bytes} bytes"), format!("at most {CONTENT_BYTES}"));
    }
    Some(Box::new(Publish { topic: topic.to_owned(), payload }))
}

fn read_fanout(reader: &mut DefinitionReader, members: &Map<String, Value>) -> Option<Box<str>> {
    let right = "all, first, quorum, quorum:N or failover";
    let given = reader.text(members, ("", "fanout"), right)?;
    if given.parse::<FanoutPolicy>().is_err() {
        reader.add("fanout", format!("is {:?}", quoted(given)), right);
    }
    Some(given.into())
}

fn read_content(reader: &mut DefinitionReader, members: &Map<String, Value>) -> Option<Box<str>> {
    let right = "the text of the message, with {{ id }}, {{ name }} and {{ scheduledAt }} in it";
    let given = reader.text_within(members, ("", "content"), right, CONTENT_BYTES)?;
    if let Err(error) = Template::parse(given, &VALUES) {
        reader.add("content", error.wrong, error.right);
    }
    Some(given.into())
}

fn read_span(reader: &mut DefinitionReader, members: &Map<String, Value>, name: &str) -> Option<TimeSpan> {
    let given = reader.text(members, ("", name), TimeSpan::WRITE)?;
    match TimeSpan::from_text(given) {
        Ok(span) => Some(span),
        Err(_) => {
            reader.add(name, format!("is {:?}", quoted(given)), TimeSpan::WRITE);
            None
        }
    }
}
