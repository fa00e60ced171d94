//! Folders under `target/` that are made from pins and kept until those change.

use anyhow::Context;
use std::path::Path;

/// Makes the directory anew with `make` unless it was made from the same pins. The stamp that says so comes last, so a
/// directory that was not finished is made again.
pub(crate) fn ensure(directory: &Path, pins: &str, make: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let stamp = directory.join("made-from");
    if std::fs::read_to_string(&stamp).is_ok_and(|made_from| made_from == pins) {
        return Ok(());
    }
    if directory.exists() {
        std::fs::remove_dir_all(directory).with_context(|| format!("cannot remove {}", directory.display()))?;
    }
    make()?;
    std::fs::write(&stamp, pins).with_context(|| format!("cannot write {}", stamp.display()))
}

pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

pub(crate) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_made_once_for_the_same_pins_and_anew_after_a_failure() -> anyhow::Result<()> {
        let parent = tempfile::tempdir()?;
        let directory = parent.path().join("made");
        let mut made = 0;
        for (pins, succeeds, expected) in [("a", false, 1), ("a", true, 2), ("a", true, 2), ("b", true, 3)] {
            let ended = ensure(&directory, pins, || {
                made += 1;
                std::fs::create_dir(&directory)?;
                anyhow::ensure!(succeeds, "no network");
                Ok(())
            });
            assert_eq!((ended.is_ok(), made), (succeeds, expected), "{pins}");
        }
        Ok(())
    }
}
