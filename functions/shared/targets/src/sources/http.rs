//! Reads files over HTTPS, from checked addresses.
//!
//! | answer | meaning |
//! |---|---|
//! | 206 with the range that was asked for | bytes of the file |
//! | 200 | the whole file: the server knows no ranges, or the version has changed |
//! | 301, 302, 303, 307, 308 | redirect, at most five times, to hosts that are allowed |
//! | 408, 425, 429, 5xx | busy: another try; `Retry-After` is honoured |
//! | 412, 416 | another version; at the first look the whole file is read |
//! | any other status | refused |

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, HeaderMap, HeaderName, IF_RANGE, LAST_MODIFIED, LOCATION,
    RANGE, RETRY_AFTER,
};
use reqwest::{Response, StatusCode};
use rowmill_core::ports::{Clock, RemoteBytes, RemoteError, RemoteFile, RemoteFiles};

use super::hosts::{FetchHosts, SourceRefused};
use crate::clients::CheckedClients;
use crate::lookup::{AddressRefused, Lookup};
use crate::retry_after::retry_after;

const REDIRECTS_MAX: usize = 5;

/// The longest name of a version. It is stored in the upload's row.
const VALIDATOR_MAX_BYTES: usize = 1024;

/// Longest wait for the next bytes of an answer.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// Files on the servers that the stack may fetch from.
pub struct HttpFiles {
    clients: CheckedClients,
    hosts: FetchHosts,
    clock: Arc<dyn Clock>,
}

impl HttpFiles {
    /// Files on these hosts, whose names are resolved with this lookup.
    ///
    /// # Errors
    /// If TLS cannot be set up.
    pub fn new(hosts: FetchHosts, lookup: &Arc<dyn Lookup>, clock: Arc<dyn Clock>) -> Result<Self, reqwest::Error> {
        Ok(Self { clients: CheckedClients::new(lookup, Some(READ_TIMEOUT))?, hosts, clock })
    }

    /// The answer to a request, behind its redirects.
    async fn get(&self, url: &str, headers: &[(HeaderName, String)]) -> Result<Response, RemoteError> {
        let mut place = self.hosts.check(url).map_err(|refused| not_allowed(&refused))?;
        for _ in 0..=REDIRECTS_MAX {
            let request = self.clients.to(place.allows_private()).get(place.url().clone());
            // One that is packed all the same is stored as it is: a job unpacks it.
            let request = request.header(ACCEPT_ENCODING, "identity");
            let request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
            let response = request.send().await.map_err(|error| no_answer(&error))?;
            let status = response.status();
            match status.as_u16() {
                301..=303 | 307 | 308 => {
                    let location = text(response.headers(), &LOCATION);
                    let url = location.and_then(|location| response.url().join(location).ok());
                    let url = url.ok_or_else(|| refused("The source redirects without a valid URL."))?;
                    place = self.hosts.redirected(&place, &url).map_err(|refused| {
                        RemoteError::Refused(format!("The source redirects to a URL that {refused}."))
                    })?;
                }
                200 | 206 | 412 | 416 => return Ok(response),
                408 | 425 | 429 | 500.. => {
                    let header = text(response.headers(), &RETRY_AFTER);
                    let retry_after = header.and_then(|header| retry_after(header, self.clock.now()));
                    return Err(RemoteError::Busy { detail: answered(status), retry_after });
                }
                _ => return Err(RemoteError::Refused(answered(status))),
            }
        }
        Err(RemoteError::Refused(format!("The source redirects more than {REDIRECTS_MAX} times.")))
    }
}

#[async_trait]
impl RemoteFiles for HttpFiles {
    async fn look(&self, url: &str) -> Result<RemoteFile, RemoteError> {
        let response = self.get(url, &[(RANGE, "bytes=0-0".to_owned())]).await?;
        let headers = response.headers();
        let content_type = text(headers, &CONTENT_TYPE).map(str::to_owned);
        let range = text(headers, &CONTENT_RANGE).and_then(ContentRange::parse);
        match (response.status(), range) {
            (StatusCode::PARTIAL_CONTENT, Some(ContentRange { bytes: Some((0, 0)), total })) => {
                Ok(RemoteFile { size: Some(total), validator: validator(headers), content_type })
            }
            (StatusCode::RANGE_NOT_SATISFIABLE, Some(ContentRange { total: 0, .. })) => {
                Ok(RemoteFile { size: Some(0), validator: None, content_type })
            }
            (StatusCode::OK, _) => Ok(RemoteFile { size: response.content_length(), validator: None, content_type }),
            // Its ranges are of no use. Of an empty file some servers say no more than that there is no such range.
            _ => Ok(RemoteFile { size: None, validator: None, content_type: None }),
        }
    }

    async fn read_range(
        &self,
        url: &str,
        (version, size): (&str, u64),
        range: Range<u64>,
    ) -> Result<Bytes, RemoteError> {
        let wanted = format!("bytes={}-{}", range.start, range.end - 1);
        let mut response = self.get(url, &[(RANGE, wanted), (IF_RANGE, version.to_owned())]).await?;
        let headers = response.headers();
        // Not every server looks at `If-Range`. With an entity tag in it, the answer has one too (RFC 9110, 15.3.7).
        let tag = text(headers, &ETAG);
        let is_same = match version.starts_with('"') {
            true => tag == Some(version),
            false => text(headers, &LAST_MODIFIED).is_none_or(|changed| changed == version),
        };
        let sent = text(headers, &CONTENT_RANGE).and_then(ContentRange::parse);
        match (response.status(), sent) {
            (StatusCode::OK, _) if tag == Some(version) => {
                return Err(RemoteError::busy("The source did not give a range this time, but the whole file."));
            }
            (StatusCode::PARTIAL_CONTENT, Some(sent)) if sent.bytes == Some((range.start, range.end - 1)) => {
                if !is_same || sent.total != size {
                    return Err(RemoteError::Changed);
                }
            }
            (StatusCode::PARTIAL_CONTENT, _) => return Err(refused("The source sent another range than asked for.")),
            _ => return Err(RemoteError::Changed),
        }
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut bytes = BytesMut::with_capacity(length);
        while let Some(more) = response.chunk().await.map_err(|error| no_answer(&error))? {
            if bytes.len() + more.len() > length {
                return Err(refused("The source sent more bytes than asked for."));
            }
            bytes.extend_from_slice(&more);
        }
        match bytes.len() == length {
            true => Ok(bytes.freeze()),
            false => Err(RemoteError::busy("The source closed the connection early.")),
        }
    }

    async fn read(&self, url: &str) -> Result<Box<dyn RemoteBytes>, RemoteError> {
        let response = self.get(url, &[]).await?;
        match response.status() {
            StatusCode::OK => Ok(Box::new(HttpBytes { left: response.content_length(), response })),
            status => Err(RemoteError::Refused(answered(status))),
        }
    }
}

struct HttpBytes {
    response: Response,
    /// How many bytes are to come, if that is known.
    left: Option<u64>,
}

#[async_trait]
impl RemoteBytes for HttpBytes {
    async fn next(&mut self) -> Result<Option<Bytes>, RemoteError> {
        let bytes = self.response.chunk().await.map_err(|error| no_answer(&error))?;
        let length = bytes.as_ref().map_or(0, Bytes::len) as u64;
        self.left = self.left.map(|left| left.saturating_sub(length));
        match (&bytes, self.left) {
            (None, Some(1..)) => Err(RemoteError::busy("The source closed the connection early.")),
            _ => Ok(bytes),
        }
    }
}

/// The header `Content-Range` of RFC 9110: `bytes 0-9/200` or `bytes */200`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ContentRange {
    /// The first and the last byte.
    bytes: Option<(u64, u64)>,
    total: u64,
}

impl ContentRange {
    fn parse(header: &str) -> Option<Self> {
        let (range, total) = header.trim().strip_prefix("bytes ")?.split_once('/')?;
        let bytes = match range {
            "*" => None,
            range => {
                let (first, last) = range.split_once('-')?;
                Some((first.parse().ok()?, last.parse().ok()?))
            }
        };
        Some(Self { bytes, total: total.parse().ok()? })
    }
}

/// What names the version of a file: a strong entity tag; or, if there is none at all, the time of its last change, if
/// the answer is later, so that no other change has the same time (RFC 9110, 13.1.5 and 8.8.2.2).
fn validator(headers: &HeaderMap) -> Option<String> {
    let version = match text(headers, &ETAG) {
        Some(tag) => Some(tag).filter(|tag| tag.starts_with('"')),
        None => text(headers, &LAST_MODIFIED).filter(|changed| {
            let time = |text| DateTimeParser::new().parse_timestamp(text).ok();
            let answered = text(headers, &DATE).and_then(time);
            time(changed).zip(answered).is_some_and(|(changed, answered)| changed < answered)
        }),
    };
    version.filter(|version| version.len() <= VALIDATOR_MAX_BYTES).map(str::to_owned)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().filter(|text| !text.is_empty())
}

fn answered(status: StatusCode) -> String {
    let reason = status.canonical_reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!("The source answered with status {}{reason}.", status.as_u16())
}

fn refused(detail: &str) -> RemoteError {
    RemoteError::Refused(detail.to_owned())
}

fn not_allowed(why: &SourceRefused) -> RemoteError {
    RemoteError::Refused(format!("The URL {why}."))
}

/// The URL may contain secrets, so the error is not quoted.
fn no_answer(error: &reqwest::Error) -> RemoteError {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.is::<AddressRefused>() {
            return refused("The host of the source has a private or reserved address.");
        }
        cause = error.source();
    }
    RemoteError::busy(match (error.is_connect(), error.is_timeout()) {
        (_, true) => "The connection to the source timed out.",
        (true, false) => "The connection to the source cannot be opened.",
        (false, false) => "The source closed the connection early.",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_range_has_bytes_or_none_and_the_whole_length() {
        let range = |bytes, total| Some(ContentRange { bytes, total });
        assert_eq!(ContentRange::parse("bytes 0-9/200"), range(Some((0, 9)), 200));
        assert_eq!(ContentRange::parse("bytes */0"), range(None, 0));
        for wrong in ["", "bytes 0-9", "bytes 0-9/*", "items 0-9/20", "bytes -9/20", "bytes 0-/20", "bytes a-b/c"] {
            assert_eq!(ContentRange::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_weak_entity_tag_names_no_version() {
        let of = |pairs: &[(HeaderName, &str)]| {
            let headers: HeaderMap = pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
            validator(&headers)
        };
        const OLD: &str = "Wed, 21 Oct 2015 07:28:30 GMT";
        const NEW: &str = "Wed, 21 Oct 2015 07:28:31 GMT";
        assert_eq!(of(&[(ETAG, "\"a\""), (LAST_MODIFIED, OLD)]).as_deref(), Some("\"a\""));
        assert_eq!(of(&[(ETAG, "W/\"a\""), (LAST_MODIFIED, OLD), (DATE, NEW)]), None);
        assert_eq!(of(&[(LAST_MODIFIED, OLD), (DATE, NEW)]).as_deref(), Some(OLD));
        for (changed, answered) in [(NEW, NEW), (NEW, OLD), ("yesterday", NEW)] {
            assert_eq!(of(&[(LAST_MODIFIED, changed), (DATE, answered)]), None, "it may change within the second");
        }
        assert_eq!(of(&[(LAST_MODIFIED, OLD)]), None);
        assert_eq!(of(&[(ETAG, &format!("\"{}\"", "a".repeat(VALIDATOR_MAX_BYTES)))]), None);
        assert_eq!(of(&[]), None);
    }
}
