//! A page of tasks.

use serde::Deserialize;

use crate::Task;
use crate::lenient::{count, or_default};

/// What listing answers with. Encoded by [`crate::encode::encode_list`], because every key must be there.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListResponse {
    /// The tasks of this page, newest status first.
    #[serde(deserialize_with = "or_default")]
    pub tasks: Vec<Task>,
    /// Asks for the next page; empty on the last one.
    #[serde(alias = "next_page_token", deserialize_with = "or_default")]
    pub next_page_token: String,
    /// The page size that was used.
    #[serde(alias = "page_size", deserialize_with = "size")]
    pub page_size: u32,
    /// How many tasks match, on all pages.
    #[serde(alias = "total_size", deserialize_with = "total")]
    pub total_size: u64,
}

fn size<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    Ok(count(deserializer)?.unwrap_or_default())
}

fn total<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(count(deserializer)?.unwrap_or_default().into())
}
