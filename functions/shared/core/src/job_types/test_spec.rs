//! The spec of a job for the tests of job types.

use jiff::Timestamp;
use serde_json::Value;

use crate::model::ids::{FileGuid, JobGuid, Owner};
use crate::model::spec::{Source, SourceFile, Spec};
use crate::text::{ChunkLimits, Dialect, Format, Head};

/// The job of all tests.
pub(super) fn job_guid() -> JobGuid {
    JobGuid(uuid::Uuid::from_u128(0x0189_0a5d_ac96_774b_bcce_b302_099a_8057))
}

/// A job of this type for a small file with these columns.
pub(super) fn spec(job_type: &str, format: Format, columns: &[&str], params: &Value) -> Spec {
    Spec {
        job_guid: job_guid(),
        owner: Owner("local".into()),
        job_type: job_type.into(),
        created_at: Timestamp::UNIX_EPOCH,
        source: Source::File(SourceFile {
            file_guid: FileGuid(uuid::Uuid::nil()),
            key: "k".into(),
            etag: "e".into(),
            size: 1,
        }),
        head: Head {
            dialect: Dialect { format, delimiter: b',' },
            columns: columns.iter().map(|column| (*column).to_owned()).collect(),
            data_start: 0,
        },
        limits: ChunkLimits { max_items: 10, max_bytes: 1000, max_record_bytes: 1000 },
        scanner_version: 1,
        params: params.as_object().cloned().unwrap(),
        tolerance: None,
        max_concurrency: None,
        output: None,
    }
}
