//! Homes for the agents: each function writes the files an agent reads from its home, and gives the variables it must be
//! started with. Then it asks the fake model and no other: the models are pinned, updates and statistics are off, and what
//! is tried all the same goes to a proxy that is not there, which fails at once.
//!
//! What an agent may do is not settled here but by its arguments; opencode takes it as JSON in `OPENCODE_PERMISSION`.

use std::io;
use std::path::Path;

use serde_json::{Value, json};
use url::Url;

/// The key that every agent sends.
pub const KEY: &str = "fake-key";
/// What Claude Code asks for.
pub const CLAUDE_MODEL: &str = "claude-sonnet-4-5";
/// What Claude Code asks for in side calls.
pub const CLAUDE_SMALL_MODEL: &str = "claude-haiku-4-5";
/// What Gemini CLI asks for; it knows its models by name.
pub const GEMINI_MODEL: &str = "gemini-2.5-flash";
/// What Codex asks for, and opencode, which calls it `fake/fake-model`.
pub const FAKE_MODEL: &str = "fake-model";

/// The discard port, on which nothing listens.
const DEAD_PROXY: &str = "http://127.0.0.1:9";

/// The variables an agent is started with, by name.
type Variables = Vec<(String, String)>;

/// A home for Claude Code.
pub fn claude(home: &Path, endpoint: &Url) -> io::Result<Variables> {
    variables(
        home,
        &[
            ("ANTHROPIC_BASE_URL", base(endpoint)),
            ("ANTHROPIC_API_KEY", KEY),
            ("ANTHROPIC_MODEL", CLAUDE_MODEL),
            ("ANTHROPIC_SMALL_FAST_MODEL", CLAUDE_SMALL_MODEL),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ],
    )
}

/// A home for Codex. The plugins would be looked for at their vendor's in every run.
pub fn codex(home: &Path, endpoint: &Url) -> io::Result<Variables> {
    let config = format!(
        r#"model = "{FAKE_MODEL}"
model_provider = "fake"
check_for_update_on_startup = false

[analytics]
enabled = false

[features]
apps = false
plugins = false

[model_providers.fake]
name = "fake"
base_url = "{}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 1
stream_max_retries = 2
"#,
        base(endpoint)
    );
    write(home, ".codex/config.toml", &config)?;
    variables(home, &[("OPENAI_API_KEY", KEY)])
}

/// A home for Gemini CLI.
pub fn gemini(home: &Path, endpoint: &Url) -> io::Result<Variables> {
    let settings = json!({
        "model": { "name": GEMINI_MODEL },
        "security": { "auth": { "selectedType": "gemini-api-key" } },
        "privacy": { "usageStatisticsEnabled": false },
        "general": { "enableAutoUpdate": false, "enableAutoUpdateNotification": false },
    });
    write_json(home, ".gemini/settings.json", &settings)?;
    variables(home, &[("GOOGLE_GEMINI_BASE_URL", base(endpoint)), ("GEMINI_API_KEY", KEY)])
}

/// A home for opencode. Without both models it would ask one that its vendor hosts.
pub fn opencode(home: &Path, endpoint: &Url) -> io::Result<Variables> {
    let name = format!("fake/{FAKE_MODEL}");
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "name": "Fake",
        "options": { "baseURL": format!("{}/v1", base(endpoint)), "apiKey": KEY },
        "models": { FAKE_MODEL: { "name": "Fake", "limit": { "context": 128_000, "output": 4_096 } } },
    });
    let config = json!({
        "model": name, "small_model": name, "enabled_providers": ["fake"], "provider": { "fake": provider },
        "autoupdate": false, "share": "disabled",
        // What only costs time here.
        "snapshot": false, "lsp": false, "formatter": false,
    });
    write_json(home, ".config/opencode/opencode.json", &config)?;
    // Without this it reads the thousands of models that it comes with, which takes half of its start.
    let models = home.join("no-models.json");
    std::fs::write(&models, "{}")?;
    let models = models.to_str().ok_or_else(|| io::Error::other(format!("{} is not text", models.display())))?;
    variables(
        home,
        &[
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
            ("OPENCODE_MODELS_PATH", models),
        ],
    )
}

/// Without the slash that an address without a path ends with.
fn base(endpoint: &Url) -> &str {
    endpoint.as_str().trim_end_matches('/')
}

/// What an agent needs itself, and what every one does.
fn variables(home: &Path, own: &[(&str, &str)]) -> io::Result<Variables> {
    let home = home.to_str().ok_or_else(|| io::Error::other(format!("{} is not text", home.display())))?;
    let mut variables = vec![("HOME", home), ("LANG", "C.UTF-8"), ("TERM", "dumb")];
    // Programs differ in which spelling they read.
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
        variables.push((name, DEAD_PROXY));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        variables.push((name, "127.0.0.1,localhost"));
    }
    variables.extend_from_slice(own);
    Ok(variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

fn write_json(home: &Path, path: &str, value: &Value) -> io::Result<()> {
    write(home, path, &value.to_string())
}

fn write(home: &Path, path: &str, text: &str) -> io::Result<()> {
    let path = home.join(path);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Agent;

    #[test]
    fn every_home_names_the_endpoint_once_and_no_other_address() {
        for agent in Agent::ALL {
            let home = tempfile::tempdir().unwrap();
            let variables = agent.prepare(home.path(), &Url::parse("http://127.0.0.1:4711").unwrap()).unwrap();
            let mut texts: Vec<String> = variables.iter().map(|(_, value)| value.clone()).collect();
            for file in [".codex/config.toml", ".gemini/settings.json", ".config/opencode/opencode.json"] {
                texts.extend(std::fs::read_to_string(home.path().join(file)));
            }
            let addresses: Vec<&str> = texts.iter().flat_map(|text| text.split("http").skip(1)).collect();
            let named = addresses.iter().filter(|address| address.starts_with("://127.0.0.1:4711")).count();
            let dead = addresses.iter().filter(|address| **address == "://127.0.0.1:9").count();
            assert_eq!((named, dead, addresses.len()), (1, 4, 5), "{agent:?}: {addresses:?}");
            let home = (home.path().to_str().unwrap()).to_owned();
            assert!(variables.contains(&("HOME".to_owned(), home)), "{agent:?}");
        }
    }
}
