//! Who is told of the end of a run: the server's standard output, an agent, or an address. Addresses are secrets, so only the
//! variable that holds one is written down.

use serde_json::{Value, json};

use crate::definition_reader::{DefinitionReader, kind, quoted};

/// Notifiers of a ceremony.
const MOST: usize = 16;

/// Who is told of the end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notifier {
    /// A line on the server's standard output.
    Stdout,
    /// A message to an agent.
    Agent(String),
    /// A POST to the address in a variable.
    Webhook { url_env: String, secret_env: Option<String>, form: Form },
}

/// What a POST looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// All that is known of the run, as JSON.
    #[default]
    Json,
    /// Messages of a Discord webhook.
    Discord,
}

const FORMS: [(&str, Form); 2] = [("json", Form::Json), ("discord", Form::Discord)];

impl Notifier {
    pub(crate) fn written(&self) -> Value {
        match self {
            Self::Stdout => "stdout".into(),
            Self::Agent(agent) => json!({ "agent": agent }),
            Self::Webhook { url_env, secret_env, form } => {
                let mut written = json!({ "webhookEnv": url_env });
                if let Some(variable) = secret_env {
                    written["secretEnv"] = variable.as_str().into();
                }
                if *form == Form::Discord {
                    written["form"] = "discord".into();
                }
                written
            }
        }
    }

    /// Reads one that was written before.
    pub(crate) fn read(given: &Value) -> Option<Self> {
        let mut reader = DefinitionReader::default();
        read_notifier(&mut reader, given, "notify").filter(|_| reader.problems.is_empty())
    }

    /// The variables that it names, with their members.
    pub(crate) fn variables(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Webhook { url_env, secret_env, .. } => {
                let secret = secret_env.as_deref().map(|variable| ("secretEnv", variable));
                [("webhookEnv", url_env.as_str())].into_iter().chain(secret).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// One or a list of them.
pub(super) fn read_notifiers(reader: &mut DefinitionReader, given: &Value) -> Vec<Notifier> {
    let given = match given {
        Value::Null => return Vec::new(),
        Value::Array(items) => items.as_slice(),
        one => std::slice::from_ref(one),
    };
    if given.len() > MOST {
        reader.add("notify", format!("has {} items", given.len()), format!("at most {MOST}"));
        return Vec::new();
    }
    let mut read = Vec::new();
    for (index, item) in given.iter().enumerate() {
        read.extend(read_notifier(reader, item, &format!("notify[{index}]")));
    }
    read
}

fn read_notifier(reader: &mut DefinitionReader, given: &Value, key: &str) -> Option<Notifier> {
    let right = "stdout, an object with agent, or one with webhookEnv";
    match given {
        Value::String(word) if word == "stdout" => return Some(Notifier::Stdout),
        Value::Object(_) => {}
        Value::String(word) => {
            reader.add(key, format!("is {:?}", quoted(word)), right);
            return None;
        }
        other => {
            reader.add(key, format!("is {}", kind(other)), right);
            return None;
        }
    }
    let members = reader.object(given, key, &["agent", "webhookEnv", "secretEnv", "form"])?;
    let has = |name: &str| members.get(name).is_some_and(|value| !value.is_null());
    match (has("agent"), has("webhookEnv")) {
        (true, false) => {
            let agent = reader.text(members, (key, "agent"), "the name of an agent")?;
            Some(Notifier::Agent(agent.to_owned()))
        }
        (false, true) => {
            let url_env = reader.variable(members, (key, "webhookEnv"))?;
            let secret_env = reader.variable(members, (key, "secretEnv"));
            let form = match members.get("form").filter(|form| !form.is_null()) {
                None => Form::default(),
                Some(form) => match FORMS.iter().find(|(word, _)| form == word) {
                    Some((_, form)) => *form,
                    None => {
                        reader.add(&format!("{key}.form"), "is no form", "json or discord");
                        Form::default()
                    }
                },
            };
            Some(Notifier::Webhook { url_env, secret_env, form })
        }
        _ => {
            reader.add(key, "does not say who is told", right);
            None
        }
    }
}

/// The variable with the address of a channel, as earlier hubs name it.
pub(crate) fn variable_of_channel(channel: &str) -> String {
    let kept = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
    format!("DISCORD_WEBHOOK_{}", channel.chars().map(kept).collect::<String>())
}
