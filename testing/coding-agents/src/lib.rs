//! What a test with the real command-line agents needs: where they are installed, homes in which they speak to the fake
//! model and to nothing else, and a user who is not root.

mod agent;
pub mod homes;
mod installed;
mod user;

pub use agent::Agent;
pub use installed::Installed;
pub use user::User;
