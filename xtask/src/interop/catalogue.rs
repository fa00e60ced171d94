//! The words of interop/RESULTS.md that no test can print: a title for each check (`interop/operations.json`), and for
//! each SDK what is special about it and why `switchboard conformance` finds fault with it (`notes.json` in its folder).

use anyhow::Context;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::Path;

use crate::interop::SDKS;
use crate::program;
use crate::results::Names;

/// Keys in the order of the file, which is the order of the page.
pub(crate) type Texts = serde_json::Map<String, serde_json::Value>;

pub(crate) struct Catalogue {
    /// Titles by check, for each part of the page but the conformance findings.
    pub(crate) operations: BTreeMap<String, Texts>,
    /// In the order of the page.
    pub(crate) sdks: Vec<Sdk>,
}

pub(crate) struct Sdk {
    pub(crate) folder: &'static str,
    pub(crate) notes: Notes,
}

#[derive(Deserialize, Default)]
pub(crate) struct Notes {
    /// The published package with its version.
    pub(crate) sdk: String,
    /// The reason for each check of `switchboard conformance` that fails. A name that ends in `?` fails now and then.
    pub(crate) findings: Texts,
    /// A note for each part of the page that needs one.
    #[serde(flatten)]
    pub(crate) parts: Texts,
}

impl Catalogue {
    pub(crate) fn read() -> anyhow::Result<Self> {
        let sources = program::root().join("interop");
        let mut sdks = Vec::new();
        for (folder, _) in SDKS {
            sdks.push(Sdk { folder, notes: json(&sources.join(folder).join("notes.json"))? });
        }
        Ok(Self { operations: json(&sources.join("operations.json"))?, sdks })
    }

    /// The names to expect after a run: those that ran, and `NAME?` for a finding that is a matter of chance.
    pub(crate) fn expected(&self, heading: &str, ran: &Names) -> Names {
        let Some(folder) = heading.strip_suffix(" conformance") else { return ran.clone() };
        let findings = self.sdks.iter().filter(|sdk| sdk.folder == folder).flat_map(|sdk| sdk.notes.findings.keys());
        let by_chance: Names = findings.filter(|name| name.ends_with('?')).cloned().collect();
        let certain = ran.iter().filter(|name| !by_chance.contains(&format!("{name}?"))).cloned();
        certain.chain(by_chance.iter().cloned()).collect()
    }
}

fn json<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("cannot parse {}", path.display()))
}
