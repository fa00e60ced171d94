//! The table of paths in `docs/hub.md` is the table of routes: every path is there, with the role that it needs.

use serde_json::{Value, json};

use crate::running::{Running, folder};

/// Method, path and role of each row.
fn documented() -> Vec<[String; 3]> {
    let page = include_str!("../../../../docs/hub.md");
    let (_, rest) = page.split_once("\n## Paths\n").unwrap();
    let rows = rest.split("\n## ").next().unwrap().lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let (method, path) = cells[0].trim_matches('`').split_once(' ').unwrap();
        [method, path, cells[1]].map(str::to_owned)
    };
    rows.map(row).collect()
}

/// The same of what is described to programs.
fn described(document: &Value) -> Vec<[String; 3]> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["tags"] == json!(["hub"]) {
                let about = operation["description"].as_str().unwrap();
                let role = about.split_once("the role `").map_or("none", |(_, rest)| rest.split('`').next().unwrap());
                found.push([method.to_ascii_uppercase(), path.clone(), role.to_owned()]);
            }
        }
    }
    found
}

#[tokio::test]
async fn every_path_is_in_the_documentation_with_the_role_that_it_needs() {
    let data = folder();
    let running = Running::in_folder(data.path()).await;
    let (_, document) = running.get("/openapi.json", "").await;
    let (mut documented, mut described) = (documented(), described(&document));
    documented.sort();
    described.sort();
    assert_eq!(documented, described);
    let mut routes: Vec<(String, String)> = switchboard_hub::route_table()
        .into_iter()
        .map(|(method, path, _)| (method.to_string(), path.to_owned()))
        .collect();
    routes.sort();
    let named = documented.into_iter().map(|[method, path, _]| (method, path));
    assert_eq!(named.collect::<Vec<_>>(), routes);
    running.stop().await;
}
