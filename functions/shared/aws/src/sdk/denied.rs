//! Missing permissions: calls that a policy does not allow. All are reported here: in the log, and as a metric that an
//! alarm of the template watches.

use rowmill_core::ports::{BoxError, PortError};

use crate::observe::metrics::{self, Metric};

/// True if an error code of AWS says that a policy does not allow the call. The codes with KMS are about the key of a
/// queue, a table or a bucket.
pub fn is_denied(code: Option<&str>) -> bool {
    matches!(
        code,
        Some(
            "AccessDenied"
                | "AccessDeniedException"
                | "KMS.AccessDeniedException"
                | "KMSAccessDeniedException"
                | "KmsAccessDenied"
        )
    )
}

/// Reports a denied call, and returns its error. `reason` is the message of AWS, with the action and the resource.
pub fn denied(doing: &'static str, reason: Option<&str>, source: impl Into<BoxError>) -> PortError {
    report(doing, reason);
    PortError::denied(doing, source)
}

pub fn report(doing: &str, reason: Option<&str>) {
    tracing::error!(call = doing, reason = reason.unwrap_or("no reason given"), "missing permission");
    // At once: a function that is denied a call at its start never finishes an invocation.
    metrics::count_at_once(Metric::MissingPermissions);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_by_a_policy_is_a_missing_permission() {
        for code in ["AccessDenied", "AccessDeniedException", "KmsAccessDenied"] {
            assert!(is_denied(Some(code)), "{code}");
        }
        for code in ["ThrottlingException", "ExpiredToken", "SignatureDoesNotMatch", "NoSuchBucket"] {
            assert!(!is_denied(Some(code)), "{code}");
        }
        assert!(!is_denied(None));
    }

    #[test]
    fn a_denied_call_says_which_permission_is_missing_for_what() {
        let error = denied("reading the job", Some("not authorized to perform: dynamodb:GetItem"), "AccessDenied");
        assert_eq!(error.to_string(), "reading the job: missing permission");
    }
}
