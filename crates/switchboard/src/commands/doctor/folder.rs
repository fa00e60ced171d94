//! Whether an account can work in a folder, as far as owners and modes say.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use switchboard_cli_agents::process::User;

use super::finding::Finding;

const WRITE: u32 = 0o2;
const ENTER: u32 = 0o1;

pub(super) fn look(key: &str, folder: &Path, user: Option<&User>) -> Finding {
    let shown = folder.display();
    match folder.metadata() {
        Err(error) => {
            return Finding::problem(
                format!("{key}: {shown} cannot be used: {error}"),
                format!("create it, or correct {key}"),
            );
        }
        Ok(found) if !found.is_dir() => {
            return Finding::problem(format!("{key}: {shown} is not a folder"), format!("name a folder as {key}"));
        }
        Ok(_) => {}
    }
    let who = user.map_or_else(|| "this account".to_owned(), |user| format!("user {}", user.name));
    let closed = folder.ancestors().find(|ancestor| !may(ancestor, user, ENTER));
    if let Some(closed) = closed {
        let text = format!("{key}: {who} may not enter {}, so that it cannot work in {shown}", closed.display());
        return Finding::problem(text, "let the account in (chmod, chown), or name a folder that it may enter");
    }
    if !may(folder, user, WRITE) {
        let text = format!("{key}: {who} may not write in {shown}: it can look and change nothing");
        return Finding::warning(text, "give the folder to the account (chown), if it is to change something");
    }
    Finding::ok(format!("{key}: {who} can work in {shown}"))
}

/// Whether the mode of a folder allows it.
fn may(folder: &Path, user: Option<&User>, wanted: u32) -> bool {
    let Ok(found) = folder.metadata() else { return false };
    let (uid, is_in_group) = match user {
        Some(user) => (user.uid, user.groups.contains(&found.gid()) || user.gid == found.gid()),
        None => (rustix::process::geteuid().as_raw(), is_in_group(found.gid())),
    };
    let granted = if uid == 0 {
        return true;
    } else if found.uid() == uid {
        found.mode() >> 6
    } else if is_in_group {
        found.mode() >> 3
    } else {
        found.mode()
    };
    granted & wanted == wanted
}

fn is_in_group(group: u32) -> bool {
    let groups = rustix::process::getgroups().unwrap_or_default();
    rustix::process::getegid().as_raw() == group || groups.iter().any(|own| own.as_raw() == group)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::finding::Level;
    use super::*;

    fn stranger() -> User {
        User { uid: 4_000_000, gid: 4_000_000, groups: vec![4_000_000], home: "/".into(), name: "stranger".to_owned() }
    }

    #[test]
    fn a_folder_is_as_open_as_its_mode_and_those_above_it_say() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("inner");
        std::fs::create_dir(&folder).unwrap();
        let mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        let level = |user: Option<&User>| look("cwd", &folder, user).level;
        assert_eq!(level(None), Level::Ok);
        mode(outer.path(), 0o700);
        mode(&folder, 0o777);
        let closed = look("cwd", &folder, Some(&stranger()));
        assert_eq!(closed.level, Level::Problem);
        assert!(closed.text.contains(&format!("may not enter {}", outer.path().display())), "{closed:?}");
        mode(outer.path(), 0o711);
        assert_eq!(level(Some(&stranger())), Level::Ok);
        mode(&folder, 0o755);
        assert_eq!(level(Some(&stranger())), Level::Warning);
        let gid = folder.metadata().unwrap().gid();
        mode(&folder, 0o770);
        assert_eq!(level(Some(&User { groups: vec![gid], ..stranger() })), Level::Ok);
        assert_eq!(level(Some(&stranger())), Level::Problem);
    }
}
