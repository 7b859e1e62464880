//! The settings of the inbox.

pub use rowmill_aws::settings::FileLimits;
use rowmill_core::model::ids::Owner;

rowmill_aws::settings! {
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct InboxSettings {
        /// The owner of a dropped file that names none.
        pub owner: String = Owner::LOCAL.to_owned(), "InboxOwner";
    }
}
