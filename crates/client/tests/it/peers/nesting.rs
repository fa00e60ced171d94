//! What an agent answers may be nested as deep as what it is sent, and no deeper.

use serde_json::{Value, json};
use switchboard_a2a::{ListRequest, Version};
use switchboard_client::{Binding, CallContext, Client, ClientError};

use super::losses::message;
use super::script::{COMPLETED, WORKING, agent, chunk, error, event, events, json as answer, result, task};
use super::streams::{story, usual, working};
use crate::world::client;

/// Arrays in one another.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!("deep"), |inner, _| json!([inner]))
}

fn with_data(levels: usize) -> Value {
    let mut task = task(COMPLETED, "text");
    task["artifacts"][0]["parts"][0] = json!({"data": nested(levels)});
    task
}

async fn problem(client: &Client) -> Option<String> {
    match client.get(&CallContext::default(), &"t".into(), None).await {
        Ok(_) => None,
        Err(ClientError::NotA2a { status: 200, what, .. }) => Some(what),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_task_that_is_nested_too_deep_is_no_answer_and_hides_no_others_in_a_list() {
    for (binding, most) in [(Binding::JsonRpc, 61), (Binding::Rest, 62)] {
        for levels in [most, most + 1, 90] {
            let peer = agent(false, move |asked, _| {
                let page = json!({"tasks": [with_data(levels)], "nextPageToken": "", "pageSize": 1, "totalSize": 1});
                match asked.what().as_str() {
                    "GetTask" => result(with_data(levels)),
                    "ListTasks" => result(page),
                    get if get.contains("/tasks/t") => answer(200, &with_data(levels)),
                    _ => answer(200, &page),
                }
            })
            .await;
            let client = client(peer.url(), |peer| {
                (peer.binding, peer.version) = (Some(binding), Some(Version::V1));
            });
            let expected = (levels > most).then_some("JSON nested deeper than 67 levels, the most that is read");
            assert_eq!(problem(&client).await.as_deref(), expected, "{binding:?} {levels}");
            let request = ListRequest {
                context_id: None,
                status: None,
                page_size: None,
                page_token: None,
                history_length: None,
                status_timestamp_after: None,
                include_artifacts: true,
                tenant: None,
            };
            let page = client.list(&CallContext::default(), request).await.unwrap();
            assert_eq!(page.tasks.len(), 1, "{binding:?} {levels}");
        }
    }
}

#[tokio::test]
async fn an_event_that_is_nested_too_deep_is_one_that_cannot_be_read() {
    let deep = || {
        let mut deep = chunk("");
        deep["artifactUpdate"]["artifact"]["parts"] = json!([{"text": "deep"}, {"data": nested(62)}]);
        event(deep)
    };
    let peer = usual(
        move || events(&[working(""), deep()]),
        |_| error(-32004, "there are no subscriptions"),
        |_| task(COMPLETED, "done"),
    )
    .await;
    let told = story(&client(peer.url(), |_| {})).await.unwrap();
    assert_eq!(told, ["task TASK_STATE_WORKING", "lost", "done", "TASK_STATE_COMPLETED"]);
}

#[tokio::test]
async fn a_first_event_that_is_nested_too_deep_is_not_asked_for_again() {
    let peer = agent(true, |asked, _| match asked.what().as_str() {
        "SendStreamingMessage" => events(&[event(json!({"task": with_data(90)}))]),
        _ => error(-32601, "no such method"),
    })
    .await;
    let failed = story(&client(peer.url(), |_| {})).await.unwrap_err();
    let ClientError::NotA2a { status: 200, what, .. } = &failed else { panic!("{failed}") };
    assert_eq!(what, "JSON nested deeper than 67 levels, the most that is read");
    assert!(!failed.is_transient(), "{failed}");
    assert_eq!(peer.story(), ["SendStreamingMessage"], "it would come again");
}

#[tokio::test]
async fn a_message_that_a_server_has_taken_can_be_read_in_the_history_of_its_task() {
    let mut asked = message("asked");
    // The parameters of its request have 64 levels with it.
    asked["role"] = json!("ROLE_USER");
    asked["parts"] = json!([{"data": nested(60)}]);
    let mut first = task(WORKING, "");
    first["history"] = json!([asked]);
    let peer = usual(
        move || events(&[event(json!({"task": first})), event(super::script::status(COMPLETED))]),
        |_| error(-32004, "there are no subscriptions"),
        |_| task(COMPLETED, ""),
    )
    .await;
    let told = story(&client(peer.url(), |_| {})).await.unwrap();
    assert_eq!(told, ["task TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
}
