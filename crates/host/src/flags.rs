//! The flags of every program that hosts agents. They override the environment and the files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;

use crate::config::{Flag, Overrides, Problems, Workspace};

/// The flags of every command that needs the configuration. They stand above the environment and the files.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigFlags {
    /// Workspace folder, which holds switchboard.yaml and agents.yaml
    #[arg(long, value_name = "DIR", env = "SWITCHBOARD_WORKSPACE", default_value = ".")]
    pub workspace: PathBuf,

    /// Address to listen on (server.bind)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub bind: Option<String>,

    /// Data directory (store.dataDir)
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

impl ConfigFlags {
    /// Loads the settings of the workspace under these flags and this process's environment, and looks into the files
    /// they name. The agents of the workspace are not read: the program brings its own.
    pub fn load_settings(&self) -> Result<Workspace, Problems> {
        let workspace = Workspace::settings_only(&self.workspace, &self.overrides())?;
        workspace.check_files()?;
        Ok(workspace)
    }

    /// What overrides the files of the workspace: these flags and this process's environment.
    pub fn overrides(&self) -> Overrides {
        Overrides { environment: environment(), flags: self.flags() }
    }

    fn flags(&self) -> Vec<Flag> {
        let mut flags = Vec::new();
        if let Some(bind) = &self.bind {
            flags.push(Flag { flag: "--bind", key: "server.bind", value: bind.clone() });
        }
        if let Some(data_dir) = &self.data_dir {
            // A path on the command line is relative to the current folder, not to the workspace folder.
            let absolute = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.clone());
            flags.push(Flag { flag: "--data-dir", key: "store.dataDir", value: absolute.display().to_string() });
        }
        flags
    }
}

/// The environment as text. A name or value that is not Unicode gets replacement characters; the setting that reads it
/// then refuses it by name.
fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .collect()
}
