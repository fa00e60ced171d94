//! Variables of the environment that an earlier hub had are read, with a warning that says today's name.

use std::collections::BTreeMap;

use switchboard_host::config::{Overrides, Workspace};

fn loaded(file: &str, variables: &[(&str, &str)]) -> Result<Workspace, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("switchboard.yaml"), file).unwrap();
    let environment: BTreeMap<String, String> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let overrides = Overrides { environment, ..Overrides::default() };
    Workspace::settings_only(folder.path(), &overrides).map_err(|problems| problems.to_string())
}

#[test]
fn an_earlier_name_is_read_unless_todays_says_otherwise_and_is_warned_of() {
    let variables = [
        ("WORKSTACEAN_HTTP_PORT", "3000"),
        ("WORKSTACEAN_BASE_URL", "https://agents.example.com"),
        ("WORKSTACEAN_FLEET_ALERT_COOLDOWN_MS", "60000"),
        ("WORKSTACEAN_FLEET_DAILY_BUDGET_USD", "7.5"),
        ("WORKSTACEAN_COOLDOWN_MS_BUG_TRIAGE", "1500"),
        ("WORKSTACEAN_DISPATCH_DROP_THRESHOLD", "4"),
        ("SWITCHBOARD_HUB_HEALTH_ALERTS_DROPS", "5"),
        ("WORKSTACEAN_API_KEY", "hush"),
        ("WORKSTACEAN_API_KEY_HELPER", "hush"),
        ("WORKSTACEAN_DEBUG", ""),
        ("WORKSTACEAN_OTHER", "1"),
    ];
    let workspace = loaded("hub: { health: { alerts: { dailyUsd: 9 } } }\n", &variables).unwrap();
    let (server, hub) = (&workspace.config.server, &workspace.config.hub);
    assert_eq!(server.bind.0.to_string(), "127.0.0.1:3000");
    assert_eq!(server.public_base_url.as_ref().unwrap().as_str(), "https://agents.example.com");
    let alerts = &hub.health.alerts;
    assert_eq!((alerts.cooldown.to_string().as_str(), alerts.drops.get()), ("1m", 5), "today's variable counts");
    assert!((alerts.daily_usd.get() - 9.0).abs() < f64::EPSILON, "the file counts");
    assert_eq!(hub.routing.cooldowns.0["bug_triage"].to_string(), "1500ms");
    let warnings = [
        "the environment variable WORKSTACEAN_API_KEY is not read: keys are made with switchboard keys create",
        "the environment variable WORKSTACEAN_BASE_URL has an earlier name: set server.publicBaseUrl instead, or \
         SWITCHBOARD_SERVER_PUBLIC_BASE_URL",
        "the environment variable WORKSTACEAN_COOLDOWN_MS_BUG_TRIAGE has an earlier name: set hub.routing.cooldowns \
         instead",
        "the environment variable WORKSTACEAN_DISPATCH_DROP_THRESHOLD sets nothing beside \
         SWITCHBOARD_HUB_HEALTH_ALERTS_DROPS: remove it",
        "the environment variable WORKSTACEAN_FLEET_ALERT_COOLDOWN_MS has an earlier name: set \
         hub.health.alerts.cooldown instead, or SWITCHBOARD_HUB_HEALTH_ALERTS_COOLDOWN",
        "the environment variable WORKSTACEAN_FLEET_DAILY_BUDGET_USD has an earlier name: set \
         hub.health.alerts.dailyUsd instead, or SWITCHBOARD_HUB_HEALTH_ALERTS_DAILY_USD",
        "the environment variable WORKSTACEAN_HTTP_PORT has an earlier name: set server.bind instead, or \
         SWITCHBOARD_SERVER_BIND",
        "the environment variable WORKSTACEAN_OTHER sets nothing: no setting has that name",
    ];
    assert_eq!(workspace.warnings, warnings);

    let refused = loaded("", &[("WORKSTACEAN_HTTP_PORT", "many")]).unwrap_err();
    assert!(refused.starts_with("WORKSTACEAN_HTTP_PORT: server.bind: "), "{refused}");
}
