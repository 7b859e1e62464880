//! `delete`: deletes the records of a dataset.
//!
//! Its items are the keys of all records that are stored, as the split finds them. What a record holds from before the
//! job is erased, also what an undo would bring back. What a later job has written stays.

use std::sync::Arc;

use super::by_path;
use super::change_records::Rewrite;
use super::record_rewrite::RecordRewrite;
use crate::model::records::Writer;
use crate::model::spec::{KeysOf, Source, Spec};
use crate::model::stored_record::{Deleting, StoredRecord};
use crate::ports::RecordStore;
use crate::ports::processor::{InputKind, ItemProcessor, JobType, ParamsError};

/// The name of the job type.
pub const DELETE: &str = "delete";

/// The param that names the dataset.
pub const DELETED_DATASET: &str = "dataset";

/// The job type `delete`. A request to delete a dataset creates it.
///
/// | param | meaning |
/// |---|---|
/// | `dataset` | the dataset whose records it deletes |
pub struct Delete {
    records: Option<Arc<dyn RecordStore>>,
}

impl Delete {
    /// The type that changes this store. Without a store (`None`) it can only check params.
    pub fn new(records: Option<Arc<dyn RecordStore>>) -> Self {
        Self { records }
    }
}

impl JobType for Delete {
    fn name(&self) -> &str {
        DELETE
    }

    fn params(&self) -> &'static [&'static str] {
        &[DELETED_DATASET]
    }

    fn input(&self) -> InputKind {
        InputKind::Keys
    }

    fn prepare(&self, spec: &Spec) -> Result<Arc<dyn ItemProcessor>, ParamsError> {
        let Source::Dataset { dataset, keys_of: Some(KeysOf::Stored) } = &spec.source else {
            return Err(by_path(DELETE));
        };
        let by = Writer::new(spec.created_at, spec.job_guid);
        let rule = move |stored: Option<&StoredRecord>| match stored.map(|stored| stored.delete(by)) {
            Some(Deleting::Remove) => Rewrite::Remove(None),
            Some(Deleting::Forget(record)) => Rewrite::Store(record, None),
            Some(Deleting::Later) | None => Rewrite::Keep(None),
        };
        Ok(RecordRewrite::of(self.records.clone(), spec, dataset, None, Box::new(rule)))
    }
}
