//! The delegation chain: which tasks of which servers a message comes from, in its metadata under [`CHAIN_KEY`].
//!
//! It is a claim of the sender and only tightens: it never gives a right, and its deadline counts beside the task's own.
//! Members that are not known here are kept as they are, for the next server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use switchboard_a2a::{Json, Message, Timestamp};

use crate::error::Error;

/// Metadata key of a message's delegation chain.
pub const CHAIN_KEY: &str = "urn:switchboard:a2a:delegation:v1";
const FIELD: &str = "message.metadata.urn:switchboard:a2a:delegation:v1";
/// No legitimate tree is as deep; a longer chain is a loop or an attack.
const MAX_HOPS: usize = 64;
/// Sixty-four hops of a hundred bytes, and room for members that others add.
const MAX_BYTES: usize = 8 << 10;

/// A delegation chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelegationChain {
    /// The first task of the tree.
    pub root: ChainRoot,
    /// The tasks from the root to the sender's, in this order.
    #[serde(default)]
    pub hops: Vec<Hop>,
    /// When the whole tree has to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Members that are not known here.
    #[serde(flatten)]
    pub more: BTreeMap<String, serde_json::Value>,
}

/// The first task of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainRoot {
    /// The server it runs on, by the id of its store.
    pub node: String,
    /// The task's id there.
    pub task: String,
}

/// One task of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// The server it runs on, by the id of its store.
    pub node: String,
    /// The agent that works on it.
    pub agent: String,
    /// The task's id there.
    pub task: String,
}

impl DelegationChain {
    /// The chain of a message, as it was sent and as it was read.
    pub(crate) fn of(message: &Message) -> Result<Option<(Json, Self)>, Error> {
        let Some(sent) = message.metadata.as_ref().and_then(|metadata| metadata.get(CHAIN_KEY)) else {
            return Ok(None);
        };
        let bytes = sent.as_str().len();
        if bytes > MAX_BYTES {
            return Err(invalid(format!("{bytes} bytes are more than the {MAX_BYTES} that a chain may have")));
        }
        let expected = "must be {root: {node, task}, hops: [{node, agent, task}], deadline}";
        let chain: Self = sent.read().map_err(|error| invalid(format!("{expected}: {error}")))?;
        if chain.hops.len() > MAX_HOPS {
            let count = chain.hops.len();
            return Err(invalid(format!("{count} hops are more than the {MAX_HOPS} that a chain may have")));
        }
        Ok(Some((sent.clone(), chain)))
    }
}

fn invalid(problem: String) -> Error {
    Error::Invalid { field: FIELD, problem }
}
