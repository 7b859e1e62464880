use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_s3::config::{Builder, RequestChecksumCalculation, ResponseChecksumValidation};
use aws_sdk_s3::presigning::{PresignedRequest as SignedRequest, PresigningConfig};
use rowmill_core::ports::{DirectTransfers, PortError, PresignedRequest};

use super::objects::{S3Objects, checksum};

const PRESIGNING: &str = "signing a request";

/// Switches off the SDK's own checksum, which would cover an empty body.
fn no_checksum() -> Builder {
    Builder::new().request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
}

fn expiring(after: Duration) -> Result<PresigningConfig, PortError> {
    PresigningConfig::expires_in(after).map_err(|error| PortError::invalid(PRESIGNING, error))
}

fn length(size: u64) -> Result<i64, PortError> {
    i64::try_from(size).map_err(|error| PortError::invalid(PRESIGNING, error))
}

/// The header that makes a browser save an object under this name: the plain form for old clients, and the encoded form
/// (RFC 6266) for all others.
fn attachment(file_name: &str) -> String {
    let plain: String = file_name
        .chars()
        .map(|c| if c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '/' | '%') || c == ' ' { c } else { '_' })
        .collect();
    if file_name.is_ascii() {
        return format!("attachment; filename=\"{plain}\"");
    }
    let encoded: String = file_name
        .bytes()
        .map(|byte| match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'.' | b'-' | b'_' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}")
}

/// The request with the headers that its signature covers.
fn presigned(signed: &SignedRequest) -> PresignedRequest {
    // The SDK adds headers (Lambda's trace) that the signature does not cover and that no client should send.
    let query = signed.uri().split('?').nth(1).unwrap_or_default();
    let covered = query.split('&').find_map(|pair| pair.strip_prefix("X-Amz-SignedHeaders=")).unwrap_or_default();
    let is_covered = |name: &str| covered.split("%3B").any(|covered| covered.eq_ignore_ascii_case(name));
    let headers = signed.headers().filter(|(name, _)| is_covered(name));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    PresignedRequest { method: signed.method().to_owned(), url: signed.uri().to_owned(), headers: headers.collect() }
}

#[async_trait]
impl DirectTransfers for S3Objects {
    async fn presign_put(
        &self,
        key: &str,
        content_type: &str,
        size: u64,
        sha256: Option<[u8; 32]>,
        expires_in: Duration,
    ) -> Result<PresignedRequest, PortError> {
        let request = self
            .client
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .content_type(content_type)
            .content_length(length(size)?)
            .set_checksum_sha256(sha256.map(checksum))
            .if_none_match("*")
            .customize()
            .config_override(no_checksum());
        let signed = request.presigned(expiring(expires_in)?).await;
        let signed = signed.map_err(|error| PortError::unavailable(PRESIGNING, error))?;
        Ok(presigned(&signed))
    }

    async fn presign_get(
        &self,
        key: &str,
        content_type: &str,
        file_name: &str,
        expires_in: Duration,
    ) -> Result<PresignedRequest, PortError> {
        let (bucket, key) = self.place(key);
        let request = self
            .client
            .get_object()
            .bucket(bucket)
            .key(key)
            .response_content_type(content_type)
            .response_content_disposition(attachment(file_name))
            .customize()
            .config_override(Builder::new().response_checksum_validation(ResponseChecksumValidation::WhenRequired));
        let signed = request.presigned(expiring(expires_in)?).await;
        let signed = signed.map_err(|error| PortError::unavailable(PRESIGNING, error))?;
        // Any client must be able to follow the link, so it must need no header except the host.
        Ok(PresignedRequest { headers: Vec::new(), ..presigned(&signed) })
    }

    async fn presign_part(
        &self,
        key: &str,
        multipart: &str,
        part: u32,
        size: u64,
        expires_in: Duration,
    ) -> Result<PresignedRequest, PortError> {
        let request = self
            .client
            .upload_part()
            .bucket(&self.bucket)
            .key(key)
            .upload_id(multipart)
            .part_number(i32::try_from(part).map_err(|error| PortError::invalid(PRESIGNING, error))?)
            .content_length(length(size)?)
            .customize()
            .config_override(no_checksum());
        let signed = request.presigned(expiring(expires_in)?).await;
        let signed = signed.map_err(|error| PortError::unavailable(PRESIGNING, error))?;
        Ok(presigned(&signed))
    }
}
