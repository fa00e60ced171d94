//! Whether a directory is on a network file system, where the locks and the order of writes that the database relies on
//! are not what they are on a disk.

use std::path::{Path, PathBuf};

/// File systems whose storage is another machine's.
const KINDS: [&str; 19] = [
    "9p",
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "fuse.ceph",
    "fuse.davfs",
    "fuse.gcsfuse",
    "fuse.glusterfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
    "gfs2",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "smb3",
    "smbfs",
];

/// The kind of network file system a directory is on; none if it is local or unknown.
pub(super) fn kind_of(directory: &Path) -> Option<String> {
    let directory = directory.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let kind = kind_in(&mounts, &directory)?;
    KINDS.contains(&kind.as_str()).then_some(kind)
}

/// The kind of the mount a directory is under: the deepest, and of several on one mount point the last.
fn kind_in(mounts: &str, directory: &Path) -> Option<String> {
    let mut best: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        let Some((before, after)) = line.split_once(" - ") else {
            continue;
        };
        let Some(point) = before.split(' ').nth(4).map(unescaped) else {
            continue;
        };
        let kind = after.split(' ').next().unwrap_or_default();
        let depth = point.components().count();
        if directory.starts_with(&point) && best.is_none_or(|(deepest, _)| depth >= deepest) {
            best = Some((depth, kind));
        }
    }
    best.map(|(_, kind)| kind.to_owned())
}

/// The system writes spaces and the like in a path as octal numbers.
fn unescaped(point: &str) -> PathBuf {
    let plain = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    let text = plain.iter().fold(point.to_owned(), |text, (number, letter)| text.replace(number, letter));
    PathBuf::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_decides() {
        let mounts = "27 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
            90 27 0:50 / /home/my\\040files rw shared:1 - nfs4 host:/files rw\n\
            91 90 8:2 / /home/my\\040files/local rw - xfs /dev/sdb1 rw\n";
        let kind = |path: &str| kind_in(mounts, Path::new(path)).unwrap();
        assert_eq!(kind("/var/data"), "ext4");
        assert_eq!(kind("/home/my files/data"), "nfs4");
        assert_eq!(kind("/home/my filesystem"), "ext4");
        assert_eq!(kind("/home/my files/local/data"), "xfs");
    }
}
