//! The views of a job that a client gets.

use job_status::items::CauseFilter;
use rowmill_api::job::JobView;
use rowmill_core::model::audit::AuditProof;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::model::job::Job;
use rowmill_core::model::job::states::Status;
use rowmill_core::model::results::Manifest;
use rowmill_core::model::run_output::FailedItem;
use rowmill_core::model::why::Reason;
use rowmill_core::ports::{Jobs as _, Objects as _};

use super::World;

/// Maximum number of items of a page: few, so that tests read several pages.
const PAGE_ITEMS: usize = 3;

impl World {
    pub async fn job(&self, job: JobGuid) -> Job {
        self.jobs.job(job).await.expect("the job exists")
    }

    /// The job as the API shows it.
    pub async fn show(&self, job: JobGuid) -> JobView {
        self.status.show(&self.job(job).await).await.expect("in-memory ports do not fail")
    }

    /// Delivers all messages; the job as the API shows it then.
    pub async fn run_and_show(&self, job: JobGuid) -> JobView {
        self.run().await;
        self.show(job).await
    }

    /// Delivers all messages, by which the job must complete; the number of items that succeeded.
    pub async fn completed(&self, job: JobGuid) -> u64 {
        let shown = self.run_and_show(job).await;
        assert_eq!(shown.status, Status::Completed, "{shown:?}");
        shown.items_succeeded
    }

    /// What holds a job up.
    pub async fn why(&self, job: JobGuid) -> Vec<Reason> {
        self.reasons.of(&self.job(job).await).await.expect("in-memory ports do not fail").reasons
    }

    /// The audit of a job, in one page.
    pub async fn audit(&self, job: JobGuid) -> AuditProof {
        let audit = self.auditor.page(&self.job(job).await, None).await.expect("in-memory ports do not fail");
        assert!(audit.is_intact(), "the digest is that of the proof");
        audit
    }

    /// The manifest of the results of a job that has ended.
    pub async fn manifest(&self, job: &Job) -> Manifest {
        let results = job.end().and_then(|end| end.results.as_ref()).expect("it has results");
        let json = self.objects.read(&results.manifest_key(job.job_guid)).await.expect("the manifest exists");
        serde_json::from_slice(&json).expect("a manifest")
    }

    /// The bytes of a file of the results of a job.
    pub async fn result_file(&self, job: &Job, name: &str) -> Vec<u8> {
        let (results, manifest) =
            (job.end().and_then(|end| end.results.as_ref()).expect("it has results"), self.manifest(job).await);
        let file = manifest.files.iter().find(|stored| stored.file.name == name);
        let file = file.unwrap_or_else(|| panic!("no {name} in {:?}", manifest.files));
        self.objects.read(&results.file_key(job.job_guid, file)).await.expect("the file exists").to_vec()
    }

    /// The rows of all skipped items of a job, read page by page.
    pub async fn all_skipped(&self, job: JobGuid) -> Vec<u64> {
        let job = self.job(job).await;
        let (mut rows, mut after) = (Vec::new(), 0);
        loop {
            let page = self.items.skipped(&job, after, PAGE_ITEMS).await.expect("in-memory ports do not fail");
            rows.extend(page.items.iter().map(|item| item.row));
            match page.next {
                Some(next) => after = next,
                None => return rows,
            }
        }
    }

    /// All failed items of a job, read page by page.
    pub async fn all_failed(&self, job: JobGuid) -> Vec<FailedItem> {
        let job = self.job(job).await;
        let (mut items, mut after) = (Vec::new(), 0);
        loop {
            let page = self
                .items
                .failed(&job, &CauseFilter::default(), after, PAGE_ITEMS)
                .await
                .expect("in-memory ports do not fail");
            assert!(page.items.len() <= PAGE_ITEMS);
            items.extend(page.items);
            match page.next {
                Some(next) => after = next,
                None => return items,
            }
        }
    }

    /// The rows of all failed items of a job.
    pub async fn failed_rows(&self, job: JobGuid) -> Vec<u64> {
        self.all_failed(job).await.iter().map(|item| item.row).collect()
    }
}
