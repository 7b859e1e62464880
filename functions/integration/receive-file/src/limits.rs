//! The settings of the inbox.

use rowmill_core::model::ids::Owner;
pub use rowmill_settings::FileLimits;

rowmill_settings::settings! {
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct InboxSettings {
        /// The owner of a dropped file that names none.
        pub owner: String = Owner::LOCAL.to_owned(), "InboxOwner" in 1..=Owner::MAX_BYTES as u64;
    }
}
