//! What all endpoints of the hub have in common, from its table of routes.

use serde_json::{Value, json};

use crate::running::{Running, folder};

#[tokio::test]
async fn every_path_needs_a_key_and_refuses_what_it_does_not_know() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let (_, described) = running.get("/openapi.json", "ann").await;
    let table = switchboard_hub::route_table();
    assert!(!table.is_empty());
    for (method, path, _) in table {
        let at = path.replace(['{', '}'], "");
        let body = if method == http::Method::GET { "" } else { "{}" };
        let (status, refusal) = running.ask(&format!("{method} {at}"), "", &[], body).await;
        assert_eq!(status, 401, "{method} {path}: {refusal}");
        let (status, refusal) = running.ask(&format!("{method} {at}?surprise=1"), "ann", &[], body).await;
        assert_eq!((status, &refusal["code"]), (400, &json!("INVALID")), "{method} {path}: {refusal}");
        assert_eq!(refusal["problems"][0]["key"], "surprise", "{refusal}");
        assert_ne!(described["paths"][path][method.as_str().to_ascii_lowercase()], Value::Null, "{method} {path}");
        if body.is_empty() {
            continue;
        }
        let (status, refusal) = running.ask(&format!("{method} {at}"), "ann", &[], "{\"surprise\":1}").await;
        assert_eq!((status, &refusal["problems"][0]["key"]), (400, &json!("surprise")), "{method} {path}: {refusal}");
        let (status, refusal) = running.ask(&format!("{method} {at}"), "ann", &[], "[]").await;
        assert_eq!((status, &refusal["code"]), (400, &json!("INVALID")), "{method} {path}: {refusal}");
    }
    running.stop().await;
}
