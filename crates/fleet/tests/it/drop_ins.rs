//! Which files of `agents.d/` are read.

use switchboard_fleet::config::FleetConfig;
use switchboard_host::config::Overrides;

use crate::workspace::{Workspace, names};

#[test]
fn the_start_and_a_running_server_read_the_same_files_in_the_same_order() {
    let agent = |name: &str| format!("agents: [{{ name: {name}, builtin: echo }}]\n");
    let (one, two, three, four) = (agent("one"), agent("two"), agent("three"), agent("four"));
    let workspace = Workspace::new(&[
        ("agents.d/20-c.yaml", three.as_str()),
        ("agents.d/10-b.yml", two.as_str()),
        ("agents.yaml", one.as_str()),
        ("agents.d/.30-d.yaml", four.as_str()),
        ("agents.d/40-e.YAML", four.as_str()),
        ("agents.d/50-f.json", four.as_str()),
        ("agents.d/README.md", four.as_str()),
    ]);
    let fleet = FleetConfig::load(workspace.folder(), &Overrides::default()).unwrap();
    let started: Vec<&str> = fleet.agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(started, ["one", "two", "three"]);
    assert_eq!(names(&workspace.agent_files().read().unwrap()), started);
    let unread = |file: &str| format!("{} is not read: end its name in .yaml", workspace.path(file).display());
    assert_eq!(fleet.workspace.unread, [unread("agents.d/40-e.YAML"), unread("agents.d/50-f.json")]);
}
