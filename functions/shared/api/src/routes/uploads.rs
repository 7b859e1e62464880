//! Routes of uploads.

use super::{Answer, Json, Operation, RequestBody, Route, query};
use crate::preview::PreviewView;
use crate::problem::ProblemCode::*;
use crate::request::{PreviewRequest, SignPartsRequest, UploadRequest};
use crate::upload::UploadView;

routes! {
    CreateUpload = "POST" "/api/uploads" by "upload" {
        summary: "Store a small file, announce a big one, or have one fetched",
        description: "Send a small file (at most 5 MB) as the body, with its own content type. For a bigger file send \
                      an announcement as `application/json`; the answer has one presigned request for the whole file, or \
                      one for each part. A file on an external server is fetched, if the stack may fetch from that server: \
                      send its URL as `application/json`, and look at the upload until it is `ready`. Any content type is accepted for a file, except `application/json` and forms. A \
                      text type needs UTF-8; send other bytes as `application/octet-stream`.",
        parameters: &[query(
            "fileName",
            "The name of the file in the body, at most 255 bytes without control characters. An empty name counts \
             as left out. Ignored with an announcement, which has its own `fileName`.",
            r#"{"type": "string"}"#,
        )],
        body: Some(RequestBody { required: true, json: Json::of::<UploadRequest>(), or_file: true }),
        answers: &[
            Answer::of::<UploadView>(
                201,
                "The file is stored, or announced: then send its bytes with the presigned requests.",
            ),
            Answer::of::<UploadView>(202, "The file will be fetched."),
        ],
        problems: &[(422, BodyAltered), (429, TooManyUploads)],
    }
    CompleteUpload = "POST" "/api/uploads/{fileGuid}/complete" by "upload" {
        summary: "Join the parts of a file",
        description: "Required after the parts of a big file are sent. Completing an upload again changes nothing.",
        answers: &[Answer::of::<UploadView>(200, "The file is stored.")],
        problems: &[
            (404, NotFound), (409, UploadIncomplete), (409, UploadFailed), (409, UploadSizeMismatch), (409, Changed),
        ],
    }
    ShowUpload = "GET" "/api/uploads/{fileGuid}" by "upload" {
        summary: "Show an upload",
        description: "An upload that was sent with a presigned request is `ready` as soon as its bytes are stored. \
                      `bytesStored` and `partsStored` come from the bucket, so they are what is really stored.",
        answers: &[Answer::of::<UploadView>(200, "The upload.")],
        problems: &[(404, NotFound)],
    }
    SignParts = "POST" "/api/uploads/{fileGuid}/parts" by "upload" {
        summary: "Sign the missing parts again",
        description: "To resume an upload, or to go on after the signatures have expired, until the upload itself \
                      expires. `parts` has the parts that the bucket does not have, at most 1,000, and `nextPart` where to \
                      go on. If `parts` is empty, all parts are stored: complete the upload. An upload by a single request \
                      gets that request in `upload`.",
        body: Some(RequestBody { required: false, json: Json::of::<SignPartsRequest>(), or_file: false }),
        answers: &[Answer::of::<UploadView>(200, "The upload, with new presigned requests.")],
        problems: &[
            (404, NotFound), (409, UploadReady), (409, UploadFetching), (409, UploadFailed), (429, TooManyUploads),
        ],
    }
    DeleteUpload = "DELETE" "/api/uploads/{fileGuid}" by "upload" {
        summary: "Delete an upload",
        description: "Deletes the file. Of an upload that is not ready, what is stored of it: it no longer counts as outstanding, \
                      and presigned requests of its parts are refused from then on. A job that still reads the file is stopped \
                      with `source_changed`.",
        answers: &[Answer::empty(204, "The upload does not exist any more.")],
        problems: &[(404, NotFound)],
    }
    PreviewUpload = "POST" "/api/uploads/{fileGuid}/preview" by "create-job" {
        summary: "Show the first rows of a file",
        description: "Reads the beginning of a complete upload as a job with these params would: how it is packed, its \
                      format, charset, delimiter and columns, and its first rows. No job is created. Texts are cut off \
                      behind 1,000 characters, and the answer has at most 256 KiB of columns and rows.",
        body: Some(RequestBody { required: false, json: Json::of::<PreviewRequest>(), or_file: false }),
        answers: &[Answer::of::<PreviewView>(200, "The beginning of the file.")],
        problems: &[
            (404, NotFound), (409, UploadIncomplete), (409, Changed), (422, InvalidParams), (422, UnknownJobType),
            (422, UploadFailed), (422, UploadSizeMismatch), (422, UploadChanged), (422, UnreadableFile),
        ],
    }
}
