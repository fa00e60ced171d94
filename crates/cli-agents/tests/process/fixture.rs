//! Where children play: a folder of their own, a few words to start them with, and a look at what is left.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use switchboard_cli_agents::process::{
    Child, ChildCommand, Children, ChildrenOptions, Orphans, Output, OutputLimits, SpawnError,
};
use tempfile::TempDir;

/// Short enough for tests, and long enough for a shell to obey.
pub(crate) const GRACE: Duration = Duration::from_millis(400);

/// A hang guard: what takes longer waits for something that does not come.
pub(crate) const LONGEST: Duration = Duration::from_secs(300);

pub(crate) const LIMITS: OutputLimits = OutputLimits { line: 64 << 10, stderr: 4 << 10, output: 64 << 20 };

/// The variable that tells a process which scene it was started for.
const SCENE: &str = "SWITCHBOARD_TEST_SCENE";

/// Children, and a folder to tell us things in.
pub(crate) struct Fixture {
    pub(crate) children: Children,
    pub(crate) folder: TempDir,
}

impl Fixture {
    /// One of many in this process.
    pub(crate) fn new() -> Self {
        Self::with(false, GRACE)
    }

    /// One whose children have all the time they need to do as they are asked, however busy the machine is.
    pub(crate) fn patient() -> Self {
        Self::with(false, LONGEST)
    }

    /// The only one in this process, which [`alone`] has started for it.
    pub(crate) fn exclusive() -> Self {
        Self::with(true, GRACE)
    }

    fn with(exclusive: bool, grace: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (children, orphans) = open(&folder.path().join("ledger"), exclusive, grace);
        assert_eq!(orphans, Orphans::default());
        Self { children, folder }
    }

    /// What a shell is to do, in the folder.
    pub(crate) fn script(&self, script: &str) -> ChildCommand {
        script_in(self.folder.path(), script)
    }

    pub(crate) async fn sh(&self, script: &str) -> Child {
        self.sh_with(script, LIMITS).await
    }

    pub(crate) async fn sh_with(&self, script: &str, limits: OutputLimits) -> Child {
        self.children.spawn(self.script(script), limits).await.unwrap()
    }

    pub(crate) async fn refused(&self, command: ChildCommand) -> SpawnError {
        self.children.spawn(command, LIMITS).await.err().unwrap()
    }

    /// The number that a script has written to a file in the folder, once it has.
    pub(crate) fn pid(&self, file: &str) -> i32 {
        pid_in(self.folder.path(), file)
    }

    /// How many runs are written down.
    pub(crate) fn entries(&self) -> usize {
        entries_in(&self.folder.path().join("ledger"))
    }
}

pub(crate) fn open(ledger: &Path, exclusive: bool, grace: Duration) -> (Children, Orphans) {
    let helper = vec![env!("CARGO_BIN_EXE_exec-child").into(), "exec-child".into()];
    Children::open(ChildrenOptions { helper, ledger: ledger.to_owned(), grace, exclusive }).unwrap()
}

pub(crate) fn script_in(folder: &Path, script: &str) -> ChildCommand {
    ChildCommand {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: folder.to_owned(),
        user: None,
        input: true,
        label: "test".to_owned(),
    }
}

pub(crate) fn pid_in(folder: &Path, file: &str) -> i32 {
    let place = folder.join(file);
    let read = || fs::read_to_string(&place).ok().filter(|text| text.ends_with('\n'))?.trim().parse().ok();
    let mut pid: Option<i32> = None;
    until(file, || {
        pid = read();
        pid.is_some()
    });
    pid.unwrap()
}

pub(crate) fn entries_in(ledger: &Path) -> usize {
    fs::read_dir(ledger).unwrap().filter(|file| file.as_ref().unwrap().file_name() != "name").count()
}

/// Waits for something that happens by itself, and soon.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONGEST, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Everything a child says until it ends, which comes last.
pub(crate) async fn all(child: &mut Child) -> Vec<Output> {
    let mut said = Vec::new();
    loop {
        said.push(tokio::time::timeout(LONGEST, child.next()).await.unwrap());
        if matches!(said.last(), Some(Output::Ended(_))) {
            return said;
        }
    }
}

pub(crate) fn line(text: impl Into<String>) -> Output {
    Output::Line(text.into())
}

/// The state letter of a process, if there is one.
pub(crate) fn state(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// Whether something of it runs. Whether a zombie goes away is up to the process that is its parent now.
pub(crate) fn is_alive(pid: i32) -> bool {
    state(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

/// The children of this process, zombies included, but for the guard.
pub(crate) fn own_children() -> Vec<i32> {
    children_of(std::process::id()).into_iter().filter(|pid| !is_guard(*pid)).collect()
}

/// The guard of a server.
pub(crate) fn guard_of(server: u32) -> Option<i32> {
    children_of(server).into_iter().find(|pid| is_guard(*pid))
}

fn is_guard(pid: i32) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).any(|word| word == b"guard")
}

fn children_of(parent: u32) -> Vec<i32> {
    let parent = parent.to_string();
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_child = |pid: &i32| {
        let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat).into_owned();
        stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)) == Some(parent.as_str())
    };
    pids.filter(is_child).collect()
}

/// What this process has open.
pub(crate) fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Plays a scene in a process of its own, because it is about the process: its children, its files, its death. The
/// name is that of the test that calls this.
pub(crate) fn alone(name: &str, scene: impl FnOnce()) {
    if std::env::var_os(SCENE).is_some_and(|wanted| wanted == name) {
        return scene();
    }
    let output = scene_command(name).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("1 passed"), "no test is called {name}");
}

/// This program once more, for one scene.
pub(crate) fn scene_command(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture"]).env(SCENE, name);
    command
}

pub(crate) fn block_on(scene: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().unwrap().block_on(scene);
}
