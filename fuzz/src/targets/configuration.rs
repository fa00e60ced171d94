//! A workspace folder: `switchboard.yaml`, then a line `%%%`, then `agents.yaml`.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use switchboard_fleet::config::FleetConfig;
use switchboard_host::config::Overrides;
use tempfile::TempDir;

thread_local! {
    static FOLDER: OnceCell<TempDir> = const { OnceCell::new() };
}

/// Loads the folder. It is refused with at least one problem that says something, or it is loaded.
pub fn target(data: &[u8]) {
    let separator = b"\n%%%\n";
    let (settings, agents) = match data.windows(separator.len()).position(|window| window == separator) {
        Some(place) => (&data[..place], &data[place + separator.len()..]),
        None => (data, &[][..]),
    };
    let overrides = Overrides {
        environment: BTreeMap::from([("HOME".to_owned(), "/home/a".to_owned()), ("EMPTY".to_owned(), String::new())]),
        flags: Vec::new(),
    };
    FOLDER.with(|cell| {
        let folder = cell.get_or_init(|| folder().unwrap_or_else(|error| panic!("no temporary folder: {error}")));
        for (name, content) in [("switchboard.yaml", settings), ("agents.yaml", agents)] {
            let written = std::fs::write(folder.path().join(name), content);
            assert!(written.is_ok(), "cannot write {name}: {written:?}");
        }
        match FleetConfig::load(folder.path(), &overrides) {
            Ok(workspace) => assert!(!workspace.agents.is_empty()),
            Err(problems) => {
                assert!(!problems.0.is_empty());
                assert!(!problems.to_string().trim().is_empty());
            }
        }
    });
}

/// In memory where there is such a place: a disk would be most of the time.
fn folder() -> std::io::Result<TempDir> {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new())
}
