//! The user that a child runs as.

use std::ffi::CString;
use std::io;
use std::path::PathBuf;

use nix::unistd;

/// A user of this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub uid: u32,
    /// The number of the first group.
    pub gid: u32,
    pub groups: Vec<u32>,
    pub home: PathBuf,
    pub name: String,
}

/// Why there is no such user.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// No user has that name.
    #[error("there is no user {0:?} on this system: create the user, or correct the name")]
    Unknown(String),
    /// The system could not say.
    #[error("the system could not look up user {name:?}: {source}")]
    LookUp { name: String, source: io::Error },
}

impl User {
    /// Looks a user up by name.
    pub fn find(name: &str) -> Result<Self, UserError> {
        let unknown = || UserError::Unknown(name.to_owned());
        let failed = |error: nix::Error| UserError::LookUp { name: name.to_owned(), source: error.into() };
        // Some systems answer like this when no user has the name.
        let is_unknown = |error: &nix::Error| matches!(error, nix::Error::ENOENT | nix::Error::ESRCH);
        let user = match unistd::User::from_name(name) {
            Ok(user) => user.ok_or_else(unknown)?,
            Err(error) if is_unknown(&error) => return Err(unknown()),
            Err(error) => return Err(failed(error)),
        };
        let c_name = CString::new(name).map_err(|_| unknown())?;
        let groups = unistd::getgrouplist(&c_name, user.gid).map_err(failed)?;
        Ok(Self {
            uid: user.uid.as_raw(),
            gid: user.gid.as_raw(),
            groups: groups.into_iter().map(unistd::Gid::as_raw).collect(),
            home: user.dir,
            name: user.name,
        })
    }

    /// Whether this process already runs as that user, so that there is nothing to switch.
    pub(crate) fn is_current(&self) -> bool {
        rustix::process::geteuid().as_raw() == self.uid && rustix::process::getegid().as_raw() == self.gid
    }
}
