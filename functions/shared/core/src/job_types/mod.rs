//! The built-in job types, and the register of all job types.

// The built-in job types: the module of each, and its entry in the register below.
mod delete;
mod export;
mod import;
mod prune;
mod transform;
mod undo;
mod validate;

fn built_in(records: Option<Arc<dyn RecordStore>>) -> Vec<Arc<dyn JobType>> {
    vec![
        Arc::new(delete::delete(records.clone())),
        Arc::new(Export),
        Arc::new(Import::new(records.clone())),
        Arc::new(prune::prune(records.clone())),
        Arc::new(Transform),
        Arc::new(undo::undo(records)),
        Arc::new(Validate),
    ]
}

mod change_records;
mod growing_row;
mod record_rewrite;
mod row_writer;
mod table_type;
pub mod target_type;

#[cfg(test)]
mod growth_tests;
#[cfg(test)]
mod import_tests;
#[cfg(test)]
mod output_tests;
#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod test_spec;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use delete::{DELETE, DELETED_DATASET};
pub use export::Export;
pub use import::{EXPIRES_IN_PARAM, IMPORT, Import, other_expiry, written_dataset};
pub use prune::{NotPrunable, PRUNE, prunable_dataset};
pub use record_rewrite::JOB_GUID;
pub use table_type::{TableKey, TableType};
pub use target_type::TargetType;
pub use transform::Transform;
pub use undo::{NotUndoable, UNDO, undoable_dataset};
pub use validate::Validate;

use crate::model::task::TaskTerms;
use crate::ports::RecordStore;
use crate::ports::processor::{InputKind, JobType, ParamsError};

/// The problem of a request that names a type of which other requests create the jobs.
pub fn by_path(job_type: &str) -> ParamsError {
    let instead = match job_type {
        UNDO => "send `POST /api/jobs/{jobGuid}/undo` with the name of the job to undo",
        PRUNE => "send `POST /api/jobs/{jobGuid}/prune` with the name of the import",
        _ => "send `DELETE /api/datasets/{dataset}` with the name of the dataset to delete",
    };
    ParamsError::new("jobType", format!("must not be `{job_type}`: {instead}."))
}

/// The register of job types.
#[derive(Clone)]
pub struct JobTypes(BTreeMap<String, Arc<dyn JobType>>);

impl JobTypes {
    /// All built-in job types.
    ///
    /// `import` writes to `records`. Functions that only check params pass `None`.
    pub fn built_in(records: Option<Arc<dyn RecordStore>>) -> Self {
        Self::of(built_in(records))
    }

    pub fn of(types: impl IntoIterator<Item = Arc<dyn JobType>>) -> Self {
        Self(types.into_iter().map(|job_type| (job_type.name().to_owned(), job_type)).collect())
    }

    #[must_use]
    pub fn with(mut self, types: impl IntoIterator<Item = Arc<dyn JobType>>) -> Self {
        self.0.extend(types.into_iter().map(|job_type| (job_type.name().to_owned(), job_type)));
        self
    }

    pub fn get(&self, name: &str) -> Option<&Arc<dyn JobType>> {
        self.0.get(name)
    }

    /// The terms of the tasks of a type, if its chunks are tasks.
    pub fn terms(&self, name: &str) -> Option<TaskTerms> {
        self.get(name)?.tasks()
    }

    /// The names of all types, sorted.
    pub fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// The names of the types that take no file, sorted; without those that no request names.
    pub fn names_without_file(&self) -> Vec<&str> {
        let without = self.0.iter().filter(|(_, job_type)| {
            let input = job_type.input();
            !input.takes_files() && input != InputKind::Keys
        });
        without.map(|(name, _)| name.as_str()).collect()
    }
}
