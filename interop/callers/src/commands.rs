//! The checks of the commands, in the order of interop/operations.json: what each prints with `-o json`, read and
//! compared.

mod sending;
pub(crate) mod switchboard;
mod tasks;
mod webhooks;

use serde_json::Value;

use crate::commands::switchboard::Switchboard;
use crate::run::{Answer, Checked, Run, equal};

pub(crate) async fn run(run: &mut Run<'_>, switchboard: &Switchboard) {
    run.check("card", card(switchboard)).await;
    run.check("extended-card", extended_card(switchboard)).await;
    run.check("skills", skills(switchboard)).await;
    sending::run(run, switchboard).await;
    tasks::run(run, switchboard).await;
    webhooks::run(run, switchboard).await;
}

async fn card(switchboard: &Switchboard) -> Checked {
    let card = switchboard.json("card get", &[]).await?;
    equal(&card["name"], &Value::from("Behaviours"))?;
    equal(&card["capabilities"]["streaming"], &Value::from(true))?;
    equal(&card["skills"][0]["id"], &Value::from("behave"))?;
    Ok(Answer::Given)
}

/// None of the servers has one, and each must say so.
async fn extended_card(switchboard: &Switchboard) -> Checked {
    match switchboard.json("card get", &["--extended"]).await {
        Ok(card) => {
            equal(&card["name"], &Value::from("Behaviours"))?;
            Ok(Answer::Given)
        }
        Err(error) => switchboard::told_by(error),
    }
}

async fn skills(switchboard: &Switchboard) -> Checked {
    let listed = switchboard.json("skills", &[]).await?;
    let skill = &listed["skills"][0];
    equal(&skill["id"], &Value::from("behave"))?;
    equal(&skill["tags"], &serde_json::json!(["test"]))?;
    equal(listed["skills"].as_array().map(Vec::len), Some(1))?;
    Ok(Answer::Given)
}

/// Where a task stands, in the protocol's words.
fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap_or_default()
}

/// The text of a task's artifacts.
fn produced(task: &Value) -> String {
    let artifacts = task["artifacts"].as_array().into_iter().flatten();
    artifacts.map(|artifact| text(&artifact["parts"])).collect()
}

fn text(parts: &Value) -> String {
    parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
}

fn id(task: &Value) -> anyhow::Result<String> {
    let id = task["id"].as_str().filter(|id| !id.is_empty());
    id.map(str::to_owned).ok_or_else(|| anyhow::anyhow!("there is no id in {task}"))
}
