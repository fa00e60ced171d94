//! `switchboard task push-config`: where an agent reports the changes of a task.

use serde_json::json;
use switchboard_a2a::{AuthenticationInfo, PushConfig, TaskId};
use switchboard_client::Secret;
use switchboard_host::printer::Printer;

use crate::commands::calling::{AgentCall, Failure, NoOptions, sanitize};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PushConfigOptions {
    /// Address of yours that the agent reports to
    #[arg(long, value_name = "URL")]
    url: String,

    /// Id to give the webhook; without it the agent gives one
    #[arg(long = "id", value_name = "ID")]
    webhook_id: Option<String>,

    /// Variable of the environment with a token that the agent sends along, so that you know it
    #[arg(long, value_name = "VARIABLE")]
    token_env: Option<String>,

    /// Way the agent authenticates at your address, such as Bearer
    #[arg(long, value_name = "SCHEME", requires = "credentials_env")]
    auth_scheme: Option<String>,

    /// Variable of the environment with the credentials for that
    #[arg(long, value_name = "VARIABLE", requires = "auth_scheme")]
    credentials_env: Option<String>,
}

pub(crate) async fn set(call: AgentCall<'_>, [id]: [String; 1], options: PushConfigOptions) -> Result<(), Failure> {
    let credentials = options.credentials_env.as_deref().map(secret).transpose()?;
    let config = PushConfig {
        tenant: None,
        id: options.webhook_id,
        task_id: Some(id),
        url: options.url,
        token: options.token_env.as_deref().map(secret).transpose()?,
        authentication: options.auth_scheme.map(|scheme| AuthenticationInfo { scheme, credentials }),
        payload: None,
    };
    let card = call.ask(call.client.card(&call.context)).await.ok();
    // It is asked nonetheless: cards are often wrong.
    if card.is_some_and(|found| found.card.capabilities.push_notifications != Some(true)) {
        call.printer.warning("the agent does not say that it calls webhooks; asking nonetheless");
    }
    let config = call.ask(call.client.set_webhook(&call.context, config)).await?;
    print(&config, call.printer);
    Ok(())
}

pub(crate) async fn get(call: AgentCall<'_>, [task, id]: [String; 2], _: NoOptions) -> Result<(), Failure> {
    let config = call.ask(call.client.webhook(&call.context, &TaskId::from(task.as_str()), Some(&id))).await;
    let config = config.map_err(|failure| not_there(failure, &task, &call))?;
    print(&config, call.printer);
    Ok(())
}

pub(crate) async fn list(call: AgentCall<'_>, [task]: [String; 1], _: NoOptions) -> Result<(), Failure> {
    let configs = call.ask(call.client.webhooks(&call.context, &TaskId::from(task))).await?;
    let printer = call.printer;
    if printer.is_json() {
        let configs: Vec<PushConfig> = configs.iter().map(without_secrets).collect();
        printer.json(&json!({ "configs": configs, "nextPageToken": "" }));
        return Ok(());
    }
    for config in &configs {
        print(config, printer);
        printer.line("");
    }
    printer.line(format!("total: {}", configs.len()));
    Ok(())
}

pub(crate) async fn delete(call: AgentCall<'_>, [task, id]: [String; 2], _: NoOptions) -> Result<(), Failure> {
    let removed = call.ask(call.client.delete_webhook(&call.context, &TaskId::from(task.as_str()), &id)).await;
    removed.map_err(|failure| not_there(failure, &task, &call))?;
    match call.printer.is_json() {
        true => call.printer.json(&json!({})),
        false => {
            call.printer.line(format!("removed: {}", sanitize::line(&id)));
            call.printer.line(format!("task: {}", sanitize::line(&task)));
        }
    }
    Ok(())
}

/// Agents answer TaskNotFound for an unknown task and for an unknown webhook; the list shows which it is.
fn not_there(failure: Failure, task: &str, call: &AgentCall<'_>) -> Failure {
    match failure.is_not_found() {
        true => failure.with_hint(call.command("task push-config list", &sanitize::shell_word(task))),
        false => failure,
    }
}

fn print(config: &PushConfig, printer: Printer) {
    if printer.is_json() {
        printer.json(&without_secrets(config));
        return;
    }
    printer.line(format!("webhook: {}", shown_id(config)));
    printer.line(format!("task: {}", sanitize::line(config.task_id.as_deref().unwrap_or("-"))));
    printer.line(format!("url: {}", sanitize::line(&config.url)));
}

fn shown_id(config: &PushConfig) -> String {
    sanitize::line(config.id.as_deref().unwrap_or("-"))
}

/// Agents may give back what they were given; it is not for a terminal or a log.
fn without_secrets(config: &PushConfig) -> PushConfig {
    let mut config = config.clone();
    config.token = config.token.map(|_| "***".to_owned());
    if let Some(authentication) = &mut config.authentication {
        authentication.credentials = authentication.credentials.as_ref().map(|_| "***".to_owned());
    }
    config
}

fn secret(name: &str) -> Result<String, Failure> {
    Secret::Environment(name.to_owned())
        .read()
        .map_err(|error| Failure::usage(error.to_string(), "set it and try again"))
}
