//! Why a worker is refused.

use rowmill_core::items::input::InputError;
use rowmill_core::job_types::target_type::BadAnswer;
use rowmill_core::model::client_version::ClientVersion;
use rowmill_core::model::task::TaskId;
use rowmill_core::ports::PortError;

#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The token is not, or no longer, that of the holder; or the attempt is past.
    #[error(
        "The task {0} is not yours any more: it was lent to another worker, is done, or its job has ended. Drop it."
    )]
    Gone(TaskId),
    #[error("The task {0} has had no beat. Send one before the first item begins: only then nobody else begins it.")]
    NotBegun(TaskId),
    #[error("You may not work on tasks of type `{0}`. The parameter `Workers` of the stack says who may.")]
    NotAllowed(String),
    #[error(
        "You may work on no job type whose items workers process. The parameter `Workers` of the stack says who may."
    )]
    NoTypes,
    #[error("`{0}` is no job type whose items workers process.")]
    NoSuchType(String),
    #[error("Tasks of type `{job_type}` need a client of version {minimum} or later, and this one {}. \
        Update the worker.",
        .client.as_ref().map_or_else(|| "does not name its version in `client`".into(), |name| format!("is `{name}`")))]
    Outdated { job_type: String, minimum: ClientVersion, client: Option<String> },
    /// The outcomes do not fit the items of the task.
    #[error("The outcomes are invalid: {0}.")]
    BadOutcomes(#[from] BadAnswer),
    #[error("`itemIdentifiers[{place}]` must be {expected}: report the items of the task in their order.")]
    OtherItems { place: usize, expected: String },
    #[error("`{field}` {message}.")]
    BadProduct { field: &'static str, message: String },
    #[error(transparent)]
    Port(#[from] PortError),
}

impl From<InputError> for TaskError {
    /// The job is stopped or the input is unavailable: the worker asks again.
    fn from(error: InputError) -> Self {
        match error {
            InputError::Port(error) => error.into(),
            error => PortError::invalid("reading the items of a task", error).into(),
        }
    }
}
