//! Composing the result files of an attempt, step by step:
//!
//! | step | module | file |
//! |---|---|---|
//! | 1 | `failed_rows` | the failed rows |
//! | 2 | `skipped_rows` | the unprocessed rows: header and skipped rows |
//! | 3 | `undispatched` | the unprocessed rows: the rest of the input |
//! | 4 | `outputs` | the outputs of the items |
//! | 5 | `files` | the files of a job over many |
//!
//! Each step reads in row order what the winning runs left, and writes as it reads, so memory does not grow with the
//! job. When time is nearly up, the [`Composition`] is stored and named in the job row. The next invocation resumes it.
//! Two runs may compose at the same time, and what they write may differ, because the job was stopped in between. So no
//! run writes to a file of another, see [`writer`].

mod composer;
mod composition;
mod failed_row;
mod failed_rows;
mod files;
mod input_text;
mod outputs;
mod records;
mod skipped_rows;
mod step;
mod undispatched;
pub mod writer;

use rowmill_core::items::files::FilesAt;
use rowmill_core::model::ids::RunId;
use rowmill_core::model::job::Job;
use rowmill_core::model::spec::Spec;
use rowmill_core::model::tally::Counts;
use rowmill_core::ports::PortError;

use crate::slot::InvocationSlot;
use composition::Position;
use failed_rows::FailedRows;
use files::Files;
use outputs::Outputs;
use skipped_rows::SkippedRows;
use step::{Composing, Step};
use undispatched::Undispatched;

pub use composer::Composer;
pub use composition::Composition;

/// Maximum number of restarts of a composition because a stored part of it is gone, or was replaced by another run. The
/// limit ends a job whose completion fails at every try.
const RESTARTS_MAX: u32 = 2;

impl Composer {
    /// Composes the results of the job's present attempt, until they are whole or time is up.
    ///
    /// Resumes the composition that the job row names. Otherwise starts one. The files that are stored
    /// now have `name` in their keys.
    ///
    /// # Errors
    /// `Unavailable`; `NotFound` if objects that the job left are gone.
    pub async fn compose(
        &self,
        job: &Job,
        spec: &Spec,
        counts: Counts,
        name: RunId,
        slot: InvocationSlot,
    ) -> Result<Composition, PortError> {
        let composing = |composition, resumed_at| Composing {
            composer: self,
            job,
            spec,
            counts,
            name,
            slot,
            resumed_at,
            composition,
        };
        let mut composition = Composition::new();
        if let Some(stored) = Composition::load(&*self.objects, job).await? {
            let (resumed_at, restarts) = (Some(stored.step), stored.restarts);
            match run(composing(stored, resumed_at)).await {
                // A part of a file has expired, or another run has replaced it: compose it again.
                Err(PortError::NotFound) if restarts < RESTARTS_MAX => composition.restarts = restarts + 1,
                Err(PortError::NotFound) => {
                    let why = "its stored parts keep vanishing";
                    return Err(PortError::unavailable("composing the results", why));
                }
                composed => return composed,
            }
        }
        run(composing(composition, None)).await
    }
}

/// Takes the steps in their order, from the composition's position to the end or until time is up.
async fn run(mut composing: Composing<'_>) -> Result<Composition, PortError> {
    let undispatched_from = composing.job.unprocessed_from().map_or(0, |from| from.offset);
    loop {
        let (resume_at, next) = match composing.composition.step {
            Position::FailedRows { after } => {
                (FailedRows { after }.run(&mut composing).await?, Position::SkippedRows { after: 0 })
            }
            Position::SkippedRows { after } => {
                let next = Position::Undispatched { offset: undispatched_from };
                (SkippedRows { after }.run(&mut composing).await?, next)
            }
            Position::Undispatched { offset } => {
                (Undispatched { offset }.run(&mut composing).await?, Position::Outputs { after: 0 })
            }
            Position::Outputs { after } => {
                (Outputs { after }.run(&mut composing).await?, Position::Files { at: FilesAt::START })
            }
            Position::Files { at } => (Files { at }.run(&mut composing).await?, Position::Done),
            Position::Done => return Ok(composing.composition),
        };
        composing.composition.step = resume_at.unwrap_or(next);
        if resume_at.is_some() {
            return Ok(composing.composition);
        }
    }
}
