//! The cards of the scripted agent.

use serde_json::{Value, json};

use super::wire::{Asked, http};
use super::{Defect, EXTENSION, TENANT};

/// `{"alg":"ES256"}`, which does not say whose key it is.
const WITHOUT_KEY: &str = "eyJhbGciOiJFUzI1NiJ9";

fn card(defect: Defect, host: &str) -> Value {
    let (place, binding) = match defect {
        Defect::Rest | Defect::ErrorsWithRestStatus | Defect::RestErrorWithoutInfo => ("rest", "HTTP+JSON"),
        _ => ("rpc", "JSONRPC"),
    };
    let url = |place: &str| format!("http://{host}/{place}");
    let mut card = json!({
        "name": "peer", "description": "A peer", "version": "1",
        "supportedInterfaces": [{"url": url(place), "protocolBinding": binding, "protocolVersion": "1.0"}],
        "capabilities": {"streaming": true, "pushNotifications": true},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "talk", "name": "Talk", "description": "Talks", "tags": ["talk"]}],
    });
    let oauth = |address: &str| json!({"oauth2SecurityScheme": {"flows": {"clientCredentials": {"tokenUrl": address, "scopes": {}}}}});
    let bearer = || json!({"key": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}});
    let mut also = |entry: Value| card["supportedInterfaces"].as_array_mut().unwrap().push(entry);
    if matches!(defect, Defect::Both | Defect::WithTenant) {
        also(json!({"url": url("rest"), "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}));
    }
    match defect {
        Defect::WithTenant => {
            for interface in card["supportedInterfaces"].as_array_mut().unwrap() {
                interface["tenant"] = json!(TENANT);
            }
        }
        Defect::CardOfAnotherHost => {
            card["supportedInterfaces"][0]["url"] = json!("http://127.0.0.1:1/rpc");
        }
        Defect::CardWithEmptyLists => {
            for member in ["defaultInputModes", "defaultOutputModes", "skills"] {
                card[member] = json!([]);
            }
        }
        Defect::CardWithManySkills => card["skills"] = vec![json!({"id": "same", "name": ""}); 5_000].into(),
        Defect::KeyOptional => {
            card["securitySchemes"] = bearer();
            card["securityRequirements"] = json!([{"schemes": {}}, {"schemes": {"key": {"list": []}}}]);
        }
        Defect::CardInterfaceNotThere => {
            also(json!({"url": url("nowhere"), "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}));
        }
        Defect::CardOfAnotherAgent => {
            also(json!({"url": url("rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}));
        }
        Defect::CardWithoutSkills => drop(card.as_object_mut().unwrap().remove("skills")),
        Defect::CardWithTwoSkillsOfOneName => {
            let skill = json!({"id": "one", "name": "One", "description": "It", "tags": ["one"]});
            card["skills"] = json!([skill, skill]);
        }
        Defect::CardSchemeWithoutFlow => {
            card["securitySchemes"] = json!({"a": {"oauth2SecurityScheme": {"flows": {}}}})
        }
        Defect::CardSchemeUnencrypted => card["securitySchemes"] = json!({"a": oauth("http://login.example/token")}),
        Defect::CardSignatureWithoutKey => {
            card["signatures"] = json!([{"protected": WITHOUT_KEY, "signature": "AAAA"}]);
        }
        Defect::WithExtension
        | Defect::ExtensionNotRequired
        | Defect::ExtensionNeverTaken
        | Defect::ExtensionNotEchoed => {
            card["capabilities"]["extensions"] = json!([{"uri": EXTENSION, "required": true}, {"uri": "urn:other"}]);
        }
        Defect::WithoutWebhooks | Defect::WebhooksUndeclared => {
            drop(card["capabilities"].as_object_mut().unwrap().remove("pushNotifications"));
        }
        Defect::WithExtendedCard | Defect::ExtendedCardForAnybody | Defect::ExtendedCardNotThere => {
            card["capabilities"]["extendedAgentCard"] = json!(true);
            card["securitySchemes"] = bearer();
        }
        _ if defect.has_keys() || defect == Defect::KeyDemandedAndNotChecked => {
            card["securitySchemes"] = bearer();
            card["securityRequirements"] = json!([{"schemes": {"key": {"list": []}}}]);
        }
        _ => {}
    }
    card
}

pub(super) fn answer(defect: Defect, asked: &Asked) -> String {
    let host = asked.header("host").unwrap();
    let mut card = card(defect, host);
    if defect == Defect::CardOfAnotherAgent && asked.header("a2a-version") == Some("0.3") {
        card["name"] = json!("another");
        card["url"] = json!(format!("http://{host}/rpc"));
        card["protocolVersion"] = json!("0.3.0");
        card["preferredTransport"] = json!("JSONRPC");
    }
    let caching = match defect {
        Defect::CardWithoutCaching => "",
        _ if asked.header("if-none-match") == Some("\"one\"") => return http(304, "etag: \"one\"", ""),
        _ => "\r\ncache-control: max-age=60\r\netag: \"one\"",
    };
    http(200, &format!("content-type: application/json{caching}"), &card.to_string())
}

pub(super) fn extended(defect: Defect, asked: &Asked) -> String {
    let is_known = !asked.owner().is_empty();
    let answer = match defect {
        Defect::WithExtendedCard if !is_known => return http(401, "www-authenticate: Bearer", ""),
        Defect::WithExtendedCard | Defect::ExtendedCardForAnybody | Defect::ExtendedCardUndeclared => {
            Ok(card(defect, asked.header("host").unwrap()))
        }
        Defect::ExtendedCardNotThere => Err(-32007),
        _ => Err(-32004),
    };
    asked.answer(defect, answer)
}
