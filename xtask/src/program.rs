//! Running other programs from the root of the checkout: with their output passed through, or passed through and
//! read line by line at the same time.

use anyhow::Context;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;

/// The root of the checkout, wherever the command was called from.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_path_buf()
}

/// The cargo that runs us, so that the toolchain stays the same.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// The same in a folder that is a workspace of its own and keeps its build apart, under the same name.
pub(crate) fn cargo_in(folder: &str, arguments: &[&str]) -> Command {
    let mut command = cargo(arguments);
    command.current_dir(root().join(folder)).env("CARGO_TARGET_DIR", root().join("target").join(folder));
    command
}

/// The same under `bench/`.
pub(crate) fn bench_cargo(arguments: &[&str]) -> Command {
    cargo_in("bench", arguments)
}

/// Builds every target of the workspace as the tests are built, and returns the folder with the programs. One build
/// serves every step: a build of some packages alone enables other features of their dependencies, and compiles most of
/// the tree again.
pub(crate) fn build_workspace() -> anyhow::Result<PathBuf> {
    run(&mut cargo(&["build", "--workspace", "--all-targets"]))?;
    Ok(root().join("target/debug"))
}

/// Runs to the end; anything but success is an error that names the command line.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let line = display(command);
    println!("$ {line}");
    let status = command.status().with_context(|| format!("cannot start {line}"))?;
    anyhow::ensure!(status.success(), "{line} ended with {status}");
    Ok(())
}

/// Whether the command exists and says that all is well. Its output is not shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// What the command prints. Its errors go to the terminal.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let line = display(command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start {line}"))?;
    anyhow::ensure!(output.status.success(), "{line} ended with {}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("{line} printed something that is not text"))
}

/// Runs to the end, shows every line and hands it to `read` as well. Returns whether the command succeeded.
pub(crate) fn watch(command: &mut Command, mut read: impl FnMut(&str)) -> anyhow::Result<bool> {
    let line = display(command);
    println!("$ {line}");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {line}"))?;
    let (sender, lines) = mpsc::channel();
    let readers = [
        child.stdout.take().map(|output| forward(output, sender.clone())),
        child.stderr.take().map(|output| forward(output, sender)),
    ];
    for text in lines {
        println!("{text}");
        read(&text);
    }
    for reader in readers.into_iter().flatten() {
        anyhow::ensure!(reader.join().is_ok(), "the output of {line} could not be read");
    }
    Ok(child.wait().with_context(|| format!("cannot wait for {line}"))?.success())
}

fn forward(output: impl Read + Send + 'static, sender: mpsc::Sender<String>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        // Bytes, not text: a test may print anything.
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    })
}

fn display(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
