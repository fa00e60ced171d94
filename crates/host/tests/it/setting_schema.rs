//! The keys that are read and those of the published schema are the same.

use serde_json::Value as Json;
use switchboard_host::config::section::variable_name;
use switchboard_host::config::{Overrides, Workspace, schema};

/// Every property of a schema: where it is, and what it says.
fn properties(path: &str, schema: &Json, root: &Json, found: &mut Vec<(String, Json)>) {
    let schema = match schema.get("$ref").and_then(Json::as_str) {
        Some(reference) => root.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    };
    for (key, property) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        found.push((path.clone(), property.clone()));
        properties(&path, property, root, found);
    }
    for choice in schema.get("anyOf").and_then(Json::as_array).into_iter().flatten() {
        properties(path, choice, root, found);
    }
}

#[test]
fn every_key_has_a_variable_and_a_title_and_every_key_that_is_read_is_in_the_schema() {
    assert_eq!(variable_name("store.retention.maxAge"), "SWITCHBOARD_STORE_RETENTION_MAX_AGE");
    assert_eq!(variable_name("server.publicBaseUrl"), "SWITCHBOARD_SERVER_PUBLIC_BASE_URL");
    let schema = serde_json::to_value(schema::switchboard()).unwrap();
    let mut found = Vec::new();
    properties("", &schema, &schema, &mut found);
    for (path, property) in &found {
        assert!(property["title"].is_string(), "{path} has no title: {property}");
    }
    let is_mapping = |path: &str| found.iter().any(|(other, _)| other.starts_with(&format!("{path}.")));
    let mut in_schema: Vec<&str> =
        found.iter().map(|(path, _)| path.as_str()).filter(|path| !is_mapping(path)).collect();
    in_schema.sort_unstable();
    let folder = tempfile::tempdir().unwrap();
    let settings = Workspace::settings_only(folder.path(), &Overrides::default()).unwrap().settings;
    let mut read: Vec<&str> = settings.iter().map(|setting| setting.key.as_str()).collect();
    // Its values are refused, whatever they are.
    read.push("store.url");
    read.sort_unstable();
    assert_eq!(in_schema, read);
}
