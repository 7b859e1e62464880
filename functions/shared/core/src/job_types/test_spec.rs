//! The spec of a job for the tests of job types.

use serde_json::Value;

use crate::fixtures;
use crate::model::ids::JobGuid;
use crate::model::spec::Spec;
use crate::text::{Dialect, Format, Head};

/// The job of all tests.
pub(super) fn job_guid() -> JobGuid {
    JobGuid(uuid::Uuid::from_u128(0x0189_0a5d_ac96_774b_bcce_b302_099a_8057))
}

/// A job of this type for a small file with these columns.
pub(super) fn spec(job_type: &str, format: Format, columns: &[&str], params: &Value) -> Spec {
    let columns = columns.iter().map(|column| (*column).to_owned()).collect();
    let head = Head { dialect: Dialect { format, delimiter: b',' }, columns, header: None, data_start: 0 };
    let params = params.as_object().cloned().unwrap();
    Spec { job_guid: job_guid(), job_type: job_type.into(), head, params, ..fixtures::spec() }
}
