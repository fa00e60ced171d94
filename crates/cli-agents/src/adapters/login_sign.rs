//! Local evidence that a program is logged in, found without a network request.

/// One sign that a program is logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginSign {
    /// A variable that the child sees and that is not empty. Its value is a secret.
    Variable(String),
    /// A file that the program writes at login. Its content is a secret.
    File {
        /// Where it may be: a variable that names a folder, and the path below that. The first whose variable is set
        /// counts.
        places: Vec<(String, String)>,
        /// What it must hold: the value at this JSON pointer must be there and not be empty. Without it, the file alone
        /// is the sign.
        holds: Option<String>,
    },
}

impl LoginSign {
    pub(crate) fn variables(names: &[&str]) -> Vec<Self> {
        names.iter().map(|name| Self::Variable((*name).to_owned())).collect()
    }

    /// A file in the first of these places whose variable is set, which holds something at a pointer.
    pub(crate) fn file(places: &[(&str, &str)], holds: Option<&str>) -> Self {
        let places = places.iter().map(|(variable, path)| ((*variable).to_owned(), (*path).to_owned())).collect();
        Self::File { places, holds: holds.map(str::to_owned) }
    }
}
