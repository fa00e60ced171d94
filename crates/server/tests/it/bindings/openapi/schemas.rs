//! The schemas of the document, made strict: what is not described must not come.

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::bindings::world::World;

/// The document of a server.
pub(super) async fn described(world: &World) -> Value {
    let reply = world.get("/openapi.json").reply().await;
    assert_eq!(reply.status, 200);
    reply.json()
}

/// The schemas of a document.
pub(super) struct Schemas(Value);

impl Schemas {
    /// As they are, but closed: clients must bear unknown members, our own answers must not have any.
    pub(super) fn strict(document: &Value) -> Self {
        let mut components = document["components"].clone();
        close(&mut components["schemas"]);
        Self(components)
    }

    /// As they are.
    pub(super) fn plain(document: &Value) -> Self {
        Self(document["components"].clone())
    }

    fn validator(&self, schema: &str) -> Validator {
        assert!(self.0["schemas"].get(schema).is_some(), "no schema {schema}");
        let root = json!({"$ref": format!("#/components/schemas/{schema}"), "components": self.0});
        jsonschema::draft202012::options().should_validate_formats(true).build(&root).unwrap()
    }

    /// Fails the test if a value is not as the schema says.
    #[track_caller]
    pub(super) fn check(&self, schema: &str, value: &Value) {
        let errors: Vec<String> = self
            .validator(schema)
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{value:#} is no {schema}: {errors:#?}");
    }

    /// Whether a value is as the schema says.
    pub(super) fn fits(&self, schema: &str, value: &Value) -> bool {
        self.validator(schema).is_valid(value)
    }
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.contains_key("properties") && members.get("type") == Some(&json!("object")) {
                members.entry("additionalProperties").or_insert(json!(false));
            }
            members.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}
