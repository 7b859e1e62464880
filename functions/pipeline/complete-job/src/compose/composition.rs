//! The state of a composition, and its stored form.
//!
//! A composition that ran out of time lies in the bucket as two objects: its state as JSON, and the tail of the open
//! file. A later version of Rowmill may resume it, so names of fields and variants must not change.

use bytes::Bytes;
use rowmill_core::items::files::FilesAt;
use rowmill_core::model::causes::Causes;
use rowmill_core::model::changes::Changes;
use rowmill_core::model::ids::RunId;
use rowmill_core::model::job::Job;
use rowmill_core::model::keys;
use rowmill_core::model::results::{LeftOut, ManifestFile};
use rowmill_core::ports::{Objects, PortError};
use serde::{Deserialize, Serialize};

use super::writer::OpenFile;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Composition {
    /// The finished files.
    pub files: Vec<ManifestFile>,
    /// The parts that are left out of the files.
    pub left_out: Vec<LeftOut>,
    /// The step to resume at.
    pub(super) step: Position,
    /// The file that this step writes, if it has begun one.
    pub(super) open: Option<OpenFile>,
    /// The bytes of the open file that are not stored in a part yet. They have an object of their own.
    #[serde(skip)]
    pub(super) tail: Bytes,
    /// Number of skipped rows that were not copied, because they cannot be read.
    #[serde(default)]
    pub(super) too_long: u64,
    #[serde(default)]
    pub(super) restarts: u32,
    /// The causes of the failed rows so far.
    #[serde(default)]
    pub causes: Causes,
    /// The changes of the rows so far, if the outputs are changes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub changes: Option<Changes>,
}

/// A step of a composition, and how far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Position {
    /// The failed rows after this row are next.
    FailedRows { after: u64 },
    /// The skipped rows after this row are next.
    SkippedRows { after: u64 },
    /// The undispatched input from this byte on is next.
    Undispatched { offset: u64 },
    /// The outputs after this row are next.
    Outputs { after: u64 },
    /// The files of the job from this place on are next.
    Files { at: FilesAt },
    /// All files are finished.
    Done,
}

impl Composition {
    /// A composition that has not begun.
    pub(super) fn new() -> Self {
        Self {
            files: Vec::new(),
            left_out: Vec::new(),
            step: Position::FailedRows { after: 0 },
            open: None,
            tail: Bytes::new(),
            too_long: 0,
            restarts: 0,
            causes: Causes::default(),
            changes: None,
        }
    }

    /// True if all files are finished. Otherwise time was up: another invocation must resume it.
    pub fn is_whole(&self) -> bool {
        self.step == Position::Done
    }

    /// Records that a part is left out of a file, once.
    pub(super) fn leave_out(&mut self, file: &str, message: impl Into<String>) {
        let left_out = LeftOut { file: file.to_owned(), message: message.into() };
        if !self.left_out.contains(&left_out) {
            self.left_out.push(left_out);
        }
    }

    /// The composition that the job row names, unless there is none or it has expired.
    pub(super) async fn load(objects: &dyn Objects, job: &Job) -> Result<Option<Self>, PortError> {
        let Some(name) = job.composing else { return Ok(None) };
        let (state_key, tail_key) = keys::composition(job.job_guid, job.attempt, name);
        let (state, tail) = match (objects.read(&state_key).await, objects.read(&tail_key).await) {
            (Err(PortError::NotFound), _) | (_, Err(PortError::NotFound)) => return Ok(None),
            (state, tail) => (state?, tail?),
        };
        let state: Self =
            serde_json::from_slice(&state).map_err(|error| PortError::invalid("resuming a composition", error))?;
        Ok(Some(Self { tail, ..state }))
    }

    /// Stores it under this name, for the next invocation.
    pub async fn store(&self, objects: &dyn Objects, job: &Job, name: RunId) -> Result<(), PortError> {
        let (state_key, tail_key) = keys::composition(job.job_guid, job.attempt, name);
        let state = serde_json::to_vec(self).map_err(|error| PortError::invalid("storing a composition", error))?;
        objects.put(&tail_key, "application/octet-stream", self.tail.clone(), None).await?;
        objects.put(&state_key, "application/json", state.into(), None).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rowmill_core::model::results::ResultKind;
    use rowmill_testing::fixtures;
    use rowmill_testing::in_memory::InMemoryObjects;
    use serde_json::json;

    use super::*;

    fn begun() -> Composition {
        let open = OpenFile::new("failed-rows.csv".into(), ResultKind::FailedRows, "text/csv".into(), false);
        let mut begun = Composition { open: Some(open), ..Composition::new() };
        begun.leave_out("out.csv", "why");
        begun
    }

    #[test]
    fn the_stored_form_stays_readable() {
        let state = json!({
            "files": [], "leftOut": [{"file": "out.csv", "message": "why"}],
            "step": {"failedRows": {"after": 0}},
            "open": {
                "name": "failed-rows.csv", "kind": "failedRows", "contentType": "text/csv", "gzip": false, "items": 0,
                "multipart": null, "bytes": 0, "crc": 0,
            },
            "tooLong": 0, "restarts": 0, "causes": {"causes": [], "other": 0},
        });
        assert_eq!(serde_json::to_value(begun()).unwrap(), state);
        assert_eq!(serde_json::from_value::<Composition>(state).unwrap(), begun());
        for (position, form) in [
            (Position::SkippedRows { after: 7 }, json!({"skippedRows": {"after": 7}})),
            (Position::Undispatched { offset: 7 }, json!({"undispatched": {"offset": 7}})),
            (Position::Outputs { after: 7 }, json!({"outputs": {"after": 7}})),
            (
                Position::Files { at: FilesAt::START },
                json!({"files": {"at": {"file": {"line": 0, "number": 0}, "row": 1, "rows": 0, "counts": {"succeeded": 0, "failed": 0, "skipped": 0}}}}),
            ),
            (Position::Done, json!("done")),
        ] {
            assert_eq!(serde_json::to_value(position).unwrap(), form);
        }
    }

    #[tokio::test]
    async fn a_stored_composition_is_resumed_with_its_tail_until_it_expires() {
        let (objects, name) = (InMemoryObjects::default(), RunId::from_bytes([2; 7]));
        let job = Job { composing: Some(name), ..fixtures::job() };
        assert_eq!(Composition::load(&objects, &job).await.unwrap(), None);
        let stored = Composition { tail: Bytes::from_static(b"1,2\n"), ..begun() };
        stored.store(&objects, &job, name).await.unwrap();
        assert_eq!(Composition::load(&objects, &job).await.unwrap(), Some(stored));
    }
}
