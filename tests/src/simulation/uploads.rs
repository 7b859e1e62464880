//! The files of the jobs in the bucket: uploaded, replaced and deleted.

use std::time::Duration;

use futures::FutureExt;
use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::model::keys;
use rowmill_core::model::upload::{Upload, UploadState};
use rowmill_core::ports::{Objects, UploadStore};

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
                let put = self.world.bucket.put(&key, "text/csv", bytes.into(), None);
                put.now_or_never().expect("at once").expect("in-memory ports do not fail");
            }
        }
    }

    pub(super) fn upload_files(&mut self) {
        for job in self.plan.jobs.clone() {
            self.store_upload(job.file.file_guid, job.file.owner.clone(), job.file.bytes.clone());
            self.world.invariants.uploaded(job.file);
        }
    }

    pub(super) fn store_upload(&self, file_guid: FileGuid, owner: Owner, bytes: Vec<u8>) {
        let (key, now) = (keys::upload(file_guid), self.world.hub.now());
        let size = bytes.len() as u64;
        let put = self.world.bucket.put(&key, "text/csv", bytes.into(), None).now_or_never();
        let etag = put.expect("at once").expect("in-memory ports do not fail");
        let upload = Upload {
            file_guid,
            owner,
            file_name: None,
            content_type: "text/csv".into(),
            size,
            sha256: None,
            key,
            state: UploadState::Ready { etag },
            origin: None,
            created_at: now,
            expires_at: now + Duration::from_secs(40 * 86_400),
        };
        let created = self.world.upload_rows.create(&upload).now_or_never();
        created.expect("at once").expect("in-memory ports do not fail");
    }
}
