//! How children are started, and what is said when they are not.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use switchboard_cli_agents::process::{MARKER, Output, User};

use crate::fixture::{Fixture, LIMITS, all, alone, block_on, line};

#[tokio::test]
async fn a_child_gets_its_words_its_variables_and_its_place_and_nothing_else() {
    let fixture = Fixture::new();
    let mut command = fixture.script(r#"pwd; printf '%s|' "$0" "$@"; echo; env | sort"#);
    command.args.extend(["--", "; rm -rf $HOME", "a b\n'c'", "", "-x"].map(Into::into));
    command.env.push(("KEY".into(), "$(value)".into()));
    command.env.push((MARKER.into(), "forged".into()));
    let mut child = fixture.children.spawn(command, LIMITS).await.unwrap();
    let said = all(&mut child).await;
    let lines: Vec<&str> =
        said.iter().filter_map(|said| if let Output::Line(line) = said { Some(line.as_str()) } else { None }).collect();
    let folder = fs::canonicalize(fixture.folder.path()).unwrap();
    let [pwd, words, more_words, key, path, shell_pwd, marker] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(*pwd, folder.to_str().unwrap());
    assert_eq!([*words, *more_words], ["--|; rm -rf $HOME|a b", "'c'||-x|"]);
    assert_eq!([*key, *path], ["KEY=$(value)", "PATH=/usr/bin:/bin"]);
    assert!(shell_pwd.starts_with("PWD="), "the shell's own: {shell_pwd}");
    let marker = marker.strip_prefix("SWITCHBOARD_CHILD=").unwrap();
    assert!(marker.ends_with(".1") && !marker.contains("forged"), "{marker}");
}

#[tokio::test]
async fn a_child_leads_its_own_session_and_group_and_broken_pipes_end_it() {
    let fixture = Fixture::new();
    let mut child = fixture.sh("cut -d' ' -f5,6 /proc/$$/stat; grep SigIgn /proc/$$/status").await;
    let pid = child.pid();
    assert_eq!(child.next().await, line(format!("{pid} {pid}")));
    let Output::Line(ignored) = child.next().await else { panic!("it says nothing") };
    let ignored = u64::from_str_radix(ignored.strip_prefix("SigIgn:\t").unwrap(), 16).unwrap();
    assert_eq!(ignored & 1 << (13 - 1), 0, "SIGPIPE is ignored by us, and not by it");
}

#[test]
fn no_file_of_ours_is_open_in_a_child() {
    alone("start::no_file_of_ours_is_open_in_a_child", || {
        block_on(async {
            let fixture = Fixture::exclusive();
            let secret = fixture.folder.path().join("secret");
            let _open = fs::File::create(&secret).unwrap();
            let _socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let mut others = Vec::new();
            for _ in 0..3 {
                others.push(fixture.sh("read wait").await);
            }
            // Inherited by us, and not closed when we become another program, as a careless starter leaves it.
            let (inherited, _other) = std::io::pipe().unwrap();
            rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
            let mut child = fixture.sh("exec ls -l /proc/self/fd").await;
            let said = all(&mut child).await;
            let files = said.iter().filter(|said| matches!(said, Output::Line(line) if line.contains(" -> ")));
            let files: Vec<&Output> = files.collect();
            let is_pipe = |file: &&&Output| matches!(file, Output::Line(line) if line.contains(" -> pipe:"));
            // The fourth is the folder that is listed.
            assert_eq!((files.len(), files.iter().filter(is_pipe).count()), (4, 3), "{said:?}");
        });
    });
}

#[tokio::test]
async fn what_cannot_be_started_is_told_in_plain_words() {
    let fixture = Fixture::new();
    let folder = fixture.folder.path().to_owned();
    fs::write(folder.join("text"), "no program").unwrap();
    let told = |program: &str| {
        let mut command = fixture.script("");
        command.program = folder.join(program);
        fixture.refused(command)
    };
    let missing = told("missing").await.to_string();
    assert!(missing.contains("there is no program") && missing.contains("/missing: install it"), "{missing}");
    let text = told("text").await.to_string();
    assert!(text.contains("chmod +x makes it one"), "{text}");
    assert!(told("text/below").await.to_string().contains("there is no program"));
    assert!(told("").await.to_string().contains("chmod +x"), "a directory");

    let mut relative = fixture.script("");
    relative.program = "sh".into();
    assert!(fixture.refused(relative).await.to_string().contains("no absolute path"));
    let mut nowhere = fixture.script("");
    nowhere.cwd = folder.join("missing");
    assert!(fixture.refused(nowhere).await.to_string().contains("missing cannot be entered"));
    let mut zero = fixture.script("");
    zero.args.push("a\0b".into());
    assert!(fixture.refused(zero).await.to_string().starts_with("/bin/sh could not be started: "));
    assert_eq!((fixture.children.running(), fixture.entries()), (0, 0));
}

#[tokio::test]
async fn a_program_that_the_system_will_not_run_says_so_in_its_exit() {
    let fixture = Fixture::new();
    let broken = fixture.folder.path().join("broken");
    fs::write(&broken, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = fixture.script("");
    command.program = broken;
    let mut child = fixture.children.spawn(command, LIMITS).await.unwrap();
    let Output::Ended(exit) = child.next().await else { panic!("it has not ended") };
    assert_eq!(exit.code, Some(127));
    assert!(exit.stderr.starts_with("switchboard exec-child: cannot run /"), "{}", exit.stderr);
    assert_eq!(exit.stderr.lines().count(), 1);
}

#[tokio::test]
async fn another_user_is_root_s_to_choose() {
    let fixture = Fixture::new();
    let is_root = rustix::process::geteuid().is_root();
    let user = User::find(if is_root { "nobody" } else { "root" }).unwrap();
    let mut command = fixture.script("id -u; id -g; grep -E 'Groups|CapEff' /proc/$$/status; cat; echo end");
    command.user = Some(user.clone());
    command.cwd = "/".into();
    if !is_root {
        let error = fixture.refused(command).await.to_string();
        assert!(error.contains("running as user \"root\" needs root"), "{error}");
        return;
    }
    let mut child = fixture.children.spawn(command, LIMITS).await.unwrap();
    assert_eq!(child.next().await, line(user.uid.to_string()));
    assert_eq!(child.next().await, line(user.gid.to_string()));
    let groups: Vec<String> = user.groups.iter().map(u32::to_string).collect();
    assert_eq!(child.next().await, line(format!("Groups:\t{} ", groups.join(" "))));
    assert_eq!(child.next().await, line("CapEff:\t0000000000000000"), "nothing of root's is left");
    child.close_input();
    assert_eq!(child.next().await, line("end"));
    assert!(matches!(child.next().await, Output::Ended(exit) if exit.code == Some(0)));
}

#[tokio::test]
async fn a_start_that_no_caller_waits_for_leaves_nothing() {
    let fixture = Fixture::new();
    for _ in 0..20 {
        let start = fixture.children.spawn(fixture.script("sleep 3600"), LIMITS);
        let _ = tokio::time::timeout(std::time::Duration::from_micros(1), start).await;
    }
    fixture.children.close().await;
    assert_eq!((fixture.children.running(), fixture.entries()), (0, 0));
    let late = fixture.refused(fixture.script("true")).await;
    assert_eq!(late.to_string(), "no program is started any more: the server is stopping");
}

#[test]
fn root_is_found_and_no_other_user_is_made_up() {
    let root = User::find("root").unwrap();
    assert_eq!((root.uid, root.gid, root.name.as_str()), (0, 0, "root"));
    assert!(root.groups.contains(&0));
    assert!(root.home.is_absolute());
    for name in ["no-such-user-here", "", "a\0b"] {
        let error = User::find(name).unwrap_err();
        assert!(error.to_string().contains("create the user, or correct the name"), "{error}");
    }
}
