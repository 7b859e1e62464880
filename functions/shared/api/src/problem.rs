//! Problem details by RFC 9457 (`application/problem+json`).

use rowmill_core::model::job::states::Status;
use rowmill_core::words::{Open, words};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The media type of a problem.
pub const PROBLEM_JSON: &str = "application/problem+json";

/// A problem. Programs read `code`, people read `detail`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProblemView {
    /// Always `about:blank`: `code` tells the kinds of problems apart.
    pub r#type: String,
    /// The same text for every problem of this kind.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong, where, and what to do.
    pub detail: String,
    /// The stable name of this kind of problem.
    #[schema(value_type = ProblemCode)]
    pub code: Open<ProblemCode>,
    /// The field of the request that is wrong, such as `tolerance.percent`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub field: Option<String>,
    /// The query parameter that is wrong.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub parameter: Option<String>,
    /// Why a file cannot be read, as a stable name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// The line of the JSON body at which reading stopped, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u64>,
    /// The column of that line.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub column: Option<u64>,
    /// The most bytes that are allowed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit_bytes: Option<u64>,
    /// The status of the job that the request does not fit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<Status>)]
    pub job_status: Option<Open<Status>>,
}

/// An answer of API Gateway itself, which is no problem document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct GatewayMessage {
    /// What is wrong.
    pub message: String,
}

macro_rules! problem_codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $word:literal [$($status:literal),+],)+) => {
        words! {
            /// The stable name of a kind of problem.
            ProblemCode {
                $($(#[doc = $doc])+ $variant = $word,)+
            }
        }

        impl ProblemCode {
            /// The HTTP statuses it goes with, the usual one first.
            pub const fn statuses(self) -> &'static [u16] {
                match self {
                    $(Self::$variant => &[$($status),+],)+
                }
            }
        }
    };
}

problem_codes! {
    /// The body is not JSON. `line` and `column` say where reading stopped.
    InvalidJson = "invalid_json" [400],
    /// The body is JSON of the wrong shape. `field` names the place.
    InvalidBody = "invalid_body" [400],
    /// A query parameter has a wrong value. `parameter` names it.
    InvalidQuery = "invalid_query" [400],
    /// The caller's token has no usable `sub` claim.
    Unauthorized = "unauthorized" [401],
    /// The caller's token does not have the scope of this route.
    Forbidden = "forbidden" [403],
    /// The operator has blocked the caller. Reading still works.
    OwnerBlocked = "owner_blocked" [403],
    /// The owner may not use this priority. `detail` names the highest one that the owner may use.
    PriorityNotAllowed = "priority_not_allowed" [403],
    /// The client is older than the job type asks of its workers, or does not say its version. `detail` names the minimum.
    ClientOutdated = "client_outdated" [403],
    /// The job or upload does not exist, has expired, or belongs to somebody else.
    NotFound = "not_found" [404],
    /// The job ended without results, or they have expired.
    NoResults = "no_results" [404],
    /// The stack has no live connections. Poll the job instead.
    LiveUnavailable = "live_unavailable" [404],
    /// The job has not ended. Wait until it has, or cancel it.
    JobActive = "job_active" [409],
    /// The job has ended, so it cannot be changed. `jobStatus` says how it ended.
    JobEnded = "job_ended" [409],
    /// The job is about to end, so it cannot be changed: it is stopped, or all its items are processed. Or it has just
    /// ended, and its last items may still be at work: it can be undone after `Retry-After`.
    JobEnding = "job_ending" [409],
    /// The job has no failed items to process again.
    NothingToRedrive = "nothing_to_redrive" [409],
    /// The job was undone, so its failed items are not processed again.
    JobUndone = "job_undone" [409],
    /// The dataset of the job cannot be pruned after it. `detail` says why.
    NotPrunable = "not_prunable" [409],
    /// The job cannot be undone. `detail` says why.
    NotUndoable = "not_undoable" [409],
    /// The job is too old: what is stored of it could expire before the attempt ends. `detail` says when it does.
    JobTooOld = "job_too_old" [409],
    /// The bytes of the upload are not all stored. Send the rest first.
    UploadIncomplete = "upload_incomplete" [409],
    /// All bytes of the upload are stored, so there is nothing left to send, and it cannot be aborted.
    UploadReady = "upload_ready" [409],
    /// Rowmill fetches the file itself, so there is nothing to send.
    UploadFetching = "upload_fetching" [409],
    /// Rowmill could not fetch the file. `detail` says what its server answered.
    UploadFailed = "upload_failed" [422, 409],
    /// The stored file is longer or shorter than announced. Upload the file again.
    UploadSizeMismatch = "upload_size_mismatch" [422, 409],
    /// The resource changed while the request was carried out. Send the request again.
    Changed = "changed" [409],
    /// The task is not the caller's any more: it was lent to another worker, is done, or its job has ended.
    TaskGone = "task_gone" [410],
    /// The body or the announced file is too big. `limitBytes` is the most that is allowed.
    BodyTooLarge = "body_too_large" [413],
    /// The body has a content type that this route does not accept.
    UnsupportedMediaType = "unsupported_media_type" [415],
    /// A field or header has a value that is not allowed. `field` names it. 400: a deadline that has passed.
    InvalidRequest = "invalid_request" [422, 400],
    /// The job type does not accept a param. `field` names it.
    InvalidParams = "invalid_params" [422],
    /// No job type has this name.
    UnknownJobType = "unknown_job_type" [422],
    /// No upload of the caller has this name, or it has expired. Upload the file again.
    UnknownUpload = "unknown_upload" [422],
    /// The stored file was replaced after it was complete. Upload the file again.
    UploadChanged = "upload_changed" [422],
    /// The upload has expired. Upload the file again.
    UploadExpired = "upload_expired" [422],
    /// The file cannot be read. `reason` says why.
    UnreadableFile = "unreadable_file" [422],
    /// The file is not UTF-8 although its content type is a text type, so the gateway would alter it.
    BodyAltered = "body_altered" [422],
    /// The idempotency key was already used for a different request.
    IdempotencyKeyReused = "idempotency_key_reused" [422],
    /// The corrected file cannot be used. `detail` names the line.
    InvalidCorrectedFile = "invalid_corrected_file" [422],
    /// The corrected file has rows that did not fail. `detail` names them.
    RowsNotFailed = "rows_not_failed" [422],
    /// The caller has sent too many requests to this route. Try again after `Retry-After`.
    TooManyRequests = "too_many_requests" [429],
    /// The caller has announced too many uploads, or too many bytes, without completing them. Complete some of them, or
    /// try again after `Retry-After`.
    TooManyUploads = "too_many_uploads" [429],
    /// The owner has too many live connections. Close some of them.
    TooManyConnections = "too_many_connections" [429],
    /// The limit of active jobs of the owner is reached. Try again after `Retry-After`.
    OwnerFull = "owner_full" [429],
    /// The limit of active jobs of the job type is reached. Try again after `Retry-After`.
    JobTypeFull = "job_type_full" [503],
    /// The limit of active jobs of the system is reached. Try again after `Retry-After`.
    SystemFull = "system_full" [503],
    /// A service that Rowmill needs is unavailable. Try again after `Retry-After`.
    Unavailable = "unavailable" [503],
    /// Rowmill failed. The log has the cause.
    InternalError = "internal_error" [500],
}

impl ProblemCode {
    /// The usual HTTP status.
    pub const fn status(self) -> u16 {
        self.statuses()[0]
    }

    /// The title of every problem of this code with this status.
    pub const fn title(self, status: u16) -> &'static str {
        match (self, status) {
            (Self::NoResults, _) => "The job has no results",
            (Self::LiveUnavailable, _) => "There are no live connections",
            (Self::TooManyConnections, _) => "Too many live connections",
            (Self::TooManyRequests, _) => "Too many requests",
            (Self::TooManyUploads, _) => "Too many unfinished uploads",
            (_, 400) => "The request is not valid",
            (_, 401) => "The caller is not known",
            (_, 403) => "The caller may not do this",
            (_, 404) => "The resource does not exist",
            (_, 409) => "The request does not fit the current state",
            (_, 410) => "The resource is gone",
            (_, 413) => "The body is too big",
            (_, 415) => "The content type is not accepted",
            (_, 422) => "The request cannot be carried out",
            (_, 429) => "Too many active jobs",
            (_, 503) => "Temporarily unavailable",
            _ => "Internal error",
        }
    }

    /// A problem of this code, with its usual status.
    pub fn problem(self, detail: impl Into<String>) -> ProblemView {
        let status = self.status();
        ProblemView {
            r#type: "about:blank".to_owned(),
            title: self.title(status).to_owned(),
            status,
            detail: detail.into(),
            code: self.into(),
            field: None,
            parameter: None,
            reason: None,
            line: None,
            column: None,
            limit_bytes: None,
            job_status: None,
        }
    }
}
