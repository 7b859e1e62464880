//! The files of the jobs in the bucket: uploaded, replaced and deleted.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::model::keys;
use rowmill_core::model::upload::{FetchBegun, FetchFailure, Multipart, Origin, Upload, UploadState};
use rowmill_core::ports::{Objects, PortError, UploadStore};
use uuid::Uuid;

use super::functions::Reply;
use super::plan::Planned;
use super::run::Run;

impl Run {
    pub(super) fn replace_file(&mut self, job: usize) {
        let key = keys::upload(self.plan.jobs[job].file.file_guid);
        self.world.hub.tell(None, || format!("the file of job plan {job} is replaced or deleted"));
        match self.adversary.rng.bool() {
            true => self.world.bucket.delete(&key),
            false => {
                // Another length than the original, so that no job is created over it.
                let mut bytes = self.plan.jobs[job].file.bytes.clone();
                bytes.extend_from_slice(b"9,good,other\n");
                at_once(self.world.bucket.put(&key, "text/csv", bytes.into(), None));
            }
        }
    }

    pub(super) fn upload_files(&mut self) {
        for job in self.plan.jobs.clone() {
            let (file_guid, owner) = (job.file.file_guid, job.file.owner.clone());
            if job.is_fetched {
                self.create_upload(file_guid, owner, 0, UploadState::Pending { multipart: None });
            } else {
                for (file_guid, bytes) in job.file.uploads() {
                    self.store_upload(file_guid, owner.clone(), bytes);
                }
            }
            self.world.invariants.uploaded(job.file);
        }
    }

    /// The file of a job is fetched, or mostly: and the jobs that wait for it are told, perhaps again.
    pub(super) fn fetch(&mut self, planned: Planned, job: usize) {
        let file = Arc::clone(&self.plan.jobs[job].file);
        let (rows, now) = (Arc::clone(&self.world.upload_rows), self.world.hub.now());
        let upload = at_once(rows.upload(file.file_guid, now));
        if matches!(upload.state, UploadState::Pending { .. }) {
            if self.adversary.rng.u8(..) < 24 {
                let failure = FetchFailure { code: "source_refused".to_owned(), detail: "It is gone.".to_owned() };
                at_once(rows.fail(file.file_guid, &failure));
            } else {
                let (size, content_type) = (file.bytes.len() as u64, "text/csv".to_owned());
                let etag = at_once(self.world.bucket.put(&upload.key, &content_type, file.bytes.clone().into(), None));
                let multipart = Multipart { id: "m".to_owned(), part_size: 9 };
                at_once(
                    rows.begin_fetch(file.file_guid, &FetchBegun { size, content_type, validator: None, multipart }),
                );
                at_once(rows.mark_ready(file.file_guid, &etag));
            }
        }
        self.wake(planned, file.file_guid.0);
    }

    pub(super) fn announce(&mut self, planned: Planned, job: usize) {
        if let Some((job, _)) = self.job_of(job) {
            self.wake(planned, job.0);
        }
    }

    fn wake(&mut self, planned: Planned, awaited: Uuid) {
        let waker = Arc::clone(&self.world.waker);
        self.invoke_api(planned, async move {
            waker
                .wake(awaited)
                .await
                .map_or_else(|error| Reply::Failed(error.to_string()), |()| Reply::Done("woken".to_owned()))
        });
    }

    pub(super) fn store_upload(&self, file_guid: FileGuid, owner: Owner, bytes: Vec<u8>) {
        let size = bytes.len() as u64;
        let etag = at_once(self.world.bucket.put(&keys::upload(file_guid), "text/csv", bytes.into(), None));
        self.create_upload(file_guid, owner, size, UploadState::Ready { etag });
    }

    fn create_upload(&self, file_guid: FileGuid, owner: Owner, size: u64, state: UploadState) {
        let (key, now) = (keys::upload(file_guid), self.world.hub.now());
        let is_fetched = matches!(state, UploadState::Pending { .. });
        let upload = Upload {
            file_guid,
            owner,
            file_name: None,
            content_type: "text/csv".into(),
            size,
            sha256: None,
            key,
            state,
            origin: is_fetched.then(|| Origin::at("https://data.example/rows.csv")),
            created_at: now,
            expires_at: now + Duration::from_secs(40 * 86_400),
        };
        at_once(self.world.upload_rows.create(&upload));
    }
}

fn at_once<T>(answer: impl Future<Output = Result<T, PortError>>) -> T {
    answer.now_or_never().expect("at once").expect("in-memory ports do not fail")
}
