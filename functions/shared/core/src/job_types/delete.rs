//! `delete`: deletes the records of a dataset.
//!
//! Its items are the keys of all records that are stored, as the split finds them. What a record holds from before the
//! job is erased, also what an undo would bring back. What a later job has written stays.

use std::sync::Arc;

use super::change_records::Rewrite;
use super::record_rewrite::{OverKeys, Rule};
use crate::model::records::Writer;
use crate::model::spec::{KeysOf, Spec};
use crate::model::stored_record::Deleting;
use crate::ports::RecordStore;

/// The name of the job type.
pub const DELETE: &str = "delete";

/// The param that names the dataset.
pub const DELETED_DATASET: &str = "dataset";

/// The job type `delete`. A request to delete a dataset creates it.
///
/// | param | meaning |
/// |---|---|
/// | `dataset` | the dataset whose records it deletes |
pub fn delete(records: Option<Arc<dyn RecordStore>>) -> OverKeys {
    OverKeys { name: DELETE, params: &[DELETED_DATASET], lists_changes: false, rule, records }
}

fn rule(spec: &Spec, keys_of: KeysOf) -> Option<Rule> {
    let KeysOf::Stored = keys_of else { return None };
    let by = Writer::new(spec.created_at, spec.job_guid);
    Some(Box::new(move |stored| match stored.map(|stored| stored.delete(by)) {
        Some(Deleting::Remove) => Rewrite::Remove(None),
        Some(Deleting::Forget(record)) => Rewrite::Store(record, None),
        Some(Deleting::Later) | None => Rewrite::Keep(None),
    }))
}
