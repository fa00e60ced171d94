//! All ceremonies by their ids. A file hides the registration of its id, which comes back when the file goes.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::RwLock;
use switchboard_engine::CallerId;

use super::definition::Definition;

/// A ceremony.
#[derive(Debug)]
pub(crate) struct Ceremony {
    pub(crate) definition: Definition,
    /// Who its runs belong to.
    pub(crate) owner: CallerId,
    pub(crate) source: Source,
}

/// Where a ceremony comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    File,
    Registration { version: u64 },
}

/// All ceremonies.
#[derive(Default)]
pub(crate) struct CeremonyTable(RwLock<BTreeMap<Box<str>, Entry>>);

/// What there is under an id.
#[derive(Default)]
struct Entry {
    file: Option<Arc<Ceremony>>,
    registered: Option<Arc<Ceremony>>,
}

impl Entry {
    fn in_force(&self) -> Option<&Arc<Ceremony>> {
        self.file.as_ref().or(self.registered.as_ref())
    }
}

impl CeremonyTable {
    /// The ceremony that is in force.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<Ceremony>> {
        self.0.read().get(id)?.in_force().cloned()
    }

    /// The registration of an id, whether a file hides it or not.
    pub(super) fn registered(&self, id: &str) -> Option<Arc<Ceremony>> {
        self.0.read().get(id)?.registered.clone()
    }

    pub(super) fn is_in_file(&self, id: &str) -> bool {
        self.0.read().get(id).is_some_and(|entry| entry.file.is_some())
    }

    /// Whether a file hides a registration.
    pub(crate) fn is_hiding(&self, id: &str) -> bool {
        self.0.read().get(id).is_some_and(|entry| entry.file.is_some() && entry.registered.is_some())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.read().len()
    }

    /// How many registrations a caller has.
    pub(super) fn count_of(&self, owner: &CallerId) -> usize {
        let table = self.0.read();
        table.values().filter_map(|entry| entry.registered.as_ref()).filter(|it| it.owner == *owner).count()
    }

    pub(super) fn ids_of_files(&self) -> Vec<String> {
        let table = self.0.read();
        table.iter().filter(|(_, entry)| entry.file.is_some()).map(|(id, _)| id.to_string()).collect()
    }

    /// Those in force after an id, in order, as long as there is room for them.
    pub(crate) fn page(
        &self,
        after: &str,
        size: usize,
        is_wanted: impl Fn(&Ceremony) -> bool,
    ) -> (Vec<Arc<Ceremony>>, bool) {
        let table = self.0.read();
        let rest = table.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        let mut wanted = rest.filter_map(|(_, entry)| entry.in_force()).filter(|it| is_wanted(it));
        let page: Vec<Arc<Ceremony>> = wanted.by_ref().take(size).cloned().collect();
        let is_more = wanted.next().is_some();
        (page, is_more)
    }

    pub(super) fn set_file(&self, id: &str, file: Option<Arc<Ceremony>>) {
        self.change(id, |entry| entry.file = file);
    }

    pub(super) fn set_registered(&self, id: &str, registered: Option<Arc<Ceremony>>) {
        self.change(id, |entry| entry.registered = registered);
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Entry)) {
        let mut table = self.0.write();
        let mut entry = table.remove(id).unwrap_or_default();
        change(&mut entry);
        if entry.in_force().is_some() {
            table.insert(id.into(), entry);
        }
    }
}
