//! The default agent of a workspace whose files do not have it.

use switchboard_fleet::config::FleetConfig;
use switchboard_host::config::Overrides;

use crate::workspace::Workspace;

#[test]
fn a_default_agent_that_no_file_has_is_warned_of_and_refuses_nothing_whatever_it_is_called() {
    let reviewer = "agents: [{ name: reviewer, builtin: echo }, { name: writer, builtin: guide }]\n";
    let others = "the agents are reviewer, writer";
    for (name, right) in [("reviewer-2", "did you mean reviewer?"), ("elsewhere", others)] {
        let settings = format!("server: {{ defaultAgent: {name} }}\n");
        let workspace = Workspace::new(&[("agents.yaml", reviewer), ("switchboard.yaml", settings.as_str())]);
        let fleet = FleetConfig::load(workspace.folder(), &Overrides::default()).unwrap();
        let file = workspace.path("switchboard.yaml");
        let warning = format!(
            "{}:1: server.defaultAgent: no file has an agent \"{name}\", it has to be registered: {right}",
            file.display()
        );
        assert_eq!(fleet.workspace.warnings, [warning]);
    }
}
