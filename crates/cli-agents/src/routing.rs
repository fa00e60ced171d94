//! Routing by difficulty: which program (worker) does a task, by its text or by the profile that the caller names.

use super::settings::Worker;

/// The programs of one agent.
#[derive(Clone)]
pub enum Workers {
    One(Worker),
    ByDifficulty(Box<ByDifficulty>),
}

/// A program for each difficulty.
#[derive(Clone)]
pub struct ByDifficulty {
    pub complex: Worker,
    pub mid: Worker,
    pub routine: Worker,
    /// Decides the difficulty of a task.
    pub classifier: Classifier,
}

/// Tells from its text how hard a task is. Keywords are looked for anywhere in it and in any case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classifier {
    complex: Vec<String>,
    routine: Vec<String>,
}

/// How hard a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difficulty {
    /// Needs thought, or a wide view.
    Complex,
    Mid,
    /// Can be done without thought.
    Routine,
}

/// A text longer than this is taken for a hard task.
const LONG: usize = 1_500;

/// Separated by bars: some end with a space, so that "design" is a word of its own.
const COMPLEX_KEYWORDS: &str =
    "refactor|architecture|architect|migrate|migration|debug|security|across the codebase|redesign|rewrite|design ";
const ROUTINE_KEYWORDS: &str =
    "rename|reformat|format |typo|add a comment|docstring|lint|remove unused|fix indentation";

impl Default for Classifier {
    fn default() -> Self {
        Self::new(None, None)
    }
}

impl Classifier {
    /// With keywords of hard and of routine tasks; the usual ones where none are given.
    #[must_use]
    pub fn new(complex: Option<&[String]>, routine: Option<&[String]>) -> Self {
        let lower = |given: Option<&[String]>, usual: &str| match given {
            Some(given) => given.iter().map(|keyword| keyword.to_lowercase()).collect(),
            None => usual.split('|').map(str::to_owned).collect(),
        };
        Self { complex: lower(complex, COMPLEX_KEYWORDS), routine: lower(routine, ROUTINE_KEYWORDS) }
    }

    /// How hard a task looks. A hard task that is routine too is hard.
    #[must_use]
    pub fn classify(&self, text: &str) -> Difficulty {
        let lower = text.to_lowercase();
        let has = |keywords: &[String]| keywords.iter().any(|keyword| lower.contains(keyword));
        if has(&self.complex) || text.chars().count() > LONG {
            Difficulty::Complex
        } else if has(&self.routine) {
            Difficulty::Routine
        } else {
            Difficulty::Mid
        }
    }
}

impl Difficulty {
    /// A difficulty by its name, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Complex, Self::Mid, Self::Routine].into_iter().find(|known| known.name().eq_ignore_ascii_case(name))
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Complex => "COMPLEX",
            Self::Mid => "MID",
            Self::Routine => "ROUTINE",
        }
    }
}

impl Workers {
    /// Which program does a task: `requested` by its caller, else as the conversation `began`, else by how its text
    /// looks. Says the difficulty where that decides. A profile that is no difficulty is ignored: it may be meant for
    /// another agent.
    pub(super) fn choose(
        &self,
        requested: Option<&str>,
        began: Option<&str>,
        text: &str,
    ) -> (&Worker, Option<Difficulty>) {
        match self {
            Self::One(worker) => (worker, None),
            Self::ByDifficulty(workers) => {
                let said = requested.and_then(Difficulty::named).or_else(|| began.and_then(Difficulty::named));
                let difficulty = said.unwrap_or_else(|| workers.classifier.classify(text));
                let worker = match difficulty {
                    Difficulty::Complex => &workers.complex,
                    Difficulty::Mid => &workers.mid,
                    Difficulty::Routine => &workers.routine,
                };
                (worker, Some(difficulty))
            }
        }
    }

    /// All of them.
    pub fn all(&self) -> Vec<&Worker> {
        match self {
            Self::One(worker) => vec![worker],
            Self::ByDifficulty(workers) => vec![&workers.complex, &workers.mid, &workers.routine],
        }
    }
}
