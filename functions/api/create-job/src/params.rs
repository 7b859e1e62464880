//! The names of params: which ones a job may have.

use rowmill_core::model::files::{UNREADABLE_FILES, UnreadableFiles};
use rowmill_core::model::spec::DRY_RUN;
use rowmill_core::ports::processor::{InputKind, JobType, ParamsError};

use crate::request::CreateJobRequest;

/// The params of every job over an upload: how the file is read.
pub const FILE_PARAMS: [&str; 8] =
    ["format", "delimiter", "header", "headerRow", "skipRows", "encoding", "compression", "sheet"];

/// Rejects unknown params, so that a misspelled one does not go unnoticed.
///
/// # Errors
/// The first one that the job type does not know.
pub fn check_params(request: &CreateJobRequest, job_type: &dyn JobType) -> Result<(), ParamsError> {
    if request.params.get(DRY_RUN).is_some_and(|dry_run| !dry_run.is_boolean()) {
        return Err(ParamsError::new(format!("params.{DRY_RUN}"), "must be true or false."));
    }
    let reads_files = job_type.input() == InputKind::File && request.items.is_none();
    // An upload may be an archive of many files.
    if reads_files {
        UnreadableFiles::of(&request.params)?;
    }
    if job_type.takes_any_params() {
        return Ok(());
    }
    let of_files = FILE_PARAMS.iter().chain(&[UNREADABLE_FILES]).filter(|_| reads_files);
    let known: Vec<&str> = job_type.params().iter().chain(of_files).chain(&[DRY_RUN]).copied().collect();
    match request.params.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(unknown_param(name, &format!("of `{}`. Its params are", request.job_type), &known)),
    }
}

/// The refusal of a param that is none `of_what`.
pub fn unknown_param(name: &str, of_what: &str, known: &[&str]) -> ParamsError {
    let name: String = name.chars().take(64).collect();
    ParamsError::new(format!("params.{name}"), format!("is not a param {of_what} {}.", known.join(", ")))
}
