//! The highest priority that each owner may use.

use rowmill_core::model::owner_priorities::{self, OwnerPriorities};

use super::StartError;

crate::settings! {
    /// The highest priority that each owner may use.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct OwnerPrioritySettings {
        /// JSON: see `rowmill_core::model::owner_priorities`.
        pub json: String = owner_priorities::DEFAULT.to_owned(), "OwnerPriorities";
    }
}

impl OwnerPrioritySettings {
    /// The priorities, parsed.
    pub fn priorities(&self) -> Result<OwnerPriorities, StartError> {
        Ok(OwnerPriorities::parse(&self.json)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_can_be_parsed() {
        let priorities = OwnerPrioritySettings::default().priorities().unwrap();
        assert_eq!(priorities, OwnerPriorities::default());
    }
}
