//! The job types that come with Rowmill, and the register of all there are.

mod import;
mod validate;

#[cfg(test)]
mod import_tests;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use import::Import;
pub use validate::Validate;

use crate::ports::RecordStore;
use crate::processor::JobType;

/// The register of job types.
#[derive(Clone)]
pub struct JobTypes(BTreeMap<&'static str, Arc<dyn JobType>>);

impl JobTypes {
    /// All job types. A new one is one line here.
    ///
    /// `records` is where `import` writes; a function that only checks params and never processes has none.
    pub fn built_in(records: Option<Arc<dyn RecordStore>>) -> Self {
        Self::of([Arc::new(Import::new(records)) as Arc<dyn JobType>, Arc::new(Validate)])
    }

    /// A register of these types.
    pub fn of(types: impl IntoIterator<Item = Arc<dyn JobType>>) -> Self {
        Self(types.into_iter().map(|job_type| (job_type.name(), job_type)).collect())
    }

    /// The type of this name, if there is one.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn JobType>> {
        self.0.get(name)
    }

    /// The names of all types, in order.
    pub fn names(&self) -> Vec<&'static str> {
        self.0.keys().copied().collect()
    }
}
