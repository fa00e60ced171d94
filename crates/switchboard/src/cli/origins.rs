//! Where the settings of a call come from: a flag wins over a variable of the environment, that over a file, and that over
//! the default. The source matters, because a flag is meant for this agent and a variable for any.

use std::collections::BTreeMap;

use clap::error::Error;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::cli::CallFlags;

/// The value of each setting and its source.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origins(BTreeMap<String, Given>);

#[derive(Debug, Clone)]
pub(crate) struct Given {
    pub(crate) source: ValueSource,
    pub(crate) text: String,
}

impl Origins {
    pub(crate) fn is_typed(&self, id: &str) -> bool {
        self.0.get(id).is_some_and(|given| given.source == ValueSource::CommandLine)
    }

    /// Whether the value differs from the default. The parser takes values of a file for defaults too, so the text decides.
    pub(crate) fn differs(&self, id: &str, usual: &str) -> bool {
        let is_usual = |given: &Given| given.source == ValueSource::DefaultValue && given.text == usual;
        self.0.get(id).is_some_and(|given| !is_usual(given))
    }

    pub(crate) fn given(&self, id: &str) -> Option<&Given> {
        self.0.get(id)
    }
}

/// The ids of all settings that can come from the environment, and their variables.
pub(crate) fn variables(command: &Command) -> impl Iterator<Item = (&str, &str)> {
    let of_call = |name: &&str| name.starts_with("A2ACLI_");
    command.get_arguments().filter_map(move |argument| {
        let name = argument.get_env()?.to_str().filter(of_call)?;
        Some((argument.get_id().as_str(), name))
    })
}

impl FromArgMatches for Origins {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let command = CallFlags::augment_args(Command::new("call"));
        let mut origins = BTreeMap::new();
        for (id, _) in variables(&command) {
            let Some(source) = matches.value_source(id) else { continue };
            let raw = matches.get_raw(id).into_iter().flatten();
            let text = raw.map(|value| value.to_string_lossy().into_owned()).collect::<Vec<_>>().join(",");
            origins.insert(id.to_owned(), Given { source, text });
        }
        Ok(Self(origins))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// It has no flags of its own.
impl Args for Origins {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
